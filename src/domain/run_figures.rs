//! Defines the figures of a run that statistics need: the part of a run's record without its texts and lists.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::{
    CancelReason, ErrorClass, FindingCounts, FindingId, ListedReport, Panel, PhaseTimings, ReviewerUsage, RunId,
    RunRecord, RunStatus, Scope, Source, Time, Usage,
};

/// Figures of a run, see the fields of the same names in [`RunRecord`].
///
/// They are read from a line of `runs.ndjson`. Without the lists of a record, and without its nested parts, which serde
/// buffers, reading them takes a fraction of the time of reading a whole record.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct RunFigures {
    /// Id of the run.
    pub run_id: RunId,
    /// Status in the latest record.
    pub status: RunStatus,
    /// Time of the request.
    pub created_at: Time,
    /// Part of revdeck that requested the run.
    pub source: Source,
    /// Requested part of the repository.
    pub scope: Scope,
    /// Name of the requested reviewer.
    pub reviewer: String,
    /// Requested model; empty for a reviewer without one.
    #[serde(default)]
    pub model: String,
    /// Requested effort; empty for none.
    #[serde(default)]
    pub reasoning_effort: String,
    /// Usage by reviewer that answered.
    #[serde(default)]
    pub answered_by: Vec<ReviewerUsage>,
    /// Number of started workers.
    #[serde(default)]
    pub attempt: u32,
    /// Number of reviews of patches for this run's findings.
    #[serde(default)]
    pub follow_up_count: u32,
    /// Durations of the phases.
    #[serde(default)]
    pub phase_timings: PhaseTimings,
    /// Tokens that were sent and received.
    #[serde(default)]
    pub tokens: Usage,
    /// Cost in US dollars; 0 also if no price is known.
    #[serde(default)]
    pub cost: f64,
    /// True if the price of every answer was known; `None` if older versions wrote the record.
    #[serde(default)]
    pub price_known: Option<bool>,
    /// Tokens of the fullest window.
    #[serde(default)]
    pub window_peak: u64,
    /// Tokens that were not sent because earlier runs covered the code.
    #[serde(default)]
    pub saved_token_estimate: u64,
    /// Numbers of hunks.
    #[serde(default)]
    pub coverage: CoveredHunks,
    /// Numbers of findings by priority.
    #[serde(default)]
    pub finding_counts: FindingCounts,
    /// Findings that no reviewer reported: revdeck's own search for secrets found them.
    #[serde(default)]
    pub scanned_findings: Vec<FindingId>,
    /// Reports of a panel's members that stand on its list under another id than their own, which another problem has.
    #[serde(default)]
    pub listed_as: Vec<ListedReport>,
    /// Reason for the policy's decision at the request.
    #[serde(default)]
    pub decision: String,
    /// Number of later requests that the run answered.
    #[serde(default)]
    pub reuse_count: u32,
    /// Part of `reuse_count` while the run was active.
    #[serde(default)]
    pub adopted_count: u32,
    /// Newer run that replaced it.
    #[serde(default)]
    pub superseded_by: Option<RunId>,
    /// Run of the panel that requested it.
    #[serde(default)]
    pub member_of: Option<RunId>,
    /// Run whose results answer this skipped run.
    #[serde(default)]
    pub reused_from: Option<RunId>,
    /// Run from which it carried over most.
    #[serde(default)]
    pub carried_over_from: Option<RunId>,
    /// Run whose journal it continues.
    #[serde(default)]
    pub resumed_from: Option<RunId>,
    /// Reason of the cancellation.
    #[serde(default)]
    pub cancel_reason: Option<CancelReason>,
    /// Class of the failure.
    #[serde(default)]
    pub error_class: Option<ErrorClass>,
    /// Present if another machine of the team made the run.
    #[serde(default)]
    pub team: Option<IgnoredAny>,
}

/// Numbers of hunks that a run showed to its reviewer, or took over from an earlier run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct CoveredHunks {
    /// Hunks that this run showed to its reviewer.
    pub hunks_covered: u32,
    /// Hunks that an earlier run had reviewed unchanged.
    pub hunks_carried: u32,
}

/// Part of what a run has used that counts for one reviewer with one model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReviewerShare<'a> {
    /// Name of the reviewer.
    pub reviewer: &'a str,
    /// Its model; empty for a reviewer without one.
    pub model: &'a str,
    /// Tokens that were sent and received.
    pub tokens: u64,
    /// Cost in US dollars, 0 for a free model; `None` if the price of an answer is not known.
    pub cost: Option<f64>,
    /// Time of the review, or of the second opinions, in milliseconds.
    pub review_ms: u64,
}

