//! Bringing an index up to a tree: what is known is kept, the rest is read by several threads, what nobody asks for any
//! more is taken away.
//!
//! Invariants: one process at a time does this to a folder; at any moment every view in it is whole, or readers find
//! that out; a process that dies in the midst leaves nothing that is believed.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
use std::ops::ControlFlow;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, SystemTime};

use super::builder::Builder;
use super::segment::Segment;
use super::view::{self, View};
use super::{Index, IndexError, Progress, Refreshed, sealed};
use crate::context::chunk;
use crate::context::disk;
use crate::context::is_secret_file;
use crate::context::tokens::{Encoding, count};
use crate::domain::LeftOutReason;
use crate::git::{Judge, Repo, TreeFile};
use crate::provider::builtin::facts::is_test_path;
use crate::provider::builtin::fingerprints;
use crate::provider::builtin::language::Language;
use crate::provider::builtin::source::Parsers;

/// Larger files are left out, in bytes: no person wrote them, and parsing them takes a gigabyte.
const MAX_FILE_BYTES: u64 = 1_000_000;
/// More threads than this only take memory.
const MAX_THREADS: usize = 8;
/// A thread is not worth its start for fewer files.
const FILES_A_THREAD: usize = 16;
/// Views of so many trees are kept.
const KEPT_VIEWS: usize = 8;
/// So many segments below this many bytes are made one.
const SMALL_BYTES: u64 = 1 << 20;
const MAX_SMALL: usize = 8;
/// How long one waits before asking again whether another process is done.
const PATIENCE: Duration = Duration::from_millis(20);

const LOCK: &str = "lock";

pub fn refresh(
    folder: &Path,
    repo: &Repo,
    commit: &str,
    progress: &dyn Fn(Progress) -> ControlFlow<()>,
) -> Result<Refreshed, IndexError> {
    let tree = repo.tree_id(commit)?;
    make_folder(folder)?;
    let _lock = lock(folder, progress)?;
    let mut repaired = None;
    let mark = folder.join(sealed::DAMAGED);
    let mut note = |error: IndexError| match error {
        IndexError::Damaged { path, what } => {
            tracing::warn!(path = %path.display(), what, "a part of the index is left away and rebuilt");
            set_aside(&path, &mark)?;
            repaired.get_or_insert_with(|| format!("the index was not as it should be ({what}) and is rebuilt"));
            Ok(())
        }
        IndexError::Outdated { path } => take_away(&path),
        error => Err(error),
    };
    if mark.symlink_metadata().is_ok() {
        note(IndexError::Damaged { path: mark.clone(), what: "a part of it was damaged" })?;
    }

    let own = View::path(folder, &tree);
    match Index::of_view(folder, &own) {
        Ok(Some(index)) if index.is_whole() => {
            touch(&own);
            if repaired.is_some() {
                take_away(&mark)?;
            }
            let known = index.known_files();
            return Ok(Refreshed { index, read: 0, known, repaired });
        }
        Ok(_) => {}
        Err(error) => note(error)?,
    }
    let mut work = Work { folder, tree: &tree, segments: Vec::new(), live: Vec::new(), of: 0 };
    let mut was_there = false;
    for (name, path) in view::names(folder)? {
        was_there |= name.starts_with("view-");
        if name.starts_with(sealed::TEMPORARY) {
            remove(&path);
        } else if Segment::is_file_name(&name) {
            match Segment::open(&path) {
                Ok(Some(segment)) => work.segments.push((name, segment)),
                Ok(None) => {}
                Err(error) => note(error)?,
            }
        }
    }
    // Views whose segments are gone say that something was lost.
    for path in if was_there { View::latest(folder)? } else { Vec::new() } {
        match View::read(&path) {
            Ok(Some(view)) if view.segments.iter().all(|name| work.segments.iter().any(|(known, _)| known == name)) => {
            }
            Ok(Some(_)) => note(IndexError::Damaged { path, what: "a part of it is gone" })?,
            Ok(None) => {}
            Err(error) => note(error)?,
        }
    }

    // To build the table of the tokens takes 50 ms: the files are listed and the first ones parsed meanwhile.
    let _ = std::thread::Builder::new().spawn(|| count(Encoding::O200kBase, ""));
    let files = repo.tree_files(commit)?;
    work.of = files.len() as u32;
    let unknown = work.take_known(&files);
    let read = unknown.len() as u32;
    work.read(repo, &files, &unknown, progress)?;
    work.merge(&|| progress(Progress::Reading { files: read, of: read }).is_break())?;
    work.publish()?;
    work.tidy(&own)?;
    if repaired.is_some() {
        take_away(&mark)?;
    }
    let index = Index::of_view(folder, &own)?.ok_or(IndexError::Damaged { path: own, what: "it is gone" })?;
    Ok(Refreshed { index, read, known: work.of - read, repaired })
}

