//! Generates the texts of patterns from their forms and counts only.
//!
//! - Every text is one line.
//! - Every word is written in this file or is a token of a form.

use super::form::Form;
use super::pattern::{EditKind, Pattern, PatternOrigin, PatternStance};
use crate::domain::{Kind, text};

/// Returns a description of the pattern on one line.
pub fn build_description(stance: PatternStance, edit: EditKind, kind: Kind, broken: &Form, fixed: &Form) -> String {
    match stance {
        PatternStance::FalseAlarm => format!("known false alarm: `{broken}` was reported as {kind} and dismissed"),
        PatternStance::Mistake if fixed.is_empty() => format!("{}: `{broken}` was taken out", edit_noun(edit)),
        PatternStance::Mistake => format!("{}: `{broken}` became `{fixed}`", edit_noun(edit)),
    }
}

/// Returns an instruction for code that has the broken form, on one line.
pub fn build_instruction(stance: PatternStance, edit: EditKind, kind: Kind, broken: &Form, fixed: &Form) -> String {
    match (stance, edit) {
        (PatternStance::FalseAlarm, _) => {
            format!("do not report {kind} for `{broken}` unless something else is wrong with it")
        }
        (PatternStance::Mistake, _) if fixed.is_empty() => {
            format!("look whether `{broken}` is needed, and take it out if not")
        }
        (PatternStance::Mistake, EditKind::MissingCheck) => format!("look for the missing check, as in `{fixed}`"),
        (PatternStance::Mistake, EditKind::MissingArgument) => {
            format!("look for the missing argument, as in `{fixed}`")
        }
        (PatternStance::Mistake, EditKind::MissingStatement) => format!("look for what is missing, as in `{fixed}`"),
        (PatternStance::Mistake, EditKind::MissingErrorHandling) => {
            format!("look for the missing error handling, as in `{fixed}`")
        }
        (PatternStance::Mistake, _) => format!("look whether `{fixed}` is meant"),
    }
}

/// Describes how often a pattern was seen, and by how many machines if by more than one.
pub fn describe_sightings(pattern: &Pattern) -> String {
    let times = text::format_count(pattern.times_seen() as usize, "time");
    match (pattern.times_seen(), pattern.origin_count()) {
        (0, _) if pattern.origin == PatternOrigin::Base => "not yet: it came with revdeck".to_owned(),
        (0, _) => "not yet".to_owned(),
        (_, 1) => times,
        (_, origins) => format!("{times} by {}", text::format_count(origins, "origin")),
    }
}

fn edit_noun(edit: EditKind) -> &'static str {
    match edit {
        EditKind::WrongOperator => "wrong operator",
        EditKind::WrongCondition => "wrong condition",
        EditKind::MissingCheck => "missing check",
        EditKind::WrongArgument => "wrong argument",
        EditKind::MissingArgument => "missing argument",
        EditKind::WrongCall => "wrong call",
        EditKind::WrongValue => "wrong value",
        EditKind::WrongType => "wrong type",
        EditKind::MissingStatement => "missing statement",
        EditKind::NeedlessStatement => "needless statement",
        EditKind::MissingErrorHandling => "missing error handling",
        EditKind::WrongDeclaration => "wrong declaration",
        EditKind::Other => "mistake",
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::knowledge::builtin_patterns;
    use crate::knowledge::pattern::PatternCount;
    use crate::knowledge::test_support::sample_pattern;
    use crate::syntax::language::Language;

    #[rstest]
    #[case(
        PatternStance::Mistake,
        EditKind::WrongOperator,
        "VARIABLE == None",
        "VARIABLE is None",
        "wrong operator: `VARIABLE == None` became `VARIABLE is None`",
        "look whether `VARIABLE is None` is meant"
    )]
    #[case(
        PatternStance::Mistake,
        EditKind::NeedlessStatement,
        "FUNCTION_NAME ( )",
        "",
        "needless statement: `FUNCTION_NAME ( )` was taken out",
        "look whether `FUNCTION_NAME ( )` is needed, and take it out if not"
    )]
    #[case(
        PatternStance::FalseAlarm,
        EditKind::Other,
        "VARIABLE = NUMBER",
        "",
        "known false alarm: `VARIABLE = NUMBER` was reported as MAGIC_NUMBERS and dismissed",
        "do not report MAGIC_NUMBERS for `VARIABLE = NUMBER` unless something else is wrong with it"
    )]
    fn texts_are_made_from_forms(
        #[case] stance: PatternStance,
        #[case] edit: EditKind,
        #[case] broken: &str,
        #[case] fixed: &str,
        #[case] says: &str,
        #[case] to_do: &str,
    ) {
        let (broken, fixed) = (broken.parse().expect("a form"), fixed.parse().expect("a form"));
        assert_eq!(build_description(stance, edit, Kind::MagicNumbers, &broken, &fixed), says);
        assert_eq!(build_instruction(stance, edit, Kind::MagicNumbers, &broken, &fixed), to_do);
    }

    #[test]
    fn who_has_seen_a_pattern_is_machines() {
        let mut one = sample_pattern("python", "VARIABLE == None", "VARIABLE is None");
        assert_eq!(describe_sightings(&one), "1 time");
        one.counts.insert("m_2".to_owned(), PatternCount { frequency: 3, ..PatternCount::default() });
        one.counts
            .insert(builtin_patterns::ORIGIN.to_owned(), PatternCount { frequency: 1, ..PatternCount::default() });
        assert_eq!(describe_sightings(&one), "3 times by 2 origins");
        assert_eq!(
            describe_sightings(&builtin_patterns::patterns(Language::Python)[0]),
            "not yet: it came with revdeck"
        );
    }

    #[test]
    fn every_text_is_one_line() {
        let form: Form = "VARIABLE".parse().expect("a form");
        for &stance in PatternStance::ALL {
            for &edit in EditKind::ALL {
                for fixed in [&form, &Form::default()] {
                    for text in [
                        build_description(stance, edit, Kind::Api, &form, fixed),
                        build_instruction(stance, edit, Kind::Api, &form, fixed),
                    ] {
                        assert!(!text.is_empty() && !text.contains('\n') && text.len() < 120, "{text}");
                    }
                }
            }
        }
    }
}
