//! Selects which files of a large tree are read and ranked: by the index and the history if available, else by path.
//!
//! Invariants:
//! - All files of a small tree are selected.
//! - The task's own files (see [`RetrievalTask::split_leading`]) are always selected, before all others; mentioned
//!   files come next, then those nearest by meaning.
//! - Vendored and generated files take no place of authored files.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::mentions::MentionedFiles;
use super::retrieve::paths::{folder, folder_proximity, subject};
use super::retrieve::task::RetrievalTask;
use crate::git::TreeFile;
use crate::index::document_store::AuthoredFilter;
use crate::index::history::{History, MAX_FILES_PER_COMMIT};
use crate::index::words::identifiers;
use crate::index::{FileId, Index, IndexCompleteness, IndexError, split_words};

/// Maximum number of files to read and rank: about 100 ms of work.
const MAX_FILES: usize = 1_000;
/// Maximum number of files without a complete index. It is higher, because the words of files are not known then. A
/// review waits for this work once.
const MAX_FILES_WITHOUT_INDEX: usize = 6_000;
/// Maximum number of identifiers, and of their parts, that are looked up in the index.
const MAX_LOOKUP_WORDS: usize = 400;

/// Selected files of a tree.
#[derive(Debug, Default)]
pub struct FileSelection {
    /// Files to read, sorted by path. Only authored files and files that the task asks for.
    pub files: Vec<TreeFile>,
    /// Files for which there was no room, authored or not.
    pub skipped: Vec<TreeFile>,
}

/// Facts by which files are selected.
pub struct CandidateSearch<'a> {
    pub task: &'a RetrievalTask,
    /// Files that the task's text mentions.
    pub mentioned: &'a MentionedFiles<'a>,
    /// Paths of the files nearest by meaning.
    pub near: &'a [String],
    pub index: Option<&'a Index>,
    pub history: &'a History,
    /// Positions of the ancestor commits in `history`.
    pub ancestors: &'a [usize],
}

impl CandidateSearch<'_> {
    /// Returns true for a file that the task is about, or that its text mentions.
    pub fn is_certain(&self, path: &str) -> bool {
        self.task.paths().chain(self.mentioned.paths()).any(|known| known == path)
    }
}

/// Selects the files to read.
pub fn choose_candidates(
    files: Vec<TreeFile>,
    own: &mut AuthoredFilter<'_>,
    search: &CandidateSearch<'_>,
) -> FileSelection {
    let most = max_files(search.index.map(Index::completeness));
    if files.len() <= most {
        return FileSelection { files: own.retain_by_name(files), skipped: Vec::new() };
    }
    let mut chosen = FileSelection::default();
    // To check all files would take longer than to read the selected ones.
    for file in sort_by_relevance(files, search) {
        match chosen.files.len() < most {
            true if own.is_authored_by_name(&file.path) => chosen.files.push(file),
            true => {}
            false => chosen.skipped.push(file),
        }
    }
    chosen.files.sort_by(|a, b| a.path.cmp(&b.path));
    chosen
}

/// Sorts files by what is known of them without reading them, best first: the task's own, mentioned ones, others by
/// score.
pub fn sort_by_relevance(files: Vec<TreeFile>, search: &CandidateSearch<'_>) -> Vec<TreeFile> {
    let CandidateSearch { task, mentioned: named, near, index, history, ancestors } = *search;
    let mut scores = score_by_location(&files, task, history, ancestors);
    if let Some(index) = index {
        // A damaged index is rebuilt by the next refresh. Until then, history and paths must do.
        if let Err(error) = score_by_words(index, task, &mut scores) {
            tracing::warn!("the index is of no use: {error}");
        }
    }
    let (given, named): (HashSet<&str>, HashSet<&str>) = (task.paths().collect(), named.paths().collect());
    let mut order: Vec<(f32, TreeFile)> = files
        .into_iter()
        .map(|file| {
            let path = file.path.as_str();
            let score = match () {
                () if given.contains(path) => f32::INFINITY,
                () if named.contains(path) => f32::MAX,
                () if near.contains(&file.path) => f32::MAX / 2.0,
                () => scores.get(path).copied().unwrap_or(0.0),
            };
            (score, file)
        })
        .collect();
    order.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.path.cmp(&b.1.path)));
    order.into_iter().map(|(_, file)| file).collect()
}

