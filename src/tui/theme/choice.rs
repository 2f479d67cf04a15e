//! Chooses a theme by its name, and switches to the next one while the cockpit runs.

use std::str::FromStr;

use ratatui::buffer::Buffer;
use ratatui::style::Color;

use super::{ANSI, Background, ColorDepth, DARK, HIGH_CONTRAST, HIGH_CONTRAST_LIGHT, LIGHT, NEUTRAL, Theme};

/// Name of a built-in theme.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThemeName {
    /// Dark, light or neutral, as the terminal's background is.
    Auto,
    /// For a dark background.
    Dark,
    /// For a light background.
    Light,
    /// With more contrast, as the terminal's background is.
    HighContrast,
    /// For an unknown background.
    Neutral,
    /// The 16 colours of the terminal.
    Ansi,
    /// Attributes only: bold, dim, underlined, reversed.
    Mono,
}

impl ThemeName {
    /// Every built-in theme with its word in the settings, in the order in which they are switched.
    pub const TABLE: [(Self, &'static str); 7] = [
        (Self::Auto, "auto"),
        (Self::Dark, "dark"),
        (Self::Light, "light"),
        (Self::HighContrast, "high-contrast"),
        (Self::Neutral, "neutral"),
        (Self::Ansi, "ansi"),
        (Self::Mono, "mono"),
    ];

    /// Returns the word in the settings.
    pub fn word(self) -> &'static str {
        Self::TABLE.iter().find(|(name, _)| *name == self).map_or("", |(_, word)| word)
    }

    /// Returns true if the terminal's background decides between two forms of the theme.
    pub fn follows_background(self) -> bool {
        matches!(self, Self::Auto | Self::HighContrast)
    }

    /// Returns the theme in TOML, for a dark background where the background decides.
    pub fn toml(self) -> &'static str {
        self.text(Background::Dark, ColorDepth::TrueColor)
    }

    /// Returns the theme in TOML for a background and a colour depth.
    pub(super) fn text(self, background: Background, depth: ColorDepth) -> &'static str {
        match (self, background) {
            (Self::Auto, _) if matches!(depth, ColorDepth::None | ColorDepth::Ansi16) => ANSI,
            (Self::Auto | Self::Neutral, Background::Unknown) | (Self::Neutral, _) => NEUTRAL,
            (Self::Auto, Background::Light) | (Self::Light, _) => LIGHT,
            (Self::Auto, Background::Dark) | (Self::Dark, _) => DARK,
            (Self::HighContrast, Background::Light) => HIGH_CONTRAST_LIGHT,
            (Self::HighContrast, _) => HIGH_CONTRAST,
            (Self::Ansi | Self::Mono, _) => ANSI,
        }
    }
}

impl FromStr for ThemeName {
    type Err = ();

    fn from_str(word: &str) -> Result<Self, ()> {
        // An empty setting is the default.
        let word = if word.is_empty() { "auto" } else { word };
        Self::TABLE.iter().find(|(_, known)| *known == word).map(|(name, _)| *name).ok_or(())
    }
}

/// Colours that stand in for the terminal's own text and background.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Canvas {
    /// Colour of text.
    pub text: Color,
    /// Colour of the background.
    pub background: Color,
}

impl Canvas {
    /// Black on white.
    const LIGHT: Self = Self { text: Color::Indexed(16), background: Color::Indexed(231) };
    /// Light grey on nearly black.
    const DARK: Self = Self { text: Color::Indexed(252), background: Color::Indexed(234) };

    /// Paints the cells that have no colours of their own.
    pub fn paint(self, buffer: &mut Buffer) {
        for cell in &mut buffer.content {
            if cell.fg == Color::Reset {
                cell.fg = self.text;
            }
            if cell.bg == Color::Reset {
                cell.bg = self.background;
            }
        }
    }
}

