//! Integration tests: watching. Real repositories, real watchers, real git. A test waits for a watcher's output or
//! for the store's content. To check that an event does not happen, it waits for a later event.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use insta::assert_snapshot;
use revdeck::domain::{RunRecord, Source};
use revdeck::store::WatcherStatus;
use rustix::process::Signal;

use crate::env::TestEnvironment;
use crate::runner::place::{Place, hold_still, signal, wait_for};

/// Settings without any delay.
const AT_ONCE: &str = "[watch]\nquiet_seconds = 0\ninterval_seconds = 0\n";
/// Settings under which an edit alone starts no review while a test runs; commits are reviewed without delay.
const COMMITS_ONLY: &str = "[watch]\nquiet_seconds = 9999\ninterval_seconds = 0\n";

/// A watcher in the foreground. The lines that its methods return are normalised.
struct Watching<'a> {
    test: &'a TestEnvironment,
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
    seen: usize,
}

impl<'a> Watching<'a> {
    /// Starts a watcher and waits until it watches.
    fn start(place: &'a Place) -> Self {
        Self::spawn(&place.test, place.test.command(env!("CARGO_BIN_EXE_revdeck")))
    }

    fn spawn(test: &'a TestEnvironment, mut command: Command) -> Self {
        command.arg("watch").stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().expect("revdeck starts");
        let lines = Arc::new(Mutex::new(Vec::new()));
        let (output, said) = (child.stdout.take().expect("a pipe"), Arc::clone(&lines));
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                // Removes the time of day.
                said.lock().expect("a lock").push(line.split_once("  ").map_or("", |(_, text)| text).to_owned());
            }
        });
        let mut watching = Self { test, child, lines, seen: 0 };
        watching.says("watching ");
        watching
    }

    /// Waits for a line with this text after the lines that earlier calls read; returns the lines up to it.
    fn read_to(&mut self, text: &str) -> Vec<String> {
        let lines = Arc::clone(&self.lines);
        let from = self.seen;
        let found = wait_for(&format!("{text:?} after {:?}", lines.lock().expect("a lock")), || {
            let lines = lines.lock().expect("a lock");
            lines[from..].iter().position(|line| line.contains(text)).map(|at| lines[from..=from + at].to_vec())
        });
        self.seen += found.len();
        found.iter().map(|line| self.test.normalise(line)).collect()
    }

    /// Waits for a line with this text and returns it.
    fn says(&mut self, text: &str) -> String {
        self.read_to(text).pop().expect("a line")
    }

    /// Works as [`Watching::says`] and checks that no other line comes before it.
    fn says_only(&mut self, text: &str) -> String {
        let said = self.read_to(text);
        assert_eq!(said.len(), 1, "{said:?}");
        said.into_iter().next().unwrap_or_default()
    }

    fn ends(mut self) -> Vec<String> {
        let status = wait_for("the end of the watcher", || self.child.try_wait().expect("a status"));
        assert!(status.success(), "{status}");
        self.read_to("ended")
    }
}

impl Drop for Watching<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn place(settings: &str) -> Place {
    let place = Place::new();
    place.settings(settings);
    place
}

/// Returns the normalised output of a command that succeeds.
fn said(place: &Place, arguments: &[&str]) -> String {
    place.test.normalise(&place.revdeck(arguments))
}

/// Returns the runs that watchers requested.
fn watched(place: &Place) -> Vec<RunRecord> {
    place.runs().into_iter().filter(|run| run.source == Source::Watch).collect()
}

