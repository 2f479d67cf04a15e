//! Defines the run record: the reviewed code, the reviewer, the cost and the end of a run.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::{
    BudgetStop, Coverage, Finding, FindingId, FixId, Kind, ListedReport, MergedReport, Panel, Priority, ReviewReach,
    ReviewedParts, RunId, RunOrigin, Scope, Shortfall, Time, is_default,
};

mod status;
mod usage;
pub use status::{CancelReason, ErrorClass, RunStatus, Source};
pub use usage::{PhaseTimings, ReviewerUsage, RunUsage, Usage};

/// Number of findings of a run by priority.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FindingCounts {
    /// Findings of priority p0.
    pub p0: u32,
    /// Findings of priority p1.
    pub p1: u32,
    /// Findings of priority p2.
    pub p2: u32,
    /// Findings of priority p3.
    pub p3: u32,
}

impl FindingCounts {
    /// Counts findings by their priority.
    pub fn from_findings<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Self {
        let mut counts = Self::default();
        for finding in findings {
            counts.add(finding.priority);
        }
        counts
    }

    /// Counts one more finding of this priority.
    pub fn add(&mut self, priority: Priority) {
        *match priority {
            Priority::P0 => &mut self.p0,
            Priority::P1 => &mut self.p1,
            Priority::P2 => &mut self.p2,
            Priority::P3 => &mut self.p3,
        } += 1;
    }

    /// Returns the counts in the order p0, p1, p2, p3.
    pub fn by_priority(&self) -> [u32; 4] {
        [self.p0, self.p1, self.p2, self.p3]
    }

    /// Returns the number of findings of all priorities.
    pub fn total(&self) -> u32 {
        self.by_priority().into_iter().fold(0, u32::saturating_add)
    }
}

/// Line of `runs.ndjson`: the state of a run after a change. The last line of a run wins.
///
/// The parts are flat in JSON: a reader sees one object with the fields of all parts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Id of the run.
    pub run_id: RunId,
    /// Status after the change.
    pub status: RunStatus,
    /// Time of the request.
    pub created_at: Time,
    /// Time of the change.
    pub updated_at: Time,
    /// Part of revdeck that requested the run.
    pub source: Source,
    /// Requester, as `user@host`.
    #[serde(default)]
    pub owner: String,
    /// Reviewed code and rules.
    #[serde(flatten)]
    pub subject: ReviewSubject,
    /// Reviewer, model and effort.
    #[serde(flatten)]
    pub reviewed_by: RunReviewer,
    /// Number of workers that were started for the run; 0 before the first.
    #[serde(default)]
    pub attempt: u32,
    /// Number of reviews of patches made for this run's findings.
    #[serde(default)]
    pub follow_up_count: u32,
    /// Fix whose patch this run reviews. Its findings are not in the user's files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follow_up_of: Option<FixId>,
    /// Machine of the team that made the run; `None` for a run of this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team: Option<RunOrigin>,
    /// If true, a job of continuous integration requested the run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ci: bool,
    /// Time, tokens and money.
    #[serde(flatten)]
    pub usage: RunUsage,
    /// Coverage and counts of findings.
    #[serde(flatten)]
    pub outcome: RunOutcome,
    /// Reason for the policy's decision when the run was requested.
    #[serde(default)]
    pub decision: String,
    /// Later requests that this run answered.
    #[serde(flatten)]
    pub reuse: RunReuse,
    /// Runs that this run replaces, continues or waits for.
    #[serde(flatten)]
    pub links: RunLinks,
    /// If true, everything is sent, even what earlier runs reviewed (`--force`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub full: bool,
    /// If true, nothing is learned from the run: its requester opted out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub private: bool,
    /// If true, a person paused the run, and its worker sends no request until it is resumed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    /// Reason of an early end.
    #[serde(flatten)]
    pub ending: RunEnding,
}

