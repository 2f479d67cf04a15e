//! Plays whole conversations with the engine alone.

use std::collections::VecDeque;

use rstest::rstest;

use super::*;
use crate::domain::*;
use crate::review::{PlannedFile, ReportValidation, ReviewOutcome, ReviewPlan};

const WINDOW: u64 = 70_000;

fn limits() -> ConversationLimits {
    ConversationLimits {
        max_turns: 20,
        window_tokens: WINDOW,
        output_tokens: 8_000,
        has_tools: true,
        slide_after_turn: 5,
        slide_over_messages: 15,
        keep_messages: 10,
        budget: RemainingBudget::default(),
        input_price: Some(3.0),
        approximate: false,
        summary: SummaryAuthor::Local,
        opinion: None,
    }
}

/// Returns a limit of US dollars of which nothing is used up.
fn dollars(limit: f64) -> Option<BudgetLimit> {
    Some(BudgetLimit { limit, used: 0.0 })
}

/// Counts four bytes as one token.
fn tokens(text: &str) -> u64 {
    (text.len() as u64).div_ceil(4)
}

fn say(words: ConversationPrompt<'_>) -> String {
    match words {
        ConversationPrompt::Task { diff, later, known } => format!("TASK\n{diff}\n{later}{known}"),
        ConversationPrompt::More { diff, later } => format!("MORE\n{diff}\n{later}"),
        ConversationPrompt::Phase { phase, turn, of } => format!("PHASE {phase} {turn}/{of}"),
        ConversationPrompt::Summarise { messages } => format!("SUMMARISE\n{messages}"),
        ConversationPrompt::Opinion { finding } => format!("OPINION {}", finding.title),
        ConversationPrompt::Uncovered { hunks } => format!("UNCOVERED {hunks}"),
        ConversationPrompt::Last => "LAST".to_owned(),
        ConversationPrompt::Cut => "CUT".to_owned(),
        ConversationPrompt::Retry { trouble, reason } => format!("RETRY {trouble:?} {reason}"),
        ConversationPrompt::Masked { call, tokens } => {
            format!("[{} {}: {tokens} tokens were here]", call.name, call.arguments)
        }
    }
}

fn file(path: &str) -> PlannedFile {
    PlannedFile { path: path.to_owned(), hunks: vec![LineRange { start: 1, end: 9 }], keys: Vec::new(), added_lines: 9 }
}

fn part(path: &str, size: u64) -> DiffPart {
    let text = format!("{path} {}", "d".repeat(size as usize * 4));
    DiffPart { path: path.to_owned(), hunks: vec![LineRange { start: 1, end: 9 }], tokens: tokens(&text), text }
}

fn tool(name: &str) -> ToolSpec {
    ToolSpec { name: name.to_owned(), description: "does it".to_owned(), parameters: serde_json::json!({}) }
}

fn task(parts: Vec<DiffPart>) -> ReviewTask {
    let files = parts.iter().map(|part| file(&part.path)).collect();
    ReviewTask {
        known_findings: Vec::new(),
        plan: ReviewPlan { files, left_out: Vec::new(), unit_files: 1, has_whole_unit: false, carried: Vec::new() },
        parts,
        system: "You review.".to_owned(),
        tools: [REPORT_FINDINGS_TOOL, FINISH_TOOL, "read_file"].map(tool).to_vec(),
        limits: limits(),
        count: Box::new(tokens),
        render_prompt: Box::new(say),
        overhead: 0,
    }
}

fn call(name: &str, arguments: impl Into<String>) -> ToolCall {
    ToolCall { id: format!("c-{name}"), name: name.to_owned(), arguments: arguments.into() }
}

fn answer(text: &str, calls: Vec<ToolCall>, stop: StopReason) -> ChatResponse {
    let usage = Usage { output: 100, ..Usage::default() };
    ChatResponse { text: text.to_owned(), calls, opaque: Vec::new(), stop, usage, model: "m-1".to_owned() }
}

