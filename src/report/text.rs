//! Runs and findings as text for a person.
//!
//! Invariant: whatever comes from code, file names or models passes `domain::text` here.

use std::collections::BTreeMap;

use super::look::{Look, Paint};
use crate::domain::text::{count, lines, one_line};
use crate::domain::{
    Coverage, Disposition, Finding, FindingCounts, FindingStatus, LeftOut, Priority, Rejected, Reported, RunRecord,
    RunStatus,
};

/// The findings of a run by file, then a line with counts and coverage.
pub fn review(
    look: &Look,
    run: &RunRecord,
    findings: &[Finding],
    coverage: &Coverage,
    notes: &[String],
    rejected: &[Rejected],
) -> String {
    let mut text = by_file(look, findings);
    text.push_str(&set_aside(look, rejected));
    for note in notes {
        text.push_str(&look.paint(Paint::Faint, look.wrap(&format!("note: {}", one_line(note)), 0).trim_end()));
        text.push('\n');
    }
    if run.status != RunStatus::Completed {
        text.push_str(&format!("{}\n", ending(look, run)));
    } else if run.error_class.is_some() {
        let said = format!("incomplete: {}", one_line(&run.error_summary));
        text.push_str(&format!("{}\n", look.paint(Paint::Bad, look.wrap(&said, 0).trim_end())));
    }
    text.push_str(&format!("{}\n", summary(look, findings, coverage)));
    for line in left_out_by_name(run, coverage) {
        text.push_str(&format!("  {line}\n"));
    }
    text
}

/// The reports of a model that did not hold against the code, with the reasons; empty when there are none.
pub fn set_aside(look: &Look, rejected: &[Rejected]) -> String {
    if rejected.is_empty() {
        return String::new();
    }
    let mut text = format!("{}\n", look.paint(Paint::Faint, &set_aside_count(rejected.len())));
    for Rejected { report, reason } in rejected {
        let said = format!("{}  {}: {}", reported_place(report), one_line(&report.title), one_line(reason));
        for line in look.wrap(&said, 2).lines() {
            text.push_str(&format!("{}\n", look.paint(Paint::Faint, line)));
        }
    }
    text.push('\n');
    text
}

/// `3 reports set aside: they do not hold against the code`.
pub fn set_aside_count(n: usize) -> String {
    format!(
        "{} set aside: {} not hold against the code",
        count(n, "report"),
        if n == 1 { "it does" } else { "they do" }
    )
}

/// Where a model says something is: a path, and lines when it named any.
pub fn reported_place(report: &Reported) -> String {
    match report.line_start {
        0 => one_line(&report.path).into_owned(),
        start => format!("{}:{}", one_line(&report.path), lines_of(start, report.line_end.max(start))),
    }
}

/// The files that a run left out when there was nothing else: then their number is not enough.
pub fn left_out_by_name(run: &RunRecord, coverage: &Coverage) -> Vec<String> {
    const NAMED: usize = 20;
    if run.status != RunStatus::Skipped {
        return Vec::new();
    }
    let named = coverage.left_out.iter().take(NAMED);
    let mut lines: Vec<String> = named.map(|file| format!("{}: {}", one_line(&file.path), file.reason)).collect();
    // A record keeps the first of very many only.
    match (coverage.files_total as usize).saturating_sub(lines.len()) {
        0 => {}
        more => lines.push(format!("and {more} more")),
    }
    lines
}

/// Findings grouped by file, in the order of files and lines.
pub fn by_file(look: &Look, findings: &[Finding]) -> String {
    let mut files: BTreeMap<&str, Vec<&Finding>> = BTreeMap::new();
    for finding in findings {
        files.entry(&finding.repo_relative_path).or_default().push(finding);
    }
    let mut text = String::new();
    for (path, mut findings) in files {
        findings.sort_by_key(|finding| (finding.line_start, finding.line_end, finding.priority));
        text.push_str(&look.paint(Paint::Strong, &one_line(path)));
        text.push('\n');
        let places: Vec<String> = findings.iter().map(|finding| place(finding)).collect();
        let width = places.iter().map(String::len).max().unwrap_or(0);
        for (finding, place) in findings.into_iter().zip(places) {
            let status = match finding.status {
                FindingStatus::Open => String::new(),
                status => format!("  [{status}]"),
            };
            text.push_str(&format!(
                "  {}{}  {}  {}  {}{}\n",
                " ".repeat(width - place.len()),
                look.paint(Paint::Place, &place),
                look.paint(Paint::of_priority(finding.priority), &finding.priority.to_string()),
                finding.kind,
                look.paint(Paint::Strong, &one_line(&finding.title)),
                look.paint(Paint::of_finding(finding.status), &status),
            ));
            let indent = width + 4;
            text.push_str(&look.wrap(&one_line(&finding.explanation), indent));
            if let Some(suggestion) = &finding.suggestion {
                text.push_str(&look.wrap(&format!("suggestion: {}", one_line(&suggestion.text)), indent));
            }
            let id = look.paint(Paint::Faint, finding.finding_id.as_str());
            text.push_str(&format!("{}{id}\n", " ".repeat(indent)));
        }
        text.push('\n');
    }
    text
}

