//! Computes the contrast of every role of every built-in theme, as the Web Content Accessibility Guidelines 2.2 define it.

use ratatui::style::{Color, Modifier, Style};

use super::legible::{TINTS, contrast};
use super::*;

/// Files of the built-in themes by name.
pub const FILES: [(&str, &str); 6] = [
    ("dark", DARK),
    ("light", LIGHT),
    ("high-contrast", HIGH_CONTRAST),
    ("high-contrast-light", HIGH_CONTRAST_LIGHT),
    ("neutral", NEUTRAL),
    ("ansi", ANSI),
];

/// Background and foreground of terminals as they come: xterm, Windows Terminal, VS Code, Tokyo Night, Gruvbox, Dracula,
/// One Dark, Nord, Solarized (its emphasized text: the ordinary one has less than 4.5 to 1 by itself).
const DARK_TERMINALS: [(u32, u32); 9] = [
    (0x000000, 0xe5e5e5),
    (0x0c0c0c, 0xcccccc),
    (0x1e1e1e, 0xcccccc),
    (0x1a1b26, 0xc0caf5),
    (0x282828, 0xebdbb2),
    (0x282a36, 0xf8f8f2),
    (0x282c34, 0xabb2bf),
    (0x2e3440, 0xd8dee9),
    (0x002b36, 0x93a1a1),
];
/// xterm, GitHub, One Light, Solarized, Gruvbox, Tango, Catppuccin, Tokyo Night Day.
const LIGHT_TERMINALS: [(u32, u32); 8] = [
    (0xffffff, 0x000000),
    (0xffffff, 0x24292f),
    (0xfafafa, 0x383a42),
    (0xfdf6e3, 0x586e75),
    (0xfbf1c7, 0x3c3836),
    (0xeeeeec, 0x2e3436),
    (0xeff1f5, 0x4c4f69),
    (0xe1e2e7, 0x343b58),
];
/// Terminals whose background is as dark or as light as it can be.
const EXTREMES: [(u32, u32); 2] = [(0x000000, 0xffffff), (0xffffff, 0x000000)];

/// Roles that are drawn as lines and areas and never as text.
const SHAPES: [Role; 3] = [Role::Rule, Role::Empty, Role::Anchor];
/// Roles that colour a whole line behind other text.
const BARS: [Role; 5] = [Role::Selected, Role::SelectedIdle, Role::Added, Role::Removed, Role::Moved];
/// Roles of words on changed lines, with a background of their own.
const WORDS: [Role; 2] = [Role::AddedWord, Role::RemovedWord];
/// Roles that 16 colours tell apart as git does. A sign beside them says the same.
const SIGNS: [Role; 2] = [Role::Added, Role::AddedWord];

fn channels(rgb: u32) -> [u8; 3] {
    let [_, r, g, b] = rgb.to_be_bytes();
    [r, g, b]
}

/// Returns red, green and blue of a colour; `default` for the terminal's own.
fn rgb(color: Option<Color>, default: u32) -> [u8; 3] {
    match color {
        None | Some(Color::Reset) => channels(default),
        Some(Color::Rgb(r, g, b)) => [r, g, b],
        Some(Color::Indexed(n)) => palette_rgb(n),
        Some(other) => panic!("{other:?} is no colour of a theme"),
    }
}

