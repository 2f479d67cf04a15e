//! MISSING_ERROR_HANDLING: reports errors that the code ignores, by the rules of each language.
//!
//! A comment in an empty handler, or on the line of an ignored result, explains the case. Test code is not checked.
//! Functions are matched by their names as written, because there is no type information; therefore the lists contain
//! only well-known names.

mod comments;
mod discarded_results;
mod function_lists;
mod node_roles;
mod promises;
#[cfg(test)]
mod tests;

use self::node_roles::{ErrorNodeRole, ErrorNodeRoles};
use super::Smell;
use super::syntax::{compact, has_comment_on_rows};
use crate::domain::{Confidence, Kind, Priority, Severity, Suggestion};
use crate::reviewers::analyzer::limits::{Limits, MissingErrorHandling};
use crate::syntax::definition::PerLanguage;
use crate::syntax::facts::FileFacts;
use crate::syntax::language::Language;
use crate::syntax::source::{NodeIndex, ParsedFile};

static ROLES: PerLanguage<ErrorNodeRoles> = PerLanguage::new(ErrorNodeRoles::new);

/// Code that loses an error, before comments and tests are considered.
struct LostError<'a> {
    node: NodeIndex,
    /// First and last row; a comment on one of them explains the case.
    rows: (u32, u32),
    kind: LostErrorKind,
    /// The called function or the caught type, for the title.
    name: &'a str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LostErrorKind {
    EmptyHandler,
    /// An empty handler for a certain error.
    NarrowEmptyHandler,
    BareExcept,
    RescueNil,
    EmptyErrorCheck,
    EmptyPromiseHandler,
    FloatingThen,
    FloatingCall,
    Unwrap,
    Expect,
    EmptyExpect,
    Discarded,
    IgnoredReturn,
    BlankError,
    UncheckedReturn,
    UncheckedAllocation,
    UncheckedCd,
    Suppressed,
}

/// Reports the lost errors of a file.
pub fn check(source: &ParsedFile<'_>, facts: &FileFacts, limits: &Limits, out: &mut Vec<Smell>) {
    if facts.is_test_file || is_throwaway(source.path) {
        return;
    }
    let limits = &limits.missing_error_handling;
    let mut reader = LostErrorCollector { source, roles: ROLES.get(source.language), limits, cases: Vec::new() };
    let mut comments = comments::ExplainingComments::default();
    let mut fallible = discarded_results::FallibleCalls::default();
    let mut promises = promises::FloatingPromises::default();
    let strict_shell = source.language != Language::Bash || discarded_results::stops_on_errors(source.text);
    for (index, node) in source.nodes.iter().enumerate() {
        match reader.roles.role(node.kind) {
            ErrorNodeRole::None => {}
            ErrorNodeRole::Comment => comments.push(node, source.text(node), source.language),
            ErrorNodeRole::Handler => reader.check_handler(index),
            ErrorNodeRole::RescueModifier => reader.check_rescue_modifier(index),
            ErrorNodeRole::If => reader.check_error_condition(index),
            ErrorNodeRole::Call => reader.check_call(index),
            ErrorNodeRole::Statement => {
                reader.check_statement(index, &mut fallible);
                if limits.floating_promises {
                    promises.add_statement(&reader, index);
                }
            }
            ErrorNodeRole::Assignment => reader.check_assignment(index, &mut fallible),
            ErrorNodeRole::Function => {
                fallible.add_function(&reader, index);
                promises.add_function(&reader, index);
            }
            ErrorNodeRole::Command if !strict_shell => reader.check_command(index),
            ErrorNodeRole::Command => {}
            ErrorNodeRole::Suppression => reader.check_suppression(index),
        }
    }
    promises.finish(&mut reader);
    fallible.finish(&mut reader);
    let mut cases = reader.cases;
    cases.retain(|case| {
        !has_comment_on_rows(comments.row_ranges(), case.rows.0, case.rows.1) && !facts.is_test_at(case.node)
    });
    cases.sort_by_key(|case| (case.node, case.kind as u8));
    cases.dedup_by_key(|case| case.node);
    report(&cases, source, facts, limits, out);
}

