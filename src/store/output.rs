//! Reads and writes a run's full result: its output file or, before that exists, the content of its journal.
//!
//! Invariant: a finding that this version cannot read, such as a newer kind, hides no other finding.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::files::{self, ExistingPolicy};
use super::{Store, StoreError, StoreView};
use crate::domain::{
    Coverage, Disposition, FileCoverage, Finding, FindingId, FindingStatus, InterruptedParse, Opinion, OutputDamage,
    OutputDamageCause, RunEvent, RunId, RunOutput, RunRecord,
};

#[derive(Deserialize)]
struct RawRunOutput<'a> {
    #[serde(default)]
    version: u32,
    #[serde(borrow)]
    run: &'a RawValue,
    #[serde(borrow)]
    findings: Vec<&'a RawValue>,
    #[serde(borrow, default)]
    coverage: Option<&'a RawValue>,
    #[serde(default)]
    notes: Vec<String>,
    #[serde(default)]
    rejected: Vec<crate::domain::RejectedReport>,
    #[serde(borrow, default)]
    held_back: Vec<&'a RawValue>,
    #[serde(default)]
    moved: Vec<crate::domain::MovedFinding>,
    #[serde(default)]
    flip_flops: Vec<crate::domain::FlipFlop>,
    #[serde(default)]
    recognised: Vec<crate::domain::FindingAlias>,
}

/// The id of a finding in an output; the rest is skipped.
#[derive(Deserialize)]
struct FindingIdField<'a> {
    #[serde(borrow)]
    finding_id: Cow<'a, str>,
}

/// Returns the findings that this version can read.
fn parse_findings(parts: &RawRunOutput<'_>) -> Vec<Finding> {
    parts.findings.iter().filter_map(|finding| serde_json::from_str(finding.get()).ok()).collect()
}

/// Findings of a journal in the order of their first report, each as it was reported last.
#[derive(Default)]
struct ReportedFindings {
    findings: Vec<Finding>,
    positions: HashMap<FindingId, usize>,
}

impl ReportedFindings {
    fn record(&mut self, finding: Finding) {
        match self.positions.get(&finding.finding_id) {
            Some(at) => self.findings[*at] = finding,
            None => {
                self.positions.insert(finding.finding_id.clone(), self.findings.len());
                self.findings.push(finding);
            }
        }
    }

    /// Removes a finding that a second opinion called false.
    fn retract(&mut self, id: &FindingId) {
        self.findings.retain(|finding| finding.finding_id != *id);
        self.positions = self.findings.iter().map(|finding| finding.finding_id.clone()).zip(0..).collect();
    }
}

/// Parses an output finding by finding; `None` when the JSON is not an output.
pub(super) fn parse_output(json: &[u8], record: impl FnOnce() -> Option<RunRecord>) -> Option<RunOutput> {
    if let Ok(output) = serde_json::from_slice(json) {
        return Some(output);
    }
    let parts: RawRunOutput<'_> = serde_json::from_slice(json).ok()?;
    let run = serde_json::from_str(parts.run.get()).ok().or_else(record)?;
    let findings = parse_findings(&parts);
    let mut notes = parts.notes;
    if findings.len() < parts.findings.len() {
        notes.push(format!(
            "{} of this run can only be shown by a newer revdeck",
            crate::domain::text::format_count(parts.findings.len() - findings.len(), "finding")
        ));
    }
    let coverage = parts.coverage.and_then(|coverage| serde_json::from_str(coverage.get()).ok()).unwrap_or_default();
    let held_back = parts.held_back.iter().filter_map(|held| serde_json::from_str(held.get()).ok()).collect();
    Some(RunOutput {
        version: parts.version,
        run,
        findings,
        coverage,
        notes,
        rejected: parts.rejected,
        held_back,
        held_back_places: None,
        moved: parts.moved,
        flip_flops: parts.flip_flops,
        recognised: parts.recognised,
        damage: None,
    })
}

