//! Imports the report of another tool as a run of its own: the tool is the reviewer, and its problems become findings.
//!
//! - A finding lies in a file of a snapshot that is taken now, and quotes that file. A path that cannot mean such a file is
//!   refused, and the run keeps the report with the reason.
//! - A problem that a finding of another reviewer describes already is not raised again; a note names both.
//! - Silence is evidence only about files that the report names, or that the caller says were checked, and only if the
//!   tool did not fail. Then a missing problem confirms that the tool's finding is fixed.
//! - A problem that is refused or suppressed is not missing. The file of a refused one is no evidence.

mod duplicates;
mod imported_problem;
mod own_finding;
mod sorted_problems;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};

pub use self::own_finding::OWN_REVIEWER;
pub use self::own_finding::{OwnFinding, RemovedLine, WrittenComment};

use self::duplicates::KnownFindings;
use self::imported_problem::ProblemImporter;
use self::sorted_problems::SortedProblems;
use crate::domain::text::{format_count, sanitize_line};
use crate::domain::{
    Coverage, ErrorClass, FileCoverage, Finding, FindingCounts, LineRange, PhaseTimings, RejectedReport, ReviewSubject,
    RunEnding, RunEvent, RunId, RunLinks, RunOutcome, RunRecord, RunReuse, RunReviewer, RunStatus, RunUsage, Scope,
    Source, content_hash,
};
use crate::git::Snapshot;
use crate::masking::Mask;
use crate::review::{JournalState, ReviewOutcome, RunCost, summarize_run};
use crate::runner::{RunnerError, Services, conclude, process};
use crate::tool_reports::path::{PathRefusal, resolve_path};
use crate::tool_reports::{ReportedPath, ToolReport};

/// Maximum number of covered files that a run lists. Files with findings are listed first, so that no evidence is lost.
const MAX_LISTED_FILES: usize = 5_000;
/// Maximum number of notes about problems that are known from other reviewers. The others are only counted.
const MAX_DUPLICATE_NOTES: usize = 20;

/// Report to import, with what the report does not say itself.
#[derive(Debug, Clone)]
pub struct ImportRequest {
    /// Parsed report.
    pub report: ToolReport,
    /// Name of the reviewer: the tool.
    pub tool: String,
    /// Files and folders that the tool has checked besides those that the report names, relative to the root; an empty
    /// path is the whole repository.
    pub covered: Vec<String>,
    /// Folder in which the tool ran elsewhere; absolute paths below it are relative to the root.
    pub tool_root: Option<PathBuf>,
    /// Name of the file that holds the report, for the run's record.
    pub origin: String,
    /// Name of the person who wrote the problems; `None` for the report of a tool.
    pub author: Option<String>,
}

/// Result of an import.
#[derive(Debug, Clone)]
pub struct ImportOutcome {
    /// Completed run.
    pub run: RunRecord,
    /// Problems that were not taken, with the reasons.
    pub refused: Vec<RejectedReport>,
    /// Number of refused problems and files whose path leads out of the repository.
    pub outside: usize,
    /// Number of files in which nothing is confirmed as fixed, because a problem there was refused.
    pub doubtful_files: usize,
    /// Number of problems that findings of other reviewers describe already.
    pub duplicates: usize,
}

/// Service that imports reports of other tools.
#[derive(Clone, Copy)]
pub struct Importer<'a> {
    pub(in crate::runner) services: &'a Services,
}

/// Code that the reports of one command are about.
struct ImportGround {
    snapshot: Snapshot,
    /// Paths of the regular files of the snapshot.
    files: HashSet<String>,
    /// Size of the triage log before the snapshot was taken.
    triage_bytes: u64,
}

