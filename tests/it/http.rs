//! The HTTP client for models, with servers on loopback: wire formats, broken streams, errors, waits, keys, TLS,
//! proxies.

mod cuts;
mod formats;
mod hostile;
mod no_usage;
mod samples;
mod secrets;
pub mod server;
mod surroundings;
pub mod tool_calls;
mod trouble;

use revdeck::config::ReviewerKind;

/// Lists the kinds that talk to a model over HTTP.
fn http_kinds() -> impl Iterator<Item = ReviewerKind> {
    ReviewerKind::ALL.iter().copied().filter(|kind| kind.is_http())
}
