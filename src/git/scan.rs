//! One look at the worktree: which tracked files may differ from the index, and which untracked ones there are.
//!
//! Reads folders and `stat` only, on several threads; no file is opened and nothing is written. What is found still has
//! to be held against the index by content (`snapshot.rs`): a different time stamp alone is no change.

use std::collections::HashMap;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::ignored::{Folder, Shared};
use super::index::{CachedStat, Entry, Index, MODE_GITLINK, MODE_TREE, Stamp, Watch};
use super::{GitError, bytes};

/// Below this many tracked files one thread is faster than starting more; measured.
const ENTRIES_PER_THREAD: usize = 1000;
const MAX_THREADS: usize = 8;

/// What the repository's settings say about comparing files with the index.
#[derive(Debug, Clone, Copy)]
pub struct Compare {
    /// `core.trustctime`.
    pub trust_ctime: bool,
    /// `core.checkStat=minimal`.
    pub minimal: bool,
    /// `core.ignoreCase`.
    pub ignore_case: bool,
    /// `core.fileMode`: whether the file system keeps the executable bit.
    pub file_mode: bool,
}

/// What lies at a path of the worktree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thing {
    File { executable: bool, size: u64 },
    Symlink,
    Folder,
}

/// Something in the worktree that the index alone does not explain.
#[derive(Debug, PartialEq, Eq)]
pub enum Seen {
    /// A tracked path whose content has to be looked at; the number is its place in the index.
    Suspect(usize, Thing),
    /// A tracked path where nothing is that git could track.
    Missing(usize),
    Untracked(Vec<u8>, Thing),
    /// A folder with tracked files that may not be read, or a file that may not be looked at.
    Unreadable(Vec<u8>),
    /// A folder without tracked files that may not be read; git takes it for empty.
    Closed(Vec<u8>),
}

/// A folder to look at, and the entries of the index below it.
struct Job {
    /// With a slash at the end unless it is the root.
    path: Vec<u8>,
    from: usize,
    to: usize,
    ignored: Option<Arc<Folder>>,
}

struct Queue {
    jobs: Vec<Job>,
    /// Threads that may still add jobs.
    working: usize,
}

struct Scan<'a> {
    root: &'a Path,
    index: &'a Index,
    compare: Compare,
    shared: &'a Arc<Shared>,
    queue: Mutex<Queue>,
    more: Condvar,
}

/// Looks at all of the worktree.
pub fn scan(root: &Path, index: &Index, compare: Compare, ignored: &Arc<Shared>) -> Result<Vec<Seen>, GitError> {
    let job = Job { path: Vec::new(), from: 0, to: index.entries.len(), ignored: None };
    let scan = Scan {
        root,
        index,
        compare,
        shared: ignored,
        queue: Mutex::new(Queue { jobs: vec![job], working: 0 }),
        more: Condvar::new(),
    };
    // The root must be readable: otherwise everything would seem to be deleted.
    open_folder(root).map_err(|errno| GitError::Io { action: "read", path: root.to_owned(), source: errno.into() })?;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = threads.min(index.entries.len() / ENTRIES_PER_THREAD).clamp(1, MAX_THREADS);
    let mut seen = Vec::new();
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(|| scan.work())).collect();
        seen = scan.work();
        for other in others {
            seen.extend(other.join().unwrap_or_default());
        }
    });
    Ok(seen)
}

