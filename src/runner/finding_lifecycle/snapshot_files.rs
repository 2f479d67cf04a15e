//! Compares files of earlier snapshots with those of a run's snapshot, to locate findings. Reads each file once.
//!
//! A file that cannot be read or is too large gives no answer, and no conclusion is drawn from it.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use crate::domain::LineRange;
use crate::git::{AlteredFile, GitError, Hunk, Repo};
use crate::policy::anchor::{
    AddedLines, AnchorEdit, AnchorLocation, CurrentFile, HashedLines, MappedLines, locate_anchor, map_lines,
};

/// Maximum size of a text in which lines are located, in bytes. Not from the literature: no review reads files of this
/// size.
const MAX_FOLLOWED_BYTES: usize = 4 << 20;
/// Maximum number of changed files in which moved code is searched, and maximum size of such a file in bytes. Not from
/// the literature: a larger change is a merged branch, a larger file is generated.
const MAX_SEARCHED_FILES: usize = 2_000;
const MAX_SEARCHED_BYTES: usize = 512 << 10;
/// Maximum number of snapshots, apart from the reference, in which renames are searched. Not from the literature: each
/// needs a comparison of two trees.
const MAX_COMPARED_SNAPSHOTS: usize = 16;

/// The files of a run's snapshot and of earlier snapshots.
pub(in crate::runner) struct SnapshotFiles<'a> {
    repo: &'a Repo,
    snapshot: &'a str,
    /// The snapshot with which the run's snapshot is compared first.
    reference: String,
    altered: Rc<Vec<AlteredFile>>,
    /// Renames by commit: path in that snapshot to path in this one, where they differ.
    renamed: HashMap<String, Rc<HashMap<String, String>>>,
    /// Renames since the reference: path in this snapshot to path in that one.
    old_names: HashMap<String, String>,
    blobs: HashMap<(String, String), Option<String>>,
    codes: HashMap<String, Option<Arc<HashedLines>>>,
    edits: HashMap<(String, String), Option<Rc<Vec<AnchorEdit>>>>,
    added: Option<Option<AddedLines>>,
}

impl From<Hunk> for AnchorEdit {
    fn from(Hunk { old_start, old_lines, new_start, new_lines }: Hunk) -> Self {
        Self { old_start, old_lines, new_start, new_lines }
    }
}

fn collect_renames(altered: &[AlteredFile]) -> Rc<HashMap<String, String>> {
    let renamed = altered.iter().filter_map(|file| match (&file.old, &file.new) {
        (Some(old), Some(new)) if old.path != new.path => Some((old.path.clone(), new.path.clone())),
        _ => None,
    });
    Rc::new(renamed.collect())
}

impl<'a> SnapshotFiles<'a> {
    /// Compares two snapshots. `snapshot` is that of a run; `reference` is the one before it, or the base of the run's
    /// change.
    ///
    /// # Errors
    ///
    /// If git cannot read one of the trees.
    pub fn new(repo: &'a Repo, reference: &str, snapshot: &'a str) -> Result<Self, GitError> {
        let altered = Rc::new(repo.diff_snapshots(reference, snapshot)?);
        let renamed = collect_renames(&altered);
        let old_names = renamed.iter().map(|(old, new)| (new.clone(), old.clone())).collect();
        let renamed = HashMap::from([(reference.to_owned(), renamed)]);
        Ok(Self {
            repo,
            snapshot,
            reference: reference.to_owned(),
            altered,
            renamed,
            old_names,
            blobs: HashMap::new(),
            codes: HashMap::new(),
            edits: HashMap::new(),
            added: None,
        })
    }

    /// Returns the old paths of all files that differ from the reference.
    pub fn altered_paths(&self) -> impl Iterator<Item = &str> {
        self.altered.iter().filter_map(|file| file.old.as_ref()).map(|file| file.path.as_str())
    }

    /// Returns the old path of a renamed file of the snapshot.
    pub fn old_name(&self, path: &str) -> Option<&str> {
        self.old_names.get(path).map(String::as_str)
    }

    /// Locates lines of a file of another snapshot in this one.
    pub fn locate_lines(&mut self, from: &str, path: &str, lines: LineRange) -> Option<AnchorLocation> {
        let old_blob = self.blob(from, path)?;
        let now = self.current_path(from, path).and_then(|path| Some((self.blob(self.snapshot, &path)?, path)));
        if let Some((_, path)) = now.as_ref().filter(|(blob, _)| *blob == old_blob) {
            return Some(AnchorLocation::Unchanged { path: path.clone(), lines });
        }
        let old = self.code(&old_blob)?;
        let now = match now {
            Some((blob, path)) => Some((self.code(&blob)?, self.edits(&old_blob, &blob)?, path)),
            None => None,
        };
        let now = now.as_ref().map(|(code, edits, path)| CurrentFile { path, code, edits });
        locate_anchor(&old, path, lines, now, move || self.added())
    }

