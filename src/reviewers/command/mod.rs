//! Reviewers that are programs: Claude Code, Codex, Gemini CLI, and any other program that takes a prompt on standard
//! input.
//!
//! - A program runs in its own folder (see [`crate::git::TemporaryCheckout`]), without a terminal. It only reads, as
//!   far as its options can restrict it, or writes into that folder for a fix.
//! - After [`Agent`] is dropped, or the worker is killed, no process of the program is left ([`supervisor`]).
//! - The output of a program is untrusted data and is bounded.
//!
//! A request becomes one text ([`prompt`]) and one run of the program ([`invoke`], [`process`]). The output becomes one
//! answer ([`output_parser`]). Everything that differs between programs is in [`dialect`].
//!
//! The answer contains all messages of the program, not only the last one, because the program may report findings on
//! the way. The token counts are those of the program, summed over all of its own requests. A failed program is not run
//! again: agents retry by themselves, and a second run costs as much as the first.

mod arguments;
mod dialect;
mod error_text;
pub(crate) mod invoke;
mod lines;
mod output_parser;
#[cfg(unix)]
mod process;
mod prompt;
#[cfg(unix)]
pub(crate) mod supervisor;
mod transcript;

#[cfg(unix)]
mod agent;
#[cfg(not(unix))]
#[path = "unsupported.rs"]
mod agent;

use std::ffi::OsString;
use std::path::PathBuf;

pub use agent::Agent;
pub use dialect::agent_settings_paths;

use super::chat::AnswerTimeouts;
pub use crate::config::CommandDialect;

/// The access of a program to the folder it runs in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FolderAccess {
    /// For reviews. Agents get options that only allow reading; nothing enforces it for other programs.
    #[default]
    Read,
    /// For fixes. Agents are told to stay in the folder and enforce it themselves. Nothing enforces it for other
    /// programs.
    Write,
}

/// A reviewer that is a program.
#[derive(Debug, Clone)]
pub struct Program {
    /// The reviewer's name, for error messages.
    pub name: String,
    /// The program and the user's arguments. The program is a name in `PATH` or an absolute path.
    pub words: Vec<String>,
    /// Command line and output format of the program.
    pub dialect: CommandDialect,
    /// The model, for agents only. For other programs it is part of `words`.
    pub model: Option<String>,
    /// The effort, for agents only. Gemini CLI takes none.
    pub effort: Option<String>,
    /// The folder the program runs in: a throw-away checkout without [`agent_settings_paths`], which must outlive the
    /// [`Agent`].
    pub folder: PathBuf,
    /// Access of the program to `folder`.
    pub access: FolderAccess,
    /// A byte on standard output or standard error ends the idle time.
    pub timeouts: AnswerTimeouts,
    /// Variables that are added to the current environment and replace variables of the same name.
    pub environment: Vec<(OsString, OsString)>,
    /// The program that runs as supervisor, with the arguments after which it calls [`supervisor::supervise`] with the
    /// remaining words: `revdeck keep --`.
    pub supervisor: (PathBuf, Vec<OsString>),
}

/// Creates the agent. Starts no process before the first request.
pub fn open(program: Program) -> Agent {
    Agent::new(program)
}
