//! Header, pane titles, message line and footer.

use std::borrow::Cow;

use ratatui::layout::Rect;
use ratatui::style::Modifier;
use unicode_width::UnicodeWidthStr;

use super::super::app::{App, CountKind, FirstReview, Overlay, Pane, Portion, Prompt, PromptKind, Tone};
use super::super::doc;
use super::super::keymap::{Action, Context};
use super::super::layout::{LEAST, Layout, PaneArea};
use super::super::message::Subject;
use super::super::theme::Role;
use super::super::update;
use super::paint::Painter;
use crate::domain::{RunStatus, WatchMode, text};
use crate::runner::Runner;
use crate::store::{RunRow, Watcher, Watching};

/// The screen is too small for anything useful: say so, kindly.
pub fn too_small(painter: &mut Painter<'_>) {
    let area = painter.buffer.area;
    let text = format!("{}x{} is too small", area.width, area.height);
    let need = format!("revdeck needs {}x{}", LEAST.0, LEAST.1);
    for (row, line) in [(0, text), (1, need)] {
        let x = area.width.saturating_sub(line.len() as u16) / 2;
        painter.put(x, area.height.saturating_sub(2) / 2 + row, area.width, &line, Role::Muted);
    }
}

/// Repository, branch, scope; at the right edge what the engine does.
pub fn header(painter: &mut Painter<'_>, layout: &Layout) {
    let app = painter.app;
    let area = layout.header;
    let (y, right) = (area.y, area.right().saturating_sub(1));
    let (glyph, state, role) = engine(app);
    let state_width = (state.width() as u16 + 2).min(area.width / 2 + 4);
    let state_x = right.saturating_sub(state_width);
    painter.put(state_x, y, 1, glyph, role);
    painter.put(state_x + 2, y, state_width.saturating_sub(2), &state, role);
    let end = state_x.saturating_sub(2);
    let mut x = 1;
    let mut put = |painter: &mut Painter<'_>, text: &str, role: Role, gap: u16| {
        if x + 2 < end {
            x += painter.put(x, y, end - x, text, role) + gap;
        }
    };
    put(painter, &app.place.repository, Role::Title, 2);
    if !app.place.branch.is_empty() {
        put(painter, &app.place.branch, Role::Normal, 3);
    }
    if let Some(watch) = watching(app) {
        put(painter, &watch, Role::Faint, 3);
    }
    if let Some(run) = app.foremost_run() {
        let what = if app.is_live() { "reviewing" } else { "last review" };
        put(painter, what, Role::Faint, 1);
        put(painter, &scope_words(&run, app), Role::Muted, 2);
    }
}

/// Whether somebody watches, as far as that is worth a word.
fn watching(app: &App) -> Option<Cow<'static, str>> {
    let snoozed = app.watch.snoozed.map(|until| until.as_millisecond()).filter(|until| *until > app.now);
    match (&app.watch.watcher, snoozed) {
        (_, Some(until)) => Some(format!("snoozed until {}", app.moment(until)).into()),
        (Watcher::None, None) => None,
        (Watcher::Known(Watching { mode: WatchMode::Polling { .. }, .. }), None) => Some("watching (polling)".into()),
        (Watcher::Known(_) | Watcher::Unknown, None) => Some("watching".into()),
    }
}

/// The exact scope of a run: what, how much, at which snapshot.
fn scope_words(run: &RunRow<'_>, app: &App) -> String {
    let mut words = vec![run.scope.to_owned()];
    if run.files_total > 0 {
        words.push(text::count(run.files_total as usize, "file"));
    }
    if let Some(snapshot) = run.snapshot_commit.get(..8) {
        words.push(snapshot.to_owned());
    }
    words.join(&format!(" {} ", app.glyphs.dot))
}

/// What the engine does: a sign, in words, and how it is meant.
fn engine(app: &App) -> (&'static str, String, Role) {
    let Some(run) = app.foremost_run().filter(|_| app.is_live()) else {
        let (state, role) = match app.first_review {
            FirstReview::Asked if app.view.run_count() == 0 => ("starting", Role::Working),
            _ if !app.view.complete && app.view.run_count() > 0 => ("loading", Role::Muted),
            _ => ("idle", Role::Muted),
        };
        return (app.glyphs.none, state.to_owned(), role);
    };
    let dot = app.glyphs.dot;
    let waiting = app.waiting_runs();
    let more = match (run.status, waiting) {
        (RunStatus::Pending, 2..) => format!(" {dot} {waiting} waiting"),
        (RunStatus::Pending, _) | (_, 0) => String::new(),
        (_, waiting) => format!(" {dot} {waiting} waiting"),
    };
    if let Some(live) = app.live(&run) {
        return (app.glyphs.live(live.mode), format!("{}{more}", live.text), Role::of_live(live.mode));
    }
    let state = match run.status {
        RunStatus::Pending => format!("waiting for a worker {dot} {}", app.since(run.created_ms)),
        // Files that are left out are in the number of files, and not among the hunks.
        RunStatus::Reviewing if run.hunks_total > 0 => format!(
            "reviewing {}/{} {dot} active {} ago",
            run.hunks_covered,
            text::count(run.hunks_total as usize, "hunk"),
            app.since(run.updated_ms)
        ),
        status => format!("{status} {dot} active {} ago", app.since(run.updated_ms)),
    };
    (app.glyphs.run(run.status), format!("{state}{more}"), Role::Working)
}

