//! Content-addressed disk cache of facts derived from blobs and commits.
//!
//! A cache is a folder of parts; each part is written once and atomically. The key of a record is a hash of all inputs
//! of the record, so a record that exists is correct, whoever wrote it.
//!
//! - The cache is never required: a missing, damaged or unwritable record is computed again.
//! - A damaged part is removed and reported once.
//! - Any number of processes may read and write the same folder without waiting.
//! - The size on disk is limited; recently used records stay.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use bytemuck::{Pod, Zeroable};

use super::disk;

/// Most parts; more parts are merged into one.
const MAX_PARTS: usize = 12;
/// Age after which temporary files of a dead process are removed.
const ABANDONED_AFTER: Duration = Duration::from_secs(3_600);
const TEMPORARY_PREFIX: &str = ".part-";
const MAGIC: u64 = u64::from_ne_bytes(*b"rvdshlf\x01");
/// Upper bound for the record count; a larger count shows that the file is damaged or foreign.
const MAX_RECORDS_PER_PART: u64 = 1 << 22;

/// Hash of all inputs of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Pod, Zeroable)]
#[repr(transparent)]
pub struct CacheKey([u8; 16]);

impl CacheKey {
    /// Hashes texts and the version of this program, because versions may compute different facts.
    pub fn from_parts(parts: &[&str]) -> Self {
        let mut hasher = blake3::Hasher::new();
        for part in [env!("CARGO_PKG_VERSION")].iter().chain(parts) {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        Self(truncate_hash(hasher.finalize()))
    }
}

fn truncate_hash(hash: blake3::Hash) -> [u8; 16] {
    let mut half = [0; 16];
    half.copy_from_slice(&hash.as_bytes()[..16]);
    half
}

#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct CachePartHeader {
    magic: u64,
    records: u64,
    /// Checksum of the table.
    sum: [u8; 16],
}

#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct CacheEntry {
    key: CacheKey,
    start: u64,
    length: u64,
    sum: [u8; 16],
}

/// Cache of one kind of record.
#[derive(Debug, Default)]
pub struct DiskCache {
    /// Without a folder, records live only in memory.
    folder: Option<PathBuf>,
    kind: &'static str,
    max_bytes: u64,
    parts: Vec<CachePart>,
    /// Part and entry of each key.
    entries: HashMap<CacheKey, (usize, CacheEntry)>,
    /// Records that are not written yet, and their size in bytes.
    pending: RefCell<HashMap<CacheKey, Vec<u8>>>,
    pending_bytes: Cell<u64>,
    /// Existing records that were read.
    used: RefCell<HashSet<CacheKey>>,
}

#[derive(Debug)]
struct CachePart {
    path: PathBuf,
    file: File,
    bytes: u64,
}

impl DiskCache {
    /// Opens the cache of one kind of record; it is empty without a folder or without parts.
    pub fn open(folder: Option<&Path>, sort: &'static str, most_bytes: u64) -> Self {
        let mut shelf =
            Self { folder: folder.map(Path::to_owned), kind: sort, max_bytes: most_bytes, ..Self::default() };
        for path in folder.map(|folder| list_parts(folder, sort)).unwrap_or_default() {
            match CachePart::open(&path) {
                Ok((part, rows)) => {
                    let at = shelf.parts.len();
                    shelf.entries.extend(rows.into_iter().map(|row| (row.key, (at, row))));
                    shelf.parts.push(part);
                }
                // Another process has merged this part into a larger one.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => report_damaged_part(&path, &error),
            }
        }
        shelf
    }

    /// Returns the bytes of a record; `None` if it is missing or damaged.
    pub fn get(&self, key: CacheKey) -> Option<Vec<u8>> {
        if let Some(bytes) = self.pending.borrow().get(&key) {
            return Some(bytes.clone());
        }
        let (at, row) = self.entries.get(&key)?;
        let part = self.parts.get(*at)?;
        let bytes = part.read(row).inspect_err(|error| report_damaged_part(&part.path, error)).ok()?;
        self.used.borrow_mut().insert(key);
        Some(bytes)
    }

    /// Returns true if a record exists; reading it may still fail.
    pub fn contains(&self, key: CacheKey) -> bool {
        self.pending.borrow().contains_key(&key) || self.entries.contains_key(&key)
    }

    /// Adds a record, which [`DiskCache::close`] writes if there is a folder. Ignores a record that would exceed the
    /// size limit of new records.
    pub fn insert(&self, key: CacheKey, bytes: Vec<u8>) {
        let with_it = self.pending_bytes.get() + bytes.len() as u64;
        if with_it <= self.max_bytes {
            self.pending_bytes.set(with_it);
            self.pending.borrow_mut().insert(key, bytes);
        }
    }

    /// Writes the new records. A failure is only logged; the next process computes the records again.
    pub fn close(self) {
        let Some(folder) = self.folder.clone().filter(|_| !self.pending.borrow().is_empty()) else { return };
        if let Err(error) = self.write_part(&folder) {
            tracing::warn!("cannot keep what is known of the repository in {}: {error}", folder.display());
        }
    }

