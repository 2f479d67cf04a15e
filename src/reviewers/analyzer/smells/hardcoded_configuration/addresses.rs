//! Finds addresses of services: URLs, IP addresses, hosts with ports, and passwords in URLs.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::super::syntax::has_word;
use super::secrets::is_placeholder;
use super::{HardcodedConfigurationLimits, NameSource};
use crate::syntax::language::Language;

/// An address in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Address<'a> {
    pub text: &'a str,
    /// Label for people: "an IP address".
    pub label: &'static str,
    /// Recognized by the address itself, not only by its name.
    pub certain: bool,
}

/// Returns the password of `scheme://user:password@host`; `None` for placeholders, trivial passwords, and local or
/// reserved hosts.
pub(super) fn find_url_password(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_once("://")?;
    let scheme = scheme.rsplit(|c: char| !(c.is_ascii_alphanumeric() || c == '+')).next().unwrap_or("");
    let authority = rest.split(['/', '?', '#', ' ', '"', '\'', '\n', '<']).next().unwrap_or("");
    let (user, host) = authority.rsplit_once('@')?;
    let (name, password) = user.split_once(':')?;
    let host = split_host(host).0;
    let plain = !password.contains(['{', '$', '<', '%', '*', '(', '[', '#']) && !host.contains(['{', '$', '<']);
    let weak = password.len() < 4
        || password == name
        || matches!(
            password,
            "pass" | "password" | "pwd" | "secret" | "root" | "guest" | "postgres" | "user" | "token"
        );
    (!scheme.is_empty()
        && plain
        && !weak
        && !host.is_empty()
        && !is_local(host)
        && !is_reserved(host)
        && !is_placeholder(password))
    .then_some(password)
}

/// Classifies a whole text as an address. `name` is called only if the result depends on it.
pub(super) fn find_address<'a>(
    text: &'a str,
    limits: &HardcodedConfigurationLimits,
    name: impl Fn() -> Option<(&'a str, NameSource)>,
) -> Option<Address<'a>> {
    if text.len() > 300 || text.contains([' ', '\n', '\t', ',', '|', '\\']) {
        return None;
    }
    if let Some((scheme, rest)) = text.split_once("://") {
        return classify_url(text, scheme, rest, limits, name);
    }
    let first = text.as_bytes().first()?;
    if !(first.is_ascii_alphanumeric() || matches!(first, b'[' | b':')) || !text.contains(['.', ':']) {
        return None;
    }
    if let Some(ip) = parse_ip(text) {
        let with_port = text.parse::<IpAddr>().is_err();
        // Four numbers alone may be a version.
        let is_version = || {
            name().is_some_and(|(name, _)| {
                has_word(name, &["version", "ver", "release", "oid", "mask", "netmask", "subnet"])
            })
        };
        return (is_specific_ip(ip) && (with_port || !is_version())).then_some(Address {
            text,
            label: "an IP address",
            certain: true,
        });
    }
    let (host, port) = text.rsplit_once(':')?;
    let is_port = (2..=5).contains(&port.len()) && port.bytes().all(|byte| byte.is_ascii_digit());
    // `main.rs:120` is a position in a file.
    let last = host.rsplit('.').next().unwrap_or("");
    let is_file = Language::detect(host, b"").is_some()
        || matches!(
            last,
            "md" | "txt"
                | "json"
                | "yaml"
                | "yml"
                | "toml"
                | "html"
                | "css"
                | "log"
                | "xml"
                | "lock"
                | "cfg"
                | "ini"
                | "conf"
        );
    let is_host = host.contains('.') && !is_file && !is_local(host) && !is_reserved(host) && is_host_name(host);
    (is_port && is_host).then_some(Address { text, label: "a host with its port", certain: true })
}

/// Protocols of services that are no web sites.
const SERVICE_SCHEMES: [&str; 18] = [
    "redis",
    "rediss",
    "amqp",
    "amqps",
    "postgres",
    "postgresql",
    "mysql",
    "mongodb",
    "mongodb+srv",
    "kafka",
    "grpc",
    "tcp",
    "ftp",
    "ldap",
    "ldaps",
    "smtp",
    "nats",
    "mqtt",
];

/// Words in the name of a text that is read by people or names a format.
const DOCUMENTATION_WORDS: [&str; 15] = [
    "doc",
    "help",
    "link",
    "homepage",
    "schema",
    "namespace",
    "xmlns",
    "license",
    "reference",
    "issue",
    "id",
    "href",
    "mailing",
    "repository",
    "changelog",
];

/// Parts of a URL that tell whether it is the address of a service.
struct UrlParts<'a> {
    is_service_scheme: bool,
    host: &'a str,
    has_port: bool,
    path: &'a str,
}

impl<'a> UrlParts<'a> {
    /// Splits a URL after its scheme; `None` for a scheme of neither the web nor a service.
    fn parse(scheme: &str, rest: &'a str) -> Option<Self> {
        let is_service_scheme = SERVICE_SCHEMES.contains(&scheme);
        if !is_service_scheme && !matches!(scheme, "http" | "https" | "ws" | "wss") {
            return None;
        }
        let authority = rest.split(['/', '?', '#']).next().unwrap_or("");
        let authority = authority.rsplit('@').next().unwrap_or(authority);
        let (host, has_port) = split_host(authority);
        Some(Self { is_service_scheme, host, has_port, path: rest.get(authority.len()..).unwrap_or("") })
    }

