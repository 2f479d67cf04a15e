//! Tells the log of this store from a log that another store has written under the same name.
//!
//! `team/own.ndjson` holds all that a store has made. So a record in the own log that is not there was made by another clone or
//! machine with this name, or by this one before its store was lost.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::ops::ControlFlow;

use super::{SyncError, TeamSync};
use crate::domain::TeamRecord;
use crate::store::{Store, StoreError, TeamMembership};
use crate::team::segment::parse_segment;
use crate::team::{LogVersion, TeamBackend};

/// Records that this store has made.
#[derive(Default)]
pub(super) struct OwnRecords {
    lines: HashSet<String>,
    /// Results of [`identify`] for them; computed for the first line that is not among `lines`.
    identities: OnceCell<HashSet<String>>,
}

impl OwnRecords {
    pub(super) fn load(store: &Store) -> Result<Self, StoreError> {
        Ok(Self { lines: store.own_team_lines(0)?.0.into_iter().collect(), identities: OnceCell::new() })
    }

    /// Returns true if this store has made exactly this line.
    pub(super) fn has_line(&self, line: &str) -> bool {
        self.lines.contains(line)
    }

    /// Returns true if this store has made the record of a line, even in another form: settings change what of it is sent.
    pub(super) fn has_made(&self, record: &TeamRecord, line: &str) -> bool {
        let identities = || -> HashSet<String> {
            let records = self.lines.iter().filter_map(|line| serde_json::from_str::<TeamRecord>(line).ok());
            records.map(|record| identify(&record)).collect()
        };
        self.has_line(line) || self.identities.get_or_init(identities).contains(&identify(record))
    }
}

/// Identifies a record by fields that no setting changes when it is sent.
fn identify(record: &TeamRecord) -> String {
    match record {
        TeamRecord::Decision(decision) => {
            let clock = decision.id.clock;
            format!("{} {} {}", clock.ms, clock.count, decision.finding_id)
        }
        TeamRecord::Review(review) => review.run.run_id.to_string(),
        TeamRecord::Patterns(patterns) => patterns.export.to_string(),
    }
}

impl TeamSync<'_> {
    /// Returns true if another store has written the log of a machine at its place. Jobs of continuous integration share their log.
    ///
    /// # Errors
    ///
    /// If the place cannot be reached, or the store cannot be read.
    pub fn is_name_taken(&self, team: &TeamMembership) -> Result<bool, SyncError> {
        if team.machine.is_ci() {
            return Ok(false);
        }
        let (backend, list) = self.open_place(team, None)?.finish(&team.log)?;
        self.is_log_of_another(&*backend, team, &list.logs)
    }

    /// Does the same as [`TeamSync::is_name_taken`] with the logs at the place. A log without a single record of this store is
    /// another's.
    pub(super) fn is_log_of_another(
        &self,
        backend: &dyn TeamBackend,
        team: &TeamMembership,
        logs: &[LogVersion],
    ) -> Result<bool, SyncError> {
        let present = logs.iter().find(|log| log.name == team.log);
        let Some(log) = present.filter(|_| !team.machine.is_ci()) else { return Ok(false) };
        let own = OwnRecords::load(&self.services.store)?;
        if own.lines.is_empty() {
            return Ok(true);
        }
        backend.fetch_logs(std::slice::from_ref(log))?;
        let (mut has_own, mut has_other) = (false, false);
        backend.read_segments(log, None, &mut |segments| {
            for bytes in segments.into_iter().filter_map(|segment| segment.content.ok()) {
                // Damaged segments are set aside where they are received.
                let Ok(parsed) = parse_segment(&bytes, &log.name) else { continue };
                for (record, line) in &parsed.records {
                    match own.has_made(record, line) {
                        true => has_own = true,
                        false => has_other = true,
                    }
                }
            }
            if has_other { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        Ok(has_other || !has_own)
    }
}
