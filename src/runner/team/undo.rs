//! Undoes and redoes triage. In a team, what others have decided may stand afterwards. The next exchange would find the same: both
//! compare the log with the decisions of the team by [`update_log`].

use std::collections::BTreeSet;

use super::merge_log::{LogOwner, update_log};
use super::merged_reports::PanelLists;
use super::read_person;
use super::received_records::load_decisions_about;
use crate::config::ClockAndIds;
use crate::domain::{Actor, Disposition, FindingId, TeamPerson, Time, TriageAction};
use crate::git::Repo;
use crate::store::triage::UndoOutcome;
use crate::store::{Store, StoreError};

/// Undoes the actor's own last triage, see [`Store::undo`]. Without a repository, the person has no other machine.
///
/// # Errors
///
/// If the store cannot be locked, read or written.
pub fn undo_triage(
    (repo, store): (Option<&Repo>, &Store),
    ambient: &ClockAndIds,
    actor: Actor,
) -> Result<UndoOutcome, StoreError> {
    let (person, at) = (repo.map(read_person).unwrap_or_default(), ambient.now());
    store.undo(actor, Some(person.email.as_str()), at, |log, new| find_standing(store, &person, (log, new), at))
}

/// Redoes the actor's own last undone triage, see [`undo_triage`].
///
/// # Errors
///
/// If the store cannot be locked, read or written.
pub fn redo_triage(
    (repo, store): (Option<&Repo>, &Store),
    ambient: &ClockAndIds,
    actor: Actor,
) -> Result<UndoOutcome, StoreError> {
    let (person, at) = (repo.map(read_person).unwrap_or_default(), ambient.now());
    store.redo(actor, Some(person.email.as_str()), at, |log, new| find_standing(store, &person, (log, new), at))
}

/// Returns the lines by which decisions of the team stand after `new` lines, which will be appended to the log before them. Looks at
/// the findings of undone decisions; none outside of a team.
///
/// # Errors
///
/// If the files of the team cannot be read.
pub(in crate::runner) fn find_standing(
    store: &Store,
    person: &TeamPerson,
    (log, new): (&[Disposition], &[Disposition]),
    now: Time,
) -> Result<Vec<Disposition>, StoreError> {
    let findings = list_undone(new);
    if findings.is_empty() {
        return Ok(Vec::new());
    }
    let Some(team) = store.active_membership()? else { return Ok(Vec::new()) };
    // If the file is damaged, no machine is forgotten.
    let forgotten = store.team_progress().map(|progress| progress.forgotten).unwrap_or_default();
    let lists = PanelLists::load(store, &forgotten)?;
    let findings = lists.reports.add_findings(&findings);
    let decisions = load_decisions_about(store, &lists.reports.add_reports(&findings), &forgotten, now)?;
    let owner = LogOwner { team: &team, person, forgotten: &forgotten, now };
    Ok(update_log(&[log, new].concat(), decisions, &findings, &lists, owner).lines)
}

/// Returns the findings of undone decisions.
pub(super) fn list_undone(lines: &[Disposition]) -> BTreeSet<FindingId> {
    let undone = lines.iter().filter(|line| line.action == TriageAction::Undo);
    undone.map(|line| line.finding_id.clone()).collect()
}
