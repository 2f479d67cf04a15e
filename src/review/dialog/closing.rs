//! How a conversation ends: what it came to, what was covered, what was not.

use std::collections::BTreeMap;

use super::engine::{Dialog, Effect, Stage};
use crate::domain::{
    CancelReason, Coverage, ErrorClass, FileCoverage, Finding, FindingCounts, LeftOut, LeftOutReason, RunEvent,
    RunStatus, text,
};
use crate::review::replay::to_u32;
use crate::review::{Outcome, summary};

impl Dialog {
    pub(super) fn end(&mut self) -> Vec<Effect> {
        let mut effects = Vec::new();
        let open = self.delivery.open().len();
        if open > 0 {
            let files = text::count(open, "file");
            effects.push(
                self.noted(format!("the turns were used up: {files} not or only in part put before the reviewer")),
            );
            effects.extend(self.in_part());
        }
        if let Some(priority) = self.window.limits().opinion {
            let findings = self.accumulated.findings();
            // What was carried over had its second opinion in its own run.
            let fresh = |finding: &Finding| !self.is_carried(&finding.finding_id);
            let wanted = |finding: &Finding| finding.priority <= priority && fresh(finding);
            self.opinions = findings.into_iter().filter(wanted).collect();
        }
        effects.extend(self.next_opinion());
        effects
    }

    /// The end, when nothing more is asked.
    pub(super) fn close(&mut self) -> Vec<Effect> {
        self.finish(RunStatus::Completed, None, None)
    }

    /// Journal entries for files that were seen in part.
    pub(super) fn in_part(&mut self) -> Vec<Effect> {
        let files = self.delivery.in_part();
        self.covered.extend(files.iter().cloned());
        files.into_iter().map(|file| Effect::Append(RunEvent::Covered { file })).collect()
    }

    pub(super) fn finish(
        &mut self,
        status: RunStatus,
        cancel: Option<CancelReason>,
        failure: Option<(ErrorClass, String)>,
    ) -> Vec<Effect> {
        self.stage = Stage::Over;
        let mut findings = self.accumulated.findings();
        findings.retain(|finding| !self.withdrawn.contains(&finding.finding_id));
        let last = RunEvent::FinalCodeSmellsSummary {
            total_issues: to_u32(findings.len()),
            loops: self.turn,
            issues_by_type: by_kind(&findings),
        };
        let counts = FindingCounts::of(&findings);
        let coverage = self.coverage();
        let mut summary = summary(status, &counts, &coverage);
        if let Some((_, text)) = &failure {
            summary = format!("failed: {text}; {} kept", text::count(findings.len(), "finding"));
        }
        let outcome = Outcome {
            status,
            summary,
            findings,
            counts,
            coverage,
            notes: self.notes.clone(),
            rejected: self.rejected.clone(),
            failure,
            cancel,
            spent: self.spent.clone(),
        };
        vec![Effect::Append(last), Effect::Finish(Box::new(outcome))]
    }

    fn coverage(&self) -> Coverage {
        let covered: BTreeMap<&str, &FileCoverage> =
            self.covered.iter().map(|file| (file.path.as_str(), file)).collect();
        let mut left_out = self.plan.left_out.clone();
        let open = self.plan.open();
        let not_reached = open.iter().filter(|file| !covered.contains_key(file.path.as_str()));
        left_out.extend(not_reached.map(|file| LeftOut { path: file.path.clone(), reason: LeftOutReason::NotReached }));
        let mut coverage = Coverage {
            files_total: to_u32(self.plan.files.len() + self.plan.left_out.len()),
            files_covered: to_u32(covered.len()),
            hunks_total: to_u32(self.plan.files.iter().map(|file| file.hunks.len()).sum()),
            hunks_covered: to_u32(covered.values().map(|file| file.hunks.len()).sum()),
            hunks_left_out: 0,
            lines_covered: FileCoverage::lines(covered.values().copied()),
            files: self.covered.clone(),
            left_out,
            ..Coverage::default()
        };
        coverage.carry(&self.plan.carried);
        coverage
    }
}

/// How many findings of each kind.
fn by_kind(findings: &[Finding]) -> BTreeMap<String, u32> {
    let mut kinds = BTreeMap::new();
    for finding in findings {
        *kinds.entry(finding.kind.word().to_owned()).or_default() += 1;
    }
    kinds
}
