//! Renders findings, runs and statistics as text, JSON and Markdown, and findings in the formats of other programs.
//!
//! - Nothing here prints; callers receive strings or JSON values.
//! - Text from code, file names and models is made harmless here: for terminals in [`text`], for Markdown
//!   renderers in [`markdown`], by the encoder in [`json`], for other programs in [`export`] and by the escapes of each
//!   format.
//! - To add a format: one file with its renderer, and one row in [`format`].

pub(crate) mod activity;
mod agent_prompt;
pub(crate) mod export;
pub(crate) mod figures;
mod finding_history;
pub(crate) mod forecast;
pub(crate) mod format;
mod github;
mod gitlab;
pub(crate) mod json;
mod junit;
pub(crate) mod markdown;
pub(crate) mod panel;
mod quickfix;
mod rdjsonl;
mod rules;
mod run_comparison;
mod sarif;
pub(crate) mod stats;
mod stored_findings;
mod table;
#[cfg(test)]
mod tests;
pub(crate) mod text;
mod text_style;

pub(crate) use agent_prompt::render_prompt;
pub(crate) use export::{ExportLevel, ExportedFinding, FindingExport};
pub(crate) use finding_history::{
    EarlierRuns, FindingHistory, FindingLocation, FirstReport, ReviewedAt, describe_answer, describe_snooze_end,
    weave_events,
};
pub(crate) use format::OutputFormat;
pub(crate) use run_comparison::{ComparedRun, ComparisonSum, ReviewSpending, RunComparison};
pub(crate) use stored_findings::load_findings;
pub(crate) use table::TextTable;
pub(crate) use text_style::{TextOptions, TextStyle};
