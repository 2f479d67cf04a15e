//! Writes to the store what the user decides, in the order of the keys.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender};

use super::super::event_source::MessageSender;
use super::super::message::{AppMessage, TriageOrder, UserVerdict};
use crate::config::ClockAndIds;
use crate::domain::{Actor, Disposition, FindingId, FindingNote, NoteKind, RatingWish};
use crate::git::Repo;
use crate::policy::Refusal;
use crate::runner::{
    SetStatusError, SnoozeWish, StatusChange, rate_findings, set_status, snooze_findings, undo_or_redo_triage,
    write_note,
};
use crate::store::Store;
use crate::store::triage::{UndoDirection, UndoOutcome};

/// Writes of the user to the store, executed in the order of their keys.
pub(super) enum StoreWrite {
    Triage(TriageOrder),
    Note {
        finding: FindingId,
        text: String,
    },
    Snooze {
        findings: Vec<FindingId>,
        wish: SnoozeWish,
    },
    Rate {
        findings: Vec<FindingId>,
        wish: RatingWish,
    },
    /// Tells when all before it is written.
    Flush(Sender<()>),
}

/// Serves the user's writes: stores each first and reports it afterwards.
pub(super) fn serve_writes(
    (repo, store): (Option<&Repo>, &Store),
    ambient: &ClockAndIds,
    writes: &Receiver<StoreWrite>,
    written: &AtomicU64,
    messages: &MessageSender,
) {
    while let Ok(write) = writes.recv() {
        let message = match write {
            StoreWrite::Triage(order) => {
                let result = apply_triage_order((repo, store), ambient, &order);
                let written = match &result {
                    Ok(UndoOutcome::Decided(_)) => written.fetch_add(1, Ordering::AcqRel) + 1,
                    _ => written.load(Ordering::Acquire),
                };
                AppMessage::Triaged { order, result, written }
            }
            StoreWrite::Note { finding, text } => {
                let (kind, actor, at) = (NoteKind::Remark, Actor::User, ambient.now());
                let note = FindingNote { finding_id: finding, kind, actor, text, at };
                AppMessage::Noted(write_note(store, note).map(|(_, is_new)| is_new).map_err(|error| error.to_string()))
            }
            StoreWrite::Rate { findings, wish } => {
                let rated = rate_findings(store, ambient, &findings, wish, Actor::User);
                AppMessage::Rated(rated.map_err(|error| error.to_string()))
            }
            StoreWrite::Snooze { findings, wish } => {
                let snoozed = match repo {
                    Some(repo) => snooze_findings((repo, store), ambient, &findings, wish, Actor::User)
                        .map_err(|error| error.to_string()),
                    None => Err("the repository cannot be opened".to_owned()),
                };
                AppMessage::SnoozeStored(snoozed)
            }
            StoreWrite::Flush(done) => {
                let _ = done.send(());
                continue;
            }
        };
        if messages.send(message).is_err() {
            return;
        }
    }
}

fn apply_triage_order(
    (repo, store): (Option<&Repo>, &Store),
    ambient: &ClockAndIds,
    order: &TriageOrder,
) -> Result<UndoOutcome, String> {
    let step = |direction: UndoDirection| {
        let done = undo_or_redo_triage((repo, store), ambient, direction, Actor::User);
        done.map_err(|error| error.to_string())
    };
    match order {
        TriageOrder::Set { findings, verdict } => {
            decide((repo, store), ambient, findings, verdict).map(UndoOutcome::Decided)
        }
        TriageOrder::Undo => step(UndoDirection::Undo),
        TriageOrder::Redo => step(UndoDirection::Redo),
    }
}

/// Stores a verdict. Another process may have decided since the screen was drawn: a finding that has the status already is
/// passed over.
fn decide(
    places: (Option<&Repo>, &Store),
    ambient: &ClockAndIds,
    findings: &[FindingId],
    UserVerdict { status, reason }: &UserVerdict,
) -> Result<Vec<Disposition>, String> {
    if findings.is_empty() {
        return Ok(Vec::new());
    }
    let change = StatusChange { actor: Actor::User, status: *status, reason };
    match set_status(places, ambient, findings, change) {
        Ok(lines) if lines.is_empty() => Err(Refusal::AlreadySo(*status).to_string()),
        Ok(lines) => Ok(lines),
        Err(SetStatusError::Refused { refusal, .. }) => Err(refusal.to_string()),
        Err(SetStatusError::Store(error)) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::domain::{FindingStatus, Time};
    use crate::store::RepoInfo;

    #[test]
    fn a_verdict_passes_over_findings_that_have_it_already() {
        use FindingStatus::{Addressed, Dismissed, Open};
        let folder = tempfile::tempdir().expect("a folder");
        let info = RepoInfo { version: 1, key: "k".into(), name: "billing".into(), common_dir: "/billing".into() };
        let store = Store::open(folder.path(), info).expect("a store");
        let ambient = ClockAndIds::fixed(Time::UNIX_EPOCH, Duration::from_secs(1));
        let ids = ["one", "two"].map(|code| FindingId::from_parts("X", "a.rs", code, 0));
        let order = |ids: &[FindingId], status: FindingStatus, reason: &str| TriageOrder::Set {
            findings: ids.to_vec(),
            verdict: UserVerdict { status, reason: reason.to_owned() },
        };
        let apply = |order: TriageOrder| match apply_triage_order((None, &store), &ambient, &order)? {
            UndoOutcome::Decided(lines) => {
                let said = lines.into_iter().map(|line| (line.finding_id, line.previous, line.status, line.reason));
                Ok(said.collect::<Vec<_>>())
            }
            other => Err(format!("{other:?}")),
        };
        let dismissed =
            |id: &FindingId, from: FindingStatus| (id.clone(), from, Dismissed, "not\u{fffd} so".to_owned());
        assert_eq!(apply(order(&ids[..1], Addressed, "")), Ok(vec![(ids[0].clone(), Open, Addressed, String::new())]));
        let both = apply(order(&ids, Dismissed, "not\u{1b} so"));
        assert_eq!(both, Ok(vec![dismissed(&ids[0], Addressed), dismissed(&ids[1], Open)]));
        assert_eq!(apply(order(&ids, Dismissed, "so")), Err("it is dismissed already".to_owned()));
        assert_eq!(apply(TriageOrder::Undo).map(|lines| lines.len()), Ok(2), "one step");
    }
}
