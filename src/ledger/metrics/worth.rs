//! Computes what reviewers, models, kinds and languages are worth: how many of their findings were accepted, at which
//! cost; and the kinds about which a reviewer is almost always wrong.
//!
//! - Everything follows from the dispositions and the records of the store.
//! - A finding counts once for each reviewer and model that reported it, and once for its kind and its language. What revdeck's
//!   own search for secrets found in the run of a model counts for its kind and its language only.
//! - A run counts for the reviewer that gave most of its answers.
//! - The run of a panel reports what its members report. Its cost and time count for the reviewers and the models that gave
//!   second opinions on its list, for each what its own answers took; its findings count for those of the members alone.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::reports::{ReportedFindings, for_each_row};
use super::{FindingFact, MetricsInput, Precision};
use crate::domain::{
    DismissalReason, FindingStatus, Kind, KindRecord, Panel, ReviewerShare, RunFigures, RunStatus, wilson_upper_bound,
};

/// Fewest decisions about the findings of a kind from which they steer later reviews; a requirement of the project.
pub const MIN_STEERING_DECISIONS: u32 = 20;
/// A reviewer is almost always wrong about a kind if its precision is below this share with a confidence of 95 % (upper
/// Wilson bound). Chosen here: of 20 decided findings at most one was accepted, of 25 at most two.
pub const MAX_WRONG_PRECISION: f64 = 0.25;

/// Worth by four groupings. The rows with most findings come first.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Worth {
    pub by_reviewer: Vec<WorthRow>,
    /// A reviewer without a model has its own name.
    pub by_model: Vec<WorthRow>,
    pub by_kind: Vec<WorthRow>,
    pub by_language: Vec<WorthRow>,
    /// Sorted by reviewer and kind.
    pub almost_always_wrong: Vec<MisjudgedKind>,
}

/// Worth of a reviewer, a model, a kind or a language.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct WorthRow {
    pub name: String,
    pub raised: u32,
    /// Findings that somebody says to have fixed, or whose fix a later review saw.
    pub accepted: u32,
    /// Part of `accepted` whose fix a later review saw.
    pub confirmed: u32,
    pub dismissed: u32,
    pub dismissed_by_reason: DismissalCounts,
    pub undecided: u32,
    pub obsolete: u32,
    pub precision: Precision,
    /// Cost in US dollars. `None` if tokens were spent without a known price.
    pub cost: Option<f64>,
    /// Time of the reviews in milliseconds.
    pub review_ms: u64,
    /// Cost divided by the number of accepted findings. `None` without one.
    pub cost_per_accepted: Option<f64>,
    pub review_ms_per_accepted: Option<u64>,
}

/// Number of dismissed findings by the class of their reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct DismissalCounts {
    pub not_worth_it: u32,
    pub false_alarm: u32,
    pub intended: u32,
    pub generated: u32,
    pub fixed_elsewhere: u32,
    pub other: u32,
}

impl DismissalCounts {
    fn count_mut(&mut self, reason: DismissalReason) -> &mut u32 {
        match reason {
            DismissalReason::NotWorthIt => &mut self.not_worth_it,
            DismissalReason::FalseAlarm => &mut self.false_alarm,
            DismissalReason::Intended => &mut self.intended,
            DismissalReason::Generated => &mut self.generated,
            DismissalReason::FixedElsewhere => &mut self.fixed_elsewhere,
            DismissalReason::Other => &mut self.other,
        }
    }

    /// Returns the reasons with their counts, in the order of [`DismissalReason::ALL`].
    pub fn iter(mut self) -> impl Iterator<Item = (DismissalReason, u32)> {
        DismissalReason::ALL.iter().map(move |reason| (*reason, *self.count_mut(*reason)))
    }
}

/// A kind about which a reviewer is almost always wrong.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MisjudgedKind {
    pub reviewer: String,
    pub kind: Kind,
    pub accepted: u32,
    /// Dismissed findings, without those whose reason does not concern the code.
    pub wrong: u32,
    /// Upper bound of the precision with a confidence of 95 %.
    pub at_most: f64,
}

/// Decisions about the findings of a kind by one reviewer.
#[derive(Debug, Clone, Copy, Default)]
struct KindDecisions {
    accepted: u32,
    wrong: u32,
}

impl KindDecisions {
    /// Returns the upper bound of the precision if the reviewer is almost always wrong.
    fn misjudged_at_most(self) -> Option<f64> {
        let decided = self.accepted.saturating_add(self.wrong);
        let at_most = wilson_upper_bound(f64::from(self.accepted), f64::from(decided));
        (decided >= MIN_STEERING_DECISIONS && at_most < MAX_WRONG_PRECISION).then_some(at_most)
    }
}

/// Row under construction.
#[derive(Default)]
struct WorthSum {
    row: WorthRow,
    cost: f64,
    review_ms: f64,
    has_unknown_cost: bool,
}

