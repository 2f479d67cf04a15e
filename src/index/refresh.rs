//! Updates the index to a tree: keeps known files, reads the other files in several threads, and removes unused data.
//!
//! - Only one process at a time refreshes a folder.
//! - Every view in the folder is complete at any moment, or readers detect the damage.
//! - Data of a process that dies during a refresh is never trusted.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Write as _};
use std::ops::ControlFlow;
use std::os::unix::fs::OpenOptionsExt as _;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, SystemTime};

use super::segment::Segment;
use super::segment_builder::{NewFile, SegmentBuilder};
use super::view::{self, IndexView};
use super::{Index, IndexError, IndexProgress, RefreshReport, index_file, sealed_file};
use crate::domain::{InterruptedParse, OmissionReason};
use crate::git::{Repo, ReviewFilter, TreeFile};
use crate::index::chunk;
use crate::index::disk;
use crate::masking::secret_files::is_secret_file;
use crate::masking::{Mask, blank_secrets, has_secret_name};
use crate::reviewers::analyzer::file_fingerprints;
use crate::syntax::language::Language;
use crate::syntax::parse_log::{self, ParseLog};
use crate::syntax::source::Parsers;

/// Largest indexed file, in bytes. Larger files are not written by hand, and parsing them takes a gigabyte of memory.
const MAX_FILE_BYTES: u64 = 1_000_000;
/// Largest number of reader threads. More threads only take memory. They are not those of the shared pool
/// ([`crate::parallel`]): reading a tree takes up to minutes, and all other work of the process would wait.
const MAX_THREADS: usize = 8;
/// Files per thread. A thread is not worth its start for fewer files.
const MIN_FILES_PER_THREAD: usize = 16;
/// Number of views that are kept; each view belongs to one tree.
const MAX_VIEWS: usize = 8;
/// Segments below `MAX_SMALL_SEGMENT_BYTES` are merged when there are more than `MAX_SMALL_SEGMENTS` of them.
const MAX_SMALL_SEGMENT_BYTES: u64 = 1 << 20;
const MAX_SMALL_SEGMENTS: usize = 8;
/// Delay between two attempts to take the lock.
const LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(20);

const LOCK_FILE_NAME: &str = "lock";
/// Log of the files that a refresh is parsing.
const PARSE_LOG_FILE_NAME: &str = "parsing";
/// Content hashes of the files at which a refresh ran out of memory, one per line.
const UNPARSABLE_FILE_NAME: &str = "unparsable";

/// Indexes the missing files of the tree of `commit`; see [`Index::refresh`].
///
/// # Errors
/// As for [`Index::refresh`].
pub fn refresh(
    folder: &Path,
    repo: &Repo,
    commit: &str,
    progress: &dyn Fn(IndexProgress) -> ControlFlow<()>,
) -> Result<RefreshReport, IndexError> {
    let tree = repo.tree_id(commit)?;
    create_folder(folder)?;
    let _lock = lock(folder, progress)?;
    let mut repairs = Repairs::begin(folder)?;
    let own = IndexView::path_of_tree(folder, &tree);
    if let Some(index) = repairs.use_sound(Index::from_view(folder, &own))?.flatten().filter(Index::is_whole) {
        mark_used(&own);
        let known = index.known_file_count();
        return Ok(RefreshReport { index, read: 0, known, repaired: repairs.finish()? });
    }
    let segments = repairs.open_segments()?;
    repairs.check_views(&segments)?;

    let files = repo.tree_files(commit)?;
    let mut work = RefreshWork { folder, tree: &tree, segments, live: Vec::new(), total: files.len() as u32 };
    let unknown = work.adopt_known_files(&files);
    let read = unknown.len() as u32;
    let parsing = start_parse_log(folder);
    work.read_files(repo, &files, &unknown, progress)?;
    drop(parsing);
    work.merge_segments(&|| progress(IndexProgress::Reading { files: read, total: read }).is_break())?;
    work.publish_view()?;
    work.remove_unneeded(&own)?;
    let repaired = repairs.finish()?;
    let index = Index::from_view(folder, &own)?.ok_or(IndexError::Damaged { path: own, what: "it is gone" })?;
    Ok(RefreshReport { index, read, known: work.total - read, repaired })
}

