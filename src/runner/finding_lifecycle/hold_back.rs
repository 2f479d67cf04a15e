//! Holds back reports that are recorded but not raised: dismissed before, of a muted kind, or late.

use std::collections::HashMap;

use super::earlier_findings::EarlierFinding;
use super::snapshot_files::SnapshotFiles;
use super::{FindingSettlement, LifecycleReport};
use crate::domain::text::format_count;
use crate::domain::{
    Disposition, Finding, FindingCounts, FindingId, FindingStatus, FixId, LineRange, MovedFinding, RunId, Source,
    SuppressedReport, SuppressionReason,
};
use crate::policy::{self, PriorCoverage, may_mute};
use crate::review::{ReviewOutcome, describe_result};
use crate::runner::RunnerError;
use crate::store::LatestDispositions;

/// Maximum number of earlier reviews that are read. Not from the literature: the last reviews covered the current
/// change.
const MAX_EARLIER_REVIEWS: usize = 8;
/// Maximum number of notes about held-back reports. The remaining reports are only counted.
const MAX_HELD_NOTES: usize = 6;

/// The reports of a run, divided into raised and held back.
pub(super) struct PartitionedReports {
    pub raised: Vec<Finding>,
    pub held_back: Vec<SuppressedReport>,
}

/// The hunks that an earlier review covered or carried over, by path.
type HunksByPath = HashMap<String, Vec<LineRange>>;

impl FindingSettlement<'_> {
    pub(super) fn hold_back(
        &self,
        reports: Vec<Finding>,
        said: &LatestDispositions,
        mut ground: Option<&mut SnapshotFiles<'_>>,
    ) -> Result<PartitionedReports, RunnerError> {
        let muted = self.services.store.muted_kinds()?;
        let mut earlier: Option<Vec<(RunId, String, HunksByPath)>> = None;
        let mut held = PartitionedReports { raised: Vec::new(), held_back: Vec::new() };
        for finding in reports {
            let last = said.get(&finding.finding_id).map(|(_, last)| last);
            let dismissed = last.and_then(describe_dismissal);
            let held_by = if let Some(text) = dismissed.filter(|_| !self.is_new_with_panel(&finding.finding_id)) {
                Some((SuppressionReason::Dismissed, text))
            } else if let Some(since) = muted.get(&finding.kind).filter(|_| may_mute(finding.kind).is_ok()) {
                let (kind, day) = (finding.kind, since.strftime("%Y-%m-%d"));
                let text = format!("{kind} is muted since {day}; `revdeck unmute {kind}` has it raised again");
                Some((SuppressionReason::Muted, text))
            } else if let Some(ground) = ground.as_deref_mut().filter(|_| self.may_be_late(&finding)) {
                let earlier = match &earlier {
                    Some(earlier) => earlier,
                    None => earlier.insert(self.load_covered_before()?),
                };
                self.find_covering_run(&finding, earlier, ground).map(|run| {
                    let text = format!("new and not urgent, about lines that are as run {run} reviewed them");
                    (SuppressionReason::Late, text)
                })
            } else {
                None
            };
            match held_by {
                Some((because, reason)) => held.held_back.push(SuppressedReport { finding, because, reason }),
                None => held.raised.push(finding),
            }
        }
        Ok(held)
    }

    /// Returns `true` if no earlier run reported the finding. A new report of another tool comes from a new rule or from
    /// a change elsewhere, and is never late.
    fn may_be_late(&self, finding: &Finding) -> bool {
        self.run.source != Source::Import && finding.first_run_id == self.run.run_id
    }

    /// Returns the earlier reviews with the same reviewer profile: run, snapshot and covered hunks.
    fn load_covered_before(&self) -> Result<Vec<(RunId, String, HunksByPath)>, RunnerError> {
        let mut covered = Vec::new();
        for index in self.find_earlier_reviews(MAX_EARLIER_REVIEWS) {
            let row = self.view.run(index);
            let Ok(id) = row.id.parse::<RunId>() else { continue };
            if let Some(output) = self.services.store.output(&id)? {
                let mut hunks: HunksByPath = HashMap::new();
                for file in output.coverage.reviewed_files() {
                    hunks.entry(file.path.clone()).or_default().extend(&file.hunks);
                }
                covered.push((id, row.snapshot_commit.to_owned(), hunks));
            }
        }
        Ok(covered)
    }

    /// Returns the earlier review that covered the lines of a report unchanged, if that makes the report late.
    fn find_covering_run<'b>(
        &self,
        finding: &Finding,
        earlier: &'b [(RunId, String, HunksByPath)],
        ground: &mut SnapshotFiles<'_>,
    ) -> Option<&'b RunId> {
        let looked = earlier.iter().find(|(_, snapshot, covered)| {
            let stood = ground.locate_before(&finding.repo_relative_path, finding.lines(), snapshot);
            let looked = stood.and_then(|(path, lines)| Some(PriorCoverage { hunks: covered.get(&path)?, lines }));
            policy::is_late(finding.priority, looked)
        });
        looked.map(|(run, ..)| run)
    }
}

