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

#[rstest]
#[case::script(RAN, 0o755, 1)]
#[case::modes(RAN, 0o744, 1)]
#[case::no_line_end("#!/bin/sh -eu\necho ran >> ../ran", 0o755, 1)]
#[case::only_a_first_line("#!/bin/sh", 0o755, 0)]
#[case::leaves_early("#!/usr/bin/env bash\necho ran >> ../ran\nexit 7\n", 0o755, 1)]
#[case::no_first_line("echo ran >> ../ran\n", 0o755, 1)]
#[case::lines_of_windows("#!/bin/sh\nhook() { echo ran >> ../ran; } # \r\nhook #\r\n", 0o700, 1)]
#[case::python("#!/usr/bin/env python3\nopen('../ran', 'a').write('ran\\n')\nraise SystemExit(7)\n", 0o755, 1)]
#[case::polyglot("#!/bin/sh\n'''exec' python3 \"$0\" \"$@\"\n'''\nopen('../ran', 'a').write('ran\\n')\n", 0o755, 1)]
#[case::switched_off(RAN, 0o644, 0)]
#[case::a_shell_of_windows("#!/bin/sh\r\necho ran >> ../ran\r\n", 0o755, 0)]
fn a_hook_that_is_there_runs_on(#[case] content: &str, #[case] bits: u32, #[case] runs: usize) {
    let place = Place::new();
    write(&place, HOOK, content, bits);
    let before = state(&file(&place, ".git/hooks"));
    place.revdeck(&["hook", "install", "git"]);
    assert_eq!(status(&place)["installed"], true);
    let commit = commit(&place, "one");
    assert_eq!(ran(&place), runs, "what was there runs as it did");
    asked(&place, &commit);
    if content.contains('7') {
        let hook = place.test.command(file(&place, HOOK)).status().expect("the hook starts");
        assert_eq!(hook.code(), Some(7), "its exit code is kept");
    }
    place.revdeck(&["hook", "uninstall", "git"]);
    assert_eq!(state(&file(&place, ".git/hooks")), before);
}

#[test]
fn programs_and_links_are_called_as_they_are() {
    for link in [false, true] {
        let place = Place::new();
        let hook = file(&place, HOOK);
        fs::create_dir_all(hook.parent().expect("a folder")).expect("a folder");
        match link {
            true => {
                write(&place, "tools/hook.sh", RAN, 0o755);
                symlink("../../tools/hook.sh", &hook).expect("a link");
            }
            false => drop(fs::copy("/bin/true", &hook).expect("a program")),
        }
        let before = state(&file(&place, ".git/hooks"));
        place.revdeck(&["hook", "install", "git"]);
        let commit = commit(&place, "one");
        asked(&place, &commit);
        assert_eq!(ran(&place), usize::from(link));
        place.revdeck(&["hook", "uninstall", "git"]);
        assert_eq!(state(&file(&place, ".git/hooks")), before);
    }
}