#[test]
fn a_watcher_says_once_that_its_reviewer_has_no_key() {
    let settings = "watch.reviewer = \"cloud\"\nwatch.quiet_seconds = 9999\n[reviewers.cloud]\nkind = \"anthropic\"\n\
                    model = \"claude-sonnet-5-5\"\n";
    let place = place(settings);
    let mut watching = Watching::start(&place);
    assert_snapshot!(watching.says_only("reviews, each"), @"cloud reviews, each review at most $1.16");
    place.commit_modules("one", 1);
    assert_snapshot!(watching.says_only("nothing is reviewed"), @"nothing is reviewed: cloud has no API key: the variable ANTHROPIC_API_KEY is not set; put the key into the environment (export ANTHROPIC_API_KEY=...), or name another source in [reviewers.cloud]: api_key_env or api_key_cmd");
    place.commit_modules("two", 1);
    // Settings are read before each decision.
    place.settings(&settings.replace("cloud\"\nwatch", "builtin\"\nwatch"));
    place.commit_modules("three", 1);
    // One commit or both of them, whatever the watcher sees at once.
    let lines = watching.read_to("commit on main: reviewing ");
    assert!(lines.iter().all(|line| !line.contains("nothing is reviewed")), "once: {lines:?}");
    assert_eq!(watched(&place)[0].reviewed_by.name, "builtin");
}

#[test]
fn a_watcher_does_not_ask_a_default_reviewer_that_may_cost_money() {
    let place = place(&format!(
        "default_reviewer = \"agent\"\n{COMMITS_ONLY}[reviewers.agent]\nkind = \"command\"\ncommand = [\"false\"]\n"
    ));
    let mut watching = Watching::start(&place);
    assert_snapshot!(watching.says("at no cost"), @"builtin reviews, at no cost: agent may cost money, and reviews by itself only if watch.reviewer names it");
    place.commit_modules("one", 1);
    watching.says("reviewing commit:");
    assert_eq!(watched(&place)[0].reviewed_by.name, "builtin");
}

fn code(value: u32) -> String {
    format!("def f(x):\n    try:\n        return x * {value}\n    except:\n        pass\n")
}

#[test]
fn what_is_edited_committed_amended_and_switched_is_reviewed_once() {
    let place = place(AT_ONCE);
    let mut watch = Watching::start(&place);
    place.test.write("a.py", code(4711));
    assert_snapshot!(watch.says_only("worktree on main"), @"worktree on main: reviewing worktree ([run])");
    let run = place.newest().expect("a run");
    place.ended(&run);
    place.test.commit("one");
    assert_snapshot!(watch.says_only("commit on main"), @"commit on main: [run] has reviewed exactly this; no line of it has changed since");
    place.test.git(&["commit", "-q", "--amend", "-m", "other words"]);
    assert_snapshot!(watch.says_only("amend on main"), @"amend on main: [run] has reviewed exactly this; no line of it has changed since");
    // The watcher must not review the edit before the amend does.
    place.settings(COMMITS_ONLY);
    place.test.write("a.py", code(4712));
    place.test.git(&["commit", "-q", "-a", "--amend", "-m", "other content"]);
    assert_snapshot!(watch.says_only("amend on main"), @"amend on main: reviewing commit:[hash] ([run])");
    place.test.git(&["checkout", "-q", "-b", "topic"]);
    assert_snapshot!(watch.says_only("checkout on topic"), @"checkout on topic: not reviewed: watch.on does not name it");
    assert!(watched(&place).iter().all(|run| run.owner.contains('@')));
}

#[test]
fn a_repository_that_only_the_environment_names_is_watched() {
    let place = place(AT_ONCE);
    let (git_dir, work_tree) = (place.test.home().with_file_name("dotfiles"), place.test.home().with_file_name("dots"));
    std::fs::create_dir_all(&work_tree).expect("a folder");
    let of = |program: &str| {
        let mut command = place.test.command(program);
        command.current_dir(&work_tree).env("GIT_DIR", &git_dir).env("GIT_WORK_TREE", &work_tree);
        command
    };
    let git = |arguments: &[&str]| assert!(of("git").args(arguments).status().expect("git starts").success());
    git(&["init", "-q", "-b", "main"]);
    std::fs::write(work_tree.join("a.py"), code(4711)).expect("a file");
    git(&["add", "a.py"]);
    git(&["commit", "-q", "-m", "one"]);
    let mut watch = Watching::spawn(&place.test, of(env!("CARGO_BIN_EXE_revdeck")));
    std::fs::write(work_tree.join("a.py"), code(4712)).expect("a file");
    assert_snapshot!(watch.says_only("worktree on main"), @"worktree on main: reviewing worktree ([run])");
    git(&["commit", "-q", "-a", "-m", "two"]);
    watch.says("commit on");
}

