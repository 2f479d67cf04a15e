//! Defines dispositions: the status change of a finding, its author, its reason and its time. They are appended,
//! never rewritten.

use serde::{Deserialize, Serialize};

use super::finding::word_enum;
use super::{FindingId, FindingStatus, RunId, Time};

word_enum!(
    /// Author of a status change.
    Actor { User = "user", Assistant = "assistant", Engine = "engine" }
);
word_enum!(
    /// Origin of a line in the triage file. Undo reverts the last set of the group; redo applies that set again.
    TriageAction { Set = "set", Undo = "undo", Redo = "redo" }
);

const REASON_GENERATED: &str = "generated";
const REASON_FIXED_ELSEWHERE: &str = "fixed elsewhere";
/// Offered before `generated`; older stores contain it.
const REASON_VENDORED: &str = "generated or vendored code";

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
    /// Run in which the engine saw the evidence for this change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// Finding of a panel's list that describes the same problem, because of which this one is obsolete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged_into: Option<FindingId>,
}

impl Disposition {
    /// Dismissal reasons that the user interface offers, in the order of their keys.
    pub const REASONS: [&str; 5] =
        ["not worth it", "false alarm", "intended", REASON_GENERATED, REASON_FIXED_ELSEWHERE];

    /// Returns true if the reason does not concern the shape of the code. The reason may be longer than the offered
    /// text: "Fixed elsewhere, in #12". After `generated` only a punctuation mark may follow, because "generated names
    /// are fine here" is about the code.
    pub fn is_unrelated_to_code(&self) -> bool {
        let reason = self.reason.trim();
        let rest_after = |with: &str| {
            let begin = reason.get(..with.len())?;
            begin.eq_ignore_ascii_case(with).then(|| &reason[with.len()..])
        };
        let is_generated = |rest: &str| rest.is_empty() || rest.starts_with(|next: char| next.is_ascii_punctuation());
        [REASON_VENDORED, REASON_FIXED_ELSEWHERE].into_iter().any(|with| rest_after(with).is_some())
            || rest_after(REASON_GENERATED).is_some_and(is_generated)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
