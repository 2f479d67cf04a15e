//! Index of a repository: the chunks, declarations, imports, words, names and clone fingerprints of its files.
//!
//! - Each repository has one index folder. All worktrees and any number of processes share it.
//! - A file is identified by its path and blob id, so a refresh reads only new files. All content comes from git
//!   objects of a commit.
//! - Readers never wait for a refresh.
//! - A damaged or outdated index file is never fatal: it is rebuilt.
//!
//! Postings ([`Index::files_with`]) and documents ([`document::Document`]) share one tokenizer ([`words`]), but not one
//! store: postings say for every file of a tree which words it has, documents say for the at most 1,000 candidates of
//! one question which words stand on which line. Keeping documents in the segments would make a cold index at least an
//! eighth slower (1.0 s of processor time for a million lines, beside 8 s) and 18 MB larger, for lines that are mostly
//! never read.

pub(crate) mod chunk;
pub(crate) mod codec;
pub(crate) mod disk;
pub(crate) mod document;
pub(crate) mod document_store;
pub(crate) mod fact_store;
mod fingerprints;
pub(crate) mod history;
pub(crate) mod history_cache;
mod index_file;
pub(crate) mod interner;
mod postings;
mod refresh;
mod sealed_file;
mod segment;
mod segment_builder;
mod view;
pub(crate) mod vocabulary;
pub(crate) mod words;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::git::{GitError, Repo};
use crate::index::chunk::FileSyntax;

use postings::PostingRole;
use segment::{FileRecord, NO_NUMBER, Segment};
use view::IndexView;
pub(crate) use words::split_words;

/// Number of a file in the [`Index`] that returned it; not valid for another index. Files are numbered by path, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(pub u32);

/// One indexed file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexedFile<'a> {
    /// Number of the file in its index.
    pub id: FileId,
    /// Path relative to the repository root.
    pub path: &'a str,
    /// Raw blob id.
    pub blob: [u8; 20],
    /// False for a file that was cut at blank lines, because its language is unknown or it does not parse. The index
    /// does not have all names of such a file.
    pub has_syntax_tree: bool,
}

impl IndexedFile<'_> {
    /// Returns true if `id` (hexadecimal) is the id of this file's blob.
    pub fn is_blob(&self, id: &str) -> bool {
        let digit = |number: u8| char::from_digit(u32::from(number), 16).unwrap_or_default() as u8;
        id.bytes().eq(self.blob.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]))
    }
}

/// Share of a tree that an index covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexCompleteness {
    /// All files of the tree, except those that are left out on purpose.
    Whole,
    /// The index is still being built: `files` of `total` files are indexed.
    Part {
        /// Number of files in the index, including files left out.
        files: u32,
        /// Number of files in the tree.
        total: u32,
    },
    /// The index belongs to another recent tree; its files may differ from the requested tree.
    Other,
}

/// Progress of a refresh.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexProgress {
    /// Another process is refreshing the same index.
    Waiting,
    /// `files` of the `total` files that must be read have been read.
    Reading {
        /// Number of files read so far.
        files: u32,
        /// Number of files that this refresh must read.
        total: u32,
    },
}

/// Result of a refresh.
#[derive(Debug)]
pub struct RefreshReport {
    /// Index of the requested tree.
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
    /// A file or folder of the index could not be read or written.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// Failed action, such as "read".
        action: &'static str,
        /// File or folder of the action.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// A file of the index is missing, damaged or not readable.
    #[error("{path} is damaged ({what}); it is left away and rebuilt the next time")]
    Damaged {
        /// File that cannot be used.
        path: PathBuf,
        /// Damage, such as "it is cut short".
        what: &'static str,
    },
    /// A file of the index has the format of another version of revdeck.
    #[error("{path} is of another version; it is left away and rebuilt the next time")]
    Outdated {
        /// File that cannot be used.
        path: PathBuf,
    },
    /// The repository could not be read.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The caller stopped the refresh.
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
    /// Number of files of the tree that are not indexed on purpose.
    left_out: u32,
    /// For each segment, the [`FileId`] number of each of its files; [`NO_NUMBER`] for files
    /// outside this tree.
    numbers: Vec<Vec<u32>>,
}

