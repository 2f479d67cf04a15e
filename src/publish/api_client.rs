//! Sends requests to the API of a code host: waits as the host asks, and repeats what cannot do harm twice.
//!
//! - The token is in one header of requests to the configured host. No redirect is followed.
//! - The wait of all requests together is bounded, so that a command ends.
//! - A request that creates something is repeated only if the host surely stored nothing. Otherwise the failure is
//!   [`ApiFailure::Uncertain`], and the caller looks first.

use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Method, StatusCode, Url};
use serde_json::Value;
use thiserror::Error;
use tokio::runtime::{Builder, Runtime};

use super::error::PublishError;
use crate::domain::text::sanitize_line;
use crate::reviewers::http::{
    ApiKey, BackoffClock, build_client_for, connection_failure, describe_exposed_key, exposes_key, parse_retry_after,
    retry_delay,
};

/// Default bound of the wait of all requests together. The common limits of hosts count by the minute.
pub const DEFAULT_MAX_WAIT: Duration = Duration::from_secs(600);
/// Limit for a connection, including TLS.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// Limit for an answer. GitHub ends its own work after 10 s; a server behind a proxy may be slower.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum number of times that a request is sent.
const MAX_ATTEMPTS: u32 = 6;
/// Wait after a rate limit that names no time; it doubles with each attempt. GitHub asks for at least a minute.
const DEFAULT_LIMIT_WAIT: Duration = Duration::from_secs(60);
/// Maximum size of an answer in bytes. A page of 100 files with their diffs is the largest.
const MAX_ANSWER_BYTES: usize = 64 << 20;
/// Maximum number of characters of a host's words in a message.
const MAX_SHOWN_CHARS: usize = 300;
/// Maximum number of pages of a list. With 100 rows a page, no change has more.
const MAX_PAGES: u32 = 1_000;

/// Address and token of a host.
#[derive(Debug, Clone)]
pub struct ApiConnection {
    /// Base address of the API.
    pub base: Url,
    /// Variable or option that gives the address, for messages.
    pub address_name: String,
    /// Token.
    pub key: ApiKey,
    /// Header that carries the token, and the text before it.
    pub key_header: (&'static str, &'static str),
    /// Further headers.
    pub headers: Vec<(&'static str, &'static str)>,
}

impl ApiConnection {
    /// Parses the base address.
    ///
    /// # Errors
    ///
    /// Returns an error for an address that is not HTTP, names no host or contains credentials, and for plain http to
    /// another machine.
    pub fn parse_base(address: &str, address_name: &str) -> Result<Url, PublishError> {
        let wrong = |problem: String| PublishError::Address { variable: address_name.to_owned(), problem };
        let mut base = Url::parse(address.trim()).map_err(|error| wrong(format!("it is no address ({error})")))?;
        if !matches!(base.scheme(), "http" | "https") || base.host_str().is_none() {
            return Err(wrong("it is no http or https address".to_owned()));
        }
        if !base.username().is_empty() || base.password().is_some() {
            return Err(wrong("it holds a name or a password".to_owned()));
        }
        if exposes_key(&base) {
            let said = describe_exposed_key(&host_and_port(&base));
            // No setting allows it here: a token for code may do more harm than a key for a model.
            let said = said.split(", or set").next().unwrap_or(&said).replace("the key", "the token");
            return Err(wrong(said));
        }
        base.set_fragment(None);
        base.set_query(None);
        Ok(base)
    }
}

fn host_and_port(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// Returns an address below `base`, with each segment encoded.
pub fn join_url(base: &Url, segments: &[&str]) -> Url {
    let mut url = base.clone();
    // Fails only for an address without a host.
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().extend(segments);
    }
    url
}

/// Effect of sending a request twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RepeatEffect {
    /// None: the request reads, or sets a state.
    Same,
    /// A second comment.
    Duplicate,
}

/// Request to a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiRequest {
    /// Method of HTTP.
    pub method: Method,
    /// Address with its query.
    pub url: Url,
    /// JSON body; `None` for a request that reads or removes.
    pub body: Option<Value>,
    /// Effect of sending it twice.
    pub repeat: RepeatEffect,
}

impl ApiRequest {
    /// Creates a request that reads.
    pub fn read(url: Url) -> Self {
        Self { method: Method::GET, url, body: None, repeat: RepeatEffect::Same }
    }

