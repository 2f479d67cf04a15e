//! MAGIC_NUMBERS: numbers in comparisons, arithmetic and calls that no name explains, and texts written out three times.
//!
//! A number is judged on the way up from it: whatever gives it a name, tabulates it or uses it as an index ends the way
//! without a finding. A comment on its line explains it as well. What the lists hold is in `assets/smells.toml`.

mod report;
mod roles;
#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use self::roles::{Role, Roles};
use super::Smell;
use super::hardcoded_configuration::Hidden;
use super::syntax::{commented, has_word, is_upper_case, last_name};
use crate::provider::builtin::facts::Facts;
use crate::provider::builtin::language::Language;
use crate::provider::builtin::limits::{Limits, MagicNumbers};
use crate::provider::builtin::source::{NodeIndex, Source};

static ROLES: LazyLock<[Roles; 13]> = LazyLock::new(|| Language::ALL.map(Roles::new));

/// Farther up nothing is looked at. Nodes.
const MAX_STEPS: usize = 24;

/// Where a number stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    Comparison,
    Arithmetic,
    Argument,
}

impl Use {
    fn word(self) -> &'static str {
        match self {
            Self::Comparison => "in a comparison",
            Self::Arithmetic => "in arithmetic",
            Self::Argument => "as an argument",
        }
    }
}

/// What [`Judge::named`] found.
enum Naming {
    /// The name says what the number is.
    Explained,
    /// It is not a name after all: an argument without one.
    Transparent,
    /// An assignment that calculates: `x *= 37`.
    Calculated,
    /// The name is that of a larger expression.
    Unexplained,
}

struct Hit<'a> {
    /// [`Facts::NONE`] outside of functions.
    function: u32,
    literal: &'a str,
    row: u32,
    usage: Use,
}

/// See the module.
pub fn check(source: &Source<'_>, facts: &Facts, limits: &Limits, hidden: &Hidden, out: &mut Vec<Smell>) {
    if facts.is_test_file || is_generated(source.path) {
        return;
    }
    let judge = Judge { source, roles: &ROLES[source.language.index()], limits: &limits.magic_numbers };
    let mut hits: Vec<Hit<'_>> = Vec::new();
    let mut texts: Vec<(&[u8], u32)> = Vec::new();
    let mut comments: Vec<(u32, u32)> = Vec::new();
    for (index, node) in source.nodes.iter().enumerate() {
        match judge.roles.of(node.kind) {
            Role::Number => {
                if let Some(usage) = judge.number(index)
                    && !facts.is_test_at(index)
                {
                    let function = facts.function_of.get(index).copied().unwrap_or(Facts::NONE);
                    hits.push(Hit { function, literal: source.text(node), row: node.row, usage });
                }
            }
            Role::Text => {
                if let Some(content) = judge.text(index)
                    && !facts.is_test_at(index)
                    && !hidden.overlaps(node.start as usize..node.end as usize)
                {
                    texts.push((content, node.row));
                }
            }
            Role::Comment => comments.push((node.row, node.end_row)),
            _ => {}
        }
    }
    hits.retain(|hit| {
        let function = facts.functions.get(hit.function as usize);
        let is_formula = function.is_some_and(|function| has_word(&function.name, &limits.magic_numbers.formulas));
        !is_formula && !commented(&comments, hit.row, hit.row)
    });
    report::numbers(hits, facts, limits, out);
    report::texts(texts, limits, out);
}

struct Judge<'a, 's> {
    source: &'s Source<'a>,
    roles: &'static Roles,
    limits: &'s MagicNumbers,
}

