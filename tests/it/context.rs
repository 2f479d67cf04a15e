//! `revdeck context` and `revdeck context-eval` with the real binary and real repositories.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::thread;

use insta::{allow_duplicates, assert_snapshot};
use revdeck::config::Paths;
use revdeck::git::Repo;
use revdeck::index::{Index, IndexCompleteness};
use serde_json::{Value, json};

use crate::env::{DONE, TestEnvironment, USAGE, err, files_below, lines_with};
use crate::runner::place::wait_for;

/// Returns the notes of an answer, one per line.
fn notes(context: &Value) -> String {
    let notes = context["notes"].as_array().expect("notes").iter();
    notes.map(|note| note.as_str().expect("text")).collect::<Vec<_>>().join("\n")
}

/// Returns the lines of a text that begin with `start`.
fn lines_from<'a>(text: &'a str, start: &str) -> Vec<&'a str> {
    text.lines().filter(|line| line.starts_with(start)).collect()
}

/// Creates a repository with a shop, the module that prices its goods, a test for each, and 40 unrelated files.
fn shop() -> TestEnvironment {
    let test = TestEnvironment::new();
    test.read_everything();
    test.write(
        "src/price.py",
        "class PriceList:\n    def lookup_price(self, item):\n        return self.table[item]\n",
    );
    test.write(
        "src/store.py",
        "from price import PriceList\n\n\ndef total(items):\n    prices = PriceList()\n    return sum(prices.lookup_price(item) for item in items)\n",
    );
    test.write("tests/test_store.py", "from store import total\n\n\ndef test_total():\n    assert total([]) == 0\n");
    for number in 0..40 {
        test.write(
            &format!("other/part_{number}.py"),
            format!("def walk_{number}(road):\n    return road.next_{number}\n"),
        );
    }
    test.commit("A shop");
    test
}

#[test]
fn what_uses_a_changed_name_comes_first_within_the_budget() {
    let test = shop();
    test.write(
        "src/price.py",
        "class PriceList:\n    def lookup_price(self, item, day):\n        return self.table[item, day]\n",
    );
    let context = test.json(&["context", "worktree", "--budget", "1500", "--format", "json"], DONE);
    assert!(context["total_tokens"].as_u64() <= Some(1_500));
    assert_eq!(context["budget"], 1_500);
    let sections = context["sections"].as_array().expect("sections");
    let kinds: Vec<&str> = sections.iter().filter_map(|section| section["kind"].as_str()).collect();
    assert_eq!(kinds[0], "diff");
    let code = sections.iter().find(|section| section["path"] == "src/store.py").expect("the user of the changed name");
    assert!(code["start_line"].as_u64() <= Some(6) && code["end_line"].as_u64() >= Some(6), "{code}");
    assert!(
        code["factors"]["reference"].is_number() && code["reason"].as_str().is_some_and(|reason| !reason.is_empty())
    );
    let first = sections.iter().find_map(|section| section["path"].as_str());
    assert_eq!(first, Some("src/store.py"), "{sections:#?}");
}

