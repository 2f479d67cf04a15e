//! Starts an agent and passes its output and its end to the worker.
//!
//! Invariant: after the process value is dropped, no process of the program is left; see [`super::supervisor`].

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

/// Size of the buffer for one read.
const READ_CHUNK_BYTES: usize = 64 * 1024;
/// Maximum number of queued chunks. The program blocks if there are more.
const MAX_QUEUED_CHUNKS: usize = 32;
/// Time that a supervisor may take to end, in addition to the time it gives the program. Longer than the time it needs
/// to kill.
const SUPERVISOR_EXIT_TIMEOUT: Duration = Duration::from_secs(8);

/// Everything that is needed to start a program.
#[derive(Debug)]
pub struct AgentCommand {
    /// The program that runs as supervisor, with its arguments.
    pub supervisor: (PathBuf, Vec<OsString>),
    pub program: PathBuf,
    pub arguments: Vec<String>,
    pub folder: PathBuf,
    /// The complete environment.
    pub environment: Vec<(OsString, OsString)>,
    /// The text for standard input.
    pub prompt: String,
}

/// An event of a running program.
#[derive(Debug, PartialEq, Eq)]
pub enum ProcessEvent {
    Output(Vec<u8>),
    Errors(Vec<u8>),
    Report(ProcessReport),
    /// The supervisor ended without a final report.
    SupervisorLost,
    /// No more events will come.
    Closed,
    /// No event arrived in time.
    TimedOut,
}

/// A running agent and its supervisor.
pub struct AgentProcess {
    supervisor: Child,
    socket: UnixStream,
    events: Option<Receiver<ProcessEvent>>,
    /// The program's process group.
    group: Option<Pid>,
}

impl AgentProcess {
    /// Starts the supervisor with the program.
    ///
    /// # Errors
    ///
    /// If the socket or the supervisor process cannot be created.
    pub fn spawn(start: AgentCommand) -> std::io::Result<Self> {
        let (line, theirs) = UnixStream::pair()?;
        let (keeper, arguments) = start.supervisor;
        let mut command = Command::new(keeper);
        command.args(arguments).arg(start.program).args(start.arguments);
        command.current_dir(start.folder).env_clear().envs(start.environment);
        command.stdin(OwnedFd::from(theirs)).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut keeper = command.spawn()?;
        // `command` holds the other end of the socket, which only the supervisor may hold.
        drop(command);
        let (sender, heard) = sync_channel(MAX_QUEUED_CHUNKS);
        let (output, errors) = (keeper.stdout.take(), keeper.stderr.take());
        let running = Self { socket: line.try_clone()?, supervisor: keeper, events: Some(heard), group: None };
        let (mut prompts, reports) = (line.try_clone()?, line);
        std::thread::spawn(move || {
            let length = (start.prompt.len() as u64).to_le_bytes();
            // If the program does not take the prompt, the reports say so.
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

    /// Waits at most `patience` for the next event.
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

    /// Asks the program to end, without waiting for it.
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

/// Forwards output until it ends, or until the receiver is gone; then the program's next write fails.
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