/// Reviewed code and the rules that it is reviewed by.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReviewSubject {
    /// Short name of the branch; empty when HEAD is detached.
    #[serde(default)]
    pub branch: String,
    /// Root folder of the working tree.
    #[serde(default)]
    pub worktree: String,
    /// Commit or tree that the changes are compared with; empty when there is none (unborn HEAD, scope `all`).
    #[serde(default)]
    pub base_commit: String,
    /// Commit with the snapshot's tree, protected by `refs/revdeck/snapshots/<run_id>`.
    #[serde(default)]
    pub snapshot_commit: String,
    /// HEAD when the run was requested; empty when there is none.
    #[serde(default)]
    pub head_commit: String,
    /// Number of requests to the store when the run was recorded. Grows with every request.
    #[serde(default)]
    pub epoch: u64,
    /// Length of `triage.ndjson` in bytes when the snapshot was taken, or when it was last found equal to the current
    /// code. A disposition after this offset was made later, whatever the clock said. `None` in records of older
    /// versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub triage_bytes: Option<u64>,
    /// Requested part of the repository.
    pub scope: Scope,
    /// Hash of everything except the content that decides what is reviewed (whole tree or change, ignored paths).
    #[serde(default)]
    pub scope_hash: String,
    /// Hash of both sides' content of all changes. Scopes with equal fingerprints show a reviewer the same code.
    #[serde(default)]
    pub diff_fingerprint: String,
    /// Hash of the prompts, the thresholds and the built-in reviewer's rules.
    #[serde(default)]
    pub prompt_policy_version: String,
    /// First [`RunRecord::MAX_PATHS`] changed paths; `coverage.files_total` counts all of them.
    #[serde(default)]
    pub changed_paths: Vec<String>,
}

/// Reviewer of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RunReviewer {
    /// Name of the reviewer in the settings.
    #[serde(rename = "reviewer")]
    pub name: String,
    /// Id of the model; empty for the built-in reviewer.
    #[serde(default)]
    pub model: String,
    /// Word of the reasoning effort; empty if the reviewer has none.
    #[serde(default)]
    pub reasoning_effort: String,
    /// Kinds that the reviewer is asked for; empty for all kinds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub focus: Vec<Kind>,
    /// Prompt set of the user that the reviewer gets; `None` for the prompts outside of a set, and for a reviewer
    /// without prompts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_set: Option<String>,
}

impl RunReviewer {
    /// Separates the version of the prompts from the name of their set.
    const SET_SEPARATOR: char = '@';
    /// Separates the version of the prompts and their set from the kinds that a reviewer is asked for.
    const FOCUS_SEPARATOR: char = '+';

    /// Returns the prompt-policy version of a reviewer that gets the prompts of a set: two sets are never equivalent,
    /// even if they have the same texts. Without a set, the version is unchanged.
    pub fn version_of_set(version: &str, set: Option<&str>) -> String {
        set.map_or_else(|| version.to_owned(), |set| format!("{version}{}{set}", Self::SET_SEPARATOR))
    }

    /// Returns the name of the set in a version of [`RunReviewer::version_of_set`]; `None` without a set.
    pub fn set_of_version(version: &str) -> Option<&str> {
        let (version, _) = version.split_once(Self::FOCUS_SEPARATOR).unwrap_or((version, ""));
        version.split_once(Self::SET_SEPARATOR).map(|(_, set)| set)
    }

    /// Returns the prompt-policy version of a reviewer that is asked for these kinds only: another focus is another
    /// question. Without a focus, the version is unchanged.
    pub fn focused_version(version: &str, focus: &[Kind]) -> String {
        if focus.is_empty() {
            return version.to_owned();
        }
        let words: Vec<&str> = focus.iter().map(|kind| kind.word()).collect();
        format!("{version}{}{}", Self::FOCUS_SEPARATOR, words.join(","))
    }

    /// Returns the kinds in a version of [`RunReviewer::focused_version`], as text; empty for all kinds.
    pub fn focus_of_version(version: &str) -> &str {
        version.split_once(Self::FOCUS_SEPARATOR).map_or("", |(_, focus)| focus)
    }
}

