//! Finds random texts without a name: long words of letters of both cases and digits that are no words, paths, hashes or
//! pieces of larger data.

use std::ops::Range;

use super::values::{has_template, is_sequence, shannon_entropy, word_share};
use super::{MAX_LINE_BYTES, SecretSpan, TextForm, is_inside_text, line_end, line_start};
use crate::domain::RunId;

/// Least and greatest length of a random token, in bytes. Shorter ones are ids and versions; longer ones are data.
const MIN_TOKEN_BYTES: usize = 20;
const MAX_TOKEN_BYTES: usize = 200;
/// Least entropy, in bits per character: 20 random characters of Base64 have 4.1 on the average, 40 have 4.8.
const MIN_TOKEN_ENTROPY: f64 = 3.55;
/// Greatest share of letters in words of three and of four letters, and least share of neighbours of different kinds. Random
/// Base62 has 0.2, 0.1 and 0.6, names in camel case 0.9, 0.9 and 0.3.
const MAX_WORD_SHARE: f64 = 0.55;
const MAX_LONG_WORD_SHARE: f64 = 0.4;
const MIN_CHANGE_SHARE: f64 = 0.34;
/// Least length of a word that a dot joins to a token, in bytes. Endings of file names are shorter.
const MIN_JOINED_BYTES: usize = 6;
/// Distance before a token in which a word tells that it is a hash or a public key, in bytes.
const HINT_BYTES: usize = 60;
/// Words before a token that is a checksum, a public key, an id or a piece of data.
const PUBLIC_HINTS: [&str; 34] = [
    "sha1",
    "sha2",
    "sha3",
    "sha5",
    "md5",
    "integrity",
    "checksum",
    "digest",
    "hash",
    "fingerprint",
    "ssh-",
    "ecdsa-",
    "public",
    "pubkey",
    "cert",
    "etag",
    "base64,",
    "h1:",
    "blake",
    "crc",
    "commit",
    "uuid",
    "guid",
    "signature",
    "nonce",
    "test_vector",
    "vector",
    "data:",
    "img",
    "src=",
    "href=",
    "d=\"",
    "sitekey",
    "websocket",
];

/// Finds random tokens. In code they must be in quotes or comments. A known key in `found` and words below it in a path
/// (`KEY/long.py`) are no longer token.
pub(super) fn find_random_tokens(text: &str, form: TextForm, found: &mut Vec<SecretSpan>) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        // Every token has a byte of itself at each multiple of its least length.
        let probe = at + MIN_TOKEN_BYTES - 1;
        let Some(&byte) = bytes.get(probe) else { break };
        if !is_token_byte(byte) {
            at = probe + 1;
            continue;
        }
        let start = probe - bytes[at..probe].iter().rev().take_while(|byte| is_token_byte(**byte)).count();
        let end = probe + bytes[probe..].iter().take_while(|byte| is_token_byte(**byte)).count();
        if end - start >= MIN_TOKEN_BYTES
            && let Some(token) = judge_token(text, start..end, form)
            && !found.iter().any(|(key, _)| is_folder(text, key, &token))
        {
            found.push((token, "a secret"));
        }
        at = end + 1;
    }
}

/// Returns whether a token is a path in a folder that has the name of a known key.
fn is_folder(text: &str, key: &Range<usize>, token: &Range<usize>) -> bool {
    key.start <= token.start
        && text.get(key.end..token.end).is_some_and(|rest| {
            rest.starts_with('/') && rest.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'/')
        })
}

/// Returns whether a byte may be part of a token: Base64 in both alphabets.
fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'_' | b'-' | b'=')
}

/// Returns the range to mask if a word is a random token.
fn judge_token(text: &str, range: Range<usize>, form: TextForm) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let word = text.get(range.clone())?;
    // `name=token`, `--option=token` and padding.
    let start = word.trim_end_matches('=').rfind('=').map_or(range.start, |sign| range.start + sign + 1);
    let token = text.get(start..range.end)?;
    let core = token.trim_matches(['=', '-', '_', '/', '+']);
    let is_own_id = || core.parse::<RunId>().is_ok();
    if !(MIN_TOKEN_BYTES..=MAX_TOKEN_BYTES).contains(&core.len()) || !is_random_token(core) || is_own_id() {
        return None;
    }
    let before = start.checked_sub(1).and_then(|at| bytes.get(at)).copied().unwrap_or(b'\n');
    let behind = bytes.get(range.end).copied().unwrap_or(b'\n');
    let is_delimited = match form {
        TextForm::Code => is_quote(before) && is_quote(behind) || is_inside_text(text, start),
        TextForm::Data | TextForm::Checksums => true,
    };
    let opens = before.is_ascii_whitespace()
        || is_quote(before)
        || matches!(before, b'=' | b':' | b'(' | b'[' | b'{' | b',' | b'>' | b'|');
    let closes = behind.is_ascii_whitespace()
        || is_quote(behind)
        || matches!(behind, b',' | b';' | b')' | b']' | b'}' | b'<' | b'|' | b'\\' | b'&' | b'.' | b':');
    let is_secret =
        is_delimited && opens && closes && !has_public_hint(text, start) && !is_part_of_data(text, start..range.end);
    is_secret.then(|| widen(bytes, start..range.end))
}

