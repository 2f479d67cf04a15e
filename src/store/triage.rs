//! Undo and redo of triage: pure functions over the lines of `triage.ndjson`, `snoozes.ndjson` and `ratings.ndjson`, and a
//! store operation that reads the lines, decides, and appends.
//!
//! An undo or redo is an ordinary disposition with the group of the `set` that it reverts or repeats. A reader that
//! ignores undo and redo still finds the right status, because the last line of a finding wins.

use std::collections::HashMap;

use super::{Store, StoreError};
use crate::domain::{
    Actor, Disposition, FindingId, FindingRating, FindingSnooze, FindingStatus, Fix, FixId, FixStatus, Rating,
    SnoozeEnd, Time, TriageAction,
};

/// Result of an undo or redo.
#[derive(Debug, Clone, PartialEq)]
pub enum UndoOutcome {
    /// There was nothing to undo or redo.
    Nothing,
    /// The recorded dispositions.
    Decided(Vec<Disposition>),
    /// The recorded snooze lines.
    Snoozed(Vec<FindingSnooze>),
    /// The recorded ratings.
    Rated(Vec<FindingRating>),
    /// The step belongs to a fix, whose files must be changed before its findings; nothing was recorded.
    Fix(Box<Fix>),
}

/// Lines that undo or redo a group.
#[derive(Debug, Clone, PartialEq)]
pub enum UndoStep {
    /// Lines for `triage.ndjson`.
    Decide(Vec<Disposition>),
    /// Lines for `snoozes.ndjson`.
    Snooze(Vec<FindingSnooze>),
    /// Lines for `ratings.ndjson`.
    Rate(Vec<FindingRating>),
}

/// All lines that undo and redo walk through, oldest first in each list.
#[derive(Debug, Clone, Copy, Default)]
pub struct TriageLog<'a> {
    /// Lines of `triage.ndjson`.
    pub decisions: &'a [Disposition],
    /// Lines of `snoozes.ndjson`.
    pub snoozes: &'a [FindingSnooze],
    /// Lines of `ratings.ndjson`.
    pub ratings: &'a [FindingRating],
}

/// Author and place of a line in the order of undo.
#[derive(Debug, Clone, Copy)]
struct LineStep<'a> {
    at: Time,
    actor: Actor,
    action: TriageAction,
    group: &'a str,
}

/// Line that gives a finding a value beside its status, and names the value before.
trait ValueLine: Clone {
    type Value: Clone + PartialEq;

    fn finding(&self) -> &FindingId;
    fn step(&self) -> LineStep<'_>;
    fn value(&self) -> &Self::Value;
    fn previous(&self) -> &Self::Value;
    /// Returns the line with another value.
    fn with(&self, value: Self::Value, previous: Self::Value, at: Time, action: TriageAction) -> Self;
}

impl ValueLine for FindingSnooze {
    type Value = Option<SnoozeEnd>;

    fn finding(&self) -> &FindingId {
        &self.finding_id
    }

    fn step(&self) -> LineStep<'_> {
        LineStep { at: self.at, actor: self.actor, action: self.action, group: &self.group }
    }

    fn value(&self) -> &Self::Value {
        &self.until
    }

    fn previous(&self) -> &Self::Value {
        &self.previous
    }

    fn with(&self, until: Self::Value, previous: Self::Value, at: Time, action: TriageAction) -> Self {
        Self { until, previous, at, action, ..self.clone() }
    }
}

impl ValueLine for FindingRating {
    type Value = Rating;

    fn finding(&self) -> &FindingId {
        &self.finding_id
    }

    fn step(&self) -> LineStep<'_> {
        LineStep { at: self.at, actor: self.actor, action: self.action, group: &self.group }
    }

    fn value(&self) -> &Self::Value {
        &self.rating
    }

    fn previous(&self) -> &Self::Value {
        &self.previous
    }

    fn with(&self, rating: Self::Value, previous: Self::Value, at: Time, action: TriageAction) -> Self {
        Self { rating, previous, at, action, ..self.clone() }
    }
}

impl Store {
    /// Calls `decide` with all dispositions so far and appends its result, under the store's lock, so that a second
    /// process sees the decision of the first. Returns the appended lines.
    ///
    /// # Errors
    /// Returns the error of `decide`, or an error when the store cannot be locked, read or written.
    pub fn decide<E: From<StoreError>>(
        &self,
        decide: impl FnOnce(&[Disposition]) -> Result<Vec<Disposition>, E>,
    ) -> Result<Vec<Disposition>, E> {
        self.with_lock_as(|_| {
            let lines = decide(&self.triage_log()?)?;
            self.append_dispositions(&lines)?;
            Ok(lines)
        })
    }

