//! Embeds the files of `assets/` in the program.

/// `assets/config.toml`: every setting with its default.
pub const CONFIG: &str = include_str!("../../assets/config.toml");
/// `assets/smells.toml`: the thresholds of the built-in reviewer.
pub const SMELLS: &str = include_str!("../../assets/smells.toml");
/// `assets/keymap.toml`: the keys of the cockpit.
pub const KEYMAP: &str = include_str!("../../assets/keymap.toml");
/// `assets/models.toml`: the table of known models.
pub const MODELS: &str = include_str!("../../assets/models.toml");
