//! The index of a snapshot, made on a thread of its own while a review waits for its model.
//!
//! Beside it, the fingerprints that the built-in reviewer finds copies by, so that its next review need not read the
//! snapshot. They are of the shapes of tokens, whatever the names in them, and the index knows names: which files could
//! hold a copy follows from the fingerprints only.
//!
//! Invariants: nobody waits for it but for a moment, and the end of the run for a file at most; whatever goes wrong with it is
//! logged and costs the review nothing; what was read until it is given up is kept for the next one.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::Runner;
use crate::context::index::{Index, IndexError, Reach, Refreshed};
use crate::provider::builtin::reviewer::index_copies;

/// How long a review waits for what is new in an index. The change of a file takes 50 ms, the answer of a model seconds.
const MOMENT: Duration = Duration::from_millis(500);
/// How often it looks meanwhile.
const LOOK: Duration = Duration::from_millis(5);

/// A refresh under way, until it is dropped.
pub(super) struct Indexing {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<Refreshed, IndexError>>>,
    /// What makes fingerprints.
    copies: Option<JoinHandle<()>>,
}

impl Runner {
    /// Where the repository's index is.
    fn index_folder(&self) -> PathBuf {
        self.paths.index_folder(&self.repo.key())
    }

    /// Where the fingerprints of the repository's files are.
    pub(super) fn copies_folder(&self) -> PathBuf {
        self.paths.cache.join("copies").join(self.repo.key())
    }

    /// What is known of a commit's tree.
    pub(super) fn index(&self, commit: &str) -> Option<Index> {
        let opened = Index::open(&self.index_folder(), &self.repo, commit);
        opened.unwrap_or_else(|error| {
            tracing::warn!(%error, "the review goes on without an index");
            None
        })
    }

    /// Begins to read a commit's tree into the index; `None` where that cannot be.
    pub(super) fn begin_indexing(&self, commit: &str) -> Option<Indexing> {
        let failed = |error: &dyn std::fmt::Display| tracing::warn!(%error, "the repository is not indexed");
        let repo = self.repo.again().inspect_err(|error| failed(error)).ok()?;
        let (folder, stop) = (self.index_folder(), Arc::new(AtomicBool::new(false)));
        let copies = self.begin_copies(commit, &stop);
        let (commit, stopped) = (commit.to_owned(), Arc::clone(&stop));
        let go_on = move |_| match stopped.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        let refresh = move || Index::refresh(&folder, &repo, &commit, &go_on);
        let thread = std::thread::Builder::new().name("index".to_owned()).spawn(refresh);
        let thread = thread.inspect_err(|error| failed(error)).ok()?;
        Some(Indexing { stop, thread: Some(thread), copies })
    }

    fn begin_copies(&self, commit: &str, stop: &Arc<AtomicBool>) -> Option<JoinHandle<()>> {
        let repo = self.repo.again().ok()?;
        let (folder, filter) = (self.copies_folder(), self.filter());
        let (commit, stop) = (commit.to_owned(), Arc::clone(stop));
        let index = move || {
            let indexed = index_copies(&repo, &commit, &filter, folder, &|| !stop.load(Ordering::Relaxed));
            if let Err(error) = indexed {
                tracing::warn!(%error, "copies will be looked for in what a review reads itself");
            }
        };
        std::thread::Builder::new().name("copies".to_owned()).spawn(index).ok()
    }
}

impl Indexing {
    /// As [`Indexing::take`], after a moment in which what is new since another tree was indexed is read as a rule.
    pub fn wait(&mut self) -> Option<Refreshed> {
        let began = Instant::now();
        while began.elapsed() < MOMENT && self.thread.as_ref().is_some_and(|thread| !thread.is_finished()) {
            std::thread::sleep(LOOK);
        }
        self.take()
    }

    /// What has come of it, once, when it is over and all of the tree is known.
    pub fn take(&mut self) -> Option<Refreshed> {
        come_of(self.thread.take_if(|thread| thread.is_finished())?)
    }

    /// Gives it up; what has come of it when it was over nevertheless.
    pub fn end(mut self) -> Option<Refreshed> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().and_then(come_of)
        // The fingerprints are waited for as this is dropped.
    }
}

fn come_of(thread: JoinHandle<Result<Refreshed, IndexError>>) -> Option<Refreshed> {
    match thread.join() {
        Ok(Ok(refreshed)) => Some(refreshed).filter(|refreshed| refreshed.index.reach() == Reach::Whole),
        Ok(Err(IndexError::Cancelled)) => None,
        Ok(Err(error)) => {
            tracing::warn!(%error, "the repository is not indexed");
            None
        }
        // The panic has told of itself.
        Err(_) => None,
    }
}

impl Drop for Indexing {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().and_then(come_of);
        // A panic has told of itself.
        let _ = self.copies.take().map(JoinHandle::join);
    }
}
