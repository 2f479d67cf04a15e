//! Kills the workers of three members after an answer and after their result, and the command that asks for the panel between
//! the records of the members and that of the panel. The list is always the same, and nobody is asked twice for what was
//! answered.

use rstest::rstest;

use super::kills::describe;
use super::*;

/// Members of the panel, in the order in which they are recorded.
const MEMBERS: [&str; 3] = ["one", "two", "third"];

/// A panel of three members with two turns each.
struct Trio {
    panel: Panel,
    third: Model,
}

/// Returns the turns of a member.
fn turns(member: &str) -> Vec<Turn> {
    let read = calls(&[("read_file", json!({ "path": "src/users.py", "start_line": 1, "end_line": 5 }))]);
    let last = match member {
        "one" => first(),
        "two" => second(),
        _ => answer(&[report(DIVISION, "CORRECTNESS", 2, "Division by zero for an empty list")]),
    };
    vec![read, last]
}

/// Returns the number of answers among the entries of a journal.
fn count_answers(events: &[RunEvent]) -> usize {
    events.iter().filter(|event| matches!(event, RunEvent::TurnAnswered { .. })).count()
}

impl Trio {
    /// Starts the members with the turns that `script` returns for their names.
    fn start(script: impl Fn(&str) -> Vec<Turn>) -> Self {
        let third = Model::start(script("third"));
        let more =
            format!("[panels.trio]\nreviewers = [\"one\", \"two\", \"third\"]\n{}", reviewer("third", &third, CHEAP));
        Self { panel: Panel::start(script("one"), script("two"), &more), third }
    }

    fn model(&self, name: &str) -> &Model {
        match name {
            "one" => &self.panel.one,
            "two" => &self.panel.two,
            _ => &self.third,
        }
    }

    /// Returns the number of requests to each member.
    fn asked(&self) -> [usize; 3] {
        MEMBERS.map(|name| self.model(name).asked())
    }

    /// Leaves the store as if the command that asked for the panel had died when it had recorded `recorded` of the members, and
    /// no worker had begun.
    fn forget_panel(&self, panel: &RunId, members: &[RunId], recorded: usize) {
        let root = self.panel.place.store().root().to_owned();
        let path = root.join("runs.ndjson");
        let text = std::fs::read_to_string(&path).expect("the runs");
        let mut kept = String::new();
        for member in &members[..recorded] {
            let is_of =
                |line: &&str| serde_json::from_str::<RunRecord>(line).is_ok_and(|record| record.run_id == *member);
            kept.push_str(text.split_inclusive('\n').find(is_of).expect("the first record of the member"));
        }
        for run in members.iter().chain([panel]) {
            let _ = std::fs::remove_file(root.join("events").join(format!("{run}.jsonl")));
        }
        // The store would notice that lines are gone, and its checkpoint has read them.
        for name in ["extents", "view.cache"] {
            let _ = std::fs::remove_file(root.join(name));
        }
        std::fs::write(path, kept).expect("the runs are writable");
    }
}

