//! Exchange of records between the machines of a team: their form, what leaves a machine, and where they are kept.
//!
//! - Each machine appends to a log of its own and reads the logs of the others. Nobody writes into another machine's log, so
//!   there is no merge conflict.
//! - A record from elsewhere is hostile input: it is bounded and validated here, and shown harmless elsewhere. It starts
//!   nothing, changes no setting and names no file outside of the repository.
//! - Nothing leaves a machine that [`OutgoingFilter`] has not passed: without secrets, and without code unless the user says
//!   so.
//!
//! | module | purpose |
//! |---|---|
//! | [`segment`] | records as bytes and back, under limits |
//! | [`outgoing`] | what leaves a machine: shares, excluded paths, masked secrets |
//! | `excluded_names` | names of excluded paths in words, however they are written |
//! | [`backend`] | what a place for logs must be able to do |
//! | [`git_backend`] | logs in refs of a git remote |
//! | [`postgres`] | logs in a database, with claims and a budget of the team |

pub mod backend;
mod excluded_names;
pub mod git_backend;
pub mod outgoing;
pub mod postgres;
pub mod segment;

pub use backend::{AppendOutcome, LogList, LogVersion, TeamBackend, TeamError};
pub use git_backend::GitBackend;
pub use outgoing::{OutgoingFilter, RepositoryFacts};
