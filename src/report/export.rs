//! Prepares findings for the formats that other programs read: masked, and with what was not reviewed.
//!
//! - Texts are harmless for a terminal, because the readers of these formats print them.
//! - A path is unchanged but for masked secrets: its reader compares it with file names. Each format encodes it.
//! - A suggested replacement in which a secret is masked is dropped: it would write the mask into the file.

use crate::domain::text::{sanitize_line, sanitize_lines};
use crate::domain::{Finding, FindingStatus, Priority, Suggestion, Voice};
use crate::masking::Mask;

/// Beginning of the marks that stand for masked secrets.
const MASK_BEGIN: &str = "«secret";
/// Columns of a tab in texts.
const TAB_COLUMNS: usize = 4;

/// Finding for another program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportedFinding {
    /// Finding with masked and harmless texts.
    pub finding: Finding,
    /// Reason of the dismissal, or of another decision not to raise the finding; `None` if it is raised.
    pub suppressed: Option<String>,
}

/// Findings for another program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FindingExport {
    /// Findings in the order of their output.
    pub findings: Vec<ExportedFinding>,
    /// Sentence that says what was not reviewed; `None` if nothing is missing.
    pub incomplete: Option<String>,
    /// File that stands for the whole review in formats where each message needs one. Empty if there is none.
    pub main_path: String,
}

/// Urgency in the words of most other programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportLevel {
    /// P0 and P1.
    Error,
    /// P2.
    Warning,
    /// P3.
    Note,
}

impl From<Priority> for ExportLevel {
    fn from(priority: Priority) -> Self {
        match priority {
            Priority::P0 | Priority::P1 => Self::Error,
            Priority::P2 => Self::Warning,
            Priority::P3 => Self::Note,
        }
    }
}

impl ExportLevel {
    /// Returns the word of SARIF and of compilers: `error`, `warning`, `note`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

impl ExportedFinding {
    /// Masks the texts of a finding. `suppressed` is the reason why it is not raised.
    pub fn new(finding: &Finding, suppressed: Option<String>) -> Self {
        let line = |text: &str| sanitize_line(&mask(text)).into_owned();
        let lines = |text: &str| sanitize_lines(&mask(text), TAB_COLUMNS);
        let finding = Finding {
            title: line(&finding.title),
            explanation: lines(&finding.explanation),
            repo_relative_path: mask(&finding.repo_relative_path),
            quoted_code: mask(&finding.quoted_code),
            suggestion: finding.suggestion.as_ref().map(|suggestion| Suggestion {
                text: line(&suggestion.text),
                replacement: suggestion.replacement.clone().filter(|text| is_free_of_secrets(text)),
                lines: suggestion.lines,
            }),
            voices: finding.voices.iter().map(mask_voice).collect(),
            symbol: finding.symbol.as_deref().map(line),
            ..finding.clone()
        };
        Self { finding, suppressed: suppressed.map(|reason| line(&reason)) }
    }

    /// Returns `true` if the finding is to be shown by programs that know no suppressed findings: nobody has dismissed it
    /// and its code is still there.
    pub fn stands(&self) -> bool {
        let gone = matches!(self.finding.status, FindingStatus::Dismissed | FindingStatus::Obsolete);
        self.suppressed.is_none() && !gone
    }

    /// Returns the explanation and the suggestion in words. Lines are separated by `\n`; empty if there is neither.
    pub fn describe(&self) -> String {
        let suggestion = self.finding.suggestion.as_ref().map(|suggestion| suggestion.text.as_str());
        let suggestion = suggestion.filter(|text| !text.is_empty()).map(|text| format!("Suggestion: {text}"));
        let explanation = Some(self.finding.explanation.clone()).filter(|text| !text.is_empty());
        explanation.into_iter().chain(suggestion).collect::<Vec<_>>().join("\n")
    }

    /// Returns title, explanation and suggestion.
    pub fn message(&self) -> String {
        match self.describe() {
            rest if rest.is_empty() => self.finding.title.clone(),
            rest => format!("{}\n{rest}", self.finding.title),
        }
    }
}

impl FindingExport {
    /// Creates an export. `incomplete` says what was not reviewed; `main_path` is a file of the review.
    pub fn new(findings: Vec<ExportedFinding>, incomplete: Option<String>, main_path: &str) -> Self {
        let incomplete = incomplete.map(|said| sanitize_line(&mask(&said)).into_owned());
        let found = findings.first().map(|exported| exported.finding.repo_relative_path.clone());
        let main_path = if main_path.is_empty() { found.unwrap_or_default() } else { mask(main_path) };
        Self { findings, incomplete, main_path }
    }

    /// Returns the findings for programs that know no suppressed findings.
    pub fn standing(&self) -> impl Iterator<Item = &ExportedFinding> {
        self.findings.iter().filter(|exported| exported.stands())
    }

    /// Returns [`FindingExport::main_path`], or the folder of the repository.
    pub fn place(&self) -> &str {
        if self.main_path.is_empty() { "." } else { &self.main_path }
    }
}

fn mask_voice(voice: &Voice) -> Voice {
    Voice {
        reviewer: sanitize_line(&voice.reviewer).into_owned(),
        title: sanitize_line(&mask(&voice.title)).into_owned(),
        explanation: sanitize_lines(&mask(&voice.explanation), TAB_COLUMNS),
        ..voice.clone()
    }
}

fn mask(text: &str) -> String {
    Mask::On.mask_words(text).into_owned()
}

fn is_free_of_secrets(text: &str) -> bool {
    !text.contains(MASK_BEGIN) && mask(text) == text
}
