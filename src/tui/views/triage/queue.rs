//! The findings of a triage session in their order, what became of each, and the steps that can be taken back.

use std::collections::VecDeque;

use crate::domain::{Disposition, FindingRating, FindingSnooze, FindingStatus, FixId};

/// Verdict of the user about a finding in this session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TriageVerdict {
    /// The finding is marked as addressed.
    Addressed,
    /// The finding is dismissed with this reason.
    Dismissed(String),
    /// A patch was applied; `None` until its id is known.
    Patched(Option<FixId>),
    /// The user passed over the finding.
    Later,
    /// The finding is snoozed: it is for later, until a time or a change of its file.
    Snoozed,
    /// The user has ended the snooze of the finding: it is for later, in the list of the others.
    SnoozeEnded,
}

impl TriageVerdict {
    /// Returns true for a verdict that the store records as a snooze.
    fn is_snooze(&self) -> bool {
        matches!(self, Self::Snoozed | Self::SnoozeEnded)
    }
}

/// Progress of a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VerdictState {
    /// Requested; the store has not answered.
    Requested,
    /// Stored, or nothing has to be stored.
    Stored,
    /// Stored, and the user asked to take it back.
    TakingBack,
}

/// Finding of the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TriageItem {
    pub finding: String,
    pub verdict: Option<(TriageVerdict, VerdictState)>,
}

/// Numbers of the findings with each verdict; requested verdicts do not count before they are stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct VerdictCounts {
    /// Addressed, patched ones included.
    pub addressed: usize,
    /// Addressed by a patch.
    pub patched: usize,
    pub dismissed: usize,
    pub later: usize,
}

impl VerdictCounts {
    /// Returns the number of findings with a verdict.
    pub fn total(&self) -> usize {
        self.addressed + self.dismissed + self.later
    }
}

/// Step of the session, by the index of its finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TriageStep {
    /// The finding got the verdict that it has.
    Verdict(usize),
    /// The store has another priority or kind of the finding.
    Rating(usize),
}

impl TriageStep {
    fn finding(self) -> usize {
        match self {
            Self::Verdict(index) | Self::Rating(index) => index,
        }
    }
}

/// Lines that the store has written for an undo or a redo.
#[derive(Debug, Clone, Copy)]
pub enum StoredLines<'a> {
    Decisions(&'a [Disposition]),
    Snoozes(&'a [FindingSnooze]),
    Ratings(&'a [FindingRating]),
}

impl<'a> StoredLines<'a> {
    /// Lists the ids of the findings.
    pub fn findings(self) -> Vec<&'a str> {
        match self {
            Self::Decisions(lines) => lines.iter().map(|line| line.finding_id.as_str()).collect(),
            Self::Snoozes(lines) => lines.iter().map(|line| line.finding_id.as_str()).collect(),
            Self::Ratings(lines) => lines.iter().map(|line| line.finding_id.as_str()).collect(),
        }
    }
}

/// Answer to the wish to take the last step back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepBack {
    /// No step is left.
    Nothing,
    /// The last step is still being stored.
    Busy,
    /// Only the session knew the verdict; it is gone.
    Done,
    /// The store has to undo the last decision, snooze or rating.
    UndoDecision,
    /// The patch has to be taken out of the files.
    UndoFix(FixId),
}

/// Findings of the session and the position in them.
#[derive(Debug, Clone, Default)]
pub struct TriageQueue {
    items: Vec<TriageItem>,
    /// Index of the shown finding; the number of findings when the closing page is shown.
    at: usize,
    /// Verdicts and ratings, oldest first.
    steps: Vec<TriageStep>,
    /// Findings whose patches are being applied, in the order of the requests.
    applying: VecDeque<usize>,
    /// Steps that the store is undoing, in the order of the requests.
    undoing: VecDeque<TriageStep>,
}

impl TriageQueue {
    /// Creates a session that begins at finding `start` (0-based).
    pub fn new(findings: Vec<String>, start: usize) -> Self {
        let items = findings.into_iter().map(|finding| TriageItem { finding, verdict: None }).collect();
        Self { items, at: start, ..Self::default() }
    }

    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Returns the position of the shown finding, 1-based; `None` on the closing page.
    pub fn position(&self) -> Option<usize> {
        (self.at < self.items.len()).then_some(self.at + 1)
    }

