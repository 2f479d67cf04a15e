//! Loads the code files of a tree as documents; each blob is read once, however many trees contain it.
//!
//! - A generated file has a document only on request.
//! - A cached document equals a newly read one, including the numbers of its words.
//! - No document is cached of a file that contains a key, because the key may be one of its words.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use crate::git::{
    ContentTraits, EntryKind, FilterSettings, GitError, Repo, ReviewFilter, TreeFile, TreeListing, is_binary,
};
use crate::index::document::Document;
use crate::index::fact_store::{FactKey, FactStore};
use crate::index::vocabulary::Vocabulary;
use crate::masking::Mask;
use crate::masking::secret_files::is_secret_file;
use crate::syntax::facts::is_code_path;

/// Largest file in bytes that is searched; larger files are not written by hand.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Most words read for one query, repeated words included: the words of two million lines, which take 500 MB as
/// documents.
const MAX_WORDS_PER_QUESTION: u64 = 12_000_000;
/// Largest cache in bytes: documents of three million lines.
const MAX_CACHE_BYTES: u64 = 64 << 20;
/// Version of the record's fields outside the document. Increase it with every change of these fields or of the
/// detection of generated files.
const RECORD_VERSION: &str = "2";

/// File of a tree with its document.
#[derive(Debug, Clone)]
pub struct SourceFile {
    /// Path relative to the repository root.
    pub path: String,
    /// Blob id in hexadecimal.
    pub blob: String,
    /// Words, names and passages of the file.
    pub document: Arc<Document>,
}

/// Documents by blob, with their vocabulary.
#[derive(Debug, Default)]
pub struct DocumentStore {
    pub vocabulary: Vocabulary,
    blobs: HashMap<String, BlobDocument>,
    cache: FactStore,
}

/// Cached knowledge about a blob.
#[derive(Debug)]
enum BlobDocument {
    /// The blob is not text, or it is too large.
    NotText,
    /// Appearance of the text, and its document if it was requested.
    Text(ContentTraits, Option<Arc<Document>>),
}

impl DocumentStore {
    /// Opens the store with the document cache in `folder`.
    pub fn open(folder: Option<&Path>) -> Self {
        Self { cache: FactStore::open(folder, "documents", MAX_CACHE_BYTES), ..Self::default() }
    }

    /// Returns the documents of files. Leaves out files that are not text, are too large, cannot be read, or do not
    /// pass the content rules of `own`.
    pub fn read(&mut self, repo: &Repo, files: Vec<TreeFile>, own: &mut AuthoredFilter<'_>) -> Vec<SourceFile> {
        let read = files.into_iter().filter_map(|TreeFile { path, blob }| {
            let document = self.load_document(repo, &path, &blob, own)?;
            Some(SourceFile { path, blob, document }).filter(|file| file.document.line_count() > 0)
        });
        read.collect()
    }

    /// Like [`DocumentStore::read`], but stops at a memory limit; requested files come first. Also returns the number
    /// of files that were left out because of the limit or a cancellation.
    pub fn read_within(
        &mut self,
        repo: &Repo,
        files: Vec<TreeFile>,
        own: &mut AuthoredFilter<'_>,
        cancelled: &dyn Fn() -> bool,
    ) -> (Vec<SourceFile>, usize) {
        self.read_up_to(repo, files, own, MAX_WORDS_PER_QUESTION, cancelled)
    }

    fn read_up_to(
        &mut self,
        repo: &Repo,
        files: Vec<TreeFile>,
        own: &mut AuthoredFilter<'_>,
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
            words += found.iter().map(|file| u64::from(file.document.word_count())).sum::<u64>();
            read.extend(found);
        }
        read.sort_by(|a, b| a.path.cmp(&b.path));
        (read, left)
    }

    fn load_document(
        &mut self,
        repo: &Repo,
        path: &str,
        blob: &str,
        own: &mut AuthoredFilter<'_>,
    ) -> Option<Arc<Document>> {
        let key = FactKey::from_parts(&["document", RECORD_VERSION, Document::VERSION, blob]);
        let (mut text, mut is_kept) = (None, true);
        if !self.blobs.contains_key(blob) {
            let known = match self.cache.get(key).and_then(|bytes| self.unpack_record(&bytes, path, own)) {
                Some(known) => known,
                None => {
                    is_kept = false;
                    text = read_text(repo, blob).ok()?;
                    text.as_ref().map_or(BlobDocument::NotText, |text| {
                        BlobDocument::Text(ContentTraits::from_content(text.as_bytes()), None)
                    })
                }
            };
            self.blobs.insert(blob.to_owned(), known);
        }
        let keep = |bytes: Vec<u8>| {
            if !is_kept {
                self.cache.insert(key, bytes);
            }
        };
        let (looks, document) = match self.blobs.get_mut(blob)? {
            BlobDocument::Text(looks, document) => (*looks, document),
            BlobDocument::NotText => {
                keep(Vec::new());
                return None;
            }
        };
        if !own.is_authored(path, looks) {
            keep(vec![looks.to_bits()]);
            return None;
        }
        if document.is_none() {
            let text = text.map_or_else(|| read_text(repo, blob), |text| Ok(Some(text))).ok()??;
            let read = Document::read(&text, &mut self.vocabulary);
            if !has_secret(&text) {
                keep([vec![looks.to_bits()], read.pack(&self.vocabulary)].concat());
            }
            *document = Some(Arc::new(read));
        }
        document.clone()
    }

    /// Decodes a record: empty for a blob that is not text; otherwise its appearance and, if it was read, its document.
    /// Decodes the document only if it is needed, because additional words would change the numbers of all later words.
    fn unpack_record(&mut self, bytes: &[u8], path: &str, own: &mut AuthoredFilter<'_>) -> Option<BlobDocument> {
        let Some((looks, document)) = bytes.split_first() else { return Some(BlobDocument::NotText) };
        let looks = ContentTraits::from_bits(*looks)?;
        let document = match document.is_empty() || !own.is_authored(path, looks) {
            true => None,
            false => Some(Arc::new(Document::unpack(document, &mut self.vocabulary)?)),
        };
        Some(BlobDocument::Text(looks, document))
    }

    /// Writes the new records to the cache.
    pub fn close(self) {
        self.cache.close();
    }
}