/// Location of a file in the segments.
#[derive(Debug, Clone, Copy)]
struct IndexedFileLocation {
    segment: u32,
    file: u32,
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
        let mut index = Self { completeness: reach, segments, files: Vec::new(), left_out: 0, numbers };
        for [at, number] in view.files {
            let segment = index.segments.get(at as usize).ok_or_else(damaged)?;
            let file = segment.file(number).ok_or_else(damaged)?;
            match file.left_out() {
                Some(_) => index.left_out += 1,
                None => {
                    if let Some(known) = index.numbers[at as usize].get_mut(number as usize) {
                        *known = index.files.len() as u32;
                    }
                    index.files.push(IndexedFileLocation { segment: at, file: number });
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
        self.files.len() as u32 + self.left_out
    }

    /// Iterates over the indexed files, sorted by path.
    pub fn files(&self) -> impl ExactSizeIterator<Item = IndexedFile<'_>> {
        self.files.iter().enumerate().map(|(number, place)| self.to_file(number as u32, *place))
    }

    /// Returns the file with this number; `None` for a number out of range.
    pub fn file(&self, id: FileId) -> Option<IndexedFile<'_>> {
        self.files.get(id.0 as usize).map(|place| self.to_file(id.0, *place))
    }

    /// Returns the segment of a file and its record there.
    fn find_record(&self, place: IndexedFileLocation) -> (&Segment, &FileRecord) {
        let segment = &self.segments[place.segment as usize];
        (segment, &segment.files()[place.file as usize])
    }

    fn to_file(&self, number: u32, place: IndexedFileLocation) -> IndexedFile<'_> {
        let (segment, record) = self.find_record(place);
        IndexedFile {
            id: FileId(number),
            path: segment.path(record),
            blob: record.blob,
            has_syntax_tree: record.has_syntax_tree != 0,
        }
    }

    /// Returns the file at `path`; `None` if it is not indexed.
    pub fn file_at(&self, path: &str) -> Option<IndexedFile<'_>> {
        let number = self.files.partition_point(|place| self.to_file(0, *place).path < path);
        self.file(FileId(number as u32)).filter(|file| file.path == path)
    }

    /// Returns the chunks, declarations and imports of a file, equal to [`chunk::parse_syntax`]; `None` if the index does
    /// not hold `path` with this blob id.
    ///
    /// # Errors
    /// Fails with [`IndexError::Damaged`] if a part of the index is damaged.
    pub fn file_syntax(&self, path: &str, blob: &str) -> Result<Option<FileSyntax>, IndexError> {
        let Some(file) = self.file_at(path).filter(|file| file.is_blob(blob)) else { return Ok(None) };
        let Some(place) = self.files.get(file.id.0 as usize) else { return Ok(None) };
        let (segment, record) = self.find_record(*place);
        let words = segment.words()?;
        Ok(Some(FileSyntax {
            chunks: segment.chunks(record)?.iter().map(|chunk| chunk.to_extent()).collect(),
            declarations: segment.declarations(record)?.iter().map(|row| row.to_declaration(words)).collect(),
            imports: segment.imports(record)?.iter().map(|import| words.get(*import).to_owned()).collect(),
        }))
    }

    /// Returns the files that declare `name`, sorted by path.
    ///
    /// # Errors
    /// Fails with [`IndexError::Damaged`] if a part of the index is damaged.
    pub fn files_that_declare(&self, name: &str) -> Result<Vec<FileId>, IndexError> {
        self.collect_files(name, PostingRole::Declaration)
    }

    /// Returns the files that use `name`, sorted by path.
    ///
    /// # Errors
    /// Fails with [`IndexError::Damaged`] if a part of the index is damaged.
    pub fn files_that_use(&self, name: &str) -> Result<Vec<FileId>, IndexError> {
        self.collect_files(name, PostingRole::Use)
    }

    /// Returns the files that contain `word` (in the form of [`split_words`]), sorted by path.
    ///
    /// # Errors
    /// Fails with [`IndexError::Damaged`] if a part of the index is damaged.
    pub fn files_with(&self, word: &str) -> Result<Vec<FileId>, IndexError> {
        self.collect_files(word, PostingRole::Text)
    }

    fn collect_files(&self, word: &str, role: PostingRole) -> Result<Vec<FileId>, IndexError> {
        let mut files: Vec<FileId> = Vec::new();
        for (segment, numbers) in self.segments.iter().zip(&self.numbers) {
            segment.for_each_file_with(word, role, &mut |file| {
                let number = numbers.get(file as usize).copied();
                files.extend(number.filter(|number| *number != NO_NUMBER).map(FileId));
            })?;
        }
        files.sort_unstable();
        Ok(files)
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
