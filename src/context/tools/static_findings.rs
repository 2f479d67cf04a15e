//! The tool `static_findings`: lists the findings of the built-in reviewer in the change. The reviewer runs once, at
//! the first call.

use serde_json::json;

use super::arguments::ToolArguments;
use super::pager::Pager;
use super::{Tool, ToolAnswer, ToolError, Toolbox, files, quote};
use crate::context::text::format_line;
use crate::domain::text::format_count;
use crate::domain::{Finding, ReviewUnitKind, ToolSpec};
use crate::git::FileChange;
use crate::reviewers::{Reviewer, ReviewerError};

pub fn spec() -> ToolSpec {
    Tool::StaticFindings.build_spec(
        "What static analysis found in the change: eleven sorts of code smells, hardcoded secrets among them.",
        json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "Only this file."},
                "page": {"type": "integer", "description": "From 1."},
            },
        }),
    )
}

/// Runs the tool.
///
/// # Errors
/// Fails if an argument is invalid, if the analysis fails, or when `cancelled` returns true.
pub fn run(
    toolbox: &mut Toolbox,
    arguments: &mut ToolArguments,
    cancelled: &dyn Fn() -> bool,
) -> Result<ToolAnswer, ToolError> {
    let path = arguments.take_text("path")?.map(|path| files::normalize_path(&path)).transpose()?;
    let path = path.filter(|path| !path.is_empty()).map(|path| find_changed_file(toolbox, path)).transpose()?;
    let page = arguments.take_page()?;
    if toolbox.findings.is_none() {
        toolbox.findings = Some(analyse(toolbox, cancelled)?);
    }
    let findings = toolbox.findings.iter().flatten();
    let findings: Vec<&Finding> =
        findings.filter(|finding| path.as_ref().is_none_or(|path| finding.repo_relative_path == *path)).collect();
    let mut pager = Pager::new(page);
    for finding in &findings {
        let lines = match (finding.line_start, finding.line_end) {
            (start, end) if start == end => format!("{start}"),
            (start, end) => format!("{start}-{end}"),
        };
        let said = format!("{} {}. {}", finding.kind, finding.title, finding.explanation);
        let line = format!("{lines}: {} {}", finding.priority, format_line(&said));
        if pager.push_below(&format_line(&finding.repo_relative_path), &line).is_break() {
            break;
        }
    }
    let summary = format_count(findings.len(), "finding");
    let text = match (pager.text(), findings.is_empty()) {
        (Some(text), _) if pager.has_more => format!("{summary}\n{text}More on page {}.\n", page + 1),
        (Some(text), _) => format!("{summary}\n{text}"),
        (None, true) => "Static analysis found nothing here.".to_owned(),
        (None, false) => {
            return Err(ToolError::failed(format!("there is no page {page}; there are {}", pager.page_count())));
        }
    };
    Ok(ToolAnswer { text, summary, shown: Vec::new() })
}

/// Returns the changed file that a path names.
fn find_changed_file(toolbox: &Toolbox, path: String) -> Result<String, ToolError> {
    if toolbox.files.is_changed(&path) {
        return Ok(path);
    }
    // The path may be in its displayed form. The lookup also reports a problem with the path.
    let entry = toolbox.files.find_file(&toolbox.repo, &path)?;
    if toolbox.files.is_changed(&entry.path) {
        return Ok(entry.path.clone());
    }
    Err(ToolError::failed(format!("{} did not change: only the change was analysed", quote(&path))))
}

fn analyse(toolbox: &mut Toolbox, cancelled: &dyn Fn() -> bool) -> Result<Vec<Finding>, ToolError> {
    let files = toolbox.change.files.clone();
    let mut findings = review(toolbox.reviewer.as_mut(), ReviewUnitKind::EachFile, &files, cancelled)?;
    if toolbox.reviewer.has_cross_file_unit() {
        findings.extend(review(toolbox.reviewer.as_mut(), ReviewUnitKind::CrossFile, &files, cancelled)?);
    }
    findings.sort_by(|a, b| {
        let place = |finding: &Finding| (finding.line_start, finding.line_end, finding.kind);
        a.repo_relative_path.cmp(&b.repo_relative_path).then_with(|| place(a).cmp(&place(b)))
    });
    Ok(findings)
}

fn review(
    reviewer: &mut dyn Reviewer,
    kind: ReviewUnitKind,
    files: &[FileChange],
    cancelled: &dyn Fn() -> bool,
) -> Result<Vec<Finding>, ToolError> {
    match reviewer.review(kind, files, cancelled) {
        Ok(report) => Ok(report.findings),
        Err(ReviewerError::Cancelled) => Err(ToolError::cancelled()),
        Err(ReviewerError::Failed { summary, .. }) => {
            // The message may contain local folder names.
            tracing::warn!(%summary, "static analysis failed when a model asked for it");
            Err(ToolError::failed("static analysis failed; go on without it"))
        }
    }
}
