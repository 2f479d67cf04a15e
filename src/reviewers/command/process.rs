//! A program at work, seen from the worker: its output as it comes, and its end.
//!
//! Invariant: with this value gone, nothing of the program is left; see [`super::keeper`].

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::supervisor::{ProcessReport, TERMINATE_TIMEOUT};

/// Bytes that are read at once.
const READ_CHUNK_BYTES: usize = 64 * 1024;
/// Chunks that wait to be looked at; the program waits when there are more.
const MAX_QUEUED_CHUNKS: usize = 32;
/// How long a keeper may take to end, beyond the grace it gives the program. Longer than it takes to kill.
const SUPERVISOR_EXIT_TIMEOUT: Duration = Duration::from_secs(8);

/// Everything that is needed to start a program.
#[derive(Debug)]
pub struct AgentCommand {
    /// What becomes a keeper, with its arguments.
    pub supervisor: (PathBuf, Vec<OsString>),
    pub program: PathBuf,
    pub arguments: Vec<String>,
    pub folder: PathBuf,
    /// All of it.
    pub environment: Vec<(OsString, OsString)>,
    /// What it gets on standard input.
    pub prompt: String,
}

/// What happened.
#[derive(Debug, PartialEq, Eq)]
pub enum ProcessEvent {
    Output(Vec<u8>),
    Errors(Vec<u8>),
    Report(ProcessReport),
    /// The keeper ended without a word.
    SupervisorLost,
    /// There is nothing more to hear.
    Closed,
    /// Nothing within the time.
    TimedOut,
}

pub struct AgentProcess {
    supervisor: Child,
    socket: UnixStream,
    events: Option<Receiver<ProcessEvent>>,
    /// The program's process group.
    group: Option<Pid>,
}

impl AgentProcess {
    pub fn spawn(start: AgentCommand) -> std::io::Result<Self> {
        let (line, theirs) = UnixStream::pair()?;
        let (keeper, arguments) = start.supervisor;
        let mut command = Command::new(keeper);
        command.args(arguments).arg(start.program).args(start.arguments);
        command.current_dir(start.folder).env_clear().envs(start.environment);
        command.stdin(OwnedFd::from(theirs)).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut keeper = command.spawn()?;
        // It holds the other end of the line, which has to be nobody's but the keeper's.
        drop(command);
        let (sender, heard) = sync_channel(MAX_QUEUED_CHUNKS);
        let (output, errors) = (keeper.stdout.take(), keeper.stderr.take());
        let running = Self { socket: line.try_clone()?, supervisor: keeper, events: Some(heard), group: None };
        let (mut prompts, reports) = (line.try_clone()?, line);
        std::thread::spawn(move || {
            let length = (start.prompt.len() as u64).to_le_bytes();
            // Whoever does not take it says so in the reports.
            prompts.write_all(&length).and_then(|()| prompts.write_all(start.prompt.as_bytes()))
        });
        if let Some(output) = output {
            let sender = sender.clone();
            std::thread::spawn(move || forward_output(output, &sender, ProcessEvent::Output));
        }
        if let Some(errors) = errors {
            let sender = sender.clone();
            std::thread::spawn(move || forward_output(errors, &sender, ProcessEvent::Errors));
        }
        std::thread::spawn(move || forward_reports(reports, &sender));
        Ok(running)
    }

    /// Waits at most `patience` for what happens next.
    pub fn next_event(&mut self, patience: Duration) -> ProcessEvent {
        let Some(heard) = &self.events else { return ProcessEvent::Closed };
        match heard.recv_timeout(patience) {
            Ok(ProcessEvent::Report(ProcessReport::Started(process))) => {
                self.group = i32::try_from(process).ok().and_then(Pid::from_raw);
                ProcessEvent::Report(ProcessReport::Started(process))
            }
            Ok(ProcessEvent::SupervisorLost) => {
                self.kill_group();
                ProcessEvent::SupervisorLost
            }
            Ok(heard) => heard,
            Err(RecvTimeoutError::Timeout) => ProcessEvent::TimedOut,
            Err(RecvTimeoutError::Disconnected) => ProcessEvent::Closed,
        }
    }

    /// Asks for its end, and does not wait for it.
    pub fn request_stop(&mut self) {
        self.events = None;
        let _ = self.socket.shutdown(Shutdown::Write);
    }

    fn kill_group(&self) {
        if let Some(group) = self.group {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Drop for AgentProcess {
    fn drop(&mut self) {
        self.request_stop();
        let patience = Instant::now() + TERMINATE_TIMEOUT + SUPERVISOR_EXIT_TIMEOUT;
        while matches!(self.supervisor.try_wait(), Ok(None)) {
            if Instant::now() >= patience {
                self.kill_group();
                let _ = self.supervisor.kill();
                let _ = self.supervisor.wait();
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Ends with the output, or when nobody listens any more; then the program's next write fails.
fn forward_output(mut from: impl Read, sender: &SyncSender<ProcessEvent>, heard: fn(Vec<u8>) -> ProcessEvent) {
    let mut chunk = vec![0; READ_CHUNK_BYTES];
    loop {
        match from.read(&mut chunk) {
            Ok(0) => return,
            Ok(length) => {
                let Some(read) = chunk.get(..length) else { return };
                if sender.send(heard(read.to_vec())).is_err() {
                    return;
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

fn forward_reports(line: UnixStream, sender: &SyncSender<ProcessEvent>) {
    let mut last = None;
    for line in BufReader::new(line).lines() {
        let Some(report) = line.ok().as_deref().and_then(ProcessReport::parse) else { break };
        last = Some(report);
        if sender.send(ProcessEvent::Report(report)).is_err() {
            return;
        }
    }
    if matches!(last, None | Some(ProcessReport::Started(_))) {
        let _ = sender.send(ProcessEvent::SupervisorLost);
    }
}
