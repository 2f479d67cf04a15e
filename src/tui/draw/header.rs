//! Draws the header: repository, branch and what is left to decide; at the right edge what a reviewer does now, unless the
//! Live view below says it.

use std::borrow::Cow;

use super::super::app::{App, OpeningLook};
use super::super::keymap::{Action, KeyContext};
use super::super::layout::ScreenLayout;
use super::super::pages::{format_brief, format_dollars};
use super::super::theme::Role;
use super::super::views::live::LiveView;
use super::painter::Painter;
use crate::domain::{Panel, RunStatus, WatchMode, text};
use crate::policy::{Freshness, MAX_ATTEMPTS};
use crate::store::{RunRow, WatcherInfo, WatcherStatus};
use crate::tui::doc::TextColumns;

/// Cells of the gauge.
const GAUGE_CELLS: u16 = 8;
/// Columns between two facts.
const GAP: u16 = 2;

/// Draws the header.
pub fn draw_header(painter: &mut Painter<'_>, layout: &ScreenLayout) {
    let app = painter.app;
    let area = layout.header;
    if area.is_empty() {
        return;
    }
    let facts = collect_facts(app);
    let facts_width: u16 = facts.iter().map(|(fact, _)| fact.width() as u16 + GAP).sum();
    let right = area.right().saturating_sub(1);
    let end = match is_state_below(app) {
        true => right,
        false => EngineState::describe(app).draw(painter, area.y, right, facts_width + 1).saturating_sub(GAP),
    };
    let mut x = 1;
    for (fact, role) in &facts {
        if x + 2 < end {
            x += painter.draw_text(x, area.y, end - x, fact, *role) + GAP;
        }
    }
}

/// Returns true if the Live view shows the headline run: its first row has reviewer, scope, turn, activity and cost.
fn is_state_below(app: &App) -> bool {
    let live = app.views.find::<LiveView>();
    let headline = app.headline_run().filter(|_| app.has_active_runs());
    live.zip(headline).is_some_and(|(live, run)| live.shows_run(&run))
}

