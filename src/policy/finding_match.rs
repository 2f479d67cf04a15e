//! Matches reports to earlier findings of the same problem, although words, lines or the file's name differ.
//!
//! A finding's id depends on kind, path and anchored code, so it changes with a rename, another anchor or an edit of
//! the code. Matching uses the kind and the place: where the earlier finding's code is now. A dismissal covers only
//! unchanged code.

use std::collections::{HashMap, HashSet};

use super::anchor::AnchorLocation;
use crate::domain::{Finding, FindingId, FindingVariants, Kind, LineIndex, LineRange};

/// Minimum share of common words in two titles, in percent of all their words, to mean the same problem if the lines do
/// not decide.
const MIN_SHARED_WORDS_PERCENT: usize = 60;
/// Maximum additional lines of the longer of two anchors of one problem, beyond twice the length of the shorter one.
const MAX_EXTRA_LINES: u32 = 3;

/// Earlier finding that a report may match.
#[derive(Debug, Clone, Copy)]
pub struct MatchCandidate<'a> {
    /// Id under which it is known.
    pub id: &'a FindingId,
    /// Kind of the problem.
    pub kind: Kind,
    /// Title of its last report.
    pub title: &'a str,
    /// Number of lines of its anchor.
    pub lines: u32,
    /// State and place of its code now.
    pub stand: &'a AnchorLocation,
    /// True if somebody has dismissed it.
    pub dismissed: bool,
}

/// Earlier findings by what a report must share with one to match it: kind, file and a line.
struct CandidateIndex<'a> {
    by_place: HashMap<(Kind, &'a str), LineIndex>,
}

impl<'a> CandidateIndex<'a> {
    /// Leaves out the findings whose code is gone, because no report matches them.
    fn new(earlier: &[MatchCandidate<'a>]) -> Self {
        let mut by_place: HashMap<(Kind, &str), LineIndex> = HashMap::new();
        for (known, finding) in earlier.iter().enumerate() {
            if let Some((path, lines)) = finding.stand.place() {
                by_place.entry((finding.kind, path)).or_default().insert(lines, known);
            }
        }
        Self { by_place }
    }

    /// Returns the indices of the findings of the report's kind at its lines.
    fn find_near<'b>(&'b self, report: &'b Finding) -> impl Iterator<Item = usize> + use<'a, 'b> {
        let (place, lines) = ((report.kind, report.repo_relative_path.as_str()), report.lines());
        self.by_place.get(&place).into_iter().flat_map(move |row| row.overlapping(lines))
    }
}

/// Matches each report to at most one earlier finding, and each earlier finding to at most one report: the most similar
/// pairs first. `may_be_same` gets the indices of a report and an earlier finding, and excludes pairs that the caller
/// knows to be different problems. Returns the index of the earlier finding for each report.
///
/// A report is compared only with findings of its kind at its lines, so that the time hardly depends on their number elsewhere.
pub fn match_earlier_findings(
    reports: &[&Finding],
    earlier: &[MatchCandidate<'_>],
    may_be_same: impl Fn(usize, usize) -> bool,
) -> Vec<Option<usize>> {
    let variants = FindingVariants::from_ids(
        reports.iter().map(|report| &report.finding_id).chain(earlier.iter().map(|finding| finding.id)),
    );
    let index = CandidateIndex::new(earlier);
    let mut pairs: Vec<(u32, usize, usize)> = Vec::new();
    for (number, report) in reports.iter().enumerate() {
        // A further problem of the same code was compared with this finding before, and is another one.
        let may_match = |known: &usize| {
            !variants.are_variants(&report.finding_id, earlier[*known].id) && may_be_same(number, *known)
        };
        for known in index.find_near(report).filter(may_match) {
            pairs.extend(score_likeness(report, &earlier[known]).map(|likeness| (likeness, number, known)));
        }
    }
    choose_pairs(pairs, reports.len())
}

/// Chooses the most similar pairs of likeness, report and earlier finding, so that each stands in at most one pair. Equal pairs are in
/// the order of the reports. Returns the earlier finding for each report.
fn choose_pairs(mut pairs: Vec<(u32, usize, usize)>, reports: usize) -> Vec<Option<usize>> {
    pairs.sort_by_key(|&(likeness, number, known)| (std::cmp::Reverse(likeness), number, known));
    let mut found = vec![None; reports];
    let mut taken = HashSet::new();
    for (_, number, known) in pairs {
        if found[number].is_none() && taken.insert(known) {
            found[number] = Some(known);
        }
    }
    found
}

/// Returns true if two titles of imported problems begin with the same tool and rule, as in `TOOL RULE: message`. A tool
/// names the rule that it checks, so problems of different rules are different, whatever lines and kind they share.
pub fn is_same_rule(tool: &str, one: &str, other: &str) -> bool {
    rule_prefix(tool, one) == rule_prefix(tool, other)
}

/// Returns the beginning of a title up to the message. The name of the tool may contain the separator.
fn rule_prefix<'a>(tool: &str, title: &'a str) -> &'a str {
    let after_tool = if title.starts_with(tool) { tool.len() } else { 0 };
    title[after_tool..].find(": ").map_or(title, |end| &title[..after_tool + end])
}

