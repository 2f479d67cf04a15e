//! Reads the lines of a file, forwards from an offset or backwards from the end, without loading the whole file.
//!
//! Only text that ends in a line feed is a line; the text after the last line feed is torn or still being written.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::ControlFlow;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{StoreError, files};
use crate::domain::Time;

/// Size in bytes of the read buffer for forward reads.
const CHUNK_BYTES: usize = 256 * 1024;

/// Calls `line` with the offset and content of each complete line from offset `from`, without the line feed; empty
/// lines are skipped. Returns the offset after the last complete line, where the next read starts.
pub(super) fn read_forwards(mut file: &File, from: u64, mut line: impl FnMut(u64, &[u8])) -> io::Result<u64> {
    file.seek(SeekFrom::Start(from))?;
    let left = files::length(file)?.saturating_sub(from);
    let mut buffer = vec![0; CHUNK_BYTES.min(usize::try_from(left).unwrap_or(CHUNK_BYTES).saturating_add(1))];
    let (mut offset, mut filled) = (from, 0);
    loop {
        if filled == buffer.len() {
            buffer.resize(buffer.len() * 2, 0);
        }
        let read = match file.read(&mut buffer[filled..]) {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if read == 0 {
            return Ok(offset);
        }
        let fresh = filled;
        filled += read;
        let mut begin = 0;
        for end in memchr::memchr_iter(b'\n', &buffer[fresh..filled]) {
            let end = fresh + end;
            if end > begin {
                line(offset + begin as u64, &buffer[begin..end]);
            }
            begin = end + 1;
        }
        buffer.copy_within(begin..filled, 0);
        filled -= begin;
        offset += begin as u64;
    }
}

/// Largest number of bytes that [`read_backwards`] reads at once, unless a line is longer. Larger parts would be read in vain
/// where the search ends.
const MAX_CHUNK_BYTES: usize = 64 << 10;

/// Calls `line` with each complete line, without the line feed, last line first, until it returns `Break`.
pub(super) fn read_backwards(file: &File, mut line: impl FnMut(&[u8]) -> ControlFlow<()>) -> io::Result<()> {
    let mut position = files::length(file)?;
    let mut held: Vec<u8> = Vec::new();
    let mut chunk = 32 * 1024;
    let mut seen_end = false;
    loop {
        while let Some(feed) = memchr::memrchr(b'\n', &held) {
            let text = held.get(feed + 1..).unwrap_or_default();
            if seen_end && !text.is_empty() && line(text).is_break() {
                return Ok(());
            }
            seen_end = true;
            held.truncate(feed);
        }
        if position == 0 {
            if seen_end && !held.is_empty() {
                let _ = line(&held);
            }
            return Ok(());
        }
        let take = (chunk as u64).min(position);
        position -= take;
        let take = usize::try_from(take).unwrap_or(usize::MAX);
        let mut before = vec![0; take];
        files::read_at(file, position, &mut before)?;
        before.extend_from_slice(&held);
        held = before;
        chunk = MAX_CHUNK_BYTES.max(held.len());
    }
}

/// Maximum number of consecutive old lines before the search ends; a clock that was set back can put old times between
/// new lines.
const MAX_OLD_LINES: usize = 64;

/// Calls `take` with the entries of a file written since `from`, newest first. `at` returns the time of an entry.
/// Unreadable lines are skipped.
pub(super) fn read_since<T: DeserializeOwned>(
    path: &Path,
    from: Time,
    at: impl Fn(&T) -> Time,
    mut take: impl FnMut(T),
) -> Result<(), StoreError> {
    let Some(file) = files::open_read(path)? else { return Ok(()) };
    let mut old = 0;
    read_backwards(&file, |line| {
        match serde_json::from_slice::<T>(line) {
            Ok(said) if at(&said) >= from => {
                old = 0;
                take(said);
            }
            Ok(_) => old += 1,
            Err(_) => {}
        }
        if old > MAX_OLD_LINES { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })
    .map_err(StoreError::io("read", path))
}

/// Encodes values as lines. `what` names one of them in an error.
pub(super) fn encode<T: Serialize>(what: &'static str, values: &[T]) -> Result<Vec<u8>, StoreError> {
    let mut bytes = Vec::new();
    for value in values {
        serde_json::to_writer(&mut bytes, value).map_err(|source| StoreError::Encode { what, source })?;
        bytes.push(b'\n');
    }
    Ok(bytes)
}

/// Returns the values of all readable lines of a file, oldest first; none if there is no file.
pub(super) fn read_all<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, StoreError> {
    let mut values = Vec::new();
    let Some(file) = files::open_read(path)? else { return Ok(values) };
    read_forwards(&file, 0, |_, line| values.extend(serde_json::from_slice::<T>(line)))
        .map_err(StoreError::io("read", path))?;
    Ok(values)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn read_both_ways(content: &[u8], from: u64) -> (Vec<Vec<u8>>, u64, Vec<Vec<u8>>) {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(content).expect("written");
        let mut ahead = Vec::new();
        let end = read_forwards(&file, from, |_, line| ahead.push(line.to_vec())).expect("read");
        let mut back = Vec::new();
        read_backwards(&file, |line| {
            back.push(line.to_vec());
            ControlFlow::Continue(())
        })
        .expect("read");
        back.reverse();
        (ahead, end, back)
    }

    #[test]
    fn both_ways_see_the_same_complete_lines() {
        for (content, lines, end) in [
            ("", vec![], 0),
            ("\n", vec![], 1),
            ("torn", vec![], 0),
            ("a\n", vec!["a"], 2),
            ("a\nb", vec!["a"], 2),
            ("a\n\n\nb\ntorn", vec!["a", "b"], 6),
        ] {
            let expected: Vec<Vec<u8>> = lines.iter().map(|line| line.as_bytes().to_vec()).collect();
            let (ahead, stop, back) = read_both_ways(content.as_bytes(), 0);
            assert_eq!((&ahead, stop, &back), (&expected, end, &expected), "{content:?}");
        }
    }

    #[test]
    fn lines_longer_than_a_chunk_are_whole() {
        let mut content = Vec::new();
        for length in [10, CHUNK_BYTES * 3, 1, CHUNK_BYTES, CHUNK_BYTES - 1, 40_000] {
            content.extend(std::iter::repeat_n(b'x', length));
            content.push(b'\n');
        }
        let (ahead, end, back) = read_both_ways(&content, 0);
        assert_eq!(
            ahead.iter().map(Vec::len).collect::<Vec<_>>(),
            [10, CHUNK_BYTES * 3, 1, CHUNK_BYTES, CHUNK_BYTES - 1, 40_000]
        );
        assert_eq!(ahead, back);
        assert_eq!(end, content.len() as u64);
        assert_eq!(read_both_ways(&content, 11).0.len(), 5);
    }
}
