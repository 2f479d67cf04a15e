//! What each action does.

use super::super::app::{
    App, Choice, Count, CountKind, Menu, MenuItem, Overlay, Pane, Portion, Prompt, PromptKind, Question, Tone,
};
use super::super::input::{Code, Key};
use super::super::keymap::Action;
use super::super::line::LineEdit;
use super::super::loaded::Loaded;
use super::super::message::{Command, Subject, Tab, TriageOrder};
use super::super::{filter, knowledge as patterns, markdown, stats};
use super::{build, close, data, fix, folds, knowledge, prompt, quit, run_id, triage};
use crate::domain::{FindingStatus, Scope};
use crate::store::{RunRow, Watcher};

/// A key was pressed.
pub fn press(app: &mut App, key: Key, commands: &mut Vec<Command>) {
    let context = app.context();
    let action = app.keymap.action(context, key);
    if !matches!(app.overlay, Overlay::None) {
        return in_front(app, key, action, commands);
    }
    if app.knowledge.is_some() {
        app.notice = None;
        return knowledge::press(app, action, commands);
    }
    let count = app.count.take().filter(|count| !count.has_lapsed(app.now));
    if let Code::Char(c @ '0'..='9') = key.code
        && !key.ctrl
        && !key.alt
        && (c != '0' || count.is_some())
    {
        let kind = if count.is_none() && action.is_some() { CountKind::Bound } else { CountKind::Count };
        let (value, origin, origin_list) =
            count.map_or((0, app.focus, app.list), |count| (count.value, count.origin, count.origin_list));
        let value = (value * 10 + c as usize - '0' as usize).min(1_000_000);
        app.count = Some(Count { value, origin, origin_list, kind, at: app.now });
        if let Some(action) = action {
            act(app, action, None, commands);
        }
        return;
    }
    let count = count.and_then(|count| {
        if count.kind == CountKind::Count && action.is_some_and(takes_count) {
            if app.focus != count.origin {
                focus(app, count.origin, commands);
                app.list = count.origin_list;
            }
            return Some(count.value);
        }
        None
    });
    app.notice = None;
    if let Some(action) = action {
        act(app, action, count, commands);
    }
}

fn takes_count(action: Action) -> bool {
    use Action as A;
    matches!(
        action,
        A::Down
            | A::Up
            | A::Top
            | A::Bottom
            | A::HalfPageDown
            | A::HalfPageUp
            | A::PageDown
            | A::PageUp
            | A::NextMatch
            | A::PreviousMatch
            | A::Mark
    )
}

/// Keys while something is in front of the panes.
fn in_front(app: &mut App, key: Key, action: Option<Action>, commands: &mut Vec<Command>) {
    match &mut app.overlay {
        Overlay::None => {}
        Overlay::Help { offset } => match action {
            Some(Action::Abort) => close(app),
            _ => match app.keymap.action(super::super::keymap::Context::Global, key) {
                Some(Action::Down) => *offset += 1,
                Some(Action::Up) => *offset = offset.saturating_sub(1),
                Some(Action::HalfPageDown | Action::PageDown) => *offset += 10,
                Some(Action::HalfPageUp | Action::PageUp) => *offset = offset.saturating_sub(10),
                _ => {}
            },
        },
        Overlay::Stats(_) => {
            let page = isize::try_from(stats::rows(app)).unwrap_or(isize::MAX);
            match action {
                Some(Action::Abort | Action::Back | Action::Left | Action::Stats) => close(app),
                Some(Action::Down) => stats::scroll(app, 1),
                Some(Action::Up) => stats::scroll(app, -1),
                Some(Action::HalfPageDown) => stats::scroll(app, (page / 2).max(1)),
                Some(Action::HalfPageUp) => stats::scroll(app, -(page / 2).max(1)),
                Some(Action::PageDown) => stats::scroll(app, page),
                Some(Action::PageUp) => stats::scroll(app, -page),
                Some(Action::Top) => stats::scroll(app, isize::MIN),
                Some(Action::Bottom) => stats::scroll(app, isize::MAX),
                Some(Action::Redraw) => commands.push(Command::Redraw),
                Some(Action::Suspend) => commands.push(Command::Suspend),
                Some(Action::Quit) => quit(commands),
                _ => {}
            }
        }
        Overlay::Menu(menu) => match action {
            Some(Action::Down) => menu.at = (menu.at + 1).min(menu.items.len().saturating_sub(1)),
            Some(Action::Up) => menu.at = menu.at.saturating_sub(1),
            Some(Action::Abort) => close(app),
            Some(Action::Accept) => {
                let choice = menu.items.get(menu.at).map(|item| item.choice.clone());
                close(app);
                choose(app, choice, commands);
            }
            _ => {
                if let Code::Char(c @ '1'..='9') = key.code
                    && let Some(item) = menu.items.get(c as usize - '1' as usize)
                {
                    let choice = item.choice.clone();
                    close(app);
                    choose(app, Some(choice), commands);
                }
            }
        },
        Overlay::Confirm { question, .. } => match action {
            Some(Action::Accept) => {
                let question = question.clone();
                close(app);
                match question {
                    Question::Cancel(run) => {
                        if let Some(run) = run_id(&run) {
                            app.say(Tone::Plain, "asking the run to end");
                            commands.push(Command::Cancel(run));
                        }
                    }
                    Question::Fix(order) => fix::order(app, order, commands),
                    Question::Knowledge(order) => commands.push(Command::Knowledge(order)),
                }
            }
            Some(Action::Abort) => close(app),
            _ => {}
        },
        Overlay::Prompt(_) => prompt::press(app, key, action, commands),
    }
}