/// Returns a report with one finding per line number.
fn report(path: &str, lines: &[u32]) -> String {
    let findings: Vec<_> = lines
        .iter()
        .map(|line| serde_json::json!({ "path": path, "line_start": line, "line_end": line, "kind": "CORRECTNESS", "title": format!("bug at {line}") }))
        .collect();
    serde_json::json!({ "findings": findings }).to_string()
}

fn fenced(path: &str, lines: &[u32]) -> String {
    format!("I looked.\n```json\n{}\n```", report(path, lines))
}

fn finding(report: &ReportedProblem) -> Finding {
    let mut finding = crate::review::unit_engine::tests::finding(&report.path, report.line_start, report.line_start, 1);
    finding.kind = report.kind;
    finding.title.clone_from(&report.title);
    finding.quoted_code = format!("code {}", report.line_start);
    finding.finding_id = FindingId::from_parts(report.kind.word(), &report.path, &finding.quoted_code, 0);
    finding
}

fn notes(report: &ReportedProblem) -> Vec<String> {
    (report.line_start == 7).then(|| "the suggestion is kept in words".to_owned()).into_iter().collect()
}

/// Counts the requests with a recorded outcome.
fn answered(journal: &[RunEvent]) -> usize {
    let is_answer = |event: &&RunEvent| matches!(event, RunEvent::TurnAnswered { .. } | RunEvent::Unanswered { .. });
    journal.iter().filter(is_answer).count()
}

/// Plays the world around an engine.
struct ConversationPlayer {
    answers: VecDeque<Result<ChatResponse, ErrorClass>>,
    result_bytes: usize,
    journal: Vec<RunEvent>,
    recorded: ResumeLog,
    requests: Vec<ChatRequest>,
    /// Number of journal entries after which the process dies.
    dies_after: Option<usize>,
}

impl ConversationPlayer {
    fn new(answers: Vec<ChatResponse>) -> Self {
        Self {
            answers: answers.into_iter().map(Ok).collect(),
            result_bytes: 40,
            journal: Vec::new(),
            recorded: ResumeLog::default(),
            requests: Vec::new(),
            dies_after: None,
        }
    }

    /// Plays to the end. Returns `None` if the process died on the way.
    fn play(&mut self, task: ReviewTask) -> Option<ReviewOutcome> {
        let mut dialog = ConversationEngine::new();
        let mut effects = VecDeque::from(dialog.handle(ConversationEvent::Started(Box::new(task))));
        while let Some(effect) = effects.pop_front() {
            let event = match effect {
                ConversationEffect::Append(event) => {
                    if self.recorded.is_new(&event) {
                        if self.dies_after == Some(self.journal.len()) {
                            return None;
                        }
                        self.journal.push(event);
                    }
                    continue;
                }
                ConversationEffect::Ask { request, .. } => match self.recorded.next_answer() {
                    Some(event) => event,
                    None => match dialog.budget_problem() {
                        Some(problem) => ConversationEvent::BudgetExceeded(problem),
                        None => {
                            self.requests.push(*request);
                            self.answer()
                        }
                    },
                },
                ConversationEffect::Validate { reports, .. } => ConversationEvent::Validated(
                    reports
                        .into_iter()
                        .map(|report| match report.path.as_str() {
                            "nowhere" => {
                                ReportValidation::Rejected(RejectedReport { report, reason: "no such file".to_owned() })
                            }
                            _ => {
                                ReportValidation::Finding { finding: Box::new(finding(&report)), notes: notes(&report) }
                            }
                        })
                        .collect(),
                ),
                ConversationEffect::RunTools { calls, .. } => ConversationEvent::ToolsAnswered(
                    calls
                        .iter()
                        .map(|_| ConversationToolResult {
                            text: "r".repeat(self.result_bytes),
                            outcome: ToolOutcome::Answered,
                            summary: "read".to_owned(),
                            shown: Vec::new(),
                        })
                        .collect(),
                ),
                ConversationEffect::Finish(outcome) => return Some(*outcome),
            };
            assert!(effects.is_empty(), "what asks for an answer is the last effect");
            effects.extend(dialog.handle(event));
        }
        panic!("the engine waits for nothing");
    }

