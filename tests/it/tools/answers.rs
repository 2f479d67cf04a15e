//! The answer of each tool to a valid question.

use std::path::Path;

use revdeck::context::builder::{ContextOptions, ContextQuery, READ_EVERYTHING, build_context};
use revdeck::context::query_input::history_tip;
use revdeck::context::retrieve::task::RetrievalTask;
use revdeck::context::tools::{Tool, Toolbox};
use revdeck::domain::{Encoding, Kind, LineRange, ToolOutcome};
use revdeck::masking::Mask;
use serde_json::json;

use super::{AWS, GITHUB, RANDOM, answered, call, snapshot, toolbox, toolbox_with};
use crate::env::TestEnvironment;

/// Creates a project with a change: `src/a.rs` modified, `src/new.rs` added, `gone.rs` deleted.
fn project() -> TestEnvironment {
    let test = TestEnvironment::new();
    let body: String = (1..=30).map(|n| format!("    step({n});\n")).collect();
    test.write("src/a.rs", format!("use b::parse;\n\nfn main() {{\n{body}}}\n"));
    test.write("src/b.rs", "/// Parses.\npub fn parse(text: &str) -> u32 {\n    text.len() as u32\n}\n");
    test.write("gone.rs", "fn gone() {}\n");
    test.write("docs/guide.md", "# Guide\ncall parse to parse\nGröße, größer\n");
    test.write("Cargo.lock", "[[package]]\n");
    test.commit("one");
    let changed = body.replace("    step(15);\n", "    step(15);\n    let n = parse(\"x\");\n");
    test.write("src/a.rs", format!("use b::parse;\n\nfn main() {{\n{changed}}}\n"));
    test.write("src/new.rs", "fn fresh() -> u32 {\n    parse(\"new\")\n}\n");
    test.write("Cargo.lock", "[[package]]\nname = \"x\"\n");
    std::fs::remove_file(test.repo().join("gone.rs")).expect("removed");
    test
}

#[test]
fn every_tool_has_a_description_and_a_schema() {
    let specs = Toolbox::specs();
    let names: Vec<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
    let all: Vec<&str> = Tool::ALL.iter().map(|tool| tool.word()).collect();
    assert_eq!(names, all);
    for spec in &specs {
        assert!(!spec.description.is_empty() && spec.parameters["type"] == "object", "{}", spec.name);
        for (name, property) in spec.parameters["properties"].as_object().expect("properties") {
            assert!(property["type"].is_string(), "{} {name}", spec.name);
        }
        for name in spec.parameters["required"].as_array().into_iter().flatten() {
            assert!(
                spec.parameters["properties"].get(name.as_str().expect("a name")).is_some(),
                "{} {name}",
                spec.name
            );
        }
    }
    let report = specs.iter().find(|spec| spec.name == "report_findings").expect("there");
    let finding = &report.parameters["properties"]["findings"]["items"]["properties"];
    assert_eq!(finding["kind"]["enum"].as_array().map(Vec::len), Some(Kind::ALL.len()));
}

#[test]
fn files_are_read_by_lines() {
    let test = project();
    let tools = &mut toolbox(&test, "worktree", Mask::On);
    let answer = call(tools, "read_file", &json!({"path": "src/b.rs"}));
    assert_eq!(
        answer.text,
        "src/b.rs, lines 1 to 4 of 4\n    1  /// Parses.\n    2  pub fn parse(text: &str) -> u32 {\n    3      text.len() as u32\n    4  }\n"
    );
    assert_eq!(answer.shown, [("src/b.rs".to_owned(), LineRange::new(1, 4))]);
    assert_eq!(answer.summary, "src/b.rs, lines 1 to 4 of 4");
    let answer = call(tools, "read_file", &json!({"path": "./src//b.rs", "start_line": 2, "end_line": 2}));
    assert_eq!(
        answer.text,
        "src/b.rs, lines 2 to 2 of 4\n    2  pub fn parse(text: &str) -> u32 {\n2 lines more below.\n"
    );
    assert_eq!(answer.shown, [("src/b.rs".to_owned(), LineRange::new(2, 2))]);
    for (arguments, said) in [
        (json!({"path": "src/b.rs", "start_line": 9}), "src/b.rs has only 4 lines"),
        (json!({"path": "src/b.rs", "start_line": 3, "end_line": 2}), "`end_line` 2 is before `start_line` 3"),
        (json!({"path": "b.rs"}), "there is no `b.rs` in the snapshot; of that name there is `src/b.rs`"),
        (json!({"path": "src"}), "`src` is a folder; list_files shows what is in it"),
        (json!({"path": "gone.rs"}), "there is no `gone.rs` in the snapshot; list_files shows what there is"),
        (json!({"path": "src/b.rs/x"}), "`src/b.rs` is a file, not a folder"),
    ] {
        let answer = call(tools, "read_file", &arguments);
        assert_eq!((answer.outcome, answer.text.as_str()), (ToolOutcome::Failed, said), "{arguments}");
    }
}

