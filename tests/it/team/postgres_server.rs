//! A real PostgreSQL of the system's package, in a folder of its own. It ends with the test process.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

use crate::runner::place::wait_for;

/// Role that owns the tables.
pub const OWNER: &str = "owner";
/// Password of all roles that log in over TCP.
pub const PASSWORD: &str = "a word, with: signs";

/// A server with one folder for its data and its socket.
pub struct PostgresServer {
    folder: PathBuf,
    programs: PathBuf,
    port: u16,
    databases: AtomicUsize,
}

/// An empty database of its own, for one test.
pub struct TestDatabase {
    server: &'static PostgresServer,
    pub name: String,
}

/// Returns an empty database; `None`, with a note, where no PostgreSQL is installed. Continuous integration installs it.
pub fn database() -> Option<TestDatabase> {
    static SERVER: OnceLock<Option<PostgresServer>> = OnceLock::new();
    let Some(server) = SERVER.get_or_init(PostgresServer::start) else {
        assert!(std::env::var_os("CI").is_none(), "no PostgreSQL is installed, and .ci/run should have installed it");
        let _ = std::io::stderr().write_all(b"skipped: no PostgreSQL is installed (Debian: postgresql)\n");
        return None;
    };
    let name = format!("team_{}", server.databases.fetch_add(1, Ordering::Relaxed));
    server.sql("postgres", &format!("CREATE DATABASE {name}"));
    Some(TestDatabase { server, name })
}

