//! The integration tests: one binary, real processes, real files.

#[cfg(unix)]
mod ask;
mod assistants;
mod carry;
mod chance;
mod ci;
mod cli;
mod cockpit;
mod command;
mod context;
mod copies;
mod disk;
mod embeddings;
mod env;
mod exports;
mod fit_weights;
mod fix;
mod freshness;
mod gate;
mod git;
mod hang;
mod hook;
mod hostile_texts;
mod http;
mod imports;
mod knowledge;
mod languages;
mod learning;
mod ledger;
mod lessons;
mod life;
mod llm;
mod lsp;
mod mcp;
mod mine;
mod needless;
mod private;
mod publish;
mod reconcile;
mod regressions;
mod replay;
mod reports;
mod retention;
mod rooms;
mod runner;
mod same_code;
mod secrets;
mod smells;
mod stats;
mod store;
mod storm;
mod tools;
#[allow(dead_code, reason = "shared with the example and the cockpit's own tests")]
#[path = "../../benches/support/turns.rs"]
mod turns;
mod watch;
