//! Integration tests of members that a budget stops: the next request for the panel goes on with them.

use std::collections::HashSet;

use super::*;

/// Files of the change, of about 3,000 tokens each. A window holds some of them.
const FILES: usize = 12;

/// Returns the path of a file, and a line of it as a diff shows it.
fn file(number: usize) -> (String, String) {
    (format!("src/part_{number:02}.rs"), format!("+let value_250 = compute_{number}(250);"))
}

/// Has each member stop in the middle of the change.
fn start() -> Panel {
    let panel = Panel::start(Vec::new(), Vec::new(), "[window]\nmax_tokens = 20000\n[budget]\nrun_tokens = 25000");
    for number in 0..FILES {
        let line = |line: usize| format!("let value_{line} = compute_{number}({line});\n");
        panel.place.test.write(&file(number).0, (1..=250).map(line).collect::<String>());
    }
    panel.place.test.commit("wide change");
    panel
}

#[test]
fn a_member_that_a_budget_stopped_is_sent_only_what_it_has_not_reviewed() {
    let panel = start();
    let arguments = ["--reviewer", "one,two", "--commit", "HEAD"];
    let stopped = panel.review(&arguments, INCOMPLETE);
    let asked = [panel.one.asked(), panel.two.asked()];
    let settings = std::fs::read_to_string(panel.place.test.home().join("config.toml")).expect("settings");
    panel.place.settings(&settings.replace("run_tokens = 25000", "run_tokens = 2000000"));
    let whole = panel.review(&arguments, DONE);
    for (name, model, asked) in [("one", &panel.one, asked[0]), ("two", &panel.two, asked[1])] {
        let (before, after) = (panel.member(&stopped, name), panel.member(&whole, name));
        assert_eq!(before.ending.cancel_reason, Some(CancelReason::BudgetExhausted), "{name}");
        let reviewed = before.outcome.coverage.hunks_covered as usize;
        assert!((1..FILES).contains(&reviewed), "{name}: {reviewed}");
        let coverage = &after.outcome.coverage;
        let (carried, covered) = (coverage.hunks_carried as usize, coverage.hunks_covered as usize);
        assert_eq!((carried, covered), (reviewed, FILES - reviewed), "{name}");
        let output = panel.place.output(&before.run_id).expect("an output");
        let paths: HashSet<String> = output.coverage.files.into_iter().map(|file| file.path).collect();
        let requests = model.requests();
        let [first, rest] = [&requests[..asked], &requests[asked..]]
            .map(|requests| requests.iter().map(Value::to_string).collect::<String>());
        for (path, line) in (0..FILES).map(file) {
            let is_reviewed = paths.contains(&path);
            assert!(!is_reviewed || first.contains(&line), "{name} has been sent {path}");
            assert_eq!(rest.contains(&line), !is_reviewed, "{name} is sent {path} again");
        }
    }
    // Who has finished is not asked any more.
    let asked = [panel.one.asked(), panel.two.asked()];
    assert_eq!(panel.review(&arguments, DONE).run_id, whole.run_id);
    assert_eq!([panel.one.asked(), panel.two.asked()], asked);
}
