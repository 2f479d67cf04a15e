//! The integration tests: one binary, real processes, real files.

mod cli;
mod cockpit;
mod env;
mod git;
mod regressions;
mod rooms;
mod runner;
mod smells;
mod store;
#[allow(dead_code, reason = "shared with the example and the cockpit's own tests")]
#[path = "../../benches/support/turns.rs"]
mod turns;
