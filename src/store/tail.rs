//! Waits for changes of the store without polling: while nothing changes, no thread wakes.
//!
//! The operating system's file notifications are used where available. When watching fails, for example because of too
//! many watches or a file system without notifications, the lengths of the files are compared once a second, and
//! [`StoreTail::polling_reason`] returns the reason.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant, SystemTime};

use notify::{EventKind, RecursiveMode, Watcher};

use super::{DELIVERIES_FILE, Store, VIEWED_FILE, watcher_state};

/// Event that ended a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreChange {
    /// Runs, dispositions or a journal changed; [`Store::refresh_view`] loads the changes.
    Store,
    /// Only the activity of a worker or the watcher changed; [`Store::heartbeats`] and [`Store::watcher_status`] return
    /// it.
    Heartbeat,
    /// Only a ledger was delivered to an assistant, and perhaps the activity changed; [`Store::recent_deliveries`] returns
    /// the ledger.
    Delivery,
    /// Only files were marked as viewed, and perhaps the activity changed; [`Store::viewed_files`] returns the marks. A delivery
    /// at the same time hides this.
    Viewed,
    /// [`TailStopper::stop`] was called; every later wait ends at once in the same way.
    Stopped,
}

/// Waits for changes of a store; see [`Store::open_tail`].
pub struct StoreTail {
    root: PathBuf,
    sender: Sender<TailMessage>,
    receiver: Receiver<TailMessage>,
    how: TailSource,
    /// Watches files and folders outside of the store; see [`StoreTail::watch_beside`].
    beside: Option<notify::RecommendedWatcher>,
    last: Option<Instant>,
    /// Minimum time between two returns after changes of the store.
    min_interval: Duration,
    /// Minimum time between two returns after changes of runs' records.
    min_run_interval: Duration,
    stopped: bool,
}

impl std::fmt::Debug for StoreTail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tail")
            .field("root", &self.root)
            .field("polling", &self.polling_reason())
            .finish_non_exhaustive()
    }
}

enum TailSource {
    Watching {
        watcher: notify::RecommendedWatcher,
        /// Watched folders: the store and its journals, or the nearest existing parent folder.
        folders: Vec<PathBuf>,
    },
    Polling {
        reason: String,
        seen: StoreSignature,
    },
}

/// File data that shows changes, by path.
#[derive(Debug, Default, PartialEq, Eq)]
struct StoreSignature {
    /// Lengths of files that only grow or are replaced by a repair.
    lengths: BTreeMap<PathBuf, u64>,
    /// Modification times of heartbeats and watcher files, which may be replaced by files of the same length.
    heartbeats: BTreeMap<PathBuf, Option<SystemTime>>,
    /// Length of the file with the delivered ledgers.
    deliveries: Option<u64>,
    /// Length of the file with the marks of viewed files.
    viewed: Option<u64>,
    /// Modification time of the file about the team, which is replaced as a whole.
    team: Option<SystemTime>,
}

/// Kind of the change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum TouchedPart {
    Heartbeat,
    Viewed,
    Delivery,
    Store,
    Runs,
}

enum TailMessage {
    /// A file or folder of the store was created, written, renamed or removed.
    Touched(TouchedPart),
    /// File notifications have stopped working; the text is the reason.
    Broken(String),
    Stop,
}

/// Ends waits of a [`StoreTail`] from another thread.
#[derive(Debug, Clone)]
pub struct TailStopper(Sender<TailMessage>);

impl TailStopper {
    /// Ends the current wait and every later wait at once.
    pub fn stop(&self) {
        let _ = self.0.send(TailMessage::Stop);
    }

    /// Ends the current wait as a change of the store does: for facts beside the store that are read with it.
    pub fn wake(&self) {
        let _ = self.0.send(TailMessage::Touched(TouchedPart::Store));
    }
}

