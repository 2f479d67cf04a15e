//! Sends a request, reads the answer as it arrives, and waits and retries where a retry helps.
//!
//! - After a usable part of an answer has arrived, nothing is sent again.
//! - The observer is asked at least every 50 ms. If it asks to stop, the connection is closed.
//! - No state of the network outlives an answer: no runtime, no connection.

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::pin;
use std::time::{Duration, Instant};

use reqwest::Client;
use reqwest::header::HeaderMap;
use serde::de::IgnoredAny;
use tokio::runtime::Builder;

use super::Endpoint;
use super::api_key::ApiKey;
use super::backoff::{self, BackoffClock, MAX_RETRY_AFTER};
use super::failure::{self, HttpFailure, Retry, ServerError};
use super::response_builder::{ResponseBuilder, ResponseTooLarge};
use super::sse::{self, StreamDecoder};
use super::transport::{self, ServerUrl};
use super::wire::{self, EventError, OptionalField, RequestOptions, ResponseReader, WireFormat};
use crate::domain::text::sanitize_line;
use crate::domain::{ChatRequest, ChatResponse, ErrorClass};
use crate::reviewers::chat::{
    AnswerTimeouts, CANCEL_CHECK_INTERVAL, Chat, ChatError, ChatObserver, ChatProgress, ToolSupport,
};

/// Maximum wait for the end of a stream after the model has reported why it stopped. Token usage may arrive in this
/// time.
const STREAM_END_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of bytes that are read from the body of an error.
const MAX_ERROR_BODY_BYTES: usize = 64 * 1024;

/// A model behind an HTTP API.
pub struct HttpChat {
    endpoint: Endpoint,
    key: ApiKey,
    wire: &'static dyn WireFormat,
    target: ServerUrl,
    headers: HeaderMap,
    client: Client,
    pace: Box<dyn BackoffClock>,
    /// Optional fields that the server rejected. Later requests omit them.
    unsupported: BTreeSet<OptionalField>,
}

impl std::fmt::Debug for HttpChat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpChat").field("endpoint", &self.endpoint).field("left_out", &self.unsupported).finish()
    }
}

/// The reason why a request has no answer.
enum RequestError {
    Cancelled,
    Failed(HttpFailure),
}

impl From<HttpFailure> for RequestError {
    fn from(failure: HttpFailure) -> Self {
        Self::Failed(failure)
    }
}

/// The reason why the reading of a response ended.
enum StreamEnd {
    /// The server reported the end, or closed the connection.
    Complete,
    /// The connection ended inside an event.
    Truncated,
    Broken(HttpFailure),
    Cancelled,
}

/// The time limits of one request.
struct RequestClock {
    timeouts: AnswerTimeouts,
    deadline: Instant,
}

impl RequestClock {
    /// Waits for `future` and checks the observer meanwhile. Fails after `idle` without a result, or at the deadline of
    /// the request.
    async fn wait_for<F: Future>(
        &self,
        future: F,
        idle: Duration,
        host: &str,
        watch: &dyn ChatObserver,
    ) -> Result<F::Output, RequestError> {
        let mut future = pin!(future);
        let started = Instant::now();
        loop {
            if watch.is_cancelled() {
                return Err(RequestError::Cancelled);
            }
            let left = self.deadline.saturating_duration_since(Instant::now());
            let idle_left = idle.saturating_sub(started.elapsed());
            let slice = CANCEL_CHECK_INTERVAL.min(left).min(idle_left);
            if slice.is_zero() {
                let what = match left.is_zero() {
                    true => format!("{host} took more than {} s for an answer", self.timeouts.total.as_secs_f32()),
                    false => format!("{host} sent nothing for {} s", idle.as_secs_f32()),
                };
                let failure = HttpFailure::new(ErrorClass::Timeout, what);
                // Another request would take as long.
                let retry = if left.is_zero() { Retry::Never } else { failure.retry };
                return Err(RequestError::Failed(HttpFailure { retry, ..failure }));
            }
            if let Ok(output) = tokio::time::timeout(slice, future.as_mut()).await {
                return Ok(output);
            }
        }
    }
}

