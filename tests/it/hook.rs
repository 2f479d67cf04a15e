//! Integration tests: the hook that git calls after a commit, with real commits and real hooks of other tools.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use insta::{allow_duplicates, assert_snapshot};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use revdeck::domain::{RunRecord, RunStatus, Scope, Source};
use revdeck::git::Repo;
use revdeck::git::hooks::{HookCall, HookError, HookManager, HookName, HookRemainder, HookWriteMode, InstallOutcome};
use rstest::rstest;
use serde_json::Value;

mod install;
mod managers;

use crate::env::{DONE, INCOMPLETE, TestEnvironment, USAGE};
use crate::runner::place::{Place, wait_for};

const HOOK: &str = ".git/hooks/post-commit";
const RAN: &str = "#!/bin/sh\necho ran >> ../ran\n";

fn file(place: &Place, name: &str) -> PathBuf {
    place.test.repo().join(name)
}

fn write(place: &Place, name: &str, content: impl AsRef<[u8]>, mode: u32) -> PathBuf {
    let path = file(place, name);
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(&path, content).expect("a file");
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("a mode");
    path
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).expect("a file").permissions().mode() & 0o7777
}

/// Returns how often the other tool's hook has run.
fn ran(place: &Place) -> usize {
    fs::read_to_string(file(place, "../ran")).unwrap_or_default().lines().count()
}

/// Commits code that has a finding.
fn commit(place: &Place, name: &str) -> String {
    place.modules(name, 1);
    place.test.commit(name)
}

/// Creates a folder that contains this program as `revdeck`.
fn bin(place: &Place, program: &str) -> PathBuf {
    let folder = place.test.home().with_file_name("bin");
    fs::create_dir_all(&folder).expect("a folder");
    symlink(program, folder.join("revdeck")).expect("a link");
    folder
}

/// Returns a git command with this folder in PATH.
fn git_of(place: &Place, folder: &Path) -> Command {
    let all = std::env::var_os("PATH").unwrap_or_default();
    let all = std::env::join_paths([folder.to_owned()].into_iter().chain(std::env::split_paths(&all)));
    let mut command = place.test.command("git");
    command.env("PATH", all.expect("a path"));
    command
}

/// Works as [`commit`], with this folder in PATH.
fn commit_of(place: &Place, name: &str, folder: &Path) -> String {
    place.modules(name, 1);
    place.test.git(&["add", "-A"]);
    let status = git_of(place, folder).args(["commit", "-q", "-m", name]).status().expect("git starts");
    assert!(status.success());
    place.test.git(&["rev-parse", "HEAD"]).trim().to_owned()
}

/// Returns the run that the hook requested.
fn asked(place: &Place, commit: &str) -> RunRecord {
    wait_for("the run of the hook", || {
        place.runs().into_iter().find(|run| {
            run.source == Source::Hook
                && run.subject.scope == Scope::Commit(commit.to_owned())
                && run.status.is_terminal()
        })
    })
}

/// Returns every entry of a folder: name, mode, and bytes or link target.
fn state(folder: &Path) -> Vec<(PathBuf, u32, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let kind = entry.file_type().expect("a type");
        let content = match kind.is_symlink() {
            true => fs::read_link(&path).expect("a link").into_os_string().into_encoded_bytes(),
            false => fs::read(&path).unwrap_or_default(),
        };
        found.push((path.clone(), mode(&path), content));
        if kind.is_dir() {
            found.extend(state(&path));
        }
    }
    found.sort();
    found
}

fn repo(place: &Place) -> Repo {
    Repo::discover(&place.test.repo()).expect("a repository")
}

fn status(place: &Place) -> Value {
    place.test.json(&["hook", "status", "--format", "json"], DONE)["hooks"][0].clone()
}

/// Returns the normalised output of `revdeck hook`.
fn said(place: &Place, arguments: &[&str]) -> String {
    place.test.output(&[&["hook"], arguments].concat(), DONE)
}

