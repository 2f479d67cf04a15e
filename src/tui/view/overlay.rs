//! Draws overlays: help, menus, confirmations, prompts.

use ratatui::layout::Rect;
use unicode_width::UnicodeWidthStr;

use super::super::app::{ConfirmAction, InputPrompt, InputPromptKind, Menu};
use super::super::doc;
use super::super::filter;
use super::super::fixes::FixOrder;
use super::super::keymap::Action;
use super::super::knowledge::KnowledgeOrder;
use super::super::layout::ScreenLayout;
use super::super::theme::Role;
use super::super::update;
use super::painter::Painter;
use crate::domain::text;

/// Draws an empty box with a title in the middle of the screen (or above the footer) and returns its inside.
fn draw_window(painter: &mut Painter<'_>, width: u16, height: u16, low: bool, title: &str) -> Rect {
    let screen = painter.buffer.area;
    let (width, height) = (width.min(screen.width.saturating_sub(2)), height.min(screen.height.saturating_sub(2)));
    let x = (screen.width - width) / 2;
    let y = if low { screen.height.saturating_sub(height + 2) } else { (screen.height - height) / 2 };
    let area = Rect::new(x, y, width, height);
    painter.fill(area, painter.style(Role::Normal));
    let glyphs = painter.app.glyphs;
    let [top_left, top_right, bottom_left, bottom_right] = glyphs.corners;
    let (right, bottom) = (area.right() - 1, area.bottom() - 1);
    painter.draw_rule(x + 1, y, width - 2, Role::Focus);
    painter.draw_rule(x + 1, bottom, width - 2, Role::Focus);
    for (x, y, glyph) in
        [(x, y, top_left), (right, y, top_right), (x, bottom, bottom_left), (right, bottom, bottom_right)]
    {
        painter.draw_text(x, y, 1, glyph, Role::Focus);
    }
    for row in y + 1..bottom {
        painter.draw_text(x, row, 1, glyphs.vertical, Role::Focus);
        painter.draw_text(right, row, 1, glyphs.vertical, Role::Focus);
    }
    painter.draw_text(x + 2, y, width.saturating_sub(4), &format!(" {title} "), Role::Title);
    Rect::new(x + 2, y + 1, width.saturating_sub(4), height.saturating_sub(2))
}

/// Draws every key of the keymap in groups.
pub fn draw_help(painter: &mut Painter<'_>, offset: usize) {
    let app = painter.app;
    let mut groups: Vec<(&str, Vec<(String, &str)>)> = Vec::new();
    for (action, group, _, _, long) in Action::TABLE {
        if *group == "Answer" {
            continue;
        }
        let keys: Vec<String> = app.keymap.all_keys_of(*action).iter().take(2).map(ToString::to_string).collect();
        let row = (if keys.is_empty() { app.glyphs.dash.to_owned() } else { keys.join(" ") }, *long);
        match groups.iter_mut().find(|(name, _)| name == group) {
            Some((_, rows)) => rows.push(row),
            None => groups.push((group, vec![row])),
        }
    }
    let screen = painter.buffer.area;
    let columns = if screen.width >= 110 { 2 } else { 1 };
    // The groups keep their order; the columns get about the same height.
    let size = |rows: &Vec<(String, &str)>| rows.len() + 2;
    let total: usize = groups.iter().map(|(_, rows)| size(rows)).sum();
    let mut dealt: Vec<Vec<Option<(String, &str)>>> = vec![Vec::new(); columns];
    let mut titles: Vec<Vec<(usize, &str)>> = vec![Vec::new(); columns];
    let mut column = 0;
    for (name, rows) in &groups {
        let here = dealt[column].len();
        if column + 1 < columns && here > 0 && here + size(rows) / 2 > total / columns {
            column += 1;
        }
        let lines = &mut dealt[column];
        if !lines.is_empty() {
            lines.push(None);
        }
        titles[column].push((lines.len(), name));
        lines.push(None);
        lines.extend(rows.iter().cloned().map(Some));
    }
    let height = dealt.iter().map(Vec::len).max().unwrap_or(0);
    let inside = draw_window(painter, 56 * columns as u16 + 6, height as u16 + 2, false, "Help");
    let offset = offset.min(height.saturating_sub(usize::from(inside.height)));
    let each = inside.width / columns as u16;
    for (column, lines) in dealt.iter().enumerate() {
        let x = inside.x + each * column as u16;
        for row in 0..inside.height {
            let at = offset + usize::from(row);
            let y = inside.y + row;
            if let Some((_, name)) = titles[column].iter().find(|(line, _)| *line == at) {
                painter.draw_text(x, y, each - 2, name, Role::Title);
            } else if let Some(Some((keys, long))) = lines.get(at) {
                let used = painter.draw_text(x, y, 18, keys, Role::Key).max(16) + 1;
                painter.draw_text(x + used, y, each.saturating_sub(used + 2), long, Role::Normal);
            }
        }
    }
    painter.draw_scroll_thumb(Rect { width: inside.width + 1, ..inside }, offset, height);
}

