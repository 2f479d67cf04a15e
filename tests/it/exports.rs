//! Findings in the formats of other programs: the real binary, the published schema, dismissed findings, incomplete
//! reviews.

use insta::{allow_duplicates, assert_snapshot};
use rstest::rstest;
use serde_json::{Value, json};

use crate::env::{DONE, INCOMPLETE, TestEnvironment, USAGE, lines_with, long_function, run};

/// Formats that other programs read.
const FORMATS: [&str; 6] = ["sarif", "github", "rdjsonl", "gitlab", "junit", "quickfix"];

/// Formats that people and coding agents read.
const READABLE: [&str; 3] = ["text", "markdown", "prompt"];

/// Reviews a commit with two long functions, and returns the repository.
fn reviewed() -> TestEnvironment {
    let test = TestEnvironment::new();
    test.write("src/a b.py", long_function("first"));
    test.write("src/c.py", long_function("second"));
    test.commit("two findings");
    run(&test, &["review", "--wait"], DONE);
    test
}

fn finding_in(test: &TestEnvironment, path: &str) -> String {
    let value = test.json(&["findings", "--path", path, "--format", "json"], DONE);
    value["findings"][0]["finding_id"].as_str().expect("an id").to_owned()
}

#[track_caller]
fn sarif(test: &TestEnvironment, arguments: &[&str], code: i32) -> Value {
    let text = run(test, &[arguments, &["--format", "sarif"]].concat(), code);
    let log: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let schema: Value = serde_json::from_str(include_str!("schemas/sarif-2.1.0.json")).expect("JSON");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let faults: Vec<String> = validator.iter_errors(&log).map(|fault| fault.to_string()).collect();
    assert_eq!(faults, [""; 0], "{log}");
    log
}

fn results(log: &Value) -> &Vec<Value> {
    log["runs"][0]["results"].as_array().expect("results")
}

#[test]
fn sarif_is_valid_by_the_published_schema_and_keeps_its_fingerprints() {
    let test = reviewed();
    let first = sarif(&test, &["findings"], DONE);
    assert_eq!(results(&first).len(), 2);
    let place = &results(&first)[0]["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"], json!({ "uri": "src/a%20b.py", "uriBaseId": "%SRCROOT%" }));
    assert_eq!(first["runs"][0]["invocations"][0]["executionSuccessful"], true);
    assert_eq!(first["runs"][0]["tool"]["driver"]["rules"][0]["id"], "LONG_METHOD");
    let fingerprints = |log: &Value| -> Vec<Value> {
        results(log).iter().map(|result| result["partialFingerprints"]["revdeckFindingId/v1"].clone()).collect()
    };
    assert_eq!(fingerprints(&first)[0], finding_in(&test, "src/a b.py"));

    // The same code further down is the same alert.
    test.write("src/a b.py", format!("# moved\n\n{}", long_function("first")));
    test.commit("moved");
    run(&test, &["review", "--wait"], DONE);
    let moved = sarif(&test, &["findings"], DONE);
    assert_eq!(fingerprints(&moved), fingerprints(&first));
    assert_eq!(results(&moved)[0]["locations"][0]["physicalLocation"]["region"]["startLine"], 3);
}

/// Reviews a commit with a finding that has an exact suggestion, and returns the repository.
fn suggested() -> TestEnvironment {
    let test = TestEnvironment::new();
    test.write("src/d.py", "import sys\n\n\ndef join(part, items=[]):\n    return items + [part, sys.path]\n");
    test.write("src/e.py", long_function("long"));
    test.commit("findings");
    run(&test, &["review", "--wait"], DONE);
    test
}