struct LostErrorCollector<'a, 's> {
    source: &'s ParsedFile<'a>,
    roles: &'static ErrorNodeRoles,
    limits: &'s MissingErrorHandling,
    cases: Vec<LostError<'a>>,
}

impl<'a> LostErrorCollector<'a, '_> {
    fn role(&self, index: NodeIndex) -> ErrorNodeRole {
        self.roles.role(self.source.nodes[index].kind)
    }

    fn text(&self, index: NodeIndex) -> &'a str {
        self.source.text(&self.source.nodes[index])
    }

    fn named_children(&self, index: NodeIndex) -> impl Iterator<Item = NodeIndex> + '_ {
        self.source.children(index).filter(|&child| self.source.nodes[child].is_named())
    }

    fn push(&mut self, node: NodeIndex, what: LostErrorKind, name: &'a str) {
        let at = &self.source.nodes[node];
        self.cases.push(LostError { node, rows: (at.row, at.end_row), kind: what, name });
    }

    /// Checks a handler: `catch`, `except`, `rescue`.
    fn check_handler(&mut self, index: NodeIndex) {
        let source = self.source;
        let node = &source.nodes[index];
        let body = source
            .child_by_field(index, self.roles.fields.body)
            .or_else(|| self.named_children(index).last().filter(|&last| self.roles.is_block(source.nodes[last].kind)));
        let head = match body {
            Some(body) => source.text_up_to(node, &source.nodes[body]),
            None => source.bytes(node),
        };
        let head = std::str::from_utf8(head).unwrap_or("");
        let python = source.language == Language::Python;
        if python && head.trim_end().trim_end_matches(':').trim() == "except" {
            let raises = source.descendants(index).any(|inner| self.roles.is_raise(source.nodes[inner].kind));
            if !raises {
                self.push(index, LostErrorKind::BareExcept, "");
                if let Some(case) = self.cases.last_mut() {
                    case.rows.1 = case.rows.0;
                }
            }
            return;
        }
        let empty = match body {
            None => source.language == Language::Ruby,
            Some(body) => self.named_children(body).all(|statement| self.is_no_op(statement)),
        };
        if !empty || is_expected(head, &self.limits.expected_errors) {
            return;
        }
        let mut end = node.end_row;
        if source.language == Language::Ruby {
            // Comments of an empty Ruby handler follow its node.
            end = source.nodes.get(node.end_index as usize).map_or(end, |next| next.row.max(end));
        }
        let what = match is_narrow(head, source.language) {
            true => LostErrorKind::NarrowEmptyHandler,
            false => LostErrorKind::EmptyHandler,
        };
        self.push(index, what, caught_types(head));
        if let Some(case) = self.cases.last_mut() {
            case.rows.1 = end;
        }
    }

    /// Returns whether a statement does nothing: `pass`, `...`, `nil`, an empty statement, or a comment. Comments are
    /// considered elsewhere.
    fn is_no_op(&self, statement: NodeIndex) -> bool {
        self.role(statement) == ErrorNodeRole::Comment
            || matches!(self.text(statement), "pass" | "..." | "nil" | ";" | "()")
    }

    /// Checks Ruby's `value = risky rescue nil`.
    fn check_rescue_modifier(&mut self, index: NodeIndex) {
        if self.named_children(index).last().is_some_and(|handler| self.text(handler) == "nil") {
            self.push(index, LostErrorKind::RescueNil, "");
        }
    }

    /// Checks Go's `if err != nil {}`.
    fn check_error_condition(&mut self, index: NodeIndex) {
        let (source, fields) = (self.source, &self.roles.fields);
        let (Some(condition), Some(body)) =
            (source.child_by_field(index, fields.condition), source.child_by_field(index, fields.consequence))
        else {
            return;
        };
        let condition = self.text(condition);
        let is_error = condition.ends_with("!= nil") && condition.to_ascii_lowercase().starts_with("err");
        if is_error && self.named_children(body).next().is_none() {
            self.push(index, LostErrorKind::EmptyErrorCheck, condition);
        }
    }

    /// Checks PHP's `@unlink($file)`.
    fn check_suppression(&mut self, index: NodeIndex) {
        let parent = self.source.parent(index);
        // If the code uses the result, it handles the error.
        let ignored = self.role(parent) == ErrorNodeRole::Statement;
        let text = self.text(index);
        if ignored && !text.contains("trigger_error") {
            self.push(index, LostErrorKind::Suppressed, text);
        }
    }
}

