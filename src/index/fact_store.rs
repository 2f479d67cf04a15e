//! Content-addressed store of facts that were derived from blobs, commits and texts, on disk.
//!
//! A folder holds parts; each part is a [`SealedFile`] of facts of one namespace, written once and atomically. The key of
//! a fact is a hash of all its inputs, so a fact that exists is correct, whoever wrote it.
//!
//! - The store is never required: a missing, damaged or unwritable fact is computed again.
//! - A damaged part is removed and reported once.
//! - Any number of processes may read and write the same folder without waiting.
//! - The size of a namespace is limited; recently used facts stay.
//!
//! | namespace | facts | folder |
//! |---|---|---|
//! | `documents` | words and lines of files, see [`super::document_store`] | repository |
//! | `past` | changes of commits, see [`super::history_cache`] | repository |
//! | `texts` | syntax and masked passages, see `context::file_analysis` | repository |
//! | `coverage` | parsed reports of test coverage | repository |
//! | `vectors-…` | embedding vectors of one model, see `context::embeddings` | all repositories |
//!
//! The format is our own, the same as that of the index, because a kept crate costs more than the 200 lines here. The
//! facts of a review of redis (5.4 MB in 1,025 documents, 6.5 MB in 204 texts) are opened and read, each checked by its
//! hash, in 4.1 + 2.0 ms. SQLite (rusqlite 0.41, bundled) takes 6.6 + 4.7 ms and 7 % more space, and its C code takes 42
//! s of one core in a release build. redb 4 takes 5.5 + 3.8 ms and 58 % more space, and its writer keeps all other
//! processes out.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use bytemuck::{Pod, Zeroable};

use super::disk;
use super::sealed_file::{self, SealedFile, SealedFileError, TEMPORARY_PREFIX};

/// Version of the layout of a part: its first section holds the keys, each other section a fact, in the same order.
const VERSION: u64 = 1;
/// Most parts of a namespace; more parts are merged into one.
const MAX_PARTS: usize = 12;
/// Age after which temporary files of a dead process are removed.
const ABANDONED_AFTER: Duration = Duration::from_secs(3_600);

/// Hash of all inputs of a fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Pod, Zeroable)]
#[repr(transparent)]
pub struct FactKey(pub [u8; 16]);

impl FactKey {
    /// Hashes texts and the version of this program, because versions may compute different facts.
    pub fn from_parts(parts: &[&str]) -> Self {
        let mut hasher = blake3::Hasher::new();
        for part in [env!("CARGO_PKG_VERSION")].iter().chain(parts) {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        Self(sealed_file::truncate_hash(hasher.finalize()))
    }
}

/// Facts of one namespace.
#[derive(Debug, Default)]
pub struct FactStore {
    /// Without a folder, facts live only in memory.
    folder: Option<PathBuf>,
    namespace: String,
    max_bytes: u64,
    parts: Vec<FactPart>,
    /// Location of each fact on disk.
    entries: HashMap<FactKey, FactLocation>,
    /// Facts that are not written yet, and their size in bytes.
    pending: RefCell<HashMap<FactKey, Vec<u8>>>,
    pending_bytes: Cell<u64>,
    /// Facts on disk that were read.
    used: RefCell<HashSet<FactKey>>,
}

/// Position of a part, oldest first, and of a section in it.
#[derive(Debug, Clone, Copy)]
struct FactLocation {
    part: usize,
    section: usize,
}

/// Open part of a namespace.
#[derive(Debug)]
struct FactPart {
    path: PathBuf,
    file: SealedFile,
}

impl FactStore {
    /// Opens a namespace; it is empty without a folder or without parts.
    pub fn open(folder: Option<&Path>, namespace: &str, max_bytes: u64) -> Self {
        let mut store =
            Self { folder: folder.map(Path::to_owned), namespace: namespace.to_owned(), max_bytes, ..Self::default() };
        for path in folder.map(|folder| list_parts(folder, namespace)).unwrap_or_default() {
            match FactPart::open(&path) {
                Ok(Some((part, keys))) => {
                    let at = store.parts.len();
                    let location = |section| FactLocation { part: at, section };
                    store.entries.extend(keys.into_iter().zip((1..).map(location)));
                    store.parts.push(part);
                }
                // Another process has merged this part into a larger one.
                Ok(None) => {}
                Err(error) => report_damaged_part(&path, &error),
            }
        }
        store
    }