pub fn draw_menu(painter: &mut Painter<'_>, menu: &Menu) {
    let label = menu.items.iter().map(|item| item.label.width()).max().unwrap_or(0) as u16;
    let hint = menu.items.iter().map(|item| item.hint.width()).max().unwrap_or(0) as u16;
    let inside = draw_window(painter, (label + hint + 12).max(30), menu.items.len() as u16 + 2, false, menu.title);
    let bar = painter.style(Role::Selected);
    for (row, item) in menu.items.iter().enumerate().take(usize::from(inside.height)) {
        let y = inside.y + row as u16;
        if row == menu.selected {
            painter.fill(Rect::new(inside.x - 1, y, inside.width + 2, 1), bar);
            painter.set_overlay_style(Some(ratatui::style::Style { fg: None, ..bar }));
        }
        painter.draw_text(inside.x, y, 2, &(row + 1).to_string(), Role::Key);
        painter.draw_text(inside.x + 3, y, label, &item.label, Role::Normal);
        let x = inside.x + 3 + label + 3;
        painter.draw_text(x, y, inside.right().saturating_sub(x), &item.hint, Role::Muted);
        painter.set_overlay_style(None);
    }
}

pub fn draw_confirm(painter: &mut Painter<'_>, question: &ConfirmAction, text: &str) {
    let width = (text.width() as u16 + 6).clamp(40, painter.buffer.area.width.saturating_sub(2).max(40));
    let lines = doc::wrap_words(text, usize::from(width.saturating_sub(4)));
    let title = match question {
        ConfirmAction::Cancel(_) => "Cancel",
        ConfirmAction::Fix(FixOrder::Make(_)) => "Fix",
        ConfirmAction::Fix(FixOrder::Apply(_)) => "Apply",
        ConfirmAction::Fix(FixOrder::Undo(_)) => "Undo",
        ConfirmAction::Fix(FixOrder::Drop(_)) => "Drop",
        ConfirmAction::Knowledge(KnowledgeOrder::Forget { .. }) => "Forget",
        ConfirmAction::Knowledge(_) => "Export",
    };
    let inside = draw_window(painter, width, lines.len() as u16 + 4, false, title);
    for (row, line) in (1..).zip(&lines) {
        painter.draw_text(inside.x, inside.y + row, inside.width, line, Role::Normal);
    }
}

