//! Merges the findings of a panel into one list: one finding for each problem, with the words of every reviewer.
//!
//! - The list, with its ids, depends only on the reports, not on the order of the members, of their reports, or of their
//!   ends.
//! - Different problems at the same code that have one id are two findings: the id stays with the problem that it stands
//!   for, or else with the first by the name of its reviewer, and the other gets a variant ([`list_ids`]).
//! - Nothing is lost: each report is a voice of exactly one finding of the list, whatever its priority becomes.
//! - A report that the run of a member has held back for another reason than a dismissal is a voice of the finding whose problem
//!   another member raises. It agrees and outweighs a record, like any report. It makes no finding of its own, and neither its
//!   id, its place nor its priority counts for the list.
//! - A finding of the list is one of the reports, with its id, place, words and suggestion; only priority, severity and
//!   confidence follow from all of them, and each change of priority or confidence is a [`FindingStep`].
//! - Reports are ranked with the priorities that the reviewers gave. Where the runs of all that report a problem have lowered it, it is
//!   lowered once, by a [`LoweredPriority`].
//! - What revdeck's own search for secrets found in the runs of the members is one voice of revdeck. No member agrees by it, and
//!   none is silent about it; but none can play it down either. The words are those of a member, if one reports it.

mod list_ids;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

pub use self::list_ids::StandingProblem;
use self::list_ids::{IdFamilies, IdOwners, assign_ids, order_groups};

use super::accumulate::{better_suggestion, fullness, main_explanation};
use super::dedup::sort_by_urgency;
use super::report_merge::{MemberReport, PairScore, merge_report_refs, near_lines, score_membership};
use crate::domain::{
    Confidence, Coverage, Dispute, Finding, FindingId, FindingStep, Kind, KindRecord, LineIndex, LineRange,
    LoweredPriority, Priority, RankRule, RunId, SuppressedReport, SuppressionReason, Voice, wilson_lower_bound,
};

/// Minimum number of decisions before a reviewer's record in a kind lowers a report. Project requirement.
const MIN_DECISIONS: u32 = 20;

/// Upper bound of the share of accepted reports (Wilson score at 95 %) below which a lone report is lowered. Chosen for
/// revdeck: the reviewer is surely wrong more often than right.
const MAX_LOW_PRECISION: f64 = 0.5;

/// Cap of the confidence of several reports together. Chosen for revdeck: reviewers make the same mistakes, so agreement is
/// never certainty.
const MAX_AGREED_CONFIDENCE: f64 = 0.95;

/// Number of priority steps between two reports from which the priority is disputed. Project requirement.
const MIN_DISPUTED_STEPS: usize = 2;

/// One reviewer of a panel with what its run said.
#[derive(Debug, Clone, Copy)]
pub struct MemberResult<'a> {
    /// Name of the reviewer that gave most answers: the member, or the fallback that took over from it.
    pub reviewer: &'a str,
    /// Run of the reviewer.
    pub run_id: &'a RunId,
    /// Findings of the run, including carried ones.
    pub findings: &'a [Finding],
    /// Hunks that the run showed to the reviewer or carried over.
    pub coverage: &'a Coverage,
    /// True if the run is completed; the silence of another run means nothing.
    pub is_finished: bool,
    /// Kinds that the reviewer can report; `None` for all kinds.
    pub kinds: Option<&'a [Kind]>,
    /// Known findings of earlier runs that it saw again.
    pub confirmed: &'a [FindingId],
    /// Known findings of earlier runs that it calls fixed.
    pub fixed: &'a [FindingId],
    /// Reports that its run has held back: the reviewer is not silent about their problems, and speaks for the findings of others
    /// about them.
    pub held_back: &'a [SuppressedReport],
}

/// The findings of a panel, merged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OneList {
    /// Findings by urgency, then by place. Those of runs, time and `detail_ref` are the ones of the chosen report.
    pub findings: Vec<Finding>,
    /// Ids on the list of the reports that a member's run has under another id. Different members may have reported
    /// different problems under one id.
    pub listed_as: BTreeMap<(RunId, FindingId), FindingId>,
    /// Reported ids that stand for a problem and are not on the list, each with the id under which the list has the problem;
    /// `None` if nobody reports the problem. A decision about such an id holds for the finding with the other one.
    pub moved_ids: BTreeMap<FindingId, Option<FindingId>>,
    /// Contradictions about known findings that no member reports: some call them fixed, others saw them.
    pub disputed_known: Vec<(FindingId, Dispute)>,
}

