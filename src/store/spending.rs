//! Records the cost of reviews by models across all repositories of a user, as the basis of the daily budget.
//!
//! `<state>/spending.ndjson` has a line per paid answer, which is appended and synced before the next request. It
//! contains tokens and costs but nothing about code. Workers of several repositories write the file; each writer holds
//! its lock.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::extents::{ExtentFile, FileLoss, TailCheck};
use super::files::{self, SyncPolicy};
use super::{StoreError, lines};
use crate::domain::{RunId, Time};

/// A paid answer of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PaidAnswer {
    /// Time when the complete answer was recorded.
    pub at: Time,
    /// Run that paid; for a fix, the run that reported its findings.
    pub run_id: RunId,
    /// Number of the run's turn, or of the fix's request, from 1; 0 for vectors.
    pub turn: u32,
    /// Name of the reviewer that answered, or [`PaidAnswer::EMBEDDINGS`].
    pub reviewer: String,
    /// Sum of input, output and reasoning tokens.
    pub tokens: u64,
    /// Cost in US dollars; 0 when the price is unknown.
    pub cost: f64,
    /// True if the tokens are estimated, because the provider did not report them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}

impl PaidAnswer {
    /// Name in place of a reviewer's for the vectors of [context.embeddings].
    pub const EMBEDDINGS: &str = "context.embeddings";
}

/// Total spending since a given time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SpendingTotal {
    /// Sum of the tokens of all answers.
    pub tokens: u64,
    /// Sum of the costs in US dollars; answers of unknown price count as 0.
    pub cost: f64,
}

/// The log of all paid answers.
#[derive(Debug, Clone)]
pub struct SpendingLog {
    path: PathBuf,
    /// Memory of how far the log has grown.
    extent: ExtentFile,
}

impl SpendingLog {
    /// Opens the log in a state folder.
    pub fn open(state: &Path) -> Self {
        Self { path: state.join("spending.ndjson"), extent: ExtentFile::new(state.join("spending.extent")) }
    }

    /// Appends an answer, synced, under the file's lock.
    ///
    /// # Errors
    /// Returns an error when the file cannot be opened, locked or written.
    pub fn append(&self, paid: &PaidAnswer) -> Result<(), StoreError> {
        let mut line =
            serde_json::to_vec(paid).map_err(|source| StoreError::Encode { what: "a paid answer", source })?;
        line.push(b'\n');
        let file = files::open_append(&self.path)?;
        file.lock().map_err(StoreError::io("lock", &self.path))?;
        let follower = self.extent.follow(&file, &self.path);
        let appended = files::append_to(&file, &self.path, &line, SyncPolicy::Now);
        if let (Ok(is_sealed), Some(mut follower)) = (&appended, follower) {
            follower.note_append(&file, *is_sealed, &line, SyncPolicy::Now);
        }
        let _ = file.unlock();
        appended.map(drop)
    }

    /// Returns the lines that the log has lost.
    pub(super) fn find_loss(&self) -> Option<FileLoss> {
        self.extent.find_loss(&self.path, "spending.ndjson", TailCheck::Yes)
    }

    /// Returns the path of the log.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Forgets a loss and begins anew from what there is.
    pub(super) fn settle_loss(&self) -> Result<(), StoreError> {
        let file = files::open_append(&self.path)?;
        file.lock().map_err(StoreError::io("lock", &self.path))?;
        let measured = self.extent.measure(&self.path);
        let _ = file.unlock();
        measured
    }

    /// Returns the total since `from` over all runs except `without`. Unreadable lines are ignored.
    ///
    /// # Errors
    /// Returns an error when the file cannot be read.
    pub fn total_since(&self, from: Time, without: Option<&RunId>) -> Result<SpendingTotal, StoreError> {
        let mut total = SpendingTotal::default();
        let count = |paid: PaidAnswer| {
            if without != Some(&paid.run_id) {
                total.tokens = total.tokens.saturating_add(paid.tokens);
                total.cost += paid.cost;
            }
        };
        lines::read_since(&self.path, from, |paid| paid.at, count)?;
        Ok(total)
    }

