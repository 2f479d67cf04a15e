//! Programs that make fixes: shell scripts that play good and bad agents.

use std::path::PathBuf;

use insta::assert_snapshot;
use rstest::rstest;
use serde_json::Value;

use super::{findings, fix, gits_own, id_of, run, status_of};
use crate::env::{DONE, TestEnvironment, executable};
use crate::runner::place::{Place, gone, wait_for};

/// A function with too many parameters: a finding without an exact suggestion.
const WIDE: &str = "def f(a, b, c, d, e, f, g, h):\n    return call(a, b, c, d, e, f, g, h)\n";

/// Creates a repository with a finding; the script is the reviewer that makes fixes.
fn with_agent(script: &str) -> (TestEnvironment, String) {
    let test = TestEnvironment::new();
    test.write("wide.py", WIDE);
    test.write("other.txt", "other\n");
    test.write(".gitignore", "*.log\n");
    test.write("CLAUDE.md", "Rules.\n");
    test.commit("one");
    let program = program(&test, "fixer", script);
    std::fs::create_dir_all(test.home()).expect("a folder");
    let settings = format!(
        "[resolve]\nreviewer = \"robot\"\n[reviewers.robot]\nkind = \"command\"\ncommand = [{:?}]\n",
        program.to_str().expect("UTF-8")
    );
    std::fs::write(config(&test), settings).expect("settings");
    run(&test, &["review", "--wait"], 0);
    let id = findings(&test, "wide.py")[0].clone();
    (test, id)
}

pub fn config(test: &TestEnvironment) -> PathBuf {
    let printed = run(test, &["config", "path"], 0);
    let line = printed.lines().find(|line| line.contains("config.toml")).expect("a path");
    let path = PathBuf::from(line.split_whitespace().find(|word| word.ends_with("config.toml")).expect("a path"));
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    path
}

fn program(test: &TestEnvironment, name: &str, script: &str) -> PathBuf {
    let file = test.home().join("bin").join(name);
    executable(&file, format!("#!/bin/sh\ncat > \"$HOME/prompt-$(ls \"$HOME\" | grep -c prompt-)\"\n{script}\n"));
    file
}

/// Returns the prompt that the program received in its nth call.
fn prompt(test: &TestEnvironment, n: usize) -> String {
    let home = test.home().parent().expect("a folder").to_owned();
    std::fs::read_to_string(home.join(format!("prompt-{n}"))).expect("a prompt")
}

/// Checks that no checkout of a fix is left.
fn no_checkout(test: &TestEnvironment) {
    let folder = test.home().join("cache/fixes");
    let mut left = Vec::new();
    for repo in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        left.extend(std::fs::read_dir(repo.path()).expect("a folder").flatten().map(|entry| entry.path()));
    }
    assert_eq!(left, Vec::<PathBuf>::new());
}

fn paths(fix: &Value) -> Vec<&str> {
    fix["files"].as_array().expect("files").iter().map(|file| file["path"].as_str().expect("a path")).collect()
}

/// Returns the changes that git reports; the call itself changes nothing.
fn status(test: &TestEnvironment) -> String {
    test.git(&["--no-optional-locks", "status", "--porcelain", "-uall"])
}

const NARROW: &str = "printf 'def f(options):\\n    return call(options)\\n' > wide.py; echo Done.";