#[test]
fn sarif_has_regions_fixes_and_rules_with_help() {
    let test = suggested();
    let log = sarif(&test, &["findings"], DONE);
    let rules = log["runs"][0]["tool"]["driver"]["rules"].as_array().expect("rules");
    assert_eq!(rules.len(), 2, "{log}");
    for rule in rules {
        assert!(rule["help"]["text"].as_str().is_some_and(|text| text.len() > 40), "{rule}");
        assert!(rule["shortDescription"]["text"].is_string() && rule["defaultConfiguration"].is_object(), "{rule}");
    }
    for result in results(&log) {
        let index = usize::try_from(result["ruleIndex"].as_u64().expect("an index")).expect("small");
        assert_eq!(rules[index]["id"], result["ruleId"], "{result}");
        assert!(result["locations"][0]["physicalLocation"]["region"]["snippet"]["text"].is_string(), "{result}");
    }
    let fixed: Vec<&Value> = results(&log).iter().filter(|result| result["fixes"] != Value::Null).collect();
    assert_eq!(fixed.len(), 1, "{log}");
    let change = &fixed[0]["fixes"][0]["artifactChanges"][0];
    assert_eq!(change["artifactLocation"]["uri"], "src/d.py");
    let inserted = change["replacements"][0]["insertedContent"]["text"].as_str().expect("a text");
    assert!(
        inserted.starts_with("def join(part, items=None):\n    if items is None:\n        items = []"),
        "{inserted}"
    );
    assert_eq!(change["replacements"][0]["deletedRegion"]["startLine"], 4);
}

#[test]
fn diagnostics_for_reviewdog_are_valid_by_its_schema() {
    let test = suggested();
    let schema: Value = serde_json::from_str(include_str!("schemas/rdf-diagnostic.json")).expect("JSON");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let named = schema["definitions"]["Diagnostic"]["properties"].as_object().expect("properties");
    let text = run(&test, &["findings", "--format", "rdjsonl"], DONE);
    let mut suggestions = 0;
    for line in text.lines() {
        let diagnostic: Value = serde_json::from_str(line).expect("one object on a line");
        let faults: Vec<String> = validator.iter_errors(&diagnostic).map(|fault| fault.to_string()).collect();
        assert_eq!(faults, [""; 0], "{line}");
        // The schema allows unknown names, so a misspelt one would pass.
        assert!(diagnostic.as_object().expect("an object").keys().all(|name| named.contains_key(name)), "{line}");
        suggestions += diagnostic["suggestions"].as_array().map_or(0, Vec::len);
    }
    assert_eq!((text.lines().count(), suggestions), (2, 1), "{text}");
}

#[test]
fn a_dismissed_finding_is_suppressed_with_its_reason_and_absent_elsewhere() {
    let test = reviewed();
    let id = finding_in(&test, "src/c.py");
    run(&test, &["triage", &id, "dismissed", "--reason", "it is a table"], DONE);
    let log = sarif(&test, &["findings", "--status", "all"], DONE);
    let suppressed = results(&log).iter().find(|result| result["suppressions"] != Value::Null).expect("one");
    assert_eq!(suppressed["partialFingerprints"]["revdeckFindingId/v1"], id);
    assert_eq!(suppressed["suppressions"][0]["justification"], "it is a table");
    let log = sarif(&test, &["show", "latest"], DONE);
    assert_eq!(results(&log).iter().filter(|result| result["suppressions"] != Value::Null).count(), 1);
    for format in &FORMATS[1..] {
        let text = run(&test, &["show", "latest", "--format", format], DONE);
        assert!(!text.contains(&id), "{format}: {text}");
    }
    // A later review does not raise it, and says why.
    let log = sarif(&test, &["review", "--wait", "--force"], DONE);
    let suppressed = results(&log).iter().find(|result| result["suppressions"] != Value::Null).expect("one");
    let reason = suppressed["suppressions"][0]["justification"].as_str().expect("a reason");
    assert!(reason.ends_with("because it is a table"), "{reason}");
}

#[rstest]
#[case::wait(&["review", "--wait"], INCOMPLETE)]
#[case::run(&["show", "latest"], DONE)]
#[case::findings(&["findings"], DONE)]
#[case::findings_of_the_run(&["findings", "--run", "latest"], DONE)]
fn an_incomplete_review_is_never_clean(#[case] command: &[&str], #[case] code: i32) {
    let test = TestEnvironment::new();
    test.write("src/pay.py", "def pay(amount):\n    return amount\n");
    test.commit("base");
    // From now on the file is hidden from reviews.
    test.write(".gitattributes", "/src/pay.py linguist-generated\n");
    run(&test, &["review", "--wait"], INCOMPLETE);
    for format in FORMATS.into_iter().chain(READABLE) {
        let text = run(&test, &[command, &["--format", format]].concat(), code);
        let says = if format == "sarif" { "\"executionSuccessful\":false" } else { "incomplete" };
        assert!(text.contains(says), "{command:?} {format}: {text}");
        assert!(text.contains("1 file"), "{command:?} {format} names no gap: {text}");
    }
    sarif(&test, command, code);
}

