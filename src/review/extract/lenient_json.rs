//! Reads JSON as models write it, out of any surrounding text.
//!
//! In addition to JSON it accepts comments, trailing and missing commas, single and typographic quotes, unquoted keys
//! and words, `NaN`, raw line ends and unescaped quotes in strings, missing closing brackets, and an end of the text at
//! any place. Values that were complete before the end are kept; incomplete values are marked.
//!
//! - Valid JSON is read as JSON defines it.
//! - The work is linear in the size of the text ([`MAX_STEPS_PER_BYTE`]).
//! - Nesting is limited ([`MAX_NESTING`]).
//! - Nothing panics.

use std::borrow::Cow;

use memchr::{memchr, memchr2, memmem};

use super::json_lexemes::{QuoteMark, bare_length, blank_length, is_bare_byte, may_follow, unescape_string};

/// Maximum nesting of brackets. Not from the literature: reports need 4 levels.
pub(super) const MAX_NESTING: usize = 64;

/// Maximum number of steps per byte of text for guessing where strings end; after that, every quote ends its string.
/// Not from the literature: valid JSON takes 3 steps per byte, an answer without escaped quotes 5.
const MAX_STEPS_PER_BYTE: usize = 10;

/// Maximum size of a key in bytes. Not from the literature.
const MAX_KEY_BYTES: usize = 128;

/// Maximum number of bytes that are read after a quote to decide whether it ends its string. Not from the literature:
/// indentation and a key.
const MAX_LOOKAHEAD_BYTES: usize = 2 * MAX_KEY_BYTES;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum LenientValue<'a> {
    /// `null`, its names in other languages, and a missing value.
    Null,
    Bool(bool),
    Number(f64),
    Text(Cow<'a, str>),
    List(Vec<LenientValue<'a>>),
    Object(LenientObject<'a>),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct LenientObject<'a> {
    /// In the order of the text. The last member may be incomplete if the object is.
    pub members: Vec<(Cow<'a, str>, LenientValue<'a>)>,
    /// Byte offset of the object.
    pub at: usize,
    pub end: ParseEnd,
}

/// The way in which a value ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ParseEnd {
    Whole,
    /// The text or its fenced block ended.
    Cut,
    /// The following text could not be parsed.
    Broken,
}

/// The role of a string, which decides what may follow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StringRole {
    Member { depth: usize },
    Element,
}

/// A reader of all lists and objects of a text.
pub(super) struct LenientJsonReader<'a> {
    text: &'a str,
    at: usize,
    /// Number of bytes read so far, repeated reads included.
    steps: usize,
    /// Byte offset of the string or comment that was still open at the end of the text.
    open: Option<usize>,
}