impl Importer<'_> {
    /// Imports reports about one snapshot, each as a run of its own: converts the problems, records the run and settles
    /// the tool's earlier findings.
    ///
    /// # Errors
    ///
    /// If the snapshot cannot be taken, or the store fails. A problem that cannot be taken is no error.
    pub fn import_reports(&self, requests: &[ImportRequest]) -> Result<Vec<ImportOutcome>, RunnerError> {
        // Read before the snapshot, because a decision made meanwhile may be about newer code.
        let triage_bytes = self.services.store.triage_bytes()?;
        let snapshot = self.take_snapshot()?;
        let files =
            self.services.repo.tree_files(&snapshot.snapshot_commit)?.into_iter().map(|file| file.path).collect();
        let ground = ImportGround { snapshot, files, triage_bytes };
        requests.iter().map(|request| self.import_report(request, &ground)).collect()
    }

    fn import_report(&self, request: &ImportRequest, ground: &ImportGround) -> Result<ImportOutcome, RunnerError> {
        let run = self.services.ambient.new_run_id();
        // Held before the run is recorded, so that no process takes it for one whose worker has died.
        let lock = self.services.store.lock_run(&run)?;
        let record = self.record_run(request, ground, run)?;
        let imported = self.import_recorded(request, ground, &record);
        if let Err(error) = &imported {
            let mut outcome =
                conclude::failed_outcome(&JournalState::default(), ErrorClass::Internal, error.to_string());
            let failed = self.services.closer().conclude_run(&record.run_id, &mut outcome, PhaseTimings::default());
            if let Err(error) = failed {
                tracing::warn!(run = %record.run_id, %error, "the failure of an import is not recorded");
            }
        }
        drop(lock);
        imported
    }

    /// Fills a recorded run with the report, and ends it.
    fn import_recorded(
        &self,
        request: &ImportRequest,
        ground: &ImportGround,
        record: &RunRecord,
    ) -> Result<ImportOutcome, RunnerError> {
        let worktree = ground.snapshot.worktree.as_path();
        let roots: Vec<&Path> = std::iter::once(worktree).chain(request.tool_root.as_deref()).collect();
        let mut sorted = self.sort_problems(request, record, &ground.files, &roots)?;
        let covered = collect_covered(request, &ground.files, &roots, &mut sorted);
        let coverage = self.build_coverage(record, &covered, &sorted.findings)?;
        self.write_journal(record, &sorted, &coverage)?;
        let mut outcome = build_outcome(request, &mut sorted, coverage);
        let run = self.services.closer().conclude_run(&record.run_id, &mut outcome, PhaseTimings::default())?;
        self.services
            .store
            .open_journal(&run.run_id)?
            .append_all(self.services.ambient.now(), &[RunEvent::Finished { status: run.status }])?;
        let SortedProblems { refused, outside, duplicates, doubtful_files, .. } = sorted;
        let (doubtful_files, duplicates) = (doubtful_files.len(), duplicates.len());
        Ok(ImportOutcome { run, refused, outside, doubtful_files, duplicates })
    }

    fn take_snapshot(&self) -> Result<Snapshot, RunnerError> {
        let scope = if self.services.repo.has_worktree() { Scope::Worktree } else { Scope::Commit("HEAD".to_owned()) };
        Ok(self.services.repo.take_snapshot(&scope, &self.services.filter())?)
    }

    /// Records the run as one that is being settled: there is nothing to start or to pay.
    fn record_run(
        &self,
        request: &ImportRequest,
        ground: &ImportGround,
        run_id: RunId,
    ) -> Result<RunRecord, RunnerError> {
        let now = self.services.ambient.now();
        let mut record = RunRecord {
            run_id,
            status: RunStatus::Resolving,
            created_at: now,
            updated_at: now,
            source: Source::Import,
            owner: request.author.clone().unwrap_or_else(process::owner),
            subject: build_subject(request, &ground.snapshot, ground.triage_bytes),
            reviewed_by: RunReviewer { name: request.tool.clone(), ..RunReviewer::default() },
            attempt: 1,
            follow_up_count: 0,
            follow_up_of: None,
            team: None,
            ci: self.services.store.acts_for_ci(),
            usage: RunUsage::default(),
            outcome: RunOutcome::default(),
            decision: format!("imported from {}", request.origin),
            reuse: RunReuse::default(),
            links: RunLinks::default(),
            full: true,
            private: !self.services.settings.learning.enabled,
            paused: false,
            ending: RunEnding::default(),
        };
        self.services.store.with_lock_as(|locked| -> Result<(), RunnerError> {
            record.subject.epoch = self.services.store.advance_epoch()?;
            self.services.recovery().begin_run(locked, &record.run_id)?;
            self.services.repo.keep_snapshot(&record.run_id, &record.subject.snapshot_commit)?;
            Ok(locked.create_run(&record)?)
        })?;
        Ok(record)
    }

    fn sort_problems(
        &self,
        request: &ImportRequest,
        record: &RunRecord,
        files: &HashSet<String>,
        roots: &[&Path],
    ) -> Result<SortedProblems, RunnerError> {
        let view = self.services.store.view()?;
        let known = KnownFindings::new(&view, &request.tool);
        let mut importer = ProblemImporter::new(self.services, record, &request.tool, files)?;
        let mut sorted = SortedProblems::default();
        for problem in &request.report.problems {
            let resolved = resolve_path(&problem.path, roots);
            sorted.outside += usize::from(resolved == Err(PathRefusal::Outside));
            match importer.import_problem(problem, resolved.as_deref().map_err(|refusal| *refusal), &known) {
                // What a person has written is never what a tool says already.
                Ok(finding) if request.tool == OWN_REVIEWER => sorted.add_finding(finding),
                Ok(finding) => match known.find_duplicate(&finding) {
                    Some(earlier) => {
                        sorted.duplicates.push(format!("{} is {earlier} already", finding.title));
                        sorted.unraised.push(finding);
                    }
                    None => sorted.add_finding(finding),
                },
                Err(rejected) => {
                    sorted.refused.push(*rejected);
                    sorted.doubt(resolved, &problem.path.path);
                }
            }
        }
        sorted.count_unnamed();
        // After the problems, so that these get the ids of the earlier findings first.
        for problem in &request.report.silenced {
            let resolved = resolve_path(&problem.path, roots);
            match importer.import_problem(problem, resolved.as_deref().map_err(|refusal| *refusal), &known) {
                Ok(finding) => sorted.unraised.push(finding),
                Err(_) => sorted.doubt(resolved, &problem.path.path),
            }
        }
        sorted.untried_fixes = importer.untried_fixes;
        Ok(sorted)
    }

    /// Builds the coverage: every line of each covered file, files with findings of the tool first.
    fn build_coverage(
        &self,
        record: &RunRecord,
        covered: &BTreeSet<String>,
        findings: &[Finding],
    ) -> Result<Coverage, RunnerError> {
        let view = self.services.store.view()?;
        let known = KnownFindings::new(&view, &record.reviewed_by.name);
        let found: HashSet<&str> = findings.iter().map(|finding| finding.repo_relative_path.as_str()).collect();
        let mut listed: Vec<&String> = covered.iter().collect();
        listed.sort_by_key(|path| !(found.contains(path.as_str()) || known.has_own(path)));
        listed.truncate(MAX_LISTED_FILES);
        listed.sort();
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let mut coverage =
            Coverage { files_total: count(covered.len()), files_covered: count(covered.len()), ..Coverage::default() };
        for path in listed {
            let content =
                self.services.repo.regular_file_at(&record.subject.snapshot_commit, path)?.unwrap_or_default();
            let lines = count(content.iter().filter(|byte| **byte == b'\n').count()).saturating_add(1);
            coverage.lines_covered = coverage.lines_covered.saturating_add(lines);
            coverage.files.push(FileCoverage {
                path: path.clone(),
                hunks: vec![LineRange::new(1, lines)],
                keys: Vec::new(),
            });
        }
        coverage.hunks_total = count(coverage.files.len());
        coverage.hunks_covered = coverage.hunks_total;
        Ok(coverage)
    }

    fn write_journal(
        &self,
        record: &RunRecord,
        sorted: &SortedProblems,
        coverage: &Coverage,
    ) -> Result<(), RunnerError> {
        let mut events = vec![RunEvent::Started { attempt: record.attempt, worker: std::process::id() }];
        events.push(RunEvent::Phase { status: RunStatus::Resolving });
        let (files, hunks) = (coverage.files_total, coverage.hunks_total);
        events.push(RunEvent::Planned { files, hunks, left_out: Vec::new() });
        events.extend(sorted.findings.iter().map(|finding| RunEvent::Finding { finding: Box::new(finding.clone()) }));
        events.extend(coverage.files.iter().map(|file| RunEvent::Covered { file: file.clone() }));
        let mut journal = self.services.store.open_journal(&record.run_id)?;
        Ok(journal.append_all(self.services.ambient.now(), &events)?)
    }
}

