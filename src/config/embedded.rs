//! Embeds the files of `assets/` in the program.

/// `assets/config.toml`: every setting with its default.
pub const CONFIG: &str = include_str!("../../assets/config.toml");
/// The values of [`CONFIG`] without its comments, made by the build.
pub const DEFAULTS: &str = include_str!(concat!(env!("OUT_DIR"), "/defaults.toml"));
/// `assets/smells.toml`: the thresholds of the built-in reviewer.
pub const SMELLS: &str = include_str!("../../assets/smells.toml");
/// `assets/keymap.toml`: the keys of the cockpit.
pub const KEYMAP: &str = include_str!("../../assets/keymap.toml");
/// `assets/keymaps/vim.toml`: the keys of the preset "vim".
pub const KEYMAP_VIM: &str = include_str!("../../assets/keymaps/vim.toml");
/// `assets/keymaps/emacs.toml`: the keys of the preset "emacs".
pub const KEYMAP_EMACS: &str = include_str!("../../assets/keymaps/emacs.toml");
/// `assets/keymaps/arrows.toml`: the keys of the preset "arrows".
pub const KEYMAP_ARROWS: &str = include_str!("../../assets/keymaps/arrows.toml");
/// `assets/models.toml`: the table of known models.
pub const MODELS: &str = include_str!("../../assets/models.toml");
/// [`MODELS`] as JSON, which is parsed faster.
pub const MODELS_JSON: &str = include_str!(concat!(env!("OUT_DIR"), "/models.json"));
