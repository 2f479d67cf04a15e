//! `revdeck reviewers discover`: real servers on loopback that play Ollama, llama.cpp and worse.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::env::{DONE, INCOMPLETE, TestEnvironment, USAGE, err, out};
use crate::http::server::{Request, read_request};

/// Answer to one request. The connection is closed after it.
enum Answer {
    Json(Value),
    /// Lines or events, with their content type.
    Text(&'static str, String),
    /// Status with a header.
    Status(u16, &'static str),
    /// The same bytes until the client disconnects.
    Endless(&'static [u8]),
}

/// Server that answers with a function of the request and of the number of chats before it. It stops with the process.
struct LocalServer {
    port: u16,
    seen: Arc<Mutex<Vec<Request>>>,
}

impl LocalServer {
    fn start(answer: impl Fn(&str, &Request, usize) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port on loopback");
        let port = listener.local_addr().expect("an address").port();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (ours, answer) = (Arc::clone(&seen), Arc::new(answer));
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let (ours, answer) = (Arc::clone(&ours), Arc::clone(&answer));
                std::thread::spawn(move || {
                    let Ok(request) = read_request(&mut stream) else { return };
                    let path = request.line.split(' ').nth(1).unwrap_or_default().to_owned();
                    let chats = {
                        let mut seen = ours.lock().expect("a lock");
                        let chats = seen.iter().filter(|request| is_chat(request)).count();
                        seen.push(request.clone());
                        chats
                    };
                    let _ = send(&mut stream, answer(&path, &request, chats));
                });
            }
        });
        Self { port, seen }
    }

    fn port(&self) -> String {
        self.port.to_string()
    }

    fn chats(&self) -> Vec<Value> {
        let seen = self.seen.lock().expect("a lock");
        seen.iter().filter(|request| is_chat(request)).map(|request| request.body.clone()).collect()
    }
}

fn is_chat(request: &Request) -> bool {
    request.line.contains("/api/chat ") || request.line.contains("/chat/completions ")
}

fn send(stream: &mut TcpStream, answer: Answer) -> std::io::Result<()> {
    let head =
        |status: &str, kind: &str| format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n");
    match answer {
        Answer::Json(body) => write!(stream, "{}{body}", head("200 OK", "application/json")),
        Answer::Text(kind, body) => write!(stream, "{}{body}", head("200 OK", kind)),
        Answer::Status(code, header) => write!(stream, "HTTP/1.1 {code} No\r\n{header}\r\nconnection: close\r\n\r\n"),
        Answer::Endless(bytes) => {
            write!(stream, "{}", head("200 OK", "application/json"))?;
            while stream.write_all(bytes).is_ok() {}
            Ok(())
        }
    }
}

fn missing() -> Answer {
    Answer::Status(404, "x-none: 1")
}

/// An answer of Ollama that calls the tool, or only says something.
fn ollama_chat(request: &Request, calls: bool) -> Answer {
    let call = json!([{ "function": { "name": "hello", "arguments": { "name": "m" } } }]);
    let message = match calls {
        true => json!({ "role": "assistant", "content": "", "tool_calls": call }),
        false => json!({ "role": "assistant", "content": "hello" }),
    };
    let line = json!({ "model": request.body["model"], "message": message, "done": true, "done_reason": "stop",
        "prompt_eval_count": 90, "eval_count": 9 });
    Answer::Text("application/x-ndjson", format!("{line}\n"))
}

/// An answer of llama.cpp that calls the tool.
fn llama_chat() -> Answer {
    let call = json!([{ "index": 0, "id": "c1", "type": "function",
        "function": { "name": "hello", "arguments": "{\"name\":\"m\"}" } }]);
    let chunk = |delta: Value, stop: Value| {
        format!(
            "data: {}\n\n",
            json!({ "model": "m", "choices": [{ "index": 0, "delta": delta, "finish_reason": stop }] })
        )
    };
    let (first, last) = (chunk(json!({ "tool_calls": call }), Value::Null), chunk(json!({}), json!("tool_calls")));
    Answer::Text("text/event-stream", format!("{first}{last}data: [DONE]\n\n"))
}

