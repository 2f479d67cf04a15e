//! The life of a finding: who may set which status, and what a new report of it means.
//!
//! Invariants: only evidence or a person changes a status; a dismissal is remembered, the engine never undoes it.

use thiserror::Error;

use crate::domain::{Actor, Disposition, Finding, FindingStatus, RunId, Time, TriageAction};

/// Why somebody may not set a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Refusal {
    #[error("it is {0} already")]
    AlreadySo(FindingStatus),
    #[error("only revdeck itself sets {0}, from what a review saw")]
    EngineOnly(FindingStatus),
    #[error("only the user may set {0}")]
    UserOnly(FindingStatus),
    #[error("it was {0} by the user, and only the user may change that")]
    DecidedByUser(FindingStatus),
}

/// Whether `actor` may change a finding from one status to another (undo and redo restore what was allowed once and do
/// not ask):
///
/// | to | user | assistant | engine |
/// |---|---|---|---|
/// | open | reopens | no | reported again after obsolete |
/// | unresolved | no | no | reported again after addressed |
/// | addressed | yes | claims, while undecided | confirms |
/// | dismissed | yes | no | no |
/// | obsolete | no | no | yes |
pub fn may_set(actor: Actor, from: FindingStatus, to: FindingStatus) -> Result<(), Refusal> {
    use FindingStatus::*;
    if from == to {
        return Err(Refusal::AlreadySo(to));
    }
    match (actor, from, to) {
        (Actor::User, _, Open | Addressed | Dismissed) => Ok(()),
        (Actor::User | Actor::Assistant, _, Unresolved | Obsolete) => Err(Refusal::EngineOnly(to)),
        (Actor::Assistant, _, Open | Dismissed) => Err(Refusal::UserOnly(to)),
        (Actor::Assistant, Open | Unresolved, Addressed) => Ok(()),
        (Actor::Assistant, Dismissed, Addressed) => Err(Refusal::DecidedByUser(from)),
        (Actor::Assistant, _, Addressed) => Err(Refusal::EngineOnly(from)),
        (Actor::Engine, Dismissed, _) => Err(Refusal::DecidedByUser(from)),
        (Actor::Engine, _, Dismissed) => Err(Refusal::UserOnly(to)),
        (Actor::Engine, _, Open | Unresolved | Addressed | Obsolete) => Ok(()),
    }
}

/// Whether a status is only set with a reason.
pub fn needs_reason(to: FindingStatus) -> bool {
    to == FindingStatus::Dismissed
}

/// Whether the code that a run saw was frozen before or after the finding's status was last set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimOrder {
    /// The run looked at code from before the claim: it says nothing about the claim.
    SnapshotFirst,
    ClaimFirst,
}

/// What a review saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evidence<'a> {
    /// The run reported the finding.
    Reported { run: &'a RunId, order: ClaimOrder, at: Time },
}

