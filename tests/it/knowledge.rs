//! Integration tests: `revdeck knowledge` with real processes and files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use insta::{allow_duplicates, assert_snapshot};
use revdeck::domain::PatternId;
use rstest::rstest;
use serde_json::{Value, json};

use crate::env::{DONE, INCOMPLETE, TestEnvironment, USAGE, err, files_below, lines_with, run};
use crate::runner::place::poll;

fn origin(n: usize) -> String {
    format!("m_{n:026}")
}

/// Returns two code forms that differ for every `n` and are not in the base that comes with revdeck.
fn forms(n: usize) -> (String, String) {
    let arguments: Vec<&str> = (0..12).map(|bit| if n >> bit & 1 == 0 { "NUMBER" } else { "STRING" }).collect();
    let call = |name: &str| format!("{name} ( {} )", arguments.join(" , "));
    (call("FUNCTION_NAME"), call("FUNCTION_NAME_2"))
}

fn pattern(n: usize, origin: &str, frequency: u32) -> Value {
    let (broken, fixed) = forms(n);
    json!({
        "id": PatternId::from_forms("python", &broken, &fixed).as_str(),
        "language": "python",
        "stance": "mistake",
        "edit": "wrong_call",
        "kind": "CORRECTNESS",
        "broken": broken,
        "fixed": fixed,
        "evidence": "addressed",
        "counts": { origin: { "frequency": frequency, "successes": 2, "failures": 1 } },
        "first_seen": "2026-01-01T00:00:00Z",
        "last_seen": "2026-02-01T00:00:00Z",
    })
}

fn write(test: &TestEnvironment, name: &str, patterns: &[Value]) -> PathBuf {
    test.write(name, json!({ "version": 1, "patterns": patterns }).to_string())
}

fn path(path: &Path) -> &str {
    path.to_str().expect("text")
}

#[track_caller]
fn knowledge(test: &TestEnvironment, arguments: &[&str]) -> String {
    run(test, &[&["knowledge"], arguments].concat(), DONE)
}

#[track_caller]
fn json_of(test: &TestEnvironment, arguments: &[&str]) -> Value {
    test.json(&[&["knowledge"], arguments, &["--format", "json"]].concat(), DONE)
}

#[test]
fn without_a_subcommand_the_totals_the_best_patterns_and_the_precision_are_shown() {
    let test = TestEnvironment::new();
    test.write("a.py", "x = 1\n");
    test.commit("one");
    let text = knowledge(&test, &[]);
    let precision = lines_with(&text, |line| line.starts_with("precision"));
    assert_snapshot!(precision, @"precision  nothing was learned yet; too few decisions: 0 of 20");
    assert_eq!(text.lines().filter(|line| line.starts_with("k_")).count(), 10, "{text}");
    let shown = json_of(&test, &[]);
    let stats = json_of(&test, &["stats"]);
    assert_eq!((&shown["totals"], shown["top"].as_array().map(Vec::len)), (&stats["totals"], Some(10)));
    let none = json!({ "addressed": 0, "dismissed": 0, "share": null, "at_least": null });
    assert_eq!(shown["precision"], json!({ "since": null, "min_decisions": 20, "before": none, "after": none }));
}

/// Returns the error message of a command that fails.
#[track_caller]
fn fails(test: &TestEnvironment, arguments: &[&str], code: i32) -> String {
    test.fails(&[&["knowledge"], arguments].concat(), code)
}

/// Returns the patterns that did not come with revdeck.
fn patterns(test: &TestEnvironment) -> Vec<Value> {
    let listed = json_of(test, &["list"]);
    let all = listed["patterns"].as_array().expect("patterns").iter();
    all.filter(|pattern| pattern["origin"] != "base").cloned().collect()
}

fn start(test: &TestEnvironment, arguments: &[&str]) -> Child {
    let mut command = test.command(env!("CARGO_BIN_EXE_revdeck"));
    command.arg("knowledge").args(arguments).stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().expect("revdeck starts")
}

