//! revdeck

pub mod cli;
pub mod config;
pub mod context;
pub mod domain;
pub mod git;
pub mod ledger;
pub mod policy;
pub mod provider;
pub mod report;
pub mod review;
pub mod runner;
pub mod store;
pub mod tui;
