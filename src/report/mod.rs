//! Renders findings, runs and statistics as text, JSON and Markdown.
//!
//! - Nothing here prints; callers receive strings or JSON values.
//! - Text from code, file names and models is made harmless here: for terminals in [`text`], for Markdown
//!   renderers in [`markdown`], by the encoder in [`json`].

pub(crate) mod activity;
pub(crate) mod figures;
mod finding_history;
pub(crate) mod json;
pub(crate) mod markdown;
pub(crate) mod stats;
mod table;
pub(crate) mod text;
mod text_style;

pub(crate) use finding_history::{EarlierRuns, FindingHistory, FindingLocation, FirstReport, ReviewedAt};
pub(crate) use table::TextTable;
pub(crate) use text_style::{TextOptions, TextStyle};
