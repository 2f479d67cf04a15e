//! Decides which decisions about reports hold for the findings of panels' lists that have merged them.
//!
//! The list of a panel has one finding for all reports of a problem. A decision about the id of another report may come from any
//! machine, before or after the list. So the rule depends on lists and decisions alone, and on nothing that one machine has seen: all
//! machines that have the same ones find the same, whatever came first.
//!
//! - What holds for a finding follows from what people have decided about its reports, never from what follows for another finding. So
//!   there is no circle, also where two lists have merged two ids into each other.
//! - Of the decisions that stand for its reports and [hold](holds_for_list) for the list, a person's goes before a claim of an assistant,
//!   and then the latest one counts.
//! - A decision about the finding itself goes before it ([`FollowedDecision::outweighs`]).

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::MergedDecision;
use crate::domain::{Actor, DecisionId, FindingId, FindingStatus, RunId, SharedDecision, Time, TriageAction};

/// Longest way from a report to a finding that is followed; each step is a later panel. Lists of others could lead on without end.
const MAX_STEPS: usize = 64;
/// Maximum number of reports of a finding that are looked at, those nearest to it first. Not from the literature: a list has as many for
/// a finding as the panel has members.
const MAX_FOLLOWED: usize = 200;

/// Reports that panels have merged into findings of their lists.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MergedReports {
    /// Findings of lists by the ids of their reports, each with the newest list that says so.
    findings_of: BTreeMap<FindingId, BTreeMap<FindingId, MergingList>>,
    /// Ids of the reports of each finding.
    reports_of: BTreeMap<FindingId, BTreeSet<FindingId>>,
}

/// List of a panel that has merged a report.
#[derive(Debug, Clone, PartialEq, Eq)]
struct MergingList {
    run: RunId,
    /// Time of the request for the panel; `None` if no record says it.
    requested_at: Option<Time>,
}

/// Decision about a report that holds for a finding of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FollowedDecision<'a> {
    pub decision: &'a SharedDecision,
    /// Run of the panel.
    pub run: &'a RunId,
}

impl MergedReports {
    /// Adds a report that the list of a run has merged into a finding. The order of several calls changes nothing.
    pub fn add(&mut self, report: &FindingId, listed: &FindingId, run: &RunId, requested_at: Option<Time>) {
        if report == listed {
            return;
        }
        let lists = self.findings_of.entry(report.clone()).or_default();
        if lists.get(listed).is_none_or(|known| known.run < *run) {
            lists.insert(listed.clone(), MergingList { run: run.clone(), requested_at });
        }
        self.reports_of.entry(listed.clone()).or_default().insert(report.clone());
    }

    /// Returns true if a list has merged a report with this id.
    pub fn has_report(&self, id: &FindingId) -> bool {
        self.findings_of.contains_key(id)
    }

    /// Returns these ids with the findings for which decisions about them may hold.
    pub fn add_findings(&self, ids: &BTreeSet<FindingId>) -> BTreeSet<FindingId> {
        close(ids, |id| self.findings_of.get(id).into_iter().flat_map(BTreeMap::keys))
    }

    /// Returns these ids with those of the reports whose decisions may hold for them.
    pub fn add_reports(&self, ids: &BTreeSet<FindingId>) -> BTreeSet<FindingId> {
        close(ids, |id| self.reports_of.get(id).into_iter().flatten())
    }
}

/// Returns some ids with those that follow from them in [`MAX_STEPS`].
fn close<'a, I: Iterator<Item = &'a FindingId>>(
    ids: &BTreeSet<FindingId>,
    next: impl Fn(&FindingId) -> I,
) -> BTreeSet<FindingId> {
    let mut closed = ids.clone();
    let mut last: Vec<FindingId> = ids.iter().cloned().collect();
    for _ in 0..MAX_STEPS {
        let new: BTreeSet<FindingId> =
            last.iter().flat_map(&next).filter(|id| !closed.contains(*id)).cloned().collect();
        if new.is_empty() {
            break;
        }
        last = new.iter().cloned().collect();
        closed.extend(new);
    }
    closed
}

