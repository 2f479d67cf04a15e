//! Rates findings: priority and kind by the user in place of the reported ones.

use super::merged_reports::follow_merged;
use crate::config::ClockAndIds;
use crate::domain::{Actor, FindingId, FindingRating, RatingWish, TriageAction};
use crate::store::{Store, StoreError, rating_after};

/// Error of a request for a rating.
#[derive(Debug, thiserror::Error)]
pub enum RatingError {
    /// Someone else than the user asks, so no finding was rated.
    #[error("only the user changes the priority or kind of a finding")]
    NotTheUser,
    /// The store does not know the finding.
    #[error("the store has no finding {0}")]
    Unknown(FindingId),
    /// The store cannot be locked, read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Rates findings as one step that an undo takes back. Returns the stored lines; findings whose rating would not change
/// are left out. A report that a panel lists under another id stands for the finding of the list.
///
/// # Errors
///
/// If a finding is unknown, the actor is not the user, or the store fails. No finding is rated then.
pub fn rate_findings(
    store: &Store,
    ambient: &ClockAndIds,
    chosen: &[FindingId],
    wish: RatingWish,
    actor: Actor,
) -> Result<Vec<FindingRating>, RatingError> {
    if actor != Actor::User {
        return Err(RatingError::NotTheUser);
    }
    let view = store.view()?;
    if let Some(unknown) = chosen.iter().find(|id| view.finding_index(id.as_str()).is_none()) {
        return Err(RatingError::Unknown(unknown.clone()));
    }
    let listed = follow_merged(store, &view, chosen)?;
    let (at, group) = (ambient.now(), ambient.new_run_id().as_str().replacen("ar_", "t_", 1));
    store.rate_findings(|log| {
        let line = |id: &FindingId| {
            let previous = rating_after(log, id);
            let (rating, action) = (wish.rating_after(previous), TriageAction::Set);
            let (finding_id, group) = (id.clone(), group.clone());
            (previous != rating).then_some(FindingRating { finding_id, rating, previous, actor, at, action, group })
        };
        Ok(listed.iter().filter_map(line).collect())
    })
}
