//! Renders runs and findings as text for a person.
//!
//! - All text from code, file names and models passes through `domain::text` here.

use std::collections::BTreeMap;

use super::panel;
use super::text_style::{TextOptions, TextStyle};
use crate::domain::text::{format_count, format_thousands, sanitize_line, sanitize_lines};
use crate::domain::{
    Coverage, ErrorClass, Finding, FindingCounts, FindingStatus, OmissionReason, OmittedFile, Panel, Priority,
    RejectedReport, ReportedProblem, ReviewReach, RunEnding, RunRecord, RunStatus, RunUsage, Shortfall, Usage,
    WordStyle,
};
use crate::masking::mask_name;
use crate::policy::Freshness;

/// Returns a path or a text of the store on one line, harmless for a terminal and with masked keys. Texts are masked in the
/// store, but a path is the name of a file, and a text may name it.
pub(super) fn format_masked(text: &str) -> String {
    sanitize_line(&mask_name(text)).into_owned()
}

/// Run with its result, as texts show it.
#[derive(Debug, Clone, Copy)]
pub struct ShownReview<'a> {
    pub run: &'a RunRecord,
    pub findings: &'a [Finding],
    pub coverage: &'a Coverage,
    pub notes: &'a [String],
    pub rejected: &'a [RejectedReport],
}

/// Renders the findings of a run by file, then a line with counts and coverage.
pub fn render_review(look: &TextOptions, review: ShownReview<'_>) -> String {
    let ShownReview { run, coverage, .. } = review;
    let mut text = render_reports(look, review);
    if run.status != RunStatus::Completed {
        text.push_str(&format!("{}\n", describe_ending(look, run)));
    }
    if run.is_incomplete()
        && let Some(said) = describe_incomplete(run, coverage)
    {
        text.push_str(&format!("{}\n", look.paint(TextStyle::Bad, look.wrap(&said, 0).trim_end())));
    }
    text.push_str(&render_counts(look, review));
    text
}

/// Renders a review as [`render_review`] does, without the end of the run: for the place below the page of [`render_run`], which
/// already says how it ended.
pub fn render_review_below_page(look: &TextOptions, review: ShownReview<'_>) -> String {
    render_reports(look, review) + &render_counts(look, review)
}

/// Renders the findings by file, then what was set aside and the notes.
fn render_reports(look: &TextOptions, ShownReview { findings, notes, rejected, .. }: ShownReview<'_>) -> String {
    let mut text = render_by_file(look, findings);
    text.push_str(&render_set_aside(look, rejected));
    for note in notes {
        text.push_str(
            &look.paint(TextStyle::Faint, look.wrap(&format!("note: {}", format_masked(note)), 0).trim_end()),
        );
        text.push('\n');
    }
    text
}

/// Renders the line with counts and coverage, and what was left out.
fn render_counts(look: &TextOptions, ShownReview { run, findings, coverage, .. }: ShownReview<'_>) -> String {
    let mut text = format!("{}\n", describe_findings(look, run, findings, coverage));
    for line in list_left_out(run, coverage) {
        text.push_str(&format!("  {line}\n"));
    }
    text
}

/// Renders the rejected reports of a model with the reasons; empty if there are none.
pub fn render_set_aside(look: &TextOptions, rejected: &[RejectedReport]) -> String {
    if rejected.is_empty() {
        return String::new();
    }
    let mut text = format!("{}\n", look.paint(TextStyle::Faint, &describe_set_aside(rejected.len())));
    for RejectedReport { report, reason } in rejected {
        let said = format!(
            "{}  {}: {}",
            format_reported_location(report),
            format_masked(&report.title),
            format_masked(reason)
        );
        for line in look.wrap(&said, 2).lines() {
            text.push_str(&format!("{}\n", look.paint(TextStyle::Faint, line)));
        }
    }
    text.push('\n');
    text
}

/// Describes the number of rejected reports: `3 reports set aside: they do not hold against the code`.
pub fn describe_set_aside(n: usize) -> String {
    format!(
        "{} set aside: {} not hold against the code",
        format_count(n, "report"),
        if n == 1 { "it does" } else { "they do" }
    )
}

