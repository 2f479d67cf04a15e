//! The tool `show_diff`: shows the diff of the change under review.

use serde_json::json;

use super::arguments::ToolArguments;
use super::pager::{Pager, ShownLines};
use super::{Tool, ToolAnswer, ToolError, Toolbox, files, quote, text_cache};
use crate::context::diff;
use crate::context::text::{BlobText, ReadTextError, format_line, format_path};
use crate::domain::text::format_count;
use crate::domain::{LineRange, OmissionReason, ToolSpec};
use crate::git::{EntryKind, FileChange};
use crate::masking::secret_files::is_secret_file;

/// Unchanged lines around each hunk, as in git.
const CONTEXT_LINES: u32 = 3;

pub fn spec() -> ToolSpec {
    Tool::ShowDiff.build_spec(
        "The change under review as a unified diff, with the line numbers of the new side. Without a path: which files \
         changed, and then their diffs.",
        json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "A changed file."},
                "page": {"type": "integer", "description": "From 1."},
            },
        }),
    )
}

/// Runs the tool.
///
/// # Errors
/// Fails if an argument is invalid, if the diff cannot be shown, or when `cancelled` returns true.
pub fn run(
    toolbox: &mut Toolbox,
    arguments: &mut ToolArguments,
    cancelled: &dyn Fn() -> bool,
) -> Result<ToolAnswer, ToolError> {
    let path = arguments.take_text("path")?.map(|path| files::normalize_path(&path)).transpose()?;
    let page = arguments.take_page()?;
    let mut pages = DiffPages { pager: Pager::new(page), shown: ShownLines::default() };
    let what = match path.filter(|path| !path.is_empty()) {
        Some(path) => {
            push_file_diff(toolbox, &path, &mut pages)?;
            format!("the diff of {}", format_line(&path))
        }
        None => {
            push_all_diffs(toolbox, &mut pages, cancelled)?;
            format!("the diff of {}", format_count(toolbox.change.files.len(), "file"))
        }
    };
    let DiffPages { pager, shown } = pages;
    let summary = format!("{what}, page {page}");
    let Some(text) = pager.text() else {
        return Err(ToolError::failed(format!("{what} has no page {page}; there are {}", pager.page_count())));
    };
    let more = if pager.has_more { format!("More on page {}.\n", page + 1) } else { String::new() };
    Ok(ToolAnswer { text: format!("{text}{more}"), summary, shown: shown.0 })
}

struct DiffPages {
    pager: Pager,
    shown: ShownLines,
}

/// Adds the list of changed and left-out files, then the diffs, until the page is full.
fn push_all_diffs(toolbox: &Toolbox, pages: &mut DiffPages, cancelled: &dyn Fn() -> bool) -> Result<(), ToolError> {
    let change = &toolbox.change;
    let heading = format!("Changed: {}", format_count(change.files.len(), "file"));
    for file in &change.files {
        let added: u32 = file.hunks.iter().map(|hunk| hunk.new_lines).sum();
        let removed: u32 = file.hunks.iter().map(|hunk| hunk.old_lines).sum();
        let line = format!(
            "{} (+{added} -{removed}, {})",
            diff::format_file_title(file, toolbox.texts.mask()),
            format_count(file.hunks.len(), "hunk")
        );
        if pages.pager.push_below(&heading, &line).is_break() {
            return Ok(());
        }
    }
    for left in &change.left_out {
        let line = format!("{}: {}", format_line(&left.path), left.reason);
        if pages.pager.push_below("Changed, but not under review:", &line).is_break() {
            return Ok(());
        }
    }
    for file in &change.files {
        if cancelled() {
            return Err(ToolError::cancelled());
        }
        let is_full = match push_diff_rows(toolbox, file, pages) {
            Ok(is_full) => is_full,
            Err(stopped) => pages.pager.push_below(&file_heading(toolbox, file), &stopped.text).is_break(),
        };
        if is_full {
            return Ok(());
        }
    }
    Ok(())
}

fn push_file_diff(toolbox: &Toolbox, path: &str, pages: &mut DiffPages) -> Result<(), ToolError> {
    let mask = toolbox.texts.mask();
    let is_it = |known: &str| known == path || format_line(known) == path || format_path(known, mask) == path;
    if let Some(file) = toolbox.change.files.iter().find(|file| is_it(&file.path)) {
        return push_diff_rows(toolbox, file, pages).map(drop);
    }
    if let Some(left) = toolbox.change.left_out.iter().find(|left| is_it(&left.path)) {
        return match left.reason {
            OmissionReason::Deleted => push_deleted_file(toolbox, &left.path, pages),
            reason => Err(ToolError::failed(format!("{} changed, but is not under review: {reason}", quote(path)))),
        };
    }
    // Reports also a problem with the path.
    toolbox.files.find_file(&toolbox.repo, path)?;
    Err(ToolError::failed(format!("{} did not change; read_file shows it", quote(path))))
}

/// Adds the diff rows of a file. Returns true if the page is full.
fn push_diff_rows(toolbox: &Toolbox, file: &FileChange, pages: &mut DiffPages) -> Result<bool, ToolError> {
    if is_secret_file(&file.path) || file.old_path.as_deref().is_some_and(is_secret_file) {
        return Err(withheld_error(&file.path));
    }
    let rows = diff::build_diff_rows(&toolbox.repo, file, CONTEXT_LINES, toolbox.texts.mask());
    let rows = rows.map_err(|unread| text_cache::unreadable_error(&file.path, unread))?;
    let heading = file_heading(toolbox, file);
    for row in rows {
        if pages.pager.push_below(&heading, &row.text).is_break() {
            return Ok(true);
        }
        let line = row.new_line.map(|line| LineRange::new(line, line)).or(row.hunk.map(|(_, lines)| lines));
        if let Some(lines) = line.filter(|_| pages.pager.is_on_wanted_page()) {
            pages.shown.add(&file.path, lines);
        }
    }
    Ok(false)
}

fn file_heading(toolbox: &Toolbox, file: &FileChange) -> String {
    format!("### {}", diff::format_file_title(file, toolbox.texts.mask()))
}

/// Adds the text of a deleted file, read from the base commit.
fn push_deleted_file(toolbox: &Toolbox, path: &str, pages: &mut DiffPages) -> Result<(), ToolError> {
    if is_secret_file(path) {
        return Err(withheld_error(path));
    }
    let repo = &toolbox.repo;
    let found = repo.entry_at(&toolbox.base_commit, path);
    let found = found.map_err(|error| text_cache::unreadable_error(path, ReadTextError::Git(error)))?;
    let Some((EntryKind::File, blob)) = found else {
        return Err(ToolError::failed(format!("{} was deleted; it was no ordinary file", quote(path))));
    };
    let text = BlobText::from_blob(repo, &blob, path, toolbox.texts.mask())
        .map_err(|unread| text_cache::unreadable_error(path, unread))?;
    if text.is_binary {
        return Err(ToolError::failed(format!("{} was deleted; it was binary", quote(path))));
    }
    let heading = format!("### {} (deleted)", format_line(path));
    for number in 1..=text.line_count() {
        if pages.pager.push_below(&heading, &format!("      -{}", format_line(text.line(number)))).is_break() {
            break;
        }
    }
    Ok(())
}

fn withheld_error(path: &str) -> ToolError {
    ToolError::refused(format!("{} is not shown: by its name it holds secrets", quote(path)))
}
