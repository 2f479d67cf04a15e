//! Integration tests: learning from the history of a repository. Git itself creates the repositories.

use std::ops::ControlFlow;

use revdeck::git::{GitError, Repo};
use revdeck::knowledge::history_mining::{MAX_FILES_PER_FIX, MinedEdit, MiningStats, mine_fixes};

use crate::env::TestEnvironment;

fn mined(test: &TestEnvironment, newest: usize) -> (MiningStats, Vec<MinedEdit>) {
    let mut edits = Vec::new();
    let mined = mine_fixes(&Repo::discover(&test.repo()).expect("a repository"), newest, &mut |edit| {
        edits.push(edit);
        ControlFlow::Continue(())
    });
    (mined.expect("a history"), edits)
}

fn forms(edits: &[MinedEdit]) -> Vec<String> {
    edits.iter().map(|mined| format!("{} => {}", mined.edit.broken, mined.edit.fixed)).collect()
}

fn function(condition: &str) -> String {
    format!("def f(x):\n    if {condition}:\n        return 1\n    return g(x)\n")
}

fn fixed() -> TestEnvironment {
    let test = TestEnvironment::new();
    test.write("a.py", function("x == None"));
    test.commit("Begin");
    test.write("a.py", function("x is None"));
    test.commit("Fix the comparison");
    test
}

fn fixed_twice() -> TestEnvironment {
    let test = fixed();
    test.write("a.py", function("not x"));
    test.commit("Fix what is empty");
    test
}

#[test]
fn fixes_teach_and_nothing_else_does() {
    let test = TestEnvironment::new();
    for path in ["a.py", "b.py", "tests/test_a.py"] {
        test.write(path, function("x == None"));
    }
    test.commit("Fix everything, by adding files");
    test.write("b.py", function("x != None"));
    test.commit("Turn the condition round");
    test.write("tests/test_a.py", function("x is None"));
    test.commit("Fix the test");
    test.write("b.py", function("x is not None"));
    test.commit("Fix a typo");
    test.write("a.py", function("x is None"));
    test.commit("Fix the comparison with None");

    let (mined, edits) = mined(&test, 10);
    assert_eq!(mined, MiningStats { commits: 4, fixes: 1, edits: 1 });
    let forms = forms(&edits);
    assert!(forms.contains(&"VARIABLE == None => VARIABLE is None".to_owned()), "{forms:#?}");
    assert!(edits.iter().all(|mined| mined.commit == edits[0].commit && mined.edit.hunk == 0), "{edits:#?}");
}

#[test]
fn only_the_newest_commits_are_looked_at_and_the_newest_comes_first() {
    let test = fixed_twice();
    assert_eq!(mined(&test, 1).0, MiningStats { commits: 1, fixes: 1, edits: 1 });
    let (all, edits) = mined(&test, 10);
    assert_eq!(all, MiningStats { commits: 2, fixes: 2, edits: 2 });
    assert!(forms(&edits)[0].ends_with("not VARIABLE"), "{:#?}", forms(&edits));
}

#[test]
fn a_commit_has_the_same_digest_after_it_was_written_again() {
    let test = fixed();
    let (_, before) = mined(&test, 10);
    test.git(&["commit", "--amend", "-qm", "Fix the comparison, in other words"]);
    let (_, after) = mined(&test, 10);
    assert!(!before.is_empty() && before[0].commit.len() == 32);
    assert_eq!(before[0].commit, after[0].commit);
}

#[test]
fn a_commit_that_changes_much_is_no_fix_of_one_thing() {
    let test = TestEnvironment::new();
    let write = |condition: &str| {
        for number in 0..=MAX_FILES_PER_FIX {
            test.write(&format!("a{number}.py"), function(condition));
        }
    };
    write("x == None");
    test.commit("Begin");
    write("x is None");
    test.commit("Fix all comparisons");
    assert_eq!(mined(&test, 10), (MiningStats { commits: 1, fixes: 0, edits: 0 }, Vec::new()));
}

#[test]
fn who_has_enough_gets_no_more() {
    let test = fixed_twice();
    let mut asked = 0;
    let repo = Repo::discover(&test.repo()).expect("a repository");
    let mined = mine_fixes(&repo, 10, &mut |_| {
        asked += 1;
        ControlFlow::Break(())
    });
    assert!(mined.is_ok());
    assert_eq!(asked, 1);
}

#[test]
fn a_repository_without_a_commit_is_an_error() {
    let test = TestEnvironment::new();
    let repo = Repo::discover(&test.repo()).expect("a repository");
    assert!(matches!(mine_fixes(&repo, 10, &mut |_| ControlFlow::Continue(())), Err(GitError::Unborn { .. })));
}
