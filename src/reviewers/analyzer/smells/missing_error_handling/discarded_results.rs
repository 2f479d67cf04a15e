//! Finds dropped results: Go errors, Rust results, C return values, `cd` in a shell script.

use super::super::syntax::last_identifier;
use super::node_roles::ErrorNodeRole;
use super::{LostErrorCollector, LostErrorKind, function_lists};
use crate::syntax::language::Language;
use crate::syntax::source::{MAX_SEARCHED_BYTES, NodeIndex};

/// Maximum distance from an allocation to its null check below, in lines.
pub(super) const MAX_LINES_TO_NULL_CHECK: usize = 10;
/// Maximum distance from an `unwrap` to a check for a value above it, in lines.
const MAX_LINES_SINCE_CHECK: usize = 3;

/// Maximum length of these lines together, in bytes.
const MAX_BYTES_SINCE_CHECK: usize = 4_000;
/// Maximum length of the lines that are searched for a null check, in bytes.
const MAX_BYTES_TO_NULL_CHECK: usize = 8_000;

/// Functions of the file that return an error (Go: last result; Rust: `Result`), and calls that drop their result.
#[derive(Default)]
pub(super) struct FallibleCalls<'a> {
    names: Vec<&'a str>,
    /// Rust: true if the file declares a method `unwrap` of its own.
    pub has_own_unwrap: bool,
    dropped_calls: Vec<(NodeIndex, LostErrorKind, &'a str, &'a str)>,
}

impl<'a> FallibleCalls<'a> {
    pub fn add_function(&mut self, reader: &LostErrorCollector<'a, '_>, index: NodeIndex) {
        let source = reader.source;
        let fields = &reader.roles.fields;
        if !matches!(source.language, Language::Go | Language::Rust) {
            return;
        }
        let (Some(name), Some(body)) =
            (source.child_by_field(index, fields.name), source.child_by_field(index, fields.body))
        else {
            return;
        };
        self.has_own_unwrap |= source.bytes(&source.nodes[name]) == b"unwrap";
        let head = source.text_up_to(&source.nodes[name], &source.nodes[body]).trim_ascii_end();
        let fails = match source.language {
            Language::Go => head.ends_with(b" error") || head.ends_with(b"error)") || head.ends_with(b")error"),
            _ => head.windows(2).rposition(|pair| pair == b"->").is_some_and(|arrow| {
                let result = head[arrow + 2..].trim_ascii();
                last_identifier(result.split(|&byte| byte == b'<').next().unwrap_or(b"")) == "Result"
            }),
        };
        if fails {
            self.names.push(reader.text(name));
        }
    }

    /// Records a call for the check at the end of the file, because functions may be defined below their calls.
    fn add_dropped_call(&mut self, node: NodeIndex, what: LostErrorKind, name: &'a str, shown: &'a str) {
        self.dropped_calls.push((node, what, name, shown));
    }

    pub fn finish(mut self, reader: &mut LostErrorCollector<'a, '_>) {
        self.names.sort_unstable();
        for (node, what, name, shown) in self.dropped_calls {
            if self.names.binary_search(&name).is_ok() {
                reader.push(node, what, shown);
            }
        }
    }
}