#[test]
fn the_worktree_is_never_read() {
    let test = project();
    let tools = &mut toolbox(&test, "worktree", Mask::On);
    test.write("src/b.rs", "moved on\n");
    test.write("src/later.rs", "later\n");
    assert!(answered(tools, "read_file", &json!({"path": "src/b.rs"})).contains("pub fn parse"));
    assert_eq!(call(tools, "read_file", &json!({"path": "src/later.rs"})).outcome, ToolOutcome::Failed);
    assert!(answered(tools, "codebase_search", &json!({"query": "moved on"})).starts_with("no line matches"));
}

#[test]
fn long_files_come_in_pages() {
    let test = project();
    let lines: String = (1..=1_000).map(|n| format!("line {n}\n")).collect();
    test.write("long.txt", lines + &"x".repeat(3_000));
    let tools = &mut toolbox(&test, "worktree", Mask::On);
    let first = answered(tools, "read_file", &json!({"path": "long.txt"}));
    assert!(
        first.starts_with("long.txt, lines 1 to 400 of 1001\n") && first.contains("\n  400  line 400\n"),
        "{first}"
    );
    assert!(first.ends_with("Lines 401 to 1001 did not fit: read on with start_line 401.\n"), "{first}");
    let last = answered(tools, "read_file", &json!({"path": "long.txt", "start_line": 801}));
    assert!(last.contains("\n  801  line 801\n") && last.ends_with("xxx… (2500 characters more)\n"), "{last}");
}

#[test]
fn lines_are_searched_as_text_and_by_pattern() {
    let test = project();
    let tools = &mut toolbox(&test, "worktree", Mask::On);
    let answer = call(tools, "codebase_search", &json!({"query": "parse("}));
    // Changed files first, then the other files of their folder.
    assert_eq!(
        answer.text,
        "src/a.rs\n   19:     let n = parse(\"x\");\nsrc/new.rs\n    2:     parse(\"new\")\nsrc/b.rs\n    2: pub fn parse(text: &str) -> u32 {\n"
    );
    assert_eq!(answer.shown[0], ("src/a.rs".to_owned(), LineRange::new(19, 19)));
    assert_eq!(answer.summary, "3 lines for `parse(`, page 1");
    for (arguments, expected) in [
        (json!({"query": "^pub fn \\w+", "regex": true}), "src/b.rs\n    2: "),
        (json!({"query": "(?i)GUIDE", "regex": true}), "docs/guide.md\n    1: # Guide\n"),
        (json!({"query": "größer"}), "docs/guide.md\n    3: Größe, größer\n"),
        (json!({"query": "gr[öo]ßer", "regex": true}), "docs/guide.md\n    3: "),
        (json!({"query": "\\p{Lu}r\\w+, ", "regex": true}), "docs/guide.md\n    3: "),
        (json!({"query": "Gr..e,", "regex": true}), "docs/guide.md\n    3: "),
        (json!({"query": "parse$", "regex": true}), "docs/guide.md\n    2: "),
        (json!({"query": "parse", "path": "*.md"}), "docs/guide.md\n    2: call parse to parse\n"),
        (json!({"query": "parse", "path": "docs"}), "docs/guide.md\n    2: "),
        (json!({"query": "parse", "path": "docs/"}), "docs/guide.md\n    2: "),
        (json!({"query": "parse", "path": "**/b.*"}), "src/b.rs\n    2: "),
        (json!({"query": "parse", "path": "src/b.rs"}), "src/b.rs\n    2: "),
        (json!({"query": "\\w+", "regex": false}), "no line matches `\\w+`."),
        (json!({"query": "parse", "page": 7}), "no page 7 of lines that match `parse`; there are 1."),
    ] {
        let text = answered(tools, "codebase_search", &arguments);
        assert!(text.starts_with(expected), "{arguments}: {text}");
    }
    for (arguments, expected) in [
        (json!({"query": "(", "regex": true}), "`query` is no valid regular expression: unclosed group"),
        (json!({"query": "a\\nb", "regex": true}), "matches lie within one line"),
        (json!({"query": "a\nb"}), "matches lie within one line"),
        (json!({"query": "\\Ause b", "regex": true}), "matches lie within one line: its ends are ^ and $"),
        (json!({"query": "parse\\z", "regex": true}), "matches lie within one line"),
        (json!({"query": "(?-m)^use b", "regex": true}), "matches lie within one line"),
        (json!({"query": "(?-R:parse$)", "regex": true}), "matches lie within one line"),
        (json!({"query": "x", "path": "nowhere/*.rs"}), "no file matches the path `nowhere/*.rs`"),
        (json!({"query": "x", "path": "a[".to_owned()}), "no file matches"),
        (json!({"query": ""}), "codebase_search needs `query`"),
    ] {
        let answer = call(tools, "codebase_search", &arguments);
        assert!(
            answer.outcome == ToolOutcome::Failed && answer.text.starts_with(expected),
            "{arguments}: {}",
            answer.text
        );
    }
}