/// Ids on a list by those in the runs of the members.
#[derive(Debug)]
pub struct ListedIds<'a> {
    list: &'a OneList,
    /// Ids on the list.
    listed: HashSet<&'a FindingId>,
    /// Ids on the list by the ids of reports, whatever member made them; the first run counts.
    by_report: HashMap<&'a FindingId, &'a FindingId>,
}

impl<'a> ListedIds<'a> {
    /// Indexes the ids of a list.
    pub fn new(list: &'a OneList) -> Self {
        let listed = list.findings.iter().map(|finding| &finding.finding_id).collect();
        let mut by_report: HashMap<&FindingId, &FindingId> = HashMap::new();
        for ((_, reported_as), listed) in &list.listed_as {
            by_report.entry(reported_as).or_insert(listed);
        }
        Self { list, listed, by_report }
    }

    /// Returns the id on the list of what a member's run has under an id. For an id that neither the run reports nor the list
    /// has, this is the id of what another member reports under it.
    pub fn find(&self, run: &RunId, id: &FindingId) -> FindingId {
        if let Some(listed) = self.list.listed_as.get(&(run.clone(), id.clone())) {
            return listed.clone();
        }
        let other = self.by_report.get(id).copied().filter(|_| !self.listed.contains(id));
        other.unwrap_or(id).clone()
    }
}

/// Finding in the run of a member.
#[derive(Debug, Clone, Copy)]
struct PanelReport<'a> {
    member: &'a MemberResult<'a>,
    finding: &'a Finding,
    /// Reason why the run held it back; `None` if the run raised it.
    held_back: Option<SuppressionReason>,
}

/// Reports of one problem, with the priority on which they agree.
#[derive(Debug)]
struct PanelGroup<'a> {
    reports: Vec<PanelReport<'a>>,
    /// Those of the members, without what the search for secrets found.
    said: Vec<PanelReport<'a>>,
    /// Reports of further members that their runs have held back; none is among `reports`.
    held_back: Vec<PanelReport<'a>>,
    rank: Priority,
    rank_steps: Vec<FindingStep>,
}

impl<'a> PanelGroup<'a> {
    fn new(reports: Vec<PanelReport<'a>>) -> Self {
        let said: Vec<PanelReport<'a>> = reports.iter().copied().filter(|report| !report.is_scanned()).collect();
        let (rank, rank_steps) = rank_reports(&reports, &said);
        Self { reports, said, held_back: Vec::new(), rank, rank_steps }
    }

    /// Returns the reports of the members, first those that their runs have raised.
    fn spoken(&self) -> impl Iterator<Item = &PanelReport<'a>> {
        self.said.iter().chain(&self.held_back)
    }

    /// Returns true if a report of the problem is one of this member, or of the reviewer that answered for it.
    fn is_voiced_by(&self, member: &MemberResult<'_>) -> bool {
        self.spoken().any(|report| report.member.is_same_reviewer(member))
    }

    /// Returns how sure it is that a report of a member describes the problem; `None` if it does not, or if a report of the
    /// member is there already.
    fn score_report(&self, report: &PanelReport<'_>) -> Option<PairScore> {
        if self.is_voiced_by(report.member) {
            return None;
        }
        let said: Vec<&Finding> = self.said.iter().map(|said| said.finding).collect();
        score_membership(report.finding, &said)
    }
}

