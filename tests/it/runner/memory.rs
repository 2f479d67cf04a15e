//! Integration tests: processes that run out of memory while they parse a file. The memory limit of the test's processes
//! is small, so that an ordinary table of numbers is too much for them.

use std::os::unix::process::ExitStatusExt as _;
use std::process::Output;

use revdeck::config::Paths;
use revdeck::domain::{OmissionReason, OmittedFile, RunEvent, RunStatus};
use revdeck::git::Repo;
use revdeck::index::{Index, IndexCompleteness};
use rustix::process::Signal;

use super::place::{Place, signal, wait_for};
use crate::env::{INCOMPLETE, executable};

/// Soft limit in KiB: a process starts with 100 MB, the parser's stack counts for 64 MiB, and the table takes 200 MB.
const LIMIT: u32 = 250_000;

/// Lines of a table of just under a megabyte, which is more than [`LIMIT`] allows to parse.
const LINES: usize = 14_900;

/// Returns a table of numbers.
fn table(lines: usize) -> String {
    format!("T = [\n{}]\n", "0,1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0,1,\n".repeat(lines))
}

/// Runs revdeck with the memory limit; its workers inherit it.
fn limited(place: &Place, arguments: &[&str]) -> Output {
    let script = format!("ulimit -S -d {LIMIT} && exec \"$0\" \"$@\"");
    let mut command = place.test.command("sh");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_revdeck")]).args(arguments).output().expect("revdeck starts")
}

/// Returns the paths of the files that the journal blames for the death of a worker.
fn blamed(place: &Place, run: &revdeck::domain::RunId) -> Vec<String> {
    let parsing = place.events(run).into_iter().filter_map(|event| match event {
        RunEvent::OutOfMemory { parsing } => Some(parsing),
        _ => None,
    });
    parsing.flatten().map(|text| text.path).collect()
}

#[test]
fn a_file_that_ends_a_worker_is_left_out_and_the_run_completes() {
    let place = Place::new();
    place.modules("one", 2);
    place.test.write("table.py", table(LINES));
    let commit = place.test.commit("one");
    let reviewed = limited(&place, &["review", "--commit", &commit, "--wait"]);
    assert_eq!(reviewed.status.code(), Some(INCOMPLETE), "{reviewed:?}");

    let run = place.newest().expect("a run");
    let record = place.run(&run);
    assert_eq!((record.status, record.attempt), (RunStatus::Completed, 2), "{record:?}");
    assert_eq!(blamed(&place, &run), ["table.py"]);
    let output = place.output(&run).expect("an output");
    let left_out = OmittedFile { hidden: true, ..OmittedFile::new("table.py", OmissionReason::TooComplex) };
    assert_eq!(output.coverage.left_out, [left_out]);
    assert_eq!(
        output.notes.iter().filter(|note| note.starts_with("table.py: ")).collect::<Vec<_>>(),
        ["table.py: parsing it took more memory than the worker may use"]
    );
    let covered: Vec<&str> = output.coverage.files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(covered, ["one/module_0.py", "one/module_1.py"]);
    assert_eq!((record.outcome.coverage.hunks_total, record.outcome.coverage.hunks_left_out), (3, 0));
    let log = place.store().parse_log_path(&run);
    // The worker writes the record before it ends.
    wait_for("the end of the log", || (!log.exists()).then_some(()));

    // The findings are those of a review of the other files alone.
    let other = Place::new();
    let alone = other.commit_modules("one", 2);
    let alone = other.review(&["--commit", &alone, "--wait"]);
    assert!(!place.finding_ids(&run).is_empty());
    assert_eq!(place.finding_ids(&run), other.finding_ids(&alone));
}

