//! Compares the decisions of the team with the triage log of this machine, and builds the lines that the log lacks.
//!
//! Pure: the lines follow from the log and the decisions alone. After them, the last decision in the log is the one that stands,
//! and the last line of all gives the status: that decision, or newer evidence of a review. To order the lines for people is the
//! work of [`crate::store::DecisionHistory`].

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::merged_reports::{LeftReport, PanelLists, StandingDecisions, give_way_again};
use super::own_records::{number_decisions, walk_decisions};
use crate::domain::text::sanitize_line;
use crate::domain::{
    Actor, DecisionId, Disposition, FindingId, FindingStatus, MachineName, SharedDecision, TeamOrigin, TeamPerson,
    Time, TriageAction,
};
use crate::policy::{MergedDecision, follow_reports, merge_decisions};
use crate::store::triage::team_group;
use crate::store::{DisputeSide, TeamMembership};

/// Machine whose log is compared.
#[derive(Clone, Copy)]
pub(super) struct LogOwner<'a> {
    pub(super) team: &'a TeamMembership,
    pub(super) person: &'a TeamPerson,
    /// Machines and logs whose records do not count.
    pub(super) forgotten: &'a [MachineName],
    pub(super) now: Time,
}

/// Result of the comparison of some findings.
#[derive(Debug, Default)]
pub(super) struct LogUpdate {
    /// Lines that the log lacks, in the order in which they must be appended.
    pub(super) lines: Vec<Disposition>,
    /// Number of findings whose status changes.
    pub(super) changed: usize,
    /// Findings about which people disagree.
    pub(super) disputes: BTreeMap<FindingId, Vec<DisputeSide>>,
}

/// Compares the log with the decisions of all machines about `findings`, without those of forgotten machines. Own decisions of the
/// log count, too, if they are not among them. `findings` have those that follow their reports ([`MergedReports::add_findings`]), and
/// `decisions` are also about the reports ([`MergedReports::add_reports`]).
///
/// [`MergedReports::add_findings`]: crate::policy::MergedReports::add_findings
/// [`MergedReports::add_reports`]: crate::policy::MergedReports::add_reports
pub(super) fn update_log(
    log: &[Disposition],
    mut decisions: Vec<SharedDecision>,
    findings: &BTreeSet<FindingId>,
    lists: &PanelLists,
    owner: LogOwner<'_>,
) -> LogUpdate {
    let identify = |decision: &SharedDecision| (decision.finding_id.clone(), decision.id.clone());
    let known: HashSet<(FindingId, DecisionId)> = decisions.iter().map(identify).collect();
    let local = number_decisions(log, owner.team, owner.person).into_iter();
    let concerned = lists.reports.add_reports(findings);
    decisions.extend(local.filter(|line| concerned.contains(&line.finding_id) && !known.contains(&identify(line))));
    let mut by_finding: HashMap<&FindingId, Vec<&SharedDecision>> = HashMap::new();
    for decision in &decisions {
        by_finding.entry(&decision.finding_id).or_default().push(decision);
    }
    let merged = merge_decisions(&decisions);
    let known = find_known_lines(log, findings, owner);
    let by_id = StandingDecisions { about: &by_finding, merged: &merged };
    let mut update = LogUpdate::default();
    for finding in findings {
        let known = known.get(finding);
        let outcome = merged.get(finding);
        if let Some(outcome) = outcome.filter(|outcome| !outcome.disputed.is_empty()) {
            update.disputes.insert(finding.clone(), describe_dispute(outcome));
        }
        let direct = outcome.map(|outcome| outcome.standing);
        let about = by_finding.get(finding).map(Vec::as_slice).unwrap_or_default();
        let followed = follow_reports(finding, &lists.reports, &by_finding, &merged);
        let lines = match (followed.filter(|followed| followed.outweighs(direct)), direct) {
            (Some(followed), _) => {
                let taken = followed.to_decision(finding);
                // By a mistake of its machine, a decision about the finding may have the same identity. Then it does not stand.
                let others = about.iter().copied().filter(|other| other.id != taken.id);
                let mut lines = missing_lines(others.chain([&taken]), &taken, known);
                for line in &mut lines {
                    if line.team.as_ref().is_some_and(|origin| origin.id == taken.id) {
                        line.run_id = Some(followed.run.clone());
                    }
                }
                lines
            }
            (None, Some(standing)) => missing_lines(about.iter().copied(), standing, known),
            (None, None) => {
                let back =
                    known.and_then(|known| take_back(known, owner).or_else(|| leave(known, lists, by_id, owner)));
                back.into_iter().collect()
            }
        };
        let before = lines.first().map(|line| line.previous);
        update.changed += usize::from(before != lines.last().map(|line| line.status));
        update.lines.extend(lines);
    }
    let again = give_way_again(log, &update.lines);
    update.lines.extend(again);
    update
}

