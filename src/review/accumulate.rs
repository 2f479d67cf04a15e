//! Accumulates findings over the turns of a conversation: decides whether a report is a new finding or repeats a known
//! one.
//!
//! A model reports problems as it goes, and repeats them in other words, a few lines off, or with another severity.
//!
//! - The state depends only on the findings and restatements that were returned, in their order. Therefore a journal
//!   restores it.
//! - A finding keeps its id, kind, lines and quote.
//! - The cost of adding a report hardly depends on the number of findings.
//! - For two reports of one problem, the resulting strength and text do not depend on their order. The place does: it
//!   is that of the first report. For a chain of reports in which only neighbours overlap, the number of resulting
//!   findings depends on the order, too.

use std::collections::HashMap;

use super::dedup::{sort_by_urgency, stated_lines};
use super::similarity::{FindingSimilarity, FindingWords, ProblemDistinction};
use crate::domain::text::sanitize_line;
use crate::domain::{Finding, FindingId, Kind, LineIndex, LineRange, Suggestion};

/// Maximum distance in lines at which the same problem in other words counts as the same. Not from the literature: a
/// condition and the code it guards.
pub(super) const MAX_REWORDED_DISTANCE: u32 = 3;

/// Maximum distance in lines at which the same code under the same kind counts as the same problem. Not from the
/// literature: typical miscounting by models.
pub(super) const MAX_MOVED_DISTANCE: u32 = 10;

/// Maximum number of known findings with which a report is compared. Not from the literature: more findings at one
/// place cannot be distinguished anyway.
const MAX_CANDIDATES: usize = 64;

/// Length in characters above which a longer explanation is no better. Not from the literature: what can be read
/// without scrolling.
const MAX_COMPARED_CHARS: usize = 1_500;

/// Maximum length of an explanation including other problems at its place, in characters.
const MAX_EXPLANATION_CHARS: usize = 4_000;

/// Maximum length of another report's explanation that is appended, in characters. Not from the literature: two
/// sentences.
const MAX_ALSO_CHARS: usize = 300;

/// The heading before a report of the same kind at the same place that may be another problem.
const ALSO_HEADING: &str = "\n\nAlso reported here: ";

/// The result of adding a report.
#[derive(Debug, Clone, PartialEq)]
pub enum Admission {
    /// No known finding describes the same problem.
    New,
    /// The report made a known finding stronger or clearer. The new version replaces the finding with the same id.
    Restated(Box<Finding>),
    /// The report repeats a known finding without anything new.
    Repeated(FindingId),
}

/// The findings of a conversation so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FindingAccumulator {
    /// In the order of their first report.
    known: Vec<AccumulatedFinding>,
    by_id: HashMap<FindingId, usize>,
    /// Number of the present answer, 1-based; 0 before the first.
    answer: u32,
    /// The findings of one kind in one file.
    by_place: HashMap<(String, Kind), LineIndex>,
}

#[derive(Debug, Clone, PartialEq)]
struct AccumulatedFinding {
    finding: Finding,
    words: FindingWords,
    /// Number of the answer that reported it first; 0 for a finding of an earlier run.
    answer: u32,
}

/// The quality of a match between a known finding and a report; the greatest is the best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct MatchScore {
    /// The texts are similar.
    alike: bool,
    of_kind: bool,
    overlaps: bool,
    /// In thousandths.
    similarity: u32,
    /// The older finding wins.
    index: std::cmp::Reverse<usize>,
}

impl FindingAccumulator {
    /// Begins an answer. Two of its reports with different titles are two problems, whatever they have in common.
    pub fn begin_answer(&mut self) {
        self.answer += 1;
    }

    /// Adds a report. It repeats a known finding in any of these cases:
    ///
    /// - The ids are equal.
    /// - Path and kind are equal, the lines overlap, and the words do not clearly describe two problems.
    /// - Path, kind and code are equal, at most 10 lines apart, and the words do not clearly describe two problems.
    /// - Path and kind are equal and half of the words are common, at most 3 lines apart. A twin kind, like
    ///   `MISSING_ERROR_HANDLING` and `ERROR_HANDLING`, counts as equal here.
    ///
    /// The finding keeps the stronger priority, severity and confidence, the fuller text, and the suggestion that can
    /// be applied. If the words leave open whether two reports at one place are one problem, it keeps both texts.
    pub fn admit(&mut self, finding: &Finding) -> Admission {
        let words = FindingWords::from_finding(finding, main_explanation(&finding.explanation));
        let known = self.by_id.get(&finding.finding_id).copied().or_else(|| self.find_match(finding, &words));
        let Some(AccumulatedFinding { finding: before, words: before_words, .. }) =
            known.and_then(|index| self.known.get(index))
        else {
            self.insert(finding, self.answer);
            return Admission::New;
        };
        let mut merged = merge_findings(before, finding, before_words.compare(&words));
        if self.blurs_neighbour(before, &merged) {
            (merged.title, merged.explanation) = (before.title.clone(), before.explanation.clone());
            if finding.title != before.title {
                append_problem(&mut merged, &finding.title, main_explanation(&finding.explanation));
            }
        }
        if merged == *before {
            return Admission::Repeated(merged.finding_id);
        }
        self.replace(&merged);
        Admission::Restated(Box::new(merged))
    }

