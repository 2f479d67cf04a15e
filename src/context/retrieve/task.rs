//! The change whose context is searched, and the query words derived from it.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::git::Hunk;
use crate::index::document::Document;
use crate::index::history::Touch;
use crate::index::vocabulary::{Vocabulary, Word, WordMap};
use crate::index::words::{identifiers, split_identifier};

/// Most words per role; the rarest are kept.
const MAX_WORDS_PER_ROLE: usize = 200;
/// Lines on each side of a hunk whose words count as near.
const CONTEXT_LINES: u32 = 4;

/// Most given files that the ranking uses. With more files, related files can no longer be told from unrelated files.
pub const MAX_GIVEN_FILES: usize = 200;

/// Removed and added lines of a hunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenFileHunk {
    /// Changed lines; the old side counts the lines of the searched tree.
    pub range: Hunk,
    /// Removed lines in their order.
    pub removed: Vec<String>,
    /// Added lines in their order.
    pub added: Vec<String>,
}

/// File that the change contains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenFile {
    /// Path relative to the repository root; an old path if the tree no longer has the file.
    pub path: String,
    /// Kind of the change.
    pub touch: Touch,
    /// Ordered by line of the searched tree.
    pub hunks: Vec<GivenFileHunk>,
}

/// Position that the task is about, without a change there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Focus {
    /// Path relative to the repository root.
    pub path: String,
    /// 1-based line; `None` for the whole file.
    pub line: Option<u32>,
}

/// Query of the ranking: changed files, focus positions and text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RetrievalTask {
    /// Changed files.
    pub given: Vec<GivenFile>,
    /// Positions without a change.
    pub focus: Vec<Focus>,
    /// Task in words; may be empty.
    pub text: String,
}

impl RetrievalTask {
    /// Returns the given paths; the ranking does not search them.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        let given = self.given.iter().map(|given| given.path.as_str());
        given.chain(self.focus.iter().map(|focus| focus.path.as_str()))
    }

    /// Returns the given paths, sorted and without duplicates.
    pub(super) fn sorted_paths(&self) -> Vec<&str> {
        let mut paths: Vec<&str> = self.paths().collect();
        paths.sort_unstable();
        paths.dedup();
        paths
    }

    /// Keeps the given files that change most, up to [`MAX_GIVEN_FILES`]. Returns the task and the paths of the dropped
    /// files, which are not searched either.
    pub fn split_leading(mut self) -> (Self, HashSet<String>) {
        if self.given.len() <= MAX_GIVEN_FILES {
            return (self, HashSet::new());
        }
        let lines =
            |given: &GivenFile| -> usize { given.hunks.iter().map(|hunk| hunk.removed.len() + hunk.added.len()).sum() };
        self.given.sort_by_cached_key(|given| (Reverse(lines(given)), given.path.clone()));
        let others = self.given.split_off(MAX_GIVEN_FILES);
        let kept: HashSet<&str> = self.paths().collect();
        let others = others.into_iter().map(|given| given.path).filter(|path| !kept.contains(path.as_str())).collect();
        (self, others)
    }
}

/// Role of a word in the task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WordRole {
    /// Removed, and not added again.
    Removed,
    /// Added, and not there before.
    Added,
    /// In changed lines on both sides.
    Changed,
    /// In the lines around changes.
    Near,
    /// Name of a function or class that encloses a change.
    Enclosing,
}

/// Number of roles.
pub const WORD_ROLES: usize = 5;

/// Inverse document frequencies of words among the searched files.
#[derive(Debug, Default)]
pub struct IdfTable {
    /// Number of searched files.
    pub files: f32,
    words: Vec<f32>,
    parts: Vec<f32>,
    paths: HashMap<Word, f32>,
}

