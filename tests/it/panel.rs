//! Integration tests of panels: several reviewers, played by models on loopback, and the one list that they give.

mod compared;
mod continued_members;
mod disputes;
mod fallbacks;
mod forecast;
mod formats;
mod kills;
mod max_cost;
mod member_kills;
mod merged_list;
mod moved_decisions;
mod opinions;
mod questions;
mod secrets;
mod settings;
mod shared_ids;
mod unsettled;

use revdeck::domain::{
    BudgetKind, CancelReason, Finding, FindingStatus, Kind, RunEvent, RunId, RunRecord, RunStatus, Source,
};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::env::{DONE, INCOMPLETE, USAGE, out};
use crate::llm::finish;
use crate::llm::server::{Model, Turn, calls, says};
use crate::runner::place::{Place, gone, signal, wait_for};

/// Code with problems that a person can see, so that models have something to say about it.
const CODE: &str = "\
import sqlite3


def load(name):
    base = sqlite3.connect('users.db')
    row = base.execute(\"SELECT * FROM users WHERE name = '\" + name + \"'\").fetchone()
    return row[1]


def average(values):
    return sum(values) / len(values)


def retry(call):
    while True:
        try:
            return call()
        except OSError:
            pass
";

const INJECTION: u32 = 6;
const DIVISION: u32 = 11;
const ENDLESS: u32 = 15;

fn report(line: u32, kind: &str, priority: u8, title: &str) -> Value {
    let code = CODE.lines().nth(line as usize - 1).unwrap_or_default();
    json!({ "path": "src/users.py", "line_start": line, "line_end": line, "kind": kind, "priority": priority,
        "confidence": 0.6, "title": title, "explanation": format!("{title}, as the line shows."), "quoted_code": code })
}

fn answer(findings: &[Value]) -> Turn {
    calls(&[("report_findings", json!({ "findings": findings })), finish()])
}

/// Answers that the key is wrong.
fn refusal() -> Turn {
    Turn::Refuse { status: 401, headers: Vec::new(), body: "{\"error\":{\"message\":\"bad key\"}}".into() }
}

/// Returns the report of the first model.
fn first() -> Turn {
    answer(&[
        report(INJECTION, "SECURITY", 0, "SQL injection through `name`"),
        report(DIVISION, "CORRECTNESS", 2, "Division by zero for an empty list"),
    ])
}

/// Returns the report of the second model: one problem of the first in other words, and one of its own.
fn second() -> Turn {
    answer(&[
        report(INJECTION, "SECURITY", 1, "User input `name` is concatenated into SQL: injection"),
        report(ENDLESS, "CORRECTNESS", 2, "Retries never stop"),
    ])
}

/// Prices of a million tokens.
const CHEAP: &str = "price_input = 2.0\nprice_output = 8.0\n";
const DEAR: &str = "price_input = 10.0\nprice_output = 40.0\n";

/// Returns the settings of a reviewer that a model plays.
fn reviewer(name: &str, model: &Model, prices: &str) -> String {
    format!(
        "[reviewers.{name}]\nkind = \"openai\"\nmodel = \"gpt-4o-test\"\nbase_url = \"{}\"\n\
         api_key_cmd = \"printf made-up\"\nattempts = 1\n{prices}",
        model.url()
    )
}

struct Panel {
    place: Place,
    one: Model,
    two: Model,
}

impl Panel {
    /// Starts two models and writes the settings of the panel `all`: both and the built-in reviewer.
    fn start(one: Vec<Turn>, two: Vec<Turn>, more: &str) -> Self {
        let place = Place::new();
        let (one, two) = (Model::start(one), Model::start(two));
        place.settings(&format!(
            "{}{}[panels.all]\nreviewers = [\"one\", \"two\", \"builtin\"]\n{more}\n",
            reviewer("one", &one, CHEAP),
            reviewer("two", &two, CHEAP)
        ));
        place.test.write("src/users.py", CODE);
        place.test.commit("users");
        Self { place, one, two }
    }

    fn review(&self, arguments: &[&str], code: i32) -> RunRecord {
        let arguments = [&["review", "--wait", "--format", "json"], arguments].concat();
        let printed = self.place.test.json(&arguments, code);
        let id: RunId = printed["run"]["run_id"].as_str().expect("an id").parse().expect("an id");
        self.place.run(&id)
    }

    /// Starts the panel, and waits until its first model has ended and its second one is asked and held.
    fn start_held(&self) -> RunId {
        self.two.hold_after(0);
        let started = out(&self.place.test.revdeck(&["review", "--panel", "all"]));
        let id: RunId = started.split_whitespace().next().expect("an id").parse().expect("an id");
        wait_for("the request to the second model", || (self.two.asked() == 1).then_some(()));
        let run = self.place.run(&id);
        wait_for("the end of the first member", || self.member(&run, "one").status.is_terminal().then_some(()));
        id
    }

    fn member(&self, panel: &RunRecord, reviewer: &str) -> RunRecord {
        let members = &panel.links.panel.as_ref().expect("a panel").members;
        let member = members.iter().find(|member| member.reviewer == reviewer).expect("a member");
        self.place.run(&member.run_id)
    }

    fn findings(&self, run: &RunRecord) -> Vec<Finding> {
        self.place.output(&run.run_id).expect("an output").findings
    }

    /// Returns the open findings of the whole store: line and title.
    fn listed(&self) -> Vec<(u64, String)> {
        let all = self.place.test.json(&["findings", "--format", "json"], DONE);
        let found = all["findings"].as_array().expect("findings").iter().map(|finding| {
            (finding["line_start"].as_u64().expect("a line"), finding["title"].as_str().expect("a title").to_owned())
        });
        let mut found: Vec<(u64, String)> = found.collect();
        found.sort();
        found
    }
}

#[test]
fn three_reviewers_give_one_list_and_are_asked_once() {
    let panel = Panel::start(vec![first()], vec![second()], "");
    let run = panel.review(&["--panel", "all"], DONE);
    assert_eq!(
        (run.status, run.source, run.reviewed_by.name.as_str()),
        (RunStatus::Completed, Source::Cli, "panel:all")
    );
    let findings = panel.findings(&run);
    let at = |line: u32| {
        let found: Vec<&Finding> = findings.iter().filter(|finding| finding.line_start == line).collect();
        assert_eq!(found.len(), 1, "line {line} is there once: {findings:#?}");
        found[0]
    };
    let injection = at(INJECTION);
    let said: Vec<(&str, &str)> =
        injection.voices.iter().map(|voice| (voice.reviewer.as_str(), voice.title.as_str())).collect();
    assert!(said.contains(&("one", "SQL injection through `name`")), "{said:?}");
    assert!(said.contains(&("two", "User input `name` is concatenated into SQL: injection")), "{said:?}");
    assert_eq!(injection.priority as u8, 0, "the most urgent priority of a security problem stays");
    assert_eq!(at(DIVISION).voices.len(), 1);
    assert_eq!(at(ENDLESS).voices[0].reviewer, "two");
    // The store lists each problem once, too.
    let listed = panel.listed();
    assert_eq!(listed.len(), findings.len(), "{listed:?}");
    // Members are runs of their own, and fold under the panel.
    for reviewer in ["one", "two", "builtin"] {
        let member = panel.member(&run, reviewer);
        assert_eq!(member.reviewed_by.name, reviewer);
        assert_eq!((member.status, member.links.member_of.as_ref()), (RunStatus::Completed, Some(&run.run_id)));
        assert_eq!(member.links.superseded_by.as_ref(), Some(&run.run_id));
        assert_eq!(member.subject.snapshot_commit, run.subject.snapshot_commit);
        // It is shown as what it was, and not as an older review of other code.
        let shown = panel.place.revdeck(&["show", member.run_id.as_str()]);
        assert!(shown.contains("completed") && !shown.contains("superseded"), "{shown}");
    }
    let runs = panel.place.test.json(&["runs", "--format", "json"], DONE);
    let freshness: Vec<&Value> = runs["runs"].as_array().expect("runs").iter().map(|run| &run["freshness"]).collect();
    assert_eq!(freshness, [&json!("current"); 4], "{runs}");
    assert!(run.usage.cost.abs() < f64::EPSILON, "what members cost is theirs");
    assert_eq!((panel.one.asked(), panel.two.asked()), (1, 1));
    // Asked again: the same list, and no request.
    assert_eq!(panel.review(&["--panel", "all"], DONE).run_id, run.run_id);
    // Each member answers for its reviewer alone, too.
    let alone = panel.review(&["--reviewer", "two"], DONE);
    assert_eq!(alone.run_id, panel.member(&run, "two").run_id);
    assert_eq!((panel.one.asked(), panel.two.asked()), (1, 1));
}

#[test]
fn a_question_about_a_finding_goes_to_a_member_that_reports_it_and_can_answer() {
    let panel = Panel::start(vec![first()], vec![second()], "");
    panel.review(&["--panel", "all"], DONE);
    let test = &panel.place.test;
    let listed = test.json(&["findings", "--format", "json"], DONE);
    let find = |line: u32| {
        let found = listed["findings"].as_array().expect("findings").iter().find(|one| one["line_start"] == line);
        found.unwrap_or_else(|| panic!("line {line} in {listed}"))
    };
    let id = |line: u32| find(line)["finding_id"].as_str().expect("an id").to_owned();
    panel.one.answer_from_now_on(vec![crate::ask::answer("stands", "One holds to it."); 2]);
    panel.two.answer_from_now_on(vec![crate::ask::answer("stands", "Two holds to it."); 3]);
    let answerer = |line: u32| {
        let asked = test.json(&["ask", &id(line), "why?", "--format", "json"], DONE);
        asked["question"]["reviewer"].as_str().expect("a reviewer").to_owned()
    };
    // The one whose words the finding has.
    let own = if find(INJECTION)["title"] == "SQL injection through `name`" { "one" } else { "two" };
    assert_eq!([answerer(INJECTION), answerer(DIVISION), answerer(ENDLESS)], [own, "one", "two"]);
    // A member that has left the settings cannot answer; another one that reports the finding can.
    let settings = std::fs::read_to_string(test.home().join("config.toml")).expect("settings");
    test.settings(&settings.replace("[reviewers.one]", "[reviewers.other]").replace("\"one\"", "\"other\""));
    assert_eq!(answerer(INJECTION), "two");
    let asked = panel.one.asked();
    let error = test.fails(&["ask", &id(DIVISION), "why?"], USAGE);
    assert!(error.contains("there is no reviewer named \"one\""), "{error}");
    assert_eq!(panel.one.asked(), asked);
}

#[test]
fn a_panel_pays_only_for_members_that_have_not_reviewed_the_change() {
    let panel = Panel::start(vec![first()], vec![second()], "");
    let alone = panel.review(&["--reviewer", "one"], DONE);
    let run = panel.review(&["--reviewer", "one,two"], DONE);
    assert_eq!(run.reviewed_by.name, "panel:one+two");
    assert_eq!(panel.member(&run, "one").run_id, alone.run_id, "reused");
    assert!(run.usage.saved_token_estimate > 0 && run.decision.contains("one has been done"), "{}", run.decision);
    assert_eq!((panel.one.asked(), panel.two.asked()), (1, 1));
    assert_eq!(panel.findings(&run).len(), 3);
    assert_eq!(panel.listed().len(), 3, "{:?}", panel.listed());
    assert!(alone.links.superseded_by.is_none() && alone.links.member_of.is_none());
}

#[test]
fn a_panel_of_members_that_have_reviewed_the_change_needs_no_key() {
    let panel = Panel::start(vec![first()], vec![second()], "");
    for reviewer in ["one", "two"] {
        panel.review(&["--reviewer", reviewer], DONE);
    }
    let settings = std::fs::read_to_string(panel.place.test.home().join("config.toml")).expect("settings");
    let keyless = settings.replace("api_key_cmd = \"printf made-up\"", "api_key_env = \"KEY_OF_NOBODY\"");
    panel.place.settings(&keyless);
    let run = panel.review(&["--reviewer", "one,two"], DONE);
    assert_eq!((panel.findings(&run).len(), panel.one.asked(), panel.two.asked()), (3, 1, 1));
    let error = panel.place.test.errors(&["review", "--reviewer", "one,two", "--force"], USAGE);
    assert!(error.contains("one has no API key"), "{error}");
}

#[test]
fn a_member_that_fails_is_said_and_only_that_one_is_asked_again() {
    let panel = Panel::start(vec![first()], vec![refusal(), second()], "");
    let run = panel.review(&["--panel", "all"], INCOMPLETE);
    assert_eq!(run.status, RunStatus::Completed);
    assert!(run.ending.error_summary.contains("two did not finish"), "{}", run.ending.error_summary);
    assert!(run.is_incomplete());
    assert!(panel.findings(&run).iter().any(|finding| finding.line_start == INJECTION));
    assert_eq!(panel.member(&run, "two").status, RunStatus::Failed);
    let again = panel.review(&["--panel", "all"], DONE);
    assert_ne!(again.run_id, run.run_id);
    assert!(!again.is_incomplete(), "{}", again.outcome.summary);
    assert_eq!((panel.one.asked(), panel.two.asked()), (1, 2));
    assert_eq!(panel.member(&again, "one").run_id, panel.member(&run, "one").run_id);
    assert_eq!(panel.listed().len(), panel.findings(&again).len(), "{:?}", panel.listed());
}

#[test]
fn all_members_that_fail_are_named_in_one_sentence() {
    let refusals = || vec![refusal(), refusal()];
    let panel = Panel::start(refusals(), refusals(), "");
    let run = panel.review(&["--panel", "all"], INCOMPLETE);
    let said = "one and two did not finish";
    assert_eq!((run.ending.error_summary.as_str(), run.status), (said, RunStatus::Completed));
    assert!(run.summary_with_error().contains(said), "{}", run.summary_with_error());
    let shown = panel.place.revdeck(&["show", run.run_id.as_str()]);
    assert_eq!(shown.matches(said).count(), 1, "{shown}");
    for reviewer in ["one", "two"] {
        let note = shown.lines().find(|line| line.starts_with(&format!("note: {reviewer}: ")));
        assert!(note.is_some_and(|note| note.contains(&format!("[reviewers.{reviewer}]"))), "why: {shown}");
    }
    // Whoever waits for the review reads it below the findings.
    let waited = panel.place.test.revdeck(&["review", "--panel", "all", "--wait"]);
    assert_eq!(waited.status.code(), Some(INCOMPLETE));
    assert_eq!(out(&waited).matches(&format!("incomplete: {said}")).count(), 1, "{}", out(&waited));
}

#[test]
fn a_killed_member_goes_on_alone_and_nothing_is_paid_for_twice() {
    let panel = Panel::start(vec![first()], vec![second(), second()], "");
    let id = panel.start_held();
    let run = panel.place.run(&id);
    assert_eq!(run.status, RunStatus::Pending, "the panel waits for its members");
    let member = panel.member(&run, "two");
    let worker = panel.place.worker(&member.run_id).expect("a worker");
    signal(worker, Signal::KILL);
    wait_for("the worker's end", || gone(worker).then_some(()));
    panel.two.let_go();
    panel.place.revdeck(&["runs"]);
    let run = panel.place.ended(&id);
    assert_eq!(run.status, RunStatus::Completed, "{}", run.outcome.summary);
    assert_eq!((panel.member(&run, "two").attempt, panel.member(&run, "one").attempt), (2, 1));
    assert_eq!((panel.one.asked(), panel.two.asked()), (1, 2), "the request that was never answered is sent again");
    assert_eq!(panel.findings(&run).len(), panel.listed().len());
}

#[test]
fn members_that_ask_at_the_same_moment_do_not_exceed_the_limit_together() {
    let panel = Panel::start(vec![first(), first()], vec![second()], "");
    // The largest request of a review says what a request of this change costs.
    let alone = panel.review(&["--reviewer", "one"], DONE);
    let request = alone.usage.window_peak as f64 * 2.0 / 1e6;
    panel.place.test.write("src/users.py", CODE.replace("users.db", "other.db"));
    panel.place.test.commit("others");
    let settings = panel.place.test.home().join("config.toml");
    let written = std::fs::read_to_string(&settings).expect("settings");
    let limit = request * 1.5;
    panel.place.settings(&format!("{written}max_cost = {limit:.4}\n"));
    panel.one.hold_after(1);
    panel.two.hold_after(0);
    let started = out(&panel.place.test.revdeck(&["review", "--panel", "all"]));
    let id: RunId = started.split_whitespace().next().expect("an id").parse().expect("an id");
    let run = wait_for("the run of the panel", || Some(panel.place.run(&id)));
    let waits = |name: &str| {
        let events = panel.place.events(&panel.member(&run, name).run_id);
        let note = "requests of other members may use up";
        events.iter().any(|event| matches!(event, RunEvent::Note { text } if text.contains(note)))
    };
    wait_for("a member that waits for the other", || ["one", "two"].iter().any(|name| waits(name)).then_some(()));
    let sent = || panel.one.asked() - 1 + panel.two.asked();
    // The other one may not have sent its request yet.
    wait_for("a request", || (sent() > 0).then_some(()));
    assert_eq!(sent(), 1, "one request is on its way");
    panel.one.let_go();
    panel.two.let_go();
    let run = panel.place.ended(&id);
    let members = ["one", "two"].map(|name| panel.member(&run, name));
    let spent: f64 = members.iter().map(|member| member.usage.cost).sum();
    assert!(spent > 0.0 && spent <= limit, "{spent} of {limit}");
    assert!(members.iter().all(|member| member.usage.reserved_cost.is_none()));
}

#[test]
fn the_cost_of_all_members_stays_below_the_limit_of_the_panel() {
    let panel = Panel::start(vec![first()], vec![second()], "max_cost = 0.001");
    let run = panel.review(&["--panel", "all"], INCOMPLETE);
    let stops = ["one", "two"].map(|name| panel.member(&run, name).ending.budget_stop.map(|stop| stop.kind));
    assert_eq!(stops, [Some(BudgetKind::PanelCost); 2]);
    assert_eq!((panel.one.asked(), panel.two.asked()), (0, 0));
    assert!(run.is_incomplete(), "not reviewed is never clean: {}", run.outcome.summary);
}

#[test]
fn cancelling_a_panel_ends_its_members_and_keeps_what_they_found() {
    let panel = Panel::start(vec![first()], vec![second()], "");
    let id = panel.start_held();
    let said = panel.place.revdeck(&["cancel", id.as_str()]);
    assert!(said.contains("cancelled, with its members"), "{said}");
    let run = panel.place.ended(&id);
    assert_eq!((run.status, panel.member(&run, "two").status), (RunStatus::Cancelled, RunStatus::Cancelled));
    assert!(panel.findings(&run).iter().any(|finding| finding.line_start == INJECTION));
    panel.two.let_go();
}

#[test]
fn a_decision_holds_for_the_problem_whoever_reports_it_next() {
    let panel = Panel::start(vec![first()], vec![second()], "");
    let run = panel.review(&["--panel", "all"], DONE);
    let injection = panel.findings(&run).into_iter().find(|finding| finding.line_start == INJECTION).expect("there");
    panel.place.revdeck(&["triage", injection.finding_id.as_str(), "dismissed", "--reason", "intended"]);
    panel.one.answer_from_now_on(vec![first()]);
    panel.two.answer_from_now_on(vec![second()]);
    let again = panel.review(&["--panel", "all", "--force"], DONE);
    assert_ne!(again.run_id, run.run_id);
    let raised = panel.findings(&again);
    assert!(raised.iter().all(|finding| finding.line_start != INJECTION), "{raised:#?}");
    let alone = panel.review(&["--reviewer", "two", "--force"], DONE);
    assert!(panel.findings(&alone).iter().all(|finding| finding.line_start != INJECTION));
    let view = panel.place.store().view().expect("a view");
    let open = (0..view.finding_count()).map(|index| view.finding(index));
    let open = open.filter(|row| row.status == FindingStatus::Open && row.line_start == INJECTION);
    assert_eq!(open.count(), 0);
}

#[test]
fn a_judge_sees_only_what_is_disputed_and_its_word_stands_on_the_finding() {
    // The second model calls an injection p3: three steps from the first.
    let other = answer(&[report(INJECTION, "SECURITY", 3, "User input `name` is concatenated into SQL: injection")]);
    let ruling = json!({ "rulings": [{ "number": 1, "verdict": "real", "priority": 0, "reason": "name reaches the statement" }] });
    let judge = Model::start(vec![says(ruling.to_string())]);
    let more = format!("judge = \"dear\"\n{}", reviewer("dear", &judge, DEAR));
    let panel = Panel::start(vec![first()], vec![other], &more);
    let run = panel.review(&["--panel", "all"], DONE);
    assert_eq!(judge.asked(), 1);
    let asked = judge.requests()[0].to_string();
    assert!(asked.contains("SELECT * FROM users") && asked.contains("the priorities go from p0 to p3"), "{asked}");
    assert!(!asked.contains("Division by zero"), "nobody disputes that: {asked}");
    let findings = panel.findings(&run);
    let injection = findings.iter().find(|finding| finding.line_start == INJECTION).expect("there");
    let said: Vec<String> = injection.steps.iter().map(ToString::to_string).collect();
    assert!(said.contains(&"dear finds it real: name reaches the statement".to_owned()), "{said:?}");
    let shown = panel.place.revdeck(&["show", injection.finding_id.as_str()]);
    assert!(shown.contains("settled: the priorities go from p0 to p3; dear finds it real"), "{shown}");
    assert!(!shown.contains("disputed"), "{shown}");
    let view = panel.place.store().view().expect("a view");
    let row = view.finding(view.finding_index(injection.finding_id.as_str()).expect("listed"));
    assert!(!row.panel_disputed && !run.outcome.summary.contains("disputed"), "{}", run.outcome.summary);
    assert_eq!((injection.priority as u8, injection.voices.len()), (0, 2));
    assert!(run.usage.cost > 0.0 && run.usage.tokens.total() > 0, "the judge is paid by the panel");
    // Its cost counts for the judge, who has reported nothing.
    let worth = panel.place.test.json(&["stats", "--format", "json"], DONE)["worth"]["by_reviewer"].clone();
    let row = worth.as_array().expect("rows").iter().find(|row| row["name"] == "dear").expect("a row").clone();
    assert_eq!(row["raised"], 0);
    assert!((row["cost"].as_f64().expect("a cost") - run.usage.cost).abs() < 1e-6, "{row}");
    assert_eq!(panel.review(&["--panel", "all"], DONE).run_id, run.run_id);
    assert_eq!(judge.asked(), 1);
}

#[test]
fn a_judge_is_not_paid_again_when_a_member_that_failed_is_asked_again() {
    let other = answer(&[report(INJECTION, "SECURITY", 3, "User input `name` is concatenated into SQL: injection")]);
    // When the third member comes, one more finding is disputed: a lone p1 that two others did not see.
    let third = Model::start(vec![refusal(), answer(&[report(ENDLESS, "CORRECTNESS", 1, "Retries never stop")])]);
    let ruling = |reason: &str| {
        let ruling = json!({ "rulings": [{ "number": 1, "verdict": "real", "priority": 0, "reason": reason }] });
        says(ruling.to_string())
    };
    let judge = Model::start(vec![ruling("name reaches the statement"), ruling("no attempt is counted")]);
    let more = format!(
        "judge = \"dear\"\n{}{}[panels.four]\nreviewers = [\"one\", \"two\", \"third\"]\njudge = \"dear\"\n",
        reviewer("dear", &judge, DEAR),
        reviewer("third", &third, DEAR)
    );
    let panel = Panel::start(vec![first()], vec![other], &more);
    let run = panel.review(&["--panel", "four"], INCOMPLETE);
    assert_eq!(judge.asked(), 1);
    let ruled = |run: &RunRecord, line: u32| {
        let findings = panel.findings(run);
        let finding = findings.iter().find(|finding| finding.line_start == line).expect("there");
        finding.steps.iter().map(ToString::to_string).filter(|step| step.starts_with("dear")).collect::<Vec<_>>()
    };
    let said = ["dear finds it real: name reaches the statement"];
    assert_eq!(ruled(&run, INJECTION), said);
    let again = panel.review(&["--panel", "four"], DONE);
    assert_ne!(again.run_id, run.run_id);
    assert_eq!((panel.one.asked(), panel.two.asked(), third.asked()), (1, 1, 2));
    let members: f64 = ["one", "two", "third"].iter().map(|name| panel.member(&run, name).usage.cost).sum();
    let completed = again.links.panel.as_ref().expect("a panel");
    assert_eq!(completed.continues.as_ref(), Some(&run.run_id));
    assert!((completed.spent_before - members - run.usage.cost).abs() < 1e-9, "the judge counts, too: {completed:?}");
    assert_eq!(ruled(&again, INJECTION), said, "what the judge said stands");
    assert_eq!(ruled(&again, ENDLESS), ["dear finds it real, priority p1 becomes p0: no attempt is counted"]);
    assert_eq!(judge.asked(), 2);
    let second = judge.requests()[1].to_string();
    assert!(second.contains("Retries never stop") && !second.contains("SQL injection through"), "only what is new");
    let notes = panel.place.output(&again.run_id).expect("an output").notes;
    assert!(notes.contains(&format!("second opinions of dear are those of {}", run.run_id)), "{notes:?}");
    // A forced review asks about everything again.
    panel.one.answer_from_now_on(vec![first()]);
    panel.two.answer_from_now_on(vec![answer(&[report(
        INJECTION,
        "SECURITY",
        3,
        "User input `name` is concatenated into SQL: injection",
    )])]);
    panel.review(&["--panel", "four", "--force"], DONE);
    assert_eq!(judge.asked(), 3);
}

#[test]
fn a_focus_is_asked_for_and_is_another_question_than_the_whole_review() {
    let panel = Panel::start(vec![first(); 4], vec![second(); 3], "focus = { one = [\"SECURITY\"] }");
    let run = panel.review(&["--panel", "all"], DONE);
    let asked = panel.one.requests()[0].to_string();
    assert!(asked.contains("Look for problems of these kinds") && asked.contains("SECURITY"), "{asked}");
    assert!(!panel.two.requests()[0].to_string().contains("Look for problems of these kinds"));
    let member = panel.member(&run, "one");
    assert_eq!(member.reviewed_by.focus, [Kind::Security]);
    // A comparison says who was asked for less, and takes two whole reviews where there are such.
    let compared = || {
        let compared = panel.place.test.json(&["compare", "one", "two", "--format", "json"], DONE);
        (compared["runs"][0]["run_id"].clone(), [0, 1].map(|side| compared["runs"][side]["focus"].clone()))
    };
    assert_eq!(compared(), (json!(member.run_id), [json!(["SECURITY"]), json!([])]));
    let shown = out(&panel.place.test.revdeck(&["compare", "one", "two"]));
    let line = shown.lines().find(|line| line.starts_with("asked for")).unwrap_or_default();
    assert_eq!(line.split_whitespace().collect::<Vec<_>>(), ["asked", "for", "SECURITY", "all", "kinds"], "{shown}");
    // The whole review is not answered by the narrow one, nor the other way round.
    let whole = panel.review(&["--reviewer", "one"], DONE);
    assert_ne!(whole.run_id, member.run_id);
    assert_eq!(panel.one.asked(), 2);
    assert_eq!(panel.review(&["--panel", "all"], DONE).run_id, run.run_id);
    panel.review(&["--reviewer", "one,two", "--force"], DONE);
    panel.review(&["--panel", "all", "--force"], DONE);
    assert_eq!(compared().1, [json!([]), json!([])], "the newest review of the first model is a narrow one");
}

#[test]
fn what_one_member_calls_fixed_and_another_still_reports_is_disputed() {
    let only = |title: &str| answer(&[report(INJECTION, "SECURITY", 1, title)]);
    let panel = Panel::start(vec![first()], vec![only("User input `name` is concatenated into SQL: injection")], "");
    let run = panel.review(&["--panel", "all"], DONE);
    let id =
        panel.findings(&run).into_iter().find(|finding| finding.line_start == INJECTION).expect("there").finding_id;
    panel.place.revdeck(&["triage", id.as_str(), "addressed"]);
    // The line is edited; the first model is silent about it now, the second still reports it.
    let edited = CODE.replace("SELECT * FROM users", "SELECT id, mail FROM users");
    panel.place.test.write("src/users.py", &edited);
    let line = edited.lines().nth(INJECTION as usize - 1).expect("the line");
    let mut still = report(INJECTION, "SECURITY", 1, "User input `name` is concatenated into SQL: injection");
    still["quoted_code"] = line.into();
    panel.one.answer_from_now_on(vec![answer(&[])]);
    panel.two.answer_from_now_on(vec![answer(&[still])]);
    let again = panel.review(&["--panel", "all"], DONE);
    let findings = panel.findings(&again);
    let injection = findings.iter().find(|finding| finding.line_start == INJECTION).expect("still there");
    assert_eq!(injection.finding_id, id);
    let said: Vec<String> = injection.disputed.iter().map(ToString::to_string).collect();
    assert!(said.iter().any(|said| said == "one says that it is fixed, two still sees it"), "{said:?}");
    assert_eq!(injection.status, FindingStatus::Unresolved, "a claim that a member contradicts is not confirmed");
}

#[test]
fn a_decision_made_while_the_panel_works_holds_for_its_list() {
    let panel = Panel::start(vec![first()], vec![second()], "");
    let id = panel.start_held();
    let injection = |found: &Finding| found.line_start == INJECTION;
    let early = panel.findings(&panel.member(&panel.place.run(&id), "one"));
    let early = early.iter().find(|found| injection(found)).expect("found early");
    panel.place.revdeck(&["triage", early.finding_id.as_str(), "dismissed", "--reason", "intended"]);
    panel.two.let_go();
    let run = panel.place.ended(&id);
    let output = panel.place.output(&run.run_id).expect("an output");
    assert!(!output.findings.iter().any(injection), "{:#?}", output.findings);
    assert!(output.held_back.iter().any(|held| injection(&held.finding)));
    assert!(panel.listed().iter().all(|(line, _)| *line != u64::from(INJECTION)), "{:?}", panel.listed());
}

#[test]
fn pausing_a_panel_pauses_its_members() {
    let panel = Panel::start(vec![first()], vec![second()], "");
    let id = panel.start_held();
    panel.place.revdeck(&["pause", id.as_str()]);
    let run = panel.place.run(&id);
    assert_eq!([run.paused, panel.member(&run, "two").paused], [true; 2]);
    panel.two.let_go();
    panel.place.revdeck(&["resume", id.as_str()]);
    let run = panel.place.ended(&id);
    assert_eq!((run.status, panel.member(&run, "two").status), (RunStatus::Completed, RunStatus::Completed));
}

#[test]
fn a_panel_of_an_amended_commit_ends_with_what_its_members_found() {
    let panel = Panel::start(vec![first()], vec![second()], "");
    let id = panel.start_held();
    panel.place.test.write("src/users.py", CODE.replace("row[1]", "row[2]"));
    panel.place.test.git(&["commit", "-q", "-a", "--amend", "-m", "users"]);
    panel.place.revdeck(&["runs"]);
    let run = panel.place.ended(&id);
    assert_eq!((run.status, panel.member(&run, "two").status), (RunStatus::Cancelled, RunStatus::Cancelled));
    assert!(panel.findings(&run).iter().any(|finding| finding.line_start == INJECTION));
    panel.two.let_go();
}

#[test]
fn a_single_review_of_newer_code_ends_no_member_and_a_newer_panel_does() {
    let panel = Panel::start(vec![first(), first()], vec![second(), second(), second()], "");
    panel.place.test.write("src/users.py", CODE.replace("users.db", "first.db"));
    let id = panel.start_held();
    let run = panel.place.run(&id);
    // None of the hunks is as it was, so that nothing speaks for the older run.
    panel.place.test.write("src/users.py", CODE.replace("users.db", "second.db"));
    let single = out(&panel.place.test.revdeck(&["review", "--reviewer", "two"]));
    let single: RunId = single.split_whitespace().next().expect("an id").parse().expect("an id");
    wait_for("the request of the single review", || (panel.two.asked() == 2).then_some(()));
    let member = panel.member(&run, "two");
    assert_eq!((member.ending.cancel_reason, &member.links.superseded_by), (None, &None));
    // The newer run of the panel ends the older one, and adopts the single review.
    panel.place.revdeck(&["review", "--panel", "all"]);
    assert_eq!(panel.member(&run, "two").ending.cancel_reason, Some(CancelReason::Superseded));
    panel.two.let_go();
    assert_eq!(panel.place.ended(&id).status, RunStatus::Superseded);
    assert_eq!(panel.place.ended(&single).status, RunStatus::Completed);
}

#[test]
fn a_panel_ends_whole_although_newer_code_was_reviewed_meanwhile() {
    let panel = Panel::start(vec![first(), first()], vec![second(), second()], "");
    panel.place.test.write("src/users.py", CODE.replace("users.db", "first.db"));
    let id = panel.start_held();
    panel.place.test.write("src/users.py", CODE.replace("users.db", "second.db"));
    let single = out(&panel.place.test.revdeck(&["review", "--reviewer", "one", "--wait"]));
    assert!(single.contains("SQL injection"), "{single}");
    panel.two.let_go();
    let run = panel.place.ended(&id);
    assert_eq!((run.status, run.is_incomplete()), (RunStatus::Completed, false), "{}", run.outcome.summary);
    for reviewer in ["one", "two", "builtin"] {
        assert_eq!(panel.member(&run, reviewer).status, RunStatus::Completed);
        let replaced = || panel.member(&run, reviewer).links.superseded_by;
        assert_eq!(wait_for("a member below its panel", replaced).as_str(), run.run_id.as_str());
    }
}

#[test]
fn the_default_panel_is_for_people() {
    let panel = Panel::start(vec![first()], vec![second()], "");
    let settings = panel.place.test.home().join("config.toml");
    let written = std::fs::read_to_string(&settings).expect("settings");
    panel.place.settings(&format!("default_panel = \"all\"\n{written}"));
    assert_eq!(panel.review(&[], DONE).reviewed_by.name, "panel:all");
    let mut asking = panel.place.test.command(env!("CARGO_BIN_EXE_revdeck"));
    let asked = asking.env("REVDECK_ACTOR", "assistant").args(["review", "--format", "json"]).output();
    let printed: Value = serde_json::from_slice(&asked.expect("revdeck starts").stdout).expect("JSON");
    assert_eq!((&printed["run"]["reviewer"], &printed["decision"]["action"]), (&json!("builtin"), &json!("reuse")));
}

#[test]
fn unknown_panels_and_members_are_named() {
    let panel = Panel::start(vec![], vec![], "");
    for (arguments, said) in [
        (["--panel", "none"], "there is no panel named \"none\""),
        (["--reviewer", "one,ghost"], "there is no reviewer named \"ghost\""),
        (["--reviewer", "one,one"], "names \"one\" twice"),
    ] {
        let error = panel.place.test.errors(&[&["review"], &arguments[..]].concat(), 2);
        assert!(error.contains(said), "{error}");
    }
    assert!(panel.place.runs().is_empty(), "nothing is recorded");
}