impl HttpChat {
    pub(super) fn new(endpoint: Endpoint, pace: Box<dyn BackoffClock>) -> Result<Self, ChatError> {
        let failed = |failure: HttpFailure| failure.into_error(&endpoint.name, endpoint.kind, 1);
        let Some(wire) = wire::from_kind(endpoint.kind) else {
            let what = format!("a reviewer of kind {:?} talks to no server", endpoint.kind.word());
            return Err(failed(HttpFailure::new(ErrorClass::Configuration, what)));
        };
        if endpoint.model.trim().is_empty() || sanitize_line(&endpoint.model) != endpoint.model {
            let what = format!("{:?} is no name of a model", sanitize_line(&endpoint.model));
            return Err(failed(HttpFailure::new(ErrorClass::Configuration, what)));
        }
        let key = ApiKey::new(endpoint.key.clone());
        let target = ServerUrl::new(endpoint.base_url.as_deref(), wire).map_err(failed)?;
        target.check_key(&key, endpoint.insecure_http).map_err(failed)?;
        if key.expose().is_none() && endpoint.base_url.is_none() && endpoint.kind.default_key_variable().is_some() {
            return Err(failed(HttpFailure::new(
                ErrorClass::Auth,
                format!("{} wants a key and there is none", target.host),
            )));
        }
        let headers = transport::build_headers(wire, &key).map_err(failed)?;
        let client = transport::build_client(&endpoint, &target).map_err(failed)?;
        Ok(Self { endpoint, key, wire, target, headers, client, pace, unsupported: BTreeSet::new() })
    }

