//! A file as the evaluation sees it: its lines of code, their tokens, and the forms that begin on them.

use std::collections::BTreeMap;

use super::ngram::NumberMap;
use crate::knowledge::abstraction::{Detail, SiteKind, sites};
use crate::provider::builtin::language::Language;
use crate::provider::builtin::source::{KindSet, Source};

/// What no grammar of ours calls code.
const COMMENTS: &[&str] = &["comment", "line_comment", "block_comment", "html_comment", "hash_bang_line"];

/// A number that stands for a form.
pub type FormNumber = u32;

/// The tokens of a file's code in order, each with its line from 1; comments are none.
pub fn tokens<'s>(source: &'s Source<'_>) -> impl Iterator<Item = (u32, &'s [u8])> {
    let comments = comments(source.language);
    let mut at = 0;
    std::iter::from_fn(move || {
        while let Some(node) = source.nodes.get(at) {
            let is_comment = comments.contains(node.kind);
            let is_leaf = node.end_index as usize == at + 1;
            at = if is_comment { node.end_index as usize } else { at + 1 };
            if is_leaf && !is_comment && node.start < node.end {
                return Some((node.row + 1, source.bytes(node)));
            }
        }
        None
    })
}

/// Made once per language: it asks the grammar about each of its kinds.
fn comments(language: Language) -> &'static KindSet {
    static ALL: std::sync::LazyLock<Vec<KindSet>> =
        std::sync::LazyLock::new(|| Language::ALL.map(|language| KindSet::new(language, COMMENTS)).into());
    &ALL[language.index()]
}

/// The lines on which code begins, in order; the others are blank or comments.
pub fn code_lines(source: &Source<'_>) -> Vec<u32> {
    let mut lines: Vec<u32> = tokens(source).map(|(line, _)| line).collect();
    // In order but for grammars whose nodes overlap.
    lines.sort_unstable();
    lines.dedup();
    lines
}

/// The lines on which a statement or an expression begins that has a form, in order. On the others are imports,
/// packages, heads of classes and functions, fields without a value, brackets.
pub fn statement_lines(source: &Source<'_>) -> Vec<u32> {
    let mut lines = Vec::new();
    sites(source, None, &mut |site| {
        if site.kind == SiteKind::Code {
            lines.push(site.lines.start);
        }
    });
    lines.sort_unstable();
    lines.dedup();
    lines
}

/// What a form is looked up by: equal forms of two languages are two.
pub fn key(language: Language, digest: u64) -> u64 {
    let name = language.name().bytes();
    digest ^ name.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Numbers that [`forms`] gives beside those of forms: of what kind a site is, at what detail, and in how many places of the
/// file its form stands.
pub const SHARED: usize = 2 * Detail::ALL.len() * (MOST_TOLD as usize + 1);
/// Places by powers of two; from 128 on they are as many.
const MOST_TOLD: u32 = 7;

/// By line the forms that begin on it, of those that have a number; each once, in order. With each comes the number that
/// all forms like it share: what stands once in a file tells more than what stands everywhere.
pub fn forms(source: &Source<'_>, numbers: &NumberMap<u64, FormNumber>) -> BTreeMap<u32, Vec<FormNumber>> {
    let mut found: Vec<(u32, FormNumber, usize)> = Vec::new();
    let mut places: NumberMap<FormNumber, u32> = NumberMap::default();
    let of_language = key(source.language, 0);
    sites(source, None, &mut |site| {
        if let Some(number) = numbers.get(&(site.digest ^ of_language)) {
            let class = site.kind as usize * Detail::ALL.len() + site.detail as usize;
            found.push((site.lines.start, *number, class));
            *places.entry(*number).or_default() += 1;
        }
    });
    let mut lines: BTreeMap<u32, Vec<FormNumber>> = BTreeMap::new();
    for (line, number, class) in found {
        let told = places.get(&number).map_or(0, |places| places.ilog2().min(MOST_TOLD));
        let shared = numbers.len() + class * (MOST_TOLD as usize + 1) + told as usize;
        lines.entry(line).or_default().extend([number, shared as FormNumber]);
    }
    for forms in lines.values_mut() {
        forms.sort_unstable();
        forms.dedup();
    }
    lines
}
