//! Event streams that the agents wrote against a fake provider, shortened; and hostile streams.

use proptest::prelude::*;
use rstest::rstest;

use super::*;
use crate::config::CommandDialect;
use crate::domain::{ErrorClass, StopReason};
use crate::reviewers::command::dialect::from_setting;
use crate::reviewers::command::transcript::MAX_TEXT_BYTES;

const CLAUDE: &str = r#"{"type":"system","subtype":"init","cwd":"/w","session_id":"b358","tools":["Glob","Grep","Read"],"mcp_servers":[],"model":"claude-opus-4-8[1m]","permissionMode":"plan","claude_code_version":"2.1.197"}
{"type":"system","subtype":"status","status":"requesting","session_id":"b358"}
{"type":"stream_event","event":{"type":"message_start","message":{"id":"msg_1","role":"assistant","content":[],"model":"claude-opus-4-8","usage":{"input_tokens":3,"output_tokens":1}}},"session_id":"b358"}
{"type":"stream_event","event":{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}},"session_id":"b358"}
{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}},"session_id":"b358"}
{"type":"stream_event","event":{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Let me "}},"session_id":"b358"}
{"type":"stream_event","event":{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"look. {\"findings\":[1]}"}},"session_id":"b358"}
{"type":"assistant","message":{"id":"msg_1","role":"assistant","content":[{"type":"text","text":"Let me look. {\"findings\":[1]}"}],"model":"claude-opus-4-8","stop_reason":null,"usage":{"input_tokens":3,"cache_creation_input_tokens":100,"cache_read_input_tokens":1000,"output_tokens":1}},"parent_tool_use_id":null,"session_id":"b358"}
{"type":"assistant","message":{"id":"msg_1","role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"Read","input":{"file_path":"/w/a.py"}}],"model":"claude-opus-4-8","stop_reason":null,"usage":{"input_tokens":3,"cache_creation_input_tokens":100,"cache_read_input_tokens":1000,"output_tokens":20}},"parent_tool_use_id":null,"session_id":"b358"}
{"type":"user","message":{"role":"user","content":[{"tool_use_id":"toolu_1","type":"tool_result","content":"1\tx = 1\n{\"findings\":[\"of the code\"]}"}]},"session_id":"b358"}
{"type":"assistant","message":{"id":"msg_2","role":"assistant","content":[{"type":"text","text":"Done. {\"findings\":[2]}"}],"model":"claude-opus-4-8","stop_reason":null,"usage":{"input_tokens":5,"cache_read_input_tokens":1100,"output_tokens":30}},"session_id":"b358"}
"#;
const CLAUDE_RESULT: &str = r#"{"type":"result","subtype":"success","is_error":false,"api_error_status":null,"duration_ms":546,"num_turns":2,"result":"Done. {\"findings\":[2]}","stop_reason":"end_turn","session_id":"b358","total_cost_usd":0.01,"usage":{"input_tokens":8,"cache_creation_input_tokens":100,"cache_read_input_tokens":2100,"output_tokens":50,"service_tier":"standard"},"modelUsage":{"claude-opus-4-8[1m]":{"inputTokens":8,"contextWindow":1000000}},"permission_denials":[]}
"#;
const CODEX: &str = r#"{"type":"thread.started","thread_id":"01a1fe45"}
{"type":"item.completed","item":{"id":"item_0","type":"error","message":"Model metadata for `gpt-5` not found."}}
{"type":"turn.started"}
{"type":"item.completed","item":{"id":"item_1","type":"reasoning","text":"hm"}}
{"type":"error","message":"Reconnecting... 1/5 (stream disconnected before completion)"}
{"type":"item.completed","item":{"id":"item_2","type":"agent_message","text":"Let me look. {\"findings\":[1]}"}}
{"type":"item.started","item":{"id":"item_3","type":"command_execution","command":"/bin/bash -lc 'cat a.py'","aggregated_output":"","exit_code":null,"status":"in_progress"}}
{"type":"item.completed","item":{"id":"item_3","type":"command_execution","command":"/bin/bash -lc 'cat a.py'","aggregated_output":"{\"findings\":[\"of the code\"]}\n","exit_code":0,"status":"completed"}}
{"type":"item.completed","item":{"id":"item_4","type":"agent_message","text":"Done. {\"findings\":[2]}"}}
{"type":"turn.completed","usage":{"input_tokens":2208,"cached_input_tokens":2100,"cache_write_input_tokens":0,"output_tokens":60,"reasoning_output_tokens":10}}
"#;
const GEMINI: &str = r#"{"type":"init","timestamp":"2026-11-21T13:22:48.017Z","session_id":"8a8e","model":"gemini-2.5-pro"}
{"type":"message","timestamp":"2026-11-21T13:22:48.018Z","role":"user","content":"the prompt with {\"findings\":[\"of the prompt\"]}"}
{"type":"message","timestamp":"2026-11-21T13:22:48.064Z","role":"assistant","content":"Let me look. {\"findi","delta":true}
{"type":"message","timestamp":"2026-11-21T13:22:48.065Z","role":"assistant","content":"ngs\":[1]}","delta":true}
{"type":"tool_use","timestamp":"2026-11-21T13:22:48.234Z","tool_name":"read_file","tool_id":"r1","parameters":{"file_path":"a.py"}}
{"type":"tool_result","timestamp":"2026-11-21T13:22:48.421Z","tool_id":"r1","status":"success","output":"{\"findings\":[\"of the code\"]}"}
{"type":"message","timestamp":"2026-11-21T13:22:48.444Z","role":"assistant","content":"Done. {\"findings\":[2]}","delta":true}
{"type":"result","timestamp":"2026-11-21T13:22:48.458Z","status":"success","stats":{"total_tokens":2268,"input_tokens":2208,"output_tokens":50,"cached":2100,"input":108,"duration_ms":442,"tool_calls":1,"models":{"gemini-2.5-pro":{"total_tokens":2268}}}}
"#;
const GEMINI_OBJECT: &str = r#"Loaded cached credentials.
{
  "session_id": "5af0",
  "response": "Done. {\"findings\":[2]}",
  "stats": {
    "models": {
      "gemini-2.5-flash-lite": {
        "tokens": { "prompt": 8, "candidates": 0, "total": 8, "cached": 0, "thoughts": 0, "tool": 0 }
      },
      "gemini-2.5-pro": {
        "tokens": {
          "prompt": 2200,
          "candidates": 50,
          "total": 2260,
          "cached": 2100,
          "thoughts": 10,
          "tool": 0
        }
      }
    },
    "tools": {}
  }
}
"#;
const ANSWER: &str = "Let me look. {\"findings\":[1]}\n\nDone. {\"findings\":[2]}";

fn parse_output(dialect: CommandDialect, output: &[u8], size: usize) -> (AgentOutput, Vec<ChatProgress>) {
    let (mut listener, mut told) = (OutputParser::new(from_setting(dialect)), Vec::new());
    for chunk in output.chunks(size) {
        listener.feed(chunk, &mut |progress| told.push(progress));
    }
    let heard = listener.finish(&mut |progress| told.push(progress));
    (heard, told)
}

fn usage(input: u64, cached: u64, output: u64, reasoning: u64) -> Usage {
    Usage { input, cached, output, reasoning, ..Usage::default() }
}

/// Returns the text that was reported on the way.
fn streamed_text(told: &[ChatProgress]) -> String {
    let texts = told.iter().filter_map(|progress| match progress {
        ChatProgress::Text(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

#[rstest]
#[case(CommandDialect::Claude, &[CLAUDE, CLAUDE_RESULT].concat(), ANSWER, usage(2208, 2100, 50, 0), "claude-opus-4-8")]
#[case(CommandDialect::Codex, CODEX, ANSWER, usage(2208, 2100, 50, 10), "")]
#[case(CommandDialect::Gemini, GEMINI, ANSWER, usage(2208, 2100, 50, 10), "gemini-2.5-pro")]
#[case(CommandDialect::Gemini, GEMINI_OBJECT, "Done. {\"findings\":[2]}", usage(2208, 2100, 50, 10), "gemini-2.5-pro")]
// A program of unknown name that begins like an agent.
#[case(CommandDialect::Plain, &[CLAUDE, CLAUDE_RESULT].concat(), ANSWER, usage(2208, 2100, 50, 0), "claude-opus-4-8")]
#[case(CommandDialect::Plain, CODEX, ANSWER, usage(2208, 2100, 50, 10), "")]
#[case(CommandDialect::Plain, GEMINI, ANSWER, usage(2208, 2100, 50, 10), "gemini-2.5-pro")]
fn whole_sessions(
    #[case] dialect: CommandDialect,
    #[case] output: &str,
    #[case] text: &str,
    #[case] usage: Usage,
    #[case] model: &str,
) {
    for size in [1, 7, 100, output.len()] {
        let (heard, told) = parse_output(dialect, output.as_bytes(), size);
        assert_eq!(heard.said.text, text, "{size} bytes at once");
        assert_eq!((heard.said.usage, heard.said.model.as_str()), (usage, model));
        assert_eq!((heard.said.stop, heard.said.error), (Some(StopReason::Done), None));
        if output != GEMINI_OBJECT {
            assert_eq!(streamed_text(&told), text.replace("\n\n", ""), "each text once");
        }
    }
}

#[test]
fn a_session_that_breaks_off_keeps_what_was_said() {
    let at = CLAUDE.find("look. ").expect("the second piece");
    let end = at + CLAUDE[at..].find('\n').expect("its end");
    let (heard, _) = parse_output(CommandDialect::Claude, &CLAUDE.as_bytes()[..end], 50);
    assert_eq!(heard.said.text, "Let me look. {\"findings\":[1]}", "pieces of a message that never came whole");
    let (heard, _) = parse_output(CommandDialect::Claude, CLAUDE.as_bytes(), 50);
    assert_eq!(heard.said.text, ANSWER);
    assert_eq!(heard.said.usage, usage(2208, 2100, 50, 0), "summed up by ourselves");
    assert_eq!(heard.said.stop, None);
}

#[rstest]
#[case(
    CommandDialect::Claude,
    r#"{"type":"assistant","message":{"id":"3d","model":"<synthetic>","role":"assistant","content":[{"type":"text","text":"Not logged in · Please run /login"}]},"error":"authentication_failed"}
{"type":"result","subtype":"success","is_error":true,"api_error_status":null,"result":"Not logged in · Please run /login","stop_reason":"stop_sequence","usage":{"input_tokens":0}}"#,
    ErrorClass::Auth,
    "Not logged in"
)]
#[case(
    CommandDialect::Claude,
    r#"{"type":"assistant","message":{"model":"<synthetic>","content":[{"type":"text","text":"Your card was declined"}]},"error":"billing_error"}
{"type":"result","subtype":"success","is_error":true,"result":"Your card was declined"}"#,
    ErrorClass::Quota,
    "Your card"
)]
#[case(
    CommandDialect::Claude,
    r#"{"type":"result","subtype":"error_during_execution","is_error":true,"errors":["spawn failed","and more"]}"#,
    ErrorClass::Reviewer,
    "spawn failed; and more"
)]
#[case(
    CommandDialect::Codex,
    r#"{"type":"error","message":"Reconnecting... 5/5 (unexpected status 401 Unauthorized: invalid x-api-key)"}
{"type":"turn.failed","error":{"message":"unexpected status 401 Unauthorized: invalid x-api-key"}}"#,
    ErrorClass::Auth,
    "unexpected status 401"
)]
#[case(
    CommandDialect::Gemini,
    r#"{"type":"result","status":"error","error":{"type":"unknown","message":"[API Error: You exceeded your current quota]"},"stats":{}}"#,
    ErrorClass::Quota,
    "You exceeded"
)]
#[case(
    CommandDialect::Gemini,
    "{\n  \"session_id\": \"1\",\n  \"error\": {\n    \"type\": \"Error\",\n    \"message\": \"Invalid auth method selected.\",\n    \"code\": 41\n  }\n}\n",
    ErrorClass::Auth,
    "Invalid auth method"
)]
fn troubles_are_not_answers(
    #[case] dialect: CommandDialect,
    #[case] output: &str,
    #[case] class: ErrorClass,
    #[case] words: &str,
) {
    let (heard, _) = parse_output(dialect, output.as_bytes(), 64);
    let (found, said) = heard.said.error.expect("trouble");
    assert!(found == class && said.contains(words), "{found:?} {said}");
    assert_eq!(heard.said.text, "");
}

