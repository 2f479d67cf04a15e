//! Makes text from models, code and file names safe for a terminal, and formats small texts.

use std::borrow::Cow;
use std::ops::Range;

use super::emoji::separate_emoji;

/// Returns true if a terminal could interpret the character as a command or show it in a misleading way: control
/// characters (C0, C1, DEL), line separators, and bidirectional or invisible formatting characters.
pub fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Returns the text as one safe line. Tabs and line ends become a space, and an emoji that is joined from several becomes
/// those beside each other; any other character that [`is_unsafe`] becomes `\u{fffd}`. The result is borrowed if nothing had
/// to change.
pub fn sanitize_line(text: &str) -> Cow<'_, str> {
    // Nearly every text of a screen is printable ASCII, which is told without decoding, and for many bytes at once as long as
    // nothing ends the loop early.
    let is_printable_ascii = text.bytes().fold(true, |so_far, byte| so_far & matches!(byte, b' '..=b'~'));
    if is_printable_ascii || !text.chars().any(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let text = separate_emoji(text);
    let mut clean = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\r' if chars.peek() == Some(&'\n') => {}
            '\n' | '\r' | '\t' | '\u{2028}' | '\u{2029}' => clean.push(' '),
            c if is_unsafe(c) => clean.push('\u{fffd}'),
            c => clean.push(c),
        }
    }
    Cow::Owned(clean)
}

/// Returns the text as safe lines. A tab becomes `tab` spaces, `\r\n` becomes `\n`, and an emoji that is joined from several
/// becomes those beside each other; any other character that [`is_unsafe`] becomes `\u{fffd}`.
pub fn sanitize_lines(text: &str, tab: usize) -> String {
    let text = separate_emoji(text);
    let mut clean = String::with_capacity(text.len());
    for (index, line) in text.split('\n').enumerate() {
        if index > 0 {
            clean.push('\n');
        }
        let line = line.strip_suffix('\r').unwrap_or(line);
        for c in line.chars() {
            match c {
                '\t' => clean.extend(std::iter::repeat_n(' ', tab)),
                c if is_unsafe(c) => clean.push('\u{fffd}'),
                c => clean.push(c),
            }
        }
    }
    clean
}

