//! Tests all settings in tables: every key has a default, documentation and a rule for who may set it.

use super::error::SettingLocation;
use super::keys::{SettingType, Trust};
use super::settings::BudgetSettings;
use super::*;

fn load_with(user: &str, repository: &str) -> Result<LoadedSettings, ConfigError> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (home, worktree) = (folder.path().join("home"), folder.path().join("repo"));
    for (folder, name, content) in [(&home, "config.toml", user), (&worktree, REPOSITORY_FILE, repository)] {
        std::fs::create_dir_all(folder).expect("a folder");
        std::fs::write(folder.join(name), content).expect("a file");
    }
    let paths = Paths::from_home(&home);
    load_settings(SettingsSources {
        paths: &paths,
        repository: RepositorySource::Worktree(&worktree),
        environment: &|_| None,
        flags: &[],
        texts: RequiredAssets::All,
        mistakes: MistakePolicy::Refuse,
    })
}

/// Returns an allowed value other than the default.
fn other_value(form: SettingType) -> String {
    match form {
        SettingType::Text | SettingType::OptionalText => "\"other\"".to_owned(),
        SettingType::Flag => "true".to_owned(),
        SettingType::Count { min, .. } => (min + 1).to_string(),
        SettingType::OneOf(words) => format!("{:?}", words.last().expect("a word")),
        SettingType::Scope => "\"all\"".to_owned(),
        SettingType::FailOn => "\"p2\"".to_owned(),
        SettingType::Money { .. } => "0.25".to_owned(),
        SettingType::Patterns | SettingType::Program => "[\"other\"]".to_owned(),
        SettingType::Address => "\"https://models.example.org/v1\"".to_owned(),
        SettingType::Variable => "\"SOME_KEY\"".to_owned(),
        SettingType::AnyOf(words) => format!("[{:?}]", words.last().expect("a word")),
        SettingType::Hours => "\"22:00-07:00\"".to_owned(),
    }
}

#[test]
fn every_setting_has_a_documented_default() {
    let loaded = load_with("", "").expect("the defaults load");
    assert_eq!(loaded.entries.len(), KEYS.len(), "assets/config.toml sets every key");
    assert!(loaded.entries.iter().all(|setting| setting.origin == SettingOrigin::Default));
    assert_eq!(loaded.settings, Settings::default());
    for key in KEYS {
        let last = key.name.rsplit('.').next().expect("a name");
        let lines: Vec<&str> = embedded::CONFIG.lines().collect();
        let at = lines.iter().position(|line| line.starts_with(&format!("{last} ="))).expect(key.name);
        assert!(lines[at - 1].starts_with('#'), "{} has a comment above it", key.name);
        let paragraph = lines[..at].iter().rev().take_while(|line| line.starts_with('#'));
        let documented = paragraph.into_iter().any(|line| line.contains("(repository)"));
        assert_eq!(documented, key.trust == Trust::Repository, "{} says who may set it", key.name);
    }
}

#[test]
fn a_user_may_set_all_and_a_repository_the_harmless() {
    for key in KEYS {
        let line = format!("{} = {}\n", key.name, other_value(key.form));
        let own = load_with(&line, "").unwrap_or_else(|error| panic!("{line}: {error}"));
        let origin = |loaded: &LoadedSettings| {
            loaded.entries.iter().find(|setting| setting.key == key.name).expect("shown").origin.clone()
        };
        assert!(matches!(origin(&own), SettingOrigin::User(_)), "{line}");
        let theirs = load_with("", &line).unwrap_or_else(|error| panic!("{line}: {error}"));
        match key.trust {
            Trust::Repository => {
                assert!(
                    matches!(origin(&theirs), SettingOrigin::Repository(_)) && theirs.warnings.is_empty(),
                    "{line}"
                );
            }
            Trust::User => {
                assert!(matches!(origin(&theirs), SettingOrigin::Default), "{line}");
                assert!(theirs.warnings.len() == 1 && theirs.warnings[0].contains(key.name), "{:?}", theirs.warnings);
                assert_eq!(theirs.settings, Settings::default(), "{line}");
            }
        }
    }
}