    /// Returns `true` if a new text of a finding would no longer tell it apart from another finding at its place.
    fn blurs_neighbour(&self, before: &Finding, merged: &Finding) -> bool {
        if (&before.title, &before.explanation) == (&merged.title, &merged.explanation) {
            return false;
        }
        let words = |finding: &Finding| FindingWords::from_finding(finding, main_explanation(&finding.explanation));
        let (old, new) = (words(before), words(merged));
        self.findings_near(before, before.kind, 0).filter_map(|index| self.known.get(index)).any(|other| {
            let is_apart =
                |words: &FindingWords| words.compare(&other.words).distinct.separates(before, &other.finding);
            other.finding.finding_id != before.finding_id && is_apart(&old) && !is_apart(&new)
        })
    }

    /// Returns all findings, sorted by priority, then by place.
    pub fn findings(&self) -> Vec<Finding> {
        let mut findings: Vec<Finding> = self.known.iter().map(|known| known.finding.clone()).collect();
        sort_by_urgency(&mut findings);
        findings
    }

    /// Returns the findings in the order of their first report.
    pub fn iter(&self) -> impl Iterator<Item = &Finding> {
        self.known.iter().map(|known| &known.finding)
    }

    /// Returns the number of findings, including known findings of earlier runs.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Returns true if there are no findings.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Adds a finding of an earlier run, so that a new report about it is no new finding.
    pub fn add_known(&mut self, finding: &Finding) {
        if !self.by_id.contains_key(&finding.finding_id) {
            self.insert(finding, 0);
        }
    }

    fn insert(&mut self, finding: &Finding, answer: u32) {
        let index = self.known.len();
        self.by_id.insert(finding.finding_id.clone(), index);
        self.line_index(finding).insert(stated_lines(finding), index);
        self.known.push(AccumulatedFinding {
            finding: finding.clone(),
            words: FindingWords::from_finding(finding, main_explanation(&finding.explanation)),
            answer,
        });
    }

    /// Replaces the finding with the same id.
    fn replace(&mut self, finding: &Finding) {
        let Some(&index) = self.by_id.get(&finding.finding_id) else { return };
        let Some(known) = self.known.get_mut(index) else { return };
        let words = FindingWords::from_finding(finding, main_explanation(&finding.explanation));
        let newer = AccumulatedFinding { finding: finding.clone(), words, answer: known.answer };
        let before = std::mem::replace(known, newer).finding;
        self.line_index(&before).remove(stated_lines(&before), index);
        self.line_index(finding).insert(stated_lines(finding), index);
    }

    fn line_index(&mut self, finding: &Finding) -> &mut LineIndex {
        self.by_place.entry((finding.repo_relative_path.clone(), finding.kind)).or_default()
    }

    /// Returns the indices of the findings of a kind with a line within `reach` of a report's lines, from the bottom
    /// up.
    fn findings_near(&self, finding: &Finding, kind: Kind, reach: u32) -> impl Iterator<Item = usize> {
        let lines = finding.lines();
        let near = LineRange::new(lines.start.saturating_sub(reach), lines.end.saturating_add(reach));
        let row = self.by_place.get(&(finding.repo_relative_path.clone(), kind));
        row.into_iter().flat_map(move |row| row.overlapping(near)).take(MAX_CANDIDATES)
    }

    /// Returns the known finding that a report repeats.
    fn find_match(&self, finding: &Finding, words: &FindingWords) -> Option<usize> {
        let same = self.findings_near(finding, finding.kind, MAX_MOVED_DISTANCE);
        let twins = finding.kind.twins().flat_map(|kind| self.findings_near(finding, kind, MAX_REWORDED_DISTANCE));
        same.chain(twins).filter_map(|index| self.score_match(index, finding, words)).max().map(|best| best.index.0)
    }

