//! The eleven smells, a file each. A smell reads a parsed file and its facts and pushes what it finds.

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
use super::facts::{FileFacts, Function};
use super::limits::{Grading, Limits};
use super::source::{ParsedFile, field_id};
use crate::domain::{Confidence, Kind, PatternId, Priority, Severity, Suggestion};

/// What a smell found in one file, before it becomes a finding of a run. Lines count from 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Smell {
    pub kind: Kind,
    pub priority: Priority,
    pub severity: Severity,
    pub confidence: Confidence,
    pub line_start: u32,
    pub line_end: u32,
    /// One line, without the path: "function `parse` is 84 lines long".
    pub title: String,
    /// One sentence with the figures and the limit.
    pub explanation: String,
    /// Who it is about, so that it is found again in another version of the file: a function's name, a constant,
    /// the text of the statement. With kind and path it tells "was there before" from "is new".
    pub subject: String,
    /// First and last line of the code that identifies it (the head of a function, not its body).
    pub anchor: (u32, u32),
    /// The measured value where there is one: a change that raises it makes it worse.
    pub figure: Option<f64>,
    /// Shown instead of the anchor's lines, where these must not be quoted: a secret, redacted.
    pub quote: Option<String>,
    /// The learned pattern for which it was found, if it was.
    pub pattern: Option<PatternId>,
    pub suggestion: Option<Suggestion>,
}

/// Whether copies within the file are looked for; a change looks for them across all of its files instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InFileClones {
    Reported,
    Ignored,
}

/// Runs every smell that is switched on over one file. Sorted by line, without the secrets of the file, which are told as
/// well: what others find in it must not show them either.
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

/// First and last line of a function's head: from its name to where its body begins.
pub(super) fn head_lines(source: &ParsedFile<'_>, function: &Function) -> (u32, u32) {
    let body = source.child_by_field(function.node, field_id(source.language, "body")).map(|body| &source.nodes[body]);
    let last = body.map_or(function.line_start, |body| {
        let opens_with_bracket = matches!(source.text.get(body.start as usize), Some(b'{' | b'('));
        if opens_with_bracket { body.row + 1 } else { body.row }
    });
    (function.line_start, last.clamp(function.line_start, function.line_end))
}

/// The file's last line.
pub(super) fn last_line(source: &ParsedFile<'_>) -> u32 {
    source.nodes.first().map_or(1, |root| root.end_row + 1)
}

impl Grading {
    /// A limit with the room that test code has.
    pub fn limit(&self, limit: u32, is_test: bool) -> u32 {
        if is_test { (f64::from(limit) * self.test_factor) as u32 } else { limit }
    }

    /// Priority and severity of a figure by how many times its limit it is.
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
    use crate::reviewers::analyzer::language::Language;
    use crate::reviewers::analyzer::source::Parsers;

    /// What one check finds in a text, with the default limits. All of it must be of `kind`.
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
