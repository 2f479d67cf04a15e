//! Decides about the status of a finding: who may set it, and which status follows from the evidence of a run.
//!
//! Invariants:
//! - Only evidence or a person changes a status.
//! - A dismissal is remembered, and the engine never undoes it.
//! - Claims and observations are kept apart.
//! - A run says nothing about decisions made after its snapshot.

use thiserror::Error;

use super::ReviewExtent;
use crate::domain::{Actor, Disposition, FindingId, FindingStatus, Kind, RunId, RunStatus, Source, Time, TriageAction};

/// Reason why an actor may not set a status.
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

/// Checks that `actor` may change a finding from one status to another. Undo and redo restore a status that was allowed
/// before and are not checked:
///
/// | to | user | assistant | engine |
/// |---|---|---|---|
/// | open | reopens | no | reported again after obsolete |
/// | unresolved | no | no | reported again after addressed |
/// | addressed | yes | claims, while undecided | confirms |
/// | dismissed | yes | no | no |
/// | obsolete | no | no | yes |
///
/// # Errors
/// Returns the reason if the change is not allowed.
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

/// Returns true if `actor` may cancel a run that `source` requested. An assistant may take back only requests of
/// assistants; the engine cancels for reasons of its own.
pub fn may_cancel(actor: Actor, source: Source) -> bool {
    match actor {
        Actor::User | Actor::Engine => true,
        Actor::Assistant => source == Source::Assistant,
    }
}

/// Returns true if the status needs a reason.
pub fn needs_reason(to: FindingStatus) -> bool {
    to == FindingStatus::Dismissed
}

/// Returns true if a decision about a report that a panel merged into a finding with another id is one about that finding. Who
/// opens the report again takes it out of the finding.
pub fn follows_merge(to: FindingStatus) -> bool {
    to != FindingStatus::Open
}

/// Order of a run's snapshot and the last change of the finding's status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimOrder {
    /// The snapshot is older than the claim, so the run says nothing about the claim.
    SnapshotFirst,
    ClaimFirst,
}

/// State of a finding according to its last disposition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FindingState {
    Open,
    Unresolved,
    /// A person or an assistant says that it is fixed.
    Claimed(Actor),
    /// A review saw that it is fixed.
    Confirmed,
    Dismissed,
    Obsolete,
    /// A person dismissed the report, and it gave way to the finding of a panel's list. It is obsolete, and no review opens it.
    DismissedAndMerged,
}

impl FindingState {
    /// Returns the state after `last`, the last disposition of a finding. Without one it is open.
    pub fn from_last_disposition(last: Option<&Disposition>) -> Self {
        match last.map(|last| (last.status, last.actor)) {
            None | Some((FindingStatus::Open, _)) => Self::Open,
            Some((FindingStatus::Unresolved, _)) => Self::Unresolved,
            Some((FindingStatus::Addressed, Actor::Engine)) => Self::Confirmed,
            Some((FindingStatus::Addressed, actor)) => Self::Claimed(actor),
            Some((FindingStatus::Dismissed, _)) => Self::Dismissed,
            Some((FindingStatus::Obsolete, _)) if last.is_some_and(Disposition::is_merged_dismissal) => {
                Self::DismissedAndMerged
            }
            Some((FindingStatus::Obsolete, _)) => Self::Obsolete,
        }
    }

    pub fn status(self) -> FindingStatus {
        match self {
            Self::Open => FindingStatus::Open,
            Self::Unresolved => FindingStatus::Unresolved,
            Self::Claimed(_) | Self::Confirmed => FindingStatus::Addressed,
            Self::Dismissed => FindingStatus::Dismissed,
            Self::Obsolete | Self::DismissedAndMerged => FindingStatus::Obsolete,
        }
    }
}

/// Observation of a review about a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReviewObservation {
    /// It was reported.
    Raised,
    /// Its code was changed, and the reviewer that reported it confirms on request that the problem still exists.
    StillThere,
    /// Its code was changed, and the review covered the place without reporting it.
    NotRaised,
    /// The tool that reported it checked its file again and does not report it, whether or not its code was changed.
    Missing,
    /// Its code is gone.
    CodeDeleted,
    /// Its file is gone.
    FileGone,
}

