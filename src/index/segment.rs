//! A segment: an immutable file of indexed files, their chunks, and their words and names.
//!
//! Opening a segment reads its files and chunks. Words, postings and name lists are read on first use.

use std::ops::Range;
use std::path::Path;
use std::sync::OnceLock;

use bytemuck::{Pod, Zeroable};

use super::IndexError;
use super::sealed_file::SealedFile;
use super::varint::VarintReader;
use crate::domain::{LineRange, OmissionReason};
use crate::index::chunk::{ChunkKind, RowRange};

/// Stands for a missing name, chunk or file.
pub const NO_NUMBER: u32 = u32::MAX;
/// Number of [`NameRole`] values: each name has a list of chunks that export, import and reference it.
pub const NAME_ROLES: usize = 3;

const FILES: usize = 0;
const PATHS: usize = 1;
const CHUNKS: usize = 2;
const WORD_ENDS: usize = 3;
const WORD_BYTES: usize = 4;
const POSTING_ENDS: usize = 5;
const POSTINGS: usize = 6;
const LISTS: usize = 7;
const PRINTS: usize = 8;
const DECLARED: usize = 9;

/// Record of a file in a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct FileRecord {
    pub path: u32,
    pub path_length: u32,
    pub blob: [u8; 20],
    pub first_chunk: u32,
    pub chunks: u32,
    pub lines: u32,
    pub tokens: u32,
    /// Size of its text in bytes; 0 without chunks.
    pub bytes: u32,
    /// 0 for an indexed file; otherwise 1 + the position of the reason in `REASONS`.
    pub reason: u32,
    pub is_test: u32,
    /// Range of its clone fingerprints.
    pub first_fingerprint: u32,
    pub fingerprints: u32,
    /// Range of its declarations.
    pub first_declaration: u32,
    pub declarations: u32,
}

impl FileRecord {
    const REASONS: [OmissionReason; 8] = [
        OmissionReason::Generated,
        OmissionReason::Vendored,
        OmissionReason::LockFile,
        OmissionReason::Minified,
        OmissionReason::Binary,
        OmissionReason::Oversized,
        OmissionReason::Secret,
        OmissionReason::Unreadable,
    ];

    /// Encodes a reason for the field `reason`.
    pub fn reason_code(reason: OmissionReason) -> u32 {
        let known = Self::REASONS.iter().position(|known| *known == reason);
        known.unwrap_or(Self::REASONS.len() - 1) as u32 + 1
    }

    /// Returns the reason why the file is not indexed; `None` for an indexed file.
    pub fn left_out(&self) -> Option<OmissionReason> {
        let at = (self.reason as usize).checked_sub(1)?;
        Some(Self::REASONS.get(at).copied().unwrap_or(OmissionReason::Unreadable))
    }

    pub fn chunk_range(&self) -> Range<u32> {
        self.first_chunk..self.first_chunk.saturating_add(self.chunks)
    }

    pub fn fingerprint_range(&self) -> Range<usize> {
        self.first_fingerprint as usize..self.first_fingerprint.saturating_add(self.fingerprints) as usize
    }

    pub fn declaration_range(&self) -> Range<usize> {
        self.first_declaration as usize..self.first_declaration.saturating_add(self.declarations) as usize
    }
}

/// Record of a declaration. Rows are 0-based and inclusive; `name` and `scope` are word numbers or [`NO_NUMBER`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct DeclarationRecord {
    pub kind: u32,
    pub name: u32,
    pub scope: u32,
    pub first: u32,
    pub last: u32,
    pub head_first: u32,
    pub head_last: u32,
}

impl DeclarationRecord {
    pub fn kind(&self) -> ChunkKind {
        ChunkKind::ALL.get(self.kind as usize).copied().unwrap_or(ChunkKind::Window)
    }
}

/// Record of a chunk. Rows are 0-based and inclusive; `name` and `parent` are word numbers or [`NO_NUMBER`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct ChunkRecord {
    pub file: u32,
    pub first: u32,
    pub last: u32,
    pub kind: u32,
    pub tokens: u32,
    pub words: u32,
    pub complexity: u32,
    pub name: u32,
    pub parent: u32,
    /// Offset of its outline and name lists in the list section, in bytes.
    pub lists: u32,
}

impl ChunkRecord {
    /// Returns the 1-based lines.
    pub fn lines(&self) -> LineRange {
        LineRange::new(self.first + 1, self.last + 1)
    }

    pub fn kind(&self) -> ChunkKind {
        ChunkKind::ALL.get(self.kind as usize).copied().unwrap_or(ChunkKind::Window)
    }
}

