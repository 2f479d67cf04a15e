//! The supervisor: a process of revdeck between a worker and the agent that reviews for it. It guarantees that no
//! process of the agent outlives the worker, however the worker ends.
//!
//! A separate process is needed because a killed worker can do nothing, and a signal to its process group misses every
//! process that left the group. Agents put each command they run into a group of its own. The supervisor has its own
//! session, which has no terminal and receives no signal for the worker's group. Its standard input is a socket, and
//! only the worker holds the other end. The socket closes when the worker wants to stop, or when the kernel closes it
//! for a dead worker. Then the supervisor ends the agent and all its descendants: first SIGTERM, and after
//! [`TERMINATE_TIMEOUT`] SIGKILL. It does the same when the agent ends and leaves processes behind.
//!
//! The descendants on Linux are all descendants, also those with their own session or group, because the supervisor
//! inherits orphans (`PR_SET_CHILD_SUBREAPER`). On other systems they are the agent's process group.
//!
//! One case is not covered: the supervisor itself is killed with SIGKILL. Then the worker kills the agent's process
//! group; if the worker is dead too, nothing does.
//!
//! Protocol: the worker sends the length of the prompt (8 bytes, little endian) and the prompt, and then only keeps its
//! end open. The supervisor answers with lines, see [`ProcessReport`]. The agent's output goes directly to the worker.

use std::ffi::OsString;
use std::fmt;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitId, WaitIdOptions, WaitOptions, getrlimit, kill_process_group, setrlimit,
    test_kill_process_group, wait, waitid,
};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::git::process_tree;

/// Time that a program has to end after SIGTERM.
pub const TERMINATE_TIMEOUT: Duration = Duration::from_secs(2);
/// Time that killed processes may take to disappear.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval between two checks whether the processes are gone.
const EXIT_CHECK_INTERVAL: Duration = Duration::from_millis(10);
/// Maximum length of a prompt. No real prompt is as long; a greater length was not sent by a worker.
const MAX_PROMPT_BYTES: u64 = 1 << 30;

/// A report of the supervisor to its worker, one per line: first `Started` or `NotStarted`, last `Exited` or `Killed`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessReport {
    /// The program runs under this process id, which is also the id of its process group.
    Started(u32),
    /// The system refused to start the program, with this error number.
    NotStarted(i32),
    Exited(i32),
    /// The program was ended by this signal.
    Killed(i32),
}

impl fmt::Display for ProcessReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Started(process) => write!(f, "started {process}"),
            Self::NotStarted(number) => write!(f, "not-started {number}"),
            Self::Exited(code) => write!(f, "exited {code}"),
            Self::Killed(signal) => write!(f, "killed {signal}"),
        }
    }
}

impl ProcessReport {
    pub(super) fn parse(line: &str) -> Option<Self> {
        let (word, number) = line.trim_end().split_once(' ')?;
        Some(match word {
            "started" => Self::Started(number.parse().ok()?),
            "not-started" => Self::NotStarted(number.parse().ok()?),
            "exited" => Self::Exited(number.parse().ok()?),
            "killed" => Self::Killed(number.parse().ok()?),
            _ => return None,
        })
    }
}

/// The reason why the supervisor stops waiting.
enum StopCause {
    Ended(ProcessReport),
    /// The worker is gone, or no longer wants the answer.
    Abandoned,
}

/// Runs a program for the worker at the other end of standard input. Must be called in its own process with a fresh
/// environment, because it leaves its session and adopts the processes that the program leaves behind.
///
/// # Errors
///
/// If standard input is not a socket with a worker at its end; the program is not started then.
pub fn supervise(words: &[OsString]) -> io::Result<()> {
    let Some((program, arguments)) = words.split_first() else { return Err(io::ErrorKind::InvalidInput.into()) };
    let mut worker = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    // Fails for the leader of a process group. The worker does not make the supervisor one.
    let _ = rustix::process::setsid();
    inherit_orphans();
    let prompt = read_prompt(&mut worker)?;

    lift_memory_limit();
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).process_group(0);
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return send_report(&mut worker, ProcessReport::NotStarted(error.raw_os_error().unwrap_or(0))),
    };
    let Some(leader) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    let _ = send_report(&mut worker, ProcessReport::Started(child.id()));

    let (sender, told) = channel();
    if let Some(mut stdin) = child.stdin.take() {
        // A program that does not read the whole prompt closes the pipe.
        std::thread::spawn(move || stdin.write_all(&prompt));
    }
    std::thread::spawn({
        let sender = sender.clone();
        move || sender.send(StopCause::Ended(wait_for_exit(leader)))
    });
    watch_signals(sender.clone());
    let mut reports = worker.try_clone()?;
    std::thread::spawn(move || {
        let _ = io::copy(&mut worker, &mut io::sink());
        sender.send(StopCause::Abandoned)
    });

    let told = told.recv();
    terminate_all(leader);
    match told {
        Ok(StopCause::Ended(report)) => send_report(&mut reports, report),
        _ => send_report(&mut reports, ProcessReport::Killed(SIGTERM)),
    }
}