    /// Returns a fact; `None` if it is missing or damaged.
    pub fn get(&self, key: FactKey) -> Option<Vec<u8>> {
        if let Some(bytes) = self.pending.borrow().get(&key) {
            return Some(bytes.clone());
        }
        let location = self.entries.get(&key)?;
        let part = self.parts.get(location.part)?;
        let read = part.file.read_section(location.section);
        let bytes = read.inspect_err(|error| report_damaged_part(&part.path, error)).ok()?;
        self.used.borrow_mut().insert(key);
        Some(bytes)
    }

    /// Returns true if a fact exists; reading it may still fail.
    pub fn contains(&self, key: FactKey) -> bool {
        self.pending.borrow().contains_key(&key) || self.entries.contains_key(&key)
    }

    /// Returns the size of all facts in bytes, those on disk and the new ones.
    pub fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.file.length()).sum::<u64>() + self.pending_bytes.get()
    }

    /// Returns true if [`FactStore::insert`] takes a fact of `bytes` bytes.
    pub fn has_room(&self, bytes: usize) -> bool {
        self.pending_bytes.get() + bytes as u64 <= self.max_bytes
    }

    /// Adds a fact, which [`FactStore::close`] writes if there is a folder. Ignores a fact that would exceed the size
    /// limit of new facts.
    pub fn insert(&self, key: FactKey, bytes: Vec<u8>) {
        if self.has_room(bytes.len()) {
            self.pending_bytes.set(self.pending_bytes.get() + bytes.len() as u64);
            self.pending.borrow_mut().insert(key, bytes);
        }
    }

    /// Removes all facts of the namespace.
    pub fn clear(&mut self) {
        self.parts.drain(..).for_each(|part| drop(disk::remove(&part.path)));
        self.entries.clear();
        self.pending.take();
        self.pending_bytes.take();
        self.used.take();
    }

    /// Writes the new facts. A failure is only logged; the next process computes the facts again.
    pub fn close(self) {
        let Some(folder) = self.folder.clone().filter(|_| !self.pending.borrow().is_empty()) else { return };
        if let Err(error) = self.write_part(&folder) {
            tracing::warn!("cannot keep what is known of the repository in {}: {error}", folder.display());
        }
    }

    fn write_part(self, folder: &Path) -> io::Result<()> {
        let known: u64 = self.parts.iter().map(|part| part.file.length()).sum();
        let new = self.pending.take();
        let bytes: u64 = new.values().map(|fact| fact.len() as u64).sum();
        let is_merged = self.parts.len() >= MAX_PARTS || known + bytes > self.max_bytes;
        let mut facts: Vec<(FactKey, Vec<u8>)> = if is_merged { self.read_kept_facts(bytes) } else { Vec::new() };
        facts.retain(|(key, _)| !new.contains_key(key));
        facts.extend(new);
        facts.sort_unstable_by_key(|(key, _)| *key);
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let name = write_facts(folder, &self.namespace, &facts)?;
        if is_merged {
            for part in self.parts.iter().filter(|part| part.path.file_name().is_none_or(|known| *known != *name)) {
                fs::remove_file(&part.path).ok();
            }
            remove_abandoned_files(folder);
        }
        Ok(())
    }

    /// Reads the facts that stay beside `new_bytes` of new facts: those used now, then the most recently written. Half of
    /// the space is left for later facts.
    fn read_kept_facts(&self, new_bytes: u64) -> Vec<(FactKey, Vec<u8>)> {
        let used = self.used.borrow();
        let mut places: Vec<(&FactKey, &FactLocation)> = self.entries.iter().collect();
        places.sort_by_key(|(key, at)| (!used.contains(key), std::cmp::Reverse(at.part), at.section));
        let mut room = (self.max_bytes / 2).saturating_sub(new_bytes);
        let mut facts = Vec::new();
        for (key, at) in places {
            let Some(part) = self.parts.get(at.part) else { continue };
            let Some(left) = room.checked_sub(part.file.section_length(at.section)) else { break };
            room = left;
            facts.extend(part.file.read_section(at.section).ok().map(|fact| (*key, fact)));
        }
        facts
    }
}

