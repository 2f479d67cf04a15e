//! The cache of fingerprints: one append-only file of records by blob id, read whole, written under a lock.
//!
//! A record that is torn or corrupt ends the part that counts; the next writer cuts it off. The file can be deleted at
//! any time: it is made again from the snapshot. Layout, little endian: magic, version, generation; then per blob
//! key (16 bytes), family (4), number of fingerprints (4), checksum (4), fingerprints (4 each).

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::lexer::{self, Family};
use super::matching::{FastMap, GRAM, WINDOW};

const MAGIC: &[u8; 8] = b"rdclones";
const HEADER: usize = 16;
const RECORD: usize = 28;
/// A larger file is written anew with the blobs of the current tree only. Bytes.
pub const MAX_BYTES: u64 = 64 << 20;

/// The first 16 bytes of a blob's id.
pub type Key = [u8; 16];

/// A blob's id as a key; `None` when it is no hexadecimal id.
pub fn key(blob: &str) -> Option<Key> {
    let digits = blob.as_bytes().get(..32)?;
    let mut key = [0u8; 16];
    for (byte, pair) in key.iter_mut().zip(digits.chunks_exact(2)) {
        let digit = |c: u8| char::from(c).to_digit(16);
        *byte = (digit(pair[0])? << 4 | digit(pair[1])?) as u8;
    }
    Some(key)
}

/// Changes when fingerprints of an older version would mislead.
fn version() -> u32 {
    lexer::VERSION << 16 | (GRAM as u32) << 8 | WINDOW as u32
}

/// The cache as it was read.
#[derive(Default)]
pub struct Pack {
    bytes: Vec<u8>,
    records: FastMap<u64, (u32, u32)>,
    /// Bytes up to the first record that does not count.
    valid: usize,
}

/// A new record.
pub struct Entry {
    pub key: Key,
    pub family: Family,
    pub prints: Vec<u32>,
}

