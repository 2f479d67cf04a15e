//! Which code a context finds and puts first.

use std::fs;

use insta::{allow_duplicates, assert_snapshot};
use serde_json::Value;

use super::{code, index, lines_from, notes, paths, shop};
use crate::env::{DONE, lines_with};

#[test]
fn what_uses_a_changed_name_comes_first_within_the_budget() {
    let test = shop();
    test.write(
        "src/price.py",
        "class PriceList:\n    def lookup_price(self, item, day):\n        return self.table[item, day]\n",
    );
    let context = test.json(&["context", "worktree", "--budget", "1500", "--format", "json"], DONE);
    assert!(context["total_tokens"].as_u64() <= Some(1_500));
    assert_eq!(context["budget"], 1_500);
    let sections = context["sections"].as_array().expect("sections");
    let kinds: Vec<&str> = sections.iter().filter_map(|section| section["kind"].as_str()).collect();
    assert_eq!(kinds[0], "diff");
    let code = sections.iter().find(|section| section["path"] == "src/store.py").expect("the user of the changed name");
    assert!(code["start_line"].as_u64() <= Some(6) && code["end_line"].as_u64() >= Some(6), "{code}");
    assert!(
        code["factors"]["reference"].is_number() && code["reason"].as_str().is_some_and(|reason| !reason.is_empty())
    );
    let first = sections.iter().find_map(|section| section["path"].as_str());
    assert_eq!(first, Some("src/store.py"), "{sections:#?}");
}

