//! Settings: layers, errors and limits.

use revdeck::config::PromptName;
use revdeck::tokens::{Encoding, count_tokens};

use super::*;

fn with_settings(user: &str, repository: &str) -> TestEnvironment {
    let test = TestEnvironment::new();
    test.settings(user);
    if !repository.is_empty() {
        test.write(".revdeck.toml", repository);
    }
    test
}

/// Returns the settings that are not at their default, each with its origin.
fn changed(test: &TestEnvironment) -> String {
    lines_with(&test.output(&["config", "show", "--origin"], DONE), |line| {
        line.contains(" # ") && !line.ends_with("# default")
    })
}

fn setting(test: &TestEnvironment, key: &str, variables: &[(&str, &str)], flags: &[&str]) -> (Value, String) {
    let output = test
        .command(env!("CARGO_BIN_EXE_revdeck"))
        .args(["config", "show", "--format", "json"])
        .args(flags)
        .envs(variables.iter().copied())
        .output()
        .expect("revdeck starts");
    assert_eq!(output.status.code(), Some(DONE), "{}", err(&output));
    let value: Value = serde_json::from_str(&out(&output)).expect("JSON");
    let setting = &value["settings"][key];
    (setting["value"].clone(), setting["origin"].as_str().unwrap_or_default().to_owned())
}

