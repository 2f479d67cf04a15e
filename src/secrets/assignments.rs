//! Finds values that a text gives to the name of a secret, in the notations of languages, settings, data and command lines.
//!
//! From each word such as `password` or `token`, the name around it and the notation behind it are read:
//!
//! | notation | example |
//! |---|---|
//! | assignment, comparison, pair | `password = "x"`, `token != 'x'`, `"apiKey": "x"`, `const KEY: &str = "x"` |
//! | argument, call | `set("password", "x")`, `password.equals("x")`, `setToken("x")` |
//! | tag, attribute | `<password>x</password>`, `<entry key="password">x<`, `key="password" value="x"` |
//! | words | `#define TOKEN "x"`, `ENV TOKEN x`, `--token x`, `requirepass x`, `the password is x` |
//! | name and value | `- name: TOKEN`, then `value: x` |
//! | column of a table | `user,password`, then `ada,x`, also with tabs and in Markdown |
//! | array of C | `char password[] = "x"` |
//!
//! A value may be in pieces (`"a" + "b"`), a block of lines (YAML, here-documents, triple quotes) or a default
//! (`getenv("TOKEN", "x")`, `${TOKEN:-x}`).

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use memchr::memmem;

use super::names::classify_name;
use super::tables::TableColumn;
use super::values::{Strictness, is_hash, is_placeholder, is_random};
use super::{SecretSpan, TextForm, is_inside_text, line_end, line_start};

/// Parts of all names that [`classify_name`] knows, in lower case.
const NAME_PARTS: [&str; 16] = [
    "pass", "pwd", "psw", "pw", "secret", "token", "key", "cred", "auth", "psk", "jwt", "bearer", "salt", "pepper",
    "seed", "otp",
];
static NAME_PART: LazyLock<AhoCorasick> = LazyLock::new(|| {
    AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .build(NAME_PARTS)
        .unwrap_or_else(|error| unreachable!("{error}"))
});

/// Longest name, in bytes. Longer words are data.
const MAX_NAME_BYTES: usize = 100;
/// Longest value, in bytes.
const MAX_VALUE_BYTES: usize = 8 << 10;
/// Longest type between a name and its value, in bytes.
const MAX_TYPE_BYTES: usize = 60;
/// Most pieces of one value, and most lines of a block.
const MAX_PIECES: usize = 200;
/// Most literals behind a name that are tried: `getenv("TOKEN", "x")` has two.
const MAX_LITERALS: usize = 3;

/// The way in which a name takes its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Notation {
    /// `name = value`, and everything like it.
    Assignment,
    /// `f("name", value)` and `f(value)`: only a quoted text is a value.
    Argument,
    /// `<name>value<`.
    Tag,
    /// `name value`, to the next space.
    Words,
    /// `name value` with nothing behind it.
    Line,
}

/// Finds values with the name of a secret.
pub(super) fn find_assigned_secrets(text: &str, form: TextForm, found: &mut Vec<SecretSpan>) {
    let scanner = Scanner { text, bytes: text.as_bytes(), form };
    let (mut at, mut table_end) = (0, 0);
    for hit in NAME_PART.find_iter(text) {
        if hit.start() < at {
            continue;
        }
        let Some(name) = scanner.name_around(hit.range()) else { continue };
        at = name.end;
        if form == TextForm::Data && name.start >= table_end {
            table_end = scanner.take_column(&name, found).unwrap_or(table_end);
        }
        let Some((start, notation)) = scanner.find_notation(&name) else { continue };
        let Some(words) = text.get(name.clone()) else { continue };
        let Some(strictness) = classify_name(words) else { continue };
        scanner.take_value((words, strictness), start, notation, found);
    }
}

/// A value with its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedValue {
    /// Byte range of the name.
    pub name: Range<usize>,
    /// Byte range of the value without quotes.
    pub value: Range<usize>,
}

