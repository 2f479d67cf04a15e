//! Installation and removal: other hooks run on, and their bytes and modes come back.

use super::*;

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
    assert_snapshot!(said(&place, &["uninstall", "git"]), @"
    .git/hooks/post-commit: was edited since; only revdeck's lines taken out, the rest stays
    .git/hooks/post-rewrite: removed, it was made by revdeck
    ");
    assert_eq!(fs::read_to_string(&hook).expect("the hook"), "#!/bin/sh\necho mine\n");
    // A hook file that existed before.
    place.revdeck(&["hook", "install", "git"]);
    append("echo more\n");
    assert_eq!(status(&place)["files"][0]["edited"], true);
    assert_snapshot!(said(&place, &["uninstall", "git"]), @"
    .git/hooks/post-commit: was edited since; only revdeck's lines taken out, the rest stays
    .git/hooks/post-rewrite: removed, it was made by revdeck
    ");
    assert_eq!(fs::read_to_string(&hook).expect("the hook"), "#!/bin/sh\necho mine\necho more\n");
    // A hook that calls the moved hook still calls it after uninstall.
    write(&place, HOOK, "#!/usr/bin/env python3\nopen('../ran', 'a').write('ran\\n')\n", 0o755);
    place.revdeck(&["hook", "install", "git"]);
    let now = fs::read_to_string(&hook).expect("the hook");
    fs::write(&hook, now.replace("hook=", "echo mine >> ../ran\nhook=")).expect("written");
    assert_snapshot!(said(&place, &["uninstall", "git"]), @"
    .git/hooks/post-commit: was edited since; only revdeck's lines taken out, and it goes on to call the hook that was moved aside
    .git/hooks/post-rewrite: removed, it was made by revdeck
    ");
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
