//! Copies across a set of files, for a whole folder or tree: fingerprints are collected file by file, texts are read
//! again only for files that share some.

use std::collections::HashMap;

use super::lexer::{self, Family, Token};
use super::matching::{self, FastMap, Print, Rules};
use super::search::{is_foreign, is_generated};
use super::spans::Spans;
use super::{Found, Place};
use crate::provider::builtin::facts;
use crate::provider::builtin::language::Language;
use crate::provider::builtin::limits::Limits;
use crate::provider::builtin::smells::Smell;

/// A fingerprint in more files than this is an idiom.
const MAX_FILES_OF_PRINT: usize = 12;
/// Pairs of files that are compared in full, those with most fingerprints in common first.
const MAX_PAIRS: usize = 20_000;

/// Fingerprints of many files: 12 bytes for about 13 tokens.
#[derive(Default)]
pub struct CloneIndex {
    files: Vec<(String, Language)>,
    prints: Vec<(u32, u32)>,
}

/// A file as it is compared.
struct Lexed {
    text: Vec<u8>,
    tokens: Vec<Token>,
    list: Vec<Print>,
}

impl CloneIndex {
    /// Takes up a file. Generated and foreign files are left out.
    pub fn add(&mut self, path: &str, language: Language, text: &[u8]) {
        if is_foreign(path) || is_generated(text) {
            return;
        }
        let file = self.files.len() as u32;
        self.files.push((path.to_owned(), language));
        let first = self.prints.len();
        let list = matching::fingerprints(&lexer::tokens(language, text));
        self.prints.extend(list.iter().map(|print| (print.hash, file)));
        self.prints[first..].sort_unstable();
    }

    /// Takes up what another index has, for files that were read in parallel.
    pub fn extend(&mut self, other: Self) {
        let offset = self.files.len() as u32;
        self.files.extend(other.files);
        self.prints.extend(other.prints.into_iter().map(|(hash, file)| (hash, file + offset)));
    }

    /// The copies between different files; each is reported on the later path, with that path.
    pub fn find_all(mut self, read: &mut dyn FnMut(&str) -> Option<Vec<u8>>, limits: &Limits) -> Vec<(String, Smell)> {
        let rules = Rules::of(limits);
        let mut smells = Vec::new();
        let mut pairs = self.pairs();
        pairs.sort_unstable();
        let mut lexed: HashMap<u32, Option<Lexed>> = HashMap::new();
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
                lexed.entry(file).or_insert_with(|| self.lex(file, read));
            }
            let Some(Some(here)) = lexed.get(&late) else { continue };
            let (path, _) = &self.files[late as usize];
            let prints = matching::by_hash(&here.list);
            let place = Place {
                path,
                text: &here.text,
                facts: None,
                test_lines: Spans::default(),
                functions: Spans::default(),
                is_test_file: facts::is_test_path(path),
            };
            let mut found = Vec::new();
            for early in partners {
                let Some(Some(there)) = lexed.get(&early) else { continue };
                for copy in matching::copies(&here.tokens, &prints, Some((&there.tokens, &there.list))) {
                    if let Some(judged) = place.judge(&copy, &here.tokens, &there.tokens, &rules) {
                        found.push(Found {
                            there_path: self.files[early as usize].0.clone(),
                            there_facts: None,
                            judged,
                        });
                    }
                }
            }
            smells.extend(place.smells(found, limits).into_iter().map(|smell| (path.clone(), smell)));
        }
        smells
    }

    fn lex(&self, file: u32, read: &mut dyn FnMut(&str) -> Option<Vec<u8>>) -> Option<Lexed> {
        let (path, language) = self.files.get(file as usize)?;
        let text = read(path)?;
        let tokens = lexer::tokens(*language, &text);
        let list = matching::fingerprints(&tokens);
        Some(Lexed { text, tokens, list })
    }

    /// Pairs of files with something in common, later path first.
    fn pairs(&mut self) -> Vec<(u32, u32)> {
        self.prints.sort_unstable();
        self.prints.dedup();
        let mut shared: FastMap<u64, u32> = FastMap::default();
        for group in self.prints.chunk_by(|one, other| one.0 == other.0) {
            if !(2..=MAX_FILES_OF_PRINT).contains(&group.len()) {
                continue;
            }
            for (index, &(_, one)) in group.iter().enumerate() {
                for &(_, other) in &group[..index] {
                    let family = |file: u32| Family::of(self.files[file as usize].1);
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
