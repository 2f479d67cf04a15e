//! The review engine: a pure state machine from events to effects. No IO, no clock, no randomness; imports `domain`
//! only.
//!
//! - The engine's whole knowledge of the past is in the run's journal. Replaying a journal that was cut anywhere, and
//!   continuing, gives the same findings.
//! - Effects are executed in order, so that a unit is marked as covered only after its findings are durable.
//!
//! [`extract_reports()`] turns a model's answer into reports, [`validate_report()`] turns reports into findings, and
//! [`FindingAccumulator`] collects the findings of the run. [`merge_panel`] makes one list of the findings of several
//! reviewers.

mod accumulate;
mod code_fences;
pub mod conversation;
mod dedup;
mod defect_concepts;
mod extract;
mod finding_identity;
mod journal_metrics;
mod journal_state;
mod one_list;
mod panel_coverage;
mod panel_rulings;
mod plan;
mod report_merge;
mod run_cost;
mod similarity;
mod summary;
mod text_edits;
mod unit_engine;
mod validate;

pub use accumulate::{Admission, FindingAccumulator};
pub(crate) use dedup::sort_by_urgency;
pub(crate) use dedup::{DedupVerdict, FindingDeduplicator};
pub(crate) use extract::ExtractedReports;
pub use extract::extract_reports;
pub(crate) use extract::parse_question_answer;
pub use finding_identity::{FindingIdentities, ProblemText};
pub(crate) use journal_metrics::JournalMetrics;
pub(crate) use journal_state::JournalState;
pub(crate) use one_list::ListedIds;
pub use one_list::{MemberResult, OneList, StandingProblem, merge_panel};
pub(crate) use panel_coverage::merge_coverage;
pub(crate) use panel_rulings::{Ruling, apply_ruling, parse_rulings};
pub(crate) use plan::ReviewUnit;
pub use plan::{PlannedFile, ReviewPlan};
pub use report_merge::{MemberReport, merge_reports};
pub(crate) use run_cost::RunCost;
pub(crate) use similarity::is_alike;
pub(crate) use summary::{describe_result, summarize_outcome, summarize_panel, summarize_run};
pub(crate) use text_edits::{apply_edits, parse_edits};
pub(crate) use unit_engine::{ReviewOutcome, UnitEffect, UnitEngine, UnitEvent};
pub use validate::{FileText, ReportValidation, ScopeLines, apply_replacement, validate_report};
