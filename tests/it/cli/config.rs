//! Settings: layers, errors and limits.

use revdeck::config::PromptName;
use revdeck::tokens::{Encoding, count_tokens};

use super::*;

fn with_settings(user: &str, repository: &str) -> TestEnvironment {
    let test = TestEnvironment::new();
    fs::create_dir_all(test.home()).expect("a folder");
    fs::write(test.home().join("config.toml"), user).expect("settings");
    if !repository.is_empty() {
        test.write(".revdeck.toml", repository);
    }
    test
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
    let shown = run(&test, &["config", "show", "--origin"], DONE);
    assert!(shown.contains("config.toml:3:1") && shown.contains(".revdeck.toml:1:1"), "{shown}");
    let paths = json(&test, &["config", "path", "--format", "json"], DONE);
    assert_eq!(paths["paths"]["config"]["exists"], true);
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
    for key in ["default_reviewer", "max_parallel_runs", "theme", "unknown", "reviewers", "window.max_turns", "keymap"]
    {
        let told = err(&output).lines().any(|line| {
            line.starts_with("warning: ") && line.contains(".revdeck.toml:") && line.contains(&format!(": {key}: "))
        });
        assert!(told, "{key}: {}", err(&output));
    }
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
    assert!(err(&output).contains("not an ordinary file"), "{}", err(&output));
}

#[rstest]
#[case::value("max_parallel_runs = 0", "config.toml:1:21: max_parallel_runs: 0 is out of range", "from 1 to 64")]
#[case::sort("\n  ascii = \"yes\"", "config.toml:2:11: ascii: ", "true or false")]
#[case::unknown("colour = \"always\"", "config.toml:1:1: colour: there is no such setting", "color")]
#[case::nested("[window]\nturns = 3", "config.toml:2:1: window.turns: ", "window.max_turns")]
#[case::syntax("theme = \n", "config.toml:1:", "")]
#[case::scope("default_scope = \"everything\"", "config.toml:1:17: default_scope: ", "\"worktree\"")]
#[case::threshold(
    "[smells.long_method]\nmax_lines = 3",
    "config.toml:2:1: smells.long_method.max_lines: ",
    "max_code_lines"
)]
#[case::threshold_sort(
    "[smells.long_method]\nmax_code_lines = \"60\"",
    "config.toml:2:18: smells.long_method.max_code_lines: ",
    "integer"
)]
#[case::key_in_file(
    "[reviewers.a]\nkind = \"openai\"\nmodel = \"m\"\napi_key = \"sk-1\"",
    "config.toml:4:11: ",
    "api_key_env"
)]
#[case::reviewer_kind("[reviewers.a]\nkind = \"magic\"", "config.toml:2:8: reviewers.a.kind: ", "\"anthropic\"")]
#[case::reviewer_model("[reviewers.a]\nkind = \"openai\"", "config.toml:", "model")]
fn wrong_settings_are_told_with_their_place(#[case] user: &str, #[case] place: &str, #[case] allowed: &str) {
    let test = with_settings(user, "");
    let error = fails(&test, &["review"], USAGE);
    assert!(error.contains(place) && error.contains(allowed) && error.contains("  hint: "), "{error}");
    assert!(!error.contains("sk-1"), "a key is not repeated: {error}");
}

#[test]
fn a_reviewer_is_known_by_its_name_and_a_missing_key_is_said() {
    let test = with_settings(
        "[reviewers.cloud]\nkind = \"anthropic\"\nmodel = \"m\"\napi_key_env = \"KEY\"\n[reviewers.mine]\nkind = \"builtin\"\n",
        "",
    );
    test.write("a.py", "x = 1\n");
    test.commit("something");
    let output = test.revdeck(&["review", "--wait", "--reviewer", "cloud"]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("the variable KEY is not set"), "{said}");
    run(&test, &["review", "--wait", "--reviewer", "mine"], DONE);
    let error = fails(&test, &["review", "--reviewer", "nobody"], USAGE);
    assert!(error.contains("builtin, cloud, mine"), "{error}");
}