/// Theme on the screen, and the facts from which another one is made.
#[derive(Debug, Clone)]
pub struct ThemeChoice {
    /// Built-in theme on the screen; `None` for the user's own.
    shown: Option<ThemeName>,
    /// Theme of the user that the settings name, with its name.
    own: Option<(String, Theme)>,
    /// The terminal's background, as far as it is known.
    background: Background,
    depth: ColorDepth,
    /// The name that the settings have.
    kept: String,
}

impl ThemeChoice {
    /// Chooses a built-in theme.
    pub fn new(name: ThemeName, background: Background, depth: ColorDepth) -> Self {
        Self { shown: Some(name), own: None, background, depth, kept: name.word().to_owned() }
    }

    /// Chooses a theme of the user.
    pub fn own(name: &str, theme: Theme, depth: ColorDepth) -> Self {
        let (kept, own) = (name.to_owned(), Some((name.to_owned(), theme)));
        Self { shown: None, own, background: Background::Unknown, depth, kept }
    }

    /// Returns the theme on the screen.
    pub fn theme(&self) -> Theme {
        match (self.shown, &self.own) {
            (None, Some((_, theme))) => theme.clone(),
            (shown, _) => {
                let name = shown.unwrap_or(ThemeName::Auto);
                let depth = if name == ThemeName::Mono { ColorDepth::None } else { self.depth };
                Theme::parse(name.text(self.background, depth), depth).0
            }
        }
    }

    /// Returns the name of the theme on the screen.
    pub fn name(&self) -> &str {
        match (self.shown, &self.own) {
            (None, Some((name, _))) => name,
            (shown, _) => shown.unwrap_or(ThemeName::Auto).word(),
        }
    }

    /// Returns true if the settings name the theme on the screen.
    pub fn is_kept(&self) -> bool {
        self.kept == self.name()
    }

    /// Notes that the settings now name the theme on the screen.
    pub fn mark_kept(&mut self) {
        self.kept = self.name().to_owned();
    }

    /// Returns true if the terminal's background decides what the theme looks like.
    pub fn follows_background(&self) -> bool {
        self.shown.is_some_and(ThemeName::follows_background) && self.has_colors()
    }

    /// Returns true if the terminal has colours that depend on its background.
    pub fn has_colors(&self) -> bool {
        matches!(self.depth, ColorDepth::Indexed256 | ColorDepth::TrueColor)
    }

    /// Returns the colours with which the screen is painted, if the theme is made for another background than the terminal
    /// has: its text would be illegible.
    pub fn canvas(&self) -> Option<Canvas> {
        if !self.has_colors() {
            return None;
        }
        match (self.shown?, self.background) {
            (ThemeName::Light, Background::Dark) => Some(Canvas::LIGHT),
            (ThemeName::Dark, Background::Light) => Some(Canvas::DARK),
            _ => None,
        }
    }

    /// Notes the terminal's background. Returns true if the theme may look different now.
    pub fn set_background(&mut self, background: Background) -> bool {
        std::mem::replace(&mut self.background, background) != background && self.follows_background()
    }

    /// Lists the themes that can be shown, with their names: the built-in ones, then the user's own, which has no
    /// [`ThemeName`]. Without colours there is only the one on the screen.
    pub fn list(&self) -> Vec<(Option<ThemeName>, String)> {
        if self.depth == ColorDepth::None {
            return vec![(self.shown, self.name().to_owned())];
        }
        let builtin = ThemeName::TABLE.iter().map(|(name, word)| (Some(*name), (*word).to_owned()));
        builtin.chain(self.own.iter().map(|(name, _)| (None, name.clone()))).collect()
    }

    /// Returns the theme on the screen; `None` for the user's own.
    pub fn shown(&self) -> Option<ThemeName> {
        self.shown
    }

    /// Shows a theme of [`ThemeChoice::list`].
    pub fn show(&mut self, theme: Option<ThemeName>) {
        if theme.is_some() || self.own.is_some() {
            self.shown = theme;
        }
    }

    /// Returns the name that the settings have.
    pub fn kept(&self) -> &str {
        &self.kept
    }

