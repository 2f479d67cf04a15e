//! Copies of what a change adds, anywhere in the snapshot, without parsing the snapshot.
//!
//! Whoever starts a search may know the fingerprints of files ([`Known`]), so that an ordinary review reads only the few
//! files that share some with the change. Work is bounded by bytes, not by time: the same search finds the same copies.

use super::lexer::{self, Family, Token};
use super::matching::{self, FastMap, GRAM, Match, Print, Rules, WINDOW};
use super::{Found, Judged, Place};
use crate::domain::{LineRange, text};
use crate::git::TreeFile;
use crate::provider::builtin::facts::Facts;
use crate::provider::builtin::language::Language;
use crate::provider::builtin::limits::Limits;
use crate::provider::builtin::smells::Smell;
use crate::provider::builtin::source::Source;

/// A changed file, parsed, with the lines that the change added or changed.
pub struct ChangedFile<'a> {
    pub source: &'a Source<'a>,
    pub facts: &'a Facts,
    pub added: &'a [LineRange],
}

/// What a search found.
#[derive(Debug, Default)]
pub struct CloneReport {
    /// With the number of the changed file they are in.
    pub smells: Vec<(usize, Smell)>,
    /// What a person should know: what was not looked at.
    pub notes: Vec<String>,
    /// Files of the snapshot, in the languages of the change, whose fingerprints were compared.
    pub files_seen: usize,
    /// Those that the budget left for a later search.
    pub files_left: usize,
    /// Bytes that were read since fingerprints were not known.
    pub bytes_read: u64,
}

/// Somebody who keeps the fingerprints of files.
pub trait Known: Send + Sync {
    /// What [`fingerprints`] makes of a file; `None` where that is not known. `blob` is the blob's id, in hexadecimal.
    fn fingerprints(&self, path: &str, blob: &str) -> Option<&[u32]>;
}

/// A search with what is known of the snapshot and its budget.
#[derive(Clone, Copy)]
pub struct CloneSearch<'a> {
    known: Option<&'a dyn Known>,
    budget: u64,
}

/// Files above this many bytes have no fingerprints: a program wrote them, or nobody copies from them.
const MAX_FILE: usize = 1_000_000;
/// A fingerprint in more files than this is an idiom.
const MAX_FILES_OF_PRINT: usize = 30;
/// Another one means that the fingerprints of the same file are others.
pub const FINGERPRINTS: u32 = lexer::VERSION << 16 | (GRAM as u32) << 8 | WINDOW as u32;
/// Files that are read and compared in full, those with most fingerprints in common first.
const MAX_CANDIDATES: usize = 48;
/// Copies that existed before a change: fewer than this share of the tokens is on added lines. Percent.
const MIN_ADDED: u32 = 50;
/// From this share on a place is new and no old one that was edited. Percent.
const MOSTLY_NEW: u32 = 80;

impl<'a> CloneSearch<'a> {
    /// Bytes that one search reads to make fingerprints which are not known; about 0.1 s of work.
    pub const BUDGET: u64 = 8 << 20;

    pub fn new(known: Option<&'a dyn Known>) -> Self {
        Self { known, budget: Self::BUDGET }
    }

    /// The same with another budget, in bytes read per search.
    pub fn with_budget(self, bytes: u64) -> Self {
        Self { budget: bytes, ..self }
    }

