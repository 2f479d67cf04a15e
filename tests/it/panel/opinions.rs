//! Integration tests of the limits of second opinions.

use revdeck::domain::RequestDecision;

use super::*;

/// Returns the report of a second model that calls an injection p3: three steps from the first.
fn contradiction() -> Turn {
    answer(&[report(INJECTION, "SECURITY", 3, "User input `name` is concatenated into SQL: injection")])
}

#[test]
fn a_judge_is_held_to_the_budget_of_a_run() {
    let judge = Model::start(vec![says("{}")]);
    // A request costs more than that with the price of the judge, and less than a tenth of it with that of the members.
    let prices = "price_input = 1000.0\nprice_output = 1000.0\n";
    let more = format!("judge = \"dear\"\n{}[budget]\nrun_cost = 0.1\n", reviewer("dear", &judge, prices));
    let panel = Panel::start(vec![first()], vec![contradiction()], &more);
    let run = panel.review(&["--panel", "all"], DONE);
    assert_eq!((panel.one.asked(), panel.two.asked(), judge.asked()), (1, 1, 0));
    let notes = panel.place.output(&run.run_id).expect("an output").notes;
    let said = notes.iter().find(|note| note.starts_with("no second opinion by dear: "));
    assert!(said.is_some_and(|note| note.contains("budget reached at ")), "{notes:?}");
}

#[test]
fn a_judge_reads_the_reasons_of_every_reviewer() {
    let judge = Model::start(vec![says("{}")]);
    let more = format!("judge = \"dear\"\n{}", reviewer("dear", &judge, DEAR));
    let panel = Panel::start(vec![first()], vec![contradiction()], &more);
    panel.review(&["--panel", "all"], DONE);
    let requests = judge.requests();
    let [request] = requests.as_slice() else { panic!("{requests:#?}") };
    let request = request.to_string();
    for words in [
        "SQL injection through `name`, as the line shows.",
        "another reviewer, p3 SECURITY: User input `name` is concatenated into SQL: injection: User input `name` is \
         concatenated into SQL: injection, as the line shows.",
        "disputed: the priorities go from p0 to p3",
    ] {
        assert!(request.contains(words), "{words} in {request}");
    }
}

#[test]
fn a_judge_is_not_paid_for_what_an_escalation_has_settled() {
    let ruling = json!({ "rulings": [{ "number": 1, "verdict": "real", "reason": "name reaches the statement" }] });
    let (boss, judge) = (Model::start(vec![says(ruling.to_string())]), Model::start(vec![says(ruling.to_string())]));
    let more = format!(
        "judge = \"dear\"\nescalate = {{ to = \"boss\", when = \"disputed\" }}\n{}{}",
        reviewer("dear", &judge, DEAR),
        reviewer("boss", &boss, DEAR)
    );
    let panel = Panel::start(vec![first()], vec![contradiction()], &more);
    let run = panel.review(&["--panel", "all"], DONE);
    assert_eq!((boss.asked(), judge.asked()), (1, 0));
    let findings = panel.findings(&run);
    let injection = findings.iter().find(|finding| finding.line_start == INJECTION).expect("there");
    let said: Vec<String> = injection.steps.iter().map(ToString::to_string).collect();
    assert!(said.iter().any(|step| step.starts_with("boss finds it real")), "{said:?}");
    assert!(!said.iter().any(|step| step.starts_with("dear")), "{said:?}");
}

#[test]
fn each_reviewer_bears_what_its_own_opinions_cost() {
    let ruling = |verdict: &str| {
        says(
            json!({ "rulings": [{ "number": 1, "verdict": verdict, "reason": "name may be checked before" }] })
                .to_string(),
        )
    };
    let (boss, judge) = (Model::start(vec![ruling("unsure")]), Model::start(vec![ruling("real")]));
    let more = format!(
        "judge = \"dear\"\nescalate = {{ to = \"boss\", when = \"disputed\" }}\n{}{}",
        reviewer("dear", &judge, DEAR),
        reviewer("boss", &boss, CHEAP)
    );
    let panel = Panel::start(vec![first()], vec![contradiction()], &more);
    let run = panel.review(&["--panel", "all"], DONE);
    assert_eq!((boss.asked(), judge.asked()), (1, 1));
    let stats = panel.place.test.json(&["stats", "--run", run.run_id.as_str(), "--format", "json"], DONE);
    let cost = |grouping: &Value, key: &str, name: &str| {
        let rows = grouping.as_array().expect("rows");
        let row = rows.iter().find(|row| row[key] == name).unwrap_or_else(|| panic!("{name} is missing in {stats}"));
        row["cost"].as_f64().expect("a cost")
    };
    for (grouping, key) in [(&stats["worth"]["by_reviewer"], "name"), (&stats["by_reviewer"], "reviewer")] {
        let (dear, boss) = (cost(grouping, key, "dear"), cost(grouping, key, "boss"));
        assert!(dear > boss && boss > 0.0, "{stats}");
        assert!((dear + boss - run.usage.cost).abs() < 1e-9, "nothing is lost or counted twice: {stats}");
    }
    let answered: Vec<(&str, u32)> =
        run.usage.answered_by.iter().map(|one| (one.reviewer.as_str(), one.turns)).collect();
    assert_eq!(answered, [("boss", 1), ("dear", 1)]);
}

