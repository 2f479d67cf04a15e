//! Lets the records of a machine count no longer (`revdeck team forget`), and again (`revdeck team remember`).
//!
//! - Its decisions decide no longer: what others have decided stands, or else what reviews have seen. A finding that it alone has
//!   dismissed is open again.
//! - Its reviews answer no request, and nothing is carried over from them.
//! - A finding that nobody else has reported or decided about becomes obsolete.
//!
//! Nothing is removed from the history: each step is a line that says why. When the machine is used again, such lines are taken
//! back, its decisions by the next exchange.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::slice::from_ref;
use std::sync::Arc;

use super::{SyncError, SyncReport, TeamSync, signers};
use crate::domain::{Disposition, FindingId, FindingStatus, MachineName, RunId, RunStatus, Time};
use crate::store::{LearningPolicy, Store, StoreError, StoreView, TeamProgress};
use crate::team::postgres;

/// Maximum number of results that are searched for reports that were held back. The newest ones are.
const MAX_SEARCHED_RESULTS: usize = 1_000;

/// Outcome of forgetting a machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ForgetReport {
    /// Number of findings that have another status without its decisions.
    pub changed: usize,
    /// Number of findings that nobody else has reported, and that are obsolete now.
    pub retired: usize,
}

impl TeamSync<'_> {
    /// Returns the machines and logs that have said something here, at whichever place, and those that are forgotten.
    ///
    /// # Errors
    ///
    /// If the store cannot be read.
    pub fn known_machines(&self) -> Result<BTreeSet<MachineName>, SyncError> {
        let store = &self.services.store;
        let joined = store.team_progress()?;
        let others: Vec<TeamProgress> = store.other_team_places()?.into_iter().map(|other| other.progress).collect();
        let mut known: BTreeSet<MachineName> = joined.forgotten.iter().cloned().collect();
        for progress in others.iter().chain([&joined]) {
            known.extend(progress.logs.keys().cloned());
            known.extend(progress.set_aside.iter().map(|entry| entry.segment.log.clone()));
        }
        known.extend(store.received_team_logs()?);
        // What came before this machine was elsewhere is here, too.
        known.extend(store.triage_log()?.into_iter().filter_map(|line| line.team).map(|origin| origin.id.machine));
        known.extend(store.latest_records()?.into_iter().filter_map(|run| run.team).map(|origin| origin.machine));
        Ok(known)
    }

    /// Stops using the records of a log: removes what was received from it, reads it no more, and takes back what followed
    /// from it. Its records at other places count no longer, too.
    ///
    /// # Errors
    ///
    /// If the store cannot be read or written. A repetition does the rest.
    pub fn forget(&self, log: &MachineName) -> Result<ForgetReport, SyncError> {
        let store = &self.services.store;
        let Some(_lock) = store.lock_team()? else { return Err(SyncError::Busy) };
        let mut progress = store.team_progress()?;
        let mut report = ForgetReport::default();
        progress.logs.remove(log);
        if progress.has_unsynced_results {
            // Its reviews stay, and only its lines can tell those that were lost.
            self.restore_results(&mut progress)?;
        }
        store.remove_received_team_lines(log)?;
        let others: Vec<MachineName> =
            progress.logs.keys().chain(progress.set_aside.iter().map(|entry| &entry.segment.log)).cloned().collect();
        store.remove_set_aside_segments(log, &others)?;
        progress.set_aside.retain(|entry| entry.segment.log != *log);
        if !progress.forgotten.contains(log) {
            progress.forgotten.push(log.clone());
        }
        // A review of another machine may have been refused because this one had claimed its id.
        progress.reader.clear();
        progress.disputes.retain(|_, sides| !sides.iter().any(|side| side.machine.is_forgotten(from_ref(log))));
        store.update_other_places(|progress| {
            progress.logs.remove(log);
            progress.set_aside.retain(|entry| entry.segment.log != *log);
            progress.reader.clear();
        })?;
        let team = store.team_membership()?;
        let joined = team.as_ref().map(|team| team.place.clone());
        let places = store.other_team_places()?.into_iter().map(|other| other.place).chain(joined);
        for place in places.filter(|place| !postgres::is_database(place)) {
            if let Err(error) = self.services.repo.forget_tracked_log(&place, log.as_str()) {
                tracing::warn!(%log, %error, "what was fetched of a forgotten log stays");
            }
        }
        store.write_team_progress(&progress)?;
        if let Some(team) = &team {
            let lines = store.triage_log()?;
            let mut decided = list_decided_by(&lines, log);
            // Lists of the machine do not count, either.
            decided.extend(lines.iter().filter(|line| line.follows_report()).map(|line| line.finding_id.clone()));
            report.changed = self.apply_decisions(team, &decided, &mut progress, &mut SyncReport::default())?;
            store.write_team_progress(&progress)?;
            report.retired = self.retire_unconfirmed(log, &progress.forgotten)?;
        }
        Ok(report)
    }

    /// Reads a forgotten log again from the next exchange on, and one that was set aside because another key has signed it.
    /// Returns false if it was neither.
    ///
    /// # Errors
    ///
    /// If the store cannot be read or written.
    pub fn remember(&self, log: &MachineName) -> Result<bool, SyncError> {
        let store = &self.services.store;
        let Some(_lock) = store.lock_team()? else { return Err(SyncError::Busy) };
        let mut progress = store.team_progress()?;
        let before = progress.forgotten.len();
        progress.forgotten.retain(|known| known != log);
        let was_forgotten = progress.forgotten.len() < before;
        let mut has_other_signer = signers::accept_other_signer(log, &mut progress);
        // The next exchange reads its log from the start.
        progress.reader.clear();
        store.update_other_places(|progress| {
            has_other_signer |= signers::accept_other_signer(log, progress);
            progress.reader.clear();
        })?;
        store.write_team_progress(&progress)?;
        if was_forgotten {
            let reports = RunReports::load(store)?;
            let counting = reports.list_findings(|machine| is_counting(machine, &progress.forgotten));
            self.reopen_retired(&counting, &format!("{log} is used again"))?;
        }
        Ok(has_other_signer || was_forgotten)
    }

    /// Returns the machines and logs whose records do not count. If the file is damaged, all do.
    pub(in crate::runner) fn list_forgotten(&self) -> Vec<MachineName> {
        self.services.store.team_progress().map(|progress| progress.forgotten).unwrap_or_default()
    }

    /// Returns the ids of those of these runs that forgotten machines have made. Reads `runs.ndjson` once if there are such machines,
    /// however many runs they have sent, and else not at all.
    pub(in crate::runner) fn find_forgotten_runs<'r>(
        &self,
        runs: impl Iterator<Item = &'r str>,
    ) -> Result<HashSet<String>, StoreError> {
        let forgotten = self.list_forgotten();
        if forgotten.is_empty() {
            return Ok(HashSet::new());
        }
        let wanted: BTreeSet<&str> = runs.collect();
        let records = self.services.store.latest_records_of(&wanted)?.into_iter();
        Ok(records.filter(|(_, run)| run.is_of_forgotten(&forgotten)).map(|(id, _)| id).collect())
    }

    /// Opens findings again that were retired with a machine, because one that counts has reported them, too.
    pub(super) fn reopen_retired(&self, reported: &BTreeSet<FindingId>, why: &str) -> Result<(), StoreError> {
        let now = self.services.ambient.now();
        self.append_lines(|log| reopen_lines(log, reported, why, now)).map(drop)
    }

    /// Makes the findings obsolete that a machine has reported and nobody who counts; returns their number.
    fn retire_unconfirmed(&self, log: &MachineName, forgotten: &[MachineName]) -> Result<usize, StoreError> {
        let store = &self.services.store;
        let reports = RunReports::load(store)?;
        let mut alone = reports.list_findings(|machine| machine.is_some_and(|name| name.is_forgotten(from_ref(log))));
        let confirmed = reports.list_findings(|machine| is_counting(machine, forgotten));
        alone.retain(|finding| !confirmed.contains(finding));
        reports.remove_held_back(store, forgotten, &mut alone)?;
        if alone.is_empty() {
            return Ok(0);
        }
        let now = self.services.ambient.now();
        self.append_lines(|lines| retire_lines(lines, &alone, log, forgotten, now))
    }

    /// Appends the lines that follow from the log of decisions, and returns their number.
    fn append_lines(&self, build: impl FnOnce(&[Disposition]) -> Vec<Disposition>) -> Result<usize, StoreError> {
        // Nothing is learned from them.
        let store = self.services.store.clone().with_learning(LearningPolicy::Refused);
        let lines = store.decide(|log| -> Result<Vec<Disposition>, StoreError> { Ok(build(log)) })?;
        Ok(lines.len())
    }
}

