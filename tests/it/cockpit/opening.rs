//! Opening the cockpit: what nobody has reviewed is reviewed at no cost, and nobody who costs money is asked.

use std::time::Duration;

use rustix::process::Signal;

use super::{Cockpit, repository};
use crate::env::{DONE, TestEnvironment, executable, run};
use crate::llm::server::Model;
use crate::runner::place::{Place, gone, signal, wait_for};

/// Settings of a reviewer with prices that is the default one.
fn paid(model: &Model, more: &str) -> String {
    format!(
        "default_reviewer = \"m\"\n{more}[reviewers.m]\nkind = \"openai\"\nmodel = \"gpt-4o-test\"\nbase_url = \"{}\"\n\
         api_key_cmd = \"printf sk-made-up\"\nprice_input = 2.0\nprice_output = 10.0\nmax_output = 8000\n",
        model.url()
    )
}

/// Returns scope and reviewer of each run, oldest first, when all runs have ended.
fn ended_runs(test: &TestEnvironment) -> Vec<(String, String)> {
    let runs = wait_for("the end of all runs", || {
        let listed = test.json(&["runs", "--format", "json"], DONE)["runs"].as_array().cloned().expect("runs");
        listed.iter().all(|run| run["status"] == "completed").then_some(listed)
    });
    let text = |value: &serde_json::Value| value.as_str().expect("text").to_owned();
    runs.iter().rev().map(|run| (text(&run["scope"]), text(&run["reviewer"]))).collect()
}

fn short_head(test: &TestEnvironment) -> String {
    test.git(&["rev-parse", "--short", "HEAD"]).trim().to_owned()
}

fn by_builtin(scopes: &[&str]) -> Vec<(String, String)> {
    scopes.iter().map(|scope| ((*scope).to_owned(), "builtin".to_owned())).collect()
}

#[test]
fn a_paid_default_reviewer_is_offered_with_its_limit_and_asked_only_by_hand() {
    let test = repository();
    let model = Model::start(Vec::new());
    test.settings(&paid(&model, ""));
    let mut cockpit = Cockpit::open(&test);
    cockpit.wait_for("a first review, offline and at no cost · r asks m (at most $1.08)");
    assert_eq!(ended_runs(&test), by_builtin(&["worktree"]));
    assert_eq!(model.asked(), 0);
    cockpit.press("r");
    cockpit.wait_for("Review by m, at most $1.08");
    cockpit.press("\r");
    wait_for("the model to be asked", || (model.asked() > 0).then_some(()));
    cockpit.quit();
}

#[test]
fn an_empty_repository_says_that_nothing_is_changed() {
    let test = TestEnvironment::new();
    let cockpit = Cockpit::open(&test);
    cockpit.wait_for("There are no uncommitted changes.");
    cockpit.quit();
}

#[test]
fn an_agent_counts_as_paid() {
    let test = repository();
    let (agent, called) = (test.home().join("agent"), test.home().join("called"));
    executable(&agent, format!("#!/bin/sh\ntouch '{}'\n", called.display()));
    test.settings(&format!(
        "default_reviewer = \"agent\"\n[reviewers.agent]\nkind = \"command\"\ncommand = [\"{}\"]\n",
        agent.display()
    ));
    let cockpit = Cockpit::open(&test);
    cockpit.wait_for("r asks agent (its price is not known)");
    assert_eq!(ended_runs(&test), by_builtin(&["worktree"]));
    assert!(!called.exists());
    cockpit.quit();
}

#[test]
fn coming_back_reviews_new_commits_and_uncommitted_changes_once() {
    let test = repository();
    run(&test, &["review", "--commit", "HEAD", "--wait"], DONE);
    let first = short_head(&test);
    test.write("more.py", "def more(value, items=[]):\n    return items + [value]\n");
    test.git(&["add", "more.py"]);
    test.git(&["commit", "-q", "-m", "Second"]);
    let second = short_head(&test);
    let cockpit = Cockpit::open(&test);
    cockpit.wait_for("nobody has reviewed 1 new commit and uncommitted changes in 1 file: builtin does");
    let scopes = [format!("commit:{first}"), format!("commit:{second}"), "worktree".to_owned()];
    let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
    assert_eq!(ended_runs(&test), by_builtin(&scopes));
    cockpit.quit();
    // The commit has the content of the reviewed worktree.
    test.commit("Third");
    let mut cockpit = Cockpit::open(&test);
    cockpit.wait_for("History");
    // The request stands in line behind the look for changes.
    cockpit.press("r");
    cockpit.wait_for("Review");
    cockpit.press("\r");
    cockpit.wait_for("has been reviewed already");
    assert_eq!(ended_runs(&test), by_builtin(&scopes));
    cockpit.quit();
}

