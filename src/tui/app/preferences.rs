//! Settings that the palette shows although no other state of the cockpit has them.

use crate::config::{KeyPreset, NotifyMode, OpeningMode, Settings};

/// Values of settings, as they were at the start or as the user has changed them since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preferences {
    /// Signal outside the screen when a run needs attention.
    pub notify: NotifyMode,
    /// Handling of changes that nobody has reviewed at the next start.
    pub on_open: OpeningMode,
    /// True if a line about today's reviews is printed at the end.
    pub quit_summary: bool,
    /// Preset of the keys.
    pub keys: KeyPreset,
}

impl Preferences {
    /// Takes the values of the settings.
    pub fn from_settings(settings: &Settings) -> Self {
        let Settings { notify, on_open, quit_summary, keys, .. } = settings;
        Self { notify: *notify, on_open: *on_open, quit_summary: *quit_summary, keys: *keys }
    }
}

/// The defaults of the settings.
impl Default for Preferences {
    fn default() -> Self {
        let (notify, on_open) = (NotifyMode::Off, OpeningMode::Review);
        Self { notify, on_open, quit_summary: true, keys: KeyPreset::Vim }
    }
}