    /// Looks for what `changed` adds: in the changed files themselves, in each other, and in the rest of the snapshot.
    /// `tree` is the snapshot's tree without files that a review leaves out; `read` gives a blob's content.
    pub fn run(
        &self,
        changed: &[ChangedFile<'_>],
        tree: &[TreeFile],
        read: &mut dyn FnMut(&str) -> Option<Vec<u8>>,
        limits: &Limits,
    ) -> CloneReport {
        let mut report = CloneReport::default();
        let rules = Rules::of(limits);
        let files: Vec<Changed<'_>> = changed.iter().map(|file| Changed::new(file, rules.min_tokens)).collect();
        if files.iter().all(|file| file.queries.is_empty()) {
            return report;
        }
        let mut found: Vec<Vec<Found<'_>>> = files.iter().map(|_| Vec::new()).collect();
        among_changed(&files, &rules, &mut found);

        let paths: std::collections::HashSet<&str> = files.iter().map(|file| file.place.path).collect();
        let mut others: Vec<Other<'_>> = tree
            .iter()
            .filter(|file| !paths.contains(file.path.as_str()) && !is_foreign(&file.path))
            .filter_map(|file| {
                let family = Family::of(Language::detect(&file.path, &[])?);
                let wanted = files.iter().any(|changed| changed.family == family && !changed.queries.is_empty());
                wanted.then(|| Other { file, family, hits: Vec::new() })
            })
            .collect();
        self.look_up(&files, &mut others, read, &mut report);

        for other in candidates(others) {
            let Some(text) = read(&other.file.blob) else { continue };
            let Some(language) = Language::detect(&other.file.path, &[]) else { continue };
            let tokens = lexer::tokens(language, &text);
            let prints = matching::fingerprints(&tokens);
            for (file, found) in files.iter().zip(&mut found).filter(|(file, _)| file.family == other.family) {
                for copy in matching::copies(&file.tokens, &file.prints, Some((&tokens, &prints))) {
                    if let Some(judged) = file.judge(&copy, &tokens, &rules) {
                        found.push(Found { there_path: other.file.path.clone(), there_facts: None, judged });
                    }
                }
            }
        }
        for (index, (file, found)) in files.iter().zip(found).enumerate() {
            report.smells.extend(file.place.smells(found, limits).into_iter().map(|smell| (index, smell)));
        }
        report
    }

    /// Fills the hits of `others`, from what is known or by reading.
    fn look_up(
        &self,
        files: &[Changed<'_>],
        others: &mut [Other<'_>],
        read: &mut dyn FnMut(&str) -> Option<Vec<u8>>,
        report: &mut CloneReport,
    ) {
        let mut queries = Queries::default();
        for print in files.iter().flat_map(|file| &file.queries) {
            queries.add(*print);
        }
        let mut unknown: Vec<usize> = Vec::new();
        for (index, other) in others.iter_mut().enumerate() {
            match self.known.and_then(|known| known.fingerprints(&other.file.path, &other.file.blob)) {
                Some(prints) => queries.hits(prints, &mut other.hits),
                None => unknown.push(index),
            }
        }
        report.files_seen = others.len() - unknown.len();
        unknown.sort_by_cached_key(|&index| {
            let path = others[index].file.path.as_str();
            (files.iter().map(|file| distance(file.place.path, path)).min(), index)
        });
        let mut made = 0;
        for &index in &unknown {
            if report.bytes_read >= self.budget {
                break;
            }
            let other = &mut others[index];
            let text = read(&other.file.blob).unwrap_or_default();
            // Opening a file costs something, however small it is.
            report.bytes_read += text.len() as u64 + 1024;
            queries.hits(&fingerprints(&other.file.path, &text), &mut other.hits);
            made += 1;
        }
        report.files_seen += made;
        report.files_left = unknown.len() - made;
        if report.files_left > 0 {
            report.notes.push(format!(
                "copies were looked for in {} of {} of the snapshot in the languages of the change, those nearest to it \
                 first; later reviews see more",
                report.files_seen,
                text::count(report.files_seen + report.files_left, "file")
            ));
        }
    }
}

/// A changed file, ready to be compared.
struct Changed<'a> {
    place: Place<'a>,
    family: Family,
    tokens: Vec<Token>,
    list: Vec<Print>,
    /// All fingerprints.
    prints: FastMap<u32, Vec<u32>>,
    /// Those near added lines.
    queries: Vec<u32>,
    /// For every token how many before it are on added lines.
    added_before: Vec<u32>,
}

impl<'a> Changed<'a> {
    fn new(file: &ChangedFile<'a>, min_tokens: u32) -> Self {
        let tokens = lexer::tokens(file.source.language, file.source.text);
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
        let list = matching::fingerprints(&tokens);
        let prints = matching::by_hash(&list);
        let reach = WINDOW + GRAM;
        let mut queries: Vec<u32> = Vec::new();
        if count * 2 >= min_tokens {
            let near = |print: &&Print| {
                let from = (print.at as usize).saturating_sub(reach);
                let to = (print.at as usize + GRAM + reach).min(tokens.len());
                added_before[to] - added_before[from] > 0 && prints.contains_key(&print.hash)
            };
            queries.extend(list.iter().filter(near).map(|print| print.hash));
        }
        let place = Place::new(file.source, file.facts);
        Self { place, family: Family::of(file.source.language), tokens, list, prints, queries, added_before }
    }

    fn added(&self, from: u32, to: u32) -> u32 {
        let at = |index: u32| self.added_before.get(index as usize).copied().unwrap_or(0);
        at(to).saturating_sub(at(from))
    }

    /// Whether the change edited both sides of a copy that was there before: it had to, and makes nothing worse.
    fn is_edited_with(&self, copy: &Match, there: &Self) -> bool {
        let share = |file: &Self, (from, to): (u32, u32)| file.added(from, to) * 100 / (to - from).max(1);
        let (here, there) = (share(self, copy.a()), share(there, copy.b()));
        there > 0 && here < MOSTLY_NEW && there < MOSTLY_NEW
    }

    /// The part of a copy that the change added, judged; `None` when the copy is older than the change.
    fn judge(&self, copy: &Match, there: &[Token], rules: &Rules) -> Option<Judged> {
        if copy.tokens() < rules.min_tokens {
            return None;
        }
        let (start, end) = copy.a();
        let (mut from, mut to) = (start, end);
        while from < to && self.added(from, from + 1) == 0 {
            from += 1;
        }
        while from < to && self.added(to - 1, to) == 0 {
            to -= 1;
        }
        // Short additions are a copy together with the old code around them, if they are at least half of it.
        let missing = rules.min_tokens.saturating_sub(to - from);
        let before = missing.min(from - start);
        let (from, to) = (from - before, (to + (missing - before)).min(end));
        if (to - from) * MIN_ADDED > self.added(from, to) * 100 {
            return None;
        }
        let judged = self.place.judge(&copy.clip(from, to), &self.tokens, there, rules)?;
        let (from, to) = judged.copy.a();
        ((to - from) * MIN_ADDED <= self.added(from, to) * 100).then_some(judged)
    }
}

/// Copies within the changed files and between them: what two of them add is reported once, on the later one.
fn among_changed<'a>(files: &[Changed<'a>], rules: &Rules, found: &mut [Vec<Found<'a>>]) {
    for (index, file) in files.iter().enumerate().filter(|(_, file)| !file.queries.is_empty()) {
        for copy in matching::copies(&file.tokens, &file.prints, None) {
            let judged = file
                .judge(&copy, &file.tokens, rules)
                // The earlier place is the new one.
                .or_else(|| file.judge(&copy.swapped(), &file.tokens, rules));
            if let Some(judged) = judged.filter(|_| !file.is_edited_with(&copy, file)) {
                let there_path = file.place.path.to_owned();
                found[index].push(Found { there_path, there_facts: file.place.facts, judged });
            }
        }
        for (number, other) in files.iter().enumerate().filter(|(_, other)| other.family == file.family) {
            if number == index {
                continue;
            }
            for copy in matching::copies(&file.tokens, &file.prints, Some((&other.tokens, &other.list))) {
                let Some(judged) = file.judge(&copy, &other.tokens, rules) else { continue };
                if file.is_edited_with(&copy, other) {
                    continue;
                }
                // The other file reports it when it is the later one and its side is new as well.
                if number > index && other.judge(&copy.swapped(), &file.tokens, rules).is_some() {
                    continue;
                }
                let there_path = other.place.path.to_owned();
                found[index].push(Found { there_path, there_facts: other.place.facts, judged });
            }
        }
    }
}

/// A file of the snapshot and the fingerprints that it shares with the change.
struct Other<'a> {
    file: &'a TreeFile,
    family: Family,
    hits: Vec<u32>,
}

