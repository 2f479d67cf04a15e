//! A panel whose members speak all formats that revdeck knows: five of services and servers, and that of an agent.

use revdeck::config::ReviewerKind;

use super::merged_list::write_list;
use super::*;
use crate::http::server::{Server, streamed};
use crate::http::tool_calls::{INPUT, OUTPUT, calling};

/// The list: each problem is reported in two or three formats, and no reviewer reports all of them.
const LIST: &str = "\
src/users.py:6 p0 critical, confidence high, SECURITY, open: SQL injection through `name`
  chat: p0, confidence medium, SECURITY, line 6: SQL injection through `name`
  gemini: p0, confidence medium, SECURITY, line 6: SQL injection through `name`
  ollama: p0, confidence medium, SECURITY, line 6: SQL injection through `name`
  3 of 6 reviewers agree: confidence raised from medium to high
src/users.py:11 p2 medium, confidence high, CORRECTNESS, open: Division by zero for an empty list
  anthropic: p2, confidence medium, CORRECTNESS, line 11: Division by zero for an empty list
  responses: p2, confidence medium, CORRECTNESS, line 11: Division by zero for an empty list
  2 of 6 reviewers agree: confidence raised from medium to high
src/users.py:15 p2 medium, confidence high, CORRECTNESS, open: Retries never stop
  agent: p2, confidence medium, CORRECTNESS, line 15: Retries never stop
  gemini: p2, confidence medium, CORRECTNESS, line 15: Retries never stop
  2 of 6 reviewers agree: confidence raised from medium to high
";

fn injection() -> Value {
    report(INJECTION, "SECURITY", 0, "SQL injection through `name`")
}

fn division() -> Value {
    report(DIVISION, "CORRECTNESS", 2, "Division by zero for an empty list")
}

fn endless() -> Value {
    report(ENDLESS, "CORRECTNESS", 2, "Retries never stop")
}

/// Member of the panel that a server plays.
struct Member {
    name: &'static str,
    /// Word of its kind in the settings.
    word: &'static str,
    /// First line of its request.
    line: &'static str,
    server: Server,
}

impl Member {
    fn start(
        name: &'static str,
        (kind, word): (ReviewerKind, &'static str),
        line: &'static str,
        findings: &[Value],
    ) -> Self {
        let answer = calling(kind, &[("report_findings", json!({ "findings": findings })), finish()]);
        Self { name, word, line, server: Server::new(vec![streamed(&answer)]) }
    }

    fn settings(&self) -> String {
        // A local model is free.
        let prices = if self.word == "ollama" { "" } else { CHEAP };
        format!(
            "[reviewers.{}]\nkind = \"{}\"\nmodel = \"the-model\"\nbase_url = \"http://127.0.0.1:{}\"\n\
             api_key_cmd = \"printf made-up\"\nattempts = 1\ncontext_window = 100000\nmax_output = 4000\n{prices}",
            self.name, self.word, self.server.port
        )
    }
}

#[test]
fn members_that_speak_all_formats_give_exactly_this_list() {
    let members = [
        Member::start("anthropic", (ReviewerKind::Anthropic, "anthropic"), "POST /v1/messages HTTP/1.1", &[division()]),
        Member::start("chat", (ReviewerKind::Openai, "openai"), "POST /v1/chat/completions HTTP/1.1", &[injection()]),
        Member::start(
            "gemini",
            (ReviewerKind::Gemini, "gemini"),
            "POST /v1beta/models/the-model:streamGenerateContent?alt=sse HTTP/1.1",
            &[injection(), endless()],
        ),
        Member::start("ollama", (ReviewerKind::Ollama, "ollama"), "POST /api/chat HTTP/1.1", &[injection()]),
        Member::start(
            "responses",
            (ReviewerKind::OpenaiResponses, "openai-responses"),
            "POST /v1/responses HTTP/1.1",
            &[division()],
        ),
    ];
    let folder = tempfile::tempdir().expect("a folder");
    let script = folder.path().join("agent.sh");
    let answer = json!({ "findings": [endless()] });
    std::fs::write(&script, format!("cat > /dev/null\ncat <<'END'\n{answer}\nEND\n")).expect("written");
    let names: Vec<String> = members.iter().map(|member| format!("\"{}\"", member.name)).collect();
    let tables: String = members.iter().map(Member::settings).collect();
    let more = format!(
        "[panels.six]\nreviewers = [\"agent\", {}]\n{tables}[reviewers.agent]\nkind = \"command\"\ncommand = [\"sh\", \"{}\"]\n",
        names.join(", "),
        script.display()
    );
    let panel = Panel::start(Vec::new(), Vec::new(), &more);
    let run = panel.review(&["--panel", "six"], DONE);
    assert_eq!(write_list(&panel.findings(&run)), LIST);
    for Member { name, line, server, .. } in &members {
        let lines: Vec<String> = server.requests().into_iter().map(|request| request.line).collect();
        assert_eq!(lines, [*line], "{name} is asked once");
        let usage = panel.member(&run, name).usage;
        assert_eq!((usage.tokens.input, usage.tokens.output), (INPUT, OUTPUT), "{name}");
        // 1,000 tokens in and 100 out.
        let cost = if *name == "ollama" { 0.0 } else { 0.0028 };
        assert!((usage.cost - cost).abs() < 1e-9 && usage.price_known == Some(true), "{name}: {usage:?}");
    }
    let agent = panel.member(&run, "agent");
    assert_eq!((agent.status, agent.usage.price_known), (RunStatus::Completed, Some(false)));
    let listed: Vec<u64> = panel.listed().into_iter().map(|(line, _)| line).collect();
    assert_eq!(listed, [INJECTION, DIVISION, ENDLESS].map(u64::from), "each problem is there once");
}