    fn request_options(&self) -> RequestOptions<'_> {
        RequestOptions {
            model: &self.endpoint.model,
            effort: self.endpoint.effort,
            window: self.endpoint.window,
            is_official: self.target.is_official(self.wire),
            unsupported: &self.unsupported,
        }
    }

    /// Sends the request once, without retries.
    fn send_once(&self, request: &ChatRequest, watch: &mut dyn ChatObserver) -> Result<ChatResponse, RequestError> {
        let failed =
            |error| HttpFailure::new(ErrorClass::Internal, format!("cannot start the network runtime: {error}"));
        let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let outcome = runtime.block_on(self.exchange(request, watch));
        // Shutting down the runtime closes the connection, so that the server stops generating an answer that nobody
        // reads. A DNS lookup under way is not awaited.
        runtime.shutdown_background();
        outcome
    }

    async fn exchange(
        &self,
        request: &ChatRequest,
        watch: &mut dyn ChatObserver,
    ) -> Result<ChatResponse, RequestError> {
        let (ask, host) = (self.request_options(), &self.target.host);
        let timeouts = self.endpoint.timeouts;
        let clock = RequestClock { timeouts, deadline: Instant::now() + timeouts.total };
        // Without streaming, the first byte arrives only when the answer is complete.
        let idle = if ask.is_streaming() { timeouts.idle } else { timeouts.total };
        let body = self.wire.build_body(request, &ask).to_string();
        let sent =
            self.client.post(self.wire.request_url(&self.target, &ask)).headers(self.headers.clone()).body(body).send();
        watch.on_progress(ChatProgress::Sent);
        let mut response = clock
            .wait_for(sent, idle, host, watch)
            .await?
            .map_err(|error| transport::connection_failure(&error, host, self.endpoint.connect_timeout))?;
        if !response.status().is_success() {
            let body = self.read_error_body(&mut response, &clock, watch).await?;
            let error = ServerError::from_response(response.status().as_u16(), response.headers(), &body);
            return Err(error.into_failure(host, &self.key).into());
        }
        let mut answer = ResponseBuilder::default();
        let mut reader = self.wire.new_reader(&self.endpoint.model);
        let ending = self.read_response(&mut response, &mut answer, reader.as_mut(), &clock, idle, watch).await;
        self.finish_response(answer, ending)
    }

    /// Reads the body of an error, as far as it arrives, up to [`MAX_ERROR_BODY_BYTES`].
    async fn read_error_body(
        &self,
        response: &mut reqwest::Response,
        clock: &RequestClock,
        watch: &dyn ChatObserver,
    ) -> Result<Vec<u8>, RequestError> {
        let mut body = Vec::new();
        while body.len() < MAX_ERROR_BODY_BYTES {
            match clock
                .wait_for(response.chunk(), clock.timeouts.idle.min(STREAM_END_TIMEOUT), &self.target.host, watch)
                .await
            {
                Ok(Ok(Some(bytes))) => body.extend_from_slice(&bytes),
                Err(RequestError::Cancelled) => return Err(RequestError::Cancelled),
                _ => break,
            }
        }
        body.truncate(MAX_ERROR_BODY_BYTES);
        Ok(body)
    }

    /// Reads events into `answer` until the end of the response, or until the connection breaks.
    async fn read_response(
        &self,
        response: &mut reqwest::Response,
        answer: &mut ResponseBuilder,
        reader: &mut dyn ResponseReader,
        clock: &RequestClock,
        idle: Duration,
        watch: &mut dyn ChatObserver,
    ) -> StreamEnd {
        let host = &self.target.host;
        let mut frames = StreamDecoder::new(self.wire.framing());
        loop {
            let idle = if answer.stop.is_some() { idle.min(STREAM_END_TIMEOUT) } else { idle };
            let bytes = match clock.wait_for(response.chunk(), idle, host, watch).await {
                Err(RequestError::Cancelled) => return StreamEnd::Cancelled,
                Err(RequestError::Failed(failure)) => return StreamEnd::Broken(failure),
                Ok(Err(error)) => {
                    // The connection broke, but the last event may be complete.
                    if let Some(text) = frames.finish() {
                        let _ = self.apply_event(&text, answer, reader, watch);
                    }
                    return StreamEnd::Broken(transport::connection_failure(
                        &error,
                        host,
                        self.endpoint.connect_timeout,
                    ));
                }
                Ok(Ok(None)) => {
                    let Some(text) = frames.finish() else { return StreamEnd::Complete };
                    return match self.apply_event(&text, answer, reader, watch) {
                        Ok(()) => StreamEnd::Complete,
                        Err(_) if is_truncated(&text, answer.is_recognized) => StreamEnd::Truncated,
                        Err(failure) => StreamEnd::Broken(failure),
                    };
                }
                Ok(Ok(Some(bytes))) => bytes,
            };
            watch.on_progress(ChatProgress::Bytes(bytes.len()));
            let texts = match frames.push(&bytes) {
                Ok(texts) => texts,
                Err(large) => return StreamEnd::Broken(self.too_large_failure(large)),
            };
            for text in texts {
                match self.apply_event(&text, answer, reader, watch) {
                    Err(failure) => return StreamEnd::Broken(failure),
                    Ok(()) if answer.finished => return StreamEnd::Complete,
                    Ok(()) => {}
                }
            }
        }
    }

    /// Applies one JSON text of the stream to the answer.
    fn apply_event(
        &self,
        text: &[u8],
        answer: &mut ResponseBuilder,
        reader: &mut dyn ResponseReader,
        watch: &mut dyn ChatObserver,
    ) -> Result<(), HttpFailure> {
        if text.trim_ascii() == b"[DONE]" {
            (answer.finished, answer.is_recognized) = (true, true);
            return Ok(());
        }
        let event =
            sse::parse_json(text).map_err(|_| failure::unreadable_failure(&self.target.host, text, &self.key))?;
        let said = answer.text.len();
        let taken = reader.read_event(&event, answer);
        if answer.text.len() > said {
            let mut text = answer.text[said..].to_owned();
            self.key.redact_in_place(&mut text);
            watch.on_progress(ChatProgress::Text(text));
        }
        taken.map_err(|trouble| match trouble {
            EventError::TooLarge(large) => self.too_large_failure(large),
            EventError::Server(error) => error.into_failure(&self.target.host, &self.key),
        })
    }

    fn too_large_failure(&self, ResponseTooLarge(what): ResponseTooLarge) -> HttpFailure {
        let failure = HttpFailure::new(ErrorClass::Malformed, format!("{} sent {what}", self.target.host));
        // The server would send the same again.
        HttpFailure { retry: Retry::Never, ..failure }
    }

    /// Decides between the answer and an error, after the reading ended with `ending`.
    fn finish_response(&self, answer: ResponseBuilder, ending: StreamEnd) -> Result<ChatResponse, RequestError> {
        if matches!(ending, StreamEnd::Cancelled) {
            return Err(RequestError::Cancelled);
        }
        if answer.finished || answer.stop.is_some() {
            return Ok(answer.into_response(&self.key));
        }
        let heard = answer.is_recognized;
        if let Some(response) = answer.into_interrupted_response(&self.key) {
            return Ok(response);
        }
        let host = &self.target.host;
        let failure = match ending {
            StreamEnd::Broken(failure) => failure,
            StreamEnd::Truncated => {
                HttpFailure::new(ErrorClass::Network, format!("the connection to {host} ended within its answer"))
            }
            _ if heard => {
                HttpFailure::new(ErrorClass::Network, format!("{host} ended its answer before it said anything"))
            }
            _ => HttpFailure::new(
                ErrorClass::Malformed,
                format!("{host} sent no answer of kind {:?}", self.endpoint.kind.word()),
            ),
        };
        Err(RequestError::Failed(HttpFailure { has_begun: heard, ..failure }))
    }

    /// Omits the field that the server rejected from later requests. Returns `false` if the request did not contain
    /// such a field, or cannot work without it.
    fn omit_rejected_field(&mut self, failure: &HttpFailure, request: &ChatRequest) -> bool {
        let objected = |words: &[&str]| words.iter().any(|word| failure.objection.contains(word));
        let found = {
            let ask = self.request_options();
            self.wire.optional_fields().iter().find(|(extra, words)| ask.sends(*extra, request) && objected(words))
        };
        let about_the_form = matches!(failure.class, ErrorClass::Configuration | ErrorClass::Overloaded);
        match found.filter(|_| failure.rejected && about_the_form) {
            Some((extra, _)) => {
                tracing::info!(reviewer = self.endpoint.name, ?extra, "the server does not know it: left out");
                self.unsupported.insert(*extra)
            }
            None => false,
        }
    }

    /// Waits before the next attempt, and reports the wait to the observer.
    fn wait_before_retry(
        &mut self,
        time: Duration,
        reason: String,
        watch: &mut dyn ChatObserver,
    ) -> Result<(), ChatError> {
        watch.on_progress(ChatProgress::Waiting {
            reason,
            wait_ms: u64::try_from(time.as_millis()).unwrap_or(u64::MAX),
        });
        let mut left = time;
        while !left.is_zero() {
            if watch.is_cancelled() {
                return Err(ChatError::cancelled());
            }
            let nap = left.min(CANCEL_CHECK_INTERVAL);
            self.pace.sleep(nap);
            left -= nap;
        }
        Ok(())
    }
}