/// Evidence of a run about a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Evidence<'a> {
    pub seen: ReviewObservation,
    pub run: &'a RunId,
    pub order: ClaimOrder,
    pub at: Time,
}

/// Returns the disposition that follows from evidence. `None` if the finding keeps its status. Unchanged code is no
/// evidence.
///
/// | state | raised | still there | not raised, missing | code or file gone |
/// |---|---|---|---|---|
/// | open, unresolved | | | addressed | obsolete |
/// | addressed, claimed | unresolved | unresolved | confirmed | confirmed |
/// | addressed, confirmed | unresolved | unresolved | | |
/// | dismissed, also if merged since | | | | |
/// | obsolete | open | | | |
///
/// A confirmation is a disposition of its own, by the engine, after the claim: both stay on record. Deleted code
/// confirms a claim, because somebody acted on the finding. Without a claim the reason for the deletion is unknown, and
/// the finding becomes obsolete.
pub fn next_status(id: &FindingId, present: FindingState, evidence: &Evidence<'_>) -> Option<Disposition> {
    let Evidence { seen, run, order, at } = *evidence;
    if order == ClaimOrder::SnapshotFirst {
        return None;
    }
    let confirmed = |what: &str| (FindingStatus::Addressed, format!("confirmed by run {run}: {what}"));
    let (status, reason) = match (present, seen) {
        (FindingState::Claimed(_) | FindingState::Confirmed, ReviewObservation::Raised) => {
            (FindingStatus::Unresolved, "reported again after it was addressed".to_owned())
        }
        (FindingState::Claimed(_) | FindingState::Confirmed, ReviewObservation::StillThere) => {
            (FindingStatus::Unresolved, "its code was changed, and the problem is still there".to_owned())
        }
        (FindingState::Obsolete, ReviewObservation::Raised) => {
            (FindingStatus::Open, "its code is there again".to_owned())
        }
        (FindingState::Open | FindingState::Unresolved | FindingState::Claimed(_), ReviewObservation::NotRaised) => {
            confirmed("its code was changed, and the review that covered it did not raise it again")
        }
        (FindingState::Open | FindingState::Unresolved | FindingState::Claimed(_), ReviewObservation::Missing) => {
            confirmed("the tool checked its file again and did not report it")
        }
        (FindingState::Claimed(_), ReviewObservation::CodeDeleted) => confirmed("its code was deleted"),
        (FindingState::Claimed(_), ReviewObservation::FileGone) => confirmed("its file is gone"),
        (FindingState::Open | FindingState::Unresolved, ReviewObservation::CodeDeleted) => {
            (FindingStatus::Obsolete, "its code was deleted".to_owned())
        }
        (FindingState::Open | FindingState::Unresolved, ReviewObservation::FileGone) => {
            (FindingStatus::Obsolete, "its file is gone".to_owned())
        }
        _ => return None,
    };
    let confirms = matches!(present, FindingState::Claimed(_)) && status == FindingStatus::Addressed;
    if !confirms {
        may_set(Actor::Engine, present.status(), status).ok()?;
    }
    Some(Disposition {
        finding_id: id.clone(),
        status,
        previous: present.status(),
        actor: Actor::Engine,
        reason,
        at,
        action: TriageAction::Set,
        group: run.to_string(),
        run_id: Some(run.clone()),
        merged_into: None,
        team: None,
        ci: false,
    })
}

/// Name of the reviewer that always reports the same for the same code. Its silence about problems it can detect is
/// evidence.
pub const DETERMINISTIC_REVIEWER: &str = "builtin";

/// Run whose silence about a finding may be evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SilentRun<'a> {
    pub reviewer: &'a str,
    pub status: RunStatus,
    pub extent: ReviewExtent,
}

