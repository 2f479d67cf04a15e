//! Findings as diagnostics: published, moved with edits, cleared, pulled.

use super::*;

#[test]
fn findings_are_diagnostics_of_all_files_until_they_are_decided() {
    let test = reviewed();
    let mut client = LspClient::start(&test);
    let (long, wide) = (uri(&test, "long.py"), uri(&test, "sub%20dir/wide.py"));
    let published = client.published(&long);
    let shown = serde_json::to_string_pretty(&published).expect("JSON");
    insta::assert_snapshot!(test.normalise(&shown));
    let id = text(&published["diagnostics"][0]["data"]);
    assert_eq!(finding_ids(&test, "long.py"), [id.as_str()]);
    assert_eq!(client.published(&wide)["diagnostics"][0]["severity"], 3);
    // Another process decides.
    run(&test, &["triage", &id, "addressed"], DONE);
    client.cleared(&long);
    run(&test, &["triage", &id, "open"], DONE);
    assert_eq!(client.published(&long)["diagnostics"], published["diagnostics"]);
    client.shut_down();
    assert!(client.kept.is_empty(), "{:?}", client.kept);
}

#[test]
fn a_review_that_ends_is_shown() {
    let test = TestEnvironment::new();
    test.write("long.py", long_function("long"));
    test.commit("one finding");
    // There is no store yet, and looking for findings makes none.
    let mut client = LspClient::start(&test);
    let long = uri(&test, "long.py");
    assert_eq!(client.actions(&long, 0), Vec::<serde_json::Value>::new());
    assert!(!test.home().join("state").exists());
    run(&test, &["review", "--wait"], DONE);
    assert_eq!(client.published(&long)["diagnostics"][0]["severity"], 1);
}

#[test]
fn columns_are_units_of_utf_16_or_bytes_of_utf_8() {
    let test = reviewed();
    let wide = uri(&test, "sub%20dir/wide.py");
    for (encodings, offered, end) in [(json!(["utf-16"]), "utf-16", 52), (json!(["utf-16", "utf-8"]), "utf-8", 54)] {
        let mut client = LspClient::spawn(LspClient::command(&test, &[]));
        let mut capabilities = LspClient::capabilities();
        capabilities["general"] = json!({ "positionEncodings": encodings });
        let said = client.initialize(&[&uri(&test, "")], capabilities);
        assert_eq!(said["capabilities"]["positionEncoding"], offered);
        assert_eq!(range(&client.published(&wide)["diagnostics"][0]), [0, 0, 1, end]);
        // A blank behind the emoji goes, at the columns of the client.
        client.open(&wide, WIDE);
        let at = |character: u64| json!({ "line": 1, "character": character });
        let change = json!({ "range": { "start": at(end - 7), "end": at(end - 6) }, "text": "" });
        let document = json!({ "uri": wide, "version": 2 });
        client.notify("textDocument/didChange", json!({ "textDocument": document, "contentChanges": [change] }));
        let published = client.published(&wide);
        assert_eq!(range(&published["diagnostics"][0]), [0, 0, 1, end - 1]);
        assert_eq!(published["version"], 2);
    }
}

#[test]
fn findings_follow_unsaved_edits_and_stale_ones_are_not_shown() {
    let test = reviewed();
    let mut client = LspClient::start(&test);
    let wide = uri(&test, "sub%20dir/wide.py");
    let before = client.published(&wide);
    client.open(&wide, WIDE);
    client.replace(&wide, 2, &format!("import os\n\n\n{WIDE}"));
    let moved = client.published(&wide);
    assert_eq!((range(&moved["diagnostics"][0]), &moved["version"]), ([3, 0, 4, 52], &json!(2)));
    client.replace(&wide, 3, "def narrow(a):\n    return a\n");
    client.cleared(&wide);
    assert_eq!(client.actions(&wide, 0), Vec::<serde_json::Value>::new());
    client.replace(&wide, 4, WIDE);
    assert_eq!(client.published(&wide)["diagnostics"], before["diagnostics"]);
    // The buffer is thrown away: the file on disk counts again.
    client.replace(&wide, 5, "");
    client.cleared(&wide);
    client.notify("textDocument/didClose", json!({ "textDocument": { "uri": wide } }));
    assert_eq!(client.published(&wide)["diagnostics"], before["diagnostics"]);
}

