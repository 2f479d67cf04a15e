//! Kills the workers of a panel: those of its members at each of their requests, and its own at each of its requests and
//! at each entry of its journal. The list is always the same, and nothing that was answered is paid for again.

use rstest::rstest;

use super::*;

/// Reviewers of the panel that are models.
const MODELS: [&str; 4] = ["one", "two", "dear", "boss"];

/// The list of the panel: line, priority and title, voices, steps, disputes.
const LIST: [&str; 2] = [
    "6 p0 SQL injection through `name` | one p0, two p3 | \
     2 of 2 reviewers agree: confidence raised from medium to high, priority p0: the most urgent of p0, p3, \
     dear finds it real: name reaches the statement | the priorities go from p0 to p3",
    "11 p2 Division by zero for an empty list | one p2 | boss finds it real: nothing checks the length | ",
];

/// A panel of two members with two turns each, a judge and an escalation.
struct Scenario {
    panel: Panel,
    dear: Model,
    boss: Model,
}

/// Returns the turns of a model.
fn turns(model: &str) -> Vec<Turn> {
    let read = || calls(&[("read_file", json!({ "path": "src/users.py", "start_line": 1, "end_line": 5 }))]);
    let ruling =
        |reason: &str| says(json!({ "rulings": [{ "number": 1, "verdict": "real", "reason": reason }] }).to_string());
    let title = "User input `name` is concatenated into SQL: injection";
    match model {
        "one" => vec![read(), first()],
        "two" => vec![read(), answer(&[report(INJECTION, "SECURITY", 3, title)])],
        "dear" => vec![ruling("name reaches the statement")],
        _ => vec![ruling("nothing checks the length")],
    }
}

impl Scenario {
    /// Starts the models with the turns that `script` returns for their names.
    fn start(script: impl Fn(&str) -> Vec<Turn>) -> Self {
        let (dear, boss) = (Model::start(script("dear")), Model::start(script("boss")));
        let more = format!(
            "[panels.pair]\nreviewers = [\"one\", \"two\"]\njudge = \"dear\"\n\
             escalate = {{ to = \"boss\", when = \"p2\" }}\n{}{}",
            reviewer("dear", &dear, DEAR),
            reviewer("boss", &boss, DEAR)
        );
        Self { panel: Panel::start(script("one"), script("two"), &more), dear, boss }
    }

    fn model(&self, name: &str) -> &Model {
        match name {
            "one" => &self.panel.one,
            "two" => &self.panel.two,
            "dear" => &self.dear,
            _ => &self.boss,
        }
    }

    /// Returns the number of requests to each model.
    fn asked(&self) -> [usize; 4] {
        MODELS.map(|name| self.model(name).asked())
    }

    fn request(&self) -> RunId {
        let started = out(&self.panel.place.test.revdeck(&["review", "--panel", "pair"]));
        started.split_whitespace().next().expect("an id").parse().expect("an id")
    }

    /// Checks the list of the panel, and that its members are below it.
    fn check(&self, panel: &RunId, at: &str) {
        let run = self.panel.place.ended(panel);
        assert_eq!((run.status, run.is_incomplete()), (RunStatus::Completed, false), "{at}: {}", run.outcome.summary);
        assert_eq!(describe(&self.panel.findings(&run)), LIST, "{at}");
        assert_eq!(self.panel.listed().len(), LIST.len(), "{at}: the store has each problem once");
        for name in ["one", "two"] {
            let replaced = || self.panel.member(&run, name).links.superseded_by;
            assert_eq!(wait_for("a member below its panel", replaced), *panel, "{at}: {name}");
        }
    }
}

/// Describes a list as in [`LIST`].
pub(super) fn describe(findings: &[Finding]) -> Vec<String> {
    let describe = |finding: &Finding| {
        let voices = finding.voices.iter().map(|voice| format!("{} {}", voice.reviewer, voice.priority));
        let voices = voices.collect::<Vec<_>>().join(", ");
        let steps = finding.steps.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let disputes = finding.disputed.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        format!("{} {} {} | {voices} | {steps} | {disputes}", finding.line_start, finding.priority, finding.title)
    };
    findings.iter().map(describe).collect()
}

