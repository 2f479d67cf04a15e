//! Undo and redo of triage: pure functions over the lines of `triage.ndjson`, and the one step that reads these lines,
//! decides and appends.
//!
//! Undo and redo are plain dispositions with the group of the `set` they take back or set again, so that a reader who
//! knows nothing of them still sees the right status: the last line of a finding wins.

use std::collections::HashMap;

use super::{Store, StoreError};
use crate::domain::{Actor, Disposition, FindingId, FindingStatus, Fix, FixId, FixStatus, Time, TriageAction};

/// What undo or redo came to.
#[derive(Debug, Clone, PartialEq)]
pub enum UndoOutcome {
    /// There was nothing to take back, or to set again.
    Nothing,
    /// What was recorded.
    Decided(Vec<Disposition>),
    /// The step is that of a fix, whose files come before its findings: nothing is recorded.
    Fix(Box<Fix>),
}

impl Store {
    /// Decides about findings by what has been decided so far, and records it: one step under the store's lock, so that
    /// of two processes the second one sees what the first one did. Returns what was appended.
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

    /// Takes back the user's last triage. What an applied fix decided is left to whoever takes the patch out.
    pub fn undo(&self, at: Time) -> Result<UndoOutcome, StoreError> {
        self.undo_or_redo(FixStatus::Applied, |log| next_undo(log, at))
    }

    /// Sets again what was taken back last. What a fix decided that was taken out is left to whoever applies it again.
    pub fn redo(&self, at: Time) -> Result<UndoOutcome, StoreError> {
        self.undo_or_redo(FixStatus::Undone, |log| next_redo(log, at))
    }

    /// `of_files`: the status of a fix for which the step is more than one of its findings.
    fn undo_or_redo(
        &self,
        of_files: FixStatus,
        next: impl FnOnce(&[Disposition]) -> Option<Vec<Disposition>>,
    ) -> Result<UndoOutcome, StoreError> {
        if !self.triage_path().exists() {
            // Nothing was ever decided: no reason to make a store.
            return Ok(UndoOutcome::Nothing);
        }
        let mut of_fix = None;
        let lines = self.decide(|log| {
            let lines = next(log).unwrap_or_default();
            if let Some(id) = lines.first().and_then(|line| parse_fix_group(&line.group)) {
                of_fix = self.fix(&id)?.filter(|fix| fix.status == of_files);
                // An offer that was dropped cannot be what addresses a finding.
                if of_fix.is_some() || of_files == FixStatus::Undone {
                    return Ok(Vec::new());
                }
            }
            Ok::<_, StoreError>(lines)
        })?;
        Ok(match (of_fix, lines.is_empty()) {
            (Some(fix), _) => UndoOutcome::Fix(Box::new(fix)),
            (None, true) => UndoOutcome::Nothing,
            (None, false) => UndoOutcome::Decided(lines),
        })
    }
}

/// The group of what applying a fix decides; `step` tells its times apart.
pub fn fix_group(fix: &FixId, step: &str) -> String {
    format!("{fix}/{step}")
}

fn parse_fix_group(group: &str) -> Option<FixId> {
    group.split_once('/')?.0.parse().ok()
}

/// The lines that take back, or set again, what applying this fix decided last; none when there is nothing.
pub fn undo_or_redo_fix(log: &[Disposition], fix: &FixId, action: TriageAction, at: Time) -> Vec<Disposition> {
    let stacks = UndoStacks::from_log(log);
    let groups = if action == TriageAction::Undo { &stacks.done } else { &stacks.undone };
    let group = groups.iter().rev().find(|group| parse_fix_group(group).as_ref() == Some(fix));
    group.and_then(|group| stacks.build_step(log, group, action, at)).unwrap_or_default()
}

/// The status of a finding after these lines: the last one that is about it wins, open when there is none.
pub fn status_after(log: &[Disposition], id: &FindingId) -> FindingStatus {
    log.iter().rev().find(|line| line.finding_id == *id).map_or(FindingStatus::Open, |line| line.status)
}

/// The lines that take back the user's last triage that is not yet taken back; `None` when there is none.
///
/// Findings whose status changed since then by somebody else (a later review, an assistant) are left alone; a group
/// of which nothing else is left is passed over.
pub fn next_undo(log: &[Disposition], at: Time) -> Option<Vec<Disposition>> {
    let stacks = UndoStacks::from_log(log);
    stacks.done.iter().rev().find_map(|group| stacks.build_step(log, group, TriageAction::Undo, at))
}

/// The lines that set again what was taken back last; `None` when there is none, or when something was triaged since.
pub fn next_redo(log: &[Disposition], at: Time) -> Option<Vec<Disposition>> {
    let stacks = UndoStacks::from_log(log);
    stacks.undone.iter().rev().find_map(|group| stacks.build_step(log, group, TriageAction::Redo, at))
}

/// The user's groups in the order in which undo and redo walk them.
struct UndoStacks<'a> {
    done: Vec<&'a str>,
    undone: Vec<&'a str>,
    /// The last status of each finding, whoever set it.
    present: HashMap<&'a FindingId, FindingStatus>,
}

impl<'a> UndoStacks<'a> {
    fn from_log(log: &'a [Disposition]) -> Self {
        let (mut done, mut undone): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
        let mut present = HashMap::new();
        for line in log {
            present.insert(&line.finding_id, line.status);
            if line.actor != Actor::User {
                continue;
            }
            let group = line.group.as_str();
            let (from, to) = match line.action {
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
        Self { done, undone, present }
    }

    fn build_step(&self, log: &[Disposition], group: &str, action: TriageAction, at: Time) -> Option<Vec<Disposition>> {
        let sets = log
            .iter()
            .filter(|line| line.actor == Actor::User && line.action == TriageAction::Set && line.group == group);
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

/// Why the finding was given this status when it last was: a dismissal that comes back keeps its reason.
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
        // z takes back, y sets again; each step is what the finding then is.
        for key in "zzzzyyyyzz".chars() {
            let lines = if key == 'z' { next_undo(&log, at) } else { next_redo(&log, at) };
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
        // A new triage ends what could be set again.
        log.push(line('d', "4", Open, Dismissed, "x"));
        assert_eq!(next_redo(&log, at), None);
        assert_eq!(statuses(&next_undo(&log, at)), [("d".to_owned(), "open")]);
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
        let back = undo_or_redo_fix(&log, &fix, TriageAction::Undo, at);
        assert_eq!(statuses(&Some(back.clone())), [("a".to_owned(), "open")], "b is something else meanwhile");
        assert_eq!(undo_or_redo_fix(&log, &fix, TriageAction::Redo, at), []);
        log.extend(back);
        assert_eq!(undo_or_redo_fix(&log, &fix, TriageAction::Undo, at), []);
        assert_eq!(
            statuses(&Some(undo_or_redo_fix(&log, &fix, TriageAction::Redo, at))),
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
        assert_eq!(statuses(&next_undo(&log, Time::UNIX_EPOCH)), [("a".to_owned(), "open")]);
        assert_eq!(next_undo(&[], Time::UNIX_EPOCH), None);
    }
}
