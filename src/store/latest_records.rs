//! Reads the latest records of all runs in a single pass over `runs.ndjson`, for data that the rows of a view do not
//! contain.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::ControlFlow;

use super::{Store, StoreError, files, lines};
use crate::domain::RunRecord;

/// Prefix of a line that this version wrote.
const LINE_PREFIX: &[u8] = b"{\"run_id\":\"";
/// Length of a run id in bytes.
const RUN_ID_BYTES: usize = 29;

impl Store {
    /// Returns the latest records of the runs with these ids, in a single pass from the end of the file; a run without a
    /// readable line is missing.
    ///
    /// # Errors
    /// Returns an error when `runs.ndjson` cannot be read.
    pub fn latest_records_of(&self, wanted: &BTreeSet<&str>) -> Result<BTreeMap<String, RunRecord>, StoreError> {
        let path = self.runs_path();
        let mut found = BTreeMap::new();
        let Some(file) = files::open_read(&path)?.filter(|_| !wanted.is_empty()) else { return Ok(found) };
        lines::read_backwards(&file, |line| {
            let id = line.strip_prefix(LINE_PREFIX).and_then(|rest| rest.get(..RUN_ID_BYTES));
            let is_other = |id: &str| !wanted.contains(id) || found.contains_key(id);
            if id.and_then(|id| std::str::from_utf8(id).ok()).is_some_and(is_other) {
                return ControlFlow::Continue(());
            }
            if let Ok(record) = serde_json::from_slice::<RunRecord>(line)
                && !is_other(record.run_id.as_str())
            {
                found.insert(record.run_id.to_string(), record);
            }
            if found.len() < wanted.len() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })
        .map_err(StoreError::io("read", &path))?;
        Ok(found)
    }

    /// Returns the latest record of every run, newest run first, without the lists of changed paths. Lines that this
    /// version cannot read are ignored.
    ///
    /// # Errors
    /// Returns an error when `runs.ndjson` cannot be read.
    pub fn latest_records(&self) -> Result<Vec<RunRecord>, StoreError> {
        let path = self.runs_path();
        let Some(file) = files::open_read(&path)? else { return Ok(Vec::new()) };
        let mut known: HashSet<String> = HashSet::new();
        let mut records: Vec<RunRecord> = Vec::new();
        lines::read_backwards(&file, |line| {
            // Most lines are earlier lines of a known run and need no parsing.
            let id = line.strip_prefix(LINE_PREFIX).and_then(|rest| rest.get(..RUN_ID_BYTES));
            if id.and_then(|id| std::str::from_utf8(id).ok()).is_some_and(|id| known.contains(id)) {
                return ControlFlow::Continue(());
            }
            if let Ok(mut record) = serde_json::from_slice::<RunRecord>(line)
                && known.insert(record.run_id.as_str().to_owned())
            {
                record.subject.changed_paths = Vec::new();
                records.push(record);
            }
            ControlFlow::Continue(())
        })
        .map_err(StoreError::io("read", &path))?;
        records.sort_unstable_by(|a, b| (b.created_at, &b.run_id).cmp(&(a.created_at, &a.run_id)));
        Ok(records)
    }
}
