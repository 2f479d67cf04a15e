//! Secrets of every kind, planted in a repository and looked for at every place where text leaves or stays.
//!
//! The kinds are data: `tests/secrets/*.toml`. A place fails if a value, or 8 characters of it in a row, are found there.

mod kinds;

use std::path::Path;

use revdeck::masking::Mask;
use serde_json::json;

use crate::chance::variable;
use crate::embeddings::{Server, openai};
use crate::env::{TestEnvironment, executable, files_below};
use crate::llm::server::{Model, calls, says};
use crate::runner::place::Place;
use kinds::{PlantedSecret, all_kinds, find_leaks, plant};

/// Checks that none of the secrets is in a text.
#[track_caller]
fn assert_holds_none(place: &str, secrets: &[PlantedSecret], text: &[u8]) {
    let leaks = find_leaks(secrets, text);
    assert!(leaks.is_empty(), "{place}: {} of {} kinds: {leaks:#?}", leaks.len(), secrets.len());
}

#[test]
fn no_kind_is_in_a_masked_text() {
    let mut leaks = Vec::new();
    let rounds = variable("REVDECK_TEST_SEEDS", 5) as u64;
    for seed in 1..=rounds {
        for secret in plant(&all_kinds(), seed) {
            let masked = Mask::On.mask_text(Some(&secret.masked_path()), &secret.text).into_owned();
            let path = Mask::On.mask_key_shapes(&secret.path).into_owned();
            for text in [&masked, &path] {
                leaks.extend(find_leaks(std::slice::from_ref(&secret), text.as_bytes()));
            }
            let again = Mask::On.mask_text(Some(&secret.masked_path()), &masked);
            assert_eq!(again, masked, "{}: to mask again changes nothing", secret.name);
            assert_eq!(masked.lines().count(), secret.text.lines().count(), "{}", secret.name);
        }
    }
    assert!(leaks.is_empty(), "{} leaks in {rounds} rounds: {leaks:#?}", leaks.len());
}

/// Creates a repository whose last commit plants every kind, on a branch with a secret in its name.
fn repository(secrets: &[PlantedSecret]) -> Place {
    let place = Place::new();
    place.test.write("src/main.py", "def main():\n    return 1\n");
    place.test.commit("begin");
    place.test.git(&["checkout", "-q", "-b", &format!("fix/{}", secrets[0].value)]);
    for secret in secrets {
        place.test.write(&secret.path, &secret.text);
    }
    place.test.write("src/main.py", "def main():\n    return 2\n");
    // `-f`: a kind may have a name that the ignore rules of the machine cover.
    place.test.git(&["add", "-A", "-f"]);
    place.test.git(&["commit", "-q", "-m", &format!("Use {}", secrets[0].value)]);
    place
}

/// Returns the kinds whose value is not in a path: a path stays in the store as the name of the file.
fn without_paths(secrets: &[PlantedSecret]) -> Vec<PlantedSecret> {
    secrets.iter().filter(|secret| !secret.path.contains(&secret.value)).cloned().collect()
}

/// Returns all bytes of files below a folder of revdeck's home.
fn written(place: &Place, folder: &str) -> Vec<u8> {
    files_below(&place.test.home().join(folder))
        .into_iter()
        .flat_map(|file| std::fs::read(file).unwrap_or_default())
        .collect()
}

/// Returns the turns of a model that uses every tool on every planted file.
fn curious_turns(secrets: &[PlantedSecret]) -> Vec<crate::llm::server::Turn> {
    let reads: Vec<(&str, serde_json::Value)> = secrets
        .iter()
        .map(|secret| ("read_file", json!({ "path": secret.path, "start_line": 1, "end_line": 50 })))
        .collect();
    let mut turns: Vec<_> = reads.chunks(30).map(calls).collect();
    turns.push(calls(&[
        ("codebase_search", json!({ "pattern": "." })),
        ("codebase_search", json!({ "pattern": "password|secret|token|key", "is_regex": true })),
        ("list_files", json!({ "path": "" })),
        ("show_diff", json!({ "path": "src/main.py" })),
        ("static_findings", json!({})),
        ("find_symbol", json!({ "name": "main" })),
    ]));
    turns.push(says("```json\n{\"findings\": []}\n```"));
    turns
}

