//! Folders of the workspace: several repositories, none, links, repositories inside of folders.

use super::*;

fn folder_uri(folder: &std::path::Path) -> String {
    format!("file://{}", folder.to_str().expect("text"))
}

#[test]
fn several_folders_have_their_own_findings_and_a_folder_without_a_repository_none() {
    let (one, other) = (reviewed(), reviewed());
    let outside = tempfile::tempdir().expect("a folder");
    // The store of the other repository is in the same home.
    let mut review = one.command(env!("CARGO_BIN_EXE_revdeck"));
    let reviewed = review.arg("-C").arg(other.repo()).args(["review", "--wait"]).output().expect("revdeck starts");
    assert!(reviewed.status.success());
    let mut client = LspClient::spawn(LspClient::command(&one, &[]));
    let folders = [uri(&one, ""), folder_uri(outside.path()), folder_uri(&outside.path().join("missing"))];
    client.initialize(&folders.each_ref().map(String::as_str), LspClient::capabilities());
    client.published(&uri(&one, "long.py"));
    client.published(&uri(&one, "sub%20dir/wide.py"));
    let change = |added: Value, removed: Value| json!({ "event": { "added": added, "removed": removed } });
    let folder = json!([{ "uri": uri(&other, ""), "name": "other" }]);
    client.notify("workspace/didChangeWorkspaceFolders", change(folder.clone(), json!([])));
    client.published(&uri(&other, "long.py"));
    client.published(&uri(&other, "sub%20dir/wide.py"));
    client.notify("workspace/didChangeWorkspaceFolders", change(json!([]), folder));
    client.cleared(&uri(&other, "long.py"));
    client.cleared(&uri(&other, "sub%20dir/wide.py"));
    // A file of a folder without a repository has nothing.
    let file = folder_uri(&outside.path().join("a.py"));
    client.open(&file, "value = 1\n");
    assert_eq!(client.actions(&file, 0), Vec::<serde_json::Value>::new());
    assert_eq!(client.actions("untitled:Untitled-1", 0), Vec::<serde_json::Value>::new());
    client.shut_down();
    assert!(client.kept.is_empty(), "{:?}", client.kept);
}

#[test]
fn without_folders_the_repository_of_an_open_document_counts() {
    let test = reviewed();
    let mut client = LspClient::spawn(LspClient::command(&test, &[]));
    client.initialize(&[], LspClient::capabilities());
    let long = uri(&test, "long.py");
    client.open(&long, &long_function("long"));
    assert_eq!(client.published(&long)["version"], 1);
}

#[cfg(unix)]
#[test]
fn addresses_are_as_the_client_writes_them() {
    let test = reviewed();
    let links = tempfile::tempdir().expect("a folder");
    let link = links.path().join("link");
    std::os::unix::fs::symlink(test.repo(), &link).expect("a link");
    let mut client = LspClient::spawn(LspClient::command(&test, &[]));
    client.initialize(&[&folder_uri(&link)], LspClient::capabilities());
    let long = folder_uri(&link.join("long.py"));
    client.published(&long);
    // An open document keeps the address of its client, and has no second one.
    let wide = folder_uri(&link.join("sub%20dir/wide.py"));
    let same = folder_uri(&link.join("%73ub%20dir/wide.py"));
    let published = client.published(&wide);
    client.open(&same, WIDE);
    client.cleared(&wide);
    assert_eq!(client.published(&same)["diagnostics"], published["diagnostics"]);
}
