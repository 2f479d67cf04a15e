//! The client: sends a request, reads the answer as it comes, waits and sends again where that helps.
//!
//! Invariants: once something came that can be used, nothing is sent again. The watcher is asked at least every 50 ms,
//! and when it wants an end, the connection is closed. Nothing lives on between two answers.

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::pin;
use std::time::{Duration, Instant};

use reqwest::Client;
use reqwest::header::HeaderMap;
use serde::de::IgnoredAny;
use tokio::runtime::Builder;

use super::answer::{Answer, TooLarge};
use super::failure::{self, Failure, Retry, ServerError};
use super::frames::{self, Frames};
use super::key::Key;
use super::pace::{self, LONGEST_WAIT, Pace};
use super::transport::{self, Target};
use super::wire::{self, Ask, Extra, Reader, Trouble, Wire};
use super::{Endpoint, Timeouts};
use crate::domain::text::one_line;
use crate::domain::{ChatRequest, ErrorClass, Response};
use crate::provider::chat::{Chat, ChatError, Progress, Tools, Watch};

/// How often the watcher is asked.
const LOOK: Duration = Duration::from_millis(50);
/// How long the end of a stream is waited for when the model has said why it stopped: usage may follow.
const GRACE: Duration = Duration::from_secs(5);
/// Bytes of an error's body that are read.
const ERROR_BYTES: usize = 64 * 1024;

/// A model over HTTP.
pub struct HttpChat {
    endpoint: Endpoint,
    key: Key,
    wire: &'static dyn Wire,
    target: Target,
    headers: HeaderMap,
    client: Client,
    pace: Box<dyn Pace>,
    /// What the server turned out not to know.
    left_out: BTreeSet<Extra>,
}

impl std::fmt::Debug for HttpChat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpChat").field("endpoint", &self.endpoint).field("left_out", &self.left_out).finish()
    }
}

/// Why a request has no answer.
enum Unanswered {
    Cancelled,
    Failed(Failure),
}

impl From<Failure> for Unanswered {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Why the reading of an answer ended.
enum Ending {
    /// The server said so, or closed the connection.
    Over,
    /// The connection ended within an event.
    Cut,
    Broken(Failure),
    Cancelled,
}

/// The clock of one request.
struct Clock {
    timeouts: Timeouts,
    deadline: Instant,
}

impl Clock {
    /// Waits for something that is to come, and asks the watcher meanwhile.
    async fn wait<F: Future>(
        &self,
        future: F,
        idle: Duration,
        host: &str,
        watch: &dyn Watch,
    ) -> Result<F::Output, Unanswered> {
        let mut future = pin!(future);
        let started = Instant::now();
        loop {
            if watch.cancelled() {
                return Err(Unanswered::Cancelled);
            }
            let left = self.deadline.saturating_duration_since(Instant::now());
            let idle_left = idle.saturating_sub(started.elapsed());
            let slice = LOOK.min(left).min(idle_left);
            if slice.is_zero() {
                let what = match left.is_zero() {
                    true => format!("{host} took more than {} s for an answer", self.timeouts.total.as_secs_f32()),
                    false => format!("{host} sent nothing for {} s", idle.as_secs_f32()),
                };
                let failure = Failure::new(ErrorClass::Timeout, what);
                // Another request would take as long.
                let retry = if left.is_zero() { Retry::Never } else { failure.retry };
                return Err(Unanswered::Failed(Failure { retry, ..failure }));
            }
            if let Ok(output) = tokio::time::timeout(slice, future.as_mut()).await {
                return Ok(output);
            }
        }
    }
}

impl HttpChat {
    pub(super) fn new(endpoint: Endpoint, pace: Box<dyn Pace>) -> Result<Self, ChatError> {
        let wire = wire::of(endpoint.kind);
        let failed = |failure: Failure| failure.into_error(&endpoint.name, endpoint.kind, 1);
        if endpoint.model.trim().is_empty() || one_line(&endpoint.model) != endpoint.model {
            let what = format!("{:?} is no name of a model", one_line(&endpoint.model));
            return Err(failed(Failure::new(ErrorClass::Configuration, what)));
        }
        let key = Key::new(endpoint.key.clone());
        let target = Target::new(endpoint.base_url.as_deref(), wire).map_err(failed)?;
        if key.expose().is_none() && endpoint.base_url.is_none() && wire.needs_key() {
            return Err(failed(Failure::new(
                ErrorClass::Auth,
                format!("{} wants a key and there is none", target.host),
            )));
        }
        let headers = transport::headers(wire, &key).map_err(failed)?;
        let client = transport::client(&endpoint, &target).map_err(failed)?;
        Ok(Self { endpoint, key, wire, target, headers, client, pace, left_out: BTreeSet::new() })
    }

