//! What a model is told of the code around a change, and the index that is made meanwhile.

use std::path::PathBuf;

use revdeck::config::Paths;
use revdeck::context::index::{Index, Reach};
use revdeck::domain::{RunEvent, RunId, RunStatus, Surroundings};
use revdeck::git::Repo;
use rustix::process::Signal;
use serde_json::json;

use super::server::{Model, calls};
use super::{finish, settings};
use crate::runner::place::{Place, gone, signal, wait_for};

/// A key of the right shape that nobody ever held, in two parts: whole it would alarm every scanner.
const AWS: &str = concat!("AKI", "AQ3EGRVZ7TNWLXJ5D");
/// Code of a file that does not change, and calls what does.
const CALLER: &str = "sum(prices.lookup_price(item) for item in items)";

/// Prices, of which a function is changed in the worktree, a store that calls it, and files that have nothing to do
/// with either.
fn shop() -> Place {
    let place = Place::new();
    let price = |signature: &str| {
        format!("class PriceList:\n    def lookup_price({signature}):\n        return self.table[item]\n")
    };
    place.test.write("src/price.py", price("self, item"));
    place.test.write(
        "src/store.py",
        format!(
            "from price import PriceList\n\nACCESS = \"{AWS}\"\n\n\ndef total(items):\n    prices = PriceList()\n    return {CALLER}\n"
        ),
    );
    for number in 0..20 {
        let text = format!("def walk_{number}(road):\n    return road.next_{number}\n");
        place.test.write(&format!("other/part_{number}.py"), text);
    }
    place.test.commit("A shop");
    place.test.write("src/price.py", price("self, item, day"));
    place
}

/// The first message of a request, which holds the task.
fn task(model: &Model, request: usize) -> String {
    let request = &model.requests()[request];
    let messages = request["messages"].as_array().expect("messages");
    let task = messages.iter().find(|message| message["role"] == "user").expect("a task");
    task["content"].as_str().map_or_else(|| task["content"].to_string(), str::to_owned)
}

fn told(place: &Place, run: &RunId) -> Vec<Surroundings> {
    let told = place.events(run).into_iter().filter_map(|event| match event {
        RunEvent::Surrounded { context } => Some(*context),
        _ => None,
    });
    told.collect()
}

fn index_of(place: &Place) -> (Repo, PathBuf) {
    let repo = Repo::discover(&place.test.repo()).expect("a repository");
    let folder = Paths::below(&place.test.home()).index_folder(&repo.key());
    (repo, folder)
}

/// Whether all of a run's snapshot is indexed.
fn is_whole(place: &Place, run: &RunId) -> bool {
    let (repo, folder) = index_of(place);
    let index = Index::open(&folder, &repo, &place.run(run).snapshot_commit).ok().flatten();
    index.is_some_and(|index| index.reach() == Reach::Whole)
}

/// Whether anything is said of an index.
fn speaks_of_an_index(context: &Surroundings) -> bool {
    context.notes.iter().any(|note| note.contains("index"))
}

#[test]
fn the_first_request_has_a_caller_of_the_changed_function_from_a_file_that_did_not_change() {
    let place = shop();
    let model = Model::start(vec![calls(&[finish()])]);
    settings(&place, &model, "");
    let run = place.review(&["--reviewer", "m", "--worktree", "--wait"]);
    let task = task(&model, 0);
    let around = task.split("</diff>").nth(1).expect("behind the diff");
    assert!(around.contains(CALLER) && around.contains("src/store.py"), "{task}");
    assert!(!task.contains(AWS) && !model.requests()[0].to_string().contains(AWS), "secrets are masked");
    assert!(!around.contains("class PriceList"), "what the diff tells is not told again: {around}");
    let events = place.events(&run);
    let [context] = &told(&place, &run)[..] else { panic!("told once: {events:#?}") };
    let is_asked = |event: &RunEvent| matches!(event, RunEvent::TurnAsked { .. });
    let is_told = |event: &RunEvent| matches!(event, RunEvent::Surrounded { .. });
    assert!(events.iter().position(is_told) < events.iter().position(is_asked), "before anything is asked");
    let section = context.sections.iter().find(|section| section.path == "src/store.py").expect("the caller");
    assert!(section.start_line <= 8 && section.end_line >= 8 && section.tokens > 0 && !section.reason.is_empty());
    assert!(context.sections.iter().all(|section| section.path != "src/price.py"));
    assert!(context.total_tokens > 0 && context.total_tokens <= context.budget && context.budget == 8_000);
    assert!(!json!(events).to_string().contains(AWS));
}