#[test]
fn a_revision_is_searched_for_what_a_task_names() {
    let test = shop();
    let before = test.git(&["rev-parse", "HEAD"]).trim().to_owned();
    test.write("src/store.py", "gone = 1\n");
    test.commit("Nothing left");
    let context = test
        .json(&["context", "--at", &before, "--focus", "src/price.py:2", "--budget", "2000", "--format", "json"], DONE);
    let sections = context["sections"].as_array().expect("sections");
    assert_eq!(sections[0]["kind"], "focus");
    assert_eq!(sections[0]["path"], "src/price.py");
    let store = sections.iter().find(|section| section["path"] == "src/store.py").expect("as it was then");
    assert_snapshot!(store["text"].as_str().expect("text"), @"
    src/store.py:1-6
    ```
    from price import PriceList


    def total(items):
        prices = PriceList()
        return sum(prices.lookup_price(item) for item in items)
    ```
    ");
}

#[test]
fn what_the_task_names_is_there_whatever_its_rank() {
    let test = shop();
    for number in 0..120 {
        let user = format!("from price import PriceList\n\n\ndef user_{number}():\n    lookup_price({number})\n");
        test.write(&format!("src/user_{number}.py"), user);
    }
    let hill = |name: &str| format!("def {name}(road):\n    if road:\n        return 3\n    return 4\n\n\n");
    let hills: String = (0..20).map(|number| hill(&format!("climb_{number}"))).collect();
    test.write("far/hill.py", format!("{hills}{}{hills}", hill("oldTower")));
    test.write("far/away/river.py", hill("swim").repeat(9));
    test.write("far/river.py", hill("swim").repeat(9));
    // revdeck has no parser for this file.
    test.write("far/lake.kt", "val depth = 3\nval widthOfLake = 4\n");
    test.commit("Far away");
    let ask = |task: &str| {
        let place = ["context", "--at", "HEAD", "--focus", "src/price.py", "--budget", "3000", "--task"];
        code(&test.json(&[&place[..], &[task, "--format", "json"]].concat(), DONE))
    };
    let is_named = |section: &&(String, u64, u64, String)| section.3.starts_with("the task names it");
    let named = |task: &str| ask(task).iter().filter(is_named).cloned().collect::<Vec<_>>();
    for is_indexed in [false, true] {
        if is_indexed {
            index(&test);
        }
        for (task, expected, lines) in [
            ("lookup_price as in oldTower", "far/hill.py", Some((121, 124))),
            ("lookup_price as `oldTower` does", "far/hill.py", Some((121, 124))),
            ("lookup_price and far/hill.py", "far/hill.py", None),
            ("lookup_price: see away/river.py:3.", "far/away/river.py", None),
            ("lookup_price by widthOfLake", "far/lake.kt", Some((1, 2))),
        ] {
            let found = named(task);
            assert!(
                !found.is_empty() && found.iter().all(|(path, ..)| path == expected),
                "{task}, {is_indexed}: {found:?}"
            );
            if let Some((first, last)) = lines {
                let [(_, start, end, _)] = &found[..] else { panic!("{task}, {is_indexed}: {found:?}") };
                assert!(*start <= first && *end >= last, "{task}, {is_indexed}: {found:?}");
            }
        }
        // Two files match `river.py`, and `swim` is no name in the code.
        assert_eq!(named("lookup_price, river.py, swim"), [], "{is_indexed}");
    }
}

#[test]
fn of_what_the_task_names_too_much_the_rest_is_left_out_with_the_reason() {
    let test = shop();
    let task: String = (0..40).map(|number| format!("walk_{number} ")).collect();
    let ask = ["context", "--at", "HEAD", "--focus", "src/price.py", "--task", &task, "--budget", "600"];
    let context = test.json(&[&ask[..], &["--format", "json"]].concat(), DONE);
    assert!(code(&context).iter().any(|(_, _, _, reason)| reason.starts_with("the task names it")), "{context:#}");
    let left = context["left_out"].as_array().expect("what is left out");
    assert!(left.iter().any(|left| left["reason"] == "named by the task, which names too much"), "{left:?}");
    assert!(context["total_tokens"].as_u64() <= Some(600));
}

#[test]
fn a_diff_as_the_task_is_understood_and_its_files_are_not_looked_for() {
    let test = shop();
    let diff = "--- a/src/price.py\n+++ b/src/price.py\n@@ -2 +2 @@\n-    def lookup_price(self, item):\n+    def price_of(self, item):\n";
    let context = test.json(&["context", "--at", "HEAD", "--task", diff, "--budget", "2000", "--format", "json"], DONE);
    let (rest, found): (Vec<_>, Vec<_>) = code(&context).into_iter().partition(|(path, ..)| path == "src/price.py");
    assert_eq!(found.first().map(|(path, ..)| path.as_str()), Some("src/store.py"), "{found:?}");
    // The rest of the changed function: the lines that the diff does not contain.
    assert_eq!(rest.iter().map(|(_, start, end, _)| (*start, *end)).collect::<Vec<_>>(), [(3, 3)]);
    let without = test
        .json(&["context", "--at", "HEAD", "--task", diff, "--budget", "2000", "--no-tests", "--format", "json"], DONE);
    let is_test = |section: &Value| section["path"] == "tests/test_store.py";
    let excluded = |context: &Value, reason: &str| {
        let reasons = context["excluded"].as_array().expect("reasons");
        reasons.iter().find(|excluded| excluded["reason"] == reason).and_then(|excluded| excluded["count"].as_u64())
    };
    assert_eq!((excluded(&context, "filtered: tests"), excluded(&without, "filtered: tests")), (None, Some(1)));
    assert!(!without["sections"].as_array().expect("sections").iter().any(is_test));
    let only = ["context", "--at", "HEAD", "--task", diff, "--files", "tests/", "--kinds", "test", "--format", "json"];
    let only = test.json(&only, DONE);
    let code = only["sections"].as_array().expect("sections").iter().filter(|section| !section["path"].is_null());
    assert!(code.clone().count() > 0 && code.clone().all(is_test), "{only:#}");
    assert_eq!(excluded(&only, "filtered: files of other paths"), Some(41), "{only:#}");
    let ask = ["context", "--at", "HEAD", "--task", diff, "--kinds", "test", "--no-documentation", "--explain"];
    assert_snapshot!(lines_from(&test.output(&ask, DONE), "filtered: ").join("\n"), @"filtered: 42 pieces of other kinds, 1 piece hardly likely to matter");
}

/// Removes scores and factors from an explanation: they change with each fit of the weights.
fn without_scores(explanation: &str) -> String {
    let is_score = |word: &str| word.contains('.') && word.trim_end_matches(',').parse::<f64>().is_ok();
    let line = |line: &str| -> String {
        let columns = line.split("  ").map(str::trim).filter(|column| !column.is_empty());
        columns.filter(|column| !column.split(' ').any(is_score)).collect::<Vec<_>>().join("  ")
    };
    explanation.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_same_question_has_the_same_answer_and_explains_itself() {
    let test = shop();
    let ask = ["context", "--at", "HEAD", "--focus", "src/price.py", "--budget", "900", "--format", "json"];
    assert_eq!(test.json(&ask, DONE), test.json(&ask, DONE));
    let ask = ["context", "--at", "HEAD", "--focus", "src/price.py", "--budget", "900", "--explain"];
    let explained = without_scores(&test.output(&ask, DONE));
    // The 40 unrelated files are left out.
    assert_snapshot!(lines_with(&explained, |line| !line.starts_with("other/")), @"
    src/price.py:1-3  focus  31  in focus; last changed 2026-01-02 in [hash]
    src/store.py:1-6  module  42  it has the change's words; in 50 % of their commits; where its imports, its beginning or its end is; last changed 2026-01-02 in [hash]
    tests/test_store.py:1-5  test  31  it changed together with the change's files; in 50 % of their commits; where its imports, its beginning or its end is; last changed 2026-01-02 in [hash]

    887 of 900 tokens (99 %), 30 sections
    for any model, counted exactly (o200k_base)

    left out: 14 pieces
    overview  21  over the budget
    ");
}

#[test]
fn what_the_project_ignores_is_told_of_only_where_it_is_changed() {
    let test = shop();
    test.write(".gitignore", "built/\n");
    test.write(
        "built/store.py",
        "from price import PriceList\n\n\ndef built_total():\n    PriceList().lookup_price(1)\n",
    );
    test.git(&["add", "--force", "built/store.py"]);
    test.commit("Built");
    let paths = || {
        let ask = ["context", "--at", "HEAD", "--focus", "src/price.py", "--task", "lookup_price", "--format", "json"];
        let context = test.json(&ask, DONE);
        let sections = context["sections"].as_array().expect("sections").clone();
        sections.iter().filter_map(|section| section["path"].as_str().map(str::to_owned)).collect::<Vec<_>>()
    };
    assert!(paths().contains(&"src/store.py".to_owned()) && !paths().contains(&"built/store.py".to_owned()));
    let focus = ["context", "--at", "HEAD", "--focus", "built/store.py", "--format", "json"];
    assert_eq!(test.json(&focus, DONE)["sections"][0]["path"], "built/store.py");
}

#[test]
fn a_file_is_no_test_because_its_name_ends_like_one() {
    let test = shop();
    test.write(
        "src/latest.py",
        "from price import PriceList\n\n\ndef latest():\n    return PriceList().lookup_price(1)\n",
    );
    test.commit("The latest");
    let ask = ["context", "--at", "HEAD", "--focus", "src/price.py", "--task", "lookup_price", "--no-tests"];
    let context = test.json(&[&ask[..], &["--format", "json"]].concat(), DONE);
    let sections = context["sections"].as_array().expect("sections");
    let latest = sections.iter().find(|section| section["path"] == "src/latest.py").expect("the user of the name");
    assert_ne!(latest["kind"], "test");
    assert!(sections.iter().all(|section| section["path"] != "tests/test_store.py"));
}

#[test]
fn what_comes_after_a_change_has_no_say_in_its_context() {
    let test = shop();
    let commit = |number: usize, paths: &[&str]| -> Vec<(String, String)> {
        paths.iter().map(|path| ((*path).to_owned(), format!("def walk(road):\n    return {number}\n"))).collect()
    };
    let together = |paths: &[&str]| (0..6).map(|number| commit(number, paths)).collect::<Vec<_>>();
    test.import(&together(&["src/price.py", "other/part_3.py"]));
    test.import(&[commit(7, &["src/price.py", "other/part_5.py"])]);
    let reviewed = test.git(&["rev-parse", "main"]).trim().to_owned();
    test.git(&["reset", "--hard", "--quiet"]);
    // If the index is missing, the first context starts a background refresh, and a later context no longer reports
    // it.
    index(&test);
    let scope = format!("commit:{reviewed}");
    for more in [&["--budget", "1500"][..], &[]] {
        let ask = [&["context", &scope, "--format", "json"], more].concat();
        let before = test.json(&ask, DONE);
        assert!(paths(&before).contains(&"other/part_3.py"), "{before:#}");
        test.import(&together(&["src/price.py", "other/part_9.py"]));
        assert_eq!(test.json(&ask, DONE), before);
    }
}

#[test]
fn who_uses_what_is_deleted_is_looked_for() {
    let test = shop();
    // With an index no other note is printed.
    index(&test);
    fs::remove_file(test.repo().join("src/price.py")).expect("removed");
    for more in [&["--budget", "1500"][..], &[]] {
        let context = test.json(&[&["context", "worktree", "--format", "json"], more].concat(), DONE);
        assert_eq!(paths(&context).first(), Some(&"src/store.py"), "{context:#}");
        allow_duplicates!(assert_snapshot!(notes(&context), @"of the change not sent, deleted: src/price.py"));
    }
}

#[test]
fn a_renamed_file_has_the_history_of_its_old_name() {
    let test = shop();
    let text = |number: usize| format!("{}    return {number}\n", "def walk(road):\n    road.go()\n".repeat(8));
    let file = |path: &str, number: usize| (path.to_owned(), text(number));
    let commits = (0..8).map(|number| vec![file("src/a.py", number), file("other/part_7.py", number)]);
    test.import(&commits.collect::<Vec<_>>());
    test.git(&["reset", "--hard", "--quiet"]);
    test.git(&["mv", "src/a.py", "src/b.py"]);
    test.write("src/b.py", text(99));
    let context = test.json(&["context", "worktree", "--budget", "1500", "--format", "json"], DONE);
    let sections = context["sections"].as_array().expect("sections");
    let friend = sections.iter().find(|section| section["path"] == "other/part_7.py").expect("what changed with it");
    assert_snapshot!(test.normalise(friend["reason"].as_str().expect("text")), @"found just in time, where the change's words are densest; it has the change's words; in 87 % of their commits; the change's words; last changed 2026-01-02 in [hash]");
}
