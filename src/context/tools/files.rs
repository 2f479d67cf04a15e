//! The snapshot's tree, and the way from what a model calls a path to a file that it may see.
//!
//! What is refused: paths that lead out of the repository (absolute, `..`, `.git`, links leading out), files that hold
//! secrets by their name ([`is_secret_file`]), and files that the snapshot's own `.gitignore` files ignore, unless the
//! change under review is about them. (The snapshot has such a file only because somebody added it nevertheless. What is
//! ignored is as a rule built, private, or both; who wants it reviewed changes it.)

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::{Stopped, quoted};
use crate::context::links;
use crate::context::retrieve::paths::is_code;
use crate::context::secret_files::is_secret_file;
use crate::context::text::{harmless, visible};
use crate::domain::text::path_from_bytes;
use crate::git::{Change, Entry, EntryKind, Listing, Repo, TreeFile};

/// No file has a longer path, in bytes.
const MAX_PATH: usize = 4096;
/// Files of the same name that are told when there is none at a path.
const SUGGESTED: usize = 3;

/// The files of a snapshot.
pub struct Files {
    entries: Vec<Entry>,
    /// Whether `entries` is all of the tree.
    pub complete: bool,
    changed: HashSet<String>,
    /// From what is shown of a path to its entry, where the two differ: control characters, fences, tags.
    odd: HashMap<String, usize>,
    /// Changed files first, then what is near them.
    nearest: Vec<u32>,
}

impl Files {
    pub fn new(listing: Listing, change: &Change) -> Self {
        let Listing { entries, complete } = listing;
        let changed: HashSet<String> = change.files.iter().map(|file| file.path.clone()).collect();
        let numbers = entries.iter().enumerate();
        let shown = numbers.flat_map(|(at, entry)| [(visible(&entry.path), at), (harmless(&entry.path), at)]);
        let odd = shown.filter_map(|(shown, at)| match shown {
            Cow::Owned(shown) => Some((shown, at)),
            Cow::Borrowed(_) => None,
        });
        let odd = odd.collect();
        let nearest = by_nearness(&entries, &changed);
        Self { entries, complete, changed, odd, nearest }
    }

    /// All files, those first that the change is about, then those in the same folders, then those below the same folder
    /// of the root, and the rest.
    pub fn nearest(&self) -> impl Iterator<Item = &Entry> {
        self.nearest.iter().filter_map(|at| self.entries.get(*at as usize))
    }

    /// All of the tree, by path.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Files of code that may be seen, by path.
    pub fn code(&self) -> Vec<TreeFile> {
        let is_code =
            |entry: &&Entry| entry.kind == EntryKind::File && is_code(&entry.path) && self.withheld(entry).is_none();
        let file = |entry: &Entry| TreeFile { path: entry.path.clone(), blob: entry.id.clone() };
        self.entries.iter().filter(is_code).map(file).collect()
    }

    /// Whether the change under review is about a file.
    pub fn is_changed(&self, path: &str) -> bool {
        self.changed.contains(path)
    }

