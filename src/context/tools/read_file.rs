//! The tool `read_file`: shows lines of a file with line numbers.

use std::ops::ControlFlow;

use serde_json::json;

use super::arguments::ToolArguments;
use super::pager::Pager;
use super::{Tool, ToolAnswer, ToolError, Toolbox, quote};
use crate::context::text::{format_line, format_size};
use crate::domain::text::format_count;
use crate::domain::{LineRange, ToolSpec};

pub fn spec() -> ToolSpec {
    Tool::ReadFile.build_spec(
        "Lines of a file of the snapshot, with line numbers. At most 400 lines at a time; the answer says how to go on.",
        json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "Relative to the repository's root, as in src/main.rs."},
                "start_line": {"type": "integer", "description": "First line, from 1. Default: 1."},
                "end_line": {"type": "integer", "description": "Last line, included. Default: as far as there is room."},
            },
            "required": ["path"],
        }),
    )
}

/// Runs the tool.
///
/// # Errors
/// Fails if an argument is invalid or the file must not or cannot be shown.
pub fn run(toolbox: &mut Toolbox, arguments: &mut ToolArguments) -> Result<ToolAnswer, ToolError> {
    let path = arguments.take_required_text("path")?;
    let (start, end) = (arguments.take_number("start_line")?.unwrap_or(1), arguments.take_number("end_line")?);
    let entry = toolbox.files.find_file(&toolbox.repo, &path)?;
    let text = toolbox.texts.get(&toolbox.repo, entry)?;
    // A changed file is reviewed as text, whatever its bytes look like.
    if text.is_binary && !toolbox.files.is_changed(&entry.path) {
        let bytes = toolbox.repo.blob_size(&entry.id).unwrap_or_default();
        return Err(ToolError::failed(format!(
            "{} is binary ({}) and not shown",
            quote(&entry.path),
            format_size(bytes)
        )));
    }
    let lines = text.line_count();
    let path = format_line(&entry.path);
    if lines == 0 {
        return Ok(ToolAnswer {
            text: format!("{path} is empty."),
            summary: format!("{path}, empty"),
            shown: Vec::new(),
        });
    }
    if start > lines {
        return Err(ToolError::failed(format!("{path} has only {}", format_count(lines as usize, "line"))));
    }
    let end = end.unwrap_or(lines).min(lines);
    if end < start {
        return Err(ToolError::failed(format!("`end_line` {end} is before `start_line` {start}")));
    }
    let mut pager = Pager::new(1);
    let mut last = start;
    for number in start..=end {
        if let ControlFlow::Break(()) = pager.push(&format!("{number:>5}  {}", format_line(text.line(number)))) {
            break;
        }
        last = number;
    }
    let head = format!("{path}, lines {start} to {last} of {lines}");
    let more = match (last < end, last < lines) {
        (true, _) => format!("Lines {} to {end} did not fit: read on with start_line {}.\n", last + 1, last + 1),
        (false, true) => format!("{} more below.\n", format_count((lines - last) as usize, "line")),
        (false, false) => String::new(),
    };
    let body = pager.text().unwrap_or_default();
    let shown = vec![(entry.path.clone(), LineRange::new(start, last))];
    Ok(ToolAnswer { text: format!("{head}\n{body}{more}"), summary: head, shown })
}