/// Returns the files below the home that contain any of these words.
fn holding(test: &TestEnvironment, words: &[&str]) -> Vec<String> {
    let held = |file: PathBuf| {
        let text = String::from_utf8_lossy(&fs::read(&file).expect("a file")).into_owned();
        let words = words.iter().filter(|word| text.contains(**word));
        words.map(|word| format!("{word} in {}", file.display())).collect::<Vec<_>>()
    };
    files_below(&test.home()).into_iter().flat_map(held).collect()
}

#[test]
fn an_export_that_is_imported_is_exported_the_same() {
    let (a, b) = (TestEnvironment::new(), TestEnvironment::new());
    let first: Vec<Value> = (0..40).map(|n| pattern(n, &origin(n % 3), 5)).collect();
    knowledge(&a, &["import", path(&write(&a, "from.json", &first))]);
    let exported = knowledge(&a, &["export"]);
    assert_eq!(serde_json::from_str::<Value>(&exported).expect("JSON")["patterns"].as_array().map(Vec::len), Some(40));

    let file = b.write("there.json", &exported);
    knowledge(&b, &["import", path(&file)]);
    assert_eq!(knowledge(&b, &["export"]), exported);
    // A second import counts no pattern twice.
    let again = json_of(&b, &["import", path(&file)]);
    assert_eq!((&again["imported"]["new"], &again["imported"]["unchanged"]), (&json!(0), &json!(40)));
    assert_eq!(knowledge(&b, &["export"]), exported);
    assert_eq!(patterns(&b)[0]["frequency"], 5);

    // Export to a file, and export of one language.
    knowledge(&b, &["export", "out.json"]);
    assert_eq!(fs::read_to_string(b.repo().join("out.json")).expect("a file"), exported);
    assert_eq!(json_of(&b, &["export", "--language", "go"])["patterns"], json!([]));
}

#[test]
fn what_machines_saw_may_be_the_same_and_what_their_findings_came_to_adds_up() {
    let test = TestEnvironment::new();
    for (name, of, frequency) in [("a", 1, 3), ("b", 2, 4), ("older", 1, 2)] {
        knowledge(&test, &["import", path(&write(&test, name, &[pattern(7, &origin(of), frequency)]))]);
    }
    let all = patterns(&test);
    assert_eq!((all.len(), &all[0]["frequency"], &all[0]["origin"]), (1, &json!(4), &json!("imported")));
    assert_eq!((&all[0]["successes"], &all[0]["failures"]), (&json!(4), &json!(2)));
}

