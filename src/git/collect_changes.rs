//! Collects the changes that a program made in a temporary checkout.
//!
//! Invariants:
//! - Only regular files below the folder are read, and no link is followed.
//! - Git's own files and the names that the checkout left out are ignored.
//! - No more is read than a fix may contain.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::path::Path;
use std::time::SystemTime;

use super::worktree::Worktree;
use super::{FileEdit, GitError, Repo, TemporaryCheckout};
use crate::domain::is_safe_file_name;
use crate::domain::text::{format_count, sanitize_line};

/// Maximum number of entries of the folder that are examined.
const MAX_ENTRIES: usize = 1_000_000;
/// Maximum nesting depth of folders.
const MAX_DEPTH: usize = 128;
/// Maximum number of notes about ignored changes; further notes are only counted.
const MAX_NOTES: usize = 5;

/// State of a checkout's files before a program runs.
#[derive(Debug)]
pub struct CheckoutBaseline {
    files: BTreeMap<String, FileStamp>,
}

/// `stat` data that identifies an unchanged file, as in git.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FileStamp {
    length: u64,
    modified: Option<SystemTime>,
    /// Device, inode, and ctime in seconds and nanoseconds; a program cannot set ctime back.
    inode: [i64; 4],
}

/// Limits for the changes taken from a checkout.
#[derive(Debug, Clone, Copy)]
pub struct CollectLimits {
    pub files: usize,
    pub bytes: u64,
}

/// Changes that a program made.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct CollectedChanges {
    pub changes: Vec<(String, FileEdit)>,
    /// Descriptions of changes that a patch cannot contain.
    pub notes: Vec<String>,
}

/// Error that prevents the collection of changes.
#[derive(Debug, thiserror::Error)]
pub enum CollectError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error("the program changed {files}; {most} is the most")]
    TooMany { files: String, most: usize },
    #[error("the program wrote {bytes} bytes; {most} is the most")]
    TooLarge { bytes: u64, most: u64 },
}

impl TemporaryCheckout {
    /// Makes the files writable and records their state.
    ///
    /// # Errors
    /// Returns an error when a folder cannot be listed or a file cannot be changed.
    pub fn prepare_for_writing(&self) -> Result<CheckoutBaseline, GitError> {
        let mut files = BTreeMap::new();
        for (path, _) in walk_files(self.folder(), &mut Vec::new())? {
            let file = self.folder().join(&path);
            let failed = |source| GitError::Io { action: "open up", path: file.clone(), source };
            open_up(&file).map_err(failed)?;
            let seen = file.symlink_metadata().map_err(failed)?;
            files.insert(path, FileStamp::from_metadata(&seen));
        }
        Ok(CheckoutBaseline { files })
    }

    /// Collects the differences from `sown`. Files with a name in `unwanted` were left out of the checkout and are not
    /// taken. `repo` and `commit` identify the snapshot: new files that the repository ignores, or that the commit has
    /// but the checkout left out, are not taken either.
    ///
    /// # Errors
    /// Returns an error when a limit of `most` is exceeded, or when the checkout or the commit cannot be read.
    pub fn collect_changes(
        &self,
        sown: &CheckoutBaseline,
        repo: &Repo,
        commit: &str,
        unwanted: &[&str],
        most: CollectLimits,
    ) -> Result<CollectedChanges, CollectError> {
        let mut odd = Vec::new();
        let now = walk_files(self.folder(), &mut odd)?;
        let mut changed = Vec::new();
        for (path, seen) in &now {
            let is_new = match sown.files.get(path) {
                Some(before) if before == seen => continue,
                Some(_) => false,
                None => true,
            };
            let is_unwanted = path.split('/').any(|part| unwanted.iter().any(|name| part.eq_ignore_ascii_case(name)));
            let is_elsewhere = is_new && repo.file_at(commit, path)?.is_some();
            if is_unwanted || is_elsewhere {
                odd.push(format!("{path} was left out of the copy and stays as it is"));
            } else if !(is_new && repo.is_ignored(path)) {
                changed.push((path, seen));
            }
        }
        let gone: Vec<&String> = sown.files.keys().filter(|path| !now.contains_key(*path)).collect();
        let files = changed.len() + gone.len();
        if files > most.files {
            return Err(CollectError::TooMany { files: format_count(files, "file"), most: most.files });
        }
        let bytes = changed.iter().map(|(_, seen)| seen.length).fold(0, u64::saturating_add);
        if bytes > most.bytes {
            return Err(CollectError::TooLarge { bytes, most: most.bytes });
        }
        let tree = Worktree::from_folder(self.folder());
        let mut harvest = CollectedChanges::default();
        for (path, _) in changed {
            match tree.read(path) {
                Ok(Some(file)) => {
                    let put = FileEdit::Write { content: file.content, executable: file.mode & 0o100 != 0 };
                    harvest.changes.push((path.clone(), put));
                }
                Ok(None) => {}
                Err(error) => odd.push(error.to_string()),
            }
        }
        harvest.changes.extend(gone.into_iter().map(|path| (path.clone(), FileEdit::Delete)));
        let more = odd.len().saturating_sub(MAX_NOTES);
        harvest.notes = odd.iter().take(MAX_NOTES).map(|note| sanitize_line(note).into_owned()).collect();
        if more > 0 {
            harvest.notes.push(format!("and {more} more of the sort"));
        }
        Ok(harvest)
    }
}