    fn write_part(self, folder: &Path) -> io::Result<()> {
        let new = self.pending.take();
        let bytes: u64 = new.values().map(|record| record.len() as u64).sum();
        let known: u64 = self.parts.iter().map(|part| part.bytes).sum();
        let mut records: Vec<(CacheKey, Vec<u8>)> = new.into_iter().collect();
        let is_merged = self.parts.len() >= MAX_PARTS || known + bytes > self.max_bytes;
        if is_merged {
            // Keep the records used now, then the most recently written; leave half of the space for later records.
            let used = self.used.take();
            let mut places: Vec<(&CacheKey, &(usize, CacheEntry))> = self.entries.iter().collect();
            places.sort_by_key(|(key, (at, row))| (!used.contains(key), std::cmp::Reverse(*at), row.start));
            let mut room = (self.max_bytes / 2).saturating_sub(bytes);
            for (key, (at, row)) in places {
                let Some(left) = room.checked_sub(row.length) else { break };
                room = left;
                records.extend(self.parts.get(*at).and_then(|part| Some((*key, part.read(row).ok()?))));
            }
        }
        records.sort_by_key(|(key, _)| key.0);
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let name = write_part_file(folder, self.kind, &records)?;
        if is_merged {
            for part in self.parts.iter().filter(|part| part.path.file_name().is_none_or(|known| *known != *name)) {
                fs::remove_file(&part.path).ok();
            }
            remove_abandoned_files(folder);
        }
        Ok(())
    }
}

impl CachePart {
    fn open(path: &Path) -> io::Result<(Self, Vec<CacheEntry>)> {
        let wrong = |what| io::Error::new(io::ErrorKind::InvalidData, what);
        let file = disk::open(path, File::options().read(true))?;
        let bytes = file.metadata()?.len();
        let mut head = CachePartHeader::zeroed();
        file.read_exact_at(bytemuck::bytes_of_mut(&mut head), 0)?;
        if head.magic != MAGIC || head.records > MAX_RECORDS_PER_PART.min(bytes / size_of::<CacheEntry>() as u64) {
            return Err(wrong("it is none of ours"));
        }
        let mut rows = vec![CacheEntry::zeroed(); head.records as usize];
        file.read_exact_at(bytemuck::cast_slice_mut(&mut rows), size_of::<CachePartHeader>() as u64)?;
        if truncate_hash(blake3::hash(bytemuck::cast_slice(&rows))) != head.sum {
            return Err(wrong("its table does not add up"));
        }
        if rows.iter().any(|row| row.start.saturating_add(row.length) > bytes) {
            return Err(wrong("it is cut short"));
        }
        Ok((Self { path: path.to_owned(), file, bytes }, rows))
    }

    fn read(&self, row: &CacheEntry) -> io::Result<Vec<u8>> {
        let mut record = vec![0; row.length as usize];
        self.file.read_exact_at(&mut record, row.start)?;
        match truncate_hash(blake3::hash(&record)) == row.sum {
            true => Ok(record),
            false => Err(io::Error::new(io::ErrorKind::InvalidData, "a record does not add up")),
        }
    }
}

/// Removes a part whose content is damaged. Any other read error says nothing about the content and is only logged.
fn report_damaged_part(path: &Path, error: &io::Error) {
    if !matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof) {
        tracing::warn!("{} cannot be read: {error}", path.display());
        return;
    }
    // Only the process that removes the part reports it.
    if disk::remove(path).is_ok() {
        tracing::warn!("{} was not as it should be ({error}); what was in it is found out again", path.display());
    }
}

/// Lists the parts of a kind, oldest first.
fn list_parts(folder: &Path, sort: &str) -> Vec<PathBuf> {
    let is_part = |entry: &fs::DirEntry| {
        let name = entry.file_name();
        name.to_str().and_then(|name| name.strip_prefix(sort)).is_some_and(|rest| rest.starts_with('-'))
    };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().filter(is_part);
    let mut parts: Vec<(Option<SystemTime>, PathBuf)> =
        entries.map(|entry| (entry.metadata().and_then(|meta| meta.modified()).ok(), entry.path())).collect();
    parts.sort();
    parts.into_iter().map(|(_, path)| path).collect()
}

