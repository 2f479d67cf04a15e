//! The files around a checked file, for questions that one file cannot answer: who else mentions a name?
//!
//! - Files are read only when a check asks, and at most [`MAX_BYTES_READ`] for one checked file, so that an ordinary review
//!   stays as quick as without.
//! - The order of the paths decides which files are read, and neither time nor the other checked files: the same files
//!   give the same answer.
//! - Texts and syntax trees are kept for the next checked file, because neighbours have the same neighbours.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::WorkLimit;
use super::smells::duplicate_code::search::path_distance;
use crate::syntax::ParseFailure;
use crate::syntax::facts::is_test_path;
use crate::syntax::language::Language;
use crate::syntax::occurrences::has_word;
use crate::syntax::source::{Node, ParsedFile, Parsers};

/// Maximum number of bytes of other files that are read for one checked file; about 0.05 s of work.
const MAX_BYTES_READ: usize = 4 << 20;
/// Bytes that a file counts in addition to its length: opening a file has a cost, however small it is.
const BYTES_PER_FILE: usize = 1024;
/// Maximum number of bytes of texts that are kept.
const MAX_KEPT_TEXT_BYTES: usize = 16 << 20;
/// Maximum number of bytes of syntax trees that are kept: those of about 6 MB of code.
const MAX_KEPT_TREE_BYTES: usize = 64 << 20;

/// Source of the files around a checked file.
pub trait FileSource: Send + Sync {
    /// Returns the paths of all files, written like the path of the checked file.
    fn paths(&self) -> Vec<String>;

    /// Returns the content of a file; `None` if it cannot be read.
    fn read(&self, path: &str) -> Option<Vec<u8>>;
}

/// The files around the checked files of one review, with those that were read.
pub struct OtherFiles {
    source: Box<dyn FileSource>,
    /// Sorted.
    paths: OnceLock<Vec<String>>,
    /// Files of each language that are no test code, by their indices in `paths`.
    by_language: Mutex<HashMap<Language, Arc<[u32]>>>,
    texts: Mutex<RecentValues<Option<Arc<[u8]>>>>,
    trees: Mutex<RecentValues<KeptTree>>,
}

/// Syntax tree of a file as it was read.
struct KeptTree {
    text: Arc<[u8]>,
    language: Language,
    nodes: Vec<Node>,
}

/// Values by path, of which those that were not asked for recently are dropped.
///
/// The values are in two generations. When the younger one is full, it becomes the older one, and the older one is
/// dropped.
struct RecentValues<T> {
    young: HashMap<String, T>,
    old: HashMap<String, T>,
    young_bytes: usize,
    old_bytes: usize,
    max_bytes: usize,
}

impl<T> RecentValues<T> {
    /// Creates an empty store that keeps values of up to `max_bytes` bytes together.
    fn new(max_bytes: usize) -> Self {
        Self { young: HashMap::new(), old: HashMap::new(), young_bytes: 0, old_bytes: 0, max_bytes }
    }

    /// Takes a value out of the store.
    fn take(&mut self, path: &str, size_of: impl Fn(&T) -> usize) -> Option<T> {
        let (value, bytes) = match self.young.remove(path) {
            Some(value) => (value, &mut self.young_bytes),
            None => (self.old.remove(path)?, &mut self.old_bytes),
        };
        *bytes = bytes.saturating_sub(size_of(&value));
        Some(value)
    }

    /// Returns a value, which is kept longer because of that.
    fn get(&mut self, path: &str, size_of: impl Fn(&T) -> usize) -> Option<T>
    where
        T: Clone,
    {
        if let Some(value) = self.young.get(path) {
            return Some(value.clone());
        }
        let value = self.take(path, &size_of)?;
        self.insert(path, value.clone(), size_of(&value));
        Some(value)
    }

