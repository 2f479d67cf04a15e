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
mod texts;

use std::collections::HashMap;

use serde::Deserialize;

use self::node_roles::{ErrorNodeRole, ErrorNodeRoles};
use self::texts::{LostErrorText, LostErrorWords};
use super::syntax::{compact, has_comment_on_rows};
use super::{CheckedFile, GrowthComparison, Smell, SmellBuilder, SmellDefinition, SmellGrade};
use crate::domain::{Confidence, Kind, LineRange};
use crate::syntax::definition::PerLanguage;
use crate::syntax::facts::FileFacts;
use crate::syntax::language::Language;
use crate::syntax::source::{MAX_SEARCHED_BYTES, NodeIndex, ParsedFile};

/// MISSING_ERROR_HANDLING in the registry.
pub const SMELL: SmellDefinition =
    SmellDefinition { kind: Kind::MissingErrorHandling, check, growth: GrowthComparison::None };

/// Thresholds of MISSING_ERROR_HANDLING: the table `missing_error_handling` of `assets/smells.toml`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MissingErrorHandlingLimits {
    pub enabled: bool,
    pub report_unwrap: bool,
    pub report_expect: bool,
    pub unchecked_c_returns: bool,
    pub floating_promises: bool,
    pub max_unwraps_per_function: u32,
    pub expected_errors: Vec<String>,
}

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
    /// Swift's `try?` whose value nobody uses.
    OptionalTry,
    /// Swift's `try!`.
    ForcedTry,
}

