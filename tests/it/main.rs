//! The integration tests: one binary, real processes, real files.

mod cli;
mod cockpit;
mod command;
mod env;
mod fix;
mod git;
mod http;
mod life;
mod llm;
mod regressions;
mod reports;
mod rooms;
mod runner;
mod smells;
mod store;
mod tools;
#[allow(dead_code, reason = "shared with the example and the cockpit's own tests")]
#[path = "../../benches/support/turns.rs"]
mod turns;
