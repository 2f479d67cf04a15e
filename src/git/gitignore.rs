//! Which untracked files git ignores: `.gitignore` per folder, `info/exclude`, `core.excludesFile`, the nearest first.
//!
//! Rules are read only when there is something to hold against them: in a clean worktree that is hardly ever.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::{path_bytes, regular_file};

/// The rules that hold in one folder of the worktree.
pub struct FolderIgnoreRules {
    parent: Option<Arc<FolderIgnoreRules>>,
    /// Relative to the worktree, without a slash at the end.
    path: Vec<u8>,
    /// The folder's `.gitignore`, when there is one.
    file: Option<PathBuf>,
    shared: Arc<SharedIgnoreRules>,
    rules: OnceLock<Gitignore>,
    ignored: OnceLock<bool>,
}

/// The rules that hold everywhere.
pub struct SharedIgnoreRules {
    /// The strongest first.
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

    /// Whether an entry directly in this folder is ignored; `path` is relative to the worktree.
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

/// What the rules say of a path; `None` when they do not speak of it.
pub fn match_rules(rules: &Gitignore, path: &[u8], is_folder: bool) -> Option<bool> {
    match rules.matched(path_bytes::to_path(path), is_folder) {
        Match::None => None,
        Match::Ignore(_) => Some(true),
        Match::Whitelist(_) => Some(false),
    }
}

/// A file of rules; one that cannot be read holds nothing, as in git.
fn read_shared_rules(file: &Path, ignore_case: bool) -> Gitignore {
    parse_rules(&std::fs::read(file).unwrap_or_default(), ignore_case)
}

/// The rules of a folder of the worktree, where anything may stand in place of a file.
fn read_folder_rules(file: &Path, ignore_case: bool) -> Gitignore {
    parse_rules(&regular_file::read(file).unwrap_or_default(), ignore_case)
}

/// What a `.gitignore` says; lines that are no valid globs hold nothing, as in git.
pub fn parse_rules(content: &[u8], ignore_case: bool) -> Gitignore {
    let mut builder = GitignoreBuilder::new("");
    let _ = builder.case_insensitive(ignore_case);
    let content = content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content);
    for line in content.split(|byte| *byte == b'\n') {
        let _ = builder.add_line(None, &String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line)));
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

/// Globs of the settings, in the syntax of `.gitignore`.
pub fn parse_globs(lines: &[String]) -> Gitignore {
    let mut builder = GitignoreBuilder::new("");
    for line in lines {
        let _ = builder.add_line(None, line);
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}
