//! Splits text into the words of the index: the parts of `camelCase` and `snake_case` identifiers in lower case.
//!
//! - The words of a text are the concatenation of the words of its identifiers.

/// Length of an indexed word in bytes. A longer part is not a word, but for example a key or encoded data.
const MIN_WORD_BYTES: usize = 2;
const MAX_WORD_BYTES: usize = 40;
/// Longest run of identifier characters that is split, in bytes; longer runs are ignored.
pub const MAX_RUN_BYTES: usize = 200;

/// Returns the words of a text in order: `parseHTTPRequest_2` gives `parse`, `http` and `request`.
pub fn split_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (_, run) in word_runs(text) {
        split_run(run, &mut |part| words.push(part.to_owned()));
    }
    words
}

/// Iterates over runs of letters, digits, `_` and non-ASCII characters, each with its byte offset.
pub fn word_runs(text: &str) -> impl Iterator<Item = (usize, &str)> {
    const IN_RUN: [bool; 256] = {
        let mut table = [false; 256];
        let mut byte = 0;
        while byte < 256 {
            table[byte] = (byte as u8).is_ascii_alphanumeric() || byte as u8 == b'_' || byte >= 128;
            byte += 1;
        }
        table
    };
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            while at < bytes.len() && !IN_RUN[usize::from(bytes[at])] {
                at += 1;
            }
            let start = at;
            while at < bytes.len() && IN_RUN[usize::from(bytes[at])] {
                at += 1;
            }
            if start == at {
                return None;
            }
            if (MIN_WORD_BYTES..=MAX_RUN_BYTES).contains(&(at - start)) {
                return Some((start, text.get(start..at)?));
            }
        }
    })
}

/// Calls `found` for each word of a run.
pub fn split_run(run: &str, found: &mut dyn FnMut(&str)) {
    if !run.is_ascii() {
        for piece in run.split(|c: char| !c.is_alphanumeric()).filter(|piece| !piece.is_empty()) {
            let lower = piece.to_lowercase();
            if (MIN_WORD_BYTES..=MAX_WORD_BYTES).contains(&lower.len()) && !is_number(&lower) {
                found(&lower);
            }
        }
        return;
    }
    let bytes = run.as_bytes();
    let mut part = [0u8; MAX_WORD_BYTES];
    let mut start = 0;
    for at in 0..=bytes.len() {
        let ends = at == bytes.len() || bytes[at] == b'_' || (at > start && is_camel_boundary(bytes, at));
        if !ends {
            continue;
        }
        let length = at - start;
        if (MIN_WORD_BYTES..=MAX_WORD_BYTES).contains(&length) {
            for (to, byte) in part.iter_mut().zip(&bytes[start..at]) {
                *to = byte.to_ascii_lowercase();
            }
            let part = std::str::from_utf8(&part[..length]).unwrap_or_default();
            if !is_number(part) {
                found(part);
            }
        }
        start = if bytes.get(at) == Some(&b'_') { at + 1 } else { at };
    }
}

/// Returns true if a new part begins at `at`, as in `fooBar`, `HTTPServer` and `utf8Text`.
fn is_camel_boundary(bytes: &[u8], at: usize) -> bool {
    let (before, here) = (bytes[at - 1], bytes[at]);
    here.is_ascii_uppercase()
        && (before.is_ascii_lowercase()
            || before.is_ascii_digit()
            || (before.is_ascii_uppercase() && bytes.get(at + 1).is_some_and(u8::is_ascii_lowercase)))
}

fn is_number(part: &str) -> bool {
    part.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_cut_at_their_seams() {
        for (text, expected) in [
            ("parseHTTPRequest_2(x)", "parse http request"),
            ("snake_case SCREAMING_CASE __dunder__", "snake case screaming case dunder"),
            ("utf8Text base64 2x42 1234 a b2", "utf8 text base64 2x42 b2"),
            ("größeÄndern über—unter 日本語", "größeändern über unter 日本語"),
            ("IOError getURL URLs", "io error get url ur ls"),
            ("don't, $php @ruby #hash", "don php ruby hash"),
            ("", ""),
        ] {
            assert_eq!(split_words(text).join(" "), expected, "{text}");
        }
        assert_eq!(split_words(&"x".repeat(50)), Vec::<String>::new());
        assert_eq!(split_words(&"ab_".repeat(100)), Vec::<String>::new());
    }
}
