//! Rules learned from earlier reviews, as an interface for the built-in reviewer. The creator of the reviewer provides
//! the implementation; the reviewer knows nothing about its source.
//!
//! - Learned rules add findings of the lowest priority, and lower the priority of other findings by one step.
//! - They remove no finding, and never lower a kind for which [`Kind::is_never_lowered`] holds.

use std::collections::{HashMap, HashSet};

use crate::domain::{Confidence, Kind, LineRange, LoweredPriority, PatternId, Priority, Severity, text::format_count};

use super::change::LineSet;
use super::smells::{Smell, SmellBuilder, SmellGrade};
use crate::syntax::source::ParsedFile;

/// Maximum number of learned smells per file, most confident first: a hint at every place is of no use. Own choice.
const MAX_LEARNED_SMELLS_PER_FILE: usize = 5;

/// Rules learned from corrections and dismissals.
pub trait LearnedRules: Send + Sync {
    /// Finds the places of a file whose code resembles code that was corrected before, most confident first. No two
    /// places share a line.
    fn find_mistakes(&self, source: &ParsedFile<'_>) -> Vec<LearnedMatch>;

    /// Returns, for each kind and line range in `asked` and in the same order, the rule by which users always dismiss
    /// such findings; `None` if there is no such rule.
    fn find_dismissed(&self, source: &ParsedFile<'_>, asked: &[(Kind, LineRange)]) -> Vec<Option<DismissalRule>>;

    /// Returns the lines of a file that match a pattern's mistake, including matches that are not worth a finding.
    /// `None` if the pattern is not in use: then nobody searches for its findings.
    fn locate_pattern(&self, pattern: &PatternId, source: &ParsedFile<'_>) -> Option<Vec<LineRange>>;
}

/// Rule by which findings are always dismissed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DismissalRule {
    /// Findings of the kind about code of this shape.
    Shape,
    /// All findings of the kind; the number says how many were dismissed.
    Kind(u32),
}

/// A place that resembles a mistake which was corrected before. The texts are made from abstract forms: they contain
/// neither the code that the rule was learned from nor the code of this place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LearnedMatch {
    pub pattern: PatternId,
    pub kind: Kind,
    pub confidence: Confidence,
    pub lines: LineRange,
    /// A single line.
    pub title: String,
    /// Evidence for the pattern, with the pattern's id.
    pub evidence: String,
    /// Advice as a single line.
    pub instruction: String,
}

impl LearnedMatch {
    fn into_smell(self) -> Smell {
        let builder = SmellBuilder {
            kind: self.kind,
            grade: SmellGrade::new(Priority::P3, Severity::Low, self.confidence),
            lines: self.lines,
            title: self.title,
            explanation: self.evidence,
            subject: self.pattern.to_string(),
        };
        let smell = builder.build().with_anchor((self.lines.start, self.lines.end)).with_advice(self.instruction);
        Smell { pattern: Some(self.pattern), ..smell }
    }
}

/// Converts all matches of learned rules in a file to smells, most confident first. Skips a match if a smell of the
/// same problem overlaps its lines.
pub(super) fn find_learned_smells(lessons: &dyn LearnedRules, source: &ParsedFile<'_>, smells: &[Smell]) -> Vec<Smell> {
    let mut said: HashMap<Kind, LineSet> = HashMap::new();
    let mut is_said = |lesson: &LearnedMatch| {
        let said = said.entry(normalize_kind(lesson.kind)).or_insert_with_key(|kind| {
            let same = smells.iter().filter(|smell| normalize_kind(smell.kind) == *kind);
            LineSet::from_ranges(same.map(|smell| LineRange::new(smell.line_start, smell.line_end)))
        });
        said.overlaps(lesson.lines.start, lesson.lines.end)
    };
    let mistakes = lessons.find_mistakes(source).into_iter().filter(|lesson| !is_said(lesson));
    mistakes.map(LearnedMatch::into_smell).collect()
}

/// Keeps at most [`MAX_LEARNED_SMELLS_PER_FILE`] of the learned smells in `smells`. `surest` holds the first lines of
/// all learned smells of the file, most confident first; no two of them share a line.
pub(super) fn keep_surest(smells: &mut Vec<Smell>, surest: &[u32]) {
    let is_learned = |smell: &&Smell| smell.pattern.is_some();
    let there: HashSet<u32> = smells.iter().filter(is_learned).map(|smell| smell.line_start).collect();
    let told: HashSet<u32> =
        surest.iter().copied().filter(|line| there.contains(line)).take(MAX_LEARNED_SMELLS_PER_FILE).collect();
    smells.retain(|smell| !is_learned(&smell) || told.contains(&smell.line_start));
}

/// Maps kinds that name the same problem to one kind: a model reports an ignored error as a defect, while the smell has
/// its own kind.
fn normalize_kind(kind: Kind) -> Kind {
    match kind {
        Kind::ErrorHandling => Kind::MissingErrorHandling,
        kind => kind,
    }
}

/// Lowers the priority of always dismissed smells by one step, and adds the reason to the explanation.
pub(super) fn lower_dismissed<'s>(
    lessons: &dyn LearnedRules,
    source: &ParsedFile<'_>,
    smells: impl IntoIterator<Item = &'s mut Smell>,
) {
    let mut may: Vec<&mut Smell> = smells.into_iter().filter(|smell| is_lowerable(smell)).collect();
    let asked: Vec<(Kind, LineRange)> =
        may.iter().map(|smell| (smell.kind, LineRange::new(smell.line_start, smell.line_end))).collect();
    for (smell, dismissed) in may.iter_mut().zip(lessons.find_dismissed(source, &asked)) {
        let Some((to, dismissed)) = smell.priority.one_lower().zip(dismissed) else { continue };
        let why = match dismissed {
            DismissalRule::Shape => "Findings like it were dismissed before".to_owned(),
            DismissalRule::Kind(times) => {
                format!("Findings of this kind are always dismissed here ({})", format_count(times as usize, "time"))
            }
        };
        smell.explanation.push_str(&format!(" {why}, so its priority is a step lower."));
        smell.lowered = Some(LoweredPriority { from: smell.priority, to, because: why });
        smell.priority = to;
    }
}