/// Merges the findings of a panel. `is_known` returns true for the ids of findings that stand from earlier runs, and for
/// those with a decision; `problem_of` returns the problem that such an id stands for, as far as it is known. `record_of`
/// returns the decisions about a reviewer's earlier reports of a kind.
///
/// - The place and words are those of one report. A report with an id that stands for its problem goes first, so that a
///   known finding keeps its id; then one of a member; then the one whose kind most reports have, whose priority is the
///   finding's, which is surer, can be applied, and says more. Names decide at last.
/// - The priority is the middle one of the reports, or the most urgent one if a report has a kind that is
///   [never lowered](Kind::is_never_lowered): an urgent report that exaggerates costs a look, a lowered one may cost
///   the defect.
/// - The confidence is the probability that at least one report is right if they were independent (noisy-or; J. Pearl,
///   "Probabilistic Reasoning in Intelligent Systems", 1988, section 4.3.2), at most 95 %.
/// - A lone report is less urgent by one step where the reviewer's record is poor and another member reviewed the lines.
pub fn merge_panel(
    members: &[MemberResult<'_>],
    is_known: impl Fn(&FindingId) -> bool,
    problem_of: impl Fn(&FindingId) -> Option<StandingProblem>,
    record_of: impl Fn(&str, Kind) -> Option<KindRecord>,
) -> OneList {
    let members = sort_members(members);
    let indexed: Vec<IndexedMember<'_>> = members.iter().map(|member| IndexedMember::new(member)).collect();
    let reports: Vec<Vec<&Finding>> = members.iter().map(|member| sort_reports(member.findings)).collect();
    let reported: HashSet<&FindingId> = reports.iter().flatten().map(|finding| &finding.finding_id).collect();
    let to_group = |group: Vec<MemberReport>| {
        let report = |at: &MemberReport| PanelReport {
            member: members[at.member],
            finding: reports[at.member][at.finding],
            held_back: None,
        };
        PanelGroup::new(group.iter().map(report).collect())
    };
    let mut groups: Vec<PanelGroup<'_>> = merge_report_refs(&reports).into_iter().map(to_group).collect();
    let families = IdFamilies::from_groups(&groups);
    let order = order_groups(&families, &groups);
    join_held_back(&mut groups, &order, &members);
    let owners = IdOwners::find(&groups, (&families, order.as_slice()), &is_known, &problem_of);
    let chosen: Vec<ChosenReport<'_>> =
        groups.iter().enumerate().map(|(at, group)| choose_report(group, at, (&families, &owners))).collect();
    let own_ids: Vec<&FindingId> = chosen.iter().map(|chosen| &chosen.report.finding.finding_id).collect();
    let ids = assign_ids(&groups, (&families, order.as_slice(), &owners), &own_ids, &is_known, &problem_of);
    let group_of: HashMap<&FindingId, usize> = ids.iter().enumerate().map(|(at, id)| (id, at)).collect();
    let moved = owners.iter().filter(|(id, _)| !group_of.contains_key(id));
    let moved_ids = moved.map(|(id, owner)| (id.clone(), owner.map(|at| ids[at].clone()))).collect();
    let mut list = OneList { moved_ids, ..OneList::default() };
    for at in order {
        let (group, id) = (&groups[at], &ids[at]);
        let ChosenReport { report: chosen, words } = chosen[at];
        let silent = list_silent(&indexed, &group.said, chosen.finding);
        let Finding { title, explanation, confidence, .. } = words.finding.clone();
        let mut finding = Finding { finding_id: id.clone(), title, explanation, confidence, ..chosen.finding.clone() };
        finding.detail_ref = finding.detail_ref.replace(chosen.finding.finding_id.as_str(), id.as_str());
        finding.suggestion = group.reports.iter().fold(chosen.finding.clone(), adopt_suggestion).suggestion;
        finding.priority = group.rank;
        let severities = group.reports.iter().filter(|report| report.ranked_priority() == group.rank);
        finding.severity = severities.map(|report| report.finding.severity).max().unwrap_or(finding.severity);
        (finding.steps, finding.lowered) = (Vec::new(), None);
        raise_confidence(&mut finding, group, silent.len());
        finding.steps.extend(group.rank_steps.iter().cloned());
        lower_as_members_did(&mut finding, group);
        if let Some(lone) = lone_report(group)
            && !silent.is_empty()
        {
            lower_lone_report(&mut finding, lone, &record_of);
        }
        finding.voices = list_voices(group, &families);
        // What was said about an id that another problem has was said about that one.
        let is_others = |id: &FindingId| group_of.get(id).is_some_and(|group| *group != at);
        finding.disputed = list_disputes(&indexed, group, &finding, silent, is_others);
        for report in group.reports.iter().filter(|report| report.finding.finding_id != *id) {
            let in_run = (report.member.run_id.clone(), report.finding.finding_id.clone());
            list.listed_as.entry(in_run).or_insert_with(|| id.clone());
        }
        list.findings.push(finding);
    }
    sort_by_urgency(&mut list.findings);
    list.disputed_known = list_disputed_known(&indexed, |id| group_of.contains_key(id) || reported.contains(id));
    list
}

impl PanelReport<'_> {
    /// Returns true if the member did not report it: revdeck's own search for secrets found it in the member's run.
    fn is_scanned(&self) -> bool {
        self.finding.is_from_secret_scan()
    }

    /// Returns true if revdeck's own search for secrets made the member's report more urgent.
    fn is_raised(&self) -> bool {
        self.finding.steps.iter().any(|step| matches!(step, FindingStep::Raised { .. }))
    }

    /// Returns the priority with which the report counts: that of the search for secrets, else the one that the member gave.
    fn ranked_priority(&self) -> Priority {
        if self.is_raised() { self.finding.priority } else { self.finding.reported_priority() }
    }

    /// Returns the report in the words of who made it, with the priority that the member itself gave.
    fn to_voice(self) -> Voice {
        let priority = self.finding.reported_priority();
        let Finding { finding_id, confidence, kind, title, explanation, line_start, line_end, .. } =
            self.finding.clone();
        let reviewer = if self.is_scanned() { Voice::SECRET_SCAN } else { self.member.reviewer }.to_owned();
        let (run_id, held_back) = (self.member.run_id.clone(), self.held_back);
        Voice {
            reviewer,
            run_id,
            finding_id,
            priority,
            confidence,
            kind,
            title,
            explanation,
            line_start,
            line_end,
            held_back,
        }
    }
}

