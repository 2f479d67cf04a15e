//! Classifies the errors of services and of command-line agents by their words.
//!
//! [`PHRASES`] is the only list of words. A service reports a status and codes, and its words confirm or refine the
//! status. An agent mostly reports a sentence, in which it may quote the service behind it: the sentence is searched for
//! the words of services and for looser words.

use crate::domain::ErrorClass;

/// Words of one class, in lower case.
struct ClassPhrases {
    class: ErrorClass,
    /// Codes and sentences of services: OpenAI, Anthropic, Gemini, OpenRouter, vLLM, llama.cpp, Ollama, Mistral, Groq,
    /// xAI, Bedrock, Azure.
    service: &'static [&'static str],
    /// Words of agents. A number counts only if no letter or digit is next to it.
    agent: &'static [&'static str],
}

/// Words by class. Among the words of an agent, the first class decides.
const PHRASES: [ClassPhrases; 9] = [
    ClassPhrases {
        class: ErrorClass::Quota,
        service: &[
            "insufficient_quota",
            "insufficient_funds",
            "billing_hard_limit",
            "billing_not_active",
            "billing_error",
            "credit balance",
            "insufficient balance",
            "insufficient credits",
            "payment required",
            // Quota id of Gemini's free tier, which is used up until the next day.
            "perday",
        ],
        agent: &["quota", "billing", "usage limit", "402"],
    },
    ClassPhrases {
        class: ErrorClass::RateLimit,
        service: &["rate_limit", "resource_exhausted", "too many requests"],
        agent: &["rate limit", "429"],
    },
    ClassPhrases {
        class: ErrorClass::ContextTooLong,
        service: &[
            "context length",
            "context_length",
            "context window",
            "context limit",
            "context size",
            "context_size",
            "prompt is too long",
            "input is too long",
            "prompt too long",
            "input length",
            "maximum prompt length",
            "maximum number of tokens",
            "input token count",
            "reduce the length",
            "too many tokens",
            "token limit",
            "request_too_large",
            REQUEST_TOO_LARGE,
        ],
        agent: &["too long", "maximum context"],
    },
    ClassPhrases {
        class: ErrorClass::Refused,
        service: &[
            "content_policy",
            "content_filter",
            "content management policy",
            "responsibleaipolicyviolation",
            "prohibited_content",
            "input was flagged",
            "requires moderation",
        ],
        agent: &[],
    },
    ClassPhrases {
        class: ErrorClass::Auth,
        service: &[
            "api_key_invalid",
            "api key not valid",
            "invalid_api_key",
            "invalid api key",
            "authentication_error",
            "permission_error",
        ],
        agent: &[
            "not logged in",
            "/login",
            "log in",
            "codex login",
            "api key",
            "api_key",
            "auth method",
            "authentication",
            "unauthenticated",
            "unauthorized",
            "credentials",
            "401",
            "403",
        ],
    },
    ClassPhrases {
        class: ErrorClass::Configuration,
        service: &["invalid_request", "invalid_argument", "not_found"],
        agent: &[
            "unexpected argument",
            "unknown option",
            "unknown argument",
            "unknown arguments",
            "invalid values",
            "invalid value",
            "error loading config",
            "trusted directory",
            "model not found",
            "not supported",
            "404",
        ],
    },
    ClassPhrases {
        class: ErrorClass::Overloaded,
        service: &["overloaded"],
        agent: &["high demand", "at capacity", "service unavailable", "500", "502", "503", "504", "529"],
    },
    ClassPhrases {
        class: ErrorClass::Network,
        service: &[],
        agent: &[
            "network",
            "connect",
            "disconnected",
            "lookup",
            "dns",
            "econn",
            "enotfound",
            "etimedout",
            "certificate",
            "fetch failed",
            "sending request",
        ],
    },
    ClassPhrases {
        class: ErrorClass::Malformed,
        service: &[],
        agent: &["parse json", "unexpected token", "malformed"],
    },
];
/// A single request that exceeds the limit per minute will never succeed.
const REQUEST_TOO_LARGE: &str = "request too large";

/// Classifies the error of a service by its HTTP status and its words in lower case: codes and message. An error inside
/// a stream has no status.
pub fn classify_service_error(status: Option<u16>, words: &str) -> ErrorClass {
    let says = |class: ErrorClass| {
        let mut phrases = PHRASES.iter().filter(|row| row.class == class).flat_map(|row| row.service);
        phrases.any(|phrase| words.contains(phrase))
    };
    match status.unwrap_or(0) {
        413 => ErrorClass::ContextTooLong,
        429 if words.contains(REQUEST_TOO_LARGE) => ErrorClass::ContextTooLong,
        0 | 400 | 422 | 500 if says(ErrorClass::ContextTooLong) => ErrorClass::ContextTooLong,
        402 => ErrorClass::Quota,
        0 | 400 | 403 | 429 if says(ErrorClass::Quota) => ErrorClass::Quota,
        0 | 400 | 403 | 422 | 451 if says(ErrorClass::Refused) => ErrorClass::Refused,
        0 | 400 if says(ErrorClass::Auth) => ErrorClass::Auth,
        401 | 403 | 407 => ErrorClass::Auth,
        408 | 504 => ErrorClass::Timeout,
        429 => ErrorClass::RateLimit,
        500.. => ErrorClass::Overloaded,
        0 if says(ErrorClass::RateLimit) => ErrorClass::RateLimit,
        0 if says(ErrorClass::Configuration) => ErrorClass::Configuration,
        0 => ErrorClass::Overloaded,
        _ => ErrorClass::Configuration,
    }
}