/// Returns the code files of a listing that may be shown. Files that the project ignores are included only if they are
/// in `changed`, as in the tools.
pub fn list_code_files(listing: &TreeListing, changed: &HashSet<&str>) -> Vec<TreeFile> {
    let files = listing.entries.iter().filter(|entry| {
        entry.kind == EntryKind::File
            && is_code_path(&entry.path)
            && !is_secret_file(&entry.path)
            && (!entry.is_ignored || changed.contains(entry.path.as_str()))
    });
    files.map(|entry| TreeFile { path: entry.path.clone(), blob: entry.id.clone() }).collect()
}

/// Filter for files that people of this project wrote, plus explicitly requested files.
pub struct AuthoredFilter<'a> {
    judge: ReviewFilter<'a>,
    is_asked: &'a dyn Fn(&str) -> bool,
}

impl<'a> AuthoredFilter<'a> {
    /// Creates the filter for a tree.
    ///
    /// # Errors
    /// Fails if the tree cannot be read.
    pub fn from_tree(repo: &'a Repo, tree: &str, is_asked: &'a dyn Fn(&str) -> bool) -> Result<Self, GitError> {
        let judge =
            repo.review_filter(tree, &FilterSettings { max_file_bytes: MAX_FILE_BYTES, ignored_paths: Vec::new() })?;
        Ok(Self { judge, is_asked })
    }

    /// Creates a filter without git attributes.
    #[cfg(test)]
    pub fn without_attributes(is_asked: &'a dyn Fn(&str) -> bool) -> Self {
        Self { judge: ReviewFilter::without_attributes(MAX_FILE_BYTES), is_asked }
    }

    /// Keeps the files that pass the rules for names and attributes.
    pub fn retain_by_name(&mut self, mut files: Vec<TreeFile>) -> Vec<TreeFile> {
        files.retain(|file| self.is_authored_by_name(&file.path));
        files
    }

    /// Returns true if the path passes the rules for names and attributes.
    pub fn is_authored_by_name(&mut self, path: &str) -> bool {
        (self.is_asked)(path) || self.judge.left_out_reason_by_name(path).is_none()
    }

    /// Returns true if the file passes the rules for content.
    fn is_authored(&mut self, path: &str, looks: ContentTraits) -> bool {
        (self.is_asked)(path) || self.judge.left_out_reason_by_traits(path, looks).is_none()
    }
}

/// Returns true if the text contains something in the shape of a key. Secrets detected only by their variable name are
/// ordinary words.
fn has_secret(text: &str) -> bool {
    text.contains("PRIVATE KEY-----") || matches!(Mask::On.mask_key_shapes(text), Cow::Owned(_))
}

/// Reads the text of a blob; `None` if it is not text or is too large.
///
/// # Errors
/// Fails if git does not have the blob.
pub fn read_text(repo: &Repo, blob: &str) -> Result<Option<String>, GitError> {
    if repo.blob_size(blob)? > MAX_FILE_BYTES {
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
            let mut own = AuthoredFilter::without_attributes(&|path| path == "d");
            let (read, left) = DocumentStore::default().read_up_to(&repo, files.clone(), &mut own, most, &|| false);
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
        let mut own = AuthoredFilter::from_tree(&repo, &commit, &is_asked).expect("a tree");
        // Reads both orders: the same content can be generated code at one path and project code at another.
        for is_backwards in [false, true, false] {
            for folder in [None, Some(kept.path())] {
                let mut files = files.to_vec();
                if is_backwards {
                    files.reverse();
                }
                let mut library = DocumentStore::open(folder);
                let mut read: Vec<String> =
                    library.read(&repo, files, &mut own).into_iter().map(|file| file.path).collect();
                library.close();
                read.sort();
                assert_eq!(read, ["asked.rs", "b.json", "c.rs", "own/a.rs"], "{is_backwards} {folder:?}");
            }
        }
    }
}
