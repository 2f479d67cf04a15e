//! Remembers how far the append-only files of a store have grown, in the file `extents`, so that a file that was cut,
//! emptied or deleted is told from a short one.
//!
//! The file has a line of fixed length for each tracked file: its name, its bytes, its lines, and a hash of its last
//! bytes. A writer replaces the line of its file in place after each append, under the store's lock and without a sync:
//! the line is a lower bound, so a lost update is no harm. A loss that a writer finds is recorded in `losses.ndjson`
//! before the file grows again. `repair` restores what other files tell, and then begins anew from what there is.
//!
//! Invariant: no error here keeps a record from being written.

use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::files::{self, ExistingPolicy, SyncPolicy};
use super::{Store, StoreError};
use crate::domain::text::format_count;

/// An append-only file whose growth is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TrackedFile {
    Runs,
    Triage,
    Mutes,
    Fixes,
}

impl TrackedFile {
    pub(super) const ALL: [Self; 4] = [Self::Runs, Self::Triage, Self::Mutes, Self::Fixes];

    fn name(self) -> &'static str {
        match self {
            Self::Runs => "runs.ndjson",
            Self::Triage => "triage.ndjson",
            Self::Mutes => "mutes.ndjson",
            Self::Fixes => "fixes.ndjson",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|file| file.name() == name)
    }
}

/// Number of bytes at the end of a file that are hashed.
const TAIL_BYTES: u64 = 64;
/// Hash in place of one that is not known: the file is being rewritten.
const UNKNOWN_TAIL: u64 = 0;
/// Length in bytes of a line of `extents`, with its line feed.
const EXTENT_LINE_BYTES: usize = 68;

/// Size of a file after an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileExtent {
    bytes: u64,
    lines: u64,
    /// Hash of the last [`TAIL_BYTES`] bytes.
    tail: u64,
}

impl FileExtent {
    fn parse(line: &[u8], file: TrackedFile) -> Option<Self> {
        let mut words = std::str::from_utf8(line).ok()?.split_ascii_whitespace();
        if words.next()? != file.name() {
            return None;
        }
        let (bytes, lines) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        Some(Self { bytes, lines, tail: u64::from_str_radix(words.next()?, 16).ok()? })
    }

    fn format(&self, file: TrackedFile) -> String {
        format!("{:<16} {:>20} {:>12} {:016x}\n", file.name(), self.bytes, self.lines, self.tail)
    }

    fn from_content(content: &[u8]) -> Self {
        let tail = content.len().saturating_sub(TAIL_BYTES as usize);
        Self { bytes: content.len() as u64, lines: count_lines(content), tail: hash_tail(&content[tail..]) }
    }
}

fn hash_tail(bytes: &[u8]) -> u64 {
    let hash = blake3::hash(bytes);
    hash.as_bytes().first_chunk().map_or(UNKNOWN_TAIL, |first| u64::from_le_bytes(*first))
}

fn count_lines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

/// Lines that a file has lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileLoss {
    /// Name of the file.
    file: String,
    /// Number of lines and bytes that the file had.
    lines: u64,
    bytes: u64,
    /// Number of lines and bytes that were left; `None` when the file was gone.
    left_lines: Option<u64>,
    left_bytes: Option<u64>,
}

impl FileLoss {
    /// Describes the loss as a clause whose subject is the file.
    pub(super) fn describe(&self) -> String {
        let had = format_count(usize::try_from(self.lines).unwrap_or(usize::MAX), "line");
        match (self.left_lines, self.left_bytes) {
            (None, _) => format!("was deleted; it had {had}"),
            (Some(0), _) => format!("was emptied; it had {had}"),
            (Some(left), Some(bytes)) if bytes < self.bytes => format!("was cut: {left} of {had} are left"),
            _ => format!("was changed by another program: its first {had} are not those that were written"),
        }
    }