impl Store {
    /// Writes `outputs/<run_id>.json` atomically. An existing output is kept.
    ///
    /// # Errors
    /// Returns an error when the output cannot be written.
    pub fn write_output(&self, output: &RunOutput) -> Result<(), StoreError> {
        self.prepare_for_write()?;
        let path = self.output_path(output.run.run_id.as_str());
        if path.exists() {
            return Ok(());
        }
        let json =
            serde_json::to_vec(output).map_err(|source| StoreError::Encode { what: "a run's output", source })?;
        files::write_atomically(&path, &json, ExistingPolicy::Keep)
    }

    /// Returns the damage of a run's stored result; `None` if it can be read or need not be there.
    ///
    /// # Errors
    /// Returns an error when the store cannot be read.
    pub fn output_damage(&self, id: &RunId) -> Result<Option<OutputDamage>, StoreError> {
        let is_readable = |bytes: Vec<u8>| super::parse::parse_output_lines(&bytes).is_some();
        match files::read(&self.output_path(id.as_str()))?.is_some_and(is_readable) {
            true => Ok(None),
            false => Ok(self.output(id)?.and_then(|output| output.damage)),
        }
    }

    /// Returns the damage because of which the result of a run was read from its journal. Only a run with findings needs
    /// a result at its end.
    fn find_damage(&self, run: &RunRecord, cause: OutputDamageCause, replayed: usize) -> Option<OutputDamage> {
        let reported = run.outcome.finding_counts.total();
        let is_whole = !run.status.is_terminal() || (cause == OutputDamageCause::Missing && reported == 0);
        let lost = reported.saturating_sub(u32::try_from(replayed).unwrap_or(u32::MAX));
        (!is_whole).then(|| OutputDamage { path: self.output_path(run.run_id.as_str()), cause, lost })
    }

    /// Returns the result of a run from its output or, if there is none, from its journal; the damage and a note say if
    /// there should be one. `None` when there is no such run.
    ///
    /// # Errors
    /// Returns an error when the store cannot be read.
    pub fn output(&self, id: &RunId) -> Result<Option<RunOutput>, StoreError> {
        self.read_output(id, || self.run(id))
    }

    /// Returns the result of a run like [`Store::output`], with this record, so that the file of runs is not read. For who looks
    /// at many runs.
    ///
    /// # Errors
    /// Returns an error when the store cannot be read.
    pub fn output_of(&self, record: &RunRecord) -> Result<Option<RunOutput>, StoreError> {
        self.read_output(&record.run_id, || Ok(Some(record.clone())))
    }

    fn read_output(
        &self,
        id: &RunId,
        record: impl Fn() -> Result<Option<RunRecord>, StoreError>,
    ) -> Result<Option<RunOutput>, StoreError> {
        let stored = files::read(&self.output_path(id.as_str()))?;
        let cause = if stored.is_some() { OutputDamageCause::Unreadable } else { OutputDamageCause::Missing };
        if let Some(bytes) = stored
            && let Some(mut output) = parse_output(&bytes, || record().ok().flatten())
        {
            // The record can change after the output was written.
            if let Ok(Some(record)) = record() {
                output.run = record;
            }
            return Ok(Some(output));
        }
        let Some(run) = record()? else { return Ok(None) };
        let mut output = RunOutput::new(run);
        let mut reported = ReportedFindings::default();
        let mut coverage = Coverage::default();
        let mut carried = Vec::new();
        for entry in self.read_journal(id)? {
            match entry.event {
                RunEvent::Finding { finding } | RunEvent::Restated { finding, .. } => reported.record(*finding),
                RunEvent::Planned { files, hunks, left_out } => {
                    (coverage.files_total, coverage.hunks_total, coverage.left_out) = (files, hunks, left_out);
                }
                RunEvent::Covered { file } => {
                    coverage.files_covered += 1;
                    coverage.hunks_covered += file.hunks.len() as u32;
                    coverage.lines_covered =
                        coverage.lines_covered.saturating_add(FileCoverage::count_changed_lines([&file]));
                    coverage.files.push(file);
                }
                RunEvent::Carried { carried: file } => carried.push(*file),
                RunEvent::LeftOut { file, hunks } => coverage.omit_file(file, hunks),
                RunEvent::OutOfMemory { parsing } => {
                    output.notes.extend(parsing.iter().filter_map(InterruptedParse::note));
                }
                RunEvent::Note { text } => output.notes.push(text),
                RunEvent::Failed { summary, .. } => output.notes.push(summary),
                RunEvent::Judged { finding_id, opinion: Opinion::False, .. } => reported.retract(&finding_id),
                RunEvent::Rejected { rejected, .. } => output.rejected.push(*rejected),
                RunEvent::Judged { .. }
                | RunEvent::TurnAsked { .. }
                | RunEvent::TurnAnswered { .. }
                | RunEvent::Unanswered { .. }
                | RunEvent::TookOver { .. }
                | RunEvent::Surrounded { .. }
                | RunEvent::Steered { .. }
                | RunEvent::Waiting { .. }
                | RunEvent::ToolAnswered { .. }
                | RunEvent::Repeated { .. }
                | RunEvent::CodeSmellsAccumulated { .. }
                | RunEvent::SlidingWindowApplied { .. }
                | RunEvent::FinalCodeSmellsSummary { .. }
                | RunEvent::Paused
                | RunEvent::Resumed
                | RunEvent::Started { .. }
                | RunEvent::Phase { .. }
                | RunEvent::CancelAsked { .. }
                | RunEvent::BudgetReached { .. }
                | RunEvent::Finished { .. }
                | RunEvent::Unknown => {}
            }
        }
        coverage.set_carried(&carried);
        if coverage.files_total > 0 || coverage.hunks_carried > 0 || coverage.files_covered > 0 {
            output.coverage = coverage;
        }
        output.findings = reported.findings;
        output.damage = self.find_damage(&output.run, cause, output.findings.len());
        output.notes.extend(output.damage.as_ref().map(OutputDamage::describe));
        Ok(Some(output))
    }