/// Nothing may be left of what cannot be used: it would be in the way of what is rebuilt.
fn take_away(path: &Path) -> Result<(), IndexError> {
    disk::remove(path).map_err(IndexError::io("remove", path))
}

/// Until a refresh is through, the mark says to the next one what has been found.
fn set_aside(path: &Path, mark: &Path) -> Result<(), IndexError> {
    if path == mark || path.symlink_metadata().is_err() {
        return Ok(());
    }
    take_away(mark)?;
    fs::rename(path, mark).or_else(|_| disk::remove(path)).map_err(IndexError::io("remove", path))
}

pub fn hindrance(folder: &Path) -> Option<IndexError> {
    let try_out = || {
        make_folder(folder)?;
        open_lock(&folder.join(LOCK))?;
        let file = tempfile::Builder::new().prefix(sealed::TEMPORARY).tempfile_in(folder);
        file.map(drop).map_err(IndexError::io("write to", folder))
    };
    try_out().err()
}

fn make_folder(folder: &Path) -> Result<(), IndexError> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder).map_err(IndexError::io("make the folder", folder))
}

/// Waits until this process is the only one that changes the folder. Given up when the file is closed.
fn lock(folder: &Path, progress: &dyn Fn(Progress) -> ControlFlow<()>) -> Result<File, IndexError> {
    let path = folder.join(LOCK);
    let failed = |error| IndexError::io("lock", &path)(error);
    let file = open_lock(&path)?;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
            Err(TryLockError::WouldBlock) if progress(Progress::Waiting).is_break() => {
                return Err(IndexError::Cancelled);
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(PATIENCE),
        }
    }
}

/// What is in the place of the lock and is none nobody can hold: it is taken away.
fn open_lock(path: &Path) -> Result<File, IndexError> {
    let open = || disk::open(path, File::options().read(true).write(true).create(true).truncate(false));
    let is_no_lock = |error: &io::Error| matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::PermissionDenied);
    let opened = open().or_else(|error| match is_no_lock(&error) && disk::remove(path).is_ok() {
        true => open(),
        false => Err(error),
    });
    opened.map_err(IndexError::io("lock", path))
}

/// Says that a view was asked for.
fn touch(path: &Path) {
    let _ = File::options().append(true).open(path).and_then(|file| file.set_modified(SystemTime::now()));
}

/// A view in the making.
struct Work<'a> {
    folder: &'a Path,
    tree: &'a str,
    segments: Vec<(String, Segment)>,
    live: Vec<[u32; 2]>,
    of: u32,
}

/// What a thread has done.
enum Done {
    Files(u32),
    Segment(String),
    Failed(IndexError),
}

