//! Scans the worktree for tracked files that may differ from the index and for untracked files.
//!
//! The scan reads folders, `stat` data and ignore rules only, on several threads; no other file is opened and nothing
//! is written. `worktree_capture` compares the results with the index by content, because a different time stamp alone
//! is no change.

use std::collections::HashMap;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rayon::Scope;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::gitignore::{FolderIgnoreRules, SharedIgnoreRules};
use super::index::{CachedStat, GitIndex, GitIndexEntry, IndexEntryFlag, MODE_GITLINK, MODE_TREE, StatTime};
use super::{GitError, path_bytes};
use crate::parallel;

/// Minimum number of tracked files for several threads; below it, a single thread was faster in measurements.
const MIN_PARALLEL_ENTRIES: usize = 2000;

/// Git settings for comparing `stat` data with the index.
#[derive(Debug, Clone, Copy)]
pub struct StatSettings {
    /// Value of `core.trustctime`.
    pub trust_ctime: bool,
    /// True when `core.checkStat` is `minimal`.
    pub minimal: bool,
    /// Value of `core.ignoreCase`.
    pub ignore_case: bool,
    /// Value of `core.fileMode`: true when the file system keeps the executable bit.
    pub file_mode: bool,
}

/// Kind of an entry in the worktree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorktreeEntryKind {
    File { executable: bool, size: u64 },
    Symlink,
    Folder,
}

/// Entry of the worktree that differs, or may differ, from the index.
#[derive(Debug, PartialEq, Eq)]
pub enum StatusEntry {
    /// A tracked path whose content must be compared; the number is its position in the index.
    MaybeModified(usize, WorktreeEntryKind),
    /// A tracked path without a trackable entry in the worktree; the number is its position in the index.
    Missing(usize),
    Untracked(Vec<u8>, WorktreeEntryKind),
    /// A folder with tracked files that cannot be read, or a file whose `stat` data cannot be read.
    Unreadable(Vec<u8>),
    /// A folder without tracked files that cannot be read; git treats it as empty.
    UnreadableUntracked(Vec<u8>),
}

/// A folder to scan, with the range of index entries below it.
struct ScanJob {
    /// Path with a trailing slash; empty for the root.
    path: Vec<u8>,
    from: usize,
    to: usize,
    ignored: Option<Arc<FolderIgnoreRules>>,
}

struct WorktreeScan<'a> {
    root: &'a Path,
    index: &'a GitIndex,
    compare: StatSettings,
    shared: &'a Arc<SharedIgnoreRules>,
    seen: Mutex<Vec<StatusEntry>>,
}

/// Scans the whole worktree.
///
/// # Errors
/// Returns an error when the root of the worktree cannot be opened.
pub fn scan_worktree(
    root: &Path,
    index: &GitIndex,
    compare: StatSettings,
    ignored: &Arc<SharedIgnoreRules>,
) -> Result<Vec<StatusEntry>, GitError> {
    let job = ScanJob { path: Vec::new(), from: 0, to: index.entries.len(), ignored: None };
    let scan = WorktreeScan { root, index, compare, shared: ignored, seen: Mutex::default() };
    // The root must be readable; otherwise every file would appear deleted.
    open_folder(root).map_err(|errno| GitError::Io { action: "read", path: root.to_owned(), source: errno.into() })?;
    match (index.entries.len() >= MIN_PARALLEL_ENTRIES).then(parallel::pool).flatten() {
        Some(pool) => pool.scope(|scope| scan.spawn_scans(&job, scope)),
        None => {
            let mut jobs = vec![job];
            while let Some(job) = jobs.pop() {
                jobs.append(&mut scan.run_job(&job));
            }
        }
    }
    Ok(scan.seen.into_inner().unwrap_or_else(PoisonError::into_inner))
}

