//! Draws the knowledge view.

use std::borrow::Cow;

use ratatui::layout::Rect;

use super::page::name_stance;
use super::{
    KnowledgeAreas, KnowledgePane, KnowledgeRow, KnowledgeView, LanguagePatterns, LearningMode, RankedPattern,
};
use crate::domain::text;
use crate::knowledge::pattern::{EditKind, Pattern, PatternOrigin};
use crate::report::figures::{format_brief, format_percent};
use crate::tui::doc::TextColumns;
use crate::tui::doc::shorten;
use crate::tui::draw::painter::Painter;
use crate::tui::draw::{draw_line, selection_style};
use crate::tui::pages::format_kind;
use crate::tui::theme::Role;

/// Column widths from the right: times seen, success bar, success rate.
const SEEN_COLUMNS: u16 = 6;
const BAR_COLUMNS: u16 = 9;
const RATE_COLUMNS: u16 = 6;
/// Column width of the success rate where no bar stands beside it: that of its name, with a gap.
const NARROW_RATE_COLUMNS: u16 = 9;
/// Column width of the edit or finding kind.
const KIND_COLUMNS: u16 = 18;
/// Fewest columns for kind and success bar.
const MIN_ROOMY_COLUMNS: u16 = 64;

/// Returns the columns at the right of the list: times seen, success.
fn figure_columns(roomy: bool) -> u16 {
    SEEN_COLUMNS + if roomy { BAR_COLUMNS + RATE_COLUMNS } else { NARROW_RATE_COLUMNS }
}

pub(super) fn draw(painter: &mut Painter<'_>, view: &KnowledgeView) {
    let areas = view.compute_areas(painter.app);
    if areas.list.height > 0 {
        draw_list(painter, view, &areas);
    }
    for y in areas.divider.top()..areas.divider.bottom() {
        painter.draw_text(areas.divider.x, y, 1, painter.app.display.glyphs.vertical, Role::Rule);
    }
    if areas.page.height > 0 {
        draw_page(painter, view, &areas);
    }
}

/// Draws a title with facts and a rule; `end` columns at the right stay free.
fn draw_title(painter: &mut Painter<'_>, area: Rect, has_keys: bool, name: &str, facts: &[(String, Role)], end: u16) {
    let Rect { x, y, width, .. } = area;
    let width = width.saturating_sub(end);
    let mut used = painter.draw_text(x, y, width, name, if has_keys { Role::Title } else { Role::Muted });
    for (fact, role) in facts.iter().filter(|(fact, _)| !fact.is_empty()) {
        let room = usize::from(width.saturating_sub(used + 2));
        if room >= 8 || fact.width() <= room {
            let shown = shorten(&text::sanitize_line(fact), room, painter.app.display.glyphs.ellipsis);
            used += 2 + painter.draw_text(x + used + 2, y, room as u16, &shown, *role);
        }
    }
    if used + 1 < width {
        painter.draw_rule(x + used + 1, y, width - used - 1, if has_keys { Role::Focus } else { Role::Rule });
    }
}

fn draw_list(painter: &mut Painter<'_>, view: &KnowledgeView, areas: &KnowledgeAreas) {
    let area = areas.list;
    let has_keys = view.focus == KnowledgePane::List;
    let roomy = area.width >= MIN_ROOMY_COLUMNS;
    let mut facts = Vec::new();
    if let Some(library) = &view.library {
        let all = library.pattern_count();
        let some = if view.passing < all { format!("{} of ", view.passing) } else { String::new() };
        facts.push((format!("{some}{}", text::format_count(all, "pattern")), Role::Muted));
        if !view.filter.is_empty() {
            facts.push((view.filter.clone(), Role::Accent));
        }
        if library.learning == LearningMode::Off {
            facts.push(("learning is off".to_owned(), Role::Warn));
        }
    }
    let columns = figure_columns(roomy);
    draw_title(painter, areas.list_title, has_keys, "Knowledge", &facts, columns);
    let Rect { y, .. } = areas.list_title;
    let right = area.right();
    if areas.list_title.width > columns + 14 && !painter.app.display.glyphs.uses_words() {
        painter.draw_text_right(right - columns, y, SEEN_COLUMNS, "seen", Role::Faint);
        painter.draw_text_right(right - 9, y, 9, "success", Role::Faint);
    }
    if view.library.is_some() && view.rows.is_empty() {
        painter.draw_text(area.x, area.y, area.width, "nothing passes the filter", Role::Faint);
    }
    let bar = selection_style(painter, has_keys);
    for row in 0..area.height {
        let at = view.cursor.offset + usize::from(row);
        let Some(shown) = view.rows.get(at) else { break };
        let line = Rect::new(area.x, area.y + row, area.width, 1);
        if at == view.cursor.selected {
            painter.fill(line, bar);
            painter.set_overlay_style(Some(bar));
        }
        match (shown, view.language_patterns(*shown), view.ranked_pattern(*shown)) {
            (KnowledgeRow::Language { passing, .. }, Some(shelf), _) => {
                draw_language(painter, view, (shelf, *passing), line)
            }
            (KnowledgeRow::Pattern { .. }, _, Some(known)) => draw_pattern(painter, known, line, roomy),
            _ => {}
        }
        painter.set_overlay_style(None);
    }
    painter.draw_scroll_thumb(area, view.cursor.offset, view.rows.len());
}

