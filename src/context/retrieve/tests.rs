//! Table tests of the ranking over small trees in memory.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use proptest::prelude::*;
use rstest::rstest;

use super::line_history::{FileCommit, compute_line_history, find_last_touch};
use super::masked_text::MaskedFile;
use super::task::{Focus, GivenFile, GivenFileHunk, RetrievalTask};
use super::weights::RankingWeights;
use super::{RankedFile, RankingInput, rank_files};
use crate::domain::LineRange;
use crate::git::Hunk;
use crate::index::document::Document;
use crate::index::document_store::SourceFile;
use crate::index::history::{History, PastCommit, PastFile, PathId, Touch};
use crate::index::vocabulary::Vocabulary;
use crate::index::words::{identifiers, split_identifier};

fn hunk(old_start: u32, old_lines: u32, new_start: u32, new_lines: u32) -> Hunk {
    Hunk { old_start, old_lines, new_start, new_lines }
}

/// Returns a change of one line of a file.
fn change(path: &str, line: u32, removed: &str, added: &str) -> GivenFile {
    let hunk =
        GivenFileHunk { range: hunk(line, 1, line, 1), removed: vec![removed.into()], added: vec![added.into()] };
    GivenFile { path: path.into(), touch: Touch::Modified, hunks: vec![hunk] }
}

fn ranked(files: &[(&str, &str)], history: &History, task: &RetrievalTask) -> Vec<RankedFile> {
    let mut vocabulary = Vocabulary::default();
    let texts: HashMap<&str, &str> = files.iter().copied().collect();
    let files: Vec<SourceFile> = files
        .iter()
        .map(|(path, text)| SourceFile {
            path: (*path).to_owned(),
            blob: String::new(),
            document: Arc::new(Document::read(text, &mut vocabulary)),
        })
        .collect();
    let before: Vec<usize> = (0..history.commits.len()).collect();
    let plain = |file: &SourceFile| {
        MaskedFile::from_text(&file.document, texts[file.path.as_str()], &|text: &str| text.len() / 4)
    };
    let told = |files: &[&SourceFile]| files.iter().map(|file| plain(file)).collect();
    let sources = RankingInput {
        files: &files,
        history,
        ancestors: &before,
        mask_files: &told,
        named: &HashSet::new(),
        wanted: &|_| true,
        imports: &|paths| vec![Vec::new(); paths.len()],
    };
    rank_files(task, &sources, RankingWeights::built_in(), &mut vocabulary)
}

/// Returns commits, newest first, each described by the files that it changed.
fn history(commits: &[&[&str]]) -> History {
    let mut history = History::default();
    for paths in commits {
        let files = paths
            .iter()
            .map(|path| PastFile {
                path: history.intern_path(path),
                touch: Touch::Modified,
                hunks: vec![hunk(1, 1, 1, 1)],
            })
            .collect();
        history.commits.push(PastCommit { files, words: Vec::new() });
    }
    history
}

const TREE: [(&str, &str); 7] = [
    ("lib/price.rs", "pub fn lookup_price(item: &str) -> u32 {\n    item.len() as u32\n}\n"),
    (
        "lib/store.rs",
        "use price;\n\npub fn total() -> u32 {\n    lookup_price(\"a\")\n}\n\npub fn other() -> u32 {\n    1\n}\n",
    ),
    ("lib/road.rs", "pub fn walk() -> u32 {\n    3\n}\n"),
    ("lib/hill.rs", "pub fn climb() -> u32 {\n    4\n}\n"),
    ("tests/price_test.rs", "fn works() {\n    assert!(true);\n}\n"),
    ("tests/road_test.rs", "fn walks() {\n    assert_eq!(walk(), 3);\n}\n"),
    ("doc/empty.rs", ""),
];

#[rstest]
#[case::a_use_of_a_name_that_goes(
    change("lib/price.rs", 1, "pub fn lookup_price(item: &str) -> u32 {", "pub fn price_of(item: &str) -> u32 {"),
    &[], "lib/store.rs")]
#[case::what_changed_together(
    change("lib/hill.rs", 2, "    4", "    5"),
    &["lib/price.rs lib/hill.rs", "lib/price.rs lib/hill.rs", "lib/price.rs lib/hill.rs", "lib/road.rs",
      "lib/store.rs", "lib/price.rs lib/hill.rs"], "lib/price.rs")]
#[case::the_test_of_it(change("lib/road.rs", 2, "    3", "    4"), &[], "tests/road_test.rs")]
fn the_first_file_is(#[case] given: GivenFile, #[case] commits: &[&str], #[case] expected: &str) {
    let given_path = given.path.clone();
    let commits: Vec<Vec<&str>> = commits.iter().map(|commit| commit.split(' ').collect()).collect();
    let commits: Vec<&[&str]> = commits.iter().map(Vec::as_slice).collect();
    let ranked = ranked(&TREE, &history(&commits), &RetrievalTask { given: vec![given], ..RetrievalTask::default() });
    assert_eq!(
        ranked[0].path,
        expected,
        "{:#?}",
        ranked.iter().map(|file| (&file.path, file.probability)).collect::<Vec<_>>()
    );
    assert!(ranked.iter().all(|file| file.path != given_path && file.path != "doc/empty.rs"));
}

