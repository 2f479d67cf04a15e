//! Rows whose parts shorten until they fit into the width of the screen.

use crate::tui::doc::TextColumns;
use crate::tui::doc::{DocLine, DocSpan};
use crate::tui::theme::Role;

/// Columns between two parts.
pub const PART_GAP: usize = 3;

/// Part of a row in several forms.
#[derive(Debug, Clone, Default)]
pub struct RowPart {
    /// Forms from wide to narrow; an empty one leaves the part out.
    pub forms: Vec<Vec<DocSpan>>,
    /// Importance: the part with the lowest rank is shortened first; parts of the same rank take turns.
    pub rank: u8,
    /// The part and those behind it stand at the right edge.
    pub is_right: bool,
}

impl RowPart {
    /// Creates a part of one style from texts, wide to narrow.
    pub fn texts(rank: u8, role: Role, texts: &[&str]) -> Self {
        Self { forms: texts.iter().map(|text| spans([(role, *text)])).collect(), rank, is_right: false }
    }
}

/// Builds a form from pieces.
pub fn spans<'a>(pieces: impl IntoIterator<Item = (Role, &'a str)>) -> Vec<DocSpan> {
    let pieces = pieces.into_iter().filter(|(_, text)| !text.is_empty());
    pieces.map(|(role, text)| DocSpan { role, text: text.to_owned() }).collect()
}

fn width_of(form: &[DocSpan]) -> usize {
    form.iter().map(|span| span.text.width()).sum()
}

/// Returns the width of the parts in these forms, with the gaps between them.
fn total_width(parts: &[RowPart], chosen: &[usize]) -> usize {
    let widths = parts.iter().zip(chosen).map(|(part, form)| part.forms.get(*form).map_or(0, |form| width_of(form)));
    widths.filter(|width| *width > 0).map(|width| width + PART_GAP).sum::<usize>().saturating_sub(PART_GAP)
}

/// Returns true if the widest forms of all parts fit into a row.
pub fn fits_whole(parts: &[RowPart], width: usize) -> bool {
    total_width(parts, &vec![0; parts.len()]) <= width
}

/// Lays parts out in a row: the least important ones are shortened until all fit. A row that never fits is too long.
pub fn fit_row(parts: &[RowPart], width: usize) -> DocLine {
    let mut chosen = vec![0; parts.len()];
    while total_width(parts, &chosen) > width {
        let can_shrink = |at: &usize| chosen[*at] + 1 < parts[*at].forms.len();
        let Some(at) = (0..parts.len()).filter(can_shrink).min_by_key(|at| (parts[*at].rank, chosen[*at])) else {
            break;
        };
        chosen[at] += 1;
    }
    let slack = width.saturating_sub(total_width(parts, &chosen));
    let mut line = DocLine::default();
    let mut is_left = true;
    for (part, form) in parts.iter().zip(&chosen) {
        let Some(form) = part.forms.get(*form).filter(|form| width_of(form) > 0) else { continue };
        let mut gap = if line.spans.is_empty() { 0 } else { PART_GAP };
        if part.is_right && std::mem::take(&mut is_left) {
            gap += slack;
        }
        line = line.with_span(Role::Normal, &" ".repeat(gap));
        for span in form {
            line = line.with_span(span.role, &span.text);
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_important_part_is_shortened_first() {
        let right = RowPart { is_right: true, ..RowPart::texts(3, Role::Good, &["waiting 2 s", "waiting"]) };
        let parts = [
            RowPart::texts(2, Role::Title, &["claude", ""]),
            RowPart::texts(1, Role::Muted, &["HEAD~3..HEAD", "HEAD", ""]),
            right,
        ];
        for (width, expected) in [
            (40, "claude   HEAD~3..HEAD        waiting 2 s"),
            (35, "claude   HEAD~3..HEAD   waiting 2 s"),
            (34, "claude   HEAD          waiting 2 s"),
            (20, "claude   waiting 2 s"),
            (19, "        waiting 2 s"),
            (11, "waiting 2 s"),
            (8, " waiting"),
            (3, "waiting"),
        ] {
            assert_eq!(fit_row(&parts, width).plain_text(), expected, "at {width}");
        }
        assert_eq!(fit_row(&[], 9).plain_text(), "");
    }
}
