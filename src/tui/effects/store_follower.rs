//! Follows the store on a thread of its own, and sends each part of it that has changed.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::tz::TimeZone;

use super::super::event_source::MessageSender;
use super::super::message::AppMessage;
use super::super::new_answers::NewAnswers;
use super::super::repository_presence::RepositoryPresence;
use super::super::views::fix::FixIndex;
use super::dead_workers::{DeadWorkers, FREE_FOR};
use super::spawn_worker;
use crate::config::ClockAndIds;
use crate::domain::RunId;
use crate::git::Repo;
use crate::masking::Mask;
use crate::runner::{FreshnessFacts, SnoozedFindings, WatchState};
use crate::store::{Store, StoreChange, StoreError, StoreView, TeamStatus, WatcherStatus};

/// Time after which the locks of working runs are read again although no record has changed: a killed worker changes no
/// file, and the heartbeats of other runs tell nothing of it. Short for a person who waits for a run, and a few system calls each
/// time.
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
        let (root, git_dir) = (repo.root(), repo.git_dir());
        // Nothing else tells that the repository is moved or deleted while nobody presses a key.
        tail.watch_beside(&[&git_dir.join("logs").join("HEAD"), &root, &git_dir]);
    }
    let (mut sent, mut delivered) = (SentParts::new(store), store.delivered_bytes());
    let mut viewed = store.viewed_bytes();
    let (mut working, mut pulses) = (Vec::new(), Vec::new());
    let (mut dead, mut locks_read) = (DeadWorkers::default(), Instant::now());
    let mut changed = StoreChange::Store;
    loop {
        if changed == StoreChange::Store {
            presence.look();
            if !sent.send_changes((repo, store, zone), written, messages) {
                return;
            }
            working = sent.view.as_deref().map_or_else(Vec::new, working_runs);
            locks_read = Instant::now();
        }
        // A change of the store hides a delivery and marks that come with it.
        let deliveries = store.delivered_bytes();
        if deliveries != std::mem::replace(&mut delivered, deliveries)
            && messages.send(AppMessage::LedgerDelivered).is_err()
        {
            return;
        }
        if !send_viewed(store, messages, &mut viewed) {
            return;
        }
        teller.notify_if_changed();
        let gone = dead.update(sent.facts.runs_without_worker(), Instant::now());
        if !gone.is_empty() && messages.send(AppMessage::WorkersGone(gone)).is_err() {
            return;
        }
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
            let patience = if dead.has_suspect() { FREE_FOR } else { LOCK_CHECK_INTERVAL };
            let next = tail.wait_at_most(patience);
            if let Some(change) = next.filter(|_| !needs_lock_check(next, locks_read.elapsed(), patience)) {
                break change;
            }
            locks_read = Instant::now();
            if sent.facts.refresh_locks(store) {
                if messages.send(AppMessage::Freshness(Arc::new(sent.facts.clone()))).is_err() {
                    return;
                }
                // A dead worker has no heartbeat either.
                break StoreChange::Heartbeat;
            }
            if next.is_some() || dead.is_due(Instant::now()) {
                break StoreChange::Heartbeat;
            }
        };
        if changed == StoreChange::Stopped {
            return;
        }
    }
}

/// Returns true if the locks of the working runs must be read after a wait: nothing has changed, or only heartbeats have and the
/// locks were read `patience` ago or earlier.
fn needs_lock_check(change: Option<StoreChange>, since_last: Duration, patience: Duration) -> bool {
    match change {
        None => true,
        Some(StoreChange::Heartbeat) => since_last >= patience,
        // After a change of the store they are read anyway, and the other changes are rare.
        Some(StoreChange::Store | StoreChange::Delivery | StoreChange::Viewed | StoreChange::Stopped) => false,
    }
}

/// Parts of the store as they were sent last.
struct SentParts {
    view: Option<Arc<StoreView>>,
    facts: FreshnessFacts,
    snoozed: SnoozedFindings,
    /// Length of `fixes.ndjson` in bytes.
    fixes: u64,
    questions: NewAnswers,
    team: Option<TeamStatus>,
    /// Beginning of the day in milliseconds since 1970, and the number of findings that the user has decided since.
    decided: (i64, usize),
    /// A part could not be read. The cockpit says so until it gets the next view.
    is_troubled: bool,
}

