//! Finds the documents of the reviewed project: instructions, architecture decisions and the constitution.
//!
//! Invariants:
//! - A review receives the documents that concern it and the names of the others.
//! - The constitution, if the project has one, is always included.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::guidelines::{find_file_following_link, quote_beginning};
use super::retrieve::paths::folder;
use super::text::{BlobText, fence_text, format_line, format_path};
use crate::git::{EntryKind, Repo, TreeListing};
use crate::masking::Mask;

/// Paths of a constitution. The first existing one is used.
const CONSTITUTION_PATHS: [&str; 7] = [
    "CONSTITUTION.md",
    ".specify/memory/constitution.md",
    "memory/constitution.md",
    "docs/constitution.md",
    "docs/CONSTITUTION.md",
    "doc/constitution.md",
    ".github/CONSTITUTION.md",
];
/// Maximum number of documents in the index.
const MAX_NAMED_DOCUMENTS: usize = 40;
/// Maximum number of decision records to read, and of bytes to read from each.
const MAX_DECISIONS: usize = 60;
const MAX_DECISION_BYTES: usize = 64 << 10;
/// Maximum number of changed folders and files to search for in decision records, folders first.
const MAX_SEARCHED_NAMES: usize = 500;

/// Returns the paths of a tree's documents for people and assistants, sorted.
pub fn list_project_documents(listing: &TreeListing) -> Vec<String> {
    let files = listing.entries.iter().filter(|entry| entry.kind == EntryKind::File);
    files.filter(|file| is_document(&file.path)).map(|file| file.path.clone()).collect()
}

fn is_document(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    matches!(name, "AGENTS.md" | "CLAUDE.md" | "GEMINI.md" | "REVIEW.md")
        || is_contributing(name)
        || is_decision(path)
        || CONSTITUTION_PATHS.contains(&path)
}

pub(super) fn is_contributing(name: &str) -> bool {
    name.strip_prefix("CONTRIBUTING").is_some_and(|end| matches!(end, "" | ".md" | ".rst" | ".txt" | ".adoc"))
}

/// Returns true for a record of an architecture decision (ADR).
fn is_decision(path: &str) -> bool {
    folder(path).split('/').any(|part| matches!(part, "adr" | "adrs" | "ADR" | "decisions")) && path.ends_with(".md")
}

/// Formats the names of documents that are not loaded, by folder. Folders around changed files come first.
pub fn format_document_index(documents: &[String], loaded: &[String], changed: &[&str]) -> String {
    let mut around: HashSet<&str> = HashSet::from([""]);
    for path in changed {
        around.extend(path.match_indices('/').filter_map(|(at, _)| path.get(..at)));
    }
    let is_around = |place: &str| around.contains(place);
    // The constitution is always included elsewhere.
    let is_told = |path: &String| loaded.contains(path) || CONSTITUTION_PATHS.contains(&path.as_str());
    let mut others: Vec<&String> = documents.iter().filter(|path| !is_told(path)).collect();
    others.sort_by_cached_key(|path| (!is_around(folder(path)), *path));
    let mut by_folder: BTreeMap<(bool, &str), Vec<String>> = BTreeMap::new();
    for path in others.iter().take(MAX_NAMED_DOCUMENTS) {
        let place = folder(path);
        let name = path.get(place.len()..).unwrap_or_default().trim_start_matches('/');
        by_folder.entry((!is_around(place), place)).or_default().push(format_path(name, Mask::On));
    }
    let line = |((_, place), names): ((bool, &str), Vec<String>)| match place {
        "" => format!("  {}\n", names.join(", ")),
        place => format!("  {}/: {}\n", format_path(place, Mask::On), names.join(", ")),
    };
    by_folder.into_iter().map(line).collect()
}

/// Returns the decision records that name a changed file or its folder.
pub(super) fn find_relevant_decisions(
    repo: &Repo,
    commit: &str,
    documents: &[String],
    changed: &[&str],
) -> Vec<String> {
    // The name of a top-level folder is a common word, so only nested folders count.
    let folders = changed.iter().map(|path| folder(path)).filter(|folder| folder.contains('/'));
    let folders: BTreeSet<&str> = folders.collect();
    let paths = changed.iter().copied().filter(|path| path.contains('/'));
    let named: Vec<&str> = folders.into_iter().chain(paths).take(MAX_SEARCHED_NAMES).collect();
    let concerns = |path: &String| {
        let Some((_, blob)) = find_file_following_link(repo, commit, path) else { return false };
        let Ok(text) = BlobText::from_blob(repo, &blob, path, Mask::On) else { return false };
        let text = text.as_str();
        let text = text.get(..text.floor_char_boundary(MAX_DECISION_BYTES)).unwrap_or(text);
        named.iter().any(|name| text.contains(name))
    };
    let decisions = documents.iter().filter(|path| is_decision(path)).take(MAX_DECISIONS);
    decisions.filter(|path| concerns(path)).cloned().collect()
}

/// The constitution as it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Constitution {
    /// Quoted text. Empty if there is no room for any of it.
    pub text: String,
    /// False if the text was shortened.
    pub is_whole: bool,
}

/// Returns the constitution of a tree, or `None` if there is none. If it exceeds `budget_tokens`, it is cut to a
/// beginning that fits together with a note.
pub fn quote_constitution(
    repo: &Repo,
    commit: &str,
    budget_tokens: u64,
    count: &dyn Fn(&str) -> u64,
    mask: Mask,
) -> Option<Constitution> {
    let found =
        CONSTITUTION_PATHS.into_iter().filter_map(|path| Some((path, find_file_following_link(repo, commit, path)?)));
    let mut texts = found.filter_map(|(path, (place, blob))| {
        let text = BlobText::from_blob(repo, &blob, &place, mask).ok().filter(|text| !text.is_binary)?;
        let trimmed = text.as_str().trim();
        (!trimmed.is_empty()).then(|| (path, trimmed.to_owned()))
    });
    let (path, text) = texts.next()?;
    let quote = |lines: &str, note: &str| {
        format!("The project's constitution, from {}:\n{}\n{note}", format_line(path), fence_text(lines))
    };
    let fits = |text: &str| count(text) <= budget_tokens;
    let whole = quote(&text, "");
    Some(match fits(&whole) {
        true => Constitution { text: whole, is_whole: true },
        false => Constitution { text: quote_beginning(&text, &quote, &fits).unwrap_or_default(), is_whole: false },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_named_by_folder_and_those_around_the_change_first() {
        let documents =
            ["AGENTS.md", "CONSTITUTION.md", "a/AGENTS.md", "docs/adr/1.md", "docs/adr/2.md", "z/b/CLAUDE.md"]
                .map(str::to_owned);
        let loaded = ["AGENTS.md".to_owned()];
        assert_eq!(
            format_document_index(&documents, &loaded, &["z/b/c.rs"]),
            "  z/b/: CLAUDE.md\n  a/: AGENTS.md\n  docs/adr/: 1.md, 2.md\n"
        );
        assert_eq!(format_document_index(&documents[..1], &loaded, &[]), "");
    }

    #[test]
    fn a_document_is_known_by_its_name_and_its_folder() {
        for (path, expected) in [
            ("x/AGENTS.md", true),
            ("CONTRIBUTING.rst", true),
            ("CONTRIBUTING-to-x.rs", false),
            ("docs/decisions/use-x.md", true),
            ("docs/decisions/x.png", false),
            (".specify/memory/constitution.md", true),
            ("x/constitution.md", false),
        ] {
            assert_eq!(is_document(path), expected, "{path}");
        }
    }
}
