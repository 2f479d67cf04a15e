//! Provides the published lists of standard library names that forms may keep:
//! `assets/knowledge/names/<language>.txt`.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::syntax::language::Language;

/// Section of a list, which decides where in code its names are kept. A name may be in several sections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StdlibSection {
    /// Functions and fields, kept where they are called or follow a dot, because variables are called `size` and
    /// `index` too.
    Functions,
    /// Modules, kept in paths and before or after a dot.
    Modules,
    /// Types, kept everywhere.
    Types,
    /// Constants, and words that the grammar does not treat as keywords; kept everywhere.
    Values,
}

impl StdlibSection {
    pub const ALL: &[Self] = &[Self::Functions, Self::Modules, Self::Types, Self::Values];
}

/// Returns the list of a language, by [`Language::name`]; empty for an unknown name.
pub fn list_text(language: &str) -> &'static str {
    Language::ALL.into_iter().find(|known| known.name() == language).map_or("", Language::stdlib_names)
}

/// Returns true if one of these sections of the language's list contains the word.
pub fn has_name(language: &str, sections: &[StdlibSection], word: &str) -> bool {
    static LISTS: LazyLock<HashMap<&str, HashMap<&str, Vec<StdlibSection>>>> = LazyLock::new(|| {
        let list = |language| {
            let mut list: HashMap<&str, Vec<StdlibSection>> = HashMap::new();
            parse_names(language).for_each(|(name, section)| list.entry(name).or_default().push(section));
            list
        };
        languages().map(|language| (language, list(language))).collect()
    });
    let found = LISTS.get(language).and_then(|list| list.get(word));
    found.is_some_and(|found| found.iter().any(|section| sections.contains(section)))
}

/// Returns the names of a language with their sections, in the order of the list.
pub fn parse_names(language: &str) -> impl Iterator<Item = (&'static str, StdlibSection)> {
    let mut section = StdlibSection::Values;
    let lines = list_text(language).lines().map(str::trim).filter(|line| !line.starts_with('#'));
    lines.flat_map(move |line| {
        section = match line {
            "[functions]" => StdlibSection::Functions,
            "[modules]" => StdlibSection::Modules,
            "[types]" => StdlibSection::Types,
            "[values]" => StdlibSection::Values,
            names => return names.split_whitespace().map(move |name| (name, section)).collect::<Vec<_>>(),
        };
        Vec::new()
    })
}

/// Returns the names of all languages, each once.
pub fn languages() -> impl Iterator<Item = &'static str> {
    let mut names: Vec<&str> = Language::ALL.into_iter().map(Language::name).collect();
    names.dedup();
    names.into_iter()
}
