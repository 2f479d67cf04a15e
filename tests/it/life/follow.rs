//! Findings follow their code.

use super::*;

/// Returns two functions with findings, below code without findings.
fn long() -> String {
    format!("{}\n\n{}\n\n{}", plain("zero"), swallows("one"), plain("two"))
}

#[test]
fn through_edits_around_it() {
    let life = Life::new();
    let id = life.swallowed("a.py", &long());
    assert_eq!(life.at(&id), "open at a.py:8");
    life.write("a.py", &format!("# one\n\n\n{}", long()));
    let run = life.review(&["--worktree"]);
    assert_eq!((life.at(&id), life.history(&id)), ("open at a.py:11".to_owned(), vec![]));
    let listed = life.place.revdeck(&["findings"]);
    assert!(listed.contains("a.py:11"), "{listed}");
    let shown = life.show(&id);
    assert_eq!(shown["place"]["run_id"], run.as_str());
    assert_eq!(shown["reported"]["line_start"], 8, "where it was reported is on record: {shown}");
    let text = life.place.revdeck(&["show", id.as_str()]);
    assert!(text.contains("a.py:11") && text.contains("a.py:8-9 in the snapshot of run"), "{text}");

    // A second move, from the place where the finding was seen last, now in a commit.
    life.write("a.py", &format!("# one\n# two\n\n\n{}", long()));
    life.commit("more");
    life.review(&["--commit", "HEAD"]);
    assert_eq!(life.at(&id), "open at a.py:12");
}

#[test]
fn through_a_rename() {
    let life = Life::new();
    let id = life.swallowed("old.py", &long());
    let dismissed = life.swallowed("other.py", &swallows("other"));
    life.triage(&dismissed, "dismissed", "best effort");
    life.git(&["mv", "old.py", "new.py"]);
    life.git(&["mv", "other.py", "another.py"]);
    life.write("new.py", &format!("# one\n\n\n{}", long()));
    life.commit("renamed");
    let run = life.review(&["--commit", "HEAD"]);
    assert_eq!(life.at(&id), "open at new.py:11");
    assert_eq!(life.at(&dismissed), "dismissed at another.py:4");
    assert_eq!(life.output(&run).findings, vec![], "nothing is new");

    // The whole file gets a new name: this creates no new finding either.
    let run = life.review(&["--range", "HEAD~3..HEAD"]);
    let output = life.output(&run);
    let raised: Vec<_> = output.findings.iter().map(|finding| &finding.finding_id).collect();
    assert_eq!(raised, [&id], "{:?}", output.findings);
    let held: Vec<_> = output.held_back.iter().map(|held| &held.finding.finding_id).collect();
    assert_eq!(held, [&dismissed]);
}

#[test]
fn into_another_file() {
    let life = Life::new();
    let id = life.swallowed("a.py", &long());
    life.write("a.py", &format!("{}\n\n{}", plain("zero"), plain("two")));
    life.write("lib/b.py", &format!("# one\n\n\n{}", swallows("one")));
    let run = life.review(&["--worktree"]);
    assert_eq!(life.at(&id), "open at lib/b.py:7");
    let output = life.output(&run);
    assert!(output.findings.iter().all(|finding| finding.finding_id == id), "{:?}", output.findings);
}

#[test]
fn through_a_rebase_and_an_amend_and_a_squash() {
    let life = Life::new();
    life.write("a.py", &plain("zero"));
    life.commit("zero");
    life.git(&["switch", "-q", "-c", "topic"]);
    let id = life.swallowed("a.py", &format!("{}\n\n{}", plain("zero"), swallows("one")));
    assert_eq!(life.at(&id), "open at a.py:8");
    life.git(&["switch", "-q", "main"]);
    life.write("a.py", &format!("# one\n# two\n\n{}", plain("zero")));
    life.commit("imports");
    life.git(&["switch", "-q", "topic"]);
    life.git(&["rebase", "-q", "main"]);
    life.write("b.py", &plain("b"));
    life.commit("b");
    life.review(&["--branch", "main"]);
    assert_eq!(life.at(&id), "open at a.py:11", "rebased");

    life.write("b.py", &plain("b2"));
    life.git(&["commit", "-qa", "--amend", "-m", "b2"]);
    life.review(&["--branch", "main"]);
    assert_eq!(life.at(&id), "open at a.py:11", "amended");

    life.git(&["reset", "-q", "--soft", "main"]);
    life.write("a.py", &format!("\n{}", life.read("a.py")));
    let squashed = life.commit("all of it");
    let run = life.review(&["--commit", &squashed]);
    assert_eq!(life.at(&id), "open at a.py:12", "squashed");
    assert_eq!(life.output(&run).findings.len(), 1);
    assert_eq!(life.history(&id), vec![]);
}

#[test]
fn and_is_reported_once_when_its_code_is_edited() {
    let life = Life::new();
    life.write("a.py", &swallows("one"));
    let run = life.review(&["--worktree"]);
    let first = life.output(&run).findings.first().expect("a finding").finding_id.clone();
    // Changed code at the anchor creates another id, but the finding stays the same.
    life.write("a.py", &swallows("one").replace("        pass", "        source = None"));
    let run = life.review(&["--worktree"]);
    let output = life.output(&run);
    assert_eq!(output.findings.iter().map(|finding| &finding.finding_id).collect::<Vec<_>>(), [&first]);
    assert_eq!(output.findings[0].detail_ref, format!("outputs/{run}.json#{first}"));
    let listed: Value = serde_json::from_str(&life.place.revdeck(&["findings", "--format", "json"])).expect("JSON");
    assert_eq!(listed["findings"].as_array().map(Vec::len), Some(1), "{listed}");
    life.write("a.py", &handles("one"));
    life.review(&["--worktree"]);
    assert_eq!(life.status(&first), FindingStatus::Addressed);
}