    /// Returns the shown finding; `None` on the closing page.
    pub fn current(&self) -> Option<&TriageItem> {
        self.items.get(self.at)
    }

    /// Returns the findings with a verdict in the order in which they got it.
    pub fn decided(&self) -> impl DoubleEndedIterator<Item = &TriageItem> {
        self.steps.iter().filter_map(|step| match step {
            TriageStep::Verdict(index) => self.items.get(*index),
            TriageStep::Rating(_) => None,
        })
    }

    /// Counts the verdicts.
    pub fn counts(&self) -> VerdictCounts {
        let mut counts = VerdictCounts::default();
        for item in self.decided() {
            match &item.verdict {
                Some((_, VerdictState::Requested)) | None => {}
                Some((TriageVerdict::Addressed, _)) => counts.addressed += 1,
                Some((TriageVerdict::Patched(_), _)) => {
                    (counts.addressed, counts.patched) = (counts.addressed + 1, counts.patched + 1)
                }
                Some((TriageVerdict::Dismissed(_), _)) => counts.dismissed += 1,
                Some((TriageVerdict::Later | TriageVerdict::Snoozed | TriageVerdict::SnoozeEnded, _)) => {
                    counts.later += 1;
                }
            }
        }
        counts
    }

    /// Records a verdict about the shown finding and goes on to the next finding without one, else to the closing page.
    pub fn record(&mut self, verdict: TriageVerdict) {
        let Some(item) = self.items.get_mut(self.at) else { return };
        let state = match &verdict {
            TriageVerdict::Later => VerdictState::Stored,
            TriageVerdict::Patched(_) => {
                self.applying.push_back(self.at);
                VerdictState::Requested
            }
            TriageVerdict::Addressed
            | TriageVerdict::Dismissed(_)
            | TriageVerdict::Snoozed
            | TriageVerdict::SnoozeEnded => VerdictState::Requested,
        };
        item.verdict = Some((verdict, state));
        self.push_verdict(self.at);
        self.at = self.next_open(self.at).unwrap_or(self.items.len());
    }

    /// Makes the verdict about a finding the last step.
    fn push_verdict(&mut self, index: usize) {
        self.drop_verdict(index);
        self.steps.push(TriageStep::Verdict(index));
    }

    fn drop_verdict(&mut self, index: usize) {
        self.steps.retain(|step| *step != TriageStep::Verdict(index));
    }

    /// Records that the store has rated a finding of the session. The store has taken the verdicts that it has not answered yet
    /// after the rating.
    pub fn record_rating(&mut self, finding: &str) {
        let Some(index) = self.find(finding) else { return };
        let is_answered = |step: &TriageStep| {
            let TriageStep::Verdict(index) = step else { return true };
            !matches!(self.items[*index].verdict, Some((_, VerdictState::Requested)))
        };
        let at = self.steps.iter().rposition(is_answered).map_or(0, |last| last + 1);
        self.steps.insert(at, TriageStep::Rating(index));
    }

    /// Returns the next finding without a verdict after index `from`, from the start again after the last.
    fn next_open(&self, from: usize) -> Option<usize> {
        let after = from + 1..self.items.len();
        after.chain(0..from.min(self.items.len())).find(|index| self.items[*index].verdict.is_none())
    }

    /// Goes to the next finding, with or without a verdict; after the last to the closing page.
    pub fn go_forward(&mut self) {
        self.at = (self.at + 1).min(self.items.len());
    }

    /// Goes to the previous finding, with or without a verdict.
    pub fn go_back(&mut self) {
        self.at = self.at.saturating_sub(1);
    }

    /// Takes the last verdict or rating back as far as the session can, and goes to its finding.
    pub fn step_back(&mut self) -> StepBack {
        let is_taken_back = |step: &TriageStep| match step {
            TriageStep::Verdict(index) => {
                self.items[*index].verdict.as_ref().is_none_or(|(_, state)| *state == VerdictState::TakingBack)
            }
            TriageStep::Rating(_) => false,
        };
        let Some(at) = self.steps.iter().rposition(|step| !is_taken_back(step)) else { return StepBack::Nothing };
        let last = self.steps[at];
        let index = last.finding();
        if let TriageStep::Rating(_) = last {
            self.steps.remove(at);
            self.undoing.push_back(last);
            self.at = index;
            return StepBack::UndoDecision;
        }
        let Some((verdict, state)) = &mut self.items[index].verdict else { return StepBack::Nothing };
        let step = match verdict {
            TriageVerdict::Patched(None) => return StepBack::Busy,
            TriageVerdict::Later => StepBack::Done,
            TriageVerdict::Patched(Some(fix)) => StepBack::UndoFix(fix.clone()),
            TriageVerdict::Addressed
            | TriageVerdict::Dismissed(_)
            | TriageVerdict::Snoozed
            | TriageVerdict::SnoozeEnded => {
                self.undoing.push_back(last);
                StepBack::UndoDecision
            }
        };
        *state = VerdictState::TakingBack;
        if step == StepBack::Done {
            self.forget(index);
        }
        self.at = index;
        step
    }