/// File of the runs' records.
const RUNS_FILE: &str = "runs.ndjson";
/// Files whose lines the cockpit shows.
const SHOWN_FILES: [&str; 8] = [
    RUNS_FILE,
    "triage.ndjson",
    "fixes.ndjson",
    "notes.ndjson",
    "snoozes.ndjson",
    "ratings.ndjson",
    "questions.ndjson",
    super::TEAM_FILE,
];
/// Default of [`StoreTail::with_min_interval`]: a busy worker does not cause constant redraws.
const DEFAULT_CHANGE_INTERVAL: Duration = Duration::from_millis(100);
/// Like [`DEFAULT_CHANGE_INTERVAL`] when only heartbeats changed: at most five redraws a second for any number of runs.
const MIN_HEARTBEAT_INTERVAL: Duration = Duration::from_millis(200);
/// Interval for comparing the files when they cannot be watched.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

impl Store {
    /// Watches the store from this moment on. The store need not exist yet and is not created.
    pub fn open_tail(&self) -> StoreTail {
        let (sender, receiver) = channel();
        let root = resolve_links(&self.root);
        let how = start_watching(&root, &sender)
            .unwrap_or_else(|reason| TailSource::Polling { reason, seen: StoreSignature::from_folder(&root) });
        StoreTail::new(root, (sender, receiver), how)
    }
}

impl StoreTail {
    fn new(root: PathBuf, (sender, receiver): (Sender<TailMessage>, Receiver<TailMessage>), how: TailSource) -> Self {
        let min_interval = DEFAULT_CHANGE_INTERVAL;
        let min_run_interval = min_interval;
        Self { root, sender, receiver, how, beside: None, last: None, min_interval, min_run_interval, stopped: false }
    }

    /// Returns a handle that ends a wait from another thread.
    pub fn stopper(&self) -> TailStopper {
        TailStopper(self.sender.clone())
    }

    /// Sets the minimum time between two returns after changes of the store.
    #[must_use]
    pub fn with_min_interval(self, min_interval: Duration) -> Self {
        Self { min_interval, min_run_interval: min_interval, ..self }
    }

    /// Sets another minimum time after changes of runs' records, which are few: for somebody who waits for the end of a run.
    #[must_use]
    pub fn with_min_run_interval(self, min_run_interval: Duration) -> Self {
        Self { min_run_interval, ..self }
    }