fn choose(app: &mut App, choice: Option<Choice>, commands: &mut Vec<Command>) {
    match choice {
        None => {}
        Some(Choice::Review(scope)) => ask_review(app, scope, commands),
        Some(Choice::AskCommit) => open_prompt(app, PromptKind::Commit, LineEdit::offered("HEAD~1")),
        Some(Choice::AskRange) => open_prompt(app, PromptKind::Range, LineEdit::default()),
        Some(Choice::Copy { text, what }) => {
            app.say(Tone::Done, format!("copied {what}"));
            commands.push(Command::Copy(text));
        }
        Some(Choice::Fix(order)) => fix::order(app, order, commands),
        Some(Choice::AskFix { text, order }) => {
            app.overlay = Overlay::Confirm { question: Question::Fix(order), text };
        }
        Some(Choice::ShowFix) => {
            focus(app, Pane::Detail, commands);
            app.tab = Tab::Fix;
            app.scroll = 0;
        }
        Some(Choice::PlanFix(findings)) => commands.push(Command::PlanFix(findings)),
    }
}

pub fn ask_review(app: &mut App, scope: Option<Scope>, commands: &mut Vec<Command>) {
    let what = scope.as_ref().map_or_else(|| "what changed".to_owned(), ToString::to_string);
    app.say(Tone::Plain, format!("asking for a review of {what}{}", app.glyphs.ellipsis));
    commands.push(Command::Review(scope));
}

pub fn open_prompt(app: &mut App, kind: PromptKind, line: LineEdit) {
    app.overlay = Overlay::Prompt(Prompt { kind, line, choice: 0 });
}

/// Gives a pane the focus. Leaving the findings lets go of those that were kept although decided.
pub fn focus(app: &mut App, pane: Pane, commands: &mut Vec<Command>) {
    if matches!(pane, Pane::Runs | Pane::Files) && !app.known.kept.is_empty() {
        data::refilter(app, commands);
    }
    app.focus = pane;
    if pane != Pane::Detail {
        app.list = pane;
    }
    if pane != Pane::Findings {
        app.range_from = None;
    }
}

