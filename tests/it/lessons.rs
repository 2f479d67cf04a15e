//! Learned patterns in use: in a review by the built-in reviewer, and measured by `revdeck knowledge evaluate`.

use serde_json::Value;

use crate::env::{DONE, TestEnvironment, USAGE, err, run};

#[track_caller]
fn json(test: &TestEnvironment, arguments: &[&str]) -> Value {
    test.json(&[arguments, &["--format", "json"]].concat(), DONE)
}

/// Returns the lines and kinds of a review's findings that come from a pattern.
fn raised(test: &TestEnvironment) -> Vec<(u64, String)> {
    let review = json(test, &["review", "--wait"]);
    let findings = review["findings"].as_array().expect("findings").iter();
    let learned = findings.filter(|finding| finding["pattern"].is_string());
    learned
        .map(|finding| {
            assert_eq!(finding["priority"], 3, "{finding:#}");
            let id = finding["pattern"].as_str().expect("an id");
            assert!(finding["explanation"].as_str().is_some_and(|text| text.contains(id)), "{finding:#}");
            (finding["line_start"].as_u64().expect("a line"), finding["kind"].as_str().expect("a kind").to_owned())
        })
        .collect()
}

#[test]
fn a_review_says_where_code_is_like_a_known_mistake_and_forgets_what_is_forgotten() {
    let test = TestEnvironment::new();
    test.write("a.py", "def f(entry):\n    return entry.name\n");
    test.commit("One");
    test.write("a.py", "def f(entry):\n    if entry == None:\n        return 0\n    return entry.name\n");
    assert_eq!(raised(&test), [(2, "CORRECTNESS".to_owned())]);

    let patterns = json(&test, &["knowledge", "list", "--language", "python"]);
    let is_it = |pattern: &&Value| pattern["broken"].as_str().is_some_and(|form| form.contains("== None"));
    let all = patterns["patterns"].as_array().expect("patterns");
    for pattern in all.iter().filter(is_it) {
        run(&test, &["knowledge", "mute", pattern["id"].as_str().expect("an id")], DONE);
    }
    test.write("a.py", "def f(entry):\n    if entry == None:\n        return 1\n    return entry.name\n");
    assert_eq!(raised(&test), []);
}

/// Returns a file with one comparison and this many calls before and after it.
fn checked(number: usize, calls: usize, check: &str) -> String {
    let item = format!("item_{number}_{calls}");
    let lines: String = (0..calls).map(|line| format!("    step_{line}({item})\n")).collect();
    format!("def f({item}):\n{lines}    if {item} {check} None:\n        return 0\n{lines}")
}

/// Commits a file with a wrong comparison for each path in one commit, and then a fix of each.
fn fixes_of(test: &TestEnvironment, year: u32, calls: usize, paths: &[String]) {
    let commit = |message: &str| {
        test.git(&["add", "-A"]);
        let date = format!("{year}-01-02T03:04:05Z");
        let made = test.command("git").env("GIT_COMMITTER_DATE", date).args(["commit", "-q", "-m", message]).status();
        assert!(made.expect("git starts").success());
    };
    for (number, path) in paths.iter().enumerate() {
        test.write(path, checked(number, calls, "=="));
    }
    commit("All parts");
    for (number, path) in paths.iter().enumerate() {
        test.write(path, checked(number, calls, "is"));
        commit(&format!("Fix the check of part {number}"));
    }
}

fn parts(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("part_{number}.py")).collect()
}

/// Returns the rate of a ranking over all fixes.
fn rate(source: &Value, ranking: &str) -> f64 {
    let rows = source["rows"].as_array().expect("rows");
    let row = rows.iter().find(|row| row["ranking"] == ranking).expect("the ranking");
    row["figures"][0]["rate"].as_f64().expect("a rate")
}

#[test]
fn learned_patterns_are_measured_on_the_fixes_of_a_repository() {
    let test = TestEnvironment::new();
    test.write("empty.py", "");
    test.commit("Nothing");
    let repo = test.repo();
    let repo = repo.to_str().expect("a plain path").to_owned();
    let refused = test.revdeck(&["knowledge", "evaluate", &repo]);
    assert_eq!(refused.status.code(), Some(USAGE), "{}", err(&refused));
    fixes_of(&test, 2026, 30, &parts(16));
    let measured = json(&test, &["knowledge", "evaluate", &repo]);
    let source = &measured["sources"][0];
    assert_eq!(
        (&source["fixes"], &source["asked"], &source["leaks"]),
        (&12.into(), &4.into(), &0.into()),
        "{measured:#}"
    );
    assert!((rate(source, "learned patterns") - 1.0).abs() < 1e-9, "{measured:#}");
    assert!(rate(source, "trigrams") < 0.1, "{measured:#}");
    let said = run(&test, &["knowledge", "evaluate", &repo], DONE);
    // The rankings select five of 63 lines, all of them code.
    assert!(said.contains("100.0 % (12.6x 12.6x)") && said.contains("chance, any line"), "{said}");
}

#[test]
fn fixes_of_several_repositories_are_in_one_order_of_time() {
    let [earlier, later] = [(); 2].map(|()| TestEnvironment::new());
    // Fixes in tests and in other languages do not count.
    let others = ["tests/test_part.py".to_owned(), "part.rb".to_owned()];
    fixes_of(&earlier, 2024, 30, &parts(12));
    fixes_of(&later, 2026, 60, &[&parts(4)[..], &others].concat());
    let [first, second] = [&later, &earlier].map(|test| test.repo().to_str().expect("a plain path").to_owned());
    let arguments = ["knowledge", "evaluate", "--together", "--language", "python", &first, &second];
    let measured = json(&earlier, &arguments);
    let sources = measured["sources"].as_array().expect("sources");
    let [source] = sources.as_slice() else { panic!("{measured:#}") };
    assert_eq!((&source["fixes"], &source["asked"]), (&12.into(), &4.into()), "{measured:#}");
    assert!((rate(source, "learned patterns") - 1.0).abs() < 1e-9, "{measured:#}");
    // All measured fixes are in the repository with the longer files.
    assert!((rate(source, "chance, any line") - 5.0 / 123.0).abs() < 1e-9, "{measured:#}");
}