/// Returns `true` if the text is the beginning of a JSON text, or any broken text of a server that has already spoken
/// the format.
fn is_truncated(text: &[u8], heard: bool) -> bool {
    serde_json::from_slice::<IgnoredAny>(text).is_err_and(|error| heard || error.is_eof())
}

impl Chat for HttpChat {
    fn respond(&mut self, request: &ChatRequest, watch: &mut dyn ChatObserver) -> Result<ChatResponse, ChatError> {
        let mut attempt = 1;
        loop {
            let failure = match self.send_once(request, watch) {
                Ok(response) => return Ok(response),
                Err(RequestError::Cancelled) => return Err(ChatError::cancelled()),
                Err(RequestError::Failed(failure)) => failure,
            };
            if failure.may_be_charged() {
                watch.on_progress(ChatProgress::Lost);
            }
            // The server charged nothing for a rejected request: the new request is not a retry.
            if self.omit_rejected_field(&failure, request) {
                continue;
            }
            let asked = match failure.retry {
                Retry::After(asked) if attempt < self.endpoint.attempts => asked,
                _ => return Err(failure.into_error(&self.endpoint.name, self.endpoint.kind, attempt)),
            };
            if let Some(asked) = asked.filter(|asked| *asked > MAX_RETRY_AFTER) {
                let what = format!("{} (try again in {} s)", failure.message, asked.as_secs());
                return Err(HttpFailure { message: what, ..failure }.into_error(
                    &self.endpoint.name,
                    self.endpoint.kind,
                    attempt,
                ));
            }
            let wait = backoff::retry_delay(attempt, asked, self.pace.as_mut());
            self.wait_before_retry(wait, failure.message, watch)?;
            attempt += 1;
        }
    }

    /// Returns `None` (the variant) after the server has reported that the model takes no tools.
    fn tool_support(&self) -> ToolSupport {
        if self.unsupported.contains(&OptionalField::Tools) { ToolSupport::None } else { ToolSupport::Native }
    }
}