fn act(app: &mut App, action: Action, count: Option<usize>, commands: &mut Vec<Command>) {
    use Action as A;
    let times = count.unwrap_or(1);
    let page = app.height(app.focus);
    let by = |n: usize| isize::try_from(n).unwrap_or(isize::MAX);
    match action {
        A::Down | A::Up if walks(app) => folds::walk(app, times, action == A::Down),
        A::Down => step(app, by(times)),
        A::Up => step(app, -by(times)),
        A::HalfPageDown => step(app, by((page / 2).max(1) * times)),
        A::HalfPageUp => step(app, -by((page / 2).max(1) * times)),
        A::PageDown => step(app, by(page.saturating_sub(1).max(1) * times)),
        A::PageUp => step(app, -by(page.saturating_sub(1).max(1) * times)),
        A::Top | A::Bottom => {
            let end = if action == A::Top { 0 } else { usize::MAX };
            let row = count.map_or(end, |row| row.saturating_sub(1));
            go_to(app, row);
            if walks(app) {
                folds::choose(app, row, count.is_some());
            }
        }
        A::NextMatch => search(app, true, times),
        A::PreviousMatch => search(app, false, times),
        A::Runs => focus(app, Pane::Runs, commands),
        A::Findings => focus(app, Pane::Findings, commands),
        A::Files => focus(app, Pane::Files, commands),
        A::NextPane | A::PreviousPane => {
            const ORDER: [Pane; 4] = [Pane::Runs, Pane::Findings, Pane::Files, Pane::Detail];
            let at = ORDER.iter().position(|pane| *pane == app.focus).unwrap_or(0);
            let next = if action == A::NextPane { at + 1 } else { at + ORDER.len() - 1 };
            focus(app, ORDER[next % ORDER.len()], commands);
        }
        A::Left => match (app.focus, app.tab) {
            (Pane::Detail, Tab::Page) => focus(app, app.list, commands),
            (Pane::Detail, _) => turn(app, false),
            (Pane::Runs, _) => fold(app, Some(false)),
            _ => {}
        },
        A::Right => match app.focus {
            Pane::Detail => turn(app, true),
            Pane::Runs if can_unfold(app) => fold(app, Some(true)),
            _ => focus(app, Pane::Detail, commands),
        },
        A::NextTab => turn(app, true),
        A::PreviousTab => turn(app, false),
        A::Ledger => {
            app.tab = if app.tab == Tab::Ledger { Tab::Page } else { Tab::Ledger };
            app.scroll = 0;
            if app.layout().pane(Pane::Detail).is_none() {
                focus(app, Pane::Detail, commands);
            }
        }
        A::LeftOut => left_out(app, commands),
        A::Stats => stats::open(app, commands),
        A::Knowledge => patterns::open(app, commands),
        A::Open => open(app, commands),
        A::Back => back(app, commands),
        A::Unfold => fold(app, None),
        A::Zoom => app.zoomed = !app.zoomed,
        A::Mark => mark(app, times),
        A::MarkRange => {
            app.range_from = match app.range_from {
                Some(_) => {
                    keep_range(app);
                    None
                }
                None => Some(app.finding_cursor.at),
            };
        }
        A::MarkAll => mark_all(app),
        A::Addressed => triage::decide(app, FindingStatus::Addressed, commands),
        A::Reopen => triage::decide(app, FindingStatus::Open, commands),
        A::Dismiss => triage::ask_reason(app),
        A::Fix => fix::press(app, commands),
        A::Undo => triage::again(app, TriageOrder::Undo, commands),
        A::Redo => triage::again(app, TriageOrder::Redo, commands),
        A::Filter => {
            if app.focus != Pane::Findings {
                focus(app, Pane::Findings, commands);
            }
            let before = app.filter_text.clone();
            let text = if before.is_empty() { String::new() } else { format!("{before} ") };
            open_prompt(app, PromptKind::Filter { before }, LineEdit::new(&text));
        }
        A::Search => {
            let from = if app.focus == Pane::Detail { app.scroll } else { selected(app) };
            let before = std::mem::take(&mut app.search);
            open_prompt(app, PromptKind::Search { before, from }, LineEdit::default());
        }
        A::Review => app.overlay = Overlay::Menu(review_menu(app)),
        A::Cancel => cancel(app),
        A::Pause => pause(app, commands),
        A::Watch => {
            let ends = app.watch.watcher != Watcher::None;
            let said = if ends { "asking the watcher to end" } else { "beginning to watch" };
            app.say(Tone::Plain, format!("{said}{}", app.glyphs.ellipsis));
            commands.push(Command::Watch);
        }
        A::Snooze => {
            let offered = if app.watch.snoozed.is_some() { "off" } else { "30m" };
            open_prompt(app, PromptKind::Snooze, LineEdit::offered(offered));
        }
        A::Copy => match copy_menu(app) {
            Some(menu) => app.overlay = Overlay::Menu(menu),
            None => app.say(Tone::Plain, "nothing is selected"),
        },
        A::Edit => match place(app) {
            Some((path, line)) => commands.push(Command::Edit { path, line }),
            None => app.say(Tone::Plain, "no file is selected"),
        },
        A::Help => app.overlay = Overlay::Help { offset: 0 },
        A::Redraw => commands.push(Command::Redraw),
        A::Suspend => commands.push(Command::Suspend),
        A::Quit => quit(commands),
        A::Accept
        | A::Abort
        | A::Mute
        | A::Forget
        | A::Export
        | A::Reload
        | A::Complete
        | A::CursorLeft
        | A::CursorRight
        | A::CursorStart
        | A::CursorEnd
        | A::DeleteLeft
        | A::DeleteRight
        | A::DeleteWord
        | A::DeleteLine => {}
    }
}

