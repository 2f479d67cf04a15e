//! Builds the turns page of a run: cost, use of the window, and the request and response of each turn.
//!
//! A folded turn has three lines: figures, request, response. Unfolded it shows everything known about the turn.

use super::super::app::{App, RunBudget};
use super::super::doc::{Doc, DocLine, FoldKey, FollowMode, shorten, wrap_words};
use super::super::page_data::TurnsPage;
use super::super::theme::Role;
use super::super::turns::{FindingReportKind, TruncatedText, Turn, TurnAnswer, TurnFinding};
use super::window::{self, format_compact};
use super::{format_brief, format_dollars, format_reported_location, format_thousands, members, priority_label};
use crate::domain::{RunStatus, StopReason, ToolOutcome, TurnPhase, Usage, WindowUse, text};
use crate::report::activity::{self, ActivityState};
use crate::report::text::describe_early_end;
use crate::tui::doc::TextColumns;

/// Fewest columns for figures in one line under column headings.
const MIN_WIDE_COLUMNS: usize = 66;
/// On a screen with fewer rows, the turns start further up.
const MIN_TALL_ROWS: u16 = 30;
/// Columns of names above the turns.
const NAMES: usize = 8;
/// Indentation of the text of a turn.
const INDENT: usize = 4;
/// Columns of names within a turn.
const WORDS: usize = 10;
/// Most lines of an unfolded text.
const MAX_TEXT_LINES: usize = 120;

pub fn render_turns(app: &App, page: &TurnsPage, width: usize, doc: &mut Doc) {
    let conversation = &page.conversation;
    if let Some(panel) = &page.run.links.panel {
        let why = "Each member has turns of its own: Enter on a member leads there.";
        doc.push_paragraph(Role::Muted, why, width);
        members::render_members(app, &page.run, panel, width, doc);
        if conversation.turns.is_empty() && conversation.failure.is_none() {
            return;
        }
        // The turns of the panel itself are second opinions.
        doc.push_blank();
    }
    if conversation.turns.is_empty() {
        render_empty(page, width, doc);
        return;
    }
    let turns: Vec<&Turn> = conversation.turns.iter().map(AsRef::as_ref).collect();
    render_spent(app, conversation.cost(), &conversation.usage(), width, doc);
    let limit = turns.last().map_or(0, |turn| turn.window.limit);
    doc.push_heading("Window", &if limit > 0 { format!("limit {}", format_thousands(limit)) } else { String::new() });
    // A finished run gets no further turns.
    let ended = page.run.status.is_terminal();
    let expected = if ended { 0 } else { app.session.turn_limits.of_reviewer(&page.run.reviewed_by.name) };
    let short = app.display.rows < MIN_TALL_ROWS;
    window::render_chart(&app.display.glyphs, &turns, expected, (width, if short { 3 } else { 5 }), doc);
    if !short {
        window::render_legend(&app.display.glyphs, width, doc);
    }
    render_heading(width, turns.len(), doc);
    for turn in &turns {
        render_figures(app, turn, width, doc);
        match app.detail.open_folds.contains(&FoldKey::Turn(turn.number)) {
            true => render_unfolded(app, turn, ended, width, doc),
            false => render_folded(app, turn, ended, width, doc),
        }
        render_pauses(app, turn, doc);
    }
    if let Some((class, summary)) = &conversation.failure {
        doc.push_blank();
        doc.push_field("failed", NAMES, Role::Bad, &format!("{}: {summary}", class.word().replace('_', " ")), width);
    }
    if let Some(stop) = describe_early_end(&page.run) {
        doc.push_blank();
        doc.push_field("stopped", NAMES, Role::Warn, &stop, width);
    }
    if short {
        doc.push_blank();
        window::render_legend(&app.display.glyphs, width, doc);
    }
    if !ended {
        doc.follow = FollowMode::StickToEnd;
    }
}