#[test]
fn a_member_that_is_the_judge_does_not_judge_what_it_alone_reports() {
    let alone = || answer(&[report(INJECTION, "SECURITY", 0, "SQL injection through `name`")]);
    let ruling = json!({ "rulings": [{ "number": 1, "verdict": "real", "reason": "name reaches the statement" }] });
    for (two, asked) in [(answer(&[]), 1), (contradiction(), 2)] {
        let models = "[panels.pair]\nreviewers = [\"one\", \"two\"]\njudge = \"one\"\n";
        let panel = Panel::start(vec![alone(), says(ruling.to_string())], vec![two], models);
        let run = panel.review(&["--panel", "pair"], DONE);
        let findings = panel.findings(&run);
        let [injection] = findings.as_slice() else { panic!("{findings:#?}") };
        assert!(!injection.disputed.is_empty(), "{injection:#?}");
        assert_eq!(panel.one.asked(), asked, "{injection:#?}");
        let notes = panel.place.output(&run.run_id).expect("an output").notes;
        let said = notes.iter().find(|note| note.starts_with("no second opinion by one: nobody else reports"));
        assert_eq!(said.is_some(), asked == 1, "{notes:?}");
        assert!(said.is_none_or(|note| note.ends_with(injection.finding_id.as_str())), "{notes:?}");
    }
}

#[test]
fn the_page_of_a_panel_sums_up_what_its_members_and_its_judge_used() {
    let ruling = json!({ "rulings": [{ "number": 1, "verdict": "real", "reason": "name reaches the statement" }] });
    let judge = Model::start(vec![says(ruling.to_string())]);
    let more = format!("judge = \"dear\"\n{}", reviewer("dear", &judge, DEAR));
    let panel = Panel::start(vec![first()], vec![contradiction()], &more);
    let run = panel.review(&["--panel", "all"], DONE);
    let own = run.usage.tokens.total();
    let members = ["one", "two"].map(|name| panel.member(&run, name).usage.tokens.total());
    let shown = panel.place.revdeck(&["show", run.run_id.as_str()]);
    let line =
        |name: &str| shown.lines().find(|line| line.trim_start().starts_with(name)).unwrap_or_default().to_owned();
    assert!(line("tokens ").contains(&own.to_string()), "{shown}");
    let all = line("in all ");
    assert!(all.contains(&(own + members[0] + members[1]).to_string()), "{shown}");
    assert!(all.ends_with("USD, with its members"), "{shown}");
}

#[test]
fn the_page_of_a_panel_counts_members_that_another_request_has_paid() {
    for (is_adopted, decision) in [(false, RequestDecision::Reuse), (true, RequestDecision::Adopt)] {
        let panel = Panel::start(vec![first()], vec![second()], "");
        if is_adopted {
            panel.two.hold_after(0);
        }
        let request = |arguments: &[&str]| -> RunId {
            let started = out(&panel.place.test.revdeck(&[&["review"], arguments].concat()));
            started.split_whitespace().next().expect("an id").parse().expect("an id")
        };
        let alone = request(&["--reviewer", "two"]);
        wait_for("the request to the second model", || (panel.two.asked() == 1).then_some(()));
        if !is_adopted {
            panel.place.ended(&alone);
        }
        let id = request(&["--panel", "all"]);
        panel.two.let_go();
        let run = panel.place.ended(&id);
        let members = &run.links.panel.as_ref().expect("a panel").members;
        let member = members.iter().find(|member| member.reviewer == "two").expect("a member");
        assert_eq!((&member.run_id, member.decision), (&alone, decision));
        let [one, two] = ["one", "two"].map(|name| panel.member(&run, name).usage);
        let shown = panel.place.revdeck(&["show", run.run_id.as_str()]);
        let all = shown.lines().find(|line| line.trim_start().starts_with("in all ")).unwrap_or_default();
        let tokens = one.tokens.total() + two.tokens.total();
        assert!(all.contains(&format!(" {tokens}, {:.4} USD, with its members; ", one.cost + two.cost)), "{shown}");
        let elsewhere = format!("; {}, {:.4} USD of it by other requests (two)", two.tokens.total(), two.cost);
        assert!(all.ends_with(&elsewhere), "{shown}");
    }
}