/// Returns the voices of a problem, sorted by reviewer. The search for secrets finds the same in each run: it speaks once about
/// each finding, and not about one that a member reports itself.
fn list_voices(group: &PanelGroup<'_>, families: &IdFamilies) -> Vec<Voice> {
    let is_one_code = |one: &FindingId, other: &FindingId| families.base(one).0 == families.base(other).0;
    let is_said = |scanned: &PanelReport<'_>| {
        let mut said = group.said.iter();
        said.any(|report| is_one_code(&report.finding.finding_id, &scanned.finding.finding_id))
    };
    let found = group.reports.iter().filter(|report| report.is_scanned() && !is_said(report));
    let mut voices: Vec<Voice> = group.spoken().chain(found).map(|report| report.to_voice()).collect();
    voices.sort_by(|a, b| voice_key(a).cmp(&voice_key(b)));
    let mut heard: HashSet<FindingId> = HashSet::new();
    voices.retain(|voice| !voice.is_secret_scan() || heard.insert(families.base(&voice.finding_id).0.clone()));
    voices
}

/// Returns the only report of a problem, if revdeck's own search for secrets has not found the same.
fn lone_report<'g, 'a>(group: &'g PanelGroup<'a>) -> Option<&'g PanelReport<'a>> {
    match group.reports.as_slice() {
        [lone] if !lone.is_scanned() && !lone.is_raised() && group.held_back.is_empty() => Some(lone),
        _ => None,
    }
}

impl MemberResult<'_> {
    /// Returns true if both are the words of one reviewer: it may have answered for two members.
    fn is_same_reviewer(&self, other: &MemberResult<'_>) -> bool {
        self.run_id == other.run_id || self.reviewer == other.reviewer
    }
}

/// Items by the file and the lines of a report that each belongs to.
#[derive(Debug)]
struct ReportIndex<'a, T> {
    by_path: HashMap<&'a str, LineIndex>,
    items: Vec<T>,
}

impl<'a, T: Copy> ReportIndex<'a, T> {
    fn new() -> Self {
        Self { by_path: HashMap::new(), items: Vec::new() }
    }

    /// Adds an item that belongs to a report.
    fn insert(&mut self, report: &'a Finding, item: T) {
        self.by_path.entry(&report.repo_relative_path).or_default().insert(report.lines(), self.items.len());
        self.items.push(item);
    }

