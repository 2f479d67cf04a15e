//! What a change adds or makes worse, and nothing that was there before.
//!
//! A smell of the new version counts when the change touches its lines, and it is new or its figure grew. "New" is
//! told by what it is about, not by where it stands: code that moved or a function that got another name is not new.

use std::collections::HashMap;

use super::facts::{Class, Facts, Function};
use super::language::Language;
use super::smells::duplicate_code::search::{ChangedFile, CloneReport, CloneSearch};
use super::smells::{Copies, Smell, complex_functions, god_class};
use super::source::Parsers;
use super::{Builtin, FileReport};
use crate::domain::text::normalize_code;
use crate::domain::{Kind, LineRange};
use crate::git::{Hunk, TreeFile};

impl Builtin {
    /// The smells that a change of one file adds or makes worse, by line. `old` gives the path and text before; it is
    /// asked only when the new version has smells in the hunks, and answers `None` for an added file: all of it is new.
    /// `None` when the language is not one of ours. Copies are not looked for here but across the whole change, by
    /// [`Builtin::review_copies`].
    pub fn review_change(
        &self,
        parsers: &mut Parsers,
        path: &str,
        text: &[u8],
        hunks: &[Hunk],
        old: impl FnOnce() -> Option<(String, Vec<u8>)>,
    ) -> Option<Vec<Smell>> {
        let mut new = self.analyze(parsers, path, text, Copies::Ignored)?;
        let smells = std::mem::take(&mut new.smells);
        let (touched, untouched): (Vec<Smell>, Vec<Smell>) =
            smells.into_iter().partition(|smell| is_touched(smell, hunks));
        if touched.is_empty() {
            return Some(touched);
        }
        let Some((old_path, old_text)) = old() else { return Some(touched) };
        let Some(old) = self.analyze(parsers, &old_path, &old_text, Copies::Ignored) else { return Some(touched) };
        let before = Before::new(&old, &old_text, &untouched, text, self);
        Some(before.worsened(touched, &new, text))
    }
}

/// A changed file for [`Builtin::review_copies`].
#[derive(Debug, Clone, Copy)]
pub struct ChangedText<'a> {
    pub path: &'a str,
    pub text: &'a [u8],
    pub hunks: &'a [Hunk],
}

impl Builtin {
    /// The copies (DUPLICATE_CODE) that a change adds: of code in the changed files and in the rest of the snapshot.
    /// `tree` is the snapshot's tree without the files that a review leaves out, `read` gives a blob's content. Every
    /// smell comes with the number of the file it is in.
    pub fn review_copies(
        &self,
        parsers: &mut Parsers,
        files: &[ChangedText<'_>],
        search: &CloneSearch,
        tree: &[TreeFile],
        read: &mut dyn FnMut(&str) -> Option<Vec<u8>>,
    ) -> CloneReport {
        if !self.limits().duplicate_code.enabled {
            return CloneReport::default();
        }
        let mut parsed = Vec::new();
        for (index, file) in files.iter().enumerate() {
            let source = Language::detect(file.path, file.text)
                .and_then(|language| parsers.parse(file.path, language, file.text));
            let Some(source) = source else { continue };
            let added: Vec<LineRange> =
                file.hunks.iter().filter(|hunk| hunk.new_lines > 0).map(Hunk::new_range).collect();
            let facts = Facts::of(&source);
            parsed.push((index, source, facts, added));
        }
        let changed: Vec<ChangedFile<'_>> =
            parsed.iter().map(|(_, source, facts, added)| ChangedFile { source, facts, added }).collect();
        let mut report = search.run(&changed, tree, read, self.limits());
        for (file, _) in &mut report.smells {
            *file = parsed.get(*file).map_or(*file, |(index, ..)| *index);
        }
        report
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
    classes: HashMap<&'a str, &'a Class>,
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
            classes: old.classes.iter().map(|class| (class.name.as_str(), class)).collect(),
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
            let matched = matched.or_else(|| self.renamed(&smell)).map(|index| &self.smells[index]);
            if matched.is_some_and(|old| !self.grew(old, &smell)) {
                continue;
            }
            let old_name = matched.map_or_else(|| smell.subject.clone(), |old| old.subject.clone());
            if smell.kind == Kind::GodClass {
                self.add_class_figures(&mut smell, &old_name, new);
            } else {
                self.add_figures(&mut smell, self.functions.get(old_name.as_str()).copied(), new);
            }
            worsened.push(smell);
        }
        worsened
    }

    /// Whether the figure of a smell is worse than it was, by more than a trifle.
    fn grew(&self, old: &Smell, new: &Smell) -> bool {
        match (old.figure, new.figure) {
            (Some(old), Some(new)) => new > old && new >= old * self.builtin.limits().grading.min_growth,
            _ => false,
        }
    }

