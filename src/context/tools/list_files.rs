//! `list_files`: a folder's files and folders, with what the folders hold.

use std::ops::ControlFlow;

use serde_json::json;

use super::arguments::Arguments;
use super::files::Files;
use super::page::Pager;
use super::{Answer, Stopped, Tool, Toolbox};
use crate::context::text::{shown_line, size};
use crate::domain::ToolSpec;
use crate::domain::text::count;
use crate::git::{Entry, EntryKind, Repo};

/// Levels shown of a folder when none are asked for.
const DEPTH: u32 = 2;
/// Deeper trees are made to be deep.
const MAX_DEPTH: u32 = 64;

pub fn spec() -> ToolSpec {
    Tool::ListFiles.described(
        "The files and folders of the snapshot below a folder, with sizes and counts.",
        json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "A folder. Default: the root."},
                "depth": {"type": "integer", "description": "Levels to show. Default: 2."},
                "page": {"type": "integer", "description": "From 1."},
            },
        }),
    )
}

pub fn run(toolbox: &mut Toolbox, arguments: &mut Arguments) -> Result<Answer, Stopped> {
    let path = arguments.text("path")?.unwrap_or_default();
    let depth = arguments.number("depth")?.unwrap_or(DEPTH).min(MAX_DEPTH);
    let page = arguments.page()?;
    let (repo, files) = (&toolbox.repo, &toolbox.files);
    let (folder, entries) = files.folder(repo, &path)?;
    let mut pager = Pager::new(page);
    let skip = if folder.is_empty() { 0 } else { folder.len() + 1 };
    let _ = list(&Listed { repo, files, depth }, entries, skip, 0, &mut pager);
    let name = if folder.is_empty() { "the root".to_owned() } else { shown_line(&folder) };
    let head = format!("{name}: {}", count(entries.len(), "file"));
    let Some(text) = pager.text() else {
        let summary = format!("{head}; there is no page {page}");
        return Ok(Answer { text: format!("{summary}."), summary, shown: Vec::new() });
    };
    let more = if pager.has_more { format!("More on page {}.\n", page + 1) } else { String::new() };
    let partial = if files.complete { "" } else { "Not all of the snapshot could be listed.\n" };
    Ok(Answer { text: format!("{head}\n{text}{more}{partial}"), summary: head, shown: Vec::new() })
}

struct Listed<'a> {
    repo: &'a Repo,
    files: &'a Files,
    depth: u32,
}

/// One level: `entries` are all below one folder, whose path takes `skip` bytes.
fn list(listed: &Listed<'_>, mut entries: &[Entry], skip: usize, level: u32, pager: &mut Pager) -> ControlFlow<()> {
    let indent = "  ".repeat(level as usize);
    while let Some(first) = entries.first() {
        let below = first.path.get(skip..).unwrap_or_default();
        let Some((name, _)) = below.split_once('/') else {
            entries = entries.get(1..).unwrap_or_default();
            pager.push(&format!("{indent}{}", line(listed, first, below)))?;
            continue;
        };
        let inside = first.path.get(..skip + name.len() + 1).unwrap_or_default();
        let (folder, rest) = entries.split_at(entries.partition_point(|entry| entry.path.starts_with(inside)));
        pager.push(&format!("{indent}{}/ ({})", shown_line(name), count(folder.len(), "file")))?;
        if level + 1 < listed.depth {
            list(listed, folder, inside.len(), level + 1, pager)?;
        }
        entries = rest;
    }
    ControlFlow::Continue(())
}

fn line(listed: &Listed<'_>, entry: &Entry, name: &str) -> String {
    let name = shown_line(name);
    match entry.kind {
        EntryKind::Symlink => format!("{name} -> {}", shown_line(&Files::link_text(listed.repo, entry))),
        EntryKind::Submodule => format!("{name} (submodule)"),
        EntryKind::File => {
            let bytes = listed.repo.blob_size(&entry.id).map_or_else(|_| "not here".to_owned(), size);
            let withheld = listed.files.withheld(entry).map_or(String::new(), |_| ", withheld".to_owned());
            let changed = if listed.files.is_changed(&entry.path) { ", changed" } else { "" };
            format!("{name} ({bytes}{changed}{withheld})")
        }
    }
}
