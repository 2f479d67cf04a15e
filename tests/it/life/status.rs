//! Status changes of findings from the evidence of a run.

use super::*;
use FindingStatus::{Addressed, Dismissed, Obsolete, Open, Unresolved};

#[test]
fn a_fix_that_a_review_covered_is_confirmed() {
    let life = Life::new();
    let id = life.swallowed("a.py", &swallows("one"));
    life.write("a.py", &handles("one"));
    let run = life.review(&["--worktree"]);
    let (actor, status, reason) = life.last(&id);
    assert_eq!((actor, status), (Actor::Engine, Addressed));
    assert!(reason.starts_with(&format!("confirmed by run {run}: its code was changed")), "{reason}");
    assert_eq!(life.output(&run).notes, ["1 earlier finding confirmed as addressed"]);
    let shown = life.show(&id);
    assert_eq!(shown["resolution"]["claimed_by"], Value::Null);
    assert_eq!(shown["resolution"]["confirmed_by_run"], run.as_str());
    // Later runs add no further change.
    life.write("b.py", &plain("two"));
    life.review(&["--worktree"]);
    assert_eq!(life.history(&id).len(), 1);
}

#[test]
fn a_claim_is_kept_apart_from_its_confirmation() {
    let life = Life::new();
    let id = life.swallowed("a.py", &swallows("one"));
    life.triage(&id, "addressed", "handled");
    assert_eq!(life.show(&id)["resolution"]["claimed_by"], "user");
    assert_eq!(life.show(&id)["resolution"]["confirmed_by_run"], Value::Null);
    life.write("b.py", &plain("two"));
    life.review(&["--worktree"]);
    assert_eq!(life.history(&id).len(), 1, "a review of something else confirms nothing");

    life.write("a.py", &handles("one"));
    let run = life.review(&["--worktree"]);
    let shown = life.show(&id);
    assert_eq!(shown["finding"]["status"], "addressed");
    assert_eq!(shown["resolution"]["claimed_by"], "user");
    assert_eq!(shown["resolution"]["confirmed_by_run"], run.as_str());
    let text = life.place.revdeck(&["show", id.as_str()]);
    assert!(text.contains("claimed by the user") && text.contains(&format!("confirmed by run {run}")), "{text}");
}

#[test]
fn an_edit_that_leaves_the_problem_there_contradicts_the_claim() {
    let life = Life::new();
    let id = life.swallowed("a.py", &swallows("one"));
    life.triage(&id, "addressed", "handled");
    life.write("a.py", &format!("# a comment\n{}", swallows("one").replace("        pass", "        source = None")));
    let run = life.review(&["--worktree"]);
    let (actor, status, reason) = life.last(&id);
    assert_eq!((actor, status), (Actor::Engine, Unresolved), "{reason}");
    assert_eq!(life.place(&id), ("a.py".to_owned(), 5), "it stands where the problem is now");
    assert!(life.history(&id).iter().any(|line| line.run_id == Some(run.clone())));
}

#[test]
fn an_open_finding_stays_open_while_the_problem_is_there() {
    let life = Life::new();
    let id = life.swallowed("a.py", &swallows("one"));
    life.write("a.py", &swallows("one").replace("        pass", "        source = None"));
    life.review(&["--worktree"]);
    assert_eq!((life.at(&id), life.history(&id)), ("open at a.py:4".to_owned(), vec![]));
    // The next fix is still noticed.
    life.write("a.py", &handles("one"));
    life.review(&["--worktree"]);
    assert_eq!(life.status(&id), Addressed);
}

#[test]
fn what_comes_back_is_unresolved() {
    let life = Life::new();
    let id = life.swallowed("a.py", &swallows("one"));
    life.write("a.py", &handles("one"));
    life.commit("fix");
    life.review(&["--commit", "HEAD"]);
    assert_eq!(life.status(&id), Addressed);
    life.git(&["revert", "--no-edit", "HEAD"]);
    let again = life.review(&["--commit", "HEAD"]);
    assert_eq!((life.status(&id), life.last(&id).0), (Unresolved, Actor::Engine));
    let finding = life.output(&again).findings.into_iter().find(|finding| finding.finding_id == id).expect("raised");
    assert_eq!(finding.status, Unresolved);
    assert_ne!(finding.first_run_id, again, "it is the same finding, with a longer history");
}

#[test]
fn code_that_is_taken_out_makes_its_findings_obsolete() {
    let life = Life::new();
    let (one, two) = (swallows("one"), plain("two"));
    let id = life.swallowed("a.py", &format!("{two}\n\n{one}"));
    let whole = life.swallowed("gone.py", &swallows("three"));
    life.write("a.py", &two);
    std::fs::remove_file(life.place.test.repo().join("gone.py")).expect("removed");
    life.write("b.py", &plain("four"));
    let run = life.review(&["--worktree"]);
    assert_eq!(life.last(&id), (Actor::Engine, Obsolete, "its code was deleted".to_owned()));
    assert_eq!(life.last(&whole), (Actor::Engine, Obsolete, "its file is gone".to_owned()));
    assert_eq!(life.output(&run).notes, ["2 earlier findings obsolete: the code is gone"]);
    // A finding whose code is back is open again.
    life.write("gone.py", &swallows("three"));
    life.commit("back");
    life.review(&["--commit", "HEAD"]);
    assert_eq!(life.status(&id), Obsolete);
    life.write("gone.py", &format!("{}\n\n{}", plain("x"), swallows("three")));
    life.review(&["--branch", "HEAD~3"]);
    assert_eq!(life.status(&whole), Open);
}

