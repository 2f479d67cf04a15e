//! Builds the index of a snapshot in the background, and reads its history and documents into the caches: on separate
//! threads while a review waits for its model, after a built-in review that had to read many unchanged files, or in a
//! separate process after a context request that found no index or could not read everything in time.
//!
//! - A context waits for history and files at most as long as the setting `context.reading_seconds` says.
//! - Nobody waits for the index longer than [`MAX_INDEX_WAIT`]; the end of a run waits for one file at most.
//! - A failure is logged and never fails the review.
//! - Files that were indexed before a stop stay indexed for the next time.
//! - The repair of a damaged index is reported once, to the process that waits or to the next one.

use crate::runner::Services;
use std::cell::OnceCell;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::context::read_ahead::{ContextSources, read_ahead};
use crate::domain::RunId;
use crate::index::{Index, IndexCompleteness, IndexError, IndexProgress, RefreshReport};
use crate::reviewers::analyzer::FingerprintSource;
use crate::runner::launcher::start_workers;
use crate::runner::process;
use crate::runner::worker::shared_reading::SharedReading;
use crate::store::RecoveryNotice;

/// Time that a review waits for changed files in an index. A changed file takes 50 ms, the answer of a model takes
/// seconds.
const MAX_INDEX_WAIT: Duration = Duration::from_millis(500);
/// Interval between two checks during that wait.
const INDEX_POLL_INTERVAL: Duration = Duration::from_millis(5);
/// Minimum number of unindexed bytes in a review for which an index is worth building. Reading fewer bytes takes some
/// ten milliseconds.
pub(super) const MIN_UNKNOWN_BYTES: u64 = 1 << 20;
/// Maximum time that a worker indexes after its run. A million lines take 5 s on two idle cores, but the worker only
/// gets idle time.
const MAX_INDEXING_TIME: Duration = Duration::from_secs(60);
/// Maximum time that a process reads history and documents behind a context. The 3,000 commits and 9,500
/// files of spring-boot take some 20 s of processor time, but the process only gets idle time, and the next context
/// counts on all of it.
const MAX_READ_AHEAD_TIME: Duration = Duration::from_secs(300);

/// The state of the index when a context is built.
#[derive(Default)]
pub(super) struct IndexReadiness {
    pub index: Option<Index>,
    /// The indexing still runs, because there was too much new code for a short wait.
    pub indexing: Option<BackgroundIndexing>,
    /// A note about a repair of the index, to be shown once.
    pub repaired: Option<String>,
    /// The reason why there will be no index.
    pub hindrance: Option<String>,
    /// Time that a context may spend on reading what no cache holds, without the time spent here; `None` for any time.
    reading_time: Option<Duration>,
    /// When the context began to read.
    began_to_read: OnceCell<Instant>,
}

impl IndexReadiness {
    /// Returns the time that is left for reading what no cache holds. The first call starts the time.
    pub fn time_left(&self) -> Duration {
        let Some(time) = self.reading_time else { return Duration::MAX };
        time.saturating_sub(self.began_to_read.get_or_init(Instant::now).elapsed())
    }

    /// Lets the context take from the caches what they have, and read nothing else.
    pub fn read_caches_only(&mut self) {
        self.reading_time = Some(Duration::ZERO);
    }

    /// Returns the reason why searches read files one by one, if they do.
    pub fn note(&self) -> Option<&str> {
        match self.index.as_ref().map(Index::completeness) {
            Some(IndexCompleteness::Whole) => None,
            _ if self.hindrance.is_some() => self.hindrance.as_deref(),
            Some(_) => {
                Some("the index of this repository is not ready: until it is, searches look at files one by one")
            }
            None => Some(
                "this repository is not indexed yet: until that is done in the background, searches look at files one \
                 by one",
            ),
        }
    }

    /// Returns `true` if more of the tree can be indexed.
    pub fn is_incomplete(&self) -> bool {
        self.hindrance.is_none() && self.index.as_ref().map(Index::completeness) != Some(IndexCompleteness::Whole)
    }
}

/// A running refresh of the index. Dropping it stops the refresh.
pub(super) struct BackgroundIndexing {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<RefreshReport, IndexError>>>,
}

/// Urgency of filling an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IndexingUrgency {
    /// The first request waits for the index.
    Awaited,
    /// Only later turns use the index: other members of a panel may be preparing their first request meanwhile.
    ForLater,
}

/// Reading of history and documents in the background. Dropping it stops the reading.
pub(super) struct BackgroundReading {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<bool>>,
}