/// Reports the lost errors of a file.
fn check(file: &CheckedFile<'_, '_>, out: &mut Vec<Smell>) {
    let CheckedFile { source, facts, limits, .. } = *file;
    if facts.is_test_file || is_throwaway(source.path) {
        return;
    }
    let limits = &limits.missing_error_handling;
    let mut reader = LostErrorCollector {
        source,
        roles: ROLES.get(source.language),
        limits,
        cases: Vec::new(),
        command_lists: HashMap::new(),
    };
    let mut comments = comments::ExplainingComments::default();
    let mut fallible = discarded_results::FallibleCalls::default();
    let mut promises = promises::FloatingPromises::default();
    let strict_shell = source.language != Language::Bash || discarded_results::stops_on_errors(source.text);
    for (index, node) in source.walk() {
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
    if fallible.has_own_unwrap {
        // The type of the value is not known, so that each call may be one of the own method.
        reader.cases.retain(|case| case.kind != LostErrorKind::Unwrap);
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
    limits: &'s MissingErrorHandlingLimits,
    cases: Vec<LostError<'a>>,
    /// For the parents of shell commands, true if one of their children joins or negates commands.
    command_lists: HashMap<NodeIndex, bool>,
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
        let is_scala = source.language == Language::Scala;
        // A case of Scala is a handler only in a `catch`.
        let around = source.parent(source.parent(index));
        if is_scala && source.text_prefix(&source.nodes[around], "catch".len()) != "catch" {
            return;
        }
        let body = source
            .child_by_field(index, self.roles.fields.body)
            .or_else(|| self.named_children(index).last().filter(|&last| self.roles.is_block(source.nodes[last].kind)));
        let head = match body {
            Some(body) => source.text_up_to(node, &source.nodes[body]),
            None => source.bytes(node),
        };
        let start = node.start as usize;
        let head = source.slice_text(start, start + head.len().min(MAX_SEARCHED_BYTES));
        // Without statements there is no node between the braces.
        let head = if source.language == Language::Swift { head.split('{').next().unwrap_or(head) } else { head };
        let python = source.language == Language::Python;
        // A comment may stand between the head and the first statement.
        let head = if python { head.split('#').next().unwrap_or(head) } else { head };
        if python && head.trim_end().trim_end_matches(':').trim() == "except" {
            let mut inside = source.descendants(index).take_while(|_| source.work().spend(1));
            let raises = inside.any(|inner| self.roles.is_raise(source.nodes[inner].kind));
            if !raises {
                self.push(index, LostErrorKind::BareExcept, "");
                if let Some(case) = self.cases.last_mut() {
                    case.rows.1 = case.rows.0;
                }
            }
            return;
        }
        let empty = match body {
            None => is_scala || source.language == Language::Swift || source.language == Language::Ruby,
            Some(body) if is_scala && !self.roles.is_block(source.nodes[body].kind) => self.is_no_op(body),
            Some(body) => self.named_children(body).all(|statement| self.is_no_op(statement)),
        };
        // In Scala, `_` names no error.
        let named = if is_scala { head.replace('_', " ") } else { head.to_owned() };
        if !empty || is_expected(&named, &self.limits.expected_errors) {
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
        if self.source.language == Language::Swift {
            return self.check_try(index);
        }
        let parent = self.source.parent(index);
        // If the code uses the result, it handles the error.
        let ignored = self.role(parent) == ErrorNodeRole::Statement;
        let text = self.text(index);
        if ignored && !text.contains("trigger_error") {
            self.push(index, LostErrorKind::Suppressed, text);
        }
    }
}

impl<'a> LostErrorCollector<'a, '_> {
    /// Checks Swift's `try?` without a use of its value, and `try!`.
    fn check_try(&mut self, index: NodeIndex) {
        let source = self.source;
        let mut parts = self.named_children(index);
        let (Some(operator), Some(called)) = (parts.next(), parts.next()) else { return };
        drop(parts);
        let name = self.text(called).split(['(', '{', '\n']).next().unwrap_or("").trim();
        let parent = source.parent(index);
        match self.text(operator) {
            "try!" => self.push(index, LostErrorKind::ForcedTry, name),
            "try?" => {
                // The value of the last statement may be the value of a closure or of a function.
                let is_last = source.nodes[parent].end_index == source.nodes[index].end_index;
                let is_statement = self.roles.is_block(source.nodes[parent].kind) && !is_last;
                let target = source.child_by_field(parent, self.roles.fields.left);
                if is_statement || target.is_some_and(|target| self.text(target) == "_") {
                    self.push(index, LostErrorKind::OptionalTry, name);
                }
            }
            _ => {}
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
    if language == Language::Scala && !types.contains(char::is_uppercase) {
        return false;
    }
    let broad =
        ["NonFatal", "Exception", "BaseException", "Throwable", "StandardError", "Error", "RuntimeException", "..."];
    !types.is_empty()
        && !types
            .split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.'))
            .any(|word| broad.contains(&word.rsplit('.').next().filter(|last| !last.is_empty()).unwrap_or(word)))
}

/// Returns the text between the keyword and the body of a handler: the caught types.
fn caught_types(head: &str) -> &str {
    // `case NonFatal(e) =>`, `case _: Exception =>`.
    if let Some(pattern) = head.trim().strip_prefix("case ") {
        let pattern = pattern.split("=>").next().unwrap_or(pattern).trim();
        return pattern.strip_prefix("_:").unwrap_or(pattern).trim();
    }
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
    limits: &MissingErrorHandlingLimits,
    out: &mut Vec<Smell>,
) {
    let max = limits.max_unwraps_per_function.max(1) as usize;
    // For each function, the number of its cases and the position of the last one that was reported.
    let mut unwraps: HashMap<u32, (usize, usize)> = HashMap::new();
    for case in cases {
        let function = facts.innermost_function.get(case.node).copied().unwrap_or(FileFacts::NO_FUNCTION);
        if matches!(case.kind, LostErrorKind::Unwrap | LostErrorKind::Expect) && function != FileFacts::NO_FUNCTION {
            match unwraps.get_mut(&function) {
                Some((count, last)) if *count >= max => {
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
                Some((count, last)) => {
                    *count += 1;
                    *last = out.len();
                }
                None => drop(unwraps.insert(function, (1, out.len()))),
            }
        }
        let place = facts.function_at(case.node).map_or(String::new(), |function| format!(" in `{}`", function.name));
        out.push(build_smell(case, source, &place));
    }
}

fn build_smell(case: &LostError<'_>, source: &ParsedFile<'_>, place: &str) -> Smell {
    let name = compact(case.name, 60);
    let own_line = || compact(source.text(&source.nodes[case.node]).lines().next().unwrap_or(""), 80);
    let subject = if name.is_empty() { own_line() } else { name.clone() };
    let text = LostErrorText::of_kind(case.kind);
    let words = LostErrorWords { name: &name, place };
    let lines = reported_lines(case, source);
    let builder = SmellBuilder {
        kind: Kind::MissingErrorHandling,
        grade: grade_case(case, text),
        lines,
        title: text.title(&words),
        explanation: text.explanation(&words),
        subject: format!("{}{place}: {subject}", case.kind as u8),
    };
    builder.build().with_anchor((lines.start, lines.end)).with_advice(text.advice)
}

/// Returns the grade of a case. An unwrapped value that does not come from outside is an invariant of the author.
fn grade_case(case: &LostError<'_>, text: &LostErrorText) -> SmellGrade {
    match case.kind {
        LostErrorKind::Unwrap if is_invariant(case.name) => SmellGrade { confidence: Confidence::Low, ..text.grade },
        _ => text.grade,
    }
}

/// Returns the lines of a finding: the first lines of the code. A chain over several lines is reported on its last
/// line, which has the call that panics.
fn reported_lines(case: &LostError<'_>, source: &ParsedFile<'_>) -> LineRange {
    const MAX_LINES: u32 = 4;
    let whole = source.node_lines(case.node);
    let head = LineRange::new(whole.start, whole.end.min(whole.start + MAX_LINES - 1));
    match case.kind {
        LostErrorKind::Unwrap => LineRange::new(whole.end, whole.end),
        LostErrorKind::Expect | LostErrorKind::EmptyExpect => LineRange::new(head.end, head.end),
        LostErrorKind::FloatingThen | LostErrorKind::EmptyPromiseHandler => whole,
        _ => head,
    }
}
