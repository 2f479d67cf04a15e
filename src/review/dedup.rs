//! Deduplicates the reports of a run and keeps its findings.
//!
//! Two reports of a run are duplicates if path and kind are equal, their lines overlap, and their words do not clearly
//! describe two problems; the stronger report stays.
//! The verdict on a report depends only on the findings that *earlier* units had accepted: reports of one unit are
//! first compared with each other, and a superseded finding still counts against weaker reports. Therefore a journal
//! that ends inside a unit leads to the same findings when the unit is reviewed again.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

use super::accumulate::main_explanation;
use super::similarity::FindingWords;
use crate::domain::{Confidence, Finding, FindingId, Kind, LineIndex, LineRange, Priority, Severity};

/// The verdict on a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DedupVerdict {
    Accepted,
    /// A finding of the run reports the same problem and is at least as strong.
    Duplicate,
}

/// The findings of a run so far.
#[derive(Debug, Clone, Default)]
pub struct FindingDeduplicator {
    /// In the order of acceptance, including superseded findings.
    seen: Vec<AdmittedFinding>,
    /// Indices into `seen`.
    ids: HashMap<FindingId, usize>,
    by_place: HashMap<(String, Kind), IntervalsByStrength>,
    standing: usize,
    /// Number of the present answer, 1-based; 0 if answers are not counted.
    answer: u32,
    /// Number of findings that are not superseded; no kind has 0.
    standing_by_kind: BTreeMap<Kind, u32>,
}

/// The findings of one kind in one file, by strength.
type IntervalsByStrength = BTreeMap<FindingStrength, LineIndex>;

/// Maximum number of overlapping findings with which a report is compared. Not from the literature: more findings at one
/// place cannot be distinguished anyway.
const MAX_COMPARED: usize = 64;

#[derive(Debug, Clone)]
struct AdmittedFinding {
    finding: Finding,
    words: FindingWords,
    standing: AdmittedState,
    /// Number of the answer that reported it; 0 if answers are not counted.
    answer: u32,
}

impl AdmittedFinding {
    fn new(finding: &Finding, answer: u32) -> Self {
        let words = FindingWords::from_finding(finding, main_explanation(&finding.explanation));
        Self { finding: finding.clone(), words, standing: AdmittedState::Stands, answer }
    }

