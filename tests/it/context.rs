//! `revdeck context` and `revdeck context-eval` with the real binary and real repositories.

mod budget;
mod caches;
mod documents;
mod focus;
mod measure;
mod output;
mod search;
mod secrets;
mod sections;

use std::path::PathBuf;

use revdeck::config::Paths;
use revdeck::git::Repo;
use revdeck::index::Index;
use serde_json::Value;

use crate::env::TestEnvironment;

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

/// Returns the paths of the sections that belong to a file, in order.
fn paths(context: &Value) -> Vec<&str> {
    let sections = context["sections"].as_array().expect("sections");
    sections.iter().filter_map(|section| section["path"].as_str()).collect()
}