fn draw_language(
    painter: &mut Painter<'_>,
    view: &KnowledgeView,
    (shelf, passing): (&LanguagePatterns, usize),
    line: Rect,
) {
    let glyphs = painter.app.display.glyphs;
    let folded = view.folded.contains(&shelf.language);
    let sign = if folded { glyphs.folded } else { glyphs.unfolded };
    painter.draw_text(line.x, line.y, 1, sign, Role::Faint);
    let used = painter.draw_text(line.x + 2, line.y, line.width.saturating_sub(2), shelf.language.name(), Role::Strong);
    let count = passing.to_string();
    painter.draw_text(line.x + used + 4, line.y, line.width.saturating_sub(used + 4), &count, Role::Faint);
}

fn draw_pattern(painter: &mut Painter<'_>, known: &RankedPattern, line: Rect, roomy: bool) {
    let (glyphs, pattern) = (painter.app.display.glyphs, &known.pattern);
    let quiet = |role| if pattern.muted { Role::Dismissed } else { role };
    let Rect { x, y, width, .. } = line;
    if glyphs.uses_words() {
        painter.draw_text(x + 1, y, width.saturating_sub(1), &describe_pattern(known), quiet(Role::Normal));
        return;
    }
    painter.draw_text(x + 1, y, 1, glyphs.stance(pattern.stance), quiet(Role::from_stance(pattern.stance)));
    painter.draw_text(x + 3, y, 1, glyphs.origin(pattern.origin), quiet(Role::Muted));
    let mut left = x + 5;
    let (kind, rest) = split_description(pattern);
    if roomy {
        painter.draw_text(left, y, KIND_COLUMNS - 2, &kind, quiet(Role::Muted));
        left += KIND_COLUMNS;
    }
    let columns = figure_columns(roomy);
    let end = x + width.saturating_sub(columns);
    let room = end.saturating_sub(left);
    let described = shorten(
        &text::sanitize_line(if roomy { rest } else { &pattern.description }),
        usize::from(room),
        glyphs.ellipsis,
    );
    painter.draw_text(left, y, room, &described, quiet(Role::Normal));
    let (seen, role) = match known.seen() {
        0 => ("-".to_owned(), Role::Faint),
        seen => (format_brief(seen.into()), Role::Normal),
    };
    painter.draw_text_right(end, y, SEEN_COLUMNS, &seen, quiet(role));
    let standing = &known.standing;
    if roomy && standing.success_rate.is_some() {
        let cells = usize::from(BAR_COLUMNS - 2);
        let of = |share: Option<f64>| (share.unwrap_or(0.0).clamp(0.0, 1.0) * cells as f64).round() as usize;
        let (certain, likely) = (of(standing.at_least), of(standing.success_rate).max(of(standing.at_least)));
        for cell in 0..cells {
            let (glyph, role) = match cell {
                cell if cell < certain => (glyphs.filled, quiet(Role::Filled)),
                cell if cell < likely => (glyphs.filled, quiet(Role::Muted)),
                _ => (glyphs.empty, Role::Empty),
            };
            painter.draw_text(end + SEEN_COLUMNS + 2 + cell as u16, y, 1, glyph, role);
        }
    }
    if standing.success_rate.is_some() {
        painter.draw_text_right(
            x + width - RATE_COLUMNS,
            y,
            RATE_COLUMNS,
            &format_percent(standing.success_rate),
            quiet(Role::Normal),
        );
    }
}

/// Describes a pattern in a sentence, for a screen reader: what other screens say by signs, columns and bars.
fn describe_pattern(known: &RankedPattern) -> String {
    let pattern = &known.pattern;
    let (kind, rest) = split_description(pattern);
    let mut facts = vec![format!("{}, {kind}: {}", name_stance(pattern.stance), text::sanitize_line(rest))];
    match pattern.origin {
        PatternOrigin::Learned => {}
        PatternOrigin::Base => facts.push("came with revdeck".to_owned()),
        PatternOrigin::Imported => facts.push("imported".to_owned()),
    }
    if known.seen() > 0 {
        facts.push(format!("seen {}", text::format_count(known.seen() as usize, "time")));
    }
    if known.standing.success_rate.is_some() {
        facts.push(format!("success {}", format_percent(known.standing.success_rate)));
    }
    if pattern.muted {
        facts.push("muted".to_owned());
    }
    facts.join(", ")
}

/// Splits the description: a label of the edit or finding kind, and the description without this prefix.
fn split_description(pattern: &Pattern) -> (Cow<'static, str>, &str) {
    let kind: Cow<'static, str> = match pattern.edit {
        EditKind::Other => pattern.kind.label().into(),
        EditKind::WrongDeclaration => "declaration".into(),
        EditKind::MissingErrorHandling => "unhandled error".into(),
        EditKind::NeedlessStatement => "needless code".into(),
        EditKind::MissingStatement => "missing code".into(),
        edit => format_kind(edit.word()).into(),
    };
    let description = pattern.description.as_str();
    let known = [&format_kind(pattern.edit.word()), "known false alarm", "mistake"];
    let rest = known.iter().find_map(|prefix| description.strip_prefix(prefix)?.strip_prefix(": "));
    (kind, rest.unwrap_or(description))
}

fn draw_page(painter: &mut Painter<'_>, view: &KnowledgeView, areas: &KnowledgeAreas) {
    let has_keys = view.focus == KnowledgePane::Page || view.is_empty();
    let name = match view.selected_row() {
        _ if view.is_empty() => "Knowledge",
        Some(KnowledgeRow::Language { .. }) => "Language",
        _ => "Pattern",
    };
    draw_title(painter, areas.page_title, has_keys, name, &[], 0);
    let area = areas.page;
    for row in 0..area.height {
        let Some(line) = view.doc.lines.get(view.scroll + usize::from(row)) else { break };
        draw_line(painter, area.x, area.y + row, area.width, line, "");
    }
    painter.draw_scroll_thumb(area, view.scroll, view.doc.lines.len());
}
