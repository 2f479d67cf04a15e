//! Models over HTTP that make fixes: revdeck applies edits that fit and reports the others back.

use insta::assert_snapshot;
use serde_json::{Value, json};

use super::agent::{config, worker_of};
use super::{UNUSED, findings, fix, id_of, run, status_of};
use crate::env::{DONE, TestEnvironment};
use crate::llm::server::{Model, Turn, says};
use crate::runner::place::wait_for;

const CODE: &str = "def total(rows):\n    sum = 0\n    for row in rows:\n        sum += row.price\n    return sum\n\n\n\
                    TOKEN = \"ghp_x8Kq2mVb7TzR4nLw9YcJ1sDf6HgP3aEo5UiX\"\n\n\ndef wide(a, b, c, d, e, f, g, h):\n    return call(a, b, c, d, e, f, g, h)\n";

/// Creates a repository with findings of the built-in reviewer, a model that makes fixes, and this default reviewer.
fn with_model(script: Vec<Turn>, default: &str) -> (TestEnvironment, Model, String) {
    let test = TestEnvironment::new();
    test.write("a.py", CODE);
    test.commit("one");
    let model = Model::start(script);
    let settings = format!(
        "default_reviewer = {default:?}\n[resolve]\nreviewer = \"m\"\n[reviewers.m]\nkind = \"openai\"\nmodel = \"gpt-4o-test\"\n\
         base_url = {:?}\napi_key_cmd = \"printf sk-made-up\"\nattempts = 1\nprice_input = 2.0\nprice_output = 8.0\n",
        model.url()
    );
    std::fs::write(config(&test), settings).expect("settings");
    run(&test, &["review", "--reviewer", "builtin", "--wait"], 0);
    let ids = findings(&test, "a.py");
    let titles = test.json(&["findings", "--status", "all", "--format", "json"], 0);
    let wide = titles["findings"].as_array().expect("findings").iter();
    let wide = wide.filter(|finding| finding["line_start"] == 11).map(|finding| finding["finding_id"].clone()).next();
    let id = wide.unwrap_or_else(|| panic!("{ids:?} {titles}")).as_str().expect("an id").to_owned();
    (test, model, id)
}

fn edits(edits: &[(&str, &str, &str)]) -> Turn {
    let edits: Vec<Value> =
        edits.iter().map(|(path, old, new)| json!({ "path": path, "old": old, "new": new })).collect();
    says(format!("Here:\n```json\n{}\n```\n", json!({ "edits": edits })))
}

fn good() -> Turn {
    edits(&[(
        "a.py",
        "def wide(a, b, c, d, e, f, g, h):\n    return call(a, b, c, d, e, f, g, h)\n",
        "def wide(options):\n    return call(options)\n",
    )])
}

/// Returns the text that the model received in its nth request.
fn told(model: &Model, n: usize) -> String {
    model.requests()[n]["messages"].to_string()
}

#[test]
fn edits_that_do_not_fit_are_said_back_and_the_ones_that_do_are_a_patch() {
    let (test, model, id) = with_model(
        vec![edits(&[("a.py", "def wyde(", "def x("), ("../../etc/passwd", "root", "me")]), good()],
        "builtin",
    );
    let made = fix(&test, &[&id], 0);
    assert_eq!((made["status"].as_str(), made["verdict"].as_str()), (Some("offered"), Some("clean")), "{made}");
    assert_eq!((made["reviewer"].as_str(), made["model"].as_str()), (Some("m"), Some("gpt-4o-test")));
    assert!(made["tokens"]["input"].as_u64() > Some(300) && made["cost"].as_f64() > Some(0.0), "{made}");
    let first = told(&model, 0);
    assert!(first.contains(&id) && first.contains("def total(rows)") && first.contains("\\\"edits\\\""), "{first}");
    assert!(!first.contains("ghp_x8Kq2mVb7TzR4nLw9YcJ1sDf6HgP3aEo5UiX"), "secrets are masked");
    let second = told(&model, 1);
    assert!(second.contains("does not stand in the file") && second.contains("was not shown"), "{second}");
    assert_eq!(model.asked(), 2);
    run(&test, &["fix", "apply", "latest"], 0);
    let now = std::fs::read_to_string(test.repo().join("a.py")).expect("a file");
    let wide = "def wide(a, b, c, d, e, f, g, h):\n    return call(a, b, c, d, e, f, g, h)\n";
    assert_eq!(now, CODE.replace(wide, "def wide(options):\n    return call(options)\n"));
    assert_eq!(status_of(&test, &id), "addressed");
    let spent = std::fs::read_to_string(test.home().join("state/spending.ndjson")).expect("an account");
    assert_eq!(spent.lines().count(), 2, "each answer is paid for: {spent}");
}

