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
mod trouble;