impl Scan<'_> {
    fn work(&self) -> Vec<Seen> {
        let mut seen = Vec::new();
        let mut found = Vec::new();
        while let Some(job) = self.next() {
            self.look(&job, &mut seen, &mut found);
            self.done(&mut found);
        }
        seen
    }

    /// The next folder; waits while another thread may find one; `None` when there will be none.
    fn next(&self) -> Option<Job> {
        let mut queue = self.queue.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        loop {
            if let Some(job) = queue.jobs.pop() {
                queue.working += 1;
                return Some(job);
            }
            if queue.working == 0 {
                return None;
            }
            queue = self.more.wait(queue).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
    }

    fn done(&self, found: &mut Vec<Job>) {
        let mut queue = self.queue.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        queue.working -= 1;
        let news = found.len();
        queue.jobs.append(found);
        if queue.working == 0 || news > 1 {
            self.more.notify_all();
        } else if news == 1 {
            self.more.notify_one();
        }
    }

    fn look(&self, job: &Job, seen: &mut Vec<Seen>, found: &mut Vec<Job>) {
        let opened = open_folder(&bytes::below(self.root, &job.path)).and_then(Dir::new);
        let mut listing = match opened {
            Ok(listing) => listing,
            Err(errno) => return self.cannot_open(job, errno, seen),
        };
        let mut names = Vec::new();
        let mut rules = None;
        while let Some(entry) = listing.read() {
            let Ok(entry) = entry else {
                seen.push(Seen::Unreadable(trimmed(&job.path).to_vec()));
                break;
            };
            let name = entry.file_name().to_bytes();
            match name {
                b"." | b".." | b".git" => continue,
                b".gitignore" if entry.file_type() != FileType::Symlink => {
                    rules = Some(bytes::below(self.root, &job.path).join(".gitignore"));
                }
                _ => {}
            }
            names.push((name.to_vec(), entry.file_type()));
        }
        // Without the descriptor nothing can be looked at, as when the folder cannot be opened.
        let folder = match listing.fd() {
            Ok(folder) => folder,
            Err(errno) => return self.cannot_open(job, errno, seen),
        };
        let here = Folder::new(job.ignored.clone(), trimmed(&job.path).to_vec(), rules, self.shared);
        let mut tracked = Tracked::new(self.compare.ignore_case, job.to - job.from);
        let mut at = job.from;
        while at < job.to {
            at = self.tracked(job, at, folder, &here, &mut tracked, seen, found);
        }
        for (name, kind) in names {
            self.untracked(job, &name, kind, folder, &here, &tracked, seen, found);
        }
    }

    /// Looks at the tracked path, or folder of paths, at `at`; where the next one begins.
    #[expect(clippy::too_many_arguments, reason = "the state of one folder, taken apart for speed")]
    fn tracked<'a>(
        &'a self,
        job: &Job,
        at: usize,
        folder: BorrowedFd,
        here: &Arc<Folder>,
        tracked: &mut Tracked<'a>,
        seen: &mut Vec<Seen>,
        found: &mut Vec<Job>,
    ) -> usize {
        let Some(entry) = self.index.entries.get(at) else { return job.to };
        let path = self.index.path(entry);
        let rest = path.get(job.path.len()..).unwrap_or_default();
        let slash = memchr::memchr(b'/', rest);
        if entry.mode == MODE_TREE && slash == Some(rest.len().wrapping_sub(1)) {
            // A folder outside of a sparse checkout.
            tracked.add(trimmed(rest), Role::Folder);
            return at + 1;
        }
        if let Some(slash) = slash {
            let prefix = path.get(..job.path.len() + slash + 1).unwrap_or(path);
            let to = self.index.end_of(prefix, at, job.to).max(at + 1);
            tracked.add(rest.get(..slash).unwrap_or_default(), Role::Folder);
            found.push(Job { path: prefix.to_vec(), from: at, to, ignored: Some(Arc::clone(here)) });
            return to;
        }
        let role = if entry.mode == MODE_GITLINK { Role::Submodule } else { Role::File };
        let first = tracked.add(rest, role);
        if !first || entry.watch == Watch::AssumeUnchanged {
            return at + 1;
        }
        match rustix::fs::statat(folder, rest, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => match thing(&stat) {
                Some(Thing::Folder) if role != Role::Submodule => seen.push(Seen::Missing(at)),
                Some(thing) if role == Role::Submodule || !self.is_unchanged(entry, &stat) => {
                    seen.push(Seen::Suspect(at, thing));
                }
                Some(_) => {}
                None => seen.push(Seen::Missing(at)),
            },
            Err(Errno::NOENT | Errno::NOTDIR) if entry.watch == Watch::SkipWorktree => {}
            Err(Errno::NOENT | Errno::NOTDIR) => seen.push(Seen::Missing(at)),
            Err(_) => seen.push(Seen::Unreadable(path.to_vec())),
        }
        at + 1
    }

    #[expect(clippy::too_many_arguments, reason = "the state of one folder, taken apart for speed")]
    fn untracked(
        &self,
        job: &Job,
        name: &[u8],
        kind: FileType,
        folder: BorrowedFd,
        here: &Arc<Folder>,
        tracked: &Tracked,
        seen: &mut Vec<Seen>,
        found: &mut Vec<Job>,
    ) {
        let role = tracked.role(name);
        // Nothing more to learn in the ordinary cases, and no reason for another stat.
        match (role, kind) {
            (Some(Role::Folder | Role::Submodule), FileType::Directory) => return,
            (Some(Role::File | Role::Submodule), FileType::RegularFile | FileType::Symlink) => return,
            _ => {}
        }
        let Ok(stat) = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) else { return };
        let Some(thing) = thing(&stat) else { return };
        match (role, thing) {
            (Some(Role::Folder | Role::Submodule), Thing::Folder) => return,
            (Some(Role::File | Role::Submodule), Thing::File { .. } | Thing::Symlink) => return,
            _ => {}
        }
        let path = [&job.path, name].concat();
        if here.ignores(&path, thing == Thing::Folder) {
            return;
        }
        if thing != Thing::Folder {
            seen.push(Seen::Untracked(path, thing));
        } else if !is_repository(&bytes::below(self.root, &path)) {
            let path = [path, b"/".to_vec()].concat();
            found.push(Job { path, from: 0, to: 0, ignored: Some(Arc::clone(here)) });
        }
    }

    fn cannot_open(&self, job: &Job, errno: Errno, seen: &mut Vec<Seen>) {
        // Not there, or something else is: a file or a symbolic link, which the parent reports as untracked.
        let gone = matches!(errno, Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::MLINK);
        if !gone {
            let path = trimmed(&job.path).to_vec();
            seen.push(if job.from < job.to { Seen::Unreadable(path) } else { Seen::Closed(path) });
            return;
        }
        let mut last: &[u8] = b"";
        for at in job.from..job.to {
            let Some(entry) = self.index.entries.get(at) else { break };
            let path = self.index.path(entry);
            let kept = matches!(entry.watch, Watch::SkipWorktree | Watch::AssumeUnchanged) || entry.mode == MODE_TREE;
            if !kept && path != last {
                seen.push(Seen::Missing(at));
            }
            last = path;
        }
    }

    /// Whether `stat` says what the index remembers, and the index is young enough to be trusted with it.
    fn is_unchanged(&self, entry: &Entry, stat: &Stat) -> bool {
        if matches!(entry.watch, Watch::IntentToAdd | Watch::Unmerged) {
            return false;
        }
        let (now, was) = (cached(stat), entry.stat);
        let same = match self.compare.minimal {
            true => now.size == was.size && now.modified.0 == was.modified.0,
            false => {
                let identity = CachedStat { changed: was.changed, modified: was.modified, ..now };
                identity == was
                    && same_time(now.modified, was.modified)
                    && (!self.compare.trust_ctime || same_time(now.changed, was.changed))
            }
        };
        let mode = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Symlink => 0o120000,
            _ if !self.compare.file_mode => entry.mode,
            _ if stat.st_mode & 0o100 != 0 => 0o100755,
            _ => 0o100644,
        };
        // A file changed in the instant in which the index was written has the same stamp as before.
        let settled = self.index.written.is_some_and(|written| match was.modified.1 {
            0 => was.modified.0 < written.0,
            _ => was.modified < written,
        });
        same && mode == entry.mode && settled
    }
}