#[test]
fn thresholds_can_be_changed_by_user_and_repository() {
    let test = with_settings("", "");
    test.write("wide.py", wide_function("wide"));
    let findings =
        |test: &TestEnvironment| list(&json(test, &["smells", ".", "--format", "json"], DONE), "findings").len();
    assert_eq!(findings(&test), 1);
    fs::write(test.home().join("smells.toml"), "[complex_functions]\nmax_parameters = 8\n").expect("a file");
    assert_eq!(findings(&test), 0);
    test.write(".revdeck.toml", "[smells.complex_functions]\nmax_parameters = 6\n");
    assert_eq!(findings(&test), 1, "the repository stands above the user's file");
    fs::write(test.home().join("config.toml"), "[smells.long_method]\nmax_code_lines = 9\n").expect("a file");
    let shown = json(&test, &["config", "show", "--format", "json"], DONE);
    for (key, value, origin) in [
        ("smells.complex_functions.max_parameters", "6", "repository"),
        ("smells.long_method.max_code_lines", "9", "user"),
    ] {
        let setting = &shown["settings"][key];
        assert_eq!((&setting["value"], &setting["origin"]), (&value.into(), &origin.into()), "{key}");
    }
    fs::remove_file(test.repo().join(".revdeck.toml")).expect("a file");
    let shown = run(&test, &["config", "show", "--origin"], DONE);
    assert!(shown.contains("max_parameters = 8") && shown.contains("smells.toml:2:1"), "{shown}");
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
    let said = err(&output);
    for warning in [
        ".revdeck.toml:2:1: smells.long_method.max_code_lines: not obeyed",
        ".revdeck.toml:4:1: smells.dead_code.unused_imports: not obeyed",
        ".revdeck.toml:7:1: smells.complex_functions.max_parameters: not obeyed",
        ".revdeck.toml:10:1: smells.magic_numbers.max_per_function: not obeyed",
    ] {
        assert!(said.contains(warning), "{warning:?} is missing in {said}");
    }
    assert_eq!(said.matches("only make it stricter than your own value").count(), 4, "{said}");
    test.write("long.py", long_function("long"));
    let found = json(&test, &["smells", ".", "--format", "json"], DONE);
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
    assert!(!path("").contains("some/home") && path("").starts_with('/'), "{}", path(""));

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
    ] {
        assert_eq!(setting(&test, key, &[], &[]), (value, origin.to_owned()), "{key}");
    }
    assert_eq!(
        setting(&test, "budget.run_cost", &[("REVDECK_BUDGET_RUN_COST", "0.75")], &[]),
        (serde_json::json!(0.75), "environment".to_owned())
    );
    let shown = json(&test, &["config", "show", "--format", "json"], DONE);
    let cloud = &shown["reviewers"]["cloud"];
    assert_eq!((&cloud["model"], &cloud["critic"]), (&"claude-sonnet-5-5".into(), &"p1".into()));
    let text = run(&test, &["config", "show", "--origin"], DONE);
    let line =
        |start: &str| text.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{start}: {text}"));
    assert!(line("reviewers.cloud.price_input = 2.00 ").contains("config.toml:4:1"), "{text}");
    assert!(line("reviewers.cloud.attempts = 4 ").ends_with("# default"), "{text}");
    let warned = err(&test.revdeck(&["config", "show"]));
    assert!(warned.contains(": budget.run_cost: not obeyed") && warned.contains(": reviewers: not obeyed"), "{warned}");
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
    assert_eq!(json(&test, &["doctor", "--format", "json"], DONE)["healthy"], true);
    let error = fails(&test, &["config", "defaults", "themes"], USAGE);
    assert!(error.contains("prompts/system"), "{error}");
}

#[test]
fn prompts_are_short() {
    // Limits in tokens, about a third above the present size: every request pays for the whole prompt.
    for (prompt, most) in PromptName::ALL.iter().map(|prompt| match prompt {
        PromptName::System => (prompt, 1600),
        PromptName::Task => (prompt, 340),
        PromptName::Critic | PromptName::Agent => (prompt, 260),
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
        fs::write(test.home().join("config.toml"), format!("default_reviewer = \"{default}\"\n{settings}"))
            .expect("a file");
        let mut command = test.command(env!("CARGO_BIN_EXE_revdeck"));
        let output = command.arg("doctor").envs(environment.iter().copied()).output().expect("revdeck starts");
        assert_eq!(output.status.code(), Some(code), "{}{}", out(&output), err(&output));
        out(&output)
    };
    let text = doctor(&[("ROUTER_KEY", "rk-12345")], "builtin", DONE);
    let line = |name: &str| {
        let line = text.lines().find(|line| line.contains(&format!("reviewers    {name}: ")));
        line.unwrap_or_else(|| panic!("{name}: {text}")).to_owned()
    };
    for (name, verdict, parts) in [
        ("cloud", "notice", &["ANTHROPIC_API_KEY, which holds its key, is not set", "window 1000000", "2.00 in"][..]),
        ("router", "notice", &["key in ROUTER_KEY", "guessed", "no known price"]),
        ("old", "notice", &["does not begin with a program in PATH", "openai-responses"]),
        ("here", "ok", &["costs nothing", "no key", "window 32768"]),
        ("agent", "ok", &["/git (plain)"]),
        ("lost", "notice", &["\"./no-such-agent\" (plain) is not found"]),
    ] {
        let line = line(name);
        assert!(line.starts_with(verdict) && parts.iter().all(|part| line.contains(part)), "{name}: {line}");
    }
    assert!(!text.contains("rk-12345"), "a key is never shown: {text}");
    assert!(doctor(&[], "cloud", USAGE).contains("problem reviewers    cloud: "));
    assert!(doctor(&[("ANTHROPIC_API_KEY", "sk-ant-9")], "cloud", DONE).contains("ok      reviewers    cloud: "));
}

#[test]
fn the_doctor_reads_models_and_prompts() {
    let test = with_settings("", "");
    fs::write(test.home().join("models.toml"), "[models.m]\ntools = 3\n").expect("a file");
    fs::create_dir_all(test.home().join("prompts")).expect("a folder");
    fs::write(test.home().join("prompts/task.md"), "Review it.\n").expect("a file");
    let text = run(&test, &["doctor"], USAGE);
    assert!(text.contains("problem models") && text.contains("models.toml:2:9: "), "{text}");
    assert!(text.contains("problem prompts") && text.contains("task.md:1:1: task.md needs {{diff}}"), "{text}");
}