/// Lines about a finding in the triage log.
#[derive(Default)]
struct KnownLines<'a> {
    /// Last line of each decision.
    decisions: HashMap<DecisionId, &'a Disposition>,
    /// Identity of the last line that is a decision.
    last_decision: Option<DecisionId>,
    /// Last line, with its identity.
    last: Option<(&'a Disposition, DecisionId)>,
    /// Last line that counts: it neither comes from a forgotten machine nor follows from forgetting one, nor follows a report, nor
    /// says that the finding follows none any longer.
    counting: Option<(&'a Disposition, DecisionId)>,
}

fn find_known_lines<'a>(
    log: &'a [Disposition],
    findings: &BTreeSet<FindingId>,
    owner: LogOwner<'_>,
) -> HashMap<&'a FindingId, KnownLines<'a>> {
    let mut known: HashMap<&FindingId, KnownLines<'_>> = HashMap::new();
    walk_decisions(log, owner.team, |line, id, _| {
        if !findings.contains(&line.finding_id) {
            return;
        }
        let lines = known.entry(&line.finding_id).or_default();
        lines.last = Some((line, id.clone()));
        if line.is_decision() {
            lines.last_decision = Some(id.clone());
            lines.decisions.insert(id.clone(), line);
        }
        let is_forgotten = line.team.is_some() && id.machine.is_forgotten(owner.forgotten);
        let is_derived = line.forgotten_machine().is_some() || line.follows_report() || line.unfollows_report();
        if !is_forgotten && !is_derived {
            lines.counting = Some((line, id.clone()));
        }
    });
    known
}

/// Returns the lines that the log lacks about a finding: what others have decided, earliest first, and then the decision that
/// stands. If the engine of this machine has newer evidence, that comes last.
fn missing_lines<'a>(
    decisions: impl Iterator<Item = &'a SharedDecision>,
    standing: &'a SharedDecision,
    known: Option<&KnownLines<'_>>,
) -> Vec<Disposition> {
    let last = known.and_then(|known| known.last.as_ref());
    // The engine moves everything but a dismissal ([`crate::policy::may_set`]).
    let is_binding = standing.status == FindingStatus::Dismissed;
    let counting = known.and_then(|known| known.counting.as_ref());
    // A report that has given way to the finding of a panel's list stays so, also if it was dismissed before. A dismissal that
    // arrives after the merge is none that the list could take over.
    let has_known = known.is_some_and(|known| known.decisions.contains_key(&standing.id));
    let may_follow = |line: &Disposition| !is_binding || (line.merged_into.is_some() && has_known);
    let evidence = counting.filter(|(line, id)| may_follow(line) && !line.is_decision() && *id > standing.id);
    let is_known = |decision: &&SharedDecision| {
        known.is_some_and(|known| known.decisions.get(&decision.id).is_some_and(|line| is_told_by(decision, line)))
    };
    let mut missing: Vec<&SharedDecision> = decisions.filter(|decision| !is_known(decision)).collect();
    missing.sort_unstable();
    let last_id = match evidence {
        Some(_) => known.and_then(|known| known.last_decision.as_ref()),
        None => last.map(|(_, id)| id),
    };
    if missing.last().map(|decision| &decision.id).or(last_id) != Some(&standing.id) {
        missing.retain(|decision| decision.id != standing.id);
        missing.push(standing);
    }
    let mut previous = last.map_or(FindingStatus::Open, |(line, _)| line.status);
    let to_line = |decision: &SharedDecision| {
        let line = build_line(decision, previous);
        previous = line.status;
        line
    };
    let mut lines: Vec<Disposition> = missing.into_iter().map(to_line).collect();
    if let Some((seen, _)) = evidence
        && !lines.is_empty()
    {
        let previous = lines.last().map_or(seen.previous, |line| line.status);
        lines.push(Disposition { previous, ..(*seen).clone() });
    }
    lines
}