/// Some programs write no nanoseconds into the index; then only the seconds count.
fn same_time(now: Stamp, was: Stamp) -> bool {
    now.0 == was.0 && (now.1 == was.1 || was.1 == 0)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    File,
    Folder,
    Submodule,
}

/// The tracked names of one folder.
struct Tracked<'a> {
    names: HashMap<&'a [u8], Role>,
    /// In lower case, where the file system does not tell the cases apart.
    folded: Option<HashMap<Vec<u8>, Role>>,
}

impl<'a> Tracked<'a> {
    fn new(ignore_case: bool, entries: usize) -> Self {
        Self { names: HashMap::with_capacity(entries.min(64)), folded: ignore_case.then(HashMap::new) }
    }

    /// Whether the name is new; the sides of a conflict have one name.
    fn add(&mut self, name: &'a [u8], role: Role) -> bool {
        if let Some(folded) = &mut self.folded {
            folded.insert(name.to_ascii_lowercase(), role);
        }
        self.names.insert(name, role).is_none()
    }

    fn role(&self, name: &[u8]) -> Option<Role> {
        let folded = || self.folded.as_ref().and_then(|folded| folded.get(&name.to_ascii_lowercase()));
        self.names.get(name).or_else(folded).copied()
    }
}

fn trimmed(path: &[u8]) -> &[u8] {
    path.strip_suffix(b"/").unwrap_or(path)
}

fn open_folder(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty())
}

/// Whether a folder is the worktree of a repository of its own, which git does not look into.
pub fn is_repository(folder: &Path) -> bool {
    let git: PathBuf = folder.join(".git");
    git.symlink_metadata().is_ok_and(|metadata| metadata.is_file() || git.join("HEAD").symlink_metadata().is_ok())
}

/// `None` for what git cannot track: pipes, sockets, devices.
fn thing(stat: &Stat) -> Option<Thing> {
    Some(match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {
            Thing::File { executable: stat.st_mode & 0o100 != 0, size: u64::try_from(stat.st_size).unwrap_or(0) }
        }
        FileType::Symlink => Thing::Symlink,
        FileType::Directory => Thing::Folder,
        _ => return None,
    })
}

/// What the index would remember of this `stat`: 32 bits of each figure, as git keeps them.
#[expect(clippy::unnecessary_cast, reason = "the widths differ between platforms")]
fn cached(stat: &Stat) -> CachedStat {
    let stamp = |seconds, nanoseconds| -> Stamp { (seconds, nanoseconds) };
    CachedStat {
        changed: stamp(stat.st_ctime as u32, stat.st_ctime_nsec as u32),
        modified: stamp(stat.st_mtime as u32, stat.st_mtime_nsec as u32),
        inode: stat.st_ino as u32,
        user: stat.st_uid as u32,
        group: stat.st_gid as u32,
        size: stat.st_size as u32,
    }
}
