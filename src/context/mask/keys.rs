//! Private keys: where the lines between `BEGIN` and `END` are a key, whatever stands around them (quotes, `\n`, `+`).

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

/// A key ends within so many bytes of its first line; one of 16,384 bits takes 13 KB.
const MAX_KEY: usize = 32 << 10;
/// Base64 in a key comes in lines of 64; from here on, in bytes, one is enough.
const WHOLE_LINE: usize = 40;
/// Shorter lines, in bytes, where there are several.
const PIECE: usize = 16;
const PIECES: usize = 3;

static BEGIN: LazyLock<Regex> = LazyLock::new(|| constant("-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"));
static END: LazyLock<Regex> = LazyLock::new(|| constant("-----(?:BEGIN|END) "));
static RUN: LazyLock<Regex> = LazyLock::new(|| constant("[A-Za-z0-9+/=]{4,}"));

fn constant(pattern: &str) -> Regex {
    Regex::new(pattern).unwrap_or_else(|_| unreachable!("a constant"))
}

/// The Base64 of private keys.
pub fn private(text: &str) -> Vec<(Range<usize>, &'static str)> {
    let mut found = Vec::new();
    for begin in BEGIN.find_iter(text) {
        let rest = text.get(begin.end()..).unwrap_or_default();
        let rest = rest.get(..rest.floor_char_boundary(MAX_KEY)).unwrap_or(rest);
        let (body, shortest) = match END.find(rest) {
            Some(end) => (rest.get(..end.start()).unwrap_or_default(), 0),
            None => (cut_off(rest), PIECE),
        };
        if !is_key(body) {
            continue;
        }
        let runs = RUN.find_iter(body).filter(|run| run.len() >= shortest);
        found.extend(runs.map(|run| (begin.end() + run.start()..begin.end() + run.end(), "a private key")));
    }
    found
}

/// What of a text without an end still is the key: up to the first line without Base64 behind lines with it.
fn cut_off(rest: &str) -> &str {
    let (mut end, mut begun) = (0, false);
    for line in rest.split_inclusive('\n') {
        let has_piece = RUN.find_iter(line).any(|run| is_base64(run.as_str()));
        if begun && !has_piece {
            break;
        }
        begun |= has_piece;
        end += line.len();
    }
    rest.get(..end).unwrap_or(rest)
}

fn is_key(body: &str) -> bool {
    let mut pieces = RUN.find_iter(body).filter(|run| is_base64(run.as_str()));
    let Some(first) = pieces.next() else { return false };
    first.len() >= WHOLE_LINE || pieces.enumerate().any(|(at, run)| run.len() >= WHOLE_LINE || at + 2 >= PIECES)
}

/// Words and paths have the characters of Base64, but seldom of all sorts.
fn is_base64(run: &str) -> bool {
    let has = |test: fn(&u8) -> bool| run.as_bytes().iter().any(test);
    run.len() >= PIECE && has(u8::is_ascii_digit) && has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase)
}