    /// Returns the items of the reports that may be about the same lines as this one.
    fn find_near(&self, report: &Finding) -> impl Iterator<Item = T> {
        let (row, lines) = (self.by_path.get(report.repo_relative_path.as_str()), near_lines(report));
        row.into_iter().flat_map(move |row| row.overlapping(lines)).map(move |index| self.items[index])
    }
}

/// Member with indexes of its lists.
#[derive(Debug)]
struct IndexedMember<'a> {
    result: &'a MemberResult<'a>,
    /// Hunks that the run showed to the reviewer or carried over, by path.
    hunks: HashMap<&'a str, Vec<LineRange>>,
    confirmed: HashSet<&'a FindingId>,
    fixed: HashSet<&'a FindingId>,
    /// Reports that the run has held back.
    held_back: ReportIndex<'a, &'a Finding>,
}

impl<'a> IndexedMember<'a> {
    fn new(result: &'a MemberResult<'a>) -> Self {
        let mut hunks: HashMap<&str, Vec<LineRange>> = HashMap::new();
        for file in result.coverage.reviewed_files() {
            hunks.entry(&file.path).or_default().extend(&file.hunks);
        }
        let (confirmed, fixed) = (result.confirmed.iter().collect(), result.fixed.iter().collect());
        let mut held_back = ReportIndex::new();
        result.held_back.iter().for_each(|held| held_back.insert(&held.finding, &held.finding));
        Self { result, hunks, confirmed, fixed, held_back }
    }

    /// Returns the hunks of a file that the run showed to the reviewer or carried over.
    fn hunks_of(&self, path: &str) -> &[LineRange] {
        self.hunks.get(path).map(Vec::as_slice).unwrap_or_default()
    }
}

/// Sorts members by name and run. A run has one record, so the order is total.
fn sort_members<'a, 'm>(members: &'a [MemberResult<'m>]) -> Vec<&'a MemberResult<'m>> {
    let mut sorted: Vec<&MemberResult<'_>> = members.iter().collect();
    sorted.sort_by_key(|member| (member.reviewer, member.run_id));
    sorted
}

/// Sorts the findings of a run by their content.
fn sort_reports(findings: &[Finding]) -> Vec<&Finding> {
    let mut sorted: Vec<&Finding> = findings.iter().collect();
    sorted.sort_by_cached_key(|finding| content_key(finding));
    sorted
}

/// Place, kind, id, words and urgency of a report.
type ContentKey<'a> =
    ((&'a str, u32, u32), Kind, &'a FindingId, (&'a str, &'a str, &'a str), (Priority, Confidence, bool));

fn content_key(finding: &Finding) -> ContentKey<'_> {
    let place = (finding.repo_relative_path.as_str(), finding.line_start, finding.line_end);
    let urgency = (finding.priority, finding.confidence, finding.is_from_secret_scan());
    (place, finding.kind, &finding.finding_id, text_key(finding), urgency)
}

/// Adds the reports that the runs of members have held back to the problems that other members raise: each to the one that it
/// describes most surely, the first in `order` of equal ones. What a person has dismissed stays dismissed, and joins none.
fn join_held_back<'a>(groups: &mut [PanelGroup<'a>], order: &[usize], members: &[&'a MemberResult<'a>]) {
    // The places of the groups in `order`.
    let mut raised = ReportIndex::new();
    for (place, at) in order.iter().enumerate() {
        groups[*at].said.iter().for_each(|report| raised.insert(report.finding, place));
    }
    for member in members.iter().copied() {
        let held_back = member.held_back.iter().filter(|held| held.because != SuppressionReason::Dismissed);
        let mut reports: Vec<PanelReport<'a>> = held_back
            .map(|held| PanelReport { member, finding: &held.finding, held_back: Some(held.because) })
            .filter(|report| !report.is_scanned())
            .collect();
        reports.sort_by(|one, other| content_key(one.finding).cmp(&content_key(other.finding)));
        for report in reports {
            let near: BTreeSet<usize> = raised.find_near(report.finding).collect();
            let scored = near.into_iter().filter_map(|place| {
                let at = order[place];
                Some((groups[at].score_report(&report)?, Reverse(place), at))
            });
            if let Some((.., at)) = scored.max() {
                groups[at].held_back.push(report);
            }
        }
    }
}