/// Returns true for this machine (`None`), and for another one that is not forgotten.
fn is_counting(machine: Option<&MachineName>, forgotten: &[MachineName]) -> bool {
    machine.is_none_or(|machine| !machine.is_forgotten(forgotten))
}

/// Runs of the store, with the machines that have made those of others.
struct RunReports {
    view: Arc<StoreView>,
    origins: HashMap<RunId, MachineName>,
}

impl RunReports {
    fn load(store: &Store) -> Result<Self, StoreError> {
        let records = store.latest_records()?.into_iter();
        let origins = records.filter_map(|run| Some((run.run_id, run.team?.machine))).collect();
        Ok(Self { view: store.view()?, origins })
    }

    /// Returns the machine that has made a run, given by its index in the view; `None` for this one.
    fn origin(&self, run: usize) -> Option<&MachineName> {
        self.origins.get(&self.view.run_id(run).parse::<RunId>().ok()?)
    }

    /// Returns the findings that the runs of some machines have reported or carried over.
    fn list_findings(&self, is_wanted: impl Fn(Option<&MachineName>) -> bool) -> BTreeSet<FindingId> {
        let runs = (0..self.view.run_count()).filter(|run| is_wanted(self.origin(*run)));
        let indexes: HashSet<usize> = runs.flat_map(|run| self.view.reported_findings(run)).collect();
        indexes.into_iter().filter_map(|index| self.view.finding_outline(index).id.parse().ok()).collect()
    }

