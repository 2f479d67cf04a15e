//! Where revdeck keeps what it keeps.

use std::path::PathBuf;

/// The folders, all below `$REVDECK_HOME` when that is set, else the platform's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    /// `config.toml` and the user's keymap and themes.
    pub config: PathBuf,
    /// Holds `review/repo-<key>/`.
    pub state: PathBuf,
    /// May be deleted at any time.
    pub cache: PathBuf,
    pub logs: PathBuf,
}
