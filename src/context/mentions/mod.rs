//! Finds the files and declarations that a task's text mentions: files by path, declarations by names that are not
//! plain words.
//!
//! - Time depends on the length of the text and on [`MAX_MENTIONS`], not on the size of the tree (apart from one pass
//!   over its paths).
//! - A diff in the text mentions nothing.
//! - A path or a name that fits many files mentions none of them.

mod pieces;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

pub(crate) use pieces::{MentionQuery, mark_files};

use super::retrieve::paths::folder;
use super::retrieve::unified_diff;
use crate::git::TreeFile;
use crate::index::document_store::SourceFile;
use crate::index::vocabulary::Vocabulary;
use crate::index::{Index, IndexCompleteness, IndexError};

/// Most paths and most names that are looked up, first ones first; most tasks have only a few.
const MAX_MENTIONS: usize = 400;
/// Most files that may declare a name. A name with more declarations is a convention (`new`, `run`) and refers to no
/// particular file.
const MAX_DECLARING_FILES: usize = 3;
/// Longest word in bytes; a longer word is data.
const MAX_WORD_BYTES: usize = 200;

/// Paths and names in a text, as written.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Mentions<'a> {
    paths: Vec<&'a str>,
    names: Vec<Mention<'a>>,
}

/// A name with its qualifier: `Store` is the qualifier in `Store::open`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Mention<'a> {
    pub name: &'a str,
    /// Qualifier; may be empty.
    pub owner: &'a str,
}

/// Files that a task mentions, and the mentioned names by declaring file.
#[derive(Debug, Default)]
pub struct MentionedFiles<'a> {
    /// Files mentioned by path.
    pub files: BTreeSet<String>,
    /// Mentions by declaring file.
    pub declarations: BTreeMap<String, Vec<Mention<'a>>>,
    /// Mentions that an index of the complete tree has resolved.
    resolved: HashSet<Mention<'a>>,
    /// For mentions in an incomplete or older index: the known files that declare the name, and those that declare its
    /// qualifier. There may be more files.
    partial: HashMap<Mention<'a>, (BTreeSet<String>, BTreeSet<String>)>,
    /// Files that probably declare a mentioned name, unless more declaring files turn up.
    candidates: BTreeSet<String>,
}

impl MentionedFiles<'_> {
    /// Iterates over the paths of all mentioned and probable files.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.iter().chain(self.declarations.keys()).chain(&self.candidates).map(String::as_str)
    }
}

impl<'a> Mentions<'a> {
    /// Collects the paths and names in a text; ignores diffs.
    pub fn parse(text: &'a str) -> Self {
        let (mut paths, mut names) = (Vec::new(), Vec::new());
        let (mut known_paths, mut known_names) = (HashSet::new(), HashSet::new());
        for line in unified_diff::lines_outside_diffs(text) {
            for (span, part) in line.split('`').enumerate() {
                let is_quoted = span % 2 == 1;
                for word in split_words(part) {
                    let path = strip_line_number(word).trim_start_matches("./");
                    if (path.contains('.') || path.contains('/'))
                        && known_paths.insert(path)
                        && paths.len() < MAX_MENTIONS
                    {
                        paths.push(path);
                    }
                    // Parts of a URL or a path are not names.
                    if !word.contains('/') {
                        let found = find_names(word, is_quoted).filter(|mention| known_names.insert(*mention));
                        names.extend(found.take(MAX_MENTIONS - names.len()));
                    }
                }
            }
            if paths.len() == MAX_MENTIONS && names.len() == MAX_MENTIONS {
                break;
            }
        }
        Self { paths, names }
    }

    /// Returns the files that are mentioned by their full path, or by an end of it (after a slash) that fits only one
    /// file.
    fn find_files(&self, tree: &[TreeFile]) -> BTreeSet<String> {
        let last = |path: &'a str| path.rsplit('/').next().unwrap_or(path);
        let mut found: HashMap<&str, Vec<&str>> = self.paths.iter().map(|path| (last(path), Vec::new())).collect();
        for file in tree {
            let name = file.path.rsplit('/').next().unwrap_or(&file.path);
            if let Some(files) = found.get_mut(name) {
                files.push(&file.path);
            }
        }
        let named = self.paths.iter().filter_map(|path| {
            let files = found.get(last(path))?;
            let is_end = |file: &&&str| file.strip_suffix(path).is_some_and(|before| before.ends_with('/'));
            let mut ends = files.iter().filter(is_end);
            let only = ends.next().filter(|_| ends.next().is_none());
            files.iter().find(|file| *file == path).or(only)
        });
        named.map(|path| (*path).to_owned()).collect()
    }