impl<'a> Judge<'a, '_> {
    fn role(&self, index: NodeIndex) -> Role {
        self.roles.of(self.source.nodes[index].kind)
    }

    /// How an unexplained number is used; `None` for one that is explained or does no harm.
    fn number(&self, index: NodeIndex) -> Option<Use> {
        let source = self.source;
        let mut value = value_of(source.text(&source.nodes[index]))?;
        if self.limits.allowed.contains(&value) {
            return None;
        }
        let mut usage: Option<Use> = None;
        // Everything passed so far is made of literals only.
        let mut pure = true;
        let mut child = index;
        for _ in 0..MAX_STEPS {
            let parent = source.parent(child);
            if parent == child {
                break;
            }
            match self.role(parent) {
                Role::Through => {
                    if usage.is_none() && child == index && source.text[source.nodes[parent].start as usize] == b'-' {
                        value = -value;
                        if self.limits.allowed.contains(&value) {
                            return None;
                        }
                    }
                }
                Role::Binary => self.binary(parent, child, value, &mut usage, &mut pure)?,
                Role::Arguments => self.arguments(parent, child, value, &mut usage, &mut pure)?,
                Role::Call => {
                    if usage.is_none() {
                        pure = false;
                    }
                }
                Role::Named => match self.named(parent, child, value, pure, usage) {
                    Naming::Explained => return None,
                    Naming::Transparent => {}
                    Naming::Calculated => usage = usage.or(Some(Use::Arithmetic)),
                    Naming::Unexplained => pure = false,
                },
                Role::Declaration if self.is_constant_declaration(parent, child) => return None,
                Role::Declaration => break,
                Role::Skip | Role::Interpolation => return None,
                _ => break,
            }
            child = parent;
        }
        // A minute's seconds, a year's days: where the line speaks of time.
        let line = self.limits.time_values.contains(&value.abs()).then(|| source.line_of(&source.nodes[index]));
        let is_time =
            line.is_some_and(|line| std::str::from_utf8(line).is_ok_and(|line| mentions(line, &self.limits.units)));
        usage.filter(|_| !is_time)
    }

    fn binary(
        &self,
        parent: NodeIndex,
        child: NodeIndex,
        value: f64,
        usage: &mut Option<Use>,
        pure: &mut bool,
    ) -> Option<()> {
        let source = self.source;
        let operator = self.operator(parent);
        let Some(kind) = operator_use(operator) else {
            return match operator {
                b"&&" | b"||" | b"and" | b"or" | b"??" | b"?:" => {
                    *pure = false;
                    usage.is_some().then_some(())
                }
                // Masks, shifts, concatenations and patterns: sizes of bits, layouts.
                _ => None,
            };
        };
        if operator == b"**" && value.abs() <= f64::from(self.limits.max_arity) {
            return None;
        }
        let other = source.children(parent).find(|&other| {
            other != child && source.nodes[other].is_named() && !is_operator(source.bytes(&source.nodes[other]))
        })?;
        if kind == Use::Arithmetic && self.role(other) == Role::Text {
            return None;
        }
        if self.is_constant(other) {
            return Some(());
        }
        *pure = false;
        if usage.is_some() {
            return Some(());
        }
        if self.explains(value, kind, operator, source.text(&source.nodes[other])) {
            return None;
        }
        *usage = Some(kind);
        Some(())
    }

    /// Whether the other side of an operator says what a number is.
    fn explains(&self, value: f64, kind: Use, operator: &[u8], other: &str) -> bool {
        let limits = self.limits;
        if kind == Use::Arithmetic {
            if limits.allowed_in_arithmetic.contains(&value.abs()) {
                return true;
            }
            let offset = matches!(operator, b"+" | b"-" | b"+=" | b"-=");
            if offset && value.fract() == 0.0 && value.abs() <= f64::from(limits.max_offset) {
                return true;
            }
        }
        let name = other.trim_end_matches(|c: char| !is_word_char(c));
        let name = last_name(name.as_bytes());
        let arity = kind == Use::Comparison && value.fract() == 0.0 && value.abs() <= f64::from(limits.max_arity);
        // `time.Second`, `MAX_ROWS / 3`: the other side is a unit, a code, a version.
        (kind == Use::Arithmetic && has_word(name, &limits.units))
            || (kind == Use::Comparison && mentions(other, &limits.codes))
            || (arity && mentions(other, &limits.sizes))
            // A shell's number of arguments and last status.
            || other.contains("$#")
            || other.contains("$?")
    }

    fn arguments(
        &self,
        parent: NodeIndex,
        child: NodeIndex,
        value: f64,
        usage: &mut Option<Use>,
        pure: &mut bool,
    ) -> Option<()> {
        let source = self.source;
        let call = source.parent(parent);
        let head = source.before(&source.nodes[call], &source.nodes[parent]);
        let callee = last_name(head);
        let head = std::str::from_utf8(head).unwrap_or("");
        if usage.is_some() {
            // Inside of a check for tests or of a format the whole expression is explained.
            return (!has_word(callee, &self.limits.text_sinks)).then_some(());
        }
        if is_wrapper(callee) {
            return Some(());
        }
        let mut count = 0;
        let mut all_constant = true;
        for argument in source.children(parent).filter(|&argument| source.nodes[argument].is_named()) {
            if self.role(argument) == Role::Comment {
                continue;
            }
            count += 1;
            if argument != child && !self.is_constant(argument) {
                all_constant = false;
            }
            // `strncmp(name, "file:", 5)`: the length of the text beside it.
            let text = match self.role(argument) {
                // A cast in front of it.
                Role::Through => source.nodes[argument + 1..source.nodes[argument].end_index as usize]
                    .iter()
                    .find(|node| self.roles.of(node.kind) == Role::Text),
                Role::Text => Some(&source.nodes[argument]),
                _ => None,
            };
            if argument != child
                && let Some(text) = text
            {
                let inside = f64::from(text.end - text.start) - 2.0;
                if (value - inside).abs() <= 1.0 {
                    return None;
                }
            }
        }
        let limits = self.limits;
        if has_word(callee, &limits.telling_calls) || has_word(callee, &limits.text_sinks) || is_upper_case(callee) {
            return None;
        }
        if count == 1
            && (has_word(callee, &limits.units) || has_word(callee, &limits.sizes) || has_word(callee, &limits.codes))
        {
            return None;
        }
        let is_status = value.fract() == 0.0 && (100.0..600.0).contains(&value);
        if is_status && (has_word(callee, &limits.http_calls) || mentions(head, &limits.codes)) {
            return None;
        }
        if limits.allowed_in_arithmetic.contains(&value.abs()) || value.abs() <= f64::from(limits.max_argument) {
            return None;
        }
        let is_type = callee.starts_with(char::is_uppercase) || head.contains("::") || head.starts_with("new ");
        *pure = *pure && all_constant && is_type;
        *usage = Some(Use::Argument);
        Some(())
    }

    /// What a construct that gives names says about a number in it.
    fn named(&self, parent: NodeIndex, child: NodeIndex, value: f64, pure: bool, usage: Option<Use>) -> Naming {
        let source = self.source;
        let fields = &self.roles.fields;
        let node = &source.nodes[parent];
        let head = source.before(node, &source.nodes[child]);
        // A C# or PHP argument without a name is no name.
        let is_argument = self.role(source.parent(parent)) == Role::Arguments;
        if is_argument && !head.iter().any(|&byte| matches!(byte, b':' | b'=' | b'>')) {
            return Naming::Transparent;
        }
        let operator = source
            .child_in(parent, fields.operator)
            .map(|operator| source.bytes(&source.nodes[operator]))
            .or_else(|| compound_operator(head));
        if let Some(operator) = operator
            && let Some(Use::Arithmetic) = operator_use(operator)
        {
            let left = std::str::from_utf8(head).unwrap_or("").trim_end_matches(|c: char| !is_word_char(c));
            if usage.is_none() && self.explains(value, Use::Arithmetic, operator, left) {
                return Naming::Explained;
            }
            return Naming::Calculated;
        }
        if pure {
            return Naming::Explained;
        }
        let end = head.iter().position(|&byte| matches!(byte, b'=' | b':')).unwrap_or(head.len());
        let declared = last_name(&head[..end]);
        let declared = if self.source.language == Language::Rust { last_name(head) } else { declared };
        if is_upper_case(declared) { Naming::Explained } else { Naming::Unexplained }
    }

    fn is_constant_declaration(&self, parent: NodeIndex, child: NodeIndex) -> bool {
        let source = self.source;
        let head = source.before(&source.nodes[parent], &source.nodes[child]);
        let words: &[&[u8]] = match source.language {
            // Everything is declared `const` there: it says nothing.
            Language::JavaScript | Language::TypeScript | Language::Tsx => return false,
            _ => &[b"const", b"final", b"readonly", b"static", b"constexpr", b"constinit", b"-r"],
        };
        head.split(|byte| !byte.is_ascii_alphanumeric() && *byte != b'-').any(|word| words.contains(&word))
    }

    fn operator(&self, binary: NodeIndex) -> &'a [u8] {
        let source = self.source;
        source
            .children(binary)
            .map(|child| source.bytes(&source.nodes[child]))
            .find(|bytes| is_operator(bytes))
            .unwrap_or(b"")
    }

    /// Whether an expression is made of literals and constants only.
    fn is_constant(&self, index: NodeIndex) -> bool {
        let source = self.source;
        let mut at = index;
        let end = source.nodes[index].end_index as usize;
        while at < end {
            let node = &source.nodes[at];
            match self.role(at) {
                Role::Interpolation => return false,
                Role::Text if source.descendants(at).any(|inner| self.role(inner) == Role::Interpolation) => {
                    return false;
                }
                Role::Number | Role::Constant | Role::Text => at = node.end_index as usize,
                _ if node.is_named() && node.end_index as usize == at + 1 && !is_operator(source.bytes(node)) => {
                    if !is_upper_case(source.text(node)) {
                        return false;
                    }
                    at += 1;
                }
                _ => at += 1,
            }
        }
        true
    }

    /// The content of a text that counts towards repetitions.
    fn text(&self, index: NodeIndex) -> Option<&'a [u8]> {
        let source = self.source;
        let node = &source.nodes[index];
        let bytes = source.bytes(node);
        // Prefixes (`r#"`, `b'`, `@"`) and threefold quotes are no content.
        let start = bytes.iter().position(|byte| matches!(byte, b'"' | b'\'' | b'`'))?;
        let content = bytes[start..].trim_ascii();
        let ends_with_code = |byte: &u8| !matches!(byte, b'"' | b'\'' | b'`' | b'#');
        let first = content.iter().position(ends_with_code)?;
        let last = content.iter().rposition(ends_with_code)?;
        let content = content.get(first..=last)?;
        let limits = self.limits;
        if (content.len() as u64) < u64::from(limits.min_string_length) || content.contains(&b'\n') {
            return None;
        }
        if source.descendants(index).any(|inner| self.role(inner) == Role::Interpolation) {
            return None;
        }
        let text = std::str::from_utf8(content).ok()?;
        if !is_telling(text) || limits.trivial_strings.iter().any(|trivial| trivial.eq_ignore_ascii_case(text)) {
            return None;
        }
        let mut child = index;
        // The nearest construct decides; a text deep inside of a log message's arguments is for people, too.
        for step in 0..MAX_STEPS {
            let parent = source.parent(child);
            if parent == child {
                break;
            }
            match self.role(parent) {
                Role::Key | Role::Interpolation => return None,
                // There the type checker holds such words: they are types.
                Role::Binary | Role::Named if is_typed(source.language) && !text.contains([' ', '/']) => return None,
                Role::Statement if step == 0 => return None,
                Role::Named => {
                    let head = source.before(&source.nodes[parent], &source.nodes[child]);
                    let is_argument = self.role(source.parent(parent)) == Role::Arguments;
                    if (head.is_empty() && !is_argument) || is_upper_case(last_name(head)) {
                        return None;
                    }
                }
                Role::Skip => return None,
                Role::Declaration => {
                    if self.is_constant_declaration(parent, child) {
                        return None;
                    }
                    break;
                }
                Role::Arguments => {
                    let call = source.parent(parent);
                    let head = source.before(&source.nodes[call], &source.nodes[parent]);
                    if has_word(last_name(head), &limits.text_sinks) {
                        return None;
                    }
                }
                Role::Binary if step == 0 => {
                    // `typeof x === "string"`: the words of the language.
                    let other = source.bytes(&source.nodes[parent]);
                    if other.starts_with(b"typeof") || other.windows(7).any(|part| part == b" typeof") {
                        return None;
                    }
                }
                Role::Through | Role::Call | Role::Binary => {}
                _ => break,
            }
            child = parent;
        }
        Some(content)
    }
}

