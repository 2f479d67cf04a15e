//! Speaks as much of the protocol of PostgreSQL as a test needs: a login without a password, and answers of one row. See "Message
//! Formats" in the documentation of PostgreSQL.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use super::SCHEMA_VERSION;

/// Time after which a test has waited in vain for its client.
const MAX_SILENCE: Duration = Duration::from_secs(20);

/// Value of a column in an answer.
#[derive(Debug, Clone, Copy)]
pub enum ColumnValue<'a> {
    /// `int4`.
    Int(i32),
    /// `float8`.
    Float(f64),
    /// `text`.
    Text(&'a str),
    /// `bool`.
    Bool(bool),
}

impl ColumnValue<'_> {
    /// Returns the number of the type, and its size in bytes; -1 if that differs from value to value.
    fn column_type(self) -> (u32, i16) {
        match self {
            Self::Int(_) => (23, 4),
            Self::Float(_) => (701, 8),
            Self::Text(_) => (25, -1),
            Self::Bool(_) => (16, 1),
        }
    }

    fn to_binary(self) -> Vec<u8> {
        match self {
            Self::Int(number) => number.to_be_bytes().to_vec(),
            Self::Float(number) => number.to_be_bytes().to_vec(),
            Self::Text(text) => text.as_bytes().to_vec(),
            Self::Bool(is_true) => vec![u8::from(is_true)],
        }
    }
}

/// Connection of a client to a server that a test plays.
pub struct FakeServer {
    client: TcpStream,
}

impl FakeServer {
    /// Lets a client log in.
    pub fn log_in(client: TcpStream) -> Self {
        let mut server = Self { client };
        server.client.set_read_timeout(Some(MAX_SILENCE)).expect("a limit");
        server.skip_message();
        server.send(&[message(b'R', &[0; 4]), message(b'Z', b"I")]);
        server
    }

    /// Lets a client log in and answers what [`super::Database::connect`] asks.
    pub fn connect(client: TcpStream) -> Self {
        let mut server = Self::log_in(client);
        server.read_statements(2);
        server.send(&[isolation_answer(), version_answer()]);
        server
    }

    /// Reads until so many statements were asked. Nothing is answered before.
    pub fn read_statements(&mut self, count: usize) {
        let mut read = 0;
        while read < count {
            let mut kind = [0];
            self.client.read_exact(&mut kind).expect("the client waits for no answer");
            self.skip_message();
            read += usize::from(matches!(kind, [b'Q' | b'S']));
        }
    }

    /// Sends messages.
    pub fn send(&mut self, answers: &[Vec<u8>]) {
        self.client.write_all(&answers.concat()).expect("sent");
    }

    /// Reads the rest of a message behind its kind.
    fn skip_message(&mut self) {
        let mut length = [0; 4];
        self.client.read_exact(&mut length).expect("a length");
        let mut content = vec![0; u32::from_be_bytes(length) as usize - 4];
        self.client.read_exact(&mut content).expect("a message");
    }
}

/// Returns the answer to the statements that choose the isolation.
pub fn isolation_answer() -> Vec<u8> {
    [message(b'C', b"SET\0"), message(b'C', b"SET\0"), message(b'Z', b"I")].concat()
}

/// Returns the answer to the question for the version of the tables.
pub fn version_answer() -> Vec<u8> {
    row_answer(&[ColumnValue::Int(SCHEMA_VERSION), ColumnValue::Int(SCHEMA_VERSION)])
}

/// Returns the answer to a statement with parameters: one row.
pub fn row_answer(values: &[ColumnValue<'_>]) -> Vec<u8> {
    let count = i16::try_from(values.len()).expect("few columns").to_be_bytes();
    let (mut columns, mut row) = (count.to_vec(), count.to_vec());
    for value in values {
        let ((number, size), binary) = (value.column_type(), value.to_binary());
        // Name, table, column, type, size, no modifier, binary.
        columns.extend(b"c\0\0\0\0\0\0\0");
        columns.extend(number.to_be_bytes());
        columns.extend(size.to_be_bytes());
        columns.extend(b"\xff\xff\xff\xff\0\x01");
        row.extend(i32::try_from(binary.len()).expect("a short value").to_be_bytes());
        row.extend(binary);
    }
    [
        message(b'1', b""),
        message(b'2', b""),
        message(b't', b"\0\0"),
        message(b'T', &columns),
        message(b'D', &row),
        message(b'C', b"SELECT 1\0"),
        message(b'Z', b"I"),
    ]
    .concat()
}

fn message(kind: u8, content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(content.len() + 4).expect("a short message");
    [[kind].as_slice(), length.to_be_bytes().as_slice(), content].concat()
}
