//! MISSING_ERROR_HANDLING: errors that the code ignores, by the rules of each language.
//!
//! A comment in an empty handler, or on the line of an ignored result, explains it. Test code is left alone. The names of
//! functions are matched as they are written: without types that is all there is, so the lists hold well-known ones only.

mod comments;
mod ignored;
mod names;
mod parts;
mod promises;
#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use self::parts::{Part, Parts};
use super::Smell;
use super::syntax::{commented, compact};
use crate::domain::{Confidence, Kind, Priority, Severity, Suggestion};
use crate::provider::builtin::facts::Facts;
use crate::provider::builtin::language::Language;
use crate::provider::builtin::limits::{Limits, MissingErrorHandling};
use crate::provider::builtin::source::{NodeIndex, Source};

static PARTS: LazyLock<[Parts; 13]> = LazyLock::new(|| Language::ALL.map(Parts::new));

/// A place where an error gets lost, before comments and tests are considered.
struct Case<'a> {
    node: NodeIndex,
    /// First and last row; a comment on them explains the case.
    rows: (u32, u32),
    what: What,
    /// The called function or the caught type, for the title.
    name: &'a str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    EmptyHandler,
    /// An empty handler for one certain error.
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

/// See the module.
pub fn check(source: &Source<'_>, facts: &Facts, limits: &Limits, out: &mut Vec<Smell>) {
    if facts.is_test_file || is_throwaway(source.path) {
        return;
    }
    let limits = &limits.missing_error_handling;
    let mut reader = Reader { source, parts: &PARTS[source.language.index()], limits, cases: Vec::new() };
    let mut comments = comments::Comments::default();
    let mut fallible = ignored::Fallible::default();
    let mut promises = promises::Promises::default();
    let strict_shell = source.language != Language::Bash || ignored::stops_on_errors(source.text);
    for (index, node) in source.nodes.iter().enumerate() {
        match reader.parts.of(node.kind) {
            Part::None => {}
            Part::Comment => comments.push(node, source.text(node), source.language),
            Part::Handler => reader.handler(index),
            Part::RescueModifier => reader.rescue_modifier(index),
            Part::If => reader.empty_error_check(index),
            Part::Call => reader.call(index),
            Part::Statement => {
                reader.statement(index, &mut fallible);
                if limits.floating_promises {
                    promises.statement(&reader, index);
                }
            }
            Part::Assignment => reader.assignment(index, &mut fallible),
            Part::Function => {
                fallible.function(&reader, index);
                promises.function(&reader, index);
            }
            Part::Command if !strict_shell => reader.command(index),
            Part::Command => {}
            Part::Suppression => reader.suppression(index),
        }
    }
    promises.finish(&mut reader);
    fallible.finish(&mut reader);
    let mut cases = reader.cases;
    cases.retain(|case| !commented(comments.explaining(), case.rows.0, case.rows.1) && !facts.is_test_at(case.node));
    cases.sort_by_key(|case| (case.node, case.what as u8));
    cases.dedup_by_key(|case| case.node);
    report(&cases, source, facts, limits, out);
}

struct Reader<'a, 's> {
    source: &'s Source<'a>,
    parts: &'static Parts,
    limits: &'s MissingErrorHandling,
    cases: Vec<Case<'a>>,
}

