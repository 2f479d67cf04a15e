//! Requests embedding vectors with `POST embeddings` (OpenAI and most other servers) or `POST api/embed` (Ollama).
//!
//! The invariants of [`super`] hold. In addition:
//! - A response has one vector per text. All vectors are finite, have the same dimension and length 1; anything else is
//!   an error.
//! - Each request is sent once, without retries, because the callers work without embeddings too.
//! - Several requests run at the same time. All end at a deadline, or as soon as the caller cancels.

use std::pin::pin;
use std::time::Instant;

use reqwest::Client;
use reqwest::header::HeaderMap;
use serde::Deserialize;
use tokio::runtime::Builder;
use tokio::task::JoinSet;

use super::Endpoint;
use super::api_key::ApiKey;
use super::failure::{self, HttpFailure, ServerError};
use super::transport::{self, ServerUrl};
use super::wire::{self, WireFormat};
use crate::domain::ErrorClass;
use crate::domain::text::sanitize_line;
use crate::reviewers::chat::{CANCEL_CHECK_INTERVAL, ChatError};

/// Maximum number of requests under way. A local server works on one request after the other.
const MAX_CONCURRENT_REQUESTS: usize = 4;
/// Texts in one request: few enough that a slow machine answers in time.
const TEXTS_PER_REQUEST: usize = 16;
/// Maximum dimension of a vector. Models have 256 to 4,096 dimensions.
pub const MAX_DIMENSIONS: usize = 8_192;
/// Maximum size of a response: [`TEXTS_PER_REQUEST`] vectors of [`MAX_DIMENSIONS`] numbers with 20 digits each, and the
/// JSON around them.
const MAX_RESPONSE_BYTES: usize = 4 << 20;

/// A client of a server that computes embeddings.
pub struct Embedder {
    endpoint: Endpoint,
    wire: &'static dyn WireFormat,
    key: ApiKey,
    target: ServerUrl,
    headers: HeaderMap,
    client: Client,
}

/// A response of either kind of server.
#[derive(Deserialize)]
struct EmbeddingsResponse {
    #[serde(default)]
    data: Vec<EmbeddingItem>,
    #[serde(default)]
    embeddings: Vec<Vec<f32>>,
}

#[derive(Deserialize)]
struct EmbeddingItem {
    index: usize,
    embedding: Vec<f32>,
}

impl Embedder {
    /// Creates a client for the endpoint. Sends nothing yet.
    ///
    /// # Errors
    ///
    /// The errors of [`super::open`], and `Configuration` for a kind of server that has no embeddings.
    pub fn open(endpoint: Endpoint) -> Result<Self, ChatError> {
        let failed = |failure: HttpFailure| to_chat_error(failure);
        let wrong = |what: String| failed(HttpFailure::new(ErrorClass::Configuration, what));
        let wire = wire::from_kind(endpoint.kind).filter(|wire| wire.embeddings_request("", &[]).is_some());
        let Some(wire) = wire else {
            return Err(wrong(format!("a server of kind {:?} makes no vectors", endpoint.kind.word())));
        };
        if endpoint.model.trim().is_empty() || sanitize_line(&endpoint.model) != endpoint.model {
            return Err(wrong(format!("{:?} is no name of a model", sanitize_line(&endpoint.model))));
        }
        let key = ApiKey::new(endpoint.key.clone());
        let target = ServerUrl::new(endpoint.base_url.as_deref(), wire).map_err(failed)?;
        target.check_key(&key, endpoint.insecure_http).map_err(failed)?;
        let headers = transport::build_headers(wire, &key).map_err(failed)?;
        let client = transport::build_client(&endpoint, &target).map_err(failed)?;
        Ok(Self { endpoint, wire, key, target, headers, client })
    }

    /// Returns a name that includes everything the vectors depend on. Vectors with different names cannot be compared.
    pub fn name(&self) -> String {
        format!("{} {} {}", self.endpoint.kind.word(), self.target.base, self.endpoint.model)
    }

