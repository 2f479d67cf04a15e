//! The knowledge view: patterns by language on one side, the page of the selected one on the other.

use std::borrow::Cow;

use ratatui::layout::Rect;
use unicode_width::UnicodeWidthStr;

use super::super::doc::shorten;
use super::super::knowledge::{Areas, Knowledge, Known, Learning, Row, Shelf, Side, areas};
use super::super::pages::kind_words;
use super::super::theme::Role;
use super::detail::draw_line;
use super::findings::short_kind;
use super::frame;
use super::paint::Painter;
use crate::domain::text;
use crate::knowledge::pattern::{EditKind, Pattern};
use crate::report::figures::{brief, percent};

/// Columns of a row from the right: how often it was seen, the bar of success, its rate.
const SEEN: u16 = 6;
const BAR: u16 = 9;
const RATE: u16 = 6;
/// What the edit does, or the kind of finding, in words.
const KIND: u16 = 18;
/// From so many columns on a row has its kind and its bar.
const ROOMY: u16 = 64;

pub fn draw(painter: &mut Painter<'_>, view: &Knowledge) {
    let areas = areas(painter.app);
    if areas.list.height > 0 {
        list(painter, view, &areas);
    }
    for y in areas.divider.top()..areas.divider.bottom() {
        painter.put(areas.divider.x, y, 1, painter.app.glyphs.vertical, Role::Rule);
    }
    if areas.page.height > 0 {
        page(painter, view, &areas);
    }
}

/// A title, facts about it, and a rule up to `end`.
fn title(painter: &mut Painter<'_>, area: Rect, has_keys: bool, name: &str, facts: &[(String, Role)], end: u16) {
    let Rect { x, y, width, .. } = area;
    let width = width.saturating_sub(end);
    let mut used = painter.put(x, y, width, name, if has_keys { Role::Title } else { Role::Muted });
    for (fact, role) in facts.iter().filter(|(fact, _)| !fact.is_empty()) {
        let room = usize::from(width.saturating_sub(used + 2));
        if room >= 8 || fact.width() <= room {
            let shown = shorten(&text::one_line(fact), room, painter.app.glyphs.ellipsis);
            used += 2 + painter.put(x + used + 2, y, room as u16, &shown, *role);
        }
    }
    if used + 1 < width {
        painter.rule(x + used + 1, y, width - used - 1, if has_keys { Role::Focus } else { Role::Rule });
    }
}

fn list(painter: &mut Painter<'_>, view: &Knowledge, areas: &Areas) {
    let area = areas.list;
    let has_keys = view.side == Side::List;
    let roomy = area.width >= ROOMY;
    let mut facts = Vec::new();
    if let Some(library) = &view.library {
        let all = library.count();
        let some = if view.passing < all { format!("{} of ", view.passing) } else { String::new() };
        facts.push((format!("{some}{}", text::count(all, "pattern")), Role::Muted));
        if !view.filter.is_empty() {
            facts.push((view.filter.clone(), Role::Accent));
        }
        if library.learning == Learning::Off {
            facts.push(("learning is off".to_owned(), Role::Warn));
        }
    }
    let columns = SEEN + RATE + if roomy { BAR } else { 0 };
    title(painter, areas.list_title, has_keys, "Knowledge", &facts, columns);
    let Rect { y, .. } = areas.list_title;
    let right = area.right();
    painter.put_right(right - columns, y, SEEN, "seen", Role::Faint);
    painter.put_right(right - 9, y, 9, "success", Role::Faint);
    if view.library.is_some() && view.rows.is_empty() {
        painter.put(area.x, area.y, area.width, "nothing passes the filter", Role::Faint);
    }
    let bar = frame::selection(painter, has_keys);
    for row in 0..area.height {
        let at = view.cursor.offset + usize::from(row);
        let Some(shown) = view.rows.get(at) else { break };
        let line = Rect::new(area.x, area.y + row, area.width, 1);
        if at == view.cursor.at {
            painter.fill(line, bar);
            painter.over(Some(bar));
        }
        match (shown, view.shelf(*shown), view.known(*shown)) {
            (Row::Shelf { passing, .. }, Some(shelf), _) => language(painter, view, (shelf, *passing), line),
            (Row::Pattern { .. }, _, Some(known)) => pattern(painter, known, line, roomy),
            _ => {}
        }
        painter.over(None);
    }
    // On the rule between the halves where there is one.
    let beside = u16::from(areas.divider.x == area.right() + 1);
    painter.thumb(Rect { width: area.width + beside, ..area }, view.cursor.offset, view.rows.len());
}

