//! Computes the confidence of patterns, decides which ones are used, and orders them. Pure functions.
//!
//! - No value is ever NaN or infinite, whatever the counts are.
//!
//! Confidence is the mean of a Beta distribution (A. Gelman et al., "Bayesian Data Analysis", 3rd ed. 2013, section
//! 2.4). The prior depends on the evidence; each success and each failure is one trial. A repeated sighting counts as
//! a part of a trial, and all of them together as a few trials, like all outcomes of other machines: they are a hint,
//! which the outcomes on this machine outweigh. A fix that failed, was dropped or was undone is a third of a failure.
//! The displayed lower bound is Wilson's, computed from the outcomes alone.

use serde::{Deserialize, Serialize};

use super::form::FormToken;
use super::pattern::{Pattern, PatternCount, PatternEvidence, PatternOrigin, PatternStance};
use crate::domain::{Time, wilson_lower_bound, word_enum};

/// Minimum confidence for immediate use. All thresholds here are project requirements.
pub const MIN_IMMEDIATE_CONFIDENCE: f64 = 0.85;
/// Minimum confidence for use after [`MIN_OCCURRENCES`] sightings; a curated pattern needs no sightings.
pub const MIN_REPEATED_CONFIDENCE: f64 = 0.65;
/// Minimum confidence to watch a pattern; below it, a pattern is ignored.
pub const MIN_WATCHED_CONFIDENCE: f64 = 0.45;
/// Number of sightings required by [`MIN_REPEATED_CONFIDENCE`].
pub const MIN_OCCURRENCES: u32 = 3;
/// Weight in trials of a fix that failed its check, was dropped or was undone: a third of a dismissal, because the fix may
/// be wrong where the finding is right.
const SETBACK_WEIGHT: f64 = 1.0 / 3.0;
/// Number of days after which a pattern that was not seen again counts half as recent: about two releases.
const HALF_LIFE_DAYS: f64 = 180.0;
/// Maximum weight in trials of all repeated sightings, and of all outcomes of other machines. Six failures on this
/// machine outweigh it.
const MAX_OCCURRENCE_WEIGHT: f64 = 6.0;

word_enum!(
    /// Decision about the use of a pattern.
    Inclusion {
        /// Use at once.
        Now = "now",
        /// Use, because the pattern was seen often enough or is curated.
        AfterThree = "after_three",
        /// Count outcomes only; do not use yet.
        Watched = "watched",
        No = "no",
    }
);

impl Inclusion {
    pub fn is_used(self) -> bool {
        matches!(self, Self::Now | Self::AfterThree)
    }
}

/// State of a pattern, including the user's decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatternState {
    /// Muted by the user, whatever its [`Inclusion`].
    Muted,
    Used,
    Watched,
    NotUsed,
}

impl PatternState {
    /// Returns the state in one or two words.
    pub fn label(self) -> &'static str {
        match self {
            Self::Muted => "muted",
            Self::Used => "used",
            Self::Watched => "watched",
            Self::NotUsed => "not used",
        }
    }
}

/// Confidence and use of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PatternAssessment {
    /// Confidence from 0 to 1, see the module documentation.
    pub confidence: f64,
    /// Share of successes among all outcomes, from 0 to 1; `None` before the first outcome.
    pub success_rate: Option<f64>,
    /// Lower bound of the success rate at 95 % confidence (Wilson); `None` before the first outcome.
    pub at_least: Option<f64>,
    /// Recency from 0 to 1; halves with every `HALF_LIFE_DAYS` since the pattern was last seen or matched. A curated
    /// pattern that was never seen or matched has 0.5.
    pub recency: f64,
    pub inclusion: Inclusion,
}

impl PatternAssessment {
    /// Returns the state of the assessed pattern.
    pub fn state(&self, pattern: &Pattern) -> PatternState {
        match self.inclusion {
            _ if pattern.muted => PatternState::Muted,
            Inclusion::Now | Inclusion::AfterThree => PatternState::Used,
            Inclusion::Watched => PatternState::Watched,
            Inclusion::No => PatternState::NotUsed,
        }
    }
}