#[test]
fn a_judge_that_cannot_answer_leaves_the_list_as_it_is() {
    let other = answer(&[report(INJECTION, "SECURITY", 3, "User input `name` is concatenated into SQL: injection")]);
    let ruling = json!({ "rulings": [{ "number": 1, "verdict": "real", "reason": "name reaches the statement" }] });
    let judge = Model::start(vec![refusal(), says(ruling.to_string())]);
    let more = format!("escalate = {{ to = \"dear\", when = \"p0 or disputed\" }}\n{}", reviewer("dear", &judge, ""));
    let panel = Panel::start(vec![first()], vec![other], &more);
    let run = panel.review(&["--panel", "all"], DONE);
    let output = panel.place.output(&run.run_id).expect("an output");
    assert!(output.notes.iter().any(|note| note.starts_with("no second opinion by dear")), "{:?}", output.notes);
    assert_eq!(output.findings.len(), panel.listed().len());
    assert_eq!((run.status, judge.asked()), (RunStatus::Completed, 1));
    // Asked again, only the judge is asked; and who asks for no review gets the list as it is.
    let report = ["review", "--panel", "all", "--from-team", "--format", "json"];
    assert_eq!(panel.place.test.json(&report, DONE)["run"]["run_id"], run.run_id.as_str());
    let again = panel.review(&["--panel", "all"], DONE);
    assert!(again.decision.starts_with(&format!("{} lacks second opinions", run.run_id)), "{}", again.decision);
    assert_eq!((panel.one.asked(), panel.two.asked(), judge.asked()), (1, 1, 2));
    let notes = panel.place.output(&again.run_id).expect("an output").notes;
    assert!(!notes.iter().any(|note| note.starts_with("no second opinion")), "{notes:?}");
    assert_eq!(panel.review(&["--panel", "all"], DONE).run_id, again.run_id);
}

#[test]
fn a_panel_whose_judge_has_no_key_is_refused_before_anything_is_paid() {
    let judge = Model::start(vec![says("{}")]);
    let dear = reviewer("dear", &judge, DEAR);
    let dear = dear.replace("api_key_cmd = \"printf made-up\"", "api_key_env = \"KEY_OF_NOBODY\"");
    for opinion in ["judge = \"dear\"", "escalate = { to = \"dear\", when = \"p0\" }"] {
        let panel = Panel::start(vec![first()], vec![contradiction()], &format!("{opinion}\n{dear}"));
        let error = panel.place.test.errors(&["review", "--panel", "all"], USAGE);
        assert!(error.contains("dear has no API key: the variable KEY_OF_NOBODY is not set"), "{error}");
        assert!(!error.contains("forecast"), "{error}");
        let estimate = ["review", "--panel", "all", "--estimate"];
        let said = "dear has no API key: the variable KEY_OF_NOBODY is not set";
        let printed = out(&panel.place.test.revdeck(&estimate));
        assert!(printed.contains(&format!("\nit would be refused: {said}\n")), "{printed}");
        let estimate = panel.place.test.json(&[&estimate[..], &["--format", "json"]].concat(), DONE);
        assert_eq!(estimate["forecast"]["missing_key"], said);
        assert_eq!((panel.place.runs().len(), panel.one.asked(), panel.two.asked()), (0, 0, 0), "{opinion}");
    }
}

