//! Keeps the texts of the findings on the screen as their rows show them. They are made when the list changes: to split titles
//! and to look for keys in names was a fifth of each frame.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use super::app::{App, FindingListLine, Pane};
use super::doc::TextColumns;
use super::draw::painter::to_shown_text;
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
    /// Columns of the text; at most a quarter of [`u16::MAX`], so that widths can be added.
    pub columns: u16,
}

impl ShownText {
    fn new(app: &App, text: &str) -> Self {
        const MAX_COLUMNS: u16 = u16::MAX / 4;
        let text = to_shown_text(app, text).into_owned();
        let columns = u16::try_from(text.width()).unwrap_or(MAX_COLUMNS).min(MAX_COLUMNS);
        Self { text, columns }
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
pub struct FindingTexts {
    /// What the texts follow from besides the findings.
    basis: Option<Basis>,
    texts: HashMap<u32, FindingText>,
}

#[derive(Debug)]
struct Basis {
    view: Arc<StoreView>,
    grouping: FindingGrouping,
    is_revealed: bool,
}

impl Basis {
    fn of(app: &App) -> Self {
        let view = Arc::clone(&app.store.view);
        Self { view, grouping: app.finding_list.arrangement.grouping, is_revealed: app.detail.revealed.is_some() }
    }

    fn is_of(&self, app: &App) -> bool {
        Arc::ptr_eq(&self.view, &app.store.view)
            && self.grouping == app.finding_list.arrangement.grouping
            && self.is_revealed == app.detail.revealed.is_some()
    }
}

/// Returns the texts of a finding, by its index in the view: those that are kept, or new ones.
pub fn texts_of(app: &App, index: u32) -> Cow<'_, FindingText> {
    let kept = &app.finding_list.texts;
    let is_current = kept.basis.as_ref().is_some_and(|basis| basis.is_of(app));
    match kept.texts.get(&index).filter(|_| is_current) {
        Some(texts) => Cow::Borrowed(texts),
        None => Cow::Owned(FindingText::new(app, &app.store.view.finding(index as usize))),
    }
}

/// Makes the texts of the findings that the next frame shows, where they are missing.
pub fn prepare_texts(app: &mut App) {
    let mut kept = std::mem::take(&mut app.finding_list.texts);
    if !kept.basis.as_ref().is_some_and(|basis| basis.is_of(app)) || kept.texts.len() > MAX_KEPT {
        kept = FindingTexts { basis: Some(Basis::of(app)), texts: HashMap::new() };
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
