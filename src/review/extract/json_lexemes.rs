//! The lexical elements of lenient JSON: quotation marks, escapes, white space, and the text that may follow a string.

use std::borrow::Cow;

use memchr::{memchr, memchr2};

/// Returns whether the window may follow a member's string in an object at this depth, and the number of bytes read.
/// Undecided cases count as yes.
pub(super) fn may_follow(window: &[u8], depth: usize) -> (bool, usize) {
    let blank = blank_length(window);
    let rest = window.get(blank..).unwrap_or_default();
    let new_line = || memchr(b'\n', window.get(..blank).unwrap_or_default()).is_some();
    let answer = match rest {
        [] | [b'/', b'/' | b'*', ..] => (true, 2),
        [b'`', b'`', b'`', ..] | [b'~', b'~', b'~', ..] => (true, 3),
        [b'}', ..] if depth == 1 => (true, 1),
        [b'}' | b']', after @ ..] => {
            let blank = blank_length(after);
            let next = after.get(blank);
            let ends_line = memchr(b'\n', after.get(..blank).unwrap_or_default()).is_some();
            (ends_line || matches!(next, None | Some(b',' | b'}' | b']' | b'{' | b'/' | b'`' | b'~')), blank + 2)
        }
        [b',', after @ ..] => {
            let blank = blank_length(after);
            let after = after.get(blank..).unwrap_or_default();
            let (answer, length) = match after {
                [] | [b'}' | b']', ..] | [b'/', b'/' | b'*', ..] => (true, 2),
                _ => match_key(after),
            };
            (answer, blank + length + 1)
        }
        _ if new_line() => match_key(rest),
        _ => (false, 1),
    };
    (answer.0, blank + answer.1)
}

/// Returns whether a key with its colon, or with a comment before the colon, begins here, and the number of bytes read.
/// A window that ends too early counts as yes.
fn match_key(window: &[u8]) -> (bool, usize) {
    let end = match QuoteMark::detect(window, 0) {
        Some(quote) => match quote.find_closing(window, quote.byte_len()) {
            Some((_, next)) => next,
            None => return (true, window.len()),
        },
        None => bare_length(window),
    };
    let rest = window.get(end..).unwrap_or_default();
    let blank = blank_length(rest);
    (end > 0 && matches!(rest.get(blank), None | Some(b':' | b'/')), end + blank + 1)
}

/// A kind of quotation mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QuoteMark {
    Double,
    Single,
    /// “ and ”
    Curly,
    /// ‘ and ’
    CurlySingle,
}

impl QuoteMark {
    pub fn detect(bytes: &[u8], at: usize) -> Option<Self> {
        match bytes.get(at..)? {
            [b'"', ..] => Some(Self::Double),
            [b'\'', ..] => Some(Self::Single),
            [0xe2, 0x80, 0x9c | 0x9d, ..] => Some(Self::Curly),
            [0xe2, 0x80, 0x98 | 0x99, ..] => Some(Self::CurlySingle),
            _ => None,
        }
    }

    pub fn byte_len(self) -> usize {
        if matches!(self, Self::Double | Self::Single) { 1 } else { 3 }
    }

    /// Returns the start and end of the next unescaped quotation mark from `from` on.
    pub fn find_closing(self, bytes: &[u8], mut from: usize) -> Option<(usize, usize)> {
        let first = match self {
            Self::Double => b'"',
            Self::Single => b'\'',
            Self::Curly | Self::CurlySingle => 0xe2,
        };
        loop {
            let at = from + memchr2(first, b'\\', bytes.get(from..)?)?;
            if bytes.get(at) == Some(&b'\\') {
                from = at + 2;
            } else if Self::detect(bytes, at) == Some(self) {
                return Some((at, at + self.byte_len()));
            } else {
                from = at + 1;
            }
        }
    }
}

/// Returns the number of bytes of leading white space, including no-break spaces and byte order marks.
pub(super) fn blank_length(bytes: &[u8]) -> usize {
    let mut at = 0;
    loop {
        at += match bytes.get(at..) {
            Some([b' ' | b'\t' | b'\n' | b'\r', ..]) => 1,
            Some([0xc2, 0xa0, ..]) => 2,
            Some([0xef, 0xbb, 0xbf, ..]) => 3,
            _ => return at,
        };
    }
}

pub(super) fn is_bare_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'-' | b'+' | b'.' | b'/' | b'@')
}

/// Returns the number of bytes of a leading unquoted word; a comment ends the word.
pub(super) fn bare_length(bytes: &[u8]) -> usize {
    let comment = |at: usize| matches!(bytes.get(at..), Some([b'/', b'/' | b'*', ..]));
    bytes.iter().enumerate().take_while(|&(at, &byte)| is_bare_byte(byte) && !comment(at)).count()
}

/// Resolves the escapes of a string. Invalid escapes stay unchanged.
pub(super) fn unescape_string(raw: &str) -> Cow<'_, str> {
    let Some(first) = memchr(b'\\', raw.as_bytes()) else { return Cow::Borrowed(raw) };
    let mut text = String::with_capacity(raw.len());
    let mut rest = raw;
    let mut next = Some(first);
    while let Some(at) = next {
        let (before, escape) = rest.split_at(at);
        text.push_str(before);
        rest = resolve_escape(escape, &mut text);
        next = memchr(b'\\', rest.as_bytes());
    }
    text.push_str(rest);
    Cow::Owned(text)
}

/// Resolves the escape at the start of `escape` and returns the rest of the text.
fn resolve_escape<'a>(escape: &'a str, text: &mut String) -> &'a str {
    let mut chars = escape.chars();
    chars.next();
    let character = match chars.next() {
        // The escape was cut off.
        None => return "",
        Some('n') => '\n',
        Some('t') => '\t',
        Some('r') => '\r',
        Some('b') => '\u{8}',
        Some('f') => '\u{c}',
        Some(plain @ ('"' | '\\' | '/' | '\'' | '`')) => plain,
        // The string continues on the next line.
        Some('\n') => return chars.as_str(),
        Some('u') => {
            let rest = chars.as_str();
            let Some(unit) = parse_hex(rest) else {
                text.push_str("\\u");
                return rest;
            };
            let rest = rest.get(4..).unwrap_or_default();
            if let Some(low) = rest.strip_prefix("\\u").and_then(parse_hex)
                && let Some(Ok(character)) = char::decode_utf16([unit, low]).next()
                && character.len_utf16() == 2
            {
                text.push(character);
                return rest.get(6..).unwrap_or_default();
            }
            text.push(char::from_u32(u32::from(unit)).unwrap_or(char::REPLACEMENT_CHARACTER));
            return rest;
        }
        Some(other) => {
            text.push('\\');
            other
        }
    };
    text.push(character);
    chars.as_str()
}

fn parse_hex(text: &str) -> Option<u16> {
    let digits = text.get(..4).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    u16::from_str_radix(digits, 16).ok()
}