#[test]
fn what_a_program_changes_in_the_copy_is_offered_reviewed_and_applied() {
    let script =
        format!("{NARROW}\nmkdir -p new/deep; echo text > new/deep/file.txt; rm other.txt; echo noise > x.log");
    let (test, id) = with_agent(&script);
    let before = gits_own(&test);
    let made = fix(&test, &[&id], 0);
    assert_eq!((made["status"].as_str(), made["verdict"].as_str()), (Some("offered"), Some("clean")), "{made}");
    assert_eq!(paths(&made), ["new/deep/file.txt", "other.txt", "wide.py"], "what is ignored is no part of it");
    assert_eq!(made["reviewer"], "robot");
    let told = prompt(&test, 0);
    assert!(told.contains(&id) && told.contains("wide.py:1") && told.contains("It is a copy"), "{told}");
    no_checkout(&test);
    assert_eq!(status(&test), "", "the user's files are untouched");
    assert_eq!(gits_own(&test), before);
    // The review of the fix is a run of its own, is marked as such, and judges only the fix.
    let review = made["reviews"][0].as_str().expect("a run").to_owned();
    let runs = test.json(&["runs", "--format", "json"], 0);
    let runs = runs["runs"].as_array().expect("runs");
    let of = |id: &str| runs.iter().find(|run| run["run_id"] == id).expect("the run").clone();
    assert_eq!(of(&review)["follow_up_of"], made["fix_id"]);
    assert_eq!(of(made["run_id"].as_str().expect("a run"))["follow_up_count"], 1);
    assert_eq!(status_of(&test, &id), "open");

    let id_of_fix = id_of(&made);
    run(&test, &["fix", "apply", &id_of_fix], 0);
    assert_eq!(status(&test), " D other.txt\n M wide.py\n?? new/deep/file.txt\n");
    run(&test, &["fix", "undo", &id_of_fix], 0);
    assert_eq!(status(&test), "");
    assert!(!test.repo().join("new").exists(), "folders that were made for it go as well");
    assert_eq!(gits_own(&test), before);
    // No record of this run ever looks like an ordinary review, at any moment.
    let lines = Place { test }.lines();
    let of_review: Vec<_> = lines.iter().filter(|line| line.run_id.as_str() == review).collect();
    assert!(!of_review.is_empty() && of_review.iter().all(|line| line.follow_up_of.is_some()));
}

#[rstest]
#[case::outside("echo theirs > ../../../outside.txt; echo theirs > ../sibling.txt", &[])]
#[case::git("mkdir -p .git/hooks sub/.git; echo x > .git/hooks/post-commit; echo x > sub/.git/config; echo x >> .git/config", &["git's own"])]
#[case::links("ln -s /etc/passwd link; ln -sf /etc other.txt.d; mkfifo pipe", &["neither a file nor a folder"])]
#[case::a_file_becomes_a_link("rm other.txt; ln -s /etc/passwd other.txt", &["neither a file nor a folder"])]
#[case::settings_of_agents("echo theirs > CLAUDE.md; mkdir .claude; echo x > .claude/settings.json", &["was left out of the copy"])]
fn what_is_no_part_of_a_fix_stays_out(#[case] bad: &str, #[case] notes: &[&str]) {
    let (test, id) = with_agent(&format!("{NARROW}\n{bad}"));
    let before = gits_own(&test);
    let made = fix(&test, &[&id], 0);
    assert_eq!(made["status"], "offered", "{made}");
    let mut expected = vec!["wide.py"];
    if bad.starts_with("rm other") {
        // The fix can record that the file is deleted; it cannot record the entry that replaced it.
        expected.insert(0, "other.txt");
    }
    assert_eq!(paths(&made), expected);
    let reason = made["reason"].as_str().unwrap_or_default();
    assert!(notes.iter().all(|note| reason.contains(note)), "{reason}");
    assert_eq!(status(&test), "");
    assert_eq!(gits_own(&test), before);
    no_checkout(&test);
}

#[rstest]
#[case::nothing("echo I would not.", "it changes nothing")]
#[case::binary("printf 'a\\000b' > wide.py", "no text")]
#[case::huge("head -c 3000000 /dev/zero | tr '\\0' 'a' | fold -w 100 > wide.py", "is the most")]
#[case::enormous("head -c 40000000 /dev/zero > wide.py", "33554432 is the most")]
#[case::many("for n in $(seq 200); do echo $n > file-$n; done", "200 files; 100 is the most")]
#[case::fails("echo broken >&2; exit 3", "broken")]
fn what_is_no_fix_fails_with_the_reason(#[case] script: &str, #[case] says: &str) {
    let (test, id) = with_agent(script);
    let made = fix(&test, &[&id], 3);
    assert_eq!(made["status"], "failed");
    assert!(made["reason"].as_str().expect("a reason").contains(says), "{made}");
    assert_eq!(status(&test), "");
    no_checkout(&test);
}

