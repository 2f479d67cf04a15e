//! Reviews the patch of a fix like any other change, in the object store only, and decides whether the patch is made
//! again.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::fixer_requests::FixDropWatch;
use super::fixer_worker::{FixFailure, FixMaterial};
use crate::domain::text::{format_count, sanitize_line};
use crate::domain::{Finding, Fix, Priority, RunId, RunOutput, RunRecord, RunStatus, Scope};
use crate::runner::control::run_check::WaitPatience;
use crate::runner::launcher::start_workers::PendingRun;
use crate::runner::{Fixer, ReviewDemand, ReviewRequest, RunnerError};
use crate::store::StoreView;

/// Maximum number of problems that the next attempt is told about. Not from the literature.
const MAX_REPORTED_PROBLEMS: usize = 10;
/// Interval between two checks whether the review has ended.
const REVIEW_POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Interval between two checks whether the review's worker is alive.
const RECOVERY_INTERVAL: Duration = Duration::from_millis(500);

/// The result of the review of a patch.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PatchVerdict {
    /// A short text: "clean", "2 findings".
    pub summary: String,
    /// The problems for the next attempt; empty if none is needed.
    pub retry_reasons: String,
}

impl Fixer<'_> {
    /// Reviews a patch and waits for the result. Records the run in the fix before it waits.
    pub(super) fn review_fix(&self, material: &FixMaterial, fix: &Fix) -> Result<PatchVerdict, FixFailure> {
        let before = self.services.store.view()?;
        let request = ReviewRequest {
            scope: Some(Scope::Range { from: short_commit(&fix.snapshot_commit), to: short_commit(&fix.fixed_commit) }),
            reviewer: self.choose_patch_reviewer(&fix.reviewer).ok(),
            prompt_set: None,
            source: fix.source,
            started_in_session: 0,
            demand: ReviewDemand::Anew,
        };
        let run = match self.services.launcher().create_follow_up(&request, fix) {
            Ok(run) => run.run_id,
            // The patch is offered without a review: the default reviewer may be unavailable.
            Err(error) => return Ok(unreviewed_verdict(&error.to_string())),
        };
        self.update_working_fix(&fix.fix_id, |fix| fix.reviews.push(run.clone()))?;
        let view = self.services.store.runs_view()?;
        let waiting = PendingRun { run: run.clone(), worktree: PathBuf::new() };
        if let Err(error) = self.services.launcher().start_next(&view, Some(waiting), &[]) {
            // The waiting loop also recovers dead workers.
            tracing::warn!(%run, %error, "no worker was started");
        }
        let record = self.await_review(&run, fix)?;
        self.count_follow_up(fix)?;
        let output = self.services.store.output(&run)?;
        Ok(judge_review(material, &before, &record, output.as_ref()))
    }

    /// Waits for the end of a review. Cancels the review if its fix is dropped.
    fn await_review(&self, run: &RunId, fix: &Fix) -> Result<RunRecord, FixFailure> {
        let wanted = FixDropWatch::new(self.services, fix);
        let mut next_look = Instant::now() + RECOVERY_INTERVAL;
        let mut waited = WaitPatience::default();
        loop {
            match self.services.store.run(run)? {
                Some(record) if record.status.is_terminal() => return Ok(record),
                Some(_) => {}
                None => return Err(FixFailure::Failed(self.services.no_run_error(run))),
            }
            if wanted.is_dropped() {
                self.services.control().cancel(run, "its fix was dropped")?;
                return Err(FixFailure::Dropped);
            }
            if Instant::now() >= next_look {
                // The worker may have died, or the workers of runs that it waits for.
                if let Some(reason) = waited.count(self.services.control().check_run(run)?) {
                    return Err(FixFailure::Failed(RunnerError::Unsettled { run: run.clone(), reason }));
                }
                next_look = Instant::now() + RECOVERY_INTERVAL;
            }
            std::thread::sleep(REVIEW_POLL_INTERVAL);
        }
    }

    /// Counts the follow-up in the record of the run that raised the findings.
    fn count_follow_up(&self, fix: &Fix) -> Result<(), RunnerError> {
        self.services.store.with_lock(|locked| {
            locked.annotate_run(&fix.run_id, |run| run.follow_up_count = run.follow_up_count.saturating_add(1))
        })?;
        Ok(())
    }
}

/// Shortens a commit id for display; 12 digits are enough for any repository.
fn short_commit(commit: &str) -> String {
    commit.chars().take(12).collect()
}

fn unreviewed_verdict(why: &str) -> PatchVerdict {
    PatchVerdict { summary: format!("not reviewed: {}", sanitize_line(why)), retry_reasons: String::new() }
}

fn judge_review(
    material: &FixMaterial,
    before: &StoreView,
    run: &RunRecord,
    output: Option<&RunOutput>,
) -> PatchVerdict {
    if run.status != RunStatus::Completed {
        let why = if run.ending.error_summary.is_empty() { run.status.word() } else { &run.ending.error_summary };
        return unreviewed_verdict(why);
    }
    let Some(output) = output else { return unreviewed_verdict("its result is gone") };
    if run.outcome.coverage.files_covered == 0 {
        return unreviewed_verdict("nothing of it is for the reviewer");
    }
    let reports = output.findings.iter().chain(output.held_back.iter().map(|held| &held.finding));
    // A problem that was there before and was not to be fixed is no fault of the patch.
    let is_old = |report: &Finding| before.finding_index(report.finding_id.as_str()).is_some();
    let reports: Vec<(&Finding, bool)> = reports
        .map(|report| (report, is_still_reported(material, report)))
        .filter(|(report, stands)| *stands || !is_old(report))
        .collect();
    let faults = reports.iter().filter(|(report, stands)| *stands || report.priority <= Priority::P1);
    let again: Vec<String> = faults
        .take(MAX_REPORTED_PROBLEMS)
        .map(|(report, stands)| {
            let stands = if *stands { "still there: " } else { "" };
            format!(
                "- {stands}{}\n{}",
                super::fixer_worker::finding_headline(report),
                sanitize_line(&report.explanation)
            )
        })
        .collect();
    let words = match reports.len() {
        0 => "clean".to_owned(),
        n => format_count(n, "finding"),
    };
    PatchVerdict { summary: words, retry_reasons: again.join("\n") }
}

/// Returns `true` if a report is one of the findings that the patch should fix: the same id, or the same kind and title
/// in the same file.
fn is_still_reported(material: &FixMaterial, report: &Finding) -> bool {
    let fixed = |finding: &&Finding| material.fix.fixed_findings().any(|id| *id == finding.finding_id);
    material.findings.iter().filter(fixed).any(|finding| {
        finding.finding_id == report.finding_id
            || (finding.kind == report.kind
                && finding.repo_relative_path == report.repo_relative_path
                && finding.title == report.title)
    })
}
