use super::language_update::MAX_MONTHS;
use super::*;
use crate::domain::Kind;
use crate::knowledge::form::Form;
use crate::knowledge::kind_tallies::{FindingVerdict, KindTally};
use crate::knowledge::knowledge_file::MAX_DIGESTS;
use crate::knowledge::pattern::{
    EditKind, MAX_ORIGINS, MonthlyOutcomes, PatternCount, PatternEvidence, PatternOrigin, PatternStance,
};
use crate::knowledge::test_support::{sample_pattern, time_at_day};

const PYTHON: Language = Language::Python;

fn cache() -> (tempfile::TempDir, KnowledgeCache) {
    let home = tempfile::tempdir().expect("a folder");
    let cache = KnowledgeCache::open(home.path().join("knowledge_cache"));
    (home, cache)
}

fn form(text: &str) -> Form {
    text.parse().expect("a form")
}

/// Returns a mistake that is not a curated pattern.
fn seen(source: &str) -> PatternObservation {
    PatternObservation {
        language: PYTHON,
        stance: PatternStance::Mistake,
        broken: form("if VARIABLE < NUMBER : BODY"),
        fixed: form("if VARIABLE <= NUMBER : BODY"),
        edit: EditKind::WrongOperator,
        kind: Kind::Correctness,
        evidence: PatternEvidence::History,
        source: source.to_owned(),
        at: time_at_day(-1),
    }
}

fn learned(cache: &KnowledgeCache) -> Vec<Pattern> {
    let mut patterns = cache.patterns(PYTHON).expect("patterns");
    patterns.retain(|pattern| pattern.origin != PatternOrigin::Base);
    patterns
}

fn the_one(cache: &KnowledgeCache) -> Pattern {
    let patterns = learned(cache);
    assert_eq!(patterns.len(), 1, "{patterns:#?}");
    patterns[0].clone()
}

fn happened_to(pattern: &PatternId, outcome: PatternOutcomeKind, source: String) -> PatternOutcome {
    PatternOutcome { language: PYTHON, pattern: pattern.clone(), outcome, source }
}

fn from_elsewhere(broken: &str, origin: &str, frequency: u32) -> (Language, Pattern) {
    let mut one = sample_pattern("python", broken, "VARIABLE is VARIABLE_2");
    one.counts = BTreeMap::from([(origin.to_owned(), PatternCount { frequency, ..PatternCount::default() })]);
    one.origin = PatternOrigin::Imported;
    (PYTHON, one)
}

#[test]
fn what_was_seen_counts_once_a_source() {
    let (_home, cache) = cache();
    let first = cache.learn(&[seen("commit 1"), seen("commit 1"), seen("commit 2")], time_at_day(0)).expect("learned");
    assert_eq!(first, LearningSummary { new: 1, again: 1, counted: 1, ..LearningSummary::default() });
    let again = KnowledgeCache::open(&cache.folder)
        .learn(&[seen("commit 2"), seen("commit 3")], time_at_day(1))
        .expect("learned");
    assert_eq!(again, LearningSummary { again: 1, counted: 1, ..LearningSummary::default() });
    let one = the_one(&cache);
    assert_eq!(
        (one.total_count().frequency, one.origin, one.evidence),
        (3, PatternOrigin::Learned, PatternEvidence::History)
    );
    assert_eq!((one.first_seen, one.last_seen), (time_at_day(-1), time_at_day(-1)));
    assert!(one.counts.keys().all(|origin| is_origin(origin)), "{:?}", one.counts);
}

#[test]
fn what_the_gate_refuses_is_not_written_anywhere() {
    let (_home, cache) = cache();
    let mut of_somebody = seen("commit 1");
    of_somebody.broken = form("if secret_name < NUMBER : BODY");
    let empty = PatternObservation { broken: Form::default(), ..seen("commit 1") };
    let learned = cache.learn(&[of_somebody, empty], time_at_day(0)).expect("learned");
    assert_eq!(learned, LearningSummary { refused: 2, ..LearningSummary::default() });
    assert!(!cache.folder.exists(), "nothing was made");
}

