//! Lists the files of the snapshot and resolves a path from a model to a file that the model may see.
//!
//! These paths are refused:
//!
//! - paths that lead out of the repository (absolute, `..`, `.git`, links to outside),
//! - files whose name indicates secrets ([`is_secret_file`]),
//! - files that the snapshot's `.gitignore` files ignore, unless the change under review contains them. Such a file is
//!   in the snapshot only because it was added by force; ignored files are usually generated or private.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::{ToolError, quote};
use crate::context::symlinks;
use crate::context::text::{escape_fences, escape_unsafe};
use crate::domain::text::path_from_bytes;
use crate::git::{Changeset, EntryKind, Repo, TreeFile, TreeListing, TreeListingEntry};
use crate::masking::secret_files::is_secret_file;
use crate::syntax::facts::is_code_path;

/// Longest path in bytes.
const MAX_PATH_BYTES: usize = 4096;
/// Most files of the same name that are suggested for a path that does not exist.
const MAX_SUGGESTIONS: usize = 3;

/// Files of a snapshot.
pub struct VisibleFiles {
    entries: Vec<TreeListingEntry>,
    /// True if `entries` covers the complete tree.
    pub complete: bool,
    changed: HashSet<String>,
    /// Maps the displayed form of a path to its entry, for paths whose displayed form differs: control characters,
    /// fences, tags.
    escaped_paths: HashMap<String, usize>,
    /// Entry positions; changed files first, then files near them.
    nearest: Vec<u32>,
}

impl VisibleFiles {
    /// Builds the list of visible files from a tree listing and the change under review.
    pub fn new(listing: TreeListing, change: &Changeset) -> Self {
        let TreeListing { entries, complete } = listing;
        let changed: HashSet<String> = change.files.iter().map(|file| file.path.clone()).collect();
        let numbers = entries.iter().enumerate();
        let shown =
            numbers.flat_map(|(at, entry)| [(escape_unsafe(&entry.path), at), (escape_fences(&entry.path), at)]);
        let odd = shown.filter_map(|(shown, at)| match shown {
            Cow::Owned(shown) => Some((shown, at)),
            Cow::Borrowed(_) => None,
        });
        let escaped_paths = odd.collect();
        let nearest = order_by_nearness(&entries, &changed);
        Self { entries, complete, changed, escaped_paths, nearest }
    }

    /// Iterates over all files: changed files first, then files in the same folders, then files below the same
    /// top-level folder, then all others.
    pub fn nearest(&self) -> impl Iterator<Item = &TreeListingEntry> {
        self.nearest.iter().filter_map(|at| self.entries.get(*at as usize))
    }

    /// Returns the complete tree, sorted by path.
    pub fn entries(&self) -> &[TreeListingEntry] {
        &self.entries
    }

    /// Returns the visible code files, sorted by path.
    pub fn code_files(&self) -> Vec<TreeFile> {
        let is_code = |entry: &&TreeListingEntry| {
            entry.kind == EntryKind::File && is_code_path(&entry.path) && self.withheld_reason(entry).is_none()
        };
        let file = |entry: &TreeListingEntry| TreeFile { path: entry.path.clone(), blob: entry.id.clone() };
        self.entries.iter().filter(is_code).map(file).collect()
    }

    /// Returns true if the change under review contains the file.
    pub fn is_changed(&self, path: &str) -> bool {
        self.changed.contains(path)
    }

