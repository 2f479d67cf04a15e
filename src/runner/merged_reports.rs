//! Follows reports that a panel has merged into findings with other ids: whatever people write about such a report is about the
//! finding of the list. Decisions do the same in [`super::set_status`].

use std::collections::HashSet;

use crate::domain::{FindingId, FindingNote};
use crate::store::{Store, StoreError, StoreView};

/// Returns the findings that stand for the problems of these ids, each once.
///
/// # Errors
///
/// If the decisions cannot be read.
pub fn follow_merged(store: &Store, view: &StoreView, ids: &[FindingId]) -> Result<Vec<FindingId>, StoreError> {
    let mut listed = store.follow_merged(view, ids)?;
    let mut known = HashSet::new();
    listed.retain(|id| known.insert(id.clone()));
    Ok(listed)
}

/// Stores a note about the problem of a finding. Returns the stored note, and `false` if the same author has left the same text
/// before.
///
/// # Errors
///
/// If the store cannot be locked, read or written.
pub fn write_note(store: &Store, note: FindingNote) -> Result<(FindingNote, bool), StoreError> {
    let note = if store.status(&note.finding_id)?.is_undecided() {
        note
    } else {
        FindingNote { finding_id: store.follow_merged_in(&store.triage_log()?, &note.finding_id)?, ..note }
    };
    let is_new = store.append_note(&note)?;
    Ok((note, is_new))
}
