//! `show_diff`: what the change under review changes.

use serde_json::json;

use super::arguments::Arguments;
use super::page::{Pager, Shown};
use super::{Answer, Stopped, Tool, Toolbox, files, quoted, texts};
use crate::context::diff;
use crate::context::secret_files::is_secret_file;
use crate::context::text::{Text, Unread, shown_line, shown_path};
use crate::domain::text::count;
use crate::domain::{LeftOutReason, LineRange, ToolSpec};
use crate::git::{EntryKind, FileChange};

/// Unchanged lines around each hunk, as in git.
const CONTEXT: u32 = 3;

pub fn spec() -> ToolSpec {
    Tool::ShowDiff.described(
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

pub fn run(toolbox: &mut Toolbox, arguments: &mut Arguments, cancelled: &dyn Fn() -> bool) -> Result<Answer, Stopped> {
    let path = arguments.text("path")?.map(|path| files::relative(&path)).transpose()?;
    let page = arguments.page()?;
    let mut pages = Pages { pager: Pager::new(page), shown: Shown::default() };
    let what = match path.filter(|path| !path.is_empty()) {
        Some(path) => {
            one(toolbox, &path, &mut pages)?;
            format!("the diff of {}", shown_line(&path))
        }
        None => {
            all(toolbox, &mut pages, cancelled)?;
            format!("the diff of {}", count(toolbox.change.files.len(), "file"))
        }
    };
    let Pages { pager, shown } = pages;
    let summary = format!("{what}, page {page}");
    let Some(text) = pager.text() else {
        return Err(Stopped::failed(format!("{what} has no page {page}; there are {}", pager.pages())));
    };
    let more = if pager.has_more { format!("More on page {}.\n", page + 1) } else { String::new() };
    Ok(Answer { text: format!("{text}{more}"), summary, shown: shown.0 })
}

struct Pages {
    pager: Pager,
    shown: Shown,
}

/// The list of the changed files and those left out, then the diffs until the page is full.
fn all(toolbox: &Toolbox, pages: &mut Pages, cancelled: &dyn Fn() -> bool) -> Result<(), Stopped> {
    let change = &toolbox.change;
    let heading = format!("Changed: {}", count(change.files.len(), "file"));
    for file in &change.files {
        let added: u32 = file.hunks.iter().map(|hunk| hunk.new_lines).sum();
        let removed: u32 = file.hunks.iter().map(|hunk| hunk.old_lines).sum();
        let line = format!(
            "{} (+{added} -{removed}, {})",
            diff::title(file, toolbox.texts.mask()),
            count(file.hunks.len(), "hunk")
        );
        if pages.pager.push_below(&heading, &line).is_break() {
            return Ok(());
        }
    }
    for left in &change.left_out {
        let line = format!("{}: {}", shown_line(&left.path), left.reason);
        if pages.pager.push_below("Changed, but not under review:", &line).is_break() {
            return Ok(());
        }
    }
    for file in &change.files {
        if cancelled() {
            return Err(Stopped::cancelled());
        }
        let is_full = match rows(toolbox, file, pages) {
            Ok(is_full) => is_full,
            Err(stopped) => pages.pager.push_below(&heading_of(toolbox, file), &stopped.text).is_break(),
        };
        if is_full {
            return Ok(());
        }
    }
    Ok(())
}

fn one(toolbox: &Toolbox, path: &str, pages: &mut Pages) -> Result<(), Stopped> {
    let mask = toolbox.texts.mask();
    let is_it = |known: &str| known == path || shown_line(known) == path || shown_path(known, mask) == path;
    if let Some(file) = toolbox.change.files.iter().find(|file| is_it(&file.path)) {
        return rows(toolbox, file, pages).map(drop);
    }
    if let Some(left) = toolbox.change.left_out.iter().find(|left| is_it(&left.path)) {
        return match left.reason {
            LeftOutReason::Deleted => deleted(toolbox, &left.path, pages),
            reason => Err(Stopped::failed(format!("{} changed, but is not under review: {reason}", quoted(path)))),
        };
    }
    // Says as well what is wrong with the path.
    toolbox.files.file(&toolbox.repo, path)?;
    Err(Stopped::failed(format!("{} did not change; read_file shows it", quoted(path))))
}

/// Whether the page is full.
fn rows(toolbox: &Toolbox, file: &FileChange, pages: &mut Pages) -> Result<bool, Stopped> {
    if is_secret_file(&file.path) || file.old_path.as_deref().is_some_and(is_secret_file) {
        return Err(withheld(&file.path));
    }
    let rows = diff::rows(&toolbox.repo, file, CONTEXT, toolbox.texts.mask());
    let rows = rows.map_err(|unread| texts::unreadable(&file.path, unread))?;
    let heading = heading_of(toolbox, file);
    for row in rows {
        if pages.pager.push_below(&heading, &row.text).is_break() {
            return Ok(true);
        }
        let line = row.new_line.map(|line| LineRange::new(line, line)).or(row.hunk.map(|(_, lines)| lines));
        if let Some(lines) = line.filter(|_| pages.pager.is_on_it()) {
            pages.shown.add(&file.path, lines);
        }
    }
    Ok(false)
}

fn heading_of(toolbox: &Toolbox, file: &FileChange) -> String {
    format!("### {}", diff::title(file, toolbox.texts.mask()))
}

/// What was deleted, from the base.
fn deleted(toolbox: &Toolbox, path: &str, pages: &mut Pages) -> Result<(), Stopped> {
    if is_secret_file(path) {
        return Err(withheld(path));
    }
    let repo = &toolbox.repo;
    let found = repo.entry_at(&toolbox.base_commit, path);
    let found = found.map_err(|error| texts::unreadable(path, Unread::Git(error)))?;
    let Some((EntryKind::File, blob)) = found else {
        return Err(Stopped::failed(format!("{} was deleted; it was no ordinary file", quoted(path))));
    };
    let text = Text::of(repo, &blob, path, toolbox.texts.mask()).map_err(|unread| texts::unreadable(path, unread))?;
    if text.is_binary {
        return Err(Stopped::failed(format!("{} was deleted; it was binary", quoted(path))));
    }
    let heading = format!("### {} (deleted)", shown_line(path));
    for number in 1..=text.lines() {
        if pages.pager.push_below(&heading, &format!("      -{}", shown_line(text.line(number)))).is_break() {
            break;
        }
    }
    Ok(())
}

fn withheld(path: &str) -> Stopped {
    Stopped::refused(format!("{} is not shown: by its name it holds secrets", quoted(path)))
}
