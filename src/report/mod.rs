//! Findings, runs and figures as text, JSON and Markdown.
//!
//! Invariants: every function returns a string and prints nothing; text from code, file names and models is made
//! harmless here: for a terminal in [`text`], for a renderer in [`markdown`], by the encoder in [`json`].

pub mod figures;
pub mod json;
mod look;
pub mod markdown;
pub mod stats;
mod story;
mod table;
pub mod text;

pub use look::{Look, Paint};
pub use story::{Place, Story};
pub use table::Table;