impl SentParts {
    fn new(store: &Store) -> Self {
        Self {
            view: None,
            facts: FreshnessFacts::default(),
            snoozed: SnoozedFindings::default(),
            fixes: 0,
            questions: NewAnswers::new(store),
            team: None,
            decided: (0, 0),
            is_troubled: false,
        }
    }

    /// Sends the parts that have changed, and why a part cannot be read. Returns false if the receiver is gone.
    fn send_changes(
        &mut self,
        (repo, store, zone): (Option<&Repo>, &Store, &TimeZone),
        written: &AtomicU64,
        messages: &MessageSender,
    ) -> bool {
        let results = [
            self.read_view((repo, store), written, messages),
            read_snoozed((repo, store), self.view.as_deref(), messages, &mut self.snoozed),
            read_fixes(store, messages, &mut self.fixes),
            self.questions.send_new(store, messages),
            send_changed(store.team_status(), &mut self.team, messages, AppMessage::Team),
        ];
        let mut trouble = None;
        for result in results {
            match result {
                Ok(true) => {}
                Ok(false) => return false,
                Err(error) => trouble = Some(error.to_string()),
            }
        }
        self.is_troubled = trouble.is_some();
        let is_heard = trouble.is_none_or(|trouble| messages.send(AppMessage::StoreTrouble(trouble)).is_ok());
        is_heard && count_decisions(store, zone, messages, &mut self.decided)
    }

    /// Reads the changes of the store and sends the new view, after the facts about the freshness of its runs. After a trouble it
    /// sends a view that has not changed, too, so that the message goes away. Returns false if the receiver is gone.
    fn read_view(
        &mut self,
        (repo, store): (Option<&Repo>, &Store),
        written: &AtomicU64,
        messages: &MessageSender,
    ) -> Result<bool, StoreError> {
        let before = written.load(Ordering::Acquire);
        let view = match &self.view {
            None => store.view(),
            Some(view) => store.refresh_view(view),
        }?;
        if let Some(repo) = repo {
            let now = FreshnessFacts::read(repo, store, &view);
            if now != self.facts {
                self.facts.clone_from(&now);
                if messages.send(AppMessage::Freshness(Arc::new(now))).is_err() {
                    return Ok(false);
                }
            }
        }
        let is_known = self.view.as_ref().is_some_and(|known| Arc::ptr_eq(known, &view));
        if is_known && !self.is_troubled {
            return Ok(true);
        }
        self.view = Some(Arc::clone(&view));
        Ok(messages.send(AppMessage::StoreRead { view, written: before }).is_ok())
    }
}

/// Returns the runs whose records have a working status.
fn working_runs(view: &StoreView) -> Vec<RunId> {
    let rows = (0..view.run_count()).map(|index| view.run(index));
    rows.filter(|run| run.status.is_working()).filter_map(|run| run.id.parse().ok()).collect()
}

/// Sends which findings are snoozed if that has changed. Returns false if the receiver is gone.
fn read_snoozed(
    (repo, store): (Option<&Repo>, &Store),
    view: Option<&StoreView>,
    messages: &MessageSender,
    known: &mut SnoozedFindings,
) -> Result<bool, StoreError> {
    let (Some(repo), Some(view)) = (repo, view) else { return Ok(true) };
    let read = SnoozedFindings::read(Some(repo), store, view, ClockAndIds::system().now());
    send_changed(read, known, messages, |snoozed| AppMessage::Snoozed(Arc::new(snoozed)))
}

/// Sends a part of the store if it differs from the known one. Returns false if the receiver is gone.
fn send_changed<T: Clone + PartialEq>(
    read: Result<T, StoreError>,
    known: &mut T,
    messages: &MessageSender,
    to_message: impl FnOnce(T) -> AppMessage,
) -> Result<bool, StoreError> {
    let part = read?;
    if part == *known {
        return Ok(true);
    }
    known.clone_from(&part);
    Ok(messages.send(to_message(part)).is_ok())
}

/// Sends the fixes if `fixes.ndjson` has changed. Returns false if the receiver is gone.
fn read_fixes(store: &Store, messages: &MessageSender, known: &mut u64) -> Result<bool, StoreError> {
    let length = store.fixes_bytes();
    if length == *known {
        return Ok(true);
    }
    let fixes = store.fixes()?;
    *known = length;
    Ok(messages.send(AppMessage::Fixes(Arc::new(FixIndex::new(fixes)))).is_ok())
}