/// Classifies the error message of an agent; `status` is the HTTP status that the agent reports, or 0.
pub fn classify_agent_error(status: u64, message: &str) -> ErrorClass {
    let by_words = || {
        let words = message.to_lowercase();
        let has = |row: &&ClassPhrases| {
            row.service.iter().any(|phrase| words.contains(phrase))
                || row.agent.iter().any(|phrase| has_phrase(&words, phrase))
        };
        PHRASES.iter().find(has).map(|row| row.class)
    };
    match status {
        401 | 403 => ErrorClass::Auth,
        402 => ErrorClass::Quota,
        // Providers also use 429 for an account without credit.
        429 => by_words().filter(|class| *class == ErrorClass::Quota).unwrap_or(ErrorClass::RateLimit),
        500..=599 => ErrorClass::Overloaded,
        413 => ErrorClass::ContextTooLong,
        _ => by_words().unwrap_or(ErrorClass::Reviewer),
    }
}

/// Returns true if the words contain the phrase. A number must stand apart from letters and digits.
fn has_phrase(words: &str, phrase: &str) -> bool {
    let is_number = phrase.bytes().all(|byte| byte.is_ascii_digit());
    words.match_indices(phrase).any(|(at, _)| {
        let is_apart = |c: Option<char>| !c.is_some_and(char::is_alphanumeric);
        let (before, after) = (words.get(..at), words.get(at + phrase.len()..));
        !is_number
            || is_apart(before.and_then(|text| text.chars().next_back()))
                && is_apart(after.and_then(|text| text.chars().next()))
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    // Messages that the agents wrote for such answers of a fake provider.
    #[case(0, "Not logged in · Please run /login", ErrorClass::Auth)]
    #[case(0, "Invalid API key · Fix external API key", ErrorClass::Auth)]
    #[case(0, "unexpected status 401 Unauthorized: invalid x-api-key, url: http://127.0.0.1/v1", ErrorClass::Auth)]
    #[case(0, "Missing environment variable: `OPENAI_API_KEY`.", ErrorClass::Auth)]
    #[case(0, "Please set an Auth method in your settings.json or specify one of", ErrorClass::Auth)]
    #[case(0, "[API Error: {\"error\":{\"code\":401,\"message\":\"invalid\"}}]", ErrorClass::Auth)]
    #[case(0, "exceeded retry limit, last status: 429 Too Many Requests", ErrorClass::RateLimit)]
    #[case(429, "API Error: Request rejected (429) · Rate limit reached for requests", ErrorClass::RateLimit)]
    #[case(429, "You've hit your usage limit", ErrorClass::Quota)]
    #[case(0, "Quota exceeded. Check your plan and billing details.", ErrorClass::Quota)]
    #[case(
        0,
        "{\"error\":{\"message\":\"prompt is too long: 210000 tokens > 200000 maximum\"}}",
        ErrorClass::ContextTooLong
    )]
    #[case(400, "Prompt is too long · the request is ~210000 tokens", ErrorClass::ContextTooLong)]
    #[case(529, "API Error: 529 Overloaded.", ErrorClass::Overloaded)]
    #[case(0, "unexpected status 529 <unknown status code>: Overloaded", ErrorClass::Overloaded)]
    #[case(0, "stream disconnected before completion: failed to lookup address information", ErrorClass::Network)]
    #[case(0, "error: unexpected argument '--ephemeral' found", ErrorClass::Configuration)]
    #[case(0, "Gemini CLI is not running in a trusted directory.", ErrorClass::Configuration)]
    #[case(0, "API Error: Failed to parse JSON", ErrorClass::Malformed)]
    // A code of a service that an agent quotes.
    #[case(0, "request failed: {\"code\":\"insufficient_funds\"}", ErrorClass::Quota)]
    #[case(0, "stopped: content_filter", ErrorClass::Refused)]
    // Digits inside longer numbers do not count.
    #[case(0, "request id: req-4290401 failed", ErrorClass::Reviewer)]
    #[case(0, "segmentation fault", ErrorClass::Reviewer)]
    fn words_have_a_class(#[case] status: u64, #[case] words: &str, #[case] class: ErrorClass) {
        assert_eq!(classify_agent_error(status, words), class);
    }

    #[test]
    fn each_class_has_one_row_and_its_words_are_in_lower_case() {
        for (at, row) in PHRASES.iter().enumerate() {
            assert!(PHRASES[at + 1..].iter().all(|other| other.class != row.class), "{:?}", row.class);
            assert!(row.service.iter().chain(row.agent).all(|phrase| *phrase == phrase.to_lowercase()));
        }
    }
}
