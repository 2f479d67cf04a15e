//! Groups similar patterns, so that one pattern represents many.
//!
//! - The groups depend only on the patterns, not on the order in which they were learned.

use std::collections::{BTreeMap, HashMap};

use super::form::{Form, FormToken, MAX_TOKENS};
use super::pattern::{EditKind, Pattern, PatternStance};
use crate::domain::{Kind, PatternId};

/// Two forms are similar if at most one token in this many differs. With 6, `VARIABLE == None` and `VARIABLE .
/// VARIABLE == None` are not similar; two calls that differ in one of seven tokens are.
const TOKENS_PER_EDIT: usize = 6;

/// Forms of a pattern with numbers instead of tokens, because numbers compare faster.
struct NumberedForms<'a> {
    pattern: &'a Pattern,
    broken: Vec<u32>,
    fixed: Vec<u32>,
}

/// Sets `group` of all patterns of a language. The pattern that was seen most represents its group.
pub fn group_similar(patterns: &mut BTreeMap<PatternId, Pattern>) {
    let mut numbers: HashMap<FormToken, u32> = HashMap::new();
    let mut number = |form: Form| -> Vec<u32> {
        let mut of = |token: &FormToken| {
            let next = numbers.len() as u32;
            *numbers.entry(token.clone()).or_insert(next)
        };
        form.tokens().iter().map(&mut of).collect()
    };
    let mut shapes: Vec<NumberedForms<'_>> = patterns
        .values()
        .filter_map(|pattern| {
            let (broken, fixed) = pattern.parse_forms()?;
            Some(NumberedForms { pattern, broken: number(broken), fixed: number(fixed) })
        })
        .collect();
    shapes.sort_by_key(|shape| (std::cmp::Reverse(shape.pattern.total_count().frequency), &shape.pattern.id));
    let mut leaders: HashMap<(PatternStance, EditKind, Kind), Vec<&NumberedForms<'_>>> = HashMap::new();
    let mut groups = Vec::with_capacity(shapes.len());
    for shape in &shapes {
        let NumberedForms { pattern, broken, fixed } = shape;
        let leaders = leaders.entry((pattern.stance, pattern.edit, pattern.kind)).or_default();
        let [broken, fixed] = [broken, fixed].map(|form| TokenPositions::new(form, numbers.len()));
        let leader = leaders.iter().find(|leader| broken.is_near(&leader.broken) && fixed.is_near(&leader.fixed));
        groups.push((pattern.id.clone(), leader.map(|leader| leader.pattern.id.clone())));
        if leader.is_none() {
            leaders.push(shape);
        }
    }
    for (id, group) in groups {
        if let Some(pattern) = patterns.get_mut(&id) {
            pattern.group = group;
        }
    }
}

/// Positions of each token in a form as a bit set. A form has at most as many tokens as a `u64` has bits.
struct TokenPositions {
    places: Vec<u64>,
    length: usize,
}

const _: () = assert!(MAX_TOKENS <= u64::BITS as usize);

impl TokenPositions {
    /// Builds the table. All `tokens` are below `count`.
    fn new(form: &[u32], count: usize) -> Self {
        let mut places = vec![0; count];
        for (at, token) in form.iter().enumerate() {
            places[*token as usize] |= 1 << at;
        }
        Self { places, length: form.len() }
    }

    fn is_near(&self, other: &[u32]) -> bool {
        self.is_within_distance(other, self.length.max(other.len()) / TOKENS_PER_EDIT)
    }

    /// Returns true if the edit distance (insert, delete, replace) to another form is at most `most`. Computes
    /// Levenshtein's distance column by column in the bits of a word, after G. Myers, "A fast bit-vector algorithm
    /// for approximate string matching based on dynamic programming", J. ACM 46 (3), 1999.
    fn is_within_distance(&self, other: &[u32], most: usize) -> bool {
        if self.length.abs_diff(other.len()) > most {
            return false;
        }
        let Some(last) = self.length.checked_sub(1) else { return true };
        // Bits of the rows at which the distance grows or falls within the column.
        let (mut grows, mut falls) = (u64::MAX, 0);
        let mut distance = self.length;
        for (at, token) in other.iter().enumerate() {
            let same = self.places[*token as usize];
            let down = same | falls;
            let across = ((same & grows).wrapping_add(grows) ^ grows) | same;
            let (up, less) = (falls | !(across | grows), grows & across);
            distance = distance + (up >> last & 1) as usize - (less >> last & 1) as usize;
            // Each remaining token reduces the distance by at most one.
            if distance > most + (other.len() - at - 1) {
                return false;
            }
            let (up, less) = (up << 1 | 1, less << 1);
            (grows, falls) = (less | !(down | up), up & down);
        }
        distance <= most
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;
    use crate::knowledge::test_support::sample_pattern;

    #[rstest]
    #[case(&[], &[], 0, true)]
    #[case(&[1, 2, 3], &[1, 2, 3], 0, true)]
    #[case(&[1, 2, 3], &[1, 9, 3], 0, false)]
    #[case(&[1, 2, 3], &[1, 9, 3], 1, true)]
    #[case(&[1, 2, 3], &[2, 3], 1, true)]
    #[case(&[1, 2, 3, 4], &[2, 3, 4, 5], 1, false)]
    #[case(&[1, 2, 3, 4], &[2, 3, 4, 5], 2, true)]
    fn distances(#[case] a: &[u32], #[case] b: &[u32], #[case] most: usize, #[case] expected: bool) {
        assert_eq!(TokenPositions::new(a, 10).is_within_distance(b, most), expected);
        assert_eq!(TokenPositions::new(b, 10).is_within_distance(a, most), expected);
    }

    /// Computes the distance with the full table, as in the textbook.
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
        fn bits_say_what_the_whole_table_says(
            a in prop::collection::vec(0..4_u32, 0..=MAX_TOKENS),
            b in prop::collection::vec(0..4_u32, 0..=MAX_TOKENS),
            few in 0..8_usize,
        ) {
            let distance = plainly(&a, &b);
            for most in [few, distance, distance.saturating_sub(1)] {
                prop_assert_eq!(TokenPositions::new(&a, 4).is_within_distance(&b, most), distance <= most);
            }
        }
    }

    #[test]
    fn the_one_that_was_seen_most_stands_for_similar_ones() {
        let near = |operator: &str| {
            sample_pattern(
                "go",
                &format!("if VARIABLE {operator} NUMBER && VARIABLE_2 != nil BODY"),
                "if VARIABLE <= NUMBER && VARIABLE_2 != nil BODY",
            )
        };
        let (mut most, less, other) = (near("<"), near(">"), sample_pattern("go", "VARIABLE", "VARIABLE_2"));
        most.counts.values_mut().for_each(|count| count.frequency = 9);
        let mut patterns: BTreeMap<_, _> = [&less, &other, &most].map(|one| (one.id.clone(), one.clone())).into();
        group_similar(&mut patterns);
        assert_eq!(patterns[&less.id].group.as_ref(), Some(&most.id));
        assert_eq!((&patterns[&most.id].group, &patterns[&other.id].group), (&None, &None));
        // After the other pattern is seen more often, it represents both.
        if let Some(less) = patterns.get_mut(&less.id) {
            less.counts.values_mut().for_each(|count| count.frequency = 10);
        }
        group_similar(&mut patterns);
        assert_eq!(patterns[&most.id].group.as_ref(), Some(&less.id));
        assert_eq!(patterns[&less.id].group, None);
    }
}
