//! Finds the findings of other reviewers that describe an imported problem already.

use std::collections::{HashMap, HashSet};

use crate::domain::{Finding, FindingId, FindingStatus, Kind};
use crate::review::is_alike;
use crate::store::{FindingRow, StoreView};

/// Findings of the store, as far as an import needs them.
pub(super) struct KnownFindings<'a> {
    view: &'a StoreView,
    tool: &'a str,
    /// Findings of other reviewers by file.
    others: HashMap<&'a str, Vec<FindingRow<'a>>>,
    /// Files in which the tool has reported a finding.
    own_paths: HashSet<&'a str>,
}

impl<'a> KnownFindings<'a> {
    pub fn new(view: &'a StoreView, tool: &'a str) -> Self {
        let (mut others, mut own_paths): (HashMap<&str, Vec<FindingRow<'_>>>, HashSet<&str>) = Default::default();
        for index in 0..view.finding_count() {
            let row = view.finding(index);
            let reviewer = view.last_reporting_run(index).map_or("", |run| view.run(run).reviewer);
            match reviewer == tool {
                true => drop(own_paths.insert(row.path)),
                false => others.entry(row.path).or_default().push(row),
            }
        }
        Self { view, tool, others, own_paths }
    }

    /// Returns `true` if the tool has reported a finding in this file.
    pub fn has_own(&self, path: &str) -> bool {
        self.own_paths.contains(path)
    }

    /// Returns the title of a finding with this id, and whether the tool itself reported it.
    pub fn get(&self, id: &FindingId) -> Option<(&str, bool)> {
        let index = self.view.finding_index(id.as_str())?;
        let reviewer = self.view.last_reporting_run(index).map_or("", |run| self.view.run(run).reviewer);
        Some((self.view.finding(index).title, reviewer == self.tool))
    }

    /// Returns the id of the run that reported the finding first.
    pub fn first_run(&self, id: &FindingId) -> Option<&str> {
        let index = self.view.finding_index(id.as_str())?;
        Some(self.view.finding(index).first_run)
    }

    /// Returns an undecided finding of another reviewer that describes the same problem: of the same kind, or a twin of it,
    /// in overlapping lines. Smells are the same by that alone; defects also need similar words, or the same single line. A
    /// dismissed finding is the same only on the same single line.
    pub fn find_duplicate(&self, finding: &Finding) -> Option<&str> {
        let is_same_kind = |kind: Kind| kind == finding.kind || finding.kind.twins().any(|twin| twin == kind);
        let same = self.others.get(finding.repo_relative_path.as_str())?.iter().find(|row| {
            let is_smell = row.kind == finding.kind && finding.kind.is_smell();
            let is_one_line = row.lines() == finding.lines() && finding.lines().count() == 1;
            let is_same = match row.status {
                status if status.is_undecided() => {
                    is_smell || is_one_line || is_alike(finding.kind, row.title, &finding.title)
                }
                // A dismissal is about this problem only.
                FindingStatus::Dismissed => is_one_line,
                _ => false,
            };
            is_same && is_same_kind(row.kind) && row.lines().overlaps(finding.lines())
        });
        same.map(|row| row.id)
    }
}
