//! Indexes fixes by finding: for each finding the newest fix that addresses it.

use std::collections::HashMap;

use crate::domain::{FindingId, Fix, FixId, FixStatus};

/// Every fix, and the fix to show for each finding.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct FixIndex {
    /// Newest first.
    all: Vec<Fix>,
    by_finding: HashMap<FindingId, usize>,
}

/// Request of the user about fixes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FixOrder {
    Make(Vec<FindingId>),
    Apply(FixId),
    Undo(FixId),
    Drop(FixId),
}

/// Facts known before a fix is requested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FixPlan {
    pub findings: Vec<FindingId>,
    /// Reviewer that would make the fix.
    pub reviewer: String,
}

impl FixIndex {
    /// Builds the index. `all` is newest first, as [`crate::store::Store::fixes`] returns it. A failed or dropped fix
    /// is shown only if the finding has no other.
    pub fn new(all: Vec<Fix>) -> Self {
        let mut by_finding = HashMap::new();
        let (gone, there): (Vec<_>, Vec<_>) =
            all.iter().enumerate().partition(|(_, fix)| matches!(fix.status, FixStatus::Failed | FixStatus::Dropped));
        for (index, fix) in there.into_iter().chain(gone) {
            for finding in fix.fixed_findings() {
                by_finding.entry(finding.clone()).or_insert(index);
            }
        }
        Self { all, by_finding }
    }

    /// Returns a fix that was in progress in `before` and is offered or failed now.
    pub fn ended_since<'a>(&'a self, before: &Self) -> Option<&'a Fix> {
        let was_made = |fix: &&Fix| before.all.iter().any(|old| old.fix_id == fix.fix_id && old.status.is_working());
        self.all.iter().filter(|fix| matches!(fix.status, FixStatus::Offered | FixStatus::Failed)).find(was_made)
    }

    /// Returns the fix to show with a finding.
    pub fn for_finding(&self, finding: &str) -> Option<&Fix> {
        if self.by_finding.is_empty() {
            return None;
        }
        let id = finding.parse().ok()?;
        self.by_finding.get(&id).and_then(|index| self.all.get(*index))
    }
}