impl<'a> Reader<'a, '_> {
    fn part(&self, index: NodeIndex) -> Part {
        self.parts.of(self.source.nodes[index].kind)
    }

    fn text(&self, index: NodeIndex) -> &'a str {
        self.source.text(&self.source.nodes[index])
    }

    fn named_children(&self, index: NodeIndex) -> impl Iterator<Item = NodeIndex> + '_ {
        self.source.children(index).filter(|&child| self.source.nodes[child].is_named())
    }

    fn push(&mut self, node: NodeIndex, what: What, name: &'a str) {
        let at = &self.source.nodes[node];
        self.cases.push(Case { node, rows: (at.row, at.end_row), what, name });
    }

    /// `catch`, `except`, `rescue`.
    fn handler(&mut self, index: NodeIndex) {
        let source = self.source;
        let node = &source.nodes[index];
        let body = source
            .child_in(index, self.parts.fields.body)
            .or_else(|| self.named_children(index).last().filter(|&last| self.parts.is_block(source.nodes[last].kind)));
        let head = match body {
            Some(body) => source.before(node, &source.nodes[body]),
            None => source.bytes(node),
        };
        let head = std::str::from_utf8(head).unwrap_or("");
        let python = source.language == Language::Python;
        if python && head.trim_end().trim_end_matches(':').trim() == "except" {
            let raises = source.descendants(index).any(|inner| self.parts.is_raise(source.nodes[inner].kind));
            if !raises {
                self.push(index, What::BareExcept, "");
                if let Some(case) = self.cases.last_mut() {
                    case.rows.1 = case.rows.0;
                }
            }
            return;
        }
        let empty = match body {
            None => source.language == Language::Ruby,
            Some(body) => self.named_children(body).all(|statement| self.is_nothing(statement)),
        };
        if !empty || is_expected(head, &self.limits.expected_errors) {
            return;
        }
        let mut end = node.end_row;
        if source.language == Language::Ruby {
            // Comments there stand behind the node.
            end = source.nodes.get(node.end_index as usize).map_or(end, |next| next.row.max(end));
        }
        let what = match is_narrow(head, source.language) {
            true => What::NarrowEmptyHandler,
            false => What::EmptyHandler,
        };
        self.push(index, what, caught(head));
        if let Some(case) = self.cases.last_mut() {
            case.rows.1 = end;
        }
    }

    /// `pass`, `...`, `nil`, an empty statement. Comments are looked at elsewhere.
    fn is_nothing(&self, statement: NodeIndex) -> bool {
        self.part(statement) == Part::Comment || matches!(self.text(statement), "pass" | "..." | "nil" | ";" | "()")
    }

    /// Ruby: `value = risky rescue nil`.
    fn rescue_modifier(&mut self, index: NodeIndex) {
        if self.named_children(index).last().is_some_and(|handler| self.text(handler) == "nil") {
            self.push(index, What::RescueNil, "");
        }
    }

    /// Go: `if err != nil {}`.
    fn empty_error_check(&mut self, index: NodeIndex) {
        let (source, fields) = (self.source, &self.parts.fields);
        let (Some(condition), Some(body)) =
            (source.child_in(index, fields.condition), source.child_in(index, fields.consequence))
        else {
            return;
        };
        let condition = self.text(condition);
        let is_error = condition.ends_with("!= nil") && condition.to_ascii_lowercase().starts_with("err");
        if is_error && self.named_children(body).next().is_none() {
            self.push(index, What::EmptyErrorCheck, condition);
        }
    }

    /// PHP: `@unlink($file)`.
    fn suppression(&mut self, index: NodeIndex) {
        let parent = self.source.parent(index);
        // Where the result is looked at, the error is handled.
        let ignored = self.part(parent) == Part::Statement;
        let text = self.text(index);
        if ignored && !text.contains("trigger_error") {
            self.push(index, What::Suppressed, text);
        }
    }
}

/// Build scripts, examples and benchmarks may give up on errors.
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

/// Whether a handler's head names only errors that are part of ordinary work, or its variable says that it is ignored.
fn is_expected(head: &str, expected: &[String]) -> bool {
    let mut words =
        head.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$')).filter(|word| !word.is_empty());
    words.any(|word| {
        matches!(word, "ignored" | "ignore" | "expected" | "_ignored" | "_expected" | "_")
            || expected.iter().any(|name| name == word)
    })
}

/// Whether a handler is for certain errors only. JavaScript has no such thing.
fn is_narrow(head: &str, language: Language) -> bool {
    if matches!(language, Language::JavaScript | Language::TypeScript | Language::Tsx) {
        return false;
    }
    let types = caught(head);
    let broad = ["Exception", "BaseException", "Throwable", "StandardError", "Error", "RuntimeException", "..."];
    !types.is_empty()
        && !types
            .split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.'))
            .any(|word| broad.contains(&word.rsplit('.').next().filter(|last| !last.is_empty()).unwrap_or(word)))
}

