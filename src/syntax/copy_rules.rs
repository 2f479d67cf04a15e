//! Rules of the lexer for the search for copies: the section `copies` of each language's file.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::definition;
use super::language::Language;

/// End of an import, whose tokens do not count as copied code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImportEnd {
    Semicolon,
    /// End of a line outside of brackets.
    Line,
    /// The first string.
    Text,
}

/// Lexical rules of a language. The lexer reads no tree, so these rules are coarser than the grammar.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CopyRules {
    /// Language whose rules hold, by the name of its file. Files of languages with the same rules are compared with each
    /// other.
    same_as: Option<String>,
    pub keywords: Vec<String>,
    /// `//` and `/* */`.
    pub slash_comments: bool,
    pub hash_comments: bool,
    /// True if a comment between `/*` and `*/` may hold others.
    pub nested_comments: bool,
    /// `"""`, possibly over several lines.
    pub triple_quotes: bool,
    /// True if a string in plain quotes may span lines.
    pub strings_span_lines: bool,
    /// Words that begin an import at the beginning of a line, by its end.
    pub imports: BTreeMap<ImportEnd, Vec<String>>,
}

/// Returns the language whose rules hold for a language: itself, or the one that its section names.
pub fn rule_language(language: Language) -> Language {
    let leader = definition::sections(language).copies.same_as.as_deref();
    leader.and_then(|stem| Language::ALL.into_iter().find(|other| other.file_stem() == stem)).unwrap_or(language)
}

/// Returns the rules of a language that gives rules to its family, see [`rule_language`].
pub fn copy_rules(language: Language) -> &'static CopyRules {
    &definition::sections(language).copies
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_has_rules_of_its_own_or_of_another_language() {
        for language in Language::ALL {
            let leader = rule_language(language);
            assert!(!copy_rules(leader).keywords.is_empty(), "{language:?}");
            assert_eq!(rule_language(leader), leader, "{language:?}: rules of {leader:?} that are not its own");
        }
    }
}
