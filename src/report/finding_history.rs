//! Describes the history of a finding: its decisions, where it was reported and where its code was last seen.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::text::{format_line_range, format_masked};
use super::text_style::TextOptions;
use crate::domain::text::{sanitize_line, sanitize_lines};
use crate::domain::{
    Actor, Disposition, Finding, FindingId, FindingNote, FindingQuestion, FindingRating, FindingSnooze, LineRange,
    NoteKind, Priority, QuestionAnswer, QuestionOutcome, QuestionRequest, QuestionVerdict, RunId, RunOutput, RunRecord,
    SnoozeEnd, Time,
};
use crate::masking::Mask;
use crate::policy::find_resolution;
use crate::store::{Store, StoreError, StoreView, VoidCause};

/// Lines of a file in the snapshot of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FindingLocation {
    pub run: RunId,
    pub path: String,
    pub lines: LineRange,
}

/// Review with its time, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewedAt {
    pub run: RunId,
    /// Time of the report, or of the request for the review.
    pub at: Time,
    /// For example `the review of worktree by builtin`.
    pub review: String,
}

/// First report of a finding.
#[derive(Debug, Clone)]
pub struct FirstReport {
    /// Time of the report; of the request for the review, if the run's output is gone.
    pub at: Time,
    /// The run that made it.
    pub run: RunRecord,
    /// Priority that the run gave; `None` if its output is gone.
    pub priority: Option<Priority>,
}

/// Earlier runs of a finding that its page names.
#[derive(Debug, Clone, Default)]
pub struct EarlierRuns {
    /// The first report; `None` if the last run made it, or if the first run is unknown.
    pub first: Option<FirstReport>,
    /// The run that last examined the code, if the last run only carried the finding over.
    pub carried_from: Option<RunRecord>,
}

impl EarlierRuns {
    /// Loads the runs, whose records are read through `view`. `last_output` is the output of the finding's last run.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be read.
    pub fn load(
        store: &Store,
        view: &StoreView,
        finding: &Finding,
        last_output: Option<&RunOutput>,
    ) -> Result<Self, StoreError> {
        let first = match finding.first_run_id == finding.last_run_id {
            true => None,
            false => store.run_in(view, &finding.first_run_id)?,
        };
        let first = match first {
            None => None,
            Some(run) => {
                let reported = store.finding_in_run(&run.run_id, &finding.finding_id)?;
                let priority = reported.as_ref().map(|first| first.priority);
                Some(FirstReport { at: reported.map_or(run.created_at, |first| first.reported_at), run, priority })
            }
        };
        let carried_from = last_output.and_then(|output| output.coverage.carried_from_run(&finding.finding_id));
        let carried_from = carried_from.map_or(Ok(None), |run| store.run_in(view, run))?;
        Ok(Self { first, carried_from })
    }
}

/// History of a finding.
#[derive(Debug, Clone, PartialEq)]
pub struct FindingHistory {
    /// Decisions, in the order of [`Store::shared_decision_history`].
    pub history: Vec<Disposition>,
    /// Decisions that do not count, by their index in `history`.
    pub void: BTreeMap<usize, VoidCause>,
    /// Notes for the user, oldest first.
    pub notes: Vec<FindingNote>,
    /// Snoozes and their ends, oldest first.
    pub snoozes: Vec<FindingSnooze>,
    /// Changes of priority and kind by the user, oldest first.
    pub ratings: Vec<FindingRating>,
    /// Questions to reviewers with their answers, oldest first.
    pub questions: Vec<FindingQuestion>,
    /// Location of the last report.
    pub reported: FindingLocation,
    /// Location at which the code was last seen.
    pub place: FindingLocation,
    /// The addressed finding whose change this finding asks to undo.
    pub undoes: Option<FindingId>,
    /// The first report; `None` if the last run made it, or if the first run is unknown.
    pub first: Option<ReviewedAt>,
    /// The run that last examined the code, if the finding's last run only carried the finding over.
    pub carried_from: Option<RunId>,
    /// The review of [`FindingHistory::carried_from`], if its record is there.
    pub carried_review: Option<ReviewedAt>,
}

impl FindingLocation {
    fn to_json(&self) -> Value {
        json!({
            "run_id": self.run,
            "repo_relative_path": self.path,
            "line_start": self.lines.start,
            "line_end": self.lines.end,
        })
    }

