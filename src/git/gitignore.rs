//! Decides which untracked files git ignores, from `.gitignore` files, then `info/exclude`, then `core.excludesFile`;
//! the nearest rule wins.
//!
//! Rules are parsed only when a path must be checked, which is rare in a clean worktree.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::{path_bytes, regular_file};

/// Ignore rules that apply in a folder of the worktree.
pub struct FolderIgnoreRules {
    parent: Option<Arc<FolderIgnoreRules>>,
    /// Path relative to the worktree, without a trailing slash.
    path: Vec<u8>,
    /// Path of the folder's `.gitignore`, if there is one.
    file: Option<PathBuf>,
    shared: Arc<SharedIgnoreRules>,
    rules: OnceLock<Gitignore>,
    ignored: OnceLock<bool>,
}

/// Ignore rules that apply in every folder.
pub struct SharedIgnoreRules {
    /// Rule files, strongest first.
    files: Vec<PathBuf>,
    ignore_case: bool,
    rules: OnceLock<Vec<Gitignore>>,
}

impl SharedIgnoreRules {
    pub fn new(files: Vec<PathBuf>, ignore_case: bool) -> Self {
        Self { files, ignore_case, rules: OnceLock::new() }
    }

    fn rules(&self) -> &[Gitignore] {
        self.rules.get_or_init(|| self.files.iter().map(|file| read_shared_rules(file, self.ignore_case)).collect())
    }
}

impl FolderIgnoreRules {
    pub fn new(
        parent: Option<Arc<FolderIgnoreRules>>,
        path: Vec<u8>,
        file: Option<PathBuf>,
        shared: &Arc<SharedIgnoreRules>,
    ) -> Arc<Self> {
        let shared = Arc::clone(shared);
        Arc::new(Self { parent, path, file, shared, rules: OnceLock::new(), ignored: OnceLock::new() })
    }

    /// Returns true when an entry directly in this folder is ignored; `path` is relative to the worktree.
    pub fn ignores(&self, path: &[u8], is_folder: bool) -> bool {
        self.is_ignored() || self.matches(path, is_folder)
    }

    fn is_ignored(&self) -> bool {
        *self.ignored.get_or_init(|| self.parent.as_ref().is_some_and(|parent| parent.ignores(&self.path, true)))
    }

    fn matches(&self, path: &[u8], is_folder: bool) -> bool {
        let mut folder = Some(self);
        while let Some(here) = folder {
            if let Some(file) = &here.file {
                let rules = here.rules.get_or_init(|| read_folder_rules(file, here.shared.ignore_case));
                let skip = if here.path.is_empty() { 0 } else { here.path.len() + 1 };
                if let Some(answer) = match_rules(rules, path.get(skip..).unwrap_or(path), is_folder) {
                    return answer;
                }
            }
            folder = here.parent.as_deref();
        }
        self.shared.rules().iter().find_map(|rules| match_rules(rules, path, is_folder)).unwrap_or(false)
    }
}

/// Applies the rules to a path: true means ignored; `None` means that no rule matches.
pub fn match_rules(rules: &Gitignore, path: &[u8], is_folder: bool) -> Option<bool> {
    match rules.matched(path_bytes::to_path(path), is_folder) {
        Match::None => None,
        Match::Ignore(_) => Some(true),
        Match::Whitelist(_) => Some(false),
    }
}

/// Reads a rule file; an unreadable file has no rules, as in git.
fn read_shared_rules(file: &Path, ignore_case: bool) -> Gitignore {
    parse_rules(&regular_file::read_linked(file).unwrap_or_default(), ignore_case)
}

/// Reads the `.gitignore` of a folder. Only a regular file is read, because the path may lead to another kind of entry.
fn read_folder_rules(file: &Path, ignore_case: bool) -> Gitignore {
    parse_rules(&regular_file::read(file).unwrap_or_default(), ignore_case)
}

/// Parses the content of a `.gitignore`; invalid globs are skipped, as in git.
pub fn parse_rules(content: &[u8], ignore_case: bool) -> Gitignore {
    let mut builder = GitignoreBuilder::new("");
    let _ = builder.case_insensitive(ignore_case);
    let content = content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content);
    for line in content.split(|byte| *byte == b'\n') {
        let _ = builder.add_line(None, &String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line)));
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

/// Parses globs from the settings, in `.gitignore` syntax.
pub fn parse_globs(lines: &[String]) -> Gitignore {
    let mut builder = GitignoreBuilder::new("");
    for line in lines {
        let _ = builder.add_line(None, line);
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}
