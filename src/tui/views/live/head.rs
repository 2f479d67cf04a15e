//! Builds the rows above the diff: state, figures, scrub bar, steps of the turn, map of files, findings.

use std::cmp::Reverse;

use super::row::{PART_GAP, RowPart, fit_row, fits_whole, spans};
use super::steps::list_steps;
use super::trace::{FileReading, ReportTime, TracedFinding};
use super::{LivePage, LiveView};
use crate::domain::{Panel, Priority, ReviewReach, WindowUse, text};
use crate::masking::mask_shown_name;
use crate::policy::Freshness;
use crate::report::activity::{ActivityState, describe_activity, describe_turn};
use crate::report::figures::{format_brief, render_sparkline};
use crate::runner::BUILTIN_REVIEWER;
use crate::store::RunRow;
use crate::tui::app::App;
use crate::tui::doc::TextColumns;
use crate::tui::doc::{DocLine, DocSpan, fit_start, shorten, shorten_start};
use crate::tui::pages::{format_dollars, priority_label};
use crate::tui::theme::Role;
use crate::tui::turns::Turn;

/// Greatest width of the reviewer's name and of the scope in columns.
const MAX_NAME_COLUMNS: usize = 30;
/// Numbers of turns in the forms of the window chart.
const CHART_TURNS: [usize; 5] = [40, 20, 12, 8, 4];
/// Widths of the forms of the coverage bar in cells.
const BAR_CELLS: [usize; 4] = [24, 16, 10, 6];
/// Numbers of turns on each side of the shown one in the forms of the scrub bar.
const SCRUB_TURNS: [usize; 8] = [60, 30, 16, 8, 4, 2, 1, 0];
/// Cells that the map keeps beside its legend.
const MIN_MAP_CELLS: usize = 12;
/// Beginning of the row with the map of the files.
pub const MAP_TITLE: &str = "files ";
/// Most findings above the diff, and fewest rows of the screen for each of them.
const MAX_FOUND_ROWS: usize = 4;
const ROWS_PER_FOUND_ROW: u16 = 8;

/// Builds the rows above the diff, `most` at most, for `width` columns.
pub fn build_head(app: &App, view: &LiveView, width: usize, most: usize) -> Vec<DocLine> {
    let mut rows = Vec::new();
    if let Some(run) = view.row(app) {
        rows.push(build_state_row(app, view, &run, width));
    }
    if let Some(error) = &view.trouble {
        rows.push(DocLine::styled(Role::Warn, error));
    }
    rows.extend(view.row(app).and_then(|run| build_unreviewed_row(&run)));
    let Some(page) = &view.page else {
        rows.extend(view.trouble.is_none().then(|| DocLine::styled(Role::Faint, "loading")));
        return rows;
    };
    rows.push(build_figures_row(app, view, width));
    if let (Some(shown), Some(turn)) = (view.shown_index(), view.shown_turn()) {
        rows.push(build_scrub_row(app, view, shown, width));
        rows.push(build_steps_row(app, view, page, turn, width));
    } else if let Some(reason) = describe_no_turns(page) {
        rows.push(DocLine::styled(Role::Muted, reason));
    }
    rows.extend(build_map_row(app, view, width));
    if let Some(pulse) = app.pulse(&view.run).filter(|_| view.may_change()) {
        let words = shorten_start(&pulse.tail, width, app.display.glyphs.ellipsis);
        rows.push(DocLine::styled(Role::Faint, &words));
    }
    let most_found = usize::from(app.display.rows / ROWS_PER_FOUND_ROW).min(MAX_FOUND_ROWS);
    rows.extend(build_found_rows(app, view, page, most_found));
    rows.truncate(most);
    rows
}

/// Explains why a run of a model has no turns; the built-in reviewer never has.
fn describe_no_turns(page: &LivePage) -> Option<&'static str> {
    if page.record.reviewed_by.name == BUILTIN_REVIEWER {
        return None;
    }
    let is_gone = page.trace.is_empty() && page.record.usage.tokens.total() > 0;
    Some(match page.record.status.is_terminal() {
        true if is_gone => "The journal of this run is no longer kept: its turns cannot be shown.",
        true => "Nothing was asked in this run.",
        false => "Nothing has been asked yet.",
    })
}