#[test]
fn better_evidence_and_other_kinds_are_kept() {
    let (_home, cache) = cache();
    let addressed = PatternObservation {
        evidence: PatternEvidence::Addressed,
        kind: Kind::Security,
        at: time_at_day(-5),
        ..seen("finding 1")
    };
    cache.learn(&[seen("commit 1"), addressed, seen("commit 2")], time_at_day(0)).expect("learned");
    let one = the_one(&cache);
    assert_eq!(
        (one.evidence, one.kind, one.related),
        (PatternEvidence::Addressed, Kind::Correctness, vec![Kind::Security])
    );
    assert_eq!((one.first_seen, one.last_seen), (time_at_day(-5), time_at_day(-1)));
}

#[test]
fn a_commit_of_a_clock_that_goes_wrong_is_not_recent_for_ever() {
    let (_home, cache) = cache();
    cache
        .learn(&[PatternObservation { at: time_at_day(30_000), ..seen("commit 1") }], time_at_day(0))
        .expect("learned");
    let later = PatternObservation { at: time_at_day(30_000), ..seen("commit 2") };
    cache.learn(&[later], time_at_day(1)).expect("learned");
    let one = the_one(&cache);
    assert_eq!((one.first_seen, one.last_seen), (time_at_day(0), time_at_day(1)));
}

#[test]
fn what_was_taken_out_and_what_was_dismissed_are_two_patterns_of_a_form() {
    let (_home, cache) = cache();
    let gone = PatternObservation { fixed: Form::default(), edit: EditKind::NeedlessStatement, ..seen("commit 1") };
    let dismissed =
        PatternObservation { stance: PatternStance::FalseAlarm, source: "finding 1".to_owned(), ..gone.clone() };
    assert_eq!(cache.learn(&[gone, dismissed], time_at_day(0)).expect("learned").new, 2);
    let patterns = learned(&cache);
    assert!(
        patterns.iter().all(|one| one.total_count() == PatternCount { frequency: 1, ..PatternCount::default() }),
        "{patterns:#?}"
    );
    assert_ne!(patterns[0].stance, patterns[1].stance);
}

#[test]
fn outcomes_count_once_and_by_month() {
    let (_home, cache) = cache();
    cache.learn(&[seen("commit 1")], time_at_day(0)).expect("learned");
    let happened = |outcome, source: &str| happened_to(&the_one(&cache).id, outcome, source.to_owned());
    let all = [
        happened(PatternOutcomeKind::Success, "f 1"),
        happened(PatternOutcomeKind::Success, "f 1"),
        happened(PatternOutcomeKind::Failure, "f 2"),
    ];
    assert_eq!(cache.record_outcomes(&all, time_at_day(0)).expect("recorded"), 2);
    assert_eq!(
        cache.record_outcomes(&[happened(PatternOutcomeKind::Success, "f 3")], time_at_day(40)).expect("recorded"),
        1
    );
    let unknown = PatternOutcome {
        pattern: PatternId::from_forms("python", "a", "b"),
        ..happened(PatternOutcomeKind::Success, "f 4")
    };
    assert_eq!(cache.record_outcomes(&[unknown], time_at_day(40)).expect("recorded"), 0);
    let one = the_one(&cache);
    assert_eq!(one.total_count(), PatternCount { frequency: 1, successes: 2, failures: 1 });
    let months: Vec<_> = one.months.into_iter().collect();
    let month = |successes, failures| MonthlyOutcomes { successes, failures };
    assert_eq!(months, [("2026-11".to_owned(), month(1, 1)), ("2026-12".to_owned(), month(1, 0))]);
}

#[test]
fn setbacks_count_once_per_fix_and_are_logged_as_such() {
    let (_home, cache) = cache();
    cache.learn(&[seen("commit 1")], time_at_day(0)).expect("learned");
    let set_back = |fix: &str| happened_to(&the_one(&cache).id, PatternOutcomeKind::Setback, fix.to_owned());
    let all = [set_back("fx 1"), set_back("fx 1"), set_back("fx 2")];
    assert_eq!(cache.record_outcomes(&all, time_at_day(0)).expect("recorded"), 2);
    let one = the_one(&cache);
    assert_eq!((one.setbacks, one.months.len()), (2, 0));
    assert_eq!(one.total_count(), PatternCount { frequency: 1, ..PatternCount::default() });
    let log = fs::read_to_string(cache.folder.join("metrics.jsonl")).expect("a log");
    let last: serde_json::Value = serde_json::from_str(log.lines().last().expect("an event")).expect("JSON");
    assert_eq!((&last["event"], &last["count"]), (&"set_back".into(), &2.into()));
}

