//! Running the git program for what libgit2 does not do: filter programs, and objects that a partial clone lacks.
//!
//! Invariant: it never waits for a person.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use crate::domain::text::sanitize_line;

/// Runs a command with `input` on its standard input; what it wrote.
pub fn run_with_input(mut command: Command, input: Vec<u8>) -> std::io::Result<Output> {
    command.env("GIT_TERMINAL_PROMPT", "0").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    // Apart from reading: both pipes may be full at once.
    let writer = child.stdin.take().map(|mut stdin| std::thread::spawn(move || stdin.write_all(&input)));
    let output = child.wait_with_output()?;
    if let Some(writer) = writer {
        // A command that ends early does not read everything.
        let _ = writer.join();
    }
    Ok(output)
}

/// Why a command failed, in a line: what it called fatal, else the last line that it wrote.
pub fn error_message(errors: &[u8]) -> String {
    let text = String::from_utf8_lossy(errors);
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let begins = |word: &'static str| lines().find_map(move |line| line.strip_prefix(word));
    let words = begins("fatal: ").or_else(|| begins("error: ")).or_else(|| lines().next_back());
    sanitize_line(words.unwrap_or("git failed and does not say why")).into_owned()
}