/// Returns the least contrast of any text of a theme with the backgrounds on which it is drawn, and where that is.
fn least_contrast(text: &str, depth: ColorDepth, terminals: &[(u32, u32)]) -> (f64, String) {
    let (theme, faults) = Theme::parse(text, depth);
    assert_eq!(faults, Vec::<String>::new());
    let mut least = (f64::MAX, String::new());
    for (role, ..) in Role::TABLE.iter().filter(|(role, ..)| !SHAPES.contains(role)) {
        let style = theme.style(*role);
        assert!(!style.add_modifier.contains(Modifier::DIM), "{role:?}: nobody knows how dark dim text is");
        for (background, foreground) in terminals {
            let mut check = |behind: Style, bar_color: Option<Color>, place: &str| {
                // Reversed text swaps the terminal's own colours; it has the contrast of ordinary text.
                if behind.add_modifier.contains(Modifier::REVERSED) {
                    return;
                }
                let bg = behind.bg.filter(|bg| *bg != Color::Reset);
                let own = style.fg.filter(|fg| *fg != Color::Reset).or(bar_color);
                let own = theme.make_legible(Style { fg: own, bg, ..Style::new() }).fg.filter(|fg| *fg != Color::Reset);
                if own.is_none() && bg.is_none() {
                    // The terminal's own colours are its own business.
                    return;
                }
                let found = contrast(rgb(own, *foreground), rgb(bg, *background));
                if found < least.0 {
                    least = (found, format!("{role:?} on {place} of a terminal with #{background:06x}"));
                }
            };
            // Of the palette's 256 colours, the nearest one may have less contrast: at least 4.1 to 1 beside changed code.
            let has_all_colors = depth == ColorDepth::TrueColor;
            if has_all_colors || (TINTS.contains(role) && style.bg.is_some()) {
                check(style, None, "the background");
            }
            let is_behind = |bar: &Role| theme.style(*bar).bg.is_some() && (has_all_colors || TINTS.contains(bar));
            let is_behind_others = BARS.contains(role) || WORDS.contains(role);
            for bar in BARS.iter().chain(&WORDS).filter(|bar| !is_behind_others && is_behind(bar)) {
                let behind = theme.style(*bar);
                // Selected rows give text without a colour of its own the colour of the bar; changed lines do not.
                let color = behind.fg.filter(|_| matches!(bar, Role::Selected | Role::SelectedIdle));
                check(behind, color, &format!("{bar:?}"));
            }
        }
    }
    least
}

#[test]
fn luminance_and_contrast_are_those_of_the_guidelines() {
    for (one, other, expected) in
        [(0x000000, 0xffffff, 21.0), (0x767676, 0xffffff, 4.54), (0xff0000, 0xffffff, 4.0), (0x123456, 0x123456, 1.0)]
    {
        let found = contrast(channels(one), channels(other));
        assert!((found - expected).abs() < 0.01, "#{one:06x} on #{other:06x}: {found}");
    }
}

#[test]
#[allow(clippy::print_stdout, reason = "the figures are what one looks for")]
fn every_text_of_every_theme_has_enough_contrast() {
    for (name, text, terminals, enough) in [
        ("dark", DARK, &DARK_TERMINALS[..], 4.5),
        ("light", LIGHT, &LIGHT_TERMINALS, 4.5),
        ("high-contrast", HIGH_CONTRAST, &DARK_TERMINALS, 7.0),
        ("high-contrast-light", HIGH_CONTRAST_LIGHT, &LIGHT_TERMINALS, 7.0),
        ("neutral", NEUTRAL, &EXTREMES, 4.5),
    ] {
        for depth in [ColorDepth::TrueColor, ColorDepth::Indexed256] {
            let (found, place) = least_contrast(text, depth, terminals);
            println!("{name} {depth:?}: at least {found:.2} to 1 ({place})");
            assert!(found >= enough, "{name} {depth:?}: {found:.2} instead of {enough} to 1: {place}");
        }
    }
}

#[test]
fn sixteen_colours_are_legible_on_black_and_on_white() {
    // The palette of xterm.
    const XTERM: [u32; 8] = [0x000000, 0xcd0000, 0x00cd00, 0xcdcd00, 0x0000ee, 0xcd00cd, 0x00cdcd, 0xe5e5e5];
    let (theme, _) = Theme::parse(ANSI, ColorDepth::Ansi16);
    for (role, ..) in Role::TABLE {
        let style = theme.style(*role);
        assert!(style.bg.is_none(), "{role:?} has a background, which may be that of the terminal's text");
        if let Some(Color::Indexed(n)) = style.fg.filter(|_| !SIGNS.contains(role)) {
            for background in [0x000000, 0xffffff] {
                let found = contrast(channels(XTERM[usize::from(n)]), channels(background));
                assert!(found >= 3.0, "{role:?}: {found:.2} to 1 on #{background:06x}");
            }
        }
    }
}