#[test]
fn months_are_kept_for_two_years() {
    let (_home, cache) = cache();
    cache.learn(&[seen("commit 1")], time_at_day(0)).expect("learned");
    let id = the_one(&cache).id;
    for month in 0..30 {
        let source = format!("f {month}");
        let happened = happened_to(&id, PatternOutcomeKind::Success, source);
        cache.record_outcomes(&[happened], time_at_day(month * 31)).expect("recorded");
    }
    let one = the_one(&cache);
    assert_eq!((one.months.len(), one.total_count().successes), (MAX_MONTHS, 30));
    assert!(!one.months.contains_key("2026-11"));
}

#[test]
fn what_is_forgotten_stays_so() {
    let (_home, cache) = cache();
    cache.learn(&[seen("commit 1")], time_at_day(0)).expect("learned");
    let one = the_one(&cache);
    assert_eq!(cache.forget(PYTHON, std::slice::from_ref(&one.id), time_at_day(0)).expect("forgotten"), 1);
    assert_eq!(cache.forget(PYTHON, std::slice::from_ref(&one.id), time_at_day(1)).expect("forgotten before"), 0);
    let learned_again = cache.learn(&[seen("commit 2")], time_at_day(1)).expect("learned");
    assert_eq!(learned_again, LearningSummary { forgotten: 1, ..LearningSummary::default() });
    let merged = cache.merge(&[(PYTHON, one.clone())], time_at_day(1)).expect("merged");
    assert_eq!(merged, MergeSummary { forgotten: 1, ..MergeSummary::default() });
    assert!(learned(&cache).is_empty());
    assert_eq!(cache.load_language(PYTHON).expect("tombstones").forgotten, BTreeMap::from([(one.id, time_at_day(0))]));
}

#[test]
fn what_is_not_known_is_not_forgotten() {
    let (_home, cache) = cache();
    cache.learn(&[seen("commit 1")], time_at_day(0)).expect("learned");
    let ids = [the_one(&cache).id, PatternId::from_forms("python", "a", "b")];
    assert!(matches!(cache.forget(PYTHON, &ids, time_at_day(0)), Err(KnowledgeError::NoPattern { .. })));
    the_one(&cache);
}

#[test]
fn the_base_is_counted_muted_and_forgotten_here() {
    let (_home, cache) = cache();
    let base = &builtin_patterns::patterns(PYTHON)[0];
    let own =
        |cache: &KnowledgeCache| cache.patterns(PYTHON).expect("patterns").into_iter().find(|one| one.id == base.id);
    assert_eq!(own(&cache).as_ref().map(Pattern::total_count), Some(base.total_count()));
    let (broken, fixed) = base.parse_forms().expect("forms");
    let observation = PatternObservation { broken, fixed, edit: base.edit, kind: base.kind, ..seen("commit 1") };
    cache.learn(&[observation], time_at_day(0)).expect("learned");
    let one = own(&cache).expect("it is there");
    assert_eq!(
        (one.total_count().frequency, one.origin, one.evidence),
        (1, PatternOrigin::Base, PatternEvidence::Curated)
    );
    assert_eq!((&one.description, one.first_seen), (&base.description, time_at_day(-1)));
    assert_eq!(cache.mute(PYTHON, std::slice::from_ref(&base.id), MuteAction::Mute, time_at_day(0)).expect("muted"), 1);
    assert_eq!(cache.mute(PYTHON, std::slice::from_ref(&base.id), MuteAction::Mute, time_at_day(0)).expect("is so"), 0);
    assert!(own(&cache).is_some_and(|one| one.muted));
    assert_eq!(
        cache.mute(PYTHON, std::slice::from_ref(&base.id), MuteAction::Unmute, time_at_day(0)).expect("unmuted"),
        1
    );
    cache.record_matches(PYTHON, std::slice::from_ref(&base.id), time_at_day(3)).expect("matched");
    assert!(own(&cache).is_some_and(|one| !one.muted && one.last_matched == Some(time_at_day(3))));
    cache.forget(PYTHON, std::slice::from_ref(&base.id), time_at_day(0)).expect("forgotten");
    assert_eq!(own(&cache), None);
}

