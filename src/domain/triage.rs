//! Defines dispositions: the status change of a finding, its author, its reason and its time. They are appended,
//! never rewritten.

use serde::{Deserialize, Serialize};

use super::finding::word_enum;
use super::text::sanitize_line;
use super::{FindingId, FindingStatus, MachineName, RunId, TeamOrigin, Time};

word_enum!(
    /// Author of a status change.
    Actor { User = "user", Assistant = "assistant", Engine = "engine" }
);
word_enum!(
    /// Origin of a line in the triage file. Undo reverts the last set of the group; redo applies that set again.
    TriageAction { Set = "set", Undo = "undo", Redo = "redo" }
);

word_enum!(
    /// Class of the reason of a dismissal: the reasons that the user interface offers, and all others.
    DismissalReason {
        NotWorthIt = "not worth it",
        FalseAlarm = "false alarm",
        Intended = "intended",
        Generated = "generated",
        FixedElsewhere = "fixed elsewhere",
        /// The user's own words, which no offered reason begins.
        Other = "other",
    }
);

/// Offered before `generated`; older stores contain it.
const REASON_VENDORED: &str = "generated or vendored code";

impl DismissalReason {
    /// Classifies the text of a reason. The text may be longer than the offered one: "Fixed elsewhere, in #12". After
    /// `generated` only a punctuation mark may follow, because "generated names are fine here" is about the code.
    pub fn from_text(reason: &str) -> Self {
        let reason = reason.trim();
        let rest_after = |with: &str| {
            let begin = reason.get(..with.len())?;
            begin.eq_ignore_ascii_case(with).then(|| &reason[with.len()..])
        };
        let is_of = |class: Self| {
            rest_after(class.word()).is_some_and(|rest| match (class, rest.chars().next()) {
                (Self::FixedElsewhere, _) | (_, None) => true,
                (Self::Generated, Some(next)) => next.is_ascii_punctuation(),
                (_, Some(next)) => !next.is_alphanumeric(),
            })
        };
        if rest_after(REASON_VENDORED).is_some() {
            return Self::Generated;
        }
        let mut offered = Self::ALL.iter().copied().filter(|class| *class != Self::Other);
        offered.find(|class| is_of(*class)).unwrap_or(Self::Other)
    }

    /// Returns true if the reason does not concern the shape of the code, and so says nothing against the report.
    pub fn is_unrelated_to_code(self) -> bool {
        matches!(self, Self::Generated | Self::FixedElsewhere)
    }
}

/// Last disposition of a finding, without its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FindingDecision {
    /// Author of the status.
    pub actor: Actor,
    /// Time of the disposition, to the millisecond.
    pub at: Time,
    /// Class of its reason; meaningful for a dismissal only.
    pub reason: DismissalReason,
}

/// Line of `triage.ndjson`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disposition {
    /// Finding whose status changes.
    pub finding_id: FindingId,
    /// New status.
    pub status: FindingStatus,
    /// Status before the change; an undo needs no search.
    pub previous: FindingStatus,
    /// Author of the change.
    pub actor: Actor,
    /// Reason for the change; required for a dismissal.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Time of the change.
    pub at: Time,
    /// Origin of the line.
    pub action: TriageAction,
    /// Group id of all findings triaged by one keypress; one undo reverts the whole group.
    pub group: String,
    /// Run in which the engine saw the evidence for this change; of a decision, the run of the panel that
    /// [took it over](Self::is_taken_over).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// Finding of a panel's list that describes the same problem, because of which this one is obsolete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged_into: Option<FindingId>,
    /// Decision of another machine of the team that this line repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team: Option<TeamOrigin>,
    /// If true, a job of continuous integration acted for the person. It stands beside `actor` because older versions do not
    /// read a line with an unknown actor.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ci: bool,
}

/// Facts that all lines and records of one decision have in common, also where its words are masked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecisionFacts {
    pub(super) actor: Actor,
    pub(super) ci: bool,
    pub(super) status: FindingStatus,
    pub(super) action: TriageAction,
    pub(super) at: Time,
}

/// Begin of the groups of lines that follow from `revdeck team forget` and `remember`.
const FORGET_PREFIX: &str = "forget_";
/// Begin of the groups of lines by which findings of panels' lists follow no report any longer.
const UNFOLLOW_PREFIX: &str = "unfollow_";