/// Returns true if a run that covered changed code and did not report a finding there confirms that it is fixed. Only
/// the reviewer that reported the finding counts, because another may never have seen it. A model must have completed
/// its run, because it may not have judged everything it received before the end. The built-in reviewer has finished
/// every file that it covered, but searches for duplicated code last.
pub fn confirms_fix(run: &SilentRun<'_>, reported_by: &str, kind: Kind) -> bool {
    let whole = run.status == RunStatus::Completed && run.extent == ReviewExtent::Whole;
    run.reviewer == reported_by && (whole || (run.reviewer == DETERMINISTIC_REVIEWER && kind != Kind::DuplicateCode))
}

/// Claim and confirmation that a finding is addressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resolution<'a> {
    /// Claim by a person or an assistant.
    pub claimed: Option<&'a Disposition>,
    /// Observation of a review.
    pub confirmed: Option<&'a Disposition>,
}

/// Returns how a finding was addressed, from its history. `None` if it is not addressed.
pub fn find_resolution(history: &[Disposition]) -> Option<Resolution<'_>> {
    let since = history.iter().rposition(|line| line.status != FindingStatus::Addressed).map_or(0, |at| at + 1);
    let addressed = history.get(since..).unwrap_or_default();
    let last = addressed.last()?;
    Some(Resolution {
        claimed: addressed.iter().rev().find(|line| line.actor != Actor::Engine),
        confirmed: (last.actor == Actor::Engine).then_some(last),
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
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

    const RUN: &str = "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0A";

    fn run() -> RunId {
        RUN.parse().expect("an id")
    }

    #[rstest]
    #[case::dismissed(Dismissed, true, FindingState::DismissedAndMerged)]
    #[case::open(Open, true, FindingState::Obsolete)]
    #[case::addressed(Addressed, true, FindingState::Obsolete)]
    #[case::not_merged(Dismissed, false, FindingState::Obsolete)]
    fn a_merged_report_is_known_to_be_dismissed(
        #[case] previous: FindingStatus,
        #[case] is_merged: bool,
        #[case] expected: FindingState,
    ) {
        let [report, listed] = ["report", "listed"].map(|code| FindingId::from_parts("X", "a.rs", code, 0));
        let mut line = Disposition::from_merge(&report, previous, &listed, &run(), Time::UNIX_EPOCH);
        line.merged_into = line.merged_into.filter(|_| is_merged);
        let state = FindingState::from_last_disposition(Some(&line));
        assert_eq!((state, state.status()), (expected, Obsolete));
    }

    /// The status that each observation leads to: raised, still there, not raised (or missing), deleted, file gone.
    #[rstest]
    #[case(FindingState::Open, [None, None, Some(Addressed), Some(Obsolete), Some(Obsolete)])]
    #[case(FindingState::Unresolved, [None, None, Some(Addressed), Some(Obsolete), Some(Obsolete)])]
    #[case(FindingState::Claimed(Actor::User), [Some(Unresolved), Some(Unresolved), Some(Addressed), Some(Addressed), Some(Addressed)])]
    #[case(FindingState::Claimed(Actor::Assistant), [Some(Unresolved), Some(Unresolved), Some(Addressed), Some(Addressed), Some(Addressed)])]
    #[case(FindingState::Confirmed, [Some(Unresolved), Some(Unresolved), None, None, None])]
    #[case(FindingState::Dismissed, [None; 5])]
    #[case(FindingState::Obsolete, [Some(Open), None, None, None, None])]
    #[case(FindingState::DismissedAndMerged, [None; 5])]
    fn evidence(#[case] present: FindingState, #[case] expected: [Option<FindingStatus>; 5]) {
        let (id, run) = (FindingId::from_parts("X", "a.rs", "x", 0), run());
        let seen = [
            ReviewObservation::Raised,
            ReviewObservation::StillThere,
            ReviewObservation::NotRaised,
            ReviewObservation::CodeDeleted,
            ReviewObservation::FileGone,
        ];
        for (seen, expected) in seen.into_iter().zip(expected) {
            let evidence = Evidence { seen, run: &run, order: ClaimOrder::ClaimFirst, at: Time::UNIX_EPOCH };
            let next = next_status(&id, present, &evidence);
            assert_eq!(next.as_ref().map(|line| line.status), expected, "{seen:?}");
            if let Some(line) = next {
                assert_eq!((line.actor, line.previous), (Actor::Engine, present.status()));
                assert_eq!((line.run_id, line.reason.is_empty()), (Some(run.clone()), false));
                let says = line.reason.contains(&format!("confirmed by run {run}"));
                assert_eq!(says, line.status == Addressed, "{:?}", line.reason);
            }
            if seen == ReviewObservation::NotRaised {
                let missing = next_status(&id, present, &Evidence { seen: ReviewObservation::Missing, ..evidence });
                assert_eq!(missing.map(|line| line.status), expected, "missing");
            }
            let before = Evidence { order: ClaimOrder::SnapshotFirst, ..evidence };
            assert_eq!(next_status(&id, present, &before), None, "{seen:?} of code from before");
        }
    }

    #[rstest]
    #[case::the_one_that_reported_it(
        "builtin",
        "builtin",
        Kind::DeadCode,
        RunStatus::Completed,
        ReviewExtent::Whole,
        true
    )]
    #[case::a_model_about_a_smell("opus", "builtin", Kind::DeadCode, RunStatus::Completed, ReviewExtent::Whole, false)]
    #[case::the_smells_about_a_bug(
        "builtin",
        "opus",
        Kind::Correctness,
        RunStatus::Completed,
        ReviewExtent::Whole,
        false
    )]
    #[case::another_model("haiku", "opus", Kind::Correctness, RunStatus::Completed, ReviewExtent::Whole, false)]
    #[case::the_same_model("opus", "opus", Kind::Correctness, RunStatus::Completed, ReviewExtent::Whole, true)]
    #[case::a_model_that_was_stopped(
        "opus",
        "opus",
        Kind::Correctness,
        RunStatus::Cancelled,
        ReviewExtent::Partial,
        false
    )]
    #[case::a_model_of_which_a_part_failed(
        "opus",
        "opus",
        Kind::Api,
        RunStatus::Completed,
        ReviewExtent::Partial,
        false
    )]
    #[case::a_file_is_done("builtin", "builtin", Kind::DeadCode, RunStatus::Cancelled, ReviewExtent::Partial, true)]
    #[case::copies_come_last("builtin", "builtin", Kind::DuplicateCode, RunStatus::Lost, ReviewExtent::Partial, false)]
    fn whose_silence_says_something(
        #[case] reviewer: &'static str,
        #[case] reported_by: &str,
        #[case] kind: Kind,
        #[case] status: RunStatus,
        #[case] extent: ReviewExtent,
        #[case] expected: bool,
    ) {
        assert_eq!(confirms_fix(&SilentRun { reviewer, status, extent }, reported_by, kind), expected);
    }

    #[test]
    fn a_claim_and_its_confirmation_are_two_things() {
        let line = |status, actor| Disposition {
            finding_id: FindingId::from_parts("X", "a.rs", "x", 0),
            status,
            previous: Open,
            actor,
            reason: String::new(),
            at: Time::UNIX_EPOCH,
            action: TriageAction::Set,
            group: String::new(),
            run_id: None,
            merged_into: None,
            team: None,
            ci: false,
        };
        let (user, engine) = (Actor::User, Actor::Engine);
        for (history, expected) in [
            (vec![], None),
            (vec![line(Addressed, user)], Some((Some(user), false))),
            (vec![line(Addressed, engine)], Some((None, true))),
            (vec![line(Addressed, Actor::Assistant), line(Addressed, engine)], Some((Some(Actor::Assistant), true))),
            (vec![line(Addressed, user), line(Addressed, engine), line(Unresolved, engine)], None),
            (vec![line(Addressed, user), line(Unresolved, engine), line(Addressed, engine)], Some((None, true))),
        ] {
            let found = find_resolution(&history);
            let found = found.map(|found| (found.claimed.map(|line| line.actor), found.confirmed.is_some()));
            assert_eq!(found, expected, "{history:?}");
        }
        for status in FindingStatus::ALL {
            for actor in Actor::ALL {
                assert_eq!(FindingState::from_last_disposition(Some(&line(*status, *actor))).status(), *status);
            }
        }
        assert_eq!(FindingState::from_last_disposition(None), FindingState::Open);
    }
}
