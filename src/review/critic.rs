//! The critic: which reports become findings of the run.
//!
//! Duplicates within a run fall on path, kind and overlapping lines; the stronger one stays. The verdict on a report
//! depends only on what *earlier* units had accepted (reports of one unit are weighed against each other first, and a
//! finding that gave way to a stronger one still stands against weaker ones). That is why a journal which was cut within
//! a unit leads to the same findings when the unit is reviewed again.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use crate::domain::{Confidence, Finding, FindingId, Kind, Priority, Severity};

/// What the critic says about a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Accepted,
    /// A finding of the run says the same at least as strongly.
    Duplicate,
}

/// The findings of a run so far.
#[derive(Debug, Clone, Default)]
pub struct Critic {
    /// In the order of acceptance, with those that gave way.
    seen: Vec<Seen>,
    ids: HashSet<FindingId>,
    by_place: HashMap<(String, Kind), Vec<usize>>,
}

#[derive(Debug, Clone)]
struct Seen {
    finding: Finding,
    standing: Standing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Stands,
    GaveWay,
}

/// Greater is stronger.
fn strength(finding: &Finding) -> (Reverse<Priority>, Confidence, Severity) {
    (Reverse(finding.priority), finding.confidence, finding.severity)
}

impl Critic {
    /// Takes a finding in unless the run has it already. Also how a journal is replayed.
    pub fn admit(&mut self, finding: &Finding) -> Verdict {
        if self.ids.contains(&finding.finding_id) {
            return Verdict::Duplicate;
        }
        let place = (finding.repo_relative_path.clone(), finding.kind);
        let here = self.by_place.entry(place).or_default();
        let overlapping = || here.iter().filter(|&&index| self.seen[index].finding.is_duplicate_of(finding));
        if overlapping().any(|&index| strength(&self.seen[index].finding) >= strength(finding)) {
            return Verdict::Duplicate;
        }
        let weaker: Vec<usize> = overlapping().copied().collect();
        for index in weaker {
            self.seen[index].standing = Standing::GaveWay;
        }
        here.push(self.seen.len());
        self.ids.insert(finding.finding_id.clone());
        self.seen.push(Seen { finding: finding.clone(), standing: Standing::Stands });
        Verdict::Accepted
    }

    /// Weighs the reports of one unit against each other: of those at one place the strongest, of equally strong ones
    /// the first; in the order in which they were reported.
    pub fn strongest(reports: Vec<Finding>) -> Vec<Finding> {
        let mut order: Vec<usize> = (0..reports.len()).collect();
        order.sort_by_key(|&index| Reverse(strength(&reports[index])));
        let mut alone = Self::default();
        let kept: HashSet<usize> =
            order.into_iter().filter(|&index| alone.admit(&reports[index]) == Verdict::Accepted).collect();
        reports.into_iter().enumerate().filter(|(index, _)| kept.contains(index)).map(|(_, finding)| finding).collect()
    }

    /// The findings that stand, the urgent ones first, then by place.
    pub fn findings(&self) -> Vec<Finding> {
        let mut standing: Vec<Finding> = self
            .seen
            .iter()
            .filter(|seen| seen.standing == Standing::Stands)
            .map(|seen| seen.finding.clone())
            .collect();
        standing.sort_by(|a, b| {
            let key = |f: &Finding| (f.priority, f.line_start, f.line_end, f.kind);
            a.priority
                .cmp(&b.priority)
                .then_with(|| a.repo_relative_path.cmp(&b.repo_relative_path))
                .then_with(|| key(a).cmp(&key(b)))
                .then_with(|| a.finding_id.cmp(&b.finding_id))
        });
        standing
    }

    /// How many findings stand.
    pub fn len(&self) -> usize {
        self.seen.iter().filter(|seen| seen.standing == Standing::Stands).count()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::review::engine::tests::finding;

    fn kept(reports: &[Finding]) -> Vec<u32> {
        Critic::strongest(reports.to_vec()).iter().map(|finding| finding.line_start).collect()
    }

    #[rstest]
    #[case::apart(&[(1, 3, 2), (4, 6, 2)], &[1, 4])]
    #[case::equally_strong_keeps_the_first(&[(1, 5, 2), (3, 8, 2)], &[1])]
    #[case::stronger_second(&[(1, 5, 2), (3, 8, 1)], &[3])]
    #[case::a_chain_keeps_both_ends(&[(1, 4, 2), (3, 7, 1), (6, 9, 0)], &[1, 6])]
    fn duplicates_of_one_unit(#[case] reports: &[(u32, u32, u8)], #[case] expected: &[u32]) {
        let reports: Vec<Finding> =
            reports.iter().map(|&(start, end, priority)| finding("a.rs", start, end, priority)).collect();
        assert_eq!(kept(&reports), expected);
    }

    #[test]
    fn another_kind_or_path_is_no_duplicate_and_the_same_id_is() {
        let first = finding("a.rs", 1, 5, 2);
        let mut other_kind = finding("a.rs", 2, 3, 2);
        other_kind.kind = Kind::DeadCode;
        let mut moved = finding("a.rs", 90, 95, 0);
        moved.finding_id = first.finding_id.clone();
        let mut critic = Critic::default();
        assert_eq!(critic.admit(&first), Verdict::Accepted);
        assert_eq!(critic.admit(&other_kind), Verdict::Accepted);
        assert_eq!(critic.admit(&finding("b.rs", 1, 5, 2)), Verdict::Accepted);
        assert_eq!(critic.admit(&moved), Verdict::Duplicate);
        assert_eq!(critic.len(), 3);
    }

    #[test]
    fn what_gave_way_still_stands_against_weaker_reports() {
        let mut critic = Critic::default();
        critic.admit(&finding("a.rs", 1, 9, 2));
        assert_eq!(critic.admit(&finding("a.rs", 8, 12, 1)), Verdict::Accepted);
        assert_eq!(critic.admit(&finding("a.rs", 1, 3, 3)), Verdict::Duplicate);
        assert_eq!(critic.findings().iter().map(|f| f.line_start).collect::<Vec<_>>(), [8]);
    }
}
