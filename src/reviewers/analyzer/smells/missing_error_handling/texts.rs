//! Texts and grades of lost errors, one row per kind.
//!
//! A template may contain `{name}` (the called function, the caught type or the checked text), `{of}` (the same as
//! " of `NAME`", or nothing), `{place}` (" in `FUNCTION`", or nothing) and `{lines}` (the lines that are searched for a
//! comparison with NULL).

use super::LostErrorKind;
use super::discarded_results::MAX_LINES_TO_NULL_CHECK;
use crate::domain::{
    Confidence,
    Priority::{P2, P3},
    Severity::{Low, Medium},
};
use crate::reviewers::analyzer::smells::SmellGrade;

/// Texts and grade of one kind of lost error; title and explanation are templates.
pub(super) struct LostErrorText {
    kind: LostErrorKind,
    title: &'static str,
    explanation: &'static str,
    pub advice: &'static str,
    pub grade: SmellGrade,
}

/// Values for the placeholders of the templates.
pub(super) struct LostErrorWords<'a> {
    pub name: &'a str,
    pub place: &'a str,
}

impl LostErrorText {
    pub fn of_kind(kind: LostErrorKind) -> &'static Self {
        let text = &TEXTS[kind as usize];
        debug_assert_eq!(text.kind, kind);
        text
    }

    pub fn title(&self, words: &LostErrorWords<'_>) -> String {
        words.fill(self.title)
    }

    pub fn explanation(&self, words: &LostErrorWords<'_>) -> String {
        words.fill(self.explanation)
    }
}

impl LostErrorWords<'_> {
    /// Returns a template with its placeholders replaced. Braces in the values are left alone.
    fn fill(&self, template: &str) -> String {
        let mut text = String::with_capacity(template.len() + self.name.len() + self.place.len());
        let mut rest = template;
        while let Some((before, (word, after))) =
            rest.split_once('{').and_then(|(before, behind)| Some((before, behind.split_once('}')?)))
        {
            text.push_str(before);
            match word {
                "name" => text.push_str(self.name),
                "of" if self.name.is_empty() => {}
                "of" => text.extend([" of `", self.name, "`"]),
                "place" => text.push_str(self.place),
                _ => text.push_str(&MAX_LINES_TO_NULL_CHECK.to_string()),
            }
            rest = after;
        }
        text.push_str(rest);
        text
    }
}

