//! Connects to the database, and calls its functions one after the other.
//!
//! The client is asynchronous; its connection lives on a runtime of this thread and is driven while a call waits. Every call has
//! a time limit, so a database that does not answer holds nobody.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls_platform_verifier::BuilderVerifierExt as _;
use thiserror::Error;
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::config::SslMode;
use tokio_postgres::error::SqlState;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Config, Connection, Row, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::address::{DatabaseAddress, root_cause};
use super::password::find_password;
use crate::domain::text::sanitize_line;

/// Time limit of a connection with its login.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit of a call. The first exchange of a large team sends and reads some tens of megabytes.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);
/// Time after which a silent connection is probed, so that one that a router has dropped is noticed.
const KEEPALIVE: Duration = Duration::from_secs(30);
/// Interval between two probes, and number of those without an answer after which the connection is lost. The system's own take
/// eleven minutes.
const KEEPALIVE_RETRIES: (Duration, u32) = (Duration::from_secs(10), 3);
/// Time after which a connection is lost on which the server has not acknowledged what was sent.
const MAX_UNACKNOWLEDGED: Duration = Duration::from_secs(60);

/// The sums of the budget are those of the moment, whatever the role's own setting says. To compile a query takes longer than to
/// run it.
const ISOLATION: &str = "SET default_transaction_isolation = 'read committed'; SET jit = off";
/// Version of the tables, and the version that a program must know to use them.
const SCHEMA_VERSIONS: &str =
    "SELECT coalesce(max(version), 0), coalesce(max(oldest_client), 0) FROM revdeck.migrations";

/// Error of the team's database.
#[derive(Debug, Error)]
pub enum DatabaseError {
    /// The address cannot be understood.
    #[error("this is no address of a database: {what}")]
    Address {
        /// Reason.
        what: String,
    },
    /// No connection, or no login.
    #[error("no connection to {place}: {what}")]
    Connect {
        /// Address.
        place: String,
        /// Reason.
        what: String,
        /// True if the server refused the role or its password.
        is_login: bool,
    },
    /// The database has no tables of revdeck.
    #[error("{place} has no tables of revdeck yet")]
    NotPrepared {
        /// Address.
        place: String,
    },
    /// The tables are of an older version.
    #[error("{place} has tables of version {found}, and this revdeck needs version {needed}")]
    Outdated {
        /// Address.
        place: String,
        /// Version of the tables.
        found: i32,
        /// Version that is needed.
        needed: i32,
    },
    /// The tables need a newer program.
    #[error("{place} has tables for a newer revdeck: they need version {found}, and this one knows version {known}")]
    TooNew {
        /// Address.
        place: String,
        /// Version that a program must know.
        found: i32,
        /// Version that this program knows.
        known: i32,
    },
    /// The role has too few rights.
    #[error("{place} does not let this role go on with {doing}: {what}")]
    Denied {
        /// Address.
        place: String,
        /// Step that failed, as a part of a sentence.
        doing: &'static str,
        /// Reason in the words of the server.
        what: String,
    },
    /// A call failed.
    #[error("{place} failed at {doing}: {what}")]
    Query {
        /// Address.
        place: String,
        /// Step that failed, as a part of a sentence.
        doing: &'static str,
        /// Reason.
        what: String,
        /// Code of the server's error; empty if it gave none.
        code: String,
    },
}

impl DatabaseError {
    /// Returns true if the connection could not be made or has ended, so that another attempt may succeed.
    pub fn is_lost_connection(&self) -> bool {
        match self {
            // The server refuses the login, or ends connections when it goes down (classes 08 and 57 of its codes).
            Self::Connect { is_login, .. } => !is_login,
            Self::Query { code, .. } => code.is_empty() || code.starts_with("08") || code.starts_with("57P"),
            Self::Address { .. }
            | Self::NotPrepared { .. }
            | Self::Outdated { .. }
            | Self::TooNew { .. }
            | Self::Denied { .. } => false,
        }
    }
}

/// Connection as the client's crate drives it.
pub(super) type ServerConnection = Connection<Socket, <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream>;

/// Connection to the team's database.
pub struct Database {
    place: String,
    pub(super) runtime: Runtime,
    client: Client,
}

impl Database {
    /// Connects and logs in, and checks that the tables are of this version. The password comes from the variable `PGPASSWORD`
    /// or the file of passwords.
    ///
    /// # Errors
    /// Returns an error when the server cannot be reached or refuses the login, or the tables are missing, too old or too new.
    pub fn connect(address: &DatabaseAddress) -> Result<Self, DatabaseError> {
        let (database, connection) = Self::open(address)?;
        database.runtime.spawn(connection);
        database.begin(async {})?;
        Ok(database)
    }

