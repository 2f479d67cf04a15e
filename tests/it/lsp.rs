//! `revdeck lsp`: a real process over pipes that speaks the Language Server Protocol.

mod actions;
mod client;
mod diagnostics;
mod ends;
mod folders;
mod page;
mod python;

use serde_json::{Value, json};

use crate::env::{DONE, TestEnvironment, long_function, run};

use client::LspClient;

/// A function with too many parameters: a p3 finding on its two lines, of which one has an emoji.
const WIDE: &str = "def wide(a, b, c, d, e, f, g, h):\n    return call(a, b, c, d, e, f, g, h, \"😀\")  # end\n";

/// Returns a repository whose last commit has a p1 finding in `long.py` and a p3 finding in `sub dir/wide.py`.
fn reviewed() -> TestEnvironment {
    let test = TestEnvironment::new();
    test.write("long.py", long_function("long"));
    test.write("sub dir/wide.py", WIDE);
    test.commit("two findings");
    run(&test, &["review", "--wait"], DONE);
    test
}

/// Returns the address of a file of the repository.
fn uri(test: &TestEnvironment, path: &str) -> String {
    format!("file://{}/{path}", test.repo().to_str().expect("text"))
}

/// Returns the ids of the undecided findings of a file.
fn finding_ids(test: &TestEnvironment, path: &str) -> Vec<String> {
    let listed = test.json(&["findings", "--path", path, "--format", "json"], DONE);
    listed["findings"].as_array().expect("findings").iter().map(|finding| text(&finding["finding_id"])).collect()
}

#[track_caller]
fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}

/// Returns the range of a diagnostic: lines and columns of its start and end.
fn range(diagnostic: &Value) -> [u64; 4] {
    let at = |end: &str, part: &str| diagnostic["range"][end][part].as_u64().expect("a number");
    [at("start", "line"), at("start", "character"), at("end", "line"), at("end", "character")]
}
