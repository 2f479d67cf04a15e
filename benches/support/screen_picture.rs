//! Draws screens of a terminal as SVG. Rows that several screens share are written once.

use std::collections::HashMap;
use std::fmt::Write;

const CELL_WIDTH: f32 = 8.4;
const CELL_HEIGHT: f32 = 18.0;
const MARGIN: f32 = 12.0;
const BACKGROUND: &str = "#16181d";
const FOREGROUND: &str = "#d8dee9";
/// The sixteen colours of the palette, as xterm has them.
const PALETTE: [&str; 16] = [
    "#000000", "#cd3131", "#0dbc79", "#e5e510", "#2472c8", "#bc3fbc", "#11a8cd", "#e5e5e5", "#666666", "#f14c4c",
    "#23d18b", "#f5f543", "#3b8eea", "#d670d6", "#29b8db", "#ffffff",
];

/// A screen as SVG rows, and the seconds for which it is shown.
pub struct Frame {
    rows: Vec<String>,
    columns: u16,
    seconds: f32,
}

impl Frame {
    pub fn from_screen(screen: &vt100::Screen, seconds: f32) -> Self {
        let (rows, columns) = screen.size();
        let (rows, columns): (u16, u16) = (rows.into(), columns.into());
        Self { rows: (0..rows).map(|row| render_row(screen, row, columns)).collect(), columns, seconds }
    }

    fn size(&self) -> (f32, f32) {
        let width = f32::from(self.columns) * CELL_WIDTH + 2.0 * MARGIN;
        (width, self.rows.len() as f32 * CELL_HEIGHT + 2.0 * MARGIN)
    }
}

/// Style of a run of cells.
#[derive(Clone, PartialEq, Eq)]
struct CellStyle {
    foreground: String,
    background: String,
    is_bold: bool,
    is_dim: bool,
    is_italic: bool,
    is_underlined: bool,
}

fn color(color: vt100::Color, default: &str) -> String {
    match color {
        vt100::Color::Default => default.to_owned(),
        vt100::Color::Rgb(r, g, b) => format!("#{r:02x}{g:02x}{b:02x}"),
        vt100::Color::Idx(index @ 0..16) => PALETTE[usize::from(index)].to_owned(),
        vt100::Color::Idx(index @ 16..232) => {
            let level = |n: u8| if n == 0 { 0 } else { 55 + 40 * n };
            let index = index - 16;
            format!("#{:02x}{:02x}{:02x}", level(index / 36), level(index / 6 % 6), level(index % 6))
        }
        vt100::Color::Idx(index) => {
            let level = 8 + 10 * (index - 232);
            format!("#{level:02x}{level:02x}{level:02x}")
        }
    }
}

fn style_of(cell: &vt100::Cell) -> CellStyle {
    let (mut foreground, mut background) = (color(cell.fgcolor(), FOREGROUND), color(cell.bgcolor(), BACKGROUND));
    if cell.inverse() {
        std::mem::swap(&mut foreground, &mut background);
    }
    CellStyle {
        foreground,
        background,
        is_bold: cell.bold(),
        is_dim: cell.dim(),
        is_italic: cell.italic(),
        is_underlined: cell.underline(),
    }
}