#[test]
fn within_a_file_the_lines_with_the_name_lead() {
    let body: String = (0..30).map(|n| format!("pub fn step_{n}() -> u32 {{\n    {n}\n}}\n\n")).collect();
    let text = format!("{body}pub fn total() -> u32 {{\n    lookup_price(\"a\")\n}}\n\n{body}");
    let mut tree = TREE;
    tree[1].1 = &text;
    let given = change("lib/price.rs", 1, "pub fn lookup_price(item: &str) -> u32 {", "pub fn price_of(item: &str) {");
    let ranked = ranked(&tree, &History::default(), &RetrievalTask { given: vec![given], ..RetrievalTask::default() });
    let passages = ranked[0].passages.iter().enumerate();
    let (best, passage) = passages.max_by(|a, b| a.1.share.total_cmp(&b.1.share)).expect("passages");
    assert!(ranked[0].masked.texts.get(best).contains("lookup_price"), "{passage:?}");
    let all: f32 = ranked[0].passages.iter().map(|passage| passage.share).sum();
    assert!((all - 1.0).abs() < 1e-3, "{all}");
}

#[test]
fn a_place_in_focus_and_words_are_a_task_too() {
    let focus = Focus { path: "lib/price.rs".into(), line: Some(1) };
    let of_focus =
        ranked(&TREE, &History::default(), &RetrievalTask { focus: vec![focus], ..RetrievalTask::default() });
    assert_eq!(of_focus[0].path, "lib/store.rs");
    let task = RetrievalTask { text: "walk the road, see `lib/road.rs`".into(), ..RetrievalTask::default() };
    let of_text = ranked(&TREE, &History::default(), &task);
    assert!(of_text[..2].iter().any(|file| file.path == "lib/road.rs"), "{:?}", of_text[0].path);
}

#[test]
fn a_file_that_moved_keeps_its_past() {
    let mut past = history(&[&[], &["old/hill.rs", "lib/price.rs"], &["old/hill.rs", "lib/price.rs"]]);
    let (old, new) = (past.intern_path("old/hill.rs"), past.intern_path("lib/hill.rs"));
    let file = |path, touch| PastFile { path, touch, hunks: Vec::new() };
    past.commits[0].files = vec![file(old, Touch::Deleted), file(new, Touch::Added)];
    let mut seen = Vec::new();
    past.walk(&[0, 1, 2], |age, commit, moves| {
        seen.extend(commit.files.iter().map(|file| (age, moves.current_path(file.path))))
    });
    assert!(seen.contains(&(1, new)) && seen.contains(&(2, new)) && !seen.contains(&(1, old)));
}

#[test]
fn lines_are_followed_back_through_commits() {
    // The newest commit inserted two lines after line 1; the commit before changed the present line 5 (then line 3).
    let mut history = History::default();
    let path = history.intern_path("a");
    let file = |hunks| PastFile { path, touch: Touch::Modified, hunks };
    let (newest, before) = (file(vec![hunk(1, 0, 2, 2)]), file(vec![hunk(3, 1, 3, 1)]));
    let bearing = |file| FileCommit { file, size: 1, together: 0.0, alike: 0.0 };
    let past = compute_line_history(6, &[bearing(&newest), bearing(&before)]);
    let changed: Vec<bool> = past.iter().map(|line| line.latest > 0.0).collect();
    assert_eq!(changed, [false, true, true, false, true, false]);
    assert!(past[1].latest > past[4].latest);
    assert!(past[0].changed > 0.0, "a line beside an insertion has part in it");
}

#[rstest]
#[case("maxLine", &["max", "line"])]
#[case("HTTPServer", &["http", "server"])]
#[case("snake_case_2", &["snake", "case", "2"])]
#[case("__init__", &["init"])]
#[case("größeÄndern", &["größe", "ändern"])]
#[case("_", &["_"])]
fn identifiers_have_parts(#[case] identifier: &str, #[case] expected: &[&str]) {
    assert_eq!(split_identifier(identifier), expected);
}

#[test]
fn numbers_and_lines_of_data_are_no_words() {
    assert_eq!(identifiers("let x1 = 0xff + y_2.foo(b, 12);").collect::<Vec<_>>(), ["let", "x1", "y_2", "foo"]);
    assert_eq!(identifiers(&"word ".repeat(1_000)).count(), 0);
}