/// Finds random values that are assigned to the name of a password, a key or a token. For reports about files that nobody
/// reads, such as lock files: there, a value must be in one piece, and no hash; in a list of checksums, it must be in
/// quotes and have the name of a password.
pub fn find_random_assignments(text: &str, form: TextForm) -> Vec<NamedValue> {
    let scanner = Scanner { text, bytes: text.as_bytes(), form };
    let mut found = Vec::new();
    let mut at = 0;
    for hit in NAME_PART.find_iter(text) {
        if hit.start() < at {
            continue;
        }
        let Some(name) = scanner.name_around(hit.range()) else { continue };
        at = name.end;
        let Some((start, Notation::Assignment)) = scanner.find_notation(&name) else { continue };
        let strictness = text.get(name.clone()).and_then(classify_name);
        let is_wanted = match strictness {
            Some(Strictness::Password) => true,
            Some(Strictness::Named) => form != TextForm::Checksums,
            Some(Strictness::Random) | None => false,
        };
        if !is_wanted {
            continue;
        }
        let Some(written) = scanner.read_value(scanner.skip_type(start), Notation::Assignment) else { continue };
        let ([value], true) = (written.pieces.as_slice(), written.is_quoted || form == TextForm::Data) else {
            continue;
        };
        let words = text.get(value.clone()).unwrap_or_default();
        // The built-in reviewer reports no placeholder either, however long it is.
        if is_random(words) && !is_hash(words) && !is_placeholder(words) {
            found.push(NamedValue { name, value: value.clone() });
        }
    }
    found
}

struct Scanner<'a> {
    text: &'a str,
    bytes: &'a [u8],
    form: TextForm,
}

/// Returns whether a byte may be part of a name, in any language or file.
fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

/// Returns whether a byte may be part of a type between a name and its value.
fn is_type_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'_' | b'<' | b'>' | b'&' | b'\'' | b'[' | b']' | b'?' | b'.' | b'*' | b' ' | b'|')
}

fn is_quote(byte: u8) -> bool {
    matches!(byte, b'"' | b'\'' | b'`')
}