impl Disposition {
    /// Dismissal reasons that the user interface offers, in the order of their keys.
    pub const REASONS: [&str; 5] = [
        DismissalReason::NotWorthIt.word(),
        DismissalReason::FalseAlarm.word(),
        DismissalReason::Intended.word(),
        DismissalReason::Generated.word(),
        DismissalReason::FixedElsewhere.word(),
    ];

    /// Returns the facts by which the line is one of a decision.
    pub fn decision_facts(&self) -> DecisionFacts {
        let Self { actor, ci, status, action, at, .. } = *self;
        DecisionFacts { actor, ci, status, action, at }
    }

    /// Returns the author and machine of a decision that the team sent, as a part of a sentence on one line; `None` for a
    /// decision of this machine.
    pub fn describe_team_author(&self) -> Option<String> {
        let TeamOrigin { id, person } = self.team.as_ref()?;
        let who = match self.actor {
            Actor::Assistant => format!("the assistant of {}", person.label()),
            Actor::User if self.ci => format!("CI for {}", person.label()),
            Actor::User | Actor::Engine => person.label().to_owned(),
        };
        Some(format!("{} on {}", sanitize_line(&who), id.machine))
    }

    /// Returns who made a decision that the team sent, as the end of a sentence: `Bob decided`, `the assistant of Bob claimed`.
    /// `None` for a decision of this machine.
    pub fn describe_team_decision(&self) -> Option<String> {
        let label = sanitize_line(self.team.as_ref()?.person.label()).into_owned();
        Some(match self.actor {
            Actor::Assistant => format!("the assistant of {label} claimed"),
            Actor::User | Actor::Engine => format!("{label} decided"),
        })
    }

    /// Returns true for a decision of a person or an assistant, on whatever machine; false for evidence of a review.
    pub fn is_decision(&self) -> bool {
        self.team.is_some() || self.actor != Actor::Engine
    }

    /// Returns true if somebody has decided so about the report of a panel's member, and the finding of the panel's list took the
    /// decision over. Such a line has the group of the decision.
    pub fn is_taken_over(&self) -> bool {
        self.is_decision() && self.run_id.is_some()
    }

    /// Returns true if the finding of a panel's list takes over a decision of the team about a report by this line. Each machine that
    /// has the list and the decision writes such a line for itself, also the one that decided, and sends it to nobody.
    pub fn follows_report(&self) -> bool {
        self.team.is_some() && self.run_id.is_some()
    }

    /// Returns true for the line by which a report gave way to the finding of a panel's list although a person had dismissed it.
    pub fn is_merged_dismissal(&self) -> bool {
        self.merged_into.is_some()
            && self.forgotten_machine().is_none()
            && self.status == FindingStatus::Obsolete
            && self.previous == FindingStatus::Dismissed
    }

    /// Returns true for an undo after which its author has not decided.
    pub fn is_withdrawal(&self) -> bool {
        self.action == TriageAction::Undo && self.status.is_undecided()
    }

    /// Returns the group of the lines that follow from forgetting a machine.
    pub fn forget_group(machine: &MachineName) -> String {
        format!("{FORGET_PREFIX}{machine}")
    }

    /// Returns the group of the line by which a finding of a panel's list follows no report any longer. `panel` is the run of the panel.
    pub fn unfollow_group(panel: &RunId) -> String {
        format!("{UNFOLLOW_PREFIX}{panel}")
    }

    /// Returns true if the finding of a panel's list follows no report any longer by this line. Such a line is no evidence.
    pub fn unfollows_report(&self) -> bool {
        !self.is_decision() && self.group.starts_with(UNFOLLOW_PREFIX)
    }

    /// Returns the line that makes a report obsolete because the list of a panel's run has its problem under another id.
    pub fn from_merge(report: &FindingId, previous: FindingStatus, listed: &FindingId, run: &RunId, at: Time) -> Self {
        Self {
            finding_id: report.clone(),
            status: FindingStatus::Obsolete,
            previous,
            actor: Actor::Engine,
            reason: format!("the panel lists the problem as {listed}"),
            at,
            action: TriageAction::Set,
            group: run.to_string(),
            run_id: Some(run.clone()),
            merged_into: Some(listed.clone()),
            team: None,
            ci: false,
        }
    }

