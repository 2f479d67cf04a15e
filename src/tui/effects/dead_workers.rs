//! Finds the workers that died: nobody holds the lock of their runs for a while, and the runs have not ended.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// Time for which the lock of a working run must be free. A worker that ends lets its lock go just before the screen has
/// its end, and one that is dead when the cockpit starts is replaced at once.
pub(super) const FREE_FOR: Duration = Duration::from_secs(3);

/// Working runs whose locks nobody holds.
#[derive(Debug, Default)]
pub(super) struct DeadWorkers {
    /// First moment in which the lock of a run was seen free.
    free_since: BTreeMap<String, Instant>,
    /// Runs whose dead workers were told.
    told: BTreeSet<String>,
}

impl DeadWorkers {
    /// Takes the working runs whose locks are free at `now`. Returns those whose workers count as dead from now on: each
    /// once, until its lock is held again.
    pub fn update<'a>(&mut self, free: impl Iterator<Item = &'a str>, now: Instant) -> Vec<String> {
        let free: BTreeSet<&str> = free.collect();
        self.free_since.retain(|run, _| free.contains(run.as_str()));
        self.told.retain(|run| free.contains(run.as_str()));
        for run in free {
            self.free_since.entry(run.to_owned()).or_insert(now);
        }
        let dead: Vec<String> = self.list_due(now).map(str::to_owned).collect();
        self.told.extend(dead.iter().cloned());
        dead
    }

    /// Returns true if a worker may count as dead soon.
    pub fn has_suspect(&self) -> bool {
        self.free_since.keys().any(|run| !self.told.contains(run))
    }

    /// Returns true if [`DeadWorkers::update`] would name a run at `now`.
    pub fn is_due(&self, now: Instant) -> bool {
        self.list_due(now).next().is_some()
    }

    fn list_due(&self, now: Instant) -> impl Iterator<Item = &str> {
        let told = &self.told;
        let due = self.free_since.iter().filter(move |(_, since)| now.saturating_duration_since(**since) >= FREE_FOR);
        due.map(|(run, _)| run.as_str()).filter(move |run| !told.contains(*run))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_is_told_dead_once_after_its_lock_was_free_for_a_while() {
        let (mut workers, begin) = (DeadWorkers::default(), Instant::now());
        let steps: [(u64, &[&str], &[&str]); 8] = [
            (0, &["one"], &[]),
            (2, &["one", "two"], &[]),
            // The second one has ended by itself.
            (3, &["one"], &["one"]),
            (20, &["one"], &[]),
            // The run goes on, and its next worker dies, too.
            (21, &[], &[]),
            (22, &["one", "two"], &[]),
            (24, &["one", "two"], &[]),
            (25, &["one", "two"], &["one", "two"]),
        ];
        for (second, free, expected) in steps {
            let now = begin + Duration::from_secs(second);
            let is_due = workers.is_due(now);
            assert_eq!(workers.update(free.iter().copied(), now), expected, "at {second} s");
            assert!(expected.is_empty() || is_due, "at {second} s");
            assert!(!workers.is_due(now), "it was told at {second} s");
            assert_eq!(workers.has_suspect(), matches!(second, 0 | 2 | 22 | 24), "at {second} s");
        }
    }
}