    fn to_text(&self) -> String {
        format!("{}:{}", format_masked(&self.path), format_line_range(self.lines.start, self.lines.end))
    }
}

impl FindingHistory {
    /// Renders where the finding comes from, then what happened to it, oldest first, then what that comes to.
    pub fn to_text(&self, look: &TextOptions) -> String {
        let mut text = String::new();
        if let Some(ReviewedAt { run, at, review }) = &self.first {
            text.push_str(&format!(
                "reported first {} ago in {}, run {run}\n",
                look.format_age(*at),
                sanitize_line(review)
            ));
        }
        if self.place != self.reported {
            text.push_str(&format!(
                "reported at {} in the snapshot of run {}, seen at {} by run {}\n",
                self.reported.to_text(),
                self.reported.run,
                self.place.to_text(),
                self.place.run
            ));
        }
        match (&self.carried_review, &self.carried_from) {
            (Some(ReviewedAt { run, at, review }), _) => text.push_str(&format!(
                "carried over from {} {} ago, run {run}: its code has not changed since\n",
                sanitize_line(review),
                look.format_age(*at)
            )),
            (None, Some(from)) => {
                text.push_str(&format!("carried over from run {from}: its code has not changed since\n"));
            }
            (None, None) => {}
        }
        self.list_events(look).into_iter().for_each(|(_, event)| text.push_str(&event));
        if let Some(resolution) = find_resolution(&self.list_counting()) {
            let claimed = resolution
                .claimed
                .map(|line| format!("claimed by {} {} ago", name_author(line), look.format_age(line.at)));
            let confirmed = match resolution.confirmed.and_then(|line| line.run_id.as_ref()) {
                Some(run) => format!("confirmed by run {run}"),
                None => "not confirmed by a review yet".to_owned(),
            };
            let said: Vec<String> = claimed.into_iter().chain([confirmed]).collect();
            text.push_str(&format!("addressed: {}\n", said.join(", ")));
        }
        if let Some(earlier) = &self.undoes {
            text.push_str(&format!("flip-flop: it asks to undo what {earlier} asked for\n"));
        }
        text
    }

    /// Returns the decisions that count.
    fn list_counting(&self) -> Vec<Disposition> {
        let counting = self.history.iter().enumerate().filter(|(index, _)| !self.void.contains_key(index));
        counting.map(|(_, line)| line.clone()).collect()
    }

    /// Returns decisions, notes, snoozes, ratings and questions with their times, oldest first, each as one or more lines.
    fn list_events(&self, look: &TextOptions) -> Vec<(Time, String)> {
        let age = |at: &Time| look.format_age(*at);
        let mut decisions: Vec<(Time, String)> = Vec::new();
        for (index, line) in self.history.iter().enumerate() {
            let reason =
                if line.reason.is_empty() { String::new() } else { format!(": {}", format_masked(&line.reason)) };
            let who = line.describe_team_author().unwrap_or_else(|| line.acting_word().to_owned());
            let void = self.void.get(&index).map_or_else(String::new, |cause| format!(" ({})", cause.describe()));
            let taken_over = if line.is_taken_over() { " (about a report that its panel lists here)" } else { "" };
            let what = format!("{who} {} {} -> {}{taken_over}{void}{reason}", line.action, line.previous, line.status);
            decisions.push((line.at, format!("{} ago  {what}\n", age(&line.at))));
        }
        let mut events: Vec<(Time, String)> = Vec::new();
        for FindingNote { kind, actor, text: said, at, .. } in &self.notes {
            let what = match kind {
                NoteKind::Dispute => "disputed",
                NoteKind::Remark => "note",
            };
            let (who, said) = (name_actor(*actor), format_masked(said));
            events.push((*at, format!("{what} by {who} {} ago: {said}\n", age(at))));
        }
        for FindingSnooze { until, actor, at, .. } in &self.snoozes {
            let end = describe_snooze_end(until.as_ref(), &TimeZone::system());
            events.push((*at, format!("{end}, by {} {} ago\n", name_actor(*actor), age(at))));
        }
        for FindingRating { rating, previous, actor, at, .. } in &self.ratings {
            let who = name_actor(*actor);
            events.push((*at, format!("rated {rating}, before {previous}, by {who} {} ago\n", age(at))));
        }
        for line in &self.questions {
            let QuestionRequest { question, reviewer, at, .. } = &line.request;
            let (reviewer, question) = (sanitize_line(reviewer), format_masked(question));
            let mut event = format!("{reviewer} was asked {} ago: {question}\n", age(at));
            for part in describe_answer(line).lines() {
                event.push_str(&look.wrap(part, 2));
            }
            events.push((*at, event));
        }
        // Of the same moment, a decision comes before a note.
        weave_events(decisions, events)
    }