impl<'a> FollowedDecision<'a> {
    /// Returns true if it counts for the finding, given the decision that stands about the finding itself. A person's decision and a
    /// reopening stay; an undo says nothing about the finding any longer, and a claim of an assistant gives way to a person.
    pub fn outweighs(&self, direct: Option<&SharedDecision>) -> bool {
        direct.is_none_or(|direct| {
            direct.is_withdrawal() || (direct.actor != Actor::User && self.decision.actor == Actor::User)
        })
    }

    /// Returns the decision as one about the finding. Also a dismissal that was redone is one that the finding takes over.
    pub fn to_decision(self, listed: &FindingId) -> SharedDecision {
        SharedDecision { finding_id: listed.clone(), action: TriageAction::Set, ..self.decision.clone() }
    }

    /// Returns what orders the decisions about several reports.
    fn rank(&self) -> (bool, &'a DecisionId, &'a RunId) {
        (self.decision.actor == Actor::User, &self.decision.id, self.run)
    }
}

/// Returns the decision about a report that holds for a finding, if there is one. `about` has the decisions about each id, and
/// `merged` those that stand; they must have those of all reports ([`MergedReports::add_reports`]).
pub fn follow_reports<'a>(
    listed: &FindingId,
    reports: &'a MergedReports,
    about: &HashMap<&FindingId, Vec<&'a SharedDecision>>,
    merged: &BTreeMap<&FindingId, MergedDecision<'a>>,
) -> Option<FollowedDecision<'a>> {
    let mut found: Option<FollowedDecision<'a>> = None;
    let mut left = MAX_FOLLOWED;
    // A report may itself be a finding of an earlier list. Each is looked at once, from the last list on its way.
    let mut seen: BTreeSet<&FindingId> = BTreeSet::from([listed]);
    let mut level: Vec<(&'a FindingId, &'a MergingList)> = Vec::new();
    for report in reports.reports_of.get(listed)?.iter().take(MAX_FOLLOWED) {
        let list = reports.findings_of.get(report).and_then(|lists| lists.get(listed));
        level.extend(list.map(|list| (report, list)));
    }
    for _ in 0..MAX_STEPS {
        let mut next: Vec<(&'a FindingId, &'a MergingList)> = Vec::new();
        for (id, list) in level {
            if left == 0 {
                break;
            }
            if !seen.insert(id) {
                continue;
            }
            left -= 1;
            let decisions = about.get(id).map(Vec::as_slice).unwrap_or_default();
            if is_decided_for_itself(decisions) {
                continue;
            }
            // Those behind them would not be looked at.
            let further = reports.reports_of.get(id).into_iter().flatten().take(left + seen.len());
            next.extend(further.map(|report| (report, list)));
            let standing = merged.get(id).map(|outcome| outcome.standing);
            let holds = standing.filter(|standing| holds_for_list(standing, decisions, list.requested_at));
            let followed = holds.map(|decision| FollowedDecision { decision, run: &list.run });
            if let Some(followed) = followed
                && found.as_ref().is_none_or(|known| known.rank() < followed.rank())
            {
                found = Some(followed);
            }
        }
        if next.is_empty() {
            break;
        }
        level = next;
    }
    found
}

/// Returns true if the decision that stands for a report holds for the finding of a list that was requested then. `decisions` are all
/// about the report.
///
/// - A person's dismissal holds whenever it was made, because the same code may have been reviewed before the panel.
/// - That the problem is addressed holds if it was said after the request, because the panel has seen the problem else, or in place of
///   a dismissal.
fn holds_for_list(decision: &SharedDecision, decisions: &[&SharedDecision], requested_at: Option<Time>) -> bool {
    let is_dismissal =
        |decision: &SharedDecision| decision.actor == Actor::User && decision.status == FindingStatus::Dismissed;
    match decision.status {
        FindingStatus::Dismissed => is_dismissal(decision),
        FindingStatus::Addressed => {
            requested_at.is_some_and(|requested_at| decision.at >= requested_at)
                || decisions.iter().any(|earlier| is_dismissal(earlier) && earlier.id < decision.id)
        }
        FindingStatus::Open | FindingStatus::Unresolved | FindingStatus::Obsolete => false,
    }
}