#[test]
fn every_setting_reaches_its_field() {
    let defaults = load_with("", "").expect("the defaults load");
    for (key, default) in KEYS.iter().zip(&defaults.entries) {
        assert_eq!(key.name, default.key, "the keys stand in the order of the settings in effect");
        // Without a kind, nothing is read from the other settings of embeddings.
        let is_embedding = key.name.starts_with("context.embeddings.");
        let base =
            if is_embedding && !key.name.ends_with(".kind") { "context.embeddings.kind = \"openai\"\n" } else { "" };
        let before = load_with(base, "").expect("sound").settings;
        let loaded = load_with(&format!("{base}{} = {}\n", key.name, other_value(key.form)), "").expect(key.name);
        let is_other = loaded.entries.iter().any(|entry| entry.key == key.name && entry.value != default.value);
        if is_other {
            assert_ne!(loaded.settings, before, "{} changes nothing", key.name);
        }
    }
}

#[test]
fn embedded_files_are_toml() {
    for (name, text) in [
        ("config", embedded::CONFIG),
        ("smells", embedded::SMELLS),
        ("keymap", embedded::KEYMAP),
        ("keymaps/vim", embedded::KEYMAP_VIM),
        ("keymaps/emacs", embedded::KEYMAP_EMACS),
        ("keymaps/arrows", embedded::KEYMAP_ARROWS),
        ("models", embedded::MODELS),
    ] {
        assert!(text.parse::<toml::Table>().is_ok_and(|table| !table.is_empty()), "{name}");
    }
}

#[test]
fn whatever_a_repository_writes_never_panics_and_never_names_a_reviewer() {
    for hostile in [
        "\u{0}",
        "= 1",
        "[[reviewers]]\nkind = \"command\"",
        "reviewers = { a = { kind = \"command\", command = [\"sh\"] } }",
        "reviewers.\"a\\u001b[2J\".kind = \"command\"",
        "smells = 3",
        "window = 3",
        "[budget]\nrun_cost = 1000000.0",
        "budget = inf",
        "max_file_bytes = 99999999999999999999999999",
        "max_file_bytes = -1",
        "ignored_paths = [[\"a\"]]",
        "\u{feff}theme = \"x\"",
        "\"\\u001b[31mred\" = 1",
    ] {
        let loaded = load_with("", hostile).unwrap_or_else(|error| panic!("{hostile:?}: {error}"));
        assert!(loaded.settings.reviewers.is_empty(), "{hostile:?}");
        assert!(!loaded.warnings.is_empty() && !loaded.has_mistakes, "{hostile:?}");
        assert!(loaded.warnings.iter().all(|line| !line.contains('\u{1b}')), "{:?}", loaded.warnings);
    }
}

#[test]
fn the_users_files_are_laid_over_the_embedded_ones() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("keymap.toml");
    let base = "[global]\nq = \"quit\"\nr = \"review\"\n";
    assert_eq!(overlay_user_file(base, &file, AllowedKeys::Any).expect("no file"), None);
    std::fs::write(&file, "[global]\nq = \"none\"\n[list]\nx = \"dismiss\"\n").expect("a file");
    let merged: toml::Table =
        overlay_user_file(base, &file, AllowedKeys::Any).expect("sound").expect("a file").parse().expect("TOML");
    let expected: toml::Table =
        "[global]\nq = \"none\"\nr = \"review\"\n[list]\nx = \"dismiss\"\n".parse().expect("TOML");
    assert_eq!(merged, expected);
    let error = overlay_user_file(base, &file, AllowedKeys::OnlyBaseKeys).expect_err("list is not in the base");
    assert!(error.to_string().contains("keymap.toml:3:2: list: "), "{error}");
}

/// Returns a `[reviewers.a]` table with these lines.
fn reviewer(lines: &str) -> Result<LoadedSettings, ConfigError> {
    load_with(&format!("[reviewers.a]\n{lines}\n"), "")
}