/// Returns whether a file may give up on errors: build scripts, examples, benchmarks and test utilities.
fn is_throwaway(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name == "build.rs"
        || name.contains("testutil")
        || name.contains("test_util")
        || path
            .split('/')
            .rev()
            .skip(1)
            .any(|folder| matches!(folder, "examples" | "example" | "benches" | "bench" | "xtask"))
}

/// Returns whether the head of a handler names an error that is part of normal work, or a variable that says that it is
/// ignored.
fn is_expected(head: &str, expected: &[String]) -> bool {
    let mut words =
        head.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$')).filter(|word| !word.is_empty());
    words.any(|word| {
        matches!(word, "ignored" | "ignore" | "expected" | "_ignored" | "_expected" | "_")
            || expected.iter().any(|name| name == word)
    })
}

/// Returns whether a handler catches certain errors only. JavaScript has no such handlers.
fn is_narrow(head: &str, language: Language) -> bool {
    if matches!(language, Language::JavaScript | Language::TypeScript | Language::Tsx) {
        return false;
    }
    let types = caught_types(head);
    let broad = ["Exception", "BaseException", "Throwable", "StandardError", "Error", "RuntimeException", "..."];
    !types.is_empty()
        && !types
            .split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.'))
            .any(|word| broad.contains(&word.rsplit('.').next().filter(|last| !last.is_empty()).unwrap_or(word)))
}

/// Returns the text between the keyword and the body of a handler: the caught types.
fn caught_types(head: &str) -> &str {
    let rest = ["catch", "except", "rescue"].iter().find_map(|keyword| head.trim().strip_prefix(keyword)).unwrap_or("");
    let rest = rest.trim().trim_end_matches([':', '{']);
    let types = rest.split(" as ").next().unwrap_or(rest);
    let types = types.split("=>").next().unwrap_or(types);
    types.trim().trim_start_matches('(').trim_end_matches(')').trim()
}

/// Returns whether the unwrapped value is an option that the code itself fills, by the last call before `unwrap`.
fn is_invariant(receiver: &str) -> bool {
    let last = receiver.strip_suffix(')').and_then(|text| text.rfind('(').map(|at| &text[..at])).unwrap_or("");
    let name = super::syntax::last_identifier(last.as_bytes());
    matches!(
        name,
        "" | "as_ref"
            | "as_mut"
            | "as_deref"
            | "last"
            | "last_mut"
            | "first"
            | "first_mut"
            | "pop"
            | "take"
            | "next"
            | "get"
            | "get_mut"
            | "iter"
            | "min"
            | "max"
            | "peek"
            | "parent"
            | "try_from"
    )
}

