//! Defines the reports behind a finding on the one list of a panel: who said what, what followed from it, and what is
//! disputed.
//!
//! A panel is several reviewers of the same snapshot. The reports of one problem become one [`Finding`](super::Finding);
//! each report stays with it as a [`Voice`].

use std::fmt;

use serde::{Deserialize, Serialize};

use super::text::{join_names, sanitize_line};
use super::{Confidence, FindingId, Kind, LineRange, Opinion, Priority, RunId, SuppressionReason};

/// Report of one reviewer about a problem, in its own words. Lines are 1-based and inclusive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Voice {
    /// Name of the reviewer, or [`Voice::SECRET_SCAN`].
    pub reviewer: String,
    /// Run of the reviewer.
    pub run_id: RunId,
    /// Id of the finding in that run.
    pub finding_id: FindingId,
    /// Urgency that the reviewer gave.
    pub priority: Priority,
    /// Confidence of the reviewer.
    pub confidence: Confidence,
    /// Kind that the reviewer gave.
    pub kind: Kind,
    /// Title on one line.
    pub title: String,
    /// Explanation of the problem.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub explanation: String,
    /// First line of the anchor.
    pub line_start: u32,
    /// Last line of the anchor.
    pub line_end: u32,
    /// Reason why the run of the reviewer held the report back; `None` for a report that its run raised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_back: Option<SuppressionReason>,
}

impl Voice {
    /// Name under which revdeck's own search for secrets speaks. It is no reviewer: what it finds is no agreement.
    pub const SECRET_SCAN: &'static str = "revdeck";

    /// Returns true for what revdeck's own search for secrets found in the run of a reviewer that did not report it.
    pub fn is_secret_scan(&self) -> bool {
        self.reviewer == Self::SECRET_SCAN
    }

    /// Returns the lines of the anchor.
    pub fn lines(&self) -> LineRange {
        LineRange::new(self.line_start, self.line_end)
    }

    /// Returns the texts that a model wrote, for those who mask or cut them.
    pub fn texts_mut(&mut self) -> [&mut String; 2] {
        [&mut self.title, &mut self.explanation]
    }
}

/// Decisions about the earlier reports of a reviewer in one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KindRecord {
    /// Name of the reviewer.
    pub reviewer: String,
    /// Kind of the reports.
    pub kind: Kind,
    /// Number of reports that were addressed.
    pub accepted: u32,
    /// Number of reports that were addressed or dismissed.
    pub decided: u32,
}

/// Fact that made a finding what it is, besides the words of its reviewer: the reports of the other members of a panel, a
/// second opinion, or revdeck's own search for secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub enum FindingStep {
    /// Several reviewers report the problem.
    Agreed {
        /// Number of reviewers that report it.
        voices: u32,
        /// Number of reviewers that report it or have reviewed its lines.
        reviewers: u32,
        /// Greatest confidence of a single report.
        from: Confidence,
        /// Confidence of all reports together.
        to: Confidence,
    },
    /// The reports have different priorities.
    Ranked {
        /// Priorities of the reports, the most urgent first.
        priorities: Vec<Priority>,
        /// Priority of the finding.
        to: Priority,
        /// Rule that chose it.
        rule: RankRule,
    },
    /// Only one reviewer reports the problem, and it was mostly wrong in this kind: the finding is less urgent.
    Lowered {
        /// Reported priority.
        from: Priority,
        /// Priority of the finding.
        to: Priority,
        /// Decisions that say so.
        because: KindRecord,
    },
    /// As [`FindingStep::Lowered`], for a finding that is already the least urgent: its confidence is lower.
    Doubted {
        /// Reported confidence.
        from: Confidence,
        /// Confidence of the finding.
        to: Confidence,
        /// Decisions that say so.
        because: KindRecord,
    },
    /// A reviewer outside the panel was asked about the finding.
    Ruled {
        /// Name of the reviewer.
        by: String,
        /// Its verdict.
        opinion: Opinion,
        /// Its reason, on one line.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reason: String,
        /// Priority before the verdict.
        from: Priority,
        /// Priority of the finding.
        to: Priority,
    },
    /// No reviewer reports the problem: revdeck's own search for secrets found it.
    Scanned,
    /// A reviewer reports a secret that revdeck's own search finds, too, and calls it less urgent than it is.
    Raised {
        /// Reported priority.
        from: Priority,
        /// Priority of the finding.
        to: Priority,
    },
    /// As [`FindingStep::Raised`], for a report that is less sure than the search.
    Backed {
        /// Confidence of the reports.
        from: Confidence,
        /// Confidence of the finding.
        to: Confidence,
    },
    /// Step of a newer revdeck version.
    #[serde(other)]
    Unknown,
}

/// Rule that chooses one of several priorities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RankRule {
    /// The middle one; of an even number, the more urgent of the two in the middle.
    Middle,
    /// The most urgent one.
    MostUrgent,
}