/// `12` or `12-20`.
pub fn place(finding: &Finding) -> String {
    lines_of(finding.line_start, finding.line_end)
}

/// Lines as `12` or `12-20`.
pub fn lines_of(start: u32, end: u32) -> String {
    if start == end { start.to_string() } else { format!("{start}-{end}") }
}

/// `3 findings (1 p1, 2 p3) · 4 files, 12 hunks reviewed · 2 left out: lock file, binary`.
pub fn summary(look: &Look, findings: &[Finding], coverage: &Coverage) -> String {
    let mut parts = vec![counts(&FindingCounts::of(findings)), reviewed(coverage)];
    if !coverage.left_out.is_empty() {
        parts.push(left_out(&coverage.left_out));
    }
    parts.join(look.dot())
}

/// `3 findings (1 p1, 2 p3)`.
pub fn counts(counts: &FindingCounts) -> String {
    let total = counts.total() as usize;
    if total == 0 {
        return "no findings".to_owned();
    }
    format!("{} ({})", count(total, "finding"), by_priority(counts.by_priority(), ", "))
}

/// `1 p1, 2 p3`; empty for none.
pub fn by_priority(counts: [u32; 4], between: &str) -> String {
    Priority::ALL
        .into_iter()
        .filter(|priority| counts[priority.index()] > 0)
        .map(|priority| format!("{} {priority}", counts[priority.index()]))
        .collect::<Vec<_>>()
        .join(between)
}

/// `4 files, 12 hunks reviewed`, or `3 of 4 files, 9 of 12 hunks reviewed` when the run did not get everywhere; before it
/// `12 of 14 hunks carried over from ar_…`, which are then not among the others, and behind it `, 5 in files left out`
/// where the reviewer left out some.
pub fn reviewed(coverage: &Coverage) -> String {
    let files = coverage.files_due().saturating_sub(coverage.files_carried);
    let hunks = coverage.hunks_total.saturating_sub(coverage.hunks_carried);
    let carried = coverage.carried_in_words().map(|carried| format!("{carried}; ")).unwrap_or_default();
    let part = |covered: u32, total: u32, noun: &str| {
        if covered < total {
            format!("{covered} of {}", count(total as usize, noun))
        } else {
            count(covered as usize, noun)
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

fn left_out(files: &[LeftOut]) -> String {
    let mut reasons: Vec<(String, usize)> = Vec::new();
    for file in files {
        let reason = file.reason.to_string();
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, number)) => *number += 1,
            None => reasons.push((reason, 1)),
        }
    }
    let reasons: Vec<String> =
        reasons.into_iter().map(|(reason, n)| if n > 1 { format!("{n} {reason}") } else { reason }).collect();
    format!("{} left out: {}", files.len(), reasons.join(", "))
}

/// How a run stands, in a line: for everything but a completed one.
pub fn ending(look: &Look, run: &RunRecord) -> String {
    let mut said = format!("run {} is {}", run.run_id, run.status);
    if let Some(reason) = run.cancel_reason {
        said.push_str(&format!(" ({reason})"));
    }
    for detail in [&run.error_summary, &run.cancel_note] {
        if !detail.is_empty() {
            said.push_str(&format!(": {}", one_line(detail)));
        }
    }
    if let Some(newer) = &run.superseded_by {
        said.push_str(&format!(" by {newer}"));
    }
    if run.status == RunStatus::Skipped && !run.decision.is_empty() {
        said.push_str(&format!(": {}", one_line(&run.decision)));
    }
    look.paint(Paint::of_run(run.status), &said)
}

/// `3 times, last 2m ago: ar_… has reviewed exactly this`; empty for a run that answered one request only.
fn reused(look: &Look, run: &RunRecord) -> String {
    match (run.reuse_count, run.last_reused_at) {
        (0, _) | (_, None) => String::new(),
        (times, Some(at)) => {
            format!("{}, last {} ago: {}", count(times as usize, "time"), look.age(at), run.last_reuse_reason)
        }
    }
}

