//! Reads the errors of servers, and decides what to do next.
//!
//! - The text of a failure is one line of bounded length, without control characters and without the key.
//! - Only a failure that can pass by itself is retried.

use std::time::Duration;

use reqwest::header::HeaderMap;
use serde_json::Value;

use super::api_key::ApiKey;
use super::backoff;
use crate::config::ReviewerKind;
use crate::domain::ErrorClass;
use crate::domain::text::sanitize_line;
use crate::reviewers::chat::ChatError;
use crate::reviewers::error_class::classify_service_error;
use crate::reviewers::json_access::{items_at, str_at};

/// Maximum number of characters of a server's text in an error message.
const MAX_SHOWN_CHARS: usize = 300;
/// Maximum number of characters of a server's text that are classified.
const MAX_MESSAGE_CHARS: usize = 4096;

/// The retry rule of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    Never,
    /// Retry after this time, or after the client's own backoff if `None`.
    After(Option<Duration>),
}

/// The reason why a request has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpFailure {
    pub class: ErrorClass,
    /// Description of the problem in one line.
    pub message: String,
    pub retry: Retry,
    /// The server's complaint in lower case: its message, its codes and the name of the rejected field.
    pub objection: String,
    /// `true` if the server rejected the form of the request. A request with fewer fields may then succeed.
    pub rejected: bool,
    /// `true` if the server had begun an answer of the expected format.
    pub has_begun: bool,
}

impl HttpFailure {
    pub fn new(class: ErrorClass, what: impl Into<String>) -> Self {
        let retry = match class {
            ErrorClass::RateLimit
            | ErrorClass::Overloaded
            | ErrorClass::Network
            | ErrorClass::Malformed
            | ErrorClass::Timeout => Retry::After(None),
            _ => Retry::Never,
        };
        Self { class, message: what.into(), retry, objection: String::new(), rejected: false, has_begun: false }
    }

    /// Returns `true` if the provider may charge for an answer that came to nothing. It charges for none that it refuses.
    pub fn may_be_charged(&self) -> bool {
        match self.class {
            ErrorClass::Timeout => true,
            ErrorClass::Network | ErrorClass::Malformed => self.has_begun,
            _ => false,
        }
    }

    /// Converts the failure into the error of the reviewer `name`, with the number of attempts and the next step for
    /// the user.
    pub fn into_error(self, name: &str, kind: ReviewerKind, attempts: u32) -> ChatError {
        let tried = if attempts > 1 { format!(" ({attempts} attempts)") } else { String::new() };
        let next = match self.class {
            ErrorClass::Auth => {
                format!("set api_key_env or api_key_cmd of [reviewers.{name}] to a key that may use the model")
            }
            ErrorClass::Quota => "top up the account, raise its limit or take another reviewer".to_owned(),
            ErrorClass::RateLimit => "review again later, or take another reviewer".to_owned(),
            ErrorClass::Overloaded => {
                "the service has trouble: review again later, or take another reviewer".to_owned()
            }
            ErrorClass::ContextTooLong => "lower window.max_tokens, or take a model with a larger window".to_owned(),
            ErrorClass::Network if self.message.contains("certificate") => {
                "name the certificate of your server or proxy with ca_file or SSL_CERT_FILE".to_owned()
            }
            ErrorClass::Network => format!("check the network, the proxy and base_url of [reviewers.{name}]"),
            ErrorClass::Malformed => {
                format!("check that base_url of [reviewers.{name}] leads to a server of kind {:?}", kind.word())
            }
            ErrorClass::Timeout => "the model may be loading, thinking or overloaded: review again later".to_owned(),
            ErrorClass::Refused => "another reviewer may accept the code".to_owned(),
            _ => format!("check kind, model, effort and base_url of [reviewers.{name}]"),
        };
        ChatError::new(self.class, format!("{name}: {}{tried}; {next}", self.message))
    }
}

/// The error that a server reported in a response without success, or inside a stream.
#[derive(Debug, Default)]
pub struct ServerError {
    status: Option<u16>,
    /// Codes, types and reasons in lower case, separated by spaces.
    codes: String,
    message: String,
    /// The name of the rejected field.
    field: String,
    retry_after: Option<Duration>,
    /// The server said that a retry is useless.
    is_final: bool,
}

