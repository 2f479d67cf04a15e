//! Locks: one for the store's shared files, one per run as the proof that its worker lives.
//!
//! All are advisory locks on open files, given up by the kernel when their holder dies, and the files are never
//! unlinked (a lock on an unlinked file excludes nobody).
//!
//! Whether a run is live is found out by asking for a *shared* lock and giving it up at once: a worker's exclusive lock
//! refuses it, other questions do not. The one thing in the way is a worker that asks for its exclusive lock in just
//! the microseconds of such a question; it can tell (a shared lock is granted where only questions hold the file) and
//! tries again.
//!
//! A lock is given up by saying so, not by closing the file alone: a process that another thread is starting in just
//! this moment has the file open, too, until it becomes another program, and would keep the lock as long.

use std::cell::RefCell;
use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{RunLock, StartLock, StoreError, files};

thread_local! {
    /// Stores whose lock this thread holds, so that a nested call does not wait for itself for ever.
    static HELD_BY_THREAD: RefCell<Vec<PathBuf>> = const { RefCell::new(Vec::new()) };
}

/// The store's exclusive lock; given up on drop.
#[derive(Debug)]
pub(super) struct StoreLock {
    root: PathBuf,
    file: Option<File>,
}

impl StoreLock {
    /// Waits for the lock. A thread that holds it already gets it again.
    pub(super) fn acquire(root: &Path) -> Result<Self, StoreError> {
        let nested = is_held_by_thread(root);
        let file = if nested {
            None
        } else {
            let path = root.join("store.lock");
            let file = files::open_lock_file(&path)?;
            file.lock().map_err(StoreError::io("lock", &path))?;
            HELD_BY_THREAD.with_borrow_mut(|held| held.push(root.to_owned()));
            Some(file)
        };
        Ok(Self { root: root.to_owned(), file })
    }
}

impl Drop for StoreLock {
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            let _ = file.unlock();
            HELD_BY_THREAD.with_borrow_mut(|held| {
                if let Some(at) = held.iter().rposition(|path| *path == self.root) {
                    held.remove(at);
                }
            });
        }
    }
}

/// Whether this thread holds the store's lock.
pub(super) fn is_held_by_thread(root: &Path) -> bool {
    HELD_BY_THREAD.with_borrow(|held| held.iter().any(|path| path == root))
}

/// How often a worker asks again when only questions are in its way. A question lasts microseconds.
const MAX_LOCK_ATTEMPTS: u32 = 200;

impl Drop for RunLock {
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

/// Takes a run's lock; `None` when a worker holds it.
pub(super) fn lock_run(path: &Path) -> Result<Option<RunLock>, StoreError> {
    Ok(try_lock_file(path)?.map(|file| RunLock { file }))
}

/// An exclusive lock as the open file; `None` when another process holds it.
pub(super) fn try_lock_file(path: &Path) -> Result<Option<File>, StoreError> {
    let file = files::open_lock_file(path)?;
    let fail = StoreError::io("lock", path);
    for attempt in 0..MAX_LOCK_ATTEMPTS {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::Error(error)) => return Err(fail(error)),
            Err(TryLockError::WouldBlock) => {}
        }
        match file.try_lock_shared() {
            // Only questions hold it: they are gone in a moment. Sleeps of different length keep two from staying in step.
            Ok(()) => {
                file.unlock().map_err(StoreError::io("unlock", path))?;
                std::thread::sleep(Duration::from_micros(20 + u64::from(attempt % 7) * 30));
            }
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(fail(error)),
        }
    }
    Ok(None)
}

/// Takes the right to start a worker for a run; `None` when one that was started lives.
pub(super) fn lock_start(path: &Path) -> Result<Option<StartLock>, StoreError> {
    let Some(file) = try_lock_file(path)? else { return Ok(None) };
    let earlier = files::length(&file).map_err(StoreError::io("read the length of", path))?;
    Ok(Some(StartLock { file, path: path.to_owned(), failed_starts: earlier }))
}

/// Whether a worker holds the lock. Works on a store that cannot be written, and makes nothing.
pub(super) fn is_held(path: &Path) -> Result<bool, StoreError> {
    let Some(file) = files::open_read(path)? else { return Ok(false) };
    match file.try_lock_shared() {
        Ok(()) => {
            file.unlock().map_err(StoreError::io("unlock", path))?;
            Ok(false)
        }
        Err(TryLockError::WouldBlock) => Ok(true),
        // A file system without locks: nobody can hold one.
        Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => Ok(false),
        Err(TryLockError::Error(error)) => Err(StoreError::io("ask for the lock", path)(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_free_at_once_although_a_process_on_its_way_has_the_file_open() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("run.lock");
        let lock = lock_run(&path).expect("locks").expect("free");
        // As a fork does it, until the child is another program.
        let _on_its_way = lock.file.try_clone().expect("a second descriptor");
        assert!(is_held(&path).expect("asked"));
        drop(lock);
        assert!(!is_held(&path).expect("asked"));
        assert!(lock_run(&path).expect("locks").is_some());
        let store = StoreLock::acquire(folder.path()).expect("locks");
        let _on_its_way = store.file.as_ref().expect("a file").try_clone().expect("a second descriptor");
        drop(store);
        let other = files::open_lock_file(&folder.path().join("store.lock")).expect("a file");
        assert!(other.try_lock().is_ok());
    }
}
