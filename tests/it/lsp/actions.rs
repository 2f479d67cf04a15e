//! Actions, commands and hovers.

use super::*;

/// A file whose second import is unused: a finding with an exact fix.
const UNUSED: &str = "import sys\nimport os\n\n\ndef main():\n    sys.exit(0)\n";

fn titles(actions: &[Value]) -> Vec<String> {
    actions.iter().map(|action| text(&action["title"])).collect()
}

/// Returns the last decision about a finding: status, actor and reason.
fn last_decision(test: &TestEnvironment, id: &str) -> (String, String, String) {
    let decisions = test.store().dispositions(&id.parse().expect("an id")).expect("readable");
    let last = decisions.last().expect("a decision");
    (last.status.word().to_owned(), last.actor.word().to_owned(), last.reason.clone())
}

#[test]
fn a_finding_is_dismissed_with_its_reason() {
    let test = reviewed();
    let mut client = LspClient::start(&test);
    let (long, wide) = (uri(&test, "long.py"), uri(&test, "sub%20dir/wide.py"));
    let [id] = &finding_ids(&test, "long.py")[..] else { panic!("one finding") };
    client.published(&long);
    client.published(&wide);
    client.open(&long, &long_function("long"));
    // Only the first line of a long function is marked, but its actions are offered in all of it.
    let actions = client.actions(&long, 100);
    assert_eq!(
        titles(&actions),
        [
            "Mark addressed",
            "Dismiss: not worth it",
            "Dismiss: false alarm",
            "Dismiss: intended",
            "Dismiss: generated",
            "Dismiss: fixed elsewhere",
            "Show details",
        ]
    );
    assert!(actions.iter().all(|action| action["kind"] == "quickfix" && action["diagnostics"][0]["data"] == **id));
    client.execute(&actions, "Show details");
    let shown = client.wait_for("details", |message| message["method"] == "window/showMessage");
    assert!(text(&shown["params"]["message"]).contains(id.as_str()), "{shown}");
    client.execute(&actions, "Dismiss: intended");
    client.cleared(&long);
    assert_eq!(client.actions(&long, 0), Vec::<serde_json::Value>::new());
    assert_eq!(last_decision(&test, id), ("dismissed".into(), "user".into(), "intended".into()));
    // The same command again, as of an editor that has not noticed.
    let action = actions.iter().find(|action| action["title"] == "Dismiss: intended").expect("one");
    let (_, said) = client.refused("workspace/executeCommand", action["command"].clone());
    assert_eq!(said, format!("{id} is no undecided finding of the repositories that are open"));
    // A reason of the user's own, from a client that knows no root.
    let [id] = &finding_ids(&test, "sub dir/wide.py")[..] else { panic!("one finding") };
    let dismiss =
        |reason: &str| json!({ "command": "revdeck.dismiss", "arguments": [{ "finding": id, "reason": reason }] });
    let (code, said) = client.refused("workspace/executeCommand", dismiss(" "));
    assert!(code == -32803 && said.starts_with("a dismissal needs its reason"), "{code} {said}");
    client.request("workspace/executeCommand", dismiss("the API\n wants it"));
    client.cleared(&wide);
    assert_eq!(last_decision(&test, id), ("dismissed".into(), "user".into(), "the API  wants it".into()));
}

#[test]
fn an_assistant_claims_and_never_decides() {
    let test = reviewed();
    let [id] = &finding_ids(&test, "long.py")[..] else { panic!("one finding") };
    let mut command = LspClient::command(&test, &[]);
    command.env("REVDECK_ACTOR", "assistant");
    let mut client = LspClient::spawn(command);
    client.initialize(&[&uri(&test, "")], LspClient::capabilities());
    let long = uri(&test, "long.py");
    client.published(&long);
    let actions = client.actions(&long, 0);
    assert_eq!(titles(&actions), ["Claim as addressed", "Show details"]);
    let argument = json!([{ "finding": id, "reason": "intended" }]);
    let (_, said) =
        client.refused("workspace/executeCommand", json!({ "command": "revdeck.dismiss", "arguments": argument }));
    assert!(said.contains("REVDECK_ACTOR is set"), "{said}");
    assert_eq!(finding_ids(&test, "long.py"), [id.as_str()]);
    client.execute(&actions, "Claim as addressed");
    client.cleared(&long);
    assert_eq!(last_decision(&test, id), ("addressed".into(), "assistant".into(), String::new()));
}