    /// Returns whether the host is a name on the public or a private network, and not a site with documents.
    fn has_real_host(&self, limits: &HardcodedConfigurationLimits) -> bool {
        let host = self.host;
        is_host_name(host)
            && host.contains('.')
            && !is_local(host)
            && !is_reserved(host)
            && !limits.document_hosts.iter().any(|known| ends_with_host(host, known))
    }

    fn is_document(&self) -> bool {
        [".html", ".md", ".htm", ".pdf", ".png", ".svg", ".dtd", ".xsd", ".txt"]
            .iter()
            .any(|end| self.path.ends_with(end))
            || self.path.contains('#')
    }

    /// Returns whether the URL itself tells that it is the address of a service, by scheme, host, port or path.
    fn is_service(&self, limits: &HardcodedConfigurationLimits) -> bool {
        let is_internal =
            ["internal", "corp", "lan", "intra", "intranet"].iter().any(|domain| self.host.ends_with(domain));
        // The last two labels are the registered domain.
        let has_service_label = || self.host.rsplit('.').skip(2).any(|label| has_word(label, &limits.service_words));
        let has_service_path =
            || self.path.split('/').any(|part| matches!(part, "api" | "graphql" | "webhook" | "oauth"));
        self.is_service_scheme
            || is_internal
            || self.has_port
            || (!self.is_document() && (has_service_label() || has_service_path()))
    }
}

fn classify_url<'a>(
    text: &'a str,
    scheme: &str,
    rest: &'a str,
    limits: &HardcodedConfigurationLimits,
    name: impl Fn() -> Option<(&'a str, NameSource)>,
) -> Option<Address<'a>> {
    let url = UrlParts::parse(scheme, rest)?;
    let address = |certain| Address { text, label: "an address of a service", certain };
    if let Some(ip) = parse_ip(url.host) {
        return is_specific_ip(ip).then(|| address(true));
    }
    if !url.has_real_host(limits) {
        return None;
    }
    let name = name();
    if name.is_some_and(|(name, _)| has_word(name, &DOCUMENTATION_WORDS)) {
        return None;
    }
    if url.is_service(limits) {
        return Some(address(true));
    }
    let is_service_name = match name? {
        (name, NameSource::Name) => has_word(name, &limits.address_words),
        (name, NameSource::Call) => has_word(name, &limits.request_words),
    };
    (is_service_name && !url.is_document()).then(|| address(false))
}

/// Returns the host of an authority, and true if a port follows.
fn split_host(authority: &str) -> (&str, bool) {
    if authority.starts_with('[') {
        return match authority.split_once(']') {
            Some((host, rest)) => (host.trim_start_matches('['), rest.starts_with(':')),
            None => (authority, false),
        };
    }
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => (host, true),
        _ => (authority, false),
    }
}

/// Parses `10.1.2.3`, `10.1.2.3:80`, `2001::1` or `[2001::1]:80`.
fn parse_ip(text: &str) -> Option<IpAddr> {
    if let Ok(ip) = text.parse::<IpAddr>() {
        // `::` and `a::b` are also paths in programming languages.
        return (ip.is_ipv4() || text.bytes().any(|byte| byte.is_ascii_digit()) && text.matches(':').count() >= 3)
            .then_some(ip);
    }
    text.parse::<std::net::SocketAddr>().ok().map(|address| address.ip())
}

/// Returns whether an IP address is that of a certain machine: neither loopback, unspecified nor multicast, and not
/// from documentation.
fn is_specific_ip(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => {
            let [a, b, ..] = ip.octets();
            !(ip.is_loopback()
                || ip.is_unspecified()
                || ip.is_broadcast()
                || ip.is_documentation()
                || ip.is_multicast()
                || a == 0
                || a == 255
                || a >= 240
                // The address of a network, or a number with dots.
                || ip.octets()[3] == 0
                || (a, b) == (1, 2)
                || ip == Ipv4Addr::new(1, 2, 3, 4))
        }
        IpAddr::V6(ip) => {
            let first = ip.segments()[0];
            let document = first == 0x2001 && ip.segments()[1] == 0xdb8;
            !(ip.is_loopback()
                || ip.is_unspecified()
                || ip.is_multicast()
                || document
                || first & 0xffc0 == 0xfe80
                || ip == Ipv6Addr::UNSPECIFIED
                || first == 0)
        }
    }
}

fn is_local(host: &str) -> bool {
    matches!(host, "localhost" | "127.0.0.1" | "::1" | "0.0.0.0" | "host.docker.internal")
        || host.ends_with(".localhost")
        || host.ends_with(".local")
}

/// Returns whether a host is reserved by RFC 2606, or a similar example name.
fn is_reserved(host: &str) -> bool {
    let last = host.rsplit('.').next().unwrap_or(host);
    matches!(last, "example" | "test" | "invalid" | "localhost")
        || [
            "example.com",
            "example.org",
            "example.net",
            "domain.com",
            "foo.com",
            "bar.com",
            "mydomain.com",
            "yourdomain.com",
            "test.com",
            "acme.com",
        ]
        .iter()
        .any(|known| ends_with_host(host, known))
        || host.split('.').any(|label| label.contains("example") || label.starts_with("your"))
}

fn ends_with_host(host: &str, domain: &str) -> bool {
    host.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

fn is_host_name(host: &str) -> bool {
    let last = host.rsplit('.').next().unwrap_or("");
    host.split('.').all(|label| {
        !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    }) && last.len() >= 2
        && last.bytes().all(|byte| byte.is_ascii_lowercase())
}