#[test]
fn a_judge_whose_key_could_not_be_read_is_asked_when_it_can() {
    let ruling = json!({ "rulings": [{ "number": 1, "verdict": "real", "reason": "name reaches the statement" }] });
    let judge = Model::start(vec![says(ruling.to_string())]);
    let folder = tempfile::tempdir().expect("a folder");
    let key = folder.path().join("key");
    let dear = reviewer("dear", &judge, "").replace("printf made-up", &format!("cat {}", key.display()));
    let panel = Panel::start(vec![first()], vec![contradiction()], &format!("judge = \"dear\"\n{dear}"));
    let run = panel.review(&["--panel", "all"], DONE);
    let notes = panel.place.output(&run.run_id).expect("an output").notes;
    assert!(notes.iter().any(|note| note.starts_with("no second opinion by dear")), "{notes:?}");
    std::fs::write(&key, "made-up").expect("written");
    let again = panel.review(&["--panel", "all"], DONE);
    assert!(again.decision.starts_with(&format!("{} lacks second opinions", run.run_id)), "{}", again.decision);
    assert_eq!((panel.one.asked(), panel.two.asked(), judge.asked()), (1, 1, 1));
    let notes = panel.place.output(&again.run_id).expect("an output").notes;
    assert!(!notes.iter().any(|note| note.starts_with("no second opinion")), "{notes:?}");
    assert_eq!(panel.review(&["--panel", "all"], DONE).run_id, again.run_id);
}

#[test]
fn a_judge_that_the_limit_stopped_is_asked_when_the_limit_allows_more() {
    let ruling = json!({ "rulings": [{ "number": 1, "verdict": "real", "reason": "name reaches the statement" }] });
    let judge = Model::start(vec![says(ruling.to_string())]);
    // The limit has room for the members, and not for a request of a hundred tokens at the price of the judge.
    let prices = "price_input = 1000.0\nprice_output = 1000.0\n";
    let dear = reviewer("dear", &judge, prices);
    let more = format!("max_cost = 0.1\njudge = \"dear\"\n{dear}[budget]\nrun_cost = 50.0\n");
    let panel = Panel::start(vec![first()], vec![contradiction()], &more);
    let run = panel.review(&["--panel", "all"], DONE);
    let stops = panel.place.events(&run.run_id);
    let stops = stops.iter().filter(|event| matches!(event, RunEvent::BudgetReached { .. })).count();
    assert_eq!((stops, judge.asked()), (1, 0), "{:?}", panel.place.output(&run.run_id).expect("an output").notes);
    assert_eq!(panel.review(&["--panel", "all"], DONE).run_id, run.run_id, "the limit stands");
    let settings = std::fs::read_to_string(panel.place.test.home().join("config.toml")).expect("settings");
    panel.place.settings(&settings.replace("max_cost = 0.1", "max_cost = 40.0"));
    let again = panel.review(&["--panel", "all"], DONE);
    assert!(again.decision.starts_with(&format!("{} lacks second opinions: ", run.run_id)), "{}", again.decision);
    assert_eq!((panel.one.asked(), panel.two.asked(), judge.asked()), (1, 1, 1));
    assert_eq!(panel.review(&["--panel", "all"], DONE).run_id, again.run_id);
}

#[test]
fn a_judge_is_asked_again_with_another_prompt_and_the_members_are_not() {
    let ruling = json!({ "rulings": [{ "number": 1, "verdict": "real", "reason": "name reaches the statement" }] });
    let judge = Model::start(vec![says(ruling.to_string()); 2]);
    let more = format!("judge = \"dear\"\n{}", reviewer("dear", &judge, DEAR));
    let panel = Panel::start(vec![first()], vec![contradiction()], &more);
    let run = panel.review(&["--panel", "all"], DONE);
    let prompts = panel.place.test.home().join("prompts");
    std::fs::create_dir_all(&prompts).expect("a folder");
    std::fs::write(prompts.join("judge.md"), "Judge strictly, as JSON.\n\n{{findings}}\n").expect("written");
    let again = panel.review(&["--panel", "all"], DONE);
    assert_ne!(again.run_id, run.run_id);
    assert_eq!((panel.one.asked(), panel.two.asked(), judge.asked()), (1, 1, 2));
    assert!(judge.requests()[1].to_string().contains("Judge strictly, as JSON."));
    assert_eq!(panel.review(&["--panel", "all"], DONE).run_id, again.run_id);
}

#[test]
fn a_judge_that_never_gives_a_verdict_is_asked_in_three_runs() {
    for useless in [refusal(), says("{}")] {
        let judge = Model::start(vec![useless; 5]);
        let more = format!("judge = \"dear\"\n{}", reviewer("dear", &judge, DEAR));
        let panel = Panel::start(vec![first()], vec![contradiction()], &more);
        let runs: Vec<RunId> = (0..5).map(|_| panel.review(&["--panel", "all"], DONE).run_id).collect();
        assert_eq!((panel.one.asked(), panel.two.asked(), judge.asked()), (1, 1, 3));
        assert!(runs[0] != runs[1] && runs[1] != runs[2], "{runs:?}");
        assert_eq!([&runs[3], &runs[4]], [&runs[2]; 2], "the list is given as it is");
    }
}