    /// Removes the findings that a run which counts has found, too, and has held back: the decision of the forgotten machine may
    /// be the only reason.
    fn remove_held_back(
        &self,
        store: &Store,
        forgotten: &[MachineName],
        findings: &mut BTreeSet<FindingId>,
    ) -> Result<(), StoreError> {
        let is_searched = |run: &usize| {
            self.view.run_status(*run) == RunStatus::Completed && is_counting(self.origin(*run), forgotten)
        };
        for run in (0..self.view.run_count()).filter(is_searched).take(MAX_SEARCHED_RESULTS) {
            if findings.is_empty() {
                break;
            }
            let Ok(id) = self.view.run_id(run).parse::<RunId>() else { continue };
            let Some(output) = store.output(&id)? else { continue };
            for held in &output.held_back {
                findings.remove(&held.finding.finding_id);
            }
            for place in output.held_back_places.iter().flatten() {
                findings.remove(&place.finding_id);
            }
        }
        Ok(())
    }
}

/// Returns the findings about which the machines of a log have decided.
fn list_decided_by(lines: &[Disposition], log: &MachineName) -> BTreeSet<FindingId> {
    let is_by_log =
        |line: &&Disposition| line.team.as_ref().is_some_and(|origin| origin.id.machine.is_forgotten(from_ref(log)));
    lines.iter().filter(is_by_log).map(|line| line.finding_id.clone()).collect()
}

/// Returns the lines that make findings obsolete which wait for a decision, unless somebody who counts has ever decided about them.
fn retire_lines(
    lines: &[Disposition],
    findings: &BTreeSet<FindingId>,
    log: &MachineName,
    forgotten: &[MachineName],
    at: Time,
) -> Vec<Disposition> {
    let mut last: HashMap<&FindingId, FindingStatus> = HashMap::new();
    let mut decided: HashSet<&FindingId> = HashSet::new();
    for line in lines.iter().filter(|line| findings.contains(&line.finding_id)) {
        last.insert(&line.finding_id, line.status);
        let machine = line.team.as_ref().map(|origin| &origin.id.machine);
        // Nobody has looked at a finding that follows a report.
        if line.is_decision() && !line.follows_report() && is_counting(machine, forgotten) {
            decided.insert(&line.finding_id);
        }
    }
    let present = |finding: &FindingId| last.get(finding).copied().unwrap_or(FindingStatus::Open);
    let retired = findings.iter().filter(|finding| !decided.contains(finding) && present(finding).is_undecided());
    let to_line = |finding: &FindingId| {
        let change = (present(finding), FindingStatus::Obsolete);
        let reason = format!("reported by {log} alone: machine forgotten");
        Disposition::from_forgetting(log, finding.clone(), change, reason, at)
    };
    retired.map(to_line).collect()
}