#[test]
fn no_kind_reaches_a_model_a_cache_the_store_or_an_output() {
    let secrets = plant(&all_kinds(), 7);
    let place = repository(&secrets);
    let model = Model::start(curious_turns(&secrets));
    let vectors = Server::start(Box::new(openai));
    place.settings(&format!(
        "[context]\ntokens = 20000\n[context.embeddings]\nkind = \"openai\"\nmodel = \"m\"\nbase_url = \"http://127.0.0.1:{}\"\n\
         [reviewers.m]\nkind = \"openai\"\nmodel = \"gpt-4o-test\"\nbase_url = \"{}\"\napi_key_cmd = \"printf sk-made-up\"\nattempts = 1\n",
        vectors.port,
        model.url()
    ));
    let run = place.review(&["--range", "HEAD~1..HEAD", "--reviewer", "m", "--wait"]);
    let requests: Vec<String> = model.requests().iter().map(ToString::to_string).collect();
    assert!(requests.len() >= 4 && requests[0].contains("«secret"), "{}", requests.len());
    assert_holds_none("requests to the model", &secrets, requests.join("\n").as_bytes());

    place.review(&["--range", "HEAD~1..HEAD", "--reviewer", "builtin", "--wait"]);
    let found = place.revdeck(&["findings", "--status", "all", "--format", "json"]);
    assert!(found.contains("HARDCODED_CONFIGURATION"), "{found}");
    let context = place.revdeck(&["context", "range:HEAD~1..HEAD", "--budget", "20000"]);
    assert!(context.contains("«secret"), "{context}");
    let shown = |arguments: &[&str]| place.revdeck(arguments);
    let outputs = [
        context,
        found,
        shown(&["context", "range:HEAD~1..HEAD", "--budget", "20000", "--format", "json"]),
        shown(&["findings", "--status", "all"]),
        shown(&["ledger"]),
        shown(&["runs"]),
    ]
    .join("\n");
    let named = without_paths(&secrets);
    assert_holds_none("outputs", &named, outputs.as_bytes());
    assert_holds_none("ledger", &secrets, shown(&["ledger"]).as_bytes());
    for id in place.finding_ids(&place.newest().expect("a run")) {
        assert_holds_none("show", &named, shown(&["show", id.as_str()]).as_bytes());
    }
    let texts: Vec<String> = vectors.asked().into_iter().flat_map(|asked| asked.texts).collect();
    assert!(!texts.is_empty(), "nothing was sent for vectors");
    assert_holds_none("texts sent for vectors", &secrets, texts.join("\n").as_bytes());
    // The name of the branch is a part of the record.
    let stored: Vec<PlantedSecret> = named.into_iter().skip(1).collect();
    assert!(place.run(&run).status.is_terminal());
    assert_holds_none("store", &stored, &written(&place, "state"));
    assert_holds_none("logs", &stored, &written(&place, "logs"));
    assert_holds_none("index and caches", &secrets, &written(&place, "cache"));
}

/// A script that prints everything that it can read in its folder and in its repository.
const NOSY: &str = "cat > /dev/null\n\
    find . -type f -not -path './.git/*' -exec cat {} + > \"$HOME/seen\" 2>&1\n\
    git log --all --format=%B -p >> \"$HOME/seen\" 2>&1\n\
    git show HEAD:.env >> \"$HOME/seen\" 2>&1\n\
    git branch -a >> \"$HOME/seen\" 2>&1\n\
    git rev-list --objects --all HEAD >> \"$HOME/seen\" 2>&1\n\
    git cat-file --batch-all-objects --batch >> \"$HOME/seen\" 2>&1\n\
    cat .git/objects/info/alternates >> \"$HOME/seen\" 2>&1\n\
    find . >> \"$HOME/seen\"\n\
    git diff --stat HEAD~1 > \"$HOME/change\" 2>&1\n";

/// Adds an agent to a place, as reviewer and fixer.
fn with_agent(place: &Place, script: &str, more: &str) {
    let file = place.test.home().join("bin/robot");
    executable(&file, format!("#!/bin/sh\n{NOSY}{script}\n"));
    place.settings(&format!(
        "[resolve]\nreviewer = \"robot\"\n[reviewers.robot]\nkind = \"command\"\ncommand = [{:?}]\n{more}\n",
        file.to_str().expect("UTF-8")
    ));
}

fn home(test: &TestEnvironment) -> &Path {
    Box::leak(test.home().into_boxed_path()).parent().expect("a folder")
}

fn seen(place: &Place) -> Vec<u8> {
    std::fs::read(home(&place.test).join("seen")).expect("the agent ran")
}

/// A value of a file that is untracked, and of one that is ignored as well.
const UNTRACKED: &str = "untracked-0123456789-value";
const IGNORED: &str = "ignored-0123456789-value";

/// Creates the repository with secret files beside the planted kinds, in the worktree only.
fn repository_with_files(secrets: &[PlantedSecret]) -> Place {
    let place = repository(secrets);
    place.test.write(".git/info/exclude", "build/\n");
    place.test.write(".env", format!("NAME={UNTRACKED}\n"));
    place.test.write("build/notes.txt", IGNORED);
    place.test.write("src/main.py", "def main():\n    return 3\n");
    place
}

