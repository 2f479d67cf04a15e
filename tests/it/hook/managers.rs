//! Managers of hooks: husky, lefthook and pre-commit.

use super::*;

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