fn text_key(finding: &Finding) -> (&str, &str, &str) {
    let suggestion = finding.suggestion.as_ref().map_or("", |suggestion| suggestion.text.as_str());
    (&finding.title, &finding.explanation, suggestion)
}

fn voice_key(voice: &Voice) -> (&str, &RunId, &FindingId) {
    (&voice.reviewer, &voice.run_id, &voice.finding_id)
}

/// Returns the priority of a problem, and the steps that say how it came about if the reports disagree. `said` are the
/// reports of the members. A secret that revdeck's own search finds is never less urgent than the search says.
fn rank_reports(group: &[PanelReport<'_>], said: &[PanelReport<'_>]) -> (Priority, Vec<FindingStep>) {
    let searched = group.iter().filter(|report| report.is_scanned() || report.is_raised());
    let floor = searched.map(|report| report.finding.priority).min();
    let mut priorities: Vec<Priority> = said.iter().map(|report| report.finding.reported_priority()).collect();
    priorities.sort_unstable();
    let is_never_lowered = said.iter().any(|report| report.finding.kind.is_never_lowered());
    let (rule, at) = match is_never_lowered {
        true => (RankRule::MostUrgent, 0),
        false => (RankRule::Middle, priorities.len().saturating_sub(1) / 2),
    };
    let Some(to) = priorities.get(at).copied() else {
        return (floor.unwrap_or(Priority::P3), vec![FindingStep::Scanned]);
    };
    let agree = priorities.first() == priorities.last();
    let ranked = (!agree).then_some(FindingStep::Ranked { priorities, to, rule });
    let raised = floor.filter(|floor| *floor < to).map(|floor| FindingStep::Raised { from: to, to: floor });
    (floor.map_or(to, |floor| floor.min(to)), ranked.into_iter().chain(raised).collect())
}

/// Report that stands for a problem.
#[derive(Debug, Clone, Copy)]
struct ChosenReport<'a> {
    report: PanelReport<'a>,
    /// Report whose words are those of the finding: that of a member, if one describes what the search for secrets found.
    words: PanelReport<'a>,
}

/// Chooses the report that stands for the problem of the group at this position.
fn choose_report<'a>(
    group: &PanelGroup<'a>,
    at: usize,
    (families, owners): (&IdFamilies, &IdOwners<'_>),
) -> ChosenReport<'a> {
    let mut kinds: HashMap<Kind, usize> = HashMap::new();
    group.reports.iter().for_each(|report| *kinds.entry(report.finding.kind).or_default() += 1);
    let worth = |report: &PanelReport<'a>| {
        let PanelReport { finding, member, .. } = *report;
        let id = &finding.finding_id;
        let can_be_applied = finding.suggestion.as_ref().is_some_and(|suggestion| suggestion.replacement.is_some());
        let sure = (report.ranked_priority() == group.rank, finding.confidence, can_be_applied);
        // The lesser name wins, so that nothing is left to the order.
        let name = Reverse((member.reviewer, member.run_id, id));
        let text = fullness(&finding.title, main_explanation(&finding.explanation));
        (
            owners.standing(families.base(id).0, at),
            !report.is_scanned(),
            kinds.get(&finding.kind).copied(),
            sure,
            text,
            Reverse(finding.lines().count()),
            name,
        )
    };
    let by_worth = |a: &&PanelReport<'a>, b: &&PanelReport<'a>| worth(a).cmp(&worth(b));
    let report = group.reports.iter().max_by(by_worth).unwrap_or_else(|| unreachable!("a group has a report"));
    // One of a member may have to leave its place to a known id.
    let said = group.said.iter().filter(|_| report.is_scanned());
    let words = said.max_by(by_worth).unwrap_or(report);
    ChosenReport { report: *report, words: *words }
}

/// Gives a finding the suggestion of another report if that can be applied and its own cannot.
fn adopt_suggestion(finding: Finding, report: &PanelReport<'_>) -> Finding {
    let suggestion = better_suggestion(&finding, report.finding);
    Finding { suggestion, ..finding }
}

