//! Patterns held against code: the form of every site is looked up by its digest, so a thousand patterns cost what one does.
//!
//! Invariants: a match is a form that is the pattern's, token by token; who is lied to by a file made for it (equal
//! digests) loses time and gets no false match. Texts are the pattern's own, which revdeck made; none of the code gets into
//! them. Nothing here reads or writes a file.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::abstraction::{LineForms, digest_form, is_informative, visit_sites};
use super::form::{Form, FormToken};
use super::kind_tallies::KindTallies;
use super::pattern::{EditKind, Pattern, PatternEvidence, PatternOrigin, PatternStance};
use super::stdlib_names;
use crate::domain::{Confidence, Kind, LineRange, PatternId};
use crate::reviewers::analyzer::language::Language;
use crate::reviewers::analyzer::learned_rules::{DismissalRule, LearnedMatch, LearnedRules};
use crate::reviewers::analyzer::source::ParsedFile;

/// A pattern whose form stands in more places of a file tells nothing about any of them, and none is raised, unless somebody
/// curated it. Own.
const MAX_MATCHES_PER_FILE: usize = 3;
/// From so much confidence on a finding says that it is sure to a medium degree; it is never more than a hint.
const MIN_MEDIUM_CONFIDENCE: f64 = 0.85;

/// A pattern that may be used, and how far it is trusted: who makes the list has decided that.
#[derive(Debug, Clone, PartialEq)]
pub struct TrustedPattern {
    pub pattern: Pattern,
    /// 0 to 1, see [`super::rank`].
    pub confidence: f64,
}

/// A place whose code has the broken form of a pattern.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PatternMatch<'m> {
    pub used: &'m TrustedPattern,
    /// Up to where the site's first block begins.
    pub lines: LineRange,
    /// Of the form.
    pub tokens: usize,
}

/// Patterns by language and by the digest of their broken form.
#[derive(Debug, Default)]
pub struct PatternMatcher {
    known: Vec<(TrustedPattern, Form)>,
    tables: HashMap<&'static str, PatternDigestTable>,
}

/// Numbers of patterns by digest.
#[derive(Debug, Default)]
struct PatternDigestTable {
    mistakes: HashMap<u64, Vec<usize>>,
    false_alarms: HashMap<(Kind, u64), Vec<usize>>,
    /// Kinds that are always dismissed, with how often.
    kinds: HashMap<Kind, u32>,
}

impl PatternMatcher {
    /// Of patterns whose forms are none, and of languages that there are not, nothing matches.
    pub fn new(used: impl IntoIterator<Item = TrustedPattern>) -> Self {
        let mut matcher = Self::default();
        let languages: Vec<&'static str> = super::stdlib_names::languages().collect();
        for used in used {
            let language = languages.iter().find(|name| **name == used.pattern.language);
            let Some((language, (broken, _))) = language.zip(used.pattern.parse_forms()) else { continue };
            let table = matcher.tables.entry(language).or_default();
            let (number, digest) = (matcher.known.len(), digest_form(&broken));
            match used.pattern.stance {
                PatternStance::Mistake => table.mistakes.entry(digest).or_default().push(number),
                PatternStance::FalseAlarm if used.pattern.kind.is_never_lowered() => {}
                // Of its own kind alone: what is dismissed as one thing may be right as another.
                PatternStance::FalseAlarm => {
                    table.false_alarms.entry((used.pattern.kind, digest)).or_default().push(number);
                }
            }
            matcher.known.push((used, broken));
        }
        matcher
    }