#[test]
fn commits_in_one_breath_and_those_left_behind_are_reviewed() {
    let place = place(COMMITS_ONLY);
    let mut watch = Watching::start(&place);
    place.revdeck(&["snooze", "1h"]);
    let head = || place.test.git(&["rev-parse", "--short", "HEAD"]).trim().to_owned();
    let reviewed = || watched(&place).last().map(|run| run.subject.scope.to_string());
    let base = head();
    // The watcher sees all of them at once, however slow they are.
    hold_still(&place.store(), watch.child.id());
    for n in 0..3 {
        place.test.write(&format!("file_{n}.py"), code(1000 + n));
        place.test.commit(&format!("commit {n}"));
    }
    let tip = head();
    signal(watch.child.id(), Signal::CONT);
    watch.says("commit on main");
    place.revdeck(&["snooze", "off"]);
    assert_snapshot!(watch.says("commit on main: reviewing"), @"commit on main: reviewing range:[hash]..[hash] ([run])");
    assert_eq!(reviewed(), Some(format!("range:{base}..{tip}")));
    place.test.write("last.py", code(7));
    place.test.commit("last");
    let last = head();
    place.test.git(&["checkout", "-q", "-b", "topic", "HEAD~1"]);
    assert_snapshot!(watch.says("commit on main"), @"commit on main: reviewing commit:[hash] ([run])");
    assert_eq!(reviewed(), Some(format!("commit:{last}")));
}

#[test]
fn a_rebase_is_one_review_at_its_end_and_nothing_before() {
    let place = place(AT_ONCE);
    place.test.git(&["checkout", "-q", "-b", "topic"]);
    for n in 0..6 {
        place.test.write(&format!("file_{n}.py"), code(1000 + n));
        place.test.commit(&format!("commit {n}"));
    }
    place.test.git(&["checkout", "-q", "main"]);
    place.test.write("file_2.py", code(9));
    place.test.commit("in the way");
    place.test.git(&["checkout", "-q", "topic"]);
    let mut watch = Watching::start(&place);
    // The rebase stops at the third commit.
    let stopped = place.test.command("git").args(["rebase", "-q", "main"]).output().expect("git starts");
    assert!(!stopped.status.success());
    watch.says("waits for the end of the rebase");
    assert_eq!(watched(&place), []);
    place.test.write("file_2.py", code(1002));
    place.test.git(&["add", "-A"]);
    let mut go_on = place.test.command("git");
    let went_on = go_on.args(["rebase", "--continue"]).env("GIT_EDITOR", "true").output().expect("git starts");
    assert!(went_on.status.success(), "{}", String::from_utf8_lossy(&went_on.stderr));
    assert_snapshot!(watch.says("rebase on topic"), @"rebase on topic: reviewing branch:main ([run])");
    let scopes: Vec<String> = watched(&place).iter().map(|run| run.subject.scope.to_string()).collect();
    assert_eq!(scopes, ["branch:main"]);
}

#[test]
fn a_quick_rebase_is_seen_by_what_git_wrote_into_its_log() {
    let place = place(AT_ONCE);
    place.test.git(&["checkout", "-q", "-b", "topic"]);
    for n in 0..3 {
        place.test.write(&format!("file_{n}.py"), code(1000 + n));
        place.test.commit(&format!("commit {n}"));
    }
    place.test.git(&["checkout", "-q", "main"]);
    place.test.write("other", "x\n");
    place.test.commit("other");
    place.test.git(&["checkout", "-q", "topic"]);
    let mut watch = Watching::start(&place);
    place.test.git(&["rebase", "-q", "main"]);
    assert_snapshot!(watch.says_only("rebase on topic"), @"rebase on topic: reviewing branch:main ([run])");
}

