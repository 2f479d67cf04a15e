//! Stores embedding vectors on disk: one file per model and address, keyed by the content of the embedded text.
//!
//! - The file is valid up to its first incomplete or damaged record.
//! - A failure costs only time.
//! - A file does not grow beyond [`MAX_FILE_BYTES`].
//! - Appending does not read records again that were already read.
//!
//! Layout (little endian): magic number, then for each vector its key (16 bytes), its dimension (4), a checksum (8) and
//! its numbers (4 bytes each).

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::fs::{DirBuilder, File, TryLockError};
use std::io::{self, BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::domain::content_hash;
use crate::index::disk;

const MAGIC: &[u8; 8] = b"rdvects1";
const RECORD_HEADER_BYTES: usize = 28;
/// Largest file in bytes: 40,000 vectors of 768 numbers. A larger file is started anew.
const MAX_FILE_BYTES: u64 = 128 << 20;
/// Largest dimension of a vector; no model has more.
const MAX_DIMENSIONS: usize = 1 << 16;

/// Vector file of one model and address.
pub struct VectorCache {
    path: PathBuf,
    /// End of the records that were read or written.
    end: Cell<RecordsEnd>,
}

/// End of the valid records; 0 if there are none.
#[derive(Debug, Clone, Copy, Default)]
struct RecordsEnd {
    at: u64,
    /// Offset and header of the last record.
    last: Option<(u64, [u8; RECORD_HEADER_BYTES])>,
}

impl RecordsEnd {
    /// Returns true if records still end there; another process may have started the file anew.
    fn is_still_in(&self, file: &File) -> bool {
        let mut head = [0; RECORD_HEADER_BYTES];
        let is_there = |(at, last)| file.read_exact_at(&mut head, at).is_ok() && head == last;
        file.metadata().is_ok_and(|data| data.len() >= self.at) && self.last.is_some_and(is_there)
    }
}

impl VectorCache {
    /// Creates a cache in `folder` for the model and address `name`; reads nothing yet.
    pub fn new(folder: &Path, name: &str) -> Self {
        let hash: String = content_hash([name.as_bytes()]).chars().take(24).collect();
        Self { path: folder.join(format!("{hash}.vectors")), end: Cell::default() }
    }

    /// Returns the wanted vectors that exist. All have the dimension of the first one found.
    pub fn read(&self, wanted: &HashSet<[u8; 16]>) -> HashMap<[u8; 16], Vec<f32>> {
        let mut found: HashMap<[u8; 16], Vec<f32>> = HashMap::new();
        let mut size = None;
        let end = self.read_from(RecordsEnd::default(), |key, vector| {
            if wanted.contains(&key) && *size.get_or_insert(vector.len()) == vector.len() {
                found.insert(key, vector);
            }
        });
        self.end.set(end);
        found
    }

    /// Calls `take` for each valid record after `known`, or for all records if `known` no longer fits the file. Returns
    /// the end of the valid records.
    fn read_from(&self, known: RecordsEnd, mut take: impl FnMut([u8; 16], Vec<f32>)) -> RecordsEnd {
        let mut magic = [0; MAGIC.len()];
        let Ok(mut file) = disk::open(&self.path, File::options().read(true)) else { return RecordsEnd::default() };
        if file.read_exact(&mut magic).is_err() || &magic != MAGIC {
            return RecordsEnd::default();
        }
        let mut end = if known.is_still_in(&file) { known } else { RecordsEnd { at: MAGIC.len() as u64, last: None } };
        if file.seek(SeekFrom::Start(end.at)).is_err() {
            return RecordsEnd::default();
        }
        let mut file = BufReader::with_capacity(1 << 16, file.take(MAX_FILE_BYTES.saturating_sub(end.at)));
        let mut head = [0; RECORD_HEADER_BYTES];
        while file.read_exact(&mut head).is_ok() {
            let number = u32::from_le_bytes([head[16], head[17], head[18], head[19]]) as usize;
            if !(1..=MAX_DIMENSIONS).contains(&number) {
                break;
            }
            let mut bytes = vec![0; number * 4];
            if file.read_exact(&mut bytes).is_err() || head[20..] != checksum(&head[..20], &bytes) {
                break;
            }
            end = RecordsEnd { at: end.at + (RECORD_HEADER_BYTES + bytes.len()) as u64, last: Some((end.at, head)) };
            let numbers = bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]));
            let mut key = [0; 16];
            key.copy_from_slice(&head[..16]);
            take(key, numbers.collect());
        }
        end
    }

    /// Appends vectors; first cuts off an incomplete record of a process that died. Stores nothing while another
    /// process holds the lock, so that nobody waits.
    pub fn add(&self, vectors: &[([u8; 16], Vec<f32>)]) {
        if vectors.is_empty() {
            return;
        }
        let (mut added, mut last) = (Vec::new(), (0, [0; RECORD_HEADER_BYTES]));
        for (key, vector) in vectors {
            let bytes: Vec<u8> = vector.iter().flat_map(|number| number.to_le_bytes()).collect();
            let mut head = [0; RECORD_HEADER_BYTES];
            head[..16].copy_from_slice(key);
            head[16..20].copy_from_slice(&(vector.len() as u32).to_le_bytes());
            let sum = checksum(&head[..20], &bytes);
            head[20..].copy_from_slice(&sum);
            last = (added.len() as u64, head);
            added.extend(head.into_iter().chain(bytes));
        }
        let write = || -> io::Result<()> {
            let folder = self.path.parent().unwrap_or(Path::new("."));
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            let mut file = self.open_for_append()?;
            match file.try_lock() {
                Err(TryLockError::WouldBlock) => return Ok(()),
                Err(TryLockError::Error(error)) => return Err(error),
                Ok(()) => {}
            }
            // Reads only the records that others have added since.
            let mut end = self.read_from(self.end.get(), |_, _| ()).at;
            if end + added.len() as u64 > MAX_FILE_BYTES {
                end = 0;
            }
            file.set_len(end)?;
            let magic: &[u8] = if end == 0 { MAGIC } else { &[] };
            file.write_all(&[magic, &added].concat())?;
            let start = end + magic.len() as u64;
            self.end.set(RecordsEnd { at: start + added.len() as u64, last: Some((start + last.0, last.1)) });
            Ok(())
        };
        if let Err(error) = write() {
            tracing::warn!("cannot keep vectors in {}: {error}", self.path.display());
        }
    }

    /// Opens the file for appending; removes anything at this path that is not an appendable file.
    fn open_for_append(&self) -> io::Result<File> {
        let open = || disk::open(&self.path, File::options().create(true).append(true).mode(0o600));
        open().or_else(|error| match error.kind() {
            ErrorKind::InvalidData | ErrorKind::PermissionDenied => disk::remove(&self.path).and_then(|()| open()),
            _ => Err(error),
        })
    }

    /// Removes all vectors.
    pub fn clear(&self) {
        self.end.take();
        let _ = disk::remove(&self.path);
    }
}

