//! Locks the store's shared files, and each run as the proof that its worker lives.
//!
//! All locks are advisory locks on open files. The kernel releases them when their holder dies. The files are never
//! unlinked, because a lock on an unlinked file excludes no other process.
//!
//! To test whether a run is live, a process asks for a *shared* lock and releases it at once: a worker's exclusive lock
//! refuses it, other tests do not. A test can only disturb a worker that asks for its exclusive lock within the same
//! microseconds. The worker detects this case, because it can get a shared lock, and tries again.
//!
//! A lock is released with an explicit unlock, not only by closing the file: a child process that another thread is
//! starting inherits the open file until `exec` and would keep the lock.

use std::cell::RefCell;
use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{RunLock, StartLock, StoreError, files};

thread_local! {
    /// Stores whose lock this thread holds, so that a nested call does not deadlock.
    static HELD_BY_THREAD: RefCell<Vec<PathBuf>> = const { RefCell::new(Vec::new()) };
}

/// The store's exclusive lock, released on drop.
#[derive(Debug)]
pub(super) struct StoreLock {
    root: PathBuf,
    file: Option<File>,
}

impl StoreLock {
    /// Waits for the lock. A thread that already holds the lock gets it again.
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

/// Returns true when this thread holds the store's lock.
pub(super) fn is_held_by_thread(root: &Path) -> bool {
    HELD_BY_THREAD.with_borrow(|held| held.iter().any(|path| path == root))
}

/// Maximum number of attempts while only liveness tests hold the lock; a test lasts microseconds.
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

/// Locks a file exclusively and returns it; `None` when another process holds the lock.
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
            // Only liveness tests hold the lock, for a moment. Sleeps of different lengths keep two processes out of
            // step.
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

/// Takes the right to start a worker for a run; `None` when a started worker lives.
pub(super) fn lock_start(path: &Path) -> Result<Option<StartLock>, StoreError> {
    let Some(file) = try_lock_file(path)? else { return Ok(None) };
    let earlier = files::length(&file).map_err(StoreError::io("read the length of", path))?;
    Ok(Some(StartLock { file, path: path.to_owned(), failed_starts: earlier }))
}

/// Returns true when a worker holds the lock. It also works on a read-only store and creates no file.
pub(super) fn is_held(path: &Path) -> Result<bool, StoreError> {
    let Some(file) = files::open_read(path)? else { return Ok(false) };
    match file.try_lock_shared() {
        Ok(()) => {
            file.unlock().map_err(StoreError::io("unlock", path))?;
            Ok(false)
        }
        Err(TryLockError::WouldBlock) => Ok(true),
        // On a file system without locks, no process can hold a lock.
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
        // As after a fork, before the child calls `exec`.
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
