//! Result of a run, as `review --wait` and `show` print it.

use std::collections::HashMap;

use super::error::{CliError, CliExitCode};
use super::review::decision_to_json;
use super::{export, output};
use crate::domain::text::format_count;
use crate::domain::{
    Coverage, ErrorClass, Finding, FindingId, FindingStatus, OmissionReason, OutputDamage, Priority, RejectedReport,
    RunOutput, RunRecord, RunStatus, SuppressedReport, Time,
};
use crate::git::Repo;
use crate::policy::{Decision, Freshness};
use crate::report::text::{self, ShownReview};
use crate::report::{ExportedFinding, FindingExport, OutputFormat, TextOptions, json, markdown};
use crate::runner::{SettledAnswer, read_run_freshness};
use crate::store::Store;

/// Result of a run: record, findings, coverage and reports that were not raised.
pub struct RunResult {
    pub run: RunRecord,
    /// Relation of the run to the code at the time of loading.
    pub freshness: Freshness,
    pub findings: Vec<Finding>,
    pub coverage: Coverage,
    pub notes: Vec<String>,
    /// Reports of a model that failed the check against the code.
    pub rejected: Vec<RejectedReport>,
    /// Reports that are stored but not raised: dismissed, muted or late.
    pub held_back: Vec<SuppressedReport>,
    /// Reasons of the findings that were dismissed since, by id.
    pub dismissals: HashMap<FindingId, String>,
    /// Damage of the stored result, because of which findings may be missing.
    pub damage: Option<OutputDamage>,
    /// Sentence that says why the result could not be applied to the findings of the store; `None` if it was.
    pub unsettled: Option<String>,
}

impl RunResult {
    /// Loads the output of a run, updates the findings to their current status and rating, and reads the freshness at `now`.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be read, or if the result is lost with its findings.
    pub fn load(repo: &Repo, store: &Store, run: RunRecord, now: Time) -> Result<Self, CliError> {
        Self::load_answer(repo, store, run, now, &SettledAnswer::default())
    }

    /// Does the same as [`RunResult::load`] for the result that answers a request, and adds earlier findings that are still
    /// undecided, because the result does not show that they are fixed.
    pub fn load_answer(
        repo: &Repo,
        store: &Store,
        run: RunRecord,
        now: Time,
        settled: &SettledAnswer,
    ) -> Result<Self, CliError> {
        let freshness = read_run_freshness(repo, store, &run, now)?;
        let RunOutput { mut findings, coverage, mut notes, held_back, rejected, damage, .. } =
            store.output(&run.run_id)?.unwrap_or_else(|| RunOutput::new(run.clone()));
        if let Some(damage) = damage.as_ref().filter(|_| findings.is_empty()) {
            return Err(export::lost_result_error(&run.run_id, damage));
        }
        if !findings.is_empty() || !settled.unproven.is_empty() {
            let view = match &settled.view {
                Some(view) => store.refresh_view(view)?,
                None => store.view()?,
            };
            for finding in &mut findings {
                if let Some(index) = view.finding_index(finding.finding_id.as_str()) {
                    finding.status = view.finding(index).status;
                }
                view.rate_finding(finding);
            }
            let before = findings.len();
            for id in &settled.unproven {
                let is_listed = findings.iter().any(|finding| finding.finding_id == *id);
                let earlier = if is_listed { None } else { store.finding_in(&view, id)? };
                findings.extend(earlier.filter(|finding| finding.status.is_undecided()));
            }
            notes.extend(describe_unproven(findings.len() - before));
        }
        let dismissals = export::load_dismissals(store, &findings)?;
        let unsettled = settled.describe_failure();
        notes.extend(unsettled.clone());
        Ok(Self { run, freshness, findings, coverage, notes, held_back, rejected, dismissals, damage, unsettled })
    }

    /// Formats the result that answers a request, with the decision of the harness.
    pub fn format_with_decision(
        &self,
        look: &TextOptions,
        format: OutputFormat,
        decision: &Decision,
        forecast: serde_json::Value,
    ) -> String {
        match format {
            OutputFormat::Json => {
                let mut object = self.to_json();
                object["decision"] = decision_to_json(decision);
                object["forecast"] = forecast;
                format!("{}\n", output::to_json_text(&object))
            }
            OutputFormat::Text => format!("{}{}", self.render(look, format), self.format_answered_by(look, decision)),
            format => self.render(look, format),
        }
    }

    /// Formats a line that says which earlier run answered the request. Empty if a new run did.
    fn format_answered_by(&self, look: &TextOptions, decision: &Decision) -> String {
        let how = match decision.action.word() {
            "reuse" => "reused, nothing was reviewed again",
            "adopt" if self.run.is_later_attempt() => "went on after its worker ended early",
            "adopt" => "adopted, it was on its way already",
            _ => return String::new(),
        };
        format!(
            "{} {how}{}{}\n",
            self.run.run_id,
            look.separator(),
            crate::domain::text::sanitize_line(&decision.reason)
        )
    }

    /// Converts the result to the JSON of `show RUN` (see docs/json.md).
    pub fn to_json(&self) -> serde_json::Value {
        let mut object =
            json::encode_review(&self.run, self.freshness, &self.findings, &self.coverage, &self.notes, &self.rejected);
        object["held_back"] = json::encode_held_back(&self.held_back);
        object
    }

