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
#[case::worth_of_one_run(&["stats", "--by", "reviewer", "--run", "latest"])]
#[case::no_such_grouping(&["stats", "--by", "author"])]
#[case::no_folder(&["-C", "missing", "runs"])]
fn wrong_use_ends_with_2(#[case] arguments: &[&str]) {
    let test = TestEnvironment::new();
    test.write("a.py", "x = 1\n");
    test.commit("something");
    let error = test.fails(arguments, USAGE);
    assert_eq!(error.split_once(' ').map(|(word, _)| word), Some("error:"), "{error}");
}

#[test]
fn kinds_of_code_are_named_where_another_is_asked_for() {
    let test = TestEnvironment::new();
    test.write("a.py", "x = 1\n");
    test.commit("something");
    for kind in ["task", "diff", "focus", "rules", "patterns", "documentation", "summary", "overview", "nothing"] {
        let error = test.fails(&["context", "--kinds", kind], USAGE);
        let error = error.replace(&format!("'{kind}'"), "[kind]").replace(&format!("{kind:?}"), "[kind]");
        allow_duplicates!(assert_snapshot!(error, @"
        error: invalid value [kind] for '--kinds <KIND>': [kind] is no kind of code; there are function, class, interface, type, constant, module, test, config, window

        For more information, try '--help'.
        "));
    }
    run(&test, &["context", "--kinds", "function,class,interface,type,constant,module,test,config,window"], DONE);
}

#[test]
fn one_file_that_cannot_be_read_keeps_no_other_from_being_counted() {
    let test = TestEnvironment::new();
    for path in ["a.py", "c.py"] {
        test.write(path, "x = 1\n");
    }
    let mut errors = String::new();
    for (files, expected, exit) in [
        (&["a.py", "missing.py", "c.py"][..], "        5  a.py\n        5  c.py\n       10  total\n", 3),
        (&["missing.py", "a.py"], "        5  a.py\n", 3),
        (&["a.py", "c.py"], "        5  a.py\n        5  c.py\n       10  total\n", 0),
    ] {
        let output = test.revdeck(&[&["tokens"], files].concat());
        assert_eq!((out(&output), output.status.code()), (expected.to_owned(), Some(exit)), "{files:?}");
        errors += &format!("{}:\n{}", files.join(" "), err(&output));
        let output = test.revdeck(&[&["tokens", "--format", "json"], files].concat());
        let counted: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let unreadable = if exit == 3 { serde_json::json!(["missing.py"]) } else { serde_json::json!([]) };
        assert_eq!((&counted["unreadable"], output.status.code()), (&unreadable, Some(exit)), "{counted}");
    }
    assert_snapshot!(errors, @"
    a.py missing.py c.py:
    warning: cannot read missing.py: No such file or directory (os error 2)
    missing.py a.py:
    warning: cannot read missing.py: No such file or directory (os error 2)
    a.py c.py:
    ");
}

#[test]
fn files_that_cannot_be_counted_are_told_one_by_one() {
    let test = TestEnvironment::new();
    test.write("a.py", "x = 1\n");
    let huge = test.repo().join("huge.py");
    fs::File::create(&huge).and_then(|file| file.set_len(256_000_001)).expect("a file with nothing in it");
    let mut errors = String::new();
    for path in ["missing.py", ".", "/dev/null", "huge.py"] {
        errors += &test.fails(&["tokens", path], USAGE);
        let output = test.revdeck(&["tokens", "--format", "json", path]);
        assert_eq!(output.status.code(), Some(3), "{}", err(&output));
        errors += &err(&output);
        let counted: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let expected = serde_json::json!([[], [path], 0]);
        assert_eq!(serde_json::json!([counted["files"], counted["unreadable"], counted["total_tokens"]]), expected);
        let output = test.revdeck(&["tokens", path, "a.py"]);
        assert_eq!((out(&output), output.status.code()), ("        5  a.py\n".to_owned(), Some(3)), "{path}");
    }
    assert_snapshot!(errors, @"
    error: cannot read missing.py: No such file or directory (os error 2)
    warning: cannot read missing.py: No such file or directory (os error 2)
    error: cannot read .: it is no regular file
    warning: cannot read .: it is no regular file
    error: cannot read /dev/null: it is no regular file
    warning: cannot read /dev/null: it is no regular file
    error: cannot read huge.py: it has more than 256 MB
    warning: cannot read huge.py: it has more than 256 MB
    ");
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
    allow_duplicates!(assert_snapshot!(test.normalise(&err(&output)), @"
    error: [home] is not in a git repository
      hint: change into a repository, or make one with `git init`
    "));
}

#[test]
fn without_a_terminal_there_is_a_summary() {
    let test = TestEnvironment::new();
    test.write("a.py", "x = 1\n");
    test.commit("something");
    assert_snapshot!(test.output(&[], DONE), @"
    repo (main) · no findings to decide

    no runs yet: `revdeck review` makes a start
    ");
    assert_snapshot!(reviewed().output(&[], DONE), @"
    repo (main) · 2 findings (1 p1, 1 p3) to decide

    [run]  completed  current  [duration]  commit:[hash]  builtin  1 p1 1 p3  2 files

    f_[id]  p1  open  LONG_METHOD        long.py:1-202  Function `long` is 202 code lines long
    f_[id]  p3  open  COMPLEX_FUNCTIONS  wide.py:1-2    Function `wide` is complex: 8 parameters
    ");
}

#[test]
fn help_man_and_completions_come_from_the_arguments() {
    let test = TestEnvironment::new();
    let help = run(&test, &["--help"], DONE);
    let (commands, exit_codes) = help.split_once("Exit codes:\n").expect("the exit codes");
    assert_snapshot!(exit_codes, @r#"
        0  done
        1  `review --wait` found a problem at or above --fail-on
        2  usage or configuration error, or not in a git repository
        3  the run or command did not complete: do not read this as "no findings"
      130  interrupted; the review itself continues

    Ids of runs and findings may be shortened to a unique prefix; `latest` is the newest run.

    Environment:
        REVDECK_HOME       single folder for settings, state, caches and logs (default: the platform's
        folders)
        REVDECK_<SETTING>  any key of `revdeck config show` in capitals, with _ for dots:
        REVDECK_MAX_PARALLEL_RUNS
        REVDECK_ACTOR      user, assistant or ci: who acts; else CI and CLAUDECODE tell.
                           An assistant claims fixes and asks for reviews; only the user decides
        REVDECK_GITHUB_TOKEN, REVDECK_GITLAB_TOKEN
                           tokens for `revdeck publish`; see its help for the addresses
        REVDECK_LOG        error, warn, info, debug or trace: write a log file to the logs folder
        NO_COLOR           disable colours, unless --color always is given
    "#);
    assert_eq!(lines_with(commands, |line| line.trim_start().starts_with("worker")), "");
    assert_eq!(run(&test, &["--version"], DONE), format!("revdeck {}\n", env!("CARGO_PKG_VERSION")));
    assert_snapshot!(lines_with(&run(&test, &["man"], DONE), |line| line.contains("interrupted")), @"  130  interrupted; the review itself continues");
    let folder = test.home().join("man");
    run(&test, &["man", "--out", folder.to_str().expect("UTF-8")], DONE);
    let mut pages: Vec<_> = fs::read_dir(&folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
        .collect();
    pages.sort();
    // Commands that revdeck starts itself, such as the worker, have no page.
    pages.retain(|page| ["revdeck.1", "revdeck-review.1", "revdeck-worker.1"].contains(&page.as_str()));
    assert_eq!(pages, ["revdeck-review.1", "revdeck.1"]);
    for shell in ["bash", "zsh", "fish"] {
        // Only the generator of the scripts knows their whole text.
        let script = run(&test, &["completions", shell], DONE);
        assert_ne!(script.matches("REVDECK_COMPLETE").count(), 0, "{shell}");
    }
}

#[test]
fn ids_and_reviewers_complete_in_a_shell() {
    let test = TestEnvironment::new();
    test.settings("[reviewers.cloud]\nkind = \"anthropic\"\nmodel = \"m\"\n");
    test.write("long.py", crate::env::long_function("long"));
    test.commit("a long function");
    run(&test, &["review", "--wait"], DONE);
    // As the script for fish asks: the words of the line, the last one to be completed.
    let complete = |words: &[&str]| {
        let mut command = test.command(env!("CARGO_BIN_EXE_revdeck"));
        let output = command.env("REVDECK_COMPLETE", "fish").arg("--").arg("revdeck").args(words).output();
        test.normalise(&out(&output.expect("revdeck starts")))
    };
    // On a busy machine the candidates may come too late for a shell.
    let listed = |words: &[&str], awaited: &str| {
        crate::runner::place::wait_for(awaited, || Some(complete(words)).filter(|listed| listed.contains(awaited)))
    };
    assert_snapshot!(listed(&["show", "ar_"], "builtin"), @"[run]	completed commit:[hash] builtin");
    assert_snapshot!(listed(&["show", "f_"], "long.py"), @"f_[id]	long.py:1 Function `long` is 202 code lines long");
    assert_snapshot!(lines_with(&listed(&["cancel", ""], "[run]"), |line| !line.starts_with("--")), @"
    latest	the newest run
    [run]	completed commit:[hash] builtin
    ");
    assert_snapshot!(lines_with(&listed(&["review", "--reviewer", ""], "cloud"), |line| !line.starts_with("--")), @"
    builtin	offline, at no cost
    cloud	anthropic m
    ");
    assert_snapshot!(complete(&["fix", "show", "l"]), @"latest	the newest fix");
    let patterns = |command: &str| listed(&["knowledge", command, "k_"], "k_");
    let shown = patterns("show");
    assert!(shown.lines().count() > 10 && shown.lines().all(|line| line.starts_with("k_")), "{shown}");
    assert_eq!((patterns("mute"), patterns("forget")), (shown.clone(), shown));
    assert_snapshot!(listed(&["reviewers", "test", "c"], "cloud"), @"cloud	anthropic m");
    // The folder of the command line counts, not the one that the shell is in.
    let mut command = test.command(env!("CARGO_BIN_EXE_revdeck"));
    let repo = test.repo();
    let words = ["--", "revdeck", "-C", repo.to_str().expect("text"), "show", "f_"];
    command.current_dir(test.home()).env("REVDECK_COMPLETE", "fish").args(words);
    let elsewhere = crate::runner::place::wait_for("the finding", || {
        Some(out(&command.output().expect("revdeck starts"))).filter(|listed| !listed.is_empty())
    });
    assert_eq!(test.normalise(&elsewhere), listed(&["show", "f_"], "long.py"));
    assert_snapshot!(complete(&["revi"]), @"
    review	Review a change in the background, or wait for the result
    reviewers	List, test and discover reviewers
    ");
}

#[test]
fn the_doctor_says_what_is_wrong() {
    let test = TestEnvironment::new();
    let healthy = test.json(&["doctor", "--format", "json"], DONE);
    assert_eq!(healthy["healthy"], true);
    let names: Vec<&str> = list(&healthy, "checks").iter().filter_map(|check| check["name"].as_str()).collect();
    assert_snapshot!(names.join(" "), @"version settings environment state cache repository store terminal keymap theme models prompts reviewers");
    test.settings("ascii = 3");
    let text = test.output(&["doctor"], USAGE);
    assert_snapshot!(lines_with(&text, |line| line.starts_with("problem ")), @"problem settings     [home]/config.toml:1:9: ascii: has a value of the wrong sort; allowed: true or false");
}

#[test]
fn a_log_is_written_only_when_asked_for() {
    let test = reviewed();
    // A log has times and the steps of the program: only its presence is checked.
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
    assert_snapshot!(err(&output), @r#"
    error: REVDECK_LOG is "loud"
      hint: allowed: error, warn, info, debug, trace
    "#);
}
