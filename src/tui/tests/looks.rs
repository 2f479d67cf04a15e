//! Takes snapshots of a screen as users see it: one file for each view and size has the text, the styles of the dark and
//! of the light theme, and the screen in ASCII.

use std::fmt::Write as _;

use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier};

use super::support::{screen, send};
use crate::tui::app::App;
use crate::tui::message::AppMessage;
use crate::tui::theme::{Background, ColorDepth, Theme};
use crate::tui::{draw, glyphs};

/// Sizes of the snapshots of every view, in columns and rows.
pub const SIZES: [(u16, u16); 3] = [(160, 48), (100, 30), (80, 24)];

/// Takes a snapshot of a screen that `make` shows, at every size.
pub fn assert_looks_at_all_sizes(name: &str, mut make: impl FnMut(u16, u16) -> App) {
    for (columns, rows) in SIZES {
        assert_looks(name, &mut make(columns, rows));
    }
}

/// Takes a snapshot of the screen, dark, light and in ASCII. The app is as before, but its page is built again.
pub fn assert_looks(name: &str, app: &mut App) {
    let mut snapshot = screen(app);
    snapshot.push_str(&describe_styles(app));
    let before = app.display.glyphs;
    show_with_glyphs(app, glyphs::ASCII);
    let ascii = screen(app);
    assert!(ascii.is_ascii(), "{ascii}");
    show_with_glyphs(app, before);
    snapshot.push_str("~~~ ascii\n");
    snapshot.push_str(&ascii);
    insta::assert_snapshot!(format!("{name}-{}x{}", app.display.columns, app.display.rows), snapshot);
}

fn show_with_glyphs(app: &mut App, glyphs: glyphs::Glyphs) {
    app.display.glyphs = glyphs;
    let notice = app.notice.take();
    // Rebuilds the page, and the views.
    app.detail.width = 0;
    let (columns, rows) = (app.display.columns, app.display.rows);
    send(app, AppMessage::Resized { columns, rows });
    app.notice = notice;
}

fn draw_with(app: &mut App, background: Background) -> Buffer {
    let theme = Theme::builtin_for(background, ColorDepth::Indexed256);
    let before = std::mem::replace(&mut app.display.theme, theme);
    let mut buffer = Buffer::empty(Rect::new(0, 0, app.display.columns, app.display.rows));
    draw(app, &mut buffer);
    app.display.theme = before;
    buffer
}

/// Describes the styles of the cells: for each row a letter and a number of cells for each run of one style, then for each
/// letter the style in the dark and in the light theme.
fn describe_styles(app: &mut App) -> String {
    let (dark, light) = (draw_with(app, Background::Dark), draw_with(app, Background::Light));
    let mut styles: Vec<String> = Vec::new();
    let mut text = "~~~ styles\n".to_owned();
    for y in 0..dark.area.height {
        let mut runs: Vec<(usize, u16)> = Vec::new();
        for x in 0..dark.area.width {
            let style = format!("{} | {}", describe_cell(&dark[(x, y)]), describe_cell(&light[(x, y)]));
            let letter = styles.iter().position(|known| *known == style).unwrap_or_else(|| {
                styles.push(style);
                styles.len() - 1
            });
            match runs.last_mut() {
                Some((last, cells)) if *last == letter => *cells += 1,
                _ => runs.push((letter, 1)),
            }
        }
        let runs: Vec<String> = runs.iter().map(|(letter, cells)| format!("{}{cells}", name_style(*letter))).collect();
        let _ = writeln!(text, "{}", runs.join(" "));
    }
    text.push_str("~~~ dark | light\n");
    for (letter, style) in styles.iter().enumerate() {
        let _ = writeln!(text, "{} {style}", name_style(letter));
    }
    text
}

/// Returns `a` to `z`, then `aa`, `ab` and so on.
fn name_style(at: usize) -> String {
    let first = if at < 26 { String::new() } else { name_style(at / 26 - 1) };
    format!("{first}{}", char::from(b'a' + (at % 26) as u8))
}

fn describe_cell(cell: &Cell) -> String {
    let color = |color: Color| match color {
        Color::Reset => "-".to_owned(),
        Color::Indexed(number) => number.to_string(),
        Color::Rgb(red, green, blue) => format!("#{red:02x}{green:02x}{blue:02x}"),
        named => named.to_string(),
    };
    let mut text = format!("{} on {}", color(cell.fg), color(cell.bg));
    for (modifier, word) in [
        (Modifier::BOLD, "bold"),
        (Modifier::DIM, "dim"),
        (Modifier::ITALIC, "italic"),
        (Modifier::UNDERLINED, "underlined"),
        (Modifier::REVERSED, "reversed"),
        (Modifier::CROSSED_OUT, "crossed out"),
    ] {
        if cell.modifier.contains(modifier) {
            text.push(' ');
            text.push_str(word);
        }
    }
    text
}
