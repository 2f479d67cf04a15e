//! Finds the keymap files in effect. The cockpit lays them over each other and checks them.

use std::borrow::Cow;
use std::path::Path;

use super::error::{ConfigError, SettingLocation};
use super::settings_file::{SettingsFile, SymlinkPolicy};
use super::{Paths, embedded};

/// Keymap in TOML, with the name of its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeymapFile {
    /// Path of the user's file, or name of an embedded one.
    pub name: String,
    /// Content of the file.
    pub text: Cow<'static, str>,
}

impl KeymapFile {
    /// Returns the embedded keymap.
    pub fn common() -> Self {
        Self { name: "assets/keymap.toml".to_owned(), text: Cow::Borrowed(embedded::KEYMAP) }
    }

    /// Returns the location of byte `offset`.
    pub fn location_at(&self, offset: usize) -> SettingLocation {
        SettingLocation::from_offset(Path::new(&self.name), &self.text, offset)
    }
}

/// Lists the embedded keymap files, lowest layer first.
pub fn embedded_keymaps() -> Vec<KeymapFile> {
    vec![KeymapFile::common()]
}

/// Lists the keymap files in effect, lowest layer first, the user's file last.
///
/// # Errors
///
/// Fails if the user's file cannot be read or is not TOML.
pub fn load_keymaps(paths: &Paths) -> Result<Vec<KeymapFile>, ConfigError> {
    let mut files = embedded_keymaps();
    if let Some(document) = SettingsFile::read(paths.keymap_file(), SymlinkPolicy::Follow)? {
        document.parse_table()?;
        files.push(KeymapFile { name: document.path.display().to_string(), text: document.text.into() });
    }
    Ok(files)
}
