//! Repositories and files that are too large, and patterns that take exponential time in some engines.

use std::cell::Cell;

use revdeck::domain::{ToolCall, ToolOutcome};
use revdeck::masking::Mask;
use serde_json::json;

use super::{answered, call, toolbox};
use crate::env::TestEnvironment;

#[test]
fn huge_files_are_told_by_their_size() {
    let test = TestEnvironment::new();
    test.write("huge.txt", vec![b'a'; 50 << 20]);
    test.write("small.txt", "aaa\n");
    test.commit("one");
    test.write("small.txt", "aaa\nbbb\n");
    let tools = &mut toolbox(&test, "worktree", Mask::On);
    let answer = call(tools, "read_file", &json!({"path": "huge.txt"}));
    assert_eq!(answer.outcome, ToolOutcome::Failed);
    assert_eq!(answer.text, "`huge.txt` has 52.4 MB; files above 4.1 MB are not shown");
    let found = answered(tools, "codebase_search", &json!({"query": "aaa"}));
    assert_eq!(found, "small.txt\n    1: aaa\nNot searched (too large): 1 file.\n");
    assert!(answered(tools, "list_files", &json!({})).contains("huge.txt (52.4 MB)"));
}

#[test]
fn patterns_made_to_explode_are_refused_or_searched() {
    let test = TestEnvironment::new();
    let line = format!("{}!\n", "a".repeat(20_000));
    test.write("a.txt", line.repeat(30));
    let tools = &mut toolbox(&test, "worktree", Mask::On);
    for pattern in ["(((a{100}){100}){100})", "\\w{5000}", "(?:\\p{L}{50}){50}", "(x+x+)+y{99999}"] {
        let answer = call(tools, "codebase_search", &json!({"query": pattern, "regex": true}));
        assert!(answer.outcome == ToolOutcome::Failed && answer.text.contains("pattern"), "{pattern}: {}", answer.text);
    }
    let nested = "(".repeat(450) + &")".repeat(450);
    assert_eq!(call(tools, "codebase_search", &json!({"query": nested, "regex": true})).outcome, ToolOutcome::Failed);
    // This pattern takes exponential time in an engine that backtracks.
    let text = answered(tools, "codebase_search", &json!({"query": "(a+)+$", "regex": true}));
    assert!(text.starts_with("no line matches"), "{text}");
    assert!(
        answered(tools, "codebase_search", &json!({"query": "(a|a)*!", "regex": true}))
            .starts_with("a.txt\n    1: aaa")
    );
}

#[test]
fn a_tool_stops_when_it_is_asked_to() {
    let test = TestEnvironment::new();
    for file in 0..50 {
        test.write(&format!("f{file}.rs"), "fn f() {}\n");
    }
    let tools = &mut toolbox(&test, "worktree", Mask::On);
    for (name, arguments) in [
        ("codebase_search", "{\"query\": \"fn\"}"),
        ("find_symbol", "{\"name\": \"f\"}"),
        ("show_diff", "{}"),
        ("static_findings", "{}"),
    ] {
        let asked = Cell::new(0);
        let cancelled = || {
            asked.set(asked.get() + 1);
            asked.get() > 3
        };
        let call = ToolCall { id: "1".into(), name: name.into(), arguments: arguments.into() };
        let answer = tools.run(&call, &cancelled);
        assert_eq!((answer.outcome, answer.text.as_str()), (ToolOutcome::Failed, "cancelled"), "{name}");
        assert!(asked.get() < 10, "{name}: {}", asked.get());
        assert_eq!(tools.run(&call, &|| false).outcome, ToolOutcome::Answered, "{name} works afterwards");
    }
}
