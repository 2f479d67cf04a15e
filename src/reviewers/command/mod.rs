//! Reviewers that are programs: Claude Code, Codex, Gemini CLI, and any other that takes a prompt on standard input.
//!
//! Invariants: a program runs in a folder of its own (see [`crate::git::Throwaway`]), without a terminal, and reads
//! only, as far as it can be told to (or, for a fix, writes into that folder); with [`Agent`] gone nothing of it is left, nor when the worker is killed
//! ([`keeper`]); what it writes is data, and bounded however much it is.
//!
//! A request becomes one text ([`prompt`]) and one run of the program ([`invoke`], [`running`]); its output becomes one
//! answer ([`listen`]): all that the program said, not only its last words, because it may report along the way. Tokens
//! are as it counted them, over all of the requests it made itself. It is not run again when it fails: agents try again
//! by themselves, and a second run costs what the first did.

mod claude;
mod codex;
mod error_text;
mod gemini;
pub mod invoke;
mod json_access;
mod lines;
mod output_parser;
#[cfg(unix)]
mod process;
mod prompt;
#[cfg(unix)]
pub mod supervisor;
mod transcript;

#[cfg(unix)]
mod agent;
#[cfg(not(unix))]
#[path = "unsupported.rs"]
mod agent;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

pub use agent::Agent;
pub use invoke::AGENT_SETTINGS_PATHS;

pub use crate::config::CommandDialect;

/// What a program may do with the folder it runs in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FolderAccess {
    #[default]
    Read,
    /// For fixes. Agents are told to keep to the folder, and hold themselves to it; nothing keeps another program to it.
    Write,
}

/// How long a program may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandTimeouts {
    /// Without a byte on standard output or standard error.
    pub idle: Duration,
    /// In all, for one answer.
    pub total: Duration,
}

impl Default for CommandTimeouts {
    /// Agents wait up to three minutes before they give a provider up (Claude Code 2.1, Gemini CLI 0.61), and think
    /// silently in between; an agent that reviews a large change takes tens of minutes.
    fn default() -> Self {
        Self { idle: Duration::from_secs(5 * 60), total: Duration::from_secs(60 * 60) }
    }
}

/// A reviewer that is a program.
#[derive(Debug, Clone)]
pub struct Program {
    /// The reviewer's name, for errors.
    pub name: String,
    /// The program and the user's arguments. The program is a name in `PATH` or an absolute path.
    pub words: Vec<String>,
    pub dialect: CommandDialect,
    /// Only for agents; others have it in their words.
    pub model: Option<String>,
    /// As `model`. Gemini CLI takes none.
    pub effort: Option<String>,
    /// Where it runs: a throw-away checkout made without [`SETTINGS_OF_AGENTS`], which has to outlive the [`Agent`].
    pub folder: PathBuf,
    pub access: FolderAccess,
    pub timeouts: CommandTimeouts,
    /// Added to our own environment, and stronger.
    pub environment: Vec<(OsString, OsString)>,
    /// What becomes the keeper, with the arguments that make it call [`keeper::keep`] with the words after them:
    /// `revdeck keep --`.
    pub supervisor: (PathBuf, Vec<OsString>),
}

/// A reviewer to talk to. Nothing is started before it is asked.
pub fn open(program: Program) -> Agent {
    Agent::new(program)
}
