//! Merges the reports of several reviewers about one change: the reports of one problem become one group.
//!
//! - A group has at most one report of each reviewer: whoever reports two problems has told them apart.
//! - The groups depend only on the reports, not on the order in which they are given or came. They are no chains: any two
//!   reports of a group have words or a defect in common.
//! - Ids do not join reports: two problems at the same code have one id if the reviewers end together, and two if one of
//!   them ends first and the other one finds the id taken. Only words and places are the same in both cases.
//! - Precision and recall are measured on the labelled reports in `tests/merging`.

use std::cmp::Reverse;

use super::accumulate::{MAX_MOVED_DISTANCE, MAX_REWORDED_DISTANCE, main_explanation};
use super::similarity::{FindingSimilarity, FindingWords, ProblemDistinction};
use crate::domain::{Finding, FindingId, LineRange};

/// Similarity (Jaccard index in thousandths) from which overlapping reports of different kinds that name one defect are one
/// problem, and from which two reports may belong to one group because of a third one. From the reports in
/// `tests/merging/tuning.toml`.
const MIN_DEFECT_SIMILARITY: u32 = 100;

/// Like [`MIN_DEFECT_SIMILARITY`], for reports whose words name no common defect.
const MIN_WORDING_SIMILARITY: u32 = 140;

/// Similarity (Jaccard index in thousandths) below which long texts of one kind at one place, whose titles name no common
/// defect, are two problems. From the reports in `tests/merging/tuning.toml`.
const MIN_COMMON_SIMILARITY: u32 = 70;

/// Maximum additional lines of the longer of two anchors of one problem, beyond twice the length of the shorter one. The
/// same limit holds for the findings of earlier runs.
const MAX_EXTRA_LINES: u32 = 3;

/// Title and explanation of a report without a text.
const NO_WORDS: (&str, &str) = ("", "");

/// Report of a reviewer, by their positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberReport {
    /// Position of the reviewer.
    pub member: usize,
    /// Position among the reviewer's findings.
    pub finding: usize,
}

/// How sure it is that two reports describe one problem; the greater the surer.
pub(super) type PairScore = (bool, bool, bool, u32);

/// Report with its words.
struct KnownReport<'a> {
    place: MemberReport,
    finding: &'a Finding,
    words: FindingWords,
}

impl<'a> KnownReport<'a> {
    fn new(place: MemberReport, finding: &'a Finding) -> Self {
        Self { place, finding, words: FindingWords::from_finding(finding, main_explanation(&finding.explanation)) }
    }
}

/// Groups the findings of several reviewers by problem. Each report is in one group; the reports of a group are sorted by
/// reviewer, and the groups by place, kind, id and reviewer of their first report.
pub fn merge_reports(members: &[&[Finding]]) -> Vec<Vec<MemberReport>> {
    let members: Vec<Vec<&Finding>> = members.iter().map(|findings| findings.iter().collect()).collect();
    merge_report_refs(&members)
}

/// Does the work of [`merge_reports`].
pub(super) fn merge_report_refs(members: &[Vec<&Finding>]) -> Vec<Vec<MemberReport>> {
    let mut reports = Vec::new();
    for (member, findings) in members.iter().enumerate() {
        for (at, finding) in findings.iter().enumerate() {
            reports.push(KnownReport::new(MemberReport { member, finding: at }, finding));
        }
    }
    // Without regard to the order in which they came.
    reports.sort_by(|a, b| sort_key(a).cmp(&sort_key(b)));
    let mut pairs: Vec<(PairScore, usize, usize)> = Vec::new();
    for (at, report) in reports.iter().enumerate() {
        let near = reports[at + 1..].iter().enumerate().take_while(|(_, other)| is_near(report.finding, other.finding));
        for (offset, other) in near.filter(|(_, other)| other.place.member != report.place.member) {
            if let Some(score) = score_pair(report, other) {
                pairs.push((score, at, at + 1 + offset));
            }
        }
    }
    // Equally sure pairs stay in the order of their reports.
    pairs.sort_by_key(|(score, ..)| Reverse(*score));
    let mut groups: Vec<Vec<usize>> = (0..reports.len()).map(|at| vec![at]).collect();
    let mut group_of: Vec<usize> = (0..reports.len()).collect();
    for (_, one, other) in pairs {
        let (into, from) = (group_of[one].min(group_of[other]), group_of[one].max(group_of[other]));
        if into == from || !can_join(&reports, &groups[into], &groups[from]) {
            continue;
        }
        let moved = std::mem::take(&mut groups[from]);
        moved.iter().for_each(|report| group_of[*report] = into);
        groups[into].extend(moved);
    }
    groups.retain(|group| !group.is_empty());
    groups.sort_by_cached_key(|group| group.iter().map(|report| group_key(&reports[*report])).min());
    groups
        .into_iter()
        .map(|group| {
            let mut places: Vec<MemberReport> = group.iter().map(|report| reports[*report].place).collect();
            places.sort_unstable();
            places
        })
        .collect()
}