impl IdfTable {
    /// Counts the files that contain each word, word part and path part.
    pub fn from_documents<'a>(
        files: impl Iterator<Item = (&'a str, &'a Document)>,
        vocabulary: &mut Vocabulary,
    ) -> Self {
        let mut words: WordMap<u32> = WordMap::default();
        // (number of files, last counted file).
        let mut parts: WordMap<(u32, u32)> = WordMap::default();
        let mut paths: HashMap<Word, u32> = HashMap::new();
        let mut total = 0u32;
        for (path, document) in files {
            total += 1;
            for (word, _) in &document.counts {
                *words.get_mut(*word) += 1;
                for part in vocabulary.parts(*word) {
                    let (found, last) = parts.get_mut(*part);
                    *found += u32::from(*last != total);
                    *last = total;
                }
            }
            for part in vocabulary.intern_path(path) {
                *paths.entry(part).or_default() += 1;
            }
        }
        let files = total as f32;
        let rare = |found: u32| ((files - found as f32 + 0.5) / (found as f32 + 0.5) + 1.0).ln();
        Self {
            files,
            words: words.into_iter().map(rare).collect(),
            parts: parts.into_iter().map(|(found, _)| rare(found)).collect(),
            paths: paths.into_iter().map(|(word, found)| (word, rare(found))).collect(),
        }
    }

    /// Returns the BM25 inverse document frequency of a word: near 0 for a word in every file, about 9 for a word in no
    /// file.
    pub fn word(&self, word: Word) -> f32 {
        self.words.get(word.0 as usize).copied().unwrap_or(8.0)
    }

    /// Returns the inverse document frequency of a word part.
    pub fn part(&self, word: Word) -> f32 {
        self.parts.get(word.0 as usize).copied().unwrap_or(6.0)
    }

    /// Returns the inverse document frequency of a path part.
    pub fn path(&self, word: Word) -> f32 {
        self.paths.get(&word).copied().unwrap_or(5.0)
    }
}

/// Given file with its document in the searched tree; `None` if the tree does not contain the file.
pub struct GivenDocument<'a> {
    /// Changed file.
    pub given: &'a GivenFile,
    /// Document of this file in the searched tree.
    pub document: Option<&'a Arc<Document>>,
}

/// Weighted words of the query.
#[derive(Debug, Default)]
pub struct Query {
    /// Weights of each word by role.
    pub weights: WordMap<[f32; WORD_ROLES]>,
    /// Total weight by role; at least 1.
    pub totals: [f32; WORD_ROLES],
    /// Distinct words.
    pub words: Vec<Word>,
    /// For each word: a bit per role.
    pub roles: WordMap<u8>,
    /// Weights of the parts of the words and of the words in the task's text.
    pub parts: WordMap<f32>,
    /// Sum of the weights in `parts`; at least 1.
    pub parts_total: f32,
    /// For each word of the vocabulary: true if one of its parts has a weight.
    pub has_parts: WordMap<bool>,
    /// Names of the given files, as they appear in imports.
    pub stems: HashSet<Word>,
    /// Names declared in changed lines.
    pub declared: HashSet<Word>,
    /// Words of the import lines of the given files.
    pub imported: HashSet<Word>,
}

/// Number of occurrences of words, by role.
#[derive(Default)]
struct RoleCounts {
    removed: HashMap<Word, f32>,
    added: HashMap<Word, f32>,
    changed: HashMap<Word, f32>,
    near: HashMap<Word, f32>,
    enclosing: HashMap<Word, f32>,
}

/// Counts each of the words once more.
fn count_words(counts: &mut HashMap<Word, f32>, words: &[Word]) {
    for word in words {
        *counts.entry(*word).or_default() += 1.0;
    }
}

impl RoleCounts {
    /// Counts the words of the changed lines of a hunk.
    fn add_changed_lines(&mut self, hunk: &GivenFileHunk, vocabulary: &mut Vocabulary) {
        for line in &hunk.removed {
            count_words(&mut self.removed, &vocabulary.intern_line(line));
        }
        for line in &hunk.added {
            count_words(&mut self.added, &vocabulary.intern_line(line));
        }
    }

    /// Counts the words of the lines around a hunk, and the names of the two declarations above it.
    fn add_surroundings(&mut self, hunk: &Hunk, document: &Document) {
        let (start, end) = old_line_range(hunk);
        for line in start.saturating_sub(CONTEXT_LINES)..end.saturating_add(CONTEXT_LINES).min(document.line_count()) {
            if line < start || line >= end {
                count_words(&mut self.near, document.line_words(line));
            }
        }
        let above = count_declarations_before(document, start.saturating_add(1));
        for (_, name) in document.declarations[..above].iter().rev().take(2) {
            count_words(&mut self.enclosing, &[*name]);
        }
    }