    /// Reports changes of these files outside of the store too, as [`StoreChange::Store`]: of HEAD's reflog, with which the
    /// freshness of runs changes. A folder changes when it is made, renamed or removed. Replaces the files of the last call.
    /// Without file notifications, their changes are not noticed.
    pub fn watch_beside(&mut self, files: &[&Path]) {
        let (sender, files) = (self.sender.clone(), files.iter().map(|file| resolve_links(file)).collect::<Vec<_>>());
        let folders: BTreeSet<PathBuf> = files.iter().filter_map(|file| file.parent()).map(Path::to_owned).collect();
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            let is_change = |event: &notify::Event| !matches!(event.kind, EventKind::Access(_));
            if event.is_ok_and(|event| is_change(&event) && event.paths.iter().any(|path| files.contains(path))) {
                let _ = sender.send(TailMessage::Touched(TouchedPart::Store));
            }
        });
        let mut watcher = match watcher {
            Ok(watcher) => watcher,
            Err(error) => {
                tracing::debug!(%error, "files beside the store are not watched");
                return;
            }
        };
        for folder in folders {
            if let Err(error) = watcher.watch(&folder, RecursiveMode::NonRecursive) {
                tracing::debug!(folder = %folder.display(), %error, "files beside the store are not watched");
            }
        }
        self.beside = Some(watcher);
    }

    /// Returns the reason why the files are polled instead of watched; `None` when they are watched.
    pub fn polling_reason(&self) -> Option<&str> {
        match &self.how {
            TailSource::Watching { .. } => None,
            TailSource::Polling { reason, .. } => Some(reason),
        }
    }

    /// Blocks until the store has changed since the last call, or since [`Store::open_tail`]. Several quick changes are
    /// reported together.
    pub fn wait(&mut self) -> StoreChange {
        loop {
            if let Some(change) = self.wait_until(None) {
                return change;
            }
        }
    }

    /// Blocks like [`StoreTail::wait`], but for `limit` at most. Returns `None` if nothing has changed until then.
    pub fn wait_at_most(&mut self, limit: Duration) -> Option<StoreChange> {
        self.wait_until(Some(Instant::now() + limit))
    }

    fn wait_until(&mut self, end: Option<Instant>) -> Option<StoreChange> {
        let mut touched: Option<TouchedPart> = None;
        loop {
            if self.stopped {
                return Some(StoreChange::Stopped);
            }
            let rest = end.map(|end| end.saturating_duration_since(Instant::now()));
            let patience = match touched {
                Some(what) => {
                    let quiet = match what {
                        TouchedPart::Heartbeat => MIN_HEARTBEAT_INTERVAL,
                        TouchedPart::Runs => self.min_run_interval,
                        TouchedPart::Viewed | TouchedPart::Delivery | TouchedPart::Store => self.min_interval,
                    };
                    let due = self.last.map(|last| last + quiet);
                    Some(due.map_or(Duration::ZERO, |due| due.saturating_duration_since(Instant::now())))
                }
                None if rest == Some(Duration::ZERO) => return None,
                None => {
                    let poll = matches!(self.how, TailSource::Polling { .. }).then_some(POLL_INTERVAL);
                    poll.into_iter().chain(rest).min()
                }
            };
            let message = match patience {
                Some(patience) => self.receiver.recv_timeout(patience),
                None => self.receiver.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match (message, touched) {
                (Ok(TailMessage::Touched(what)), _) => touched = touched.max(Some(what)),
                (Ok(TailMessage::Broken(reason)), _) => {
                    self.how = TailSource::Polling { reason, seen: StoreSignature::from_folder(&self.root) };
                    touched = Some(TouchedPart::Store);
                }
                (Ok(TailMessage::Stop), _) => self.stopped = true,
                (Err(RecvTimeoutError::Timeout), Some(what)) => {
                    self.update_watches();
                    self.last = Some(Instant::now());
                    return Some(match what {
                        TouchedPart::Heartbeat => StoreChange::Heartbeat,
                        TouchedPart::Viewed => StoreChange::Viewed,
                        TouchedPart::Delivery => StoreChange::Delivery,
                        TouchedPart::Store | TouchedPart::Runs => StoreChange::Store,
                    });
                }
                (Err(RecvTimeoutError::Timeout), None) => touched = self.poll_files(),
                // This cannot happen while `self` keeps a sender; stopping is better than an endless wait.
                (Err(RecvTimeoutError::Disconnected), _) => self.stopped = true,
            }
        }
    }

    /// Adds watches for folders that were created since.
    fn update_watches(&mut self) {
        let TailSource::Watching { watcher, folders } = &mut self.how else { return };
        if let Err(reason) = watch_folders(&self.root, watcher, folders) {
            self.how = TailSource::Polling { reason, seen: StoreSignature::from_folder(&self.root) };
        }
    }

    fn poll_files(&mut self) -> Option<TouchedPart> {
        let TailSource::Polling { seen, .. } = &mut self.how else { return None };
        let before = std::mem::replace(seen, StoreSignature::from_folder(&self.root));
        if (&before.lengths, before.team) != (&seen.lengths, seen.team) {
            Some(TouchedPart::Store)
        } else if before.deliveries != seen.deliveries {
            Some(TouchedPart::Delivery)
        } else if before.viewed != seen.viewed {
            Some(TouchedPart::Viewed)
        } else {
            (before.heartbeats != seen.heartbeats).then_some(TouchedPart::Heartbeat)
        }
    }
}

