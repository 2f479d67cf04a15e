//! Parses the diagnostics of reviewdog: rdjsonl, one diagnostic on each line, and rdjson, one object with all of them.

use serde::Deserialize;

use super::rule_kinds::kind_for_rule;
use super::{
    MAX_PROBLEMS, MAX_TEXT_CHARS, MAX_TOOLS, ReportError, ReportedPath, ToolFix, ToolProblem, ToolReport, cut,
    severity_from_level, tool_name,
};
use crate::domain::{Confidence, LineRange};

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct DiagnosticResult {
    diagnostics: Option<Vec<Diagnostic>>,
    source: Option<DiagnosticSource>,
    severity: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Diagnostic {
    message: String,
    location: DiagnosticLocation,
    severity: serde_json::Value,
    source: Option<DiagnosticSource>,
    code: Option<DiagnosticCode>,
    suggestions: Vec<DiagnosticSuggestion>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct DiagnosticLocation {
    path: String,
    range: Option<DiagnosticRange>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct DiagnosticRange {
    start: DiagnosticPosition,
    end: Option<DiagnosticPosition>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct DiagnosticPosition {
    line: u32,
    column: Option<u32>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct DiagnosticSource {
    name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct DiagnosticCode {
    value: String,
    url: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct DiagnosticSuggestion {
    range: DiagnosticRange,
    text: String,
}

/// Parses diagnostics. Each tool has a report of its own.
///
/// # Errors
///
/// Returns an error with the number of the first line that is no diagnostic.
pub(super) fn parse(bytes: &[u8]) -> Result<Vec<ToolReport>, ReportError> {
    let malformed = |reason: String| ReportError::Malformed { format: "rdjsonl", reason };
    if let Ok(DiagnosticResult { diagnostics: Some(all), source, severity }) = serde_json::from_slice(bytes) {
        let name = source.map(|source| source.name).unwrap_or_default();
        return collect(all.into_iter().map(|diagnostic| read_diagnostic(diagnostic, &name, &severity)));
    }
    let lines = bytes.split(|byte| *byte == b'\n').enumerate().filter(|(_, line)| !line.trim_ascii().is_empty());
    let mut problems = Vec::new();
    for (number, line) in lines {
        let diagnostic: Diagnostic =
            serde_json::from_slice(line).map_err(|error| malformed(format!("line {}: {error}", number + 1)))?;
        if diagnostic.location.path.is_empty() {
            return Err(malformed(format!("line {}: it names no file (location.path)", number + 1)));
        }
        if problems.len() >= MAX_PROBLEMS {
            return Err(ReportError::TooManyProblems);
        }
        problems.push(read_diagnostic(diagnostic, "", ""));
    }
    collect(problems.into_iter())
}

fn collect(problems: impl Iterator<Item = (String, ToolProblem)>) -> Result<Vec<ToolReport>, ReportError> {
    let mut reports: Vec<ToolReport> = Vec::new();
    for (number, (tool, problem)) in problems.enumerate() {
        if number >= MAX_PROBLEMS {
            return Err(ReportError::TooManyProblems);
        }
        if reports.len() > MAX_TOOLS {
            return Err(ReportError::TooManyTools);
        }
        let place = reports.iter().position(|report| report.tool == tool).unwrap_or_else(|| {
            reports.push(ToolReport { tool, ..ToolReport::default() });
            reports.len() - 1
        });
        if let Some(report) = reports.get_mut(place) {
            report.covered.push(problem.path.clone());
            report.problems.push(problem);
        }
    }
    // A tool that finds nothing prints nothing.
    if reports.is_empty() {
        reports.push(ToolReport::default());
    }
    Ok(reports)
}

/// Returns the tool and its problem.
fn read_diagnostic(diagnostic: Diagnostic, source: &str, level: &str) -> (String, ToolProblem) {
    let tool = tool_name(diagnostic.source.as_ref().map_or(source, |source| &source.name));
    let DiagnosticCode { value: rule, url } = diagnostic.code.unwrap_or_default();
    let lines = diagnostic.location.range.as_ref().and_then(read_lines);
    let level = match &diagnostic.severity {
        serde_json::Value::String(text) => text.clone(),
        // The numbers of the enum in reviewdog's protocol.
        serde_json::Value::Number(number) => {
            ["", "ERROR", "WARNING", "INFO"][number.as_u64().unwrap_or(0).min(3) as usize].to_owned()
        }
        _ => level.to_owned(),
    };
    let fix = diagnostic.suggestions.into_iter().next().map(|suggestion| {
        let DiagnosticRange { start, end } = suggestion.range;
        let end = end.map_or((start.line, start.column), |end| (end.line.max(start.line), end.column));
        let start = (start.line, start.column.unwrap_or(1));
        ToolFix { description: String::new(), start, end, text: suggestion.text }
    });
    let kind = kind_for_rule(&tool, &rule, []);
    let problem = ToolProblem {
        rule: cut(&rule, 100),
        path: ReportedPath::from_name(&diagnostic.location.path),
        lines,
        message: cut(diagnostic.message.trim(), MAX_TEXT_CHARS),
        help: cut(&url, MAX_TEXT_CHARS),
        kind,
        severity: severity_from_level(if level.is_empty() { "WARNING" } else { &level }, kind),
        confidence: Confidence::High,
        fix,
    };
    (tool, problem)
}

fn read_lines(range: &DiagnosticRange) -> Option<LineRange> {
    let start = range.start.line;
    let end = range.end.as_ref().map_or(start, |end| {
        // An end before the first column of a line does not contain the line.
        if end.column == Some(1) && end.line > start { end.line - 1 } else { end.line }
    });
    (start > 0).then(|| LineRange::new(start, end.max(start)))
}
