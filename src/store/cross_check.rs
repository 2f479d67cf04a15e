//! Verifies and repairs data across files: every run with a trace has a record, and every completed run has its output.
//!
//! Invariants:
//! - Records are only added, at the position given by their id, which contains the creation time.
//! - A record rebuilt from traces says so. It has the status lost, never completed, unless the run's own output says
//!   otherwise.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::json;

use super::check::{CheckMode, StoreCheckReport, StoreProblem};
use super::extents::TrackedFile;
use super::lock::StoreLock;
use super::{Store, StoreError, check, files, output};
use crate::domain::{
    Coverage, ErrorClass, Finding, FindingCounts, FindingId, RunEvent, RunId, RunRecord, RunStatus, Time,
};

/// Kind of file that a run left, best source for a record first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum RunTrace {
    Output,
    Journal,
    Lock,
}

impl RunTrace {
    const ALL: [Self; 3] = [Self::Output, Self::Journal, Self::Lock];

    fn folder_and_extension(self) -> (&'static str, &'static str) {
        match self {
            Self::Output => ("outputs", "json"),
            Self::Journal => ("events", "jsonl"),
            Self::Lock => ("locks", "lock"),
        }
    }

    fn repair_text(self) -> &'static str {
        match self {
            Self::Output => "the record that it holds is added to runs.ndjson",
            Self::Journal => "a record is made from it and added to runs.ndjson; the run counts as lost",
            Self::Lock => "a record without any content is added to runs.ndjson; the run counts as lost",
        }
    }
}

/// The fields of a line in `runs.ndjson` that every version writes.
#[derive(Deserialize)]
struct RunStatusLine {
    run_id: RunId,
    #[serde(default)]
    status: String,
}

impl Store {
    /// Compares the run ids in `runs.ndjson`, `events`, `outputs` and `locks`.
    pub(super) fn check_runs(&self, mode: CheckMode, report: &mut StoreCheckReport) -> Result<(), StoreError> {
        let _lock = if mode == CheckMode::Repair { Some(StoreLock::acquire(&self.root)?) } else { None };
        // The traces are read first. A run's record exists before its first trace, so a run that starts now is not
        // reported.
        let traces = self.find_traces()?;
        let bytes = files::read(&self.runs_path())?.unwrap_or_default();
        let mut known: BTreeMap<RunId, String> = BTreeMap::new();
        for line in bytes.split(|byte| *byte == b'\n') {
            if let Ok(line) = serde_json::from_slice::<RunStatusLine>(line) {
                known.insert(line.run_id, line.status);
            }
        }
        let mut rebuilt = Vec::new();
        for (id, (trace, path)) in &traces {
            if known.contains_key(id) {
                continue;
            }
            let mut problem =
                StoreProblem::new(path, "is of a run that runs.ndjson does not have", trace.repair_text());
            if self.is_live(id)? {
                problem.repair = "none while its worker is at it".to_owned();
            } else if mode == CheckMode::Repair {
                rebuilt.push(self.rebuild_record(id, *trace, path)?);
                problem.repaired = true;
            }
            report.problems.push(problem);
        }
        if !rebuilt.is_empty() {
            self.rewrite_tracked(TrackedFile::Runs, &insert_records(&bytes, &rebuilt)?)?;
        }
        for (id, _) in known.iter().filter(|(_, status)| *status == RunStatus::Completed.word()) {
            let path = self.output_path(id.as_str());
            if path.exists() {
                continue;
            }
            let complete = self
                .read_journal(id)?
                .iter()
                .any(|entry| matches!(entry.event, RunEvent::Finished { status: RunStatus::Completed }));
            let repair = match complete {
                true => "made anew from the run's journal",
                false => "none: the run's journal is not complete either; what it holds is shown",
            };
            let mut problem = StoreProblem::new(&path, "is missing although its run completed", repair);
            if mode == CheckMode::Repair
                && complete
                && let Some(mut output) = self.output(id)?
            {
                // The result is whole again, so the note that it is missing must not stay in it.
                if let Some(damage) = output.damage.take() {
                    let note = damage.describe();
                    output.notes.retain(|said| *said != note);
                }
                self.write_output(&output)?;
                problem.repaired = true;
            }
            report.problems.push(problem);
        }
        Ok(())
    }

