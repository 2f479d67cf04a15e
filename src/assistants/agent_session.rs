//! Memory of one session of an assistant, for the Stop hook: when its turn began, and which findings it was asked about.
//!
//! The memory is revdeck's own, because an assistant's flag for a second stop is not reliable. A memory that cannot be
//! written asks for nothing, so that there is no loop.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::Assistant;
use crate::domain::{FindingId, Time};
use crate::store::StoreError;
use crate::store::files::{self, ExistingPolicy, SyncPolicy};

/// Age at which the memory of a session is removed: longer than anybody leaves a session open.
const MAX_SESSION_AGE: Duration = Duration::from_secs(30 * 24 * 3600);
/// Maximum number of old memories that one new session looks at, because somebody waits.
const MAX_CHECKED_SESSIONS: usize = 50;

/// Name of a session on this machine.
#[derive(Debug, Clone)]
pub(crate) struct AgentSessionKey {
    folder: PathBuf,
    name: String,
}

impl AgentSessionKey {
    /// Returns the key of a session of an assistant in a worktree.
    pub(crate) fn new(folder: &Path, assistant: Assistant, session: &str, worktree: &Path) -> Self {
        let mut hash = blake3::Hasher::new();
        for part in [assistant.name().as_bytes(), session.as_bytes(), worktree.as_os_str().as_encoded_bytes()] {
            hash.update(&(part.len() as u64).to_le_bytes()).update(part);
        }
        Self { folder: folder.to_owned(), name: hash.finalize().to_hex()[..16].to_owned() }
    }

    fn file(&self) -> PathBuf {
        self.folder.join(format!("{}.json", self.name))
    }

    /// Returns the file in which calls claim events.
    pub(super) fn claim_file(&self) -> PathBuf {
        self.folder.join(format!("{}.claim", self.name))
    }
}

/// Memory of a session.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct AgentSession {
    version: u32,
    /// Start of the turn; `None` before the first.
    #[serde(default)]
    pub(crate) turn_started_at: Option<Time>,
    /// True once the assistant was asked in this turn.
    #[serde(default)]
    pub(crate) asked_in_turn: bool,
    /// Findings that the assistant was asked about in any turn.
    #[serde(default)]
    pub(crate) asked: BTreeSet<FindingId>,
    /// Time by the clock of the file system at which the memory was written.
    #[serde(skip)]
    written_at: Option<SystemTime>,
}

impl AgentSession {
    /// Loads the memory. A missing or damaged one is empty, so that nothing is asked before the next turn begins.
    pub(crate) fn load(key: &AgentSessionKey) -> Self {
        let file = key.file();
        let session: Option<Self> = fs::read(&file).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let written_at = fs::metadata(&file).and_then(|metadata| metadata.modified()).ok();
        Self { version: 1, written_at, ..session.unwrap_or_default() }
    }

    /// Begins a turn and saves the memory.
    ///
    /// # Errors
    ///
    /// Returns an error if the memory cannot be written.
    pub(crate) fn begin_turn(mut self, key: &AgentSessionKey, now: Time) -> Result<(), StoreError> {
        if self.written_at.is_none() {
            remove_old_sessions(&key.folder);
        }
        self.turn_started_at = Some(now);
        self.asked_in_turn = false;
        self.save(key)
    }

    /// Returns the memory, or where there is none and the store is younger than the session, one of a turn that began
    /// with the session: at the start of that turn there was no store, and so nothing was remembered.
    pub(crate) fn or_since_start(self, transcript: &Path, store: &Path) -> Self {
        if self.written_at.is_some() {
            return self;
        }
        let find_birth = |path: &Path| fs::metadata(path).and_then(|metadata| metadata.created()).ok();
        match (find_birth(transcript), find_birth(store)) {
            (Some(began), Some(made)) if began < made => {
                Self { turn_started_at: Time::try_from(began).ok(), written_at: Some(began), ..self }
            }
            _ => self,
        }
    }

    /// Returns whether a file was changed since the turn began, by the clock of its file system.
    pub(crate) fn is_changed_in_turn(&self, file: &Path) -> bool {
        let changed = fs::symlink_metadata(file).and_then(|metadata| metadata.modified()).ok();
        // `written_at` is the start of the turn as long as nothing was asked in it.
        changed.zip(self.written_at).is_some_and(|(changed, started)| changed >= started)
    }

    /// Saves the memory.
    ///
    /// # Errors
    ///
    /// Returns an error if the memory cannot be written.
    pub(crate) fn save(&self, key: &AgentSessionKey) -> Result<(), StoreError> {
        let source = |source| StoreError::Encode { what: "the memory of a session", source };
        let bytes = serde_json::to_vec(self).map_err(source)?;
        // Not synced, because an assistant waits; a lost memory asks for nothing.
        files::write_beside(&key.file(), ExistingPolicy::Replace, SyncPolicy::Later, |file| {
            std::io::Write::write_all(file, &bytes)
        })
    }
}

/// Removes memories that nobody used for a month. Best effort.
fn remove_old_sessions(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten().take(MAX_CHECKED_SESSIONS) {
        let age = entry.metadata().and_then(|metadata| metadata.modified()).ok().and_then(|time| time.elapsed().ok());
        if age.is_some_and(|age| age > MAX_SESSION_AGE) {
            let _ = fs::remove_file(entry.path());
        }
    }
}
