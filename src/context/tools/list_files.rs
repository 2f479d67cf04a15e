//! The tool `list_files`: lists the files and folders of a folder, with sizes and counts.

use std::ops::ControlFlow;

use serde_json::json;

use super::arguments::ToolArguments;
use super::files::VisibleFiles;
use super::pager::Pager;
use super::{Tool, ToolAnswer, ToolError, Toolbox};
use crate::context::text::{format_line, format_size};
use crate::domain::ToolSpec;
use crate::domain::text::format_count;
use crate::git::{EntryKind, Repo, TreeListingEntry};

/// Default number of levels.
const DEFAULT_DEPTH: u32 = 2;
/// Largest number of levels; real trees are not deeper.
const MAX_DEPTH: u32 = 64;

pub fn spec() -> ToolSpec {
    Tool::ListFiles.build_spec(
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

/// Runs the tool.
///
/// # Errors
/// Fails if an argument is invalid or the folder does not exist.
pub fn run(toolbox: &mut Toolbox, arguments: &mut ToolArguments) -> Result<ToolAnswer, ToolError> {
    let path = arguments.take_text("path")?.unwrap_or_default();
    let depth = arguments.take_number("depth")?.unwrap_or(DEFAULT_DEPTH).min(MAX_DEPTH);
    let page = arguments.take_page()?;
    let (repo, files) = (&toolbox.repo, &toolbox.files);
    let (folder, entries) = files.find_folder(repo, &path)?;
    let mut pager = Pager::new(page);
    let skip = if folder.is_empty() { 0 } else { folder.len() + 1 };
    let _ = list_level(&ListingContext { repo, files, depth }, entries, skip, 0, &mut pager);
    let name = if folder.is_empty() { "the root".to_owned() } else { format_line(&folder) };
    let head = format!("{name}: {}", format_count(entries.len(), "file"));
    let Some(text) = pager.text() else {
        let summary = format!("{head}; there is no page {page}");
        return Ok(ToolAnswer { text: format!("{summary}."), summary, shown: Vec::new() });
    };
    let more = if pager.has_more { format!("More on page {}.\n", page + 1) } else { String::new() };
    let partial = if files.complete { "" } else { "Not all of the snapshot could be listed.\n" };
    Ok(ToolAnswer { text: format!("{head}\n{text}{more}{partial}"), summary: head, shown: Vec::new() })
}

struct ListingContext<'a> {
    repo: &'a Repo,
    files: &'a VisibleFiles,
    depth: u32,
}

/// Lists one level. All `entries` are below one folder; `skip` is the length of its path including the slash, in bytes.
fn list_level(
    listed: &ListingContext<'_>,
    mut entries: &[TreeListingEntry],
    skip: usize,
    level: u32,
    pager: &mut Pager,
) -> ControlFlow<()> {
    let indent = "  ".repeat(level as usize);
    while let Some(first) = entries.first() {
        let below = first.path.get(skip..).unwrap_or_default();
        let Some((name, _)) = below.split_once('/') else {
            entries = entries.get(1..).unwrap_or_default();
            pager.push(&format!("{indent}{}", format_entry(listed, first, below)))?;
            continue;
        };
        let inside = first.path.get(..skip + name.len() + 1).unwrap_or_default();
        let (folder, rest) = entries.split_at(entries.partition_point(|entry| entry.path.starts_with(inside)));
        pager.push(&format!("{indent}{}/ ({})", format_line(name), format_count(folder.len(), "file")))?;
        if level + 1 < listed.depth {
            list_level(listed, folder, inside.len(), level + 1, pager)?;
        }
        entries = rest;
    }
    ControlFlow::Continue(())
}

fn format_entry(listed: &ListingContext<'_>, entry: &TreeListingEntry, name: &str) -> String {
    let name = format_line(name);
    match entry.kind {
        EntryKind::Symlink => format!("{name} -> {}", format_line(&VisibleFiles::link_text(listed.repo, entry))),
        EntryKind::Submodule => format!("{name} (submodule)"),
        EntryKind::File => {
            let bytes = listed.repo.blob_size(&entry.id).map_or_else(|_| "not here".to_owned(), format_size);
            let withheld = listed.files.withheld_reason(entry).map_or(String::new(), |_| ", withheld".to_owned());
            let changed = if listed.files.is_changed(&entry.path) { ", changed" } else { "" };
            format!("{name} ({bytes}{changed}{withheld})")
        }
    }
}
