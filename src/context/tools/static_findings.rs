//! `static_findings`: what the built-in reviewer reports of the change. It runs once, when it is first asked.

use serde_json::json;

use super::arguments::Arguments;
use super::page::Pager;
use super::{Answer, Stopped, Tool, Toolbox, files, quoted};
use crate::context::text::shown_line;
use crate::domain::text::count;
use crate::domain::{Finding, ToolSpec};
use crate::provider::{Reviewer, ReviewerError, Unit};

pub fn spec() -> ToolSpec {
    Tool::StaticFindings.described(
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

pub fn run(toolbox: &mut Toolbox, arguments: &mut Arguments, cancelled: &dyn Fn() -> bool) -> Result<Answer, Stopped> {
    let path = arguments.text("path")?.map(|path| files::relative(&path)).transpose()?;
    let path = path.filter(|path| !path.is_empty()).map(|path| changed(toolbox, path)).transpose()?;
    let page = arguments.page()?;
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
        let line = format!("{lines}: {} {}", finding.priority, shown_line(&said));
        if pager.push_below(&shown_line(&finding.repo_relative_path), &line).is_break() {
            break;
        }
    }
    let summary = count(findings.len(), "finding");
    let text = match (pager.text(), findings.is_empty()) {
        (Some(text), _) if pager.has_more => format!("{summary}\n{text}More on page {}.\n", page + 1),
        (Some(text), _) => format!("{summary}\n{text}"),
        (None, true) => "Static analysis found nothing here.".to_owned(),
        (None, false) => return Err(Stopped::failed(format!("there is no page {page}; there are {}", pager.pages()))),
    };
    Ok(Answer { text, summary, shown: Vec::new() })
}

/// The changed file that a path names.
fn changed(toolbox: &Toolbox, path: String) -> Result<String, Stopped> {
    if toolbox.files.is_changed(&path) {
        return Ok(path);
    }
    // It may be called as it is shown. Says as well what is wrong with the path.
    let entry = toolbox.files.file(&toolbox.repo, &path)?;
    if toolbox.files.is_changed(&entry.path) {
        return Ok(entry.path.clone());
    }
    Err(Stopped::failed(format!("{} did not change: only the change was analysed", quoted(&path))))
}

fn analyse(toolbox: &mut Toolbox, cancelled: &dyn Fn() -> bool) -> Result<Vec<Finding>, Stopped> {
    let files = toolbox.change.files.clone();
    let mut findings = review(toolbox.reviewer.as_mut(), &Unit::Files(files.clone()), cancelled)?;
    if toolbox.reviewer.looks_at_the_whole() {
        findings.extend(review(toolbox.reviewer.as_mut(), &Unit::Whole(files), cancelled)?);
    }
    findings.sort_by(|a, b| {
        let place = |finding: &Finding| (finding.line_start, finding.line_end, finding.kind);
        a.repo_relative_path.cmp(&b.repo_relative_path).then_with(|| place(a).cmp(&place(b)))
    });
    Ok(findings)
}

fn review(reviewer: &mut dyn Reviewer, unit: &Unit, cancelled: &dyn Fn() -> bool) -> Result<Vec<Finding>, Stopped> {
    match reviewer.review(unit, cancelled) {
        Ok(report) => Ok(report.findings),
        Err(ReviewerError::Cancelled) => Err(Stopped::cancelled()),
        Err(ReviewerError::Failed { summary, .. }) => {
            // It may name folders of this machine.
            tracing::warn!(%summary, "static analysis failed when a model asked for it");
            Err(Stopped::failed("static analysis failed; go on without it"))
        }
    }
}
