//! The keeper: a process of ours between a worker and the program that reviews for it, so that nothing the program
//! started outlives the worker, however the worker ends.
//!
//! Why a process: a worker that is killed can do nothing any more, and a signal to its process group misses whoever
//! left the group, which agents do with every command they run. The keeper has a session of its own, which no signal to
//! the worker's group reaches and which has no terminal. Its standard input is a socket whose other end only the worker
//! holds; when that is closed, because the worker wants an end or because the kernel closed it for a dead one, the
//! keeper ends the program and everything that descends from it: SIGTERM, and SIGKILL for who is still there after
//! [`GRACE`]. It does the same when the program ends and leaves others behind.
//!
//! What descends from the program: on Linux everything, because the keeper is made the one that inherits orphans
//! (`PR_SET_CHILD_SUBREAPER`), also what has a session or a group of its own; elsewhere the program's process group.
//!
//! What is not covered: the keeper itself killed with SIGKILL. Then the worker kills the program's process group; with
//! the worker dead as well nobody does.
//!
//! Over the socket: the worker sends the length of the prompt (8 bytes, little endian) and the prompt, and then only
//! holds its end open. The keeper answers with lines, see [`Report`]. The program's output goes straight to the worker.

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
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process_group, test_kill_process_group, wait, waitid,
};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// How long a program may take to end when it is asked to.
pub const TERMINATE_TIMEOUT: Duration = Duration::from_secs(2);
/// How long killed processes may take to be gone.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);
/// How often it is looked whether they are.
const EXIT_CHECK_INTERVAL: Duration = Duration::from_millis(10);
/// No prompt is as long; a length beyond it was not sent by a worker.
const MAX_PROMPT_BYTES: u64 = 1 << 30;

/// What a keeper tells its worker, a line each: `Started` or `NotStarted` first, `Exited` or `Killed` last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessReport {
    /// The program runs under this process id, which is also that of its group.
    Started(u32),
    /// The system refused to start it, with this error number.
    NotStarted(i32),
    Exited(i32),
    /// Ended by this signal.
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

/// Why the keeper stops waiting.
enum StopCause {
    Ended(ProcessReport),
    /// The worker is gone, or does not want the answer any more.
    Abandoned,
}

/// Runs a program for the worker at the other end of standard input. To be called in a process of its own, with a fresh
/// environment: it leaves its session and takes over whatever the program leaves behind.
///
/// # Errors
/// When standard input is no socket with a worker at its end; the program has not been started then.
pub fn supervise(words: &[OsString]) -> io::Result<()> {
    let Some((program, arguments)) = words.split_first() else { return Err(io::ErrorKind::InvalidInput.into()) };
    let mut worker = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    // Fails for the leader of a group, which a worker does not make it.
    let _ = rustix::process::setsid();
    inherit_orphans();
    let prompt = read_prompt(&mut worker)?;

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
        // Who does not want to hear all of it closes the pipe.
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

/// Waits until the program ends; it stays a zombie, so that its number is not given to anybody else.
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
            // Somebody has collected it: it is being ended.
            Err(_) => return ProcessReport::Killed(SIGTERM),
        }
    }
}

/// A signal to the keeper is one to what it keeps.
fn watch_signals(sender: Sender<StopCause>) {
    let Ok(mut signals) = signal_hook::iterator::Signals::new([SIGTERM, SIGINT, SIGHUP]) else { return };
    std::thread::spawn(move || signals.forever().next().map(|_| sender.send(StopCause::Abandoned)));
}

/// Ends everything that descends from the program.
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
    // Again and again: who is killed may have had children in the meantime.
    while !reap_all(leader) && Instant::now() < patience {
        signal_all(leader, Signal::KILL);
        std::thread::sleep(EXIT_CHECK_INTERVAL);
    }
}

/// Collects who has ended; whether nobody is left.
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
    let descendants = descendants();
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

/// Everybody who descends from this process, by what `/proc` says.
#[cfg(target_os = "linux")]
fn descendants() -> Vec<Pid> {
    let mut parents: Vec<(Pid, Pid)> = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(process) = entry.file_name().to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw)
        else {
            continue;
        };
        // `12 (name) S 1 ...`; the name may hold anything, brackets too.
        let Ok(status) = std::fs::read(entry.path().join("stat")) else { continue };
        let after = memchr::memrchr(b')', &status).and_then(|at| status.get(at + 1..)).unwrap_or_default();
        let parent = String::from_utf8_lossy(after).split_whitespace().nth(1).and_then(|word| word.parse().ok());
        parents.extend(parent.and_then(Pid::from_raw).map(|parent| (process, parent)));
    }
    let mut found = vec![rustix::process::getpid()];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        found.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(process, _)| *process));
        next += 1;
    }
    found.remove(0);
    found
}

#[cfg(not(target_os = "linux"))]
fn descendants() -> Vec<Pid> {
    Vec::new()
}

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