#[test]
fn a_file_is_not_left_out_because_its_worker_was_killed() {
    let place = Place::new();
    place.modules("one", 1);
    place.test.write("table.py", table(LINES / 4));
    let commit = place.test.commit("one");
    let run = place.review(&["--commit", &commit]);
    let log = place.store().parse_log_path(&run);
    let worker = wait_for("the table to be parsed", || {
        let log = std::fs::read_to_string(&log).ok()?;
        log.contains("table.py").then(|| place.worker(&run)).flatten()
    });
    signal(worker, Signal::KILL);
    wait_for("the next attempt", || {
        place.revdeck(&["runs", "-n", "1"]);
        (place.run(&run).attempt == 2).then_some(())
    });
    let record = place.ended(&run);
    assert_eq!((record.status, record.attempt, record.outcome.coverage.files_covered), (RunStatus::Completed, 2, 2));
    assert_eq!(blamed(&place, &run), Vec::<String>::new());
    assert_eq!(place.output(&run).expect("an output").coverage.left_out, []);
}

#[test]
fn a_file_that_ends_an_indexer_is_indexed_as_text_the_next_time() {
    let place = Place::new();
    place.modules("one", 2);
    place.test.write("table.py", table(LINES));
    let commit = place.test.commit("one");
    let repo = Repo::discover(&place.test.repo()).expect("a repository");
    let folder = Paths::from_home(&place.test.home()).index_folder(&repo.key());
    let is_whole = || {
        let index = Index::open(&folder, &repo, &commit).expect("an index that can be read");
        index.is_some_and(|index| index.completeness() == IndexCompleteness::Whole)
    };
    let died = limited(&place, &["indexer", &commit]);
    assert_eq!(died.status.signal(), Some(Signal::ABORT.as_raw()), "{died:?}");
    assert!(!is_whole());
    let done = limited(&place, &["indexer", &commit]);
    assert!(done.status.success() && is_whole(), "{done:?}");
    // Known from now on, also to a refresh for another tree.
    let list = std::fs::read_to_string(folder.join("unparsable")).expect("a list");
    assert_eq!(list.lines().collect::<Vec<_>>(), [revdeck::domain::content_hash([table(LINES).as_bytes()])]);
    assert!(!folder.join("parsing").exists());
}

#[test]
fn a_worker_limits_its_memory_and_an_agent_does_not_inherit_the_limit() {
    let place = Place::new();
    let (agent, seen, may_end) =
        (place.test.home().join("agent"), place.test.home().join("seen"), place.test.home().join("may-end"));
    let script = format!(
        "#!/bin/sh\ncat > /dev/null\necho \"$(ulimit -S -d) $(ulimit -H -d)\" > '{}'\nwhile ! [ -e '{}' ]; do sleep 0.02; \
         done\necho '{{\"findings\": []}}'\n",
        seen.display(),
        may_end.display()
    );
    executable(&agent, script);
    place.settings(&format!(
        "default_reviewer = \"agent\"\n[reviewers.agent]\nkind = \"command\"\ncommand = [\"{}\"]\n",
        agent.display()
    ));
    let commit = place.commit_modules("one", 1);
    let run = place.review(&["--commit", &commit]);
    let limits_of_agent = wait_for("the agent", || {
        let text = std::fs::read_to_string(&seen).ok()?;
        text.ends_with('\n').then_some(text)
    });
    let worker = place.worker(&run).expect("a worker");
    let limits = std::fs::read_to_string(format!("/proc/{worker}/limits")).expect("limits of a process");
    let data = limits.lines().find_map(|line| line.strip_prefix("Max data size")).expect("a limit of data");
    let soft: u64 = data.split_whitespace().next().and_then(|soft| soft.parse().ok()).expect("a number of bytes");
    assert!((2 << 30..=8 << 30).contains(&soft), "{soft}");
    let (soft, hard) = limits_of_agent.trim().split_once(' ').expect("two limits");
    assert_eq!(soft, hard);
    std::fs::write(may_end, "").expect("a file");
    assert_eq!(place.ended(&run).status, RunStatus::Completed);
}