impl WorthSum {
    fn count_finding(&mut self, fact: &FindingFact<'_>) {
        let row = &mut self.row;
        row.raised += 1;
        match fact.status {
            FindingStatus::Open | FindingStatus::Unresolved => row.undecided += 1,
            FindingStatus::Addressed => {
                row.accepted += 1;
                row.confirmed += u32::from(fact.is_confirmed());
            }
            FindingStatus::Dismissed => {
                row.dismissed += 1;
                *row.dismissed_by_reason.count_mut(dismissal_reason(fact)) += 1;
            }
            FindingStatus::Obsolete => row.obsolete += 1,
        }
    }

    /// Adds a part of the cost and the time of a run.
    fn add_run(&mut self, run: &RunFigures, part: f64) {
        let cost = run.known_cost().map(|cost| cost * part);
        self.add_spending(cost, run.phase_timings.review_ms as f64 * part);
    }

    /// Adds a cost in US dollars, `None` without a known price, and a time in milliseconds.
    fn add_spending(&mut self, cost: Option<f64>, review_ms: f64) {
        match cost {
            Some(cost) => self.cost += cost,
            None => self.has_unknown_cost = true,
        }
        self.review_ms += review_ms;
    }

    fn into_row(self, name: String) -> WorthRow {
        let accepted = f64::from(self.row.accepted);
        let each = |sum: f64| (accepted > 0.0).then(|| sum / accepted);
        let cost = (!self.has_unknown_cost).then_some(self.cost);
        WorthRow {
            name,
            precision: Precision::from_counts(self.row.accepted, self.row.dismissed),
            cost,
            review_ms: self.review_ms.round() as u64,
            cost_per_accepted: cost.and_then(each),
            review_ms_per_accepted: each(self.review_ms).map(|ms| ms.round() as u64),
            ..self.row
        }
    }
}

fn dismissal_reason(fact: &FindingFact<'_>) -> DismissalReason {
    fact.decided.map_or(DismissalReason::Other, |decision| decision.reason)
}

/// Rows by name, for groupings of runs.
#[derive(Default)]
struct RunGroups<'a> {
    names: Vec<&'a str>,
    sums: Vec<WorthSum>,
    /// Row of each run to which its findings are counted. `None` for a skipped run, and for the run of a panel.
    row_of: Vec<Option<usize>>,
}

impl<'a> RunGroups<'a> {
    fn from_runs(runs: &[&'a RunFigures], name_of: impl Fn(&ReviewerShare<'a>) -> &'a str) -> Self {
        let mut groups = Self::default();
        let mut known: HashMap<&str, usize> = HashMap::new();
        for run in runs.iter().copied() {
            let mut row_of_findings = None;
            // A panel without second opinions is no reviewer and has no cost of its own.
            let is_counted = |share: &ReviewerShare<'_>| {
                run.status != RunStatus::Skipped && Panel::name_of(share.reviewer).is_none()
            };
            for share in run.shares().filter(is_counted) {
                let name = name_of(&share);
                let row = *known.entry(name).or_insert(groups.names.len());
                if row == groups.names.len() {
                    groups.names.push(name);
                    groups.sums.push(WorthSum::default());
                }
                groups.sums[row].add_spending(share.cost, share.review_ms as f64);
                row_of_findings = Some(row).filter(|_| !run.is_panel());
            }
            groups.row_of.push(row_of_findings);
        }
        groups
    }

    fn count_finding(&mut self, fact: &FindingFact<'_>, reporting: &[u32]) {
        for_each_row(&self.row_of, reporting, |row| self.sums[row].count_finding(fact));
    }

    fn into_rows(self) -> Vec<WorthRow> {
        sort_rows(self.sums.into_iter().zip(self.names).map(|(sum, name)| sum.into_row(name.to_owned())).collect())
    }
}

/// Rows by name, for kinds and languages.
#[derive(Default)]
struct WorthGroups<'a> {
    /// A store has a few dozen of them; a list is searched faster than a map.
    sums: Vec<(&'a str, WorthSum)>,
}

impl<'a> WorthGroups<'a> {
    fn sum_mut(&mut self, name: &'a str) -> &mut WorthSum {
        // Names are constants: mostly the same address.
        let is_same = |known: &str| std::ptr::eq(known, name) || known == name;
        let at = self.sums.iter().position(|(known, _)| is_same(known)).unwrap_or_else(|| {
            self.sums.push((name, WorthSum::default()));
            self.sums.len() - 1
        });
        &mut self.sums[at].1
    }

    fn into_rows(self) -> Vec<WorthRow> {
        let name = |name: &str| if name.is_empty() { "other" } else { name }.to_owned();
        sort_rows(self.sums.into_iter().map(|(known, sum)| sum.into_row(name(known))).collect())
    }
}

fn sort_rows(mut rows: Vec<WorthRow>) -> Vec<WorthRow> {
    rows.sort_by(|a, b| b.raised.cmp(&a.raised).then_with(|| a.name.cmp(&b.name)));
    rows
}

fn reviewer_name<'a>(share: &ReviewerShare<'a>) -> &'a str {
    share.reviewer
}