/// Pattern with its score.
#[derive(Debug, Clone, Copy)]
pub struct ScoredPattern<'a> {
    pub pattern: &'a Pattern,
    pub standing: PatternAssessment,
    pub score: f64,
}

/// Returns the prior of the evidence: successes, failures, and the weight of each further sighting.
///
/// The values are chosen so that a curated pattern is used at once, and still after two failures but not after three.
/// A fix that a person applied or a review confirmed is used after three sightings, and so is a dismissal. A commit
/// that only says it fixes something is watched until three commits agree.
fn evidence_prior(evidence: PatternEvidence) -> (f64, f64, f64) {
    match evidence {
        PatternEvidence::Curated => (7.0, 1.0, 0.25),
        PatternEvidence::Addressed => (4.0, 1.0, 0.5),
        PatternEvidence::Applied => (3.0, 1.0, 0.5),
        PatternEvidence::Dismissed => (2.8, 1.2, 0.5),
        PatternEvidence::History => (1.2, 0.8, 0.25),
    }
}

/// Returns the stronger of two kinds of evidence.
pub fn stronger_evidence(a: PatternEvidence, b: PatternEvidence) -> PatternEvidence {
    let weight = |evidence| {
        let (successes, failures, _) = evidence_prior(evidence);
        successes / (successes + failures)
    };
    if weight(b) > weight(a) { b } else { a }
}

/// Computes the confidence and the use of a pattern at a point in time.
pub fn assess_pattern(pattern: &Pattern, now: Time) -> PatternAssessment {
    let count = pattern.total_count();
    let (successes, failures, each) = evidence_prior(pattern.evidence);
    let again = (f64::from(count.frequency.saturating_sub(1)) * each).min(MAX_OCCURRENCE_WEIGHT);
    let (raised, missed) = (f64::from(count.successes), f64::from(count.failures));
    let outcomes = raised + missed;
    // Outcomes from other machines are a hint, like their sightings; outcomes on this machine count in full.
    let (right_here, wrong_here) = (f64::from(pattern.here.successes), f64::from(pattern.here.failures));
    let elsewhere = (outcomes - right_here - wrong_here).max(0.0);
    let share = if elsewhere > MAX_OCCURRENCE_WEIGHT { MAX_OCCURRENCE_WEIGHT / elsewhere } else { 1.0 };
    let right = right_here + (raised - right_here).max(0.0) * share;
    let set_back = f64::from(pattern.setbacks) * SETBACK_WEIGHT;
    let wrong = wrong_here + (missed - wrong_here).max(0.0) * share + set_back;
    let confidence = (successes + again + right) / (successes + failures + again + right + wrong);
    // A curated pattern needs no sightings.
    let is_usual = pattern.evidence == PatternEvidence::Curated || count.frequency >= MIN_OCCURRENCES;
    let inclusion = match confidence {
        c if c >= MIN_IMMEDIATE_CONFIDENCE => Inclusion::Now,
        c if c >= MIN_REPEATED_CONFIDENCE && is_usual => Inclusion::AfterThree,
        c if c >= MIN_WATCHED_CONFIDENCE => Inclusion::Watched,
        _ => Inclusion::No,
    };
    PatternAssessment {
        confidence,
        success_rate: (outcomes > 0.0).then(|| raised / outcomes),
        at_least: (outcomes > 0.0).then(|| wilson_lower_bound(raised, outcomes)),
        recency: recency(pattern, now),
        inclusion,
    }
}

fn recency(pattern: &Pattern, now: Time) -> f64 {
    let last = pattern.last_matched.map_or(pattern.last_seen, |matched| matched.max(pattern.last_seen));
    if pattern.origin == PatternOrigin::Base && last == Time::UNIX_EPOCH {
        // Neither new nor old.
        return 0.5;
    }
    let days = now.duration_since(last).as_secs_f64() / 86_400.0;
    0.5_f64.powf(days.max(0.0) / HALF_LIFE_DAYS)
}