#[test]
fn thousands_of_files_in_ignored_folders_are_nothing_and_in_others_one_request() {
    let place = place("[watch]\nquiet_seconds = 3\ninterval_seconds = 0\n");
    place.test.write(".gitignore", "node_modules/\n*.log\n");
    place.test.commit("rules");
    let mut watch = Watching::start(&place);
    let epoch = place.store().epoch().expect("an epoch");
    for n in 0..5000 {
        place.test.write(&format!("node_modules/p{}/f{n}.js", n % 50), "x\n");
    }
    for n in 0..100 {
        place.test.write("dev.log", format!("{n}\n"));
    }
    assert_eq!(place.store().epoch().expect("an epoch"), epoch, "what is ignored moves nothing");
    for n in 0..5000 {
        place.test.write(&format!("sub{}/deep/f{n}.txt", n % 50), "x\n");
    }
    place.test.write("sub7/deep/a.py", code(4711));
    assert_snapshot!(watch.says_only("worktree on main"), @"worktree on main: reviewing worktree ([run])");
    place.ended(&place.newest().expect("a run"));
    // The file is in a folder that was created while the watcher ran.
    place.test.write("sub7/deep/a.py", code(4712));
    assert_snapshot!(watch.says_only("worktree on main"), @"worktree on main: reviewing worktree ([run])");
    assert_eq!(watched(&place).len(), 2);
    assert!(place.store().epoch().expect("an epoch") > epoch);
}

#[test]
fn ignored_paths_and_small_changes_wait_for_others() {
    let place = place(&format!("{AT_ONCE}ignored_paths = [\"notes/\"]\nmin_changed_lines = 4\n"));
    place.test.write(".revdeck.toml", "[watch]\nignored_paths = [\"*.gen.py\"]\nquiet_seconds = 9999\n");
    place.test.write("notes/plan.md", "plan\n");
    place.test.commit("begin");
    let mut watch = Watching::start(&place);
    place.test.write("notes/plan.md", "another plan\n".repeat(50));
    place.test.write("made.gen.py", code(1));
    place.test.write("small.py", "x = 1\n");
    // The review includes files that the watcher ignores; only a change of such a file does not start a review.
    assert_snapshot!(watch.says_only("worktree on main"), @"worktree on main: reviewing worktree ([run])");
    place.ended(&place.newest().expect("a run"));
    place.test.commit("all");
    watch.says("commit on main");
    place.test.write("small.py", "x = 2\n");
    assert_snapshot!(watch.says_only("worktree on main"), @"worktree on main: not reviewed: 2 lines changed, watch.min_changed_lines is 4");
    place.test.write("notes/plan.md", "a third plan\n".repeat(50));
    place.test.write("large.py", code(1));
    assert_snapshot!(watch.says_only("worktree on main"), @"worktree on main: reviewing worktree ([run])");
}

#[test]
fn there_is_one_watcher_for_a_repository_and_it_ends_when_asked() {
    let place = place(AT_ONCE);
    assert_snapshot!(said(&place, &["watch", "--status"]), @"nobody watches this repository");
    assert_snapshot!(said(&place, &["watch", "--stop"]), @"nobody watches this repository");
    let watch = Watching::start(&place);
    let pid = watch.child.id();
    let second = place.revdeck(&["watch"]).replace(&format!("process {pid} "), "process [watch] ");
    assert_snapshot!(place.test.normalise(&second), @"process [watch] of [owner] watches this repository since [time]");
    let status: serde_json::Value =
        serde_json::from_str(&place.revdeck(&["watch", "--status", "--format", "json"])).expect("JSON");
    assert_eq!((&status["watching"], &status["watcher"]["pid"]), (&true.into(), &pid.into()));
    assert_eq!(status["watcher"]["mode"], "events");
    assert_snapshot!(said(&place, &["watch", "--stop"]), @"the watcher has ended; reviews that it began go on");
    assert_eq!(watch.ends(), ["ended as asked"]);
    assert_eq!(place.store().watcher_status().expect("asked"), WatcherStatus::None);

    for how in [Signal::INT, Signal::TERM, Signal::HUP] {
        let watch = Watching::start(&place);
        signal(watch.child.id(), how);
        assert_eq!(watch.ends(), ["ended as asked"]);
    }
    let mut watch = Watching::start(&place);
    watch.child.kill().expect("killed");
    // The system releases the lock when the last thread of the process ends.
    wait_for("a free lock", || place.revdeck(&["watch", "--status"]).contains("nobody watches").then_some(()));
    let mut watch = Watching::start(&place);
    place.test.write("a.py", code(4711));
    watch.says("worktree on main");
}