#[test]
fn uninstall_restores_bytes_and_modes() {
    let content = prop_oneof![
        "(#!/bin/sh|#!/usr/bin/env bash|#!/usr/bin/python3|)(\r?\n|)([a-z #$0-9]{0,9}(\r?\n|)){0,6}"
            .prop_map(String::into_bytes),
        proptest::collection::vec(any::<u8>(), 0..80),
    ];
    // The owner can always read the file.
    let bits = (0u32..0o1000).prop_map(|bits| bits | 0o400);
    // All cases use one repository; each case removes the files of the previous one.
    let place = Place::new();
    let mut cases = TestRunner::new(ProptestConfig { cases: 64, ..ProptestConfig::with_source_file(file!()) });
    let outcome = cases.run(&(content, bits), |(content, bits)| {
        let _ = fs::remove_dir_all(file(&place, ".git/hooks"));
        write(&place, HOOK, &content, bits);
        let before = state(&file(&place, ".git/hooks"));
        let call = HookCall::new(Path::new("/opt/revdeck"), None).expect("a call");
        let done =
            repo(&place).install_hook(HookName::PostCommit, &call, HookWriteMode::Apply).expect("installed").outcome;
        prop_assert!(matches!(done, InstallOutcome::Inserted | InstallOutcome::MovedAside(_)));
        let again =
            repo(&place).install_hook(HookName::PostCommit, &call, HookWriteMode::Apply).expect("installed").outcome;
        prop_assert_eq!(again, InstallOutcome::Unchanged);
        let other = HookCall::new(Path::new("/opt/new/revdeck"), None).expect("a call");
        let updated =
            repo(&place).install_hook(HookName::PostCommit, &other, HookWriteMode::Apply).expect("installed").outcome;
        prop_assert_eq!(updated, InstallOutcome::Updated);
        let removed = repo(&place).uninstall_hooks(HookWriteMode::Apply).expect("removed");
        prop_assert_eq!(removed.iter().map(|removed| removed.left).collect::<Vec<_>>(), [HookRemainder::AsBefore]);
        prop_assert_eq!(state(&file(&place, ".git/hooks")), before);
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn what_was_edited_since_stays() {
    let place = Place::new();
    let hook = file(&place, HOOK);
    let append = |text: &str| {
        let now = fs::read_to_string(&hook).expect("the hook");
        fs::write(&hook, now + text).expect("written");
    };
    // A hook file that revdeck created.
    place.revdeck(&["hook", "install", "git"]);
    append("echo mine\n");
    assert_snapshot!(said(&place, &["install", "git"]), @"
    .git/hooks/post-commit has the hook already: nothing to do
    .git/hooks/post-rewrite has the hook already: nothing to do
    ");
    assert_snapshot!(said(&place, &["uninstall", "git"]), @".git/hooks/post-commit: was edited since; only revdeck's lines taken out, the rest stays");
    assert_eq!(fs::read_to_string(&hook).expect("the hook"), "#!/bin/sh\necho mine\n");
    // A hook file that existed before.
    place.revdeck(&["hook", "install", "git"]);
    append("echo more\n");
    assert_eq!(status(&place)["files"][0]["edited"], true);
    assert_snapshot!(said(&place, &["uninstall", "git"]), @".git/hooks/post-commit: was edited since; only revdeck's lines taken out, the rest stays");
    assert_eq!(fs::read_to_string(&hook).expect("the hook"), "#!/bin/sh\necho mine\necho more\n");
    // A hook that calls the moved hook still calls it after uninstall.
    write(&place, HOOK, "#!/usr/bin/env python3\nopen('../ran', 'a').write('ran\\n')\n", 0o755);
    place.revdeck(&["hook", "install", "git"]);
    let now = fs::read_to_string(&hook).expect("the hook");
    fs::write(&hook, now.replace("hook=", "echo mine >> ../ran\nhook=")).expect("written");
    assert_snapshot!(said(&place, &["uninstall", "git"]), @".git/hooks/post-commit: was edited since; only revdeck's lines taken out, and it goes on to call the hook that was moved aside");
    let left = fs::read_to_string(&hook).expect("the hook");
    assert_snapshot!(place.test.normalise(&left), @r#"
    #!/bin/sh
    echo mine >> ../ran
    hook="${0%/*}/post-commit.before-revdeck"
    [ -x "$hook" ] || exit 0
    exec "$hook" "$@"
    "#);
    commit(&place, "one");
    assert_eq!(ran(&place), 2);
    // A file with only half of revdeck's lines stays unchanged, for a person to inspect.
    write(&place, HOOK, "#!/bin/sh\n# <<< revdeck <<<\n", 0o755);
    for arguments in [["hook", "install", "git"], ["hook", "uninstall", "git"]] {
        allow_duplicates!(assert_snapshot!(place.test.fails(&arguments, USAGE), @"
        error: [repo]/.git/hooks/post-commit has only a part of revdeck's lines
          hint: take out by hand what is left between `# >>> revdeck >>>` and `# <<< revdeck <<<`
        "));
    }
}

#[test]
fn a_folder_of_hooks_in_the_working_tree_is_used() {
    let place = Place::new();
    write(&place, ".githooks/post-commit", RAN, 0o755);
    place.test.git(&["config", "core.hooksPath", ".githooks"]);
    fs::create_dir(file(&place, "below")).expect("a folder");
    assert_snapshot!(place.test.output(&["-C", "below", "hook", "install", "git"], DONE), @"
    .githooks/post-commit: revdeck's lines added
    .githooks/post-rewrite: made
    each commit is reviewed in the background, and reviews of amended or rebased commits end; `revdeck hook uninstall git` takes it back
    note: the files are in the working tree, so they call the revdeck in PATH; where there is none they do nothing
    ");
    // Other users get this file with the repository: it must not contain a user's folders.
    let content = fs::read_to_string(file(&place, ".githooks/post-commit")).expect("the hook");
    assert_snapshot!(place.test.normalise(&content), @r#"
    #!/bin/sh
    # >>> revdeck >>> added these lines ([hash]) for a review of each commit; `revdeck hook uninstall git` takes it back
    [ -n "${husky_skip_init-}" ] || (
      exec revdeck hook run post-commit
    ) </dev/null >/dev/null 2>&1 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&- || :
    # <<< revdeck <<<
    echo ran >> ../ran
    "#);
    assert_eq!(status(&place)["files"][0]["program"], Value::Null);
    let commit = commit_of(&place, "one", &bin(&place, env!("CARGO_BIN_EXE_revdeck")));
    asked(&place, &commit);
    assert_eq!(ran(&place), 1);
    // Uninstall finds the hook even when git now uses another hook folder.
    place.revdeck(&["hook", "uninstall", "git"]);
    place.test.git(&["config", "--unset", "core.hooksPath"]);
    place.revdeck(&["hook", "install", "git"]);
    place.test.git(&["config", "core.hooksPath", ".githooks"]);
    let said = status(&place);
    assert_eq!((&said["installed"], &said["files"][0]["runs"]), (&Value::Bool(false), &Value::Bool(false)), "{said}");
    place.revdeck(&["hook", "uninstall", "git"]);
    assert!(!file(&place, HOOK).exists());
}

#[test]
fn nothing_outside_of_the_repository_is_written() {
    let place = Place::new();
    let outside = place.test.home().with_file_name("hooks");
    fs::create_dir_all(&outside).expect("a folder");
    let outside = outside.to_str().expect("a name");
    let mut said = String::new();
    for link in [false, true] {
        if link {
            place.test.git(&["config", "--global", "--unset", "core.hooksPath"]);
            let hooks = file(&place, ".git/hooks");
            let _ = fs::remove_dir_all(&hooks);
            symlink(outside, &hooks).expect("a link");
        } else {
            place.test.git(&["config", "--global", "core.hooksPath", outside]);
        }
        let obstacle = status(&place)["obstacle"].as_str().expect("an obstacle").to_owned();
        said += &format!(
            "link: {link}\n{}obstacle: {}\n",
            place.test.fails(&["hook", "install", "git"], USAGE),
            place.test.normalise(&obstacle)
        );
        assert_eq!(state(Path::new(outside)), []);
    }
    assert_snapshot!(said, @"
    link: false
    error: the hooks are in [folder]/hooks, outside of this repository (core.hooksPath in [folder]/.gitconfig)
      hint: other repositories use them too, so revdeck leaves them alone: have [folder]/hooks/post-commit call `revdeck hook run post-commit`, or give this repository hooks of its own with `git config --local core.hooksPath .git/hooks`
    obstacle: the hooks are in [folder]/hooks, outside of this repository (core.hooksPath in [folder]/.gitconfig)
    link: true
    error: the hooks are in [repo]/.git/hooks, outside of this repository
      hint: other repositories use them too, so revdeck leaves them alone: have [repo]/.git/hooks/post-commit call `revdeck hook run post-commit`, or give this repository hooks of its own with `git config --local core.hooksPath .git/hooks`
    obstacle: the hooks are in [repo]/.git/hooks, outside of this repository
    ");
    place.test.git(&["config", "--global", "core.hooksPath", "/dev/null"]);
    assert!(matches!(place.test.revdeck(&["hook", "install", "git"]).status.code(), Some(2)));
}

/// The relevant part of the script that husky 9 writes.
const HUSKY_9: &str = "#!/usr/bin/env sh\nn=$(basename \"$0\")\ns=$(dirname \"$(dirname \"$0\")\")/$n\n\n\
                       [ ! -f \"$s\" ] && exit 0\n[ \"${HUSKY-}\" = \"0\" ] && exit 0\nsh -e \"$s\" \"$@\"\nc=$?\n\n\
                       [ $c != 0 ] && echo \"husky - $n script failed (code $c)\"\nexit $c\n";
/// The relevant part of the script that husky 8 writes: it runs the hook a second time inside the first run.
const HUSKY_8: &str = "#!/usr/bin/env sh\nif [ -z \"$husky_skip_init\" ]; then\n  readonly husky_skip_init=1\n  \
                       export husky_skip_init\n  sh -e \"$0\" \"$@\"\n  exit $?\nfi\n";

#[rstest]
#[case::new(None)]
#[case::there(Some("echo ran >> ../ran\n"))]
#[case::of_python_in_name_only(Some("#!/usr/bin/env python\necho ran >> ../ran"))]
fn husky_runs_what_people_write(#[case] content: Option<&str>) {
    let place = Place::new();
    place.test.git(&["config", "core.hooksPath", ".husky/_"]);
    write(&place, ".husky/_/h", HUSKY_9, 0o644);
    write(&place, ".husky/_/post-commit", "#!/usr/bin/env sh\n. \"$(dirname \"$0\")/h\"", 0o755);
    if let Some(content) = content {
        write(&place, ".husky/post-commit", content, 0o644);
    }
    let before = state(&file(&place, ".husky"));
    let outcome = match content {
        None => ": made",
        Some(_) => ": revdeck's lines added",
    };
    let said = said(&place, &["install", "git"]);
    let (first, rest) = said.split_once('\n').expect("lines");
    assert_eq!(first, format!(".husky/post-commit{outcome}"));
    allow_duplicates!(assert_snapshot!(rest, @"
    .husky/post-rewrite: made
    each commit is reviewed in the background, and reviews of amended or rebased commits end; `revdeck hook uninstall git` takes it back
    note: husky runs these files
    note: the files are in the working tree, so they call the revdeck in PATH; where there is none they do nothing
    "));
    assert_eq!(status(&place)["manager"], "husky");
    let commit = commit_of(&place, "one", &bin(&place, env!("CARGO_BIN_EXE_revdeck")));
    asked(&place, &commit);
    assert_eq!(ran(&place), content.iter().len());
    place.revdeck(&["hook", "uninstall", "git"]);
    assert_eq!(state(&file(&place, ".husky")), before);
}

#[test]
fn the_husky_of_before_asks_once() {
    let place = Place::new();
    place.test.git(&["config", "core.hooksPath", ".husky"]);
    write(&place, ".husky/_/husky.sh", HUSKY_8, 0o644);
    let hook = "#!/usr/bin/env sh\n. \"$(dirname -- \"$0\")/_/husky.sh\"\n\necho ran >> ../ran\n";
    write(&place, ".husky/post-commit", hook, 0o755);
    // This program records each call.
    let program = write(&place, "../revdeck", "#!/bin/sh\necho \"$@\" >> ../called\n", 0o755);
    let call = HookCall::new(&program, None).expect("a call");
    assert_eq!(
        repo(&place).install_hook(HookName::PostCommit, &call, HookWriteMode::Apply).expect("installed").outcome,
        InstallOutcome::Inserted
    );
    commit_of(&place, "one", &bin(&place, program.to_str().expect("a name")));
    assert_eq!(ran(&place), 1);
    let called = fs::read_to_string(file(&place, "../called")).expect("called");
    assert_eq!(called, "hook run post-commit\n");
    repo(&place).uninstall_hooks(HookWriteMode::Apply).expect("removed");
    assert_eq!(fs::read_to_string(file(&place, ".husky/post-commit")).expect("the hook"), hook);
}

#[rstest]
#[case::new(None, "", true)]
#[case::ignored(None, "lefthook-local.yml", true)]
#[case::there(Some("pre-push:\n  commands:\n    x:\n      run: \"true\""), "", true)]
#[case::of_windows(Some("colors: false\r\n"), "", true)]
#[case::has_its_own(Some("post-commit:\n  jobs: []\n"), "", false)]
fn lefthook_is_told_in_its_local_settings(#[case] local: Option<&str>, #[case] ignored: &str, #[case] taken: bool) {
    let place = Place::new();
    write(&place, ".gitignore", ignored, 0o644);
    write(&place, "lefthook.yml", "post-commit:\n  commands:\n    x:\n      run: \"true\"\n", 0o644);
    // Plays lefthook: runs the commands that its configuration lists for this hook.
    let run = "#!/bin/sh\n# LEFTHOOK\nsed -n 's/^        //p' lefthook-local.yml | tr -d '\\r' | sh\n";
    write(&place, HOOK, run, 0o755);
    if let Some(local) = local {
        write(&place, "lefthook-local.yml", local, 0o640);
    }
    let settings = file(&place, "lefthook-local.yml");
    let before =
        (settings.exists().then(|| (mode(&settings), fs::read(&settings).ok())), fs::read(file(&place, HOOK)).ok());
    if taken {
        place.revdeck(&["hook", "install", "git"]);
        let said = status(&place);
        assert_eq!(said["manager"], "lefthook");
        assert_eq!(said["files"][0]["program"].is_null(), ignored.is_empty(), "what is ignored is this machine's own");
        let commit = match ignored {
            "" => commit_of(&place, "one", &bin(&place, env!("CARGO_BIN_EXE_revdeck"))),
            _ => commit(&place, "one"),
        };
        asked(&place, &commit);
    } else {
        assert_snapshot!(place.test.fails(&["hook", "install", "git"], USAGE), @"
        error: [repo]/lefthook-local.yml cannot take revdeck's lines: it has a post-commit of its own
          hint: add a command to its post-commit: `revdeck hook run post-commit`, and one to its post-rewrite: `revdeck hook run post-rewrite`
        ");
    }
    place.revdeck(&["hook", "uninstall", "git"]);
    let after =
        (settings.exists().then(|| (mode(&settings), fs::read(&settings).ok())), fs::read(file(&place, HOOK)).ok());
    assert_eq!(after, before);
}

#[test]
fn pre_commit_runs_it_before_its_own() {
    let place = Place::new();
    // Plays pre-commit: runs the legacy hook if there is one, then its own.
    let content = "#!/usr/bin/env bash\n# File generated by pre-commit: https://pre-commit.com\n\
                   [ -x \"$0.legacy\" ] && \"$0.legacy\"\necho ran >> ../ran\n";
    write(&place, HOOK, content, 0o755);
    let before = state(&file(&place, ".git/hooks"));
    assert_snapshot!(said(&place, &["install", "git"]), @"
    .git/hooks/post-commit.legacy: made
    .git/hooks/post-rewrite: made
    each commit is reviewed in the background, and reviews of amended or rebased commits end; `revdeck hook uninstall git` takes it back
    note: pre-commit runs its `.legacy` file before its own hooks
    ");
    let commit = commit(&place, "one");
    asked(&place, &commit);
    assert_eq!(ran(&place), 1);
    place.revdeck(&["hook", "uninstall", "git"]);
    assert_eq!(state(&file(&place, ".git/hooks")), before);
    // `pre-commit uninstall` moves the legacy hook back to git's hook folder: revdeck still recognises it.
    place.revdeck(&["hook", "install", "git"]);
    fs::rename(file(&place, ".git/hooks/post-commit.legacy"), file(&place, HOOK)).expect("moved");
    assert_eq!(status(&place)["installed"], true);
    place.revdeck(&["hook", "uninstall", "git"]);
    assert!(!file(&place, HOOK).exists());
}

#[test]
fn worktrees_share_the_hook() {
    let place = Place::new();
    place.test.git(&["worktree", "add", "-q", "../other", "-b", "other"]);
    let other = place.test.home().with_file_name("other").canonicalize().expect("a worktree");
    place.revdeck(&["-C", other.to_str().expect("a name"), "hook", "install", "git"]);
    let one = asked(&place, &commit(&place, "one"));
    fs::write(other.join("job.py"), "def load(items=[]):\n    return items\n").expect("a file");
    for arguments in [&["add", "-A"][..], &["commit", "-q", "-m", "other"]] {
        let status = place.test.command("git").current_dir(&other).args(arguments).status().expect("git starts");
        assert!(status.success());
    }
    let head = place.test.git(&["rev-parse", "other"]);
    let two = asked(&place, head.trim());
    assert_eq!(Path::new(&one.subject.worktree), place.test.repo().canonicalize().expect("there"));
    assert_eq!((Path::new(&two.subject.worktree), two.subject.branch.as_str()), (other.as_path(), "other"));
}

#[test]
fn where_nobody_can_commit_or_write_it_says_so() {
    let place = Place::new();
    place.test.git(&["clone", "-q", "--bare", ".", "../bare"]);
    assert_snapshot!(place.test.fails(&["-C", "../bare", "hook", "install", "git"], USAGE), @"
    error: [folder]/bare has no working tree: nobody commits there
      hint: install it in a clone, or in a worktree of this repository
    ");

    // A folder that cannot be created stands for a read-only folder: root may write to every folder.
    let hooks = file(&place, ".git/hooks");
    let _ = fs::remove_dir_all(&hooks);
    fs::write(&hooks, "").expect("a file");
    place.test.fails(&["hook", "install", "git"], INCOMPLETE);
    fs::remove_file(&hooks).expect("removed");
    if !rustix::process::getuid().is_root() {
        fs::create_dir(&hooks).expect("a folder");
        fs::set_permissions(&hooks, fs::Permissions::from_mode(0o555)).expect("a mode");
        // This part does not run as root. The error ends with the system's words.
        let error = place.test.fails(&["hook", "install", "git"], INCOMPLETE);
        assert!(error.contains("nothing was changed"), "{error}");
    }
    // The error names the file that prevents revdeck from moving a hook aside.
    let _ = fs::remove_dir_all(&hooks);
    write(&place, HOOK, "#!/usr/bin/python3\n", 0o755);
    let aside = write(&place, ".git/hooks/post-commit.before-revdeck", "", 0o644);
    let call = HookCall::new(Path::new("/opt/revdeck"), None).expect("a call");
    let error = repo(&place).install_hook(HookName::PostCommit, &call, HookWriteMode::Apply).expect_err("refused");
    assert!(
        matches!(error, HookError::AsideTaken { aside: found, .. } if found == aside.canonicalize().expect("there"))
    );
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