/// Returns the lines that open findings again that [`retire_lines`] has made obsolete, and that nothing has changed since.
fn reopen_lines(lines: &[Disposition], findings: &BTreeSet<FindingId>, why: &str, at: Time) -> Vec<Disposition> {
    let about = lines.iter().filter(|line| findings.contains(&line.finding_id));
    let last: BTreeMap<&FindingId, &Disposition> = about.map(|line| (&line.finding_id, line)).collect();
    let is_retired = |line: &&Disposition| line.status == FindingStatus::Obsolete && line.forgotten_machine().is_some();
    let to_line = |line: &Disposition| Disposition {
        status: line.previous,
        previous: line.status,
        reason: why.to_owned(),
        at,
        ..line.clone()
    };
    last.into_values().filter(is_retired).map(to_line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Actor, DecisionId, TeamClock, TeamOrigin, TeamPerson, TriageAction};

    fn finding(letter: &str) -> FindingId {
        format!("f_{}", letter.repeat(16)).parse().expect("an id")
    }

    /// Builds lines from words such as `a:eve-1:dismissed`: finding, machine and status. `me` decides here, `engine` sees something.
    fn lines(words: &str) -> Vec<Disposition> {
        let mut previous = FindingStatus::Open;
        let line = |word: &str| {
            let parts: Vec<&str> = word.split(':').collect();
            let [letter, author, status] = parts.as_slice() else { panic!("{word}") };
            let status: FindingStatus = status.parse().expect("a status");
            let is_elsewhere = !matches!(*author, "me" | "engine");
            let origin = is_elsewhere.then(|| TeamOrigin {
                id: DecisionId { clock: TeamClock { ms: 1, count: 0 }, machine: author.parse().expect("a name") },
                person: TeamPerson::default(),
            });
            Disposition {
                finding_id: finding(letter),
                status,
                previous: std::mem::replace(&mut previous, status),
                actor: if *author == "engine" { Actor::Engine } else { Actor::User },
                reason: String::new(),
                at: Time::UNIX_EPOCH,
                action: TriageAction::Set,
                group: String::new(),
                run_id: None,
                merged_into: None,
                team: origin,
                ci: false,
            }
        };
        words.split_whitespace().map(line).collect()
    }

    #[test]
    fn a_finding_that_nobody_who_counts_has_decided_about_is_retired_and_opened_again() {
        let eve: MachineName = "eve-1".parse().expect("a name");
        for (words, expected) in [
            ("", Some("open")),
            ("a:engine:unresolved", Some("unresolved")),
            ("a:eve-1:open", Some("open")),
            ("a:eve-1:dismissed a:engine:open", Some("open")),
            // Somebody else has looked at it.
            ("a:me:open", None),
            ("a:bob-1:dismissed a:bob-1:open", None),
            // It is settled.
            ("a:engine:addressed", None),
            ("a:engine:obsolete", None),
        ] {
            let mut log = lines(words);
            let findings = BTreeSet::from([finding("a")]);
            let retired = retire_lines(&log, &findings, &eve, from_ref(&eve), Time::UNIX_EPOCH);
            let previous: Vec<&str> = retired.iter().map(|line| line.previous.word()).collect();
            assert_eq!(previous, expected.into_iter().collect::<Vec<_>>(), "{words}");
            log.extend(retired);
            let reopened = reopen_lines(&log, &findings, "eve-1 is used again", Time::UNIX_EPOCH);
            let statuses: Vec<&str> = reopened.iter().map(|line| line.status.word()).collect();
            assert_eq!(statuses, expected.into_iter().collect::<Vec<_>>(), "{words}");
            log.extend(reopened);
            assert_eq!(reopen_lines(&log, &findings, "again", Time::UNIX_EPOCH), [], "{words}");
        }
    }

    #[test]
    fn what_was_decided_after_a_finding_was_retired_stays() {
        let eve: MachineName = "eve-1".parse().expect("a name");
        let findings = BTreeSet::from([finding("a"), finding("b")]);
        let mut log = retire_lines(&[], &findings, &eve, from_ref(&eve), Time::UNIX_EPOCH);
        log.extend(lines("a:me:dismissed"));
        let reopened = reopen_lines(&log, &findings, "eve-1 is used again", Time::UNIX_EPOCH);
        assert_eq!(reopened.iter().map(|line| line.finding_id.clone()).collect::<Vec<_>>(), [finding("b")]);
        assert_eq!(list_decided_by(&lines("a:eve-1:open b:bob-1:open"), &eve), BTreeSet::from([finding("a")]));
    }
}