/// Formats the location that a model reported: a path, with lines if the model named any.
pub fn format_reported_location(report: &ReportedProblem) -> String {
    match report.line_start {
        0 => format_masked(&report.path),
        start => format!("{}:{}", format_masked(&report.path), format_line_range(start, report.line_end.max(start))),
    }
}

/// Lists the files that a skipped run left out, at most 20 by name. For other runs, for which the summary's count is
/// enough, lists only the files that the change itself puts out of sight.
pub fn list_left_out(run: &RunRecord, coverage: &Coverage) -> Vec<String> {
    const MAX_NAMED_FILES: usize = 20;
    let is_skipped = run.status == RunStatus::Skipped;
    let named = || coverage.left_out.iter().filter(|file| is_skipped || file.hidden);
    let describe = |file: &OmittedFile| {
        let hidden = if file.hidden { "; the change itself puts it out of sight" } else { "" };
        format!("{}: {}{hidden}", format_masked(&file.path), file.reason)
    };
    let mut lines: Vec<String> = named().take(MAX_NAMED_FILES).map(describe).collect();
    // A record keeps only the first files of a very long list.
    let total = if is_skipped { coverage.files_total as usize } else { named().count() };
    match total.saturating_sub(lines.len()) {
        0 => {}
        more => lines.push(format!("and {more} more")),
    }
    lines
}

/// Renders findings grouped by file, in the order of paths and lines.
pub fn render_by_file(look: &TextOptions, findings: &[Finding]) -> String {
    let mut files: BTreeMap<&str, Vec<&Finding>> = BTreeMap::new();
    for finding in findings {
        files.entry(&finding.repo_relative_path).or_default().push(finding);
    }
    let mut text = String::new();
    for (path, mut findings) in files {
        findings.sort_by_key(|finding| (finding.line_start, finding.line_end, finding.priority));
        text.push_str(&look.paint(TextStyle::Strong, &format_masked(path)));
        text.push('\n');
        let places: Vec<String> = findings.iter().map(|finding| format_finding_lines(finding)).collect();
        let width = places.iter().map(String::len).max().unwrap_or(0);
        for (finding, place) in findings.into_iter().zip(places) {
            let status = match finding.status {
                FindingStatus::Open => String::new(),
                status => format!("  [{status}]"),
            };
            text.push_str(&format!(
                "  {}{}  {}  {}  {}{}\n",
                " ".repeat(width - place.len()),
                look.paint(TextStyle::Location, &place),
                look.paint(TextStyle::from_priority(finding.priority), &finding.priority.to_string()),
                finding.kind,
                look.paint(TextStyle::Strong, &format_masked(&finding.title)),
                look.paint(TextStyle::from_finding_status(finding.status), &status),
            ));
            let indent = width + 4;
            text.push_str(&look.wrap(&format_masked(&finding.explanation), indent));
            if let Some(suggestion) = &finding.suggestion {
                text.push_str(&look.wrap(&format!("suggestion: {}", format_masked(&suggestion.text)), indent));
            }
            let id = look.paint(TextStyle::Faint, finding.finding_id.as_str());
            text.push_str(&format!("{}{id}\n", " ".repeat(indent)));
        }
        text.push('\n');
    }
    text
}

/// Formats the lines of a finding: `12` or `12-20`.
pub fn format_finding_lines(finding: &Finding) -> String {
    format_line_range(finding.line_start, finding.line_end)
}

/// Formats a 1-based, inclusive line range: `12` or `12-20`.
pub fn format_line_range(start: u32, end: u32) -> String {
    if start == end { start.to_string() } else { format!("{start}-{end}") }
}

/// Describes a review: `3 findings (1 p1, 2 p3) · 4 files, 12 hunks reviewed · 2 left out: lock file, binary`. A review that
/// reviewed nothing or a part only, or has not ended, says so instead of `no findings`.
pub fn describe_findings(look: &TextOptions, run: &RunRecord, findings: &[Finding], coverage: &Coverage) -> String {
    let found = match run.review_reach() {
        _ if !findings.is_empty() => format_counts(&FindingCounts::from_findings(findings)),
        ReviewReach::Unfinished => "no findings yet".to_owned(),
        ReviewReach::Nothing => "nothing reviewed".to_owned(),
        _ if coverage.has_reviewed_nothing() => "nothing reviewed".to_owned(),
        ReviewReach::Part => "no findings in the reviewed part".to_owned(),
        ReviewReach::Whole => "no findings".to_owned(),
    };
    let mut parts = vec![found, describe_coverage(coverage)];
    if !coverage.left_out.is_empty() {
        parts.push(describe_left_out(&coverage.left_out));
    }
    parts.join(look.separator())
}

