//! MAGIC_NUMBERS: reports numbers in comparisons, arithmetic and calls that no name explains, and repeated texts.
//!
//! The check walks up the tree from each number. A node that names the number, tabulates it or uses it as an index ends
//! the walk without a report. A comment on the line of the number explains it too. The word lists are in
//! `assets/smells.toml`.

mod literal_index;
mod literal_roles;
mod literal_text;
mod report;
#[cfg(test)]
mod tests;

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;

use serde::Deserialize;

use self::literal_index::{LiteralIndex, NextNodes};
use self::literal_roles::{LiteralRole, LiteralRoles};
use self::literal_text::{
    classify_operator, compound_operator, has_readable_word, is_conversion_call, is_operator, mentions_word,
    parse_literal,
};
use super::syntax::{has_comment_on_rows, has_word, is_upper_case, last_identifier};
use super::{CheckedFile, GrowthComparison, Smell, SmellDefinition};
use crate::domain::Kind;
use crate::syntax::conventions::{Conventions, conventions};
use crate::syntax::definition::PerLanguage;
use crate::syntax::facts::FileFacts;
use crate::syntax::language::Language;
use crate::syntax::source::{MAX_SEARCHED_BYTES, NodeIndex, ParsedFile};

/// MAGIC_NUMBERS in the registry.
pub const SMELL: SmellDefinition = SmellDefinition { kind: Kind::MagicNumbers, check, growth: GrowthComparison::None };

/// Thresholds of MAGIC_NUMBERS: the table `magic_numbers` of `assets/smells.toml`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MagicNumbersLimits {
    pub enabled: bool,
    pub allowed: Vec<f64>,
    pub allowed_in_arithmetic: Vec<f64>,
    pub max_offset: u32,
    pub max_arity: u32,
    pub max_argument: u32,
    pub time_values: Vec<f64>,
    pub units: Vec<String>,
    pub codes: Vec<String>,
    pub sizes: Vec<String>,
    pub telling_calls: Vec<String>,
    pub http_calls: Vec<String>,
    pub text_sinks: Vec<String>,
    pub formulas: Vec<String>,
    pub trivial_strings: Vec<String>,
    pub min_string_repeats: u32,
    pub min_string_length: u32,
    pub max_per_function: u32,
}

static ROLES: PerLanguage<LiteralRoles> = PerLanguage::new(LiteralRoles::new);

/// Maximum number of ancestors that are examined.
const MAX_ANCESTORS: usize = 24;

/// How the code uses a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NumberUse {
    Comparison,
    Arithmetic,
    Argument,
}

impl NumberUse {
    fn phrase(self) -> &'static str {
        match self {
            Self::Comparison => "in a comparison",
            Self::Arithmetic => "in arithmetic",
            Self::Argument => "as an argument",
        }
    }
}

/// Result of [`LiteralAnalyzer::check_naming`].
enum NamingVerdict {
    /// The name explains the number.
    Explained,
    /// Not a name: an argument without a name.
    Transparent,
    /// An assignment that computes: `x *= 37`.
    Calculated,
    /// The name belongs to a larger expression.
    Unexplained,
}

/// Arguments of a call.
#[derive(Default)]
struct CallArguments {
    count: usize,
    /// Number of arguments that are no literals and constants.
    variables: usize,
    /// Lengths of the texts without their quotes, in bytes, each with its argument; sorted.
    lengths: Vec<(f64, NodeIndex)>,
}

/// Arguments of the call that takes a number.
struct OtherArguments {
    /// Number of arguments, with the number itself.
    count: usize,
    /// True if all others consist of literals and constants.
    all_constant: bool,
}

struct UnexplainedNumber<'a> {
    /// [`FileFacts::NO_FUNCTION`] outside of functions.
    function: u32,
    literal: &'a str,
    row: u32,
    usage: NumberUse,
}

/// A text that counts as a repetition if the file has it again.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct CountedText<'a> {
    /// Without the quotes.
    content: &'a [u8],
    row: u32,
    /// First byte and end of the literal in the file.
    bytes: (u32, u32),
}

