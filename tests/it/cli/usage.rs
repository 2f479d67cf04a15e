//! Arguments, help, and messages for wrong arguments.

use super::*;

#[rstest]
#[case::unknown_command(&["revie"])]
#[case::two_scopes(&["review", "--staged", "--all"])]
#[case::fail_on_without_wait(&["review", "--fail-on", "p1"])]
#[case::no_priority(&["review", "--wait", "--fail-on", "p7"])]
#[case::no_range(&["review", "--range", "main"])]
#[case::unknown_revision(&["review", "--commit", "nonsense"])]
#[case::unknown_reviewer(&["review", "--reviewer", "nobody"])]
#[case::no_status(&["findings", "--status", "closed"])]
#[case::no_kind(&["findings", "--kind", "BUGS"])]
#[case::no_such_file(&["tokens", "missing.py"])]
#[case::no_such_files(&["tokens", "missing.py", "."])]
#[case::no_such_folder(&["smells", "missing"])]
#[case::no_kind_of_code(&["context", "--kinds", "function,diff"])]
#[case::no_encoding(&["tokens", "a.py", "--encoding", "p50k"])]
#[case::cancel_without_reason(&["cancel", "latest"])]
#[case::cancel_of_nothing(&["cancel", "latest", "--reason", "x"])]
#[case::engine_status(&["triage", "f_1", "obsolete"])]
#[case::few_bytes(&["details", "latest", "--max-bytes", "3"])]
#[case::no_such_time(&["stats", "--since", "yesterday"])]
#[case::two_selections(&["stats", "--since", "7d", "--run", "latest"])]
#[case::no_folder(&["-C", "missing", "runs"])]
fn wrong_use_ends_with_2(#[case] arguments: &[&str]) {
    let test = TestEnvironment::new();
    test.write("a.py", "x = 1\n");
    test.commit("something");
    let error = fails(&test, arguments, USAGE);
    assert!(error.starts_with("error: "), "{error}");
}

#[test]
fn kinds_of_code_are_named_where_another_is_asked_for() {
    let test = TestEnvironment::new();
    test.write("a.py", "x = 1\n");
    test.commit("something");
    for kind in ["task", "diff", "focus", "rules", "patterns", "documentation", "summary", "overview", "nothing"] {
        let error = fails(&test, &["context", "--kinds", kind], USAGE);
        let expected = format!("{kind:?} is no kind of code; there are function, type, module, test, window");
        assert!(error.contains(&expected), "{error}");
    }
    run(&test, &["context", "--kinds", "function,type,module,test,window"], DONE);
}

#[test]
fn one_file_that_cannot_be_read_keeps_no_other_from_being_counted() {
    let test = TestEnvironment::new();
    for path in ["a.py", "c.py"] {
        test.write(path, "x = 1\n");
    }
    for (files, expected, exit) in [
        (&["a.py", "missing.py", "c.py"][..], "        5  a.py\n        5  c.py\n       10  total\n", 3),
        (&["missing.py", "a.py"], "        5  a.py\n", 3),
        (&["a.py", "c.py"], "        5  a.py\n        5  c.py\n       10  total\n", 0),
    ] {
        let output = test.revdeck(&[&["tokens"], files].concat());
        assert_eq!((out(&output), output.status.code()), (expected.to_owned(), Some(exit)), "{files:?}");
        assert_eq!(err(&output).contains("cannot read missing.py: "), exit == 3, "{}", err(&output));
        let output = test.revdeck(&[&["tokens", "--format", "json"], files].concat());
        let counted: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let unreadable = if exit == 3 { serde_json::json!(["missing.py"]) } else { serde_json::json!([]) };
        assert_eq!((&counted["unreadable"], output.status.code()), (&unreadable, Some(exit)), "{counted}");
    }
}

#[test]
fn files_that_cannot_be_counted_are_told_one_by_one() {
    let test = TestEnvironment::new();
    test.write("a.py", "x = 1\n");
    let huge = test.repo().join("huge.py");
    fs::File::create(&huge).and_then(|file| file.set_len(256_000_001)).expect("a file with nothing in it");
    for (path, why) in [
        ("missing.py", "No such file"),
        (".", "it is no regular file"),
        ("/dev/null", "it is no regular file"),
        ("huge.py", "it has more than 256 MB"),
    ] {
        let error = fails(&test, &["tokens", path], USAGE);
        assert!(error.starts_with(&format!("error: cannot read {path}: {why}")), "{error}");
        let output = test.revdeck(&["tokens", "--format", "json", path]);
        assert_eq!(output.status.code(), Some(3), "{}", err(&output));
        assert!(err(&output).contains(&format!("cannot read {path}: {why}")), "{}", err(&output));
        let counted: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let expected = serde_json::json!([[], [path], 0]);
        assert_eq!(serde_json::json!([counted["files"], counted["unreadable"], counted["total_tokens"]]), expected);
        let output = test.revdeck(&["tokens", path, "a.py"]);
        assert_eq!((out(&output), output.status.code()), ("        5  a.py\n".to_owned(), Some(3)), "{path}");
    }
}

