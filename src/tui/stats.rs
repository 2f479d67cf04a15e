//! Holds the state of the open statistics page, including a pending request for figures.

use std::sync::Arc;

use super::app::{App, Overlay};
use super::doc::Doc;
use super::message::AppCommand;
use super::pages;
use crate::ledger::metrics::Metrics;
use crate::store::StoreView;

/// State of the open page.
#[derive(Debug, Clone, Default)]
pub struct StatsPage {
    /// Metrics with an empty list of runs, because the page shows no single run.
    pub metrics: Option<Arc<Metrics>>,
    /// Error of the last read.
    pub trouble: Option<String>,
    pub doc: Doc,
    /// First visible line (0-based).
    pub offset: usize,
    refresh: RefreshState,
}

/// State of the request for the figures of the newest view.
#[derive(Debug, Clone, Default)]
enum RefreshState {
    #[default]
    Done,
    Pending,
    /// The store has changed since the request; the figures are requested again when the pending ones arrive.
    Outdated(Arc<StoreView>),
}

/// Opens the page and requests its figures.
pub fn open(app: &mut App, commands: &mut Vec<AppCommand>) {
    app.overlay = Overlay::Stats(Box::new(StatsPage { refresh: RefreshState::Pending, ..StatsPage::default() }));
    commands.push(AppCommand::Stats(Arc::clone(&app.view)));
    build_page(app);
}

/// Requests new figures after a change of the store.
pub fn handle_view(app: &mut App, view: &Arc<StoreView>, commands: &mut Vec<AppCommand>) {
    let Overlay::Stats(stats) = &mut app.overlay else { return };
    match stats.refresh {
        RefreshState::Done => {
            stats.refresh = RefreshState::Pending;
            commands.push(AppCommand::Stats(Arc::clone(view)));
        }
        RefreshState::Pending | RefreshState::Outdated(_) => stats.refresh = RefreshState::Outdated(Arc::clone(view)),
    }
}

/// Shows figures that arrived, or the error.
pub fn set_figures(app: &mut App, figures: Result<Arc<Metrics>, String>, commands: &mut Vec<AppCommand>) {
    let Overlay::Stats(stats) = &mut app.overlay else { return };
    stats.refresh = match std::mem::take(&mut stats.refresh) {
        RefreshState::Outdated(view) => {
            commands.push(AppCommand::Stats(view));
            RefreshState::Pending
        }
        RefreshState::Done | RefreshState::Pending => RefreshState::Done,
    };
    match figures {
        Ok(metrics) => (stats.metrics, stats.trouble) = (Some(metrics), None),
        Err(why) => stats.trouble = Some(why),
    }
    build_page(app);
}

/// Builds the page for the current width.
pub fn build_page(app: &mut App) {
    let Overlay::Stats(stats) = &app.overlay else { return };
    let doc = pages::build_stats_page(app, stats, usize::from(app.columns.saturating_sub(4)).max(20));
    if let Overlay::Stats(stats) = &mut app.overlay {
        stats.doc = doc;
    }
    scroll(app, 0);
}

/// Scrolls the page by a number of lines.
pub fn scroll(app: &mut App, by: isize) {
    let height = page_height(app);
    if let Overlay::Stats(stats) = &mut app.overlay {
        let most = stats.doc.lines.len().saturating_sub(height);
        stats.offset = stats.offset.saturating_add_signed(by).min(most);
    }
}

/// Returns the number of lines between the page's title and the message line (at least 1).
pub fn page_height(app: &App) -> usize {
    let layout = app.layout();
    usize::from(layout.notice.y.saturating_sub(layout.header.y + 2)).max(1)
}