/// Renders a row at the origin: backgrounds first, then the texts.
fn render_row(screen: &vt100::Screen, row: u16, columns: u16) -> String {
    let mut runs: Vec<(u16, u16, String, CellStyle)> = Vec::new();
    for column in 0..columns {
        let Some(cell) = screen.cell(row, column).filter(|cell| !cell.is_wide_continuation()) else { continue };
        let style = style_of(cell);
        let width = if cell.is_wide() { 2 } else { 1 };
        let text = if cell.contents().is_empty() { " " } else { cell.contents() };
        match runs.last_mut() {
            Some((start, length, run, last)) if *last == style && *start + *length == column => {
                run.push_str(text);
                *length += width;
            }
            _ => runs.push((column, width, text.to_owned(), style)),
        }
    }
    let mut svg = String::new();
    for (start, length, _, style) in &runs {
        if style.background != BACKGROUND {
            let (x, width) = (f32::from(*start) * CELL_WIDTH, f32::from(*length) * CELL_WIDTH);
            let _ = write!(
                svg,
                r#"<rect x="{x:.1}" width="{width:.1}" height="{CELL_HEIGHT}" fill="{}"/>"#,
                style.background
            );
        }
    }
    for (start, length, text, style) in &runs {
        // Some programs drop blanks at the ends of a text.
        let lead = text.len() - text.trim_start_matches(' ').len();
        let text = text.trim_matches(' ');
        if text.is_empty() {
            continue;
        }
        let x = (f32::from(*start) + lead as f32) * CELL_WIDTH;
        let width = f32::from(text_cells(text, *length)) * CELL_WIDTH;
        let mut extra = String::new();
        for (is_set, attribute) in [
            (style.is_bold, r#" font-weight="bold""#),
            (style.is_dim, r#" opacity="0.65""#),
            (style.is_italic, r#" font-style="italic""#),
            (style.is_underlined, r#" text-decoration="underline""#),
        ] {
            if is_set {
                extra.push_str(attribute);
            }
        }
        let _ = write!(
            svg,
            r#"<text x="{x:.1}" y="13.5" textLength="{width:.1}" fill="{}"{extra}>{}</text>"#,
            style.foreground,
            escape(text)
        );
    }
    svg
}

/// Number of cells of a text, at most `length`.
fn text_cells(text: &str, length: u16) -> u16 {
    use unicode_width::UnicodeWidthStr;
    u16::try_from(text.width()).unwrap_or(length).min(length)
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Begins a picture of a size with its styles, up to the text that follows.
fn begin(frame: &Frame, styles: &str) -> String {
    let (width, height) = frame.size();
    format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0} {height:.0}" width="{width:.0}" height="{height:.0}"><style>text{{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;white-space:pre}}{styles}</style><rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>"#
    )
}

fn place(row: usize) -> String {
    format!("translate({MARGIN} {:.1})", MARGIN + row as f32 * CELL_HEIGHT)
}

/// Renders one screen.
pub fn render_still(frame: &Frame) -> String {
    let mut svg = begin(frame, "");
    for (row, content) in frame.rows.iter().enumerate().filter(|(_, content)| !content.is_empty()) {
        let _ = write!(svg, r#"<g transform="{}">{content}</g>"#, place(row));
    }
    svg.push_str("</svg>\n");
    svg
}

/// Renders screens that follow each other, again and again.
pub fn render_animation(frames: &[Frame]) -> String {
    let Some(first) = frames.first() else { return String::new() };
    let total: f32 = frames.iter().map(|frame| frame.seconds).sum();
    let mut styles = String::new();
    let mut from = 0.0;
    for (number, frame) in frames.iter().enumerate() {
        let to = from + frame.seconds;
        let (start, end) = (from / total * 100.0, to / total * 100.0);
        let _ = write!(
            styles,
            "@keyframes k{number}{{0%{{visibility:hidden}}{start:.3}%{{visibility:visible}}{end:.3}%,100%{{visibility:hidden}}}}\
             #f{number}{{visibility:hidden;animation:k{number} {total:.1}s step-end infinite}}"
        );
        from = to;
    }
    let mut svg = begin(first, &styles);
    let mut known: HashMap<&str, usize> = HashMap::new();
    svg.push_str("<defs>");
    for content in frames.iter().flat_map(|frame| &frame.rows).filter(|content| !content.is_empty()) {
        let next = known.len();
        known.entry(content).or_insert_with(|| {
            let _ = write!(svg, r#"<g id="r{next}">{content}</g>"#);
            next
        });
    }
    svg.push_str("</defs>");
    for (number, frame) in frames.iter().enumerate() {
        let _ = write!(svg, r#"<g id="f{number}">"#);
        for (row, content) in frame.rows.iter().enumerate() {
            if let Some(id) = known.get(content.as_str()) {
                let _ = write!(svg, r##"<use href="#r{id}" transform="{}"/>"##, place(row));
            }
        }
        svg.push_str("</g>");
    }
    svg.push_str("</svg>\n");
    svg
}
