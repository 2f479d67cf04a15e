//! Maps meanings to colours, read from `assets/themes/` and reduced to the colours of the terminal.
//!
//! - No view names a colour.
//! - Without colours, everything is still distinguishable by bold, dim, underline and reverse.
//! - On an unknown background, only the terminal's default colours and colours legible on both backgrounds are
//!   used.
//! - Text of the built-in themes has a contrast of at least 4.5 to 1; a test in `contrast.rs` computes it.

mod choice;
#[cfg(test)]
mod contrast;
mod files;
mod legible;

pub use choice::{ThemeChoice, ThemeName};
pub(super) use files::load_theme;
pub use files::{find_theme_fault, find_theme_file_faults};

use legible::{LegibleColor, TINTS, find_legible_colors, make_legible};
use ratatui::style::{Color, Modifier, Style};

use super::terminal::is_windows_terminal;

/// Built-in theme for a dark background, in TOML.
pub const DARK: &str = include_str!("../../assets/themes/dark.toml");
/// Built-in theme for a light background, in TOML.
pub const LIGHT: &str = include_str!("../../assets/themes/light.toml");
/// Built-in theme with more contrast for a dark background, in TOML.
pub const HIGH_CONTRAST: &str = include_str!("../../assets/themes/high-contrast.toml");
/// Built-in theme with more contrast for a light background, in TOML.
pub const HIGH_CONTRAST_LIGHT: &str = include_str!("../../assets/themes/high-contrast-light.toml");
/// Built-in theme for an unknown background, in TOML.
pub const NEUTRAL: &str = include_str!("../../assets/themes/neutral.toml");
/// Built-in theme for terminals with 16 colours or none, in TOML.
pub const ANSI: &str = include_str!("../../assets/themes/ansi.toml");

macro_rules! roles {
    ($($variant:ident $section:literal $key:literal $bare:expr),+ $(,)?) => {
        /// Meaning of a piece of text.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Role {
            $(
                #[doc = concat!("Style `", $key, "` in section `[", $section, "]` of a theme file.")]
                $variant
            ),+
        }

        impl Role {
            /// Role, section and key in a theme file, attributes without colours.
            const TABLE: &'static [(Self, &'static str, &'static str, Modifier)] =
                &[$((Self::$variant, $section, $key, $bare)),+];
        }
    };
}

const NONE: Modifier = Modifier::empty();
const BOLD: Modifier = Modifier::BOLD;
const DIM: Modifier = Modifier::DIM;

roles! {
    Normal "text" "normal" NONE,
    Strong "text" "strong" BOLD,
    Muted "text" "muted" DIM,
    Faint "text" "faint" DIM,
    Accent "text" "accent" NONE,
    Title "text" "title" BOLD,
    Good "text" "good" NONE,
    Warn "text" "warn" BOLD,
    Bad "text" "bad" BOLD,
    Match "text" "match" BOLD.union(Modifier::UNDERLINED),
    Rule "frame" "rule" DIM,
    Focus "frame" "focus" BOLD,
    Selected "frame" "selected" Modifier::REVERSED,
    SelectedIdle "frame" "selected_idle" BOLD,
    MarkSign "frame" "mark" BOLD,
    Key "frame" "key" BOLD,
    Tab "frame" "tab" BOLD.union(Modifier::UNDERLINED),
    Prompt "frame" "prompt" NONE,
    P0 "priority" "0" BOLD.union(Modifier::UNDERLINED),
    P1 "priority" "1" BOLD,
    P2 "priority" "2" NONE,
    P3 "priority" "3" DIM,
    Open "status" "open" NONE,
    Unresolved "status" "unresolved" BOLD,
    Addressed "status" "addressed" NONE,
    Dismissed "status" "dismissed" DIM,
    Obsolete "status" "obsolete" DIM,
    Pending "run" "pending" DIM,
    Working "run" "working" BOLD,
    Completed "run" "completed" NONE,
    Failed "run" "failed" BOLD,
    Cancelled "run" "cancelled" DIM,
    Superseded "run" "superseded" DIM,
    Skipped "run" "skipped" DIM,
    Lost "run" "lost" BOLD,
    LineNumber "code" "number" DIM,
    Anchor "code" "anchor" NONE,
    Keyword "code" "keyword" BOLD,
    String "code" "string" NONE,
    Comment "code" "comment" DIM,
    Constant "code" "constant" NONE,
    Function "code" "function" NONE,
    Type "code" "type" NONE,
    Added "code" "added" BOLD,
    Removed "code" "removed" DIM,
    AddedWord "code" "added_word" BOLD.union(Modifier::UNDERLINED),
    RemovedWord "code" "removed_word" Modifier::UNDERLINED,
    Moved "code" "moved" Modifier::ITALIC,
    Hunk "code" "hunk" DIM,
    Filled "gauge" "filled" BOLD,
    Empty "gauge" "empty" DIM,
    Pinned "window" "pinned" NONE,
    Summarized "window" "summarized" NONE,
    Masked "window" "masked" DIM,
    Kept "window" "kept" BOLD,
    Limit "window" "limit" DIM,
}