    /// Applies the answer of the store to a decision; goes back to a finding whose decision was not stored.
    pub fn apply_decision(&mut self, findings: &[&str], is_stored: bool) {
        for finding in findings {
            let Some(index) = self.find(finding) else { continue };
            let Some((TriageVerdict::Addressed | TriageVerdict::Dismissed(_), state @ VerdictState::Requested)) =
                &mut self.items[index].verdict
            else {
                continue;
            };
            match is_stored {
                true => *state = VerdictState::Stored,
                false => self.forget(index),
            }
        }
    }

    /// Applies the answer of the store to the snooze that was requested first and has none: `None` if it was not stored, else
    /// whether it has changed anything. Goes back to a finding whose snooze was not stored.
    pub fn apply_snooze(&mut self, has_changed: Option<bool>) {
        let is_requested = |index: &usize| {
            let verdict = self.items[*index].verdict.as_ref();
            verdict.is_some_and(|(verdict, state)| verdict.is_snooze() && *state == VerdictState::Requested)
        };
        let Some(index) = self.steps.iter().map(|step| step.finding()).find(is_requested) else { return };
        match has_changed {
            Some(true) => {
                if let Some((_, state)) = &mut self.items[index].verdict {
                    *state = VerdictState::Stored;
                }
            }
            // The store has no step to undo.
            Some(false) => self.items[index].verdict = Some((TriageVerdict::Later, VerdictState::Stored)),
            None => self.forget(index),
        }
    }

    /// Applies the answer of the store to an undo: the lines that it stored, none if it failed.
    pub fn apply_undo(&mut self, changed: StoredLines<'_>) {
        let asked = self.undoing.pop_front();
        match changed {
            StoredLines::Decisions(lines) => self.take_over(lines),
            StoredLines::Snoozes(lines) => {
                for index in lines.iter().filter_map(|line| self.find(line.finding_id.as_str())).collect::<Vec<_>>() {
                    if self.items[index].verdict.as_ref().is_some_and(|(verdict, _)| verdict.is_snooze()) {
                        self.items[index].verdict = None;
                        self.drop_verdict(index);
                    }
                }
            }
            StoredLines::Ratings(_) => {}
        }
        match asked {
            Some(TriageStep::Verdict(index)) => {
                if let Some((_, state @ VerdictState::TakingBack)) = &mut self.items[index].verdict {
                    *state = VerdictState::Stored;
                }
            }
            // The rating stands.
            Some(step @ TriageStep::Rating(_)) if !matches!(changed, StoredLines::Ratings(_)) => self.steps.push(step),
            Some(TriageStep::Rating(_)) | None => {}
        }
    }

    /// Applies the answer of the store to a redo: the lines that it stored. Goes on from a shown finding that has its verdict
    /// again.
    pub fn apply_redo(&mut self, changed: StoredLines<'_>) {
        let findings = changed.findings();
        match changed {
            StoredLines::Decisions(lines) => self.take_over(lines),
            StoredLines::Snoozes(lines) => {
                for line in lines {
                    let Some(index) = self.find(line.finding_id.as_str()) else { continue };
                    let is_snoozed = line.until.is_some();
                    let verdict = if is_snoozed { TriageVerdict::Snoozed } else { TriageVerdict::SnoozeEnded };
                    self.items[index].verdict = Some((verdict, VerdictState::Stored));
                    self.push_verdict(index);
                }
            }
            StoredLines::Ratings(_) => findings.iter().for_each(|finding| self.record_rating(finding)),
        }
        let is_decided = matches!(changed, StoredLines::Decisions(_) | StoredLines::Snoozes(_));
        let is_decided_again = self
            .current()
            .is_some_and(|item| is_decided && item.verdict.is_some() && findings.contains(&item.finding.as_str()));
        if is_decided_again {
            self.at = self.next_open(self.at).unwrap_or(self.items.len());
        }
    }

