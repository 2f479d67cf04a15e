//! What the project says about how it wants to be reviewed, quoted as data: it can ask, it cannot command.

use std::collections::{BTreeSet, HashSet};
use std::sync::LazyLock;

use regex::Regex;

use super::mask::Mask;
use super::project_documents::{find_relevant_decisions, is_contributing};
use super::secret_files::is_secret_file;
use super::symlinks;
use super::text::{BlobText, fence_text, find_max_fitting, format_path};
use crate::domain::text::format_count;
use crate::git::{EntryKind, Repo};

/// Written for reviewers: all of them is taken.
const REVIEWER_FILES: [&str; 2] = ["REVIEW.md", ".github/REVIEW.md"];
/// Written for assistants: what concerns a review is taken, at the root and in the folders around changed files.
const ASSISTANT_FILES: [&str; 3] = ["AGENTS.md", "CLAUDE.md", "GEMINI.md"];
/// Written for contributors: likewise, but for the folders.
const CONTRIBUTOR_FILES: [&str; 4] =
    ["CONTRIBUTING.md", ".github/CONTRIBUTING.md", "docs/CONTRIBUTING.md", "CONTRIBUTING.rst"];
/// Of a file for assistants that is no longer than this, in bytes, all is taken: half a screen.
const MAX_SMALL_FILE_BYTES: usize = 2_000;
/// Folders that are looked into.
const MAX_FOLDERS: usize = 200;
/// Of one file so much is looked at, in bytes: four times what any budget has room for.
const MAX_GUIDELINE_BYTES: usize = 256 << 10;
/// No link is longer, in bytes: one that somebody made by hand may be.
const MAX_LINK_BYTES: u64 = 4_096;
/// Less of a line, in bytes, tells nothing.
const MIN_LINE_BYTES: usize = 40;

/// Headings of sections that concern a review.
static REVIEW_HEADING: LazyLock<Regex> = LazyLock::new(|| {
    let words = r"(?i)\b(?:review|convention|rule|style|guideline|must|test)";
    Regex::new(words).unwrap_or_else(|_| unreachable!("a constant"))
});

/// The project's rules, ready for a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guidelines {
    /// Quotes that nothing in them can end, each under a line that says where it comes from.
    pub text: String,
    pub sources: Vec<String>,
}

/// The rules that a snapshot holds for a review of `changed_paths`; `None` when it holds none. Of its `documents` those
/// that concern the paths are loaded. The text is at most `budget_tokens`, as `count` counts.
pub fn collect_guidelines(
    repo: &Repo,
    snapshot_commit: &str,
    changed_paths: &[&str],
    documents: &[String],
    budget_tokens: u64,
    count: &dyn Fn(&str) -> u64,
    mask: Mask,
) -> Option<Guidelines> {
    let mut rules = Guidelines { text: String::new(), sources: Vec::new() };
    let mut seen = HashSet::new();
    let decisions = find_relevant_decisions(repo, snapshot_commit, documents, changed_paths);
    for path in candidate_paths(changed_paths).into_iter().chain(decisions.iter().cloned()) {
        let Some((place, blob)) =
            find_file_following_link(repo, snapshot_commit, &path).filter(|(_, blob)| seen.insert(blob.clone()))
        else {
            continue;
        };
        let Some(text) = BlobText::from_blob(repo, &blob, &place, mask).ok().filter(|text| !text.is_binary) else {
            continue;
        };
        let text = text.as_str();
        let text = text.get(..text.floor_char_boundary(MAX_GUIDELINE_BYTES)).unwrap_or(text);
        let is_short = text.len() <= MAX_SMALL_FILE_BYTES && !is_contributing(path.rsplit('/').next().unwrap_or(&path));
        let relevant = match REVIEWER_FILES.contains(&path.as_str()) || is_short || decisions.contains(&path) {
            true => text.trim().to_owned(),
            false => select_review_sections(text),
        };
        if relevant.is_empty() {
            continue;
        }
        let changed = match changed_paths.contains(&place.as_str()) {
            true => ", which the change under review changes",
            false => "",
        };
        let label = format!("From {}{changed}:\n", format_path(&path, mask));
        let quote = |lines: &str, note: &str| format!("{}{label}{}\n{note}\n", rules.text, fence_text(lines));
        let whole = quote(&relevant, "");
        let is_whole = count(&whole) <= budget_tokens;
        rules.text = match is_whole {
            true => whole,
            false => match quote_beginning(&relevant, &quote, &|text| count(text) <= budget_tokens) {
                Some(cut) => cut,
                None => break,
            },
        };
        rules.sources.push(path);
        if !is_whole {
            break;
        }
    }
    rules.text.truncate(rules.text.trim_end().len());
    (!rules.sources.is_empty()).then_some(rules)
}

/// The quote of as many lines as fit, of as much of the first one where not even that does; `None` where nothing fits.
pub(super) fn quote_beginning(
    text: &str,
    quote: &dyn Fn(&str, &str) -> String,
    fits: &dyn Fn(&str) -> bool,
) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let first = |number: usize| {
        let note = format!("({} left out.)\n", format_count(lines.len() - number, "more line"));
        quote(&lines.get(..number).unwrap_or_default().join("\n"), &note)
    };
    let fitting = find_max_fitting(0, lines.len(), |number| fits(&first(number)));
    match fitting {
        0 => quote_part_of_line(lines.first()?, lines.len() - 1, quote, fits),
        fitting => Some(first(fitting)),
    }
}

