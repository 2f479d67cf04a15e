//! The latest records of all runs, in one pass over `runs.ndjson`: for figures that no row of a view has.

use std::collections::HashSet;
use std::ops::ControlFlow;

use super::{Store, StoreError, files, lines};
use crate::domain::RunRecord;

/// How a line begins that this version wrote, and how long the id in it is.
const LINE_PREFIX: &[u8] = b"{\"run_id\":\"";
const RUN_ID_BYTES: usize = 29;

impl Store {
    /// The latest record of every run, the newest run first; their lists of paths are left out. Lines that this version
    /// cannot read count as if they were not there.
    pub fn latest_records(&self) -> Result<Vec<RunRecord>, StoreError> {
        let path = self.runs_path();
        let Some(file) = files::open_read(&path)? else { return Ok(Vec::new()) };
        let mut known: HashSet<String> = HashSet::new();
        let mut records: Vec<RunRecord> = Vec::new();
        lines::read_backwards(&file, |line| {
            // Most lines are earlier ones of a run that is known already, and not worth parsing.
            let id = line.strip_prefix(LINE_PREFIX).and_then(|rest| rest.get(..RUN_ID_BYTES));
            if id.and_then(|id| std::str::from_utf8(id).ok()).is_some_and(|id| known.contains(id)) {
                return ControlFlow::Continue(());
            }
            if let Ok(mut record) = serde_json::from_slice::<RunRecord>(line)
                && known.insert(record.run_id.as_str().to_owned())
            {
                record.changed_paths = Vec::new();
                records.push(record);
            }
            ControlFlow::Continue(())
        })
        .map_err(StoreError::io("read", &path))?;
        records.sort_unstable_by(|a, b| (b.created_at, &b.run_id).cmp(&(a.created_at, &a.run_id)));
        Ok(records)
    }
}