#[test]
fn a_commit_is_reviewed_and_nothing_stays_when_the_hook_goes() {
    let place = Place::new();
    let hooks = file(&place, ".git/hooks");
    let before = state(&hooks);
    assert_snapshot!(said(&place, &["install", "git", "--dry-run"]), @r#"
    .git/hooks/post-commit: would be made
    .git/hooks/post-rewrite: would be made
    each commit is reviewed in the background, and reviews of amended or rebased commits end; `revdeck hook uninstall git` takes it back

    .git/hooks/post-commit:
        #!/bin/sh
        # >>> revdeck >>> made this file ([hash]) for a review of each commit; `revdeck hook uninstall git` takes it back
        [ -n "${husky_skip_init-}" ] || (
          revdeck='[revdeck]'
          [ -x "$revdeck" ] || revdeck=revdeck
          [ -n "${REVDECK_HOME-}" ] || REVDECK_HOME='[home]'; export REVDECK_HOME
          exec "$revdeck" hook run post-commit
        ) </dev/null >/dev/null 2>&1 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&- || :
        # <<< revdeck <<<

    .git/hooks/post-rewrite:
        #!/bin/sh
        # >>> revdeck >>> made this file ([hash]) to notice amended and rebased commits; `revdeck hook uninstall git` takes it back
        [ -n "${husky_skip_init-}" ] || (
          revdeck='[revdeck]'
          [ -x "$revdeck" ] || revdeck=revdeck
          [ -n "${REVDECK_HOME-}" ] || REVDECK_HOME='[home]'; export REVDECK_HOME
          exec "$revdeck" hook run post-rewrite
        ) </dev/null >/dev/null 2>&1 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&- || :
        # <<< revdeck <<<
    "#);
    assert_eq!(state(&hooks), before, "a dry run changes nothing");
    assert_eq!(status(&place)["installed"], false);
    assert_snapshot!(said(&place, &["install", "git"]), @"
    .git/hooks/post-commit: made
    .git/hooks/post-rewrite: made
    each commit is reviewed in the background, and reviews of amended or rebased commits end; `revdeck hook uninstall git` takes it back
    ");
    let with = state(&hooks);
    assert_snapshot!(said(&place, &["install", "git"]), @"
    .git/hooks/post-commit has the hook already: nothing to do
    .git/hooks/post-rewrite has the hook already: nothing to do
    ");
    assert_eq!(state(&hooks), with, "twice is as once");
    let status = status(&place);
    assert_eq!((&status["installed"], &status["manager"]), (&Value::Bool(true), &Value::from("git")), "{status}");
    assert_eq!(status["files"][0]["program"], Value::from(env!("CARGO_BIN_EXE_revdeck")));

    let one = commit(&place, "one");
    let two = commit(&place, "two");
    for commit in [&one, &two] {
        let run = asked(&place, commit);
        assert_eq!(&run.subject.snapshot_commit, commit, "the very commit, wherever HEAD is by now");
        assert!(run.outcome.finding_counts.total() > 0);
    }
    place.revdeck(&["hook", "uninstall", "git"]);
    assert_eq!(state(&hooks), before);
    assert_snapshot!(said(&place, &["uninstall", "git"]), @"the hook is not in: nothing to do");
}

#[test]
fn a_rebase_asks_for_nothing() {
    let place = Place::new();
    let base = place.test.git(&["rev-parse", "HEAD"]);
    commit(&place, "one");
    commit(&place, "two");
    place.test.git(&["checkout", "-q", "-b", "side", base.trim()]);
    commit(&place, "three");
    let program = write(
        &place,
        "../revdeck",
        format!("#!/bin/sh\necho called >> ../called\nexec '{}' \"$@\"\n", env!("CARGO_BIN_EXE_revdeck")),
        0o755,
    );
    let call = HookCall::new(&program, Some(&place.test.home())).expect("a call");
    repo(&place).install_hook(HookName::PostCommit, &call, HookWriteMode::Apply).expect("installed");
    place.test.git(&["rebase", "-q", "main"]);
    assert!(fs::read_to_string(file(&place, "../called")).is_ok(), "git runs the hook for commits that it picks");
    let after = commit(&place, "four");
    asked(&place, &after);
    let runs = place.runs().into_iter().filter(|run| run.source == Source::Hook).count();
    assert_eq!(runs, 1, "only what was committed afterwards");
}

#[test]
fn a_rebase_is_noticed_without_a_watcher() {
    let place = Place::new();
    place.hold_reviews("");
    // Git tells the hook of somebody else which commits were rewritten.
    let theirs = "#!/bin/sh\nread -r old new rest\necho \"$1 $old\" > ../told\n";
    write(&place, ".git/hooks/post-rewrite", theirs, 0o755);
    let before = state(&file(&place, ".git/hooks"));
    place.test.git(&["checkout", "-q", "-b", "topic"]);
    let old = place.commit_modules("topic", 1);
    let run = place.review(&["--commit", "HEAD"]);
    wait_for("a worker", || place.run(&run).status.is_working().then_some(()));
    place.test.git(&["checkout", "-q", "main"]);
    place.test.write("other.py", "x = 1\n");
    place.test.commit("other");
    place.test.git(&["checkout", "-q", "topic"]);
    place.revdeck(&["hook", "install", "git"]);
    let epoch = place.store().epoch().expect("readable");
    place.test.git(&["rebase", "-q", "main"]);
    // No command of revdeck looks.
    let head = place.test.git(&["rev-parse", "HEAD"]);
    wait_for("the adoption", || (place.run(&run).reuse.last_head == head.trim()).then_some(()));
    assert!(place.store().epoch().expect("readable") > epoch);
    assert_eq!(fs::read_to_string(file(&place, "../told")).expect("told"), format!("rebase {}\n", old.trim()));
    place.let_end();
    assert_eq!(place.ended(&run).status, RunStatus::Completed);
    place.revdeck(&["hook", "uninstall", "git"]);
    assert_eq!(state(&file(&place, ".git/hooks")), before);
}

#[test]
fn nothing_of_the_hook_reaches_the_reviewer() {
    let place = Place::new();
    let said = place.test.home().join("environment");
    let script = format!("#!/bin/sh\nenv > '{}'\ncat > /dev/null\necho '{{\"findings\": []}}'\n", said.display());
    let agent = write(&place, "../agent", script, 0o755);
    place.settings(&format!(
        "watch.reviewer = \"agent\"\n[reviewers.agent]\nkind = \"command\"\ncommand = [\"{}\"]\n",
        agent.canonicalize().expect("there").display()
    ));
    place.revdeck(&["hook", "install", "git"]);
    place.modules("one", 1);
    place.test.git(&["add", "-A"]);
    place.modules("two", 1);
    place.test.git(&["add", "-N", "two"]);
    // Git uses a temporary index for this commit and deletes it afterwards. HOME is not set, only the variables that
    // git needs.
    let commit = place
        .test
        .command("git")
        .env_remove("HOME")
        .env_remove("REVDECK_HOME")
        .env_remove("LANG")
        .env("GIT_LITERAL_PATHSPECS", "1")
        .args(["-c", "user.useConfigOnly=false", "commit", "-q", "-m", "one", "--only", "one/module_0.py"])
        .output()
        .expect("git starts");
    assert!(commit.status.success() && commit.stderr.is_empty(), "{}", String::from_utf8_lossy(&commit.stderr));
    let head = place.test.git(&["rev-parse", "HEAD"]);
    let run = asked(&place, head.trim());
    assert_eq!(run.subject.changed_paths, ["one/module_0.py"]);
    let environment = fs::read_to_string(said).expect("the reviewer ran");
    let of_the_hook = ["GIT_DIR", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_CONFIG_PARAMETERS"];
    let names = environment.lines().filter_map(|line| Some(line.split_once('=')?.0));
    assert_eq!(names.filter(|name| of_the_hook.contains(name)).collect::<Vec<_>>(), [""; 0], "{environment}");
}

#[test]
fn a_default_reviewer_that_may_cost_money_is_not_asked_by_the_hook() {
    let place = Place::new();
    let called = place.test.home().join("called");
    let agent = write(&place, "../agent", format!("#!/bin/sh\ntouch '{}'\n", called.display()), 0o755);
    place.settings(&format!(
        "default_reviewer = \"agent\"\n[reviewers.agent]\nkind = \"command\"\ncommand = [\"{}\"]\n",
        agent.canonicalize().expect("there").display()
    ));
    place.revdeck(&["hook", "install", "git"]);
    let head = commit(&place, "one");
    assert_eq!(asked(&place, &head).reviewed_by.name, "builtin");
    assert!(!called.exists());
}

#[test]
fn a_missing_key_is_said_once_and_nothing_is_queued() {
    let place = Place::new();
    place.settings("watch.reviewer = \"cloud\"\n[reviewers.cloud]\nkind = \"anthropic\"\nmodel = \"m\"\n");
    place.revdeck(&["hook", "install", "git"]);
    for name in ["one", "two"] {
        commit(&place, name);
        let lines = if name == "one" { 1 } else { 2 };
        let log = place.test.home().join("logs/hook.log");
        wait_for("a line in the log", || {
            fs::read_to_string(&log).ok().filter(|text| text.ends_with('\n') && text.lines().count() == lines)
        });
    }
    assert_eq!(place.runs(), []);
    let said = place.test.revdeck(&["runs"]);
    assert_snapshot!(String::from_utf8_lossy(&said.stderr), @"note: the git hook reviews nothing: cloud has no API key: the variable ANTHROPIC_API_KEY is not set; put the key into the environment (export ANTHROPIC_API_KEY=...), or name another source in [reviewers.cloud]: api_key_env or api_key_cmd");
    let again = place.test.revdeck(&["runs"]);
    assert_eq!(String::from_utf8_lossy(&again.stderr), "");
}

#[test]
fn a_repository_that_only_git_was_told_of_is_reviewed() {
    let place = Place::new();
    let (git_dir, work_tree) = (place.test.home().with_file_name("dotfiles"), place.test.home().with_file_name("dots"));
    fs::create_dir_all(&work_tree).expect("a folder");
    let git = |arguments: &[&str]| {
        let mut command = place.test.command("git");
        command.current_dir(&work_tree).arg("--git-dir").arg(&git_dir).arg("--work-tree").arg(&work_tree);
        let output = command.args(arguments).output().expect("git starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    git(&["init", "-q"]);
    let mut install = place.test.command(env!("CARGO_BIN_EXE_revdeck"));
    install.current_dir(&work_tree).env("GIT_DIR", &git_dir).env("GIT_WORK_TREE", &work_tree);
    assert!(install.args(["hook", "install", "git"]).output().expect("revdeck starts").status.success());
    fs::write(work_tree.join("job.py"), "def load(items=[]):\n    return items\n").expect("a file");
    git(&["add", "job.py"]);
    git(&["commit", "-q", "-m", "one"]);
    let head = git(&["rev-parse", "HEAD"]);
    let runs = || {
        let mut command = place.test.command(env!("CARGO_BIN_EXE_revdeck"));
        command.current_dir(&work_tree).env("GIT_DIR", &git_dir).env("GIT_WORK_TREE", &work_tree);
        let output = command.args(["runs", "--format", "json"]).output().expect("revdeck starts");
        serde_json::from_slice::<Value>(&output.stdout).expect("JSON")
    };
    let run =
        wait_for("the run of the hook", || Some(runs()["runs"][0].clone()).filter(|run| run["status"] == "completed"));
    assert_eq!((&run["snapshot_commit"], &run["source"]), (&Value::from(head), &Value::from("hook")));
}

#[test]
fn a_hook_that_fails_troubles_nobody() {
    let place = Place::new();
    // The program does not exist, and PATH has no other one.
    let call = HookCall::new(Path::new("/nowhere/it's/revdeck"), None).expect("a call");
    repo(&place).install_hook(HookName::PostCommit, &call, HookWriteMode::Apply).expect("installed");
    assert_eq!(status(&place)["files"][0]["program"], "/nowhere/it's/revdeck");
    assert_eq!(status(&place)["files"][0]["program_exists"], false);
    let quiet = |name: &str, path: Option<&Path>| {
        place.modules(name, 1);
        place.test.git(&["add", "-A"]);
        let mut command = path.map_or_else(|| place.test.command("git"), |path| git_of(&place, path));
        let output = command.args(["commit", "-q", "-m", name]).output().expect("git starts");
        assert!(output.status.success());
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "not a word");
        place.test.git(&["rev-parse", "HEAD"]).trim().to_owned()
    };
    quiet("one", None);
    assert_eq!(place.runs().len(), 0);
    // PATH has one.
    let folder = bin(&place, env!("CARGO_BIN_EXE_revdeck"));
    let two = quiet("two", Some(&folder));
    asked(&place, &two);
    // Unreadable settings are written to the log.
    place.revdeck(&["hook", "install", "git"]);
    place.settings("max_parallel_runs = \"none\"\n");
    quiet("three", None);
    let log = place.test.home().join("logs/hook.log");
    let said = wait_for("a line in the log", || fs::read_to_string(&log).ok().filter(|text| text.ends_with('\n')));
    assert_snapshot!(place.test.normalise(&said), @"[time] [repo]: [home]/config.toml:1:21: max_parallel_runs: has a value of the wrong sort; allowed: a whole number from 1 to 64");
    assert_eq!(mode(&log), 0o600);
}

#[test]
fn a_test_environment_has_no_hooks_of_its_own() {
    // Checks the assumption behind the tests above.
    let test = TestEnvironment::new();
    let repo = Repo::discover(&test.repo()).expect("a repository");
    let standing = repo.hook_status().expect("a repository");
    assert_eq!((standing.present.len(), standing.manager.ok()), (0, Some(HookManager::Git)));
}

/// A snooze delays a hook's review as it delays a watcher's, because no person asked for it.
#[test]
fn a_snooze_holds_the_hook_back_and_not_a_person() {
    let place = Place::new();
    place.revdeck(&["hook", "install", "git"]);
    place.revdeck(&["snooze", "2h"]);
    let quiet = commit(&place, "quiet");
    let log = place.test.home().join("logs/hook.log");
    let said = wait_for("a word about it", || {
        let said = fs::read_to_string(&log).unwrap_or_default();
        said.ends_with('\n').then_some(said)
    });
    let said = said.replace(&quiet, "[quiet]");
    assert_snapshot!(place.test.normalise(&said), @"[time] [repo]: [quiet] is not reviewed: snoozed");
    assert_eq!(place.runs(), []);
    place.review(&["--commit", &quiet, "--wait"]);
    place.revdeck(&["snooze", "off"]);
    let heard = commit(&place, "heard");
    assert_eq!(asked(&place, &heard).source, Source::Hook);
}