impl Repo {
    /// Returns true when the user's own ignore rules match a path that is not in the index.
    fn is_ignored(&self, path: &str) -> bool {
        self.inner.is_path_ignored(path).unwrap_or(false)
    }
}

impl FileStamp {
    fn from_metadata(seen: &Metadata) -> Self {
        #[cfg(unix)]
        let inode = {
            use std::os::unix::fs::MetadataExt as _;
            [seen.dev().cast_signed(), seen.ino().cast_signed(), seen.ctime(), seen.ctime_nsec()]
        };
        #[cfg(not(unix))]
        let inode = [0; 4];
        Self { length: seen.len(), modified: seen.modified().ok(), inode }
    }
}

/// Lists the regular files below a folder by path; other entries are described in `odd`.
fn walk_files(root: &Path, odd: &mut Vec<String>) -> Result<BTreeMap<String, FileStamp>, GitError> {
    let mut files = BTreeMap::new();
    let mut folders = vec![(root.to_owned(), String::new(), 0)];
    let mut looked_at = 0;
    while let Some((folder, above, depth)) = folders.pop() {
        let failed = |source| GitError::Io { action: "list", path: folder.clone(), source };
        for entry in fs::read_dir(&folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            looked_at += 1;
            if looked_at > MAX_ENTRIES || depth > MAX_DEPTH {
                return Err(GitError::NotTouched {
                    path: folder,
                    why: "there is more in it than is looked at".to_owned(),
                });
            }
            let name = entry.file_name();
            let Some(name) = name.to_str() else {
                odd.push(format!("{} has a name that is no UTF-8", entry.path().display()));
                continue;
            };
            if !is_safe_file_name(name.as_bytes()) {
                // The checkout's own git dir needs no note.
                if !above.is_empty() {
                    odd.push(format!("{above}{name} is git's own"));
                }
                continue;
            }
            let path = format!("{above}{name}");
            // `symlink_metadata` describes the entry itself; a link is not followed.
            let Ok(seen) = entry.path().symlink_metadata() else { continue };
            if seen.is_dir() {
                folders.push((entry.path(), format!("{path}/"), depth + 1));
            } else if seen.is_file() {
                files.insert(path, FileStamp::from_metadata(&seen));
            } else {
                odd.push(format!("{path} is neither a file nor a folder"));
            }
        }
    }
    Ok(files)
}

#[cfg(unix)]
fn open_up(file: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(file, fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn open_up(file: &Path) -> std::io::Result<()> {
    let mut permissions = file.metadata()?.permissions();
    #[allow(clippy::permissions_set_readonly_false, reason = "of a copy, where there are no modes")]
    permissions.set_readonly(false);
    fs::set_permissions(file, permissions)
}
