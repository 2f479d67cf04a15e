//! The snippets of docs/ci.md, run as they stand: with a shell, and with pre-commit and lefthook, which `.ci/tools/install`
//! installs and `.ci/tools/test` puts on the PATH. Workflows are checked by the schemas of their hosts, too.

use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

use crate::env::{DONE, FINDINGS, TestEnvironment, err, long_function, out};
use crate::team::Team;

/// Returns the YAML blocks of the page.
fn blocks() -> Vec<&'static str> {
    let page = include_str!("../../docs/ci.md");
    let blocks = page.split("```yaml\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap_or_default()).collect()
}

/// Returns the only block that contains a text.
fn block_with(text: &str) -> &'static str {
    let found: Vec<&str> = blocks().into_iter().filter(|block| block.contains(text)).collect();
    assert_eq!(found.len(), 1, "blocks with {text:?}");
    found[0]
}

/// Returns the commands of a workflow, in order.
fn commands(block: &str) -> Vec<String> {
    let lines = block.lines().map(|line| line.trim().trim_start_matches("- "));
    lines.filter(|line| line.starts_with("revdeck ")).map(str::to_owned).collect()
}

/// Returns the PATH with a folder that holds revdeck.
fn path_with_revdeck() -> std::ffi::OsString {
    let own = PathBuf::from(env!("CARGO_BIN_EXE_revdeck"));
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let all = own.parent().map(PathBuf::from).into_iter().chain(std::env::split_paths(&folders));
    std::env::join_paths(all).expect("a path")
}

/// Runs a program in the repository, with revdeck on the PATH. `None` if there is no such program.
fn run_tool(test: &TestEnvironment, program: &str, arguments: &[&str]) -> Option<Output> {
    let mut command = test.command(program);
    command.args(arguments).env("PATH", path_with_revdeck()).env("BASE", "origin/main");
    command.env("GITHUB_STEP_SUMMARY", test.home().join("summary.md"));
    match command.output() {
        Ok(output) => Some(output),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => panic!("{program}: {error}"),
    }
}

/// Creates a repository whose branch adds a p1 finding to `origin/main`.
fn branch_with_finding() -> TestEnvironment {
    let test = TestEnvironment::new();
    test.write("a.py", "print(1)\n");
    test.commit("base");
    test.git(&["update-ref", "refs/remotes/origin/main", "HEAD"]);
    test.write("long.py", long_function("long"));
    test.commit("long");
    test
}

fn run_workflow(test: &TestEnvironment, block: &str) {
    let commands = commands(block);
    assert!(commands.len() >= 3, "{block}");
    for command in commands {
        let output = run_tool(test, "sh", &["-c", &command]).expect("a shell");
        let code = if command.contains("--fail-on") { FINDINGS } else { DONE };
        assert_eq!(output.status.code(), Some(code), "{command}\n{}{}", out(&output), err(&output));
    }
}

#[test]
fn the_workflow_of_github_finds_and_reports() {
    let test = branch_with_finding();
    run_workflow(&test, block_with("github.base_ref"));
    let sarif = std::fs::read_to_string(test.repo().join("revdeck.sarif")).expect("a file");
    assert!(sarif.contains("\"uri\":\"long.py\""), "{sarif}");
    let summary = std::fs::read_to_string(test.home().join("summary.md")).expect("a file");
    assert!(summary.contains("### `long.py`"), "{summary}");
}

#[test]
fn the_workflow_of_gitlab_finds_and_reports() {
    let test = branch_with_finding();
    run_workflow(&test, block_with("CI_MERGE_REQUEST_TARGET_BRANCH_NAME"));
    let report = std::fs::read_to_string(test.repo().join("gl-code-quality-report.json")).expect("a file");
    assert!(report.contains("\"path\":\"long.py\""), "{report}");
    assert!(std::fs::read_to_string(test.repo().join("revdeck.xml")).expect("a file").contains("failures=\"1\""));
}