#[test]
fn an_agent_that_reviews_finds_no_secret_in_its_checkout() {
    let secrets = plant(&all_kinds(), 11);
    let place = repository_with_files(&secrets);
    with_agent(&place, "echo '{\"findings\": []}'", "");
    for scope in ["--commit=HEAD", "--worktree"] {
        place.review(&[scope, "--reviewer", "robot", "--wait"]);
        let seen = seen(&place);
        let text = String::from_utf8_lossy(&seen);
        assert!(text.contains("«secret") && text.contains("def main()"), "{scope}: {text}");
        assert!(!text.contains(UNTRACKED) && !text.contains(IGNORED), "{scope}");
        assert_holds_none(scope, &secrets, &seen);
        let change = std::fs::read_to_string(home(&place.test).join("change")).expect("the agent ran");
        assert!(change.contains("src/main.py"), "{scope}: {change}");
    }
}

#[test]
fn an_agent_with_the_switch_off_reads_values_and_still_no_secret_file() {
    let secrets = plant(&all_kinds(), 12);
    let place = repository_with_files(&secrets);
    with_agent(&place, "echo '{\"findings\": []}'", "mask_secrets = false");
    place.review(&["--worktree", "--reviewer", "robot", "--wait"]);
    let seen = seen(&place);
    assert!(find_leaks(&secrets, &seen).len() > 80, "the values are there");
    let text = String::from_utf8_lossy(&seen);
    assert!(!text.contains(UNTRACKED) && !text.contains(IGNORED));
}

#[test]
fn an_agent_that_fixes_gets_real_values_and_its_patch_applies() {
    let place = Place::new();
    place.test.write(
        "wide.py",
        format!(
            "# {}\ndef f(a, b, c, d, e, f, g, h):\n    return call(a, b, c, d, e, f, g, h)\n",
            concat!("gh", "p_x8Kq2mVb7TzR4nLw9YcJ1sDf6HgP3aEo5UiX")
        ),
    );
    place.test.commit("one");
    place.test.write(".env", format!("NAME={UNTRACKED}\n"));
    with_agent(&place, "sed -i 's/a, b, c, d, e, f, g, h/options/g' wide.py; echo Done.", "");
    let run = place.review(&["--range", "HEAD~1..HEAD", "--reviewer", "builtin", "--wait"]);
    let output = place.output(&run).expect("an output");
    let wide = output.findings.iter().find(|finding| finding.line_start == 2).expect("a finding");
    place.revdeck(&["fix", wide.finding_id.as_str(), "--wait"]);
    let seen = seen(&place);
    let text = String::from_utf8_lossy(&seen);
    assert!(text.contains("x8Kq2mVb7") && !text.contains(UNTRACKED), "{text}");
    place.revdeck(&["fix", "apply", "latest"]);
    let now = std::fs::read_to_string(place.test.repo().join("wide.py")).expect("a file");
    assert!(now.contains("def f(options)") && now.contains("x8Kq2mVb7"), "{now}");
}

/// Counts the masks in the repositories of `REVDECK_MASK_REPOSITORIES` (separated as in `PATH`) and prints each of them, for a
/// person to judge.
#[test]
#[ignore = "a campaign: needs repositories"]
#[allow(clippy::print_stdout, reason = "a campaign prints its figures")]
fn campaign_masks_in_public_repositories() {
    let folders = std::env::var_os("REVDECK_MASK_REPOSITORIES").unwrap_or_default();
    for folder in std::env::split_paths(&folders) {
        let (mut lines, mut masks, mut bytes, mut spent) = (0, 0, 0, std::time::Duration::ZERO);
        let listed =
            std::process::Command::new("git").current_dir(&folder).args(["ls-files", "-z"]).output().expect("git");
        for path in String::from_utf8_lossy(&listed.stdout).split_terminator('\0') {
            let Ok(text) = std::fs::read_to_string(folder.join(path)) else { continue };
            (lines, bytes) = (lines + text.lines().count(), bytes + text.len());
            let began = std::time::Instant::now();
            let masked = Mask::On.mask_text(Some(path), &text);
            spent += began.elapsed();
            for (number, (line, shown)) in text.lines().zip(masked.lines()).enumerate() {
                if line != shown {
                    masks += 1;
                    let cut = |line: &str| line.trim().chars().take(160).collect::<String>();
                    println!("{path}:{}: {} | {}", number + 1, cut(shown), cut(line));
                }
            }
        }
        let rate = f64::from(masks) * 1e4 / lines.max(1) as f64;
        let speed = bytes as f64 / 1e6 / spent.as_secs_f64();
        println!(
            "== {}: {masks} masked lines in {lines} lines, {rate:.2} per 10,000; {speed:.1} MB/s",
            folder.display()
        );
    }
}