#[test]
fn an_exact_fix_costs_nothing_and_so_does_its_review() {
    let (test, model, _) = with_model(Vec::new(), "m");
    test.write("b.py", UNUSED);
    test.commit("two");
    run(&test, &["review", "--reviewer", "builtin", "--wait"], 0);
    let id = findings(&test, "b.py").into_iter().next().expect("a finding");
    let made = fix(&test, &[&id], 0);
    assert_eq!((made["status"].as_str(), made["reviewer"].as_str()), (Some("offered"), Some("builtin")), "{made}");
    let review = made["reviews"][0].as_str().expect("a review of the patch");
    let shown = test.json(&["show", review, "--format", "json"], 0);
    assert_eq!(shown["run"]["reviewer"], "builtin", "{shown}");
    assert_eq!(model.asked(), 0);
}

#[test]
fn a_model_whose_edits_never_fit_makes_no_fix() {
    let never = || edits(&[("a.py", "nothing of the sort", "x")]);
    let (test, model, id) = with_model(vec![never(), says("I would rather not."), never(), good()], "builtin");
    let made = fix(&test, &[&id], 3);
    assert_eq!((made["status"].as_str(), model.asked()), (Some("failed"), 3));
    assert!(made["reason"].as_str().expect("a reason").contains("its edits do not fit"), "{made}");
    assert!(made["cost"].as_f64() > Some(0.0), "what was paid is on record: {made}");
}

