//! The page of a run's turns: what was spent, how full the window was, and for each turn what was asked and answered.
//!
//! A turn is three lines: its figures, what was asked, what came back. Unfolded it says all that is known of it.

use unicode_width::UnicodeWidthStr;

use super::super::app::{App, Budget};
use super::super::doc::{Doc, FoldKey, Growth, Line, shorten, wrap};
use super::super::live;
use super::super::loaded::TurnsPage;
use super::super::theme::Role;
use super::super::turns::{Answer, Found, Report, Text, Turn};
use super::window::{self, compact};
use super::{brief, dollars, priority_word, reported_place, thousands};
use crate::domain::{RunStatus, Stop, ToolOutcome, TurnPhase, Usage, WindowUse, text};

/// From here on a turn's figures stand in one line under the names of their columns.
const WIDE: usize = 66;
/// On a screen with fewer rows than this the turns begin further up.
const SHORT: u16 = 30;
/// The column of names above the turns.
const NAMES: usize = 8;
/// What is said of a turn stands to the right of this.
const INDENT: usize = 4;
/// The column of names within a turn.
const WORDS: usize = 10;
/// Lines of a text that are shown when it is unfolded.
const LINES: usize = 120;

pub fn turns(app: &App, page: &TurnsPage, width: usize, doc: &mut Doc) {
    let conversation = &page.conversation;
    if conversation.turns.is_empty() {
        nothing(page, width, doc);
        return;
    }
    let turns: Vec<&Turn> = conversation.turns.iter().map(AsRef::as_ref).collect();
    spent(app, conversation.cost(), &conversation.usage(), width, doc);
    let limit = turns.last().map_or(0, |turn| turn.window.limit);
    doc.heading("Window", &if limit > 0 { format!("limit {}", thousands(limit)) } else { String::new() });
    // A run that has ended has all the turns it will ever have.
    let ended = page.run.status.is_terminal();
    let expected = if ended { 0 } else { app.place.max_turns };
    let short = app.rows < SHORT;
    window::chart(&app.glyphs, &turns, expected, (width, if short { 3 } else { 5 }), doc);
    if !short {
        window::legend(&app.glyphs, width, doc);
    }
    heading(width, turns.len(), doc);
    for turn in &turns {
        figures(app, turn, width, doc);
        match app.open_folds.contains(&FoldKey::Turn(turn.number)) {
            true => unfolded(app, turn, ended, width, doc),
            false => folded(app, turn, ended, width, doc),
        }
        paused(app, turn, doc);
    }
    if let Some((class, summary)) = &conversation.failure {
        doc.blank();
        doc.field("failed", NAMES, Role::Bad, &format!("{}: {summary}", class.word().replace('_', " ")), width);
    }
    if short {
        doc.blank();
        window::legend(&app.glyphs, width, doc);
    }
    if !ended {
        doc.growth = Growth::AtEnd;
    }
}

/// There are no turns: why.
fn nothing(page: &TurnsPage, width: usize, doc: &mut Doc) {
    let why = match page.run.status {
        RunStatus::Pending => "Waiting for a worker.",
        status if !status.is_terminal() => "Nothing has been asked yet.",
        // The journal was cleaned away with `store prune`, or no worker came as far as asking.
        _ if page.run.tokens.total() > 0 => "The journal of this run is no longer kept: its turns cannot be shown.",
        _ => "Nothing was asked in this run.",
    };
    doc.paragraph(Role::Muted, why, width);
    if let Some((class, summary)) = &page.conversation.failure {
        doc.blank();
        doc.field("failed", NAMES, Role::Bad, &format!("{}: {summary}", class.word().replace('_', " ")), width);
    }
}