impl Role {
    /// Returns the role of a priority.
    pub fn from_priority(priority: crate::domain::Priority) -> Self {
        [Self::P0, Self::P1, Self::P2, Self::P3][priority.index()]
    }

    /// Returns the role of a finding's status.
    pub fn from_finding_status(status: crate::domain::FindingStatus) -> Self {
        use crate::domain::FindingStatus as S;
        match status {
            S::Open => Self::Open,
            S::Unresolved => Self::Unresolved,
            S::Addressed => Self::Addressed,
            S::Dismissed => Self::Dismissed,
            S::Obsolete => Self::Obsolete,
        }
    }

    /// Returns the role of a pattern's stance.
    pub fn from_stance(stance: crate::knowledge::pattern::PatternStance) -> Self {
        use crate::knowledge::pattern::PatternStance as S;
        match stance {
            S::Mistake => Self::Warn,
            S::FalseAlarm => Self::Accent,
        }
    }

    /// Returns the role of a run's status.
    pub fn from_run_status(status: crate::domain::RunStatus) -> Self {
        use crate::domain::RunStatus as S;
        match status {
            S::Pending => Self::Pending,
            S::Snapshotting | S::Reviewing | S::Resolving => Self::Working,
            S::Completed => Self::Completed,
            S::Failed => Self::Failed,
            S::Cancelled => Self::Cancelled,
            S::Superseded => Self::Superseded,
            S::Skipped => Self::Skipped,
            S::Lost => Self::Lost,
        }
    }

    /// Returns the role of a run that did not review its whole change.
    pub fn from_shortfall(shortfall: crate::domain::Shortfall) -> Self {
        match shortfall {
            crate::domain::Shortfall::Gaps => Self::Warn,
            crate::domain::Shortfall::NothingReviewed => Self::Skipped,
        }
    }

    /// Returns the role of a file in the map of a run.
    pub fn from_file_reading(reading: super::views::live::FileReading) -> Self {
        use super::views::live::FileReading as R;
        match reading {
            R::Now => Self::Accent,
            R::Before => Self::Filled,
            R::Carried => Self::Muted,
            R::LeftOut => Self::Faint,
            R::Unread => Self::Empty,
        }
    }

    /// Returns the role of a freshness.
    pub fn from_freshness(freshness: crate::policy::Freshness) -> Self {
        use crate::policy::Freshness as F;
        match freshness {
            F::Current => Self::Faint,
            F::LongRunning | F::Superseded | F::Obsolete | F::Unknown => Self::Muted,
            F::Inactive => Self::Warn,
            F::Lost => Self::Lost,
        }
    }
}

/// Number of colours of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColorDepth {
    /// Attributes only: `NO_COLOR`, `TERM=dumb` and similar.
    None,
    /// The 16 ANSI colours.
    Ansi16,
    /// The palette of 256 colours.
    Indexed256,
    /// 24-bit colours.
    TrueColor,
}

