//! What was learned at work: in a review by the built-in reviewer, and measured by `revdeck knowledge evaluate`.

use serde_json::Value;

use crate::env::{TestEnvironment, err, run};

const DONE: i32 = 0;
const USAGE: i32 = 2;

#[track_caller]
fn json(test: &TestEnvironment, arguments: &[&str]) -> Value {
    let text = run(test, &[arguments, &["--format", "json"]].concat(), DONE);
    serde_json::from_str(&text).expect("one JSON object")
}

/// The findings of a review that stand for a pattern, as lines with kinds.
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

#[test]
fn learned_patterns_are_measured_on_the_fixes_of_a_repository() {
    let test = TestEnvironment::new();
    let file = |number: usize, check: &str| {
        let lines: String = (0..30).map(|line| format!("    step_{line}(item_{number})\n")).collect();
        format!("def f(item_{number}):\n{lines}    if {check}:\n        return 0\n{lines}")
    };
    for number in 0..16 {
        test.write(&format!("part_{number}.py"), file(number, &format!("item_{number} == None")));
    }
    test.commit("All parts");
    let repo = test.repo();
    let repo = repo.to_str().expect("a plain path").to_owned();
    let refused = test.revdeck(&["knowledge", "evaluate", &repo]);
    assert_eq!(refused.status.code(), Some(USAGE), "{}", err(&refused));
    for number in 0..16 {
        test.write(&format!("part_{number}.py"), file(number, &format!("item_{number} is None")));
        test.commit(&format!("Fix the check of part {number}"));
    }
    let measured = json(&test, &["knowledge", "evaluate", &repo]);
    let source = &measured["sources"][0];
    assert_eq!(
        (&source["fixes"], &source["asked"], &source["leaks"]),
        (&12.into(), &4.into(), &0.into()),
        "{measured:#}"
    );
    let all = |ranking: usize| source["rows"][ranking]["figures"][0]["rate"].as_f64().expect("a rate");
    assert!((all(0) - 1.0).abs() < 1e-9 && all(3) < 0.1, "{measured:#}");
}