/// Scores the similarity of a report and an earlier finding of its kind. A higher score is more similar. `None` if they
/// are not the same problem.
fn score_likeness(report: &Finding, earlier: &MatchCandidate<'_>) -> Option<u32> {
    let (path, place) = earlier.stand.place()?;
    let lines = report.lines();
    let shared = count_shared_lines(place, lines);
    if path != report.repo_relative_path || shared == 0 {
        return None;
    }
    let spot = match earlier.stand {
        AnchorLocation::Unchanged { .. } => is_same_spot(place, lines),
        _ if earlier.dismissed => return None,
        _ => is_edited_anchor(place, earlier.lines, lines),
    };
    let words = shared_words_percent(&report.title, earlier.title);
    (spot || words >= MIN_SHARED_WORDS_PERCENT)
        .then(|| shared * 200 / (bounded_length(place) + bounded_length(lines)) + words as u32)
}

/// Returns true if two ranges can be the same anchor with slightly different ends.
fn is_same_spot(one: LineRange, other: LineRange) -> bool {
    let (short, long) =
        (bounded_length(one).min(bounded_length(other)), bounded_length(one).max(bounded_length(other)));
    count_shared_lines(one, other) * 2 >= short && long <= short * 2 + MAX_EXTRA_LINES
}

/// Returns true if a problem at `lines` can be the one whose anchor of `was` lines was edited into `region`. The region
/// may also hold other code.
pub fn is_edited_anchor(region: LineRange, was: u32, lines: LineRange) -> bool {
    count_shared_lines(region, lines) * 2 >= bounded_length(region).min(bounded_length(lines))
        && bounded_length(lines) <= was.saturating_mul(2) + MAX_EXTRA_LINES
}

/// Returns the number of lines, limited so that sums cannot overflow.
fn bounded_length(lines: LineRange) -> u32 {
    lines.count().min(1 << 24)
}

fn count_shared_lines(one: LineRange, other: LineRange) -> u32 {
    match one.overlaps(other) {
        true => bounded_length(LineRange::new(one.start.max(other.start), one.end.min(other.end))),
        false => 0,
    }
}