fn model_name<'a>(share: &ReviewerShare<'a>) -> &'a str {
    if share.model.is_empty() { share.reviewer } else { share.model }
}

/// Computes the worth of the selected runs. Each finding of a run bears an equal part of its cost and time for its kind
/// and its language; a run without findings counts for its reviewer and its model only.
pub(super) fn compute_worth(reported: &ReportedFindings<'_>) -> Worth {
    let mut reviewers = RunGroups::from_runs(&reported.runs, reviewer_name);
    let mut models = RunGroups::from_runs(&reported.runs, model_name);
    let (mut kinds, mut languages) = (WorthGroups::default(), WorthGroups::default());
    let mut decisions: BTreeMap<(usize, Kind), KindDecisions> = BTreeMap::new();
    let mut report_counts = vec![0_u32; reported.runs.len()];
    for run in reported.iter().flat_map(|(_, reporting)| reporting) {
        report_counts[*run as usize] += 1;
    }
    for (fact, reporting) in reported.iter_by_reviewers() {
        reviewers.count_finding(fact, reporting);
        models.count_finding(fact, reporting);
        count_decision(&reviewers, fact, reporting, &mut decisions);
    }
    for (fact, reporting) in reported.iter() {
        for sum in [kinds.sum_mut(fact.kind.word()), languages.sum_mut(fact.language)] {
            sum.count_finding(fact);
            for run in reporting.iter().map(|run| *run as usize) {
                sum.add_run(reported.runs[run], 1.0 / f64::from(report_counts[run].max(1)));
            }
        }
    }
    let almost_always_wrong = name_misjudged(&reviewers, &decisions);
    Worth {
        by_reviewer: reviewers.into_rows(),
        by_model: models.into_rows(),
        by_kind: kinds.into_rows(),
        by_language: languages.into_rows(),
        almost_always_wrong,
    }
}

/// Counts a decision about a finding for the reviewers that reported it. A dismissal whose reason does not concern the
/// code is no decision about the reviewer, and neither is one about a kind that [is never lowered](Kind::is_never_lowered).
fn count_decision(
    reviewers: &RunGroups<'_>,
    fact: &FindingFact<'_>,
    reporting: &[u32],
    decisions: &mut BTreeMap<(usize, Kind), KindDecisions>,
) {
    let is_wrong = match fact.status {
        FindingStatus::Addressed => false,
        FindingStatus::Dismissed if !dismissal_reason(fact).is_unrelated_to_code() => true,
        _ => return,
    };
    if fact.kind.is_never_lowered() {
        return;
    }
    for_each_row(&reviewers.row_of, reporting, |reviewer| {
        let counts = decisions.entry((reviewer, fact.kind)).or_default();
        *(if is_wrong { &mut counts.wrong } else { &mut counts.accepted }) += 1;
    });
}

fn name_misjudged(reviewers: &RunGroups<'_>, decisions: &BTreeMap<(usize, Kind), KindDecisions>) -> Vec<MisjudgedKind> {
    let mut misjudged: Vec<MisjudgedKind> = decisions
        .iter()
        .filter_map(|((reviewer, kind), counts)| {
            let at_most = counts.misjudged_at_most()?;
            let reviewer = reviewers.names[*reviewer].to_owned();
            Some(MisjudgedKind { reviewer, kind: *kind, accepted: counts.accepted, wrong: counts.wrong, at_most })
        })
        .collect();
    misjudged.sort_by(|a, b| a.reviewer.cmp(&b.reviewer).then(a.kind.cmp(&b.kind)));
    misjudged
}

/// Returns the kinds about which a reviewer is almost always wrong, by all decisions on record.
pub fn list_misjudged_kinds(input: &MetricsInput<'_>, reviewer: &str) -> Vec<MisjudgedKind> {
    let reported = ReportedFindings::select(input, |run| run.main_reviewer() == reviewer);
    let reviewers = RunGroups::from_runs(&reported.runs, reviewer_name);
    let mut decisions = BTreeMap::new();
    for (fact, reporting) in reported.iter_by_reviewers() {
        count_decision(&reviewers, fact, reporting, &mut decisions);
    }
    name_misjudged(&reviewers, &decisions)
}

/// Returns the decisions about the reports of these reviewers by kind, as [`list_misjudged_kinds`] counts them.
pub fn list_kind_records(input: &MetricsInput<'_>, reviewers: &[&str]) -> Vec<KindRecord> {
    let reported = ReportedFindings::select(input, |run| reviewers.contains(&run.main_reviewer()));
    let groups = RunGroups::from_runs(&reported.runs, reviewer_name);
    let mut decisions = BTreeMap::new();
    for (fact, reporting) in reported.iter_by_reviewers() {
        count_decision(&groups, fact, reporting, &mut decisions);
    }
    let records = decisions.into_iter().map(|((reviewer, kind), counts)| KindRecord {
        reviewer: groups.names[reviewer].to_owned(),
        kind,
        accepted: counts.accepted,
        decided: counts.accepted.saturating_add(counts.wrong),
    });
    records.collect()
}

#[cfg(test)]
mod tests;