    /// Creates a request that sets a state, or asks with a body.
    pub fn write(method: Method, url: Url, body: Value) -> Self {
        Self { method, url, body: Some(body), repeat: RepeatEffect::Same }
    }

    /// Creates a request that removes something.
    pub fn remove(url: Url) -> Self {
        Self { method: Method::DELETE, url, body: None, repeat: RepeatEffect::Same }
    }

    /// Creates a request that posts a comment.
    pub fn create(url: Url, body: Value) -> Self {
        Self { method: Method::POST, url, body: Some(body), repeat: RepeatEffect::Duplicate }
    }
}

/// Answer with a status of success.
#[derive(Debug, Clone, PartialEq)]
pub struct ApiResponse {
    /// JSON body; null if it is empty.
    pub body: Value,
    /// `true` if the list goes on on another page.
    pub has_next_page: bool,
}

/// The reason why a request has no answer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ApiFailure {
    /// The host refused the request for good.
    #[error("{message}")]
    Refused {
        /// Status of HTTP.
        status: u16,
        /// Status and words of the host.
        message: String,
    },
    /// The request failed, and the host may have stored the comment nevertheless.
    #[error("{message}")]
    Uncertain {
        /// Description of the failure.
        message: String,
        /// Wait that the host asks for.
        asked: Option<Duration>,
    },
    /// The host asks to wait longer than allowed.
    #[error("{message}")]
    Limited {
        /// Description with the wait.
        message: String,
    },
    /// The host failed too often, or sends something else than an answer.
    #[error("{message}")]
    Unavailable {
        /// Description of the last failure.
        message: String,
    },
}

/// The failure of one attempt.
enum AttemptFailure {
    Final(ApiFailure),
    /// The host stored nothing and asks to wait; `None` if it names no time.
    Limited(String, Option<Duration>),
    /// It may pass by itself. `true` if the host may have stored something.
    Transient(String, Option<Duration>, bool),
}

/// Client of one host.
pub struct ApiClient {
    connection: ApiConnection,
    host: String,
    headers: HeaderMap,
    client: Client,
    runtime: Runtime,
    pace: Box<dyn BackoffClock>,
    /// Wait that is left.
    patience: Duration,
    /// Description of a rate limit that lasts longer. Hosts ban clients that go on regardless.
    limited: Option<String>,
    /// Receives a line before a wait of a second or more.
    on_wait: Box<dyn Fn(&str)>,
}

impl std::fmt::Debug for ApiClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApiClient").field("host", &self.host).field("patience", &self.patience).finish_non_exhaustive()
    }
}

impl ApiClient {
    /// Opens a client. Sends nothing yet. `on_wait` receives a line before a long wait.
    ///
    /// # Errors
    ///
    /// Returns an error if no header can carry the token, or if TLS cannot be set up.
    pub fn open(
        connection: ApiConnection,
        pace: Box<dyn BackoffClock>,
        max_wait: Duration,
        on_wait: Box<dyn Fn(&str)>,
    ) -> Result<Self, PublishError> {
        let host = host_and_port(&connection.base);
        let setup = |problem: String| PublishError::Address { variable: connection.address_name.clone(), problem };
        let client = build_client_for(&connection.base, &host, CONNECT_TIMEOUT, None)
            .map_err(|failure| setup(failure.message))?;
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| setup(format!("cannot start the network runtime: {error}")))?;
        let mut headers = HeaderMap::new();
        for (name, value) in &connection.headers {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        let (name, before) = connection.key_header;
        let key = connection.key.expose().unwrap_or_default();
        let mut value = HeaderValue::from_str(&format!("{before}{key}")).map_err(|_| PublishError::Token {
            problem: "the token holds characters that no header can carry".to_owned(),
        })?;
        value.set_sensitive(true);
        headers.insert(HeaderName::from_static(name), value);
        Ok(Self { connection, host, headers, client, runtime, pace, patience: max_wait, limited: None, on_wait })
    }