/// Keeps this process from parsing the files at which an earlier refresh ran out of memory; they are indexed as plain
/// text. Starts the log for the next refresh. The caller holds the lock of the folder.
fn start_parse_log(folder: &Path) -> Option<ParseLog> {
    let (log, list) = (folder.join(PARSE_LOG_FILE_NAME), folder.join(UNPARSABLE_FILE_NAME));
    let read = disk::open(&list, File::options().read(true)).and_then(io::read_to_string);
    let mut known: BTreeSet<String> = read.unwrap_or_default().lines().map(str::to_owned).collect();
    let new = ParseLog::read_interrupted(&log);
    if !new.is_empty() {
        for InterruptedParse { path, content } in new {
            tracing::warn!(path, "a refresh ran out of memory while it parsed this file");
            known.insert(content);
        }
        let lines: String = known.iter().map(|content| format!("{content}\n")).collect();
        if let Err(error) = replace_file(folder, &list, lines.as_bytes()) {
            tracing::warn!(%error, "a file that takes too much memory to parse is parsed again");
        }
    }
    parse_log::refuse_texts(known);
    ParseLog::start(&log).inspect_err(|error| tracing::warn!(%error, "no log of what is parsed")).ok()
}

/// Replaces a file of the folder as a whole.
fn replace_file(folder: &Path, path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = tempfile::Builder::new().prefix(sealed_file::TEMPORARY_PREFIX).tempfile_in(folder)?;
    file.write_all(content)?;
    disk::remove(path)?;
    file.persist(path).map_err(|error| error.error).map(drop)
}

/// Removal of the unusable files of an index folder.
///
/// A damaged file is renamed to a mark. The mark tells the next refresh about the damage until a refresh succeeds.
struct Repairs<'a> {
    folder: &'a Path,
    mark: PathBuf,
    /// Description of the first damage that was found.
    repaired: Option<String>,
}

impl<'a> Repairs<'a> {
    /// Begins with the damage that an earlier refresh or a reader has marked.
    fn begin(folder: &'a Path) -> Result<Self, IndexError> {
        let mark = folder.join(index_file::DAMAGED_FILE_NAME);
        let mut repairs = Self { folder, mark, repaired: None };
        if repairs.mark.symlink_metadata().is_ok() {
            repairs.repair(IndexError::Damaged { path: repairs.mark.clone(), what: "a part of it was damaged" })?;
        }
        Ok(repairs)
    }

    /// Returns the opened part; removes it and returns `None` if it is damaged or outdated.
    fn use_sound<T>(&mut self, opened: Result<T, IndexError>) -> Result<Option<T>, IndexError> {
        match opened {
            Ok(part) => Ok(Some(part)),
            Err(error) => self.repair(error).map(|()| None),
        }
    }

    fn repair(&mut self, error: IndexError) -> Result<(), IndexError> {
        match error {
            IndexError::Damaged { path, what } => {
                tracing::warn!(path = %path.display(), what, "a part of the index is left away and rebuilt");
                set_aside(&path, &self.mark)?;
                self.repaired
                    .get_or_insert_with(|| format!("the index was not as it should be ({what}) and is rebuilt"));
                Ok(())
            }
            IndexError::Outdated { path } => remove_unusable(&path),
            error => Err(error),
        }
    }

    /// Opens the sound segments of the folder and removes unfinished files.
    fn open_segments(&mut self) -> Result<Vec<(String, Segment)>, IndexError> {
        let mut segments = Vec::new();
        for (name, path) in view::list_files(self.folder)? {
            if name.starts_with(sealed_file::TEMPORARY_PREFIX) {
                remove_if_possible(&path);
            } else if Segment::is_file_name(&name)
                && let Some(segment) = self.use_sound(Segment::open(&path))?.flatten()
            {
                segments.push((name, segment));
            }
        }
        Ok(segments)
    }

    /// Repairs damaged views. A view whose segment is missing shows that data was lost.
    fn check_views(&mut self, segments: &[(String, Segment)]) -> Result<(), IndexError> {
        let is_known = |name: &String| segments.iter().any(|(known, _)| known == name);
        for path in IndexView::list_latest(self.folder)? {
            let view = self.use_sound(IndexView::read(&path))?.flatten();
            if view.is_some_and(|view| !view.segments.iter().all(is_known)) {
                self.repair(IndexError::Damaged { path, what: "a part of it is gone" })?;
            }
        }
        Ok(())
    }

    /// Removes the mark after a successful refresh. Returns the description of the repaired damage.
    fn finish(self) -> Result<Option<String>, IndexError> {
        if self.repaired.is_some() {
            remove_unusable(&self.mark)?;
        }
        Ok(self.repaired)
    }
}

/// Removes an unusable file, so that it does not block its replacement.
fn remove_unusable(path: &Path) -> Result<(), IndexError> {
    disk::remove(path).map_err(IndexError::io("remove", path))
}

