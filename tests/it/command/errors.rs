//! Every failure has a class, names the reviewer and the remedy, and is safe to print.

use revdeck::domain::{ErrorClass, StopReason};
use revdeck::reviewers::chat::{Chat, ChatError};
use revdeck::reviewers::command::Program;
use rstest::rstest;

use super::place::{Place, Watcher, request};

fn error(place: &Place, program: Program) -> ChatError {
    let error = place.open(program).respond(&request("x"), &mut Watcher::default()).expect_err("no answer");
    assert!(error.summary.starts_with("reviewer: ") && error.summary.contains("; "), "{error}");
    assert!(!error.summary.chars().any(char::is_control) && !error.cancelled, "{error:?}");
    error
}

#[rstest]
// Programs of no known kind.
#[case(
    "agent",
    "echo 'it \u{1b}[31mbroke' >&2; echo more >&2; exit 3",
    ErrorClass::Reviewer,
    "agent ended with code 3: it \u{fffd}[31mbroke; "
)]
#[case("agent", "echo 'usage: agent [FILE]' | tr -d '[]'; exit 2", ErrorClass::Reviewer, "ended with code 2")]
#[case("agent", "kill -9 $$", ErrorClass::Reviewer, "was ended by signal 9")]
#[case("agent", "exit 0", ErrorClass::Malformed, "ended without an answer")]
#[case("agent", "echo 'key sk-0123456789abcdef is wrong' >&2; exit 1", ErrorClass::Reviewer, ": key … is wrong; ")]
// Error messages as the known agents print them.
#[case(
    "claude",
    r#"echo '{"type":"assistant","message":{"model":"<synthetic>","content":[{"type":"text","text":"Not logged in · Please run /login"}]},"error":"authentication_failed"}'
echo '{"type":"result","subtype":"success","is_error":true,"result":"Not logged in · Please run /login"}'; exit 1"#,
    ErrorClass::Auth,
    "Not logged in · Please run /login; start `claude` once"
)]
#[case(
    "claude",
    r#"echo '{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"API Error: Request rejected (429)"}'; exit 1"#,
    ErrorClass::RateLimit,
    "Request rejected (429); try again later"
)]
#[case(
    "claude",
    "echo \"error: unknown option '--tools'\" >&2; exit 1",
    ErrorClass::Configuration,
    "update the program"
)]
#[case(
    "claude",
    "echo 'Welcome!'; echo 'Error: no events'",
    ErrorClass::Malformed,
    "no events but \"Error: no events\""
)]
#[case(
    "codex",
    r#"echo '{"type":"turn.failed","error":{"message":"unexpected status 401 Unauthorized"}}'; exit 1"#,
    ErrorClass::Auth,
    "run `codex login`"
)]
#[case(
    "codex",
    "echo 'WARNING: x' >&2; echo 'Not logged in' >&2; exit 1",
    ErrorClass::Auth,
    ": Not logged in; run `codex"
)]
#[case(
    "codex",
    r#"echo '{"type":"turn.failed","error":{"message":"Quota exceeded."}}'; exit 1"#,
    ErrorClass::Quota,
    "Quota exceeded; "
)]
#[case("gemini", "echo 'Please set an Auth method in settings.json' >&2; exit 41", ErrorClass::Auth, "GEMINI_API_KEY")]
#[case(
    "gemini",
    r#"echo '{"type":"result","status":"error","error":{"message":"input token count exceeds"}}'; exit 144"#,
    ErrorClass::ContextTooLong,
    "review less at once"
)]
#[case("gemini", "head -c 70000 /dev/urandom; exit 1", ErrorClass::Reviewer, "ended with code 1")]
fn a_failure_has_a_class_and_a_way_out(
    #[case] name: &str,
    #[case] script: &str,
    #[case] class: ErrorClass,
    #[case] words: &str,
) {
    let place = Place::new();
    let error = error(&place, place.program(name, script));
    assert!(error.class == class && error.summary.contains(words), "{:?}: {error}", error.class);
}

#[test]
fn a_program_that_cannot_be_started_is_a_matter_of_settings() {
    let place = Place::new();
    place.write("plain", "#!/bin/sh\necho '[]'\n", 0o644);
    let orphan = place.write("orphan", "#!/no/such/interpreter\n", 0o755);
    let binary = place.write("binary", "\x7fELF no program", 0o755);
    std::fs::write(place.folder().join("planted"), "#!/bin/sh\necho '[]'\n").expect("a file");
    let absolute = |path: &std::path::Path| path.to_str().expect("UTF-8").to_owned();
    for (program, words) in [
        ("codex-of-nobody", "no program \"codex-of-nobody\" in PATH ("),
        ("plain", "plain is no program that may be executed; `chmod +x`"),
        ("./planted", "would be looked for in the reviewed code"),
        ("planted", "no program \"planted\" in PATH"),
        ("/no/such/program", "there is no program /no/such/program; install it"),
        (&absolute(&orphan), "cannot be started: "),
        (&absolute(&binary), "cannot be started: "),
    ] {
        let error = error(&place, place.words(&[program]));
        assert!(error.class == ErrorClass::Configuration && error.summary.contains(words), "{error}");
    }
    let mut program = place.words(&["claude"]);
    program.environment.retain(|(name, _)| name != "PATH");
    program.environment.push(("PATH".into(), "bin:.".into()));
    assert!(error(&place, program).summary.contains("npm install -g @anthropic-ai/claude-code"));
    let mut program = place.words(&["sh"]);
    program.folder = place.path().join("gone");
    assert_eq!(error(&place, program).class, ErrorClass::Internal);
    assert_eq!(error(&place, place.words(&[])).class, ErrorClass::Configuration);
}

#[rstest]
#[case("agent", "echo '[1]'; exit 1", "[1]\n")]
#[case("agent", "echo '[1]'; kill -9 $$", "[1]\n")]
#[case(
    "codex",
    r#"echo '{"type":"item.completed","item":{"type":"agent_message","text":"one"}}'; echo '{"type":"turn.failed","error":{"message":"401"}}'; exit 1"#,
    "one"
)]
#[case(
    "claude",
    r#"printf '{"type":"stream_event","event":{"delta":{"type":"text_delta","text":"on"}}}\n{"type":"str'; exit 7"#,
    "on"
)]
#[case(
    "claude",
    r#"echo '{"type":"assistant","message":{"content":[{"type":"text","text":"one"}]}}'; echo '{"type":"result","subtype":"error_max_turns","is_error":true}'; exit 1"#,
    "one"
)]
fn what_was_said_before_a_failure_is_used(#[case] name: &str, #[case] script: &str, #[case] text: &str) {
    let place = Place::new();
    let mut agent = place.open(place.program(name, script));
    let response = agent.respond(&request("x"), &mut Watcher::default()).expect("an answer");
    assert_eq!((response.text.as_str(), response.stop), (text, StopReason::Interrupted));
}
