//! Cheap checks for a cancellation of a run.

use std::cell::Cell;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::domain::{CancelReason, RunId};
use crate::runner::Services;

/// Minimum interval between two checks for a cancellation.
const CANCEL_POLL_INTERVAL: Duration = Duration::from_millis(25);

/// Checks for a cancellation of the run: looks at the size of a file, and reads the record only if the file has grown.
pub(in crate::runner) struct CancelWatch<'a> {
    services: &'a Services,
    run: RunId,
    file: PathBuf,
    looked: Cell<Option<Instant>>,
    size: Cell<u64>,
    answer: Cell<Option<CancelReason>>,
}

impl<'a> CancelWatch<'a> {
    pub(super) fn new(services: &'a Services, run: RunId) -> Self {
        let file = services.store.runs_path();
        Self { services, run, file, looked: Cell::new(None), size: Cell::new(0), answer: Cell::new(None) }
    }

    pub(in crate::runner) fn check(&self) -> Option<CancelReason> {
        if self.answer.get().is_some()
            || self.looked.get().is_some_and(|looked| looked.elapsed() < CANCEL_POLL_INTERVAL)
        {
            return self.answer.get();
        }
        self.check_now()
    }

    /// Checks like [`CancelWatch::check`], however short ago the last check was.
    pub(in crate::runner) fn check_now(&self) -> Option<CancelReason> {
        self.looked.set(Some(Instant::now()));
        // The next check may be able to read the file.
        let Ok(size) = std::fs::metadata(&self.file).map(|metadata| metadata.len()) else { return None };
        if size != self.size.get()
            && let Ok(Some(record)) = self.services.store.run(&self.run)
        {
            self.size.set(size);
            self.answer.set(record.ending.cancel_reason);
        }
        self.answer.get()
    }
}