/// Formats finding counts: `3 findings (1 p1, 2 p3)`.
pub fn format_counts(counts: &FindingCounts) -> String {
    let total = counts.total() as usize;
    if total == 0 {
        return "no findings".to_owned();
    }
    format!("{} ({})", format_count(total, "finding"), format_by_priority(counts.by_priority(), ", "))
}

/// Formats counts by priority: `1 p1, 2 p3`; empty if all are zero.
pub fn format_by_priority(counts: [u32; 4], between: &str) -> String {
    Priority::ALL
        .into_iter()
        .filter(|priority| counts[priority.index()] > 0)
        .map(|priority| format!("{} {priority}", counts[priority.index()]))
        .collect::<Vec<_>>()
        .join(between)
}

/// Describes the coverage: `4 files, 12 hunks reviewed`, or `3 of 4 files, 9 of 12 hunks reviewed` for partial
/// coverage. Carried-over hunks (`12 of 14 hunks carried over from ar_…`) come first and are not counted again. A
/// suffix `, 5 in files left out` names hunks in files that the reviewer left out.
pub fn describe_coverage(coverage: &Coverage) -> String {
    let files = coverage.reviewable_file_count().saturating_sub(coverage.files_carried);
    let hunks = coverage.hunks_total.saturating_sub(coverage.hunks_carried);
    let carried = coverage.describe_carried().map(|carried| format!("{carried}; ")).unwrap_or_default();
    let part = |covered: u32, total: u32, noun: &str| {
        if covered < total {
            format!("{covered} of {}", format_count(total as usize, noun))
        } else {
            format_count(covered as usize, noun)
        }
    };
    let left_out = match coverage.hunks_left_out {
        0 => String::new(),
        n => format!(", {n} in files left out"),
    };
    format!(
        "{carried}{}, {} reviewed{left_out}",
        part(coverage.files_covered, files, "file"),
        part(coverage.hunks_covered, hunks, "hunk")
    )
}

fn describe_left_out(files: &[OmittedFile]) -> String {
    format!("{} left out: {}", files.len(), OmittedFile::describe_reasons(files))
}

/// Describes in one line why a completed or skipped run did not review all that it should have: `incomplete: 139 of 1,168 hunks
/// reviewed (turn limit)`. Returns `None` for a run without gaps.
pub fn describe_incomplete(run: &RunRecord, coverage: &Coverage) -> Option<String> {
    let error = run.ending.error_class.map(|_| format_masked(&run.ending.error_summary));
    let parts: Vec<String> = describe_other_gaps(run, coverage).into_iter().chain(error).collect();
    (!parts.is_empty()).then(|| format!("incomplete: {}", parts.join("; ")))
}

/// Describes the gaps that the error of a run does not name. Returns `None` if there are none.
fn describe_other_gaps(run: &RunRecord, coverage: &Coverage) -> Option<String> {
    // The error names the files that could not be read.
    let unread = run.ending.error_class == Some(ErrorClass::Unreadable)
        && coverage.gaps.iter().all(|gap| gap.reason == OmissionReason::Unreadable);
    if unread { None } else { coverage.describe_gaps() }
}

/// Returns the word for the state of a run in a list, with its style. `state` is the word of the record or the row.
pub fn run_status_word(
    status: RunStatus,
    state: &'static str,
    shortfall: Option<Shortfall>,
) -> (TextStyle, &'static str) {
    match shortfall.filter(|_| state == status.word()) {
        Some(Shortfall::Gaps) => (TextStyle::Bad, Shortfall::Gaps.word()),
        Some(Shortfall::NothingReviewed) => (TextStyle::Faint, Shortfall::NothingReviewed.word()),
        None => (TextStyle::from_run_status(status), state),
    }
}