    /// Returns `true` unless the ids or the words of two overlapping reports of one kind say that they are two problems.
    fn is_one_problem(&self, other: &Self) -> bool {
        let is_one_answer = self.answer > 0 && self.answer == other.answer;
        !self.finding.finding_id.is_variant_of(&other.finding.finding_id)
            && !self.words.compare(&other.words).separates(is_one_answer, &self.finding, &other.finding)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AdmittedState {
    Stands,
    GaveWay,
}

/// The strength of a finding; greater is stronger.
type FindingStrength = (Reverse<Priority>, Confidence, Severity);

fn strength(finding: &Finding) -> FindingStrength {
    (Reverse(finding.priority), finding.confidence, finding.severity)
}

impl FindingDeduplicator {
    /// Begins an answer: the reports until the next one are compared as those of one answer.
    pub fn begin_answer(&mut self) {
        self.answer += 1;
    }

    /// Adds a finding unless the run already has it. Replaying a journal uses it, too.
    pub fn admit(&mut self, finding: &Finding) -> DedupVerdict {
        if self.ids.contains_key(&finding.finding_id) {
            return DedupVerdict::Duplicate;
        }
        let place = (finding.repo_relative_path.clone(), finding.kind);
        let (here, strength) = (self.by_place.entry(place).or_default(), strength(finding));
        let (seen, admitted) = (&self.seen, AdmittedFinding::new(finding, self.answer));
        let is_same = |index: &usize| seen.get(*index).is_some_and(|seen| seen.is_one_problem(&admitted));
        if here.range(strength..).any(|(_, row)| compared_with(row, finding).any(|index| is_same(&index))) {
            return DedupVerdict::Duplicate;
        }
        let weaker = here.range(..strength).flat_map(|(_, row)| compared_with(row, finding)).filter(is_same);
        let weaker: Vec<usize> = weaker.collect();
        here.entry(strength).or_default().insert(stated_lines(finding), self.seen.len());
        weaker.into_iter().for_each(|index| self.mark_superseded(index));
        self.standing += 1;
        *self.standing_by_kind.entry(finding.kind).or_default() += 1;
        self.ids.insert(finding.finding_id.clone(), self.seen.len());
        self.seen.push(admitted);
        DedupVerdict::Accepted
    }

    /// Replaces the finding with the same id. Its lines for comparisons stay those that were accepted.
    pub fn replace(&mut self, finding: &Finding) {
        if let Some(seen) = self.ids.get(&finding.finding_id).and_then(|&index| self.seen.get_mut(index)) {
            *seen = AdmittedFinding { standing: seen.standing, ..AdmittedFinding::new(finding, seen.answer) };
        }
    }

    /// Withdraws a finding. It still counts against weaker reports of the same problem.
    pub fn withdraw(&mut self, id: &FindingId) {
        if let Some(&index) = self.ids.get(id) {
            self.mark_superseded(index);
        }
    }

    fn mark_superseded(&mut self, index: usize) {
        if let Some(seen) = self.seen.get_mut(index)
            && std::mem::replace(&mut seen.standing, AdmittedState::GaveWay) == AdmittedState::Stands
        {
            self.standing -= 1;
            let kind = seen.finding.kind;
            if let Some(count) = self.standing_by_kind.get_mut(&kind) {
                *count = count.saturating_sub(1);
            }
            self.standing_by_kind.retain(|_, count| *count > 0);
        }
    }

    /// Compares the reports of one unit with each other and keeps the strongest report of each problem, or the first of
    /// equally strong ones. Keeps the order of the reports.
    pub fn keep_strongest(reports: Vec<Finding>) -> Vec<Finding> {
        let mut order: Vec<usize> = (0..reports.len()).collect();
        order.sort_by_key(|&index| Reverse(strength(&reports[index])));
        let mut alone = Self::default();
        alone.begin_answer();
        let kept: HashSet<usize> =
            order.into_iter().filter(|&index| alone.admit(&reports[index]) == DedupVerdict::Accepted).collect();
        reports.into_iter().enumerate().filter(|(index, _)| kept.contains(index)).map(|(_, finding)| finding).collect()
    }

    /// Returns the findings that are not superseded, sorted by priority, then by place.
    pub fn findings(&self) -> Vec<Finding> {
        let mut standing: Vec<Finding> = self
            .seen
            .iter()
            .filter(|seen| seen.standing == AdmittedState::Stands)
            .map(|seen| seen.finding.clone())
            .collect();
        sort_by_urgency(&mut standing);
        standing
    }

    /// Returns the number of findings that are not superseded.
    pub fn len(&self) -> usize {
        self.standing
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of findings that are not superseded, by the word of their kind.
    pub fn count_by_kind(&self) -> BTreeMap<String, u32> {
        self.standing_by_kind.iter().map(|(kind, count)| (kind.word().to_owned(), *count)).collect()
    }
}

/// Counts findings by the word of their kind.
pub(super) fn count_by_kind<'f>(findings: impl IntoIterator<Item = &'f Finding>) -> BTreeMap<String, u32> {
    let mut kinds = BTreeMap::new();
    for finding in findings {
        *kinds.entry(finding.kind.word().to_owned()).or_default() += 1;
    }
    kinds
}

/// Returns the indices of the findings with which a report is compared: those that overlap its lines, from the bottom up.
fn compared_with<'a>(row: &'a LineIndex, finding: &Finding) -> impl Iterator<Item = usize> + use<'a> {
    row.overlapping(stated_lines(finding)).take(MAX_COMPARED)
}

/// Returns the lines as the report states them. A reversed range overlaps nothing; the engines reject it.
pub(super) fn stated_lines(finding: &Finding) -> LineRange {
    LineRange { start: finding.line_start, end: finding.line_end }
}

