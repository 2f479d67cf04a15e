//! Server of the Language Server Protocol (LSP) on standard input and output: findings as diagnostics in any editor, with
//! actions to apply a fix, to dismiss and to mark as addressed.
//!
//! The types come from `gen-lsp-types`, which is one new crate; frameworks (`async-lsp`, `tower-lsp-server`, `lsp-server`)
//! are three to five, end at the first broken message, and read messages of any length, so [`frame`] reads them here.
//!
//! Invariants:
//!
//! - Standard output carries messages of the protocol only. A broken message is answered, and the server goes on.
//! - A finding is shown only while its code stands in the text: the open document, or the file on disk.
//! - Commands name a finding of a repository that the editor has opened; no path from a command is opened.
//! - Each text that leaves is masked and free of control characters.
//! - Decisions are those of the command line: a person decides, an assistant claims.
//! - While nothing changes, every thread sleeps.
//!
//! | module | purpose |
//! |---|---|
//! | `serve` | threads, event loop, end of the process |
//! | `frame` | reading and writing of messages, with their maximum size |
//! | `server` | dispatch; below it `publication` of diagnostics, and `requests` about findings |
//! | `features` | capabilities of the client and of the server |
//! | `folders` | folders and repositories that the editor has opened |
//! | `repository` | current findings of one repository, and their places |
//! | `text_match` | a reviewed text compared with the text of a document |
//! | `document` | open documents, positions and changes |
//! | `file_uri` | addresses of files |
//! | `diagnostics`, `actions`, `hover` | a finding as the protocol's types |
//! | `commands` | decisions on behalf of the user |

mod actions;
mod commands;
mod diagnostics;
mod document;
mod features;
mod file_uri;
mod folders;
mod frame;
mod hover;
mod repository;
mod serve;
mod server;
mod text_match;

use std::path::Path;
use std::sync::Arc;

pub(crate) use serve::{ServerEnd, serve_stdio};

use crate::domain::{Actor, Priority};
use crate::runner::Services;

/// Opens the repository around a folder. The error says why there is none.
type OpenRepository = dyn Fn(&Path) -> Result<Services, String> + Send + Sync;

/// Dependencies and options of a server.
pub(crate) struct ServerOptions {
    /// Opens the repository around a folder.
    pub open: Arc<OpenRepository>,
    /// Actor of all decisions.
    pub actor: Actor,
    /// Says to an assistant why it may not decide.
    pub refusal_hint: String,
    /// Least urgent priority that is shown; `None` for all.
    pub least: Option<Priority>,
}