impl ColorDepth {
    /// Detects the depth from `NO_COLOR`, `COLORTERM`, `TERM` and the variable of Windows Terminal, which sets no `COLORTERM`.
    pub fn detect(variable: impl Fn(&str) -> Option<String>) -> Self {
        if variable("NO_COLOR").is_some_and(|value| !value.is_empty()) {
            return Self::None;
        }
        let term = variable("TERM").unwrap_or_default();
        let colors = variable("COLORTERM").unwrap_or_default();
        let lacks_colors = term == "dumb" || term.starts_with("vt1") || term.starts_with("vt2");
        let has_true_color = colors.contains("truecolor")
            || colors.contains("24bit")
            || term.contains("direct")
            || (is_windows_terminal(&variable) && !lacks_colors);
        // GNU screen hands COLORTERM of the terminal around it on, but draws garbage for 24-bit colours. tmux takes the
        // same TERM and knows them.
        let is_gnu_screen = term.starts_with("screen") && variable("TMUX").is_none_or(|value| value.is_empty());
        if has_true_color {
            if is_gnu_screen { Self::Indexed256 } else { Self::TrueColor }
        } else if lacks_colors {
            Self::None
        } else if term.contains("256")
            || ["kitty", "alacritty", "wezterm", "foot", "ghostty"].iter().any(|t| term.contains(t))
        {
            Self::Indexed256
        } else {
            Self::Ansi16
        }
    }
}

/// Brightness of the terminal's background.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Background {
    /// The terminal has not reported its background.
    Unknown,
    /// Dark background.
    Dark,
    /// Light background.
    Light,
}

impl Background {
    /// Classifies a background colour by its perceived brightness.
    pub fn from_rgb(rgb: [u8; 3]) -> Self {
        let [r, g, b] = rgb.map(u32::from);
        if 299 * r + 587 * g + 114 * b > 128_000 { Self::Light } else { Self::Dark }
    }

    /// Parses `COLORFGBG` as rxvt, konsole and others set it: `15;0` or `0;default;15`.
    pub fn from_colorfgbg(value: &str) -> Self {
        match value.rsplit(';').next().and_then(|n| n.parse::<u8>().ok()) {
            Some(7 | 9..=15) => Self::Light,
            Some(0..=8) => Self::Dark,
            _ => Self::Unknown,
        }
    }
}

/// Style of each role.
#[derive(Debug, Clone)]
pub struct Theme {
    styles: Vec<Style>,
    /// Replacements of colours on changed lines.
    legible_colors: Vec<LegibleColor>,
}

impl Theme {
    /// Returns the built-in theme for a background and a colour depth.
    pub fn builtin_for(background: Background, depth: ColorDepth) -> Self {
        Self::parse(ThemeName::Auto.text(background, depth), depth).0
    }

    /// Parses a theme in TOML and returns one notice per mistake.
    pub fn parse(text: &str, depth: ColorDepth) -> (Self, Vec<String>) {
        let mut notices = Vec::new();
        let table: toml::Table = text.parse().unwrap_or_else(|error: toml::de::Error| {
            notices.push(format!("theme: {}", error.to_string().replace('\n', " ")));
            toml::Table::new()
        });
        let mut styles: Vec<Style> = Role::TABLE
            .iter()
            .map(|(role, section, key, bare)| {
                if depth == ColorDepth::None {
                    return Style::new().add_modifier(*bare);
                }
                let value = table.get(*section).and_then(|section| section.get(*key)).and_then(toml::Value::as_str);
                match parse_style(value.unwrap_or("default"), depth, TINTS.contains(role)) {
                    Ok(style) => style,
                    Err(error) => {
                        notices.push(format!("theme: [{section}] {key}: {error}"));
                        Style::new()
                    }
                }
            })
            .collect();
        for (line, word) in [(Role::Added, Role::AddedWord), (Role::Removed, Role::RemovedWord)] {
            let line = styles[line as usize].bg;
            let word = &mut styles[word as usize];
            // Two tints may become one colour of the palette.
            if depth == ColorDepth::Indexed256 && line.is_some() && line == word.bg {
                *word = word.add_modifier(BOLD | Modifier::UNDERLINED);
            }
        }
        let legible_colors = find_legible_colors(&styles, depth);
        (Self { styles, legible_colors }, notices)
    }

    /// Returns the style of a role.
    pub fn style(&self, role: Role) -> Style {
        self.styles.get(role as usize).copied().unwrap_or_default()
    }