    fn answer(&mut self) -> ConversationEvent {
        match self.answers.pop_front() {
            Some(Ok(response)) => {
                ConversationEvent::Answered { response: Box::new(response), first_ms: 1, took_ms: 2, cost: Some(0.25) }
            }
            Some(Err(class)) => ConversationEvent::Failed { class, summary: "no luck".to_owned() },
            None => ConversationEvent::CancelAsked(CancelReason::UserStop),
        }
    }

    fn asked(&self, request: usize) -> String {
        format!("{:?}", self.requests[request].messages)
    }
}

/// Returns twenty turns with large tool results and one or two findings in each.
fn long_review() -> Vec<ChatResponse> {
    (1..=20u32)
        .map(|turn| match turn {
            20 => answer(&fenced("a.rs", &[200]), vec![call(FINISH_TOOL, "{}")], StopReason::Tools),
            turn if turn % 2 == 0 => answer(
                "Looking on.",
                vec![
                    call(REPORT_FINDINGS_TOOL, report("a.rs", &[turn * 10, turn * 10 + 5])),
                    call("read_file", format!("{{\"n\":{turn}}}")),
                ],
                StopReason::Tools,
            ),
            turn => answer(
                &fenced("a.rs", &[turn * 10]),
                vec![call("read_file", format!("{{\"n\":{turn}}}"))],
                StopReason::Tools,
            ),
        })
        .collect()
}

fn ids(outcome: &ReviewOutcome) -> Vec<String> {
    outcome.findings.iter().map(|finding| finding.finding_id.to_string()).collect()
}

#[test]
fn twenty_turns_with_large_results_stay_in_the_window_and_lose_nothing() {
    let mut player = ConversationPlayer::new(long_review());
    player.result_bytes = 30_000;
    let outcome = player.play(task(vec![part("a.rs", 4_000)])).expect("an end");
    assert_eq!((outcome.status, outcome.findings.len()), (RunStatus::Completed, 29));
    assert_eq!((player.requests.len(), outcome.coverage.hunks_covered), (20, 1));
    let peak = outcome.spent.window_peak;
    assert!(peak <= WINDOW && peak > WINDOW / 3, "{peak}");
    let unbounded: u64 = 4_000 + 19 * 7_500;
    assert!(unbounded > 134_000);
    assert!(player.journal.iter().any(|event| matches!(event, RunEvent::SlidingWindowApplied { .. })));
    assert!(matches!(
        player.journal.last(),
        Some(RunEvent::FinalCodeSmellsSummary { total_issues: 29, loops: 20, issues_by_type }) if issues_by_type["CORRECTNESS"] == 29
    ));
    let accumulated = player.journal.iter().filter(|event| matches!(event, RunEvent::CodeSmellsAccumulated { .. }));
    assert_eq!(accumulated.count(), 20, "after every answer");
    assert!(player.asked(19).contains("LAST") && player.requests[19].tools == player.requests[0].tools);
    assert!(player.asked(0).contains("PHASE investigate 1/20") && player.asked(5).contains("PHASE analyse 6/20"));
}

#[test]
fn a_restart_after_any_entry_pays_for_no_turn_twice_and_finds_the_same() {
    let mut whole = ConversationPlayer::new(long_review());
    whole.result_bytes = 30_000;
    let outcome = whole.play(task(vec![part("a.rs", 4_000)])).expect("an end");
    for cut in 0..whole.journal.len() {
        let mut player = ConversationPlayer::new(long_review());
        player.result_bytes = 30_000;
        player.dies_after = Some(cut);
        assert!(player.play(task(vec![part("a.rs", 4_000)])).is_none(), "dies after {cut}");
        assert_eq!(player.journal.len(), cut);
        player.recorded = ResumeLog::from_events(&player.journal);
        let paid = answered(&player.journal);
        // An unrecorded answer is requested again; a recorded answer is not.
        player.answers = long_review().into_iter().skip(paid).map(Ok).collect();
        player.requests.clear();
        player.dies_after = None;
        let again = player.play(task(vec![part("a.rs", 4_000)])).expect("an end");
        assert_eq!((ids(&again), &again.coverage), (ids(&outcome), &outcome.coverage), "cut after {cut}");
        assert_eq!(player.requests.len(), 20 - paid, "cut after {cut}");
        assert_eq!(again.spent, outcome.spent, "cut after {cut}");
        assert_eq!(player.journal, whole.journal, "cut after {cut}");
    }
}

