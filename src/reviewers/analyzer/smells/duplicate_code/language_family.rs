//! Language families for the search for copies, with their lexical rules.

use std::sync::LazyLock;

use crate::syntax::copy_rules::{self, ImportEnd};
use crate::syntax::definition::PerLanguage;
use crate::syntax::language::Language;

/// A group of languages whose files are compared with each other, by the language whose rules hold for all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LanguageFamily(Language);

impl LanguageFamily {
    pub fn from_language(language: Language) -> Self {
        static ALL: LazyLock<[Language; Language::ALL.len()]> =
            LazyLock::new(|| Language::ALL.map(copy_rules::rule_language));
        Self(ALL[language.index()])
    }

    /// Returns the language whose rules hold.
    pub(super) fn dialect(self) -> Language {
        self.0
    }
}

/// Lexical rules of a language family, prepared for the lexer.
pub(super) struct LexicalRules {
    pub keywords: KeywordHashes,
    pub has_slash_comments: bool,
    pub has_hash_comments: bool,
    pub has_nested_comments: bool,
    pub has_triple_quotes: bool,
    pub strings_span_lines: bool,
    /// Words that begin an import at the beginning of a line.
    pub import_words: Vec<(&'static str, ImportEnd)>,
}

impl LexicalRules {
    pub fn for_language(dialect: Language) -> &'static Self {
        static ALL: PerLanguage<LexicalRules> = PerLanguage::new(LexicalRules::new);
        ALL.get(dialect)
    }

    fn new(dialect: Language) -> Self {
        let rules = copy_rules::copy_rules(dialect);
        let imports = rules.imports.iter();
        Self {
            keywords: KeywordHashes::new(&rules.keywords),
            has_slash_comments: rules.slash_comments,
            has_hash_comments: rules.hash_comments,
            has_nested_comments: rules.nested_comments,
            has_triple_quotes: rules.triple_quotes,
            strings_span_lines: rules.strings_span_lines,
            import_words: imports.flat_map(|(end, words)| words.iter().map(move |word| (&**word, *end))).collect(),
        }
    }
}

/// Returns the FNV-1a hash of a text, folded once more to improve its low bits.
pub(super) fn hash_text(text: &[u8]) -> u32 {
    let mut hash = 0x811c_9dc5_u32;
    for &byte in text {
        hash = (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    }
    hash ^ (hash >> 15)
}

/// Hashes of a family's keywords, in buckets by their low byte.
pub(super) struct KeywordHashes(Box<[[u32; 6]; 256]>);

impl KeywordHashes {
    fn new(keywords: &[String]) -> Self {
        let mut table = Box::new([[0u32; 6]; 256]);
        for word in keywords {
            let hash = hash_text(word.as_bytes());
            if let Some(slot) = table[(hash & 255) as usize].iter_mut().find(|slot| **slot == 0) {
                *slot = hash;
            }
        }
        Self(table)
    }

    pub(super) fn contains(&self, hash: u32) -> bool {
        self.0[(hash & 255) as usize].contains(&hash)
    }
}
