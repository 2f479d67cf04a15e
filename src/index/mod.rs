//! Index of a repository: files cut into chunks, declared, used and imported names, words, and clone fingerprints.
//!
//! - Each repository has one index folder. All worktrees and any number of processes share it.
//! - A file is identified by its path and blob id, so a refresh reads only new files. All content comes from git
//!   objects of a commit.
//! - Readers never wait for a refresh.
//! - A damaged or outdated index file is never fatal: it is rebuilt.

pub mod chunk;
pub(crate) mod disk;
pub(crate) mod disk_cache;
mod fingerprints;
pub(crate) mod interner;
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

use crate::domain::{LineRange, OmittedFile};
use crate::git::{GitError, Repo};
use crate::index::chunk::{Chunk, ChunkExtent, ChunkKind, Declaration, FileSyntax, select_text};

pub use fingerprints::FingerprintIndex;
use segment::{ChunkRecord, NO_NUMBER, NameRole, Segment};
use view::IndexView;
pub use words::split_words;

/// Number of a file in the [`Index`] that returned it; not valid for another index. Files are numbered by path, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(pub u32);

/// Number of a chunk in the [`Index`] that returned it; not valid for another index. The chunks of a file have
/// consecutive numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChunkId(pub u32);

/// One indexed file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexedFile<'a> {
    pub id: FileId,
    pub path: &'a str,
    /// Raw blob id; see [`IndexedFile::blob_id`] for the hexadecimal form.
    pub blob: [u8; 20],
    pub lines: u32,
    /// Total tokens of all chunks except summaries.
    pub tokens: u32,
    pub is_test: bool,
}

impl IndexedFile<'_> {
    /// Returns the blob id in hexadecimal.
    pub fn blob_id(&self) -> String {
        self.blob.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Returns true if `id` (hexadecimal) is the id of this file's blob.
    pub fn is_blob(&self, id: &str) -> bool {
        let digit = |number: u8| char::from_digit(u32::from(number), 16).unwrap_or_default() as u8;
        id.bytes().eq(self.blob.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]))
    }
}

/// Location and metrics of a chunk, available without reading from disk. [`Index::chunk`] returns the other fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkMetrics {
    pub file: FileId,
    pub lines: LineRange,
    pub kind: ChunkKind,
    pub tokens: u32,
    /// Number of words, repeated words included; the document length for BM25.
    pub words: u32,
    pub complexity: u32,
}

/// Occurrence of a word in a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Posting {
    pub chunk: ChunkId,
    /// Number of occurrences; at least 1.
    pub count: u32,
}

/// Share of a tree that an index covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexCompleteness {
    /// All files of the tree, except those that are left out on purpose.
    Whole,
    /// The index is still being built: `files` of `total` files are indexed.
    Part { files: u32, total: u32 },
    /// The index belongs to another recent tree; its files may differ from the requested tree.
    Other,
}

/// Progress of a refresh.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexProgress {
    /// Another process is refreshing the same index.
    Waiting,
    /// `files` of the `total` files that must be read have been read.
    Reading { files: u32, total: u32 },
}

/// Result of a refresh.
#[derive(Debug)]
pub struct RefreshReport {
    pub index: Index,
    /// Number of files that were read.
    pub read: u32,
    /// Number of files that an earlier refresh had already indexed.
    pub known: u32,
    /// Description of the damage that this refresh repaired; `None` if the old index was sound. To be reported once.
    pub repaired: Option<String>,
}

/// Error of an index operation.
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

/// Index of a complete tree or of a part of it, ready for lookups.
#[derive(Debug)]
pub struct Index {
    completeness: IndexCompleteness,
    segments: Vec<Segment>,
    files: Vec<IndexedFileLocation>,
    left_out: Vec<OmittedFile>,
    chunks: u32,
    /// For each segment, the [`FileId`] number of each of its files; [`NO_NUMBER`](segment::NO_NUMBER) for files
    /// outside this tree.
    numbers: Vec<Vec<u32>>,
}

/// Location of a file in the segments.
#[derive(Debug, Clone, Copy)]
struct IndexedFileLocation {
    segment: u32,
    file: u32,
    /// Number of its first chunk in this index.
    first: u32,
}

