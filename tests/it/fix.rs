//! Fixes end to end: real repositories, real workers, real files.

#[cfg(unix)]
mod agent;
mod builtin;
#[cfg(unix)]
mod model;

use serde_json::Value;

use crate::env::{TestEnvironment, files_below, run};

/// A file whose second import is unused: a finding with an exact suggestion.
const UNUSED: &str = "import sys\nimport os\n\n\ndef main():\n    print(sys.argv)\n";
const USED: &str = "import sys\n\n\ndef main():\n    print(sys.argv)\n";

/// Returns the ids of the findings on a path, in order.
fn findings(test: &TestEnvironment, path: &str) -> Vec<String> {
    let value = test.json(&["findings", "--status", "all", "--format", "json"], 0);
    let all = value["findings"].as_array().cloned().unwrap_or_default();
    let here = all.iter().filter(|finding| finding["repo_relative_path"] == path);
    here.map(|finding| finding["finding_id"].as_str().expect("an id").to_owned()).collect()
}

fn status_of(test: &TestEnvironment, id: &str) -> String {
    let value = test.json(&["findings", "--status", "all", "--format", "json"], 0);
    let all = value["findings"].as_array().cloned().unwrap_or_default();
    let found = all.iter().find(|finding| finding["finding_id"] == id).expect("the finding");
    found["status"].as_str().expect("a status").to_owned()
}

/// Makes a fix of these findings, waits for it and returns it as JSON.
#[track_caller]
fn fix(test: &TestEnvironment, ids: &[&str], code: i32) -> Value {
    let mut arguments = vec!["fix"];
    arguments.extend(ids);
    arguments.extend(["--wait", "--format", "json"]);
    test.json(&arguments, code)["fix"].clone()
}

fn id_of(fix: &Value) -> String {
    fix["fix_id"].as_str().expect("an id").to_owned()
}

/// Returns all git state that no fix may change: index, HEAD, the user's refs, stash and reflogs.
fn gits_own(test: &TestEnvironment) -> Vec<(String, Vec<u8>)> {
    let git = test.repo().join(".git");
    let files = ["index", "HEAD", "ORIG_HEAD", "packed-refs", "refs/stash", "config"].map(|name| git.join(name));
    let below = ["logs", "refs/heads", "refs/tags"].into_iter().flat_map(|folder| files_below(&git.join(folder)));
    let mut seen: Vec<_> = files
        .into_iter()
        .chain(below)
        .map(|file| (file.to_string_lossy().into_owned(), std::fs::read(&file).unwrap_or_default()))
        .collect();
    seen.sort();
    seen
}
