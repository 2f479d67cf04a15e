//! Parses lines for the list view: the few fields of a row, borrowed from the line.
//!
//! All other fields are skipped without allocation, which saves most of the time of reading a store.

use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::tables::{FINDING_ID_BYTES, PackedDecision, PackedStatus};
use super::view::RunRow;
use crate::domain::{
    Actor, DismissalReason, FindingCounts, FindingDecision, FindingId, FindingStatus, Kind, Opinion, Priority,
    RequestDecision, RunId, RunStatus, Severity, Time, Usage,
};

/// Coverage counts of a run.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(super) struct CoverageCountsLine {
    pub(super) files_total: u32,
    pub(super) files_covered: u32,
    pub(super) hunks_total: u32,
    pub(super) hunks_covered: u32,
    files_carried: u32,
    hunks_carried: u32,
    pub(super) incomplete: bool,
}

impl CoverageCountsLine {
    /// Returns true if something should have been reviewed and was not. Lines of older versions tell it by their counts.
    pub(super) fn is_incomplete(&self) -> bool {
        self.incomplete || self.hunks_covered.saturating_add(self.hunks_carried) < self.hunks_total
    }
}

/// A line of `runs.ndjson`.
#[derive(Debug, Deserialize)]
pub(super) struct RunLine<'a> {
    #[serde(borrow)]
    pub(super) run_id: Cow<'a, str>,
    pub(super) status: RunStatus,
    pub(super) created_at: Time,
    pub(super) updated_at: Time,
    #[serde(borrow)]
    pub(super) scope: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) reviewer: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) model: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) reasoning_effort: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) branch: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) worktree: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) diff_fingerprint: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) scope_hash: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) prompt_policy_version: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) snapshot_commit: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) head_commit: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) last_reuse_head: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) base_commit: Cow<'a, str>,
    #[serde(default)]
    pub(super) cost: f64,
    #[serde(borrow, default)]
    pub(super) reused_from: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) carried_over_from: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) resumed_from: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) member_of: Option<Cow<'a, str>>,
    /// Members of a panel, as [`RunRow::members`] has them.
    #[serde(rename = "panel", default, deserialize_with = "list_panel_members")]
    pub(super) members: String,
    #[serde(default)]
    pub(super) reuse_count: u32,
    #[serde(borrow, default)]
    pub(super) superseded_by: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) cancel_reason: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) error_class: Option<Cow<'a, str>>,
    #[serde(default)]
    pub(super) attempt: u32,
    #[serde(default)]
    pub(super) paused: bool,
    #[serde(default)]
    pub(super) epoch: u64,
    #[serde(default)]
    pub(super) tokens: Usage,
    #[serde(default)]
    pub(super) coverage: CoverageCountsLine,
    #[serde(default)]
    pub(super) finding_counts: FindingCounts,
}

impl RunLine<'_> {
    /// Returns the run as lists show it.
    pub(super) fn to_row(&self) -> RunRow<'_> {
        RunRow {
            id: &self.run_id,
            status: self.status,
            scope: &self.scope,
            reviewer: &self.reviewer,
            model: &self.model,
            reasoning_effort: &self.reasoning_effort,
            branch: &self.branch,
            created_ms: self.created_at.as_millisecond(),
            updated_ms: self.updated_at.as_millisecond(),
            counts: self.finding_counts.by_priority(),
            tokens: self.tokens.input.saturating_add(self.tokens.output).saturating_add(self.tokens.reasoning),
            files_total: self.coverage.files_total,
            files_covered: self.coverage.files_covered,
            hunks_total: self.coverage.hunks_total,
            hunks_covered: self.coverage.hunks_covered,
            incomplete: match self.status {
                RunStatus::Completed => self.coverage.is_incomplete(),
                RunStatus::Skipped => self.coverage.incomplete,
                _ => false,
            },
            has_carried: self.coverage.files_carried > 0 || self.coverage.hunks_carried > 0,
            attempt: self.attempt,
            paused: self.paused,
            epoch: self.epoch,
            superseded_by: self.superseded_by.as_deref().unwrap_or(""),
            cancel_reason: self.cancel_reason.as_deref().unwrap_or(""),
            error_class: self.error_class.as_deref().unwrap_or(""),
            diff_fingerprint: &self.diff_fingerprint,
            scope_hash: &self.scope_hash,
            policy_version: &self.prompt_policy_version,
            snapshot_commit: &self.snapshot_commit,
            head_commit: &self.head_commit,
            matching_head: if self.last_reuse_head.is_empty() { &self.head_commit } else { &self.last_reuse_head },
            worktree: &self.worktree,
            base_commit: &self.base_commit,
            cost: self.cost,
            reused_from: self.reused_from.as_deref().unwrap_or(""),
            carried_over_from: self.carried_over_from.as_deref().unwrap_or(""),
            resumed_from: self.resumed_from.as_deref().unwrap_or(""),
            reuse_count: self.reuse_count,
            member_of: self.member_of.as_deref().unwrap_or(""),
            members: &self.members,
        }
    }
}