impl ServerError {
    /// Parses the error of a response without success.
    pub fn from_response(status: u16, headers: &HeaderMap, body: &[u8]) -> Self {
        let mut error = match serde_json::from_slice::<Value>(body) {
            Ok(value) => Self::from_value(&value),
            Err(_) => Self { message: summarize_body(body), ..Self::default() },
        };
        error.status = Some(status);
        error.retry_after = backoff::retry_after(headers).or(error.retry_after);
        error.is_final = headers.get("x-should-retry").is_some_and(|value| value == "false");
        if (300..400).contains(&status) {
            let target = headers.get("location").and_then(|value| value.to_str().ok()).unwrap_or("nowhere");
            error.message = format!("redirects to {target}, which is not followed with a key");
        }
        error
    }

    /// Parses the error object of any provider: `{"error": {...}}`, `{"error": "..."}`, `{"message": ...}`, `{"detail":
    /// ...}`.
    pub fn from_value(value: &Value) -> Self {
        let value = if let Some(first) = value.get(0) { first } else { value };
        let error = value.get("error").filter(|error| !error.is_null()).unwrap_or(value);
        let text = |pointer: &str| str_at(error, pointer);
        let mut codes = Vec::new();
        for pointer in ["/type", "/code", "/status", "/reason", "/metadata/error_type"] {
            codes.push(text(pointer).to_lowercase());
        }
        let mut retry_after = None;
        for detail in items_at(error, "/details").take(20) {
            codes.push(str_at(detail, "/reason").to_lowercase());
            codes.push(str_at(detail, "/violations/0/quotaId").to_lowercase());
            retry_after = retry_after.or_else(|| backoff::parse_seconds(str_at(detail, "/retryDelay")));
        }
        let message = [error.as_str().unwrap_or(""), text("/message"), text("/detail"), text("/detail/0/msg")];
        let mut message =
            truncate_chars(message.into_iter().find(|message| !message.is_empty()).unwrap_or(""), MAX_MESSAGE_CHARS);
        // The error that OpenRouter received from the provider behind it.
        if let Some(raw) = error.pointer("/metadata/raw").and_then(Value::as_str) {
            message = format!("{message}: {}", truncate_chars(raw, MAX_MESSAGE_CHARS));
        }
        let status = error.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
        let status = status.filter(|status| (400..600).contains(status));
        Self {
            status,
            codes: codes.join(" "),
            message,
            field: text("/param").to_lowercase(),
            retry_after,
            is_final: false,
        }
    }

    /// Converts the error into a failure that names the host.
    pub fn into_failure(self, host: &str, key: &ApiKey) -> HttpFailure {
        let words = format!("{} {}", self.codes, self.message.to_lowercase());
        let class = classify_service_error(self.status, &words);
        let heard = key.redact(&truncate_chars(&self.message, MAX_MESSAGE_CHARS));
        let message = sanitize_line(&heard);
        let status = self.status.map_or_else(|| " in its answer".to_owned(), |status| format!(" with {status}"));
        let said = if message.trim().is_empty() {
            String::new()
        } else {
            format!(": {}", truncate_chars(message.trim(), MAX_SHOWN_CHARS))
        };
        let what = match class {
            ErrorClass::Auth if key.expose().is_none() => format!("{host} wants a key{said}"),
            ErrorClass::Auth => format!("{host} refused the key{status}{said}"),
            ErrorClass::Quota => format!("{host} has nothing left for this account{status}{said}"),
            ErrorClass::RateLimit => format!("{host} has had too many requests or tokens{status}{said}"),
            ErrorClass::ContextTooLong => format!("{host} found the request too long{status}{said}"),
            ErrorClass::Refused => format!("a filter of {host} refused the request{status}{said}"),
            _ => format!("{host} failed{status}{said}"),
        };
        let base = HttpFailure::new(class, what);
        let retry = match base.retry {
            Retry::After(_) if !self.is_final => Retry::After(self.retry_after),
            _ => Retry::Never,
        };
        let objection = format!("{} {} {}", self.field, self.codes, heard.to_lowercase());
        let rejected = matches!(self.status, Some(400 | 404 | 422 | 500 | 501));
        HttpFailure { retry, objection, rejected, ..base }
    }
}

