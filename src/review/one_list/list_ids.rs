//! Gives each problem of a panel's list its id.
//!
//! Different problems of one kind at the same code share the id of the code, the *base*, and its
//! [variants](FindingId::variant). Which of them a member's report has may depend on what was on record when the member
//! worked. The ids of the list do not:
//!
//! - An id that stands for a problem stays with that problem: one that an earlier run reported, or about which somebody has
//!   decided. Of several problems that are reported under it, the one with the most similar words keeps it.
//! - The other problems at the code get the base and its variants in the order of the members, and those of one member in
//!   the order of its ids. So the ids of the first member are those of the list.
//! - An id with a decision goes to no problem with clearly other words, even if nobody reports its own problem.
//! - Of several ids that stand for one problem, the list has one. The others are said to have moved
//!   ([`super::OneList::moved_ids`]), so that what was decided under them is not lost.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use super::{PanelGroup, PanelReport};
use crate::domain::{Finding, FindingId, Kind, RunId};
use crate::review::accumulate::main_explanation;
use crate::review::similarity::{FindingWords, ProblemDistinction};

/// Words of the problem that an id stands for before a panel makes its list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StandingProblem {
    /// Title of the report.
    pub title: String,
    /// Explanation of the report.
    pub explanation: String,
    /// True if the id is new with the panel: a person has decided about this report while the members worked.
    pub is_new: bool,
}

/// Ids of one code: the base and its variants.
#[derive(Debug, Default)]
pub(super) struct IdFamilies {
    /// Base and number of the variant of each id whose base is known.
    base_of: HashMap<FindingId, (FindingId, u32)>,
}

impl IdFamilies {
    /// Finds the bases of ids that may be those of different problems at one code.
    pub fn from_groups(groups: &[PanelGroup<'_>]) -> Self {
        let mut reports: Vec<(usize, &Finding)> = Vec::new();
        for (at, group) in groups.iter().enumerate() {
            reports.extend(group.reports.iter().map(|report| (at, report.finding)));
        }
        reports.sort_by(|(_, one), (_, other)| code_key(one).cmp(&code_key(other)));
        let mut families = Self::default();
        for (at, (group, report)) in reports.iter().enumerate() {
            for (other_group, other) in reports[at + 1..].iter().take_while(|(_, other)| is_at_code(report, other)) {
                if group != other_group || report.finding_id != other.finding_id {
                    families.relate(report, other);
                }
            }
        }
        families
    }

    /// Returns the base of an id, and the number of its variant; the id itself if it is no known variant.
    pub fn base<'i>(&'i self, id: &'i FindingId) -> (&'i FindingId, u32) {
        self.base_of.get(id).map_or((id, 0), |(base, number)| (base, *number))
    }

    fn relate(&mut self, one: &Finding, other: &Finding) {
        self.find_base(one);
        self.find_base(other);
        // The quoted code may be another one than that of the ids.
        for (base, id) in [(&one.finding_id, &other.finding_id), (&other.finding_id, &one.finding_id)] {
            if base != id {
                self.try_base(id, || base.clone());
            }
        }
    }

    /// Finds the base of a report's id by the code that it quotes.
    fn find_base(&mut self, report: &Finding) {
        let (kind, path) = (report.kind.word(), &report.repo_relative_path);
        self.try_base(&report.finding_id, || FindingId::from_parts(kind, path, &report.quoted_code, 0));
    }

    /// Stores the base of an id that has none yet, if the id is one of its variants.
    fn try_base(&mut self, id: &FindingId, base: impl FnOnce() -> FindingId) {
        if self.is_resolved(id) {
            return;
        }
        let base = base();
        if let Some(number) = (0..FindingId::MAX_VARIANTS).find(|number| base.variant(*number) == *id) {
            self.base_of.insert(id.clone(), (base, number));
        }
    }

    fn is_resolved(&self, id: &FindingId) -> bool {
        self.base_of.contains_key(id)
    }
}

/// Path, kind and first line of a report.
fn code_key(finding: &Finding) -> (&str, Kind, u32) {
    (&finding.repo_relative_path, finding.kind, finding.lines().start)
}

/// Returns true if a report that is not above another one is about the same lines, under the same kind.
fn is_at_code(report: &Finding, below: &Finding) -> bool {
    report.kind == below.kind
        && report.repo_relative_path == below.repo_relative_path
        && below.lines().start <= report.lines().end
}

