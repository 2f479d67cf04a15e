//! Loads the code files of a tree as documents; each blob is read once, however many trees contain it.
//!
//! - A generated file has a document only on request.
//! - A cached document equals a newly read one, including the numbers of its words.
//! - The words of documents are numbered in the order of [`DocumentStore::read`], whatever was prepared before it and on
//!   however many threads.
//! - No document holds a word of a secret: secrets are blanked before a text is read.

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
use crate::masking::blank_secrets;
use crate::masking::secret_files::is_secret_file;
use crate::parallel;
use crate::syntax::facts::is_code_path;

/// Largest file in bytes that is searched; larger files are not written by hand.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Most words read for one query, repeated words included: the words of two million lines, which take 500 MB as
/// documents.
const MAX_WORDS_PER_QUESTION: u64 = 12_000_000;
/// Largest cache in bytes: documents of three million lines.
const MAX_CACHE_BYTES: u64 = 64 << 20;
/// Number of files that are prepared between two checks whether to stop; takes 5 to 20 ms.
const FILES_PER_BATCH: usize = 32;
/// Version of the record's fields outside the document. Increase it with every change of these fields or of the
/// detection of generated files.
const RECORD_VERSION: &str = "3";

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
    /// Prepared records that are not in the cache, by blob.
    prepared: HashMap<String, Vec<u8>>,
    cache: FactStore,
}

/// Record of a blob before it is known at which path it is needed.
enum PreparedRecord {
    NotText,
    Text {
        looks: ContentTraits,
        /// Packed document.
        document: Vec<u8>,
    },
}

impl PreparedRecord {
    fn from_content(content: &[u8]) -> Self {
        let Some(text) = to_text(content) else { return Self::NotText };
        let mut vocabulary = Vocabulary::default();
        // The path is not known here: without one, most texts are secrets.
        let document = Document::read(&blank_secrets(None, &text), &mut vocabulary).pack(&vocabulary);
        let looks = ContentTraits::from_content(text.as_bytes());
        Self::Text { looks, document }
    }
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

    /// Returns the files whose records are neither in the cache nor prepared.
    pub fn find_unknown(&self, files: &[TreeFile]) -> Vec<TreeFile> {
        files.iter().filter(|file| !self.is_known(&file.blob)).cloned().collect()
    }

    fn is_known(&self, blob: &str) -> bool {
        self.blobs.contains_key(blob) || self.prepared.contains_key(blob) || self.cache.contains(record_key(blob))
    }

    /// Reads files on several threads, so that [`DocumentStore::read`] finds their records, in the order of `files`
    /// until `stopped` returns true. Returns the paths of the files that were not looked at.
    pub fn prepare(
        &mut self,
        repo: &Repo,
        files: &[TreeFile],
        own: &mut AuthoredFilter<'_>,
        stopped: &dyn Fn() -> bool,
    ) -> Vec<String> {
        for (number, batch) in files.chunks(FILES_PER_BATCH).enumerate() {
            if stopped() {
                let rest = files.iter().skip(number * FILES_PER_BATCH).filter(|file| !self.is_known(&file.blob));
                return rest.map(|file| file.path.clone()).collect();
            }
            self.prepare_batch(repo, batch, own);
        }
        Vec::new()
    }

    /// Like [`DocumentStore::prepare`], but ends once the cache is half full: more documents would replace those that
    /// contexts use. Returns false if it was stopped before that.
    pub fn prepare_within_cache(
        &mut self,
        repo: &Repo,
        files: &[TreeFile],
        own: &mut AuthoredFilter<'_>,
        stopped: &dyn Fn() -> bool,
    ) -> bool {
        for batch in files.chunks(FILES_PER_BATCH) {
            if self.cache.bytes() >= MAX_CACHE_BYTES / 2 {
                return true;
            }
            if stopped() {
                return false;
            }
            self.prepare_batch(repo, batch, own);
        }
        true
    }