#[test]
fn what_happened_here_to_a_pattern_of_the_base_counts_however_many_others_counted() {
    let (_home, cache) = cache();
    let base = &builtin_patterns::patterns(PYTHON)[0];
    let others =
        (0..MAX_ORIGINS).map(|n| (format!("m_{n:026}"), PatternCount { frequency: 2, ..PatternCount::default() }));
    cache.merge(&[(PYTHON, Pattern { counts: others.collect(), ..base.clone() })], time_at_day(0)).expect("merged");
    let dismissed = happened_to(&base.id, PatternOutcomeKind::Failure, "f 1".to_owned());
    assert_eq!(cache.record_outcomes(&[dismissed], time_at_day(0)).expect("recorded"), 1);
    let patterns = cache.patterns(PYTHON).expect("patterns");
    let one = patterns.iter().find(|one| one.id == base.id).expect("it is there");
    assert_eq!((one.here.failures, one.total_count().failures), (1, 1));
    assert!(one.counts.contains_key(builtin_patterns::ORIGIN));
}

#[test]
fn what_says_nothing_more_than_the_base_is_not_kept() {
    let (_home, cache) = cache();
    let id = std::slice::from_ref(&builtin_patterns::patterns(PYTHON)[0].id);
    cache.mute(PYTHON, id, MuteAction::Mute, time_at_day(0)).expect("muted");
    cache.mute(PYTHON, id, MuteAction::Unmute, time_at_day(0)).expect("unmuted");
    assert_eq!(cache.read(PYTHON).expect("a document").patterns.len(), 0);
}

#[test]
fn merging_is_the_larger_of_each_origin() {
    let (_home, cache) = cache();
    let (a, b) = ("m_01jd3z8q6m7s5v2k4t9xwb1c0a", "m_01jd3z8q6m7s5v2k4t9xwb1c0b");
    let merge = |origin, frequency| {
        let from = from_elsewhere("VARIABLE == VARIABLE_2", origin, frequency);
        cache.merge(&[from], time_at_day(0)).expect("merged")
    };
    assert_eq!(merge(a, 3), MergeSummary { new: 1, ..MergeSummary::default() });
    assert_eq!(merge(a, 3), MergeSummary { unchanged: 1, ..MergeSummary::default() });
    assert_eq!(merge(a, 2), MergeSummary { unchanged: 1, ..MergeSummary::default() });
    assert_eq!(merge(b, 4), MergeSummary { more: 1, ..MergeSummary::default() });
    assert_eq!((the_one(&cache).total_count().frequency, the_one(&cache).origin), (4, PatternOrigin::Imported));
}

#[test]
fn a_language_has_a_thousand_patterns_at_most() {
    let (_home, cache) = cache();
    // The kinds of arguments differ by position, so all forms differ.
    let broken = |n: usize| {
        let bits: Vec<&str> = (0..11).map(|bit| if n >> bit & 1 == 0 { "NUMBER" } else { "STRING" }).collect();
        form(&format!("FUNCTION_NAME ( {} )", bits.join(" , ")))
    };
    let all: Vec<PatternObservation> = (0..MAX_PATTERNS_PER_LANGUAGE + 50)
        .map(|n| PatternObservation { broken: broken(n), fixed: form("VARIABLE"), source: n.to_string(), ..seen("") })
        .collect();
    let often = |source: &str| PatternObservation { source: source.to_owned(), ..all[0].clone() };
    let mut observations = all.clone();
    observations.extend([often("x"), often("y"), often("z")]);
    let result = cache.learn(&observations, time_at_day(0)).expect("learned");
    assert_eq!(
        (result.new, result.evicted),
        (MAX_PATTERNS_PER_LANGUAGE + 50, 50 + builtin_patterns::patterns(PYTHON).len())
    );
    assert_eq!(cache.patterns(PYTHON).expect("patterns").len(), MAX_PATTERNS_PER_LANGUAGE);
    let kept = learned(&cache);
    assert!(kept.iter().any(|one| one.total_count().frequency == 4), "what was seen often stays");
    // The log has a line for each stored pattern and none for evicted ones.
    let lines = fs::read_to_string(cache.folder.join("metrics.jsonl")).expect("figures");
    assert!(
        lines.lines().count() <= MAX_PATTERNS_PER_LANGUAGE && !lines.contains("evicted"),
        "{}",
        lines.lines().count()
    );
    // Observations counted before do not come back as new ones.
    assert_eq!(cache.learn(&all, time_at_day(0)).expect("learned").counted, all.len());
}