/// Returns the usefulness of a pattern, above 0: confidence, times the logarithm of its frequency (the tenth sighting
/// says less than the second), times its recency (an old pattern counts half).
pub fn usefulness(pattern: &Pattern, now: Time) -> f64 {
    let standing = assess_pattern(pattern, now);
    standing.confidence * (2.0 + f64::from(pattern.total_count().frequency)).log2() * (0.5 + 0.5 * standing.recency)
}

/// Selects the best `n` patterns, best first, by [`usefulness`] times `relevance` (0 to 1; 0 excludes a pattern).
///
/// Excludes muted and unused patterns, all but the best of a group of similar patterns, and patterns that show the
/// same change as a better one with more or less code around it.
pub fn select_top<'a>(
    patterns: impl IntoIterator<Item = &'a Pattern>,
    relevance: impl Fn(&Pattern) -> f64,
    now: Time,
    n: usize,
) -> Vec<ScoredPattern<'a>> {
    let ranked = |pattern: &'a Pattern| {
        let standing = assess_pattern(pattern, now);
        let relevance = relevance(pattern);
        let relevance = if relevance.is_finite() { relevance.clamp(0.0, 1.0) } else { 0.0 };
        let used = !pattern.muted && standing.inclusion.is_used() && relevance > 0.0;
        used.then(|| ScoredPattern { pattern, standing, score: usefulness(pattern, now) * relevance })
    };
    let mut all: Vec<ScoredPattern<'a>> = patterns.into_iter().filter_map(ranked).collect();
    all.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.pattern.id.cmp(&b.pattern.id)));
    let mut groups = std::collections::HashSet::new();
    all.retain(|ranked| groups.insert(ranked.pattern.group.as_ref().unwrap_or(&ranked.pattern.id)));
    let mut first: Vec<ScoredPattern<'a>> = Vec::new();
    let mut told: Vec<AbstractChange<'a>> = Vec::new();
    for ranked in all {
        if first.len() == n {
            break;
        }
        let Some(this) = AbstractChange::from_pattern(ranked.pattern) else { continue };
        if !told.iter().any(|better| better.contains(&this) || this.contains(better)) {
            first.push(ranked);
            told.push(this);
        }
    }
    first
}

/// Change that a pattern shows, without placeholder numbers.
struct AbstractChange<'a> {
    about: (&'a str, PatternStance),
    broken: Vec<FormToken>,
    fixed: Vec<FormToken>,
}

impl<'a> AbstractChange<'a> {
    fn from_pattern(pattern: &'a Pattern) -> Option<Self> {
        let (broken, fixed) = pattern.parse_forms()?;
        let (broken, fixed) = (broken.without_numbers(), fixed.without_numbers());
        Some(Self { about: (&pattern.language, pattern.stance), broken, fixed })
    }

    /// Returns true if both forms contain the forms of the other change.
    fn contains(&self, inner: &Self) -> bool {
        let has = |outer: &[FormToken], inner: &[FormToken]| match inner.len() {
            0 => outer.is_empty(),
            count => outer.windows(count).any(|window| window == inner),
        };
        self.about == inner.about && has(&self.broken, &inner.broken) && has(&self.fixed, &inner.fixed)
    }
}

