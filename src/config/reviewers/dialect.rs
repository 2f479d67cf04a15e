//! Names of the agent programs. `reviewers/command/dialect` holds what differs between them.

use serde::{Deserialize, Serialize};

use crate::domain::word_enum;

word_enum!(
    /// Command line and output format of an agent program. The words are the values of `dialect` in the settings and
    /// the names of the programs.
    CommandDialect {
        /// Claude Code.
        Claude = "claude",
        Codex = "codex",
        /// Gemini CLI.
        Gemini = "gemini",
        /// Prompt on standard input; text or revdeck's own events on standard output. revdeck adds no arguments to the
        /// user's command.
        Plain = "plain",
    }
);

impl CommandDialect {
    /// Returns the dialect for a program path, by its file name.
    pub fn from_program(program: &str) -> Self {
        let file = program.rsplit(['/', '\\']).next().unwrap_or(program).to_lowercase();
        file.split('.').next().unwrap_or_default().parse().unwrap_or(Self::Plain)
    }
}