#[test]
fn no_import_takes_everything_out() {
    let (_home, cache) = cache();
    cache.learn(&[seen("commit 1")], time_at_day(0)).expect("learned");
    let own = the_one(&cache);
    let loud = |n: usize| {
        let bits: Vec<&str> = (0..11).map(|bit| if n >> bit & 1 == 0 { "NUMBER" } else { "STRING" }).collect();
        let (language, mut one) =
            from_elsewhere(&format!("VARIABLE == [ {} ]", bits.join(" , ")), "m_01jd3z8q6m7s5v2k4t9xwb1c0a", 100_000);
        one.counts.values_mut().for_each(|count| count.successes = 100_000);
        (language, one)
    };
    let flood: Vec<_> = (0..MAX_PATTERNS_PER_LANGUAGE + 100).map(loud).collect();
    assert!(cache.merge(&flood, time_at_day(0)).expect("merged").evicted > 100);
    let kept = cache.patterns(PYTHON).expect("patterns");
    assert_eq!(kept.len(), MAX_PATTERNS_PER_LANGUAGE);
    assert!(kept.iter().any(|one| one.id == own.id), "what was seen here stays");
}

#[test]
fn nobody_speaks_for_this_machine() {
    let (_home, cache) = cache();
    cache.learn(&[seen("commit 1")], time_at_day(0)).expect("learned");
    let own = the_one(&cache);
    let mut claimed = own.clone();
    claimed.counts.values_mut().for_each(|count| count.successes = 90);
    let forged = from_elsewhere("VARIABLE == VARIABLE_2", &cache.origin().expect("read").expect("an origin"), 90);
    let merged = cache.merge(&[(PYTHON, claimed), forged], time_at_day(0)).expect("merged");
    assert_eq!(merged, MergeSummary { unchanged: 2, ..MergeSummary::default() });
    assert_eq!(the_one(&cache), own);
}

#[test]
fn a_history_that_is_too_long_to_be_told_apart_counts_up_to_there() {
    let mut document = KnowledgeFile::default();
    assert!((0..MAX_DIGESTS as u64 - 1).all(|digest| document.remember_digest(digest)));
    let (origin, now) = ("m_01jd3z8q6m7s5v2k4t9xwb1c0a", time_at_day(0));
    let mut change = LanguageUpdate { document, language: PYTHON, origin, now, lines: Vec::new(), is_changed: false };
    let mut learned = LearningSummary::default();
    for source in ["commit 1", "commit 2", "commit 3", "commit 1"] {
        change.learn(&seen(source), &mut learned);
    }
    assert_eq!(learned, LearningSummary { new: 1, too_much: 2, counted: 1, ..LearningSummary::default() });
    // Decisions of this machine count nevertheless.
    change.learn(&PatternObservation { evidence: PatternEvidence::Addressed, ..seen("f 1") }, &mut learned);
    assert_eq!(learned.again, 1);
}

/// Returns a dismissal.
fn dismissed(kind: Kind, source: &str) -> PatternObservation {
    PatternObservation {
        stance: PatternStance::FalseAlarm,
        broken: form("VARIABLE = NUMBER"),
        fixed: Form::default(),
        edit: EditKind::Other,
        kind,
        evidence: PatternEvidence::Dismissed,
        ..seen(source)
    }
}

fn judged(kind: Kind, verdict: FindingVerdict, source: u32) -> KindVerdict {
    KindVerdict {
        language: PYTHON,
        kind,
        verdict,
        file: format!("repo/{}.py", source % 3),
        source: format!("f {source}"),
    }
}

fn tally(cache: &KnowledgeCache, kind: Kind) -> Option<KindTally> {
    cache.load_language(PYTHON).expect("read").kinds.get(&kind).cloned()
}