    /// Returns the line that follows from forgetting a machine: it moves a finding from one status to another.
    pub fn from_forgetting(
        machine: &MachineName,
        finding_id: FindingId,
        (previous, status): (FindingStatus, FindingStatus),
        reason: String,
        at: Time,
    ) -> Self {
        Self {
            finding_id,
            status,
            previous,
            actor: Actor::Engine,
            reason,
            at,
            action: TriageAction::Set,
            group: Self::forget_group(machine),
            run_id: None,
            merged_into: None,
            team: None,
            ci: false,
        }
    }

    /// Returns the machine that was forgotten, or accepted again, if the line follows from that. Such a line is no evidence.
    pub fn forgotten_machine(&self) -> Option<MachineName> {
        self.group.strip_prefix(FORGET_PREFIX).filter(|_| !self.is_decision())?.parse().ok()
    }

    /// Returns the word for what acted: that of the actor, or `ci` for a job of continuous integration.
    pub fn acting_word(&self) -> &'static str {
        if self.ci { "ci" } else { self.actor.word() }
    }

    /// Returns true if the reason does not concern the shape of the code, see [`DismissalReason::is_unrelated_to_code`].
    pub fn is_unrelated_to_code(&self) -> bool {
        DismissalReason::from_text(&self.reason).is_unrelated_to_code()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn continuous_integration_stands_beside_an_actor_that_older_versions_know() {
        let origin = serde_json::json!({
            "clock": [1, 0], "machine": "ci-3f9a2c1d", "person": {"name": "Ada"},
        });
        for (actor, ci, word, elsewhere, decided) in [
            ("user", false, "user", "Ada on ci-3f9a2c1d", "Ada decided"),
            ("user", true, "ci", "CI for Ada on ci-3f9a2c1d", "Ada decided"),
            ("assistant", false, "assistant", "the assistant of Ada on ci-3f9a2c1d", "the assistant of Ada claimed"),
        ] {
            let mut line = serde_json::json!({
                "finding_id": "f_0000000000000001", "status": "addressed", "previous": "open", "actor": actor,
                "at": "2026-03-04T05:06:07Z", "action": "set", "group": "g", "team": origin,
            });
            if ci {
                line["ci"] = true.into();
            }
            let read: Disposition = serde_json::from_value(line.clone()).expect("a disposition");
            assert_eq!((read.acting_word(), read.describe_team_author().as_deref()), (word, Some(elsewhere)));
            assert_eq!(read.describe_team_decision().as_deref(), Some(decided));
            assert_eq!(serde_json::to_value(&read).expect("a line"), line);
        }
    }

    #[test]
    fn of_the_reasons_that_are_offered_two_say_nothing_of_the_code() {
        let is_about_other_things = |reason: &str| {
            let line = serde_json::json!({
                "finding_id": "f_0000000000000001", "status": "dismissed", "previous": "open", "actor": "user",
                "reason": reason, "at": "2026-03-04T05:06:07Z", "action": "set", "group": "g",
            });
            serde_json::from_value::<Disposition>(line).expect("a disposition").is_unrelated_to_code()
        };
        let offered = Disposition::REASONS.map(is_about_other_things);
        assert_eq!(offered, [false, false, false, true, true]);
        for (reason, expected) in [
            (" Fixed elsewhere, in #12", true),
            ("GENERATED or vendored code", true),
            (" Generated ", true),
            ("generated: by protoc", true),
            ("generated names are fine here", false),
            ("generatedness", false),
            ("fixed else", false),
            ("not fixed elsewhere", false),
            ("généré", false),
            ("", false),
        ] {
            assert_eq!(is_about_other_things(reason), expected, "{reason:?}");
        }
    }

    #[test]
    fn every_offered_reason_is_a_class_and_own_words_are_others() {
        for (offered, class) in Disposition::REASONS.into_iter().zip(DismissalReason::ALL) {
            assert_eq!((DismissalReason::from_text(offered), class.word()), (*class, offered));
        }
        for (reason, expected) in [
            ("False alarm: the caller checks it", DismissalReason::FalseAlarm),
            ("false alarms are common here", DismissalReason::Other),
            ("INTENDED.", DismissalReason::Intended),
            ("intended to be so", DismissalReason::Intended),
            ("generated names are fine here", DismissalReason::Other),
            ("not worth it, the file goes away", DismissalReason::NotWorthIt),
            ("as it should be", DismissalReason::Other),
            ("", DismissalReason::Other),
        ] {
            assert_eq!(DismissalReason::from_text(reason), expected, "{reason:?}");
        }
    }
}
