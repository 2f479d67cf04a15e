//! Ends a conversation: computes its outcome and its coverage.

use std::collections::BTreeMap;

use super::ConversationEffect;
use super::engine::{ConversationEngine, ConversationStage};
use crate::domain::{
    BudgetKind, BudgetStop, CancelReason, Coverage, ErrorClass, FileCoverage, Finding, FindingCounts, OmissionReason,
    OmittedFile, RunEvent, RunStatus, text,
};
use crate::review::dedup::count_by_kind;
use crate::review::journal_state::to_u32;
use crate::review::{ReviewOutcome, summarize_outcome};

impl ConversationEngine {
    pub(super) fn finish_or_ask_opinions(&mut self) -> Vec<ConversationEffect> {
        let mut effects = Vec::new();
        let open = self.delivery.open_paths().len();
        if open > 0 {
            let files = text::format_count(open, "file");
            let end = self.early_end(None, false);
            let cause = match end {
                OmissionReason::BrokenAnswer => "the answers broke off",
                OmissionReason::Window => "the change does not fit into the window",
                _ => "the turns were used up",
            };
            effects.push(self.note(format!("{cause}: {files} not or only in part reviewed")));
            if end == OmissionReason::TurnLimit {
                let (reached, limit) = (f64::from(self.turn), f64::from(self.window.limits().max_turns));
                effects.push(self.record_stop(BudgetStop { kind: BudgetKind::Turns, reached, limit }));
            }
            effects.extend(self.record_partial_files());
        }
        if let Some(priority) = self.window.limits().opinion {
            let findings = self.accumulated.findings();
            // Carried findings had their second opinion in their own run.
            let fresh = |finding: &Finding| !self.is_carried(&finding.finding_id);
            let wanted = |finding: &Finding| finding.priority <= priority && fresh(finding);
            self.opinions = findings.into_iter().filter(wanted).collect();
        }
        effects.extend(self.ask_next_opinion());
        effects
    }

    /// Ends the run; no further request is sent.
    pub(super) fn close(&mut self) -> Vec<ConversationEffect> {
        self.finish(RunStatus::Completed, None, None)
    }

    /// Returns journal entries for files that the model reviewed in part.
    pub(super) fn record_partial_files(&mut self) -> Vec<ConversationEffect> {
        let files = self.delivery.partial_files();
        self.covered.extend(files.iter().cloned());
        files.into_iter().map(|file| ConversationEffect::Append(RunEvent::Covered { file })).collect()
    }

    pub(super) fn finish(
        &mut self,
        status: RunStatus,
        cancel: Option<CancelReason>,
        failure: Option<(ErrorClass, String)>,
    ) -> Vec<ConversationEffect> {
        self.stage = ConversationStage::Over;
        let mut findings = self.accumulated.findings();
        findings.retain(|finding| !self.withdrawn.contains(&finding.finding_id));
        let last = RunEvent::FinalCodeSmellsSummary {
            total_issues: to_u32(findings.len()),
            loops: self.turn,
            issues_by_type: count_by_kind(&findings),
        };
        let counts = FindingCounts::from_findings(&findings);
        let coverage = self.coverage(self.early_end(cancel, failure.is_some()));
        let mut outcome = ReviewOutcome {
            status,
            summary: String::new(),
            findings,
            unraised: Vec::new(),
            moved_ids: BTreeMap::new(),
            counts,
            coverage,
            notes: self.notes.clone(),
            rejected: self.rejected.clone(),
            failure,
            cancel,
            budget_stop: self.budget_stop,
            spent: self.spent.clone(),
        };
        outcome.summary = summarize_outcome(&outcome);
        vec![ConversationEffect::Append(last), ConversationEffect::Finish(Box::new(outcome))]
    }

    /// Returns the reason why hunks were not reviewed, if there are any.
    fn early_end(&self, cancel: Option<CancelReason>, failed: bool) -> OmissionReason {
        match cancel {
            Some(CancelReason::BudgetExhausted) => OmissionReason::Budget,
            Some(_) => OmissionReason::NotReached,
            None if failed => OmissionReason::NotReached,
            None if self.last_answer_cut => OmissionReason::BrokenAnswer,
            None if self.turn >= self.window.limits().max_turns => OmissionReason::TurnLimit,
            None => OmissionReason::Window,
        }
    }

    /// Returns the coverage; `early_end` is the reason of hunks that were not reviewed.
    fn coverage(&self, early_end: OmissionReason) -> Coverage {
        let covered: BTreeMap<&str, &FileCoverage> =
            self.covered.iter().map(|file| (file.path.as_str(), file)).collect();
        let mut left_out = self.plan.left_out.clone();
        let open = self.plan.open_files();
        let not_reached = open.iter().filter(|file| !covered.contains_key(file.path.as_str()));
        left_out.extend(not_reached.map(|file| OmittedFile::new(&file.path, early_end)));
        let mut coverage = Coverage {
            files_total: to_u32(self.plan.files.len() + self.plan.left_out.len()),
            files_covered: to_u32(covered.len()),
            hunks_total: to_u32(self.plan.files.iter().map(|file| file.hunks.len()).sum()),
            hunks_covered: to_u32(covered.values().map(|file| file.hunks.len()).sum()),
            hunks_left_out: 0,
            lines_covered: FileCoverage::count_changed_lines(covered.values().copied()),
            files: self.covered.clone(),
            left_out,
            ..Coverage::default()
        };
        coverage.set_carried(&self.plan.carried);
        coverage.set_gaps(self.plan.files.iter().map(|file| (file.path.as_str(), file.hunks.len())), early_end);
        coverage
    }
}