/// Money and tokens so far, each against its budget where there is one.
fn spent(app: &App, cost: f64, usage: &Usage, width: usize, doc: &mut Doc) {
    let Budget { cost: most_cost, tokens: most_tokens } = app.place.budget;
    let of = |most: Option<String>| most.map_or_else(String::new, |most| format!(" of {most}"));
    let price = match (cost > 0.0, usage.total()) {
        (false, 1..) => "no price is known for this model".to_owned(),
        _ => format!("{}{}", dollars(cost), of(most_cost.map(dollars))),
    };
    line_with_gauge(app, "cost", &price, most_cost.map(|most| cost / most), width, doc);
    let total = format!("{}{}", thousands(usage.total()), of(most_tokens.map(thousands)));
    let share = most_tokens.map(|most| usage.total() as f64 / most.max(1) as f64);
    line_with_gauge(app, "tokens", &total, share, width, doc);
    let number = if width < WIDE { brief } else { thousands };
    let mut parts = vec![format!("{} in", number(usage.input))];
    if usage.cached > 0 {
        let percent = usage.cached.saturating_mul(100) / usage.input.max(1);
        parts.push(format!("{percent} % cached"));
    }
    parts.push(format!("{} out", number(usage.output)));
    if usage.reasoning > 0 {
        parts.push(format!("{} reasoning", number(usage.reasoning)));
    }
    doc.field("", NAMES, Role::Muted, &parts.join(", "), width);
}

/// `cost        $0.42 of $2.00   ━━━━━──────────  21 %`.
fn line_with_gauge(app: &App, name: &str, said: &str, share: Option<f64>, width: usize, doc: &mut Doc) {
    let mut line = Line::of(Role::Muted, &format!("{name:<NAMES$}")).and(Role::Normal, said);
    let room = width.saturating_sub(NAMES + said.width() + 3 + 7).min(24);
    if let Some(share) = share.filter(|_| room >= 6) {
        let share = if share.is_finite() { share.max(0.0) } else { 0.0 };
        let filled = ((share * room as f64).round() as usize).min(room);
        let role = if share < 0.8 { Role::Filled } else { Role::Warn };
        line = line
            .and(role, &format!("   {}", app.glyphs.filled.repeat(filled)))
            .and(Role::Empty, &app.glyphs.empty.repeat(room - filled))
            .and(Role::Muted, &format!("  {:.0} %", share * 100.0));
    }
    doc.push(line);
}

/// Widths of the columns of figures: input, cached, output, seconds, new findings.
const FIGURES: [usize; 5] = [7, 8, 7, 8, 6];

fn heading(width: usize, turns: usize, doc: &mut Doc) {
    doc.blank();
    let title = text::count(turns, "turn");
    let mut line = Line::of(Role::Title, &title);
    if width >= WIDE {
        let start = width - FIGURES.iter().sum::<usize>();
        line = line.and(Role::Faint, &" ".repeat(start.saturating_sub(title.len())));
        for (name, width) in ["in", "cached", "out", "time", "new"].into_iter().zip(FIGURES) {
            line = line.and(Role::Faint, &format!("{name:>width$}"));
        }
    }
    doc.push(line);
}

/// The line of figures, which stands for the turn.
fn figures(app: &App, turn: &Turn, width: usize, doc: &mut Doc) {
    let key = FoldKey::Turn(turn.number);
    let sign = if app.open_folds.contains(&key) { app.glyphs.unfolded } else { app.glyphs.folded };
    let line = Line::of(Role::Faint, sign)
        .and(Role::Strong, &format!(" {:>2}", turn.number))
        .and(Role::Muted, &format!("  {:<13}", phase_word(turn.phase)));
    let used = 1 + 3 + 2 + 13;
    let usage = turn.usage();
    let answered = turn.answer().is_some();
    let figure = |n: u64| if answered { compact(n) } else { app.glyphs.dash.to_owned() };
    let time = match turn.answer() {
        Some(answer) => took(answer.took_ms),
        None => app.glyphs.dash.to_owned(),
    };
    let new = match turn.new_findings() {
        0 => String::new(),
        n => format!("+{n}"),
    };
    let new_role = turn.urgency().map_or(Role::Normal, Role::of_priority);
    if width >= WIDE {
        let [input, cached, output, seconds, found] = FIGURES;
        let room = width - used - FIGURES.iter().sum::<usize>();
        let bar = room.saturating_sub(1).min(24);
        let line = window::bar(&app.glyphs, &turn.window, bar, line)
            .and(Role::Faint, &" ".repeat(room - bar))
            .and(Role::Normal, &format!("{:>input$}", figure(usage.input)))
            .and(Role::Muted, &format!("{:>cached$}", figure(usage.cached)))
            .and(Role::Normal, &format!("{:>output$}", figure(usage.output)))
            .and(Role::Muted, &format!("{time:>seconds$}"))
            .and(new_role, &format!("{new:>found$}"));
        doc.fold(key, line);
        return;
    }
    let bar = width.saturating_sub(used + 4).clamp(4, 24);
    let line = window::bar(&app.glyphs, &turn.window, bar, line).and(new_role, &format!("{new:>4}"));
    doc.fold(key, line);
    if answered {
        let cached = if usage.cached > 0 { format!(", {} cached", brief(usage.cached)) } else { String::new() };
        let figures = format!("{} in{cached}, {} out, {time}", brief(usage.input), brief(usage.output));
        let figures = shorten(&figures, width.saturating_sub(INDENT), app.glyphs.ellipsis);
        doc.push(Line::of(Role::Muted, &" ".repeat(INDENT)).and(Role::Muted, &figures));
    }
}