#[rstest]
#[case::first_request_of_a_member("one", 0)]
#[case::last_request_of_a_member("one", 1)]
#[case::first_request_of_the_other("two", 0)]
#[case::last_request_of_the_other("two", 1)]
#[case::escalation("boss", 0)]
#[case::judge("dear", 0)]
fn a_worker_that_is_killed_during_a_request_sends_only_that_one_again(#[case] killed: &str, #[case] at: usize) {
    // The request under way is sent again, and gets the same answer.
    let script = |name: &str| {
        let turns = turns(name);
        if name == killed { [&turns[..=at], &turns[at..]].concat() } else { turns }
    };
    let scenario = Scenario::start(script);
    let model = scenario.model(killed);
    model.hold_after(at);
    let id = scenario.request();
    wait_for("the request", || (model.asked() == at + 1).then_some(()));
    let place = &scenario.panel.place;
    let run = place.run(&id);
    let is_member = ["one", "two"].contains(&killed);
    let victim = if is_member { scenario.panel.member(&run, killed).run_id } else { id.clone() };
    let worker = wait_for("the worker", || place.worker(&victim));
    signal(worker, Signal::KILL);
    wait_for("the worker's end", || gone(worker).then_some(()));
    model.let_go();
    // Another process goes on with what the worker left.
    place.revdeck(&["runs"]);
    scenario.check(&id, killed);
    let expected = MODELS.map(|name| turns(name).len() + usize::from(name == killed));
    assert_eq!(scenario.asked(), expected, "{MODELS:?}");
    let attempts = |run: &RunId| place.run(run).attempt;
    assert_eq!(attempts(&victim), 2);
    let members = ["one", "two"].map(|name| scenario.panel.member(&run, name).run_id);
    for other in members.iter().chain([&id]).filter(|run| **run != victim) {
        assert_eq!(attempts(other), 1, "the others go on");
    }
}

#[test]
fn a_panel_that_is_killed_after_any_entry_of_its_journal_gives_the_same_list_and_asks_nobody_twice() {
    // Each request may be sent again at each point.
    let scenario = Scenario::start(|name| match name {
        "one" | "two" => turns(name),
        _ => std::iter::repeat_with(|| turns(name)).take(40).flatten().collect(),
    });
    let place = &scenario.panel.place;
    let id = scenario.request();
    scenario.check(&id, "undisturbed");
    let worker = place.worker(&id).expect("a worker");
    wait_for("the worker's end", || gone(worker).then_some(()));
    let journal = place.journal_lines(&id);
    let events = place.events(&id);
    let is_answer = |event: &RunEvent| matches!(event, RunEvent::TurnAnswered { .. });
    assert_eq!(events.iter().filter(|event| is_answer(event)).count(), 2, "{events:#?}");
    let cut = |entries: usize, at: &str| {
        place.take_back(&id, &journal[..entries], |run| (run.status, run.attempt) = (RunStatus::Reviewing, 1));
        let before = scenario.asked();
        // Every command looks for dead workers, and leaves those alone that have just begun.
        wait_for("a worker that goes on", || {
            place.revdeck(&["runs"]);
            place.run(&id).status.is_terminal().then_some(())
        });
        scenario.check(&id, at);
        let worker = place.worker(&id).expect("a worker");
        wait_for("the worker's end", || gone(worker).then_some(()));
        let paid: usize = scenario.asked().iter().zip(before).map(|(now, before)| now - before).sum();
        let lost = events[entries..].iter().filter(|event| is_answer(event)).count();
        assert_eq!(paid, lost, "{at}: only what was not answered is asked for");
    };
    // The worker had written its result, and nobody knew.
    cut(events.len(), "the result is written");
    // Entries of one kind follow each other: the last of them stands for all.
    let kind = std::mem::discriminant::<RunEvent>;
    let ends = (1..events.len()).filter(|at| kind(&events[at - 1]) != kind(&events[*at]));
    for entries in ends.collect::<Vec<_>>() {
        std::fs::remove_file(place.output_path(&id)).expect("the output is there");
        cut(entries, &format!("after {:?}", events[entries - 1]));
    }
    assert_eq!(scenario.asked()[..2], [2, 2], "the members are never asked again");
}
