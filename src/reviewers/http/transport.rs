//! Creates HTTP clients: TLS with the certificates of the system and the user, proxies from the environment, no
//! redirects.
//!
//! - The key is in one header, which is marked as sensitive.
//! - A request goes to the configured host or its proxy, and nowhere else.

use std::fs;
use std::path::Path;
use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, Url};

use super::Endpoint;
use super::api_key::ApiKey;
use super::failure::HttpFailure;
use super::wire::WireFormat;
use crate::domain::ErrorClass;
use crate::domain::text::sanitize_line;

/// The base URL of the requests.
#[derive(Debug)]
pub struct ServerUrl {
    pub base: Url,
    /// The host and port as errors show them.
    pub host: String,
}

impl ServerUrl {
    /// Parses the base URL from the settings, or takes the provider's official URL.
    ///
    /// # Errors
    ///
    /// Class `Configuration` for a URL that is not HTTP, names no host or contains credentials.
    pub fn new(base_url: Option<&str>, wire: &dyn WireFormat) -> Result<Self, HttpFailure> {
        let wrong = |problem: &str| HttpFailure::new(ErrorClass::Configuration, format!("base_url {problem}"));
        let official = wire.kind().service().map_or("", |service| service.url);
        let mut base =
            Url::parse(base_url.unwrap_or(official)).map_err(|error| wrong(&format!("is no address ({error})")))?;
        if !matches!(base.scheme(), "http" | "https") {
            return Err(wrong("is no http or https address"));
        }
        if !base.username().is_empty() || base.password().is_some() {
            return Err(wrong("holds a name or a password, which belong into api_key_cmd"));
        }
        let Some(host) = base.host_str() else { return Err(wrong("names no host")) };
        let host = base.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        base.set_fragment(None);
        if base.path() == "/" {
            base.set_path(wire.default_path());
        }
        Ok(Self { base, host })
    }

    /// Returns a URL below the base. Keeps the base's own query (Azure's API version).
    pub fn join(&self, path: &[&str], query: Option<(&str, &str)>) -> Url {
        let mut url = self.base.clone();
        // Fails only for a URL without a host.
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        if let Some((name, value)) = query {
            url.query_pairs_mut().append_pair(name, value);
        }
        url
    }

    /// Returns `true` if this is the provider's official service.
    pub fn is_official(&self, wire: &dyn WireFormat) -> bool {
        let home = wire.kind().service().and_then(|service| Url::parse(service.url).ok());
        home.is_some_and(|home| home.host_str() == self.base.host_str())
    }

    /// Refuses to send a key over plain http to another machine. A proxy changes nothing: it would read the key too.
    ///
    /// # Errors
    ///
    /// Class `Configuration`, with the setting that allows it.
    pub fn check_key(&self, key: &ApiKey, insecure_http: bool) -> Result<(), HttpFailure> {
        if !exposes_key(&self.base) || key.expose().is_none() || insecure_http {
            return Ok(());
        }
        Err(HttpFailure::new(ErrorClass::Configuration, describe_exposed_key(&self.host)))
    }
}

/// Returns `true` if a key would travel readable to another machine.
pub fn exposes_key(url: &Url) -> bool {
    url.scheme() == "http" && !is_loopback(url)
}

fn is_loopback(url: &Url) -> bool {
    match url.host_str() {
        Some(host) => {
            let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
            host == "localhost" || address.is_ok_and(|address| address.is_loopback())
        }
        None => false,
    }
}

/// Describes why a key is not sent to `host`, and what to do.
pub fn describe_exposed_key(host: &str) -> String {
    format!("the key would go to {host} over plain http, readable on the way: use https, or set insecure_http = true")
}

