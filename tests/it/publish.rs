//! Findings as comments of pull requests and merge requests: the real binary against servers on loopback that behave like
//! the APIs.

mod fake_host;
mod github;
mod github_refusals;
mod gitlab;

use serde_json::{Value, json};

use crate::env::{DONE, TestEnvironment, run};

/// Made-up token, long enough to be noticed in an output.
const TOKEN: &str = "token-0123456789-abcdefghij";

/// Lines of a file without anything that the built-in reviewer reports.
fn plain_lines(name: &str, count: usize) -> String {
    (0..count).map(|number| format!("{name}_{number} = load({name}_source_{number})\n")).collect()
}

/// Creates a repository with a branch `main` and a change on top of it: line 10 of `src/app.py` is another one, and
/// `src/new.py` is new. `src/other.py` stays.
fn changed() -> TestEnvironment {
    let test = TestEnvironment::new();
    test.write("src/app.py", plain_lines("app", 30));
    test.write("src/other.py", plain_lines("other", 10));
    test.commit("base");
    test.git(&["update-ref", "refs/remotes/origin/main", "HEAD"]);
    test.git(&["remote", "add", "origin", "git@github.com:octo/hello.git"]);
    test.write("src/app.py", plain_lines("app", 30).replace("app_9 = ", "app_nine = "));
    test.write("src/new.py", plain_lines("new", 12));
    test.commit("change");
    test
}

/// Returns the patch of a file between the base and the head, as APIs return it: from the first hunk on.
fn patch(test: &TestEnvironment, path: &str) -> String {
    let diff = test.git(&["diff", "origin/main", "HEAD", "--", path]);
    diff.find("@@").map(|at| diff[at..].trim_end_matches('\n').to_owned()).unwrap_or_default()
}

fn head(test: &TestEnvironment) -> String {
    test.git(&["rev-parse", "HEAD"]).trim().to_owned()
}

/// Returns a diagnostic of a linter.
fn problem(path: &str, line: usize, message: &str) -> Value {
    json!({
        "message": message, "severity": "ERROR", "source": { "name": "lint" }, "code": { "value": "R1" },
        "location": { "path": path, "range": { "start": { "line": line }, "end": { "line": line } } },
    })
}

/// Returns a diagnostic that replaces its line.
fn fixable(path: &str, line: usize, message: &str, text: &str) -> Value {
    let mut problem = problem(path, line, message);
    problem["suggestions"] = json!([{ "range": { "start": { "line": line }, "end": { "line": line } }, "text": text }]);
    problem
}

/// Imports diagnostics and returns the ids of their findings, in the order of the diagnostics.
fn import(test: &TestEnvironment, problems: &[Value]) -> Vec<String> {
    let lines: String = problems.iter().map(|problem| format!("{problem}\n")).collect();
    let file = test.home().parent().expect("a folder").join("report.rdjsonl");
    std::fs::write(&file, lines).expect("a file");
    let text = run(test, &["import", "rdjsonl", file.to_str().expect("text"), "--format", "json"], DONE);
    let value: Value = serde_json::from_str(&text).expect("JSON");
    let found = value["imported"][0]["findings"].as_array().expect("findings");
    let id_of = |problem: &Value| {
        let message = problem["message"].as_str().expect("text").lines().next().expect("a line");
        let range = &problem["location"]["range"]["start"]["line"];
        let is_it = |finding: &&Value| {
            finding["repo_relative_path"] == problem["location"]["path"] && finding["line_start"] == *range
        };
        let finding = found.iter().find(is_it).unwrap_or_else(|| panic!("no finding for {message}: {value}"));
        finding["finding_id"].as_str().expect("an id").to_owned()
    };
    problems.iter().map(id_of).collect()
}

/// Three findings: one with a suggestion on a changed line, one in the new file, one in a file that the change leaves.
fn three_findings(test: &TestEnvironment) -> Vec<String> {
    run(test, &["review", "--wait"], DONE);
    import(
        test,
        &[
            fixable("src/app.py", 10, "Wrong name", "app_9 = load(app_source_9)"),
            problem("src/new.py", 3, "Not loaded"),
            problem("src/other.py", 5, "Old trouble"),
        ],
    )
}
