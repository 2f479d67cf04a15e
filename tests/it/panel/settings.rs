//! Integration tests of what commands say about the panels of the settings.

use super::*;

#[test]
fn panels_are_listed_with_their_members_and_who_reviews_when_nobody_is_named() {
    let panel = Panel::start(vec![], vec![], "max_cost = 1.5\njudge = \"one\"");
    let all = "panel all: one, two, builtin; judge one; at most $1.50 a run\n";
    let said = panel.place.revdeck(&["reviewers", "list"]);
    assert!(said.ends_with(&format!("{all}* reviews when nobody else is named\n")), "{said}");
    let settings = panel.place.test.home().join("config.toml");
    let written = std::fs::read_to_string(&settings).expect("settings");
    panel.place.settings(&format!("default_panel = \"all\"\n{written}"));
    let said = panel.place.revdeck(&["reviewers", "list"]);
    let expected = format!("{all}the panel all reviews when you name nobody, * when an assistant does\n");
    assert!(said.ends_with(&expected), "{said}");
    let listed = panel.place.test.json(&["reviewers", "list", "--format", "json"], DONE)["panels"][0].clone();
    assert_eq!(
        (&listed["name"], &listed["default"], &listed["reviewers"], &listed["judge"]),
        (&json!("all"), &json!(true), &json!(["one", "two", "builtin"]), &json!("one"))
    );
}

#[test]
fn a_panel_that_is_asked_for_as_a_reviewer_is_named_as_what_it_is() {
    let panel = Panel::start(vec![], vec![], "");
    for (arguments, hint) in [
        (["--reviewer", "all"], "hint: all is a panel: `--panel all`; reviewers: builtin, one, two"),
        (["--panel", "one"], "hint: one is a reviewer: `--reviewer one`"),
        (["--panel", "builtin"], "hint: builtin is a reviewer: `--reviewer builtin`"),
    ] {
        let error = panel.place.test.errors(&[&["review"], &arguments[..]].concat(), USAGE);
        assert!(error.contains(hint), "{error}");
    }
}

#[test]
fn a_default_panel_that_does_not_exist_is_said_by_every_command_that_needs_it() {
    let panel = Panel::start(vec![], vec![], "");
    let settings = panel.place.test.home().join("config.toml");
    let written = std::fs::read_to_string(&settings).expect("settings");
    panel.place.settings(&format!("default_panel = \"al\"\n{written}"));
    let error = panel.place.test.errors(&["review"], USAGE);
    assert!(error.contains("there is no panel named \"al\", the default_panel"), "{error}");
    let said = panel.place.revdeck(&["reviewers", "list"]);
    assert!(said.ends_with("default_panel names al, and there is no such panel\n"), "{said}");
    let doctor = panel.place.test.output(&["doctor"], USAGE);
    assert!(doctor.contains("there is no panel named \"al\", the default_panel; there are: all"), "{doctor}");
}

#[test]
fn the_doctor_misses_the_keys_of_the_default_panel() {
    let panel = Panel::start(vec![], vec![], "judge = \"two\"\n[panels.free]\nreviewers = [\"one\", \"builtin\"]\n");
    let settings = panel.place.test.home().join("config.toml");
    let written = std::fs::read_to_string(&settings).expect("settings");
    let (own, other) = written.split_once("[reviewers.two]").expect("two reviewers");
    let keyless = other.replace("api_key_cmd = \"printf made-up\"", "api_key_env = \"KEY_OF_NOBODY\"");
    let doctor = |default: &str, code: i32| {
        panel.place.settings(&format!("default_panel = \"{default}\"\n{own}[reviewers.two]{keyless}"));
        let said = panel.place.test.output(&["doctor"], code);
        said.lines().find(|line| line.contains("KEY_OF_NOBODY")).expect("a line").to_owned()
    };
    assert!(doctor("free", DONE).starts_with("notice "));
    assert!(doctor("all", USAGE).starts_with("problem "));
}