/// Contradiction between reviewers about a finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "about", rename_all = "snake_case")]
pub enum Dispute {
    /// Some say that the problem is fixed, others that it is still there.
    Fixed {
        /// Reviewers that say it is fixed, by name.
        fixed: Vec<String>,
        /// Reviewers that report it or confirm that it is still there, by name.
        standing: Vec<String>,
    },
    /// The priorities of the reports are at least two steps apart.
    Priority {
        /// Most urgent priority of a report.
        most: Priority,
        /// Least urgent priority of a report.
        least: Priority,
    },
    /// One reviewer reports an urgent problem that others did not report, although they reviewed the same lines.
    Alone {
        /// Reviewer that reports it.
        reviewer: String,
        /// Reviewers that did not, by name.
        silent: Vec<String>,
    },
    /// Contradiction of a newer revdeck version.
    #[serde(other)]
    Unknown,
}

/// Words for priorities and kinds in a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WordStyle {
    /// As files and the command line have them: `p1`, `ERROR_HANDLING`.
    Plain,
    /// As pages on the screen have them: `P1`, `ignored error`.
    Label,
}

impl WordStyle {
    /// Returns the word for a priority.
    pub fn priority(self, priority: Priority) -> String {
        match self {
            Self::Plain => priority.to_string(),
            Self::Label => priority.label().to_owned(),
        }
    }

    /// Returns the word for a kind.
    pub fn kind(self, kind: Kind) -> String {
        match self {
            Self::Plain => kind.to_string(),
            Self::Label => kind.label().to_owned(),
        }
    }
}

impl KindRecord {
    /// Describes the decisions: `3 of 24 decided PERFORMANCE reports of gpt were accepted`.
    fn describe(&self, words: WordStyle) -> String {
        let Self { reviewer, kind, accepted, decided } = self;
        let (kind, reviewer) = (words.kind(*kind), sanitize_line(reviewer));
        format!("{accepted} of {decided} decided {kind} reports of {reviewer} were accepted")
    }
}

impl FindingStep {
    /// Describes the step in a sentence without a full stop, on one line.
    pub fn describe(&self, words: WordStyle) -> String {
        let priority = |priority: &Priority| words.priority(*priority);
        match self {
            Self::Agreed { voices, reviewers, from, to } if from == to => {
                format!("{voices} of {reviewers} reviewers agree: confidence stays {to}")
            }
            Self::Agreed { voices, reviewers, from, to } => {
                format!("{voices} of {reviewers} reviewers agree: confidence raised from {from} to {to}")
            }
            Self::Ranked { priorities, to, rule } => {
                let rule = match rule {
                    RankRule::Middle => "the middle of",
                    RankRule::MostUrgent => "the most urgent of",
                };
                let priorities: Vec<String> = priorities.iter().map(priority).collect();
                format!("priority {}: {rule} {}", priority(to), priorities.join(", "))
            }
            Self::Lowered { from, to, because } => {
                let (from, to, because) = (priority(from), priority(to), because.describe(words));
                format!("lowered from {from} to {to}: no other reviewer reports it, and {because}")
            }
            Self::Doubted { from, to, because } => {
                let because = because.describe(words);
                format!("confidence lowered from {from} to {to}: no other reviewer reports it, and {because}")
            }
            Self::Ruled { by, opinion, reason, from, to } => {
                let mut ruling = describe_opinion(by, *opinion);
                if from != to {
                    ruling.push_str(&format!(", priority {} becomes {}", priority(from), priority(to)));
                }
                if !reason.is_empty() {
                    ruling.push_str(&format!(": {}", sanitize_line(reason)));
                }
                ruling
            }
            Self::Scanned => "found by revdeck's own search for secrets, not by a reviewer".to_owned(),
            Self::Raised { from, to } => format!(
                "raised from {} to {}: revdeck's own search for secrets finds it, too",
                priority(from),
                priority(to)
            ),
            Self::Backed { from, to } => {
                format!("confidence raised from {from} to {to}: revdeck's own search for secrets finds it, too")
            }
            Self::Unknown => "changed by a newer revdeck".to_owned(),
        }
    }

    /// Returns true for a second opinion that settles a dispute: its reviewer can tell.
    pub fn is_verdict(&self) -> bool {
        matches!(self, Self::Ruled { opinion, .. } if opinion.is_verdict())
    }

    /// Says in a few words what a second opinion is: `opus finds it real`; `None` for another step.
    pub fn describe_ruling(&self) -> Option<String> {
        match self {
            Self::Ruled { by, opinion, .. } => Some(describe_opinion(by, *opinion)),
            _ => None,
        }
    }
}

fn describe_opinion(by: &str, opinion: Opinion) -> String {
    let said = match opinion {
        Opinion::Real => "finds it real",
        Opinion::False => "finds it false",
        Opinion::Unsure => "cannot tell",
    };
    format!("{} {said}", sanitize_line(by))
}

