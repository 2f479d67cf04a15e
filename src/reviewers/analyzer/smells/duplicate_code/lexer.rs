//! Fast approximate lexer for the search for copies: aware of language families, without a tree, well over 150 MB/s.
//!
//! Comments, imports and text outside of `<?php` give no tokens. The lexer may misread a rare construct (a regular
//! expression after a `)`, a heredoc inside a call), but then it misreads both sides of a copy alike.

pub(crate) use super::language_family::LanguageFamily;
use super::language_family::{KeywordHashes, LexicalRules, hash_text};
use crate::syntax::copy_rules::ImportEnd;
use crate::syntax::language::Language;

/// A token. Two tokens of the same shape differ at most in a name or a literal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CloneToken {
    /// [`NAME_SHAPE`], [`NUMBER_SHAPE`] or [`STRING_SHAPE`]; for keywords and operators a hash of the text with the top
    /// bit set.
    pub shape: u32,
    /// Hash of the text.
    pub exact: u32,
    /// Line, 1-based.
    pub line: u32,
}

pub const NAME_SHAPE: u32 = 1;
pub const NUMBER_SHAPE: u32 = 2;
pub const STRING_SHAPE: u32 = 3;
const FIXED_SHAPE_BIT: u32 = 1 << 31;

/// Version of the lexer. Raise it if the tokens of any text change, because its fingerprints change too.
pub const LEXER_VERSION: u32 = 2;

/// Maximum length of a regular expression, in bytes: the search for its end begins at each `/` that may start one.
const MAX_REGEX_BYTES: usize = 4_096;

const WORD_START: u8 = 1;
const WORD: u8 = 2;
const DIGIT: u8 = 4;
const SPACE: u8 = 8;

static BYTE_CLASS: [u8; 256] = {
    let mut class = [0u8; 256];
    let mut byte = 0usize;
    while byte < 256 {
        let b = byte as u8;
        class[byte] = if b.is_ascii_alphabetic() || b == b'_' || b == b'$' || b >= 0x80 {
            WORD_START | WORD
        } else if b.is_ascii_digit() {
            WORD | DIGIT
        } else if b == b' ' || b == b'\t' || b == b'\r' || b == 0x0c {
            SPACE
        } else {
            0
        };
        byte += 1;
    }
    class
};

struct CloneLexer<'a> {
    text: &'a [u8],
    at: usize,
    line: u32,
    /// Language whose rules hold for the text: the first one of its family.
    dialect: Language,
    rules: &'static LexicalRules,
    tokens: Vec<CloneToken>,
    /// Bracket depth, for imports over several lines.
    depth: i32,
    /// Bracket depth inside `((` of a shell; 0 outside.
    arithmetic: i32,
    /// The current import, as (index of its first token, how it ends, bracket depth).
    import: Option<(usize, ImportEnd, i32)>,
    /// Byte ranges of the end words of heredocs whose bodies start on the next line.
    heredocs: Vec<(usize, usize)>,
}

/// Returns the tokens of a text.
pub fn tokenize(language: Language, text: &[u8]) -> Vec<CloneToken> {
    let dialect = LanguageFamily::from_language(language).dialect();
    let rules = LexicalRules::for_language(dialect);
    let mut lexer = CloneLexer {
        text,
        at: 0,
        line: 1,
        dialect,
        rules,
        tokens: Vec::with_capacity(text.len() / 5),
        depth: 0,
        arithmetic: 0,
        import: None,
        heredocs: Vec::new(),
    };
    if dialect == Language::Php {
        lexer.skip_to_php();
    }
    lexer.lex_all(&rules.keywords);
    lexer.tokens
}

