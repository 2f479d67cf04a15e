//! Splits text into words: runs of letters and digits, the identifiers among them, and their parts.
//!
//! - The postings of the index and the documents of the ranking split text here, at the same places. They keep other
//!   words: a search must find every word of a text, so postings keep all runs; the ranking leaves out data.
//! - The words of a text are the concatenation of the words of its runs.

/// Length of an indexed word in bytes. A longer part is not a word, but for example a key or encoded data.
const MIN_WORD_BYTES: usize = 2;
const MAX_WORD_BYTES: usize = 40;
/// Longest run of identifier characters that is split, in bytes; longer runs are ignored.
pub const MAX_RUN_BYTES: usize = 200;
/// Longest identifier in bytes; a longer word is data.
const MAX_IDENTIFIER_BYTES: usize = 80;
/// Longest line whose identifiers are read, in bytes; a longer line is data.
pub const MAX_LINE_BYTES: usize = 2_000;

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

/// Iterates over the identifiers of a line, without numbers and single characters. A line that is too long to be code
/// has none.
pub fn identifiers(line: &str) -> impl Iterator<Item = &str> {
    let line = if line.len() <= MAX_LINE_BYTES { line } else { "" };
    let runs = word_runs(line).map(|(_, run)| run);
    runs.filter(|run| run.len() <= MAX_IDENTIFIER_BYTES && !run.starts_with(|c: char| c.is_ascii_digit()))
}

/// Calls `found` for each word of a run: its parts without numbers and single characters.
pub fn split_run(run: &str, found: &mut dyn FnMut(&str)) {
    for piece in run.split(|c: char| !c.is_alphanumeric()).filter(|piece| !piece.is_empty()) {
        for_each_part(piece, |part| {
            if (MIN_WORD_BYTES..=MAX_WORD_BYTES).contains(&part.len()) && !is_number(part) {
                found(part);
            }
        });
    }
}

/// Returns the lower-case parts of `camelCase`, `PascalCase`, `HTTPServer` and `snake_case`.
pub fn split_identifier(identifier: &str) -> Vec<String> {
    let mut parts = Vec::new();
    for_each_part(identifier, |part| parts.push(part.to_owned()));
    parts
}

/// Calls `tell` for each part of an identifier; see [`split_identifier`].
pub fn for_each_part(identifier: &str, mut tell: impl FnMut(&str)) {
    let mut part = String::with_capacity(identifier.len());
    let (mut before, mut is_none): (Option<char>, bool) = (None, true);
    let mut tell_it = |part: &mut String| {
        if !part.is_empty() {
            tell(part);
            part.clear();
            is_none = false;
        }
    };
    let mut rest = identifier.chars().peekable();
    while let Some(c) = rest.next() {
        if c == '_' {
            before = None;
            tell_it(&mut part);
            continue;
        }
        let begins = c.is_uppercase()
            && before
                .is_some_and(|before| !before.is_uppercase() || rest.peek().is_some_and(|next| next.is_lowercase()));
        if begins {
            tell_it(&mut part);
        }
        match c.is_ascii() {
            true => part.push(c.to_ascii_lowercase()),
            false => part.extend(c.to_lowercase()),
        }
        before = Some(c);
    }
    tell_it(&mut part);
    if is_none {
        tell(&identifier.to_lowercase());
    }
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
            ("größeÄndern über—unter 日本語", "größe ändern über unter 日本語"),
            ("__ _a_b_ __init__2", "init"),
            ("IOError getURL URLs", "io error get url ur ls"),
            ("don't, $php @ruby #hash", "don php ruby hash"),
            ("", ""),
        ] {
            assert_eq!(split_words(text).join(" "), expected, "{text}");
        }
        assert_eq!(split_words(&"x".repeat(50)), Vec::<String>::new());
        assert_eq!(split_words(&"ab_".repeat(100)), Vec::<String>::new());
    }

    #[test]
    fn an_identifier_of_the_ranking_has_the_words_of_the_index() {
        for (line, expected) in [
            ("let max_lines = parseHTTPRequest(2x42, größeÄndern);", "let max_lines parseHTTPRequest größeÄndern"),
            ("1 a b2 _ __ x_", "b2 __ x_"),
            ("", ""),
        ] {
            let found: Vec<&str> = identifiers(line).collect();
            assert_eq!(found.join(" "), expected, "{line}");
            for identifier in found {
                let mut parts = split_identifier(identifier);
                parts.retain(|part| part.len() > 1 && part != "__");
                assert_eq!(parts, split_words(identifier), "{identifier}");
            }
        }
        assert_eq!(identifiers(&"word ".repeat(401)).count(), 0);
        assert_eq!(identifiers(&"x".repeat(81)).count(), 0);
    }
}
