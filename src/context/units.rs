//! What code is sent in: declarations as they are, and the passages between them.
//!
//! Invariants: the units of a file are all of its lines in order, each once; of a declaration that is not too long all
//! lines are in one unit.

use super::chunk::{ChunkKind, Declaration, MOST_TOKENS};
use super::pack::SectionKind;
use super::retrieve::document::Passage;
use super::retrieve::told::Texts;
use crate::domain::LineRange;

/// Under a small budget a declaration is too long that takes more than this part of it: a quarter.
const BUDGET_PART: u32 = 4;

/// Lines that are sent together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unit {
    pub lines: LineRange,
    /// Of a declaration what it is, where a section says so.
    pub kind: Option<SectionKind>,
}

/// Declarations of more tokens come in parts.
pub fn most_tokens(budget: u32) -> u32 {
    MOST_TOKENS.min(budget / BUDGET_PART)
}

/// The units of a file that is in passages, `tokens` of each, and has these texts. What is declared in a passage stays in
/// it; of declarations in each other the largest that is not too long is one unit.
pub fn units(
    passages: &[Passage],
    tokens: &[u32],
    texts: &Texts,
    declared: &[Declaration],
    most_tokens: u32,
) -> Vec<Unit> {
    let wholes = wholes(passages, tokens, declared, most_tokens);
    let mut wholes = wholes.iter().peekable();
    let mut units: Vec<Unit> = Vec::with_capacity(passages.len());
    let mut line = 1;
    for passage in passages {
        while line <= passage.end {
            if let Some(whole) = wholes.next_if(|whole| whole.lines.start <= line) {
                units.push(*whole);
                line = whole.lines.end + 1;
                continue;
            }
            let end = wholes.peek().map_or(passage.end, |whole| passage.end.min(whole.lines.start - 1));
            // Blank lines and closing brackets belong to what is before them.
            if line > passage.start + 1
                && let Some(last) = units.last_mut()
            {
                while line <= end && says_nothing(texts, passages, line) {
                    last.lines = LineRange::new(last.lines.start, line);
                    line += 1;
                }
            }
            if line <= end {
                units.push(Unit { lines: LineRange::new(line, end), kind: None });
            }
            line = end + 1;
        }
    }
    units
}

fn says_nothing(texts: &Texts, passages: &[Passage], line: u32) -> bool {
    let place = texts.lines(passages, LineRange::new(line, line)).0;
    !texts.all.get(place).unwrap_or_default().contains(char::is_alphanumeric)
}

/// The declarations that are units, by line: those that are not too long and in more than one passage.
fn wholes(passages: &[Passage], tokens: &[u32], declared: &[Declaration], most_tokens: u32) -> Vec<Unit> {
    let mut sums = Vec::with_capacity(passages.len() + 1);
    sums.push(0u64);
    for tokens in tokens {
        sums.push(sums.last().copied().unwrap_or(0) + u64::from(*tokens));
    }
    let end_of_file = passages.last().map_or(0, |last| last.end);
    let mut wholes: Vec<Unit> = Vec::new();
    let ordered = in_order(declared);
    for one in &ordered {
        let lines = one.lines;
        let is_free = wholes.last().is_none_or(|last| last.lines.end < lines.start);
        if !is_free || lines.start == 0 || lines.start > lines.end || lines.end > end_of_file {
            continue;
        }
        let first = passages.partition_point(|passage| passage.end < lines.start);
        let last = passages.partition_point(|passage| passage.end < lines.end);
        let of_passages = |from: usize, to: usize| {
            let sum = |at: usize| sums.get(at).copied().unwrap_or(u64::MAX);
            sum(to).saturating_sub(sum(from))
        };
        // Of what is begun or ended in a passage, all of that passage.
        if last > first && of_passages(first, last + 1) <= u64::from(most_tokens) {
            wholes.push(Unit { lines, kind: kind(one, &ordered) });
        }
    }
    wholes
}

/// Declarations by their first line, those in others behind these.
pub fn in_order(declared: &[Declaration]) -> Vec<&Declaration> {
    let mut ordered: Vec<&Declaration> = declared.iter().collect();
    ordered.sort_by_key(|one| (one.lines.start, std::cmp::Reverse(one.lines.end)));
    ordered
}

