//! DUPLICATE_CODE: reports code that occurs twice, apart from names. Its check searches within a file,
//! [`search::CloneSearch`] searches a snapshot for copies of added code, [`index::CloneIndex`] searches a set of files.
//!
//! - Similarity is the share of identical tokens among the tokens of the longer side. An exact copy has 100 %, a copy
//!   with all names changed has about 50 to 60 %.
//! - Changed names must be changed consistently.
//! - Imports, tables of literals and lists of accessors are not copies.
//! - Each place has one finding, on the later side.

pub(crate) mod index;
mod indexed_line_ranges;
mod language_family;
mod lexer;
mod matching;
pub(crate) mod search;

use std::collections::BTreeMap;

use serde::Deserialize;

use self::indexed_line_ranges::IndexedLineRanges;
use self::lexer::CloneToken;
use self::matching::{CloneMatch, CloneRules, CloneSimilarity};
use super::{CheckedFile, GrowthComparison, InFileClones, Smell, SmellBuilder, SmellDefinition, SmellGrade};
use crate::domain::{Confidence, Kind, LineRange, Priority, Severity, text};
use crate::reviewers::analyzer::limits::Limits;
use crate::syntax::facts::{FileFacts, Function};
use crate::syntax::source::ParsedFile;

/// DUPLICATE_CODE in the registry.
pub const SMELL: SmellDefinition = SmellDefinition { kind: Kind::DuplicateCode, check, growth: GrowthComparison::None };

/// Thresholds of DUPLICATE_CODE: the table `duplicate_code` of `assets/smells.toml`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DuplicateCodeLimits {
    pub enabled: bool,
    pub min_tokens: u32,
    pub min_lines: u32,
    pub high_similarity: u32,
    pub medium_similarity: u32,
    pub low_similarity: u32,
}

/// Reports copies within one file at the later place; the smell names the earlier one.
fn check(file: &CheckedFile<'_, '_>, out: &mut Vec<Smell>) {
    let CheckedFile { source, facts, limits, .. } = *file;
    if file.in_file_clones == InFileClones::Ignored {
        return;
    }
    let tokens = lexer::tokenize(source.language, source.text);
    let rules = CloneRules::from_limits(limits);
    if tokens.len() < 2 * rules.min_tokens as usize {
        return;
    }
    let prints = matching::group_by_hash(&matching::winnow_fingerprints(&tokens));
    let place = ReportingFile::new(source, facts);
    let found = matching::find_matches(&tokens, &prints, None)
        .into_iter()
        .filter_map(|copy| place.evaluate_match(&copy, &tokens, &tokens, &rules))
        .map(|judged| LocatedClone { there_path: source.path.to_owned(), there_facts: Some(facts), accepted: judged })
        .collect();
    out.extend(place.build_smells(found, limits));
}

impl CloneRules {
    fn from_limits(limits: &Limits) -> Self {
        let limit = &limits.duplicate_code;
        Self {
            min_tokens: limit.min_tokens,
            min_lines: limit.min_lines,
            min_similarity: limit.low_similarity,
            test_factor: limits.grading.test_factor,
        }
    }
}

/// A copy that meets the rules.
#[derive(Debug, Clone)]
struct AcceptedClone {
    copy: CloneMatch,
    here: LineRange,
    there: LineRange,
    similarity: CloneSimilarity,
    is_test: bool,
}

/// An accepted copy with the position of its other side.
struct LocatedClone<'a> {
    there_path: String,
    /// Facts of the file with the other side; `None` if it was not parsed.
    there_facts: Option<&'a FileFacts>,
    accepted: AcceptedClone,
}

/// File in which the findings are reported.
struct ReportingFile<'a> {
    path: &'a str,
    text: &'a [u8],
    facts: Option<&'a FileFacts>,
    test_lines: IndexedLineRanges,
    /// Lines of the functions that are not inside another one.
    functions: IndexedLineRanges,
    is_test_file: bool,
}

impl<'a> ReportingFile<'a> {
    fn new(source: &ParsedFile<'a>, facts: &'a FileFacts) -> Self {
        let lines = |&(start, end): &(u32, u32)| {
            let first = source.nodes.get(start as usize).map_or(0, |node| node.row + 1);
            let last = (end as usize).checked_sub(1).and_then(|last| source.nodes.get(last));
            LineRange::new(first, last.map_or(first, |node| node.end_row + 1))
        };
        let lines_of = |function: &Function| LineRange::new(function.line_start, function.line_end);
        let tests = facts.functions.iter().filter(|function| function.is_test);
        let outer = facts.functions.iter().filter(|function| function.outer.is_none());
        Self {
            path: source.path,
            text: source.text,
            facts: Some(facts),
            test_lines: facts.test_ranges.iter().map(lines).chain(tests.map(lines_of)).collect(),
            functions: outer.map(lines_of).collect(),
            is_test_file: facts.is_test_file,
        }
    }

