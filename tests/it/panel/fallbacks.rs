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