/// Reports the unexplained numbers and the repeated texts of a file.
fn check(file: &CheckedFile<'_, '_>, out: &mut Vec<Smell>) {
    let CheckedFile { source, facts, limits, hardcoded, .. } = *file;
    if facts.is_test_file || is_generated(source.path) {
        return;
    }
    let judge = LiteralAnalyzer {
        source,
        roles: ROLES.get(source.language),
        conventions: conventions(source.language),
        limits: &limits.magic_numbers,
        interpolations: OnceCell::new(),
        literals: OnceCell::new(),
        lists: RefCell::default(),
    };
    let mut hits: Vec<UnexplainedNumber<'_>> = Vec::new();
    let mut texts: Vec<CountedText<'_>> = Vec::new();
    let mut comments: Vec<(u32, u32)> = Vec::new();
    for (index, node) in source.walk() {
        match judge.roles.role(node.kind) {
            LiteralRole::Number => {
                if let Some(usage) = judge.classify_number(index)
                    && !facts.is_test_at(index)
                {
                    let function = facts.innermost_function.get(index).copied().unwrap_or(FileFacts::NO_FUNCTION);
                    hits.push(UnexplainedNumber { function, literal: source.text(node), row: node.row, usage });
                }
            }
            LiteralRole::Text => {
                if let Some(content) = judge.countable_text(index)
                    && !facts.is_test_at(index)
                {
                    texts.push(CountedText { content, row: node.row, bytes: (node.start, node.end) });
                }
            }
            LiteralRole::Comment => comments.push((node.row, node.end_row)),
            _ => {}
        }
    }
    hits.retain(|hit| {
        let function = facts.functions.get(hit.function as usize);
        let is_formula = function.is_some_and(|function| has_word(&function.name, &limits.magic_numbers.formulas));
        !is_formula && !has_comment_on_rows(&comments, hit.row, hit.row)
    });
    report::report_numbers(hits, facts, limits, out);
    let is_secret =
        |text: &CountedText<'_>| hardcoded.redactor().overlaps(text.bytes.0 as usize..text.bytes.1 as usize);
    report::report_repeated_texts(texts, is_secret, limits, out);
}

struct LiteralAnalyzer<'a, 's> {
    source: &'s ParsedFile<'a>,
    roles: &'static LiteralRoles,
    conventions: &'static Conventions,
    limits: &'s MagicNumbersLimits,
    /// Built when the first text needs it.
    interpolations: OnceCell<NextNodes>,
    /// Built when the first list of arguments or operator needs it.
    literals: OnceCell<LiteralIndex>,
    /// Argument lists that were read, by their nodes.
    lists: RefCell<HashMap<NodeIndex, CallArguments>>,
}