    fn is_test(&self, lines: LineRange) -> bool {
        self.is_test_file || self.test_lines.contains_range(lines)
    }

    /// Trims a copy to whole functions and lines, and measures its similarity; `None` if it does not meet the rules.
    fn evaluate_match(
        &self,
        copy: &CloneMatch,
        a: &[CloneToken],
        b: &[CloneToken],
        rules: &CloneRules,
    ) -> Option<AcceptedClone> {
        if copy.token_count() < rules.min_tokens {
            return None;
        }
        let copy = self.trim_to_functions(copy, a, rules);
        let copy = trim_to_lines(&copy, a, rules);
        let (start, end) = copy.range_a();
        let part = a.get(start as usize..end as usize)?;
        let (first, last) = (part.first()?.line, part.last()?.line);
        let here = LineRange::new(first, last);
        let is_test = self.is_test(here);
        let factor = if is_test { rules.test_factor.max(1.0) } else { 1.0 };
        if f64::from(copy.token_count()) < f64::from(rules.min_tokens) * factor
            || count_code_lines(part) < rules.min_lines
            || matching::is_boilerplate(part)
        {
            return None;
        }
        let likeness = matching::measure_similarity(&copy, a, b)?;
        if likeness.percent < rules.min_similarity {
            return None;
        }
        let (there_start, there_end) = copy.range_b();
        let there =
            LineRange::new(b.get(there_start as usize)?.line, b.get((there_end as usize).checked_sub(1)?)?.line);
        Some(AcceptedClone { copy, here, there, similarity: likeness, is_test })
    }

    /// Cuts off the end of a function at the start of a copy, and the head of a function at its end, unless the part
    /// alone is long enough for a copy.
    fn trim_to_functions(&self, copy: &CloneMatch, a: &[CloneToken], rules: &CloneRules) -> CloneMatch {
        let (mut start, mut end) = copy.range_a();
        let Some((first, last)) = a.get(start as usize).zip(a.get((end as usize).wrapping_sub(1))) else {
            return copy.clone();
        };
        let (first, last) = (first.line, last.line);
        for LineRange { end: foot, .. } in
            self.functions.ranges_at(first).filter(|it| it.start < first && it.end < last)
        {
            let after = start + a[start as usize..end as usize].partition_point(|token| token.line <= foot) as u32;
            if after - start < rules.min_tokens {
                start = after;
            }
        }
        for LineRange { start: head, .. } in
            self.functions.ranges_at(last).filter(|it| first < it.start && last < it.end)
        {
            let before = start + a[start as usize..end as usize].partition_point(|token| token.line < head) as u32;
            if end - before < rules.min_tokens {
                end = before;
            }
        }
        copy.clip(start, end.max(start))
    }

    /// Builds one smell per place: of overlapping copies the best one remains, and the others are counted.
    fn build_smells(&self, found: Vec<LocatedClone<'_>>, limits: &Limits) -> Vec<Smell> {
        let kept = merge_overlapping(found);
        let lines: Vec<&[u8]> = match kept.is_empty() {
            true => Vec::new(),
            false => self.text.split(|&byte| byte == b'\n').collect(),
        };
        kept.iter().map(|(copy, others)| self.build_smell(copy, *others, &lines, limits)).collect()
    }

    fn build_smell(&self, found: &LocatedClone<'_>, others: u32, text_lines: &[&[u8]], limits: &Limits) -> Smell {
        let AcceptedClone { copy, here, there, similarity: likeness, is_test } = &found.accepted;
        let limit = &limits.duplicate_code;
        let severity = match likeness.percent {
            high if high >= limit.high_similarity => Severity::High,
            medium if medium >= limit.medium_similarity => Severity::Medium,
            _ => Severity::Low,
        };
        let tokens = copy.token_count();
        let long = tokens >= 4 * limit.min_tokens;
        let priority = match severity {
            _ if *is_test => Priority::P3,
            Severity::High | Severity::Critical => Priority::P2,
            Severity::Medium if long => Priority::P2,
            _ => Priority::P3,
        };
        let severity = if *is_test { severity.min(Severity::Medium) } else { severity };
        let confidence = match severity {
            Severity::High | Severity::Critical => Confidence::High,
            Severity::Medium => Confidence::Medium,
            Severity::Low => Confidence::Low,
        };
        let name_of = |facts: Option<&FileFacts>, lines: LineRange| {
            facts.and_then(|facts| function_at(facts, lines)).map(|f| f.name.clone())
        };
        let here_name = name_of(self.facts, *here);
        let there_name = name_of(found.there_facts, *there);
        let lines = here.end - here.start + 1;
        let place = format!("{}:{}-{}", found.there_path, there.start, there.end);
        let like =
            if likeness.verbatim { "to the letter".to_owned() } else { format!("{} % the same", likeness.percent) };
        let also = match others {
            0 => String::new(),
            n => format!(" (and {n} more {})", if n == 1 { "place" } else { "places" }),
        };
        let builder = SmellBuilder {
            kind: Kind::DuplicateCode,
            grade: SmellGrade::new(priority, severity, confidence),
            lines: *here,
            title: format!("{} repeat {place}, {like}", text::format_count(lines as usize, "line")),
            explanation: format!(
                "The {tokens} tokens of lines {}-{} also stand in {place}{also}; {} % are the same to the letter (limit {} \
                 tokens). A change to one has to be made to the other{}.",
                here.start,
                here.end,
                likeness.percent,
                limit.min_tokens,
                if others == 0 { "" } else { "s" }
            ),
            subject: format!(
                "{} ~ {} {}",
                here_name.unwrap_or_else(|| normalized_line(text_lines, here.start)),
                if found.there_path == self.path { "" } else { &found.there_path },
                there_name.unwrap_or_default()
            ),
        };
        builder.build().with_anchor((here.start, here.end.min(here.start + 2)))
    }
}

