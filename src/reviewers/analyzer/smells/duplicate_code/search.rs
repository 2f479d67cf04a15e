//! Finds copies of added code anywhere in the snapshot, without parsing the snapshot.
//!
//! The caller may provide the fingerprints of files ([`FingerprintSource`]), so that a normal review reads only the few
//! files that share some with the change. Work is bounded by bytes, not by time: the same search finds the same copies.

use super::lexer::{self, CloneToken, LanguageFamily};
use super::matching::{self, CloneMatch, CloneRules, FastMap, GRAM_TOKENS, TokenFingerprint, WINDOW_GRAMS};
use super::{AcceptedClone, LocatedClone, ReportingFile};
use crate::domain::{LineRange, text};
use crate::git::TreeFile;
use crate::reviewers::analyzer::limits::Limits;
use crate::reviewers::analyzer::smells::Smell;
use crate::syntax::facts::FileFacts;
use crate::syntax::language::Language;
use crate::syntax::source::ParsedFile;

/// A parsed changed file, with the lines that the change added or changed.
pub struct ChangedFile<'a> {
    pub source: &'a ParsedFile<'a>,
    pub facts: &'a FileFacts,
    pub added: &'a [LineRange],
}

/// Result of a search.
#[derive(Debug, Default)]
pub struct CloneReport {
    /// Each with the index of its changed file.
    pub smells: Vec<(usize, Smell)>,
    /// Notes for people: files that were not searched.
    pub notes: Vec<String>,
    /// Number of files of the snapshot, in the languages of the change, whose fingerprints were compared.
    pub files_seen: usize,
    /// Number of such files that the budget left for a later search.
    pub files_left: usize,
    /// Bytes read to compute unknown fingerprints, plus 1,024 per file.
    pub bytes_read: u64,
}

/// Source of stored fingerprints.
pub trait FingerprintSource: Send + Sync {
    /// Returns the result of [`file_fingerprints`] for a file; `None` if it is not stored. `blob` is the id of the blob, in
    /// hexadecimal.
    fn fingerprints(&self, path: &str, blob: &str) -> Option<&[u32]>;
}

/// Search for copies, with a source of fingerprints and a budget.
#[derive(Clone, Copy)]
pub struct CloneSearch<'a> {
    fingerprint_source: Option<&'a dyn FingerprintSource>,
    budget: u64,
}

/// Maximum size of a file with fingerprints, in bytes. Larger files are generated, or nobody copies from them.
const MAX_FILE_BYTES: usize = 1_000_000;
/// Maximum number of files with the same fingerprint. A more common fingerprint is an idiom and is ignored.
const MAX_FILES_PER_FINGERPRINT: usize = 30;
/// Version of the fingerprints. With another version the same file may have other fingerprints.
pub const FINGERPRINT_VERSION: u32 = lexer::LEXER_VERSION << 16 | (GRAM_TOKENS as u32) << 8 | WINDOW_GRAMS as u32;
/// Maximum number of files to read and compare in full. Files with the most fingerprints in common come first.
const MAX_CANDIDATES: usize = 48;
/// Minimum share of a copy's tokens on added lines, in percent. A copy with a smaller share existed before the change.
const MIN_ADDED_PERCENT: u32 = 50;
/// Minimum share of tokens on added lines for a new place, in percent. A place with a smaller share is old code that
/// was edited.
const MIN_NEW_PERCENT: u32 = 80;

impl<'a> CloneSearch<'a> {
    /// Maximum number of bytes that one search reads to compute unknown fingerprints; about 0.1 s of work.
    pub const DEFAULT_BUDGET_BYTES: u64 = 8 << 20;

    /// Creates a search with the default budget.
    pub fn new(fingerprint_source: Option<&'a dyn FingerprintSource>) -> Self {
        Self { fingerprint_source, budget: Self::DEFAULT_BUDGET_BYTES }
    }

    /// Returns the search with another budget, in bytes read per search.
    #[cfg(test)]
    pub fn with_budget(self, bytes: u64) -> Self {
        Self { budget: bytes, ..self }
    }