/// Returns the facts at the left edge with their styles, the most important first.
fn collect_facts(app: &App) -> Vec<(Cow<'_, str>, Role)> {
    let mut facts: Vec<(Cow<'_, str>, Role)> = vec![(app.session.repository.as_str().into(), Role::Title)];
    facts.push(match app.session.branch.as_str() {
        "" => ("detached HEAD".into(), Role::Muted),
        branch => (branch.into(), Role::Normal),
    });
    if has_counts(app) {
        facts.push((app.display.glyphs.dot.into(), Role::Faint));
    }
    facts.extend(collect_counts(app));
    facts
}

/// Returns true if the findings of the store are counted, and there are some.
fn has_counts(app: &App) -> bool {
    app.store.view.complete && app.store.view.finding_count() > 0
}

/// Returns the numbers of open, new, snoozed and decided findings, then the states of the exchange with the team and of
/// the watcher, each with its style.
pub(super) fn collect_counts(app: &App) -> Vec<(Cow<'static, str>, Role)> {
    let mut facts: Vec<(Cow<'static, str>, Role)> = Vec::new();
    if has_counts(app) {
        let number = |count: usize| text::format_thousands(count as u64);
        facts.push((format!("{} open", number(app.finding_list.totals.undecided)).into(), Role::Normal));
        let new = app.finding_list.new_count();
        if new > 0 {
            facts.push((format!("{} new", number(new)).into(), Role::Good));
        }
        let snoozed = app.finding_list.totals.snoozed;
        if snoozed > 0 {
            facts.push((format!("{} snoozed", number(snoozed)).into(), Role::Muted));
        }
        if let Some(decided) = app.decided_today().filter(|count| *count > 0) {
            facts.push((format!("{} decided today", number(decided)).into(), Role::Muted));
        }
    }
    facts.extend(collect_team_facts(app));
    if let Some(watch) = watch_label(app) {
        facts.push((watch, Role::Faint));
    }
    facts
}

/// Returns the state of the exchange with the team; none without a team. Warnings come first: a lost team, then findings about
/// which people disagree. It names a time of the day, not an age: an idle screen has nothing to draw.
fn collect_team_facts(app: &App) -> Vec<(Cow<'static, str>, Role)> {
    let Some(team) = app.store.team.as_ref() else { return Vec::new() };
    let is_offline = team.has_failed || app.store.has_lost_team;
    let number = |count: usize| text::format_thousands(count as u64);
    let mut facts: Vec<(Cow<'static, str>, Role)> = Vec::new();
    if is_offline {
        let waiting = if team.to_send > 0 { format!(", {} to send", number(team.to_send)) } else { String::new() };
        facts.push((format!("team offline{waiting}").into(), Role::Warn));
    }
    if !team.disputed.is_empty() {
        facts.push((format!("{} disputed", number(team.disputed.len())).into(), Role::Warn));
    }
    match (team.to_send, team.synced_at) {
        _ if is_offline => {}
        (0, Some(at)) => {
            facts.push((format!("synced {}", app.format_date_or_time(at.as_millisecond())).into(), Role::Faint));
        }
        (0, None) if !team.disputed.is_empty() => {}
        (waiting, _) => facts.push((format!("{} to send", number(waiting)).into(), Role::Faint)),
    }
    facts
}

/// Returns the label of the watcher or snooze state; `None` if nobody watches and nothing is snoozed.
fn watch_label(app: &App) -> Option<Cow<'static, str>> {
    let snoozed = app.store.watch.snoozed.map(|until| until.as_millisecond()).filter(|until| *until > app.now);
    match (&app.store.watch.watcher, snoozed) {
        (_, Some(until)) => Some(format!("snoozed until {}", app.format_date_or_time(until)).into()),
        (WatcherStatus::None, None) => None,
        (WatcherStatus::Known(WatcherInfo { mode: WatchMode::Polling { .. }, .. }), None) => {
            Some("watching (polling)".into())
        }
        (WatcherStatus::Known(_) | WatcherStatus::Unknown, None) => Some("watching".into()),
    }
}

/// Activity of the headline run, or the idle state.
struct EngineState {
    glyph: &'static str,
    state: String,
    role: Role,
    /// Reviewer and scope; empty when idle.
    who: String,
    /// Money that the run spent; empty for none.
    cost: String,
    /// Part that is done or spent, the whole, and their text.
    gauge: Option<(u64, u64, String)>,
}

impl EngineState {
    fn describe(app: &App) -> Self {
        let (glyph, state, role) = describe_state(app);
        let mut engine = Self { glyph, state, role, who: String::new(), cost: String::new(), gauge: None };
        let Some(run) = app.headline_run().filter(|_| app.has_active_runs()) else { return engine };
        engine.who = format!("{} on {}", Panel::describe_reviewer(run.reviewer), app.label_run(&run));
        let Some(pulse) = app.pulse(run.id).filter(|_| run.status.is_working()) else { return engine };
        if pulse.cost > 0.0 {
            engine.cost = format_dollars(pulse.cost);
        }
        let hunks = u64::from(run.hunks_total.max(run.hunks_covered));
        engine.gauge = match app.session.budget.tokens {
            Some(limit) if limit > 0 => {
                let spent = pulse.tokens.total();
                Some((spent, limit, format!("{}/{}", format_brief(spent), format_brief(limit))))
            }
            _ if hunks > 0 => Some((
                u64::from(run.hunks_covered),
                hunks,
                format!("{}/{}", run.hunks_covered, text::format_count(hunks as usize, "hunk")),
            )),
            _ => None,
        };
        engine
    }

    /// Draws the state up to the column `right`, beside `left` columns of other facts. What does not fit is left out: the
    /// gauge first, then the cost, then reviewer and scope. Returns the column where the text starts.
    fn draw(&self, painter: &mut Painter<'_>, y: u16, right: u16, left: u16) -> u16 {
        let room = right.saturating_sub(left + GAP);
        let wide = |text: &str| if text.is_empty() { 0 } else { text.width() as u16 + GAP };
        let state = self.state.width() as u16 + 2;
        let (who, cost) = (wide(&self.who), wide(&self.cost));
        let gauge = self.gauge.as_ref().map_or(0, |(.., text)| GAUGE_CELLS + 1 + text.width() as u16 + GAP);
        let shown = [(true, true, true), (true, true, false), (true, false, false), (false, false, false)];
        let width = |(has_who, has_cost, has_gauge): (bool, bool, bool)| {
            state + u16::from(has_who) * who + u16::from(has_cost) * cost + u16::from(has_gauge) * gauge
        };
        let shown = shown.into_iter().find(|shown| width(*shown) <= room).unwrap_or((false, false, false));
        let total = width(shown).min((right / 2 + 4).max(room));
        let start = right.saturating_sub(total);
        let mut x = start;
        if shown.0 && who > 0 {
            x += painter.draw_text(x, y, right - x, &self.who, Role::Muted) + GAP;
        }
        painter.draw_text(x, y, 1, self.glyph, self.role);
        x += 2;
        x += painter.draw_text(x, y, right.saturating_sub(x), &self.state, self.role) + GAP;
        if shown.1 && cost > 0 {
            x += painter.draw_text(x, y, right.saturating_sub(x), &self.cost, Role::Muted) + GAP;
        }
        if let Some((part, whole, text)) = self.gauge.as_ref().filter(|_| shown.2) {
            let filled = (u64::from(GAUGE_CELLS) * part / (*whole).max(1)).min(u64::from(GAUGE_CELLS)) as u16;
            let glyphs = painter.app.display.glyphs;
            for cell in 0..GAUGE_CELLS {
                let (glyph, role) =
                    if cell < filled { (glyphs.filled, Role::Filled) } else { (glyphs.empty, Role::Empty) };
                painter.draw_text(x + cell, y, 1, glyph, role);
            }
            x += GAUGE_CELLS + 1;
            painter.draw_text(x, y, right.saturating_sub(x), text, Role::Muted);
        }
        start
    }
}

/// Describes the activity of the headline run in words, with reviewer, change and cost, or the idle state.
pub(super) fn describe_engine(app: &App) -> String {
    let EngineState { state, who, cost, .. } = EngineState::describe(app);
    let parts: Vec<String> = [who, state, cost].into_iter().filter(|part| !part.is_empty()).collect();
    parts.join(", ")
}

/// Describes the activity of the headline run, or the idle state: glyph, text, style.
fn describe_state(app: &App) -> (&'static str, String, Role) {
    let Some(run) = app.headline_run().filter(|_| app.has_active_runs()) else {
        let (state, role) = match app.opening {
            OpeningLook::Asked if app.store.view.run_count() == 0 => ("starting", Role::Working),
            _ if !app.store.view.complete && app.store.view.run_count() > 0 => ("loading", Role::Muted),
            _ => ("idle", Role::Muted),
        };
        return (app.display.glyphs.none, state.to_owned(), role);
    };
    let dot = app.display.glyphs.dot;
    let waiting = app.waiting_runs();
    let more = match (run.status, waiting) {
        (RunStatus::Pending, 2..) => format!(" {dot} {waiting} waiting"),
        (RunStatus::Pending, _) | (_, 0) => String::new(),
        (_, waiting) => format!(" {dot} {waiting} waiting"),
    };
    if app.run_freshness(&run) == Freshness::Lost {
        let key = app.keymap.key_of(KeyContext::Global, Action::Review);
        // A request has the run go on in its next attempt, if one is left.
        let what = if run.attempt < MAX_ATTEMPTS { "resumes it" } else { "reviews again" };
        let next = key.map_or_else(String::new, |key| format!("; {key} {what}"));
        return (
            app.display.glyphs.run_status(RunStatus::Lost),
            format!("its worker is gone{next}{more}"),
            Role::from_freshness(Freshness::Lost),
        );
    }
    if let Some(live) = app.run_activity(&run) {
        return (
            app.display.glyphs.activity(live.state),
            format!("{}{more}", live.text),
            Role::from_activity(live.state),
        );
    }
    (app.display.glyphs.run_status(run.status), format!("{}{more}", describe_progress(app, &run)), Role::Working)
}

/// Describes the progress of a run whose worker reports no turns.
fn describe_progress(app: &App, run: &RunRow<'_>) -> String {
    let dot = app.display.glyphs.dot;
    match run.status {
        RunStatus::Pending if run.is_panel() => format!("{} members", app.sum_panel(run).describe_done()),
        RunStatus::Pending => format!("waiting for a worker {dot} {}", app.format_age_of(run.created_ms)),
        // Left-out files count as files, but their hunks are not counted.
        RunStatus::Reviewing if run.hunks_total > 0 => format!(
            "reviewing {}/{} {dot} active {} ago",
            run.hunks_covered,
            text::format_count(run.hunks_total.max(run.hunks_covered) as usize, "hunk"),
            app.format_age_of(run.updated_ms)
        ),
        status => format!("{status} {dot} active {} ago", app.format_age_of(run.updated_ms)),
    }
}
