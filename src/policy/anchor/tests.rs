//! Compares random edits of random files with a brute-force answer. Every line has a number that moves with it.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::*;

/// Returns the edits between two sequences.
pub(super) fn edits<T: Ord + std::hash::Hash + Eq>(old: &[T], new: &[T]) -> Vec<AnchorEdit> {
    let edit = |old_index: usize, old_lines: usize, new_index: usize, new_lines: usize| AnchorEdit {
        old_start: (old_index + usize::from(old_lines > 0)) as u32,
        old_lines: old_lines as u32,
        new_start: (new_index + usize::from(new_lines > 0)) as u32,
        new_lines: new_lines as u32,
    };
    let mut edits: Vec<AnchorEdit> = Vec::new();
    for op in capture_diff_slices(Algorithm::Myers, old, new) {
        let next = match op {
            DiffOp::Equal { .. } => continue,
            DiffOp::Delete { old_index, old_len, new_index } => (old_index, old_len, new_index, 0),
            DiffOp::Insert { old_index, new_index, new_len } => (old_index, 0, new_index, new_len),
            DiffOp::Replace { old_index, old_len, new_index, new_len } => (old_index, old_len, new_index, new_len),
        };
        edits.push(edit(next.0, next.1, next.2, next.3));
    }
    edits
}

/// A line: its number, and whether its text is unique.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct TaggedLine {
    id: u32,
    filler: Option<u8>,
}

impl TaggedLine {
    fn text(self) -> String {
        match self.filler {
            None => format!("    value_{} = compute(input_{})", self.id, self.id),
            Some(0) => String::new(),
            Some(1) => "}".to_owned(),
            Some(_) => "return result".to_owned(),
        }
    }
}

type FilesByNumber = BTreeMap<usize, Vec<TaggedLine>>;

#[derive(Debug, Clone)]
enum EditOp {
    Insert { file: usize, at: usize, count: usize },
    Delete { file: usize, at: usize, count: usize },
    Replace { file: usize, at: usize, count: usize, by: usize },
    Move { from: usize, at: usize, count: usize, to: usize, dest: usize },
}

impl EditOp {
    fn moves(&self) -> bool {
        matches!(self, EditOp::Move { .. })
    }
}

/// Numbered lines of files under edit.
#[derive(Debug, Clone)]
struct EditBench {
    files: FilesByNumber,
    next: u32,
    fillers: bool,
}

impl EditBench {
    fn new_line(&mut self) -> TaggedLine {
        self.next += 1;
        let filler = (self.fillers && self.next.is_multiple_of(3)).then_some((self.next % 4) as u8);
        TaggedLine { id: self.next, filler }
    }

    fn lines(&mut self, count: usize) -> Vec<TaggedLine> {
        (0..count).map(|_| self.new_line()).collect()
    }

    fn apply(&mut self, op: &EditOp) {
        let cut = |lines: &mut Vec<TaggedLine>, at: usize, count: usize| -> Vec<TaggedLine> {
            let at = at.min(lines.len());
            let end = (at + count).min(lines.len());
            lines.drain(at..end).collect()
        };
        match *op {
            EditOp::Insert { file, at, count } => {
                let new = self.lines(count);
                let lines = self.files.entry(file).or_default();
                let at = at.min(lines.len());
                lines.splice(at..at, new);
            }
            EditOp::Delete { file, at, count } => drop(cut(self.files.entry(file).or_default(), at, count)),
            EditOp::Replace { file, at, count, by } => {
                let new = self.lines(by);
                let lines = self.files.entry(file).or_default();
                let at = at.min(lines.len());
                let end = (at + count).min(lines.len());
                lines.splice(at..end, new);
            }
            EditOp::Move { from, at, count, to, dest } => {
                let block = cut(self.files.entry(from).or_default(), at, count);
                let lines = self.files.entry(to).or_default();
                let dest = dest.min(lines.len());
                lines.splice(dest..dest, block);
            }
        }
    }
}

fn op() -> impl Strategy<Value = EditOp> {
    let (file, at, count) = (0..3_usize, 0..40_usize, 1..8_usize);
    prop_oneof![
        (file.clone(), at.clone(), count.clone()).prop_map(|(file, at, count)| EditOp::Insert { file, at, count }),
        (file.clone(), at.clone(), count.clone()).prop_map(|(file, at, count)| EditOp::Delete { file, at, count }),
        (file.clone(), at.clone(), count.clone(), 1..8_usize).prop_map(|(file, at, count, by)| EditOp::Replace {
            file,
            at,
            count,
            by
        }),
        (file.clone(), at.clone(), 2..14_usize, file, at).prop_map(|(from, at, count, to, dest)| EditOp::Move {
            from,
            at,
            count,
            to,
            dest
        }),
    ]
}

/// One test of the mapping: files before and after, renamed and removed files, and an anchor.
#[derive(Debug, Clone)]
struct AnchorCase {
    before: FilesByNumber,
    after: FilesByNumber,
    ops: Vec<EditOp>,
    /// Renamed files, and files that were removed with their content.
    renamed: Vec<usize>,
    gone: Vec<usize>,
    file: usize,
    anchor: LineRange,
}

