//! Splits the bytes of a response into JSON texts: server-sent events, one JSON text per line, or one whole JSON text.
//!
//! - A chunk of bytes may end anywhere, even inside a character.
//! - No buffer grows without bounds.
//! - A text that a broken connection truncated never counts as complete.

use memchr::memchr2;
use serde_json::Value;

use super::response_builder::ResponseTooLarge;

/// Maximum size of one event. It is large because the last event of OpenAI's responses format repeats the whole answer.
const MAX_EVENT_BYTES: usize = 16 * 1024 * 1024;
/// Maximum size of a whole response, including the JSON that events put around each token.
const MAX_STREAM_BYTES: usize = 64 * 1024 * 1024;

/// The way in which a server separates JSON texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// Server-sent events, or one whole JSON text if the server does not stream.
    Events,
    /// One JSON text per line.
    Lines,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DecoderMode {
    /// Nothing but white space has arrived.
    Start(Framing),
    Events,
    Lines,
    Whole,
}

/// The decoder of a response body.
#[derive(Debug)]
pub struct StreamDecoder {
    mode: DecoderMode,
    /// The incomplete line, or the whole text in [`DecoderMode::Whole`].
    line: Vec<u8>,
    /// The data of the incomplete event; `None` before its first data line.
    data: Option<Vec<u8>>,
    /// The last byte was a carriage return. It ends a line, and a newline that follows it is skipped.
    after_carriage_return: bool,
    received: usize,
}

impl StreamDecoder {
    pub fn new(framing: Framing) -> Self {
        Self {
            mode: DecoderMode::Start(framing),
            line: Vec::new(),
            data: None,
            after_carriage_return: false,
            received: 0,
        }
    }

    /// Decodes more bytes and returns the JSON texts that are now complete.
    ///
    /// # Errors
    ///
    /// [`ResponseTooLarge`] if the response or one event is over its limit.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, ResponseTooLarge> {
        self.received = self.received.saturating_add(bytes.len());
        if self.received > MAX_STREAM_BYTES {
            return Err(ResponseTooLarge("more than 64 MiB for one answer"));
        }
        let mut texts = Vec::new();
        let mut rest = bytes;
        if let DecoderMode::Start(framing) = self.mode {
            // A byte order mark counts as white space here.
            let start = rest.iter().position(|byte| !byte.is_ascii_whitespace() && !matches!(byte, 0xef | 0xbb | 0xbf));
            let Some(start) = start else { return Ok(texts) };
            rest = &rest[start..];
            self.mode = match (framing, rest[0]) {
                (Framing::Lines, _) => DecoderMode::Lines,
                (Framing::Events, b'a'..=b'z' | b':') => DecoderMode::Events,
                (Framing::Events, _) => DecoderMode::Whole,
            };
        }
        if self.mode == DecoderMode::Whole {
            self.append(rest)?;
            return Ok(texts);
        }
        while !rest.is_empty() {
            if std::mem::take(&mut self.after_carriage_return) && rest[0] == b'\n' {
                rest = &rest[1..];
                continue;
            }
            let Some(end) = memchr2(b'\n', b'\r', rest) else {
                self.append(rest)?;
                break;
            };
            self.append(&rest[..end])?;
            self.after_carriage_return = rest[end] == b'\r';
            rest = &rest[end + 1..];
            let line = std::mem::take(&mut self.line);
            self.decode_line(line, &mut texts)?;
        }
        Ok(texts)
    }

    /// Ends the decoding at the end of the connection and returns the text after the last line end. The text may be
    /// truncated: it is complete only if it parses.
    pub fn finish(mut self) -> Option<Vec<u8>> {
        let mut texts = Vec::new();
        let line = std::mem::take(&mut self.line);
        match self.mode {
            DecoderMode::Start(_) => return None,
            DecoderMode::Whole => return Some(line),
            DecoderMode::Lines | DecoderMode::Events => self.decode_line(line, &mut texts).ok()?,
        }
        if self.mode == DecoderMode::Events {
            self.decode_line(Vec::new(), &mut texts).ok()?;
        }
        texts.pop()
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), ResponseTooLarge> {
        if self.line.len() + bytes.len() + self.data.as_ref().map_or(0, Vec::len) > MAX_EVENT_BYTES {
            return Err(ResponseTooLarge("an event of more than 16 MiB"));
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn decode_line(&mut self, line: Vec<u8>, texts: &mut Vec<Vec<u8>>) -> Result<(), ResponseTooLarge> {
        if self.mode == DecoderMode::Lines {
            if !line.trim_ascii().is_empty() {
                texts.push(line);
            }
            return Ok(());
        }
        if line.is_empty() {
            // Some servers keep the connection alive with empty events.
            texts.extend(self.data.take().filter(|data| !data.trim_ascii().is_empty()));
            return Ok(());
        }
        let colon = line.iter().position(|&byte| byte == b':').unwrap_or(line.len());
        let (field, value) = (&line[..colon], line.get(colon + 1..).unwrap_or(&[]));
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                let data = self.data.get_or_insert_default();
                if !data.is_empty() {
                    data.push(b'\n');
                }
                data.extend_from_slice(value);
            }
            // llama.cpp reports an error in a field of its own.
            b"error" => self.data = Some([b"{\"error\":", value, b"}"].concat()),
            // Event names are repeated in the data; comments, ids and unknown fields carry no information.
            _ => {}
        }
        Ok(())
    }
}

