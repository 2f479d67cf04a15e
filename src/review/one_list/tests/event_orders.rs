//! Checks that the list of a panel does not depend on the order in which its members report, cover hunks, call findings
//! fixed, and end.
//!
//! - A member that ends later may know what the others have reported, and give a different problem at the same code another
//!   id. The ids of the list are the same all the same.
//! - A decision about a report holds for its problem, whoever reports another one at the same code, and whichever id of the
//!   problem is that of the list: one that an earlier run has given, or one about which somebody has decided, too.

use super::*;
use crate::review::{FindingIdentities, ProblemText};

/// Number of members.
const MEMBERS: usize = 3;
/// Number of reports of a member.
const REPORTS: usize = 4;
/// First and last lines of the hunks of the change.
const HUNKS: [(u32, u32); 3] = [(1, 7), (8, 14), (15, 21)];
/// Most threads that try sets at once.
const MAX_THREADS: usize = 4;
/// All orders in which the members can end.
const ENDS: [[usize; MEMBERS]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

/// Pseudo-random numbers of SplitMix64 (G. L. Steele, D. Lea, C. H. Flood, "Fast splittable pseudorandom number
/// generators", OOPSLA 2014), the same on every machine.
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `end`.
    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).expect("a small number")
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.below(at + 1));
        }
    }
}

/// Returns the id of a report's code, as runs give it: the title does not count.
fn id_of_code(found: &Finding) -> FindingId {
    FindingId::from_parts(found.kind.word(), PATH, &found.quoted_code, 0)
}

/// Gives a report the id of its code.
fn with_id_of_code(mut found: Finding) -> Finding {
    found.finding_id = id_of_code(&found);
    found.detail_ref = format!("outputs/RUN.json#{}", found.finding_id);
    found
}

/// Returns ids that were known before the panel.
fn list_known() -> Vec<FindingId> {
    let known = (1..4).map(|line| build_report((line, 0, 0, 1, 1, false)));
    known.flat_map(|found| [found.finding_id.clone(), with_id_of_code(found).finding_id]).collect()
}

/// Returns a random report.
fn build_random_report(chance: &mut SplitMix) -> Finding {
    let is_at_common_code = chance.below(2) == 0;
    let (line, kind) = match is_at_common_code {
        true => (2 + chance.below(5), chance.below(2)),
        false => (1 + chance.below(20), chance.below(KINDS.len())),
    };
    let line = u32::try_from(line).expect("a line");
    let facts = (line, chance.below(TITLES.len()), kind, chance.below(4), chance.below(3), chance.below(2) == 0);
    let mut found = build_report(facts);
    // Different problems at the same code may have one id.
    if is_at_common_code {
        found = with_id_of_code(found);
    }
    // Some are secrets that no model reported.
    if chance.below(8) == 0 {
        found.steps.push(FindingStep::Scanned);
    }
    found
}

/// Returns a member with random reports, each under an id of its own and with other words, and a random end.
fn build_random_member(chance: &mut SplitMix, index: usize, known: &[FindingId]) -> Member {
    let mut findings: Vec<Finding> = Vec::new();
    while findings.len() < REPORTS {
        let found = build_random_report(chance);
        let place = |found: &Finding| (found.line_start, found.kind, found.title.clone());
        let is_said = |other: &Finding| other.finding_id == found.finding_id || place(other) == place(&found);
        if !findings.iter().any(is_said) {
            findings.push(found);
        }
    }
    let is_finished = chance.below(3) == 0;
    // Only a member that has completed has covered everything.
    let mut hunks: Vec<LineRange> = Vec::new();
    for (first, last) in HUNKS {
        if is_finished || chance.below(2) == 0 {
            hunks.push(LineRange::new(first, last));
        }
    }
    let files = vec![FileCoverage { path: PATH.into(), hunks, keys: Vec::new() }];
    let coverage = Coverage { files, ..Coverage::default() };
    let (mut confirmed, mut fixed) = (Vec::new(), Vec::new());
    for id in known {
        match chance.below(4) {
            0 => confirmed.push(id.clone()),
            1 => fixed.push(id.clone()),
            _ => {}
        }
    }
    let name = ["gpt", "claude", "builtin"][index];
    Member { coverage, is_finished, confirmed, fixed, ..member(name, findings) }
}