/// A run for `show`.
pub fn run(look: &Look, run: &RunRecord) -> String {
    let mut text = format!(
        "{}  {}\n",
        look.paint(Paint::Strong, run.run_id.as_str()),
        look.paint(Paint::of_run(run.status), if run.is_paused() { "paused" } else { run.status.word() })
    );
    let commit = |id: &str| id.get(..12).unwrap_or(id).to_owned();
    let usage = run.tokens.total();
    let timing = &run.phase_timings;
    for (name, value) in [
        ("scope", run.scope.to_string()),
        ("reviewer", [run.reviewer.as_str(), &run.model, &run.reasoning_effort].join(" ").trim().to_owned()),
        ("asked", format!("{} ago by {} ({})", look.age(run.created_at), run.owner, run.source)),
        ("decision", run.decision.clone()),
        ("reused", reused(look, run)),
        ("branch", run.branch.clone()),
        ("base", commit(&run.base_commit)),
        ("snapshot", commit(&run.snapshot_commit)),
        ("attempt", if run.attempt > 1 { run.attempt.to_string() } else { String::new() }),
        (
            "took",
            format!(
                "{} ms queued, {} ms snapshot, {} ms review, {} ms resolve",
                timing.queued_ms, timing.snapshot_ms, timing.review_ms, timing.resolve_ms
            ),
        ),
        ("tokens", if usage > 0 { format!("{usage}, {:.4} USD", run.cost) } else { String::new() }),
        (
            "waits for",
            run.waits_for
                .as_ref()
                .filter(|_| run.status == RunStatus::Pending)
                .map(ToString::to_string)
                .unwrap_or_default(),
        ),
        ("finishing", run.finish_note.clone()),
        ("superseded", run.superseded_by.as_ref().map(ToString::to_string).unwrap_or_default()),
        ("cancelled", run.cancel_reason.map(|reason| format!("{reason} {}", run.cancel_note)).unwrap_or_default()),
        ("error", run.error_class.map(|class| format!("{class}: {}", run.error_summary)).unwrap_or_default()),
        // Of a skipped run the decision is all there is to say.
        ("summary", if run.summary == run.decision { String::new() } else { run.summary.clone() }),
    ] {
        let value = one_line(value.trim());
        if !value.is_empty() {
            text.push_str(&format!("  {} {value}\n", look.paint(Paint::Faint, &format!("{name:<10}"))));
        }
    }
    text
}

/// A finding for `show`.
pub fn finding(look: &Look, finding: &Finding, history: &[Disposition]) -> String {
    let mut text = format!(
        "{}  {}  {}  {}\n",
        look.paint(Paint::Strong, finding.finding_id.as_str()),
        look.paint(Paint::of_priority(finding.priority), &finding.priority.to_string()),
        finding.kind,
        look.paint(Paint::of_finding(finding.status), finding.status.word()),
    );
    text.push_str(&format!("{}\n", look.paint(Paint::Strong, &one_line(&finding.title))));
    text.push_str(&format!(
        "{}\n\n",
        look.paint(Paint::Place, &format!("{}:{}", one_line(&finding.repo_relative_path), place(finding)))
    ));
    for (offset, line) in lines(&finding.quoted_code, 4).lines().enumerate() {
        let number = look.paint(Paint::Faint, &format!("{:>6}", finding.line_start as usize + offset));
        text.push_str(&format!("{number}  {line}\n"));
    }
    text.push('\n');
    text.push_str(&look.wrap(&one_line(&finding.explanation), 0));
    if let Some(suggestion) = &finding.suggestion {
        text.push_str(&look.wrap(&format!("suggestion: {}", one_line(&suggestion.text)), 0));
        if let Some(replacement) = &suggestion.replacement {
            for line in lines(replacement, 4).lines() {
                text.push_str(&format!("      + {line}\n"));
            }
        }
    }
    text.push('\n');
    let dot = look.dot();
    text.push_str(&format!(
        "severity {}{dot}confidence {}{dot}reported {} ago\nfirst run {}{dot}last run {}\n",
        finding.severity,
        finding.confidence,
        look.age(finding.reported_at),
        finding.first_run_id,
        finding.last_run_id
    ));
    for line in history {
        let reason = if line.reason.is_empty() { String::new() } else { format!(": {}", one_line(&line.reason)) };
        text.push_str(&format!(
            "{} ago  {} {} {} -> {}{reason}\n",
            look.age(line.at),
            line.actor,
            line.action,
            line.previous,
            line.status
        ));
    }
    text
}