#[test]
fn files_that_are_not_utf_8_are_searched_as_they_are_shown() {
    let test = TestEnvironment::new();
    test.write("menu.txt", b"caf\xe9 au lait\nth\xe9\n");
    let tools = &mut toolbox(&test, "worktree", Mask::On);
    for (query, is_regex) in
        [(" au lait", false), ("caf. au", true), ("^caf\\W au", true), ("f\u{fffd} au", false), ("f\u{fffd} au", true)]
    {
        let text = answered(tools, "codebase_search", &json!({"query": query, "regex": is_regex}));
        assert_eq!(text, "menu.txt\n    1: caf\u{fffd} au lait\n", "{query}");
    }
}

#[test]
fn many_matches_are_bounded_for_a_file_and_paged() {
    let test = TestEnvironment::new();
    for file in 0..40 {
        test.write(&format!("f{file:02}.txt"), "needle\n".repeat(50));
    }
    let tools = &mut toolbox(&test, "worktree", Mask::On);
    let first = answered(tools, "codebase_search", &json!({"query": "needle"}));
    assert!(first.contains("\n   20: needle\n       30 more lines of this file: name it"), "{first}");
    assert!(!first.contains("\n   21: needle") && first.ends_with("More on page 2.\n"), "{first}");
    let mut files = 0;
    for page in 1.. {
        let text = answered(tools, "codebase_search", &json!({"query": "needle", "page": page}));
        files += text.lines().filter(|line| line.starts_with('f')).count();
        if !text.contains("More on page") {
            break;
        }
    }
    assert!((40..44).contains(&files), "{files}: a file whose lines are on two pages is named on both");
    let one = answered(tools, "codebase_search", &json!({"query": "needle", "path": "f07.txt"}));
    assert_eq!(one.lines().count(), 51);

    test.write("wide.txt", format!("{}found{}\n", "ä".repeat(2_000), "x".repeat(900)));
    let tools = &mut toolbox(&test, "worktree", Mask::On);
    let wide = answered(tools, "codebase_search", &json!({"query": "found"}));
    let expected = format!("    1: …{}found{}… (465 characters more)\n", "ä".repeat(60), "x".repeat(435));
    assert_eq!(wide, format!("wide.txt\n{expected}"));
}

#[test]
fn folders_are_listed_with_counts() {
    let test = project();
    test.write("src/deep/er/x.rs", "x\n");
    test.write(".env", "A=b\n");
    std::os::unix::fs::symlink("src/b.rs", test.repo().join("link")).expect("a link");
    let tools = &mut toolbox(&test, "worktree", Mask::On);
    let root = answered(tools, "list_files", &json!({}));
    assert_eq!(
        root,
        "the root: 8 files\n.env (4 bytes, changed, withheld)\nCargo.lock (23 bytes)\ndocs/ (1 file)\n  guide.md (46 bytes)\n\
         link -> src/b.rs\nsrc/ (4 files)\n  a.rs (464 bytes, changed)\n  b.rs (70 bytes)\n  deep/ (1 file)\n  new.rs (39 bytes, changed)\n"
    );
    let one = answered(tools, "list_files", &json!({"path": "src", "depth": 1}));
    assert!(
        one.starts_with("src: 4 files\na.rs (") && one.contains("\ndeep/ (1 file)\n") && !one.contains("x.rs"),
        "{one}"
    );
    assert!(answered(tools, "list_files", &json!({"path": "src/deep", "depth": 9})).contains("er/ (1 file)\n  x.rs"));
    assert!(answered(tools, "list_files", &json!({"page": 2})).contains("there is no page 2"));
    let answer = call(tools, "list_files", &json!({"path": "src/b.rs"}));
    assert_eq!(
        (answer.outcome, answer.text.as_str()),
        (ToolOutcome::Failed, "`src/b.rs` is a file; read_file shows it")
    );
}