    /// Returns the best trace of each run.
    fn find_traces(&self) -> Result<BTreeMap<RunId, (RunTrace, PathBuf)>, StoreError> {
        let mut traces = BTreeMap::new();
        for trace in RunTrace::ALL {
            let (folder, extension) = trace.folder_and_extension();
            for path in check::list_files(&self.root.join(folder))? {
                let named = path.extension().is_some_and(|found| found == extension);
                let id = path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse::<RunId>().ok());
                if let (true, Some(id)) = (named, id) {
                    traces.entry(id).or_insert((trace, path));
                }
            }
        }
        Ok(traces)
    }

    fn rebuild_record(&self, id: &RunId, trace: RunTrace, path: &Path) -> Result<RunRecord, StoreError> {
        if trace == RunTrace::Output
            && let Some(bytes) = files::read(path)?
            && let Some(output) = output::parse_output(&bytes, || None)
            && output.run.run_id == *id
        {
            return Ok(output.run);
        }
        let mut record = unknown_record(id)?;
        let mut findings: BTreeMap<FindingId, Finding> = BTreeMap::new();
        let mut coverage = Coverage::default();
        let (mut paths, mut last) = (BTreeSet::new(), record.created_at);
        for entry in self.read_journal(id)? {
            last = last.max(entry.at);
            match entry.event {
                RunEvent::Started { attempt, .. } => record.attempt = attempt,
                RunEvent::Finding { finding } => {
                    findings.insert(finding.finding_id.clone(), *finding);
                }
                RunEvent::Planned { files, hunks, .. } => {
                    (coverage.files_total, coverage.hunks_total) = (files, hunks);
                }
                RunEvent::Carried { carried } => {
                    let hunks = u32::try_from(carried.file.hunks.len()).unwrap_or(u32::MAX);
                    coverage.hunks_carried = coverage.hunks_carried.saturating_add(hunks);
                    paths.insert(carried.file.path);
                }
                RunEvent::Covered { file } => {
                    coverage.files_covered = coverage.files_covered.saturating_add(1);
                    let hunks = u32::try_from(file.hunks.len()).unwrap_or(u32::MAX);
                    coverage.hunks_covered = coverage.hunks_covered.saturating_add(hunks);
                    paths.insert(file.path);
                }
                RunEvent::LeftOut { file, hunks } => coverage.omit_file(file, hunks),
                _ => {}
            }
        }
        record.updated_at = last;
        record.outcome.coverage = coverage.without_lists();
        record.outcome.finding_counts = FindingCounts::from_findings(findings.values());
        record.outcome.finding_digests = findings.into_keys().take(RunRecord::MAX_DIGESTS).collect();
        record.subject.changed_paths = paths.into_iter().take(RunRecord::MAX_PATHS).collect();
        Ok(record)
    }
}

/// Creates a lost run of which only the id, and thus the creation time, is known. Its scope names a commit that cannot
/// exist, so that the run neither replaces nor answers another review.
fn unknown_record(id: &RunId) -> Result<RunRecord, StoreError> {
    let letters = id.as_str().strip_prefix("ar_").unwrap_or_default();
    let moment = ulid::Ulid::from_string(letters).ok().and_then(|ulid| i64::try_from(ulid.timestamp_ms()).ok());
    let created = moment.and_then(|moment| Time::from_millisecond(moment).ok()).unwrap_or(Time::UNIX_EPOCH);
    serde_json::from_value(json!({
        "run_id": id,
        "status": RunStatus::Lost,
        "created_at": created,
        "updated_at": created,
        "source": "cli",
        "scope": "commit:unknown",
        "reviewer": "unknown",
        "decision": "its record was lost and made anew by `revdeck store repair`",
        "error_class": ErrorClass::Store,
        "error_summary": "its record was lost; what was reviewed, and by whom, is not known any more",
    }))
    .map_err(|source| StoreError::Encode { what: "a run", source })
}

/// Inserts each record before the first line of a newer run.
fn insert_records(bytes: &[u8], records: &[RunRecord]) -> Result<Vec<u8>, StoreError> {
    let mut whole = Vec::with_capacity(bytes.len() + records.len() * 2048);
    let mut rest = records.iter().peekable();
    let put = |whole: &mut Vec<u8>, record: &RunRecord| {
        serde_json::to_writer(&mut *whole, record).map_err(|source| StoreError::Encode { what: "a run", source })?;
        whole.push(b'\n');
        Ok(())
    };
    for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        if let Ok(line) = serde_json::from_slice::<RunStatusLine>(line) {
            while let Some(record) = rest.next_if(|record| record.run_id < line.run_id) {
                put(&mut whole, record)?;
            }
        }
        whole.extend_from_slice(line);
        whole.push(b'\n');
    }
    for record in rest {
        put(&mut whole, record)?;
    }
    Ok(whole)
}