    /// Undoes the actor's own last triage. For the decisions of an applied fix, the caller must revert the patch.
    ///
    /// # Errors
    /// Returns an error when the store cannot be locked, read or written.
    pub fn undo(&self, actor: Actor, at: Time) -> Result<UndoOutcome, StoreError> {
        self.undo_or_redo(FixStatus::Applied, |log| next_undo(log, actor, at))
    }

    /// Redoes the actor's own last undone triage. For the decisions of a reverted fix, the caller must apply the patch again.
    ///
    /// # Errors
    /// Returns an error when the store cannot be locked, read or written.
    pub fn redo(&self, actor: Actor, at: Time) -> Result<UndoOutcome, StoreError> {
        self.undo_or_redo(FixStatus::Undone, |log| next_redo(log, actor, at))
    }

    /// Performs an undo or redo. `of_files` is the status of a fix for which the step also changes files.
    fn undo_or_redo(
        &self,
        of_files: FixStatus,
        next: impl FnOnce(TriageLog<'_>) -> Option<UndoStep>,
    ) -> Result<UndoOutcome, StoreError> {
        if [self.triage_path(), self.snoozes_path(), self.ratings_path()].iter().all(|path| !path.exists()) {
            // Nothing was ever decided, so the store need not be created.
            return Ok(UndoOutcome::Nothing);
        }
        self.with_lock(|_| {
            let (decisions, snoozes, ratings) = (self.triage_log()?, self.snooze_log()?, self.rating_log()?);
            let log = TriageLog { decisions: &decisions, snoozes: &snoozes, ratings: &ratings };
            let lines = match next(log) {
                None => return Ok(UndoOutcome::Nothing),
                Some(UndoStep::Snooze(lines)) => {
                    self.append_snoozes(&lines)?;
                    return Ok(UndoOutcome::Snoozed(lines));
                }
                Some(UndoStep::Rate(lines)) => {
                    self.append_ratings(&lines)?;
                    return Ok(UndoOutcome::Rated(lines));
                }
                Some(UndoStep::Decide(lines)) => lines,
            };
            if let Some(id) = lines.first().and_then(|line| parse_fix_group(&line.group)) {
                if let Some(fix) = self.fix(&id)?.filter(|fix| fix.status == of_files) {
                    return Ok(UndoOutcome::Fix(Box::new(fix)));
                }
                // A fix that was dropped cannot address a finding, so its redo records nothing.
                if of_files == FixStatus::Undone {
                    return Ok(UndoOutcome::Nothing);
                }
            }
            self.append_dispositions(&lines)?;
            Ok(UndoOutcome::Decided(lines))
        })
    }
}

/// Returns the group of the dispositions that applying a fix creates; `step` distinguishes repeated applications.
pub fn fix_group(fix: &FixId, step: &str) -> String {
    format!("{fix}/{step}")
}

fn parse_fix_group(group: &str) -> Option<FixId> {
    group.split_once('/')?.0.parse().ok()
}

/// Returns the lines that undo or redo the actor's last dispositions of this fix; empty when there are none.
pub fn undo_or_redo_fix(
    log: &[Disposition],
    fix: &FixId,
    actor: Actor,
    action: TriageAction,
    at: Time,
) -> Vec<Disposition> {
    let stacks = UndoStacks::from_log(TriageLog { decisions: log, ..TriageLog::default() }, actor);
    let groups = if action == TriageAction::Undo { &stacks.done } else { &stacks.undone };
    let group = groups.iter().rev().find(|group| parse_fix_group(group).as_ref() == Some(fix));
    group.and_then(|group| stacks.build_decisions(log, group, action, at)).unwrap_or_default()
}

/// Returns the status of a finding after these lines: the status of its last line, or open when there is none.
pub fn status_after(log: &[Disposition], id: &FindingId) -> FindingStatus {
    log.iter().rev().find(|line| line.finding_id == *id).map_or(FindingStatus::Open, |line| line.status)
}

/// Returns the lines that undo the actor's last triage that is not undone yet; `None` when there is none.
///
/// Findings whose status was changed since by another actor, such as a later review, are not changed. A
/// group without remaining findings is skipped.
pub fn next_undo(log: TriageLog<'_>, actor: Actor, at: Time) -> Option<UndoStep> {
    let stacks = UndoStacks::from_log(log, actor);
    stacks.done.iter().rev().find_map(|group| stacks.build_step(log, group, TriageAction::Undo, at))
}

/// Returns the lines that redo the actor's last undone triage; `None` when there is none, or when the actor triaged
/// since.
pub fn next_redo(log: TriageLog<'_>, actor: Actor, at: Time) -> Option<UndoStep> {
    let stacks = UndoStacks::from_log(log, actor);
    stacks.undone.iter().rev().find_map(|group| stacks.build_step(log, group, TriageAction::Redo, at))
}

/// The groups of one actor in the order in which undo and redo process them.
struct UndoStacks<'a> {
    actor: Actor,
    done: Vec<&'a str>,
    undone: Vec<&'a str>,
    /// Last status of each finding, set by any actor.
    present: HashMap<&'a FindingId, FindingStatus>,
}