/// Ollama with a loaded model that calls tools, one that is not loaded, one without tools, and two that cannot review.
fn ollama() -> LocalServer {
    LocalServer::start(|path, request, _| match path {
        "/api/version" => Answer::Json(json!({ "version": "0.12.3" })),
        "/api/tags" => Answer::Json(json!({ "models": [
            { "name": "qwen3-coder:30b", "model": "qwen3-coder:30b",
              "details": { "parameter_size": "30.5B", "quantization_level": "Q4_K_M" } },
            { "name": "llama3.2:latest", "details": { "parameter_size": "3.2B", "quantization_level": "Q4_K_M" } },
            { "name": "gemma3:1b", "details": { "parameter_size": "1B", "quantization_level": "Q8_0" } },
            { "name": "nomic-embed-text:latest" },
            { "name": "glm-4.6:cloud", "remote_host": "https://ollama.com:443" },
        ]})),
        "/api/ps" => Answer::Json(json!({ "models": [
            { "name": "qwen3-coder:30b", "size": 20_000, "size_vram": 15_000, "context_length": 32768 },
        ]})),
        "/api/show" => {
            let (abilities, most, parameters) = match request.body["model"].as_str().unwrap_or_default() {
                "qwen3-coder:30b" => (json!(["completion", "tools"]), 262_144, ""),
                "llama3.2:latest" => (json!(["completion", "tools"]), 131_072, "num_ctx    16384"),
                "gemma3:1b" => (json!(["completion"]), 32_768, "stop \"x\""),
                _ => (json!(["embedding"]), 2048, ""),
            };
            Answer::Json(json!({ "capabilities": abilities, "parameters": parameters,
                "model_info": { "general.architecture": "a", "a.context_length": most } }))
        }
        "/api/chat" => ollama_chat(request, true),
        _ => missing(),
    })
}

/// A llama.cpp server with one model.
fn llama_cpp() -> LocalServer {
    LocalServer::start(|path, _, _| match path {
        "/props" => Answer::Json(json!({ "build_info": "b6700-1234567", "total_slots": 1,
            "default_generation_settings": { "n_ctx": 8192 }, "chat_template_caps": { "supports_tools": true } })),
        "/v1/models" => Answer::Json(json!({ "data": [
            { "id": "/models/Qwen2.5-Coder-7B-Q4_K_M.gguf", "owned_by": "llamacpp",
              "meta": { "n_ctx_train": 131_072, "n_params": 7_615_616_512_u64 } },
        ]})),
        "/v1/chat/completions" => llama_chat(),
        // It answers some paths of Ollama, too.
        "/api/tags" => Answer::Json(json!({ "models": [{ "name": "x" }] })),
        _ => missing(),
    })
}

/// Returns an output with the names of the ports instead of their numbers.
fn named(test: &TestEnvironment, text: &str, servers: &[(&LocalServer, &str)]) -> String {
    let text = servers
        .iter()
        .fold(text.to_owned(), |text, (server, name)| text.replace(&format!(":{}", server.port), &format!(":{name}")));
    test.normalise(&text)
}