/// Explains why there are no turns.
fn render_empty(page: &TurnsPage, width: usize, doc: &mut Doc) {
    let why = match page.run.status {
        RunStatus::Pending => "Waiting for a worker.",
        status if !status.is_terminal() => "Nothing has been asked yet.",
        // The journal was removed by `store prune`, or no worker sent a request.
        _ if page.run.usage.tokens.total() > 0 => {
            "The journal of this run is no longer kept: its turns cannot be shown."
        }
        _ => "Nothing was asked in this run.",
    };
    doc.push_paragraph(Role::Muted, why, width);
    if let Some((class, summary)) = &page.conversation.failure {
        doc.push_blank();
        doc.push_field("failed", NAMES, Role::Bad, &format!("{}: {summary}", class.word().replace('_', " ")), width);
    }
}

/// Renders cost and tokens so far, each against its budget if there is one.
fn render_spent(app: &App, cost: f64, usage: &Usage, width: usize, doc: &mut Doc) {
    let RunBudget { cost: most_cost, tokens: most_tokens } = app.session.budget;
    let of = |most: Option<String>| most.map_or_else(String::new, |most| format!(" of {most}"));
    let price = match (cost > 0.0, usage.total()) {
        (false, 1..) => "no price is known for this model".to_owned(),
        _ => format!("{}{}", format_dollars(cost), of(most_cost.map(format_dollars))),
    };
    render_gauge_line(app, "cost", &price, most_cost.map(|most| cost / most), width, doc);
    let about = if usage.estimated { "~" } else { "" };
    let total = format!("{about}{}{}", format_thousands(usage.total()), of(most_tokens.map(format_thousands)));
    let share = most_tokens.map(|most| usage.total() as f64 / most.max(1) as f64);
    render_gauge_line(app, "tokens", &total, share, width, doc);
    let number = if width < MIN_WIDE_COLUMNS { format_brief } else { format_thousands };
    let mut parts = vec![format!("{} in", number(usage.input))];
    if usage.cached > 0 {
        let percent = usage.cached.saturating_mul(100) / usage.input.max(1);
        parts.push(format!("{percent} % cached"));
    }
    parts.push(format!("{} out", number(usage.output)));
    if usage.reasoning > 0 {
        parts.push(format!("{} reasoning", number(usage.reasoning)));
    }
    doc.push_field("", NAMES, Role::Muted, &parts.join(", "), width);
}

/// Renders `cost        $0.42 of $2.00   ━━━━━──────────  21 %`.
fn render_gauge_line(app: &App, name: &str, said: &str, share: Option<f64>, width: usize, doc: &mut Doc) {
    let mut line = DocLine::styled(Role::Muted, &format!("{name:<NAMES$}")).with_span(Role::Normal, said);
    let room = width.saturating_sub(NAMES + said.width() + 3 + 7).min(24);
    if let Some(share) = share.filter(|_| room >= 6) {
        let share = if share.is_finite() { share.max(0.0) } else { 0.0 };
        let filled = ((share * room as f64).round() as usize).min(room);
        let role = if share < 0.8 { Role::Filled } else { Role::Warn };
        line = line
            .with_span(role, &format!("   {}", app.display.glyphs.filled.repeat(filled)))
            .with_span(Role::Empty, &app.display.glyphs.empty.repeat(room - filled))
            .with_span(Role::Muted, &format!("  {:.0} %", share * 100.0));
    }
    doc.push(line);
}

/// Column widths: input, cached, output, seconds, new findings.
const FIGURE_COLUMNS: [usize; 5] = [7, 8, 7, 8, 6];

fn render_heading(width: usize, turns: usize, doc: &mut Doc) {
    doc.push_blank();
    let title = text::format_count(turns, "turn");
    let mut line = DocLine::styled(Role::Title, &title);
    if width >= MIN_WIDE_COLUMNS {
        let start = width - FIGURE_COLUMNS.iter().sum::<usize>();
        line = line.with_span(Role::Faint, &" ".repeat(start.saturating_sub(title.len())));
        for (name, width) in ["in", "cached", "out", "time", "new"].into_iter().zip(FIGURE_COLUMNS) {
            line = line.with_span(Role::Faint, &format!("{name:>width$}"));
        }
    }
    doc.push(line);
}

