//! The index of a repository: its files in chunks, who declares, uses and imports which name, which words stand where, and
//! the fingerprints that copies are found by.
//!
//! A folder per repository, shared by its worktrees and by any number of processes. Files are known by path and blob, so
//! that a refresh reads only what no earlier one has read; everything comes from a commit's objects.
//!
//! Invariants: readers never wait; whatever is wrong with the files of an index, it is rebuilt and never fatal.

mod fingerprints;
mod refresh;
mod sealed_file;
mod segment;
mod segment_builder;
mod varint;
mod view;
mod words;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::chunk::{Chunk, ChunkExtent, ChunkKind, Declaration, FileSyntax, select_text};
use crate::domain::{LineRange, OmittedFile};
use crate::git::{GitError, Repo};

pub use fingerprints::FingerprintIndex;
use segment::{ChunkRecord, NO_NUMBER, NameRole, Segment};
use view::IndexView;
pub use words::split_words;

/// A file of an index; valid for the [`Index`] that it came from. Counted by path, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(pub u32);

/// A chunk of an index; valid for the [`Index`] that it came from. The chunks of a file follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChunkId(pub u32);

/// A file of the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexedFile<'a> {
    pub id: FileId,
    pub path: &'a str,
    /// The blob's id, see [`File::blob_id`].
    pub blob: [u8; 20],
    pub lines: u32,
    /// Of all its chunks but the summaries.
    pub tokens: u32,
    pub is_test: bool,
}

impl IndexedFile<'_> {
    /// As hexadecimal.
    pub fn blob_id(&self) -> String {
        self.blob.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Whether the blob's id is this one, in hexadecimal.
    pub fn is_blob(&self, id: &str) -> bool {
        let digit = |number: u8| char::from_digit(u32::from(number), 16).unwrap_or_default() as u8;
        id.bytes().eq(self.blob.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]))
    }
}

/// The figures of a chunk, at no cost; the rest of it is in [`Index::chunk`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkMetrics {
    pub file: FileId,
    pub lines: LineRange,
    pub kind: ChunkKind,
    pub tokens: u32,
    /// Its length for BM25: words, repeated ones included.
    pub words: u32,
    pub complexity: u32,
}

/// That a word stands in a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Posting {
    pub chunk: ChunkId,
    /// How often, at least 1.
    pub count: u32,
}

/// How much of a tree an index knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexCompleteness {
    /// All of it, but for what is left out on purpose.
    Whole,
    /// It is still being built.
    Part { files: u32, total: u32 },
    /// It is the index of another, recent tree: files may have changed since.
    Other,
}

/// How far a refresh is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexProgress {
    /// Another process refreshes the same index.
    Waiting,
    /// Files that are read, of those that have to be.
    Reading { files: u32, total: u32 },
}

/// What a refresh did.
#[derive(Debug)]
pub struct RefreshReport {
    pub index: Index,
    /// Files that were read.
    pub read: u32,
    /// Files that were known.
    pub known: u32,
    /// What was wrong with the index that was there, to be said once; it is in order now.
    pub repaired: Option<String>,
}