#[rstest]
#[case("max_tokens", StopReason::Length)]
#[case("refusal", StopReason::Refused)]
#[case("end_turn", StopReason::Done)]
#[case("something_new", StopReason::Done)]
fn claude_says_why_it_stopped(#[case] reason: &str, #[case] stop: StopReason) {
    let output = format!(r#"{{"type":"result","subtype":"success","result":"x","stop_reason":"{reason}"}}"#);
    let (heard, _) = parse_output(CommandDialect::Claude, output.as_bytes(), 64);
    assert_eq!((heard.said.stop, heard.said.text.as_str()), (Some(stop), "x"));
}

#[test]
fn waits_are_told() {
    let (_, told) = parse_output(
        CommandDialect::Claude,
        br#"{"type":"system","subtype":"api_retry","attempt":2,"max_retries":10,"retry_delay_ms":1075.5,"error_status":529,"error":"server_error"}
"#,
        64,
    );
    let reason = "server error, attempt 2 of 10".to_owned();
    assert_eq!(told, [ChatProgress::Waiting { reason, wait_ms: 1075 }]);
    let (_, told) = parse_output(CommandDialect::Codex, CODEX.as_bytes(), 64);
    assert!(
        told.iter().any(|progress| matches!(progress, ChatProgress::Waiting { reason, .. } if reason.contains("1/5")))
    );
}

#[test]
fn a_plain_program_says_what_it_writes() {
    let output =
        "Some words\n{\"findings\": [{\"type\": \"bug\", \"path\": \"a\"}]}\n{\"type\": \"bug\", \"path\": \"b\"}\n";
    let (heard, told) = parse_output(CommandDialect::Plain, output.as_bytes(), 5);
    assert_eq!(heard.said.text, output, "an object with a type is no event of ours");
    assert_eq!(streamed_text(&told), output);
    let events = "{\"type\":\"text\",\"text\":\"one\"}\n{\"type\":\"usage\",\"input\":7,\"output\":2,\"model\":\"m\"}\n{\"type\":\"text\",\"text\":\"two\"}";
    let (heard, _) = parse_output(CommandDialect::Plain, events.as_bytes(), 5);
    assert_eq!(
        (heard.said.text.as_str(), heard.said.usage, heard.said.model.as_str()),
        ("one\n\ntwo", usage(7, 0, 2, 0), "m")
    );
}

#[test]
fn bytes_that_are_no_text_do_no_harm() {
    let mut output = br#"{"type":"item.completed","item":{"type":"agent_message","text":"a "#.to_vec();
    output.extend(b"\xff\"}}\n\0\x1b[2J\xfe\n");
    let (heard, _) = parse_output(CommandDialect::Codex, &output, 3);
    assert_eq!(heard.said.text, "a \u{fffd}");
    assert_eq!(heard.stray, b"\0\x1b[2J\xfe\n");
    let (heard, _) = parse_output(CommandDialect::Plain, b"a\xff\0b", 1);
    assert_eq!(heard.said.text, "a\u{fffd}\0b\n");
}

#[test]
fn one_endless_line_is_bounded() {
    let long = "x".repeat(MAX_LINE_BYTES + MAX_LINE_BYTES / 4);
    let text =
        format!("{{\"type\":\"item.completed\",\"item\":{{\"type\":\"agent_message\",\"text\":\"{long}\"}}}}\n{CODEX}");
    let (heard, _) = parse_output(CommandDialect::Codex, text.as_bytes(), 1 << 16);
    assert_eq!(heard.said.text, ANSWER, "what comes after it is heard");
    assert!(heard.stray.len() <= MAX_LINE_BYTES);
    let (heard, _) = parse_output(CommandDialect::Plain, long.as_bytes(), 1 << 16);
    assert!(heard.said.is_truncated && heard.said.text.len() <= MAX_TEXT_BYTES);
}

proptest! {
    /// Any output in any pieces causes no panic and gives the same result.
    #[test]
    fn pieces_make_no_difference(
        lines in prop::collection::vec(prop_oneof![
            prop::sample::select(CLAUDE.lines().chain(CODEX.lines()).chain(GEMINI.lines()).chain(CLAUDE_RESULT.lines()).collect::<Vec<_>>())
                .prop_map(|line| line.as_bytes().to_vec()),
            prop::collection::vec(any::<u8>(), 0..40),
            "\\{\"type\":\"(assistant|result|message|error|item.completed|system)\",\"[a-z]{1,8}\":[0-9]{1,25}\\}"
                .prop_map(String::into_bytes),
        ], 0..12),
        size in 1_usize..200,
    ) {
        let output = lines.join(&b'\n');
        for dialect in [CommandDialect::Claude, CommandDialect::Codex, CommandDialect::Gemini, CommandDialect::Plain] {
            let (one, _) = parse_output(dialect, &output, size);
            let (other, _) = parse_output(dialect, &output, output.len().max(1));
            prop_assert_eq!(&one.said.text, &other.said.text);
            prop_assert_eq!(one.said.usage, other.said.usage);
            prop_assert_eq!(one.said.error, other.said.error);
            prop_assert_eq!(one.stray, other.stray);
        }
    }
}
