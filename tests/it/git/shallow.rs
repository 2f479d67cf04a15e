//! Reviews in clones that lack a part of the history or of the contents, as jobs of continuous integration have them.

use std::process::Output;

use crate::env::{DONE, INCOMPLETE, TestEnvironment, USAGE, err, out};

/// Creates a repository whose branch `feature` and `main` have both moved on from their common commit.
fn upstream() -> TestEnvironment {
    let test = TestEnvironment::new();
    test.write("a.py", "x = 1\n");
    test.commit("one");
    test.git(&["switch", "-q", "-c", "feature"]);
    for number in 1..4 {
        test.write(&format!("f{number}.py"), format!("def f{number}(a):\n    return a\n"));
        test.commit("feature");
    }
    test.git(&["switch", "-q", "main"]);
    test.write("a.py", "x = 2\n");
    test.commit("two");
    test.git(&["config", "uploadpack.allowFilter", "true"]);
    test
}

/// Clones the branch `feature` beside the repository, into a folder of this name.
fn clone(test: &TestEnvironment, name: &str, options: &[&str]) {
    let url = format!("file://{}", test.repo().display());
    let folder = format!("../{name}");
    let arguments = [&["clone", "-q", "--branch", "feature"][..], options, &[url.as_str(), folder.as_str()]].concat();
    test.git(&arguments);
}

fn review(test: &TestEnvironment, name: &str, arguments: &[&str]) -> Output {
    let mut command = test.command(env!("CARGO_BIN_EXE_revdeck"));
    command.current_dir(test.repo().parent().expect("a folder").join(name));
    command.arg("review").args(arguments).args(["--wait", "--format", "json"]).output().expect("revdeck starts")
}

/// Returns the number of files that a review has covered.
fn files_covered(review: &Output) -> u64 {
    let value: serde_json::Value = serde_json::from_str(&out(review)).expect("JSON");
    value["run"]["coverage"]["files_covered"].as_u64().expect("a number")
}

#[test]
fn a_shallow_clone_without_the_merge_base_says_how_to_get_it() {
    let test = upstream();
    clone(&test, "one", &["--depth", "1"]);
    clone(&test, "two", &["--depth", "2", "--no-single-branch"]);
    for (name, arguments, said) in [
        ("one", &["--branch", "origin/main"][..], "\"origin/main\" names no commit"),
        ("one", &["--branch", "HEAD~1"], "\"HEAD~1\" names no commit"),
        ("two", &["--branch", "origin/main"], "\"origin/main\" and \"HEAD\" have no common ancestor"),
    ] {
        let output = review(&test, name, arguments);
        let failed = err(&output);
        assert_eq!((output.status.code(), out(&output).as_str()), (Some(USAGE), ""), "{failed}");
        assert!(failed.contains(said), "{failed}");
        for way_out in ["the clone is shallow", "`git fetch --unshallow", "`fetch-depth: 0`", "`GIT_DEPTH: \"0\"`"] {
            assert!(failed.contains(way_out), "{failed}");
        }
    }
    // The fetches that the hints name help.
    for (name, fetch) in [
        ("one", &["fetch", "-q", "--unshallow", "origin", "+refs/heads/*:refs/remotes/origin/*"][..]),
        ("two", &["fetch", "-q", "--unshallow"]),
    ] {
        let folder = format!("../{name}");
        test.git(&[&["-C", folder.as_str()][..], fetch].concat());
        let output = review(&test, name, &["--branch", "origin/main"]);
        assert_eq!(output.status.code(), Some(DONE), "{}", err(&output));
        assert_eq!(files_covered(&output), 3, "{name}");
    }
}

#[test]
fn a_shallow_clone_with_the_merge_base_and_partial_clones_are_reviewed() {
    let test = upstream();
    for (name, options) in [
        ("deep", &["--depth", "4", "--no-single-branch"][..]),
        ("blobless", &["--filter=blob:none"]),
        ("treeless", &["--filter=tree:0"]),
    ] {
        clone(&test, name, options);
        let output = review(&test, name, &["--branch", "origin/main"]);
        assert_eq!(output.status.code(), Some(DONE), "{name}: {}", err(&output));
        assert_eq!(files_covered(&output), 3, "{name}");
    }
    // Contents that cannot be fetched are no review.
    clone(&test, "cut", &["--filter=blob:none", "--no-checkout"]);
    test.git(&["-C", "../cut", "remote", "set-url", "origin", "file:///nonexistent"]);
    let output = review(&test, "cut", &["--branch", "origin/main"]);
    assert_eq!(output.status.code(), Some(INCOMPLETE), "{}", out(&output));
    assert!(err(&output).contains("is a partial clone"), "{}", err(&output));
}