impl Work<'_> {
    /// Takes the files that a segment has already, and returns the numbers of the others.
    fn take_known(&mut self, files: &[TreeFile]) -> Vec<usize> {
        let mut known: HashMap<(&str, [u8; 20]), [u32; 2]> = HashMap::new();
        for (at, (_, segment)) in self.segments.iter().enumerate() {
            for (number, file) in segment.files().iter().enumerate() {
                // What git did not have may be there now.
                if file.left_out() != Some(LeftOutReason::Unreadable) {
                    known.insert((segment.path(file), file.blob), [at as u32, number as u32]);
                }
            }
        }
        let mut unknown = Vec::new();
        for (number, file) in files.iter().enumerate() {
            match known.get(&(file.path.as_str(), blob_bytes(&file.blob))) {
                Some(place) => self.live.push(*place),
                None => unknown.push(number),
            }
        }
        unknown
    }

    fn read(
        &mut self,
        repo: &Repo,
        files: &[TreeFile],
        unknown: &[usize],
        progress: &dyn Fn(Progress) -> ControlFlow<()>,
    ) -> Result<(), IndexError> {
        if unknown.is_empty() {
            return Ok(());
        }
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = unknown.len().div_ceil(FILES_A_THREAD).min(cores).min(MAX_THREADS);
        let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
        let take = || {
            let at = next.fetch_add(1, Ordering::Relaxed);
            (!stop.load(Ordering::Relaxed)).then(|| unknown.get(at).and_then(|at| files.get(*at))).flatten()
        };
        let (of, folder) = (unknown.len() as u32, self.folder);
        let mut failure = None;
        std::thread::scope(|scope| {
            let (done, work) = channel();
            for _ in 0..threads {
                let (done, take) = (done.clone(), &take);
                match repo.again() {
                    Ok(repo) => drop(scope.spawn(move || Reader::new(&repo, folder, &done).run(take))),
                    Err(error) => failure = Some(error.into()),
                }
            }
            drop(done);
            let mut count = 0;
            for event in work {
                let result = match event {
                    Done::Files(more) => {
                        count += more;
                        match progress(Progress::Reading { files: count, of }) {
                            ControlFlow::Continue(()) => Ok(()),
                            ControlFlow::Break(()) => Err(IndexError::Cancelled),
                        }
                    }
                    // What there is can be used at once.
                    Done::Segment(name) => self.adopt(&name).and_then(|()| self.publish()),
                    Done::Failed(error) => Err(error),
                };
                if let Err(error) = result {
                    stop.store(true, Ordering::Relaxed);
                    failure.get_or_insert(error);
                }
            }
        });
        failure.map_or(Ok(()), Err)
    }

    fn adopt(&mut self, name: &str) -> Result<(), IndexError> {
        let path = self.folder.join(name);
        let gone = || IndexError::Damaged { path: path.clone(), what: "it is gone" };
        let segment = Segment::open(&path)?.ok_or_else(gone)?;
        let at = self.segments.len() as u32;
        self.live.extend((0..segment.files().len() as u32).map(|number| [at, number]));
        self.segments.push((name.to_owned(), segment));
        Ok(())
    }

    /// Makes one segment of many small ones, and of those of which little is used any more. Given up once nobody waits for
    /// it: what there is can be used as it is, and the next refresh does it.
    fn merge(&mut self, cancelled: &dyn Fn() -> bool) -> Result<(), IndexError> {
        let mut used = vec![0usize; self.segments.len()];
        for [at, _] in &self.live {
            used[*at as usize] += 1;
        }
        let is_small = |at: &usize| used[*at] > 0 && self.segments[*at].1.size() < SMALL_BYTES;
        let is_left = |at: &usize| used[*at] > 0 && used[*at] * 2 < self.segments[*at].1.files().len();
        let small: Vec<usize> = (0..self.segments.len()).filter(is_small).collect();
        let mut merged: Vec<usize> = (0..self.segments.len()).filter(|at| !is_small(at) && is_left(at)).collect();
        if small.len() > MAX_SMALL {
            merged.extend(small);
        }
        if merged.is_empty() {
            return Ok(());
        }
        let wanted: HashSet<[u32; 2]> = self.live.iter().copied().collect();
        let mut new = Vec::new();
        let mut builder = Builder::default();
        for &at in &merged {
            let segment = &self.segments[at].1;
            match builder.absorb(segment, &|number| wanted.contains(&[at as u32, number]), cancelled) {
                Ok(()) => {}
                // What is damaged is rebuilt the next time; until then all of it stays as it is.
                Err(IndexError::Cancelled | IndexError::Damaged { .. } | IndexError::Outdated { .. }) => return Ok(()),
                Err(error) => return Err(error),
            }
            if builder.is_full() {
                new.push(std::mem::take(&mut builder));
            }
        }
        new.push(builder);
        let mut names = Vec::new();
        for builder in new.into_iter().filter(|builder| !builder.is_empty()) {
            if cancelled() {
                return Ok(());
            }
            let (bytes, name) = builder.finish();
            sealed::publish(self.folder, &name, &bytes)?;
            names.push(name);
        }
        self.live.retain(|[at, _]| !merged.contains(&(*at as usize)));
        names.iter().try_for_each(|name| self.adopt(name))
    }

    /// Writes the view of what there is.
    fn publish(&mut self) -> Result<(), IndexError> {
        let segments = &self.segments;
        let path = |[at, number]: &[u32; 2]| {
            let segment = &segments[*at as usize].1;
            segment.file(*number).map_or("", |file| segment.path(file))
        };
        self.live.sort_unstable_by(|a, b| path(a).cmp(path(b)));
        // Only segments of which something is used are named.
        let mut numbers = vec![None; segments.len()];
        let mut view = View { segments: Vec::new(), live: Vec::with_capacity(self.live.len()), of: self.of };
        for [at, number] in &self.live {
            let at = *at as usize;
            let own = *numbers[at].get_or_insert_with(|| {
                view.segments.push(segments[at].0.clone());
                view.segments.len() as u32 - 1
            });
            view.live.push([own, *number]);
        }
        view.publish(self.folder, self.tree)
    }

    /// Takes away what no view of the latest trees needs.
    fn tidy(&self, own: &Path) -> Result<(), IndexError> {
        let mut needed: HashSet<String> = HashSet::new();
        let mut others = 0;
        for path in View::latest(self.folder)? {
            let is_kept = path == own || others < KEPT_VIEWS - 1;
            others += usize::from(path != own);
            match View::read(&path) {
                Ok(Some(view)) if is_kept => needed.extend(view.segments),
                _ => remove(&path),
            }
        }
        for (name, path) in view::names(self.folder)? {
            if Segment::is_file_name(&name) && !needed.contains(&name) {
                remove(&path);
            }
        }
        Ok(())
    }
}

