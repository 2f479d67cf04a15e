//! Computes the figures of each file from history, words, references and paths.
//!
//! - Pure: the same files, history and task give the same figures.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::factors::{FileFactors, to_figure};
use super::paths::{extension, folder, folder_proximity, is_generic_name, is_test, subject};
use super::task::{IdfTable, Query, WORD_ROLES, WordRole};
use crate::index::document::Document;
use crate::index::history::{History, MAX_FILES_PER_COMMIT, PathId, fingerprint};
use crate::index::vocabulary::{Vocabulary, Word, WordMap};
use crate::parallel;

/// File that may be relevant.
pub struct CandidateFile<'a> {
    pub path: &'a str,
    pub document: &'a Arc<Document>,
    pub is_given: bool,
}

/// Relation of an earlier commit to the task.
#[derive(Debug, Clone, Copy)]
pub struct CommitRelation {
    /// Position in the commits of the history.
    pub commit: usize,
    /// Weight of the commit for the given files: higher if it is recent among their commits.
    pub together: f32,
    /// Similarity of the commit's words to the task's words.
    pub alike: f32,
}

/// Figures of all files, and the relations of the commits to the task, newest first.
pub struct FileEvidence {
    pub factors: Vec<FileFactors>,
    pub relations: Vec<CommitRelation>,
}

/// Half-life of a common commit's weight, in commits of a given file.
const TOGETHER_HALF_LIFE: f32 = 15.0;
/// Half-life of a change's weight, in commits of the repository.
const CHANGES_HALF_LIFE: f32 = 150.0;
/// Number of most similar commits that count.
const MAX_SIMILAR_COMMITS: usize = 40;
/// Number of best files by words whose passages are scored; half as many by word parts and by history.
const MAX_FILES_WITH_PASSAGES: usize = 200;
/// BM25 parameters: term saturation (`k1`) and length normalization (`b`).
const BM25_K1: f32 = 1.2;
const BM25_B: f32 = 0.75;
/// Weights of the roles in the combined word score.
const ROLE_WEIGHTS: [f32; WORD_ROLES] = [2.0, 1.0, 1.0, 0.4, 1.5];

