//! Findings that are held back, with the recorded reason.

use revdeck::domain::SuppressionReason;

use super::*;

#[test]
fn a_dismissal_holds_until_the_code_changes() {
    let life = Life::new();
    let id = life.swallowed("a.py", &swallows("one"));
    life.triage(&id, "dismissed", "best effort");
    // The same code, further down, with another indentation and on another branch.
    life.git(&["switch", "-q", "-c", "topic"]);
    life.write("a.py", &format!("# one\n\n\n{}", swallows("one")));
    life.commit("more");
    let run = life.review(&["--range", "HEAD~2..HEAD"]);
    let output = life.output(&run);
    assert_eq!((output.findings.len(), output.held_back.len()), (0, 1));
    let held = &output.held_back[0];
    assert_eq!((&held.finding.finding_id, held.because), (&id, SuppressionReason::Dismissed));
    let note = output.notes.first().expect("a note");
    assert!(
        note.starts_with("1 finding held back: dismissed on 20") && note.ends_with("because best effort"),
        "{note}"
    );
    assert_eq!(life.place.run(&run).outcome.finding_counts.total(), 0);
    assert!(
        life.place.run(&run).outcome.summary.starts_with("no findings in 1 file"),
        "{}",
        life.place.run(&run).outcome.summary
    );
    assert!(
        life.place.run(&run).outcome.summary.ends_with("; 1 held back"),
        "{}",
        life.place.run(&run).outcome.summary
    );
    let shown = life.place.revdeck(&["show", run.as_str()]);
    assert!(shown.contains("held back: dismissed on"), "{shown}");
    let json: Value =
        serde_json::from_str(&life.place.revdeck(&["show", run.as_str(), "--format", "json"])).expect("JSON");
    assert_eq!(json["held_back"][0]["finding"]["finding_id"], id.as_str());
    assert_eq!(json["held_back"][0]["because"], "dismissed");

    // Changed code at the anchor creates a new finding.
    life.write("a.py", &swallows("one").replace("        pass", "        source = None"));
    life.commit("changed");
    let run = life.review(&["--range", "HEAD~3..HEAD"]);
    let output = life.output(&run);
    assert_eq!((output.findings.len(), output.held_back.len()), (1, 0));
    assert_ne!(output.findings[0].finding_id, id);
    assert_eq!(life.status(&id), FindingStatus::Dismissed);
}

#[test]
fn a_kind_that_is_only_ever_dismissed_can_be_muted() {
    let life = Life::new();
    let names = ["one", "two", "three", "four", "five"];
    life.write("a.py", &names.map(swallows).join("\n\n"));
    life.commit("many");
    let output = life.output(&life.review(&["--commit", "HEAD"]));
    let mut ids: Vec<FindingId> = output.findings.iter().map(|finding| finding.finding_id.clone()).collect();
    assert_eq!((ids.len(), output.findings[0].kind), (5, Kind::MissingErrorHandling));
    let last = ids.pop().expect("five");
    let offer = || {
        let output = life.place.test.revdeck(&["findings"]);
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    for id in &ids {
        life.triage(id, "dismissed", "best effort");
    }
    assert_eq!(offer(), "", "four are not enough");
    life.triage(&last, "dismissed", "best effort");
    let line = "5 MISSING_ERROR_HANDLING findings dismissed, none addressed: \
                `revdeck mute MISSING_ERROR_HANDLING` holds them back from now on\n";
    assert_eq!(offer(), format!("note: {line}"));
    assert_eq!(life.place.revdeck(&["mute"]), format!("nothing is muted\n{line}"));

    for kind in ["security", "CORRECTNESS"] {
        let refused = life.place.test.revdeck(&["mute", kind]);
        assert_eq!(refused.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&refused.stderr).contains("is never muted"));
    }
    assert!(life.place.revdeck(&["mute", "missing-error-handling"]).contains("MISSING_ERROR_HANDLING  muted"));
    assert_eq!(offer(), "");
    life.write("b.py", &format!("{}\n\n{}", swallows("six"), swallows("seven")));
    life.commit("more");
    let run = life.review(&["--commit", "HEAD"]);
    let output = life.output(&run);
    assert_eq!((output.findings.len(), output.held_back.len()), (0, 2));
    assert!(output.held_back.iter().all(|held| held.because == SuppressionReason::Muted));
    let note = output.notes.first().expect("a note");
    assert!(note.starts_with("2 findings held back: MISSING_ERROR_HANDLING is muted since"), "{note}");
    assert!(life.place.revdeck(&["findings", "--status", "all"]).lines().count() == 5, "none is open");
    let muted: Value = serde_json::from_str(&life.place.revdeck(&["mute", "--format", "json"])).expect("JSON");
    assert_eq!(muted["muted"][0]["kind"], "MISSING_ERROR_HANDLING");

    life.place.revdeck(&["unmute", "MISSING_ERROR_HANDLING"]);
    let run = life.review(&["--commit", "HEAD", "--force"]);
    assert_eq!(life.output(&run).findings.len(), 2);
    let verified = life.place.revdeck(&["store", "verify"]);
    assert!(!verified.contains("mutes.ndjson:"), "{verified}");
}