impl BackgroundReading {
    /// Stops the reading. Returns `true` if everything was read.
    pub fn stop(mut self) -> bool {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().is_some_and(|thread| thread.join().unwrap_or(false))
    }
}

impl Drop for BackgroundReading {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        drop(self.thread.take().map(JoinHandle::join));
    }
}

/// Service that opens and fills the repository index.
#[derive(Clone, Copy)]
pub struct Indexer<'a> {
    pub(in crate::runner) services: &'a Services,
}

impl Indexer<'_> {
    /// Returns the folder of the repository's index.
    fn index_folder(&self) -> PathBuf {
        self.services.paths.index_folder(&self.services.repo.key())
    }

    /// Returns the folder of the repository's other caches.
    fn cache_folder(&self) -> PathBuf {
        self.services.paths.history_folder(&self.services.repo.key())
    }

    /// Opens the index for a commit's tree.
    pub(super) fn open_index(&self, commit: &str) -> Option<Index> {
        let opened = Index::open(&self.index_folder(), &self.services.repo, commit);
        opened.unwrap_or_else(|error| {
            tracing::warn!(%error, "the review goes on without an index");
            None
        })
    }

    /// Opens the index for a commit's tree. If the index is of another recent tree, waits up to [`MAX_INDEX_WAIT`],
    /// which is usually enough to index the difference.
    pub(super) fn prepare_index(&self, commit: &str, cancelled: &dyn Fn() -> bool) -> IndexReadiness {
        let (began, limit) = (Instant::now(), Duration::from_secs(self.services.settings.context.reading_seconds));
        let mut ready = IndexReadiness { index: self.open_index(commit), ..IndexReadiness::default() };
        if ready.index.as_ref().is_some_and(|index| index.completeness() == IndexCompleteness::Other) {
            ready.indexing = self.start_indexing(commit, IndexingUrgency::Awaited);
            if let Some(refreshed) = ready.indexing.as_mut().and_then(|indexing| indexing.wait(cancelled)) {
                (ready.index, ready.repaired) = (Some(refreshed.index), refreshed.repaired);
            }
        }
        if ready.index.as_ref().is_none_or(|index| index.completeness() != IndexCompleteness::Whole) {
            let said = |error| format!("this repository is not indexed ({error}): searches look at files one by one");
            ready.hindrance = Index::find_write_error(&self.index_folder()).map(said);
        }
        ready.reading_time = Some(limit.saturating_sub(began.elapsed()));
        ready
    }

    /// Finds out whether a member of a panel reads for all of them, and waits for another member that does.
    pub(super) fn share_reading(&self, panel: Option<&RunId>, cancelled: &dyn Fn() -> bool) -> SharedReading {
        let time = Duration::from_secs(self.services.settings.context.reading_seconds);
        SharedReading::begin(panel, self.cache_folder(), time, cancelled)
    }

    /// Opens the fingerprints of a commit's files.
    pub(super) fn open_fingerprints(&self, commit: &str) -> Option<Arc<dyn FingerprintSource>> {
        match self.open_index(commit)?.into_fingerprints() {
            Ok(prints) => Some(Arc::new(prints)),
            Err(error) => {
                tracing::warn!(%error, "copies are looked for in what the review reads itself");
                None
            }
        }
    }

    /// Indexes the rest of a snapshot after its review, so that the next review finds duplicates of all code. Nobody
    /// waits for it. Does nothing if another process is indexing.
    pub(super) fn index_after_review(&self, commit: &str) {
        let began = Instant::now();
        let go_on = |progress| match progress {
            IndexProgress::Reading { .. } if began.elapsed() < MAX_INDEXING_TIME => ControlFlow::Continue(()),
            IndexProgress::Reading { .. } | IndexProgress::Waiting => ControlFlow::Break(()),
        };
        process::stand_back();
        match Index::refresh(&self.index_folder(), &self.services.repo, commit, &go_on) {
            Ok(refreshed) => self.announce_repair(refreshed.repaired),
            Err(IndexError::Cancelled) => {}
            Err(error) => tracing::warn!(%error, "the repository is not indexed"),
        }
    }

    fn announce_repair(&self, repaired: Option<String>) {
        let news = repaired.map(|said| RecoveryNotice::Repaired { said });
        if let Err(error) = self.services.store.append_notices(news.as_slice()) {
            tracing::warn!(%error, "nobody is told that the index was rebuilt");
        }
    }

    /// Reads history and documents after a review whose context could not wait for all of them. Nobody waits for it.
    pub(super) fn read_ahead_after_review(&self, sources: &ContextSources) {
        let began = Instant::now();
        let stopped = || began.elapsed() >= MAX_READ_AHEAD_TIME;
        if let Err(error) = read_ahead(&self.services.repo, sources, &self.cache_folder(), &stopped) {
            tracing::warn!(%error, "the next context reads the history by itself");
        }
    }

    /// Starts a separate process that reads the rest of a context's sources for later requests.
    pub fn spawn_indexer(&self, sources: &ContextSources) {
        let arguments = ["indexer", &sources.tree, "--history", &sources.history];
        match process::spawn_detached(
            &self.services.repo,
            &self.services.paths,
            &self.services.repo.root(),
            &arguments,
            Stdio::null(),
            start_workers::WORKER_LOG,
        ) {
            Ok(child) => process::reap(child),
            Err(error) => tracing::warn!(%error, "the repository is not indexed"),
        }
    }

    /// Runs the command `revdeck indexer COMMIT`.
    pub fn run_indexer(&self, sources: &ContextSources) {
        process::ignore_the_terminal();
        self.index_after_review(&sources.tree);
        self.read_ahead_after_review(sources);
    }

    /// Starts to read history and documents. Returns `None` if that is impossible.
    pub(super) fn start_reading_ahead(&self, sources: &ContextSources) -> Option<BackgroundReading> {
        let failed = |error: &dyn std::fmt::Display| tracing::warn!(%error, "the history is not read ahead");
        let repo = self.services.repo.reopen().inspect_err(|error| failed(error)).ok()?;
        let (folder, stop) = (self.cache_folder(), Arc::new(AtomicBool::new(false)));
        let (wanted, stopped) = (sources.clone(), Arc::clone(&stop));
        let read = move || {
            process::lower_thread_priority();
            read_ahead(&repo, &wanted, &folder, &|| stopped.load(Ordering::Relaxed)).unwrap_or(false)
        };
        let thread = std::thread::Builder::new().name("read-ahead".to_owned()).spawn(read);
        let thread = thread.inspect_err(|error| failed(error)).ok()?;
        Some(BackgroundReading { stop, thread: Some(thread) })
    }

    /// Starts to index a commit's tree. Returns `None` if that is impossible.
    pub(super) fn start_indexing(&self, commit: &str, urgency: IndexingUrgency) -> Option<BackgroundIndexing> {
        let failed = |error: &dyn std::fmt::Display| tracing::warn!(%error, "the repository is not indexed");
        let repo = self.services.repo.reopen().inspect_err(|error| failed(error)).ok()?;
        let (folder, stop) = (self.index_folder(), Arc::new(AtomicBool::new(false)));
        let (commit, stopped) = (commit.to_owned(), Arc::clone(&stop));
        let go_on = move |_| match stopped.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        let refresh = move || {
            if urgency == IndexingUrgency::ForLater {
                process::lower_thread_priority();
            }
            Index::refresh(&folder, &repo, &commit, &go_on)
        };
        let thread = std::thread::Builder::new().name("index".to_owned()).spawn(refresh);
        let thread = thread.inspect_err(|error| failed(error)).ok()?;
        Some(BackgroundIndexing { stop, thread: Some(thread) })
    }
}

