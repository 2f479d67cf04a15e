//! Composition root: builds folders, settings, repository, store and clock for a command.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::actor::CommandActor;
use super::args::{ColorWhen, GlobalArgs};
use super::error::CliError;
use super::{output, variables};
use crate::config::{
    self, ClockAndIds, ColorChoice, LoadedSettings, MistakePolicy, Paths, RepositorySource, RequiredAssets,
    SettingsSources,
};
use crate::domain::Time;
use crate::git::Repo;
use crate::report::TextOptions;
use crate::runner::{RepositoryRules, Services, open_store};
use crate::store::{LearningPolicy, Store};
use crate::tui;

/// Folders and global flags that every command receives.
#[derive(Debug, Clone)]
pub struct Invocation {
    pub paths: Paths,
    pub global: GlobalArgs,
}

/// Opened repository with its store and settings, for commands that need a repository.
pub struct Session {
    pub paths: Paths,
    pub loaded: LoadedSettings,
    /// Settings for each change, with those of the repository at the change's base.
    pub rules: RepositoryRules,
    pub repo: Repo,
    pub store: Store,
    pub ambient: ClockAndIds,
    pub look: TextOptions,
}

/// Reads an environment variable. Returns `None` if it is not set or is not UTF-8.
pub fn read_variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

impl Invocation {
    /// Resolves the folders of revdeck from the environment.
    ///
    /// # Errors
    ///
    /// Returns an error if the folders of the platform are unknown and `REVDECK_HOME` is not set.
    pub fn new(global: GlobalArgs) -> Result<Self, CliError> {
        let paths = Paths::resolve(std::env::var_os(Paths::HOME_VARIABLE).as_deref())?;
        Ok(Self { paths, global })
    }

    /// Returns the current folder.
    ///
    /// # Errors
    ///
    /// Returns an error if the folder no longer exists.
    pub fn current_folder() -> Result<PathBuf, CliError> {
        std::env::current_dir().map_err(|error| CliError::usage(format!("the current folder is gone: {error}")))
    }

    /// Loads the settings, including those of the repository if `worktree` is given, and prints warnings to standard
    /// error.
    ///
    /// # Errors
    ///
    /// Returns an error if a settings file cannot be read or holds an invalid value.
    pub fn load_settings(&self, worktree: Option<&Path>, texts: RequiredAssets) -> Result<LoadedSettings, CliError> {
        let loaded = self.load_layers(worktree.into(), texts, MistakePolicy::Refuse)?;
        for warning in &loaded.warnings {
            output::print_note(&format!("warning: {warning}"));
        }
        Ok(loaded)
    }

    /// Loads the settings like [`Invocation::load_settings`], but looks neither at the theme and the keys nor at the names
    /// of variables.
    ///
    /// # Errors
    ///
    /// Returns an error if a settings file cannot be read or holds an invalid value.
    pub fn load_plain_settings(&self, worktree: Option<&Path>) -> Result<LoadedSettings, CliError> {
        let loaded = self.merge_layers(worktree.into(), RequiredAssets::Smells, MistakePolicy::Refuse)?;
        for warning in &loaded.warnings {
            output::print_note(&format!("warning: {warning}"));
        }
        Ok(loaded)
    }

    /// Loads the settings and checks the theme that they name. The keys are checked by [`tui::load_keymap`], because only
    /// the cockpit uses them.
    fn load_layers(
        &self,
        repository: RepositorySource<'_>,
        texts: RequiredAssets,
        mistakes: MistakePolicy,
    ) -> Result<LoadedSettings, CliError> {
        let mut loaded = self.merge_layers(repository, texts, mistakes)?;
        if let Some(fault) = tui::find_theme_fault(&self.paths, &loaded.settings.theme) {
            if mistakes == MistakePolicy::Refuse {
                return Err(refuse_user_file(&fault));
            }
            loaded.warnings.push(crate::domain::text::sanitize_line(&fault).into_owned());
        }
        // A newer revdeck may know the variable, so it stops nothing.
        loaded.warnings.extend(variables::describe_unknown(&variables::list_set()));
        Ok(loaded)
    }

