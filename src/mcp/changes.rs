//! Notifications after changes of the store: which resources have changed, for clients that asked.
//!
//! One thread waits for the store; while nothing changes, it sleeps. It starts with the first client that can be told,
//! and again with a later call if there was no repository.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::broadcast;

use super::resources::{ResourceUri, list_uris};
use super::{OpenPurpose, RepositoryAccess, ToolFailure};
use crate::domain::FindingId;
use crate::runner::Services;
use crate::store::{FindingRow, RunRow, StoreChange};

/// Number of changes that a slow client may lag behind before older ones are dropped.
const MAX_QUEUED_CHANGES: usize = 64;

/// Change of resources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceChange {
    /// True if resources were added or removed.
    pub list_changed: bool,
    /// Subscribed resources with a new content.
    pub updated: Vec<ResourceUri>,
}

/// Source of changes for all clients of the process.
#[derive(Debug)]
pub struct ChangeFeed {
    sender: broadcast::Sender<ResourceChange>,
    /// Subscribed resources, with the number of their subscriptions.
    subscribed: Mutex<BTreeMap<ResourceUri, usize>>,
    /// True while a thread watches. Locked while it starts, so that every caller of [`ChangeFeed::watch`] waits for it.
    is_watching: Mutex<bool>,
}

impl ChangeFeed {
    /// Creates a feed that does not watch yet.
    pub fn new() -> Arc<Self> {
        let (sender, _) = broadcast::channel(MAX_QUEUED_CHANGES);
        Arc::new(Self { sender, subscribed: Mutex::default(), is_watching: Mutex::new(false) })
    }

    /// Returns a receiver of the changes from now on.
    pub fn receive(&self) -> broadcast::Receiver<ResourceChange> {
        self.sender.subscribe()
    }

    /// Subscribes to a resource.
    pub fn subscribe(&self, uri: ResourceUri) {
        *self.lock().entry(uri).or_default() += 1;
    }

    /// Ends a subscription to a resource.
    pub fn unsubscribe(&self, uri: &ResourceUri) {
        let mut subscribed = self.lock();
        if let Some(count) = subscribed.get_mut(uri) {
            *count -= 1;
            if *count == 0 {
                subscribed.remove(uri);
            }
        }
    }

    /// Returns true if somebody has subscribed to the resource.
    pub fn is_subscribed(&self, uri: &ResourceUri) -> bool {
        self.lock().contains_key(uri)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<ResourceUri, usize>> {
        self.subscribed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts to watch the store, unless it is watched. Returns once it is.
    pub fn watch(self: &Arc<Self>, access: &RepositoryAccess) {
        let mut is_watching = self.is_watching.lock().unwrap_or_else(PoisonError::into_inner);
        if *is_watching {
            return;
        }
        let (feed, access) = (Arc::clone(self), access.clone());
        let (ready, started) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            if let Err(failure) = feed.watch_store(&access, &ready) {
                tracing::debug!(message = failure.message, "the store is not watched");
            }
            drop(ready);
            *feed.is_watching.lock().unwrap_or_else(PoisonError::into_inner) = false;
        });
        // The sender is dropped without a message if there is no repository.
        *is_watching = started.recv().is_ok();
    }

    fn watch_store(&self, access: &RepositoryAccess, ready: &std::sync::mpsc::Sender<()>) -> Result<(), ToolFailure> {
        let services = access.open(OpenPurpose::Read)?;
        let mut tail = services.store.open_tail();
        tail.watch_beside(&[&services.repo.git_dir().join("logs").join("HEAD")]);
        let mut before = ResourceHashes::read(&services)?;
        let _ = ready.send(());
        loop {
            match tail.wait() {
                StoreChange::Heartbeat | StoreChange::Viewed | StoreChange::Delivery => continue,
                StoreChange::Stopped => return Ok(()),
                StoreChange::Store => {}
            }
            // A store that cannot be read now may be readable after the next change.
            let Ok(now) = ResourceHashes::read(&services) else { continue };
            let change = self.compare(&before, &now);
            before = now;
            if change.list_changed || !change.updated.is_empty() {
                // Without receivers nobody needs to know.
                let _ = self.sender.send(change);
            }
        }
    }

    fn compare(&self, before: &ResourceHashes, now: &ResourceHashes) -> ResourceChange {
        let has_changed = |uri: &&ResourceUri| match uri {
            ResourceUri::Ledger => (before.runs, before.findings, before.head) != (now.runs, now.findings, now.head),
            ResourceUri::Runs => (before.runs, before.head) != (now.runs, now.head),
            ResourceUri::Findings => before.findings != now.findings,
            ResourceUri::Run(run) => before.each.get(run.as_str()) != now.each.get(run.as_str()),
            ResourceUri::Finding(finding) => before.each.get(finding.as_str()) != now.each.get(finding.as_str()),
        };
        ResourceChange {
            list_changed: before.listed != now.listed,
            updated: self.lock().keys().filter(has_changed).cloned().collect(),
        }
    }
}

/// Hashes of what the resources show, without what changes with time alone.
struct ResourceHashes {
    listed: Vec<ResourceUri>,
    runs: u64,
    findings: u64,
    head: u64,
    /// Hashes of runs and findings by id.
    each: HashMap<String, u64>,
}

impl ResourceHashes {
    fn read(services: &Services) -> Result<Self, ToolFailure> {
        let view = services.store.view()?;
        let notes = services.store.disputed_findings()?;
        let mut each = HashMap::with_capacity(view.run_count() + view.finding_count());
        let (mut runs, mut findings) = (DefaultHasher::new(), DefaultHasher::new());
        for row in (0..view.run_count()).map(|index| view.run(index)) {
            let hash = hash_run(&row);
            hash.hash(&mut runs);
            each.insert(row.id.to_owned(), hash);
        }
        for row in (0..view.finding_count()).map(|index| view.finding(index)) {
            let has_note = !notes.is_empty() && row.id.parse::<FindingId>().is_ok_and(|id| notes.contains(&id));
            let hash = hash_finding(&row, has_note);
            hash.hash(&mut findings);
            each.insert(row.id.to_owned(), hash);
        }
        let mut head = DefaultHasher::new();
        (services.repo.branch(), services.repo.head()).hash(&mut head);
        Ok(Self {
            listed: list_uris(&view),
            runs: runs.finish(),
            findings: findings.finish(),
            head: head.finish(),
            each,
        })
    }
}

fn hash_run(row: &RunRow<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    (row.id, row.status, row.counts, row.files_covered, row.hunks_covered, row.paused).hash(&mut hasher);
    (row.incomplete, row.superseded_by, row.cancel_reason, row.error_class, row.epoch).hash(&mut hasher);
    hasher.finish()
}

fn hash_finding(row: &FindingRow<'_>, has_note: bool) -> u64 {
    let mut hasher = DefaultHasher::new();
    (row.id, row.last_run, row.status, row.priority, row.path, row.line_start, has_note).hash(&mut hasher);
    hasher.finish()
}
