//! Finds the place where a team keeps its records: a git remote or a database.

use super::JoinArgs;
use crate::cli::error::CliError;
use crate::config::TeamBackendKind;
use crate::domain::text::sanitize_line;
use crate::runner::{Services, SyncError};
use crate::store::TeamMembership;
use crate::team::TeamError;
use crate::team::postgres::{Database, DatabaseAddress, DatabaseError, is_database, project_name};

/// Name of the git remote when none is given.
const DEFAULT_REMOTE: &str = "origin";
/// Maximum number of characters of a project's name.
const MAX_PROJECT_CHARS: usize = 200;

/// Place of the records.
pub(super) struct TeamPlace {
    /// Name of a git remote, URL or path; or the address of a database.
    pub place: String,
    /// Identity of the repository in a database; empty for a git remote.
    pub project: String,
    /// True if it is not the default, and is taken because this machine took part there last.
    pub is_former: bool,
}

/// Returns the place as every folder finds it. Without a name of it, this is the database of the settings, otherwise the place where
/// this machine took part last (`before`), otherwise the remote `origin`.
pub(super) fn resolve(
    services: &Services,
    arguments: &JoinArgs,
    before: Option<&TeamMembership>,
) -> Result<TeamPlace, CliError> {
    let settings = &services.settings.team;
    let has_database = !settings.database.is_empty();
    let (place, is_former) = match (&arguments.place, settings.backend, before) {
        (Some(place), ..) => (place.as_str(), false),
        (None, TeamBackendKind::Postgres, _) if has_database => (settings.database.as_str(), false),
        (None, TeamBackendKind::Postgres, Some(before)) if is_database(&before.place) => (before.place.as_str(), true),
        (None, TeamBackendKind::Postgres, _) => {
            return Err(CliError::usage("team.database of the settings names no database").hint(
                "`database = \"postgres://USER@HOST/DATABASE\"` in [team], or `revdeck team join postgres://...`",
            ));
        }
        (None, TeamBackendKind::Git, Some(before)) => (before.place.as_str(), before.place != DEFAULT_REMOTE),
        (None, TeamBackendKind::Git, None) => (DEFAULT_REMOTE, false),
    };
    if !is_database(place) {
        if arguments.project.is_some() {
            return Err(CliError::usage("--project is for a database: a git remote has one repository"));
        }
        return Ok(TeamPlace { place: resolve_remote(services, place)?, project: String::new(), is_former });
    }
    let address = DatabaseAddress::parse(place).map_err(to_cli_error)?;
    let known = before.filter(|before| before.place == address.as_str());
    let project = match (&arguments.project, known) {
        (Some(project), _) => project.trim().to_owned(),
        (None, Some(before)) => before.project.clone(),
        (None, None) => {
            services.repo.remote_url(DEFAULT_REMOTE).and_then(|url| project_name(&url)).ok_or_else(|| {
                CliError::usage("this repository has no remote `origin` that would name it in a database")
                    .hint("`--project NAME` does; all machines of the team must say the same")
            })?
        }
    };
    let is_name =
        |text: &str| !text.is_empty() && text.chars().count() <= MAX_PROJECT_CHARS && sanitize_line(text) == text;
    if !is_name(&project) {
        return Err(CliError::usage(format!("a project has 1 to {MAX_PROJECT_CHARS} printable characters")));
    }
    Ok(TeamPlace { place: address.as_str().to_owned(), project, is_former })
}

/// State of a place that has been prepared.
#[derive(Debug, Default)]
pub(super) struct PreparedPlace {
    /// Number of versions of tables that were added to the database.
    pub added: usize,
    /// True if the database holds the team to a budget.
    pub has_budget: bool,
}

/// Makes the tables of a database if they are not there. A git remote is not asked: joining works offline.
pub(super) fn prepare(TeamPlace { place, project, .. }: &TeamPlace) -> Result<PreparedPlace, CliError> {
    if !is_database(place) {
        return Ok(PreparedPlace::default());
    }
    let prepare = || {
        let database = Database::connect_unprepared(&DatabaseAddress::parse(place)?)?;
        let added = database.migrate()?;
        Ok(PreparedPlace { added, has_budget: database.read_budget(project)?.is_limited() })
    };
    prepare().map_err(|error| match error {
        // Nothing waits to be sent before the repository has joined.
        DatabaseError::Connect { is_login: false, .. } => {
            to_cli_error(error).hint("nothing was joined: try again when the database can be reached")
        }
        error => to_cli_error(error),
    })
}

/// Returns an error of the database with what to do next.
pub(super) fn to_cli_error(error: DatabaseError) -> CliError {
    SyncError::Team(TeamError::Database(error)).into()
}

/// Returns a git remote as every folder finds it: the name of a remote, an URL, or the path of a repository.
///
/// # Errors
///
/// If the repository has no such remote.
pub(in crate::cli) fn resolve_remote(services: &Services, place: &str) -> Result<String, CliError> {
    if services.repo.remote_url(place).is_some() && !place.starts_with('-') {
        return Ok(place.to_owned());
    }
    if let Ok(path) = std::path::Path::new(place).canonicalize()
        && path.is_dir()
    {
        return Ok(path.to_string_lossy().into_owned());
    }
    let is_elsewhere = place.contains(':') || place.starts_with('/');
    if place.is_empty() || place.starts_with('-') || !is_elsewhere {
        let is_path = place.contains('/') && !place.starts_with('-');
        if is_path {
            return Err(CliError::usage(format!("there is no repository at {place:?}"))
                .hint(format!("`git init --bare {place}` makes one; the name of a git remote or a URL works, too")));
        }
        let names = services.repo.remote_names();
        let there_are = match names.is_empty() {
            true => "this repository has no remote; a URL or the path of a bare repository works, too".to_owned(),
            false => format!("there are: {}; a URL or a path works, too", names.join(", ")),
        };
        return Err(CliError::usage(format!("{place:?} is no git remote of this repository")).hint(there_are));
    }
    Ok(place.to_owned())
}
