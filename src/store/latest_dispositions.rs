//! Reads the last dispositions of given findings in a single pass over `triage.ndjson`, and appends the engine's
//! dispositions.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use super::{Store, StoreError, files, lines, parse};
use crate::domain::{Actor, Disposition, FindingId, Time};

/// Last dispositions of given findings.
#[derive(Debug, Clone, Default)]
pub struct LatestDispositions {
    last: HashMap<FindingId, (u64, Disposition)>,
    /// Offset up to which `triage.ndjson` was read.
    end: u64,
}

impl LatestDispositions {
    /// Returns the last disposition of a finding, with the byte offset of its line in `triage.ndjson`.
    pub fn get(&self, id: &FindingId) -> Option<&(u64, Disposition)> {
        self.last.get(id)
    }
}

impl Store {
    /// Reads the last dispositions of the findings with the given ids.
    ///
    /// # Errors
    /// Returns an error when `triage.ndjson` cannot be read.
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

    /// Counts the findings that the user decided at or after `since` and that are still decided so. Reads only the lines
    /// since then.
    ///
    /// # Errors
    /// Returns an error when `triage.ndjson` cannot be read.
    pub fn count_user_decisions(&self, since: Time) -> Result<usize, StoreError> {
        let path = self.triage_path();
        let Some(file) = files::open_read(&path)? else { return Ok(0) };
        let mut latest: HashMap<FindingId, bool> = HashMap::new();
        lines::read_backwards(&file, |line| {
            let Ok(line) = serde_json::from_slice::<Disposition>(line) else { return ControlFlow::Continue(()) };
            // What another member of the team has decided is not the user's work, and has the time of another clock.
            if line.team.is_some() {
                return ControlFlow::Continue(());
            }
            if line.at < since {
                return ControlFlow::Break(());
            }
            let is_decision = line.actor == Actor::User && !line.status.is_undecided();
            latest.entry(line.finding_id).or_insert(is_decision);
            ControlFlow::Continue(())
        })
        .map_err(StoreError::io("read", &path))?;
        Ok(latest.into_values().filter(|is_decision| *is_decision).count())
    }

    /// Appends dispositions, except for findings that received a disposition after `said` was read, because a person
    /// may have decided meanwhile. The check and the append are a single step under the store's lock. Returns the
    /// appended lines.
    ///
    /// # Errors
    /// Returns an error when the store cannot be locked, read or written.
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

    /// Reads the lines from offset `from` about findings that are `wanted`; returns the offset after the last line.
    fn read_dispositions_from(
        &self,
        from: u64,
        wanted: impl Fn(&str) -> bool,
        mut take: impl FnMut(u64, Disposition),
    ) -> Result<u64, StoreError> {
        let path = self.triage_path();
        let Some(file) = files::open_read(&path)? else { return Ok(0) };
        lines::read_forwards(&file, from, |place, line| {
            // Most lines are about other findings and need no parsing.
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