/// Raises the soft memory limit, which the worker has set for itself and not for the program, to the hard limit.
fn lift_memory_limit() {
    let limits = getrlimit(Resource::Data);
    // Up to the hard limit, raising is always allowed.
    let _ = setrlimit(Resource::Data, Rlimit { current: limits.maximum, ..limits });
}

fn read_prompt(worker: &mut UnixStream) -> io::Result<Vec<u8>> {
    let mut length = [0; 8];
    worker.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length);
    if length > MAX_PROMPT_BYTES {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut prompt = Vec::new();
    worker.take(length).read_to_end(&mut prompt)?;
    match prompt.len() as u64 == length {
        true => Ok(prompt),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn send_report(worker: &mut UnixStream, report: ProcessReport) -> io::Result<()> {
    worker.write_all(format!("{report}\n").as_bytes())
}

/// Waits until the program ends. The program stays a zombie, so that its process id is not given to another process.
fn wait_for_exit(leader: Pid) -> ProcessReport {
    loop {
        match waitid(WaitId::Pid(leader), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
            Ok(Some(status)) => {
                return match (status.exit_status(), status.terminating_signal()) {
                    (_, Some(signal)) => ProcessReport::Killed(signal),
                    (code, None) => ProcessReport::Exited(code.unwrap_or(0)),
                };
            }
            Ok(None) | Err(Errno::INTR) => {}
            // `terminate_all` has already reaped the program.
            Err(_) => return ProcessReport::Killed(SIGTERM),
        }
    }
}

/// Treats a signal to the supervisor as a request to end the program.
fn watch_signals(sender: Sender<StopCause>) {
    let Ok(mut signals) = signal_hook::iterator::Signals::new([SIGTERM, SIGINT, SIGHUP]) else { return };
    std::thread::spawn(move || signals.forever().next().map(|_| sender.send(StopCause::Abandoned)));
}

/// Ends the program and all its descendants.
fn terminate_all(leader: Pid) {
    if reap_all(leader) {
        return;
    }
    signal_all(leader, Signal::TERM);
    let mut patience = Instant::now() + TERMINATE_TIMEOUT;
    while Instant::now() < patience {
        if reap_all(leader) {
            return;
        }
        std::thread::sleep(EXIT_CHECK_INTERVAL);
    }
    patience = Instant::now() + KILL_TIMEOUT;
    // Repeated, because a process may have had children before it was killed.
    while !reap_all(leader) && Instant::now() < patience {
        signal_all(leader, Signal::KILL);
        std::thread::sleep(EXIT_CHECK_INTERVAL);
    }
}

/// Reaps ended processes. Returns `true` if none is left.
fn reap_all(leader: Pid) -> bool {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return false,
            Err(_) => return test_kill_process_group(leader).is_err(),
        }
    }
}

fn signal_all(leader: Pid, signal: Signal) {
    let descendants = process_tree::descendants(rustix::process::getpid());
    if descendants.is_empty() {
        let _ = kill_process_group(leader, signal);
    }
    for process in descendants {
        let _ = rustix::process::kill_process(process, signal);
    }
}

#[cfg(target_os = "linux")]
fn inherit_orphans() {
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

#[cfg(not(target_os = "linux"))]
fn inherit_orphans() {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_read_back() {
        for report in [
            ProcessReport::Started(17),
            ProcessReport::NotStarted(2),
            ProcessReport::Exited(-1),
            ProcessReport::Killed(9),
        ] {
            assert_eq!(ProcessReport::parse(&format!("{report}\n")), Some(report));
        }
        for other in ["", "exited", "exited x", "ended 1"] {
            assert_eq!(ProcessReport::parse(other), None, "{other:?}");
        }
    }
}
