//! What a client sees first: the server, its tools, prompts and reading results.

use insta::assert_snapshot;

use super::*;

#[test]
fn the_server_introduces_itself() {
    let test = reviewed();
    let mut client = McpClient::spawn(McpClient::command(&test, &[]));
    let told = client.initialize();
    assert_eq!(told["protocolVersion"], "2025-06-18");
    assert_eq!(told["serverInfo"]["name"], "revdeck");
    assert_eq!(told["capabilities"]["resources"], json!({ "subscribe": true, "listChanged": true }));
    for part in ["tools", "prompts"] {
        assert!(told["capabilities"][part].is_object(), "{told}");
    }
    assert!(text(&told["instructions"]).contains("You claim and ask; the user decides"), "{told}");
}

#[test]
fn a_client_of_the_newest_protocol_needs_no_session() {
    let test = reviewed();
    let mut client = McpClient::spawn(McpClient::command(&test, &[]));
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "newest", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let found = client.request("server/discover", json!({ "_meta": meta }));
    assert!(found["supportedVersions"].as_array().is_some_and(|all| all.contains(&json!("2026-07-28"))), "{found}");
    let called = client.request("tools/call", json!({ "name": "review_status", "arguments": {}, "_meta": meta }));
    assert_eq!(called["structuredContent"]["undecided"]["total"], 2, "{called}");
}