#[test]
fn symbols_are_found_with_their_definitions_first() {
    let test = project();
    let tools = &mut toolbox(&test, "worktree", Mask::On);
    let answer = call(tools, "find_symbol", &json!({"name": "b::parse()"}));
    assert_eq!(
        answer.text,
        "`parse`: 1 definition, 3 references\nDefinitions:\nsrc/b.rs:2 (function): pub fn parse(text: &str) -> u32 {\n\
         References:\nsrc/a.rs:1: use b::parse;\nsrc/a.rs:19: let n = parse(\"x\");\nsrc/new.rs:2: parse(\"new\")\n"
    );
    assert!(answer.shown.contains(&("src/b.rs".to_owned(), LineRange::new(2, 2))));
    let none = answered(tools, "find_symbol", &json!({"name": "Guide"}));
    assert!(none.starts_with("`Guide`: 0 definitions, 0 references; codebase_search"), "{none}");
}

/// Builds a context of the change, as a review does, and keeps the results in a cache folder.
fn keep_history(test: &TestEnvironment, folder: &Path) {
    let (repo, snapshot) = snapshot(test, "worktree");
    let question = ContextQuery {
        tree: &snapshot.snapshot_commit,
        history: history_tip(&snapshot.base_commit, &snapshot.snapshot_commit),
        task: RetrievalTask::default(),
        leading_pieces: Vec::new(),
        context_lines: None,
        quoted_documents: &[],
        budget: 1_000,
        encoding: Encoding::O200kBase,
        options: ContextOptions::default(),
        folder: Some(folder),
        index: None,
        meaning: None,
        cancelled: &|| false,
        time_left: READ_EVERYTHING,
    };
    build_context(&repo, question).expect("a repository that can be read").expect("in whole");
}

#[test]
fn places_say_when_their_lines_changed_last_where_the_history_is_kept() {
    let test = project();
    std::fs::remove_file(test.repo().join("src/new.rs")).expect("removed");
    test.git(&["stash", "-q"]);
    test.write("src/c.rs", "fn other() {}\n\nfn user() {\n    parse(\"c\");\n}\n");
    test.commit("two");
    test.write("src/c.rs", "fn another() {}\n\nfn user() {\n    parse(\"c\");\n}\n");
    test.commit("three");
    test.git(&["stash", "pop", "-q"]);
    let said = |revision: &str| {
        let told = test.git(&["log", "-1", "--format=%cs in %H", revision]);
        told.trim().chars().take("2026-01-02 in ".len() + 8).collect::<String>()
    };
    let folder = test.home().join("kept");
    let ask = || {
        let tools = &mut toolbox_with(&test, "worktree", Mask::On, Some(folder.clone()));
        ["parse", "another"].map(|name| answered(tools, "find_symbol", &json!({ "name": name })))
    };
    let [parse, another] = ask();
    assert!(!parse.contains("last changed") && !another.contains("last changed"), "{parse}{another}");
    assert!(!folder.exists(), "nothing is found out for a tool");
    keep_history(&test, &folder);
    let [parse, another] = ask();
    let (one, two, three) = (said("HEAD~2"), said("HEAD~1"), said("HEAD"));
    assert_eq!(
        parse,
        format!(
            "`parse`: 1 definition, 3 references\nDefinitions:\n\
             src/b.rs:2 (function; last changed {one}): pub fn parse(text: &str) -> u32 {{\n\
             References:\nsrc/a.rs:1: use b::parse;\nsrc/a.rs:19: let n = parse(\"x\");\n\
             src/c.rs:4 (last changed {two}): parse(\"c\");\n"
        )
    );
    assert!(another.contains(&format!("src/c.rs:1 (function; last changed {three}): ")), "{another}");

    test.write("lcov.info", "SF:src/b.rs\nDA:2,1\nDA:3,0\nend_of_record\nSF:/ci/src/c.rs\nDA:4,0\nend_of_record\n");
    let [parse, another] = ask();
    let expected = format!("src/b.rs:2 (function; last changed {one}; tests reach 1 of 2 lines): pub fn parse");
    assert!(parse.contains(&expected), "{parse}");
    assert!(parse.contains(&format!("src/c.rs:4 (last changed {two}; not covered by tests): parse(")), "{parse}");
    assert!(parse.contains("src/a.rs:19: let n"), "the report does not tell of it: {parse}");
    assert!(another.contains(&format!("src/c.rs:1 (function; last changed {three}): ")), "{another}");
}