    /// Resolves mentions with the paths of a tree and the index; [`Mentions::resolve_declared`] resolves the rest.
    pub fn resolve_in_tree(&self, tree: &[TreeFile], index: Option<&Index>) -> MentionedFiles<'a> {
        let mut named = MentionedFiles { files: self.find_files(tree), ..MentionedFiles::default() };
        let Some(index) = index.filter(|_| !self.names.is_empty()) else { return named };
        let is_whole = index.completeness() == IndexCompleteness::Whole;
        let known: HashSet<&str> = tree.iter().map(|file| file.path.as_str()).collect();
        for mention in &self.names {
            let files = |name: &str| -> Result<BTreeSet<&str>, IndexError> {
                let files = index.files_that_declare(name)?.into_iter();
                let paths = files.filter_map(|file| Some(index.file(file)?.path));
                Ok(paths.filter(|path| known.contains(path)).collect())
            };
            match files(mention.name).and_then(|named| Ok((named, files(mention.owner)?))) {
                Ok((files, owners)) if is_whole => {
                    named.resolved.extend(Some(*mention).filter(|_| !files.is_empty()));
                    named.add_mention(*mention, &files, &owners);
                }
                Ok((files, owners)) => {
                    named.candidates.extend(select_files(*mention, &files, &owners).into_iter().map(str::to_owned));
                    let owned = |paths: BTreeSet<&str>| paths.into_iter().map(str::to_owned).collect();
                    named.partial.insert(*mention, (owned(files), owned(owners)));
                }
                // The next refresh rebuilds a damaged index.
                Err(error) => {
                    tracing::warn!("the index is of no use: {error}");
                    break;
                }
            }
        }
        named
    }

    /// Resolves the mentions that no complete index has resolved, by the declarations found in `files`. The files known
    /// from an incomplete index are added, because a name with many declarations mentions no file.
    pub fn resolve_declared(&self, named: &mut MentionedFiles<'a>, files: &[SourceFile], vocabulary: &Vocabulary) {
        let (settled, partly) = (std::mem::take(&mut named.resolved), std::mem::take(&mut named.partial));
        named.candidates.clear();
        let words: HashSet<_> = self
            .names
            .iter()
            .flat_map(|mention| [mention.name, mention.owner])
            .filter_map(|name| vocabulary.find(name))
            .collect();
        let mut found: HashMap<_, BTreeSet<&str>> = HashMap::new();
        for file in files.iter().filter(|_| !words.is_empty()) {
            for (_, word) in file.document.declarations.iter().filter(|(_, word)| words.contains(word)) {
                found.entry(*word).or_default().insert(&file.path);
            }
        }
        let none = BTreeSet::new();
        let of = |name: &str| vocabulary.find(name).and_then(|word| found.get(&word)).unwrap_or(&none).clone();
        for mention in self.names.iter().filter(|mention| !settled.contains(mention)) {
            let (mut files, mut owners) = (of(mention.name), of(mention.owner));
            if let Some((more_files, more_owners)) = partly.get(mention) {
                files.extend(more_files.iter().map(String::as_str));
                owners.extend(more_owners.iter().map(String::as_str));
            }
            named.add_mention(*mention, &files, &owners);
        }
    }
}

/// Selects the declaring files that a mention refers to. Prefers files that declare the qualifier or have its name.
/// Returns nothing if more than [`MAX_DECLARING_FILES`] remain.
fn select_files<'p>(mention: Mention<'_>, files: &BTreeSet<&'p str>, owners: &BTreeSet<&str>) -> Vec<&'p str> {
    let is_called = |path: &str| {
        let stem = path.rsplit('/').next().unwrap_or(path).split('.').next().unwrap_or_default();
        stem == mention.owner || folder(path).rsplit('/').next() == Some(mention.owner)
    };
    let is_meant = |path: &&str| !mention.owner.is_empty() && (owners.contains(path) || is_called(path));
    let meant: Vec<&str> = files.iter().copied().filter(is_meant).collect();
    let files = if meant.is_empty() { files.iter().copied().collect() } else { meant };
    if files.len() > MAX_DECLARING_FILES { Vec::new() } else { files }
}