#[test]
fn what_is_new_is_only_offered_or_not_looked_for() {
    let test = repository();
    run(&test, &["review", "--wait"], DONE);
    test.commit("Second");
    for number in 0..2 {
        test.write("job.py", format!("def load(path, items=[]):\n    return items + [path, {number}]\n"));
        test.commit("More");
    }
    let head = short_head(&test);
    test.settings("on_open = \"nothing\"\n");
    let mut cockpit = Cockpit::open(&test);
    cockpit.wait_for("History");
    cockpit.press("r");
    cockpit.wait_for("what changed");
    cockpit.press("4");
    cockpit.wait_for(&format!("reviewing {head}"));
    assert_eq!(ended_runs(&test), by_builtin(&["worktree", &format!("commit:{head}")]));
    cockpit.quit();
    test.write("job.py", "def load(path, items=[]):\n    return items + [path]\n");
    test.settings("on_open = \"offer\"\n");
    let mut cockpit = Cockpit::open(&test);
    cockpit.wait_for("nobody has reviewed uncommitted changes in 1 file: r reviews it");
    assert_eq!(ended_runs(&test).len(), 2);
    cockpit.press("r");
    cockpit.wait_for("by builtin, offline and at no cost");
    cockpit.press("\r");
    cockpit.wait_for("reviewing worktree");
    assert_eq!(ended_runs(&test).len(), 3);
    cockpit.quit();
}

#[test]
fn a_reviewer_without_its_key_is_refused() {
    let test = repository();
    test.settings("default_reviewer = \"cloud\"\n[reviewers.cloud]\nkind = \"anthropic\"\nmodel = \"m\"\n");
    let mut cockpit = Cockpit::open(&test);
    cockpit.wait_for("at no cost");
    cockpit.press("r");
    cockpit.wait_for("Review by cloud");
    cockpit.press("\r");
    cockpit.wait_for("no review: cloud has no API key: the variable ANTHROPIC_API_KEY is not set");
    assert_eq!(ended_runs(&test), by_builtin(&["worktree"]));
    cockpit.quit();
}

#[test]
fn a_paid_review_that_was_requested_goes_on_and_the_cockpit_says_so() {
    let place = Place { test: repository() };
    place.test.commit("Second");
    let model = Model::start(Vec::new());
    place.settings(&paid(&model, "on_open = \"nothing\"\n"));
    model.hold_after(0);
    let run = place.review(&[]);
    wait_for("the first request", || (model.asked() == 1).then_some(()));
    let worker = place.worker(&run).expect("a worker");
    signal(worker, Signal::KILL);
    wait_for("the worker's end", || gone(worker).then_some(()));
    model.let_go();
    let cockpit = Cockpit::open(&place.test);
    cockpit.wait_for(&format!("m goes on with {}", short_head(&place.test)));
    let screen = cockpit.wait_for("as requested (at most $1.08)");
    assert!(screen.contains("1 run resumed"), "{screen}");
    assert_eq!(place.ended(&run).attempt, 2);
    cockpit.quit();
}

#[test]
fn a_worker_that_dies_is_announced_and_the_form_says_that_its_review_goes_on() {
    let place = Place { test: repository() };
    place.test.commit("Second");
    let model = Model::start(Vec::new());
    place.settings(&paid(&model, "on_open = \"nothing\"\n"));
    model.hold_after(0);
    let run = place.review(&[]);
    wait_for("the first request", || (model.asked() == 1).then_some(()));
    let mut cockpit = Cockpit::open(&place.test);
    cockpit.wait_for("reviewing");
    let announcement = format!("the worker that reviewed {}", short_head(&place.test));
    signal(place.worker(&run).expect("a worker"), Signal::KILL);
    // A cockpit that is still opening goes on with the review of a dead worker. Then the next worker dies.
    let has_resumed = |screen: &str| screen.contains("1 run resumed");
    cockpit.wait("an answer to the death", |screen| screen.contains(&announcement) || has_resumed(screen));
    if cockpit.look_for(Duration::ZERO, has_resumed) {
        let next = wait_for("the next worker", || place.worker(&run).filter(|_| place.attempt(&run) == Some(2)));
        signal(next, Signal::KILL);
        cockpit.wait_for(&announcement);
    }
    cockpit.press("r");
    cockpit.wait_for("goes on with the review of");
    model.let_go();
}