/// What a declaration is as a section, of those of its file that are `ordered` as [`in_order`]. A class that has functions is
/// code, and what is switched off with types is not.
pub fn kind(one: &Declaration, ordered: &[&Declaration]) -> Option<SectionKind> {
    let is_function = |other: &&Declaration| other.kind == ChunkKind::Function && one.lines.holds(other.lines);
    let within = || {
        let first = ordered.partition_point(|other| other.lines.start < one.lines.start);
        ordered.iter().skip(first).take_while(|other| other.lines.start <= one.lines.end)
    };
    match one.kind {
        ChunkKind::Function => Some(SectionKind::Function),
        ChunkKind::Test => Some(SectionKind::Test),
        ChunkKind::Class if within().any(is_function) => Some(SectionKind::Function),
        ChunkKind::Class | ChunkKind::Interface | ChunkKind::Type => Some(SectionKind::Type),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    fn declaration(kind: ChunkKind, start: u32, end: u32) -> Declaration {
        let lines = LineRange::new(start, end);
        Declaration { kind, name: String::new(), scope: String::new(), lines, head: lines }
    }

    /// Passages that end so, each line of a token.
    fn cut(ends: &[u32], blank: &[u32], declared: &[Declaration], most: u32) -> Vec<(u32, u32, Option<SectionKind>)> {
        let mut start = 0;
        let passages: Vec<Passage> =
            ends.iter().map(|end| Passage { start: std::mem::replace(&mut start, *end), end: *end }).collect();
        let line = |line: u32| if blank.contains(&line) { "}\n".to_owned() } else { format!("line {line}\n") };
        let said: Vec<String> =
            passages.iter().map(|place| (place.start + 1..=place.end).map(line).collect()).collect();
        let texts = Texts::of(said.iter().map(String::as_str), &|text| text.lines().count());
        let units = units(&passages, &texts.tokens, &texts, declared, most);
        units.iter().map(|unit| (unit.lines.start, unit.lines.end, unit.kind)).collect()
    }

    const FUNCTION: Option<SectionKind> = Some(SectionKind::Function);
    const TYPE: Option<SectionKind> = Some(SectionKind::Type);

    #[rstest]
    #[case::nothing_declared(&[], 100, &[(1, 8, None), (9, 16, None), (17, 20, None)])]
    #[case::in_a_passage(&[(ChunkKind::Function, 2, 6)], 100, &[(1, 8, None), (9, 16, None), (17, 20, None)])]
    #[case::over_passages(&[(ChunkKind::Function, 4, 11)], 100, &[(1, 3, None), (4, 12, FUNCTION), (13, 16, None), (17, 20, None)])]
    #[case::too_long(&[(ChunkKind::Function, 4, 11)], 10, &[(1, 8, None), (9, 16, None), (17, 20, None)])]
    #[case::the_largest(&[(ChunkKind::Class, 1, 18), (ChunkKind::Function, 3, 10)], 100, &[(1, 18, FUNCTION), (19, 20, None)])]
    #[case::what_is_in_one_too_long(&[(ChunkKind::Class, 1, 18), (ChunkKind::Function, 3, 10)], 16, &[(1, 2, None), (3, 10, FUNCTION), (11, 16, None), (17, 20, None)])]
    #[case::a_type(&[(ChunkKind::Type, 7, 9)], 100, &[(1, 6, None), (7, 9, TYPE), (10, 16, None), (17, 20, None)])]
    #[case::beyond_the_file(&[(ChunkKind::Type, 7, 90)], 100, &[(1, 8, None), (9, 16, None), (17, 20, None)])]
    #[case::one_after_the_other(&[(ChunkKind::Function, 1, 9), (ChunkKind::Test, 10, 20)], 100, &[(1, 9, FUNCTION), (10, 20, Some(SectionKind::Test))])]
    fn declarations_are_whole(
        #[case] declared: &[(ChunkKind, u32, u32)],
        #[case] most: u32,
        #[case] expected: &[(u32, u32, Option<SectionKind>)],
    ) {
        let declared: Vec<Declaration> =
            declared.iter().map(|(kind, start, end)| declaration(*kind, *start, *end)).collect();
        assert_eq!(cut(&[8, 16, 20], &[12], &declared, most), expected);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn every_line_is_in_one_unit_and_no_short_declaration_in_two(
            lengths in proptest::collection::vec(1u32..9, 1..12),
            declared in proptest::collection::vec((1u32..60, 0u32..30), 0..8),
            blank in proptest::collection::vec(1u32..60, 0..20),
            most in 0u32..60,
        ) {
            let ends: Vec<u32> = lengths.iter().scan(0, |end, length| { *end += length; Some(*end) }).collect();
            let declared: Vec<Declaration> = declared
                .iter()
                .map(|(start, length)| declaration(ChunkKind::Function, *start, start + length))
                .collect();
            let units = cut(&ends, &blank, &declared, most);
            let mut next = 1;
            for (start, end, _) in &units {
                prop_assert!(*start == next && end >= start);
                next = end + 1;
            }
            prop_assert_eq!(next, ends.last().copied().unwrap_or(0) + 1);
            // Of nested ones the largest; those that cross each other are none of a syntax tree's.
            let crosses = |one: &Declaration| declared.iter().any(|other| {
                one.lines.overlaps(other.lines) && !one.lines.holds(other.lines) && !other.lines.holds(one.lines)
            });
            if declared.iter().any(crosses) {
                return Ok(());
            }
            for one in declared.iter().filter(|one| one.lines.end < next) {
                let tokens: u32 = lengths
                    .iter()
                    .zip(&ends)
                    .filter(|(length, end)| LineRange::new(*end - *length + 1, **end).overlaps(one.lines))
                    .map(|(length, _)| *length)
                    .sum();
                let is_whole = units.iter().any(|(start, end, _)| LineRange::new(*start, *end).holds(one.lines));
                prop_assert!(is_whole || tokens > most, "{:?} in {:?}", one.lines, units);
            }
        }
    }
}