/// Describes the status of a run that is not completed, in one line.
pub fn describe_ending(look: &TextOptions, run: &RunRecord) -> String {
    let mut said = format!("run {} is {}", run.run_id, run.status);
    match describe_early_end(run) {
        Some(stop) if run.status == RunStatus::Cancelled && run.ending.budget_stop.is_some() => {
            said = format!("run {} ended: {}", run.run_id, sanitize_line(&stop));
        }
        Some(stop) => said.push_str(&format!(": {}", sanitize_line(&stop))),
        None if !run.ending.error_summary.is_empty() => {
            said.push_str(&format!(": {}", format_masked(&run.ending.error_summary)));
        }
        None => {}
    }
    if let Some(newer) = run.links.replaced_by() {
        let by = if run.status == RunStatus::Superseded { " by" } else { "; superseded by" };
        said.push_str(&format!("{by} {newer}"));
    }
    if run.status == RunStatus::Skipped && !run.decision.is_empty() {
        said.push_str(&format!(": {}", sanitize_line(&run.decision)));
    }
    look.paint(TextStyle::from_run_status(run.status), &said)
}

/// Describes why a run stopped early: `budget reached at $1.00 of $1.00`, `stopped by the user: too slow`. `None` for a
/// run that came to its own end, and for one that goes on.
pub fn describe_early_end(run: &RunRecord) -> Option<String> {
    let RunEnding { cancel_reason, cancel_note, budget_stop, .. } = &run.ending;
    match (budget_stop, cancel_reason.filter(|_| run.status.is_terminal())) {
        (Some(stop), _) => Some(stop.describe()),
        (None, Some(reason)) if cancel_note.is_empty() => Some(reason.describe().to_owned()),
        (None, Some(reason)) => Some(format!("{}: {cancel_note}", reason.describe())),
        (None, None) => None,
    }
}

/// Names a review in a sentence: `the review of a0c3bec by builtin`.
pub fn describe_review(run: &RunRecord) -> String {
    format!("the review of {} by {}", run.subject.name(), Panel::describe_reviewer(&run.reviewed_by.name))
}

/// Describes reuse: `3 times, last 2m ago: ar_… has reviewed exactly this`. Empty if the run answered only one
/// request.
fn describe_reuse(look: &TextOptions, run: &RunRecord) -> String {
    match (run.reuse.count, run.reuse.last_at) {
        (0, _) | (_, None) => String::new(),
        (times, Some(at)) => {
            format!(
                "{}, last {} ago: {}",
                format_count(times as usize, "time"),
                look.format_age(at),
                run.reuse.last_reason
            )
        }
    }
}

/// Describes the freshness of a run: `current`, or another word with its meaning.
pub fn describe_freshness(freshness: Freshness) -> String {
    match freshness {
        Freshness::Current => freshness.word().to_owned(),
        other => format!("{other}: {}", other.describe()),
    }
}

/// Describes the fill of a model's window: `at most 12,400 of 32,000 tokens at once`. Without the limit if the record
/// does not have it; empty for reviewers without a window.
pub fn describe_window(run: &RunRecord) -> String {
    let (peak, limit) = (run.usage.window_peak, run.usage.window_limit);
    match (peak, limit) {
        (0, _) => String::new(),
        (_, 0) => format!("at most {} tokens at once", format_thousands(peak)),
        _ => format!("at most {} of {} tokens at once", format_thousands(peak), format_thousands(limit)),
    }
}

/// Describes the tokens of a run and what they cost; empty without tokens.
fn describe_tokens(usage: &RunUsage) -> String {
    let tokens = match format_tokens(&usage.tokens) {
        tokens if tokens.is_empty() => return tokens,
        tokens => tokens,
    };
    match usage.price_known {
        Some(false) if usage.cost > 0.0 => {
            format!("{tokens}, {:.4} USD and what has no known price: no limit in US dollars counts that", usage.cost)
        }
        Some(false) => format!("{tokens}, no price is known: no limit in US dollars counts them"),
        _ => format!("{tokens}, {:.4} USD", usage.cost),
    }
}

/// Formats a number of tokens, and says if it is estimated; empty without tokens.
fn format_tokens(tokens: &Usage) -> String {
    match (tokens.total(), tokens.estimated) {
        (0, _) => String::new(),
        (total, true) => format!("~{total} (estimated)"),
        (total, false) => total.to_string(),
    }
}