#[test]
fn what_tests_reach_is_told_without_a_history() {
    let test = project();
    test.write(".gitignore", "coverage\n");
    test.write(
        "coverage/lcov.info",
        "SF:src/b.rs\nDA:2,1\nDA:3,1\nend_of_record\nSF:src/a.rs\nDA:19,0\nend_of_record\n",
    );
    let tools = &mut toolbox(&test, "worktree", Mask::On);
    let said = answered(tools, "find_symbol", &json!({ "name": "parse" }));
    assert!(said.contains("src/b.rs:2 (function; tests reach 2 of 2 lines): pub fn parse"), "{said}");
    assert!(said.contains("src/a.rs:19 (not covered by tests): let n"), "{said}");
    assert!(said.contains("src/a.rs:1: use b::parse;"), "{said}");
}

#[test]
fn what_is_told_of_a_place_stays_while_its_file_is_written() {
    let test = project();
    test.write(".gitignore", "lcov.info\n");
    test.write("lcov.info", "SF:src/b.rs\nDA:2,1\nend_of_record\nSF:src/a.rs\nDA:19,0\nend_of_record\n");
    let tools = &mut toolbox(&test, "worktree", Mask::On);
    let asked = json!({ "name": "parse" });
    let before = answered(tools, "find_symbol", &asked);
    assert!(before.contains("src/b.rs:2 (function; tests reach 1 of 1 line)"), "{before}");
    test.write("src/b.rs", "moved on\n");
    std::fs::remove_file(test.repo().join("src/a.rs")).expect("removed");
    assert_eq!(answered(tools, "find_symbol", &asked), before);
    let tools = &mut toolbox(&test, "commit:HEAD", Mask::On);
    assert!(!answered(tools, "find_symbol", &asked).contains("tests"), "another toolbox finds it out anew");
}

#[test]
fn the_change_is_shown_with_the_numbers_of_the_new_side() {
    let test = project();
    let tools = &mut toolbox(&test, "worktree", Mask::On);
    let one = call(tools, "show_diff", &json!({"path": "src/a.rs"}));
    assert_eq!(
        one.text,
        "### src/a.rs\n@@ -16,6 +16,7 @@ fn main() {\n   16      step(13);\n   17      step(14);\n   18      step(15);\n\
         \x20  19 +    let n = parse(\"x\");\n   20      step(16);\n   21      step(17);\n   22      step(18);\n"
    );
    assert_eq!(one.shown, [("src/a.rs".to_owned(), LineRange::new(16, 22))]);
    let all = answered(tools, "show_diff", &json!({}));
    assert!(
        all.starts_with(
            "Changed: 2 files\nsrc/a.rs (+1 -0, 1 hunk)\nsrc/new.rs (new file) (+3 -0, 1 hunk)\n\
             Changed, but not under review:\nCargo.lock: lock file\ngone.rs: deleted\n### src/a.rs\n@@ "
        ),
        "{all}"
    );
    assert!(all.ends_with("    3 +}\n"), "{all}");
    assert_eq!(
        answered(tools, "show_diff", &json!({"path": "gone.rs"})),
        "### gone.rs (deleted)\n      -fn gone() {}\n"
    );
    for (path, said) in [
        ("src/b.rs", "`src/b.rs` did not change; read_file shows it"),
        ("Cargo.lock", "`Cargo.lock` changed, but is not under review: lock file"),
        ("nowhere.rs", "there is no `nowhere.rs` in the snapshot; list_files shows what there is"),
    ] {
        let answer = call(tools, "show_diff", &json!({"path": path}));
        assert_eq!((answer.outcome, answer.text.as_str()), (ToolOutcome::Failed, said));
    }
}

