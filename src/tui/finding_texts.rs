//! Keeps the texts of the findings on the screen as their rows show them. They are made when the list changes: to split titles
//! and to look for keys in names was a fifth of each frame.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use super::app::{App, FindingListLine, Pane};
use super::draw::painter::{count_columns, to_shown_text};
use super::short_title::{ShortTitle, shorten_finding};
use crate::config::FindingGrouping;
use crate::store::{FindingRow, StoreView};

/// Number of texts from which on those of other rows than the visible ones are dropped.
const MAX_KEPT: usize = 512;

/// Texts of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FindingText {
    /// Path and line, or the line alone in groups of files.
    pub place: ShownText,
    /// See [`ShortTitle::symbol`].
    pub symbol: ShownText,
    /// See [`ShortTitle::problem`].
    pub problem: ShownText,
    /// See [`ShortTitle::is_whole_title`].
    pub is_whole_title: bool,
}

/// Text as it is drawn: one safe line, with masked keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownText {
    pub text: String,
    /// See [`count_columns`].
    pub columns: u16,
}

impl ShownText {
    fn new(app: &App, text: &str) -> Self {
        let text = to_shown_text(app, text).into_owned();
        Self { columns: count_columns(&text), text }
    }
}

impl FindingText {
    /// Makes the texts of a finding.
    pub fn new(app: &App, finding: &FindingRow<'_>) -> Self {
        let place = match app.finding_list.arrangement.grouping {
            FindingGrouping::File => format!(":{}", finding.line_start),
            _ => format!("{}:{}", finding.path, finding.line_start),
        };
        let ShortTitle { symbol, problem, is_whole_title } = shorten_finding(finding);
        let shown = |text: &str| ShownText::new(app, text);
        Self { place: shown(&place), symbol: shown(symbol), problem: shown(&problem), is_whole_title }
    }
}

/// Texts of the visible findings, and of some others, by the index of the finding in the view.
#[derive(Debug, Default)]
pub struct FindingTextCache {
    /// State from which the texts were made; `None` before the first ones.
    inputs: Option<TextInputs>,
    texts: HashMap<u32, FindingText>,
}

/// State of the cockpit on which the texts of findings depend. It holds the view, so that no other one can have its address.
#[derive(Debug)]
struct TextInputs {
    view: Arc<StoreView>,
    grouping: FindingGrouping,
    is_revealed: bool,
}

impl TextInputs {
    fn from_app(app: &App) -> Self {
        let view = Arc::clone(&app.store.view);
        Self { view, grouping: app.finding_list.arrangement.grouping, is_revealed: app.detail.revealed.is_some() }
    }

    fn is_current(&self, app: &App) -> bool {
        Arc::ptr_eq(&self.view, &app.store.view)
            && self.grouping == app.finding_list.arrangement.grouping
            && self.is_revealed == app.detail.revealed.is_some()
    }
}

impl FindingTextCache {
    fn is_current(&self, app: &App) -> bool {
        self.inputs.as_ref().is_some_and(|inputs| inputs.is_current(app))
    }
}

/// Returns the texts of a finding, by its index in the view: those that are kept, or new ones.
pub fn find_texts(app: &App, index: u32) -> Cow<'_, FindingText> {
    let kept = &app.finding_list.texts;
    match kept.texts.get(&index).filter(|_| kept.is_current(app)) {
        Some(texts) => Cow::Borrowed(texts),
        None => Cow::Owned(FindingText::new(app, &app.store.view.finding(index as usize))),
    }
}

/// Makes the texts of the findings that the next frame shows, where they are missing.
pub fn prepare_texts(app: &mut App) {
    let mut kept = std::mem::take(&mut app.finding_list.texts);
    if !kept.is_current(app) || kept.texts.len() > MAX_KEPT {
        kept = FindingTextCache { inputs: Some(TextInputs::from_app(app)), texts: HashMap::new() };
    }
    let height = app.layout().pane(Pane::Findings).map_or(0, |area| usize::from(area.body.height));
    let list = &app.finding_list;
    for line in (list.cursor.offset..list.cursor.offset + height).map_while(|line| list.line(line)) {
        if let FindingListLine::Finding { at, .. } = line
            && let Some(index) = list.rows.get(at)
            && !kept.texts.contains_key(index)
        {
            let finding = app.store.view.finding(*index as usize);
            kept.texts.insert(*index, FindingText::new(app, &finding));
        }
    }
    app.finding_list.texts = kept;
}
