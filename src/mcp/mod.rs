//! Server of the Model Context Protocol (MCP) on standard input and output: coding assistants read the ledger, runs and
//! findings, and make requests that the policy answers.
//!
//! Invariants:
//!
//! - Standard output carries messages of the protocol only.
//! - Whoever calls is an assistant: it claims and asks, and never decides. Nothing here dismisses a finding.
//! - Each call opens the repository anew, so a repository that appears, moves or breaks is the error of one call and
//!   never the end of the server.
//! - Each text that leaves is masked and free of control characters, and each result has a maximum size.
//!
//! | module | purpose |
//! |---|---|
//! | `serve` | transport, runtime, end of the process |
//! | `framing` | lines of the input: errors for those that are no message |
//! | `server` | dispatch of the protocol's requests |
//! | `tools` | one file per tool, with its arguments and its result as types; the schemas follow from them |
//! | `tool` | definition, arguments and result of any tool |
//! | `repository` | access to the repository for one call |
//! | `rows` | runs and findings in lists |
//! | `resources`, `prompts` | what clients offer their users to attach or to start |
//! | `changes` | notifications after changes of the store |
//! | `clean` | masking, control characters and size limits of what leaves |
//! | `failure` | errors that an assistant can act on |

mod changes;
mod clean;
mod failure;
mod framing;
mod prompts;
mod repository;
mod resources;
mod rows;
mod serve;
mod server;
mod tool;
mod tools;

pub(crate) use failure::ToolFailure;
pub(crate) use repository::{OpenPurpose, RepositoryAccess, ServerMode};
pub(crate) use serve::{ServeError, serve_stdio};