fn report(
    cases: &[LostError<'_>],
    source: &ParsedFile<'_>,
    facts: &FileFacts,
    limits: &MissingErrorHandling,
    out: &mut Vec<Smell>,
) {
    let max = limits.max_unwraps_per_function.max(1) as usize;
    let mut unwraps: Vec<(u32, usize, usize)> = Vec::new();
    for case in cases {
        let function = facts.innermost_function.get(case.node).copied().unwrap_or(FileFacts::NO_FUNCTION);
        if matches!(case.kind, LostErrorKind::Unwrap | LostErrorKind::Expect) && function != FileFacts::NO_FUNCTION {
            match unwraps.iter_mut().find(|(known, ..)| *known == function) {
                Some((_, count, last)) if *count >= max => {
                    *count += 1;
                    if let Some(smell) = out.get_mut(*last) {
                        smell.figure = Some(*count as f64);
                        let note = "; more of them follow in this function.";
                        if !smell.explanation.ends_with(note) {
                            smell.explanation = format!("{}{note}", smell.explanation.trim_end_matches('.'));
                        }
                    }
                    continue;
                }
                Some((_, count, last)) => {
                    *count += 1;
                    *last = out.len();
                }
                None => unwraps.push((function, 1, out.len())),
            }
        }
        let place = facts.function_at(case.node).map_or(String::new(), |function| format!(" in `{}`", function.name));
        out.push(build_smell(case, source, &place));
    }
}

fn build_smell(case: &LostError<'_>, source: &ParsedFile<'_>, place: &str) -> Smell {
    use Confidence::{High, Low, Medium};
    let name = compact(case.name, 60);
    let of = if name.is_empty() { String::new() } else { format!(" of `{name}`") };
    let (title, explanation, advice, grade) = match case.kind {
        LostErrorKind::EmptyHandler => (
            format!("a handler{of} swallows every error"),
            format!("The handler{place} catches every error and does nothing with it: it is neither logged nor raised again, and no comment says why."),
            "Handle the error, log it, raise it again, or say in a comment why it may be ignored.",
            (Priority::P2, Severity::Medium, High),
        ),
        LostErrorKind::NarrowEmptyHandler => (
            format!("a handler{of} is empty"),
            format!("The handler{of}{place} does nothing and no comment says why that is fine."),
            "Handle the error or say in a comment why it may be ignored.",
            (Priority::P3, Severity::Low, Medium),
        ),
        LostErrorKind::BareExcept => (
            "a bare `except:` catches everything".to_owned(),
            format!("`except:`{place} names no type and raises nothing again, so it swallows KeyboardInterrupt and SystemExit, too."),
            "Name the exceptions that are expected; `except Exception:` at the least.",
            (Priority::P2, Severity::Medium, High),
        ),
        LostErrorKind::RescueNil => (
            "`rescue nil` hides every error".to_owned(),
            format!("`rescue nil`{place} turns every StandardError of the expression into nil."),
            "Rescue the error that is expected, by name.",
            (Priority::P3, Severity::Low, High),
        ),
        LostErrorKind::EmptyErrorCheck => (
            format!("`if {name}` does nothing"),
            format!("The error is compared to nil{place} and then dropped: the block is empty."),
            "Return the error, handle it, or drop the comparison with a comment that says why.",
            (Priority::P2, Severity::Medium, High),
        ),
        LostErrorKind::EmptyPromiseHandler => (
            "`.catch()` with an empty function swallows rejections".to_owned(),
            format!("The function given to `.catch`{place} has no statement, so a rejection leaves no trace."),
            "Handle or log the rejection, or say in a comment why it may be ignored.",
            (Priority::P2, Severity::Medium, High),
        ),
        LostErrorKind::FloatingThen => (
            "a promise has no handler for its rejection".to_owned(),
            format!("The chain with `.then`{place} is neither awaited nor returned and has no `.catch`, so its rejection is unhandled."),
            "Await or return it, or add `.catch`.",
            (Priority::P2, Severity::Medium, Medium),
        ),
        LostErrorKind::FloatingCall => (
            format!("`{name}()` is asynchronous and not awaited"),
            format!("`{name}` is declared `async` in this file and called{place} as a statement without `await`, `void` or `.catch`, so its rejection is unhandled."),
            "Await it, return it, or add `.catch`; `void` in front says that it is meant.",
            (Priority::P2, Severity::Medium, Medium),
        ),
        LostErrorKind::Unwrap => (
            format!("`unwrap()` on `{name}` can panic"),
            format!("`unwrap()`{place} ends the thread with a panic if `{name}` is an error or nothing, outside of test code."),
            "Give the error back with `?`, handle it, or use `expect` with the reason why it cannot happen.",
            // A value that does not come from outside is an invariant of the author.
            (Priority::P3, Severity::Low, if is_invariant(case.name) { Low } else { Medium }),
        ),
        LostErrorKind::Expect => (
            format!("`expect()` on `{name}` can panic"),
            format!("`expect()`{place} ends the thread with a panic if `{name}` is an error or nothing, outside of test code."),
            "Give the error back with `?` or handle it.",
            (Priority::P3, Severity::Low, Low),
        ),
        LostErrorKind::EmptyExpect => (
            format!("`expect(\"\")` on `{name}` panics without a reason"),
            format!("`expect`{place} has an empty message: it panics like `unwrap()` and says even less."),
            "Say why it cannot fail, or give the error back with `?`.",
            (Priority::P3, Severity::Low, High),
        ),
        LostErrorKind::Discarded => (
            format!("the result of `{name}` is thrown away"),
            format!("`{name}` can fail, and its result is assigned to `_`{place} without a comment that says why."),
            "Handle the error or say in a comment why it may be ignored.",
            (Priority::P3, Severity::Low, Medium),
        ),
        LostErrorKind::IgnoredReturn => (
            format!("the error of `{name}` is ignored"),
            format!("`{name}` returns an error and is called{place} as a statement, so the error is lost."),
            "Check the error that it returns.",
            (Priority::P2, Severity::Medium, Medium),
        ),
        LostErrorKind::BlankError => (
            format!("the error of `{name}` is assigned to `_`"),
            format!("The last value that `{name}` returns is an error, and it is assigned to `_`{place}."),
            "Check the error before the value is used.",
            (Priority::P2, Severity::Medium, Medium),
        ),
        LostErrorKind::UncheckedReturn => (
            format!("the return value of `{name}` is not checked"),
            format!("`{name}` tells of failures by its return value only, and the call{place} drops it."),
            "Check the return value; a cast to void says that it is meant.",
            (Priority::P2, Severity::Medium, Medium),
        ),
        LostErrorKind::UncheckedAllocation => (
            format!("the result of `{name}` is used unchecked"),
            format!("`{name}` returns a null pointer when it fails, and nothing in the {} lines below checks it{place}.", discarded_results::MAX_LINES_TO_NULL_CHECK),
            "Compare the pointer to NULL before it is used.",
            (Priority::P2, Severity::Medium, Medium),
        ),
        LostErrorKind::UncheckedCd => (
            format!("`{name}` may fail and the script goes on"),
            "The script does not stop on errors (no `set -e`) and this `cd` has no `||`, so what follows would run in the wrong directory.".to_owned(),
            "Add `|| exit 1`, or `set -e` at the top.",
            (Priority::P3, Severity::Medium, High),
        ),
        LostErrorKind::Suppressed => (
            format!("`{name}` hides its errors"),
            format!("The operator `@`{place} suppresses every error and warning of the call, and its result is not looked at."),
            "Drop the `@` and check the result.",
            (Priority::P3, Severity::Low, Medium),
        ),
    };
    let node = &source.nodes[case.node];
    let (first, last) = (node.row + 1, node.end_row.min(node.row + 3) + 1);
    let last = if matches!(
        case.kind,
        LostErrorKind::FloatingThen | LostErrorKind::EmptyPromiseHandler | LostErrorKind::Unwrap
    ) {
        node.end_row.max(node.row) + 1
    } else {
        last
    };
    // A chain over several lines is reported on its last line, which has the call that panics.
    let (first, last) =
        if matches!(case.kind, LostErrorKind::Unwrap | LostErrorKind::Expect | LostErrorKind::EmptyExpect) {
            (last, last)
        } else {
            (first, last)
        };
    let own = compact(source.text(node).lines().next().unwrap_or(""), 80);
    Smell {
        kind: Kind::MissingErrorHandling,
        priority: grade.0,
        severity: grade.1,
        confidence: grade.2,
        line_start: first,
        line_end: last,
        title,
        explanation,
        subject: format!("{}{place}: {}", case.kind as u8, if name.is_empty() { own } else { name }),
        anchor: (first, last),
        figure: None,
        quote: None,
        pattern: None,
        suggestion: Some(Suggestion { text: advice.to_owned(), replacement: None, lines: None }),
    }
}
