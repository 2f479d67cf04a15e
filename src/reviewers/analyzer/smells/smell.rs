//! A smell that a check found, and its builder.

use crate::domain::{Confidence, Kind, LineRange, LoweredPriority, PatternId, Priority, Severity, Suggestion};

/// Problem that a smell check found in one file, before it becomes a finding of a run. Lines are 1-based and inclusive.
#[derive(Debug, Clone, PartialEq)]
pub struct Smell {
    /// Kind of the finding.
    pub kind: Kind,
    /// Urgency.
    pub priority: Priority,
    /// Harm that the problem may do.
    pub severity: Severity,
    /// Certainty that it is a problem.
    pub confidence: Confidence,
    /// First line.
    pub line_start: u32,
    /// Last line.
    pub line_end: u32,
    /// A single line without the path: "function `parse` is 84 lines long".
    pub title: String,
    /// One sentence with the figures and the limit.
    pub explanation: String,
    /// Identity of the problem across versions of the file: the name of a function or constant, or the text of the
    /// statement. Together with kind and path it separates new problems from old ones.
    pub subject: String,
    /// First and last line of the code that identifies the problem (the head of a function, not its body).
    pub anchor: (u32, u32),
    /// Measured value, if there is one: a change that raises it makes the problem worse.
    pub figure: Option<f64>,
    /// Redacted text that is shown instead of the anchor's lines if these contain a secret.
    pub quote: Option<String>,
    /// Learned pattern that found the problem, if any.
    pub pattern: Option<PatternId>,
    /// Step by which learned rules lowered the priority.
    pub lowered: Option<LoweredPriority>,
    /// Replacement that removes the problem, if one is safe.
    pub suggestion: Option<Suggestion>,
    /// Name of the innermost function around the first line, unless the title names it.
    pub symbol: Option<String>,
}

/// Urgency, weight and certainty of a smell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SmellGrade {
    /// Urgency.
    pub priority: Priority,
    /// Harm that the problem may do.
    pub severity: Severity,
    /// Certainty that it is a problem.
    pub confidence: Confidence,
}

impl SmellGrade {
    /// Creates a grade.
    pub const fn new(priority: Priority, severity: Severity, confidence: Confidence) -> Self {
        Self { priority, severity, confidence }
    }
}

/// The parts that every smell has. [`Self::build`] makes the smell; the `with_…` functions of [`Smell`] add the rest.
#[derive(Debug, Clone)]
pub struct SmellBuilder {
    /// Kind of the finding.
    pub kind: Kind,
    /// Urgency, weight and certainty.
    pub grade: SmellGrade,
    /// Lines of the problem.
    pub lines: LineRange,
    /// Title in a single line, without the path.
    pub title: String,
    /// One sentence with the figures and the limit.
    pub explanation: String,
    /// Identity of the problem across versions of the file, see [`Smell::subject`].
    pub subject: String,
}

impl SmellBuilder {
    /// Builds a smell that its first line identifies, without figure and suggestion.
    pub fn build(self) -> Smell {
        Smell {
            kind: self.kind,
            priority: self.grade.priority,
            severity: self.grade.severity,
            confidence: self.grade.confidence,
            line_start: self.lines.start,
            line_end: self.lines.end,
            title: self.title,
            explanation: self.explanation,
            subject: self.subject,
            anchor: (self.lines.start, self.lines.start),
            figure: None,
            quote: None,
            pattern: None,
            lowered: None,
            suggestion: None,
            symbol: None,
        }
    }
}

impl Smell {
    /// Returns the smell with the lines (first, last) that identify it.
    #[must_use]
    pub fn with_anchor(self, anchor: (u32, u32)) -> Self {
        Self { anchor, ..self }
    }

    /// Returns the smell with its measured value.
    #[must_use]
    pub fn with_figure(self, figure: f64) -> Self {
        Self { figure: Some(figure), ..self }
    }

    /// Returns the smell with a suggestion in words.
    #[must_use]
    pub fn with_advice(self, advice: impl Into<String>) -> Self {
        self.with_suggestion(Some(Suggestion { text: advice.into(), replacement: None, lines: None }))
    }

    /// Returns the smell with a suggestion, or with none.
    #[must_use]
    pub fn with_suggestion(self, suggestion: Option<Suggestion>) -> Self {
        Self { suggestion, ..self }
    }
}