/// Names and outline of a chunk, resolved to text. Outline rows are 0-based and inclusive.
pub struct ChunkNames<'a> {
    pub name: Option<&'a str>,
    pub parent: Option<&'a str>,
    pub outline: Vec<RowRange>,
    pub exports: Vec<&'a str>,
    pub imports: Vec<&'a str>,
    pub references: Vec<&'a str>,
}

/// List in which a name occurs in a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameRole {
    Export = 0,
    Import = 1,
    Reference = 2,
}

/// Open segment; sections after the first three are read on first use.
#[derive(Debug)]
pub struct Segment {
    sealed: SealedFile,
    files: Vec<FileRecord>,
    paths: Vec<u8>,
    chunks: Vec<ChunkRecord>,
    words: OnceLock<WordTable>,
    postings: OnceLock<(Vec<u32>, Vec<u8>)>,
    lists: OnceLock<Vec<u8>>,
    declared: OnceLock<Vec<DeclarationRecord>>,
}

#[derive(Debug)]
struct WordTable {
    ends: Vec<u32>,
    bytes: Vec<u8>,
}

impl WordTable {
    fn get(&self, at: usize) -> &[u8] {
        self.bytes.get(range_at(&self.ends, at)).unwrap_or_default()
    }
}

/// Returns the range that ends at `ends[at]` and starts at the end before it.
fn range_at(ends: &[u32], at: usize) -> Range<usize> {
    let start = at.checked_sub(1).and_then(|before| ends.get(before)).copied().unwrap_or_default();
    start as usize..ends.get(at).copied().unwrap_or(start) as usize
}

/// Returns the cell's value and reads it on first use. A failed read is repeated at the next call.
fn get_or_read<T>(cell: &OnceLock<T>, read: impl FnOnce() -> Result<T, IndexError>) -> Result<&T, IndexError> {
    if let Some(value) = cell.get() {
        return Ok(value);
    }
    let value = read()?;
    Ok(cell.get_or_init(|| value))
}

impl Segment {
    const PREFIX: &str = "segment-";

    pub fn file_name(hash: &str) -> String {
        format!("{}{hash}", Self::PREFIX)
    }

    pub fn is_file_name(name: &str) -> bool {
        name.starts_with(Self::PREFIX)
    }

    /// Opens a segment; returns `None` if the file does not exist.
    ///
    /// # Errors
    /// Fails with [`IndexError::Damaged`] or [`IndexError::Outdated`] if the file cannot be used.
    pub fn open(path: &Path) -> Result<Option<Self>, IndexError> {
        let Some(sealed) = SealedFile::open(path)? else { return Ok(None) };
        Ok(Some(Self {
            files: sealed.read_section(FILES)?,
            paths: sealed.read_section(PATHS)?,
            chunks: sealed.read_section(CHUNKS)?,
            sealed,
            words: OnceLock::new(),
            postings: OnceLock::new(),
            lists: OnceLock::new(),
            declared: OnceLock::new(),
        }))
    }

    pub fn bytes_on_disk(&self) -> u64 {
        self.sealed.bytes_on_disk()
    }

    pub fn files(&self) -> &[FileRecord] {
        &self.files
    }

    pub fn file(&self, number: u32) -> Option<&FileRecord> {
        self.files.get(number as usize)
    }

    pub fn path(&self, file: &FileRecord) -> &str {
        let start = file.path as usize;
        let bytes = self.paths.get(start..start.saturating_add(file.path_length as usize)).unwrap_or_default();
        std::str::from_utf8(bytes).unwrap_or_default()
    }

    pub fn chunks(&self) -> &[ChunkRecord] {
        &self.chunks
    }

    pub fn chunk(&self, number: u32) -> Option<&ChunkRecord> {
        self.chunks.get(number as usize)
    }

    fn words(&self) -> Result<&WordTable, IndexError> {
        get_or_read(&self.words, || {
            Ok(WordTable { ends: self.sealed.read_section(WORD_ENDS)?, bytes: self.sealed.read_section(WORD_BYTES)? })
        })
    }

    fn word(&self, number: u32) -> Result<&str, IndexError> {
        Ok(std::str::from_utf8(self.words()?.get(number as usize)).unwrap_or_default())
    }

    fn find_word(&self, word: &str) -> Result<Option<usize>, IndexError> {
        let words = self.words()?;
        let (mut low, mut high) = (0, words.ends.len());
        while low < high {
            let middle = low.midpoint(high);
            match words.get(middle).cmp(word.as_bytes()) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Equal => return Ok(Some(middle)),
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        Ok(None)
    }

    fn read_postings(&self, word: usize) -> Result<VarintReader<'_>, IndexError> {
        let (ends, bytes) = get_or_read(&self.postings, || {
            Ok((self.sealed.read_section(POSTING_ENDS)?, self.sealed.read_section(POSTINGS)?))
        })?;
        Ok(VarintReader(bytes.get(range_at(ends, word)).unwrap_or_default()))
    }

