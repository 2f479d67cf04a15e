//! Lets decisions of other machines about reports that gave way to the finding of a panel's list here reach that finding.
//!
//! A decision may arrive after the panel has made its list. The finding then follows the last lines about its reports, so that the
//! order in which the panel and the decisions came makes no difference:
//!
//! - Of the dismissals by people that stand for its reports, the finding takes over the latest.
//! - One that does not stand any longer is taken back. A report about which nothing is decided any longer gives way again.
//! - A finding about which somebody has decided itself keeps that decision.
//!
//! The lines repeat decisions of others, like those that a panel takes over, and are not sent.

use std::collections::{BTreeSet, HashMap};

use crate::domain::{Actor, DecisionId, Disposition, FindingId, FindingStatus, RunId, TriageAction};
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
        following.extend(follow_one(listed, &reports, &lines_about));
        for (report, merge) in reports.iter().filter(|(report, _)| changed.contains(report)) {
            let last = lines_about.get(report).and_then(|lines| lines.last());
            let withdrawn = last.filter(|last| last.is_withdrawal());
            following.extend(withdrawn.map(|last| Disposition { previous: last.status, ..merge.line.clone() }));
        }
    }
    following
}

/// Returns the line by which a finding follows its reports; `None` if it stays as it is.
fn follow_one(
    listed: &FindingId,
    reports: &[(&FindingId, MergeLine<'_>)],
    lines_about: &HashMap<&FindingId, Vec<&Disposition>>,
) -> Option<Disposition> {
    let lines = lines_about.get(listed)?;
    if lines.iter().any(|line| line.is_decision() && !is_received(line)) {
        return None;
    }
    let last = lines.last();
    let status = last.map_or(FindingStatus::Open, |last| last.status);
    let taken = last.filter(|last| is_received(last) && last.status == FindingStatus::Dismissed);
    let taken = taken.and_then(|taken| id_of(taken));
    let about = |report: &FindingId| lines_about.get(report).map(Vec::as_slice).unwrap_or_default();
    let last_lines = reports.iter().filter_map(|(report, merge)| Some((*about(report).last()?, merge.run)));
    let dismissals =
        last_lines.filter(|(line, _)| line.actor == Actor::User && line.status == FindingStatus::Dismissed);
    let received = dismissals.filter_map(|(line, run)| Some((id_of(line)?, line, run)));
    if let Some((id, line, run)) = received.max_by(|(one, ..), (other, ..)| one.cmp(other)) {
        return (taken != Some(id)).then(|| build_line(listed, line, run, (status, FindingStatus::Dismissed)));
    }
    // The decision may also be about a report that has kept it, of which no line says that it was merged.
    let taken = taken?;
    let is_source = |report: &FindingId| about(report).iter().any(|line| id_of(line) == Some(taken));
    let (report, merge) = reports.iter().find(|(report, _)| is_source(report))?;
    let replacing = *about(report).last()?;
    let is_fixed = replacing.actor == Actor::User && replacing.status == FindingStatus::Addressed;
    let seen = lines.iter().rev().find(|line| !line.is_decision()).map_or(FindingStatus::Open, |line| line.status);
    let next = if is_fixed { FindingStatus::Addressed } else { seen };
    let follows = replacing.team.is_some() || replacing.forgotten_machine().is_some();
    follows.then(|| build_line(listed, replacing, merge.run, (status, next)))
}

/// Returns true for a line by which the finding of a list took over a decision of another machine about a report.
fn is_received(line: &Disposition) -> bool {
    line.team.is_some() && line.is_taken_over()
}

fn id_of(line: &Disposition) -> Option<&DecisionId> {
    line.team.as_ref().map(|origin| &origin.id)
}

/// Builds the line by which a finding takes over a line about a report.
fn build_line(
    listed: &FindingId,
    line: &Disposition,
    run: &RunId,
    (previous, status): (FindingStatus, FindingStatus),
) -> Disposition {
    // Also a dismissal that was redone is one that the finding takes over.
    let action = if status == FindingStatus::Dismissed { TriageAction::Set } else { line.action };
    let run_id = Some(run.clone());
    Disposition { finding_id: listed.clone(), status, previous, action, run_id, merged_into: None, ..line.clone() }
}
