//! Vectors from a server on loopback as one more ranking signal, and servers that are slow, wrong or gone.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use revdeck::domain::{RunEvent, RunStatus};
use rstest::rstest;
use serde_json::{Value, json};

use crate::env::TestEnvironment;
use crate::llm::server::{Model, calls};
use crate::runner::place::{Place, wait_for};

/// A key with a valid shape that was never in use, in two parts: the whole text would alarm every secret scanner.
const AWS: &str = concat!("AKI", "AQ3EGRVZ7TNWLXJ5D");
const KEY: &str = "sk-vectors-0123456789abcdefghij";

/// The answer of a server to texts; with `None` it sends nothing until the client closes the connection.
pub type Says = dyn Fn(&[String]) -> Option<(u16, String)> + Send + Sync;

#[derive(Debug, Clone)]
pub struct Asked {
    head: String,
    pub texts: Vec<String>,
}

pub struct Server {
    pub port: u16,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Server {
    pub fn start(says: Box<Says>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port on loopback");
        let port = listener.local_addr().expect("an address").port();
        let (asked, says) = (Arc::new(Mutex::new(Vec::new())), Arc::<Says>::from(says));
        let ours = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (ours, says) = (Arc::clone(&ours), Arc::clone(&says));
                std::thread::spawn(move || serve(stream, &ours, says.as_ref()));
            }
        });
        Self { port, asked }
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().expect("no panic before").clone()
    }
}

