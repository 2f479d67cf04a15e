//! Sends small requests to a server on this machine and reads its answers as JSON, under limits of time and size.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use reqwest::{Client, RequestBuilder, Url};
use serde_json::Value;

use super::super::http::build_client_for;

/// Maximum time for one request. Not from the literature: a server on this machine answers in milliseconds, and a busy one
/// in less than a second.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum time for a connection on this machine.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum size of an answer. The largest real ones hold the licence, the template and the tensors of a model.
const MAX_ANSWER_BYTES: usize = 4 << 20;

/// Reason why a request has no JSON for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestProblem {
    /// Nothing listens at the address.
    NoConnection,
    /// The server answers with this status.
    Status(u16),
    /// The server is too slow, or ends the connection.
    Broken,
    /// The answer is larger than [`MAX_ANSWER_BYTES`].
    TooLong,
    /// The answer is not JSON.
    Unreadable,
}

impl RequestProblem {
    /// Describes the problem for a person, with the next step where there is one.
    pub fn describe(self) -> String {
        match self {
            Self::NoConnection => "nothing listens there".to_owned(),
            Self::Status(401 | 403) => {
                "it wants a key: describe the reviewer yourself, with api_key_env or api_key_cmd".to_owned()
            }
            Self::Status(503) => "it is loading its model or is busy: try again".to_owned(),
            Self::Status(code @ 300..=399) => format!("it answers with a redirect ({code}), which is not followed"),
            Self::Status(404) => "it is no server of models that revdeck knows".to_owned(),
            Self::Status(code) => format!("it answers with status {code}"),
            Self::Broken => "it does not answer in time, or breaks the connection".to_owned(),
            Self::TooLong => format!("its answer is larger than {} MiB", MAX_ANSWER_BYTES >> 20),
            Self::Unreadable => "it is no server of models that revdeck knows".to_owned(),
        }
    }
}

/// Client of one server on this machine.
#[derive(Debug, Clone)]
pub struct LoopbackClient {
    base: Url,
    client: Client,
    /// All requests end by this time.
    deadline: Instant,
}

impl LoopbackClient {
    /// Creates a client that follows no redirect and uses no proxy. Sends nothing yet.
    ///
    /// # Errors
    ///
    /// Returns a message if the address is not loopback, or the client cannot be prepared.
    pub fn new(address: SocketAddr, deadline: Instant) -> Result<Self, String> {
        if !address.ip().is_loopback() {
            return Err(format!("{address} is not on this machine"));
        }
        let base = Url::parse(&format!("http://{address}/")).map_err(|error| error.to_string())?;
        let client = build_client_for(&base, &address.to_string(), CONNECT_TIMEOUT, None);
        Ok(Self { base, client: client.map_err(|failure| failure.message)?, deadline })
    }

    /// Reads the JSON at a path, which may have a query.
    pub async fn get(&self, path: &str) -> Result<Value, RequestProblem> {
        self.send(self.client.get(self.join(path)?)).await
    }

    /// Reads the JSON at a path with the query `model=MODEL&autoload=false`.
    pub async fn get_for_model(&self, path: &str, model: &str) -> Result<Value, RequestProblem> {
        let mut url = self.join(path)?;
        url.query_pairs_mut().append_pair("model", model).append_pair("autoload", "false");
        self.send(self.client.get(url)).await
    }

    /// Sends JSON to a path and reads the JSON of the answer.
    pub async fn post(&self, path: &str, body: &Value) -> Result<Value, RequestProblem> {
        let request = self.client.post(self.join(path)?).header("content-type", "application/json");
        self.send(request.body(body.to_string())).await
    }

    fn join(&self, path: &str) -> Result<Url, RequestProblem> {
        self.base.join(path).map_err(|_| RequestProblem::NoConnection)
    }

    async fn send(&self, request: RequestBuilder) -> Result<Value, RequestProblem> {
        let left = self.deadline.saturating_duration_since(Instant::now()).min(REQUEST_TIMEOUT);
        let answer = tokio::time::timeout(left, read_answer(request)).await;
        let body = answer.map_err(|_| RequestProblem::Broken)??;
        serde_json::from_slice(&body).map_err(|_| RequestProblem::Unreadable)
    }
}

/// Sends the request and reads the body of a successful answer.
async fn read_answer(request: RequestBuilder) -> Result<Vec<u8>, RequestProblem> {
    let mut response = request.send().await.map_err(|error| match error.is_connect() {
        true => RequestProblem::NoConnection,
        false => RequestProblem::Broken,
    })?;
    if !response.status().is_success() {
        return Err(RequestProblem::Status(response.status().as_u16()));
    }
    let mut body = Vec::new();
    while let Some(bytes) = response.chunk().await.map_err(|_| RequestProblem::Broken)? {
        if body.len() + bytes.len() > MAX_ANSWER_BYTES {
            return Err(RequestProblem::TooLong);
        }
        body.extend_from_slice(&bytes);
    }
    Ok(body)
}
