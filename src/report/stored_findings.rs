//! Loads the full findings behind the rows of a list.

use std::collections::HashMap;

use crate::domain::{Finding, RunId};
use crate::store::{Store, StoreError, StoreView};

/// Loads the full findings of the chosen rows, in the same order and with their current status. Reads the output of
/// each run once.
///
/// # Errors
///
/// Returns an error if an output or a journal cannot be read.
pub fn load_findings(store: &Store, view: &StoreView, chosen: &[usize]) -> Result<Vec<Finding>, StoreError> {
    let mut by_run: HashMap<&str, HashMap<String, Finding>> = HashMap::new();
    let mut findings = Vec::with_capacity(chosen.len());
    for &index in chosen {
        let row = view.finding(index);
        if !by_run.contains_key(row.last_run) {
            let reported = match row.last_run.parse::<RunId>() {
                Ok(id) => store.reported_findings(&id)?,
                // No run can have this id, so nothing was reported by it.
                Err(_) => Vec::new(),
            };
            by_run.insert(
                row.last_run,
                reported.into_iter().map(|finding| (finding.finding_id.to_string(), finding)).collect(),
            );
        }
        let found = by_run.get_mut(row.last_run).and_then(|findings| findings.remove(row.id));
        // The finding may stand in the journal of the run only.
        let found = match (found, row.id.parse()) {
            (None, Ok(id)) => store.finding_in(view, &id)?,
            (found, _) => found,
        };
        if let Some(mut finding) = found {
            finding.status = row.status;
            view.update_finding(index, &mut finding);
            findings.push(finding);
        }
    }
    Ok(findings)
}
