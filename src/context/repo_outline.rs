//! Builds the repository outline: the folders of the tree and the documents that a reviewer can ask for.
//!
//! Invariants:
//! - If the budget is large enough for a reserve, the outline fits in it and is always sent, whatever other code there
//!   is.
//! - Without a reserve, the outline is complete and sent only if room is left.

use std::collections::{BTreeMap, HashSet};

use super::builder::standalone_piece;
use super::guidelines::quote_beginning;
use super::pack::{ContextPiece, Need, SectionKind, TokenCounter};
use super::project_documents::format_document_index as documents_by_folder;
use super::retrieve::paths::folder;
use super::text::format_path;
use crate::domain::text::format_count as counted;
use crate::git::TreeFile;
use crate::masking::Mask;

/// Divisor of the budget that gives the reserve: a sixteenth, which is 500 tokens of 8,000.
const OUTLINE_BUDGET_DIVISOR: u32 = 16;
/// Maximum reserve, in tokens. More folders than fit in it are hardly ever useful at once.
const MAX_OUTLINE_TOKENS: u32 = 1_000;
/// Minimum reserve, in tokens. Less has room for nothing.
const MIN_OUTLINE_TOKENS: u32 = 100;

/// Documents of the project.
#[derive(Debug, Clone, Copy, Default)]
pub struct ProjectDocuments<'a> {
    /// Paths of all documents.
    pub all: &'a [String],
    /// Paths of documents that the context holds already.
    pub loaded: &'a [String],
}

/// Builds the outline of a tree's code files and documents, within its reserve of `budget`. Without a reserve, the
/// pieces are fillers.
pub fn build_repo_outline(
    files: &[TreeFile],
    documents: ProjectDocuments<'_>,
    changed: &[&str],
    budget: u32,
    count: TokenCounter<'_>,
) -> Vec<ContextPiece> {
    let reserve = Some((budget / OUTLINE_BUDGET_DIVISOR).min(MAX_OUTLINE_TOKENS))
        .filter(|reserve| *reserve >= MIN_OUTLINE_TOKENS);
    let need = if reserve.is_some() { Need::Must } else { Need::Filler };
    let price = |text: &str| count(text) as u32;
    let mut pieces = Vec::new();
    let mut left = reserve.unwrap_or(u32::MAX);
    let others = documents_by_folder(documents.all, documents.loaded, changed);
    if !others.is_empty() {
        let title = "Documents of the project that can be asked for:\n";
        let whole = |lines: &str, note: &str| format!("{title}{}\n{note}", lines.trim_end());
        let framed = |text: &str| price(&format!("```\n{text}```\n"));
        let fits = |text: &str| framed(text) <= left / 2;
        let text =
            Some(whole(&others, "")).filter(|text| fits(text)).or_else(|| quote_beginning(&others, &whole, &fits));
        if let Some(text) = text {
            left -= framed(&text);
            pieces.push(standalone_piece(
                SectionKind::Documentation,
                need,
                text,
                "what else the project says about itself",
            ));
        }
    }
    // Folders around the change are opened as deep as there is room for.
    let depth = changed.iter().map(|path| path.matches('/').count()).max().unwrap_or(0);
    let mut texts =
        [depth, 2, 1, 0].into_iter().filter(|most| *most <= depth).map(|most| format_folder_tree(files, changed, most));
    let fits = |text: &str| price(text) <= left;
    let whole = |lines: &str, note: &str| format!("{lines}\n{note}");
    let text =
        texts.find(|text| fits(text)).or_else(|| quote_beginning(&format_folder_tree(files, &[], 0), &whole, &fits));
    pieces.extend(text.map(|text| standalone_piece(SectionKind::Overview, need, text, "the folders of the tree")));
    pieces
}