    fn encode_decision(&self, index: usize, line: &Disposition) -> Value {
        let mut value = json!(line);
        if let Some(cause) = self.void.get(&index) {
            value["void"] = json!(cause);
        }
        value
    }

    /// Returns the JSON keys beside `finding`: `history`, `notes`, `snoozes`, `ratings`, `questions`, `place`, `reported`, `first_reported`, `resolution`,
    /// `undoes`, `carried_over_from`.
    pub fn to_json_parts(&self) -> [(&'static str, Value); 11] {
        let counting = self.list_counting();
        let resolution = find_resolution(&counting).map(|resolution| {
            json!({
                "claimed_by": resolution.claimed.map(|line| line.actor),
                "claimed_at": resolution.claimed.map(|line| line.at),
                "confirmed_by_run": resolution.confirmed.and_then(|line| line.run_id.as_ref()),
                "confirmed_at": resolution.confirmed.map(|line| line.at),
            })
        });
        [
            (
                "history",
                self.history.iter().enumerate().map(|(index, line)| self.encode_decision(index, line)).collect(),
            ),
            ("notes", json!(self.notes)),
            ("snoozes", json!(self.snoozes)),
            ("ratings", json!(self.ratings)),
            ("questions", json!(self.questions)),
            ("place", self.place.to_json()),
            ("reported", self.reported.to_json()),
            ("first_reported", json!(self.first.as_ref().map(|first| json!({ "run_id": first.run, "at": first.at })))),
            ("resolution", resolution.unwrap_or_default()),
            ("undoes", json!(self.undoes)),
            ("carried_over_from", json!(self.carried_from)),
        ]
    }
}

/// Puts events between decisions by their keys, such as times, and returns all of them. The decisions keep their order, because
/// the clocks of several machines differ; a decision comes before an event with the same key.
pub fn weave_events<K: Ord, T>(decisions: Vec<(K, T)>, mut events: Vec<(K, T)>) -> Vec<(K, T)> {
    events.sort_by(|(one, _), (other, _)| one.cmp(other));
    let mut woven = Vec::with_capacity(decisions.len() + events.len());
    let mut events = events.into_iter().peekable();
    for decision in decisions {
        while let Some(event) = events.next_if(|(key, _)| *key < decision.0) {
            woven.push(event);
        }
        woven.push(decision);
    }
    woven.extend(events);
    woven
}

/// Describes the end of a snooze: `snoozed until 2026-12-01 00:00`, `snoozed until src/a.rs changes`, `not snoozed`.
pub fn describe_snooze_end(until: Option<&SnoozeEnd>, zone: &TimeZone) -> String {
    match until {
        None => "not snoozed".to_owned(),
        Some(SnoozeEnd::Time(time)) => {
            format!("snoozed until {}", time.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M"))
        }
        Some(SnoozeEnd::FileChange { path, .. }) => format!("snoozed until {} changes", format_masked(path)),
    }
}

/// Describes the result of a question in one or more lines with masked keys: `the reviewer holds to it: …`, `the reviewer withdraws it: …`.
pub fn describe_answer(line: &FindingQuestion) -> String {
    let (claim, said) = match &line.outcome {
        QuestionOutcome::Failure(reason) => ("no answer", reason),
        QuestionOutcome::Answer(QuestionAnswer { text, unstructured: true, .. }) => {
            ("the reviewer answers, without a verdict", text)
        }
        QuestionOutcome::Answer(QuestionAnswer { verdict, text, .. }) => {
            let claim = match verdict {
                QuestionVerdict::Stands => "the reviewer holds to it",
                QuestionVerdict::Explained => "the reviewer explains it",
                QuestionVerdict::Withdrawn => "the reviewer withdraws it",
            };
            (claim, text)
        }
    };
    sanitize_lines(&Mask::On.mask_words(&format!("{claim}: {said}")), 4)
}

/// Returns the words for the author of a decision in a sentence: who it was elsewhere, if the team sent it.
fn name_author(line: &Disposition) -> String {
    let here = || if line.ci { "a job of CI" } else { name_actor(line.actor) };
    line.describe_team_author().unwrap_or_else(|| here().to_owned())
}

/// Returns the word for an actor in a sentence.
fn name_actor(actor: Actor) -> &'static str {
    match actor {
        Actor::User => "the user",
        Actor::Assistant => "an assistant",
        Actor::Engine => "revdeck",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{FindingStatus, Rating, TriageAction};

    #[test]
    fn the_author_of_a_claim_is_named() {
        let bob = serde_json::json!({ "clock": [1, 0], "machine": "bob-1", "person": { "name": "Bob" } });
        for (actor, ci, team, expected) in [
            ("user", false, None, "the user"),
            ("user", true, None, "a job of CI"),
            ("assistant", false, None, "an assistant"),
            ("user", false, Some(&bob), "Bob on bob-1"),
            ("user", true, Some(&bob), "CI for Bob on bob-1"),
            ("assistant", false, Some(&bob), "the assistant of Bob on bob-1"),
        ] {
            let line: Disposition = serde_json::from_value(serde_json::json!({
                "finding_id": "f_0000000000000001", "status": "addressed", "previous": "open", "actor": actor, "ci": ci,
                "at": "2026-03-04T05:06:07Z", "action": "set", "group": "g", "team": team,
            }))
            .expect("a disposition");
            assert_eq!(name_author(&line), expected, "{actor}");
        }
    }

    #[test]
    fn what_happened_is_told_in_the_order_of_time() {
        let id: FindingId = "f_0000000000000001".parse().expect("an id");
        let run: RunId = "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0A".parse().expect("an id");
        let at = |minute: i64| Time::from_second(minute * 60).expect("a time");
        let decision =
            |minute: i64, status: FindingStatus, previous: FindingStatus, action: TriageAction| Disposition {
                finding_id: id.clone(),
                status,
                previous,
                actor: Actor::User,
                reason: String::new(),
                at: at(minute),
                action,
                group: String::new(),
                run_id: None,
                merged_into: None,
                team: None,
                ci: false,
            };
        let place = FindingLocation { run: run.clone(), path: "a.rs".to_owned(), lines: LineRange::new(1, 2) };
        let answer =
            QuestionAnswer { verdict: QuestionVerdict::Stands, text: "Yes.\nIt can.".to_owned(), unstructured: false };
        let story = FindingHistory {
            history: vec![
                decision(3, FindingStatus::Addressed, FindingStatus::Open, TriageAction::Set),
                decision(5, FindingStatus::Open, FindingStatus::Addressed, TriageAction::Undo),
            ],
            void: BTreeMap::new(),
            notes: vec![FindingNote {
                finding_id: id.clone(),
                kind: NoteKind::Remark,
                actor: Actor::Assistant,
                text: "ask Ann".to_owned(),
                at: at(1),
            }],
            snoozes: Vec::new(),
            ratings: vec![FindingRating {
                finding_id: id.clone(),
                rating: Rating { priority: Some(Priority::P3), kind: None },
                previous: Rating::default(),
                actor: Actor::User,
                at: at(2),
                action: TriageAction::Set,
                group: String::new(),
            }],
            questions: vec![FindingQuestion {
                request: QuestionRequest {
                    finding_id: id.clone(),
                    run_id: run.clone(),
                    question: "Why?".to_owned(),
                    reviewer: "m".to_owned(),
                    at: at(4),
                    reserved_tokens: 0,
                    reserved_microdollars: 0,
                    reported_as: None,
                },
                model: String::new(),
                outcome: QuestionOutcome::Answer(answer),
                tokens: crate::domain::Usage::default(),
                cost: 0.0,
                took_ms: 0,
            }],
            reported: place.clone(),
            place,
            undoes: None,
            first: None,
            carried_from: None,
            carried_review: None,
        };
        let look = TextOptions { color: false, ascii: false, width: Some(80), now: at(10) };
        insta::assert_snapshot!(story.to_text(&look), @"
        note by an assistant 9m ago: ask Ann
        rated p3, before as reported, by the user 8m ago
        7m ago  user set open -> addressed
        m was asked 6m ago: Why?
          the reviewer holds to it: Yes.
          It can.
        5m ago  user undo addressed -> open
        ");
    }
}