fn phase_word(phase: TurnPhase) -> &'static str {
    match phase {
        TurnPhase::Investigate => "investigate",
        TurnPhase::Analyse => "analyse",
        TurnPhase::Finish => "finish",
    }
}

/// `0.8 s`, `14 s`, `3 min`.
fn took(ms: u64) -> String {
    if ms < 9_950 {
        format!("{:.1} s", ms as f64 / 1000.0)
    } else {
        live::seconds(i64::try_from(ms).unwrap_or(i64::MAX))
    }
}

/// What was asked and what came back, a line each.
fn folded(app: &App, turn: &Turn, ended: bool, width: usize, doc: &mut Doc) {
    let room = width.saturating_sub(INDENT + WORDS);
    let put = |word: &str, role: Role, said: &str, room: usize| -> Line {
        let one = text::one_line(said.trim());
        let one = one.split_whitespace().collect::<Vec<_>>().join(" ");
        Line::of(Role::Faint, &format!("{}{word:<WORDS$}", " ".repeat(INDENT)))
            .and(role, &shorten(&one, room, app.glyphs.ellipsis))
    };
    if !turn.asked.kept.is_empty() {
        let line = put("asked", Role::Muted, &turn.asked.kept, room);
        doc.push(line);
    }
    let Some(answer) = turn.answer() else {
        let line = put("answered", Role::Muted, no_answer(turn, ended), room);
        doc.push(line);
        return;
    };
    let tools = tool_words(turn, answer);
    let tail = if tools.is_empty() { 0 } else { tools.width() + 2 };
    let (role, said) = match answer.text.kept.is_empty() {
        false => (Role::Normal, answer.text.kept.as_str()),
        true if answer.calls.is_empty() => (Role::Warn, "nothing"),
        true => (Role::Muted, "with calls of tools only"),
    };
    // Where both do not fit side by side the tools are what is said of an answer that is nothing but calls.
    let line = match room.saturating_sub(tail) {
        room @ 20.. => put("answered", role, said, room),
        _ if answer.text.kept.is_empty() => put("answered", Role::Muted, &tools, room),
        _ => put("answered", role, said, room),
    };
    let tool_role = if turn.tool_faults() > 0 { Role::Warn } else { Role::Faint };
    doc.push(if tail > 0 && room.saturating_sub(tail) >= 20 { line.tail(tool_role, &tools) } else { line });
}

fn no_answer(turn: &Turn, ended: bool) -> &'static str {
    match (ended, turn.attempts) {
        (true, _) => "nothing",
        (false, 2..) => "nothing yet; asked again",
        (false, _) => "nothing yet",
    }
}

/// `3 tools, 1 refused`.
fn tool_words(turn: &Turn, answer: &Answer) -> String {
    let count = turn.tools.len().max(answer.calls.len());
    if count == 0 {
        return String::new();
    }
    let mut words = vec![text::count(count, "tool")];
    for (outcome, word) in [(ToolOutcome::Refused, "refused"), (ToolOutcome::Failed, "failed")] {
        match turn.tools.iter().filter(|tool| tool.outcome == outcome).count() {
            0 => {}
            n => words.push(format!("{n} {word}")),
        }
    }
    words.join(", ")
}