/// Returns how sure it is that a report describes the problem of a group of reports by other reviewers; `None` if it does not.
pub(super) fn score_membership(report: &Finding, group: &[&Finding]) -> Option<PairScore> {
    // Words take longest to compare, and most groups are elsewhere.
    if !group.iter().any(|other| are_near(report, other)) {
        return None;
    }
    let findings = std::iter::once(report).chain(group.iter().copied()).enumerate();
    let reports: Vec<KnownReport<'_>> =
        findings.map(|(member, finding)| KnownReport::new(MemberReport { member, finding: 0 }, finding)).collect();
    let others: Vec<usize> = (1..reports.len()).collect();
    if !can_join(&reports, &[0], &others) {
        return None;
    }
    let near = reports[1..].iter().filter(|other| are_near(report, other.finding));
    near.filter_map(|other| score_pair(&reports[0], other)).max()
}

/// Returns the lines that another report in the same file must share to be about the same lines as this one.
pub(super) fn near_lines(report: &Finding) -> LineRange {
    let LineRange { start, end } = report.lines();
    LineRange::new(start.saturating_sub(MAX_MOVED_DISTANCE), end.saturating_add(MAX_MOVED_DISTANCE))
}

/// Returns true if two reports may be about the same lines.
fn are_near(one: &Finding, other: &Finding) -> bool {
    let is_above = place_key(one) <= place_key(other);
    if is_above { is_near(one, other) } else { is_near(other, one) }
}

/// Returns the place, the words and the reviewer of a report. Its id, which may depend on who ends first, comes last.
fn sort_key<'a>(report: &KnownReport<'a>) -> (PlaceKey<'a>, &'a str, &'a str, usize, &'a FindingId) {
    let finding = report.finding;
    (place_key(finding), &finding.title, &finding.explanation, report.place.member, &finding.finding_id)
}

/// Path, first and last line, and kind.
type PlaceKey<'a> = (&'a str, u32, u32, &'static str);

fn place_key(finding: &Finding) -> PlaceKey<'_> {
    (&finding.repo_relative_path, finding.lines().start, finding.lines().end, finding.kind.word())
}

fn group_key<'a>(report: &KnownReport<'a>) -> (PlaceKey<'a>, &'a FindingId, usize) {
    (place_key(report.finding), &report.finding.finding_id, report.place.member)
}

/// Returns true while a report further down may be about the same lines. A long finding hides none behind it: reports are
/// sorted by their first lines.
fn is_near(report: &Finding, below: &Finding) -> bool {
    report.repo_relative_path == below.repo_relative_path
        && below.lines().start <= report.lines().end.saturating_add(MAX_MOVED_DISTANCE)
}

/// Returns how sure it is that two reports of different reviewers describe one problem; `None` if they do not.
fn score_pair(one: &KnownReport<'_>, other: &KnownReport<'_>) -> Option<PairScore> {
    let likeness = one.words.compare(&other.words);
    if !is_repeated(one.finding, other.finding) && !is_same_problem(one.finding, other.finding, likeness) {
        return None;
    }
    Some((
        likeness.alike,
        one.finding.kind == other.finding.kind,
        one.finding.lines().overlaps(other.finding.lines()),
        likeness.similarity,
    ))
}

/// Returns true if two reports of one id have the same words, or one of them has none: nothing tells them apart. Whoever
/// ends later gets the same id with them.
fn is_repeated(one: &Finding, other: &Finding) -> bool {
    let (said, also_said) = (words_of(one), words_of(other));
    one.finding_id == other.finding_id && (said == also_said || said == NO_WORDS || also_said == NO_WORDS)
}

