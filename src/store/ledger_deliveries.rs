//! Records the ledgers delivered to an assistant in `surfaced.ndjson`. The file is append-only.
//!
//! Writes are not synced, because an assistant waits for them; a delivery lost in a power failure is repeated.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use memchr::memmem;
use serde::Deserialize;

use super::extents::TrackedFile;
use super::files::{self, SyncPolicy};
use super::{Store, StoreError, lines};
use crate::domain::{LedgerDelivery, LedgerForm, RunId};

/// Number of bytes at the end of `surfaced.ndjson` that are searched for the deliveries of a session, about 4,000
/// turns. A session that was silent for longer counts as new.
const MAX_SESSION_BYTES: u64 = 1 << 20;

impl Store {
    /// Records a delivery.
    ///
    /// # Errors
    /// Returns an error when the store cannot be locked or written.
    pub fn record_ledger_delivery(&self, handed: &LedgerDelivery) -> Result<(), StoreError> {
        let mut line = serde_json::to_vec(handed)
            .map_err(|source| StoreError::Encode { what: "a ledger that was handed over", source })?;
        line.push(b'\n');
        self.with_lock(|_| self.append_tracked_as(TrackedFile::Deliveries, &line, SyncPolicy::Later))
    }

    /// Returns all deliveries, oldest first. Lines that this version cannot read are ignored.
    ///
    /// # Errors
    /// Returns an error when `surfaced.ndjson` cannot be read.
    pub fn ledger_deliveries(&self) -> Result<Vec<LedgerDelivery>, StoreError> {
        let path = self.deliveries_path();
        let mut handed = Vec::new();
        if let Some(file) = files::open_read(&path)? {
            lines::read_forwards(&file, 0, |_, line| handed.extend(serde_json::from_slice::<LedgerDelivery>(line)))
                .map_err(StoreError::io("read", &path))?;
        }
        Ok(handed)
    }

    /// Returns the length of `surfaced.ndjson` in bytes, which shows whether there are new lines; 0 when the file is
    /// missing.
    pub fn delivered_bytes(&self) -> u64 {
        files::length_at(&self.deliveries_path())
    }

    /// Returns the deliveries that a session of an assistant still has in its context, newest first: those since it
    /// forgot its earlier ones. Empty for an unknown session.
    ///
    /// # Errors
    /// Returns an error when `surfaced.ndjson` cannot be read.
    pub fn session_deliveries(&self, agent: &str, session: &str) -> Result<Vec<LedgerDelivery>, StoreError> {
        let mut found = Vec::new();
        let Ok(name) = serde_json::to_string(session) else { return Ok(found) };
        let finder = memmem::Finder::new(name.as_bytes());
        self.read_deliveries_backwards(MAX_SESSION_BYTES, |line| {
            // The name may also be the name of something else, so this is only a prefilter.
            if finder.find(line).is_none() {
                return ControlFlow::Continue(());
            }
            match serde_json::from_slice::<LedgerDelivery>(line) {
                Ok(delivery) if delivery.agent == agent && delivery.session == session => {
                    if delivery.form == LedgerForm::Forgotten {
                        return ControlFlow::Break(());
                    }
                    found.push(delivery);
                    ControlFlow::Continue(())
                }
                _ => ControlFlow::Continue(()),
            }
        })?;
        Ok(found)
    }

    /// Returns the last `limit` deliveries, newest first.
    ///
    /// # Errors
    /// Returns an error when `surfaced.ndjson` cannot be read.
    pub fn recent_deliveries(&self, limit: usize) -> Result<Vec<LedgerDelivery>, StoreError> {
        let mut found = Vec::new();
        self.read_deliveries_backwards(MAX_SESSION_BYTES, |line| {
            if found.len() >= limit {
                return ControlFlow::Break(());
            }
            found.extend(serde_json::from_slice::<LedgerDelivery>(line));
            ControlFlow::Continue(())
        })?;
        Ok(found)
    }