/// Readers that have it open go on reading it.
fn remove(path: &Path) {
    if let Err(error) = disk::remove(path) {
        tracing::debug!(path = %path.display(), %error, "an old part of the index stays for now");
    }
}

/// The start of a blob's id.
pub fn blob_bytes(blob: &str) -> [u8; 20] {
    let mut bytes = [0; 20];
    for (byte, digits) in bytes.iter_mut().zip(blob.as_bytes().chunks_exact(2)) {
        let digits = std::str::from_utf8(digits).unwrap_or_default();
        *byte = u8::from_str_radix(digits, 16).unwrap_or_default();
    }
    bytes
}

/// A thread that reads files into segments.
struct Reader<'a> {
    repo: &'a Repo,
    folder: &'a Path,
    done: &'a Sender<Done>,
    parsers: Parsers,
    judge: Judge<'static>,
    builder: Builder,
}

impl<'a> Reader<'a> {
    fn new(repo: &'a Repo, folder: &'a Path, done: &'a Sender<Done>) -> Self {
        let judge = Judge::by_itself(MAX_FILE_BYTES);
        Self { repo, folder, done, parsers: Parsers::default(), judge, builder: Builder::default() }
    }

    fn run<'f>(mut self, take: &(dyn Fn() -> Option<&'f TreeFile> + Sync)) {
        while let Some(file) = take() {
            self.add(file);
            // Nobody listens only when all is over.
            let _ = self.done.send(Done::Files(1));
            if self.builder.is_full() {
                self.write();
            }
        }
        self.write();
    }

    fn write(&mut self) {
        let builder = std::mem::take(&mut self.builder);
        if builder.is_empty() {
            return;
        }
        let (bytes, name) = builder.finish();
        let _ = self.done.send(match sealed::publish(self.folder, &name, &bytes) {
            Ok(_) => Done::Segment(name),
            Err(error) => Done::Failed(error),
        });
    }

    fn add(&mut self, file: &TreeFile) {
        let blob = blob_bytes(&file.blob);
        match self.content(file) {
            Err(reason) => self.builder.leave_out(&file.path, blob, reason),
            Ok(content) => {
                let text = String::from_utf8_lossy(&content);
                let language = Language::detect(&file.path, text.as_bytes());
                let parsers = &mut self.parsers;
                let read = || (chunk::cut(parsers, &file.path, &text, language), fingerprints(&file.path, &content));
                // One file that upsets us must not take the index of all others with it.
                match std::panic::catch_unwind(AssertUnwindSafe(read)) {
                    Ok((cut, prints)) => {
                        self.builder.add(&file.path, blob, &text, is_test_path(&file.path), &cut, &prints);
                    }
                    Err(_) => {
                        self.parsers = Parsers::default();
                        self.builder.leave_out(&file.path, blob, LeftOutReason::Unreadable);
                    }
                }
            }
        }
    }

    fn content(&mut self, file: &TreeFile) -> Result<Vec<u8>, LeftOutReason> {
        if is_secret_file(&file.path) {
            return Err(LeftOutReason::Secret);
        }
        let size = self.repo.blob_size(&file.blob).map_err(|_| LeftOutReason::Unreadable)?;
        if size > MAX_FILE_BYTES {
            return Err(LeftOutReason::Oversized);
        }
        let content = self.repo.blob(&file.blob).map_err(|_| LeftOutReason::Unreadable)?;
        self.judge.reason(&file.path, &content).map_or(Ok(content), Err)
    }
}
