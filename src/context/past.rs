//! The history of a repository for the ranking: read from git once, then from a file that grows by what is new.
//!
//! Invariants: the file holds facts about immutable commits, so that a line of it is right or unreadable, never stale; an
//! unreadable line is passed over and its commit read again; without a folder everything is read from git.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::retrieve::history::{History, MOST_FILES, MOST_WORDS, Past, PastFile, Touch, fingerprint};
use super::retrieve::paths::is_code;
use super::retrieve::words::identifiers;
use crate::git::{Ancestor, GitError, Hunk, PastChange, PastKind, Repo};

/// Another name for each format.
const FILE: &str = "history-1.ndjson";

/// The commits behind one commit.
pub struct Known {
    pub history: History,
    /// By commit: its number in the history.
    numbers: HashMap<String, usize>,
    parents: HashMap<String, Vec<String>>,
}

/// A commit as it is kept.
#[derive(Serialize, Deserialize)]
struct Kept {
    commit: String,
    files: Vec<(String, u8, Vec<[u32; 4]>)>,
    words: Vec<u32>,
}

impl Known {
    /// What `limit` commits behind `tip`, itself included, changed of code.
    ///
    /// # Errors
    /// A tip that is no commit. What goes wrong with the file in `folder` costs time and nothing else.
    pub fn read(repo: &Repo, tip: &str, limit: usize, folder: Option<&Path>) -> Result<Self, GitError> {
        let ancestors = repo.ancestors(tip, limit)?;
        let mut kept = folder.map(|folder| load(&folder.join(FILE), &ancestors)).unwrap_or_default();
        let mut lines = Vec::new();
        let mut known = Self { history: History::default(), numbers: HashMap::new(), parents: HashMap::new() };
        for ancestor in ancestors {
            let Ancestor { commit, parents } = ancestor;
            let entry = match kept.remove(&commit) {
                Some(entry) => entry,
                None => {
                    let changes = repo.past(&commit, MOST_FILES, &is_code).unwrap_or_default();
                    let entry = Kept::of(&commit, &changes);
                    if folder.is_some() {
                        serde_json::to_writer(&mut lines, &entry).ok();
                        lines.push(b'\n');
                    }
                    entry
                }
            };
            known.parents.insert(commit.clone(), parents);
            if !entry.files.is_empty() {
                known.numbers.insert(commit, known.history.commits.len());
                let past = entry.into_past(&mut known.history);
                known.history.commits.push(past);
            }
        }
        if let Some(folder) = folder.filter(|_| !lines.is_empty()) {
            append(folder, &lines);
        }
        Ok(known)
    }

    /// The history's commits that a commit has behind it, itself included, the newest first.
    pub fn before(&self, commit: &str) -> Vec<usize> {
        let mut seen: HashSet<&str> = HashSet::new();
        let mut open = vec![commit];
        let mut before = Vec::new();
        while let Some(commit) = open.pop() {
            let Some((commit, parents)) = self.parents.get_key_value(commit) else { continue };
            if seen.insert(commit) {
                before.extend(self.numbers.get(commit));
                open.extend(parents.iter().map(String::as_str));
            }
        }
        before.sort_unstable();
        before
    }
}

impl Kept {
    fn of(commit: &str, changes: &[PastChange]) -> Self {
        let lines =
            changes.iter().flat_map(|change| &change.hunks).flat_map(|hunk| hunk.removed.iter().chain(&hunk.added));
        let mut words: Vec<u32> = lines.flat_map(|line| identifiers(line)).map(fingerprint).collect();
        words.sort_unstable();
        words.dedup();
        if words.len() > MOST_WORDS {
            words.clear();
        }
        let place = |hunk: &Hunk| [hunk.old_start, hunk.old_lines, hunk.new_start, hunk.new_lines];
        let files = changes.iter().map(|change| {
            let kind = match change.kind {
                PastKind::Added => 0,
                PastKind::Modified => 1,
                PastKind::Deleted => 2,
            };
            (change.path.clone(), kind, change.hunks.iter().map(|hunk| place(&hunk.place)).collect())
        });
        Self { commit: commit.to_owned(), files: files.collect(), words }
    }

    fn into_past(self, history: &mut History) -> Past {
        let files = self.files.into_iter().map(|(path, kind, hunks)| PastFile {
            path: history.path_id(&path),
            touch: match kind {
                0 => Touch::Added,
                1 => Touch::Modified,
                _ => Touch::Deleted,
            },
            hunks: hunks
                .into_iter()
                .map(|[old_start, old_lines, new_start, new_lines]| Hunk { old_start, old_lines, new_start, new_lines })
                .collect(),
        });
        Past { files: files.collect(), words: self.words }
    }
}

fn load(path: &Path, wanted: &[Ancestor]) -> HashMap<String, Kept> {
    let Ok(file) = File::open(path) else { return HashMap::new() };
    let wanted: HashSet<&str> = wanted.iter().map(|ancestor| ancestor.commit.as_str()).collect();
    let mut kept = HashMap::new();
    for line in BufReader::new(file).split(b'\n').map_while(Result::ok) {
        if let Ok(entry) = serde_json::from_slice::<Kept>(&line)
            && wanted.contains(entry.commit.as_str())
        {
            kept.insert(entry.commit.clone(), entry);
        }
    }
    kept
}

/// Adds lines; a torn line of somebody who died while writing is ended first. Failing costs the next one time.
fn append(folder: &Path, lines: &[u8]) {
    let write = || -> std::io::Result<()> {
        fs::create_dir_all(folder)?;
        let mut file = File::options().create(true).append(true).open(folder.join(FILE))?;
        file.lock()?;
        let begun: &[u8] = if file.metadata()?.len() == 0 { b"" } else { b"\n" };
        file.write_all(&[begun, lines].concat())
    };
    if let Err(error) = write() {
        tracing::warn!("cannot keep the history in {}: {error}", folder.display());
    }
}
