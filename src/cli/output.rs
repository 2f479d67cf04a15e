//! Printing to standard output and standard error. Outside of the cockpit no other function of revdeck prints.

use std::io::{ErrorKind, IsTerminal, Write};

use super::error::CliError;
use crate::domain::text;

/// Writes text to standard output and flushes it. A closed pipe is not an error.
///
/// # Errors
///
/// Returns an error if standard output cannot be written, for instance because the disk is full.
pub fn print(content: &str) -> Result<(), CliError> {
    write_stdout(content.as_bytes())
}

fn write_stdout(content: &[u8]) -> Result<(), CliError> {
    let mut out = std::io::stdout().lock();
    match out.write_all(content).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(CliError::failed(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Prints a patch: unchanged bytes into a pipe, escaped control characters on a terminal.
///
/// # Errors
///
/// Returns an error if standard output cannot be written.
pub fn print_patch(patch: &[u8]) -> Result<(), CliError> {
    if std::io::stdout().is_terminal() {
        return print(&text::sanitize_lines(&String::from_utf8_lossy(patch), 4));
    }
    write_stdout(patch)
}

/// Prints a JSON value on one line, encoded by [`to_json_text`].
///
/// # Errors
///
/// Returns an error if standard output cannot be written.
pub fn print_json(value: &serde_json::Value) -> Result<(), CliError> {
    print(&format!("{}\n", to_json_text(value)))
}

/// Encodes JSON on one line and writes every character that a terminal could interpret or display wrongly as
/// `\uXXXX`. Parsers read the same value.
pub fn to_json_text(value: &serde_json::Value) -> String {
    let text = value.to_string();
    if !text.chars().any(text::is_unsafe) {
        return text;
    }
    // JSON has such characters only inside strings, so the escape is valid at every position.
    let mut safe = String::with_capacity(text.len() + 64);
    for c in text.chars() {
        if text::is_unsafe(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                safe.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            safe.push(c);
        }
    }
    safe
}

/// Formats a path: unchanged for a pipe, on one line without control characters for a terminal.
pub fn format_path(path: &std::path::Path) -> String {
    let shown = path.to_string_lossy();
    if std::io::stdout().is_terminal() { text::sanitize_line(&shown).into_owned() } else { shown.into_owned() }
}

/// Prints a line to standard error without control characters. A write error is ignored.
pub fn print_note(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{}", text::sanitize_lines(line, 4));
}

/// Returns whether standard error is a terminal whose user did not refuse colours with `NO_COLOR`.
pub fn has_color_on_stderr() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Prints `error: …` and, if there is a hint, `  hint: …` to standard error.
pub fn print_error(error: &CliError) {
    if let Some(report) = &error.report {
        let _ = writeln!(std::io::stderr().lock(), "{report:?}");
        return;
    }
    let (red, bold, plain) = if has_color_on_stderr() { ("\x1b[1;31m", "\x1b[1m", "\x1b[0m") } else { ("", "", "") };
    let mut lines = format!("{red}error:{plain} {}\n", text::sanitize_lines(error.message.trim_end(), 4));
    if let Some(hint) = &error.hint {
        lines.push_str(&format!("  {bold}hint:{plain} {}\n", text::sanitize_lines(hint, 4)));
    }
    let _ = std::io::stderr().lock().write_all(lines.as_bytes());
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_is_harmless_and_says_the_same() {
        for hostile in [
            "plain ünïcode 漢字 🦀",
            "\u{9b}2J\u{85}\u{7f}",
            "a\u{202e}b\u{2066}\u{feff}",
            "\u{e0041}",
            "\x1b[2J\n\t\"\\",
        ] {
            let value = json!({ hostile: [hostile, 1, null] });
            let text = to_json_text(&value);
            assert!(!text.chars().any(text::is_unsafe), "{text:?}");
            assert_eq!(serde_json::from_str::<serde_json::Value>(&text).ok(), Some(value), "{text}");
        }
        assert_eq!(to_json_text(&json!("\u{9b}\u{e0041}")), "\"\\u009b\\udb40\\udc41\"");
    }
}
