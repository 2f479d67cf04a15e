//! A view: which files of which segments are a tree's. One small file for each tree that was indexed lately.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::IndexError;
use super::sealed::{self, Sealed};
use super::segment::Segment;

const PREFIX: &str = "view-";
const COUNTS: usize = 0;
const SEGMENTS: usize = 1;
const LIVE: usize = 2;

/// Which files are a tree's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// File names of segments.
    pub segments: Vec<String>,
    /// The number of a segment in `segments` and that of a file in it, by path.
    pub live: Vec<[u32; 2]>,
    /// How many files the tree has; more than `live` has while the index is being built.
    pub of: u32,
}

impl View {
    pub fn path(folder: &Path, tree: &str) -> PathBuf {
        folder.join(format!("{PREFIX}{tree}"))
    }

    pub fn is_whole(&self) -> bool {
        self.live.len() == self.of as usize
    }

    pub fn publish(&self, folder: &Path, tree: &str) -> Result<(), IndexError> {
        let names = self.segments.join("\n");
        let (bytes, _) =
            sealed::seal(&[bytemuck::bytes_of(&self.of), names.as_bytes(), bytemuck::cast_slice(&self.live)]);
        sealed::publish(folder, &format!("{PREFIX}{tree}"), &bytes).map(drop)
    }

    /// `None` without such a file.
    pub fn read(path: &Path) -> Result<Option<Self>, IndexError> {
        let Some(sealed) = Sealed::open(path)? else { return Ok(None) };
        let of = sealed.section::<u32>(COUNTS)?.first().copied().unwrap_or_default();
        let names = String::from_utf8(sealed.section(SEGMENTS)?).unwrap_or_default();
        let segments: Vec<String> = names.lines().map(str::to_owned).collect();
        // Names are joined to a folder: no other name than ours is.
        let is_plain = |name: &String| Segment::is_file_name(name) && !name.contains(['/', '\\']);
        if !segments.iter().all(is_plain) {
            return Err(sealed.damaged("it names what is no part of an index"));
        }
        Ok(Some(Self { segments, live: sealed.section(LIVE)?, of }))
    }

    /// The views of a folder, the one that was made or asked for last first.
    pub fn latest(folder: &Path) -> Result<Vec<PathBuf>, IndexError> {
        let mut found: Vec<(SystemTime, PathBuf)> = Vec::new();
        for (name, path) in names(folder)? {
            if name.starts_with(PREFIX) {
                let changed = fs::metadata(&path).and_then(|data| data.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
                found.push((changed, path));
            }
        }
        found.sort();
        Ok(found.into_iter().rev().map(|(_, path)| path).collect())
    }
}

/// The files of an index's folder; none without one.
pub fn names(folder: &Path) -> Result<Vec<(String, PathBuf)>, IndexError> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(IndexError::io("read", folder)(error)),
    };
    let names = entries.flatten().filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())));
    Ok(names.collect())
}
