//! Numbers the tokens of a language that stay in forms: the grammar's own tokens and the names of the published list.

use std::collections::HashMap;
use std::sync::OnceLock;

use crate::knowledge::stdlib_names::{self, StdlibSection};
use crate::syntax::language::Language;

/// Index of a kept token in its [`TokenVocabulary`].
pub(super) type TokenId = u32;

/// Kept tokens of one language.
pub(super) struct TokenVocabulary {
    texts: Vec<Box<str>>,
    digests: Vec<u64>,
    names: HashMap<&'static str, StdlibName>,
    /// Tokens by kind of unnamed node; `not in` has two.
    kinds: Vec<KeywordTokens>,
}

/// Name of the list, with the places where it is kept.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct StdlibName {
    pub kept: TokenId,
    pub everywhere: bool,
    /// Kept where it is called, or last in a path.
    pub called: bool,
    /// Kept anywhere in a path.
    pub in_paths: bool,
}

/// Tokens of an unnamed node.
#[derive(Debug, Clone, Copy)]
pub(super) enum KeywordTokens {
    /// No token, for example a line end.
    None,
    One(TokenId),
    Two(TokenId, TokenId),
}

impl TokenVocabulary {
    pub fn for_language(language: Language) -> &'static Self {
        static ALL: [OnceLock<TokenVocabulary>; Language::ALL.len()] = [const { OnceLock::new() }; Language::ALL.len()];
        ALL[language.index()].get_or_init(|| Self::new(language))
    }

    fn new(language: Language) -> Self {
        let (mut numbers, mut texts) = (HashMap::<Box<str>, TokenId>::new(), Vec::<Box<str>>::new());
        let mut number = |text: &str| {
            *numbers.entry(text.into()).or_insert_with(|| {
                texts.push(text.into());
                (texts.len() - 1) as TokenId
            })
        };
        let mut names: HashMap<&'static str, StdlibName> = HashMap::new();
        for (text, section) in stdlib_names::parse_names(language.name()) {
            let name = names.entry(text).or_default();
            name.kept = number(text);
            match section {
                StdlibSection::Types | StdlibSection::Values => name.everywhere = true,
                StdlibSection::Functions => name.called = true,
                StdlibSection::Modules => name.in_paths = true,
            }
        }
        let grammar = language.grammar();
        let kinds = (0..grammar.node_kind_count()).map(|id| {
            let id = id as u16;
            let kind = grammar.node_kind_for_id(id).filter(|_| !grammar.node_kind_is_named(id)).unwrap_or("");
            let mut words = kind.split_whitespace();
            match (words.next(), words.next()) {
                (None, _) => KeywordTokens::None,
                (Some(word), None) => KeywordTokens::One(number(word)),
                (Some(first), Some(second)) => KeywordTokens::Two(number(first), number(second)),
            }
        });
        let kinds = kinds.collect();
        let digests = texts.iter().map(|text| hash_fnv1a(text.as_bytes())).collect();
        Self { texts, digests, names, kinds }
    }

    pub fn text(&self, kept: TokenId) -> &str {
        &self.texts[kept as usize]
    }

    pub fn digest(&self, kept: TokenId) -> u64 {
        self.digests[kept as usize]
    }

    pub fn name(&self, text: &str) -> Option<StdlibName> {
        self.names.get(text).copied()
    }

    pub fn tokens(&self, kind: u16) -> KeywordTokens {
        self.kinds.get(usize::from(kind)).copied().unwrap_or(KeywordTokens::None)
    }
}

/// Computes the FNV-1a hash, which is the same on every machine.
pub(super) fn hash_fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Combines two digests; the order matters.
pub(super) fn mix_digests(left: u64, right: u64) -> u64 {
    let mixed = (left.rotate_left(5) ^ right).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 29)
}
