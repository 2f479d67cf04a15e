//! Details within their limits, and nothing secret or misleading in any result.

use std::time::{Duration, Instant};

use revdeck::domain::{FindingId, RunId};

use super::*;

/// Returns a repository with many findings, each with a long quote.
fn with_many_findings(count: usize) -> TestEnvironment {
    let test = TestEnvironment::new();
    for number in 0..count {
        test.write(&format!("part_{number}.py"), long_function(&format!("part_{number}")));
    }
    test.commit("many findings");
    run(&test, &["review", "--wait"], DONE);
    test
}

#[test]
fn details_keep_the_limit_and_name_the_call_for_the_rest() {
    let test = with_many_findings(30);
    let mut client = McpClient::start(&test, &[]);
    let all = client.tool("list_findings", json!({}))["total"].as_u64().expect("a number");
    let mut least = 0;
    for max_bytes in [3_000, 12_000, 64_000] {
        let result = client.call("auto_review_details", json!({ "run_id": "latest", "max_bytes": max_bytes }));
        let details = &result["structuredContent"];
        let size = text(&result["content"][0]["text"]).len();
        assert!(size <= max_bytes && details.to_string().len() <= max_bytes, "{size} of {max_bytes}");
        let shown = details["findings"].as_array().expect("findings").len() as u64;
        assert_eq!(details["findings_left_out"], all - shown, "{max_bytes}");
        assert!(shown > least, "{shown} findings in {max_bytes} bytes");
        least = shown;
    }
    let details = client.tool("auto_review_details", json!({ "run_id": "latest" }));
    assert!(details.to_string().len() <= 12_000);
    let more = text(&details["more"]);
    assert!(more.contains(" left out to stay within 12000 bytes: call auto_review_details with run_id "), "{more}");
    let next = more.split(" or ").last().and_then(|rest| rest.split([' ', ',']).next()).expect("an id").to_owned();
    let word = more.split_whitespace().find(|word| word.parse::<FindingId>().is_ok()).unwrap_or(&next).to_owned();
    let found = client.tool("auto_review_details", json!({ "run_id": details["run"]["run_id"], "finding_id": word }));
    assert_eq!((&found["findings"][0]["finding_id"], &found["more"]), (&json!(word), &Value::Null));
    assert!(text(&found["findings"][0]["quoted_code"]).starts_with("def part_"), "{found}");
}

#[test]
fn a_finding_of_another_run_is_an_error_with_the_right_call() {
    let test = reviewed();
    test.write("late.py", long_function("late"));
    test.commit("one more");
    run(&test, &["review", "--wait"], DONE);
    let mut client = McpClient::start(&test, &[]);
    let listed = client.tool("list_findings", json!({ "path": "long.py" }));
    let (run_id, finding_id) = (text(&listed["findings"][0]["run_id"]), text(&listed["findings"][0]["finding_id"]));
    let said = client.failure("auto_review_details", json!({ "run_id": "latest", "finding_id": finding_id }));
    let expected = format!("hint: call auto_review_details(run_id=\"{run_id}\", finding_id=\"{finding_id}\")");
    assert!(said.ends_with(&expected), "{said}");
}

#[test]
fn a_damaged_output_is_a_failure_or_is_stood_in_for_by_the_journal() {
    let test = reviewed();
    let mut client = McpClient::start(&test, &[]);
    let run_id = text(&client.tool("list_runs", json!({}))["runs"][0]["run_id"]);
    let root = test.store().root().to_owned();
    std::fs::write(root.join("outputs").join(format!("{run_id}.json")), "{\"torn").expect("written");
    let details = client.tool("auto_review_details", json!({ "run_id": run_id }));
    assert_eq!(details["findings"].as_array().map(Vec::len), Some(2), "the journal has them: {details}");
    assert!(text(&details["damage"]).contains("these are the findings of the run's journal"), "{details}");
    std::fs::remove_file(root.join("outputs").join(format!("{run_id}.json"))).expect("there");
    let details = client.tool("auto_review_details", json!({ "run_id": run_id }));
    assert!(text(&details["damage"]).starts_with("the result is missing ("), "{details}");
    std::fs::remove_file(root.join("events").join(format!("{run_id}.jsonl"))).expect("there");
    for tool in ["auto_review_details", "list_findings"] {
        let said = client.failure(tool, json!({ "run_id": run_id }));
        assert!(said.contains(" is missing: ") && said.contains("`revdeck review --force`"), "{tool}: {said}");
    }
    std::fs::remove_file(root.join("runs.ndjson")).expect("there");
    std::fs::create_dir(root.join("runs.ndjson")).expect("a folder in the way");
    let said = client.failure("auto_review_details", json!({ "run_id": run_id }));
    assert!(said.contains("runs.ndjson") && said.contains("\nhint: "), "{said}");
}

