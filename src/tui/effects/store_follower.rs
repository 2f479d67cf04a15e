//! Follows the store on a thread of its own, and sends each part of it that has changed.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::tz::TimeZone;

use super::super::event_source::MessageSender;
use super::super::message::AppMessage;
use super::super::new_answers::NewAnswers;
use super::super::repository_presence::RepositoryPresence;
use super::super::views::fix::FixIndex;
use super::spawn_worker;
use crate::config::ClockAndIds;
use crate::domain::RunId;
use crate::git::Repo;
use crate::masking::Mask;
use crate::runner::{FreshnessFacts, SnoozedFindings, WatchState};
use crate::store::{Store, StoreChange, StoreError, StoreView, WatcherStatus};

/// Time after which the locks of working runs are read again although the store has not changed: a killed worker
/// changes no file. Short for a person who waits for a run, and a few system calls each time.
const LOCK_CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// Sends the store's state, and again after every change. Without `repo`, no freshness is known.
pub(super) fn follow_store(
    (repo, presence): (Option<&Repo>, &Arc<RepositoryPresence>),
    (store, zone): (&Store, &TimeZone),
    written: &AtomicU64,
    messages: &MessageSender,
) {
    let teller = Arc::new(WatchStateNotifier {
        store: store.clone(),
        messages: messages.clone(),
        known: Mutex::default(),
        awaited: AtomicBool::new(false),
    });
    let mut tail = store.open_tail();
    presence.wake_at_change(tail.stopper());
    if let Some(repo) = repo {
        tail.watch_file(&repo.git_dir().join("logs").join("HEAD"));
    }
    let mut known: Option<Arc<StoreView>> = None;
    let mut facts = FreshnessFacts::default();
    let (mut fixes, mut delivered) = (0, store.delivered_bytes());
    let (mut working, mut pulses) = (Vec::new(), Vec::new());
    let (mut decided, mut questions) = ((0, 0), NewAnswers::new(store));
    let mut snoozed = SnoozedFindings::default();
    let mut team = None;
    let mut changed = StoreChange::Store;
    loop {
        if changed == StoreChange::Store {
            presence.look();
            if !read_view((repo, store), written, messages, (&mut known, &mut facts)) {
                return;
            }
            working = known.as_deref().map_or_else(Vec::new, working_runs);
            if !read_snoozed((repo, store), known.as_deref(), messages, &mut snoozed) {
                return;
            }
            let is_heard = read_fixes(store, messages, &mut fixes) && questions.send_new(store, messages);
            let is_heard = is_heard && send_changed(store.team_status(), &mut team, messages, AppMessage::Team);
            if !is_heard || !count_decisions(store, zone, messages, &mut decided) {
                return;
            }
        }
        // A change of the store hides a delivery that comes with it.
        let deliveries = store.delivered_bytes();
        if deliveries != std::mem::replace(&mut delivered, deliveries)
            && messages.send(AppMessage::LedgerDelivered).is_err()
        {
            return;
        }
        teller.notify_if_changed();
        let mut beating = store.heartbeats(&working);
        for (_, pulse) in &mut beating {
            pulse.tail = Mask::On.mask_text(None, &pulse.tail).into_owned();
        }
        if beating != pulses {
            pulses.clone_from(&beating);
            if messages.send(AppMessage::Pulses(beating)).is_err() {
                return;
            }
        }
        changed = loop {
            if working.is_empty() {
                break tail.wait();
            }
            if let Some(change) = tail.wait_at_most(LOCK_CHECK_INTERVAL) {
                break change;
            }
            if facts.refresh_locks(store) {
                if messages.send(AppMessage::Freshness(Arc::new(facts.clone()))).is_err() {
                    return;
                }
                // A dead worker has no heartbeat either.
                break StoreChange::Heartbeat;
            }
        };
        if changed == StoreChange::Stopped {
            return;
        }
    }
}

/// Returns the runs whose records have a working status.
fn working_runs(view: &StoreView) -> Vec<RunId> {
    let rows = (0..view.run_count()).map(|index| view.run(index));
    rows.filter(|run| run.status.is_working()).filter_map(|run| run.id.parse().ok()).collect()
}