/// Database migrations are written by tools and never changed.
fn is_generated(path: &str) -> bool {
    path.ends_with(".Designer.cs")
        || path.split('/').rev().skip(1).any(|folder| folder.eq_ignore_ascii_case("migrations"))
}

fn is_typed(language: Language) -> bool {
    matches!(language, Language::TypeScript | Language::Tsx)
}

fn is_word_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '>'
}

fn is_operator(bytes: &[u8]) -> bool {
    operator_use(bytes).is_some()
        || matches!(
            bytes,
            b"&&" | b"||" | b"and" | b"or" | b"??" | b"?:" | b"&" | b"|" | b"^" | b"<<" | b">>" | b">>>" | b"." | b".."
        )
        || (bytes.ends_with(b"=") && bytes.len() <= 4)
}

fn operator_use(operator: &[u8]) -> Option<Use> {
    Some(match operator {
        b"<" | b">" | b"<=" | b">=" | b"==" | b"!=" | b"===" | b"!==" | b"<>" | b"<=>" => Use::Comparison,
        b"-lt" | b"-gt" | b"-le" | b"-ge" | b"-eq" | b"-ne" => Use::Comparison,
        b"+" | b"-" | b"*" | b"/" | b"%" | b"**" | b"//" => Use::Arithmetic,
        b"+=" | b"-=" | b"*=" | b"/=" | b"%=" | b"**=" | b"//=" => Use::Arithmetic,
        _ => return None,
    })
}