fn case(fillers: bool) -> impl Strategy<Value = AnchorCase> {
    let sizes = prop::collection::vec(4..40_usize, 3);
    let ops = prop::collection::vec(op(), 1..6);
    let fate = prop::collection::vec(0..6_u8, 3);
    (sizes, ops, fate, 0..3_usize, 0..40_usize, 1..6_usize).prop_map(move |(sizes, ops, fate, file, first, count)| {
        let mut bench = EditBench { files: FilesByNumber::new(), next: 0, fillers };
        for (file, size) in sizes.iter().enumerate() {
            let lines = bench.lines(*size);
            bench.files.insert(file, lines);
        }
        let before = bench.files.clone();
        for op in &ops {
            bench.apply(op);
        }
        let pick = |wanted: u8| (0..3).filter(|&file| fate[file] == wanted).collect::<Vec<_>>();
        let (renamed, gone) = (pick(0), pick(1));
        let mut after = bench.files;
        after.retain(|file, _| !gone.contains(file));
        let len = before[&file].len();
        let first = first % len;
        let anchor = LineRange::new(first as u32 + 1, (first + count).min(len) as u32);
        AnchorCase { before, after, ops, renamed, gone, file, anchor }
    })
}

impl AnchorCase {
    fn name(&self, file: usize) -> String {
        if self.renamed.contains(&file) { format!("new_{file}") } else { format!("f_{file}") }
    }

    fn code(lines: &[TaggedLine]) -> HashedLines {
        HashedLines::from_text(lines.iter().map(|line| line.text() + "\n").collect::<String>().as_bytes())
    }

    fn line_texts(lines: &[TaggedLine]) -> Vec<String> {
        lines.iter().map(|line| line.text()).collect()
    }

    fn locate(&self) -> AnchorLocation {
        let old = &self.before[&self.file];
        let mut added = AddedLines::default();
        for (file, lines) in &self.after {
            let edits = edits(&Self::line_texts(&self.before[file]), &Self::line_texts(lines));
            added.add(&self.name(*file), Arc::new(Self::code(lines)), edits.iter().filter_map(AnchorEdit::added_lines));
        }
        let now = self.after.get(&self.file);
        let code = now.map(|lines| Self::code(lines));
        let edits = now.map(|lines| edits(&Self::line_texts(old), &Self::line_texts(lines))).unwrap_or_default();
        let name = self.name(self.file);
        let now = code.as_ref().map(|code| CurrentFile { path: &name, code, edits: &edits });
        locate_anchor(&Self::code(old), &format!("f_{}", self.file), self.anchor, now, || Some(&added))
            .expect("lines of the file")
    }

    fn anchored(&self) -> &[TaggedLine] {
        &self.before[&self.file][self.anchor.start as usize - 1..self.anchor.end as usize]
    }

    /// Returns the current file and number of a line.
    fn current_position(&self, line: TaggedLine) -> Option<(usize, u32)> {
        self.after.iter().find_map(|(file, lines)| {
            lines.iter().position(|other| other.id == line.id).map(|at| (*file, at as u32 + 1))
        })
    }

    /// Returns the anchored lines if they are still in one piece.
    fn expected_whole(&self) -> Option<AnchorLocation> {
        let places: Vec<_> = self.anchored().iter().map(|line| self.current_position(*line)).collect::<Option<_>>()?;
        let (file, first) = *places.first()?;
        let together = places.iter().enumerate().all(|(index, place)| *place == (file, first + index as u32));
        let lines = LineRange::new(first, first + places.len() as u32 - 1);
        together.then(|| AnchorLocation::Unchanged { path: self.name(file), lines })
    }

