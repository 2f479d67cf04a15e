//! A segment: files that were indexed together, their chunks, and the words and names in them. Never changed.
//!
//! Files and chunks are read when it is opened; words, where they stand, and the lists of names when they are asked for.

use std::ops::Range;
use std::path::Path;
use std::sync::OnceLock;

use bytemuck::{Pod, Zeroable};

use super::IndexError;
use super::packed::Numbers;
use super::sealed::Sealed;
use crate::context::chunk::{ChunkKind, Rows};
use crate::domain::{LeftOutReason, LineRange};

/// No name, no chunk.
pub const NONE: u32 = u32::MAX;
/// Lists of chunks by name: who declares, imports, uses it.
pub const FILE_WORDS: usize = 3;

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

#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct FileRow {
    pub path: u32,
    pub path_length: u32,
    pub blob: [u8; 20],
    pub first_chunk: u32,
    pub chunks: u32,
    pub lines: u32,
    pub tokens: u32,
    /// Of its text; none without chunks.
    pub bytes: u32,
    /// 0, or why it has no chunks.
    pub reason: u32,
    pub is_test: u32,
    /// Its fingerprints, for copies of its code.
    pub first_print: u32,
    pub prints: u32,
    /// What it declares.
    pub first_declared: u32,
    pub declared: u32,
}

impl FileRow {
    const REASONS: [LeftOutReason; 8] = [
        LeftOutReason::Generated,
        LeftOutReason::Vendored,
        LeftOutReason::LockFile,
        LeftOutReason::Minified,
        LeftOutReason::Binary,
        LeftOutReason::Oversized,
        LeftOutReason::Secret,
        LeftOutReason::Unreadable,
    ];

    pub fn code(reason: LeftOutReason) -> u32 {
        let known = Self::REASONS.iter().position(|known| *known == reason);
        known.unwrap_or(Self::REASONS.len() - 1) as u32 + 1
    }

    pub fn left_out(&self) -> Option<LeftOutReason> {
        let at = (self.reason as usize).checked_sub(1)?;
        Some(Self::REASONS.get(at).copied().unwrap_or(LeftOutReason::Unreadable))
    }

    pub fn chunk_range(&self) -> Range<u32> {
        self.first_chunk..self.first_chunk.saturating_add(self.chunks)
    }

    pub fn print_range(&self) -> Range<usize> {
        self.first_print as usize..self.first_print.saturating_add(self.prints) as usize
    }

    pub fn declared_range(&self) -> Range<usize> {
        self.first_declared as usize..self.first_declared.saturating_add(self.declared) as usize
    }
}

/// A declaration, its rows from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct DeclaredRow {
    pub kind: u32,
    pub name: u32,
    pub scope: u32,
    pub first: u32,
    pub last: u32,
    pub head_first: u32,
    pub head_last: u32,
}

impl DeclaredRow {
    pub fn kind(&self) -> ChunkKind {
        ChunkKind::ALL.get(self.kind as usize).copied().unwrap_or(ChunkKind::Window)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct ChunkRow {
    pub file: u32,
    pub first: u32,
    pub last: u32,
    pub kind: u32,
    pub tokens: u32,
    pub words: u32,
    pub complexity: u32,
    pub name: u32,
    pub parent: u32,
    /// Where its lists begin.
    pub lists: u32,
}

impl ChunkRow {
    pub fn lines(&self) -> LineRange {
        LineRange::new(self.first + 1, self.last + 1)
    }

    pub fn kind(&self) -> ChunkKind {
        ChunkKind::ALL.get(self.kind as usize).copied().unwrap_or(ChunkKind::Window)
    }
}

/// What a chunk's row only refers to.
pub struct Names<'a> {
    pub name: Option<&'a str>,
    pub parent: Option<&'a str>,
    pub outline: Vec<Rows>,
    pub exports: Vec<&'a str>,
    pub imports: Vec<&'a str>,
    pub references: Vec<&'a str>,
}

/// Which list of chunks a name has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    Export = 0,
    Import = 1,
    Reference = 2,
}

#[derive(Debug)]
pub struct Segment {
    sealed: Sealed,
    files: Vec<FileRow>,
    paths: Vec<u8>,
    chunks: Vec<ChunkRow>,
    words: OnceLock<Words>,
    postings: OnceLock<(Vec<u32>, Vec<u8>)>,
    lists: OnceLock<Vec<u8>>,
    declared: OnceLock<Vec<DeclaredRow>>,
}

#[derive(Debug)]
struct Words {
    ends: Vec<u32>,
    bytes: Vec<u8>,
}

impl Words {
    fn get(&self, at: usize) -> &[u8] {
        self.bytes.get(span(&self.ends, at)).unwrap_or_default()
    }
}

/// The stretch that ends at `ends[at]`.
fn span(ends: &[u32], at: usize) -> Range<usize> {
    let start = at.checked_sub(1).and_then(|before| ends.get(before)).copied().unwrap_or_default();
    start as usize..ends.get(at).copied().unwrap_or(start) as usize
}

