//! Accumulation over the turns of a conversation: which report is a new finding, and which tells of one again.
//!
//! A model reports as it goes, and reports again: in other words, a few lines off, more or less alarmed. Invariants: what
//! is known depends only on the findings and restatements that were given out, in their order, so a journal brings it
//! back; a finding keeps its id, kind, lines and quote; admitting costs about the same however
//! many findings there are. Of two reports of one problem neither the strength nor the text that stays depends on which
//! came first; the place does, it is the first one's. So does, in a chain of reports of which only neighbours overlap, how
//! many of them remain.

use std::collections::{BTreeMap, HashMap};

use super::dedup::sort_by_urgency;
use super::similarity::{FindingSimilarity, FindingWords};
use crate::domain::text::sanitize_line;
use crate::domain::{Finding, FindingId, Kind, Suggestion};

/// So many lines apart, the same problem in other words is the same problem. Own: a condition and what it guards.
const MAX_REWORDED_DISTANCE: u32 = 3;

/// So many lines apart, the same code under the same kind is the same problem. Own: what models miscount.
const MAX_MOVED_DISTANCE: u32 = 10;

/// A report is held against this many known findings at most. Own: more in one place are not told apart anyway.
const MAX_CANDIDATES: usize = 64;

/// Longer explanations are no better. Characters; own: what is read without scrolling.
const MAX_COMPARED_CHARS: usize = 1_500;

/// An explanation with what else was reported at its place. Characters.
const MAX_EXPLANATION_CHARS: usize = 4_000;

/// Of another report's explanation so much is kept. Characters; own: two sentences.
const MAX_ALSO_CHARS: usize = 300;

/// Stands before another problem of the same kind at the same place.
const ALSO_HEADING: &str = "\n\nAlso reported here: ";

/// Smells, and the class of defect under which others report the same.
const TWIN_KINDS: [(Kind, Kind); 5] = [
    (Kind::MissingErrorHandling, Kind::ErrorHandling),
    (Kind::MutableSharedState, Kind::Concurrency),
    (Kind::GlobalVariables, Kind::Concurrency),
    (Kind::HardcodedConfiguration, Kind::Security),
    (Kind::DeadCode, Kind::Correctness),
];

/// What became of a finding that was reported.
#[derive(Debug, Clone, PartialEq)]
pub enum Admission {
    New,
    /// A known finding, stronger or clearer by what was reported; replaces the one with its id.
    Restated(Box<Finding>),
    /// Known, and nothing new about it.
    Repeated(FindingId),
}

/// The findings of a conversation so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FindingAccumulator {
    /// In the order of their first report.
    known: Vec<AccumulatedFinding>,
    by_id: HashMap<FindingId, usize>,
    by_place: HashMap<(String, Kind), FindingLineIndex>,
}

/// The findings of one kind in one file: first line and number to last line. No two of them share a line, because the
/// later one was a duplicate.
type FindingLineIndex = BTreeMap<(u32, usize), u32>;

#[derive(Debug, Clone, PartialEq)]
struct AccumulatedFinding {
    finding: Finding,
    words: FindingWords,
}

/// How a known finding answers to a report; the greatest is the best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct MatchScore {
    /// Whether they are put alike.
    alike: bool,
    of_kind: bool,
    overlaps: bool,
    /// Of 1,000.
    similarity: u32,
    /// The one known for longer.
    index: std::cmp::Reverse<usize>,
}

impl FindingAccumulator {
    /// Takes a report in. It tells of a known finding when it has its id; when path and kind are the same and they share
    /// a line; when, up to 10 lines apart, kind and code are the same; when, up to 3 lines apart, kind and words are the
    /// same by half of them, or the words are and one kind is the other's twin, as `MISSING_ERROR_HANDLING` and
    /// `ERROR_HANDLING`. Of both the stronger priority, severity and confidence stay, the fuller text, and the suggestion
    /// that can be applied; of two problems of one kind at one place the texts of both.
    pub fn admit(&mut self, finding: &Finding) -> Admission {
        let words = FindingWords::from_finding(finding, main_explanation(&finding.explanation));
        let known = self.by_id.get(&finding.finding_id).copied().or_else(|| self.find_match(finding, &words));
        let Some(AccumulatedFinding { finding: before, words: before_words }) =
            known.and_then(|index| self.known.get(index))
        else {
            self.insert(finding);
            return Admission::New;
        };
        let merged = merge_findings(before, finding, before_words.compare(&words));
        if merged == *before {
            return Admission::Repeated(merged.finding_id);
        }
        self.replace(&merged);
        Admission::Restated(Box::new(merged))
    }

    /// All findings, the urgent ones first, then by place.
    pub fn findings(&self) -> Vec<Finding> {
        let mut findings: Vec<Finding> = self.known.iter().map(|known| known.finding.clone()).collect();
        sort_by_urgency(&mut findings);
        findings
    }

    /// The findings in the order of their first report.
    pub fn iter(&self) -> impl Iterator<Item = &Finding> {
        self.known.iter().map(|known| &known.finding)
    }

    pub fn len(&self) -> usize {
        self.known.len()
    }

    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// A finding of an earlier run that stands: what is reported about it again is no new finding.
    pub fn add_known(&mut self, finding: &Finding) {
        if !self.by_id.contains_key(&finding.finding_id) {
            self.insert(finding);
        }
    }

