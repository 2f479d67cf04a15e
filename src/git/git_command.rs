//! Runs the git program for tasks that libgit2 does not support: filter programs and missing objects of a partial
//! clone.
//!
//! Invariant: git never waits for user input.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use crate::domain::text::sanitize_line;

/// Runs a command with `input` on its standard input and returns its output.
///
/// # Errors
/// Returns an error when the command cannot be started or its output cannot be read.
pub fn run_with_input(mut command: Command, input: Vec<u8>) -> std::io::Result<Output> {
    command.env("GIT_TERMINAL_PROMPT", "0").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    // The input is written on a separate thread, because both pipes may be full at the same time.
    let writer = child.stdin.take().map(|mut stdin| std::thread::spawn(move || stdin.write_all(&input)));
    let output = child.wait_with_output()?;
    if let Some(writer) = writer {
        // The write fails when a command ends before it read all input; this is not an error.
        let _ = writer.join();
    }
    Ok(output)
}

/// Returns the reason of a failure as a single line: the first `fatal:` message, else the first `error:` message, else
/// the last line.
pub fn error_message(errors: &[u8]) -> String {
    let text = String::from_utf8_lossy(errors);
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let begins = |word: &'static str| lines().find_map(move |line| line.strip_prefix(word));
    let words = begins("fatal: ").or_else(|| begins("error: ")).or_else(|| lines().next_back());
    sanitize_line(words.unwrap_or("git failed and does not say why")).into_owned()
}
