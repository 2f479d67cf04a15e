//! Summarizes a run's result in one sentence.

use crate::domain::text::format_count;
use crate::domain::{Coverage, Finding, FindingCounts, Priority, RunStatus};
use crate::review::ReviewOutcome;

/// Returns a sentence like `3 findings in 4 files: 1 p1, 2 p3`, including files that were not reviewed and carried
/// hunks. A completed run with gaps is called incomplete, whatever the gaps are.
pub fn summarize_run(status: RunStatus, counts: &FindingCounts, coverage: &Coverage) -> String {
    let text = describe_result(status, counts, coverage);
    let gaps = if coverage.gaps.is_empty() { None } else { coverage.describe_gaps() };
    match (status, gaps) {
        (RunStatus::Completed, Some(gaps)) => format!("incomplete: {gaps}; {text}"),
        (RunStatus::Completed, None) => text,
        (status, _) => format!("{status}: {text}"),
    }
}

/// Returns the sentence of [`summarize_run`] without the state of the run.
pub fn describe_result(status: RunStatus, counts: &FindingCounts, coverage: &Coverage) -> String {
    let found = counts.total() as usize;
    let covered = (coverage.files_covered + coverage.files_carried) as usize;
    let total = coverage.files_total as usize;
    let mut text = match (found, covered) {
        (0, 0) => "no file was reviewed".to_owned(),
        (0, _) => format!("no findings in {}", format_count(covered, "file")),
        _ => {
            let by_priority: Vec<String> = Priority::ALL
                .iter()
                .zip(counts.by_priority())
                .filter(|(_, n)| *n > 0)
                .map(|(priority, n)| format!("{n} {priority}"))
                .collect();
            // A comment, and a secret in a file that was left out, are findings of no reviewed file.
            let place = if covered > 0 { format!(" in {}", format_count(covered, "file")) } else { String::new() };
            format!("{}{place}: {}", format_count(found, "finding"), by_priority.join(", "))
        }
    };
    let missed = total.saturating_sub(covered);
    if missed > 0 {
        let verb = if status == RunStatus::Completed { "left out" } else { "not reached or left out" };
        text.push_str(&format!("; {} {verb}", format_count(missed, "file")));
    }
    if coverage.hunks_carried > 0 {
        let hunks = format_count(coverage.hunks_total as usize, "hunk");
        text.push_str(&format!("; {} of {hunks} carried over", coverage.hunks_carried));
    }
    text
}

/// Returns the sentence of an outcome: [`summarize_run`], or the cause of the end with what was kept.
pub fn summarize_outcome(outcome: &ReviewOutcome) -> String {
    if let (RunStatus::Failed, Some((_, text))) = (outcome.status, &outcome.failure) {
        return format!("failed: {text}; {} kept", format_count(outcome.findings.len(), "finding"));
    }
    let ReviewOutcome { status, counts, coverage, budget_stop, .. } = outcome;
    match budget_stop {
        // A run that used up its turns came to its own end; what it lacks is said as a gap.
        Some(stop) if *status == RunStatus::Cancelled => {
            format!("{}; {}", stop.describe(), describe_result(*status, counts, coverage))
        }
        _ => summarize_run(*status, counts, coverage),
    }
}

/// Sets the counts and the sentence of a panel's outcome: [`summarize_outcome`], and on what the members agree or
/// contradict each other.
pub fn summarize_panel(outcome: &mut ReviewOutcome) {
    outcome.counts = FindingCounts::from_findings(&outcome.findings);
    let mut summary = summarize_outcome(outcome);
    let count = |wanted: &dyn Fn(&Finding) -> bool| outcome.findings.iter().filter(|finding| wanted(finding)).count();
    let agreed = count(&|finding| finding.count_reviewer_voices() > 1);
    if agreed > 0 {
        summary.push_str(&format!("; {agreed} by several reviewers"));
    }
    let disputed = count(&Finding::is_disputed);
    if disputed > 0 {
        summary.push_str(&format!("; {disputed} disputed"));
    }
    outcome.summary = summary;
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::domain::{OmissionReason, OmittedFile};

    #[rstest]
    #[case::completed(
        RunStatus::Completed,
        "incomplete: 1 file not reviewed: b.rs (unreadable); no findings in 1 file; 1 file left out"
    )]
    #[case::failed(RunStatus::Failed, "failed: no findings in 1 file; 1 file not reached or left out")]
    fn an_unreadable_file_is_a_gap_without_a_failure_too(#[case] status: RunStatus, #[case] expected: &str) {
        let left_out = vec![OmittedFile::new("b.rs", OmissionReason::Unreadable)];
        let mut coverage = Coverage { files_total: 2, files_covered: 1, left_out, ..Coverage::default() };
        coverage.set_gaps([], OmissionReason::NotReached);
        assert_eq!(summarize_run(status, &FindingCounts::default(), &coverage), expected);
    }

    #[rstest]
    #[case(RunStatus::Completed, [0, 1, 0, 2], (4, 4), "3 findings in 4 files: 1 p1, 2 p3")]
    #[case(RunStatus::Completed, [0, 0, 0, 1], (1, 3), "1 finding in 1 file: 1 p3; 2 files left out")]
    #[case(RunStatus::Completed, [0, 1, 0, 0], (0, 0), "1 finding: 1 p1")]
    #[case(RunStatus::Completed, [1, 0, 0, 0], (0, 3), "1 finding: 1 p0; 3 files left out")]
    #[case(RunStatus::Completed, [0; 4], (1, 1), "no findings in 1 file")]
    #[case(RunStatus::Completed, [0; 4], (0, 2), "no file was reviewed; 2 files left out")]
    #[case(RunStatus::Cancelled, [1, 0, 0, 0], (2, 5), "cancelled: 1 finding in 2 files: 1 p0; 3 files not reached or left out")]
    #[case(RunStatus::Failed, [0; 4], (0, 0), "failed: no file was reviewed")]
    fn sentences(
        #[case] status: RunStatus,
        #[case] counts: [u32; 4],
        #[case] files: (u32, u32),
        #[case] expected: &str,
    ) {
        let ([p0, p1, p2, p3], (files_covered, files_total)) = (counts, files);
        let coverage = Coverage { files_total, files_covered, ..Coverage::default() };
        assert_eq!(summarize_run(status, &FindingCounts { p0, p1, p2, p3 }, &coverage), expected);
    }
}
