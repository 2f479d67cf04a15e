//! Resolution of ids that a user types, with errors of the command line; see [`id_lookup`].

use super::error::CliError;
use crate::domain::{FindingId, FixId, RunId};
pub use crate::store::id_lookup::RunOrFinding;
use crate::store::{Store, StoreView, id_lookup};

/// Resolves `given` to a run; see [`id_lookup::resolve_run`].
///
/// # Errors
///
/// Returns an error if no run or several runs match, or if the store cannot be read.
pub fn resolve_run(store: &Store, given: &str) -> Result<RunId, CliError> {
    Ok(id_lookup::resolve_run(store, given)?)
}

/// Resolves `given` to a finding; see [`id_lookup::resolve_finding`].
///
/// # Errors
///
/// Returns an error if no finding or several findings match, or if the store cannot be read.
pub fn resolve_finding(store: &Store, given: &str) -> Result<FindingId, CliError> {
    Ok(id_lookup::resolve_finding(store, given)?)
}

/// Resolves `given` like [`resolve_finding`], in a view that is already loaded.
///
/// # Errors
///
/// Returns an error if no finding or several findings match.
pub fn resolve_finding_in(view: &StoreView, given: &str) -> Result<FindingId, CliError> {
    Ok(id_lookup::resolve_finding_in(view, given)?)
}

/// Resolves `given` to a fix; see [`id_lookup::resolve_fix`].
///
/// # Errors
///
/// Returns an error if no fix or several fixes match, or if the store cannot be read.
pub fn resolve_fix(store: &Store, given: &str) -> Result<FixId, CliError> {
    Ok(id_lookup::resolve_fix(store, given)?)
}

/// Resolves `given` to a run or a finding; see [`id_lookup::resolve_run_or_finding`].
///
/// # Errors
///
/// Returns an error if nothing matches, or both a run and a finding match.
pub fn resolve_run_or_finding(store: &Store, given: &str) -> Result<RunOrFinding, CliError> {
    Ok(id_lookup::resolve_run_or_finding(store, given)?)
}