/// Builds the headers of every request.
///
/// # Errors
///
/// Class `Auth` if a header cannot carry the key.
pub fn build_headers(wire: &dyn WireFormat, key: &ApiKey) -> Result<HeaderMap, HttpFailure> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream, application/x-ndjson, application/json"));
    for (name, value) in wire.headers() {
        headers.insert(*name, HeaderValue::from_static(value));
    }
    if let Some(key) = key.expose() {
        let (name, before) = wire.key_header();
        let mut value = HeaderValue::from_str(&format!("{before}{key}"))
            .map_err(|_| HttpFailure::new(ErrorClass::Auth, "the key holds characters that no header can carry"))?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

/// Builds the HTTP client for one server.
///
/// # Errors
///
/// Class `Configuration` if a certificate file is unusable or the TLS setup fails.
pub fn build_client(endpoint: &Endpoint, target: &ServerUrl) -> Result<Client, HttpFailure> {
    build_client_for(&target.base, &target.host, endpoint.connect_timeout, endpoint.ca_file.as_deref())
}

/// Builds the HTTP client for the server of `url`, which messages call `host`. `ca_file` holds further certificates to
/// trust.
///
/// # Errors
///
/// Class `Configuration` if a certificate file is unusable or the TLS setup fails.
pub fn build_client_for(
    url: &Url,
    host: &str,
    connect_timeout: Duration,
    ca_file: Option<&Path>,
) -> Result<Client, HttpFailure> {
    // Fails if a provider is already installed, which is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut certificates = match ca_file {
        Some(path) => read_certificates(path, "ca_file")?,
        None => Vec::new(),
    };
    let mut builder = Client::builder()
        .user_agent(concat!("revdeck/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(connect_timeout)
        // A turn takes seconds or minutes. A new connection costs a tenth of a second, and the server cannot have
        // closed it meanwhile.
        .pool_max_idle_per_host(0)
        .tcp_keepalive(Duration::from_secs(30))
        .redirect(Policy::none())
        .referer(false)
        .retry(reqwest::retry::never());
    if is_loopback(url) {
        builder = builder.no_proxy();
    }
    if url.scheme() == "https" {
        // Only some platforms read this variable by themselves.
        if let Some(path) = std::env::var_os("SSL_CERT_FILE").filter(|path| !path.is_empty()) {
            certificates.extend(self::read_certificates(Path::new(&path), "SSL_CERT_FILE")?);
        }
        builder = builder.tls_certs_merge(certificates);
    } else {
        // A machine without any certificates can still reach a server over plain HTTP.
        builder = builder.tls_certs_only(certificates);
    }
    builder.build().map_err(|error| {
        HttpFailure::new(
            ErrorClass::Configuration,
            format!("cannot prepare a connection to {host}: {}", root_cause(&error)),
        )
    })
}

fn read_certificates(path: &Path, setting: &str) -> Result<Vec<Certificate>, HttpFailure> {
    let wrong = |problem: String| {
        let path = sanitize_line(&path.to_string_lossy()).into_owned();
        HttpFailure::new(ErrorClass::Configuration, format!("{setting} {path}: {problem}"))
    };
    let pem = fs::read(path).map_err(|error| wrong(error.to_string()))?;
    match Certificate::from_pem_bundle(&pem) {
        Ok(certificates) if certificates.is_empty() => Err(wrong("holds no certificate (PEM)".to_owned())),
        Ok(certificates) => Ok(certificates),
        Err(error) => Err(wrong(root_cause(&error))),
    }
}

/// Converts an error of a connection into a failure.
pub fn connection_failure(error: &reqwest::Error, host: &str, connect: Duration) -> HttpFailure {
    let what = if error.is_builder() {
        return HttpFailure::new(ErrorClass::Configuration, format!("cannot ask {host}: {}", root_cause(error)));
    } else if error.is_connect() && error.is_timeout() {
        format!("no connection to {host} within {} s", connect.as_secs_f32())
    } else if error.is_connect() {
        format!("no connection to {host}: {}", root_cause(error))
    } else {
        format!("the connection to {host} broke: {}", root_cause(error))
    };
    HttpFailure::new(ErrorClass::Network, what)
}

/// Returns the text of the innermost cause, at most 200 characters. The outer causes repeat the URL with its query.
fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    sanitize_line(&cause.to_string()).chars().take(200).collect()
}
