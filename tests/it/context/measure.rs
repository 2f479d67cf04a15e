//! `revdeck context-eval` on commits of a repository.

use insta::assert_snapshot;
use serde_json::Value;

use super::{paths, shop};
use crate::env::{DONE, TestEnvironment};

/// Creates a repository with a history that is long enough to measure.
fn long_history() -> TestEnvironment {
    let test = shop();
    // Two files always change together; the other files change alone.
    let commits: Vec<Vec<(String, String)>> = (0..130)
        .map(|number| {
            let file = |path: &str, name: &str| (path.to_owned(), format!("def {name}:\n    return {number}\n"));
            match number % 3 {
                0 => vec![file("src/a.py", "reader()"), file("src/b.py", "writer()")],
                _ => vec![file(&format!("other/part_{}.py", number % 40), "walk(road)")],
            }
        })
        .collect();
    test.import(&commits);
    test
}

#[test]
fn a_diff_of_files_elsewhere_changes_nothing() {
    let test = shop();
    let ask = |task: &str| {
        let budget = ["--files", "*.py", "--budget", "2000", "--format", "json"];
        let context = test.json(&[&["context", "--at", "HEAD", "--task", task][..], &budget].concat(), DONE);
        paths(&context).join("\n")
    };
    let expected = ask("lookup_price");
    assert_snapshot!(expected, @"
    src/price.py
    tests/test_store.py
    src/store.py
    ");
    let hunk = "@@ -1 +1 @@\n-a\n+b\n";
    for path in ["//etc/passwd", "/etc/passwd", "../passwd"] {
        assert_eq!(ask(&format!("lookup_price\n--- {path}\n+++ {path}\n{hunk}")), expected, "{path}");
    }
}

#[test]
fn commits_of_a_repository_are_measured() {
    let test = long_history();
    let repo = test.repo();
    let repo = repo.to_str().expect("a plain path");
    let ask = ["context-eval", repo, "--commits", "5", "--budget", "400,4000,400", "--format", "json"];
    let measured = test.json(&ask, DONE);
    let rows = measured["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 4 * 2);
    let whole = rows.iter().find(|row| row["retrieval"] == "whole" && row["budget"] == 4_000).expect("the whole");
    assert_eq!(whole["commits"], 5);
    assert_eq!((whole["file_recall"].as_f64(), whole["mrr"].as_f64()), (Some(1.0), Some(1.0)), "{measured:#}");
    assert!(rows.iter().all(|row| row["tokens"].as_f64() <= row["budget"].as_f64()));
    // Neither file imports the other: a search by whole files finds none of the expected files.
    let saving = &measured["saving"];
    assert_eq!(saving["whole_files"]["file_recall"], 0.0, "{saving:#}");
    assert!(saving["whole_files"]["tokens"].as_f64() > Some(5.0) && saving["percent"].is_number(), "{saving:#}");
    // The second call reads the history from the cache.
    assert_eq!(test.json(&ask, DONE), measured);
    let none = ["context-eval", repo, "--skip", "1000", "--budget", "400", "--whole"];
    let nothing = test.json(&[&none[..], &["--format", "json"]].concat(), DONE);
    assert_eq!((&nothing["rows"], &nothing["saving"]["context"]), (&serde_json::json!([]), &Value::Null));
    assert_snapshot!(test.errors(&none, DONE), @"no commit fits: one modifies 2 to 15 files of code, deletes none, and has 100 commits behind it");
    assert_snapshot!(test.output(&none, DONE), @"retrieval  budget  commits  file recall  line recall  MRR  tokens");
}

#[test]
fn a_history_of_its_own_that_was_merged_is_passed_over() {
    let test = long_history();
    test.git(&["reset", "-q", "--hard"]);
    let later = |arguments: &[&str]| {
        let mut git = test.command("git");
        let git = git.env("GIT_COMMITTER_DATE", "2026-03-04T05:06:07Z").args(arguments);
        assert!(git.status().expect("git starts").success(), "{arguments:?}");
    };
    later(&["checkout", "-q", "--orphan", "other"]);
    later(&["commit", "-q", "-m", "Another root"]);
    for path in ["src/a.py", "src/b.py"] {
        test.write(path, "def other():\n    return 0\n");
    }
    later(&["commit", "-q", "-a", "-m", "Of two files"]);
    later(&["checkout", "-q", "main"]);
    later(&["merge", "-q", "--allow-unrelated-histories", "-s", "ours", "-m", "Both", "other"]);
    let repo = test.repo();
    let ask = |commits: &str| {
        let repo = repo.to_str().expect("a plain path");
        let asked = ["context-eval", repo, "--commits", commits, "--budget", "400", "--whole", "--format", "json"];
        let output = test.revdeck(&asked);
        let measured: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        (measured["rows"][0]["commits"].as_u64(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert_eq!(ask("3"), (Some(3), String::new()));
    let (found, said) = ask("1000");
    let found = found.expect("some");
    assert!((4..40).contains(&found), "{found}");
    assert_snapshot!(said.replace(&format!("only {found} "), "only [found] "), @"only [found] of 1000 commits fit: one modifies 2 to 15 files of code, deletes none, and has 100 commits behind it");
}