    /// Returns the ids of the findings that any session was told about, as far as the end of the file tells.
    ///
    /// # Errors
    /// Returns an error when `surfaced.ndjson` cannot be read.
    pub fn told_findings(&self) -> Result<BTreeSet<String>, StoreError> {
        #[derive(Deserialize)]
        struct ToldFindings {
            #[serde(default)]
            findings: Vec<String>,
        }
        let mut told = BTreeSet::new();
        self.read_deliveries_backwards(MAX_SESSION_BYTES, |line| {
            let line = serde_json::from_slice::<ToldFindings>(line);
            told.extend(line.into_iter().flat_map(|line| line.findings));
            ControlFlow::Continue(())
        })?;
        Ok(told)
    }

    /// Calls `take` with the last lines, newest first, in at most `within` bytes.
    fn read_deliveries_backwards(
        &self,
        within: u64,
        mut take: impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let path = self.deliveries_path();
        let Some(file) = files::open_read(&path)? else { return Ok(()) };
        let mut left = within;
        lines::read_backwards(&file, |line| {
            let Some(rest) = left.checked_sub(line.len() as u64 + 1) else { return ControlFlow::Break(()) };
            left = rest;
            take(line)
        })
        .map_err(StoreError::io("read", &path))
    }

    /// Returns true when the result of a run was delivered, as far as the end of the file tells.
    ///
    /// # Errors
    /// Returns an error when `surfaced.ndjson` cannot be read.
    pub fn is_run_delivered(&self, run: &RunId) -> Result<bool, StoreError> {
        let finder = memmem::Finder::new(run.as_str().as_bytes());
        let mut found = false;
        self.read_deliveries_backwards(MAX_SESSION_BYTES, |line| {
            found = finder.find(line).is_some()
                && serde_json::from_slice::<LedgerDelivery>(line).is_ok_and(|it| it.run_id.as_ref() == Some(run));
            if found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::domain::{Time, TokenCountPrecision};
    use crate::store::RepoInfo;

    #[test]
    fn deliveries_are_found_whatever_else_stands_in_the_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let info = RepoInfo { version: 1, key: "k".into(), name: "n".into(), common_dir: "/n".into() };
        let store = Store::open(folder.path(), info).expect("a store");
        let at = |second: i64| Time::from_second(second).expect("a moment");
        assert!(store.recent_deliveries(9).expect("nothing").is_empty());
        let run = |n: u8| format!("ar_01JD3Z8Q6M7S5V2K4T9XWB1C{n:02}").parse::<RunId>().expect("an id");
        for (second, told) in [(10, Some(1)), (30, Some(2)), (20, None), (40, Some(3))] {
            let handed = LedgerDelivery {
                at: at(second),
                worktree: "/n".into(),
                run_id: told.map(run),
                findings: Vec::new(),
                tokens: 100,
                counted: TokenCountPrecision::AtMost,
                left_out: 0,
                agent: String::new(),
                session: String::new(),
                form: LedgerForm::Whole,
                format: None,
                max_tokens: None,
                state: String::new(),
            };
            store.record_ledger_delivery(&handed).expect("recorded");
        }
        let path = store.root().join("surfaced.ndjson");
        let mut file = std::fs::OpenOptions::new().append(true).open(path).expect("there");
        file.write_all(b"{\"at\":\"of a newer revdeck\"}\n{\"torn").expect("written");
        let delivered = [1, 2, 3, 4].map(|n| store.is_run_delivered(&run(n)).expect("readable"));
        assert_eq!(delivered, [true, true, true, false]);
        let newest: Vec<i64> =
            store.recent_deliveries(2).expect("readable").iter().map(|delivery| delivery.at.as_second()).collect();
        assert_eq!(newest, [40, 20]);
        assert_eq!(store.ledger_deliveries().expect("all").len(), 4);
        let report = store.verify().expect("verified");
        assert_eq!(report.problems.len(), 2, "{:?}", report.problems);
    }
}