/// Moves a damaged file to `mark`. The mark tells the next refresh about the damage until a refresh succeeds.
fn set_aside(path: &Path, mark: &Path) -> Result<(), IndexError> {
    if path == mark || path.symlink_metadata().is_err() {
        return Ok(());
    }
    remove_unusable(mark)?;
    fs::rename(path, mark).or_else(|_| disk::remove(path)).map_err(IndexError::io("remove", path))
}

/// Tests whether `folder` can be written; see [`Index::find_write_error`].
pub fn find_write_error(folder: &Path) -> Option<IndexError> {
    let try_out = || {
        create_folder(folder)?;
        open_lock(&folder.join(LOCK_FILE_NAME))?;
        let file = tempfile::Builder::new().prefix(sealed_file::TEMPORARY_PREFIX).tempfile_in(folder);
        file.map(drop).map_err(IndexError::io("write to", folder))
    };
    try_out().err()
}

fn create_folder(folder: &Path) -> Result<(), IndexError> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder).map_err(IndexError::io("make the folder", folder))
}

/// Waits for the exclusive lock of the folder. Closing the returned file releases the lock.
fn lock(folder: &Path, progress: &dyn Fn(IndexProgress) -> ControlFlow<()>) -> Result<File, IndexError> {
    let path = folder.join(LOCK_FILE_NAME);
    let failed = |error| IndexError::io("lock", &path)(error);
    let file = open_lock(&path)?;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
            Err(TryLockError::WouldBlock) if progress(IndexProgress::Waiting).is_break() => {
                return Err(IndexError::Cancelled);
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_RETRY_INTERVAL),
        }
    }
}

/// Opens the lock file. Removes and recreates anything at this path that cannot be a lock file (for example a folder),
/// because nobody can hold it.
fn open_lock(path: &Path) -> Result<File, IndexError> {
    let open = || disk::open(path, File::options().read(true).write(true).create(true).truncate(false).mode(0o600));
    let is_no_lock = |error: &io::Error| matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::PermissionDenied);
    let opened = open().or_else(|error| match is_no_lock(&error) && disk::remove(path).is_ok() {
        true => open(),
        false => Err(error),
    });
    opened.map_err(IndexError::io("lock", path))
}

/// Updates the modification time of a view, which marks it as used.
fn mark_used(path: &Path) {
    let _ = File::options().append(true).open(path).and_then(|file| file.set_modified(SystemTime::now()));
}

/// A view that is being built.
struct RefreshWork<'a> {
    folder: &'a Path,
    tree: &'a str,
    segments: Vec<(String, Segment)>,
    live: Vec<[u32; 2]>,
    total: u32,
}

/// Message of a reader thread.
enum ReadEvent {
    Files(u32),
    Segment(String),
    Failed(IndexError),
}

