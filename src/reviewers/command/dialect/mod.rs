//! Agent programs: the command line, the output and the advice of each one.
//!
//! # Adding an agent
//!
//! - Here: a file with its [`AgentDialect`], and its line in [`from_setting`].
//! - In `config/reviewers/dialect.rs`: its word, which is the name of its program.
//! - In the user's words: the dialect in `docs/reviewers.md` and `assets/config.toml`; a test compares both with the
//!   enum.
//!
//! Nothing else matches on [`CommandDialect`].

mod claude;
mod codex;
mod gemini;
mod plain;

use std::fmt::Debug;

use serde_json::Value;

use super::arguments::{AgentOptions, ArgumentList};
use super::transcript::AgentTranscript;
use crate::config::CommandDialect;
use crate::domain::Usage;
use crate::reviewers::chat::ChatProgress;

/// Receiver of the progress that an output reports.
pub type ProgressSink<'a> = &'a mut dyn FnMut(ChatProgress);

/// A kind of program.
pub trait AgentDialect: Debug + Send + Sync {
    /// Returns `false` if the output of the program is the answer itself, without events.
    fn writes_events(&self) -> bool {
        true
    }

    /// Adds the options that make the program a reviewer, in the order of the command line.
    fn add_options(&self, _options: &AgentOptions<'_>, _arguments: &mut ArgumentList<'_>) {}

    /// Returns alternative names of options: the name that [`AgentDialect::add_options`] adds, and the other one.
    fn option_aliases(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// Returns variables that the program needs.
    fn environment(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// Returns variables that a session of the program sets for its commands. An agent that revdeck starts would take
    /// them for its own.
    fn session_variables(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns files and folders with which a repository tells the program what to do.
    fn settings_paths(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns the command that installs the program; `None` if it is unknown.
    fn install_command(&self) -> Option<&'static str> {
        None
    }

    /// Returns what the user can do if the program has no access to its provider.
    fn login_advice(&self) -> &'static str;

    /// Returns `true` if the event is the first of a session of the program.
    fn is_session_start(&self, _event: &Value) -> bool {
        false
    }

    /// Returns `true` if the reader reads the event. Other lines of a program without events are text of the answer.
    fn is_event(&self, _event: &Value) -> bool {
        true
    }

    fn new_reader(&self) -> Box<dyn AgentEventReader>;
}

/// A reader of the events of one session.
pub trait AgentEventReader: Debug {
    /// Applies an event to the transcript. Ignores events of unknown types.
    fn read_event(&mut self, event: &Value, said: &mut AgentTranscript, tell: ProgressSink<'_>);

    /// Applies the lines of a session without any event. Returns `false` if they are of no use.
    fn read_stray_lines(&mut self, _lines: &[u8], _said: &mut AgentTranscript) -> bool {
        false
    }

    /// Returns the token usage that the events of an unfinished session reported.
    fn counted_usage(&self) -> Usage {
        Usage::default()
    }
}

/// Returns the program of a setting.
pub fn from_setting(setting: CommandDialect) -> &'static dyn AgentDialect {
    match setting {
        CommandDialect::Claude => &claude::ClaudeDialect,
        CommandDialect::Codex => &codex::CodexDialect,
        CommandDialect::Gemini => &gemini::GeminiDialect,
        CommandDialect::Plain => &plain::PlainDialect,
    }
}

/// Lists all programs.
pub fn all() -> impl Iterator<Item = &'static dyn AgentDialect> {
    CommandDialect::ALL.iter().copied().map(from_setting)
}

/// Files and folders of other agents, and of several agents.
const SHARED_SETTINGS_PATHS: [&str; 5] = [".agents", ".cursor", ".env", ".env.local", "AGENTS.md"];

/// Lists the files and folders with which a repository tells agents which commands to run, where to send data or what
/// to do.
///
/// Claude Code and Codex have options to ignore them. Gemini CLI obeys all of them in a trusted folder, and in an
/// untrusted folder it does not work without a terminal. Therefore [`crate::git::Repo::create_checkout`] leaves them
/// out of the checkout. The diff still shows what a change does to them.
pub fn agent_settings_paths() -> Vec<&'static str> {
    let own = all().flat_map(|dialect| dialect.settings_paths().iter().copied());
    let mut paths: Vec<&str> = SHARED_SETTINGS_PATHS.into_iter().chain(own).collect();
    paths.sort_unstable();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_every_agent_stay_out_of_the_checkout() {
        assert_eq!(
            agent_settings_paths(),
            [
                ".agents",
                ".claude",
                ".codex",
                ".cursor",
                ".env",
                ".env.local",
                ".gemini",
                ".mcp.json",
                "AGENTS.md",
                "AGENTS.override.md",
                "CLAUDE.local.md",
                "CLAUDE.md",
                "GEMINI.md",
            ]
        );
    }

    #[test]
    fn only_programs_of_unknown_kind_write_no_events() {
        for setting in CommandDialect::ALL {
            let dialect = from_setting(*setting);
            assert_eq!(dialect.writes_events(), *setting != CommandDialect::Plain, "{setting}");
            assert_eq!(dialect.install_command().is_some(), dialect.writes_events(), "{setting}");
        }
    }
}