#[test]
fn a_patch_with_a_fault_is_made_again_with_what_its_review_found() {
    // The first attempt adds a secret; revdeck reports it, and the second attempt removes it.
    let script = "if grep -q 'still there\\|HARDCODED' \"$HOME/prompt-1\" 2>/dev/null; then\n\
                  printf 'def f(options):\\n    return call(options)\\n' > wide.py\nelse\n\
                  printf 'def f(options):\\n    return call(options, \"ghp_x8Kq2mVb7TzR4nLw9YcJ1sDf6HgP3aEo5UiX\")\\n' > wide.py\nfi";
    let (test, id) = with_agent(script);
    let made = fix(&test, &[&id], 0);
    assert_eq!((made["follow_up_count"].as_u64(), made["verdict"].as_str()), (Some(1), Some("clean")), "{made}");
    assert_eq!(made["reviews"].as_array().map(Vec::len), Some(2));
    assert!(prompt(&test, 1).contains("HARDCODED_CONFIGURATION"), "{}", prompt(&test, 1));
    assert_snapshot!(test.output(&["fix", "show", &id_of(&made)], DONE), @"
    diff --git a/wide.py b/wide.py
    index [hash]..[hash] 100644
    --- a/wide.py
    +++ b/wide.py
    @@ -1,2 +1,2 @@
    -def f(a, b, c, d, e, f, g, h):
    -    return call(a, b, c, d, e, f, g, h)
    +def f(options):
    +    return call(options)
    ");
    let all = test.json(&["findings", "--status", "all", "--format", "json"], 0);
    assert_eq!(
        all["findings"].as_array().map(Vec::len),
        Some(1),
        "what is found in an offer is nobody's finding: {all}"
    );
}

#[test]
fn a_fault_that_stays_is_offered_with_it_after_the_last_follow_up() {
    let (test, id) = with_agent(
        "printf 'def f(options):\\n    return call(options, \"ghp_x8Kq2mVb7TzR4nLw9YcJ1sDf6HgP3aEo5UiX\")  # %s\\n' $$ > wide.py",
    );
    let made = fix(&test, &[&id], 0);
    assert_eq!((made["follow_up_count"].as_u64(), made["verdict"].as_str()), (Some(2), Some("1 finding")), "{made}");
    assert_eq!((made["status"].as_str(), made["reviews"].as_array().map(Vec::len)), (Some("offered"), Some(3)));
    assert_snapshot!(test.output(&["fixes"], DONE), @"[fix]  offered    Function `f` is complex: 8 parameters in wide.py, by robot; 1 file, +2 -2; review of the fix: 1 finding");
}

#[test]
fn a_patch_that_is_made_again_is_being_made_and_has_no_verdict_of_its_own_yet() {
    // The second attempt waits until the test releases it.
    let (test, id) = with_agent(
        "printf 'def f(options):\\n    return call(options, \"ghp_x8Kq2mVb7TzR4nLw9YcJ1sDf6HgP3aEo5UiX\")\\n' > wide.py\n\
         if [ -e \"$HOME/prompt-1\" ]; then touch \"$HOME/again\"; while [ ! -e \"$HOME/go\" ]; do sleep 0.05; done; fi",
    );
    let home = test.home().parent().expect("a folder").to_owned();
    let fix_id = id_of(&test.json(&["fix", &id, "--format", "json"], 0)["fix"]);
    wait_for("the second attempt", || home.join("again").exists().then_some(()));
    let listed = test.json(&["fixes", "--format", "json"], 0);
    assert_eq!(listed["fixes"][0]["status"], "working", "{listed}");
    run(&test, &["fix", "drop", &fix_id], 0);
    std::fs::write(home.join("go"), "").expect("a file");
    wait_for("the end of the worker", || {
        let listed = test.json(&["fixes", "--format", "json"], 0);
        (listed["fixes"][0]["status"] == "dropped").then_some(())
    });
}

#[test]
fn a_killed_worker_leaves_nothing_behind_but_its_record() {
    let (test, id) = with_agent(&format!("echo $$ > \"$HOME/running\"; {NARROW}; while true; do sleep 0.05; done"));
    let started = test.json(&["fix", &id, "--format", "json"], 0);
    let fix_id = id_of(&started["fix"]);
    let running = test.home().parent().expect("a folder").join("running");
    let agent: u32 = wait_for("the agent's start", || std::fs::read_to_string(&running).ok()?.trim().parse().ok());
    assert_snapshot!(test.output(&["fixes"], DONE), @"[fix]  working    Function `f` is complex: 8 parameters in wide.py, by robot");
    let worker = worker_of(&fix_id);
    let kill = |process: i32| {
        rustix::process::kill_process(
            rustix::process::Pid::from_raw(process).expect("an id"),
            rustix::process::Signal::KILL,
        )
    };
    kill(worker).expect("killed");
    let listed = wait_for("the end of the fix", || {
        let listed = test.output(&["fixes"], DONE);
        listed.contains("failed").then_some(listed)
    });
    assert_snapshot!(listed, @"[fix]  failed     Function `f` is complex: 8 parameters in wide.py, by robot; worker died");
    wait_for("the end of the agent", || gone(agent).then_some(()));
    wait_for("the end of the checkout", || {
        run(&test, &["review", "--wait"], 0);
        // The next fix also removes leftover folders.
        let left = std::fs::read_dir(test.home().join("cache/fixes")).into_iter().flatten().flatten();
        left.flat_map(|repo| std::fs::read_dir(repo.path()).into_iter().flatten()).next().is_none().then_some(())
    });
    assert_eq!(status(&test), "");
    assert_eq!(status_of(&test, &id), "open");
}

#[test]
fn a_fix_that_is_dropped_while_it_is_made_ends() {
    let (test, id) = with_agent(&format!("echo $$ > \"$HOME/running\"; {NARROW}; while true; do sleep 0.05; done"));
    let fix_id = id_of(&test.json(&["fix", &id, "--format", "json"], 0)["fix"]);
    // A second request for the same fix returns the same one.
    assert_eq!(id_of(&test.json(&["fix", &id, "--format", "json"], 0)["fix"]), fix_id);
    let running = test.home().parent().expect("a folder").join("running");
    let agent: u32 = wait_for("the agent's start", || std::fs::read_to_string(&running).ok()?.trim().parse().ok());
    run(&test, &["fix", "drop", &fix_id], 0);
    wait_for("the end of the agent", || gone(agent).then_some(()));
    wait_for("the end of the worker", || {
        let lock = test.home().join("state/review");
        let store = std::fs::read_dir(lock).expect("a store").next().expect("one").expect("an entry").path();
        let lock = store.join("auto-review/locks").join(format!("{fix_id}.lock"));
        std::fs::File::open(lock).expect("a lock").try_lock_shared().ok()
    });
    no_checkout(&test);
    assert_snapshot!(test.output(&["fixes"], DONE), @"[fix]  dropped    Function `f` is complex: 8 parameters in wide.py, by robot");
}

/// Returns the process that makes a fix, found by its arguments.
pub fn worker_of(fix: &str) -> i32 {
    wait_for("the worker", || {
        std::fs::read_dir("/proc").expect("processes").flatten().find_map(|entry| {
            let process = entry.file_name().to_str()?.parse().ok()?;
            let words = std::fs::read(entry.path().join("cmdline")).ok()?;
            let words = String::from_utf8_lossy(&words).into_owned();
            (words.contains("fixer") && words.contains(fix)).then_some(process)
        })
    })
}