    /// Sends a request, and repeats it after failures that can pass. After a wait that is longer than allowed, nothing is
    /// sent any more.
    ///
    /// # Errors
    ///
    /// Returns the reason if there is no answer; see [`ApiFailure`].
    pub fn send(&mut self, request: &ApiRequest) -> Result<ApiResponse, ApiFailure> {
        if let Some(message) = &self.limited {
            return Err(ApiFailure::Limited { message: message.clone() });
        }
        let mut attempt = 1;
        loop {
            let failure = match self.send_once(request) {
                Ok(response) => return Ok(response),
                Err(failure) => failure,
            };
            let (message, wait) = match failure {
                AttemptFailure::Final(failure) => return Err(failure),
                AttemptFailure::Transient(message, asked, true) if request.repeat == RepeatEffect::Duplicate => {
                    return Err(ApiFailure::Uncertain { message, asked });
                }
                AttemptFailure::Limited(message, asked) => {
                    let asked = asked.unwrap_or(DEFAULT_LIMIT_WAIT.saturating_mul(1 << (attempt - 1)));
                    (message, retry_delay(attempt, Some(asked), self.pace.as_mut()))
                }
                AttemptFailure::Transient(message, asked, _) => {
                    (message, retry_delay(attempt, asked, self.pace.as_mut()))
                }
            };
            if attempt >= MAX_ATTEMPTS {
                return Err(ApiFailure::Unavailable { message: format!("{message} ({attempt} attempts)") });
            }
            self.wait(wait, &message)?;
            attempt += 1;
        }
    }

    /// Reads all pages of a list, with `rows` rows a page.
    ///
    /// # Errors
    ///
    /// Returns the reason if a page has no answer or is no list. A list is whole or an error.
    pub fn read_list(&mut self, url: &Url, rows: u32) -> Result<Vec<Value>, ApiFailure> {
        let mut all = Vec::new();
        for page in 1..=MAX_PAGES {
            let mut url = url.clone();
            url.query_pairs_mut().append_pair("per_page", &rows.to_string()).append_pair("page", &page.to_string());
            let answer = self.send(&ApiRequest::read(url))?;
            let Value::Array(found) = answer.body else {
                return Err(ApiFailure::Unavailable {
                    message: format!("{} sent something else than a list", self.host),
                });
            };
            all.extend(found);
            if !answer.has_next_page {
                return Ok(all);
            }
        }
        Err(ApiFailure::Unavailable { message: format!("{} sends more than {MAX_PAGES} pages", self.host) })
    }

    /// Waits before the attempt after `attempt` (1-based) of a request whose outcome is uncertain.
    ///
    /// # Errors
    ///
    /// Returns [`ApiFailure::Limited`] if the wait is longer than allowed.
    pub fn wait_after(&mut self, attempt: u32, message: &str, asked: Option<Duration>) -> Result<(), ApiFailure> {
        let wait = retry_delay(attempt, asked, self.pace.as_mut());
        self.wait(wait, message)
    }

    fn wait(&mut self, time: Duration, message: &str) -> Result<(), ApiFailure> {
        let seconds = time.as_secs();
        let Some(left) = self.patience.checked_sub(time) else {
            let message = format!("{message}; it asks to wait {seconds} s, longer than --max-wait allows");
            self.limited = Some(message.clone());
            return Err(ApiFailure::Limited { message });
        };
        self.patience = left;
        if seconds > 0 {
            (self.on_wait)(&format!("{message}; waiting {seconds} s"));
        }
        if !time.is_zero() {
            self.pace.sleep(time);
        }
        Ok(())
    }

    fn send_once(&self, request: &ApiRequest) -> Result<ApiResponse, AttemptFailure> {
        let mut sent = self
            .client
            .request(request.method.clone(), request.url.clone())
            .headers(self.headers.clone())
            .timeout(ANSWER_TIMEOUT);
        if let Some(body) = &request.body {
            sent = sent.header("content-type", "application/json").body(body.to_string());
        }
        let received = self.runtime.block_on(async {
            let mut response = sent.send().await?;
            let (status, headers) = (response.status(), response.headers().clone());
            let mut body = Vec::new();
            while let Some(bytes) = response.chunk().await? {
                body.extend_from_slice(&bytes);
                if body.len() > MAX_ANSWER_BYTES {
                    break;
                }
            }
            Ok((status, headers, body))
        });
        let (status, headers, body) = received.map_err(|error: reqwest::Error| self.connection_failure(&error))?;
        if body.len() > MAX_ANSWER_BYTES {
            let message = format!("{} sent more than {} MiB", self.host, MAX_ANSWER_BYTES >> 20);
            return Err(AttemptFailure::Final(ApiFailure::Unavailable { message }));
        }
        if !status.is_success() {
            return Err(self.status_failure(status, &headers, &body));
        }
        let parsed = if body.trim_ascii().is_empty() { Ok(Value::Null) } else { serde_json::from_slice(&body) };
        match parsed {
            Ok(body) => Ok(ApiResponse { body, has_next_page: has_next_page(&headers) }),
            Err(_) => {
                Err(AttemptFailure::Transient(format!("{} sent something else than JSON", self.host), None, true))
            }
        }
    }

