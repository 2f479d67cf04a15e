//! The code of a tree as documents, each read once however many trees have it.
//!
//! Invariants: what a program wrote, by its content, has no document; one that was kept is the same as one that is read, down to the numbers of its words; of a file with
//! a key in it nothing is kept, since a key may be a word.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use super::mask::Mask;
use super::retrieve::SourceFile;
use super::retrieve::document::Document;
use super::retrieve::paths::is_code;
use super::retrieve::words::Vocabulary;
use super::secret_files::is_secret_file;
use super::shelf::{Key, Shelf};
use super::text::is_binary;
use crate::git::{EntryKind, Filter, GitError, Judge, Listing, Repo, TreeFile};

/// Larger files are not searched, in bytes: no person wrote them.
const MAX_BYTES: u64 = 1 << 20;
/// Words that are read for one question, repeated ones included: those of two million lines, 500 MB as documents.
const MOST_WORDS: u64 = 12_000_000;
/// Bytes of kept documents: those of three million lines.
const MOST_KEPT: u64 = 64 << 20;

/// Documents by blob, and the words in them.
#[derive(Debug, Default)]
pub struct Library {
    pub vocabulary: Vocabulary,
    /// None of files that are no text or too large.
    documents: HashMap<String, Option<Arc<Document>>>,
    kept: Shelf,
}

impl Library {
    /// With the documents that are kept in a folder.
    pub fn open(folder: Option<&Path>) -> Self {
        Self { kept: Shelf::open(folder, "documents", MOST_KEPT), ..Self::default() }
    }

    /// The documents of files; those that are no text, too large, or not to be had are left away.
    pub fn read(&mut self, repo: &Repo, files: Vec<TreeFile>) -> Vec<SourceFile> {
        let read = files.into_iter().filter_map(|TreeFile { path, blob }| {
            let document = self.document(repo, &path, &blob)?;
            Some(SourceFile { path, blob, document }).filter(|file| file.document.lines() > 0)
        });
        read.collect()
    }

    /// As [`Library::read`], but no more files than there is memory for, the `given` ones first; and how many were left
    /// away for that, or because it was cancelled.
    pub fn read_within(
        &mut self,
        repo: &Repo,
        files: Vec<TreeFile>,
        given: &HashSet<&str>,
        cancelled: &dyn Fn() -> bool,
    ) -> (Vec<SourceFile>, usize) {
        self.read_most(repo, files, given, MOST_WORDS, cancelled)
    }

    fn read_most(
        &mut self,
        repo: &Repo,
        files: Vec<TreeFile>,
        given: &HashSet<&str>,
        most_words: u64,
        cancelled: &dyn Fn() -> bool,
    ) -> (Vec<SourceFile>, usize) {
        let (first, then): (Vec<_>, Vec<_>) = files.into_iter().partition(|file| given.contains(file.path.as_str()));
        let (mut read, mut words, mut left) = (self.read(repo, first), 0, 0);
        for file in then {
            if words >= most_words || cancelled() {
                left += 1;
                continue;
            }
            let found = self.read(repo, vec![file]);
            words += found.iter().map(|file| u64::from(file.document.length())).sum::<u64>();
            read.extend(found);
        }
        read.sort_by(|a, b| a.path.cmp(&b.path));
        (read, left)
    }

    fn document(&mut self, repo: &Repo, path: &str, blob: &str) -> Option<Arc<Document>> {
        if let Some(known) = self.documents.get(blob) {
            return known.clone();
        }
        let key = Key::of(&["document", Document::VERSION, blob]);
        let kept = self.kept.get(key).and_then(|bytes| match bytes.is_empty() {
            true => Some(None),
            false => Document::unpack(&bytes, &mut self.vocabulary).map(Some),
        });
        let document = match kept {
            Some(document) => document,
            None => {
                let text = content(repo, blob).ok()?;
                let is_own =
                    |text: &String| Judge::by_itself(MAX_BYTES).reason_by_content(path, text.as_bytes()).is_none();
                let text = text.filter(is_own);
                let has_key = text.as_deref().is_some_and(has_key);
                let document = text.map(|text| Document::read(&text, &mut self.vocabulary));
                if !has_key {
                    let pack = |document: &Document| document.pack(&self.vocabulary);
                    self.kept.put(key, document.as_ref().map(pack).unwrap_or_default());
                }
                document
            }
        };
        let document = document.map(Arc::new);
        self.documents.insert(blob.to_owned(), document.clone());
        document
    }

    /// Keeps what was read for the next question.
    pub fn close(self) {
        self.kept.close();
    }
}

/// The files of a listing that are code and may be shown: what the project's own rules ignore only where it is changed,
/// as in the tools.
pub fn code_of(listing: &Listing, changed: &HashSet<&str>) -> Vec<TreeFile> {
    let files = listing.entries.iter().filter(|entry| {
        entry.kind == EntryKind::File
            && is_code(&entry.path)
            && !is_secret_file(&entry.path)
            && (!entry.is_ignored || changed.contains(entry.path.as_str()))
    });
    files.map(|entry| TreeFile { path: entry.path.clone(), blob: entry.id.clone() }).collect()
}

/// Of some files of a tree, those that people of this project wrote by all that names and attributes tell, and those that are
/// asked for.
///
/// # Errors
/// A tree that cannot be read.
pub fn own(
    repo: &Repo,
    tree: &str,
    mut files: Vec<TreeFile>,
    is_asked: &dyn Fn(&str) -> bool,
) -> Result<Vec<TreeFile>, GitError> {
    let mut judge = repo.judge(tree, &Filter { max_file_bytes: MAX_BYTES, ignored_paths: Vec::new() })?;
    files.retain(|file| is_asked(&file.path) || judge.reason_by_name(&file.path).is_none());
    Ok(files)
}

/// Whether something in a text has the shape of a key. What is one by its name alone is an ordinary word.
fn has_key(text: &str) -> bool {
    text.contains("PRIVATE KEY-----") || matches!(Mask::On.shapes(text), Cow::Owned(_))
}

/// A file's text; `None` of one that is no text or too large.
///
/// # Errors
/// A blob that git does not have here.
pub fn content(repo: &Repo, blob: &str) -> Result<Option<String>, GitError> {
    if repo.blob_size(blob)? > MAX_BYTES {
        return Ok(None);
    }
    let content = repo.blob(blob)?;
    Ok((!is_binary(&content)).then(|| {
        String::from_utf8(content).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_read_than_there_is_memory_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let git = git2::Repository::init_bare(folder.path()).expect("a repository");
        let repo = Repo::discover(folder.path()).expect("a repository");
        let file = |path: &str| {
            let blob = git.blob(format!("{path} {}", "word ".repeat(100)).as_bytes()).expect("a blob");
            TreeFile { path: path.to_owned(), blob: blob.to_string() }
        };
        let files: Vec<TreeFile> = ["a", "b", "c", "d"].map(file).into();
        let read = |most| {
            let (read, left) = Library::default().read_most(&repo, files.clone(), &["d"].into(), most, &|| false);
            (read.into_iter().map(|file| file.path).collect::<String>(), left)
        };
        assert_eq!(read(1_000), ("abcd".to_owned(), 0));
        assert_eq!(read(150), ("abd".to_owned(), 1));
        assert_eq!(read(0), ("d".to_owned(), 3));
    }
}