fn language(painter: &mut Painter<'_>, view: &Knowledge, (shelf, passing): (&Shelf, usize), line: Rect) {
    let glyphs = painter.app.glyphs;
    let folded = view.folded.contains(&shelf.language);
    let sign = if folded { glyphs.folded } else { glyphs.unfolded };
    painter.put(line.x, line.y, 1, sign, Role::Faint);
    let used = painter.put(line.x + 2, line.y, line.width.saturating_sub(2), shelf.language.name(), Role::Strong);
    let count = passing.to_string();
    painter.put(line.x + used + 4, line.y, line.width.saturating_sub(used + 4), &count, Role::Faint);
}

fn pattern(painter: &mut Painter<'_>, known: &Known, line: Rect, roomy: bool) {
    let (glyphs, pattern) = (painter.app.glyphs, &known.pattern);
    let quiet = |role| if pattern.muted { Role::Dismissed } else { role };
    let Rect { x, y, width, .. } = line;
    painter.put(x + 1, y, 1, glyphs.stance(pattern.stance), quiet(Role::of_stance(pattern.stance)));
    painter.put(x + 3, y, 1, glyphs.origin(pattern.origin), quiet(Role::Muted));
    let mut left = x + 5;
    let (kind, rest) = split(pattern);
    if roomy {
        painter.put(left, y, KIND - 2, &kind, quiet(Role::Muted));
        left += KIND;
    }
    let columns = SEEN + RATE + if roomy { BAR } else { 0 };
    let end = x + width.saturating_sub(columns);
    let room = end.saturating_sub(left);
    let described =
        shorten(&text::one_line(if roomy { rest } else { &pattern.description }), usize::from(room), glyphs.ellipsis);
    painter.put(left, y, room, &described, quiet(Role::Normal));
    let (seen, role) = match known.seen() {
        0 => ("-".to_owned(), Role::Faint),
        seen => (brief(seen.into()), Role::Normal),
    };
    painter.put_right(end, y, SEEN, &seen, quiet(role));
    let standing = &known.standing;
    if roomy && standing.success_rate.is_some() {
        let cells = usize::from(BAR - 2);
        let of = |share: Option<f64>| (share.unwrap_or(0.0).clamp(0.0, 1.0) * cells as f64).round() as usize;
        let (certain, likely) = (of(standing.at_least), of(standing.success_rate).max(of(standing.at_least)));
        for cell in 0..cells {
            let (glyph, role) = match cell {
                cell if cell < certain => (glyphs.filled, quiet(Role::Filled)),
                cell if cell < likely => (glyphs.filled, quiet(Role::Muted)),
                _ => (glyphs.empty, Role::Empty),
            };
            painter.put(end + SEEN + 2 + cell as u16, y, 1, glyph, role);
        }
    }
    if standing.success_rate.is_some() {
        painter.put_right(x + width - RATE, y, RATE, &percent(standing.success_rate), quiet(Role::Normal));
    }
}

/// What the edit does, or the kind of finding, in words for a column of their own, and the description without them.
fn split(pattern: &Pattern) -> (Cow<'static, str>, &str) {
    let kind: Cow<'static, str> = match pattern.edit {
        EditKind::Other => short_kind(pattern.kind).into(),
        EditKind::WrongDeclaration => "declaration".into(),
        EditKind::MissingErrorHandling => "unhandled error".into(),
        EditKind::NeedlessStatement => "needless code".into(),
        EditKind::MissingStatement => "missing code".into(),
        edit => kind_words(edit.word()).into(),
    };
    let description = pattern.description.as_str();
    let known = [&kind_words(pattern.edit.word()), "known false alarm", "mistake"];
    let rest = known.iter().find_map(|prefix| description.strip_prefix(prefix)?.strip_prefix(": "));
    (kind, rest.unwrap_or(description))
}

fn page(painter: &mut Painter<'_>, view: &Knowledge, areas: &Areas) {
    let has_keys = view.side == Side::Page || view.is_empty();
    let name = match view.row() {
        _ if view.is_empty() => "Knowledge",
        Some(Row::Shelf { .. }) => "Language",
        _ => "Pattern",
    };
    title(painter, areas.page_title, has_keys, name, &[], 0);
    let area = areas.page;
    for row in 0..area.height {
        let Some(line) = view.doc.lines.get(view.scroll + usize::from(row)) else { break };
        draw_line(painter, area.x, area.y + row, area.width, line, "");
    }
    painter.thumb(area, view.scroll, view.doc.lines.len());
}