#[test]
fn verdicts_count_once_by_kind_and_those_that_may_be_grave_do_not() {
    use FindingVerdict::{Addressed, Dismissed};
    let (_home, cache) = cache();
    let grave = [judged(Kind::HardcodedConfiguration, Dismissed, 1), judged(Kind::Correctness, Addressed, 2)];
    assert_eq!(cache.record_verdicts(&grave, time_at_day(0)).expect("refused"), 0);
    assert!(!cache.folder.exists(), "nothing was made");

    let all: Vec<KindVerdict> = [1, 2, 2, 3, 4].map(|source| judged(Kind::LongMethod, Dismissed, source)).into();
    assert_eq!(cache.record_verdicts(&all, time_at_day(0)).expect("counted"), 4);
    assert_eq!(KnowledgeCache::open(&cache.folder).record_verdicts(&all, time_at_day(1)).expect("counted"), 0);
    let lowers = || tally(&cache, Kind::LongMethod).and_then(|tally| tally.lowering_dismissals());
    assert_eq!(lowers(), None);
    cache.record_verdicts(&[judged(Kind::LongMethod, Dismissed, 5)], time_at_day(1)).expect("counted");
    assert_eq!(lowers(), Some(5));
    let text = fs::read_to_string(cache.path(PYTHON)).expect("a file");
    assert!(!text.contains("repo") && !text.contains("f 1"), "{text}");

    assert!(cache.mute_kind(PYTHON, Kind::LongMethod, MuteAction::Mute, time_at_day(1)).expect("muted"));
    assert!(!cache.mute_kind(PYTHON, Kind::LongMethod, MuteAction::Mute, time_at_day(1)).expect("muted before"));
    assert_eq!(lowers(), None);
    cache.mute_kind(PYTHON, Kind::LongMethod, MuteAction::Unmute, time_at_day(1)).expect("unmuted");
    assert_eq!(lowers(), Some(5));
    // One correct finding ends the lowering, until the kind is forgotten.
    cache.record_verdicts(&[judged(Kind::LongMethod, Addressed, 6)], time_at_day(2)).expect("counted");
    assert_eq!(lowers(), None);
    assert!(cache.forget_kind(PYTHON, Kind::LongMethod, time_at_day(3)).expect("forgotten"));
    assert!(!cache.forget_kind(PYTHON, Kind::LongMethod, time_at_day(3)).expect("forgotten before"));
    assert_eq!(cache.record_verdicts(&all, time_at_day(3)).expect("counted before"), 0);
    assert_eq!(tally(&cache, Kind::LongMethod), None);
    assert!(!cache.mute_kind(PYTHON, Kind::LongMethod, MuteAction::Mute, time_at_day(3)).expect("not there"));
}

#[test]
fn a_false_alarm_is_about_one_kind_and_can_fail() {
    let (_home, cache) = cache();
    let all = ["f 1", "f 2", "f 2"].map(|source| dismissed(Kind::MagicNumbers, source));
    cache.learn(&all, time_at_day(0)).expect("learned");
    let one = the_one(&cache);
    let others: Vec<PatternObservation> = (3..6).map(|n| dismissed(Kind::DeadCode, &format!("f {n}"))).collect();
    let result = cache.learn(&others, time_at_day(0)).expect("learned");
    assert_eq!(result, LearningSummary { new: 1, again: 2, ..LearningSummary::default() });
    let of_kind = |kind| learned(&cache).into_iter().find(|one| one.kind == kind).expect("one of each kind");
    assert_eq!(of_kind(Kind::MagicNumbers), one, "neither says anything of the other");
    assert_eq!(one.total_count(), PatternCount { frequency: 2, successes: 1, failures: 0 });
    assert_eq!(of_kind(Kind::DeadCode).total_count(), PatternCount { frequency: 3, successes: 2, failures: 0 });
    // Counts of another kind from elsewhere change nothing either.
    let mut foreign = of_kind(Kind::DeadCode);
    foreign.counts = BTreeMap::from([(
        "m_01jd3z8q6m7s5v2k4t9xwb1c0a".to_owned(),
        PatternCount { frequency: 9, ..one.total_count() },
    )]);
    assert_eq!(cache.merge(&[(PYTHON, foreign)], time_at_day(0)).expect("merged").more, 1);
    assert_eq!(of_kind(Kind::MagicNumbers), one);

    let addressed = happened_to(&one.id, PatternOutcomeKind::Failure, "f 9".to_owned());
    assert_eq!(cache.record_outcomes(&[addressed], time_at_day(0)).expect("recorded"), 1);
    assert_eq!(of_kind(Kind::MagicNumbers).total_count().failures, 1);
}

