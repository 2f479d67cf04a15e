//! Chooses the name of this machine in a team, and refuses one that another machine or clone has.

use super::JoinArgs;
use super::place::TeamPlace;
use crate::cli::error::CliError;
use crate::domain::MachineName;
use crate::runner::{Services, SyncError};
use crate::store::TeamMembership;
use crate::team::TeamError;

/// Name of this machine in the team that it joins.
pub(super) struct ChosenName {
    pub machine: MachineName,
    /// Log that the machine writes.
    pub log: MachineName,
    /// True if the machine had another name until now, under which it has sent nothing.
    pub is_renamed: bool,
}

/// Chooses the name. `has_sent` is true if this store has sent something to the place.
pub(super) fn choose(
    services: &Services,
    arguments: &JoinArgs,
    TeamPlace { place, project, .. }: &TeamPlace,
    before: Option<&TeamMembership>,
    has_sent: bool,
) -> Result<ChosenName, CliError> {
    let mut is_renamed = false;
    if let (Some(name), Some(before)) = (&arguments.machine, before)
        && *name != before.machine
    {
        // Where another machine has the old name, this one has sent nothing under it.
        let there = TeamMembership { place: place.clone(), project: project.clone(), ..before.clone() };
        is_renamed = !has_sent && services.team().is_name_taken(&there).unwrap_or(false);
        if !is_renamed {
            return Err(CliError::usage(format!("this machine is called {} in its team", before.machine))
                .hint("records carry the name of their machine, so it stays; leave --machine out"));
        }
    }
    let machine = match (&arguments.machine, before) {
        (Some(name), _) => name.clone(),
        (None, Some(before)) => before.machine.clone(),
        (None, None) => make_name(services),
    };
    if machine.as_str() == MachineName::CI_LOG {
        return Err(CliError::usage(format!(
            "{:?} is the log that jobs of continuous integration share",
            machine.as_str()
        ))
        .hint("take another name"));
    }
    let log = match machine.is_ci() {
        true => MachineName::CI_LOG.parse().map_err(CliError::internal)?,
        false => machine.clone(),
    };
    Ok(ChosenName { machine, log, is_renamed })
}

/// Makes a name of the host and something that is unique.
fn make_name(services: &Services) -> MachineName {
    let id = services.ambient.new_run_id().to_string().to_lowercase();
    let unique: String = id.chars().rev().take(8).collect();
    match services.store.acts_for_ci() {
        true => MachineName::from_host("ci", &unique),
        false => MachineName::from_host(&crate::runner::host_name(), &unique),
    }
}

/// Returns false if the place cannot be asked now whether the name is free: joining works offline, and the first exchange asks.
///
/// # Errors
///
/// If another machine or clone has the name, or the store fails.
pub(super) fn check_free(services: &Services, team: &TeamMembership) -> Result<bool, CliError> {
    match services.team().is_name_taken(team) {
        Ok(false) => Ok(true),
        Ok(true) => Err(SyncError::name_taken(team).into()),
        Err(SyncError::Team(TeamError::Git(error))) => {
            tracing::warn!(%error, "nobody knows whether the name of this machine is free");
            Ok(false)
        }
        Err(error) => Err(error.into()),
    }
}