/// Resolves symbolic links in the existing part of a path, because the system reports resolved paths (at least on
/// macOS).
fn resolve_links(path: &Path) -> PathBuf {
    path.ancestors()
        .find_map(|above| Some((above, above.canonicalize().ok()?)))
        .and_then(|(above, real)| Some(real.join(path.strip_prefix(above).ok()?)))
        // Collecting the components removes the trailing separator that joining an empty path adds.
        .map_or_else(|| path.to_owned(), |real| real.components().collect())
}

fn start_watching(root: &Path, sender: &Sender<TailMessage>) -> Result<TailSource, String> {
    let (sender, store) = (sender.clone(), root.to_owned());
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        let message = match event {
            Ok(event) if event.need_rescan() => TailMessage::Touched(TouchedPart::Store),
            Ok(event) => match classify_event(&event, &store) {
                Some(what) => TailMessage::Touched(what),
                None => return,
            },
            Err(error) => TailMessage::Broken(error.to_string()),
        };
        let _ = sender.send(message);
    })
    .map_err(|error| error.to_string())?;
    let mut folders = Vec::new();
    watch_folders(root, &mut watcher, &mut folders)?;
    Ok(TailSource::Watching { watcher, folders })
}

/// Classifies an event for readers of the store; `None` for open and read events, lock files and temporary files.
fn classify_event(event: &notify::Event, root: &Path) -> Option<TouchedPart> {
    if matches!(event.kind, EventKind::Access(_)) {
        return None;
    }
    let of_path = |path: &PathBuf| match path.strip_prefix(root) {
        Ok(inside) => {
            let watch =
                [watcher_state::WATCH_FILE, watcher_state::SNOOZE_FILE].iter().any(|name| inside == Path::new(name));
            let named = inside == Path::new("")
                || inside == Path::new("events")
                || SHOWN_FILES.iter().any(|name| inside == Path::new(name));
            match inside.extension().and_then(|extension| extension.to_str()) {
                _ if inside == Path::new(RUNS_FILE) => Some(TouchedPart::Runs),
                _ if named => Some(TouchedPart::Store),
                _ if watch => Some(TouchedPart::Heartbeat),
                _ if inside == Path::new(DELIVERIES_FILE) => Some(TouchedPart::Delivery),
                _ if inside == Path::new(VIEWED_FILE) => Some(TouchedPart::Viewed),
                Some("jsonl") => Some(TouchedPart::Store),
                Some("pulse") => Some(TouchedPart::Heartbeat),
                _ => None,
            }
        }
        // A parent folder of the store changed.
        Err(_) => root.starts_with(path).then_some(TouchedPart::Store),
    };
    event.paths.iter().filter_map(of_path).max()
}

/// Watches the store's folder and its journals or, if the store does not exist, the nearest existing parent folder.
fn watch_folders(
    root: &Path,
    watcher: &mut notify::RecommendedWatcher,
    folders: &mut Vec<PathBuf>,
) -> Result<(), String> {
    // Each round can find a folder that was created since the previous round.
    for _ in 0..64 {
        let wanted: Vec<PathBuf> = if root.is_dir() {
            [root.to_owned(), root.join("events")].into_iter().filter(|folder| folder.is_dir()).collect()
        } else {
            root.ancestors().find(|folder| folder.is_dir()).map(Path::to_owned).into_iter().collect()
        };
        if wanted == *folders {
            return Ok(());
        }
        for folder in folders.iter().filter(|folder| !wanted.contains(folder)) {
            let _ = watcher.unwatch(folder);
        }
        for folder in wanted.iter().filter(|folder| !folders.contains(folder)) {
            match watcher.watch(folder, RecursiveMode::NonRecursive) {
                Ok(()) => {}
                // The folder was removed between the check and the watch.
                Err(error) if matches!(error.kind, notify::ErrorKind::PathNotFound) => {}
                Err(error) => return Err(format!("cannot watch {}: {error}", folder.display())),
            }
        }
        *folders = wanted;
    }
    Ok(())
}