/// Returns the members of a panel in the form of [`RunRow::members`]: the ids of their runs with blanks between them, each
/// followed by `:` and the decision unless the run was launched. Empty for a panel that this version cannot read.
fn list_panel_members<'de, D: Deserializer<'de>>(panel: D) -> Result<String, D::Error> {
    #[derive(Deserialize)]
    struct PanelLine<'a> {
        #[serde(borrow)]
        members: Vec<MemberLine<'a>>,
    }
    #[derive(Deserialize)]
    struct MemberLine<'a> {
        #[serde(borrow)]
        run_id: Cow<'a, str>,
        #[serde(borrow, default)]
        decision: Cow<'a, str>,
    }
    let Some(panel) = Option::<&'de RawValue>::deserialize(panel)? else { return Ok(String::new()) };
    let Ok(PanelLine { members }) = serde_json::from_str(panel.get()) else { return Ok(String::new()) };
    let known = members.iter().filter(|member| RunId::is_valid(&member.run_id));
    let listed = known.map(|MemberLine { run_id, decision }| match decision.parse() {
        Ok(RequestDecision::Launch) | Err(_) => run_id.to_string(),
        Ok(decision) => format!("{run_id}:{}", decision.word()),
    });
    Ok(listed.collect::<Vec<_>>().join(" "))
}

/// A finding of an output or a journal.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct FindingLine<'a> {
    #[serde(borrow)]
    pub(super) finding_id: Cow<'a, str>,
    pub(super) priority: Priority,
    pub(super) severity: Severity,
    pub(super) kind: Kind,
    #[serde(borrow)]
    pub(super) title: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) repo_relative_path: Cow<'a, str>,
    pub(super) line_start: u32,
    pub(super) line_end: u32,
    /// True if the reviewers of a panel contradict each other about it.
    #[serde(default, deserialize_with = "has_entries")]
    pub(super) disputed: bool,
    /// True if a second opinion has settled that.
    #[serde(rename = "steps", default, deserialize_with = "has_verdict")]
    pub(super) settled: bool,
    /// Function around the finding; empty in records of older versions.
    #[serde(borrow, default)]
    pub(super) symbol: Cow<'a, str>,
}

/// Returns true for a list with an entry. The entries are skipped.
fn has_entries<'de, D: Deserializer<'de>>(list: D) -> Result<bool, D::Error> {
    Vec::<IgnoredAny>::deserialize(list).map(|entries| !entries.is_empty())
}

/// Returns true if one of a finding's steps is a second opinion that can tell. A step that this version cannot read is none.
fn has_verdict<'de, D: Deserializer<'de>>(steps: D) -> Result<bool, D::Error> {
    /// Opinion of [`crate::domain::FindingStep::Ruled`]; other steps have none.
    #[derive(Deserialize)]
    struct StepLine<'a> {
        #[serde(borrow, default)]
        opinion: Cow<'a, str>,
    }
    let steps = Vec::<&'de RawValue>::deserialize(steps)?;
    let opinions = steps.iter().filter_map(|step| serde_json::from_str::<StepLine<'_>>(step.get()).ok());
    Ok(opinions.filter_map(|step| step.opinion.parse::<Opinion>().ok()).any(Opinion::is_verdict))
}

