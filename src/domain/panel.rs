//! Defines panels: several reviewers that look at the same snapshot and give one list of findings.

use std::borrow::Cow;
use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::finding::word_enum;
use super::text::format_limit_dollars;
use super::{Finding, FindingId, Priority, RunId, UncountedCost, is_default};

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
    /// Most that all requests for this panel may cost together, those of the runs that this one completes included, in US
    /// dollars; `None` without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cost: Option<f64>,
    /// Run of the same panel about the same change that this run completes; `None` for a run that begins anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<RunId>,
    /// Cost of `continues`, and of the runs that it completed, in US dollars. It counts towards `max_cost`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub spent_before: f64,
    /// Reviewers of this run whose cost `max_cost` cannot count, because no price is known for them; empty without a limit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uncounted: Vec<String>,
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
    /// Parses the words of `escalate.when`: priorities and `disputed`, in any case, separated by commas or `or`.
    ///
    /// # Errors
    ///
    /// Returns a description of the first word that is neither.
    pub fn parse(reviewer: &str, when: &str) -> Result<Self, String> {
        let mut opinion = Self { reviewer: reviewer.to_owned(), priorities: Vec::new(), disputed: false };
        for word in when.split(',').flat_map(str::split_whitespace) {
            match word.to_ascii_lowercase().as_str() {
                "or" => {}
                "disputed" => opinion.disputed = true,
                priority => {
                    let problem = |_| format!("{word:?} is neither a priority (p0 to p3) nor \"disputed\"");
                    opinion.priorities.push(priority.parse().map_err(problem)?);
                }
            }
        }
        opinion.priorities.sort_unstable();
        opinion.priorities.dedup();
        match opinion.priorities.is_empty() && !opinion.disputed {
            true => Err("names nothing".to_owned()),
            false => Ok(opinion),
        }
    }

    /// Returns the words with which the journal of the panel's run names a request to this reviewer.
    pub fn request_words(reviewer: &str) -> String {
        format!("second opinions of {reviewer} on ")
    }

    /// Returns true if the reviewer is asked about a finding. A dispute is settled by a second opinion that can tell.
    pub fn concerns(&self, finding: &Finding) -> bool {
        self.priorities.contains(&finding.priority) || (self.disputed && finding.is_disputed())
    }

    /// Returns true for a finding that only this reviewer reports, as a member of the panel or as a member's fallback: its
    /// second opinion would be its first one.
    pub fn is_own_claim(&self, finding: &Finding) -> bool {
        !finding.voices.is_empty() && finding.voices.iter().all(|voice| voice.reviewer == self.reviewer)
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

/// Report of a panel's members that the list of the panel has merged into a finding with another id, under which nothing else was
/// reported. A decision about the report is one about the finding.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct MergedReport {
    /// Id of the report, which is not on the list.
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
        let voices = findings.iter().flat_map(|finding| finding.raised_voices().map(move |voice| (voice, *finding)));
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

    /// Describes what counts towards the limit from the start: `ar_… has spent $1.20 of the $1.50 of the panel`. `None` without
    /// a limit, and if nothing was spent.
    pub fn describe_spent_before(&self) -> Option<String> {
        let (run, limit) = self.continues.as_ref().zip(self.max_cost).filter(|_| self.spent_before > 0.0)?;
        let (spent, limit) = (format_limit_dollars(self.spent_before), format_limit_dollars(limit));
        Some(format!("{run} has spent {spent} of the {limit} of the panel"))
    }

    /// Describes the reviewers whose cost the limit cannot count; `None` if there are none.
    pub fn describe_uncounted(&self) -> Option<String> {
        UncountedCost::new(vec!["max_cost".to_owned()], self.uncounted.clone()).map(|cost| cost.to_string())
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
    fn what_a_continued_run_has_spent_is_said_where_there_is_a_limit() {
        let run = "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0A";
        for (max_cost, spent_before, expected) in [
            (Some(1.5), 1.2, Some(format!("{run} has spent $1.20 of the $1.50 of the panel"))),
            (Some(1.5), 0.0, None),
            (None, 1.2, None),
        ] {
            let continues = Some(run.parse().expect("an id"));
            let panel = Panel { max_cost, continues, spent_before, ..Panel::default() };
            assert_eq!(panel.describe_spent_before(), expected);
        }
        assert_eq!(Panel { max_cost: Some(1.5), ..Panel::default() }.describe_spent_before(), None);
    }

    #[test]
    fn the_findings_of_a_second_opinion_are_named_by_priority_or_dispute() {
        let parse = |when| PanelOpinion::parse("dear", when).map(|opinion| (opinion.priorities, opinion.disputed));
        let (p0, p1) = (Priority::P0, Priority::P1);
        assert_eq!(parse("p0,p1 or disputed"), Ok((vec![p0, p1], true)));
        assert_eq!(parse("disputed"), Ok((vec![], true)));
        assert_eq!(parse(" p1 , p0, p1 "), Ok((vec![p0, p1], false)));
        assert_eq!(parse("P0 OR Disputed"), Ok((vec![p0], true)));
        for (when, word) in [("p0, urgent", "urgent"), ("p0 and disputed", "and"), ("p4", "p4")] {
            let problem = format!("{word:?} is neither a priority (p0 to p3) nor \"disputed\"");
            assert_eq!(parse(when), Err(problem));
        }
        assert_eq!(parse(" or "), Err("names nothing".to_owned()));
    }
}
