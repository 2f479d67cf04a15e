//! Standard output and standard error: the only functions of revdeck that print outside of the cockpit.

use std::io::{ErrorKind, IsTerminal, Write};

use super::error::CliError;
use crate::domain::text;

/// Writes to standard output. Whoever has closed the pipe has seen enough: that is no error.
pub fn print(content: &str) -> Result<(), CliError> {
    let mut out = std::io::stdout().lock();
    match out.write_all(content.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(CliError::failed(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// A JSON object on one line.
pub fn print_json(value: &serde_json::Value) -> Result<(), CliError> {
    print(&format!("{value}\n"))
}

/// A line on standard error, made harmless. There is nobody to tell when even that fails.
pub fn note(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{}", text::lines(line, 4));
}

/// `error: …` and `  hint: …` on standard error.
pub fn complain(error: &CliError) {
    let color = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let (red, bold, plain) = if color { ("\x1b[1;31m", "\x1b[1m", "\x1b[0m") } else { ("", "", "") };
    let mut lines = format!("{red}error:{plain} {}\n", text::lines(error.message.trim_end(), 4));
    if let Some(hint) = &error.hint {
        lines.push_str(&format!("  {bold}hint:{plain} {}\n", text::lines(hint, 4)));
    }
    let _ = std::io::stderr().lock().write_all(lines.as_bytes());
}