    /// Returns the path of the file in a store.
    pub(super) fn path(&self, store: &Store) -> PathBuf {
        store.root.join(&self.file)
    }

    pub(super) fn tracked_file(&self) -> Option<TrackedFile> {
        TrackedFile::from_name(&self.file)
    }

    /// Returns the sentence for users who did not ask about the store.
    fn to_notice(&self) -> String {
        format!(
            "{} {}; `revdeck store verify` says more, `revdeck store repair` restores what other files tell",
            self.file,
            self.describe()
        )
    }
}

impl Store {
    fn extents_path(&self) -> PathBuf {
        self.root.join("extents")
    }

    fn losses_path(&self) -> PathBuf {
        self.root.join("losses.ndjson")
    }

    fn tracked_path(&self, file: TrackedFile) -> PathBuf {
        self.root.join(file.name())
    }

    fn read_extent(&self, file: TrackedFile) -> Option<FileExtent> {
        let mut line = [0; EXTENT_LINE_BYTES];
        let extents = std::fs::File::open(self.extents_path()).ok()?;
        extents.read_exact_at(&mut line, (file as usize * EXTENT_LINE_BYTES) as u64).ok()?;
        FileExtent::parse(&line, file)
    }

    /// Writes the line of a file. A failure is only logged: the next append tries again.
    fn write_extent(&self, file: TrackedFile, extent: FileExtent) {
        let path = self.extents_path();
        let write = || -> Result<(), StoreError> {
            let extents = files::open_lock_file(&path)?;
            let length = files::length(&extents).map_err(StoreError::io("read the length of", &path))?;
            // A new file gets a blank line for each file first.
            if length < (TrackedFile::ALL.len() * EXTENT_LINE_BYTES) as u64 {
                let blank = format!("{:>width$}\n", "", width = EXTENT_LINE_BYTES - 1).repeat(TrackedFile::ALL.len());
                extents.write_all_at(blank.as_bytes(), 0).map_err(StoreError::io("write", &path))?;
            }
            let offset = (file as usize * EXTENT_LINE_BYTES) as u64;
            extents.write_all_at(extent.format(file).as_bytes(), offset).map_err(StoreError::io("write", &path))
        };
        if let Err(error) = write() {
            tracing::warn!(%error, "the length of {} is not remembered", file.name());
        }
    }

    /// Appends whole lines, synced, and remembers how far the file has grown. The caller must hold the store's lock.
    pub(super) fn append_tracked(&self, file: TrackedFile, lines: &[u8]) -> Result<(), StoreError> {
        let path = self.tracked_path(file);
        let (known, before) = (self.read_extent(file), std::fs::metadata(&path).map_or(0, |data| data.len()));
        let base = match known {
            Some(extent) if extent.bytes == before => extent.lines,
            // The file is new to this version, an older version wrote to it, or it has lost lines.
            _ => {
                self.record_loss_if_any(file);
                count_lines(&read_file(&path).unwrap_or_default())
            }
        };
        files::append(&path, lines, SyncPolicy::Now)?;
        // A torn last line was sealed with a line feed.
        let bytes = std::fs::metadata(&path).map_or(0, |data| data.len());
        let sealed = bytes.saturating_sub(before).saturating_sub(lines.len() as u64);
        let tail = match lines.len() as u64 >= TAIL_BYTES {
            true => hash_tail(&lines[lines.len() - TAIL_BYTES as usize..]),
            false => read_tail(&path, bytes).map_or(0, |tail| hash_tail(&tail)),
        };
        self.write_extent(file, FileExtent { bytes, lines: base + sealed + count_lines(lines), tail });
        Ok(())
    }

