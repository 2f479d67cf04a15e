//! Restores the lines that the append-only files have lost, as far as other files of the store tell what they said.
//!
//! Invariants:
//! - Lines are only added, and only about runs, findings and kinds that have no such line.
//! - A restored line says so.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use super::check::{CheckMode, StoreCheckReport, StoreProblem};
use super::extents::{TailCheck, TrackedFile};
use super::triage::fix_group;
use super::{SpendingLog, Store, StoreError, check};
use crate::domain::{
    Actor, Disposition, FindingId, FindingStatus, FixStatus, Kind, MuteAction, RunId, RunOutput, SuppressionReason,
    Time, TriageAction,
};

/// Addition to the reason of a restored decision.
const RESTORED: &str = "restored by `revdeck store repair`";

impl Store {
    /// Reports each file that has lost lines. Returns the places of these problems in the report.
    pub(super) fn check_losses(&self, report: &mut StoreCheckReport) -> Range<usize> {
        let start = report.problems.len();
        for loss in self.find_losses(TailCheck::Yes) {
            let repair = match loss.tracked_file() {
                Some(TrackedFile::Runs) => "runs are restored from outputs and journals; the rest is lost",
                Some(TrackedFile::Triage) => {
                    "decisions are restored from applied fixes and from the reviews that heeded them; the rest is lost"
                }
                Some(TrackedFile::Mutes) => {
                    "muted kinds are restored from the reviews that heeded them; the rest is lost: `revdeck mute` says it \
                     again"
                }
                Some(
                    TrackedFile::Fixes
                    | TrackedFile::Deliveries
                    | TrackedFile::Notes
                    | TrackedFile::Snoozes
                    | TrackedFile::Ratings
                    | TrackedFile::Questions,
                )
                | None => "the file goes on with what there is; nothing else tells the lost lines",
            };
            report.problems.push(StoreProblem::new(&loss.path(self), &loss.describe(), repair));
        }
        start..report.problems.len()
    }

    /// Restores what other files tell, and forgets the losses. Runs without any line were restored before.
    pub(super) fn restore_lost_lines(&self, losses: &Range<usize>) -> Result<(), StoreError> {
        tracing::info!(losses = losses.len(), "lost lines are restored");
        self.restore_ends()?;
        let decisions = self.find_lost_decisions()?;
        self.append_dispositions(&decisions)?;
        self.with_lock(|_| {
            if self.find_losses(TailCheck::No).iter().any(|loss| loss.tracked_file() == Some(TrackedFile::Mutes)) {
                self.restore_mutes()?;
            }
            self.settle_losses()
        })
    }

    /// Mutes the kinds again that the last review with reports of the kind held back, unless a line says otherwise.
    fn restore_mutes(&self) -> Result<(), StoreError> {
        let mut muted: BTreeMap<Kind, Time> = BTreeMap::new();
        for output in self.read_outputs()? {
            for finding in &output.findings {
                muted.remove(&finding.kind);
            }
            for held in output.held_back.iter().filter(|held| held.because == SuppressionReason::Muted) {
                muted.entry(held.finding.kind).or_insert(output.run.updated_at);
            }
        }
        let known = self.kinds_with_mute_lines()?;
        for (kind, at) in muted.into_iter().filter(|(kind, _)| !known.contains(kind)) {
            self.set_muted(&[kind], MuteAction::Mute, at)?;
        }
        Ok(())
    }

    /// Reads the outputs of all runs, oldest first. Unreadable ones are passed over.
    fn read_outputs(&self) -> Result<Vec<RunOutput>, StoreError> {
        let mut outputs = Vec::new();
        for path in check::list_files(&self.root.join("outputs"))? {
            let bytes = super::files::read(&path)?;
            outputs.extend(bytes.and_then(|bytes| super::output::parse_output(&bytes, || None)));
        }
        Ok(outputs)
    }

    /// Reports the lines that the log of spending has lost; a repair begins anew from what there is.
    pub(super) fn check_spending(&self, mode: CheckMode, report: &mut StoreCheckReport) -> Result<(), StoreError> {
        let spending = SpendingLog::open(&self.state);
        let Some(loss) = spending.find_loss() else { return Ok(()) };
        let repair = "the budget of the day counts what is left; nothing else tells the lost lines";
        let mut problem = StoreProblem::new(spending.path(), &loss.describe(), repair);
        if mode == CheckMode::Repair {
            spending.settle_loss()?;
            problem.repaired = true;
        }
        report.problems.push(problem);
        Ok(())
    }

    /// Appends the last record of each run that has ended, according to its output, and whose line says otherwise.
    fn restore_ends(&self) -> Result<(), StoreError> {
        for path in check::list_files(&self.root.join("outputs"))? {
            let id = path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse::<RunId>().ok());
            let Some(id) = id else { continue };
            let Some(output) =
                super::files::read(&path)?.and_then(|bytes| super::output::parse_output(&bytes, || None))
            else {
                continue;
            };
            if output.run.run_id == id && output.run.status.is_terminal() && !self.is_live(&id)? {
                self.with_lock(|locked| match self.run(&id)? {
                    Some(record) if !record.status.is_terminal() => {
                        locked.update_run(&id, output.run.updated_at, |record| *record = output.run.clone()).map(drop)
                    }
                    _ => Ok(()),
                })?;
            }
        }
        Ok(())
    }

    /// Returns the decisions that have no line any more: applied fixes addressed their findings, and later reviews held
    /// reports back that had been dismissed.
    fn find_lost_decisions(&self) -> Result<Vec<Disposition>, StoreError> {
        let mut known: HashSet<FindingId> = self.triage_log()?.into_iter().map(|line| line.finding_id).collect();
        let mut lines = Vec::new();
        let mut restore = |finding_id: &FindingId, status, reason: &str, at: Time, group: String| {
            if known.insert(finding_id.clone()) {
                lines.push(Disposition {
                    finding_id: finding_id.clone(),
                    status,
                    previous: FindingStatus::Open,
                    actor: Actor::User,
                    reason: format!("{reason} ({RESTORED})"),
                    at,
                    action: TriageAction::Set,
                    group,
                    run_id: None,
                    merged_into: None,
                    team: None,
                    ci: false,
                });
            }
        };
        for fix in self.fixes()?.into_iter().filter(|fix| fix.status == FixStatus::Applied) {
            let reason = format!("fix {} applied", fix.fix_id);
            for id in fix.fixed_findings() {
                let group = fix_group(&fix.fix_id, "t_restored");
                restore(id, FindingStatus::Addressed, &reason, fix.updated_at, group);
            }
        }
        // The last run that saw a finding tells whether it stood dismissed.
        let mut dismissed = BTreeMap::new();
        for output in self.read_outputs()? {
            output.findings.iter().for_each(|finding| drop(dismissed.remove(&finding.finding_id)));
            let group = output.run.run_id.as_str().replacen("ar_", "t_", 1);
            for held in output.held_back.into_iter().filter(|held| held.because == SuppressionReason::Dismissed) {
                dismissed.insert(held.finding.finding_id, (held.reason, output.run.updated_at, group.clone()));
            }
        }
        for (id, (reason, at, group)) in dismissed {
            restore(&id, FindingStatus::Dismissed, &reason, at, group);
        }
        Ok(lines)
    }
}
