//! Runs the server on standard input and output until the client closes the input or a signal arrives.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use rmcp::transport::stdio;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::Notify;

use super::RepositoryAccess;
use super::framing::LineTransport;
use super::server::ReviewServer;

/// Maximum time for the answers under way after the end of the input or a signal. The process ends within a second.
const MAX_DRAIN_TIME: Duration = Duration::from_millis(500);

/// Error of the server before it answers anything.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The runtime or the handler of signals could not be created.
    #[error("cannot start the server: {0}")]
    Start(#[from] std::io::Error),
    /// The client did not follow the protocol.
    #[error("the client did not begin a session: {0}")]
    Session(String),
}

/// Reader that tells when its input has ended.
struct EndWatcher<R> {
    input: R,
    ended: Arc<Notify>,
}

impl<R: AsyncRead + Unpin> AsyncRead for EndWatcher<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.input).poll_read(context, buffer);
        let is_over = matches!(&polled, Poll::Ready(read) if read.is_err() || buffer.filled().len() == before);
        if is_over {
            self.ended.notify_one();
        }
        polled
    }
}

/// Serves one client until it closes standard input, or until SIGTERM, SIGINT or SIGHUP.
///
/// # Errors
///
/// If the server cannot start, or the client does not begin a session.
pub fn serve_stdio(access: RepositoryAccess) -> Result<(), ServeError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let stop = Arc::new(Notify::new());
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP])?;
    let stopped = Arc::clone(&stop);
    std::thread::spawn(move || {
        if signals.forever().next().is_some() {
            stopped.notify_one();
        }
    });
    let served = runtime.block_on(serve_until(access, stop));
    // A read of standard input cannot be cancelled, and a review that a call waits for goes on in its own process.
    runtime.shutdown_background();
    served
}

async fn serve_until(access: RepositoryAccess, stop: Arc<Notify>) -> Result<(), ServeError> {
    let (input, output) = stdio();
    let input = EndWatcher { input, ended: Arc::clone(&stop) };
    let session = async {
        match ReviewServer::new(access).serve(LineTransport::new(input, output)).await {
            // How a session ends makes no difference: there is nobody left to tell.
            Ok(service) => drop(service.waiting().await),
            // A client that only looked whether the server starts.
            Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {}
            Err(error) => return Err(error.to_string()),
        }
        Ok(())
    };
    tokio::pin!(session);
    let ended = tokio::select! {
        ended = &mut session => ended,
        () = stop.notified() => match tokio::time::timeout(MAX_DRAIN_TIME, &mut session).await {
            Ok(ended) => ended,
            Err(_) => Ok(()),
        },
    };
    ended.map_err(ServeError::Session)
}
