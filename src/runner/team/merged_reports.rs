//! Lets decisions of other machines about reports that gave way to the finding of a panel's list here reach that finding.
//!
//! A decision may arrive after the panel has made its list. The finding then follows the last lines about its reports, as
//! [`policy::follow_received_decisions`] decides, so that the order in which the panel and the decisions came makes no difference. A report about
//! which nothing is decided any longer gives way again.
//!
//! The lines repeat decisions of others, like those that a panel takes over, and are not sent.

use std::collections::{BTreeSet, HashMap};

use crate::domain::{Disposition, FindingId, FindingStatus, RunId};
use crate::policy::{self, MergedReport};
use crate::store::LastLines;

/// Finding of a panel's list, with its reports and the runs of the panels that merged them.
type MergedReports<'a> = Vec<(&'a FindingId, MergeLine<'a>)>;

/// Last line by which a report gave way.
#[derive(Clone, Copy)]
struct MergeLine<'a> {
    line: &'a Disposition,
    run: &'a RunId,
}

/// Returns the lines that follow from `new` lines of the team, which will be appended to the log before them.
pub(super) fn follow_reports(log: &[Disposition], new: &[Disposition]) -> Vec<Disposition> {
    if new.is_empty() {
        return Vec::new();
    }
    let mut merges: HashMap<&FindingId, (&FindingId, MergeLine<'_>)> = HashMap::new();
    for line in log {
        // Who opens a report takes it out of the finding.
        let is_opened = line.status == FindingStatus::Open && line.previous == FindingStatus::Obsolete;
        if let (Some(listed), Some(run)) = (&line.merged_into, &line.run_id) {
            merges.insert(&line.finding_id, (listed, MergeLine { line, run }));
        } else if is_opened && !line.is_withdrawal() {
            merges.remove(&line.finding_id);
        }
    }
    if merges.is_empty() {
        return Vec::new();
    }
    let last = LastLines::new(log);
    let mut reports_of: HashMap<&FindingId, MergedReports<'_>> = HashMap::new();
    for (report, (listed, merge)) in merges {
        reports_of.entry(last.follow_merges(listed)).or_default().push((report, merge));
    }
    let changed: BTreeSet<&FindingId> = new.iter().map(|line| &line.finding_id).collect();
    let is_concerned = |reports: &MergedReports<'_>| reports.iter().any(|(report, _)| changed.contains(report));
    reports_of.retain(|_, reports| is_concerned(reports));
    let mut lines_about: HashMap<&FindingId, Vec<&Disposition>> = HashMap::new();
    for (listed, reports) in &reports_of {
        for id in reports.iter().map(|(report, _)| *report).chain([*listed]) {
            lines_about.insert(id, Vec::new());
        }
    }
    for line in log.iter().chain(new) {
        if let Some(lines) = lines_about.get_mut(&line.finding_id) {
            lines.push(line);
        }
    }
    let mut concerned: Vec<(&FindingId, MergedReports<'_>)> = reports_of.into_iter().collect();
    concerned.sort_unstable_by_key(|(listed, _)| *listed);
    let mut following = Vec::new();
    for (listed, mut reports) in concerned {
        reports.sort_unstable_by_key(|(report, _)| *report);
        let about = |id: &FindingId| lines_about.get(id).map(Vec::as_slice).unwrap_or_default();
        let merged: Vec<MergedReport<'_>> =
            reports.iter().map(|(report, merge)| MergedReport { lines: about(report), run: merge.run }).collect();
        following.extend(policy::follow_received_decisions(listed, about(listed), &merged));
        for (report, merge) in reports.iter().filter(|(report, _)| changed.contains(report)) {
            let withdrawn = about(report).last().filter(|last| last.is_withdrawal());
            following.extend(withdrawn.map(|last| Disposition { previous: last.status, ..merge.line.clone() }));
        }
    }
    following
}