impl<'a> LiteralAnalyzer<'a, '_> {
    fn role(&self, index: NodeIndex) -> LiteralRole {
        self.roles.role(self.source.nodes[index].kind)
    }

    fn interpolations(&self) -> &NextNodes {
        self.interpolations.get_or_init(|| {
            NextNodes::new(self.source, |node| self.roles.role(node.kind) == LiteralRole::Interpolation)
        })
    }

    fn literals(&self) -> &LiteralIndex {
        self.literals.get_or_init(|| LiteralIndex::new(self.source, self.roles, self.interpolations()))
    }

    /// Returns how the code uses an unexplained number; `None` for a number that is explained or harmless.
    fn classify_number(&self, index: NodeIndex) -> Option<NumberUse> {
        let source = self.source;
        let mut value = parse_literal(source.text(&source.nodes[index]))?;
        if self.limits.allowed.contains(&value) {
            return None;
        }
        let mut usage: Option<NumberUse> = None;
        // True while all nodes on the way consist of literals only.
        let mut pure = true;
        let mut child = index;
        for _ in 0..MAX_ANCESTORS {
            let parent = source.parent(child);
            if parent == child {
                break;
            }
            match self.role(parent) {
                LiteralRole::Transparent => {
                    if usage.is_none() && child == index && source.text[source.nodes[parent].start as usize] == b'-' {
                        value = -value;
                        if self.limits.allowed.contains(&value) {
                            return None;
                        }
                    }
                }
                LiteralRole::Binary => self.check_binary(parent, child, value, &mut usage, &mut pure)?,
                LiteralRole::Arguments => self.check_arguments(parent, child, value, &mut usage, &mut pure)?,
                LiteralRole::Call if child == index && self.conventions.units_follow_numbers => return None,
                LiteralRole::Call => {
                    if usage.is_none() {
                        pure = false;
                    }
                }
                LiteralRole::Named => match self.check_naming(parent, child, value, pure, usage) {
                    NamingVerdict::Explained => return None,
                    NamingVerdict::Transparent => {}
                    NamingVerdict::Calculated => usage = usage.or(Some(NumberUse::Arithmetic)),
                    NamingVerdict::Unexplained => pure = false,
                },
                LiteralRole::Declaration if self.is_constant_declaration(parent, child) => return None,
                LiteralRole::Declaration => break,
                LiteralRole::Skip | LiteralRole::Interpolation => return None,
                _ => break,
            }
            child = parent;
        }
        // Seconds of a minute or days of a year are explained if their line names a unit of time.
        let usage = usage?;
        let line = self.limits.time_values.contains(&value.abs()).then(|| source.line_text(&source.nodes[index]));
        let is_time = line
            .is_some_and(|line| std::str::from_utf8(line).is_ok_and(|line| mentions_word(line, &self.limits.units)));
        source.work().spend_bytes(line.map_or(0, <[u8]>::len));
        (!is_time).then_some(usage)
    }

    fn check_binary(
        &self,
        parent: NodeIndex,
        child: NodeIndex,
        value: f64,
        usage: &mut Option<NumberUse>,
        pure: &mut bool,
    ) -> Option<()> {
        let source = self.source;
        let operator = self.operator_text(parent);
        let Some(kind) = classify_operator(operator) else {
            return match operator {
                b"&&" | b"||" | b"and" | b"or" | b"??" | b"?:" => {
                    *pure = false;
                    usage.is_some().then_some(())
                }
                // Masks, shifts, concatenations and patterns describe bits and layouts.
                _ => None,
            };
        };
        if operator == b"**" && value.abs() <= f64::from(self.limits.max_arity) {
            return None;
        }
        let other = source.children(parent).find(|&other| {
            other != child && source.nodes[other].is_named() && !is_operator(source.bytes(&source.nodes[other]))
        })?;
        if kind == NumberUse::Arithmetic && self.role(other) == LiteralRole::Text {
            return None;
        }
        if self.is_constant(other) {
            return Some(());
        }
        *pure = false;
        if usage.is_some() {
            return Some(());
        }
        if self.is_explained_by(value, kind, operator, source.text(&source.nodes[other])) {
            return None;
        }
        *usage = Some(kind);
        Some(())
    }

    /// Returns whether the other side of an operator explains a number.
    fn is_explained_by(&self, value: f64, kind: NumberUse, operator: &[u8], other: &str) -> bool {
        let limits = self.limits;
        let other = &other[other.ceil_char_boundary(other.len().saturating_sub(MAX_SEARCHED_BYTES))..];
        self.source.work().spend_bytes(other.len());
        if kind == NumberUse::Arithmetic {
            if limits.allowed_in_arithmetic.contains(&value.abs()) {
                return true;
            }
            let offset = matches!(operator, b"+" | b"-" | b"+=" | b"-=");
            if offset && value.fract() == 0.0 && value.abs() <= f64::from(limits.max_offset) {
                return true;
            }
        }
        let name = other.trim_end_matches(|c: char| !is_word_char(c));
        let name = last_identifier(name.as_bytes());
        let arity = kind == NumberUse::Comparison && value.fract() == 0.0 && value.abs() <= f64::from(limits.max_arity);
        // `time.Second`, `MAX_ROWS / 3`: the other side names a unit, a code or a size.
        (kind == NumberUse::Arithmetic && has_word(name, &limits.units))
            || (kind == NumberUse::Comparison && mentions_word(other, &limits.codes))
            || (arity && mentions_word(other, &limits.sizes))
            // Argument count and last exit status of a shell.
            || other.contains("$#")
            || other.contains("$?")
    }

    fn check_arguments(
        &self,
        parent: NodeIndex,
        child: NodeIndex,
        value: f64,
        usage: &mut Option<NumberUse>,
        pure: &mut bool,
    ) -> Option<()> {
        let source = self.source;
        let call = source.called_node(parent);
        let (start, end) = (source.nodes[call].start as usize, source.nodes[parent].start as usize);
        let near = start.max(end.saturating_sub(MAX_SEARCHED_BYTES));
        let head = source.text.get(near..end).unwrap_or_default();
        // `list[300]` of Swift, whose subscripts look like calls.
        let first = source.children(parent).next().map(|first| &source.nodes[first]);
        if first.is_some_and(|first| !first.is_named() && source.bytes(first) == b"[") {
            return None;
        }
        let callee = last_identifier(head);
        let head = source.slice_text(near, end);
        if usage.is_some() {
            // A call in `text_sinks`, such as an assertion or a format, explains the whole expression.
            return (!has_word(callee, &self.limits.text_sinks)).then_some(());
        }
        if is_conversion_call(callee) {
            return Some(());
        }
        if self.conventions.collection_calls.iter().any(|known| known == callee) {
            return None;
        }
        let OtherArguments { count, all_constant } = self.read_other_arguments(parent, child, value)?;
        let limits = self.limits;
        let is_bare = callee == head && callee.starts_with(char::is_lowercase);
        if count == 1 && is_bare && self.conventions.indices_look_like_calls {
            return None;
        }
        if has_word(callee, &limits.telling_calls) || has_word(callee, &limits.text_sinks) || is_upper_case(callee) {
            return None;
        }
        if count == 1
            && (has_word(callee, &limits.units) || has_word(callee, &limits.sizes) || has_word(callee, &limits.codes))
        {
            return None;
        }
        let is_status = value.fract() == 0.0 && (100.0..600.0).contains(&value);
        if is_status && (has_word(callee, &limits.http_calls) || mentions_word(head, &limits.codes)) {
            return None;
        }
        if limits.allowed_in_arithmetic.contains(&value.abs()) || value.abs() <= f64::from(limits.max_argument) {
            return None;
        }
        let is_type = callee.starts_with(char::is_uppercase) || head.contains("::") || head.starts_with("new ");
        *pure = *pure && all_constant && is_type;
        *usage = Some(NumberUse::Argument);
        Some(())
    }

    /// Reads the arguments of a call besides the one with the number; `None` if the number is the length of a text among
    /// them: `strncmp(name, "file:", 5)`.
    fn read_other_arguments(&self, list: NodeIndex, child: NodeIndex, value: f64) -> Option<OtherArguments> {
        let mut lists = self.lists.borrow_mut();
        let arguments = lists.entry(list).or_insert_with(|| self.read_arguments(list));
        let at = arguments.lengths.partition_point(|(length, _)| *length < value - 1.0);
        let mut near = arguments.lengths[at..].iter().take_while(|(length, _)| *length <= value + 1.0);
        // At most one of them belongs to the argument with the number.
        if near.any(|(_, argument)| *argument != child) {
            return None;
        }
        let variables = arguments.variables.saturating_sub(usize::from(!self.is_constant(child)));
        Some(OtherArguments { count: arguments.count, all_constant: variables == 0 })
    }

    /// Reads the arguments of a list.
    fn read_arguments(&self, list: NodeIndex) -> CallArguments {
        let source = self.source;
        let mut found = CallArguments::default();
        for argument in source.children(list).filter(|&argument| source.nodes[argument].is_named()) {
            if self.role(argument) == LiteralRole::Comment {
                continue;
            }
            found.count += 1;
            found.variables += usize::from(!self.is_constant(argument));
            let text = match self.role(argument) {
                // The text may be behind a cast.
                LiteralRole::Transparent => Some(self.literals().next_text(argument + 1)),
                LiteralRole::Text => Some(argument),
                _ => None,
            };
            if let Some(text) = text.filter(|&text| text < source.nodes[argument].end_index as usize) {
                let text = &source.nodes[text];
                found.lengths.push((f64::from(text.end - text.start) - 2.0, argument));
            }
        }
        found.lengths.sort_by(|a, b| a.0.total_cmp(&b.0));
        found
    }

    /// Decides if a construct that gives names explains a number in it.
    fn check_naming(
        &self,
        parent: NodeIndex,
        child: NodeIndex,
        value: f64,
        pure: bool,
        usage: Option<NumberUse>,
    ) -> NamingVerdict {
        let source = self.source;
        let fields = &self.roles.fields;
        let node = &source.nodes[parent];
        let head = source.text_up_to(node, &source.nodes[child]);
        let head = &head[head.len().saturating_sub(MAX_SEARCHED_BYTES)..];
        // An argument of C# or PHP without a name gives no name.
        let is_argument = self.role(source.parent(parent)) == LiteralRole::Arguments;
        if is_argument && !head.iter().any(|&byte| matches!(byte, b':' | b'=' | b'>')) {
            return NamingVerdict::Transparent;
        }
        let operator = source
            .child_by_field(parent, fields.operator)
            .map(|operator| source.bytes(&source.nodes[operator]))
            .or_else(|| compound_operator(head));
        if let Some(operator) = operator
            && let Some(NumberUse::Arithmetic) = classify_operator(operator)
        {
            let left = std::str::from_utf8(head).unwrap_or("").trim_end_matches(|c: char| !is_word_char(c));
            if usage.is_none() && self.is_explained_by(value, NumberUse::Arithmetic, operator, left) {
                return NamingVerdict::Explained;
            }
            return NamingVerdict::Calculated;
        }
        if pure {
            return NamingVerdict::Explained;
        }
        let end = head.iter().position(|&byte| matches!(byte, b'=' | b':')).unwrap_or(head.len());
        let declared = last_identifier(&head[..end]);
        let declared = if self.source.language == Language::Rust { last_identifier(head) } else { declared };
        if is_upper_case(declared) { NamingVerdict::Explained } else { NamingVerdict::Unexplained }
    }

    fn is_constant_declaration(&self, parent: NodeIndex, child: NodeIndex) -> bool {
        let source = self.source;
        let head = source.text_up_to(&source.nodes[parent], &source.nodes[child]);
        let head = &head[..head.len().min(MAX_SEARCHED_BYTES)];
        let words: &[&[u8]] = match source.language {
            // Nearly everything is declared `const` in these languages, so the word explains nothing.
            Language::JavaScript | Language::TypeScript | Language::Tsx => return false,
            _ => &[b"const", b"final", b"readonly", b"static", b"constexpr", b"constinit", b"-r"],
        };
        head.split(|byte| !byte.is_ascii_alphanumeric() && *byte != b'-').any(|word| words.contains(&word))
    }

    fn operator_text(&self, binary: NodeIndex) -> &'a [u8] {
        let source = self.source;
        source
            .children(binary)
            .map(|child| source.bytes(&source.nodes[child]))
            .find(|bytes| is_operator(bytes))
            .unwrap_or(b"")
    }

    /// Returns whether an expression consists of literals and constants only.
    fn is_constant(&self, index: NodeIndex) -> bool {
        self.literals().next_variable(index) >= self.source.nodes[index].end_index as usize
    }

    /// Returns the content of a string that counts as a repetition; `None` if it does not count.
    fn countable_text(&self, index: NodeIndex) -> Option<&'a [u8]> {
        let source = self.source;
        let node = &source.nodes[index];
        let bytes = source.bytes(node);
        // Prefixes (`r#"`, `b'`, `@"`) and triple quotes are not content.
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
        if self.interpolations().from(index + 1) < node.end_index as usize {
            return None;
        }
        let text = std::str::from_utf8(content).ok()?;
        if !has_readable_word(text) || limits.trivial_strings.iter().any(|trivial| trivial.eq_ignore_ascii_case(text)) {
            return None;
        }
        let mut child = index;
        // The nearest construct decides: a text deep inside the arguments of a log call is for people too.
        for step in 0..MAX_ANCESTORS {
            let parent = source.parent(child);
            if parent == child {
                break;
            }
            match self.role(parent) {
                LiteralRole::Key | LiteralRole::Interpolation => return None,
                // The type checker of TypeScript checks such words: they are types.
                LiteralRole::Binary | LiteralRole::Named if is_typed(source.language) && !text.contains([' ', '/']) => {
                    return None;
                }
                LiteralRole::Statement if step == 0 => return None,
                LiteralRole::Named => {
                    let head = source.text_up_to(&source.nodes[parent], &source.nodes[child]);
                    let is_argument = self.role(source.parent(parent)) == LiteralRole::Arguments;
                    if (head.is_empty() && !is_argument) || is_upper_case(last_identifier(head)) {
                        return None;
                    }
                }
                LiteralRole::Skip => return None,
                LiteralRole::Declaration => {
                    if self.is_constant_declaration(parent, child) {
                        return None;
                    }
                    break;
                }
                LiteralRole::Arguments => {
                    let call = source.called_node(parent);
                    let head = source.text_up_to(&source.nodes[call], &source.nodes[parent]);
                    if has_word(last_identifier(head), &limits.text_sinks) {
                        return None;
                    }
                }
                LiteralRole::Binary if step == 0 => {
                    // `typeof x === "string"`: words of the language.
                    let other = source.bytes(&source.nodes[parent]);
                    let other = &other[..other.len().min(MAX_SEARCHED_BYTES)];
                    source.work().spend_bytes(other.len());
                    if other.starts_with(b"typeof") || other.windows(7).any(|part| part == b" typeof") {
                        return None;
                    }
                }
                LiteralRole::Transparent | LiteralRole::Call | LiteralRole::Binary => {}
                _ => break,
            }
            child = parent;
        }
        Some(content)
    }
}

/// Returns whether a tool writes a file and nobody edits it: database migrations and designer files.
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
