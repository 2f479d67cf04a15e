//! The pages of a run, of a file of a run, and of a run's journal.

use super::super::app::App;
use super::super::doc::{Doc, FoldKey, Growth, Line, wrap};
use super::super::live::Mode;
use super::super::loaded::{FilePage, RunPage};
use super::super::theme::Role;
use super::{NAMES, digits, dollars, priority_word, reported_place, short, thousands};
use crate::domain::{JournalEntry, Priority, Rejected, RunEvent, RunRecord, RunStatus, Scope, Usage, text};

pub fn run(app: &App, page: &RunPage, width: usize, doc: &mut Doc) {
    let run = &page.run;
    let (glyph, word, role) = match run.is_paused() {
        true => (app.glyphs.live(Mode::Paused), "paused", Role::of_live(Mode::Paused)),
        false => (app.glyphs.run(run.status), run.status.word(), Role::of_run(run.status)),
    };
    doc.push(
        Line::of(role, glyph)
            .and(role, " ")
            .and(role, word)
            .and(Role::Faint, "  ")
            .and(Role::Strong, &run.scope.to_string()),
    );
    if !run.summary.is_empty() {
        doc.blank();
        doc.paragraph(Role::Normal, &run.summary, width);
    }
    if !run.error_summary.is_empty() {
        doc.blank();
        doc.paragraph(Role::Bad, &run.error_summary, width);
    }
    // The row of the list is newer than the record while the run works.
    let row = app.view.run_index(run.run_id.as_str()).map(|index| app.view.run(index));
    let coverage = row.map_or(
        (run.coverage.files_covered, run.coverage.files_total, run.coverage.hunks_covered, run.coverage.hunks_total),
        |row| (row.files_covered, row.files_total, row.hunks_covered, row.hunks_total),
    );
    doc.heading("Coverage", "");
    let listed = page.output.as_ref().map(|output| &output.coverage);
    let not_due = listed.map_or(0, |listed| listed.files_total.saturating_sub(listed.files_due()));
    let carried = listed.unwrap_or(&run.coverage);
    gauge(app, "files", coverage.0 + carried.files_carried, coverage.1.saturating_sub(not_due), width, doc);
    gauge(app, "hunks", coverage.2 + carried.hunks_carried, coverage.3, width, doc);
    if let Some(said) = carried.carried_in_words() {
        doc.field("carried", NAMES, Role::Normal, &format!("{said}; {} reviewed", coverage.2), width);
    }
    if let Some(output) = &page.output {
        let left: Vec<_> = output.coverage.left_out.iter().collect();
        if !left.is_empty() {
            let mut out = text::count(left.len(), "file");
            if output.coverage.hunks_left_out > 0 {
                out.push_str(&format!(" with {}", text::count(output.coverage.hunks_left_out as usize, "hunk")));
            }
            doc.field("left out", NAMES, Role::Muted, &out, width);
            for file in left.iter().take(8) {
                let reason = super::super::load::reason_word(file.reason);
                doc.path(NAMES, Role::Normal, &file.path, (Role::Faint, reason), width);
            }
            if left.len() > 8 {
                let more = format!("{}and {} more", " ".repeat(NAMES), left.len() - 8);
                doc.push(Line::of(Role::Faint, &more));
            }
        }
    }
    let counts = row.map_or(run.finding_counts.by_priority(), |row| row.counts);
    let mut line = Line::of(Role::Muted, &format!("{:<NAMES$}", "findings"));
    if counts == [0; 4] {
        line = line.and(Role::Good, if run.status.is_terminal() { "none" } else { "none so far" });
    }
    for priority in Priority::ALL {
        if counts[priority.index()] > 0 {
            line = line
                .and(Role::of_priority(priority), priority_word(priority))
                .and(Role::Normal, &format!(" {}   ", counts[priority.index()]));
        }
    }
    doc.push(line);
    doc.heading("Tokens", "");
    if run.tokens.total() == 0 && run.window_peak == 0 && run.reviewer == "builtin" {
        doc.field("spent", NAMES, Role::Normal, "no tokens: the built-in reviewer works offline", width);
    } else {
        // The record of a run that works may not know yet what its worker knows.
        let now = app.pulse(run.run_id.as_str());
        let (tokens, cost) = now.map_or((run.tokens, run.cost), |pulse| (pulse.tokens, pulse.cost));
        doc.field("spent", NAMES, Role::Normal, &spent(&tokens, cost), width);
        if run.window_peak > 0 {
            let window =
                format!("at most {} of {} at once", thousands(run.window_peak), thousands(app.place.window_tokens));
            doc.field("window", NAMES, Role::Normal, &window, width);
        }
    }
    about(app, run, width, doc);
    set_aside(app, page.output.as_ref().map_or(&[][..], |output| output.rejected.as_slice()), width, doc);
    let notes = page.output.as_ref().map_or(&[][..], |output| output.notes.as_slice());
    if !notes.is_empty() {
        doc.heading("Notes", "");
        for note in notes {
            doc.paragraph(Role::Normal, note, width);
        }
    }
    if !run.status.is_terminal() && !page.journal.is_empty() {
        doc.heading("Now", "");
        for entry in page.journal.iter().rev().take(10).rev() {
            entry_line(app, entry, width, doc);
        }
    }
}