fn build_subject(request: &ImportRequest, snapshot: &Snapshot, triage_bytes: u64) -> ReviewSubject {
    // The hash is no hash of a scope, so the run never answers a request for a review.
    let identity = content_hash([request.tool.as_bytes(), snapshot.snapshot_commit.as_bytes()]);
    ReviewSubject {
        branch: snapshot.branch.clone(),
        worktree: snapshot.worktree.to_string_lossy().into_owned(),
        base_commit: snapshot.base_commit.clone(),
        snapshot_commit: snapshot.snapshot_commit.clone(),
        head_commit: snapshot.head_commit.clone(),
        epoch: 0,
        triage_bytes: Some(triage_bytes),
        scope: snapshot.scope.clone(),
        scope_hash: format!("{}{}", RunRecord::IMPORT_SCOPE_PREFIX, &identity[..16]),
        diff_fingerprint: snapshot.diff_fingerprint.clone(),
        prompt_policy_version: String::new(),
        changed_paths: Vec::new(),
    }
}

/// Returns the files of the snapshot that the tool has checked, without those of refused problems. A named file that leads
/// out of the repository is refused.
fn collect_covered(
    request: &ImportRequest,
    files: &HashSet<String>,
    roots: &[&Path],
    sorted: &mut SortedProblems,
) -> BTreeSet<String> {
    let mut covered = BTreeSet::new();
    let known: HashSet<&ReportedPath> = request.report.problems.iter().map(|problem| &problem.path).collect();
    for reported in &request.report.covered {
        match resolve_path(reported, roots) {
            Ok(path) if files.contains(&path) => drop(covered.insert(path)),
            Ok(_) => {}
            // Its problems are refused by name already.
            Err(refusal) if !known.contains(reported) => {
                sorted.outside += usize::from(refusal == PathRefusal::Outside);
                sorted.refused.push(imported_problem::refuse_file(&reported.path, refusal));
            }
            Err(_) => {}
        }
    }
    for given in &request.covered {
        let folder = format!("{given}/");
        let below = files.iter().filter(|path| given.is_empty() || *path == given || path.starts_with(&folder));
        covered.extend(below.cloned());
    }
    sorted.withdraw_doubtful(&mut covered);
    covered
}