/// Parses a JSON text. Replaces lone surrogate escapes by `\u{fffd}`: servers that split text by UTF-16 units send
/// them.
///
/// # Errors
///
/// The parser's error if the text is not JSON even then.
pub fn parse_json(text: &[u8]) -> Result<Value, serde_json::Error> {
    serde_json::from_slice(text).or_else(|error| match replace_lone_surrogates(text) {
        Some(whole) => serde_json::from_slice(&whole),
        None => Err(error),
    })
}

/// Replaces lone surrogate escapes. Returns `None` if the text has none.
fn replace_lone_surrogates(text: &[u8]) -> Option<Vec<u8>> {
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    let mut whole = Vec::with_capacity(text.len());
    let (mut at, mut found) = (0, false);
    while at < text.len() {
        let length = match unit(at) {
            Some(0xd800..=0xdbff) if matches!(unit(at + 6), Some(0xdc00..=0xdfff)) => 12,
            Some(0xd800..=0xdfff) => {
                found = true;
                whole.extend_from_slice(b"\\ufffd");
                at += 6;
                continue;
            }
            _ if text[at] == b'\\' => 2,
            _ => 1,
        };
        whole.extend_from_slice(&text[at..text.len().min(at + length)]);
        at += length;
    }
    found.then_some(whole)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    fn texts(framing: Framing, pieces: &[&[u8]]) -> Vec<String> {
        let mut frames = StreamDecoder::new(framing);
        let mut texts = Vec::new();
        for piece in pieces {
            texts.extend(frames.push(piece).expect("small"));
        }
        texts.extend(frames.finish());
        texts.into_iter().map(|text| String::from_utf8(text).expect("text")).collect()
    }

    #[rstest]
    #[case::newlines("data: {1}\n\ndata: {2}\n\n", &["{1}", "{2}"])]
    #[case::returns("data: {1}\r\rdata: {2}\r\r", &["{1}", "{2}"])]
    #[case::both("data: {1}\r\n\r\ndata: {2}\r\n\r\n", &["{1}", "{2}"])]
    #[case::names_comments_ids(": ping\n\nevent: a\nid: 1\nretry: 3\ndata:{1}\nunknown\n\nevent: empty\n\n", &["{1}"])]
    #[case::says_nothing("data: \n\ndata: {1}\n\n", &["{1}"])]
    #[case::many_lines("data: {\ndata: 1}\n\n", &["{\n1}"])]
    #[case::mark_and_blanks("\u{feff}\n\ndata: x\n\n", &["x"])]
    #[case::no_last_line_end("data: {1}\n\ndata: [DONE]", &["{1}", "[DONE]"])]
    #[case::error_field("error: {\"code\":500}\n\n", &["{\"error\":{\"code\":500}}"])]
    #[case::not_streamed("\n{\n\n \"a\": 1}\n", &["{\n\n \"a\": 1}\n"])]
    #[case::a_page("<html>\n\n</html>", &["<html>\n\n</html>"])]
    #[case::nothing(" \n ", &[])]
    fn events(#[case] stream: &str, #[case] expected: &[&str]) {
        assert_eq!(texts(Framing::Events, &[stream.as_bytes()]), expected);
        let single: Vec<&[u8]> = stream.as_bytes().chunks(1).collect();
        assert_eq!(texts(Framing::Events, &single), expected, "byte by byte");
    }

    #[test]
    fn lines() {
        assert_eq!(texts(Framing::Lines, &[b"{1}\r\n\n{2}\n", b"{", b"3}"]), ["{1}", "{2}", "{3}"]);
    }

    #[rstest]
    #[case::whole(r#""\ud83e\udd80 \u00e4""#, "🦀 ä")]
    #[case::halves(r#""a\ud83e""#, "a\u{fffd}")]
    #[case::other_half(r#""\uDD80 \\ud83e \ud83e\ud83e\udd80\n""#, "\u{fffd} \\ud83e \u{fffd}🦀\n")]
    fn halves_of_characters(#[case] text: &str, #[case] read: &str) {
        assert_eq!(parse_json(text.as_bytes()).expect("JSON"), read);
    }

    #[test]
    fn a_line_without_end_is_given_up() {
        for framing in [Framing::Events, Framing::Lines] {
            let mut frames = StreamDecoder::new(framing);
            let piece = vec![b'd'; 1024 * 1024];
            assert!((0..20).any(|_| frames.push(&piece).is_err()));
        }
        let mut frames = StreamDecoder::new(Framing::Events);
        let piece = [b"data: ".as_slice(), &vec![b'd'; 1024 * 1024], b"\n"].concat();
        assert!((0..20).any(|_| frames.push(&piece).is_err()), "neither is an event of many lines");
        let mut frames = StreamDecoder::new(Framing::Events);
        let piece = [b": ".as_slice(), &vec![b'p'; 1024 * 1024], b"\n"].concat();
        assert!((0..100).any(|_| frames.push(&piece).is_err()), "nor a stream that says nothing");
    }

    proptest! {
        #[test]
        fn where_pieces_end_does_not_matter(stream in "(data: [a-z{}\\r\\n:é]{0,9}[\\r\\n]{1,3}){0,6}", cut in 0_usize..200) {
            let bytes = stream.as_bytes();
            let cut = cut.min(bytes.len());
            prop_assert_eq!(
                texts(Framing::Events, &[&bytes[..cut], &bytes[cut..]]),
                texts(Framing::Events, &[bytes])
            );
        }
    }
}