    /// Returns the first and last line that may belong to the anchor if nothing was moved: the lines between its
    /// nearest remaining neighbours. The second is less than the first if there are none.
    fn gap(&self) -> (u32, u32) {
        let old = &self.before[&self.file];
        let here = |line: &TaggedLine| self.current_position(*line).map(|(_, line)| line);
        let above = old[..self.anchor.start as usize - 1].iter().rev().find_map(here).unwrap_or(0);
        let below = old[self.anchor.end as usize..].iter().find_map(here);
        (above + 1, below.unwrap_or(self.after[&self.file].len() as u32 + 1) - 1)
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2_000,
        failure_persistence: Some(Box::new(FileFailurePersistence::SourceParallel("tests/proptest-regressions"))),
        ..ProptestConfig::default()
    })]

    #[test]
    fn anchors_are_where_the_numbers_of_their_lines_are(case in case(false)) {
        let found = case.locate();
        if let Some(whole) = case.expected_whole() {
            prop_assert_eq!(found, whole);
            return Ok(());
        }
        prop_assert!(!matches!(found, AnchorLocation::Unchanged { .. }), "{:?}", found);
        if case.ops.iter().any(EditOp::moves) {
            return Ok(());
        }
        let survivors: Vec<u32> = case.anchored().iter().filter_map(|line| case.current_position(*line)).map(|(_, line)| line).collect();
        if case.gone.contains(&case.file) {
            prop_assert_eq!(found, AnchorLocation::FileGone);
            return Ok(());
        }
        let (first, last) = case.gap();
        match found {
            AnchorLocation::Deleted { path, after } => {
                prop_assert_eq!((path, after, first > last), (case.name(case.file), first - 1, true));
            }
            AnchorLocation::Changed { path, lines } => {
                prop_assert_eq!(path, case.name(case.file));
                prop_assert!(first <= lines.start && lines.end <= last, "{:?} is not within {}-{}", lines, first, last);
                prop_assert!(survivors.iter().all(|line| (lines.start..=lines.end).contains(line)), "{:?}", survivors);
            }
            other => prop_assert!(false, "{:?}", other),
        }
    }

    #[test]
    fn what_is_called_unchanged_is_the_same_code(case in case(true)) {
        let old = AnchorCase::code(&case.before[&case.file]);
        match case.locate() {
            AnchorLocation::Unchanged { path, lines } => {
                let (file, _) = case.after.iter().find(|(file, _)| case.name(**file) == path).expect("a file that is there");
                prop_assert!(old.is_same(case.anchor, &AnchorCase::code(&case.after[file]), lines));
            }
            AnchorLocation::Changed { path, lines } => {
                let (_, after) = case.after.iter().find(|(file, _)| case.name(**file) == path).expect("a file that is there");
                prop_assert!(lines.start >= 1 && lines.end as usize <= after.len());
            }
            AnchorLocation::Deleted { path, after } => {
                let (_, lines) = case.after.iter().find(|(file, _)| case.name(**file) == path).expect("a file that is there");
                prop_assert!(after as usize <= lines.len());
            }
            AnchorLocation::FileGone => prop_assert!(case.gone.contains(&case.file)),
        }
    }
}

#[test]
fn what_cannot_be_looked_through_is_not_guessed() {
    let old = HashedLines::from_text(b"first line here\nsecond line here\n");
    let nothing = AddedLines::default();
    let gone = |added| locate_anchor(&old, "a", LineRange::new(1, 1), None, || added);
    assert_eq!((gone(None), gone(Some(&nothing))), (None, Some(AnchorLocation::FileGone)));
    for (first, last) in [(0, 1), (3, 3), (9, 12)] {
        assert_eq!(
            locate_anchor(&old, "a", LineRange { start: first, end: last }, None, || None),
            None,
            "{first}-{last}"
        );
    }
}

#[test]
fn code_that_says_little_is_known_by_what_is_around_it() {
    let body = "def load(path):\n    try:\n        return parse(path)\n    except:\n        pass\n";
    let tail = "    except:\n        pass\n    return finish(everything, at_last)\n";
    let added = |text: &str| {
        let (mut added, code) = (AddedLines::default(), Arc::new(HashedLines::from_text(text.as_bytes())));
        let all = LineRange::new(1, code.len());
        added.add("b", code, [all]);
        added
    };
    for (old, lines, new, expected) in [
        (body.to_owned(), (4, 5), format!("# moved\n\n{body}"), Some((6, 7))),
        (format!("x = 1\n{tail}"), (2, 3), format!("y = 2\n{tail}"), Some((2, 3))),
        (body.to_owned(), (4, 5), "    except:\n        pass\n".repeat(3), None),
        ("}\n".to_owned(), (1, 1), "}\n}\n".to_owned(), None),
        ("\n\n".to_owned(), (1, 2), "\n".to_owned(), None),
    ] {
        let (old, added) = (HashedLines::from_text(old.as_bytes()), added(&new));
        let found = locate_anchor(&old, "a", LineRange::new(lines.0, lines.1), None, || Some(&added));
        let expected = expected.map_or(AnchorLocation::FileGone, |(start, end)| AnchorLocation::Unchanged {
            path: "b".to_owned(),
            lines: LineRange::new(start, end),
        });
        assert_eq!(found, Some(expected), "{new}");
    }
}

#[test]
fn code_of_which_most_stayed_was_edited_and_code_of_which_most_went_has_moved() {
    let block =
        ["def both():", "    one = compute_the_first()", "    two = compute_the_second()", "    return one + two"];
    let text = |lines: &[&str]| HashedLines::from_text((lines.join("\n") + "\n").as_bytes());
    let old = text(&block);
    let mut elsewhere = AddedLines::default();
    elsewhere.add("b", Arc::new(old.clone()), [LineRange::new(1, 4)]);
    for (now, expected) in [
        (&["def both():", "    one = nothing()", "    two = compute_the_second()", "    return one + two"][..], "a"),
        (&["def other():", "    return nothing", "    return one + two"][..], "b"),
    ] {
        let (code, edits) = (text(now), edits(&block, now));
        let found = locate_anchor(
            &old,
            "a",
            LineRange::new(1, 4),
            Some(CurrentFile { path: "a", code: &code, edits: &edits }),
            || Some(&elsewhere),
        );
        let found = found.expect("lines of the file");
        assert_eq!(found.place().map(|(path, _)| path), Some(expected), "{found:?}");
        assert_eq!(matches!(found, AnchorLocation::Unchanged { .. }), expected == "b", "{found:?}");
    }
}