/// Renders the figures of a turn; this line is the title of the turn's fold.
fn render_figures(app: &App, turn: &Turn, width: usize, doc: &mut Doc) {
    let key = FoldKey::Turn(turn.number);
    let sign =
        if app.detail.open_folds.contains(&key) { app.display.glyphs.unfolded } else { app.display.glyphs.folded };
    let line = DocLine::styled(Role::Faint, sign)
        .with_span(Role::Strong, &format!(" {:>2}", turn.number))
        .with_span(Role::Muted, &format!("  {:<13}", phase_label(turn.phase)));
    let used = 1 + 3 + 2 + 13;
    let usage = turn.usage();
    let answered = turn.answer().is_some();
    let figure = |n: u64| if answered { format_compact(n) } else { app.display.glyphs.dash.to_owned() };
    let time = match turn.answer() {
        Some(answer) => format_elapsed(answer.took_ms),
        None => app.display.glyphs.dash.to_owned(),
    };
    let new = match turn.new_findings() {
        0 => String::new(),
        n => format!("+{n}"),
    };
    let new_role = turn.top_priority().map_or(Role::Normal, Role::from_priority);
    if width >= MIN_WIDE_COLUMNS {
        let [input, cached, output, seconds, found] = FIGURE_COLUMNS;
        let room = width - used - FIGURE_COLUMNS.iter().sum::<usize>();
        let bar = room.saturating_sub(1).min(24);
        let line = window::build_bar(&app.display.glyphs, &turn.window, bar, line)
            .with_span(Role::Faint, &" ".repeat(room - bar))
            .with_span(Role::Normal, &format!("{:>input$}", figure(usage.input)))
            .with_span(Role::Muted, &format!("{:>cached$}", figure(usage.cached)))
            .with_span(Role::Normal, &format!("{:>output$}", figure(usage.output)))
            .with_span(Role::Muted, &format!("{time:>seconds$}"))
            .with_span(new_role, &format!("{new:>found$}"));
        doc.push_fold(key, line);
        return;
    }
    let bar = width.saturating_sub(used + 4).clamp(4, 24);
    let line =
        window::build_bar(&app.display.glyphs, &turn.window, bar, line).with_span(new_role, &format!("{new:>4}"));
    doc.push_fold(key, line);
    if answered {
        let cached = if usage.cached > 0 { format!(", {} cached", format_brief(usage.cached)) } else { String::new() };
        let figures = format!("{} in{cached}, {} out, {time}", format_brief(usage.input), format_brief(usage.output));
        let figures = shorten(&figures, width.saturating_sub(INDENT), app.display.glyphs.ellipsis);
        doc.push(DocLine::styled(Role::Muted, &" ".repeat(INDENT)).with_span(Role::Muted, &figures));
    }
}

fn phase_label(phase: TurnPhase) -> &'static str {
    match phase {
        TurnPhase::Investigate => "investigate",
        TurnPhase::Analyse => "analyse",
        TurnPhase::Finish => "finish",
    }
}

/// Formats milliseconds: `0.8 s`, `14 s`, `3 min`.
fn format_elapsed(ms: u64) -> String {
    if ms < 9_950 {
        format!("{:.1} s", ms as f64 / 1000.0)
    } else {
        activity::format_elapsed(i64::try_from(ms).unwrap_or(i64::MAX))
    }
}

