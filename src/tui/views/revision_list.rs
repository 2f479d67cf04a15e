//! List of commits and branches above a prompt that asks for a revision.

use ratatui::layout::Position;

use super::review_form::ReviewFormFacts;
use super::window::{draw_window, place_window};
use crate::tui::app::{App, format_duration};
use crate::tui::doc::TextColumns;
use crate::tui::draw::painter::Painter;
use crate::tui::draw::window_overlay_style;
use crate::tui::theme::Role;

/// Rows of the list at most.
const MAX_ROWS: usize = 10;
/// Shortest text that git takes for the beginning of a commit's id.
const MIN_ID_CHARS: usize = 4;
/// Columns of a commit's id, of its age and of the list.
const ID_COLUMNS: u16 = 12;
const AGE_COLUMNS: u16 = 5;
const LIST_COLUMNS: u16 = 90;

/// Revision that the prompt offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedRevision {
    /// Text that the prompt takes: a commit or a branch.
    pub text: String,
    /// Subject of the commit, or `branch`.
    pub label: String,
    /// Commit time in milliseconds since 1970; `None` for a branch.
    pub time_ms: Option<i64>,
}

/// Returns the revisions that match a query, best first: branches and ids that begin with it, then commits whose subject
/// contains all its words. An empty query matches the newest commits.
pub fn find_revisions(facts: &ReviewFormFacts, query: &str) -> Vec<OfferedRevision> {
    let query = query.trim().to_lowercase();
    let words: Vec<&str> = query.split_whitespace().collect();
    let branches = facts.branches.iter().filter(|name| !query.is_empty() && name.to_lowercase().contains(&query));
    let branches =
        branches.map(|name| OfferedRevision { text: name.clone(), label: "branch".to_owned(), time_ms: None });
    let commits = facts.commits.iter().filter(|commit| {
        let subject = commit.subject.to_lowercase();
        commit.id.starts_with(&query) || words.iter().all(|word| subject.contains(word))
    });
    let commits = commits.map(|commit| OfferedRevision {
        text: commit.id.clone(),
        label: commit.subject.clone(),
        time_ms: Some(commit.time.as_millisecond()),
    });
    branches.chain(commits).take(MAX_ROWS).collect()
}

/// Returns true if a query can only be a search: it has words, or a word that git would not take for a commit's id or for
/// an expression like `HEAD~2`, `v1.0` or `a..b`, or for one of the tags.
pub fn is_search_text(query: &str, tags: &[String]) -> bool {
    let query = query.trim();
    let is_head = query.eq_ignore_ascii_case("head") || query.ends_with("_HEAD");
    let is_expression =
        query.contains(['~', '^', '@', ':', '.', '/']) || is_head || tags.iter().any(|tag| tag == query);
    let is_id = query.len() >= MIN_ID_CHARS && query.chars().all(|c| c.is_ascii_hexdigit());
    !query.is_empty() && (query.contains(char::is_whitespace) || !(is_expression || is_id))
}

/// Returns the text for the prompt of a range: the commits since the revision.
pub fn range_since(revision: &str) -> String {
    format!("{revision}..HEAD")
}

/// Returns the row (0-based) of the list of `count` revisions under the pointer.
pub fn revision_at(app: &App, count: usize, cell: Position) -> Option<usize> {
    let (_, inside) = place_window(app, LIST_COLUMNS, window_height(count), true);
    inside.contains(cell).then(|| usize::from(cell.y - inside.y)).filter(|row| *row < count)
}

fn window_height(count: usize) -> u16 {
    count as u16 + 2
}

/// Draws the revisions in a window above the prompt; `chosen` is the 1-based row whose text the prompt shows.
pub fn draw_revisions(painter: &mut Painter<'_>, revisions: &[OfferedRevision], chosen: usize) {
    if revisions.is_empty() {
        return;
    }
    let inside = draw_window(painter, LIST_COLUMNS, window_height(revisions.len()), true, "revisions");
    let bar = painter.style(Role::Selected);
    for ((row, revision), y) in revisions.iter().enumerate().zip(inside.y..inside.bottom()) {
        if row + 1 == chosen {
            painter.fill(ratatui::layout::Rect::new(inside.x - 1, y, inside.width + 2, 1), bar);
            painter.set_overlay_style(Some(window_overlay_style(bar)));
        }
        let text = ID_COLUMNS.max(revision.text.width().min(30) as u16);
        let used = painter.draw_text(inside.x, y, text, &revision.text, Role::Accent).max(ID_COLUMNS) + 1;
        let label = inside.width.saturating_sub(used + AGE_COLUMNS + 1);
        painter.draw_text(inside.x + used, y, label, &revision.label, Role::Normal);
        if let Some(time) = revision.time_ms {
            let age = format_duration(painter.app.now.saturating_sub(time).max(0) / 1000);
            painter.draw_text_right(inside.right().saturating_sub(AGE_COLUMNS), y, AGE_COLUMNS, &age, Role::Muted);
        }
        painter.set_overlay_style(None);
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::domain::{Scope, Time};
    use crate::tui::views::review_form::OfferedCommit;

    #[rstest]
    #[case::nothing_typed("", &["a1", "b2", "c3"])]
    #[case::an_id("b2", &["b2"])]
    #[case::a_branch_before_commits("fix", &["fix/retry", "a1", "c3"])]
    #[case::words_in_any_order("retry fix", &["a1"])]
    #[case::any_case("RETRY", &["fix/retry", "a1"])]
    #[case::unknown("HEAD~3", &[])]
    fn revisions_are_found_by_id_name_and_subject(#[case] query: &str, #[case] expected: &[&str]) {
        let commit = |id: &str, subject: &str| OfferedCommit {
            id: id.to_owned(),
            subject: subject.to_owned(),
            time: Time::default(),
        };
        let facts = ReviewFormFacts {
            commits: vec![commit("a1", "Fix the retry"), commit("b2", "Add a test"), commit("c3", "Fix lints")],
            branches: vec!["fix/retry".to_owned(), "main".to_owned()],
            ..ReviewFormFacts::default()
        };
        let found: Vec<String> = find_revisions(&facts, query).into_iter().map(|revision| revision.text).collect();
        assert_eq!(found, expected);
    }

    #[rstest]
    #[case::nothing("", false)]
    #[case::a_word("retry", true)]
    #[case::words("fix HEAD~1", true)]
    #[case::an_id("3fa2c1", false)]
    #[case::too_short_for_an_id("3fa", true)]
    #[case::an_ancestor("HEAD~2", false)]
    #[case::head("head", false)]
    #[case::a_version("v1.0", false)]
    #[case::a_branch("fix/retry", false)]
    #[case::a_range("main...topic", false)]
    #[case::a_tag("nightly", false)]
    #[case::a_part_of_a_tag("night", true)]
    #[case::fetched("FETCH_HEAD", false)]
    #[case::a_word_that_ends_so("overhead", true)]
    fn a_search_is_no_revision(#[case] query: &str, #[case] expected: bool) {
        assert_eq!(is_search_text(query, &["nightly".to_owned()]), expected);
    }

    #[test]
    fn a_range_begins_after_the_revision() {
        assert_eq!(range_since("a1"), "a1..HEAD");
        assert_eq!(Scope::parse_range("a1..HEAD"), Some(Scope::Range { from: "a1".into(), to: "HEAD".into() }));
    }
}
