//! Integration tests of members that report different problems of one kind at the same code, and so under one id.

use revdeck::domain::FindingId;
use rstest::rstest;

use super::*;

/// Problem that `one` reports.
const INJECTED: &str = "SQL injection through `name`";
/// Problem that `two` reports at the same code.
const PERMISSION: &str = "Any caller may delete: no permission is needed";

/// Starts the two models. A member that is started again is answered the same.
fn start(more: &str) -> Panel {
    let turns = |title: &str| vec![answer(&[report(INJECTION, "SECURITY", 1, title)]); 2];
    Panel::start(turns(INJECTED), turns(PERMISSION), more)
}

/// Returns the ids and titles of findings, sorted by title.
fn outline<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Vec<(FindingId, String)> {
    let named = findings.into_iter().map(|finding| (finding.finding_id.clone(), finding.title.clone()));
    let mut named: Vec<(FindingId, String)> = named.collect();
    named.sort_by(|one, other| one.1.cmp(&other.1));
    named
}

/// Requests the panel, and waits until one member has ended and the other one is asked and held.
fn request_held(panel: &Panel, held: &str) -> RunId {
    let (slow, quick) = if held == "one" { (&panel.one, "two") } else { (&panel.two, "one") };
    slow.hold_after(0);
    let started = out(&panel.place.test.revdeck(&["review", "--reviewer", "one,two"]));
    let id: RunId = started.split_whitespace().next().expect("an id").parse().expect("an id");
    wait_for("the request to the held model", || (slow.asked() == 1).then_some(()));
    let run = panel.place.run(&id);
    wait_for("the end of the other member", || panel.member(&run, quick).status.is_terminal().then_some(()));
    id
}

/// Has the held member answered, after it was started again if `is_killed`: its worker then begins when the other member has
/// ended. Returns the run of the panel at its end.
fn go_on(panel: &Panel, id: &RunId, held: &str, is_killed: bool) -> RunRecord {
    if is_killed {
        let member = panel.member(&panel.place.run(id), held).run_id;
        let worker = wait_for("the worker", || panel.place.worker(&member));
        signal(worker, Signal::KILL);
        wait_for("the worker's end", || gone(worker).then_some(()));
    }
    [&panel.one, &panel.two].into_iter().for_each(Model::let_go);
    panel.place.revdeck(&["runs"]);
    panel.place.ended(id)
}

#[test]
fn the_ids_of_the_list_do_not_depend_on_who_ends_first() {
    let mut lists = Vec::new();
    for (held, is_killed) in [("one", false), ("one", true), ("two", false), ("two", true)] {
        let panel = start("");
        let id = request_held(&panel, held);
        let run = go_on(&panel, &id, held, is_killed);
        assert_eq!((run.status, run.is_incomplete()), (RunStatus::Completed, false), "{}", run.outcome.summary);
        assert_eq!(panel.listed().len(), 2, "{:?}", panel.listed());
        lists.push(outline(&panel.findings(&run)));
    }
    assert_eq!(lists[0].len(), 2, "{lists:?}");
    assert!(lists.iter().all(|list| *list == lists[0]), "{lists:#?}");
}

#[rstest]
#[case::about_the_first_member("two", false)]
#[case::about_the_first_member_before_a_kill("two", true)]
#[case::about_the_second_member("one", false)]
#[case::about_the_second_member_before_a_kill("one", true)]
fn a_decision_between_two_ends_stays_with_its_problem(#[case] held: &str, #[case] is_killed: bool) {
    let panel = start("");
    let id = request_held(&panel, held);
    let (quick, decided, other) =
        if held == "two" { ("one", INJECTED, PERMISSION) } else { ("two", PERMISSION, INJECTED) };
    let early = panel.findings(&panel.member(&panel.place.run(&id), quick));
    let [early] = early.as_slice() else { panic!("{early:#?}") };
    panel.place.revdeck(&["triage", early.finding_id.as_str(), "dismissed", "--reason", "intended"]);
    let run = go_on(&panel, &id, held, is_killed);
    let output = panel.place.output(&run.run_id).expect("an output");
    let raised = outline(&output.findings);
    assert_eq!(raised.iter().map(|(_, title)| title.as_str()).collect::<Vec<_>>(), [other], "{output:#?}");
    let held_back = outline(output.held_back.iter().map(|held| &held.finding));
    assert_eq!(held_back, [(early.finding_id.clone(), decided.to_owned())]);
    assert_eq!(panel.listed(), [(u64::from(INJECTION), other.to_owned())]);
}

#[test]
fn each_reviewer_is_worth_what_became_of_its_own_problem() {
    let panel = start("");
    let run = panel.review(&["--reviewer", "one,two"], DONE);
    let list = outline(&panel.findings(&run));
    let [(permission, _), (injected, _)] = list.as_slice() else { panic!("{list:?}") };
    let [listed] = run.outcome.listed_as.as_slice() else { panic!("{:?}", run.outcome.listed_as) };
    assert_eq!((&listed.reported_as, &listed.finding_id), (injected, permission), "both had one id");
    assert_eq!(listed.run_id, panel.member(&run, "two").run_id);
    panel.place.revdeck(&["triage", injected.as_str(), "dismissed", "--reason", "false alarm"]);
    panel.place.revdeck(&["triage", permission.as_str(), "addressed"]);
    let stats = panel.place.test.json(&["stats", "--format", "json"], DONE);
    let rows = stats["worth"]["by_reviewer"].as_array().expect("rows");
    let counts = |name: &str| {
        let row = rows.iter().find(|row| row["name"] == name).expect("a row");
        ["raised", "accepted", "dismissed"].map(|key| row[key].as_u64().expect("a number"))
    };
    assert_eq!((counts("one"), counts("two")), ([1, 0, 1], [1, 1, 0]), "{stats}");
    let compared = panel.place.test.json(&["compare", "one", "two", "--format", "json"], DONE);
    let outcome = |found: &Value| ["finding_id", "status"].map(|key| found[0][key].as_str().unwrap_or("").to_owned());
    assert_eq!(outcome(&compared["only_first"]), [injected.as_str(), "dismissed"], "{compared}");
    assert_eq!(outcome(&compared["only_second"]), [permission.as_str(), "addressed"], "{compared}");
    let sum = panel.place.test.json(&["compare", "one", "two", "--all", "--format", "json"], DONE);
    assert_eq!((&sum["only_first"]["dismissed"], &sum["only_second"]["addressed"]), (&1.into(), &1.into()), "{sum}");
}

#[test]
fn a_later_panel_of_the_same_members_gives_the_same_ids_and_keeps_the_decision() {
    let third = Model::start(vec![answer(&[])]);
    let panel = start(&reviewer("third", &third, CHEAP));
    let run = panel.review(&["--reviewer", "one,two"], DONE);
    let before = outline(&panel.findings(&run));
    let [(permission, _), (injected, _)] = before.as_slice() else { panic!("{before:?}") };
    panel.place.revdeck(&["triage", injected.as_str(), "dismissed", "--reason", "intended"]);
    let again = panel.review(&["--reviewer", "one,two,third"], DONE);
    assert_eq!((panel.one.asked(), panel.two.asked(), third.asked()), (1, 1, 1), "two are reused");
    assert_eq!(outline(&panel.findings(&again)), [(permission.clone(), PERMISSION.to_owned())]);
}
