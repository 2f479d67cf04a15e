//! Validates a report against the snapshot and converts it into a finding.
//!
//! - A finding lies within a file of the snapshot and quotes that file, not the model.
//! - Hidden text of the file is not quoted.
//! - An invalid report is rejected with a reason; no report is dropped silently.
//! - The caller removes secrets from the texts of the report.

mod quote_search;
mod scope_lines;
mod suggestion;

#[cfg(test)]
mod tests;

use std::rc::Rc;

use quote_search::{MatchCertainty, QuoteHint, is_searchable};
use suggestion::{ReplacementTarget, SuggestionParts};

pub use quote_search::FileText;
pub use scope_lines::ScopeLines;
pub use suggestion::apply_replacement;

use crate::domain::{
    Confidence, Finding, FindingId, FindingStatus, LineRange, Priority, RejectedReport, ReportedProblem, RunId,
    Severity, Time,
};

/// Maximum number of lines of a finding; a longer range is cut to the quoted part. Not from the literature: nobody can
/// inspect more at once.
const MAX_FINDING_LINES: u32 = 200;

/// The result of validating a report.
#[derive(Debug, Clone, PartialEq)]
pub enum ReportValidation {
    /// The caller sets run ids and times. `notes` names the parts of the report that were dropped.
    Finding {
        /// Finding at the place that the checks found.
        finding: Box<Finding>,
        /// Dropped parts of the report, one line each.
        notes: Vec<String>,
    },
    /// The report failed a check.
    Rejected(RejectedReport),
}

/// The location of a problem.
struct ProblemLocation {
    lines: LineRange,
    /// The lines that identify the problem.
    anchor: LineRange,
    confidence: Confidence,
    target: ReplacementTarget,
}

/// Validates a report against the snapshot. `file` returns the text of a path; it is called for each of
/// [`ScopeLines::candidate_paths`] until a path exists.
///
/// | the report | result |
/// |---|---|
/// | neither a title nor an explanation | rejected |
/// | a path outside the repository or the snapshot | rejected |
/// | a quote that occurs at the claimed lines | a finding there |
/// | a quote that occurs elsewhere in the file | the nearest place; lower confidence if several, or one line matches |
/// | a quote that does not occur in the file | rejected |
/// | no quote, lines inside the file | a finding there, lower confidence |
/// | no quote, no lines, a changed file | a finding at the first changed line, low confidence |
/// | no quote, lines outside the file, or no lines in an unchanged file | rejected |
/// | an unchanged file | a finding if the text names changed code, else rejected |
///
/// A missing priority follows from the severity, and a missing severity from the priority ([`Severity::priority`]);
/// without both they are p2 and medium. A missing confidence is medium.
pub fn validate_report(
    report: &ReportedProblem,
    scope: &ScopeLines,
    run_id: &RunId,
    mut file: impl FnMut(&str) -> Option<Rc<FileText>>,
) -> ReportValidation {
    let mut look = || -> Result<ReportValidation, String> {
        if report.title.is_empty() {
            return Err("it has neither a title nor an explanation".to_owned());
        }
        let paths = scope.candidate_paths(&report.path)?;
        let (path, file) = paths
            .iter()
            .find_map(|path| file(path).map(|file| (path, file)))
            .ok_or_else(|| format!("{} is not in the snapshot", report.path))?;
        let changed = scope.lines(path);
        let place = locate_problem(report, &file, path, changed)?;
        let says_why = || scope.is_named_in(&report.explanation) || scope.is_named_in(&report.title);
        if changed.is_none() && !says_why() {
            return Err(format!("{path} is not changed, and the report names nothing that is"));
        }
        Ok(build_finding(report, path, &file, &place, run_id))
    };
    look().unwrap_or_else(|reason| {
        let mut report = report.clone();
        // Lists name each rejected report by its title.
        if report.title.is_empty() {
            report.title = report.kind.word().to_lowercase().replace('_', " ");
        }
        ReportValidation::Rejected(RejectedReport { report, reason })
    })
}

/// Locates the problem in the file.
fn locate_problem(
    report: &ReportedProblem,
    file: &FileText,
    path: &str,
    changed: Option<&[LineRange]>,
) -> Result<ProblemLocation, String> {
    let last = file.lines();
    if last == 0 {
        return Err(format!("{path} is empty"));
    }
    let claimed = (report.line_start > 0).then(|| LineRange::new(report.line_start, report.line_end.max(1)));
    let hunks = changed.unwrap_or_default();
    let base = report.confidence.unwrap_or(Confidence::Medium);
    if is_searchable(&report.quoted_code) {
        let near = claimed.map_or(QuoteHint::Changed(hunks), QuoteHint::Lines);
        let stand =
            file.find(&report.quoted_code, near).ok_or_else(|| format!("the quoted code does not stand in {path}"))?;
        let lines = claimed.map_or(stand.lines, |claimed| settle_lines(claimed, stand.lines));
        return Ok(ProblemLocation {
            lines: truncate_lines(lines),
            anchor: stand.lines,
            confidence: if stand.certainty == MatchCertainty::Yes { base } else { base.lower() },
            target: replacement_target(report, claimed, stand.lines),
        });
    }
    match claimed {
        Some(claimed) if claimed.start > last => {
            Err(format!("line {} is beyond the end of {path} at line {last}", claimed.start))
        }
        Some(claimed) => {
            let lines = LineRange::new(claimed.start, claimed.end.min(last));
            let lines = if lines.count() <= MAX_FINDING_LINES { lines } else { changed_part(lines, hunks) };
            let target = ReplacementTarget::Lines(report.replaced.unwrap_or(claimed));
            Ok(ProblemLocation { lines, anchor: lines, confidence: base.lower(), target })
        }
        None => {
            let Some(hunks) = changed else {
                return Err(format!("it names no line and quotes no code of {path}, which is not changed"));
            };
            let line = hunks.iter().map(|hunk| hunk.start).min().unwrap_or(1).clamp(1, last);
            let lines = LineRange::new(line, line);
            let target = report.replaced.map_or(ReplacementTarget::Unknown, ReplacementTarget::Lines);
            Ok(ProblemLocation { lines, anchor: lines, confidence: Confidence::Low, target })
        }
    }
}

