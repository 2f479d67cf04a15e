//! Output to a terminal or a pipe, also when the reader closes it or the write fails.

use super::*;

#[test]
fn a_closed_pipe_is_no_error() {
    let test = reviewed();
    for (arguments, code) in [
        (&["findings", "--status", "all"][..], DONE),
        (&["runs", "--format", "json"], DONE),
        (&["review", "--wait", "--fail-on", "p1"], FINDINGS),
        (&["completions", "bash"], DONE),
        (&["--help"], DONE),
        (&[], DONE),
    ] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = test
            .command(env!("CARGO_BIN_EXE_revdeck"))
            .args(arguments)
            .stdout(writer)
            .stderr(Stdio::piped())
            .output()
            .expect("revdeck starts");
        assert_eq!((output.status.code(), err(&output).as_str()), (Some(code), ""), "{arguments:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error() {
    let test = reviewed();
    let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("a device");
    let output = test
        .command(env!("CARGO_BIN_EXE_revdeck"))
        .args(["findings"])
        .stdout(full)
        .stderr(Stdio::piped())
        .output()
        .expect("revdeck starts");
    assert_eq!(output.status.code(), Some(INCOMPLETE), "{}", err(&output));
    assert_snapshot!(err(&output), @"error: cannot write to standard output: No space left on device (os error 28)");
}

#[cfg(target_os = "linux")]
#[test]
fn hostile_names_are_harmless() {
    let test = TestEnvironment::new();
    test.write("evil\x1b[2J\n\u{202e}\u{9b}1m<b>`x`.py", long_function("long"));
    test.commit("hostile\x1b]52;c;aGk=\x07");
    for arguments in [
        &["review", "--wait"][..],
        &["findings", "--color", "always"],
        &["show", "latest"],
        &["details", "latest"],
        &["ledger"],
        &["smells", "."],
        &["findings", "--format", "markdown"],
        &["review", "--wait", "--format", "json"],
        &["show", "latest", "--format", "json"],
        &["details", "latest", "--format", "json"],
        &["runs", "--format", "json"],
        &["findings", "--format", "json"],
        &["smells", ".", "--format", "json"],
        &[],
    ] {
        let text = run(&test, arguments, DONE);
        let plain = text.replace("\x1b[0m", "");
        let hostile = ["\x1b[2J", "\x1b]52", "\u{202e}", "evil\x1b", "\u{9b}"];
        assert!(hostile.iter().all(|part| !plain.contains(part)), "{arguments:?}: {text:?}");
    }
    assert_snapshot!(test.output(&["ledger"], DONE), @r#"
    <auto_review_ledger version="1" repo="repo">
      <latest run="[run]" status="completed" snapshot="[hash]" findings="1" surfaced="false" summary="1 finding in 1 file: 1 p1"/>
      <finding id="f_[id]" run="[run]" p="1" path="evil�[2J ��[duration]&lt;b&gt;`x`.py" line="1" title="Function `long` is 202 code lines long"/>
      <details available="revdeck details RUN FINDING"/>
    </auto_review_ledger>
    "#);
    let markdown = run(&test, &["findings", "--format", "markdown"], DONE);
    assert_snapshot!(lines_with(&markdown, |line| line.starts_with('#')), @"### ``evil�[2J ��1m<b>`x`.py``");
    let value = test.json(&["findings", "--format", "json"], DONE);
    assert_eq!(
        list(&value, "findings")[0]["repo_relative_path"],
        "evil\x1b[2J\n\u{202e}\u{9b}1m<b>`x`.py",
        "data stays data"
    );
}

#[test]
fn a_damaged_store_is_told_and_repaired() {
    let test = reviewed();
    let root = run(&test, &["store", "path"], DONE).trim().to_owned();
    // The count of lines varies with the steps of the worker.
    let verdict = || run(&test, &["store", "verify"], DONE).split(": ").next().map(str::to_owned);
    assert_eq!(verdict().as_deref(), Some("the store is sound"));
    let runs = format!("{root}/runs.ndjson");
    let mut content = fs::read_to_string(&runs).expect("readable");
    content.insert_str(0, "{broken\n");
    fs::write(&runs, content).expect("writable");
    let problems =
        |command, code| lines_with(&test.output(&["store", command], code), |line| line.starts_with("[home]"));
    assert_snapshot!(problems("verify", INCOMPLETE), @"
    [home]/state/review/repo-[hash]/auto-review/runs.ndjson: was changed by another program: its first 5 lines are not those that were written; repair: runs are restored from outputs and journals; the rest is lost
    [home]/state/review/repo-[hash]/auto-review/runs.ndjson:1: is not a line of this file; repair: moved to a .corrupt file beside it
    ");
    assert_snapshot!(problems("repair", DONE), @"
    [home]/state/review/repo-[hash]/auto-review/runs.ndjson: was changed by another program: its first 5 lines are not those that were written; repaired: runs are restored from outputs and journals; the rest is lost
    [home]/state/review/repo-[hash]/auto-review/runs.ndjson:1: is not a line of this file; repaired: moved to a .corrupt file beside it
    ");
    assert_eq!(verdict().as_deref(), Some("the store is sound"));
    assert_eq!(finding_ids(&test).len(), 2);
    let pruned = test.json(&["store", "prune", "--keep-days", "0", "--keep-runs", "0", "--format", "json"], DONE);
    has_keys(&pruned, &["journals", "lines", "bytes", "snapshots"]);
    assert_eq!(finding_ids(&test).len(), 2, "findings stay");
}