impl WorktreeScan<'_> {
    /// Scans a folder and starts the scans of its subfolders.
    fn spawn_scans<'s>(&'s self, job: &ScanJob, scope: &Scope<'s>) {
        for job in self.run_job(job) {
            scope.spawn(move |scope| self.spawn_scans(&job, scope));
        }
    }

    /// Scans a folder, adds its entries to the result and returns its subfolders.
    fn run_job(&self, job: &ScanJob) -> Vec<ScanJob> {
        let (mut seen, mut found) = (Vec::new(), Vec::new());
        self.scan_folder(job, &mut seen, &mut found);
        if !seen.is_empty() {
            self.seen.lock().unwrap_or_else(PoisonError::into_inner).append(&mut seen);
        }
        found
    }

    /// Scans a folder: adds entries to `seen` and subfolders to `found`.
    fn scan_folder(&self, job: &ScanJob, seen: &mut Vec<StatusEntry>, found: &mut Vec<ScanJob>) {
        let opened = open_folder(&path_bytes::join_path(self.root, &job.path)).and_then(Dir::new);
        let mut listing = match opened {
            Ok(listing) => listing,
            Err(errno) => return self.record_unopenable(job, errno, seen),
        };
        let mut names = Vec::new();
        let mut rules = None;
        while let Some(entry) = listing.read() {
            let Ok(entry) = entry else {
                seen.push(StatusEntry::Unreadable(trim_slash(&job.path).to_vec()));
                break;
            };
            let name = entry.file_name().to_bytes();
            match name {
                b"." | b".." | b".git" => continue,
                b".gitignore" if entry.file_type() != FileType::Symlink => {
                    rules = Some(path_bytes::join_path(self.root, &job.path).join(".gitignore"));
                }
                _ => {}
            }
            names.push((name.to_vec(), entry.file_type()));
        }
        // Without the descriptor no entry can be checked, so the folder counts as unopenable.
        let folder = match listing.fd() {
            Ok(folder) => folder,
            Err(errno) => return self.record_unopenable(job, errno, seen),
        };
        let here = FolderIgnoreRules::new(job.ignored.clone(), trim_slash(&job.path).to_vec(), rules, self.shared);
        let mut tracked = TrackedNames::new(self.compare.ignore_case, job.to - job.from);
        let mut at = job.from;
        while at < job.to {
            at = self.check_tracked(job, at, folder, &here, &mut tracked, seen, found);
        }
        for (name, kind) in names {
            self.check_untracked(job, &name, kind, folder, &here, &tracked, seen, found);
        }
    }

    /// Checks the tracked path, or the tracked folder, at index position `at`. Returns the position of the next one.
    #[expect(clippy::too_many_arguments, reason = "the state of one folder, taken apart for speed")]
    fn check_tracked<'a>(
        &'a self,
        job: &ScanJob,
        at: usize,
        folder: BorrowedFd,
        here: &Arc<FolderIgnoreRules>,
        tracked: &mut TrackedNames<'a>,
        seen: &mut Vec<StatusEntry>,
        found: &mut Vec<ScanJob>,
    ) -> usize {
        let Some(entry) = self.index.entries.get(at) else { return job.to };
        let path = self.index.path(entry);
        let rest = path.get(job.path.len()..).unwrap_or_default();
        let slash = memchr::memchr(b'/', rest);
        if entry.mode == MODE_TREE && slash == Some(rest.len().wrapping_sub(1)) {
            // A folder outside of a sparse checkout.
            tracked.add(trim_slash(rest), TrackedKind::Folder);
            return at + 1;
        }
        if let Some(slash) = slash {
            let prefix = path.get(..job.path.len() + slash + 1).unwrap_or(path);
            let to = self.index.prefix_end(prefix, at, job.to).max(at + 1);
            tracked.add(rest.get(..slash).unwrap_or_default(), TrackedKind::Folder);
            found.push(ScanJob { path: prefix.to_vec(), from: at, to, ignored: Some(Arc::clone(here)) });
            return to;
        }
        let role = if entry.mode == MODE_GITLINK { TrackedKind::Submodule } else { TrackedKind::File };
        let first = tracked.add(rest, role);
        if !first || entry.flag == IndexEntryFlag::AssumeUnchanged {
            return at + 1;
        }
        match rustix::fs::statat(folder, rest, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => match entry_kind(&stat) {
                Some(WorktreeEntryKind::Folder) if role != TrackedKind::Submodule => {
                    seen.push(StatusEntry::Missing(at))
                }
                Some(thing) if role == TrackedKind::Submodule || !self.is_unchanged(entry, &stat) => {
                    seen.push(StatusEntry::MaybeModified(at, thing));
                }
                Some(_) => {}
                None => seen.push(StatusEntry::Missing(at)),
            },
            Err(Errno::NOENT | Errno::NOTDIR) if entry.flag == IndexEntryFlag::SkipWorktree => {}
            Err(Errno::NOENT | Errno::NOTDIR) => seen.push(StatusEntry::Missing(at)),
            Err(_) => seen.push(StatusEntry::Unreadable(path.to_vec())),
        }
        at + 1
    }

    /// Checks a name of a folder that may be untracked.
    #[expect(clippy::too_many_arguments, reason = "the state of one folder, taken apart for speed")]
    fn check_untracked(
        &self,
        job: &ScanJob,
        name: &[u8],
        kind: FileType,
        folder: BorrowedFd,
        here: &Arc<FolderIgnoreRules>,
        tracked: &TrackedNames,
        seen: &mut Vec<StatusEntry>,
        found: &mut Vec<ScanJob>,
    ) {
        let role = tracked.kind_of(name);
        // In the common cases the kind is enough and no `stat` call is needed.
        match (role, kind) {
            (Some(TrackedKind::Folder | TrackedKind::Submodule), FileType::Directory) => return,
            (Some(TrackedKind::File | TrackedKind::Submodule), FileType::RegularFile | FileType::Symlink) => return,
            _ => {}
        }
        let Ok(stat) = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) else { return };
        let Some(thing) = entry_kind(&stat) else { return };
        match (role, thing) {
            (Some(TrackedKind::Folder | TrackedKind::Submodule), WorktreeEntryKind::Folder) => return,
            (
                Some(TrackedKind::File | TrackedKind::Submodule),
                WorktreeEntryKind::File { .. } | WorktreeEntryKind::Symlink,
            ) => return,
            _ => {}
        }
        let path = [&job.path, name].concat();
        if here.ignores(&path, thing == WorktreeEntryKind::Folder) {
            return;
        }
        if thing != WorktreeEntryKind::Folder {
            seen.push(StatusEntry::Untracked(path, thing));
        } else if !is_repository(&path_bytes::join_path(self.root, &path)) {
            let path = [path, b"/".to_vec()].concat();
            found.push(ScanJob { path, from: 0, to: 0, ignored: Some(Arc::clone(here)) });
        }
    }

    fn record_unopenable(&self, job: &ScanJob, errno: Errno, seen: &mut Vec<StatusEntry>) {
        // The path is missing, or it is a file or a symbolic link, which the parent folder reports as untracked.
        let gone = matches!(errno, Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::MLINK);
        if !gone {
            let path = trim_slash(&job.path).to_vec();
            seen.push(if job.from < job.to {
                StatusEntry::Unreadable(path)
            } else {
                StatusEntry::UnreadableUntracked(path)
            });
            return;
        }
        let mut last: &[u8] = b"";
        for at in job.from..job.to {
            let Some(entry) = self.index.entries.get(at) else { break };
            let path = self.index.path(entry);
            let kept = matches!(entry.flag, IndexEntryFlag::SkipWorktree | IndexEntryFlag::AssumeUnchanged)
                || entry.mode == MODE_TREE;
            if !kept && path != last {
                seen.push(StatusEntry::Missing(at));
            }
            last = path;
        }
    }

    /// Returns true when `stat` equals the cached data and the entry is older than the index file.
    fn is_unchanged(&self, entry: &GitIndexEntry, stat: &Stat) -> bool {
        if matches!(entry.flag, IndexEntryFlag::IntentToAdd | IndexEntryFlag::Unmerged) {
            return false;
        }
        let (now, was) = (to_cached_stat(stat), entry.stat);
        let same = match self.compare.minimal {
            true => now.size == was.size && now.modified.0 == was.modified.0,
            false => {
                let identity = CachedStat { changed: was.changed, modified: was.modified, ..now };
                identity == was
                    && is_same_time(now.modified, was.modified)
                    && (!self.compare.trust_ctime || is_same_time(now.changed, was.changed))
            }
        };
        let mode = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Symlink => 0o120000,
            _ if !self.compare.file_mode => entry.mode,
            _ if stat.st_mode & 0o100 != 0 => 0o100755,
            _ => 0o100644,
        };
        // A file changed in the instant when the index was written keeps the same time stamp.
        let settled = self.index.written.is_some_and(|written| match was.modified.1 {
            0 => was.modified.0 < written.0,
            _ => was.modified < written,
        });
        same && mode == entry.mode && settled
    }
}