impl Index {
    /// Opens the index of the tree of `commit`.
    ///
    /// Without an index for this tree, opens the most recently used index of another tree. Returns `None` if there is
    /// no usable index at all. Takes a few milliseconds for a million lines, because words and names are read on the
    /// first lookup.
    ///
    /// # Errors
    /// Fails if the tree of `commit` or the folder cannot be read. A damaged index counts as no index.
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

    /// Indexes the files of the tree of `commit` that are not indexed yet.
    ///
    /// Waits while another process refreshes the same index. Calls `progress` repeatedly and stops when it returns
    /// `Break`.
    ///
    /// # Errors
    /// Fails if the commit cannot be read, if the folder cannot be written, or if `progress` returns `Break`.
    pub fn refresh(
        folder: &Path,
        repo: &Repo,
        commit: &str,
        progress: &dyn Fn(IndexProgress) -> ControlFlow<()>,
    ) -> Result<RefreshReport, IndexError> {
        refresh::refresh(folder, repo, commit, progress)
    }

    /// Returns the error that prevents a refresh from writing to `folder`, or `None` if the folder is writable.
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

    /// Returns how much of the requested tree this index covers.
    pub fn completeness(&self) -> IndexCompleteness {
        self.completeness
    }

    fn is_whole(&self) -> bool {
        self.completeness == IndexCompleteness::Whole
    }

    fn known_file_count(&self) -> u32 {
        (self.files.len() + self.left_out.len()) as u32
    }

    /// Iterates over the indexed files, sorted by path.
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

