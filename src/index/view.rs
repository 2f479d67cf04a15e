//! A view: a small file that lists which files of which segments form a tree. Each recently indexed tree has one view.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::IndexError;
use super::index_file::{self, IndexFile};
use super::segment::Segment;

const PREFIX: &str = "view-";
const COUNTS: usize = 0;
const SEGMENTS: usize = 1;
const LIVE: usize = 2;

/// List of the files of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexView {
    /// File names of the segments.
    pub segments: Vec<String>,
    /// (position in `segments`, file number in that segment), sorted by path.
    pub files: Vec<[u32; 2]>,
    /// Number of files of the tree; larger than `files.len()` while the index is being built.
    pub total: u32,
}

impl IndexView {
    pub fn path_of_tree(folder: &Path, tree: &str) -> PathBuf {
        folder.join(format!("{PREFIX}{tree}"))
    }

    pub fn is_whole(&self) -> bool {
        self.files.len() == self.total as usize
    }

    /// Writes the view of `tree` atomically.
    ///
    /// # Errors
    /// Fails if the folder cannot be written.
    pub fn publish(&self, folder: &Path, tree: &str) -> Result<(), IndexError> {
        let names = self.segments.join("\n");
        let sections = [bytemuck::bytes_of(&self.total), names.as_bytes(), bytemuck::cast_slice(&self.files)];
        index_file::publish(folder, &sections, |_| format!("{PREFIX}{tree}")).map(drop)
    }

    /// Reads a view; returns `None` if the file does not exist.
    ///
    /// # Errors
    /// Fails with [`IndexError::Damaged`] or [`IndexError::Outdated`] if the file cannot be used.
    pub fn read(path: &Path) -> Result<Option<Self>, IndexError> {
        let Some(file) = IndexFile::open(path)? else { return Ok(None) };
        let of = file.read_section::<u32>(COUNTS)?.first().copied().unwrap_or_default();
        let names = String::from_utf8(file.read_section(SEGMENTS)?).unwrap_or_default();
        let segments: Vec<String> = names.lines().map(str::to_owned).collect();
        // The names are joined to a folder path, so only segment names without a path separator are accepted.
        let is_plain = |name: &String| Segment::is_file_name(name) && !name.contains(['/', '\\']);
        if !segments.iter().all(is_plain) {
            return Err(file.damaged_error("it names what is no part of an index"));
        }
        Ok(Some(Self { segments, files: file.read_section(LIVE)?, total: of }))
    }

    /// Returns the views of a folder, most recently written or used first.
    ///
    /// # Errors
    /// Fails if the folder cannot be read.
    pub fn list_latest(folder: &Path) -> Result<Vec<PathBuf>, IndexError> {
        let mut found: Vec<(SystemTime, PathBuf)> = Vec::new();
        for (name, path) in list_files(folder)? {
            if name.starts_with(PREFIX) {
                let changed = fs::metadata(&path).and_then(|data| data.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
                found.push((changed, path));
            }
        }
        found.sort();
        Ok(found.into_iter().rev().map(|(_, path)| path).collect())
    }
}

/// Returns the name and path of each file in the index folder; empty if the folder does not exist.
///
/// # Errors
/// Fails if the folder cannot be read.
pub fn list_files(folder: &Path) -> Result<Vec<(String, PathBuf)>, IndexError> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(IndexError::io("read", folder)(error)),
    };
    let names = entries.flatten().filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())));
    Ok(names.collect())
}
