//! Frames of the protocol: one message per line. A line that is too long or no JSON gets an answer, too: a client that
//! waits for one would wait for ever.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use memchr::memchr;
use rmcp::RoleServer;
use rmcp::model::ErrorData;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use serde_json::Value;
use tokio::io::{AsyncBufRead as _, AsyncRead, AsyncWrite, BufReader, ReadBuf};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Maximum length of a line with its end, in bytes: the limit of the transport behind the filter.
const MAX_LINE_BYTES: usize = 16 << 20;
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Reason why a line is refused before it is read as a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineFault {
    TooLong,
    NoJson,
}

impl LineFault {
    /// Returns the answer. It has no id, because none could be read.
    fn to_answer(self) -> TxJsonRpcMessage<RoleServer> {
        let error = match self {
            Self::TooLong => ErrorData::invalid_request("the message is longer than 16 MB", None),
            Self::NoJson => ErrorData::parse_error("the line is no JSON", None),
        };
        TxJsonRpcMessage::<RoleServer>::error(error, None)
    }
}

/// Reader that passes on only whole lines of JSON, and reports the others.
struct LineFilter<R> {
    input: BufReader<R>,
    line: Vec<u8>,
    /// Number of bytes of `line` that were passed on.
    passed: usize,
    /// True while `line` is passed on.
    is_whole: bool,
    /// True until the end of a line that is too long.
    is_discarding: bool,
    faults: UnboundedSender<LineFault>,
}

impl<R> LineFilter<R> {
    fn refuse(&mut self, fault: LineFault) {
        self.line = Vec::new();
        // Without a receiver the session is over.
        let _ = self.faults.send(fault);
    }

    /// Adds a part of a line.
    fn extend_line(&mut self, part: &[u8]) {
        if self.is_discarding {
            return;
        }
        if self.line.len() + part.len() > MAX_LINE_BYTES {
            self.refuse(LineFault::TooLong);
            self.is_discarding = true;
        } else {
            self.line.extend_from_slice(part);
        }
    }

    /// Decides whether the line is passed on.
    fn end_line(&mut self) {
        if std::mem::take(&mut self.is_discarding) {
            return;
        }
        let text = std::str::from_utf8(&self.line).map(|text| text.trim_start_matches(BYTE_ORDER_MARK).trim());
        match text {
            Ok("") => self.line.clear(),
            Ok(text) if serde_json::from_str::<Value>(text).is_ok() => self.is_whole = true,
            _ => self.refuse(LineFault::NoJson),
        }
    }

    /// Passes on as much of the line as `buffer` takes.
    fn pass(&mut self, buffer: &mut ReadBuf<'_>) {
        let rest = self.line.get(self.passed..).unwrap_or_default();
        let count = rest.len().min(buffer.remaining());
        buffer.put_slice(&rest[..count]);
        self.passed += count;
        if self.passed >= self.line.len() {
            self.line.clear();
            (self.passed, self.is_whole) = (0, false);
        }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for LineFilter<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let this = self.get_mut();
        while !this.is_whole {
            let available = ready!(Pin::new(&mut this.input).poll_fill_buf(context))?;
            if available.is_empty() {
                return Poll::Ready(Ok(()));
            }
            let end = memchr(b'\n', available).map(|at| at + 1);
            let part = available[..end.unwrap_or(available.len())].to_vec();
            Pin::new(&mut this.input).consume(part.len());
            this.extend_line(&part);
            if end.is_some() {
                this.end_line();
            }
        }
        this.pass(buffer);
        Poll::Ready(Ok(()))
    }
}

/// Transport over a reader and a writer that answers each line.
pub(super) struct LineTransport<R: AsyncRead + Unpin, W: AsyncWrite> {
    messages: AsyncRwTransport<RoleServer, LineFilter<R>, W>,
    faults: UnboundedReceiver<LineFault>,
}

impl<R, W> LineTransport<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    /// Creates the transport.
    pub(super) fn new(input: R, output: W) -> Self {
        let (sender, faults) = unbounded_channel();
        let filter = LineFilter {
            input: BufReader::new(input),
            line: Vec::new(),
            passed: 0,
            is_whole: false,
            is_discarding: false,
            faults: sender,
        };
        let messages = AsyncRwTransport::new(filter, output).with_max_line_length(MAX_LINE_BYTES);
        Self { messages, faults }
    }
}

impl<R, W> Transport<RoleServer> for LineTransport<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = std::io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.messages.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            // Both can be dropped halfway: the service polls this beside its answers.
            let fault = tokio::select! {
                biased;
                Some(fault) = self.faults.recv() => fault,
                message = self.messages.receive() => match message {
                    Some(message) => return Some(message),
                    None => break,
                },
            };
            // On its own, so that the answer is written even if this call is dropped.
            drop(tokio::spawn(self.messages.send(fault.to_answer())));
        }
        while let Ok(fault) = self.faults.try_recv() {
            self.messages.send(fault.to_answer()).await.ok()?;
        }
        None
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.messages.close().await
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;

    /// Returns what the filter passes on of an input, and its faults.
    fn filter(input: &[u8]) -> (Vec<u8>, Vec<LineFault>) {
        let (sender, mut faults) = unbounded_channel();
        let mut filter = LineFilter {
            input: BufReader::with_capacity(7, input),
            line: Vec::new(),
            passed: 0,
            is_whole: false,
            is_discarding: false,
            faults: sender,
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let mut passed = Vec::new();
        runtime.block_on(filter.read_to_end(&mut passed)).expect("a slice is read");
        (passed, std::iter::from_fn(|| faults.try_recv().ok()).collect())
    }

    #[test]
    fn whole_lines_of_json_are_passed_on_and_others_are_refused() {
        let no_json = || vec![LineFault::NoJson];
        let deep = format!("{}{}\n", "[".repeat(1_000), "]".repeat(1_000));
        for (input, passed, faults) in [
            (&b"{\"a\": 1}\n[]\r\n"[..], &b"{\"a\": 1}\n[]\r\n"[..], vec![]),
            (b"\n \t\r\nnull\n", b"null\n", vec![]),
            ("\u{feff}{}\n".as_bytes(), "\u{feff}{}\n".as_bytes(), vec![]),
            (b"{\"a\": \n{}\n", b"{}\n", no_json()),
            (b"\"\xff\"\n{}\n", b"{}\n", no_json()),
            (deep.as_bytes(), b"", no_json()),
            (b"{}\n{\"a\"", b"{}\n", vec![]),
            (b"", b"", vec![]),
        ] {
            assert_eq!(filter(input), (passed.to_vec(), faults), "{}", String::from_utf8_lossy(input));
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_refused_once_and_the_next_is_passed_on() {
        let mut input = vec![b' '; MAX_LINE_BYTES - 3];
        input.extend_from_slice(b"{}\n");
        assert_eq!(filter(&input), (input.clone(), vec![]));
        input.insert(0, b' ');
        input.extend_from_slice(b"{}\n");
        assert_eq!(filter(&input), (b"{}\n".to_vec(), vec![LineFault::TooLong]));
    }
}