/// Returns whether a token is random by its characters.
fn is_random_token(token: &str) -> bool {
    let bytes = token.as_bytes();
    let count = |test: fn(&u8) -> bool| bytes.iter().filter(|byte| test(byte)).count();
    let (lower, upper, digits) =
        (count(u8::is_ascii_lowercase), count(u8::is_ascii_uppercase), count(u8::is_ascii_digit));
    if lower < 2 || upper < 2 || digits < 2 {
        return false;
    }
    let kind = |byte: u8| match byte {
        b'a'..=b'z' => 0,
        b'A'..=b'Z' => 1,
        b'0'..=b'9' => 2,
        _ => 3,
    };
    let changes = bytes.windows(2).filter(|pair| kind(pair[0]) != kind(pair[1])).count();
    let signs = bytes.len() - lower - upper - digits;
    changes as f64 >= (bytes.len() - 1) as f64 * MIN_CHANGE_SHARE
        && signs * 5 <= bytes.len()
        && shannon_entropy(token) >= MIN_TOKEN_ENTROPY
        && word_share(token, 3) <= MAX_WORD_SHARE
        && word_share(token, 4) <= MAX_LONG_WORD_SHARE
        && !is_sequence(token)
        && !is_uuid_like(bytes)
        && !is_etag(token)
        && !is_path(token)
        && !has_template(token)
}

/// Returns whether a token is an entity tag as web servers make them: a length in hexadecimal digits and a hash of 27
/// characters.
fn is_etag(token: &str) -> bool {
    token.split_once('-').is_some_and(|(length, hash)| {
        length.len() <= 6 && length.bytes().all(|byte| byte.is_ascii_hexdigit()) && hash.len() == 27
    })
}

/// Minimum length of a part that no name of a folder has, if it mixes letters of both cases with digits, in bytes.
const MIN_RANDOM_PART_BYTES: usize = 16;

/// Returns whether a token is a path: two of its parts are in lower case, the first is a word, or another one is and no
/// part is random. Base64 has slashes, too, and sometimes four letters in lower case behind the last.
fn is_path(token: &str) -> bool {
    let is_lower = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_lowercase());
    let parts = || token.split('/');
    let is_word = |part: &str| part.len() >= 4 && is_lower(&part);
    let is_mixed = |part: &str| {
        let has = |test: fn(&u8) -> bool| part.as_bytes().iter().any(test);
        part.len() >= MIN_RANDOM_PART_BYTES
            && has(u8::is_ascii_lowercase)
            && has(u8::is_ascii_uppercase)
            && has(u8::is_ascii_digit)
    };
    token.contains('/')
        && (parts().filter(is_lower).count() >= 2
            || parts().next().is_some_and(is_word)
            || parts().any(is_word) && !parts().any(is_mixed))
}

/// Returns whether a token is hexadecimal digits as in UUIDs and addresses of accounts.
fn is_uuid_like(bytes: &[u8]) -> bool {
    bytes.strip_prefix(b"0x").unwrap_or(bytes).iter().all(|byte| byte.is_ascii_hexdigit() || *byte == b'-')
}

fn is_quote(byte: u8) -> bool {
    matches!(byte, b'"' | b'\'' | b'`')
}

/// Returns whether the text before a token tells that it is public.
fn has_public_hint(text: &str, start: usize) -> bool {
    let from = text.floor_char_boundary(start.saturating_sub(HINT_BYTES));
    let line = text.get(from..start).unwrap_or_default();
    let line = line.rsplit('\n').next().unwrap_or(line).to_ascii_lowercase();
    // `"id": "…"` and `elementId = …`.
    let name = line.trim_end_matches(|c: char| c.is_ascii_whitespace() || "\"'`:=(".contains(c));
    name.ends_with("id") || PUBLIC_HINTS.iter().any(|hint| line.contains(hint))
}

