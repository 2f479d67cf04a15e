//! Command-line reviewers: real processes, played by shell scripts that behave well or badly.

mod ends;
mod errors;
mod place;
mod real;

use std::time::Duration;

use revdeck::domain::{ErrorClass, StopReason, Usage};
use revdeck::git::CheckoutPlan;
use revdeck::reviewers::chat::{Chat, ChatProgress, ToolSupport};
use revdeck::reviewers::command::{self, CommandDialect};

use place::{Place, Watcher, request};

#[test]
fn a_program_gets_the_prompt_and_its_words_are_the_answer() {
    let place = Place::new();
    let agent = place.program(
        "agent",
        "cat > got; printf 'Some words.\\n'; echo aside >&2; printf '{\"findings\":[]}'; pwd > where; env > env\n\
         (: < /dev/tty) 2> /dev/null && echo terminal > tty; ps -o sid= -p $$ > session 2> /dev/null || :",
    );
    let mut agent = place.open(agent);
    assert_eq!(agent.tool_support(), ToolSupport::None);
    let mut watcher = Watcher::default();
    let response = agent.respond(&request("the diff"), &mut watcher).expect("an answer");
    assert_eq!(response.text, "Some words.\n{\"findings\":[]}\n");
    assert_eq!((response.stop, response.usage, response.model.as_str()), (StopReason::Done, Usage::default(), ""));
    let got = place.read("got");
    assert!(got.contains(" instructions\nReview.\n") && got.contains(" user\nthe diff\n"), "{got}");
    assert_eq!(place.read("where").trim(), place.folder().canonicalize().expect("a folder").to_string_lossy());
    let environment = place.read("env");
    let has = |line: &str| environment.lines().any(|known| known == line);
    assert!(has("REVDECK_REVIEW=1") && has("EXTRA=1") && has("NO_COLOR=1"), "{environment}");
    assert!(!environment.contains("REVDECK_HOME") && !environment.contains("GIT_DIR"), "{environment}");
    assert!(!place.folder().join("tty").exists(), "it has a terminal");
    assert_eq!(watcher.seen.first(), Some(&ChatProgress::Sent));
    let bytes: usize = watcher.seen.iter().map(|seen| if let ChatProgress::Bytes(n) = seen { *n } else { 0 }).sum();
    assert_eq!(bytes, response.text.len() - 1, "the last line end is ours");
    // A second request starts a new process.
    assert_eq!(agent.respond(&request("go on"), &mut watcher).expect("an answer").text, response.text);
    assert!(place.read("got").contains("go on"));
}

#[test]
fn the_events_of_an_agent_become_an_answer() {
    let place = Place::new();
    let script = r#"printf '%s\n' "$@" > arguments
cat > /dev/null
echo '{"type":"thread.started","thread_id":"1"}'
echo '{"type":"item.completed","item":{"type":"agent_message","text":"{\"findings\":[1]}"}}'
echo '{"type":"of.tomorrow","text":"what is this"}'
echo '{"type":"item.completed","item":{"type":"agent_message","text":"{\"findings\":[2]}"}}'
echo '{"type":"turn.completed","usage":{"input_tokens":9,"cached_input_tokens":5,"output_tokens":4,"reasoning_output_tokens":1}}'"#;
    let mut program = place.program("codex", script);
    (program.model, program.effort) = (Some("gpt-x".to_owned()), Some("high".to_owned()));
    assert_eq!(program.dialect, CommandDialect::Codex);
    let response = place.open(program).respond(&request("x"), &mut Watcher::default()).expect("an answer");
    assert_eq!(response.text, "{\"findings\":[1]}\n\n{\"findings\":[2]}");
    assert_eq!(response.usage, Usage { input: 9, cached: 5, output: 3, reasoning: 1, ..Usage::default() });
    assert_eq!((response.stop, response.model.as_str()), (StopReason::Done, "gpt-x"));
    let arguments = place.read("arguments");
    assert!(arguments.starts_with("exec\n--json\n--sandbox\nread-only\n"), "{arguments}");
    assert!(arguments.ends_with("--model\ngpt-x\n-c\nmodel_reasoning_effort=\"high\"\n-\n"), "{arguments}");
}