    /// Takes the verdicts of stored lines over.
    fn take_over(&mut self, changed: &[Disposition]) {
        for line in changed {
            let Some(index) = self.find(line.finding_id.as_str()) else { continue };
            if matches!(self.items[index].verdict, Some((_, VerdictState::Requested))) {
                // The user has decided again since, and the store answers that next.
                continue;
            }
            self.items[index].verdict = match line.status {
                FindingStatus::Addressed => Some((TriageVerdict::Addressed, VerdictState::Stored)),
                FindingStatus::Dismissed => Some((TriageVerdict::Dismissed(line.reason.clone()), VerdictState::Stored)),
                _ => None,
            };
            self.drop_verdict(index);
            if self.items[index].verdict.is_some() {
                self.push_verdict(index);
            }
        }
    }

    /// Applies the answer to a request to apply a patch: the id of the applied fix, `None` if it failed.
    pub fn apply_patched(&mut self, fix: Option<FixId>) {
        let Some(index) = self.applying.pop_front() else { return };
        match (&mut self.items[index].verdict, fix) {
            (Some((TriageVerdict::Patched(known), state)), Some(fix)) => {
                (*known, *state) = (Some(fix), VerdictState::Stored);
            }
            _ => self.forget(index),
        }
    }

    /// Applies the answer to a request to take a patch out of the files.
    pub fn apply_unpatched(&mut self, fix: &FixId, is_done: bool) {
        let is_it =
            |item: &TriageItem| matches!(&item.verdict, Some((TriageVerdict::Patched(Some(id)), _)) if id == fix);
        let Some(index) = self.items.iter().position(is_it) else { return };
        if is_done {
            self.items[index].verdict = None;
            self.drop_verdict(index);
        } else if let Some((_, state @ VerdictState::TakingBack)) = &mut self.items[index].verdict {
            *state = VerdictState::Stored;
        }
    }

    /// Returns the findings that are shown next: the one after a verdict, the neighbours, and the one that `u` brings
    /// back. The shown one comes first.
    pub fn upcoming(&self) -> Vec<&str> {
        let mut indices = vec![self.at];
        let next = self.next_open(self.at);
        indices.extend(next);
        indices.extend(next.and_then(|next| self.next_open(next)));
        indices.push(self.at + 1);
        indices.extend(self.at.checked_sub(1));
        indices.extend(self.steps.last().map(|step| step.finding()));
        let mut findings: Vec<&str> = Vec::with_capacity(indices.len());
        for item in indices.into_iter().filter_map(|index| self.items.get(index)) {
            if !findings.contains(&item.finding.as_str()) {
                findings.push(&item.finding);
            }
        }
        findings
    }

    fn find(&self, finding: &str) -> Option<usize> {
        self.items.iter().position(|item| item.finding == finding)
    }

    /// Forgets a verdict that was not stored and goes back to its finding.
    fn forget(&mut self, index: usize) {
        self.items[index].verdict = None;
        self.drop_verdict(index);
        self.at = index;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Actor, Time, TriageAction};

    const A: &str = "f_00000000000000aa";
    const B: &str = "f_00000000000000bb";
    const C: &str = "f_00000000000000cc";
    const D: &str = "f_00000000000000dd";
    const OTHER: &str = "f_00000000000000ff";

    fn queue(findings: &[&str], start: usize) -> TriageQueue {
        TriageQueue::new(findings.iter().map(|id| (*id).to_owned()).collect(), start)
    }

    fn shown(queue: &TriageQueue) -> Option<&str> {
        queue.current().map(|item| item.finding.as_str())
    }

    /// Returns the lines that undo a decision about a finding.
    fn undone(finding: &str, status: FindingStatus) -> Vec<Disposition> {
        let line = Disposition {
            finding_id: finding.parse().expect("an id"),
            status,
            previous: FindingStatus::Dismissed,
            actor: Actor::User,
            reason: String::new(),
            at: Time::UNIX_EPOCH,
            action: TriageAction::Undo,
            group: String::new(),
            run_id: None,
            merged_into: None,
            team: None,
            ci: false,
        };
        vec![line]
    }