#[test]
fn who_is_snoozed_is_left_alone_until_it_is_over_and_by_hand_never() {
    let place = place(AT_ONCE);
    let mut watch = Watching::start(&place);
    assert_snapshot!(said(&place, &["snooze", "2h"]), @"snoozed until [time]: nothing begins by itself");
    let epoch = place.store().epoch().expect("an epoch");
    place.test.write("a.py", code(4711));
    assert_snapshot!(watch.says_only("worktree on main"), @"worktree on main: snoozed until [time]");
    assert!(place.store().epoch().expect("an epoch") > epoch, "what moves is known nevertheless");
    place.test.commit("one");
    watch.says("commit on main");
    assert_eq!(watched(&place), []);
    let by_hand = place.review(&["--commit", "HEAD", "--wait"]);
    assert_snapshot!(said(&place, &["snooze"]), @"snoozed until [time]: nothing begins by itself");
    // The run outlives the watcher.
    assert_snapshot!(said(&place, &["watch", "--stop"]), @"the watcher has ended; reviews that it began go on");
    let mut watch = Watching::start(&place);
    place.test.write("b.py", code(4712));
    assert_snapshot!(watch.says_only("worktree on main"), @"worktree on main: snoozed until [time]");
    place.revdeck(&["snooze", "off"]);
    assert_snapshot!(watch.says_only("worktree on main"), @"worktree on main: reviewing worktree ([run])");
    assert_ne!(place.newest(), Some(by_hand));
    let refused = place.test.revdeck(&["snooze", "soon"]);
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn in_quiet_hours_nothing_begins() {
    let place = place(&format!("{AT_ONCE}quiet_hours = \"00:00-00:00\"\n"));
    let mut watch = Watching::start(&place);
    place.test.write("a.py", code(4711));
    assert_snapshot!(watch.says_only("worktree on main"), @"worktree on main: waits for the end of the quiet hours at 00:00");
    assert_eq!(watched(&place), []);
    // The watcher reads the settings again before each decision.
    place.settings(AT_ONCE);
    place.test.write("a.py", code(4712));
    assert_snapshot!(watch.says_only("worktree on main"), @"worktree on main: reviewing worktree ([run])");
}

#[test]
fn where_nobody_tells_it_looks() {
    let place = place(&format!("{AT_ONCE}poll = true\npoll_seconds = 1\n"));
    place.test.write(".gitignore", "target/\n");
    place.test.commit("rules");
    let mut watch = Watching::start(&place);
    assert_snapshot!(said(&place, &["watch", "--status"]), @"process [pid] of [owner] watches this repository since [time], polling: watch.poll says so");
    place.test.write("target/a.py", code(1));
    place.test.write("a.py", code(4711));
    assert_snapshot!(watch.says_only("worktree on main"), @"worktree on main: reviewing worktree ([run])");
    place.ended(&place.newest().expect("a run"));
    place.test.commit("one");
    assert_snapshot!(watch.says_only("commit on main"), @"commit on main: [run] has reviewed exactly this; no line of it has changed since");
    place.revdeck(&["snooze", "2h"]);
    place.test.write("a.py", code(4712));
    assert_snapshot!(watch.says_only("worktree on main"), @"worktree on main: snoozed until [time]");
}

#[test]
fn a_worktree_that_is_removed_or_moved_away_ends_it_calmly() {
    let replaced = |repo: &Path| {
        let parent = repo.parent().expect("a folder");
        std::fs::rename(repo, parent.join("elsewhere")).expect("moved");
    };
    let last_line = |remove: fn(&Path)| {
        let place = place(AT_ONCE);
        let watch = Watching::start(&place);
        remove(&place.test.repo());
        watch.ends().pop().expect("a line")
    };
    assert_snapshot!(last_line(|repo| std::fs::remove_dir_all(repo).expect("removed")), @"ended: [repo] is no longer there");
    assert_snapshot!(last_line(replaced), @"ended: [repo] is no longer there");
}

#[test]
fn linked_worktrees_are_watched_as_they_come_and_go() {
    let place = place(AT_ONCE);
    let mut watch = Watching::start(&place);
    let linked = place.test.repo().parent().expect("a folder").join("linked");
    place.test.git(&["worktree", "add", "-q", "-b", "side", linked.to_str().expect("a path")]);
    let known = || match place.store().watcher_status().expect("asked") {
        WatcherStatus::Known(watching) => watching.worktrees.len(),
        WatcherStatus::None | WatcherStatus::Unknown => 0,
    };
    wait_for("the second worktree", || (known() == 2).then_some(()));
    std::fs::write(linked.join("a.py"), code(4711)).expect("written");
    assert_snapshot!(watch.says("worktree on side in"), @"worktree on side in [folder]/linked: reviewing worktree ([run])");
    let run = place.run(&place.newest().expect("a run"));
    assert_eq!((Path::new(&run.subject.worktree), run.subject.branch.as_str()), (linked.as_path(), "side"));
    place.ended(&run.run_id);
    place.test.git(&["worktree", "remove", "--force", linked.to_str().expect("a path")]);
    watch.says("the other worktrees stay watched");
    assert_eq!(known(), 1);
    place.test.write("b.py", code(4712));
    watch.says("worktree on main");
}

#[test]
fn renamed_folders_stay_watched_and_new_rules_hold_at_once() {
    let place = place(AT_ONCE);
    place.test.write("old/deep/a.py", code(1));
    place.test.commit("one");
    let mut watch = Watching::start(&place);
    let epoch = place.store().epoch().expect("an epoch");
    std::fs::rename(place.test.repo().join("old"), place.test.repo().join("new")).expect("renamed");
    // A new branch name alone needs no review.
    wait_for("the movement", || (place.store().epoch().expect("an epoch") > epoch).then_some(()));
    place.test.write("new/deep/a.py", code(2));
    watch.says("worktree on main");
    place.test.write(".gitignore", "out/\n");
    watch.says("worktree on main");
    place.test.write("out/b.py", code(3));
    place.test.write("new/deep/c.py", code(4));
    watch.says_only("worktree on main");
    place.test.write("out/d.py", code(5));
    place.test.git(&["gc", "-q"]);
    place.test.git(&["pack-refs", "--all"]);
    place.test.commit("two");
    watch.says_only("commit on main");
}

#[test]
fn what_moved_is_unknown_until_it_is_looked_at() {
    let place = place(AT_ONCE);
    place.test.write("a.py", code(4711));
    let first = place.review(&["--worktree", "--wait"]);
    let epoch = place.store().epoch().expect("an epoch");
    assert_eq!(place.run(&first).subject.epoch, epoch);
    place.revdeck(&["snooze", "1h"]);
    let mut watch = Watching::start(&place);
    place.test.write("a.py", format!("{}# edited\n", code(4711)));
    watch.says("snoozed until");
    assert!(place.store().epoch().expect("an epoch") > epoch, "no run is of this moment");
    // The file is restored: the run applies to the code again as soon as a process checks it.
    place.test.write("a.py", code(4711));
    place.revdeck(&["snooze", "off"]);
    watch.says("has reviewed exactly this");
    assert_eq!(place.run(&first).subject.epoch, place.store().epoch().expect("an epoch"));
}