/// Returns whether a token is a line of larger data: the line before or behind it is such a word too, or its own line has
/// many.
fn is_part_of_data(text: &str, token: Range<usize>) -> bool {
    let (start, end) = (line_start(text, token.start), line_end(text, token.end));
    let is_data_line = |line: Option<&str>| {
        let word = line.unwrap_or_default().trim_matches(|c: char| c.is_whitespace() || "\"'+\\,;".contains(c));
        word.len() >= 32 && word.bytes().all(is_token_byte)
    };
    let own = text.get(start..end);
    let above = start.checked_sub(1).map(|end| text.get(line_start(text, end)..end).unwrap_or_default());
    let below = text.get(end + 1..line_end(text, (end + 1).min(text.len())));
    // The last line of a block is shorter.
    let is_alone = own.is_some_and(|own| own.trim().len() == token.len());
    (is_data_line(own) || is_alone) && (is_data_line(above) || is_data_line(below)) || end - start >= MAX_LINE_BYTES
}

/// Widens a token by the words behind it that are joined to it, as in `header.payload.signature`. The ending of a file name
/// is no such word.
fn widen(bytes: &[u8], token: Range<usize>) -> Range<usize> {
    let mut end = token.end;
    while let Some(joint @ (b'.' | b'~' | b'%')) = bytes.get(end) {
        let rest = bytes.get(end + 1..).unwrap_or_default();
        let length = rest.iter().take(MAX_TOKEN_BYTES).take_while(|byte| is_token_byte(**byte)).count();
        let least = if *joint == b'%' { 2 } else { MIN_JOINED_BYTES };
        if length < least {
            break;
        }
        end += 1 + length;
    }
    token.start..end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(text: &str, form: TextForm) -> Vec<&str> {
        let mut found = Vec::new();
        find_random_tokens(text, form, &mut found);
        found.into_iter().map(|(range, _)| &text[range]).collect()
    }

    const RANDOM: &str = concat!("q7Rt2Yp9", "Lk4Wn6Zc8Vb3Xs");

    #[test]
    fn random_texts_are_found_and_words_are_not() {
        for (text, form, expected) in [
            ("x = \"@@\"", TextForm::Code, true),
            ("// @@", TextForm::Code, true),
            ("f(@@)", TextForm::Code, false),
            ("value: @@", TextForm::Data, true),
            ("@@", TextForm::Data, true),
            ("sha256: @@", TextForm::Data, false),
            ("ssh-ed25519 @@", TextForm::Data, false),
            ("a/b/@@/c", TextForm::Data, false),
            ("DateTimeFormatterBuilder2Test1", TextForm::Data, false),
            ("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghij0123456789", TextForm::Data, false),
            ("8-O2uVAFaQ1rZvlKLT14RnuvjPIdg", TextForm::Data, false),
            ("123e4567-e89b-12d3-a456-426614174000", TextForm::Data, false),
            ("spent by ar_01M8JRSF23TX4BP35EH5MGKB9X and", TextForm::Data, false),
        ] {
            let text = text.replace("@@", RANDOM);
            assert_eq!(!find(&text, form).is_empty(), expected, "{text}");
        }
    }

    #[test]
    fn a_known_key_that_names_a_folder_is_no_longer_token() {
        for (rest, expected) in [("", 2), ("/long.py", 1), ("/src/long", 1), ("/X9s2Kd", 2)] {
            let text = format!("{RANDOM}{rest}");
            let mut found = vec![(0..RANDOM.len(), "a key")];
            find_random_tokens(&text, TextForm::Data, &mut found);
            assert_eq!(found.len(), expected, "{text}");
        }
    }

    #[test]
    fn data_of_several_lines_is_no_secret() {
        let line = "q7Rt2Yp9Lk4Wn6Zc8Vb3Xsq7Rt2Yp9Lk4Wn6Zc8Vb3Xs";
        assert!(find(&format!("{line}\n{line}\n{line}\n"), TextForm::Data).is_empty());
    }

    #[test]
    fn joined_parts_are_masked_together() {
        assert_eq!(
            find(&format!("x {RANDOM}.abcdef.ghijkl.rs y"), TextForm::Data),
            [format!("{RANDOM}.abcdef.ghijkl")]
        );
    }
}
