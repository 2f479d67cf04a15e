//! Sets the status of findings on behalf of a person or an assistant, as one step that an undo takes back.
//!
//! A list may still show a report that a panel has merged into a finding with another id since. A decision about such a report is
//! one about that finding ([`find_decided`]).

use std::collections::HashSet;

use crate::config::ClockAndIds;
use crate::domain::text::sanitize_line;
use crate::domain::{Actor, Disposition, FindingId, FindingStatus, TriageAction};
use crate::policy::{self, Refusal};
use crate::store::triage::{follow_merged, status_after};
use crate::store::{Store, StoreError};

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

/// Returns the finding about which a decision is that gives an id a status after the lines of the log.
pub fn find_decided<'a>(log: &'a [Disposition], id: &'a FindingId, status: FindingStatus) -> &'a FindingId {
    if policy::follows_merge(status) { follow_merged(log, id) } else { id }
}

/// Sets the status of the chosen findings and returns the stored dispositions, which are about the findings that
/// [`find_decided`] returns. Findings that already have the status are skipped. If the actor may not change one of the others,
/// none is changed.
///
/// # Errors
///
/// If the actor may not set the status, or the store cannot be locked, read or written.
pub fn set_status(
    store: &Store,
    ambient: &ClockAndIds,
    chosen: &[FindingId],
    change: StatusChange<'_>,
) -> Result<Vec<Disposition>, SetStatusError> {
    store.decide(|log| build_dispositions(ambient, log, chosen, change))
}

fn build_dispositions(
    ambient: &ClockAndIds,
    log: &[Disposition],
    chosen: &[FindingId],
    StatusChange { actor, status, reason }: StatusChange<'_>,
) -> Result<Vec<Disposition>, SetStatusError> {
    let at = ambient.now();
    let group = ambient.new_run_id().to_string().replacen("ar_", "t_", 1);
    let mut lines = Vec::new();
    let mut known = HashSet::new();
    let decided = chosen.iter().map(|id| find_decided(log, id, status));
    for id in decided.filter(|id| known.insert(*id)) {
        let previous = status_after(log, id);
        match policy::may_set(actor, previous, status) {
            Ok(()) => lines.push(Disposition {
                finding_id: id.clone(),
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
            }),
            Err(Refusal::AlreadySo(_)) => {}
            Err(refusal) => return Err(SetStatusError::Refused { finding: id.clone(), status, refusal }),
        }
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
            let lines = set_status(store, ambient, &chosen, StatusChange { actor, status, reason: "said" });
            let lines = lines.expect("allowed").into_iter();
            lines.map(|line| (line.finding_id, line.previous, line.status)).collect::<Vec<_>>()
        };
        assert_eq!(set(&[&report, &moved, &listed], Assistant, Addressed), [(listed.clone(), Open, Addressed)]);
        assert_eq!(set(&[&moved], User, Dismissed), [(listed.clone(), Addressed, Dismissed)]);
        // Who opens the report takes it out of the list; from then on it is decided for itself.
        assert_eq!(set(&[&report], User, Open), [(report.clone(), FindingStatus::Obsolete, Open)]);
        assert_eq!(set(&[&report], User, Addressed), [(report.clone(), Open, Addressed)]);
    }
}