impl<'a> MentionedFiles<'a> {
    /// Adds a mention; `files` declare its name, `owners` declare its qualifier.
    fn add_mention(&mut self, mention: Mention<'a>, files: &BTreeSet<&str>, owners: &BTreeSet<&str>) {
        for path in select_files(mention, files, owners) {
            let names = self.declarations.entry(path.to_owned()).or_default();
            if !names.contains(&mention) {
                names.push(mention);
            }
        }
    }
}

/// Splits text at white space, quotes, commas and semicolons.
fn split_words(text: &str) -> impl Iterator<Item = &str> {
    let is_between = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ',' | ';');
    text.split(is_between).filter(|word| (2..=MAX_WORD_BYTES).contains(&word.len()))
}

/// Strips line numbers, parentheses and punctuation from a path: `path:12`, `path:12:3`, `(path)`, `path.`.
fn strip_line_number(word: &str) -> &str {
    let is_line = |end: &str| end.bytes().all(|byte| byte.is_ascii_digit());
    let mut path = word.trim_start_matches('(').trim_end_matches(['.', ':', ')', '!', '?']);
    while let Some((before, _)) = path.rsplit_once(':').filter(|(_, end)| is_line(end)) {
        path = before;
    }
    path
}

/// Returns the names in a word: the last part of each chain such as `a::b` or `a.b()`. A plain word counts only if it
/// is quoted or called.
fn find_names(word: &str, is_quoted: bool) -> impl Iterator<Item = Mention<'_>> {
    const JOINTS: [&str; 4] = ["::", "->", ".", "#"];
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
    let mut rest = word;
    std::iter::from_fn(move || {
        loop {
            rest = rest.trim_start_matches(|c: char| !is_name(c));
            if rest.is_empty() {
                return None;
            }
            let (mut name, mut is_joined) = ("", false);
            let owner = loop {
                let (owner, end) = (name, rest.find(|c: char| !is_name(c)).unwrap_or(rest.len()));
                (name, rest) = rest.split_at(end);
                let joint = JOINTS.iter().find_map(|joint| Some((*joint, rest.strip_prefix(joint)?)));
                let Some((joint, behind)) = joint.filter(|(_, behind)| behind.starts_with(is_name)) else {
                    break owner;
                };
                is_joined |= joint != ".";
                rest = behind;
            };
            let is_called =
                rest.starts_with("()") || rest.starts_with("!(") || rest.starts_with('(') && !owner.is_empty();
            let is_meant = is_quoted || is_called || is_joined || is_compound_name(name);
            if is_meant && name.len() > 1 && !name.starts_with(|c: char| c.is_ascii_digit()) {
                return Some(Mention { name, owner });
            }
        }
    })
}

