//! Defines the folders and files that revdeck uses.
//!
//! - With `$REVDECK_HOME` set, nothing outside of it is read or written.
//! - Every path is absolute.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::ConfigError;

/// Folders of revdeck: all inside `$REVDECK_HOME` when it is set, else the platform's own folders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    /// Folder of `config.toml` and of the user's keymap, models, prompts and themes.
    pub config: PathBuf,
    /// Folder that holds `review/repo-<key>/`.
    pub state: PathBuf,
    /// Cache folder; may be deleted at any time.
    pub cache: PathBuf,
    /// Patterns learned from all repositories, see [`crate::knowledge`]. This is not a cache: it cannot be rebuilt.
    pub knowledge: PathBuf,
    /// Folder of the log files, which are written only if `REVDECK_LOG` names a level.
    pub logs: PathBuf,
}

impl Paths {
    /// Environment variable that names one folder for everything.
    pub const HOME_VARIABLE: &str = "REVDECK_HOME";

    /// Returns the folders for a value of `REVDECK_HOME`. An empty value counts as unset; a relative value starts
    /// from the current folder.
    ///
    /// # Errors
    ///
    /// Fails if the current folder is unknown for a relative value, or if the platform gives no home folder.
    pub fn resolve(home: Option<&OsStr>) -> Result<Self, ConfigError> {
        match home.filter(|home| !home.is_empty()) {
            Some(home) => {
                let absolute = std::path::absolute(home).map_err(|source| ConfigError::RelativeHome {
                    value: home.to_string_lossy().into_owned(),
                    source,
                })?;
                Ok(Self::from_home(&absolute))
            }
            None => Self::from_platform().ok_or(ConfigError::NoHome),
        }
    }

    /// Returns the folders inside one home folder.
    pub fn from_home(home: &Path) -> Self {
        Self {
            config: home.to_owned(),
            state: home.join("state"),
            cache: home.join("cache"),
            knowledge: home.join("knowledge_cache"),
            logs: home.join("logs"),
        }
    }

    /// Returns the folder that holds everything, as a child process needs it in `REVDECK_HOME`; `None` with the
    /// platform's folders.
    pub fn home(&self) -> Option<&Path> {
        (self.state == self.config.join("state")).then_some(self.config.as_path())
    }

    fn from_platform() -> Option<Self> {
        let folders = directories::ProjectDirs::from("", "", "revdeck")?;
        let state = folders.state_dir().unwrap_or_else(|| folders.data_local_dir()).to_owned();
        Some(Self {
            config: folders.config_dir().to_owned(),
            logs: state.join("logs"),
            knowledge: state.join("knowledge_cache"),
            state: state.join("state"),
            cache: folders.cache_dir().to_owned(),
        })
    }

    /// Returns the path of the user's settings.
    pub fn config_file(&self) -> PathBuf {
        self.config.join("config.toml")
    }

    /// Returns the path of the user's thresholds for the built-in reviewer.
    pub fn smells_file(&self) -> PathBuf {
        self.config.join("smells.toml")
    }

    /// Returns the path of the user's keymap.
    pub fn keymap_file(&self) -> PathBuf {
        self.config.join("keymap.toml")
    }

    /// Returns the path of the user's model table.
    pub fn models_file(&self) -> PathBuf {
        self.config.join("models.toml")
    }

    /// Returns the folder of the user's prompts.
    pub fn prompts_folder(&self) -> PathBuf {
        self.config.join("prompts")
    }

    /// Returns the folder of the history cache for the repository with this key.
    pub fn history_folder(&self, key: &str) -> PathBuf {
        self.cache.join("context").join(key)
    }

    /// Returns the folder of the index for the repository with this key.
    pub fn index_folder(&self, key: &str) -> PathBuf {
        self.cache.join("index").join(format!("repo-{key}"))
    }

    /// Lists the existing folders of [`Paths::history_folder`] and [`Paths::index_folder`], each with its repository
    /// key.
    pub fn list_repo_caches(&self) -> Vec<(PathBuf, String)> {
        let mut found = Vec::new();
        for (sort, prefix) in [("context", ""), ("index", "repo-")] {
            for entry in std::fs::read_dir(self.cache.join(sort)).into_iter().flatten().flatten() {
                let name = entry.file_name();
                let key = name.to_str().and_then(|name| name.strip_prefix(prefix));
                let is_key = |key: &&str| !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_hexdigit());
                let is_folder = entry.file_type().is_ok_and(|sort| sort.is_dir());
                found.extend(key.filter(is_key).filter(|_| is_folder).map(|key| (entry.path(), key.to_owned())));
            }
        }
        found
    }

    /// Returns the folder of the embedding vectors of all repositories.
    pub fn vectors_folder(&self) -> PathBuf {
        self.cache.join("vectors")
    }

    /// Returns the path of the user's theme with this name; `None` for a name that could leave the folder.
    pub fn theme_file(&self, name: &str) -> Option<PathBuf> {
        let plain = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_'));
        plain.then(|| self.config.join("themes").join(format!("{name}.toml")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_variable_holds_everything() {
        let paths = Paths::resolve(Some(OsStr::new("/x/home"))).expect("absolute");
        assert_eq!(paths, Paths::from_home(Path::new("/x/home")));
        assert_eq!(paths.home(), Some(Path::new("/x/home")));
        assert_eq!(paths.config_file(), Path::new("/x/home/config.toml"));

        let relative = Paths::resolve(Some(OsStr::new("some/home"))).expect("relative to here");
        assert!(relative.config.is_absolute() && relative.config.ends_with("some/home"), "{relative:?}");
    }

    #[test]
    fn an_empty_variable_is_no_variable() {
        assert_eq!(Paths::resolve(Some(OsStr::new(""))).ok(), Paths::resolve(None).ok());
        if let Ok(paths) = Paths::resolve(None) {
            assert_eq!(paths.home(), None, "{paths:?}");
        }
    }

    #[test]
    fn a_theme_name_cannot_leave_its_folder() {
        let paths = Paths::from_home(Path::new("/h"));
        assert_eq!(paths.theme_file("solar-ized_2"), Some(PathBuf::from("/h/themes/solar-ized_2.toml")));
        for bad in ["", "../config", "a/b", "a.b", "nul\0"] {
            assert_eq!(paths.theme_file(bad), None, "{bad:?}");
        }
    }
}