    /// Reads the fingerprints of all files; [`FileRecord::fingerprint_range`] is the range of a file.
    ///
    /// # Errors
    /// Fails with [`IndexError::Damaged`] if the section is damaged.
    pub fn read_fingerprints(&self) -> Result<Vec<u32>, IndexError> {
        self.sealed.read_section(PRINTS)
    }

    /// Returns the declarations of all files; [`FileRecord::declaration_range`] is the range of a file.
    ///
    /// # Errors
    /// Fails with [`IndexError::Damaged`] if the section is damaged.
    pub fn declarations(&self) -> Result<&[DeclarationRecord], IndexError> {
        get_or_read(&self.declared, || self.sealed.read_section(DECLARED)).map(Vec::as_slice)
    }

    /// Returns a name by its number; empty for [`NO_NUMBER`].
    ///
    /// # Errors
    /// Fails with [`IndexError::Damaged`] if the section is damaged.
    pub fn name(&self, number: u32) -> Result<&str, IndexError> {
        if number == NO_NUMBER { Ok("") } else { self.word(number) }
    }

    /// Calls `found(chunk, count)` for each chunk that contains `word`.
    ///
    /// # Errors
    /// Fails with [`IndexError::Damaged`] if the section is damaged.
    pub fn for_each_posting_of(&self, word: &str, found: &mut dyn FnMut(u32, u32)) -> Result<(), IndexError> {
        if let Some(number) = self.find_word(word)? {
            for_each_term(self.read_postings(number)?, found);
        }
        Ok(())
    }

    /// Calls `found(word, chunk, count)` for each word and each chunk that contains it.
    ///
    /// # Errors
    /// Fails with [`IndexError::Damaged`] if the section is damaged.
    pub fn for_each_posting(&self, found: &mut dyn FnMut(&str, u32, u32)) -> Result<(), IndexError> {
        for number in 0..self.words()?.ends.len() {
            let word = self.word(number as u32)?;
            for_each_term(self.read_postings(number)?, &mut |chunk, count| found(word, chunk, count));
        }
        Ok(())
    }

    /// Calls `found` for each chunk that has `name` in the given role.
    ///
    /// # Errors
    /// Fails with [`IndexError::Damaged`] if the section is damaged.
    pub fn for_each_named_chunk(
        &self,
        name: &str,
        what: NameRole,
        found: &mut dyn FnMut(u32),
    ) -> Result<(), IndexError> {
        let Some(number) = self.find_word(name)? else { return Ok(()) };
        let mut numbers = self.read_postings(number)?;
        let terms = numbers.read();
        numbers.skip(terms as usize);
        for list in 0..NAME_ROLES {
            let (count, mut chunk) = (numbers.read(), 0u32);
            for _ in 0..numbers.bound_count(count) {
                chunk = chunk.wrapping_add(numbers.read());
                if list == what as usize {
                    found(chunk);
                }
            }
        }
        Ok(())
    }

    /// Returns the names and the outline of a chunk.
    ///
    /// # Errors
    /// Fails with [`IndexError::Damaged`] if the section is damaged.
    pub fn read_names(&self, chunk: &ChunkRecord) -> Result<ChunkNames<'_>, IndexError> {
        let lists = get_or_read(&self.lists, || self.sealed.read_section::<u8>(LISTS))?;
        let mut numbers = VarintReader(lists.get(chunk.lists as usize..).unwrap_or_default());
        let count = numbers.read();
        let mut outline = Vec::new();
        let mut row = chunk.first;
        for _ in 0..numbers.bound_count(count) {
            let first = row.saturating_add(numbers.read());
            row = first.saturating_add(numbers.read());
            outline.push((first, row));
        }
        let mut list = || -> Result<Vec<&str>, IndexError> {
            let count = numbers.read();
            (0..numbers.bound_count(count)).map(|_| self.word(numbers.read())).collect()
        };
        let (exports, imports, references) = (list()?, list()?, list()?);
        let named = |name: u32| if name == NO_NUMBER { Ok(None) } else { self.word(name).map(Some) };
        Ok(ChunkNames { name: named(chunk.name)?, parent: named(chunk.parent)?, outline, exports, imports, references })
    }
}

fn for_each_term(mut numbers: VarintReader<'_>, found: &mut dyn FnMut(u32, u32)) {
    let length = numbers.read() as usize;
    let mut terms = VarintReader(numbers.0.get(..length).unwrap_or_default());
    let mut chunk = 0u32;
    while !terms.0.is_empty() {
        let number = terms.read();
        chunk = chunk.wrapping_add(number >> 1);
        found(chunk, if number & 1 == 1 { 1 } else { terms.read() });
    }
}
