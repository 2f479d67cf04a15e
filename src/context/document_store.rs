//! The code of a tree as documents, each read once however many trees have it.
//!
//! Invariants: what a program wrote has a document only where it is asked for; one that was kept is the same as one that is
//! read, down to the numbers of its words; of a file with a key in it no document is kept, since a key may be a word.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use super::disk_cache::{CacheKey, DiskCache};
use super::mask::Mask;
use super::retrieve::SourceFile;
use super::retrieve::document::Document;
use super::retrieve::paths::is_code;
use super::retrieve::words::Vocabulary;
use super::secret_files::is_secret_file;
use super::text::is_binary;
use crate::git::{ContentTraits, EntryKind, FilterSettings, GitError, Repo, ReviewFilter, TreeFile, TreeListing};

/// Larger files are not searched, in bytes: no person wrote them.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Words that are read for one question, repeated ones included: those of two million lines, 500 MB as documents.
const MAX_WORDS_PER_QUESTION: u64 = 12_000_000;
/// Bytes of kept documents: those of three million lines.
const MAX_CACHE_BYTES: u64 = 64 << 20;
/// What a record holds besides the document; to be raised with any change of it, and of what looks generated.
const RECORD_VERSION: &str = "2";

/// Documents by blob, and the words in them.
#[derive(Debug, Default)]
pub struct DocumentStore {
    pub vocabulary: Vocabulary,
    blobs: HashMap<String, BlobDocument>,
    cache: DiskCache,
}

/// What is known of a file's content.
#[derive(Debug)]
enum BlobDocument {
    /// It is no text, or too large.
    NotText,
    /// What it looks like, and what is in it where somebody asked for that.
    Text(ContentTraits, Option<Arc<Document>>),
}

impl DocumentStore {
    /// With the documents that are kept in a folder.
    pub fn open(folder: Option<&Path>) -> Self {
        Self { cache: DiskCache::open(folder, "documents", MAX_CACHE_BYTES), ..Self::default() }
    }

    /// The documents of files; those that are no text, too large, not to be had, or by their content nobody's `own` are
    /// left away.
    pub fn read(&mut self, repo: &Repo, files: Vec<TreeFile>, own: &mut AuthoredFilter<'_>) -> Vec<SourceFile> {
        let read = files.into_iter().filter_map(|TreeFile { path, blob }| {
            let document = self.load_document(repo, &path, &blob, own)?;
            Some(SourceFile { path, blob, document }).filter(|file| file.document.line_count() > 0)
        });
        read.collect()
    }

    /// As [`Library::read`], but no more files than there is memory for, those that are asked for first; and how many were
    /// left away for that, or because it was cancelled.
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
        let key = CacheKey::from_parts(&["document", RECORD_VERSION, Document::VERSION, blob]);
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

    /// A record: nothing of what is no text; else what it looks like, and the document where one was read. Of that only
    /// what is needed: words that are nobody's would change the numbers of all that follow.
    fn unpack_record(&mut self, bytes: &[u8], path: &str, own: &mut AuthoredFilter<'_>) -> Option<BlobDocument> {
        let Some((looks, document)) = bytes.split_first() else { return Some(BlobDocument::NotText) };
        let looks = ContentTraits::from_bits(*looks)?;
        let document = match document.is_empty() || !own.is_authored(path, looks) {
            true => None,
            false => Some(Arc::new(Document::unpack(document, &mut self.vocabulary)?)),
        };
        Some(BlobDocument::Text(looks, document))
    }

    /// Keeps what was read for the next question.
    pub fn close(self) {
        self.cache.close();
    }
}

/// The files of a listing that are code and may be shown: what the project's own rules ignore only where it is changed,
/// as in the tools.
pub fn list_code_files(listing: &TreeListing, changed: &HashSet<&str>) -> Vec<TreeFile> {
    let files = listing.entries.iter().filter(|entry| {
        entry.kind == EntryKind::File
            && is_code(&entry.path)
            && !is_secret_file(&entry.path)
            && (!entry.is_ignored || changed.contains(entry.path.as_str()))
    });
    files.map(|entry| TreeFile { path: entry.path.clone(), blob: entry.id.clone() }).collect()
}

/// Which files of a tree people of this project wrote; and those that are asked for, whoever wrote them.
pub struct AuthoredFilter<'a> {
    judge: ReviewFilter<'a>,
    is_asked: &'a dyn Fn(&str) -> bool,
}

impl<'a> AuthoredFilter<'a> {
    /// # Errors
    /// A tree that cannot be read.
    pub fn from_tree(repo: &'a Repo, tree: &str, is_asked: &'a dyn Fn(&str) -> bool) -> Result<Self, GitError> {
        let judge =
            repo.review_filter(tree, &FilterSettings { max_file_bytes: MAX_FILE_BYTES, ignored_paths: Vec::new() })?;
        Ok(Self { judge, is_asked })
    }

    /// By what files alone tell, without attributes.
    #[cfg(test)]
    pub fn without_attributes(is_asked: &'a dyn Fn(&str) -> bool) -> Self {
        Self { judge: ReviewFilter::without_attributes(MAX_FILE_BYTES), is_asked }
    }

    /// Those of some files that are own by all that names and attributes tell.
    pub fn retain_by_name(&mut self, mut files: Vec<TreeFile>) -> Vec<TreeFile> {
        files.retain(|file| self.is_authored_by_name(&file.path));
        files
    }

    /// Whether one is own by all that names and attributes tell.
    pub fn is_authored_by_name(&mut self, path: &str) -> bool {
        (self.is_asked)(path) || self.judge.left_out_reason_by_name(path).is_none()
    }

    /// Whether one is own by what its content looks like.
    fn is_authored(&mut self, path: &str, looks: ContentTraits) -> bool {
        (self.is_asked)(path) || self.judge.left_out_reason_by_traits(path, looks).is_none()
    }
}

/// Whether something in a text has the shape of a key. What is one by its name alone is an ordinary word.
fn has_secret(text: &str) -> bool {
    text.contains("PRIVATE KEY-----") || matches!(Mask::On.mask_key_shapes(text), Cow::Owned(_))
}

/// A file's text; `None` of one that is no text or too large.
///
/// # Errors
/// A blob that git does not have here.
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
        // One after the other and the other way round: the same content is another's by its path alone.
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