/// Computes the figures of each file. `before` lists the commits in `history` that precede the task, newest first.
pub fn compute_file_factors(
    files: &[CandidateFile<'_>],
    given: &[&str],
    query: &Query,
    rarity: &IdfTable,
    history: &History,
    before: &[usize],
    vocabulary: &mut Vocabulary,
) -> FileEvidence {
    let mut factors = vec![FileFactors::default(); files.len()];
    let relations = add_history_factors(&mut factors, files, given, query, history, before, vocabulary);
    add_word_factors(&mut factors, files, query, rarity, vocabulary);
    add_reference_factors(&mut factors, files, query, rarity, vocabulary);
    add_path_factors(&mut factors, files, given, rarity, vocabulary);
    add_passage_factors(&mut factors, files, query);
    let strongest = |of: fn(&FileFactors) -> f32, factors: &[FileFactors]| {
        let figures = files.iter().zip(factors).filter(|(file, _)| !file.is_given).map(|(_, factors)| of(factors));
        figures.fold(0.001, f32::max)
    };
    let most = [
        strongest(|factors| factors.together, &factors),
        strongest(|factors| factors.parts, &factors),
        strongest(|factors| factors.passage, &factors),
        strongest(|factors| factors.words_first, &factors),
    ];
    for file in &mut factors {
        file.together_part = file.together / most[0];
        file.parts_part = file.parts / most[1];
        file.passage_part = file.passage / most[2];
        file.words_part = file.words_first / most[3];
        file.together_and_words = file.together * file.words_first.max(file.passage_first);
        file.together_log = (file.together + 0.01).ln() + 4.6;
    }
    FileEvidence { factors, relations }
}

/// Writes 1 / (rank + 2) for the first 500 files by a figure; files without the figure keep 0.
fn assign_reciprocal_ranks(
    factors: &mut [FileFactors],
    figure: impl Fn(usize, &FileFactors) -> f32,
    slot: fn(&mut FileFactors) -> &mut f32,
) {
    let figures = factors.iter().enumerate().map(|(at, factors)| (at, figure(at, factors)));
    let mut order: Vec<(usize, f32)> = figures.filter(|(_, figure)| *figure > 0.0).collect();
    order.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    for (rank, (at, _)) in order.into_iter().take(500).enumerate() {
        *slot(&mut factors[at]) = 1.0 / (rank as f32 + 2.0);
    }
}

/// Adds the figures of the history, and returns the relation of each commit to the task.
fn add_history_factors(
    factors: &mut [FileFactors],
    files: &[CandidateFile<'_>],
    given: &[&str],
    query: &Query,
    history: &History,
    before: &[usize],
    vocabulary: &Vocabulary,
) -> Vec<CommitRelation> {
    let alike = compute_commit_similarities(query, history, before, vocabulary);
    let mut tally = HistoryTally::new(files, given, history);
    let mut relations = Vec::with_capacity(before.len());
    history.walk(before, |age, commit, moves| {
        let alike = alike.get(age).copied().unwrap_or(0.0);
        let paths: Vec<PathId> = commit.files.iter().map(|file| moves.current_path(file.path)).collect();
        let together = tally.add_commit(&WalkedCommit { age, alike, paths: &paths }, factors);
        relations.push(CommitRelation { commit: before[age], together, alike });
    });
    tally.add_similar_commits(factors);
    tally.add_probabilities(factors);
    tally.add_shares(files, factors);
    for factors in factors.iter_mut() {
        for figure in
            [&mut factors.together_small, &mut factors.together_count, &mut factors.alike, &mut factors.changes]
        {
            *figure = figure.ln_1p();
        }
    }
    assign_reciprocal_ranks(
        factors,
        |_, factors| factors.together + 0.01 * factors.together_small,
        |factors| &mut factors.together_first,
    );
    assign_reciprocal_ranks(factors, |_, factors| factors.alike, |factors| &mut factors.alike_first);
    assign_reciprocal_ranks(factors, |_, factors| factors.changes, |factors| &mut factors.changes_first);
    relations
}

/// Counts of a walk through the history, newest commit first.
struct HistoryTally<'a> {
    history: &'a History,
    /// For each path of the history: number of the file.
    numbers: Vec<Option<usize>>,
    given: HashSet<PathId>,
    by_given: HashMap<PathId, GivenFileTally>,
    /// Weight of the common commits, by folder.
    folders: HashMap<&'a str, f32>,
    /// For each file: number of its commits, and number of common commits with each given file.
    commits: Vec<f32>,
    back: Vec<f32>,
    similar: Vec<SimilarCommit>,
}

/// Commits of a given file.
#[derive(Default)]
struct GivenFileTally {
    commits: u32,
    weight: f32,
    /// Weight of the common commits with each other file.
    common: HashMap<usize, f32>,
}

/// Commit whose words are similar to the task's words.
struct SimilarCommit {
    age: usize,
    alike: f32,
    /// Numbers of its files.
    files: Vec<usize>,
}

/// Commit of a walk, with the current paths of its files.
struct WalkedCommit<'a> {
    /// Number of later commits.
    age: usize,
    alike: f32,
    paths: &'a [PathId],
}