    fn snoozed(finding: &str) -> FindingSnooze {
        let line = serde_json::json!({
            "finding_id": finding, "actor": "user", "at": Time::UNIX_EPOCH, "action": "undo", "group": "",
        });
        serde_json::from_value(line).expect("a snooze")
    }

    fn rated(finding: &str) -> FindingRating {
        let line = serde_json::json!({
            "finding_id": finding, "actor": "user", "at": Time::UNIX_EPOCH, "action": "undo", "group": "",
        });
        serde_json::from_value(line).expect("a rating")
    }

    fn fix() -> FixId {
        format!("fx_{:026}", 7).parse().expect("an id")
    }

    #[test]
    fn a_verdict_goes_on_to_the_next_finding_without_one_and_then_to_the_closing_page() {
        let mut queue = queue(&[A, B, C], 1);
        queue.record(TriageVerdict::Addressed);
        assert_eq!(shown(&queue), Some(C));
        queue.record(TriageVerdict::Later);
        assert_eq!(shown(&queue), Some(A), "from the start again");
        assert_eq!(queue.counts(), VerdictCounts { later: 1, ..VerdictCounts::default() }, "nothing is stored yet");
        queue.apply_decision(&[B], true);
        queue.record(TriageVerdict::Dismissed("generated".to_owned()));
        queue.apply_decision(&[A], true);
        assert_eq!((shown(&queue), queue.position()), (None, None));
        assert_eq!(queue.counts(), VerdictCounts { addressed: 1, patched: 0, dismissed: 1, later: 1 });
        queue.go_back();
        assert_eq!((shown(&queue), queue.position()), (Some(C), Some(3)));
        queue.go_forward();
        queue.go_forward();
        assert_eq!(queue.position(), None);
    }

    #[test]
    fn steps_are_taken_back_from_the_last_to_the_first() {
        let mut queue = queue(&[A, B, C], 0);
        queue.record(TriageVerdict::Addressed);
        queue.record(TriageVerdict::Patched(None));
        assert_eq!(queue.step_back(), StepBack::Busy);
        queue.apply_patched(Some(fix()));
        queue.record(TriageVerdict::Later);
        queue.apply_decision(&[A], true);
        assert_eq!((queue.step_back(), shown(&queue)), (StepBack::Done, Some(C)));
        assert_eq!((queue.step_back(), shown(&queue)), (StepBack::UndoFix(fix()), Some(B)));
        assert_eq!(queue.counts().patched, 1, "it counts until it is out of the files");
        queue.apply_unpatched(&fix(), true);
        assert_eq!((queue.step_back(), shown(&queue)), (StepBack::UndoDecision, Some(A)));
        queue.apply_undo(StoredLines::Decisions(&undone(A, FindingStatus::Open)));
        assert_eq!((queue.step_back(), queue.counts()), (StepBack::Nothing, VerdictCounts::default()));
    }

    #[test]
    fn snoozes_and_ratings_are_taken_back_in_their_turn() {
        use StoredLines::{Decisions, Ratings, Snoozes};
        let mut queue = queue(&[A, B, C], 0);
        queue.record(TriageVerdict::Addressed);
        queue.apply_decision(&[A], true);
        queue.record_rating(B);
        queue.record(TriageVerdict::Snoozed);
        assert_eq!(queue.counts().later, 0, "nothing is stored yet");
        queue.apply_snooze(Some(true));
        assert_eq!((queue.counts().later, shown(&queue)), (1, Some(C)));
        assert_eq!((queue.step_back(), shown(&queue)), (StepBack::UndoDecision, Some(B)));
        queue.apply_undo(Snoozes(&[snoozed(B)]));
        assert_eq!((queue.counts().later, queue.counts().addressed), (0, 1));
        queue.apply_redo(Snoozes(&[snoozed(B)]));
        assert_eq!((queue.counts().later, shown(&queue)), (1, Some(C)));
        assert_eq!(queue.step_back(), StepBack::UndoDecision);
        queue.apply_undo(Snoozes(&[snoozed(B)]));
        // The rating of B, and not the verdict about A, is the step before.
        assert_eq!((queue.step_back(), shown(&queue)), (StepBack::UndoDecision, Some(B)));
        queue.apply_undo(Decisions(&[]));
        assert_eq!((queue.step_back(), shown(&queue)), (StepBack::UndoDecision, Some(B)), "it was not undone");
        queue.apply_undo(Ratings(&[rated(B)]));
        queue.apply_redo(Ratings(&[rated(B)]));
        assert_eq!((queue.step_back(), shown(&queue)), (StepBack::UndoDecision, Some(B)), "it was redone");
        queue.apply_undo(Ratings(&[rated(B)]));
        assert_eq!((queue.step_back(), shown(&queue)), (StepBack::UndoDecision, Some(A)));
    }