/// Returns the commands of a step that takes part in a team, in order.
fn team_commands(block: &str) -> Vec<String> {
    let lines = block.lines().map(|line| line.trim().trim_start_matches("- "));
    lines.filter(|line| line.starts_with("revdeck ") || line.starts_with("git ")).map(str::to_owned).collect()
}

/// Runs a script in a job: a clone that is a machine for once.
fn run_in_job(job: &TestEnvironment, team: &Team, script: &str) -> Output {
    let mut command = job.command("sh");
    command.args(["-c", script]).env("PATH", path_with_revdeck()).env("BASE", "HEAD~1").env("CI", "true");
    command.env("TEAM_URL", team.remote()).output().expect("a shell")
}

/// Checks that two jobs have taken part: the second one has used the review of the first.
fn check_jobs(team: &Team, jobs: &[TestEnvironment]) {
    assert_eq!(team.logs(), ["ci"]);
    let runs: Vec<Value> =
        jobs.iter().map(|job| job.json(&["runs", "--format", "json"], DONE)["runs"][0].clone()).collect();
    assert_eq!((&runs[0]["team"], &runs[0]["ci"]), (&Value::Null, &Value::Bool(true)));
    assert_eq!(runs[0]["run_id"], runs[1]["run_id"]);
    assert!(runs[1]["team"]["machine"].as_str().is_some_and(|name| name.starts_with("ci-")), "{}", runs[1]);
}

#[test]
fn the_jobs_of_both_hosts_share_what_they_have_reviewed() {
    for mark in ["users.noreply.github.com", "TEAM_URL"] {
        let team = Team::new();
        let jobs = [team.machine("First"), team.machine("Second")];
        let commands = team_commands(block_with(mark));
        assert!(commands.len() >= 3, "{commands:?}");
        for job in &jobs {
            for command in &commands {
                let output = run_in_job(job, &team, command);
                assert_eq!(output.status.code(), Some(DONE), "{command}\n{}{}", out(&output), err(&output));
            }
        }
        check_jobs(&team, &jobs);
    }
}

#[test]
fn containers_with_a_shallow_clone_share_what_they_have_reviewed() {
    let page = include_str!("../../docs/ci.md");
    let scripts: Vec<&str> = page.split("```sh\n").skip(1).filter_map(|block| block.split("```").next()).collect();
    let scripts: Vec<&str> = scripts.into_iter().filter(|script| script.contains("safe.directory")).collect();
    let [script] = scripts[..] else { panic!("{scripts:?}") };
    let team = Team::new();
    // The first clone makes the commits.
    team.machine("Ada");
    let url = format!("file://{}", team.remote().display());
    let jobs = [TestEnvironment::new(), TestEnvironment::new()];
    for job in &jobs {
        std::fs::remove_dir_all(job.repo()).expect("an empty folder");
        let cloned = Command::new("git").args(["clone", "-q", "--depth", "1", &url]).arg(job.repo()).status();
        assert!(cloned.expect("git starts").success());
        let output = run_in_job(job, &team, script);
        assert_eq!(output.status.code(), Some(DONE), "{}{}", out(&output), err(&output));
        let report = std::fs::read_to_string(job.repo().join("revdeck.xml")).expect("a file");
        assert!(report.contains("<testsuite"), "{report}");
    }
    check_jobs(&team, &jobs);
}

/// Commits a file with a p1 finding, which the hook must refuse, and then one without, which it must let pass.
fn check_hook(test: &TestEnvironment) {
    test.write("long.py", long_function("long"));
    test.git(&["add", "-A"]);
    let refused = run_tool(test, "git", &["commit", "-q", "-m", "long"]).expect("git");
    assert_eq!(refused.status.code(), Some(1), "{}{}", out(&refused), err(&refused));
    let said = format!("{}{}", out(&refused), err(&refused));
    assert!(said.contains("LONG_METHOD"), "{said}");
    test.git(&["rm", "-q", "-f", "long.py"]);
    test.write("short.py", "def short(a):\n    return a\n");
    test.git(&["add", "-A"]);
    let passed = run_tool(test, "git", &["commit", "-q", "-m", "short"]).expect("git");
    assert!(passed.status.success(), "{}{}", out(&passed), err(&passed));
    assert_eq!(test.git(&["log", "-1", "--format=%s"]).trim(), "short");
}

