//! The commands that revdeck's entries call, and how an entry is recognised as one of them.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Assistant, AssistantError};

/// Start and end of a command that does nothing where revdeck is not installed.
const GUARD: (&str, &str) = ("if command -v revdeck >/dev/null 2>&1; then ", "; fi");

/// Call of the revdeck program in the settings of an assistant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ProgramCall {
    /// The revdeck in `PATH`. Its commands stay the same when revdeck moves.
    InPath,
    /// The program with this path, for users whose `PATH` has no revdeck or another one.
    At(PathBuf),
    /// The revdeck in `PATH`, where there is one: for files that other people get with the repository.
    IfPresent,
}

impl ProgramCall {
    /// Returns the program for an argument list.
    pub(crate) fn program(&self) -> String {
        match self {
            Self::InPath | Self::IfPresent => "revdeck".to_owned(),
            Self::At(path) => path.to_string_lossy().into_owned(),
        }
    }

    /// Returns a line for the shell that calls revdeck with `words`.
    ///
    /// # Errors
    ///
    /// Returns an error if the path of the program cannot be quoted.
    pub(crate) fn shell_line(&self, words: &str) -> Result<String, AssistantError> {
        Ok(match self {
            Self::InPath => format!("revdeck {words}"),
            Self::At(path) => format!("{} {words}", quote(path)?),
            Self::IfPresent => format!("{}revdeck {words}{}", GUARD.0, GUARD.1),
        })
    }
}

fn quote(path: &Path) -> Result<String, AssistantError> {
    let text = path.to_str().filter(|text| !text.contains(['\'', '\n', '\r']));
    let text = text.ok_or_else(|| AssistantError::Unquotable { path: path.to_owned() })?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+');
    Ok(if text.chars().all(is_plain) { text.to_owned() } else { format!("'{text}'") })
}

/// Returns the words of the hook command of an assistant.
pub(super) fn hook_words(assistant: Assistant) -> String {
    format!("hook run {}", assistant.name())
}

/// Words that start the MCP server.
pub(super) const MCP_WORDS: &str = "mcp";
/// Words that print the status line.
pub(super) const STATUS_WORDS: &str = "status --line";

/// Returns whether an entry with `command` (a line or a list) and perhaps `args` calls revdeck with exactly `words`.
pub(super) fn is_own_call(entry: &Value, words: &str) -> bool {
    let list = |value: &Value| -> Option<Vec<String>> {
        value.as_array()?.iter().map(|word| word.as_str().map(str::to_owned)).collect()
    };
    let arguments = entry.get("args").map_or(Some(Vec::new()), list);
    let (Some(command), Some(arguments)) = (entry.get("command"), arguments) else { return false };
    match command {
        Value::Array(_) => list(command)
            .is_some_and(|all| all.split_first().is_some_and(|(program, rest)| is_own_list(program, rest, words))),
        Value::String(program) if !arguments.is_empty() => is_own_list(program, &arguments, words),
        Value::String(line) => is_own_line(line, words),
        _ => false,
    }
}

fn is_own_list(program: &str, arguments: &[String], words: &str) -> bool {
    is_revdeck(program) && arguments.join(" ") == words
}

fn is_own_line(line: &str, words: &str) -> bool {
    let line = line.trim();
    let line = line.strip_prefix(GUARD.0).and_then(|line| line.strip_suffix(GUARD.1)).unwrap_or(line);
    let Some((program, rest)) = (match line.strip_prefix('\'') {
        Some(quoted) => quoted.split_once('\''),
        None => line.split_once(' '),
    }) else {
        return false;
    };
    is_revdeck(program) && rest.trim() == words
}

fn is_revdeck(program: &str) -> bool {
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
    name == "revdeck" || name == "revdeck.exe"
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn own_commands_are_recognised_and_those_of_others_are_not() {
        let words = "hook run codex";
        for program in [ProgramCall::InPath, ProgramCall::IfPresent, ProgramCall::At("/opt/my tools/revdeck".into())] {
            let line = program.shell_line(words).expect("a line");
            assert!(is_own_call(&json!({ "command": line }), words), "{line}");
            assert!(!is_own_call(&json!({ "command": line }), "hook run gemini"), "{line}");
            let list = json!({ "command": program.program(), "args": ["hook", "run", "codex"] });
            assert!(is_own_call(&list, words), "{list}");
        }
        for other in [
            json!({ "command": "revdeck hook run codex | tee log" }),
            json!({ "command": "my-revdeck hook run codex" }),
            json!({ "command": "echo revdeck hook run codex" }),
            json!({ "command": "revdeck", "args": ["hook", "run", "codex", "--more"] }),
            json!({ "command": "revdeck", "args": ["hook", 1] }),
            json!({ "command": 1 }),
            json!({ "url": "https://example.org" }),
            json!([]),
        ] {
            assert!(!is_own_call(&other, words), "{other}");
        }
        assert!(is_own_call(&json!({ "command": ["/a/revdeck", "mcp"] }), MCP_WORDS));
        assert!(ProgramCall::At("/it's/revdeck".into()).shell_line(words).is_err());
    }
}