    /// Keeps a value that was asked for.
    fn insert(&mut self, path: &str, value: T, bytes: usize) {
        let max_young = self.max_bytes / 2;
        if bytes > max_young {
            return;
        }
        if self.young_bytes + bytes > max_young {
            self.old = std::mem::take(&mut self.young);
            self.old_bytes = std::mem::take(&mut self.young_bytes);
        }
        self.young_bytes += bytes;
        self.young.insert(path.to_owned(), value);
    }

    /// Keeps a value that may be asked for, if there is room for it.
    fn insert_spare(&mut self, path: &str, bytes: usize, build: impl FnOnce() -> T) {
        if self.old_bytes + bytes <= self.max_bytes / 2 && !self.young.contains_key(path) {
            self.old_bytes += bytes;
            self.old.insert(path.to_owned(), build());
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl OtherFiles {
    /// Creates the access to the files of a source, which are read when they are needed.
    pub fn new(source: Box<dyn FileSource>) -> Self {
        Self {
            source,
            paths: OnceLock::new(),
            by_language: Mutex::default(),
            texts: Mutex::new(RecentValues::new(MAX_KEPT_TEXT_BYTES)),
            trees: Mutex::new(RecentValues::new(MAX_KEPT_TREE_BYTES)),
        }
    }

    /// Parses a file. Takes the tree of an earlier parse of the same text if it was kept.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Parsers::parse`].
    pub fn parse<'a>(
        &self,
        parsers: &mut Parsers,
        path: &'a str,
        language: Language,
        text: &'a [u8],
    ) -> Result<ParsedFile<'a>, ParseFailure> {
        match self.take_nodes(path, language, text) {
            Some(nodes) => Ok(ParsedFile::from_nodes(path, language, text, nodes)),
            None => parsers.parse(path, language, text),
        }
    }

    /// Keeps the tree of a checked file for questions of other files, if there is room for it.
    pub fn keep_checked(&self, source: ParsedFile<'_>) {
        let ParsedFile { path, language, text, nodes, .. } = source;
        lock(&self.trees).insert_spare(path, count_tree_bytes(text, &nodes), || KeptTree {
            text: text.into(),
            language,
            nodes,
        });
    }

    /// Takes the nodes of an earlier parse of the same text. Another thread parses the text again meanwhile.
    fn take_nodes(&self, path: &str, language: Language, text: &[u8]) -> Option<Vec<Node>> {
        let tree = lock(&self.trees).take(path, KeptTree::size)?;
        (tree.language == language && *tree.text == *text).then_some(tree.nodes)
    }

    /// Returns the paths of all files, sorted.
    fn paths(&self) -> &[String] {
        self.paths.get_or_init(|| {
            let mut paths = self.source.paths();
            paths.sort_unstable();
            paths
        })
    }

    /// Returns the files of a language that are no test code, by their indices.
    fn paths_of(&self, language: Language) -> Arc<[u32]> {
        if let Some(known) = lock(&self.by_language).get(&language) {
            return Arc::clone(known);
        }
        let is_one = |path: &str| Language::detect(path, b"") == Some(language) && !is_test_path(path);
        let all = (0u32..).zip(self.paths());
        let found: Arc<[u32]> = all.filter(|(_, path)| is_one(path)).map(|(index, _)| index).collect();
        lock(&self.by_language).insert(language, Arc::clone(&found));
        found
    }

    /// Returns the content of a file; `None` if it cannot be read. Two threads may read the same file at once.
    fn text(&self, path: &str) -> Option<Arc<[u8]>> {
        let size_of = |text: &Option<Arc<[u8]>>| count_read_bytes(text.as_deref());
        if let Some(known) = lock(&self.texts).get(path, size_of) {
            return known;
        }
        let text: Option<Arc<[u8]>> = self.source.read(path).map(Arc::from);
        lock(&self.texts).insert(path, text.clone(), size_of(&text));
        text
    }
}

impl KeptTree {
    fn size(&self) -> usize {
        count_tree_bytes(&self.text, &self.nodes)
    }
}

fn count_tree_bytes(text: &[u8], nodes: &[Node]) -> usize {
    text.len() + std::mem::size_of_val(nodes)
}

fn count_read_bytes(text: Option<&[u8]>) -> usize {
    text.map_or(0, <[u8]>::len) + BYTES_PER_FILE
}

/// The files around one checked file.
pub struct NeighbourFiles<'f> {
    files: &'f OtherFiles,
    /// Path of the checked file.
    own: &'f str,
    parsers: RefCell<Parsers>,
    work_limit: WorkLimit,
    /// Paths that the checks of this file asked for, and the bytes of these files.
    asked: RefCell<HashSet<String>>,
    bytes: Cell<usize>,
}

