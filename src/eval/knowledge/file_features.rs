//! Extracts features of a file for the evaluation: its lines of code, their tokens, and the forms that begin on them.

use std::collections::{BTreeMap, HashMap};

use super::ngram::NumberMap;
use crate::knowledge::abstraction::{AbstractionDetail, CodeSiteKind, visit_sites};
use crate::syntax::definition::kind_groups;
use crate::syntax::language::Language;
use crate::syntax::node_kinds::comment_kinds;
use crate::syntax::source::{KindSet, Node, ParsedFile};

/// Index of a form.
pub type FormNumber = u32;

/// Returns the tokens of a file's code in order, each with its line (1-based), without comments.
pub fn code_tokens<'s>(source: &'s ParsedFile<'_>) -> impl Iterator<Item = (u32, &'s [u8])> {
    code_leaves(source).map(|node| (node.row + 1, source.bytes(node)))
}

/// Returns the nodes of the tokens.
fn code_leaves<'s>(source: &'s ParsedFile<'_>) -> impl Iterator<Item = &'s Node> {
    let comments = &leaf_kinds(source.language).comments;
    let mut at = 0;
    std::iter::from_fn(move || {
        while let Some(node) = source.nodes.get(at) {
            let is_comment = comments.contains(node.kind);
            let is_leaf = node.end_index as usize == at + 1;
            at = if is_comment { node.end_index as usize } else { at + 1 };
            if is_leaf && !is_comment && node.start < node.end {
                return Some(node);
            }
        }
        None
    })
}

/// Node kinds of comments and names.
struct LeafKinds {
    comments: KindSet,
    names: KindSet,
}

/// Returns the kinds of a language. Built once, because it asks the grammar about every kind.
fn leaf_kinds(language: Language) -> &'static LeafKinds {
    static ALL: std::sync::LazyLock<Vec<LeafKinds>> = std::sync::LazyLock::new(|| {
        let kinds = |language| LeafKinds {
            comments: comment_kinds(language),
            names: KindSet::new(language, &kind_groups(language).names),
        };
        Language::ALL.map(kinds).into()
    });
    &ALL[language.index()]
}

/// Returns the number of lines, including blank ones. A final line feed starts no new line.
pub fn line_count(text: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', text).count() + usize::from(!text.ends_with(b"\n"))
}

/// Returns the lines on which code begins, in order; all other lines are blank or comments.
pub fn code_lines(source: &ParsedFile<'_>) -> Vec<u32> {
    let mut lines: Vec<u32> = code_tokens(source).map(|(line, _)| line).collect();
    // Tokens are in order except in grammars with overlapping nodes.
    lines.sort_unstable();
    lines.dedup();
    lines
}

/// Returns the lines on which a statement or expression with a form begins, in order. Other lines hold imports,
/// packages, heads of classes and functions, fields without a value, or brackets.
pub fn statement_lines(source: &ParsedFile<'_>) -> Vec<u32> {
    let mut lines = Vec::new();
    visit_sites(source, None, &mut |site| {
        if site.kind() == CodeSiteKind::Code {
            lines.push(site.lines.start);
        }
    });
    lines.sort_unstable();
    lines.dedup();
    lines
}

/// Combines a form's digest with its language, so that equal forms of two languages differ.
pub fn hash_form_key(language: Language, digest: u64) -> u64 {
    let name = language.name().bytes();
    digest ^ name.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Features of a line besides its forms: the number of tokens that begin on it, and the number of its names and pairs
/// of adjacent names that occur only once in the file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LineFeatures {
    tokens: u32,
    names: u32,
    pairs: u32,
}

/// Extracts the features of the lines of code. Of names, only their number of occurrences is used.
pub fn extract_line_features(source: &ParsedFile<'_>) -> BTreeMap<u32, LineFeatures> {
    let kinds = leaf_kinds(source.language);
    let mut lines: BTreeMap<u32, LineFeatures> = BTreeMap::new();
    let mut names: Vec<(u32, &[u8])> = Vec::new();
    for node in code_leaves(source) {
        let line = node.row + 1;
        lines.entry(line).or_default().tokens += 1;
        if kinds.names.contains(node.kind) {
            names.push((line, source.bytes(node)));
        }
    }
    let pairs =
        || names.windows(2).filter(|pair| pair[0].0 == pair[1].0).map(|pair| (pair[0].0, [pair[0].1, pair[1].1]));
    let mut times_of_names: HashMap<&[u8], u32> = HashMap::new();
    let mut times_of_pairs: HashMap<[&[u8]; 2], u32> = HashMap::new();
    names.iter().for_each(|(_, name)| *times_of_names.entry(name).or_default() += 1);
    pairs().for_each(|(_, pair)| *times_of_pairs.entry(pair).or_default() += 1);
    for (line, name) in &names {
        lines.entry(*line).or_default().names += u32::from(times_of_names[name] == 1);
    }
    for (line, pair) in pairs() {
        lines.entry(line).or_default().pairs += u32::from(times_of_pairs[&pair] == 1);
    }
    lines
}

