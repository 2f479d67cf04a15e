//! The built-in reviewer (`reviewers::analyzer`) as a library: folders, changes and findings, in all languages.

use std::path::PathBuf;

use revdeck::domain::{Kind, RunId, Time};
use revdeck::git::Hunk;
use revdeck::reviewers::analyzer::limits::Limits;
use revdeck::reviewers::analyzer::smells::{SMELLS, Smell};
use revdeck::reviewers::analyzer::{Builtin, to_findings};
use revdeck::syntax::ParseFailure;
use revdeck::syntax::language::Language;
use revdeck::syntax::source::Parsers;

use crate::env::TestEnvironment;

/// For each language: a file name, the start of a function `f`, one code line with `N` for a number, and the end of
/// the function.
const LANGUAGES: [(&str, &str, &str, &str); Language::ALL.len()] = [
    ("a.rs", "fn f(a: u32) {\n", "    run(a, b_N);\n", "}\n"),
    ("a.py", "def f(a):\n", "    run(a, b_N)\n", ""),
    ("a.js", "function f(a) {\n", "  run(a, b_N);\n", "}\n"),
    ("a.ts", "function f(a: number) {\n", "  run(a, b_N);\n", "}\n"),
    ("a.tsx", "const f = (a: number) => {\n", "  run(a, b_N);\n", "};\n"),
    ("a.go", "package a\n\nfunc f(a int) {\n", "\trun(a, b_N)\n", "}\n"),
    ("A.java", "class A {\n  void f(int a) {\n", "    run(a, b_N);\n", "  }\n}\n"),
    ("a.kt", "fun f(a: Int) {\n", "    run(a, b_N)\n", "}\n"),
    ("a.scala", "object A {\n  def f(a: Int): Unit = {\n", "    run(a, b_N)\n", "  }\n}\n"),
    ("a.swift", "func f(a: Int) {\n", "    run(a, b_N)\n", "}\n"),
    ("a.c", "void f(int a)\n{\n", "    run(a, b_N);\n", "}\n"),
    ("a.cpp", "void f(int a) {\n", "  run(a, b_N);\n", "}\n"),
    ("a.cs", "class A {\n  void f(int a) {\n", "    run(a, b_N);\n", "  }\n}\n"),
    ("a.rb", "def f(a)\n", "  run(a, b_N)\n", "end\n"),
    ("a.php", "<?php\nfunction f($a) {\n", "  run($a, $b_N);\n", "}\n"),
    ("a.sh", "f() {\n", "  run \"$1\" b_N\n", "}\n"),
];

fn code((_, head, line, tail): (&str, &str, &str, &str), lines: usize) -> String {
    let body: String = (0..lines).map(|n| line.replace('N', &format!("{n}"))).collect();
    format!("{head}{body}{tail}")
}

fn of_kind(smells: &[Smell], kind: Kind) -> Vec<&Smell> {
    smells.iter().filter(|smell| smell.kind == kind).collect()
}

#[test]
fn long_functions_are_found_in_every_language_with_their_figures() {
    let builtin = Builtin::default();
    let mut parsers = Parsers::default();
    for language in LANGUAGES {
        let text = code(language, 70);
        let report = builtin.analyze_file(&mut parsers, language.0, text.as_bytes()).expect("a language of ours");
        let long = of_kind(&report.smells, Kind::LongMethod);
        assert_eq!(long.len(), 1, "{}: {:?}", language.0, report.functions);
        let function = &report.functions[0];
        assert!((71..=73).contains(&function.nloc), "{}: {function:?}", language.0);
        assert_eq!(long[0].figure, Some(f64::from(function.nloc)), "{}", language.0);
        assert_eq!((function.cyclomatic, function.cognitive, function.nesting), (1, 0, 0), "{}", language.0);
        let short = code(language, 20);
        let report = builtin.analyze_file(&mut parsers, language.0, short.as_bytes()).expect("a language of ours");
        assert!(of_kind(&report.smells, Kind::LongMethod).is_empty(), "{}", language.0);
    }
    let unread = builtin.analyze_file(&mut parsers, "README.md", b"text").expect_err("not a language of ours");
    assert_eq!(unread, ParseFailure::UnknownLanguage);
}

#[test]
fn a_change_reports_what_grew_and_stays_silent_on_what_was_there() {
    let builtin = Builtin::default();
    let mut parsers = Parsers::default();
    for language in LANGUAGES {
        for (before, after, expected) in [(40, 84, true), (84, 90, true), (84, 84, false), (90, 70, false)] {
            let (old, mut new) = (code(language, before), code(language, after));
            if before == after {
                new = new.replace("b_7", "b_seven");
            }
            let hunk = Hunk { old_start: 4, old_lines: 80, new_start: 4, new_lines: 80 };
            let smells = builtin
                .review_change(&mut parsers, language.0, new.as_bytes(), &[hunk], || {
                    Some((language.0.to_owned(), old.clone().into_bytes()))
                })
                .expect("a language of ours");
            let long = of_kind(&smells, Kind::LongMethod);
            assert_eq!(!long.is_empty(), expected, "{} {before} {after}: {smells:?}", language.0);
            if expected {
                assert!(long[0].title.contains("grew from"), "{}: {}", language.0, long[0].title);
            }
        }
    }
}

