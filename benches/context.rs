//! Measures the time to build a context: the code around an ordinary commit, in at most 8,000 and 130,000 tokens,
//! with warm caches and an index of its tree. Target: under 250 ms. Each commit is a different query and runs once.
//!
//! ```text
//! cargo bench --bench context                                             # this repository
//! REVDECK_BENCH_REPOS=~/src/a:~/src/b.git cargo bench --bench context     # others
//! ```

#![allow(clippy::print_stdout)]

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use revdeck::context::builder::{ContextOptions, ContextQuery, READ_EVERYTHING, build_context};
use revdeck::context::diff_parts::DiffLimits;
use revdeck::context::query_input::{build_query_input, history_tip};
use revdeck::context::retrieve::task::RetrievalTask;
use revdeck::git::{FilterSettings, Repo};
use revdeck::index::Index;
use revdeck::tokens::{Encoding, count_tokens};

type Failure = Box<dyn std::error::Error>;

/// The maximum number of files in an ordinary commit, by [`revdeck::eval::retrieval`].
const MOST_FILES: usize = 15;
const COMMITS: usize = 20;
/// The number of queries that warm the caches before the measurement.
const WARMED_BY: usize = 3;

fn main() -> Result<(), Failure> {
    let repos = std::env::var("REVDECK_BENCH_REPOS").unwrap_or_else(|_| env!("CARGO_MANIFEST_DIR").to_owned());
    count_tokens(Encoding::O200kBase, "the table of the encoding is unpacked");
    println!("repository                budget commits | median ms slowest ms | cold ms");
    for path in repos.split(':').map(PathBuf::from) {
        for budget in [8_000, 130_000] {
            measure(&path, budget)?;
        }
    }
    Ok(())
}

fn measure(path: &Path, budget: u32) -> Result<(), Failure> {
    let repo = Repo::discover(path)?;
    let folder = tempfile::tempdir()?;
    let filter = FilterSettings { max_file_bytes: 1_000_000, ignored_paths: Vec::new() };
    let mut took: Vec<Duration> = Vec::new();
    // Oldest commit first, in the order of real work.
    let mut ancestors = repo.ancestors(&repo.head(), 150)?;
    ancestors.reverse();
    for ancestor in ancestors {
        let [parent] = ancestor.parents.as_slice() else { continue };
        let change = repo.compute_changeset(parent, &ancestor.commit, &filter)?;
        if change.files.is_empty() || change.files.len() > MOST_FILES {
            continue;
        }
        let index =
            Index::refresh(&folder.path().join("index"), &repo, &ancestor.commit, &|_| ControlFlow::Continue(()))?;
        let began = Instant::now();
        let task =
            RetrievalTask { given: build_query_input(&repo, parent, &change, &|_| true)?, ..RetrievalTask::default() };
        let question = ContextQuery {
            tree: &ancestor.commit,
            history: history_tip(parent, &ancestor.commit),
            task,
            leading_pieces: Vec::new(),
            context_lines: Some(DiffLimits::DEFAULT_CONTEXT_LINES),
            quoted_documents: &[],
            budget,
            encoding: Encoding::O200kBase,
            options: ContextOptions::default(),
            folder: Some(folder.path()),
            index: Some(&index.index),
            meaning: None,
            cancelled: &|| false,
            time_left: READ_EVERYTHING,
        };
        build_context(&repo, question)?;
        took.push(began.elapsed());
        if took.len() == WARMED_BY + COMMITS {
            break;
        }
    }
    let ms = |time: Option<&Duration>| time.map_or(0.0, |time| time.as_secs_f64() * 1000.0);
    let mut warm = took.split_off(WARMED_BY.min(took.len()));
    warm.sort();
    let name = path.components().rev().nth(usize::from(path.ends_with("repo")));
    let name = name.map_or_else(String::new, |name| name.as_os_str().to_string_lossy().into_owned());
    println!(
        "{name:<25} {budget:>6} {:>7} | {:>9.0} {:>10.0} | {:>7.0}",
        warm.len(),
        ms(warm.get(warm.len() / 2)),
        ms(warm.last()),
        ms(took.first())
    );
    Ok(())
}