impl<'a> HistoryTally<'a> {
    fn new(files: &[CandidateFile<'_>], given: &[&str], history: &'a History) -> Self {
        let mut numbers: Vec<Option<usize>> = vec![None; history.path_count()];
        for (number, file) in files.iter().enumerate() {
            if let Some(path) = history.find_path(file.path) {
                numbers[path.0 as usize] = Some(number);
            }
        }
        Self {
            history,
            numbers,
            given: given.iter().filter_map(|path| history.find_path(path)).collect(),
            by_given: HashMap::new(),
            folders: HashMap::new(),
            commits: vec![0.0; files.len()],
            back: vec![0.0; files.len()],
            similar: Vec::new(),
        }
    }

    fn file_number(&self, path: PathId) -> Option<usize> {
        self.numbers.get(path.0 as usize).copied().flatten()
    }

    /// Counts a commit, and returns its weight for the given files. Large commits say nothing.
    fn add_commit(&mut self, commit: &WalkedCommit<'_>, factors: &mut [FileFactors]) -> f32 {
        if commit.paths.len() > MAX_FILES_PER_COMMIT {
            return 0.0;
        }
        let files: Vec<usize> = commit.paths.iter().filter_map(|path| self.file_number(*path)).collect();
        for file in &files {
            self.commits[*file] += 1.0;
            let factors = &mut factors[*file];
            factors.changes += 0.5f32.powf(commit.age as f32 / CHANGES_HALF_LIFE);
            if self.commits[*file] == 1.0 {
                factors.latest = 1.0 / (1.0 + commit.age as f32 / 20.0);
            }
        }
        let mut together = 0.0;
        for path in commit.paths {
            if self.given.contains(path) {
                together += self.add_common_commit(*path, commit.paths, factors);
            }
        }
        if commit.alike > 0.0 {
            self.similar.push(SimilarCommit { age: commit.age, alike: commit.alike, files });
        }
        together
    }

    /// Counts a commit of a given file for the other files that it changed, and returns its weight.
    fn add_common_commit(&mut self, given: PathId, paths: &[PathId], factors: &mut [FileFactors]) -> f32 {
        let (history, size) = (self.history, paths.len() as f32);
        let own = self.by_given.entry(given).or_default();
        let weight = 0.5f32.powf(own.commits as f32 / TOGETHER_HALF_LIFE);
        own.commits += 1;
        own.weight += weight;
        for other in paths.iter().filter(|path| !self.given.contains(path)) {
            if let Some(file) = self.numbers.get(other.0 as usize).copied().flatten() {
                *own.common.entry(file).or_default() += weight;
                self.back[file] += 1.0;
                let factors = &mut factors[file];
                factors.together_small += weight / size.sqrt();
                factors.together_count += 1.0;
                factors.together_latest = factors.together_latest.max(weight);
            }
            *self.folders.entry(folder(history.path(*other))).or_default() += weight / size;
        }
        weight
    }

    /// Adds the similarity of the most similar commits to the files that they changed.
    fn add_similar_commits(&mut self, factors: &mut [FileFactors]) {
        self.similar.sort_by(|a, b| b.alike.total_cmp(&a.alike).then(a.age.cmp(&b.age)));
        let most = self.similar.first().map_or(1.0, |first| first.alike).max(0.01);
        for SimilarCommit { alike, files, .. } in self.similar.iter().take(MAX_SIMILAR_COMMITS) {
            for file in files {
                factors[*file].alike += (alike / most).powi(2) / (files.len() as f32).sqrt();
            }
        }
    }

    /// Adds the probability that a file changes together with the given files.
    fn add_probabilities(&mut self, factors: &mut [FileFactors]) {
        // Sort by path, because the sum of floats depends on the order.
        let mut by_given: Vec<_> = self.by_given.drain().collect();
        by_given.sort_by_key(|(path, _)| *path);
        for (_, GivenFileTally { weight: total, common, .. }) in by_given {
            for (file, weight) in common {
                let probability = weight / (total + 1.0);
                let factors = &mut factors[file];
                factors.together = 1.0 - (1.0 - factors.together) * (1.0 - probability);
                factors.together_most = factors.together_most.max(probability);
            }
        }
    }

    /// Adds the share of common commits among the commits of each file, and the weight of its folder.
    fn add_shares(&self, files: &[CandidateFile<'_>], factors: &mut [FileFactors]) {
        let most = self.folders.values().copied().fold(0.01, f32::max);
        for (number, (file, factors)) in files.iter().zip(factors).enumerate() {
            factors.together_back = (self.back[number] / (self.commits[number] + 2.0)).min(1.0);
            factors.together_folder = self.folders.get(folder(file.path)).copied().unwrap_or(0.0) / most;
        }
    }
}

/// Computes for each commit the similarity of its words to the task's words: the sum of the matching words' inverse
/// commit frequencies, divided by the square root of the commit's length.
fn compute_commit_similarities(
    query: &Query,
    history: &History,
    before: &[usize],
    vocabulary: &Vocabulary,
) -> Vec<f32> {
    let edited = query.words.iter().filter(|word| query.roles.get(**word) & !(1 << WordRole::Near as u8) != 0);
    let mut words: HashMap<u32, f32> = edited.map(|word| (fingerprint(vocabulary.name(*word)), 0.0)).collect();
    // Few words of the history occur in the task: a bit table rejects most of them quickly.
    let mut beginnings = vec![false; 1 << 16];
    words.keys().for_each(|word| beginnings[(word >> 16) as usize] = true);
    let words_of = |at: &usize| {
        let words = history.commits.get(*at).map_or(&[][..], |commit| commit.words.as_slice());
        words.iter().filter(|word| beginnings[(**word >> 16) as usize])
    };
    for word in before.iter().flat_map(words_of) {
        if let Some(commits) = words.get_mut(word) {
            *commits += 1.0;
        }
    }
    let total = before.len() as f32;
    for weight in words.values_mut() {
        *weight = ((total - *weight + 0.5) / (*weight + 0.5) + 1.0).ln();
    }
    let of = |at: &usize| {
        let sum: f32 = words_of(at).filter_map(|word| words.get(word)).sum();
        let length = history.commits.get(*at).map_or(0, |commit| commit.words.len());
        sum / (20.0 + length as f32).sqrt()
    };
    before.iter().map(of).collect()
}

fn add_word_factors(
    factors: &mut [FileFactors],
    files: &[CandidateFile<'_>],
    query: &Query,
    rarity: &IdfTable,
    vocabulary: &Vocabulary,
) {
    let lengths: f32 = files.iter().map(|file| file.document.word_count() as f32).sum();
    let average = (lengths / rarity.files.max(1.0)).max(1.0);
    let mut in_files: WordMap<f32> = WordMap::default();
    for file in files.iter().filter(|file| !file.is_given) {
        for (word, _) in file.document.counts.iter().filter(|(word, _)| query.roles.get(*word) != 0) {
            *in_files.get_mut(*word) += 1.0;
        }
    }
    let weigh = |parts: &mut Vec<(Word, u32)>, (file, before): &(&CandidateFile<'_>, FileFactors)| {
        let mut factors = *before;
        let length = 1.0 - BM25_B + BM25_B * file.document.word_count() as f32 / average;
        let saturated = |count: u32| count as f32 * (BM25_K1 + 1.0) / (count as f32 + BM25_K1 * length);
        let mut sums = [0.0f32; WORD_ROLES];
        let mut rarest = [0.0f32; WORD_ROLES];
        for (word, count) in &file.document.counts {
            if query.has_parts.get(*word) {
                let weighty = vocabulary.parts(*word).iter().filter(|part| query.parts.get(**part) > 0.0);
                parts.extend(weighty.map(|part| (*part, *count)));
            }
            let roles = query.roles.get(*word);
            if roles == 0 {
                continue;
            }
            let alone = 1.0 / in_files.get(*word).max(1.0);
            for role in (0..WORD_ROLES).filter(|role| roles >> role & 1 == 1) {
                sums[role] += query.weights.get(*word)[role] * saturated(*count);
                rarest[role] = rarest[role].max(alone);
            }
            if query.declared.contains(word) {
                factors.rare_declared = factors.rare_declared.max(alone);
            }
        }
        let part = |role: WordRole| sums[role as usize] / query.totals[role as usize].max(10.0);
        factors.removed = part(WordRole::Removed);
        factors.added = part(WordRole::Added);
        factors.changed = part(WordRole::Changed);
        factors.near = part(WordRole::Near);
        factors.enclosing = part(WordRole::Enclosing);
        [factors.rare_removed, factors.rare_added, factors.rare_changed, factors.rare_near, factors.rare_enclosing] =
            rarest;
        parts.sort_unstable();
        let of_part = |counts: &[(Word, u32)]| {
            let count = counts.iter().map(|(_, count)| count).sum();
            counts.first().map_or(0.0, |(part, _)| query.parts.get(*part)) * saturated(count)
        };
        let found: f32 = parts.chunk_by(|one, other| one.0 == other.0).map(of_part).sum();
        factors.parts = found / query.parts_total.max(1.0);
        parts.clear();
        let words: f32 = sums.iter().zip(ROLE_WEIGHTS).map(|(sum, weight)| sum * weight).sum();
        (factors, words)
    };
    let before: Vec<_> = files.iter().zip(factors.iter().copied()).collect();
    let mut words = Vec::with_capacity(files.len());
    for (own, (found, of_words)) in factors.iter_mut().zip(parallel::map_init(&before, Vec::new, weigh)) {
        *own = found;
        words.push(of_words);
    }
    assign_reciprocal_ranks(factors, |number, _| words[number], |factors| &mut factors.words_first);
    assign_reciprocal_ranks(factors, |_, factors| factors.parts, |factors| &mut factors.parts_first);
}

fn add_reference_factors(
    factors: &mut [FileFactors],
    files: &[CandidateFile<'_>],
    query: &Query,
    rarity: &IdfTable,
    vocabulary: &Vocabulary,
) {
    let edited = |roles: u8| roles & 0b111 != 0;
    let mut declaring: HashMap<Word, f32> = HashMap::new();
    let names: Vec<Vec<Word>> = files
        .iter()
        .map(|file| {
            let mut names = file.document.declared_names();
            names.retain(|name| query.roles.get(*name) != 0);
            names
        })
        .collect();
    for (names, _) in names.iter().zip(files).filter(|(_, file)| !file.is_given) {
        for name in names {
            *declaring.entry(*name).or_default() += 1.0;
        }
    }
    let mut declared: Vec<Word> = query.declared.iter().copied().collect();
    declared.sort_unstable();
    for ((file, factors), names) in files.iter().zip(factors.iter_mut()).zip(&names) {
        for name in names {
            let roles = query.roles.get(*name);
            let rare = rarity.word(*name);
            if edited(roles) {
                factors.declares += rare;
            }
            if roles & 0b11 != 0 {
                factors.declares_edited += rare;
            }
            factors.declares_alone += 1.0 / declaring.get(name).copied().unwrap_or(1.0);
        }
        let used = declared.iter().filter(|word| file.document.has_word(**word));
        factors.uses_declared = used.map(|word| rarity.word(*word)).sum();
        for figure in [
            &mut factors.declares,
            &mut factors.declares_edited,
            &mut factors.declares_alone,
            &mut factors.uses_declared,
        ] {
            *figure = figure.ln_1p();
        }
        let stem = file.path.rsplit('/').next().unwrap_or(file.path).split('.').next().unwrap_or_default();
        if let Some(stem) = vocabulary.find(stem).filter(|stem| query.imported.contains(stem)) {
            let first = vocabulary.parts(stem).first().copied().unwrap_or(stem);
            factors.imported_word = rarity.path(first) / 8.0;
        }
        for word in file.document.imported.iter().filter(|word| query.stems.contains(word)) {
            factors.importing_word = factors.importing_word.max(rarity.word(*word) / 8.0);
        }
    }
}

fn add_path_factors(
    factors: &mut [FileFactors],
    files: &[CandidateFile<'_>],
    given: &[&str],
    rarity: &IdfTable,
    vocabulary: &mut Vocabulary,
) {
    let words: Vec<Vec<Word>> = given.iter().map(|path| vocabulary.intern_path(path)).collect();
    let subjects: HashSet<String> =
        given.iter().map(|path| subject(path)).filter(|name| !is_generic_name(name)).collect();
    let folders: HashSet<&str> = given.iter().map(|path| folder(path)).collect();
    let languages: HashSet<&str> = given.iter().map(|path| extension(path)).collect();
    let has_test = given.iter().any(|path| is_test(path));
    let weight = |words: &mut dyn Iterator<Item = &Word>| words.map(|word| rarity.path(*word)).sum::<f32>();
    for (file, factors) in files.iter().zip(factors.iter_mut()) {
        let own = vocabulary.intern_path(file.path);
        let all = weight(&mut own.iter());
        let like = words.iter().map(|other| {
            let both = weight(&mut own.iter().filter(|word| other.contains(word)));
            both / (all + weight(&mut other.iter()) - both).max(0.1)
        });
        factors.path = like.fold(0.0, f32::max);
        let place = folder(file.path);
        factors.same_folder = to_figure(folders.contains(place));
        factors.folder = folders.iter().map(|other| folder_proximity(place, other)).fold(0.0, f32::max);
        factors.pair = to_figure(subjects.contains(&subject(file.path)));
        factors.is_test = to_figure(is_test(file.path));
        factors.is_missing_test = to_figure(!has_test && is_test(file.path));
        factors.same_language = to_figure(languages.contains(extension(file.path)));
        factors.size = (file.document.line_count().max(1) as f32).ln() / 5.0;
    }
    assign_reciprocal_ranks(factors, |_, factors| factors.path, |factors| &mut factors.path_first);
}

fn add_passage_factors(factors: &mut [FileFactors], files: &[CandidateFile<'_>], query: &Query) {
    let within = |rank: f32, most: usize| rank >= 1.0 / (most as f32 + 2.0);
    let is_looked_into = |number: &usize| {
        let factors = &factors[*number];
        !files[*number].is_given
            && (within(factors.words_first, MAX_FILES_WITH_PASSAGES)
                || within(factors.parts_first, MAX_FILES_WITH_PASSAGES / 2)
                || within(factors.together_first, MAX_FILES_WITH_PASSAGES / 2))
    };
    let looked_into: Vec<usize> = (0..files.len()).filter(is_looked_into).collect();
    let best = |number: &usize| {
        let document = files[*number].document;
        let overlaps = document.passages.iter().map(|passage| {
            let words = (passage.start..passage.end).flat_map(|line| document.line_words(line).iter().copied());
            query.overlap(words).iter().sum::<f32>()
        });
        overlaps.fold(0.0, f32::max).ln_1p()
    };
    let best = parallel::map(&looked_into, best);
    for (number, best) in looked_into.into_iter().zip(best) {
        factors[number].passage = best;
    }
    assign_reciprocal_ranks(factors, |_, factors| factors.passage, |factors| &mut factors.passage_first);
}