/// Returns the names of the members that reviewed the lines of a finding to the end and did not report it. Lines in a hunk
/// are reviewed with the hunk; lines that are in no hunk of a member are reviewed with their file. A report that the member's
/// run has held back is a report.
fn list_silent(members: &[IndexedMember<'_>], said: &[PanelReport<'_>], finding: &Finding) -> Vec<String> {
    let path = &finding.repo_relative_path;
    let has_hunk = |member: &IndexedMember<'_>| member.hunks_of(path).iter().any(|hunk| hunk.overlaps(finding.lines()));
    let is_in_hunk = members.iter().any(has_hunk);
    let has_reviewed = |member: &IndexedMember<'_>| match is_in_hunk {
        true => has_hunk(member),
        false => !member.hunks_of(path).is_empty(),
    };
    let has_held_back = |member: &IndexedMember<'_>| {
        let mut reports = said.iter().map(|report| report.finding).chain([finding]);
        reports.any(|report| member.held_back.find_near(report).any(|held| is_one_problem(report, held)))
    };
    list_names(members, |member| {
        let has_spoken = said.iter().any(|report| report.member.is_same_reviewer(member.result));
        let can_report = member.result.kinds.is_none_or(|kinds| kinds.contains(&finding.kind));
        member.result.is_finished && !has_spoken && can_report && has_reviewed(member) && !has_held_back(member)
    })
}

/// Returns true if the reports of two reviewers describe one problem.
fn is_one_problem(one: &Finding, other: &Finding) -> bool {
    score_membership(one, &[other]).is_some()
}

/// Sets the confidence of a finding that several reviewers report. What revdeck's own search for secrets found is at least as sure
/// as the search is.
fn raise_confidence(finding: &mut Finding, group: &PanelGroup<'_>, silent: usize) {
    // A reviewer that answered for two members does not agree with itself.
    let mut surest: BTreeMap<&str, Confidence> = BTreeMap::new();
    for report in group.spoken() {
        let known = surest.entry(report.member.reviewer).or_insert(report.finding.confidence);
        *known = report.finding.confidence.max(*known);
    }
    if surest.len() > 1 {
        let confidences = || surest.values().copied();
        let from = confidences().max().unwrap_or(finding.confidence);
        let doubt: f64 = confidences().map(|confidence| 1.0 - confidence.probability()).product();
        let to = Confidence::from_probability((1.0 - doubt).min(MAX_AGREED_CONFIDENCE)).max(from);
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        finding.confidence = to;
        let (voices, reviewers) = (count(surest.len()), count(surest.len() + silent));
        finding.steps.push(FindingStep::Agreed { voices, reviewers, from, to });
    }
    let scanned = group.reports.iter().filter(|report| report.is_scanned()).map(|report| report.finding.confidence);
    if let Some(to) = scanned.max().filter(|to| *to > finding.confidence) {
        if !group.said.is_empty() {
            finding.steps.push(FindingStep::Backed { from: finding.confidence, to });
        }
        finding.confidence = to;
    }
}

/// Lowers a problem by one step if the run of each member that reports it has lowered its report. Like a record, this holds for
/// no problem that another reviewer or the search for secrets reports, too.
fn lower_as_members_did(finding: &mut Finding, group: &PanelGroup<'_>) {
    let is_free = |report: &PanelReport<'_>| report.is_scanned() || report.is_raised();
    let reasons: Option<BTreeSet<&str>> = group
        .reports
        .iter()
        .chain(&group.held_back)
        .map(|report| report.finding.lowered.as_ref().filter(|_| !is_free(report)))
        .map(|lowered| lowered.map(|lowered| lowered.because.as_str()))
        .collect();
    let Some((reasons, to)) = reasons.zip(finding.priority.one_lower()) else { return };
    let because = reasons.into_iter().collect::<Vec<_>>().join("; ");
    finding.lowered = Some(LoweredPriority { from: finding.priority, to, because });
    finding.priority = to;
}