    fn merge_layers(
        &self,
        repository: RepositorySource<'_>,
        texts: RequiredAssets,
        mistakes: MistakePolicy,
    ) -> Result<LoadedSettings, CliError> {
        let mut flags = Vec::new();
        if let Some(color) = self.global.color {
            let word = match color {
                ColorWhen::Auto => "auto",
                ColorWhen::Always => "always",
                ColorWhen::Never => "never",
            };
            flags.push(("color", "--color", word.to_owned()));
        }
        if self.global.ascii {
            flags.push(("ascii", "--ascii", "true".to_owned()));
        }
        if self.global.plain {
            flags.push(("plain", "--plain", "true".to_owned()));
        }
        if let Some(theme) = &self.global.theme {
            flags.push(("theme", "--theme", theme.clone()));
        }
        if self.global.no_learning {
            flags.push(("learning.enabled", "--no-learning", "false".to_owned()));
        }
        let inputs = SettingsSources {
            paths: &self.paths,
            repository,
            environment: &read_variable,
            flags: &flags,
            texts,
            mistakes,
        };
        Ok(config::load_settings(inputs)?)
    }

    /// Returns the clock and the id generator. For tests, `REVDECK_NOW` starts the clock at a given time.
    ///
    /// # Errors
    ///
    /// Returns an error if `REVDECK_NOW` is not a valid time.
    pub fn clock_and_ids(&self) -> Result<ClockAndIds, CliError> {
        Ok(ClockAndIds::from_variable(read_variable("REVDECK_NOW").as_deref())?)
    }

    /// Returns the actor of this command: a person, perhaps by a job of continuous integration, or an assistant.
    ///
    /// # Errors
    ///
    /// Returns an error if `REVDECK_ACTOR` has an unknown value.
    pub fn actor(&self) -> Result<CommandActor, CliError> {
        CommandActor::detect(read_variable)
    }

    /// Opens the repository around the current folder with its store and settings, and prints warnings.
    ///
    /// # Errors
    ///
    /// Returns an error outside of a repository, or if the settings are invalid or the store cannot be opened.
    pub fn open_session(&self, texts: RequiredAssets) -> Result<Session, CliError> {
        Ok(print_warnings(self.open_current(texts, MistakePolicy::Refuse)?))
    }

    /// Opens the repository like [`Invocation::open_session`], but only warns about invalid settings of the user, so
    /// that stored data can be read in spite of them.
    ///
    /// # Errors
    ///
    /// Returns an error outside of a repository, or if the store cannot be opened.
    pub fn open_reading_session(&self, texts: RequiredAssets) -> Result<Session, CliError> {
        Ok(print_warnings(self.open_current(texts, MistakePolicy::Warn)?))
    }

    /// Opens the repository like [`Invocation::open_reading_session`], but prints no warning either: for programs that show
    /// all output.
    ///
    /// # Errors
    ///
    /// Returns an error outside of a repository, or if the store cannot be opened.
    pub fn open_quiet_session(&self) -> Result<Session, CliError> {
        self.open_current(RequiredAssets::None, MistakePolicy::Warn)
    }

    /// Opens the repository around `folder` for reading, without printing anything.
    ///
    /// # Errors
    ///
    /// Returns an error outside of a repository, or if the store cannot be opened.
    pub fn open_silent_session(&self, folder: &Path) -> Result<Session, CliError> {
        self.open_in_repo(Repo::discover(folder)?, RequiredAssets::None, MistakePolicy::Warn)
    }

    /// Loads the settings like [`Invocation::load_settings`], but only warns about invalid values of the user.
    ///
    /// # Errors
    ///
    /// Returns an error if a settings file cannot be read.
    pub fn load_reading_settings(
        &self,
        worktree: Option<&Path>,
        texts: RequiredAssets,
    ) -> Result<LoadedSettings, CliError> {
        let loaded = self.load_layers(worktree.into(), texts, MistakePolicy::Warn)?;
        for warning in &loaded.warnings {
            output::print_note(&format!("warning: {warning}"));
        }
        Ok(loaded)
    }

    /// Loads the settings as reviews of uncommitted changes obey them: with the repository's settings file at HEAD.
    /// Returns `None` if there is no commit, or if the settings cannot be read.
    pub fn load_settings_at_head(&self, repo: &Repo) -> Option<LoadedSettings> {
        let path = repo.root().join(config::REPOSITORY_FILE);
        let head = repo.head();
        let file =
            if head.is_empty() { None } else { Some(repo.regular_file_at(&head, config::REPOSITORY_FILE).ok()?) };
        let text = file?.and_then(|file| String::from_utf8(file).ok());
        let source = match &text {
            Some(text) => RepositorySource::Text { path: &path, text },
            None => RepositorySource::None,
        };
        self.load_layers(source, RequiredAssets::Smells, MistakePolicy::Warn).ok()
    }