/// `+=` of an assignment whose operator has no field.
fn compound_operator(head: &[u8]) -> Option<&[u8]> {
    let end = head.iter().rposition(|&byte| byte == b'=')?;
    head.get(end.checked_sub(1)?..=end)
}

/// Whether a name of the list is part of an expression, as a word of one of its names.
fn mentions(expression: &str, words: &[String]) -> bool {
    expression.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|name| !name.is_empty()).any(|name| {
        has_word(name, words) || words.iter().any(|word| name.len() > word.len() && name.ends_with(word.as_str()))
    })
}

/// Calls that only change the type of a number.
fn is_wrapper(callee: &str) -> bool {
    matches!(
        callee,
        "Some"
            | "Ok"
            | "Err"
            | "Number"
            | "BigInt"
            | "Integer"
            | "Long"
            | "valueOf"
            | "Float"
            | "float"
            | "int"
            | "Decimal"
            | "int64"
            | "int32"
            | "uint"
            | "uint8"
            | "uint16"
            | "uint32"
            | "uint64"
            | "float64"
            | "float32"
            | "time.Duration"
            | "Duration"
            | "static_cast"
    )
}

/// The value of a literal; `None` for hexadecimal, octal and binary ones, which are layouts, and for what is no number.
fn value_of(literal: &str) -> Option<f64> {
    let bytes = literal.as_bytes();
    if bytes.first() == Some(&b'0')
        && bytes.get(1).is_some_and(|byte| {
            byte.is_ascii_alphanumeric()
                && !matches!(
                    byte,
                    b'e' | b'E' | b'f' | b'F' | b'd' | b'D' | b'l' | b'L' | b'u' | b'U' | b'm' | b'i' | b'n'
                )
        })
    {
        return None;
    }
    let mut digits = [0u8; 40];
    let mut length = 0;
    for &byte in bytes {
        match byte {
            b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-' => {
                *digits.get_mut(length)? = byte;
                length += 1;
            }
            b'_' | b'\'' => {}
            _ => break,
        }
    }
    std::str::from_utf8(&digits[..length]).ok()?.trim_end_matches(['e', 'E']).parse().ok()
}

/// Letters that make a word, and not only placeholders of a format.
fn is_telling(text: &str) -> bool {
    let mut run = 0;
    let mut best = 0;
    for c in text.chars() {
        run = if c.is_alphabetic() { run + 1 } else { 0 };
        best = best.max(run);
    }
    best >= 4 && !text.contains('%') && !text.contains('{') && !text.contains('\\')
}