/// Formats the top-level folders with the number of code files below each. Folders on the path to a file in `shown` are
/// opened, at most `depth` levels, and list their content.
fn format_folder_tree(files: &[TreeFile], shown: &[&str], depth: usize) -> String {
    let mut open: HashSet<&str> = HashSet::from([""]);
    for path in shown {
        let ends = path.match_indices('/').map(|(at, _)| at);
        open.extend(ends.take(depth).filter_map(|at| path.get(..at)));
    }
    let mut lines: BTreeMap<(&str, bool), usize> = BTreeMap::new();
    for file in files {
        let mut shown = file.path.as_str();
        let mut is_folder = false;
        while !open.contains(folder(shown)) {
            shown = folder(shown);
            is_folder = true;
        }
        *lines.entry((shown, is_folder)).or_default() += 1;
    }
    let line = |((path, is_folder), files): (&(&str, bool), &usize)| match is_folder {
        true => format!("{}/ ({})\n", format_path(path, Mask::On), counted(*files, "file")),
        false => format!("{}\n", format_path(path, Mask::On)),
    };
    lines.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn files(paths: &[&str]) -> Vec<TreeFile> {
        paths.iter().map(|path| TreeFile { path: (*path).to_owned(), blob: String::new() }).collect()
    }

    /// Returns the words of a tree with 30 folders and of the project's documents.
    fn build_outline(budget: u32) -> Vec<ContextPiece> {
        let paths: Vec<String> = (0..30).map(|number| format!("a/b{number}/c/d.rs")).collect();
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        let documents: Vec<String> = (0..30).map(|number| format!("a/b{number}/AGENTS.md")).collect();
        let documents = ProjectDocuments { all: &documents, loaded: &documents[..2] };
        build_repo_outline(&files(&paths), documents, &["a/b1/c/d.rs"], budget, &|text| text.split_whitespace().count())
    }

    #[rstest]
    #[case::all_of_it(16_000, Need::Must, "a/b1/c/d.rs\n", "a/b9/: AGENTS.md")]
    #[case::less_deep(1_600, Need::Must, "a/ (30 files)\n", "more lines left out")]
    #[case::as_a_filler(800, Need::Filler, "a/b1/c/d.rs\n", "a/b9/: AGENTS.md")]
    fn it_is_as_much_as_is_kept_for_it(
        #[case] budget: u32,
        #[case] need: Need,
        #[case] overview: &str,
        #[case] documents: &str,
    ) {
        let pieces = build_outline(budget);
        assert_eq!(
            pieces.iter().map(|piece| piece.kind).collect::<Vec<_>>(),
            [SectionKind::Documentation, SectionKind::Overview]
        );
        assert!(pieces.iter().all(|piece| piece.need == need));
        assert!(pieces[1].text.contains(overview), "{}", &*pieces[1].text);
        assert!(pieces[0].text.contains(documents) && !pieces[0].text.contains("a/b0/"), "{}", &*pieces[0].text);
        let words: usize = pieces.iter().map(|piece| piece.text.split_whitespace().count()).sum();
        if need != Need::Filler {
            assert!(words as u32 <= budget / OUTLINE_BUDGET_DIVISOR, "{words} words");
        }
    }

    #[test]
    fn no_path_stands_for_something_else() {
        let key = concat!("gh", "p_8rT3kLm9QwXz2VbN6yHs4JdF7cPa1GuE5oKi");
        let paths = ["```x.rs", "</context>/a.rs", &format!("{key}/b.rs")];
        assert_eq!(
            format_folder_tree(&files(&paths), &["</context>/a.rs"], 9),
            "\\u{3c}/context>/a.rs\n\\u{60}\\u{60}\\u{60}x.rs\n«secret:github_token»/ (1 file)\n"
        );
    }

    #[test]
    fn folders_on_the_way_to_a_change_are_open() {
        let files = files(&["a/b/c.rs", "a/b/d/e.rs", "a/f.rs", "g/h.rs", "g/i/j.rs", "k.rs"]);
        assert_eq!(
            format_folder_tree(&files, &["a/b/c.rs"], 9),
            "a/b/c.rs\na/b/d/ (1 file)\na/f.rs\ng/ (2 files)\nk.rs\n"
        );
        assert_eq!(format_folder_tree(&files, &["a/b/c.rs"], 1), "a/b/ (2 files)\na/f.rs\ng/ (2 files)\nk.rs\n");
        assert_eq!(format_folder_tree(&files, &["a/b/c.rs"], 0), "a/ (3 files)\ng/ (2 files)\nk.rs\n");
    }
}