impl<'a> LostErrorCollector<'a, '_> {
    /// Returns the callee of a call expression: its node and its text.
    fn callee(&self, call: NodeIndex) -> Option<(NodeIndex, &'a str)> {
        let function = self.source.child_by_field(call, self.roles.fields.function)?;
        Some((function, self.text(function)))
    }

    fn is_call(&self, index: NodeIndex) -> bool {
        let source = self.source;
        source.child_by_field(index, self.roles.fields.function).is_some()
            && source.child_by_field(index, self.roles.fields.arguments).is_some()
    }

    /// Checks Rust's `unwrap` and `expect`, and JavaScript's `.catch(() => {})`.
    pub(super) fn check_call(&mut self, index: NodeIndex) {
        let source = self.source;
        let fields = &self.roles.fields;
        let Some(function) = source.child_by_field(index, fields.function) else { return };
        if !self.roles.is_member(source.nodes[function].kind) {
            return;
        }
        if source.language != Language::Rust {
            return self.check_promise_handler(index, function);
        }
        let Some(method) = source.child_by_field(function, fields.field) else { return };
        let Some(receiver) = source.child_by_field(function, fields.value) else { return };
        let Some(arguments) = source.child_by_field(index, fields.arguments) else { return };
        let what = match source.bytes(&source.nodes[method]) {
            b"unwrap" if self.limits.report_unwrap => LostErrorKind::Unwrap,
            b"expect" if source.bytes(&source.nodes[arguments]) == b"(\"\")" => LostErrorKind::EmptyExpect,
            b"expect" if self.limits.report_expect => LostErrorKind::Expect,
            _ => return,
        };
        if self.is_infallible(receiver) {
            return;
        }
        self.push(index, what, self.text(receiver));
        // A chain over several lines is explained by a comment on the line of its method, or on the line above.
        if let Some(case) = self.cases.last_mut() {
            case.rows = (source.nodes[method].row.saturating_sub(1), source.nodes[method].row);
        }
    }

    /// Returns whether the result is known when the code is written: the parsing of a literal, or a lock that only a
    /// panic poisons.
    fn is_infallible(&self, receiver: NodeIndex) -> bool {
        let source = self.source;
        let fields = &self.roles.fields;
        let text = self.text(receiver);
        source.work().spend_bytes(text.len());
        // Writing into a String does not fail, and a check of the value just above counts as handling.
        if text.starts_with("write!") || text.starts_with("writeln!") || self.is_checked_above(receiver) {
            return true;
        }
        let Some(function) = source.child_by_field(receiver, fields.function) else { return false };
        let Some(arguments) = source.child_by_field(receiver, fields.arguments) else { return false };
        let head = self.text(function);
        let name = last_identifier(head.as_bytes());
        let arguments = self.text(arguments).trim_start_matches('(').trim_end_matches(')').trim();
        if function_lists::RUST_POISONING_CALLS.contains(&name) && (arguments.is_empty() || name.starts_with("wait")) {
            return true;
        }
        let literal = |text: &str| {
            text.starts_with(['"', '\''])
                || text.starts_with("r\"")
                || text.starts_with("r#")
                || text.starts_with("b\"")
                || text.starts_with(|c: char| c.is_ascii_digit())
        };
        (literal(arguments) && head.contains("::") && function_lists::RUST_DECODERS.contains(&name))
            || (literal(head) && name != "get")
            || (name == "try_into" && text.contains('['))
    }

    /// Returns whether the lines just above check the value before `unwrap`: `if list.is_empty() { return }`.
    fn is_checked_above(&self, receiver: NodeIndex) -> bool {
        let source = self.source;
        let node = &source.nodes[receiver];
        let base = self.text(receiver).trim_start_matches(['(', '*', '&']);
        let end = base.rfind('.').filter(|_| base.ends_with(')')).unwrap_or(base.len());
        let base = base[..end].trim();
        let start = node.start as usize;
        let before = source.text.get(start.saturating_sub(MAX_BYTES_SINCE_CHECK)..start).unwrap_or(b"");
        source.work().spend_bytes(before.len());
        let above = before.rsplit(|&byte| byte == b'\n').take(MAX_LINES_SINCE_CHECK + 1);
        let checks = [".is_some", ".is_none", ".is_empty", ".is_ok", ".is_err", ".contains", ".len()", ".has_"];
        above
            .filter_map(|line| std::str::from_utf8(line).ok())
            .any(|line| line.contains(base) && checks.iter().any(|check| line.contains(check)))
    }

    pub(super) fn check_statement(&mut self, index: NodeIndex, fallible: &mut FallibleCalls<'a>) {
        let source = self.source;
        let Some(call) = self.named_children(index).next().filter(|&call| self.is_call(call)) else { return };
        let Some((_, callee)) = self.callee(call) else { return };
        let name = last_identifier(callee.as_bytes());
        match source.language {
            Language::Go => {
                let dotted = callee.contains('.');
                let is_common = name == "Close" || dotted && function_lists::GO_COMMON_METHODS.contains(&name);
                if function_lists::GO_ERROR_FUNCTIONS.contains(&callee)
                    || (dotted && function_lists::GO_ERROR_METHODS.contains(&name))
                {
                    self.push(call, LostErrorKind::IgnoredReturn, callee);
                } else if !is_common && !callee.contains('(') && callee.matches('.').count() < 2 {
                    fallible.add_dropped_call(call, LostErrorKind::IgnoredReturn, name, callee);
                }
            }
            Language::C | Language::Cpp if self.limits.unchecked_c_returns => {
                let plain = callee.strip_prefix("std::").or(callee.strip_prefix("::")).unwrap_or(callee);
                if function_lists::C_STATUS_FUNCTIONS.contains(&plain) {
                    self.push(call, LostErrorKind::UncheckedReturn, plain);
                }
            }
            Language::Rust if name == "ok" => {
                let member = source.child_by_field(call, self.roles.fields.function);
                if let Some(inner) = member.and_then(|member| source.child_by_field(member, self.roles.fields.value)) {
                    self.check_discarded(inner, fallible);
                }
            }
            _ => {}
        }
    }

    /// Checks a Rust call whose result is dropped on purpose.
    fn check_discarded(&mut self, call: NodeIndex, fallible: &mut FallibleCalls<'a>) {
        let Some((_, callee)) = self.callee(call) else { return };
        let name = last_identifier(callee.as_bytes());
        let shown = if callee.contains(['\n', '(']) { name } else { callee };
        if function_lists::RUST_FALLIBLE_FUNCTIONS.contains(&name) {
            self.push(call, LostErrorKind::Discarded, shown);
        } else if !callee.contains('.') || callee.starts_with("self.") {
            fallible.add_dropped_call(call, LostErrorKind::Discarded, name, shown);
        }
    }

    pub(super) fn check_assignment(&mut self, index: NodeIndex, fallible: &mut FallibleCalls<'a>) {
        let source = self.source;
        let fields = &self.roles.fields;
        match source.language {
            Language::Rust => {
                let pattern = source.child_by_field(index, fields.pattern);
                if pattern.is_some_and(|pattern| source.bytes(&source.nodes[pattern]) == b"_")
                    && let Some(value) = source.child_by_field(index, fields.value)
                {
                    self.check_discarded(value, fallible);
                }
            }
            Language::Go => self.check_blank_identifier(index, fallible),
            Language::C | Language::Cpp if self.limits.unchecked_c_returns => self.check_allocation(index),
            _ => {}
        }
    }

    /// Checks Go's `_ = f()` and `value, _ := f()`.
    fn check_blank_identifier(&mut self, index: NodeIndex, fallible: &mut FallibleCalls<'a>) {
        let source = self.source;
        let fields = &self.roles.fields;
        let (Some(left), Some(right)) =
            (source.child_by_field(index, fields.left), source.child_by_field(index, fields.right))
        else {
            return;
        };
        let left = self.text(left);
        let Some(before) = left.strip_suffix('_').map(str::trim_end) else { return };
        let mut values = self.named_children(right);
        let (Some(call), None) = (values.next(), values.next()) else { return };
        drop(values);
        if !self.is_call(call) {
            return;
        }
        let Some((_, callee)) = self.callee(call) else { return };
        let name = last_identifier(callee.as_bytes());
        let package = callee.split_once('.').map_or("", |(package, _)| package);
        let all_blank = before.split(',').all(|value| matches!(value.trim(), "" | "_"));
        let what = if all_blank { LostErrorKind::Discarded } else { LostErrorKind::BlankError };
        if !all_blank && !before.ends_with(',') {
            return;
        }
        let known = match all_blank {
            true => {
                function_lists::GO_ERROR_FUNCTIONS.contains(&callee)
                    || (!package.is_empty() && function_lists::GO_ERROR_METHODS.contains(&name))
            }
            false => {
                (function_lists::GO_ERROR_PACKAGES.contains(&package)
                    && !function_lists::GO_INFALLIBLE_FUNCTIONS.contains(&name))
                    || (callee.contains('.') && function_lists::GO_VALUE_AND_ERROR_METHODS.contains(&name))
                    || matches!(callee, "time.Parse" | "time.ParseDuration" | "time.LoadLocation")
            }
        };
        if known {
            self.push(call, what, callee);
        } else if name != "Close"
            && !callee.contains('(')
            && (package.is_empty() || !function_lists::GO_COMMON_METHODS.contains(&name))
        {
            fallible.add_dropped_call(call, what, name, callee);
        }
    }

    /// Checks a C pointer that the lines below do not compare to NULL.
    fn check_allocation(&mut self, index: NodeIndex) {
        let source = self.source;
        let fields = &self.roles.fields;
        let Some(mut value) =
            source.child_by_field(index, fields.value).or_else(|| source.child_by_field(index, fields.right))
        else {
            return;
        };
        // Skip casts.
        while !self.is_call(value) {
            let Some(inner) = source.child_by_field(value, fields.value) else { return };
            value = inner;
        }
        let Some((_, callee)) = self.callee(value) else { return };
        if !function_lists::C_NULLABLE_FUNCTIONS.contains(&callee) {
            return;
        }
        let Some(target) =
            source.child_by_field(index, fields.declarator).or_else(|| source.child_by_field(index, fields.left))
        else {
            return;
        };
        let target_text = source.bytes(&source.nodes[target]);
        let variable = last_identifier(target_text);
        // As a part of a condition or of a larger expression, the result is used there.
        let parent = source.parent(index);
        let stands_alone =
            self.role(parent) == ErrorNodeRole::Statement || source.child_by_field(index, fields.declarator).is_some();
        if variable.is_empty() || !stands_alone {
            return;
        }
        let after = source.text.get(source.nodes[index].end as usize..).unwrap_or(b"");
        let after = &after[..after.len().min(MAX_BYTES_TO_NULL_CHECK)];
        source.work().spend_bytes(after.len());
        let checked = after.split(|&byte| byte == b'\n').take(MAX_LINES_TO_NULL_CHECK + 1).any(|line| {
            let Ok(line) = std::str::from_utf8(line) else { return false };
            let looks = [
                "if", "assert", "?", "NULL", "nullptr", "while", "return", "&&", "||", "ERR", "CHECK", "check", "die",
                "EXPECT",
            ];
            line.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|word| word == variable)
                && looks.iter().any(|look| line.contains(look))
        });
        if !checked {
            self.push(value, LostErrorKind::UncheckedAllocation, callee);
        }
    }

    /// Checks `cd somewhere` on a line of its own in a shell script.
    pub(super) fn check_command(&mut self, index: NodeIndex) {
        let source = self.source;
        let text = self.text(index);
        let Some(target) = text.strip_prefix("cd").filter(|rest| rest.starts_with([' ', '\t'])) else { return };
        let target = target.trim();
        if matches!(target, "" | "-" | ".." | "/" | "~" | "$HOME" | "\"$HOME\"" | "\"${HOME}\"")
            || target.starts_with("- ")
        {
            return;
        }
        let parent = source.parent(index);
        if source.nodes[index].field != 0 && source.nodes[index].field == self.roles.fields.condition {
            return;
        }
        if !self.joins_commands(parent) && !self.is_redirected_in_list(parent) {
            self.push(index, LostErrorKind::UncheckedCd, text);
        }
    }

    /// Returns whether a node is a list, a negation or a pipe of commands: then the script uses the exit status.
    fn joins_commands(&mut self, parent: NodeIndex) -> bool {
        let source = self.source;
        let is_sign = |child: NodeIndex| matches!(source.bytes(&source.nodes[child]), b"&&" | b"||" | b"!" | b"|");
        *self.command_lists.entry(parent).or_insert_with(|| source.children(parent).any(is_sign))
    }

    /// Returns whether a node is a redirection whose exit status the script uses: `cd x >/dev/null || exit`. The
    /// redirection is a node between command and list, and its text starts with the command.
    fn is_redirected_in_list(&self, parent: NodeIndex) -> bool {
        let source = self.source;
        let text = source.text_prefix(&source.nodes[parent], MAX_SEARCHED_BYTES);
        text.starts_with("cd")
            && text.contains('>')
            && source
                .children(source.parent(parent))
                .any(|child| matches!(source.bytes(&source.nodes[child]), b"&&" | b"||"))
    }
}

/// Returns whether a shell script stops at the first error: `set -e`, `set -o errexit`, or `-e` on the first line.
pub(super) fn stops_on_errors(text: &[u8]) -> bool {
    let flag = |words: &[u8]| {
        let mut words = words.split(|byte| byte.is_ascii_whitespace()).filter(|word| !word.is_empty());
        let mut option = false;
        words.any(|word| {
            let short = word.starts_with(b"-") && !word.starts_with(b"--") && word.contains(&b'e');
            let long = option && word == b"errexit";
            option = word.ends_with(b"o");
            short || long
        })
    };
    text.split(|&byte| byte == b'\n').enumerate().any(|(number, line)| {
        let line = line.trim_ascii();
        let shebang = number == 0 && line.starts_with(b"#!") && flag(&line[2..]);
        shebang
            || line
                .split(|&byte| byte == b';' || byte == b'&')
                .any(|part| part.trim_ascii().strip_prefix(b"set ").is_some_and(flag))
    })
}
