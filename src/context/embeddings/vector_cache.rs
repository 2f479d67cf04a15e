//! Stores embedding vectors: one namespace of the fact store per model and address, keyed by the content of the embedded
//! text.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use crate::domain::content_hash;
use crate::index::fact_store::{FactKey, FactStore};

/// Largest namespace in bytes: 40,000 vectors of 768 numbers.
const MAX_CACHE_BYTES: u64 = 128 << 20;

/// Vectors of one model and address.
pub struct VectorCache {
    facts: FactStore,
}

impl VectorCache {
    /// Opens the vectors in `folder` of the model and address `name`.
    pub fn open(folder: &Path, name: &str) -> Self {
        let hash: String = content_hash([name.as_bytes()]).chars().take(24).collect();
        Self { facts: FactStore::open(Some(folder), &format!("vectors-{hash}"), MAX_CACHE_BYTES) }
    }

    /// Returns the wanted vectors that exist. All have the dimension of the first one found.
    pub fn read(&self, wanted: &HashSet<[u8; 16]>) -> HashMap<[u8; 16], Vec<f32>> {
        let mut found: HashMap<[u8; 16], Vec<f32>> = HashMap::new();
        let mut size = None;
        for key in wanted {
            let Some(vector) = self.facts.get(FactKey(*key)).and_then(|bytes| decode_vector(&bytes)) else { continue };
            if *size.get_or_insert(vector.len()) == vector.len() {
                found.insert(*key, vector);
            }
        }
        found
    }

    /// Adds vectors; [`VectorCache::close`] writes them.
    pub fn add(&self, vectors: &[([u8; 16], Vec<f32>)]) {
        for (key, vector) in vectors {
            self.facts.insert(FactKey(*key), encode_vector(vector));
        }
    }

    /// Removes all vectors.
    pub fn clear(&mut self) {
        self.facts.clear();
    }

    /// Writes the added vectors.
    pub fn close(self) {
        self.facts.close();
    }
}

/// Encodes each number in four bytes, little endian.
fn encode_vector(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn decode_vector(bytes: &[u8]) -> Option<Vec<f32>> {
    let (numbers, rest) = bytes.as_chunks::<4>();
    (rest.is_empty() && !numbers.is_empty()).then(|| numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn add(folder: &Path, vectors: &[([u8; 16], Vec<f32>)]) {
        let cache = VectorCache::open(folder, "a model");
        cache.add(vectors);
        cache.close();
    }

    fn files(folder: &Path) -> Vec<std::path::PathBuf> {
        fs::read_dir(folder).into_iter().flatten().map(|entry| entry.expect("readable").path()).collect()
    }

    #[test]
    fn what_was_kept_is_read_and_what_is_torn_or_broken_is_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let (one, two, three) = ([1; 16], [2; 16], [3; 16]);
        let all = HashSet::from([one, two, three]);
        let read = || VectorCache::open(folder.path(), "a model").read(&all);
        assert!(read().is_empty());
        add(folder.path(), &[(one, vec![0.6, 0.8]), (two, vec![1.0, 0.0])]);
        assert_eq!(read(), HashMap::from([(one, vec![0.6, 0.8]), (two, vec![1.0, 0.0])]));
        assert_eq!(VectorCache::open(folder.path(), "a model").read(&HashSet::from([two])).len(), 1);
        assert!(VectorCache::open(folder.path(), "another").read(&all).is_empty());
        let path = files(folder.path()).pop().expect("a file");
        let whole = fs::read(&path).expect("bytes");
        for cut in 0..whole.len() {
            fs::write(&path, &whole[..cut]).expect("written");
            add(folder.path(), &[(three, vec![0.0, 1.0])]);
            assert_eq!(read(), HashMap::from([(three, vec![0.0, 1.0])]), "cut at {cut}");
            files(folder.path()).iter().for_each(|path| fs::remove_file(path).expect("removed"));
        }
        for at in 0..whole.len() {
            let mut broken = whole.clone();
            broken[at] ^= 0x21;
            fs::write(&path, &broken).expect("written");
            let right = [vec![0.6, 0.8], vec![1.0, 0.0]];
            assert!(read().values().all(|vector| right.contains(vector)), "byte {at}");
        }
        fs::write(&path, &whole).expect("written");
        let mut cache = VectorCache::open(folder.path(), "a model");
        cache.clear();
        assert!(cache.read(&all).is_empty() && read().is_empty());
    }

    #[test]
    fn vectors_that_others_add_meanwhile_stay_and_newer_ones_stand() {
        let folder = tempfile::tempdir().expect("a folder");
        let vector = |key: u8, number: f32| ([key; 16], vec![number, 1.0]);
        let early = VectorCache::open(folder.path(), "a model");
        add(folder.path(), &[vector(1, 1.0), vector(2, 2.0)]);
        let older = fs::File::open(&files(folder.path())[0]).expect("a file");
        older.set_modified(std::time::SystemTime::UNIX_EPOCH).expect("set");
        early.add(&[vector(2, 3.0), vector(3, 3.0)]);
        early.close();
        let all = HashSet::from([[1; 16], [2; 16], [3; 16]]);
        let found = VectorCache::open(folder.path(), "a model").read(&all);
        assert_eq!(found, HashMap::from([vector(1, 1.0), vector(2, 3.0), vector(3, 3.0)]));
    }

    #[test]
    fn vectors_of_another_size_are_left_away() {
        let folder = tempfile::tempdir().expect("a folder");
        add(folder.path(), &[([1; 16], vec![1.0]), ([2; 16], vec![1.0, 0.0]), ([3; 16], Vec::new())]);
        let cache = VectorCache::open(folder.path(), "a model");
        assert_eq!(cache.read(&HashSet::from([[1; 16], [2; 16], [3; 16]])).len(), 1);
    }

    #[test]
    fn what_is_kept_is_for_nobody_else() {
        use std::os::unix::fs::PermissionsExt;

        let folder = tempfile::tempdir().expect("a folder");
        let own = folder.path().join("vectors");
        add(&own, &[]);
        assert!(!own.exists(), "there is nothing to keep");
        add(&own, &[([1; 16], vec![1.0])]);
        let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
        assert_eq!((mode(&own), mode(&files(&own)[0])), (0o700, 0o600));
    }
}