impl RefreshWork<'_> {
    /// Adds the files that a segment already holds to the view and returns the positions of the other files in `files`.
    fn adopt_known_files(&mut self, files: &[TreeFile]) -> Vec<usize> {
        let mut known: HashMap<(&str, [u8; 20]), [u32; 2]> = HashMap::new();
        let mut has_secret_files = false;
        for (at, (_, segment)) in self.segments.iter().enumerate() {
            for (number, file) in segment.files().iter().enumerate() {
                has_secret_files |= file.left_out() == Some(OmissionReason::Secret);
                // Git may have the blob now.
                if file.left_out() != Some(OmissionReason::Unreadable) {
                    known.insert((segment.path(file), file.blob), [at as u32, number as u32]);
                }
            }
        }
        let mut unknown = Vec::new();
        for (number, file) in files.iter().enumerate() {
            let blob = blob_bytes(&file.blob);
            let place = known.get(&(file.path.as_str(), blob)).copied();
            // Masking each path of a new index takes long, and only secret files are stored under a masked one.
            let place = match place {
                None if has_secret_files => known.get(&(&*stored_path(file, OmissionReason::Secret), blob)).copied(),
                place => place,
            };
            match place {
                Some(place) => self.live.push(place),
                None => unknown.push(number),
            }
        }
        unknown
    }

    fn read_files(
        &mut self,
        repo: &Repo,
        files: &[TreeFile],
        unknown: &[usize],
        progress: &dyn Fn(IndexProgress) -> ControlFlow<()>,
    ) -> Result<(), IndexError> {
        if unknown.is_empty() {
            return Ok(());
        }
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = unknown.len().div_ceil(MIN_FILES_PER_THREAD).min(cores).min(MAX_THREADS);
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
                match repo.reopen() {
                    Ok(repo) => drop(scope.spawn(move || IndexWorker::new(&repo, folder, &done).run(take))),
                    Err(error) => failure = Some(error.into()),
                }
            }
            drop(done);
            let mut count = 0;
            for event in work {
                let result = match event {
                    ReadEvent::Files(more) => {
                        count += more;
                        match progress(IndexProgress::Reading { files: count, total: of }) {
                            ControlFlow::Continue(()) => Ok(()),
                            ControlFlow::Break(()) => Err(IndexError::Cancelled),
                        }
                    }
                    // Publish each segment at once, so that readers can use it.
                    ReadEvent::Segment(name) => self.adopt_segment(&name).and_then(|()| self.publish_view()),
                    ReadEvent::Failed(error) => Err(error),
                };
                if let Err(error) = result {
                    stop.store(true, Ordering::Relaxed);
                    failure.get_or_insert(error);
                }
            }
        });
        failure.map_or(Ok(()), Err)
    }

    fn adopt_segment(&mut self, name: &str) -> Result<(), IndexError> {
        let path = self.folder.join(name);
        let gone = || IndexError::Damaged { path: path.clone(), what: "it is gone" };
        let segment = Segment::open(&path)?.ok_or_else(gone)?;
        let at = self.segments.len() as u32;
        self.live.extend((0..segment.files().len() as u32).map(|number| [at, number]));
        self.segments.push((name.to_owned(), segment));
        Ok(())
    }

    /// Merges small segments and segments of which less than half is used.
    ///
    /// Returns early without a merge when `cancelled` returns true: the segments stay usable and the next refresh
    /// merges them.
    fn merge_segments(&mut self, cancelled: &dyn Fn() -> bool) -> Result<(), IndexError> {
        let mut used = vec![0usize; self.segments.len()];
        for [at, _] in &self.live {
            used[*at as usize] += 1;
        }
        let is_small = |at: &usize| used[*at] > 0 && self.segments[*at].1.length() < MAX_SMALL_SEGMENT_BYTES;
        let is_left = |at: &usize| used[*at] > 0 && used[*at] * 2 < self.segments[*at].1.files().len();
        let small: Vec<usize> = (0..self.segments.len()).filter(is_small).collect();
        let mut merged: Vec<usize> = (0..self.segments.len()).filter(|at| !is_small(at) && is_left(at)).collect();
        if small.len() > MAX_SMALL_SEGMENTS {
            merged.extend(small);
        }
        if merged.is_empty() {
            return Ok(());
        }
        let wanted: HashSet<[u32; 2]> = self.live.iter().copied().collect();
        let mut new = Vec::new();
        let mut builder = SegmentBuilder::default();
        for &at in &merged {
            let segment = &self.segments[at].1;
            match builder.absorb(segment, &|number| wanted.contains(&[at as u32, number]), cancelled) {
                Ok(()) => {}
                // The next refresh rebuilds damaged segments; until then, all segments stay unchanged.
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
            names.push(builder.finish().publish(self.folder)?);
        }
        self.live.retain(|[at, _]| !merged.contains(&(*at as usize)));
        names.iter().try_for_each(|name| self.adopt_segment(name))
    }

    /// Writes the view of the files that are indexed so far.
    fn publish_view(&mut self) -> Result<(), IndexError> {
        let segments = &self.segments;
        let path = |[at, number]: &[u32; 2]| {
            let segment = &segments[*at as usize].1;
            segment.file(*number).map_or("", |file| segment.path(file))
        };
        self.live.sort_unstable_by(|a, b| path(a).cmp(path(b)));
        // Name only the segments that the view uses.
        let mut numbers = vec![None; segments.len()];
        let mut view =
            IndexView { segments: Vec::new(), files: Vec::with_capacity(self.live.len()), total: self.total };
        for [at, number] in &self.live {
            let at = *at as usize;
            let own = *numbers[at].get_or_insert_with(|| {
                view.segments.push(segments[at].0.clone());
                view.segments.len() as u32 - 1
            });
            view.files.push([own, *number]);
        }
        view.publish(self.folder, self.tree)
    }

    /// Removes the views of old trees and the segments that no kept view needs.
    fn remove_unneeded(&self, own: &Path) -> Result<(), IndexError> {
        let mut needed: HashSet<String> = HashSet::new();
        let mut others = 0;
        for path in IndexView::list_latest(self.folder)? {
            let is_kept = path == own || others < MAX_VIEWS - 1;
            others += usize::from(path != own);
            match IndexView::read(&path) {
                Ok(Some(view)) if is_kept => needed.extend(view.segments),
                _ => remove_if_possible(&path),
            }
        }
        for (name, path) in view::list_files(self.folder)? {
            if Segment::is_file_name(&name) && !needed.contains(&name) {
                remove_if_possible(&path);
            }
        }
        Ok(())
    }
}

