//! Builds the page of the ledger: what each session of an assistant gets at its next turn, byte for byte, what is left
//! out and why, and what was delivered last.

use super::super::app::App;
use super::super::doc::{Doc, DocLine, wrap_words};
use super::super::page_data::HighlightSpans;
use super::super::theme::Role;
use super::push_spans;
use crate::domain::{FindingId, LedgerDelivery, LedgerForm, TokenCountPrecision, text};
use crate::runner::{LedgerPreview, SessionPreview};

/// Width of the column of tokens.
const TOKENS_WIDTH: usize = 5;

pub fn render_ledger(app: &App, preview: &LedgerPreview, width: usize, doc: &mut Doc) {
    for (index, session) in preview.sessions.iter().enumerate() {
        if index > 0 {
            doc.push_blank();
        }
        render_session(session, width, doc);
    }
    doc.push_blank();
    doc.push_heading("Delivered last", "");
    if preview.recent.is_empty() {
        doc.push_paragraph(Role::Muted, "No assistant has received a ledger yet.", width);
    }
    for delivery in &preview.recent {
        doc.push(describe_delivery(app, delivery));
    }
}

fn render_session(session: &SessionPreview, width: usize, doc: &mut Doc) {
    let name = match session.session.as_str() {
        "" => "A new session".to_owned(),
        id => text::sanitize_line(&format!("{} {id}", session.agent)).trim_start().to_owned(),
    };
    let Some(form) = session.form else {
        doc.push_heading(&name, "0 tokens");
        doc.push_paragraph(Role::Muted, "Nothing to say: it is told nothing at its next turn, not one byte.", width);
        render_omissions(session, width, doc);
        return;
    };
    doc.push_heading(&name, &format!("{} of {}", text::format_count(session.tokens, "token"), session.cap));
    let known = if form == LedgerForm::Unchanged { "It knows the rest. " } else { "" };
    doc.push_paragraph(Role::Muted, &format!("{known}Exactly this is what it is told at its next turn."), width);
    for line in &session.lines {
        push_ledger_line(&line.text, line.tokens, width, doc);
    }
    render_omissions(session, width, doc);
}

/// Pushes a line with its tokens. A line longer than the page is wrapped and indented, so that all of it is visible.
fn push_ledger_line(line: &str, tokens: usize, width: usize, doc: &mut Doc) {
    let line = text::sanitize_lines(line.trim_end_matches('\n'), 2);
    let margin = line.len() - line.trim_start().len();
    let room = width.saturating_sub(TOKENS_WIDTH + margin + 4).max(16);
    for (index, part) in wrap_words(line.trim_start(), room).into_iter().enumerate() {
        let count = if index == 0 { format!("{tokens:>4} ") } else { " ".repeat(TOKENS_WIDTH + 4) };
        let mut shown = DocLine::styled(Role::Faint, &count).with_span(Role::Normal, &" ".repeat(margin));
        push_spans(&mut shown, &part, &highlight_xml(&part), Role::Normal);
        doc.push(shown);
    }
}

/// Says what the ledger leaves out, and why.
fn render_omissions(session: &SessionPreview, width: usize, doc: &mut Doc) {
    let name = |ids: &[FindingId], total: usize| {
        let shown: Vec<&str> = ids.iter().take(3).map(FindingId::as_str).collect();
        let dots = if total > shown.len() { ", …" } else { "" };
        if shown.is_empty() { String::new() } else { format!(": {}{dots}", shown.join(", ")) }
    };
    let mut reasons = Vec::new();
    if session.left_out > 0 {
        let ids = name(&session.omitted, session.left_out);
        reasons.push(format!("{} beyond {} tokens (ledger_tokens){ids}", session.left_out, session.cap));
    }
    if !session.stale.is_empty() {
        let ids = name(&session.stale, session.stale.len());
        reasons.push(format!("{} whose code is no longer in the worktree{ids}", session.stale.len()));
    }
    if session.below_priority > 0 {
        reasons.push(format!("{} less urgent than ledger_priority", session.below_priority));
    }
    for reason in reasons {
        doc.push_paragraph(Role::Muted, &format!("left out: {reason}"), width);
    }
}

fn describe_delivery(app: &App, delivery: &LedgerDelivery) -> DocLine {
    let time = delivery.at.to_zoned(app.display.zone.clone()).strftime("%m-%d %H:%M").to_string();
    let reader = match (delivery.agent.as_str(), delivery.session.as_str()) {
        ("", "") => "unknown reader".to_owned(),
        (agent, session) => format!("{agent} {session}").trim().to_owned(),
    };
    let bound = match delivery.counted {
        TokenCountPrecision::Exact => "",
        TokenCountPrecision::AtMost => app.display.glyphs.at_most,
    };
    let tokens = format!("{bound}{}", text::format_count(count(delivery.tokens), "token"));
    let content = match delivery.form {
        LedgerForm::Forgotten => "forgot what it knew".to_owned(),
        LedgerForm::Unchanged => format!("{tokens}, unchanged"),
        LedgerForm::Whole => format!("{tokens}, {}", text::format_count(delivery.findings.len(), "finding")),
    };
    DocLine::styled(Role::Muted, &format!("{time}  "))
        .with_span(Role::Normal, &text::sanitize_line(&reader))
        .with_span(Role::Muted, &format!("  {content}"))
}

fn count(tokens: u64) -> usize {
    usize::try_from(tokens).unwrap_or(usize::MAX)
}

/// Returns the highlighted spans of a line of XML.
fn highlight_xml(line: &str) -> HighlightSpans {
    let mut spans = HighlightSpans::new();
    let mut quote = None;
    for (at, byte) in line.bytes().enumerate() {
        let at = at as u32;
        match (byte, quote) {
            (b'"', None) => quote = Some(at),
            (b'"', Some(start)) => {
                spans.push((start, at + 1, Role::String));
                quote = None;
            }
            (b'<' | b'>' | b'/' | b'=', None) => spans.push((at, at + 1, Role::Faint)),
            _ => {}
        }
    }
    spans
}