/// What a finding becomes through evidence; `None` when it stays what it is. `finding.status` is its present status.
pub fn next_status(finding: &Finding, evidence: &Evidence<'_>) -> Option<Disposition> {
    let Evidence::Reported { run, order, at } = *evidence;
    let (status, reason) = match (finding.status, order) {
        (FindingStatus::Addressed, ClaimOrder::ClaimFirst) => {
            (FindingStatus::Unresolved, "reported again after it was addressed")
        }
        (FindingStatus::Obsolete, ClaimOrder::ClaimFirst) => (FindingStatus::Open, "its code is there again"),
        _ => return None,
    };
    may_set(Actor::Engine, finding.status, status).ok()?;
    Some(Disposition {
        finding_id: finding.finding_id.clone(),
        status,
        previous: finding.status,
        actor: Actor::Engine,
        reason: reason.to_owned(),
        at,
        action: TriageAction::Set,
        group: run.to_string(),
        run_id: Some(run.clone()),
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::domain::{Confidence, FindingId, Kind, Priority, Severity};

    use FindingStatus::*;

    /// For each actor and each `from`, the statuses it may set, in the order of [`FindingStatus::ALL`].
    #[rstest]
    #[case(Actor::User, Open, &[Addressed, Dismissed])]
    #[case(Actor::User, Unresolved, &[Open, Addressed, Dismissed])]
    #[case(Actor::User, Addressed, &[Open, Dismissed])]
    #[case(Actor::User, Dismissed, &[Open, Addressed])]
    #[case(Actor::User, Obsolete, &[Open, Addressed, Dismissed])]
    #[case(Actor::Assistant, Open, &[Addressed])]
    #[case(Actor::Assistant, Unresolved, &[Addressed])]
    #[case(Actor::Assistant, Addressed, &[])]
    #[case(Actor::Assistant, Dismissed, &[])]
    #[case(Actor::Assistant, Obsolete, &[])]
    #[case(Actor::Engine, Open, &[Unresolved, Addressed, Obsolete])]
    #[case(Actor::Engine, Unresolved, &[Open, Addressed, Obsolete])]
    #[case(Actor::Engine, Addressed, &[Open, Unresolved, Obsolete])]
    #[case(Actor::Engine, Dismissed, &[])]
    #[case(Actor::Engine, Obsolete, &[Open, Unresolved, Addressed])]
    fn who_may_set_what(#[case] actor: Actor, #[case] from: FindingStatus, #[case] allowed: &[FindingStatus]) {
        let may: Vec<FindingStatus> =
            FindingStatus::ALL.iter().copied().filter(|&to| may_set(actor, from, to).is_ok()).collect();
        assert_eq!(may, allowed);
    }

    #[test]
    fn refusals_say_why() {
        for (actor, from, to, says) in [
            (Actor::User, Open, Open, "open already"),
            (Actor::User, Open, Obsolete, "only revdeck itself sets obsolete"),
            (Actor::Assistant, Open, Dismissed, "only the user may set dismissed"),
            (Actor::Assistant, Dismissed, Addressed, "dismissed by the user"),
            (Actor::Engine, Dismissed, Open, "dismissed by the user"),
        ] {
            let refusal = may_set(actor, from, to).expect_err("refused").to_string();
            assert!(refusal.contains(says), "{refusal:?} does not say {says:?}");
        }
    }

    #[rstest]
    #[case(Open, ClaimOrder::ClaimFirst, None)]
    #[case(Unresolved, ClaimOrder::ClaimFirst, None)]
    #[case(Addressed, ClaimOrder::ClaimFirst, Some(Unresolved))]
    #[case(Addressed, ClaimOrder::SnapshotFirst, None)]
    #[case(Dismissed, ClaimOrder::ClaimFirst, None)]
    #[case(Obsolete, ClaimOrder::ClaimFirst, Some(Open))]
    #[case(Obsolete, ClaimOrder::SnapshotFirst, None)]
    fn reported_again(
        #[case] status: FindingStatus,
        #[case] order: ClaimOrder,
        #[case] expected: Option<FindingStatus>,
    ) {
        let run: RunId = "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0A".parse().expect("an id");
        let finding = Finding {
            finding_id: FindingId::of("X", "a.rs", "x", 0),
            first_run_id: run.clone(),
            last_run_id: run.clone(),
            priority: Priority::P2,
            severity: Severity::Low,
            confidence: Confidence::High,
            kind: Kind::MagicNumbers,
            title: String::new(),
            explanation: String::new(),
            repo_relative_path: "a.rs".into(),
            line_start: 1,
            line_end: 1,
            quoted_code: String::new(),
            suggestion: None,
            status,
            detail_ref: String::new(),
            reported_at: Time::UNIX_EPOCH,
        };
        let next = next_status(&finding, &Evidence::Reported { run: &run, order, at: Time::UNIX_EPOCH });
        assert_eq!(next.as_ref().map(|disposition| disposition.status), expected);
        if let Some(disposition) = next {
            assert_eq!((disposition.actor, disposition.previous), (Actor::Engine, status));
            assert_eq!(disposition.run_id, Some(run));
        }
    }
}