    /// Returns what the vectors of a run have cost since `from`. Unreadable lines are ignored.
    ///
    /// # Errors
    /// Returns an error when the file cannot be read.
    pub fn vectors_of_run(&self, run: &RunId, from: Time) -> Result<SpendingTotal, StoreError> {
        let mut total = SpendingTotal::default();
        let count = |paid: PaidAnswer| {
            if paid.run_id == *run && paid.reviewer == PaidAnswer::EMBEDDINGS {
                total.tokens = total.tokens.saturating_add(paid.tokens);
                total.cost += paid.cost;
            }
        };
        lines::read_since(&self.path, from, |paid| paid.at, count)?;
        Ok(total)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn what_was_paid_since_a_moment_counts_whatever_else_stands_in_the_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let spending = SpendingLog::open(folder.path());
        let at = |text: &str| text.parse::<Time>().expect("a moment");
        let since = at("2026-03-02T00:00:00Z");
        assert_eq!(spending.total_since(since, None).expect("nothing"), SpendingTotal::default());
        let times = ["2026-03-01T23:00:00Z", "2026-03-02T01:00:00Z", "2026-03-01T22:00:00Z", "2026-03-02T02:00:00Z"];
        let runs = ["ar_01JD3Z8Q6M7S5V2K4T9XWB1C0E", "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0F"];
        let runs: [RunId; 2] = runs.map(|run| run.parse().expect("an id"));
        for (turn, time) in (1..).zip(times) {
            // The second run pays the second and the fourth answer.
            let run_id = runs[(turn as usize + 1) % 2].clone();
            let paid = PaidAnswer {
                at: at(time),
                run_id,
                turn,
                reviewer: "m".to_owned(),
                tokens: 100,
                cost: 0.5,
                estimated: false,
            };
            spending.append(&paid).expect("appended");
        }
        std::fs::write(folder.path().join("spending.ndjson"), {
            let mut bytes = std::fs::read(folder.path().join("spending.ndjson")).expect("readable");
            bytes.extend_from_slice(b"{\"torn\":");
            bytes
        })
        .expect("written");
        let total = |without| spending.total_since(since, without).expect("a total");
        assert_eq!(total(None), SpendingTotal { tokens: 200, cost: 1.0 });
        assert_eq!(total(Some(&runs[0])), SpendingTotal { tokens: 200, cost: 1.0 });
        assert_eq!(total(Some(&runs[1])), SpendingTotal::default());
        let vectors = PaidAnswer {
            at: at("2026-03-02T03:00:00Z"),
            run_id: runs[0].clone(),
            turn: 0,
            reviewer: PaidAnswer::EMBEDDINGS.to_owned(),
            tokens: 30,
            cost: 0.25,
            estimated: true,
        };
        spending.append(&vectors).expect("appended");
        let of_run = |run: &RunId| spending.vectors_of_run(run, since).expect("a total");
        assert_eq!(of_run(&runs[0]), SpendingTotal { tokens: 30, cost: 0.25 });
        assert_eq!(of_run(&runs[1]), SpendingTotal::default());
    }

    #[test]
    fn a_log_that_was_cut_is_noticed_until_a_repair() {
        let folder = tempfile::tempdir().expect("a folder");
        let info = crate::store::RepoInfo { version: 1, key: "k".into(), name: "n".into(), common_dir: "/n".into() };
        let store = crate::store::Store::open(folder.path(), info).expect("a store");
        store
            .set_muted(&[crate::domain::Kind::DeadCode], crate::domain::MuteAction::Mute, Time::UNIX_EPOCH)
            .expect("made");
        let spending = SpendingLog::open(folder.path());
        let paid = |turn| PaidAnswer {
            at: Time::UNIX_EPOCH,
            run_id: "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0E".parse().expect("an id"),
            turn,
            reviewer: "m".to_owned(),
            tokens: 1,
            cost: 0.0,
            estimated: false,
        };
        let problems = || -> Vec<String> {
            let report = store.verify().expect("verified");
            report.problems.iter().map(|problem| problem.what.clone()).collect()
        };
        (1..=2).for_each(|turn| spending.append(&paid(turn)).expect("appended"));
        assert_eq!(problems(), [""; 0]);
        let path = folder.path().join("spending.ndjson");
        let text = std::fs::read_to_string(&path).expect("a file");
        std::fs::write(&path, format!("{}\n", text.lines().next().expect("a line"))).expect("written");
        assert_eq!(problems(), ["was cut: 1 of 2 lines are left"]);
        (3..=6).for_each(|turn| spending.append(&paid(turn)).expect("appended"));
        assert_eq!(problems().len(), 1, "the new lines are not those that are gone");
        assert!(store.repair().expect("repaired").is_clean());
        assert_eq!(problems(), [""; 0]);
    }

    /// A partial last line, which another process is writing, is not sealed by the next writer.
    #[test]
    fn whoever_appends_waits_for_whoever_writes() {
        let folder = tempfile::tempdir().expect("a folder");
        let spending = SpendingLog::open(folder.path());
        let paid = PaidAnswer {
            at: Time::UNIX_EPOCH,
            run_id: "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0E".parse().expect("an id"),
            turn: 1,
            reviewer: "m".to_owned(),
            tokens: 1,
            cost: 0.0,
            estimated: false,
        };
        let line = serde_json::to_string(&paid).expect("a line") + "\n";
        let (first, rest) = line.split_at(line.len() / 2);
        let mut file = files::open_append(&folder.path().join("spending.ndjson")).expect("a file");
        let mut written = 0;
        std::thread::scope(|scope| {
            let appends = scope.spawn(|| (0..64).try_for_each(|_| spending.append(&paid)));
            while !appends.is_finished() {
                file.lock().expect("locked");
                file.write_all(first.as_bytes()).expect("written");
                file.write_all(rest.as_bytes()).expect("written");
                file.unlock().expect("unlocked");
                written += 1;
                std::thread::yield_now();
            }
            appends.join().expect("no panic").expect("appended");
        });
        let text = std::fs::read_to_string(folder.path().join("spending.ndjson")).expect("a file");
        assert!(text.lines().all(|here| here == line.trim_end()), "torn lines");
        assert_eq!(text.lines().count(), 64 + written);
    }
}
