//! The lists in a real terminal: new findings between two visits, commits by their titles, orders of the findings.

use super::{Cockpit, repository};
use crate::env::{DONE, run};

fn header(screen: &str) -> &str {
    screen.lines().next().unwrap_or_default()
}

#[test]
fn what_arrived_since_the_last_visit_is_new_until_it_was_looked_at() {
    let test = repository();
    test.settings("on_open = \"nothing\"\n");
    run(&test, &["review", "--wait"], DONE);
    let cockpit = Cockpit::open(&test);
    let screen = cockpit.wait("the findings", |screen| header(screen).contains(" open ") && screen.contains("History"));
    assert!(!header(&screen).contains(" new"), "there was no visit before: {screen}");
    cockpit.quit();
    test.write("other.py", "def load(path):\n    try:\n        return open(path)\n    except:\n        pass\n");
    run(&test, &["review", "--wait"], DONE);
    let mut cockpit = Cockpit::open(&test);
    let screen = cockpit.wait("the new ones", |screen| header(screen).contains(" new"));
    let marked = |screen: &str| screen.lines().filter(|line| line.contains(" new ")).count() > 1;
    assert!(marked(&screen), "{screen}");
    cockpit.press("2G");
    cockpit.press("g");
    cockpit.press("x");
    cockpit.wait_for("Why dismiss");
    cockpit.press("on purpose\r");
    cockpit.wait("a count", |screen| header(screen).contains("1 decided today"));
    cockpit.quit();
    let cockpit = Cockpit::open(&test);
    let screen = cockpit.wait("the header", |screen| header(screen).contains("1 decided today"));
    assert!(!header(&screen).contains(" new"), "it was looked at: {screen}");
    cockpit.quit();
}

#[test]
fn rows_of_findings_with_one_title_tell_their_functions_apart() {
    let test = repository();
    test.settings("on_open = \"nothing\"\n");
    let function =
        |name: &str| format!("def {name}(path):\n    try:\n        return open(path)\n    except:\n        pass\n\n\n");
    let names = ["load", "send", "remove"];
    test.write("job.py", names.map(function).concat());
    run(&test, &["review", "--wait"], DONE);
    let found = test.json(&["findings", "--format", "json"], DONE);
    let found = found["findings"].as_array().expect("a list").iter();
    let mut symbols: Vec<&str> = found.filter_map(|finding| finding["symbol"].as_str()).collect();
    symbols.sort_unstable();
    assert_eq!(symbols, ["load", "remove", "send"]);
    let cockpit = Cockpit::open(&test);
    cockpit.wait("the functions", |screen| {
        let rows = || screen.lines().filter_map(|line| line.split('│').next()).filter(|row| row.contains("A bare"));
        names.iter().all(|name| rows().any(|row| row.contains(&format!(" {name} "))))
    });
    cockpit.quit();
}

#[test]
fn runs_have_the_titles_of_their_commits_and_findings_are_sorted_by_a_menu() {
    let test = repository();
    test.settings("on_open = \"nothing\"\n");
    test.commit("Load jobs from files");
    run(&test, &["review", "commit:HEAD", "--wait"], DONE);
    let mut cockpit = Cockpit::open(&test);
    cockpit.wait_for("“Load jobs from files”");
    cockpit.wait_for("by priority");
    cockpit.press("o");
    cockpit.wait_for("Order of the findings");
    cockpit.press("8");
    cockpit.wait_for("by priority in files");
    cockpit.wait("a header", |screen| screen.lines().any(|line| line.trim_start().starts_with("job.py ─ ")));
    cockpit.quit();
}
