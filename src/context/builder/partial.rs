//! Tests that reading ends in time, that the context says so, and that the next context has the rest.

use std::cell::Cell;

use super::*;
use crate::context::pack::ReadShare;
use crate::context::read_ahead::{ContextSources, read_ahead};
use crate::context::retrieve::task::Focus;

const COMMITS: u32 = 40;
const FILES: u32 = 100;

/// A repository of many files whose commits change two of them each, and its newest commit.
fn sample(folder: &Path) -> (Repo, String) {
    let git = git2::Repository::init_bare(folder).expect("a repository");
    let blob = |file: u32, number: u32| {
        let text = format!("fn own_{file}() {{ shared(); }}\n\nfn changed_{file}() {{ own_{file}({number}); }}\n");
        git.blob(text.as_bytes()).expect("a blob")
    };
    let mut tree = git.treebuilder(None).expect("a builder");
    for file in 0..FILES {
        tree.insert(format!("part_{file:03}.rs"), blob(file, 0), 0o100_644).expect("an entry");
    }
    let mut parent: Option<git2::Oid> = None;
    for number in 0..COMMITS {
        for file in [7, number + 10] {
            tree.insert(format!("part_{file:03}.rs"), blob(file, number + 1), 0o100_644).expect("an entry");
        }
        let tree = git.find_tree(tree.write().expect("a tree")).expect("the tree");
        let who = git2::Signature::new("a", "a@example.org", &git2::Time::new(number.into(), 0)).expect("a name");
        let parents: Vec<git2::Commit<'_>> = parent.and_then(|id| git.find_commit(id).ok()).into_iter().collect();
        let parents: Vec<&git2::Commit<'_>> = parents.iter().collect();
        parent = Some(git.commit(None, &who, &who, "a", &tree, &parents).expect("a commit"));
    }
    (Repo::discover(folder).expect("a repository"), parent.expect("a commit").to_string())
}

/// Builds the context of a file; each look at the clock takes `step` of the ten seconds that there are.
fn build((repo, tip): &(Repo, String), folder: Option<&Path>, step: Duration) -> PackedContext {
    let left = Cell::new(Duration::from_secs(10));
    let time_left = || left.replace(left.get().saturating_sub(step));
    let question = ContextQuery {
        tree: tip,
        history: tip,
        task: RetrievalTask {
            focus: vec![Focus { path: "part_007.rs".to_owned(), line: None }],
            text: "shared own_7".to_owned(),
            ..RetrievalTask::default()
        },
        leading_pieces: Vec::new(),
        context_lines: None,
        quoted_documents: &[],
        budget: 2_000,
        encoding: Encoding::O200kBase,
        options: ContextOptions::default(),
        folder,
        index: None,
        meaning: None,
        cancelled: &|| false,
        time_left: &time_left,
    };
    build_context(repo, question).expect("a repository").expect("a context")
}

fn share(read: u32, total: u32) -> Option<ReadShare> {
    Some(ReadShare { read, total })
}

#[test]
fn a_first_context_reads_for_as_long_as_it_may_and_says_what_it_lacks() {
    let folder = tempfile::tempdir().expect("a folder");
    let sample = sample(folder.path());
    let kept = folder.path().join("kept");
    let whole = build(&sample, None, Duration::ZERO);
    assert!(whole.partial.is_whole() && whole.notes.is_empty(), "{:?}", whole.notes);

    // No time at all: the first batch is read nevertheless.
    let little = build(&sample, Some(&kept), Duration::from_secs(10));
    assert_eq!((little.partial.commits, little.partial.files), (share(16, COMMITS), share(32, FILES)));
    assert_eq!(
        little.notes,
        [
            "only 16 of 40 commits of the history were read in time (context.reading_seconds): the next context has more",
            "only 32 of 100 files of code were read in time (context.reading_seconds): the next context has more",
        ]
    );
    assert!(little.sections.iter().any(|section| section.path == "part_007.rs"), "the file in focus is read first");

    // Half of the time is for the history, which takes one look at the clock before each batch but the first.
    let some = build(&sample, None, Duration::from_secs(3));
    assert_eq!((some.partial.commits, some.partial.files), (share(32, COMMITS), share(64, FILES)));

    // The rest is read behind the request.
    let sources = ContextSources { tree: sample.1.clone(), history: sample.1.clone() };
    assert!(!read_ahead(&sample.0, &sources, &kept, &|| true).expect("readable"), "it was stopped");
    assert!(read_ahead(&sample.0, &sources, &kept, &|| false).expect("readable"));
    assert_eq!(build(&sample, Some(&kept), Duration::from_secs(10)), whole);
}
