//! Fills a store with generated runs and findings, for measurements and for a cockpit with many rows:
//!
//! ```text
//! cargo run --release --example fill_store -- 10000 100000 /tmp/home /path/to/repository
//! REVDECK_HOME=/tmp/home revdeck
//! ```
//!
//! Paths and HEAD are those of the repository, so that the cockpit can show the code at a finding.

use std::error::Error;

use revdeck::git::Repo;
use revdeck::store::{RepoInfo, Store};

#[path = "sample.rs"]
mod sample;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [runs, findings, home, repository] = arguments.as_slice() else {
        return Err("usage: fill_store RUNS FINDINGS HOME REPOSITORY".into());
    };
    let repo = Repo::discover(repository.as_ref())?;
    let info = RepoInfo {
        version: 1,
        key: repo.key(),
        name: repo.name(),
        common_dir: repo.common_dir().display().to_string(),
    };
    let store = Store::open(&std::path::Path::new(home).join("state"), info)?;
    if store.runs_view()?.run_count() > 0 {
        return Err(format!("{} has runs already: give another HOME", store.root().display()).into());
    }
    let mut shape = sample::Shape::of(runs.parse()?, findings.parse()?);
    shape.until = revdeck::domain::Time::now();
    let head = repo.head();
    if !head.is_empty() {
        let paths: Vec<String> = repo.tree_files(&head)?.into_iter().map(|file| file.path).collect();
        if !paths.is_empty() {
            shape.paths = paths;
        }
        shape.head = head;
    }
    shape.worktree = repo.root().display().to_string();
    sample::fill(&store, &shape)?;
    store.view()?;
    Ok(())
}
