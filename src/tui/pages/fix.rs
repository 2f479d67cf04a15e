//! Builds the page of a fix: state, author, the review of the fix, and the patch.

use super::{NAMES, render_diff};
use crate::domain::{Fix, FixStatus, text};
use crate::tui::app::App;
use crate::tui::doc::{Doc, DocLine};
use crate::tui::keymap::{Action, KeyContext};
use crate::tui::page_data::FixPage;
use crate::tui::theme::Role;

fn role_of_status(status: FixStatus) -> Role {
    match status {
        FixStatus::Offered => Role::Accent,
        FixStatus::Applied => Role::Good,
        FixStatus::Failed => Role::Warn,
        FixStatus::Working | FixStatus::Reviewing => Role::Normal,
        FixStatus::Dropped | FixStatus::Undone => Role::Muted,
    }
}

/// Renders one line about the fix of a finding, for the finding's page.
pub fn render_state(app: &App, fix: &Fix, width: usize, doc: &mut Doc) {
    let dot = format!(" {} ", app.glyphs.dot);
    let mut parts = vec![match fix.status {
        _ if fix.is_half_applied() => "half applied".to_owned(),
        FixStatus::Working => format!("being made by {}", fix.reviewer),
        FixStatus::Reviewing => "made, and being reviewed".to_owned(),
        status => format!("{status}, made by {}", fix.reviewer),
    }];
    if !fix.files.is_empty() {
        parts.push(fix.format_diff_stat());
    }
    if !fix.verdict.is_empty() {
        parts.push(format!("review of the fix: {}", fix.verdict));
    }
    if fix.status == FixStatus::Failed {
        parts.push(fix.reason.clone());
    }
    if let Some(key) = app.keymap.key_of(KeyContext::Findings, Action::Fix) {
        match fix.status {
            _ if fix.is_half_applied() => parts.push(format!("{key} finishes or undoes it")),
            FixStatus::Offered => parts.push(format!("{key} to look, apply or drop")),
            FixStatus::Applied => parts.push(format!("{key} undoes it")),
            _ => {}
        }
    }
    doc.push_field("fix", NAMES, role_of_status(fix.status), &parts.join(&dot), width);
}

pub fn render_fix(app: &App, page: &FixPage, width: usize, doc: &mut Doc) {
    let fix = &page.fix;
    render_state(app, fix, width, doc);
    let mut who = fix.reviewer.clone();
    if !fix.model.is_empty() {
        who = format!("{who} ({})", fix.model);
    }
    if fix.tokens.total() > 0 {
        who = format!("{who}, {} tokens", super::format_brief(fix.tokens.total()));
    }
    if fix.cost > 0.0 {
        who = format!("{who}, {}", super::format_dollars(fix.cost));
    }
    doc.push_field("by", NAMES, Role::Normal, &who, width);
    doc.push_field("for", NAMES, Role::Normal, &text::format_count(fix.fixed_findings().count(), "finding"), width);
    for unfixed in &fix.left_out {
        let what = format!("{}: {}", unfixed.finding_id, unfixed.reason);
        doc.push_field("not fixed", NAMES, Role::Warn, &what, width);
    }
    if fix.follow_up_count > 0 {
        let times = text::format_count(fix.follow_up_count as usize, "time");
        doc.push_field("made again", NAMES, Role::Normal, &format!("{times}, after its review"), width);
    }
    if !fix.reason.is_empty() && fix.status != FixStatus::Failed {
        doc.push_field("note", NAMES, Role::Muted, &fix.reason, width);
    }
    if !fix.worktree.is_empty() {
        doc.push_field("in", NAMES, Role::Muted, &fix.worktree, width);
    }
    for diff in &page.diffs {
        doc.push(DocLine::default());
        render_diff(app, diff, width, doc);
    }
}
