//! Reports that are kept and not raised: dismissed before, of a muted kind, or late.

use std::collections::HashMap;

use super::ground::Ground;
use super::{Life, Settling};
use crate::domain::text::count;
use crate::domain::{Finding, FindingCounts, FindingStatus, FixId, HeldBack, HeldBecause, LineRange, RunId};
use crate::policy::{self, LookedAt, may_mute};
use crate::review::{Outcome, summary};
use crate::runner::RunnerError;
use crate::store::LastSaid;

/// Earlier reviews of a change that are looked at; own: what the last few covered is what the change is now.
const LOOKED_AT: usize = 8;
/// Notes about reports that were held back; the others are counted.
const NOTES: usize = 6;

/// The reports of a run, told apart.
pub(super) struct Held {
    pub raised: Vec<Finding>,
    pub held_back: Vec<HeldBack>,
}

/// What an earlier review covered or carried over, by path.
type Covered = HashMap<String, Vec<LineRange>>;

impl Settling<'_> {
    pub(super) fn hold_back(
        &self,
        reports: Vec<Finding>,
        said: &LastSaid,
        mut ground: Option<&mut Ground<'_>>,
    ) -> Result<Held, RunnerError> {
        let muted = self.runner.store.muted()?;
        let mut earlier: Option<Vec<(RunId, String, Covered)>> = None;
        let mut held = Held { raised: Vec::new(), held_back: Vec::new() };
        for finding in reports {
            let dismissed = said.about(&finding.finding_id).map(|(_, last)| last);
            let held_by = if let Some(last) = dismissed.filter(|last| last.status == FindingStatus::Dismissed) {
                let day = last.at.strftime("%Y-%m-%d");
                Some((HeldBecause::Dismissed, format!("dismissed on {day} because {}", last.reason)))
            } else if let Some(since) = muted.get(&finding.kind).filter(|_| may_mute(finding.kind).is_ok()) {
                let (kind, day) = (finding.kind, since.strftime("%Y-%m-%d"));
                let text = format!("{kind} is muted since {day}; `revdeck unmute {kind}` has it raised again");
                Some((HeldBecause::Muted, text))
            } else if let Some(ground) = ground.as_deref_mut().filter(|_| self.is_news(&finding)) {
                let earlier = match &earlier {
                    Some(earlier) => earlier,
                    None => earlier.insert(self.covered_before()?),
                };
                self.late(&finding, earlier, ground).map(|run| {
                    let text = format!("new and not urgent, about lines that are as run {run} reviewed them");
                    (HeldBecause::Late, text)
                })
            } else {
                None
            };
            match held_by {
                Some((because, reason)) => held.held_back.push(HeldBack { finding, because, reason }),
                None => held.raised.push(finding),
            }
        }
        Ok(held)
    }

    /// Whether no run before this one reported it.
    fn is_news(&self, finding: &Finding) -> bool {
        finding.first_run_id == self.run.run_id
    }

    /// What earlier reviews with the same eyes covered: run, snapshot, hunks.
    fn covered_before(&self) -> Result<Vec<(RunId, String, Covered)>, RunnerError> {
        let mut covered = Vec::new();
        for index in self.looked_before(LOOKED_AT) {
            let row = self.view.run(index);
            let Ok(id) = row.id.parse::<RunId>() else { continue };
            if let Some(output) = self.runner.store.output(&id)? {
                let mut hunks: Covered = HashMap::new();
                for file in output.coverage.reviewed() {
                    hunks.entry(file.path.clone()).or_default().extend(&file.hunks);
                }
                covered.push((id, row.snapshot_commit.to_owned(), hunks));
            }
        }
        Ok(covered)
    }

    /// The earlier review that looked at the lines of a report as they are, when that makes it late.
    fn late<'b>(
        &self,
        finding: &Finding,
        earlier: &'b [(RunId, String, Covered)],
        ground: &mut Ground<'_>,
    ) -> Option<&'b RunId> {
        let looked = earlier.iter().find(|(_, snapshot, covered)| {
            let stood = ground.stood(&finding.repo_relative_path, finding.lines(), snapshot);
            let looked = stood.and_then(|(path, lines)| Some(LookedAt { hunks: covered.get(&path)?, lines }));
            policy::is_late(finding.priority, looked)
        });
        looked.map(|(run, ..)| run)
    }
}

/// Everything that a review of a fix reports: its code is in nobody's files yet, and it says nothing about any other.
pub(super) fn all(outcome: &mut Outcome, fix: &FixId) -> Life {
    let reason = format!("found in the patch of {fix}, which is in your files only when you apply it");
    let reports = std::mem::take(&mut outcome.findings).into_iter();
    let held_back: Vec<HeldBack> =
        reports.map(|finding| HeldBack { finding, because: HeldBecause::OfAFix, reason: reason.clone() }).collect();
    tell(outcome, &held_back, FindingCounts::of(held_back.iter().map(|held| &held.finding)));
    Life { held_back, ..Life::default() }
}

/// Says in an outcome what was held back of it; `before` is what there was.
pub(super) fn tell(outcome: &mut Outcome, held_back: &[HeldBack], before: FindingCounts) {
    if held_back.is_empty() {
        return;
    }
    outcome.notes.extend(notes(held_back));
    outcome.counts = FindingCounts::of(&outcome.findings);
    let [was, is] = [&before, &outcome.counts].map(|counts| summary(outcome.status, counts, &outcome.coverage));
    outcome.summary = outcome.summary.replacen(&was, &is, 1);
    outcome.summary.push_str(&format!("; {} held back", held_back.len()));
}

/// A line for each reason.
fn notes(held_back: &[HeldBack]) -> Vec<String> {
    let mut reasons: Vec<(&str, usize)> = Vec::new();
    for held in held_back {
        match reasons.iter_mut().find(|(reason, _)| *reason == held.reason) {
            Some((_, n)) => *n += 1,
            None => reasons.push((&held.reason, 1)),
        }
    }
    let line = |n, reason: &str| format!("{} held back: {reason}", count(n, "finding"));
    let mut notes: Vec<String> = reasons.iter().take(NOTES).map(|(reason, n)| line(*n, reason)).collect();
    match reasons.iter().skip(NOTES).map(|(_, n)| n).sum::<usize>() {
        0 => {}
        more => notes.push(line(more, "for other reasons; `show RUN --format json` has them under held_back")),
    }
    notes
}