#[test]
fn a_repository_without_reviews_is_not_clean_either() {
    let test = TestEnvironment::new();
    test.write("a.py", "print(1)\n");
    test.commit("first");
    let log = sarif(&test, &["findings"], DONE);
    assert_snapshot!(log["runs"][0]["invocations"], @r#"[{"executionSuccessful":false,"toolExecutionNotifications":[{"level":"error","message":{"text":"The review is incomplete: nothing has been reviewed in this worktree"}}]}]"#);
    let texts = FORMATS[1..].iter().map(|format| test.output(&["findings", "--format", format], DONE));
    assert_snapshot!(texts.collect::<String>(), @r#"
    ::error title=revdeck%3A the review is incomplete::nothing has been reviewed in this worktree
    {"message":"The review is incomplete: nothing has been reviewed in this worktree","location":{"path":"."},"severity":"ERROR","source":{"name":"revdeck"},"code":{"value":"INCOMPLETE_REVIEW"}}
    [{"description":"The review is incomplete: nothing has been reviewed in this worktree","check_name":"INCOMPLETE_REVIEW","fingerprint":"[hash]","severity":"blocker","location":{"path":".","lines":{"begin":1,"end":1}}}]
    <?xml version="1.0" encoding="UTF-8"?>
    <testsuites name="revdeck" tests="1" failures="0" errors="1">
      <testsuite name="review" tests="1" failures="0" errors="1">
        <testcase classname="revdeck" name="the review is complete">
          <error message="nothing has been reviewed in this worktree" type="incomplete">nothing has been reviewed in this worktree</error>
        </testcase>
      </testsuite>
    </testsuites>
    .:1:1: error: the review is incomplete: nothing has been reviewed in this worktree
    "#);
    let texts = READABLE.iter().map(|format| test.output(&["findings", "--format", format], DONE));
    assert_snapshot!(texts.collect::<String>(), @"
    no findings
    the review is incomplete: nothing has been reviewed in this worktree
    **The review is incomplete: nothing has been reviewed in this worktree**

    The review is incomplete: nothing has been reviewed in this worktree. Code without a finding may not have been reviewed.
    ");
    let value = test.json(&["findings", "--format", "json"], DONE);
    assert_eq!(value["incomplete"], "nothing has been reviewed in this worktree");
    run(&test, &["review", "--wait"], DONE);
    assert_eq!(test.json(&["findings", "--format", "json"], DONE)["incomplete"], Value::Null);
    assert_eq!(run(&test, &["findings", "--format", "gitlab"], DONE), "[]\n");
    for (format, expected) in [("github", ""), ("prompt", ""), ("text", "no findings\n")] {
        assert_eq!(run(&test, &["findings", "--format", format], DONE), expected, "{format}");
    }
}

/// Reads a list with the default `errorformat` of Vim. Returns path, line, column and text of each entry, and `None` where
/// there is no Vim that can.
fn read_with_vim(test: &TestEnvironment, quickfix: &str) -> Option<Vec<(String, u64, u64, String)>> {
    let version = test.command("vim").arg("--version").output().ok()?;
    let version = String::from_utf8_lossy(&version.stdout).into_owned();
    if !["+quickfix", "+eval"].iter().all(|feature| version.contains(feature)) {
        return None;
    }
    let folder = test.home().parent().expect("a folder").to_owned();
    let (list, read) = (folder.join("list.txt"), folder.join("read.json"));
    std::fs::write(&list, quickfix).expect("written");
    let entries = "map(getqflist(), '[v:val.valid ? bufname(v:val.bufnr) : \"\", v:val.lnum, v:val.col, v:val.text]')";
    let mut vim = test.command("vim");
    vim.args(["-Nu", "NONE", "-es"]).stdin(std::process::Stdio::null());
    vim.args(["-c", &format!("cgetfile {}", list.display())]);
    vim.args(["-c", &format!("call writefile([json_encode({entries})], '{}')", read.display())]);
    vim.args(["-c", "qa!"]).output().expect("vim ends");
    let read = std::fs::read_to_string(read).expect("vim has written the list");
    let entries: Vec<(String, u64, u64, String)> = serde_json::from_str(&read).expect("a list");
    Some(entries)
}

#[test]
#[allow(clippy::print_stderr, reason = "says why nothing was tested")]
fn vim_reads_the_quickfix_list() {
    let test = reviewed();
    let quickfix = run(&test, &["findings", "--format", "quickfix"], DONE);
    let Some(entries) = read_with_vim(&test, &quickfix) else {
        eprintln!("skipped: there is no vim with +quickfix and +eval");
        return;
    };
    let found = test.json(&["findings", "--format", "json"], DONE);
    let expected: Vec<(String, u64, u64)> = found["findings"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|it| {
            (it["repo_relative_path"].as_str().expect("a path").to_owned(), it["line_start"].as_u64().expect("it"), 1)
        })
        .collect();
    let places: Vec<(String, u64, u64)> =
        entries.iter().map(|(path, line, column, _)| (path.clone(), *line, *column)).collect();
    assert!(!expected.is_empty() && expected.iter().any(|(path, ..)| path.contains(' ')), "{expected:?}");
    assert_eq!(places, expected, "{quickfix}");
    for (entry, finding) in entries.iter().zip(found["findings"].as_array().expect("a list")) {
        let (title, id) = (finding["title"].as_str().expect("text"), finding["finding_id"].as_str().expect("text"));
        assert!(entry.3.contains(title) && entry.3.contains(id), "{entry:?}");
    }
}

#[test]
fn smells_and_single_findings_have_the_formats_too() {
    let test = reviewed();
    let id = finding_in(&test, "src/c.py");
    let log = sarif(&test, &["smells", "src"], DONE);
    assert_eq!(results(&log).len(), 2);
    let one = sarif(&test, &["show", &id], DONE);
    assert_eq!(results(&one)[0]["partialFingerprints"]["revdeckFindingId/v1"], id);
    assert_snapshot!(test.output(&["show", &id, "--format", "quickfix"], DONE), @"src/c.py:1:1: error: Function `second` is 202 code lines long [LONG_METHOD f_[id]]");
    let markdown = test.output(&["smells", "src", "--format", "markdown"], DONE);
    assert_snapshot!(lines_with(&markdown, |line| line.starts_with('#')), @"
    ### `src/a b.py`
    ### `src/c.py`
    ");
}

#[test]
fn formats_of_findings_need_findings() {
    let test = reviewed();
    for format in FORMATS {
        let error = test.fails(&["review", "--format", format], USAGE).replace(format, "[format]");
        allow_duplicates!(assert_snapshot!(error, @"
        error: --format [format] needs --wait: without it there are no findings yet
          hint: `revdeck show latest --format [format]` prints them when the review has ended
        "));
    }
}

#[test]
fn a_secret_in_the_name_of_a_file_is_masked_for_people_and_exact_in_json() {
    let key = ["AKIA", "Q7RT2YPZ", "LK4WN6ZC"].concat();
    let test = TestEnvironment::new();
    let path = format!("src/{key}.py");
    test.write(&path, long_function("first"));
    test.commit("a key");
    run(&test, &["review", "--wait"], DONE);
    let listed = test.json(&["findings", "--format", "json"], DONE);
    assert_eq!(listed["findings"][0]["repo_relative_path"], path, "a script opens the file");
    let id = listed["findings"][0]["finding_id"].as_str().expect("an id").to_owned();
    for command in [
        &["findings"][..],
        &["findings", "--color", "always"],
        &["findings", "--format", "markdown"],
        &["findings", "--format", "prompt"],
        &["show", "latest"],
        &["show", "latest", "--format", "markdown"],
        &["show", &id],
        &["details", "latest"],
        &["details", &id],
        &["review", "--wait"],
        &["smells", "src"],
    ] {
        let text = run(&test, command, DONE);
        assert!(!text.contains(&key), "{command:?}: {text}");
        assert!(text.contains("«secret:aws_access_key».py"), "{command:?}: {text}");
    }
    let one = run(&test, &["show", &id, "--format", "markdown"], DONE);
    assert!(!one.contains(&key), "{one}");
}
