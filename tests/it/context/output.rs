//! What the command prints and refuses.

use insta::assert_snapshot;

use super::{index, lines_from, notes, shop};
use crate::env::{DONE, USAGE};

#[test]
fn what_cannot_be_is_said() {
    let test = shop();
    let mut said = String::new();
    for arguments in [
        &["--at", "nowhere"][..],
        &["worktree", "--at", "HEAD"],
        &["--budget", "10"],
        &["--budget", "130001"],
        &["--at", "HEAD", "--focus", "src/price.py:0"],
        &["--at", "HEAD", "--focus", "../price.py"],
        &["--at", "HEAD", "--focus", "/etc/passwd:1"],
    ] {
        said += &format!("$ revdeck context {}\n", arguments.join(" "));
        said += &test.fails(&[&["context"], arguments].concat(), USAGE);
    }
    assert_snapshot!(said, @r#"
    $ revdeck context --at nowhere
    error: "nowhere" names no commit in [repo]
      hint: `git log --oneline --all` shows the commits there are
    $ revdeck context worktree --at HEAD
    error: the argument '--at <REV>' cannot be used with:
      [SCOPE]
      --worktree
      --staged
      --commit <REV>
      --range <A..B>
      --branch [<BASE>]
      --all

    Usage: revdeck context --at <REV> [SCOPE]

    For more information, try '--help'.
    $ revdeck context --budget 10
    error: invalid value '10' for '--budget <N>': 10 is not in 200..=130000

    For more information, try '--help'.
    $ revdeck context --budget 130001
    error: invalid value '130001' for '--budget <N>': 130001 is not in 200..=130000

    For more information, try '--help'.
    $ revdeck context --at HEAD --focus src/price.py:0
    error: "src/price.py:0" names no line; lines count from 1
    $ revdeck context --at HEAD --focus ../price.py
    error: "../price.py" is outside of [repo]
    $ revdeck context --at HEAD --focus /etc/passwd:1
    error: "/etc/passwd" is outside of [repo]
    "#);
}

#[test]
fn text_is_printed_as_it_is_sent_but_for_what_a_terminal_obeys() {
    let test = shop();
    test.write("AGENTS.md", "Indent:\twith tabs.\n\u{1b}[2J and \u{202e} are shown.\n");
    test.commit("Rules");
    test.write("src/price.go", "package price\n\nfunc Of() int {\n\treturn 1\n}\n");
    let printed = test.revdeck(&["context", "worktree"]);
    let printed = String::from_utf8_lossy(&printed.stdout).into_owned();
    assert_eq!(lines_from(&printed, "Indent:"), ["Indent:\twith tabs."]);
    assert_eq!(lines_from(&printed, "\\u{1b}"), ["\\u{1b}[2J and \\u{202e} are shown."]);
    assert_eq!(printed.lines().filter(|line| line.ends_with("\treturn 1")).count(), 1, "{printed}");
    // Only the two characters differ from the text that is sent: no other character is escaped.
    let sent = test.json(&["context", "worktree", "--format", "json"], DONE);
    let sent: String =
        sent["sections"].as_array().expect("sections").iter().filter_map(|section| section["text"].as_str()).collect();
    assert_eq!(printed, sent.replace('\u{1b}', "\\u{1b}").replace('\u{202e}', "\\u{202e}"));
}

#[test]
fn what_an_explanation_leaves_away_is_counted() {
    let test = shop();
    for number in 0..30 {
        test.write(&format!("src/walk_{number}.py"), format!("def walk_{number}(road):\n    return road.next_1()\n"));
    }
    test.commit("More of it");
    let explained = |budget: &str| {
        let ask = ["context", "--at", "HEAD", "--task", "walk_1 road next_1", "--budget", budget, "--explain"];
        lines_from(&test.output(&ask, DONE), "and ").join("\n")
    };
    let ask = ["context", "--at", "HEAD", "--task", "walk_1 road next_1", "--budget", "200", "--format", "json"];
    let context = test.json(&ask, DONE);
    let left_out = context["excluded_count"].as_u64().expect("a number");
    assert!(left_out > 20, "{context:#}");
    assert_eq!(explained("200"), format!("and {} more, none of them stronger", left_out - 20));
    assert_eq!(explained("100000"), "");
}

#[test]
fn a_context_says_for_whom_it_is_and_how_it_is_counted() {
    let test = shop();
    let reviewer = |name: &str, kind: &str, model: &str| {
        format!("[reviewers.{name}]\nkind = \"{kind}\"\nmodel = \"{model}\"\napi_key_env = \"NONE\"\n")
    };
    let two = reviewer("zed", "openai", "gpt-5") + &reviewer("ann", "anthropic", "claude-sonnet-4-5");
    let default = |name: &str| format!("default_reviewer = \"{name}\"\n{two}");
    index(&test);
    let mut said = String::new();
    for (settings, more) in [
        (String::new(), &[][..]),
        (two.clone(), &[]),
        (two.clone(), &["--reviewer", "zed"]),
        (default("zed"), &[]),
        (default("zed"), &["--reviewer", "builtin"]),
        (default("zed"), &["--reviewer", "ann"]),
    ] {
        test.settings(&settings);
        let ask = [&["context", "--at", "HEAD", "--focus", "src/price.py"], more].concat();
        let context = test.json(&[&ask[..], &["--format", "json"]].concat(), DONE);
        let explained = test.output(&[&ask[..], &["--explain"]].concat(), DONE);
        said += &format!(
            "{} {} {}\n{}\n{}\n",
            context["reviewer"],
            context["encoding"],
            context["approximate"],
            lines_from(&explained, "for ").join("\n"),
            notes(&context)
        );
    }
    assert_snapshot!(said, @r#"
    null "o200k_base" false
    for any model, counted exactly (o200k_base)

    "ann" "approximate" true
    for reviewer ann, counted approximately
    reviewer builtin is sent nothing: this is for ann, the first by name of those that are
    "zed" "o200k_base" false
    for reviewer zed, counted exactly (o200k_base)

    "zed" "o200k_base" false
    for reviewer zed, counted exactly (o200k_base)

    "zed" "o200k_base" false
    for reviewer zed, counted exactly (o200k_base)
    reviewer builtin is sent nothing: this is for zed
    "ann" "approximate" true
    for reviewer ann, counted approximately
    "#);
}
