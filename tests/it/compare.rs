//! `revdeck compare`: two reviewers of one change, with real processes.

use serde_json::Value;

use crate::env::{DONE, TestEnvironment, USAGE, err, run};

/// Answer of a program that finds the mutable default, in words of its own, and a problem that the built-in reviewer does
/// not know.
const ANSWER: &str = r#"{"findings":[
    {"path":"app.py","line_start":1,"line_end":1,"kind":"CORRECTNESS","severity":"high","title":"the default items=[] is one object for all calls","explanation":"Calls share it."},
    {"path":"app.py","line_start":2,"line_end":2,"kind":"SECURITY","severity":"high","title":"path is read without a check","explanation":"Any file can be read."}
]}"#;

fn reviewed_twice() -> (TestEnvironment, [String; 2]) {
    let test = TestEnvironment::new();
    test.write("app.py", "a = 1\n");
    test.commit("base");
    test.write("app.py", "def load(path, items=[]):\n    return items + [open(path)]\n");
    let script = test.home().join("agent.sh");
    std::fs::create_dir_all(test.home()).expect("a folder");
    std::fs::write(&script, format!("cat > /dev/null\ncat <<'END'\n{ANSWER}\nEND\n")).expect("written");
    test.settings(&format!(
        "on_open = \"nothing\"\n[reviewers.agent]\nkind = \"command\"\ncommand = [\"sh\", \"{}\"]\n",
        script.display()
    ));
    let review = |reviewer: &str| {
        let reviewed = test.json(&["review", "--reviewer", reviewer, "--wait", "--format", "json"], DONE);
        reviewed["run"]["run_id"].as_str().expect("an id").to_owned()
    };
    let runs = [review("builtin"), review("agent")];
    (test, runs)
}

#[test]
fn two_reviews_of_one_change_are_compared_by_problem() {
    let (test, [builtin, agent]) = reviewed_twice();
    let compared = test.json(&["compare", &builtin, &agent, "--format", "json"], DONE);
    let titles = |found: &Value| -> Vec<String> {
        let findings = found.as_array().cloned().unwrap_or_default();
        findings.iter().map(|finding| finding["title"].as_str().unwrap_or_default().to_owned()).collect()
    };
    assert_eq!(compared["both"].as_array().map(Vec::len), Some(1), "{compared}");
    assert_eq!(titles(&compared["both"][0]).len(), 2);
    assert_eq!(titles(&compared["only_second"]), ["path is read without a check"]);
    assert_eq!(compared["runs"][1]["reviewer"], "agent");
    let shown = run(&test, &["compare", &builtin, &agent], DONE);
    for part in ["found by both  1", "only agent  1", "path is read without a check", "reviewer", "undecided"] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    // The other way round, and by beginnings of ids.
    let turned = test.json(&["compare", &agent, &builtin, "--format", "json"], DONE);
    assert_eq!(turned["only_first"], compared["only_second"]);
    // By reviewers: the latest change that both have reviewed, although one has reviewed another since.
    test.write("app.py", "def load(path, items=[]):\n    return items\n");
    run(&test, &["review", "--wait"], DONE);
    let named = test.json(&["compare", "builtin", "agent", "--format", "json"], DONE);
    let ids =
        |compared: &Value| [0, 1].map(|run| compared["runs"][run]["run_id"].as_str().unwrap_or_default().to_owned());
    assert_eq!(ids(&named), ids(&compared));
}

