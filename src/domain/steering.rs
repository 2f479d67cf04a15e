//! Defines how earlier decisions steer a review: the kinds of findings about which its reviewer is almost always wrong, and
//! the priority that a finding of such a kind was lowered from.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Finding, Kind, Priority, WordStyle};

/// Kind of findings about which a reviewer is almost always wrong, with the decisions that show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SteeredKind {
    /// The kind.
    pub kind: Kind,
    /// Number of accepted findings.
    pub accepted: u32,
    /// Number of dismissed findings, without those whose reason does not concern the code.
    pub wrong: u32,
}

/// Step by which the priority of a finding was lowered, because such findings are almost always dismissed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoweredPriority {
    /// Priority that the reviewer reported.
    pub from: Priority,
    /// Priority after the step.
    pub to: Priority,
    /// Reason for a person, a sentence without its full stop.
    pub because: String,
}

impl SteeredKind {
    /// Lowers the priority of a finding of this kind by one step, and writes the step on the finding. A finding of the
    /// lowest priority, a lowered one, and one of a kind that [is never lowered](Kind::is_never_lowered) stay as they are.
    pub fn lower(&self, finding: &mut Finding, reviewer: &str) {
        let to = finding.priority.one_lower();
        let Some(to) = to.filter(|_| finding.kind == self.kind && finding.lowered.is_none()) else { return };
        if finding.kind.is_never_lowered() {
            return;
        }
        let Self { kind, accepted, wrong } = self;
        let because =
            format!("{accepted} of {} {kind} findings of {reviewer} were accepted", accepted.saturating_add(*wrong));
        finding.lowered = Some(LoweredPriority { from: finding.priority, to, because });
        finding.priority = to;
    }
}

impl LoweredPriority {
    /// Describes the step: `lowered from p1 to p2: 1 of 24 DOCS findings of deep were accepted`.
    pub fn describe(&self, words: WordStyle) -> String {
        format!("lowered from {} to {}: {}", words.priority(self.from), words.priority(self.to), self.because)
    }
}

impl fmt::Display for LoweredPriority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe(WordStyle::Plain))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Confidence, FindingStatus, FindingStep, Severity, Time};

    fn finding(kind: Kind, priority: Priority) -> Finding {
        let run: crate::domain::RunId = "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0E".parse().expect("an id");
        Finding {
            finding_id: "f_0000000000000001".parse().expect("an id"),
            first_run_id: run.clone(),
            last_run_id: run,
            priority,
            severity: Severity::Medium,
            confidence: Confidence::High,
            kind,
            title: String::new(),
            explanation: String::new(),
            repo_relative_path: "a.rs".into(),
            line_start: 1,
            line_end: 1,
            quoted_code: String::new(),
            suggestion: None,
            pattern: None,
            lowered: None,
            status: FindingStatus::Open,
            detail_ref: String::new(),
            reported_at: Time::UNIX_EPOCH,
            voices: Vec::new(),
            steps: Vec::new(),
            disputed: Vec::new(),
            symbol: None,
        }
    }

    #[test]
    fn a_finding_is_lowered_by_one_step_and_says_so() {
        for (steered, kind, from, to) in [
            (Kind::Docs, Kind::Docs, Priority::P1, Priority::P2),
            (Kind::Docs, Kind::Docs, Priority::P3, Priority::P3),
            (Kind::Docs, Kind::Tests, Priority::P1, Priority::P1),
            (Kind::Security, Kind::Security, Priority::P1, Priority::P1),
            (Kind::Concurrency, Kind::Concurrency, Priority::P2, Priority::P2),
            (Kind::Correctness, Kind::Correctness, Priority::P0, Priority::P0),
        ] {
            let mut lowered = finding(kind, from);
            let steered = SteeredKind { kind: steered, accepted: 1, wrong: 23 };
            steered.lower(&mut lowered, "deep");
            // A second time changes nothing.
            steered.lower(&mut lowered, "deep");
            assert_eq!(lowered.priority, to, "{kind} {from}");
            let said = lowered.lowered.as_ref().map(ToString::to_string);
            let expected = "lowered from p1 to p2: 1 of 24 DOCS findings of deep were accepted".to_owned();
            assert_eq!(said, (from != to).then_some(expected), "{kind} {from}");
        }
    }

    #[test]
    fn a_finding_that_was_lowered_and_raised_still_tells_the_priority_of_its_report() {
        let mut found = finding(Kind::Docs, Priority::P1);
        SteeredKind { kind: Kind::Docs, accepted: 1, wrong: 23 }.lower(&mut found, "deep");
        assert_eq!((found.priority, found.reported_priority()), (Priority::P2, Priority::P1));
        found.steps.push(FindingStep::Raised { from: Priority::P2, to: Priority::P0 });
        found.priority = Priority::P0;
        assert_eq!(found.reported_priority(), Priority::P1);
        found.lowered = None;
        assert_eq!(found.reported_priority(), Priority::P2);
    }

    #[test]
    fn a_finding_of_an_older_version_has_the_priority_of_its_report() {
        let mut value = serde_json::to_value(finding(Kind::Docs, Priority::P1)).expect("an object");
        assert!(value.get("lowered").is_none(), "no key for nothing");
        let old: Finding = serde_json::from_value(value.take()).expect("a finding");
        assert_eq!(old.lowered, None);
    }
}