/// Returns the lines of a finding whose quote is at `found`. The claimed lines stay if they agree with the quote: if
/// they lie within it, or if they contain it in the part that a finding shows.
fn settle_lines(claimed: LineRange, found: LineRange) -> LineRange {
    let shown = LineRange::new(claimed.start, claimed.start.saturating_add(Finding::MAX_QUOTE_LINES as u32 - 1));
    let right = found.contains(claimed) || (claimed.contains(found) && found.start <= shown.end);
    if right && claimed.count() <= MAX_FINDING_LINES { claimed } else { found }
}

/// Returns the lines that a replacement replaces: the lines of the report, moved with its code.
fn replacement_target(report: &ReportedProblem, claimed: Option<LineRange>, found: LineRange) -> ReplacementTarget {
    let Some(claimed) = claimed else { return ReplacementTarget::Lines(report.replaced.unwrap_or(found)) };
    let stated = report.replaced.unwrap_or(claimed);
    if claimed.contains(found) || found.contains(claimed) {
        // More new lines than claimed lines may stand for the whole quote.
        let new_lines = report.replacement.as_deref().map_or(0, |new| new.lines().count());
        let is_unclear = report.replaced.is_none() && !claimed.contains(found) && new_lines > claimed.count() as usize;
        return if is_unclear { ReplacementTarget::Unknown } else { ReplacementTarget::Lines(stated) };
    }
    if claimed.count() != found.count() {
        return ReplacementTarget::Unknown;
    }
    let by = i64::from(found.start) - i64::from(claimed.start);
    let moved = |line: u32| u32::try_from(i64::from(line) + by).ok();
    match (moved(stated.start), moved(stated.end)) {
        (Some(start), Some(end)) => ReplacementTarget::Lines(LineRange::new(start, end)),
        _ => ReplacementTarget::Unknown,
    }
}

fn truncate_lines(lines: LineRange) -> LineRange {
    LineRange::new(lines.start, lines.end.min(lines.start.saturating_add(MAX_FINDING_LINES - 1)))
}

/// Shortens a long range without a quote to its first changed part, or to its first line if nothing in it changed.
fn changed_part(lines: LineRange, hunks: &[LineRange]) -> LineRange {
    let hunk = hunks.iter().filter(|hunk| hunk.overlaps(lines)).min();
    hunk.map_or(LineRange::new(lines.start, lines.start), |hunk| {
        truncate_lines(LineRange::new(hunk.start.max(lines.start), hunk.end.min(lines.end)))
    })
}

/// Returns priority and severity, and completes the missing ones.
fn complete_urgency(report: &ReportedProblem) -> (Priority, Severity) {
    match (report.priority, report.severity) {
        (Some(priority), Some(severity)) => (priority, severity),
        (Some(priority), None) => (priority, priority.severity()),
        (None, Some(severity)) => (severity.priority(), severity),
        (None, None) => (Priority::P2, Severity::Medium),
    }
}

fn build_finding(
    report: &ReportedProblem,
    path: &str,
    file: &FileText,
    place: &ProblemLocation,
    run_id: &RunId,
) -> ReportValidation {
    let (identity, ordinal) = file.identity(place.anchor);
    let finding_id = FindingId::from_parts(report.kind.word(), path, &identity, ordinal);
    let (priority, severity) = complete_urgency(report);
    let SuggestionParts { suggestion, explanation, note } =
        suggestion::build_suggestion(report, file, place.lines, &place.target);
    let finding = Finding {
        lowered: None,
        detail_ref: format!("outputs/{run_id}.json#{finding_id}"),
        finding_id,
        first_run_id: run_id.clone(),
        last_run_id: run_id.clone(),
        priority,
        severity,
        confidence: place.confidence,
        kind: report.kind,
        title: report.title.clone(),
        explanation,
        repo_relative_path: path.to_owned(),
        line_start: place.lines.start,
        line_end: place.lines.end,
        quoted_code: file.quote(place.lines),
        suggestion,
        pattern: None,
        status: FindingStatus::Open,
        reported_at: Time::UNIX_EPOCH,
        voices: Vec::new(),
        steps: Vec::new(),
        disputed: Vec::new(),
        symbol: None,
    };
    ReportValidation::Finding { finding: Box::new(finding), notes: note.into_iter().collect() }
}
