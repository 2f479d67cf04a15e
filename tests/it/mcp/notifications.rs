//! Resources and the notifications about their changes.

use super::*;

fn uris(listed: &Value) -> Vec<String> {
    listed["resources"].as_array().expect("resources").iter().map(|resource| text(&resource["uri"])).collect()
}

fn is_update(uri: &str) -> impl Fn(&Value) -> bool {
    let uri = uri.to_owned();
    move |message| message["method"] == "notifications/resources/updated" && message["params"]["uri"] == uri
}

#[test]
fn ledger_runs_and_findings_are_resources() {
    let test = reviewed();
    let mut client = McpClient::start(&test, &[]);
    let ids = finding_ids(&mut client);
    let run_id = text(&client.tool("list_runs", json!({}))["runs"][0]["run_id"]);
    let listed = client.request("resources/list", json!({}));
    let expected = [
        "revdeck://ledger".to_owned(),
        "revdeck://runs".to_owned(),
        "revdeck://findings".to_owned(),
        format!("revdeck://runs/{run_id}"),
        format!("revdeck://findings/{}", ids[0]),
        format!("revdeck://findings/{}", ids[1]),
    ];
    assert_eq!(uris(&listed), expected);
    let title = text(&listed["resources"][4]["title"]);
    assert!(title.starts_with("p1 long.py:1 "), "{title}");
    let templates = client.request("resources/templates/list", json!({}));
    let templates = templates["resourceTemplates"].as_array().expect("templates").clone();
    let templates: Vec<String> = templates.iter().map(|template| text(&template["uriTemplate"])).collect();
    assert_eq!(templates, ["revdeck://runs/{run_id}", "revdeck://findings/{finding_id}"]);
    for uri in &expected {
        let read = client.request("resources/read", json!({ "uri": uri }));
        assert_eq!(read["contents"][0]["uri"], *uri);
        let content = text(&read["contents"][0]["text"]);
        if uri.as_str() == "revdeck://ledger" {
            assert!(content.starts_with("<auto_review_ledger "), "{content}");
        } else {
            let value: Value = serde_json::from_str(&content).expect("JSON");
            assert!(value.is_object(), "{uri}: {content}");
        }
    }
    // A user who looks at a resource is no assistant that was told.
    assert_eq!(test.store().ledger_deliveries().expect("readable"), []);
    for (uri, message) in [
        ("file:///etc/passwd", "\"file:///etc/passwd\" is no resource; there are revdeck://ledger,"),
        ("revdeck://findings/f_0000000000000000", "there is no finding f_0000000000000000 in this repository"),
    ] {
        let said = client.refused("resources/read", json!({ "uri": uri }));
        assert!(said.starts_with(message), "{said}");
    }
}

#[test]
fn changes_of_the_store_are_told_to_who_asked() {
    let test = reviewed();
    let mut client = McpClient::start(&test, &[]);
    let ids = finding_ids(&mut client);
    let (one, other) = (format!("revdeck://findings/{}", ids[0]), format!("revdeck://findings/{}", ids[1]));
    for uri in [one.as_str(), "revdeck://ledger"] {
        client.request("resources/subscribe", json!({ "uri": uri }));
    }
    run(&test, &["triage", &ids[0], "dismissed", "--reason", "intended"], DONE);
    client.notification("the finding", is_update(&one));
    client.notification("the ledger", is_update("revdeck://ledger"));
    client.notification("the list", |message| message["method"] == "notifications/resources/list_changed");
    client.request("resources/unsubscribe", json!({ "uri": one }));
    run(&test, &["triage", &ids[0], "open"], DONE);
    client.notification("the ledger", is_update("revdeck://ledger"));
    let others = client.notifications.iter().filter(|message| is_update(&one)(message) || is_update(&other)(message));
    assert_eq!(others.count(), 0, "{:?}", client.notifications);
}

#[test]
fn a_client_of_the_newest_protocol_listens() {
    let test = reviewed();
    let mut client = McpClient::spawn(McpClient::command(&test, &[]));
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "newest", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let filter = json!({
        "resourcesListChanged": true,
        "resourceSubscriptions": ["revdeck://findings", "file:///etc/passwd"],
    });
    client.send("subscriptions/listen", json!({ "notifications": filter, "_meta": meta }));
    let accepted = client
        .notification("the acknowledgment", |message| message["method"] == "notifications/subscriptions/acknowledged");
    assert_eq!(accepted["params"]["notifications"]["resourceSubscriptions"], json!(["revdeck://findings"]));
    // The next answer comes after the server has begun to watch.
    let listed = client.request("tools/call", json!({ "name": "list_findings", "arguments": {}, "_meta": meta }));
    let id = text(&listed["structuredContent"]["findings"][0]["finding_id"]);
    run(&test, &["triage", &id, "dismissed", "--reason", "intended"], DONE);
    client.notification("the findings", is_update("revdeck://findings"));
}

#[test]
fn a_store_that_appears_later_is_watched_too() {
    let test = TestEnvironment::new();
    test.write("long.py", long_function("long"));
    test.commit("one finding");
    let mut client = McpClient::start(&test, &[]);
    client.request("resources/subscribe", json!({ "uri": "revdeck://findings" }));
    assert_eq!(client.tool("auto_review_ledger", json!({}))["ledger"], "");
    run(&test, &["review", "--wait"], DONE);
    client.notification("the findings", is_update("revdeck://findings"));
}
