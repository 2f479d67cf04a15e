//! Reads the dispositions and the fixes that the knowledge base has not learned from yet; the files `learned` and
//! `learned_fixes` hold the offsets in `triage.ndjson` and `fixes.ndjson` up to which learning is done.
//!
//! Invariant: a line written while learning was refused is never learned from, whatever the settings say later.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::files::{self, ExistingPolicy, SyncPolicy};
use super::{Store, StoreError, lines};
use crate::domain::{Disposition, Fix, FixId};

/// A disposition as a line of the file.
#[derive(Serialize)]
pub(super) struct DispositionLine<'a> {
    #[serde(flatten)]
    pub disposition: &'a Disposition,
    /// True when the disposition must not be learned from.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub private: bool,
}

#[derive(Deserialize)]
struct LearnableDisposition {
    #[serde(flatten)]
    disposition: Disposition,
    #[serde(default)]
    private: bool,
}

/// Dispositions that are not learned from yet.
#[derive(Debug, Default)]
pub struct PendingLessons {
    /// Oldest first.
    pub decided: Vec<Disposition>,
    /// Byte offset in `triage.ndjson` at which the read started.
    pub start: u64,
    /// Byte offset after the last disposition, for [`Store::mark_learned`].
    pub end: u64,
    /// True when more lines follow.
    pub more: bool,
}

/// Fixes that are not learned from yet.
#[derive(Debug, Default)]
pub struct PendingFixes {
    /// The last state of each fix that changed, without those from which nothing may be learned.
    pub changed: Vec<Fix>,
    /// Byte offset in `fixes.ndjson` at which the read started.
    pub start: u64,
    /// Byte offset after the last line, for [`Store::mark_fixes_learned`].
    pub end: u64,
}

impl Store {
    /// Returns the fixes that changed since the last [`Store::mark_fixes_learned`].
    ///
    /// # Errors
    /// Returns an error when the store cannot be read.
    pub fn pending_fixes(&self) -> Result<PendingFixes, StoreError> {
        let path = self.fixes_path();
        let Some(file) = files::open_read(&path)? else { return Ok(PendingFixes::default()) };
        let length = files::length(&file).map_err(StoreError::io("read the length of", &path))?;
        let start = read_offset(&self.learned_fixes_path(), length)?;
        let mut changed: BTreeMap<FixId, Fix> = BTreeMap::new();
        let end = lines::read_forwards(&file, start, |_, line| {
            if let Ok(fix) = serde_json::from_slice::<Fix>(line) {
                changed.insert(fix.fix_id.clone(), fix);
            }
        })
        .map_err(StoreError::io("read", &path))?;
        let changed = changed.into_values().filter(|fix| !fix.private).collect();
        Ok(PendingFixes { changed, start, end })
    }

    /// Marks the lines before this offset in `fixes.ndjson` as learned. A greater offset set by another process is kept.
    ///
    /// # Errors
    /// Returns an error when the store cannot be locked, read or written.
    pub fn mark_fixes_learned(&self, end: u64) -> Result<(), StoreError> {
        self.with_lock(|_| {
            let path = self.learned_fixes_path();
            if read_offset(&path, self.fixes_bytes())? >= end {
                return Ok(());
            }
            write_offset(&path, end)
        })
    }

    fn learned_fixes_path(&self) -> std::path::PathBuf {
        self.root.join("learned_fixes")
    }

    /// Returns the dispositions since the last [`Store::mark_learned`], at most `most`.
    ///
    /// # Errors
    /// Returns an error when the store cannot be read.
    pub fn pending_lessons(&self, most: usize) -> Result<PendingLessons, StoreError> {
        let path = self.triage_path();
        let Some(file) = files::open_read(&path)? else { return Ok(PendingLessons::default()) };
        let length = files::length(&file).map_err(StoreError::io("read the length of", &path))?;
        let from = self.learned_offset(length)?;
        let (mut decided, mut next) = (Vec::new(), None);
        let end = lines::read_forwards(&file, from, |place, line| {
            if decided.len() == most {
                next.get_or_insert(place);
            } else if let Ok(LearnableDisposition { disposition, private: false }) = serde_json::from_slice(line) {
                decided.push(disposition);
            }
        })
        .map_err(StoreError::io("read", &path))?;
        Ok(PendingLessons { decided, start: from, end: next.unwrap_or(end), more: next.is_some() })
    }