/// Lowers a report that no other reviewer made, if the reviewer was mostly wrong about its kind.
fn lower_lone_report(
    finding: &mut Finding,
    lone: &PanelReport<'_>,
    record_of: &impl Fn(&str, Kind) -> Option<KindRecord>,
) {
    // The reviewer's own run has lowered it for the same reason.
    if finding.kind.is_never_lowered() || finding.lowered.is_some() {
        return;
    }
    let Some(because) = record_of(lone.member.reviewer, finding.kind).filter(is_poor) else { return };
    let (from, less_sure) = (finding.confidence, finding.confidence.lower());
    if let Some(to) = finding.priority.one_lower() {
        finding.steps.push(FindingStep::Lowered { from: finding.priority, to, because });
        finding.priority = to;
    } else if less_sure < from {
        finding.steps.push(FindingStep::Doubted { from, to: less_sure, because });
        finding.confidence = less_sure;
    }
}

/// Returns true if so many reports were decided, and so few of them accepted, that the next one is probably wrong.
fn is_poor(record: &KindRecord) -> bool {
    let (accepted, decided) = (f64::from(record.accepted.min(record.decided)), f64::from(record.decided));
    let at_most = 1.0 - wilson_lower_bound(decided - accepted, decided);
    record.decided >= MIN_DECISIONS && at_most < MAX_LOW_PRECISION
}

/// Returns the contradictions about a finding of the list. `is_others` returns true for the ids of other problems of the list.
fn list_disputes(
    members: &[IndexedMember<'_>],
    group: &PanelGroup<'_>,
    finding: &Finding,
    silent: Vec<String>,
    is_others: impl Fn(&FindingId) -> bool,
) -> Vec<Dispute> {
    let PanelGroup { reports, said, .. } = group;
    let mut disputes = Vec::new();
    let reported = reports.iter().map(|report| &report.finding.finding_id).filter(|id| !is_others(id));
    let ids: HashSet<&FindingId> = reported.chain([&finding.finding_id]).collect();
    let has_one = |known: &HashSet<&FindingId>| ids.iter().any(|id| known.contains(*id));
    let is_voice = |member: &IndexedMember<'_>| group.is_voiced_by(member.result);
    let fixed = list_names(members, |member| has_one(&member.fixed) && !is_voice(member));
    let mut standing = list_names(members, |member| is_voice(member) || has_one(&member.confirmed));
    if said.len() < reports.len() {
        standing.push(Voice::SECRET_SCAN.to_owned());
    }
    if !fixed.is_empty() && !standing.is_empty() {
        disputes.push(Dispute::Fixed { fixed, standing });
    }
    // As their voices have them: the priorities that the members gave.
    let priorities = || said.iter().map(|report| report.finding.reported_priority());
    if let (Some(most), Some(least)) = (priorities().min(), priorities().max())
        && least.index() - most.index() >= MIN_DISPUTED_STEPS
    {
        disputes.push(Dispute::Priority { most, least });
    }
    if let Some(lone) = lone_report(group)
        && lone.ranked_priority() <= Priority::P1
        && !silent.is_empty()
    {
        disputes.push(Dispute::Alone { reviewer: lone.member.reviewer.to_owned(), silent });
    }
    disputes
}

/// Returns the contradictions about known findings that are not on the list, by id.
fn list_disputed_known(
    members: &[IndexedMember<'_>],
    is_listed: impl Fn(&FindingId) -> bool,
) -> Vec<(FindingId, Dispute)> {
    let claimed: BTreeSet<&FindingId> = members.iter().flat_map(|member| member.result.fixed).collect();
    let disputed = claimed.into_iter().filter(|id| !is_listed(id)).filter_map(|id| {
        let fixed = list_names(members, |member| member.fixed.contains(id) && !member.confirmed.contains(id));
        let standing = list_names(members, |member| member.confirmed.contains(id));
        let is_disputed = !fixed.is_empty() && !standing.is_empty();
        is_disputed.then(|| (id.clone(), Dispute::Fixed { fixed, standing }))
    });
    disputed.collect()
}

/// Returns the names of the members that pass, in their order and each once.
fn list_names(members: &[IndexedMember<'_>], passes: impl Fn(&IndexedMember<'_>) -> bool) -> Vec<String> {
    let mut names: Vec<String> =
        members.iter().filter(|member| passes(member)).map(|member| member.result.reviewer.to_owned()).collect();
    names.dedup();
    names
}

#[cfg(test)]
mod tests;