/// Says why a run that has ended reviewed nothing or only a part; `None` for one that reviewed all, or
/// has not ended.
fn build_unreviewed_row(run: &RunRow<'_>) -> Option<DocLine> {
    let reason = run.describe_unreviewed()?;
    let said = match run.review_reach() {
        ReviewReach::Nothing => format!("not reviewed: {reason}"),
        ReviewReach::Part => format!("only a part was reviewed: {reason}"),
        ReviewReach::Unfinished | ReviewReach::Whole => return None,
    };
    Some(DocLine::styled(Role::Warn, &said))
}

/// Says in a long and a short form that a run has no finding: code that nobody read never looks clean. `is_over` says that
/// the end of the run is shown, and no earlier turn.
pub fn describe_no_findings(reach: ReviewReach, is_over: bool) -> (Role, [&'static str; 2]) {
    match reach {
        ReviewReach::Nothing => (Role::Warn, ["nothing was reviewed", "not reviewed"]),
        ReviewReach::Unfinished => (Role::Muted, ["found nothing yet", "nothing yet"]),
        _ if !is_over => (Role::Muted, ["found nothing yet", "nothing yet"]),
        ReviewReach::Part => (Role::Warn, ["found nothing in the reviewed part", "reviewed in part"]),
        ReviewReach::Whole => (Role::Muted, ["found nothing", "nothing"]),
    }
}

/// Builds `claude · HEAD~3..HEAD · turn 7 of 20 analyse      waiting for the first byte, 2 s   $0.14 of $1.00`.
fn build_state_row(app: &App, view: &LiveView, run: &RunRow<'_>, width: usize) -> DocLine {
    let ellipsis = app.display.glyphs.ellipsis;
    let name = |text: &str| {
        let clean = text::sanitize_line(&mask_shown_name(text)).into_owned();
        let (_, used) = fit_start(&clean, MAX_NAME_COLUMNS + 1);
        if used > MAX_NAME_COLUMNS { shorten(&clean, MAX_NAME_COLUMNS, ellipsis) } else { clean }
    };
    let mut parts = vec![
        RowPart::texts(2, Role::Title, &[&name(&Panel::describe_reviewer(run.reviewer)), ""]),
        RowPart::texts(1, Role::Normal, &[&name(&app.label_run(run)), ""]),
    ];
    let (long, short) = describe_present_turn(app, view, run);
    parts.push(RowPart::texts(4, Role::Strong, &[&long, &short, ""]));
    let (sign, said, role) = describe_present(app, run);
    let brief = said.split(", ").next().unwrap_or_default().to_owned();
    let shortest = app.display.glyphs.sign_or_word(sign, &brief);
    let activity = RowPart::texts(5, role, &[&format!("{sign} {said}"), &format!("{sign} {brief}"), shortest]);
    parts.push(RowPart { is_right: true, ..activity });
    let forms = describe_spending(app, view, run);
    let with_spending = |from: usize| {
        let forms: Vec<&str> = forms.iter().skip(from).map(String::as_str).collect();
        let spending = RowPart { is_right: true, ..RowPart::texts(3, Role::Muted, &forms) };
        parts.iter().cloned().chain([spending]).collect::<Vec<_>>()
    };
    // Nothing else on the screen says which run this is, so the tokens make room for the names.
    let without_tokens = forms.iter().position(|form| !form.contains(" tokens")).unwrap_or(0);
    let from = (0..without_tokens).find(|from| fits_whole(&with_spending(*from), width)).unwrap_or(without_tokens);
    fit_row(&with_spending(from), width)
}

/// Names the turn in progress with its phase, and without; of a run that has ended, the number of its turns.
fn describe_present_turn(app: &App, view: &LiveView, run: &RunRow<'_>) -> (String, String) {
    let turns = view.turns();
    if run.status.is_terminal() {
        let count = if turns.is_empty() { String::new() } else { text::format_count(turns.len(), "turn") };
        return (count.clone(), count);
    }
    let last = turns.last();
    let beat = app.pulse(run.id).map_or(0, |pulse| pulse.turn);
    let number = last.map_or(0, |turn| turn.number).max(beat);
    if number == 0 {
        return Default::default();
    }
    let turn = describe_turn(number, app.session.turn_limits.of_reviewer(run.reviewer));
    let phase = last.filter(|turn| turn.number == number).map_or("", |turn| turn.phase.word());
    (format!("{turn} {phase}").trim_end().to_owned(), turn)
}

/// Describes the present activity of a run: glyph, text, style.
fn describe_present(app: &App, run: &RunRow<'_>) -> (&'static str, String, Role) {
    let (sign, word, role) = app.run_state(run);
    if app.run_freshness(run) == Freshness::Lost {
        return (sign, "its worker is gone".to_owned(), Role::from_freshness(Freshness::Lost));
    }
    match app.pulse(run.id).filter(|_| run.status.is_working()) {
        Some(pulse) => {
            let live = describe_activity(pulse, run.is_paused(), app.clock());
            (app.display.glyphs.activity(live.state), live.text, Role::from_activity(live.state))
        }
        None if run.is_paused() => (sign, "paused".to_owned(), Role::from_activity(ActivityState::Paused)),
        None => (sign, word.to_owned(), role),
    }
}

/// Describes the cost of a run against its budget and the tokens, in forms from wide to narrow. What was spent stays on
/// the narrowest screen: a long wait is when a user looks for it.
fn describe_spending(app: &App, view: &LiveView, run: &RunRow<'_>) -> Vec<String> {
    if run.reviewer == BUILTIN_REVIEWER {
        return vec!["no cost".to_owned(), String::new()];
    }
    let record = view.page.as_ref().map(|page| &page.record);
    let stored = record.map_or((run.cost, run.tokens), |record| (record.usage.cost, record.usage.tokens.total()));
    let (cost, tokens) = app.pulse(run.id).map_or(stored, |pulse| (pulse.cost, pulse.tokens.total()));
    let of = |most: Option<String>| most.map_or_else(String::new, |most| format!(" of {most}"));
    let tokens_text = format!("{}{} tokens", format_brief(tokens), of(app.session.budget.tokens.map(format_brief)));
    let expected = record.map_or(0, |record| record.usage.prompt_estimate);
    let estimate = if expected > 0 { format!(", {} estimated", format_brief(expected)) } else { String::new() };
    let dollars = format_dollars(cost);
    let mut forms = Vec::new();
    if cost > 0.0 {
        let spent = format!("{dollars}{}", of(app.session.budget.cost.map(format_dollars)));
        let dot = app.display.glyphs.dot;
        forms.extend([format!("{spent} {dot} {tokens_text}{estimate}"), format!("{spent} {dot} {tokens_text}")]);
        forms.extend([spent, dollars]);
    } else if tokens > 0 {
        forms.extend([format!("{tokens_text}{estimate}"), tokens_text, format_brief(tokens)]);
    } else {
        forms.push(String::new());
    }
    forms
}

/// Builds `window ▁▂▃▅▆ 41k of 70k   covered ━━━━━━──── 61 of 98 hunks   found 1 P0  2 P1`.
fn build_figures_row(app: &App, view: &LiveView, width: usize) -> DocLine {
    let mut parts = Vec::new();
    if let Some(turn) = view.shown_turn().filter(|turn| turn.window.limit > 0) {
        parts.push(build_window_part(app, view, turn.window));
    }
    parts.push(build_coverage_part(app, view));
    parts.push(build_counts_part(app, view));
    fit_row(&parts, width)
}

fn build_window_part(app: &App, view: &LiveView, window: WindowUse) -> RowPart {
    let about = if window.approximate { "about " } else { "" };
    let said = format!("{about}{} of {}", format_brief(window.tokens), format_brief(window.limit));
    let role = if window.tokens > window.limit { Role::Bad } else { Role::Normal };
    let form = |turns: usize| {
        let mut form = spans([(Role::Muted, "window ")]);
        form.extend(build_chart(app, view, turns));
        form.extend(spans([(role, " "), (role, said.as_str())]));
        form
    };
    let mut forms: Vec<Vec<DocSpan>> = CHART_TURNS.into_iter().map(form).collect();
    forms.extend([spans([(role, said.as_str())]), Vec::new()]);
    RowPart { forms, rank: 1, is_right: false }
}

/// Builds a bar for each of `count` turns around the shown one: the tokens of its request against the limit of its window.
fn build_chart(app: &App, view: &LiveView, count: usize) -> Vec<DocSpan> {
    let (turns, shown) = (view.turns(), view.shown_index().unwrap_or(0));
    let start = shown.saturating_sub(count / 2).min(turns.len().saturating_sub(count));
    let bars = turns.iter().enumerate().skip(start).take(count).map(|(index, turn)| {
        let WindowUse { tokens, limit, .. } = turn.window;
        let bar = render_sparkline(&[Some(tokens as f64)], Some(limit as f64), 1, &app.display.glyphs.eighths);
        let role = match (tokens > limit, index == shown) {
            (true, _) => Role::Bad,
            (false, true) => Role::Strong,
            (false, false) => Role::Muted,
        };
        DocSpan { role, text: bar }
    });
    bars.collect()
}

fn build_coverage_part(app: &App, view: &LiveView) -> RowPart {
    let hunks = view.moment.hunks;
    let glyphs = &app.display.glyphs;
    let counted = format!("{} of {}", hunks.covered(), text::format_count(hunks.total as usize, "hunk"));
    let cells = |part: u32, room: usize| {
        let share = (part as usize * room + hunks.total as usize / 2) / (hunks.total as usize).max(1);
        if part > 0 { share.max(1) } else { 0 }
    };
    let bar = |room: usize| {
        let now = cells(hunks.now, room).min(room);
        let before = cells(hunks.before + hunks.carried, room).min(room - now);
        let rest = room - now - before;
        spans([
            (Role::Muted, "covered "),
            (Role::Filled, &glyphs.filled.repeat(before)),
            (Role::Accent, &glyphs.filled.repeat(now)),
            (Role::Empty, &glyphs.empty.repeat(rest)),
            (Role::Normal, &format!(" {counted}")),
        ])
    };
    let mut forms: Vec<Vec<DocSpan>> = BAR_CELLS.into_iter().map(bar).collect();
    forms.push(spans([(Role::Normal, counted.as_str())]));
    forms.push(spans([(Role::Normal, format!("{}/{}", hunks.covered(), hunks.total).as_str())]));
    RowPart { forms, rank: 1, is_right: false }
}

fn build_counts_part(app: &App, view: &LiveView) -> RowPart {
    let total: u32 = view.moment.counts.iter().sum();
    if total == 0 {
        let reach = view.row(app).map_or(ReviewReach::Unfinished, |run| run.review_reach());
        let is_over = view.shown_index().is_none_or(|shown| shown + 1 == view.turns().len());
        let (role, [long, short]) = describe_no_findings(reach, is_over);
        return RowPart::texts(3, role, &[long, short]);
    }
    let mut counts = Vec::new();
    for priority in Priority::ALL {
        let count = view.moment.counts[priority.index()];
        if count > 0 {
            let gap = if counts.is_empty() { "" } else { "  " };
            let said = format!("{count} {}", priority_label(priority));
            counts.extend(spans([(Role::Faint, gap), (Role::from_priority(priority), said.as_str())]));
        }
    }
    let mut named = spans([(Role::Muted, "found ")]);
    named.extend(counts.iter().cloned());
    RowPart {
        forms: vec![named, counts, spans([(Role::Normal, format!("{total}").as_str())])],
        rank: 3,
        is_right: false,
    }
}

/// Builds `◂ 1 2 3 4 5 6 [7] ▸` and, at the right edge, whether the view follows the run.
fn build_scrub_row(app: &App, view: &LiveView, shown: usize, width: usize) -> DocLine {
    let forms = SCRUB_TURNS.map(|around| build_scrub_bar(app, view, shown, around)).to_vec();
    let is_running = view.row(app).is_some_and(|run| !run.status.is_terminal());
    let (said, role) = match (view.chosen.is_none(), is_running) {
        (true, true) => ("following", Role::Good),
        (false, true) => ("not following", Role::Warn),
        (_, false) => ("", Role::Muted),
    };
    let follows = RowPart { is_right: true, ..RowPart::texts(1, role, &[said, ""]) };
    fit_row(&[RowPart { forms, rank: 2, is_right: false }, follows], width)
}

fn build_scrub_bar(app: &App, view: &LiveView, shown: usize, around: usize) -> Vec<DocSpan> {
    let (glyphs, turns) = (&app.display.glyphs, view.turns());
    let first = shown.saturating_sub(around);
    let last = (shown + around).min(turns.len().saturating_sub(1));
    let edge = |is_cut: bool| if is_cut { glyphs.ellipsis } else { "" };
    let mut bar = spans([(Role::Muted, glyphs.scrub.0), (Role::Faint, " "), (Role::Faint, edge(first > 0))]);
    for (index, turn) in turns.iter().enumerate().take(last + 1).skip(first) {
        let role = turn.top_priority().map_or(Role::Muted, Role::from_priority);
        let is_open = turn.answer().is_none() && view.may_change();
        let number = format!("{}{}", turn.number, if is_open { glyphs.ellipsis } else { "" });
        match index == shown {
            true => bar.extend(spans([(Role::Title, format!("[{number}]").as_str()), (Role::Faint, " ")])),
            false => bar.extend(spans([(role, number.as_str()), (Role::Faint, " ")])),
        }
    }
    bar.extend(spans([(Role::Faint, edge(last + 1 < turns.len())), (Role::Muted, glyphs.scrub.1)]));
    bar
}

/// Builds `turn 6 analyse   read src/client.rs:1-120 · searched "retry" · found P1 src/client.rs:88`. Where there is no
/// room for all steps, those at the end stay while the view follows the run.
fn build_steps_row(app: &App, view: &LiveView, page: &LivePage, turn: &Turn, width: usize) -> DocLine {
    let glyphs = &app.display.glyphs;
    let limit = app.session.turn_limits.of_reviewer(&page.record.reviewed_by.name);
    let mut turn_text = describe_turn(turn.number, limit);
    if turn.number <= limit {
        turn_text = format!("turn {}", turn.number);
    }
    let mut line = DocLine::styled(Role::Muted, &format!("{turn_text} {}   ", turn.phase.word()));
    let steps = list_steps(&page.trace, turn);
    if steps.is_empty() {
        let said = match (turn.answer().is_some(), view.may_change()) {
            (false, true) => "no answer yet",
            (false, false) => "no answer",
            (true, _) => "read nothing new and reported nothing",
        };
        return line.with_span(Role::Faint, said);
    }
    let dot = format!(" {} ", glyphs.dot);
    let room = width.saturating_sub(line.plain_text().width());
    let mut skipped = 0;
    if view.chosen.is_none() {
        let width_from = |from: usize| {
            let cut = if from > 0 { glyphs.ellipsis.width() + dot.width() } else { 0 };
            let texts: usize = steps[from..].iter().map(|step| step.text.width() + dot.width()).sum();
            (cut + texts).saturating_sub(dot.width())
        };
        skipped = (0..steps.len() - 1).find(|from| width_from(*from) <= room).unwrap_or(steps.len() - 1);
    }
    if skipped > 0 {
        line = line.with_span(Role::Faint, glyphs.ellipsis).with_span(Role::Faint, &dot);
    }
    for (index, step) in steps.iter().enumerate().skip(skipped) {
        line = line.with_span(Role::Faint, if index > skipped { &dot } else { "" }).with_span(step.role, &step.text);
    }
    line
}

/// Returns the numbers of files for which a cell of the map stands in its forms, wide to narrow.
pub fn map_steps(files: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(1_usize), move |step| (*step * 8 < files).then(|| step * 2))
}