    /// Figures before and after, for classes.
    fn add_class_figures(&self, smell: &mut Smell, old_name: &str, new: &FileReport) {
        let Some(old) = self.classes.get(old_name) else { return };
        let Some(class) = new.classes.iter().find(|class| class.name == smell.subject) else { return };
        let grown: Vec<String> = god_class::over(class, self.builtin.limits())
            .into_iter()
            .map(|(value, _, what)| {
                let before = match what {
                    "methods" => old.methods,
                    "fields" => old.fields,
                    _ => old.nloc,
                };
                (before, value, what)
            })
            .filter(|(before, value, _)| value > before)
            .map(|(before, value, what)| format!("from {before} to {value} {what}"))
            .collect();
        if grown.is_empty() {
            return;
        }
        let grown = grown.join(", ");
        smell.title = format!("class `{}` grew {grown}", class.name);
        smell.explanation = format!("With this change the class grew {grown}. {}", smell.explanation);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::builtin::limits::Limits;

    fn method(name: &str, lines: usize) -> String {
        let body: String = (1..lines).map(|line| format!("    g(x_{line})\n")).collect();
        format!("def {name}():\n{body}\n")
    }

    /// The titles of what a change adds or worsens; the hunks are what the line diff says.
    fn titles(old: Option<&str>, new: &str) -> Vec<String> {
        let mut limits = Limits::default();
        limits.duplicate_code.enabled = false;
        limits.dead_code.enabled = false;
        limits.magic_numbers.enabled = false;
        let hunks = hunks(old.unwrap_or(""), new);
        let smells =
            Builtin::new(limits).review_change(&mut Parsers::default(), "a.py", new.as_bytes(), &hunks, || {
                old.map(|old| ("a.py".to_owned(), old.as_bytes().to_vec()))
            });
        smells.expect("a language of ours").into_iter().map(|smell| smell.title).collect()
    }

    fn hunks(old: &str, new: &str) -> Vec<Hunk> {
        let diff = similar::TextDiff::from_lines(old, new);
        diff.ops()
            .iter()
            .filter(|op| op.tag() != similar::DiffTag::Equal)
            .map(|op| Hunk {
                old_start: op.old_range().start as u32 + 1,
                old_lines: op.old_range().len() as u32,
                new_start: op.new_range().start as u32 + 1,
                new_lines: op.new_range().len() as u32,
            })
            .collect()
    }

    #[test]
    fn only_what_is_new_or_worse_and_touched_is_reported() {
        let long = method("f", 70);
        let longer = method("f", 84);
        let short = method("f", 48);
        let grown = ["function `f` grew from 48 to 84 code lines"];
        let worse = ["function `f` grew from 70 to 84 code lines"];
        let new = ["function `f` is 70 code lines long"];
        let edited = long.replace("x_9)", "x_nine)");
        let renamed = long.replace("def f", "def h");
        let other = method("k", 3);
        let moved = format!("{other}{long}");
        let second = format!("{long}{}", method("h", 65));
        for (name, old, new, expected) in [
            ("an added file", None, long.as_str(), &new[..]),
            ("grew over the limit", Some(short.as_str()), longer.as_str(), &grown[..]),
            ("was over it and grew", Some(long.as_str()), longer.as_str(), &worse[..]),
            ("touched, not longer", Some(long.as_str()), edited.as_str(), &[]),
            ("got shorter, still too long", Some(longer.as_str()), long.as_str(), &[]),
            ("another name", Some(long.as_str()), renamed.as_str(), &[]),
            ("moved down", Some(long.as_str()), moved.as_str(), &[]),
            ("a second one", Some(long.as_str()), second.as_str(), &["function `h` is 65 code lines long"]),
            ("nothing over a limit", Some(short.as_str()), other.as_str(), &[]),
        ] {
            assert_eq!(titles(old, new), expected, "{name}");
        }
    }

    #[test]
    fn complexity_names_the_figures_that_grew() {
        let nested = |depth: usize| {
            let mut code = "def f(a):\n".to_owned();
            for level in 1..=depth {
                code += &format!("{}if a > x_{level}:\n", "    ".repeat(level));
            }
            code + &format!("{}pass\n", "    ".repeat(depth + 1))
        };
        let expected =
            "function `f` got more complex: cognitive complexity grew from 10 to 21, nesting grew from 4 to 6";
        assert_eq!(titles(Some(&nested(4)), &nested(6)), [expected]);
    }

    #[test]
    fn the_old_version_is_not_asked_for_when_nothing_touched_smells() {
        let text = method("f", 70) + &method("k", 3);
        let hunk = Hunk { old_start: 72, old_lines: 1, new_start: 72, new_lines: 1 };
        let smells = Builtin::new(Limits::default()).review_change(
            &mut Parsers::default(),
            "a.py",
            text.as_bytes(),
            &[hunk],
            || panic!("asked for the old version"),
        );
        assert_eq!(smells.map(|smells| smells.len()), Some(0));
    }
}