#[rstest]
#[case(&[])]
#[case(&["review"])]
#[case(&["runs"])]
#[case(&["findings"])]
#[case(&["show", "latest"])]
#[case(&["ledger"])]
#[case(&["stats"])]
#[case(&["store", "path"])]
fn outside_of_a_repository_one_clear_sentence(#[case] arguments: &[&str]) {
    let test = TestEnvironment::new();
    fs::create_dir_all(test.home()).expect("a folder");
    let output = test
        .command(env!("CARGO_BIN_EXE_revdeck"))
        .current_dir(test.home())
        .args(arguments)
        .output()
        .expect("revdeck starts");
    assert_eq!(output.status.code(), Some(USAGE), "{}", err(&output));
    assert_eq!(err(&output).lines().count(), 2, "{}", err(&output));
    assert!(err(&output).contains("is not in a git repository\n  hint: "), "{}", err(&output));
}

#[test]
fn without_a_terminal_there_is_a_summary() {
    let test = TestEnvironment::new();
    test.write("a.py", "x = 1\n");
    test.commit("something");
    let empty = run(&test, &[], DONE);
    assert!(empty.contains("repo (main) · no findings") && empty.contains("no runs yet"), "{empty}");
    let test = reviewed();
    let text = run(&test, &[], DONE);
    assert!(text.contains("2 findings (1 p1, 1 p3) to decide") && text.contains("LONG_METHOD"), "{text}");
}

#[test]
fn help_man_and_completions_come_from_the_arguments() {
    let test = TestEnvironment::new();
    let help = run(&test, &["--help"], DONE);
    assert!(help.contains("130  interrupted") && !help.contains("worker"), "{help}");
    assert_eq!(run(&test, &["--version"], DONE), format!("revdeck {}\n", env!("CARGO_PKG_VERSION")));
    assert!(run(&test, &["man"], DONE).contains("Exit codes"));
    let folder = test.home().join("man");
    run(&test, &["man", "--out", folder.to_str().expect("UTF-8")], DONE);
    let mut pages: Vec<_> =
        fs::read_dir(&folder).expect("a folder").flatten().map(|entry| entry.file_name().into_string()).collect();
    pages.sort();
    assert!(
        pages.contains(&Ok("revdeck.1".to_owned())) && pages.contains(&Ok("revdeck-review.1".to_owned())),
        "{pages:?}"
    );
    assert!(!pages.contains(&Ok("revdeck-worker.1".to_owned())), "{pages:?}");
    for shell in ["bash", "zsh", "fish"] {
        assert!(run(&test, &["completions", shell], DONE).contains("review"), "{shell}");
    }
}

#[test]
fn the_doctor_says_what_is_wrong() {
    let test = TestEnvironment::new();
    let healthy = json(&test, &["doctor", "--format", "json"], DONE);
    assert_eq!(healthy["healthy"], true);
    let names: Vec<&str> = list(&healthy, "checks").iter().filter_map(|check| check["name"].as_str()).collect();
    for name in ["version", "settings", "state", "repository", "store", "terminal", "reviewers"] {
        assert!(names.contains(&name), "{name} in {names:?}");
    }
    fs::create_dir_all(test.home()).expect("a folder");
    fs::write(test.home().join("config.toml"), "ascii = 3").expect("a file");
    let text = run(&test, &["doctor"], USAGE);
    assert!(text.contains("problem settings") && text.contains("config.toml:1:9"), "{text}");
}

#[test]
fn a_log_is_written_only_when_asked_for() {
    let test = reviewed();
    let logged = |test: &TestEnvironment| {
        let entries = fs::read_dir(test.home().join("logs")).into_iter().flatten().flatten();
        entries.filter_map(|entry| fs::read_to_string(entry.path()).ok()).any(|text| text.contains("started"))
    };
    assert!(!logged(&test));
    let mut command: Command = test.command(env!("CARGO_BIN_EXE_revdeck"));
    let output = command.args(["runs"]).env("REVDECK_LOG", "debug").output().expect("revdeck starts");
    assert_eq!(output.status.code(), Some(DONE), "{}", err(&output));
    assert!(logged(&test));
    let mut command: Command = test.command(env!("CARGO_BIN_EXE_revdeck"));
    let output = command.args(["runs"]).env("REVDECK_LOG", "loud").output().expect("revdeck starts");
    assert_eq!(output.status.code(), Some(USAGE));
}