#[test]
fn static_findings_are_those_of_the_built_in_reviewer() {
    let test = project();
    test.write("notes.md", "text\n");
    test.write("src/bad.py", format!("def f(a, b, c, d, e, g, h, i):\n    return a\n\nKEY = \"{AWS}\"\n"));
    test.write("src/b\u{1b}ad.py", format!("KEY = \"{AWS}\"\n"));
    let tools = &mut toolbox(&test, "worktree", Mask::On);
    let all = answered(tools, "static_findings", &json!({}));
    assert!(
        all.contains("src/bad.py\n1-2: p3 COMPLEX_FUNCTIONS Function `f` is complex")
            && all.contains("4: p0 HARDCODED"),
        "{all}"
    );
    assert!(
        !all.contains(&AWS[..4]) && all.contains("An AWS access key stands in the code: …(20 characters)."),
        "{all}"
    );
    assert_eq!(answered(tools, "static_findings", &json!({"path": "notes.md"})), "Static analysis found nothing here.");
    for path in ["src/b\\u{1b}ad.py", "src/b\u{1b}ad.py"] {
        let found = answered(tools, "static_findings", &json!({ "path": path }));
        assert!(found.starts_with("1 finding\nsrc/b\\u{1b}ad.py\n1: p0 HARDCODED"), "{found}");
    }
    let answer = call(tools, "static_findings", &json!({"path": "src/b.rs"}));
    assert_eq!(answer.outcome, ToolOutcome::Failed);
    assert_eq!(
        tools
            .run(&super::ToolCall { id: "1".into(), name: "static_findings".into(), arguments: String::new() }, &|| {
                true
            })
            .outcome,
        ToolOutcome::Answered,
        "it runs once"
    );
}

#[test]
fn secrets_are_masked_in_every_tool_and_lines_stay_true() {
    let test = TestEnvironment::new();
    test.write("old.py", format!("a = 1\nTOKEN = \"{GITHUB}\"\nb = 2\n"));
    test.commit("one");
    test.write("old.py", format!("a = 1\nAWS = \"{AWS}\"\napi_key = \"{RANDOM}\"\nb = 3\n"));
    test.write("conf/app.yml", format!("db:\n  password: {RANDOM}\n"));
    test.write(&format!("{AWS}.txt"), "in the name\n");
    let secrets = [AWS, GITHUB, RANDOM];
    let calls = [
        ("read_file", json!({"path": "old.py"})),
        ("read_file", json!({"path": "conf/app.yml"})),
        ("codebase_search", json!({"query": "api_key"})),
        ("codebase_search", json!({"query": "AWS|password|TOKEN", "regex": true})),
        ("codebase_search", json!({"query": RANDOM})),
        ("codebase_search", json!({"query": "\"q7[A-Za-z]", "regex": true})),
        ("find_symbol", json!({"name": "api_key"})),
        ("list_files", json!({})),
        ("show_diff", json!({})),
        ("show_diff", json!({"path": "old.py"})),
        ("static_findings", json!({})),
        ("read_file", json!({"path": format!("{AWS}.txt")})),
        ("read_file", json!({"path": format!("{AWS}.rs")})),
    ];
    let tools = &mut toolbox(&test, "worktree", Mask::On);
    for (name, arguments) in &calls {
        let answer = call(tools, name, arguments);
        // The answer may repeat text from the model's own question.
        for secret in secrets.iter().filter(|secret| **secret == AWS || !arguments.to_string().contains(**secret)) {
            assert!(
                !answer.text.contains(secret) && !answer.summary.contains(secret),
                "{name} {arguments}: {}",
                answer.text
            );
        }
    }
    let text = answered(tools, "read_file", &json!({"path": "old.py"}));
    assert!(
        text.contains("    2  AWS = \"«secret:aws_access_key»\"\n    3  api_key = \"«secret»\"\n    4  b = 3\n"),
        "{text}"
    );
    // The tool refuses a question that contains the secret.
    for query in [RANDOM.to_owned(), format!("api_key = .{}", &RANDOM[..4])] {
        let text = answered(tools, "codebase_search", &json!({"query": query, "regex": true}));
        assert!(text.starts_with("no line matches"), "{text}");
    }
    let open = &mut toolbox(&test, "worktree", Mask::Off);
    assert!(answered(open, "read_file", &json!({"path": "old.py"})).contains(AWS));
    assert!(answered(open, "show_diff", &json!({"path": "old.py"})).contains(GITHUB));
}
