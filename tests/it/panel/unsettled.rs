//! Integration tests of reused lists that cannot be applied to the findings of the store.

use super::*;
use crate::env::err;

#[test]
fn a_reused_list_that_cannot_be_applied_to_the_findings_is_no_clean_review() {
    let panel = Panel::start(vec![answer(&[])], vec![answer(&[])], "");
    let review = |more: &[&str]| {
        let arguments = [&["review", "--reviewer", "one,two"], more].concat();
        panel.place.test.revdeck(&arguments)
    };
    let run = panel.review(&["--reviewer", "one,two"], DONE);
    // Nobody can tell any more what this member has held back.
    let output = panel.place.output_path(&panel.member(&run, "two").run_id);
    std::fs::remove_file(&output).and_then(|()| std::fs::create_dir(&output)).expect("in the way");
    let said = "the result could not be applied to all findings, so that this is no clean review: ";
    let gate = review(&["--wait", "--fail-on", "p0", "--format", "json"]);
    assert_eq!(gate.status.code(), Some(INCOMPLETE), "{}", err(&gate));
    assert!(err(&gate).contains(&format!("warning: {said}")), "{}", err(&gate));
    let printed: Value = serde_json::from_str(&out(&gate)).expect("JSON");
    assert_eq!(printed["run"]["run_id"], run.run_id.as_str(), "reused: {printed}");
    let notes = printed["notes"].as_array().expect("notes");
    assert!(notes.iter().any(|note| note.as_str().is_some_and(|note| note.starts_with(said))), "{printed}");
    // Who does not wait reads it, too.
    let asked = review(&[]);
    assert_eq!(asked.status.code(), Some(DONE), "{}", err(&asked));
    assert!(err(&asked).contains(said), "{}", err(&asked));
    assert_eq!((panel.one.asked(), panel.two.asked()), (1, 1));
}