/// Returns the line that gives a finding its status without the decision of a forgotten machine, after which no decision is left.
fn take_back(known: &KnownLines<'_>, owner: LogOwner<'_>) -> Option<Disposition> {
    let (last, id) = known.last.as_ref()?;
    let counting = known.counting.as_ref().map(|(line, _)| *line);
    let status = counting.map_or(FindingStatus::Open, |line| line.status);
    let is_forgotten = last.team.is_some() && id.machine.is_forgotten(owner.forgotten);
    (is_forgotten && status != last.status).then(|| {
        let reason = format!("decision of {} no longer counts: machine forgotten", id.machine);
        let (finding, change) = (last.finding_id.clone(), (last.status, status));
        Disposition {
            merged_into: counting.and_then(|line| line.merged_into.clone()),
            ..Disposition::from_forgetting(&id.machine, finding, change, reason, owner.now)
        }
    })
}

/// Returns the line that gives a finding its status back when it follows no report any longer.
fn leave(
    known: &KnownLines<'_>,
    lists: &PanelLists,
    decisions: StandingDecisions<'_>,
    owner: LogOwner<'_>,
) -> Option<Disposition> {
    let (last, _) = known.last.as_ref()?;
    let seen = known.counting.as_ref().map(|(line, _)| *line);
    let left = lists.leave_report(last, seen, decisions)?;
    let (previous, status) = (last.status, seen.map_or(FindingStatus::Open, |line| line.status));
    let line = match left {
        LeftReport::ForgottenList(machine) => {
            let reason = format!("list of {machine} no longer counts: machine forgotten");
            Disposition::from_forgetting(&machine, last.finding_id.clone(), (previous, status), reason, owner.now)
        }
        LeftReport::Replaced(decision) => {
            let finding_id = last.finding_id.clone();
            Disposition { finding_id, status, run_id: last.run_id.clone(), ..build_line(&decision, previous) }
        }
        LeftReport::Unfounded => Disposition {
            status,
            previous,
            actor: Actor::Engine,
            reason: "no decision about a report holds for the finding any longer".to_owned(),
            at: owner.now,
            action: TriageAction::Set,
            group: last.run_id.as_ref().map(Disposition::unfollow_group).unwrap_or_default(),
            team: None,
            ci: false,
            ..(*last).clone()
        },
    };
    Some(Disposition { merged_into: seen.and_then(|line| line.merged_into.clone()), ..line })
}

/// Returns true if a line tells of a decision as the team does. Two decisions with one identity are a mistake of their machine; each
/// member takes the same one.
fn is_told_by(decision: &SharedDecision, line: &Disposition) -> bool {
    // What others have of an own decision may be masked.
    let has_same_words =
        |origin: &TeamOrigin| origin.person == decision.person && line.reason == sanitize_line(&decision.reason);
    line.decision_facts() == decision.decision_facts() && line.team.as_ref().is_none_or(has_same_words)
}

fn build_line(decision: &SharedDecision, previous: FindingStatus) -> Disposition {
    let DecisionId { clock, machine } = &decision.id;
    Disposition {
        finding_id: decision.finding_id.clone(),
        status: decision.status,
        previous,
        actor: decision.actor,
        reason: sanitize_line(&decision.reason).into_owned(),
        at: decision.at,
        action: decision.action,
        group: match decision.group.is_empty() {
            true => team_group(machine, &format!("{}_{}", clock.ms, clock.count)),
            false => team_group(machine, &decision.group),
        },
        run_id: None,
        merged_into: None,
        team: Some(TeamOrigin { id: decision.id.clone(), person: decision.person.clone() }),
        ci: decision.ci,
    }
}

fn describe_dispute(outcome: &MergedDecision<'_>) -> Vec<DisputeSide> {
    let sides = std::iter::once(&outcome.standing).chain(&outcome.disputed);
    sides
        .map(|decision| DisputeSide {
            person: sanitize_line(decision.person.label()).into_owned(),
            machine: decision.id.machine.clone(),
            status: decision.status,
            reason: sanitize_line(&decision.reason).into_owned(),
            at: decision.at,
        })
        .collect()
}

#[cfg(test)]
mod tests;