impl Scanner<'_> {
    /// Adds the secrets in the column of a table that a name is the head of. Returns the end of the table.
    fn take_column(&self, name: &Range<usize>, found: &mut Vec<SecretSpan>) -> Option<usize> {
        let column = TableColumn::find(self.text, line_start(self.text, name.start), name)?;
        let words = self.text.get(name.clone())?;
        let strictness = stricter(classify_name(words)?);
        let (cells, end) = column.read_cells(self.text);
        for cell in cells {
            self.judge(words, strictness, &[cell], found);
        }
        Some(end)
    }

    fn byte(&self, at: usize) -> u8 {
        self.bytes.get(at).copied().unwrap_or(b'\n')
    }

    fn starts_with(&self, at: usize, word: &str) -> bool {
        self.bytes.get(at..at + word.len()).is_some_and(|bytes| bytes.eq_ignore_ascii_case(word.as_bytes()))
    }

    /// Returns the position behind spaces and tabs.
    fn skip_blanks(&self, mut at: usize) -> usize {
        while matches!(self.byte(at), b' ' | b'\t') {
            at += 1;
        }
        at
    }

    /// Returns the position behind white space with at most two line ends.
    fn skip_lines(&self, mut at: usize) -> usize {
        let mut line_ends = 0;
        while at < self.bytes.len() && self.byte(at).is_ascii_whitespace() {
            line_ends += usize::from(self.byte(at) == b'\n');
            if line_ends > 2 {
                break;
            }
            at += 1;
        }
        at
    }

    /// Returns the name around a part of it; `None` if the word is too long for a name.
    fn name_around(&self, part: Range<usize>) -> Option<Range<usize>> {
        let before = self.bytes.get(part.start.saturating_sub(MAX_NAME_BYTES)..part.start)?;
        let start = part.start - before.iter().rev().take_while(|byte| is_name_byte(**byte)).count();
        let behind = self.bytes.get(part.end..(part.end + MAX_NAME_BYTES).min(self.bytes.len()))?;
        let end = part.end + behind.iter().take_while(|byte| is_name_byte(**byte)).count();
        let name = self.bytes.get(start..end)?;
        let start = start + name.iter().take_while(|byte| matches!(byte, b'-' | b'.')).count();
        let end = end - name.iter().rev().take_while(|byte| matches!(byte, b'-' | b'.')).count();
        (start < end && end - start < MAX_NAME_BYTES).then_some(start..end)
    }

    /// Finds the notation behind a name and the start of the value.
    fn find_notation(&self, name: &Range<usize>) -> Option<(usize, Notation)> {
        let mut at = name.end;
        at += usize::from(self.byte(at) == b'\\' && is_quote(self.byte(at + 1)));
        let is_quoted = is_quote(self.byte(at));
        at += usize::from(is_quoted);
        at = self.skip_array(name.start, at);
        while matches!(self.byte(at), b']' | b')' | b'?' | b'!') && self.byte(at + 1) != b'=' {
            at += 1;
        }
        let blank = at;
        at = self.skip_blanks(at);
        if at >= self.bytes.len() {
            return None;
        }
        let rest = self.bytes.get(at..(at + 4).min(self.bytes.len()))?;
        match rest {
            [b':', b':', ..] => None,
            [b':', b'-', ..] => Some((at + 2, Notation::Assignment)),
            [b',', ..] => Some((at + 1, Notation::Argument)),
            [b'(', ..] => Some((at + 1, Notation::Argument)),
            [b'>', ..] if is_quoted || self.opens_tag(name.start) => Some((at + 1, Notation::Tag)),
            [b'=' | b':', ..] => Some((at + self.operator_length(at), Notation::Assignment)),
            [b'!' | b'?' | b'+' | b'|' | b'~', b'=', ..]
            | [b'|', b'|', ..]
            | [b'?', b'?', ..]
            | [b'<', b'-', ..]
            | [b'-', b'>', ..] => Some((at + self.operator_length(at), Notation::Assignment)),
            _ => self.find_word_notation(name, (at, at > blank), is_quoted),
        }
    }

    /// Returns the position behind the brackets of an array of characters in C, as in `char password[] = "x"`.
    fn skip_array(&self, name: usize, at: usize) -> usize {
        if self.byte(at) != b'[' {
            return at;
        }
        let before = self.text.get(line_start(self.text, name)..name).unwrap_or_default();
        let types = ["char ", "char8_t ", "char16_t ", "wchar_t ", "uint8_t ", "byte "];
        if !types.iter().any(|sort| before.ends_with(sort)) {
            return at;
        }
        let length = self.bytes.get(at + 1..).unwrap_or_default().iter().take(40);
        let length =
            length.take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b' ' | b'+')).count();
        if self.byte(at + 1 + length) == b']' { at + length + 2 } else { at }
    }

    fn opens_tag(&self, name: usize) -> bool {
        let before = self.bytes.get(name.saturating_sub(40)..name).unwrap_or_default();
        let prefix = before.iter().rev().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b':').count();
        before.len().checked_sub(prefix + 1).and_then(|at| before.get(at)) == Some(&b'<')
    }

    fn operator_length(&self, at: usize) -> usize {
        let sign = |byte: u8| matches!(byte, b'=' | b':' | b'!' | b'?' | b'+' | b'|' | b'<' | b'>' | b'-' | b'~');
        (0..3).take_while(|step| sign(self.byte(at + step))).count()
    }

    /// Finds a value that follows its name without a sign.
    fn find_word_notation(
        &self,
        name: &Range<usize>,
        (at, is_apart): (usize, bool),
        is_quoted: bool,
    ) -> Option<(usize, Notation)> {
        if let Some(value) = self.find_value_key(if is_quoted { at } else { name.end }) {
            return Some((value, Notation::Assignment));
        }
        if !is_apart || is_quoted {
            return None;
        }
        let typed = if self.form == TextForm::Code { self.skip_type(at) } else { at };
        if typed != at {
            return Some((typed, Notation::Assignment));
        }
        for verb in ["is ", "was ", "are ", "eq ", "equals ", "to "] {
            if self.starts_with(at, verb) {
                return Some((at + verb.len(), Notation::Words));
            }
        }
        let line = line_start(self.text, name.start);
        let before = self.text.get(line..name.start)?.trim();
        if before.ends_with('-') && !before.ends_with("--- -") {
            return Some((at, Notation::Words));
        }
        let word = before.rsplit([' ', '\t']).next().unwrap_or(before);
        if matches!(word, "#define" | "define" | "ENV" | "ARG" | "setx" | "SET" | "set" | "setenv") {
            return Some((at, Notation::Words));
        }
        (before.is_empty() && self.form == TextForm::Data).then_some((at, Notation::Line))
    }

    /// Finds `value: x` or `value="x"` after `name: TOKEN`, on the same line or the next.
    fn find_value_key(&self, from: usize) -> Option<usize> {
        let mut at = from;
        let mut line_ends = 0;
        while matches!(self.byte(at), b' ' | b'\t' | b'\r' | b'\n' | b',' | b'"' | b'\'' | b'-' | b'{')
            && at < from + 80
        {
            line_ends += usize::from(self.byte(at) == b'\n');
            at += 1;
            if at >= self.bytes.len() || line_ends > 1 {
                return None;
            }
        }
        let key = ["value", "defaultvalue", "default", "val"].iter().find(|key| self.starts_with(at, key))?;
        at += key.len();
        at += usize::from(is_quote(self.byte(at)));
        at = self.skip_blanks(at);
        matches!(self.byte(at), b':' | b'=').then_some(at + 1)
    }

    /// Judges the value that starts at a position, and adds it if it is a secret.
    fn take_value(
        &self,
        (name, strictness): (&str, Strictness),
        start: usize,
        notation: Notation,
        found: &mut Vec<SecretSpan>,
    ) {
        if notation == Notation::Tag {
            let line = line_end(self.text, start);
            let end = memchr::memchr(b'<', self.bytes.get(start..line).unwrap_or_default());
            let end = end.map_or(line, |end| start + end);
            self.judge(name, strictness, &[trim(self.text, start..end)], found);
            return;
        }
        let mut at = self.skip_type(start);
        for _ in 0..MAX_LITERALS {
            let Some(value) = self.read_value(at, notation) else { return };
            let is_bare_code =
                !value.is_quoted && self.form == TextForm::Code && !is_inside_text(self.text, value.start());
            let needs_quotes = notation == Notation::Argument || is_bare_code;
            let strictness = match () {
                () if value.is_quoted => strictness,
                // Words of sentences and names of other values.
                () if notation == Notation::Line || self.form != TextForm::Data => stricter(strictness),
                () => strictness,
            };
            let is_line = notation != Notation::Line || self.byte(self.skip_blanks(value.end)).is_ascii_whitespace();
            if (value.is_quoted || !needs_quotes) && is_line && self.judge(name, strictness, &value.pieces, found) {
                return;
            }
            // A default behind a value that is none.
            let Some(next) = value.is_quoted.then(|| self.find_default(value.end)).flatten() else { return };
            at = next;
        }
    }

    /// Returns the position behind `Type =` of `name: Type = value` and `name Type = value`.
    fn skip_type(&self, start: usize) -> usize {
        let at = self.skip_blanks(start);
        if self.byte(at.saturating_sub(1)) == b'=' || is_quote(self.byte(at)) {
            return start;
        }
        let rest = self.bytes.get(at..).unwrap_or_default();
        let length = rest.iter().take(MAX_TYPE_BYTES).take_while(|byte| is_type_byte(**byte)).count();
        let sign = at + length;
        let is_assignment = self.byte(sign) == b'=' && self.byte(sign + 1) != b'=' && self.byte(sign - 1) == b' ';
        if length > 1 && is_assignment { sign + 1 } else { start }
    }

    /// Returns the position of another text behind a quoted one: `getenv("TOKEN", "x")`, `a || "x"`, `a ? "x" : "y"`.
    fn find_default(&self, end: usize) -> Option<usize> {
        let mut at = self.skip_lines(end);
        while matches!(self.byte(at), b')' | b']') {
            at = self.skip_lines(at + 1);
        }
        let length = [",", "||", "??", "or ", ":", "=>", "?:"].iter().find(|sign| self.starts_with(at, sign))?.len();
        let at = self.skip_lines(at + length);
        (is_quote(self.byte(at)) && at < self.bytes.len()).then_some(at)
    }

    fn judge(&self, name: &str, strictness: Strictness, pieces: &[Range<usize>], found: &mut Vec<SecretSpan>) -> bool {
        let texts = pieces.iter().filter_map(|piece| self.text.get(piece.clone()));
        let whole: String = texts.map(str::trim).collect();
        let is_secret = strictness.accepts(name, &whole);
        if is_secret {
            found.extend(pieces.iter().filter(|piece| !piece.is_empty()).map(|piece| (piece.clone(), "a secret")));
        }
        is_secret
    }
}

