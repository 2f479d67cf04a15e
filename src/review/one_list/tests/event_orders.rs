//! Checks that the list of a panel does not depend on the order in which its members report, cover hunks, call findings
//! fixed, and end.

use super::*;

/// Number of members.
const MEMBERS: usize = 3;
/// Number of reports of a member.
const REPORTS: usize = 4;
/// First and last lines of the hunks of the change.
const HUNKS: [(u32, u32); 3] = [(1, 7), (8, 14), (15, 21)];

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

/// End of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MemberEnding {
    /// It has reviewed everything.
    Completed,
    /// It failed after what it had reported.
    Failed,
    /// It reached its budget.
    OutOfBudget,
}

/// Event of a member, as the panel learns of it.
#[derive(Debug, Clone, PartialEq)]
enum MemberEvent {
    Reported(Box<Finding>),
    Covered(LineRange),
    /// It saw a known finding again.
    Confirmed(FindingId),
    /// It calls a known finding fixed.
    Fixed(FindingId),
    Ended(MemberEnding),
}

/// Gives a report the id of its code, as runs give it: the title does not count.
fn with_id_of_code(mut found: Finding) -> Finding {
    found.finding_id = FindingId::from_parts(found.kind.word(), PATH, &found.quoted_code, 0);
    found.detail_ref = format!("outputs/RUN.json#{}", found.finding_id);
    found
}

/// Returns the random events of one member.
fn build_events(chance: &mut SplitMix, known: &[FindingId]) -> Vec<MemberEvent> {
    let mut events: Vec<MemberEvent> = Vec::new();
    for _ in 0..REPORTS {
        let line = u32::try_from(chance.below(20)).expect("a line") + 1;
        let (title, kind) = (chance.below(TITLES.len()), chance.below(KINDS.len()));
        let facts = (line, title, kind, chance.below(4), chance.below(3), chance.below(2) == 0);
        let mut found = build_report(facts);
        // Different problems at the same code may have one id.
        if chance.below(2) == 0 {
            found = with_id_of_code(found);
        }
        // Some are secrets that no model reported.
        if chance.below(8) == 0 {
            found.steps.push(FindingStep::Scanned);
        }
        events.push(MemberEvent::Reported(Box::new(found)));
    }
    let ending = [MemberEnding::Completed, MemberEnding::Failed, MemberEnding::OutOfBudget][chance.below(3)];
    // Only a member that has completed has covered everything.
    for (first, last) in HUNKS {
        if ending == MemberEnding::Completed || chance.below(2) == 0 {
            events.push(MemberEvent::Covered(LineRange::new(first, last)));
        }
    }
    for id in known {
        match chance.below(4) {
            0 => events.push(MemberEvent::Confirmed(id.clone())),
            1 => events.push(MemberEvent::Fixed(id.clone())),
            _ => {}
        }
    }
    events.push(MemberEvent::Ended(ending));
    events
}

/// Returns a member about which nothing is known yet.
fn unknown_member(index: usize) -> Member {
    let name = ["gpt", "claude", "builtin"][index];
    let files = vec![FileCoverage { path: PATH.into(), hunks: Vec::new(), keys: Vec::new() }];
    Member { coverage: Coverage { files, ..Coverage::default() }, is_finished: false, ..member(name, Vec::new()) }
}

impl Member {
    fn take(&mut self, event: &MemberEvent) {
        match event {
            MemberEvent::Reported(found) => self.findings.push((**found).clone()),
            MemberEvent::Covered(hunk) => self.coverage.files[0].hunks.push(*hunk),
            MemberEvent::Confirmed(id) => self.confirmed.push(id.clone()),
            MemberEvent::Fixed(id) => self.fixed.push(id.clone()),
            MemberEvent::Ended(ending) => self.is_finished = *ending == MemberEnding::Completed,
        }
    }
}

/// Merges what three members report in random orders of all their events, and checks that each order gives the list of
/// the first one. A hundred orders are tried with each set of events.
fn check_random_orders(orders: usize) {
    let mut chance = SplitMix(0x5eed);
    let known = (1..4).map(|line| build_report((line, 0, 0, 1, 1, false)));
    let known: Vec<FindingId> =
        known.flat_map(|found| [found.finding_id.clone(), with_id_of_code(found).finding_id]).collect();
    let mut endings = HashSet::new();
    for _ in 0..orders.div_ceil(100) {
        let mut events: Vec<(usize, MemberEvent)> = (0..MEMBERS)
            .flat_map(|member| build_events(&mut chance, &known).into_iter().map(move |event| (member, event)))
            .collect();
        let mut members: Vec<Member> = (0..MEMBERS).map(unknown_member).collect();
        events.iter().for_each(|(member, event)| members[*member].take(event));
        endings.insert(members.iter().map(|member| member.is_finished).collect::<Vec<_>>());
        let expected = merge_to_text(&members, &known);
        for _ in 0..100 {
            chance.shuffle(&mut events);
            // The members stand in the order of their first event, whatever it is.
            let mut arrived: Vec<(usize, Member)> = Vec::new();
            for (member, event) in &events {
                let place = arrived.iter().position(|(known, _)| known == member).unwrap_or_else(|| {
                    arrived.push((*member, unknown_member(*member)));
                    arrived.len() - 1
                });
                arrived[place].1.take(event);
            }
            let arrived: Vec<Member> = arrived.into_iter().map(|(_, member)| member).collect();
            assert_eq!(merge_to_text(&arrived, &known), expected, "{events:#?}");
        }
    }
    assert!(endings.len() > 1, "several kinds of ends were tried: {endings:?}");
}

#[test]
fn random_orders_of_events_give_one_list() {
    check_random_orders(500);
}

/// ```text
/// cargo test --release --lib -- --ignored campaign_of_a_million_random_orders
/// ```
#[test]
#[ignore = "a campaign of some minutes in a release build"]
fn campaign_of_a_million_random_orders_of_events() {
    check_random_orders(1_000_000);
}