impl RunFigures {
    /// Returns what the reviewers of the run have used. Second opinions on the list of a panel count for the reviewers that gave
    /// them. Every other run counts as a whole for its [main reviewer](Self::main_reviewer), and so does the run of a panel
    /// whose record is of an older version.
    pub fn shares(&self) -> impl Iterator<Item = ReviewerShare<'_>> {
        let answered_by = self.answered_by.as_slice();
        let is_split = self.is_panel() && answered_by.iter().all(|usage| usage.cost.is_some());
        let opinions = if is_split { answered_by } else { &[] };
        let whole = opinions.is_empty().then(|| ReviewerShare {
            reviewer: self.main_reviewer(),
            model: self.main_model(),
            tokens: self.tokens.total(),
            cost: self.known_cost(),
            review_ms: self.phase_timings.review_ms,
        });
        whole.into_iter().chain(opinions.iter().map(move |usage| self.share_of(usage)))
    }

    /// Returns what a reviewer has used that gave second opinions. A cost of 0 in a run with an unknown price is not known.
    fn share_of<'a>(&self, usage: &'a ReviewerUsage) -> ReviewerShare<'a> {
        let cost = usage.cost.unwrap_or(0.0);
        let is_known = usage.tokens.total() == 0 || self.price_known == Some(true) || cost > 0.0;
        ReviewerShare {
            reviewer: &usage.reviewer,
            model: &usage.model,
            tokens: usage.tokens.total(),
            cost: is_known.then_some(cost),
            review_ms: usage.took_ms.unwrap_or(0),
        }
    }

    /// Returns the name of the reviewer that the run counts for: the one with most answers, else the requested one.
    pub fn main_reviewer(&self) -> &str {
        ReviewerUsage::find_main(&self.answered_by).map_or(&self.reviewer, |main| &main.reviewer)
    }

    /// Returns the model that the run counts for, chosen as in [`RunFigures::main_reviewer`]; empty for a reviewer without
    /// a model.
    pub fn main_model(&self) -> &str {
        ReviewerUsage::find_main(&self.answered_by).map_or(&self.model, |main| &main.model)
    }

    /// Returns the cost in US dollars, 0 for a free model; `None` if the price of an answer is not known. Records of older
    /// versions do not tell a free model from one without a known price: their cost counts if it is not 0.
    pub fn known_cost(&self) -> Option<f64> {
        let is_known = self.price_known.unwrap_or(self.cost > 0.0);
        (self.tokens.total() == 0 || is_known).then_some(self.cost)
    }

    /// Returns the figures of what was spent here: a run of another machine was paid there.
    #[must_use]
    pub fn spent_here(mut self) -> Self {
        if self.team.is_some() {
            (self.tokens, self.cost, self.window_peak) = (Usage::default(), 0.0, 0);
            for usage in &mut self.answered_by {
                (usage.tokens, usage.cost) = (Usage::default(), usage.cost.map(|_| 0.0));
            }
        }
        self
    }

    /// Returns true for the run of a panel. Its findings are those of its members; who answered in it gave second opinions and
    /// reported nothing.
    pub fn is_panel(&self) -> bool {
        Panel::name_of(&self.reviewer).is_some()
    }

    /// Returns true if the run reviewed code itself: it was neither skipped nor imported.
    pub fn is_review(&self) -> bool {
        self.status != RunStatus::Skipped && !self.is_import()
    }

    /// Returns true for imported findings and for a comment of the user: nobody has reviewed code in such a run.
    pub fn is_import(&self) -> bool {
        self.source == Source::Import
    }
}

