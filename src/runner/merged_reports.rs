//! Follows reports that a panel has merged into findings with other ids: whatever people write about such a report is about the
//! finding of the list. Decisions do the same in [`super::set_status`].

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::domain::{FindingId, FindingNote, FindingRating, FindingSnooze, Time, TriageAction};
use crate::store::{ListedReports, Store, StoreError, StoreView};

/// Returns the findings that stand for the problems of these ids, each once.
///
/// # Errors
///
/// If the decisions cannot be read.
pub fn follow_merged(store: &Store, view: &StoreView, ids: &[FindingId]) -> Result<Vec<FindingId>, StoreError> {
    let mut listed = store.follow_merged(view, ids)?;
    let mut known = HashSet::new();
    listed.retain(|id| known.insert(id.clone()));
    Ok(listed)
}

/// Stores a note about the problem of a finding. Returns the stored note, and `false` if the same author has left the same text
/// before.
///
/// # Errors
///
/// If the store cannot be locked, read or written.
pub fn write_note(store: &Store, note: FindingNote) -> Result<(FindingNote, bool), StoreError> {
    let note = if store.status(&note.finding_id)?.is_undecided() {
        note
    } else {
        let log = store.triage_log()?;
        FindingNote { finding_id: ListedReports::new(store, &log).follow(&note.finding_id)?, ..note }
    };
    let is_new = store.append_note(&note)?;
    Ok((note, is_new))
}

/// Stores for the findings of a panel's list what people have written since `since` about the reports that it merges: the last
/// snooze and the last rating, unless the finding has a later one, and all notes. `merged` has the reports, each with the
/// finding of the list. A second call stores nothing more.
///
/// The lines have the groups and times of the first ones, so that one undo takes back both.
///
/// # Errors
///
/// If the store cannot be locked, read or written.
pub fn take_over_remarks(store: &Store, merged: &[(FindingId, FindingId)], since: Time) -> Result<(), StoreError> {
    if merged.is_empty() {
        return Ok(());
    }
    store.snooze_findings(|log| {
        let facts = log.iter().map(|line| (&line.finding_id, line.at, line.action));
        let taken = find_taken(facts, merged, since).into_iter().filter_map(|(listed, TakenLine { at, own })| {
            let (line, previous) = (log[at].clone(), own.and_then(|own| log[own].until.clone()));
            let finding_id = listed.clone();
            let is_new = line.until != previous;
            is_new.then_some(FindingSnooze { finding_id, previous, action: TriageAction::Set, ..line })
        });
        Ok::<_, StoreError>(taken.collect())
    })?;
    store.rate_findings(|log| {
        let facts = log.iter().map(|line| (&line.finding_id, line.at, line.action));
        let taken = find_taken(facts, merged, since).into_iter().filter_map(|(listed, TakenLine { at, own })| {
            let (line, previous) = (log[at].clone(), own.map(|own| log[own].rating).unwrap_or_default());
            let finding_id = listed.clone();
            let is_new = line.rating != previous;
            is_new.then_some(FindingRating { finding_id, previous, action: TriageAction::Set, ..line })
        });
        Ok::<_, StoreError>(taken.collect())
    })?;
    let listed_as: HashMap<&FindingId, &FindingId> = merged.iter().map(|(report, listed)| (report, listed)).collect();
    let notes = store.notes_where(|note| note.at >= since && listed_as.contains_key(&note.finding_id))?;
    for note in notes {
        let Some(listed) = listed_as.get(&note.finding_id) else { continue };
        store.append_note(&FindingNote { finding_id: (*listed).clone(), ..note })?;
    }
    Ok(())
}

/// Lines of a log about a finding that takes one over, by their places.
struct TakenLine {
    /// The line that it takes over.
    at: usize,
    /// Last line about the finding itself.
    own: Option<usize>,
}

