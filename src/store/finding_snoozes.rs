//! Stores snoozes of findings in `snoozes.ndjson`. The file is append-only; the last line of a finding holds. `undo`
//! takes snoozes back in one order with decisions, see [`super::triage`].

use std::collections::HashMap;

use super::extents::TrackedFile;
use super::{Store, StoreError, files, lines};
use crate::domain::{FindingId, FindingSnooze, SnoozeEnd};

impl Store {
    /// Calls `decide` with all snooze lines so far and appends its result, under the store's lock. Returns the appended
    /// lines.
    ///
    /// # Errors
    /// Returns the error of `decide`, or an error when the store cannot be locked, read or written.
    pub fn snooze_findings<E: From<StoreError>>(
        &self,
        decide: impl FnOnce(&[FindingSnooze]) -> Result<Vec<FindingSnooze>, E>,
    ) -> Result<Vec<FindingSnooze>, E> {
        self.with_lock_as(|_| {
            let lines = decide(&self.snooze_log()?)?;
            self.append_snoozes(&lines)?;
            Ok(lines)
        })
    }

    /// Appends lines in one write. The caller holds the store's lock.
    pub(super) fn append_snoozes(&self, snoozes: &[FindingSnooze]) -> Result<(), StoreError> {
        let bytes = lines::encode("a snooze of a finding", snoozes)?;
        if bytes.is_empty() { Ok(()) } else { self.append_tracked(TrackedFile::Snoozes, &bytes) }
    }

    /// Returns every readable line, oldest first.
    ///
    /// # Errors
    /// Returns an error when `snoozes.ndjson` cannot be read.
    pub fn snooze_log(&self) -> Result<Vec<FindingSnooze>, StoreError> {
        lines::read_all(&self.snoozes_path())
    }

    /// Returns the snooze of each finding that has one, in the order of their lines; it may be over.
    ///
    /// # Errors
    /// Returns an error when `snoozes.ndjson` cannot be read.
    pub fn snoozes(&self) -> Result<Vec<FindingSnooze>, StoreError> {
        let log = self.snooze_log()?;
        let last: HashMap<&FindingId, usize> =
            log.iter().enumerate().map(|(index, snooze)| (&snooze.finding_id, index)).collect();
        let mut last: Vec<usize> = last.into_values().filter(|index| log[*index].until.is_some()).collect();
        last.sort_unstable();
        Ok(last.into_iter().map(|index| log[index].clone()).collect())
    }

    /// Returns the length of `snoozes.ndjson` in bytes; 0 without the file.
    pub fn snoozes_bytes(&self) -> u64 {
        files::length_at(&self.snoozes_path())
    }
}

/// Returns the end of a finding's snooze after these lines; `None` when it is not snoozed.
pub fn snooze_after(log: &[FindingSnooze], id: &FindingId) -> Option<SnoozeEnd> {
    log.iter().rev().find(|line| line.finding_id == *id).and_then(|line| line.until.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Actor, Disposition, Time, TriageAction};
    use crate::store::RepoInfo;
    use crate::store::triage::UndoDirection::{Redo, Undo};
    use crate::store::triage::{StepDraft, StepRecord, UndoOutcome};

    fn snooze(n: u8, until: Option<i64>, group: &str, at: i64) -> FindingSnooze {
        let time = |seconds| Time::from_second(seconds).expect("a time");
        FindingSnooze {
            finding_id: format!("f_00000000000000{n:02}").parse().expect("an id"),
            until: until.map(|seconds| SnoozeEnd::Time(time(seconds))),
            previous: None,
            actor: Actor::User,
            at: time(at),
            action: TriageAction::Set,
            group: group.to_owned(),
        }
    }

    /// Outside of a team, no decision of others stands.
    fn alone(_: &[Disposition], step: StepDraft) -> Result<StepRecord, StoreError> {
        Ok(StepRecord { appended: step.lines.clone(), said: step.lines })
    }

    fn store(folder: &std::path::Path) -> Store {
        let info = RepoInfo { version: 1, key: "k".into(), name: "n".into(), common_dir: "/n".into() };
        Store::open(folder, info).expect("a store")
    }

    #[test]
    fn the_last_line_of_a_finding_holds_and_undo_takes_it_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = store(folder.path());
        assert_eq!((store.snoozes().expect("none"), store.snoozes_bytes()), (Vec::new(), 0));
        let (one, two) = (snooze(1, Some(100), "t_1", 1), snooze(2, Some(200), "t_1", 1));
        let longer = FindingSnooze { previous: one.until.clone(), ..snooze(1, Some(300), "t_2", 2) };
        for lines in [vec![one.clone(), two.clone()], vec![longer.clone()]] {
            store.snooze_findings(|_| Ok::<_, StoreError>(lines)).expect("stored");
        }
        assert_eq!(store.snoozes().expect("both"), [two.clone(), longer.clone()]);
        let now = Time::from_second(3).expect("a time");
        let step = |direction| store.undo_or_redo(direction, Actor::User, None, now, alone);
        let Ok(UndoOutcome::Snoozed(lines)) = step(Undo) else { panic!("a snooze is undone") };
        assert_eq!(lines.iter().map(|line| &line.until).collect::<Vec<_>>(), [&one.until]);
        assert!(matches!(step(Undo), Ok(UndoOutcome::Snoozed(lines)) if lines.len() == 2));
        assert_eq!(store.snoozes().expect("none"), []);
        assert_eq!(step(Undo).expect("nothing is left"), UndoOutcome::Nothing);
        assert!(matches!(step(Redo), Ok(UndoOutcome::Snoozed(lines)) if lines.len() == 2));
        assert_eq!(store.snoozes().expect("both").len(), 2);
        assert!(store.verify().expect("verified").is_clean());
    }
}