fn build_outcome(request: &ImportRequest, sorted: &mut SortedProblems, coverage: Coverage) -> ReviewOutcome {
    let counts = FindingCounts::from_findings(&sorted.findings);
    let mut summary = summarize_run(RunStatus::Completed, &counts, &coverage);
    let mut notes: Vec<String> = sorted.duplicates.iter().take(MAX_DUPLICATE_NOTES).cloned().collect();
    let more = sorted.duplicates.len().saturating_sub(notes.len());
    if more > 0 {
        notes.push(format!("{} more are known from other reviewers", format_count(more, "problem")));
    }
    if request.report.suppressed > 0 {
        let n = format_count(request.report.suppressed, "result");
        notes.push(format!("{n} left out: the tool itself suppresses them, or calls them no problem"));
    }
    if sorted.untried_fixes > 0 {
        let n = format_count(sorted.untried_fixes, "proposed change");
        notes.push(format!("only the words of {n} are kept: trying all of them would take too long"));
    }
    notes.extend(sorted.describe_doubt());
    for (n, what) in [(sorted.duplicates.len(), "known from other reviewers"), (sorted.refused.len(), "refused")] {
        if n > 0 {
            summary.push_str(&format!("; {n} {what}"));
        }
    }
    let failure = request.report.failure.as_ref().map(|said| {
        let said = sanitize_line(&Mask::On.mask_key_shapes(said)).into_owned();
        (ErrorClass::Reviewer, format!("{} failed: {said}", request.tool))
    });
    ReviewOutcome {
        status: RunStatus::Completed,
        findings: sorted.findings.clone(),
        unraised: std::mem::take(&mut sorted.unraised),
        moved_ids: BTreeMap::new(),
        counts,
        coverage,
        summary,
        notes,
        rejected: sorted.refused.clone(),
        failure,
        cancel: None,
        budget_stop: None,
        spent: RunCost::default(),
    }
}
