//! What a change adds or makes worse, and nothing that was there before.
//!
//! A smell of the new version counts when the change touches its lines, and it is new or its figure grew. "New" is
//! told by what it is about, not by where it stands: code that moved or a function that got another name is not new.

use std::collections::HashMap;

use super::facts::Function;
use super::smells::Smell;
use super::smells::complex_functions;
use super::source::Parsers;
use super::{Builtin, FileReport};
use crate::domain::text::normalize_code;
use crate::domain::{Kind, LineRange};
use crate::git::Hunk;

impl Builtin {
    /// The smells that a change of one file adds or makes worse, by line. `old` gives the path and text before; it is
    /// asked only when the new version has smells in the hunks, and answers `None` for an added file: all of it is new.
    /// `None` when the language is not one of ours.
    pub fn review_change(
        &self,
        parsers: &mut Parsers,
        path: &str,
        text: &[u8],
        hunks: &[Hunk],
        old: impl FnOnce() -> Option<(String, Vec<u8>)>,
    ) -> Option<Vec<Smell>> {
        let mut new = self.analyze_file(parsers, path, text)?;
        let smells = std::mem::take(&mut new.smells);
        let (touched, untouched): (Vec<Smell>, Vec<Smell>) =
            smells.into_iter().partition(|smell| is_touched(smell, hunks));
        if touched.is_empty() {
            return Some(touched);
        }
        let Some((old_path, old_text)) = old() else { return Some(touched) };
        let Some(old) = self.analyze_file(parsers, &old_path, &old_text) else { return Some(touched) };
        let before = Before::new(&old, &old_text, &untouched, text, self);
        Some(before.worsened(touched, &new, text))
    }
}

/// Whether the change has added or changed lines of a smell. A deletion alone makes nothing worse.
fn is_touched(smell: &Smell, hunks: &[Hunk]) -> bool {
    let lines = LineRange::new(smell.line_start, smell.line_end);
    hunks.iter().any(|hunk| hunk.new_lines > 0 && hunk.new_range().overlaps(lines))
}

/// The old version, with what of it still stands in the new one taken out.
struct Before<'a> {
    builtin: &'a Builtin,
    functions: HashMap<&'a str, &'a Function>,
    smells: &'a [Smell],
    /// Old smells without a counterpart among the untouched new ones: by kind and subject, by kind and code.
    by_subject: HashMap<(Kind, &'a str), Vec<usize>>,
    by_code: HashMap<(Kind, String), Vec<usize>>,
    used: Vec<bool>,
}

impl<'a> Before<'a> {
    fn new(old: &'a FileReport, old_text: &[u8], untouched: &[Smell], text: &[u8], builtin: &'a Builtin) -> Self {
        let old_lines = Lines::of(old_text);
        let mut before = Self {
            builtin,
            functions: old.functions.iter().map(|function| (function.name.as_str(), function)).collect(),
            smells: &old.smells,
            by_subject: HashMap::new(),
            by_code: HashMap::new(),
            used: vec![false; old.smells.len()],
        };
        // The last comes first out of a `Vec`; reversed, the first in the file is taken first.
        for (index, smell) in old.smells.iter().enumerate().rev() {
            before.by_subject.entry((smell.kind, smell.subject.as_str())).or_default().push(index);
            before.by_code.entry((smell.kind, code_of(smell, &old_lines))).or_default().push(index);
        }
        let lines = Lines::of(text);
        for smell in untouched {
            before.take(smell, &code_of(smell, &lines));
        }
        before
    }

    /// The old smell that is this one: the same subject and code, the same subject, the same code.
    fn take(&mut self, smell: &Smell, code: &str) -> Option<usize> {
        let subject_key = (smell.kind, smell.subject.as_str());
        let free = |list: Option<&Vec<usize>>, used: &[bool]| -> Vec<usize> {
            list.map(|list| list.iter().rev().copied().filter(|&index| !used[index]).collect()).unwrap_or_default()
        };
        let of_subject = free(self.by_subject.get(&subject_key), &self.used);
        let of_code = free(self.by_code.get(&(smell.kind, code.to_owned())), &self.used);
        let found = of_subject
            .iter()
            .find(|index| of_code.contains(index))
            .or(of_subject.first())
            .or(of_code.first())
            .copied()?;
        self.used[found] = true;
        Some(found)
    }