/// Reports of a model that did not hold against the code: how many, and unfolded which and why.
fn set_aside(app: &App, rejected: &[Rejected], width: usize, doc: &mut Doc) {
    if rejected.is_empty() {
        return;
    }
    let open = app.open_folds.contains(&FoldKey::SetAside);
    let sign = if open { app.glyphs.unfolded } else { app.glyphs.folded };
    doc.blank();
    let said = format!(" {} set aside", text::count(rejected.len(), "report"));
    doc.fold(FoldKey::SetAside, Line::of(Role::Faint, sign).and(Role::Title, &said));
    if !open {
        doc.push(Line::of(Role::Muted, "  what the model reported does not hold against the code"));
        return;
    }
    for Rejected { report, reason } in rejected {
        let mut put = |role: Role, said: &str| {
            for line in wrap(&text::one_line(said), width.saturating_sub(2)) {
                doc.push(Line::of(role, "  ").and(role, &line));
            }
        };
        put(Role::Normal, &report.title);
        put(Role::Accent, &reported_place(report));
        put(Role::Warn, reason);
        doc.push(Line::default());
    }
}

fn spent(tokens: &Usage, cost: f64) -> String {
    let mut parts = vec![format!("{} in", thousands(tokens.input)), format!("{} out", thousands(tokens.output))];
    if tokens.cached > 0 {
        parts.push(format!("{} cached", thousands(tokens.cached)));
    }
    if tokens.reasoning > 0 {
        parts.push(format!("{} reasoning", thousands(tokens.reasoning)));
    }
    if cost > 0.0 {
        parts.push(dollars(cost));
    }
    parts.join(", ")
}

/// `name  ━━━━━────  3 of 12`.
fn gauge(app: &App, name: &str, part: u32, whole: u32, width: usize, doc: &mut Doc) {
    let label = format!("  {part} of {whole}");
    let room = width.saturating_sub(NAMES + label.len()).min(32);
    let filled = if whole == 0 { 0 } else { room * part.min(whole) as usize / whole as usize };
    doc.push(
        Line::of(Role::Muted, &format!("{name:<NAMES$}"))
            .and(Role::Filled, &app.glyphs.filled.repeat(filled))
            .and(Role::Empty, &app.glyphs.empty.repeat(room - filled))
            .and(Role::Normal, &label),
    );
}

fn about(app: &App, run: &RunRecord, width: usize, doc: &mut Doc) {
    doc.heading("About", run.run_id.as_str());
    let mut field = |name: &str, value: &str| {
        if !value.is_empty() {
            doc.field(name, NAMES, Role::Normal, value, width);
        }
    };
    let reviewer =
        if run.model.is_empty() { run.reviewer.clone() } else { format!("{} ({})", run.reviewer, run.model) };
    field("reviewer", &reviewer);
    field(
        "asked by",
        &format!("{} from the {}", run.owner, run.source)
            .trim_start_matches(" from")
            .replace("from the cli", "from the command line"),
    );
    field("asked at", &app.full_moment(run.created_at));
    if run.status.is_terminal() {
        let took = run.updated_at.as_millisecond().saturating_sub(run.created_at.as_millisecond());
        field(
            "took",
            &if took < 10_000 {
                format!("{:.1} s", took as f64 / 1000.0)
            } else {
                super::super::app::duration(took / 1000)
            },
        );
    }
    if !matches!(run.scope, Scope::All) {
        field("base", short(&run.base_commit));
    }
    field("snapshot", short(&run.snapshot_commit));
    field("branch", &run.branch);
    if run.attempt > 1 {
        field("attempt", &run.attempt.to_string());
    }
    field("decision", &run.decision);
    if let Some(older) = run.waits_for.as_ref().filter(|_| run.status == RunStatus::Pending) {
        field("waits for", older.as_str());
    }
    field("finishing", &run.finish_note);
    if let Some(by) = &run.superseded_by {
        field("superseded", &format!("by {by}"));
    }
    if let Some(reason) = run.cancel_reason {
        let note = if run.cancel_note.is_empty() { String::new() } else { format!(": {}", run.cancel_note) };
        field("cancelled", &format!("{}{note}", reason.word().replace('_', " ")));
    }
}

