//! Messages of the protocol's base layer: header lines, an empty line, and a body in JSON.

use std::io::{self, BufRead, Read as _, Write};

use gen_lsp_types::ErrorCodes;
use serde_json::{Value, json};

/// Maximum size of a message in bytes. Own choice: a document of 16 MB, escaped. A larger message is answered with an error.
const MAX_MESSAGE_BYTES: u64 = 32 << 20;
/// Maximum length of a header line in bytes. The only header of use has fewer than 40.
const MAX_HEADER_BYTES: u64 = 4096;

/// Message of the client.
#[derive(Debug, Clone, PartialEq)]
pub enum ClientMessage {
    /// A request, which must be answered.
    Request { id: Value, method: String, params: Value },
    /// A notification.
    Notification { method: String, params: Value },
    /// The answer to a request of the server. No answer matters.
    Response,
    /// Input that is no message. `id` is null if it is unknown.
    Broken { id: Value, code: ErrorCodes, message: String },
}

impl ClientMessage {
    fn malformed(message: impl Into<String>) -> Self {
        Self::Broken { id: Value::Null, code: ErrorCodes::ParseError, message: message.into() }
    }

    /// Parses the body of a message.
    fn from_body(body: &[u8]) -> Self {
        let message: Value = match serde_json::from_slice(body) {
            Ok(message) => message,
            Err(error) => return Self::malformed(format!("the message is no JSON: {error}")),
        };
        let Value::Object(mut fields) = message else {
            let message = "a message is a JSON object".to_owned();
            return Self::Broken { id: Value::Null, code: ErrorCodes::InvalidRequest, message };
        };
        let id = fields.remove("id").filter(|id| id.is_number() || id.is_string());
        let params = fields.remove("params").unwrap_or_default();
        match (id, fields.remove("method")) {
            (Some(id), Some(Value::String(method))) => Self::Request { id, method, params },
            (None, Some(Value::String(method))) => Self::Notification { method, params },
            (_, None) if fields.contains_key("result") || fields.contains_key("error") => Self::Response,
            (id, _) => {
                let message = "a message has a method, or is an answer".to_owned();
                Self::Broken { id: id.unwrap_or_default(), code: ErrorCodes::InvalidRequest, message }
            }
        }
    }
}

/// Reads the next message. Returns `None` at the end of the input. Memory is used only for bytes that have arrived, at
/// most for a message of 32 MB.
///
/// # Errors
///
/// If the input cannot be read.
pub fn read_message(input: &mut impl BufRead) -> io::Result<Option<ClientMessage>> {
    let (mut length, mut fault) = (None, None);
    let mut has_header = false;
    loop {
        let Some(line) = read_header_line(input)? else { return Ok(None) };
        match line.as_deref().map(str::trim_end) {
            Some("") if !has_header => continue,
            Some("") => break,
            Some(line) => match parse_header(line) {
                Ok(Some(bytes)) => length = Some(bytes),
                Ok(None) => {}
                // Anything can follow something that is no header, so nothing is awaited.
                Err(HeaderFault::NoHeader) => return Ok(Some(ClientMessage::malformed("the input is no header line"))),
                Err(HeaderFault::NoLength) => fault = Some("Content-Length is no number of bytes"),
            },
            None => return Ok(Some(ClientMessage::malformed("the input is no header line"))),
        }
        has_header = true;
    }
    let length: u64 = match (length, fault) {
        (Some(length), None) => length,
        (_, fault) => return Ok(Some(ClientMessage::malformed(fault.unwrap_or("the header has no Content-Length")))),
    };
    if length > MAX_MESSAGE_BYTES {
        let skipped = io::copy(&mut input.take(length), &mut io::sink())?;
        let said = format!("the message has {length} bytes; the maximum is {MAX_MESSAGE_BYTES}");
        return Ok((skipped == length).then(|| ClientMessage::malformed(said)));
    }
    let mut body = Vec::new();
    input.take(length).read_to_end(&mut body)?;
    Ok((body.len() as u64 == length).then(|| ClientMessage::from_body(&body)))
}

/// Reads a line. Returns `None` at the end of the input, and `Some(None)` for a line that is no text or too long; the rest
/// of that line is skipped.
fn read_header_line(input: &mut impl BufRead) -> io::Result<Option<Option<String>>> {
    let mut line = Vec::new();
    input.take(MAX_HEADER_BYTES).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(None);
    }
    if line.ends_with(b"\n") {
        return Ok(Some(String::from_utf8(line).ok()));
    }
    loop {
        line.clear();
        let read = input.take(MAX_HEADER_BYTES).read_until(b'\n', &mut line)?;
        if read == 0 || line.ends_with(b"\n") {
            return Ok(Some(None));
        }
    }
}