#[rstest]
#[case::the_first("one")]
#[case::the_second("two")]
#[case::the_last("third")]
fn a_member_that_is_killed_after_an_answer_or_its_result_asks_only_for_what_is_missing(#[case] killed: &str) {
    let trio = Trio::start(turns);
    let place = &trio.panel.place;
    let run = trio.panel.review(&["--panel", "trio"], DONE);
    let list = describe(&trio.panel.findings(&run));
    assert_eq!((list.len(), trio.asked()), (3, [2; 3]), "{list:#?}");
    let member = trio.panel.member(&run, killed).run_id;
    let (journal, events) = (place.journal_lines(&member), place.events(&member));
    assert_eq!(count_answers(&events), 2, "{events:#?}");
    // Without `entries`, the member has ended, and the panel has not begun.
    let go_on = |entries: Option<usize>, at: &str| {
        for worker in [&run.run_id, &member].into_iter().filter_map(|run| place.worker(run)) {
            wait_for("the worker's end", || gone(worker).then_some(()));
        }
        std::fs::remove_file(place.output_path(&run.run_id)).expect("the list");
        place.take_back(&run.run_id, &[], |run| (run.status, run.attempt) = (RunStatus::Pending, 0));
        if let Some(entries) = entries {
            if entries < journal.len() {
                std::fs::remove_file(place.output_path(&member)).expect("the result of the member");
            }
            let died = (RunStatus::Reviewing, 1);
            place.take_back(&member, &journal[..entries], |run| (run.status, run.attempt) = died);
        }
        let lost = entries.map_or(0, |entries| count_answers(&events[entries..]));
        trio.model(killed).answer_from_now_on(turns(killed).split_off(2 - lost));
        let before = trio.asked();
        // Every command looks for dead workers, and leaves those alone that have just begun.
        wait_for("the end of the panel", || {
            place.revdeck(&["runs"]);
            place.run(&run.run_id).status.is_terminal().then_some(())
        });
        let ended = place.run(&run.run_id);
        assert_eq!((ended.status, ended.is_incomplete()), (RunStatus::Completed, false), "{at}");
        assert_eq!(describe(&trio.panel.findings(&ended)), list, "{at}");
        assert_eq!(trio.panel.listed().len(), list.len(), "{at}: the store has each problem once");
        let now = trio.asked();
        let paid: [usize; 3] = std::array::from_fn(|member| now[member] - before[member]);
        let expected = MEMBERS.map(|name| if name == killed { lost } else { 0 });
        assert_eq!(paid, expected, "{at}: {MEMBERS:?}");
    };
    for (entry, event) in events.iter().enumerate() {
        if let RunEvent::TurnAnswered { .. } = event {
            go_on(Some(entry + 1), &format!("entry {entry} of the journal is an answer"));
        }
    }
    go_on(Some(journal.len()), "the result is written, and nobody knows");
    go_on(None, "the member has ended, and the panel has not seen it");
}

#[rstest]
#[case::one_member(1)]
#[case::two_members(2)]
#[case::all_members(3)]
fn members_whose_panel_was_never_recorded_are_taken_by_the_next_request(#[case] recorded: usize) {
    // The first request of each member is never answered, and sent again.
    let trio = Trio::start(|name| {
        let turns = turns(name);
        [&turns[..1], &turns[..]].concat()
    });
    MEMBERS.iter().for_each(|name| trio.model(name).hold_after(0));
    let place = &trio.panel.place;
    let started = out(&place.test.revdeck(&["review", "--panel", "trio"]));
    let id: RunId = started.split_whitespace().next().expect("an id").parse().expect("an id");
    wait_for("the requests", || (trio.asked() == [1; 3]).then_some(()));
    let run = place.run(&id);
    let members = MEMBERS.map(|name| trio.panel.member(&run, name).run_id);
    let workers = members.each_ref().map(|member| wait_for("a worker", || place.worker(member)));
    workers.iter().for_each(|worker| signal(*worker, Signal::KILL));
    workers.iter().for_each(|worker| wait_for("the worker's end", || gone(*worker).then_some(())));
    trio.forget_panel(&id, &members, recorded);
    MEMBERS.iter().for_each(|name| trio.model(name).let_go());
    let run = trio.panel.review(&["--panel", "trio"], DONE);
    assert_ne!(run.run_id, id);
    for (name, member) in MEMBERS.iter().zip(&members).take(recorded) {
        assert_eq!(trio.panel.member(&run, name).run_id, *member, "{name} is on its way already");
    }
    assert_eq!(trio.asked(), [3; 3], "nobody is asked twice for what was answered");
    let list = describe(&trio.panel.findings(&run));
    assert_eq!((list.len(), trio.panel.listed().len()), (3, 3), "{list:#?}");
}