    fn ask(&self) -> Ask<'_> {
        Ask {
            model: &self.endpoint.model,
            effort: self.endpoint.effort,
            window: self.endpoint.window,
            at_home: self.target.is_home(self.wire),
            left_out: &self.left_out,
        }
    }

    /// Sends the request once.
    fn send(&self, request: &ChatRequest, watch: &mut dyn Watch) -> Result<Response, Unanswered> {
        let failed = |error| Failure::new(ErrorClass::Internal, format!("cannot start the network runtime: {error}"));
        let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let outcome = runtime.block_on(self.exchange(request, watch));
        // With it the connection ends, so that the server does not go on with what nobody reads; and a name that is
        // still being looked up is not waited for.
        runtime.shutdown_background();
        outcome
    }

    async fn exchange(&self, request: &ChatRequest, watch: &mut dyn Watch) -> Result<Response, Unanswered> {
        let (ask, host) = (self.ask(), &self.target.host);
        let timeouts = self.endpoint.timeouts;
        let clock = Clock { timeouts, deadline: Instant::now() + timeouts.total };
        // Without a stream, the first byte is near the last one.
        let idle = if ask.streams() { timeouts.idle } else { timeouts.total };
        let body = self.wire.body(request, &ask).to_string();
        let sent =
            self.client.post(self.wire.address(&self.target, &ask)).headers(self.headers.clone()).body(body).send();
        watch.progress(Progress::Sent);
        let mut response = clock
            .wait(sent, idle, host, watch)
            .await?
            .map_err(|error| transport::failure(&error, host, timeouts.connect))?;
        if !response.status().is_success() {
            let body = self.error_body(&mut response, &clock, watch).await?;
            let error = ServerError::from_response(response.status().as_u16(), response.headers(), &body);
            return Err(error.failure(host, &self.key).into());
        }
        let mut answer = Answer::default();
        let mut reader = self.wire.reader(&self.endpoint.model);
        let ending = self.read(&mut response, &mut answer, reader.as_mut(), &clock, idle, watch).await;
        self.judge(answer, ending)
    }

    /// What there is of the body of an error.
    async fn error_body(
        &self,
        response: &mut reqwest::Response,
        clock: &Clock,
        watch: &dyn Watch,
    ) -> Result<Vec<u8>, Unanswered> {
        let mut body = Vec::new();
        while body.len() < ERROR_BYTES {
            match clock.wait(response.chunk(), clock.timeouts.idle.min(GRACE), &self.target.host, watch).await {
                Ok(Ok(Some(bytes))) => body.extend_from_slice(&bytes),
                Err(Unanswered::Cancelled) => return Err(Unanswered::Cancelled),
                _ => break,
            }
        }
        body.truncate(ERROR_BYTES);
        Ok(body)
    }

    /// Reads until the answer's end, or as far as it goes.
    async fn read(
        &self,
        response: &mut reqwest::Response,
        answer: &mut Answer,
        reader: &mut dyn Reader,
        clock: &Clock,
        idle: Duration,
        watch: &mut dyn Watch,
    ) -> Ending {
        let host = &self.target.host;
        let mut frames = Frames::new(self.wire.framing());
        loop {
            let idle = if answer.stop.is_some() { idle.min(GRACE) } else { idle };
            let bytes = match clock.wait(response.chunk(), idle, host, watch).await {
                Err(Unanswered::Cancelled) => return Ending::Cancelled,
                Err(Unanswered::Failed(failure)) => return Ending::Broken(failure),
                Ok(Err(error)) => {
                    // What the connection cut off may be whole nevertheless.
                    if let Some(text) = frames.end() {
                        let _ = self.take(&text, answer, reader, watch);
                    }
                    return Ending::Broken(transport::failure(&error, host, clock.timeouts.connect));
                }
                Ok(Ok(None)) => {
                    let Some(text) = frames.end() else { return Ending::Over };
                    return match self.take(&text, answer, reader, watch) {
                        Ok(()) => Ending::Over,
                        Err(_) if is_cut(&text, answer.heard) => Ending::Cut,
                        Err(failure) => Ending::Broken(failure),
                    };
                }
                Ok(Ok(Some(bytes))) => bytes,
            };
            watch.progress(Progress::Bytes(bytes.len()));
            let texts = match frames.push(&bytes) {
                Ok(texts) => texts,
                Err(large) => return Ending::Broken(self.too_large(large)),
            };
            for text in texts {
                match self.take(&text, answer, reader, watch) {
                    Err(failure) => return Ending::Broken(failure),
                    Ok(()) if answer.finished => return Ending::Over,
                    Ok(()) => {}
                }
            }
        }
    }