impl<'a> UndoStacks<'a> {
    fn from_log(log: TriageLog<'a>, actor: Actor) -> Self {
        let (mut done, mut undone): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
        let present = log.decisions.iter().map(|line| (&line.finding_id, line.status)).collect();
        // What another machine has decided is undone there.
        let own = log.decisions.iter().filter(|line| line.team.is_none());
        let decided =
            own.map(|line| LineStep { at: line.at, actor: line.actor, action: line.action, group: &line.group });
        let mut steps: Vec<LineStep<'_>> = decided.collect();
        if !log.snoozes.is_empty() || !log.ratings.is_empty() {
            steps.extend(log.snoozes.iter().map(ValueLine::step));
            steps.extend(log.ratings.iter().map(ValueLine::step));
            // All files are in the order of their times; the sort keeps lines of one time in the order of their file.
            steps.sort_by_key(|step| step.at);
        }
        for LineStep { action, group, .. } in steps.into_iter().filter(|step| step.actor == actor) {
            let (from, to) = match action {
                TriageAction::Set => {
                    undone.clear();
                    if done.last() != Some(&group) {
                        done.push(group);
                    }
                    continue;
                }
                TriageAction::Undo => (&mut done, &mut undone),
                TriageAction::Redo => (&mut undone, &mut done),
            };
            from.retain(|other| *other != group);
            if to.last() != Some(&group) {
                to.push(group);
            }
        }
        Self { actor, done, undone, present }
    }

    /// Returns the lines that undo or redo a group; `None` when no finding of the group can be changed.
    fn build_step(&self, log: TriageLog<'_>, group: &str, action: TriageAction, at: Time) -> Option<UndoStep> {
        let snoozes = self.build_values(log.snoozes, group, action, at).map(UndoStep::Snooze);
        let ratings = || self.build_values(log.ratings, group, action, at).map(UndoStep::Rate);
        let decisions = || self.build_decisions(log.decisions, group, action, at).map(UndoStep::Decide);
        snoozes.or_else(ratings).or_else(decisions)
    }

    /// Returns the lines of one kind that undo or redo a group; `None` when it has none that can be changed.
    fn build_values<L: ValueLine>(&self, log: &[L], group: &str, action: TriageAction, at: Time) -> Option<Vec<L>> {
        let is_set = |line: &&L| {
            let step = line.step();
            step.actor == self.actor && step.action == TriageAction::Set && step.group == group
        };
        let sets: Vec<&L> = log.iter().filter(is_set).collect();
        if sets.is_empty() {
            return None;
        }
        let present: HashMap<&FindingId, &L::Value> = log.iter().map(|line| (line.finding(), line.value())).collect();
        let lines: Vec<L> = sets
            .into_iter()
            .filter_map(|set| {
                let (from, to) = match action {
                    TriageAction::Undo => (set.value(), set.previous()),
                    _ => (set.previous(), set.value()),
                };
                let is_unchanged = present.get(set.finding()) == Some(&from);
                is_unchanged.then(|| set.with(to.clone(), from.clone(), at, action))
            })
            .collect();
        (!lines.is_empty()).then_some(lines)
    }

    /// Returns the dispositions that undo or redo a group; `None` when no finding of the group can be changed.
    fn build_decisions(
        &self,
        log: &[Disposition],
        group: &str,
        action: TriageAction,
        at: Time,
    ) -> Option<Vec<Disposition>> {
        let sets = log
            .iter()
            .filter(|line| line.actor == self.actor && line.action == TriageAction::Set && line.group == group)
            .filter(|line| line.team.is_none());
        let lines: Vec<Disposition> = sets
            .filter_map(|set| {
                let (from, to) = match action {
                    TriageAction::Undo => (set.status, set.previous),
                    _ => (set.previous, set.status),
                };
                let unchanged = self.present.get(&set.finding_id) == Some(&from);
                unchanged.then(|| Disposition {
                    status: to,
                    previous: from,
                    reason: last_reason(log, &set.finding_id, to),
                    at,
                    action,
                    ..set.clone()
                })
            })
            .collect();
        (!lines.is_empty()).then_some(lines)
    }
}