/// Renders request and response, one line each.
fn render_folded(app: &App, turn: &Turn, ended: bool, width: usize, doc: &mut Doc) {
    let room = width.saturating_sub(INDENT + WORDS);
    let put = |word: &str, role: Role, said: &str, room: usize| -> DocLine {
        let one = text::sanitize_line(said.trim());
        let one = one.split_whitespace().collect::<Vec<_>>().join(" ");
        DocLine::styled(Role::Faint, &format!("{}{word:<WORDS$}", " ".repeat(INDENT)))
            .with_span(role, &shorten(&one, room, app.display.glyphs.ellipsis))
    };
    if !turn.asked.text.is_empty() {
        let line = put("asked", Role::Muted, &turn.asked.text, room);
        doc.push(line);
    }
    let Some(answer) = turn.answer() else {
        let line = put("answered", Role::Muted, describe_no_answer(turn, ended), room);
        doc.push(line);
        return;
    };
    let tools = summarize_tools(turn, answer);
    let tail = if tools.is_empty() { 0 } else { tools.width() + 2 };
    let (role, said) = match answer.text.text.is_empty() {
        false => (Role::Normal, answer.text.text.as_str()),
        true if answer.calls.is_empty() => (Role::Warn, "nothing"),
        true => (Role::Muted, "with calls of tools only"),
    };
    // If both do not fit side by side, an answer without text shows only its tool calls.
    let line = match room.saturating_sub(tail) {
        room @ 20.. => put("answered", role, said, room),
        _ if answer.text.text.is_empty() => put("answered", Role::Muted, &tools, room),
        _ => put("answered", role, said, room),
    };
    let tool_role = if turn.failed_tool_calls() > 0 { Role::Warn } else { Role::Faint };
    doc.push(if tail > 0 && room.saturating_sub(tail) >= 20 { line.with_tail(tool_role, &tools) } else { line });
}

fn describe_no_answer(turn: &Turn, ended: bool) -> &'static str {
    match (ended, turn.attempts) {
        (true, _) => "nothing",
        (false, 2..) => "nothing yet; asked again",
        (false, _) => "nothing yet",
    }
}

/// Summarizes tool calls: `3 tools, 1 refused`.
fn summarize_tools(turn: &Turn, answer: &TurnAnswer) -> String {
    let count = turn.tools.len().max(answer.calls.len());
    if count == 0 {
        return String::new();
    }
    let mut words = vec![text::format_count(count, "tool")];
    for (outcome, word) in [(ToolOutcome::Refused, "refused"), (ToolOutcome::Failed, "failed")] {
        match turn.tools.iter().filter(|tool| tool.outcome == outcome).count() {
            0 => {}
            n => words.push(format!("{n} {word}")),
        }
    }
    words.join(", ")
}

/// Renders everything known about a turn.
fn render_unfolded(app: &App, turn: &Turn, ended: bool, width: usize, doc: &mut Doc) {
    let mut part = TurnWriter { width, ellipsis: app.display.glyphs.ellipsis, doc };
    part.push_long_text("asked", Role::Muted, &turn.asked);
    for wait in &turn.waits {
        let said = format!("{}, {} s", wait.reason, wait.wait_ms.div_ceil(1000));
        part.push_text("held up", Role::Warn, &said);
    }
    match turn.answer() {
        None => part.push_text("answered", Role::Muted, describe_no_answer(turn, ended)),
        Some(answer) => {
            let nothing = answer.text.text.is_empty();
            match nothing && answer.calls.is_empty() {
                true => part.push_text("answered", Role::Warn, "nothing"),
                false if nothing => part.push_text("answered", Role::Muted, "with calls of tools only"),
                false => part.push_long_text("answered", Role::Normal, &answer.text),
            }
            if let Some(why) = describe_stop(answer.stop) {
                part.push_text("stopped", Role::Warn, why);
            }
            if turn.answers.len() > 1 {
                part.push_text(
                    "",
                    Role::Warn,
                    &format!("answer {}: those before it could not be used", turn.answers.len()),
                );
            }
        }
    }
    render_tools(turn, &mut part);
    for (index, found) in turn.findings.iter().enumerate() {
        part.push_finding(if index == 0 { "found" } else { "" }, found);
    }
    for (index, rejected) in turn.rejected.iter().enumerate() {
        let report = &rejected.report;
        let place = format_reported_location(report);
        part.push_text(if index == 0 { "set aside" } else { "" }, Role::Normal, &format!("{place}  {}", report.title));
        part.push_text("", Role::Warn, &rejected.reason);
    }
    part.push_text("window", Role::Muted, &describe_window(&turn.window, turn.slid_messages));
    if let Some(answer) = turn.answer() {
        // 0 means that no byte came before the end.
        let first = match answer.first_ms {
            0 => String::new(),
            ms => format!("first byte after {}, ", format_elapsed(ms)),
        };
        let clock = turn.at.to_zoned(app.display.zone.clone()).strftime("%H:%M:%S").to_string();
        part.push_text(
            "time",
            Role::Muted,
            &format!("asked at {clock}, {first}all after {}", format_elapsed(answer.took_ms)),
        );
        let price = if turn.cost() > 0.0 { format!(", {}", format_dollars(turn.cost())) } else { String::new() };
        let reasoning = match turn.usage().reasoning {
            0 => String::new(),
            n => format!(", {} of them reasoning", format_thousands(n)),
        };
        let usage = turn.usage();
        let said = format!(
            "{}{} in, {} cached, {} out{reasoning}{price}",
            if usage.estimated { "~" } else { "" },
            format_thousands(usage.input),
            format_thousands(usage.cached),
            format_thousands(usage.output)
        );
        part.push_text("tokens", Role::Muted, &said);
        if !answer.model.is_empty() {
            part.push_text("model", Role::Muted, &answer.model);
        }
    }
    part.doc.push(DocLine::default());
}