/// Counts of what a run covered and found, for lists; the run's output holds the rest.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RunOutcome {
    /// Coverage counts; the run's output holds the lists.
    #[serde(default)]
    pub coverage: Coverage,
    /// Numbers of findings by priority.
    #[serde(default)]
    pub finding_counts: FindingCounts,
    /// Ids of the first [`RunRecord::MAX_DIGESTS`] findings.
    #[serde(default)]
    pub finding_digests: Vec<FindingId>,
    /// Ids of the first [`RunRecord::MAX_DIGESTS`] findings that no reviewer reported: revdeck's own search for secrets found
    /// them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scanned_findings: Vec<FindingId>,
    /// The first [`RunRecord::MAX_DIGESTS`] reports of a panel's members whose own id is that of another problem of its list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub listed_as: Vec<ListedReport>,
    /// The first [`RunRecord::MAX_DIGESTS`] reports that the list of a panel has merged into findings with other ids. `None` for
    /// another run, and in records of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged_reports: Option<Vec<MergedReport>>,
    /// Summary for a person, one line; empty while the run is active. It does not name the error of a part that failed, see
    /// [`RunRecord::summary_with_error`].
    #[serde(default)]
    pub summary: String,
}

/// Later requests that a run answered, by reuse after its end or by adoption while it was active. The fields about the
/// original request stay unchanged; `saved_token_estimate` adds up.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RunReuse {
    /// Number of later requests that this run answered.
    #[serde(rename = "reuse_count", default, skip_serializing_if = "is_default")]
    pub count: u32,
    /// Part of `count`: adoptions while the run was active. Records from before this counter count every reuse
    /// as a reuse after the end.
    #[serde(default, skip_serializing_if = "is_default")]
    pub adopted_count: u32,
    /// Time of the last reuse.
    #[serde(rename = "last_reused_at", default, skip_serializing_if = "Option::is_none")]
    pub last_at: Option<Time>,
    /// Reason of the policy for the last reuse.
    #[serde(rename = "last_reuse_reason", default, skip_serializing_if = "String::is_empty")]
    pub last_reason: String,
    /// HEAD at the last reuse: a later commit with the same content to review.
    #[serde(rename = "last_reuse_head", default, skip_serializing_if = "String::is_empty")]
    pub last_head: String,
}

/// Other runs that a run replaces, continues, waits for or belongs to.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RunLinks {
    /// Newer run that replaced this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<RunId>,
    /// Run whose results answer the request of this skipped run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reused_from: Option<RunId>,
    /// Run whose coverage and findings this run takes over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried_over_from: Option<RunId>,
    /// Run that ended early and whose journal this run continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed_from: Option<RunId>,
    /// Older run that may finish first; its results are carried over to this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<RunId>,
    /// Run of the panel that requested this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member_of: Option<RunId>,
    /// Members, if this is the run of a panel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub panel: Option<Panel>,
}

impl RunLinks {
    /// Returns the newer run that replaced this one, see [`find_replacement`].
    pub fn replaced_by(&self) -> Option<&RunId> {
        find_replacement(self.superseded_by.as_ref(), self.member_of.as_ref())
    }
}

/// Returns the newer run that replaced a run, given the one that superseded it and the panel whose member it is. The panel of a
/// member replaces it in lists only: the member has reviewed the same code.
pub fn find_replacement<T: PartialEq>(superseded_by: Option<T>, member_of: Option<T>) -> Option<T> {
    superseded_by.filter(|newer| member_of.as_ref() != Some(newer))
}

/// Reason why a run ended before it was complete, or went on although newer code was requested.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RunEnding {
    /// Reason of the cancellation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel_reason: Option<CancelReason>,
    /// Note of the person who cancelled the run; for a superseded run, the reason why it could not finish.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cancel_note: String,
    /// Reason why the run continues although newer code was requested.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub finish_note: String,
    /// Limit at which the run stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_stop: Option<BudgetStop>,
    /// Class of the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_class: Option<ErrorClass>,
    /// Failure in one line for a person; empty if there was none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub error_summary: String,
}