#[test]
fn each_tool_has_schemas_and_says_what_it_does_to_the_world() {
    let test = reviewed();
    let mut client = McpClient::start(&test, &[]);
    let listed = client.request("tools/list", json!({}));
    let mut table = String::new();
    for tool in listed["tools"].as_array().expect("tools") {
        let hints = &tool["annotations"];
        let hint = |name: &'static str| if hints[name] == true { name.trim_end_matches("Hint") } else { "-" };
        let properties = tool["inputSchema"]["properties"].as_object().expect("properties");
        let required = tool["inputSchema"]["required"].as_array().cloned().unwrap_or_default();
        let mut names: Vec<&String> = properties.keys().collect();
        names.sort();
        let arguments: Vec<String> = names
            .into_iter()
            .map(|name| if required.contains(&json!(name)) { name.clone() } else { format!("[{name}]") })
            .collect();
        table += &format!(
            "{}({}) {} {} {} {}\n",
            text(&tool["name"]),
            arguments.join(", "),
            hint("readOnlyHint"),
            hint("destructiveHint"),
            hint("idempotentHint"),
            hint("openWorldHint")
        );
        assert!(text(&tool["description"]).len() > 80, "{tool}");
        assert!(!tool.to_string().contains("\"format\""), "no format that JSON Schema does not know: {tool}");
        // Some clients convert what a user types by the name of the type.
        let is_plain = |property: &Value| property["type"].is_string() && property.get("default") != Some(&Value::Null);
        assert!(properties.values().all(is_plain), "{}", tool["inputSchema"]);
        assert_eq!((&tool["inputSchema"]["type"], &tool["outputSchema"]["type"]), (&json!("object"), &json!("object")));
    }
    assert_snapshot!(table, @"
    auto_review_ledger() readOnly - idempotent -
    auto_review_details([finding_id], [max_bytes], run_id) readOnly - idempotent -
    list_findings([kind], [limit], [offset], [path], [priority], [run_id], [status]) readOnly - idempotent -
    list_runs([limit], [offset], [status]) readOnly - idempotent -
    review_status() readOnly - idempotent -
    request_review([scope], [wait_seconds]) - - idempotent openWorld
    claim_addressed(finding_id, note) - - idempotent -
    dispute(finding_id, reason) - - idempotent -
    request_cancel(reason, run_id) - destructive idempotent -
    ");
}

#[test]
fn a_reading_server_offers_no_requests_and_writes_nothing() {
    let test = reviewed();
    let mut client = McpClient::start(&test, &["--read-only"]);
    let listed = client.request("tools/list", json!({}));
    let names: Vec<String> =
        listed["tools"].as_array().expect("tools").iter().map(|tool| text(&tool["name"])).collect();
    assert_eq!(names, ["auto_review_ledger", "auto_review_details", "list_findings", "list_runs", "review_status"]);
    assert_eq!(client.tool("review_status", json!({}))["read_only"], true);
    let id = finding_ids(&mut client).remove(0);
    for (name, arguments) in [
        ("request_review", json!({})),
        ("claim_addressed", json!({ "finding_id": id, "note": "done" })),
        ("dispute", json!({ "finding_id": id, "reason": "wrong" })),
        ("request_cancel", json!({ "run_id": "latest", "reason": "late" })),
    ] {
        let said = client.failure(name, arguments);
        assert!(said.starts_with(&format!("{name} is not available: this server only reads\nhint: ")), "{said}");
    }
    assert!(text(&client.tool("auto_review_ledger", json!({}))["ledger"]).contains(&id));
    assert_eq!(test.store().ledger_deliveries().expect("readable"), []);
    assert_eq!(finding_ids(&mut client).len(), 2);
}

#[test]
fn the_ledger_names_a_call_that_works_and_is_recorded() {
    let test = reviewed();
    let mut client = McpClient::start(&test, &[]);
    let told = client.call("auto_review_ledger", json!({}));
    let ledger = text(&told["structuredContent"]["ledger"]);
    assert_eq!(text(&told["content"][0]["text"]), ledger);
    assert!(ledger.contains("auto_review_details"), "{ledger}");
    let named = told["structuredContent"]["finding_ids"].as_array().expect("ids").clone();
    assert_eq!(named.len(), 1, "{told}");
    let listed = client.tool("list_findings", json!({ "priority": "p1" }));
    let first = &listed["findings"][0];
    assert_eq!(first["finding_id"], named[0]);
    let details =
        client.tool("auto_review_details", json!({ "run_id": first["run_id"], "finding_id": first["finding_id"] }));
    assert_eq!(details["findings"][0]["repo_relative_path"], "long.py");
    let delivered = test.store().ledger_deliveries().expect("readable");
    assert_eq!(delivered.len(), 1);
    assert_eq!(delivered[0].findings.iter().map(ToString::to_string).collect::<Vec<_>>(), [text(&named[0])]);
    // Whoever asks gets all of it again.
    let again = client.tool("auto_review_ledger", json!({}));
    assert_eq!(again["finding_ids"], told["structuredContent"]["finding_ids"]);
}

#[test]
fn an_argument_that_is_null_is_as_one_left_out() {
    let test = reviewed();
    let mut client = McpClient::start(&test, &[]);
    let nulls = json!({ "priority": null, "path": null, "run_id": null, "limit": null });
    assert_eq!(client.tool("list_findings", nulls), client.tool("list_findings", json!({})));
}

#[test]
fn lists_are_filtered_and_come_in_pages() {
    let test = reviewed();
    let mut client = McpClient::start(&test, &[]);
    let all = client.tool("list_findings", json!({}));
    let paths = |value: &Value| -> Vec<String> {
        value["findings"].as_array().expect("findings").iter().map(|row| text(&row["repo_relative_path"])).collect()
    };
    assert_eq!((paths(&all), &all["total"]), (vec!["long.py".to_owned(), "wide.py".to_owned()], &json!(2)));
    for (arguments, expected) in [
        (json!({ "priority": "p1" }), vec!["long.py"]),
        (json!({ "path": "wide.py" }), vec!["wide.py"]),
        (json!({ "kind": ["long-method"] }), vec!["long.py"]),
        (json!({ "status": ["dismissed"] }), vec![]),
        (json!({ "run_id": "latest", "status": ["all"] }), vec!["long.py", "wide.py"]),
        (json!({ "offset": 1 }), vec!["wide.py"]),
        (json!({ "offset": 9 }), vec![]),
    ] {
        assert_eq!(paths(&client.tool("list_findings", arguments.clone())), expected, "{arguments}");
    }
    let first = client.tool("list_findings", json!({ "limit": 1 }));
    assert_eq!((paths(&first), &first["next_offset"]), (vec!["long.py".to_owned()], &json!(1)));
    run(&test, &["review", "--all", "--wait"], DONE);
    let runs = client.tool("list_runs", json!({ "limit": 1 }));
    assert_eq!(
        (&runs["total"], &runs["next_offset"], &runs["runs"][0]["scope"]),
        (&json!(2), &json!(1), &json!("all"))
    );
    let older = client.tool("list_runs", json!({ "offset": 1, "status": ["completed"] }));
    assert_eq!((older["runs"].as_array().map(Vec::len), &older["next_offset"]), (Some(1), &Value::Null));
}

#[test]
fn the_status_says_what_is_under_way_and_what_waits() {
    let test = reviewed();
    let mut client = McpClient::start(&test, &[]);
    let status = client.tool("review_status", json!({}));
    assert_eq!(status["undecided"], json!({ "p0": 0, "p1": 1, "p2": 0, "p3": 1, "total": 2 }));
    assert_eq!(
        (&status["branch"], &status["watching"], &status["active"]),
        (&json!("main"), &json!(false), &json!([]))
    );
    assert_eq!(status["latest"]["status"], "completed");
    assert_eq!(status["summary"], "no review is under way; 2 findings undecided (0 p0, 1 p1, 0 p2, 1 p3)");
}

#[test]
fn the_prompt_leads_through_the_findings() {
    let test = reviewed();
    let mut client = McpClient::start(&test, &[]);
    let listed = client.request("prompts/list", json!({}));
    assert_eq!(listed["prompts"][0]["name"], "work_through_findings");
    let get = |client: &mut McpClient, arguments: Value| {
        let got = client.request("prompts/get", json!({ "name": "work_through_findings", "arguments": arguments }));
        text(&got["messages"][0]["content"]["text"])
    };
    let prompt = get(&mut client, json!({}));
    let urgent = finding_ids(&mut client).remove(0);
    assert!(prompt.contains("left 2 findings that nobody has decided about"), "{prompt}");
    assert!(prompt.contains(&urgent) && prompt.contains("- p1 long.py:1 "), "{prompt}");
    assert!(get(&mut client, json!({ "priority": "p1" })).contains("left 1 finding "));
    assert!(get(&mut client, json!({ "path": "no-such-folder" })).starts_with("No finding of a code review waits"));
    let refused =
        client.refused("prompts/get", json!({ "name": "work_through_findings", "arguments": { "priority": "p9" } }));
    assert_eq!(refused, "priority: \"p9\" is not a priority; write p0, p1, p2 or p3");
    let refused = client.refused("prompts/get", json!({ "name": "other" }));
    assert_eq!(refused, "there is no prompt \"other\"; there is work_through_findings");
}

#[test]
fn a_reading_server_names_no_tool_that_it_refuses() {
    let test = reviewed();
    for (mode, may_request) in [(&["--read-only"][..], false), (&[][..], true)] {
        let mut client = McpClient::spawn(McpClient::command(&test, mode));
        let instructions = text(&client.initialize()["instructions"]);
        let got = client.request("prompts/get", json!({ "name": "work_through_findings" }));
        let prompt = text(&got["messages"][0]["content"]["text"]);
        for tool in ["claim_addressed", "dispute", "request_review"] {
            assert_eq!(prompt.contains(tool), may_request, "{tool} in {prompt}");
        }
        assert_eq!(instructions.contains("call claim_addressed"), may_request, "{instructions}");
        assert_eq!(instructions.contains("call dispute"), may_request, "{instructions}");
        assert_eq!(instructions.contains("This server only reads"), !may_request, "{instructions}");
        let listed = client.request("prompts/list", json!({}));
        assert_eq!(text(&listed["prompts"][0]["description"]).contains("dispute"), may_request, "{listed}");
    }
}

#[test]
fn a_path_below_the_root_is_understood_in_every_form_and_others_are_refused() {
    let test = reviewed();
    let mut client = McpClient::start(&test, &[]);
    for (path, count) in
        [(".", "2 findings"), ("./long.py", "1 finding"), ("./", "2 findings"), ("long.py", "1 finding")]
    {
        let parameters = json!({ "name": "work_through_findings", "arguments": { "path": path } });
        let got = client.request("prompts/get", parameters);
        let prompt = text(&got["messages"][0]["content"]["text"]);
        assert!(prompt.contains(&format!(" left {count} ")), "{path}: {prompt}");
    }
    let refusal = "path: \"/\" is no path below the root of the repository\nhint: write it relative to the root, such as \
                   src or src/main.rs; `.` is the whole repository";
    let parameters = json!({ "name": "work_through_findings", "arguments": { "path": "/" } });
    assert_eq!(client.refused("prompts/get", parameters), refusal);
    assert_eq!(client.failure("list_findings", json!({ "path": "/" })), refusal);
}