/// Sends the viewed files if there are marks since the file had the known length. Returns false if the receiver is gone.
fn send_viewed(store: &Store, messages: &MessageSender, known: &mut u64) -> bool {
    let length = store.viewed_bytes();
    if std::mem::replace(known, length) == length {
        return true;
    }
    match store.viewed_files() {
        Ok(viewed) => messages.send(AppMessage::ViewedFiles(viewed)).is_ok(),
        Err(error) => {
            tracing::warn!(%error, "new marks of viewed files are not shown");
            true
        }
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

#[cfg(test)]
mod tests {
    use std::fs;

    use rstest::rstest;

    use super::*;
    use crate::domain::{Time, ViewedFile};
    use crate::store::RepoInfo;
    use crate::tui::event_source::EventSource;

    #[rstest]
    #[case::silence(None, 0, true)]
    #[case::a_heartbeat_soon(Some(StoreChange::Heartbeat), 9, false)]
    #[case::heartbeats_of_others_all_the_time(Some(StoreChange::Heartbeat), 10, true)]
    #[case::a_record_with_which_the_locks_are_read(Some(StoreChange::Store), 60, false)]
    #[case::the_end(Some(StoreChange::Stopped), 60, false)]
    fn the_locks_are_read_although_other_runs_beat(
        #[case] change: Option<StoreChange>,
        #[case] seconds: u64,
        #[case] expected: bool,
    ) {
        let patience = Duration::from_secs(10);
        assert_eq!(needs_lock_check(change, Duration::from_secs(seconds), patience), expected);
    }

    #[test]
    fn a_trouble_is_told_until_the_part_can_be_read_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let info = RepoInfo { version: 1, key: "k".into(), name: "billing".into(), common_dir: "/billing".into() };
        let store = Store::open(folder.path(), info).expect("a store");
        let (mut events, _typed, messages) = EventSource::piped();
        let (mut sent, written) = (SentParts::new(&store), AtomicU64::new(0));
        let mut next_messages = || {
            assert!(sent.send_changes((None, &store, &TimeZone::UTC), &written, &messages));
            let messages = std::iter::from_fn(|| events.try_next());
            let names = messages.filter_map(|message| match message {
                AppMessage::StoreRead { .. } => Some("view"),
                AppMessage::StoreTrouble(_) => Some("trouble"),
                _ => None,
            });
            names.collect::<Vec<_>>()
        };
        assert_eq!(next_messages(), ["view"]);
        assert!(next_messages().is_empty(), "nothing has changed");
        // A folder in the place of the file cannot be read as one.
        let fixes = store.root().join("fixes.ndjson");
        fs::create_dir_all(fixes.join("in the way")).expect("a folder");
        assert_eq!(next_messages(), ["trouble"]);
        assert_eq!(next_messages(), ["view", "trouble"]);
        fs::remove_dir_all(&fixes).expect("removed");
        assert_eq!(next_messages(), ["view"]);
        assert!(next_messages().is_empty(), "the message is gone");
    }

    #[test]
    fn viewed_files_are_sent_once_after_new_marks() {
        let folder = tempfile::tempdir().expect("a folder");
        let info = RepoInfo { version: 1, key: "k".into(), name: "billing".into(), common_dir: "/billing".into() };
        let store = Store::open(folder.path(), info).expect("a store");
        let (mut events, _typed, messages) = EventSource::piped();
        let mut known = store.viewed_bytes();
        for (viewed, expected) in [(true, 1), (false, 0)] {
            assert!(send_viewed(&store, &messages, &mut known) && events.try_next().is_none());
            let (path, content) = ("src/a.rs".to_owned(), "1".to_owned());
            store.mark_viewed(&[ViewedFile { path, content, viewed, at: Time::UNIX_EPOCH }]).expect("a mark");
            assert!(send_viewed(&store, &messages, &mut known));
            let Some(AppMessage::ViewedFiles(files)) = events.try_next() else { panic!("no marks") };
            assert_eq!(files.len(), expected, "{files:?}");
        }
    }
}
