//! Defines panels: several reviewers that look at the same snapshot and give one list of findings.

use serde::{Deserialize, Serialize};

use super::{RunId, is_default};

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
}

/// Reviewer of a panel and the run that answers for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PanelMember {
    /// Name of the reviewer in the settings.
    pub reviewer: String,
    /// Run that answers for the reviewer: a run of this panel, or an equivalent run that was adopted or reused.
    pub run_id: RunId,
    /// What the policy decided about the member's request: `launch`, `adopt`, `reuse`, `resume` or `skip`.
    pub decision: String,
    /// Tokens that an adopted or reused run saves.
    #[serde(default, skip_serializing_if = "is_default")]
    pub saved_token_estimate: u64,
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

    /// Returns the member that this run answers for.
    pub fn member(&self, run: &RunId) -> Option<&PanelMember> {
        self.members.iter().find(|member| member.run_id == *run)
    }
}
