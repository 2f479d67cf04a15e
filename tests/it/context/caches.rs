//! The index and the caches behind contexts: they change no answer, and a first context says what it lacks.

use std::path::PathBuf;
use std::{fs, thread};

use insta::assert_snapshot;
use revdeck::index::{Index, IndexCompleteness};
use serde_json::json;

use super::{index, index_of, notes, shop};
use crate::env::{DONE, TestEnvironment, err, files_below};
use crate::runner::place::wait_for;

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
