//! Reports the smells that a change adds or makes worse, without smells that existed before.
//!
//! - A smell of the new version counts if the change touches its lines, and it is new or its figure grew.
//! - Smells of both versions are matched by subject and code, not by line: moved code and renamed functions are not
//!   new.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use super::smells::{GrowthComparison, InFileClones, Smell, SmellDefinition, SmellGrowth};
use super::{Builtin, FileReport, learned_rules};
use crate::domain::anchors::Anchors;
use crate::domain::{Kind, LineRange};
use crate::git::Hunk;
use crate::syntax::ParseFailure;
use crate::syntax::facts::{Class, Function};
use crate::syntax::source::Parsers;

impl Builtin {
    /// Returns the smells that a change of one file adds or makes worse, sorted by line.
    ///
    /// `old` returns path and text of the previous version, or `None` for an added file, in which everything is new. It
    /// is called only if the new version has smells in `hunks`. Copies are not searched here but across the whole
    /// change.
    ///
    /// # Errors
    ///
    /// Returns [`ParseFailure`] if the new version cannot be analyzed. A previous version that cannot be analyzed
    /// counts as missing.
    pub fn review_change(
        &self,
        parsers: &mut Parsers,
        path: &str,
        text: &[u8],
        hunks: &[Hunk],
        old: impl FnOnce() -> Option<(String, Vec<u8>)>,
    ) -> Result<Vec<Smell>, ParseFailure> {
        let (mut new, surest) = self.analyze(parsers, path, text, InFileClones::Ignored)?;
        let smells = std::mem::take(&mut new.smells);
        let added = LineSet::from_hunks(hunks);
        let (touched, untouched): (Vec<Smell>, Vec<Smell>) =
            smells.into_iter().partition(|smell| added.overlaps(smell.line_start, smell.line_end));
        let old = if touched.is_empty() { None } else { old() };
        let old = old.and_then(|(old_path, old_text)| {
            let (old, _) = self.analyze(parsers, &old_path, &old_text, InFileClones::Ignored).ok()?;
            Some((old, old_text))
        });
        let mut worse = match old {
            Some((old, old_text)) => {
                OldVersion::new(&old, &old_text, &untouched, text, self).select_worsened(touched, &new, text)
            }
            None => touched,
        };
        // Limit the learned smells only now, so that old smells do not use up the limit.
        learned_rules::keep_surest(&mut worse, &surest);
        Ok(worse)
    }
}

/// Set of line ranges, prepared for many overlap queries.
pub(super) struct LineSet(Vec<LineRange>);

impl LineSet {
    /// Collects the lines that the hunks add or change. A pure deletion adds no line: it makes nothing worse.
    pub fn from_hunks(hunks: &[Hunk]) -> Self {
        Self::from_ranges(hunks.iter().filter(|hunk| hunk.new_lines > 0).map(Hunk::new_range))
    }

    /// Builds the set from ranges in any order.
    pub fn from_ranges(lines: impl Iterator<Item = LineRange>) -> Self {
        let mut lines: Vec<LineRange> = lines.collect();
        lines.sort_unstable();
        // Raise each end to the largest end so far, so that a query needs only one binary search.
        let mut last = 0;
        for range in &mut lines {
            last = range.end.max(last);
            range.end = last;
        }
        Self(lines)
    }

    /// Returns whether any range has a line in `first..=last`.
    pub fn overlaps(&self, first: u32, last: u32) -> bool {
        let before = self.0.partition_point(|range| range.start <= last);
        before.checked_sub(1).and_then(|at| self.0.get(at)).is_some_and(|range| range.end >= first)
    }
}

/// Old version of a file, which matches its smells with the smells of the new version.
struct OldVersion<'a> {
    builtin: &'a Builtin,
    functions: HashMap<&'a str, &'a Function>,
    classes: HashMap<&'a str, &'a Class>,
    smells: &'a [Smell],
    /// Indices into `smells` by kind, subject and code. Each list is reversed, so its last entry is the first in the
    /// file. Used entries are removed when a lookup meets them.
    by_both: HashMap<(Kind, Rc<str>, Rc<str>), Vec<usize>>,
    /// As `by_both`, by kind and subject.
    by_subject: HashMap<(Kind, Rc<str>), Vec<usize>>,
    /// As `by_both`, by kind and code.
    by_code: HashMap<(Kind, Rc<str>), Vec<usize>>,
    /// Smells with a figure, as (kind, sortable bits of the figure, index).
    by_figure: BTreeSet<(Kind, u64, usize)>,
    /// For each old smell, true once it has a counterpart in the new version.
    used: Vec<bool>,
}