proptest! {
    #[test]
    fn passages_cover_every_line_once(text in "([a-z {}()]{0,12}\n){0,60}[a-z]{0,5}") {
        let document = Document::read(&text, &mut Vocabulary::default());
        let mut next = 0;
        for passage in &document.passages {
            prop_assert_eq!(passage.start, next);
            prop_assert!(passage.end > passage.start);
            next = passage.end;
        }
        prop_assert_eq!(next, document.line_count());
        let told = MaskedFile::from_text(&document, &text, &str::len);
        prop_assert_eq!(told.texts.all.as_ref(), text);
        prop_assert_eq!(told.texts.ends.len(), document.passages.len());
    }

    #[test]
    fn a_packed_document_is_the_same_as_one_that_is_read(
        texts in proptest::collection::vec("((fn|class|let|use) [a-cA-C_]{1,4}[ ({=]{0,2}
|[a-cA-C_ 0-9é]{0,9}
|
){0,20}", 1..5),
    ) {
        let (mut reading, mut unpacking) = (Vocabulary::default(), Vocabulary::default());
        for text in &texts {
            let read = Document::read(text, &mut reading);
            let unpacked = Document::unpack(&read.pack(&reading), &mut unpacking).expect("what was packed");
            prop_assert_eq!(unpacked.word_count(), read.word_count());
            prop_assert_eq!(&unpacked.counts, &read.counts);
            prop_assert_eq!(&unpacked.declarations, &read.declarations);
            prop_assert_eq!(&unpacked.imports, &read.imports);
            prop_assert_eq!(&unpacked.imported, &read.imported);
            prop_assert_eq!(&unpacked.passages, &read.passages);
            for line in 0..=read.line_count() {
                prop_assert_eq!(unpacked.line_words(line), read.line_words(line));
            }
            for (word, _) in &read.counts {
                prop_assert_eq!(unpacking.name(*word), reading.name(*word));
            }
        }
    }

    #[test]
    fn bytes_that_nobody_packed_are_no_document_or_a_sound_one(bytes in proptest::collection::vec(0u8..20, 0..60)) {
        if let Some(document) = Document::unpack(&bytes, &mut Vocabulary::default()) {
            let end = document.passages.last().map_or(0, |last| last.end);
            prop_assert_eq!(end, document.line_count());
            let words = (0..document.line_count() + 2).map(|line| document.line_words(line).len()).sum::<usize>();
            prop_assert!(words <= bytes.len(), "{} words in {} bytes", words, bytes.len());
        }
    }

    #[test]
    fn no_figure_is_ever_nan(
        texts in proptest::collection::vec("(fn [a-c]{2}\\(\\) \\{\n|use [a-c]{2};\n|[a-c]{2} [a-c]{2}\n|\n){0,20}", 1..6),
        removed in "[a-c]{0,3} [a-c]{2}",
        line in 0u32..30,
        commits in proptest::collection::vec(proptest::collection::vec(0usize..6, 0..4), 0..8),
    ) {
        let names: Vec<String> = (0..6).map(|number| format!("src/f{number}.rs")).collect();
        let files: Vec<(&str, &str)> = names.iter().map(String::as_str).zip(texts.iter().map(String::as_str)).collect();
        let commits: Vec<Vec<&str>> =
            commits.iter().map(|commit| commit.iter().map(|at| names[*at].as_str()).collect()).collect();
        let commits: Vec<&[&str]> = commits.iter().map(Vec::as_slice).collect();
        let task = RetrievalTask { given: vec![change("src/f0.rs", line, &removed, "x")], ..RetrievalTask::default() };
        for file in ranked(&files, &history(&commits), &task) {
            prop_assert!((0.0..=1.0).contains(&file.probability));
            prop_assert!(file.factors.values().iter().all(|figure| figure.is_finite()), "{:?}", file.factors);
            for passage in &file.passages {
                prop_assert!(passage.share.is_finite());
                prop_assert!(passage.factors.values().iter().all(|figure| figure.is_finite()), "{:?}", passage.factors);
            }
        }
    }
}

#[rstest]
#[case::the_newest_that_touched_them("10,1,10,1; 11,1,11,1", Some(0))]
#[case::one_beside_them("9,1,9,1 13,1,13,1; 11,1,11,1", Some(1))]
#[case::lines_that_moved("2,0,3,5; 5,1,5,1", Some(1))]
#[case::lines_that_moved_away("2,0,3,5; 10,1,10,1", None)]
#[case::lines_gone_between_them("11,2,10,0", Some(0))]
#[case::lines_gone_beside_them("10,2,9,0 15,1,12,0", None)]
#[case::lines_gone_before_them("3,4,2,0; 14,1,14,1", Some(1))]
#[case::behind_what_is_not_known("; 11,1,11,1", None)]
#[case::never("1,1,1,1", None)]
fn the_last_to_touch_lines_10_to_12_is(#[case] commits: &str, #[case] expected: Option<usize>) {
    let hunk = |numbers: &str| match numbers
        .split(',')
        .map(|number| number.parse().expect("a number"))
        .collect::<Vec<_>>()[..]
    {
        [a, b, c, d] => hunk(a, b, c, d),
        _ => panic!("no hunk: {numbers}"),
    };
    let file = |hunks: &str| {
        let hunks = hunks.split_whitespace().map(hunk).collect();
        PastFile { path: PathId(0), touch: Touch::Modified, hunks }
    };
    let commits: Vec<PastFile> = commits.split(';').map(file).collect();
    let lines = LineRange::new(10, 12);
    assert_eq!(find_last_touch(lines, commits.iter()), expected);
    let added = PastFile { touch: Touch::Added, hunks: Vec::new(), path: PathId(0) };
    assert_eq!(find_last_touch(lines, [added].iter().chain(&commits)), Some(0), "a file is as old as it is");
}