/// What is asked for the first time is read; if that fails, it is asked for again the next time.
fn lazily<T>(cell: &OnceLock<T>, read: impl FnOnce() -> Result<T, IndexError>) -> Result<&T, IndexError> {
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

    /// `None` without such a file.
    ///
    /// # Errors
    /// [`IndexError::Damaged`].
    pub fn open(path: &Path) -> Result<Option<Self>, IndexError> {
        let Some(sealed) = Sealed::open(path)? else { return Ok(None) };
        Ok(Some(Self {
            files: sealed.section(FILES)?,
            paths: sealed.section(PATHS)?,
            chunks: sealed.section(CHUNKS)?,
            sealed,
            words: OnceLock::new(),
            postings: OnceLock::new(),
            lists: OnceLock::new(),
            declared: OnceLock::new(),
        }))
    }

    pub fn size(&self) -> u64 {
        self.sealed.size()
    }

    pub fn files(&self) -> &[FileRow] {
        &self.files
    }

    pub fn file(&self, number: u32) -> Option<&FileRow> {
        self.files.get(number as usize)
    }

    pub fn path(&self, file: &FileRow) -> &str {
        let start = file.path as usize;
        let bytes = self.paths.get(start..start.saturating_add(file.path_length as usize)).unwrap_or_default();
        std::str::from_utf8(bytes).unwrap_or_default()
    }

    pub fn chunks(&self) -> &[ChunkRow] {
        &self.chunks
    }

    pub fn chunk(&self, number: u32) -> Option<&ChunkRow> {
        self.chunks.get(number as usize)
    }

    fn words(&self) -> Result<&Words, IndexError> {
        lazily(&self.words, || {
            Ok(Words { ends: self.sealed.section(WORD_ENDS)?, bytes: self.sealed.section(WORD_BYTES)? })
        })
    }

    fn word(&self, number: u32) -> Result<&str, IndexError> {
        Ok(std::str::from_utf8(self.words()?.get(number as usize)).unwrap_or_default())
    }

    fn number_of(&self, word: &str) -> Result<Option<usize>, IndexError> {
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

    fn postings_at(&self, word: usize) -> Result<Numbers<'_>, IndexError> {
        let (ends, bytes) =
            lazily(&self.postings, || Ok((self.sealed.section(POSTING_ENDS)?, self.sealed.section(POSTINGS)?)))?;
        Ok(Numbers(bytes.get(span(ends, word)).unwrap_or_default()))
    }

    /// The fingerprints of all its files, see [`FileRow::print_range`].
    pub fn prints(&self) -> Result<Vec<u32>, IndexError> {
        self.sealed.section(PRINTS)
    }

    /// What all its files declare, see [`FileRow::declared_range`].
    pub fn declared(&self) -> Result<&[DeclaredRow], IndexError> {
        lazily(&self.declared, || self.sealed.section(DECLARED)).map(Vec::as_slice)
    }

    /// A name by its number; empty for [`NONE`].
    pub fn name(&self, number: u32) -> Result<&str, IndexError> {
        if number == NONE { Ok("") } else { self.word(number) }
    }

    /// The chunks in which a word stands, and how often.
    pub fn postings(&self, word: &str, found: &mut dyn FnMut(u32, u32)) -> Result<(), IndexError> {
        if let Some(number) = self.number_of(word)? {
            each_term(self.postings_at(number)?, found);
        }
        Ok(())
    }

    /// Every word with every chunk in which it stands.
    pub fn each_posting(&self, found: &mut dyn FnMut(&str, u32, u32)) -> Result<(), IndexError> {
        for number in 0..self.words()?.ends.len() {
            let word = self.word(number as u32)?;
            each_term(self.postings_at(number)?, &mut |chunk, count| found(word, chunk, count));
        }
        Ok(())
    }

    /// The chunks that a name is a name of.
    pub fn named(&self, name: &str, what: Named, found: &mut dyn FnMut(u32)) -> Result<(), IndexError> {
        let Some(number) = self.number_of(name)? else { return Ok(()) };
        let mut numbers = self.postings_at(number)?;
        let terms = numbers.next();
        numbers.skip(terms as usize);
        for list in 0..FILE_WORDS {
            let (count, mut chunk) = (numbers.next(), 0u32);
            for _ in 0..numbers.at_most(count) {
                chunk = chunk.wrapping_add(numbers.next());
                if list == what as usize {
                    found(chunk);
                }
            }
        }
        Ok(())
    }

    pub fn names(&self, chunk: &ChunkRow) -> Result<Names<'_>, IndexError> {
        let lists = lazily(&self.lists, || self.sealed.section::<u8>(LISTS))?;
        let mut numbers = Numbers(lists.get(chunk.lists as usize..).unwrap_or_default());
        let count = numbers.next();
        let mut outline = Vec::new();
        let mut row = chunk.first;
        for _ in 0..numbers.at_most(count) {
            let first = row.saturating_add(numbers.next());
            row = first.saturating_add(numbers.next());
            outline.push((first, row));
        }
        let mut list = || -> Result<Vec<&str>, IndexError> {
            let count = numbers.next();
            (0..numbers.at_most(count)).map(|_| self.word(numbers.next())).collect()
        };
        let (exports, imports, references) = (list()?, list()?, list()?);
        let named = |name: u32| if name == NONE { Ok(None) } else { self.word(name).map(Some) };
        Ok(Names { name: named(chunk.name)?, parent: named(chunk.parent)?, outline, exports, imports, references })
    }
}

fn each_term(mut numbers: Numbers<'_>, found: &mut dyn FnMut(u32, u32)) {
    let length = numbers.next() as usize;
    let mut terms = Numbers(numbers.0.get(..length).unwrap_or_default());
    let mut chunk = 0u32;
    while !terms.0.is_empty() {
        let number = terms.next();
        chunk = chunk.wrapping_add(number >> 1);
        found(chunk, if number & 1 == 1 { 1 } else { terms.next() });
    }
}