#[test]
fn models_of_ollama_become_reviewers_with_a_window_that_fits() {
    let (test, server) = (TestEnvironment::new(), ollama());
    let output = test.revdeck(&["reviewers", "discover", "--port", &server.port()]);
    assert_eq!(output.status.code(), Some(DONE), "{}", err(&output));
    assert_snapshot!(named(&test, &out(&output), &[(&server, "[ollama]")]), @r#"
    # Ollama 0.12.3 at http://127.0.0.1:[ollama]

    # qwen3-coder:30b (30.5B Q4_K_M), in memory: window 32,768 of 262,144 tokens, as served; tools called as asked
    # 75 % of it are in video memory: a smaller window makes it faster
    [reviewers.qwen3-coder-30b]
    kind = "ollama"
    model = "qwen3-coder:30b"
    base_url = "http://127.0.0.1:[ollama]"
    context_window = 32768
    tools = true

    # llama3.2:latest (3.2B Q4_K_M), not in memory: window 16,384 of 131,072 tokens, as served; tools not tested, its server says yes
    [reviewers."llama3.2"]
    kind = "ollama"
    model = "llama3.2:latest"
    base_url = "http://127.0.0.1:[ollama]"
    context_window = 16384

    # gemma3:1b (1B Q8_0), not in memory: window 32,768 tokens, as revdeck asks for it; no tools, as its server says
    [reviewers.gemma3-1b]
    kind = "ollama"
    model = "gemma3:1b"
    base_url = "http://127.0.0.1:[ollama]"
    context_window = 32768
    tools = false

    # left out: nomic-embed-text:latest (it answers no questions: its server says that it makes vectors or images)
    # left out: glm-4.6:cloud (it runs on another machine, https://ollama.com:443)
    "#);
    assert_snapshot!(named(&test, &err(&output), &[]), @"`--add` writes them into [home]/config.toml");
    // Only the model in memory is asked, with the window that it has, so that it is not loaded again.
    let asked = server
        .chats()
        .iter()
        .map(|body| (body["model"].clone(), body["options"]["num_ctx"].clone()))
        .collect::<Vec<_>>();
    assert_eq!(asked, [(json!("qwen3-coder:30b"), json!(32_768))]);
    let toml: toml::Table = out(&output).parse().expect("what is printed can be pasted");
    assert_eq!(toml["reviewers"].as_table().map(toml::Table::len), Some(3));
}

#[test]
fn a_reviewer_is_added_once_and_listed() {
    let (test, server) = (TestEnvironment::new(), llama_cpp());
    test.settings("# mine\ntheme = \"dark\" # at night\n\n[window]\nmax_turns = 5\n# the end\n");
    let port = server.port();
    let add = ["reviewers", "discover", "--port", &port, "--add"];
    let assistant = test.command(env!("CARGO_BIN_EXE_revdeck")).args(add).env("REVDECK_ACTOR", "assistant").output();
    assert_eq!(assistant.expect("revdeck starts").status.code(), Some(USAGE));
    assert_eq!(server.chats().len(), 0, "an assistant may not even search for it");
    let output = test.revdeck(&add);
    assert_eq!(output.status.code(), Some(DONE), "{}", err(&output));
    assert_snapshot!(named(&test, &err(&output), &[]), @"added to [home]/config.toml: qwen2.5-coder-7b-q4_k_m");
    let settings = std::fs::read_to_string(test.home().join("config.toml")).expect("settings");
    assert_snapshot!(named(&test, &settings, &[(&server, "[llama]")]), @r#"
    # mine
    theme = "dark" # at night

    [window]
    max_turns = 5
    # the end

    [reviewers."qwen2.5-coder-7b-q4_k_m"]
    kind = "openai"
    model = "/models/Qwen2.5-Coder-7B-Q4_K_M.gguf"
    base_url = "http://127.0.0.1:[llama]/v1/"
    context_window = 8192
    price_input = 0
    price_output = 0
    tools = true
    "#);
    let again = test.json(&["reviewers", "discover", "--port", &port, "--add", "--no-test", "--format", "json"], DONE);
    assert_eq!((&again["added"], &again["servers"][0]["models"][0]["configured"]), (&json!([]), &json!(true)));
    assert_eq!(std::fs::read_to_string(test.home().join("config.toml")).expect("settings"), settings);
    let list = test.json(&["reviewers", "list", "--format", "json"], DONE);
    let added = &list["reviewers"][1];
    assert_eq!(
        (&added["context_window"], &added["ready"], &added["price"]["input"]),
        (&json!(8192), &json!(true), &json!(0.0))
    );
}

#[test]
fn only_servers_that_surely_run_on_this_machine_are_free() {
    // A gateway with OpenAI's format, as LiteLLM is one.
    let gateway = LocalServer::start(|path, _, _| match path {
        "/v1/models" => Answer::Json(json!({ "data": [{ "id": "gpt-4o", "owned_by": "openai" }] })),
        _ => missing(),
    });
    let (test, llama) = (TestEnvironment::new(), llama_cpp());
    for (server, is_free) in [(&gateway, false), (&llama, true)] {
        let found = test.json(
            &["reviewers", "discover", "--port", &server.port(), "--no-test", "--window", "8192", "--format", "json"],
            DONE,
        );
        let model = &found["servers"][0]["models"][0];
        let settings = model["settings"].as_str().expect("a table");
        assert_eq!(settings.contains("price_input = 0"), is_free, "{settings}");
        assert_eq!(model["notes"].to_string().contains("its price is not known"), !is_free, "{model}");
    }
}

#[test]
fn the_json_tells_each_model_and_why_others_are_left_out() {
    let (test, ollama, llama) = (TestEnvironment::new(), ollama(), llama_cpp());
    let (first, second) = (ollama.port(), llama.port());
    let arguments = ["reviewers", "discover", "--no-test", "--format", "json", "--port", &first, "--port", &second];
    let found = test.json(&arguments, DONE);
    assert_eq!((ollama.chats().len(), llama.chats().len()), (0, 0), "--no-test");
    let told = |server: usize, model: usize| {
        let model = &found["servers"][server]["models"][model];
        json!([
            model["name"],
            model["context_window"],
            model["context_window_from"],
            model["model_window"],
            model["tools"]
        ])
    };
    assert_eq!(told(0, 0), json!(["qwen3-coder-30b", 32_768, "served", 262_144, "not_tested"]));
    assert_eq!(told(0, 1), json!(["llama3.2", 16_384, "served", 131_072, "not_tested"]));
    assert_eq!(told(0, 2), json!(["gemma3-1b", 32_768, "asked", 32_768, "not_given"]));
    assert_eq!(told(1, 0), json!(["qwen2.5-coder-7b-q4_k_m", 8192, "served", 131_072, "not_tested"]));
    let omitted: Vec<&Value> =
        found["servers"][0]["left_out"].as_array().expect("a list").iter().map(|it| &it["model"]).collect();
    assert_eq!(omitted, ["nomic-embed-text:latest", "glm-4.6:cloud"]);
    // One model, and a larger window for it.
    let one =
        ["reviewers", "discover", "llama3.2", "--window", "20000", "--no-test", "--format", "json", "--port", &first];
    let one = test.json(&one, DONE);
    let models = one["servers"][0]["models"].as_array().expect("a list");
    assert_eq!((models.len(), &models[0]["context_window"]), (1, &json!(20_000)));
    let unknown = test.fails(&["reviewers", "discover", "llama9", "--no-test", "--port", &first], USAGE);
    assert!(unknown.contains("no server on this machine has a model \"llama9\""), "{unknown}");
}

#[test]
fn a_test_of_all_models_loads_them_and_keeps_the_window_that_they_got() {
    // The machine has memory for 12,288 tokens only.
    let server = LocalServer::start(|path, request, chats| match path {
        "/api/version" => Answer::Json(json!({ "version": "0.12.3" })),
        "/api/tags" => Answer::Json(json!({ "models": [{ "name": "m:1b" }] })),
        "/api/ps" if chats > 0 => Answer::Json(
            json!({ "models": [{ "name": "m:1b", "size": 10, "size_vram": 10, "context_length": 12_288 }] }),
        ),
        "/api/ps" => Answer::Json(json!({ "models": [] })),
        "/api/show" => Answer::Json(json!({ "capabilities": ["completion", "tools"],
            "model_info": { "general.architecture": "a", "a.context_length": 40_960 } })),
        "/api/chat" => ollama_chat(request, false),
        _ => missing(),
    });
    let (test, port) = (TestEnvironment::new(), server.port());
    let found = test.json(&["reviewers", "discover", "--test", "--format", "json", "--port", &port], DONE);
    let model = &found["servers"][0]["models"][0];
    assert_eq!(server.chats()[0]["options"]["num_ctx"], json!(32_768));
    assert_eq!(
        json!([model["context_window"], model["context_window_from"], model["loaded"]]),
        json!([12_288, "served", true])
    );
    assert_eq!(model["tools"], json!("not_called"));
    assert!(
        model["settings"].as_str().is_some_and(|table| table.ends_with("context_window = 12288\ntools = false\n")),
        "{model}"
    );
}

#[test]
fn a_server_that_does_not_answer_in_time_is_not_waited_for_by_each_model() {
    let slow = LocalServer::start(|path, _, _| match path {
        "/api/version" => Answer::Json(json!({ "version": "0.12.3" })),
        "/api/tags" => Answer::Json(json!({ "models": [{ "name": "one" }, { "name": "two" }] })),
        "/api/ps" => Answer::Json(json!({ "models": [
            { "name": "one", "size": 9, "size_vram": 9, "context_length": 32768 },
            { "name": "two", "size": 9, "size_vram": 9, "context_length": 32768 },
        ]})),
        "/api/show" => Answer::Json(json!({ "capabilities": ["completion", "tools"],
            "model_info": { "general.architecture": "a", "a.context_length": 32768 } })),
        "/api/chat" => Answer::Status(504, "x-none: 1"),
        _ => missing(),
    });
    let (test, port) = (TestEnvironment::new(), slow.port());
    let verdicts = |more: &[&str]| {
        let arguments = [&["reviewers", "discover", "--port", port.as_str(), "--format", "json"], more].concat();
        let models = test.json(&arguments, DONE)["servers"][0]["models"].clone();
        [0, 1].map(|at| models[at]["tools"].clone())
    };
    assert_eq!(verdicts(&[]), ["failed", "not_tested"]);
    assert_eq!(slow.chats().len(), 1);
    assert_eq!(verdicts(&["--test"]), ["failed", "failed"], "who asks for the test of all models gets it");
}

#[test]
fn without_a_server_one_sentence_says_what_to_do() {
    let test = TestEnvironment::new();
    // A port that was free a moment ago.
    let port =
        TcpListener::bind(("127.0.0.1", 0)).expect("a port").local_addr().expect("an address").port().to_string();
    let error = test.fails(&["reviewers", "discover", "--port", &port], INCOMPLETE);
    assert_snapshot!(error.replace(&format!(":{port}"), ":[port]"), @r"
    error: no server of models answers on this machine; asked: 127.0.0.1:[port]
      hint: start Ollama (`ollama serve`, `ollama pull MODEL`) or `llama-server -m MODEL --jinja`, or name another port with --port
    ");
    let json = test.json(&["reviewers", "discover", "--port", &port, "--format", "json"], INCOMPLETE);
    assert_eq!((&json["servers"], &json["asked"]), (&json!([]), &json!([format!("127.0.0.1:{port}")])));
}

#[test]
fn hostile_servers_are_bounded_and_harmless() {
    let elsewhere = LocalServer::start(|_, _, _| missing());
    let target: &'static str = format!("location: http://127.0.0.1:{}/props", elsewhere.port).leak();
    let endless = LocalServer::start(|_, _, _| Answer::Endless(&[b'['; 64 * 1024]));
    let redirect = LocalServer::start(move |_, _, _| Answer::Status(302, target));
    let loading = LocalServer::start(|_, _, _| Answer::Status(503, "retry-after: 1"));
    let locked = LocalServer::start(|_, _, _| Answer::Status(401, "x-none: 1"));
    let web = LocalServer::start(|_, _, _| Answer::Text("text/html", "<html>".to_owned()));
    let deep = LocalServer::start(|_, _, _| Answer::Text("application/json", "[".repeat(100_000)));
    let evil = LocalServer::start(|path, _, _| match path {
        "/api/version" => Answer::Json(json!({ "version": "1\u{1b}[31m\r\nevil" })),
        "/api/tags" => Answer::Json(json!({ "models": [{ "name": "m\u{1b}]0;evil\u{7}" }, { "name": 5 }, "x",
            { "name": "a\nkind = \"command\"" }, { "name": "plain", "details": { "parameter_size": "7B\u{1b}[2J\n[x]" } }] })),
        "/api/ps" => Answer::Json(json!({ "models": { "name": "plain" } })),
        "/api/show" => {
            Answer::Json(json!({ "capabilities": "tools", "model_info": [], "parameters": "num_ctx 99999999999999" }))
        }
        _ => missing(),
    });
    let servers = [&endless, &redirect, &loading, &locked, &web, &deep, &evil];
    let ports: Vec<String> = servers.iter().map(|server| server.port()).collect();
    let mut arguments = vec!["reviewers", "discover"];
    arguments.extend(ports.iter().flat_map(|port| ["--port", port.as_str()]));
    let test = TestEnvironment::new();
    let output = test.revdeck(&arguments);
    assert_eq!(output.status.code(), Some(DONE), "{}", err(&output));
    assert!(out(&output).chars().all(|c| c == '\n' || !c.is_control()), "{:?}", out(&output));
    let names = [
        (&endless, "[endless]"),
        (&redirect, "[redirect]"),
        (&loading, "[loading]"),
        (&locked, "[locked]"),
        (&web, "[web]"),
        (&deep, "[deep]"),
        (&evil, "[evil]"),
    ];
    let text = named(&test, &out(&output), &names);
    assert_snapshot!(text, @r#"
    # Ollama 1�[[duration] evil at http://127.0.0.1:[evil]

    # plain (7B�[2J [x]), not in memory: window 32,768 tokens, as revdeck asks for it; tools not tested
    [reviewers.plain]
    kind = "ollama"
    model = "plain"
    base_url = "http://127.0.0.1:[evil]"
    context_window = 32768

    # left out: m�]0;evil� (this is no name of a model)
    # left out:  (this is no name of a model)
    # left out:  (this is no name of a model)
    # left out: a kind = "command" (this is no name of a model)

    # 127.0.0.1:[endless]: its answer is larger than 4 MiB
    # 127.0.0.1:[redirect]: it answers with a redirect (302), which is not followed
    # 127.0.0.1:[loading]: it is loading its model or is busy: try again
    # 127.0.0.1:[locked]: it wants a key: describe the reviewer yourself, with api_key_env or api_key_cmd
    # 127.0.0.1:[web]: it is no server of models that revdeck knows
    # 127.0.0.1:[deep]: it is no server of models that revdeck knows
    "#);
    assert_eq!(elsewhere.seen.lock().expect("a lock").len(), 0, "no redirect is followed");
    let toml: toml::Table = out(&output).parse().expect("TOML");
    assert_eq!(
        toml["reviewers"].as_table().map(|tables| tables.keys().cloned().collect::<Vec<_>>()),
        Some(vec!["plain".to_owned()])
    );
}
