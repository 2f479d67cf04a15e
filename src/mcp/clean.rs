//! Makes what leaves harmless: secrets are masked, control and invisible characters are replaced, texts are cut.

use serde_json::Value;

use crate::domain::text::is_unsafe;
use crate::masking::mask_besides_ids;

/// Maximum size of a result in bytes, as JSON. Above the limit of details, so that lists with many rows are cut by rows.
pub const MAX_RESULT_BYTES: usize = 64_000;
/// Mark at the end of a text that was cut.
const CUT_MARK: &str = " [cut]";

/// Returns the text without secrets and without characters that a terminal could obey or show wrongly. Line feeds and
/// tabs stay: code needs them.
pub fn clean_text(text: &str) -> String {
    let masked = mask_besides_ids(text);
    let keeps = |c: char| matches!(c, '\n' | '\t') || !is_unsafe(c);
    if masked.chars().all(keeps) {
        return masked.into_owned();
    }
    let lines = masked.replace("\r\n", "\n");
    lines.chars().map(|c| if keeps(c) { c } else { '\u{fffd}' }).collect()
}

/// Cleans all strings of a value with [`clean_text`], also the keys of objects.
pub fn clean_value(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(clean_text(&text)),
        Value::Array(items) => items.into_iter().map(clean_value).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(key, value)| (clean_text(&key), clean_value(value))).collect()
        }
        other => other,
    }
}

/// Returns the text with at most `most` bytes, with a mark at the end if it was cut.
pub fn cut_text(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(most.saturating_sub(CUT_MARK.len()));
    format!("{}{CUT_MARK}", &text[..end])
}

/// Returns the size of a value in bytes, as JSON on one line.
pub fn json_bytes(value: &Value) -> usize {
    struct CountingWriter(usize);
    impl std::io::Write for CountingWriter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut counter = CountingWriter(0);
    match serde_json::to_writer(&mut counter, value) {
        Ok(()) => counter.0,
        Err(_) => usize::MAX,
    }
}

/// Keeps the first items that fit into `most` bytes as a JSON list, and returns their number.
pub fn count_fitting(items: &[Value], most: usize) -> usize {
    let mut used = 2;
    items
        .iter()
        .take_while(|item| {
            used += json_bytes(item) + 1;
            used <= most
        })
        .count()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nothing_secret_and_nothing_that_a_terminal_obeys_leaves() {
        let key = ["ghp", "_16C7e42F292c6912E7710c838347Ae178B4a"].concat();
        for (text, expected) in [
            ("plain ünïcode\n\tcode", "plain ünïcode\n\tcode"),
            ("\x1b[2Ja\r\nb\u{202e}", "\u{fffd}[2Ja\nb\u{fffd}"),
            ("\u{9b}2J", "\u{fffd}2J"),
            (key.as_str(), "«secret:github_token»"),
            ("ar_01M85FXZAJJ8HH37S1AMJJN2F9", "ar_01M85FXZAJJ8HH37S1AMJJN2F9"),
            (
                "<latest run=\"ar_01M85FXZAJJ8HH37S1AMJJN2F9\" id=\"f_326e16b6ebedba06\"/>",
                "<latest run=\"ar_01M85FXZAJJ8HH37S1AMJJN2F9\" id=\"f_326e16b6ebedba06\"/>",
            ),
        ] {
            assert_eq!(clean_text(text), expected, "{text:?}");
        }
        let cleaned = clean_value(json!({ "a\x07": ["\x1b", 1, null, { "b": key }] }));
        assert_eq!(cleaned, json!({ "a\u{fffd}": ["\u{fffd}", 1, null, { "b": "«secret:github_token»" }] }));
    }

    #[test]
    fn texts_are_cut_at_characters_and_say_so() {
        for (text, most, expected) in [("abc", 3, "abc"), ("abcdefghij", 9, "abc [cut]"), ("äöüäöü", 11, "äö [cut]")]
        {
            let cut = cut_text(text, most);
            assert_eq!(cut, expected);
            assert!(cut.len() <= most, "{cut}");
        }
    }

    #[test]
    fn sizes_are_those_of_the_json() {
        let items = [json!({ "a": "ü\"" }), json!([1, 2]), json!("x")];
        assert_eq!(items.each_ref().map(json_bytes), items.each_ref().map(|item| item.to_string().len()));
        let whole = json!(items).to_string().len();
        assert_eq!(count_fitting(&items, whole + 1), 3);
        assert_eq!(count_fitting(&items, whole - 1), 2);
        assert_eq!(count_fitting(&items, 2), 0);
    }
}
