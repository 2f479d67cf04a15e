//! Merges the decisions that the members of a team made about one finding.
//!
//! The result depends on the set of decisions alone: their order, repetition and late arrival change nothing.
//!
//! - A decision replaces those that its author knew (`over`). What nobody has replaced *competes*.
//! - An undo that leaves a finding undecided only takes back what its author decided: it never beats another decision.
//! - A person's decision beats the claims of assistants, also later ones. Only after a person has reopened a finding does a
//!   claim count again.
//! - Among the rest, the latest decision stands. If another person competes with another status, both disagree.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::domain::{Actor, DecisionId, FindingId, SharedDecision};

/// Outcome of the decisions about one finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergedDecision<'a> {
    /// Decision that stands.
    pub standing: &'a SharedDecision,
    /// Competing decisions of other people with another status, latest first; each person at most once.
    pub disputed: Vec<&'a SharedDecision>,
}

/// Merges decisions about any number of findings.
pub fn merge_decisions<'a>(
    decisions: impl IntoIterator<Item = &'a SharedDecision>,
) -> BTreeMap<&'a FindingId, MergedDecision<'a>> {
    let mut by_finding: BTreeMap<&FindingId, Vec<&SharedDecision>> = BTreeMap::new();
    for decision in decisions {
        by_finding.entry(&decision.finding_id).or_default().push(decision);
    }
    by_finding.into_iter().filter_map(|(finding, decisions)| Some((finding, merge_one(decisions)?))).collect()
}

/// Merges the decisions about one finding; `None` without any.
fn merge_one(mut decisions: Vec<&SharedDecision>) -> Option<MergedDecision<'_>> {
    // Two decisions with one id are a mistake of their machine; all members must choose the same one.
    decisions.sort_unstable();
    decisions.dedup_by(|later, earlier| later.id == earlier.id);
    let mut competing = find_competing(&decisions);
    if competing.iter().any(|decision| !decision.is_withdrawal()) {
        competing.retain(|decision| !decision.is_withdrawal());
    }
    if competing.iter().any(|decision| is_binding(decision)) {
        competing.retain(|decision| decision.actor == Actor::User);
    }
    let standing = competing.pop()?;
    // The last word of each person, latest first.
    let mut last_words: Vec<&SharedDecision> = vec![standing];
    for other in competing.into_iter().rev().filter(|other| other.actor == Actor::User) {
        if !last_words.iter().any(|known| known.person.is_same(&other.person)) {
            last_words.push(other);
        }
    }
    let is_opponent = |other: &&SharedDecision| standing.actor == Actor::User && other.status != standing.status;
    let disputed = last_words.into_iter().skip(1).filter(is_opponent).collect();
    Some(MergedDecision { standing, disputed })
}

/// Returns the decisions that no other one replaces, earliest first. `decisions` are sorted.
fn find_competing<'a>(decisions: &[&'a SharedDecision]) -> Vec<&'a SharedDecision> {
    let by_id: HashMap<&DecisionId, &SharedDecision> = decisions.iter().map(|one| (&one.id, *one)).collect();
    let mut replaced: HashSet<&DecisionId> = HashSet::new();
    for decision in decisions {
        let known = decision.over.iter().filter_map(|id| by_id.get(id));
        // A claim does not replace what a person has decided. A clock never goes back, so there is no circle.
        let may_replace = |earlier: &&&SharedDecision| {
            earlier.id < decision.id && (decision.actor == Actor::User || !is_binding(earlier))
        };
        replaced.extend(known.filter(may_replace).map(|earlier| &earlier.id));
    }
    decisions.iter().copied().filter(|decision| !replaced.contains(&decision.id)).collect()
}

