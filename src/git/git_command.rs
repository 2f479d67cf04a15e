//! Runs the git program for tasks that libgit2 does not support: filter programs and missing objects of a partial
//! clone.
//!
//! Invariants:
//! - git never waits for user input.
//! - git, and every program that git starts, ends when git has written nothing for the time limit. The error names the
//!   program that git waited for.

use std::io::{self, Read, Write as _};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use thiserror::Error;

use super::process_tree;
use crate::domain::text::sanitize_line;

/// Time that git may be silent, when no setting says otherwise. A filter program takes seconds for a file of the size
/// that is reviewed.
pub const DEFAULT_GIT_PATIENCE: Duration = Duration::from_secs(60);
/// Interval of the checks whether git has ended although a program that it started keeps the pipes open.
const EXIT_CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// Time for the last output after git has ended.
const LAST_OUTPUT_TIMEOUT: Duration = Duration::from_millis(300);

/// Processes of git that run now, for [`end_all`].
static RUNNING: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// The reason why git gave no result.
#[derive(Debug, Error)]
pub enum GitCommandError {
    /// The program could not be started.
    #[error("git cannot be run: {0}")]
    NotStarted(#[from] io::Error),
    /// git wrote nothing for the time limit and was ended, with all programs that it had started.
    #[error("git {task} was ended, as for {} s nothing came from {waiting_for} (setting git_seconds)", patience.as_secs())]
    Silent {
        /// Subcommand, such as "hash-object".
        task: String,
        /// The program that git waited for, or git itself.
        waiting_for: String,
        /// Time limit.
        patience: Duration,
        /// Standard output until then.
        output: Vec<u8>,
    },
}

impl From<GitCommandError> for io::Error {
    fn from(error: GitCommandError) -> Self {
        match error {
            GitCommandError::NotStarted(error) => error,
            silent @ GitCommandError::Silent { .. } => Self::new(io::ErrorKind::TimedOut, silent.to_string()),
        }
    }
}

/// A piece of git's output.
enum OutputPiece {
    Output(Vec<u8>),
    Errors(Vec<u8>),
    /// One of the two pipes is closed.
    Closed,
}

/// Removes a process from [`RUNNING`] on drop.
struct RunningGit(u32);

impl RunningGit {
    fn register(child: &Child) -> Self {
        RUNNING.lock().unwrap_or_else(PoisonError::into_inner).push(child.id());
        Self(child.id())
    }
}

impl Drop for RunningGit {
    fn drop(&mut self) {
        RUNNING.lock().unwrap_or_else(PoisonError::into_inner).retain(|number| *number != self.0);
    }
}

/// Ends every git process that this process has started, with the programs that git started. For a process that is
/// about to end while one of its threads waits for git.
pub fn end_all() {
    let running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner).clone();
    running.into_iter().for_each(process_tree::kill);
}

/// Runs the git subcommand `task` with `input` on its standard input and returns its output. Each byte of output gives
/// git another `patience`.
///
/// # Errors
/// Returns an error when git cannot be started, or is silent for `patience`.
pub fn run_with_input(
    mut command: Command,
    task: &str,
    input: Vec<u8>,
    patience: Duration,
) -> Result<Output, GitCommandError> {
    command.env("GIT_TERMINAL_PROMPT", "0").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let running = RunningGit::register(&child);
    // The input is written on a separate thread, because both pipes may be full at the same time. The write fails when
    // a command ends before it read all input; this is not an error.
    if let Some(mut stdin) = child.stdin.take() {
        std::thread::spawn(move || stdin.write_all(&input));
    }
    let (sender, pieces) = channel();
    if let Some(stdout) = child.stdout.take() {
        forward(stdout, OutputPiece::Output, sender.clone());
    }
    if let Some(stderr) = child.stderr.take() {
        forward(stderr, OutputPiece::Errors, sender);
    }
    let mut output = Output { status: ExitStatus::default(), stdout: Vec::new(), stderr: Vec::new() };
    match collect_output(&mut child, &pieces, patience, &mut output) {
        Ok(Some(status)) => {
            output.status = status;
            return Ok(output);
        }
        Ok(None) => {}
        Err(error) => {
            process_tree::kill(child.id());
            let _ = child.wait();
            return Err(error.into());
        }
    }
    let waiting_for = process_tree::find_blocking_program(child.id());
    process_tree::kill(child.id());
    let _ = child.wait();
    drop(running);
    let waiting_for = waiting_for.map_or_else(|| "it".to_owned(), |name| format!("the program {name:?}"));
    Err(GitCommandError::Silent { task: task.to_owned(), waiting_for, patience, output: output.stdout })
}