/// Sorts findings by priority, then by place.
pub(crate) fn sort_by_urgency(findings: &mut [Finding]) {
    findings.sort_by(|a, b| {
        let key = |f: &Finding| (f.priority, f.line_start, f.line_end, f.kind);
        a.priority
            .cmp(&b.priority)
            .then_with(|| a.repo_relative_path.cmp(&b.repo_relative_path))
            .then_with(|| key(a).cmp(&key(b)))
            .then_with(|| a.finding_id.cmp(&b.finding_id))
    });
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::review::unit_engine::tests::finding;

    fn kept_start_lines(reports: &[Finding]) -> Vec<u32> {
        FindingDeduplicator::keep_strongest(reports.to_vec()).iter().map(|finding| finding.line_start).collect()
    }

    #[rstest]
    #[case::apart(&[(1, 3, 2), (4, 6, 2)], &[1, 4])]
    #[case::equally_strong_keeps_the_first(&[(1, 5, 2), (3, 8, 2)], &[1])]
    #[case::stronger_second(&[(1, 5, 2), (3, 8, 1)], &[3])]
    #[case::a_chain_keeps_both_ends(&[(1, 4, 2), (3, 7, 1), (6, 9, 0)], &[1, 6])]
    fn duplicates_of_one_unit(#[case] reports: &[(u32, u32, u8)], #[case] expected: &[u32]) {
        let reports: Vec<Finding> =
            reports.iter().map(|&(start, end, priority)| finding("a.rs", start, end, priority)).collect();
        assert_eq!(kept_start_lines(&reports), expected);
    }

    /// Computes the verdicts by plain comparison, without the intervals.
    fn admitted_plainly(reports: &[Finding]) -> (Vec<DedupVerdict>, Vec<u32>) {
        let mut seen: Vec<(&Finding, bool)> = Vec::new();
        let mut verdicts = Vec::new();
        for report in reports {
            let overlaps = |other: &Finding| {
                other.kind == report.kind
                    && other.lines().overlaps(report.lines())
                    && AdmittedFinding::new(other, 0).is_one_problem(&AdmittedFinding::new(report, 0))
            };
            if seen.iter().any(|(other, _)| overlaps(other) && strength(other) >= strength(report)) {
                verdicts.push(DedupVerdict::Duplicate);
                continue;
            }
            seen.iter_mut().filter(|(other, _)| overlaps(other)).for_each(|(_, stands)| *stands = false);
            seen.push((report, true));
            verdicts.push(DedupVerdict::Accepted);
        }
        (verdicts, seen.iter().filter(|(_, stands)| *stands).map(|(report, _)| report.line_start).collect())
    }

    proptest::proptest! {
        #[test]
        fn rows_of_intervals_say_the_same_as_all_pairs(places in proptest::collection::vec((1..60u32, 0..15u32, 0..4u8), 0..60)) {
            let reports: Vec<Finding> = places
                .iter()
                .enumerate()
                .map(|(number, &(start, more, priority))| {
                    let mut report = finding("a.rs", start, start + more, priority);
                    report.finding_id = FindingId::from_parts("LONG_METHOD", "a.rs", &number.to_string(), 0);
                    report.title = ["Off by one", "Lock is kept", "Hard to read"][number % 3].to_owned();
                    report
                })
                .collect();
            let mut critic = FindingDeduplicator::default();
            let verdicts: Vec<DedupVerdict> = reports.iter().map(|report| critic.admit(report)).collect();
            let stand: Vec<u32> =
                critic.seen.iter().filter(|seen| seen.standing == AdmittedState::Stands).map(|seen| seen.finding.line_start).collect();
            proptest::prop_assert_eq!(critic.len(), stand.len());
            proptest::prop_assert_eq!((verdicts, stand), admitted_plainly(&reports));
        }
    }

    #[test]
    fn a_finding_is_held_against_its_neighbours_only() {
        let mut critic = FindingDeduplicator::default();
        let many = 2_000;
        for line in 1..=many {
            critic.admit(&finding("a.rs", line * 2, line * 2, 2));
        }
        let place = critic.by_place.values().next().cloned().unwrap_or_default();
        let looked_at: usize = (1..=many)
            .map(|line| {
                place.values().map(|row| row.overlapping(LineRange::new(line * 2, line * 2)).count()).sum::<usize>()
            })
            .sum();
        assert_eq!((critic.len(), looked_at), (many as usize, many as usize));
    }

    #[test]
    fn lines_that_are_none_do_no_harm() {
        let mut critic = FindingDeduplicator::default();
        for (start, end) in [(9, 2), (0, 0), (9, 1), (u32::MAX, 0), (1, u32::MAX), (3, 3)] {
            critic.admit(&finding("a.rs", start, end, 2));
        }
        assert!(!critic.is_empty());
    }

    #[test]
    fn another_kind_or_path_is_no_duplicate_and_the_same_id_is() {
        let first = finding("a.rs", 1, 5, 2);
        let mut other_kind = finding("a.rs", 2, 3, 2);
        other_kind.kind = Kind::DeadCode;
        let mut moved = finding("a.rs", 90, 95, 0);
        moved.finding_id = first.finding_id.clone();
        let mut critic = FindingDeduplicator::default();
        assert_eq!(critic.admit(&first), DedupVerdict::Accepted);
        assert_eq!(critic.admit(&other_kind), DedupVerdict::Accepted);
        assert_eq!(critic.admit(&finding("b.rs", 1, 5, 2)), DedupVerdict::Accepted);
        assert_eq!(critic.admit(&moved), DedupVerdict::Duplicate);
        assert_eq!(critic.len(), 3);
    }

    #[test]
    fn two_problems_on_one_line_stay_and_the_stronger_report_of_each_replaces_the_weaker() {
        let report = |title: &str, priority: u8| {
            let mut report = finding("a.rs", 5, 5, priority);
            report.finding_id = FindingId::from_parts("CORRECTNESS", "a.rs", title, 0);
            (report.kind, report.title) = (Kind::Correctness, title.to_owned());
            report
        };
        let mut critic = FindingDeduplicator::default();
        let verdicts = ["Off by one", "Lock is never given back", "Reads past the end", "Mutex is kept"]
            .iter()
            .zip([2, 1, 1, 2])
            .map(|(title, priority)| critic.admit(&report(title, priority)));
        let (yes, no) = (DedupVerdict::Accepted, DedupVerdict::Duplicate);
        assert_eq!(verdicts.collect::<Vec<_>>(), [yes, yes, yes, no]);
        let titles: Vec<String> = critic.findings().into_iter().map(|finding| finding.title).collect();
        assert_eq!(titles.len(), 2);
        assert_eq!(
            titles
                .iter()
                .filter(|title| ["Lock is never given back", "Reads past the end"].contains(&title.as_str()))
                .count(),
            2
        );
    }

    #[test]
    fn reports_of_one_answer_under_different_titles_stay_and_those_of_another_answer_repeat_them() {
        let report = |title: &str| {
            let mut report = finding("a.rs", 5, 5, 2);
            report.finding_id = FindingId::from_parts("CORRECTNESS", "a.rs", title, 0);
            (report.kind, report.title) = (Kind::Correctness, title.to_owned());
            report
        };
        let (one, other) = (report("Exception swallowed"), report("Function throws on empty input"));
        assert_eq!(FindingDeduplicator::keep_strongest(vec![one.clone(), other.clone()]).len(), 2);
        let (mut together, mut apart) = (FindingDeduplicator::default(), FindingDeduplicator::default());
        together.begin_answer();
        for finding in [&one, &other] {
            apart.begin_answer();
            together.admit(finding);
            apart.admit(finding);
        }
        assert_eq!((together.len(), apart.len()), (2, 1));
    }

    #[test]
    fn what_gave_way_still_stands_against_weaker_reports() {
        let mut critic = FindingDeduplicator::default();
        critic.admit(&finding("a.rs", 1, 9, 2));
        assert_eq!(critic.admit(&finding("a.rs", 8, 12, 1)), DedupVerdict::Accepted);
        assert_eq!(critic.admit(&finding("a.rs", 1, 3, 3)), DedupVerdict::Duplicate);
        assert_eq!(critic.findings().iter().map(|f| f.line_start).collect::<Vec<_>>(), [8]);
    }
}