fn words_of(finding: &Finding) -> (&str, &str) {
    (finding.title.trim(), main_explanation(&finding.explanation).trim())
}

/// Reviewers often disagree about the kind of a problem, so that words decide between kinds, and the place within one.
fn is_same_problem(one: &Finding, other: &Finding, likeness: FindingSimilarity) -> bool {
    let apart = one.lines().distance(other.lines());
    let is_unclear = likeness.distinct == ProblemDistinction::None;
    // "It may be null" holds for many lines.
    let is_elsewhere = apart > 0 && likeness.other_code;
    let in_other_words = likeness.alike && apart <= MAX_REWORDED_DISTANCE && !is_elsewhere;
    if one.kind != other.kind && !one.kind.twins().any(|twin| twin == other.kind) {
        return in_other_words || (apart == 0 && is_unclear && is_one_defect(one, other, likeness));
    }
    let moved = likeness.same_code && !likeness.told_apart && is_unclear && apart <= MAX_MOVED_DISTANCE;
    // A function has a smell once.
    let names_one_defect = likeness.shares_title_concepts || (one.kind == other.kind && one.kind.is_smell());
    let says_nothing_alike = likeness.says_enough && likeness.similarity < MIN_COMMON_SIMILARITY;
    let is_inside = !is_one_place(one, other) && likeness.similarity < MIN_WORDING_SIMILARITY;
    let at_one_place = apart == 0
        && !likeness.separates(false, one, other)
        && (names_one_defect || !(says_nothing_alike || is_inside));
    at_one_place || (apart > 0 && moved) || in_other_words
}

/// Returns true if the longer of two overlapping anchors is not so long that the shorter one is a place inside of it.
fn is_one_place(one: &Finding, other: &Finding) -> bool {
    let (one, other) = (one.lines().count(), other.lines().count());
    one.max(other) <= one.min(other).saturating_mul(2).saturating_add(MAX_EXTRA_LINES)
}

/// Returns true if overlapping reports under different kinds name one defect. Smells measure different things, whatever
/// their words, and a line inside of a long function is another place.
fn is_one_defect(one: &Finding, other: &Finding, likeness: FindingSimilarity) -> bool {
    let min_similarity = if likeness.shares_concepts { MIN_DEFECT_SIMILARITY } else { MIN_WORDING_SIMILARITY };
    let is_alike = likeness.similarity >= min_similarity || (likeness.same_code && likeness.shares_title_concepts);
    is_one_place(one, other) && is_alike && !(one.kind.is_smell() && other.kind.is_smell())
}