    /// Does the same as [`Database::connect`], and runs a statement that only reads, in the round trip of the check.
    ///
    /// # Errors
    /// As [`Database::connect`], or when the statement fails.
    pub(super) fn connect_and_query(
        address: &DatabaseAddress,
        doing: &'static str,
        sql: &str,
        parameters: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<(Self, Vec<Row>), DatabaseError> {
        let (database, connection) = Self::open(address)?;
        database.runtime.spawn(connection);
        let rows = database.begin(database.client.query_typed(sql, parameters))?;
        let rows = rows.map_err(|error| database.explain(doing, &error))?;
        Ok((database, rows))
    }

    /// Chooses the isolation and checks the version of the tables. Waits for the answer to another statement at the same time.
    fn begin<T>(&self, other: impl Future<Output = T>) -> Result<T, DatabaseError> {
        // The server takes them in this order, and nobody waits for the first answers.
        let isolation = self.client.batch_execute(ISOLATION);
        let versions = self.client.query_typed_one(SCHEMA_VERSIONS, &[]);
        let all = async { Ok(tokio::join!(biased; isolation, versions, other)) };
        let (isolated, versions, answer) = self.wait("reading the version of its tables", all)?;
        isolated.map_err(|error| self.explain("choosing its isolation", &error))?;
        let versions = versions.map_err(|error| self.explain("reading the version of its tables", &error))?;
        self.check_versions(self.read_versions(&versions)?)?;
        Ok(answer)
    }

    /// Connects and logs in, whether there are tables or not.
    ///
    /// # Errors
    /// Returns an error when the server cannot be reached or refuses the login.
    pub fn connect_unprepared(address: &DatabaseAddress) -> Result<Self, DatabaseError> {
        let (database, connection) = Self::open(address)?;
        database.runtime.spawn(connection);
        database.run_script("choosing its isolation", ISOLATION)?;
        Ok(database)
    }

    /// Connects and logs in, and leaves it to the caller to drive the connection.
    pub(super) fn open(address: &DatabaseAddress) -> Result<(Self, ServerConnection), DatabaseError> {
        let place = address.as_str().to_owned();
        let failed = |what: String, is_login: bool| DatabaseError::Connect { place: place.clone(), what, is_login };
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| failed(format!("no runtime: {error}"), false))?;
        let found = find_password(address);
        let mut config = address.with_password(found.as_ref());
        limit_silence(&mut config);
        let tls = build_tls(address).map_err(|what| failed(what, false))?;
        let connecting = async { tokio::time::timeout(CONNECT_TIMEOUT, config.connect(tls)).await };
        let (client, connection) = runtime
            .block_on(connecting)
            .map_err(|_| failed(format!("no answer within {} s", CONNECT_TIMEOUT.as_secs()), false))?
            .map_err(|error| {
                let code = error.code();
                let is_login = code == Some(&SqlState::INVALID_PASSWORD)
                    || code == Some(&SqlState::INVALID_AUTHORIZATION_SPECIFICATION);
                let is_without_password = found.is_none() && root_cause(&error).contains("password");
                failed(describe(&error), is_login || is_without_password)
            })?;
        Ok((Self { place, runtime, client }, connection))
    }

    /// Returns the address.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Runs statements in the order of the text.
    pub(super) fn run_script(&self, doing: &'static str, sql: &str) -> Result<(), DatabaseError> {
        self.wait(doing, self.client.batch_execute(sql))
    }