impl CloneLexer<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.text.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn push(&mut self, shape: u32, exact: u32, line: u32) {
        self.tokens.push(CloneToken { shape, exact, line });
    }

    fn lex_all(&mut self, keywords: &KeywordHashes) {
        let text = self.text;
        while let Some(&byte) = text.get(self.at) {
            let class = BYTE_CLASS[usize::from(byte)];
            if class & SPACE != 0 {
                self.at += 1;
            } else if class & WORD_START != 0 {
                self.lex_word(keywords);
            } else if class & DIGIT != 0 {
                self.lex_number();
            } else if byte == b'\n' {
                self.lex_newline();
            } else if !self.skip_comment(byte) && !self.lex_string(byte) {
                self.lex_operator(byte);
            }
        }
    }

    fn lex_newline(&mut self) {
        self.at += 1;
        self.line += 1;
        if let Some((start, ImportEnd::Line, depth)) = self.import
            && self.depth <= depth
            && self.peek_back(2) != b'\\'
        {
            self.tokens.truncate(start);
            self.import = None;
        }
        for (start, end) in std::mem::take(&mut self.heredocs) {
            self.skip_heredoc_body(start, end);
        }
        if self.dialect == Language::Ruby && self.text[self.at..].starts_with(b"=begin") {
            self.skip_past(b"\n=end");
        } else if self.dialect == Language::Ruby && self.text[self.at..].starts_with(b"__END__") {
            self.at = self.text.len();
        }
    }

    fn peek_back(&self, back: usize) -> u8 {
        self.at.checked_sub(back).and_then(|at| self.text.get(at)).copied().unwrap_or(0)
    }

    /// Moves behind the next `end`, or to the end of the text, and counts lines.
    fn skip_past(&mut self, end: &[u8]) {
        let rest = &self.text[self.at..];
        let skipped = memchr::memmem::find(rest, end).map_or(rest.len(), |found| found + end.len());
        self.line += memchr::memchr_iter(b'\n', &rest[..skipped]).count() as u32;
        self.at += skipped;
    }

    fn skip_line(&mut self) {
        let rest = &self.text[self.at..];
        self.at += memchr::memchr(b'\n', rest).unwrap_or(rest.len());
    }

    fn skip_to_php(&mut self) {
        let from = self.at;
        self.skip_past(b"<?");
        if self.text[self.at..].starts_with(b"php") {
            self.at += 3;
        } else if self.at < self.text.len() && self.text[self.at] == b'=' {
            self.at += 1;
        }
        debug_assert!(self.at >= from);
    }

    fn skip_comment(&mut self, byte: u8) -> bool {
        match byte {
            b'/' if self.rules.has_slash_comments && self.peek(1) == b'/' => self.skip_line(),
            b'/' if self.rules.has_slash_comments && self.peek(1) == b'*' => {
                self.at += 2;
                if self.rules.has_nested_comments {
                    self.skip_nested_comment();
                } else {
                    self.skip_past(b"*/");
                }
            }
            b'#' if self.dialect == Language::Bash && !matches!(self.peek_back(1), b' ' | b'\t' | b'\n' | b';' | 0) => {
                return false;
            }
            b'#' if self.rules.has_hash_comments && !(self.dialect == Language::Php && self.peek(1) == b'[') => {
                self.skip_line();
            }
            // `#include` is an import, and the condition after `#if` is not code.
            b'#' if self.dialect == Language::C => self.skip_directive(),
            b'?' if self.dialect == Language::Php && self.peek(1) == b'>' => {
                self.at += 2;
                self.skip_to_php();
            }
            _ => return false,
        }
        true
    }

    fn skip_directive(&mut self) {
        let rest = self.text[self.at + 1..].trim_ascii_start();
        if rest.starts_with(b"define") {
            self.at += 1;
            return;
        }
        while self.at < self.text.len() {
            self.skip_line();
            if self.peek_back(1) != b'\\' {
                break;
            }
            self.at += 1;
            self.line += 1;
        }
        self.at = self.at.min(self.text.len());
    }

    fn skip_nested_comment(&mut self) {
        let mut depth = 1;
        while depth > 0 {
            let Some(found) = memchr::memchr3(b'*', b'/', b'\n', &self.text[self.at..]) else {
                self.at = self.text.len();
                return;
            };
            self.at += found;
            let step = match (self.text[self.at], self.peek(1)) {
                (b'*', b'/') => {
                    depth -= 1;
                    2
                }
                (b'/', b'*') => {
                    depth += 1;
                    2
                }
                (b'\n', _) => {
                    self.line += 1;
                    1
                }
                _ => 1,
            };
            self.at += step;
        }
    }

    fn lex_word(&mut self, keywords: &KeywordHashes) {
        let text = self.text;
        let start = self.at;
        let mut hash = 0x811c_9dc5_u32;
        let mut end = start;
        while let Some(&byte) = text.get(end) {
            let part = BYTE_CLASS[usize::from(byte)] & WORD != 0
                || (byte == b'-' && self.dialect == Language::Bash)
                || (matches!(byte, b'?' | b'!')
                    && self.dialect == Language::Ruby
                    && !matches!(text.get(end + 1), Some(b'=' | b':')));
            if !part {
                break;
            }
            hash = (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
            end += 1;
            if matches!(byte, b'?' | b'!') {
                break;
            }
        }
        hash ^= hash >> 15;
        self.at = end;
        let word = &text[start..end];
        if self.lex_prefixed_string(word) {
            return;
        }
        let index = self.tokens.len();
        if keywords.contains(hash) {
            self.push(hash | FIXED_SHAPE_BIT, hash, self.line);
        } else if self.dialect == Language::Bash && self.is_command(word) {
            // In a shell, plain words are commands: only variables are names.
            self.push(hash | FIXED_SHAPE_BIT, hash, self.line);
        } else {
            self.push(NAME_SHAPE, hash, self.line);
        }
        let first = index == 0 || self.tokens[index - 1].line != self.line;
        if first && self.import.is_none() {
            let import = self.rules.import_words.iter().find(|(known, _)| known.as_bytes() == word);
            let import = import.filter(|_| !self.is_other_use_of_import_word()).map(|&(_, end)| end);
            self.import = import.map(|kind| (index, kind, self.depth));
        }
    }

    /// Returns whether the word that begins an import elsewhere has another meaning here: `import(…)` in JavaScript,
    /// `using (…)` in C#.
    fn is_other_use_of_import_word(&self) -> bool {
        match self.dialect {
            Language::CSharp => self.text[self.at..].trim_ascii_start().first() == Some(&b'('),
            Language::JavaScript => self.peek(0) == b'(',
            _ => false,
        }
    }

    /// Returns whether a word of a shell script is not a variable.
    fn is_command(&self, word: &[u8]) -> bool {
        let defined = matches!(self.peek(0), b'=' | b'(') || self.peek_back(word.len() + 1) == b'{';
        let after = self.tokens.last().is_some_and(|last| is_fixed_token(last, "for") || is_fixed_token(last, "local"));
        word[0] != b'$' && !defined && !after && self.arithmetic == 0
    }

    /// Lexes `r"…"`, `b'…'`, `R"x(…)x"` and similar: the word before the quote is a part of the string.
    fn lex_prefixed_string(&mut self, word: &[u8]) -> bool {
        let next = self.peek(0);
        if word.len() > 3 || !matches!(next, b'"' | b'\'' | b'#') {
            return false;
        }
        let start = self.at - word.len();
        let line = self.line;
        match self.dialect {
            Language::Rust if matches!(word, b"r" | b"br" | b"cr") => {
                let hashes = self.text[self.at..].iter().take_while(|&&byte| byte == b'#').count();
                if self.peek(hashes) != b'"' {
                    return false;
                }
                self.at += hashes + 1;
                let mut end = vec![b'"'];
                end.resize(hashes + 1, b'#');
                self.skip_past(&end);
            }
            Language::Rust if matches!(word, b"b" | b"c") && next != b'#' => {
                self.lex_string(next);
                self.tokens.pop();
            }
            Language::C if word.ends_with(b"R") && next == b'"' => {
                let rest = &self.text[self.at + 1..];
                let Some(open) = rest.iter().take(18).position(|&byte| byte == b'(') else { return false };
                let mut end = vec![b')'];
                end.extend_from_slice(&rest[..open]);
                end.push(b'"');
                self.skip_past(&end);
            }
            Language::Python if next != b'#' && word.iter().all(|byte| b"rbfuRBFU".contains(byte)) => {
                self.lex_string(next);
                self.tokens.pop();
            }
            _ => return false,
        }
        let exact = hash_text(&self.text[start..self.at.min(self.text.len())]);
        self.push(STRING_SHAPE, exact, line);
        true
    }

    fn lex_number(&mut self) {
        let start = self.at;
        while BYTE_CLASS[usize::from(self.peek(0))] & WORD != 0
            || (self.peek(0) == b'.' && self.peek(1).is_ascii_digit())
            || (matches!(self.peek(0), b'+' | b'-')
                && matches!(self.peek_back(1), b'e' | b'E')
                && self.peek(1).is_ascii_digit()
                && !self.text[start..self.at].starts_with(b"0x"))
        {
            self.at += 1;
        }
        self.push(NUMBER_SHAPE, hash_text(&self.text[start..self.at]), self.line);
    }

    fn lex_string(&mut self, quote: u8) -> bool {
        let (start, line) = (self.at, self.line);
        let rest = &self.text[start..];
        match quote {
            b'"' | b'\'' if self.rules.has_triple_quotes && rest.starts_with(&[quote; 3]) => {
                self.at += 3;
                self.skip_past(&[quote; 3]);
            }
            b'\'' if self.dialect == Language::Rust && !is_rust_char(rest) => {
                // A lifetime.
                self.at += 1;
                while BYTE_CLASS[usize::from(self.peek(0))] & WORD != 0 {
                    self.at += 1;
                }
                self.push(NAME_SHAPE, hash_text(&self.text[start..self.at]), line);
                return true;
            }
            b'"' if self.dialect == Language::CSharp && matches!(self.peek_back(1), b'@') => {
                self.at += 1;
                self.skip_past(b"\"");
                while self.peek(0) == b'"' {
                    self.at += 1;
                    self.skip_past(b"\"");
                }
            }
            b'"' | b'\'' => {
                let lines = self.rules.strings_span_lines;
                let escapes = !(quote == b'\'' && self.dialect == Language::Bash);
                self.skip_quoted(quote, lines, escapes);
            }
            b'`' if self.dialect == Language::JavaScript => self.skip_quoted(quote, true, true),
            b'`' if self.dialect == Language::Go => {
                self.at += 1;
                self.skip_past(b"`");
            }
            b'/' if matches!(self.dialect, Language::JavaScript | Language::Ruby) && self.is_regex_position() => {
                if !self.skip_regex() {
                    return false;
                }
            }
            b'<' if rest.starts_with(b"<<") => return self.lex_heredoc(),
            _ => return false,
        }
        let exact = hash_text(&self.text[start..self.at.min(self.text.len())]);
        self.push(STRING_SHAPE, exact, line);
        if let Some((first, ImportEnd::Text, _)) = self.import {
            self.tokens.truncate(first);
            self.import = None;
        }
        true
    }

    fn skip_quoted(&mut self, quote: u8, over_lines: bool, escapes: bool) {
        self.at += 1;
        loop {
            match self.text.get(self.at) {
                None => return,
                Some(&byte) if byte == quote => {
                    self.at += 1;
                    return;
                }
                Some(b'\\') if escapes => {
                    if self.peek(1) == b'\n' {
                        self.line += 1;
                    }
                    self.at = (self.at + 2).min(self.text.len());
                }
                Some(b'\n') => {
                    if !over_lines {
                        return;
                    }
                    self.line += 1;
                    self.at += 1;
                }
                Some(_) => self.at += 1,
            }
        }
    }

    fn is_regex_position(&self) -> bool {
        let Some(last) = self.tokens.last() else { return true };
        if last.shape & FIXED_SHAPE_BIT == 0 {
            return false;
        }
        let before = self.text[..self.at].trim_ascii_end().last().copied().unwrap_or(0);
        !matches!(before, b')' | b']' | b'}') && (before != b'/' || self.dialect == Language::JavaScript)
    }

    fn skip_regex(&mut self) -> bool {
        let mut at = self.at + 1;
        let mut in_class = false;
        while let Some(&byte) = self.text.get(at).filter(|_| at - self.at < MAX_REGEX_BYTES) {
            match byte {
                b'\n' => return false,
                b'\\' => at += 1,
                b'[' => in_class = true,
                b']' => in_class = false,
                b'/' if !in_class => {
                    at += 1;
                    while self.text.get(at).is_some_and(u8::is_ascii_alphabetic) {
                        at += 1;
                    }
                    self.at = at;
                    return true;
                }
                _ => {}
            }
            at += 1;
        }
        false
    }

    /// Lexes `<<EOF`, `<<~EOF`, `<<<EOF`: the body is one string and starts on the next line.
    fn lex_heredoc(&mut self) -> bool {
        let skip = match self.dialect {
            Language::Ruby | Language::Bash => 2,
            Language::Php if self.peek(2) == b'<' => 3,
            _ => return false,
        };
        let mut at = self.at + skip;
        let marked = matches!(self.text.get(at), Some(b'-' | b'~'));
        at += usize::from(marked);
        if self.dialect != Language::Ruby {
            while matches!(self.text.get(at), Some(b' ')) {
                at += 1;
            }
        }
        let quoted = matches!(self.text.get(at), Some(b'"' | b'\''));
        at += usize::from(quoted);
        let start = at;
        while self.text.get(at).is_some_and(|&byte| BYTE_CLASS[usize::from(byte)] & WORD != 0) {
            at += 1;
        }
        let plausible = match self.dialect {
            // `a << b` and `class << self` are not heredocs.
            Language::Ruby => marked || quoted || self.text.get(start).is_some_and(u8::is_ascii_uppercase),
            // `1 << 2` in arithmetic is not a heredoc.
            _ => self.text.get(start).is_some_and(|&byte| BYTE_CLASS[usize::from(byte)] & WORD_START != 0),
        };
        if at == start || !plausible {
            return false;
        }
        self.heredocs.push((start, at));
        let line = self.line;
        self.push(STRING_SHAPE, hash_text(&self.text[start..at]), line);
        self.at = at + usize::from(quoted);
        true
    }

    fn skip_heredoc_body(&mut self, start: usize, end: usize) {
        let text = self.text;
        let word = &text[start..end];
        while self.at < text.len() {
            let rest = &text[self.at..];
            let length = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            let line = rest[..length].trim_ascii();
            let ends = line
                .strip_prefix(word)
                .is_some_and(|after| after.first().is_none_or(|&byte| BYTE_CLASS[usize::from(byte)] & WORD == 0));
            if ends && self.dialect == Language::Php {
                self.at += rest[..length].len() - rest[..length].trim_ascii_start().len() + word.len();
                return;
            }
            self.at = (self.at + length + 1).min(text.len());
            if length < rest.len() {
                self.line += 1;
            }
            if ends {
                return;
            }
        }
    }

    fn lex_operator(&mut self, byte: u8) {
        match byte {
            b'(' | b'[' | b'{' => self.depth += 1,
            b')' | b']' | b'}' => self.depth -= 1,
            _ => {}
        }
        let next = self.peek(1);
        if self.dialect == Language::Bash {
            match (byte, next) {
                (b'(', b'(') if self.arithmetic == 0 => self.arithmetic = self.depth,
                (b')', b')') if self.depth <= self.arithmetic => self.arithmetic = 0,
                _ => {}
            }
        }
        let joined = matches!(
            (byte, next),
            (b'=' | b'!' | b'<' | b'>' | b'+' | b'-' | b'*' | b'/' | b'%' | b'|' | b'&' | b'^' | b':', b'=')
                | (b'&', b'&')
                | (b'|', b'|')
                | (b'-' | b'=', b'>')
                | (b':', b':')
                | (b'+', b'+')
                | (b'-', b'-')
                | (b'<', b'<' | b'-')
                | (b'.', b'.')
                | (b'?', b'?' | b'.')
                | (b'*', b'*')
        );
        let length = 1 + usize::from(joined);
        let exact = hash_text(&self.text[self.at..self.at + length]);
        self.at += length;
        self.push(exact | FIXED_SHAPE_BIT, exact, self.line);
        if let Some((start, kind, _)) = self.import {
            if kind == ImportEnd::Semicolon && byte == b';' {
                self.tokens.truncate(start);
                self.import = None;
            } else if kind == ImportEnd::Text && byte == b';' || self.tokens.len() > start + 4000 {
                // `import x = require()` has no plain string at its end, and no import is that long.
                self.import = None;
            }
        }
    }
}

/// Returns whether a quote starts a character and not a lifetime.
fn is_rust_char(rest: &[u8]) -> bool {
    match rest {
        [_, b'\\', ..] | [_, _, b'\'', ..] => true,
        [_, first, ..] if *first >= 0x80 => rest.iter().skip(2).take(4).any(|&byte| byte == b'\''),
        _ => false,
    }
}

/// Returns whether a token is this operator or keyword.
pub fn is_fixed_token(token: &CloneToken, text: &str) -> bool {
    token.shape & FIXED_SHAPE_BIT != 0 && token.exact == hash_text(text.as_bytes())
}

#[cfg(test)]
#[path = "lexer_tests.rs"]
mod tests;