    /// Switches to a built-in theme. Without colours nothing changes.
    pub fn switch_to(&mut self, name: ThemeName) {
        if self.depth != ColorDepth::None {
            self.shown = Some(name);
        }
    }

    /// Switches to the next theme: the built-in ones, then the user's own. Without colours there is only one.
    pub fn switch_to_next(&mut self) {
        if self.depth == ColorDepth::None {
            return;
        }
        let at = self.shown.and_then(|shown| ThemeName::TABLE.iter().position(|(name, _)| *name == shown));
        let next = at.map_or(0, |at| at + 1);
        self.shown = match ThemeName::TABLE.get(next) {
            Some((name, _)) => Some(*name),
            None if self.own.is_some() => None,
            None => Some(ThemeName::Auto),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn themes_are_switched_in_order_and_return_to_the_first() {
        let mut themes = ThemeChoice::new(ThemeName::Light, Background::Dark, ColorDepth::TrueColor);
        let mut names = Vec::new();
        for _ in 0..ThemeName::TABLE.len() {
            themes.switch_to_next();
            names.push(themes.name().to_owned());
        }
        assert_eq!(names, ["high-contrast", "neutral", "ansi", "mono", "auto", "dark", "light"]);
        assert!(themes.is_kept(), "the settings name light");
        let own = Theme::builtin_for(Background::Dark, ColorDepth::TrueColor);
        let mut themes = ThemeChoice::own("mine", own, ColorDepth::TrueColor);
        themes.switch_to_next();
        assert_eq!((themes.name(), themes.is_kept()), ("auto", false));
        for _ in 0..ThemeName::TABLE.len() {
            themes.switch_to_next();
        }
        assert_eq!(themes.name(), "mine", "the user's own theme comes last");
        let mut themes = ThemeChoice::new(ThemeName::Auto, Background::Dark, ColorDepth::None);
        themes.switch_to_next();
        assert_eq!(themes.name(), "auto", "without colours there is nothing to switch");
    }

    #[test]
    fn a_theme_for_another_background_brings_its_own() {
        for (name, background, depth, expected) in [
            (ThemeName::Light, Background::Dark, ColorDepth::TrueColor, Some(Canvas::LIGHT)),
            (ThemeName::Dark, Background::Light, ColorDepth::Indexed256, Some(Canvas::DARK)),
            (ThemeName::Dark, Background::Dark, ColorDepth::TrueColor, None),
            (ThemeName::Light, Background::Unknown, ColorDepth::TrueColor, None),
            (ThemeName::Auto, Background::Light, ColorDepth::TrueColor, None),
            (ThemeName::Light, Background::Dark, ColorDepth::Ansi16, None),
        ] {
            assert_eq!(ThemeChoice::new(name, background, depth).canvas(), expected, "{name:?} {background:?}");
        }
        let mut buffer = Buffer::empty(ratatui::layout::Rect::new(0, 0, 2, 1));
        buffer[(1, 0)].fg = Color::Red;
        Canvas::LIGHT.paint(&mut buffer);
        let colors = |x| (buffer[(x, 0)].fg, buffer[(x, 0)].bg);
        assert_eq!(colors(0), (Canvas::LIGHT.text, Canvas::LIGHT.background));
        assert_eq!(colors(1), (Color::Red, Canvas::LIGHT.background));
    }

    #[test]
    fn the_background_decides_only_where_a_theme_follows_it() {
        for (name, follows) in [("auto", true), ("high-contrast", true), ("dark", false), ("mono", false)] {
            let name: ThemeName = name.parse().expect("a theme");
            let mut themes = ThemeChoice::new(name, Background::Dark, ColorDepth::TrueColor);
            let before = themes.theme().styles;
            assert_eq!(themes.set_background(Background::Light), follows, "{name:?}");
            assert_eq!(themes.theme().styles != before, follows, "{name:?}");
            assert!(!themes.set_background(Background::Light), "the same answer again changes nothing");
        }
    }
}