#[test]
fn an_answer_without_a_verdict_is_no_opinion() {
    let reports = |priority| {
        let title = "Division by zero for an empty list";
        answer(&[
            report(INJECTION, "SECURITY", priority, "SQL injection through `name`"),
            report(DIVISION, "CORRECTNESS", priority, title),
        ])
    };
    let ruling = |number: u32| json!({ "number": number, "verdict": "real", "reason": "the line shows it" });
    let rulings = |numbers: &[u32]| {
        says(json!({ "rulings": numbers.iter().map(|number| ruling(*number)).collect::<Vec<Value>>() }).to_string())
    };
    for (answered, missing) in [(says("I cannot tell from here."), 2), (rulings(&[1]), 1)] {
        let judge = Model::start(vec![answered, rulings(&[1, 2])]);
        let more = format!("judge = \"dear\"\n{}", reviewer("dear", &judge, DEAR));
        let panel = Panel::start(vec![reports(0)], vec![reports(3)], &more);
        let run = panel.review(&["--panel", "all"], DONE);
        let notes = panel.place.output(&run.run_id).expect("an output").notes;
        let said = notes.iter().find(|note| note.starts_with("no second opinion by dear: its answer has no verdict; "));
        assert_eq!(said.map(|note| note.matches("f_").count()), Some(missing), "{notes:?}");
        assert!(run.usage.cost > 0.0, "it was paid all the same");
        // Asked again, the panel pays for the missing verdicts only, and for nothing once they are there.
        let again = panel.review(&["--panel", "all"], DONE);
        assert!(again.decision.starts_with(&format!("{} lacks second opinions: ", run.run_id)), "{}", again.decision);
        assert_eq!((panel.one.asked(), panel.two.asked(), judge.asked()), (1, 1, 2));
        assert_eq!(judge.requests()[1].to_string().matches("<finding number=").count(), missing);
        let completed = again.links.panel.as_ref().expect("a panel");
        assert!(completed.spent_before > run.usage.cost, "the useless answer counts towards the limit: {completed:?}");
        let findings = panel.findings(&again);
        let is_judged =
            |finding: &Finding| finding.steps.iter().any(|step| step.to_string().starts_with("dear finds it"));
        let judged: Vec<bool> = [INJECTION, DIVISION]
            .map(|line| is_judged(findings.iter().find(|finding| finding.line_start == line).expect("on the list")))
            .into();
        assert_eq!(judged, [true, true], "{findings:#?}");
        assert_eq!(panel.review(&["--panel", "all"], DONE).run_id, again.run_id);
        assert_eq!(judge.asked(), 2);
    }
}

/// Number of disputed findings: more than two requests hold.
const MANY: usize = 45;
/// Most findings of one request.
const MAX_ASKED: usize = 20;

/// Returns a file of many functions; the third line of each divides by zero.
fn many_functions() -> String {
    let function =
        |n| format!("def total_{n}(values, part_{n}):\n    rest = sum(values)\n    return rest / len(part_{n})\n\n\n");
    (0..MANY).map(function).collect()
}

/// Returns the words by which a finding of [`many_functions`] is known in a request.
fn name_of(n: usize) -> String {
    format!("Division by zero in `total_{n}`")
}

/// Starts a panel whose first member makes a lone urgent claim about each of [`many_functions`].
fn start_many(judge: &Model) -> Panel {
    let code = many_functions();
    let claim = |n: usize| {
        let line = 5 * n + 3;
        let quoted = code.lines().nth(line - 1).expect("the line");
        json!({ "path": "src/users.py", "line_start": line, "line_end": line, "kind": "CORRECTNESS", "priority": 1,
            "confidence": 0.6, "title": name_of(n), "explanation": "The part may be empty.", "quoted_code": quoted })
    };
    let claims: Vec<Value> = (0..MANY).map(claim).collect();
    let more =
        format!("[panels.pair]\nreviewers = [\"one\", \"two\"]\njudge = \"dear\"\n{}", reviewer("dear", judge, DEAR));
    let panel = Panel::start(vec![answer(&claims)], vec![answer(&[])], &more);
    panel.place.test.write("src/users.py", &code);
    panel
}

