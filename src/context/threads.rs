//! Work on many things at once, by as many threads as there are cores.

use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

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
    let work = || {
        let (mut own, mut found) = (start(), Vec::new());
        while let at = next.fetch_add(1, Ordering::Relaxed)
            && let Some(thing) = things.get(at)
        {
            found.push((at, find(&mut own, thing)));
        }
        found
    };
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let mut found = thread::scope(|scope| {
        let others = 1..things.len().min(cores).min(MOST);
        // Where no thread is to be had, this one does it all.
        let others: Vec<_> = others.map_while(|_| thread::Builder::new().spawn_scoped(scope, work).ok()).collect();
        let mut found = work();
        for other in others {
            found.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        found
    });
    found.sort_unstable_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, found)| found).collect()
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
}
