//! Writes learned patterns as hints into the prompt of a reviewing model: where to look, and which reports are known
//! false alarms.
//!
//! - At most [`MAX_HINTS`] patterns and [`MAX_HINT_TOKENS`] tokens.
//! - Every word is revdeck's own or a token of a form that passed the gate. Texts of patterns from files are always
//!   generated anew.
//! - A false alarm is left out if its kind [may be serious](crate::domain::Kind::is_never_lowered).

use std::collections::HashSet;
use std::fmt::Write as _;

use super::abstraction::{digest_form, visit_sites};
use super::form::{Form, FormToken};
use super::matcher::is_hint_worthy;
use super::pattern::{EditKind, Pattern, PatternOrigin, PatternStance};
use super::privacy_gate;
use super::rank::{ScoredPattern, select_top};
use crate::domain::{LineRange, Time, text};
use crate::syntax::source::ParsedFile;

/// Maximum number of patterns in a prompt; a project requirement.
pub const MAX_HINTS: usize = 10;
/// Maximum number of tokens for hints; a project requirement.
pub const MAX_HINT_TOKENS: u64 = 800;
/// Maximum number of distinct forms read from a change; a change of this size contains all common forms.
const MAX_CHANGED_FORMS: usize = 20_000;
/// Relevance of a pattern that shares only its language with the change. A pattern whose form is in the change counts
/// five times as much.
const MIN_RELEVANCE: f64 = 0.2;

/// Forms and words of changed code.
#[derive(Debug, Default)]
pub struct ChangedForms {
    forms: HashSet<u64>,
    words: HashSet<Box<str>>,
}

impl ChangedForms {
    /// Adds the changed lines of a file.
    pub fn add(&mut self, source: &ParsedFile<'_>, lines: &[LineRange]) {
        visit_sites(source, Some(lines), &mut |site| {
            if self.forms.len() < MAX_CHANGED_FORMS && self.forms.insert(site.digest) {
                self.words.extend(extract_words(&site.form()).map(Box::from));
            }
        });
    }

    /// Returns the relevance of a pattern to the change, from 0 to 1: 1 if its broken form is in the change, else by
    /// the share of its words that the change contains. A curated or imported pattern that was never seen on this
    /// machine is relevant only if its form is in the change.
    pub fn relevance(&self, pattern: &Pattern) -> f64 {
        let Some((broken, fixed)) = pattern.parse_forms() else { return 0.0 };
        if self.forms.contains(&digest_form(&broken)) {
            return 1.0;
        }
        if pattern.origin != PatternOrigin::Learned && pattern.here.frequency == 0 {
            return 0.0;
        }
        let mut told: HashSet<&str> = extract_words(&broken).collect();
        told.extend(extract_words(&fixed));
        let shared = told.iter().filter(|word| self.words.contains(**word)).count();
        let share = if told.is_empty() { 0.0 } else { shared as f64 / told.len() as f64 };
        MIN_RELEVANCE + (0.8 - MIN_RELEVANCE) * share
    }
}

/// Returns true if the pattern came with revdeck and was never seen since.
fn is_unseen_builtin(pattern: &Pattern) -> bool {
    pattern.origin == PatternOrigin::Base && pattern.last_seen == Time::UNIX_EPOCH
}

/// Returns the keywords and well-known names of a form, without punctuation.
fn extract_words(form: &Form) -> impl Iterator<Item = &str> {
    form.tokens().iter().filter_map(|token| match token {
        FormToken::Kept(text) if text.chars().any(char::is_alphanumeric) => Some(&**text),
        _ => None,
    })
}

/// Renders the patterns that are most useful for this change, best first, in at most `room` tokens. Returns an empty
/// text if no pattern applies or fits.
pub fn render_hints(
    patterns: &[Pattern],
    changed: &ChangedForms,
    now: Time,
    room: u64,
    count: &dyn Fn(&str) -> u64,
) -> String {
    let relevance = |pattern: &Pattern| if is_eligible(pattern) { changed.relevance(pattern) } else { 0.0 };
    let best = select_top(patterns, relevance, now, MAX_HINTS);
    // Drop the least useful pattern until the rest fits.
    (1..=best.len())
        .rev()
        .map(|most| format_hints(&best[..most]))
        .find(|text| count(text) <= room.min(MAX_HINT_TOKENS))
        .unwrap_or_default()
}

fn is_eligible(pattern: &Pattern) -> bool {
    let hides = pattern.stance == PatternStance::FalseAlarm && pattern.kind.is_never_lowered();
    // Check the gate once more right before the text leaves, because the pattern may come from a damaged or foreign
    // file.
    let admitted = pattern
        .parse_forms()
        .is_some_and(|(broken, fixed)| privacy_gate::admit_pair(&pattern.language, &broken, &fixed).is_ok());
    let is_idle = pattern.edit == EditKind::WrongDeclaration && !is_hint_worthy(pattern);
    !hides && admitted && !is_idle
}

