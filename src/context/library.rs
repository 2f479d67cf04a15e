//! The code of a tree as documents, each read once however many trees have it.
//!
//! Invariants: what a program wrote has a document only where it is asked for; one that was kept is the same as one that is
//! read, down to the numbers of its words; of a file with a key in it no document is kept, since a key may be a word.

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
use crate::git::{EntryKind, Filter, GitError, Judge, Listing, Looks, Repo, TreeFile};

/// Larger files are not searched, in bytes: no person wrote them.
const MAX_BYTES: u64 = 1 << 20;
/// Words that are read for one question, repeated ones included: those of two million lines, 500 MB as documents.
const MOST_WORDS: u64 = 12_000_000;
/// Bytes of kept documents: those of three million lines.
const MOST_KEPT: u64 = 64 << 20;
/// What a record holds besides the document; to be raised with any change of it, and of what looks generated.
const RECORD: &str = "2";

/// Documents by blob, and the words in them.
#[derive(Debug, Default)]
pub struct Library {
    pub vocabulary: Vocabulary,
    known: HashMap<String, Known>,
    kept: Shelf,
}

/// What is known of a file's content.
#[derive(Debug)]
enum Known {
    /// It is no text, or too large.
    NoText,
    /// What it looks like, and what is in it where somebody asked for that.
    Text(Looks, Option<Arc<Document>>),
}

impl Library {
    /// With the documents that are kept in a folder.
    pub fn open(folder: Option<&Path>) -> Self {
        Self { kept: Shelf::open(folder, "documents", MOST_KEPT), ..Self::default() }
    }

    /// The documents of files; those that are no text, too large, not to be had, or by their content nobody's `own` are
    /// left away.
    pub fn read(&mut self, repo: &Repo, files: Vec<TreeFile>, own: &mut Own<'_>) -> Vec<SourceFile> {
        let read = files.into_iter().filter_map(|TreeFile { path, blob }| {
            let document = self.document(repo, &path, &blob, own)?;
            Some(SourceFile { path, blob, document }).filter(|file| file.document.lines() > 0)
        });
        read.collect()
    }

    /// As [`Library::read`], but no more files than there is memory for, those that are asked for first; and how many were
    /// left away for that, or because it was cancelled.
    pub fn read_within(
        &mut self,
        repo: &Repo,
        files: Vec<TreeFile>,
        own: &mut Own<'_>,
        cancelled: &dyn Fn() -> bool,
    ) -> (Vec<SourceFile>, usize) {
        self.read_most(repo, files, own, MOST_WORDS, cancelled)
    }

    fn read_most(
        &mut self,
        repo: &Repo,
        files: Vec<TreeFile>,
        own: &mut Own<'_>,
        most_words: u64,
        cancelled: &dyn Fn() -> bool,
    ) -> (Vec<SourceFile>, usize) {
        let (first, then): (Vec<_>, Vec<_>) = files.into_iter().partition(|file| (own.is_asked)(&file.path));
        let (mut read, mut words, mut left) = (self.read(repo, first, own), 0, 0);
        for file in then {
            if words >= most_words || cancelled() {
                left += 1;
                continue;
            }
            let found = self.read(repo, vec![file], own);
            words += found.iter().map(|file| u64::from(file.document.length())).sum::<u64>();
            read.extend(found);
        }
        read.sort_by(|a, b| a.path.cmp(&b.path));
        (read, left)
    }

    fn document(&mut self, repo: &Repo, path: &str, blob: &str, own: &mut Own<'_>) -> Option<Arc<Document>> {
        let key = Key::of(&["document", RECORD, Document::VERSION, blob]);
        let (mut text, mut is_kept) = (None, true);
        if !self.known.contains_key(blob) {
            let known = match self.kept.get(key).and_then(|bytes| self.unpack(&bytes, path, own)) {
                Some(known) => known,
                None => {
                    is_kept = false;
                    text = content(repo, blob).ok()?;
                    text.as_ref().map_or(Known::NoText, |text| Known::Text(Looks::of(text.as_bytes()), None))
                }
            };
            self.known.insert(blob.to_owned(), known);
        }
        let keep = |bytes: Vec<u8>| {
            if !is_kept {
                self.kept.put(key, bytes);
            }
        };
        let (looks, document) = match self.known.get_mut(blob)? {
            Known::Text(looks, document) => (*looks, document),
            Known::NoText => {
                keep(Vec::new());
                return None;
            }
        };
        if !own.has(path, looks) {
            keep(vec![looks.bits()]);
            return None;
        }
        if document.is_none() {
            let text = text.map_or_else(|| content(repo, blob), |text| Ok(Some(text))).ok()??;
            let read = Document::read(&text, &mut self.vocabulary);
            if !has_key(&text) {
                keep([vec![looks.bits()], read.pack(&self.vocabulary)].concat());
            }
            *document = Some(Arc::new(read));
        }
        document.clone()
    }