impl<'a> LenientJsonReader<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { text, at: 0, steps: 0, open: None }
    }

    /// Returns the next list or object, skipping other text.
    pub fn next_value(&mut self) -> Option<LenientValue<'a>> {
        self.reopen();
        let rest = self.bytes().get(self.at..)?;
        let start = memchr2(b'{', b'[', rest)?;
        self.steps += start;
        self.at += start;
        Some(self.read_value(1, StringRole::Element).0)
    }

    /// Resumes at the next fenced block if a string or comment took the rest of the text, because its end may only be
    /// missing.
    fn reopen(&mut self) {
        let Some(open) = self.open.take().filter(|_| self.may_look_ahead()) else { return };
        let rest = self.bytes().get(open..).unwrap_or_default();
        self.steps += rest.len();
        if let Some(fence) = memmem::find(rest, b"\n```") {
            self.at = open + fence;
        }
    }

    fn may_look_ahead(&self) -> bool {
        self.steps < MAX_STEPS_PER_BYTE * self.text.len()
    }

    fn bytes(&self) -> &'a [u8] {
        self.text.as_bytes()
    }

    fn peek(&self) -> Option<u8> {
        self.bytes().get(self.at).copied()
    }

    fn starts_with(&self, what: &str) -> bool {
        self.bytes().get(self.at..).is_some_and(|rest| rest.starts_with(what.as_bytes()))
    }

    fn is_at_fence(&self) -> bool {
        self.starts_with("```") || self.starts_with("~~~")
    }

    /// Skips white space and comments. Returns `true` if they contain a line end.
    fn skip_blank(&mut self) -> bool {
        let from = self.at;
        loop {
            self.at += blank_length(self.bytes().get(self.at..).unwrap_or_default());
            let rest = self.bytes().get(self.at..).unwrap_or_default();
            self.at += match rest {
                [b'/', b'/', ..] => memchr(b'\n', rest).unwrap_or(rest.len()),
                [b'/', b'*', ..] => match memmem::find(rest.get(2..).unwrap_or_default(), b"*/") {
                    Some(end) => end + 4,
                    None => {
                        self.open = Some(self.at);
                        rest.len()
                    }
                },
                _ => break,
            };
        }
        self.steps += self.at - from;
        self.bytes().get(from..self.at).is_some_and(|passed| memchr(b'\n', passed).is_some())
    }

    fn read_value(&mut self, depth: usize, role: StringRole) -> (LenientValue<'a>, ParseEnd) {
        match self.peek() {
            Some(b'{' | b'[') if depth > MAX_NESTING => (LenientValue::Null, ParseEnd::Broken),
            Some(b'{') => self.read_object(depth),
            Some(b'[') => self.read_list(depth),
            Some(b',' | b'}' | b']') => (LenientValue::Null, ParseEnd::Whole),
            None => (LenientValue::Null, ParseEnd::Cut),
            Some(_) => match QuoteMark::detect(self.bytes(), self.at) {
                Some(quote) => {
                    let (text, end) = self.read_string(quote, role);
                    (LenientValue::Text(text), end)
                }
                None => self.read_bare_value(),
            },
        }
    }

    fn read_list(&mut self, depth: usize) -> (LenientValue<'a>, ParseEnd) {
        self.at += 1;
        let mut items = Vec::new();
        let end = loop {
            self.skip_blank();
            match self.peek() {
                None => break ParseEnd::Cut,
                Some(b']') => {
                    self.at += 1;
                    break ParseEnd::Whole;
                }
                // The closing bracket of the list is missing.
                Some(b'}') => break ParseEnd::Whole,
                Some(b',') => self.at += 1,
                Some(_) if self.is_at_fence() => break ParseEnd::Cut,
                Some(_) => {
                    let (item, end) = self.read_value(depth + 1, StringRole::Element);
                    items.push(item);
                    if end != ParseEnd::Whole {
                        break end;
                    }
                    if !self.skip_to_separator() {
                        break ParseEnd::Broken;
                    }
                }
            }
        };
        (LenientValue::List(items), end)
    }

    fn read_object(&mut self, depth: usize) -> (LenientValue<'a>, ParseEnd) {
        let mut object = LenientObject { members: Vec::new(), at: self.at, end: ParseEnd::Whole };
        self.at += 1;
        object.end = loop {
            self.skip_blank();
            match self.peek() {
                None => break ParseEnd::Cut,
                Some(b'}') => {
                    self.at += 1;
                    break ParseEnd::Whole;
                }
                Some(b']') if !object.members.is_empty() => break ParseEnd::Whole,
                Some(b',') => self.at += 1,
                Some(_) if self.is_at_fence() => break ParseEnd::Cut,
                Some(_) => {
                    let (key, end) = self.read_key();
                    if end != ParseEnd::Whole {
                        break end;
                    }
                    self.skip_blank();
                    match self.peek() {
                        Some(b':') => self.at += 1,
                        Some(_) => break ParseEnd::Broken,
                        None => break ParseEnd::Cut,
                    }
                    self.skip_blank();
                    let (value, end) = self.read_value(depth + 1, StringRole::Member { depth });
                    object.members.push((key, value));
                    if end != ParseEnd::Whole {
                        break end;
                    }
                    if !self.skip_to_separator() {
                        break ParseEnd::Broken;
                    }
                }
            }
        };
        let end = object.end;
        (LenientValue::Object(object), end)
    }

    /// Returns `true` if a separator follows a member or an element: a comma, a closing bracket, the end, or the next
    /// member if only the comma is missing.
    fn skip_to_separator(&mut self) -> bool {
        let new_line = self.skip_blank();
        match self.peek() {
            None | Some(b',' | b'}' | b']' | b'{') => true,
            Some(_) if self.is_at_fence() => true,
            Some(b'[') => new_line,
            Some(next) => new_line && (is_bare_byte(next) || QuoteMark::detect(self.bytes(), self.at).is_some()),
        }
    }

    fn read_key(&mut self) -> (Cow<'a, str>, ParseEnd) {
        let Some(quote) = QuoteMark::detect(self.bytes(), self.at) else {
            let word = self.read_bare_word();
            return (word.into(), if word.is_empty() { ParseEnd::Broken } else { ParseEnd::Whole });
        };
        let start = self.at + quote.byte_len();
        let limit = self.bytes().len().min(start + MAX_KEY_BYTES);
        match quote.find_closing(self.bytes().get(..limit).unwrap_or_default(), start) {
            Some((end, next)) => {
                self.steps += end - start;
                self.close_string(start, end, next)
            }
            None => {
                self.steps += limit.saturating_sub(start);
                let cut = limit == self.bytes().len();
                self.at = if cut { limit } else { start };
                (Cow::Borrowed(""), if cut { ParseEnd::Cut } else { ParseEnd::Broken })
            }
        }
    }

    /// Reads a number or a word without quotes; empty if there is none.
    fn read_bare_word(&mut self) -> &'a str {
        let start = self.at;
        self.at += bare_length(self.bytes().get(start..).unwrap_or_default());
        self.steps += self.at - start;
        self.text.get(start..self.at).unwrap_or_default()
    }

    fn read_bare_value(&mut self) -> (LenientValue<'a>, ParseEnd) {
        let word = self.read_bare_word();
        let value = match word {
            "" => return (LenientValue::Null, ParseEnd::Broken),
            "null" | "None" | "nil" | "undefined" | "NaN" | "-NaN" | "Infinity" | "+Infinity" | "-Infinity" => {
                LenientValue::Null
            }
            "true" | "True" => LenientValue::Bool(true),
            "false" | "False" => LenientValue::Bool(false),
            _ if word.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.')) => {
                word.parse().map_or(LenientValue::Text(word.into()), LenientValue::Number)
            }
            _ => LenientValue::Text(word.into()),
        };
        (value, ParseEnd::Whole)
    }

    fn read_string(&mut self, quote: QuoteMark, role: StringRole) -> (Cow<'a, str>, ParseEnd) {
        let bytes = self.bytes();
        let start = self.at + quote.byte_len();
        let mut from = start;
        // The first quote that nothing valid follows.
        let mut doubtful: Option<(usize, usize)> = None;
        loop {
            let found = quote.find_closing(bytes, from);
            let until = found.map_or(bytes.len(), |(end, _)| end);
            self.steps += until.saturating_sub(from);
            // Prose contains apostrophes, and some strings are never closed. Therefore only double quotes may continue
            // on the next line, and only up to an unambiguous quote.
            let new_line = memchr(b'\n', bytes.get(from..until).unwrap_or_default()).is_some();
            let mut over = new_line && (quote != QuoteMark::Double || doubtful.is_some());
            if let Some((end, next)) = found.filter(|_| !over) {
                if self.may_end_at(next, role) {
                    return self.close_string(start, end, next);
                }
                over = new_line;
                if !over {
                    doubtful.get_or_insert((end, next));
                    from = next;
                    continue;
                }
            }
            match doubtful {
                // The string ended at the doubtful quote; the text after it cannot be parsed.
                Some((end, next)) => return self.close_string(start, end, next),
                None if over => {
                    self.at = start;
                    return (Cow::Borrowed(""), ParseEnd::Broken);
                }
                None => {
                    self.at = bytes.len();
                    self.open = Some(start);
                    return (self.decode_span(start, bytes.len()), ParseEnd::Cut);
                }
            }
        }
    }

    fn close_string(&mut self, start: usize, end: usize, next: usize) -> (Cow<'a, str>, ParseEnd) {
        self.at = next;
        (self.decode_span(start, end), ParseEnd::Whole)
    }

    fn decode_span(&mut self, start: usize, end: usize) -> Cow<'a, str> {
        self.steps += end.saturating_sub(start);
        unescape_string(self.text.get(start..end).unwrap_or_default())
    }

    /// Returns `true` if a member's string may end before `at`: a comma and a key, a closing bracket, the end, or a key
    /// on the next line follows. An unescaped quote inside a string is rarely followed by these; in valid JSON one of
    /// them always follows.
    fn may_end_at(&mut self, at: usize, role: StringRole) -> bool {
        let StringRole::Member { depth } = role else { return true };
        if !self.may_look_ahead() {
            return true;
        }
        let window = self.bytes().get(at..self.bytes().len().min(at + MAX_LOOKAHEAD_BYTES)).unwrap_or_default();
        let (answer, looked_at) = may_follow(window, depth);
        self.steps += looked_at;
        answer
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;
    use serde_json::{Value as Json, json};

    use super::*;

    fn documents(text: &str) -> (Vec<LenientValue<'_>>, usize) {
        let mut reader = LenientJsonReader::new(text);
        let documents = std::iter::from_fn(|| reader.next_value()).collect();
        (documents, reader.steps)
    }

    fn json(value: &LenientValue<'_>) -> Json {
        match value {
            LenientValue::Null => Json::Null,
            LenientValue::Bool(truth) => json!(truth),
            LenientValue::Number(number) => json!(number),
            LenientValue::Text(text) => json!(text),
            LenientValue::List(items) => items.iter().map(json).collect(),
            LenientValue::Object(object) => {
                object.members.iter().map(|(name, value)| (name.to_string(), json(value))).collect()
            }
        }
    }

    #[rstest]
    #[case::json(r#"x [1, -2.5e1, "a\"b", null, true, {"k": []}] y"#, &[r#"[1.0, -25.0, "a\"b", null, true, {"k": []}]"#])]
    #[case::words("{a: b, c-d: 12-15, e: .5, f: 1.2.3, g: +1}", &[r#"{"a":"b","c-d":"12-15","e":0.5,"f":"1.2.3","g":1.0}"#])]
    #[case::no_value("{a:, b: 1}", &[r#"{"a":null,"b":1.0}"#])]
    #[case::comments("{a: /* } */ 1, // , b: 2\n c: 3 // end\n}", &[r#"{"a":1.0,"c":3.0}"#])]
    #[case::missing_commas("{\"a\": \"x\"\n\"b\": 1\n}", &[r#"{"a":"x","b":1.0}"#])]
    #[case::no_missing_commas_within_a_line("[see the docs] {a: 1}", &[r#"["see"]"#, r#"{"a":1.0}"#])]
    #[case::a_comment_behind_a_key("[{a: 'x', \"b\" /* : */ : 1}]", &[r#"[{"a":"x","b":1.0}]"#])]
    #[case::curly_quotes_within_quotes("{\"a\": \"“b”, ‘c’: 'd'\"}", &[r#"{"a":"“b”, ‘c’: 'd'"}"#])]
    #[case::cut_in_an_escape(r#"["a\"#, &[r#"["a"]"#])]
    #[case::cut_in_a_unit(r#"["a\u00"#, &[r#"["a\\u00"]"#])]
    fn readings(#[case] text: &str, #[case] expected: &[&str]) {
        let read: Vec<Json> = documents(text).0.iter().map(json).collect();
        let expected: Vec<Json> = expected.iter().map(|text| serde_json::from_str(text).expect("JSON")).collect();
        assert_eq!(read, expected);
    }

    #[test]
    fn nesting_is_limited() {
        let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        let deep = nested(MAX_NESTING);
        assert_eq!(documents(&deep).0.iter().map(json).collect::<Vec<_>>().len(), 1);
        assert!(json(&documents(&deep).0[0]).to_string().contains("1.0"));
        assert_eq!(documents(&nested(MAX_NESTING + 1)).0.len(), 2, "what is inside is read by itself");
    }

    #[rstest]
    #[case(r#"{"a": 1}"#, ParseEnd::Whole)]
    #[case(r#"{"a": [1}"#, ParseEnd::Whole)]
    #[case(r#"{"a": 1"#, ParseEnd::Cut)]
    #[case(r#"{"a": "x"#, ParseEnd::Cut)]
    #[case(r#"{"a"#, ParseEnd::Cut)]
    #[case("{\"a\": 1\n```", ParseEnd::Cut)]
    #[case(r#"{"a": 1; "b": 2}"#, ParseEnd::Broken)]
    #[case(r#"{"a" 1}"#, ParseEnd::Broken)]
    #[case(r#"{...}"#, ParseEnd::Broken)]
    fn ends(#[case] text: &str, #[case] expected: ParseEnd) {
        let (documents, _) = documents(text);
        let [LenientValue::Object(object)] = documents.as_slice() else { panic!("{documents:?}") };
        assert_eq!(object.end, expected);
    }

    /// Texts that try to make the reader read bytes again and again.
    #[rstest]
    #[case::objects("{")]
    #[case::lists("[")]
    #[case::both("[{")]
    #[case::keys("{\"a\":")]
    #[case::open_strings("{\"a\":\"")]
    #[case::doubtful_strings("{\"a\":\"b\"x")]
    #[case::doubtful_ends("{\"a\":\"b\" }x ")]
    #[case::single_quotes("['")]
    #[case::escaped_quotes("['\\'")]
    #[case::all_quotes("[\"['[“[‘")]
    #[case::half_keys("{\"aaaaaaaaaaaaaaaaaaaaaaaaaaaa")]
    #[case::fences("{\"\n```\n")]
    #[case::fenced_strings("{\"a\":\"b\n```json\n[\"")]
    #[case::comments("{/*")]
    #[case::fenced_comments("{/*\n```\n")]
    #[case::line_comments("[//")]
    #[case::backticks("`")]
    #[case::quotes("\"")]
    #[case::commas("[,")]
    #[case::blanks("{a: \"b\"        ")]
    #[case::backslashes("[\"\\")]
    #[case::no_break_spaces("[\u{a0}")]
    fn work_is_linear(#[case] piece: &str) {
        for before in ["", "[", "{\"findings\": [", "{\"a\": \""] {
            let text = format!("{before}{}", piece.repeat(20_000 / piece.len()));
            let (_, steps) = documents(&text);
            assert!(steps <= (MAX_STEPS_PER_BYTE + 6) * text.len(), "{steps} steps for {} bytes", text.len());
        }
    }

    fn any_json() -> impl Strategy<Value = Json> {
        let leaf = prop_oneof![
            Just(Json::Null),
            any::<bool>().prop_map(Json::from),
            any::<i32>().prop_map(|number| json!(f64::from(number))),
            "[a-z \"'\\\\{}\\[\\],:/*`\n\u{0}ü🦀“]{0,24}".prop_map(Json::from),
        ];
        leaf.prop_recursive(5, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Json::from),
                prop::collection::vec(("[a-z \"':}\n]{0,6}", inner), 0..6)
                    .prop_map(|members| Json::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn json_is_read_as_json_says(value in any_json(), indented in any::<bool>(), before in "[a-z \n]{0,9}") {
            let value = json!([value]);
            let text = if indented { format!("{value:#}") } else { value.to_string() };
            let text = format!("{before}{text} and more");
            let (documents, steps) = documents(&text);
            let read: Vec<Json> = documents.iter().map(json).collect();
            prop_assert_eq!(read, vec![value]);
            prop_assert!(steps <= 4 * text.len() + 4, "{} steps for {} bytes", steps, text.len());
        }

        #[test]
        fn work_is_linear_in_any_text(text in "[\\[\\]{}\"',:/*`\\\\a \n“]{0,600}") {
            let (_, steps) = documents(&text);
            prop_assert!(steps <= (MAX_STEPS_PER_BYTE + 6) * text.len() + 200, "{} steps for {} bytes", steps, text.len());
        }
    }
}
