//! Certificates and proxies. The process reads its environment once, so each of these tests starts itself in a new
//! process.

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::Duration;

use revdeck::config::ReviewerKind;
use revdeck::domain::ErrorClass;
use revdeck::reviewers::http::{Endpoint, HttpChat};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::samples::{TEXT, stream};
use super::server::{Act, Server, Stream, ask, open, streamed};

const KIND: ReviewerKind = ReviewerKind::Openai;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/http/testdata").join(name)
}

impl Stream for StreamOwned<ServerConnection, TcpStream> {
    fn pause(&mut self, time: Option<Duration>) {
        let _ = self.sock.set_read_timeout(time);
    }
}

/// Starts a server whose certificate is signed by `testdata/ca.pem`.
fn over_tls(script: Vec<Vec<Act>>) -> Server {
    let certificate = CertificateDer::from_pem_file(file("server.pem")).expect("a certificate");
    let key = PrivateKeyDer::from_pem_file(file("server-key.pem")).expect("a key");
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .expect("a pair");
    let config = Arc::new(config);
    Server::over(script, move |stream| {
        let connection = ServerConnection::new(Arc::clone(&config)).map_err(std::io::Error::other)?;
        Ok(Box::new(StreamOwned::new(connection, stream)))
    })
}

fn secure(server: &Server) -> Endpoint {
    Endpoint { base_url: Some(format!("https://localhost:{}", server.port)), attempts: 1, ..server.endpoint(KIND) }
}

#[test]
fn a_certificate_of_the_users_own_is_trusted() {
    let server = over_tls(vec![streamed(&stream(KIND))]);
    let endpoint = Endpoint { ca_file: Some(file("ca.pem")), ..secure(&server) };
    assert_eq!(ask(&mut open(endpoint)).0.expect("an answer").text, TEXT);
}

/// Runs the test `name` of this file in a new process, with these variables and the port in `PORT`.
fn anew(name: &str, port: u16, variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", &format!("http::surroundings::{name}"), "--ignored", "--nocapture"]);
    command.env_clear().env("PORT", port.to_string()).envs(variables.iter().copied());
    command.output().expect("it starts")
}

#[track_caller]
fn is_fine(output: &Output) {
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}{}", String::from_utf8_lossy(&output.stderr));
}

fn port() -> u16 {
    std::env::var("PORT").expect("a port").parse().expect("a number")
}

#[test]
fn certificates_named_in_the_environment_are_trusted() {
    let server = over_tls(vec![streamed(&stream(KIND))]);
    let authority = file("ca.pem");
    is_fine(&anew("asks_over_tls", server.port, &[("SSL_CERT_FILE", &authority.to_string_lossy())]));
}

#[test]
#[ignore = "started by the test above"]
fn asks_over_tls() {
    let endpoint =
        Endpoint { base_url: Some(format!("https://localhost:{}", port())), ..Server::new(Vec::new()).endpoint(KIND) };
    assert_eq!(ask(&mut open(endpoint)).0.expect("an answer").text, TEXT);
}

#[test]
fn other_certificates_are_not_trusted() {
    let server = over_tls(vec![streamed(&stream(KIND))]);
    let stranger = file("stranger.pem");
    is_fine(&anew("is_not_answered_over_tls", server.port, &[("SSL_CERT_FILE", &stranger.to_string_lossy())]));
    assert!(server.requests().is_empty(), "the key was given to a stranger");
}

#[test]
#[ignore = "started by the test above"]
fn is_not_answered_over_tls() {
    let endpoint = Endpoint {
        base_url: Some(format!("https://localhost:{}", port())),
        attempts: 1,
        ..Server::new(Vec::new()).endpoint(KIND)
    };
    let failed = ask(&mut open(endpoint)).0.expect_err("no trust");
    assert_eq!(failed.class, ErrorClass::Network);
    assert!(failed.summary.contains("invalid peer certificate: UnknownIssuer"), "{failed}");
    assert!(failed.summary.contains("with ca_file or SSL_CERT_FILE"), "{failed}");
}

#[test]
fn a_machine_without_certificates_talks_to_its_own_server() {
    let server = Server::new(vec![streamed(&stream(KIND))]);
    is_fine(&anew("asks_in_the_clear", server.port, &[("SSL_CERT_FILE", "/nowhere"), ("SSL_CERT_DIR", "/nowhere")]));
}

#[test]
fn a_server_on_this_machine_is_not_asked_through_a_proxy() {
    let server = Server::new(vec![streamed(&stream(KIND))]);
    is_fine(&anew(
        "asks_in_the_clear",
        server.port,
        &[("HTTP_PROXY", "http://127.0.0.1:9"), ("ALL_PROXY", "http://127.0.0.1:9")],
    ));
}

#[test]
#[ignore = "started by the tests above"]
fn asks_in_the_clear() {
    let endpoint =
        Endpoint { base_url: Some(format!("http://127.0.0.1:{}", port())), ..Server::new(Vec::new()).endpoint(KIND) };
    assert_eq!(ask(&mut open(endpoint)).0.expect("an answer").text, TEXT);
}

#[test]
fn proxies_of_the_environment_are_used() {
    let proxy = Server::new(vec![streamed(&stream(KIND))]);
    let address = format!("http://127.0.0.1:{}", proxy.port);
    is_fine(&anew("asks_through_a_proxy", proxy.port, &[("HTTP_PROXY", &address)]));
    assert_eq!(proxy.requests()[0].line, "POST http://models.invalid/v1/chat/completions HTTP/1.1");
}

#[test]
#[ignore = "started by the test above"]
fn asks_through_a_proxy() {
    assert_eq!(ask(&mut elsewhere("http")).0.expect("an answer").text, TEXT);
}

#[test]
fn what_needs_no_proxy_gets_none() {
    let proxy = Server::new(vec![streamed(&stream(KIND))]);
    let address = format!("http://127.0.0.1:{}", proxy.port);
    is_fine(&anew("asks_past_a_proxy", proxy.port, &[("HTTP_PROXY", &address), ("NO_PROXY", "models.invalid")]));
    assert!(proxy.requests().is_empty());
}

#[test]
#[ignore = "started by the test above"]
fn asks_past_a_proxy() {
    ask(&mut elsewhere("http")).0.expect_err("there is no such host");
}

#[test]
fn a_proxy_for_https_gets_no_key() {
    let refusal = vec![Act::Say(b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n".to_vec())];
    let proxy = Server::new(vec![refusal]);
    let address = format!("http://127.0.0.1:{}", proxy.port);
    is_fine(&anew(
        "is_refused_by_a_proxy",
        proxy.port,
        &[("HTTPS_PROXY", &address), ("SSL_CERT_FILE", &file("ca.pem").to_string_lossy())],
    ));
    let request = &proxy.requests()[0];
    assert_eq!(request.line, "CONNECT models.invalid:443 HTTP/1.1");
    assert_eq!(request.header("authorization"), None);
}

#[test]
#[ignore = "started by the test above"]
fn is_refused_by_a_proxy() {
    let failed = ask(&mut elsewhere("https")).0.expect_err("no way through");
    assert_eq!(failed.class, ErrorClass::Network);
    assert!(failed.summary.contains("proxy"), "{failed}");
}

/// Returns a client for a server that does not exist; a proxy may answer in its place.
fn elsewhere(scheme: &str) -> HttpChat {
    open(Endpoint {
        base_url: Some(format!("{scheme}://models.invalid")),
        insecure_http: scheme == "http",
        attempts: 1,
        ..Server::new(Vec::new()).endpoint(KIND)
    })
}
