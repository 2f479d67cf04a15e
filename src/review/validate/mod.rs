//! The critic's look at one report: whether what it says can be true of the snapshot, and what of it is made a finding.
//!
//! Invariants: a finding lies within a file of the snapshot and quotes that file, not the model; what was hidden in the
//! file is not quoted; a report that does not hold is rejected with a reason, none is dropped. Texts of the report are
//! the caller's to free of secrets.

mod quote_search;
mod scope_lines;
mod suggestion;

#[cfg(test)]
mod tests;

use std::rc::Rc;

use quote_search::{MatchCertainty, QuoteHint, is_searchable};
use suggestion::ReplacementTarget;

pub use quote_search::FileText;
pub use scope_lines::ScopeLines;
pub use suggestion::apply_replacement;

use crate::domain::{
    Confidence, Finding, FindingId, FindingStatus, LineRange, Priority, RejectedReport, ReportedProblem, RunId,
    Severity, Time,
};

/// Longer places are cut to the quoted part. Lines; own: nobody can look at more at once.
const MAX_FINDING_LINES: u32 = 200;

/// What became of a report.
#[derive(Debug, Clone, PartialEq)]
pub enum ReportValidation {
    /// Run ids and times are the caller's to set; `notes` say what of the report was dropped.
    Finding {
        finding: Box<Finding>,
        notes: Vec<String>,
    },
    Rejected(RejectedReport),
}

/// Where a problem is.
struct ProblemLocation {
    lines: LineRange,
    /// The lines that identify it.
    anchor: LineRange,
    confidence: Confidence,
    target: ReplacementTarget,
}

/// Holds a report against the snapshot; `file` gives the text of a path in it, and is asked for each of
/// [`ScopeLines::paths`] until there is one.
///
/// | the report | becomes |
/// |---|---|
/// | a path outside the repository, or that the snapshot has not | rejected |
/// | a quote that stands at its lines | a finding there |
/// | a quote that stands elsewhere in the file | a finding at the nearest such place; less sure where there are several, or where only one telling line of the quote stands |
/// | a quote that stands nowhere in the file | rejected |
/// | no quote, lines that the file has | a finding there, less sure |
/// | no quote, no line, a changed file | a finding at its first changed line, hardly sure |
/// | no quote, lines that the file has not, or none in an unchanged file | rejected |
/// | a file that is not changed | a finding if the explanation names a changed file or symbol, else rejected |
///
/// Of priority and severity the one that is missing follows from the other ([`Severity::priority`]); without both they
/// are p2 and medium. Confidence is medium where none is given.
pub fn validate_report(
    report: &ReportedProblem,
    scope: &ScopeLines,
    run_id: &RunId,
    mut file: impl FnMut(&str) -> Option<Rc<FileText>>,
) -> ReportValidation {
    let mut look = || -> Result<ReportValidation, String> {
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
    look().unwrap_or_else(|reason| ReportValidation::Rejected(RejectedReport { report: report.clone(), reason }))
}

/// Where in the file the problem is.
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
            confidence: if stand.certainty == MatchCertainty::Yes { base } else { lower_confidence(base) },
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
            Ok(ProblemLocation { lines, anchor: lines, confidence: lower_confidence(base), target })
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

/// The lines of a finding whose quote stands at `found`. The claimed ones stay when the quote says no more than that
/// they are right: when they lie within it, or it within the part of them that a finding shows.
fn settle_lines(claimed: LineRange, found: LineRange) -> LineRange {
    let shown = LineRange::new(claimed.start, claimed.start.saturating_add(Finding::MAX_QUOTE_LINES as u32 - 1));
    let right = found.contains(claimed) || (claimed.contains(found) && found.start <= shown.end);
    if right && claimed.count() <= MAX_FINDING_LINES { claimed } else { found }
}

/// What a replacement is for: the lines that the report says, moved as its code moved.
fn replacement_target(report: &ReportedProblem, claimed: Option<LineRange>, found: LineRange) -> ReplacementTarget {
    let Some(claimed) = claimed else { return ReplacementTarget::Lines(report.replaced.unwrap_or(found)) };
    let stated = report.replaced.unwrap_or(claimed);
    if claimed.contains(found) || found.contains(claimed) {
        return ReplacementTarget::Lines(stated);
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

/// Of a place that is too long, and of which nothing was quoted, the first part that was changed, or else its first line.
fn changed_part(lines: LineRange, hunks: &[LineRange]) -> LineRange {
    let hunk = hunks.iter().filter(|hunk| hunk.overlaps(lines)).min();
    hunk.map_or(LineRange::new(lines.start, lines.start), |hunk| {
        truncate_lines(LineRange::new(hunk.start.max(lines.start), hunk.end.min(lines.end)))
    })
}

fn lower_confidence(confidence: Confidence) -> Confidence {
    match confidence {
        Confidence::High => Confidence::Medium,
        Confidence::Medium | Confidence::Low => Confidence::Low,
    }
}

/// How soon and how bad, where one or both are missing.
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
    let (suggestion, note) = suggestion::build_suggestion(report, file, place.lines, &place.target);
    let finding = Finding {
        detail_ref: format!("outputs/{run_id}.json#{finding_id}"),
        finding_id,
        first_run_id: run_id.clone(),
        last_run_id: run_id.clone(),
        priority,
        severity,
        confidence: place.confidence,
        kind: report.kind,
        title: report.title.clone(),
        explanation: report.explanation.clone(),
        repo_relative_path: path.to_owned(),
        line_start: place.lines.start,
        line_end: place.lines.end,
        quoted_code: file.quote(place.lines),
        suggestion,
        pattern: None,
        status: FindingStatus::Open,
        reported_at: Time::UNIX_EPOCH,
    };
    ReportValidation::Finding { finding: Box::new(finding), notes: note.into_iter().collect() }
}