#[test]
fn files_that_are_not_open_are_read_from_disk() {
    let test = reviewed();
    test.write("sub dir/wide.py", format!("# a comment\n{WIDE}"));
    std::fs::remove_file(test.repo().join("long.py")).expect("a file");
    let mut client = LspClient::start(&test);
    let published = client.published(&uri(&test, "sub%20dir/wide.py"));
    assert_eq!(range(&published["diagnostics"][0]), [1, 0, 2, 52]);
    // A file that is gone has no diagnostics.
    client.shut_down();
    assert!(client.kept.is_empty(), "{:?}", client.kept);
}

#[test]
fn a_file_that_changes_on_disk_is_read_again() {
    let test = reviewed();
    let mut client = LspClient::spawn(LspClient::command(&test, &[]));
    let mut capabilities = LspClient::capabilities();
    capabilities["workspace"]["didChangeWatchedFiles"] = json!({ "dynamicRegistration": true });
    client.initialize(&[&uri(&test, "")], capabilities);
    let asked = client.wait_for("a registration", |message| message["method"] == "client/registerCapability");
    assert_eq!(asked["params"]["registrations"][0]["method"], "workspace/didChangeWatchedFiles");
    let wide = uri(&test, "sub%20dir/wide.py");
    client.published(&wide);
    // An assistant has rewritten it.
    test.write("sub dir/wide.py", "def narrow(a):\n    return a\n");
    client.notify("workspace/didChangeWatchedFiles", json!({ "changes": [{ "uri": wide, "type": 2 }] }));
    client.cleared(&wide);
}

#[test]
fn the_least_priority_is_an_option() {
    let test = reviewed();
    let mut client = LspClient::spawn(LspClient::command(&test, &["--priority", "p1", "--stdio"]));
    client.initialize(&[&uri(&test, "")], LspClient::capabilities());
    client.published(&uri(&test, "long.py"));
    client.shut_down();
    assert!(client.kept.is_empty(), "{:?}", client.kept);
}

#[test]
fn a_client_that_pulls_gets_diagnostics_of_open_documents_once() {
    let test = reviewed();
    let mut client = LspClient::spawn(LspClient::command(&test, &[]));
    let mut capabilities = LspClient::capabilities();
    capabilities["textDocument"]["diagnostic"] = json!({});
    capabilities["workspace"]["diagnostics"] = json!({ "refreshSupport": true });
    let said = client.initialize(&[&uri(&test, "")], capabilities);
    assert_eq!(said["capabilities"]["diagnosticProvider"]["identifier"], "revdeck");
    let long = uri(&test, "long.py");
    let published = client.published(&long);
    client.open(&long, &long_function("long"));
    client.cleared(&long);
    let document = json!({ "textDocument": { "uri": long } });
    let report = client.request("textDocument/diagnostic", document.clone());
    assert_eq!((&report["kind"], &report["items"]), (&json!("full"), &published["diagnostics"]));
    let mut again = document.clone();
    again["previousResultId"] = report["resultId"].clone();
    assert_eq!(client.request("textDocument/diagnostic", again.clone())["kind"], "unchanged");
    let id = text(&report["items"][0]["data"]);
    run(&test, &["triage", &id, "dismissed", "--reason", "intended"], DONE);
    client.wait_for("refresh", |message| message["method"] == "workspace/diagnostic/refresh");
    let report = client.request("textDocument/diagnostic", again);
    assert_eq!((&report["kind"], &report["items"]), (&json!("full"), &json!([])));
}
