//! Similar patterns in groups, so that one stands for many.
//!
//! Invariant: the groups depend on the patterns alone, not on the order in which they were learned.

use std::collections::{BTreeMap, HashMap};

use super::form::{Form, Token};
use super::pattern::{EditKind, Pattern, Stance};
use crate::domain::{Kind, PatternId};

/// Forms are near when at most one token of so many differs. Own: `VARIABLE == None` and `VARIABLE . VARIABLE == None`
/// are not, two calls that differ in one of seven tokens are.
const ONE_IN: usize = 6;

/// A pattern's forms as numbers, which compare faster.
struct Shape {
    id: PatternId,
    broken: Vec<u32>,
    fixed: Vec<u32>,
}

/// Sets `group` of all patterns of a language. A group's representative is the one that was seen most.
pub fn regroup(patterns: &mut BTreeMap<PatternId, Pattern>) {
    let mut numbers: HashMap<Token, u32> = HashMap::new();
    let mut number = |form: Form| -> Vec<u32> {
        let mut of = |token: &Token| {
            let next = numbers.len() as u32;
            *numbers.entry(token.clone()).or_insert(next)
        };
        form.tokens().iter().map(&mut of).collect()
    };
    let mut order: Vec<&Pattern> = patterns.values().collect();
    order.sort_by_key(|pattern| (std::cmp::Reverse(pattern.count().frequency), &pattern.id));
    let mut leaders: HashMap<(Stance, EditKind, Kind), Vec<Shape>> = HashMap::new();
    let mut groups = Vec::with_capacity(order.len());
    for pattern in order {
        let Some((broken, fixed)) = pattern.forms() else { continue };
        let shape = Shape { id: pattern.id.clone(), broken: number(broken), fixed: number(fixed) };
        let leaders = leaders.entry((pattern.stance, pattern.edit, pattern.kind)).or_default();
        let leader = leaders
            .iter()
            .find(|leader| are_near(&leader.broken, &shape.broken) && are_near(&leader.fixed, &shape.fixed));
        groups.push((shape.id.clone(), leader.map(|leader| leader.id.clone())));
        if groups.last().is_some_and(|(_, group)| group.is_none()) {
            leaders.push(shape);
        }
    }
    for (id, group) in groups {
        if let Some(pattern) = patterns.get_mut(&id) {
            pattern.group = group;
        }
    }
}

fn are_near(a: &[u32], b: &[u32]) -> bool {
    let most = a.len().max(b.len()) / ONE_IN;
    is_within(a, b, most)
}

/// Whether the edit distance (insert, delete, replace) is at most `most`. V. I. Levenshtein's, in the band around the
/// diagonal outside of which it must be larger: E. Ukkonen, "Algorithms for approximate string matching", 1985.
fn is_within(a: &[u32], b: &[u32], most: usize) -> bool {
    if a.len().abs_diff(b.len()) > most {
        return false;
    }
    if most == 0 {
        return a == b;
    }
    let far = most + 1;
    let mut before: Vec<usize> = (0..=b.len()).map(|at| at.min(far)).collect();
    let mut row = vec![far; b.len() + 1];
    for (i, left) in a.iter().enumerate() {
        let (from, to) = ((i + 1).saturating_sub(most), (i + 1 + most).min(b.len()));
        row.fill(far);
        if from == 0 {
            row[0] = (i + 1).min(far);
        }
        for j in from.max(1)..=to {
            let replaced = before[j - 1] + usize::from(*left != b[j - 1]);
            row[j] = replaced.min(before[j] + 1).min(row[j - 1] + 1).min(far);
        }
        if row.iter().all(|distance| *distance == far) {
            return false;
        }
        std::mem::swap(&mut before, &mut row);
    }
    before[b.len()] <= most
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;
    use crate::knowledge::test_support::pattern;

    #[rstest]
    #[case(&[], &[], 0, true)]
    #[case(&[1, 2, 3], &[1, 2, 3], 0, true)]
    #[case(&[1, 2, 3], &[1, 9, 3], 0, false)]
    #[case(&[1, 2, 3], &[1, 9, 3], 1, true)]
    #[case(&[1, 2, 3], &[2, 3], 1, true)]
    #[case(&[1, 2, 3, 4], &[2, 3, 4, 5], 1, false)]
    #[case(&[1, 2, 3, 4], &[2, 3, 4, 5], 2, true)]
    fn distances(#[case] a: &[u32], #[case] b: &[u32], #[case] most: usize, #[case] expected: bool) {
        assert_eq!(is_within(a, b, most), expected);
        assert_eq!(is_within(b, a, most), expected);
    }

    /// The whole table, as in the textbook.
    fn plainly(a: &[u32], b: &[u32]) -> usize {
        let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
        for i in 0..=a.len() {
            for j in 0..=b.len() {
                rows[i][j] = match (i, j) {
                    (0, n) | (n, 0) => n,
                    _ => (rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]))
                        .min(rows[i - 1][j] + 1)
                        .min(rows[i][j - 1] + 1),
                };
            }
        }
        rows[a.len()][b.len()]
    }

    proptest! {
        #[test]
        fn the_band_says_what_the_whole_table_says(
            a in prop::collection::vec(0..4_u32, 0..12),
            b in prop::collection::vec(0..4_u32, 0..12),
            most in 0..5_usize,
        ) {
            prop_assert_eq!(is_within(&a, &b, most), plainly(&a, &b) <= most);
        }
    }

    #[test]
    fn the_one_that_was_seen_most_stands_for_similar_ones() {
        let near = |operator: &str| {
            pattern(
                "go",
                &format!("if VARIABLE {operator} NUMBER && VARIABLE_2 != nil BODY"),
                "if VARIABLE <= NUMBER && VARIABLE_2 != nil BODY",
            )
        };
        let (mut most, less, other) = (near("<"), near(">"), pattern("go", "VARIABLE", "VARIABLE_2"));
        most.counts.values_mut().for_each(|count| count.frequency = 9);
        let mut patterns: BTreeMap<_, _> = [&less, &other, &most].map(|one| (one.id.clone(), one.clone())).into();
        regroup(&mut patterns);
        assert_eq!(patterns[&less.id].group.as_ref(), Some(&most.id));
        assert_eq!((&patterns[&most.id].group, &patterns[&other.id].group), (&None, &None));
        // Once the other was seen more often, it stands for both.
        if let Some(less) = patterns.get_mut(&less.id) {
            less.counts.values_mut().for_each(|count| count.frequency = 10);
        }
        regroup(&mut patterns);
        assert_eq!(patterns[&most.id].group.as_ref(), Some(&less.id));
        assert_eq!(patterns[&less.id].group, None);
    }
}