/// Joins names as in `a, b and c`. Each becomes a safe line.
pub fn join_names<S: AsRef<str>>(names: &[S]) -> String {
    let names: Vec<Cow<'_, str>> = names.iter().map(|name| sanitize_line(name.as_ref())).collect();
    match names.as_slice() {
        [] => String::new(),
        [one] => one.to_string(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Formats a number with thousands separators: `12,345`.
pub fn format_thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Formats US dollars with two decimals, and amounts below ten cents with as many as show two digits that are not zeros at
/// the front: `$1.20`, `$0.05`, `$0.012`, `$0.00042`. For limits, which may be small.
pub fn format_limit_dollars(amount: f64) -> String {
    let decimals = count_decimals(amount);
    let all = format!("${amount:.decimals$}");
    let with_cents = all.len() - (decimals - 2);
    let used = all.trim_end_matches('0').len();
    all[..used.max(with_cents)].to_owned()
}

/// Rounds US dollars up to the decimals that [`format_limit_dollars`] writes, so that what is written is no less than the amount.
pub fn round_up_dollars(amount: f64) -> f64 {
    let scale = 10_f64.powi(count_decimals(amount) as i32);
    // A two-thousandth of the last digit is an error of the sum.
    let digits = (amount * scale - 0.0005).ceil();
    if digits > 0.0 { digits / scale } else { 0.0 }
}

/// Returns the number of decimals with which an amount in US dollars shows two digits that are not zeros at the front, at least
/// two.
fn count_decimals(amount: f64) -> usize {
    const MAX_DECIMALS: usize = 8;
    let mut decimals = 2;
    let mut scaled = amount.abs() * 10.0;
    while decimals < MAX_DECIMALS && scaled > 0.0 && scaled < 1.0 {
        (decimals, scaled) = (decimals + 1, scaled * 10.0);
    }
    decimals
}

/// Converts the bytes of a file name to text that can be shown and stored. Valid UTF-8 stays; an invalid byte becomes
/// `\xNN`, so that names that differ in their invalid bytes stay distinct.
pub fn path_from_bytes(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => {
            let mut shown = String::with_capacity(bytes.len() + 8);
            for chunk in bytes.utf8_chunks() {
                shown.push_str(chunk.valid());
                for byte in chunk.invalid() {
                    shown.push_str(&format!("\\x{byte:02x}"));
                }
            }
            shown
        }
    }
}

/// Normalizes code for comparison: trims every line, folds runs of white space, drops blank lines.
pub fn normalize_code(code: &str) -> String {
    let mut normal = String::with_capacity(code.len());
    for line in code.lines() {
        let mut words = line.split_whitespace();
        let Some(first) = words.next() else { continue };
        if !normal.is_empty() {
            normal.push('\n');
        }
        normal.push_str(first);
        for word in words {
            normal.push(' ');
            normal.push_str(word);
        }
    }
    normal
}

/// Formats a number with its noun: `1 finding`, `3 findings`, `3 fixes`.
pub fn format_count(n: usize, noun: &str) -> String {
    let ending = match n {
        1 => "",
        _ if noun.ends_with('x') => "es",
        _ => "s",
    };
    format!("{n} {noun}{ending}")
}

/// Returns true if a part of prose, as a range of bytes, is no part of a longer word of letters, digits and `_`.
pub fn is_separate_word(text: &str, part: Range<usize>) -> bool {
    let is_in_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let before = text.get(..part.start).and_then(|before| before.chars().next_back());
    let after = text.get(part.end..).and_then(|after| after.chars().next());
    !is_in_word(before) && !is_in_word(after)
}

/// Returns whether a word of a name (`maxRetryCount`, `MAX_RETRY_COUNT`: max, retry, count) is in a list of lower-case
/// words. A plural `s` of the word is ignored.
pub fn has_word<S: AsRef<str>>(name: &str, words: &[S]) -> bool {
    let bytes = name.as_bytes();
    let mut start = bytes.iter().take_while(|byte| !byte.is_ascii_alphanumeric()).count();
    for at in start + 1..=bytes.len() {
        if at <= start {
            continue;
        }
        let ends = at == bytes.len()
            || !bytes[at].is_ascii_alphanumeric()
            || (bytes[at].is_ascii_uppercase() && !bytes[at - 1].is_ascii_uppercase())
            || (bytes[at].is_ascii_uppercase() && bytes.get(at + 1).is_some_and(u8::is_ascii_lowercase))
            || (bytes[at].is_ascii_digit() != bytes[at - 1].is_ascii_digit());
        if !ends {
            continue;
        }
        let word = &bytes[start..at];
        let singular = word.strip_suffix(b"s").or(word.strip_suffix(b"S"));
        if words.iter().any(|known| {
            let known = known.as_ref().as_bytes();
            word.eq_ignore_ascii_case(known) || singular.is_some_and(|word| word.eq_ignore_ascii_case(known))
        }) {
            return true;
        }
        start = at;
        while start < bytes.len() && !bytes[start].is_ascii_alphanumeric() {
            start += 1;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_one_and_others_are_several() {
        let told = [(1, "finding"), (0, "finding"), (1, "fix"), (2, "fix")].map(|(n, noun)| format_count(n, noun));
        assert_eq!(told, ["1 finding", "0 findings", "1 fix", "2 fixes"]);
    }

    #[test]
    fn small_limits_are_told_apart() {
        for (amount, told) in [
            (0.0, "$0.00"),
            (1.0, "$1.00"),
            (19.9, "$19.90"),
            (1.2345, "$1.23"),
            (0.1, "$0.10"),
            (0.05, "$0.05"),
            (0.0123, "$0.012"),
            (0.001, "$0.001"),
            (0.00094, "$0.00094"),
            (0.000_002, "$0.000002"),
            (1e-12, "$0.00"),
        ] {
            assert_eq!(format_limit_dollars(amount), told, "{amount}");
        }
    }

    #[test]
    fn what_is_written_of_an_amount_that_was_rounded_up_is_no_less() {
        for (amount, told) in [
            (0.0, "$0.00"),
            (-0.1, "$0.00"),
            (0.015, "$0.015"),
            (0.0151, "$0.016"),
            (0.0123, "$0.013"),
            (0.0996, "$0.10"),
            (0.004, "$0.004"),
            (0.004_21, "$0.0043"),
            (0.1 + 0.2, "$0.30"),
            (1.001, "$1.01"),
        ] {
            assert_eq!(format_limit_dollars(round_up_dollars(amount)), told, "{amount}");
        }
    }

    #[test]
    fn nothing_that_a_terminal_obeys_gets_through() {
        for (hostile, clean) in [
            ("plain ünïcode 漢字 🦀", "plain ünïcode 漢字 🦀"),
            ("\x1b[31mred\x1b]52;c;aGk=\x07", "\u{fffd}[31mred\u{fffd}]52;c;aGk=\u{fffd}"),
            ("a\r\nb\tc\nd", "a b c d"),
            ("\u{9b}2J\u{7f}", "\u{fffd}2J\u{fffd}"),
            ("user\u{202e}txt.exe", "user\u{fffd}txt.exe"),
            ("a\u{200d}b \u{e0061}", "a\u{fffd}b \u{fffd}"),
        ] {
            assert_eq!(sanitize_line(hostile), clean, "{hostile:?}");
        }
        assert_eq!(sanitize_lines("a\tb\r\n\x1b[2J", 2), "a  b\n\u{fffd}[2J");
    }

    #[test]
    fn emoji_that_are_made_of_several_are_shown_without_what_joins_them() {
        for (joined, shown) in [
            ("👨\u{200d}👩\u{200d}👧.rs", "👨👩👧.rs"),
            ("👩🏽\u{200d}💻 🏳\u{fe0f}\u{200d}🌈", "👩🏽💻 🏳\u{fe0f}🌈"),
            ("🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f} won", "🏴 won"),
            ("👩\u{200d}💻\u{202e}\x1b", "👩💻\u{fffd}\u{fffd}"),
        ] {
            assert_eq!(sanitize_line(joined), shown, "{joined:?}");
            assert_eq!(sanitize_lines(joined, 4), shown, "{joined:?}");
        }
    }

    #[test]
    fn file_names_that_are_not_utf8_stay_distinct() {
        assert_eq!(path_from_bytes(b"caf\xe9.rs"), "caf\\xe9.rs");
        assert_ne!(path_from_bytes(b"caf\xe9.rs"), path_from_bytes(b"caf\xe8.rs"));
    }

    #[test]
    fn normal_code_ignores_layout_only() {
        assert_eq!(normalize_code("  if  x {\n\n\ty();\r\n}\n"), "if x {\ny();\n}");
    }
}