    /// Opens the repository whose worktree root is `worktree`, without printing warnings: the watcher repeats this
    /// call.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no repository, the settings are invalid or the store cannot be opened.
    pub fn open_runner_at(&self, worktree: &Path, texts: RequiredAssets) -> Result<Services, CliError> {
        let session = self.open_in_repo(Repo::open_worktree(worktree)?, texts, MistakePolicy::Refuse)?;
        Ok(session.into_runner().0)
    }

    /// Opens the repository around the current folder, without printing warnings: a server repeats this call.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no repository, the settings are invalid or the store cannot be opened.
    pub fn open_runner(&self, texts: RequiredAssets, mistakes: MistakePolicy) -> Result<Services, CliError> {
        Ok(self.open_current(texts, mistakes)?.into_runner().0)
    }

    /// Returns the source of the settings for each change. Mistakes in them were reported when the session was opened.
    fn repository_rules(&self, root: &Path, loaded: &LoadedSettings) -> RepositoryRules {
        let (invocation, path) = (self.clone(), root.join(config::REPOSITORY_FILE));
        let settings = Arc::new(loaded.settings.clone());
        RepositoryRules::new(move |text| {
            let source = match &text {
                Some(text) => RepositorySource::Text { path: &path, text },
                None => RepositorySource::None,
            };
            let load = |source| invocation.load_layers(source, RequiredAssets::Smells, MistakePolicy::Warn);
            let loaded = load(source).or_else(|error| {
                tracing::warn!(error = %error.message, "the settings at the base of a change cannot be read");
                // The settings of the worktree are part of the change under review.
                load(RepositorySource::None)
            });
            loaded.map_or_else(
                |error| {
                    tracing::warn!(error = %error.message, "the settings cannot be read again");
                    Arc::clone(&settings)
                },
                |loaded| Arc::new(loaded.settings),
            )
        })
    }

    fn open_current(&self, texts: RequiredAssets, mistakes: MistakePolicy) -> Result<Session, CliError> {
        self.open_in_repo(Repo::discover(&Self::current_folder()?)?, texts, mistakes)
    }

    fn open_in_repo(&self, repo: Repo, texts: RequiredAssets, mistakes: MistakePolicy) -> Result<Session, CliError> {
        let root = repo.root();
        let loaded = self.load_layers(RepositorySource::Worktree(&root), texts, mistakes)?;
        let repo = repo.with_git_patience(Duration::from_secs(loaded.settings.git_seconds));
        let learning = if loaded.settings.learning.enabled { LearningPolicy::Allowed } else { LearningPolicy::Refused };
        let is_ci = self.actor().is_ok_and(|actor| actor.is_ci);
        let store = open_store(&repo, &self.paths)?.with_learning(learning).with_ci(is_ci);
        let ambient = self.clock_and_ids()?;
        let look = detect_look(&loaded, ambient.now());
        let rules = self.repository_rules(&root, &loaded);
        Ok(Session { paths: self.paths.clone(), loaded, rules, repo, store, ambient, look })
    }
}

/// Returns the error for a mistake in a file of the user.
pub fn refuse_user_file(fault: &str) -> CliError {
    CliError::usage(crate::domain::text::sanitize_line(fault).into_owned())
        .hint("`revdeck config path` says where your files are")
}

/// Prints the mistakes in the user's keys as warnings.
pub fn warn_of_keymap_faults(loaded: &LoadedSettings) {
    for fault in tui::check_keymap(&loaded.settings.keymap, &loaded.settings.commands).0 {
        output::print_note(&format!("warning: {}", crate::domain::text::sanitize_line(&fault)));
    }
}

fn print_warnings(session: Session) -> Session {
    for warning in &session.loaded.warnings {
        output::print_note(&format!("warning: {warning}"));
    }
    session
}

/// Returns colours, glyphs and width for text on standard output.
pub fn detect_look(loaded: &LoadedSettings, now: Time) -> TextOptions {
    let terminal = std::io::stdout().is_terminal();
    let color = match loaded.settings.color {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => {
            terminal
                && read_variable("NO_COLOR").is_none_or(|value| value.is_empty())
                && read_variable("TERM").is_none_or(|term| term != "dumb")
        }
    };
    let width = terminal.then(|| crossterm::terminal::size().ok()).flatten().map(|(columns, _)| usize::from(columns));
    TextOptions { color, ascii: loaded.settings.ascii, width: width.filter(|columns| *columns > 0), now }
}

impl Session {
    /// Splits the session into a runner, which handles requests, and the text style.
    pub fn into_runner(self) -> (Services, TextOptions) {
        let Self { paths, loaded, rules, repo, store, ambient, look } = self;
        (Services { repo, store, settings: Arc::new(loaded.settings), rules, paths, ambient }, look)
    }
}