/// Place in the order in which problems get ids: member, place of the id among those of the member at this code, place in
/// the file, words.
type OrderKey<'a> = ((&'a str, &'a RunId), usize, (&'a str, u32, u32), (&'a str, &'a str));

/// Returns the positions of groups in the order in which they get ids.
pub(super) fn order_groups(families: &IdFamilies, groups: &[PanelGroup<'_>]) -> Vec<usize> {
    let reports = groups.iter().flat_map(|group| &group.reports);
    let mut numbers: HashMap<(&RunId, &FindingId), Vec<u32>> = HashMap::new();
    for report in reports.filter(|report| families.is_resolved(&report.finding.finding_id)) {
        let (base, number) = families.base(&report.finding.finding_id);
        numbers.entry((report.member.run_id, base)).or_default().push(number);
    }
    numbers.values_mut().for_each(|numbers| numbers.sort_unstable());
    // The numbers themselves depend on what the member knew of others.
    let rank_of = |report: &PanelReport<'_>| {
        let (base, number) = families.base(&report.finding.finding_id);
        let numbers = numbers.get(&(report.member.run_id, base)).map(Vec::as_slice).unwrap_or_default();
        numbers.partition_point(|lower| *lower < number)
    };
    let key = |at: usize| groups[at].reports.iter().map(|report| order_key(report, rank_of(report))).min();
    let mut order: Vec<usize> = (0..groups.len()).collect();
    order.sort_by_cached_key(|at| key(*at));
    order
}

fn order_key<'a>(report: &PanelReport<'a>, rank: usize) -> OrderKey<'a> {
    let (member, finding) = (report.member, report.finding);
    let place = (finding.repo_relative_path.as_str(), finding.lines().start, finding.lines().end);
    ((member.reviewer, member.run_id), rank, place, (finding.title.as_str(), finding.explanation.as_str()))
}

/// Standing of a group at a code, the best last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CodeStanding {
    /// Ids of the code stand for other problems only.
    Foreign,
    /// No id of the code stands for a problem.
    Free,
    /// An id of the code stands for the problem of the group.
    Own,
}

/// Groups to which ids belong that stand for a problem.
pub(super) struct IdOwners<'g> {
    /// Position of the group; `None` if the problem is that of no group.
    owner_of: HashMap<&'g FindingId, Option<usize>>,
    /// The same by the base of the id, with its number; sorted.
    by_code: Vec<(&'g FindingId, u32, &'g FindingId, Option<usize>)>,
}

impl<'g> IdOwners<'g> {
    /// Finds the owners of the reported ids. `is_known` and `problem_of` are those of [`super::merge_panel`].
    pub fn find(
        groups: &'g [PanelGroup<'_>],
        (families, order): (&'g IdFamilies, &[usize]),
        is_known: &impl Fn(&FindingId) -> bool,
        problem_of: &impl Fn(&FindingId) -> Option<StandingProblem>,
    ) -> Self {
        let mut reported: Vec<(&FindingId, usize)> = Vec::new();
        for (place, at) in order.iter().enumerate() {
            reported.extend(groups[*at].reports.iter().map(|report| (&report.finding.finding_id, place)));
        }
        reported.sort_unstable();
        reported.dedup();
        let mut owner_of: HashMap<&FindingId, Option<usize>> = HashMap::new();
        for reports in reported.chunk_by(|one, other| one.0 == other.0) {
            let (id, first) = reports[0];
            let (is_known, is_shared) = (is_known(id), reports.len() > 1);
            let place = match (is_known || is_shared).then(|| problem_of(id)).flatten() {
                None if !is_known => continue,
                Some(problem) if is_shared || problem.is_new => {
                    let likeness = |place: usize| find_likeness(&problem, &groups[order[place]]);
                    let alike = reports.iter().filter_map(|(_, place)| Some((likeness(*place)?, Reverse(*place))));
                    // The first one of equal ones.
                    let best = alike.max().map(|(_, Reverse(place))| place);
                    best.or((!problem.is_new).then_some(first))
                }
                _ => Some(first),
            };
            owner_of.insert(id, place.map(|place| order[place]));
        }
        let with_code = |(id, owner): (&&'g FindingId, &Option<usize>)| {
            let (base, number) = families.base(id);
            (base, number, *id, *owner)
        };
        let mut by_code: Vec<_> = owner_of.iter().map(with_code).collect();
        by_code.sort_unstable();
        Self { owner_of, by_code }
    }