    /// Returns the findings of a run as it reported them: those of [`Store::output`], without looking for the run's
    /// record, which takes longer the more runs there are.
    ///
    /// # Errors
    /// Returns an error when the output or the journal cannot be read.
    pub fn reported_findings(&self, id: &RunId) -> Result<Vec<Finding>, StoreError> {
        if let Some(bytes) = files::read(&self.output_path(id.as_str()))?
            && let Ok(parts) = serde_json::from_slice::<RawRunOutput<'_>>(&bytes)
        {
            return Ok(parse_findings(&parts));
        }
        let mut reported = ReportedFindings::default();
        for entry in self.read_journal(id)? {
            match entry.event {
                RunEvent::Finding { finding } | RunEvent::Restated { finding, .. } => reported.record(*finding),
                RunEvent::Judged { finding_id, opinion: Opinion::False, .. } => reported.retract(&finding_id),
                _ => {}
            }
        }
        Ok(reported.findings)
    }

    /// Returns the coverage of a run that has ended, including carried hunks; `None` when the run has no output.
    ///
    /// # Errors
    /// Returns an error when the output cannot be read.
    pub fn coverage(&self, id: &RunId) -> Result<Option<Coverage>, StoreError> {
        #[derive(Deserialize)]
        struct CoverageField {
            #[serde(default)]
            coverage: Coverage,
        }
        let Some(bytes) = files::read(&self.output_path(id.as_str()))? else { return Ok(None) };
        Ok(serde_json::from_slice::<CoverageField>(&bytes).ok().map(|output| output.coverage))
    }

    /// Returns a finding with its current status, as its last run reported it. The call loads the whole view; with an
    /// existing view, [`Store::finding_in`] reads only a small file.
    ///
    /// # Errors
    /// Returns an error when the store cannot be read.
    pub fn finding(&self, id: &FindingId) -> Result<Option<Finding>, StoreError> {
        let view = self.view()?;
        self.finding_in(&view, id)
    }

    /// Does the same as [`Store::finding`] through the row of a view.
    ///
    /// # Errors
    /// Returns an error when the run's output or journal cannot be read.
    pub fn finding_in(&self, view: &StoreView, id: &FindingId) -> Result<Option<Finding>, StoreError> {
        let Some(index) = view.finding_index(id.as_str()) else { return Ok(None) };
        let row = view.finding(index);
        let (Ok(first), Ok(last)) = (row.first_run.parse::<RunId>(), row.last_run.parse::<RunId>()) else {
            return Ok(None);
        };
        let Some(mut finding) = self.finding_in_run(&last, id)? else { return Ok(None) };
        finding.status = row.status;
        finding.first_run_id = first;
        finding.last_run_id = last;
        view.update_finding(index, &mut finding);
        Ok(Some(finding))
    }