/// The files that share most, idioms aside.
fn candidates(others: Vec<Other<'_>>) -> Vec<Other<'_>> {
    let mut files_of: FastMap<u32, usize> = FastMap::default();
    for print in others.iter().flat_map(|other| &other.hits) {
        *files_of.entry(*print).or_default() += 1;
    }
    let mut chosen: Vec<(usize, Other<'_>)> = others
        .into_iter()
        .filter_map(|other| {
            let rare = other.hits.iter().filter(|print| files_of.get(print).is_some_and(|&n| n <= MAX_FILES_OF_PRINT));
            let rare = rare.count();
            (rare > 0).then_some((rare, other))
        })
        .collect();
    chosen.sort_by(|(one, a), (other, b)| other.cmp(one).then_with(|| a.file.path.cmp(&b.file.path)));
    chosen.truncate(MAX_CANDIDATES);
    chosen.into_iter().map(|(_, other)| other).collect()
}

/// The fingerprints that are looked for, with a small filter in front: nearly all that are asked for are not there.
#[derive(Default)]
struct Queries {
    filter: Vec<u64>,
    prints: FastMap<u32, ()>,
}

impl Queries {
    fn add(&mut self, print: u32) {
        self.filter.resize(1024, 0);
        self.filter[(print >> 6 & 1023) as usize] |= 1 << (print & 63);
        self.prints.insert(print, ());
    }

    fn contains(&self, print: u32) -> bool {
        self.filter.get((print >> 6 & 1023) as usize).is_some_and(|word| word >> (print & 63) & 1 == 1)
            && self.prints.contains_key(&print)
    }

    fn hits(&self, prints: &[u32], hits: &mut Vec<u32>) {
        hits.extend(prints.iter().filter(|&&print| self.contains(print)));
    }
}

/// The fingerprints of a file by which a search finds it, sorted, each once; none for files that a program wrote, and for
/// those in no language of ours.
pub fn fingerprints(path: &str, text: &[u8]) -> Vec<u32> {
    let Some(language) = Language::detect(path, text) else { return Vec::new() };
    if text.len() > MAX_FILE || is_generated(text) {
        return Vec::new();
    }
    let mut prints: Vec<u32> =
        matching::fingerprints(&lexer::tokens(language, text)).iter().map(|print| print.hash).collect();
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

/// Whether a path is that of other people's code, in case the tree was not filtered.
pub(super) fn is_foreign(path: &str) -> bool {
    path.ends_with(".min.js")
        || path.split('/').any(|part| {
            matches!(
                part,
                "node_modules" | "vendor" | "third_party" | "third-party" | "vendored" | "external" | "deps" | "dist"
            )
        })
}

/// How far two files are from each other: folders up and down.
fn distance(one: &str, other: &str) -> usize {
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
        assert_eq!(distance("a/b/c.rs", "a/b/d.rs"), 0);
        assert_eq!(distance("a/b/c.rs", "a/x/d.rs"), 2);
        assert_eq!(distance("c.rs", "a/x/d.rs"), 2);
    }
}