/// Gives reports whose ids `is_common` the ids that they get if the members end in this order, and each knows the reports of
/// those before it.
fn assign_by_arrival(members: &mut [Member], ends: [usize; MEMBERS], is_common: impl Fn(&FindingId) -> bool) {
    let mut texts: HashMap<FindingId, ProblemText> = HashMap::new();
    for at in ends {
        let mut identities = FindingIdentities::default();
        let mut told: Vec<(FindingId, ProblemText)> = Vec::new();
        for found in members[at].findings.iter_mut().filter(|found| is_common(&found.finding_id)) {
            identities.assign(found, |id| texts.get(id).cloned(), |_| false);
            let (title, explanation) = (found.title.clone(), found.explanation.clone());
            told.push((found.finding_id.clone(), ProblemText { title, explanation, ..ProblemText::default() }));
        }
        texts.extend(told);
    }
}

/// Random reports of three members, and what was known and decided about them.
struct EventSet {
    /// The members, with the ids of their reports in the different orders of their ends; first as if all ended together.
    worlds: Vec<Vec<Member>>,
    known: Vec<FindingId>,
    /// Words of the reports about which somebody has decided, each with the id under which it was shown.
    decided: Vec<(FindingId, StandingProblem)>,
}

/// Returns the words of a report about which somebody decides, with its id.
fn decide_about(found: &Finding) -> (FindingId, StandingProblem) {
    let (title, explanation) = (found.title.clone(), found.explanation.clone());
    (found.finding_id.clone(), StandingProblem { title, explanation, is_new: true })
}

impl EventSet {
    fn build(chance: &mut SplitMix) -> Self {
        let known = list_known();
        let members: Vec<Member> = (0..MEMBERS).map(|index| build_random_member(chance, index, &known)).collect();
        let reports = || members.iter().flat_map(|member| &member.findings);
        let scanned: HashSet<&FindingId> =
            reports().filter(|found| found.is_from_secret_scan()).map(|found| &found.finding_id).collect();
        let is_common = |found: &Finding| {
            let id = &found.finding_id;
            *id == id_of_code(found) && !known.contains(id) && !scanned.contains(id)
        };
        let common: HashSet<FindingId> =
            reports().filter(|found| is_common(found)).map(|found| found.finding_id.clone()).collect();
        let mut decided = Vec::new();
        let mut first = None;
        if chance.below(2) == 0 {
            let at = chance.below(MEMBERS);
            first = Some(at);
            let is_common = |found: &&Finding| common.contains(&found.finding_id);
            decided.extend(members[at].findings.iter().find(is_common).map(decide_about));
            // And about a report of another member whose id is the same whoever ends first: it may be the same problem.
            let is_own = |found: &&Finding| {
                let id = &found.finding_id;
                *id != id_of_code(found) && !known.contains(id) && !scanned.contains(id)
            };
            let others = members.iter().enumerate().filter(|(other, _)| *other != at);
            decided.extend(others.flat_map(|(_, member)| &member.findings).find(is_own).map(decide_about));
        }
        let mut worlds = vec![members.clone()];
        // A person decides about a report that is there: its member has ended first.
        for ends in ENDS.into_iter().filter(|ends| first.is_none_or(|first| ends[0] == first)) {
            let mut world = members.clone();
            assign_by_arrival(&mut world, ends, |id| common.contains(id));
            worlds.push(world);
        }
        Self { worlds, known, decided }
    }

    fn merge(&self, members: &[Member]) -> OneList {
        let results: Vec<MemberResult<'_>> = members.iter().map(Member::result).collect();
        let decided = |id: &FindingId| self.decided.iter().find(|(decided, _)| decided == id);
        let is_known = |id: &FindingId| self.known.contains(id) || decided(id).is_some();
        merge_panel(&results, is_known, |id| decided(id).map(|(_, problem)| problem.clone()), record(2, 40))
    }
}

/// Puts a member's events into a random order.
fn shuffle_events(chance: &mut SplitMix, member: &mut Member) {
    chance.shuffle(&mut member.findings);
    chance.shuffle(&mut member.coverage.files[0].hunks);
    chance.shuffle(&mut member.confirmed);
    chance.shuffle(&mut member.fixed);
}

