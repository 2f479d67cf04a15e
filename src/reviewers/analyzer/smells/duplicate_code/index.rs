//! Copies across a set of files, for a whole folder or tree: fingerprints are collected file by file, texts are read
//! again only for files that share some.

use std::collections::HashMap;

use super::indexed_line_ranges::IndexedLineRanges;
use super::lexer::{self, CloneToken, LanguageFamily};
use super::matching::{self, CloneRules, FastMap, TokenFingerprint};
use super::search::{is_generated, is_vendored};
use super::{LocatedClone, ReportingFile};
use crate::reviewers::analyzer::facts;
use crate::reviewers::analyzer::language::Language;
use crate::reviewers::analyzer::limits::Limits;
use crate::reviewers::analyzer::smells::Smell;

/// A fingerprint in more files than this is an idiom.
const MAX_FILES_PER_FINGERPRINT: usize = 12;
/// Pairs of files that are compared in full, those with most fingerprints in common first.
const MAX_PAIRS: usize = 20_000;

/// Fingerprints of many files: 12 bytes for about 13 tokens.
#[derive(Default)]
pub struct CloneIndex {
    files: Vec<(String, Language)>,
    fingerprints: Vec<(u32, u32)>,
}

/// A file as it is compared.
struct LexedFile {
    text: Vec<u8>,
    tokens: Vec<CloneToken>,
    fingerprints: Vec<TokenFingerprint>,
}

impl CloneIndex {
    /// Takes up a file. Generated and foreign files are left out.
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

    /// Takes up what another index has, for files that were read in parallel.
    pub fn extend(&mut self, other: Self) {
        let offset = self.files.len() as u32;
        self.files.extend(other.files);
        self.fingerprints.extend(other.fingerprints.into_iter().map(|(hash, file)| (hash, file + offset)));
    }

    /// The copies between different files; each is reported on the later path, with that path.
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
            // Files in use stay, the rest is read again when it is needed.
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

    /// Pairs of files with something in common, later path first.
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
