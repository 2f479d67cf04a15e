//! Two places with the same code in one file are two problems, whichever of them a review sees.

use serde_json::json;

use crate::env::{DONE, TestEnvironment};
use crate::llm::server::{Model, says};

const LOAD: &str = "def load(path):\n    try:\n        return open(path)\n    except:\n        return None\n";
const SAVE: &str =
    "def save(path, text):\n    try:\n        open(path, \"w\").write(text)\n    except:\n        return None\n";

/// Returns id, first line and status of each finding, by line.
fn findings(test: &TestEnvironment) -> Vec<(String, u64, String)> {
    let listed = test.json(&["findings", "--status", "all", "--format", "json"], DONE);
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let row = |finding: &serde_json::Value| {
        let line = finding["line_start"].as_u64().unwrap_or_default();
        (text(&finding["finding_id"]), line, text(&finding["status"]))
    };
    let mut rows: Vec<_> = listed["findings"].as_array().expect("findings").iter().map(row).collect();
    rows.sort_by_key(|(_, line, _)| *line);
    rows
}

fn lines(test: &TestEnvironment) -> Vec<u64> {
    findings(test).into_iter().map(|(_, line, _)| line).collect()
}

fn review(test: &TestEnvironment, arguments: &[&str]) {
    let out = test.revdeck(&[&["review", "--wait"], arguments].concat());
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
}

fn place() -> TestEnvironment {
    let test = TestEnvironment::new();
    test.write("README.md", "# Sample\n");
    test.commit("First");
    test
}

#[test]
fn the_same_code_below_or_above_is_a_second_finding() {
    for (text, kept, new) in [(format!("{LOAD}\n\n{SAVE}"), 4, 11), (format!("{SAVE}\n\n{LOAD}"), 11, 4)] {
        let test = place();
        test.write("cart.py", LOAD);
        review(&test, &[]);
        assert_eq!(lines(&test), [4]);
        let first = findings(&test).remove(0).0;
        test.commit("Load");
        test.write("cart.py", &text);
        review(&test, &[]);
        let found = findings(&test);
        assert_eq!(found.len(), 2, "{found:?}");
        for (id, line, status) in &found {
            assert_eq!((*line == kept, status.as_str()), (*id == first, "open"), "{found:?}");
            assert!([kept, new].contains(line), "{found:?}");
        }
        // Both keep their ids in every later review, of one of them or of both.
        test.write("cart.py", format!("import os\n\n\n{text}"));
        review(&test, &[]);
        let moved = |rows: &[(String, u64, String)], by: u64| -> Vec<(String, u64, String)> {
            rows.iter().map(|(id, line, status)| (id.clone(), line + by, status.clone())).collect()
        };
        let of_defects = |test: &TestEnvironment| -> Vec<(String, u64, String)> {
            findings(test).into_iter().filter(|(_, line, _)| *line > 3).collect()
        };
        assert_eq!(of_defects(&test), moved(&found, 3));
        test.commit("Save");
        review(&test, &["--range", "HEAD~2..HEAD"]);
        assert_eq!(of_defects(&test), moved(&found, 3));
    }
}

#[test]
fn code_that_was_moved_takes_its_finding_with_it() {
    let test = place();
    let rest = "\n\ndef other(a):\n    return a + 1\n";
    test.write("cart.py", format!("{LOAD}{rest}"));
    review(&test, &[]);
    test.commit("Load");
    let before = findings(&test);
    test.write("cart.py", format!("def other(a):\n    return a + 1\n\n\n{LOAD}"));
    review(&test, &[]);
    let after = findings(&test);
    assert_eq!(after.len(), 1, "{after:?}");
    assert_eq!((&after[0].0, after[0].1), (&before[0].0, 8));
}

#[test]
fn a_dismissal_does_not_cover_the_same_code_at_another_place() {
    let test = place();
    test.write("cart.py", LOAD);
    review(&test, &[]);
    let id = findings(&test).remove(0).0;
    assert!(test.revdeck(&["triage", &id, "dismissed", "--reason", "it may fail"]).status.success());
    test.commit("Load");
    test.write("cart.py", format!("{SAVE}\n\n{LOAD}"));
    review(&test, &[]);
    let states: Vec<(u64, String)> = findings(&test).into_iter().map(|(_, line, status)| (line, status)).collect();
    assert_eq!(states, [(4, "open".to_owned()), (11, "dismissed".to_owned())]);
}

