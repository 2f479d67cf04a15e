//! The eleven smells, one file each. A smell reads a parsed file and its facts, and pushes what it finds to a list.

pub mod complex_functions;
pub mod dead_code;
pub mod duplicate_code;
pub mod global_variables;
pub mod god_class;
pub mod hardcoded_configuration;
pub mod long_method;
pub mod magic_numbers;
pub mod missing_error_handling;
pub mod mutable_shared_state;
mod syntax;
pub mod tight_coupling;

use self::hardcoded_configuration::{FileRedactor, HardcodedValues};
use super::limits::{Grading, Limits};
use crate::domain::{Confidence, Kind, PatternId, Priority, Severity, Suggestion};
use crate::syntax::facts::{FileFacts, Function};
use crate::syntax::source::{ParsedFile, field_id};

/// Problem that a smell check found in one file, before it becomes a finding of a run. Lines are 1-based and inclusive.
#[derive(Debug, Clone, PartialEq)]
pub struct Smell {
    pub kind: Kind,
    pub priority: Priority,
    pub severity: Severity,
    pub confidence: Confidence,
    pub line_start: u32,
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
    pub suggestion: Option<Suggestion>,
}

/// Controls the search for copies within the file. A review of a change ignores them here, because it searches copies
/// across all of its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InFileClones {
    Reported,
    Ignored,
}

/// Runs all enabled smells on one file. Returns the smells sorted by line and without the file's secrets, and the
/// redactor, because texts from other sources must not show the secrets either.
pub fn check_all(
    source: &ParsedFile<'_>,
    facts: &FileFacts,
    limits: &Limits,
    copies: InFileClones,
) -> (Vec<Smell>, FileRedactor) {
    type SmellCheck = fn(&ParsedFile<'_>, &FileFacts, &Limits, &mut Vec<Smell>);
    let checks: [(bool, SmellCheck); 9] = [
        (limits.long_method.enabled, long_method::check),
        (limits.duplicate_code.enabled && copies == InFileClones::Reported, duplicate_code::check),
        (limits.god_class.enabled, god_class::check),
        (limits.dead_code.enabled, dead_code::check),
        (limits.global_variables.enabled, global_variables::check),
        (limits.mutable_shared_state.enabled, mutable_shared_state::check),
        (limits.complex_functions.enabled, complex_functions::check),
        (limits.missing_error_handling.enabled, missing_error_handling::check),
        (limits.tight_coupling.enabled, tight_coupling::check),
    ];
    let held = HardcodedValues::scan(source, facts, limits);
    let mut smells = Vec::new();
    for (_, check) in checks.into_iter().filter(|(enabled, _)| *enabled) {
        check(source, facts, limits, &mut smells);
    }
    if limits.magic_numbers.enabled {
        magic_numbers::check(source, facts, limits, held.redactor(), &mut smells);
    }
    if limits.hardcoded_configuration.enabled {
        hardcoded_configuration::check(source, facts, &held, &mut smells);
    }
    smells.sort_by_key(|smell| (smell.line_start, smell.kind, smell.line_end));
    for smell in &mut smells {
        smell.title = syntax::capitalize(&smell.title);
        smell.explanation = syntax::capitalize(&smell.explanation);
    }
    let hidden = held.into_redactor();
    hidden.redact_smells(&mut smells, source.text);
    (smells, hidden)
}

/// Returns the first and last line (1-based) of a function's head: from its name to the start of its body.
pub(super) fn head_lines(source: &ParsedFile<'_>, function: &Function) -> (u32, u32) {
    let body = source.child_by_field(function.node, field_id(source.language, "body")).map(|body| &source.nodes[body]);
    let last = body.map_or(function.line_start, |body| {
        let opens_with_bracket = matches!(source.text.get(body.start as usize), Some(b'{' | b'('));
        if opens_with_bracket { body.row + 1 } else { body.row }
    });
    (function.line_start, last.clamp(function.line_start, function.line_end))
}

/// Returns the number of the file's last line (1-based).
pub(super) fn last_line(source: &ParsedFile<'_>) -> u32 {
    source.nodes.first().map_or(1, |root| root.end_row + 1)
}

impl Grading {
    /// Returns a limit, multiplied by `test_factor` for test code.
    pub fn limit(&self, limit: u32, is_test: bool) -> u32 {
        if is_test { (f64::from(limit) * self.test_factor) as u32 } else { limit }
    }

    /// Returns priority and severity for the ratio of a figure to its limit.
    pub fn grade(&self, ratio: f64) -> (Priority, Severity) {
        if ratio >= self.high_ratio {
            (Priority::P1, Severity::High)
        } else if ratio >= self.medium_ratio {
            (Priority::P2, Severity::Medium)
        } else {
            (Priority::P3, Severity::Low)
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::syntax::language::Language;
    use crate::syntax::source::Parsers;

    /// Runs one check on a text with the default limits, and asserts that all smells are of `kind`.
    pub fn find_smells(
        kind: Kind,
        path: &str,
        code: &str,
        check: fn(&ParsedFile<'_>, &FileFacts, &Limits, &mut Vec<Smell>),
    ) -> Vec<Smell> {
        let language = Language::detect(path, code.as_bytes()).expect("a language of ours");
        let mut parsers = Parsers::default();
        let source = parsers.parse(path, language, code.as_bytes()).expect("parses");
        let mut smells = Vec::new();
        check(&source, &FileFacts::from_parsed(&source), &Limits::default(), &mut smells);
        assert!(smells.iter().all(|smell| smell.kind == kind), "{smells:?}");
        smells
    }
}
