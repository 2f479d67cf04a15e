//! A map over items that runs in a background thread.
//!
//! The thread is not one of the shared pool ([`crate::parallel`]): the caller uses the pool meanwhile, and would wait for
//! results that may never be needed.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

/// Map that a background thread has started. When dropped, it stops after the current item.
pub struct BackgroundMap<S, T, R> {
    work: Arc<BackgroundWork<S, T, R>>,
    thread: Option<JoinHandle<Vec<(usize, R)>>>,
}

struct BackgroundWork<S, T, R> {
    items: Vec<T>,
    next: AtomicUsize,
    init: fn() -> S,
    convert: fn(&mut S, &T) -> R,
}

impl<S, T, R> BackgroundWork<S, T, R> {
    /// Converts items until none is left. Returns the results with the positions of their items.
    fn run(&self) -> Vec<(usize, R)> {
        let (mut state, mut results) = ((self.init)(), Vec::new());
        while let at = self.next.fetch_add(1, Ordering::Relaxed)
            && let Some(item) = self.items.get(at)
        {
            results.push((at, (self.convert)(&mut state, item)));
        }
        results
    }
}

impl<S: 'static, T: Send + Sync + 'static, R: Send + 'static> BackgroundMap<S, T, R> {
    /// Starts a background thread; `None` if no thread can be started.
    pub fn spawn(name: &str, items: Vec<T>, init: fn() -> S, convert: fn(&mut S, &T) -> R) -> Option<Self> {
        let work = Arc::new(BackgroundWork { items, next: AtomicUsize::new(0), init, convert });
        let own = Arc::clone(&work);
        let thread = thread::Builder::new().name(name.to_owned()).spawn(move || own.run()).ok()?;
        Some(Self { work, thread: Some(thread) })
    }

    pub fn items(&self) -> &[T] {
        &self.work.items
    }

    /// Helps with the remaining items and returns all results in order; `None` if the background thread panicked.
    pub fn finish(mut self) -> Option<Vec<R>> {
        let mut results = self.work.run();
        results.extend(self.thread.take()?.join().ok()?);
        results.sort_unstable_by_key(|(at, _)| *at);
        Some(results.into_iter().map(|(_, result)| result).collect())
    }

    /// Returns true if the background thread has ended.
    pub fn is_finished(&self) -> bool {
        self.thread.as_ref().is_some_and(JoinHandle::is_finished)
    }
}

impl<S, T, R> Drop for BackgroundMap<S, T, R> {
    fn drop(&mut self) {
        self.work.next.store(self.work.items.len(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_begun_is_found_once_whoever_finishes_it() {
        let find = |seen: &mut u32, number: &u32| (*seen += 1, number * 2).1;
        let begun = BackgroundMap::spawn("test", (0..1_000).collect(), || 0, find).expect("a thread");
        assert_eq!(begun.items().len(), 1_000);
        assert_eq!(begun.finish(), Some((0..1_000).map(|number| number * 2).collect()));
        let failing =
            BackgroundMap::spawn("test", vec![1, 7], || (), |(), number: &u32| assert!(*number != 7, "seven"));
        let failing = failing.expect("a thread");
        while !failing.is_finished() {
            thread::yield_now();
        }
        assert_eq!(failing.finish(), None);
    }
}
