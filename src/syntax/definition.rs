//! Languages as data: the files `assets/languages/NAME.toml`, which the build converts to JSON. They are embedded and parsed
//! on first use.
//!
//! The head of a file names the language and says how to recognize its files ([`LanguageHead`]). Each section below it
//! lists the node kinds of the grammar by role, for one reader of syntax trees:
//!
//! | section | reader | roles |
//! |---|---|---|
//! | `kinds` | several | [`KindGroups`] |
//! | `metrics`, `metric_tokens` | metrics of functions and classes | `FLAG_NAMES` in [`super::node_kinds`] |
//! | `outline` | chunks of the index | `index::chunk::OutlineRole` |
//! | `symbols` | definitions of a name | `context::tools::symbols::DefiningRole` |
//! | `statements` | smells about names and control flow | `SmellNodeRole` |
//! | `literals` | MAGIC_NUMBERS | `LiteralRole` |
//! | `errors` | MISSING_ERROR_HANDLING | `ErrorNodeRole` |
//! | `coupling` | TIGHT_COUPLING | `CouplingRole` |
//! | `patterns` | learned patterns | `ROLE_NAMES` in `knowledge::abstraction` |
//! | `strings` | HARDCODED_CONFIGURATION | `StringNodeRole` |
//!
//! Five sections hold more than kinds by role: `fields` for grammars that name few fields ([`super::field_rules`]),
//! `conventions` for habits that no grammar shows ([`Conventions`]), `imports` for the text of an import
//! ([`ImportRules`]), `copies` for the lexer of the search for copies ([`CopyRules`]), and `vocabulary` for the words
//! that a learned pattern may hold (a test reads it).
//!
//! The kinds of the group `comments` have the role `comment` in every section whose reader knows it; a section lists only
//! what it takes for a comment besides.
//!
//! Kinds of a section are named nodes, and anonymous nodes in sections that end with `_tokens`. Tests hold every kind
//! against its grammar and every role against its reader.

use std::collections::{BTreeMap, HashMap};
use std::sync::{LazyLock, OnceLock};

use serde::Deserialize;

use super::conventions::Conventions;
use super::copy_rules::CopyRules;
use super::field_rules::FieldSection;
use super::import_rules::ImportRules;
use super::language::Language;
use super::node_kinds::FunctionNesting;

/// Name of a language, and what tells that a file is written in it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LanguageHead {
    /// Name for file names and the command line.
    pub name: String,
    /// File name extensions, without the dot.
    pub extensions: Vec<String>,
    /// Programs of a `#!` line, without version numbers.
    #[serde(default)]
    pub interpreters: Vec<String>,
    #[serde(default)]
    pub function_nesting: FunctionNesting,
    /// True if lines that begin with `#` belong to the preprocessor.
    #[serde(default)]
    pub preprocessor: bool,
    /// Operators whose repetition makes the grammar ambiguous, one byte each; `syntax::source` limits how many may
    /// follow each other. Without `>` for languages whose files hold markup.
    #[serde(default = "default_chain_operators")]
    pub chain_operators: String,
    /// Binary operators, one byte each, behind which a `*` at the end of a line makes the grammar ambiguous.
    #[serde(default)]
    pub lone_star_operators: String,
    /// Operators that, behind a comma and with nothing on their left, cost the parser the square of their number.
    #[serde(default)]
    pub leading_operators: String,
    /// Ends of the names of test files, before the extension.
    #[serde(default)]
    pub test_files: Vec<String>,
    /// Ends of the names of folders with test code.
    #[serde(default)]
    pub test_folders: Vec<String>,
    /// File with the sections of this language, if it is another one.
    same_kinds_as: Option<String>,
}

/// Returns the operators that are ambiguous in most languages: generics or comparisons, references or bit operations,
/// conditionals or optional values.
fn default_chain_operators() -> String {
    "<=>&?".to_owned()
}

/// Node kinds by role.
pub(super) type KindsByRole = BTreeMap<String, Vec<String>>;

/// Sections of a language's file.
#[derive(Debug, Deserialize)]
pub(super) struct Sections {
    #[serde(default)]
    kinds: KindGroups,
    #[serde(default)]
    pub fields: FieldSection,
    #[serde(default)]
    pub conventions: Conventions,
    #[serde(default)]
    pub copies: CopyRules,
    #[serde(default)]
    pub imports: ImportRules,
    #[cfg(test)]
    #[serde(default)]
    vocabulary: GrammarWords,
    /// Sections for [`super::role_map::RoleMap`], by name.
    #[serde(flatten)]
    pub roles: HashMap<String, KindsByRole>,
}

/// Words of a language, written by hand and not from its grammar: the section `vocabulary`.
#[cfg(test)]
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct GrammarWords {
    /// Keywords and the other words of the grammar.
    keywords: Vec<String>,
}

