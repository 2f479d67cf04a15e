//! Decides which decisions about the reports of a panel's members hold for a finding of its list.
//!
//! While the members of a panel work, people see the reports of each under its own ids. The list of the panel has one finding
//! for all reports of a problem, under one of their ids. A decision about another one of these ids is a decision about the
//! problem, so that the last decision of a person stands, whichever id it names. The finding takes it over, and the other id keeps
//! it, too, while it is the one that stands. A report with another status gives way to the finding.

use super::{Refusal, may_set};
use crate::domain::{Actor, Disposition, FindingStatus, TriageAction};

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
/// - A decision that is earlier than one about the finding itself stays where it is. Evidence of a review, or a claim of an
///   assistant, that is later than a decision outweighs it, unless it is a dismissal.
/// - Dismissals hold whenever they were made, because the same code may have been reviewed before the panel. Other decisions
///   hold if they were made while the members worked, or if a person replaces a decision that would hold else.
/// - An undo that opens a report or the finding again, and a report that a person opened after another panel had listed it
///   elsewhere, say nothing about the finding.
pub fn take_over_decisions<'a>(
    listed: Option<LoggedDecision<'a>>,
    reports: &[LoggedDecision<'a>],
) -> Vec<TakenDecision<'a>> {
    let is_later = |report: &LoggedDecision<'_>| {
        listed.is_none_or(|listed| {
            let by_person = listed.line.actor == Actor::User && !listed.line.is_withdrawal();
            report.place > listed.place || (!by_person && report.line.status == FindingStatus::Dismissed)
        })
    };
    let mut later: Vec<LoggedDecision<'a>> = reports.iter().copied().filter(is_later).collect();
    later.sort_by_key(|report| report.place);
    let mut last = listed.map(|listed| listed.line);
    let mut taken = Vec::new();
    for decision in later {
        let previous = last.map_or(FindingStatus::Open, |last| last.status);
        if is_about_problem(&decision, last) && changes_finding(last, previous, decision.line) {
            taken.push(TakenDecision { decision, previous });
            last = Some(decision.line);
        }
    }
    taken
}

/// Returns true if a line about a report decides about the problem. `last` is the last line about the finding before it.
fn is_about_problem(report: &LoggedDecision<'_>, last: Option<&Disposition>) -> bool {
    let line = report.line;
    let replaces_decision = line.actor == Actor::User && last.is_some_and(Disposition::is_decision);
    line.is_decision()
        && match line.status {
            FindingStatus::Dismissed => true,
            FindingStatus::Addressed => report.is_since_request || replaces_decision,
            FindingStatus::Open => {
                (report.is_since_request || replaces_decision)
                    && line.action != TriageAction::Undo
                    && line.previous != FindingStatus::Obsolete
            }
            FindingStatus::Unresolved | FindingStatus::Obsolete => false,
        }
}