    /// Returns the reason why a file must not be shown; `None` if it may be shown.
    pub fn withheld_reason(&self, entry: &TreeListingEntry) -> Option<&'static str> {
        if is_secret_file(&entry.path) {
            return Some("by its name it holds secrets");
        }
        (entry.is_ignored && !self.is_changed(&entry.path)).then_some("the project's .gitignore ignores it")
    }

    /// Returns the file at `path`.
    ///
    /// # Errors
    /// Fails if `path` is not valid, or if it does not name a file that may be shown.
    pub fn find_file(&self, repo: &Repo, path: &str) -> Result<&TreeListingEntry, ToolError> {
        let path = normalize_path(path)?;
        if path.is_empty() {
            return Err(ToolError::failed("the path names the root; list_files shows what is in it"));
        }
        let Some(entry) = self.entry_at(&path) else { return Err(self.missing_file_error(repo, &path)) };
        match entry.kind {
            EntryKind::Symlink => Err(self.link_error(repo, entry, "")),
            EntryKind::Submodule => Err(submodule_error(entry)),
            EntryKind::File => match self.withheld_reason(entry) {
                Some(reason) => Err(ToolError::refused(format!("{} is not shown: {reason}", quote(&entry.path)))),
                None => Ok(entry),
            },
        }
    }

    /// Returns the normalized path of a folder and the entries below it.
    ///
    /// # Errors
    /// Fails if `path` is not valid or does not name a folder.
    pub fn find_folder(&self, repo: &Repo, path: &str) -> Result<(String, &[TreeListingEntry]), ToolError> {
        let path = normalize_path(path)?;
        let range = self.range_below(&path);
        if !range.is_empty() || path.is_empty() {
            return Ok((path, self.entries.get(range).unwrap_or_default()));
        }
        match self.entry_at(&path) {
            Some(entry) if entry.kind == EntryKind::File => {
                Err(ToolError::failed(format!("{} is a file; read_file shows it", quote(&path))))
            }
            Some(entry) if entry.kind == EntryKind::Symlink => Err(self.link_error(repo, entry, "")),
            Some(entry) => Err(submodule_error(entry)),
            None => Err(self.missing_file_error(repo, &path)),
        }
    }

    /// Returns the target text of a symbolic link as one line. The text is untrusted.
    pub fn link_text(repo: &Repo, entry: &TreeListingEntry) -> String {
        let is_long = repo.blob_size(&entry.id).is_ok_and(|size| size > MAX_PATH_BYTES as u64);
        let bytes = if is_long { None } else { repo.blob(&entry.id).ok() };
        bytes.map_or_else(|| "(unreadable)".to_owned(), |bytes| path_from_bytes(&bytes))
    }

    fn entry_at(&self, path: &str) -> Option<&TreeListingEntry> {
        let at = self.entries.binary_search_by(|entry| entry.path.as_str().cmp(path)).ok();
        self.entries.get(at.or_else(|| self.escaped_paths.get(path).copied())?)
    }

    fn range_below(&self, folder: &str) -> Range<usize> {
        if folder.is_empty() {
            return 0..self.entries.len();
        }
        let inside = format!("{folder}/");
        let start = self.entries.partition_point(|entry| entry.path.as_str() < inside.as_str());
        let rest = self.entries.get(start..).unwrap_or_default();
        start..start + rest.partition_point(|entry| entry.path.starts_with(&inside))
    }

    /// Builds the answer for a path without a file.
    fn missing_file_error(&self, repo: &Repo, path: &str) -> ToolError {
        if !self.range_below(path).is_empty() {
            return ToolError::failed(format!("{} is a folder; list_files shows what is in it", quote(path)));
        }
        let mut above =
            memchr::memchr_iter(b'/', path.as_bytes()).filter_map(|at| Some((self.entry_at(path.get(..at)?)?, at)));
        if let Some((entry, at)) = above.next() {
            return match entry.kind {
                EntryKind::Symlink => self.link_error(repo, entry, path.get(at..).unwrap_or_default()),
                EntryKind::Submodule => submodule_error(entry),
                EntryKind::File => ToolError::failed(format!("{} is a file, not a folder", quote(&entry.path))),
            };
        }
        let name = path.rsplit('/').next().unwrap_or(path);
        let same = self.entries.iter().filter(|entry| entry.path.rsplit('/').next() == Some(name));
        let same: Vec<String> = same.take(MAX_SUGGESTIONS).map(|entry| quote(&entry.path)).collect();
        let hint = match (same.is_empty(), self.complete) {
            (false, _) => format!("; of that name there is {}", same.join(", ")),
            (true, true) => "; list_files shows what there is".to_owned(),
            (true, false) => "; not all of the snapshot could be listed".to_owned(),
        };
        ToolError::failed(format!("there is no {} in the snapshot{hint}", quote(path)))
    }

    /// Builds the answer for a symbolic link, which is not followed. `rest` is the remaining path after the link.
    fn link_error(&self, repo: &Repo, entry: &TreeListingEntry, rest: &str) -> ToolError {
        let text = Self::link_text(repo, entry);
        let said = format!("{} is a symbolic link to {}", quote(&entry.path), quote(&text));
        match symlinks::resolve_target(&entry.path, &text) {
            None => ToolError::refused(format!("{said}, which leads out of the repository")),
            Some(target) if self.entry_at(&target).is_some() || !self.range_below(&target).is_empty() => {
                let target = format!("{target}{rest}");
                ToolError::redirected(format!("{said}; ask for {} instead", quote(target.trim_start_matches('/'))))
            }
            Some(_) => ToolError::redirected(format!("{said}, which is not in the snapshot")),
        }
    }
}