#[test]
fn all_changes_that_both_have_reviewed_are_summed_up() {
    let (test, _) = reviewed_twice();
    let sum = |arguments: &[&str]| {
        test.json(&[&["compare", "builtin", "agent", "--format", "json"], arguments].concat(), DONE)
    };
    let found = |sum: &Value| ["both", "only_first", "only_second"].map(|part| sum[part]["found"].as_u64());
    let first = sum(&["--all"]);
    assert_eq!((first["changes"].as_u64(), found(&first)[0]), (Some(1), Some(1)), "{first}");
    // The second change has the same problems: they count once.
    test.write("other.py", "# a comment\n");
    for reviewer in ["builtin", "agent"] {
        run(&test, &["review", "--reviewer", reviewer, "--wait"], DONE);
    }
    let both = sum(&["--since", "1d"]);
    assert_eq!((both["changes"].as_u64(), found(&both)), (Some(2), found(&first)), "{both}");
    assert_eq!(both["sides"][1]["reviewer"], "agent");
    let id = test.json(&["compare", "builtin", "agent", "--format", "json"], DONE)["only_second"][0]["finding_id"]
        .as_str()
        .expect("an id")
        .to_owned();
    run(&test, &["triage", &id, "dismissed", "--reason", "intended"], DONE);
    let decided = sum(&["--all"]);
    assert_eq!((&decided["only_second"]["dismissed"], &decided["only_second"]["undecided"]), (&1.into(), &0.into()));
    let shown = run(&test, &["compare", "builtin", "agent", "--all"], DONE);
    for part in ["2 changes that both have reviewed", "found by both", "only agent", "dismissed", "cost", "time"] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    let runs = test.revdeck(&["compare", "latest", "builtin", "--all"]);
    assert_eq!(runs.status.code(), Some(USAGE));
    assert!(err(&runs).contains("two reviewers"), "{}", err(&runs));
    let future = test.revdeck(&["compare", "builtin", "agent", "--since", "2099-01-01"]);
    assert_eq!(future.status.code(), Some(USAGE));
    assert!(err(&future).contains("no change was reviewed by both builtin and agent since then"), "{}", err(&future));
}

#[test]
fn what_cannot_be_compared_is_refused_with_what_to_do() {
    let (test, [builtin, agent]) = reviewed_twice();
    let same = test.revdeck(&["compare", &agent, "latest"]);
    assert_eq!(same.status.code(), Some(USAGE));
    assert!(err(&same).contains("a run is compared with another one"), "{}", err(&same));
    test.write("app.py", "def load(path, items=[]):\n    return items\n");
    run(&test, &["review", "--wait"], DONE);
    let other = test.revdeck(&["compare", &builtin, "latest"]);
    assert_eq!(other.status.code(), Some(USAGE));
    assert!(err(&other).contains("different changes") && err(&other).contains("--any"), "{}", err(&other));
    run(&test, &["compare", &builtin, "latest", "--any"], DONE);
    for (sides, problem) in [
        (["builtin", "ghost"], "builtin is a reviewer, and ghost is none that has reviewed here"),
        (["latest", "agent"], "agent is a reviewer, and latest is none that has reviewed here"),
        (["agent", "agent"], "agent is compared with another reviewer"),
        (["ghost", "nobody"], "there is no run \"ghost\""),
    ] {
        let refused = test.revdeck(&["compare", sides[0], sides[1]]);
        assert_eq!(refused.status.code(), Some(USAGE), "{}", err(&refused));
        assert!(err(&refused).contains(problem) && err(&refused).contains("`revdeck runs` lists"), "{}", err(&refused));
    }
}

#[test]
fn a_panel_is_compared_by_its_name() {
    let (test, _) = reviewed_twice();
    test.settings(&format!(
        "{}\n[panels.pair]\nreviewers = [\"builtin\", \"agent\"]\n",
        std::fs::read_to_string(test.home().join("config.toml")).expect("settings")
    ));
    run(&test, &["review", "--panel", "pair", "--wait"], DONE);
    let compared = test.json(&["compare", "pair", "builtin", "--format", "json"], DONE);
    assert_eq!(
        (&compared["runs"][0]["reviewer"], &compared["runs"][1]["reviewer"]),
        (&"panel:pair".into(), &"builtin".into())
    );
    // A panel without a table is named by its reviewers, as `review` names them.
    run(&test, &["review", "--reviewer", "agent,builtin", "--wait"], DONE);
    let compared = test.json(&["compare", "agent,builtin", "agent", "--format", "json"], DONE);
    assert_eq!(compared["runs"][0]["reviewer"], "panel:agent+builtin");
}