    #[test]
    fn a_snooze_that_changes_nothing_is_no_step_of_the_store_and_one_that_fails_brings_its_finding_back() {
        let mut queue = queue(&[A, B], 0);
        queue.record(TriageVerdict::Snoozed);
        queue.apply_snooze(None);
        assert_eq!((queue.step_back(), shown(&queue)), (StepBack::Nothing, Some(A)));
        queue.record(TriageVerdict::Snoozed);
        queue.apply_snooze(Some(false));
        assert_eq!((queue.counts().later, queue.step_back(), shown(&queue)), (1, StepBack::Done, Some(A)));
        // A rating that the store answers while a verdict waits was written before it.
        queue.record(TriageVerdict::Addressed);
        queue.record_rating(A);
        queue.apply_decision(&[A], true);
        assert_eq!(queue.step_back(), StepBack::UndoDecision);
        queue.apply_undo(StoredLines::Decisions(&undone(A, FindingStatus::Open)));
        assert_eq!(queue.counts(), VerdictCounts::default());
        assert_eq!(queue.step_back(), StepBack::UndoDecision);
        queue.apply_undo(StoredLines::Ratings(&[rated(A)]));
        assert_eq!(queue.step_back(), StepBack::Nothing);
    }

    #[test]
    fn a_failure_brings_the_finding_or_the_verdict_back() {
        let mut queue = queue(&[A, B, C], 0);
        queue.record(TriageVerdict::Addressed);
        queue.apply_decision(&[A], false);
        assert_eq!(shown(&queue), Some(A));
        assert_eq!(queue.step_back(), StepBack::Nothing);
        queue.record(TriageVerdict::Patched(None));
        queue.apply_patched(None);
        assert_eq!(shown(&queue), Some(A));
        queue.record(TriageVerdict::Patched(None));
        queue.apply_patched(Some(fix()));
        assert_eq!(queue.step_back(), StepBack::UndoFix(fix()));
        queue.apply_unpatched(&fix(), false);
        assert_eq!(queue.step_back(), StepBack::UndoFix(fix()), "it can be tried again");
        queue.apply_unpatched(&fix(), true);
        queue.record(TriageVerdict::Addressed);
        queue.apply_decision(&[A], true);
        assert_eq!(queue.step_back(), StepBack::UndoDecision);
        // Another process had decided since, so the store undid that.
        queue.apply_undo(StoredLines::Decisions(&undone(OTHER, FindingStatus::Open)));
        assert_eq!((queue.counts().addressed, queue.step_back()), (1, StepBack::UndoDecision));
        queue.apply_undo(StoredLines::Decisions(&[]));
        assert_eq!(queue.counts().addressed, 1);
    }

    #[test]
    fn a_second_verdict_about_a_finding_is_taken_back_to_the_first() {
        let mut queue = queue(&[A, B], 0);
        queue.record(TriageVerdict::Addressed);
        queue.apply_decision(&[A], true);
        queue.go_back();
        queue.record(TriageVerdict::Dismissed("intended".to_owned()));
        queue.apply_decision(&[A], true);
        assert_eq!((queue.counts().dismissed, queue.counts().total()), (1, 1));
        assert_eq!(queue.step_back(), StepBack::UndoDecision);
        queue.apply_undo(StoredLines::Decisions(&undone(A, FindingStatus::Addressed)));
        assert_eq!((queue.counts().addressed, queue.counts().total()), (1, 1));
        assert_eq!((queue.step_back(), shown(&queue)), (StepBack::UndoDecision, Some(A)));
    }

    #[test]
    fn what_comes_next_is_known_ahead() {
        let mut queue = queue(&[A, B, C, D], 1);
        assert_eq!(queue.upcoming(), [B, C, D, A]);
        queue.record(TriageVerdict::Later);
        queue.record(TriageVerdict::Later);
        assert_eq!(queue.upcoming(), [D, A, C]);
        assert_eq!(TriageQueue::default().upcoming(), Vec::<&str>::new());
    }
}