/// Describes the dismissal after which `last` is the last line about a finding; `None` if it is not dismissed. A report that was
/// dismissed and then gave way to the finding of a panel's list stays dismissed.
fn describe_dismissal(last: &Disposition) -> Option<String> {
    let day = last.at.strftime("%Y-%m-%d");
    if last.is_merged_dismissal() {
        return last.merged_into.as_ref().map(|into| format!("dismissed, and since {day} listed by a panel as {into}"));
    }
    let by = last.describe_team_author().map(|who| format!(" by {who}")).unwrap_or_default();
    let is_dismissed = last.status == FindingStatus::Dismissed;
    is_dismissed.then(|| format!("dismissed on {day}{by} because {}", last.reason))
}

/// Returns the known findings that held-back reports show at other places. A report that is held back says where its code
/// is, too.
pub(super) fn list_moved(known: &[EarlierFinding], held_back: &[SuppressedReport]) -> Vec<MovedFinding> {
    let known: HashMap<&FindingId, &EarlierFinding> = known.iter().map(|known| (&known.id, known)).collect();
    let moved = held_back.iter().filter_map(|held| {
        let (finding, lines) = (&held.finding, held.finding.lines());
        let known = known.get(&finding.finding_id)?;
        let is_moved = known.path != finding.repo_relative_path || known.lines != lines;
        is_moved.then(|| MovedFinding::new(known.id.clone(), &finding.repo_relative_path, lines))
    });
    moved.collect()
}

/// Holds back everything that a review of a fix reports: the code of the patch is not in the user's files yet.
pub(super) fn hold_back_all(outcome: &mut ReviewOutcome, fix: &FixId) -> LifecycleReport {
    let reason = format!("found in the patch of {fix}, which is in your files only when you apply it");
    let reports = std::mem::take(&mut outcome.findings).into_iter();
    let held_back: Vec<SuppressedReport> = reports
        .map(|finding| SuppressedReport { finding, because: SuppressionReason::OfAFix, reason: reason.clone() })
        .collect();
    note_held_back(outcome, &held_back, FindingCounts::from_findings(held_back.iter().map(|held| &held.finding)));
    LifecycleReport { held_back, ..LifecycleReport::default() }
}

/// Adds notes about held-back reports to the outcome and corrects its counts and summary; `before` are the counts with
/// the held-back reports.
pub(super) fn note_held_back(outcome: &mut ReviewOutcome, held_back: &[SuppressedReport], before: FindingCounts) {
    if held_back.is_empty() {
        return;
    }
    outcome.notes.extend(held_back_notes(held_back));
    outcome.counts = FindingCounts::from_findings(&outcome.findings);
    let [was, is] = [&before, &outcome.counts].map(|counts| describe_result(outcome.status, counts, &outcome.coverage));
    outcome.summary = outcome.summary.replacen(&was, &is, 1);
    outcome.summary.push_str(&format!("; {} held back", held_back.len()));
}