    /// Computes a vector for each text. Calls `take` with the index of the first text of a batch and the vectors of the
    /// batch, as the batches arrive. Batches may arrive in any order.
    ///
    /// # Errors
    ///
    /// The first failure, the deadline, or [`ChatError::cancelled`]. Vectors that `take` received before the error are
    /// valid.
    pub fn embed(
        &self,
        texts: &[String],
        deadline: Instant,
        cancelled: &dyn Fn() -> bool,
        take: &mut dyn FnMut(usize, Vec<Vec<f32>>),
    ) -> Result<(), ChatError> {
        let failed = |error| {
            to_chat_error(HttpFailure::new(ErrorClass::Internal, format!("cannot start the network runtime: {error}")))
        };
        let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let outcome = runtime.block_on(async {
            let mut all = pin!(self.embed_all(texts, take));
            loop {
                if cancelled() {
                    return Err(ChatError::cancelled());
                }
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    let what = format!("{} is not done in time", self.target.host);
                    return Err(to_chat_error(HttpFailure::new(ErrorClass::Timeout, what)));
                }
                if let Ok(outcome) = tokio::time::timeout(CANCEL_CHECK_INTERVAL.min(left), all.as_mut()).await {
                    return outcome.map_err(to_chat_error);
                }
            }
        });
        runtime.shutdown_background();
        outcome
    }

    async fn embed_all(&self, texts: &[String], take: &mut dyn FnMut(usize, Vec<Vec<f32>>)) -> Result<(), HttpFailure> {
        let mut waiting = texts.chunks(TEXTS_PER_REQUEST).enumerate();
        let mut asked: JoinSet<(usize, usize, Result<Vec<u8>, HttpFailure>)> = JoinSet::new();
        let mut size = None;
        loop {
            while asked.len() < MAX_CONCURRENT_REQUESTS
                && let Some((batch, texts)) = waiting.next()
            {
                let (request, count, host) = (self.build_request(texts)?, texts.len(), self.target.host.clone());
                let (connect, key) = (self.endpoint.connect_timeout, self.key.clone());
                asked.spawn(async move { (batch, count, fetch_body(request, &host, connect, &key).await) });
            }
            // Dropping the set ends the requests under way.
            let Some(answered) = asked.join_next().await else { return Ok(()) };
            let broken = |_| HttpFailure::new(ErrorClass::Internal, "a request for vectors broke off");
            let (batch, count, body) = answered.map_err(broken)?;
            let vectors = self.parse_vectors(&body?, count, &mut size)?;
            take(batch * TEXTS_PER_REQUEST, vectors);
        }
    }

    fn build_request(&self, texts: &[String]) -> Result<reqwest::RequestBuilder, HttpFailure> {
        let request = self.wire.embeddings_request(&self.endpoint.model, texts);
        // `open` refuses such a format.
        let request = request.ok_or_else(|| HttpFailure::new(ErrorClass::Internal, "this server makes no vectors"))?;
        let sent = self.client.post(self.target.join(request.path, None)).headers(self.headers.clone());
        Ok(sent.timeout(self.endpoint.timeouts.total).body(request.body.to_string()))
    }

    /// Parses the vectors of a response, in the order of the texts.
    fn parse_vectors(&self, body: &[u8], count: usize, size: &mut Option<usize>) -> Result<Vec<Vec<f32>>, HttpFailure> {
        let host = &self.target.host;
        let wrong = |what: &str| HttpFailure::new(ErrorClass::Malformed, format!("{host} sent {what}"));
        let Ok(EmbeddingsResponse { mut data, embeddings }) = serde_json::from_slice::<EmbeddingsResponse>(body) else {
            return Err(failure::unreadable_failure(host, body, &self.key));
        };
        data.sort_by_key(|row| row.index);
        let is_numbered = data.iter().enumerate().all(|(at, row)| at == row.index);
        let vectors = match data.is_empty() {
            true => embeddings,
            false => data.into_iter().map(|row| row.embedding).collect(),
        };
        if vectors.len() != count || !is_numbered {
            return Err(wrong(&format!("{} vectors for {count} texts", vectors.len())));
        }
        let first = vectors.first().map_or(0, Vec::len);
        let expected = *size.get_or_insert(first);
        if !(1..=MAX_DIMENSIONS).contains(&expected) || vectors.iter().any(|vector| vector.len() != expected) {
            return Err(wrong("vectors of different sizes, or of none"));
        }
        let unit = vectors.into_iter().map(normalize).collect::<Option<Vec<_>>>();
        unit.ok_or_else(|| wrong("vectors that are no directions"))
    }
}

/// Scales a vector to length 1. Returns `None` for a vector of length zero or of infinite length.
fn normalize(mut vector: Vec<f32>) -> Option<Vec<f32>> {
    let square: f64 = vector.iter().map(|number| f64::from(*number).powi(2)).sum();
    let length = square.sqrt();
    if !length.is_finite() || length < 1e-12 {
        return None;
    }
    vector.iter_mut().for_each(|number| *number = (f64::from(*number) / length) as f32);
    Some(vector)
}

/// Sends the request and returns the body, up to [`MAX_RESPONSE_BYTES`].
async fn fetch_body(
    request: reqwest::RequestBuilder,
    host: &str,
    connect: std::time::Duration,
    key: &ApiKey,
) -> Result<Vec<u8>, HttpFailure> {
    let broken = |error: reqwest::Error| match error.is_timeout() && !error.is_connect() {
        true => HttpFailure::new(ErrorClass::Timeout, format!("{host} took too long for an answer")),
        false => transport::connection_failure(&error, host, connect),
    };
    let mut response = request.send().await.map_err(broken)?;
    let (status, headers) = (response.status(), response.headers().clone());
    let mut body = Vec::new();
    while let Some(bytes) = response.chunk().await.map_err(broken)? {
        if body.len() + bytes.len() > MAX_RESPONSE_BYTES {
            return Err(HttpFailure::new(ErrorClass::Malformed, format!("{host} sent an answer that is too long")));
        }
        body.extend_from_slice(&bytes);
    }
    match status.is_success() {
        true => Ok(body),
        false => Err(ServerError::from_response(status.as_u16(), &headers, &body).into_failure(host, key)),
    }
}

fn to_chat_error(failure: HttpFailure) -> ChatError {
    ChatError::new(failure.class, failure.message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_is_a_direction_or_nothing() {
        assert_eq!(normalize(vec![3.0, 4.0]), Some(vec![0.6, 0.8]));
        for wrong in [vec![], vec![0.0, 0.0], vec![f32::NAN, 1.0], vec![f32::INFINITY, 1.0]] {
            assert_eq!(normalize(wrong.clone()), None, "{wrong:?}");
        }
        let huge = normalize(vec![f32::MAX, f32::MAX]).expect("a direction");
        assert!((huge[0] - 0.707).abs() < 0.001);
    }
}
