//! Tables over all settings: every key has a default, a documentation and a rule for who may set it.

use super::*;

fn load_with(user: &str, repository: &str) -> Result<Loaded, ConfigError> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (home, worktree) = (folder.path().join("home"), folder.path().join("repo"));
    for (folder, name, content) in [(&home, "config.toml", user), (&worktree, REPOSITORY_FILE, repository)] {
        std::fs::create_dir_all(folder).expect("a folder");
        std::fs::write(folder.join(name), content).expect("a file");
    }
    let paths = Paths::below(&home);
    load(Inputs {
        paths: &paths,
        worktree: Some(&worktree),
        environment: &|_| None,
        flags: &[],
        texts: Texts::All,
        mistakes: Mistakes::Refuse,
    })
}

/// Another value than the default that the key accepts.
fn other_value(key: &Key) -> String {
    match key.form {
        Form::Text => "\"other\"".to_owned(),
        Form::Flag => "true".to_owned(),
        Form::Count { min, .. } => (min + 1).to_string(),
        Form::Words(words) => format!("{:?}", words.last().expect("a word")),
        Form::Scope => "\"all\"".to_owned(),
        Form::FailOn => "\"p2\"".to_owned(),
        Form::Patterns => "[\"other\"]".to_owned(),
    }
}

#[test]
fn every_setting_has_a_documented_default() {
    let loaded = load_with("", "").expect("the defaults load");
    assert_eq!(loaded.shown.len(), KEYS.len(), "assets/config.toml sets every key");
    assert!(loaded.shown.iter().all(|setting| setting.origin == Origin::Default));
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
        let line = format!("{} = {}\n", key.name, other_value(key));
        let own = load_with(&line, "").unwrap_or_else(|error| panic!("{line}: {error}"));
        let origin = |loaded: &Loaded| {
            loaded.shown.iter().find(|setting| setting.key == key.name).expect("shown").origin.clone()
        };
        assert!(matches!(origin(&own), Origin::User(_)), "{line}");
        let theirs = load_with("", &line).unwrap_or_else(|error| panic!("{line}: {error}"));
        match key.trust {
            Trust::Repository => {
                assert!(matches!(origin(&theirs), Origin::Repository(_)) && theirs.warnings.is_empty(), "{line}");
            }
            Trust::User => {
                assert!(matches!(origin(&theirs), Origin::Default), "{line}");
                assert!(theirs.warnings.len() == 1 && theirs.warnings[0].contains(key.name), "{:?}", theirs.warnings);
                assert_eq!(theirs.settings, Settings::default(), "{line}");
            }
        }
    }
}

#[test]
fn embedded_files_are_toml() {
    for (name, text) in [("config", embedded::CONFIG), ("smells", embedded::SMELLS), ("keymap", embedded::KEYMAP)] {
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
        "max_file_bytes = 99999999999999999999999999",
        "max_file_bytes = -1",
        "ignored_paths = [[\"a\"]]",
        "\u{feff}theme = \"x\"",
        "\"\\u001b[31mred\" = 1",
    ] {
        let loaded = load_with("", hostile).unwrap_or_else(|error| panic!("{hostile:?}: {error}"));
        assert!(loaded.settings.reviewers.is_empty(), "{hostile:?}");
        assert!(!loaded.warnings.is_empty() && !loaded.mistaken, "{hostile:?}");
        assert!(loaded.warnings.iter().all(|line| !line.contains('\u{1b}')), "{:?}", loaded.warnings);
    }
}

#[test]
fn the_users_files_are_laid_over_the_embedded_ones() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("keymap.toml");
    let base = "[global]\nq = \"quit\"\nr = \"review\"\n";
    assert_eq!(overlay(base, &file, Shape::Free).expect("no file"), None);
    std::fs::write(&file, "[global]\nq = \"none\"\n[list]\nx = \"dismiss\"\n").expect("a file");
    let merged: toml::Table = overlay(base, &file, Shape::Free).expect("sound").expect("a file").parse().expect("TOML");
    let expected: toml::Table =
        "[global]\nq = \"none\"\nr = \"review\"\n[list]\nx = \"dismiss\"\n".parse().expect("TOML");
    assert_eq!(merged, expected);
    let error = overlay(base, &file, Shape::OfBase).expect_err("list is not in the base");
    assert!(error.to_string().contains("keymap.toml:3:2: list: "), "{error}");
}