pub fn divider(painter: &mut Painter<'_>, area: Rect) {
    let glyph = painter.app.glyphs.vertical;
    for y in area.top()..area.bottom() {
        painter.put(area.x, y, 1, glyph, Role::Rule);
    }
}

/// `2 Findings  12 of 340  status:undecided ──────── p0 p1 p2 p3`: the rule takes what is left of the line.
pub fn title(painter: &mut Painter<'_>, area: PaneArea, pane: Pane, name: &str, facts: &[(String, Role)], tail: &str) {
    let app = painter.app;
    let focused = app.focus == pane;
    let Rect { x, y, width, .. } = area.title;
    let key = match pane {
        Pane::Runs => Some(Action::Runs),
        Pane::Findings => Some(Action::Findings),
        Pane::Files => Some(Action::Files),
        Pane::Detail => None,
    }
    .and_then(|action| app.keymap.key_of(Context::Global, action));
    let mut used = 0;
    if let Some(key) = key {
        used += painter.put(x, y, width, &key.to_string(), if focused { Role::Title } else { Role::Faint }) + 1;
    }
    used += painter.put(x + used, y, width.saturating_sub(used), name, if focused { Role::Title } else { Role::Muted });
    for (fact, role) in facts {
        if !fact.is_empty() && used + 4 < width {
            used += 2;
            used += painter.put(x + used, y, width - used, fact, *role);
        }
    }
    let tail_width = tail.width() as u16;
    let mut end = width;
    if !tail.is_empty() && used + tail_width + 4 < width {
        painter.put_right(x, y, width, tail, Role::Faint);
        end -= tail_width + 1;
    }
    if used + 1 < end {
        painter.rule(x + used + 1, y, end - used - 1, if focused { Role::Focus } else { Role::Rule });
    }
}

/// The last result, or what is wrong: all of it, over as many lines as that needs and the screen has.
pub fn notice(painter: &mut Painter<'_>, layout: &Layout) {
    let app = painter.app;
    let Rect { x, y, width, height } = layout.notice;
    let Some((tone, text)) = app.message() else {
        if app.decisions.pending > 0 {
            painter.put(x + 1, y, width.saturating_sub(2), &format!("storing{}", app.glyphs.ellipsis), Role::Muted);
        }
        return;
    };
    let (sign, role) = match tone {
        Tone::Done => (app.glyphs.done, Role::Good),
        Tone::Plain => (app.glyphs.dot, Role::Muted),
        Tone::Trouble => (app.glyphs.trouble, Role::Bad),
    };
    painter.put(x + 1, y, 1, sign, role);
    let role = if tone == Tone::Trouble { Role::Warn } else { Role::Normal };
    let lines = doc::wrap(text, layout.notice_width());
    let last = usize::from(height.saturating_sub(1));
    for (row, line) in lines.iter().take(last).enumerate() {
        painter.put(x + 3, y + row as u16, width.saturating_sub(4), line, role);
    }
    let rest = lines.get(last..).unwrap_or_default().join(" ");
    painter.put(x + 3, y + last as u16, width.saturating_sub(4), &rest, role);
}

/// The keys that matter here, five to seven, from the map.
pub fn footer(painter: &mut Painter<'_>, area: Rect) {
    let app = painter.app;
    let context = app.context();
    let Rect { y, width, .. } = area;
    let mut end = width.saturating_sub(1);
    if let Some(count) = app.count.filter(|count| count.kind == CountKind::Count) {
        let text = count.value.to_string();
        end -= painter.put_right(0, y, end, &text, Role::Accent) + 2;
    }
    let marked = app.marks.len();
    if marked > 0 {
        end -= painter.put_right(0, y, end, &format!("{marked} marked"), Role::MarkSign) + 2;
    }
    let mut x = 1;
    for (action, word) in footer_actions(app, context) {
        let Some(key) = app.keymap.key_of(context, action) else { continue };
        let key = key.to_string();
        let need = key.width() as u16 + 1 + word.len() as u16;
        if x + need > end {
            break;
        }
        x += painter.put(x, y, end - x, &key, Role::Key) + 1;
        x += painter.put(x, y, end - x, word, Role::Muted) + 3;
    }
}

