//! Places of the logs in a simulation: a bare repository by its path or over smart HTTP, or a database.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use crate::env::{DONE, TestEnvironment, files_below, run};
use crate::runner::place::poll;
use crate::team::http_remote::{CutPoint, CutRequest, HttpRemote};
use crate::team::postgres_server::{TestDatabase, database};
use crate::team::{Team, join, machines};

/// URL that refuses connections: nothing listens on the lowest port.
const REFUSED_URL: &str = "http://127.0.0.1:1/team.git";

/// Time after which a claim has ended, even if nobody has released it.
const CLAIM_PATIENCE: Duration = Duration::from_secs(120);

/// Place of the logs.
pub enum Place {
    Git(Team),
    Http(Team, HttpRemote),
    Database(TestDatabase),
}

/// Visible state of an exchange: its requests, and the sizes and times of its files.
#[derive(Debug, PartialEq, Eq)]
pub struct Trace {
    requests: usize,
    files: Vec<(PathBuf, Option<(u64, SystemTime)>)>,
}

/// Way of a machine to the place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Open,
    /// The place cannot be reached; over HTTP, connections are refused.
    Refused,
    /// The place cannot be reached; over HTTP, connections are closed without an answer.
    Closed,
}

/// Returns the name of a machine.
pub fn name(number: usize) -> String {
    format!("machine-{number}")
}

fn role(database: &TestDatabase, number: usize) -> String {
    format!("machine_{number}_{}", database.name)
}

impl Place {
    /// Returns a bare repository that is used by its path.
    pub fn git() -> Self {
        Self::Git(Team::new())
    }

    /// Returns a bare repository behind `git http-backend`; `None`, with a note, where that is not installed.
    pub fn http() -> Option<Self> {
        let team = Team::new();
        let remote = HttpRemote::start(&team.remote())?;
        Some(Self::Http(team, remote))
    }

    /// Returns an empty database; `None`, with a note, where no PostgreSQL is installed.
    pub fn database() -> Option<Self> {
        let database = database()?;
        database.create_member_role();
        Some(Self::Database(database))
    }

    /// Returns true if an equivalent review that runs elsewhere is adopted.
    pub fn has_claims(&self) -> bool {
        matches!(self, Self::Database(_))
    }

    /// Returns a machine that has joined the team at this place, with the same commits as all others.
    pub fn member(&self, number: usize) -> TestEnvironment {
        let person = format!("Person{number}");
        match self {
            Self::Git(team) => {
                let machine = team.machine(&person);
                join(&machine, &name(number));
                machine
            }
            Self::Http(team, remote) => {
                let machine = team.machine(&person);
                machine.git(&["remote", "set-url", "origin", &remote.url(&name(number))]);
                join(&machine, &name(number));
                machine
            }
            Self::Database(database) => {
                let machine = machines::machine(&person);
                // The first one owns the tables.
                let role = if number == 0 { "owner".to_owned() } else { role(database, number) };
                if number > 0 {
                    database.create_role(&role, "revdeck_member");
                }
                run(&machine, &["team", "join", &database.address(&role), "--machine", &name(number)], DONE);
                machine
            }
        }
    }

    /// Waits until a machine has sent the results of all its reviews: a claim ends after that.
    pub fn await_results(&self, number: usize) {
        if let Self::Database(database) = self {
            let condition = format!("machine = '{}' AND ends_at > now()", name(number));
            let sql = format!("SELECT count(*) FROM revdeck.claims WHERE {condition}");
            assert!(poll(CLAIM_PATIENCE, || database.sql(&sql) == "0"), "a claim of a machine does not end");
        }
    }

    /// Cuts a machine off from the place, or lets it in again.
    pub fn set_access(&self, machine: &TestEnvironment, number: usize, access: Access) {
        let is_cut_off = access != Access::Open;
        let set_url = |url: &str| drop(machine.git(&["remote", "set-url", "origin", url]));
        match self {
            Self::Git(_) if is_cut_off => set_url("/nowhere.git"),
            Self::Git(team) => set_url(team.remote().to_str().expect("text")),
            Self::Http(_, remote) => {
                match access {
                    Access::Refused => set_url(REFUSED_URL),
                    Access::Open | Access::Closed => set_url(&remote.url(&name(number))),
                }
                remote.close(&name(number), is_cut_off);
            }
            // The owner of the server is always let in.
            Self::Database(_) if number == 0 => {}
            Self::Database(database) => {
                let login = if is_cut_off { "NOLOGIN" } else { "LOGIN" };
                database.sql(&format!("ALTER ROLE {} {login}", role(database, number)));
            }
        }
    }

    /// Cuts the next connection of a machine that fetches or pushes, where connections are ours. A later
    /// [`Place::set_access`] takes it back if it has not come.
    pub fn cut_next(&self, number: usize, request: CutRequest, point: CutPoint) {
        if let Self::Http(_, remote) = self {
            remote.cut_next(&name(number), request, point);
        }
    }

    /// Returns the number of connections of a machine that were cut in the middle.
    pub fn cuts(&self, number: usize) -> usize {
        match self {
            Self::Http(_, remote) => remote.line(&name(number)).cuts,
            Self::Git(_) | Self::Database(_) => 0,
        }
    }

    /// Returns what can be seen now of a machine's exchange, whose files stand below `folders`.
    pub fn trace(&self, number: usize, folders: &[PathBuf]) -> Trace {
        let requests = match self {
            Self::Http(_, remote) => remote.line(&name(number)).requests,
            Self::Git(_) | Self::Database(_) => 0,
        };
        let with_stamp = |path: PathBuf| {
            let metadata = std::fs::metadata(&path).ok();
            let stamp = metadata.and_then(|metadata| Some((metadata.len(), metadata.modified().ok()?)));
            (path, stamp)
        };
        let mut files: Vec<_> = folders.iter().flat_map(|folder| files_below(folder)).map(with_stamp).collect();
        files.sort();
        Trace { requests, files }
    }

    /// Returns all records as lines.
    pub fn records(&self) -> String {
        match self {
            Self::Git(team) | Self::Http(team, _) => team.everything(),
            Self::Database(database) => database
                .sql("SELECT string_agg(convert_from(content, 'UTF8'), '' ORDER BY log, number) FROM revdeck.segments"),
        }
    }
}