/// All that is known of a turn.
fn unfolded(app: &App, turn: &Turn, ended: bool, width: usize, doc: &mut Doc) {
    let mut part = Part { width, ellipsis: app.glyphs.ellipsis, doc };
    part.text("asked", Role::Muted, &turn.asked);
    for wait in &turn.waits {
        let said = format!("{}, {} s", wait.reason, wait.wait_ms.div_ceil(1000));
        part.say("held up", Role::Warn, &said);
    }
    match turn.answer() {
        None => part.say("answered", Role::Muted, no_answer(turn, ended)),
        Some(answer) => {
            let nothing = answer.text.kept.is_empty();
            match nothing && answer.calls.is_empty() {
                true => part.say("answered", Role::Warn, "nothing"),
                false if nothing => part.say("answered", Role::Muted, "with calls of tools only"),
                false => part.text("answered", Role::Normal, &answer.text),
            }
            if let Some(why) = stopped(answer.stop) {
                part.say("stopped", Role::Warn, why);
            }
            if turn.answers.len() > 1 {
                part.say("", Role::Warn, &format!("answer {}: those before it could not be used", turn.answers.len()));
            }
        }
    }
    tools(turn, &mut part);
    for (index, found) in turn.found.iter().enumerate() {
        part.found(if index == 0 { "found" } else { "" }, found);
    }
    for (index, rejected) in turn.rejected.iter().enumerate() {
        let report = &rejected.report;
        let place = reported_place(report);
        part.say(if index == 0 { "set aside" } else { "" }, Role::Normal, &format!("{place}  {}", report.title));
        part.say("", Role::Warn, &rejected.reason);
    }
    part.say("window", Role::Muted, &window_words(&turn.window, turn.slid));
    if let Some(answer) = turn.answer() {
        // 0: nothing came before the end.
        let first = match answer.first_ms {
            0 => String::new(),
            ms => format!("first byte after {}, ", took(ms)),
        };
        let clock = turn.at.to_zoned(app.zone.clone()).strftime("%H:%M:%S").to_string();
        part.say("time", Role::Muted, &format!("asked at {clock}, {first}all after {}", took(answer.took_ms)));
        let price = if turn.cost() > 0.0 { format!(", {}", dollars(turn.cost())) } else { String::new() };
        let reasoning = match turn.usage().reasoning {
            0 => String::new(),
            n => format!(", {} of them reasoning", thousands(n)),
        };
        let usage = turn.usage();
        let said = format!(
            "{} in, {} cached, {} out{reasoning}{price}",
            thousands(usage.input),
            thousands(usage.cached),
            thousands(usage.output)
        );
        part.say("tokens", Role::Muted, &said);
        if !answer.model.is_empty() {
            part.say("model", Role::Muted, &answer.model);
        }
    }
    part.doc.push(Line::default());
}

fn tools(turn: &Turn, part: &mut Part<'_>) {
    for (index, tool) in turn.tools.iter().enumerate() {
        let (role, outcome) = match tool.outcome {
            ToolOutcome::Answered => (Role::Faint, String::new()),
            ToolOutcome::Refused => (Role::Warn, "refused  ".to_owned()),
            ToolOutcome::Failed => (Role::Warn, "failed  ".to_owned()),
        };
        let name = if index == 0 { "tools" } else { "" };
        let tail = format!("{outcome}{}", compact(tool.tokens));
        part.with_tail(name, &tool.name, &tool.arguments, role, &tail);
        if !tool.result.is_empty() {
            part.say("", Role::Faint, &tool.result);
        }
    }
}

fn stopped(stop: Stop) -> Option<&'static str> {
    match stop {
        Stop::Done | Stop::Tools => None,
        Stop::Length => Some("cut off: the answer reached its limit of tokens"),
        Stop::Refused => Some("the model refused"),
        Stop::Interrupted => Some("cut off: the connection broke; what had come is used"),
        Stop::Unknown => Some("for a reason that the provider did not give"),
    }
}