    /// Returns the file at `path`; `None` if it is not indexed.
    pub fn file_at(&self, path: &str) -> Option<IndexedFile<'_>> {
        let number = self.files.partition_point(|place| self.to_file(0, *place).path < path);
        self.file(FileId(number as u32)).filter(|file| file.path == path)
    }

    /// Returns the chunks, declarations and imports of a file, equal to [`crate::index::chunk::parse_syntax`]; `None` if the
    /// index does not hold `path` with this blob id.
    ///
    /// # Errors
    /// Fails with [`IndexError::Damaged`] if a part of the index is damaged.
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

    /// Returns the files of the tree that are not indexed, each with the reason, sorted by path. Symbolic links and
    /// submodules are not listed.
    pub fn left_out(&self) -> &[OmittedFile] {
        &self.left_out
    }

    /// Returns the number of chunks; valid [`ChunkId`] numbers are smaller.
    pub fn chunk_count(&self) -> u32 {
        self.chunks
    }

    /// Returns the chunks of a file, ordered by line; a summary comes before its parts.
    pub fn chunks_of(&self, file: FileId) -> impl ExactSizeIterator<Item = ChunkId> + use<> {
        let start = |number: u32| self.files.get(number as usize).map_or(self.chunks, |place| place.first);
        (start(file.0)..start(file.0.saturating_add(1))).map(ChunkId)
    }

    /// Returns the file, the segment and the segment's record of a chunk.
    fn find_row(&self, chunk: ChunkId) -> Option<(FileId, &Segment, &ChunkRecord)> {
        let number = self.files.partition_point(|place| place.first <= chunk.0).checked_sub(1)?;
        let place = self.files.get(number)?;
        let segment = self.segments.get(place.segment as usize)?;
        let range = segment.file(place.file)?.chunk_range();
        let row = segment.chunk(range.start + (chunk.0 - place.first)).filter(|_| chunk.0 < self.chunks)?;
        Some((FileId(number as u32), segment, row))
    }

    /// Returns the metrics of a chunk; `None` for an unknown id.
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

    /// Returns all fields of a chunk; `None` for an unknown id.
    ///
    /// # Errors
    /// Fails with [`IndexError::Damaged`] if a part of the index is damaged.
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

    /// Returns the chunks whose `exports` contain `name`, in index order.
    ///
    /// # Errors
    /// Fails with [`IndexError::Damaged`] if a part of the index is damaged.
    pub fn definitions(&self, name: &str) -> Result<Vec<ChunkId>, IndexError> {
        self.chunks_by_name(name, NameRole::Export)
    }

    /// Returns the chunks whose `references` contain `name`, in index order.
    ///
    /// # Errors
    /// Fails with [`IndexError::Damaged`] if a part of the index is damaged.
    pub fn references(&self, name: &str) -> Result<Vec<ChunkId>, IndexError> {
        self.chunks_by_name(name, NameRole::Reference)
    }

    /// Returns the chunks whose `imports` contain `import` exactly as it is written, at most one chunk per file.
    ///
    /// # Errors
    /// Fails with [`IndexError::Damaged`] if a part of the index is damaged.
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

    /// Converts a segment's chunk number to a chunk of this index; `None` if the tree does not contain the chunk's
    /// file.
    fn to_chunk_id(&self, at: usize, chunk: u32) -> Option<ChunkId> {
        let segment = &self.segments[at];
        let row = segment.chunk(chunk)?;
        let place = self.files.get(*self.numbers[at].get(row.file as usize)? as usize)?;
        Some(ChunkId(place.first + chunk.checked_sub(segment.file(row.file)?.first_chunk)?))
    }

    /// Returns the chunks that contain `word` (in the form of [`split_words`]) with counts for BM25, in index order.
    /// Summaries have no postings.
    ///
    /// # Errors
    /// Fails with [`IndexError::Damaged`] if a part of the index is damaged.
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

    /// Returns the files that declare `name`, sorted by path.
    ///
    /// # Errors
    /// Fails with [`IndexError::Damaged`] if a part of the index is damaged.
    pub fn files_that_declare(&self, name: &str) -> Result<Vec<FileId>, IndexError> {
        self.collect_files(|segment, found| segment.for_each_named_chunk(name, NameRole::Export, found))
    }

    /// Returns the files that use `name`, sorted by path.
    ///
    /// # Errors
    /// Fails with [`IndexError::Damaged`] if a part of the index is damaged.
    pub fn files_that_use(&self, name: &str) -> Result<Vec<FileId>, IndexError> {
        self.collect_files(|segment, found| segment.for_each_named_chunk(name, NameRole::Reference, found))
    }

    /// Returns the files that contain `word` (in the form of [`split_words`]), sorted by path.
    ///
    /// # Errors
    /// Fails with [`IndexError::Damaged`] if a part of the index is damaged.
    pub fn files_with(&self, word: &str) -> Result<Vec<FileId>, IndexError> {
        self.collect_files(|segment, found| segment.for_each_posting_of(word, &mut |chunk, _| found(chunk)))
    }

    /// Runs `find` on each segment and returns the files of the chunks it reports, sorted and without duplicates.
    fn collect_files(
        &self,
        find: impl Fn(&Segment, &mut dyn FnMut(u32)) -> Result<(), IndexError>,
    ) -> Result<Vec<FileId>, IndexError> {
        let mut files: Vec<FileId> = Vec::new();
        for (segment, numbers) in self.segments.iter().zip(&self.numbers) {
            find(segment, &mut |chunk| {
                let file = segment.chunk(chunk).and_then(|row| numbers.get(row.file as usize).copied());
                // The chunks of a file are consecutive, so comparing with the last file removes most duplicates early.
                files.extend(
                    file.filter(|file| *file != NO_NUMBER).map(FileId).filter(|file| files.last() != Some(file)),
                );
            })?;
        }
        files.sort_unstable();
        files.dedup();
        Ok(files)
    }

    /// Returns the mean of [`ChunkMetrics::words`] over all chunks except summaries; 0 if there are none.
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

    /// Returns the text of a chunk without masking of secrets; `None` if the chunk is unknown or its blob cannot be
    /// read.
    ///
    /// # Errors
    /// Fails with [`IndexError::Damaged`] if a part of the index is damaged.
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

    /// Returns the size of the index on disk, in bytes.
    pub fn bytes_on_disk(&self) -> u64 {
        self.segments.iter().map(Segment::bytes_on_disk).sum()
    }
}

/// Turns a damaged or outdated index into `None`; the next refresh rebuilds it.
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