fn serve(mut stream: TcpStream, asked: &Mutex<Vec<Asked>>, says: &Says) -> std::io::Result<()> {
    let (mut bytes, mut piece) = (Vec::new(), [0; 16 * 1024]);
    let (head, body) = loop {
        let read = stream.read(&mut piece)?;
        if read == 0 {
            return Ok(());
        }
        bytes.extend_from_slice(&piece[..read]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length =
            head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
        if body.len() >= length.unwrap_or(0) {
            break (head.to_owned(), body.to_owned());
        }
    };
    let body: Value = serde_json::from_str(&body).unwrap_or_default();
    let texts: Vec<String> = serde_json::from_value(body["input"].clone()).unwrap_or_default();
    asked.lock().expect("no panic before").push(Asked { head, texts: texts.clone() });
    match says(&texts) {
        Some((status, body)) => write!(
            stream,
            "HTTP/1.1 {status} said\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        ),
        None => {
            while stream.read(&mut piece)? > 0 {}
            Ok(())
        }
    }
}

/// Returns a vector: texts about money point in one direction, all others in another.
fn vector(text: &str) -> Vec<f32> {
    match text.contains("price") || text.contains("Tariff") {
        true => vec![2.0, 0.1, 0.0],
        false => vec![0.0, 0.3, 4.0],
    }
}

pub fn openai(texts: &[String]) -> Option<(u16, String)> {
    // The server returns the rows in another order than the request.
    let rows = texts.iter().enumerate().rev();
    let rows: Vec<Value> = rows.map(|(index, text)| json!({"index": index, "embedding": vector(text)})).collect();
    Some((200, json!({"data": rows, "model": "m"}).to_string()))
}

fn ollama(texts: &[String]) -> Option<(u16, String)> {
    let vectors: Vec<Vec<f32>> = texts.iter().map(|text| vector(text)).collect();
    Some((200, json!({"embeddings": vectors}).to_string()))
}

/// Creates a changed price, a tariff that shares none of its words, and unrelated files.
fn shop() -> Place {
    let place = Place::new();
    fill_shop(&place.test);
    place
}

/// Commits a price, a tariff that shares none of its words, and unrelated files, and changes the price.
pub fn fill_shop(test: &TestEnvironment) {
    test.read_everything();
    let price = |item: &str| format!("def lookup_price(item):\n    return table[{item}]\n");
    test.write("src/price.py", price("item"));
    test.write(
        "zoo/tariff.py",
        format!("ACCESS = \"{AWS}\"\n\n\nclass Tariff:\n    def zone(self, weight):\n        return weight\n"),
    );
    for number in 0..30 {
        let text = format!("def walk_{number}(road):\n    return road.next_{number}\n");
        test.write(&format!("other/part_{number}.py"), text);
    }
    test.commit("A shop");
    test.write("src/price.py", price("item, day"));
}

fn settings(place: &Place, kind: &str, port: u16, more: &str) {
    place.settings(&format!(
        "[context.embeddings]\nkind = \"{kind}\"\nmodel = \"m\"\nbase_url = \"http://127.0.0.1:{port}\"\napi_key_cmd = \"printf {KEY}\"\n{more}"
    ));
}

fn context(place: &Place) -> Value {
    let answer = place.revdeck(&["context", "worktree", "--budget", "4000", "--format", "json"]);
    serde_json::from_str(&answer).expect("JSON")
}

/// Returns the position of the first section of a file.
fn place_of(context: &Value, path: &str) -> usize {
    let sections = context["sections"].as_array().expect("sections");
    sections.iter().position(|section| section["path"] == path).unwrap_or(usize::MAX)
}

#[rstest]
#[case::openai("openai", Box::new(openai), "POST /v1/embeddings ")]
#[case::ollama("ollama", Box::new(ollama), "POST /api/embed ")]
fn what_means_the_same_leads_and_is_asked_for_once(#[case] kind: &str, #[case] says: Box<Says>, #[case] line: &str) {
    let place = shop();
    let plain = context(&place);
    let server = Server::start(says);
    settings(&place, kind, server.port, "");
    let meant = context(&place);
    assert_eq!(meant["notes"], json!([]));
    let score = |context: &Value| context["sections"][place_of(context, "zoo/tariff.py")]["score"].as_f64();
    assert!(score(&meant) > score(&plain), "{meant:#}");
    let tariff = &meant["sections"][place_of(&meant, "zoo/tariff.py")];
    assert!(tariff["factors"]["semantic"].as_f64() > Some(1.0), "{tariff:#}");
    assert!(
        plain["sections"].as_array().expect("sections").iter().all(|section| section["factors"]["semantic"].is_null())
    );
    let asked = server.asked();
    assert!(asked.len() > 1 && asked.iter().all(|asked| asked.texts.len() <= 16), "{}", asked.len());
    assert!(asked.iter().all(|asked| asked.head.starts_with(line)), "{}", asked[0].head);
    assert!(asked.iter().all(|asked| asked.head.to_lowercase().contains(&format!("authorization: bearer {KEY}"))));
    let texts: Vec<&String> = asked.iter().flat_map(|asked| &asked.texts).collect();
    assert!(texts.iter().any(|text| text.contains("«secret:")) && texts.iter().all(|text| !text.contains(AWS)));
    // Known vectors are not requested again.
    assert_eq!(context(&place), meant);
    assert_eq!(server.asked().len(), asked.len());
}

/// Returns the lines of the account of the day.
fn paid(place: &Place) -> Vec<Value> {
    let account = std::fs::read_to_string(place.test.home().join("state/spending.ndjson")).unwrap_or_default();
    account.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn vectors_count_for_the_budgets() {
    let place = shop();
    let server = Server::start(Box::new(openai));
    settings(&place, "openai", server.port, "");
    context(&place);
    let sent: usize = server.asked().iter().flat_map(|asked| &asked.texts).map(String::len).sum();
    let (asked, account) = (server.asked().len(), paid(&place));
    assert_eq!((account.len(), account[0]["reviewer"].as_str()), (1, Some("context.embeddings")), "{account:?}");
    let tokens = account[0]["tokens"].as_u64().expect("tokens");
    assert!(account[0]["estimated"] == json!(true) && tokens >= sent as u64 / 4, "{account:?}");
    // Vectors that are known cost nothing.
    context(&place);
    assert_eq!(paid(&place).len(), 1);

    // Another model, for which nothing is known and the day leaves nothing.
    let budget = |most: u64| {
        settings(&place, "openai", server.port, &format!("[budget]\nday_tokens = {most}\n"));
        let file = place.test.home().join("config.toml");
        let text = std::fs::read_to_string(&file).expect("settings");
        std::fs::write(&file, text.replace("model = \"m\"", "model = \"n\"")).expect("settings");
    };
    budget(tokens);
    let notes = context(&place)["notes"].to_string();
    assert!(notes.contains("without what code means: a budget is used up"), "{notes}");
    assert_eq!((server.asked().len(), paid(&place).len()), (asked, 1));

    // The day leaves a part of it.
    budget(tokens + tokens / 2);
    let notes = context(&place)["notes"].to_string();
    assert!(notes.contains("a budget leaves code unweighed by meaning"), "{notes}");
    let account = paid(&place);
    assert!(server.asked().len() > asked && account.len() == 2, "{account:?}");
    assert!(account[1]["tokens"].as_u64().is_some_and(|spent| spent <= tokens / 2), "{account:?}");
}

#[test]
fn vectors_of_this_machine_cost_nothing() {
    let place = shop();
    let server = Server::start(Box::new(ollama));
    settings(&place, "ollama", server.port, "");
    context(&place);
    assert!(!server.asked().is_empty() && paid(&place).is_empty());
}

#[test]
fn a_file_that_neither_words_nor_history_find_is_brought_in_by_its_vector() {
    let place = shop();
    // More files with words of the change than a ranking looks at closely.
    for number in 0..160 {
        let text = format!("def walk_{number}(item, day):\n    return table[item, day, {number}]\n");
        place.test.write(&format!("src/part_{number}.py"), text);
    }
    place.test.git(&["add", "src/part_*.py"]);
    place.test.git(&["commit", "-q", "-m", "Near"]);
    let plain = context(&place);
    assert_eq!(place_of(&plain, "zoo/tariff.py"), usize::MAX);
    let server = Server::start(Box::new(openai));
    settings(&place, "openai", server.port, "");
    // The first context requests the vectors of files, which the next one compares.
    context(&place);
    let asked = server.asked().len();
    let texts: Vec<String> = server.asked().into_iter().flat_map(|asked| asked.texts).collect();
    assert!(texts.contains(&"zoo/tariff.py\nconstant ACCESS\nclass Tariff\nfunction Tariff.zone\n".to_owned()));
    assert!(texts.iter().all(|text| !text.contains(AWS)), "{texts:#?}");
    let meant = context(&place);
    let tariff = &meant["sections"][place_of(&meant, "zoo/tariff.py")];
    assert!(tariff["factors"]["semantic"].as_f64() > Some(1.0), "{meant:#}");
    assert_eq!(meant["notes"], json!([]));
    // No vector of a file is requested again, and without vectors nothing is as if there had been some.
    let of_files = |texts: &[Asked]| {
        texts.iter().flat_map(|asked| asked.texts.clone()).filter(|text| text.contains(".py\n")).count()
    };
    assert_eq!(of_files(&server.asked()[asked..]), 0);
    place.settings("");
    assert_eq!(context(&place), plain);
}

#[test]
fn pieces_without_vectors_yet_are_said() {
    let place = shop();
    for number in 0..70 {
        let walk = |step: usize| format!("def run_{number}_{step}(road):\n    return road.next_{number}_{step}\n\n\n");
        place.test.write(&format!("far/part_{number}.py"), (0..10).map(walk).collect::<String>());
    }
    place.test.git(&["add", "far"]);
    place.test.git(&["commit", "-q", "-m", "Far"]);
    let server = Server::start(Box::new(openai));
    settings(&place, "openai", server.port, "");
    let said = || context(&place)["notes"].to_string();
    let first = said();
    assert!(first.contains(" of code not yet weighed by meaning"), "{first}");
    assert_eq!(said(), "[]", "all of them came with the second");
}

fn rows(of: impl Fn(usize) -> Value, count: impl Fn(usize) -> usize) -> impl Fn(&[String]) -> Option<(u16, String)> {
    move |texts| {
        let rows = (0..count(texts.len())).map(|index| json!({"index": index, "embedding": of(index)}));
        Some((200, json!({"data": rows.collect::<Vec<_>>()}).to_string()))
    }
}

#[rstest]
#[case::a_page(Box::new(|_: &[String]| Some((200, "<html><title>Log in</title></html>".to_owned()))))]
#[case::an_error(Box::new(|_: &[String]| Some((500, "{\"error\":{\"message\":\"out of memory\"}}".to_owned()))))]
#[case::nothing(Box::new(|_: &[String]| Some((200, String::new()))))]
#[case::too_few(Box::new(rows(|_| json!([1.0, 0.0]), |count| count - 1)))]
#[case::too_many(Box::new(rows(|_| json!([1.0, 0.0]), |count| count + 1)))]
#[case::of_many_sizes(Box::new(rows(|at| if at == 0 { json!([1.0]) } else { json!([1.0, 2.0]) }, |count| count)))]
#[case::of_no_size(Box::new(rows(|_| json!([]), |count| count)))]
#[case::of_no_direction(Box::new(rows(|_| json!([0.0, 0.0]), |count| count)))]
#[case::no_numbers(Box::new(rows(|_| json!([null, "NaN"]), |count| count)))]
#[case::huge(Box::new(rows(|_| json!(vec![0.5; 100_000]), |count| count)))]
#[case::slow(Box::new(|_: &[String]| None))]
fn a_server_that_is_slow_or_wrong_costs_the_signal_and_nothing_else(#[case] says: Box<Says>) {
    let place = shop();
    let plain = context(&place);
    let server = Server::start(says);
    settings(&place, "openai", server.port, "seconds = 2\n");
    let mut context = context(&place);
    let notes = context["notes"].as_array().expect("notes").clone();
    assert!(
        notes.len() == 1
            && notes[0].as_str().is_some_and(|note| note.starts_with("without what code means: 127.0.0.1")),
        "{notes:?}"
    );
    assert!(!notes[0].to_string().contains(KEY));
    context["notes"] = json!([]);
    assert_eq!(context, plain);
}

#[test]
fn a_review_goes_on_without_a_server_and_says_so_once() {
    let place = shop();
    let model = Model::start(vec![calls(&[("finish", json!({ "summary": "done" }))])]);
    // No server listens on this port any more.
    let port = TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr()).expect("a port").port();
    let reviewer = format!(
        "[reviewers.m]\nkind = \"openai\"\nmodel = \"gpt-4o-test\"\nbase_url = \"{}\"\napi_key_cmd = \"printf {KEY}\"\n",
        model.url()
    );
    settings(&place, "openai", port, &reviewer);
    let run = place.review(&["--reviewer", "m", "--wait"]);
    assert_eq!(place.run(&run).status, RunStatus::Completed);
    let told = place.events(&run).into_iter().filter_map(|event| match event {
        RunEvent::Surrounded { context } => Some(context.notes),
        _ => None,
    });
    let notes: Vec<String> = told.flatten().filter(|note| note.contains("what code means")).collect();
    assert!(notes.len() == 1 && notes[0].contains("no connection"), "{notes:?}");
}

#[test]
fn a_run_that_is_cancelled_while_it_waits_for_vectors_ends_by_itself() {
    let place = shop();
    let model = Model::start(vec![calls(&[("finish", json!({ "summary": "done" }))])]);
    let server = Server::start(Box::new(|_: &[String]| None));
    let reviewer = format!(
        "seconds = 600\n[reviewers.m]\nkind = \"openai\"\nmodel = \"gpt-4o-test\"\nbase_url = \"{}\"\napi_key_cmd = \"printf {KEY}\"\n",
        model.url()
    );
    settings(&place, "openai", server.port, &reviewer);
    let run = place.review(&["--reviewer", "m"]);
    wait_for("somebody who asks for vectors", || (!server.asked().is_empty()).then_some(()));
    let answer = place.revdeck(&["cancel", run.as_str(), "--reason", "enough"]);
    assert!(!answer.contains("did not answer"), "{answer}");
    assert_eq!(place.run(&run).status, RunStatus::Cancelled);
    assert_eq!(model.asked(), 0);
    assert!(!place.events(&run).iter().any(|event| matches!(event, RunEvent::Surrounded { .. })));
}