    /// Locates lines of this snapshot in another one. Returns `None` if the lines were different there.
    pub fn locate_before(&mut self, path: &str, lines: LineRange, from: &str) -> Option<(String, LineRange)> {
        let blob = self.blob(self.snapshot, path)?;
        let old_name = self.old_name(path).map(str::to_owned);
        let old_path = old_name.filter(|_| self.blob(from, path).is_none()).unwrap_or_else(|| path.to_owned());
        let old_blob = self.blob(from, &old_path)?;
        if blob == old_blob {
            return Some((old_path, lines));
        }
        let edits: Vec<AnchorEdit> = self.edits(&old_blob, &blob)?.iter().map(|edit| edit.reversed()).collect();
        let (now, old) = (self.code(&blob)?, self.code(&old_blob)?);
        match map_lines(&now, &old, &edits, lines) {
            MappedLines::Unchanged(lines) => Some((old_path, lines)),
            _ => None,
        }
    }

    /// Locates lines of a file of another snapshot as if `text` were the content of the file `there` in this one.
    pub fn locate_with_content(
        &mut self,
        from: &str,
        path: &str,
        lines: LineRange,
        (there, text): (&str, &[u8]),
    ) -> Option<AnchorLocation> {
        let old = self.blob(from, path).and_then(|blob| self.text(&blob))?;
        let edits: Vec<AnchorEdit> = self.repo.diff_texts(&old, text).ok()?.into_iter().map(AnchorEdit::from).collect();
        let code = HashedLines::from_text(text);
        locate_anchor(
            &HashedLines::from_text(&old),
            path,
            lines,
            Some(CurrentFile { path: there, code: &code, edits: &edits }),
            || None,
        )
    }

    /// Returns the content of a file of the snapshot.
    pub fn content(&mut self, path: &str) -> Option<Vec<u8>> {
        self.blob(self.snapshot, path).and_then(|blob| self.text(&blob))
    }

    /// Returns `true` if a file has the same content in another snapshot.
    pub fn is_same_in(&mut self, path: &str, from: &str, old_path: &str) -> bool {
        self.blob(self.snapshot, path) == self.blob(from, old_path)
    }

    /// Returns the path in this snapshot of a file of another one; `None` if the file is gone.
    fn current_path(&mut self, from: &str, path: &str) -> Option<String> {
        if self.blob(self.snapshot, path).is_some() {
            return Some(path.to_owned());
        }
        let reference = self.reference.clone();
        let from = if from == reference || self.blob(&reference, path).is_some() { reference.as_str() } else { from };
        if !self.renamed.contains_key(from) {
            if self.renamed.len() > MAX_COMPARED_SNAPSHOTS {
                return None;
            }
            let found = self
                .repo
                .diff_snapshots(from, self.snapshot)
                .map(|altered| collect_renames(&altered))
                .unwrap_or_default();
            self.renamed.insert(from.to_owned(), found);
        }
        self.renamed.get(from)?.get(path).cloned()
    }

    fn blob(&mut self, commit: &str, path: &str) -> Option<String> {
        let key = (commit.to_owned(), path.to_owned());
        let repo = self.repo;
        let known = self.blobs.entry(key);
        known.or_insert_with_key(|(commit, path)| repo.blob_at(commit, path).ok().flatten()).clone()
    }

    fn text(&self, blob: &str) -> Option<Vec<u8>> {
        self.repo.blob(blob).ok().filter(|text| text.len() <= MAX_FOLLOWED_BYTES)
    }

    fn code(&mut self, blob: &str) -> Option<Arc<HashedLines>> {
        if let Some(known) = self.codes.get(blob) {
            return known.clone();
        }
        let code = self.text(blob).map(|text| Arc::new(HashedLines::from_text(&text)));
        self.codes.insert(blob.to_owned(), code.clone());
        code
    }

    fn edits(&mut self, old: &str, new: &str) -> Option<Rc<Vec<AnchorEdit>>> {
        let key = (old.to_owned(), new.to_owned());
        if let Some(known) = self.edits.get(&key) {
            return known.clone();
        }
        let hunks = self.text(old).zip(self.text(new)).and_then(|(old, new)| self.repo.diff_texts(&old, &new).ok());
        let edits = hunks.map(|hunks| Rc::new(hunks.into_iter().map(AnchorEdit::from).collect::<Vec<_>>()));
        self.edits.insert(key, edits.clone());
        edits
    }

    /// Returns the code that the change since the reference added; `None` if the change is too large to search.
    fn added(&mut self) -> Option<&AddedLines> {
        if self.added.is_none() {
            self.added = Some(self.find_added_code());
        }
        self.added.as_ref().and_then(Option::as_ref)
    }

    fn find_added_code(&mut self) -> Option<AddedLines> {
        let altered = Rc::clone(&self.altered);
        let files = altered.iter().filter_map(|file| Some((file.old.as_ref(), file.new.as_ref()?)));
        let files: Vec<_> = files.collect();
        if files.len() > MAX_SEARCHED_FILES {
            return None;
        }
        let mut added = AddedLines::default();
        for (old, new) in files {
            if self.text(&new.blob).is_none_or(|text| text.len() > MAX_SEARCHED_BYTES) {
                continue;
            }
            let Some(code) = self.code(&new.blob) else { continue };
            let ranges = match old {
                None => vec![LineRange::new(1, code.len().max(1))],
                Some(old) => {
                    let Some(edits) = self.edits(&old.blob, &new.blob) else { continue };
                    edits.iter().filter_map(AnchorEdit::added_lines).collect()
                }
            };
            added.add(&new.path, code, ranges);
        }
        Some(added)
    }
}