    /// With the kinds of a language that are always dismissed.
    #[must_use]
    pub fn with_kinds(mut self, language: Language, kinds: &KindTallies) -> Self {
        let lowered = kinds.iter().filter_map(|(kind, tally)| Some((*kind, tally.lowering_dismissals()?)));
        self.tables.entry(language.name()).or_default().kinds.extend(lowered);
        self
    }

    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// The places of a file, or of these lines of it, that have the broken form of a mistake; in document order.
    pub fn find_matches(&self, source: &ParsedFile<'_>, within: Option<&[LineRange]>) -> Vec<PatternMatch<'_>> {
        let mut found = Vec::new();
        let Some(table) = self.find_table(source).filter(|table| !table.mistakes.is_empty()) else { return found };
        visit_sites(source, within, &mut |site| {
            let Some(numbers) = table.mistakes.get(&site.digest) else { return };
            let form = site.form();
            let those = numbers.iter().filter_map(|number| self.known.get(*number));
            let same = those.filter(|(_, broken)| *broken == form);
            found.extend(same.map(|(used, _)| PatternMatch { used, lines: site.lines, tokens: site.tokens }));
        });
        found
    }

    fn find_table(&self, source: &ParsedFile<'_>) -> Option<&PatternDigestTable> {
        self.tables.get(source.language.name())
    }
}

impl LearnedRules for PatternMatcher {
    fn find_mistakes(&self, source: &ParsedFile<'_>) -> Vec<LearnedMatch> {
        let mut found = self.find_matches(source, None);
        let mut places: BTreeMap<&str, usize> = BTreeMap::new();
        for found in &found {
            *places.entry(found.used.pattern.id.as_str()).or_default() += 1;
        }
        found.retain(|found| {
            let pattern = &found.used.pattern;
            let is_rare =
                places[pattern.id.as_str()] <= MAX_MATCHES_PER_FILE || pattern.evidence == PatternEvidence::Curated;
            is_rare && is_hint_worthy(pattern)
        });
        // The surest first; of equal ones that which says more of the code.
        found.sort_by(|one, other| {
            let (sure, surer) = (one.used.confidence, other.used.confidence);
            let ids = || one.used.pattern.id.as_str().cmp(other.used.pattern.id.as_str());
            surer.total_cmp(&sure).then(other.tokens.cmp(&one.tokens)).then(one.lines.cmp(&other.lines)).then_with(ids)
        });
        // Of no two that are taken the lines overlap: only the last that begins before another ends can do so with it.
        let mut taken: BTreeMap<u32, u32> = BTreeMap::new();
        found.retain(|found| {
            let lines = found.lines;
            let is_free = taken.range(..=lines.end).next_back().is_none_or(|(_, end)| *end < lines.start);
            is_free && taken.insert(lines.start, lines.end).is_none()
        });
        found.into_iter().map(to_lesson).collect()
    }

    fn find_dismissed(&self, source: &ParsedFile<'_>, asked: &[(Kind, LineRange)]) -> Vec<Option<DismissalRule>> {
        let Some(table) = self.find_table(source) else { return vec![None; asked.len()] };
        let of_kind = |(kind, _): &(Kind, LineRange)| table.kinds.get(kind).copied().map(DismissalRule::Kind);
        let mut answers: Vec<Option<DismissalRule>> = asked.iter().map(of_kind).collect();
        let known: HashSet<Kind> = table.false_alarms.keys().map(|(kind, _)| *kind).collect();
        let is_open = |kind: &Kind, answer: &Option<DismissalRule>| answer.is_none() && known.contains(kind);
        let mut those = asked.iter().zip(&mut answers).filter(|((kind, _), answer)| is_open(kind, answer)).peekable();
        if those.peek().is_none() {
            return answers;
        }
        let places = LineForms::new(source);
        for ((kind, lines), answer) in those {
            let Some(form) = places.form_at(*lines) else { continue };
            let numbers = table.false_alarms.get(&(*kind, digest_form(&form))).map_or(&[][..], Vec::as_slice);
            let mut those = numbers.iter().filter_map(|number| self.known.get(*number));
            *answer = those.any(|(_, broken)| *broken == form).then_some(DismissalRule::Shape);
        }
        answers
    }