fn checksum(head: &[u8], numbers: &[u8]) -> [u8; 8] {
    let hash = content_hash([head, numbers]);
    let mut sum = [0; 8];
    sum.copy_from_slice(&hash.as_bytes()[..8]);
    sum
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_is_no_file_is_taken_away() {
        let folder = tempfile::tempdir().expect("a folder");
        let kept = || VectorCache::new(folder.path(), "a model");
        let one = ([1; 16], vec![1.0]);
        disk::with_others_in_place(&kept().path, |sort| {
            assert!(kept().read(&HashSet::from([one.0])).is_empty(), "{sort}");
            kept().add(std::slice::from_ref(&one));
            assert_eq!(kept().read(&HashSet::from([one.0])), HashMap::from([one.clone()]), "{sort}");
        });
    }

    #[test]
    fn what_was_kept_is_read_and_what_is_torn_or_broken_is_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let kept = VectorCache::new(folder.path(), "a model");
        let (one, two, three) = ([1; 16], [2; 16], [3; 16]);
        let all = HashSet::from([one, two, three]);
        assert!(kept.read(&all).is_empty());
        kept.add(&[(one, vec![0.6, 0.8]), (two, vec![1.0, 0.0])]);
        assert_eq!(kept.read(&all), HashMap::from([(one, vec![0.6, 0.8]), (two, vec![1.0, 0.0])]));
        assert_eq!(kept.read(&HashSet::from([two])).len(), 1);
        assert!(VectorCache::new(folder.path(), "another").read(&all).is_empty());
        let whole = fs::read(&kept.path).expect("bytes");
        for cut in 0..whole.len() {
            fs::write(&kept.path, &whole[..cut]).expect("written");
            kept.add(&[(three, vec![0.0, 1.0])]);
            let found = kept.read(&all);
            assert_eq!(found.get(&three), Some(&vec![0.0, 1.0]), "cut at {cut}");
            assert!(found.values().all(|vector| vector.len() == 2));
        }
        for at in 0..whole.len() {
            let mut broken = whole.clone();
            broken[at] ^= 0x21;
            fs::write(&kept.path, &broken).expect("written");
            let right = [vec![0.6, 0.8], vec![1.0, 0.0]];
            assert!(kept.read(&all).values().all(|vector| right.contains(vector)), "byte {at}");
        }
        kept.clear();
        assert!(kept.read(&all).is_empty());
    }

    #[test]
    fn what_was_read_is_not_read_again_to_add_to_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let kept = || VectorCache::new(folder.path(), "a model");
        let vector = |key: u8| ([key; 16], vec![f32::from(key), 1.0]);
        let all: HashSet<[u8; 16]> = (1..10).map(|key| [key; 16]).collect();
        let keys = || {
            let mut keys: Vec<u8> = kept().read(&all).into_keys().map(|key| key[0]).collect();
            keys.sort_unstable();
            keys
        };
        let length = || fs::metadata(kept().path).expect("a file").len();
        let one = kept();
        one.add(&[vector(1), vector(2)]);
        one.read(&all);
        let whole = fs::read(&one.path).expect("bytes");
        let mut broken = whole.clone();
        broken[MAGIC.len() + RECORD_HEADER_BYTES] ^= 1;
        fs::write(&one.path, &broken).expect("written");
        one.add(&[vector(3)]);
        one.add(&[vector(4)]);
        assert_eq!(length(), whole.len() as u64 * 2 - MAGIC.len() as u64, "what was read before is not looked at");
        assert_eq!(keys(), [0; 0]);
        // A reader detects the damage.
        let other = kept();
        other.read(&all);
        other.add(&[vector(5), vector(6)]);
        assert_eq!(keys(), [5, 6]);

        // Records that other processes added meanwhile.
        let early = kept();
        early.read(&all);
        other.add(&[vector(7)]);
        early.add(&[vector(8)]);
        assert_eq!(keys(), [5, 6, 7, 8], "others have added");
        kept().clear();
        other.add(&[vector(1), vector(2), vector(3), vector(4), vector(9)]);
        early.add(&[vector(8)]);
        assert_eq!(keys(), [1, 2, 3, 4, 8, 9], "others have begun anew");
        fs::write(&early.path, &whole[..20]).expect("written");
        early.add(&[vector(5)]);
        assert_eq!(keys(), [5], "others have left less");
    }

    #[test]
    fn what_is_kept_is_for_nobody_else_and_nobody_waits_for_it() {
        use std::os::unix::fs::PermissionsExt;

        let folder = tempfile::tempdir().expect("a folder");
        let kept = VectorCache::new(&folder.path().join("vectors"), "a model");
        kept.add(&[]);
        assert!(!kept.path.exists(), "there is nothing to keep");
        let one = ([1; 16], vec![1.0]);
        kept.add(std::slice::from_ref(&one));
        let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
        assert_eq!((mode(kept.path.parent().expect("a folder")), mode(&kept.path)), (0o700, 0o600));
        let busy = File::open(&kept.path).expect("a file");
        busy.lock().expect("a lock");
        kept.add(&[([2; 16], vec![1.0])]);
        assert_eq!(kept.read(&HashSet::from([[1; 16], [2; 16]])), HashMap::from([one]));
    }
}