    /// Returns a finding as a run reported it, without later changes.
    ///
    /// # Errors
    /// Returns an error when the run's output or journal cannot be read.
    pub fn finding_in_run(&self, run: &RunId, id: &FindingId) -> Result<Option<Finding>, StoreError> {
        Ok(self.findings_in_run(run, &BTreeSet::from([id.to_string()]))?.into_iter().next())
    }

    /// Returns the findings with these ids as a run reported them, without later changes. Reads the run once, and parses
    /// only these findings whole.
    ///
    /// # Errors
    /// Returns an error when the run's output or journal cannot be read.
    pub fn findings_in_run(&self, run: &RunId, ids: &BTreeSet<String>) -> Result<Vec<Finding>, StoreError> {
        if let Some(bytes) = files::read(&self.output_path(run.as_str()))?
            && let Ok(parts) = serde_json::from_slice::<RawRunOutput<'_>>(&bytes)
        {
            let is_wanted = |json: &&&RawValue| {
                serde_json::from_str::<FindingIdField<'_>>(json.get())
                    .is_ok_and(|finding| ids.contains(finding.finding_id.as_ref()))
            };
            let wanted = parts.findings.iter().filter(is_wanted);
            return Ok(wanted.filter_map(|json| serde_json::from_str(json.get()).ok()).collect());
        }
        let mut reported = ReportedFindings::default();
        for entry in self.read_journal(run)? {
            if let RunEvent::Finding { finding } | RunEvent::Restated { finding, .. } = entry.event
                && ids.contains(finding.finding_id.as_str())
            {
                reported.record(*finding);
            }
        }
        Ok(reported.findings)
    }

    /// Returns all dispositions of a finding, oldest first.
    ///
    /// # Errors
    /// Returns an error when `triage.ndjson` cannot be read.
    pub fn dispositions(&self, id: &FindingId) -> Result<Vec<Disposition>, StoreError> {
        let finder = memchr::memmem::Finder::new(id.as_str().as_bytes());
        let mut said = self.read_triage(|line| finder.find(line).is_some())?;
        said.retain(|line| line.finding_id == *id);
        Ok(said)
    }

    /// Returns the length of `triage.ndjson` in bytes; later dispositions start at or after this offset.
    ///
    /// # Errors
    /// Returns an error when the file cannot be read.
    pub fn triage_bytes(&self) -> Result<u64, StoreError> {
        let path = self.triage_path();
        match files::open_read(&path)? {
            Some(file) => files::length(&file).map_err(StoreError::io("read the length of", &path)),
            None => Ok(0),
        }
    }

    /// Returns every readable line of `triage.ndjson`, oldest first, for [`super::triage::find_next_step`].
    ///
    /// # Errors
    /// Returns an error when the file cannot be read.
    pub fn triage_log(&self) -> Result<Vec<Disposition>, StoreError> {
        self.read_triage(|_| true)
    }

    fn read_triage(&self, wanted: impl Fn(&[u8]) -> bool) -> Result<Vec<Disposition>, StoreError> {
        Ok(self.read_triage_with_offsets(wanted)?.into_iter().map(|(_, line)| line).collect())
    }

    fn read_triage_with_offsets(&self, wanted: impl Fn(&[u8]) -> bool) -> Result<Vec<(u64, Disposition)>, StoreError> {
        let path = self.triage_path();
        let mut all = Vec::new();
        if let Some(file) = files::open_read(&path)? {
            super::lines::read_forwards(&file, 0, |place, line| {
                if wanted(line)
                    && let Ok(disposition) = serde_json::from_slice(line)
                {
                    all.push((place, disposition));
                }
            })
            .map_err(StoreError::io("read", &path))?;
        }
        Ok(all)
    }

    /// Returns the current status of a finding: the status of its last disposition, or open when there is none.
    ///
    /// # Errors
    /// Returns an error when `triage.ndjson` cannot be read.
    pub fn status(&self, id: &FindingId) -> Result<FindingStatus, StoreError> {
        Ok(self.dispositions(id)?.last().map_or(FindingStatus::Open, |line| line.status))
    }
}
