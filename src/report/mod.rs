//! Findings, runs and figures as text, JSON and Markdown.
//!
//! Invariants: every function returns a string and prints nothing; text from code, file names and models is made
//! harmless here: for a terminal in [`text`], for a renderer in [`markdown`], by the encoder in [`json`].

pub mod figures;
mod finding_history;
pub mod json;
pub mod markdown;
pub mod stats;
mod table;
pub mod text;
mod text_style;

pub use finding_history::{FindingHistory, FindingLocation};
pub use table::TextTable;
pub use text_style::{TextOptions, TextStyle};