#[test]
fn secrets_and_control_characters_stay_here() {
    let test = TestEnvironment::new();
    let key = ["ghp", "_16C7e42F292c6912E7710c838347Ae178B4a"].concat();
    test.write(&format!("{key}/long.py"), long_function("long"));
    test.write("bell\u{7}\u{1b}[2J\u{202e}.py", long_function("other"));
    test.write("keys.py", format!("TOKEN = \"{key}\"\n\n\n{}", long_function("keys")));
    test.git(&["checkout", "-q", "-b", &format!("branch-{key}")]);
    test.commit("hostile names");
    run(&test, &["review", "--wait"], DONE);
    let mut client = McpClient::start(&test, &[]);
    let run_id: RunId = text(&client.tool("list_runs", json!({}))["runs"][0]["run_id"]).parse().expect("an id");
    let mut told = Vec::new();
    for (name, arguments) in [
        ("auto_review_ledger", json!({})),
        ("auto_review_details", json!({ "run_id": run_id, "max_bytes": 64_000 })),
        ("list_findings", json!({})),
        ("list_runs", json!({})),
        ("review_status", json!({})),
    ] {
        told.push(client.call(name, arguments));
    }
    told.push(client.request("resources/list", json!({})));
    for uri in ["revdeck://ledger", "revdeck://runs", "revdeck://findings", &format!("revdeck://runs/{run_id}")] {
        told.push(client.request("resources/read", json!({ "uri": uri })));
    }
    told.push(client.request("prompts/get", json!({ "name": "work_through_findings" })));
    let mut strings = 0;
    for message in &told {
        each_string(message, &mut |text| {
            strings += 1;
            assert!(!text.contains(&key) && !text.contains("16C7e42F"), "{text}");
            let unsafe_character = |c: char| (c.is_control() && !matches!(c, '\n' | '\t')) || c == '\u{202e}';
            assert!(!text.contains(unsafe_character), "{text:?}");
        });
    }
    assert!(strings > 200, "{strings} strings");
    assert!(told[2].to_string().contains("«secret:github_token»/long.py"), "{}", told[2]);
}

#[test]
fn a_run_of_thousands_of_findings_is_read_once() {
    let test = TestEnvironment::new();
    test.write("a.py", (0..3_000).map(|line| format!("value_{line} = {line}\n")).collect::<String>());
    test.commit("first");
    let results: Vec<Value> = (1..=3_000)
        .map(|line| {
            let place = json!({ "artifactLocation": { "uri": "a.py" }, "region": { "startLine": line } });
            let message = json!({ "text": format!("problem {line}") });
            json!({ "ruleId": "R1", "level": "error", "message": message, "locations": [{ "physicalLocation": place }] })
        })
        .collect();
    let log = json!({ "version": "2.1.0", "runs": [{ "tool": { "driver": { "name": "lint" } }, "results": results }] });
    let report = test.home().join("report.sarif");
    std::fs::create_dir_all(test.home()).expect("a folder");
    std::fs::write(&report, log.to_string()).expect("a file");
    run(&test, &["import", "sarif", report.to_str().expect("text")], DONE);
    let mut client = McpClient::start(&test, &[]);
    let begun = Instant::now();
    let details = client.tool("auto_review_details", json!({ "run_id": "latest" }));
    let shown = details["findings"].as_array().expect("findings").len() as u64;
    assert_eq!(details["findings_left_out"], 3_000 - shown);
    assert!(shown > 5, "{shown} findings");
    let lines: Vec<u64> = details["findings"]
        .as_array()
        .expect("findings")
        .iter()
        .filter_map(|finding| finding["line_start"].as_u64())
        .collect();
    assert_eq!(lines, (1..=shown).collect::<Vec<_>>());
    let run_id = text(&details["run"]["run_id"]);
    let read = client.request("resources/read", json!({ "uri": format!("revdeck://runs/{run_id}") }));
    assert!(text(&read["contents"][0]["text"]).contains("problem 1"), "{read}");
    // Reading the run again for each finding takes minutes.
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

fn each_string(value: &Value, check: &mut dyn FnMut(&str)) {
    match value {
        Value::String(text) => check(text),
        Value::Array(items) => items.iter().for_each(|item| each_string(item, check)),
        Value::Object(fields) => fields.iter().for_each(|(key, value)| {
            check(key);
            each_string(value, check);
        }),
        _ => {}
    }
}