/// Both sides write more than a pipe holds before they read.
#[test]
fn nobody_waits_for_the_other_for_ever() {
    let place = Place::new();
    let much = "x".repeat(3 << 20);
    let script = "head -c 2000000 /dev/zero | tr '\\0' e >&2\nhead -c 2000000 /dev/zero | tr '\\0' o\necho\nwc -c";
    let mut agent = place.open(place.program("agent", script));
    let response = agent.respond(&request(&much), &mut Watcher::default()).expect("an answer");
    let mut lines = response.text.lines();
    assert_eq!(lines.next().map(str::len), Some(2_000_000));
    let heard: usize = lines.next().and_then(|line| line.trim().parse().ok()).expect("a count");
    assert!(heard > much.len(), "{heard}");
    // This program closes its input and does not read the request.
    let mut agent = place.open(place.program("deaf", "exec < /dev/null; echo '[]'"));
    let response = agent.respond(&request(&much), &mut Watcher::default()).expect("an answer");
    assert_eq!(response.text, "[]\n");
}

#[test]
fn a_flood_is_read_no_further_than_it_is_worth() {
    let place = Place::new();
    let noise = format!("yes '{{\"type\":\"noise\",\"of\":\"{}\"}}'", "x".repeat(5_000));
    // A gigabyte in many lines, and a gigabyte in a single line.
    for script in [format!("{noise} | head -c 1000000000"), "head -c 1000000000 /dev/zero".to_owned()] {
        let mut agent = place.open(place.program("agent", &format!("echo '[1]'; {script}")));
        let response = agent.respond(&request("x"), &mut Watcher::default()).expect("the beginning is an answer");
        assert!(response.text.starts_with("[1]\n") && response.text.len() <= 8 << 20, "{}", response.text.len());
        assert_eq!(response.stop, StopReason::Length);
    }
    // For an agent, only the final message counts.
    let script = format!(
        "{noise} | head -c 50000000; head -c 10000000 /dev/zero; echo
echo '{{\"type\":\"item.completed\",\"item\":{{\"type\":\"agent_message\",\"text\":\"[2]\"}}}}'
echo '{{\"type\":\"turn.completed\"}}'"
    );
    let mut agent = place.open(place.program("codex", &script));
    let response = agent.respond(&request("x"), &mut Watcher::default()).expect("an answer");
    assert_eq!((response.text.as_str(), response.stop), ("[2]", StopReason::Done));
    let mut agent = place.open(place.program("codex", &noise));
    let error = agent.respond(&request("x"), &mut Watcher::default()).expect_err("no answer");
    assert!(error.class == ErrorClass::Malformed && error.summary.contains("more than 256 MB"), "{error}");
}

#[test]
fn silence_and_length_have_limits() {
    let place = Place::new();
    for (script, words) in [
        ("cat > /dev/null; exec sleep 1000", "was silent for"),
        ("while :; do echo noise >&2; sleep 0.02; done", "took more than"),
    ] {
        let mut program = place.program("agent", script);
        let short = Duration::from_millis(300);
        program.timeouts.idle = if words.contains("silent") { short } else { Duration::from_secs(60) };
        program.timeouts.total = if words.contains("silent") { Duration::from_secs(60) } else { short };
        let error = place.open(program).respond(&request("x"), &mut Watcher::default()).expect_err("no answer");
        assert!(error.class == ErrorClass::Timeout && error.summary.contains(words), "{error}");
    }
    // The earlier output is kept.
    let mut program = place.program("agent", "echo '[1]'; exec sleep 1000");
    program.timeouts.idle = Duration::from_secs(3);
    let response = place.open(program).respond(&request("x"), &mut Watcher::default()).expect("an answer");
    assert_eq!((response.text.as_str(), response.stop), ("[1]\n", StopReason::Interrupted));
}

#[test]
fn the_folder_of_a_snapshot_keeps_agents_from_what_it_says_to_them() {
    let test = crate::env::TestEnvironment::new();
    for file in ["a.rs", "CLAUDE.md", "sub/AGENTS.md", ".gemini/settings.json", ".mcp.json", ".env", "docs/agents.rs"] {
        test.write(file, "x\n");
    }
    test.commit("one");
    let repo = revdeck::git::Repo::discover(&test.repo()).expect("a repository");
    let plan = CheckoutPlan {
        commit: "HEAD",
        base: None,
        unwanted: &command::agent_settings_paths(),
        is_secret: &|_| false,
        mask: None,
    };
    let made = repo.create_checkout(&plan, &test.home().join("c"), &|| false);
    let made = made.expect("a checkout").expect("nobody cancelled it");
    assert_eq!((made.files, made.left_out), (2, 5));
}