pub fn draw_prompt(painter: &mut Painter<'_>, prompt: &InputPrompt, layout: &ScreenLayout) {
    match &prompt.kind {
        InputPromptKind::Reason { lines } => draw_reason_prompt(painter, prompt, lines.len()),
        InputPromptKind::Filter { .. } => {
            let completion = filter::complete(prompt.line.text(), prompt.line.cursor());
            let help: Vec<&str> = completion.candidates.iter().map(String::as_str).collect();
            draw_input_line(painter, layout, "filter", prompt, &help);
        }
        InputPromptKind::Search { .. } => draw_input_line(painter, layout, "search", prompt, &[]),
        InputPromptKind::Commit => {
            draw_input_line(painter, layout, "commit", prompt, &["any revision: HEAD~2, v1.0, 3fa2c1"])
        }
        InputPromptKind::Snooze => {
            draw_input_line(painter, layout, "snooze", prompt, &["for 30m, 2h, 1d", "until 14:00", "off"]);
        }
        InputPromptKind::Patterns { .. } => {
            draw_input_line(painter, layout, "filter", prompt, &["language, kind, origin, words"]);
        }
        InputPromptKind::Export => draw_input_line(painter, layout, "export to", prompt, &[]),
        InputPromptKind::Range => {
            draw_input_line(painter, layout, "range", prompt, &["A..B from A to B", "A...B since B left A"]);
        }
    }
}

/// Draws `filter  status:open p:0▏   undecided open …` in place of the message line.
fn draw_input_line(painter: &mut Painter<'_>, layout: &ScreenLayout, name: &str, prompt: &InputPrompt, help: &[&str]) {
    painter.fill(layout.notice, painter.style(Role::Normal));
    let area = Rect { y: layout.notice.bottom().saturating_sub(1), height: 1, ..layout.notice };
    let x = 1 + painter.draw_text(1, area.y, 10, name, Role::Title) + 2;
    let width = area.width.saturating_sub(x + 1);
    let help_width: u16 = if help.is_empty() { 0 } else { (width * 2 / 5).max(16) };
    let field = Rect::new(x, area.y, width.saturating_sub(help_width), 1);
    draw_line_edit(painter, field, prompt);
    let mut at = field.right() + 2;
    for (index, word) in help.iter().enumerate() {
        let room = area.right().saturating_sub(at + 1);
        if room < 4 {
            break;
        }
        let role = if index == 0 { Role::Accent } else { Role::Muted };
        at += painter.draw_text(at, area.y, room, word, role) + 2;
    }
}

/// Draws the typed text, scrolled so that the cursor is visible.
fn draw_line_edit(painter: &mut Painter<'_>, field: Rect, prompt: &InputPrompt) {
    painter.fill(field, painter.style(Role::Prompt));
    let text = prompt.line.text();
    let before = text.get(..prompt.line.cursor()).unwrap_or(text);
    let room = usize::from(field.width.saturating_sub(1));
    let shown_before = doc::fit_end(before, room);
    let used = painter.draw_text(field.x, field.y, field.width, shown_before, Role::Prompt);
    if prompt.line.is_suggestion() {
        // Styled as a selection, because the next character replaces it.
        painter.restyle(Rect::new(field.x, field.y, used, 1), painter.style(Role::Selected));
    }
    let after = &text[before.len()..];
    let cursor = field.x + used;
    painter.draw_text(cursor, field.y, field.right().saturating_sub(cursor), after, Role::Prompt);
    let style = painter.style(Role::Prompt).add_modifier(ratatui::style::Modifier::REVERSED);
    painter.restyle(Rect::new(cursor.min(field.right().saturating_sub(1)), field.y, 1, 1), style);
}

fn draw_reason_prompt(painter: &mut Painter<'_>, prompt: &InputPrompt, count: usize) {
    let reasons = update::dismissal_reasons(painter.app);
    let title = format!("Why dismiss {}?", text::format_count(count, "finding"));
    let inside = draw_window(painter, 66, reasons.len() as u16 + 5, false, &title);
    draw_line_edit(painter, Rect::new(inside.x, inside.y + 1, inside.width, 1), prompt);
    for (row, reason) in reasons.iter().enumerate() {
        let y = inside.y + 3 + row as u16;
        if y >= inside.bottom() {
            break;
        }
        let chosen = row + 1 == prompt.choice;
        let sign = if chosen { painter.app.glyphs.bar } else { " " };
        painter.draw_text(inside.x, y, 1, sign, Role::Accent);
        painter.draw_text(inside.x + 2, y, inside.width - 2, reason, if chosen { Role::Normal } else { Role::Muted });
    }
}