    /// Finds copies of the code that `changed` adds: within the changed files, between them, and in the rest of the
    /// snapshot. `tree` is the tree of the snapshot without the files that a review leaves out; `read` returns the
    /// content of a blob.
    pub fn run(
        &self,
        changed: &[ChangedFile<'_>],
        tree: &[TreeFile],
        read: &mut dyn FnMut(&str) -> Option<Vec<u8>>,
        limits: &Limits,
    ) -> CloneReport {
        let mut report = CloneReport::default();
        let rules = CloneRules::from_limits(limits);
        let files: Vec<TokenizedChange<'_>> =
            changed.iter().map(|file| TokenizedChange::new(file, rules.min_tokens)).collect();
        if files.iter().all(|file| file.queries.is_empty()) {
            return report;
        }
        let mut found: Vec<Vec<LocatedClone<'_>>> = files.iter().map(|_| Vec::new()).collect();
        find_among_changed(&files, &rules, &mut found);

        let paths: std::collections::HashSet<&str> = files.iter().map(|file| file.reporting_file.path).collect();
        let mut others: Vec<CloneCandidateFile<'_>> = tree
            .iter()
            .filter(|file| !paths.contains(file.path.as_str()) && !is_vendored(&file.path))
            .filter_map(|file| {
                let family = LanguageFamily::from_language(Language::detect(&file.path, &[])?);
                let wanted = files.iter().any(|changed| changed.family == family && !changed.queries.is_empty());
                wanted.then(|| CloneCandidateFile { file, family, hits: Vec::new() })
            })
            .collect();
        self.collect_hits(&files, &mut others, read, &mut report);

        for other in select_candidates(others) {
            let Some(text) = read(&other.file.blob) else { continue };
            let Some(language) = Language::detect(&other.file.path, &[]) else { continue };
            let tokens = lexer::tokenize(language, &text);
            let prints = matching::winnow_fingerprints(&tokens);
            for (file, found) in files.iter().zip(&mut found).filter(|(file, _)| file.family == other.family) {
                for copy in matching::find_matches(&file.tokens, &file.prints, Some((&tokens, &prints))) {
                    if let Some(judged) = file.evaluate_added(&copy, &tokens, &rules) {
                        found.push(LocatedClone {
                            there_path: other.file.path.clone(),
                            there_facts: None,
                            accepted: judged,
                        });
                    }
                }
            }
        }
        for (index, (file, found)) in files.iter().zip(found).enumerate() {
            report
                .smells
                .extend(file.reporting_file.build_smells(found, limits).into_iter().map(|smell| (index, smell)));
        }
        report
    }

    /// Fills the hits of `others` from stored fingerprints, or by reading files.
    fn collect_hits(
        &self,
        files: &[TokenizedChange<'_>],
        others: &mut [CloneCandidateFile<'_>],
        read: &mut dyn FnMut(&str) -> Option<Vec<u8>>,
        report: &mut CloneReport,
    ) {
        let mut queries = QueryFingerprints::default();
        for print in files.iter().flat_map(|file| &file.queries) {
            queries.add(*print);
        }
        let mut unknown: Vec<usize> = Vec::new();
        for (index, other) in others.iter_mut().enumerate() {
            match self.fingerprint_source.and_then(|known| known.fingerprints(&other.file.path, &other.file.blob)) {
                Some(prints) => queries.extend_hits(prints, &mut other.hits),
                None => unknown.push(index),
            }
        }
        report.files_seen = others.len() - unknown.len();
        unknown.sort_by_cached_key(|&index| {
            let path = others[index].file.path.as_str();
            (files.iter().map(|file| path_distance(file.reporting_file.path, path)).min(), index)
        });
        let mut made = 0;
        for &index in &unknown {
            if report.bytes_read >= self.budget {
                break;
            }
            let other = &mut others[index];
            let text = read(&other.file.blob).unwrap_or_default();
            // Opening a file has a cost, however small the file is.
            report.bytes_read += text.len() as u64 + 1024;
            queries.extend_hits(&file_fingerprints(&other.file.path, &text), &mut other.hits);
            made += 1;
        }
        report.files_seen += made;
        report.files_left = unknown.len() - made;
        if report.files_left > 0 {
            report.notes.push(format!(
                "copies were looked for in {} of {} of the snapshot in the languages of the change, those nearest to it \
                 first; later reviews see more",
                report.files_seen,
                text::format_count(report.files_seen + report.files_left, "file")
            ));
        }
    }
}

/// A tokenized changed file.
struct TokenizedChange<'a> {
    reporting_file: ReportingFile<'a>,
    family: LanguageFamily,
    tokens: Vec<CloneToken>,
    fingerprints: Vec<TokenFingerprint>,
    /// All fingerprints by hash.
    prints: FastMap<u32, Vec<u32>>,
    /// Hashes of the fingerprints near added lines.
    queries: Vec<u32>,
    /// For every token position, the number of earlier tokens on added lines.
    added_before: Vec<u32>,
}

impl<'a> TokenizedChange<'a> {
    fn new(file: &ChangedFile<'a>, min_tokens: u32) -> Self {
        let tokens = lexer::tokenize(file.source.language, file.source.text);
        let mut ranges = file.added.to_vec();
        ranges.sort_unstable();
        let mut next = 0;
        let mut added_before = Vec::with_capacity(tokens.len() + 1);
        let mut count = 0;
        added_before.push(0);
        for token in &tokens {
            while ranges.get(next).is_some_and(|range| range.end < token.line) {
                next += 1;
            }
            count += u32::from(ranges.get(next).is_some_and(|range| range.start <= token.line));
            added_before.push(count);
        }
        let fingerprints = matching::winnow_fingerprints(&tokens);
        let prints = matching::group_by_hash(&fingerprints);
        let reach = WINDOW_GRAMS + GRAM_TOKENS;
        let mut queries: Vec<u32> = Vec::new();
        if count * 2 >= min_tokens {
            let near = |print: &&TokenFingerprint| {
                let from = (print.at as usize).saturating_sub(reach);
                let to = (print.at as usize + GRAM_TOKENS + reach).min(tokens.len());
                added_before[to] - added_before[from] > 0 && prints.contains_key(&print.hash)
            };
            queries.extend(fingerprints.iter().filter(near).map(|print| print.hash));
        }
        let reporting_file = ReportingFile::new(file.source, file.facts);
        Self {
            reporting_file,
            family: LanguageFamily::from_language(file.source.language),
            tokens,
            fingerprints,
            prints,
            queries,
            added_before,
        }
    }

    fn count_added(&self, from: u32, to: u32) -> u32 {
        let at = |index: u32| self.added_before.get(index as usize).copied().unwrap_or(0);
        at(to).saturating_sub(at(from))
    }

    /// Returns whether the change edited both sides of a copy that existed before. The change had to do so, and makes
    /// nothing worse.
    fn is_edited_with(&self, copy: &CloneMatch, there: &Self) -> bool {
        let share = |file: &Self, (from, to): (u32, u32)| file.count_added(from, to) * 100 / (to - from).max(1);
        let (here, there) = (share(self, copy.range_a()), share(there, copy.range_b()));
        there > 0 && here < MIN_NEW_PERCENT && there < MIN_NEW_PERCENT
    }

    /// Trims a copy to the part that the change added and evaluates it; `None` if the copy is older than the change.
    fn evaluate_added(&self, copy: &CloneMatch, there: &[CloneToken], rules: &CloneRules) -> Option<AcceptedClone> {
        if copy.token_count() < rules.min_tokens {
            return None;
        }
        let (start, end) = copy.range_a();
        let (mut from, mut to) = (start, end);
        while from < to && self.count_added(from, from + 1) == 0 {
            from += 1;
        }
        while from < to && self.count_added(to - 1, to) == 0 {
            to -= 1;
        }
        // A short addition is a copy together with the old code around it, if at least half of it is added.
        let missing = rules.min_tokens.saturating_sub(to - from);
        let before = missing.min(from - start);
        let (from, to) = (from - before, (to + (missing - before)).min(end));
        if (to - from) * MIN_ADDED_PERCENT > self.count_added(from, to) * 100 {
            return None;
        }
        let judged = self.reporting_file.evaluate_match(&copy.clip(from, to), &self.tokens, there, rules)?;
        let (from, to) = judged.copy.range_a();
        ((to - from) * MIN_ADDED_PERCENT <= self.count_added(from, to) * 100).then_some(judged)
    }
}

/// Finds copies within and between the changed files. A copy that two files add is reported once, on the later file.
fn find_among_changed<'a>(files: &[TokenizedChange<'a>], rules: &CloneRules, found: &mut [Vec<LocatedClone<'a>>]) {
    for (index, file) in files.iter().enumerate().filter(|(_, file)| !file.queries.is_empty()) {
        for copy in matching::find_matches(&file.tokens, &file.prints, None) {
            let judged = file
                .evaluate_added(&copy, &file.tokens, rules)
                // The earlier place may be the new one.
                .or_else(|| file.evaluate_added(&copy.swapped(), &file.tokens, rules));
            if let Some(judged) = judged.filter(|_| !file.is_edited_with(&copy, file)) {
                let there_path = file.reporting_file.path.to_owned();
                found[index].push(LocatedClone {
                    there_path,
                    there_facts: file.reporting_file.facts,
                    accepted: judged,
                });
            }
        }
        for (number, other) in files.iter().enumerate().filter(|(_, other)| other.family == file.family) {
            if number == index {
                continue;
            }
            for copy in matching::find_matches(&file.tokens, &file.prints, Some((&other.tokens, &other.fingerprints))) {
                let Some(judged) = file.evaluate_added(&copy, &other.tokens, rules) else { continue };
                if file.is_edited_with(&copy, other) {
                    continue;
                }
                // The other file reports the copy if it is the later file and its side is new too.
                if number > index && other.evaluate_added(&copy.swapped(), &file.tokens, rules).is_some() {
                    continue;
                }
                let there_path = other.reporting_file.path.to_owned();
                found[index].push(LocatedClone {
                    there_path,
                    there_facts: other.reporting_file.facts,
                    accepted: judged,
                });
            }
        }
    }
}

/// A file of the snapshot, and the fingerprints that it shares with the change.
struct CloneCandidateFile<'a> {
    file: &'a TreeFile,
    family: LanguageFamily,
    hits: Vec<u32>,
}