/// Returns the folder of the server's programs.
fn find_programs() -> Option<PathBuf> {
    let in_path = std::env::split_paths(&std::env::var_os("PATH")?).collect::<Vec<_>>();
    let mut versions: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .map(|entries| entries.flatten().map(|entry| entry.path().join("bin")).collect())
        .unwrap_or_default();
    versions.sort();
    versions
        .into_iter()
        .rev()
        .chain(in_path)
        .find(|folder| folder.join("initdb").exists() && folder.join("postgres").exists())
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

impl PostgresServer {
    fn start() -> Option<Self> {
        let programs = find_programs()?;
        let folder = tempfile::Builder::new().prefix("pg").tempdir().expect("a folder").keep();
        let port = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").port();
        let server = Self { folder, programs, port, databases: AtomicUsize::new(0) };
        let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/http/testdata");
        for (name, text) in [
            ("password", PASSWORD.to_owned()),
            ("server.pem", std::fs::read_to_string(testdata.join("server.pem")).expect("a certificate")),
            ("server-key.pem", std::fs::read_to_string(testdata.join("server-key.pem")).expect("a key")),
        ] {
            std::fs::write(server.folder.join(name), text).expect("a file");
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
            std::fs::set_permissions(server.folder.join(name), mode).expect("a mode");
        }
        if is_root() {
            // The server refuses to run as root; its package has made this user.
            let given = Command::new("chown").args(["-R", "postgres"]).arg(&server.folder).status();
            assert!(given.expect("chown starts").success());
        }
        let data = server.folder.join("data");
        let made = server
            .as_server_user(&server.programs.join("initdb"))
            .arg("-D")
            .arg(&data)
            .args(["-U", OWNER, "-N", "-E", "UTF8", "--locale", "C", "--auth-local=trust", "--auth-host=scram-sha-256"])
            .arg(format!("--pwfile={}", server.folder.join("password").display()))
            .output()
            .expect("initdb starts");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let settings = format!(
            "unix_socket_directories = '{folder}'\nport = {port}\nlisten_addresses = '127.0.0.1'\nfsync = off\n\
             ssl = on\nssl_cert_file = '{folder}/server.pem'\nssl_key_file = '{folder}/server-key.pem'\n\
             max_connections = 200\nshared_buffers = 32MB\n",
            folder = server.folder.display(),
        );
        let settings_file = data.join("postgresql.auto.conf");
        std::fs::write(&settings_file, settings).expect("settings");
        // The shell ends the server when this process ends: then its standard input ends.
        let script = r#""$0" "$@" & server=$!; read -r nothing; kill -INT $server; wait $server"#;
        let shell = server
            .as_server_user(Path::new("sh"))
            .args(["-c", script])
            .arg(server.programs.join("postgres"))
            .arg("-D")
            .arg(&data)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(server.folder.join("log")).expect("a log"))
            .spawn()
            .expect("the server starts");
        static SHELL: Mutex<Option<Child>> = Mutex::new(None);
        *SHELL.lock().expect("a lock") = Some(shell);
        wait_for("the server", || {
            let ready = Command::new(server.programs.join("pg_isready"))
                .arg("-q")
                .arg("-h")
                .arg(&server.folder)
                .args(["-p", &port.to_string()])
                .status();
            ready.expect("pg_isready starts").success().then_some(())
        });
        Some(server)
    }

    fn as_server_user(&self, program: &Path) -> Command {
        let mut command;
        if is_root() {
            command = Command::new("runuser");
            command.args(["-u", "postgres", "--"]).arg(program);
        } else {
            command = Command::new(program);
        }
        command.current_dir(&self.folder);
        command
    }

    /// Runs SQL as the owner, and returns what it prints, or the error.
    fn try_sql(&self, database: &str, user: &str, sql: &str) -> Result<String, String> {
        let output = Command::new(self.programs.join("psql"))
            .arg("-h")
            .arg(&self.folder)
            .args(["-p", &self.port.to_string(), "-U", user, "-d", database, "-v", "ON_ERROR_STOP=1", "-XAtqc", sql])
            .output()
            .expect("psql starts");
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }

    fn sql(&self, database: &str, sql: &str) -> String {
        self.try_sql(database, OWNER, sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
    }
}

impl TestDatabase {
    /// Returns the address over the socket, where every role is let in.
    pub fn address(&self, role: &str) -> String {
        let folder = self.server.folder.to_string_lossy().replace('/', "%2F");
        format!("postgres://{role}@{folder}:{}/{}", self.server.port, self.name)
    }

    /// Returns the address over TCP, where a role needs its password.
    pub fn tcp_address(&self, role: &str, parameters: &str) -> String {
        format!("postgres://{role}@127.0.0.1:{}/{}{parameters}", self.server.port, self.name)
    }

    pub fn port(&self) -> u16 {
        self.server.port
    }

    pub fn sql(&self, sql: &str) -> String {
        self.server.sql(&self.name, sql)
    }

    /// Runs SQL as another role.
    pub fn sql_as(&self, role: &str, sql: &str) -> Result<String, String> {
        self.server.try_sql(&self.name, role, sql)
    }

    /// Makes a role that may log in; a member of `group` if that is not empty.
    pub fn create_role(&self, role: &str, group: &str) {
        let grant = if group.is_empty() { String::new() } else { format!("GRANT {group} TO {role};") };
        self.sql(&format!("CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'; {grant}"));
    }

    /// Makes the role of members, for all databases of the server.
    pub fn create_member_role(&self) {
        static MADE: Mutex<bool> = Mutex::new(false);
        let mut made = MADE.lock().expect("a lock");
        if !std::mem::replace(&mut *made, true) {
            self.sql("CREATE ROLE revdeck_member NOLOGIN");
        }
    }

    /// Lets nobody in, or everybody again.
    pub fn refuse_connections(&self, refuse: bool) {
        self.server.sql("postgres", &format!("ALTER DATABASE {} ALLOW_CONNECTIONS {}", self.name, !refuse));
    }

    /// Lets nobody in, and ends all connections to the database.
    pub fn go_away(&self) {
        self.refuse_connections(true);
        let of_database = format!("datname = '{}'", self.name);
        let sql = format!("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE {of_database}");
        self.server.sql("postgres", &sql);
    }

    /// Ends all connections of others to the database.
    pub fn cut_connections(&self) {
        self.sql(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
             WHERE datname = current_database() AND pid <> pg_backend_pid()",
        );
    }
}
