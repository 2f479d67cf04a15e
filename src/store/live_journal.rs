//! Reads the journal of a run that has not ended: its findings so far, its progress, and its last activity.

use std::path::Path;

use serde::Deserialize;

use super::parse::{self, EventLine, FindingLine};
use super::{StoreError, files, lines};
use crate::domain::OmittedFile;

/// Content of a journal up to an offset.
#[derive(Debug, Clone, Default)]
pub(super) struct LiveJournal {
    /// Row of the run.
    pub(super) run: usize,
    pub(super) offset: u64,
    pub(super) findings: Vec<FindingLine<'static>>,
    pub(super) files_total: u32,
    /// Number of planned hunks.
    hunks_planned: u32,
    /// Number of hunks in files that the reviewer left out.
    hunks_left_out: u32,
    pub(super) files_covered: u32,
    pub(super) hunks_covered: u32,
    pub(super) last_ms: i64,
    /// Number of unreadable lines.
    pub(super) unreadable: u32,
}

impl LiveJournal {
    pub(super) fn new(run: usize) -> Self {
        Self { run, ..Self::default() }
    }

    /// Returns true when the journal's length differs from the offset read.
    pub(super) fn is_behind(&self, path: &Path) -> bool {
        std::fs::metadata(path).map_or(0, |metadata| metadata.len()) != self.offset
    }

    /// Reads the appended lines.
    pub(super) fn advance(&mut self, path: &Path) -> Result<(), StoreError> {
        let Some(file) = files::open_read(path)? else { return Ok(()) };
        let fail = |error| StoreError::io("read", path)(error);
        if files::length(&file).map_err(fail)? < self.offset {
            *self = Self::new(self.run);
        }
        let end = lines::read_forwards(&file, self.offset, |_, line| self.apply_line(line)).map_err(fail)?;
        self.offset = end;
        Ok(())
    }

    fn apply_line(&mut self, line: &[u8]) {
        let Ok(event) = serde_json::from_slice::<EventLine<'_>>(line) else {
            self.unreadable += 1;
            return;
        };
        self.last_ms = self.last_ms.max(event.at.as_millisecond());
        match event.event.as_ref() {
            "finding" => match event.finding.and_then(parse::parse_finding) {
                Some(finding) => self.findings.push(finding.into_owned()),
                None => self.unreadable += 1,
            },
            "restated" => {
                if let Some(finding) = event.finding.and_then(parse::parse_finding) {
                    let finding = finding.into_owned();
                    match self.findings.iter_mut().find(|known| known.finding_id == finding.finding_id) {
                        Some(known) => *known = finding,
                        None => self.findings.push(finding),
                    }
                }
            }
            "planned" => (self.files_total, self.hunks_planned) = (event.files, event.hunks),
            "covered" => {
                #[derive(Deserialize)]
                struct CoveredHunks {
                    hunks: Vec<serde::de::IgnoredAny>,
                }
                let hunks = event.file.and_then(|file| serde_json::from_str::<CoveredHunks>(file.get()).ok());
                self.files_covered += 1;
                self.hunks_covered += hunks.map_or(0, |file| file.hunks.len() as u32);
            }
            "left_out" => {
                let file = event.file.and_then(|file| serde_json::from_str::<OmittedFile>(file.get()).ok());
                if file.is_some_and(|file| !file.is_gap()) {
                    self.hunks_left_out = self.hunks_left_out.saturating_add(event.hunks);
                }
            }
            _ => {}
        }
    }

    /// Returns the number of changed hunks to review; `None` before the hunks are counted.
    pub(super) fn hunks_total(&self) -> Option<u32> {
        (self.files_total > 0).then(|| self.hunks_planned.saturating_sub(self.hunks_left_out))
    }
}
