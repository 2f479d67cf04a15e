//! Tests cancellation of a context at every point.

use std::cell::Cell;

use super::*;
use crate::context::retrieve::task::Focus;

/// A repository with a few commits of a few files, and its newest commit.
fn sample(folder: &Path) -> (Repo, String) {
    let git = git2::Repository::init_bare(folder).expect("a repository");
    let mut parent = None;
    for number in 0..3 {
        let mut tree = git.treebuilder(None).expect("a builder");
        for file in 0..4 {
            let text = format!("fn own_{file}() {{ shared(); }}\n\nfn changed_{file}() {{ own_{file}({number}); }}\n");
            let blob = git.blob(text.as_bytes()).expect("a blob");
            tree.insert(format!("part_{file}.rs"), blob, 0o100_644).expect("an entry");
        }
        let tree = git.find_tree(tree.write().expect("a tree")).expect("the tree");
        let who = git2::Signature::new("a", "a@example.org", &git2::Time::new(number, 0)).expect("a name");
        let parents: Vec<git2::Commit<'_>> = parent.and_then(|id| git.find_commit(id).ok()).into_iter().collect();
        let parents: Vec<&git2::Commit<'_>> = parents.iter().collect();
        parent = Some(git.commit(None, &who, &who, "a", &tree, &parents).expect("a commit"));
    }
    (Repo::discover(folder).expect("a repository"), parent.expect("a commit").to_string())
}

#[test]
fn a_context_ends_at_the_first_look_after_nobody_waits_for_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let (repo, tip) = sample(folder.path());
    let looks = Cell::new(0);
    let until = |most: usize| {
        looks.set(0);
        let cancelled = || {
            looks.set(looks.get() + 1);
            looks.get() > most
        };
        let focus = vec![Focus { path: "part_1.rs".to_owned(), line: None }];
        let question = ContextQuery {
            tree: &tip,
            history: &tip,
            task: RetrievalTask { focus, text: "shared own_2".to_owned(), ..RetrievalTask::default() },
            leading_pieces: Vec::new(),
            context_lines: None,
            quoted_documents: &[],
            budget: 120,
            encoding: Encoding::O200kBase,
            options: ContextOptions::default(),
            folder: None,
            index: None,
            meaning: None,
            cancelled: &cancelled,
            time_left: READ_EVERYTHING,
        };
        build_context(&repo, question).expect("a repository that can be read")
    };
    assert!(until(usize::MAX).is_some());
    let all = looks.get();
    // A batch of commits, a batch of files to read, four files that are read and masked, and the checks in between.
    assert!(all > 1 + 1 + 4 + 3, "{all}");
    for most in 0..all {
        assert!(until(most).is_none(), "{most} of {all}");
    }
    // The commits are skipped, and no file is read.
    until(0);
    assert_eq!(looks.get(), 2);
}