/// Returns true for a person's decision that leaves nothing to decide.
fn is_binding(decision: &SharedDecision) -> bool {
    decision.actor == Actor::User && !decision.status.is_undecided()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::{FindingStatus, MachineName, TeamClock, TeamPerson, Time, TriageAction};

    const FINDING: &str = "f_00000000000000aa";

    fn id(ms: i64, machine: &str) -> DecisionId {
        DecisionId { clock: TeamClock { ms, count: 0 }, machine: machine.parse().expect("a name") }
    }

    /// Parses a decision: time, machine, author (a name, or `bot` of a name), status, and the time and machine of the
    /// decision that it replaces.
    fn decision(line: &str) -> SharedDecision {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [ms, person, status, rest @ ..] = words.as_slice() else { panic!("{line}") };
        let (actor, person) = match person.strip_prefix("bot-") {
            Some(person) => (Actor::Assistant, person),
            None => (Actor::User, *person),
        };
        let (action, rest) = match rest {
            ["undo", rest @ ..] => (TriageAction::Undo, rest),
            rest => (TriageAction::Set, rest),
        };
        let over = match rest {
            ["over", known @ ..] => {
                known.chunks(2).map(|known| id(known[0].parse().expect("a time"), known[1])).collect()
            }
            [] => Vec::new(),
            _ => panic!("{line}"),
        };
        SharedDecision {
            id: id(ms.parse().expect("a time"), person),
            person: TeamPerson { name: person.to_owned(), email: String::new() },
            actor,
            finding_id: FINDING.parse().expect("an id"),
            status: status.parse().expect("a status"),
            reason: String::new(),
            at: Time::UNIX_EPOCH,
            action,
            over,
            group: String::new(),
            ci: false,
        }
    }

    #[test]
    fn one_decision_stands_and_people_who_disagree_are_named() {
        for (title, lines, expected) in [
            ("one", &["1 ada dismissed"][..], "1 ada dismissed; disputed by "),
            ("the later one stands", &["1 ada dismissed", "2 bob addressed"], "2 bob addressed; disputed by ada"),
            ("agreement is no dispute", &["1 ada dismissed", "2 bob dismissed"], "2 bob dismissed; disputed by "),
            ("what was known is replaced", &["1 ada dismissed", "2 bob open over 1 ada"], "2 bob open; disputed by "),
            ("an undo is a decision", &["1 ada dismissed", "2 ada open undo over 1 ada"], "2 ada open; disputed by "),
            (
                "an undo takes back only its own",
                &["1 ada dismissed", "2 bob addressed", "3 ada open undo over 1 ada"],
                "2 bob addressed; disputed by ",
            ),
            (
                "an undo to an earlier decision counts",
                &["1 ada dismissed", "2 ada addressed over 1 ada", "3 ada dismissed undo over 2 ada"],
                "3 ada dismissed; disputed by ",
            ),
            ("a person beats a claim", &["1 ada dismissed", "2 bot-bob addressed"], "1 ada dismissed; disputed by "),
            (
                "also a claim that knew it",
                &["1 ada dismissed", "2 bot-bob addressed over 1 ada"],
                "1 ada dismissed; disputed by ",
            ),
            (
                "a claim after a reopening counts",
                &["1 ada dismissed", "2 ada open over 1 ada", "3 bot-bob addressed over 2 ada"],
                "3 bob addressed; disputed by ",
            ),
            ("claims alone: the later one", &["1 bot-ada addressed", "2 bot-bob open"], "2 bob open; disputed by "),
            (
                "whoever knows both ends the dispute",
                &["1 ada dismissed", "2 bob addressed", "3 bob open over 1 ada 2 bob"],
                "3 bob open; disputed by ",
            ),
            (
                "a person who agrees now is no opponent",
                &["1 ada dismissed", "2 ada addressed", "3 bob addressed"],
                "3 bob addressed; disputed by ",
            ),
            (
                "each opponent once",
                &["1 ada dismissed", "2 ada addressed", "3 bob dismissed", "4 cyd open"],
                "4 cyd open; disputed by bob, ada",
            ),
            ("what is not here yet is no hindrance", &["2 bob open over 1 ada"], "2 bob open; disputed by "),
            (
                "a circle is ignored",
                &["1 ada open over 2 bob", "2 bob dismissed over 1 ada"],
                "2 bob dismissed; disputed by ",
            ),
        ] {
            let decisions: Vec<SharedDecision> = lines.iter().map(|line| decision(line)).collect();
            let merged = merge_decisions(&decisions);
            let outcome = merged.values().next().expect("an outcome");
            let opponents: Vec<&str> = outcome.disputed.iter().map(|one| one.person.label()).collect();
            let standing = outcome.standing;
            let said = format!(
                "{} {} {}; disputed by {}",
                standing.id.clock.ms,
                standing.id.machine,
                standing.status,
                opponents.join(", ")
            );
            assert_eq!(said, expected, "{title}");
        }
    }

    fn any_decision() -> impl Strategy<Value = SharedDecision> {
        let machine = prop::sample::select(vec!["ada", "bob", "cyd"]);
        let status = prop::sample::select(FindingStatus::ALL.to_vec());
        let action = prop::sample::select(TriageAction::ALL.to_vec());
        let over = prop::collection::vec((0_i64..12, prop::sample::select(vec!["ada", "bob", "cyd"])), 0..3);
        (0_i64..12, machine, status, action, any::<bool>(), over, 0_u8..4).prop_map(
            |(ms, machine, status, action, is_person, over, finding)| SharedDecision {
                id: id(ms, machine),
                person: TeamPerson { name: machine.to_owned(), email: format!("{machine}@example.org") },
                actor: if is_person { Actor::User } else { Actor::Assistant },
                finding_id: format!("f_00000000000000a{finding}").parse().expect("an id"),
                status,
                reason: String::new(),
                at: Time::UNIX_EPOCH,
                action,
                over: over.into_iter().map(|(ms, machine)| id(ms, machine)).collect(),
                group: String::new(),
                ci: false,
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2_000) })]

        #[test]
        fn order_and_repetition_change_nothing(
            decisions in prop::collection::vec(any_decision(), 1..24),
            order in prop::collection::vec(any::<prop::sample::Index>(), 0..48),
        ) {
            let mut shuffled: Vec<SharedDecision> = order.iter().map(|at| at.get(&decisions).clone()).collect();
            shuffled.extend(decisions.iter().rev().cloned());
            let (one, other) = (merge_decisions(&decisions), merge_decisions(&shuffled));
            prop_assert_eq!(format!("{one:?}"), format!("{other:?}"));
            for outcome in one.values() {
                let is_opponent = |other: &&SharedDecision| other.status != outcome.standing.status;
                prop_assert!(outcome.disputed.iter().all(is_opponent));
            }
        }
    }

    #[test]
    fn machine_names_order_decisions_of_one_time() {
        assert!(id(1, "ada") < id(1, "bob"));
        assert!(MachineName::from_host("a", "b").as_str() < "b");
    }
}
