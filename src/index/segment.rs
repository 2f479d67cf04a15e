//! A segment: an immutable file of indexed files, their chunks and declarations, and their words and names.
//!
//! Opening a segment reads its list of files. The other sections are read on first use. [`SegmentSections`] holds the
//! content of a segment in memory.

use std::ops::Range;
use std::path::Path;
use std::sync::OnceLock;

use bytemuck::{Pod, Zeroable};

use super::IndexError;
use super::index_file::{self, IndexFile};
use super::postings::{PostingRole, Postings, WordTable};
use crate::domain::{LineRange, OmissionReason};
use crate::index::chunk::{ChunkExtent, ChunkKind, Declaration};

/// Stands for a missing name or file.
pub const NO_NUMBER: u32 = u32::MAX;

const FILES: usize = 0;
const PATHS: usize = 1;
const CHUNKS: usize = 2;
const DECLARATIONS: usize = 3;
const IMPORTS: usize = 4;
const FINGERPRINTS: usize = 5;
const WORD_ENDS: usize = 6;
const WORD_BYTES: usize = 7;
const POSTING_ENDS: usize = 8;
const POSTINGS: usize = 9;

/// Range of records of a file in a section: first record and count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct RecordRange {
    pub first: u32,
    pub count: u32,
}

impl RecordRange {
    /// Returns the records of the range; none if the range exceeds the section.
    pub fn select<T>(self, records: &[T]) -> &[T] {
        records.get(self.as_range()).unwrap_or_default()
    }

    pub fn as_range(self) -> Range<usize> {
        self.first as usize..self.first.saturating_add(self.count) as usize
    }
}

/// Record of a file in a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct FileRecord {
    /// Bytes of its path.
    pub path: RecordRange,
    pub blob: [u8; 20],
    pub chunks: RecordRange,
    pub declarations: RecordRange,
    pub imports: RecordRange,
    pub fingerprints: RecordRange,
    /// Size of its text in bytes; 0 for a file that is left out.
    pub bytes: u32,
    /// 0 for an indexed file; otherwise 1 + the position of the reason in `REASONS`.
    pub reason: u32,
    /// 1 if the file was cut along a syntax tree, else 0.
    pub has_syntax_tree: u32,
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
}

/// Record of a chunk, for all chunks except summaries. Rows are 0-based and inclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct ChunkRecord {
    pub kind: u32,
    pub first: u32,
    pub last: u32,
}

impl ChunkRecord {
    pub fn to_extent(self) -> ChunkExtent {
        ChunkExtent { kind: decode_kind(self.kind), lines: LineRange::new(self.first + 1, self.last + 1) }
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
    pub fn to_declaration(self, words: &WordTable) -> Declaration {
        Declaration {
            kind: decode_kind(self.kind),
            name: words.get(self.name).to_owned(),
            scope: words.get(self.scope).to_owned(),
            lines: LineRange::new(self.first + 1, self.last + 1),
            head: LineRange::new(self.head_first + 1, self.head_last + 1),
        }
    }
}

fn decode_kind(number: u32) -> ChunkKind {
    ChunkKind::ALL.get(number as usize).copied().unwrap_or(ChunkKind::Window)
}

/// Content of a segment, ready to be written.
pub struct SegmentSections {
    pub files: Vec<FileRecord>,
    pub paths: Vec<u8>,
    pub chunks: Vec<ChunkRecord>,
    pub declarations: Vec<DeclarationRecord>,
    /// Word numbers of the imports, file after file.
    pub imports: Vec<u32>,
    pub fingerprints: Vec<u32>,
    pub words: WordTable,
    pub postings: Postings,
}

impl SegmentSections {
    /// Writes the segment into `folder` and returns its file name.
    ///
    /// # Errors
    /// Fails if the folder cannot be written.
    pub fn publish(&self, folder: &Path) -> Result<String, IndexError> {
        let mut sections: [&[u8]; POSTINGS + 1] = [&[]; POSTINGS + 1];
        sections[FILES] = bytemuck::cast_slice(&self.files);
        sections[PATHS] = &self.paths;
        sections[CHUNKS] = bytemuck::cast_slice(&self.chunks);
        sections[DECLARATIONS] = bytemuck::cast_slice(&self.declarations);
        sections[IMPORTS] = bytemuck::cast_slice(&self.imports);
        sections[FINGERPRINTS] = bytemuck::cast_slice(&self.fingerprints);
        sections[WORD_ENDS] = bytemuck::cast_slice(&self.words.ends);
        sections[WORD_BYTES] = &self.words.bytes;
        sections[POSTING_ENDS] = bytemuck::cast_slice(&self.postings.ends);
        sections[POSTINGS] = &self.postings.bytes;
        index_file::publish(folder, &sections, |hash| format!("{}{hash}", Segment::PREFIX))
    }
}

/// Open segment; sections after the first two are read on first use.
#[derive(Debug)]
pub struct Segment {
    file: IndexFile,
    files: Vec<FileRecord>,
    paths: Vec<u8>,
    chunks: OnceLock<Vec<ChunkRecord>>,
    declarations: OnceLock<Vec<DeclarationRecord>>,
    imports: OnceLock<Vec<u32>>,
    words: OnceLock<WordTable>,
    postings: OnceLock<Postings>,
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