fn render_tools(turn: &Turn, part: &mut TurnWriter<'_>) {
    for (index, tool) in turn.tools.iter().enumerate() {
        let (role, outcome) = match tool.outcome {
            ToolOutcome::Answered => (Role::Faint, String::new()),
            ToolOutcome::Refused => (Role::Warn, "refused  ".to_owned()),
            ToolOutcome::Failed => (Role::Warn, "failed  ".to_owned()),
        };
        let name = if index == 0 { "tools" } else { "" };
        let tail = format!("{outcome}{}", format_compact(tool.tokens));
        part.push_call(name, &tool.name, &tool.arguments, role, &tail);
        if !tool.result.is_empty() {
            part.push_text("", Role::Faint, &tool.result);
        }
    }
}

fn describe_stop(stop: StopReason) -> Option<&'static str> {
    match stop {
        StopReason::Done | StopReason::Tools => None,
        StopReason::Length => Some("cut off: the answer reached its limit of tokens"),
        StopReason::Refused => Some("the model refused"),
        StopReason::Interrupted => Some("cut off: the connection broke; what had come is used"),
        StopReason::Unknown => Some("for a reason that the provider did not give"),
    }
}

/// Describes `41,204 of 70,000: 6,100 pinned, 812 summarized, 34,292 kept; 12 messages, 3 masked, 8 slid out`.
fn describe_window(window: &WindowUse, slid: Option<u32>) -> String {
    let about = if window.approximate { "about " } else { "" };
    let mut said = format!("{about}{} of {}", format_thousands(window.tokens), format_thousands(window.limit));
    let kept = window.tokens.saturating_sub(window.pinned + window.summarized);
    let mut parts = vec![format!("{} pinned", format_thousands(window.pinned))];
    if window.summarized > 0 {
        parts.push(format!("{} summarized", format_thousands(window.summarized)));
    }
    parts.push(format!("{} kept", format_thousands(kept)));
    said.push_str(&format!(": {}; {}", parts.join(", "), text::format_count(window.messages as usize, "message")));
    if window.masked > 0 {
        said.push_str(&format!(", {} masked", text::format_count(window.masked as usize, "result")));
    }
    if window.removed > 0 {
        said.push_str(&format!(", {} slid out", window.removed));
    }
    if let Some(now) = slid.filter(|now| *now > 0) {
        let alone = if window.removed == 0 { "slid out " } else { "" };
        said.push_str(&format!(", {now} {alone}in this turn"));
    }
    said
}