#[rstest]
#[case::done_at_once(vec![answer(&fenced("a.rs", &[3]), vec![], StopReason::Done)], RunStatus::Completed, 1, 1)]
#[case::nothing_found(vec![answer(&fenced("a.rs", &[]), vec![], StopReason::Done)], RunStatus::Completed, 1, 0)]
#[case::finish_by_tool(vec![answer("", vec![call(FINISH_TOOL, "{}")], StopReason::Tools)], RunStatus::Completed, 1, 0)]
#[case::reports_then_says_done(
    vec![answer("", vec![call(REPORT_FINDINGS_TOOL, report("a.rs", &[1]))], StopReason::Tools), answer("Done.", vec![], StopReason::Done)],
    RunStatus::Completed, 2, 1
)]
#[case::prose_is_not_clean(vec![answer("Looks good.", vec![], StopReason::Done), answer("Fine!", vec![], StopReason::Done)], RunStatus::Failed, 2, 0)]
#[case::prose_then_a_list(vec![answer("Looks good.", vec![], StopReason::Done), answer(&fenced("a.rs", &[]), vec![], StopReason::Done)], RunStatus::Completed, 2, 0)]
#[case::empty_twice(vec![answer("", vec![], StopReason::Done), answer(" ", vec![], StopReason::Done)], RunStatus::Failed, 2, 0)]
#[case::refused_then_fine(vec![answer("I cannot", vec![], StopReason::Refused), answer(&fenced("a.rs", &[2]), vec![], StopReason::Done)], RunStatus::Completed, 2, 1)]
#[case::refused_twice_keeps_what_it_said(
    vec![answer(&fenced("a.rs", &[4]), vec![], StopReason::Refused), answer("no", vec![], StopReason::Refused)],
    RunStatus::Failed, 2, 1
)]
#[case::cut_for_length(
    vec![answer(&fenced("a.rs", &[4]), vec![], StopReason::Length), answer(&fenced("a.rs", &[8]), vec![], StopReason::Done)],
    RunStatus::Completed, 2, 2
)]
fn ends(#[case] answers: Vec<ChatResponse>, #[case] status: RunStatus, #[case] turns: usize, #[case] found: usize) {
    let mut player = ConversationPlayer::new(answers);
    let outcome = player.play(task(vec![part("a.rs", 100)])).expect("an end");
    let got = (outcome.status, player.requests.len(), outcome.findings.len());
    assert_eq!(got, (status, turns, found), "{}", outcome.summary);
    assert_eq!(outcome.failure.is_some(), status == RunStatus::Failed);
}

#[test]
fn done_is_not_believed_before_every_hunk_was_delivered() {
    let parts: Vec<DiffPart> = (0..6).map(|n| part(&format!("f{n}.rs"), 12_000)).collect();
    let says_done = || answer(&fenced("f0.rs", &[1]), vec![], StopReason::Done);
    let mut player = ConversationPlayer::new((0..10).map(|_| says_done()).collect());
    let task = task(parts);
    assert_eq!(task.first_part_count(), 2);
    let outcome = player.play(task).expect("an end");
    assert_eq!(outcome.status, RunStatus::Completed);
    assert_eq!((outcome.coverage.files_covered, outcome.coverage.hunks_covered), (6, 6));
    assert_eq!(player.requests.len(), 5, "two parts with the task, then one at a time");
    assert!(player.asked(0).contains("4 more parts") && player.asked(1).contains("UNCOVERED f2.rs"));
}

