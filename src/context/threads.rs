//! Work on many things at once, by as many threads as there are cores; and work that is begun beside other work.

use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

/// More threads than this only take memory.
const MOST: usize = 8;

/// What is found of each thing, in their order. Each thread has a `start` of its own, and takes the next thing when it is
/// done with one.
pub fn each<S, T: Sync, R: Send>(
    things: &[T],
    start: impl Fn() -> S + Sync,
    find: impl Fn(&mut S, &T) -> R + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let work = || work_on(things, &next, &start, &find);
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let found = thread::scope(|scope| {
        let others = 1..things.len().min(cores).min(MOST);
        // Where no thread is to be had, this one does it all.
        let others: Vec<_> = others.map_while(|_| thread::Builder::new().spawn_scoped(scope, work).ok()).collect();
        let mut found = work();
        for other in others {
            found.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        found
    });
    in_order(found)
}

/// Takes the next thing until there is none.
fn work_on<S, T, R>(
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

fn in_order<R>(mut found: Vec<(usize, R)>) -> Vec<R> {
    found.sort_unstable_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, found)| found).collect()
}

/// Work on things that a thread has begun. Dropped, it ends with the thing that the thread is at.
pub struct Begun<S, T, R> {
    work: Arc<Work<S, T, R>>,
    thread: Option<JoinHandle<Vec<(usize, R)>>>,
}

struct Work<S, T, R> {
    things: Vec<T>,
    next: AtomicUsize,
    start: fn() -> S,
    find: fn(&mut S, &T) -> R,
}

impl<S, T, R> Work<S, T, R> {
    fn on(&self) -> Vec<(usize, R)> {
        work_on(&self.things, &self.next, &self.start, &self.find)
    }
}

impl<S: 'static, T: Send + Sync + 'static, R: Send + 'static> Begun<S, T, R> {
    /// `None` where no thread is to be had.
    pub fn new(name: &str, things: Vec<T>, start: fn() -> S, find: fn(&mut S, &T) -> R) -> Option<Self> {
        let work = Arc::new(Work { things, next: AtomicUsize::new(0), start, find });
        let own = Arc::clone(&work);
        let thread = thread::Builder::new().name(name.to_owned()).spawn(move || own.on()).ok()?;
        Some(Self { work, thread: Some(thread) })
    }

    pub fn things(&self) -> &[T] {
        &self.work.things
    }

    /// What is found of each thing, in their order; this thread helps with what is left. `None` where the other one failed.
    pub fn finish(mut self) -> Option<Vec<R>> {
        let mut found = self.work.on();
        found.extend(self.thread.take()?.join().ok()?);
        Some(in_order(found))
    }

    pub fn is_finished(&self) -> bool {
        self.thread.as_ref().is_some_and(JoinHandle::is_finished)
    }
}

impl<S, T, R> Drop for Begun<S, T, R> {
    fn drop(&mut self) {
        self.work.next.store(self.work.things.len(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_found_is_in_order() {
        let numbers: Vec<u32> = (0..1_000).collect();
        let found = each(&numbers, || 0, |seen, number| (*seen += 1, number * 2).1);
        assert_eq!(found, numbers.iter().map(|number| number * 2).collect::<Vec<_>>());
        assert_eq!(each(&[], || (), |(), number: &u32| *number), Vec::<u32>::new());
    }

    #[test]
    #[should_panic(expected = "seven")]
    fn a_panic_is_everybodys() {
        each(&[1, 7, 3], || (), |(), number: &u32| assert!(*number != 7, "seven"));
    }

    #[test]
    fn what_is_begun_is_found_once_whoever_finishes_it() {
        let find = |seen: &mut u32, number: &u32| (*seen += 1, number * 2).1;
        let begun = Begun::new("test", (0..1_000).collect(), || 0, find).expect("a thread");
        assert_eq!(begun.things().len(), 1_000);
        assert_eq!(begun.finish(), Some((0..1_000).map(|number| number * 2).collect()));
        let failing = Begun::new("test", vec![1, 7], || (), |(), number: &u32| assert!(*number != 7, "seven"));
        let failing = failing.expect("a thread");
        while !failing.is_finished() {
            thread::yield_now();
        }
        assert_eq!(failing.finish(), None);
    }
}