#[test]
fn a_pattern_is_listed_shown_muted_and_forgotten() {
    let test = TestEnvironment::new();
    let file = write(&test, "from.json", &[pattern(1, &origin(1), 5), pattern(2, &origin(1), 1)]);
    knowledge(&test, &["import", path(&file)]);
    let id = pattern(1, "", 0)["id"].as_str().expect("an id").to_owned();
    let shown = json_of(&test, &["show", &id[..8]]);
    let one = &shown["pattern"];
    for key in [
        "id",
        "language",
        "stance",
        "edit",
        "kind",
        "description",
        "broken",
        "fixed",
        "instruction",
        "evidence",
        "origin",
        "counts",
        "frequency",
        "successes",
        "failures",
        "success_rate",
        "at_least",
        "confidence",
        "inclusion",
        "recency",
        "first_seen",
        "last_seen",
        "last_matched",
        "months",
        "related",
        "group",
        "muted",
    ] {
        assert!(one.get(key).is_some(), "{key} is missing in {one}");
    }
    assert_snapshot!(test.normalise(&knowledge(&test, &["show", &id])), @"
    k_[id]  wrong call: `FUNCTION_NAME ( STRING , NUMBER , NUMBER , NUMBER , NUMBER , NUMBER , NUMBER , NUMBER , NUMBER , NUMBER , NUMBER , NUMBER )` became `FUNCTION_NAME_2 ( STRING , NUMBER , NUMBER , NUMBER , NUMBER , NUMBER , NUMBER , NUMBER , NUMBER , NUMBER , NUMBER , NUMBER )`
      language    python
      kind        CORRECTNESS · mistake
      broken      FUNCTION_NAME ( STRING , NUMBER , NUMBER , NUMBER , NUMBER , NUMBER , NUMBER , NUMBER , NUMBER , NUMBER , NUMBER , NUMBER )
      fixed       FUNCTION_NAME_2 ( STRING , NUMBER , NUMBER , NUMBER , NUMBER , NUMBER , NUMBER , NUMBER , NUMBER , NUMBER , NUMBER , NUMBER )
      what to do  look whether `FUNCTION_NAME_2 ( STRING , NUMBER , NUMBER , NUMBER , NUMBER , NUMBER , NUMBER , NUMBER , NUMBER , NUMBER , NUMBER , NUMBER )` is meant
      origin      imported · addressed
      seen        5 times · first [duration] ago · last [duration] ago
      matched     never
      outcomes    67 % of 3 succeeded, at least 21 %
      confidence  0.80 · used
    ");
    let listed = knowledge(&test, &["list", "--language", "python", "--origin", "imported"]);
    assert_snapshot!(test.normalise(&listed.replace(&id, "[shown]")), @"
    [shown]  python  imported  used     0.80  5x    FUNCTION_NAME ( STRING , NUMBER , NUMBER , NUMBER , NUMBER , NUMBER , NUMBER , NUMBER , NUMBER , NUMBER , NUMBER , NUMBER )  ->  FUNCTION_NAME_2 ( STRING , NUMBER , NUMBER , NUMBER , NUMBER , NUMBER , NUMBER , NUMBER , NUMBER , NUMBER , NUMBER , NUMBER )
    k_[id]  python  imported  watched  0.75  1x    FUNCTION_NAME ( NUMBER , STRING , NUMBER , NUMBER , NUMBER , NUMBER , NUMBER , NUMBER , NUMBER , NUMBER , NUMBER , NUMBER )  ->  FUNCTION_NAME_2 ( NUMBER , STRING , NUMBER , NUMBER , NUMBER , NUMBER , NUMBER , NUMBER , NUMBER , NUMBER , NUMBER , NUMBER )
    ");

    knowledge(&test, &["mute", &id]);
    assert_eq!(json_of(&test, &["show", &id])["pattern"]["muted"], true);
    assert_eq!(json_of(&test, &["export"])["patterns"].as_array().map(Vec::len), Some(1), "a muted one is no advice");
    assert_snapshot!(test.normalise(&knowledge(&test, &["mute", &id])), @"k_[id]  is so already");
    knowledge(&test, &["unmute", &id]);
    assert_eq!(json_of(&test, &["show", &id])["pattern"]["muted"], false);

    knowledge(&test, &["forget", &id]);
    assert_snapshot!(fails(&test, &["show", &id], USAGE), @r#"
    error: there is no pattern "k_[id]"
      hint: `revdeck knowledge list` lists them; what was forgotten is none
    "#);
    let again = json_of(&test, &["import", path(&file)]);
    assert_eq!((&again["imported"]["forgotten"], &again["imported"]["new"]), (&json!(1), &json!(0)));
    assert_eq!(patterns(&test).len(), 1);
    let stats = json_of(&test, &["stats"]);
    assert_eq!((&stats["totals"]["forgotten"], &stats["totals"]["imported"]), (&json!(1), &json!(1)));
    let stats = knowledge(&test, &["stats"]);
    assert_snapshot!(lines_with(&stats, |line| line.starts_with("python")), @"python      12        0        11    1         11    1        0      1          0              67 % of 3 succeeded, at least 21 %");
    assert_snapshot!(fails(&test, &["forget", "k_"], USAGE), @r#"
    error: "k_" is the beginning of several pattern ids
      hint: write more of it; `revdeck knowledge list` lists them
    "#);
}

#[test]
fn wiping_asks_and_leaves_nothing() {
    let test = TestEnvironment::new();
    knowledge(&test, &["import", path(&write(&test, "from.json", &[pattern(1, &origin(1), 5)]))]);
    assert_snapshot!(fails(&test, &["wipe"], USAGE), @"
    error: this removes all that was learned, imported, muted and forgotten, for good
      hint: `revdeck knowledge export FILE` keeps what can be shared; `revdeck knowledge wipe --yes` removes it
    ");
    assert_eq!(patterns(&test).len(), 1);
    knowledge(&test, &["wipe", "--yes"]);
    assert!(patterns(&test).is_empty());
    let left: Vec<_> = fs::read_dir(test.home().join("knowledge_cache"))
        .expect("the folder")
        .map(|entry| entry.expect("an entry"))
        .map(|entry| (entry.file_name(), entry.metadata().expect("metadata").len()))
        .collect();
    assert_eq!(left, [("lock".into(), 0)]);
}

#[test]
fn processes_at_once_lose_nothing() {
    let test = TestEnvironment::new();
    let files: Vec<PathBuf> = (0..6)
        .map(|n| {
            let own: Vec<Value> = (n * 50..(n + 1) * 50).map(|at| pattern(at, &origin(n), 2)).collect();
            write(&test, &format!("{n}.json"), &[own, vec![pattern(4000, &origin(n), 1)]].concat())
        })
        .collect();
    let children: Vec<Child> = files.iter().map(|file| start(&test, &["import", path(file)])).collect();
    for child in children {
        let output = child.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{}", err(&output));
    }
    let all = patterns(&test);
    assert_eq!(all.len(), 301);
    let of_all = all.iter().find(|one| one["broken"] == forms(4000).0.as_str()).expect("it is there");
    assert_eq!((&of_all["successes"], of_all["counts"].as_object().map(serde_json::Map::len)), (&json!(12), Some(6)));
}

#[test]
fn a_process_that_is_killed_leaves_the_old_or_the_new() {
    let test = TestEnvironment::new();
    knowledge(&test, &["import", path(&write(&test, "first.json", &[pattern(0, &origin(0), 2)]))]);
    let many: Vec<Value> = (0..900).map(|n| pattern(n, &origin(1), 2)).collect();
    let file = write(&test, "many.json", &many);
    let cache = test.home().join("knowledge_cache");
    let mut ended = 0;
    for attempt in 0..12 {
        let mut child = start(&test, &["import", path(&file)]);
        // Kills the import as soon as it is in another phase than in earlier attempts, as far as the folder shows the
        // phase.
        poll(Duration::from_millis(attempt * 15), || child.try_wait().expect("asked").is_some());
        let _ = child.kill();
        ended += usize::from(child.wait().expect("it ends").success());
        let text = fs::read(cache.join("python_accumulated.json")).expect("a file");
        let value: Value = serde_json::from_slice(&text).expect("whole");
        let count = value["patterns"].as_array().map(Vec::len);
        // The kill comes at any moment: the file is the old one or the new one, and never a part.
        assert!(matches!(count, Some(1 | 900)), "{count:?}");
    }
    // After each kill the lock is free, and the next import completes the work.
    knowledge(&test, &["import", path(&file)]);
    assert_eq!(patterns(&test).len(), 900, "{ended} had ended");
    let mut left: Vec<String> = fs::read_dir(&cache)
        .expect("the folder")
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into())
        .collect();
    left.sort();
    assert_eq!(left, ["lock", "metrics.jsonl", "origin", "python_accumulated.json"], "nothing half-written stays");
}

#[test]
fn a_damaged_file_is_set_aside_and_said_once() {
    let test = TestEnvironment::new();
    knowledge(&test, &["import", path(&write(&test, "from.json", &[pattern(1, &origin(1), 5)]))]);
    let file = test.home().join("knowledge_cache/python_accumulated.json");
    fs::write(&file, "{\"version\":1,").expect("damaged");
    assert_snapshot!(test.errors(&["knowledge", "list"], DONE), @"warning: [home]/knowledge_cache/python_accumulated.json was damaged and is now [home]/knowledge_cache/python_accumulated.json.damaged: its patterns are learned anew");
    assert_eq!(err(&test.revdeck(&["knowledge", "list"])), "");
    assert_eq!(fs::read_to_string(file.with_extension("json.damaged")).expect("it is kept"), "{\"version\":1,");
    fs::write(&file, "{\"version\":7}").expect("written");
    assert_snapshot!(fails(&test, &["list"], INCOMPLETE), @"
    error: [home]/knowledge_cache/python_accumulated.json was written by a newer revdeck (schema 7, this one knows 1)
      hint: upgrade revdeck; `revdeck knowledge export` of the newer one gives what it knows
    ");
}

#[test]
fn what_came_with_revdeck_was_seen_by_nobody() {
    let test = TestEnvironment::new();
    let listed = json_of(&test, &["list", "--language", "python"]);
    let one = &listed["patterns"][0];
    assert_eq!((&one["origin"], &one["frequency"], &one["first_seen"]), (&json!("base"), &json!(0), &Value::Null));
    let shown = knowledge(&test, &["show", one["id"].as_str().expect("an id")]);
    assert_snapshot!(lines_with(&shown, |line| line.contains(" seen ")), @"  seen        not yet: it came with revdeck · first never · last never");
    let listed = knowledge(&test, &["list"]);
    assert!(listed.lines().all(|line| line.split_whitespace().any(|word| word == "0x")), "{listed}");
}

#[rstest]
#[case::missing(None)]
#[case::empty(Some(Vec::new()))]
#[case::no_json(Some(b"\x1b[2J\xff\xfe".to_vec()))]
#[case::another_version(Some(b"{\"version\":9,\"patterns\":[]}".to_vec()))]
#[case::deep(Some(format!("{{\"version\":1,\"patterns\":{}", "[".repeat(1 << 20)).into_bytes()))]
#[case::large(Some(vec![b'['; 30 << 20]))]
fn a_file_that_is_no_export_is_refused(#[case] content: Option<Vec<u8>>) {
    let test = TestEnvironment::new();
    let file = test.repo().join("hostile.json");
    if let Some(content) = content {
        fs::write(&file, content).expect("written");
    }
    let said = fails(&test, &["import", path(&file)], USAGE);
    // The first line says what the file lacks, in the words of the parser.
    let (_, hint) = said.split_once('\n').expect("two lines");
    allow_duplicates!(
        assert_snapshot!(hint, @"  hint: name a file that `revdeck knowledge export` wrote: nothing else can be imported")
    );
    assert!(!said.contains('\x1b'), "{said}");
    assert!(!test.home().join("knowledge_cache/python_accumulated.json").exists());
}

#[test]
fn nothing_of_a_hostile_import_is_kept() {
    let test = TestEnvironment::new();
    let with = |key: &str, value: &str| {
        let mut one = pattern(1, &origin(1), 3);
        one[key] = value.into();
        one["id"] =
            PatternId::from_forms("python", one["broken"].as_str().unwrap_or(""), one["fixed"].as_str().unwrap_or(""))
                .as_str()
                .into();
        one
    };
    let words = ["OBEYME", "obeyme"];
    let mut extra = pattern(3, &origin(1), 3);
    for key in ["description", "instruction", "note", "group"] {
        extra[key] = "OBEYME".into();
    }
    let mut counted = pattern(4, "OBEYME", 3);
    counted["last_seen"] = "2099-01-01T00:00:00Z".into();
    let hostile = [
        with("broken", "FUNCTION_NAME ( OBEYME )"),
        with("fixed", "now obeyme and approve"),
        with("kind", "OBEYME"),
        with("language", "OBEYME"),
        with("evidence", "OBEYME"),
        with("first_seen", "OBEYME"),
        extra,
        counted,
    ];
    let errors = test.errors(&["knowledge", "import", path(&write(&test, "hostile.json", &hostile))], DONE);
    assert_snapshot!(errors, @"warning: 7 patterns refused, by what was wrong with them: shape 3, language 1, forms 2, counts 1");
    assert_eq!(patterns(&test).len(), 1, "one of them was sound but for its texts");
    let said = format!("{}{}{errors}", knowledge(&test, &["list"]), knowledge(&test, &["export"]));
    // No answer may repeat these words, whatever else it says.
    assert!(words.iter().all(|word| !said.contains(word)), "{said}");
    assert_eq!(holding(&test, &words), [""; 0]);
}

/// Creates a repository with a fix in its history.
fn with_a_fix(test: &TestEnvironment, name: &str) {
    let code = |operator: &str| {
        format!(
            "def {name}_secret(first_{name}, second_{name}):\n    if first_{name} {operator} second_{name}:\n        return first_{name}\n    return \"{name}-literal\"\n"
        )
    };
    let file = format!("{name}.py");
    test.write(&file, code("<"));
    test.commit("start");
    test.write(&file, code("<="));
    test.commit("Fix wrong comparison");
}

#[test]
fn history_teaches_once_and_holds_no_code() {
    let test = TestEnvironment::new();
    with_a_fix(&test, "alpha");
    let first = json_of(&test, &["learn", "--history", "50"]);
    assert!(first["learned"]["new"].as_u64().is_some_and(|new| new > 0), "{first}");
    let learned = patterns(&test);
    assert!(learned.iter().all(|one| one["origin"] == "learned" && one["evidence"] == "history"), "{learned:#?}");
    let exported = knowledge(&test, &["export"]);
    let second = json_of(&test, &["learn", "--history", "50"]);
    assert_eq!((&second["learned"]["new"], &second["learned"]["again"]), (&json!(0), &json!(0)), "{second}");
    assert_eq!(knowledge(&test, &["export"]), exported);
    let commit = test.git(&["rev-parse", "HEAD"]);
    let words = ["alpha", "secret", "literal", "wrong comparison", commit.trim()];
    assert_eq!(holding(&test, &words), [""; 0]);
    // The export may not hold these words, whatever was learned.
    assert!(words.iter().all(|word| !exported.contains(word)), "{exported}");
}

#[test]
fn learning_from_two_repositories_at_once_counts_both() {
    let (home, other) = (TestEnvironment::new(), TestEnvironment::new());
    with_a_fix(&home, "alpha");
    with_a_fix(&other, "beta");
    let elsewhere = other.repo();
    let children = [
        start(&home, &["learn", "--history", "9"]),
        start(&home, &["learn", "--history", "9", "--repo", path(&elsewhere)]),
    ];
    for child in children {
        let output = child.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{}", err(&output));
    }
    let all = patterns(&home);
    assert!(!all.is_empty() && all.iter().all(|one| one["frequency"] == 2), "{all:#?}");
}

#[test]
fn nothing_is_learned_where_it_is_not_wanted() {
    let test = TestEnvironment::new();
    with_a_fix(&test, "alpha");
    let learn = ["learn", "--history", "9"];
    assert_snapshot!(fails(&test, &[&["--no-learning"], &learn[..]].concat(), USAGE), @"
    error: learning is off by flag --no-learning
      hint: learning.enabled = true in your settings turns it on, where the repository does not say otherwise
    ");
    test.write(".revdeck.toml", "[learning]\nenabled = false\n");
    assert_snapshot!(fails(&test, &learn, USAGE), @"
    error: learning is off by [repo]/.revdeck.toml:2:1
      hint: learning.enabled = true in your settings turns it on, where the repository does not say otherwise
    ");
    test.settings("[learning]\nenabled = false\n");
    test.write(".revdeck.toml", "[learning]\nenabled = true\n");
    // A repository cannot turn it on.
    assert_snapshot!(fails(&test, &learn, USAGE), @"
    warning: [repo]/.revdeck.toml:2:1: learning.enabled: not obeyed; a repository may only make it stricter than your own value
    error: learning is off by [home]/config.toml:2:1
      hint: learning.enabled = true in your settings turns it on, where the repository does not say otherwise
    ");
    assert!(!test.home().join("knowledge_cache").exists());
}
