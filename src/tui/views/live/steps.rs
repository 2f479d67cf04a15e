//! Describes the steps of a turn in short words: tool calls, covered hunks, reports.

use serde_json::Value;

use super::trace::{ReviewTrace, parse_shown_lines};
use crate::domain::{ToolOutcome, text};
use crate::tui::pages::priority_label;
use crate::tui::theme::Role;
use crate::tui::turns::{FindingReportKind, Turn, TurnFinding, TurnToolCall};

/// Step of a turn in a few words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnStep {
    pub text: String,
    pub role: Role,
}

/// Lists the steps of a turn: covered hunks, tool calls, reports.
pub fn list_steps(trace: &ReviewTrace, turn: &Turn) -> Vec<TurnStep> {
    let mut steps = Vec::new();
    let (files, hunks) = trace.count_sent(turn.number);
    if files > 0 {
        let covered = format!("covered {} in {}", text::format_count(hunks, "hunk"), text::format_count(files, "file"));
        steps.push(TurnStep { text: covered, role: Role::Normal });
    }
    steps.extend(turn.tools.iter().map(|call| TurnStep {
        text: describe_call(call),
        role: if call.outcome == ToolOutcome::Answered { Role::Normal } else { Role::Warn },
    }));
    steps.extend(turn.findings.iter().map(describe_report));
    if !turn.rejected.is_empty() {
        let text = format!("set aside {}", text::format_count(turn.rejected.len(), "report"));
        steps.push(TurnStep { text, role: Role::Muted });
    }
    steps
}

/// Describes a call: `read src/client.rs:1-120`, `searched "retry"`.
fn describe_call(call: &TurnToolCall) -> String {
    let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
    let argument = |name: &str| arguments.get(name).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
    let path = argument("path");
    let what = match call.name.as_str() {
        "read_file" => match (parse_shown_lines(&call.result), path) {
            (Some((path, lines)), _) => Some(format!("read {path}:{}-{}", lines.start, lines.end)),
            (None, Some(path)) => Some(format!("read {path}")),
            (None, None) => None,
        },
        "codebase_search" => argument("query").map(|query| format!("searched \"{query}\"")),
        "find_symbol" => argument("name").map(|name| format!("looked up {name}")),
        "list_files" => Some(format!("listed {}", path.unwrap_or("the root"))),
        "show_diff" => Some(path.map_or_else(|| "read the diff".to_owned(), |path| format!("read the diff of {path}"))),
        "static_findings" => Some("asked the built-in reviewer".to_owned()),
        _ => None,
    };
    let what = what.unwrap_or_else(|| call.name.clone());
    let outcome = match call.outcome {
        ToolOutcome::Answered => "",
        ToolOutcome::Refused => " (refused)",
        ToolOutcome::Failed => " (failed)",
    };
    text::sanitize_line(&format!("{what}{outcome}")).into_owned()
}

/// Describes a report: `found P1 src/client.rs:88`.
fn describe_report(found: &TurnFinding) -> TurnStep {
    let word = match found.report {
        FindingReportKind::New => "found",
        FindingReportKind::Restated => "restated",
        FindingReportKind::Repeated => "again",
    };
    let (label, role) = match found.priority {
        Some(priority) => (format!("{} ", priority_label(priority)), Role::from_priority(priority)),
        None => (String::new(), Role::Muted),
    };
    TurnStep { text: format!("{word} {label}{}", found.place), role }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_described_in_a_few_words() {
        use ToolOutcome::{Answered, Failed, Refused};
        for (name, arguments, outcome, result, expected) in [
            (
                "read_file",
                r#"{"path":"./src/client.rs"}"#,
                Answered,
                "src/client.rs, lines 1 to 120 of 412",
                "read src/client.rs:1-120",
            ),
            ("read_file", r#"{"path":"../x"}"#, Refused, "outside of the repository", "read ../x (refused)"),
            ("read_file", "{\"path\":\"cut of", Failed, "", "read_file (failed)"),
            ("codebase_search", r#"{"query":"retry\u001b[2J"}"#, Answered, "", "searched \"retry\u{fffd}[2J\""),
            ("codebase_search", r#"{"query":7}"#, Failed, "", "codebase_search (failed)"),
            ("find_symbol", r#"{"name":"Session"}"#, Answered, "", "looked up Session"),
            ("list_files", "", Answered, "", "listed the root"),
            ("show_diff", r#"{"path":"a.rs"}"#, Answered, "", "read the diff of a.rs"),
            ("static_findings", "{}", Answered, "3 findings", "asked the built-in reviewer"),
            ("a tool\nof tomorrow", "{}", Answered, "", "a tool of tomorrow"),
        ] {
            let (name, arguments, result) = (name.to_owned(), arguments.to_owned(), result.to_owned());
            let call = TurnToolCall { name, arguments, outcome, tokens: 0, result };
            assert_eq!(describe_call(&call), expected);
        }
    }
}