    fn connection_failure(&self, error: &reqwest::Error) -> AttemptFailure {
        let message = match error.is_timeout() && !error.is_connect() {
            true => format!("{} sent no answer within {} s", self.host, ANSWER_TIMEOUT.as_secs()),
            false => connection_failure(error, &self.host, CONNECT_TIMEOUT).message,
        };
        let message = self.connection.key.redact(&message);
        if error.is_builder() {
            return AttemptFailure::Final(ApiFailure::Unavailable { message });
        }
        AttemptFailure::Transient(message, None, !error.is_connect())
    }

    fn status_failure(&self, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> AttemptFailure {
        let said = self.connection.key.redact(&describe_body(body));
        let said: String = sanitize_line(said.trim()).chars().take(MAX_SHOWN_CHARS).collect();
        let code = status.as_u16();
        let message = match said.is_empty() {
            true => format!("{} answered with {code}", self.host),
            false => format!("{} answered with {code}: {said}", self.host),
        };
        let asked = limit_wait(headers);
        let lower = said.to_ascii_lowercase();
        let is_limit = code == 429
            || (code == 403 && (asked.is_some() || lower.contains("rate limit") || lower.contains("abuse")))
            // GitHub says so about comments that follow too fast.
            || (code == 422 && lower.contains("submitted too quickly"));
        if is_limit {
            return AttemptFailure::Limited(message, asked);
        }
        if code >= 500 || code == 408 {
            return AttemptFailure::Transient(message, parse_retry_after(headers), true);
        }
        if status.is_redirection() {
            let message = format!("{message}; redirects are not followed with a token: has the repository moved?");
            return AttemptFailure::Final(ApiFailure::Refused { status: code, message });
        }
        AttemptFailure::Final(ApiFailure::Refused { status: code, message })
    }
}

/// Returns `true` if headers name another page, as GitHub (`link`) or GitLab (`x-next-page`) do.
fn has_next_page(headers: &HeaderMap) -> bool {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    text("link").contains("rel=\"next\"") || !text("x-next-page").trim().is_empty()
}

/// Returns the wait that the headers of a rate limit ask for: `retry-after`, or the reset of a limit that is used up.
fn limit_wait(headers: &HeaderMap) -> Option<Duration> {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<i64>().ok();
    let reset_of = |left: &str, reset: &str| (number(left) == Some(0)).then(|| number(reset)).flatten();
    let until_reset = || {
        let reset = reset_of("x-ratelimit-remaining", "x-ratelimit-reset")
            .or_else(|| reset_of("ratelimit-remaining", "ratelimit-reset"))?;
        // The clock of the host counts: that of this machine may be wrong by minutes.
        let date = headers.get("date").and_then(|date| date.to_str().ok());
        let now = date.and_then(|date| jiff::fmt::rfc2822::parse(date).ok()).map(|date| date.timestamp());
        let now = now.unwrap_or_else(jiff::Timestamp::now).as_second();
        Some(Duration::from_secs(u64::try_from(reset.saturating_sub(now)).unwrap_or(0)))
    };
    parse_retry_after(headers).or_else(until_reset)
}

/// Describes the body of an error: `message` with its `errors` (GitHub), `message` or `error` (GitLab).
fn describe_body(body: &[u8]) -> String {
    let Ok(value) = serde_json::from_slice::<Value>(body) else { return String::new() };
    let shown = |value: &Value| match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let detail = |error: &Value| match error.get("message").and_then(Value::as_str) {
        Some(text) => text.to_owned(),
        None => match (error.get("field").and_then(Value::as_str), error.get("code").and_then(Value::as_str)) {
            (Some(field), Some(code)) => format!("{field}: {code}"),
            _ => shown(error),
        },
    };
    let details = value.get("errors").and_then(Value::as_array).into_iter().flatten().take(5).map(detail);
    let first = [&value["message"], &value["error"]].into_iter().map(shown).find(|text| !text.is_empty());
    first.into_iter().chain(details).collect::<Vec<_>>().join("; ")
}