#[test]
fn settings_are_layered() {
    let user = "max_file_bytes = 10\nignored_paths = [\"mine\"]\ncolor = \"never\"\n[window]\nmax_turns = 7\n";
    let repository = "max_file_bytes = 20\nignored_paths = [\"theirs\"]\ndefault_scope = \"branch:dev\"\n";
    let test = with_settings(user, repository);
    let variable = &[("REVDECK_MAX_FILE_BYTES", "30"), ("REVDECK_COLOR", "always")][..];
    for (key, variables, flags, value, origin) in [
        ("max_parallel_runs", &[][..], &[][..], Value::from(2), "default"),
        ("window.max_turns", &[], &[], 7.into(), "user"),
        ("max_file_bytes", &[], &[], 20.into(), "repository"),
        ("ignored_paths", &[], &[], serde_json::json!(["mine", "theirs"]), "repository"),
        ("default_scope", &[], &[], "branch:dev".into(), "repository"),
        ("max_file_bytes", variable, &[], 30.into(), "environment"),
        ("color", variable, &[], "always".into(), "environment"),
        ("color", variable, &["--color", "auto"], "auto".into(), "flag"),
        ("ascii", &[], &["--ascii"], true.into(), "flag"),
        ("theme", &[("REVDECK_THEME", "")], &[], "auto".into(), "default"),
    ] {
        assert_eq!(setting(&test, key, variables, flags), (value, origin.to_owned()), "{key} {variables:?} {flags:?}");
    }
    assert_snapshot!(changed(&test), @r#"
    default_scope = "branch:dev"              # repository, [repo]/.revdeck.toml:3:1
    ignored_paths = ["mine", "theirs"]        # repository, [repo]/.revdeck.toml:2:1
    max_file_bytes = 20                       # repository, [repo]/.revdeck.toml:1:1
    color = "never"                           # user, [home]/config.toml:3:1
    window.max_turns = 7                      # user, [home]/config.toml:5:1
    "#);
    let paths = test.json(&["config", "path", "--format", "json"], DONE);
    assert_eq!(paths["paths"]["config"]["exists"], true);
}

#[test]
fn what_a_review_obeys_at_head_is_shown_where_the_worktree_differs() {
    let test = with_settings(
        "",
        "max_file_bytes = 1000\nignored_paths = [\"old\"]\n[smells.long_method]\nmax_code_lines = 50\n",
    );
    test.commit("settings");
    assert_eq!(test.json(&["config", "show", "--format", "json"], DONE)["obeyed_at_head"], serde_json::json!({}));
    test.write(".revdeck.toml", "max_file_bytes = 1\nignored_paths = [\"old\"]\nfail_on = \"p1\"\n");
    let text = test.output(&["config", "show", "--origin"], DONE);
    let (_, section) = text.split_once("\n\n").expect("a section");
    let mut lines = section.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    assert_eq!(
        lines.next().as_deref(),
        Some("# .revdeck.toml of the worktree is not the one at HEAD. Reviews of uncommitted changes obey HEAD's:")
    );
    let lines: Vec<String> = lines.collect();
    for start in [
        "max_file_bytes = 1000 # repository, ",
        "smells.long_method.max_code_lines = 50 # repository, ",
        "fail_on = \"none\" # default; the stricter of both holds",
    ] {
        assert!(lines.iter().any(|line| line.starts_with(start)), "{start}: {lines:?}");
    }
    assert_eq!(lines.len(), 3, "{lines:?}");
    let value = test.json(&["config", "show", "--format", "json"], DONE);
    assert_eq!(value["settings"]["max_file_bytes"]["value"], 1);
    assert_eq!(value["obeyed_at_head"]["max_file_bytes"]["value"], "1000");
}

#[test]
fn a_repository_cannot_set_what_could_do_harm() {
    let repository = "default_reviewer = \"evil\"\nmax_parallel_runs = 50\ntheme = \"x\"\nmax_file_bytes = 99\n\
                      unknown\u{20}= 1\n[reviewers.evil]\nkind = \"command\"\ncommand = [\"sh\", \"-c\", \"touch /tmp/x\"]\n\
                      [window]\nmax_turns = 1\n[keymap]\nq = \"quit\"\n";
    let test = with_settings("", repository);
    let output = test.revdeck(&["config", "show", "--format", "json"]);
    assert_eq!(output.status.code(), Some(DONE), "{}", err(&output));
    let value: Value = serde_json::from_str(&out(&output)).expect("JSON");
    for (key, expected) in
        [("default_reviewer", Value::from("builtin")), ("max_parallel_runs", 2.into()), ("theme", "auto".into())]
    {
        assert_eq!(value["settings"][key]["value"], expected, "{key}");
    }
    assert_eq!(value["settings"]["max_file_bytes"]["value"], 99);
    assert_eq!(value["reviewers"], serde_json::json!({}));
    assert_snapshot!(test.normalise(&err(&output)), @"
    warning: [repo]/.revdeck.toml:1:1: default_reviewer: not obeyed; a repository may only set default_scope, ignored_paths, max_file_bytes, fail_on, watch.ignored_paths, context.types, context.tests, context.documentation, context.files, context.kinds, context.compression, learning.enabled and [smells]
    warning: [repo]/.revdeck.toml:11:2: keymap: not obeyed; a repository may only set default_scope, ignored_paths, max_file_bytes, fail_on, watch.ignored_paths, context.types, context.tests, context.documentation, context.files, context.kinds, context.compression, learning.enabled and [smells]
    warning: [repo]/.revdeck.toml:2:1: max_parallel_runs: not obeyed; a repository may only set default_scope, ignored_paths, max_file_bytes, fail_on, watch.ignored_paths, context.types, context.tests, context.documentation, context.files, context.kinds, context.compression, learning.enabled and [smells]
    warning: [repo]/.revdeck.toml:6:2: reviewers: not obeyed; a repository may only set default_scope, ignored_paths, max_file_bytes, fail_on, watch.ignored_paths, context.types, context.tests, context.documentation, context.files, context.kinds, context.compression, learning.enabled and [smells]
    warning: [repo]/.revdeck.toml:3:1: theme: not obeyed; a repository may only set default_scope, ignored_paths, max_file_bytes, fail_on, watch.ignored_paths, context.types, context.tests, context.documentation, context.files, context.kinds, context.compression, learning.enabled and [smells]
    warning: [repo]/.revdeck.toml:5:1: unknown: not obeyed; a repository may only set default_scope, ignored_paths, max_file_bytes, fail_on, watch.ignored_paths, context.types, context.tests, context.documentation, context.files, context.kinds, context.compression, learning.enabled and [smells]
    warning: [repo]/.revdeck.toml:10:1: window.max_turns: not obeyed; a repository may only set default_scope, ignored_paths, max_file_bytes, fail_on, watch.ignored_paths, context.types, context.tests, context.documentation, context.files, context.kinds, context.compression, learning.enabled and [smells]
    ");
}

#[cfg(unix)]
#[test]
fn a_repository_settings_file_that_is_a_link_is_not_followed() {
    let test = with_settings("", "");
    fs::write(test.home().join("secret.toml"), "max_file_bytes = 5\n").expect("a file");
    std::os::unix::fs::symlink(test.home().join("secret.toml"), test.repo().join(".revdeck.toml")).expect("a link");
    let output = test.revdeck(&["config", "show", "--format", "json"]);
    let value: Value = serde_json::from_str(&out(&output)).expect("JSON");
    assert_eq!(value["settings"]["max_file_bytes"]["origin"], "default");
    assert_snapshot!(test.normalise(&err(&output)), @"warning: ignored: cannot read [repo]/.revdeck.toml: it is not an ordinary file; make it a readable file, or move it away: the defaults then apply");
}

#[test]
fn wrong_settings_are_told_with_their_place() {
    let test = with_settings("", "");
    let mut said = String::new();
    for (name, user) in [
        ("value", "max_parallel_runs = 0"),
        ("sort", "\n  ascii = \"yes\""),
        ("unknown", "colour = \"always\""),
        ("nested", "[window]\nturns = 3"),
        ("syntax", "theme = \n"),
        ("scope", "default_scope = \"everything\""),
        ("threshold", "[smells.long_method]\nmax_lines = 3"),
        ("threshold_sort", "[smells.long_method]\nmax_code_lines = \"60\""),
        // A key is not repeated.
        ("key_in_file", "[reviewers.a]\nkind = \"openai\"\nmodel = \"m\"\napi_key = \"sk-1\""),
        ("reviewer_kind", "[reviewers.a]\nkind = \"magic\""),
        ("reviewer_model", "[reviewers.a]\nkind = \"openai\""),
    ] {
        test.settings(user);
        said += &format!("{name}:\n{}", test.fails(&["review"], USAGE));
    }
    assert_snapshot!(said, @r#"
    value:
    error: [home]/config.toml:1:21: max_parallel_runs: 0 is out of range
      hint: allowed: a whole number from 1 to 64
    sort:
    error: [home]/config.toml:2:11: ascii: has a value of the wrong sort
      hint: allowed: true or false
    unknown:
    error: [home]/config.toml:1:1: colour: there is no such setting; did you mean "color"?
      hint: allowed: default_reviewer, default_panel, default_scope, max_parallel_runs, ignored_paths, max_file_bytes, git_seconds, fail_on, allow_unreviewed, ledger_tokens, ledger_priority, on_open, quit_summary, theme, ascii, mouse, motion, plain, diff_wrap, diff_ignore_space, finding_rows, finding_order, finding_groups, run_order, file_order, notify, color, keys, window.max_turns, window.max_tokens, window.slide_after_turn, window.slide_over_messages, window.keep_messages, budget.run_tokens, budget.run_cost, budget.day_tokens, budget.day_cost, policy.finish_from, assistants.reviews_per_hour, assistants.reviews_per_session, retention.keep_days, retention.keep_runs, watch.on, watch.quiet_seconds, watch.interval_seconds, watch.min_changed_lines, watch.quiet_hours, watch.ignored_paths, watch.reviewer, watch.day_tokens, watch.day_cost, watch.poll, watch.poll_seconds, resolve.reviewer, resolve.follow_ups, context.tokens, context.reading_seconds, context.types, context.tests, context.documentation, context.files, context.kinds, context.compression, context.embeddings.kind, context.embeddings.model, context.embeddings.base_url, context.embeddings.api_key_env, context.embeddings.api_key_cmd, context.embeddings.insecure_http, context.embeddings.seconds, learning.enabled, worth.steer, team.backend, team.database, team.share, team.exclude, team.patterns, team.accept, team.sign, [reviewers.NAME], [panels.NAME], [commands.NAME], [filters], [smells]
    nested:
    error: [home]/config.toml:2:1: window.turns: there is no such setting; did you mean "window.max_turns"?
      hint: allowed: default_reviewer, default_panel, default_scope, max_parallel_runs, ignored_paths, max_file_bytes, git_seconds, fail_on, allow_unreviewed, ledger_tokens, ledger_priority, on_open, quit_summary, theme, ascii, mouse, motion, plain, diff_wrap, diff_ignore_space, finding_rows, finding_order, finding_groups, run_order, file_order, notify, color, keys, window.max_turns, window.max_tokens, window.slide_after_turn, window.slide_over_messages, window.keep_messages, budget.run_tokens, budget.run_cost, budget.day_tokens, budget.day_cost, policy.finish_from, assistants.reviews_per_hour, assistants.reviews_per_session, retention.keep_days, retention.keep_runs, watch.on, watch.quiet_seconds, watch.interval_seconds, watch.min_changed_lines, watch.quiet_hours, watch.ignored_paths, watch.reviewer, watch.day_tokens, watch.day_cost, watch.poll, watch.poll_seconds, resolve.reviewer, resolve.follow_ups, context.tokens, context.reading_seconds, context.types, context.tests, context.documentation, context.files, context.kinds, context.compression, context.embeddings.kind, context.embeddings.model, context.embeddings.base_url, context.embeddings.api_key_env, context.embeddings.api_key_cmd, context.embeddings.insecure_http, context.embeddings.seconds, learning.enabled, worth.steer, team.backend, team.database, team.share, team.exclude, team.patterns, team.accept, team.sign, [reviewers.NAME], [panels.NAME], [commands.NAME], [filters], [smells]
    syntax:
    error: [home]/config.toml:1:9: this is not TOML: string values must be quoted, expected literal string
      hint: a value stands behind the equals sign, texts in quotes: key = "text"
    scope:
    error: [home]/config.toml:1:17: default_scope: "everything" is not allowed
      hint: allowed: "auto", "worktree", "staged", "commit:REV", "range:A..B", "range:A...B", "branch", "branch:BASE" or "all"
    threshold:
    error: [home]/config.toml:2:1: smells.long_method.max_lines: there is no such key
      hint: allowed: enabled, max_code_lines
    threshold_sort:
    error: [home]/config.toml:2:18: smells.long_method.max_code_lines: has a value of the sort string
      hint: allowed: a value of the sort integer; the default is 60
    key_in_file:
    error: [home]/config.toml:4:11: reviewers.a.api_key: a key does not belong into a settings file
      hint: allowed: api_key_env or api_key_cmd
    reviewer_kind:
    error: [home]/config.toml:2:8: reviewers.a.kind: "magic" is not allowed
      hint: allowed: "builtin", "openai", "openai-responses", "anthropic", "gemini", "ollama", "command"
    reviewer_model:
    error: [home]/config.toml:1:1: reviewers.a: needs model for kind = "openai"
      hint: allowed: a table with kind, model, base_url, api_key_env, api_key_cmd, insecure_http, ca_file, command, dialect, effort, context_window, max_output, encoding, price_input, price_cached, price_output, max_turns, tools, mask_secrets, idle_timeout, total_timeout, attempts, fallback, critic, summary
    "#);
}

#[test]
fn a_reviewer_is_known_by_its_name_and_refused_without_its_key() {
    let test = with_settings(
        "[reviewers.cloud]\nkind = \"anthropic\"\nmodel = \"m\"\napi_key_env = \"KEY\"\n[reviewers.mine]\nkind = \"builtin\"\n",
        "",
    );
    test.write("a.py", "x = 1\n");
    test.commit("something");
    assert_snapshot!(test.fails(&["review", "--wait", "--reviewer", "cloud"], USAGE), @"
    error: cloud has no API key: the variable KEY is not set
      hint: put the key into the environment (export KEY=...), or name another source in [reviewers.cloud]: api_key_env or api_key_cmd
    ");
    test.fails(&["review", "--reviewer", "cloud"], USAGE);
    assert_eq!(test.json(&["runs", "--format", "json"], DONE)["runs"], serde_json::json!([]), "nothing was queued");
    run(&test, &["review", "--wait", "--reviewer", "mine"], DONE);
    assert_snapshot!(test.fails(&["review", "--reviewer", "nobody"], USAGE), @r#"
    error: there is no reviewer named "nobody"
      hint: there are: builtin, cloud, mine
    "#);
}

#[test]
fn a_reviewer_is_refused_without_the_key_of_its_fallback() {
    let test = with_settings(
        "[reviewers.local]\nkind = \"ollama\"\nmodel = \"m\"\nfallback = \"cloud\"\n\
         [reviewers.cloud]\nkind = \"anthropic\"\nmodel = \"m\"\napi_key_env = \"KEY\"\n",
        "",
    );
    test.write("a.py", "x = 1\n");
    test.commit("something");
    assert_snapshot!(test.fails(&["review", "--reviewer", "local"], USAGE), @"
    error: cloud, the fallback of local, has no API key: the variable KEY is not set
      hint: put the key into the environment (export KEY=...), or name another source in [reviewers.cloud]: api_key_env or api_key_cmd; or take `fallback` out of [reviewers.local]
    ");
    assert_eq!(test.json(&["runs", "--format", "json"], DONE)["runs"], serde_json::json!([]), "nothing was queued");
}

#[test]
fn thresholds_can_be_changed_by_user_and_repository() {
    let test = with_settings("", "");
    test.write("wide.py", wide_function("wide"));
    let findings =
        |test: &TestEnvironment| list(&test.json(&["smells", ".", "--format", "json"], DONE), "findings").len();
    assert_eq!(findings(&test), 1);
    fs::write(test.home().join("smells.toml"), "[complex_functions]\nmax_parameters = 8\n").expect("a file");
    assert_eq!(findings(&test), 0);
    test.write(".revdeck.toml", "[smells.complex_functions]\nmax_parameters = 6\n");
    assert_eq!(findings(&test), 1, "the repository stands above the user's file");
    fs::write(test.home().join("config.toml"), "[smells.long_method]\nmax_code_lines = 9\n").expect("a file");
    let shown = test.json(&["config", "show", "--format", "json"], DONE);
    for (key, value, origin) in [
        ("smells.complex_functions.max_parameters", "6", "repository"),
        ("smells.long_method.max_code_lines", "9", "user"),
    ] {
        let setting = &shown["settings"][key];
        assert_eq!((&setting["value"], &setting["origin"]), (&value.into(), &origin.into()), "{key}");
    }
    fs::remove_file(test.repo().join(".revdeck.toml")).expect("a file");
    assert_snapshot!(changed(&test), @"
    smells.complex_functions.max_parameters = 8  # user, [home]/smells.toml:2:1
    smells.long_method.max_code_lines = 9        # user, [home]/config.toml:2:1
    ");
}

#[test]
fn a_repository_makes_the_users_own_thresholds_only_stricter() {
    let own = "[smells.long_method]\nmax_code_lines = 9\n[smells.dead_code]\nunused_imports = true\n";
    let theirs = "[smells.long_method]\nmax_code_lines = 500\n[smells.dead_code]\nunused_imports = false\n\
                  unused_locals = false\n[smells.complex_functions]\nmax_parameters = 9\nmax_nesting = 3\n\
                  [smells.magic_numbers]\nmax_per_function = 1\n[smells.god_class]\nmax_methods = 99\n";
    let test = with_settings(own, theirs);
    let smells = "[complex_functions]\nmax_parameters = 8\nmax_nesting = 4\n[magic_numbers]\nmax_per_function = 2\n";
    fs::write(test.home().join("smells.toml"), smells).expect("a file");
    let output = test.revdeck(&["config", "show", "--format", "json"]);
    let shown: Value = serde_json::from_str(&out(&output)).expect("JSON");
    for (key, value, origin) in [
        ("long_method.max_code_lines", "9", "user"),
        ("dead_code.unused_imports", "true", "user"),
        ("complex_functions.max_parameters", "8", "user"),
        ("magic_numbers.max_per_function", "2", "user"),
        ("complex_functions.max_nesting", "3", "repository"),
        ("dead_code.unused_locals", "false", "repository"),
        ("god_class.max_methods", "99", "repository"),
    ] {
        let setting = &shown["settings"][format!("smells.{key}")];
        assert_eq!((&setting["value"], &setting["origin"]), (&value.into(), &origin.into()), "{key}");
    }
    assert_snapshot!(test.normalise(&err(&output)), @"
    warning: [repo]/.revdeck.toml:7:1: smells.complex_functions.max_parameters: not obeyed; a repository may only make it stricter than your own value
    warning: [repo]/.revdeck.toml:4:1: smells.dead_code.unused_imports: not obeyed; a repository may only make it stricter than your own value
    warning: [repo]/.revdeck.toml:2:1: smells.long_method.max_code_lines: not obeyed; a repository may only make it stricter than your own value
    warning: [repo]/.revdeck.toml:10:1: smells.magic_numbers.max_per_function: not obeyed; a repository may only make it stricter than your own value
    ");
    test.write("long.py", long_function("long"));
    let found = test.json(&["smells", ".", "--format", "json"], DONE);
    assert!(list(&found, "findings").iter().any(|finding| finding["kind"] == "LONG_METHOD"), "9 lines hold: {found}");
}

#[test]
fn a_home_may_be_relative_or_empty() {
    let test = TestEnvironment::new();
    test.write("a.py", "x = 1\n");
    test.commit("something");
    let path = |home: &str| {
        let output = test
            .command(env!("CARGO_BIN_EXE_revdeck"))
            .args(["store", "path"])
            .env("REVDECK_HOME", home)
            .output()
            .expect("revdeck starts");
        out(&output).trim().to_owned()
    };
    let repo = test.repo().canonicalize().expect("a folder");
    assert!(path("some/home").starts_with(&format!("{}/some/home/state/review/repo-", repo.display())));
    assert!(path("some/home").ends_with("/auto-review"));
    assert_snapshot!(test.normalise(&path("")), @"[folder]/.local/state/revdeck/state/review/repo-[hash]/auto-review");

    // The worker may start in another folder; it must find the same store.
    let output = test
        .command(env!("CARGO_BIN_EXE_revdeck"))
        .args(["review", "--wait"])
        .env("REVDECK_HOME", "some/home")
        .output()
        .expect("revdeck starts");
    assert_eq!(output.status.code(), Some(DONE), "{}", err(&output));
}

#[test]
fn reviewers_and_budgets_are_shown_with_their_origin() {
    let user = "[reviewers.cloud]\nkind = \"anthropic\"\nmodel = \"claude-sonnet-5-5\"\nprice_input = 2\n\
                price_output = 10.5\ncritic = \"p1\"\n[budget]\nrun_cost = 0.5\n";
    let test = with_settings(user, "[budget]\nrun_cost = 99\n[reviewers.cloud]\nkind = \"ollama\"\nmodel = \"x\"\n");
    for (key, value, origin) in [
        ("budget.run_cost", serde_json::json!(0.5), "user"),
        ("budget.day_cost", serde_json::json!(10.0), "default"),
        ("reviewers.cloud.kind", "anthropic".into(), "user"),
        ("reviewers.cloud.price_output", serde_json::json!(10.5), "user"),
        ("reviewers.cloud.mask_secrets", true.into(), "default"),
        ("reviewers.cloud.insecure_http", false.into(), "default"),
    ] {
        assert_eq!(setting(&test, key, &[], &[]), (value, origin.to_owned()), "{key}");
    }
    assert_eq!(
        setting(&test, "budget.run_cost", &[("REVDECK_BUDGET_RUN_COST", "0.75")], &[]),
        (serde_json::json!(0.75), "environment".to_owned())
    );
    let shown = test.json(&["config", "show", "--format", "json"], DONE);
    let cloud = &shown["reviewers"]["cloud"];
    assert_eq!((&cloud["model"], &cloud["critic"]), (&"claude-sonnet-5-5".into(), &"p1".into()));
    let text = test.output(&["config", "show", "--origin"], DONE);
    let is_one =
        |line: &str| ["price_input", "attempts"].iter().any(|key| line.starts_with(&format!("reviewers.cloud.{key} ")));
    assert_snapshot!(lines_with(&text, is_one), @"
    reviewers.cloud.price_input = 2.00           # user, [home]/config.toml:4:1
    reviewers.cloud.attempts = 4                 # default
    ");
    assert_snapshot!(test.errors(&["config", "show"], DONE), @"
    warning: [repo]/.revdeck.toml:2:1: budget.run_cost: not obeyed; a repository may only set default_scope, ignored_paths, max_file_bytes, fail_on, watch.ignored_paths, context.types, context.tests, context.documentation, context.files, context.kinds, context.compression, learning.enabled and [smells]
    warning: [repo]/.revdeck.toml:3:2: reviewers: not obeyed; a repository may only set default_scope, ignored_paths, max_file_bytes, fail_on, watch.ignored_paths, context.types, context.tests, context.documentation, context.files, context.kinds, context.compression, learning.enabled and [smells]
    ");
}

#[test]
fn every_default_file_can_be_printed_and_used() {
    let test = TestEnvironment::new();
    for name in ["config", "smells", "keymap", "models"] {
        let text = run(&test, &["config", "defaults", name], DONE);
        fs::create_dir_all(test.home()).expect("a folder");
        fs::write(test.home().join(format!("{name}.toml")), text).expect("a file");
    }
    fs::create_dir_all(test.home().join("prompts")).expect("a folder");
    for prompt in PromptName::ALL {
        let text = run(&test, &["config", "defaults", &format!("prompts/{}", prompt.file())], DONE);
        fs::write(test.home().join(format!("prompts/{}.md", prompt.file())), text).expect("a file");
    }
    assert_eq!(test.json(&["doctor", "--format", "json"], DONE)["healthy"], true);
    assert_snapshot!(test.fails(&["config", "defaults", "themes"], USAGE), @"
    error: invalid value 'themes' for '[FILE]': there are config, smells, keymap, keymaps/vim, keymaps/emacs, keymaps/arrows, models, prompts/system, prompts/system-short, prompts/task, prompts/more, prompts/turn-investigate, prompts/turn-analyse, prompts/turn-finish, prompts/last, prompts/uncovered, prompts/cut, prompts/retry-empty, prompts/retry-refused, prompts/retry-unreadable, prompts/summarize, prompts/masked, prompts/critic, prompts/judge, prompts/agent, prompts/resolve, prompts/resolve-agent, prompts/resolve-edits, prompts/resolve-task, prompts/resolve-refused, prompts/ask, prompts/ask-task

    For more information, try '--help'.
    ");
}

#[test]
fn prompts_are_short() {
    // Limits in tokens, about a third above the present size: every request pays for the whole prompt.
    for (prompt, most) in PromptName::ALL.iter().map(|prompt| match prompt {
        PromptName::System => (prompt, 1600),
        PromptName::SystemShort => (prompt, 460),
        PromptName::Task => (prompt, 340),
        PromptName::Judge => (prompt, 300),
        PromptName::Critic | PromptName::Agent | PromptName::Ask => (prompt, 260),
        PromptName::Resolve | PromptName::ResolveAgent | PromptName::ResolveEdits => (prompt, 200),
        PromptName::Masked => (prompt, 40),
        prompt => (prompt, 120),
    }) {
        let tokens = count_tokens(Encoding::O200kBase, prompt.text());
        assert!((10..=most).contains(&tokens), "{prompt:?} has {tokens} tokens, of {most} at most");
    }
}

#[test]
fn the_doctor_says_what_each_reviewer_has_and_lacks() {
    let settings = "[reviewers.cloud]\nkind = \"anthropic\"\nmodel = \"claude-sonnet-5-5\"\n\
                    [reviewers.router]\nkind = \"openai\"\nbase_url = \"https://openrouter.ai/api/v1\"\n\
                    model = \"who/knows\"\napi_key_env = \"ROUTER_KEY\"\n\
                    [reviewers.old]\nkind = \"openai\"\nmodel = \"gpt-6.2-sol\"\napi_key_cmd = \"no-such-program rk-12345\"\n\
                    [reviewers.here]\nkind = \"ollama\"\nmodel = \"qwen3-coder\"\n\
                    [reviewers.agent]\nkind = \"command\"\ncommand = [\"git\", \"x\"]\n\
                    [reviewers.lost]\nkind = \"command\"\ncommand = [\"./no-such-agent\"]\n";
    let test = with_settings(settings, "");
    let doctor = |environment: &[(&str, &str)], default: &str, code: i32| {
        test.settings(&format!("default_reviewer = \"{default}\"\n{settings}"));
        let mut command = test.command(env!("CARGO_BIN_EXE_revdeck"));
        let output = command.arg("doctor").envs(environment.iter().copied()).output().expect("revdeck starts");
        assert_eq!(output.status.code(), Some(code), "{}{}", out(&output), err(&output));
        test.normalise(&out(&output))
    };
    let text = doctor(&[("ROUTER_KEY", "rk-12345")], "builtin", DONE);
    // A key is never shown.
    let git = test.command("sh").args(["-c", "command -v git"]).output().expect("a shell");
    assert_snapshot!(text.replace(out(&git).trim(), "[git]"), @r#"
    ok      version      revdeck [version]
    ok      settings     readable
    ok      environment  REVDECK_HOME
    ok      state        [home]/state can be made
    ok      cache        [home]/cache can be made
    ok      repository   [repo], branch main
    ok      store        [home]/state/review/repo-[hash]/auto-review: 0 runs, 0 findings
    notice  terminal     standard output is no terminal: `revdeck` prints a summary there
    ok      keymap       the default keys
    ok      theme        auto
    ok      models       readable
    ok      prompts      readable
    ok      reviewers    builtin (offline, no key needed)
    ok      reviewers    agent: command [git] (plain)
    notice  reviewers    cloud: anthropic claude-sonnet-5-5, window 1000000 tokens (counted approximately), 2.00 in, 10.00 out per million tokens (anthropic, 2026-10-10), the variable ANTHROPIC_API_KEY, which holds its key, is not set
    ok      reviewers    here: ollama qwen3-coder, window 32768 tokens (counted approximately), costs nothing, no key needed
    notice  reviewers    lost: the command "./no-such-agent" (plain) is not found in PATH
    notice  reviewers    old: openai gpt-6.2-sol, window 1050000 tokens (counted exactly), 2.00 in, 10.00 out per million tokens (openai, 2026-11-17), takes tools with kind = "openai-responses" only, key from api_key_cmd, which does not begin with a program in PATH
    notice  reviewers    router: openai who/knows, window 32000 tokens (guessed, not in models.toml; counted approximately), no known price: only limits on tokens hold; set price_input and price_output, key in ROUTER_KEY
    "#);
    let cloud = |text: &str| lines_with(text, |line| line.contains("  cloud: "));
    assert_snapshot!(cloud(&doctor(&[], "cloud", USAGE)), @"problem reviewers    cloud: anthropic claude-sonnet-5-5, window 1000000 tokens (counted approximately), 2.00 in, 10.00 out per million tokens (anthropic, 2026-10-10), the variable ANTHROPIC_API_KEY, which holds its key, is not set");
    assert_snapshot!(cloud(&doctor(&[("ANTHROPIC_API_KEY", "sk-ant-9")], "cloud", DONE)), @"ok      reviewers    cloud: anthropic claude-sonnet-5-5, window 1000000 tokens (counted approximately), 2.00 in, 10.00 out per million tokens (anthropic, 2026-10-10), key in ANTHROPIC_API_KEY");
}

#[test]
fn a_typo_in_theme_setting_or_keymap_is_an_error_with_what_was_meant() {
    let test = with_settings("", "");
    test.write("a.py", "x = 1\n");
    test.commit("something");
    // Only the cockpit has use for keys; see `a_mistake_in_theme_or_keys_keeps_the_cockpit_closed`.
    let said = |settings: &str, keymap: &str| {
        test.settings(settings);
        fs::write(test.home().join("keymap.toml"), keymap).expect("a file");
        run(&test, &["runs"], DONE);
        run(&test, &[], if settings.is_empty() { DONE } else { USAGE });
        lines_with(&test.output(&["doctor"], USAGE), |line| line.starts_with("problem ")) + "\n"
    };
    let mut all = said("theme = \"drak\"\n", "");
    all += &said("", "[findings]\n\"D\" = \"dismis\"\n");
    all += &said("", "[finding]\n\"D\" = \"dismiss\"\n");
    all += &said("", "[global]\n\"Entre\" = \"open\"\n");
    assert_snapshot!(all, @r#"
    problem theme        there is no theme "drak"; did you mean "dark"? There are: auto, dark, light, high-contrast, neutral, ansi, mono
    problem keymap       [home]/keymap.toml:2:1: [findings] D: "dismis" is no action; did you mean "dismiss"?
    problem keymap       [home]/keymap.toml:1:2: there is no context "finding"; did you mean "findings"?
    problem keymap       [home]/keymap.toml:2:1: [global] "Entre" is no key; did you mean "Enter"?
    "#);
    fs::write(test.home().join("keymap.toml"), "").expect("a file");
    test.settings("default_scpe = \"all\"\n[reviewers.m]\nkind = \"builtin\"\nmodle = \"x\"\n");
    let said = test.fails(&["review"], USAGE);
    assert_snapshot!(lines_with(&said, |line| line.starts_with("error")), @r#"error: [home]/config.toml:1:1: default_scpe: there is no such setting; did you mean "default_scope"?"#);
}

#[test]
fn keys_are_printed_with_the_file_and_line_of_the_user_that_bind_them() {
    let user = "keys = \"emacs\"\n[commands.blame]\nkey = \"Ctrl-t b\"\nrun = [\"git\", \"blame\", \"{path}\"]\n";
    let test = with_settings(user, "[commands.evil]\nkey = \"a\"\nrun = [\"evil\"]\n");
    fs::write(test.home().join("keymap.toml"), "[findings]\n\"D\" = \"dismiss\"\n\"a\" = false\n").expect("a file");
    let text = test.output(&["keys"], DONE);
    for (words, place) in [
        ("# keys = \"emacs\"", ""),
        ("Alt-x", " built-in"),
        ("F1", " built-in"),
        ("dismiss; x1 to x6", "[home]/keymap.toml:2"),
        ("taken away", "[home]/keymap.toml:3"),
        ("Ctrl-t b", "[home]/config.toml:3"),
        ("commands.blame", "[home]/config.toml:3"),
    ] {
        let is_there = text.lines().any(|line| line.contains(words) && line.contains(place));
        assert!(is_there, "{words} at {place} in {text}");
    }
    let keys = test.json(&["keys", "--format", "json"], DONE);
    assert_eq!((&keys["version"], &keys["preset"]), (&Value::from(1), &Value::from("emacs")));
    let findings = keys["contexts"]["findings"].as_array().expect("keys");
    let mine = findings.iter().find(|binding| binding["keys"] == "D").expect("the user's key");
    assert_eq!((&mine["action"], &mine["line"]), (&Value::from("dismiss"), &Value::from(2)));
    let found: Vec<&str> = keys["files"].as_array().expect("files").iter().filter_map(Value::as_str).collect();
    let is_mine = |place: usize, name: &str| found.get(place).is_some_and(|found| found.ends_with(name));
    assert!(found[0] == "built-in" && found.len() == 3, "{found:?}");
    assert!(is_mine(1, "keymap.toml") && is_mine(2, "config.toml") && mine["file"] == found[1], "{found:?}");
    let stats = keys["contexts"]["stats"].as_array().expect("keys");
    let is_built_in = |binding: &Value| binding["file"] == "built-in" && binding["line"].is_null();
    assert!(!stats.is_empty() && stats.iter().all(is_built_in), "{stats:?}");
    for printed in [text, keys.to_string()] {
        assert!(!printed.contains("src/tui") && !printed.contains("assets/"), "{printed}");
    }
    assert!(!keys.to_string().contains("evil"), "a repository defines no commands");
    assert!(test.errors(&["keys"], DONE).contains("commands: not obeyed"));
}

#[test]
fn mistakes_in_commands_are_told_with_what_was_meant() {
    let test = with_settings("", "");
    for (table, error) in [
        ("key = \"b\"", "commands.blame: needs run"),
        ("run = []", "commands.blame.run: is a list without a program"),
        ("run = [\"git\", \"{pth}\"]", "has {pth}, which is no field; did you mean \"path\"?"),
        ("run = [\"git\"]\nkye = \"b\"", "commands.blame.kye: there is no key \"kye\"; did you mean \"key\"?"),
        ("run = [\"git\"]\nwhere = \"here\"", "commands.blame.where: is \"here\""),
        ("run = [\"git\", \"log\"]\nshell = true", "commands.blame.run: has several words beside shell = true"),
        ("run = [\"git\"]\nprompts = \"why\"", "commands.blame.prompts: is no list"),
        ("run = [\"git\"]\nprompts = [\"why\"]", "commands.blame.prompts: has something else than tables in its list"),
        ("run = [\"git\"]\nprompts = [{ title = \"Why?\" }]", "commands.blame.prompts: has a question without a name"),
        (
            "run = [\"git\"]\nprompts = [{ name = \"title\" }]",
            "commands.blame.prompts.name: is \"title\", a field of the finding",
        ),
        (
            "run = [\"git\"]\nprompts = [{ name = \"a\", titel = \"b\" }]",
            "commands.blame.prompts.titel: there is no key \"titel\"; did you mean \"title\"?",
        ),
        (
            "run = [\"git\"]\nprompts = [{ name = \"a\" }, { name = \"a\" }]",
            "commands.blame.prompts: has the name \"a\" twice",
        ),
        (
            "run = [\"git\"]\nprompts = [{ name = \"a\", default = \"c\", choices = [\"b\"] }]",
            "commands.blame.prompts.default: is \"c\", which is none of the choices",
        ),
        (
            "run = [\"git\", \"{raeson}\"]\nprompts = [{ name = \"reason\" }]",
            "has {raeson}, which is no field; did you mean \"reason\"?",
        ),
    ] {
        test.settings(&format!("[commands.blame]\n{table}\n"));
        let said = test.fails(&["review"], USAGE);
        assert!(said.contains(error) && said.contains("[home]/config.toml:"), "{table}: {said}");
    }
    test.settings("[commands.blame]\nrun = [\"git\"]\nkey = \"Entre\"\n");
    let doctor = test.output(&["doctor"], USAGE);
    let fault = "[home]/config.toml:3:1: [commands.blame] key: \"Entre\" is no key; did you mean \"Enter\"?";
    assert!(doctor.contains(fault), "{doctor}");
}

#[test]
fn the_doctor_reads_models_and_prompts() {
    let test = with_settings("", "");
    fs::write(test.home().join("models.toml"), "[models.m]\ntools = 3\n").expect("a file");
    fs::create_dir_all(test.home().join("prompts")).expect("a folder");
    fs::write(test.home().join("prompts/task.md"), "Review it.\n").expect("a file");
    let text = test.output(&["doctor"], USAGE);
    assert_snapshot!(lines_with(&text, |line| line.starts_with("problem ")), @"
    problem models       [home]/models.toml:2:9: wanted string or table; allowed: what `revdeck config defaults models` explains
    problem prompts      [home]/prompts/task.md:1:1: task.md needs {{diff}}; allowed: {{diff}}, {{scope}}, {{rules}}, {{patterns}}, {{known}}, {{not_shown}}, {{context}}, {{later}}
    ");
}