fn slot(key: &Key, family: Family) -> u64 {
    let (low, high) = key.split_at(8);
    let word = |bytes: &[u8]| bytes.iter().fold(0u64, |word, &byte| word << 8 | u64::from(byte));
    (word(low) ^ word(high).rotate_left(23)).wrapping_add(family as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn checksum(head: &[u8], prints: &[u8]) -> u32 {
    let mut sum = 0x51_7cc1_b727_2220_u64;
    for word in head.chunks_exact(4).chain(prints.chunks_exact(4)) {
        let value = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
        sum = (sum.rotate_left(5) ^ u64::from(value)).wrapping_mul(0x51_7c_c1_b7_27_22_0a_95);
    }
    (sum >> 32) as u32
}

fn number(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).map_or(0, |b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
}

impl Pack {
    /// Reads the cache in a folder; an empty one when there is none, or one of another version.
    pub fn read(folder: &Path) -> Self {
        let bytes = fs::read(folder.join("clones.pack")).unwrap_or_default();
        Self::parse(bytes)
    }

    fn parse(bytes: Vec<u8>) -> Self {
        if bytes.len() < HEADER || &bytes[..8] != MAGIC || number(&bytes, 8) != version() {
            return Self::default();
        }
        let mut pack = Self { bytes, records: FastMap::default(), valid: HEADER };
        while let Some(head) = pack.bytes.get(pack.valid..pack.valid + RECORD) {
            let count = number(head, 20) as usize;
            let start = pack.valid + RECORD;
            let Some(prints) = count.checked_mul(4).and_then(|size| pack.bytes.get(start..start.checked_add(size)?))
            else {
                break;
            };
            if number(head, 24) != checksum(&head[..24], prints) {
                break;
            }
            let mut key = [0u8; 16];
            key.copy_from_slice(&head[..16]);
            let family = number(head, 16) as u64;
            let slot = slot(&key, Family::Rust).wrapping_add(family.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            pack.records.insert(slot, (start as u32, count as u32));
            pack.valid = start + prints.len();
        }
        pack
    }

    /// The fingerprints of a blob as they are stored, four bytes each; `None` when it is not in the cache.
    pub fn get(&self, key: &Key, family: Family) -> Option<&[u8]> {
        let &(start, count) = self.records.get(&slot(key, family))?;
        self.bytes.get(start as usize..(start + count * 4) as usize)
    }

    fn generation(&self) -> u32 {
        number(&self.bytes, 12)
    }

    /// Adds records. When another process writes at the moment nothing is kept: it is made again another time.
    /// `keep` says which records are of use when the file has grown too large.
    ///
    /// # Errors
    /// The folder or the file cannot be written; with its path.
    pub fn append(&self, folder: &Path, new: &[Entry], keep: &mut dyn FnMut(u64) -> bool) -> Result<(), CacheError> {
        let path = folder.join("clones.pack");
        self.try_append(folder, &path, new, keep).map_err(|source| CacheError { path, source })
    }

    fn try_append(
        &self,
        folder: &Path,
        path: &Path,
        new: &[Entry],
        keep: &mut dyn FnMut(u64) -> bool,
    ) -> io::Result<()> {
        if new.is_empty() {
            return Ok(());
        }
        fs::create_dir_all(folder)?;
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(folder.join("clones.lock"))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => return Ok(()),
            Err(fs::TryLockError::Error(error)) => return Err(error),
        }
        let mut file = OpenOptions::new().create(true).truncate(false).read(true).write(true).open(path)?;
        let length = file.metadata()?.len();
        let mut head = [0u8; HEADER];
        let known = length == self.bytes.len() as u64
            && file.read_exact(&mut head).is_ok()
            && number(&head, 12) == self.generation();
        let fresh;
        let pack = if known {
            self
        } else {
            // Another process wrote since we read.
            file.seek(SeekFrom::Start(0))?;
            let mut bytes = Vec::with_capacity(length as usize);
            file.read_to_end(&mut bytes)?;
            fresh = Self::parse(bytes);
            &fresh
        };
        let mut added = Vec::new();
        for entry in new.iter().filter(|entry| pack.get(&entry.key, entry.family).is_none()) {
            write_record(&mut added, entry);
        }
        if pack.valid < HEADER || pack.valid as u64 + added.len() as u64 > MAX_BYTES {
            drop(file);
            return pack.rewrite(folder, path, &added, keep);
        }
        if length != pack.valid as u64 {
            file.set_len(pack.valid as u64)?;
        }
        file.seek(SeekFrom::Start(pack.valid as u64))?;
        file.write_all(&added)
    }

    /// A new file with the records that are of use, put in the old one's place at once.
    fn rewrite(&self, folder: &Path, path: &Path, added: &[u8], keep: &mut dyn FnMut(u64) -> bool) -> io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(MAGIC)?;
        file.write_all(&version().to_le_bytes())?;
        file.write_all(&new_generation(self.generation()).to_le_bytes())?;
        let mut room = MAX_BYTES.saturating_sub((HEADER + added.len()) as u64);
        for (&slot, &(start, count)) in &self.records {
            let record = start as usize - RECORD..(start + count * 4) as usize;
            // Half of the room at most, or the next review writes it all again.
            if keep(slot) && room > MAX_BYTES / 2 + record.len() as u64 {
                room -= record.len() as u64;
                file.write_all(&self.bytes[record])?;
            }
        }
        let fits = added.len() as u64 <= MAX_BYTES;
        file.write_all(if fits { added } else { &[] })?;
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    }
}

/// The name of a record for `keep`.
pub fn name(key: &Key, family: Family) -> u64 {
    slot(key, family)
}

fn new_generation(old: u32) -> u32 {
    // Two files of one length must differ here; the process id tells apart two that start from nothing.
    old.wrapping_add(1).wrapping_add(std::process::id() << 8)
}

fn write_record(out: &mut Vec<u8>, entry: &Entry) {
    let start = out.len();
    out.extend_from_slice(&entry.key);
    out.extend_from_slice(&(entry.family as u32).to_le_bytes());
    out.extend_from_slice(&(entry.prints.len() as u32).to_le_bytes());
    let mut prints = Vec::with_capacity(entry.prints.len() * 4);
    for print in &entry.prints {
        prints.extend_from_slice(&print.to_le_bytes());
    }
    let sum = checksum(&out[start..], &prints);
    out.extend_from_slice(&sum.to_le_bytes());
    out.extend_from_slice(&prints);
}

/// The cache could not be kept; the search itself does not need it.
#[derive(Debug, thiserror::Error)]
#[error("cannot keep fingerprints in {}: {source}", path.display())]
pub struct CacheError {
    path: PathBuf,
    source: io::Error,
}

/// Makes sure that the type the standard library locks is the one used here.
const _: fn(&File) -> Result<(), fs::TryLockError> = File::try_lock;

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(n: u8, prints: &[u32]) -> Entry {
        Entry { key: [n; 16], family: Family::Go, prints: prints.to_vec() }
    }

    #[test]
    fn what_was_written_is_read_and_what_is_torn_is_cut_off() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut all = |_| true;
        Pack::read(folder.path()).append(folder.path(), &[entry(1, &[7, 8]), entry(2, &[])], &mut all).expect("writes");
        let pack = Pack::read(folder.path());
        assert_eq!(pack.get(&[1; 16], Family::Go), Some(&[7, 0, 0, 0, 8, 0, 0, 0][..]));
        assert_eq!(pack.get(&[2; 16], Family::Go), Some(&[][..]));
        assert_eq!(pack.get(&[1; 16], Family::Java), None);

        let path = folder.path().join("clones.pack");
        let whole = fs::read(&path).expect("reads");
        for cut in 0..whole.len() {
            fs::write(&path, &whole[..cut]).expect("writes");
            let torn = Pack::read(folder.path());
            torn.append(folder.path(), &[entry(3, &[cut as u32])], &mut all).expect("writes");
            let healed = Pack::read(folder.path());
            assert!(healed.get(&[3; 16], Family::Go).is_some(), "cut at {cut}");
            assert_eq!(healed.valid as u64, fs::metadata(&path).expect("is there").len(), "cut at {cut}");
        }
        for place in 0..whole.len() {
            let mut broken = whole.clone();
            broken[place] ^= 0x40;
            let pack = Pack::parse(broken);
            for n in [1, 2] {
                let stored = pack.get(&[n; 16], Family::Go);
                assert!(stored.is_none() || stored.is_some_and(|prints| prints.len() == if n == 1 { 8 } else { 0 }));
            }
        }
    }

    #[test]
    fn writers_that_did_not_see_each_other_lose_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let (one, other) = (Pack::read(folder.path()), Pack::read(folder.path()));
        one.append(folder.path(), &[entry(1, &[1])], &mut |_| true).expect("writes");
        other.append(folder.path(), &[entry(1, &[1]), entry(2, &[2])], &mut |_| true).expect("writes");
        let pack = Pack::read(folder.path());
        assert!(pack.get(&[1; 16], Family::Go).is_some() && pack.get(&[2; 16], Family::Go).is_some());
        assert_eq!(pack.records.len(), 2);
        assert_eq!(pack.valid, HEADER + 2 * (RECORD + 4));
    }

    #[test]
    fn blob_ids_are_keys() {
        assert_eq!(key("00ff10"), None);
        assert_eq!(key(&"zz".repeat(20)), None);
        assert_eq!(key(&"0a".repeat(20)), Some([10; 16]));
        assert_eq!(key(&"0a".repeat(32)), Some([10; 16]));
    }
}