/// Selects the patterns to remove when there is room for `most`.
///
/// Order of keeping: muted patterns (the mute would be lost), then used, watched and other patterns; within each
/// class, patterns seen on this machine first, then the most useful. Patterns never seen on this machine get at most
/// half of the room while others need it, so that an import cannot replace everything.
pub fn select_evicted<'a>(patterns: impl IntoIterator<Item = &'a Pattern>, now: Time, most: usize) -> Vec<&'a Pattern> {
    let is_foreign = |pattern: &Pattern| pattern.here == PatternCount::default() && !pattern.muted;
    let key = |pattern: &Pattern| {
        let class = match assess_pattern(pattern, now).inclusion {
            _ if pattern.muted => 3,
            Inclusion::Now | Inclusion::AfterThree => 2,
            Inclusion::Watched => 1,
            Inclusion::No => 0,
        };
        (class, !is_foreign(pattern), usefulness(pattern, now))
    };
    let mut all: Vec<_> = patterns.into_iter().map(|pattern| (key(pattern), pattern)).collect();
    if all.len() <= most {
        return Vec::new();
    }
    all.sort_by(|((a_class, a_here, a), one), ((b_class, b_here, b), other)| {
        (b_class, b_here).cmp(&(a_class, a_here)).then(b.total_cmp(a)).then_with(|| one.id.cmp(&other.id))
    });
    let mut foreign = 0;
    let (mut kept, behind): (Vec<&Pattern>, Vec<&Pattern>) =
        all.into_iter().map(|(_, pattern)| pattern).partition(|pattern| {
            foreign += usize::from(is_foreign(pattern));
            !is_foreign(pattern) || foreign <= most / 2
        });
    kept.extend(behind);
    kept.split_off(most)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;
    use crate::knowledge::test_support::{sample_pattern, time_at_day};

    fn with(evidence: PatternEvidence, frequency: u32, successes: u32, failures: u32) -> Pattern {
        let mut one = sample_pattern("python", "VARIABLE == None", "VARIABLE is None");
        one.evidence = evidence;
        one.here = PatternCount { frequency, successes, failures };
        one.counts.insert("m_1".to_owned(), one.here);
        one
    }

    #[rstest]
    #[case::base(PatternEvidence::Curated, 0, 0, 0, 0.875, Inclusion::Now)]
    #[case::base_that_fails_once(PatternEvidence::Curated, 0, 0, 1, 0.7778, Inclusion::AfterThree)]
    #[case::base_that_fails_twice(PatternEvidence::Curated, 0, 0, 2, 0.7, Inclusion::AfterThree)]
    #[case::base_that_fails(PatternEvidence::Curated, 0, 0, 3, 0.6364, Inclusion::Watched)]
    #[case::base_that_always_fails(PatternEvidence::Curated, 0, 0, 11, 0.3684, Inclusion::No)]
    #[case::base_that_succeeds(PatternEvidence::Curated, 0, 5, 0, 0.9231, Inclusion::Now)]
    #[case::addressed_once(PatternEvidence::Addressed, 1, 0, 0, 0.8, Inclusion::Watched)]
    #[case::addressed_thrice(PatternEvidence::Addressed, 3, 0, 0, 0.8333, Inclusion::AfterThree)]
    #[case::addressed_often(PatternEvidence::Addressed, 5, 0, 0, 0.8571, Inclusion::Now)]
    #[case::addressed_and_then_dismissed(PatternEvidence::Addressed, 3, 0, 4, 0.5, Inclusion::Watched)]
    #[case::applied_twice(PatternEvidence::Applied, 2, 0, 0, 0.7778, Inclusion::Watched)]
    #[case::applied_thrice(PatternEvidence::Applied, 3, 0, 0, 0.8, Inclusion::AfterThree)]
    #[case::dismissed_once(PatternEvidence::Dismissed, 1, 0, 0, 0.7, Inclusion::Watched)]
    #[case::dismissed_thrice(PatternEvidence::Dismissed, 3, 0, 0, 0.76, Inclusion::AfterThree)]
    #[case::one_commit(PatternEvidence::History, 1, 0, 0, 0.6, Inclusion::Watched)]
    #[case::two_commits(PatternEvidence::History, 2, 0, 0, 0.6444, Inclusion::Watched)]
    #[case::three_commits(PatternEvidence::History, 3, 0, 0, 0.68, Inclusion::AfterThree)]
    #[case::many_commits(PatternEvidence::History, 1000, 0, 0, 0.9, Inclusion::Now)]
    #[case::many_commits_and_failures(PatternEvidence::History, 1000, 0, 20, 0.2571, Inclusion::No)]
    #[case::one_commit_and_success(PatternEvidence::History, 1, 4, 0, 0.8667, Inclusion::Now)]
    fn evidence_and_outcomes_make_confidence(
        #[case] evidence: PatternEvidence,
        #[case] frequency: u32,
        #[case] successes: u32,
        #[case] failures: u32,
        #[case] confidence: f64,
        #[case] inclusion: Inclusion,
    ) {
        let standing = assess_pattern(&with(evidence, frequency, successes, failures), time_at_day(0));
        assert!((standing.confidence - confidence).abs() < 1e-4, "{standing:?}");
        assert_eq!(standing.inclusion, inclusion, "{standing:?}");
    }

    #[test]
    fn three_fixes_that_came_to_nothing_weigh_as_much_as_a_dismissal() {
        let assess = |failures: u32, setbacks: u32| {
            let pattern = Pattern { setbacks, ..with(PatternEvidence::Curated, 0, 0, failures) };
            assess_pattern(&pattern, time_at_day(0))
        };
        let [none, one, three, dismissed] = [(0, 0), (0, 1), (0, 3), (1, 0)].map(|(f, s)| assess(f, s).confidence);
        assert!(none > one && one > dismissed, "{none} {one} {dismissed}");
        assert!((three - dismissed).abs() < 1e-9, "{three} {dismissed}");
        assert_eq!(assess(0, 3).success_rate, None, "they are no outcome of a finding");
    }

    #[test]
    fn what_happened_here_outweighs_what_others_say() {
        let mut one = with(PatternEvidence::Addressed, 3, 0, 4);
        one.counts.insert("m_2".to_owned(), PatternCount { frequency: 3, successes: 100_000, failures: 0 });
        let shouted = assess_pattern(&one, time_at_day(0));
        assert_eq!(shouted.inclusion, Inclusion::AfterThree, "{shouted:?}");
        one.here.failures = 8;
        one.counts.insert("m_1".to_owned(), one.here);
        assert!(
            !assess_pattern(&one, time_at_day(0)).inclusion.is_used(),
            "{:?}",
            assess_pattern(&one, time_at_day(0))
        );
    }

    /// Bounds computed independently of this code.
    #[rstest]
    #[case(0, 0, None, None)]
    #[case(1, 0, Some(1.0), Some(0.206_549))]
    #[case(8, 2, Some(0.8), Some(0.490_162))]
    #[case(0, 4, Some(0.0), Some(0.0))]
    fn few_outcomes_prove_little(
        #[case] successes: u32,
        #[case] failures: u32,
        #[case] rate: Option<f64>,
        #[case] bound: Option<f64>,
    ) {
        let standing = assess_pattern(&with(PatternEvidence::Applied, 1, successes, failures), time_at_day(0));
        assert_eq!(standing.success_rate, rate);
        assert_eq!(standing.at_least.map(|x| (x * 1e6).round()), bound.map(|x| (x * 1e6).round()));
    }

    #[rstest]
    #[case::now(0, 1.0)]
    #[case::a_half_life(180, 0.5)]
    #[case::two(360, 0.25)]
    #[case::from_the_future(-30, 1.0)]
    fn what_is_old_counts_less(#[case] days: i64, #[case] expected: f64) {
        let mut one = sample_pattern("python", "a", "b");
        one.last_seen = time_at_day(0);
        assert!((assess_pattern(&one, time_at_day(days)).recency - expected).abs() < 1e-9);
        one.last_seen = time_at_day(-10_000);
        one.last_matched = Some(time_at_day(0));
        assert!((assess_pattern(&one, time_at_day(days)).recency - expected).abs() < 1e-9);
    }

    #[test]
    fn one_change_comes_once_however_much_is_told_of_it() {
        let of = |broken: &str, fixed: &str| Pattern {
            counts: [("m_1".to_owned(), PatternCount { frequency: 9, ..PatternCount::default() })].into(),
            ..sample_pattern("python", broken, fixed)
        };
        let all = [
            of("VARIABLE == None", "VARIABLE is None"),
            of(
                "if FUNCTION_NAME ( VARIABLE ) and VARIABLE_2 == None : BODY",
                "if FUNCTION_NAME ( VARIABLE ) and VARIABLE_2 is None : BODY",
            ),
            of("VARIABLE == None", "VARIABLE is not None"),
            of("return VARIABLE == None", "return VARIABLE == False"),
            of("if VARIABLE != None : BODY", "if VARIABLE is not None : BODY"),
            // Digits of a kept token have another meaning.
            of("VARIABLE == f64 :: NAN", "VARIABLE . is_nan ( )"),
            of("VARIABLE == f32 :: NAN", "VARIABLE . is_nan ( )"),
        ];
        let first = select_top(&all, |_| 1.0, time_at_day(0), 10);
        let forms: std::collections::BTreeSet<&str> =
            first.iter().map(|ranked| ranked.pattern.fixed.as_str()).collect();
        assert_eq!(first.len(), 6, "{forms:?}");
        assert!(forms.contains("VARIABLE is not None") && forms.contains("return VARIABLE == False"), "{forms:?}");
    }

    #[test]
    fn the_best_come_first_and_one_of_a_group() {
        let mut often = with(PatternEvidence::Addressed, 50, 10, 0);
        often.id = "k_00000000000000a1".parse().expect("an id");
        let mut similar = with(PatternEvidence::Addressed, 5, 0, 0);
        (similar.id, similar.group) = ("k_00000000000000a2".parse().expect("an id"), Some(often.id.clone()));
        let mut rare = with(PatternEvidence::Addressed, 5, 0, 0);
        rare.id = "k_00000000000000a3".parse().expect("an id");
        let mut muted = with(PatternEvidence::Addressed, 90, 0, 0);
        (muted.id, muted.muted) = ("k_00000000000000a4".parse().expect("an id"), true);
        let watched = with(PatternEvidence::History, 1, 0, 0);
        (rare.broken, rare.fixed) = ("raise VARIABLE".to_owned(), "return VARIABLE".to_owned());
        let all = [watched, muted, rare, similar, often];
        let ids = |relevance: &dyn Fn(&Pattern) -> f64, n| -> Vec<String> {
            select_top(&all, relevance, time_at_day(0), n)
                .iter()
                .map(|ranked| ranked.pattern.id.as_str()[16..].to_owned())
                .collect()
        };
        assert_eq!(ids(&|_| 1.0, 10), ["a1", "a3"]);
        assert_eq!(ids(&|_| 1.0, 1), ["a1"]);
        assert_eq!(ids(&|one| if one.id.as_str().ends_with("a1") { 0.01 } else { 1.0 }, 10), ["a2", "a3"]);
        assert_eq!(ids(&|_| f64::NAN, 10), [""; 0]);
    }

    #[test]
    fn the_least_useful_go_first_and_mutes_last() {
        let mut all: Vec<Pattern> = (0..6).map(|n| with(PatternEvidence::History, n + 1, 0, 0)).collect();
        for (n, one) in all.iter_mut().enumerate() {
            one.id = format!("k_00000000000000b{n}").parse().expect("an id");
        }
        all[0].muted = true;
        let gone: Vec<&str> =
            select_evicted(&all, time_at_day(0), 3).iter().map(|one| &one.id.as_str()[16..]).collect();
        assert_eq!(gone, ["b3", "b2", "b1"]);
        assert!(select_evicted(&all, time_at_day(0), 6).is_empty());
    }

    proptest! {
        #[test]
        fn every_figure_is_one(frequency: u32, successes: u32, failures: u32, seen in any::<i32>(), now in any::<i32>()) {
            for &evidence in PatternEvidence::ALL {
                let mut one = with(evidence, frequency, successes, failures);
                one.last_seen = Time::from_second(i64::from(seen)).expect("a moment");
                let now = Time::from_second(i64::from(now)).expect("a moment");
                let standing = assess_pattern(&one, now);
                let at_least = standing.at_least.unwrap_or(0.0);
                for figure in [standing.confidence, standing.recency, at_least, standing.success_rate.unwrap_or(0.0)] {
                    prop_assert!((0.0..=1.0).contains(&figure), "{standing:?}");
                }
                prop_assert!(at_least <= standing.success_rate.unwrap_or(0.0) + 1e-12);
                prop_assert!(usefulness(&one, now).is_finite() && usefulness(&one, now) > 0.0);
            }
        }
    }
}