/// Returns true if a person has opened a report about which nobody had decided, and has not taken that back: it is no part of the
/// finding any longer.
fn is_decided_for_itself(decisions: &[&SharedDecision]) -> bool {
    let is_opened = |decision: &SharedDecision| {
        decision.actor == Actor::User && decision.status == FindingStatus::Open && decision.action != TriageAction::Undo
    };
    let is_first = |decision: &SharedDecision| decision.action == TriageAction::Set && decision.over.is_empty();
    if !decisions.iter().any(|decision| is_opened(decision) && is_first(decision)) {
        return false;
    }
    // A decision is later than those that its author knew.
    let mut decisions = decisions.to_vec();
    decisions.sort_unstable_by(|one, other| one.id.cmp(&other.id));
    let (mut openings, mut undone): (BTreeSet<&DecisionId>, BTreeSet<&DecisionId>) = Default::default();
    for decision in decisions {
        let is_about = |ids: &BTreeSet<&DecisionId>| decision.over.iter().any(|id| ids.contains(id));
        let is_redone = decision.action == TriageAction::Redo && is_about(&undone);
        if is_opened(decision) && (is_first(decision) || is_redone) {
            openings.insert(&decision.id);
        } else if decision.action == TriageAction::Undo && is_about(&openings) {
            openings.retain(|id| !decision.over.contains(id));
            undone.insert(&decision.id);
        }
    }
    !openings.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{TeamClock, TeamPerson};
    use crate::policy::merge_decisions;

    fn id(letter: &str) -> FindingId {
        format!("f_{}", letter.repeat(16)).parse().expect("an id")
    }

    fn run(number: &str) -> RunId {
        format!("ar_{number:0>26}").parse().expect("an id")
    }

    /// Parses lists such as `1@50:a>b`: the run 1, requested at second 50, has merged report a into finding b.
    fn lists(words: &[&str]) -> MergedReports {
        let mut reports = MergedReports::default();
        for word in words {
            let (list, merge) = word.split_once(':').expect("a list");
            let (number, second) = list.split_once('@').expect("a request");
            let (report, listed) = merge.split_once('>').expect("a merge");
            let requested_at = Time::from_second(second.parse().expect("a second")).expect("a time");
            reports.add(&id(report), &id(listed), &run(number), Some(requested_at));
        }
        reports
    }

    /// Parses a decision such as `a:2:dismissed`: about a, at second 2.
    fn decision(word: &str) -> SharedDecision {
        let parts: Vec<&str> = word.split(':').collect();
        let [letter, second, status] = parts.as_slice() else { panic!("{word}") };
        let seconds: i64 = second.parse().expect("a second");
        SharedDecision {
            id: DecisionId {
                clock: TeamClock { ms: seconds * 1_000, count: 0 },
                machine: "ada-1".parse().expect("a name"),
            },
            person: TeamPerson::default(),
            actor: Actor::User,
            finding_id: id(letter),
            status: status.parse().expect("a status"),
            reason: String::new(),
            at: Time::from_second(seconds).expect("a time"),
            action: TriageAction::Set,
            over: Vec::new(),
            group: String::new(),
            ci: false,
        }
    }

    #[test]
    fn a_finding_follows_the_reports_that_lists_have_merged_into_it() {
        // The letter of a finding, and what it follows: the second of the decision and the run of the list.
        for (title, words, said, expected) in [
            ("no list", &[][..], "a:2:dismissed", &[("a", None), ("b", None)][..]),
            ("one", &["1@50:a>b"], "a:2:dismissed", &[("a", None), ("b", Some((2, "1"))), ("c", None)]),
            ("not back", &["1@50:a>b"], "b:2:dismissed", &[("a", None)]),
            ("a later list of the list", &["1@50:a>b", "2@60:b>c"], "a:2:dismissed", &[("c", Some((2, "2")))]),
            ("a circle", &["1@50:a>b", "2@60:b>a"], "a:2:dismissed", &[("a", None), ("b", Some((2, "1")))]),
            ("of two lists the newer", &["1@50:a>b", "2@60:a>b"], "a:55:addressed", &[("b", None)]),
            ("of two lists the newer, in time", &["1@50:a>b", "2@60:a>b"], "a:61:addressed", &[("b", Some((61, "2")))]),
            ("the later decision", &["1@50:a>c", "1@50:b>c"], "a:2:dismissed b:3:dismissed", &[("c", Some((3, "1")))]),
            ("opened without a decision before", &["1@50:a>b"], "a:2:open a:3:dismissed", &[("b", None)]),
            (
                "not through a report that is decided for itself",
                &["1@50:a>b", "2@60:b>c"],
                "a:2:dismissed b:3:open",
                &[("c", None)],
            ),
        ] {
            let decisions: Vec<SharedDecision> = said.split(' ').map(decision).collect();
            let mut about: HashMap<&FindingId, Vec<&SharedDecision>> = HashMap::new();
            decisions.iter().for_each(|one| about.entry(&one.finding_id).or_default().push(one));
            let merged = merge_decisions(&decisions);
            let backwards: Vec<&str> = words.iter().rev().copied().collect();
            let reports = lists(words);
            assert_eq!(lists(&backwards), reports, "{title}: the order of lists changes nothing");
            for (letter, followed) in expected {
                let found = follow_reports(&id(letter), &reports, &about, &merged);
                let found = found.map(|found| (found.decision.id.clock.ms / 1_000, found.run.clone()));
                assert_eq!(found, followed.map(|(second, number)| (second, run(number))), "{title}, {letter}");
            }
        }
    }

    #[test]
    fn a_finding_follows_a_bounded_number_of_reports_over_a_bounded_way() {
        let numbered = |number: usize| -> FindingId { format!("f_{number:016x}").parse().expect("an id") };
        let count = MAX_FOLLOWED + MAX_STEPS;
        // A chain of reports, each of which is the finding of the list before it; and reports of one list.
        let (mut chain, mut list) = (MergedReports::default(), MergedReports::default());
        for number in 0..count {
            chain.add(&numbered(number), &numbered(number + 1), &run("1"), None);
            list.add(&numbered(number), &numbered(count), &run("1"), None);
        }
        let end = numbered(count);
        for (title, reports, number, expected) in [
            ("near", &chain, count - MAX_STEPS, true),
            ("too far", &chain, count - MAX_STEPS - 1, false),
            ("among the first", &list, MAX_FOLLOWED - 1, true),
            ("one too many", &list, MAX_FOLLOWED, false),
        ] {
            let decision = SharedDecision { finding_id: numbered(number), ..decision("a:2:dismissed") };
            let about = HashMap::from([(&decision.finding_id, vec![&decision])]);
            let merged = merge_decisions([&decision]);
            assert_eq!(follow_reports(&end, reports, &about, &merged).is_some(), expected, "{title}");
        }
        // Also reports that are no part of the finding are looked at.
        let opened = (0..MAX_FOLLOWED).map(|number| (number, "a:2:open"));
        let decisions = opened.chain([(MAX_FOLLOWED, "a:2:dismissed")]);
        let decisions: Vec<SharedDecision> =
            decisions.map(|(number, word)| SharedDecision { finding_id: numbered(number), ..decision(word) }).collect();
        let about = decisions.iter().map(|one| (&one.finding_id, vec![one])).collect();
        assert_eq!(follow_reports(&end, &list, &about, &merge_decisions(&decisions)), None);
        assert_eq!(chain.add_reports(&BTreeSet::from([end])).len(), MAX_STEPS + 1);
        assert_eq!(chain.add_findings(&BTreeSet::from([numbered(0)])).len(), MAX_STEPS + 1);
    }

    #[test]
    fn ids_are_closed_over_all_lists() {
        let reports = lists(&["1@50:a>b", "2@60:b>c", "3@70:c>a", "3@70:d>c"]);
        let letters = |ids: BTreeSet<FindingId>| -> String { ids.iter().map(|id| &id.as_str()[2..3]).collect() };
        let one = |letter: &str| BTreeSet::from([id(letter)]);
        assert_eq!(letters(reports.add_findings(&one("d"))), "abcd");
        assert_eq!(letters(reports.add_reports(&one("c"))), "abcd");
        assert_eq!(letters(reports.add_reports(&one("d"))), "d");
        assert!(reports.has_report(&id("d")) && !MergedReports::default().has_report(&id("d")));
    }
}