    fn score_match(&self, index: usize, finding: &Finding, words: &FindingWords) -> Option<MatchScore> {
        let AccumulatedFinding { finding: known, words: known_words, answer } = self.known.get(index)?;
        let likeness = known_words.compare(words);
        let is_one_answer = *answer > 0 && *answer == self.answer;
        let (of_kind, apart) = (known.kind == finding.kind, known.lines().distance(finding.lines()));
        let in_other_words = likeness.alike && apart <= MAX_REWORDED_DISTANCE;
        let is_unclear = likeness.distinct == ProblemDistinction::None;
        let moved = likeness.same_code && !likeness.told_apart && is_unclear && apart <= MAX_MOVED_DISTANCE;
        let at_one_place = apart == 0 && !likeness.separates(is_one_answer, known, finding);
        let same = if of_kind { at_one_place || (apart > 0 && moved) || in_other_words } else { in_other_words };
        same.then_some(MatchScore {
            alike: likeness.alike,
            of_kind,
            overlaps: apart == 0,
            similarity: likeness.similarity,
            index: std::cmp::Reverse(index),
        })
    }
}

/// Returns an explanation without the other problems at its place.
pub(super) fn main_explanation(explanation: &str) -> &str {
    explanation.split(ALSO_HEADING).next().unwrap_or_default()
}

/// Returns a known finding merged with a report.
fn merge_findings(known: &Finding, new: &Finding, likeness: FindingSimilarity) -> Finding {
    let mut both = known.clone();
    if new.priority < known.priority {
        (both.priority, both.lowered) = (new.priority, new.lowered.clone());
    }
    both.severity = known.severity.max(new.severity);
    both.confidence = known.confidence.max(new.confidence);
    let (own, also) = known.explanation.split_at(main_explanation(&known.explanation).len());
    let same = likeness.alike || known.title == new.title;
    let newer = match same {
        true => fullness(&new.title, main_explanation(&new.explanation)) > fullness(&known.title, own),
        // The text of the more urgent problem comes first.
        false => (new.priority, known.severity) < (known.priority, new.severity),
    };
    if newer {
        both.title.clone_from(&new.title);
        both.explanation = format!("{}{also}", main_explanation(&new.explanation));
    }
    if !same {
        let (title, explanation) =
            if newer { (&known.title, own) } else { (&new.title, main_explanation(&new.explanation)) };
        append_problem(&mut both, title, explanation);
    }
    if same || newer || known.suggestion.is_none() {
        both.suggestion = better_suggestion(known, new);
    }
    both
}

/// Returns a key that compares two texts of one problem; the greater says more. The result does not depend on their
/// order, even for equally long texts.
pub(super) fn fullness<'a>(title: &'a str, explanation: &'a str) -> (usize, &'a str, &'a str) {
    (explanation.chars().take(MAX_COMPARED_CHARS).count(), explanation, title)
}

/// Appends another problem to a finding's text, once, and only within the maximum length.
fn append_problem(finding: &mut Finding, title: &str, explanation: &str) {
    let heading = format!("{ALSO_HEADING}{title}");
    let told = finding
        .explanation
        .split(ALSO_HEADING)
        .skip(1)
        .any(|told| told == title || told.starts_with(&format!("{title}\n")));
    if told {
        return;
    }
    let mut also = heading;
    if !explanation.is_empty() {
        let first: String = explanation.chars().take(MAX_ALSO_CHARS).collect();
        let more = if first.len() < explanation.len() { "…" } else { "" };
        also.push_str(&format!("\n{}{more}", sanitize_line(&first)));
    }
    if finding.explanation.chars().count() + also.chars().count() <= MAX_EXPLANATION_CHARS {
        finding.explanation.push_str(&also);
    }
}

/// Chooses the suggestion: one that can be applied before one in words, then the known before the new.
pub(super) fn better_suggestion(known: &Finding, new: &Finding) -> Option<Suggestion> {
    let worth = |finding: &Finding| match &finding.suggestion {
        Some(Suggestion { replacement: Some(_), .. }) => 2,
        Some(_) => 1,
        None => 0,
    };
    if worth(new) <= worth(known) {
        return known.suggestion.clone();
    }
    let mut suggestion = new.suggestion.clone()?;
    // The replacement is for the report's lines, which may differ from the finding's.
    if suggestion.replacement.is_some() && suggestion.lines.is_none() && new.lines() != known.lines() {
        suggestion.lines = Some(new.lines());
    }
    Some(suggestion)
}

#[cfg(test)]
mod tests;
