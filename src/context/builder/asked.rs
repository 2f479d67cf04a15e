//! Tests that requested options are applied and that omissions are reported.

use super::select_step::FOCUS_BUDGET_DIVISOR;
use super::*;
use crate::context::pack::{ContextSection, Need};
use crate::context::retrieve::task::Focus;
use crate::context::retrieve::unified_diff::parse_unified_diff;
use crate::domain::LineRange;
use crate::tokens::count_tokens;

/// A repository with one commit.
struct ContextTestRepo {
    _folder: tempfile::TempDir,
    repo: Repo,
    tip: String,
}

impl ContextTestRepo {
    fn from_files(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let git = git2::Repository::init_bare(folder.path()).expect("a repository");
        let mut index = git.index().expect("an index");
        for (path, text) in files {
            let zero = git2::IndexTime::new(0, 0);
            let entry = git2::IndexEntry {
                ctime: zero,
                mtime: zero,
                dev: 0,
                ino: 0,
                mode: 0o100_644,
                uid: 0,
                gid: 0,
                file_size: 0,
                id: git2::Oid::ZERO_SHA1,
                flags: 0,
                flags_extended: 0,
                path: path.as_bytes().to_vec(),
            };
            index.add_frombuffer(&entry, text.as_bytes()).expect("an entry");
        }
        let tree = git.find_tree(index.write_tree().expect("a tree")).expect("the tree");
        let who = git2::Signature::new("a", "a@example.org", &git2::Time::new(0, 0)).expect("a name");
        let tip = git.commit(None, &who, &who, "a", &tree, &[]).expect("a commit").to_string();
        Self { repo: Repo::discover(folder.path()).expect("a repository"), _folder: folder, tip }
    }

    fn build_context(
        &self,
        task: RetrievalTask,
        budget: u32,
        options: ContextOptions,
        front: Vec<ContextPiece>,
    ) -> PackedContext {
        let question = ContextQuery {
            tree: &self.tip,
            history: &self.tip,
            task,
            leading_pieces: front,
            context_lines: None,
            quoted_documents: &[],
            budget,
            encoding: Encoding::O200kBase,
            options,
            folder: None,
            index: None,
            meaning: None,
            cancelled: &|| false,
            time_left: READ_EVERYTHING,
        };
        build_context(&self.repo, question).expect("a repository").expect("a context")
    }
}

fn focus(path: &str, line: u32) -> RetrievalTask {
    RetrievalTask { focus: vec![Focus { path: path.to_owned(), line: Some(line) }], ..RetrievalTask::default() }
}

fn in_focus(packed: &PackedContext) -> Vec<&ContextSection> {
    packed.sections.iter().filter(|section| section.kind == SectionKind::Focus).collect()
}

#[test]
fn a_focus_on_what_a_program_wrote_or_on_long_lines_is_told_in_its_part_of_the_budget() {
    let made = format!("// @generated\n{}", "fn made() {}\n".repeat(9));
    let long = "words of a line ".repeat(100) + "\n";
    let wide = "[1, 2, 3], ".repeat(9_000);
    let sample = ContextTestRepo::from_files(&[("made.rs", &made), ("long.md", &long.repeat(8)), ("wide.json", &wide)]);
    for (path, line) in [("made.rs", 3), ("long.md", 4), ("wide.json", 1)] {
        let packed = sample.build_context(focus(path, line), 8_000, ContextOptions::default(), Vec::new());
        let [section] = in_focus(&packed)[..] else { panic!("{path}: {packed:#?}") };
        let lines = section.lines.expect("of a file");
        assert!(lines.start <= line && line <= lines.end && section.path == path, "{path}: {lines:?}");
        // The piece with its title and fences.
        assert!(section.tokens <= 8_000 / FOCUS_BUDGET_DIVISOR + 30, "{path}: {}", section.tokens);
        assert_eq!(packed.notes, Vec::<String>::new(), "{path}");
    }
}

#[test]
fn a_focus_that_has_no_room_is_said() {
    let sample = ContextTestRepo::from_files(&[("a.rs", "fn a() {}\n")]);
    let front = standalone_piece(SectionKind::Rules, Need::Must, "rule ".repeat(95), "the rules");
    let packed = sample.build_context(focus("a.rs", 1), 100, ContextOptions::default(), vec![front]);
    assert_eq!(in_focus(&packed).len(), 0, "{packed:#?}");
    assert_eq!(packed.notes, ["nothing of a.rs is in focus: the budget has no room for it"]);
}

