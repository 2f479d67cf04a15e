//! Reads the address of a database. It never holds a password.

use std::path::PathBuf;
use std::str::FromStr as _;

use secrecy::{ExposeSecret as _, SecretString};
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};
use url::Url;

use super::connection::DatabaseError;

/// Schemes of an address.
const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];

/// Address of a database.
#[derive(Debug, Clone, PartialEq)]
pub struct DatabaseAddress {
    /// URL.
    url: String,
    /// Host, port, role and database.
    pub(super) config: Config,
    /// File of certificates that vouch for the server, in place of those that the system trusts.
    pub(super) root_certificates: Option<PathBuf>,
}

/// Returns true for the address of a database, as against a git remote.
pub fn is_database(place: &str) -> bool {
    let begins = |scheme: &&str| place.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    SCHEMES.iter().any(begins)
}

impl DatabaseAddress {
    /// Reads a URL such as `postgres://ada@db.example.org/revdeck`, with the parameters of libpq.
    ///
    /// Connections to other machines use TLS and check the server's certificate, unless the URL says `sslmode=disable`.
    /// `sslrootcert=FILE` names certificates to trust.
    ///
    /// # Errors
    /// Returns an error when the URL cannot be understood, or holds a password: an address is kept in files and shown.
    pub fn parse(text: &str) -> Result<Self, DatabaseError> {
        let wrong = |what: String| DatabaseError::Address { what };
        if !is_database(text) {
            return Err(wrong("it does not begin with postgres://".to_owned()));
        }
        let url = Url::parse(text).map_err(|error| wrong(error.to_string()))?;
        if url.password().is_some() || url.query_pairs().any(|(name, _)| name == "password") {
            return Err(wrong("it holds a password, and an address is kept in files and shown".to_owned()));
        }
        let mut root_certificates = None;
        let mut ssl_mode = None;
        let mut kept = Vec::new();
        for (name, value) in url.query_pairs() {
            match name.as_ref() {
                "sslrootcert" => root_certificates = Some(PathBuf::from(value.into_owned())),
                "sslmode" => ssl_mode = Some(value.into_owned()),
                _ => kept.push((name.into_owned(), value.into_owned())),
            }
        }
        let mut shown = url.clone();
        shown.set_query(None);
        let mut bare = shown.clone();
        if !kept.is_empty() {
            bare.query_pairs_mut().extend_pairs(&kept);
            shown.query_pairs_mut().extend_pairs(&kept);
        }
        if let Some(mode) = &ssl_mode {
            shown.query_pairs_mut().append_pair("sslmode", mode);
        }
        if let Some(file) = &root_certificates {
            shown.query_pairs_mut().append_pair("sslrootcert", &file.to_string_lossy());
        }
        let mut config = Config::from_str(bare.as_str()).map_err(|error| wrong(root_cause(&error)))?;
        if config.get_hosts().is_empty() {
            return Err(wrong("it names no host".to_owned()));
        }
        if !config.get_hostaddrs().is_empty() {
            // The certificate is that of the host, and loopback would no longer be this machine.
            return Err(wrong("it says hostaddr: name the host alone".to_owned()));
        }
        config.ssl_mode(match ssl_mode.as_deref() {
            Some("disable") => SslMode::Disable,
            Some("prefer" | "allow" | "require" | "verify-ca" | "verify-full") => SslMode::Require,
            None if config.get_hosts().iter().all(is_this_machine) => SslMode::Disable,
            None => SslMode::Require,
            Some(other) => return Err(wrong(format!("it says sslmode={other}"))),
        });
        if config.get_dbname().is_none() {
            config.dbname("revdeck");
        }
        config.application_name(concat!("revdeck ", env!("CARGO_PKG_VERSION")));
        Ok(Self { url: shown.into(), config, root_certificates })
    }

    /// Returns the address as a URL.
    pub fn as_str(&self) -> &str {
        &self.url
    }

    /// Returns the first host, the port, the database and the role, for a file of passwords.
    pub(super) fn account(&self) -> [String; 4] {
        let host = match self.config.get_hosts().first() {
            Some(Host::Tcp(host)) => host.clone(),
            #[cfg(unix)]
            Some(Host::Unix(_)) => "localhost".to_owned(),
            None => String::new(),
        };
        let port = self.config.get_ports().first().copied().unwrap_or(5432);
        let user = self.config.get_user().map(str::to_owned).unwrap_or_default();
        [host, port.to_string(), self.config.get_dbname().unwrap_or_default().to_owned(), user]
    }

    /// Returns what to connect to, with the password.
    pub(super) fn with_password(&self, password: Option<&SecretString>) -> Config {
        let mut config = self.config.clone();
        if let Some(password) = password {
            config.password(password.expose_secret());
        }
        config
    }
}

/// Returns true for a host that no network lies before.
fn is_this_machine(host: &Host) -> bool {
    match host {
        Host::Tcp(name) => {
            name == "localhost" || name.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
        }
        #[cfg(unix)]
        Host::Unix(_) => true,
    }
}

/// Returns the innermost cause of an error, which says the most.
pub(super) fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn parse(text: &str) -> DatabaseAddress {
        DatabaseAddress::parse(text).expect("an address")
    }

    #[rstest]
    #[case("postgres://ada@db.example.org/team", SslMode::Require)]
    #[case("postgresql://db.example.org:6432/team?connect_timeout=3", SslMode::Require)]
    #[case("postgres://ada@localhost/team", SslMode::Disable)]
    #[case("postgres://ada@[::1]/team", SslMode::Disable)]
    #[case("postgres://ada@localhost/team?sslmode=verify-full&sslrootcert=%2Fa%2Fb.pem", SslMode::Require)]
    #[case("postgres://ada@db.example.org/team?sslmode=disable", SslMode::Disable)]
    #[case("postgres://ada@%2Frun%2Fpostgresql/team", SslMode::Disable)]
    fn other_machines_are_reached_with_tls(#[case] text: &str, #[case] mode: SslMode) {
        let address = parse(text);
        assert_eq!((address.as_str(), address.config.get_ssl_mode()), (text, mode));
        // What is kept is read again as the same.
        assert_eq!(parse(address.as_str()), address);
    }

    #[rstest]
    #[case("https://db.example.org/team", "it does not begin with postgres://")]
    #[case("postgres:///team", "it names no host")]
    #[case("postgres://db/team?sslmode=maybe", "it says sslmode=maybe")]
    #[case("postgres://db/team?colour=red", "colour")]
    #[case("postgres://db:port/team", "port")]
    #[case("postgres://localhost/team?hostaddr=192.0.2.2", "it says hostaddr")]
    #[case("postgres://ada:word@db/team", "it holds a password")]
    #[case("postgres://ada@db/team?password=word", "it holds a password")]
    fn what_is_no_address_says_why(#[case] text: &str, #[case] expected: &str) {
        let error = DatabaseAddress::parse(text).expect_err(text).to_string();
        assert!(error.contains(expected), "{error}");
    }
}
