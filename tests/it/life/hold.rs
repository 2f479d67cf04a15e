//! What is not raised, and says why.

use revdeck::domain::HeldBecause;

use super::*;

#[test]
fn a_dismissal_holds_until_the_code_changes() {
    let life = Life::new();
    let id = life.swallowed("a.py", &swallows("one"));
    life.triage(&id, "dismissed", "best effort");
    // Further down, indented anew, on another branch: the same code.
    life.git(&["switch", "-q", "-c", "topic"]);
    life.write("a.py", &format!("# one\n\n\n{}", swallows("one")));
    life.commit("more");
    let run = life.review(&["--range", "HEAD~2..HEAD"]);
    let output = life.output(&run);
    assert_eq!((output.findings.len(), output.held_back.len()), (0, 1));
    let held = &output.held_back[0];
    assert_eq!((&held.finding.finding_id, held.because), (&id, HeldBecause::Dismissed));
    let note = output.notes.first().expect("a note");
    assert!(
        note.starts_with("1 finding held back: dismissed on 20") && note.ends_with("because best effort"),
        "{note}"
    );
    assert_eq!(life.place.run(&run).finding_counts.total(), 0);
    assert!(life.place.run(&run).summary.starts_with("no findings in 1 file"), "{}", life.place.run(&run).summary);
    assert!(life.place.run(&run).summary.ends_with("; 1 held back"), "{}", life.place.run(&run).summary);
    let shown = life.place.revdeck(&["show", run.as_str()]);
    assert!(shown.contains("held back: dismissed on"), "{shown}");
    let json: Value =
        serde_json::from_str(&life.place.revdeck(&["show", run.as_str(), "--format", "json"])).expect("JSON");
    assert_eq!(json["held_back"][0]["finding"]["finding_id"], id.as_str());
    assert_eq!(json["held_back"][0]["because"], "dismissed");

    // Other code at the anchor is another matter.
    life.write("a.py", &swallows("one").replace("        pass", "        source = None"));
    life.commit("changed");
    let run = life.review(&["--range", "HEAD~3..HEAD"]);
    let output = life.output(&run);
    assert_eq!((output.findings.len(), output.held_back.len()), (1, 0));
    assert_ne!(output.findings[0].finding_id, id);
    assert_eq!(life.status(&id), FindingStatus::Dismissed);
}