#[test]
#[ignore = "needs programs of others: run .ci/tools/test"]
fn pre_commit_refuses_a_commit_with_an_urgent_finding() {
    let test = TestEnvironment::new();
    test.write(".pre-commit-config.yaml", block_with("pass_filenames"));
    test.commit("configuration");
    let installed = run_tool(&test, "pre-commit", &["install"]).expect("pre-commit is not on the PATH");
    assert!(installed.status.success(), "{}", err(&installed));
    check_hook(&test);
}

#[test]
#[ignore = "needs programs of others: run .ci/tools/test"]
fn lefthook_refuses_a_commit_with_an_urgent_finding() {
    let test = TestEnvironment::new();
    test.write("lefthook.yml", block_with("jobs:\n    - name: revdeck"));
    test.commit("configuration");
    let installed = run_tool(&test, "lefthook", &["install"]).expect("lefthook is not on the PATH");
    assert!(installed.status.success(), "{}{}", out(&installed), err(&installed));
    check_hook(&test);
}

/// Checks a file by a schema that the package `check-jsonschema` ships. Returns the message if it is refused.
fn check_schema(test: &TestEnvironment, schema: &str, name: &str, text: &str) -> Result<(), String> {
    test.write(name, text);
    let arguments = ["--builtin-schema", schema, "--data-transform", "gitlab-ci", name];
    let output = run_tool(test, "check-jsonschema", &arguments).expect("check-jsonschema is not on the PATH");
    match output.status.code() {
        Some(0) => Ok(()),
        Some(1) => Err(format!("{name}: {}", out(&output))),
        _ => panic!("{name}: {}{}", out(&output), err(&output)),
    }
}

/// Returns the settings and steps of a job as a whole workflow.
fn workflow_with(job: &str) -> String {
    let lines: String = job.lines().map(|line| format!("    {line}\n")).collect();
    format!("on: pull_request\njobs:\n  review:\n    runs-on: ubuntu-latest\n{lines}")
}

#[test]
#[ignore = "needs programs of others: run .ci/tools/test"]
fn workflows_are_valid_by_the_published_schemas() {
    const GITHUB: &str = "vendor.github-workflows";
    const GITLAB: &str = "vendor.gitlab-ci";
    let test = TestEnvironment::new();
    let review = block_with("github.base_ref");
    assert_eq!(check_schema(&test, GITHUB, "review.yml", review), Ok(()));
    let comments = workflow_with(block_with("revdeck publish github"));
    assert_eq!(check_schema(&test, GITHUB, "comments.yml", &comments), Ok(()));
    let job = block_with("CI_MERGE_REQUEST_TARGET_BRANCH_NAME");
    let jobs = format!("{job}\n{}\n{}", block_with("revdeck publish gitlab"), block_with("TEAM_URL"));
    assert_eq!(check_schema(&test, GITLAB, "gitlab-ci.yml", &jobs), Ok(()));
    let step = block_with("users.noreply.github.com");
    let with_team = format!("on: pull_request\njobs:\n  review:\n    runs-on: ubuntu-latest\n    steps:\n{step}");
    assert_eq!(check_schema(&test, GITHUB, "team.yml", &with_team), Ok(()));
    // The schemas do refuse.
    for (schema, text, from, to) in [
        (GITHUB, review, "runs-on:", "runs_on:"),
        (GITHUB, comments.as_str(), "contents: write", "contents: wide"),
        (GITLAB, jobs.as_str(), "when: always", "when: sometimes"),
    ] {
        let faulty = text.replace(from, to);
        assert_ne!(faulty, text, "{from}");
        assert!(check_schema(&test, schema, "faulty.yml", &faulty).is_err(), "{to}");
    }
}
