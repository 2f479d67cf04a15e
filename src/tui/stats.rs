//! The page of figures while it is open: what is shown of it, and what was asked for and has not come.

use std::sync::Arc;

use super::app::{App, Overlay};
use super::doc::Doc;
use super::message::AppCommand;
use super::pages;
use crate::ledger::metrics::Metrics;
use crate::store::StoreView;

/// The open page.
#[derive(Debug, Clone, Default)]
pub struct StatsPage {
    /// Without its runs: the page shows none.
    pub metrics: Option<Arc<Metrics>>,
    /// Why the figures could not be read.
    pub trouble: Option<String>,
    pub doc: Doc,
    /// The first line on screen.
    pub offset: usize,
    refresh: RefreshState,
}

/// How far the figures of the newest view have come.
#[derive(Debug, Clone, Default)]
enum RefreshState {
    #[default]
    Done,
    Pending,
    /// The store has changed since: read it again as soon as these figures are here.
    Outdated(Arc<StoreView>),
}

/// Opens the page; its figures are on their way.
pub fn open(app: &mut App, commands: &mut Vec<AppCommand>) {
    app.overlay = Overlay::Stats(Box::new(StatsPage { refresh: RefreshState::Pending, ..StatsPage::default() }));
    commands.push(AppCommand::Stats(Arc::clone(&app.view)));
    build_page(app);
}

/// The store has changed.
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

/// The figures are here, or why they are not.
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

/// Makes the page anew, for the width that the screen has.
pub fn build_page(app: &mut App) {
    let Overlay::Stats(stats) = &app.overlay else { return };
    let doc = pages::build_stats_page(app, stats, usize::from(app.columns.saturating_sub(4)).max(20));
    if let Overlay::Stats(stats) = &mut app.overlay {
        stats.doc = doc;
    }
    scroll(app, 0);
}

/// Moves the page by some lines.
pub fn scroll(app: &mut App, by: isize) {
    let height = page_height(app);
    if let Overlay::Stats(stats) = &mut app.overlay {
        let most = stats.doc.lines.len().saturating_sub(height);
        stats.offset = stats.offset.saturating_add_signed(by).min(most);
    }
}

/// Lines that fit between the page's title and the message line.
pub fn page_height(app: &App) -> usize {
    let layout = app.layout();
    usize::from(layout.notice.y.saturating_sub(layout.header.y + 2)).max(1)
}
