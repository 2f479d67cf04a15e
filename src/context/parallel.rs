//! Parallel map over a slice with one thread per core, and a map that runs in a background thread.

use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

/// Most threads; more threads only take memory.
const MAX_THREADS: usize = 8;

/// Applies `find` to each item in parallel and returns the results in order. Each thread gets its own state from
/// `start` and takes items one by one.
///
/// # Panics
/// Propagates a panic of `find` or `start`.
pub fn map_init<S, T: Sync, R: Send>(
    things: &[T],
    start: impl Fn() -> S + Sync,
    find: impl Fn(&mut S, &T) -> R + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let work = || drain_items(things, &next, &start, &find);
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let found = thread::scope(|scope| {
        let others = 1..things.len().min(cores).min(MAX_THREADS);
        // If no thread can be started, the current thread does all work.
        let others: Vec<_> = others.map_while(|_| thread::Builder::new().spawn_scoped(scope, work).ok()).collect();
        let mut found = work();
        for other in others {
            found.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        found
    });
    sort_results(found)
}

/// Processes items until none is left.
fn drain_items<S, T, R>(
    things: &[T],
    next: &AtomicUsize,
    start: &impl Fn() -> S,
    find: &impl Fn(&mut S, &T) -> R,
) -> Vec<(usize, R)> {
    let (mut own, mut found) = (start(), Vec::new());
    while let at = next.fetch_add(1, Ordering::Relaxed)
        && let Some(thing) = things.get(at)
    {
        found.push((at, find(&mut own, thing)));
    }
    found
}

fn sort_results<R>(mut found: Vec<(usize, R)>) -> Vec<R> {
    found.sort_unstable_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, found)| found).collect()
}

/// Map that a background thread has started. When dropped, it stops after the current item.
pub struct BackgroundMap<S, T, R> {
    work: Arc<BackgroundWork<S, T, R>>,
    thread: Option<JoinHandle<Vec<(usize, R)>>>,
}

struct BackgroundWork<S, T, R> {
    items: Vec<T>,
    next: AtomicUsize,
    init: fn() -> S,
    find: fn(&mut S, &T) -> R,
}

impl<S, T, R> BackgroundWork<S, T, R> {
    fn run(&self) -> Vec<(usize, R)> {
        drain_items(&self.items, &self.next, &self.init, &self.find)
    }
}

impl<S: 'static, T: Send + Sync + 'static, R: Send + 'static> BackgroundMap<S, T, R> {
    /// Starts a background thread; `None` if no thread can be started.
    pub fn spawn(name: &str, things: Vec<T>, start: fn() -> S, find: fn(&mut S, &T) -> R) -> Option<Self> {
        let work = Arc::new(BackgroundWork { items: things, next: AtomicUsize::new(0), init: start, find });
        let own = Arc::clone(&work);
        let thread = thread::Builder::new().name(name.to_owned()).spawn(move || own.run()).ok()?;
        Some(Self { work, thread: Some(thread) })
    }

    pub fn items(&self) -> &[T] {
        &self.work.items
    }

    /// Helps with the remaining items and returns all results in order; `None` if the background thread panicked.
    pub fn finish(mut self) -> Option<Vec<R>> {
        let mut found = self.work.run();
        found.extend(self.thread.take()?.join().ok()?);
        Some(sort_results(found))
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
    fn what_is_found_is_in_order() {
        let numbers: Vec<u32> = (0..1_000).collect();
        let found = map_init(&numbers, || 0, |seen, number| (*seen += 1, number * 2).1);
        assert_eq!(found, numbers.iter().map(|number| number * 2).collect::<Vec<_>>());
        assert_eq!(map_init(&[], || (), |(), number: &u32| *number), Vec::<u32>::new());
    }

    #[test]
    #[should_panic(expected = "seven")]
    fn a_panic_is_everybodys() {
        map_init(&[1, 7, 3], || (), |(), number: &u32| assert!(*number != 7, "seven"));
    }

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