#[test]
fn it_can_be_switched_off() {
    let place = shop();
    let model = Model::start(vec![calls(&[finish()])]);
    settings(&place, &model, "[context]\ntokens = 0");
    let run = place.review(&["--reviewer", "m", "--worktree", "--wait"]);
    let task = task(&model, 0);
    assert!(task.contains("<context>\nnone\n</context>") && !task.contains(CALLER), "{task}");
    assert_eq!(told(&place, &run), []);
    assert_eq!(place.run(&run).status, RunStatus::Completed);
}

/// A function that is changed in the worktree, 40 files that call it, and rules of the house.
fn users() -> Place {
    let place = Place::new();
    let lines = |call: &str| -> String { (0..60).map(|line| format!("    {call}({line}, {line} + 1)\n")).collect() };
    place.test.write("src/base.py", format!("def base(a, b):\n{}", lines("first_step")));
    for number in 0..40 {
        place.test.write(&format!("src/user_{number}.py"), format!("def user_{number}():\n{}", lines("base")));
    }
    place.test.write("AGENTS.md", "# Rules\n\nSteps are never repeated.\n");
    place.test.write("other/AGENTS.md", "# Rules\n\nNone.\n");
    place.test.commit("base");
    place.test.write("src/base.py", format!("def base(a, b, c):\n{}", lines("other_step")));
    place
}

#[test]
fn a_small_window_is_not_overrun() {
    const WINDOW: u64 = 12_000;
    let place = users();
    let read = |number: u32| ("read_file", json!({ "path": format!("src/user_{number}.py") }));
    let turns = (0..10).map(|turn| calls(&[read(turn), read(turn + 10), read(turn + 20)]));
    let model = Model::start(turns.chain([calls(&[finish()])]).collect());
    settings(&place, &model, &format!("[window]\nmax_tokens = {WINDOW}"));
    let run = place.review(&["--reviewer", "m", "--worktree", "--wait"]);
    let context = told(&place, &run).remove(0);
    assert!(context.total_tokens > 0 && u64::from(context.budget) <= WINDOW / 5, "{context:?}");
    assert!(context.total_tokens <= context.budget && context.left_out_total > 0);
    let asked = place.events(&run).into_iter().filter_map(|event| match event {
        RunEvent::TurnAsked { window, .. } => Some(window.tokens),
        _ => None,
    });
    let asked: Vec<u64> = asked.collect();
    assert!(asked.len() > 5 && asked.iter().all(|tokens| *tokens <= WINDOW), "{asked:?}");
}

#[test]
fn after_a_kill_the_same_is_told_and_the_journal_has_it_once() {
    let place = shop();
    let model = Model::start(vec![calls(&[finish()]), calls(&[finish()])]);
    model.hold_after(0);
    settings(&place, &model, "");
    let run = place.review(&["--reviewer", "m", "--worktree"]);
    wait_for("the first request", || (model.asked() == 1).then_some(()));
    let worker = place.worker(&run).expect("a worker");
    signal(worker, Signal::KILL);
    wait_for("the worker's end", || gone(worker).then_some(()));
    model.let_go();
    place.revdeck(&["runs"]);
    let record = place.ended(&run);
    assert_eq!((record.status, record.attempt, model.asked()), (RunStatus::Completed, 2, 2));
    assert_eq!(told(&place, &run).len(), 1);
    assert!(task(&model, 0).contains(CALLER));
    assert_eq!(task(&model, 0), task(&model, 1));
}

#[test]
fn the_index_is_made_while_the_model_is_waited_for() {
    let place = shop();
    let look = || calls(&[("find_symbol", json!({ "name": "lookup_price" }))]);
    let model = Model::start(vec![look(), calls(&[finish()]), look(), calls(&[finish()])]);
    model.hold_after(0);
    settings(&place, &model, "");
    let first = place.review(&["--reviewer", "m", "--worktree"]);
    wait_for("the first request", || (model.asked() == 1).then_some(()));
    wait_for("the index, though nothing is answered", || is_whole(&place, &first).then_some(()));
    model.let_go();
    assert_eq!(place.ended(&first).status, RunStatus::Completed);
    assert!(speaks_of_an_index(&told(&place, &first)[0]), "there was none");
    let second = place.review(&["--reviewer", "m", "--worktree", "--wait", "--force"]);
    let context = told(&place, &second).remove(0);
    assert!(!speaks_of_an_index(&context), "{context:?}");
    let found = |request: usize| model.requests()[request]["messages"].as_array().expect("messages").last().cloned();
    assert_eq!(found(1), found(3), "with an index the tool says the same");
    assert!(found(1).is_some_and(|answer| answer.to_string().contains("1 definition")), "{:?}", found(1));
}