#[test]
fn every_field_of_a_reviewer_can_be_set_is_documented_and_shown_with_its_place() {
    for SettingKey { name, form, .. } in reviewers::FIELDS {
        let documented = format!("\n# {name} = ");
        assert_eq!(embedded::CONFIG.matches(&documented).count(), 1, "{name}");
        let value = match *name {
            "kind" => "\"ollama\"".to_owned(),
            "context_window" => "64000".to_owned(),
            "tools" => "true".to_owned(),
            "mask_secrets" => "false".to_owned(),
            "critic" => "\"p1\"".to_owned(),
            "fallback" => "\"b\"".to_owned(),
            _ => other_value(*form),
        };
        let mut lines = vec![format!("{name} = {value}")];
        match *name {
            "command" | "dialect" => {
                lines.push("kind = \"command\"".to_owned());
                lines.extend((*name == "dialect").then(|| "command = [\"x\"]".to_owned()));
            }
            "kind" => lines.push("model = \"m\"".to_owned()),
            "model" => lines.push("kind = \"openai\"".to_owned()),
            _ => lines.extend(["kind = \"openai\"".to_owned(), "model = \"m\"".to_owned()]),
        }
        match *name {
            "price_input" => lines.push("price_output = 1".to_owned()),
            "price_output" => lines.push("price_input = 1".to_owned()),
            "price_cached" => lines.push("price_input = 1\nprice_output = 1".to_owned()),
            "fallback" => lines.push("[reviewers.b]\nkind = \"ollama\"\nmodel = \"m\"".to_owned()),
            _ => {}
        }
        let loaded = reviewer(&lines.join("\n")).unwrap_or_else(|error| panic!("{name}: {error}"));
        let key = format!("reviewers.a.{name}");
        let shown = loaded.reviewers.iter().find(|setting| setting.key == key).unwrap_or_else(|| panic!("{name}"));
        let SettingOrigin::User(SettingLocation::File { line, column, .. }) = shown.origin else {
            panic!("{name}: {:?}", shown.origin)
        };
        assert_eq!((line, column), (2, 1), "{name}");
        let expected = value.trim_matches('"');
        let shown = match shown.value.clone() {
            SettingValue::Text(text) => text,
            SettingValue::Count(count) => count.to_string(),
            SettingValue::Money(amount) => amount.to_string(),
            SettingValue::Flag(flag) => flag.to_string(),
            SettingValue::List(list) => format!("{list:?}"),
        };
        match *name {
            // A relative path starts in the folder of the settings.
            "ca_file" => assert!(shown.ends_with("home/other"), "{name}: {shown}"),
            _ => assert_eq!(shown, expected, "{name}"),
        }
    }
}

#[test]
fn a_reviewer_that_says_little_has_defaults() {
    let loaded = reviewer("kind = \"anthropic\"\nmodel = \"m\"").expect("sound");
    let reviewer = &loaded.settings.reviewers["a"];
    let expected = ReviewerSettings { model: "m".to_owned(), ..ReviewerSettings::new(ReviewerKind::Anthropic) };
    assert_eq!(*reviewer, expected);
    assert!(
        reviewer.mask_secrets && reviewer.critic.is_none() && reviewer.summary == crate::domain::SummaryAuthor::Local
    );
    let default = |name: &str| {
        let key = format!("reviewers.a.{name}");
        loaded.reviewers.iter().find(|setting| setting.key == key).map(|setting| setting.origin.clone())
    };
    assert_eq!((default("attempts"), default("critic")), (Some(SettingOrigin::Default), Some(SettingOrigin::Default)));
    assert_eq!(default("price_input"), None, "what nobody set is not shown");
}

#[test]
fn the_words_of_reviewers_are_those_of_their_types() {
    let words = |name: &str| match reviewers::FIELDS.iter().find(|field| field.name == name) {
        Some(SettingKey { form: SettingType::OneOf(words), .. }) => words.to_vec(),
        other => panic!("{name}: {other:?}"),
    };
    let efforts: Vec<&str> = crate::domain::Effort::ALL.iter().map(|effort| effort.word()).collect();
    assert_eq!(words("effort"), efforts);
    assert_eq!(words("encoding"), crate::domain::Encoding::EXACT.map(crate::domain::Encoding::name));
    for word in words("kind") {
        let loaded = reviewer(&match word {
            "command" => "kind = \"command\"\ncommand = [\"x\"]".to_owned(),
            word => format!("kind = \"{word}\"\nmodel = \"m\""),
        });
        assert_eq!(loaded.expect(word).settings.reviewers["a"].kind.word(), word);
    }
    for word in words("dialect") {
        let loaded = reviewer(&format!("kind = \"command\"\ncommand = [\"x\"]\ndialect = \"{word}\""));
        assert_eq!(loaded.expect(word).settings.reviewers["a"].dialect().word(), word);
    }
}