impl BackgroundIndexing {
    /// Waits up to [`MAX_INDEX_WAIT`], or until cancelled, and then calls [`BackgroundIndexing::take_finished`].
    fn wait(&mut self, cancelled: &dyn Fn() -> bool) -> Option<RefreshReport> {
        let began = Instant::now();
        while began.elapsed() < MAX_INDEX_WAIT
            && !cancelled()
            && self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
        {
            std::thread::sleep(INDEX_POLL_INTERVAL);
        }
        self.take_finished()
    }

    /// Returns the result once, after the thread has ended and if the whole tree is indexed.
    pub fn take_finished(&mut self) -> Option<RefreshReport> {
        join_refresh(self.thread.take_if(|thread| thread.is_finished())?)
    }

    /// Stops the indexing. Returns the result if it was finished nevertheless.
    pub fn stop(mut self) -> Option<RefreshReport> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().and_then(join_refresh)
    }
}

fn join_refresh(thread: JoinHandle<Result<RefreshReport, IndexError>>) -> Option<RefreshReport> {
    match thread.join() {
        Ok(Ok(refreshed)) => {
            Some(refreshed).filter(|refreshed| refreshed.index.completeness() == IndexCompleteness::Whole)
        }
        Ok(Err(IndexError::Cancelled)) => None,
        Ok(Err(error)) => {
            tracing::warn!(%error, "the repository is not indexed");
            None
        }
        // The panic handler has already reported the panic.
        Err(_) => None,
    }
}

impl Drop for BackgroundIndexing {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().and_then(join_refresh);
    }
}
