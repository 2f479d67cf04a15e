//! Stores fixes: `fixes.ndjson` with a line per change of a fix, and the folder `fixes` with patches and original file
//! contents.
//!
//! Invariants:
//! - Lines are appended under the store's lock and synced; the last line of a fix wins; unknown fields are kept.
//! - A patch is completely written before the line that mentions it.
//! - The process that creates or applies a fix holds the fix's lock.

use std::collections::HashMap;
use std::fs::File;
use std::path::PathBuf;

use serde_json::{Map, Value};

use super::extents::TrackedFile;
use super::files::{self, ExistingPolicy};
use super::{RunLock, Store, StoreError, lines, lock, run_record};
use crate::domain::{Fix, FixId, Time};

/// Latest lines of a fix: the raw JSON, which a newer revdeck may have written, and the last record that this version
/// can read.
struct LatestFix {
    raw: Map<String, Value>,
    fix: Fix,
}

impl Store {
    pub(super) fn fixes_path(&self) -> PathBuf {
        self.root.join("fixes.ndjson")
    }

    fn patch_path(&self, id: &FixId) -> PathBuf {
        self.root.join("fixes").join(format!("{id}.patch"))
    }

    fn original_path(&self, id: &FixId, file: usize) -> PathBuf {
        self.root.join("fixes").join(format!("{id}.before-{file}"))
    }

    /// Appends a new fix's first line.
    ///
    /// # Errors
    /// Returns an error when the store cannot be locked or written.
    pub fn create_fix(&self, fix: &Fix) -> Result<(), StoreError> {
        self.with_lock(|_| self.append_fix_line(fix))
    }

    /// Returns every fix, newest first. Lines that this version cannot read are ignored.
    ///
    /// # Errors
    /// Returns an error when `fixes.ndjson` cannot be read.
    pub fn fixes(&self) -> Result<Vec<Fix>, StoreError> {
        let (mut fixes, mut places): (Vec<Fix>, HashMap<FixId, usize>) = Default::default();
        self.for_each_fix_line(|line| {
            let Ok(fix) = serde_json::from_slice::<Fix>(line) else { return };
            match places.get(&fix.fix_id) {
                Some(place) => fixes[*place] = fix,
                None => {
                    places.insert(fix.fix_id.clone(), fixes.len());
                    fixes.push(fix);
                }
            }
        })?;
        fixes.reverse();
        Ok(fixes)
    }

    /// Returns the length of `fixes.ndjson` in bytes, which shows whether there are new lines; 0 when the file is
    /// missing.
    pub fn fixes_bytes(&self) -> u64 {
        files::length_at(&self.fixes_path())
    }

    /// Returns a fix; `None` when there is no such fix.
    ///
    /// # Errors
    /// Returns an error when `fixes.ndjson` cannot be read.
    pub fn fix(&self, id: &FixId) -> Result<Option<Fix>, StoreError> {
        Ok(self.latest_fix(id)?.map(|latest| latest.fix))
    }

    /// Updates a fix's record under the store's lock; `None` when there is no such fix.
    ///
    /// # Errors
    /// Returns an error when the store cannot be locked, read or written.
    pub fn update_fix(&self, id: &FixId, now: Time, change: impl FnOnce(&mut Fix)) -> Result<Option<Fix>, StoreError> {
        self.with_lock(|_| {
            let Some(LatestFix { mut raw, fix: before }) = self.latest_fix(id)? else { return Ok(None) };
            let mut after = before.clone();
            change(&mut after);
            if after == before {
                return Ok(Some(before));
            }
            (after.fix_id, after.created_at) = (before.fix_id.clone(), before.created_at);
            after.updated_at = now.max(before.updated_at);
            run_record::merge_changes(&mut raw, &fix_to_object(&before)?, &fix_to_object(&after)?);
            self.append_fix_line(&raw)?;
            Ok(Some(after))
        })
    }