    fn insert(&mut self, finding: &Finding) {
        let index = self.known.len();
        self.by_id.insert(finding.finding_id.clone(), index);
        self.line_index(finding).insert((finding.line_start, index), finding.line_end);
        self.known.push(AccumulatedFinding {
            finding: finding.clone(),
            words: FindingWords::from_finding(finding, main_explanation(&finding.explanation)),
        });
    }

    /// Puts a finding in the place of the one with its id.
    fn replace(&mut self, finding: &Finding) {
        let Some(&index) = self.by_id.get(&finding.finding_id) else { return };
        let Some(known) = self.known.get_mut(index) else { return };
        let words = FindingWords::from_finding(finding, main_explanation(&finding.explanation));
        let before = std::mem::replace(known, AccumulatedFinding { finding: finding.clone(), words }).finding;
        self.line_index(&before).remove(&(before.line_start, index));
        self.line_index(finding).insert((finding.line_start, index), finding.line_end);
    }

    fn line_index(&mut self, finding: &Finding) -> &mut FindingLineIndex {
        self.by_place.entry((finding.repo_relative_path.clone(), finding.kind)).or_default()
    }

    /// The numbers of the findings of a kind that have a line within `reach` of a report's lines, from below.
    fn findings_near(&self, finding: &Finding, kind: Kind, reach: u32) -> impl Iterator<Item = usize> {
        let lines = finding.lines();
        let (first, last) = (lines.start.saturating_sub(reach), lines.end.saturating_add(reach));
        let row = self.by_place.get(&(finding.repo_relative_path.clone(), kind));
        row.into_iter()
            .flat_map(move |row| row.range(..=(last, usize::MAX)).rev())
            .take_while(move |(_, end)| **end >= first)
            .take(MAX_CANDIDATES)
            .map(|(&(_, index), _)| index)
    }

    /// The known finding that a report tells of.
    fn find_match(&self, finding: &Finding, words: &FindingWords) -> Option<usize> {
        let same = self.findings_near(finding, finding.kind, MAX_MOVED_DISTANCE);
        let twins = twin_kinds(finding.kind).flat_map(|kind| self.findings_near(finding, kind, MAX_REWORDED_DISTANCE));
        same.chain(twins).filter_map(|index| self.score_match(index, finding, words)).max().map(|best| best.index.0)
    }

    fn score_match(&self, index: usize, finding: &Finding, words: &FindingWords) -> Option<MatchScore> {
        let AccumulatedFinding { finding: known, words: known_words } = self.known.get(index)?;
        let likeness = known_words.compare(words);
        let (of_kind, apart) = (known.kind == finding.kind, known.lines().distance(finding.lines()));
        let in_other_words = likeness.alike && apart <= MAX_REWORDED_DISTANCE;
        let moved = likeness.same_code && !likeness.told_apart && apart <= MAX_MOVED_DISTANCE;
        let same = if of_kind { apart == 0 || moved || in_other_words } else { in_other_words };
        same.then_some(MatchScore {
            alike: likeness.alike,
            of_kind,
            overlaps: apart == 0,
            similarity: likeness.similarity,
            index: std::cmp::Reverse(index),
        })
    }
}

fn twin_kinds(kind: Kind) -> impl Iterator<Item = Kind> {
    TWIN_KINDS.into_iter().filter_map(move |(smell, class)| match kind {
        _ if kind == smell => Some(class),
        _ if kind == class => Some(smell),
        _ => None,
    })
}

/// An explanation without what else was reported at its place.
fn main_explanation(explanation: &str) -> &str {
    explanation.split(ALSO_HEADING).next().unwrap_or_default()
}

/// A known finding with what a report adds to it.
fn merge_findings(known: &Finding, new: &Finding, likeness: FindingSimilarity) -> Finding {
    let mut both = known.clone();
    both.priority = known.priority.min(new.priority);
    both.severity = known.severity.max(new.severity);
    both.confidence = known.confidence.max(new.confidence);
    let (own, also) = known.explanation.split_at(main_explanation(&known.explanation).len());
    let same = likeness.alike || known.title == new.title;
    let newer = match same {
        true => fullness(&new.title, main_explanation(&new.explanation)) > fullness(&known.title, own),
        // The text goes with the more urgent problem.
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

/// Which of two texts of one problem says more; of equally full ones one is greater whatever their order.
fn fullness<'a>(title: &'a str, explanation: &'a str) -> (usize, &'a str, &'a str) {
    (explanation.chars().take(MAX_COMPARED_CHARS).count(), explanation, title)
}

/// Adds another problem to a finding's text, once, and while there is room.
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

/// The suggestion of a finding: one that can be applied before one in words, the known one before the new one.
fn better_suggestion(known: &Finding, new: &Finding) -> Option<Suggestion> {
    let worth = |finding: &Finding| match &finding.suggestion {
        Some(Suggestion { replacement: Some(_), .. }) => 2,
        Some(_) => 1,
        None => 0,
    };
    if worth(new) <= worth(known) {
        return known.suggestion.clone();
    }
    let mut suggestion = new.suggestion.clone()?;
    // It is for the lines of the report, which are not always those of the finding.
    if suggestion.replacement.is_some() && suggestion.lines.is_none() && new.lines() != known.lines() {
        suggestion.lines = Some(new.lines());
    }
    Some(suggestion)
}

#[cfg(test)]
mod tests;