/// Compares time stamps. Some programs write no nanoseconds to the index; then only the seconds count.
fn is_same_time(now: StatTime, was: StatTime) -> bool {
    now.0 == was.0 && (now.1 == was.1 || was.1 == 0)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TrackedKind {
    File,
    Folder,
    Submodule,
}

/// Tracked names of a folder.
struct TrackedNames<'a> {
    names: HashMap<&'a [u8], TrackedKind>,
    /// The names in lower case; present only when the file system ignores case.
    folded: Option<HashMap<Vec<u8>, TrackedKind>>,
}

impl<'a> TrackedNames<'a> {
    fn new(ignore_case: bool, entries: usize) -> Self {
        Self { names: HashMap::with_capacity(entries.min(64)), folded: ignore_case.then(HashMap::new) }
    }

    /// Adds a name and returns true when it is new; the sides of a conflict share a name.
    fn add(&mut self, name: &'a [u8], role: TrackedKind) -> bool {
        if let Some(folded) = &mut self.folded {
            folded.insert(name.to_ascii_lowercase(), role);
        }
        self.names.insert(name, role).is_none()
    }

    fn kind_of(&self, name: &[u8]) -> Option<TrackedKind> {
        let folded = || self.folded.as_ref().and_then(|folded| folded.get(&name.to_ascii_lowercase()));
        self.names.get(name).or_else(folded).copied()
    }
}