fn submodule_error(entry: &TreeListingEntry) -> ToolError {
    ToolError::failed(format!("{} is a submodule; the snapshot does not hold its files", quote(&entry.path)))
}

/// Normalizes a path: relative to the root, single slashes; empty for the root.
///
/// # Errors
/// Fails for every path that could mean a place outside the repository, even if the tree cannot contain it.
pub fn normalize_path(path: &str) -> Result<String, ToolError> {
    if path.len() > MAX_PATH_BYTES || path.contains('\0') {
        return Err(ToolError::failed("no file has such a path"));
    }
    let drive =
        |path: &str| matches!(path.as_bytes(), [letter, b':', b'/' | b'\\', ..] if letter.is_ascii_alphabetic());
    if path.starts_with(['/', '\\']) || path == "~" || path.starts_with("~/") || drive(path) {
        let what = format!("{} is not a path of the repository: ", quote(path));
        return Err(ToolError::refused(what + "paths are relative to its root, as in src/main.rs"));
    }
    if path.split(['/', '\\']).any(|part| part == "..") {
        return Err(ToolError::refused(format!("{} is refused: paths have no `..`", quote(path))));
    }
    if path.split('/').any(|part| part.eq_ignore_ascii_case(".git")) {
        return Err(ToolError::refused(format!(
            "{} is refused: git's own files are not part of the snapshot",
            quote(path)
        )));
    }
    let parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    Ok(parts.join("/"))
}

fn order_by_nearness(entries: &[TreeListingEntry], changed: &HashSet<String>) -> Vec<u32> {
    fn folder(path: &str) -> &str {
        path.rsplit_once('/').map_or("", |(folder, _)| folder)
    }
    fn top(path: &str) -> &str {
        path.split_once('/').map_or("", |(top, _)| top)
    }
    let folders: HashSet<&str> = changed.iter().map(|path| folder(path)).collect();
    let tops: HashSet<&str> = changed.iter().map(|path| top(path)).collect();
    let mut nearest: Vec<(u8, u32)> = Vec::with_capacity(entries.len());
    for (at, entry) in (0u32..).zip(entries).filter(|(_, entry)| entry.kind == EntryKind::File) {
        let distance = match entry.path.as_str() {
            path if changed.contains(path) => 0,
            path if folders.contains(folder(path)) => 1,
            path if tops.contains(top(path)) => 2,
            _ => 3,
        };
        nearest.push((distance, at));
    }
    nearest.sort_unstable();
    nearest.into_iter().map(|(_, at)| at).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;
    use crate::domain::ToolOutcome;

    #[rstest]
    #[case("src/a.rs", Some("src/a.rs"))]
    #[case("./src//a.rs/", Some("src/a.rs"))]
    #[case("", Some(""))]
    #[case(".", Some(""))]
    #[case("./", Some(""))]
    #[case("a..b/...", Some("a..b/..."))]
    #[case("/etc/passwd", None)]
    #[case("/", None)]
    #[case("//x", None)]
    #[case("..", None)]
    #[case("a/../../b", None)]
    #[case("a/..", None)]
    #[case("a\\..\\b", None)]
    #[case("~/.ssh/id_rsa", None)]
    #[case("C:\\windows", None)]
    #[case("c:/x", None)]
    #[case("\\\\host\\x", None)]
    #[case(".git/config", None)]
    #[case("a/.GIT/hooks", None)]
    #[case(".gitignore", Some(".gitignore"))]
    fn paths_stay_inside(#[case] path: &str, #[case] expected: Option<&str>) {
        match (normalize_path(path), expected) {
            (Ok(path), Some(expected)) => assert_eq!(path, expected),
            (Err(stopped), None) => assert_eq!(stopped.outcome, ToolOutcome::Refused, "{}", stopped.text),
            (found, _) => panic!("{path}: {:?}", found.map_err(|stopped| stopped.text)),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn no_path_leads_out(path in "[a./~\\\\:\0C gGiItT-]{0,24}") {
            if let Ok(path) = normalize_path(&path) {
                let joined = std::path::Path::new("/repository").join(&path);
                prop_assert!(joined.starts_with("/repository"));
                let plain = |part| matches!(part, std::path::Component::Normal(_));
                prop_assert!(std::path::Path::new(&path).components().all(plain), "{path}");
                prop_assert!(!path.split('/').any(|part| part.eq_ignore_ascii_case(".git")), "{path}");
            }
        }
    }
}