/// Returns the maximum number of files to select. Files that are missing from a partial index have no known words, so
/// more files are read then.
fn max_files(reach: Option<IndexCompleteness>) -> usize {
    match reach {
        Some(IndexCompleteness::Whole | IndexCompleteness::Other) => MAX_FILES,
        Some(IndexCompleteness::Part { .. }) | None => MAX_FILES_WITHOUT_INDEX,
    }
}

/// Scores files by path: files near the given files or with the same subject, and files that changed together with
/// them.
fn score_by_location(
    files: &[TreeFile],
    task: &RetrievalTask,
    history: &History,
    before: &[usize],
) -> HashMap<String, f32> {
    let given: Vec<&str> = task.paths().collect();
    let subjects: HashSet<String> = given.iter().map(|path| subject(path)).collect();
    let folders: HashSet<&str> = given.iter().map(|path| folder(path)).collect();
    let mut near: HashMap<&str, f32> = HashMap::new();
    let mut scores: HashMap<String, f32> = HashMap::new();
    for file in files {
        let place = folder(&file.path);
        let near = *near
            .entry(place)
            .or_insert_with(|| folders.iter().map(|folder| folder_proximity(folder, place)).fold(0.0, f32::max));
        let pair = if subjects.contains(&subject(&file.path)) { 3.0 } else { 0.0 };
        scores.insert(file.path.clone(), near + pair);
    }
    let known: HashSet<_> = given.iter().filter_map(|path| history.find_path(path)).collect();
    history.walk(before, |_, commit, moves| {
        let paths: Vec<_> = commit.files.iter().map(|file| moves.current_path(file.path)).collect();
        if paths.len() <= MAX_FILES_PER_COMMIT && paths.iter().any(|path| known.contains(path)) {
            for path in paths {
                *scores.entry(history.path(path).to_owned()).or_default() += 2.0 / commit.files.len() as f32;
            }
        }
    });
    scores
}

/// Adds scores for files that contain, declare or use words of the task. Rarer words count more.
fn score_by_words(index: &Index, task: &RetrievalTask, scores: &mut HashMap<String, f32>) -> Result<(), IndexError> {
    let mut names: BTreeSet<&str> = collect_identifiers(&task.text);
    for hunk in task.given.iter().flat_map(|given| &given.hunks) {
        for line in hunk.removed.iter().chain(&hunk.added) {
            names.extend(identifiers(line));
        }
    }
    let total = index.files().len() as f32;
    let mut by_file: Vec<f32> = index.files().map(|file| scores.get(file.path).copied().unwrap_or_default()).collect();
    let mut add = |files: Vec<FileId>, weight: f32| {
        let rare = (total / (files.len() as f32 + 1.0)).max(1.0).ln();
        // A word that occurs in a fifth of the files or more says nothing.
        if (files.len() as f32) < total / 5.0 {
            for file in files {
                if let Some(score) = by_file.get_mut(file.0 as usize) {
                    *score += weight * rare / 8.0;
                }
            }
        }
    };
    let mut parts: BTreeSet<String> = BTreeSet::new();
    for name in sample_words(names) {
        add(index.files_that_declare(name)?, 2.0);
        add(index.files_that_use(name)?, 1.0);
        parts.extend(split_words(name));
    }
    for part in sample_words(parts) {
        add(index.files_with(&part)?, 0.5);
    }
    for (file, score) in index.files().zip(by_file).filter(|(_, score)| *score > 0.0) {
        scores.insert(file.path.to_owned(), score);
    }
    Ok(())
}

/// Returns at most [`MAX_LOOKUP_WORDS`] words. The choice does not depend on their first letters and is always the
/// same.
fn sample_words<T: AsRef<str>>(words: BTreeSet<T>) -> Vec<T> {
    let mut words: Vec<T> = words.into_iter().collect();
    if words.len() > MAX_LOOKUP_WORDS {
        words.sort_by_cached_key(|word| *blake3::hash(word.as_ref().as_bytes()).as_bytes());
        words.truncate(MAX_LOOKUP_WORDS);
    }
    words
}