    /// Takes one text of the stream into the answer.
    fn take(
        &self,
        text: &[u8],
        answer: &mut Answer,
        reader: &mut dyn Reader,
        watch: &mut dyn Watch,
    ) -> Result<(), Failure> {
        if text.trim_ascii() == b"[DONE]" {
            (answer.finished, answer.heard) = (true, true);
            return Ok(());
        }
        let event = frames::json(text).map_err(|_| failure::unreadable(&self.target.host, text, &self.key))?;
        let said = answer.text.len();
        let taken = reader.read(&event, answer);
        if answer.text.len() > said {
            let mut text = answer.text[said..].to_owned();
            self.key.hide_in_answer(&mut text);
            watch.progress(Progress::Text(text));
        }
        taken.map_err(|trouble| match trouble {
            Trouble::TooLarge(large) => self.too_large(large),
            Trouble::Server(error) => error.failure(&self.target.host, &self.key),
        })
    }

    fn too_large(&self, TooLarge(what): TooLarge) -> Failure {
        let failure = Failure::new(ErrorClass::Malformed, format!("{} sent {what}", self.target.host));
        // It would again.
        Failure { retry: Retry::Never, ..failure }
    }

    /// What came of a request whose answer has ended so.
    fn judge(&self, answer: Answer, ending: Ending) -> Result<Response, Unanswered> {
        if matches!(ending, Ending::Cancelled) {
            return Err(Unanswered::Cancelled);
        }
        if answer.finished || answer.stop.is_some() {
            return Ok(answer.complete(&self.key));
        }
        let heard = answer.heard;
        if let Some(response) = answer.interrupted(&self.key) {
            return Ok(response);
        }
        let host = &self.target.host;
        Err(Unanswered::Failed(match ending {
            Ending::Broken(failure) => failure,
            Ending::Cut => {
                Failure::new(ErrorClass::Network, format!("the connection to {host} ended within its answer"))
            }
            _ if heard => Failure::new(ErrorClass::Network, format!("{host} ended its answer before it said anything")),
            _ => Failure::new(
                ErrorClass::Malformed,
                format!("{host} sent no answer of kind {:?}", self.endpoint.kind.word()),
            ),
        }))
    }

    /// Leaves out what the server objects to, if the request has it and can do without.
    fn adapt(&mut self, failure: &Failure, request: &ChatRequest) -> bool {
        let objected = |words: &[&str]| words.iter().any(|word| failure.objection.contains(word));
        let found = {
            let ask = self.ask();
            self.wire.extras().iter().find(|(extra, words)| ask.sends(*extra, request) && objected(words))
        };
        let about_the_form = matches!(failure.class, ErrorClass::Configuration | ErrorClass::Overloaded);
        match found.filter(|_| failure.rejected && about_the_form) {
            Some((extra, _)) => {
                tracing::info!(reviewer = self.endpoint.name, ?extra, "the server does not know it: left out");
                self.left_out.insert(*extra)
            }
            None => false,
        }
    }

    /// Waits before the next attempt.
    fn pause(&mut self, time: Duration, reason: String, watch: &mut dyn Watch) -> Result<(), ChatError> {
        watch.progress(Progress::Waiting { reason, wait_ms: u64::try_from(time.as_millis()).unwrap_or(u64::MAX) });
        let mut left = time;
        while !left.is_zero() {
            if watch.cancelled() {
                return Err(ChatError::cancelled());
            }
            let nap = left.min(LOOK);
            self.pace.sleep(nap);
            left -= nap;
        }
        Ok(())
    }
}

/// Whether this is the beginning of a JSON text, or of another word of a server that speaks the format.
fn is_cut(text: &[u8], heard: bool) -> bool {
    serde_json::from_slice::<IgnoredAny>(text).is_err_and(|error| heard || error.is_eof())
}

impl Chat for HttpChat {
    fn respond(&mut self, request: &ChatRequest, watch: &mut dyn Watch) -> Result<Response, ChatError> {
        let mut attempt = 1;
        loop {
            let failure = match self.send(request, watch) {
                Ok(response) => return Ok(response),
                Err(Unanswered::Cancelled) => return Err(ChatError::cancelled()),
                Err(Unanswered::Failed(failure)) => failure,
            };
            // Nothing was paid for what was refused: this is no other attempt.
            if self.adapt(&failure, request) {
                continue;
            }
            let asked = match failure.retry {
                Retry::After(asked) if attempt < self.endpoint.attempts => asked,
                _ => return Err(failure.into_error(&self.endpoint.name, self.endpoint.kind, attempt)),
            };
            if let Some(asked) = asked.filter(|asked| *asked > LONGEST_WAIT) {
                let what = format!("{} (try again in {} s)", failure.what, asked.as_secs());
                return Err(Failure { what, ..failure }.into_error(&self.endpoint.name, self.endpoint.kind, attempt));
            }
            let wait = pace::wait(attempt, asked, self.pace.as_mut());
            self.pause(wait, failure.what, watch)?;
            attempt += 1;
        }
    }

    /// `None` once the server has said that the model takes no tools.
    fn tools(&self) -> Tools {
        if self.left_out.contains(&Extra::Tools) { Tools::None } else { Tools::Native }
    }
}