/// Reads the changes of the store and sends the new view, after the facts about the freshness of its runs. Returns
/// false if the receiver is gone.
fn read_view(
    (repo, store): (Option<&Repo>, &Store),
    written: &AtomicU64,
    messages: &MessageSender,
    (known, facts): (&mut Option<Arc<StoreView>>, &mut FreshnessFacts),
) -> bool {
    let before = written.load(Ordering::Acquire);
    let read = match known.as_ref() {
        None => store.view(),
        Some(view) => store.refresh_view(view),
    };
    if let (Ok(view), Some(repo)) = (&read, repo) {
        let now = FreshnessFacts::read(repo, store, view);
        if now != *facts {
            facts.clone_from(&now);
            if messages.send(AppMessage::Freshness(Arc::new(now))).is_err() {
                return false;
            }
        }
    }
    match read {
        Ok(view) if known.as_ref().is_some_and(|known| Arc::ptr_eq(known, &view)) => true,
        Ok(view) => {
            *known = Some(Arc::clone(&view));
            messages.send(AppMessage::StoreRead { view, written: before }).is_ok()
        }
        Err(error) => messages.send(AppMessage::StoreTrouble(error.to_string())).is_ok(),
    }
}

/// Sends which findings are snoozed if that has changed. Returns false if the receiver is gone.
fn read_snoozed(
    (repo, store): (Option<&Repo>, &Store),
    view: Option<&StoreView>,
    messages: &MessageSender,
    known: &mut SnoozedFindings,
) -> bool {
    let (Some(repo), Some(view)) = (repo, view) else { return true };
    let read = SnoozedFindings::read(Some(repo), store, view, ClockAndIds::system().now());
    send_changed(read, known, messages, |snoozed| AppMessage::Snoozed(Arc::new(snoozed)))
}

/// Sends a part of the store if it differs from the known one, or the reason why it cannot be read. Returns false if the receiver
/// is gone.
fn send_changed<T: Clone + PartialEq>(
    read: Result<T, StoreError>,
    known: &mut T,
    messages: &MessageSender,
    to_message: impl FnOnce(T) -> AppMessage,
) -> bool {
    match read {
        Ok(part) if part == *known => true,
        Ok(part) => {
            known.clone_from(&part);
            messages.send(to_message(part)).is_ok()
        }
        Err(error) => messages.send(AppMessage::StoreTrouble(error.to_string())).is_ok(),
    }
}

/// Sends the fixes if `fixes.ndjson` has changed. Returns false if the receiver is gone.
fn read_fixes(store: &Store, messages: &MessageSender, known: &mut u64) -> bool {
    let length = store.fixes_bytes();
    if length == *known {
        return true;
    }
    match store.fixes() {
        Ok(fixes) => {
            *known = length;
            messages.send(AppMessage::Fixes(Arc::new(FixIndex::new(fixes)))).is_ok()
        }
        Err(error) => messages.send(AppMessage::StoreTrouble(error.to_string())).is_ok(),
    }
}

/// Sends the number of findings that the user decided today if it has changed. Returns false if the receiver is gone.
fn count_decisions(store: &Store, zone: &TimeZone, messages: &MessageSender, known: &mut (i64, usize)) -> bool {
    let now = ClockAndIds::system().now().to_zoned(zone.clone());
    let Ok(day) = now.start_of_day() else { return true };
    let Ok(count) = store.count_user_decisions(day.timestamp()) else { return true };
    let since = day.timestamp().as_millisecond();
    if std::mem::replace(known, (since, count)) == (since, count) {
        return true;
    }
    messages.send(AppMessage::DecidedToday { since, count }).is_ok()
}

/// Reports changes of the watcher state to the cockpit.
struct WatchStateNotifier {
    store: Store,
    messages: MessageSender,
    known: Mutex<WatchState>,
    /// A thread is waiting for the end of the current watcher, because a killed watcher changes no file.
    awaited: AtomicBool,
}

impl WatchStateNotifier {
    fn notify_if_changed(self: &Arc<Self>) {
        let Ok(state) = WatchState::read(&self.store, ClockAndIds::system().now()) else { return };
        let watched = state.watcher != WatcherStatus::None;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if *known != state {
            known.clone_from(&state);
            let _ = self.messages.send(AppMessage::Watch(state));
        }
        drop(known);
        if watched && !self.awaited.swap(true, Ordering::AcqRel) {
            let teller = Arc::clone(self);
            spawn_worker("watcher", self.messages.clone(), move || {
                let waited = teller.store.wait_for_watcher_end();
                teller.awaited.store(false, Ordering::Release);
                match waited {
                    Ok(()) => teller.notify_if_changed(),
                    Err(error) => tracing::warn!(%error, "the end of the watcher is not seen"),
                }
            });
        }
    }
}