/// Number of shared features, which [`collect_line_forms`] gives after the forms: the kind of a site, its level of
/// detail and the number of places of its form; that a line has a form; the token count of the line; the number of
/// its unique names and pairs.
pub const SHARED_FEATURES: usize = UNIQUE_PAIR_FEATURE + MAX_FEATURE_COUNT;
const HAS_FORM_FEATURE: usize = 2 * AbstractionDetail::ALL.len() * (MAX_PLACE_BUCKET + 1);
const TOKEN_COUNT_FEATURE: usize = HAS_FORM_FEATURE + 1;
const UNIQUE_NAME_FEATURE: usize = TOKEN_COUNT_FEATURE + MAX_FEATURE_COUNT;
const UNIQUE_PAIR_FEATURE: usize = UNIQUE_NAME_FEATURE + MAX_FEATURE_COUNT;
/// Maximum bucket for the number of places, by powers of two; 128 or more places fall into the last one.
const MAX_PLACE_BUCKET: usize = 7;
/// Number of values per counted feature, from 0; larger counts fall into the last one.
const MAX_FEATURE_COUNT: usize = 40;

/// Returns the known forms that begin on each line, sorted and without duplicates. For each form, a feature shared by
/// similar forms is added: a form that is unique in the file says more than a common one. For each line, features
/// shared by similar lines are added: a line with unique names is fixed alone more often.
pub fn collect_line_forms(
    source: &ParsedFile<'_>,
    looks: &BTreeMap<u32, LineFeatures>,
    numbers: &NumberMap<u64, FormNumber>,
) -> BTreeMap<u32, Vec<FormNumber>> {
    let mut found: Vec<(u32, FormNumber, usize)> = Vec::new();
    let mut places: NumberMap<FormNumber, u32> = NumberMap::default();
    let of_language = hash_form_key(source.language, 0);
    visit_sites(source, None, &mut |site| {
        if let Some(number) = numbers.get(&(site.digest ^ of_language)) {
            let class = site.kind() as usize * AbstractionDetail::ALL.len() + site.detail as usize;
            found.push((site.lines.start, *number, class));
            *places.entry(*number).or_default() += 1;
        }
    });
    let shared = |number: usize| (numbers.len() + number) as FormNumber;
    let mut lines: BTreeMap<u32, Vec<FormNumber>> = BTreeMap::new();
    for (line, number, class) in found {
        let told = places.get(&number).map_or(0, |places| (places.ilog2() as usize).min(MAX_PLACE_BUCKET));
        lines.entry(line).or_default().extend([number, shared(class * (MAX_PLACE_BUCKET + 1) + told)]);
    }
    for (line, forms) in &mut lines {
        let LineFeatures { tokens, names, pairs } = looks.get(line).copied().unwrap_or_default();
        forms.push(shared(HAS_FORM_FEATURE));
        for (first, count) in
            [(TOKEN_COUNT_FEATURE, tokens), (UNIQUE_NAME_FEATURE, names), (UNIQUE_PAIR_FEATURE, pairs)]
        {
            forms.push(shared(first + (count as usize).min(MAX_FEATURE_COUNT - 1)));
        }
        forms.sort_unstable();
        forms.dedup();
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::source::Parsers;

    fn with<T>(text: &str, look: impl Fn(&ParsedFile<'_>) -> T) -> T {
        let mut parsers = Parsers::default();
        look(&parsers.parse("", Language::Java, text.as_bytes()).expect("a file"))
    }

    #[test]
    fn names_and_pairs_that_stand_once_are_counted_by_line() {
        let text = "import a.b.C;\nimport a.d.E;\nclass F { // g\n  C c = x.y(x.y, E);\n}\n";
        let look = |(line, LineFeatures { tokens, names, pairs })| (line, tokens, names, pairs);
        let lines: Vec<_> = with(text, extract_line_features).into_iter().map(look).collect();
        // Line 4 has the unique name c and the unique pairs C c, c x, y x and y E; the pair x y occurs twice.
        assert_eq!(lines, [(1, 7, 1, 2), (2, 7, 1, 2), (3, 3, 1, 0), (4, 14, 1, 4), (5, 1, 0, 0)]);
    }

    #[test]
    fn what_a_line_is_told_by_does_not_depend_on_what_its_names_are() {
        let told = |text: &str| {
            with(text, |source| {
                let mut numbers = NumberMap::default();
                visit_sites(source, None, &mut |site| {
                    let next = numbers.len() as FormNumber;
                    numbers.entry(hash_form_key(Language::Java, site.digest)).or_insert(next);
                });
                collect_line_forms(source, &extract_line_features(source), &numbers)
            })
        };
        let one = told("class A {\n  void f() {\n    a.g(b, 1);\n    a.g(c, 2);\n  }\n}\n");
        assert_eq!(one, told("class Z {\n  void y() {\n    s.t(r, 7);\n    s.t(q, 9);\n  }\n}\n"));
        assert_eq!(one[&3], one[&4]);
        assert_ne!(one[&3], told("class A {\n  void f() {\n    a.g(b, 1);\n    a.g(b, 2);\n  }\n}\n")[&3]);
    }

    #[test]
    fn lines_are_counted_with_the_blank_ones() {
        assert_eq!([line_count(b"a\n\nb\n"), line_count(b"a\n\nb"), line_count(b"a\r\n")], [3, 3, 1]);
    }
}