/// Builds a cell for each file of the change, and the legend. On a narrow screen, a cell stands for several files.
fn build_map_row(app: &App, view: &LiveView, width: usize) -> Option<DocLine> {
    let glyphs = &app.display.glyphs;
    let files: Vec<FileReading> =
        view.moment.files.values().filter(|file| file.is_changed).map(|file| file.reading()).collect();
    if files.is_empty() {
        return None;
    }
    if glyphs.uses_words() {
        return Some(count_readings(&files));
    }
    let forms = map_steps(files.len()).map(|step| {
        let mut form = spans([(Role::Muted, MAP_TITLE)]);
        for chunk in files.chunks(step) {
            let reading = summarize_readings(chunk);
            let cell =
                DocSpan { role: Role::from_file_reading(reading), text: glyphs.file_reading(reading).to_owned() };
            match form.last_mut() {
                Some(last) if last.role == cell.role => last.text.push_str(&cell.text),
                _ => form.push(cell),
            }
        }
        form
    });
    let map = RowPart { forms: forms.collect(), rank: 2, is_right: false };
    let mut legend = Vec::new();
    for (reading, name) in FileReading::ALL.into_iter().filter(|(reading, _)| files.contains(reading)) {
        let gap = if legend.is_empty() { "" } else { "  " };
        let sign = format!("{gap}{} ", glyphs.file_reading(reading));
        legend.extend(spans([(Role::from_file_reading(reading), sign.as_str()), (Role::Faint, name)]));
    }
    // The cells stand for more files before the legend goes: without it their signs say nothing.
    let legend_width: usize = legend.iter().map(|span| span.text.width()).sum();
    let least = MAP_TITLE.width() + files.len().min(MIN_MAP_CELLS) + PART_GAP + legend_width;
    let legend = if least <= width { legend } else { Vec::new() };
    let legend = RowPart { forms: vec![legend], rank: 3, is_right: true };
    Some(fit_row(&[map, legend], width))
}

