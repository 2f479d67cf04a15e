//! Sets the status of findings on behalf of a person or an assistant, as one step that an undo takes back.

use crate::config::ClockAndIds;
use crate::domain::text::sanitize_line;
use crate::domain::{Actor, Disposition, FindingId, FindingStatus, TriageAction};
use crate::policy::{self, Refusal};
use crate::store::triage::status_after;
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

/// Sets the status of the chosen findings and returns the stored dispositions. Findings that already have the status are
/// skipped. If the actor may not change one of the others, none is changed.
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
    for id in chosen {
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