/// From what was sent to what was left out, and back.
fn left_out(app: &mut App, commands: &mut Vec<Command>) {
    if app.surroundings().is_none() {
        return app.say(Tone::Plain, "nothing to switch: this page lists no context");
    }
    app.portion = match app.portion {
        Portion::Sent => Portion::LeftOut,
        Portion::LeftOut => Portion::Sent,
    };
    if app.layout().pane(Pane::Detail).is_none() {
        focus(app, Pane::Detail, commands);
    }
    app.scroll = 0;
    build(app);
}

fn selected(app: &App) -> usize {
    match app.list {
        Pane::Runs => app.run_cursor.at,
        Pane::Files => app.file_cursor.at,
        Pane::Findings | Pane::Detail => app.finding_cursor.at,
    }
}

fn step(app: &mut App, by: isize) {
    let at = match app.focus {
        Pane::Detail => app.scroll,
        _ => selected(app),
    };
    go_to(app, at.saturating_add_signed(by));
}

pub fn go_to(app: &mut App, at: usize) {
    let height = app.height(app.focus);
    match app.focus {
        Pane::Runs => app.run_cursor.go(at, app.runs.len(), height),
        Pane::Findings => app.finding_cursor.go(at, app.findings.len(), height),
        Pane::Files => app.file_cursor.go(at, app.files.len(), height),
        Pane::Detail => app.scroll = at.min(app.doc.lines.len().saturating_sub(height)),
    }
}

fn turn(app: &mut App, forward: bool) {
    let tabs = app.tabs();
    let at = tabs.iter().position(|tab| *tab == app.tab).unwrap_or(0);
    let next = if forward { at + 1 } else { at.saturating_sub(1) };
    if let Some(tab) = tabs.get(next).filter(|_| next != at) {
        app.tab = *tab;
        app.scroll = 0;
    }
}

fn can_unfold(app: &App) -> bool {
    app.runs.get(app.run_cursor.at).is_some_and(|entry| entry.folded > 0)
}

fn fold(app: &mut App, wanted: Option<bool>) {
    let Some(entry) = app.runs.get(app.run_cursor.at).copied() else { return };
    let at = if entry.nested {
        app.runs[..app.run_cursor.at].iter().rposition(|entry| !entry.nested).unwrap_or(0)
    } else {
        app.run_cursor.at
    };
    let Some(root) = app.runs.get(at).copied() else { return };
    let id = app.view.run(root.index as usize).id.to_owned();
    let open = wanted.unwrap_or(!root.unfolded);
    if open && root.folded > 0 {
        app.unfolded.insert(id.clone());
    } else if !open && root.unfolded {
        app.unfolded.remove(&id);
    } else {
        return;
    }
    let selected = if open { app.run().map(|run| run.id.to_owned()) } else { Some(id) };
    data::rebuild_runs(app, selected.as_deref());
}

fn open(app: &mut App, commands: &mut Vec<Command>) {
    match app.focus {
        Pane::Runs if can_unfold(app) => fold(app, Some(true)),
        Pane::Runs => {
            if let Some(run) = app.run().map(|run| run.id.to_owned()) {
                focus(app, Pane::Findings, commands);
                data::show_run(app, &run, commands);
            }
        }
        Pane::Files => {
            if let Some(path) = app.file().map(|file| file.path.clone()) {
                if path.contains(char::is_whitespace) || path.contains(',') {
                    // The filter's syntax cannot say it; the diff of the file is what is left to open.
                    focus(app, Pane::Detail, commands);
                    return;
                }
                focus(app, Pane::Findings, commands);
                data::show_path(app, &path, commands);
            }
        }
        Pane::Findings => {
            if app.finding().is_some() {
                focus(app, Pane::Detail, commands);
            }
        }
        Pane::Detail => {
            folds::toggle(app);
        }
    }
}

/// Whether going up and down goes from one part of the page to the next.
fn walks(app: &App) -> bool {
    app.focus == Pane::Detail && app.doc.folds.len() > 1
}