#[test]
fn a_damaged_index_is_rebuilt_and_that_is_said_once() {
    let place = shop();
    let model = Model::start((0..3).map(|_| calls(&[finish()])).collect());
    settings(&place, &model, "");
    let (repo, folder) = index_of(&place);
    let commit = repo.resolve_commit("HEAD").expect("a commit");
    let go_on = |_| std::ops::ControlFlow::Continue(());
    drop(Index::refresh(&folder, &repo, &commit, &go_on).expect("an index"));
    for file in std::fs::read_dir(&folder).expect("the index").flatten() {
        if !file.file_name().to_string_lossy().starts_with("view-") {
            std::fs::write(file.path(), "half of it").expect("a file");
        }
    }
    model.hold_after(0);
    let said = |run: &RunId| {
        let is_said = |event: &RunEvent| matches!(event, RunEvent::Note { text } if text.contains("rebuilt"));
        place.events(run).iter().filter(|event| is_said(event)).count()
    };
    let first = place.review(&["--reviewer", "m", "--worktree"]);
    wait_for("the first request", || (model.asked() == 1).then_some(()));
    wait_for("the index", || is_whole(&place, &first).then_some(()));
    model.let_go();
    assert_eq!((place.ended(&first).status, said(&first)), (RunStatus::Completed, 1));
    let second = place.review(&["--reviewer", "m", "--worktree", "--wait", "--force"]);
    assert_eq!((place.run(&second).status, said(&second)), (RunStatus::Completed, 0));
}

#[test]
fn an_index_that_cannot_be_made_costs_the_review_nothing() {
    let place = shop();
    let model = Model::start(vec![calls(&[finish()]), calls(&[finish()])]);
    settings(&place, &model, "");
    let (_, folder) = index_of(&place);
    std::fs::create_dir_all(folder.parent().expect("a folder")).expect("a folder");
    // Where the index should be stands a file.
    std::fs::write(&folder, "no index").expect("a file");
    let run = place.review(&["--reviewer", "m", "--worktree", "--wait"]);
    assert_eq!(place.run(&run).status, RunStatus::Completed);
    assert!(task(&model, 0).contains(CALLER));
}

#[test]
fn what_the_command_prints_is_what_is_sent() {
    for window in [12_000, 60_000] {
        let place = users();
        let model = Model::start(vec![calls(&[finish()])]);
        settings(&place, &model, &format!("[window]\nmax_tokens = {window}"));
        let run = place.review(&["--reviewer", "m", "--worktree", "--wait"]);
        let (task, context) = (task(&model, 0), told(&place, &run).remove(0));
        let printed = place.revdeck(&["context", "worktree", "--reviewer", "m", "--format", "json"]);
        let printed: serde_json::Value = serde_json::from_str(&printed).expect("JSON");
        let sections = printed["sections"].as_array().expect("sections");
        for section in sections {
            let text = section["text"].as_str().expect("a text");
            assert!(task.contains(text.trim_end()), "{window}: not sent: {text}");
        }
        let is_front = |section: &&serde_json::Value| {
            let place = (&section["path"], section["kind"].as_str());
            place.0.is_null() && matches!(place.1, Some("rules" | "diff"))
        };
        let kinds: Vec<_> = sections.iter().filter(is_front).map(|section| &section["kind"]).collect();
        assert_eq!((kinds[0], kinds[1]), (&json!("rules"), &json!("diff")), "{window}");
        let places = sections.iter().filter(|section| !is_front(section));
        let places =
            places.map(|section| json!([section["path"].as_str().unwrap_or(""), section["kind"], section["tokens"]]));
        let sent = context.sections.iter().map(|section| json!([section.path, section.kind, section.tokens]));
        assert_eq!(places.collect::<Vec<_>>(), sent.collect::<Vec<_>>(), "{window}");
        let front: u64 = sections.iter().filter(is_front).filter_map(|section| section["tokens"].as_u64()).sum();
        let whole = printed["budget"].as_u64().expect("a budget");
        assert!(whole.abs_diff(front + u64::from(context.budget)) < 5, "{whole} of {front} and {}", context.budget);
        let kinds: Vec<&str> = context.sections.iter().map(|section| section.kind.as_str()).collect();
        assert!(kinds.contains(&"overview") && kinds.contains(&"documentation"), "{kinds:?}");
        assert!(context.total_tokens <= context.budget);
    }
}
