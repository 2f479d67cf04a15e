//! Decides which decisions about the reports of a panel's members hold for a finding of its list.
//!
//! While the members of a panel work, people see the reports of each under its own ids. The list of the panel has one finding
//! for all reports of a problem, under one of their ids. A decision about another one of these ids is a decision about the
//! problem, so the finding takes it over. The other id keeps it, too: a dismissal is never taken back.

use super::{Refusal, may_set};
use crate::domain::{Disposition, FindingStatus, TriageAction};

/// Last line of the triage log about an id.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoggedDecision<'a> {
    pub line: &'a Disposition,
    /// Place of the line in the log, in which decisions stand in the order in which this machine learned of them.
    pub place: u64,
    /// True if the line came after the request for the panel: while its members worked.
    pub is_since_request: bool,
}

/// Decision that a finding takes over.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TakenDecision<'a> {
    pub decision: LoggedDecision<'a>,
    /// Status of the finding before it.
    pub previous: FindingStatus,
}

/// Returns the decisions that a finding of a panel's list takes over, in the order of the log: the last one stands. `listed` is
/// the last line about the finding, and `reports` are those about the other ids of its problem.
///
/// - A decision that is earlier than one about the finding itself stays where it is. Evidence of a review that is later than a
///   decision outweighs it, unless it is a dismissal.
/// - Dismissals hold whenever they were made, because the same code may have been reviewed before the panel. Other decisions
///   hold if they were made while the members worked.
/// - An undo that opens a report again, and a report that a person opened after another panel had listed it elsewhere, say
///   nothing about the finding.
pub fn take_over_decisions<'a>(
    listed: Option<LoggedDecision<'a>>,
    reports: &[LoggedDecision<'a>],
) -> Vec<TakenDecision<'a>> {
    let is_later = |report: &LoggedDecision<'_>| {
        listed.is_none_or(|listed| {
            let is_evidence = !listed.line.is_decision();
            report.place > listed.place || (is_evidence && report.line.status == FindingStatus::Dismissed)
        })
    };
    let mut later: Vec<LoggedDecision<'a>> =
        reports.iter().copied().filter(|report| is_about_problem(report) && is_later(report)).collect();
    later.sort_by_key(|report| report.place);
    let mut last = listed.map(|listed| listed.line);
    let mut taken = Vec::new();
    for decision in later {
        let previous = last.map_or(FindingStatus::Open, |last| last.status);
        if changes_finding(last, previous, decision.line) {
            taken.push(TakenDecision { decision, previous });
            last = Some(decision.line);
        }
    }
    taken
}

/// Returns true if a line about a report decides about the problem.
fn is_about_problem(report: &LoggedDecision<'_>) -> bool {
    let line = report.line;
    line.is_decision()
        && match line.status {
            FindingStatus::Dismissed => true,
            FindingStatus::Addressed => report.is_since_request,
            FindingStatus::Open => {
                report.is_since_request && line.action != TriageAction::Undo && line.previous != FindingStatus::Obsolete
            }
            FindingStatus::Unresolved | FindingStatus::Obsolete => false,
        }
}

