//! Finds the keymap files in effect. The cockpit lays them over each other and checks them.

use std::borrow::Cow;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::error::{ConfigError, SettingLocation};
use super::settings_file::{SettingsFile, SymlinkPolicy};
use super::{Paths, embedded};
use crate::domain::word_enum;

word_enum!(
    /// Set of keys that lies over the common ones.
    KeyPreset {
        Vim = "vim",
        Emacs = "emacs",
        /// Arrow keys and the keys of desktop programs.
        Arrows = "arrows",
    }
);

/// Keymap in TOML, with the name of its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeymapFile {
    /// Path of the user's file, or name of an embedded one.
    pub name: String,
    /// Content of the file.
    pub text: Cow<'static, str>,
}

impl KeymapFile {
    /// Returns the embedded keymap that all presets share.
    pub fn common() -> Self {
        Self { name: "assets/keymap.toml".to_owned(), text: Cow::Borrowed(embedded::KEYMAP) }
    }

    /// Returns the embedded keymap of a preset.
    pub fn of_preset(preset: KeyPreset) -> Self {
        let text = match preset {
            KeyPreset::Vim => embedded::KEYMAP_VIM,
            KeyPreset::Emacs => embedded::KEYMAP_EMACS,
            KeyPreset::Arrows => embedded::KEYMAP_ARROWS,
        };
        Self { name: format!("assets/keymaps/{preset}.toml"), text: Cow::Borrowed(text) }
    }

    /// Returns true for a keymap that the program brings along.
    pub fn is_embedded(&self) -> bool {
        *self == Self::common() || KeyPreset::ALL.iter().any(|preset| *self == Self::of_preset(*preset))
    }

    /// Returns the location of byte `offset`.
    pub fn location_at(&self, offset: usize) -> SettingLocation {
        SettingLocation::from_offset(Path::new(&self.name), &self.text, offset)
    }
}

/// Lists the embedded keymap files, lowest layer first.
pub fn embedded_keymaps(preset: KeyPreset) -> Vec<KeymapFile> {
    vec![KeymapFile::common(), KeymapFile::of_preset(preset)]
}

/// Lists the keymap files in effect, lowest layer first, the user's file last.
///
/// # Errors
///
/// Fails if the user's file cannot be read or is not TOML.
pub fn load_keymaps(paths: &Paths, preset: KeyPreset) -> Result<Vec<KeymapFile>, ConfigError> {
    let mut files = embedded_keymaps(preset);
    if let Some(document) = SettingsFile::read(paths.keymap_file(), SymlinkPolicy::Follow)? {
        document.parse_table()?;
        files.push(KeymapFile { name: document.path.display().to_string(), text: document.text.into() });
    }
    Ok(files)
}