/// Renders the pauses that the user made after this turn.
fn render_pauses(app: &App, turn: &Turn, doc: &mut Doc) {
    let clock = |time: crate::domain::Time| time.to_zoned(app.display.zone.clone()).strftime("%H:%M").to_string();
    for (from, until) in &turn.pauses {
        let until = until.map_or_else(String::new, |until| format!(", resumed {}", clock(until)));
        let sign = app.display.glyphs.activity(ActivityState::Paused);
        let line =
            DocLine::styled(Role::Pending, sign).with_span(Role::Pending, &format!("  paused {}{until}", clock(*from)));
        doc.push(line);
    }
}

/// Writes the fields of a turn: a name on the left, wrapped text on the right.
struct TurnWriter<'a> {
    width: usize,
    ellipsis: &'static str,
    doc: &'a mut Doc,
}

impl TurnWriter<'_> {
    fn start_line(word: &str) -> DocLine {
        DocLine::styled(Role::Faint, &format!("{}{word:<WORDS$}", " ".repeat(INDENT)))
    }

    fn text_columns(&self) -> usize {
        self.width.saturating_sub(INDENT + WORDS).max(12)
    }

    fn push_text(&mut self, word: &str, role: Role, said: &str) {
        for (index, line) in wrap_words(&text::sanitize_line(said), self.text_columns()).into_iter().enumerate() {
            self.doc.push(Self::start_line(if index == 0 { word } else { "" }).with_span(role, &line));
        }
    }

    /// Pushes a text of several lines, cut after [`MAX_TEXT_LINES`].
    fn push_long_text(&mut self, word: &str, role: Role, said: &TruncatedText) {
        let (mut shown, mut more) = (0, said.omitted_bytes);
        let mut word = word;
        for line in said.text.split('\n') {
            if shown >= MAX_TEXT_LINES {
                more += line.len() + 1;
                continue;
            }
            // Code keeps its indentation.
            let indent = line.len() - line.trim_start().len();
            let indent = indent.min(self.text_columns() / 2);
            for part in wrap_words(line, self.text_columns() - indent) {
                self.doc.push(
                    Self::start_line(std::mem::take(&mut word))
                        .with_span(role, &format!("{}{part}", " ".repeat(indent))),
                );
                shown += 1;
            }
        }
        if more > 0 {
            let said = format!("{} and {} bytes more in the journal", self.ellipsis, format_thousands(more as u64));
            self.doc.push(Self::start_line("").with_span(Role::Faint, &said));
        }
    }

    fn push_call(&mut self, word: &str, name: &str, arguments: &str, role: Role, tail: &str) {
        let room = self.text_columns().saturating_sub(tail.width() + 2);
        let name = shorten(name, room, self.ellipsis);
        let arguments = shorten(arguments, room.saturating_sub(name.width() + 1), self.ellipsis);
        let line =
            Self::start_line(word).with_span(Role::Accent, &name).with_span(Role::Muted, &format!(" {arguments}"));
        self.doc.push(line.with_tail(role, tail));
    }

    fn push_finding(&mut self, word: &str, found: &TurnFinding) {
        let sign = match (found.report, found.priority) {
            (FindingReportKind::New, Some(priority)) => {
                (priority_label(priority).to_owned(), Role::from_priority(priority))
            }
            (FindingReportKind::Restated, _) => ("restated".to_owned(), Role::Muted),
            (FindingReportKind::Repeated, _) | (FindingReportKind::New, None) => ("again".to_owned(), Role::Faint),
        };
        let said = format!("{}  {}", found.place, found.title);
        let room = self.text_columns().saturating_sub(sign.0.width() + 2).max(12);
        for (index, line) in wrap_words(&text::sanitize_line(&said), room).into_iter().enumerate() {
            let (word, lead) = if index == 0 { (word, sign.0.clone()) } else { ("", " ".repeat(sign.0.width())) };
            self.doc
                .push(Self::start_line(word).with_span(sign.1, &format!("{lead}  ")).with_span(Role::Normal, &line));
        }
    }
}
