//! The integration tests: one binary, real processes, real files.

mod cli;
mod cockpit;
mod command;
mod env;
mod git;
mod regressions;
mod rooms;
mod runner;
mod smells;
mod store;
