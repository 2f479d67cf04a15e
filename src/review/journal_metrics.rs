//! Reads timings and answering models from a run's journal. Called at the end of the run for its record.
//!
//! Invariant: records that the run took over from an earlier run do not count, because this run neither waited nor paid
//! for them.

use crate::domain::{
    ChatResponse, JournalEntry, PanelOpinion, PhaseTimings, ReviewerUsage, RunEvent, RunRecord, RunStatus, Time,
};

/// The metrics of a journal.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JournalMetrics {
    /// See [`PhaseTimings::first_token_ms`].
    pub first_token_ms: Option<u64>,
    /// See [`PhaseTimings::first_finding_ms`].
    pub first_finding_ms: Option<u64>,
    /// See [`RunRecord::answered_by`].
    pub answered_by: Vec<ReviewerUsage>,
}

impl JournalMetrics {
    /// Reads the entries of a run's journal, in order.
    pub fn from_journal(run: &RunRecord, entries: &[JournalEntry]) -> Self {
        let asked = || ReviewerUsage {
            reviewer: run.reviewed_by.name.clone(),
            model: run.reviewed_by.model.clone(),
            reasoning_effort: run.reviewed_by.reasoning_effort.clone(),
            ..ReviewerUsage::default()
        };
        let since = |at: Time| at.as_millisecond().saturating_sub(run.created_at.as_millisecond());
        let whole = |ms: i64| u64::try_from(ms).unwrap_or(0);
        let mut measured = Self::default();
        let mut answering = asked();
        for entry in entries {
            match &entry.event {
                // Every attempt begins with the requested reviewer.
                RunEvent::Started { .. } => answering = asked(),
                RunEvent::TookOver { reviewer, model, reasoning_effort, .. } => {
                    answering = ReviewerUsage {
                        reviewer: reviewer.clone(),
                        model: model.clone(),
                        reasoning_effort: reasoning_effort.clone(),
                        ..ReviewerUsage::default()
                    };
                }
                RunEvent::TurnAsked { asked, .. } => {
                    // The run of a panel asks reviewers for second opinions, and reviews nothing itself.
                    if let Some(reviewer) = find_opinion_reviewer(run, asked) {
                        answering = ReviewerUsage {
                            reviewer: reviewer.to_owned(),
                            cost: Some(0.0),
                            took_ms: Some(0),
                            ..ReviewerUsage::default()
                        };
                    }
                }
                RunEvent::TurnAnswered { response, cost, first_ms, took_ms, taken_over: false, .. } => {
                    // The entry is written when the answer is complete. 0 means that no byte arrived.
                    if *first_ms > 0 {
                        let waited = i64::try_from(took_ms.saturating_sub(*first_ms)).unwrap_or(i64::MAX);
                        let first = whole(since(entry.at).saturating_sub(waited));
                        measured.first_token_ms.get_or_insert(first);
                    }
                    measured.count_answer(&answering, response, (*cost, *took_ms));
                }
                RunEvent::Finding { .. } => {
                    measured.first_finding_ms.get_or_insert(whole(since(entry.at)));
                }
                _ => {}
            }
        }
        measured
    }

    /// Returns `timings` with the times from the journal.
    pub fn apply_to_timings(&self, timings: PhaseTimings) -> PhaseTimings {
        let Self { first_token_ms, first_finding_ms, .. } = *self;
        PhaseTimings { first_token_ms, first_finding_ms, ..timings }
    }

    /// Returns `timings` with the phases of the last attempt, whose worker could not record them: it died, or met an
    /// internal error. An attempt that came to `resolving` has recorded them.
    pub fn add_unrecorded_attempt(timings: PhaseTimings, entries: &[JournalEntry]) -> PhaseTimings {
        let begins = |entry: &JournalEntry| matches!(entry.event, RunEvent::Started { .. });
        let attempt = entries.iter().rposition(begins).map_or(&[][..], |at| &entries[at..]);
        let phase = |wanted| {
            let is_it = |entry: &&JournalEntry| matches!(entry.event, RunEvent::Phase { status } if status == wanted);
            attempt.iter().find(is_it).map(|entry| entry.at)
        };
        let (Some(first), Some(last)) = (attempt.first(), attempt.last()) else { return timings };
        if phase(RunStatus::Resolving).is_some() {
            return timings;
        }
        let reviewing = phase(RunStatus::Reviewing);
        let ms = |from: Time, to: Time| {
            u64::try_from(to.as_millisecond().saturating_sub(from.as_millisecond())).unwrap_or(0)
        };
        PhaseTimings {
            snapshot_ms: timings.snapshot_ms.saturating_add(ms(first.at, reviewing.unwrap_or(last.at))),
            review_ms: timings.review_ms.saturating_add(reviewing.map_or(0, |from| ms(from, last.at))),
            ..timings
        }
    }

