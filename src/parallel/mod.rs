//! Work on several threads at once: one pool (rayon) that all rooms share.
//!
//! - The pool starts at its first use. A command with little to do starts no thread.
//! - The pool suits work of up to some seconds, because everything else in the pool waits for it. Longer work has threads
//!   of its own, as in [`crate::index`].

use std::sync::{LazyLock, Mutex, PoisonError};

use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// Maximum number of threads; more threads only take memory.
const MAX_THREADS: usize = 8;
/// Stack size of a thread, in bytes, as that of the main thread. Memory is committed only when used.
const THREAD_STACK_BYTES: usize = 8 << 20;

/// Returns the shared pool, which has one thread per core, at most 8. The first call starts the threads. Returns `None`
/// if the system allows no more threads.
pub fn pool() -> Option<&'static ThreadPool> {
    static POOL: LazyLock<Option<ThreadPool>> = LazyLock::new(|| {
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
        let builder = ThreadPoolBuilder::new().num_threads(threads).stack_size(THREAD_STACK_BYTES);
        let pool = builder.thread_name(|number| format!("pool-{number}")).build();
        pool.inspect_err(|error| tracing::warn!(%error, "all work is done on one thread")).ok()
    });
    POOL.as_ref()
}

/// Applies `convert` to each item in parallel and returns the results in the order of the items.
///
/// # Panics
/// Propagates a panic of `convert`.
pub fn map<T: Sync, R: Send>(items: &[T], convert: impl Fn(&T) -> R + Sync + Send) -> Vec<R> {
    map_init(items, || (), |(), item| convert(item))
}

/// Calls `first` on this thread and `second` on a new one at the same time, and returns both results. Unlike rayon's `join`,
/// it neither starts the pool nor waits for it. Calls one after the other if the system allows no more threads.
///
/// # Panics
/// Propagates a panic of either.
pub fn join<A, B: Send>(first: impl FnOnce() -> A, second: impl Fn() -> B + Sync) -> (A, B) {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("second".to_owned()).spawn_scoped(scope, &second);
        let first = first();
        let second = match thread {
            Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(_) => second(),
        };
        (first, second)
    })
}

/// Applies `convert` to each item in parallel and returns the results in the order of the items. `convert` also gets a
/// value from `init` that no other thread uses meanwhile. `init` is called at most once per thread, not once per item as
/// it may be with rayon's own `map_init`.
///
/// # Panics
/// Propagates a panic of `convert` or `init`.
pub fn map_init<S: Send, T: Sync, R: Send>(
    items: &[T],
    init: impl Fn() -> S + Sync + Send,
    convert: impl Fn(&mut S, &T) -> R + Sync + Send,
) -> Vec<R> {
    let convert = share_states(init, convert);
    match (items.len() > 1).then(pool).flatten() {
        // Items differ much in size, so a thread takes them one by one.
        Some(pool) => pool.install(|| items.par_iter().with_max_len(1).map(convert).collect()),
        None => items.iter().map(convert).collect(),
    }
}

/// Does the same as [`map_init`] with items that it consumes.
///
/// # Panics
/// Propagates a panic of `convert` or `init`.
pub fn map_owned<S: Send, T: Send, R: Send>(
    items: Vec<T>,
    init: impl Fn() -> S + Sync + Send,
    convert: impl Fn(&mut S, T) -> R + Sync + Send,
) -> Vec<R> {
    let convert = share_states(init, convert);
    match (items.len() > 1).then(pool).flatten() {
        Some(pool) => pool.install(|| items.into_par_iter().with_max_len(1).map(convert).collect()),
        None => items.into_iter().map(convert).collect(),
    }
}

/// Returns a function that calls `convert` with a value from `init` that no other thread uses meanwhile.
fn share_states<S: Send, T, R>(
    init: impl Fn() -> S + Sync + Send,
    convert: impl Fn(&mut S, T) -> R + Sync + Send,
) -> impl Fn(T) -> R + Sync + Send {
    let idle: Mutex<Vec<S>> = Mutex::default();
    move |item| {
        let lock = || idle.lock().unwrap_or_else(PoisonError::into_inner);
        let state = lock().pop();
        let mut state = state.unwrap_or_else(&init);
        let result = convert(&mut state, item);
        lock().push(state);
        result
    }
}

/// Applies `convert` to each number below `count` in parallel and returns the results in their order. A thread takes at least
/// `piece` numbers at a time, with a value from `init` for each piece. For cheap steps of equal length: [`map_init`] takes its
/// items one by one and reuses its values.
///
/// # Panics
/// Propagates a panic of `convert` or `init`.
pub fn map_numbers<S, R: Send>(
    count: usize,
    piece: usize,
    init: impl Fn() -> S + Sync + Send,
    convert: impl Fn(&mut S, usize) -> R + Sync + Send,
) -> Vec<R> {
    let Some(pool) = (count > piece).then(pool).flatten() else {
        let mut state = init();
        return (0..count).map(|number| convert(&mut state, number)).collect();
    };
    pool.install(|| (0..count).into_par_iter().with_min_len(piece).map_init(init, convert).collect())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn results_are_in_order() {
        let numbers: Vec<u32> = (0..1_000).collect();
        let found = map_init(&numbers, || 0, |seen, number| (*seen += 1, number * 2).1);
        assert_eq!(found, numbers.iter().map(|number| number * 2).collect::<Vec<_>>());
        assert_eq!(map(&[], |number: &u32| *number), Vec::<u32>::new());
        let found = map_owned(numbers.clone(), || 0, |seen, number| (*seen += 1, number * 2).1);
        assert_eq!(found, numbers.iter().map(|number| number * 2).collect::<Vec<_>>());
    }

    #[test]
    fn numbers_give_results_in_order() {
        for (count, piece) in [(0, 10), (9, 10), (10, 10), (1_000, 7)] {
            let found = map_numbers(count, piece, || 0, |seen, number| (*seen += 1, number * 2).1);
            assert_eq!(found, (0..count).map(|number| number * 2).collect::<Vec<_>>(), "{count} {piece}");
        }
    }

    #[test]
    fn two_results_come_in_their_order() {
        let text = "second".to_owned();
        assert_eq!(join(|| 1, || text.len()), (1, 6));
    }

    #[test]
    #[should_panic(expected = "the second")]
    fn a_panic_of_the_second_is_passed_on() {
        join(|| (), || panic!("the second"));
    }

    #[test]
    #[should_panic(expected = "seven")]
    fn a_panic_reaches_the_caller() {
        map(&[1, 7, 3], |number: &u32| assert!(*number != 7, "seven"));
    }

    #[test]
    fn a_state_is_made_at_most_once_per_thread() {
        let made = AtomicUsize::new(0);
        let begin = || made.fetch_add(1, Ordering::Relaxed);
        map_init(&[0; 1_000], begin, |_, _| std::thread::yield_now());
        assert!((1..=MAX_THREADS).contains(&made.into_inner()));
    }
}
