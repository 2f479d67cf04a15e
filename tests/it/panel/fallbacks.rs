//! Integration tests of members whose fallback takes over.

use super::*;

/// Starts the panel `pair` of `third`, which is refused and has the fallback `fallback`, and `two`.
fn start_pair(fallback: &str, more: &str) -> (Panel, Model) {
    let third = Model::start(vec![refusal()]);
    let own = format!("fallback = \"{fallback}\"\n");
    let more = format!("{}[panels.pair]\nreviewers = [\"third\", \"two\"]\n{more}", reviewer("third", &third, &own));
    (Panel::start(Vec::new(), vec![second(), second()], &more), third)
}

#[test]
fn no_member_answers_for_another_member() {
    let (panel, third) = start_pair("two", "");
    let run = panel.review(&["--panel", "pair"], INCOMPLETE);
    assert_eq!((third.asked(), panel.two.asked()), (1, 1));
    let member = panel.member(&run, "third");
    assert_eq!((member.status, member.usage.answered_by.len()), (RunStatus::Failed, 0));
    assert!(run.ending.error_summary.starts_with("third did not finish: "), "{}", run.ending.error_summary);
    assert!(run.ending.error_summary.contains("two does not take over"), "{}", run.ending.error_summary);
    let findings = panel.findings(&run);
    assert!(!findings.is_empty());
    for finding in findings {
        assert_eq!(finding.voices.len(), 1, "nobody agrees with two: {finding:#?}");
        assert_eq!(finding.voices[0].reviewer, "two");
    }
}

#[test]
fn a_request_to_a_fallback_is_held_to_the_limit_of_the_panel() {
    let (free, dear) = (Model::start(vec![refusal()]), Model::start(vec![first()]));
    let more = format!(
        "{}{}[panels.pair]\nreviewers = [\"free\", \"builtin\"]\nmax_cost = 0.001\n",
        reviewer("free", &free, "price_input = 0.0\nprice_output = 0.0\nfallback = \"dear\"\n"),
        reviewer("dear", &dear, DEAR)
    );
    let panel = Panel::start(Vec::new(), Vec::new(), &more);
    let run = panel.review(&["--panel", "pair"], INCOMPLETE);
    let stop = panel.member(&run, "free").ending.budget_stop.map(|stop| stop.kind);
    assert_eq!((free.asked(), dear.asked(), stop), (1, 0, Some(BudgetKind::PanelCost)));
}

#[test]
fn a_request_to_a_fallback_is_held_to_the_budget_of_the_run() {
    let (free, dear) = (Model::start(vec![refusal()]), Model::start(vec![first()]));
    let more = format!(
        "{}{}[budget]\nrun_cost = 0.001\n",
        reviewer("free", &free, "price_input = 0.0\nprice_output = 0.0\nfallback = \"dear\"\n"),
        reviewer("dear", &dear, DEAR)
    );
    let panel = Panel::start(Vec::new(), Vec::new(), &more);
    let run = panel.review(&["--reviewer", "free"], INCOMPLETE);
    let stop = run.ending.budget_stop.map(|stop| stop.kind);
    assert_eq!((free.asked(), dear.asked(), stop), (1, 0, Some(BudgetKind::RunCost)));
}

#[test]
fn the_words_of_a_fallback_stand_under_its_name() {
    let spare = Model::start(vec![first()]);
    let (panel, third) = start_pair("spare", &reviewer("spare", &spare, CHEAP));
    let run = panel.review(&["--panel", "pair"], DONE);
    assert_eq!((third.asked(), spare.asked(), panel.two.asked()), (1, 1, 1));
    let findings = panel.findings(&run);
    let injection = findings.iter().find(|finding| finding.line_start == INJECTION).expect("there");
    let said: Vec<&str> = injection.voices.iter().map(|voice| voice.reviewer.as_str()).collect();
    assert_eq!(said, ["spare", "two"]);
    let notes = panel.place.output(&run.run_id).expect("an output").notes;
    assert!(notes.iter().any(|note| note.starts_with("third (answered by spare): ")), "{notes:?}");
}

#[test]
fn two_members_with_the_same_fallback_do_not_agree() {
    let spare = Model::start(vec![first(), first()]);
    let fourth = Model::start(vec![refusal()]);
    let fallback = "fallback = \"spare\"\n";
    let third = Model::start(vec![refusal()]);
    let more = format!(
        "{}{}{}[panels.pair]\nreviewers = [\"third\", \"fourth\"]\n",
        reviewer("third", &third, fallback),
        reviewer("fourth", &fourth, fallback),
        reviewer("spare", &spare, CHEAP)
    );
    let panel = Panel::start(Vec::new(), Vec::new(), &more);
    let run = panel.review(&["--panel", "pair"], DONE);
    for finding in panel.findings(&run) {
        let steps: Vec<String> = finding.steps.iter().map(ToString::to_string).collect();
        assert!(!steps.iter().any(|step| step.contains("agree")), "{steps:?}");
        assert_eq!(finding.count_reviewer_voices(), 1);
    }
}

#[test]
fn a_fallback_that_costs_nothing_or_has_no_price_gives_back_what_its_member_has_reserved() {
    // The price of a model at an unknown address is not known.
    for prices in ["", "price_input = 0.0\nprice_output = 0.0\n"] {
        let (third, spare) = (Model::start(vec![refusal()]), Model::start(vec![first()]));
        let more = format!(
            "{}{}[panels.pair]\nreviewers = [\"third\", \"two\"]\nmax_cost = 1.0\n",
            reviewer("third", &third, &format!("{DEAR}fallback = \"spare\"\n")),
            reviewer("spare", &spare, prices)
        );
        let panel = Panel::start(Vec::new(), vec![second()], &more);
        third.hold_after(0);
        spare.hold_after(0);
        let started = out(&panel.place.test.revdeck(&["review", "--panel", "pair"]));
        let id: RunId = started.split_whitespace().next().expect("an id").parse().expect("an id");
        let reserved = || panel.member(&panel.place.run(&id), "third").usage.reserved_cost;
        wait_for("the request to the member's own model", || (third.asked() == 1).then_some(()));
        assert!(reserved() > Some(0.0), "the request on its way may cost so much: {:?}", reserved());
        third.let_go();
        wait_for("the request to the fallback", || (spare.asked() == 1).then_some(()));
        assert_eq!(reserved(), None, "nobody will spend it");
        spare.let_go();
        assert!(!panel.place.ended(&id).is_incomplete());
    }
}