/// Returns true for `snake_case`, `camelCase` and `PascalCase` names of two words, which do not occur in prose.
fn is_compound_name(name: &str) -> bool {
    let is_snake = name.trim_matches('_').contains('_');
    let humps = name.chars().zip(name.chars().skip(1)).filter(|(a, b)| a.is_lowercase() && b.is_uppercase());
    is_snake || humps.count() > 0
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rstest::rstest;

    use super::*;
    use crate::index::document::Document;

    #[rstest]
    #[case("src/a.rs", "src/a.rs")]
    #[case("src/a.rs:12", "src/a.rs")]
    #[case("src/a.rs:12:3:", "src/a.rs")]
    #[case("src/a.rs.", "src/a.rs")]
    #[case("(src/a.rs)", "src/a.rs")]
    #[case("http://x", "http://x")]
    fn a_line_is_no_part_of_a_path(#[case] word: &str, #[case] path: &str) {
        assert_eq!(strip_line_number(word), path);
    }

    #[rstest]
    #[case::plain_words("Fix the store: open it, then total. Shelf first (see e.g. HTTP).", &[])]
    #[case::quoted("the `total` of `Shelf`", &["total", "Shelf"])]
    #[case::snake_and_camel("lookup_price and lookupPrice, PriceList; MAX_SIZE", &["lookup_price", "lookupPrice", "PriceList", "MAX_SIZE"])]
    #[case::qualified("Store::open and self.shelf.walk(road), items->count", &["Store.open", "shelf.walk", "items.count"])]
    #[case::called("total() panics, assert!(x) does not", &["total", "assert"])]
    #[case::a_path_is_none("src/price_list.py:3 and https://a.org/price_list", &[])]
    #[case::a_sentence_is_none("a.b is less. Than c", &[])]
    #[case::once("lookup_price, lookup_price", &["lookup_price"])]
    #[case::a_diff("drop_it:\n--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@\n-old_name\n+new_name\n same_name\nas_said", &["drop_it", "as_said"])]
    fn what_is_named(#[case] text: &str, #[case] expected: &[&str]) {
        let said = |mention: &Mention<'_>| match mention.owner {
            "" => mention.name.to_owned(),
            owner => format!("{owner}.{}", mention.name),
        };
        let found: Vec<String> = Mentions::parse(text).names.iter().map(said).collect();
        assert_eq!(found, expected);
    }

    #[rstest]
    #[case::whole("see src/a/mod.rs:12.", &["src/a/mod.rs"])]
    #[case::an_end("in `a/mod.rs`", &["src/a/mod.rs"])]
    #[case::a_name("store.rs", &["src/store.rs"])]
    #[case::of_many("mod.rs", &[])]
    #[case::not_behind_a_slash("ore.rs", &[])]
    #[case::at_the_root("./top.rs and src/top.rs", &["src/top.rs", "top.rs"])]
    fn files_are_named_by_one_path(#[case] text: &str, #[case] expected: &[&str]) {
        let tree = ["src/a/mod.rs", "src/b/mod.rs", "src/store.rs", "src/top.rs", "top.rs"];
        let tree = tree.map(|path| TreeFile { path: path.to_owned(), blob: String::new() });
        assert_eq!(Mentions::parse(text).find_files(&tree).iter().map(String::as_str).collect::<Vec<_>>(), expected);
    }

    #[rstest]
    #[case::few("", &["a.rs", "b.rs", "c.rs"], &[], &["a.rs", "b.rs", "c.rs"])]
    #[case::a_convention("", &["a.rs", "b.rs", "c.rs", "d.rs"], &[], &[])]
    #[case::of_its_owner("Store", &["a.rs", "b.rs", "c.rs", "d.rs"], &["d.rs", "e.rs"], &["d.rs"])]
    #[case::of_its_module("b", &["a.rs", "b.rs", "x/b/c.rs", "d.rs"], &[], &["b.rs", "x/b/c.rs"])]
    #[case::of_another_owner("Shelf", &["a.rs"], &["e.rs"], &["a.rs"])]
    fn a_name_that_many_declare_names_none(
        #[case] owner: &str,
        #[case] files: &[&str],
        #[case] owners: &[&str],
        #[case] expected: &[&str],
    ) {
        let mut named = MentionedFiles::default();
        let (files, owners) = (files.iter().copied().collect(), owners.iter().copied().collect());
        named.add_mention(Mention { name: "open", owner }, &files, &owners);
        assert_eq!(named.paths().collect::<Vec<_>>(), expected);
    }

    #[rstest]
    #[case::few(&["a.rs"], &["b.rs", "c.rs"], &["a.rs", "b.rs", "c.rs"])]
    #[case::the_same(&["a.rs", "b.rs"], &["a.rs", "b.rs"], &["a.rs", "b.rs"])]
    #[case::a_convention(&["a.rs", "b.rs"], &["c.rs", "d.rs"], &[])]
    #[case::of_no_file_that_is_read(&["a.rs"], &[], &["a.rs"])]
    fn what_is_partly_known_counts_with_what_is_read(
        #[case] partly: &[&str],
        #[case] read: &[&str],
        #[case] expected: &[&str],
    ) {
        let mentions = Mentions::parse("fix `open`");
        let owned = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect::<BTreeSet<String>>();
        let mut named = MentionedFiles { candidates: owned(partly), ..MentionedFiles::default() };
        named.partial.insert(mentions.names[0], (owned(partly), BTreeSet::new()));
        assert_eq!(named.paths().collect::<Vec<_>>(), partly, "they are looked at");
        let mut vocabulary = Vocabulary::default();
        let mut file = |path: &&str| SourceFile {
            path: (*path).to_owned(),
            blob: String::new(),
            document: Arc::new(Document::read("fn open() {}\n", &mut vocabulary)),
        };
        let files: Vec<SourceFile> = read.iter().map(&mut file).collect();
        mentions.resolve_declared(&mut named, &files, &vocabulary);
        assert_eq!(named.paths().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn of_a_long_text_the_first_names_are_looked_up() {
        let text: String = (0..100_000).map(|number| format!("name_{number} a/file_{number}.rs ")).collect();
        let found = Mentions::parse(&text);
        assert_eq!((found.names.len(), found.paths.len()), (MAX_MENTIONS, MAX_MENTIONS));
        assert_eq!((found.names[0].name, found.paths[MAX_MENTIONS - 1]), ("name_0", "a/file_399.rs"));
    }
}