impl<'f> NeighbourFiles<'f> {
    /// Creates the view of the files from a checked file. `work_limit` bounds the work on each of the other files.
    pub fn new(files: &'f OtherFiles, own: &'f str, parsers: Parsers, work_limit: WorkLimit) -> Self {
        let parsers = RefCell::new(parsers);
        Self { files, own, parsers, work_limit, asked: RefCell::default(), bytes: Cell::new(0) }
    }

    /// Gives the parsers back.
    pub fn into_parsers(self) -> Parsers {
        self.parsers.into_inner()
    }

    /// Returns the paths of the other files of a language, without test code, those nearest to the checked file first.
    pub fn paths_of(&self, language: Language) -> Vec<&'f str> {
        let all = self.files.paths();
        let found = self.files.paths_of(language);
        let paths = found.iter().filter_map(|index| all.get(*index as usize)).map(String::as_str);
        let mut near: Vec<(usize, &str)> =
            paths.filter(|path| *path != self.own).map(|path| (path_distance(self.own, path), path)).collect();
        // The paths are sorted already.
        near.sort_by_key(|(distance, _)| *distance);
        near.into_iter().map(|(_, path)| path).collect()
    }

    /// Returns the content of a file; `None` if it cannot be read, or if enough was read for this checked file.
    pub fn text(&self, path: &str) -> Option<Arc<[u8]>> {
        let is_asked = self.asked.borrow().contains(path);
        if !is_asked && self.bytes.get() >= MAX_BYTES_READ {
            return None;
        }
        let text = self.files.text(path);
        if !is_asked {
            self.bytes.set(self.bytes.get() + count_read_bytes(text.as_deref()));
            self.asked.borrow_mut().insert(path.to_owned());
        }
        text
    }

    /// Parses another file and reads it with `count`. Returns `None` if the file cannot be parsed, or takes more work than
    /// a file of its size may take.
    pub fn read_parsed<T>(
        &self,
        path: &str,
        language: Language,
        text: &Arc<[u8]>,
        count: impl FnOnce(&ParsedFile<'_>) -> T,
    ) -> Option<T> {
        let mut other = self.files.parse(&mut self.parsers.borrow_mut(), path, language, text).ok()?;
        other.limit_work(self.work_limit.budget(other.nodes.len(), text.len()));
        let counted = count(&other);
        let is_complete = other.work().is_left();
        let tree = KeptTree { text: Arc::clone(text), language, nodes: other.nodes };
        let bytes = tree.size();
        lock(&self.files.trees).insert(path, tree, bytes);
        is_complete.then_some(counted)
    }

    /// Returns whether a file of a folder, or of the folders in it, mentions a word together with all of the texts. A file
    /// that cannot be read may do so. The checked file does not count.
    pub fn is_mentioned_below(&self, folder: &str, extension: &str, word: &str, texts: &[&str]) -> bool {
        let paths = self.files.paths();
        let first = paths.partition_point(|path| path.as_str() < folder);
        let below = paths[first..].iter().take_while(|path| path.starts_with(folder));
        let mentions = |text: &[u8]| {
            texts.iter().all(|part| memchr::memmem::find(text, part.as_bytes()).is_some()) && has_word(text, word)
        };
        below
            .filter(|path| path.ends_with(extension) && *path != self.own)
            .any(|path| self.text(path).is_none_or(|text| mentions(&text)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct SampleFiles(Vec<(&'static str, usize)>);

    impl FileSource for SampleFiles {
        fn paths(&self) -> Vec<String> {
            self.0.iter().map(|(path, _)| (*path).to_owned()).collect()
        }

        fn read(&self, path: &str) -> Option<Vec<u8>> {
            let (_, bytes) = self.0.iter().find(|(known, _)| *known == path)?;
            Some(format!("use super::load;{}", " ".repeat(*bytes)).into_bytes())
        }
    }

    fn sample_files(files: Vec<(&'static str, usize)>) -> OtherFiles {
        OtherFiles::new(Box::new(SampleFiles(files)))
    }

    fn view(files: &OtherFiles) -> NeighbourFiles<'_> {
        NeighbourFiles::new(files, "", Parsers::default(), WorkLimit::default())
    }

    fn is_mentioned(files: &OtherFiles, folder: &str, word: &str) -> bool {
        view(files).is_mentioned_below(folder, ".rs", word, &["super::"])
    }

    #[test]
    fn a_folder_is_searched_for_a_word_until_enough_was_read() {
        let files = sample_files(vec![("a/b.rs", 0), ("a/c/d.rs", 0), ("a.rs", 0), ("b/c.rs", 0)]);
        let mentions_load = ["a/", "a/c/", "b/", "c/"].map(|folder| is_mentioned(&files, folder, "load"));
        assert_eq!(mentions_load, [true, true, true, false]);
        assert!(!is_mentioned(&files, "a/", "loa"));
        assert!(!view(&files).is_mentioned_below("a/", ".py", "load", &[]));
        let large = sample_files(vec![("a/b.rs", MAX_BYTES_READ), ("a/c.rs", 0)]);
        assert!(is_mentioned(&large, "a/", "other"), "a file that is not read may mention it");
    }

    #[test]
    fn what_one_checked_file_reads_leaves_nothing_less_for_the_next() {
        let files = sample_files(vec![("a/b.rs", MAX_BYTES_READ), ("b/c.rs", 0)]);
        for _ in 0..2 {
            let folders = ["a/", "b/"].map(|folder| is_mentioned(&files, folder, "other"));
            assert_eq!(folders, [false, false]);
        }
        let near = view(&files);
        let is_read = ["a/b.rs", "b/c.rs", "a/b.rs"].map(|path| near.text(path).is_some());
        assert_eq!(is_read, [true, false, true], "a file counts once, whether it is kept or not");
    }

    #[test]
    fn values_that_were_not_asked_for_are_dropped() {
        let mut values: RecentValues<u32> = RecentValues::new(4);
        values.insert_spare("spare", 1, || 0);
        for (path, value) in [("a", 1), ("b", 2), ("c", 3)] {
            values.insert(path, value, 1);
        }
        assert_eq!(["spare", "a", "b"].map(|path| values.get(path, |_| 1)), [None, Some(1), Some(2)]);
        values.insert("d", 4, 1);
        values.insert("e", 5, 1);
        assert_eq!(["a", "b", "c"].map(|path| values.get(path, |_| 1)), [None, Some(2), None]);
    }

    #[test]
    fn the_tree_of_another_text_is_not_used() {
        let files = sample_files(Vec::new());
        let mut parsers = Parsers::default();
        let mut count_nodes = |text: &[u8]| {
            let source = files.parse(&mut parsers, "a.rs", Language::Rust, text).expect("parses");
            let count = source.nodes.len();
            files.keep_checked(source);
            count
        };
        let [short, long, again] = [&b"fn a() {}"[..], b"fn a() { b(1) }", b"fn a() {}"].map(&mut count_nodes);
        assert!(0 < short && short < long, "{short} {long}");
        assert_eq!(short, again);
    }
}