#[test]
fn a_run_says_nothing_about_what_it_did_not_cover() {
    let life = Life::new();
    let id = life.swallowed("a.py", &swallows("one"));
    // The fix is in a commit that has no review.
    life.write("a.py", &handles("one"));
    life.commit("fix");
    life.write("b.py", &plain("two"));
    life.commit("more");
    life.review(&["--commit", "HEAD"]);
    assert_eq!(life.status(&id), Open);
    life.write("c.py", &plain("three"));
    life.review(&["--worktree"]);
    assert_eq!((life.status(&id), life.history(&id)), (Open, vec![]));
    // A later review covers that commit.
    life.review(&["--range", "HEAD~2..HEAD"]);
    assert_eq!(life.status(&id), Addressed);
}

#[test]
fn other_branches_and_old_commits_say_nothing() {
    let life = Life::new();
    let id = life.swallowed("a.py", &swallows("one"));
    life.git(&["switch", "-q", "-c", "topic"]);
    life.write("a.py", &plain("one"));
    life.commit("a topic");
    life.review(&["--commit", "HEAD"]);
    assert_eq!(life.status(&id), Open, "main still has it");
    life.git(&["switch", "-q", "main"]);
    life.write("a.py", &handles("one"));
    life.commit("fix");
    life.review(&["--commit", "HEAD"]);
    assert_eq!(life.status(&id), Addressed);
    life.review(&["--commit", "HEAD~1", "--force"]);
    assert_eq!(life.status(&id), Addressed, "it was there then");
}

#[test]
fn what_is_not_committed_is_not_judged_by_a_commit_without_it() {
    let life = Life::new();
    life.write("a.py", &plain("zero"));
    life.commit("zero");
    life.write("a.py", &format!("{}\n\n{}", plain("zero"), swallows("one")));
    let run = life.review(&["--worktree"]);
    let id = life.output(&run).findings.first().expect("a finding").finding_id.clone();
    life.review(&["--commit", "HEAD"]);
    life.review(&["--branch", "HEAD~1"]);
    assert_eq!(life.status(&id), Open, "HEAD never had it");
    // The commit that contains the fix changes the status.
    life.write("a.py", &format!("{}\n\n{}", plain("zero"), handles("one")));
    life.commit("one");
    life.review(&["--commit", "HEAD"]);
    assert_eq!(life.status(&id), Addressed);
}

#[test]
fn a_decision_that_is_newer_than_the_code_stands() {
    let life = Life::new();
    let id = life.swallowed("a.py", &swallows("one"));
    life.write("a.py", &handles("one"));
    life.place.settings("max_parallel_runs = 1\n");
    // The command takes the snapshot now; the worker starts after the decision.
    let run = life.place.review(&["--worktree"]);
    life.triage(&id, "dismissed", "on purpose");
    life.place.ended(&run);
    assert_eq!(life.status(&id), Dismissed);
}

#[test]
fn code_that_is_back_as_it_was_needs_no_new_review() {
    let life = Life::new();
    life.write("a.py", &swallows("one"));
    let first = life.review(&["--worktree"]);
    let id = life.output(&first).findings.first().expect("a finding").finding_id.clone();
    life.triage(&id, "addressed", "soon");
    assert_eq!(life.review(&["--worktree"]), first, "reused");
    assert_eq!(life.status(&id), Addressed, "nobody has looked since that was said");
    life.write("a.py", &handles("one"));
    life.review(&["--worktree"]);
    assert_eq!(life.last(&id).0, Actor::Engine, "confirmed");
    life.write("a.py", &swallows("one"));
    assert_eq!(life.review(&["--worktree"]), first, "reused");
    assert_eq!(life.status(&id), Unresolved);
}

#[test]
fn a_change_that_only_takes_away_is_noticed_without_a_review() {
    let life = Life::new();
    let id = life.swallowed("a.py", &swallows("one"));
    let other = life.swallowed("b.py", &swallows("two"));
    std::fs::remove_file(life.place.test.repo().join("a.py")).expect("removed");
    life.review(&["--worktree"]);
    assert_eq!((life.status(&id), life.status(&other)), (Obsolete, Open));
    assert_eq!(life.last(&id).2, "its file is gone");
}

#[test]
fn a_file_that_is_too_large_for_the_snapshot_is_not_gone() {
    let life = Life::new();
    life.write("a.py", &swallows("one"));
    let run = life.review(&["--worktree"]);
    let id = life.output(&run).findings.first().expect("a finding").finding_id.clone();
    life.write("a.py", &format!("{}{}", swallows("one"), "# a line of a file that has grown\n".repeat(40_000)));
    life.write("b.py", &plain("two"));
    life.place.review_incompletely(&["--worktree"]);
    assert_eq!(life.status(&id), Open);
}
