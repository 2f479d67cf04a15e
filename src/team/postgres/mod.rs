//! Keeps the logs of a team in PostgreSQL, and what only a database can: claims of reviews and a budget of the team.
//!
//! The tables belong to one role; members call functions that do what a member may, and nothing else. Times are those of the
//! database, so clocks of machines do not matter.
//!
//! | module | purpose |
//! |---|---|
//! | [`address`] | the URL of a database |
//! | [`password`] | `PGPASSWORD` and the file of passwords |
//! | [`project`] | name of a repository among those that share a database |
//! | [`connection`] | one connection, with TLS and time limits |
//! | [`schema`] | versions of the tables |
//! | [`backend`] | logs, as in a git remote |
//! | [`claims`] | who reviews what at this moment |
//! | [`budget`] | what the team may spend in a day |
//! | [`listener`] | news as it happens |

mod address;
mod backend;
mod budget;
mod claims;
mod connection;
#[cfg(test)]
pub mod fake_server;
mod listener;
mod password;
mod project;
mod schema;

pub use address::{DatabaseAddress, is_database};
pub use backend::PostgresBackend;
pub use budget::{TeamBudget, TeamReservation};
pub use claims::{CLAIM_SECONDS, ClaimHolder, MAX_CLAIM_CALL};
pub use connection::{Database, DatabaseError};
pub use listener::{Listener, News, NewsSender};
pub use project::project_name;
pub use schema::{SCHEMA_VERSION, full_sql};