#[test]
fn what_no_turn_was_left_for_is_said() {
    let parts: Vec<DiffPart> = (0..60).map(|n| part(&format!("f{n}.rs"), 12_000)).collect();
    let mut player =
        ConversationPlayer::new((0..20).map(|_| answer(&fenced("f0.rs", &[1]), vec![], StopReason::Done)).collect());
    let outcome = player.play(task(parts)).expect("an end");
    assert_eq!((outcome.status, player.requests.len()), (RunStatus::Completed, 20));
    assert_eq!((outcome.coverage.files_total, outcome.coverage.files_covered), (60, 21));
    assert_eq!(outcome.coverage.left_out.len(), 39);
    assert!(outcome.notes.iter().any(|note| note.contains("39 files")), "{:?}", outcome.notes);
    let stop = outcome.budget_stop.expect("the limit").describe();
    assert_eq!(stop, "turn limit reached at 20 of 20 turns");
    assert!(outcome.spent.window_peak <= WINDOW);
}

#[test]
fn an_answer_that_breaks_off_in_the_last_turn_is_no_turn_limit() {
    let mut task = task(vec![part("a.rs", 100)]);
    task.limits.max_turns = 2;
    let broken = || answer(&fenced("a.rs", &[1]), vec![], StopReason::Length);
    let outcome = ConversationPlayer::new(vec![broken(), broken()]).play(task).expect("an end");
    assert_eq!((outcome.status, outcome.budget_stop), (RunStatus::Completed, None));
    assert_eq!(outcome.coverage.gaps[0].reason, OmissionReason::BrokenAnswer);
}

#[test]
fn a_budget_ends_the_run_and_keeps_its_findings() {
    let mut player = ConversationPlayer::new(long_review());
    let mut task = task(vec![part("a.rs", 100)]);
    task.limits.budget.run_cost = dollars(1.0);
    let outcome = player.play(task).expect("an end");
    assert_eq!((outcome.status, outcome.cancel), (RunStatus::Cancelled, Some(CancelReason::BudgetExhausted)));
    assert_eq!((player.requests.len(), outcome.findings.len()), (4, 6));
    assert!(outcome.notes.iter().any(|note| note.contains("$1.00")), "{:?}", outcome.notes);
    let stop = outcome.budget_stop.expect("the limit");
    assert_eq!((stop.kind, stop.limit), (BudgetKind::RunCost, 1.0));
    assert_eq!(outcome.summary, format!("{}; 6 findings: 6 p1; 1 file not reached or left out", stop.describe()));
}

#[test]
fn a_run_that_the_day_leaves_too_little_says_so_and_what_to_do() {
    let mut player = ConversationPlayer::new(long_review());
    let mut task = task(vec![part("a.rs", 100)]);
    task.limits.budget.run_cost = dollars(5.0);
    task.limits.budget.day_cost = Some(BudgetLimit { limit: 10.0, used: 9.0 });
    let outcome = player.play(task).expect("an end");
    let stop = outcome.budget_stop.expect("the limit");
    assert_eq!((stop.kind, stop.limit, player.requests.len()), (BudgetKind::DayCost, 10.0, 4));
    assert!(stop.reached > 9.0 && stop.reached <= 10.0, "what other runs have spent counts: {stop:?}");
    assert!(outcome.summary.starts_with("budget of the day reached at $10.00 of $10.00; "), "{}", outcome.summary);
    let notes = outcome.notes.join("\n");
    assert!(notes.contains("the budget of the day of $10.00 is used up"), "{notes}");
    assert!(notes.contains("ask again after midnight, or with a higher budget.day_cost"), "{notes}");
}

#[rstest]
#[case::the_network(vec![Err(ErrorClass::Network)], RunStatus::Failed, 2)]
#[case::too_long_once(vec![Err(ErrorClass::ContextTooLong), Ok(answer(&fenced("a.rs", &[9]), vec![], StopReason::Done))], RunStatus::Completed, 3)]
#[case::too_long_twice(vec![Err(ErrorClass::ContextTooLong), Err(ErrorClass::ContextTooLong)], RunStatus::Failed, 3)]
fn a_provider_that_fails(
    #[case] then: Vec<Result<ChatResponse, ErrorClass>>,
    #[case] status: RunStatus,
    #[case] requests: usize,
) {
    let mut player =
        ConversationPlayer::new(vec![answer(&fenced("a.rs", &[7]), vec![call("read_file", "{}")], StopReason::Tools)]);
    player.answers.extend(then);
    let outcome = player.play(task(vec![part("a.rs", 100)])).expect("an end");
    assert_eq!((outcome.status, player.requests.len()), (status, requests));
    assert!(!outcome.findings.is_empty(), "what was found before stays");
}

