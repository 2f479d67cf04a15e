//! The composition root: folders, settings, repository, store and clock put together for a command.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::arguments::{Color, Global};
use super::error::CliError;
use super::output;
use crate::config::{self, Ambient, ColorChoice, Inputs, Loaded, Mistakes, Paths, Texts};
use crate::domain::Time;
use crate::git::Repo;
use crate::report::Look;
use crate::runner::{Runner, store_of};
use crate::store::{Learning, Store};
use crate::tui;

/// What every command starts from.
#[derive(Debug, Clone)]
pub struct Invocation {
    pub paths: Paths,
    pub global: Global,
}

/// A command in a repository.
pub struct Session {
    pub paths: Paths,
    pub loaded: Loaded,
    pub repo: Repo,
    pub store: Store,
    pub ambient: Ambient,
    pub look: Look,
}

/// A variable as text; one that is not UTF-8 counts as not set.
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

impl Invocation {
    pub fn new(global: Global) -> Result<Self, CliError> {
        let paths = Paths::resolve(std::env::var_os(Paths::HOME_VARIABLE).as_deref())?;
        Ok(Self { paths, global })
    }

    pub fn here() -> Result<PathBuf, CliError> {
        std::env::current_dir().map_err(|error| CliError::usage(format!("the current folder is gone: {error}")))
    }

    /// The settings, those of the repository included when a working tree is given. Warnings go to standard error.
    pub fn settings(&self, worktree: Option<&Path>, texts: Texts) -> Result<Loaded, CliError> {
        let loaded = self.load(worktree, texts, Mistakes::Refuse)?;
        for warning in &loaded.warnings {
            output::note(&format!("warning: {warning}"));
        }
        Ok(loaded)
    }

    fn load(&self, worktree: Option<&Path>, texts: Texts, mistakes: Mistakes) -> Result<Loaded, CliError> {
        let mut flags = Vec::new();
        if let Some(color) = self.global.color {
            let word = match color {
                Color::Auto => "auto",
                Color::Always => "always",
                Color::Never => "never",
            };
            flags.push(("color", "--color", word.to_owned()));
        }
        if self.global.ascii {
            flags.push(("ascii", "--ascii", "true".to_owned()));
        }
        if let Some(theme) = &self.global.theme {
            flags.push(("theme", "--theme", theme.clone()));
        }
        if self.global.no_learning {
            flags.push(("learning.enabled", "--no-learning", "false".to_owned()));
        }
        let inputs = Inputs { paths: &self.paths, worktree, environment: &variable, flags: &flags, texts, mistakes };
        let mut loaded = config::load(inputs)?;
        // The theme matters to the cockpit alone: whoever only reviews is not told at each step.
        if texts == Texts::All && !tui::has_theme(&self.paths, &loaded.settings.theme) {
            let line = format!("there is no theme {:?}: the colours are those of the dark one", loaded.settings.theme);
            loaded.warnings.push(crate::domain::text::one_line(&line).into_owned());
        }
        Ok(loaded)
    }

    pub fn ambient(&self) -> Result<Ambient, CliError> {
        Ok(Ambient::from_variable(variable("REVDECK_NOW").as_deref())?)
    }

    /// The repository around the current folder with its store and settings.
    pub fn session(&self, texts: Texts) -> Result<Session, CliError> {
        Ok(told(self.open(texts, Mistakes::Refuse)?))
    }

    /// As [`Invocation::session`], for commands that read what is there: a mistake in the user's settings is no reason
    /// not to show it.
    pub fn reading_session(&self, texts: Texts) -> Result<Session, CliError> {
        Ok(told(self.open(texts, Mistakes::Tell)?))
    }

    /// As [`Invocation::settings`], for a command that only shows them.
    pub fn reading_settings(&self, worktree: Option<&Path>, texts: Texts) -> Result<Loaded, CliError> {
        let loaded = self.load(worktree, texts, Mistakes::Tell)?;
        for warning in &loaded.warnings {
            output::note(&format!("warning: {warning}"));
        }
        Ok(loaded)
    }

    /// The repository of this very worktree, for somebody who comes back again and again: warnings are not told.
    pub fn runner_at(&self, worktree: &Path, texts: Texts) -> Result<Runner, CliError> {
        let session = self.open_in(Repo::at(worktree)?, texts, Mistakes::Refuse)?;
        Ok(session.into_runner().0)
    }

    fn open(&self, texts: Texts, mistakes: Mistakes) -> Result<Session, CliError> {
        self.open_in(Repo::discover(&Self::here()?)?, texts, mistakes)
    }

    fn open_in(&self, repo: Repo, texts: Texts, mistakes: Mistakes) -> Result<Session, CliError> {
        let root = repo.root();
        let loaded = self.load(Some(&root), texts, mistakes)?;
        let learning = if loaded.settings.learning.enabled { Learning::Allowed } else { Learning::Refused };
        let store = store_of(&repo, &self.paths)?.with_learning(learning);
        let ambient = self.ambient()?;
        let look = look(&loaded, ambient.now());
        Ok(Session { paths: self.paths.clone(), loaded, repo, store, ambient, look })
    }
}

fn told(session: Session) -> Session {
    for warning in &session.loaded.warnings {
        output::note(&format!("warning: {warning}"));
    }
    session
}

/// How text is to look on this standard output.
pub fn look(loaded: &Loaded, now: Time) -> Look {
    let terminal = std::io::stdout().is_terminal();
    let color = match loaded.settings.color {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => {
            terminal
                && variable("NO_COLOR").is_none_or(|value| value.is_empty())
                && variable("TERM").is_none_or(|term| term != "dumb")
        }
    };
    let width = terminal.then(|| crossterm::terminal::size().ok()).flatten().map(|(columns, _)| usize::from(columns));
    Look { color, ascii: loaded.settings.ascii, width: width.filter(|columns| *columns > 0), now }
}

impl Session {
    /// Everything a request needs, and how to print.
    pub fn into_runner(self) -> (Runner, Look) {
        let Self { paths, loaded, repo, store, ambient, look } = self;
        (Runner { repo, store, settings: Arc::new(loaded.settings), paths, ambient }, look)
    }
}
