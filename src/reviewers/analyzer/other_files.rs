//! The files around a checked file, for questions that one file cannot answer: who else mentions a name?
//!
//! - Files are read only when a check asks, and at most [`MAX_BYTES_READ`] together, so that an ordinary review stays as
//!   quick as without.
//! - The order of the paths decides which files are read first, not the time: the same files give the same answer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::smells::duplicate_code::search::path_distance;
use crate::syntax::language::Language;
use crate::syntax::occurrences::has_word;

/// Maximum number of bytes that one review reads of other files; about 0.05 s of work.
const MAX_BYTES_READ: usize = 4 << 20;

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
    read: Mutex<ReadFiles>,
}

#[derive(Default)]
struct ReadFiles {
    /// Sorted; `None` before the first question.
    paths: Option<Arc<[String]>>,
    texts: HashMap<String, Option<Arc<[u8]>>>,
    bytes: usize,
}

impl OtherFiles {
    /// Creates the access to the files of a source, which are read when they are needed.
    pub fn new(source: Box<dyn FileSource>) -> Self {
        Self { source, read: Mutex::default() }
    }

    /// Returns the paths of all files, sorted.
    pub fn paths(&self) -> Arc<[String]> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let list = || {
            let mut paths = self.source.paths();
            paths.sort_unstable();
            paths.into()
        };
        Arc::clone(read.paths.get_or_insert_with(list))
    }

    /// Returns the paths of the other files of a language, those nearest to a path first.
    pub fn paths_near(&self, path: &str, language: Language) -> Vec<String> {
        let is_asked = |other: &&String| other.as_str() != path && Language::detect(other, b"") == Some(language);
        let mut near: Vec<(usize, String)> =
            self.paths().iter().filter(is_asked).map(|other| (path_distance(path, other), other.clone())).collect();
        near.sort();
        near.into_iter().map(|(_, path)| path).collect()
    }

    /// Returns the content of a file; `None` if it cannot be read, or if enough was read already.
    pub fn text(&self, path: &str) -> Option<Arc<[u8]>> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(text) = read.texts.get(path) {
            return text.clone();
        }
        let text: Option<Arc<[u8]>> =
            if read.bytes < MAX_BYTES_READ { self.source.read(path).map(Arc::from) } else { None };
        // Opening a file has a cost, however small the file is.
        read.bytes += text.as_ref().map_or(0, |text| text.len()) + 1024;
        read.texts.insert(path.to_owned(), text.clone());
        text
    }

    /// Returns whether a file of a folder, or of the folders in it, mentions a word together with all of the texts. A file
    /// that cannot be read may do so. The file `own` does not count.
    pub fn is_mentioned_below(&self, folder: &str, extension: &str, own: &str, word: &str, texts: &[&str]) -> bool {
        let paths = self.paths();
        let first = paths.partition_point(|path| path.as_str() < folder);
        let below = paths[first..].iter().take_while(|path| path.starts_with(folder));
        let mentions = |text: &[u8]| {
            texts.iter().all(|part| memchr::memmem::find(text, part.as_bytes()).is_some())
                && memchr::memmem::find(text, word.as_bytes()).is_some()
                && has_word(text, word)
        };
        below
            .filter(|path| path.ends_with(extension) && *path != own)
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

    #[test]
    fn a_folder_is_searched_for_a_word_until_enough_was_read() {
        let files =
            OtherFiles::new(Box::new(SampleFiles(vec![("a/b.rs", 0), ("a/c/d.rs", 0), ("a.rs", 0), ("b/c.rs", 0)])));
        let is_mentioned = |folder: &str, word: &str| files.is_mentioned_below(folder, ".rs", "", word, &["super::"]);
        assert_eq!(["a/", "a/c/", "b/", "c/"].map(|folder| is_mentioned(folder, "load")), [true, true, true, false]);
        assert!(!is_mentioned("a/", "loa") && !files.is_mentioned_below("a/", ".py", "", "load", &[]));
        let large = OtherFiles::new(Box::new(SampleFiles(vec![("a/b.rs", MAX_BYTES_READ), ("b/c.rs", 0)])));
        assert!(!large.is_mentioned_below("a/", ".rs", "", "other", &[]));
        assert!(large.is_mentioned_below("b/", ".rs", "", "other", &[]), "a file that is not read may mention it");
    }
}