#[test]
fn folders_are_read_in_order_and_what_git_ignores_is_left_out() {
    let test = TestEnvironment::new();
    for language in LANGUAGES {
        test.write(&format!("src/{}", language.0), code(language, 70));
    }
    test.write(".gitignore", "ignored/\n");
    test.write("ignored/b.py", code(LANGUAGES[1], 70));
    test.write("notes.md", "text");
    test.write("huge.py", "x = 1\n".repeat(200));
    test.write("script", "#!/usr/bin/env python3\ndef f(): pass\n");
    let builtin = Builtin::new(Limits::default());
    let read = || builtin.analyze_paths(&[test.repo(), test.repo().join("src/a.py")], 1_000).map(|_| ());
    assert!(read().is_ok());
    let report = builtin.analyze_paths(&[test.repo()], 4_000).expect("the folder is there");
    let names: Vec<String> = report
        .files
        .iter()
        .map(|file| file.path.trim_start_matches(&*test.repo().to_string_lossy()).trim_start_matches('/').to_owned())
        .collect();
    let mut expected: Vec<String> = LANGUAGES.iter().map(|language| format!("src/{}", language.0)).collect();
    expected.extend(["huge.py".to_owned(), "script".to_owned()]);
    expected.sort();
    assert_eq!(names, expected);
    assert!(report.unreadable.is_empty());
    let again = builtin.analyze_paths(&[test.repo()], 4_000).expect("the folder is there");
    let smells = |report: &revdeck::reviewers::analyzer::FolderReport| -> Vec<Smell> {
        report.files.iter().flat_map(|file| file.smells.clone()).collect()
    };
    assert_eq!(smells(&report), smells(&again));

    let error = builtin.analyze_paths(&[PathBuf::from("/does/not/exist")], 1_000).expect_err("no such folder");
    assert!(error.to_string().contains("/does/not/exist"), "{error}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_text_that_was_made_for_it_uses_up_neither_memory_nor_time() {
    let test = TestEnvironment::new();
    test.write("A.java", format!("class A{{int f(){{return {};}}}}", "a<".repeat(100_000)));
    test.write("b.rs", "\"".repeat(1_000_000));
    test.write("c.py", "def f():\n    return 1\n");
    test.write("d.js", "`".repeat(1_000_000));
    test.write("e.rb", "a.".repeat(100_000));
    // Limits: two gigabytes of address space (in KiB) and a minute. The Java file once took twice that memory, the
    // last two files many minutes.
    let script = "ulimit -v 2000000; ulimit -t 60; exec \"$0\" smells A.java b.rs c.py d.js e.rb";
    let output = test.command("sh").args(["-c", script, env!("CARGO_BIN_EXE_revdeck")]).output().expect("a shell");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    for path in ["A.java", "b.rs"] {
        assert!(said.contains(&format!("left out {path}: it is too complex to parse")), "{said}");
    }
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(shown.contains("3 files, 1 function"), "{shown}");
}

#[test]
fn findings_keep_their_identity_when_code_moves() -> Result<(), Box<dyn std::error::Error>> {
    let builtin = Builtin::default();
    let mut parsers = Parsers::default();
    let run: RunId = "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0E".parse()?;
    for language in LANGUAGES.into_iter().filter(|language| !matches!(language.0, "a.php" | "a.go")) {
        let text = code(language, 70);
        let moved = format!("\n\n{text}");
        let mut ids = Vec::new();
        for text in [&text, &moved] {
            let report = builtin.analyze_file(&mut parsers, language.0, text.as_bytes()).expect("a language of ours");
            let findings = to_findings(&report.smells, language.0, text.as_bytes(), &run, Time::UNIX_EPOCH);
            assert_eq!(findings.len(), report.smells.len());
            ids.push(findings.into_iter().map(|finding| finding.finding_id).collect::<Vec<_>>());
        }
        assert!(!ids[0].is_empty(), "{}", language.0);
        assert_eq!(ids[0], ids[1], "{}", language.0);
    }
    Ok(())
}

#[test]
fn every_smell_can_be_switched_off() {
    let tables = SMELLS.iter().map(|smell| smell.kind.word().to_lowercase());
    let off: String = tables.map(|table| format!("[{table}]\nenabled = false\n")).collect();
    let builtin = Builtin::new(Limits::from_layers([("mine.toml", off.as_str())]).expect("sound"));
    let mut parsers = Parsers::default();
    for language in LANGUAGES {
        let report = builtin.analyze_file(&mut parsers, language.0, code(language, 400).as_bytes());
        assert_eq!(report.map(|report| report.smells), Ok(Vec::new()), "{}", language.0);
    }
}

#[test]
fn child_modules_in_other_files_use_what_is_private_above_them() {
    let env = TestEnvironment::new();
    let root = env.repo().join("rust");
    for (path, text) in [
        ("a.rs", "mod child;\nuse std::rc::Rc;\nuse std::sync::Arc;\nfn used_below() {}\nfn unused() {}\n"),
        ("a/child.rs", "use super::Arc;\npub fn f(a: Arc<u8>) { super::used_below() }\n"),
        ("b.rs", "pub fn g() { unused() }\n"),
    ] {
        let file = root.join(path);
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("created");
        std::fs::write(file, text).expect("written");
    }
    let report = Builtin::default().analyze_paths(&[root], u64::MAX).expect("a report");
    let titles = report.files.iter().flat_map(|file| &file.smells).map(|smell| smell.title.as_str());
    assert_eq!(titles.collect::<Vec<_>>(), ["Unused import `Rc`", "Unused function `unused`"]);
}