impl FindingLine<'_> {
    /// Returns true if the reviewers of a panel contradict each other, and no second opinion has settled that.
    pub(super) fn is_disputed(&self) -> bool {
        self.disputed && !self.settled
    }

    pub(super) fn into_owned(self) -> FindingLine<'static> {
        FindingLine {
            finding_id: self.finding_id.into_owned().into(),
            title: self.title.into_owned().into(),
            repo_relative_path: self.repo_relative_path.into_owned().into(),
            symbol: self.symbol.into_owned().into(),
            ..FindingLine {
                finding_id: Cow::Borrowed(""),
                title: Cow::Borrowed(""),
                repo_relative_path: Cow::Borrowed(""),
                priority: self.priority,
                severity: self.severity,
                kind: self.kind,
                line_start: self.line_start,
                line_end: self.line_end,
                disputed: self.disputed,
                settled: self.settled,
                symbol: Cow::Borrowed(""),
            }
        }
    }
}

/// Location where a run saw an earlier finding.
#[derive(Debug, Deserialize)]
pub(super) struct MovedLine<'a> {
    #[serde(borrow)]
    pub(super) finding_id: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) path: Cow<'a, str>,
    pub(super) line_start: u32,
    pub(super) line_end: u32,
}

/// The data of an output that the tables use.
#[derive(Debug, Default)]
pub(super) struct OutputLines<'a> {
    pub(super) findings: Vec<FindingLine<'a>>,
    pub(super) moved: Vec<MovedLine<'a>>,
    /// Number of findings that could not be read.
    pub(super) unreadable: usize,
}

/// A line of `triage.ndjson`.
#[derive(Debug, Deserialize)]
pub(super) struct TriageStatusLine<'a> {
    #[serde(borrow)]
    pub(super) finding_id: Cow<'a, str>,
    pub(super) status: FindingStatus,
    /// Author, time and reason; `None` when this version cannot read one of them.
    #[serde(skip)]
    pub(super) decision: Option<FindingDecision>,
}

impl TriageStatusLine<'_> {
    /// Returns the status as the tables keep it.
    pub(super) fn to_packed(&self) -> PackedStatus {
        let decision = self.decision.map(PackedDecision::from).unwrap_or_default();
        PackedStatus { status: self.status as u8, decision }
    }
}

/// Author, time and reason in a line of `triage.ndjson`.
#[derive(Debug, Deserialize)]
struct DecisionFields<'a> {
    actor: Actor,
    at: Time,
    #[serde(borrow, default)]
    reason: Cow<'a, str>,
}

/// A line of a journal, with the fields of all kinds of events.
#[derive(Debug, Deserialize)]
pub(super) struct EventLine<'a> {
    pub(super) at: Time,
    #[serde(borrow)]
    pub(super) event: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) finding: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) file: Option<&'a RawValue>,
    #[serde(default)]
    pub(super) files: u32,
    #[serde(default)]
    pub(super) hunks: u32,
}

pub(super) fn parse_run(line: &[u8]) -> Option<RunLine<'_>> {
    serde_json::from_slice(line).ok().filter(|run: &RunLine<'_>| RunId::is_valid(&run.run_id))
}

/// Parses a line of `triage.ndjson`. A line whose status is readable counts, even if its author or time is not.
pub(super) fn parse_triage(line: &[u8]) -> Option<TriageStatusLine<'_>> {
    let mut status: TriageStatusLine<'_> = serde_json::from_slice(line).ok()?;
    let decided = serde_json::from_slice::<DecisionFields<'_>>(line).ok();
    status.decision = decided.map(|fields| FindingDecision {
        actor: fields.actor,
        at: fields.at,
        reason: DismissalReason::from_text(&fields.reason),
    });
    FindingId::is_valid(&status.finding_id).then_some(status)
}