impl From<&RunRecord> for RunFigures {
    fn from(record: &RunRecord) -> Self {
        let RunRecord { subject, reviewed_by, usage, outcome, reuse, links, ending, .. } = record;
        let hunks = &outcome.coverage;
        Self {
            run_id: record.run_id.clone(),
            status: record.status,
            created_at: record.created_at,
            source: record.source,
            scope: subject.scope.clone(),
            reviewer: reviewed_by.name.clone(),
            model: reviewed_by.model.clone(),
            reasoning_effort: reviewed_by.reasoning_effort.clone(),
            answered_by: usage.answered_by.clone(),
            attempt: record.attempt,
            follow_up_count: record.follow_up_count,
            phase_timings: usage.phase_timings,
            tokens: usage.tokens,
            cost: usage.cost,
            price_known: usage.price_known,
            window_peak: usage.window_peak,
            saved_token_estimate: usage.saved_token_estimate,
            coverage: CoveredHunks { hunks_covered: hunks.hunks_covered, hunks_carried: hunks.hunks_carried },
            finding_counts: outcome.finding_counts,
            scanned_findings: outcome.scanned_findings.clone(),
            listed_as: outcome.listed_as.clone(),
            decision: record.decision.clone(),
            reuse_count: reuse.count,
            adopted_count: reuse.adopted_count,
            superseded_by: links.superseded_by.clone(),
            member_of: links.member_of.clone(),
            reused_from: links.reused_from.clone(),
            carried_over_from: links.carried_over_from.clone(),
            resumed_from: links.resumed_from.clone(),
            cancel_reason: ending.cancel_reason,
            error_class: ending.error_class,
            team: record.team.as_ref().map(|_| IgnoredAny),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_and_the_record_of_the_line_have_the_same_figures() {
        let line = json!({
            "run_id": "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0E", "status": "failed", "created_at": "2026-11-01T10:00:00Z",
            "updated_at": "2026-11-01T10:05:00Z", "source": "watch", "scope": "commit:abc", "reviewer": "deep",
            "model": "d-1", "reasoning_effort": "high", "attempt": 2, "follow_up_count": 1,
            "phase_timings": {"review_ms": 70, "first_finding_ms": 12},
            "tokens": {"input": 5, "cached": 1, "output": 3, "reasoning": 2, "estimated": true}, "cost": 0.25,
            "price_known": true,
            "window_peak": 800,
            "answered_by": [{"reviewer": "deep", "model": "d-1", "turns": 1}, {"reviewer": "spare", "model": "s-2", "turns": 4}],
            "saved_token_estimate": 40, "coverage": {"hunks_covered": 3, "hunks_carried": 2, "files": []},
            "finding_counts": {"p0": 1, "p3": 2}, "finding_digests": ["f_0000000000000001"],
            "scanned_findings": ["f_0000000000000001"],
            "listed_as": [{"run_id": "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0N", "reported_as": "f_0000000000000001",
                "finding_id": "f_0000000000000002"}],
            "decision": "nothing equivalent",
            "reuse_count": 3, "adopted_count": 1, "superseded_by": "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0F",
            "member_of": "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0K",
            "reused_from": "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0G", "carried_over_from": "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0H",
            "resumed_from": "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0J", "cancel_reason": "user_stop", "error_class": "network",
            "from_a_later_version": {"deep": [1, 2]},
        });
        let text = line.to_string();
        let figures: RunFigures = serde_json::from_str(&text).expect("figures");
        let record: RunRecord = serde_json::from_str(&text).expect("a record");
        assert_eq!(figures, RunFigures::from(&record));
        assert_eq!((figures.main_reviewer(), figures.main_model()), ("spare", "s-2"));
        assert_eq!((figures.known_cost(), figures.coverage.hunks_carried), (Some(0.25), 2));

        for (cost, price_known, expected) in [
            (0.0, Some(true), Some(0.0)),
            (0.25, Some(true), Some(0.25)),
            (0.25, Some(false), None),
            (0.25, None, Some(0.25)),
            (0.0, None, None),
        ] {
            let figures = RunFigures { cost, price_known, ..figures.clone() };
            assert_eq!(figures.known_cost(), expected, "{cost} {price_known:?}");
        }

        let opinion = |reviewer: &str, cost: Option<f64>| ReviewerUsage {
            reviewer: reviewer.to_owned(),
            model: "m".to_owned(),
            turns: 1,
            tokens: Usage { input: 5, ..Usage::default() },
            cost,
            took_ms: cost.map(|_| 30),
            ..ReviewerUsage::default()
        };
        let judged = |price_known: bool, costs: [Option<f64>; 2]| {
            let answered_by = vec![opinion("judge", costs[0]), opinion("dear", costs[1])];
            let (reviewer, price_known) = ("panel:all".to_owned(), Some(price_known));
            RunFigures { reviewer, answered_by, price_known, ..figures.clone() }
        };
        for (run, expected) in [
            (
                judged(true, [Some(0.25), Some(0.0)]),
                &[("judge", 5_u64, Some(0.25), 30_u64), ("dear", 5, Some(0.0), 30)][..],
            ),
            (judged(false, [Some(0.25), Some(0.0)]), &[("judge", 5, Some(0.25), 30), ("dear", 5, None, 30)][..]),
            // Older versions recorded no cost of each. The last one of equals counts for all.
            (judged(true, [None, None]), &[("dear", 10, Some(0.25), 70)][..]),
            (
                RunFigures { answered_by: Vec::new(), ..judged(true, [None, None]) },
                &[("panel:all", 10, Some(0.25), 70)][..],
            ),
            (figures.clone(), &[("spare", 10, Some(0.25), 70)][..]),
        ] {
            let shares: Vec<_> = run.shares().map(|one| (one.reviewer, one.tokens, one.cost, one.review_ms)).collect();
            assert_eq!(shares, expected, "{run:?}");
        }

        let least = json!({
            "run_id": "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0E", "status": "skipped", "created_at": "2026-11-01T10:00:00Z",
            "updated_at": "2026-11-01T10:05:00Z", "source": "cli", "scope": "worktree", "reviewer": "builtin",
        });
        let figures: RunFigures = serde_json::from_value(least.clone()).expect("figures");
        assert_eq!(figures, RunFigures::from(&serde_json::from_value::<RunRecord>(least).expect("a record")));
        assert_eq!((figures.main_reviewer(), figures.main_model(), figures.known_cost()), ("builtin", "", Some(0.0)));
        assert!(!figures.is_review());
    }
}