#[test]
fn a_revision_is_searched_for_what_a_task_names() {
    let test = shop();
    let before = test.git(&["rev-parse", "HEAD"]).trim().to_owned();
    test.write("src/store.py", "gone = 1\n");
    test.commit("Nothing left");
    let context = test
        .json(&["context", "--at", &before, "--focus", "src/price.py:2", "--budget", "2000", "--format", "json"], DONE);
    let sections = context["sections"].as_array().expect("sections");
    assert_eq!(sections[0]["kind"], "focus");
    assert_eq!(sections[0]["path"], "src/price.py");
    let store = sections.iter().find(|section| section["path"] == "src/store.py").expect("as it was then");
    assert_snapshot!(store["text"].as_str().expect("text"), @"
    src/store.py:1-6
    ```
    from price import PriceList


    def total(items):
        prices = PriceList()
        return sum(prices.lookup_price(item) for item in items)
    ```
    ");
}

/// Returns the code sections of an answer as path, first line, last line and reason.
fn code(context: &Value) -> Vec<(String, u64, u64, String)> {
    let sections = context["sections"].as_array().expect("sections").iter();
    let place = |section: &Value| {
        let number = |key: &str| section[key].as_u64();
        Some((
            section["path"].as_str()?.to_owned(),
            number("start_line")?,
            number("end_line")?,
            section["reason"].as_str()?.to_owned(),
        ))
    };
    sections.filter_map(place).collect()
}

/// Returns the repository, the folder of its index, and the committed tree.
fn index_of(test: &TestEnvironment) -> (Repo, PathBuf, String) {
    let repo = Repo::discover(&test.repo()).expect("a repository");
    let folder = Paths::from_home(&test.home()).index_folder(&repo.key());
    let commit = repo.resolve_commit("HEAD").expect("a commit");
    (repo, folder, commit)
}

/// Indexes the committed tree.
fn index(test: &TestEnvironment) {
    let (repo, folder, commit) = index_of(test);
    let go_on = |_| std::ops::ControlFlow::Continue(());
    Index::refresh(&folder, &repo, &commit, &go_on).expect("an index");
}

#[test]
fn what_the_task_names_is_there_whatever_its_rank() {
    let test = shop();
    for number in 0..120 {
        let user = format!("from price import PriceList\n\n\ndef user_{number}():\n    lookup_price({number})\n");
        test.write(&format!("src/user_{number}.py"), user);
    }
    let hill = |name: &str| format!("def {name}(road):\n    if road:\n        return 3\n    return 4\n\n\n");
    let hills: String = (0..20).map(|number| hill(&format!("climb_{number}"))).collect();
    test.write("far/hill.py", format!("{hills}{}{hills}", hill("oldTower")));
    test.write("far/away/river.py", hill("swim").repeat(9));
    test.write("far/river.py", hill("swim").repeat(9));
    // revdeck has no parser for this file.
    test.write("far/lake.kt", "val depth = 3\nval widthOfLake = 4\n");
    test.commit("Far away");
    let ask = |task: &str| {
        let place = ["context", "--at", "HEAD", "--focus", "src/price.py", "--budget", "3000", "--task"];
        code(&test.json(&[&place[..], &[task, "--format", "json"]].concat(), DONE))
    };
    let is_named = |section: &&(String, u64, u64, String)| section.3.starts_with("the task names it");
    let named = |task: &str| ask(task).iter().filter(is_named).cloned().collect::<Vec<_>>();
    for is_indexed in [false, true] {
        if is_indexed {
            index(&test);
        }
        for (task, expected, lines) in [
            ("lookup_price as in oldTower", "far/hill.py", Some((121, 124))),
            ("lookup_price as `oldTower` does", "far/hill.py", Some((121, 124))),
            ("lookup_price and far/hill.py", "far/hill.py", None),
            ("lookup_price: see away/river.py:3.", "far/away/river.py", None),
            ("lookup_price by widthOfLake", "far/lake.kt", Some((1, 2))),
        ] {
            let found = named(task);
            assert!(
                !found.is_empty() && found.iter().all(|(path, ..)| path == expected),
                "{task}, {is_indexed}: {found:?}"
            );
            if let Some((first, last)) = lines {
                let [(_, start, end, _)] = &found[..] else { panic!("{task}, {is_indexed}: {found:?}") };
                assert!(*start <= first && *end >= last, "{task}, {is_indexed}: {found:?}");
            }
        }
        // Two files match `river.py`, and `swim` is no name in the code.
        assert_eq!(named("lookup_price, river.py, swim"), [], "{is_indexed}");
    }
}

#[test]
fn of_what_the_task_names_too_much_the_rest_is_left_out_with_the_reason() {
    let test = shop();
    let task: String = (0..40).map(|number| format!("walk_{number} ")).collect();
    let ask = ["context", "--at", "HEAD", "--focus", "src/price.py", "--task", &task, "--budget", "600"];
    let context = test.json(&[&ask[..], &["--format", "json"]].concat(), DONE);
    assert!(code(&context).iter().any(|(_, _, _, reason)| reason.starts_with("the task names it")), "{context:#}");
    let left = context["left_out"].as_array().expect("what is left out");
    assert!(left.iter().any(|left| left["reason"] == "named by the task, which names too much"), "{left:?}");
    assert!(context["total_tokens"].as_u64() <= Some(600));
}

#[test]
fn a_diff_as_the_task_is_understood_and_its_files_are_not_looked_for() {
    let test = shop();
    let diff = "--- a/src/price.py\n+++ b/src/price.py\n@@ -2 +2 @@\n-    def lookup_price(self, item):\n+    def price_of(self, item):\n";
    let context = test.json(&["context", "--at", "HEAD", "--task", diff, "--budget", "2000", "--format", "json"], DONE);
    let (rest, found): (Vec<_>, Vec<_>) = code(&context).into_iter().partition(|(path, ..)| path == "src/price.py");
    assert_eq!(found.first().map(|(path, ..)| path.as_str()), Some("src/store.py"), "{found:?}");
    // The rest of the changed function: the lines that the diff does not contain.
    assert_eq!(rest.iter().map(|(_, start, end, _)| (*start, *end)).collect::<Vec<_>>(), [(3, 3)]);
    let without = test
        .json(&["context", "--at", "HEAD", "--task", diff, "--budget", "2000", "--no-tests", "--format", "json"], DONE);
    let is_test = |section: &Value| section["path"] == "tests/test_store.py";
    let excluded = |context: &Value, reason: &str| {
        let reasons = context["excluded"].as_array().expect("reasons");
        reasons.iter().find(|excluded| excluded["reason"] == reason).and_then(|excluded| excluded["count"].as_u64())
    };
    assert_eq!((excluded(&context, "filtered: tests"), excluded(&without, "filtered: tests")), (None, Some(1)));
    assert!(!without["sections"].as_array().expect("sections").iter().any(is_test));
    let only = ["context", "--at", "HEAD", "--task", diff, "--files", "tests/", "--kinds", "test", "--format", "json"];
    let only = test.json(&only, DONE);
    let code = only["sections"].as_array().expect("sections").iter().filter(|section| !section["path"].is_null());
    assert!(code.clone().count() > 0 && code.clone().all(is_test), "{only:#}");
    assert_eq!(excluded(&only, "filtered: files of other paths"), Some(41), "{only:#}");
    let ask = ["context", "--at", "HEAD", "--task", diff, "--kinds", "test", "--no-documentation", "--explain"];
    assert_snapshot!(lines_from(&test.output(&ask, DONE), "filtered: ").join("\n"), @"filtered: 42 pieces of other kinds, 1 piece hardly likely to matter");
}

/// Removes scores and factors from an explanation: they change with each fit of the weights.
fn without_scores(explanation: &str) -> String {
    let is_score = |word: &str| word.contains('.') && word.trim_end_matches(',').parse::<f64>().is_ok();
    let line = |line: &str| -> String {
        let columns = line.split("  ").map(str::trim).filter(|column| !column.is_empty());
        columns.filter(|column| !column.split(' ').any(is_score)).collect::<Vec<_>>().join("  ")
    };
    explanation.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_same_question_has_the_same_answer_and_explains_itself() {
    let test = shop();
    let ask = ["context", "--at", "HEAD", "--focus", "src/price.py", "--budget", "900", "--format", "json"];
    assert_eq!(test.json(&ask, DONE), test.json(&ask, DONE));
    let ask = ["context", "--at", "HEAD", "--focus", "src/price.py", "--budget", "900", "--explain"];
    let explained = without_scores(&test.output(&ask, DONE));
    // The 40 unrelated files are left out.
    assert_snapshot!(lines_with(&explained, |line| !line.starts_with("other/")), @"
    src/price.py:1-3  focus  31  in focus; last changed 2026-01-02 in [hash]
    src/store.py:1-6  module  42  it has the change's words; in 50 % of their commits; where its imports, its beginning or its end is; last changed 2026-01-02 in [hash]
    tests/test_store.py:1-5  test  31  it changed together with the change's files; in 50 % of their commits; where its imports, its beginning or its end is; last changed 2026-01-02 in [hash]

    887 of 900 tokens (99 %), 30 sections
    for any model, counted exactly (o200k_base)

    left out: 14 pieces
    overview  21  over the budget
    ");
}

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

/// Returns the cache files that revdeck keeps about the repository.
fn kept(test: &TestEnvironment) -> Vec<PathBuf> {
    let folders = fs::read_dir(test.home().join("cache/context")).expect("a cache").flatten();
    let files = folders.flat_map(|folder| fs::read_dir(folder.path()).expect("a folder").flatten());
    files.map(|file| file.path()).collect()
}

#[test]
fn the_first_context_of_a_repository_has_it_indexed_for_the_next() {
    let test = shop();
    let said = || notes(&test.json(&["context", "commit:HEAD", "--format", "json"], DONE));
    assert_snapshot!(said(), @"this repository is not indexed yet: until that is done in the background, searches look at files one by one");
    let (repo, folder, commit) = index_of(&test);
    let is_whole = |index: Index| (index.completeness() == IndexCompleteness::Whole).then_some(());
    wait_for("the index", || Index::open(&folder, &repo, &commit).ok().flatten().and_then(is_whole));
    assert_eq!(said(), "");
}

#[test]
fn a_context_says_what_was_not_read_in_time_and_the_next_one_has_it() {
    let test = shop();
    for number in 0..20 {
        test.write("other/part_7.py", format!("def walk_7(road):\n    return road.next_{number}\n"));
        test.commit("Prices");
    }
    let ask = || test.json(&["context", "commit:HEAD", "--format", "json"], DONE);
    let ask_when_whole = |what: &str| {
        wait_for(what, || Some(ask()).filter(|context| context.get("partial").is_none() && notes(context).is_empty()))
    };
    test.settings("[context]\nreading_seconds = 0\n");
    let first = ask();
    assert_eq!(first["partial"], json!({"commits": {"read": 16, "of": 20}, "files": {"read": 32, "of": 43}}));
    assert_snapshot!(notes(&first), @r"
    this repository is not indexed yet: until that is done in the background, searches look at files one by one
    only 16 of 20 commits of the history were read in time (context.reading_seconds): the next context has more
    only 32 of 43 files of code were read in time (context.reading_seconds): the next context has more
    ");
    let later = ask_when_whole("the rest");
    fs::remove_dir_all(test.home().join("cache")).expect("caches");
    test.settings("[context]\nreading_seconds = 600\n");
    assert_eq!(ask_when_whole("the index"), later);
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
fn that_a_damaged_index_is_rebuilt_is_said_once() {
    let test = shop();
    let (_, folder, _) = index_of(&test);
    let damage_all = || {
        for file in files_below(&folder).into_iter().filter(|path| !path.ends_with("lock")) {
            fs::write(file, "no index").expect("written");
        }
    };
    // Two kinds of damage: one that a reader found and left to the next refresh, and one that no reader has found.
    let mark = || fs::write(folder.join("damaged"), "no index").expect("written");
    for (number, damage) in [&mark as &dyn Fn(), &damage_all].into_iter().enumerate() {
        index(&test);
        damage();
        test.write("src/more.py", format!("more = {number}\n"));
        test.commit("More");
        // The message appears with the context or, if that process ended too early, in the next command that prints
        // messages.
        let said = || {
            notes(&test.json(&["context", "commit:HEAD", "--format", "json"], DONE)) + &err(&test.revdeck(&["runs"]))
        };
        wait_for("word of it", || said().contains("and is rebuilt").then_some(()));
        let (repo, folder, commit) = index_of(&test);
        assert!(Index::open(&folder, &repo, &commit).expect("an index").is_some());
        assert_eq!(said(), "", "{number}");
    }
}

#[test]
fn what_is_kept_of_the_repository_changes_no_answer() {
    const TASKS: [&str; 2] = ["lookup_price and total", "walk_7 road next_9"];
    // The budgets are tight: the code is compressed in every possible way.
    let ask = |test: &TestEnvironment, task: &str| {
        ["300", "700", "4000"].map(|budget| {
            let place = ["--at", "HEAD", "--focus", "src/price.py", "--task", task];
            test.json(&[&["context"], &place[..], &["--budget", budget, "--format", "json"]].concat(), DONE)
        })
    };
    let test = shop();
    test.write(
        "src/price.py",
        "# Why.\nclass PriceList:\n    def lookup_price(self, item):\n        # How.\n        return 1\n",
    );
    test.write("src/keys.py", "lookup_price = 1\ntoken = 'ghp_0123456789abcdefghijklmnopqrstuvwxyz'\n");
    test.commit("Another price");
    let cold: Vec<_> = TASKS
        .iter()
        .map(|task| {
            if test.home().join("cache/context").exists() {
                fs::remove_dir_all(test.home().join("cache/context")).expect("a cache that may be deleted");
            }
            ask(&test, task)
        })
        .collect();
    let warm = || TASKS.iter().map(|task| ask(&test, task)).collect::<Vec<_>>();
    assert_eq!(warm(), cold);
    let files = kept(&test);
    assert!(files.len() > 2, "{files:?}");
    for file in &files {
        let bytes = fs::read(file).expect("a file");
        assert!(!bytes.windows(8).any(|part| part == b"ghp_0123"), "{} holds a secret", file.display());
    }
    for file in files {
        let mut bytes = fs::read(&file).expect("a file");
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(&file, bytes).expect("a damaged file");
    }
    assert_eq!(warm(), cold);
    for file in kept(&test) {
        fs::write(&file, b"").expect("an empty file");
    }
    thread::scope(|scope| {
        let asking = TASKS.map(|task| scope.spawn(|| ask(&test, task)));
        for (asked, cold) in asking.into_iter().zip(&cold) {
            assert_eq!(&asked.join().expect("an answer"), cold);
        }
    });
    fs::remove_dir_all(test.home().join("cache/context")).expect("a cache");
    fs::write(test.home().join("cache/context"), "no folder").expect("a file in its place");
    assert_eq!(warm(), cold, "where nothing can be kept");
}

#[test]
fn what_the_project_ignores_is_told_of_only_where_it_is_changed() {
    let test = shop();
    test.write(".gitignore", "built/\n");
    test.write(
        "built/store.py",
        "from price import PriceList\n\n\ndef built_total():\n    PriceList().lookup_price(1)\n",
    );
    test.git(&["add", "--force", "built/store.py"]);
    test.commit("Built");
    let paths = || {
        let ask = ["context", "--at", "HEAD", "--focus", "src/price.py", "--task", "lookup_price", "--format", "json"];
        let context = test.json(&ask, DONE);
        let sections = context["sections"].as_array().expect("sections").clone();
        sections.iter().filter_map(|section| section["path"].as_str().map(str::to_owned)).collect::<Vec<_>>()
    };
    assert!(paths().contains(&"src/store.py".to_owned()) && !paths().contains(&"built/store.py".to_owned()));
    let focus = ["context", "--at", "HEAD", "--focus", "built/store.py", "--format", "json"];
    assert_eq!(test.json(&focus, DONE)["sections"][0]["path"], "built/store.py");
}

#[test]
fn a_file_is_no_test_because_its_name_ends_like_one() {
    let test = shop();
    test.write(
        "src/latest.py",
        "from price import PriceList\n\n\ndef latest():\n    return PriceList().lookup_price(1)\n",
    );
    test.commit("The latest");
    let ask = ["context", "--at", "HEAD", "--focus", "src/price.py", "--task", "lookup_price", "--no-tests"];
    let context = test.json(&[&ask[..], &["--format", "json"]].concat(), DONE);
    let sections = context["sections"].as_array().expect("sections");
    let latest = sections.iter().find(|section| section["path"] == "src/latest.py").expect("the user of the name");
    assert_ne!(latest["kind"], "test");
    assert!(sections.iter().all(|section| section["path"] != "tests/test_store.py"));
}

#[test]
fn a_secret_in_the_task_is_masked_where_it_is_sent() {
    let test = shop();
    let task = "lookup_price fails with ghp_0123456789abcdefghijklmnopqrstuvwxyz";
    for budget in [&["--budget", "2000"][..], &[]] {
        let ask = [&["context", "--at", "HEAD", "--task", task, "--format", "json"], budget].concat();
        let context = test.json(&ask, DONE);
        // The secret must be in no field, whatever the rest of the answer is.
        assert!(!context.to_string().contains("ghp_0123"), "{context:#}");
        let told = &context["sections"][0];
        assert_eq!(
            (&told["kind"], told["text"].as_str()),
            (&"task".into(), Some("lookup_price fails with «secret:github_token»\n"))
        );
    }
}

#[test]
fn secrets_and_strange_files_are_survived() {
    let test = shop();
    test.write(
        "src/keys.py",
        "lookup_price = 'AKIAIOSFODNN7EXAMPLE'\ntoken = 'ghp_0123456789abcdefghijklmnopqrstuvwxyz'\n",
    );
    test.write("src/long.js", format!("var lookup_price = '{}';\n", "x".repeat(1 << 20)));
    test.write("src/binary.py", b"lookup_price\0\xff\xfe".as_slice());
    test.write("src/latin.py", b"# caf\xe9\nlookup_price = 1\n".as_slice());
    test.write("src/empty.py", "");
    test.commit("Strange");
    let ask = ["context", "--at", "HEAD", "--focus", "src/price.py", "--task", "lookup_price", "--budget", "4000"];
    let context = test.json(&[&ask[..], &["--format", "json"]].concat(), DONE);
    assert!(context["total_tokens"].as_u64() <= Some(4_000));
    // The secret must be in no field, whatever the rest of the answer is.
    assert!(!context.to_string().contains("ghp_0123456789abcdefghijklmnopqrstuvwxyz"));
}

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

/// Creates a repository with a history that is long enough to measure.
fn long_history() -> TestEnvironment {
    let test = shop();
    // Two files always change together; the other files change alone.
    let commits: Vec<Vec<(String, String)>> = (0..130)
        .map(|number| {
            let file = |path: &str, name: &str| (path.to_owned(), format!("def {name}:\n    return {number}\n"));
            match number % 3 {
                0 => vec![file("src/a.py", "reader()"), file("src/b.py", "writer()")],
                _ => vec![file(&format!("other/part_{}.py", number % 40), "walk(road)")],
            }
        })
        .collect();
    test.import(&commits);
    test
}

#[test]
fn a_diff_of_files_elsewhere_changes_nothing() {
    let test = shop();
    let ask = |task: &str| {
        let budget = ["--files", "*.py", "--budget", "2000", "--format", "json"];
        let context = test.json(&[&["context", "--at", "HEAD", "--task", task][..], &budget].concat(), DONE);
        paths(&context).join("\n")
    };
    let expected = ask("lookup_price");
    assert_snapshot!(expected, @"
    src/price.py
    tests/test_store.py
    src/store.py
    ");
    let hunk = "@@ -1 +1 @@\n-a\n+b\n";
    for path in ["//etc/passwd", "/etc/passwd", "../passwd"] {
        assert_eq!(ask(&format!("lookup_price\n--- {path}\n+++ {path}\n{hunk}")), expected, "{path}");
    }
}

#[test]
fn commits_of_a_repository_are_measured() {
    let test = long_history();
    let repo = test.repo();
    let repo = repo.to_str().expect("a plain path");
    let ask = ["context-eval", repo, "--commits", "5", "--budget", "400,4000,400", "--format", "json"];
    let measured = test.json(&ask, DONE);
    let rows = measured["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 4 * 2);
    let whole = rows.iter().find(|row| row["retrieval"] == "whole" && row["budget"] == 4_000).expect("the whole");
    assert_eq!(whole["commits"], 5);
    assert_eq!((whole["file_recall"].as_f64(), whole["mrr"].as_f64()), (Some(1.0), Some(1.0)), "{measured:#}");
    assert!(rows.iter().all(|row| row["tokens"].as_f64() <= row["budget"].as_f64()));
    // Neither file imports the other: a search by whole files finds none of the expected files.
    let saving = &measured["saving"];
    assert_eq!(saving["whole_files"]["file_recall"], 0.0, "{saving:#}");
    assert!(saving["whole_files"]["tokens"].as_f64() > Some(5.0) && saving["percent"].is_number(), "{saving:#}");
    // The second call reads the history from the cache.
    assert_eq!(test.json(&ask, DONE), measured);
    let none = ["context-eval", repo, "--skip", "1000", "--budget", "400", "--whole"];
    let nothing = test.json(&[&none[..], &["--format", "json"]].concat(), DONE);
    assert_eq!((&nothing["rows"], &nothing["saving"]["context"]), (&serde_json::json!([]), &Value::Null));
    assert_snapshot!(test.errors(&none, DONE), @"no commit fits: one modifies 2 to 15 files of code, deletes none, and has 100 commits behind it");
    assert_snapshot!(test.output(&none, DONE), @"retrieval  budget  commits  file recall  line recall  MRR  tokens");
}

#[test]
fn a_history_of_its_own_that_was_merged_is_passed_over() {
    let test = long_history();
    test.git(&["reset", "-q", "--hard"]);
    let later = |arguments: &[&str]| {
        let mut git = test.command("git");
        let git = git.env("GIT_COMMITTER_DATE", "2026-03-04T05:06:07Z").args(arguments);
        assert!(git.status().expect("git starts").success(), "{arguments:?}");
    };
    later(&["checkout", "-q", "--orphan", "other"]);
    later(&["commit", "-q", "-m", "Another root"]);
    for path in ["src/a.py", "src/b.py"] {
        test.write(path, "def other():\n    return 0\n");
    }
    later(&["commit", "-q", "-a", "-m", "Of two files"]);
    later(&["checkout", "-q", "main"]);
    later(&["merge", "-q", "--allow-unrelated-histories", "-s", "ours", "-m", "Both", "other"]);
    let repo = test.repo();
    let ask = |commits: &str| {
        let repo = repo.to_str().expect("a plain path");
        let asked = ["context-eval", repo, "--commits", commits, "--budget", "400", "--whole", "--format", "json"];
        let output = test.revdeck(&asked);
        let measured: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        (measured["rows"][0]["commits"].as_u64(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert_eq!(ask("3"), (Some(3), String::new()));
    let (found, said) = ask("1000");
    let found = found.expect("some");
    assert!((4..40).contains(&found), "{found}");
    assert_snapshot!(said.replace(&format!("only {found} "), "only [found] "), @"only [found] of 1000 commits fit: one modifies 2 to 15 files of code, deletes none, and has 100 commits behind it");
}

#[test]
fn the_constitution_is_there_whatever_else_is() {
    let test = shop();
    let article = "No price is ever rounded twice.";
    test.write(".specify/memory/constitution.md", format!("# Articles\n\n{article}\n"));
    test.write("AGENTS.md", "Rules of the house.\n".repeat(100));
    test.commit("Articles");
    test.write(
        "src/price.py",
        "class PriceList:\n    # why\n    def lookup_price(self, item, day):\n        return self.table[item, day]\n"
            .repeat(400),
    );
    for budget in ["200", "400", "2000", "20000"] {
        let ask = ["context", "worktree", "--budget", budget, "--no-documentation", "--format", "json"];
        let context = test.json(&ask, DONE);
        let first = &context["sections"][0];
        assert_eq!((first["kind"].as_str(), first["path"].as_str()), (Some("rules"), None), "{budget}: {context:#}");
        assert_eq!(lines_from(first["text"].as_str().expect("text"), article), [article], "{budget}: {first}");
        assert!(context["total_tokens"].as_u64() <= context["budget"].as_u64());
    }
}

#[test]
fn a_constitution_that_is_cut_says_so() {
    let test = shop();
    test.write("CONSTITUTION.md", "No price is ever rounded twice, and none is shared. ".repeat(2_000));
    test.commit("Articles");
    test.write("src/price.py", "class PriceList:\n    pass\n");
    let mut said = String::new();
    for budget in ["200", "2000", "130000"] {
        let context = test.json(&["context", "worktree", "--budget", budget, "--format", "json"], DONE);
        said += &format!("{budget}: {:?}\n", notes(&context));
        let first = context["sections"][0]["text"].as_str().expect("text");
        assert_eq!(
            lines_from(first, "No price is ever rounded twice, and none is shared. ").len(),
            1,
            "{budget}: {first}"
        );
    }
    assert_snapshot!(said, @r#"
    200: "of the constitution only the beginning is told: it is over its part of the budget"
    2000: "of the constitution only the beginning is told: it is over its part of the budget"
    130000: ""
    "#);
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
fn the_place_in_focus_is_in_the_middle() {
    let test = shop();
    let steps: String =
        (0..90).map(|step| format!("def step_{step}(road):\n    return road.step_{step}\n\n")).collect();
    test.write("src/road.py", steps);
    test.commit("A road");
    for line in [60, 130, 200] {
        let focus = format!("src/road.py:{line}");
        let context =
            test.json(&["context", "--at", "HEAD", "--focus", &focus, "--budget", "4000", "--format", "json"], DONE);
        let focus = &context["sections"][0];
        assert_eq!(focus["kind"], "focus");
        let (start, end) = (focus["start_line"].as_u64().expect("a line"), focus["end_line"].as_u64().expect("a line"));
        let (above, below) = (line - start, end - line);
        assert!(above > 10 && below > 10 && above.abs_diff(below) < 10, "{line}: {start} to {end}");
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
fn the_rules_around_what_a_task_is_about_are_told() {
    let test = shop();
    test.write("src/AGENTS.md", "Prices are never rounded.\n");
    test.write("other/AGENTS.md", "Roads are long.\n");
    test.commit("Rules");
    let diff = "--- a/src/price.py\n+++ b/src/price.py\n@@ -2 +2 @@\n-    def lookup_price(self, item):\n+    def price_of(self, item):\n";
    for about in [["--focus", "src/price.py"], ["--task", diff]] {
        for more in [&["worktree"][..], &["worktree", "--budget", "4000"], &["--at", "HEAD"]] {
            let context = test.json(&[&["context", "--format", "json"], more, &about].concat(), DONE);
            let sections = context["sections"].as_array().expect("sections").iter();
            let rules = sections.filter(|section| section["kind"] == "rules");
            let rules: Vec<&str> = rules.filter_map(|section| section["text"].as_str()).collect();
            let [rules] = rules[..] else { panic!("{more:?} {about:?}: {context:#}") };
            allow_duplicates!(assert_snapshot!(rules, @"
            From src/AGENTS.md:
            ```
            Prices are never rounded.
            ```
            "));
        }
    }
}

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

#[test]
fn a_focus_is_named_from_where_one_is_or_from_the_root() {
    let test = shop();
    let absolute = test.repo().join("src/price.py").to_string_lossy().into_owned();
    for path in ["price.py:2", "src/price.py:2", "../src/price.py:2", &format!("{absolute}:2")] {
        let mut command = test.command(env!("CARGO_BIN_EXE_revdeck"));
        command.current_dir(test.repo().join("src"));
        let ask = ["context", "--at", "HEAD", "--focus", path, "--budget", "2000", "--format", "json"];
        let output = command.args(ask).output().expect("revdeck starts");
        let context: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(context["sections"][0]["path"], "src/price.py", "{path}: {}", notes(&context));
    }
}

#[test]
fn a_focus_on_nothing_is_said() {
    let test = shop();
    // With an index no other note is printed.
    index(&test);
    let mut said = String::new();
    for focus in ["src/price.py", "src/nope.py", "README.md:3"] {
        let context = test.json(&["context", "--at", "HEAD", "--focus", focus, "--format", "json"], DONE);
        said += &format!("{focus}: {:?}\n", notes(&context));
    }
    assert_snapshot!(said, @r#"
    src/price.py: ""
    src/nope.py: "nothing of src/nope.py is in focus: no text that may be shown is in the tree by this path"
    README.md:3: "nothing of README.md is in focus: no text that may be shown is in the tree by this path"
    "#);
}

#[test]
fn a_diff_as_the_task_is_the_change_where_nothing_is_changed() {
    let test = shop();
    let diff = "--- a/src/price.py\n+++ b/src/price.py\n@@ -2 +2 @@\n-    def lookup_price(self, item):\n+    def price_of(self, item):\n";
    for more in [&["--budget", "2000"][..], &[]] {
        let context = test.json(&[&["context", "worktree", "--task", diff, "--format", "json"], more].concat(), DONE);
        let sections = context["sections"].as_array().expect("sections");
        let found = sections.iter().filter(|section| section["kind"] != "focus");
        let paths: Vec<&str> = found.filter_map(|section| section["path"].as_str()).collect();
        assert!(paths.contains(&"src/store.py") && !paths.contains(&"src/price.py"), "{paths:?}");
    }
}

#[test]
fn a_large_budget_begins_with_the_tree_and_the_documents() {
    let test = shop();
    test.write("AGENTS.md", "Prices are exact.\n");
    test.write("other/AGENTS.md", "Roads are long.\n");
    test.commit("Rules");
    let ask = ["context", "--at", "HEAD", "--focus", "src/price.py", "--format", "json"];
    let context = test.json(&ask, DONE);
    assert_eq!(context["budget"], 8_000, "as a review has");
    let texts = |kind: &str| -> Vec<String> {
        let sections = context["sections"].as_array().expect("sections").iter();
        let texts = sections.filter(|section| section["kind"] == kind).filter_map(|section| section["text"].as_str());
        texts.map(str::to_owned).collect()
    };
    let [overview] = &texts("overview")[..] else { panic!("{context:#}") };
    assert_snapshot!(overview, @"
    other/ (40 files)
    src/price.py
    src/store.py
    tests/ (1 file)
    ");
    let [documents] = &texts("documentation")[..] else { panic!("{context:#}") };
    assert_snapshot!(documents, @"
    ```
    Documents of the project that can be asked for:
      other/: AGENTS.md
    ```
    ");
    assert_snapshot!(texts("rules")[0], @"
    From AGENTS.md:
    ```
    Prices are exact.
    ```
    ");
}

/// Returns the paths of the sections that belong to a file, in order.
fn paths(context: &Value) -> Vec<&str> {
    let sections = context["sections"].as_array().expect("sections");
    sections.iter().filter_map(|section| section["path"].as_str()).collect()
}

#[test]
fn what_comes_after_a_change_has_no_say_in_its_context() {
    let test = shop();
    let commit = |number: usize, paths: &[&str]| -> Vec<(String, String)> {
        paths.iter().map(|path| ((*path).to_owned(), format!("def walk(road):\n    return {number}\n"))).collect()
    };
    let together = |paths: &[&str]| (0..6).map(|number| commit(number, paths)).collect::<Vec<_>>();
    test.import(&together(&["src/price.py", "other/part_3.py"]));
    test.import(&[commit(7, &["src/price.py", "other/part_5.py"])]);
    let reviewed = test.git(&["rev-parse", "main"]).trim().to_owned();
    test.git(&["reset", "--hard", "--quiet"]);
    // If the index is missing, the first context starts a background refresh, and a later context no longer reports
    // it.
    index(&test);
    let scope = format!("commit:{reviewed}");
    for more in [&["--budget", "1500"][..], &[]] {
        let ask = [&["context", &scope, "--format", "json"], more].concat();
        let before = test.json(&ask, DONE);
        assert!(paths(&before).contains(&"other/part_3.py"), "{before:#}");
        test.import(&together(&["src/price.py", "other/part_9.py"]));
        assert_eq!(test.json(&ask, DONE), before);
    }
}

#[test]
fn who_uses_what_is_deleted_is_looked_for() {
    let test = shop();
    // With an index no other note is printed.
    index(&test);
    fs::remove_file(test.repo().join("src/price.py")).expect("removed");
    for more in [&["--budget", "1500"][..], &[]] {
        let context = test.json(&[&["context", "worktree", "--format", "json"], more].concat(), DONE);
        assert_eq!(paths(&context).first(), Some(&"src/store.py"), "{context:#}");
        allow_duplicates!(assert_snapshot!(notes(&context), @"of the change not sent, deleted: src/price.py"));
    }
}

#[test]
fn a_renamed_file_has_the_history_of_its_old_name() {
    let test = shop();
    let text = |number: usize| format!("{}    return {number}\n", "def walk(road):\n    road.go()\n".repeat(8));
    let file = |path: &str, number: usize| (path.to_owned(), text(number));
    let commits = (0..8).map(|number| vec![file("src/a.py", number), file("other/part_7.py", number)]);
    test.import(&commits.collect::<Vec<_>>());
    test.git(&["reset", "--hard", "--quiet"]);
    test.git(&["mv", "src/a.py", "src/b.py"]);
    test.write("src/b.py", text(99));
    let context = test.json(&["context", "worktree", "--budget", "1500", "--format", "json"], DONE);
    let sections = context["sections"].as_array().expect("sections");
    let friend = sections.iter().find(|section| section["path"] == "other/part_7.py").expect("what changed with it");
    assert_snapshot!(test.normalise(friend["reason"].as_str().expect("text")), @"found just in time, where the change's words are densest; it has the change's words; in 87 % of their commits; the change's words; last changed 2026-01-02 in [hash]");
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

#[test]
fn numbers_of_lines_as_large_as_they_can_be_are_survived() {
    let test = shop();
    test.write(".gitignore", "coverage\n");
    test.write("coverage/lcov.info", "SF:src/price.py\nDA:2,0\nDA:3,0\nend_of_record\n");
    for (start, lines) in [(u32::MAX, 0), (u32::MAX, 2), (u32::MAX - 1, 0)] {
        let diff = format!("--- a/src/price.py\n+++ b/src/price.py\n@@ -{start},{lines} +1 @@\n+gone = 1\n");
        test.json(&["context", "--at", "HEAD", "--task", &diff, "--budget", "2000", "--format", "json"], DONE);
    }
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
