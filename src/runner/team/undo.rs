//! Undoes and redoes triage, and finds what follows at once from new lines of the log: in a team, what others have decided may stand
//! after an undo, and findings of panels' lists follow what is decided about their reports. The next exchange would find the same: all
//! compare the log with the decisions of the team by [`update_log`].

use std::collections::{BTreeSet, HashSet};

use super::merge_log::{LogOwner, update_log};
use super::merged_reports::PanelLists;
use super::read_person;
use super::received_records::load_decisions_about;
use crate::config::ClockAndIds;
use crate::domain::{Actor, Disposition, FindingId, MachineName, RunId, Time, TriageAction};
use crate::git::Repo;
use crate::policy::{UndoLines, describe_undo, restore_replaced, restores_decision, withdraw_from_obsolete};
use crate::store::triage::{StepDraft, StepRecord, UndoDirection, UndoOutcome};
use crate::store::{Store, StoreError, TeamMembership};

/// Undoes the actor's own last triage, or redoes what was undone last, see [`Store::undo_or_redo`]. Without a repository, the person
/// has no other machine.
///
/// # Errors
///
/// If the store cannot be locked, read or written.
pub fn undo_or_redo_triage(
    (repo, store): (Option<&Repo>, &Store),
    ambient: &ClockAndIds,
    direction: UndoDirection,
    actor: Actor,
) -> Result<UndoOutcome, StoreError> {
    let (person, at) = (repo.map(read_person).unwrap_or_default(), ambient.now());
    store.undo_or_redo(direction, actor, Some(person.email.as_str()), at, |log, StepDraft { mut lines, merges }| {
        let known = KnownTeam::load(store)?;
        if let Some(known) = &known {
            known.restore_replaced(store, log, &mut lines, at)?;
        }
        let seen = withdraw_from_obsolete(log, &mut lines);
        let mut recorded = [lines.as_slice(), merges.as_slice(), seen.as_slice()].concat();
        let decided = match &known {
            Some(known) => {
                known.leave_out_followers(log, &mut recorded);
                known.find_standing((repo, store), (log, &recorded), at)?
            }
            None => Vec::new(),
        };
        let standing = [seen, decided.clone()].concat();
        let said = describe_undo(UndoLines { log, lines: &lines, recorded: &recorded, standing: &standing });
        Ok(StepRecord { appended: [recorded, decided].concat(), said })
    })
}

/// Returns the lines that follow from `new` lines, which will be appended to the log before them: decisions of the team that stand after
/// an undo, and what findings of panels' lists take over from their reports. None if this machine never took part in a team: what it
/// has received holds after it has left, too.
///
/// # Errors
///
/// If the files of the team cannot be read.
pub(in crate::runner) fn find_standing(
    places: (Option<&Repo>, &Store),
    lines: (&[Disposition], &[Disposition]),
    now: Time,
) -> Result<Vec<Disposition>, StoreError> {
    match KnownTeam::load(places.1)? {
        Some(known) => known.find_standing(places, lines, now),
        None => Ok(Vec::new()),
    }
}

/// Team in which this machine takes or took part, as far as it is known here.
struct KnownTeam {
    team: TeamMembership,
    forgotten: Vec<MachineName>,
    lists: PanelLists,
}

impl KnownTeam {
    fn load(store: &Store) -> Result<Option<Self>, StoreError> {
        let Some(team) = store.team_membership()? else { return Ok(None) };
        // If the file is damaged, no machine is forgotten.
        let forgotten = store.team_progress().map(|progress| progress.forgotten).unwrap_or_default();
        let lists = PanelLists::load(store, &forgotten)?;
        Ok(Some(Self { team, forgotten, lists }))
    }

    /// Leaves out the lines of an undo or redo by which this machine would decide about the findings of lists for itself, although these
    /// follow the decisions about their reports that are undone or redone, too.
    fn leave_out_followers(&self, log: &[Disposition], new: &mut Vec<Disposition>) {
        let is_known = |line: &Disposition| {
            let run = line.run_id.as_ref().filter(|_| line.action != TriageAction::Set);
            run.is_some_and(|run| self.lists.knows_reports_of(run))
        };
        if !new.iter().any(is_known) {
            return;
        }
        let followed = log.iter().filter(|line| line.action == TriageAction::Set && line.follows_report());
        let followed: HashSet<_> = followed.map(name_source).collect();
        let undone = list_undone(new);
        let is_report_undone = |listed: &FindingId| {
            let reports = self.lists.reports.add_reports(&BTreeSet::from([listed.clone()]));
            reports.iter().any(|report| report != listed && undone.contains(report))
        };
        let follows_anyway = |line: &Disposition| {
            is_known(line)
                && followed.contains(&name_source(line))
                && (line.action == TriageAction::Redo || is_report_undone(&line.finding_id))
        };
        new.retain(|line| !follows_anyway(line));
    }

    /// Does the same as [`restore_replaced`] with what the team has decided. Reads that only if a line needs it.
    fn restore_replaced(
        &self,
        store: &Store,
        log: &[Disposition],
        lines: &mut [Disposition],
        now: Time,
    ) -> Result<(), StoreError> {
        let restored = lines.iter().filter(|line| restores_decision(line));
        let findings: BTreeSet<FindingId> = restored.map(|line| line.finding_id.clone()).collect();
        if !findings.is_empty() {
            restore_replaced(log, lines, &load_decisions_about(store, &findings, &self.forgotten, now)?);
        }
        Ok(())
    }

    /// Does the same as [`find_standing`].
    fn find_standing(
        &self,
        (repo, store): (Option<&Repo>, &Store),
        (log, new): (&[Disposition], &[Disposition]),
        now: Time,
    ) -> Result<Vec<Disposition>, StoreError> {
        let Self { team, forgotten, lists } = self;
        let mut findings = list_undone(new);
        let decided = new.iter().filter(|line| line.is_decision() && lists.reports.has_report(&line.finding_id));
        findings.extend(decided.map(|line| line.finding_id.clone()));
        if findings.is_empty() {
            return Ok(Vec::new());
        }
        let findings = lists.reports.add_findings(&findings);
        let decisions = load_decisions_about(store, &lists.reports.add_reports(&findings), forgotten, now)?;
        let person = repo.map(read_person).unwrap_or_default();
        let owner = LogOwner { team, person: &person, forgotten, now };
        Ok(update_log(&[log, new].concat(), decisions, &findings, lists, owner).lines)
    }
}

/// Returns what a line about the finding of a list has in common with the line by which the finding followed a report.
fn name_source(line: &Disposition) -> (&FindingId, &str, Option<&RunId>) {
    (&line.finding_id, line.group.as_str(), line.run_id.as_ref())
}

/// Returns the findings of undone decisions.
pub(super) fn list_undone(lines: &[Disposition]) -> BTreeSet<FindingId> {
    let undone = lines.iter().filter(|line| line.action == TriageAction::Undo);
    undone.map(|line| line.finding_id.clone()).collect()
}