/// Returns the share of words that two texts have in common, in percent of all their words.
fn shared_words_percent(one: &str, other: &str) -> usize {
    let words = |text: &str| -> HashSet<String> {
        let words = text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
        words.map(str::to_lowercase).collect()
    };
    let (one, other) = (words(one), words(other));
    let all = one.union(&other).count();
    one.intersection(&other).count() * 100 / all.max(1)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;
    use crate::domain::{Confidence, FindingStatus, Priority, RunId, Severity, Time};

    fn report(path: &str, start: u32, end: u32, title: &str) -> Finding {
        let run: RunId = "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0A".parse().expect("an id");
        Finding {
            finding_id: FindingId::from_parts("X", path, title, start),
            first_run_id: run.clone(),
            last_run_id: run,
            priority: Priority::P2,
            severity: Severity::Low,
            confidence: Confidence::High,
            kind: Kind::Correctness,
            title: title.to_owned(),
            explanation: String::new(),
            repo_relative_path: path.to_owned(),
            line_start: start,
            line_end: end,
            quoted_code: String::new(),
            pattern: None,
            suggestion: None,
            status: FindingStatus::Open,
            lowered: None,
            detail_ref: String::new(),
            reported_at: Time::UNIX_EPOCH,
            voices: Vec::new(),
            steps: Vec::new(),
            disputed: Vec::new(),
            symbol: None,
        }
    }

    fn unchanged(path: &str, start: u32, end: u32) -> AnchorLocation {
        AnchorLocation::Unchanged { path: path.to_owned(), lines: LineRange::new(start, end) }
    }

    fn changed(path: &str, start: u32, end: u32) -> AnchorLocation {
        AnchorLocation::Changed { path: path.to_owned(), lines: LineRange::new(start, end) }
    }

    fn any(_: usize, _: usize) -> bool {
        true
    }

    #[rstest]
    #[case::the_same_message("lint weak-hash: Weak hash", "lint weak-hash: Weak hash", true)]
    #[case::another_message("lint weak-hash: Weak hash in f", "lint weak-hash: Weak hash in g", true)]
    #[case::another_rule("lint weak-hash: It is unsafe", "lint eval: It is unsafe", false)]
    #[case::a_rule_and_none("lint weak-hash: It is unsafe", "lint: It is unsafe", false)]
    #[case::no_rule("lint: note: one", "lint: note: other", true)]
    #[case::longer_rule("lint weak: x", "lint weak-hash: x", false)]
    #[case::no_message("lint weak", "lint weak", true)]
    #[case::no_tool("a: b", "c: b", false)]
    fn the_same_rule(#[case] one: &str, #[case] other: &str, #[case] expected: bool) {
        assert_eq!(is_same_rule("lint", one, other), expected);
    }

    #[test]
    fn a_pair_that_the_caller_excludes_does_not_match() {
        let stand = unchanged("a", 10, 14);
        let id = FindingId::from_parts("X", "a", TITLE, 99);
        let earlier = MatchCandidate {
            id: &id,
            kind: Kind::Correctness,
            title: TITLE,
            lines: 5,
            stand: &stand,
            dismissed: false,
        };
        let reports = [&report("a", 10, 14, TITLE), &report("a", 10, 14, TITLE)];
        assert_eq!(match_earlier_findings(&reports, &[earlier], |report, _| report == 1), [None, Some(0)]);
    }

    const TITLE: &str = "the loop runs one step too far";

    #[rstest]
    #[case::where_it_was(unchanged("a", 10, 14), (10, 14), "reads past the end of the list", true, true)]
    #[case::drawn_a_little_differently(unchanged("a", 10, 14), (12, 15), "reads past the end", true, true)]
    #[case::in_a_renamed_file(unchanged("b", 10, 14), (10, 14), TITLE, false, false)]
    #[case::elsewhere(unchanged("a", 10, 14), (15, 19), TITLE, false, false)]
    #[case::a_line_of_a_long_function(unchanged("a", 10, 80), (12, 12), "the sum overflows", false, false)]
    #[case::a_line_of_it_in_the_same_words(unchanged("a", 10, 80), (12, 12), "The loop runs one step too far", true, true)]
    #[case::a_function_around_it(unchanged("a", 12, 12), (1, 80), "the lock is never given back", false, false)]
    #[case::its_code_was_edited(changed("a", 10, 14), (10, 14), "reads past the end", true, false)]
    #[case::within_a_large_edit(changed("a", 1, 60), (30, 34), "reads past the end", true, false)]
    #[case::much_larger_than_it_was(changed("a", 10, 60), (10, 60), "does too much", false, false)]
    #[case::deleted(AnchorLocation::Deleted { path: "a".to_owned(), after: 9 }, (9, 10), TITLE, false, false)]
    fn the_same_problem(
        #[case] stand: AnchorLocation,
        #[case] (start, end): (u32, u32),
        #[case] title: &str,
        #[case] open: bool,
        #[case] dismissed: bool,
    ) {
        let report = report("a", start, end, title);
        let lines = stand.place().map_or(1, |(_, lines)| bounded_length(lines)).min(20);
        for (is_dismissed, expected) in [(false, open), (true, dismissed)] {
            let id = FindingId::from_parts("X", "a", TITLE, 99);
            let earlier = MatchCandidate {
                id: &id,
                kind: Kind::Correctness,
                title: TITLE,
                lines,
                stand: &stand,
                dismissed: is_dismissed,
            };
            let other = MatchCandidate { kind: Kind::Api, ..earlier };
            assert_eq!(
                match_earlier_findings(&[&report], &[other, earlier], any),
                [expected.then_some(1)],
                "dismissed: {is_dismissed}"
            );
        }
    }

    #[test]
    fn each_is_one_and_the_best_pair_goes_first() {
        let (near, far) = (unchanged("a", 10, 14), unchanged("a", 12, 16));
        let id = FindingId::from_parts("X", "a", TITLE, 99);
        let earlier = |stand| MatchCandidate {
            id: &id,
            kind: Kind::Correctness,
            title: TITLE,
            lines: 5,
            stand,
            dismissed: false,
        };
        let reports = [report("a", 12, 16, "x"), report("a", 10, 14, "x"), report("a", 11, 15, "x")];
        let reports: Vec<&Finding> = reports.iter().collect();
        assert_eq!(match_earlier_findings(&reports, &[earlier(&near), earlier(&far)], any), [Some(1), Some(0), None]);
        assert_eq!(match_earlier_findings(&reports, &[], any), [None, None, None]);
    }

    #[test]
    fn another_problem_of_the_same_code_is_not_the_earlier_one() {
        let stand = unchanged("a", 10, 14);
        let mut other = report("a", 10, 14, TITLE);
        let id = other.finding_id.clone();
        let earlier =
            MatchCandidate { id: &id, kind: Kind::Correctness, title: TITLE, lines: 5, stand: &stand, dismissed: true };
        assert_eq!(match_earlier_findings(&[&other], &[earlier], any), [Some(0)]);
        other.finding_id = id.variant(1);
        assert_eq!(match_earlier_findings(&[&other], &[earlier], any), [None]);
        let (first, second) = (report("a", 10, 14, "Lock is kept"), id.variant(2));
        let found = |report: &Finding| {
            match_earlier_findings(&[report], &[earlier, MatchCandidate { id: &second, ..earlier }], any)
        };
        assert_eq!(found(&other), [None], "nor is it the third one");
        assert_eq!(found(&first), [Some(0)]);
    }

    /// Matches by comparing each report with each earlier finding.
    fn match_plainly(
        reports: &[&Finding],
        earlier: &[MatchCandidate<'_>],
        may_be_same: impl Fn(usize, usize) -> bool,
    ) -> Vec<Option<usize>> {
        let ids = reports.iter().map(|report| &report.finding_id).chain(earlier.iter().map(|finding| finding.id));
        let variants = FindingVariants::from_ids(ids);
        let mut pairs: Vec<(u32, usize, usize)> = Vec::new();
        for (number, report) in reports.iter().enumerate() {
            for (known, finding) in earlier.iter().enumerate() {
                let may_match = finding.kind == report.kind && !variants.are_variants(&report.finding_id, finding.id);
                if may_match && may_be_same(number, known) {
                    pairs.extend(score_likeness(report, finding).map(|likeness| (likeness, number, known)));
                }
            }
        }
        choose_pairs(pairs, reports.len())
    }

    const PATHS: [&str; 3] = ["a", "b", "c"];
    const KINDS: [Kind; 2] = [Kind::Correctness, Kind::Api];
    const TITLES: [&str; 4] = [TITLE, "The loop runs one step too far", "reads past the end", "the sum overflows"];

    /// Facts of a report or an earlier finding: path, kind, title, first line, further lines, number of the variant of its id.
    type ProblemFacts = (usize, usize, usize, u32, u32, u32);

    fn arbitrary_problem() -> impl Strategy<Value = ProblemFacts> {
        (0..PATHS.len(), 0..KINDS.len(), 0..TITLES.len(), 1..40_u32, 0..12_u32, 0..3_u32)
    }

    /// Returns the id of a problem; those of one title and first line are variants.
    fn id_of((path, kind, title, start, _, variant): ProblemFacts) -> FindingId {
        let code = format!("{title} {}", start / 4);
        FindingId::from_parts(KINDS[kind].word(), PATHS[path], &code, 0).variant(variant)
    }

    proptest! {
        #[test]
        fn the_index_finds_the_same_pairs_as_comparing_all(
            reports in prop::collection::vec(arbitrary_problem(), 0..40),
            earlier in prop::collection::vec((arbitrary_problem(), 0..5_u8, prop::bool::ANY), 0..40),
            excluded in 1..9_usize,
        ) {
            let build = |facts: &ProblemFacts| {
                let (path, kind, title, start, more, _) = *facts;
                let report = report(PATHS[path], start, start + more, TITLES[title]);
                Finding { finding_id: id_of(*facts), kind: KINDS[kind], ..report }
            };
            let reports: Vec<Finding> = reports.iter().map(build).collect();
            let reports: Vec<&Finding> = reports.iter().collect();
            let stand_of = |(path, _, _, start, more, _): ProblemFacts, state: u8| match state {
                0 => AnchorLocation::FileGone,
                1 => AnchorLocation::Deleted { path: PATHS[path].to_owned(), after: start },
                2 => changed(PATHS[path], start, start + more),
                // Records from elsewhere may hold reversed ranges.
                3 => AnchorLocation::Changed {
                    path: PATHS[path].to_owned(),
                    lines: LineRange { start: start + more, end: start },
                },
                _ => unchanged(PATHS[path], start, start + more),
            };
            let stands: Vec<(FindingId, AnchorLocation)> =
                earlier.iter().map(|(facts, state, _)| (id_of(*facts), stand_of(*facts, *state))).collect();
            let known = earlier.iter().zip(&stands).map(|(&((_, kind, title, _, more, _), _, dismissed), (id, stand))| {
                MatchCandidate { id, kind: KINDS[kind], title: TITLES[title], lines: more + 1, stand, dismissed }
            });
            let known: Vec<MatchCandidate<'_>> = known.collect();
            let may_be_same = |report: usize, known: usize| !(report + known).is_multiple_of(excluded + 1);
            let found = match_earlier_findings(&reports, &known, may_be_same);
            prop_assert_eq!(found, match_plainly(&reports, &known, may_be_same));
        }
    }

    #[test]
    fn a_report_is_compared_with_the_findings_at_its_lines_only() {
        let lines = |number: u32| (number * 10 + 1, number * 10 + 5);
        let many = 2_000;
        let reports: Vec<Finding> =
            (0..many).map(|number| report("a", lines(number).0, lines(number).1, TITLE)).collect();
        let stands: Vec<AnchorLocation> =
            (0..many).map(|number| unchanged("a", lines(number).0, lines(number).1)).collect();
        let known = reports.iter().zip(&stands).map(|(report, stand)| MatchCandidate {
            id: &report.finding_id,
            kind: report.kind,
            title: &report.title,
            lines: 5,
            stand,
            dismissed: false,
        });
        let known: Vec<MatchCandidate<'_>> = known.collect();
        let reports: Vec<&Finding> = reports.iter().collect();
        let compared = Cell::new(0);
        let found = match_earlier_findings(&reports, &known, |_, _| {
            compared.set(compared.get() + 1);
            true
        });
        assert_eq!(found, (0..known.len()).map(Some).collect::<Vec<_>>());
        assert_eq!(compared.get(), known.len());
    }
}