/// Returns a verdict on each finding of a request.
fn verdicts() -> Turn {
    let ruling = |number| json!({ "number": number, "verdict": "real", "reason": "nothing checks the length" });
    says(json!({ "rulings": (1..=MAX_ASKED).map(ruling).collect::<Vec<Value>>() }).to_string())
}

/// Returns the numbers of the findings that each request is about.
fn asked_about(judge: &Model) -> Vec<Vec<usize>> {
    let names: Vec<String> = (0..MANY).map(name_of).collect();
    let numbers = |request: &Value| {
        let text = request.to_string();
        (0..MANY).filter(|n| text.contains(&names[*n])).collect::<Vec<usize>>()
    };
    judge.requests().iter().map(numbers).collect()
}

/// Returns how often the judge has ruled on each finding of [`many_functions`].
fn count_verdicts(findings: &[Finding]) -> Vec<usize> {
    let count = |n: usize| {
        let finding = findings.iter().find(|finding| finding.title == name_of(n)).expect("on the list");
        finding.steps.iter().filter(|step| step.to_string().starts_with("dear finds it real")).count()
    };
    (0..MANY).map(count).collect()
}

#[test]
fn many_disputes_are_judged_in_several_requests_and_each_once() {
    let judge = Model::start(vec![verdicts(); MANY]);
    let panel = start_many(&judge);
    let run = panel.review(&["--panel", "pair"], DONE);
    assert_eq!(count_verdicts(&panel.findings(&run)), [1; MANY]);
    let asked = asked_about(&judge);
    assert!(asked.len() > 2 && asked.iter().all(|batch| batch.len() <= MAX_ASKED), "{asked:?}");
    let mut all = asked.concat();
    all.sort_unstable();
    assert_eq!(all, (0..MANY).collect::<Vec<usize>>(), "each is asked about once");
}

#[test]
fn a_request_that_fails_leaves_only_its_own_findings_without_a_verdict() {
    let mut script = vec![verdicts(); MANY];
    script[1] = refusal();
    let judge = Model::start(script);
    let panel = start_many(&judge);
    let run = panel.review(&["--panel", "pair"], DONE);
    let asked = asked_about(&judge);
    assert!(asked.len() > 2, "the rest is asked about: {asked:?}");
    let findings = panel.findings(&run);
    let expected: Vec<usize> = (0..MANY).map(|n| usize::from(!asked[1].contains(&n))).collect();
    assert_eq!(count_verdicts(&findings), expected);
    let notes = panel.place.output(&run.run_id).expect("an output").notes;
    let said: Vec<&String> = notes.iter().filter(|note| note.starts_with("no second opinion by dear: ")).collect();
    let [said] = said.as_slice() else { panic!("{notes:#?}") };
    let (_, named) = said.split_once("; not judged: ").expect("the findings are named");
    let mut named: Vec<&str> = named.split(", ").collect();
    named.sort_unstable();
    let unjudged = |finding: &&Finding| asked[1].iter().any(|n| finding.title == name_of(*n));
    let mut ids: Vec<&str> = findings.iter().filter(unjudged).map(|finding| finding.finding_id.as_str()).collect();
    ids.sort_unstable();
    assert_eq!(named, ids);
}

#[test]
fn a_worker_that_is_killed_between_two_requests_pays_for_none_twice() {
    let judge = Model::start(vec![verdicts(); MANY]);
    judge.hold_after(1);
    let panel = start_many(&judge);
    let place = &panel.place;
    let started = out(&place.test.revdeck(&["review", "--panel", "pair"]));
    let id: RunId = started.split_whitespace().next().expect("an id").parse().expect("an id");
    wait_for("the second request", || (judge.asked() == 2).then_some(()));
    let worker = wait_for("the worker", || place.worker(&id));
    signal(worker, Signal::KILL);
    wait_for("the worker's end", || gone(worker).then_some(()));
    judge.let_go();
    place.revdeck(&["runs"]);
    let run = place.ended(&id);
    assert_eq!((run.status, run.attempt), (RunStatus::Completed, 2), "{}", run.outcome.summary);
    assert_eq!(count_verdicts(&panel.findings(&run)), [1; MANY]);
    let mut asked = asked_about(&judge);
    assert_eq!(asked[1], asked[2], "only the request that was never answered is sent again");
    asked.remove(2);
    let mut all = asked.concat();
    all.sort_unstable();
    assert_eq!(all, (0..MANY).collect::<Vec<usize>>());
    assert_eq!((panel.one.asked(), panel.two.asked()), (1, 1));
}