fn collect_identifiers(text: &str) -> BTreeSet<&str> {
    text.lines().flat_map(identifiers).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::retrieve::task::Focus;

    #[test]
    fn a_part_of_an_index_is_no_reason_to_read_less() {
        assert_eq!(max_files(Some(IndexCompleteness::Part { files: 10, total: 2_000 })), max_files(None));
        assert!(max_files(Some(IndexCompleteness::Whole)) < max_files(None));
    }

    fn choose_without_index(
        files: Vec<TreeFile>,
        own: &mut AuthoredFilter<'_>,
        task: &RetrievalTask,
        mentioned: &MentionedFiles<'_>,
    ) -> FileSelection {
        let history = History::default();
        choose_candidates(
            files,
            own,
            &CandidateSearch { task, mentioned, near: &[], index: None, history: &history, ancestors: &[] },
        )
    }

    #[test]
    fn what_others_wrote_takes_the_place_of_nothing() {
        let file = |path: String| TreeFile { path, blob: String::new() };
        let vendored = (0..MAX_FILES_WITHOUT_INDEX + 9).map(|number| file(format!("a/vendor/{number}.c")));
        let own = (0..9).map(|number| file(format!("z/{number}.c")));
        let files: Vec<TreeFile> = vendored.chain(own).collect();
        let focus = Focus { path: "a/vendor/7.c".to_owned(), line: None };
        let task = RetrievalTask { focus: vec![focus], ..RetrievalTask::default() };
        let is_asked = |path: &str| path == "a/vendor/7.c";
        let mut own = AuthoredFilter::without_attributes(&is_asked);
        let chosen = |files: &[TreeFile], own: &mut AuthoredFilter<'_>| {
            choose_without_index(files.to_vec(), own, &task, &MentionedFiles::default())
        };
        let all = chosen(&files, &mut own);
        let few = chosen(&files[MAX_FILES_WITHOUT_INDEX..], &mut own);
        let paths = |chosen: &FileSelection| chosen.files.iter().map(|file| file.path.clone()).collect::<Vec<_>>();
        assert_eq!((paths(&all).len(), all.skipped.len()), (10, 0));
        assert_eq!((paths(&few).len(), few.skipped.len()), (9, 0));
        assert_eq!(paths(&all)[0], "a/vendor/7.c");
        let many: Vec<TreeFile> =
            (0..MAX_FILES_WITHOUT_INDEX + 9).map(|number| file(format!("z/{number}.c"))).collect();
        let many = chosen(&many, &mut own);
        assert_eq!((many.files.len(), many.skipped.len()), (MAX_FILES_WITHOUT_INDEX, 9));
    }

    #[test]
    fn given_files_come_before_those_that_are_named() {
        let files: Vec<TreeFile> = (0..MAX_FILES_WITHOUT_INDEX + 9)
            .map(|number| TreeFile { path: format!("{number:05}.c"), blob: String::new() })
            .collect();
        let last = files[MAX_FILES_WITHOUT_INDEX + 8].path.clone();
        let task = RetrievalTask { focus: vec![Focus { path: last.clone(), line: None }], ..RetrievalTask::default() };
        let mut named = MentionedFiles::default();
        named.files.extend(files.iter().map(|file| file.path.clone()));
        let mut own = AuthoredFilter::without_attributes(&|_| true);
        let chosen = choose_without_index(files, &mut own, &task, &named);
        assert_eq!(chosen.files.last().map(|file| &file.path), Some(&last));
    }

    #[test]
    fn of_many_words_those_of_all_letters_are_taken() {
        let few: BTreeSet<&str> = ["Zebra", "apple"].into();
        assert_eq!(sample_words(few), ["Zebra", "apple"]);
        let many: BTreeSet<String> =
            ('a'..='z').flat_map(|letter| (0..100).map(move |number| format!("{letter}{number}"))).collect();
        let taken = sample_words(many.clone());
        assert_eq!((taken.len(), &taken), (MAX_LOOKUP_WORDS, &sample_words(many)));
        let letters: BTreeSet<_> = taken.iter().filter_map(|word| word.chars().next()).collect();
        assert_eq!(letters.len(), 26, "{letters:?}");
    }
}