/// One step back, from the innermost thing outwards.
fn back(app: &mut App, commands: &mut Vec<Command>) {
    if app.range_from.take().is_some() {
        return;
    }
    if app.focus == Pane::Detail {
        focus(app, app.list, commands);
    } else if !app.marks.is_empty() {
        app.marks.clear();
    } else if !app.search.is_empty() {
        app.search.clear();
    } else if app.zoomed {
        app.zoomed = false;
    } else if app.focus == Pane::Findings && app.filter_text != filter::DEFAULT {
        app.filter_text = filter::DEFAULT.to_owned();
        data::refilter(app, commands);
    } else if let Some(key) = app.keymap.key_of(app.context(), Action::Quit) {
        app.say(Tone::Plain, format!("{key} quits; reviews go on without the cockpit"));
    }
}

fn mark(app: &mut App, times: usize) {
    keep_range(app);
    app.range_from = None;
    for _ in 0..times.min(app.findings.len()) {
        let Some(id) = app.finding().map(|finding| finding.id.to_owned()) else { return };
        if !app.marks.remove(&id) {
            app.marks.insert(id);
        }
        go_to(app, app.finding_cursor.at + 1);
    }
}

/// The range being marked becomes marks.
pub fn keep_range(app: &mut App) {
    let Some(from) = app.range_from else { return };
    let to = app.finding_cursor.at;
    let ids: Vec<String> = app
        .findings
        .get(from.min(to)..=from.max(to).min(app.findings.len().saturating_sub(1)))
        .unwrap_or_default()
        .iter()
        .map(|index| app.view.finding(*index as usize).id.to_owned())
        .collect();
    app.marks.extend(ids);
}

fn mark_all(app: &mut App) {
    app.range_from = None;
    let all = app.findings.iter().all(|index| app.marks.contains(app.view.finding(*index as usize).id));
    if all {
        app.marks.clear();
    } else {
        let ids: Vec<String> = app.findings.iter().map(|i| app.view.finding(*i as usize).id.to_owned()).collect();
        app.marks.extend(ids);
    }
}

/// Goes to the next row or line that holds the text searched for, around the end.
pub fn search(app: &mut App, forward: bool, times: usize) {
    if app.search.is_empty() {
        app.say(Tone::Plain, "nothing is searched for");
        return;
    }
    for _ in 0..times.min(1000) {
        let at = if app.focus == Pane::Detail { app.scroll } else { selected(app) };
        if !find(app, at, forward, true) {
            let text = format!("{:?} is not here", app.search);
            app.say(Tone::Plain, text);
            return;
        }
    }
}

/// Looks for the text from a row on; `beyond` leaves out the row itself.
pub fn find(app: &mut App, at: usize, forward: bool, beyond: bool) -> bool {
    let wanted = app.search.to_lowercase();
    let rows = match app.focus {
        Pane::Runs => app.runs.len(),
        Pane::Findings => app.findings.len(),
        Pane::Files => app.files.len(),
        Pane::Detail => app.doc.lines.len(),
    };
    let holds = |row: usize| match app.focus {
        Pane::Runs => app.runs.get(row).is_some_and(|entry| {
            let run = app.view.run(entry.index as usize);
            [run.scope, run.reviewer, run.branch, run.id, run.status.word()].iter().any(|t| filter::holds(t, &wanted))
        }),
        Pane::Findings => app.findings.get(row).is_some_and(|index| {
            let finding = app.view.finding(*index as usize);
            [finding.title, finding.path, finding.kind.word(), finding.id].iter().any(|t| filter::holds(t, &wanted))
        }),
        Pane::Files => app.files.get(row).is_some_and(|file| filter::holds(&file.path, &wanted)),
        Pane::Detail => app.doc.lines.get(row).is_some_and(|line| filter::holds(&line.plain(), &wanted)),
    };
    let skip = usize::from(beyond);
    let found = (skip..rows + skip)
        .map(|n| if forward { (at + n) % rows.max(1) } else { (at + rows * 2 - n) % rows.max(1) })
        .find(|row| holds(*row));
    if let Some(row) = found {
        go_to(app, row);
    }
    found.is_some()
}

