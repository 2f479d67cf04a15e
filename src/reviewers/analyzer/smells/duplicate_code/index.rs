//! Finds copies across a set of files, for a whole folder or tree. Fingerprints are collected file by file; only files
//! that share fingerprints are read again.

use std::collections::HashMap;

use super::indexed_line_ranges::IndexedLineRanges;
use super::lexer::{self, CloneToken, LanguageFamily};
use super::matching::{self, CloneRules, FastMap, TokenFingerprint};
use super::search::{is_generated, is_vendored};
use super::{LocatedClone, ReportingFile};
use crate::reviewers::analyzer::limits::Limits;
use crate::reviewers::analyzer::smells::Smell;
use crate::syntax::facts;
use crate::syntax::language::Language;

/// Maximum number of files with the same fingerprint. A more common fingerprint is an idiom and is ignored.
const MAX_FILES_PER_FINGERPRINT: usize = 12;
/// Maximum number of pairs of files to compare in full. Pairs with the most fingerprints in common come first.
const MAX_PAIRS: usize = 20_000;

/// Fingerprints of many files: 8 bytes per fingerprint, and about one fingerprint per 13 tokens.
#[derive(Default)]
pub struct CloneIndex {
    files: Vec<(String, Language)>,
    fingerprints: Vec<(u32, u32)>,
}

/// A tokenized file with its fingerprints.
struct LexedFile {
    text: Vec<u8>,
    tokens: Vec<CloneToken>,
    fingerprints: Vec<TokenFingerprint>,
}

impl CloneIndex {
    /// Adds a file. Generated and vendored files are left out.
    pub fn add_file(&mut self, path: &str, language: Language, text: &[u8]) {
        if is_vendored(path) || is_generated(text) {
            return;
        }
        let file = self.files.len() as u32;
        self.files.push((path.to_owned(), language));
        let first = self.fingerprints.len();
        let list = matching::winnow_fingerprints(&lexer::tokenize(language, text));
        self.fingerprints.extend(list.iter().map(|print| (print.hash, file)));
        self.fingerprints[first..].sort_unstable();
    }

    /// Adds the content of another index, for files that were read in parallel.
    pub fn extend(&mut self, other: Self) {
        let offset = self.files.len() as u32;
        self.files.extend(other.files);
        self.fingerprints.extend(other.fingerprints.into_iter().map(|(hash, file)| (hash, file + offset)));
    }

    /// Finds the copies between different files. Each copy is reported on the later path, which is the first value of
    /// the pair. `read` returns the text of a path.
    pub fn find_clones(
        mut self,
        read: &mut dyn FnMut(&str) -> Option<Vec<u8>>,
        limits: &Limits,
    ) -> Vec<(String, Smell)> {
        let rules = CloneRules::from_limits(limits);
        let mut smells = Vec::new();
        let mut pairs = self.candidate_pairs();
        pairs.sort_unstable();
        let mut lexed: HashMap<u32, Option<LexedFile>> = HashMap::new();
        let mut from = 0;
        while let Some(&(late, _)) = pairs.get(from) {
            let to = from + pairs[from..].partition_point(|&(file, _)| file == late);
            let partners: Vec<u32> = pairs[from..to].iter().map(|&(_, early)| early).collect();
            from = to;
            // Bound the memory: drop all texts, and read them again when they are needed.
            if lexed.len() > 512 {
                lexed.clear();
            }
            for &file in partners.iter().chain([&late]) {
                lexed.entry(file).or_insert_with(|| self.lex_file(file, read));
            }
            let Some(Some(here)) = lexed.get(&late) else { continue };
            let (path, _) = &self.files[late as usize];
            let prints = matching::group_by_hash(&here.fingerprints);
            let place = ReportingFile {
                path,
                text: &here.text,
                facts: None,
                test_lines: IndexedLineRanges::default(),
                functions: IndexedLineRanges::default(),
                is_test_file: facts::is_test_path(path),
            };
            let mut found = Vec::new();
            for early in partners {
                let Some(Some(there)) = lexed.get(&early) else { continue };
                for copy in matching::find_matches(&here.tokens, &prints, Some((&there.tokens, &there.fingerprints))) {
                    if let Some(judged) = place.evaluate_match(&copy, &here.tokens, &there.tokens, &rules) {
                        found.push(LocatedClone {
                            there_path: self.files[early as usize].0.clone(),
                            there_facts: None,
                            accepted: judged,
                        });
                    }
                }
            }
            smells.extend(place.build_smells(found, limits).into_iter().map(|smell| (path.clone(), smell)));
        }
        smells
    }

    fn lex_file(&self, file: u32, read: &mut dyn FnMut(&str) -> Option<Vec<u8>>) -> Option<LexedFile> {
        let (path, language) = self.files.get(file as usize)?;
        let text = read(path)?;
        let tokens = lexer::tokenize(*language, &text);
        let list = matching::winnow_fingerprints(&tokens);
        Some(LexedFile { text, tokens, fingerprints: list })
    }

    /// Returns the pairs of files with fingerprints in common, later path first.
    fn candidate_pairs(&mut self) -> Vec<(u32, u32)> {
        self.fingerprints.sort_unstable();
        self.fingerprints.dedup();
        let mut shared: FastMap<u64, u32> = FastMap::default();
        for group in self.fingerprints.chunk_by(|one, other| one.0 == other.0) {
            if !(2..=MAX_FILES_PER_FINGERPRINT).contains(&group.len()) {
                continue;
            }
            for (index, &(_, one)) in group.iter().enumerate() {
                for &(_, other) in &group[..index] {
                    let family = |file: u32| LanguageFamily::from_language(self.files[file as usize].1);
                    if family(one) == family(other) {
                        let later = self.files[one as usize].0 > self.files[other as usize].0;
                        let (late, early) = if later { (one, other) } else { (other, one) };
                        *shared.entry(u64::from(late) << 32 | u64::from(early)).or_default() += 1;
                    }
                }
            }
        }
        let mut pairs: Vec<(u32, u64)> = shared.into_iter().map(|(pair, count)| (count, pair)).collect();
        pairs.sort_unstable_by(|one, other| other.cmp(one));
        pairs.truncate(MAX_PAIRS);
        pairs.into_iter().map(|(_, pair)| ((pair >> 32) as u32, pair as u32)).collect()
    }
}
