//! Fixes: `fixes.ndjson`, one line per change of a fix, and the folder `fixes` with their patches and what the user's files
//! held before a patch was put into them.
//!
//! Invariants as elsewhere: appended under the store's lock, synced, the last line of a fix wins, unknown fields survive; a
//! patch is written whole before the line that speaks of it. A fix's lock is held by whoever makes or applies it.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::files::{self, ExistingPolicy, SyncPolicy};
use super::{RunLock, Store, StoreError, lines, lock, run_record};
use crate::domain::{Fix, FixId, Time};

/// The latest lines of a fix: as JSON (also when a newer revdeck wrote it) and as a record that this version reads.
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
    pub fn create_fix(&self, fix: &Fix) -> Result<(), StoreError> {
        self.with_lock(|_| append_line(&self.fixes_path(), fix))
    }

    /// Every fix, newest first. Lines that this version cannot read are left out of account.
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

    /// How long `fixes.ndjson` is: whether there is anything new to read. 0 when it is not there.
    pub fn fixes_bytes(&self) -> u64 {
        std::fs::metadata(self.fixes_path()).map_or(0, |seen| seen.len())
    }

    pub fn fix(&self, id: &FixId) -> Result<Option<Fix>, StoreError> {
        Ok(self.latest_fix(id)?.map(|latest| latest.fix))
    }

    /// Changes a fix's record in one step; `None` when there is no such fix.
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
            append_line(&self.fixes_path(), &raw)?;
            Ok(Some(after))
        })
    }

    /// Writes the patch of a fix; one that is there is replaced.
    pub fn write_patch(&self, id: &FixId, patch: &[u8]) -> Result<(), StoreError> {
        self.prepare_for_write()?;
        files::write_atomically(&self.patch_path(id), patch, ExistingPolicy::Replace)
    }

    /// The patch of a fix; `None` when there is none.
    pub fn patch(&self, id: &FixId) -> Result<Option<Vec<u8>>, StoreError> {
        files::read(&self.patch_path(id))
    }

    /// Keeps what the `file`th file that a fix touches held before.
    pub fn save_original(&self, id: &FixId, file: usize, content: &[u8]) -> Result<(), StoreError> {
        self.prepare_for_write()?;
        files::write_atomically(&self.original_path(id, file), content, ExistingPolicy::Replace)
    }

    pub fn original(&self, id: &FixId, file: usize) -> Result<Option<Vec<u8>>, StoreError> {
        files::read(&self.original_path(id, file))
    }

    /// Takes a fix's lock; `None` when somebody makes or applies it just now.
    pub fn lock_fix(&self, id: &FixId) -> Result<Option<RunLock>, StoreError> {
        self.prepare_for_write()?;
        files::make_folder(&self.root.join("locks"))?;
        lock::lock_run(&self.lock_path(id.as_str()))
    }

    /// As [`Store::lock_fix`], as the locked file: for a worker that holds the lock for its life, as its standard input.
    pub fn lock_fix_for_worker(&self, id: &FixId) -> Result<Option<File>, StoreError> {
        self.prepare_for_write()?;
        files::make_folder(&self.root.join("locks"))?;
        lock::try_lock_file(&self.lock_path(id.as_str()))
    }

    /// Whether somebody makes or applies the fix just now.
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
            // A line of a newer version stays what is changed; what this version makes of it is the line before.
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

fn append_line(path: &Path, line: &impl serde::Serialize) -> Result<(), StoreError> {
    let mut line = serde_json::to_vec(line).map_err(|source| StoreError::Encode { what: "a fix", source })?;
    line.push(b'\n');
    files::append(path, &line, SyncPolicy::Now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{FixStatus, SCHEMA_VERSION, Source, Usage};
    use crate::store::RepoInfo;

    fn sample_fix(n: u32) -> Fix {
        Fix {
            fix_id: format!("fx_01JD3Z8Q6M7S5V2K4T9XWB1C{n:02}").parse().expect("an id"),
            status: FixStatus::Working,
            created_at: Time::UNIX_EPOCH,
            updated_at: Time::UNIX_EPOCH,
            source: Source::Cli,
            private: false,
            findings: Vec::new(),
            left_out: Vec::new(),
            run_id: "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0E".parse().expect("an id"),
            snapshot_commit: "1".repeat(40),
            base_commit: String::new(),
            fixed_commit: String::new(),
            reviewer: "builtin".to_owned(),
            model: String::new(),
            follow_up_count: 0,
            reviews: Vec::new(),
            verdict: String::new(),
            files: Vec::new(),
            patch_hash: String::new(),
            tokens: Usage::default(),
            cost: 0.0,
            resolve_ms: 0,
            reason: String::new(),
            worktree: String::new(),
            touched: Vec::new(),
        }
    }

    #[test]
    fn the_last_line_of_a_fix_wins_torn_and_foreign_lines_hurt_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let info =
            RepoInfo { version: SCHEMA_VERSION, key: "k".to_owned(), name: "n".to_owned(), common_dir: String::new() };
        let store = Store::open(folder.path(), info).expect("a store");
        assert_eq!(store.fixes().expect("read"), Vec::new());
        store.create_fix(&sample_fix(1)).expect("created");
        // Of a newer version, and then torn.
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