#[test]
fn a_fix_is_an_edit_of_the_open_document_while_it_fits() {
    let test = TestEnvironment::new();
    test.write("main.py", UNUSED);
    test.commit("an unused import");
    run(&test, &["review", "--wait"], DONE);
    let mut client = LspClient::start(&test);
    let main = uri(&test, "main.py");
    client.published(&main);
    // The document has an unsaved line above.
    client.open(&main, &format!("# 😀\n{UNUSED}"));
    let actions = client.actions(&main, 2);
    let fix = &actions[0];
    assert_eq!((&fix["title"], &fix["isPreferred"]), (&json!("Apply fix of revdeck"), &json!(true)));
    let change = &fix["edit"]["documentChanges"][0];
    assert_eq!(change["textDocument"], json!({ "uri": main, "version": 1 }));
    assert_eq!((range(&change["edits"][0]), &change["edits"][0]["newText"]), ([2, 0, 3, 0], &json!("")));
    // The user has edited the line: the fix does not fit any more.
    client.replace(&main, 2, &UNUSED.replace("import os", "import  os"));
    let titles = titles(&client.actions(&main, 1));
    assert_eq!(titles.first().map(String::as_str), Some("Mark addressed"), "{titles:?}");
    // The fix was applied: the finding is gone from the editor, and a review confirms it later.
    client.replace(&main, 3, &UNUSED.replace("import os\n", ""));
    client.cleared(&main);
    // Other kinds of actions are not asked here.
    let at = json!({ "line": 1, "character": 0 });
    let refactorings = json!({
        "textDocument": { "uri": main }, "range": { "start": at, "end": at },
        "context": { "diagnostics": [], "only": ["refactor"] },
    });
    assert_eq!(client.request("textDocument/codeAction", refactorings), json!([]));
}

#[test]
fn a_hover_explains_the_finding_and_hostile_text_stays_text() {
    let test = TestEnvironment::new();
    test.write("a.py", "value = 1\n");
    test.commit("a file");
    let key = ["ghp", "_16C7e42F292c6912E7710c838347Ae178B4a"].concat();
    let hostile = format!("<img src=x> [click](command:evil) \u{1b}[2J {key}");
    let place = json!({ "artifactLocation": { "uri": "a.py" }, "region": { "startLine": 1 } });
    let result = json!({
        "ruleId": "X1", "level": "error", "message": { "text": hostile },
        "locations": [{ "physicalLocation": place }],
    });
    let log = json!({
        "version": "2.1.0", "runs": [{ "tool": { "driver": { "name": "tool" } }, "results": [result] }],
    });
    let file = test.home().parent().expect("a folder").join("report.sarif");
    std::fs::write(&file, log.to_string()).expect("a file");
    run(&test, &["import", "sarif", file.to_str().expect("text")], DONE);
    let mut client = LspClient::start(&test);
    let uri = uri(&test, "a.py");
    let message = text(&client.published(&uri)["diagnostics"][0]["message"]);
    assert!(message.contains("<img src=x>") && !message.contains(&key) && !message.contains('\u{1b}'), "{message:?}");
    let at = json!({ "textDocument": { "uri": uri }, "position": { "line": 0, "character": 3 } });
    let hover = client.request("textDocument/hover", at);
    assert_eq!(hover["contents"]["kind"], "markdown");
    insta::assert_snapshot!(test.normalise(&text(&hover["contents"]["value"])));
    let beside = json!({ "textDocument": { "uri": uri }, "position": { "line": 1, "character": 0 } });
    assert_eq!(client.request("textDocument/hover", beside), Value::Null);
}