impl StoreSignature {
    fn from_folder(root: &Path) -> Self {
        let length = |name: &str| std::fs::metadata(root.join(name)).map(|metadata| metadata.len()).ok();
        let (deliveries, viewed) = (length(DELIVERIES_FILE), length(VIEWED_FILE));
        let mut signature = Self { deliveries, viewed, ..Self::default() };
        let events = std::fs::read_dir(root.join("events")).into_iter().flatten().flatten().map(|entry| entry.path());
        let files = SHOWN_FILES.iter().chain(&[watcher_state::WATCH_FILE, watcher_state::SNOOZE_FILE]);
        let files = files.map(|name| root.join(name));
        for file in files.chain(events) {
            let Ok(metadata) = std::fs::metadata(&file) else { continue };
            match file.extension().and_then(|extension| extension.to_str()) {
                Some("json") if file.ends_with(super::TEAM_FILE) => signature.team = metadata.modified().ok(),
                Some("pulse" | "json") => drop(signature.heartbeats.insert(file, metadata.modified().ok())),
                Some("ndjson" | "jsonl") => drop(signature.lengths.insert(file, metadata.len())),
                _ => {}
            }
        }
        signature
    }
}

#[cfg(test)]
mod tests {
    use notify::event::{AccessKind, AccessMode, CreateKind, DataChange, ModifyKind, RenameMode};

    use super::*;

