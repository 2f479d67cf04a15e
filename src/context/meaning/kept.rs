//! Vectors on disk: a file for each model and address, by the content of the text that they are of.
//!
//! Invariants: a record is whole or the end of what counts; failing costs time and nothing else; a file does not outgrow
//! [`MOST_BYTES`]. Layout, little endian: magic, then for each vector its key (16 bytes), how many numbers it has (4), a
//! checksum (8), and the numbers (4 each).

use std::collections::{HashMap, HashSet};
use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{BufReader, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::domain::content_hash;

const MAGIC: &[u8; 8] = b"rdvects1";
const HEAD: usize = 28;
/// A larger file is begun anew, in bytes: 40,000 vectors of 768 numbers.
const MOST_BYTES: u64 = 128 << 20;
/// No model's vectors are larger, in numbers.
const MOST_NUMBERS: usize = 1 << 16;

pub struct Kept {
    path: PathBuf,
}

impl Kept {
    pub fn new(folder: &Path, name: &str) -> Self {
        let hash: String = content_hash([name.as_bytes()]).chars().take(24).collect();
        Self { path: folder.join(format!("{hash}.vectors")) }
    }

    /// The vectors that are wanted and there; of one size, that of the first.
    pub fn read(&self, wanted: &HashSet<[u8; 16]>) -> HashMap<[u8; 16], Vec<f32>> {
        let mut found: HashMap<[u8; 16], Vec<f32>> = HashMap::new();
        let mut size = None;
        self.each(|key, vector| {
            if wanted.contains(&key) && *size.get_or_insert(vector.len()) == vector.len() {
                found.insert(key, vector);
            }
        });
        found
    }

    /// Calls `take` for each record that counts; returns where they end.
    fn each(&self, mut take: impl FnMut([u8; 16], Vec<f32>)) -> u64 {
        let Ok(file) = File::open(&self.path) else { return 0 };
        let mut file = BufReader::with_capacity(1 << 16, file.take(MOST_BYTES));
        let mut magic = [0; MAGIC.len()];
        if file.read_exact(&mut magic).is_err() || &magic != MAGIC {
            return 0;
        }
        let mut end = MAGIC.len() as u64;
        let mut head = [0; HEAD];
        while file.read_exact(&mut head).is_ok() {
            let number = u32::from_le_bytes([head[16], head[17], head[18], head[19]]) as usize;
            if !(1..=MOST_NUMBERS).contains(&number) {
                break;
            }
            let mut bytes = vec![0; number * 4];
            if file.read_exact(&mut bytes).is_err() || head[20..] != checksum(&head[..20], &bytes) {
                break;
            }
            end += (HEAD + bytes.len()) as u64;
            let numbers = bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]));
            let mut key = [0; 16];
            key.copy_from_slice(&head[..16]);
            take(key, numbers.collect());
        }
        end
    }

    /// Adds vectors; a torn record of somebody who died while writing is cut off first. Those that come while another
    /// process adds its own are not kept: nobody waits for it.
    pub fn add(&self, vectors: &[([u8; 16], Vec<f32>)]) {
        if vectors.is_empty() {
            return;
        }
        let mut added = Vec::new();
        for (key, vector) in vectors {
            let bytes: Vec<u8> = vector.iter().flat_map(|number| number.to_le_bytes()).collect();
            let mut head = key.to_vec();
            head.extend((vector.len() as u32).to_le_bytes());
            let sum = checksum(&head, &bytes);
            added.extend(head.into_iter().chain(sum).chain(bytes));
        }
        let write = || -> std::io::Result<()> {
            let folder = self.path.parent().unwrap_or(Path::new("."));
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            let mut file = File::options().create(true).append(true).mode(0o600).open(&self.path)?;
            match file.try_lock() {
                Err(TryLockError::WouldBlock) => return Ok(()),
                Err(TryLockError::Error(error)) => return Err(error),
                Ok(()) => {}
            }
            let mut end = self.each(|_, _| ());
            if end + added.len() as u64 > MOST_BYTES {
                end = 0;
            }
            file.set_len(end)?;
            let magic: &[u8] = if end == 0 { MAGIC } else { &[] };
            file.write_all(&[magic, &added].concat())
        };
        if let Err(error) = write() {
            tracing::warn!("cannot keep vectors in {}: {error}", self.path.display());
        }
    }

    /// Begins anew.
    pub fn forget(&self) {
        let _ = fs::remove_file(&self.path);
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
    use super::*;

    #[test]
    fn what_was_kept_is_read_and_what_is_torn_or_broken_is_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let kept = Kept::new(folder.path(), "a model");
        let (one, two, three) = ([1; 16], [2; 16], [3; 16]);
        let all = HashSet::from([one, two, three]);
        assert!(kept.read(&all).is_empty());
        kept.add(&[(one, vec![0.6, 0.8]), (two, vec![1.0, 0.0])]);
        assert_eq!(kept.read(&all), HashMap::from([(one, vec![0.6, 0.8]), (two, vec![1.0, 0.0])]));
        assert_eq!(kept.read(&HashSet::from([two])).len(), 1);
        assert!(Kept::new(folder.path(), "another").read(&all).is_empty());
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
        kept.forget();
        assert!(kept.read(&all).is_empty());
    }

    #[test]
    fn what_is_kept_is_for_nobody_else_and_nobody_waits_for_it() {
        use std::os::unix::fs::PermissionsExt;

        let folder = tempfile::tempdir().expect("a folder");
        let kept = Kept::new(&folder.path().join("vectors"), "a model");
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