#[test]
fn of_a_long_declaration_that_is_named_the_head_is_told_however_small_the_budget_is() {
    let steps: String = (0..140).map(|number| format!("    road.step_{number}(road, {number});\n")).collect();
    let walk = format!("/// Walks.\nfn long_walk(road: &Road) {{\n{steps}}}\n");
    let sample = ContextTestRepo::from_files(&[("a.rs", "fn a() {}\n"), ("far/walk.rs", &walk)]);
    let task = RetrievalTask { text: "what `long_walk` does".to_owned(), ..focus("a.rs", 1) };
    let named = |budget: u32| {
        let front = standalone_piece(SectionKind::Rules, Need::Must, "rule ".repeat(budget as usize / 2), "the rules");
        let packed = sample.build_context(task.clone(), budget, ContextOptions::default(), vec![front]);
        let is_of_it = |section: &&ContextSection| section.path == "far/walk.rs" && section.lines.is_some();
        packed.sections.iter().find(is_of_it).map(|section| (section.lines, section.explanation.reason.clone()))
    };
    let (lines, reason) = named(12_000).expect("the declaration");
    assert_eq!(lines, Some(LineRange::new(1, 143)));
    assert!(reason.starts_with("the task names it"), "{reason}");
    // The declaration is more than a quarter of the budget.
    let (lines, reason) = named(3_000).expect("its head");
    assert!(lines.is_some_and(|lines| lines.contains(LineRange::new(2, 2))), "{lines:?}");
    assert!(reason.starts_with("the task names it"), "{reason}");
}

#[test]
fn a_file_whose_code_is_filtered_away_is_not_told_in_short() {
    let steps = "    lookup_price(1) + lookup_price(2);\n".repeat(60);
    let user = format!("use price::lookup_price;\n\nfn total() -> u32 {{\n{steps}}}\n");
    let sample = ContextTestRepo::from_files(&[
        ("price.rs", "pub fn lookup_price(item: u32) -> u32 {\n    item\n}\n"),
        ("total.rs", &user),
    ]);
    let diff = "--- a/price.rs\n+++ b/price.rs\n@@ -1 +1 @@\n-pub fn lookup_price(item: u32) -> u32 {\n+pub fn lookup_price(item: u64) -> u32 {\n";
    let task = || RetrievalTask { given: parse_unified_diff(diff), ..RetrievalTask::default() };
    let kinds = |options: ContextOptions| {
        let packed = sample.build_context(task(), 20_000, options, Vec::new());
        let of_it = packed.sections.iter().filter(|section| section.path == "total.rs");
        let kinds: Vec<SectionKind> = of_it.map(|section| section.kind).collect();
        let left = packed.left_out.iter().filter(|left| left.kind == SectionKind::Summary);
        (kinds, left.map(|left| left.path.clone()).collect::<Vec<_>>())
    };
    // The code is long enough for a summary. If the code itself is sent, the summary is left out.
    let (all, summaries) = kinds(ContextOptions::default());
    assert!(!all.is_empty() && !all.contains(&SectionKind::Summary), "{all:?}");
    assert_eq!(summaries, ["total.rs"]);
    assert_eq!(
        kinds(ContextOptions { kinds: vec![ChunkKind::Test], ..ContextOptions::default() }),
        (Vec::new(), Vec::new())
    );
}

#[test]
fn of_a_diff_in_the_task_only_what_it_has_is_not_told_again() {
    let lines: Vec<String> = (2..=59).map(|number| format!("    step_{number}();\n")).collect();
    let text = format!("fn long_walk() {{\n{}}}\n", lines.concat());
    let sample = ContextTestRepo::from_files(&[("walk.rs", &text)]);
    let of = |numbers: std::ops::RangeInclusive<usize>| {
        numbers.map(|number| format!("     step_{number}();\n")).collect::<String>()
    };
    let change = "-    step_30();\n+    rest();\n";
    let head = "--- a/walk.rs\n+++ b/walk.rs\n";
    let prose = "word ".repeat(3_000);
    for (diff, told) in [
        (format!("{head}@@ -30 +30 @@\n{change}"), vec![(1, 29), (31, 60)]),
        (format!("{head}@@ -27,7 +27,7 @@\n{}{change}{}", of(27..=29), of(31..=33)), vec![(1, 26), (34, 60)]),
        (format!("{head}@@ -30,0 +31 @@\n+    rest();\n"), vec![(1, 60)]),
        // The end of a task text that exceeds its part of the budget is cut.
        (
            format!("{head}@@ -30 +30 @@\n{change}{prose}\n@@ -50 +50 @@\n-    step_50();\n+    rest();\n"),
            vec![(1, 29), (31, 60)],
        ),
    ] {
        let task = RetrievalTask { given: parse_unified_diff(&diff), text: diff.clone(), ..RetrievalTask::default() };
        let packed = sample.build_context(task, 8_000, ContextOptions::default(), Vec::new());
        let lines = in_focus(&packed).into_iter().filter_map(|section| section.lines);
        let lines: Vec<(u32, u32)> = lines.map(|lines| (lines.start, lines.end)).collect();
        assert_eq!(lines, told, "{}", diff.chars().take(200).collect::<String>());
    }
}