/// What stands between the keyword and the body.
fn caught(head: &str) -> &str {
    let rest = ["catch", "except", "rescue"].iter().find_map(|keyword| head.trim().strip_prefix(keyword)).unwrap_or("");
    let rest = rest.trim().trim_end_matches([':', '{']);
    let types = rest.split(" as ").next().unwrap_or(rest);
    let types = types.split("=>").next().unwrap_or(types);
    types.trim().trim_start_matches('(').trim_end_matches(')').trim()
}

/// Whether what is unwrapped is an option that the code itself fills, by the last call in front.
fn is_invariant(receiver: &str) -> bool {
    let last = receiver.strip_suffix(')').and_then(|text| text.rfind('(').map(|at| &text[..at])).unwrap_or("");
    let name = super::syntax::last_name(last.as_bytes());
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

fn report(cases: &[Case<'_>], source: &Source<'_>, facts: &Facts, limits: &MissingErrorHandling, out: &mut Vec<Smell>) {
    let max = limits.max_unwraps_per_function.max(1) as usize;
    let mut unwraps: Vec<(u32, usize, usize)> = Vec::new();
    for case in cases {
        let function = facts.function_of.get(case.node).copied().unwrap_or(Facts::NONE);
        if matches!(case.what, What::Unwrap | What::Expect) && function != Facts::NONE {
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
        out.push(smell(case, source, &place));
    }
}

fn smell(case: &Case<'_>, source: &Source<'_>, place: &str) -> Smell {
    use Confidence::{High, Low, Medium};
    let name = compact(case.name, 60);
    let of = if name.is_empty() { String::new() } else { format!(" of `{name}`") };
    let (title, explanation, advice, grade) = match case.what {
        What::EmptyHandler => (
            format!("a handler{of} swallows every error"),
            format!("The handler{place} catches every error and does nothing with it: it is neither logged nor raised again, and no comment says why."),
            "Handle the error, log it, raise it again, or say in a comment why it may be ignored.",
            (Priority::P2, Severity::Medium, High),
        ),
        What::NarrowEmptyHandler => (
            format!("a handler{of} is empty"),
            format!("The handler{of}{place} does nothing and no comment says why that is fine."),
            "Handle the error or say in a comment why it may be ignored.",
            (Priority::P3, Severity::Low, Medium),
        ),
        What::BareExcept => (
            "a bare `except:` catches everything".to_owned(),
            format!("`except:`{place} names no type and raises nothing again, so it swallows KeyboardInterrupt and SystemExit, too."),
            "Name the exceptions that are expected; `except Exception:` at the least.",
            (Priority::P2, Severity::Medium, High),
        ),
        What::RescueNil => (
            "`rescue nil` hides every error".to_owned(),
            format!("`rescue nil`{place} turns every StandardError of the expression into nil."),
            "Rescue the error that is expected, by name.",
            (Priority::P3, Severity::Low, High),
        ),
        What::EmptyErrorCheck => (
            format!("`if {name}` does nothing"),
            format!("The error is compared to nil{place} and then dropped: the block is empty."),
            "Return the error, handle it, or drop the comparison with a comment that says why.",
            (Priority::P2, Severity::Medium, High),
        ),
        What::EmptyPromiseHandler => (
            "`.catch()` with an empty function swallows rejections".to_owned(),
            format!("The function given to `.catch`{place} has no statement, so a rejection leaves no trace."),
            "Handle or log the rejection, or say in a comment why it may be ignored.",
            (Priority::P2, Severity::Medium, High),
        ),
        What::FloatingThen => (
            "a promise has no handler for its rejection".to_owned(),
            format!("The chain with `.then`{place} is neither awaited nor returned and has no `.catch`, so its rejection is unhandled."),
            "Await or return it, or add `.catch`.",
            (Priority::P2, Severity::Medium, Medium),
        ),
        What::FloatingCall => (
            format!("`{name}()` is asynchronous and not awaited"),
            format!("`{name}` is declared `async` in this file and called{place} as a statement without `await`, `void` or `.catch`, so its rejection is unhandled."),
            "Await it, return it, or add `.catch`; `void` in front says that it is meant.",
            (Priority::P2, Severity::Medium, Medium),
        ),
        What::Unwrap => (
            format!("`unwrap()` on `{name}` can panic"),
            format!("`unwrap()`{place} ends the thread with a panic if `{name}` is an error or nothing, outside of test code."),
            "Give the error back with `?`, handle it, or use `expect` with the reason why it cannot happen.",
            // Where nothing is asked of the world it is the author's own invariant.
            (Priority::P3, Severity::Low, if is_invariant(case.name) { Low } else { Medium }),
        ),
        What::Expect => (
            format!("`expect()` on `{name}` can panic"),
            format!("`expect()`{place} ends the thread with a panic if `{name}` is an error or nothing, outside of test code."),
            "Give the error back with `?` or handle it.",
            (Priority::P3, Severity::Low, Low),
        ),
        What::EmptyExpect => (
            format!("`expect(\"\")` on `{name}` panics without a reason"),
            format!("`expect`{place} has an empty message: it panics like `unwrap()` and says even less."),
            "Say why it cannot fail, or give the error back with `?`.",
            (Priority::P3, Severity::Low, High),
        ),
        What::Discarded => (
            format!("the result of `{name}` is thrown away"),
            format!("`{name}` can fail, and its result is assigned to `_`{place} without a comment that says why."),
            "Handle the error or say in a comment why it may be ignored.",
            (Priority::P3, Severity::Low, Medium),
        ),
        What::IgnoredReturn => (
            format!("the error of `{name}` is ignored"),
            format!("`{name}` returns an error and is called{place} as a statement, so the error is lost."),
            "Check the error that it returns.",
            (Priority::P2, Severity::Medium, Medium),
        ),
        What::BlankError => (
            format!("the error of `{name}` is assigned to `_`"),
            format!("The last value that `{name}` returns is an error, and it is assigned to `_`{place}."),
            "Check the error before the value is used.",
            (Priority::P2, Severity::Medium, Medium),
        ),
        What::UncheckedReturn => (
            format!("the return value of `{name}` is not checked"),
            format!("`{name}` tells of failures by its return value only, and the call{place} drops it."),
            "Check the return value; a cast to void says that it is meant.",
            (Priority::P2, Severity::Medium, Medium),
        ),
        What::UncheckedAllocation => (
            format!("the result of `{name}` is used unchecked"),
            format!("`{name}` returns a null pointer when it fails, and nothing in the {} lines below checks it{place}.", ignored::LINES_TO_CHECK),
            "Compare the pointer to NULL before it is used.",
            (Priority::P2, Severity::Medium, Medium),
        ),
        What::UncheckedCd => (
            format!("`{name}` may fail and the script goes on"),
            "The script does not stop on errors (no `set -e`) and this `cd` has no `||`, so what follows would run in the wrong directory.".to_owned(),
            "Add `|| exit 1`, or `set -e` at the top.",
            (Priority::P3, Severity::Medium, High),
        ),
        What::Suppressed => (
            format!("`{name}` hides its errors"),
            format!("The operator `@`{place} suppresses every error and warning of the call, and its result is not looked at."),
            "Drop the `@` and check the result.",
            (Priority::P3, Severity::Low, Medium),
        ),
    };
    let node = &source.nodes[case.node];
    let (first, last) = (node.row + 1, node.end_row.min(node.row + 3) + 1);
    let last = if matches!(case.what, What::FloatingThen | What::EmptyPromiseHandler | What::Unwrap) {
        node.end_row.max(node.row) + 1
    } else {
        last
    };
    // A chain over several lines is shown by its end, where the call that panics is.
    let (first, last) =
        if matches!(case.what, What::Unwrap | What::Expect | What::EmptyExpect) { (last, last) } else { (first, last) };
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
        subject: format!("{}{place}: {}", case.what as u8, if name.is_empty() { own } else { name }),
        anchor: (first, last),
        figure: None,
        quote: None,
        pattern: None,
        suggestion: Some(Suggestion { text: advice.to_owned(), replacement: None, lines: None }),
    }
}