    /// Writes or replaces the patch of a fix.
    ///
    /// # Errors
    /// Returns an error when the file cannot be written.
    pub fn write_patch(&self, id: &FixId, patch: &[u8]) -> Result<(), StoreError> {
        self.prepare_for_write()?;
        files::write_atomically(&self.patch_path(id), patch, ExistingPolicy::Replace)
    }

    /// Returns the patch of a fix; `None` when there is none.
    ///
    /// # Errors
    /// Returns an error when the file cannot be read.
    pub fn patch(&self, id: &FixId) -> Result<Option<Vec<u8>>, StoreError> {
        files::read(&self.patch_path(id))
    }

    /// Saves the original content of a file that a fix changes; `file` is the index of the file in the fix.
    ///
    /// # Errors
    /// Returns an error when the content cannot be written.
    pub fn save_original(&self, id: &FixId, file: usize, content: &[u8]) -> Result<(), StoreError> {
        self.prepare_for_write()?;
        files::write_atomically(&self.original_path(id, file), content, ExistingPolicy::Replace)
    }

    /// Returns the original content of a file that a fix changes; `None` when it was not saved.
    ///
    /// # Errors
    /// Returns an error when the content cannot be read.
    pub fn original(&self, id: &FixId, file: usize) -> Result<Option<Vec<u8>>, StoreError> {
        files::read(&self.original_path(id, file))
    }

    /// Takes a fix's lock; `None` when another process creates or applies the fix.
    ///
    /// # Errors
    /// Returns an error when the lock file cannot be created or locked.
    pub fn lock_fix(&self, id: &FixId) -> Result<Option<RunLock>, StoreError> {
        self.prepare_for_write()?;
        files::make_folder(&self.root.join("locks"))?;
        lock::lock_run(&self.lock_path(id.as_str()))
    }

    /// Does the same as [`Store::lock_fix`] but returns the locked file. A worker gets it as its standard input and so
    /// holds the lock for its life.
    ///
    /// # Errors
    /// Returns an error when the lock file cannot be created or locked.
    pub fn lock_fix_for_worker(&self, id: &FixId) -> Result<Option<File>, StoreError> {
        self.prepare_for_write()?;
        files::make_folder(&self.root.join("locks"))?;
        lock::try_lock_file(&self.lock_path(id.as_str()))
    }

    /// Returns true when a process creates or applies the fix.
    ///
    /// # Errors
    /// Returns an error when the lock cannot be tested.
    pub fn is_fix_live(&self, id: &FixId) -> Result<bool, StoreError> {
        lock::is_held(&self.lock_path(id.as_str()))
    }

    fn latest_fix(&self, id: &FixId) -> Result<Option<LatestFix>, StoreError> {
        let mut latest: Option<LatestFix> = None;
        let finder = memchr::memmem::Finder::new(id.as_str().as_bytes());
        self.for_each_fix_line(|line| {
            if finder.find(line).is_none() {
                return;
            }
            // An update applies to the raw line of a newer version; the typed record comes from the last readable line.
            let Ok(Value::Object(raw)) = serde_json::from_slice(line) else { return };
            if raw.get("fix_id").and_then(Value::as_str) != Some(id.as_str()) {
                return;
            }
            match (serde_json::from_slice::<Fix>(line), &mut latest) {
                (Ok(fix), _) => latest = Some(LatestFix { raw, fix }),
                (Err(_), Some(known)) => known.raw = raw,
                (Err(_), None) => {}
            }
        })?;
        Ok(latest)
    }

    fn append_fix_line(&self, line: &impl serde::Serialize) -> Result<(), StoreError> {
        let mut line = serde_json::to_vec(line).map_err(|source| StoreError::Encode { what: "a fix", source })?;
        line.push(b'\n');
        self.append_tracked(TrackedFile::Fixes, &line)
    }

    fn for_each_fix_line(&self, mut take: impl FnMut(&[u8])) -> Result<(), StoreError> {
        let path = self.fixes_path();
        if let Some(file) = files::open_read(&path)? {
            lines::read_forwards(&file, 0, |_, line| take(line)).map_err(StoreError::io("read", &path))?;
        }
        Ok(())
    }
}