    /// Replaces the content of a file. The caller must hold the store's lock since before it read the old content.
    ///
    /// A reader without the lock must not take a file that shrinks for one that was cut, so the remembered size shrinks
    /// first.
    pub(super) fn rewrite_tracked(&self, file: TrackedFile, content: &[u8]) -> Result<(), StoreError> {
        self.record_loss_if_any(file);
        let extent = FileExtent::from_content(content);
        self.write_extent(file, FileExtent { tail: UNKNOWN_TAIL, ..extent });
        files::write_atomically(&self.tracked_path(file), content, ExistingPolicy::Replace)?;
        self.write_extent(file, extent);
        Ok(())
    }

    fn measure_extent(&self, file: TrackedFile) {
        if let Some(content) = read_file(&self.tracked_path(file)) {
            self.write_extent(file, FileExtent::from_content(&content));
        } else if self.read_extent(file).is_some() {
            self.write_extent(file, FileExtent::from_content(b""));
        }
    }

    /// Records the loss of lines, before the file is written.
    pub(super) fn record_loss_if_any(&self, file: TrackedFile) {
        let Some(loss) = self.find_loss(file, TailCheck::No) else { return };
        let recorded = serde_json::to_vec(&loss)
            .map_err(|source| StoreError::Encode { what: "a loss", source })
            .and_then(|line| files::append(&self.losses_path(), &[&line[..], b"\n"].concat(), SyncPolicy::Now));
        if let Err(error) = recorded {
            tracing::warn!(%error, "the loss of lines of {} is not recorded", file.name());
        }
    }

    /// Compares a file with its remembered size.
    fn find_loss(&self, file: TrackedFile, tail: TailCheck) -> Option<FileLoss> {
        let known = self.read_extent(file)?;
        let path = self.tracked_path(file);
        let length = std::fs::metadata(&path).ok().map(|data| data.len());
        let is_cut = length.unwrap_or(0) < known.bytes;
        let is_checked = tail == TailCheck::Yes && known.tail != UNKNOWN_TAIL;
        let is_other = || is_checked && read_tail(&path, known.bytes).is_some_and(|now| hash_tail(&now) != known.tail);
        if !is_cut && !is_other() {
            return None;
        }
        let left = read_file(&path);
        Some(FileLoss {
            file: file.name().to_owned(),
            lines: known.lines,
            bytes: known.bytes,
            left_lines: left.as_deref().map(count_lines),
            left_bytes: left.map(|left| left.len() as u64),
        })
    }

    /// Returns the losses that no repair has settled, oldest first.
    pub(super) fn find_losses(&self, tail: TailCheck) -> Vec<FileLoss> {
        let recorded = files::read(&self.losses_path()).ok().flatten().unwrap_or_default();
        let recorded = recorded.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
        recorded.chain(TrackedFile::ALL.into_iter().filter_map(|file| self.find_loss(file, tail))).collect()
    }

    /// Returns a sentence for each file that has lost lines. The files themselves are not read.
    pub(crate) fn loss_notices(&self) -> Vec<String> {
        self.find_losses(TailCheck::No).iter().map(FileLoss::to_notice).collect()
    }

    /// Forgets all losses and begins anew from the present files. The caller must hold the store's lock.
    pub(super) fn settle_losses(&self) -> Result<(), StoreError> {
        TrackedFile::ALL.into_iter().for_each(|file| self.measure_extent(file));
        files::remove(&self.losses_path())
    }
}

/// Choice whether the last remembered bytes of a file are compared too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TailCheck {
    Yes,
    No,
}

/// Reads a regular file; `None` when there is none. A device in its place may have no end.
fn read_file(path: &Path) -> Option<Vec<u8>> {
    path.metadata().is_ok_and(|data| data.is_file()).then(|| files::read(path).ok().flatten())?
}

/// Reads the last bytes before `end`; `None` when the file is shorter or cannot be read.
fn read_tail(path: &Path, end: u64) -> Option<Vec<u8>> {
    let take = end.min(TAIL_BYTES);
    let mut tail = vec![0; take as usize];
    std::fs::File::open(path).ok()?.read_exact_at(&mut tail, end - take).ok()?;
    Some(tail)
}