    /// Formats the result in the given output format.
    pub fn render(&self, look: &TextOptions, format: OutputFormat) -> String {
        match (format, format.exporter()) {
            (_, Some(render)) => render(&self.to_export()),
            (OutputFormat::Json, _) => format!("{}\n", output::to_json_text(&self.to_json())),
            (OutputFormat::Markdown, _) => markdown::render_review(look, self.to_shown()),
            _ => text::render_review(look, self.to_shown()),
        }
    }

    /// Formats the result as text below the page of its run.
    pub fn render_below_page(&self, look: &TextOptions) -> String {
        text::render_review_below_page(look, self.to_shown())
    }

    fn to_shown(&self) -> ShownReview<'_> {
        let Self { run, findings, coverage, notes, rejected, .. } = self;
        ShownReview { run, findings, coverage, notes, rejected }
    }

    /// Returns the findings for other programs, with those that were held back.
    fn to_export(&self) -> FindingExport {
        let raised = self
            .findings
            .iter()
            .map(|finding| ExportedFinding::new(finding, self.dismissals.get(&finding.finding_id).cloned()));
        let held_back =
            self.held_back.iter().map(|held| ExportedFinding::new(&held.finding, Some(held.reason.clone())));
        let main_path = self.run.subject.changed_paths.first().map_or("", String::as_str);
        let incomplete = export::describe_missing(&self.run, &self.coverage, self.damage.as_ref());
        let incomplete = incomplete.or_else(|| self.unsettled.clone());
        FindingExport::new(raised.chain(held_back).collect(), incomplete, main_path)
    }

    /// Returns true if no part of the run failed, nothing stayed unreviewed but for `allowed` reasons, and the findings of the
    /// store say what the result does.
    fn is_complete(&self, allowed: &[OmissionReason]) -> bool {
        let failed = match self.run.ending.error_class {
            // The gaps name the same files.
            Some(ErrorClass::Unreadable) => false,
            other => other.is_some(),
        };
        !failed && self.unsettled.is_none() && self.coverage.gaps_besides(allowed).is_empty()
    }

    /// Returns the exit code. An incomplete run never yields [`CliExitCode::Done`], unless all of its gaps have an
    /// `allowed` reason. Dismissed findings do not count; findings that are only claimed as fixed do, because the report
    /// is about the code as it is.
    pub fn exit_code(&self, fail_on: Option<Priority>, allowed: &[OmissionReason]) -> CliExitCode {
        let stands = |status: FindingStatus| status.is_undecided() || status == FindingStatus::Addressed;
        let urgent =
            |finding: &&Finding| stands(finding.status) && fail_on.is_some_and(|limit| finding.priority <= limit);
        match self.run.status {
            RunStatus::Completed if self.findings.iter().any(|finding| urgent(&finding)) => CliExitCode::Findings,
            RunStatus::Completed | RunStatus::Skipped if self.is_complete(allowed) => CliExitCode::Done,
            _ => CliExitCode::Incomplete,
        }
    }

    /// Keeps only this finding and removes all rejected reports.
    pub fn retain_finding(&mut self, id: &FindingId) {
        self.rejected.clear();
        self.findings.retain(|finding| finding.finding_id == *id);
    }
}

/// Returns a note about earlier findings that a reused review does not show to be fixed; `None` without any.
fn describe_unproven(count: usize) -> Option<String> {
    let (stay, are) = if count == 1 { ("stays", "it is") } else { ("stay", "they are") };
    let findings = format_count(count, "earlier finding");
    (count > 0).then(|| {
        format!(
            "{findings} {stay} open: the reused review does not show that {are} fixed; `revdeck review --force` reviews anew"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::CoverageGap;

    #[test]
    fn a_reviewer_that_failed_is_no_unreadable_file() {
        let result = |class| {
            let mut run: RunRecord = serde_json::from_value(serde_json::json!({
                "run_id": "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0A", "status": "completed", "created_at": Time::UNIX_EPOCH,
                "updated_at": Time::UNIX_EPOCH, "source": "cli", "scope": "worktree", "reviewer": "m",
            }))
            .expect("a record");
            run.ending.error_class = Some(class);
            let gaps = vec![CoverageGap { reason: OmissionReason::Unreadable, files: 1, hunks: 1 }];
            let coverage = Coverage { gaps, incomplete: true, ..Coverage::default() };
            let freshness = Freshness::Current;
            RunResult {
                run,
                freshness,
                coverage,
                findings: vec![],
                notes: vec![],
                rejected: vec![],
                held_back: vec![],
                dismissals: Default::default(),
                damage: None,
                unsettled: None,
            }
        };
        let allowed = [OmissionReason::Unreadable];
        assert_eq!(result(ErrorClass::Reviewer).exit_code(None, &allowed), CliExitCode::Incomplete, "an agent crashed");
        assert_eq!(result(ErrorClass::Unreadable).exit_code(None, &allowed), CliExitCode::Done);
        assert_eq!(result(ErrorClass::Unreadable).exit_code(None, &[]), CliExitCode::Incomplete);
        let unsettled = RunResult { unsettled: Some("no room".to_owned()), ..result(ErrorClass::Unreadable) };
        assert_eq!(unsettled.exit_code(None, &allowed), CliExitCode::Incomplete, "nobody knows whether it is clean");
    }
}