    #[test]
    fn only_what_a_view_shows_wakes() {
        let root = Path::new("/s/review/repo-k/auto-review");
        let open = EventKind::Access(AccessKind::Open(AccessMode::Any));
        let write = EventKind::Modify(ModifyKind::Data(DataChange::Any));
        let create = EventKind::Create(CreateKind::Any);
        let rename = EventKind::Modify(ModifyKind::Name(RenameMode::To));
        for (kind, path, expected) in [
            (write, "/s/review/repo-k/auto-review/runs.ndjson", Some(TouchedPart::Runs)),
            (write, "/s/review/repo-k/auto-review/triage.ndjson", Some(TouchedPart::Store)),
            (write, "/s/review/repo-k/auto-review/events/ar_1.jsonl", Some(TouchedPart::Store)),
            (create, "/s/review/repo-k/auto-review/events", Some(TouchedPart::Store)),
            (create, "/s/review/repo-k/auto-review", Some(TouchedPart::Store)),
            (create, "/s/review/repo-k", Some(TouchedPart::Store)),
            (rename, "/s/review/repo-k/auto-review/events/ar_1.pulse", Some(TouchedPart::Heartbeat)),
            (rename, "/s/review/repo-k/auto-review/watch.json", Some(TouchedPart::Heartbeat)),
            (rename, "/s/review/repo-k/auto-review/snooze.json", Some(TouchedPart::Heartbeat)),
            (rename, "/s/review/repo-k/auto-review/team.json", Some(TouchedPart::Store)),
            (write, "/s/review/repo-k/auto-review/surfaced.ndjson", Some(TouchedPart::Delivery)),
            (write, "/s/review/repo-k/auto-review/viewed.ndjson", Some(TouchedPart::Viewed)),
            (create, "/s/review/repo-k/auto-review/repo.json", None),
            (open, "/s/review/repo-k/auto-review/events/ar_1.pulse", None),
            (open, "/s/review/repo-k/auto-review/runs.ndjson", None),
            (write, "/s/review/repo-k/auto-review/store.lock", None),
            (create, "/s/review/repo-k/auto-review/view.cache", None),
            (create, "/s/review/repo-k/auto-review/.tmp-x1", None),
            (create, "/s/review/repo-k/auto-review/events/.tmp-x1", None),
            (create, "/s/review/repo-other", None),
        ] {
            let event = notify::Event::new(kind).add_path(path.into());
            assert_eq!(classify_event(&event, root), expected, "{kind:?} {path}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn the_watched_path_has_no_links_in_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let base = folder.path().canonicalize().expect("a path");
        std::fs::create_dir(base.join("there")).expect("a folder");
        std::os::unix::fs::symlink(base.join("there"), base.join("link")).expect("a link");
        assert_eq!(resolve_links(&base.join("link/a/b")), base.join("there/a/b"));
        std::fs::create_dir_all(base.join("there/a/b")).expect("a folder");
        assert_eq!(resolve_links(&base.join("link/a/b")), base.join("there/a/b"));
        assert_eq!(resolve_links(&base.join("link")).as_os_str(), base.join("there").as_os_str());
    }

    #[test]
    fn where_nothing_can_be_watched_the_files_are_looked_at() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().to_owned();
        let how = TailSource::Polling { reason: "no watches left".into(), seen: StoreSignature::from_folder(&root) };
        let mut tail = StoreTail::new(root.clone(), channel(), how);
        assert_eq!(tail.polling_reason(), Some("no watches left"));
        std::fs::write(root.join("runs.ndjson"), "{}\n").expect("written");
        assert_eq!(tail.wait(), StoreChange::Store);
        std::fs::create_dir(root.join("events")).expect("a folder");
        std::fs::write(root.join("events/ar_1.pulse"), "{}").expect("written");
        assert_eq!(tail.wait(), StoreChange::Heartbeat);
        std::fs::write(root.join("surfaced.ndjson"), "{}\n").expect("written");
        assert_eq!(tail.wait(), StoreChange::Delivery);
        std::fs::write(root.join("team.json"), "{}").expect("written");
        assert_eq!(tail.wait(), StoreChange::Store, "a team joined");
        tail.stopper().stop();
        assert_eq!(tail.wait(), StoreChange::Stopped);
        assert_eq!(tail.wait(), StoreChange::Stopped);
    }

    #[test]
    fn the_record_of_a_run_is_seen_before_its_journal() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().to_owned();
        let how = TailSource::Polling { reason: "no watches left".into(), seen: StoreSignature::from_folder(&root) };
        let patience = Duration::from_secs(60);
        let mut tail =
            StoreTail::new(root, channel(), how).with_min_interval(patience).with_min_run_interval(Duration::ZERO);
        tail.last = Some(Instant::now());
        for part in [TouchedPart::Store, TouchedPart::Runs] {
            tail.sender.send(TailMessage::Touched(part)).expect("sent");
        }
        let begun = Instant::now();
        assert_eq!(tail.wait(), StoreChange::Store);
        assert!(begun.elapsed() < patience / 2);
    }

    #[test]
    fn a_file_beside_the_store_wakes_too() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().join("store");
        std::fs::create_dir(&root).expect("a folder");
        let how = TailSource::Polling { reason: "no watches left".into(), seen: StoreSignature::from_folder(&root) };
        let mut tail = StoreTail::new(root, channel(), how);
        let head = folder.path().join("HEAD");
        tail.watch_beside(&[&head]);
        std::fs::write(&head, "moved\n").expect("written");
        assert_eq!(tail.wait(), StoreChange::Store);
    }

    #[test]
    fn a_folder_beside_the_store_wakes_when_it_is_renamed() {
        let folder = tempfile::tempdir().expect("a folder");
        let (root, repo) = (folder.path().join("store"), folder.path().join("projects").join("repo"));
        for folder in [&root, &repo] {
            std::fs::create_dir_all(folder).expect("a folder");
        }
        let how = TailSource::Polling { reason: "no watches left".into(), seen: StoreSignature::from_folder(&root) };
        let mut tail = StoreTail::new(root, channel(), how);
        // The first file has no folder yet.
        tail.watch_beside(&[&repo.join("logs").join("HEAD"), &repo]);
        std::fs::rename(&repo, repo.with_file_name("away")).expect("renamed");
        assert_eq!(tail.wait_at_most(Duration::from_secs(60)), Some(StoreChange::Store));
    }
}
