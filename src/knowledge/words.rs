//! The texts of patterns, made from their forms and counts and nothing else.
//!
//! Invariant: one line; every word of it is written here or is a token of a form.

use super::form::Form;
use super::pattern::{EditKind, Origin, Pattern, Stance};
use crate::domain::{Kind, text};

/// What the pattern is about, in one line.
pub fn description(stance: Stance, edit: EditKind, kind: Kind, broken: &Form, fixed: &Form) -> String {
    match stance {
        Stance::FalseAlarm => format!("known false alarm: `{broken}` was reported as {kind} and dismissed"),
        Stance::Mistake if fixed.is_empty() => format!("{}: `{broken}` was taken out", noun(edit)),
        Stance::Mistake => format!("{}: `{broken}` became `{fixed}`", noun(edit)),
    }
}

/// What to do about code like the broken form, in one line.
pub fn instruction(stance: Stance, edit: EditKind, kind: Kind, broken: &Form, fixed: &Form) -> String {
    match (stance, edit) {
        (Stance::FalseAlarm, _) => {
            format!("do not report {kind} for `{broken}` unless something else is wrong with it")
        }
        (Stance::Mistake, _) if fixed.is_empty() => {
            format!("look whether `{broken}` is needed, and take it out if not")
        }
        (Stance::Mistake, EditKind::MissingCheck) => format!("look for the missing check, as in `{fixed}`"),
        (Stance::Mistake, EditKind::MissingArgument) => format!("look for the missing argument, as in `{fixed}`"),
        (Stance::Mistake, EditKind::MissingStatement) => format!("look for what is missing, as in `{fixed}`"),
        (Stance::Mistake, EditKind::MissingErrorHandling) => {
            format!("look for the missing error handling, as in `{fixed}`")
        }
        (Stance::Mistake, _) => format!("look whether `{fixed}` is meant"),
    }
}

/// How often a pattern was seen, and by how many machines where it was more than one.
pub fn seen(pattern: &Pattern) -> String {
    let times = text::count(pattern.seen() as usize, "time");
    match (pattern.seen(), pattern.origins()) {
        (0, _) if pattern.origin == Origin::Base => "not yet: it came with revdeck".to_owned(),
        (0, _) => "not yet".to_owned(),
        (_, 1) => times,
        (_, origins) => format!("{times} by {}", text::count(origins, "origin")),
    }
}

fn noun(edit: EditKind) -> &'static str {
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
    use crate::knowledge::base;
    use crate::knowledge::pattern::Count;
    use crate::knowledge::test_support::pattern;
    use crate::provider::builtin::language::Language;

    #[rstest]
    #[case(
        Stance::Mistake,
        EditKind::WrongOperator,
        "VARIABLE == None",
        "VARIABLE is None",
        "wrong operator: `VARIABLE == None` became `VARIABLE is None`",
        "look whether `VARIABLE is None` is meant"
    )]
    #[case(
        Stance::Mistake,
        EditKind::NeedlessStatement,
        "FUNCTION_NAME ( )",
        "",
        "needless statement: `FUNCTION_NAME ( )` was taken out",
        "look whether `FUNCTION_NAME ( )` is needed, and take it out if not"
    )]
    #[case(
        Stance::FalseAlarm,
        EditKind::Other,
        "VARIABLE = NUMBER",
        "",
        "known false alarm: `VARIABLE = NUMBER` was reported as MAGIC_NUMBERS and dismissed",
        "do not report MAGIC_NUMBERS for `VARIABLE = NUMBER` unless something else is wrong with it"
    )]
    fn texts_are_made_from_forms(
        #[case] stance: Stance,
        #[case] edit: EditKind,
        #[case] broken: &str,
        #[case] fixed: &str,
        #[case] says: &str,
        #[case] to_do: &str,
    ) {
        let (broken, fixed) = (broken.parse().expect("a form"), fixed.parse().expect("a form"));
        assert_eq!(description(stance, edit, Kind::MagicNumbers, &broken, &fixed), says);
        assert_eq!(instruction(stance, edit, Kind::MagicNumbers, &broken, &fixed), to_do);
    }

    #[test]
    fn who_has_seen_a_pattern_is_machines() {
        let mut one = pattern("python", "VARIABLE == None", "VARIABLE is None");
        assert_eq!(seen(&one), "1 time");
        one.counts.insert("m_2".to_owned(), Count { frequency: 3, ..Count::default() });
        one.counts.insert(base::ORIGIN.to_owned(), Count { frequency: 1, ..Count::default() });
        assert_eq!(seen(&one), "3 times by 2 origins");
        assert_eq!(seen(&base::patterns(Language::Python)[0]), "not yet: it came with revdeck");
    }

    #[test]
    fn every_text_is_one_line() {
        let form: Form = "VARIABLE".parse().expect("a form");
        for &stance in Stance::ALL {
            for &edit in EditKind::ALL {
                for fixed in [&form, &Form::default()] {
                    for text in [
                        description(stance, edit, Kind::Api, &form, fixed),
                        instruction(stance, edit, Kind::Api, &form, fixed),
                    ] {
                        assert!(!text.is_empty() && !text.contains('\n') && text.len() < 120, "{text}");
                    }
                }
            }
        }
    }
}