/// Tokens and cost of a panel's second opinions and of all its members.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PanelUsage<'a> {
    pub tokens: Usage,
    /// In US dollars.
    pub cost: f64,
    /// Parts of `tokens` and `cost` that other requests have paid: those of members whose runs were adopted or reused.
    pub tokens_elsewhere: Usage,
    pub cost_elsewhere: f64,
    /// Names of these members, as far as they have used tokens.
    pub paid_elsewhere: Vec<&'a str>,
}

impl<'a> PanelUsage<'a> {
    /// Adds what the run of a member has used.
    pub fn add_member(&mut self, reviewer: &'a str, used: &RunUsage, is_paid_elsewhere: bool) {
        self.tokens += used.tokens;
        self.cost += used.cost;
        if is_paid_elsewhere && used.tokens.total() > 0 {
            self.tokens_elsewhere += used.tokens;
            self.cost_elsewhere += used.cost;
            self.paid_elsewhere.push(reviewer);
        }
    }
}

/// Renders what a panel and its members have used together, as a line below [`render_run`]; empty without tokens.
pub fn render_panel_usage(look: &TextOptions, usage: &PanelUsage<'_>) -> String {
    let used = format_tokens(&usage.tokens);
    if used.is_empty() {
        return used;
    }
    let elsewhere = match format_tokens(&usage.tokens_elsewhere) {
        tokens if tokens.is_empty() => tokens,
        tokens => {
            let names = sanitize_line(&usage.paid_elsewhere.join(", ")).into_owned();
            format!("; {tokens}, {:.4} USD of it by other requests ({names})", usage.cost_elsewhere)
        }
    };
    let name = look.paint(TextStyle::Faint, &format!("{:<10}", "in all"));
    format!("  {name} {used}, {:.4} USD, with its members{elsewhere}\n", usage.cost)
}

/// Renders a run for `show`.
pub fn render_run(look: &TextOptions, run: &RunRecord, freshness: Freshness) -> String {
    let (style, word) = run_status_word(run.status, run.state_word(), run.shortfall());
    let mut text = format!("{}  {}\n", look.paint(TextStyle::Strong, run.run_id.as_str()), look.paint(style, word));
    let commit = |id: &str| id.get(..12).unwrap_or(id).to_owned();
    // A branch may have a secret in its name.
    let mask = |name: &str| mask_name(name).into_owned();
    let timing = &run.usage.phase_timings;
    for (name, value) in [
        ("scope", mask(&run.subject.scope.to_string())),
        (
            "reviewer",
            [
                &*Panel::describe_reviewer(&run.reviewed_by.name),
                &run.reviewed_by.model,
                &run.reviewed_by.reasoning_effort,
            ]
            .join(" ")
            .trim()
            .to_owned(),
        ),
        ("prompts", run.reviewed_by.prompt_set.clone().unwrap_or_default()),
        ("freshness", describe_freshness(freshness)),
        ("asked", format!("{} ago by {} ({})", look.format_age(run.created_at), run.owner, run.describe_source())),
        ("ran on", run.team.as_ref().map(|team| team.machine.to_string()).unwrap_or_default()),
        ("decision", run.decision.clone()),
        ("reused", describe_reuse(look, run)),
        ("branch", mask(&run.subject.branch)),
        ("base", commit(&run.subject.base_commit)),
        ("snapshot", commit(&run.subject.snapshot_commit)),
        ("attempt", if run.attempt > 1 { run.attempt.to_string() } else { String::new() }),
        (
            "took",
            format!(
                "{} ms queued, {} ms snapshot, {} ms review, {} ms resolve",
                timing.queued_ms, timing.snapshot_ms, timing.review_ms, timing.resolve_ms
            ),
        ),
        ("window", describe_window(run)),
        ("tokens", describe_tokens(&run.usage)),
        (
            "waits for",
            run.links
                .waits_for
                .as_ref()
                .filter(|_| run.status == RunStatus::Pending)
                .map(ToString::to_string)
                .unwrap_or_default(),
        ),
        ("members", run.links.panel.as_ref().map(Panel::describe_members).unwrap_or_default()),
        ("limits", run.links.panel.as_ref().and_then(Panel::describe_uncounted).unwrap_or_default()),
        ("panel", run.links.member_of.as_ref().map(ToString::to_string).unwrap_or_default()),
        ("finishing", run.ending.finish_note.clone()),
        ("superseded", run.links.replaced_by().map(ToString::to_string).unwrap_or_default()),
        ("stopped", describe_early_end(run).unwrap_or_default()),
        (
            "error",
            run.ending
                .error_class
                .map(|class| format!("{class}: {}", format_masked(&run.ending.error_summary)))
                .unwrap_or_default(),
        ),
        (
            "incomplete",
            describe_other_gaps(run, &run.outcome.coverage).filter(|_| run.is_incomplete()).unwrap_or_default(),
        ),
        // The summary of a skipped run repeats its decision.
        ("summary", if run.outcome.summary == run.decision { String::new() } else { mask(&run.outcome.summary) }),
    ] {
        let value = sanitize_line(value.trim());
        if !value.is_empty() {
            text.push_str(&format!("  {} {value}\n", look.paint(TextStyle::Faint, &format!("{name:<10}"))));
        }
    }
    text
}