#[test]
fn reports_that_do_not_hold_are_kept_apart_and_told() {
    let answers = vec![
        answer(
            "",
            vec![call(REPORT_FINDINGS_TOOL, report("nowhere", &[1])), call(REPORT_FINDINGS_TOOL, report("a.rs", &[1]))],
            StopReason::Tools,
        ),
        answer("Done.", vec![], StopReason::Done),
    ];
    let mut player = ConversationPlayer::new(answers);
    let outcome = player.play(task(vec![part("a.rs", 100)])).expect("an end");
    assert_eq!((outcome.findings.len(), outcome.rejected.len()), (1, 1));
    assert!(player.asked(1).contains("no such file"));
}

/// Returns an answer that reports a finding and reads on.
fn reads_on() -> ChatResponse {
    answer(&fenced("a.rs", &[1]), vec![call("read_file", "{}")], StopReason::Tools)
}

fn breaks_off(calls: Vec<ToolCall>) -> ChatResponse {
    answer("I am looking at", calls, StopReason::Interrupted)
}

#[rstest]
#[case::answers_break_off(vec![reads_on(), breaks_off(vec![]), breaks_off(vec![])], Some(OmissionReason::BrokenAnswer))]
#[case::last_answer_breaks_off_after_a_call(
    vec![reads_on(), reads_on(), breaks_off(vec![call("read_file", "{}")])],
    Some(OmissionReason::BrokenAnswer)
)]
#[case::finish_breaks_off(vec![reads_on(), reads_on(), breaks_off(vec![call(FINISH_TOOL, "{}")])], Some(OmissionReason::BrokenAnswer))]
#[case::cancelled(vec![reads_on(), reads_on()], Some(OmissionReason::NotReached))]
#[case::turns_used_up(vec![reads_on(), reads_on(), reads_on()], Some(OmissionReason::TurnLimit))]
#[case::finished(vec![reads_on(), answer("", vec![call(FINISH_TOOL, "{}")], StopReason::Tools)], None)]
#[case::finished_in_prose(vec![reads_on(), answer("Done.", vec![], StopReason::Done)], None)]
#[case::reported_and_cancelled(
    vec![reads_on(), answer("", vec![call(REPORT_FINDINGS_TOOL, report("a.rs", &[2]))], StopReason::Tools)],
    None
)]
fn only_a_verdict_covers_a_hunk(#[case] answers: Vec<ChatResponse>, #[case] gap: Option<OmissionReason>) {
    let answers: Vec<_> = answers.into_iter().map(Ok).collect();
    let three_turns = || {
        let mut task = task(vec![part("a.rs", 100)]);
        task.limits.max_turns = 3;
        task
    };
    let mut player = ConversationPlayer::new(Vec::new());
    player.answers = answers.iter().cloned().collect();
    let outcome = player.play(three_turns()).expect("an end");
    let gaps: Vec<OmissionReason> = outcome.coverage.gaps.iter().map(|gap| gap.reason).collect();
    assert_eq!(gaps, gap.into_iter().collect::<Vec<_>>(), "{}", outcome.summary);
    assert_eq!(outcome.coverage.hunks_covered, u32::from(gap.is_none()));
    assert!(!outcome.findings.is_empty(), "findings of every answer are kept");
    let is_covered = player.journal.iter().any(|event| matches!(event, RunEvent::Covered { .. }));
    assert_eq!(is_covered, gap.is_none());
    // A restart comes to the same end.
    let mut again = ConversationPlayer::new(Vec::new());
    again.recorded = ResumeLog::from_events(&player.journal);
    assert_eq!(again.play(three_turns()).expect("an end").coverage, outcome.coverage);
    assert_eq!(again.journal, []);
}

