//! Defines panels: several reviewers that look at the same snapshot and give one list of findings.

use std::borrow::Cow;
use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::finding::word_enum;
use super::{Finding, FindingId, FindingStep, Opinion, Priority, RunId, is_default};

word_enum!(
    /// Decision of the policy about a request, without the run that it is about.
    RequestDecision {
        /// A new run was started.
        Launch = "launch",
        /// An equivalent run that is under way answers.
        Adopt = "adopt",
        /// An equivalent run that has ended answers.
        Reuse = "reuse",
        /// A new run goes on where an equivalent run ended early.
        Resume = "resume",
        /// There was nothing to do.
        Skip = "skip",
    }
);

/// Panel of a run. Each member has a run of its own; the run of the panel merges what they found.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Panel {
    /// Name in the settings, or the names of the reviewers joined by `+`.
    pub name: String,
    /// The members, in the order of the settings.
    pub members: Vec<PanelMember>,
    /// Most that the members' requests for this panel may cost together, in US dollars; `None` without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cost: Option<f64>,
    /// Reviewers that give second opinions on findings of the list, in the order in which they are asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub opinions: Vec<PanelOpinion>,
}

/// Reviewer that is asked for a second opinion, and the findings that it is asked about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PanelOpinion {
    /// Name of the reviewer in the settings.
    pub reviewer: String,
    /// Findings of these priorities.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub priorities: Vec<Priority>,
    /// True for findings about which the members contradict each other.
    #[serde(default, skip_serializing_if = "is_default")]
    pub disputed: bool,
}

impl PanelOpinion {
    /// Parses the words of `escalate.when`: priorities and `disputed`, separated by commas or `or`.
    ///
    /// # Errors
    ///
    /// Returns a description of the first word that is neither.
    pub fn parse(reviewer: &str, when: &str) -> Result<Self, String> {
        let mut opinion = Self { reviewer: reviewer.to_owned(), priorities: Vec::new(), disputed: false };
        let words = when.split(',').flat_map(str::split_whitespace).filter(|word| *word != "or");
        for word in words {
            match word {
                "disputed" => opinion.disputed = true,
                word => opinion.priorities.push(word.parse().map_err(|_| format!("{word:?} is not allowed"))?),
            }
        }
        opinion.priorities.sort_unstable();
        opinion.priorities.dedup();
        match opinion.priorities.is_empty() && !opinion.disputed {
            true => Err("names nothing".to_owned()),
            false => Ok(opinion),
        }
    }

    /// Returns true if the reviewer is asked about a finding. A dispute is settled by a second opinion that can tell.
    pub fn concerns(&self, finding: &Finding) -> bool {
        let is_verdict =
            |step: &FindingStep| matches!(step, FindingStep::Ruled { opinion: Opinion::Real | Opinion::False, .. });
        let is_disputed = !finding.disputed.is_empty() && !finding.steps.iter().any(is_verdict);
        self.priorities.contains(&finding.priority) || (self.disputed && is_disputed)
    }
}

/// Reviewer of a panel and the run that answers for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PanelMember {
    /// Name of the reviewer in the settings.
    pub reviewer: String,
    /// Run that answers for the reviewer: a run of this panel, or an equivalent run that was adopted or reused.
    pub run_id: RunId,
    /// Decision about the member's request.
    pub decision: RequestDecision,
    /// Tokens that an adopted or reused run saves.
    #[serde(default, skip_serializing_if = "is_default")]
    pub saved_token_estimate: u64,
}

/// Report of a member whose problem has another id on the list of a panel than in the run of the member, because its own id
/// is that of another problem at the same code.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ListedReport {
    /// Run of the member.
    pub run_id: RunId,
    /// Id of the report in that run.
    pub reported_as: FindingId,
    /// Id of its problem on the list.
    pub finding_id: FindingId,
}

impl ListedReport {
    /// Returns the reports on a list under an id of another finding of the list, or of another problem at the same code.
    /// Those of one problem under several ids are not among them: these ids become obsolete.
    pub fn from_list<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Vec<Self> {
        let findings: Vec<&Finding> = findings.into_iter().collect();
        let listed: HashSet<&FindingId> = findings.iter().map(|finding| &finding.finding_id).collect();
        let voices = findings.iter().flat_map(|finding| finding.voices.iter().map(move |voice| (voice, *finding)));
        let is_elsewhere = |id: &FindingId, finding: &Finding| {
            *id != finding.finding_id && (listed.contains(id) || id.is_variant_of(&finding.finding_id))
        };
        let elsewhere = voices.filter(|(voice, finding)| is_elsewhere(&voice.finding_id, finding));
        let mut reports: Vec<Self> = elsewhere
            .map(|(voice, finding)| Self {
                run_id: voice.run_id.clone(),
                reported_as: voice.finding_id.clone(),
                finding_id: finding.finding_id.clone(),
            })
            .collect();
        reports.sort_unstable();
        reports
    }
}

impl Panel {
    /// Prefix of the reviewer's name of a panel's run: `panel:NAME`.
    pub const PREFIX: &'static str = "panel:";
    /// Minimum number of members.
    pub const MIN_MEMBERS: usize = 2;
    /// Maximum number of members. Not from the literature: more lists than a person would compare.
    pub const MAX_MEMBERS: usize = 8;

    /// Returns the name of the panel if this is the reviewer's name of a panel's run.
    pub fn name_of(reviewer: &str) -> Option<&str> {
        reviewer.strip_prefix(Self::PREFIX)
    }

    /// Returns a reviewer's name as people say it: `sonnet`, `panel three`.
    pub fn describe_reviewer(name: &str) -> Cow<'_, str> {
        match Self::name_of(name) {
            Some(panel) => Cow::Owned(format!("panel {panel}")),
            None => Cow::Borrowed(name),
        }
    }

    /// Describes the members: `one ar_…, two ar_… (reused)`.
    pub fn describe_members(&self) -> String {
        let describe = |member: &PanelMember| match member.decision {
            RequestDecision::Adopt => format!("{} {} (adopted)", member.reviewer, member.run_id),
            RequestDecision::Reuse => format!("{} {} (reused)", member.reviewer, member.run_id),
            RequestDecision::Launch | RequestDecision::Resume | RequestDecision::Skip => {
                format!("{} {}", member.reviewer, member.run_id)
            }
        };
        self.members.iter().map(describe).collect::<Vec<_>>().join(", ")
    }

    /// Returns the member that this run answers for.
    pub fn member(&self, run: &RunId) -> Option<&PanelMember> {
        self.members.iter().find(|member| member.run_id == *run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_say_panel_and_its_name() {
        for (name, expected) in [
            ("panel:three", "panel three"),
            ("panel:opus+haiku", "panel opus+haiku"),
            ("sonnet", "sonnet"),
            ("panels", "panels"),
        ] {
            assert_eq!(Panel::describe_reviewer(name), expected);
        }
    }

    #[test]
    fn the_findings_of_a_second_opinion_are_named_by_priority_or_dispute() {
        let parse = |when| PanelOpinion::parse("dear", when).map(|opinion| (opinion.priorities, opinion.disputed));
        let (p0, p1) = (Priority::P0, Priority::P1);
        assert_eq!(parse("p0,p1 or disputed"), Ok((vec![p0, p1], true)));
        assert_eq!(parse("disputed"), Ok((vec![], true)));
        assert_eq!(parse(" p1 , p0, p1 "), Ok((vec![p0, p1], false)));
        assert_eq!(parse("p0, urgent"), Err("\"urgent\" is not allowed".to_owned()));
        assert_eq!(parse(" or "), Err("names nothing".to_owned()));
    }
}
