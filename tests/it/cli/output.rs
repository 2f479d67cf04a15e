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
    assert!(err(&output).contains("cannot write to standard output"), "{}", err(&output));
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
    let ledger = run(&test, &["ledger"], DONE);
    assert!(ledger.contains("&lt;b&gt;") && !ledger.contains("<b>"), "{ledger}");
    let markdown = run(&test, &["findings", "--format", "markdown"], DONE);
    assert!(markdown.contains("### ``"), "{markdown}");
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
    assert!(run(&test, &["store", "verify"], DONE).contains("the store is sound"));
    let runs = format!("{root}/runs.ndjson");
    let mut content = fs::read_to_string(&runs).expect("readable");
    content.insert_str(0, "{broken\n");
    fs::write(&runs, content).expect("writable");
    assert!(run(&test, &["store", "verify"], INCOMPLETE).contains("runs.ndjson:1"));
    run(&test, &["store", "repair"], DONE);
    run(&test, &["store", "verify"], DONE);
    assert_eq!(finding_ids(&test).len(), 2);
    let pruned = test.json(&["store", "prune", "--keep-days", "0", "--keep-runs", "0", "--format", "json"], DONE);
    has_keys(&pruned, &["journals", "lines", "bytes", "snapshots"]);
    assert_eq!(finding_ids(&test).len(), 2, "findings stay");
}
