//! Reads the text of numbers, operators and names.

use super::super::syntax::has_word;
use super::NumberUse;

pub(super) fn is_operator(bytes: &[u8]) -> bool {
    classify_operator(bytes).is_some()
        || matches!(
            bytes,
            b"&&" | b"||" | b"and" | b"or" | b"??" | b"?:" | b"&" | b"|" | b"^" | b"<<" | b">>" | b">>>" | b"." | b".."
        )
        || (bytes.ends_with(b"=") && bytes.len() <= 4)
}

pub(super) fn classify_operator(operator: &[u8]) -> Option<NumberUse> {
    Some(match operator {
        b"<" | b">" | b"<=" | b">=" | b"==" | b"!=" | b"===" | b"!==" | b"<>" | b"<=>" => NumberUse::Comparison,
        b"-lt" | b"-gt" | b"-le" | b"-ge" | b"-eq" | b"-ne" => NumberUse::Comparison,
        b"+" | b"-" | b"*" | b"/" | b"%" | b"**" | b"//" => NumberUse::Arithmetic,
        b"+=" | b"-=" | b"*=" | b"/=" | b"%=" | b"**=" | b"//=" => NumberUse::Arithmetic,
        _ => return None,
    })
}

/// Returns the operator (such as `+=`) of an assignment whose operator has no field.
pub(super) fn compound_operator(head: &[u8]) -> Option<&[u8]> {
    let end = head.iter().rposition(|&byte| byte == b'=')?;
    head.get(end.checked_sub(1)?..=end)
}

/// Returns whether an expression contains a name that has one of `words` as a word or as its end.
pub(super) fn mentions_word(expression: &str, words: &[String]) -> bool {
    expression.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|name| !name.is_empty()).any(|name| {
        has_word(name, words) || words.iter().any(|word| name.len() > word.len() && name.ends_with(word.as_str()))
    })
}

/// Returns whether a call only changes the type of a number.
pub(super) fn is_conversion_call(callee: &str) -> bool {
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

/// Parses a literal; `None` for hexadecimal, octal and binary literals, which describe layouts, and for text that is
/// not a number.
pub(super) fn parse_literal(literal: &str) -> Option<f64> {
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

/// Returns whether a text contains a word of at least four letters, and no placeholders of a format or escapes.
pub(super) fn has_readable_word(text: &str) -> bool {
    let mut run = 0;
    let mut best = 0;
    for c in text.chars() {
        run = if c.is_alphabetic() { run + 1 } else { 0 };
        best = best.max(run);
    }
    best >= 4 && !text.contains('%') && !text.contains('{') && !text.contains('\\')
}