fn fix_to_object(fix: &Fix) -> Result<Map<String, Value>, StoreError> {
    match serde_json::to_value(fix) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Ok(Map::new()),
        Err(source) => Err(StoreError::Encode { what: "a fix", source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{FixStatus, SCHEMA_VERSION, Source};
    use crate::store::RepoInfo;

    fn sample_fix(n: u32) -> Fix {
        let id = format!("fx_01JD3Z8Q6M7S5V2K4T9XWB1C{n:02}").parse().expect("an id");
        let run = "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0E".parse().expect("an id");
        let fix = Fix::new(id, run, Source::Cli, "builtin".to_owned(), Time::UNIX_EPOCH);
        Fix { snapshot_commit: "1".repeat(40), ..fix }
    }

    #[test]
    fn the_last_line_of_a_fix_wins_torn_and_foreign_lines_hurt_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let info =
            RepoInfo { version: SCHEMA_VERSION, key: "k".to_owned(), name: "n".to_owned(), common_dir: String::new() };
        let store = Store::open(folder.path(), info).expect("a store");
        assert_eq!(store.fixes().expect("read"), Vec::new());
        store.create_fix(&sample_fix(1)).expect("created");
        // Appends a line of a newer version and then a torn line.
        let mut bytes = std::fs::read(store.fixes_path()).expect("a file");
        let newer = String::from_utf8(bytes.clone()).expect("text").replacen('{', "{\"new\":7,", 1);
        bytes.extend_from_slice(newer.as_bytes());
        bytes.extend_from_slice(b"{\"fix_id\":\"fx_01");
        std::fs::write(store.fixes_path(), bytes).expect("written");
        store.create_fix(&sample_fix(2)).expect("created");
        let now = Time::from_second(9).expect("a moment");
        let one = sample_fix(1).fix_id;
        let changed = store.update_fix(&one, now, |fix| fix.status = FixStatus::Offered).expect("changed");
        assert_eq!(changed.map(|fix| (fix.status, fix.updated_at)), Some((FixStatus::Offered, now)));
        let ids: Vec<_> = store.fixes().expect("read").into_iter().map(|fix| (fix.fix_id, fix.status)).collect();
        assert_eq!(ids, [(sample_fix(2).fix_id, FixStatus::Working), (one.clone(), FixStatus::Offered)]);
        assert_eq!(store.update_fix(&sample_fix(3).fix_id, now, |_| ()).expect("asked"), None);
        let text = std::fs::read_to_string(store.fixes_path()).expect("a file");
        assert!(text.lines().last().is_some_and(|line| line.contains("\"new\":7")), "unknown fields stay: {text}");
        let before = store.total_bytes();
        store.write_patch(&one, b"diff").expect("written");
        assert_eq!(store.total_bytes(), before + 4, "patches are of the store");
        let half = store.root().join("fixes").join(format!("{}x", files::TEMPORARY_PREFIX));
        std::fs::File::create(&half).and_then(|file| file.set_modified(std::time::UNIX_EPOCH)).expect("a file");
        assert_eq!(store.remove_stale_temporaries().expect("removed"), 1);
        assert!(!half.exists());
        assert_eq!(store.patch(&one).expect("read").as_deref(), Some(b"diff".as_slice()));
        assert_eq!(store.patch(&sample_fix(2).fix_id).expect("read"), None);
        let lock = store.lock_fix(&one).expect("asked").expect("free");
        assert!(store.is_fix_live(&one).expect("asked") && store.lock_fix(&one).expect("asked").is_none());
        drop(lock);
        let handed = store.lock_fix_for_worker(&one).expect("asked").expect("free");
        assert!(store.is_fix_live(&one).expect("asked"));
        drop(handed);
        assert!(!store.is_fix_live(&one).expect("asked"));
    }
}
