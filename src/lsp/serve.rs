//! Runs the server on standard input and output until the client ends it, closes the input, or a signal arrives.

use std::io::BufReader;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::ServerOptions;
use super::frame::{ClientMessage, read_message, write_message};
use super::server::LanguageServer;

/// Maximum time for the answers under way after the end of the input or a signal. The process ends within a second.
const MAX_DRAIN_TIME: Duration = Duration::from_millis(500);
/// Maximum number of messages that wait for the server. With their maximum size, it bounds the memory.
const MAX_QUEUED_EVENTS: usize = 2;

/// Error of the server before it answers anything.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The handler of signals could not be created.
    #[error("cannot start the server: {0}")]
    Start(#[from] std::io::Error),
}

/// End of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerEnd {
    /// The client ended the session, closed the input, or a signal arrived.
    Orderly,
    /// The client asked for the end without shutting the session down; the protocol wants an exit code of 1.
    Abrupt,
}

/// Event for the server.
enum ServerEvent {
    Message(ClientMessage),
    StoreChanged(PathBuf),
    InputEnded,
}

/// Serves one client.
///
/// # Errors
///
/// If the server cannot start.
pub fn serve_stdio(options: ServerOptions) -> Result<ServerEnd, ServeError> {
    let (events, received) = sync_channel(MAX_QUEUED_EVENTS);
    let (ends, ended) = channel();
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP])?;
    let stopped = ends.clone();
    std::thread::spawn(move || {
        if signals.forever().next().is_some() {
            let _ = stopped.send(None);
        }
    });
    let (inputs, input_ends) = (events.clone(), ends.clone());
    std::thread::spawn(move || read_input(&inputs, &input_ends));
    std::thread::spawn(move || {
        // After a panic, which the panic hook has reported, the editor starts the server again.
        let served = catch_unwind(AssertUnwindSafe(|| run_server(options, events, &received)));
        let _ = ends.send(Some(served.unwrap_or(ServerEnd::Abrupt)));
    });
    // A read of standard input and a write to a client that does not read cannot be cancelled: their threads are left.
    Ok(match ended.recv() {
        Ok(Some(end)) => end,
        _ => ended.recv_timeout(MAX_DRAIN_TIME).ok().flatten().unwrap_or(ServerEnd::Orderly),
    })
}

/// Reads messages until the input ends.
fn read_input(events: &SyncSender<ServerEvent>, ends: &Sender<Option<ServerEnd>>) {
    let mut input = BufReader::new(std::io::stdin());
    loop {
        match read_message(&mut input) {
            Ok(Some(message)) => {
                if events.send(ServerEvent::Message(message)).is_err() {
                    return;
                }
            }
            Ok(None) => break,
            Err(error) => {
                tracing::warn!(%error, "the input cannot be read");
                break;
            }
        }
    }
    let _ = ends.send(None);
    let _ = events.send(ServerEvent::InputEnded);
}

/// Handles events and writes messages until the end.
fn run_server(options: ServerOptions, events: SyncSender<ServerEvent>, received: &Receiver<ServerEvent>) -> ServerEnd {
    let changes = Arc::new(move |root| events.send(ServerEvent::StoreChanged(root)).is_ok());
    let mut server = LanguageServer::new(Arc::new(options), changes);
    let mut output = std::io::stdout().lock();
    loop {
        let event = match server.time_to_publish() {
            Some(time) => received.recv_timeout(time),
            None => received.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match event {
            Ok(ServerEvent::Message(message)) => server.handle(message),
            Ok(ServerEvent::StoreChanged(root)) => server.note_store_change(root),
            Err(RecvTimeoutError::Timeout) => server.publish(),
            Ok(ServerEvent::InputEnded) | Err(RecvTimeoutError::Disconnected) => return ServerEnd::Orderly,
        }
        if server.is_publishing_late() {
            server.publish();
        }
        for message in server.take_outgoing() {
            if write_message(&mut output, &message).is_err() {
                // The client reads no more.
                return ServerEnd::Orderly;
            }
        }
        match server.ended() {
            Some(true) => return ServerEnd::Orderly,
            Some(false) => return ServerEnd::Abrupt,
            None => {}
        }
    }
}