#[test]
fn what_a_reviewer_cannot_mean_is_told_with_its_place() {
    let model = "kind = \"openai\"\nmodel = \"m\"\n";
    for (lines, problem, allowed) in [
        ("model = \"m\"", "config.toml:1:1: reviewers.a: needs kind", "\"ollama\""),
        ("kind = \"openai\"", "config.toml:1:1: reviewers.a: needs model", "model"),
        ("kind = \"command\"", "config.toml:1:1: reviewers.a: needs command", "command"),
        (&format!("{model}effort = \"huge\""), "4:10: reviewers.a.effort: \"huge\" is not allowed", "\"xhigh\""),
        (&format!("{model}max_turns = 21"), "4:13: reviewers.a.max_turns: 21 is out of range", "from 1 to 20"),
        (&format!("{model}attempts = 0"), "4:12: reviewers.a.attempts: 0 is out of range", "from 1 to 10"),
        (&format!("{model}context_window = 100"), "4:18: reviewers.a.context_window: 100 ", "from 4000 to 10000000"),
        (&format!("{model}price_input = -1"), "4:15: reviewers.a.price_input: -1 is out of range", "US dollars"),
        (&format!("{model}price_input = 1"), "price_input: needs price_output as well", "together"),
        (&format!("{model}price_cached = 1"), "price_cached: needs price_input as well", "together"),
        (&format!("{model}tools = \"yes\""), "tools: has a value of the wrong sort", "true or false"),
        (&format!("{model}base_url = \"https://me:key@x.org\""), "base_url: holds a name or a key", "without"),
        (&format!("{model}api_key_env = \"sk-1\""), "api_key_env: is not the name of a variable", "ANTHROPIC"),
        (&format!("{model}api_key_env = \"A\"\napi_key_cmd = \"b\""), "api_key_cmd: stands beside", "one of them"),
        (&format!("{model}command = [\"x\"]"), "command: is only for kind", "leave it out"),
        (&format!("{model}context_window = 5000\nmax_output = 5000"), "max_output: leaves no room", "less than"),
        (&format!("{model}fallback = \"b\""), "4:1: reviewers.a.fallback: there is no reviewer named \"b\"", "none"),
        (&format!("{model}fallback = \"builtin\""), "fallback: the built-in reviewer takes nothing over", "none"),
        (&format!("{model}fallback = \"a\""), "fallback: leads back to itself: a -> a", ""),
        (&format!("{model}surprise = 1"), "4:1: reviewers.a.surprise: there is no key", "idle_timeout"),
    ] {
        let error = reviewer(lines).expect_err(lines);
        let (told, hint) = (error.to_string(), error.hint());
        assert!(told.contains(problem) && hint.contains(allowed), "{told}; {hint}");
    }
    let error = load_with("[reviewers.builtin]\nkind = \"ollama\"\nmodel = \"m\"\n", "").expect_err("a name in use");
    assert!(error.to_string().contains("the name stands for the built-in reviewer"), "{error}");
}

#[test]
fn second_opinions_of_a_panel_are_given_by_models() {
    let reviewers = "[reviewers.a]\nkind = \"ollama\"\nmodel = \"m\"\n\
                     [reviewers.agent]\nkind = \"command\"\ncommand = [\"x\"]\n\
                     [panels.p]\nreviewers = [\"a\", \"agent\"]\n";
    load_with(&format!("{reviewers}judge = \"a\""), "").expect("a model is a judge, and an agent a member");
    for (line, key) in [
        ("judge = \"agent\"", "panels.p.judge"),
        ("escalate = { to = \"agent\", when = \"disputed\" }", "panels.p.escalate"),
    ] {
        let error = load_with(&format!("{reviewers}{line}\n"), "").expect_err(line);
        let (told, hint) = (error.to_string(), error.hint());
        let problem = format!("{key}: \"agent\" has kind = \"command\" and is no model");
        assert!(told.contains("config.toml:") && told.contains(&problem), "{told}");
        assert!(hint.contains("[reviewers] table of a model"), "{hint}");
    }
}

