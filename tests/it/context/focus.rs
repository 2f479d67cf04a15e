//! Contexts of a place, and of a diff as the task.

use insta::assert_snapshot;
use serde_json::Value;

use super::{index, notes, shop};
use crate::env::DONE;

#[test]
fn the_place_in_focus_is_in_the_middle() {
    let test = shop();
    let steps: String =
        (0..90).map(|step| format!("def step_{step}(road):\n    return road.step_{step}\n\n")).collect();
    test.write("src/road.py", steps);
    test.commit("A road");
    for line in [60, 130, 200] {
        let focus = format!("src/road.py:{line}");
        let context =
            test.json(&["context", "--at", "HEAD", "--focus", &focus, "--budget", "4000", "--format", "json"], DONE);
        let focus = &context["sections"][0];
        assert_eq!(focus["kind"], "focus");
        let (start, end) = (focus["start_line"].as_u64().expect("a line"), focus["end_line"].as_u64().expect("a line"));
        let (above, below) = (line - start, end - line);
        assert!(above > 10 && below > 10 && above.abs_diff(below) < 10, "{line}: {start} to {end}");
    }
}

#[test]
fn a_focus_is_named_from_where_one_is_or_from_the_root() {
    let test = shop();
    let absolute = test.repo().join("src/price.py").to_string_lossy().into_owned();
    for path in ["price.py:2", "src/price.py:2", "../src/price.py:2", &format!("{absolute}:2")] {
        let mut command = test.command(env!("CARGO_BIN_EXE_revdeck"));
        command.current_dir(test.repo().join("src"));
        let ask = ["context", "--at", "HEAD", "--focus", path, "--budget", "2000", "--format", "json"];
        let output = command.args(ask).output().expect("revdeck starts");
        let context: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(context["sections"][0]["path"], "src/price.py", "{path}: {}", notes(&context));
    }
}

#[test]
fn a_focus_on_nothing_is_said() {
    let test = shop();
    // With an index no other note is printed.
    index(&test);
    let mut said = String::new();
    for focus in ["src/price.py", "src/nope.py", "README.md:3"] {
        let context = test.json(&["context", "--at", "HEAD", "--focus", focus, "--format", "json"], DONE);
        said += &format!("{focus}: {:?}\n", notes(&context));
    }
    assert_snapshot!(said, @r#"
    src/price.py: ""
    src/nope.py: "nothing of src/nope.py is in focus: no text that may be shown is in the tree by this path"
    README.md:3: "nothing of README.md is in focus: no text that may be shown is in the tree by this path"
    "#);
}

#[test]
fn a_diff_as_the_task_is_the_change_where_nothing_is_changed() {
    let test = shop();
    let diff = "--- a/src/price.py\n+++ b/src/price.py\n@@ -2 +2 @@\n-    def lookup_price(self, item):\n+    def price_of(self, item):\n";
    for more in [&["--budget", "2000"][..], &[]] {
        let context = test.json(&[&["context", "worktree", "--task", diff, "--format", "json"], more].concat(), DONE);
        let sections = context["sections"].as_array().expect("sections");
        let found = sections.iter().filter(|section| section["kind"] != "focus");
        let paths: Vec<&str> = found.filter_map(|section| section["path"].as_str()).collect();
        assert!(paths.contains(&"src/store.py") && !paths.contains(&"src/price.py"), "{paths:?}");
    }
}

#[test]
fn numbers_of_lines_as_large_as_they_can_be_are_survived() {
    let test = shop();
    test.write(".gitignore", "coverage\n");
    test.write("coverage/lcov.info", "SF:src/price.py\nDA:2,0\nDA:3,0\nend_of_record\n");
    for (start, lines) in [(u32::MAX, 0), (u32::MAX, 2), (u32::MAX - 1, 0)] {
        let diff = format!("--- a/src/price.py\n+++ b/src/price.py\n@@ -{start},{lines} +1 @@\n+gone = 1\n");
        test.json(&["context", "--at", "HEAD", "--task", &diff, "--budget", "2000", "--format", "json"], DONE);
    }
}
