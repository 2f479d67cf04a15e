//! Logs over smart HTTP, and signed logs.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::json;

use super::{Team, ids, review, status, sync};
use crate::env::{DONE, INCOMPLETE, TestEnvironment, USAGE, executable, run};

/// Serves a bare repository over smart HTTP by `git http-backend` until the process ends, and returns its URL.
fn serve(repository: &Path) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/{}", listener.local_addr().expect("an address"), "team.git");
    let folder = repository.parent().expect("a folder").to_owned();
    std::thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            let folder = folder.clone();
            std::thread::spawn(move || answer(connection, &folder));
        }
    });
    url
}

/// Answers one request as a CGI server does.
fn answer(mut connection: TcpStream, folder: &Path) -> Option<()> {
    let mut reader = BufReader::new(connection.try_clone().ok()?);
    let mut first = String::new();
    reader.read_line(&mut first).ok()?;
    let mut words = first.split_whitespace();
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let (mut length, mut kind, mut encoding, mut protocol) = (0, String::new(), String::new(), String::new());
    let mut is_chunked = false;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().ok()?,
            "content-type" => kind = value.to_owned(),
            "content-encoding" => encoding = value.to_owned(),
            "git-protocol" => protocol = value.to_owned(),
            "transfer-encoding" => is_chunked = value.eq_ignore_ascii_case("chunked"),
            _ => {}
        }
    }
    let body = if is_chunked { read_chunks(&mut reader)? } else { read_exactly(&mut reader, length)? };
    let mut git = Command::new("git")
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", folder)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("REMOTE_USER", "somebody")
        .env("REQUEST_METHOD", &method)
        .env("PATH_INFO", path)
        .env("QUERY_STRING", query)
        .env("CONTENT_TYPE", kind)
        .env("CONTENT_LENGTH", body.len().to_string())
        .env("HTTP_CONTENT_ENCODING", encoding)
        .env("GIT_PROTOCOL", protocol)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    let mut input = git.stdin.take()?;
    let writer = std::thread::spawn(move || input.write_all(&body));
    let output = git.wait_with_output().ok()?;
    let _ = writer.join();
    let split = output.stdout.windows(4).position(|part| part == b"\r\n\r\n")?;
    let (head, content) = (&output.stdout[..split], &output.stdout[split + 4..]);
    let head = String::from_utf8_lossy(head);
    let state = head.lines().find_map(|line| line.strip_prefix("Status: ")).unwrap_or("200 OK").to_owned();
    let lines: String =
        head.lines().filter(|line| !line.starts_with("Status")).map(|line| format!("{line}\r\n")).collect();
    let length = content.len();
    write!(connection, "HTTP/1.1 {state}\r\n{lines}Content-Length: {length}\r\nConnection: close\r\n\r\n").ok()?;
    connection.write_all(content).ok()
}

fn read_exactly(reader: &mut impl std::io::Read, length: usize) -> Option<Vec<u8>> {
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(body)
}

fn read_chunks(reader: &mut impl std::io::BufRead) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut size = String::new();
        reader.read_line(&mut size).ok()?;
        let size = usize::from_str_radix(size.trim(), 16).ok()?;
        body.extend(read_exactly(reader, size)?);
        reader.read_line(&mut String::new()).ok()?;
        if size == 0 {
            return Some(body);
        }
    }
}

#[test]
fn machines_exchange_records_over_smart_http() {
    let team = Team::new();
    let (ada, bob) = (team.machine("Ada"), team.machine("Bob"));
    team.git(&["config", "http.receivepack", "true"]);
    let url = serve(&team.remote());
    for (machine, name) in [(&ada, "ada-1"), (&bob, "bob-1")] {
        run(machine, &["team", "join", &url, "--machine", name], DONE);
    }
    let found = ids(&review(&ada));
    run(&ada, &["triage", &found[0], "dismissed", "--reason", "intended"], DONE);
    assert_eq!(sync(&ada)["sent"], json!({"decisions": 1, "reviews": 1}));
    assert_eq!(sync(&bob)["applied"], 1);
    assert_eq!(status(&bob, &found[0]), "dismissed");
    assert_eq!(sync(&bob)["received"], json!({"decisions": 0, "reviews": 0}));
}