#[test]
fn a_named_class_with_functions_is_no_type() {
    let class = |name: &str, body: &str| format!("export class {name} {{\n{body}}}\n");
    let walks = class("RoadWalker", "  walk(road: number) {\n    return road;\n  }\n");
    let plain = class("RoadPlan", "  length = 3;\n  width = 4;\n");
    let sample = ContextTestRepo::from_files(&[("a.rs", "fn a() {}\n"), ("walker.ts", &walks), ("plan.ts", &plain)]);
    let task = RetrievalTask { text: "`RoadWalker` and `RoadPlan`".to_owned(), ..focus("a.rs", 1) };
    let kinds = |types: bool| {
        let options = ContextOptions { types, ..ContextOptions::default() };
        let packed = sample.build_context(task.clone(), 8_000, options, Vec::new());
        let of = |path: &str| packed.sections.iter().find(|section| section.path == path).map(|section| section.kind);
        (of("walker.ts"), of("plan.ts"))
    };
    assert_eq!(kinds(true), (Some(SectionKind::Function), Some(SectionKind::Type)));
    assert_eq!(kinds(false).0, Some(SectionKind::Function));
}

#[test]
fn a_part_of_a_function_says_so_within_the_budget() {
    let walk = |name: &str| {
        let steps: String = (0..200).map(|number| format!("    road.{name}_{number}(road, {number});\n")).collect();
        format!("fn {name}(road: &Road) {{\n{steps}    lookup_price(road);\n}}\n")
    };
    let names = ["walk_far", "walk_near", "walk_up", "walk_down"];
    let files: Vec<(String, String)> = names.iter().map(|name| (format!("{name}.rs"), walk(name))).collect();
    let mut files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    files.push(("price.rs", "pub fn lookup_price(road: &Road) {}\n"));
    let sample = ContextTestRepo::from_files(&files);
    for budget in (400..8_000).step_by(400) {
        let packed = sample.build_context(focus("price.rs", 1), budget, ContextOptions::default(), Vec::new());
        assert!(packed.total_tokens <= budget, "{} of {budget}", packed.total_tokens);
        assert_eq!(packed.total_tokens as usize, count_tokens(Encoding::O200kBase, &packed.text()));
        assert_eq!(packed.budget, budget);
        for section in &packed.sections {
            assert_eq!(section.tokens as usize, count_tokens(Encoding::O200kBase, &section.text));
            let Some(lines) = section.lines.filter(|_| section.path.starts_with("walk")) else { continue };
            let (place, name) =
                (format!("{}:{}-{}", section.path, lines.start, lines.end), &section.path[..section.path.len() - 3]);
            let title = match lines.count() < 203 {
                true => format!("{place} (part of function {name}, lines 1-203)"),
                false => place,
            };
            assert_eq!(section.text.lines().next(), Some(title.as_str()));
        }
    }
    let packed = sample.build_context(focus("price.rs", 1), 4_000, ContextOptions::default(), Vec::new());
    assert!(packed.sections.iter().any(|section| section.text.contains("(part of function walk_")), "{packed:#?}");
}

#[test]
fn a_window_that_imports_stand_before_is_no_module() {
    let steps: String = (0..120)
        .map(|number| format!("    road.step_{number}(lookup_price(road), \"a step of {number}\");\n"))
        .collect();
    let walk = format!("use crate::price::lookup_price;\n\n/// Walks.\nfn walk(road: &Road) {{\n{steps}}}\n");
    let sample =
        ContextTestRepo::from_files(&[("walk.rs", &walk), ("price.rs", "pub fn lookup_price(road: &Road) {}\n")]);
    let options = ContextOptions { kinds: vec![ChunkKind::Module], ..ContextOptions::default() };
    let packed = sample.build_context(focus("price.rs", 1), 20_000, options, Vec::new());
    let of_it = packed.sections.iter().filter(|section| section.path == "walk.rs");
    let lines: Vec<_> = of_it.map(|section| section.lines).collect();
    assert_eq!(lines, [Some(LineRange::new(1, 2))]);
}