    /// Counts an answer with its cost in US dollars and its time in milliseconds. These belong to the reviewer only if it gave a
    /// second opinion; else they are those of the run.
    fn count_answer(&mut self, by: &ReviewerUsage, response: &ChatResponse, (cost, took_ms): (f64, u64)) {
        let model = if response.model.is_empty() { &by.model } else { &response.model };
        let is_by = |known: &ReviewerUsage| {
            (&known.reviewer, &known.model, &known.reasoning_effort) == (&by.reviewer, model, &by.reasoning_effort)
        };
        if !self.answered_by.iter().any(is_by) {
            self.answered_by.push(ReviewerUsage { model: model.clone(), ..by.clone() });
        }
        if let Some(known) = self.answered_by.iter_mut().find(|known| is_by(known)) {
            known.turns += 1;
            known.tokens += response.usage;
            known.cost = known.cost.map(|sum| sum + cost);
            known.took_ms = known.took_ms.map(|sum| sum.saturating_add(took_ms));
        }
    }
}

/// Returns the reviewer that a request of a panel's run asks for second opinions; `None` for every other request.
fn find_opinion_reviewer<'a>(run: &'a RunRecord, asked: &str) -> Option<&'a str> {
    let opinions = &run.links.panel.as_ref()?.opinions;
    let is_asked = |reviewer: &&str| asked.starts_with(&PanelOpinion::request_words(reviewer));
    opinions.iter().map(|opinion| opinion.reviewer.as_str()).find(is_asked)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::domain::{Panel, StopReason, TurnPhase, Usage, WindowUse};

    const ASKED: i64 = 1_790_000_000_000;

    fn run() -> RunRecord {
        let record = format!(
            r#"{{"run_id":"ar_01JD3Z8Q6M7S5V2K4T9XWB1C0E","status":"reviewing","created_at":"{0}","updated_at":"{0}",
            "source":"cli","scope":"worktree","reviewer":"deep","model":"d-1","reasoning_effort":"high"}}"#,
            time_after(0)
        );
        serde_json::from_str(&record).expect("a record")
    }

    fn time_after(ms: i64) -> Time {
        Time::from_millisecond(ASKED + ms).expect("a moment")
    }

    fn answer(model: &str, input: u64, first_ms: u64, took_ms: u64, taken_over: bool) -> RunEvent {
        let usage = Usage { input, ..Usage::default() };
        let response = ChatResponse {
            text: "said".into(),
            calls: Vec::new(),
            opaque: Vec::new(),
            stop: StopReason::Done,
            usage,
            model: model.into(),
        };
        RunEvent::TurnAnswered { turn: 1, response: Box::new(response), cost: 0.0, first_ms, took_ms, taken_over }
    }

    fn started() -> RunEvent {
        RunEvent::Started { attempt: 1, worker: 7 }
    }

    fn took_over() -> RunEvent {
        RunEvent::TookOver { turn: 2, reviewer: "quick".into(), model: "q".into(), reasoning_effort: String::new() }
    }

    /// Events with their milliseconds after the request; the expected values are `reviewer model turns input`.
    #[rstest]
    #[case::nothing_yet(vec![(5, started())], None, &[])]
    #[case::one_answer(vec![(5, started()), (900, answer("", 10, 200, 500, false))], Some(600), &["deep d-1 1 10"])]
    #[case::no_byte_was_seen(vec![(900, answer("", 10, 0, 500, false))], None, &["deep d-1 1 10"])]
    #[case::the_first_counts(
        vec![(900, answer("d-1-0301", 10, 200, 500, false)), (2_000, answer("d-1-0301", 20, 5, 50, false))],
        Some(600),
        &["deep d-1-0301 2 30"]
    )]
    #[case::what_was_taken_over_was_not_waited_for(
        vec![(100, answer("", 99, 200, 500, true)), (2_000, answer("", 1, 100, 300, false))],
        Some(1_800),
        &["deep d-1 1 1"]
    )]
    #[case::a_clock_that_was_set_back(vec![(-900, answer("", 1, 100, 300, false))], Some(0), &["deep d-1 1 1"])]
    #[case::another_one_takes_over_until_the_attempt_ends(
        vec![
            (1, started()),
            (900, answer("", 10, 200, 500, false)),
            (1_000, took_over()),
            (1_500, answer("q-mini", 7, 20, 50, false)),
            (1_600, answer("q-mini", 7, 20, 50, false)),
            (9_000, started()),
            (9_500, answer("", 5, 20, 50, false)),
        ],
        Some(600),
        &["deep d-1 2 15", "quick q-mini 2 14"]
    )]
    fn a_journal_tells_who_answered_and_when(
        #[case] events: Vec<(i64, RunEvent)>,
        #[case] first: Option<u64>,
        #[case] by: &[&str],
    ) {
        let entries: Vec<JournalEntry> = events
            .into_iter()
            .zip(0..)
            .map(|((ms, event), seq)| JournalEntry { seq, at: time_after(ms), event })
            .collect();
        let measured = JournalMetrics::from_journal(&run(), &entries);
        assert_eq!((measured.first_token_ms, measured.first_finding_ms), (first, None));
        let said = |one: &ReviewerUsage| format!("{} {} {} {}", one.reviewer, one.model, one.turns, one.tokens.input);
        assert_eq!(measured.answered_by.iter().map(said).collect::<Vec<_>>(), by);
        assert!(measured.answered_by.iter().all(|one| (one.cost, one.took_ms) == (None, None)), "those are the run's");
    }

    #[test]
    fn a_second_opinion_counts_for_the_reviewer_that_gave_it() {
        let opinion =
            |reviewer: &str| PanelOpinion { reviewer: reviewer.into(), priorities: Vec::new(), disputed: true };
        let opinions = vec![opinion("dear"), opinion("dearest")];
        let mut panel = run();
        panel.links.panel = Some(Panel { name: "all".into(), opinions, ..Panel::default() });
        let asks = |reviewer: &str| RunEvent::TurnAsked {
            turn: 1,
            phase: TurnPhase::Finish,
            asked: format!("{}2 findings (0123456789ab)", PanelOpinion::request_words(reviewer)),
            window: WindowUse::default(),
        };
        let priced = |model: &str, price: f64, took: u64| match answer(model, 10, 20, took, false) {
            RunEvent::TurnAnswered { turn, response, first_ms, took_ms, taken_over, .. } => {
                RunEvent::TurnAnswered { turn, response, cost: price, first_ms, took_ms, taken_over }
            }
            other => other,
        };
        let first = [started(), asks("dearest"), priced("d-9", 0.5, 500)];
        let second = [asks("dear"), priced("d-2", 0.125, 50), asks("dear"), priced("d-2", 0.125, 70)];
        let events = first.into_iter().chain(second);
        let entries: Vec<JournalEntry> =
            events.zip(0..).map(|(event, seq)| JournalEntry { seq, at: time_after(900), event }).collect();
        let answered = JournalMetrics::from_journal(&panel, &entries).answered_by;
        let by: Vec<(&str, &str)> = answered.iter().map(|one| (one.reviewer.as_str(), one.model.as_str())).collect();
        assert_eq!(by, [("dearest", "d-9"), ("dear", "d-2")]);
        let used: Vec<_> = answered.iter().map(|one| (one.turns, one.tokens.input, one.cost, one.took_ms)).collect();
        assert_eq!(used, [(1, 10, Some(0.5), Some(500)), (2, 20, Some(0.25), Some(120))]);
    }

    #[rstest]
    #[case::died_in_the_review(&[(0, "started"), (40, "reviewing"), (900, "note")], (40, 860))]
    #[case::died_before_it(&[(0, "started"), (70, "note")], (70, 0))]
    #[case::came_to_its_end(&[(0, "started"), (40, "reviewing"), (900, "resolving"), (950, "note")], (0, 0))]
    #[case::only_the_last_attempt(
        &[(0, "started"), (40, "reviewing"), (900, "note"), (2_000, "started"), (2_010, "reviewing"), (2_100, "note")],
        (10, 90)
    )]
    #[case::clock_went_back(&[(100, "started"), (40, "reviewing"), (20, "note")], (0, 0))]
    #[case::no_journal(&[], (0, 0))]
    fn phases_of_an_attempt_that_recorded_none(#[case] lines: &[(i64, &str)], #[case] added: (u64, u64)) {
        let event = |word: &str| match word {
            "started" => RunEvent::Started { attempt: 1, worker: 1 },
            "note" => RunEvent::Note { text: "x".to_owned() },
            status => RunEvent::Phase { status: status.parse().expect("a status") },
        };
        let entries: Vec<JournalEntry> = (0..)
            .zip(lines)
            .map(|(seq, (ms, word))| JournalEntry { seq, at: time_after(*ms), event: event(word) })
            .collect();
        let before = PhaseTimings { queued_ms: 5, snapshot_ms: 1, review_ms: 2, ..PhaseTimings::default() };
        let after = JournalMetrics::add_unrecorded_attempt(before, &entries);
        let expected = PhaseTimings { snapshot_ms: 1 + added.0, review_ms: 2 + added.1, ..before };
        assert_eq!(after, expected);
    }
}
