//! Writes to the store what the user decides, in the order of the keys.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender};

use super::super::event_source::MessageSender;
use super::super::message::{AppMessage, TriageOrder, TriageOrderItem};
use crate::config::ClockAndIds;
use crate::domain::{Actor, Disposition, FindingId, FindingNote, FindingStatus, NoteKind, RatingWish, TriageAction};
use crate::git::Repo;
use crate::policy;
use crate::runner::{DecidedFinding, SnoozeWish, find_decided, rate_findings, snooze_findings, write_note};
use crate::store::triage::UndoOutcome;
use crate::store::{ListedReports, Store, StoreError};

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
    let now = ambient.now();
    let email = || repo.and_then(Repo::user_email);
    let step = match order {
        TriageOrder::Set(lines) => {
            let group = ambient.new_run_id().as_str().replacen("ar_", "t_", 1);
            // Another process may have decided since the screen was drawn, so the status is taken from the store.
            let disposition = |previous: FindingStatus, finding: &FindingId, line: &TriageOrderItem| {
                policy::may_set(Actor::User, previous, line.status)
                    .map_err(|refusal| TriageRefusal(refusal.to_string()))?;
                Ok::<_, TriageRefusal>(Disposition {
                    finding_id: finding.clone(),
                    status: line.status,
                    previous,
                    actor: Actor::User,
                    reason: line.reason.clone(),
                    at: now,
                    action: TriageAction::Set,
                    group: group.clone(),
                    run_id: None,
                    merged_into: None,
                    team: None,
                    ci: false,
                })
            };
            let decided = store.decide(|log| {
                let mut known = HashSet::new();
                let mut stored = Vec::new();
                let mut reports = ListedReports::new(store, log);
                for line in lines {
                    let DecidedFinding { finding_id, merge } =
                        find_decided(&mut reports, &line.finding, (line.status, now))?;
                    stored.extend(merge);
                    if known.insert(finding_id.clone()) {
                        let previous = reports.last_lines().status_of(&finding_id);
                        stored.push(disposition(previous, &finding_id, line)?);
                    }
                }
                Ok::<_, TriageRefusal>(stored)
            });
            decided.map(|mut lines| {
                lines.retain(|line| line.merged_into.is_none());
                UndoOutcome::Decided(lines)
            })
        }
        TriageOrder::Undo => store.undo(Actor::User, email().as_deref(), now).map_err(TriageRefusal::from),
        TriageOrder::Redo => store.redo(Actor::User, email().as_deref(), now).map_err(TriageRefusal::from),
    };
    step.map_err(|TriageRefusal(why)| why)
}

/// Reason why a decision was not recorded.
struct TriageRefusal(String);

impl From<StoreError> for TriageRefusal {
    fn from(error: StoreError) -> Self {
        Self(error.to_string())
    }
}
