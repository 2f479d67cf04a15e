//! The index of a repository: its files in chunks, who declares, uses and imports which name, and which words stand where.
//!
//! A folder per repository, shared by its worktrees and by any number of processes. Files are known by path and blob, so
//! that a refresh reads only what no earlier one has read; everything comes from a commit's objects.
//!
//! Invariants: readers never wait; whatever is wrong with the files of an index, it is rebuilt and never fatal.

use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::chunk::{Chunk, ChunkKind};
use crate::domain::{LeftOut, LineRange};
use crate::git::{GitError, Repo};

/// A file of an index; valid for the [`Index`] that it came from. Counted by path, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(pub u32);

/// A chunk of an index; valid for the [`Index`] that it came from. The chunks of a file follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChunkId(pub u32);

/// A file of the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct File<'a> {
    pub id: FileId,
    pub path: &'a str,
    /// Hexadecimal.
    pub blob: &'a str,
    pub lines: u32,
    /// Of all its chunks but the summaries.
    pub tokens: u32,
    pub is_test: bool,
}

/// The figures of a chunk, at no cost; the rest of it is in [`Index::chunk`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Brief {
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
pub enum Reach {
    /// All of it, but for what is left out on purpose.
    Whole,
    /// It is still being built.
    Part { files: u32, of: u32 },
    /// It is the index of another, recent tree: files may have changed since.
    Other,
}

/// How far a refresh is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Another process refreshes the same index.
    Waiting,
    /// Files that are read, of those that have to be.
    Reading { files: u32, of: u32 },
}

/// What a refresh did.
#[derive(Debug)]
pub struct Refreshed {
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
    #[error(transparent)]
    Git(#[from] GitError),
    #[error("the indexing was cancelled")]
    Cancelled,
}

/// A ready index of one tree, or of a part of it.
#[derive(Debug)]
pub struct Index {
    reach: Reach,
}

impl Index {
    /// What is known of a commit's tree; where nothing is, of the tree that was indexed last; `None` without any index.
    /// Takes a millisecond whatever the size: what is asked for is read when it is.
    ///
    /// # Errors
    /// A folder that cannot be read. A damaged index is none.
    pub fn open(_folder: &Path, _repo: &Repo, _commit: &str) -> Result<Option<Self>, IndexError> {
        Ok(None)
    }

    /// Reads what is not known of a commit's tree. Waits for another process that does the same. `progress` is called
    /// every now and then and says whether to go on.
    ///
    /// # Errors
    /// A commit that cannot be read, a folder that cannot be written, or `progress` said so.
    pub fn refresh(
        _folder: &Path,
        _repo: &Repo,
        _commit: &str,
        _progress: &dyn Fn(Progress) -> ControlFlow<()>,
    ) -> Result<Refreshed, IndexError> {
        Err(IndexError::Cancelled)
    }

    pub fn reach(&self) -> Reach {
        self.reach
    }

    /// By path.
    pub fn files(&self) -> impl ExactSizeIterator<Item = File<'_>> {
        std::iter::empty()
    }

    pub fn file(&self, _id: FileId) -> Option<File<'_>> {
        None
    }

    pub fn file_at(&self, _path: &str) -> Option<File<'_>> {
        None
    }

    /// Files of the tree that are not in the index, and why. Symbolic links and submodules are not named.
    pub fn left_out(&self) -> &[LeftOut] {
        &[]
    }

    /// How many chunks there are; their ids are below.
    pub fn chunk_count(&self) -> u32 {
        0
    }

    /// The chunks of a file, by lines; a summary comes before its parts.
    pub fn chunks_of(&self, _file: FileId) -> Range<u32> {
        0..0
    }

    pub fn brief(&self, _chunk: ChunkId) -> Option<Brief> {
        None
    }

    /// All that is known of a chunk.
    ///
    /// # Errors
    /// All lookups: an index that turns out to be damaged, see [`IndexError::Damaged`].
    pub fn chunk(&self, _chunk: ChunkId) -> Result<Option<Chunk>, IndexError> {
        Ok(None)
    }

    /// Where a name is declared: `exports` has it.
    pub fn definitions(&self, _name: &str) -> Result<Vec<ChunkId>, IndexError> {
        Ok(Vec::new())
    }

    /// Where a name is used: `references` has it.
    pub fn references(&self, _name: &str) -> Result<Vec<ChunkId>, IndexError> {
        Ok(Vec::new())
    }

    /// The chunks, one for a file, whose `imports` have it as it is written.
    pub fn importers(&self, _import: &str) -> Result<Vec<ChunkId>, IndexError> {
        Ok(Vec::new())
    }

    /// Where a word of [`words`] stands, for BM25. Summaries have none.
    pub fn postings(&self, _word: &str) -> Result<Vec<Posting>, IndexError> {
        Ok(Vec::new())
    }

    /// The mean of [`Brief::words`] over all chunks but summaries; 0 without any.
    pub fn average_words(&self) -> f64 {
        0.0
    }

    /// A chunk's text, not masked; `None` where its blob is gone.
    ///
    /// # Errors
    /// An index that turns out to be damaged.
    pub fn text_of(&self, _repo: &Repo, _chunk: ChunkId) -> Result<Option<String>, IndexError> {
        Ok(None)
    }
}

/// The words of a text as they are indexed: the parts of `camelCase` and `snake_case`, lower-cased, in order.
pub fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}