#[test]
fn servers_that_do_not_take_or_show_the_logs_are_named_with_the_way_out() {
    let team = Team::new();
    let ada = team.machine("Ada");
    let url = serve(&team.remote());
    run(&ada, &["team", "join", &url, "--machine", "ada-1"], DONE);
    review(&ada);
    let hook = team.remote().join("hooks/pre-receive");
    let only_branches = "#!/bin/sh\nwhile read -r old new name; do\n  case $name in refs/heads/*|refs/tags/*) ;;\n    *) echo 'only \
         refs/heads and refs/tags here' >&2; exit 1 ;;\n  esac\ndone\n";
    let elsewhere = "`revdeck team join REMOTE`";
    for (title, key, value, said, way_out) in [
        ("no right to push", "http.receivepack", "false", "git push with", "with the right to push"),
        ("hidden from pushes", "receive.hideRefs", "refs/revdeck", "(deny updating a hidden ref)", "receive.hideRefs"),
        ("hidden from both", "transfer.hideRefs", "refs/revdeck", "(deny updating a hidden ref)", "transfer.hideRefs"),
        (
            "branches and tags alone",
            "",
            "",
            "(pre-receive hook declined): only refs/heads and refs/tags here",
            "a remote of its own for the records works",
        ),
        ("no right to read", "http.uploadpack", "false", "git ls-remote with", "the remote may not be read here"),
    ] {
        if key.is_empty() {
            executable(&hook, only_branches);
        } else {
            team.git(&["config", "http.receivepack", "true"]);
            team.git(&["config", key, value]);
        }
        let failed = ada.errors(&["sync"], INCOMPLETE);
        assert_eq!(failed.lines().count(), 2, "{title}: {failed}");
        for words in [said, way_out, elsewhere] {
            assert!(failed.contains(words), "{title}: {failed}");
        }
        match key.is_empty() {
            true => std::fs::remove_file(&hook).expect("removed"),
            false => drop(team.git(&["config", "--unset", key])),
        }
    }
    // Nothing was lost on the way.
    team.git(&["config", "http.receivepack", "true"]);
    assert_eq!(sync(&ada)["sent"]["reviews"], 1);
    // Logs that are taken and not shown are noticed by the next exchange.
    team.git(&["config", "uploadpack.hideRefs", "refs/revdeck"]);
    let failed = ada.errors(&["sync"], INCOMPLETE);
    assert!(failed.contains("it hides refs/revdeck") && failed.contains("uploadpack.hideRefs"), "{failed}");
}

/// Lets a machine sign with an ssh key of its own, and returns the file with its public key.
pub fn sign_with_ssh(machine: &TestEnvironment) -> PathBuf {
    let key = machine.home().join("key");
    std::fs::create_dir_all(machine.home()).expect("a folder");
    let made = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-C", "ada", "-f"]).arg(&key).status();
    assert!(made.expect("ssh-keygen starts").success());
    machine.git(&["config", "gpg.format", "ssh"]);
    machine.git(&["config", "user.signingKey", key.to_str().expect("text")]);
    machine.settings("[team]\nsign = \"always\"\n");
    key.with_extension("pub")
}

#[test]
fn a_signed_log_names_its_signer_and_an_unknown_key_is_named_so() {
    let team = Team::new();
    let (ada, bob) = (team.member("Ada"), team.member("Bob"));
    let key = sign_with_ssh(&ada);
    let found = ids(&review(&ada));
    sync(&ada);
    let signed = |bob: &TestEnvironment| {
        bob.json(&["team", "--format", "json"], DONE)["machines"]["ada-1"]["signed"].as_str().expect("words").to_owned()
    };
    sync(&bob);
    assert_eq!(signed(&bob), "signed by an unknown key");
    // Bob trusts the key.
    let trusted = bob.home().join("allowed");
    let key = std::fs::read_to_string(key).expect("a key");
    std::fs::write(&trusted, format!("ada@example.org {key}")).expect("written");
    bob.git(&["config", "gpg.ssh.allowedSignersFile", trusted.to_str().expect("text")]);
    run(&ada, &["triage", &found[0], "dismissed", "--reason", "intended"], DONE);
    sync(&ada);
    sync(&bob);
    assert_eq!(signed(&bob), "signed by ada@example.org");
    // A key that cannot sign stops the exchange, and nothing is lost.
    executable(ada.home().join("broken"), "#!/bin/sh\nexit 1\n");
    ada.git(&["config", "gpg.ssh.program", ada.home().join("broken").to_str().expect("text")]);
    run(&ada, &["triage", &found[1], "addressed"], DONE);
    let failed = ada.errors(&["sync"], INCOMPLETE);
    assert!(failed.contains("error: git cannot sign in [repo]"), "{failed}");
    ada.settings("");
    assert_eq!(sync(&ada)["sent"]["decisions"], 1);
    sync(&bob);
    assert_eq!(signed(&bob), "unsigned");
}

#[test]
fn a_machine_keeps_its_name_when_it_leaves_and_joins_again() {
    let team = Team::new();
    let ada = team.machine("Ada");
    run(&ada, &["team", "join"], DONE);
    let name = |machine: &TestEnvironment| {
        machine.json(&["team", "--format", "json"], DONE)["membership"]["machine"].as_str().expect("a name").to_owned()
    };
    let first = name(&ada);
    run(&ada, &["team", "leave"], DONE);
    run(&ada, &["team", "join"], DONE);
    assert_eq!(name(&ada), first);
    let bob = team.machine("Bob");
    run(&bob, &["team", "join"], DONE);
    assert_ne!(name(&bob), first);
    let renamed = ada.fails(&["team", "join", "--machine", "ada-2"], USAGE);
    assert!(renamed.contains("hint: records carry the name of their machine, so it stays"), "{renamed}");
    assert_eq!(name(&ada), first);
}
