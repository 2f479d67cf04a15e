//! Sets the status of findings on behalf of a person or an assistant, as one step that an undo takes back.
//!
//! A list may still show a report that a panel has merged into a finding with another id since. A decision about such a report is
//! one about that finding ([`find_decided`]).

use std::collections::HashSet;

use crate::config::ClockAndIds;
use crate::domain::text::sanitize_line;
use crate::domain::{Actor, Disposition, FindingId, FindingStatus, Time, TriageAction};
use crate::git::Repo;
use crate::policy::{self, Refusal};
use crate::runner::team::find_standing;
use crate::store::{ListedReports, Store, StoreError};

/// Requested change of the status of findings.
#[derive(Debug, Clone, Copy)]
pub struct StatusChange<'a> {
    /// Author of the change.
    pub actor: Actor,
    /// New status.
    pub status: FindingStatus,
    /// Reason, stored with the change; may be empty unless [`policy::needs_reason`].
    pub reason: &'a str,
}

/// Error of a change of status.
#[derive(Debug, thiserror::Error)]
pub enum SetStatusError {
    /// The actor may not set the status, so no finding was changed.
    #[error("{finding} cannot become {status}: {refusal}")]
    Refused {
        /// Finding that may not be changed.
        finding: FindingId,
        /// Requested status.
        status: FindingStatus,
        /// Rule that forbids it.
        refusal: Refusal,
    },
    /// The store cannot be locked, read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Finding about which a decision is, although it may name another id.
#[derive(Debug, Clone, PartialEq)]
pub struct DecidedFinding {
    /// Finding that is decided.
    pub finding_id: FindingId,
    /// Line by which a report gives way to the finding, because the list of a panel had taken its own decision over. It is stored
    /// with the decision.
    pub merge: Option<Disposition>,
}

/// Returns the finding about which a decision is that gives an id a status at a time, after the lines of the log.
///
/// # Errors
///
/// If the list of a panel cannot be read.
pub fn find_decided(
    reports: &mut ListedReports<'_>,
    id: &FindingId,
    (status, at): (FindingStatus, Time),
) -> Result<DecidedFinding, StoreError> {
    let follows = policy::follows_merge(status);
    let report = if follows { reports.last_lines().follow_merges(id).clone() } else { id.clone() };
    let Some((listed, run)) = reports.find_taken_over(&report)? else {
        return Ok(DecidedFinding { finding_id: report, merge: None });
    };
    let last = reports.last_lines();
    let merge = Disposition::from_merge(&report, last.status_of(&report), &listed, &run, at);
    Ok(DecidedFinding { finding_id: last.follow_merges(&listed).clone(), merge: Some(merge) })
}

/// Sets the status of the chosen findings and returns the stored dispositions, which are about the findings that
/// [`find_decided`] returns. Findings that already have the status are skipped. If the actor may not change one of the others,
/// none is changed. Findings of lists of the team's panels that follow the decided ones do so at once ([`find_standing`]).
///
/// # Errors
///
/// If the actor may not set the status, or the store cannot be locked, read or written.
pub fn set_status(
    (repo, store): (Option<&Repo>, &Store),
    ambient: &ClockAndIds,
    chosen: &[FindingId],
    change: StatusChange<'_>,
) -> Result<Vec<Disposition>, SetStatusError> {
    let mut lines = store.decide(|log| -> Result<Vec<Disposition>, SetStatusError> {
        let mut lines = build_dispositions((store, ambient), log, chosen, change)?;
        if let Some(at) = lines.last().map(|line| line.at) {
            lines.extend(find_standing((repo, store), (log, &lines), at)?);
        }
        Ok(lines)
    })?;
    lines.retain(|line| line.merged_into.is_none() && line.team.is_none());
    Ok(lines)
}

fn build_dispositions(
    (store, ambient): (&Store, &ClockAndIds),
    log: &[Disposition],
    chosen: &[FindingId],
    StatusChange { actor, status, reason }: StatusChange<'_>,
) -> Result<Vec<Disposition>, SetStatusError> {
    let at = ambient.now();
    let group = ambient.new_run_id().to_string().replacen("ar_", "t_", 1);
    let mut lines = Vec::new();
    let (mut known, mut merged) = (HashSet::new(), HashSet::new());
    let mut reports = ListedReports::new(store, log);
    for chosen in chosen {
        let DecidedFinding { finding_id, merge } = find_decided(&mut reports, chosen, (status, at))?;
        let previous = reports.last_lines().status_of(&finding_id);
        // Two of the chosen ids may stand for one report.
        lines.extend(merge.filter(|merge| merged.insert(merge.finding_id.clone())));
        match policy::may_set(actor, previous, status) {
            Ok(()) => {}
            Err(Refusal::AlreadySo(_)) => continue,
            Err(refusal) => return Err(SetStatusError::Refused { finding: finding_id, status, refusal }),
        }
        if !known.insert(finding_id.clone()) {
            continue;
        }
        lines.push(Disposition {
            finding_id,
            status,
            previous,
            actor,
            reason: sanitize_line(reason).into_owned(),
            at,
            action: TriageAction::Set,
            group: group.clone(),
            run_id: None,
            merged_into: None,
            team: None,
            ci: false,
        });
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::fixture::RunnerFixture;

    #[test]
    fn a_decision_about_a_merged_report_is_one_about_the_finding_of_the_list() {
        use Actor::{Assistant, User};
        use FindingStatus::{Addressed, Dismissed, Open};
        let fixture = RunnerFixture::new();
        let (store, ambient) = (&fixture.services.store, &fixture.services.ambient);
        let [report, moved, listed] =
            ["report", "moved", "listed"].map(|code| FindingId::from_parts("X", "a.rs", code, 0));
        // A later panel has listed the finding of the first one under yet another id.
        let merge = |report: &FindingId, listed: &FindingId| {
            Disposition::from_merge(report, Open, listed, &ambient.new_run_id(), ambient.now())
        };
        let lines = vec![merge(&report, &moved), merge(&moved, &listed)];
        store.decide(|_| Ok::<_, StoreError>(lines)).expect("stored");
        let set = |chosen: &[&FindingId], actor: Actor, status: FindingStatus| {
            let chosen: Vec<FindingId> = chosen.iter().map(|id| (*id).clone()).collect();
            let lines = set_status((None, store), ambient, &chosen, StatusChange { actor, status, reason: "said" });
            let lines = lines.expect("allowed").into_iter();
            lines.map(|line| (line.finding_id, line.previous, line.status)).collect::<Vec<_>>()
        };
        assert_eq!(set(&[&report, &moved, &listed], Assistant, Addressed), [(listed.clone(), Open, Addressed)]);
        assert_eq!(set(&[&moved], User, Dismissed), [(listed.clone(), Addressed, Dismissed)]);
        // Who opens the report takes it out of the list; from then on it is decided for itself.
        assert_eq!(set(&[&report], User, Open), [(report.clone(), FindingStatus::Obsolete, Open)]);
        assert_eq!(set(&[&report], User, Addressed), [(report.clone(), Open, Addressed)]);
    }

    #[test]
    fn a_report_that_is_chosen_twice_gives_way_once() {
        use FindingStatus::{Dismissed, Open};
        let fixture = RunnerFixture::new();
        let (store, ambient) = (&fixture.services.store, &fixture.services.ambient);
        let [older, report, listed] =
            ["older", "report", "listed"].map(|code| FindingId::from_parts("X", "a.rs", code, 0));
        let run = fixture.write_list(&[(&listed, &[&report])]);
        let change = |status: FindingStatus| StatusChange { actor: Actor::User, status, reason: "said" };
        set_status((None, store), ambient, std::slice::from_ref(&report), change(Dismissed)).expect("allowed");
        store
            .decide(|log| {
                let merge = Disposition::from_merge(&older, Open, &report, &run, ambient.now());
                let taken = Disposition { finding_id: listed.clone(), run_id: Some(run.clone()), ..log[0].clone() };
                Ok::<_, StoreError>(vec![merge, taken])
            })
            .expect("stored");
        let before = store.triage_log().expect("readable").len();
        let chosen = [report.clone(), older, report.clone()];
        set_status((None, store), ambient, &chosen, change(FindingStatus::Addressed)).expect("allowed");
        let log = store.triage_log().expect("readable");
        let lines: Vec<&FindingId> = log.iter().skip(before).map(|line| &line.finding_id).collect();
        assert_eq!(lines, [&report, &listed]);
    }

    #[test]
    fn a_decision_about_a_report_whose_decision_a_list_has_taken_over_is_one_about_the_finding_of_the_list() {
        use FindingStatus::{Addressed, Dismissed, Obsolete, Open};
        let fixture = RunnerFixture::new();
        let (store, ambient) = (&fixture.services.store, &fixture.services.ambient);
        let [report, listed, shared, other] =
            ["report", "listed", "shared", "other"].map(|code| FindingId::from_parts("X", "a.rs", code, 0));
        let set = |id: &FindingId, status: FindingStatus| {
            let change = StatusChange { actor: Actor::User, status, reason: "said" };
            let lines = set_status((None, store), ambient, std::slice::from_ref(id), change).expect("allowed");
            lines.into_iter().map(|line| (line.finding_id, line.previous, line.status)).collect::<Vec<_>>()
        };
        // Two members reported different problems under `shared`, so the list has it for none of them alone.
        let run = fixture.write_list(&[(&listed, &[&report, &shared]), (&other, &[&shared])]);
        assert_eq!(set(&report, Dismissed), [(report.clone(), Open, Dismissed)]);
        assert_eq!(set(&shared, Dismissed), [(shared.clone(), Open, Dismissed)]);
        store
            .decide(|log| {
                let taken = log.iter().map(|line| {
                    let (finding_id, run_id) = (listed.clone(), Some(run.clone()));
                    Disposition { finding_id, run_id, ..line.clone() }
                });
                Ok::<_, StoreError>(taken.collect())
            })
            .expect("stored");
        assert_eq!(set(&report, Open), [(listed.clone(), Dismissed, Open)]);
        let status_of = |id: &FindingId| store.status(id).expect("readable");
        assert_eq!((status_of(&report), status_of(&listed)), (Obsolete, Open), "the report gives way");
        assert_eq!(set(&report, Addressed), [(listed.clone(), Open, Addressed)]);
        assert_eq!(set(&shared, Open), [(shared.clone(), Dismissed, Open)], "it stands for several problems");
    }
}