/// Returns how a value without quotes is judged: a short password only if it is no word.
fn stricter(strictness: Strictness) -> Strictness {
    match strictness {
        Strictness::Password => Strictness::Password,
        Strictness::Named | Strictness::Random => Strictness::Random,
    }
}

fn trim(text: &str, range: Range<usize>) -> Range<usize> {
    let part = text.get(range.clone()).unwrap_or_default();
    let start = range.start + (part.len() - part.trim_start().len());
    start..start + part.trim().len()
}

/// A value as it is written, in one piece or several.
struct WrittenValue {
    pieces: Vec<Range<usize>>,
    is_quoted: bool,
    /// Position behind the value and its last quote.
    end: usize,
}

impl WrittenValue {
    fn start(&self) -> usize {
        self.pieces.first().map_or(0, |piece| piece.start)
    }
}

impl Scanner<'_> {
    /// Reads the value at a position; `None` if there is none.
    fn read_value(&self, from: usize, notation: Notation) -> Option<WrittenValue> {
        let mut at = self.skip_blanks(from);
        if let Some(block) = self.read_block(at) {
            return Some(block);
        }
        if matches!(notation, Notation::Assignment | Notation::Argument) {
            at = self.skip_wrappers(self.skip_lines(at));
        }
        let open = self.skip_string_prefix(at);
        if is_quote(self.byte(open)) && open < self.bytes.len()
            || self.byte(open) == b'\\' && is_quote(self.byte(open + 1))
        {
            return self.read_quoted(open);
        }
        // A value on the next line needs quotes.
        let is_same_line = self.bytes.get(from..at).is_none_or(|between| !between.contains(&b'\n'));
        is_same_line.then(|| self.read_bare(at)).flatten()
    }

    /// Returns the position behind brackets, comments and calls that a text stands in: `(`, `[`, `String::from(`, `// why`.
    fn skip_wrappers(&self, from: usize) -> usize {
        let mut at = from;
        for _ in 0..4 {
            let word =
                self.bytes.get(at..).unwrap_or_default().iter().take(40).take_while(|byte| {
                    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b':' | b'&' | b'$')
                });
            let behind = at + word.count();
            match self.byte(behind) {
                b'(' | b'[' | b'{' if behind < self.bytes.len() && behind < at + 40 => {
                    let next = self.skip_lines(behind + 1);
                    let open = self.skip_string_prefix(next);
                    // Only a text or another wrapper makes it one.
                    if !(is_quote(self.byte(open)) || matches!(self.byte(next), b'(' | b'[') || behind > at) {
                        return at;
                    }
                    at = next;
                }
                _ if self.starts_with(at, "//") || self.byte(at) == b'#' && self.byte(at + 1) == b' ' => {
                    at = self.skip_lines(line_end(self.text, at));
                }
                _ if self.starts_with(at, "new ") || self.starts_with(at, "await ") => {
                    at = self.skip_blanks(at + 4);
                }
                _ => return at,
            }
        }
        at
    }

    /// Returns the position of the quote behind `r##`, `b`, `f`, `@`, `$`, `L`.
    fn skip_string_prefix(&self, at: usize) -> usize {
        let letters = (0..3)
            .take_while(|step| {
                matches!(
                    self.byte(at + step),
                    b'r' | b'R'
                        | b'b'
                        | b'B'
                        | b'f'
                        | b'F'
                        | b'u'
                        | b'U'
                        | b'L'
                        | b'N'
                        | b'@'
                        | b'$'
                        | b's'
                        | b'c'
                        | b'&'
                )
            })
            .count();
        let hashes = (0..4).take_while(|step| self.byte(at + letters + step) == b'#').count();
        match is_quote(self.byte(at + letters + hashes)) {
            true => at + letters + hashes,
            false => at,
        }
    }

    /// Reads a quoted text and the texts that are joined to it.
    fn read_quoted(&self, open: usize) -> Option<WrittenValue> {
        let mut pieces = Vec::new();
        let mut at = open;
        loop {
            let (piece, end) = self.read_literal(at)?;
            pieces.push(piece);
            let next = self.find_joined_literal(end);
            match next {
                Some(next) if pieces.len() < MAX_PIECES => at = next,
                _ => return Some(WrittenValue { pieces: self.split_lines(pieces), is_quoted: true, end }),
            }
        }
    }

    /// Splits pieces with several lines, so that each line is masked for itself.
    fn split_lines(&self, pieces: Vec<Range<usize>>) -> Vec<Range<usize>> {
        let lines = pieces.into_iter().flat_map(|piece| {
            let text = self.text.get(piece.clone()).unwrap_or_default();
            let mut at = piece.start;
            text.split_inclusive('\n')
                .map(|line| {
                    let range = trim(self.text, at..at + line.len());
                    at += line.len();
                    range
                })
                .collect::<Vec<_>>()
        });
        lines.collect()
    }

    /// Reads a literal at its opening quote. Returns its content and the position behind its closing quote.
    fn read_literal(&self, open: usize) -> Option<(Range<usize>, usize)> {
        let is_escaped = self.byte(open) == b'\\';
        let open = open + usize::from(is_escaped);
        let quote = self.byte(open);
        let triple = [quote; 3];
        if !is_escaped && self.bytes.get(open..open + 3) == Some(&triple) {
            let start = open + 3;
            let rest = self.bytes.get(start..(start + MAX_VALUE_BYTES).min(self.bytes.len()))?;
            let length = memmem::find(rest, &triple)?;
            return Some((start..start + length, start + length + 3));
        }
        let start = open + 1;
        let mut at = start;
        while at < self.bytes.len().min(start + MAX_VALUE_BYTES) {
            match self.byte(at) {
                b'\\' if is_escaped && self.byte(at + 1) == quote => return Some((start..at, at + 2)),
                b'\\' if !is_escaped => at += 1,
                byte if byte == quote => return Some((start..at, at + 1)),
                b'\n' if quote != b'`' => break,
                _ => {}
            }
            at += 1;
        }
        // A text that does not end on its line: the value is the rest of the line.
        let end = line_end(self.text, start).min(start + MAX_VALUE_BYTES);
        let range = trim(self.text, start..self.text.floor_char_boundary(end));
        (!range.is_empty()).then_some((range.clone(), range.end))
    }

    /// Returns the position of a text that is joined to the one before: by a sign, by nothing, or by the end of the line.
    fn find_joined_literal(&self, end: usize) -> Option<usize> {
        let mut at = self.skip_lines(end);
        let is_next_to = at;
        for sign in ["..", "<>", "||", "+", ".", "&", "\\", "~"] {
            if self.starts_with(at, sign) {
                at = self.skip_lines(at + sign.len());
                break;
            }
        }
        at = self.skip_string_prefix(at);
        // Without a sign, texts are joined only if they are apart: `""` ends a text, and `'a' 'b'` is one.
        (at < self.bytes.len() && is_quote(self.byte(at)) && (is_next_to > end || at > is_next_to)).then_some(at)
    }

    /// Reads a YAML block (`|`, `>`) or a here-document (`<<END`).
    fn read_block(&self, at: usize) -> Option<WrittenValue> {
        if !matches!(self.byte(at), b'|' | b'>' | b'<') {
            return None;
        }
        let head_end = line_end(self.text, at);
        let head = self.text.get(at..head_end)?.trim_end();
        if head.starts_with(['|', '>']) && head.len() <= 4 {
            return self.read_indented(at, head_end);
        }
        let tag = head.strip_prefix("<<")?.trim_start_matches(['-', '~', '<']).trim();
        let tag = tag.trim_matches(['"', '\'', '\\']);
        if tag.is_empty() || !tag.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            return None;
        }
        self.read_lines(head_end, |line| line.trim() != tag && line.trim() != format!("{tag};"))
    }

    /// Reads the lines below that are indented deeper than the line of `at`.
    fn read_indented(&self, at: usize, head_end: usize) -> Option<WrittenValue> {
        let indent = |line: &str| line.len() - line.trim_start().len();
        let own = self.text.get(line_start(self.text, at)..head_end).map(indent)?;
        self.read_lines(head_end, |line| line.trim().is_empty() || indent(line) > own)
    }

    fn read_lines(&self, head_end: usize, is_part: impl Fn(&str) -> bool) -> Option<WrittenValue> {
        let mut pieces = Vec::new();
        let mut at = head_end + 1;
        while at < self.bytes.len() && pieces.len() < MAX_PIECES {
            let end = line_end(self.text, at);
            let Some(line) = self.text.get(at..end).filter(|line| is_part(line)) else { break };
            if !line.trim().is_empty() {
                pieces.push(trim(self.text, at..end));
            }
            at = end + 1;
        }
        (!pieces.is_empty()).then_some(WrittenValue { pieces, is_quoted: true, end: at.min(self.bytes.len()) })
    }

    /// Reads a word without quotes.
    fn read_bare(&self, at: usize) -> Option<WrittenValue> {
        let is_part = |byte: u8| {
            !byte.is_ascii_whitespace()
                && !matches!(
                    byte,
                    b'"' | b'\'' | b'`' | b',' | b';' | b'<' | b'>' | b'{' | b'}' | b'(' | b')' | b'[' | b']' | b'|'
                )
        };
        let length = self
            .bytes
            .get(at..)
            .unwrap_or_default()
            .iter()
            .take(MAX_VALUE_BYTES)
            .take_while(|byte| is_part(**byte))
            .count();
        let mut end = self.text.floor_char_boundary(at + length);
        // `token = abc&user=…` in an address.
        if let Some(next) =
            self.text.get(at..end).and_then(|value| value.find('&')).filter(|_| self.form != TextForm::Data)
        {
            end = at + next;
        }
        // A call or an index is no value.
        if matches!(self.byte(end), b'(' | b'[' | b'{') || at >= end {
            return None;
        }
        let value = self.text.get(at..end)?;
        let end = at + value.trim_end_matches(['.', ',', ':', '\\']).len();
        let piece = at..end;
        Some(WrittenValue { pieces: vec![piece], is_quoted: false, end })
    }
}