impl RunRecord {
    /// Maximum number of changed paths in a record.
    pub const MAX_PATHS: usize = 200;
    /// Prefix of the scope hash of a run that reviews a fix. The prefix keeps such a run from answering other
    /// requests, because its findings are not in the user's files.
    pub const FIX_SCOPE_PREFIX: &'static str = "fix:";
    /// Prefix of the scope hash of a run that was imported. It keeps such a run from answering requests for a review.
    pub const IMPORT_SCOPE_PREFIX: &'static str = "import:";
    /// Maximum number of finding ids in a record.
    pub const MAX_DIGESTS: usize = 200;

    /// Returns the words for the part of revdeck that requested the run: `cli`, or `cli in CI`.
    pub fn describe_source(&self) -> String {
        if self.ci { format!("{} in CI", self.source) } else { self.source.to_string() }
    }

    /// Returns true if the run waits for a person to resume it.
    pub fn is_paused(&self) -> bool {
        self.paused && !self.status.is_terminal()
    }

    /// Returns true if an earlier worker of the run ended early, so that the run goes on in a later attempt.
    pub fn is_later_attempt(&self) -> bool {
        // A run that waits has not counted its next attempt yet.
        self.attempt > u32::from(self.status != RunStatus::Pending)
    }

    /// Returns true if the run ended by itself, or was skipped, and did not review all that it should have.
    pub fn is_incomplete(&self) -> bool {
        match self.status {
            RunStatus::Completed => self.ending.error_class.is_some() || self.outcome.coverage.is_incomplete(),
            RunStatus::Skipped => self.outcome.coverage.incomplete,
            _ => false,
        }
    }

    /// Returns the facts from which follows what the run has reviewed.
    fn reviewed_parts(&self) -> ReviewedParts {
        let coverage = &self.outcome.coverage;
        ReviewedParts {
            status: self.status,
            is_incomplete: self.is_incomplete(),
            files: coverage.files_total,
            files_reviewed: coverage.files_covered,
            hunks: coverage.hunks_total,
            hunks_reviewed: coverage.hunks_covered,
            has_carried: coverage.files_carried > 0 || coverage.hunks_carried > 0,
            findings: self.outcome.finding_counts.total(),
            continues_earlier: self.links.carried_over_from.is_some() || self.links.resumed_from.is_some(),
            has_other_answer: self.links.reused_from.is_some() || self.links.replaced_by().is_some(),
        }
    }

    /// Returns what the run did not review, if it ended by itself.
    pub fn shortfall(&self) -> Option<Shortfall> {
        self.reviewed_parts().shortfall()
    }

    /// Returns the part of its change that the run has reviewed, however it ended.
    pub fn review_reach(&self) -> ReviewReach {
        self.reviewed_parts().reach()
    }

    /// Returns why the run reviewed less than its whole change, see [`ReviewedParts::describe_reason`].
    pub fn describe_unreviewed(&self) -> Option<String> {
        self.reviewed_parts().describe_reason(self.ending.cancel_reason, self.ending.error_class)
    }

    /// Returns the summary with the error of a part that failed, for those who show nothing else of the run. Summaries of older
    /// versions may name it already.
    pub fn summary_with_error(&self) -> Cow<'_, str> {
        let (summary, error) = (self.outcome.summary.as_str(), self.ending.error_summary.as_str());
        // Files that could not be read are a gap, which the summary names.
        let has_failed_part = self.status == RunStatus::Completed
            && self.ending.error_class.is_some_and(|class| class != ErrorClass::Unreadable);
        if !has_failed_part || summary.is_empty() || error.is_empty() || summary.contains(error) {
            return summary.into();
        }
        // The summary of a run with gaps begins with the word.
        let word = if self.outcome.coverage.gaps.is_empty() { "incomplete: " } else { "" };
        format!("{summary}; {word}{error}").into()
    }

    /// Returns the word that lists show for the run's state.
    pub fn state_word(&self) -> &'static str {
        self.status.list_word(self.paused, self.ending.cancel_reason)
    }
}

#[cfg(test)]
mod tests;