/// Returns true if no reviewer has a report in both groups, and no report of one is a stranger to a report of the other: a
/// report that is like one of them only is more often a neighbour than the same problem.
fn can_join(reports: &[KnownReport<'_>], one: &[usize], other: &[usize]) -> bool {
    let pairs = one.iter().flat_map(|a| other.iter().map(move |b| (&reports[*a], &reports[*b])));
    pairs.into_iter().all(|(a, b)| a.place.member != b.place.member && (score_pair(a, b).is_some() || may_be_one(a, b)))
}

/// Returns true if two reports that alone are not enough alike may describe the problem of a third one.
fn may_be_one(one: &KnownReport<'_>, other: &KnownReport<'_>) -> bool {
    let likeness = one.words.compare(&other.words);
    let has_common_words = likeness.shares_title_concepts || likeness.similarity >= MIN_DEFECT_SIMILARITY;
    has_common_words && !likeness.distinct.separates(one.finding, other.finding)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;
    use crate::domain::Kind;
    use crate::review::unit_engine::tests::finding;

    fn report(lines: (u32, u32), kind: Kind, title: &str, code: &str) -> Finding {
        let mut report = finding("src/client.rs", lines.0, lines.1, 2);
        report.finding_id = FindingId::from_parts(kind.word(), "src/client.rs", &format!("{title} {lines:?}"), 0);
        (report.kind, report.title, report.quoted_code) = (kind, title.to_owned(), code.to_owned());
        report
    }

    use Kind::{Concurrency, Correctness, ErrorHandling, MissingErrorHandling, Performance, Security};

    /// Pairs of reports about one change, each by another reviewer: one problem in other words or kinds, or two problems.
    #[rstest]
    #[case::in_the_same_words(((41, 41), Security, "A live API key is committed"), ((41, 41), Security, "A live API key is committed"), true)]
    #[case::in_other_words(((41, 41), Security, "Hardcoded API key in source"), ((41, 41), Security, "API key is hardcoded in the source"), true)]
    #[case::at_one_place_in_unlike_words(((41, 44), Correctness, "Off by one"), ((42, 42), Correctness, "Wrong bound"), true)]
    #[case::under_another_kind(((41, 44), Correctness, "Lock is held across await"), ((43, 43), Concurrency, "The lock is held across an await"), true)]
    #[case::twins(((10, 12), MissingErrorHandling, "Error of read is ignored"), ((12, 12), ErrorHandling, "Ignored error on read"), true)]
    #[case::another_kind_and_another_problem(((41, 44), Correctness, "Off by one in the window"), ((43, 43), Security, "User input reaches the shell"), false)]
    #[case::another_kind_and_words_that_say_little(((41, 44), Performance, "This is slow"), ((41, 44), Correctness, "This looks wrong"), false)]
    #[case::another_name(((41, 41), Correctness, "Result of `read` is ignored"), ((42, 42), Correctness, "Result of `write` is ignored"), false)]
    #[case::two_problems_on_one_line(((41, 41), Security, "SQL injection through `name`"), ((41, 41), Security, "Any caller may delete: no permission is needed"), false)]
    #[case::far_apart(((41, 41), Correctness, "Unchecked index"), ((90, 90), Correctness, "Unchecked index"), false)]
    fn two_reviewers(
        #[case] one: ((u32, u32), Kind, &str),
        #[case] other: ((u32, u32), Kind, &str),
        #[case] is_one_problem: bool,
    ) {
        let first = [report(one.0, one.1, one.2, "let a = b;")];
        let second = [report(other.0, other.1, other.2, "let c = d;")];
        for members in [[&first[..], &second[..]], [&second[..], &first[..]]] {
            assert_eq!(merge_reports(&members).len(), if is_one_problem { 1 } else { 2 }, "{one:?} {other:?}");
        }
    }

    proptest! {
        #[test]
        fn near_lines_are_shared_by_near_reports_only(
            (first, more) in (1..60_u32, 0..15_u32),
            (second, long) in (1..60_u32, 0..15_u32),
        ) {
            let one = report((first, first + more), Correctness, "", "");
            let other = report((second, second + long), Correctness, "", "");
            prop_assert_eq!(near_lines(&one).overlaps(other.lines()), are_near(&one, &other));
        }
    }

    #[test]
    fn a_reviewer_is_in_a_group_once_and_no_chain_joins_two_problems() {
        let same = |title| report((41, 44), Correctness, title, "let a = b;");
        // The second reviewer tells two problems apart; the first one has one text at the place of both.
        let (first, second) =
            ([same("Retries never stop")], [same("Retries never stop"), same("The wait is not bounded")]);
        let groups = merge_reports(&[&first, &second]);
        let shape: Vec<Vec<usize>> =
            groups.iter().map(|group| group.iter().map(|report| report.member).collect()).collect();
        assert_eq!(shape.iter().filter(|members| **members == [0, 1]).count(), 1, "{shape:?}");
        assert_eq!(groups.len(), 2);
        let third = [same("Retries never stop")];
        let groups = merge_reports(&[&first, &second, &third]);
        assert!(groups.len() == 2 && groups.iter().any(|group| group.len() == 3), "three agree: {groups:?}");
        assert!(merge_reports(&[]).is_empty() && merge_reports(&[&[], &[]]).is_empty());
    }

    const INJECTION: &str = "SQL injection through `name`";
    const PERMISSION: &str = "Any caller may delete: no permission is needed";

    /// Titles of the reports of one reviewer each about the same code, and the groups of their reviewers.
    #[rstest]
    #[case::the_same_words(&[INJECTION, INJECTION], "01")]
    #[case::other_problems(&[INJECTION, PERMISSION], "0 1")]
    #[case::no_words(&[INJECTION, ""], "01")]
    #[case::two_of_three_agree(&[INJECTION, PERMISSION, INJECTION], "02 1")]
    #[case::the_last_two_agree(&[PERMISSION, INJECTION, INJECTION], "0 12")]
    fn words_group_the_reports_about_one_code_whoever_ends_first(#[case] titles: &[&str], #[case] expected: &str) {
        let base = report((41, 41), Security, "", "delete(name);").finding_id;
        // All end together; each ends after the one before it; and the other way round.
        let orders: [fn(usize) -> usize; 3] = [|_| 0, |at| at, |at| 2 - at];
        for variant_of in orders {
            let build = |(at, title): (usize, &&str)| {
                let mut told = report((41, 41), Security, title, "delete(name);");
                told.finding_id = base.variant(u32::try_from(variant_of(at)).expect("a small number"));
                told.explanation = String::new();
                vec![told]
            };
            let members: Vec<Vec<Finding>> = titles.iter().enumerate().map(build).collect();
            let slices: Vec<&[Finding]> = members.iter().map(Vec::as_slice).collect();
            let mut groups: Vec<String> = merge_reports(&slices)
                .iter()
                .map(|group| group.iter().map(|report| report.member.to_string()).collect())
                .collect();
            groups.sort_unstable();
            assert_eq!(groups.join(" "), expected, "{titles:?}");
        }
    }

    fn arbitrary_reports() -> impl Strategy<Value = Vec<Finding>> {
        let titles =
            ["Unchecked index", "Unchecked division", "Lock held across await", "Off by one", "Index is unchecked"];
        let kinds = [Correctness, Concurrency, Security, MissingErrorHandling];
        let one = (1..30_u32, 0..4_u32, 0..titles.len(), 0..kinds.len()).prop_map(move |(line, more, title, kind)| {
            report((line, line + more), kinds[kind], titles[title], "let a = b;")
        });
        prop::collection::vec(one, 0..12)
    }

    proptest! {
        #[test]
        fn groups_do_not_depend_on_the_order_of_the_reports(
            members in prop::collection::vec(arbitrary_reports(), 1..4),
            turns in prop::collection::vec(0..12_usize, 3),
        ) {
            let by_id = |members: &[Vec<Finding>]| {
                let slices: Vec<&[Finding]> = members.iter().map(Vec::as_slice).collect();
                let mut groups: Vec<Vec<(usize, String)>> = merge_reports(&slices)
                    .into_iter()
                    .map(|group| {
                        let name = |report: MemberReport| {
                            (report.member, members[report.member][report.finding].finding_id.to_string())
                        };
                        group.into_iter().map(name).collect()
                    })
                    .collect();
                groups.sort();
                groups
            };
            // A reviewer reports an id once.
            let mut members = members;
            for reports in &mut members {
                reports.sort_by(|a, b| a.finding_id.cmp(&b.finding_id));
                reports.dedup_by(|a, b| a.finding_id == b.finding_id);
            }
            let before = by_id(&members);
            let count: usize = members.iter().map(Vec::len).sum();
            prop_assert_eq!(before.iter().map(Vec::len).sum::<usize>(), count, "each report is in one group");
            for (reports, turn) in members.iter_mut().zip(turns) {
                let by = turn % reports.len().max(1);
                reports.rotate_left(by);
            }
            prop_assert_eq!(by_id(&members), before);
        }

        #[test]
        fn groups_do_not_depend_on_the_ids(members in prop::collection::vec(arbitrary_reports(), 1..4)) {
            let group = |members: &[Vec<Finding>]| {
                let slices: Vec<&[Finding]> = members.iter().map(Vec::as_slice).collect();
                let mut groups = merge_reports(&slices);
                groups.sort();
                groups
            };
            let before = group(&members);
            let mut renamed = members;
            for (member, reports) in renamed.iter_mut().enumerate() {
                for (at, report) in reports.iter_mut().enumerate() {
                    report.finding_id = FindingId::from_parts("SECURITY", "src/client.rs", &format!("{member} {at}"), 0);
                }
            }
            // Reports that are equal but for their ids may change places.
            let is_told_twice = renamed.iter().any(|reports| {
                let said = |report: &Finding| (report.line_start, report.line_end, report.kind, report.title.clone());
                let mut told: Vec<_> = reports.iter().map(said).collect();
                let count = told.len();
                told.sort_unstable();
                told.dedup();
                told.len() < count
            });
            prop_assume!(!is_told_twice);
            prop_assert_eq!(group(&renamed), before);
        }
    }
}