/// Returns the run id of a line of `runs.ndjson` without parsing the line, as [`peek_finding_id`] does.
pub(super) fn peek_run_id(line: &[u8]) -> Option<&str> {
    let id = line.strip_prefix(b"{\"run_id\":\"").and_then(|rest| rest.split(|byte| *byte == b'"').next());
    id.and_then(|id| std::str::from_utf8(id).ok())
}

/// Returns the finding id of a line of `triage.ndjson` without parsing the line: in lines that this version writes, the
/// id is the first field.
pub(super) fn peek_finding_id(line: &[u8]) -> Option<&str> {
    let id = line.strip_prefix(b"{\"finding_id\":\"").and_then(|rest| rest.get(..FINDING_ID_BYTES));
    id.and_then(|id| std::str::from_utf8(id).ok())
}

pub(super) fn parse_finding(json: &RawValue) -> Option<FindingLine<'_>> {
    serde_json::from_str(json.get()).ok().filter(|line: &FindingLine<'_>| FindingId::is_valid(&line.finding_id))
}

/// Parses an output; `None` when the JSON is not an output.
pub(super) fn parse_output_lines(json: &[u8]) -> Option<OutputLines<'_>> {
    #[derive(Deserialize)]
    struct ReadableOutput<'a> {
        #[serde(borrow)]
        findings: Vec<FindingLine<'a>>,
        #[serde(borrow, default)]
        moved: Vec<MovedLine<'a>>,
    }
    #[derive(Deserialize)]
    struct RawOutput<'a> {
        #[serde(borrow)]
        findings: Vec<&'a RawValue>,
        #[serde(borrow, default)]
        moved: Vec<MovedLine<'a>>,
    }
    if let Ok(ReadableOutput { mut findings, moved }) = serde_json::from_slice(json) {
        let all = findings.len();
        findings.retain(|line| FindingId::is_valid(&line.finding_id));
        return Some(OutputLines { unreadable: all - findings.len(), findings, moved });
    }
    let RawOutput { findings: parts, moved } = serde_json::from_slice(json).ok()?;
    let findings: Vec<_> = parts.iter().filter_map(|part| parse_finding(part)).collect();
    Some(OutputLines { unreadable: parts.len() - findings.len(), findings, moved })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_of_a_panel_are_listed_with_the_decisions_about_them() {
        let run = |digit: &str| format!("ar_{}", digit.repeat(26));
        let line = |panel: &str| {
            format!(
                r#"{{"run_id":"{}","status":"pending","created_at":"2026-11-01T10:00:00Z","updated_at":"2026-11-01T10:00:00Z","scope":"all","reviewer":"panel:all"{panel}}}"#,
                run("1")
            )
        };
        let member = |digit: &str, decision: &str| {
            format!(r#"{{"reviewer":"one","run_id":"{}","decision":"{decision}"}}"#, run(digit))
        };
        let panel = |members: &[String]| format!(r#","panel":{{"name":"all","members":[{}]}}"#, members.join(","));
        use RequestDecision::{Adopt, Launch, Reuse};
        for (panel, expected) in [
            (String::new(), vec![]),
            (r#","panel":null"#.to_owned(), vec![]),
            (r#","panel":7"#.to_owned(), vec![]),
            (panel(&[member("2", "launch"), member("3", "reuse")]), vec![(run("2"), Launch), (run("3"), Reuse)]),
            // A decision of a later version counts as a launch; what is no run is left out.
            (
                panel(&[member("2", "adopt"), member("3", "borrow"), member("", "launch")]),
                vec![(run("2"), Adopt), (run("3"), Launch)],
            ),
        ] {
            let line = line(&panel);
            let parsed = parse_run(line.as_bytes()).unwrap_or_else(|| panic!("{line}"));
            let row = parsed.to_row();
            let listed: Vec<_> = row.panel_members().map(|(run, decision)| (run.to_owned(), decision)).collect();
            assert_eq!((row.is_panel(), listed), (!expected.is_empty(), expected), "{line}");
        }
    }
}
