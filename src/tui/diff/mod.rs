//! Shows the change of a run as one document of all its files: unified or side by side, with its findings.
//!
//! - The layout of a file follows from its changed blocks, its findings and its folds, and needs no text. So the height
//!   of every file is known before its text is read, and 5,000 files open at once. Side by side, the texts then tell which
//!   lines of a change face each other.
//! - Texts are read when a file comes into sight, and highlighted in blocks of lines; both by the thread that reads pages.
//! - Only visible rows are built. Rows that are drawn need no search: a row is a line number in a text.

mod columns;
mod draw;
mod emphasis;
mod enclosing;
mod file_pane;
mod finding_text;
mod keys;
mod layout;
mod loader;
mod model;
mod moves;
mod navigation;
mod pane;
mod range;
mod shift;
mod space;
mod viewed;
mod words;

pub use draw::{draw, draw_around_finding};
pub(crate) use emphasis::{DiffEmphasis, LineTone, draw_with_emphasis};
pub(crate) use finding_text::compare_lines;
pub(crate) use keys::{
    NO_DIFF, PLAIN_IS_UNIFIED, apply_file, apply_highlights, apply_moves, apply_viewed, apply_viewed_files,
    code_at_cursor, find_position, find_row, finding_at_cursor, findings_at_cursor, findings_from_cursor,
    footer_actions, go_to_next_undecided, is_outdated, is_shown, removed_line_at_cursor, request_visible, run_action,
    show_page, source_at_cursor, sync,
};
pub(crate) use layout::DiffPageRow;
pub use model::{
    ChangeBlock, DiffFile, DiffFinding, DiffPage, DiffPageSide, DiffRequest, DiffSuggestion, DiffTexts, LineTable,
    TextHighlights, name_unstored_content,
};
pub use moves::DiffMove;
pub(crate) use pane::PlacedRow;
pub use pane::{DiffOptions, DiffPane};
pub(crate) use viewed::{apply_marked_changes, is_change_name, name_changes};
pub(crate) use words::{MAX_PAIRS, compare_block};