#[test]
fn a_model_that_reports_only_the_new_place_does_not_take_the_known_one() {
    let test = place();
    let report = |line: u32| {
        let finding = json!({ "path": "cart.py", "line_start": line, "line_end": line + 1, "kind": "CORRECTNESS",
            "severity": "medium", "confidence": "high", "priority": 2, "title": "Every error is swallowed",
            "explanation": "Even a typo in a name.", "quoted_code": "    except:\n        return None" });
        says(format!("```json\n{}\n```", json!({ "findings": [finding] })))
    };
    let model = Model::start(vec![report(4), report(4)]);
    test.settings(&format!(
        "[reviewers.m]\nkind = \"openai\"\nmodel = \"gpt-4o-test\"\nbase_url = {:?}\napi_key_cmd = \"printf sk-made-up\"\n",
        model.url()
    ));
    test.write("cart.py", LOAD);
    review(&test, &["--reviewer", "m"]);
    assert_eq!(lines(&test), [4]);
    test.commit("Load");
    test.write("cart.py", format!("{SAVE}\n\n{LOAD}"));
    review(&test, &["--reviewer", "m"]);
    assert_eq!(lines(&test), [4, 11]);
}

#[test]
fn a_second_secret_that_looks_like_the_first_one_is_a_finding_of_its_own() {
    let secret = |letters: &str| format!("    aws_key = \"AKIA{letters}\"\n    return aws_key\n");
    let (old, new) = (secret("Z7Q2M4X6B3N5V2K4"), secret("Q5T7W3R2Y6P4L6D3"));
    for reviewer in ["builtin", "m"] {
        let test = place();
        let model = Model::start(vec![says("```json\n{\"findings\": []}\n```"); 2]);
        test.settings(&format!(
            "[reviewers.m]\nkind = \"openai\"\nmodel = \"gpt-4o-test\"\nbase_url = {:?}\napi_key_cmd = \"printf sk-made-up\"\n",
            model.url()
        ));
        test.write("keys.py", format!("def first():\n{old}"));
        test.revdeck(&["review", "--wait", "--reviewer", reviewer]);
        assert_eq!(lines(&test), [2], "{reviewer}");
        test.commit("First key");
        test.write("keys.py", format!("def second():\n{new}\n\ndef first():\n{old}"));
        test.revdeck(&["review", "--wait", "--reviewer", reviewer]);
        assert_eq!(lines(&test), [2, 7], "{reviewer}: {:?}", findings(&test));
    }
}

#[test]
fn an_imported_problem_at_a_second_place_is_a_finding_of_its_own() {
    let test = place();
    let import = |lines: &[u32]| {
        let problem = |line: &u32| {
            let place = json!({ "path": "cart.py", "range": { "start": { "line": line }, "end": { "line": line } } });
            json!({ "message": "bare except", "location": place, "severity": "WARNING", "code": { "value": "E722" },
                "source": { "name": "lint" } })
        };
        let report: Vec<String> = lines.iter().map(|line| problem(line).to_string()).collect();
        std::fs::create_dir_all(test.home()).expect("a folder");
        let file = test.home().join("report.jsonl");
        std::fs::write(&file, report.join("\n")).expect("a report");
        let out = test.revdeck(&["import", "rdjsonl", &file.to_string_lossy()]);
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    };
    test.write("cart.py", LOAD);
    import(&[4]);
    let id = findings(&test).remove(0).0;
    assert!(test.revdeck(&["triage", &id, "dismissed", "--reason", "it may fail"]).status.success());
    test.commit("Load");
    test.write("cart.py", format!("{SAVE}\n\n{LOAD}"));
    import(&[4, 11]);
    let found = findings(&test);
    let states: Vec<(u64, &str)> = found.iter().map(|(_, line, status)| (*line, status.as_str())).collect();
    assert_eq!(states, [(4, "open"), (11, "dismissed")]);
    assert_eq!(found[1].0, id);
}

#[test]
fn a_finding_that_was_followed_into_a_renamed_file_keeps_its_id_when_its_old_path_comes_back() {
    let test = place();
    test.write("cart.py", LOAD);
    review(&test, &[]);
    let id = findings(&test).remove(0).0;
    test.commit("Load");
    std::fs::remove_file(test.repo().join("cart.py")).expect("removed");
    test.write("basket.py", format!("NAME = 'basket'\n\n\n{LOAD}"));
    review(&test, &[]);
    test.commit("Rename");
    test.write("cart.py", SAVE);
    review(&test, &[]);
    let listed = test.json(&["findings", "--status", "all", "--format", "json"], DONE);
    let place = |finding: &serde_json::Value| {
        (finding["repo_relative_path"].as_str().unwrap_or_default().to_owned(), finding["finding_id"] == id.as_str())
    };
    let mut places: Vec<(String, bool)> = listed["findings"].as_array().expect("findings").iter().map(place).collect();
    places.sort();
    assert_eq!(places, [("basket.py".to_owned(), true), ("cart.py".to_owned(), false)]);
}
