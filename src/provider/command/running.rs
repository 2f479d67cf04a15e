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

use super::keeper::{GRACE, Report};

/// Bytes that are read at once.
const CHUNK: usize = 64 * 1024;
/// Chunks that wait to be looked at; the program waits when there are more.
const WAITING: usize = 32;
/// How long a keeper may take to end, beyond the grace it gives the program. Longer than it takes to kill.
const KEEPER: Duration = Duration::from_secs(8);

/// Everything that is needed to start a program.
#[derive(Debug)]
pub struct Start {
    /// What becomes a keeper, with its arguments.
    pub keeper: (PathBuf, Vec<OsString>),
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
pub enum Heard {
    Output(Vec<u8>),
    Errors(Vec<u8>),
    Report(Report),
    /// The keeper ended without a word.
    Lost,
    /// There is nothing more to hear.
    Over,
    /// Nothing within the time.
    Nothing,
}

pub struct Running {
    keeper: Child,
    line: UnixStream,
    heard: Option<Receiver<Heard>>,
    /// The program's process group.
    group: Option<Pid>,
}

impl Running {
    pub fn start(start: Start) -> std::io::Result<Self> {
        let (line, theirs) = UnixStream::pair()?;
        let (keeper, arguments) = start.keeper;
        let mut command = Command::new(keeper);
        command.args(arguments).arg(start.program).args(start.arguments);
        command.current_dir(start.folder).env_clear().envs(start.environment);
        command.stdin(OwnedFd::from(theirs)).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut keeper = command.spawn()?;
        // It holds the other end of the line, which has to be nobody's but the keeper's.
        drop(command);
        let (sender, heard) = sync_channel(WAITING);
        let (output, errors) = (keeper.stdout.take(), keeper.stderr.take());
        let running = Self { line: line.try_clone()?, keeper, heard: Some(heard), group: None };
        let (mut prompts, reports) = (line.try_clone()?, line);
        std::thread::spawn(move || {
            let length = (start.prompt.len() as u64).to_le_bytes();
            // Whoever does not take it says so in the reports.
            prompts.write_all(&length).and_then(|()| prompts.write_all(start.prompt.as_bytes()))
        });
        if let Some(output) = output {
            let sender = sender.clone();
            std::thread::spawn(move || pass_on(output, &sender, Heard::Output));
        }
        if let Some(errors) = errors {
            let sender = sender.clone();
            std::thread::spawn(move || pass_on(errors, &sender, Heard::Errors));
        }
        std::thread::spawn(move || pass_reports_on(reports, &sender));
        Ok(running)
    }

    /// Waits at most `patience` for what happens next.
    pub fn next(&mut self, patience: Duration) -> Heard {
        let Some(heard) = &self.heard else { return Heard::Over };
        match heard.recv_timeout(patience) {
            Ok(Heard::Report(Report::Started(process))) => {
                self.group = i32::try_from(process).ok().and_then(Pid::from_raw);
                Heard::Report(Report::Started(process))
            }
            Ok(Heard::Lost) => {
                self.kill_group();
                Heard::Lost
            }
            Ok(heard) => heard,
            Err(RecvTimeoutError::Timeout) => Heard::Nothing,
            Err(RecvTimeoutError::Disconnected) => Heard::Over,
        }
    }

    /// Asks for its end, and does not wait for it.
    pub fn stop(&mut self) {
        self.heard = None;
        let _ = self.line.shutdown(Shutdown::Write);
    }

    fn kill_group(&self) {
        if let Some(group) = self.group {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
        let patience = Instant::now() + GRACE + KEEPER;
        while matches!(self.keeper.try_wait(), Ok(None)) {
            if Instant::now() >= patience {
                self.kill_group();
                let _ = self.keeper.kill();
                let _ = self.keeper.wait();
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Ends with the output, or when nobody listens any more; then the program's next write fails.
fn pass_on(mut from: impl Read, sender: &SyncSender<Heard>, heard: fn(Vec<u8>) -> Heard) {
    let mut chunk = vec![0; CHUNK];
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

fn pass_reports_on(line: UnixStream, sender: &SyncSender<Heard>) {
    let mut last = None;
    for line in BufReader::new(line).lines() {
        let Some(report) = line.ok().as_deref().and_then(Report::parse) else { break };
        last = Some(report);
        if sender.send(Heard::Report(report)).is_err() {
            return;
        }
    }
    if matches!(last, None | Some(Report::Started(_))) {
        let _ = sender.send(Heard::Lost);
    }
}