    /// Returns a style whose text can be read if its background is that of a changed line.
    pub fn make_legible(&self, style: Style) -> Style {
        make_legible(style, &self.legible_colors)
    }

    /// Returns true if changed lines have a background of their own.
    pub fn tints_changes(&self) -> bool {
        self.style(Role::Added).bg.is_some_and(|color| color != Color::Reset)
    }

    /// Returns true if the code of changed lines keeps its syntax colours: a background, or colours of sign and number,
    /// tell the change. Without any colours, the text itself must tell it.
    pub fn colors_changed_code(&self) -> bool {
        self.tints_changes() || self.style(Role::Added).fg.is_some_and(|color| color != Color::Reset)
    }
}

fn parse_style(text: &str, depth: ColorDepth, is_tint: bool) -> Result<Style, String> {
    let mut style = Style::new();
    let mut words = text.split_whitespace();
    while let Some(word) = words.next() {
        style = match word {
            "on" if is_tint => style.bg(parse_tint(words.next().unwrap_or(""), depth)?),
            "on" => style.bg(parse_color(words.next().unwrap_or(""), depth)?),
            "bold" => style.add_modifier(BOLD),
            "dim" => style.add_modifier(DIM),
            "italic" => style.add_modifier(Modifier::ITALIC),
            "underlined" => style.add_modifier(Modifier::UNDERLINED),
            "reversed" => style.add_modifier(Modifier::REVERSED),
            "crossed" => style.add_modifier(Modifier::CROSSED_OUT),
            word => style.fg(parse_color(word, depth)?),
        };
    }
    Ok(style)
}

fn parse_color(word: &str, depth: ColorDepth) -> Result<Color, String> {
    const NAMES: [&str; 8] = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];
    let (name, bright) = word.strip_prefix("bright-").map_or((word, 0), |name| (name, 8));
    if let Some(n) = NAMES.iter().position(|known| *known == name) {
        return Ok(Color::Indexed(n as u8 + bright));
    }
    if word == "default" {
        return Ok(Color::Reset);
    }
    let rgb = match word.strip_prefix('#') {
        Some(hex) if hex.len() == 6 => {
            let n = u32::from_str_radix(hex, 16).map_err(|_| format!("{word:?} is no colour"))?;
            let [_, r, g, b] = n.to_be_bytes();
            if depth == ColorDepth::TrueColor {
                return Ok(Color::Rgb(r, g, b));
            }
            [r, g, b]
        }
        _ => {
            let n: u8 = word.parse().map_err(|_| format!("{word:?} is no colour"))?;
            if depth != ColorDepth::Ansi16 || n < 16 {
                return Ok(Color::Indexed(n));
            }
            palette_rgb(n)
        }
    };
    Ok(reduce_color(rgb, depth))
}

/// Parses the background of changed lines. One with a hue keeps a hue in the palette of 256 colours, whose nearest colour is often a grey.
fn parse_tint(word: &str, depth: ColorDepth) -> Result<Color, String> {
    let color = parse_color(word, depth)?;
    let Ok(Color::Rgb(r, g, b)) = parse_color(word, ColorDepth::TrueColor) else { return Ok(color) };
    let is_grey = |[r, g, b]: [u8; 3]| r == g && g == b;
    if depth != ColorDepth::Indexed256 || is_grey([r, g, b]) {
        return Ok(color);
    }
    Ok(nearest_color([r, g, b], (16..=231).filter(|n| !is_grey(palette_rgb(*n)))))
}

/// Returns a colour as a terminal with this depth shows it.
fn reduce_color(rgb: [u8; 3], depth: ColorDepth) -> Color {
    match depth {
        ColorDepth::TrueColor => Color::Rgb(rgb[0], rgb[1], rgb[2]),
        ColorDepth::Ansi16 => nearest_color(rgb, 0..16),
        ColorDepth::Indexed256 | ColorDepth::None => {
            nearest_color(rgb, std::iter::once(nearest_cube_color(rgb)).chain(FIRST_GREY..=255))
        }
    }
}

/// First of the greys at the end of the 256-colour palette.
const FIRST_GREY: u8 = 232;

