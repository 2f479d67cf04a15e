//! The integration tests: one binary, real processes, real files.

mod cli;
mod cockpit;
mod env;
mod git;
mod life;
mod regressions;
mod rooms;
mod runner;
mod smells;
mod store;