    /// A record: nothing of what is no text; else what it looks like, and the document where one was read. Of that only
    /// what is needed: words that are nobody's would change the numbers of all that follow.
    fn unpack(&mut self, bytes: &[u8], path: &str, own: &mut Own<'_>) -> Option<Known> {
        let Some((looks, document)) = bytes.split_first() else { return Some(Known::NoText) };
        let looks = Looks::from_bits(*looks)?;
        let document = match document.is_empty() || !own.has(path, looks) {
            true => None,
            false => Some(Arc::new(Document::unpack(document, &mut self.vocabulary)?)),
        };
        Some(Known::Text(looks, document))
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

/// Which files of a tree people of this project wrote; and those that are asked for, whoever wrote them.
pub struct Own<'a> {
    judge: Judge<'a>,
    is_asked: &'a dyn Fn(&str) -> bool,
}

impl<'a> Own<'a> {
    /// # Errors
    /// A tree that cannot be read.
    pub fn of(repo: &'a Repo, tree: &str, is_asked: &'a dyn Fn(&str) -> bool) -> Result<Self, GitError> {
        let judge = repo.judge(tree, &Filter { max_file_bytes: MAX_BYTES, ignored_paths: Vec::new() })?;
        Ok(Self { judge, is_asked })
    }

    /// By what files alone tell, without attributes.
    #[cfg(test)]
    pub fn by_itself(is_asked: &'a dyn Fn(&str) -> bool) -> Self {
        Self { judge: Judge::by_itself(MAX_BYTES), is_asked }
    }

    /// Those of some files that are own by all that names and attributes tell.
    pub fn by_name(&mut self, mut files: Vec<TreeFile>) -> Vec<TreeFile> {
        files.retain(|file| self.has_name(&file.path));
        files
    }

    /// Whether one is own by all that names and attributes tell.
    pub fn has_name(&mut self, path: &str) -> bool {
        (self.is_asked)(path) || self.judge.reason_by_name(path).is_none()
    }

    /// Whether one is own by what its content looks like.
    fn has(&mut self, path: &str, looks: Looks) -> bool {
        (self.is_asked)(path) || self.judge.reason_by_looks(path, looks).is_none()
    }
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
            let mut own = Own::by_itself(&|path| path == "d");
            let (read, left) = Library::default().read_most(&repo, files.clone(), &mut own, most, &|| false);
            (read.into_iter().map(|file| file.path).collect::<String>(), left)
        };
        assert_eq!(read(1_000), ("abcd".to_owned(), 0));
        assert_eq!(read(150), ("abd".to_owned(), 1));
        assert_eq!(read(0), ("d".to_owned(), 3));
    }

    #[test]
    fn what_a_program_wrote_is_read_where_it_is_asked_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let git = git2::Repository::init_bare(folder.path()).expect("a repository");
        let kept = tempfile::tempdir().expect("a folder");
        let attributes = "own/* -linguist-generated\n";
        let generated = "// @generated\nfn made() {}\n";
        let wide = format!("let wide = [{}];\n", "1, ".repeat(4_000));
        let mut tree = git.treebuilder(None).expect("a builder");
        let blob = |text: &str| git.blob(text.as_bytes()).expect("a blob");
        tree.insert(".gitattributes", blob(attributes), 0o100_644).expect("an entry");
        let tree = git.find_tree(tree.write().expect("a tree")).expect("the tree");
        let who = git2::Signature::new("a", "a@example.org", &git2::Time::new(0, 0)).expect("a name");
        let commit = git.commit(None, &who, &who, "a", &tree, &[]).expect("a commit").to_string();
        let repo = Repo::discover(folder.path()).expect("a repository");
        let file = |path: &str, text: &str| TreeFile { path: path.to_owned(), blob: blob(text).to_string() };
        let files = [
            file("a.rs", generated),
            file("asked.rs", generated),
            file("own/a.rs", generated),
            file("b.json", &wide),
            file("b.rs", &wide),
            file("c.rs", "fn own() {}\n"),
        ];
        let is_asked = |path: &str| path == "asked.rs";
        let mut own = Own::of(&repo, &commit, &is_asked).expect("a tree");
        // One after the other and the other way round: the same content is another's by its path alone.
        for is_backwards in [false, true, false] {
            for folder in [None, Some(kept.path())] {
                let mut files = files.to_vec();
                if is_backwards {
                    files.reverse();
                }
                let mut library = Library::open(folder);
                let mut read: Vec<String> =
                    library.read(&repo, files, &mut own).into_iter().map(|file| file.path).collect();
                library.close();
                read.sort();
                assert_eq!(read, ["asked.rs", "b.json", "c.rs", "own/a.rs"], "{is_backwards} {folder:?}");
            }
        }
    }
}