#[test]
fn evidence_grows_of_what_was_counted() {
    let (_home, cache) = cache();
    let of = |evidence| PatternObservation { evidence, ..seen("finding 1") };
    cache.learn(&[of(PatternEvidence::Applied)], time_at_day(0)).expect("learned");
    assert_eq!(cache.learn(&[of(PatternEvidence::Addressed)], time_at_day(1)).expect("learned").counted, 1);
    let one = the_one(&cache);
    assert_eq!((one.evidence, one.total_count().frequency), (PatternEvidence::Addressed, 1));
}

#[test]
fn a_damaged_file_is_set_aside_and_said_once() {
    let (_home, cache) = cache();
    cache.learn(&[seen("commit 1")], time_at_day(0)).expect("learned");
    for (n, damage) in ["", "{\"version\":1,\"patterns\":[", "\u{0}"].into_iter().enumerate() {
        fs::write(cache.path(PYTHON), damage).expect("damaged");
        // A worker that reads the file first cannot tell a person.
        assert!(learned(&KnowledgeCache::open(&cache.folder)).is_empty());
        assert_eq!(cache.take_notices().len(), 1, "{damage:?}");
        assert!(learned(&cache).is_empty() && cache.take_notices().is_empty());
        let name = if n == 0 { ".damaged".to_owned() } else { format!(".damaged-{}", n + 1) };
        let aside = cache.folder.join(format!("python{PATTERN_FILE_SUFFIX}{name}"));
        assert_eq!(fs::read_to_string(aside).expect("it is kept"), damage);
        cache.learn(&[seen(&format!("commit {n}"))], time_at_day(0)).expect("learned anew");
        the_one(&cache);
    }
}

#[test]
fn a_newer_file_is_left_alone() {
    let (_home, cache) = cache();
    files::make_folder(&cache.folder).expect("a folder");
    let newer = "{\"version\":2,\"knowledge\":{}}";
    fs::write(cache.path(PYTHON), newer).expect("written");
    for error in [cache.patterns(PYTHON).err(), cache.learn(&[seen("commit 1")], time_at_day(0)).err()] {
        assert!(matches!(error, Some(KnowledgeError::Store(StoreError::Newer { found: 2, .. }))), "{error:?}");
    }
    assert_eq!(fs::read_to_string(cache.path(PYTHON)).expect("it is there"), newer);
}

#[test]
fn wiping_leaves_nothing() {
    let (_home, cache) = cache();
    assert_eq!(cache.wipe().expect("nothing to wipe"), 0);
    cache.learn(&[seen("commit 1")], time_at_day(0)).expect("learned");
    let one = the_one(&cache);
    cache.forget(PYTHON, std::slice::from_ref(&one.id), time_at_day(0)).expect("forgotten");
    fs::write(cache.path(Language::Go), "damaged").expect("written");
    cache.patterns(Language::Go).expect("set aside");
    fs::write(cache.folder.join(".tmp-left"), "by a kill").expect("written");
    fs::write(cache.folder.join("mine.txt"), "the user's").expect("written");
    assert!(cache.wipe().expect("wiped") >= 5);
    let mut left: Vec<_> = fs::read_dir(&cache.folder)
        .expect("the folder")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    left.sort();
    assert_eq!(left, ["lock", "mine.txt"]);
    assert_eq!(fs::metadata(cache.folder.join("lock")).expect("a file").len(), 0);
    assert_eq!(
        cache.learn(&[seen("commit 1")], time_at_day(0)).expect("learned").new,
        1,
        "tombstones and digests are gone"
    );
}

#[cfg(unix)]
#[test]
fn nobody_else_can_read_it() {
    use std::os::unix::fs::PermissionsExt;
    let (_home, cache) = cache();
    cache.learn(&[seen("commit 1")], time_at_day(0)).expect("learned");
    let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!(mode(&cache.folder), 0o700);
    for entry in fs::read_dir(&cache.folder).expect("the folder") {
        let path = entry.expect("an entry").path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
}

#[test]
fn threads_that_learn_at_once_lose_nothing() {
    let (_home, cache) = cache();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let cache = &cache;
            scope.spawn(move || {
                for n in 0..10 {
                    cache.learn(&[seen(&format!("commit {thread} {n}"))], time_at_day(0)).expect("learned");
                }
            });
        }
    });
    assert_eq!(the_one(&cache).total_count().frequency, 40);
}
