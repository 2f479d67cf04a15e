//! The sections of code in a context: chunks, kinds, history of lines, test coverage.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use insta::{allow_duplicates, assert_snapshot};
use serde_json::Value;

use super::{lines_from, paths, shop};
use crate::env::{DONE, USAGE, err};

#[test]
fn a_chunk_is_there_whole_or_not_at_all_and_what_is_too_long_for_one_comes_in_parts_that_say_so() {
    let test = shop();
    let walk = |name: &str, steps: usize| {
        let steps: String = (0..steps).map(|number| format!("    road.step_{number}(road, {number})\n")).collect();
        format!("# Of {name}.\ndef {name}(road):\n{steps}    lookup_price(road)\n    return road\n")
    };
    test.write("src/sell.py", walk("sell", 200));
    test.write("src/buy.py", walk("buy", 60));
    let filler: String = (0..400).map(|number| format!("def stone_{number}():\n    pass\n\n\n")).collect();
    (0..14).for_each(|number| drop(test.write(&format!("far/stones_{number}.py"), &filler)));
    test.commit("To sell");
    let context = |budget: &str| {
        let ask = ["context", "--at", "HEAD", "--focus", "src/price.py:2", "--budget", budget];
        let context = test.json(&[&ask[..], &["--format", "json"]].concat(), DONE);
        let told = test.output(&[&ask[..], &["--explain"]].concat(), DONE);
        (context["sections"].as_array().expect("sections").clone(), told)
    };
    // Returns the declarations that an explanation calls cut.
    let cut = |told: &str| {
        let phrases = told.lines().filter_map(|line| Some(line.split_once("part of ")?.1));
        let names: BTreeSet<&str> =
            phrases.filter_map(|phrase| phrase.split([';', '(']).next()?.split("  ").next()).collect();
        format!("{names:?}")
    };
    let of = |sections: &[Value], path: &str| -> Vec<Value> {
        sections.iter().filter(|section| section["path"] == path && section["kind"] != "summary").cloned().collect()
    };
    let (sections, told) = context("4000");
    let parts = of(&sections, "src/sell.py");
    assert!(!parts.is_empty(), "{told}");
    for part in &parts {
        let whole = serde_json::json!([{"kind": "function", "name": "sell", "start_line": 1, "end_line": 204}]);
        assert_eq!(part["of"], whole);
        let title = part["text"].as_str().and_then(|text| text.lines().next()).expect("a title");
        assert!(title.ends_with(" (part of function sell, lines 1-204)"), "{title}");
    }
    assert_snapshot!(cut(&told), @r#"{"function sell, lines 1-204"}"#);
    let (none, told) = context("900");
    assert!(of(&none, "src/buy.py").is_empty(), "{told}");
    for budget in ["4000", "60000"] {
        let (sections, told) = context(budget);
        let [section] = &of(&sections, "src/buy.py")[..] else { panic!("{told}") };
        let place = (&section["start_line"], &section["end_line"], &section["of"]);
        assert_eq!(place, (&1.into(), &64.into(), &serde_json::json!([])));
        allow_duplicates!(assert_snapshot!(cut(&told), @r#"{"function sell, lines 1-204"}"#));
    }
}

#[test]
fn a_section_tells_when_its_lines_changed_last() {
    let test = shop();
    let first = test.git(&["rev-parse", "HEAD"]).trim().to_owned();
    test.write("src/hill.py", "# A hill.\n\n\ndef climb():\n    lookup_price(1)\n");
    let second = test.commit("A hill");
    test.write("src/hill.py", "# A hill.\n# It is high.\n\n\ndef climb():\n    lookup_price(2)\n");
    let third = test.commit("A higher hill");
    let changes = |at: &str| {
        let ask = ["context", "--at", at, "--focus", "src/price.py", "--task", "lookup_price", "--format", "json"];
        let context = test.json(&ask, DONE);
        let of = |path: &str| {
            let section = context["sections"].as_array()?.iter().find(|section| section["path"] == path)?;
            let time = section["last_change"]["time"].as_str()?.to_owned();
            let commit = section["last_change"]["commit"].as_str()?.to_owned();
            let reason = section["reason"].as_str()?.rsplit("; ").next()?;
            assert_eq!(reason, format!("last changed 2026-01-02 in {}", &commit[..8]), "{section}");
            Some((commit, time))
        };
        [of("src/price.py"), of("src/hill.py")]
    };
    let at = |commit: &str| Some((commit.to_owned(), "2026-01-02T03:04:05Z".to_owned()));
    assert_eq!(changes("HEAD"), [at(&first), at(&third)]);
    assert_eq!(changes(&second), [at(&first), at(&second)]);
    // Uncommitted lines have no author.
    test.write("src/hill.py", "# A hill.\n\n\ndef climb():\n    lookup_price(3)\n");
    let focus = ["context", "worktree", "--focus", "src/hill.py", "--budget", "2000", "--format", "json"];
    let focus = &test.json(&focus, DONE)["sections"][1];
    assert_eq!((&focus["kind"], &focus["last_change"]), (&"focus".into(), &Value::Null));
}

#[test]
fn switches_are_settings_too_and_a_repository_may_set_them() {
    let test = shop();
    test.write(
        "src/price.py",
        "class PriceList:\n    def lookup_price(self, item, day):\n        return self.table[item, day]\n",
    );
    test.write("README.md", "# Shop\n");
    let ask = |flags: &[&str]| {
        let mut context = test.json(&[&["context", "worktree", "--format", "json"], flags].concat(), DONE);
        // Whether the index is ready has no part in this.
        context["notes"] = Value::Null;
        context
    };
    let kinds = |context: &Value| -> BTreeSet<String> {
        let sections = context["sections"].as_array().expect("sections").iter();
        sections.map(|section| section["kind"].as_str().expect("a kind").to_owned()).collect()
    };
    assert!(kinds(&ask(&[])).contains("test"));
    // The repository's own settings count as they are at the base of the change.
    let set_in_repository = |text: &str| {
        test.write(".revdeck.toml", format!("[context]\n{text}\n"));
        test.git(&["add", ".revdeck.toml"]);
        test.git(&["commit", "-q", "--allow-empty", "-m", "Settings"]);
    };
    set_in_repository("");
    for (flags, settings) in [
        (&["--no-tests"][..], "tests = false"),
        (&["--no-types"], "types = false"),
        (&["--no-documentation"], "documentation = false"),
        (&["--no-compression"], "compression = false"),
        (&["--files", "src/", "--files", "tests/"], "files = [\"src/\", \"tests/\"]"),
        (&["--kinds", "function,test"], "kinds = [\"function\", \"test\"]"),
    ] {
        let expected = ask(flags);
        test.settings(&format!("[context]\n{settings}\n"));
        assert_eq!(ask(&[]), expected, "{settings} of the user");
        test.settings("");
        set_in_repository(settings);
        assert_eq!(ask(&[]), expected, "{settings} of the repository");
        set_in_repository("");
    }
    assert!(!kinds(&ask(&["--no-tests"])).contains("test"));
    // Flags say what is sent instead of the settings.
    test.settings("[context]\nkinds = [\"test\"]\n");
    assert_eq!(ask(&["--kinds", "function"])["sections"], {
        test.settings("");
        ask(&["--kinds", "function"])["sections"].clone()
    });
}

#[test]
fn each_kind_of_code_has_its_own_word() {
    let test = shop();
    for (path, text) in [
        ("road/walker.ts", "export class RoadWalker {\n  walk(road: number) {\n    return road;\n  }\n}\n"),
        ("road/walkable.ts", "export interface Walkable {\n  walk(road: number): number;\n}\n"),
        ("road/plan.ts", "export type RoadPlan = {\n  length: number;\n};\n"),
        ("road/limit.ts", "export const MAX_ROADS = [\n  1,\n  2,\n];\n"),
        ("road/climb.ts", "export function climbRoad(road: number) {\n  return road;\n}\n"),
    ] {
        test.write(path, text);
    }
    test.commit("Roads");
    let task = "`RoadWalker` `Walkable` `RoadPlan` `MAX_ROADS` `climbRoad`";
    let ask = |flags: &[&str]| {
        let ask = ["context", "--at", "HEAD", "--task", task, "--format", "json"];
        let context = test.json(&[&ask, flags].concat(), DONE);
        let sections = context["sections"].as_array().expect("sections").clone();
        let of_roads =
            sections.iter().filter(|section| section["path"].as_str().is_some_and(|path| path.starts_with("road/")));
        let lines: BTreeSet<String> = of_roads
            .map(|section| {
                format!("{} {}", section["path"].as_str().expect("a path"), section["kind"].as_str().expect("a kind"))
            })
            .collect();
        lines.into_iter().collect::<Vec<_>>().join("\n")
    };
    assert_snapshot!(ask(&[]), @r"
    road/climb.ts function
    road/limit.ts constant
    road/plan.ts type
    road/walkable.ts interface
    road/walker.ts class
    ");
    assert_snapshot!(ask(&["--kinds", "class,constant"]), @r"
    road/limit.ts constant
    road/walker.ts class
    ");
    let wrong = test.revdeck(&["context", "--kinds", "klass"]);
    assert_eq!(wrong.status.code(), Some(USAGE));
    assert!(err(&wrong).contains("there are function, class, interface, type, constant, module, test, config, window"));
}

#[test]
fn a_report_of_coverage_tells_what_tests_reach() {
    let test = shop();
    test.write(
        "src/price.py",
        "class PriceList:\n    def lookup_price(self, item, day):\n        return self.table[item, day]\n\n\ndef drop(item):\n    return None\n",
    );
    let ask = ["context", "worktree", "--budget", "1500", "--format", "json"];
    let without = test.json(&ask, DONE);
    assert_eq!(without["untested"], serde_json::json!([]));
    test.write(".gitignore", "coverage\n*.lcov\n");
    let lcov = "SF:/elsewhere/src/price.py\nDA:2,1\nDA:3,1\nDA:6,1\nDA:7,0\nend_of_record\nSF:../../../src/store.py\nDA:4,2\nDA:5,2\nDA:6,0\nend_of_record\n";
    let cobertura = r#"<?xml version="1.0"?><!DOCTYPE coverage [<!ENTITY x "y">]><coverage><sources><source>/elsewhere</source></sources>
        <class filename="src/price.py"><lines><line number="3" hits="1"/><line number="6" hits="0"/><line number="7" hits="0"/></lines></class>
        <class filename="src/store.py"><lines><line number="4" hits="1"/><line number="5" hits="1"/><line number="6" hits="0"/></lines></class></coverage>"#;
    for (place, report, untested) in
        [("unit.lcov", lcov, 0), ("coverage/lcov.info", lcov, 0), ("coverage/cobertura-coverage.xml", cobertura, 1)]
    {
        test.write(place, report);
        let context = test.json(&ask, DONE);
        let sections = context["sections"].as_array().expect("sections");
        let store = sections.iter().find(|section| section["path"] == "src/store.py").expect("the store");
        assert_eq!(
            (&store["coverage"]["reached"], &store["coverage"]["of"]),
            (&2.into(), &3.into()),
            "{place}: {store}"
        );
        assert_eq!(context["untested"].as_array().map(Vec::len), Some(untested), "{place}: {context:#}");
        let told = sections.iter().find(|section| section["kind"] == "untested");
        assert_eq!(told.is_some(), untested > 0, "{place}: {context:#}");
        if untested == 1 {
            assert_snapshot!(told.and_then(|section| section["text"].as_str()).expect("text"), @"
            Changed functions that no test reaches, as a coverage report says:
            - src/price.py:6-7 drop
            ");
            assert_eq!(
                (&context["untested"][0]["name"], &context["untested"][0]["start_line"]),
                (&"drop".into(), &6.into())
            );
            let explained = test.output(&["context", "worktree", "--budget", "1500", "--explain"], DONE);
            assert_snapshot!(lines_from(&explained, "src/price.py:6-7").join("\n"), @"src/price.py:6-7  drop  not covered by tests");
        }
        std::fs::remove_file(test.repo().join(place)).expect("removed");
    }
}

#[test]
fn types_can_be_left_away() {
    let test = shop();
    test.write("src/shelf.py", "class Shelf:\n    width = 1\n    price_list = None\n    lookup_price = None\n");
    test.commit("A shelf");
    let types = |more: &[&str]| {
        let ask =
            ["context", "--at", "HEAD", "--focus", "src/price.py", "--task", "Shelf lookup_price", "--budget", "3000"];
        let context = test.json(&[&ask[..], &["--format", "json"], more].concat(), DONE);
        let sections = context["sections"].as_array().expect("sections").clone();
        // A class without functions is a type.
        sections.iter().filter(|section| section["path"] == "src/shelf.py" && section["kind"] == "class").count()
    };
    assert!(types(&[]) > 0);
    assert_eq!(types(&["--no-types"]), 0);
}

#[test]
fn a_report_of_coverage_is_believed_of_the_code_that_it_is_about() {
    let test = shop();
    test.write(".gitignore", "coverage\n");
    test.write("coverage/lcov.info", "SF:src/store.py\nDA:5,0\nDA:6,0\nend_of_record\n");
    let coverage = |at: &str| {
        let ask = ["context", "--at", at, "--focus", "src/price.py", "--task", "lookup_price", "--budget", "1500"];
        let context = test.json(&[&ask[..], &["--format", "json"]].concat(), DONE);
        let sections = context["sections"].as_array().expect("sections").clone();
        let store = sections.into_iter().find(|section| section["path"] == "src/store.py").expect("the store");
        store["coverage"]["of"].as_u64()
    };
    assert_eq!(coverage("HEAD"), Some(2));
    let early = test.git(&["rev-parse", "HEAD"]).trim().to_owned();
    let lines =
        "# Sells.\nfrom price import PriceList\n\n\ndef total(items):\n    return PriceList().lookup_price(items)\n";
    test.write("src/store.py", lines);
    test.commit("A line more");
    assert_eq!((coverage("HEAD"), coverage(&early)), (None, None), "it tells of neither");
    let report = test.repo().join("coverage/lcov.info");
    let time = |path: PathBuf| fs::metadata(path).and_then(|data| data.modified()).expect("a time");
    let later = time(test.repo().join("src/store.py")) + std::time::Duration::from_secs(5);
    fs::File::options().write(true).open(report).and_then(|file| file.set_modified(later)).expect("tests run again");
    assert_eq!((coverage("HEAD"), coverage(&early)), (Some(2), None), "it tells of what was tested");
}

#[test]
fn of_a_long_function_that_changes_the_rest_is_told_and_nothing_of_the_diff_again() {
    let test = shop();
    let walk = |step: &str| {
        let steps = |from: usize, to: usize| (from..to).map(|n| format!("    road.step_{n}()\n")).collect::<String>();
        format!("import road\n\n\ndef long_walk(road):\n{}    {step}\n{}", steps(0, 30), steps(30, 60))
    };
    test.write("src/walk.py", walk("road.rest()"));
    test.write("src/short.py", "def short_walk(road):\n    return road.rest()\n");
    test.commit("Walks");
    test.write("src/walk.py", walk("road.stop()"));
    test.write("src/short.py", "def short_walk(road):\n    return road.stop()\n");
    // The changed line is 35; the diff holds lines 29 to 41.
    for (budget, at_least) in [(Some("20000"), 49), (Some("1000"), 4), (None, 49)] {
        let more = budget.map(|budget| vec!["--budget", budget]).unwrap_or_default();
        let context = test.json(&[&["context", "worktree", "--format", "json"], &more[..]].concat(), DONE);
        let sections = context["sections"].as_array().expect("sections");
        let rest: Vec<&Value> = sections.iter().filter(|section| section["kind"] == "focus").collect();
        let place = |section: &Value| {
            let line = |name: &str| section[name].as_u64().expect("a line");
            (line("start_line"), line("end_line"))
        };
        assert!(rest.iter().all(|section| section["path"] == "src/walk.py"), "{rest:#?}");
        let places: Vec<(u64, u64)> = rest.iter().map(|section| place(section)).collect();
        assert_eq!(places.first().map(|place| place.0), Some(4), "its head: {places:?}");
        assert!(!places.iter().any(|(start, end)| *start <= 41 && *end >= 29), "{places:?}");
        assert!(places.iter().map(|(start, end)| end - start + 1).sum::<u64>() >= at_least, "{places:?}");
        let most = budget.map_or(1_000, |budget| budget.parse::<u64>().expect("a number") / 8);
        let texts: u64 = rest.iter().filter_map(|section| section["tokens"].as_u64()).sum();
        assert!(texts <= most, "{texts}");
    }
    let none = ["context", "worktree", "--focus", "src/price.py", "--budget", "8000", "--format", "json"];
    assert!(!paths(&test.json(&none, DONE)).contains(&"src/walk.py"), "a focus is in its place");
}