/// Replaces the ids that the reports had in the runs of the members, after a check that they lead to the findings.
fn without_run_ids(mut list: OneList) -> OneList {
    for at in 0..list.findings.len() {
        let id = list.findings[at].finding_id.clone();
        let mut voices = std::mem::take(&mut list.findings[at].voices);
        for voice in &mut voices {
            if !voice.is_secret_scan() {
                assert_eq!(ListedIds::new(&list).find(&voice.run_id, &voice.finding_id), id, "{voice:?}");
            }
            voice.finding_id = id.clone();
        }
        list.findings[at].voices = voices;
    }
    list.listed_as.clear();
    list
}

/// Kinds of events that a set has tried.
#[derive(Debug, PartialEq, Eq, Hash)]
struct TriedSet {
    is_finished: Vec<bool>,
    /// True if ids of reports depend on who ended first.
    has_exchanged_ids: bool,
    is_decided: bool,
    /// True if a decision is about an id that the list does not have.
    has_moved_decision: bool,
}

/// Merges one set of events in random orders, and checks that each gives the list of the first one, with its ids.
fn check_set(number: usize, orders: usize) -> TriedSet {
    let mut chance = SplitMix(0x5eed ^ ((number as u64) << 20));
    let mut set = EventSet::build(&mut chance);
    let expected = without_run_ids(set.merge(&set.worlds[0]));
    let mut has_moved_decision = false;
    for (id, problem) in &set.decided {
        let listed = match expected.moved_ids.get(id) {
            Some(moved) => moved.as_ref().unwrap_or_else(|| panic!("set {number}: {id} is on no list: {problem:?}")),
            None => id,
        };
        has_moved_decision |= listed != id;
        let said = expected.findings.iter().filter(|finding| finding.finding_id == *listed);
        let said = said.flat_map(|found| &found.voices);
        let mut said = said.map(|voice| (&voice.title, &voice.explanation));
        let words = (&problem.title, &problem.explanation);
        assert!(said.any(|said| said == words), "set {number}: the decision is about {problem:?}");
    }
    let ids = |members: &[Member]| -> Vec<FindingId> {
        members.iter().flat_map(|member| &member.findings).map(|found| found.finding_id.clone()).collect()
    };
    let together = ids(&set.worlds[0]);
    let has_exchanged_ids = set.worlds.iter().any(|world| ids(world) != together);
    let is_finished = set.worlds[0].iter().map(|member| member.is_finished).collect();
    for _ in 0..orders {
        let at = chance.below(set.worlds.len());
        chance.shuffle(&mut set.worlds[at]);
        set.worlds[at].iter_mut().for_each(|member| shuffle_events(&mut chance, member));
        let list = without_run_ids(set.merge(&set.worlds[at]));
        assert!(list == expected, "set {number}: {list:#?}\nis not\n{expected:#?}\nof\n{:#?}", set.worlds[at]);
    }
    TriedSet { is_finished, has_exchanged_ids, is_decided: !set.decided.is_empty(), has_moved_decision }
}

/// Merges different sets of events, each in so many random orders. Returns the kinds of events that were tried.
fn check_random_orders(sets: usize, orders: usize) -> HashSet<TriedSet> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
    let tried: HashSet<TriedSet> = std::thread::scope(|scope| {
        let check = move |first: usize| {
            let numbers = (first..sets).step_by(threads);
            numbers.map(|number| check_set(number, orders)).collect::<HashSet<TriedSet>>()
        };
        let workers: Vec<_> = (0..threads).map(|first| scope.spawn(move || check(first))).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("each order gives the same list")).collect()
    });
    let ends: HashSet<&Vec<bool>> = tried.iter().map(|set| &set.is_finished).collect();
    assert!(ends.len() > 1, "several kinds of ends were tried: {ends:?}");
    assert!(tried.iter().any(|set| set.has_exchanged_ids && !set.is_decided), "ids that depend on the ends were tried");
    assert!(tried.iter().any(|set| set.has_exchanged_ids && set.is_decided), "and with a decision");
    tried
}

#[test]
fn random_orders_of_events_give_one_list() {
    check_random_orders(80, 25);
}

/// ```text
/// cargo test --release --lib -- --ignored campaign_of_a_million_random_orders
/// ```
#[test]
#[ignore = "a campaign of about a minute in a release build"]
fn campaign_of_a_million_random_orders_of_events() {
    let tried = check_random_orders(10_000, 100);
    assert!(
        tried.iter().any(|set| set.has_moved_decision),
        "decisions about ids that the list does not have were tried"
    );
}
