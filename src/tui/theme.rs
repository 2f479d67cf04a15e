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

pub use choice::{ThemeChoice, ThemeName};

use ratatui::style::{Color, Modifier, Style};

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
    /// Detects the depth from `NO_COLOR`, `COLORTERM` and `TERM`.
    pub fn detect(variable: impl Fn(&str) -> Option<String>) -> Self {
        if variable("NO_COLOR").is_some_and(|value| !value.is_empty()) {
            return Self::None;
        }
        let term = variable("TERM").unwrap_or_default();
        let colors = variable("COLORTERM").unwrap_or_default();
        if colors.contains("truecolor") || colors.contains("24bit") || term.contains("direct") {
            Self::TrueColor
        } else if term == "dumb" || term.starts_with("vt1") || term.starts_with("vt2") {
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
        let styles = Role::TABLE
            .iter()
            .map(|(_, section, key, bare)| {
                if depth == ColorDepth::None {
                    return Style::new().add_modifier(*bare);
                }
                let value = table.get(*section).and_then(|section| section.get(*key)).and_then(toml::Value::as_str);
                match parse_style(value.unwrap_or("default"), depth) {
                    Ok(style) => style,
                    Err(error) => {
                        notices.push(format!("theme: [{section}] {key}: {error}"));
                        Style::new()
                    }
                }
            })
            .collect();
        (Self { styles }, notices)
    }

    /// Returns the style of a role.
    pub fn style(&self, role: Role) -> Style {
        self.styles.get(role as usize).copied().unwrap_or_default()
    }
}

fn parse_style(text: &str, depth: ColorDepth) -> Result<Style, String> {
    let mut style = Style::new();
    let mut words = text.split_whitespace();
    while let Some(word) = words.next() {
        style = match word {
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
    let candidates = if depth == ColorDepth::Ansi16 { 0..16u8 } else { 16..255 };
    let distance =
        |n: &u8| palette_rgb(*n).iter().zip(rgb).map(|(a, b)| (i32::from(*a) - i32::from(b)).pow(2)).sum::<i32>();
    Ok(candidates.min_by_key(distance).map_or(Color::Reset, Color::Indexed))
}

/// Returns red, green and blue of a colour in the 256-colour palette.
fn palette_rgb(n: u8) -> [u8; 3] {
    let step = |n: u8| if n == 0 { 0 } else { 55 + 40 * n };
    match n {
        0..=6 => [n & 1, n >> 1 & 1, n >> 2 & 1].map(|on| on * 128),
        7 => [192; 3],
        8 => [128; 3],
        9..=15 => [n & 1, n >> 1 & 1, n >> 2 & 1].map(|on| on * 255),
        16..=231 => [step((n - 16) / 36), step((n - 16) / 6 % 6), step((n - 16) % 6)],
        232.. => [8 + 10 * (n - 232); 3],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