/// Counts the files of each reading, instead of their cells: `files 1 this turn, 3 read`.
fn count_readings(files: &[FileReading]) -> DocLine {
    let count = |reading: FileReading| files.iter().filter(|known| **known == reading).count();
    let counts = FileReading::ALL.map(|(reading, name)| (count(reading), name));
    let counts: Vec<String> =
        counts.iter().filter(|(count, _)| *count > 0).map(|(count, name)| format!("{count} {name}")).collect();
    DocLine::styled(Role::Muted, &format!("{MAP_TITLE}{}", counts.join(", ")))
}

/// Returns the reading that a cell for several files shows: what is read now, else what is left to read.
fn summarize_readings(files: &[FileReading]) -> FileReading {
    use FileReading as R;
    let order = [R::Now, R::Unread, R::Before, R::Carried, R::LeftOut];
    order.into_iter().find(|reading| files.contains(reading)).unwrap_or(R::Unread)
}

/// Builds a row for each of the newest findings; always as many rows as the run has findings, so that the diff stays in
/// its place while the user goes through the turns.
fn build_found_rows(app: &App, view: &LiveView, page: &LivePage, most: usize) -> Vec<DocLine> {
    let time = |finding: &TracedFinding| view.moment.reports.get(&finding.id).copied().unwrap_or(ReportTime::Hidden);
    let mut shown: Vec<&TracedFinding> =
        page.trace.findings().iter().filter(|finding| time(finding) != ReportTime::Hidden).collect();
    shown.sort_by_key(|finding| (time(finding) != ReportTime::Now, Reverse(finding.turn), finding.priority));
    let mut rows: Vec<DocLine> = shown
        .into_iter()
        .take(most)
        .map(|finding| {
            let is_now = time(finding) == ReportTime::Now;
            let sign = if is_now { app.display.glyphs.mark } else { " " };
            let role = Role::from_priority(finding.priority);
            DocLine::styled(role, &format!("{sign} {}  ", priority_label(finding.priority)))
                .with_span(Role::Accent, &format!("{}:{}", finding.path, finding.line))
                .with_span(if is_now { Role::Strong } else { Role::Muted }, &format!("  {}", finding.title))
        })
        .collect();
    rows.resize(page.trace.findings().len().min(most), DocLine::default());
    rows
}
