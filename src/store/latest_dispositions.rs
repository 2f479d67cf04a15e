//! What was said about some findings last, in one pass over `triage.ndjson`, and what the engine says next.

use std::collections::{HashMap, HashSet};

use super::{Store, StoreError, files, lines, parse};
use crate::domain::{Disposition, FindingId};

/// What was last said about some findings.
#[derive(Debug, Clone, Default)]
pub struct LatestDispositions {
    last: HashMap<FindingId, (u64, Disposition)>,
    /// Bytes read.
    end: u64,
}

impl LatestDispositions {
    /// The last disposition of a finding, and where in `triage.ndjson` its line begins.
    pub fn get(&self, id: &FindingId) -> Option<&(u64, Disposition)> {
        self.last.get(id)
    }
}

impl Store {
    /// What was last said about these findings, given by their ids.
    pub fn latest_dispositions(&self, about: &HashSet<&str>) -> Result<LatestDispositions, StoreError> {
        let mut said = LatestDispositions::default();
        if !about.is_empty() {
            said.end = self.read_dispositions_from(
                0,
                |id| about.contains(id),
                |place, line| {
                    said.last.insert(line.finding_id.clone(), (place, line));
                },
            )?;
        }
        Ok(said)
    }

    /// Appends dispositions, but none of a finding about which something was said after `said` was read: a person may
    /// have decided meanwhile. One step under the store's lock. Returns what was appended.
    pub fn append_unless_newer(
        &self,
        mut dispositions: Vec<Disposition>,
        said: &LatestDispositions,
    ) -> Result<Vec<Disposition>, StoreError> {
        if dispositions.is_empty() {
            return Ok(dispositions);
        }
        self.with_lock(|_| {
            let mut since: HashSet<FindingId> = HashSet::new();
            self.read_dispositions_from(
                said.end,
                |_| true,
                |_, line| {
                    since.insert(line.finding_id);
                },
            )?;
            dispositions.retain(|line| !since.contains(&line.finding_id));
            self.append_dispositions(&dispositions)?;
            Ok(dispositions)
        })
    }

    /// Reads the lines from `from` on about findings that are `wanted`; the place behind the last one.
    fn read_dispositions_from(
        &self,
        from: u64,
        wanted: impl Fn(&str) -> bool,
        mut take: impl FnMut(u64, Disposition),
    ) -> Result<u64, StoreError> {
        let path = self.triage_path();
        let Some(file) = files::open_read(&path)? else { return Ok(0) };
        lines::read_forwards(&file, from, |place, line| {
            // Most lines are about others, and not worth parsing.
            if parse::peek_finding_id(line).is_none_or(&wanted)
                && let Ok(disposition) = serde_json::from_slice::<Disposition>(line)
                && wanted(disposition.finding_id.as_str())
            {
                take(place, disposition);
            }
        })
        .map_err(StoreError::io("read", &path))
    }
}