impl<'a> OldVersion<'a> {
    fn new(old: &'a FileReport, old_text: &[u8], untouched: &[Smell], text: &[u8], builtin: &'a Builtin) -> Self {
        let mut old_lines = Anchors::new(old_text);
        let mut before = Self {
            builtin,
            functions: old.functions.iter().map(|function| (function.name.as_str(), function)).collect(),
            classes: old.classes.iter().map(|class| (class.name.as_str(), class)).collect(),
            smells: &old.smells,
            by_both: HashMap::new(),
            by_subject: HashMap::new(),
            by_code: HashMap::new(),
            by_figure: BTreeSet::new(),
            used: vec![false; old.smells.len()],
        };
        // Insert in reverse order: lookups read the last entry, so the first smell in the file is matched first.
        for (index, smell) in old.smells.iter().enumerate().rev() {
            let (kind, subject): (Kind, Rc<str>) = (smell.kind, smell.subject.as_str().into());
            let code = old_lines.identity(smell.anchor);
            before.by_both.entry((kind, Rc::clone(&subject), Rc::clone(&code))).or_default().push(index);
            before.by_subject.entry((kind, subject)).or_default().push(index);
            before.by_code.entry((kind, code)).or_default().push(index);
            before.by_figure.extend(smell.figure.map(|figure| (kind, to_sortable_bits(figure), index)));
        }
        let mut lines = Anchors::new(text);
        for smell in untouched {
            before.match_smell(smell, lines.identity(smell.anchor));
        }
        before
    }

    /// Finds the old smell that matches `smell`, and marks it as used. Tries equal subject and code, then equal
    /// subject, then equal code.
    fn match_smell(&mut self, smell: &Smell, code: Rc<str>) -> Option<usize> {
        let (kind, used) = (smell.kind, &self.used);
        let subject: Rc<str> = smell.subject.as_str().into();
        let found = find_unused(self.by_both.get_mut(&(kind, Rc::clone(&subject), Rc::clone(&code))), used)
            .or_else(|| find_unused(self.by_subject.get_mut(&(kind, subject)), used))
            .or_else(|| find_unused(self.by_code.get_mut(&(kind, code)), used))?;
        self.used[found] = true;
        Some(found)
    }

    /// Returns the touched smells that are new or whose figure grew, with both figures in their texts.
    fn select_worsened(mut self, touched: Vec<Smell>, new: &FileReport, text: &[u8]) -> Vec<Smell> {
        let mut lines = Anchors::new(text);
        let matched: Vec<Option<usize>> =
            touched.iter().map(|smell| self.match_smell(smell, lines.identity(smell.anchor))).collect();
        let functions: HashMap<(&str, u32), &Function> = new
            .functions
            .iter()
            .rev()
            .map(|function| ((function.name.as_str(), function.line_start), function))
            .collect();
        let classes: HashMap<&str, &Class> =
            new.classes.iter().rev().map(|class| (class.name.as_str(), class)).collect();
        let mut worsened = Vec::new();
        for (mut smell, matched) in touched.into_iter().zip(matched) {
            let matched = matched.or_else(|| self.match_renamed(&smell)).map(|index| &self.smells[index]);
            if matched.is_some_and(|old| !self.has_grown(old, &smell)) {
                continue;
            }
            let old_name = matched.map_or_else(|| smell.subject.clone(), |old| old.subject.clone());
            if let Some(growth) = self.compare_growth(&smell, &old_name, &functions, &classes) {
                smell.explanation = format!("With this change the {}. {}", growth.clause, smell.explanation);
                smell.title = growth.title;
            }
            worsened.push(smell);
        }
        worsened
    }

    /// Returns whether the figure grew, and by at least the factor `grading.min_growth`.
    fn has_grown(&self, old: &Smell, new: &Smell) -> bool {
        match (old.figure, new.figure) {
            (Some(old), Some(new)) => new > old && new >= old * self.builtin.limits().grading.min_growth,
            _ => false,
        }
    }

    /// Compares the function or class of a smell with its old version, which may have another name. `None` if there is
    /// no old version or nothing grew.
    fn compare_growth(
        &self,
        smell: &Smell,
        old_name: &str,
        functions: &HashMap<(&str, u32), &Function>,
        classes: &HashMap<&str, &Class>,
    ) -> Option<SmellGrowth> {
        let limits = self.builtin.limits();
        match SmellDefinition::from_kind(smell.kind)?.growth {
            GrowthComparison::None => None,
            GrowthComparison::OfFunction(compare) => {
                let after = functions.get(&(smell.subject.as_str(), smell.line_start))?;
                compare(self.functions.get(old_name)?, after, limits)
            }
            GrowthComparison::OfClass(compare) => {
                compare(self.classes.get(old_name)?, classes.get(smell.subject.as_str())?, limits)
            }
        }
    }

