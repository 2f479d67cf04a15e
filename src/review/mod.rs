//! The engine: a pure state machine from events to effects. No IO, no clock, no randomness; imports `domain` only.
//!
//! Invariants: everything the engine knows of the past stands in the run's journal, so replaying a journal that was cut
//! anywhere and going on gives the same findings; effects are executed in order, so a unit is only marked covered after
//! its findings are durable. What a model answers becomes reports in [`extract()`], findings in [`examine()`], and the
//! findings of the run in [`Accumulated`].

mod dedup;
pub mod conversation;
mod text_edits;
mod unit_engine;
mod validate;
mod extract;
mod similarity;
mod journal_metrics;
mod accumulate;
mod plan;
mod journal_state;
mod run_cost;
mod summary;

pub use dedup::{FindingDeduplicator, DedupVerdict};
pub use text_edits::{TextEdit, parse_edits, apply_edits};
pub use unit_engine::{UnitEffect, UnitEngine, UnitEvent, ReviewOutcome};
pub use validate::{ReportValidation, FileText, ScopeLines, apply_replacement, validate_report};
pub use extract::{ExtractedReports, extract_reports};
pub use journal_metrics::JournalMetrics;
pub use accumulate::{FindingAccumulator, Admission};
pub use plan::{UnitFileRead, ReviewPlan, PlannedFile, UnitReport, ReviewUnit, ReviewUnitKind};
pub use journal_state::{PlanCounts, JournalState};
pub use run_cost::RunCost;
pub use summary::summarize_run;
