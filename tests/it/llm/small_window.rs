//! Reviews by models with small windows and without tools: what tools would tell is sent at once, within the window.

use rstest::rstest;

use super::*;

/// Creates a repository in which a changed function has a caller, a test and a long remainder.
fn shop() -> Place {
    let place = Place::new();
    let body: String = (0..12).map(|line| format!("    total = add_fee(total, {line})\n")).collect();
    place.test.write("src/price.py", format!("def lookup_price(name):\n    total = 0\n{body}    return total\n"));
    place.test.write(
        "src/order.py",
        "from price import lookup_price\n\ndef place_order(name):\n    return lookup_price(name) + 1\n",
    );
    place.test.commit("base");
    place
        .test
        .write("src/price.py", format!("def lookup_price(name, rebate):\n    total = 0\n{body}    return total\n"));
    place
}

const CALLER: &str = "return lookup_price(name) + 1";

#[rstest]
#[case::four_thousand(4_096, false, true)]
#[case::eight_thousand(8_192, false, true)]
#[case::eight_thousand_and_tools(8_192, true, true)]
#[case::thirty_two_thousand(32_768, false, false)]
fn the_code_around_a_change_fits_into_a_small_window(#[case] window: u64, #[case] tools: bool, #[case] short: bool) {
    let place = shop();
    let model = Model::start(vec![says("```json\n{\"findings\": []}\n```")]);
    // A model that is not in the table: its tokens are estimated.
    place.settings(&format!(
        "[reviewers.m]\nkind = \"openai\"\nmodel = \"made-up-7b\"\nbase_url = \"{}\"\ncontext_window = {window}\ntools = {tools}\n",
        model.url()
    ));
    let run = place.review(&["--reviewer", "m", "--worktree", "--wait"]);
    let (record, request) = (place.run(&run), model.requests().remove(0));
    assert_eq!(
        (record.status, record.outcome.coverage.files_covered),
        (RunStatus::Completed, 1),
        "{}",
        record.outcome.summary
    );
    assert_eq!(request.get("tools"), None, "there is no room for tools");
    let text = request["messages"].to_string();
    assert!(text.contains("def lookup_price(name, rebate)") && text.contains(CALLER), "{text}");
    assert_eq!(text.contains("report_findings"), !short, "the short instructions name no tools");
    assert_eq!(text.contains("You have no tools"), short);
    let answer = request["max_tokens"].as_u64().or(request["max_completion_tokens"].as_u64()).expect("a limit");
    assert!(record.usage.window_peak + answer <= window, "{} + {answer}", record.usage.window_peak);
}

#[test]
fn a_model_without_tools_gets_more_of_the_code_than_one_with_them() {
    let place = Place::new();
    let lines = |call: &str| -> String { (0..60).map(|line| format!("    {call}({line}, {line} + 1)\n")).collect() };
    place.test.write("src/base.py", format!("def base(a, b):\n{}", lines("first_step")));
    for number in 0..40 {
        place.test.write(&format!("src/user_{number}.py"), format!("def user_{number}():\n{}", lines("base")));
    }
    place.test.commit("base");
    place.test.write("src/base.py", format!("def base(a, b, c):\n{}", lines("other_step")));
    let budgets = [true, false].map(|tools| {
        let model = Model::start(Vec::new());
        settings(&place, &model, &format!("tools = {tools}"));
        let run = place.review(&["--reviewer", "m", "--worktree", "--wait", "--force"]);
        let asked = model.requests().remove(0);
        assert_eq!(asked.get("tools").is_some(), tools);
        let context = place.events(&run).into_iter().find_map(|event| match event {
            RunEvent::Surrounded { context } => Some(context),
            _ => None,
        });
        let context = context.expect("what was sent");
        assert!(context.total_tokens <= context.budget, "{context:?}");
        context.total_tokens
    });
    assert!(budgets[1] > budgets[0] + 4_000, "{budgets:?}");
}