/// Returns the reason of the last line with this status, so that a restored dismissal keeps its reason.
fn last_reason(log: &[Disposition], id: &FindingId, status: FindingStatus) -> String {
    let last = log.iter().rev().find(|line| line.finding_id == *id && line.status == status);
    last.map(|line| line.reason.clone()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(finding: char, group: &str, from: FindingStatus, to: FindingStatus, reason: &str) -> Disposition {
        Disposition {
            finding_id: format!("f_{}", String::from(finding).repeat(16)).parse().expect("an id"),
            status: to,
            previous: from,
            actor: Actor::User,
            reason: reason.into(),
            at: Time::UNIX_EPOCH,
            action: TriageAction::Set,
            group: group.into(),
            run_id: None,
            merged_into: None,
            team: None,
            ci: false,
        }
    }

    fn undo(log: &[Disposition], at: Time) -> Option<Vec<Disposition>> {
        next_undo(TriageLog { decisions: log, ..TriageLog::default() }, Actor::User, at).map(decisions)
    }

    fn redo(log: &[Disposition], at: Time) -> Option<Vec<Disposition>> {
        next_redo(TriageLog { decisions: log, ..TriageLog::default() }, Actor::User, at).map(decisions)
    }

    fn decisions(step: UndoStep) -> Vec<Disposition> {
        match step {
            UndoStep::Decide(lines) => lines,
            step => panic!("{step:?}"),
        }
    }

    fn statuses(lines: &Option<Vec<Disposition>>) -> Vec<(String, &'static str)> {
        let lines = lines.iter().flatten();
        lines.map(|line| (line.finding_id.as_str()[2..3].to_owned(), line.status.word())).collect()
    }

    #[test]
    fn undo_and_redo_walk_the_groups() {
        use FindingStatus::{Addressed, Dismissed, Open};
        let at = Time::UNIX_EPOCH;
        let mut log = vec![
            line('a', "1", Open, Dismissed, "noise"),
            line('b', "2", Open, Addressed, ""),
            line('c', "2", Open, Addressed, ""),
            line('a', "3", Dismissed, Addressed, "done"),
        ];
        let mut steps = Vec::new();
        // z is undo and y is redo; each step shows the resulting status of the finding.
        for key in "zzzzyyyyzz".chars() {
            let lines = if key == 'z' { undo(&log, at) } else { redo(&log, at) };
            steps.push(
                statuses(&lines).iter().map(|(id, status)| format!("{id} {status}")).collect::<Vec<_>>().join(", "),
            );
            log.extend(lines.into_iter().flatten());
        }
        assert_eq!(
            steps,
            [
                "a dismissed",
                "b open, c open",
                "a open",
                "",
                "a dismissed",
                "b addressed, c addressed",
                "a addressed",
                "",
                "a dismissed",
                "b open, c open"
            ]
        );
        assert_eq!(log[4].reason, "noise", "a dismissal that comes back keeps its reason");
        // A new triage ends the possible redos.
        log.push(line('d', "4", Open, Dismissed, "x"));
        assert_eq!(redo(&log, at), None);
        assert_eq!(statuses(&undo(&log, at)), [("d".to_owned(), "open")]);
    }

    #[test]
    fn what_a_fix_decided_goes_back_and_forth_with_it() {
        use FindingStatus::{Addressed, Dismissed, Open};
        let fix: FixId = format!("fx_{:026}", 7).parse().expect("an id");
        let at = Time::UNIX_EPOCH;
        let group = fix_group(&fix, "t_1");
        let mut log = vec![
            line('a', &group, Open, Addressed, ""),
            line('b', &group, Open, Addressed, ""),
            line('c', "t_2", Open, Dismissed, "x"),
            line('b', "t_3", Addressed, Dismissed, "x"),
        ];
        let back = undo_or_redo_fix(&log, &fix, Actor::User, TriageAction::Undo, at);
        assert_eq!(statuses(&Some(back.clone())), [("a".to_owned(), "open")], "b is something else meanwhile");
        assert_eq!(undo_or_redo_fix(&log, &fix, Actor::User, TriageAction::Redo, at), []);
        log.extend(back);
        assert_eq!(undo_or_redo_fix(&log, &fix, Actor::User, TriageAction::Undo, at), []);
        assert_eq!(
            statuses(&Some(undo_or_redo_fix(&log, &fix, Actor::User, TriageAction::Redo, at))),
            [("a".to_owned(), "addressed")]
        );
        assert_eq!(parse_fix_group("t_2"), None);
    }

    #[test]
    fn what_a_review_found_since_is_not_undone() {
        use FindingStatus::{Addressed, Open, Unresolved};
        let mut seen_again = line('b', "e", Addressed, Unresolved, "seen again");
        seen_again.actor = Actor::Engine;
        let log = vec![line('a', "1", Open, Addressed, ""), line('b', "2", Open, Addressed, ""), seen_again];
        assert_eq!(statuses(&undo(&log, Time::UNIX_EPOCH)), [("a".to_owned(), "open")]);
        assert_eq!(undo(&[], Time::UNIX_EPOCH), None);
    }

    #[test]
    fn snoozes_and_decisions_are_undone_in_one_order() {
        let time = |seconds: i64| Time::from_second(seconds).expect("a time");
        let at = |seconds: i64, line: Disposition| Disposition { at: time(seconds), ..line };
        use FindingStatus::{Addressed, Dismissed, Open};
        let log = vec![at(1, line('a', "1", Open, Addressed, "")), at(3, line('c', "3", Open, Dismissed, "intended"))];
        let until = SnoozeEnd::Time(time(900));
        let mut snoozes = vec![FindingSnooze {
            finding_id: log[0].finding_id.clone(),
            until: Some(until.clone()),
            previous: None,
            actor: Actor::User,
            at: time(2),
            action: TriageAction::Set,
            group: "2".into(),
        }];
        let undo = |decisions: &[Disposition], snoozes: &[FindingSnooze], at| {
            next_undo(TriageLog { decisions, snoozes, ratings: &[] }, Actor::User, time(at))
        };
        let Some(UndoStep::Decide(last)) = undo(&log, &snoozes, 4) else { panic!("a decision") };
        assert_eq!(last[0].group, "3");
        let log = [log, last].concat();
        let Some(UndoStep::Snooze(lines)) = undo(&log, &snoozes, 5) else { panic!("a snooze") };
        assert_eq!((&lines[0].until, &lines[0].previous), (&None, &Some(until)));
        snoozes.extend(lines);
        assert!(matches!(undo(&log, &snoozes, 6), Some(UndoStep::Decide(lines)) if lines[0].group == "1"));
        let all = TriageLog { decisions: &log, snoozes: &snoozes, ratings: &[] };
        assert!(matches!(next_redo(all, Actor::User, time(6)), Some(UndoStep::Snooze(_))));
        assert_eq!(undo(&[], &[], 6), None);
    }

    #[test]
    fn ratings_are_undone_with_decisions_and_only_while_they_hold() {
        use FindingStatus::{Addressed, Open};
        let time = |seconds: i64| Time::from_second(seconds).expect("a time");
        let decisions = [Disposition { at: time(2), ..line('a', "2", Open, Addressed, "") }];
        let rating = |seconds, group: &str, rating: Rating, previous: Rating| FindingRating {
            finding_id: decisions[0].finding_id.clone(),
            rating,
            previous,
            actor: Actor::User,
            at: time(seconds),
            action: TriageAction::Set,
            group: group.into(),
        };
        let high = Rating { priority: Some(crate::domain::Priority::P0), kind: None };
        let low = Rating { priority: Some(crate::domain::Priority::P3), kind: None };
        let mut ratings = vec![rating(1, "1", high, Rating::default()), rating(3, "3", low, high)];
        let mut values = Vec::new();
        for seconds in 4..7 {
            let log = TriageLog { decisions: &decisions, snoozes: &[], ratings: &ratings };
            match next_undo(log, Actor::User, time(seconds)).expect("a step") {
                UndoStep::Rate(lines) => {
                    values.extend(lines.iter().map(|line| (line.group.clone(), line.rating)));
                    ratings.extend(lines);
                }
                UndoStep::Decide(lines) => {
                    assert_eq!(lines[0].group, "2");
                    break;
                }
                UndoStep::Snooze(lines) => panic!("{lines:?}"),
            }
        }
        assert_eq!(values, [("3".to_owned(), high)]);
        // The rating of another step since then stays.
        ratings.push(FindingRating { actor: Actor::Engine, ..rating(9, "9", low, high) });
        let log = TriageLog { decisions: &[], snoozes: &[], ratings: &ratings };
        assert_eq!(next_undo(log, Actor::User, time(10)), None);
    }
}