/// Removes a file. Readers that have the file open can still read it.
fn remove_if_possible(path: &Path) {
    if let Err(error) = disk::remove(path) {
        tracing::debug!(path = %path.display(), %error, "an old part of the index stays for now");
    }
}

/// Parses the first 20 bytes of a hexadecimal blob id; invalid digits become 0.
pub fn blob_bytes(blob: &str) -> [u8; 20] {
    let mut bytes = [0; 20];
    for (byte, digits) in bytes.iter_mut().zip(blob.as_bytes().chunks_exact(2)) {
        let digits = std::str::from_utf8(digits).unwrap_or_default();
        *byte = u8::from_str_radix(digits, 16).unwrap_or_default();
    }
    bytes
}

/// Returns the path under which a file that is left out for `reason` is stored. The name of a secret file may itself be a
/// secret, and the index must not hold one.
fn stored_path(file: &TreeFile, reason: OmissionReason) -> Cow<'_, str> {
    match reason {
        OmissionReason::Secret => Mask::On.mask_key_shapes(&file.path),
        _ => file.path.as_str().into(),
    }
}

/// Reader thread that adds files to segments.
struct IndexWorker<'a> {
    repo: &'a Repo,
    folder: &'a Path,
    done: &'a Sender<ReadEvent>,
    parsers: Parsers,
    judge: ReviewFilter<'static>,
    builder: SegmentBuilder,
}

impl<'a> IndexWorker<'a> {
    fn new(repo: &'a Repo, folder: &'a Path, done: &'a Sender<ReadEvent>) -> Self {
        let judge = ReviewFilter::without_attributes(MAX_FILE_BYTES);
        Self { repo, folder, done, parsers: Parsers::default(), judge, builder: SegmentBuilder::default() }
    }

    fn run<'f>(mut self, take: &(dyn Fn() -> Option<&'f TreeFile> + Sync)) {
        while let Some(file) = take() {
            self.add_file(file);
            // The receiver is gone only when the refresh has ended.
            let _ = self.done.send(ReadEvent::Files(1));
            if self.builder.is_full() {
                self.write_segment();
            }
        }
        self.write_segment();
    }

    fn write_segment(&mut self) {
        let builder = std::mem::take(&mut self.builder);
        if builder.is_empty() {
            return;
        }
        let published = builder.finish().publish(self.folder);
        let _ = self.done.send(published.map_or_else(ReadEvent::Failed, ReadEvent::Segment));
    }

    fn add_file(&mut self, file: &TreeFile) {
        let blob = blob_bytes(&file.blob);
        match self.read_content(file) {
            Err(reason) => self.builder.leave_out(&stored_path(file, reason), blob, reason),
            Ok(content) => {
                let text = String::from_utf8_lossy(&content);
                // The index keeps words and names, so it must not see secrets.
                let text = blank_secrets(Some(&file.path), &text);
                let language = Language::detect(&file.path, text.as_bytes());
                let parsers = &mut self.parsers;
                let read =
                    || (chunk::cut_text(parsers, &file.path, &text, language), file_fingerprints(&file.path, &content));
                // A panic on one file must not stop the indexing of all other files.
                match std::panic::catch_unwind(AssertUnwindSafe(read)) {
                    Ok((cut, fingerprints)) => self.builder.add_file(&NewFile {
                        path: &file.path,
                        blob,
                        text: &text,
                        cut: &cut,
                        fingerprints: &fingerprints,
                    }),
                    Err(_) => {
                        self.parsers = Parsers::default();
                        self.builder.leave_out(&file.path, blob, OmissionReason::Unreadable);
                    }
                }
            }
        }
    }

    fn read_content(&mut self, file: &TreeFile) -> Result<Vec<u8>, OmissionReason> {
        if is_secret_file(&file.path) || has_secret_name(&file.path) {
            return Err(OmissionReason::Secret);
        }
        let size = self.repo.blob_size(&file.blob).map_err(|_| OmissionReason::Unreadable)?;
        if size > MAX_FILE_BYTES {
            return Err(OmissionReason::Oversized);
        }
        let content = self.repo.blob(&file.blob).map_err(|_| OmissionReason::Unreadable)?;
        self.judge.left_out_reason(&file.path, &content).map_or(Ok(content), Err)
    }
}