pub fn file(app: &App, page: &FilePage, width: usize, doc: &mut Doc) {
    for line in wrap(&text::one_line(&page.path), width) {
        doc.push(Line::of(Role::Strong, &line));
    }
    let state = match &page.left_out {
        Some(reason) => format!("not reviewed: {reason}"),
        None => format!("{} reviewed in {}", text::count(page.hunks, "hunk"), page.run.scope),
    };
    doc.paragraph(Role::Muted, &state, width);
    if page.findings.is_empty() && page.left_out.is_none() {
        doc.blank();
        doc.push(Line::of(Role::Good, "no findings"));
    }
    if !page.findings.is_empty() {
        doc.heading("Findings", &page.findings.len().to_string());
    }
    let digits = page.findings.iter().map(|finding| digits(finding.line_start)).max().unwrap_or(1);
    for finding in &page.findings {
        let status = app.finding_by_id(finding.finding_id.as_str()).map_or(finding.status, |row| app.status(&row));
        let line = Line::of(Role::of_priority(finding.priority), priority_word(finding.priority))
            .and(Role::of_status(status), &format!(" {} ", app.glyphs.finding(status)))
            .and(Role::Muted, &format!("{:>digits$}  ", finding.line_start))
            .and(Role::Normal, &finding.title);
        doc.push(Line { source: Some(finding.line_start), ..line });
    }
}

pub fn log(app: &App, run: Option<&RunRecord>, entries: &[JournalEntry], width: usize, doc: &mut Doc) {
    if entries.is_empty() {
        let text = match run.map(|run| run.status) {
            Some(RunStatus::Pending) => "Waiting for a worker.",
            _ => "This run has no journal.",
        };
        doc.paragraph(Role::Muted, text, width);
        return;
    }
    for entry in entries {
        entry_line(app, entry, width, doc);
    }
    if run.is_some_and(|run| !run.status.is_terminal()) {
        doc.growth = Growth::EndFirst;
    }
}