    fn locate_pattern(&self, pattern: &PatternId, source: &ParsedFile<'_>) -> Option<Vec<LineRange>> {
        let is_it =
            |used: &TrustedPattern| used.pattern.id == *pattern && used.pattern.language == source.language.name();
        self.known.iter().find(|(used, _)| is_it(used))?;
        let matches = self.find_matches(source, None).into_iter();
        Some(matches.filter(|found| is_it(found.used)).map(|found| found.lines).collect())
    }
}

/// Whether a match of the pattern is worth a word to somebody who writes code: the broken form says something, and the
/// edit did more than put another name or literal into its place, which its form does not show. A fix of a history has to be
/// telling by itself. What is wrong with a declaration (that something is private, or final, or of a type) is decided
/// elsewhere: it is a hint only where a well-known name is imported and another was meant.
pub fn is_hint_worthy(pattern: &Pattern) -> bool {
    let Some((broken, fixed)) = pattern.parse_forms() else { return false };
    let is_idle = match pattern.evidence {
        _ if pattern.edit == EditKind::WrongDeclaration => !is_wrong_import(&pattern.language, &broken, &fixed),
        PatternEvidence::History => !is_informative_fix(&pattern.language, &broken, &fixed),
        _ => false,
    };
    if is_idle {
        return false;
    }
    is_informative(&broken) && (has_repeated_hole(&broken) || broken.without_numbers() != fixed.without_numbers())
}

/// Whether a fix in a history tells something of other places: nobody pointed at the code before, so its form has to be of
/// something well-known (`null` and the like stand everywhere), or hold one thing against itself. What was only taken out is
/// wrong where it stood.
fn is_informative_fix(language: &str, broken: &Form, fixed: &Form) -> bool {
    use stdlib_names::StdlibSection::{Functions, Modules, Types};
    let is_same_twice =
        matches!(broken.tokens(), [left @ FormToken::Hole { .. }, FormToken::Kept(_), right] if left == right);
    let is_known = |token: &FormToken| matches!(token, FormToken::Kept(word) if stdlib_names::has_name(language, &[Functions, Modules, Types], word));
    !fixed.is_empty() && (is_same_twice || broken.tokens().iter().any(is_known))
}

/// Whether a well-known name is imported, from a path that begins with one, and another was meant. A well-known name within
/// somebody's own path says nothing.
pub fn is_wrong_import(language: &str, broken: &Form, fixed: &Form) -> bool {
    const IMPORTS: &[&str] = &["import", "from", "use", "using"];
    let Some((FormToken::Kept(first), path)) = broken.tokens().split_first() else { return false };
    let root = path.iter().find(|token| **token != FormToken::Kept("static".into()));
    let is_known = |token: &FormToken| matches!(token, FormToken::Kept(word) if stdlib_names::has_name(language, stdlib_names::StdlibSection::ALL, word));
    let is_replaced = |token: &FormToken| is_known(token) && !fixed.tokens().contains(token);
    IMPORTS.contains(&&**first) && root.is_some_and(is_known) && path.iter().any(is_replaced)
}

/// Whether one thing stands in two places of a form: `VARIABLE == VARIABLE`.
fn has_repeated_hole(form: &Form) -> bool {
    let holes: Vec<&FormToken> = form.tokens().iter().filter(|token| matches!(token, FormToken::Hole { .. })).collect();
    holes.iter().enumerate().any(|(at, hole)| holes[..at].contains(hole))
}

fn to_lesson(found: PatternMatch<'_>) -> LearnedMatch {
    let pattern = &found.used.pattern;
    let count = pattern.total_count();
    let seen = match count.frequency {
        0 | 1 => String::new(),
        times => format!(", seen {times} times"),
    };
    let outcomes = match (count.successes, count.failures) {
        (0, 0) => String::new(),
        (right, wrong) => format!("; of findings raised for it {right} were addressed and {wrong} dismissed"),
    };
    let (title, whose) = match pattern.origin {
        PatternOrigin::Base => ("Like a known mistake", "that came with revdeck"),
        PatternOrigin::Learned => ("Like what was corrected before", "that was learned here"),
        PatternOrigin::Imported => ("Like what was corrected elsewhere", "that was imported"),
    };
    LearnedMatch {
        pattern: pattern.id.clone(),
        kind: pattern.kind,
        confidence: if found.used.confidence >= MIN_MEDIUM_CONFIDENCE { Confidence::Medium } else { Confidence::Low },
        lines: found.lines,
        title: format!("{title}: {}", pattern.description),
        evidence: format!(
            "The code has the form `{}` of the pattern {} {whose} (confidence {:.2}{seen}{outcomes}). That is a hint by its \
             form alone: what it does was not looked at.",
            pattern.broken, pattern.id, found.used.confidence
        ),
        instruction: capitalize(&pattern.instruction),
    }
}

fn capitalize(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::knowledge::kind_tallies::KindTally;
    use crate::knowledge::test_support::sample_pattern;
    use crate::reviewers::analyzer::source::Parsers;

    fn used(broken: &str, fixed: &str, confidence: f64) -> TrustedPattern {
        TrustedPattern { pattern: sample_pattern("java", broken, fixed), confidence }
    }

    fn ask<T>(lines: &[&str], about: impl FnOnce(&ParsedFile<'_>) -> T) -> T {
        let code = format!("class K {{\nvoid f() {{\n{}\n}}\n}}\n", lines.join("\n"));
        let source = Parsers::default().parse("K.java", Language::Java, code.as_bytes()).expect("parses");
        about(&source)
    }

    /// Of a line of the method.
    fn form_of(line: &str) -> String {
        ask(&[line], |source| LineForms::new(source).form_at(LineRange::new(3, 3))).expect("a form").to_string()
    }

    /// The lines of lessons, counted from the first of the method.
    fn lessons(used: &[TrustedPattern], lines: &[&str]) -> Vec<u32> {
        let matcher = PatternMatcher::new(used.iter().cloned());
        ask(lines, |source| matcher.find_mistakes(source).iter().map(|lesson| lesson.lines.start - 2).collect())
    }

    const SAME_OBJECT: (&str, &str) = ("VARIABLE == STRING", "STRING . equals ( VARIABLE )");

    #[rstest]
    #[case::by_form_whatever_the_names(&["g();", "if (name == \"x\") { g(); }", "boolean b = k == \"\";"], &[2, 3])]
    #[case::not_in_comments(&["// if (name == \"x\")", "g();"], &[])]
    #[case::not_like_it(&["if (name == 1) { g(); }", "if (name != \"x\") { g(); }"], &[])]
    #[case::what_stands_everywhere_tells_nothing(&["a = b == \"x\";", "a = c == \"x\";", "a = d == \"x\";", "a = e == \"x\";"], &[])]
    fn mistakes_are_found(#[case] lines: &[&str], #[case] expected: &[u32]) {
        assert_eq!(lessons(&[used(SAME_OBJECT.0, SAME_OBJECT.1, 0.9)], lines), expected);
    }

    #[test]
    fn of_two_patterns_at_a_place_the_surer_speaks() {
        let both = [used(SAME_OBJECT.0, SAME_OBJECT.1, 0.7), used(SAME_OBJECT.0, "VARIABLE == null", 0.9)];
        let matcher = PatternMatcher::new(both.iter().cloned());
        let found = ask(&["if (name == \"x\") { g(); }"], |source| matcher.find_mistakes(source));
        assert_eq!(found.len(), 1);
        assert_eq!((&found[0].pattern, found[0].confidence), (&both[1].pattern.id, Confidence::Medium));
        assert!(found[0].evidence.contains(both[1].pattern.id.as_str()), "{}", found[0].evidence);
        let said = [&found[0].title, &found[0].evidence, &found[0].instruction].map(|text| text.contains("name"));
        assert_eq!(said, [false; 3], "none of the code is told");
    }

    #[test]
    fn only_the_lines_that_are_asked_for_are_held_against_patterns() {
        let matcher = PatternMatcher::new([used(SAME_OBJECT.0, SAME_OBJECT.1, 0.9)]);
        let lines = ["a = b == \"x\";", "g();", "a = b == \"x\";"];
        let found = ask(&lines, |source| matcher.find_matches(source, Some(&[LineRange::new(5, 5)])).len());
        assert_eq!((found, ask(&lines, |source| matcher.find_matches(source, None).len())), (1, 2));
    }

    #[rstest]
    #[case::another_form("VARIABLE == STRING", "STRING . equals ( VARIABLE )", true)]
    #[case::another_name("FUNCTION_NAME ( VARIABLE ) + NUMBER", "FUNCTION_NAME_2 ( VARIABLE ) + NUMBER", false)]
    #[case::one_thing_twice("VARIABLE == VARIABLE", "VARIABLE == VARIABLE_2", true)]
    #[case::nothing_but_names("VARIABLE . VARIABLE_2", "VARIABLE . FUNCTION_NAME ( )", false)]
    fn hints(#[case] broken: &str, #[case] fixed: &str, #[case] expected: bool) {
        assert_eq!(is_hint_worthy(&sample_pattern("java", broken, fixed)), expected);
    }

    /// What a history taught and reviews of caddy and ripgrep raised all over, and what they would not.
    #[rstest]
    #[case::taken_out("go", "if VARIABLE != nil BODY", "", false)]
    #[case::taken_out_with_a_known_name("go", "VARIABLE = append ( VARIABLE , VARIABLE_2 )", "", false)]
    #[case::any_assignment("go", "EXPRESSION = EXPRESSION_2", "VARIABLE = EXPRESSION_2", false)]
    #[case::nothing_at_all("java", "return null ;", "throw VARIABLE ;", false)]
    #[case::any_condition("rust", "EXPRESSION && EXPRESSION_2", "EXPRESSION_2", false)]
    #[case::of_a_known_name("java", "VARIABLE . equals ( null )", "VARIABLE == null", true)]
    #[case::one_thing_against_itself("java", "VARIABLE == VARIABLE", "VARIABLE == VARIABLE_2", true)]
    fn a_fix_of_a_history_is_a_hint_where_it_is_telling(
        #[case] language: &str,
        #[case] broken: &str,
        #[case] fixed: &str,
        #[case] expected: bool,
    ) {
        let of = |evidence| Pattern { evidence, ..sample_pattern(language, broken, fixed) };
        assert_eq!(is_hint_worthy(&of(PatternEvidence::History)), expected);
        assert!(is_hint_worthy(&of(PatternEvidence::Addressed)), "somebody pointed at the code");
    }

    #[rstest]
    #[case::around(0.9, 0.7, &[1, 4])]
    #[case::within(0.7, 0.9, &[2, 4])]
    fn of_places_that_share_a_line_the_surer_speaks(
        #[case] around: f64,
        #[case] within: f64,
        #[case] expected: &[u32],
    ) {
        let lines = ["a(b == \"x\",", "c == 1);", "g();", "boolean d = e == 2;"];
        let whole =
            ask(&lines, |source| LineForms::new(source).form_at(LineRange::new(3, 4))).expect("a form").to_string();
        let both = [used(&whole, "", around), used("VARIABLE == NUMBER", "VARIABLE != NUMBER", within)];
        let mut found = lessons(&both, &lines);
        found.sort_unstable();
        assert_eq!(found, expected);
    }

    #[test]
    fn every_smell_of_a_file_is_asked_about() {
        let mut alarm = sample_pattern("java", &form_of("int delay = 9;"), "");
        (alarm.stance, alarm.kind) = (PatternStance::FalseAlarm, Kind::MagicNumbers);
        let matcher = PatternMatcher::new([TrustedPattern { pattern: alarm, confidence: 0.9 }]);
        let asked: Vec<_> = (3..1_003).map(|line| (Kind::MagicNumbers, LineRange::new(line, line))).collect();
        let answers = ask(&["int delay = 9;"; 1_000], |source| matcher.find_dismissed(source, &asked));
        assert_eq!(answers, [Some(DismissalRule::Shape); 1_000]);
    }

    #[test]
    fn a_kind_that_is_always_dismissed_is_so_wherever_it_is() {
        let often = |dismissed| KindTally { dismissed, files: [1, 2].into(), ..KindTally::default() };
        let tallies = KindTallies::from([(Kind::LongMethod, often(7)), (Kind::GodClass, often(1))]);
        let asked = [Kind::LongMethod, Kind::GodClass].map(|kind| (kind, LineRange::new(2, 4)));
        let answer = |language| {
            let matcher = PatternMatcher::new([]).with_kinds(language, &tallies);
            ask(&["g();"], |source| matcher.find_dismissed(source, &asked))
        };
        assert_eq!(answer(Language::Java), [Some(DismissalRule::Kind(7)), None]);
        assert_eq!(answer(Language::Python), [None, None]);
    }

    #[test]
    fn what_may_be_grave_is_never_known_as_dismissed() {
        let mut alarm = sample_pattern("java", &form_of("Key token = \"x\";"), "");
        (alarm.stance, alarm.kind) = (PatternStance::FalseAlarm, Kind::HardcodedConfiguration);
        let matcher = PatternMatcher::new([TrustedPattern { pattern: alarm, confidence: 0.9 }]);
        let asked = [(Kind::HardcodedConfiguration, LineRange::new(3, 3))];
        assert_eq!(ask(&["Key token = \"abc\";"], |source| matcher.find_dismissed(source, &asked)), [None]);
    }

    #[rstest]
    #[case::another_name("import java . util . Date ;", "import java . time . Instant ;", true)]
    #[case::one_that_is_somebodys("import VARIABLE . TYPE_NAME ;", "import VARIABLE . VARIABLE_2 . TYPE_NAME ;", false)]
    #[case::one_in_a_path_that_is_somebodys(
        "import VARIABLE . VARIABLE_2 . java . TYPE_NAME ;",
        "import VARIABLE . TYPE_NAME ;",
        false
    )]
    #[case::of_a_class(
        "import static java . util . Objects . hash ;",
        "import static java . util . Objects . equals ;",
        true
    )]
    #[case::who_may_see_it("private String VARIABLE ;", "public String VARIABLE ;", false)]
    #[case::its_type("private Vector VARIABLE ;", "private List VARIABLE ;", false)]
    fn declarations_are_hints_where_a_known_name_was_wrong(
        #[case] broken: &str,
        #[case] fixed: &str,
        #[case] expected: bool,
    ) {
        let mut pattern = sample_pattern("java", broken, fixed);
        pattern.edit = EditKind::WrongDeclaration;
        assert_eq!(is_hint_worthy(&pattern), expected);
    }

    #[test]
    fn what_is_dismissed_is_known_by_kind_and_form() {
        let mut alarm = sample_pattern("java", &form_of("int timeout = 30;"), "");
        (alarm.stance, alarm.kind, alarm.related) =
            (PatternStance::FalseAlarm, Kind::MagicNumbers, vec![Kind::DeadCode]);
        let matcher = PatternMatcher::new([TrustedPattern { pattern: alarm, confidence: 0.9 }]);
        let asked = [
            (Kind::MagicNumbers, LineRange::new(3, 3)),
            (Kind::DeadCode, LineRange::new(3, 3)),
            (Kind::MagicNumbers, LineRange::new(4, 4)),
        ];
        let answers = ask(&["int delay = 9;", "g(delay * 7);"], |source| matcher.find_dismissed(source, &asked));
        assert_eq!(answers, [Some(DismissalRule::Shape), None, None], "each kind has its own dismissals");
        assert!(ask(&["int delay = 9;"], |source| matcher.find_mistakes(source)).is_empty(), "it is no mistake");
    }
}