/// Returns the best of each set of overlapping copies, with the number of other places, sorted by line.
fn merge_overlapping(mut found: Vec<LocatedClone<'_>>) -> Vec<(LocatedClone<'_>, u32)> {
    sort_best_first(&mut found);
    // Kept copies do not overlap: their order by start is their order by end too.
    let mut kept: BTreeMap<u32, (usize, LocatedClone<'_>, u32)> = BTreeMap::new();
    for (rank, copy) in found.into_iter().enumerate() {
        let here = copy.accepted.here;
        let overlapping =
            kept.range_mut(..=here.end).rev().take_while(|(_, (_, known, _))| known.accepted.here.end >= here.start);
        match overlapping.map(|(_, known)| known).min_by_key(|(rank, ..)| *rank) {
            Some((_, known, others)) => {
                let elsewhere =
                    known.there_path != copy.there_path || !known.accepted.there.overlaps(copy.accepted.there);
                *others += u32::from(elsewhere);
            }
            None => drop(kept.insert(here.start, (rank, copy, 0))),
        }
    }
    kept.into_values().map(|(_, copy, others)| (copy, others)).collect()
}

/// Sorts the copies: longer ones first, then more similar ones.
fn sort_best_first(found: &mut [LocatedClone<'_>]) {
    found.sort_by(|one, other| {
        let key = |found: &LocatedClone<'_>| (found.accepted.copy.token_count(), found.accepted.similarity.percent);
        key(other).cmp(&key(one)).then_with(|| {
            let place = |found: &LocatedClone<'_>| (found.accepted.here.start, found.accepted.there.start);
            (place(one), &one.there_path).cmp(&(place(other), &other.there_path))
        })
    });
}

fn normalized_line(lines: &[&[u8]], line: u32) -> String {
    let bytes = lines.get(line.saturating_sub(1) as usize).copied().unwrap_or_default();
    text::normalize_code(&String::from_utf8_lossy(bytes))
}

fn function_at(facts: &FileFacts, lines: LineRange) -> Option<&Function> {
    // Functions are in document order: the last one that contains the lines is the innermost.
    let inside = facts.functions.iter().rev().find(|f| f.line_start <= lines.start && lines.end <= f.line_end);
    inside.or_else(|| facts.functions.iter().find(|f| lines.start <= f.line_start && f.line_start <= lines.end))
}

fn count_code_lines(tokens: &[CloneToken]) -> u32 {
    let mut last = 0;
    tokens.iter().fold(0, |lines, token| {
        let new = token.line != last;
        last = token.line;
        lines + u32::from(new)
    })
}

/// Cuts off partial lines at both ends, and closing brackets before the first statement, if the copy stays long enough.
fn trim_to_lines(copy: &CloneMatch, a: &[CloneToken], rules: &CloneRules) -> CloneMatch {
    let (mut start, mut end) = copy.range_a();
    let starts_line = |at: u32| at == 0 || a[at as usize - 1].line != a[at as usize].line;
    let is_foot =
        |at: u32| ["}", ")", "]", ";", ",", "end"].iter().any(|text| lexer::is_fixed_token(&a[at as usize], text));
    let mut cut = start;
    while cut < end && (!starts_line(cut) || is_foot(cut)) {
        cut += 1;
    }
    if end - cut >= rules.min_tokens {
        start = cut;
    }
    let mut cut = end;
    while cut > start && (cut as usize) < a.len() && a[cut as usize - 1].line == a[cut as usize].line {
        cut -= 1;
    }
    if cut - start >= rules.min_tokens {
        end = cut;
    }
    copy.clip(start, end)
}

#[cfg(test)]
mod tests;
