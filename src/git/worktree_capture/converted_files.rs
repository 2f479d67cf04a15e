//! Remembers the ids of files that git itself has converted, so that a look at the worktree starts no filter program for a
//! file that is as it was at the last look. Programs such as Git LFS read the whole file.
//!
//! Invariants:
//! - An id holds while the file is the same by its inode, size and times, as for git's index, and while the same rules
//!   convert it: the attributes, the settings of git, and the content in the index, which decides about line ends.
//! - A file that was written a moment ago is not remembered: a second write in the same tick of the file system's clock
//!   would not show.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use git2::Oid;

use super::external_filters::list_attribute_files;
use super::{BlobWriteMode, HashCandidate, WorktreeHasher, path_bytes, regular_file};

/// Age of a file's last write from which a later write has another time. FAT counts in 2 s.
const MIN_WRITE_AGE: Duration = Duration::from_secs(2);

/// Ids of converted files by path, with all that they follow from.
#[derive(Debug, Default)]
pub struct ConvertedFiles(Mutex<ConvertedIds>);

type ConvertedIds = HashMap<Vec<u8>, (ConversionInput, Oid)>;

/// Identity of a file's content and of the rules that convert it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ConversionInput {
    /// Device, inode, size, and the times of the last write and of the last change in seconds and nanoseconds.
    file: [u64; 7],
    /// BLAKE3 hash of the rules.
    rules: [u8; 32],
}

impl ConvertedFiles {
    fn lock(&self) -> MutexGuard<'_, ConvertedIds> {
        self.0.lock().unwrap_or_else(|broken| broken.into_inner())
    }

    fn get(&self, path: &[u8], input: &ConversionInput) -> Option<Oid> {
        self.lock().get(path).filter(|(known, _)| known == input).map(|(_, id)| *id)
    }

    fn insert(&self, path: &[u8], input: ConversionInput, id: Oid) {
        self.lock().insert(path.to_vec(), (input, id));
    }
}

impl<S: FnMut(&[u8]) -> Option<Vec<u8>>> WorktreeHasher<'_, S> {
    /// Hashes the settings of git and the attributes outside of the worktree that decide how files are converted.
    pub(super) fn hash_conversion_settings(&self) -> [u8; 32] {
        let mut hash = blake3::Hasher::new();
        let config = self.repo.inner.config().and_then(|mut config| config.snapshot());
        if let Ok(config) = &config
            && let Ok(entries) = config.entries(Some(r"^(filter\..*|core\.(autocrlf|eol))$"))
        {
            // Settings that cannot be read count as none: git does not convert with them either.
            let _ = entries.for_each(|entry| {
                update_with_length(&mut hash, entry.name_bytes());
                update_with_length(&mut hash, if entry.has_value() { entry.value_bytes() } else { b"" });
            });
        }
        let above = self.repo.inner.commondir().join("info").join("attributes");
        for file in [Some(&above), self.config.attributes_file.as_ref()].into_iter().flatten() {
            update_with_length(&mut hash, &regular_file::read_linked(file).unwrap_or_default());
        }
        *hash.finalize().as_bytes()
    }

    /// Returns what the id of a converted file follows from; `None` if the file is gone or was written a moment ago.
    /// `settings` is from [`WorktreeHasher::hash_conversion_settings`].
    pub(super) fn find_conversion_input(
        &self,
        candidate: &HashCandidate,
        settings: &[u8; 32],
    ) -> Option<ConversionInput> {
        let data = path_bytes::join_path(self.root, &candidate.path).symlink_metadata().ok()?;
        // A time in the future says nothing about the order of two writes.
        let age = SystemTime::now().duration_since(data.modified().ok()?).ok()?;
        if age < MIN_WRITE_AGE {
            return None;
        }
        let file = [
            data.dev(),
            data.ino(),
            data.size(),
            data.mtime() as u64,
            data.mtime_nsec() as u64,
            data.ctime() as u64,
            data.ctime_nsec() as u64,
        ];
        let mut rules = blake3::Hasher::new();
        rules.update(settings).update(&[candidate.clean as u8]);
        let entry = candidate.entry.and_then(|at| self.index.entries.get(at));
        update_with_length(&mut rules, entry.map_or(&[][..], |entry| entry.id.as_bytes()));
        for attributes in list_attribute_files(&candidate.path) {
            let content = regular_file::read(&path_bytes::join_path(self.root, &attributes));
            update_with_length(&mut rules, &content.unwrap_or_default());
        }
        Some(ConversionInput { file, rules: *rules.finalize().as_bytes() })
    }

    /// Returns the id of a file that was converted before. For a snapshot, its object must be there, too: a look writes
    /// none.
    pub(super) fn find_converted(&self, candidate: &HashCandidate, input: &ConversionInput) -> Option<Oid> {
        let id = self.repo.converted_files.get(&candidate.path, input)?;
        let is_stored = || self.repo.inner.odb().is_ok_and(|odb| odb.exists(id));
        (!matches!(self.write_mode, BlobWriteMode::WriteObjects { .. }) || is_stored()).then_some(id)
    }

    /// Remembers the ids of files that git has just converted, each with what it followed from before; unless the file or
    /// a rule has changed meanwhile.
    pub(super) fn remember_converted(&self, converted: &[(&HashCandidate, ConversionInput, Oid)]) {
        if converted.is_empty() {
            return;
        }
        let settings = self.hash_conversion_settings();
        for (candidate, before, id) in converted {
            if self.find_conversion_input(candidate, &settings).as_ref() == Some(before) {
                self.repo.converted_files.insert(&candidate.path, *before, *id);
            }
        }
    }
}

/// Adds a part with its length in front of it, so that the border between two parts counts.
fn update_with_length(hash: &mut blake3::Hasher, part: &[u8]) {
    hash.update(&(part.len() as u64).to_le_bytes()).update(part);
}
