//! Keeps text legible on the backgrounds of changed lines: computes contrast, and lightens or darkens colours that lack it.

use ratatui::style::{Color, Style};

use super::{ColorDepth, Role, palette_rgb, reduce_color};

/// Least contrast of text on such a background, from the Web Content Accessibility Guidelines 2.2 (1.4.3).
const MIN_CONTRAST: f64 = 4.5;
/// Steps from a colour to white or black.
const BLEND_STEPS: u32 = 16;
/// Roles whose background lies behind changed code.
pub const TINTS: [Role; 5] = [Role::Added, Role::Removed, Role::Moved, Role::AddedWord, Role::RemovedWord];
/// Stand-ins for the terminal's own text colour, which nobody knows: the faintest one of common terminals, to tell if it
/// needs help, and the one that replaces it then.
const FAINTEST_TEXT: [[u8; 3]; 2] = [[0x93, 0xa1, 0xa1], [0x58, 0x6e, 0x75]];
const CLEAR_TEXT: [[u8; 3]; 2] = [[0xda; 3], [0x26; 3]];

/// Colour of a text that has too little contrast on a background, and the colour that replaces it there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LegibleColor {
    background: Color,
    text: Color,
    instead: Color,
}

/// Lists the colours of a theme that cannot be read on its tints, each with its replacement.
pub fn find_legible_colors(styles: &[Style], depth: ColorDepth) -> Vec<LegibleColor> {
    let mut found: Vec<LegibleColor> = Vec::new();
    for background in TINTS.iter().filter_map(|tint| styles.get(*tint as usize)?.bg) {
        let Some(behind) = known_rgb(background) else { continue };
        let is_light = luminance(behind) > 0.18;
        let texts = styles.iter().map(|style| style.fg.unwrap_or(Color::Reset)).chain([Color::Reset]);
        for text in texts {
            if found.iter().any(|known| (known.background, known.text) == (background, text)) {
                continue;
            }
            let rgb = known_rgb(text).unwrap_or(FAINTEST_TEXT[usize::from(is_light)]);
            if contrast(rgb, behind) >= MIN_CONTRAST {
                continue;
            }
            let start = if known_rgb(text).is_some() { rgb } else { CLEAR_TEXT[usize::from(is_light)] };
            let target = if is_light { 0 } else { 255 };
            let instead = (0..=BLEND_STEPS)
                .map(|step| reduce_color(blend(start, target, step), depth))
                .find(|color| known_rgb(*color).is_some_and(|rgb| contrast(rgb, behind) >= MIN_CONTRAST));
            found.extend(instead.map(|instead| LegibleColor { background, text, instead }));
        }
    }
    found
}

/// Replaces the text colour of a style if it cannot be read on the style's background.
pub fn make_legible(style: Style, colors: &[LegibleColor]) -> Style {
    let (Some(background), text) = (style.bg, style.fg.unwrap_or(Color::Reset)) else { return style };
    let known = colors.iter().find(|known| (known.background, known.text) == (background, text));
    known.map_or(style, |known| style.fg(known.instead))
}

/// Returns a colour on the way to black or white: `step` of [`BLEND_STEPS`].
fn blend(from: [u8; 3], target: u32, step: u32) -> [u8; 3] {
    from.map(|value| ((u32::from(value) * (BLEND_STEPS - step) + target * step) / BLEND_STEPS) as u8)
}

/// Returns red, green and blue of a colour that is the same on every terminal.
fn known_rgb(color: Color) -> Option<[u8; 3]> {
    match color {
        Color::Rgb(r, g, b) => Some([r, g, b]),
        Color::Indexed(n) if n >= 16 => Some(palette_rgb(n)),
        _ => None,
    }
}

/// Returns the relative luminance, 0 for black to 1 for white.
pub fn luminance(rgb: [u8; 3]) -> f64 {
    let linear = |value: u8| {
        let value = f64::from(value) / 255.0;
        if value <= 0.040_45 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * linear(rgb[0]) + 0.7152 * linear(rgb[1]) + 0.0722 * linear(rgb[2])
}

/// Returns the contrast of two colours, 1 to 21.
pub fn contrast(one: [u8; 3], other: [u8; 3]) -> f64 {
    let (one, other) = (luminance(one) + 0.05, luminance(other) + 0.05);
    one.max(other) / one.min(other)
}