/// Returns the findings that take a line over from a log of these ids, times and actions. An undo says nothing about the finding.
fn find_taken<'a>(
    log: impl Iterator<Item = (&'a FindingId, Time, TriageAction)>,
    merged: &'a [(FindingId, FindingId)],
    since: Time,
) -> BTreeMap<&'a FindingId, TakenLine> {
    let last: HashMap<&FindingId, (usize, Time, TriageAction)> =
        log.enumerate().map(|(at, (finding, time, action))| (finding, (at, time, action))).collect();
    let mut taken: BTreeMap<&FindingId, TakenLine> = BTreeMap::new();
    for (report, listed) in merged {
        let Some(&(at, time, action)) = last.get(report) else { continue };
        let own = last.get(listed).map(|(own, ..)| *own);
        if time >= since && action != TriageAction::Undo && own.is_none_or(|own| own < at) {
            let newest = taken.entry(listed).or_insert(TakenLine { at, own });
            newest.at = at.max(newest.at);
        }
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Actor, Disposition, FindingStatus, NoteKind, Priority, Rating, RunId, SnoozeEnd};
    use crate::runner::fixture::RunnerFixture;
    use crate::store::rating_after;
    use crate::store::triage::{StepRecord, UndoDirection, UndoOutcome};

    #[test]
    fn a_list_takes_over_what_was_written_while_its_members_worked() {
        let fixture = RunnerFixture::new();
        let store = &fixture.services.store;
        let [report, early, listed, other] =
            ["report", "early", "listed", "other"].map(|code| FindingId::from_parts("X", "a.rs", code, 0));
        let time = |second: i64| Time::from_second(second).expect("a time");
        let snooze = |id: &FindingId, at: i64| FindingSnooze {
            finding_id: id.clone(),
            until: Some(SnoozeEnd::Time(time(1_000 + at))),
            previous: None,
            actor: Actor::User,
            at: time(at),
            action: TriageAction::Set,
            group: format!("t_{at}"),
        };
        let snoozes = vec![snooze(&early, 5), snooze(&report, 20)];
        store.snooze_findings(|_| Ok::<_, StoreError>(snoozes)).expect("stored");
        let rating = Rating { priority: Some(Priority::P1), ..Rating::default() };
        let rated = FindingRating {
            finding_id: report.clone(),
            rating,
            previous: Rating::default(),
            actor: Actor::User,
            at: time(21),
            action: TriageAction::Set,
            group: "t_21".to_owned(),
        };
        store.rate_findings(|_| Ok::<_, StoreError>(vec![rated])).expect("stored");
        let note = FindingNote {
            finding_id: report.clone(),
            kind: NoteKind::Dispute,
            actor: Actor::Assistant,
            text: "no".to_owned(),
            at: time(22),
        };
        assert!(store.append_note(&note).expect("stored"));
        let merged = [(report.clone(), listed.clone()), (early, other.clone())];
        for _ in 0..2 {
            take_over_remarks(store, &merged, time(10)).expect("stored");
        }
        let snoozes = store.snooze_log().expect("readable");
        assert_eq!((snoozes.len(), &snoozes[2].finding_id), (3, &listed), "the early one was about other code");
        assert_eq!(snoozes[2].until, snoozes[1].until);
        let ratings = store.rating_log().expect("readable");
        assert_eq!((ratings.len(), rating_after(&ratings, &listed)), (2, rating));
        assert_eq!(store.notes(&listed).expect("readable"), [FindingNote { finding_id: listed.clone(), ..note }]);
        assert_eq!(store.notes(&other).expect("readable"), []);
        let undo = |seconds| {
            store.undo_or_redo(UndoDirection::Undo, Actor::User, None, time(seconds), |_, step| {
                Ok(StepRecord { appended: step.lines.clone(), said: step.lines })
            })
        };
        let undone = undo(30).expect("undone");
        assert!(matches!(&undone, UndoOutcome::Rated(lines) if lines.len() == 2), "{undone:?}");
        let undone = undo(31).expect("undone");
        assert!(matches!(&undone, UndoOutcome::Snoozed(lines) if lines.len() == 2), "{undone:?}");
    }

    /// A person decides about many reports of a panel at once. Each is followed to its own finding; an id of two problems stays.
    #[test]
    fn many_reports_of_one_decision_are_followed_each_to_its_own_finding() {
        let fixture = RunnerFixture::new();
        let store = &fixture.services.store;
        let id = |code: &str| FindingId::from_parts("X", "a.rs", code, 0);
        let reports: Vec<FindingId> = (0..300).map(|number| id(&format!("report {number}"))).collect();
        let listed: Vec<FindingId> = (0..300).map(|number| id(&format!("listed {number}"))).collect();
        let shared = id("shared");
        let voices: Vec<[&FindingId; 2]> = reports.iter().map(|report| [report, &shared]).collect();
        let list: Vec<(&FindingId, &[&FindingId])> =
            listed.iter().zip(&voices).map(|(listed, ids)| (listed, ids.as_slice())).collect();
        let run = fixture.write_list(&list);
        let dismiss = |finding_id: &FindingId, run_id: Option<RunId>| Disposition {
            finding_id: finding_id.clone(),
            status: FindingStatus::Dismissed,
            previous: FindingStatus::Open,
            actor: Actor::User,
            reason: "intended".to_owned(),
            at: Time::UNIX_EPOCH,
            action: TriageAction::Set,
            group: "t_1".to_owned(),
            run_id,
            merged_into: None,
            team: None,
            ci: false,
        };
        let mut log: Vec<Disposition> = reports.iter().chain([&shared]).map(|report| dismiss(report, None)).collect();
        log.extend(listed.iter().map(|listed| dismiss(listed, Some(run.clone()))));
        let mut followed = ListedReports::new(store, &log);
        for (report, listed) in reports.iter().zip(&listed) {
            assert_eq!(&followed.follow(report).expect("readable"), listed);
            assert_eq!(&followed.follow(listed).expect("readable"), listed);
        }
        assert_eq!(followed.follow(&shared).expect("readable"), shared);
        let undone: Vec<Disposition> = log
            .iter()
            .map(|line| Disposition { status: FindingStatus::Open, action: TriageAction::Undo, ..line.clone() })
            .collect();
        let merged = store.merge_undone_reports(&log, &undone).expect("readable");
        let merged: Vec<(&FindingId, Option<&FindingId>)> =
            merged.iter().map(|line| (&line.finding_id, line.merged_into.as_ref())).collect();
        let expected: Vec<(&FindingId, Option<&FindingId>)> = reports.iter().zip(listed.iter().map(Some)).collect();
        assert_eq!(merged, expected, "all but the one of several problems");
        // A report that a later panel has listed as another finding gives way once.
        let later = fixture.write_list(&[(&listed[1], &[&reports[0]])]);
        let log = [log.as_slice(), &[dismiss(&listed[1], Some(later))]].concat();
        let merged = store.merge_undone_reports(&log, &undone[..1]).expect("readable");
        let into: Vec<Option<&FindingId>> = merged.iter().map(|line| line.merged_into.as_ref()).collect();
        assert_eq!(into, [Some(&listed[1])]);
    }
}