impl FactPart {
    /// Opens a part and reads its keys; returns `None` if the file does not exist.
    fn open(path: &Path) -> Result<Option<(Self, Vec<FactKey>)>, SealedFileError> {
        let Some(file) = SealedFile::open(path, VERSION)? else { return Ok(None) };
        let keys: Vec<FactKey> = file.read_section(0)?;
        match keys.len() + 1 == file.section_count() {
            true => Ok(Some((Self { path: path.to_owned(), file }, keys))),
            false => Err(SealedFileError::Damaged("it has not as many facts as keys")),
        }
    }
}

/// Removes a part whose content is of no use. Any other read error says nothing about the content and is only logged.
fn report_damaged_part(path: &Path, error: &SealedFileError) {
    if let SealedFileError::Io(error) = error {
        tracing::warn!("{} cannot be read: {error}", path.display());
        return;
    }
    // Only the process that removes the part reports it.
    if disk::remove(path).is_ok() {
        tracing::warn!("{} was not as it should be ({error}); what was in it is found out again", path.display());
    }
}

/// Lists the parts of a namespace, oldest first.
fn list_parts(folder: &Path, namespace: &str) -> Vec<PathBuf> {
    let is_part = |entry: &fs::DirEntry| {
        let name = entry.file_name();
        name.to_str().and_then(|name| name.strip_prefix(namespace)).is_some_and(|rest| rest.starts_with('-'))
    };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().filter(is_part);
    let mut parts: Vec<(Option<SystemTime>, PathBuf)> =
        entries.map(|entry| (entry.metadata().and_then(|meta| meta.modified()).ok(), entry.path())).collect();
    parts.sort();
    parts.into_iter().map(|(_, path)| path).collect()
}

/// Writes a part and returns its file name.
fn write_facts(folder: &Path, namespace: &str, facts: &[(FactKey, Vec<u8>)]) -> io::Result<String> {
    let keys: Vec<FactKey> = facts.iter().map(|(key, _)| *key).collect();
    let sections: Vec<&[u8]> =
        std::iter::once(bytemuck::cast_slice(&keys)).chain(facts.iter().map(|(_, fact)| fact.as_slice())).collect();
    sealed_file::publish(folder, VERSION, &sections, |hash| format!("{namespace}-{hash}"))
}