/// Node kinds that several readers look for: the section `kinds`. An empty group means that the language has none.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct KindGroups {
    /// Leaf nodes that are names.
    pub names: Vec<String>,
    /// Leaf nodes that are symbols, which count as uses of the name.
    pub symbols: Vec<String>,
    pub imports: Vec<String>,
    /// Calls and commands that may import a file.
    pub calls: Vec<String>,
    /// Nodes that may name another file: `mod a;`, `export * from "a"`.
    pub file_references: Vec<String>,
    /// Functions and blocks that are arguments of calls.
    pub anonymous_functions: Vec<String>,
    /// Strings that may name a file or a test.
    pub plain_strings: Vec<String>,
    /// Strings that may be a secret or an address.
    pub string_literals: Vec<String>,
    /// Declarations with a tag that describes their encoding (Go).
    pub tagged: Vec<String>,
    pub comments: Vec<String>,
    /// Bodies of functions.
    pub bodies: Vec<String>,
    /// Declarations, in languages whose documentation comments look like ordinary comments.
    pub documented: Vec<String>,
    /// Nodes between a name and its definition: C declarators, lists of names.
    pub declarators: Vec<String>,
    /// Types that are definitions only if they have a body.
    pub types_with_body: Vec<String>,
    /// Declarations whose name is the first child without a field.
    pub name_first: Vec<String>,
    pub function_declarators: Vec<String>,
    /// Blocks of statements.
    pub blocks: Vec<String>,
    /// Statements that raise an error.
    pub raises: Vec<String>,
    /// Accesses to a member.
    pub members: Vec<String>,
    /// Functions without their own name that are values.
    pub function_values: Vec<String>,
}

impl KindGroups {
    #[cfg(test)]
    fn all(&self) -> [&[String]; 20] {
        [
            &self.names,
            &self.symbols,
            &self.imports,
            &self.calls,
            &self.file_references,
            &self.anonymous_functions,
            &self.plain_strings,
            &self.string_literals,
            &self.tagged,
            &self.comments,
            &self.bodies,
            &self.documented,
            &self.declarators,
            &self.types_with_body,
            &self.name_first,
            &self.function_declarators,
            &self.blocks,
            &self.raises,
            &self.members,
            &self.function_values,
        ]
    }
}

/// Returns the head of a language's file.
pub(super) fn head(language: Language) -> &'static LanguageHead {
    // The heads are a few lines each; the sections are parsed for the languages that a review meets.
    static HEADS: LazyLock<Vec<LanguageHead>> =
        LazyLock::new(|| Language::ALL.map(|language| parse(language, language.file_head())).into_iter().collect());
    &HEADS[language.index()]
}

/// Returns the groups of node kinds of a language.
pub fn kind_groups(language: Language) -> &'static KindGroups {
    &sections(language).kinds
}

/// Returns the keywords of a language and the other words in its grammar, from a list that is written by hand.
#[cfg(test)]
pub fn vocabulary(language: Language) -> &'static [String] {
    &sections(language).vocabulary.keywords
}

/// Returns the sections of a language.
pub(super) fn sections(language: Language) -> &'static Sections {
    static SECTIONS: PerLanguage<Sections> = PerLanguage::new(|language| {
        let shared = head(language).same_kinds_as.as_deref();
        let file = shared.and_then(|stem| Language::ALL.into_iter().find(|other| other.file_stem() == stem));
        let file = file.unwrap_or(language);
        parse(file, file.file_sections())
    });
    SECTIONS.get(language)
}

fn parse<T: serde::de::DeserializeOwned>(language: Language, text: &str) -> T {
    match serde_json::from_str(text) {
        Ok(parsed) => parsed,
        // The files are embedded, and a test reads them all.
        Err(error) => panic!("assets/languages/{}.toml: {error}", language.file_stem()),
    }
}

/// One value for each language, built on first use: a review needs one or two languages, and each takes a while.
pub struct PerLanguage<T> {
    values: [OnceLock<T>; Language::ALL.len()],
    build: fn(Language) -> T,
}

impl<T> PerLanguage<T> {
    pub const fn new(build: fn(Language) -> T) -> Self {
        Self { values: [const { OnceLock::new() }; Language::ALL.len()], build }
    }

    /// Returns the value of a language; builds it on the first call.
    pub fn get(&self, language: Language) -> &T {
        self.values[language.index()].get_or_init(|| (self.build)(language))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_exists_in_its_grammar() {
        for language in Language::ALL {
            // TypeScript and TSX share a file; a kind of it may be missing in one of the two grammars.
            let grammars: Vec<_> = Language::ALL
                .into_iter()
                .filter(|other| std::ptr::eq(head(*other), head(language)) || shares_kinds(*other, language))
                .map(Language::grammar)
                .collect();
            let check = |section: &str, kinds: &[String]| {
                let is_named = !section.ends_with("_tokens");
                for kind in kinds {
                    let exists = grammars.iter().any(|grammar| {
                        (0..grammar.node_kind_count() as u16).any(|id| {
                            grammar.node_kind_for_id(id) == Some(kind) && grammar.node_kind_is_named(id) == is_named
                        })
                    });
                    assert!(exists, "{language:?} has no {kind:?}, see [{section}]");
                }
            };
            kind_groups(language).all().into_iter().for_each(|kinds| check("kinds", kinds));
            for (section, kinds_by_role) in &sections(language).roles {
                kinds_by_role.values().for_each(|kinds| check(section, kinds));
            }
        }
    }

    fn shares_kinds(a: Language, b: Language) -> bool {
        head(a).same_kinds_as.as_deref() == Some(b.file_stem())
            || head(b).same_kinds_as.as_deref() == Some(a.file_stem())
    }
}
