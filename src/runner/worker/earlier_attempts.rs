//! Takes over what earlier attempts and earlier runs of the same content have journaled.

use std::collections::HashSet;

use crate::domain::{FindingId, RunEvent, RunId};
use crate::runner::RunnerError;
use crate::runner::worker::RunWorker;
use crate::syntax::parse_log::{self, ParseLog};

impl RunWorker<'_> {
    /// Records which files an earlier attempt was parsing when it ran out of memory, and keeps this process from parsing
    /// them. Starts the log for the next attempt; without a log, such an attempt repeats the death of this one.
    pub(super) fn start_parse_log(&mut self) -> Result<Option<ParseLog>, RunnerError> {
        let path = self.services.store.parse_log_path(&self.record.run_id);
        let parsing = ParseLog::read_interrupted(&path);
        if !parsing.is_empty() {
            self.buffer.push(RunEvent::OutOfMemory { parsing });
            self.flush()?;
        }
        for entry in self.services.store.read_journal(&self.record.run_id)? {
            if let RunEvent::OutOfMemory { parsing } = entry.event {
                parse_log::refuse_texts(parsing.into_iter().map(|text| text.content));
            }
        }
        let log = ParseLog::start(&path).inspect_err(|error| tracing::warn!(%error, "no log of what is parsed"));
        Ok(log.ok())
    }

    /// Copies the records of an earlier run of the same content into this run's journal. Continues a copy that was
    /// interrupted.
    pub(super) fn copy_earlier_journal(&mut self) -> Result<(), RunnerError> {
        // A panel merges its members anew.
        let resumed = self.record.links.resumed_from.clone().filter(|_| self.record.links.panel.is_none());
        let Some(from) = resumed else { return Ok(()) };
        let store = &self.services.store;
        let own = store.read_journal(&self.record.run_id)?;
        let mut ids: HashSet<FindingId> = HashSet::new();
        let mut paths: HashSet<String> = HashSet::new();
        let mut carry: HashSet<(String, RunId)> = HashSet::new();
        let mut answers = 0;
        for entry in &own {
            match &entry.event {
                RunEvent::Finding { finding } => drop(ids.insert(finding.finding_id.clone())),
                RunEvent::Covered { file } => drop(paths.insert(file.path.clone())),
                RunEvent::LeftOut { file, .. } => drop(paths.insert(file.path.clone())),
                RunEvent::Carried { carried } => drop(carry.insert((carried.file.path.clone(), carried.from.clone()))),
                RunEvent::TurnAnswered { .. } | RunEvent::Unanswered { .. } => answers += 1,
                _ => {}
            }
        }
        for entry in store.read_journal(&from)? {
            match entry.event {
                RunEvent::Finding { mut finding } if ids.insert(finding.finding_id.clone()) => {
                    self.stamp(&mut finding)?;
                    self.buffer.push(RunEvent::Finding { finding });
                }
                RunEvent::TurnAnswered { .. } | RunEvent::Unanswered { .. } if answers > 0 => answers -= 1,
                event @ RunEvent::Unanswered { .. } => self.buffer.push(event),
                // The copied answers were given to a prompt with this warning.
                event @ RunEvent::Steered { .. } if own.iter().all(|entry| entry.event != event) => {
                    self.buffer.push(event);
                }
                event @ RunEvent::OutOfMemory { .. } if own.iter().all(|entry| entry.event != event) => {
                    self.buffer.push(event);
                }
                // The answer is paid for. The engine extracts its findings again.
                RunEvent::TurnAnswered { turn, response, cost, first_ms, took_ms, .. } => {
                    let taken_over = true;
                    self.buffer.push(RunEvent::TurnAnswered { turn, response, cost, first_ms, took_ms, taken_over });
                }
                RunEvent::Covered { file } if paths.insert(file.path.clone()) => {
                    self.buffer.push(RunEvent::Covered { file });
                }
                // Hunks that were not sent then are not sent now, because the copied answers do not cover them.
                RunEvent::Carried { carried } if carry.insert((carried.file.path.clone(), carried.from.clone())) => {
                    self.buffer.push(RunEvent::Carried { carried });
                }
                _ => {}
            }
        }
        self.flush()
    }
}