    /// Counts the words around a position in focus; without a line, the names that the file declares.
    fn add_focus(&mut self, focus: &Focus, document: &Document) {
        let Some(line) = focus.line else { return count_words(&mut self.near, &document.declared_names()) };
        let line = line.saturating_sub(1);
        for number in
            line.saturating_sub(2 * CONTEXT_LINES)..line.saturating_add(2 * CONTEXT_LINES).min(document.line_count())
        {
            let counts = if number == line { &mut self.changed } else { &mut self.near };
            count_words(counts, document.line_words(number));
        }
        let above = document.declarations.iter().rev().filter(|(at, _)| *at <= line).take(2);
        above.for_each(|(_, name)| count_words(&mut self.enclosing, &[*name]));
    }

    /// Gives words on both sides the role `Changed`; such a word keeps the role of the side that has at least twice as
    /// many. Words of changed lines are not near.
    fn separate_sides(&mut self) {
        let (before, after) = (self.removed.clone(), self.added.clone());
        for (word, count) in &before {
            let Some(other) = after.get(word) else { continue };
            *self.changed.entry(*word).or_default() += count.min(*other);
            match count / other >= 2.0 {
                true => self.removed.insert(*word, count - other),
                false => self.removed.remove(word),
            };
            match other / count >= 2.0 {
                true => self.added.insert(*word, other - count),
                false => self.added.remove(word),
            };
        }
        self.near.retain(|word, _| !before.contains_key(word) && !after.contains_key(word));
    }

    /// Returns the counts in the order of [`WordRole`].
    fn into_roles(self) -> [HashMap<Word, f32>; WORD_ROLES] {
        [self.removed, self.added, self.changed, self.near, self.enclosing]
    }
}

/// Returns the number of declarations that begin before a line (0-based); declarations are sorted by line.
fn count_declarations_before(document: &Document, line: u32) -> usize {
    document.declarations.partition_point(|(declared, _)| *declared < line)
}

