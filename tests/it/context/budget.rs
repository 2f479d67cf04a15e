//! How the change shares the budget with the rest of a context.

use insta::assert_snapshot;
use serde_json::Value;

use super::{index, lines_from, notes, shop};
use crate::env::{DONE, TestEnvironment};

#[test]
fn what_of_the_change_is_not_sent_is_said() {
    let test = shop();
    // With an index no other note is printed.
    index(&test);
    test.write("src/road.py", "def walk():\n    return 1\n".repeat(200));
    test.write("src/.env", "TOKEN=1\n");
    let notes_within = |more: &[&str]| {
        let context = test.json(&[&["context", "worktree", "--format", "json"], more].concat(), DONE);
        assert!(context["total_tokens"].as_u64() <= context["budget"].as_u64());
        notes(&context)
    };
    assert_snapshot!(notes_within(&["--budget", "600"]), @"
    of the change not sent, holds secrets: src/.env
    of the change not sent, over the budget, at least in part: src/road.py
    ");
    assert_snapshot!(notes_within(&[]), @"of the change not sent, holds secrets: src/.env");
}

/// Returns the number of tokens that an answer spends on the change.
fn of_change(context: &Value) -> u64 {
    let sections = context["sections"].as_array().expect("sections").iter();
    sections.filter(|section| section["kind"] == "diff").filter_map(|section| section["tokens"].as_u64()).sum()
}

#[test]
fn of_a_larger_budget_the_change_gets_no_less() {
    let test = shop();
    test.write("src/a.py", "def stand():\n    return 1\n");
    test.write("src/road.py", (0..900).map(|n| format!("def walk_{n}():\n    return {n}\n")).collect::<String>());
    let mut before = 0;
    for budget in ["600", "1000", "2000", "4000", "8000", "9000", "16000"] {
        let context = test.json(&["context", "worktree", "--budget", budget, "--format", "json"], DONE);
        let diff = of_change(&context);
        assert!(context["total_tokens"].as_u64() <= context["budget"].as_u64());
        assert!(diff > before, "{budget}: {diff} after {before}");
        before = diff;
    }
}

#[test]
fn a_change_takes_what_nothing_else_wants_of_a_budget() {
    let test = TestEnvironment::new();
    let road = (0..200).map(|n| format!("def walk_{n}():\n    return {n}\n")).collect::<String>();
    test.write("src/road.py", &road);
    test.write("src/way.py", road.replace("walk", "ride"));
    test.commit("One");
    let mut said = String::new();
    for (budget, is_whole) in [(2_000, false), (4_000, false), (8_000, true), (16_000, true)] {
        let asked = budget.to_string();
        let context = test.json(&["context", "commit:HEAD", "--budget", &asked, "--format", "json"], DONE);
        let total = context["total_tokens"].as_u64().expect("tokens");
        let least = if is_whole { 0 } else { budget * 7 / 8 + 1 };
        assert!((least..=budget).contains(&total), "{total} of {budget}");
        said += &format!("{budget}: {:?}\n", notes(&context));
    }
    assert_snapshot!(said, @r#"
    2000: "of the change not sent, over the budget, at least in part: src/road.py, src/way.py"
    4000: "of the change not sent, over the budget, at least in part: src/way.py"
    8000: ""
    16000: ""
    "#);
}

#[test]
fn many_deleted_files_are_named_within_the_budget() {
    let test = shop();
    test.git(&["rm", "-q", "-r", "other"]);
    test.write("src/price.py", "class PriceList:\n    pass\n");
    for (budget, least, is_whole) in [(200, 1, false), (1_000, 5, false), (8_000, 40, true)] {
        let asked = budget.to_string();
        let context = test.json(&["context", "worktree", "--budget", &asked, "--format", "json"], DONE);
        assert!(context["total_tokens"].as_u64() <= Some(budget), "{budget}");
        let texts =
            context["sections"].as_array().expect("sections").iter().filter_map(|section| section["text"].as_str());
        let text = texts.collect::<Vec<_>>().join("\n");
        let named = text.matches("deleted other/").count();
        assert!(named >= least, "{budget}: {named}");
        let more = (!is_whole).then(|| format!("and {} more", 40 - named));
        assert_eq!(text.lines().find(|line| line.starts_with("and ")).map(str::to_owned), more, "{budget}: {text}");
        assert!(of_change(&context) > 0, "{budget}: {text}");
        assert_eq!(lines_from(&text, "### src/price.py").len(), 1, "{budget}: {text}");
    }
}