fn write_part_file(folder: &Path, sort: &str, records: &[(CacheKey, Vec<u8>)]) -> io::Result<String> {
    let mut start = (size_of::<CachePartHeader>() + records.len() * size_of::<CacheEntry>()) as u64;
    let mut rows = Vec::with_capacity(records.len());
    for (key, record) in records {
        let length = record.len() as u64;
        rows.push(CacheEntry { key: *key, start, length, sum: truncate_hash(blake3::hash(record)) });
        start += length;
    }
    let sum = truncate_hash(blake3::hash(bytemuck::cast_slice(&rows)));
    let head = CachePartHeader { magic: MAGIC, records: rows.len() as u64, sum };
    let file = tempfile::Builder::new().prefix(TEMPORARY_PREFIX).tempfile_in(folder)?;
    let mut out = io::BufWriter::new(file);
    out.write_all(bytemuck::bytes_of(&head))?;
    out.write_all(bytemuck::cast_slice(&rows))?;
    for (_, record) in records {
        out.write_all(record)?;
    }
    let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    let sum: String = sum.iter().map(|byte| format!("{byte:02x}")).collect();
    let name = format!("{sort}-{sum}");
    file.persist(folder.join(&name)).map_err(|error| error.error)?;
    Ok(name)
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

    fn test_key(number: usize) -> CacheKey {
        CacheKey::from_parts(&["test", &number.to_string()])
    }

    fn test_record(number: usize) -> Vec<u8> {
        format!("record {number} ").repeat(50).into_bytes()
    }

    fn write_records(folder: &Path, numbers: std::ops::Range<usize>, most: u64) {
        let shelf = DiskCache::open(Some(folder), "test", most);
        numbers.for_each(|number| shelf.insert(test_key(number), test_record(number)));
        shelf.close();
    }

    fn bytes_on_disk(folder: &Path) -> u64 {
        list_parts(folder, "test").iter().map(|path| fs::metadata(path).expect("a part").len()).sum()
    }

    #[test]
    fn what_is_put_is_there_for_others_and_many_parts_become_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let early = DiskCache::open(Some(folder.path()), "test", MANY);
        for number in 0..40 {
            write_records(folder.path(), number..number + 2, MANY);
            assert!(list_parts(folder.path(), "test").len() <= MAX_PARTS + 1);
        }
        let shelf = DiskCache::open(Some(folder.path()), "test", MANY);
        for number in 0..41 {
            assert_eq!(shelf.get(test_key(number)), Some(test_record(number)));
        }
        assert_eq!((shelf.get(test_key(41)), early.get(test_key(0))), (None, None));
        assert_eq!(DiskCache::open(Some(folder.path()), "tes", MANY).get(test_key(0)), None, "another sort");
        assert_eq!(DiskCache::open(None, "test", MANY).get(test_key(0)), None);
    }

    #[test]
    fn it_never_grows_beyond_its_bound_and_what_is_asked_for_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let most = 20_000;
        for number in 0..100 {
            let shelf = DiskCache::open(Some(folder.path()), "test", most);
            assert!(number == 0 || shelf.get(test_key(0)).is_some(), "{number}");
            shelf.insert(test_key(number), test_record(number));
            shelf.close();
            assert!(bytes_on_disk(folder.path()) <= most + 1_000, "{}", bytes_on_disk(folder.path()));
        }
        let shelf = DiskCache::open(Some(folder.path()), "test", most);
        assert_eq!((shelf.get(test_key(99)), shelf.get(test_key(1))), (Some(test_record(99)), None));
    }

    #[test]
    fn one_question_does_not_grow_it_beyond_its_bound() {
        let folder = tempfile::tempdir().expect("a folder");
        let most = 20_000;
        write_records(folder.path(), 0..3, most);
        write_records(folder.path(), 3..500, most);
        assert!(bytes_on_disk(folder.path()) <= most + 3_000, "{}", bytes_on_disk(folder.path()));
        assert!(DiskCache::open(Some(folder.path()), "test", most).get(test_key(3)).is_some());
    }

    #[test]
    fn what_cannot_be_read_now_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("test-0");
        fs::write(&path, "not ours").expect("a file");
        for (kind, is_there) in [
            (io::ErrorKind::PermissionDenied, true),
            (io::ErrorKind::Interrupted, true),
            (io::ErrorKind::UnexpectedEof, false),
        ] {
            report_damaged_part(&path, &io::Error::from(kind));
            assert_eq!(path.exists(), is_there, "{kind}");
        }
    }

    #[test]
    fn what_is_no_file_is_taken_away() {
        let folder = tempfile::tempdir().expect("a folder");
        write_records(folder.path(), 0..3, MANY);
        let path = list_parts(folder.path(), "test").pop().expect("a part");
        disk::with_others_in_place(&path, |sort| {
            assert_eq!(DiskCache::open(Some(folder.path()), "test", MANY).get(test_key(0)), None, "{sort}");
            write_records(folder.path(), 0..3, MANY);
            assert_eq!(
                DiskCache::open(Some(folder.path()), "test", MANY).get(test_key(0)),
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
            let shelf = DiskCache::open(Some(folder.path()), "test", MANY);
            for number in 0..3 {
                assert!(shelf.get(test_key(number)).is_none_or(|found| found == test_record(number)), "byte {at}");
            }
            assert!(!path.exists(), "byte {at}");
        }
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length]).expect("a short part");
            let shelf = DiskCache::open(Some(folder.path()), "test", MANY);
            assert!((0..3).all(|number| shelf.get(test_key(number)).is_none()), "{length} bytes");
        }
        write_records(folder.path(), 0..3, MANY);
        assert_eq!(DiskCache::open(Some(folder.path()), "test", MANY).get(test_key(2)), Some(test_record(2)));
    }
}