impl Query {
    /// Collects and weights the words of the given files, the focus positions and the text.
    pub fn from_task(
        known: &[GivenDocument<'_>],
        focus: &[(&Focus, &Arc<Document>)],
        text: &str,
        rarity: &IdfTable,
        vocabulary: &mut Vocabulary,
    ) -> Self {
        let mut counts = RoleCounts::default();
        let mut query = Self::default();
        for file in known {
            query.add_given_file(file, &mut counts, vocabulary);
        }
        for (focus, document) in focus {
            counts.add_focus(focus, document);
            query.add_file_name(&focus.path, Some(document), vocabulary);
        }
        counts.separate_sides();
        for line in text.lines() {
            count_words(&mut counts.changed, &vocabulary.intern_line(line));
        }
        query.weigh_words(counts.into_roles(), rarity);
        query.weigh_parts(text, rarity, vocabulary);
        query
    }

    /// Adds the words, names and imports of a given file.
    fn add_given_file(
        &mut self,
        GivenDocument { given, document }: &GivenDocument<'_>,
        counts: &mut RoleCounts,
        vocabulary: &mut Vocabulary,
    ) {
        for hunk in &given.hunks {
            counts.add_changed_lines(hunk, vocabulary);
            if let Some(document) = document.filter(|_| given.touch == Touch::Modified) {
                counts.add_surroundings(&hunk.range, document);
                let (start, end) = old_line_range(&hunk.range);
                let (first, last) =
                    (count_declarations_before(document, start), count_declarations_before(document, end));
                let inside = document.declarations.get(first..last).unwrap_or_default();
                self.declared.extend(inside.iter().map(|(_, name)| *name));
            }
            if given.touch == Touch::Deleted {
                // Users of these names lose the declaration.
                let gone = Document::read(&hunk.removed.join("\n"), vocabulary);
                self.declared.extend(gone.declarations.iter().map(|(_, name)| *name));
            }
        }
        self.add_file_name(&given.path, *document, vocabulary);
    }

    fn add_file_name(&mut self, path: &str, document: Option<&Arc<Document>>, vocabulary: &mut Vocabulary) {
        let stem = path.rsplit('/').next().unwrap_or(path).split('.').next().unwrap_or_default();
        self.stems.insert(vocabulary.intern(stem));
        self.stems.insert(vocabulary.intern(&stem.replace('-', "_")));
        let Some(document) = document else { return };
        self.imported.extend(&document.imported);
    }

    fn weigh_words(&mut self, seen: [HashMap<Word, f32>; WORD_ROLES], rarity: &IdfTable) {
        for (role, counts) in seen.into_iter().enumerate() {
            let weigh = |(word, count): (Word, f32)| (word, rarity.word(word) * (1.0 + 0.5 * count.ln().max(0.0)));
            let mut weights: Vec<(Word, f32)> = counts.into_iter().map(weigh).collect();
            weights.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            weights.truncate(MAX_WORDS_PER_ROLE);
            self.totals[role] = weights.iter().map(|(_, weight)| weight).sum::<f32>().max(1.0);
            for (word, _) in &weights {
                let roles = self.roles.get_mut(*word);
                if *roles == 0 {
                    self.words.push(*word);
                }
                *roles |= 1 << role;
            }
            weights.into_iter().for_each(|(word, weight)| self.weights.get_mut(word)[role] = weight);
        }
    }

    fn weigh_parts(&mut self, text: &str, rarity: &IdfTable, vocabulary: &mut Vocabulary) {
        let mut counts: HashMap<Word, f32> = HashMap::new();
        for word in &self.words {
            let roles = (self.roles.get(*word) & !(1 << WordRole::Near as u8)).count_ones() as f32;
            for part in vocabulary.parts(*word).iter().filter(|_| roles > 0.0) {
                *counts.entry(*part).or_default() += roles;
            }
        }
        for line in text.lines() {
            for name in identifiers(line) {
                for part in split_identifier(name) {
                    *counts.entry(vocabulary.intern(&part)).or_default() += 2.0;
                }
            }
        }
        let weigh = |(part, count): (Word, f32)| (part, rarity.part(part) * (1.0 + 0.5 * count.max(1.0).ln()));
        let weighed: Vec<(Word, f32)> = counts.into_iter().map(weigh).collect();
        weighed.iter().for_each(|(part, weight)| *self.parts.get_mut(*part) = *weight);
        let mut weights: Vec<f32> = weighed.into_iter().map(|(_, weight)| weight).collect();
        // The sum of floats depends on the order, and the order of a hash map varies.
        weights.sort_by(f32::total_cmp);
        self.parts_total = weights.iter().sum::<f32>().max(1.0);
        for word in vocabulary.words() {
            *self.has_parts.get_mut(word) = vocabulary.parts(word).iter().any(|part| self.parts.get(*part) > 0.0);
        }
    }

    /// Returns the total weight of the query words in `words` by role; each word counts once.
    pub fn overlap(&self, words: impl Iterator<Item = Word>) -> [f32; WORD_ROLES] {
        let mut found = [0.0; WORD_ROLES];
        let mut seen: Vec<Word> = Vec::new();
        for word in words {
            let roles = self.roles.get(word);
            if roles == 0 || seen.contains(&word) {
                continue;
            }
            seen.push(word);
            for (role, sum) in found.iter_mut().enumerate() {
                if roles >> role & 1 == 1 {
                    *sum += self.weights.get(word)[role];
                }
            }
        }
        found
    }
}

/// Returns the lines of a hunk's old side: 0-based, end exclusive.
pub fn old_line_range(hunk: &Hunk) -> (u32, u32) {
    let start = match hunk.old_lines {
        0 => hunk.old_start,
        _ => hunk.old_start.saturating_sub(1),
    };
    (start, start.saturating_add(hunk.old_lines))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ranking_goes_by_the_given_files_that_change_most() {
        let place = Hunk { old_start: 1, old_lines: 0, new_start: 1, new_lines: 0 };
        let given = |number: usize| GivenFile {
            path: format!("{number}.rs"),
            touch: Touch::Modified,
            hunks: vec![GivenFileHunk { range: place, removed: Vec::new(), added: vec![String::new(); number] }],
        };
        let task = |most| {
            let focus = vec![Focus { path: "2.rs".to_owned(), line: None }];
            RetrievalTask { given: (1..=most).map(given).collect(), focus, text: String::new() }
        };
        assert_eq!(task(MAX_GIVEN_FILES).split_leading(), (task(MAX_GIVEN_FILES), HashSet::new()));
        let (leading, others) = task(MAX_GIVEN_FILES + 3).split_leading();
        assert_eq!(
            others,
            HashSet::from(["1.rs".to_owned(), "3.rs".to_owned()]),
            "a file in focus is one of the task's"
        );
        let least = leading.given.iter().map(|given| given.hunks[0].added.len()).min();
        assert_eq!((leading.given.len(), least), (MAX_GIVEN_FILES, Some(4)));
    }
}