    pub fn is_file_name(name: &str) -> bool {
        name.starts_with(Self::PREFIX)
    }

    /// Opens a segment; returns `None` if the file does not exist.
    ///
    /// # Errors
    /// Fails with [`IndexError::Damaged`] or [`IndexError::Outdated`] if the file cannot be used.
    pub fn open(path: &Path) -> Result<Option<Self>, IndexError> {
        let Some(file) = IndexFile::open(path)? else { return Ok(None) };
        Ok(Some(Self {
            files: file.read_section(FILES)?,
            paths: file.read_section(PATHS)?,
            file,
            chunks: OnceLock::new(),
            declarations: OnceLock::new(),
            imports: OnceLock::new(),
            words: OnceLock::new(),
            postings: OnceLock::new(),
        }))
    }

    /// Returns the size of the file in bytes.
    pub fn length(&self) -> u64 {
        self.file.length()
    }

    pub fn files(&self) -> &[FileRecord] {
        &self.files
    }

    pub fn file(&self, number: u32) -> Option<&FileRecord> {
        self.files.get(number as usize)
    }

    pub fn path(&self, file: &FileRecord) -> &str {
        std::str::from_utf8(file.path.select(&self.paths)).unwrap_or_default()
    }

    /// Returns the chunks of a file, without summaries.
    ///
    /// # Errors
    /// Fails with [`IndexError::Damaged`] if the section is damaged.
    pub fn chunks(&self, file: &FileRecord) -> Result<&[ChunkRecord], IndexError> {
        get_or_read(&self.chunks, || self.file.read_section(CHUNKS)).map(|chunks| file.chunks.select(chunks))
    }

    /// Returns the declarations of a file.
    ///
    /// # Errors
    /// Fails with [`IndexError::Damaged`] if the section is damaged.
    pub fn declarations(&self, file: &FileRecord) -> Result<&[DeclarationRecord], IndexError> {
        get_or_read(&self.declarations, || self.file.read_section(DECLARATIONS))
            .map(|records| file.declarations.select(records))
    }

    /// Returns the word numbers of the imports of a file.
    ///
    /// # Errors
    /// Fails with [`IndexError::Damaged`] if the section is damaged.
    pub fn imports(&self, file: &FileRecord) -> Result<&[u32], IndexError> {
        get_or_read(&self.imports, || self.file.read_section(IMPORTS)).map(|imports| file.imports.select(imports))
    }

    /// Reads the fingerprints of all files; [`FileRecord::fingerprints`] is the range of a file.
    ///
    /// # Errors
    /// Fails with [`IndexError::Damaged`] if the section is damaged.
    pub fn read_fingerprints(&self) -> Result<Vec<u32>, IndexError> {
        self.file.read_section(FINGERPRINTS)
    }

    /// Returns the words and names of all files.
    ///
    /// # Errors
    /// Fails with [`IndexError::Damaged`] if the section is damaged.
    pub fn words(&self) -> Result<&WordTable, IndexError> {
        get_or_read(&self.words, || {
            Ok(WordTable { ends: self.file.read_section(WORD_ENDS)?, bytes: self.file.read_section(WORD_BYTES)? })
        })
    }

    /// Returns the files of all words.
    ///
    /// # Errors
    /// Fails with [`IndexError::Damaged`] if the section is damaged.
    pub fn postings(&self) -> Result<&Postings, IndexError> {
        get_or_read(&self.postings, || {
            Ok(Postings { ends: self.file.read_section(POSTING_ENDS)?, bytes: self.file.read_section(POSTINGS)? })
        })
    }

    /// Calls `found` with the number of each file that has `word` in `role`, in ascending order.
    ///
    /// # Errors
    /// Fails with [`IndexError::Damaged`] if the section is damaged.
    pub fn for_each_file_with(
        &self,
        word: &str,
        role: PostingRole,
        found: &mut dyn FnMut(u32),
    ) -> Result<(), IndexError> {
        if let Some(number) = self.words()?.find(word) {
            self.postings()?.for_each_file(number, role, found);
        }
        Ok(())
    }
}
