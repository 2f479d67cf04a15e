//! No process of a program outlives the review, however the review ends.

use std::cell::RefCell;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use revdeck::reviewers::chat::Chat;
use rstest::rstest;
use rustix::process::{Signal, kill_process_group};

use super::place::{Place, Watcher, keeper, request};
use crate::runner::place::{gone, pid, signal, wait_for};

/// A process family that ignores signals to end: the program, a child, a grandchild in the same group, and on Linux a
/// process with its own session whose parent has ended. Each writes its process id into the folder in which it runs.
const FAMILY: &str = r#"trap '' TERM INT HUP
sh -c 'trap "" TERM INT HUP
  sh -c "trap \"\" TERM INT HUP; echo \$\$ > grandchild; while :; do sleep 1; done" &
  echo $$ > child; while :; do sleep 1; done' &
if command -v setsid > /dev/null; then
  (setsid sh -c 'trap "" TERM INT HUP; echo $$ > apart; while :; do sleep 1; done' > /dev/null 2>&1 < /dev/null &)
else
  echo $$ > apart
fi
echo $$ > program
while :; do sleep 1; done"#;

/// Returns the process ids of the whole family once all of them exist.
fn family(place: &Place) -> Option<Vec<u32>> {
    ["program", "child", "grandchild", "apart"].iter().map(|name| place.number(name)).collect()
}

fn all_gone(processes: &[u32]) -> Option<()> {
    processes.iter().all(|process| gone(*process)).then_some(())
}

#[test]
fn a_cancelled_program_is_gone_with_its_family() {
    let place = Place::new();
    let mut agent = place.open(place.program("agent", FAMILY));
    let processes = RefCell::new(Vec::new());
    let mut watcher = Watcher::until(|| {
        *processes.borrow_mut() = family(&place).unwrap_or_default();
        !processes.borrow().is_empty()
    });
    let error = agent.respond(&request("x"), &mut watcher).expect_err("cancelled");
    assert!(error.cancelled, "{error}");
    let processes = processes.borrow().clone();
    drop(agent);
    assert_eq!(all_gone(&processes), Some(()), "{processes:?}");
}

#[test]
fn after_a_cancelled_request_the_next_one_works() {
    let place = Place::new();
    let script = format!("if [ -e again ]; then echo '[]'; exit; fi; touch again\n{FAMILY}");
    let mut agent = place.open(place.program("agent", &script));
    let error = agent.respond(&request("x"), &mut Watcher::until(|| family(&place).is_some())).expect_err("cancelled");
    assert!(error.cancelled);
    let processes = family(&place).expect("the family");
    assert_eq!(agent.respond(&request("x"), &mut Watcher::default()).expect("an answer").text, "[]\n");
    assert_eq!(all_gone(&processes), Some(()), "the first is gone before the second begins");
    let error = agent.respond(&request("x"), &mut Watcher::until(|| true)).expect_err("cancelled");
    assert!(error.cancelled, "before it began");
}

#[test]
fn one_that_ends_when_asked_has_time_for_it() {
    let place = Place::new();
    let script = "trap 'echo bye > bye; exit 0' TERM\necho ready > ready\nwhile :; do sleep 0.05; done";
    let mut agent = place.open(place.program("agent", script));
    let ready = place.folder().join("ready");
    let error = agent.respond(&request("x"), &mut Watcher::until(|| ready.exists())).expect_err("cancelled");
    assert!(error.cancelled);
    drop(agent);
    assert_eq!(place.read("bye"), "bye\n");
}

#[test]
fn what_a_program_leaves_behind_goes_with_it() {
    let place = Place::new();
    // The children keep the output open: revdeck must end them, or it never reaches the end of the output.
    let script = "(trap '' TERM; echo $(exec sh -c 'echo $PPID') > left; while :; do sleep 1; done) &
while ! [ -s left ]; do sleep 0.01; done; echo '[]'";
    let mut agent = place.open(place.program("agent", script));
    assert_eq!(agent.respond(&request("x"), &mut Watcher::default()).expect("an answer").text, "[]\n");
    assert_eq!(all_gone(&[place.number("left").expect("a number")]), Some(()));
}

/// Plays the worker of the test below: reviews with the program in the folder that the environment names.
#[test]
#[ignore = "a process for another test"]
fn worker() {
    let Some(folder) = std::env::var_os("REVDECK_TEST_PLACE") else { return };
    let place = Place::at(folder.into());
    let _ = place.open(place.words(&["agent"])).respond(&request("x"), &mut Watcher::default());
}

#[rstest]
#[case::the_group(true)]
#[case::the_worker_only(false)]
fn a_killed_worker_leaves_nobody_behind(#[case] group: bool) {
    let place = Place::new();
    place.program("agent", FAMILY);
    let mut command = Command::new(std::env::current_exe().expect("this test"));
    command.args(["command::ends::worker", "--exact", "--ignored"]).env("REVDECK_TEST_PLACE", place.path());
    let mut worker =
        command.process_group(0).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a worker starts");
    let processes = wait_for("the family", || family(&place));
    match group {
        true => kill_process_group(pid(worker.id()), Signal::KILL).expect("the worker leads a group"),
        false => signal(worker.id(), Signal::KILL),
    }
    worker.wait().expect("the worker ends");
    wait_for("the end of the family", || all_gone(&processes));
}

#[test]
fn a_killed_keeper_is_noticed_and_the_group_ended() {
    let place = Place::new();
    let script = FAMILY.replace("setsid", "no-such-program-as-setsid");
    let mut agent = place.open(place.program("agent", &script));
    let killed = RefCell::new(Vec::new());
    let mut watcher = Watcher::until(|| {
        if killed.borrow().is_empty()
            && let Some(processes) = family(&place)
        {
            let status = std::fs::read_to_string(format!("/proc/{}/stat", processes[0])).expect("Linux");
            let parent = status.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(1)?.parse().ok());
            signal(parent.expect("the keeper"), Signal::KILL);
            *killed.borrow_mut() = processes;
        }
        false
    });
    let error = agent.respond(&request("x"), &mut watcher).expect_err("no answer");
    assert!(error.summary.contains("its keeper was killed"), "{error}");
    wait_for("the end of the group", || all_gone(&killed.borrow()));
}

#[test]
fn a_keeper_is_for_workers_only() {
    for input in [Stdio::null(), Stdio::piped()] {
        let (program, arguments) = keeper();
        let mut command = Command::new(program);
        command.args(arguments).args(["touch", "/no/such/folder/file"]).stdin(input).env_clear();
        let output = command.output().expect("revdeck starts");
        assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