    /// Runs one statement with parameters, in one round trip.
    pub(super) fn query(
        &self,
        doing: &'static str,
        sql: &str,
        parameters: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Vec<Row>, DatabaseError> {
        self.wait(doing, self.client.query_typed(sql, parameters))
    }

    /// Runs one statement that returns one row.
    pub(super) fn query_one(
        &self,
        doing: &'static str,
        sql: &str,
        parameters: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Row, DatabaseError> {
        self.query_one_within(CALL_TIMEOUT, doing, sql, parameters)
    }

    /// Does the same as [`Database::query_one`], within another time than most calls.
    pub(super) fn query_one_within(
        &self,
        limit: Duration,
        doing: &'static str,
        sql: &str,
        parameters: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Row, DatabaseError> {
        self.wait_within(limit, doing, self.client.query_typed_one(sql, parameters))
    }

    /// Returns the version of the tables, and the version that a program must know to use them.
    pub(super) fn schema_version(&self) -> Result<(i32, i32), DatabaseError> {
        self.read_versions(&self.query_one("reading the version of its tables", SCHEMA_VERSIONS, &[])?)
    }

    fn read_versions(&self, row: &Row) -> Result<(i32, i32), DatabaseError> {
        match (row.get(0), row.get(1)) {
            (0, _) => Err(DatabaseError::NotPrepared { place: self.place.clone() }),
            versions => Ok(versions),
        }
    }

    /// Returns true if there is a role for members.
    pub(super) fn has_member_role(&self) -> Result<bool, DatabaseError> {
        let sql = "SELECT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'revdeck_member')";
        Ok(self.query_one("reading its roles", sql, &[])?.get(0))
    }

    fn wait<T>(
        &self,
        doing: &'static str,
        call: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, DatabaseError> {
        self.wait_within(CALL_TIMEOUT, doing, call)
    }

    fn wait_within<T>(
        &self,
        limit: Duration,
        doing: &'static str,
        call: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, DatabaseError> {
        let limited = async { tokio::time::timeout(limit, call).await };
        match self.runtime.block_on(limited) {
            Ok(result) => result.map_err(|error| self.explain(doing, &error)),
            Err(_) => {
                let what = format!("no answer within {} s", limit.as_secs());
                Err(DatabaseError::Query { place: self.place.clone(), doing, what, code: String::new() })
            }
        }
    }

    fn explain(&self, doing: &'static str, error: &tokio_postgres::Error) -> DatabaseError {
        let place = self.place.clone();
        let what = describe(error);
        match error.code() {
            Some(code) if *code == SqlState::UNDEFINED_TABLE || *code == SqlState::INVALID_SCHEMA_NAME => {
                DatabaseError::NotPrepared { place }
            }
            Some(code) if *code == SqlState::INSUFFICIENT_PRIVILEGE => DatabaseError::Denied { place, doing, what },
            code => {
                let code = code.map(|code| code.code().to_owned()).unwrap_or_default();
                DatabaseError::Query { place, doing, what, code }
            }
        }
    }
}

/// Lets a connection end that nobody answers on, so that a machine notices that it is offline.
fn limit_silence(config: &mut Config) {
    let (interval, retries) = KEEPALIVE_RETRIES;
    config.connect_timeout(CONNECT_TIMEOUT).tcp_user_timeout(MAX_UNACKNOWLEDGED);
    config.keepalives_idle(KEEPALIVE).keepalives_interval(interval).keepalives_retries(retries);
}

/// Returns the server's words, or the innermost cause, on one line.
fn describe(error: &tokio_postgres::Error) -> String {
    let said = match error.as_db_error() {
        Some(error) => error.message().to_owned(),
        None => root_cause(error),
    };
    sanitize_line(&said).into_owned()
}

/// Builds the check of the server's certificate: against the given certificates, or those that the system trusts.
fn build_tls(address: &DatabaseAddress) -> Result<MakeRustlsConnect, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let config = match &address.root_certificates {
        // Nothing is encrypted. To read what the system trusts takes 10 ms.
        _ if address.config.get_ssl_mode() == SslMode::Disable => {
            builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth()
        }
        Some(path) => {
            let wrong = |what: String| format!("sslrootcert {}: {what}", sanitize_line(&path.to_string_lossy()));
            let mut roots = RootCertStore::empty();
            for certificate in CertificateDer::pem_file_iter(path).map_err(|error| wrong(error.to_string()))? {
                roots
                    .add(certificate.map_err(|error| wrong(error.to_string()))?)
                    .map_err(|error| wrong(error.to_string()))?;
            }
            if roots.is_empty() {
                return Err(wrong("it holds no certificate".to_owned()));
            }
            builder.with_root_certificates(roots).with_no_client_auth()
        }
        None => builder.with_platform_verifier().map_err(|error| error.to_string())?.with_no_client_auth(),
    };
    Ok(MakeRustlsConnect::new(config))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::team::postgres::fake_server::{ColumnValue, FakeServer, isolation_answer, row_answer, version_answer};

    #[test]
    fn a_connection_needs_one_round_trip_after_the_login() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let server = std::thread::spawn(move || {
            let mut server = FakeServer::log_in(listener.accept().expect("a client").0);
            // Nothing is answered before everything was asked: the isolation, the version, and the statement of the caller.
            server.read_statements(3);
            server.send(&[isolation_answer(), version_answer(), row_answer(&[ColumnValue::Int(7)])]);
            server
        });
        let address = DatabaseAddress::parse(&format!("postgres://ada@127.0.0.1:{port}/team")).expect("an address");
        let (_database, rows) = Database::connect_and_query(&address, "a test", "SELECT 7", &[]).expect("connected");
        assert_eq!(rows[0].get::<_, i32>(0), 7);
        drop(server.join().expect("an answer"));
    }

    #[test]
    fn a_connection_that_nobody_answers_on_ends_within_a_minute() {
        let mut config = Config::new();
        limit_silence(&mut config);
        let probes =
            config.get_keepalives_interval().expect("an interval") * config.get_keepalives_retries().expect("a number");
        assert!(config.get_keepalives_idle() + probes <= Duration::from_secs(60));
        assert_eq!(config.get_tcp_user_timeout(), Some(&MAX_UNACKNOWLEDGED));
    }
}
