//! The fixes there are, as the cockpit needs them: for each finding the newest that does something about it.

use std::collections::HashMap;

use crate::domain::{FindingId, Fix, FixId, FixStatus};

/// Every fix, and which is the one to show with a finding.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct FixIndex {
    /// Newest first.
    all: Vec<Fix>,
    by_finding: HashMap<FindingId, usize>,
}

/// What a person wants done with fixes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FixOrder {
    Make(Vec<FindingId>),
    Apply(FixId),
    Undo(FixId),
    Drop(FixId),
}

/// What is known before a fix is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FixPlan {
    pub findings: Vec<FindingId>,
    /// Who would make it.
    pub reviewer: String,
}

impl FixIndex {
    /// `all` is newest first, as [`crate::store::Store::fixes`] has it. A fix that came to nothing is shown where there is
    /// no other.
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

    /// What ended well or not since `before`: fixes that were being made then.
    pub fn ended_since<'a>(&'a self, before: &Self) -> Option<&'a Fix> {
        let was_made = |fix: &&Fix| before.all.iter().any(|old| old.fix_id == fix.fix_id && old.status.is_working());
        self.all.iter().filter(|fix| matches!(fix.status, FixStatus::Offered | FixStatus::Failed)).find(was_made)
    }

    /// The fix to show with a finding.
    pub fn for_finding(&self, finding: &str) -> Option<&Fix> {
        if self.by_finding.is_empty() {
            return None;
        }
        let id = finding.parse().ok()?;
        self.by_finding.get(&id).and_then(|index| self.all.get(*index))
    }
}
