//! The index of a snapshot: made on a thread of its own while a review waits for its model, or after a built-in review that
//! had to read much beside its change, or by a process of its own after a context that found none, for the next one.
//!
//! Invariants: nobody waits for it but for a moment, and the end of the run for a file at most; whatever goes wrong with it is
//! logged and costs the review nothing; what was read until it is given up is kept for the next one; that a damaged index
//! was rebuilt is said once, to who waits or else to who comes next.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::{Runner, process, start_workers};
use crate::index::{Index, IndexCompleteness, IndexError, IndexProgress, RefreshReport};
use crate::reviewers::analyzer::FingerprintSource;
use crate::store::RecoveryNotice;

/// How long a review waits for what is new in an index. The change of a file takes 50 ms, the answer of a model seconds.
const MAX_INDEX_WAIT: Duration = Duration::from_millis(500);
/// How often it looks meanwhile.
const INDEX_POLL_INTERVAL: Duration = Duration::from_millis(5);
/// From so many bytes on that a review read beside its change an index is worth its while: below, reading takes some ten
/// milliseconds.
pub(super) const MIN_UNKNOWN_BYTES: u64 = 1 << 20;
/// How long a worker goes on after its run at most. A million lines take 5 s on two idle cores; it has what others leave it.
const MAX_INDEXING_TIME: Duration = Duration::from_secs(60);

/// What is known of a tree when a context of it is put together.
#[derive(Default)]
pub(super) struct IndexReadiness {
    pub index: Option<Index>,
    /// What was new was too much for a moment: it is still read.
    pub indexing: Option<BackgroundIndexing>,
    /// What was wrong with the index, to be said once; it is in order now.
    pub repaired: Option<String>,
    /// Why there will be none.
    pub hindrance: Option<String>,
}

impl IndexReadiness {
    /// Why searches will look at files one by one, if they will.
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

    /// Whether an index could know more of the tree.
    pub fn is_incomplete(&self) -> bool {
        self.hindrance.is_none() && self.index.as_ref().map(Index::completeness) != Some(IndexCompleteness::Whole)
    }
}

/// A refresh under way, until it is dropped.
pub(super) struct BackgroundIndexing {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<RefreshReport, IndexError>>>,
}

impl Runner {
    /// Where the repository's index is.
    fn index_folder(&self) -> PathBuf {
        self.paths.index_folder(&self.repo.key())
    }

    /// What is known of a commit's tree.
    pub(super) fn open_index(&self, commit: &str) -> Option<Index> {
        let opened = Index::open(&self.index_folder(), &self.repo, commit);
        opened.unwrap_or_else(|error| {
            tracing::warn!(%error, "the review goes on without an index");
            None
        })
    }

    /// What is known of a commit's tree; where that is another, recent tree, after a moment in which what is new is read as
    /// a rule.
    pub(super) fn prepare_index(&self, commit: &str, cancelled: &dyn Fn() -> bool) -> IndexReadiness {
        let mut ready = IndexReadiness { index: self.open_index(commit), ..IndexReadiness::default() };
        if ready.index.as_ref().is_some_and(|index| index.completeness() == IndexCompleteness::Other) {
            ready.indexing = self.start_indexing(commit);
            if let Some(refreshed) = ready.indexing.as_mut().and_then(|indexing| indexing.wait(cancelled)) {
                (ready.index, ready.repaired) = (Some(refreshed.index), refreshed.repaired);
            }
        }
        if ready.index.as_ref().is_none_or(|index| index.completeness() != IndexCompleteness::Whole) {
            let said = |error| format!("this repository is not indexed ({error}): searches look at files one by one");
            ready.hindrance = Index::find_write_error(&self.index_folder()).map(said);
        }
        ready
    }

    /// What is known of the fingerprints of a commit's files.
    pub(super) fn open_fingerprints(&self, commit: &str) -> Option<Arc<dyn FingerprintSource>> {
        match self.open_index(commit)?.into_fingerprints() {
            Ok(prints) => Some(Arc::new(prints)),
            Err(error) => {
                tracing::warn!(%error, "copies are looked for in what the review reads itself");
                None
            }
        }
    }

    /// Reads what the index does not know of a snapshot whose review is over, so that the next one finds copies of
    /// everything. Nobody waits for it; where another process is at it, that is enough.
    pub(super) fn index_after_review(&self, commit: &str) {
        let began = Instant::now();
        let go_on = |progress| match progress {
            IndexProgress::Reading { .. } if began.elapsed() < MAX_INDEXING_TIME => ControlFlow::Continue(()),
            IndexProgress::Reading { .. } | IndexProgress::Waiting => ControlFlow::Break(()),
        };
        process::stand_back();
        match Index::refresh(&self.index_folder(), &self.repo, commit, &go_on) {
            Ok(refreshed) => self.announce_repair(refreshed.repaired),
            Err(IndexError::Cancelled) => {}
            Err(error) => tracing::warn!(%error, "the repository is not indexed"),
        }
    }

    fn announce_repair(&self, repaired: Option<String>) {
        let news = repaired.map(|said| RecoveryNotice::Repaired { said });
        if let Err(error) = self.store.append_notices(news.as_slice()) {
            tracing::warn!(%error, "nobody is told that the index was rebuilt");
        }
    }

    /// Has a process of its own read what the index does not know of a commit's tree, for whoever asks next.
    pub fn spawn_indexer(&self, commit: &str) {
        let arguments = ["indexer", commit];
        match process::spawn_detached(
            &self.repo,
            &self.paths,
            &self.repo.root(),
            &arguments,
            Stdio::null(),
            start_workers::WORKER_LOG,
        ) {
            Ok(child) => process::reap(child),
            Err(error) => tracing::warn!(%error, "the repository is not indexed"),
        }
    }

    /// The body of `revdeck indexer COMMIT`.
    pub fn run_indexer(&self, commit: &str) {
        process::ignore_the_terminal();
        self.index_after_review(commit);
    }

    /// Begins to read a commit's tree into the index; `None` where that cannot be.
    pub(super) fn start_indexing(&self, commit: &str) -> Option<BackgroundIndexing> {
        let failed = |error: &dyn std::fmt::Display| tracing::warn!(%error, "the repository is not indexed");
        let repo = self.repo.reopen().inspect_err(|error| failed(error)).ok()?;
        let (folder, stop) = (self.index_folder(), Arc::new(AtomicBool::new(false)));
        let (commit, stopped) = (commit.to_owned(), Arc::clone(&stop));
        let go_on = move |_| match stopped.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        let refresh = move || Index::refresh(&folder, &repo, &commit, &go_on);
        let thread = std::thread::Builder::new().name("index".to_owned()).spawn(refresh);
        let thread = thread.inspect_err(|error| failed(error)).ok()?;
        Some(BackgroundIndexing { stop, thread: Some(thread) })
    }
}

impl BackgroundIndexing {
    /// As [`Indexing::take`], after a moment; at once when it is cancelled.
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

    /// What has come of it, once, when it is over and all of the tree is known.
    pub fn take_finished(&mut self) -> Option<RefreshReport> {
        join_refresh(self.thread.take_if(|thread| thread.is_finished())?)
    }

    /// Gives it up; what has come of it when it was over nevertheless.
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
        // The panic has told of itself.
        Err(_) => None,
    }
}

impl Drop for BackgroundIndexing {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().and_then(join_refresh);
    }
}