    /// Why a file is not shown; `None` when it may be.
    pub fn withheld(&self, entry: &Entry) -> Option<&'static str> {
        if is_secret_file(&entry.path) {
            return Some("by its name it holds secrets");
        }
        (entry.is_ignored && !self.is_changed(&entry.path)).then_some("the project's .gitignore ignores it")
    }

    /// The file that a path names.
    pub fn file(&self, repo: &Repo, path: &str) -> Result<&Entry, Stopped> {
        let path = relative(path)?;
        if path.is_empty() {
            return Err(Stopped::failed("the path names the root; list_files shows what is in it"));
        }
        let Some(entry) = self.at(&path) else { return Err(self.no_file(repo, &path)) };
        match entry.kind {
            EntryKind::Symlink => Err(self.link(repo, entry, "")),
            EntryKind::Submodule => Err(submodule(entry)),
            EntryKind::File => match self.withheld(entry) {
                Some(reason) => Err(Stopped::refused(format!("{} is not shown: {reason}", quoted(&entry.path)))),
                None => Ok(entry),
            },
        }
    }

    /// The entries below a folder.
    pub fn folder(&self, repo: &Repo, path: &str) -> Result<(String, &[Entry]), Stopped> {
        let path = relative(path)?;
        let range = self.below(&path);
        if !range.is_empty() || path.is_empty() {
            return Ok((path, self.entries.get(range).unwrap_or_default()));
        }
        match self.at(&path) {
            Some(entry) if entry.kind == EntryKind::File => {
                Err(Stopped::failed(format!("{} is a file; read_file shows it", quoted(&path))))
            }
            Some(entry) if entry.kind == EntryKind::Symlink => Err(self.link(repo, entry, "")),
            Some(entry) => Err(submodule(entry)),
            None => Err(self.no_file(repo, &path)),
        }
    }

    /// What a link says, as one line; the words of a stranger.
    pub fn link_text(repo: &Repo, entry: &Entry) -> String {
        let is_long = repo.blob_size(&entry.id).is_ok_and(|size| size > MAX_PATH as u64);
        let bytes = if is_long { None } else { repo.blob(&entry.id).ok() };
        bytes.map_or_else(|| "(unreadable)".to_owned(), |bytes| path_from_bytes(&bytes))
    }

    fn at(&self, path: &str) -> Option<&Entry> {
        let at = self.entries.binary_search_by(|entry| entry.path.as_str().cmp(path)).ok();
        self.entries.get(at.or_else(|| self.odd.get(path).copied())?)
    }

    fn below(&self, folder: &str) -> Range<usize> {
        if folder.is_empty() {
            return 0..self.entries.len();
        }
        let inside = format!("{folder}/");
        let start = self.entries.partition_point(|entry| entry.path.as_str() < inside.as_str());
        let rest = self.entries.get(start..).unwrap_or_default();
        start..start + rest.partition_point(|entry| entry.path.starts_with(&inside))
    }

    /// What to say of a path at which there is no file.
    fn no_file(&self, repo: &Repo, path: &str) -> Stopped {
        if !self.below(path).is_empty() {
            return Stopped::failed(format!("{} is a folder; list_files shows what is in it", quoted(path)));
        }
        let mut above =
            memchr::memchr_iter(b'/', path.as_bytes()).filter_map(|at| Some((self.at(path.get(..at)?)?, at)));
        if let Some((entry, at)) = above.next() {
            return match entry.kind {
                EntryKind::Symlink => self.link(repo, entry, path.get(at..).unwrap_or_default()),
                EntryKind::Submodule => submodule(entry),
                EntryKind::File => Stopped::failed(format!("{} is a file, not a folder", quoted(&entry.path))),
            };
        }
        let name = path.rsplit('/').next().unwrap_or(path);
        let same = self.entries.iter().filter(|entry| entry.path.rsplit('/').next() == Some(name));
        let same: Vec<String> = same.take(SUGGESTED).map(|entry| quoted(&entry.path)).collect();
        let hint = match (same.is_empty(), self.complete) {
            (false, _) => format!("; of that name there is {}", same.join(", ")),
            (true, true) => "; list_files shows what there is".to_owned(),
            (true, false) => "; not all of the snapshot could be listed".to_owned(),
        };
        Stopped::failed(format!("there is no {} in the snapshot{hint}", quoted(path)))
    }

    /// What to say of a link instead of following it; `rest` is what was asked for behind it.
    fn link(&self, repo: &Repo, entry: &Entry, rest: &str) -> Stopped {
        let text = Self::link_text(repo, entry);
        let said = format!("{} is a symbolic link to {}", quoted(&entry.path), quoted(&text));
        match links::target(&entry.path, &text) {
            None => Stopped::refused(format!("{said}, which leads out of the repository")),
            Some(target) if self.at(&target).is_some() || !self.below(&target).is_empty() => {
                let target = format!("{target}{rest}");
                Stopped::told(format!("{said}; ask for {} instead", quoted(target.trim_start_matches('/'))))
            }
            Some(_) => Stopped::told(format!("{said}, which is not in the snapshot")),
        }
    }
}

fn submodule(entry: &Entry) -> Stopped {
    Stopped::failed(format!("{} is a submodule; the snapshot does not hold its files", quoted(&entry.path)))
}

/// A path relative to the root, with single slashes; empty for the root. Everything that could mean a place outside is
/// refused, also where the tree could not hold it anyway.
pub fn relative(path: &str) -> Result<String, Stopped> {
    if path.len() > MAX_PATH || path.contains('\0') {
        return Err(Stopped::failed("no file has such a path"));
    }
    let drive =
        |path: &str| matches!(path.as_bytes(), [letter, b':', b'/' | b'\\', ..] if letter.is_ascii_alphabetic());
    if path.starts_with(['/', '\\']) || path == "~" || path.starts_with("~/") || drive(path) {
        let what = format!("{} is not a path of the repository: ", quoted(path));
        return Err(Stopped::refused(what + "paths are relative to its root, as in src/main.rs"));
    }
    if path.split(['/', '\\']).any(|part| part == "..") {
        return Err(Stopped::refused(format!("{} is refused: paths have no `..`", quoted(path))));
    }
    if path.split('/').any(|part| part.eq_ignore_ascii_case(".git")) {
        return Err(Stopped::refused(format!(
            "{} is refused: git's own files are not part of the snapshot",
            quoted(path)
        )));
    }
    let parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    Ok(parts.join("/"))
}

fn by_nearness(entries: &[Entry], changed: &HashSet<String>) -> Vec<u32> {
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
        match (relative(path), expected) {
            (Ok(path), Some(expected)) => assert_eq!(path, expected),
            (Err(stopped), None) => assert_eq!(stopped.outcome, ToolOutcome::Refused, "{}", stopped.text),
            (found, _) => panic!("{path}: {:?}", found.map_err(|stopped| stopped.text)),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn no_path_leads_out(path in "[a./~\\\\:\0C gGiItT-]{0,24}") {
            if let Ok(path) = relative(&path) {
                let joined = std::path::Path::new("/repository").join(&path);
                prop_assert!(joined.starts_with("/repository"));
                let plain = |part| matches!(part, std::path::Component::Normal(_));
                prop_assert!(std::path::Path::new(&path).components().all(plain), "{path}");
                prop_assert!(!path.split('/').any(|part| part.eq_ignore_ascii_case(".git")), "{path}");
            }
        }
    }
}
