//! Replaces the names of paths that stay here in words, however they are written.

use std::collections::HashSet;

use aho_corasick::{AhoCorasick, MatchKind};

use crate::domain::text::is_separate_word;

/// Stands for a name.
const PLACEHOLDER: &str = "«path»";
/// Minimum length of the name of a file without an extension that counts as its name, in bytes. Shorter ones are words.
const MIN_BARE_NAME_BYTES: usize = 6;
/// Maximum number of words after the beginning of an excluded path among which its extension is looked for: a path may have
/// blanks.
const MAX_WORDS_OF_NAME: usize = 4;

/// Names of the excluded paths that are known: whole paths with `/` or `\`, and the names of files that nothing else has.
#[derive(Debug, Default)]
pub struct ExcludedNames {
    known: Option<AhoCorasick>,
}

impl ExcludedNames {
    /// Collects the names of excluded paths among all `paths`.
    pub fn new<'p>(paths: impl IntoIterator<Item = &'p str>, is_excluded: impl Fn(&str) -> bool) -> Self {
        let mut named_elsewhere = HashSet::new();
        let mut excluded = Vec::new();
        for path in paths {
            match is_excluded(path) {
                true => excluded.push(path),
                false => drop(named_elsewhere.insert(base_name(path))),
            }
        }
        let mut names: Vec<String> = Vec::new();
        for path in excluded {
            names.push(path.to_owned());
            if path.contains('/') {
                names.push(path.replace('/', "\\"));
            }
            let name = base_name(path);
            let is_telling = name.trim_start_matches('.').contains('.') || name.len() >= MIN_BARE_NAME_BYTES;
            if is_telling && !named_elsewhere.contains(name) {
                names.push(name.to_owned());
            }
        }
        if names.is_empty() {
            return Self::default();
        }
        let built =
            AhoCorasick::builder().ascii_case_insensitive(true).match_kind(MatchKind::LeftmostLongest).build(&names);
        Self { known: built.inspect_err(|error| tracing::warn!(%error, "names of excluded paths")).ok() }
    }

    /// Replaces the names of excluded paths in a text: those that are known, and those that `is_excluded` tells from the
    /// name alone.
    pub fn mask(&self, text: &str, is_excluded: impl Fn(&str) -> bool) -> String {
        mask_written_paths(&self.mask_known(text), is_excluded)
    }

    fn mask_known(&self, text: &str) -> String {
        let Some(known) = &self.known else { return text.to_owned() };
        let (mut shown, mut end) = (String::with_capacity(text.len()), 0);
        for found in known.find_iter(text) {
            if !is_separate_word(text, found.range()) {
                continue;
            }
            shown.push_str(text.get(end..found.start()).unwrap_or_default());
            shown.push_str(PLACEHOLDER);
            end = found.end();
        }
        shown.push_str(text.get(end..).unwrap_or_default());
        shown
    }
}

/// Replaces the words of a text that are excluded paths.
fn mask_written_paths(text: &str, is_excluded: impl Fn(&str) -> bool) -> String {
    let mut shown = String::with_capacity(text.len());
    let parts: Vec<&str> = text.split_inclusive(|c: char| !is_path_character(c)).collect();
    let mut next = 0;
    while let Some(part) = parts.get(next) {
        next += 1;
        let word = find_word(part);
        let is_path = !word.is_empty() && word.contains(['/', '\\', '.']);
        if !is_path || !spellings(word).iter().any(|path| is_excluded(path)) {
            shown.push_str(part);
            continue;
        }
        let mut last = *part;
        if !has_extension(word) && part.ends_with(' ') {
            let rest = parts.get(next..).unwrap_or_default();
            // The words up to one with an extension, and only blanks between them, are the rest of the name.
            for (count, more) in rest.iter().take(MAX_WORDS_OF_NAME).enumerate() {
                if has_extension(find_word(more)) {
                    next += count + 1;
                    last = *more;
                    break;
                }
                if !more.ends_with(' ') {
                    break;
                }
            }
        }
        let start = part.find(word).unwrap_or_default();
        shown.push_str(part.get(..start).unwrap_or_default());
        shown.push_str(PLACEHOLDER);
        let word = find_word(last);
        let end = last.find(word).map_or(last.len(), |at| at + word.len());
        shown.push_str(last.get(end..).unwrap_or_default());
    }
    shown
}

fn is_path_character(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '/' | '\\' | '.' | '_' | '-' | '+' | '@')
}

/// Returns the path in a piece of text: without the character that ended it, and without the dots of a sentence.
fn find_word(part: &str) -> &str {
    part.trim_end_matches(|c: char| !is_path_character(c)).trim_matches('.')
}

fn has_extension(word: &str) -> bool {
    base_name(word).rsplit_once('.').is_some_and(|(name, ending)| !name.is_empty() && !ending.is_empty())
}

fn base_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// Returns the paths that a word may mean: with `/`, without `.` and `..`, and without its first folders, as a branch or an
/// absolute path has some.
fn spellings(word: &str) -> Vec<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in word.split(['/', '\\']) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    (0..parts.len()).filter_map(|first| parts.get(first..).map(|rest| rest.join("/"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_an_excluded_path_is_replaced_and_other_words_stay() {
        let paths =
            ["contracts/Acme Deal.py", "contracts/bigcustomer.py", "contracts/mod.rs", "src/mod.rs", "contracts/tax"];
        let is_excluded = |path: &str| path.starts_with("contracts/");
        let names = ExcludedNames::new(paths, is_excluded);
        for (text, expected) in [
            ("see contracts/Acme Deal.py, and b.py", "see «path», and b.py"),
            (r"see contracts\bigcustomer.py:7", "see «path»:7"),
            (r"see .\contracts\unknown.py.", "see .«path»."),
            ("as in src/../contracts/zeta.py!", "as in «path»!"),
            ("(contracts/New Deal.py) too", "(«path») too"),
            ("feature/contracts/bigcustomer", "«path»"),
            ("/home/ada/shop/contracts/x.py", "«path»"),
            ("BigCustomer.py says so", "«path» says so"),
            ("mybigcustomer.py, mod.rs and tax", "mybigcustomer.py, mod.rs and tax"),
            ("the contracts are in src/a.py.", "the contracts are in src/a.py."),
        ] {
            let masked = names.mask(text, is_excluded);
            assert_eq!(masked, expected);
            assert_eq!(names.mask(&masked, is_excluded), masked);
        }
        assert_eq!(ExcludedNames::default().mask("contracts/a.py and b", is_excluded), "«path» and b");
    }
}