/// Removes temporary files of dead processes.
fn remove_abandoned_files(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_begun = entry.file_name().to_str().is_some_and(|name| name.starts_with(TEMPORARY_PREFIX));
        let age = || entry.metadata().ok()?.modified().ok()?.elapsed().ok();
        if is_begun && age().is_some_and(|age| age > ABANDONED_AFTER) {
            disk::remove(&entry.path()).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANY: u64 = 1 << 20;

    fn test_key(number: usize) -> FactKey {
        FactKey::from_parts(&["test", &number.to_string()])
    }

    fn test_record(number: usize) -> Vec<u8> {
        format!("record {number} ").repeat(50).into_bytes()
    }

    fn write_records(folder: &Path, numbers: std::ops::Range<usize>, most: u64) {
        let shelf = FactStore::open(Some(folder), "test", most);
        numbers.for_each(|number| shelf.insert(test_key(number), test_record(number)));
        shelf.close();
    }

    fn bytes_on_disk(folder: &Path) -> u64 {
        list_parts(folder, "test").iter().map(|path| fs::metadata(path).expect("a part").len()).sum()
    }

    #[test]
    fn what_is_put_is_there_for_others_and_many_parts_become_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let early = FactStore::open(Some(folder.path()), "test", MANY);
        for number in 0..40 {
            write_records(folder.path(), number..number + 2, MANY);
            assert!(list_parts(folder.path(), "test").len() <= MAX_PARTS + 1);
        }
        let shelf = FactStore::open(Some(folder.path()), "test", MANY);
        for number in 0..41 {
            assert_eq!(shelf.get(test_key(number)), Some(test_record(number)));
        }
        assert_eq!((shelf.get(test_key(41)), early.get(test_key(0))), (None, None));
        assert_eq!(FactStore::open(Some(folder.path()), "tes", MANY).get(test_key(0)), None, "another sort");
        assert_eq!(FactStore::open(None, "test", MANY).get(test_key(0)), None);
    }

    #[test]
    fn it_never_grows_beyond_its_bound_and_what_is_asked_for_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let most = 20_000;
        for number in 0..100 {
            let shelf = FactStore::open(Some(folder.path()), "test", most);
            assert_eq!(shelf.get(test_key(0)).is_some(), number > 0, "{number}");
            shelf.insert(test_key(number), test_record(number));
            shelf.close();
            assert!(bytes_on_disk(folder.path()) <= most + 1_000, "{}", bytes_on_disk(folder.path()));
        }
        let shelf = FactStore::open(Some(folder.path()), "test", most);
        assert_eq!((shelf.get(test_key(99)), shelf.get(test_key(1))), (Some(test_record(99)), None));
    }

    #[test]
    fn one_question_does_not_grow_it_beyond_its_bound() {
        let folder = tempfile::tempdir().expect("a folder");
        let most = 20_000;
        write_records(folder.path(), 0..3, most);
        write_records(folder.path(), 3..500, most);
        assert!(bytes_on_disk(folder.path()) <= most + 3_000, "{}", bytes_on_disk(folder.path()));
        assert!(FactStore::open(Some(folder.path()), "test", most).get(test_key(3)).is_some());
    }

    #[test]
    fn what_cannot_be_read_now_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("test-0");
        fs::write(&path, "not ours").expect("a file");
        for (error, is_there) in [
            (SealedFileError::Io(io::ErrorKind::PermissionDenied.into()), true),
            (SealedFileError::Io(io::ErrorKind::Interrupted.into()), true),
            (SealedFileError::Damaged("it is cut short"), false),
        ] {
            report_damaged_part(&path, &error);
            assert_eq!(path.exists(), is_there, "{error}");
        }
    }

    #[test]
    fn what_is_no_file_is_taken_away() {
        let folder = tempfile::tempdir().expect("a folder");
        write_records(folder.path(), 0..3, MANY);
        let path = list_parts(folder.path(), "test").pop().expect("a part");
        disk::with_others_in_place(&path, |sort| {
            assert_eq!(FactStore::open(Some(folder.path()), "test", MANY).get(test_key(0)), None, "{sort}");
            write_records(folder.path(), 0..3, MANY);
            assert_eq!(
                FactStore::open(Some(folder.path()), "test", MANY).get(test_key(0)),
                Some(test_record(0)),
                "{sort}"
            );
        });
    }

    #[test]
    fn what_is_damaged_is_taken_away_and_never_believed() {
        let folder = tempfile::tempdir().expect("a folder");
        write_records(folder.path(), 0..3, MANY);
        let path = list_parts(folder.path(), "test").pop().expect("a part");
        let whole = fs::read(&path).expect("its bytes");
        for at in 0..whole.len() {
            let mut torn = whole.clone();
            torn[at] ^= 1;
            fs::write(&path, &torn).expect("a damaged part");
            let shelf = FactStore::open(Some(folder.path()), "test", MANY);
            for number in 0..3 {
                assert!(shelf.get(test_key(number)).is_none_or(|found| found == test_record(number)), "byte {at}");
            }
            assert!(!path.exists(), "byte {at}");
        }
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length]).expect("a short part");
            let shelf = FactStore::open(Some(folder.path()), "test", MANY);
            assert!((0..3).all(|number| shelf.get(test_key(number)).is_none()), "{length} bytes");
        }
        write_records(folder.path(), 0..3, MANY);
        assert_eq!(FactStore::open(Some(folder.path()), "test", MANY).get(test_key(2)), Some(test_record(2)));
    }

    #[test]
    fn what_is_cleared_is_gone_for_all_and_what_comes_later_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        write_records(folder.path(), 0..3, MANY);
        let other = FactStore::open(Some(folder.path()), "other", MANY);
        other.insert(test_key(0), test_record(0));
        other.close();
        let mut store = FactStore::open(Some(folder.path()), "test", MANY);
        store.insert(test_key(3), test_record(3));
        store.clear();
        store.insert(test_key(4), test_record(4));
        assert_eq!((store.get(test_key(0)), store.get(test_key(3))), (None, None));
        store.close();
        let store = FactStore::open(Some(folder.path()), "test", MANY);
        assert!((0..4).all(|number| !store.contains(test_key(number))));
        assert_eq!(store.get(test_key(4)), Some(test_record(4)));
        assert!(FactStore::open(Some(folder.path()), "other", MANY).contains(test_key(0)));
    }
}
