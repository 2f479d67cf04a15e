//! What was said about some findings last, in one pass over `triage.ndjson`, and what the engine says next.

use std::collections::{HashMap, HashSet};

use super::{Store, StoreError, files, lines, parse};
use crate::domain::{Disposition, FindingId};

/// What was last said about some findings.
#[derive(Debug, Clone, Default)]
pub struct LastSaid {
    last: HashMap<FindingId, (u64, Disposition)>,
    /// Bytes read.
    end: u64,
}

impl LastSaid {
    /// The last disposition of a finding, and where in `triage.ndjson` its line begins.
    pub fn about(&self, id: &FindingId) -> Option<&(u64, Disposition)> {
        self.last.get(id)
    }
}

impl Store {
    /// What was last said about these findings, given by their ids.
    pub fn last_said(&self, about: &HashSet<&str>) -> Result<LastSaid, StoreError> {
        let mut said = LastSaid::default();
        if !about.is_empty() {
            said.end = self.said_since(
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
    pub fn append_unless_said(
        &self,
        mut dispositions: Vec<Disposition>,
        said: &LastSaid,
    ) -> Result<Vec<Disposition>, StoreError> {
        if dispositions.is_empty() {
            return Ok(dispositions);
        }
        self.locked(|_| {
            let mut since: HashSet<FindingId> = HashSet::new();
            self.said_since(
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
    fn said_since(
        &self,
        from: u64,
        wanted: impl Fn(&str) -> bool,
        mut take: impl FnMut(u64, Disposition),
    ) -> Result<u64, StoreError> {
        let path = self.triage_path();
        let Some(file) = files::open_read(&path)? else { return Ok(0) };
        lines::forwards(&file, from, |place, line| {
            // Most lines are about others, and not worth parsing.
            if parse::id_in_front(line).is_none_or(&wanted)
                && let Ok(disposition) = serde_json::from_slice::<Disposition>(line)
                && wanted(disposition.finding_id.as_str())
            {
                take(place, disposition);
            }
        })
        .map_err(StoreError::io("read", &path))
    }
}