fn is_lowerable(smell: &Smell) -> bool {
    !smell.kind.is_never_lowered() && smell.quote.is_none() && smell.priority < Priority::P3
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rstest::rstest;

    use super::*;
    use crate::git::Hunk;
    use crate::reviewers::analyzer::Builtin;
    use crate::reviewers::analyzer::limits::Limits;
    use crate::syntax::language::Language;
    use crate::syntax::source::Parsers;

    /// Matches every line that contains `wrong`, and treats all findings as dismissed.
    struct FakeLearnedRules(Kind);

    impl LearnedRules for FakeLearnedRules {
        fn find_mistakes(&self, source: &ParsedFile<'_>) -> Vec<LearnedMatch> {
            let text = String::from_utf8_lossy(source.text);
            let wrong = text.lines().zip(1..).filter(|(line, _)| line.contains("wrong"));
            wrong.map(|(_, line)| learned_match(self.0, line)).collect()
        }

        fn find_dismissed(&self, _: &ParsedFile<'_>, asked: &[(Kind, LineRange)]) -> Vec<Option<DismissalRule>> {
            let of = |(kind, _): &(Kind, LineRange)| match kind {
                Kind::GodClass => DismissalRule::Kind(7),
                _ => DismissalRule::Shape,
            };
            asked.iter().map(|asked| Some(of(asked))).collect()
        }

        fn locate_pattern(&self, _: &PatternId, _: &ParsedFile<'_>) -> Option<Vec<LineRange>> {
            None
        }
    }

    fn learned_match(kind: Kind, line: u32) -> LearnedMatch {
        LearnedMatch {
            pattern: PatternId::from_forms("python", "VARIABLE is STRING", "VARIABLE == STRING"),
            kind,
            confidence: Confidence::Low,
            lines: LineRange::new(line, line),
            title: "Like what was corrected before".to_owned(),
            evidence: "By its form.".to_owned(),
            instruction: "Look at it.".to_owned(),
        }
    }

    fn review(kind: Kind, old: &str, new: &str, hunk: (u32, u32)) -> Vec<Smell> {
        let builtin = Builtin::new(Limits::default()).with_learned_rules(Arc::new(FakeLearnedRules(kind)));
        let hunk = Hunk { old_start: hunk.0, old_lines: 0, new_start: hunk.0, new_lines: hunk.1 };
        let old = || Some(("a.py".to_owned(), old.as_bytes().to_vec()));
        builtin.review_change(&mut Parsers::default(), "a.py", new.as_bytes(), &[hunk], old).expect("parses")
    }

    #[test]
    fn a_lesson_is_a_finding_when_the_change_brought_it() {
        let old = "x = wrong(1)\n";
        let found = review(Kind::Correctness, old, "y = 0\nx = wrong(1)\nz = wrong(2)\n", (2, 2));
        let told: Vec<_> = found.iter().map(|smell| (smell.line_start, smell.kind, smell.priority)).collect();
        assert_eq!(told, [(3, Kind::Correctness, Priority::P3)], "the other was there before");
        assert!(found[0].pattern.is_some() && found[0].suggestion.is_some());
        assert_eq!(review(Kind::Correctness, old, "y = 0\nx = wrong(1)\n", (1, 1)), []);
    }

    #[test]
    fn a_file_full_of_lessons_gets_a_few() {
        let new = "wrong()\n".repeat(40);
        assert_eq!(review(Kind::Correctness, "", &new, (1, 40)).len(), MAX_LEARNED_SMELLS_PER_FILE);
    }

    #[test]
    fn what_a_file_is_full_of_hides_nothing_that_a_change_brings() {
        let old: String = (0..9).map(|at| format!("wrong({at})\n")).collect();
        let added = |lines: u32| {
            let new: String = (0..lines).map(|at| format!("wrong({})\n", 100 + at)).collect();
            let found = review(Kind::Correctness, &old, &format!("{old}{new}"), (10, lines));
            found.iter().map(|smell| smell.line_start).collect::<Vec<_>>()
        };
        assert_eq!(added(1), [10]);
        assert_eq!(added(7), [10, 11, 12, 13, 14], "as many as of any file");
    }

    #[rstest]
    #[case(Kind::LongMethod, Priority::P1, Priority::P2)]
    #[case(Kind::LongMethod, Priority::P3, Priority::P3)]
    #[case::never(Kind::Security, Priority::P1, Priority::P1)]
    #[case::never(Kind::Correctness, Priority::P0, Priority::P0)]
    #[case::it_may_be_a_secret(Kind::HardcodedConfiguration, Priority::P1, Priority::P1)]
    #[case::an_error_that_is_ignored(Kind::MissingErrorHandling, Priority::P2, Priority::P2)]
    #[case::what_threads_share(Kind::MutableSharedState, Priority::P2, Priority::P2)]
    fn what_is_always_dismissed_goes_a_step_lower(#[case] kind: Kind, #[case] from: Priority, #[case] to: Priority) {
        let source = Parsers::default().parse("a.py", Language::Python, b"x\n");
        let mut smells = [Smell { priority: from, ..learned_match(kind, 1).into_smell() }];
        lower_dismissed(&FakeLearnedRules(kind), &source.expect("parses"), &mut smells);
        assert_eq!(smells[0].priority, to);
        assert_eq!(smells[0].explanation.contains("dismissed"), from != to, "{}", smells[0].explanation);
        let step = smells[0].lowered.as_ref().map(|lowered| (lowered.from, lowered.to));
        assert_eq!(step, (from != to).then_some((from, to)));
    }

    #[test]
    fn a_kind_that_is_always_dismissed_is_said_with_how_often() {
        let source = Parsers::default().parse("a.py", Language::Python, b"x\n").expect("parses");
        let mut smells = [Smell { priority: Priority::P1, ..learned_match(Kind::GodClass, 1).into_smell() }];
        lower_dismissed(&FakeLearnedRules(Kind::GodClass), &source, &mut smells);
        let said = &smells[0].explanation;
        assert!(said.ends_with("always dismissed here (7 times), so its priority is a step lower."), "{said}");
        assert_eq!(smells[0].priority, Priority::P2);
    }
}
