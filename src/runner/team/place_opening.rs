//! Opens the place of the logs while this machine looks for what it has to send.

use std::sync::Arc;
use std::thread::JoinHandle;

use super::{SyncError, TeamSync};
use crate::config::SignChoice;
use crate::domain::MachineName;
use crate::git::SigningMode;
use crate::store::TeamMembership;
use crate::team::postgres::{Database, DatabaseAddress, DatabaseError, PostgresBackend, is_database};
use crate::team::{GitBackend, LogList, TeamBackend, TeamError};

/// Place of the logs that is being opened.
pub(super) enum PlaceOpening<'a> {
    /// A git remote has no connection to open: its logs are listed at the end.
    Git(GitBackend<'a>),
    /// Connects to a database and lists the logs, each of which takes about 10 ms.
    Database(JoinHandle<Result<(PostgresBackend, LogList), DatabaseError>>),
}

impl<'a> PlaceOpening<'a> {
    /// Waits for the place, and returns it with a list of its logs; `own` is among them if it is there.
    ///
    /// # Errors
    ///
    /// If the place cannot be reached.
    pub(super) fn finish(self, own: &MachineName) -> Result<(Box<dyn TeamBackend + 'a>, LogList), TeamError> {
        match self {
            Self::Git(backend) => {
                let list = backend.list_logs(own)?;
                Ok((Box::new(backend), list))
            }
            Self::Database(opening) => {
                let (backend, list) = opening.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
                Ok((Box::new(backend), list))
            }
        }
    }
}

impl TeamSync<'_> {
    /// Asks the place of the logs for a list of them, and uses nothing of it.
    ///
    /// # Errors
    ///
    /// If the machine takes no part in a team, or the place cannot be reached.
    pub fn ask_place(&self) -> Result<(), SyncError> {
        let team = self.membership()?;
        self.open_place(&team, None)?.finish(&team.log)?;
        Ok(())
    }

    /// Begins to open the place of the logs. [`PlaceOpening::finish`] says whether that succeeds. A connection to the same
    /// database is used again.
    ///
    /// # Errors
    ///
    /// If the address of a database is wrong.
    pub(super) fn open_place(
        &self,
        team: &TeamMembership,
        connected: Option<&Arc<Database>>,
    ) -> Result<PlaceOpening<'_>, SyncError> {
        if is_database(&team.place) {
            let address = DatabaseAddress::parse(&team.place).map_err(TeamError::from)?;
            let project = team.project.clone();
            // This machine may have joined another place since the connection was made.
            let connected = connected.filter(|database| database.place() == address.as_str()).map(Arc::clone);
            let opening = std::thread::spawn(move || match connected {
                Some(database) => PostgresBackend::over(database, &project),
                None => PostgresBackend::open(&address, &project),
            });
            return Ok(PlaceOpening::Database(opening));
        }
        let signing = match self.services.settings.team.sign {
            SignChoice::Auto => SigningMode::AsConfigured,
            SignChoice::Always => SigningMode::Always,
            SignChoice::Never => SigningMode::Never,
        };
        Ok(PlaceOpening::Git(GitBackend::new(&self.services.repo, &team.place, signing)))
    }
}
