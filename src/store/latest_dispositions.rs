//! Reads the last dispositions of given findings in a single pass over `triage.ndjson`, and appends the engine's
//! dispositions.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use super::listed_reports::has_panels;
use super::{Store, StoreError, StoreView, files, lines, parse};
use crate::domain::{Actor, Disposition, FindingId, FindingStatus, Time};

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

    /// Returns the offset up to which `triage.ndjson` was read; 0 if no finding was asked for.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Replaces the last disposition of a finding by one that will be appended. `place` is the byte offset from which it counts.
    pub fn replace(&mut self, place: u64, line: Disposition) {
        self.last.insert(line.finding_id.clone(), (place, line));
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

    /// Returns the findings of a view whose problem a panel lists under another id, each with the finding that stands for it
    /// now; both by their index. Reads `triage.ndjson` once if the view has panels.
    ///
    /// # Errors
    /// Returns an error when `triage.ndjson` cannot be read.
    pub fn list_merged(&self, view: &StoreView) -> Result<HashMap<usize, usize>, StoreError> {
        if !has_panels(view) {
            return Ok(HashMap::new());
        }
        let obsolete = (0..view.finding_count()).filter(|index| view.finding_status(*index) == FindingStatus::Obsolete);
        let index_of: HashMap<&str, usize> = obsolete.map(|index| (view.finding_outline(index).id, index)).collect();
        let ids: HashSet<&str> = index_of.keys().copied().collect();
        let said = self.latest_dispositions(&ids)?;
        let merged = said.last.values().filter_map(|(_, last)| {
            let target = view.finding_index(last.merged_into.as_ref()?.as_str())?;
            Some((*index_of.get(last.finding_id.as_str())?, target))
        });
        let target_of: HashMap<usize, usize> = merged.collect();
        // A later panel may have listed the target under yet another id. A damaged file could lead in a circle.
        let follow = |from: usize| {
            let path = std::iter::successors(Some(from), |at| target_of.get(at).copied());
            path.take(target_of.len() + 1).last().unwrap_or(from)
        };
        Ok(target_of.keys().map(|from| (*from, follow(*from))).collect())
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
