//! Remembers how far the append-only files of a store have grown, in the file `extents`, so that a file that was cut,
//! emptied or deleted is told from a short one. Files with another writer than the holder of the store's lock, journals
//! and the log of spending, each have a file of their own for this, see [`ExtentFile`].
//!
//! The file has a line of fixed length for each tracked file: its name, its bytes, its lines, and a hash of its last
//! bytes. A writer replaces the line of its file in place after each append, under the store's lock and without a sync:
//! the line is a lower bound, so a lost update is no harm. A loss that a writer finds is recorded in `losses.ndjson`
//! before the file grows again. `repair` restores what other files tell, and then begins anew from what there is.
//!
//! Invariant: no error here keeps a record from being written.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::files::{self, ExistingPolicy, SyncPolicy};
use super::{JournalWriter, Store, StoreError, check};
use crate::domain::RunId;
use crate::domain::text::format_count;

/// An append-only file whose growth is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TrackedFile {
    Runs,
    Triage,
    Mutes,
    Fixes,
    Deliveries,
    Notes,
    Snoozes,
    Ratings,
    Questions,
}

impl TrackedFile {
    /// All files, in the order of their lines. A new one comes last, because older stores have fewer lines.
    pub(super) const ALL: [Self; 9] = [
        Self::Runs,
        Self::Triage,
        Self::Mutes,
        Self::Fixes,
        Self::Deliveries,
        Self::Notes,
        Self::Snoozes,
        Self::Ratings,
        Self::Questions,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Runs => "runs.ndjson",
            Self::Triage => "triage.ndjson",
            Self::Mutes => "mutes.ndjson",
            Self::Fixes => "fixes.ndjson",
            Self::Deliveries => super::DELIVERIES_FILE,
            Self::Notes => "notes.ndjson",
            Self::Snoozes => "snoozes.ndjson",
            Self::Ratings => "ratings.ndjson",
            Self::Questions => "questions.ndjson",
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
    fn parse(line: &[u8], name: &str) -> Option<Self> {
        let mut words = std::str::from_utf8(line).ok()?.split_ascii_whitespace();
        if words.next()? != name {
            return None;
        }
        let (bytes, lines) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        Some(Self { bytes, lines, tail: u64::from_str_radix(words.next()?, 16).ok()? })
    }

    fn format(&self, name: &str) -> String {
        format!("{name:<16} {:>20} {:>12} {:016x}\n", self.bytes, self.lines, self.tail)
    }

    /// Returns the extent after an append to a file that had `lines` lines and now has `bytes` bytes.
    fn after_append(file: &File, bytes: u64, lines: u64, appended: &[u8]) -> Self {
        let tail = match appended.len() as u64 >= TAIL_BYTES {
            true => Some(hash_tail(&appended[appended.len() - TAIL_BYTES as usize..])),
            false => read_tail_of(file, bytes).map(|tail| hash_tail(&tail)),
        };
        Self { bytes, lines: lines + count_lines(appended), tail: tail.unwrap_or(UNKNOWN_TAIL) }
    }

    /// Returns true if a file of this length still has the remembered bytes at its end then.
    fn is_start_of(&self, file: &File, length: u64) -> bool {
        self.bytes <= length
            && (self.tail == UNKNOWN_TAIL
                || read_tail_of(file, self.bytes).is_some_and(|tail| hash_tail(&tail) == self.tail))
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
    /// Compares a file with its remembered size. `name` is the file as users know it.
    fn find(known: FileExtent, path: &Path, name: &str, tail: TailCheck) -> Option<Self> {
        let length = std::fs::metadata(path).ok().map(|data| data.len());
        let is_cut = length.unwrap_or(0) < known.bytes;
        let is_checked = tail == TailCheck::Yes && known.tail != UNKNOWN_TAIL;
        let is_other = || is_checked && read_tail(path, known.bytes).is_some_and(|now| hash_tail(&now) != known.tail);
        if !is_cut && !is_other() {
            return None;
        }
        let left = read_file(path);
        Some(Self {
            file: name.to_owned(),
            lines: known.lines,
            bytes: known.bytes,
            left_lines: left.as_deref().map(count_lines),
            left_bytes: left.map(|left| left.len() as u64),
        })
    }

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
        read_extent_line(&File::open(self.extents_path()).ok()?, file)
    }

    /// Opens the file `extents` for writing. A failure is only logged: the next append tries again.
    fn open_extents(&self) -> Option<File> {
        let opened = files::open_lock_file(&self.extents_path());
        opened.inspect_err(|error| tracing::warn!(%error, "the lengths of files are not remembered")).ok()
    }

    fn write_extent(&self, file: TrackedFile, extent: FileExtent) {
        if let Some(extents) = self.open_extents() {
            self.write_extent_line(&extents, file, extent);
        }
    }

    /// Writes the line of a file. A failure is only logged.
    fn write_extent_line(&self, extents: &File, file: TrackedFile, extent: FileExtent) {
        let offset = (file as usize * EXTENT_LINE_BYTES) as u64;
        let write = || -> std::io::Result<()> {
            // A new file, and one of a version that tracked fewer files, gets blank lines before this one.
            let length = files::length(extents)?;
            for missing in (length / EXTENT_LINE_BYTES as u64)..file as u64 {
                let blank = format!("{:>width$}\n", "", width = EXTENT_LINE_BYTES - 1);
                extents.write_all_at(blank.as_bytes(), missing * EXTENT_LINE_BYTES as u64)?;
            }
            extents.write_all_at(extent.format(file.name()).as_bytes(), offset)
        };
        if let Err(error) = write() {
            tracing::warn!(%error, "the length of {} is not remembered", file.name());
        }
    }

    /// Appends whole lines, synced, and remembers how far the file has grown. The caller must hold the store's lock.
    pub(super) fn append_tracked(&self, file: TrackedFile, lines: &[u8]) -> Result<(), StoreError> {
        self.append_tracked_as(file, lines, SyncPolicy::Now)
    }

    /// Does the same as [`Store::append_tracked`] with a choice of the sync.
    pub(super) fn append_tracked_as(
        &self,
        file: TrackedFile,
        lines: &[u8],
        sync: SyncPolicy,
    ) -> Result<(), StoreError> {
        let path = self.tracked_path(file);
        let extents = self.open_extents();
        let known = extents.as_ref().and_then(|extents| read_extent_line(extents, file));
        let is_there = path.exists();
        if !is_there {
            // The loss is told before the file is made anew.
            self.record_loss_if_any(file);
        }
        let open = files::open_append(&path)?;
        let before = files::length(&open).map_err(StoreError::io("read the length of", &path))?;
        let base = match known {
            Some(extent) if extent.bytes == before => extent.lines,
            // The file is new to this version, an older version wrote to it, or it has lost lines.
            _ => {
                if is_there {
                    self.record_loss_if_any(file);
                }
                count_lines(&read_file(&path).unwrap_or_default())
            }
        };
        let is_sealed = files::append_to(&open, &path, lines, sync)?;
        if let Some(extents) = extents {
            // A torn last line was sealed with a line feed.
            let sealed = u64::from(is_sealed);
            let extent = FileExtent::after_append(&open, before + sealed + lines.len() as u64, base + sealed, lines);
            self.write_extent_line(&extents, file, extent);
        }
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
        if file == TrackedFile::Runs {
            self.forget_sent_runs();
        }
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
        FileLoss::find(self.read_extent(file)?, &self.tracked_path(file), file.name(), tail)
    }

    fn journal_extent(&self, run: &str) -> ExtentFile {
        ExtentFile::new(self.root.join("locks").join(format!("{run}.extent")))
    }

    /// Opens a run's journal, with the memory of how far it has grown.
    pub(super) fn open_tracked_journal(&self, run: &RunId) -> Result<JournalWriter, StoreError> {
        if let Err(error) = files::make_folder(&self.root.join("locks")) {
            tracing::warn!(%error, "the length of a journal is not remembered");
        }
        JournalWriter::open(&self.journal_path(run.as_str()), &self.journal_extent(run.as_str()))
    }

    /// Replaces the content of a journal. The caller must hold the run's lock.
    pub(super) fn rewrite_journal(&self, run: &RunId, content: &[u8]) -> Result<(), StoreError> {
        let (path, extent) = (self.journal_path(run.as_str()), self.journal_extent(run.as_str()));
        // A loss stays to be told.
        let is_whole = extent.find_loss(&path, "journal", TailCheck::Yes).is_none();
        if is_whole {
            extent.write(FileExtent { tail: UNKNOWN_TAIL, ..FileExtent::from_content(content) });
        }
        files::write_atomically(&path, content, ExistingPolicy::Replace)?;
        if is_whole {
            extent.write(FileExtent::from_content(content));
        }
        Ok(())
    }

    /// Removes a journal and the memory of its length.
    pub(super) fn remove_journal(&self, run: &str) -> Result<(), StoreError> {
        files::remove(&self.journal_extent(run).path)?;
        files::remove(&self.journal_path(run))
    }

    /// Returns the losses of the journals.
    fn find_journal_losses(&self) -> Vec<(RunId, FileLoss)> {
        let extents = check::list_files(&self.root.join("locks")).unwrap_or_default();
        let extents = extents.into_iter().filter(|path| path.extension().is_some_and(|found| found == "extent"));
        let runs = extents.filter_map(|path| path.file_stem()?.to_str()?.parse::<RunId>().ok());
        let find = |run: RunId| {
            let name = format!("events/{run}.jsonl");
            let loss =
                self.journal_extent(run.as_str()).find_loss(&self.journal_path(run.as_str()), &name, TailCheck::Yes);
            loss.map(|loss| (run, loss))
        };
        runs.filter_map(find).collect()
    }

    /// Returns the losses that no repair has settled, oldest first.
    pub(super) fn find_losses(&self, tail: TailCheck) -> Vec<FileLoss> {
        let recorded = files::read(&self.losses_path()).ok().flatten().unwrap_or_default();
        let recorded = recorded.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
        let mut losses: Vec<FileLoss> = recorded.collect();
        // One look at `extents` for all files: each reader of the store does this.
        if let Ok(extents) = File::open(self.extents_path()) {
            let mut lines = [0; EXTENT_LINE_BYTES * TrackedFile::ALL.len()];
            let length = extents.read_at(&mut lines, 0).unwrap_or(0);
            for (file, line) in TrackedFile::ALL.into_iter().zip(lines[..length].chunks_exact(EXTENT_LINE_BYTES)) {
                let known = FileExtent::parse(line, file.name());
                losses
                    .extend(known.and_then(|known| FileLoss::find(known, &self.tracked_path(file), file.name(), tail)));
            }
        }
        // There may be ten thousand of them, so that only a thorough check looks.
        if tail == TailCheck::Yes {
            losses.extend(self.find_journal_losses().into_iter().map(|(_, loss)| loss));
        }
        losses
    }

    /// Returns a sentence for each file that has lost lines. The files themselves are not read.
    pub(crate) fn loss_notices(&self) -> Vec<String> {
        self.find_losses(TailCheck::No).iter().map(FileLoss::to_notice).collect()
    }

    /// Forgets all losses and begins anew from the present files. The caller must hold the store's lock.
    pub(super) fn settle_losses(&self) -> Result<(), StoreError> {
        TrackedFile::ALL.into_iter().for_each(|file| self.measure_extent(file));
        for (run, _) in self.find_journal_losses() {
            // Its worker is the only writer.
            if let Some(_lock) = self.lock_run(&run)? {
                self.journal_extent(run.as_str()).measure(&self.journal_path(run.as_str()))?;
            }
        }
        files::remove(&self.losses_path())
    }
}

/// Memory of how far one file has grown, in a file of its own, for a file that one process at a time writes without the
/// store's lock. A loss stays in it until a repair: the memory is not renewed from a file that has lost lines.
#[derive(Debug, Clone)]
pub(super) struct ExtentFile {
    path: PathBuf,
}

/// Name in an [`ExtentFile`], in place of the file's own.
const EXTENT_NAME: &str = "file";

impl ExtentFile {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    fn read(&self) -> Option<FileExtent> {
        let mut line = [0; EXTENT_LINE_BYTES];
        File::open(&self.path).ok()?.read_exact_at(&mut line, 0).ok()?;
        FileExtent::parse(&line, EXTENT_NAME)
    }

