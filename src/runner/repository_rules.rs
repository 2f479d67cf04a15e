//! Settings of the reviewed repository for one change, read from the base of the change.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::config::{self, REPOSITORY_FILE, Settings};
use crate::git::{FilterRules, FilterSettings};
use crate::runner::Services;

/// Function that merges the text of a repository's settings file into the user's settings.
type SettingsMerger = dyn Fn(Option<String>) -> Arc<Settings> + Send + Sync;

/// Source of the settings for a change. Which of them a repository may set is decided by the layers of `config`; this
/// type only knows the text of its file.
#[derive(Clone)]
pub struct RepositoryRules {
    merge: Arc<SettingsMerger>,
    /// Merged settings by the text of the file; `None` for a base without such a file.
    merged: Arc<Mutex<HashMap<Option<String>, Arc<Settings>>>>,
}

impl std::fmt::Debug for RepositoryRules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RepositoryRules").finish_non_exhaustive()
    }
}

impl RepositoryRules {
    /// Creates a source from a function that merges the text of a file into the user's settings. The function is called
    /// once for each text.
    pub fn new(merge: impl Fn(Option<String>) -> Arc<Settings> + Send + Sync + 'static) -> Self {
        Self { merge: Arc::new(merge), merged: Arc::default() }
    }

    /// Creates a source that obeys no repository.
    pub fn fixed(settings: Arc<Settings>) -> Self {
        Self::new(move |_| Arc::clone(&settings))
    }

    /// Returns the settings for a change whose base has this settings file. A file that is no text has no effect.
    fn merge(&self, file: Option<Vec<u8>>) -> Arc<Settings> {
        let text = file.and_then(|file| String::from_utf8(file).ok());
        let mut merged = self.merged.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(merged.entry(text.clone()).or_insert_with(|| (self.merge)(text)))
    }
}

impl FilterRules for RepositoryRules {
    fn settings_at(&self, read_base: &mut dyn FnMut(&str) -> Option<Vec<u8>>) -> FilterSettings {
        let settings = self.merge(read_base(REPOSITORY_FILE));
        FilterSettings { max_file_bytes: settings.max_file_bytes, ignored_paths: settings.ignored_paths.clone() }
    }
}

impl Services {
    /// Returns the settings that leave files out of reviews; those of the repository come from the base of each change.
    pub(crate) fn filter(&self) -> RepositoryRules {
        self.rules.clone()
    }

    /// Returns the settings for the change from `base` (empty if there is none) to `snapshot`. If the base cannot be
    /// read, the repository has no say.
    pub(crate) fn settings_for(&self, base: &str, snapshot: &str) -> Arc<Settings> {
        let commit = self.repo.find_rules_commit(base, snapshot).ok().flatten();
        self.settings_at(commit.as_deref())
    }

    /// Returns a note about the rules for reviews that the change from `base` to `snapshot` loosens, if it does.
    pub(crate) fn describe_loosened_rules(&self, base: &str, snapshot: &str) -> Option<String> {
        // Without rules of a base, no rules of a repository hold, and the change loosens none.
        let before = self.repo.find_rules_commit(base, snapshot).ok().flatten()?;
        config::describe_loosened_rules(&self.settings_at(Some(&before)), &self.settings_at(Some(snapshot)))
    }

    fn settings_at(&self, commit: Option<&str>) -> Arc<Settings> {
        let file = commit.and_then(|commit| self.repo.regular_file_at(commit, REPOSITORY_FILE).ok().flatten());
        self.rules.merge(file)
    }
}