    /// Returns the reported ids that stand for a problem, with their owners.
    pub fn iter(&self) -> impl Iterator<Item = (&'g FindingId, Option<usize>)> {
        self.by_code.iter().map(|(.., id, owner)| (*id, *owner))
    }

    /// Returns the ids of a code that stand for a problem, in the order of their numbers, with their owners.
    fn at_code(&self, base: &FindingId) -> impl Iterator<Item = (&'g FindingId, Option<usize>)> {
        let first = self.by_code.partition_point(|(other, ..)| *other < base);
        let same = self.by_code[first..].iter().take_while(move |(other, ..)| *other == base);
        same.map(|(.., id, owner)| (*id, *owner))
    }

    /// Returns the standing of a group at the code of an id with this base.
    pub fn standing(&self, base: &FindingId, group: usize) -> CodeStanding {
        let owners = || self.at_code(base).map(|(_, owner)| owner);
        match (owners().any(|owner| owner == Some(group)), owners().next()) {
            (true, _) => CodeStanding::Own,
            (false, None) => CodeStanding::Free,
            (false, Some(_)) => CodeStanding::Foreign,
        }
    }

    /// Returns the id that stands for the problem of a group at the code of its report: the one of the report, else the first
    /// one.
    fn own_id(&self, base: &FindingId, reported: &FindingId, group: usize) -> Option<&'g FindingId> {
        let own = || self.at_code(base).filter(move |(_, owner)| *owner == Some(group)).map(|(id, _)| id);
        own().find(|id| *id == reported).or_else(|| own().next())
    }

    /// Returns true if the id does not stand for the problem of another group, or of none.
    fn may_use(&self, id: &FindingId, group: usize) -> bool {
        self.owner_of.get(id).is_none_or(|owner| *owner == Some(group))
    }
}

/// Returns how similar a group is to a problem: whether a report has its words, and the similarity of the words. `None` if
/// all reports are clearly about another problem.
fn find_likeness(problem: &StandingProblem, group: &PanelGroup<'_>) -> Option<(bool, u32)> {
    let explanation = main_explanation(&problem.explanation);
    let likeness = group.reports.iter().filter_map(|report| {
        let finding = report.finding;
        let own = main_explanation(&finding.explanation);
        let has_words = problem.title.trim() == finding.title.trim() && explanation.trim() == own.trim();
        let words = |title: &str, explanation: &str| FindingWords::from_texts(finding.kind, title, explanation, "");
        let compared = words(&problem.title, explanation).compare(&words(&finding.title, own));
        (has_words || compared.distinct == ProblemDistinction::None).then_some((has_words, compared.similarity))
    });
    likeness.max()
}

/// Returns the id of each group. `own_ids` are the ids of the reports that stand for the groups.
pub(super) fn assign_ids(
    groups: &[PanelGroup<'_>],
    (families, order, owners): (&IdFamilies, &[usize], &IdOwners<'_>),
    own_ids: &[&FindingId],
    is_known: &impl Fn(&FindingId) -> bool,
    problem_of: &impl Fn(&FindingId) -> Option<StandingProblem>,
) -> Vec<FindingId> {
    let reported: HashSet<&FindingId> =
        groups.iter().flat_map(|group| group.reports.iter().map(|report| &report.finding.finding_id)).collect();
    let mut taken: HashSet<FindingId> = HashSet::new();
    let mut ids: Vec<FindingId> = own_ids.iter().map(|id| (*id).clone()).collect();
    for &at in order {
        let (base, _) = families.base(own_ids[at]);
        if let Some(own) = owners.own_id(base, own_ids[at], at) {
            ids[at] = own.clone();
        } else {
            let is_free = |id: &FindingId| {
                if taken.contains(id) || !owners.may_use(id, at) {
                    return false;
                }
                match (reported.contains(id), is_known(id)) {
                    // Its reports are about this code, and their problems get their ids here, too.
                    (true, _) => families.base(id).0 == base,
                    (false, false) => true,
                    // An earlier panel may have given it to this problem.
                    (false, true) => problem_of(id).is_some_and(|known| find_likeness(&known, &groups[at]).is_some()),
                }
            };
            if let Some(id) = (0..u32::MAX).map(|number| base.variant(number)).find(is_free) {
                ids[at] = id;
            }
        }
        taken.insert(ids[at].clone());
    }
    ids
}