/// The quote of as much of a line as fits, when `more` follow it.
fn quote_part_of_line(
    line: &str,
    more: usize,
    quote: &dyn Fn(&str, &str) -> String,
    fits: &dyn Fn(&str) -> bool,
) -> Option<String> {
    let note = match more {
        0 => "(The rest of the line left out.)\n".to_owned(),
        more => format!("(The rest of the line and {} left out.)\n", format_count(more, "more line")),
    };
    let cut = |bytes: usize| {
        let kept = line.get(..line.floor_char_boundary(bytes)).unwrap_or_default();
        quote(&format!("{kept}…"), &note)
    };
    // From short to long: of a line of megabytes little is counted.
    let mut too_long = 1;
    while too_long < line.len() && fits(&cut(too_long)) {
        too_long *= 2;
    }
    let fitting = find_max_fitting(too_long / 2, too_long.min(line.len()), |length| fits(&cut(length)));
    (fitting >= MIN_LINE_BYTES).then(|| cut(fitting))
}

/// The paths at which rules may stand, the most general first.
fn candidate_paths(changed_paths: &[&str]) -> Vec<String> {
    let mut folders: BTreeSet<(usize, &str)> = BTreeSet::new();
    for path in changed_paths {
        folders.extend(
            memchr::memchr_iter(b'/', path.as_bytes())
                .enumerate()
                .filter_map(|(depth, at)| Some((depth, path.get(..=at)?))),
        );
    }
    let folders = folders.into_iter().map(|(_, folder)| folder).take(MAX_FOLDERS);
    let for_assistants = [""].into_iter().chain(folders);
    let for_assistants = for_assistants.flat_map(|folder| ASSISTANT_FILES.map(|name| format!("{folder}{name}")));
    let for_all = CONTRIBUTOR_FILES.map(str::to_owned);
    REVIEWER_FILES.map(str::to_owned).into_iter().chain(for_assistants).chain(for_all).collect()
}

/// The file at a path, and its blob. A link is followed once, and not out of the repository.
pub(super) fn find_file_following_link(repo: &Repo, commit: &str, path: &str) -> Option<(String, String)> {
    let (kind, id) = repo.entry_at(commit, path).ok()??;
    match kind {
        EntryKind::File => Some((path.to_owned(), id)),
        EntryKind::Submodule => None,
        EntryKind::Symlink => {
            if repo.blob_size(&id).ok()? > MAX_LINK_BYTES {
                return None;
            }
            let link = repo.blob(&id).ok()?;
            let target = symlinks::resolve_target(path, std::str::from_utf8(&link).ok()?)?;
            match repo.entry_at(commit, &target).ok()?? {
                (EntryKind::File, id) if !is_secret_file(&target) => Some((target, id)),
                _ => None,
            }
        }
    }
}

/// The sections of a Markdown text whose headings concern a review, with what is below them.
fn select_review_sections(text: &str) -> String {
    let mut relevant = String::new();
    let mut taken: Option<usize> = None;
    let mut open_fence: Option<&str> = None;
    for line in text.lines() {
        let start = line.trim_start();
        match open_fence {
            Some(mark) if start.starts_with(mark) => open_fence = None,
            Some(_) => {}
            None => {
                open_fence = ["```", "~~~"].into_iter().find(|mark| start.starts_with(mark));
                if let Some(level) = heading_level(line) {
                    taken = match taken {
                        Some(outer) if level > outer => taken,
                        _ => REVIEW_HEADING.is_match(line).then_some(level),
                    };
                }
            }
        }
        if taken.is_some() {
            relevant.push_str(line);
            relevant.push('\n');
        }
    }
    relevant.trim().to_owned()
}

/// The level of an ATX heading.
fn heading_level(line: &str) -> Option<usize> {
    let level = line.bytes().take_while(|byte| *byte == b'#').count();
    let rest = line.get(level..)?;
    ((1..=6).contains(&level) && (rest.is_empty() || rest.starts_with([' ', '\t']))).then_some(level)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_about_reviews_are_taken_with_what_is_below_them() {
        let text = "# Project\nintro\n## Coding style\ntabs\n### Detail\nmore\n```sh\n# Rules in code\n```\n## Deployment\nno\n\
            ```\n## Review in code\n```\n### Tests there\nyes\n## The latest news\nno\n#Rules\nno\n## You MUST\nthis\n";
        assert_eq!(
            select_review_sections(text),
            "## Coding style\ntabs\n### Detail\nmore\n```sh\n# Rules in code\n```\n### Tests there\nyes\n## You MUST\nthis"
        );
        assert_eq!(select_review_sections("no headings at all, but rules\n"), "");
    }

    #[test]
    fn rules_are_looked_for_around_changed_files() {
        let found = candidate_paths(&["src/a/x.rs", "src/b.rs", "top.rs"]);
        assert_eq!(found.len(), 2 + 3 * 3 + 4);
        assert_eq!(found[..4], ["REVIEW.md", ".github/REVIEW.md", "AGENTS.md", "CLAUDE.md"]);
        assert_eq!(found[8..11], ["src/a/AGENTS.md", "src/a/CLAUDE.md", "src/a/GEMINI.md"]);
    }
}