    /// Marks the dispositions before this offset in `triage.ndjson` as learned. A greater offset set by another process
    /// is kept.
    ///
    /// # Errors
    /// Returns an error when the store cannot be locked, read or written.
    pub fn mark_learned(&self, end: u64) -> Result<(), StoreError> {
        self.with_lock(|_| {
            if self.learned_offset(self.triage_bytes()?)? >= end {
                return Ok(());
            }
            write_offset(&self.learned_path(), end)
        })
    }

    /// Returns the learned offset for a file of `length` bytes.
    fn learned_offset(&self, length: u64) -> Result<u64, StoreError> {
        read_offset(&self.learned_path(), length)
    }

    fn learned_path(&self) -> std::path::PathBuf {
        self.root.join("learned")
    }
}

/// Returns the offset in a file, for data of `length` bytes.
fn read_offset(path: &Path, length: u64) -> Result<u64, StoreError> {
    let said = files::read(path)?.and_then(|bytes| String::from_utf8(bytes).ok()?.trim().parse().ok());
    // A file shorter than the offset is another file.
    Ok(said.filter(|place| *place <= length).unwrap_or(0))
}

fn write_offset(path: &Path, offset: u64) -> Result<(), StoreError> {
    let text = format!("{offset}\n");
    files::write_beside(path, ExistingPolicy::Replace, SyncPolicy::Later, |file| {
        std::io::Write::write_all(file, text.as_bytes())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::SCHEMA_VERSION;
    use crate::store::RepoInfo;

    #[test]
    fn what_two_read_at_the_same_time_is_not_read_again_whoever_ends_first() {
        let folder = tempfile::tempdir().expect("a folder");
        let info = RepoInfo { version: SCHEMA_VERSION, key: "k".into(), name: "n".into(), common_dir: "d".into() };
        let store = Store::open(folder.path(), info).expect("opens");
        let decide = |reason: &str| {
            let line = serde_json::json!({
                "finding_id": "f_0000000000000001", "status": "dismissed", "previous": "open", "actor": "user",
                "reason": reason, "at": "2026-03-04T05:06:07Z", "action": "set", "group": "g",
            });
            store.append_dispositions(&[serde_json::from_value(line).expect("a line")]).expect("stored");
            store.triage_bytes().expect("a length")
        };
        let (first, second) = (decide("one"), decide("two"));
        let read_from = || store.pending_lessons(9).expect("readable").start;
        store.mark_learned(second).expect("written");
        store.mark_learned(first).expect("written");
        assert_eq!(read_from(), second);
        // Another file, for example a repaired file, is read from its beginning.
        let file = std::fs::File::options().write(true).open(store.triage_path()).expect("the file");
        file.set_len(first).expect("cut");
        assert_eq!(read_from(), 0);
        store.mark_learned(first).expect("written");
        assert_eq!(read_from(), first);
    }

    #[test]
    fn what_others_have_decided_teaches_nothing_here() {
        let folder = tempfile::tempdir().expect("a folder");
        let info = RepoInfo { version: SCHEMA_VERSION, key: "k".into(), name: "n".into(), common_dir: "d".into() };
        let store = Store::open(folder.path(), info).expect("opens");
        let own = serde_json::json!({
            "finding_id": "f_0000000000000001", "status": "dismissed", "previous": "open", "actor": "user",
            "reason": "mine", "at": "2026-03-04T05:06:07Z", "action": "set", "group": "g",
        });
        let mut received = own.clone();
        received["reason"] = "Bob's".into();
        received["team"] = serde_json::json!({ "clock": [1, 0], "machine": "bob-1", "person": { "name": "Bob" } });
        // After an undo, or where the list of a panel has taken it over, it is appended like an own one.
        let lines = [own, received].map(|line| serde_json::from_value::<Disposition>(line).expect("a line"));
        store.append_dispositions(&lines).expect("stored");
        let decided = store.pending_lessons(9).expect("readable").decided;
        assert_eq!(decided.iter().map(|line| line.reason.as_str()).collect::<Vec<_>>(), ["mine"]);
        assert_eq!(store.triage_log().expect("readable"), lines);
    }
}