    /// Finds an unused old smell of the same kind with an equal or larger figure, and marks it as used: its subject was
    /// renamed. Of several, takes the one with the nearest figure.
    fn match_renamed(&mut self, smell: &Smell) -> Option<usize> {
        let wanted = (smell.kind, to_sortable_bits(smell.figure?), 0);
        while let Some(&found) = self.by_figure.range(wanted..).next().filter(|(kind, ..)| *kind == smell.kind) {
            self.by_figure.remove(&found);
            if !std::mem::replace(&mut self.used[found.2], true) {
                return Some(found.2);
            }
        }
        None
    }
}

/// Returns the last index in `list` that is not used, after removing used indices from its end.
fn find_unused(list: Option<&mut Vec<usize>>, used: &[bool]) -> Option<usize> {
    let list = list?;
    while list.last().is_some_and(|&index| used[index]) {
        list.pop();
    }
    list.last().copied()
}

/// Returns the bits of a figure. Figures are never negative, so the bits sort like the figures.
fn to_sortable_bits(figure: f64) -> u64 {
    figure.max(0.0).to_bits()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Confidence, Priority, Severity};
    use crate::reviewers::analyzer::FileSecrets;
    use crate::reviewers::analyzer::limits::Limits;
    use crate::reviewers::analyzer::smells::{SmellBuilder, SmellGrade};
    use crate::secrets::TextForm;
    use crate::syntax::language::Language;

    fn method(name: &str, lines: usize) -> String {
        let body: String = (1..lines).map(|line| format!("    g(x_{line})\n")).collect();
        format!("def {name}():\n{body}\n")
    }

    /// Returns the titles of the smells that a change adds or makes worse. The hunks come from a line diff.
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
        let grown = ["Function `f` grew from 48 to 84 code lines"];
        let worse = ["Function `f` grew from 70 to 84 code lines"];
        let new = ["Function `f` is 70 code lines long"];
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
            ("a second one", Some(long.as_str()), second.as_str(), &["Function `h` is 65 code lines long"]),
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
            "Function `f` got more complex: cognitive complexity grew from 10 to 21, nesting grew from 4 to 6";
        assert_eq!(titles(Some(&nested(4)), &nested(6)), [expected]);
    }

    #[test]
    fn what_a_change_added_is_asked_by_lines() {
        let hunk = |new_start, new_lines| Hunk { old_start: 1, old_lines: 0, new_start, new_lines };
        let added = LineSet::from_hunks(&[hunk(30, 2), hunk(5, 3), hunk(4, 20), hunk(50, 0)]);
        for (first, last, expected) in [
            (1, 3, false),
            (1, 4, true),
            (20, 25, true),
            (24, 29, false),
            (31, 31, true),
            (32, 60, false),
            (1, 99, true),
        ] {
            assert_eq!(added.overlaps(first, last), expected, "{first}-{last}");
        }
        assert!(!LineSet::from_hunks(&[]).overlaps(1, 9));
    }

    #[test]
    fn a_renamed_function_is_the_one_with_the_nearest_figure() {
        let old = method("long", 99) + &method("short", 65);
        let new = method("short_too", 65) + &method("longer", 99);
        assert_eq!(titles(Some(&old), &new), [""; 0]);
    }

    #[test]
    fn many_smells_are_matched_in_few_steps() {
        let smell = |line: u32| {
            let builder = SmellBuilder {
                kind: Kind::MagicNumbers,
                grade: SmellGrade::new(Priority::P3, Severity::Low, Confidence::Low),
                lines: LineRange::new(line, line),
                title: String::new(),
                explanation: String::new(),
                subject: "the same".to_owned(),
            };
            builder.build().with_anchor((1, 1)).with_figure(f64::from(line))
        };
        let many = 2_000;
        let old = FileReport {
            path: "a.py".to_owned(),
            language: Language::Python,
            smells: (1..=many).map(smell).collect(),
            functions: Vec::new(),
            classes: Vec::new(),
            secrets: FileSecrets::from_text(b"", TextForm::Code),
        };
        let builtin = Builtin::default();
        let mut before = OldVersion::new(&old, b"x\n", &[], b"x\n", &builtin);
        let taken: Vec<Option<usize>> = (1..=many).map(|line| before.match_smell(&smell(line), "x".into())).collect();
        assert_eq!(taken, (0..many as usize).map(Some).collect::<Vec<_>>(), "the first in the file first");
        // Each list is read once: used entries are removed, except the last one that was matched.
        let left: usize = before.by_both.values().map(Vec::len).sum();
        assert_eq!(left, 1);
        assert_eq!((before.match_smell(&smell(1), "x".into()), before.match_renamed(&smell(1))), (None, None));
        assert!(before.by_figure.is_empty());
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
        assert_eq!(smells.map(|smells| smells.len()), Ok(0));
    }
}