/// In the order of [`LostErrorKind`].
static TEXTS: [LostErrorText; 20] = [
    LostErrorText {
        kind: LostErrorKind::EmptyHandler,
        title: "a handler{of} swallows every error",
        explanation: "The handler{place} catches every error and does nothing with it: it is neither logged nor \
                      raised again, and no comment says why.",
        advice: "Handle the error, log it, raise it again, or say in a comment why it may be ignored.",
        grade: SmellGrade::new(P2, Medium, Confidence::High),
    },
    LostErrorText {
        kind: LostErrorKind::NarrowEmptyHandler,
        title: "a handler{of} is empty",
        explanation: "The handler{of}{place} does nothing and no comment says why that is fine.",
        advice: "Handle the error or say in a comment why it may be ignored.",
        grade: SmellGrade::new(P3, Low, Confidence::Medium),
    },
    LostErrorText {
        kind: LostErrorKind::BareExcept,
        title: "a bare `except:` catches everything",
        explanation: "`except:`{place} names no type and raises nothing again, so it swallows KeyboardInterrupt and \
                      SystemExit, too.",
        advice: "Name the exceptions that are expected; `except Exception:` at the least.",
        grade: SmellGrade::new(P2, Medium, Confidence::High),
    },
    LostErrorText {
        kind: LostErrorKind::RescueNil,
        title: "`rescue nil` hides every error",
        explanation: "`rescue nil`{place} turns every StandardError of the expression into nil.",
        advice: "Rescue the error that is expected, by name.",
        grade: SmellGrade::new(P3, Low, Confidence::High),
    },
    LostErrorText {
        kind: LostErrorKind::EmptyErrorCheck,
        title: "`if {name}` does nothing",
        explanation: "The error is compared to nil{place} and then dropped: the block is empty.",
        advice: "Return the error, handle it, or drop the comparison with a comment that says why.",
        grade: SmellGrade::new(P2, Medium, Confidence::High),
    },
    LostErrorText {
        kind: LostErrorKind::EmptyPromiseHandler,
        title: "`.catch()` with an empty function swallows rejections",
        explanation: "The function given to `.catch`{place} has no statement, so a rejection leaves no trace.",
        advice: "Handle or log the rejection, or say in a comment why it may be ignored.",
        grade: SmellGrade::new(P2, Medium, Confidence::High),
    },
    LostErrorText {
        kind: LostErrorKind::FloatingThen,
        title: "a promise has no handler for its rejection",
        explanation: "The chain with `.then`{place} is neither awaited nor returned and has no `.catch`, so its \
                      rejection is unhandled.",
        advice: "Await or return it, or add `.catch`.",
        grade: SmellGrade::new(P2, Medium, Confidence::Medium),
    },
    LostErrorText {
        kind: LostErrorKind::FloatingCall,
        title: "`{name}()` is asynchronous and not awaited",
        explanation: "`{name}` is declared `async` in this file and called{place} as a statement without `await`, \
                      `void` or `.catch`, so its rejection is unhandled.",
        advice: "Await it, return it, or add `.catch`; `void` in front says that it is meant.",
        grade: SmellGrade::new(P2, Medium, Confidence::Medium),
    },
    LostErrorText {
        kind: LostErrorKind::Unwrap,
        title: "`unwrap()` on `{name}` can panic",
        explanation: "`unwrap()`{place} ends the thread with a panic if `{name}` is an error or nothing, outside of \
                      test code.",
        advice: "Give the error back with `?`, handle it, or use `expect` with the reason why it cannot happen.",
        grade: SmellGrade::new(P3, Low, Confidence::Medium),
    },
    LostErrorText {
        kind: LostErrorKind::Expect,
        title: "`expect()` on `{name}` can panic",
        explanation: "`expect()`{place} ends the thread with a panic if `{name}` is an error or nothing, outside of \
                      test code.",
        advice: "Give the error back with `?` or handle it.",
        grade: SmellGrade::new(P3, Low, Confidence::Low),
    },
    LostErrorText {
        kind: LostErrorKind::EmptyExpect,
        title: "`expect(\"\")` on `{name}` panics without a reason",
        explanation: "`expect`{place} has an empty message: it panics like `unwrap()` and says even less.",
        advice: "Say why it cannot fail, or give the error back with `?`.",
        grade: SmellGrade::new(P3, Low, Confidence::High),
    },
    LostErrorText {
        kind: LostErrorKind::Discarded,
        title: "the result of `{name}` is thrown away",
        explanation: "`{name}` can fail, and its result is assigned to `_`{place} without a comment that says why.",
        advice: "Handle the error or say in a comment why it may be ignored.",
        grade: SmellGrade::new(P3, Low, Confidence::Medium),
    },
    LostErrorText {
        kind: LostErrorKind::IgnoredReturn,
        title: "the error of `{name}` is ignored",
        explanation: "`{name}` returns an error and is called{place} as a statement, so the error is lost.",
        advice: "Check the error that it returns.",
        grade: SmellGrade::new(P2, Medium, Confidence::Medium),
    },
    LostErrorText {
        kind: LostErrorKind::BlankError,
        title: "the error of `{name}` is assigned to `_`",
        explanation: "The last value that `{name}` returns is an error, and it is assigned to `_`{place}.",
        advice: "Check the error before the value is used.",
        grade: SmellGrade::new(P2, Medium, Confidence::Medium),
    },
    LostErrorText {
        kind: LostErrorKind::UncheckedReturn,
        title: "the return value of `{name}` is not checked",
        explanation: "`{name}` tells of failures by its return value only, and the call{place} drops it.",
        advice: "Check the return value; a cast to void says that it is meant.",
        grade: SmellGrade::new(P2, Medium, Confidence::Medium),
    },
    LostErrorText {
        kind: LostErrorKind::UncheckedAllocation,
        title: "the result of `{name}` is used unchecked",
        explanation: "`{name}` returns a null pointer when it fails, and nothing in the {lines} lines below checks \
                      it{place}.",
        advice: "Compare the pointer to NULL before it is used.",
        grade: SmellGrade::new(P2, Medium, Confidence::Medium),
    },
    LostErrorText {
        kind: LostErrorKind::UncheckedCd,
        title: "`{name}` may fail and the script goes on",
        explanation: "The script does not stop on errors (no `set -e`) and this `cd` has no `||`, so what follows \
                      would run in the wrong directory.",
        advice: "Add `|| exit 1`, or `set -e` at the top.",
        grade: SmellGrade::new(P3, Medium, Confidence::High),
    },
    LostErrorText {
        kind: LostErrorKind::Suppressed,
        title: "`{name}` hides its errors",
        explanation: "The operator `@`{place} suppresses every error and warning of the call, and its result is not \
                      looked at.",
        advice: "Drop the `@` and check the result.",
        grade: SmellGrade::new(P3, Low, Confidence::Medium),
    },
    LostErrorText {
        kind: LostErrorKind::OptionalTry,
        title: "`try?` drops the error of `{name}`",
        explanation: "`try?`{place} turns an error into nil, and nothing looks at the value, so a failure leaves no \
                      trace.",
        advice: "Catch the error, or say in a comment why it may be ignored.",
        grade: SmellGrade::new(P3, Low, Confidence::Medium),
    },
    LostErrorText {
        kind: LostErrorKind::ForcedTry,
        title: "`try!` on `{name}` can crash",
        explanation: "`try!`{place} ends the process if `{name}` throws, outside of test code.",
        advice: "Pass the error on with `try`, or catch it.",
        grade: SmellGrade::new(P3, Low, Confidence::Medium),
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_in_the_order_of_the_kinds() {
        for (at, text) in TEXTS.iter().enumerate() {
            assert_eq!(text.kind as usize, at, "{:?}", text.kind);
        }
    }

    #[test]
    fn templates_are_filled_in_one_pass() {
        let text = LostErrorText::of_kind(LostErrorKind::NarrowEmptyHandler);
        let words = LostErrorWords { name: "{place}", place: " in `f`" };
        assert_eq!(text.title(&words), "a handler of `{place}` is empty");
        assert_eq!(
            text.explanation(&words),
            "The handler of `{place}` in `f` does nothing and no comment says why that is fine."
        );
        let text = LostErrorText::of_kind(LostErrorKind::EmptyHandler);
        assert_eq!(text.title(&LostErrorWords { name: "", place: "" }), "a handler swallows every error");
    }
}