/// Returns true if its author may decide so about a finding with this status, and if the decision says something new.
fn changes_finding(last: Option<&Disposition>, status: FindingStatus, decision: &Disposition) -> bool {
    match may_set(decision.actor, status, decision.status) {
        Ok(()) => true,
        // Another reason for the same.
        Err(Refusal::AlreadySo(_)) => {
            status == FindingStatus::Dismissed && last.is_some_and(|last| last.reason != decision.reason)
        }
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::domain::{Actor, FindingId, Time};
    use Actor::{Assistant, Engine, User};
    use FindingStatus::{Addressed, Dismissed, Obsolete, Open, Unresolved};

    fn line(actor: Actor, previous: FindingStatus, status: FindingStatus, reason: &str) -> Disposition {
        Disposition {
            finding_id: FindingId::from_parts("X", "a.rs", reason, 0),
            status,
            previous,
            actor,
            reason: reason.to_owned(),
            at: Time::UNIX_EPOCH,
            action: TriageAction::Set,
            group: String::new(),
            run_id: None,
            merged_into: None,
            team: None,
            ci: false,
        }
    }

    /// Author, status before and after, reason.
    type LineFacts = (Actor, FindingStatus, FindingStatus, &'static str);

    /// Returns the statuses before and after what a finding takes over, with the reasons. Lines stand at the places 10, 20 and
    /// so on, those of `reports` in their order; the line about the finding itself stands at `place`.
    fn take(
        listed: Option<(u64, LineFacts)>,
        reports: &[LineFacts],
        is_since_request: bool,
    ) -> Vec<(FindingStatus, FindingStatus, String)> {
        let build = |&(actor, previous, status, reason): &LineFacts| line(actor, previous, status, reason);
        let own = listed.map(|(place, facts)| (place, build(&facts)));
        let lines: Vec<Disposition> = reports.iter().map(build).collect();
        let listed = own.as_ref().map(|(place, line)| LoggedDecision { line, place: *place, is_since_request });
        let places = (1..).map(|number| number * 10);
        // The order of the ids is not that of the decisions.
        let mut reports: Vec<LoggedDecision<'_>> =
            lines.iter().zip(places).map(|(line, place)| LoggedDecision { line, place, is_since_request }).collect();
        reports.reverse();
        let taken = take_over_decisions(listed, &reports);
        let outline = taken.iter().map(|taken| {
            let line = taken.decision.line;
            (taken.previous, line.status, line.reason.clone())
        });
        outline.collect()
    }

    const INTENDED: LineFacts = (User, Open, Dismissed, "intended");
    const FALSE_ALARM: LineFacts = (User, Open, Dismissed, "false alarm");
    const FIXED: LineFacts = (User, Open, Addressed, "fixed");
    const CLAIM: LineFacts = (Assistant, Open, Addressed, "done");
    const REOPENED: LineFacts = (User, Dismissed, Open, "");
    const SEEN_AGAIN: LineFacts = (Engine, Addressed, Unresolved, "seen");

    #[rstest]
    #[case::nothing(None, &[], &[])]
    #[case::one(None, &[INTENDED], &[(Open, Dismissed, "intended")])]
    #[case::a_claim(None, &[CLAIM], &[(Open, Addressed, "done")])]
    #[case::the_later_stands(None, &[INTENDED, FIXED], &[(Open, Dismissed, "intended"), (Dismissed, Addressed, "fixed")])]
    #[case::the_later_reason_stands(None, &[INTENDED, FALSE_ALARM],
        &[(Open, Dismissed, "intended"), (Dismissed, Dismissed, "false alarm")])]
    #[case::the_same_twice(None, &[INTENDED, INTENDED], &[(Open, Dismissed, "intended")])]
    #[case::the_finding_is_decided_later(Some((15, FIXED)), &[INTENDED], &[])]
    #[case::the_finding_was_decided_before(Some((5, FIXED)), &[INTENDED], &[(Addressed, Dismissed, "intended")])]
    #[case::between(Some((15, FIXED)), &[INTENDED, FALSE_ALARM], &[(Addressed, Dismissed, "false alarm")])]
    #[case::an_assistant_changes_no_dismissal(None, &[INTENDED, CLAIM], &[(Open, Dismissed, "intended")])]
    #[case::evidence_outweighs_a_claim(Some((15, SEEN_AGAIN)), &[CLAIM], &[])]
    #[case::and_no_dismissal(Some((15, SEEN_AGAIN)), &[INTENDED], &[(Unresolved, Dismissed, "intended")])]
    #[case::opened_again(Some((5, INTENDED)), &[REOPENED], &[(Dismissed, Open, "")])]
    #[case::opened_after_another_panel(Some((5, INTENDED)), &[(User, Obsolete, Open, "")], &[])]
    #[case::evidence(None, &[SEEN_AGAIN], &[])]
    fn a_finding_takes_over_later_decisions(
        #[case] listed: Option<(u64, LineFacts)>,
        #[case] reports: &[LineFacts],
        #[case] expected: &[(FindingStatus, FindingStatus, &str)],
    ) {
        let taken = take(listed, reports, true);
        let taken: Vec<(FindingStatus, FindingStatus, &str)> =
            taken.iter().map(|(previous, status, reason)| (*previous, *status, reason.as_str())).collect();
        assert_eq!(taken, expected);
    }

    #[test]
    fn of_what_was_decided_before_the_panel_only_a_dismissal_holds() {
        assert_eq!(take(None, &[INTENDED], false), [(Open, Dismissed, "intended".to_owned())]);
        for before in [FIXED, CLAIM, REOPENED] {
            assert_eq!(take(Some((5, INTENDED)), &[before], false), []);
        }
    }

    #[test]
    fn an_undone_decision_says_nothing() {
        let dismissed = line(User, Open, Dismissed, "intended");
        let undone = Disposition { action: TriageAction::Undo, ..line(User, Dismissed, Open, "") };
        let at = |line, place| LoggedDecision { line, place, is_since_request: true };
        assert_eq!(take_over_decisions(Some(at(&dismissed, 5)), &[at(&undone, 10)]), []);
    }
}