fn format_hints(best: &[ScoredPattern<'_>]) -> String {
    let mut told =
        "Learned from earlier findings and fixes. Abstract code: words in capitals stand for anything.\n".to_owned();
    for (stance, title) in [(PatternStance::Mistake, "Look here:"), (PatternStance::FalseAlarm, "Known false alarms:")]
    {
        let mut of_stance = best.iter().filter(|ranked| ranked.pattern.stance == stance).peekable();
        if of_stance.peek().is_some() {
            let _ = writeln!(told, "{title}");
        }
        for ScoredPattern { pattern, standing, .. } in of_stance {
            let Pattern { language, description, instruction, .. } = pattern;
            let _ = write!(told, "- {language}: {description}; {instruction}");
            let seen = match is_unseen_builtin(pattern) {
                true => "well known".to_owned(),
                false => format!("seen {}", text::format_count(pattern.times_seen() as usize, "time")),
            };
            let rate = standing.success_rate.map(|rate| format!(", right in {:.0} %", rate * 100.0));
            let _ = writeln!(told, " ({seen}{})", rate.unwrap_or_default());
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Kind;
    use crate::knowledge::builtin_patterns;
    use crate::knowledge::pattern::{EditKind, PatternCount, PatternEvidence};
    use crate::knowledge::test_support::sample_pattern;
    use crate::syntax::language::Language;
    use crate::syntax::source::Parsers;

    fn now() -> Time {
        "2026-03-04T05:06:07Z".parse().expect("a time")
    }

    fn words(text: &str) -> u64 {
        text.split_whitespace().count() as u64
    }

    /// Returns a pattern that was learned a thousand times, so that it is used.
    fn used(stance: PatternStance, kind: Kind, broken: &str, fixed: &str) -> Pattern {
        let mut pattern = sample_pattern("python", broken, fixed);
        (pattern.stance, pattern.kind, pattern.evidence, pattern.edit) =
            (stance, kind, PatternEvidence::Addressed, EditKind::Other);
        pattern.counts.values_mut().for_each(|count| (count.frequency, count.successes) = (1_000, 100));
        pattern
    }

    fn changed(text: &str) -> ChangedForms {
        let (mut parsers, mut changed) = (Parsers::default(), ChangedForms::default());
        let source = parsers.parse("a.py", Language::Python, text.as_bytes()).expect("a file that parses");
        changed.add(&source, &[LineRange::new(1, 100)]);
        changed
    }

    #[test]
    fn what_stands_in_the_change_comes_first_and_comes_alone_when_it_came_with_revdeck() {
        let here = changed("def f(a):\n    return a == None\n");
        let met = builtin_patterns::patterns(Language::Python).iter().find(|pattern| here.relevance(pattern) == 1.0);
        let met = met.expect("a curated pattern of this");
        let all = builtin_patterns::patterns(Language::Python);
        assert!(all.iter().all(|pattern| [0.0, 1.0].contains(&here.relevance(pattern))));
        let told = render_hints(all, &here, now(), MAX_HINT_TOKENS, &words);
        assert!(told.contains(&met.description) && told.contains(&met.instruction), "{told}");
        assert_eq!(render_hints(all, &changed("a = b\n"), now(), MAX_HINT_TOKENS, &words), "");
    }

    #[test]
    fn what_was_imported_is_told_where_its_form_stands_until_it_was_seen_here() {
        let mut one = used(PatternStance::Mistake, Kind::Correctness, "VARIABLE == True", "VARIABLE is True");
        (one.origin, one.here) = (PatternOrigin::Imported, PatternCount::default());
        let (met, not_met) = (changed("a = b == True\n"), changed("a = b is True\n"));
        assert!(
            render_hints(std::slice::from_ref(&one), &met, now(), MAX_HINT_TOKENS, &words).contains("VARIABLE is True")
        );
        assert_eq!(render_hints(std::slice::from_ref(&one), &not_met, now(), MAX_HINT_TOKENS, &words), "");
        one.here.frequency = 1;
        assert!(render_hints(&[one], &not_met, now(), MAX_HINT_TOKENS, &words).contains("VARIABLE is True"));
    }

    #[test]
    fn hints_are_few_and_short_and_say_what_they_are() {
        let broken = |n: usize| vec!["VARIABLE . append ( VARIABLE_2 )"; n + 1].join(" ; ");
        let many: Vec<Pattern> = (0..20)
            .map(|n| {
                used(
                    PatternStance::Mistake,
                    Kind::Correctness,
                    &broken(n % 4),
                    &format!("VARIABLE = {}", "not ".repeat(n) + "VARIABLE_2"),
                )
            })
            .chain([used(PatternStance::FalseAlarm, Kind::MagicNumbers, "VARIABLE = NUMBER", "")])
            .collect();
        let text = render_hints(&many, &changed("a = 1\n"), now(), MAX_HINT_TOKENS, &words);
        assert!(text.contains("Look here:\n- python: ") && text.contains("Known false alarms:\n- python: "), "{text}");
        let told = text.lines().filter(|line| line.starts_with("- ")).count();
        assert!(told > 1 && told <= MAX_HINTS, "{text}");
        // If nothing fits, the text is empty.
        assert_eq!(render_hints(&many, &changed("a = 1\n"), now(), MAX_HINT_TOKENS, &|_| MAX_HINT_TOKENS + 1), "");
        let few = render_hints(&many, &changed("a = 1\n"), now(), MAX_HINT_TOKENS, &|text| text.len() as u64);
        assert!(few.len() as u64 <= MAX_HINT_TOKENS && few.contains("- python"), "{few}");
    }

    #[test]
    fn no_false_alarm_that_may_be_grave_is_told_and_nothing_that_the_gate_refuses() {
        for kind in [Kind::Security, Kind::HardcodedConfiguration, Kind::MissingErrorHandling] {
            let grave = used(PatternStance::FalseAlarm, kind, "VARIABLE = STRING", "");
            assert_eq!(render_hints(&[grave], &changed("token = 'abc'\n"), now(), MAX_HINT_TOKENS, &words), "");
        }
        let mut spoiled = used(PatternStance::Mistake, Kind::Correctness, "VARIABLE = NUMBER", "VARIABLE = None");
        assert!(
            render_hints(&[spoiled.clone()], &changed("a = 1\n"), now(), MAX_HINT_TOKENS, &words)
                .contains("VARIABLE = None")
        );
        spoiled.broken = "VARIABLE = customer_secret".to_owned();
        assert_eq!(render_hints(&[spoiled], &changed("a = 1\n"), now(), MAX_HINT_TOKENS, &words), "");
    }
}
