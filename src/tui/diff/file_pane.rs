//! Shown file of a diff: its texts as far as they are read, its folds, highlights and rows.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::super::page_data::HighlightSpans;
use super::layout::FileLayout;
use super::model::{ChangeBlock, ChangeWithoutSpace, DiffFile, DiffPageSide, DiffTexts, HIGHLIGHT_BLOCK_LINES};
use crate::domain::LineRange;

/// Text that stands instead of the lines of a file.
pub const ONLY_SPACE: &str = "only white space differs";

/// Texts of a file as far as they are read.
#[derive(Debug, Default)]
pub enum TextState {
    #[default]
    Unread,
    Requested,
    Read(Arc<DiffTexts>),
    Failed(String),
}

/// Block of highlighted lines: `None` while it is on its way.
type HighlightBlock = Option<Vec<HighlightSpans>>;

/// Shown file of a diff.
#[derive(Debug, Default)]
pub struct FilePane {
    pub is_folded: bool,
    pub is_viewed: bool,
    /// Names of the changes that the user has viewed.
    pub viewed_changes: HashSet<String>,
    /// Changes of white space are not shown.
    pub ignores_space: bool,
    /// Findings whose text is shown, by their index in the file.
    pub open_findings: BTreeSet<usize>,
    /// Unchanged lines that the user wants to see.
    pub expanded: Vec<LineRange>,
    pub texts: TextState,
    pub highlights: HashMap<(DiffPageSide, u32), HighlightBlock>,
    pub layout: FileLayout,
}

impl FilePane {
    /// Returns true if the texts are not there yet.
    pub fn is_waiting(&self) -> bool {
        matches!(self.texts, TextState::Unread | TextState::Requested)
    }

    /// Returns the texts if they are read.
    pub fn read_texts(&self) -> Option<&Arc<DiffTexts>> {
        match &self.texts {
            TextState::Read(texts) => Some(texts),
            _ => None,
        }
    }

    /// Returns the text that stands instead of lines.
    pub fn note(&self, file: &DiffFile) -> Option<&str> {
        match &self.texts {
            // The lines of findings are shown in any case.
            TextState::Read(_) if file.findings.is_empty() && self.differs_only_in_space() => Some(ONLY_SPACE),
            TextState::Read(texts) => texts.note.as_deref(),
            TextState::Failed(error) => Some(error),
            TextState::Unread | TextState::Requested => None,
        }
    }

    /// Returns the text that stands above the lines.
    pub fn caption(&self) -> Option<&str> {
        self.read_texts().and_then(|texts| texts.caption.as_deref())
    }

    /// Returns the highlighted spans of a line, if it is highlighted.
    pub fn spans(&self, side: DiffPageSide, line: u32) -> &[(u32, u32, super::super::theme::Role)] {
        let at = line.saturating_sub(1);
        self.highlighted_block(side, line)
            .and_then(|block| block.get((at % HIGHLIGHT_BLOCK_LINES) as usize))
            .map_or(&[], Vec::as_slice)
    }

    /// Returns true if a line is highlighted, even if nothing in it has a colour.
    pub fn is_highlighted(&self, side: DiffPageSide, line: u32) -> bool {
        self.highlighted_block(side, line).is_some_and(|block| !block.is_empty())
    }

    fn highlighted_block(&self, side: DiffPageSide, line: u32) -> Option<&Vec<HighlightSpans>> {
        self.highlights.get(&(side, line.saturating_sub(1) / HIGHLIGHT_BLOCK_LINES))?.as_ref()
    }

    /// Stores a highlighted block of a text, unless another text has been read since.
    pub fn set_highlights(&mut self, serial: u64, side: DiffPageSide, block: u32, spans: Vec<HighlightSpans>) {
        if self.read_texts().is_some_and(|texts| texts.serial == serial) {
            self.highlights.insert((side, block), Some(spans));
        }
    }

    /// Notes the request of a block; returns false if it was requested before.
    pub fn request_highlights(&mut self, side: DiffPageSide, block: u32) -> bool {
        let is_new = !self.highlights.contains_key(&(side, block));
        if is_new {
            self.highlights.insert((side, block), None);
        }
        is_new
    }

    /// Drops the texts, which are read again.
    pub fn forget_texts(&mut self) {
        self.texts = TextState::Unread;
        self.highlights.clear();
    }

    /// Returns the changed blocks of the file, as far as they are shown.
    pub fn blocks<'a>(&'a self, file: &'a DiffFile) -> &'a [ChangeBlock] {
        match self.change_without_space() {
            Some(change) => &change.blocks,
            None => self.read_texts().and_then(|texts| texts.found_blocks.as_deref()).unwrap_or(&file.blocks),
        }
    }

    /// Returns the old and new lines of the shown change that belong together; none before the texts are read.
    pub fn partners(&self) -> &[(u32, u32)] {
        match self.change_without_space() {
            Some(change) => change.words.pairs.as_slice(),
            None => self.read_texts().map_or(&[], |texts| texts.words.pairs.as_slice()),
        }
    }

    /// Returns true if nothing of the change is shown, because it is one of white space.
    pub fn differs_only_in_space(&self) -> bool {
        self.change_without_space().is_some_and(|change| change.blocks.is_empty())
    }

    fn change_without_space(&self) -> Option<&ChangeWithoutSpace> {
        self.read_texts()?.without_space.as_ref().filter(|_| self.ignores_space)
    }
}