/// Forwards a pipe in pieces from a separate thread.
fn forward(mut pipe: impl Read + Send + 'static, piece: fn(Vec<u8>) -> OutputPiece, to: Sender<OutputPiece>) {
    std::thread::spawn(move || {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            match pipe.read(&mut buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(read) if read > 0 => {
                    if to.send(piece(buffer[..read].to_vec())).is_err() {
                        return;
                    }
                }
                _ => {
                    let _ = to.send(OutputPiece::Closed);
                    return;
                }
            }
        }
    });
}

/// Collects the output until git has ended; returns `None` when git is silent for `patience`.
fn collect_output(
    child: &mut Child,
    pieces: &Receiver<OutputPiece>,
    patience: Duration,
    output: &mut Output,
) -> io::Result<Option<ExitStatus>> {
    let mut deadline = Instant::now() + patience;
    let mut open_pipes = 2;
    let mut status = None;
    while open_pipes > 0 && Instant::now() < deadline {
        let piece = pieces.recv_timeout(EXIT_CHECK_INTERVAL);
        if status.is_none() {
            status = child.try_wait()?;
            // A program in the background, such as a credential cache, may keep the pipes open, or write, for ever.
            deadline = match (&status, &piece) {
                (Some(_), _) => Instant::now() + LAST_OUTPUT_TIMEOUT,
                (None, Ok(_)) => Instant::now() + patience,
                (None, Err(_)) => deadline,
            };
        }
        match piece {
            Ok(OutputPiece::Output(bytes)) => output.stdout.extend(bytes),
            Ok(OutputPiece::Errors(bytes)) => output.stderr.extend(bytes),
            Ok(OutputPiece::Closed) => open_pipes -= 1,
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
    while status.is_none() && Instant::now() < deadline {
        status = child.try_wait()?;
        if status.is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    Ok(status)
}

/// Maximum number of characters of the words of a remote side in a message.
const MAX_REMOTE_WORDS: usize = 300;
/// Maximum number of lines of the words of a remote side in a message. Hosts often give the reason in the second or third one.
const MAX_REMOTE_LINES: usize = 3;
/// Messages of git that a connection has ended. The reason stands in the lines before.
const HANG_UPS: [&str; 3] = [
    "Could not read from remote repository.",
    "the remote end hung up unexpectedly",
    "The remote end hung up upon initial contact",
];
/// Beginning of git's message that the remote could not store objects; the reason follows.
const UNPACK_FAILURE: &str = "error: remote unpack failed: ";
/// Beginnings of lines that say nothing about a failure.
const REMARKS: [&str; 6] = [
    "hint:",
    "Total ",
    "Delta compression ",
    "Enumerating objects",
    "error: hook declined to update ",
    "send-pack: unexpected disconnect",
];

/// Returns the reason of a failure as a single line: the first `fatal:` message, else the first `error:` message, else
/// the last line.
pub fn error_message(errors: &[u8]) -> String {
    let text = String::from_utf8_lossy(errors);
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let begins = |word: &'static str| lines().find_map(move |line| line.strip_prefix(word));
    let words = begins("fatal: ").or_else(|| begins("error: ")).or_else(|| lines().next_back());
    sanitize_line(words.unwrap_or("git failed and does not say why")).into_owned()
}

/// Returns true if a message of git says only that the connection has ended.
pub fn is_hang_up(message: &str) -> bool {
    HANG_UPS.contains(&message)
}

/// Returns what the remote side, ssh or the HTTP client says about a failure, on one line: at most [`MAX_REMOTE_LINES`] lines
/// that git has marked with `remote:`, or else the last ones before its message that the connection has ended. `None` if
/// there is nothing but progress.
pub fn remote_words(errors: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(errors);
    let lines: Vec<&str> = text.split(['\n', '\r']).map(str::trim).collect();
    let marked = lines.iter().filter_map(|line| line.strip_prefix("remote:")).map(str::trim);
    let mut words: Vec<&str> = marked.filter(|line| is_statement(line)).take(MAX_REMOTE_LINES).collect();
    if words.is_empty() {
        words = words_before_hang_up(&lines);
    }
    if words.is_empty() {
        words.extend(lines.iter().find_map(|line| line.strip_prefix(UNPACK_FAILURE)));
    }
    let said: String = words.join(" ").chars().take(MAX_REMOTE_WORDS).collect();
    (!said.is_empty()).then(|| sanitize_line(&said).into_owned())
}

/// Returns the last lines before git's first message, if that says only that the connection has ended. They come from ssh, from
/// a server behind it, or from the HTTP client.
fn words_before_hang_up<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    let first = lines.iter().enumerate().find_map(|(at, line)| Some((at, line.strip_prefix("fatal: ")?)));
    let Some((end, _)) = first.filter(|(_, message)| is_hang_up(message)) else { return Vec::new() };
    // Warnings of ssh: of a key that it has noted, of the kind of the connection, and of a key that has changed.
    let is_warning = |line: &str| {
        line.starts_with("** ") || line.starts_with("@ ") || line.to_ascii_lowercase().starts_with("warning:")
    };
    let said = lines[..end].iter().rev().copied().filter(|line| is_statement(line) && !is_warning(line));
    let mut words: Vec<&str> =
        said.take(MAX_REMOTE_LINES).map(|line| line.strip_prefix("error: ").unwrap_or(line)).collect();
    words.reverse();
    words
}

/// Returns true for a line that may say something about a failure: no progress, and no rule of a box.
fn is_statement(line: &str) -> bool {
    let is_progress = line.ends_with(", done.") || line.contains("% (");
    line.contains(char::is_alphanumeric) && !is_progress && !REMARKS.iter().any(|remark| line.starts_with(remark))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_the_remote_side_are_found() {
        for (errors, expected) in [
            ("", None),
            ("fatal: unable to access 'x': The requested URL returned error: 403\n", None),
            ("remote: Total 6 (delta 0), reused 0 (delta 0), pack-reused 0 (from 0)\n", None),
            ("remote: Resolving deltas:  50% (1/2)\rremote: Resolving deltas: 100% (2/2), done.\n", None),
            ("remote: \nremote: only branches here        \nTo x\n", Some("only branches here")),
            ("remote: Counting objects: 1, done.\nremote: GH013: rules\n", Some("GH013: rules")),
            (
                "ERROR: Permission to a/b.git denied to c.\nfatal: Could not read from remote repository.\n",
                Some("ERROR: Permission to a/b.git denied to c."),
            ),
            ("remote: \u{1b}[2Jx\n", Some("\u{fffd}[2Jx")),
            // gitlab-shell writes a box.
            (
                "remote: \nremote: ========\nremote: \nremote: You are not allowed to push code to this project.\nremote: \n\
                 remote: ========\nremote: \nfatal: Could not read from remote repository.\n",
                Some("You are not allowed to push code to this project."),
            ),
            // GitHub gives the reason in further lines.
            (
                "remote: error: GH013: Repository rule violations found for refs/x.\nremote: Review all rules at https://h/r\n\
                 remote: \nremote: - Commits must have verified signatures.\nremote: - And more.\nTo x\n",
                Some(
                    "error: GH013: Repository rule violations found for refs/x. Review all rules at https://h/r \
                     - Commits must have verified signatures.",
                ),
            ),
            (
                "remote: FATAL: W refs/x r ada DENIED by fallthru        \nremote: error: hook declined to update refs/x\n",
                Some("FATAL: W refs/x r ada DENIED by fallthru"),
            ),
            ("remote: error: hook declined to update refs/x        \nTo x\n", None),
            // Over ssh, gitolite, Gitea and ssh itself mark nothing.
            (
                "FATAL: R any r bob DENIED by fallthru\n(or you mis-spelled the reponame)\n\
                 fatal: Could not read from remote repository.\n\nPlease make sure you have the correct access rights\n",
                Some("FATAL: R any r bob DENIED by fallthru (or you mis-spelled the reponame)"),
            ),
            (
                "Warning: Permanently added 'h' (ED25519) to the list of known hosts.\n\
                 ** WARNING: connection is not using a post-quantum key exchange algorithm.\n\
                 git@h: Permission denied (publickey).\nfatal: Could not read from remote repository.\n",
                Some("git@h: Permission denied (publickey)."),
            ),
            (
                "@@@@@@@@\n@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\n@@@@@@@@\nIT IS POSSIBLE\nOffending key in k:1\n\
                 Host key for h has changed.\nHost key verification failed.\nfatal: Could not read from remote repository.\n",
                Some("Offending key in k:1 Host key for h has changed. Host key verification failed."),
            ),
            ("fatal: Could not read from remote repository.\n", None),
            // A message with a reason of its own needs no lines before it.
            (
                "x\nfatal: detected dubious ownership in repository at '/r'\nfatal: Could not read from remote repository.\n",
                None,
            ),
            (
                "Enumerating objects: 5, done.\nWriting objects: 100% (3/3), 300 bytes | 300.00 KiB/s, done.\n\
                 Total 3 (delta 0), reused 0 (delta 0), pack-reused 0 (from 0)\n\
                 error: RPC failed; HTTP 413 curl 22 The requested URL returned error: 413\n\
                 send-pack: unexpected disconnect while reading sideband packet\n\
                 fatal: the remote end hung up unexpectedly\nEverything up-to-date\n",
                Some("RPC failed; HTTP 413 curl 22 The requested URL returned error: 413"),
            ),
            (
                "error: remote unpack failed: unable to create temporary object directory\nerror: failed to push some refs to 'x'\n",
                Some("unable to create temporary object directory"),
            ),
        ] {
            assert_eq!(remote_words(errors.as_bytes()).as_deref(), expected, "{errors:?}");
        }
    }

    fn shell(line: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", line]);
        command
    }

    #[test]
    fn silence_ends_at_the_limit_and_names_the_program() {
        let command = shell("echo one; sleep 1000; echo two");
        let error = run_with_input(command, "hash-object", Vec::new(), Duration::from_secs(1)).expect_err("silence");
        let GitCommandError::Silent { output, .. } = &error else { panic!("{error}") };
        assert_eq!(output, b"one\n");
        assert_eq!(
            error.to_string(),
            "git hash-object was ended, as for 1 s nothing came from the program \"sleep 1000\" (setting git_seconds)"
        );
    }

    #[test]
    fn a_program_left_behind_that_writes_for_ever_takes_no_time() {
        let begun = Instant::now();
        let folder = tempfile::tempdir().expect("a folder");
        let stop = folder.path().join("stop");
        let line = format!("while ! [ -e '{}' ]; do echo x; sleep 0.05; done & exit 3", stop.display());
        let output = run_with_input(shell(&line), "fetch", Vec::new(), Duration::from_secs(100)).expect("an end");
        std::fs::write(&stop, "").expect("a file");
        assert_eq!(output.status.code(), Some(3));
        assert!(begun.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn output_buys_time_and_a_program_left_behind_takes_none() {
        let begun = Instant::now();
        // Each line comes within the limit; all lines together do not.
        let command = shell("for n in 1 2 3 4; do sleep 0.4; echo $n; done; sleep 60 & exit 3");
        let output = run_with_input(command, "fetch", b"unread".to_vec(), Duration::from_secs(1)).expect("an end");
        assert_eq!((output.stdout.as_slice(), output.status.code()), (b"1\n2\n3\n4\n".as_slice(), Some(3)));
        assert!(begun.elapsed() < Duration::from_secs(30));
    }
}