/// Reason why a line is no header.
enum HeaderFault {
    NoHeader,
    NoLength,
}

/// Parses a header line. Returns the length of the body if the line has it.
fn parse_header(line: &str) -> Result<Option<u64>, HeaderFault> {
    let is_name = |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    let (name, value) = line.split_once(':').filter(|(name, _)| is_name(name)).ok_or(HeaderFault::NoHeader)?;
    if !name.eq_ignore_ascii_case("Content-Length") {
        return Ok(None);
    }
    value.trim().parse().map(Some).map_err(|_| HeaderFault::NoLength)
}

/// Writes a message with its header.
///
/// # Errors
///
/// If the output cannot be written.
pub fn write_message(output: &mut impl Write, message: &Value) -> io::Result<()> {
    let body = serde_json::to_vec(message)?;
    write!(output, "Content-Length: {}\r\n\r\n", body.len())?;
    output.write_all(&body)?;
    output.flush()
}

/// Builds the answer to a request.
pub fn build_answer(id: &Value, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

/// Builds the error that answers a request; a null id stands for input that is no request.
pub fn build_error(id: &Value, code: i32, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(body: &str) -> String {
        format!("Content-Length: {}\r\n\r\n{body}", body.len())
    }

    fn read_all(input: &str) -> Vec<ClientMessage> {
        let mut input = input.as_bytes();
        std::iter::from_fn(|| read_message(&mut input).expect("readable")).collect()
    }

    #[test]
    fn each_input_is_one_message_and_the_next_one_is_read_after_it() {
        let exit = frame(r#"{"jsonrpc":"2.0","method":"exit"}"#);
        let parse = ErrorCodes::ParseError;
        for (input, expected) in [
            (String::new(), None),
            ("\r\n\r\n".to_owned(), None),
            (frame("{"), Some((parse, "the message is no JSON: EOF while parsing an object at line 1 column 1"))),
            (frame(""), Some((parse, "the message is no JSON: EOF while parsing a value at line 1 column 0"))),
            (frame("[]"), Some((ErrorCodes::InvalidRequest, "a message is a JSON object"))),
            (frame(r#"{"id":1}"#), Some((ErrorCodes::InvalidRequest, "a message has a method, or is an answer"))),
            ("nonsense\n".to_owned(), Some((parse, "the input is no header line"))),
            ("x".repeat(10_000) + "\n", Some((parse, "the input is no header line"))),
            ("Content-Length: x\r\n\r\n".to_owned(), Some((parse, "Content-Length is no number of bytes"))),
            ("Content-Type: a\r\n\r\n".to_owned(), Some((parse, "the header has no Content-Length"))),
        ] {
            let read = read_all(&format!("{input}{exit}"));
            let (last, first) = read.split_last().expect("a message");
            assert_eq!(
                *last,
                ClientMessage::Notification { method: "exit".to_owned(), params: Value::Null },
                "{input}"
            );
            let broken: Vec<_> = first
                .iter()
                .map(|message| match message {
                    ClientMessage::Broken { code, message, .. } => (*code, message.as_str()),
                    other => panic!("{input}: {other:?}"),
                })
                .collect();
            assert_eq!(broken, Vec::from_iter(expected), "{input}");
        }
    }

    #[test]
    fn a_message_that_is_too_large_is_skipped() {
        let (large, after) =
            (" ".repeat(MAX_MESSAGE_BYTES as usize + 1), frame(r#"{"id":"a","method":"m","params":{}}"#));
        let read = read_all(&format!("content-length:{}\r\n\r\n{large}{after}", large.len()));
        let said = "the message has 33554433 bytes; the maximum is 33554432";
        let expected = ClientMessage::Request { id: json!("a"), method: "m".to_owned(), params: json!({}) };
        assert_eq!(read, [ClientMessage::malformed(said), expected]);
        // A length costs nothing: only bytes that arrive are stored.
        assert_eq!(read_all("Content-Length: 33554432\r\n\r\n{}"), []);
        assert_eq!(read_all("Content-Length: 18446744073709551615\r\n\r\n{}"), []);
    }

    #[test]
    fn a_message_is_written_with_its_length_in_bytes() {
        let mut output = Vec::new();
        write_message(&mut output, &build_error(&Value::Null, -32700, "ü")).expect("written");
        let body = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"ü"}}"#;
        assert_eq!(String::from_utf8(output).expect("text"), frame(body));
    }
}