/// Selects the files that share the most fingerprints with the change, without those of idioms.
fn select_candidates(others: Vec<CloneCandidateFile<'_>>) -> Vec<CloneCandidateFile<'_>> {
    let mut files_of: FastMap<u32, usize> = FastMap::default();
    for print in others.iter().flat_map(|other| &other.hits) {
        *files_of.entry(*print).or_default() += 1;
    }
    let mut chosen: Vec<(usize, CloneCandidateFile<'_>)> = others
        .into_iter()
        .filter_map(|other| {
            let rare =
                other.hits.iter().filter(|print| files_of.get(print).is_some_and(|&n| n <= MAX_FILES_PER_FINGERPRINT));
            let rare = rare.count();
            (rare > 0).then_some((rare, other))
        })
        .collect();
    chosen.sort_by(|(one, a), (other, b)| other.cmp(one).then_with(|| a.file.path.cmp(&b.file.path)));
    chosen.truncate(MAX_CANDIDATES);
    chosen.into_iter().map(|(_, other)| other).collect()
}

/// Fingerprints to search for, with a small bit filter in front: nearly all lookups are misses.
#[derive(Default)]
struct QueryFingerprints {
    filter: Vec<u64>,
    prints: FastMap<u32, ()>,
}

impl QueryFingerprints {
    fn add(&mut self, print: u32) {
        self.filter.resize(1024, 0);
        self.filter[(print >> 6 & 1023) as usize] |= 1 << (print & 63);
        self.prints.insert(print, ());
    }

    fn contains(&self, print: u32) -> bool {
        self.filter.get((print >> 6 & 1023) as usize).is_some_and(|word| word >> (print & 63) & 1 == 1)
            && self.prints.contains_key(&print)
    }

    fn extend_hits(&self, prints: &[u32], hits: &mut Vec<u32>) {
        hits.extend(prints.iter().filter(|&&print| self.contains(print)));
    }
}

/// Returns the fingerprints by which a search finds a file, sorted and without repeats. Empty for generated and very
/// large files, and for unknown languages.
pub fn file_fingerprints(path: &str, text: &[u8]) -> Vec<u32> {
    let Some(language) = Language::detect(path, text) else { return Vec::new() };
    if text.len() > MAX_FILE_BYTES || is_generated(text) {
        return Vec::new();
    }
    let mut prints: Vec<u32> =
        matching::winnow_fingerprints(&lexer::tokenize(language, text)).iter().map(|print| print.hash).collect();
    prints.sort_unstable();
    prints.dedup();
    prints
}

pub(super) fn is_generated(text: &[u8]) -> bool {
    let head = &text[..text.len().min(2048)];
    let says_so = [&b"@generated"[..], b"DO NOT EDIT", b"Code generated by", b"<auto-generated"];
    let lines = memchr::memchr_iter(b'\n', text).count() + 1;
    says_so.iter().any(|mark| memchr::memmem::find(head, mark).is_some()) || text.len() / lines > 300
}

/// Returns whether a path is that of third-party code, in case the tree was not filtered.
pub(super) fn is_vendored(path: &str) -> bool {
    path.ends_with(".min.js")
        || path.split('/').any(|part| {
            matches!(
                part,
                "node_modules" | "vendor" | "third_party" | "third-party" | "vendored" | "external" | "deps" | "dist"
            )
        })
}

/// Returns the distance of two files: the number of folders up and down.
pub(crate) fn path_distance(one: &str, other: &str) -> usize {
    let folders = |path: &str| path.matches('/').count();
    let common: usize = {
        let shared = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b);
        shared.filter(|(a, _)| *a == b'/').count()
    };
    folders(one) + folders(other) - 2 * common
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_files_come_first() {
        assert_eq!(path_distance("a/b/c.rs", "a/b/d.rs"), 0);
        assert_eq!(path_distance("a/b/c.rs", "a/x/d.rs"), 2);
        assert_eq!(path_distance("c.rs", "a/x/d.rs"), 2);
    }
}