    /// Opens the memory for writing. A failure is only logged: the next append tries again.
    fn open(&self) -> Option<File> {
        let opened = files::open_lock_file(&self.path);
        opened.inspect_err(|error| tracing::warn!(%error, "the length of a file is not remembered")).ok()
    }

    fn write_to(&self, open: &File, extent: FileExtent) {
        if let Err(error) = open.write_all_at(extent.format(EXTENT_NAME).as_bytes(), 0) {
            tracing::warn!(path = %self.path.display(), %error, "the length of a file is not remembered");
        }
    }

    fn write(&self, extent: FileExtent) {
        if let Some(open) = self.open() {
            self.write_to(&open, extent);
        }
    }

    /// Begins anew from what there is.
    pub(super) fn measure(&self, file: &Path) -> Result<(), StoreError> {
        match read_file(file) {
            Some(content) => self.write(FileExtent::from_content(&content)),
            None => files::remove(&self.path)?,
        }
        Ok(())
    }

    /// Compares the file with its memory. `name` is the file as users know it.
    pub(super) fn find_loss(&self, file: &Path, name: &str, tail: TailCheck) -> Option<FileLoss> {
        FileLoss::find(self.read()?, file, name, tail)
    }

    /// Prepares to remember appends to an open file. Returns `None` if the file has lost lines.
    pub(super) fn follow(&self, file: &File, path: &Path) -> Option<ExtentFollower> {
        let length = files::length(file).ok()?;
        let lines = match self.read() {
            Some(known) if !known.is_start_of(file, length) => return None,
            Some(known) if known.bytes == length => known.lines,
            _ => count_lines(&read_file(path)?),
        };
        Some(ExtentFollower { extent: self.clone(), open: None, bytes: length, lines })
    }
}

/// Memory of how far an open file has grown.
#[derive(Debug)]
pub(super) struct ExtentFollower {
    extent: ExtentFile,
    /// The memory's own file, once it was written.
    open: Option<File>,
    bytes: u64,
    lines: u64,
}

impl ExtentFollower {
    /// Remembers an append of whole lines. One that is not synced is remembered with the next one that is: a power
    /// failure must not look like a loss.
    pub(super) fn note_append(&mut self, file: &File, is_sealed: bool, appended: &[u8], sync: SyncPolicy) {
        let sealed = u64::from(is_sealed);
        self.bytes += sealed + appended.len() as u64;
        if sync == SyncPolicy::Now {
            let extent = FileExtent::after_append(file, self.bytes, self.lines + sealed, appended);
            self.open = self.open.take().or_else(|| self.extent.open());
            if let Some(open) = &self.open {
                self.extent.write_to(open, extent);
            }
        }
        self.lines += sealed + count_lines(appended);
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

/// Reads the line of a file in `extents`.
fn read_extent_line(extents: &File, file: TrackedFile) -> Option<FileExtent> {
    let mut line = [0; EXTENT_LINE_BYTES];
    extents.read_exact_at(&mut line, (file as usize * EXTENT_LINE_BYTES) as u64).ok()?;
    FileExtent::parse(&line, file.name())
}

/// Reads the last bytes before `end`; `None` when the file is shorter or cannot be read.
fn read_tail(path: &Path, end: u64) -> Option<Vec<u8>> {
    read_tail_of(&File::open(path).ok()?, end)
}

fn read_tail_of(file: &File, end: u64) -> Option<Vec<u8>> {
    let take = end.min(TAIL_BYTES);
    let mut tail = vec![0; take as usize];
    file.read_exact_at(&mut tail, end - take).ok()?;
    Some(tail)
}