#[test]
fn the_patch_there_is_stays_an_offer_when_it_cannot_be_made_better() {
    let report = json!({ "findings": [{ "path": "a.py", "line_start": 12, "line_end": 12, "kind": "CORRECTNESS", "priority": 1,
        "title": "options may be None", "explanation": "nobody checks it", "quoted_code": "    return call(options)" }] });
    let never = || says("I would rather not.");
    let script = vec![good(), says(format!("```json\n{report}\n```")), never(), never(), never()];
    let (test, _model, id) = with_model(script, "m");
    let made = fix(&test, &[&id], 0);
    assert_eq!((made["status"].as_str(), made["verdict"].as_str()), (Some("offered"), Some("1 finding")), "{made}");
    assert!(made["reason"].as_str().expect("a reason").contains("it was not made better: its edits do not fit"));
    run(&test, &["fix", "apply", "latest"], 0);
    let now = std::fs::read_to_string(test.repo().join("a.py")).expect("a file");
    assert_snapshot!(now, @r#"
    def total(rows):
        sum = 0
        for row in rows:
            sum += row.price
        return sum


    TOKEN = "ghp_x8Kq2mVb7TzR4nLw9YcJ1sDf6HgP3aEo5UiX"


    def wide(options):
        return call(options)
    "#);
}

#[test]
fn a_reviewer_that_sees_the_problem_still_there_has_it_made_again() {
    let report = |line: u32| {
        let finding = json!({ "path": "a.py", "line_start": line, "line_end": line, "kind": "CORRECTNESS", "priority": 1,
            "title": "options may be None", "explanation": "nobody checks it", "quoted_code": "    return call(options)" });
        says(format!("```json\n{}\n```", json!({ "findings": [finding] })))
    };
    let better = edits(&[("a.py", "    return call(options)\n", "    return call(options or ())\n")]);
    let (test, model, id) = with_model(vec![good(), report(12), better], "m");
    let made = fix(&test, &[&id], 0);
    assert_eq!((made["follow_up_count"].as_u64(), made["verdict"].as_str()), (Some(1), Some("clean")), "{made}");
    let again = told(&model, 2);
    assert!(again.contains("options may be None") && again.contains("    return call(options)"), "{again}");
    assert_snapshot!(test.output(&["fix", "show", &id_of(&made)], DONE), @r#"
    diff --git a/a.py b/a.py
    index [hash]..[hash] 100644
    --- a/a.py
    +++ b/a.py
    @@ -8,5 +8,5 @@ def total(rows):
     TOKEN = "ghp_x8Kq2mVb7TzR4nLw9YcJ1sDf6HgP3aEo5UiX"
     
     
    -def wide(a, b, c, d, e, f, g, h):
    -    return call(a, b, c, d, e, f, g, h)
    +def wide(options):
    +    return call(options or ())
    "#);
    // With follow-ups off, revdeck offers the first patch together with the findings about it.
    let (test, model, id) = with_model(vec![good(), report(12)], "m");
    let file = config(&test);
    let settings = std::fs::read_to_string(&file).expect("settings");
    std::fs::write(&file, settings.replace("[resolve]", "[resolve]\nfollow_ups = 0")).expect("settings");
    let made = fix(&test, &[&id], 0);
    assert_eq!((made["verdict"].as_str(), model.asked()), (Some("1 finding"), 2), "{made}");
}

#[test]
fn what_a_model_suggests_exactly_needs_no_model_to_be_put_in() {
    let finding = json!({ "findings": [{ "path": "a.py", "line_start": 2, "line_end": 2, "kind": "CORRECTNESS", "priority": 2,
        "title": "`sum` hides a built-in", "explanation": "it does", "quoted_code": "    sum = 0", "suggestion": "Rename it.",
        "replacement": "    sum = 0.0" }] });
    let (test, model, _) = with_model(vec![says(format!("```json\n{finding}\n```"))], "builtin");
    run(&test, &["review", "--reviewer", "m", "--wait"], 0);
    let all = test.json(&["findings", "--status", "all", "--format", "json"], 0);
    let all = all["findings"].as_array().expect("findings").clone();
    let id = all.iter().find(|finding| finding["line_start"] == 2).expect("the model's")["finding_id"].clone();
    let asked = model.asked();
    let made = fix(&test, &[id.as_str().expect("an id")], 0);
    assert_eq!((made["reviewer"].as_str(), model.asked()), (Some("builtin"), asked), "{made}");
    run(&test, &["fix", "apply", "latest"], 0);
    assert_eq!(
        std::fs::read_to_string(test.repo().join("a.py")).expect("a file"),
        CODE.replace("sum = 0", "sum = 0.0")
    );
}

#[test]
fn a_suggestion_block_in_the_words_of_a_model_is_put_in_like_a_replacement() {
    let report = |line: u32, improvement: &str| {
        json!({ "path": "a.py", "line": line, "range": { "startLine": line, "endLine": line + 1 }, "codeSmellType": "CORRECTNESS",
            "severity": "major", "title": format!("line {line} is wrong"), "improvement": improvement })
    };
    let fits = report(
        4,
        "Skip what has no price:\r\n```suggestion python\r\n        sum += row.price or 0\r\n    print(sum)\r\n```",
    );
    let breaks = report(11, "```suggestion\ndef wide(:\n```");
    let findings = json!({ "findings": [fits, breaks] });
    let (test, model, _) = with_model(vec![says(format!("```json\n{findings}\n```"))], "builtin");
    run(&test, &["review", "--reviewer", "m", "--wait"], 0);
    let all = test.json(&["findings", "--status", "all", "--format", "json"], 0);
    let all = all["findings"].as_array().expect("findings").clone();
    let told = |line: u64| {
        let of_model = |finding: &&Value| finding["line_start"] == line && finding["kind"] == "CORRECTNESS";
        all.iter().find(of_model).unwrap_or_else(|| panic!("{line}: {all:?}")).clone()
    };
    assert_eq!(
        (told(4)["line_end"].as_u64(), told(4)["suggestion"].clone()),
        (
            Some(5),
            json!({ "text": "Skip what has no price:", "replacement": "        sum += row.price or 0\n    print(sum)\n" })
        )
    );
    // What would not parse is kept as text.
    assert_eq!(told(11)["suggestion"], json!({ "text": "```suggestion\ndef wide(:\n```" }));
    let asked = model.asked();
    let made = fix(&test, &[told(4)["finding_id"].as_str().expect("an id")], 0);
    assert_eq!((made["reviewer"].as_str(), model.asked()), (Some("builtin"), asked), "{made}");
    run(&test, &["fix", "apply", "latest"], 0);
    assert_eq!(
        std::fs::read_to_string(test.repo().join("a.py")).expect("a file"),
        CODE.replace("        sum += row.price\n    return sum\n", "        sum += row.price or 0\n    print(sum)\n")
    );
}

#[test]
fn a_worker_that_is_killed_while_it_waits_for_a_model_is_noticed() {
    // The model never answers the first request.
    let (test, model, id) = with_model(vec![good(), good()], "builtin");
    model.hold_after(0);
    let started = test.json(&["fix", &id, "--format", "json"], 0);
    let fix_id = id_of(&started["fix"]);
    wait_for("the request", || (model.asked() > 0).then_some(()));
    let worker = rustix::process::Pid::from_raw(worker_of(&fix_id)).expect("an id");
    rustix::process::kill_process(worker, rustix::process::Signal::KILL).expect("killed");
    let listed = wait_for("the end of the fix", || {
        let listed = test.output(&["fixes"], DONE);
        listed.contains("failed").then_some(listed)
    });
    assert_snapshot!(listed, @"[fix]  failed     Function `wide` is complex: 8 parameters in a.py, by m; worker died");
    model.let_go();
    assert_eq!(fix(&test, &[&id], 0)["status"], "offered", "and another one can be made");
}