#[test]
fn a_budget_that_ends_a_run_between_tool_calls_leaves_the_hunk_open() {
    let mut task = task(vec![part("a.rs", 100)]);
    task.limits.budget.run_cost = dollars(0.4);
    let outcome = ConversationPlayer::new((0..9).map(|_| reads_on()).collect()).play(task).expect("an end");
    assert_eq!((outcome.cancel, outcome.coverage.hunks_covered), (Some(CancelReason::BudgetExhausted), 0));
    assert_eq!(outcome.coverage.gaps[0].reason, OmissionReason::Budget);
}

#[test]
fn a_cut_answer_does_not_cover_what_it_had_before_it() {
    let mut player = ConversationPlayer::new(vec![answer(&fenced("a.rs", &[4]), vec![], StopReason::Length)]);
    let outcome = player.play(task(vec![part("a.rs", 100)])).expect("an end");
    assert_eq!((outcome.status, outcome.coverage.files_covered), (RunStatus::Cancelled, 0));
}

#[test]
fn a_second_opinion_sets_aside_what_it_calls_false_and_a_restart_does_not_ask_again() {
    let answers = [
        answer(
            "",
            vec![call(REPORT_FINDINGS_TOOL, report("a.rs", &[1, 2, 3])), call(FINISH_TOOL, "{}")],
            StopReason::Tools,
        ),
        answer(r#"{"verdict": "real"}"#, vec![], StopReason::Done),
        answer(r#"{"verdict": "false", "reason": "the lock is held"}"#, vec![], StopReason::Done),
        answer("I do not know", vec![], StopReason::Done),
    ];
    let (player, outcome) = the_same_after_any_restart(&answers.map(Ok), || with_opinions(f64::MAX));
    assert_eq!((outcome.status, player.requests.len()), (RunStatus::Completed, 4));
    assert_eq!(player.requests[1].temperature, Some(0.0));
    assert_eq!((outcome.findings.len(), outcome.rejected.len()), (2, 1));
    assert!(outcome.rejected[0].reason.contains("the lock is held"));
}

/// One turn, and a second opinion on each of its findings.
fn with_opinions(cost: f64) -> ReviewTask {
    let mut task = task(vec![part("a.rs", 100)]);
    task.limits.opinion = Some(Priority::P1);
    task.limits.budget.run_cost = dollars(cost);
    task
}

/// Eight turns, and a summary by the model when the window slides.
fn with_summary() -> ReviewTask {
    let mut task = task(vec![part("a.rs", 100)]);
    (task.limits.summary, task.limits.max_turns) = (SummaryAuthor::Model, 8);
    task
}

/// Plays to the end, and again after a cut at every journal entry.
fn the_same_after_any_restart(
    answers: &[Result<ChatResponse, ErrorClass>],
    asks: impl Fn() -> ReviewTask,
) -> (ConversationPlayer, ReviewOutcome) {
    let mut whole = ConversationPlayer::new(Vec::new());
    whole.answers = answers.iter().cloned().collect();
    let outcome = whole.play(asks()).expect("an end");
    for cut in 0..whole.journal.len() {
        let mut player = ConversationPlayer::new(Vec::new());
        player.journal = whole.journal[..cut].to_vec();
        player.recorded = ResumeLog::from_events(&player.journal);
        let known = answered(&player.journal);
        player.answers = answers.iter().skip(known).cloned().collect();
        let again = player.play(asks()).expect("an end");
        assert_eq!((ids(&again), player.requests.len()), (ids(&outcome), answers.len() - known), "cut after {cut}");
        assert_eq!(player.journal, whole.journal, "cut after {cut}");
    }
    // After the death of a worker, only the journal is left.
    let replayed = crate::review::JournalState::from_events(&whole.journal);
    assert_eq!(replayed.findings(), outcome.findings);
    assert_eq!((&replayed.rejected, &replayed.notes), (&outcome.rejected, &outcome.notes));
    (whole, outcome)
}

#[test]
fn a_restart_knows_which_requests_failed() {
    let shrinks = [
        Ok(answer(&fenced("a.rs", &[7]), vec![call("read_file", "{}")], StopReason::Tools)),
        Err(ErrorClass::ContextTooLong),
        Ok(answer(&fenced("a.rs", &[9]), vec![], StopReason::Done)),
    ];
    let (_, outcome) = the_same_after_any_restart(&shrinks, || task(vec![part("a.rs", 100)]));
    assert!(outcome.notes.iter().any(|note| note.contains("a smaller window")), "{:?}", outcome.notes);

    let mut unsummarised: Vec<_> = long_review().into_iter().take(8).map(Ok).collect();
    unsummarised.insert(6, Err(ErrorClass::Network));
    let (_, outcome) = the_same_after_any_restart(&unsummarised, with_summary);
    assert!(outcome.notes.iter().any(|note| note.contains("no summary by the model")), "{:?}", outcome.notes);

    let unjudged = [Ok(long_review().remove(19)), Err(ErrorClass::Network)];
    let (_, outcome) = the_same_after_any_restart(&unjudged, || with_opinions(f64::MAX));
    assert_eq!((outcome.status, outcome.findings.len()), (RunStatus::Completed, 1));
    assert!(outcome.notes.iter().any(|note| note.contains("no second opinion")), "{:?}", outcome.notes);
}

#[test]
fn what_is_paid_for_counts_whatever_the_budget_says_now() {
    let mut player = ConversationPlayer::new(long_review());
    let whole = player.play(task(vec![part("a.rs", 100)])).expect("an end");
    let is_answer = |event: &RunEvent| matches!(event, RunEvent::TurnAnswered { turn: 5, .. });
    let fifth = player.journal.iter().position(is_answer).expect("a fifth turn") + 1;
    for (entries, status, found) in
        [(player.journal.len(), RunStatus::Completed, whole.findings.len()), (fifth, RunStatus::Cancelled, 7)]
    {
        let mut again = ConversationPlayer::new(long_review());
        again.recorded = ResumeLog::from_events(&player.journal[..entries]);
        let mut task = task(vec![part("a.rs", 100)]);
        task.limits.budget.run_cost = dollars(0.0);
        let outcome = again.play(task).expect("an end");
        assert_eq!((outcome.status, outcome.findings.len(), again.requests.len()), (status, found, 0));
    }
}

#[test]
fn what_is_asked_beside_the_turns_is_paid_for_from_the_budget() {
    let mut player = ConversationPlayer::new(long_review());
    let mut task = with_summary();
    // Six turns and the summary, 0.25 dollars each.
    task.limits.budget.run_cost = dollars(1.75);
    let outcome = player.play(task).expect("an end");
    assert_eq!((outcome.cancel, player.requests.len()), (Some(CancelReason::BudgetExhausted), 7));

    let judged = || answer(r#"{"verdict": "false"}"#, vec![], StopReason::Done);
    let reports = vec![call(REPORT_FINDINGS_TOOL, report("a.rs", &[1, 2, 3])), call(FINISH_TOOL, "{}")];
    let mut player =
        ConversationPlayer::new(vec![answer("", reports, StopReason::Tools), judged(), judged(), judged()]);
    let outcome = player.play(with_opinions(0.5)).expect("an end");
    assert_eq!((outcome.status, outcome.cancel, player.requests.len()), (RunStatus::Completed, None, 2));
    assert_eq!((outcome.findings.len(), outcome.rejected.len()), (2, 1), "the others stay");
    assert!(outcome.notes.iter().any(|note| note.starts_with("no second opinion: the budget")), "{:?}", outcome.notes);
}

#[test]
fn the_model_may_write_the_summary_and_the_local_one_stands_where_it_fails() {
    for fails in [false, true] {
        let mut turns = long_review();
        let at = 6;
        turns.insert(at, answer("<b>All locks were checked.</b>", vec![], StopReason::Done));
        let mut player = ConversationPlayer::new(turns);
        if fails {
            player.answers[at] = Err(ErrorClass::Network);
        }
        player.play(with_summary()).expect("an end");
        let asked = (0..player.requests.len()).find(|&request| player.asked(request).contains("SUMMARISE"));
        assert_eq!(asked, Some(at), "when the window first slid");
        let next = player.asked(at + 1);
        assert_eq!(next.contains("‹b›All locks were checked."), !fails);
        assert!(next.contains("<conversation_summary>"));
    }
}
