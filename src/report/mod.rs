//! Findings, runs and figures as text, JSON and Markdown.
//!
//! Invariants: every function returns a string and prints nothing; text from code, file names and models is made
//! harmless here: for a terminal in [`text`], for a renderer in [`markdown`], by the encoder in [`json`].

pub mod figures;
pub mod json;
mod text_style;
pub mod markdown;
pub mod stats;
mod finding_history;
mod table;
pub mod text;

pub use text_style::{TextOptions, TextStyle};
pub use finding_history::{FindingLocation, FindingHistory};
pub use table::TextTable;