    fn prepare_batch(&mut self, repo: &Repo, batch: &[TreeFile], own: &mut AuthoredFilter<'_>) {
        let read = |file: &TreeFile| read_small_blob(repo, &file.blob).ok();
        let contents: Vec<Option<Option<Vec<u8>>>> = batch.iter().map(read).collect();
        let to_record = |content: &Option<Vec<u8>>| match content {
            Some(content) => PreparedRecord::from_content(content),
            None => PreparedRecord::NotText,
        };
        let records = parallel::map(&contents, |content| content.as_ref().map(to_record));
        for (file, record) in batch.iter().zip(records) {
            // A blob that git does not have may come later.
            if let Some(record) = record {
                self.keep_prepared(file, record, own);
            }
        }
    }

    /// Keeps a prepared record in the form of [`DocumentStore::load_document`].
    fn keep_prepared(&mut self, file: &TreeFile, record: PreparedRecord, own: &mut AuthoredFilter<'_>) {
        let bytes = match record {
            PreparedRecord::NotText => Vec::new(),
            PreparedRecord::Text { looks, .. } if !own.is_authored(&file.path, looks) => vec![looks.to_bits()],
            PreparedRecord::Text { looks, document } => [vec![looks.to_bits()], document].concat(),
        };
        let key = record_key(&file.blob);
        if self.cache.has_room(bytes.len()) {
            self.cache.insert(key, bytes);
        } else {
            self.prepared.insert(file.blob.clone(), bytes);
        }
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
        let key = record_key(blob);
        let (mut text, mut is_kept) = (None, true);
        if !self.blobs.contains_key(blob) {
            let record = self.prepared.remove(blob).or_else(|| self.cache.get(key));
            let known = match record.and_then(|bytes| self.unpack_record(&bytes, path, own)) {
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
            let read = Document::read(&blank_secrets(None, &text), &mut self.vocabulary);
            keep([vec![looks.to_bits()], read.pack(&self.vocabulary)].concat());
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

fn record_key(blob: &str) -> FactKey {
    FactKey::from_parts(&["document", RECORD_VERSION, Document::VERSION, blob])
}

/// Reads the text of a blob; `None` if it is not text or is too large.
///
/// # Errors
/// Fails if git does not have the blob.
pub fn read_text(repo: &Repo, blob: &str) -> Result<Option<String>, GitError> {
    Ok(read_small_blob(repo, blob)?.and_then(|content| to_text(&content).map(Cow::into_owned)))
}

/// Reads a blob; `None` if it is too large.
fn read_small_blob(repo: &Repo, blob: &str) -> Result<Option<Vec<u8>>, GitError> {
    if repo.blob_size(blob)? > MAX_FILE_BYTES {
        return Ok(None);
    }
    repo.blob(blob).map(Some)
}

/// Decodes a text; `None` if the content is not text.
fn to_text(content: &[u8]) -> Option<Cow<'_, str>> {
    (!is_binary(content)).then(|| String::from_utf8_lossy(content))
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

    #[test]
    fn files_that_were_prepared_are_those_that_are_read() {
        const KEY: &str = concat!("AKI", "AQ3EGRVZ7TNWLXJ5D");
        let folder = tempfile::tempdir().expect("a folder");
        let git = git2::Repository::init_bare(folder.path()).expect("a repository");
        let repo = Repo::discover(folder.path()).expect("a repository");
        let file = |path: String, text: &[u8]| TreeFile { path, blob: git.blob(text).expect("a blob").to_string() };
        let code = |number: usize| format!("use other;\n\nfn own_{number}() {{\n    shared(Größe, {number});\n}}\n");
        let mut files: Vec<TreeFile> =
            (0..FILES_PER_BATCH * 2).map(|number| file(format!("{number:03}.rs"), code(number).as_bytes())).collect();
        files.push(file("key.rs".to_owned(), format!("let key = \"{KEY}\";\n").as_bytes()));
        files.push(file("made.rs".to_owned(), b"// @generated\nfn made() {}\n"));
        files.push(file("none.rs".to_owned(), b"\0"));
        files
            .push(TreeFile { path: "gone.rs".to_owned(), blob: "0123456789012345678901234567890123456789".to_owned() });
        let words = |library: &DocumentStore| -> Vec<String> {
            library.vocabulary.words().map(|word| library.vocabulary.name(word).to_owned()).collect()
        };
        let backwards: Vec<TreeFile> = files.iter().rev().cloned().collect();
        let mut own = AuthoredFilter::without_attributes(&|_| false);
        let mut plain = DocumentStore::default();
        let expected = plain.read(&repo, files.clone(), &mut own);
        assert_eq!(expected.len(), FILES_PER_BATCH * 2 + 1);
        for kept in [None, Some(folder.path().join("kept"))] {
            let mut library = DocumentStore::open(kept.as_deref());
            assert_eq!(library.find_unknown(&files).len(), files.len());
            assert_eq!(library.prepare(&repo, &backwards, &mut own, &|| false), Vec::<String>::new());
            let left: Vec<String> = library.find_unknown(&files).into_iter().map(|file| file.path).collect();
            assert_eq!(left, ["gone.rs"]);
            let read = library.read(&repo, files.clone(), &mut own);
            let count = |files: &[SourceFile]| files.iter().map(|file| file.document.counts.len()).collect::<Vec<_>>();
            assert_eq!(count(&read), count(&expected));
            assert_eq!(words(&library), words(&plain));
            assert!(!words(&library).iter().any(|word| KEY.contains(word) && word.len() > 3), "a key is no word");
            let line = |files: &[SourceFile]| {
                files.iter().map(|file| file.document.line_words(3).to_vec()).collect::<Vec<_>>()
            };
            assert_eq!(line(&read), line(&expected));
            library.close();
            let library = DocumentStore::open(kept.as_deref());
            let left: Vec<String> = library.find_unknown(&files).into_iter().map(|file| file.path).collect();
            match &kept {
                Some(folder) => {
                    assert_eq!(left, ["gone.rs"]);
                    let kept = std::fs::read_dir(folder).expect("a folder").flatten();
                    let holds_key = |bytes: Vec<u8>| memchr::memmem::find(&bytes, KEY.as_bytes()).is_some();
                    assert!(!kept.into_iter().any(|part| holds_key(std::fs::read(part.path()).unwrap_or_default())));
                }
                None => assert_eq!(left.len(), files.len()),
            }
        }
    }

    #[test]
    fn files_that_are_not_read_in_time_are_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let git = git2::Repository::init_bare(folder.path()).expect("a repository");
        let repo = Repo::discover(folder.path()).expect("a repository");
        let file = |number: usize| TreeFile {
            path: format!("{number:03}.rs"),
            blob: git.blob(format!("fn own_{number}() {{}}\n").as_bytes()).expect("a blob").to_string(),
        };
        let files: Vec<TreeFile> = (0..FILES_PER_BATCH + 2).map(file).collect();
        let looks = std::cell::Cell::new(0);
        let stopped = || looks.replace(looks.get() + 1) > 0;
        let mut own = AuthoredFilter::without_attributes(&|_| false);
        let mut library = DocumentStore::default();
        let late = library.prepare(&repo, &files, &mut own, &stopped);
        let rest: Vec<&str> = files[FILES_PER_BATCH..].iter().map(|file| file.path.as_str()).collect();
        assert_eq!(late, rest);
        let unknown = library.find_unknown(&files);
        assert_eq!(unknown.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(), rest);
        // Within the cache, too, each batch takes one look.
        assert!(!library.prepare_within_cache(&repo, &unknown, &mut own, &stopped), "stopped");
        looks.set(0);
        assert!(library.prepare_within_cache(&repo, &unknown, &mut own, &stopped));
        assert!(library.find_unknown(&files).is_empty());
    }
}
