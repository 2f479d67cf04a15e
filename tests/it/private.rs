//! Access rights: everything that revdeck creates below its home is for its owner only, whatever the umask says.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use rstest::rstest;

use crate::env::{TestEnvironment, err, executable, out};

/// Returns every file and folder below a folder, the folder included, with its permissions.
fn entries(folder: &Path) -> Vec<(String, u32)> {
    let (mut found, mut waiting) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(path) = waiting.pop() {
        let metadata = path.symlink_metadata().expect("an entry");
        found.push((path.display().to_string(), metadata.permissions().mode() & 0o7777));
        if metadata.is_dir() {
            waiting.extend(std::fs::read_dir(&path).expect("a folder").flatten().map(|entry| entry.path()));
        }
    }
    found
}

#[rstest]
#[case::open_to_everybody("000")]
#[case::as_usual("022")]
#[case::closed("077")]
fn everything_below_the_home_is_for_its_owner_only(#[case] umask: &str) {
    let test = TestEnvironment::new();
    let agent = test.repo().with_file_name("agent");
    executable(&agent, "#!/bin/sh\ncat > /dev/null\necho '{\"findings\": []}'\n");
    let settings = test.repo().with_file_name("settings.toml");
    std::fs::write(&settings, format!("[reviewers.agent]\nkind = \"command\"\ncommand = [\"{}\"]\n", agent.display()))
        .expect("settings");
    test.write("a.py", "import os\ndef f(x):\n    try:\n        return x\n    except:\n        pass\n");
    test.commit("one");
    test.write("b.py", "import os\ndef g(x):\n    try:\n        return x\n    except:\n        pass\n");
    // The first command that writes creates the home and the folder above it.
    let home = test.repo().with_file_name("new").join("home");
    let script = r#"
        umask "$1"; bin="$2"; set -e
        REVDECK_LOG=info "$bin" doctor > /dev/null || true
        "$bin" review --worktree --wait > /dev/null || true
        install -m 600 "$3" "$REVDECK_HOME/config.toml"
        "$bin" review --commit HEAD --reviewer agent --wait > /dev/null || true
        id=$("$bin" findings --format json | grep -o 'f_[0-9a-f]*' | head -n 1)
        "$bin" triage "$id" dismissed --reason "on purpose" > /dev/null
        "$bin" undo > /dev/null
        "$bin" fix "$id" > /dev/null 2>&1 || true
        "$bin" mute LOGIC > /dev/null 2>&1 || true
        "$bin" snooze 1h > /dev/null
        "$bin" ledger --record > /dev/null
        "$bin" context > /dev/null
        "$bin" knowledge > /dev/null 2>&1 || true
        "$bin" stats > /dev/null
        "$bin" store repair > /dev/null
        "$bin" store prune > /dev/null
    "#;
    let mut command = test.command("sh");
    command.args(["-c", script, "sh", umask, env!("CARGO_BIN_EXE_revdeck")]).arg(&settings);
    let output = command.env("REVDECK_HOME", &home).output().expect("sh starts");
    assert!(output.status.success(), "{}{}", out(&output), err(&output));
    let entries = entries(&home);
    for name in ["/runs.ndjson", "/triage.ndjson", "/lock", "/logs", ".log", "/outputs", "/index"] {
        assert!(entries.iter().any(|(path, _)| path.ends_with(name)), "the test creates no {name}: {entries:?}");
    }
    let open: Vec<_> = entries.into_iter().filter(|(_, mode)| mode & 0o077 != 0).collect();
    assert_eq!(open, [], "umask {umask}");
}
