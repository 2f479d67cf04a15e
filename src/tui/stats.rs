//! The page of figures while it is open: what is shown of it, and what was asked for and has not come.

use std::sync::Arc;

use super::app::{App, Overlay};
use super::doc::Doc;
use super::message::Command;
use super::pages;
use crate::ledger::metrics::Metrics;
use crate::store::View;

/// The open page.
#[derive(Debug, Clone, Default)]
pub struct Stats {
    /// Without its runs: the page shows none.
    pub metrics: Option<Arc<Metrics>>,
    /// Why the figures could not be read.
    pub trouble: Option<String>,
    pub doc: Doc,
    /// The first line on screen.
    pub offset: usize,
    reading: Reading,
}

/// How far the figures of the newest view have come.
#[derive(Debug, Clone, Default)]
enum Reading {
    #[default]
    Done,
    OnItsWay,
    /// The store has changed since: read it again as soon as these figures are here.
    Outdated(Arc<View>),
}

/// Opens the page; its figures are on their way.
pub fn open(app: &mut App, commands: &mut Vec<Command>) {
    app.overlay = Overlay::Stats(Box::new(Stats { reading: Reading::OnItsWay, ..Stats::default() }));
    commands.push(Command::Stats(Arc::clone(&app.view)));
    build(app);
}

/// The store has changed.
pub fn viewed(app: &mut App, view: &Arc<View>, commands: &mut Vec<Command>) {
    let Overlay::Stats(stats) = &mut app.overlay else { return };
    match stats.reading {
        Reading::Done => {
            stats.reading = Reading::OnItsWay;
            commands.push(Command::Stats(Arc::clone(view)));
        }
        Reading::OnItsWay | Reading::Outdated(_) => stats.reading = Reading::Outdated(Arc::clone(view)),
    }
}

/// The figures are here, or why they are not.
pub fn came(app: &mut App, figures: Result<Arc<Metrics>, String>, commands: &mut Vec<Command>) {
    let Overlay::Stats(stats) = &mut app.overlay else { return };
    stats.reading = match std::mem::take(&mut stats.reading) {
        Reading::Outdated(view) => {
            commands.push(Command::Stats(view));
            Reading::OnItsWay
        }
        Reading::Done | Reading::OnItsWay => Reading::Done,
    };
    match figures {
        Ok(metrics) => (stats.metrics, stats.trouble) = (Some(metrics), None),
        Err(why) => stats.trouble = Some(why),
    }
    build(app);
}

/// Makes the page anew, for the width that the screen has.
pub fn build(app: &mut App) {
    let Overlay::Stats(stats) = &app.overlay else { return };
    let doc = pages::stats(app, stats, usize::from(app.columns.saturating_sub(4)).max(20));
    if let Overlay::Stats(stats) = &mut app.overlay {
        stats.doc = doc;
    }
    scroll(app, 0);
}

/// Moves the page by some lines.
pub fn scroll(app: &mut App, by: isize) {
    let height = rows(app);
    if let Overlay::Stats(stats) = &mut app.overlay {
        let most = stats.doc.lines.len().saturating_sub(height);
        stats.offset = stats.offset.saturating_add_signed(by).min(most);
    }
}

/// Lines that fit between the page's title and the message line.
pub fn rows(app: &App) -> usize {
    let layout = app.layout();
    usize::from(layout.notice.y.saturating_sub(layout.header.y + 2)).max(1)
}