fn entry_line(app: &App, entry: &JournalEntry, width: usize, doc: &mut Doc) {
    let time = entry.at.to_zoned(app.zone.clone()).strftime("%H:%M:%S").to_string();
    const SIGNS: usize = 12;
    let (word, role, what) = match &entry.event {
        RunEvent::Started { attempt: 1, .. } => ("started", Role::Muted, "a worker took the run on".to_owned()),
        RunEvent::Started { attempt, .. } => ("started", Role::Warn, format!("attempt {attempt}")),
        RunEvent::Phase { status } => ("phase", Role::Muted, status.to_string()),
        RunEvent::Planned { files, hunks, left_out } => {
            let out = if left_out.is_empty() { String::new() } else { format!(", {} left out", left_out.len()) };
            let what =
                format!("{} in {}{out}", text::count(*hunks as usize, "hunk"), text::count(*files as usize, "file"));
            ("planned", Role::Muted, what)
        }
        RunEvent::Finding { finding } => {
            let what = format!(
                "{} {}:{}: {}",
                priority_word(finding.priority),
                finding.repo_relative_path,
                finding.line_start,
                finding.title
            );
            ("finding", Role::of_priority(finding.priority), what)
        }
        RunEvent::Covered { file } => ("covered", Role::Good, file.path.clone()),
        RunEvent::Carried { carried } => {
            let hunks = text::count(carried.file.hunks.len(), "hunk");
            let found = match carried.findings.len() {
                0 => String::new(),
                n => format!(", {}", text::count(n, "finding")),
            };
            ("carried", Role::Good, format!("{}: {hunks} from {}{found}", carried.file.path, carried.from))
        }
        RunEvent::LeftOut { file, .. } => ("left out", Role::Muted, format!("{}: {}", file.path, file.reason)),
        RunEvent::Note { text } => ("note", Role::Normal, text.clone()),
        RunEvent::CancelAsked { reason } => ("cancel", Role::Warn, reason.word().replace('_', " ")),
        RunEvent::Failed { class, summary } => ("failed", Role::Bad, format!("{class}: {summary}")),
        RunEvent::Finished { status } => ("finished", Role::of_run(*status), status.to_string()),
        RunEvent::TurnAsked { turn, phase, asked, window } => {
            let what = format!("{turn}, {phase}: {asked} ({} of {} tokens)", window.tokens, window.limit);
            ("turn", Role::Accent, what)
        }
        RunEvent::TurnAnswered { turn, response, took_ms, .. } => {
            let what = format!(
                "{turn} in {}.{} s: {} in, {} cached, {} out{}",
                took_ms / 1000,
                took_ms % 1000 / 100,
                response.usage.input,
                response.usage.cached,
                response.usage.output,
                if response.calls.is_empty() {
                    String::new()
                } else {
                    format!(", {}", text::count(response.calls.len(), "tool call"))
                }
            );
            ("answered", Role::Normal, what)
        }
        RunEvent::Unanswered { turn, class, summary } => {
            ("unanswered", Role::Warn, format!("{turn}, {class}: {summary}"))
        }
        RunEvent::TookOver { reviewer, model, .. } => {
            let model = if model.is_empty() { String::new() } else { format!(" ({model})") };
            ("took over", Role::Warn, format!("{reviewer}{model}"))
        }
        RunEvent::Surrounded { context } => {
            let sections = text::count(context.sections.len(), "section");
            let patterns = match context.patterns.len() {
                0 => String::new(),
                count => format!(", {}", text::count(count, "learned pattern")),
            };
            let (tokens, budget) = (context.total_tokens, context.budget);
            ("context", Role::Muted, format!("{sections}, {tokens} of {budget} tokens{patterns}"))
        }
        RunEvent::Waiting { reason, wait_ms, .. } => {
            ("waiting", Role::Warn, format!("{reason}, {} s", wait_ms.div_ceil(1000)))
        }
        RunEvent::ToolAnswered { name, arguments, outcome, tokens, result, .. } => (
            "tool",
            Role::Muted,
            format!("{name} {arguments}: {outcome}, {}, {result}", text::count(*tokens as usize, "token")),
        ),
        RunEvent::Restated { finding, .. } => ("restated", Role::of_priority(finding.priority), finding.title.clone()),
        RunEvent::Repeated { title, line_start, .. } => {
            ("repeated", Role::Muted, format!("line {line_start}: {title}"))
        }
        RunEvent::Rejected { rejected, .. } => {
            let report = &rejected.report;
            ("rejected", Role::Warn, format!("{}: {}: {}", reported_place(report), report.title, rejected.reason))
        }
        RunEvent::Judged { opinion, reason, .. } => ("judged", Role::Muted, format!("{opinion}: {reason}")),
        RunEvent::CodeSmellsAccumulated { new_issues, total_issues, .. } => {
            ("findings", Role::Muted, format!("{new_issues} new, {total_issues} in all"))
        }
        RunEvent::SlidingWindowApplied { messages_removed, messages_kept, .. } => (
            "window",
            Role::Muted,
            format!("{} slid out, {messages_kept} kept", text::count(*messages_removed as usize, "message")),
        ),
        RunEvent::FinalCodeSmellsSummary { total_issues, loops, .. } => {
            let what = format!(
                "{} in {}",
                text::count(*total_issues as usize, "finding"),
                text::count(*loops as usize, "turn")
            );
            ("summary", Role::Muted, what)
        }
        RunEvent::Paused => ("paused", Role::Warn, "nothing is asked until it is resumed".to_owned()),
        RunEvent::Resumed => ("resumed", Role::Normal, String::new()),
        RunEvent::Unknown => ("?", Role::Faint, "an entry of a newer revdeck".to_owned()),
    };
    let column = time.len() + 2;
    for (index, line) in
        wrap(&text::one_line(&what), width.saturating_sub(column + SIGNS).max(12)).into_iter().enumerate()
    {
        let (time, word) = if index == 0 { (time.as_str(), word) } else { ("", "") };
        doc.push(
            Line::of(Role::Faint, &format!("{time:<column$}"))
                .and(role, &format!("{word:<SIGNS$}"))
                .and(Role::Normal, &line),
        );
    }
}