#[derive(Debug, Error)]
pub enum IndexError {
    #[error("cannot {action} {path}: {source}")]
    Io { action: &'static str, path: PathBuf, source: std::io::Error },
    #[error("{path} is damaged ({what}); it is left away and rebuilt the next time")]
    Damaged { path: PathBuf, what: &'static str },
    #[error("{path} is of another version; it is left away and rebuilt the next time")]
    Outdated { path: PathBuf },
    #[error(transparent)]
    Git(#[from] GitError),
    #[error("the indexing was cancelled")]
    Cancelled,
}

impl IndexError {
    fn io(action: &'static str, path: &Path) -> impl Fn(std::io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Io { action, path: path.clone(), source }
    }
}

/// A ready index of one tree, or of a part of it.
#[derive(Debug)]
pub struct Index {
    completeness: IndexCompleteness,
    segments: Vec<Segment>,
    files: Vec<IndexedFileLocation>,
    left_out: Vec<OmittedFile>,
    chunks: u32,
    /// By segment and file in it: its number here.
    numbers: Vec<Vec<u32>>,
}

/// Where a file is.
#[derive(Debug, Clone, Copy)]
struct IndexedFileLocation {
    segment: u32,
    file: u32,
    /// Its first chunk.
    first: u32,
}

impl Index {
    /// What is known of a commit's tree; where nothing is, of the tree that was indexed last; `None` without any index.
    /// Takes a few milliseconds for a million lines: words and names are read when they are asked for.
    ///
    /// # Errors
    /// A folder that cannot be read. A damaged index is none.
    pub fn open(folder: &Path, repo: &Repo, commit: &str) -> Result<Option<Self>, IndexError> {
        let own = IndexView::path_of_tree(folder, &repo.tree_id(commit)?);
        if let Some(index) = ignore_damaged(Self::from_view(folder, &own))? {
            return Ok(Some(index));
        }
        for path in IndexView::list_latest(folder)? {
            if let Some(index) = ignore_damaged(Self::from_view(folder, &path))? {
                return Ok(Some(Self { completeness: IndexCompleteness::Other, ..index }));
            }
        }
        Ok(None)
    }

    /// Reads what is not known of a commit's tree. Waits for another process that does the same. `progress` is called
    /// every now and then and says whether to go on.
    ///
    /// # Errors
    /// A commit that cannot be read, a folder that cannot be written, or `progress` said so.
    pub fn refresh(
        folder: &Path,
        repo: &Repo,
        commit: &str,
        progress: &dyn Fn(IndexProgress) -> ControlFlow<()>,
    ) -> Result<RefreshReport, IndexError> {
        refresh::refresh(folder, repo, commit, progress)
    }

    /// What keeps any refresh from being written to a folder.
    pub fn find_write_error(folder: &Path) -> Option<IndexError> {
        refresh::find_write_error(folder)
    }

    fn from_view(folder: &Path, path: &Path) -> Result<Option<Self>, IndexError> {
        let Some(view) = IndexView::read(path)? else { return Ok(None) };
        let damaged = || IndexError::Damaged { path: path.to_owned(), what: "a part of it is gone" };
        let mut segments = Vec::with_capacity(view.segments.len());
        for name in &view.segments {
            segments.push(Segment::open(&folder.join(name))?.ok_or_else(damaged)?);
        }
        let reach = match view.is_whole() {
            true => IndexCompleteness::Whole,
            false => IndexCompleteness::Part { files: view.files.len() as u32, total: view.total },
        };
        let numbers = segments.iter().map(|segment| vec![NO_NUMBER; segment.files().len()]).collect();
        let mut index =
            Self { completeness: reach, segments, files: Vec::new(), left_out: Vec::new(), chunks: 0, numbers };
        for [at, number] in view.files {
            let segment = index.segments.get(at as usize).ok_or_else(damaged)?;
            let file = segment.file(number).ok_or_else(damaged)?;
            match file.left_out() {
                Some(reason) => index.left_out.push(OmittedFile { path: segment.path(file).to_owned(), reason }),
                None => {
                    if let Some(known) = index.numbers[at as usize].get_mut(number as usize) {
                        *known = index.files.len() as u32;
                    }
                    index.files.push(IndexedFileLocation { segment: at, file: number, first: index.chunks });
                    index.chunks = index.chunks.saturating_add(file.chunks);
                }
            }
        }
        Ok(Some(index))
    }

    pub fn completeness(&self) -> IndexCompleteness {
        self.completeness
    }

    fn is_whole(&self) -> bool {
        self.completeness == IndexCompleteness::Whole
    }

    fn known_file_count(&self) -> u32 {
        (self.files.len() + self.left_out.len()) as u32
    }

    /// By path.
    pub fn files(&self) -> impl ExactSizeIterator<Item = IndexedFile<'_>> {
        self.files.iter().enumerate().map(|(number, place)| self.to_file(number as u32, *place))
    }

    pub fn file(&self, id: FileId) -> Option<IndexedFile<'_>> {
        self.files.get(id.0 as usize).map(|place| self.to_file(id.0, *place))
    }

    fn to_file(&self, number: u32, place: IndexedFileLocation) -> IndexedFile<'_> {
        let segment = &self.segments[place.segment as usize];
        let row = &segment.files()[place.file as usize];
        IndexedFile {
            id: FileId(number),
            path: segment.path(row),
            blob: row.blob,
            lines: row.lines,
            tokens: row.tokens,
            is_test: row.is_test != 0,
        }
    }