/// Summarizes a body that is not JSON: the title of a web page, or the beginning of the text.
fn summarize_body(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(MAX_MESSAGE_CHARS * 4)]).into_owned();
    if !text.trim_start().starts_with('<') {
        return truncate_chars(text.trim(), MAX_MESSAGE_CHARS);
    }
    let lower = text.to_ascii_lowercase();
    let title = lower.find("<title>").map(|at| at + "<title>".len()).and_then(|start| {
        let end = start + lower[start..].find('<')?;
        Some(text[start..end].trim())
    });
    title.map_or_else(|| "a web page".to_owned(), |title| format!("a web page, {:?}", truncate_chars(title, 80)))
}

/// Returns the failure for a body that is not an answer of the expected format.
pub fn unreadable_failure(host: &str, text: &[u8], key: &ApiKey) -> HttpFailure {
    let shown = sanitize_line(&key.redact(&summarize_body(text))).into_owned();
    let what = match shown.trim() {
        "" => format!("{host} sent an empty answer"),
        shown => format!("{host} sent something else than an answer: {}", truncate_chars(shown, MAX_SHOWN_CHARS)),
    };
    HttpFailure::new(ErrorClass::Malformed, what)
}

fn truncate_chars(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn key() -> ApiKey {
        ApiKey::new(Some("sk-0123456789abcdef".into()))
    }

    fn failure(status: u16, body: &Value) -> HttpFailure {
        ServerError::from_response(status, &HeaderMap::new(), body.to_string().as_bytes()).into_failure("host", &key())
    }

    #[rstest]
    #[case::openai_key(401, json!({"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}}), ErrorClass::Auth)]
    #[case::gemini_key(400, json!({"error": {"code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT", "details": [{"reason": "API_KEY_INVALID"}]}}), ErrorClass::Auth)]
    #[case::forbidden(403, json!({"error": {"type": "permission_error", "message": "no"}}), ErrorClass::Auth)]
    #[case::openai_quota(429, json!({"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}), ErrorClass::Quota)]
    #[case::anthropic_quota(400, json!({"type": "error", "error": {"type": "invalid_request_error", "message": "Your credit balance is too low"}}), ErrorClass::Quota)]
    #[case::openrouter_quota(402, json!({"error": {"code": 402, "message": "Insufficient credits"}}), ErrorClass::Quota)]
    #[case::gemini_day(429, json!({"error": {"status": "RESOURCE_EXHAUSTED", "details": [{"violations": [{"quotaId": "GenerateRequestsPerDayPerProject"}]}]}}), ErrorClass::Quota)]
    #[case::gemini_minute(429, json!({"error": {"status": "RESOURCE_EXHAUSTED", "message": "You exceeded your current quota", "details": [{"violations": [{"quotaId": "GenerateRequestsPerMinute"}]}]}}), ErrorClass::RateLimit)]
    #[case::rate(429, json!({"error": {"message": "Rate limit reached for tokens per min", "code": "rate_limit_exceeded"}}), ErrorClass::RateLimit)]
    #[case::rate_for_ever(429, json!({"error": {"message": "Request too large for m on tokens per min (TPM): Limit 30000, Requested 70000"}}), ErrorClass::ContextTooLong)]
    #[case::anthropic_overloaded(529, json!({"error": {"type": "overloaded_error", "message": "Overloaded"}}), ErrorClass::Overloaded)]
    #[case::unavailable(503, json!({"message": "loading"}), ErrorClass::Overloaded)]
    #[case::internal(500, json!({"error": "oops"}), ErrorClass::Overloaded)]
    #[case::gateway(504, json!({}), ErrorClass::Timeout)]
    #[case::openai_long(400, json!({"error": {"message": "This model's maximum context length is 8192 tokens.", "code": "context_length_exceeded"}}), ErrorClass::ContextTooLong)]
    #[case::responses_long(400, json!({"error": {"message": "Your input exceeds the context window of this model."}}), ErrorClass::ContextTooLong)]
    #[case::anthropic_long(400, json!({"error": {"type": "invalid_request_error", "message": "prompt is too long: 214850 tokens > 200000 maximum"}}), ErrorClass::ContextTooLong)]
    #[case::anthropic_sum(400, json!({"error": {"message": "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"}}), ErrorClass::ContextTooLong)]
    #[case::gemini_long(400, json!({"error": {"message": "The input token count (1293741) exceeds the maximum number of tokens allowed (1048576)."}}), ErrorClass::ContextTooLong)]
    #[case::llama_cpp_long(400, json!({"error": {"code": 400, "type": "exceed_context_size_error", "message": "the request exceeds the available context size"}}), ErrorClass::ContextTooLong)]
    #[case::vllm_long(400, json!({"object": "error", "message": "This model's maximum context length is 4096 tokens. However, you requested 5000", "code": 400}), ErrorClass::ContextTooLong)]
    #[case::ollama_long(400, json!({"error": "the input length exceeds the context length"}), ErrorClass::ContextTooLong)]
    #[case::large(413, json!({"error": {"type": "request_too_large"}}), ErrorClass::ContextTooLong)]
    #[case::azure_filter(400, json!({"error": {"code": "content_filter", "message": "content management policy"}}), ErrorClass::Refused)]
    #[case::no_model(404, json!({"error": {"code": "model_not_found", "message": "no such model"}}), ErrorClass::Configuration)]
    #[case::fastapi(422, json!({"detail": [{"msg": "field required", "loc": ["body"]}]}), ErrorClass::Configuration)]
    #[case::moved(307, json!({}), ErrorClass::Configuration)]
    fn classes(#[case] status: u16, #[case] body: Value, #[case] class: ErrorClass) {
        assert_eq!(failure(status, &body).class, class);
    }

    #[rstest]
    #[case::overloaded(json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}), ErrorClass::Overloaded)]
    #[case::server(json!({"error": {"message": "Error in input stream", "type": "server_error"}}), ErrorClass::Overloaded)]
    #[case::rate(json!({"error": {"type": "rate_limit_error"}}), ErrorClass::RateLimit)]
    #[case::openrouter(json!({"error": {"code": 429, "message": "Provider returned error"}}), ErrorClass::RateLimit)]
    #[case::long(json!({"code": "context_length_exceeded", "message": "exceeds the context window"}), ErrorClass::ContextTooLong)]
    #[case::array(json!([{"error": {"code": 503, "status": "UNAVAILABLE"}}]), ErrorClass::Overloaded)]
    #[case::request(json!({"error": {"type": "invalid_request_error"}}), ErrorClass::Configuration)]
    #[case::nonsense(json!(7), ErrorClass::Overloaded)]
    fn classes_in_streams(#[case] value: Value, #[case] class: ErrorClass) {
        assert_eq!(ServerError::from_value(&value).into_failure("host", &key()).class, class);
    }

    #[test]
    fn what_a_server_says_is_shown_harmless_and_bounded() {
        let body = json!({"error": {"message": format!("\x1b[2Jbad sk-0123456789abcdef\n{}", "x".repeat(10_000))}});
        let error = failure(401, &body).into_error("mine", ReviewerKind::Openai, 3);
        assert!(error.summary.starts_with("mine: host refused the key with 401: \u{fffd}[2Jbad [key] xxx"), "{error}");
        assert!(error.summary.ends_with(
            "… (3 attempts); set api_key_env or api_key_cmd of [reviewers.mine] to a key that may use the model"
        ));
        assert!(error.summary.len() < 600);
    }

    #[test]
    fn pages_are_told_by_their_title() {
        let page = b"<!DOCTYPE html><html><head><TITLE>502 Bad\nGateway</TITLE></head>";
        let failure = ServerError::from_response(502, &HeaderMap::new(), page).into_failure("host", &key());
        assert_eq!(
            (failure.class, failure.message.as_str()),
            (ErrorClass::Overloaded, "host failed with 502: a web page, \"502 Bad\\nGateway\"")
        );
        assert_eq!(
            unreadable_failure("host", b"<p>Log in", &key()).message,
            "host sent something else than an answer: a web page"
        );
        assert_eq!(unreadable_failure("host", b"", &key()).message, "host sent an empty answer");
    }

    #[test]
    fn patience_comes_from_the_body_too() {
        let body = json!({"error": {"code": 429, "details": [{"retryDelay": "34.5s"}]}});
        assert_eq!(failure(429, &body).retry, Retry::After(Some(Duration::from_millis(34_500))));
        let mut headers = HeaderMap::new();
        headers.insert("x-should-retry", "false".parse().expect("a value"));
        let failure = ServerError::from_response(529, &headers, b"{}").into_failure("host", &key());
        assert_eq!(failure.retry, Retry::Never);
    }
}