/// Returns one line for each reason.
fn held_back_notes(held_back: &[SuppressedReport]) -> Vec<String> {
    // In the order of their first reports. Reports that a panel lists elsewhere have a reason each.
    let mut reasons: Vec<(&str, usize)> = Vec::new();
    let mut place_of: HashMap<&str, usize> = HashMap::new();
    for held in held_back {
        let place = *place_of.entry(&held.reason).or_insert_with(|| {
            reasons.push((&held.reason, 0));
            reasons.len() - 1
        });
        reasons[place].1 += 1;
    }
    let line = |n, reason: &str| format!("{} held back: {reason}", format_count(n, "finding"));
    let mut notes: Vec<String> = reasons.iter().take(MAX_HELD_NOTES).map(|(reason, n)| line(*n, reason)).collect();
    match reasons.iter().skip(MAX_HELD_NOTES).map(|(_, n)| n).sum::<usize>() {
        0 => {}
        more => notes.push(line(more, "for other reasons; `show RUN --format json` has them under held_back")),
    }
    notes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::Kind;
    use crate::policy::FindingState;
    use crate::policy::anchor::AnchorLocation;

    fn held_back(finding_id: &FindingId, path: &str, lines: LineRange, reason: &str) -> SuppressedReport {
        let run = "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0A";
        let finding = serde_json::json!({
            "finding_id": finding_id, "first_run_id": run, "last_run_id": run, "priority": 2, "severity": "medium",
            "confidence": "high", "kind": "SECURITY", "title": "t", "explanation": "", "repo_relative_path": path,
            "line_start": lines.start, "line_end": lines.end, "quoted_code": "", "status": "open", "detail_ref": "",
            "reported_at": "2026-11-01T00:00:00Z",
        });
        SuppressedReport {
            finding: serde_json::from_value(finding).expect("a finding"),
            because: SuppressionReason::Dismissed,
            reason: reason.to_owned(),
        }
    }

    fn earlier(id: &FindingId, path: &str, lines: LineRange) -> EarlierFinding {
        EarlierFinding {
            id: id.clone(),
            kind: Kind::Security,
            title: String::new(),
            first_run: String::new(),
            path: path.to_owned(),
            lines,
            snapshot: String::new(),
            reviewers: Vec::new(),
            present: FindingState::Dismissed,
            reach: None,
            stand: AnchorLocation::FileGone,
        }
    }

    /// Compares each report with all known findings.
    fn list_moved_plainly(known: &[EarlierFinding], held_back: &[SuppressedReport]) -> Vec<MovedFinding> {
        let mut moved = Vec::new();
        for SuppressedReport { finding, .. } in held_back {
            let lines = finding.lines();
            for known in known.iter().filter(|known| known.id == finding.finding_id) {
                if known.path != finding.repo_relative_path || known.lines != lines {
                    moved.push(MovedFinding::new(known.id.clone(), &finding.repo_relative_path, lines));
                }
            }
        }
        moved
    }

    proptest! {
        #[test]
        fn moved_reports_are_those_that_comparing_all_finds(
            known in prop::collection::btree_map(0..30_u32, (0..2_usize, 1..4_u32), 0..30),
            held in prop::collection::vec((0..30_u32, 0..2_usize, 1..4_u32), 0..30),
        ) {
            let id = |number: u32| FindingId::from_parts("SECURITY", "a.rs", "x", number);
            let place = |path: usize, line: u32| (["a.rs", "b.rs"][path], LineRange::new(line, line + 1));
            let known: Vec<EarlierFinding> = known
                .into_iter()
                .map(|(number, (path, line))| {
                    let (path, lines) = place(path, line);
                    earlier(&id(number), path, lines)
                })
                .collect();
            let held: Vec<SuppressedReport> = held
                .into_iter()
                .map(|(number, path, line)| {
                    let (path, lines) = place(path, line);
                    held_back(&id(number), path, lines, "dismissed")
                })
                .collect();
            prop_assert_eq!(list_moved(&known, &held), list_moved_plainly(&known, &held));
        }
    }

    #[test]
    fn each_reason_has_one_note_in_the_order_of_the_reports() {
        let id = FindingId::from_parts("SECURITY", "a.rs", "x", 0);
        let reasons = ["b", "a", "b", "c", "d", "e", "f", "g", "h", "h"];
        let held: Vec<SuppressedReport> =
            reasons.iter().map(|reason| held_back(&id, "a.rs", LineRange::new(1, 1), reason)).collect();
        let notes = held_back_notes(&held);
        let expected = ["2 findings held back: b", "1 finding held back: a", "1 finding held back: c"];
        assert_eq!(notes[..3], expected);
        assert_eq!(notes.len(), MAX_HELD_NOTES + 1);
        assert!(notes[MAX_HELD_NOTES].starts_with("3 findings held back: for other reasons"), "{notes:?}");
    }
}
