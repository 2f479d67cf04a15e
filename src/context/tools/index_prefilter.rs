//! Uses the index to find files that a search need not read because they cannot match.
//!
//! - A file is skipped only if reading it would find nothing. If the index cannot tell, the file is read.

use std::collections::HashSet;

use crate::git::TreeListingEntry;
use crate::index::{FileId, Index, IndexError, split_words};

/// Files of an index that may contain the search target.
pub struct IndexPrefilter<'a> {
    index: &'a Index,
    files: HashSet<FileId>,
    target: PrefilterTarget,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PrefilterTarget {
    Text,
    /// A name in a syntax tree. For a file without a tree the index does not have all names.
    Name,
}

impl<'a> IndexPrefilter<'a> {
    /// Selects the files that may contain `text`; `None` if the index cannot narrow the search.
    pub fn for_text(index: Option<&'a Index>, text: &str) -> Option<Self> {
        let index = index?;
        let wanted = whole_words(text);
        if wanted.is_empty() {
            return None;
        }
        let found = |word: &String| -> Result<HashSet<FileId>, IndexError> {
            Ok(index.files_with(word)?.into_iter().collect())
        };
        let found: Result<Vec<HashSet<FileId>>, IndexError> = wanted.iter().map(found).collect();
        let files =
            warn_if_damaged(found)?.into_iter().reduce(|all, more| all.intersection(&more).copied().collect())?;
        Some(Self { index, files, target: PrefilterTarget::Text })
    }

    /// Selects the files that may define or use `name`; `None` if the index cannot narrow the search.
    pub fn for_name(index: Option<&'a Index>, name: &str) -> Option<Self> {
        let index = index?;
        // The index stores other names in another form.
        let is_plain = (2..=64).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            && !name.starts_with(|first: char| first.is_ascii_digit());
        if !is_plain {
            return None;
        }
        let found = index.files_that_declare(name).and_then(|mut found| {
            found.extend(index.files_that_use(name)?);
            Ok(found)
        });
        Some(Self { index, files: warn_if_damaged(found)?.into_iter().collect(), target: PrefilterTarget::Name })
    }

    /// Returns true if the file must be read.
    pub fn may_match(&self, entry: &TreeListingEntry) -> bool {
        let known = self.index.file_at(&entry.path).filter(|file| file.is_blob(&entry.id));
        known.is_none_or(|file| {
            self.files.contains(&file.id) || (self.target == PrefilterTarget::Name && !file.has_syntax_tree)
        })
    }
}

/// Logs an index error and returns `None`; the next refresh rebuilds a damaged index.
fn warn_if_damaged<T>(found: Result<T, IndexError>) -> Option<T> {
    found.inspect_err(|error| tracing::warn!(%error, "a search goes on without the index")).ok()
}

/// Returns the words that any text containing `text` must have. Words that touch an end of `text` are left out, because
/// they may be parts of longer words.
fn whole_words(text: &str) -> Vec<String> {
    let is_end = |c: char| c.is_ascii() && !c.is_ascii_alphanumeric() && c != '_';
    let (Some(first), Some(last)) = (text.find(is_end), text.rfind(is_end)) else { return Vec::new() };
    split_words(text.get(first..last).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_that_do_not_touch_an_end_are_sure_to_be_there() {
        for (text, expected) in [
            ("parse", ""),
            ("fn parse(", "parse"),
            ("fn parseHttp_request(x", "parse http request"),
            ("a parse", ""),
            (" parse", ""),
            (" parse ", "parse"),
            ("x.größe(", "größe"),
            ("—parse—", ""),
            ("x = 1;", ""),
            ("", ""),
            ("(", ""),
        ] {
            assert_eq!(whole_words(text).join(" "), expected, "{text:?}");
        }
    }
}