/// Returns true if a report gives way to the finding of the list: from then on, its id stands for that finding. `report` is the last
/// line about its id, and `listed` the last one about the finding, after it has taken decisions over. `is_seen` is true if the panel
/// has seen the problem in code that is not older than the report's last line.
///
/// - An undecided report gives way, unless a person has opened it again after another panel had listed it elsewhere.
/// - A decided one keeps its decision while that is the one that stands for the finding, and gives way to another decision. Where
///   the finding has none, the problem that the panel has seen outweighs a claim that it is fixed, and never a dismissal.
/// - What a review has found fixed or gone, and the panel has seen again, gives way.
pub fn gives_way(report: Option<&Disposition>, listed: Option<&Disposition>, is_seen: bool) -> bool {
    let Some(report) = report else { return true };
    let takes_over = |listed: &Disposition| listed.is_taken_over() && listed.group == report.group;
    let decided = listed.filter(|listed| listed.is_decision() && !listed.is_withdrawal());
    match report.status {
        FindingStatus::Open | FindingStatus::Unresolved => {
            report.actor == Actor::Engine || report.previous != FindingStatus::Obsolete
        }
        FindingStatus::Obsolete => is_seen && report.merged_into.is_none(),
        FindingStatus::Addressed | FindingStatus::Dismissed if report.is_decision() => match decided {
            Some(decided) => !takes_over(decided),
            None => is_seen && report.status == FindingStatus::Addressed,
        },
        FindingStatus::Addressed | FindingStatus::Dismissed => is_seen,
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
    use crate::domain::{FindingId, RunId, Time};
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
    #[case::nor_does_a_later_claim(Some((15, CLAIM)), &[INTENDED], &[(Addressed, Dismissed, "intended")])]
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
            assert_eq!(take(None, &[before], false), []);
        }
    }

    #[test]
    fn a_person_replaces_a_decision_whenever_it_was_made() {
        let (fixed, reopened) = ((Dismissed, Addressed, "fixed".to_owned()), (Dismissed, Open, String::new()));
        assert_eq!(take(Some((5, INTENDED)), &[FIXED], false), std::slice::from_ref(&fixed));
        assert_eq!(take(Some((5, INTENDED)), &[REOPENED], false), [reopened]);
        assert_eq!(take(None, &[INTENDED, FIXED], false), [(Open, Dismissed, "intended".to_owned()), fixed]);
        assert_eq!(take(Some((5, INTENDED)), &[CLAIM], false), [], "an assistant does not");
        assert_eq!(take(Some((15, INTENDED)), &[FIXED], false), [], "the later one is that about the finding");
    }

    /// Author, status before and status after.
    type Statuses = (Actor, FindingStatus, FindingStatus);

    #[rstest]
    #[case::undecided(Some((Engine, Addressed, Unresolved)), None, false, true)]
    #[case::never_decided(None, None, false, true)]
    #[case::opened_after_another_panel(Some((User, Obsolete, Open)), None, true, false)]
    #[case::opened_again(Some((User, Dismissed, Open)), None, false, true)]
    #[case::a_dismissal(Some((User, Open, Dismissed)), None, true, false)]
    #[case::a_dismissal_and_evidence(Some((User, Open, Dismissed)), Some((Engine, Addressed, Unresolved)), true, false)]
    #[case::another_decision_stands(Some((User, Open, Dismissed)), Some((User, Open, Addressed)), false, true)]
    #[case::the_same_was_said_about_the_finding(Some((User, Open, Addressed)), Some((User, Open, Addressed)), false, true)]
    #[case::a_claim_of_an_assistant(Some((Assistant, Open, Addressed)), Some((User, Open, Dismissed)), false, true)]
    #[case::a_claim_that_is_outweighed(Some((User, Open, Addressed)), None, true, true)]
    #[case::a_claim_after_the_code(Some((User, Open, Addressed)), None, false, false)]
    #[case::confirmed_and_seen_again(Some((Engine, Addressed, Addressed)), None, true, true)]
    #[case::confirmed_after_the_code(Some((Engine, Addressed, Addressed)), None, false, false)]
    #[case::gone_and_seen_again(Some((Engine, Open, Obsolete)), None, true, true)]
    fn a_report_gives_way_to_what_stands_for_the_finding(
        #[case] report: Option<Statuses>,
        #[case] listed: Option<Statuses>,
        #[case] is_seen: bool,
        #[case] expected: bool,
    ) {
        let build = |(actor, previous, status): Statuses| line(actor, previous, status, "");
        let (report, listed) = (report.map(build), listed.map(build));
        // Another decision has another group.
        let listed = listed.map(|listed| Disposition { group: "t_2".to_owned(), ..listed });
        assert_eq!(gives_way(report.as_ref(), listed.as_ref(), is_seen), expected);
    }

    #[test]
    fn a_report_keeps_the_decision_that_the_finding_has_taken_over_and_gives_way_once() {
        let run: RunId = format!("ar_{:026}", 7).parse().expect("an id");
        let report = Disposition { group: "t_1".to_owned(), ..line(User, Open, Dismissed, "intended") };
        let listed = Disposition { run_id: Some(run.clone()), ..report.clone() };
        assert!(!gives_way(Some(&report), Some(&listed), true));
        let merged = Disposition::from_merge(&report.finding_id, Open, &listed.finding_id, &run, Time::UNIX_EPOCH);
        assert!(!gives_way(Some(&merged), Some(&listed), true));
    }

    #[test]
    fn an_undone_decision_says_nothing() {
        let dismissed = line(User, Open, Dismissed, "intended");
        let undone = Disposition { action: TriageAction::Undo, ..line(User, Dismissed, Open, "") };
        let at = |line, place| LoggedDecision { line, place, is_since_request: true };
        assert_eq!(take_over_decisions(Some(at(&dismissed, 5)), &[at(&undone, 10)]), []);
        // Nor does one about the finding outweigh an earlier dismissal of the report.
        let taken = take_over_decisions(Some(at(&undone, 10)), &[at(&dismissed, 5)]);
        assert_eq!(taken.iter().map(|taken| taken.decision.line).collect::<Vec<_>>(), [&dismissed]);
        assert!(!gives_way(Some(&dismissed), Some(&undone), true));
    }
}
