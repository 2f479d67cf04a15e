//! Decides how much of a ledger a session of an assistant gets, from what it got before.

use std::collections::BTreeSet;

use super::{LedgerFinding, LedgerRun};
use crate::domain::content_hash;

/// Ledgers that a session of an assistant still has in its context.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionMemory {
    /// Ids of the findings that these ledgers named.
    pub told: BTreeSet<String>,
    /// [`LedgerDelivery::state`](crate::domain::LedgerDelivery) of the last of them; empty before the first.
    pub state: String,
}

impl SessionMemory {
    /// Returns true if the session was told about the finding.
    pub(super) fn contains(&self, finding: &LedgerFinding<'_>) -> bool {
        self.told.contains(finding.id.as_ref())
    }

    /// Returns true if the session knows the run, and of its findings exactly `known` still stand.
    pub(super) fn covers(&self, latest: Option<&LedgerRun>, known: &[&LedgerFinding<'_>]) -> bool {
        let Some((run, findings)) = self.state.split_once('.') else { return false };
        findings == hash_findings(known) && latest.is_none_or(|latest| run == hash_run(latest))
    }

    /// Returns the state after a ledger with these elements. The order of the findings, their lines and the progress of
    /// active runs do not count.
    pub(super) fn next_state(&self, latest: Option<&LedgerRun>, known: &[&LedgerFinding<'_>]) -> String {
        let before = self.state.split_once('.').map_or("", |(run, _)| run);
        let run = latest.map_or(before.to_owned(), hash_run);
        format!("{run}.{}", hash_findings(known))
    }
}

/// Length of a hash of a state in hexadecimal digits; a collision hides a change until the next one.
const STATE_DIGITS: usize = 12;

fn hash_run(run: &LedgerRun) -> String {
    let status = run.status.to_string();
    content_hash([run.id.as_str(), &status, &run.incomplete].map(str::as_bytes))[..STATE_DIGITS].to_owned()
}

fn hash_findings(findings: &[&LedgerFinding<'_>]) -> String {
    let lines: BTreeSet<String> =
        findings.iter().map(|finding| format!("{} {} {}", finding.id, finding.status, finding.priority)).collect();
    content_hash(lines.iter().map(|line| line.as_bytes()))[..STATE_DIGITS].to_owned()
}