    pub fn file_at(&self, path: &str) -> Option<IndexedFile<'_>> {
        let number = self.files.partition_point(|place| self.to_file(0, *place).path < path);
        self.file(FileId(number as u32)).filter(|file| file.path == path)
    }

    /// What a file declares and imports, as [`super::chunk::syntax`] would tell; `None` where it is not in the index by
    /// this blob.
    ///
    /// # Errors
    /// As all lookups.
    pub fn file_syntax(&self, path: &str, blob: &str) -> Result<Option<FileSyntax>, IndexError> {
        let Some(file) = self.file_at(path).filter(|file| file.is_blob(blob)) else { return Ok(None) };
        let Some(place) = self.files.get(file.id.0 as usize) else { return Ok(None) };
        let Some(segment) = self.segments.get(place.segment as usize) else { return Ok(None) };
        let Some(row) = segment.file(place.file) else { return Ok(None) };
        let rows = segment.declarations()?.get(row.declaration_range()).unwrap_or_default();
        let declaration = |row: &segment::DeclarationRecord| -> Result<Declaration, IndexError> {
            Ok(Declaration {
                kind: row.kind(),
                name: segment.name(row.name)?.to_owned(),
                scope: segment.name(row.scope)?.to_owned(),
                lines: LineRange::new(row.first + 1, row.last + 1),
                head: LineRange::new(row.head_first + 1, row.head_last + 1),
            })
        };
        let declared = rows.iter().map(declaration).collect::<Result<_, _>>()?;
        let chunks = row.chunk_range().filter_map(|chunk| segment.chunk(chunk));
        let parts = chunks.filter(|chunk| chunk.kind() != ChunkKind::Summary);
        let extent = |chunk: &ChunkRecord| ChunkExtent { kind: chunk.kind(), lines: chunk.lines() };
        let chunks = parts.map(extent).collect();
        let first = segment.chunk(row.first_chunk).filter(|_| row.chunks > 0);
        let imports = first.map(|first| segment.read_names(first)).transpose()?.map(|names| names.imports);
        let imports = imports.into_iter().flatten().map(str::to_owned).collect();
        Ok(Some(FileSyntax { chunks, declarations: declared, imports }))
    }

    /// Files of the tree that are not in the index, and why, by path. Symbolic links and submodules are not named.
    pub fn left_out(&self) -> &[OmittedFile] {
        &self.left_out
    }

    /// How many chunks there are; their ids are below.
    pub fn chunk_count(&self) -> u32 {
        self.chunks
    }

    /// The chunks of a file, by lines; a summary comes before its parts.
    pub fn chunks_of(&self, file: FileId) -> impl ExactSizeIterator<Item = ChunkId> + use<> {
        let start = |number: u32| self.files.get(number as usize).map_or(self.chunks, |place| place.first);
        (start(file.0)..start(file.0.saturating_add(1))).map(ChunkId)
    }

    /// The file and the row of a chunk.
    fn find_row(&self, chunk: ChunkId) -> Option<(FileId, &Segment, &ChunkRecord)> {
        let number = self.files.partition_point(|place| place.first <= chunk.0).checked_sub(1)?;
        let place = self.files.get(number)?;
        let segment = self.segments.get(place.segment as usize)?;
        let range = segment.file(place.file)?.chunk_range();
        let row = segment.chunk(range.start + (chunk.0 - place.first)).filter(|_| chunk.0 < self.chunks)?;
        Some((FileId(number as u32), segment, row))
    }

    pub fn chunk_metrics(&self, chunk: ChunkId) -> Option<ChunkMetrics> {
        let (file, _, row) = self.find_row(chunk)?;
        Some(ChunkMetrics {
            file,
            lines: row.lines(),
            kind: row.kind(),
            tokens: row.tokens,
            words: row.words,
            complexity: row.complexity,
        })
    }

    /// All that is known of a chunk.
    ///
    /// # Errors
    /// All lookups: an index that turns out to be damaged, see [`IndexError::Damaged`].
    pub fn chunk(&self, chunk: ChunkId) -> Result<Option<Chunk>, IndexError> {
        let Some((file, segment, row)) = self.find_row(chunk) else { return Ok(None) };
        let names = segment.read_names(row)?;
        let owned = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect();
        Ok(Some(Chunk {
            path: self.file(file).map_or_else(String::new, |file| file.path.to_owned()),
            lines: row.lines(),
            kind: row.kind(),
            name: names.name.unwrap_or_default().to_owned(),
            parent: names.parent.unwrap_or_default().to_owned(),
            tokens: row.tokens,
            imports: owned(names.imports),
            exports: owned(names.exports),
            references: owned(names.references),
            complexity: row.complexity,
            outline: names.outline.into_iter().map(|(first, last)| LineRange::new(first + 1, last + 1)).collect(),
        }))
    }

    /// Where a name is declared: `exports` has it.
    pub fn definitions(&self, name: &str) -> Result<Vec<ChunkId>, IndexError> {
        self.chunks_by_name(name, NameRole::Export)
    }

    /// Where a name is used: `references` has it.
    pub fn references(&self, name: &str) -> Result<Vec<ChunkId>, IndexError> {
        self.chunks_by_name(name, NameRole::Reference)
    }

    /// The chunks, one for a file, whose `imports` have it as it is written.
    pub fn importers(&self, import: &str) -> Result<Vec<ChunkId>, IndexError> {
        self.chunks_by_name(import, NameRole::Import)
    }

    fn chunks_by_name(&self, name: &str, what: NameRole) -> Result<Vec<ChunkId>, IndexError> {
        let mut found = Vec::new();
        for (at, segment) in self.segments.iter().enumerate() {
            segment.for_each_named_chunk(name, what, &mut |chunk| found.extend(self.to_chunk_id(at, chunk)))?;
        }
        found.sort_unstable();
        Ok(found)
    }

    /// The number here of a segment's chunk; `None` when it is of a file that the tree does not have.
    fn to_chunk_id(&self, at: usize, chunk: u32) -> Option<ChunkId> {
        let segment = &self.segments[at];
        let row = segment.chunk(chunk)?;
        let place = self.files.get(*self.numbers[at].get(row.file as usize)? as usize)?;
        Some(ChunkId(place.first + chunk.checked_sub(segment.file(row.file)?.first_chunk)?))
    }

    /// Where a word of [`words`] stands, by chunk, for BM25. Summaries have none.
    pub fn postings(&self, word: &str) -> Result<Vec<Posting>, IndexError> {
        let mut found = Vec::new();
        for (at, segment) in self.segments.iter().enumerate() {
            segment.for_each_posting_of(word, &mut |chunk, count| {
                found.extend(self.to_chunk_id(at, chunk).map(|chunk| Posting { chunk, count }));
            })?;
        }
        found.sort_unstable_by_key(|posting| posting.chunk);
        Ok(found)
    }

    /// The files in which a name is declared, by path.
    pub fn files_that_declare(&self, name: &str) -> Result<Vec<FileId>, IndexError> {
        self.collect_files(|segment, found| segment.for_each_named_chunk(name, NameRole::Export, found))
    }

    /// The files in which a name is used, by path.
    pub fn files_that_use(&self, name: &str) -> Result<Vec<FileId>, IndexError> {
        self.collect_files(|segment, found| segment.for_each_named_chunk(name, NameRole::Reference, found))
    }

    /// The files in which a word of [`words`] stands, by path.
    pub fn files_with(&self, word: &str) -> Result<Vec<FileId>, IndexError> {
        self.collect_files(|segment, found| segment.for_each_posting_of(word, &mut |chunk, _| found(chunk)))
    }

    /// The files of the chunks that are found in each segment.
    fn collect_files(
        &self,
        find: impl Fn(&Segment, &mut dyn FnMut(u32)) -> Result<(), IndexError>,
    ) -> Result<Vec<FileId>, IndexError> {
        let mut files: Vec<FileId> = Vec::new();
        for (segment, numbers) in self.segments.iter().zip(&self.numbers) {
            find(segment, &mut |chunk| {
                let file = segment.chunk(chunk).and_then(|row| numbers.get(row.file as usize).copied());
                // The chunks of a file follow each other.
                files.extend(
                    file.filter(|file| *file != NO_NUMBER).map(FileId).filter(|file| files.last() != Some(file)),
                );
            })?;
        }
        files.sort_unstable();
        files.dedup();
        Ok(files)
    }

    /// The mean of [`Brief::words`] over all chunks but summaries; 0 without any.
    pub fn average_words(&self) -> f64 {
        let (mut words, mut count) = (0u64, 0u64);
        for place in &self.files {
            let segment = &self.segments[place.segment as usize];
            let rows = segment.file(place.file).map(|file| file.chunk_range()).unwrap_or_default();
            for row in rows.filter_map(|at| segment.chunk(at)).filter(|row| row.kind() != ChunkKind::Summary) {
                words += u64::from(row.words);
                count += 1;
            }
        }
        if count == 0 { 0.0 } else { words as f64 / count as f64 }
    }

    /// A chunk's text, not masked; `None` where its blob is gone.
    ///
    /// # Errors
    /// An index that turns out to be damaged.
    pub fn chunk_text(&self, repo: &Repo, chunk: ChunkId) -> Result<Option<String>, IndexError> {
        let Some(chunk) = self.find_row(chunk) else { return Ok(None) };
        let (file, segment, row) = chunk;
        let Some(file) = self.file(file) else { return Ok(None) };
        let Ok(content) = repo.blob(&file.blob_id()) else { return Ok(None) };
        let outline: Vec<LineRange> = match row.kind() {
            ChunkKind::Summary => segment.read_names(row)?.outline,
            _ => Vec::new(),
        }
        .into_iter()
        .map(|(first, last)| LineRange::new(first + 1, last + 1))
        .collect();
        let lines = LineRange::new(row.first + 1, row.last + 1);
        Ok(Some(select_text(&String::from_utf8_lossy(&content), row.kind(), lines, &outline)))
    }

    /// Bytes that the index takes on disk.
    pub fn bytes_on_disk(&self) -> u64 {
        self.segments.iter().map(Segment::bytes_on_disk).sum()
    }
}

/// A damaged index is none; it is rebuilt by the next refresh.
fn ignore_damaged(opened: Result<Option<Index>, IndexError>) -> Result<Option<Index>, IndexError> {
    match opened {
        Err(error @ (IndexError::Damaged { .. } | IndexError::Outdated { .. })) => {
            tracing::debug!(%error, "it is left away");
            Ok(None)
        }
        other => other,
    }
}

#[cfg(test)]
mod tests;
