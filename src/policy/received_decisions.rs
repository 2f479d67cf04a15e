//! Decides how a finding of a panel's list follows decisions about its reports that arrive from other machines after the list was
//! made.

use crate::domain::{Actor, DecisionId, Disposition, FindingId, FindingStatus, RunId, TriageAction};

/// Report that gave way to a finding of a panel's list.
#[derive(Debug, Clone, Copy)]
pub struct MergedReport<'a> {
    /// Lines about the report, oldest first.
    pub lines: &'a [&'a Disposition],
    /// Run of the panel.
    pub run: &'a RunId,
}

/// Returns the line by which a finding of a panel's list follows its reports; `None` if it stays as it is. `lines` are those about
/// the finding, oldest first.
///
/// - Of the dismissals by people that other machines have sent about its reports, and that stand, the finding takes over the latest.
/// - One that does not stand any longer is taken back.
/// - A finding about which somebody has decided itself keeps that decision.
pub fn follow_received_decisions(
    listed: &FindingId,
    lines: &[&Disposition],
    reports: &[MergedReport<'_>],
) -> Option<Disposition> {
    if lines.iter().any(|line| line.is_decision() && !is_received(line)) {
        return None;
    }
    let last = lines.last();
    let status = last.map_or(FindingStatus::Open, |last| last.status);
    let taken = last.filter(|last| is_received(last) && last.status == FindingStatus::Dismissed);
    let taken = taken.and_then(|taken| id_of(taken));
    let last_lines = reports.iter().filter_map(|report| Some((*report.lines.last()?, report.run)));
    let dismissals =
        last_lines.filter(|(line, _)| line.actor == Actor::User && line.status == FindingStatus::Dismissed);
    let received = dismissals.filter_map(|(line, run)| Some((id_of(line)?, line, run)));
    if let Some((id, line, run)) = received.max_by(|(one, ..), (other, ..)| one.cmp(other)) {
        return (taken != Some(id)).then(|| build_line(listed, line, run, (status, FindingStatus::Dismissed)));
    }
    // The decision may also be about a report that has kept it, of which no line says that it was merged.
    let taken = taken?;
    let is_source = |report: &&MergedReport<'_>| report.lines.iter().any(|line| id_of(line) == Some(taken));
    let report = reports.iter().find(is_source)?;
    let replacing = *report.lines.last()?;
    let is_fixed = replacing.actor == Actor::User && replacing.status == FindingStatus::Addressed;
    let seen = lines.iter().rev().find(|line| !line.is_decision()).map_or(FindingStatus::Open, |line| line.status);
    let next = if is_fixed { FindingStatus::Addressed } else { seen };
    let follows = replacing.team.is_some() || replacing.forgotten_machine().is_some();
    follows.then(|| build_line(listed, replacing, report.run, (status, next)))
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