#[test]
fn a_mistake_in_a_panel_is_told_at_its_line() {
    let reviewers = "[reviewers.a]\nkind = \"ollama\"\nmodel = \"m\"\n[panels.p]\nreviewers = [\"a\", \"builtin\"]\n";
    let agent = "[reviewers.agent]\nkind = \"ollama\"\nmodel = \"m\"\n";
    for (line, place, problem) in [
        ("judge = \"ghost\"", "6:9", "panels.p.judge: there is no reviewer named \"ghost\""),
        (
            "escalate = { to = \"agnet\", when = \"p0\" }",
            "6:12",
            "panels.p.escalate: there is no reviewer named \"agnet\"; did you mean \"agent\"?",
        ),
        ("judge = \"builtin\"", "6:9", "panels.p.judge: \"builtin\" is the built-in reviewer and no model"),
        (
            "escalate = { to = \"builtin\", when = \"p0\" }",
            "6:12",
            "panels.p.escalate: \"builtin\" is the built-in reviewer and no model",
        ),
        ("focus = { a = [\"SECURTY\"] }", "6:9", "\"SECURTY\" is no kind; did you mean \"SECURITY\"?"),
    ] {
        let error = load_with(&format!("{reviewers}{line}\n{agent}"), "").expect_err(line).to_string();
        assert!(error.contains(&format!("config.toml:{place}: ")) && error.contains(problem), "{error}");
    }
    for (limit, expected) in [("0", None), ("0.5", Some(0.5))] {
        let loaded = load_with(&format!("{reviewers}max_cost = {limit}\n"), "").expect("a panel");
        assert_eq!(loaded.settings.panels["p"].max_cost.map(|cost| cost.as_f64()), expected);
    }
}

#[test]
fn fallbacks_make_no_circle() {
    let chain = |links: &[(&str, &str)]| {
        let table = |(name, fallback): &(&str, &str)| {
            let fallback = if fallback.is_empty() { String::new() } else { format!("fallback = \"{fallback}\"\n") };
            format!("[reviewers.{name}]\nkind = \"ollama\"\nmodel = \"m\"\n{fallback}")
        };
        load_with(&links.iter().map(table).collect::<String>(), "").map_err(|error| error.to_string())
    };
    let sound = chain(&[("a", "b"), ("b", "c"), ("c", "")]).expect("no circle");
    assert_eq!(sound.settings.reviewers["b"].fallback.as_deref(), Some("c"));
    let error = chain(&[("a", "b"), ("b", "c"), ("c", "b")]).expect_err("b and c");
    assert!(error.contains("reviewers.b.fallback: leads back to itself: b -> c -> b"), "{error}");
    let error = chain(&[("a", "b"), ("b", "c"), ("c", "a")]).expect_err("all");
    assert!(error.contains("reviewers.a.fallback: leads back to itself: a -> b -> c -> a"), "{error}");
}

#[test]
fn a_budget_of_nothing_is_no_limit() {
    let budget = Settings::default().budget;
    assert!(budget.run_tokens.is_some() && budget.run_cost.is_some(), "a paid reviewer has limits by default");
    assert!(budget.day_tokens > budget.run_tokens && budget.day_cost > budget.run_cost);
    let none =
        load_with("[budget]\nrun_tokens = 0\nrun_cost = 0\nday_tokens = 0\nday_cost = 0.0\n", "").expect("sound");
    let nothing = BudgetSettings { run_tokens: None, run_cost: None, day_tokens: None, day_cost: None };
    assert_eq!(none.settings.budget, nothing);
    let own = load_with("[budget]\nrun_cost = 2\nday_cost = 0.5\n", "").expect("sound").settings.budget;
    assert_eq!((own.run_cost, own.day_cost), (Dollars::new(2.0), Dollars::new(0.5)));
}

#[test]
fn a_saved_filter_whose_name_cannot_be_written_in_a_filter_is_refused() {
    for (user, key) in [
        ("[filters]\n\"my urgent\" = \"p:0\"\n", "filters.my urgent"),
        ("[filters]\n\"\" = \"p:0\"\n", "filters."),
        ("[filters]\n'a\"b' = \"p:0\"\n", "filters.a\"b"),
    ] {
        let error = load_with(user, "").expect_err(user);
        let said = error.to_string();
        assert!(
            said.contains("config.toml:2:") && said.ends_with(&format!(" {key}: is no name of a filter")),
            "{said}"
        );
        assert!(error.hint().contains("without blanks"), "{}", error.hint());
    }
    let loaded = load_with("[filters]\nurgent = \"p:0\"\n\"größe\" = \"p:1\"\n", "").expect("names");
    assert_eq!(loaded.settings.filters.len(), 2);
}