/// `41,204 of 70,000: 6,100 pinned, 812 summarized, 34,292 kept; 12 messages, 3 masked, 8 slid out`.
fn window_words(window: &WindowUse, slid: Option<u32>) -> String {
    let about = if window.approximate { "about " } else { "" };
    let mut said = format!("{about}{} of {}", thousands(window.tokens), thousands(window.limit));
    let kept = window.tokens.saturating_sub(window.pinned + window.summarized);
    let mut parts = vec![format!("{} pinned", thousands(window.pinned))];
    if window.summarized > 0 {
        parts.push(format!("{} summarized", thousands(window.summarized)));
    }
    parts.push(format!("{} kept", thousands(kept)));
    said.push_str(&format!(": {}; {}", parts.join(", "), text::count(window.messages as usize, "message")));
    if window.masked > 0 {
        said.push_str(&format!(", {} masked", text::count(window.masked as usize, "result")));
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

/// A person stopped the run after this turn.
fn paused(app: &App, turn: &Turn, doc: &mut Doc) {
    let clock = |time: crate::domain::Time| time.to_zoned(app.zone.clone()).strftime("%H:%M").to_string();
    for (from, until) in &turn.pauses {
        let until = until.map_or_else(String::new, |until| format!(", resumed {}", clock(until)));
        let sign = app.glyphs.live(live::Mode::Paused);
        let line = Line::of(Role::Pending, sign).and(Role::Pending, &format!("  paused {}{until}", clock(*from)));
        doc.push(line);
    }
}

/// What is said of a turn: a name on the left, text on the right, wrapped under itself.
struct Part<'a> {
    width: usize,
    ellipsis: &'static str,
    doc: &'a mut Doc,
}

impl Part<'_> {
    fn start(word: &str) -> Line {
        Line::of(Role::Faint, &format!("{}{word:<WORDS$}", " ".repeat(INDENT)))
    }

    fn room(&self) -> usize {
        self.width.saturating_sub(INDENT + WORDS).max(12)
    }

    fn say(&mut self, word: &str, role: Role, said: &str) {
        for (index, line) in wrap(&text::one_line(said), self.room()).into_iter().enumerate() {
            self.doc.push(Self::start(if index == 0 { word } else { "" }).and(role, &line));
        }
    }

    /// A text of several lines; of a long one the beginning.
    fn text(&mut self, word: &str, role: Role, said: &Text) {
        let (mut shown, mut more) = (0, said.more);
        let mut word = word;
        for line in said.kept.split('\n') {
            if shown >= LINES {
                more += line.len() + 1;
                continue;
            }
            // Code keeps its indentation, prose has none.
            let indent = line.len() - line.trim_start().len();
            let indent = indent.min(self.room() / 2);
            for part in wrap(line, self.room() - indent) {
                self.doc
                    .push(Self::start(std::mem::take(&mut word)).and(role, &format!("{}{part}", " ".repeat(indent))));
                shown += 1;
            }
        }
        if more > 0 {
            let said = format!("{} and {} bytes more in the journal", self.ellipsis, thousands(more as u64));
            self.doc.push(Self::start("").and(Role::Faint, &said));
        }
    }

    fn with_tail(&mut self, word: &str, name: &str, arguments: &str, role: Role, tail: &str) {
        let room = self.room().saturating_sub(tail.width() + 2);
        let name = shorten(name, room, self.ellipsis);
        let arguments = shorten(arguments, room.saturating_sub(name.width() + 1), self.ellipsis);
        let line = Self::start(word).and(Role::Accent, &name).and(Role::Muted, &format!(" {arguments}"));
        self.doc.push(line.tail(role, tail));
    }

    fn found(&mut self, word: &str, found: &Found) {
        let sign = match (found.report, found.priority) {
            (Report::New, Some(priority)) => (priority_word(priority).to_owned(), Role::of_priority(priority)),
            (Report::Restated, _) => ("restated".to_owned(), Role::Muted),
            (Report::Repeated, _) | (Report::New, None) => ("again".to_owned(), Role::Faint),
        };
        let said = format!("{}  {}", found.place, found.title);
        let room = self.room().saturating_sub(sign.0.width() + 2).max(12);
        for (index, line) in wrap(&text::one_line(&said), room).into_iter().enumerate() {
            let (word, lead) = if index == 0 { (word, sign.0.clone()) } else { ("", " ".repeat(sign.0.width())) };
            self.doc.push(Self::start(word).and(sign.1, &format!("{lead}  ")).and(Role::Normal, &line));
        }
    }
}