/// What the footer offers, most wanted first.
fn footer_actions(app: &App, context: Context) -> Vec<(Action, &'static str)> {
    use Action as A;
    let actions = match context {
        Context::Runs | Context::Global => {
            let third = if app.is_live() { A::Cancel } else { A::Unfold };
            let first = [A::Open, A::Review, third].map(|action| (action, action.short()));
            let last = [A::Ledger, A::Filter, A::Help, A::Quit].map(|action| (action, action.short()));
            return first.into_iter().chain(pausing(app)).chain(last).collect();
        }
        Context::Findings => vec![A::Addressed, A::Dismiss, A::Reopen, A::Mark, A::Filter, A::Help, A::Quit],
        Context::Files => vec![A::Open, A::Right, A::Edit, A::Copy, A::Search, A::Help, A::Quit],
        Context::Detail if !app.doc.folds.is_empty() => {
            let chosen = update::chosen_fold(app).and_then(|at| app.doc.folds.get(at));
            let open = chosen.is_some_and(|fold| app.open_folds.contains(&fold.key));
            let first = (A::Open, if open { "fold" } else { "unfold" });
            let last = [A::NextTab, A::Zoom, A::Search, A::Back, A::Help].map(|action| (action, action.short()));
            return std::iter::once(first).chain(pausing(app)).chain(last).collect();
        }
        Context::Detail if app.surroundings().is_some() => {
            let other = match app.portion {
                Portion::Sent => "left out",
                Portion::LeftOut => "sent",
            };
            let last = [A::NextTab, A::Zoom, A::Search, A::Back, A::Help].map(|action| (action, action.short()));
            return std::iter::once((A::LeftOut, other)).chain(pausing(app)).chain(last).collect();
        }
        // Nothing can be decided about a run or a file.
        Context::Detail if matches!(app.subject, Subject::Run(_)) => {
            vec![A::NextTab, A::Review, A::Zoom, A::Search, A::Back, A::Help]
        }
        Context::Detail if matches!(app.subject, Subject::File { .. }) => {
            vec![A::Edit, A::NextTab, A::Zoom, A::Search, A::Back, A::Help]
        }
        Context::Detail => vec![A::Addressed, A::Dismiss, A::Edit, A::NextTab, A::Zoom, A::Back, A::Help],
        Context::Menu => vec![A::Accept, A::Down, A::Up, A::Abort],
        Context::Confirm => vec![A::Accept, A::Abort],
        Context::Prompt => match &app.overlay {
            Overlay::Prompt(Prompt { kind: PromptKind::Filter { .. }, .. }) => {
                vec![A::Accept, A::Complete, A::DeleteWord, A::DeleteLine, A::Abort]
            }
            Overlay::Prompt(Prompt { kind: PromptKind::Reason { .. }, .. }) => {
                return [
                    (A::Accept, "dismiss"),
                    (A::Down, "choose a reason"),
                    (A::DeleteLine, "delete line"),
                    (A::Abort, "back"),
                ]
                .to_vec();
            }
            _ => vec![A::Accept, A::DeleteWord, A::DeleteLine, A::Abort],
        },
        Context::Knowledge => return knowledge_actions(app),
        Context::Stats => vec![A::Abort, A::Down, A::Up, A::Bottom],
        Context::Help => vec![A::Abort],
    };
    actions.into_iter().map(|action| (action, action.short())).collect()
}

/// What can be done with the selected pattern, or without one.
fn knowledge_actions(app: &App) -> Vec<(Action, &'static str)> {
    use Action as A;
    let Some(view) = &app.knowledge else { return Vec::new() };
    if view.is_empty() {
        return vec![(A::Reload, "reload"), (A::Back, "back"), (A::Help, "help")];
    }
    let of_it = match view.chosen() {
        Some((_, known)) => vec![(A::Mute, if known.pattern.muted { "unmute" } else { "mute" }), (A::Forget, "forget")],
        None => vec![(A::Unfold, if view.is_folded() { "unfold" } else { "fold" })],
    };
    let of_all =
        [(A::Filter, "filter"), (A::Export, "export"), (A::Reload, "reload"), (A::Back, "back"), (A::Help, "help")];
    of_it.into_iter().chain(of_all).collect()
}

/// Whether the run in flight can be paused, or go on.
fn pausing(app: &App) -> Option<(Action, &'static str)> {
    let run = update::run_to_pause(app).filter(|run| run.reviewer != Runner::BUILTIN)?;
    Some((Action::Pause, if run.paused { "go on" } else { "pause" }))
}

/// The style of a selection bar in a pane.
pub fn bar(painter: &Painter<'_>, pane: Pane) -> ratatui::style::Style {
    selection(painter, painter.app.focus == pane)
}

/// As [`bar`], of what has the keys or not.
pub fn selection(painter: &Painter<'_>, focused: bool) -> ratatui::style::Style {
    let style = painter.style(if focused { Role::Selected } else { Role::SelectedIdle });
    // The foreground stays what it means, but in reverse it would become a patchwork.
    if style.add_modifier.contains(Modifier::REVERSED) {
        style.remove_modifier(Modifier::DIM)
    } else {
        ratatui::style::Style { fg: None, ..style }
    }
}
