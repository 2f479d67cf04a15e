//! Finds private keys: Base64 after a `BEGIN` line, regardless of the characters around it (quotes, `\n`, `+`).

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

/// Maximum distance from the `BEGIN` line to the end of a key, in bytes. A key of 16,384 bits takes 13 KB.
const MAX_KEY_BYTES: usize = 32 << 10;
/// Minimum length of a Base64 run, in bytes, that alone proves a key. Keys have lines of 64 characters.
const MIN_WHOLE_LINE_BYTES: usize = 40;
/// Minimum length of a shorter run, in bytes, and the number of such runs that prove a key.
const MIN_PIECE_BYTES: usize = 16;
const MIN_PIECES: usize = 3;

static KEY_BEGIN: LazyLock<Regex> =
    LazyLock::new(|| compile_regex("-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"));
static KEY_END: LazyLock<Regex> = LazyLock::new(|| compile_regex("-----(?:BEGIN|END) "));
static BASE64_RUN: LazyLock<Regex> = LazyLock::new(|| compile_regex("[A-Za-z0-9+/=]{4,}"));

fn compile_regex(pattern: &str) -> Regex {
    Regex::new(pattern).unwrap_or_else(|_| unreachable!("a constant"))
}

/// Returns the byte ranges of the Base64 text of private keys.
pub fn find_private_keys(text: &str) -> Vec<(Range<usize>, &'static str)> {
    let mut found = Vec::new();
    for begin in KEY_BEGIN.find_iter(text) {
        let rest = text.get(begin.end()..).unwrap_or_default();
        let rest = rest.get(..rest.floor_char_boundary(MAX_KEY_BYTES)).unwrap_or(rest);
        let (body, shortest) = match KEY_END.find(rest) {
            Some(end) => (rest.get(..end.start()).unwrap_or_default(), 0),
            None => (slice_unterminated_key(rest), MIN_PIECE_BYTES),
        };
        if !is_key(body) {
            continue;
        }
        let runs = BASE64_RUN.find_iter(body).filter(|run| run.len() >= shortest);
        found.extend(runs.map(|run| (begin.end() + run.start()..begin.end() + run.end(), "a private key")));
    }
    found
}

/// Returns the part of a text without an `END` line that belongs to the key: up to the first line without Base64 after
/// lines with Base64.
fn slice_unterminated_key(rest: &str) -> &str {
    let (mut end, mut begun) = (0, false);
    for line in rest.split_inclusive('\n') {
        let has_piece = BASE64_RUN.find_iter(line).any(|run| is_base64(run.as_str()));
        if begun && !has_piece {
            break;
        }
        begun |= has_piece;
        end += line.len();
    }
    rest.get(..end).unwrap_or(rest)
}

fn is_key(body: &str) -> bool {
    let mut pieces = BASE64_RUN.find_iter(body).filter(|run| is_base64(run.as_str()));
    let Some(first) = pieces.next() else { return false };
    first.len() >= MIN_WHOLE_LINE_BYTES
        || pieces.enumerate().any(|(at, run)| run.len() >= MIN_WHOLE_LINE_BYTES || at + 2 >= MIN_PIECES)
}

/// Returns true for a run with digits, upper case and lower case. Words and paths use the characters of Base64, but
/// seldom all three kinds.
fn is_base64(run: &str) -> bool {
    let has = |test: fn(&u8) -> bool| run.as_bytes().iter().any(test);
    run.len() >= MIN_PIECE_BYTES
        && has(u8::is_ascii_digit)
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_lowercase)
}