    fn worsened(mut self, touched: Vec<Smell>, new: &FileReport, text: &[u8]) -> Vec<Smell> {
        let lines = Lines::of(text);
        let matched: Vec<Option<usize>> =
            touched.iter().map(|smell| self.take(smell, &code_of(smell, &lines))).collect();
        let mut worsened = Vec::new();
        for (mut smell, matched) in touched.into_iter().zip(matched) {
            let matched = matched.or_else(|| self.renamed(&smell));
            let old_function = self.functions.get(smell.subject.as_str()).copied();
            match matched.map(|index| &self.smells[index]) {
                Some(old) if !grew(old, &smell) => continue,
                Some(old) => {
                    let old_function = self.functions.get(old.subject.as_str()).copied();
                    self.add_figures(&mut smell, old_function, new);
                }
                None => self.add_figures(&mut smell, old_function, new),
            }
            worsened.push(smell);
        }
        worsened
    }

    /// An old smell of the same kind whose subject is gone and whose figure is the same: the subject has a new name.
    fn renamed(&mut self, smell: &Smell) -> Option<usize> {
        let figure = smell.figure?;
        let found = self.smells.iter().enumerate().position(|(index, old)| {
            !self.used[index] && old.kind == smell.kind && old.figure.is_some_and(|old| old >= figure)
        })?;
        self.used[found] = true;
        Some(found)
    }

    /// Figures before and after, for smells of functions.
    fn add_figures(&self, smell: &mut Smell, old: Option<&Function>, new: &FileReport) {
        let Some(old) = old else { return };
        let Some(function) = new
            .functions
            .iter()
            .find(|function| function.line_start == smell.line_start && function.name == smell.subject)
        else {
            return;
        };
        let grown: Vec<String> = match smell.kind {
            Kind::LongMethod if function.nloc > old.nloc => {
                vec![format!("grew from {} to {} code lines", old.nloc, function.nloc)]
            }
            Kind::ComplexFunctions => {
                let limits = self.builtin.limits();
                complex_functions::measures(function, limits)
                    .iter()
                    .zip(complex_functions::measures(old, limits))
                    .filter(|(after, before)| after.value > before.value && after.value > after.limit)
                    .map(|(after, before)| format!("{} grew from {} to {}", after.name, before.value, after.value))
                    .collect()
            }
            _ => Vec::new(),
        };
        if grown.is_empty() {
            return;
        }
        let grown = grown.join(", ");
        smell.title = match smell.kind {
            Kind::LongMethod => format!("function `{}` {grown}", function.name),
            _ => format!("function `{}` got more complex: {grown}", function.name),
        };
        smell.explanation =
            format!("With this change the function {}. {}", verb(smell.kind, &grown), smell.explanation);
    }
}

fn verb(kind: Kind, grown: &str) -> String {
    match kind {
        Kind::LongMethod => grown.to_owned(),
        _ => format!("got more complex: {grown}"),
    }
}

/// Whether the figure of a smell is worse than it was.
fn grew(old: &Smell, new: &Smell) -> bool {
    match (old.figure, new.figure) {
        (Some(old), Some(new)) => new > old,
        _ => false,
    }
}

fn code_of(smell: &Smell, lines: &Lines<'_>) -> String {
    normalize_code(&lines.range(smell.anchor.0, smell.anchor.1))
}

/// A text by its lines, counted from 1.
pub(super) struct Lines<'a>(Vec<&'a [u8]>);

impl<'a> Lines<'a> {
    pub fn of(text: &'a [u8]) -> Self {
        Self(text.split(|&byte| byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line)).collect())
    }

    /// Lines `first` to `last`, both included, as far as there are any; bytes that are no UTF-8 replaced.
    pub fn range(&self, first: u32, last: u32) -> String {
        let first = (first.max(1) as usize - 1).min(self.0.len());
        let last = (last as usize).clamp(first, self.0.len());
        let lines: Vec<_> = self.0[first..last].iter().map(|line| String::from_utf8_lossy(line)).collect();
        lines.join("\n")
    }
}