/// Returns the nearest colour of the palette's cube of 6 x 6 x 6: the nearest step of red, of green and of blue. To compare all
/// 216 for each colour of a theme was a ninth of the work before the first frame.
fn nearest_cube_color(rgb: [u8; 3]) -> u8 {
    let nearest_step = |part: u8| (0..6u8).min_by_key(|n| cube_step(*n).abs_diff(part)).unwrap_or(0);
    let [r, g, b] = rgb.map(nearest_step);
    16 + 36 * r + 6 * g + b
}

/// Returns the amount of red, green or blue of a step of the palette's cube.
fn cube_step(n: u8) -> u8 {
    if n == 0 { 0 } else { 55 + 40 * n }
}

fn nearest_color(rgb: [u8; 3], candidates: impl Iterator<Item = u8>) -> Color {
    let distance =
        |n: &u8| palette_rgb(*n).iter().zip(rgb).map(|(a, b)| (i32::from(*a) - i32::from(b)).pow(2)).sum::<i32>();
    candidates.min_by_key(distance).map_or(Color::Reset, Color::Indexed)
}

/// Returns red, green and blue of a colour in the 256-colour palette.
fn palette_rgb(n: u8) -> [u8; 3] {
    match n {
        0..=6 => [n & 1, n >> 1 & 1, n >> 2 & 1].map(|on| on * 128),
        7 => [192; 3],
        8 => [128; 3],
        9..=15 => [n & 1, n >> 1 & 1, n >> 2 & 1].map(|on| on * 255),
        16..=231 => [cube_step((n - 16) / 36), cube_step((n - 16) / 6 % 6), cube_step((n - 16) % 6)],
        FIRST_GREY.. => [8 + 10 * (n - FIRST_GREY); 3],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_of_256_colours_is_that_of_a_search_through_all() {
        let parts = [0, 1, 47, 48, 94, 95, 114, 115, 116, 128, 155, 178, 200, 215, 235, 238, 254, 255];
        for (r, g, b) in parts.iter().flat_map(|r| parts.iter().flat_map(|g| parts.map(|b| (*r, *g, b)))) {
            assert_eq!(
                reduce_color([r, g, b], ColorDepth::Indexed256),
                nearest_color([r, g, b], 16..=255),
                "{r} {g} {b}"
            );
        }
    }

    #[test]
    fn the_built_in_themes_name_every_role_and_nothing_else() {
        for (name, text) in contrast::FILES {
            for depth in [ColorDepth::None, ColorDepth::Ansi16, ColorDepth::Indexed256, ColorDepth::TrueColor] {
                assert_eq!(Theme::parse(text, depth).1, Vec::<String>::new(), "{name} {depth:?}");
            }
            let table: toml::Table = text.parse().unwrap_or_default();
            for (role, section, key, _) in Role::TABLE {
                assert!(table.get(*section).is_some_and(|s| s.get(*key).is_some()), "{name}: {role:?}");
            }
            let named: usize = table.values().filter_map(|v| v.as_table()).map(toml::Table::len).sum();
            assert_eq!(named, Role::TABLE.len(), "{name} has keys that mean nothing");
        }
    }

    #[test]
    fn an_unknown_background_and_no_colours_never_set_a_background_colour() {
        for theme in [
            Theme::builtin_for(Background::Unknown, ColorDepth::TrueColor),
            Theme::builtin_for(Background::Dark, ColorDepth::None),
        ] {
            assert!(theme.styles.iter().all(|style| style.bg.is_none_or(|bg| bg == Color::Reset)));
        }
        let none = Theme::builtin_for(Background::Dark, ColorDepth::None);
        assert!(none.styles.iter().all(|style| style.fg.is_none()), "NO_COLOR means none");
    }

    #[test]
    fn colours_and_backgrounds_are_told_from_the_environment() {
        let depth = |pairs: &[(&str, &str)]| {
            ColorDepth::detect(|name| pairs.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned()))
        };
        for (pairs, expected) in [
            (&[("TERM", "xterm-256color"), ("COLORTERM", "truecolor")][..], ColorDepth::TrueColor),
            (&[("TERM", "xterm-256color"), ("COLORTERM", "truecolor"), ("NO_COLOR", "1")], ColorDepth::None),
            (&[("TERM", "xterm-256color"), ("NO_COLOR", "")], ColorDepth::Indexed256),
            (&[("TERM", "screen-256color"), ("COLORTERM", "truecolor")], ColorDepth::Indexed256),
            (&[("TERM", "screen"), ("COLORTERM", "24bit"), ("TMUX", "")], ColorDepth::Indexed256),
            (&[("TERM", "screen"), ("COLORTERM", "truecolor"), ("TMUX", "/tmp/tmux")], ColorDepth::TrueColor),
            (&[("TERM", "screen.xterm-256color")], ColorDepth::Indexed256),
            (&[("TERM", "xterm-256color"), ("WT_SESSION", "2c2b8f4e")], ColorDepth::TrueColor),
            (&[("TERM", "xterm-256color"), ("WT_SESSION", "")], ColorDepth::Indexed256),
            (&[("TERM", "screen-256color"), ("WT_SESSION", "2c2b8f4e")], ColorDepth::Indexed256),
            (&[("TERM", "dumb"), ("WT_SESSION", "2c2b8f4e")], ColorDepth::None),
            (&[("TERM", "screen")], ColorDepth::Ansi16),
            (&[("TERM", "linux")], ColorDepth::Ansi16),
            (&[("TERM", "vt100")], ColorDepth::None),
            (&[], ColorDepth::Ansi16),
        ] {
            assert_eq!(depth(pairs), expected, "{pairs:?}");
        }
        assert_eq!(Background::from_colorfgbg("15;0"), Background::Dark);
        assert_eq!(Background::from_colorfgbg("0;default;15"), Background::Light);
        assert_eq!(Background::from_colorfgbg("nonsense"), Background::Unknown);
        assert_eq!(Background::from_rgb([250, 250, 245]), Background::Light);
        assert_eq!(Background::from_rgb([30, 30, 30]), Background::Dark);
        assert_eq!(parse_color("#1c2a1e", ColorDepth::Indexed256), Ok(Color::Indexed(235)));
        assert_eq!(parse_color("203", ColorDepth::Ansi16), Ok(Color::Indexed(9)));
    }

    #[test]
    fn tints_keep_their_hue_in_256_colours() {
        for (name, text) in [("dark", DARK), ("light", LIGHT)] {
            let (theme, _) = Theme::parse(text, ColorDepth::Indexed256);
            let tints = [Role::Added, Role::Removed, Role::Moved].map(|role| match theme.style(role).bg {
                Some(Color::Indexed(n)) => palette_rgb(n),
                other => panic!("{name}: {role:?} has the background {other:?}"),
            });
            let [added, removed, moved] = tints;
            assert!(added[1] > added[0].max(added[2]), "{name}: added lines are green, not {added:?}");
            assert!(removed[0] > removed[1].max(removed[2]), "{name}: removed lines are red, not {removed:?}");
            assert!(moved[2] > moved[0], "{name}: moved lines are blue, not {moved:?}");
            for (line, word) in [(Role::Added, Role::AddedWord), (Role::Removed, Role::RemovedWord)] {
                let (line, word) = (theme.style(line), theme.style(word));
                assert!(line.bg != word.bg || word.add_modifier.contains(Modifier::UNDERLINED), "{name}: {word:?}");
            }
        }
        // Greys stay greys, and numbers of the palette stay what they are.
        assert_eq!(parse_tint("#1e1e1e", ColorDepth::Indexed256), Ok(Color::Indexed(234)));
        assert_eq!(parse_tint("237", ColorDepth::Indexed256), Ok(Color::Indexed(237)));
    }

    #[test]
    fn the_code_of_changed_lines_keeps_its_syntax_colours_wherever_there_are_colours() {
        for (name, text) in contrast::FILES {
            for depth in [ColorDepth::Ansi16, ColorDepth::Indexed256, ColorDepth::TrueColor] {
                let (theme, _) = Theme::parse(text, depth);
                assert!(theme.colors_changed_code(), "{name} {depth:?}");
            }
            assert!(!Theme::parse(text, ColorDepth::None).0.colors_changed_code(), "{name}");
        }
        let green = Theme::parse(ANSI, ColorDepth::Ansi16).0.style(Role::Added).fg;
        assert_eq!(green, Some(Color::Indexed(2)), "as git shows added lines");
    }
}