/// Renders what the reviewers of a panel said about a finding; empty for the finding of a single reviewer.
fn render_panel(look: &TextOptions, finding: &Finding) -> String {
    let mut text = String::new();
    let mut push = |line: &str, indent: usize| {
        if text.is_empty() {
            text.push('\n');
        }
        text.push_str(&look.wrap(line, indent));
    };
    for voice in panel::describe_voices(finding, WordStyle::Plain) {
        push(&voice.lead, 0);
        if !voice.words.is_empty() {
            push(&voice.words, 2);
        }
    }
    panel::describe_steps(finding, WordStyle::Plain).iter().for_each(|step| push(step, 0));
    panel::describe_disputes(finding, WordStyle::Plain).iter().for_each(|dispute| push(&dispute.to_line(), 0));
    text
}

/// Renders a finding for `show` and `details`, without its history.
pub fn render_finding(look: &TextOptions, finding: &Finding) -> String {
    let mut text = format!(
        "{}  {}  {}  {}\n",
        look.paint(TextStyle::Strong, finding.finding_id.as_str()),
        look.paint(TextStyle::from_priority(finding.priority), &finding.priority.to_string()),
        finding.kind,
        look.paint(TextStyle::from_finding_status(finding.status), finding.status.word()),
    );
    text.push_str(&format!("{}\n", look.paint(TextStyle::Strong, &format_masked(&finding.title))));
    text.push_str(&format!(
        "{}\n\n",
        look.paint(
            TextStyle::Location,
            &format!("{}:{}", format_masked(&finding.repo_relative_path), format_finding_lines(finding))
        )
    ));
    for (offset, line) in sanitize_lines(&finding.quoted_code, 4).lines().enumerate() {
        let number = look.paint(TextStyle::Faint, &format!("{:>6}", finding.line_start as usize + offset));
        text.push_str(&format!("{number}  {line}\n"));
    }
    text.push('\n');
    text.push_str(&look.wrap(&format_masked(&finding.explanation), 0));
    if let Some(suggestion) = &finding.suggestion {
        text.push_str(&look.wrap(&format!("suggestion: {}", format_masked(&suggestion.text)), 0));
        if let Some(replacement) = &suggestion.replacement {
            for line in sanitize_lines(replacement, 4).lines() {
                text.push_str(&format!("      + {line}\n"));
            }
        }
    }
    text.push_str(&render_panel(look, finding));
    text.push('\n');
    let dot = look.separator();
    text.push_str(&format!(
        "severity {}{dot}confidence {}{dot}reported {} ago\nfirst run {}{dot}last run {}\n",
        finding.severity,
        finding.confidence,
        look.format_age(finding.reported_at),
        finding.first_run_id,
        finding.last_run_id
    ));
    if let Some(lowered) = &finding.lowered {
        text.push_str(&look.wrap(&format_masked(&lowered.to_string()), 0));
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::{BudgetKind, BudgetStop, CancelReason, Time};

    #[test]
    fn the_word_of_a_run_says_what_it_did_not_review() {
        use RunStatus as S;
        for (status, state, shortfall, expected) in [
            (S::Completed, "completed", None, (TextStyle::Good, "completed")),
            (S::Completed, "completed", Some(Shortfall::Gaps), (TextStyle::Bad, "incomplete")),
            (S::Completed, "completed", Some(Shortfall::NothingReviewed), (TextStyle::Faint, "not reviewed")),
            (S::Skipped, "skipped", Some(Shortfall::Gaps), (TextStyle::Bad, "incomplete")),
            (S::Cancelled, "budget", Some(Shortfall::Gaps), (TextStyle::Faint, "budget")),
        ] {
            assert_eq!(run_status_word(status, state, shortfall), expected);
        }
    }

    #[test]
    fn a_review_that_reviewed_no_file_does_not_say_that_there_are_no_findings() {
        let look = TextOptions { color: false, ascii: false, width: None, now: Time::UNIX_EPOCH };
        for (files_total, files_covered, hunks_total, hunks_carried, expected) in [
            (1, 0, 0, 0, "nothing reviewed"),
            (1, 0, 2, 0, "nothing reviewed"),
            (2, 1, 1, 0, "no findings"),
            (1, 0, 2, 2, "no findings"),
            (0, 0, 0, 0, "no findings"),
        ] {
            let coverage = Coverage { files_total, files_covered, hunks_total, hunks_carried, ..Coverage::default() };
            let said = describe_findings(&look, &record(RunStatus::Completed), &[], &coverage);
            assert_eq!(said.split(" · ").next(), Some(expected), "{said}");
        }
        for (status, expected) in [
            (RunStatus::Failed, "nothing reviewed"),
            (RunStatus::Cancelled, "nothing reviewed"),
            (RunStatus::Pending, "no findings yet"),
            (RunStatus::Reviewing, "no findings yet"),
        ] {
            let said = describe_findings(&look, &record(status), &[], &Coverage::default());
            assert_eq!(said.split(" · ").next(), Some(expected), "{said}");
        }
        let mut stopped = record(RunStatus::Cancelled);
        stopped.outcome.coverage =
            Coverage { files_total: 2, files_covered: 1, hunks_total: 4, hunks_covered: 2, ..Coverage::default() };
        let said = describe_findings(&look, &stopped, &[], &stopped.outcome.coverage);
        assert_eq!(said.split(" · ").next(), Some("no findings in the reviewed part"), "{said}");
    }

    fn record(status: RunStatus) -> RunRecord {
        serde_json::from_value(json!({
            "run_id": "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0A", "status": status, "created_at": Time::UNIX_EPOCH,
            "updated_at": Time::UNIX_EPOCH, "source": "cli", "scope": "worktree", "reviewer": "builtin",
        }))
        .expect("a record")
    }

    #[test]
    fn a_superseded_run_names_both_causes() {
        let mut run: RunRecord = serde_json::from_value(json!({
            "run_id": "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0A", "status": "cancelled", "created_at": Time::UNIX_EPOCH,
            "updated_at": Time::UNIX_EPOCH, "source": "cli", "scope": "worktree", "reviewer": "m",
            "superseded_by": "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0E",
        }))
        .expect("a record");
        run.ending.cancel_reason = Some(CancelReason::BudgetExhausted);
        run.ending.budget_stop = Some(BudgetStop { kind: BudgetKind::RunCost, reached: 1.2, limit: 1.0 });
        let look = TextOptions { color: false, ascii: false, width: None, now: Time::UNIX_EPOCH };
        let said = |run: &RunRecord| describe_ending(&look, run);
        assert_eq!(
            said(&run),
            "run ar_01JD3Z8Q6M7S5V2K4T9XWB1C0A ended: budget reached at $1.20 of $1.00; superseded by \
             ar_01JD3Z8Q6M7S5V2K4T9XWB1C0E"
        );
        (run.status, run.ending.budget_stop, run.ending.cancel_reason) = (RunStatus::Superseded, None, None);
        assert_eq!(said(&run), "run ar_01JD3Z8Q6M7S5V2K4T9XWB1C0A is superseded by ar_01JD3Z8Q6M7S5V2K4T9XWB1C0E");
    }
}