fn review_menu(app: &App) -> Menu {
    let item = |label: &str, hint: &str, choice| MenuItem { label: label.to_owned(), hint: hint.to_owned(), choice };
    let review = |scope| Choice::Review(Some(scope));
    let branch = if app.place.branch.is_empty() { "HEAD" } else { app.place.branch.as_str() };
    Menu {
        title: "Review",
        items: vec![
            item("what changed", "uncommitted changes, else the last commit", Choice::Review(None)),
            item("uncommitted changes", "untracked files included", review(Scope::Worktree)),
            item("staged changes", "what the next commit would hold", review(Scope::Staged)),
            item("last commit", "HEAD against its parent", review(Scope::Commit("HEAD".to_owned()))),
            item("branch", &format!("{branch} since it left its base"), review(Scope::Branch(None))),
            item(&format!("a commit{}", app.glyphs.ellipsis), "any revision", Choice::AskCommit),
            item(&format!("a range{}", app.glyphs.ellipsis), "A..B or A...B", Choice::AskRange),
            item("everything", "the whole tree", review(Scope::All)),
        ],
        at: 0,
    }
}

fn cancel(app: &mut App) {
    let chosen = app
        .run()
        .filter(|run| app.list == Pane::Runs && !run.status.is_terminal())
        .or_else(|| app.foremost_run().filter(|run| !run.status.is_terminal()))
        .map(|run| (run.id.to_owned(), format!("Cancel the review of {}? What it found stays.", run.scope)));
    match chosen {
        Some((run, text)) => app.overlay = Overlay::Confirm { question: Question::Cancel(run), text },
        None => app.say(Tone::Plain, "no review is running"),
    }
}

/// The run that can be paused or let go on: the selected one, and where no run is selected the foremost.
pub fn run_to_pause(app: &App) -> Option<RunRow<'_>> {
    let run = if app.list == Pane::Runs { app.run() } else { app.foremost_run() };
    run.filter(|run| !run.status.is_terminal())
}

fn pause(app: &mut App, commands: &mut Vec<Command>) {
    let chosen = run_to_pause(app).map(|run| (run.id.to_owned(), run.paused));
    let Some((id, paused)) = chosen else {
        let said = if app.list == Pane::Runs { "this review is not running" } else { "no review is running" };
        return app.say(Tone::Plain, said);
    };
    let Some(run) = run_id(&id) else { return };
    app.say(Tone::Plain, if paused { "asking the run to go on" } else { "asking the run to pause" });
    commands.push(if paused { Command::Resume(run) } else { Command::Pause(run) });
}

/// File and line that the selection stands for.
fn place(app: &App) -> Option<(String, u32)> {
    match &app.subject {
        Subject::Finding(id) => {
            let finding = app.finding_by_id(id)?;
            let top = (app.focus == Pane::Detail && app.tab == Tab::Diff)
                .then(|| app.doc.lines.iter().skip(app.scroll + 1).find_map(|line| line.source))
                .flatten();
            Some((finding.path.to_owned(), top.unwrap_or(finding.line_start)))
        }
        Subject::File { path, .. } => Some((path.clone(), 1)),
        Subject::Run(_) | Subject::Nothing => None,
    }
}

fn copy_menu(app: &App) -> Option<Menu> {
    let copy = |text: String, what: &'static str| {
        let mut hint = text.lines().next().unwrap_or("").to_owned();
        if what == "the finding" {
            hint = "all of it, as Markdown".to_owned();
        }
        MenuItem { label: what.to_owned(), hint, choice: Choice::Copy { text, what } }
    };
    let mut items = Vec::new();
    match &app.subject {
        Subject::Finding(id) => {
            let finding = app.finding_by_id(id)?;
            items.push(copy(format!("{}:{}", finding.path, finding.line_start), "the place"));
            let page = app.detail.as_ref().and_then(|(subject, _, loaded)| match loaded.as_ref() {
                Loaded::Finding(page) if *subject == app.subject => Some(&page.finding),
                _ => None,
            });
            let text = match page {
                Some(whole) => markdown::finding(whole, app.status(&finding)),
                None => markdown::row(&finding, app.status(&finding)),
            };
            items.push(copy(text, "the finding"));
            items.push(copy(finding.id.to_owned(), "the id"));
        }
        Subject::Run(id) => {
            items.push(copy(id.clone(), "the id"));
            let run = app.run()?;
            if !run.snapshot_commit.is_empty() {
                items.push(copy(run.snapshot_commit.to_owned(), "the snapshot"));
            }
        }
        Subject::File { path, .. } => items.push(copy(path.clone(), "the path")),
        Subject::Nothing => return None,
    }
    Some(Menu { title: "Copy", items, at: 0 })
}