fn trim_slash(path: &[u8]) -> &[u8] {
    path.strip_suffix(b"/").unwrap_or(path)
}

fn open_folder(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty())
}

/// Returns true when a folder is the worktree of another repository, which git does not scan.
pub fn is_repository(folder: &Path) -> bool {
    let git: PathBuf = folder.join(".git");
    git.symlink_metadata().is_ok_and(|metadata| metadata.is_file() || git.join("HEAD").symlink_metadata().is_ok())
}

/// Returns the kind of an entry; `None` for pipes, sockets and devices, which git cannot track.
fn entry_kind(stat: &Stat) -> Option<WorktreeEntryKind> {
    Some(match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => WorktreeEntryKind::File {
            executable: stat.st_mode & 0o100 != 0,
            size: u64::try_from(stat.st_size).unwrap_or(0),
        },
        FileType::Symlink => WorktreeEntryKind::Symlink,
        FileType::Directory => WorktreeEntryKind::Folder,
        _ => return None,
    })
}

/// Converts `stat` data to the form of the index: the lower 32 bits of each value, as in git.
#[expect(clippy::unnecessary_cast, reason = "the widths differ between platforms")]
fn to_cached_stat(stat: &Stat) -> CachedStat {
    let stamp = |seconds, nanoseconds| -> StatTime { (seconds, nanoseconds) };
    CachedStat {
        changed: stamp(stat.st_ctime as u32, stat.st_ctime_nsec as u32),
        modified: stamp(stat.st_mtime as u32, stat.st_mtime_nsec as u32),
        inode: stat.st_ino as u32,
        user: stat.st_uid as u32,
        group: stat.st_gid as u32,
        size: stat.st_size as u32,
    }
}