impl Dispute {
    /// Describes the contradiction in a sentence without a full stop, on one line.
    pub fn describe(&self, words: WordStyle) -> String {
        match self {
            Self::Fixed { fixed, standing } => {
                let verb = |names: &[String], one, many| if names.len() == 1 { one } else { many };
                let (says, reports) = (verb(fixed, "says", "say"), verb(standing, "still sees", "still see"));
                format!("{} {says} that it is fixed, {} {reports} it", join_names(fixed), join_names(standing))
            }
            Self::Priority { most, least } => {
                format!("the priorities go from {} to {}", words.priority(*most), words.priority(*least))
            }
            Self::Alone { reviewer, silent } => {
                let reviewer = sanitize_line(reviewer);
                format!("only {reviewer} reports it; {} reviewed the same lines", join_names(silent))
            }
            Self::Unknown => "for a reason of a newer revdeck".to_owned(),
        }
    }
}

impl fmt::Display for FindingStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe(WordStyle::Plain))
    }
}

impl fmt::Display for Dispute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe(WordStyle::Plain))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn record() -> KindRecord {
        KindRecord { reviewer: "g\u{1b}pt".into(), kind: Kind::Performance, accepted: 3, decided: 24 }
    }

    #[test]
    fn steps_and_disputes_are_sentences_without_control_characters() {
        use Priority::{P1, P2, P3};
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let (low, high) = (Confidence::Low, Confidence::High);
        let steps = [
            FindingStep::Agreed { voices: 2, reviewers: 3, from: low, to: high },
            FindingStep::Agreed { voices: 3, reviewers: 3, from: high, to: high },
            FindingStep::Ranked { priorities: vec![P1, P2, P3], to: P2, rule: RankRule::Middle },
            FindingStep::Ranked { priorities: vec![P1, P3], to: P1, rule: RankRule::MostUrgent },
            FindingStep::Lowered { from: P2, to: P3, because: record() },
            FindingStep::Doubted { from: high, to: Confidence::Medium, because: record() },
            FindingStep::Scanned,
            FindingStep::Raised { from: P3, to: P1 },
            FindingStep::Backed { from: low, to: high },
        ];
        let disputes = [
            Dispute::Fixed { fixed: names(&["a"]), standing: names(&["b", "c", "d"]) },
            Dispute::Fixed { fixed: names(&["a", "b"]), standing: names(&["c"]) },
            Dispute::Priority { most: Priority::P0, least: P2 },
            Dispute::Alone { reviewer: "gpt".into(), silent: names(&["a\u{9b}2J", "b"]) },
        ];
        let said = steps.iter().map(ToString::to_string).chain(disputes.iter().map(ToString::to_string));
        let said = said.collect::<Vec<_>>().join("\n");
        assert!(!said.chars().any(|c| c != '\n' && crate::domain::text::is_unsafe(c)), "{said:?}");
        insta::assert_snapshot!(said, @r"
        2 of 3 reviewers agree: confidence raised from low to high
        3 of 3 reviewers agree: confidence stays high
        priority p2: the middle of p1, p2, p3
        priority p1: the most urgent of p1, p3
        lowered from p2 to p3: no other reviewer reports it, and 3 of 24 decided PERFORMANCE reports of g�pt were accepted
        confidence lowered from high to medium: no other reviewer reports it, and 3 of 24 decided PERFORMANCE reports of g�pt were accepted
        found by revdeck's own search for secrets, not by a reviewer
        raised from p3 to p1: revdeck's own search for secrets finds it, too
        confidence raised from low to high: revdeck's own search for secrets finds it, too
        a says that it is fixed, b, c and d still see it
        a and b say that it is fixed, c still sees it
        the priorities go from p0 to p2
        only gpt reports it; a�2J and b reviewed the same lines
        ");
        // On pages, priorities and kinds have the words of lists.
        for (said, expected) in [
            (steps[2].describe(WordStyle::Label), "priority P2: the middle of P1, P2, P3".to_owned()),
            (
                steps[4].describe(WordStyle::Label),
                format!(
                    "lowered from P2 to P3: no other reviewer reports it, and 3 of 24 decided {} reports of g\u{fffd}pt \
                     were accepted",
                    Kind::Performance.label()
                ),
            ),
            (disputes[2].describe(WordStyle::Label), "the priorities go from P0 to P2".to_owned()),
        ] {
            assert_eq!(said, expected);
        }
    }

    #[test]
    fn words_of_newer_versions_are_read() {
        let step: FindingStep = serde_json::from_value(json!({"step": "weighed", "by": 2})).expect("a step");
        let dispute: Dispute = serde_json::from_value(json!({"about": "style", "of": "x"})).expect("a dispute");
        assert_eq!((step, dispute), (FindingStep::Unknown, Dispute::Unknown));
    }
}
