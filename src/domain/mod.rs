//! Defines the vocabulary of revdeck as plain data: ids, runs, findings, events, coverage.
//!
//! - No IO, no clock, no randomness, no async; this module imports no other module of revdeck.
//! - Every record that revdeck writes to disk is defined here, with the field names that readers of the files rely
//!   on.

pub(crate) mod anchors;
mod budget_stop;
mod chat;
mod context_record;
mod coverage;
mod decision_clock;
mod emoji;
mod event;
mod finding;
mod finding_lifecycle;
mod finding_note;
mod finding_question;
mod finding_rating;
mod finding_snooze;
mod fix;
mod ids;
mod kind;
mod ledger_delivery;
mod line_index;
mod model;
mod panel;
pub(crate) mod patch;
pub mod quoted_code;
mod reported_problem;
mod repository_path;
mod review_unit;
mod reviewed_code;
mod run;
mod run_figures;
mod run_output;
mod scope;
mod shortfall;
mod steering;
mod team;
pub mod text;
mod triage;
mod uncounted_cost;
pub mod unified_diff;
mod viewed_file;
mod voice;
mod watch_trigger;
mod wilson;

pub use budget_stop::{BudgetKind, BudgetStop};
pub use chat::{ChatMessage, ChatRequest, ChatResponse, StopReason, ToolCall, ToolSpec};
pub use context_record::{ContextRecord, ContextRecordSection};
pub use coverage::{CarriedFile, Coverage, CoverageGap, FileCoverage, LineRange, OmissionReason, OmittedFile};
pub use decision_clock::DecisionClock;
pub use event::{InterruptedParse, JournalEntry, Opinion, RunEvent, ToolOutcome, TurnPhase, WindowUse};
pub(crate) use finding::word_enum;
pub use finding::{Confidence, Finding, FindingStatus, Priority, Severity, Suggestion};
pub use finding_lifecycle::{
    FindingAlias, FlipFlop, HeldBackPlace, MovedFinding, Mute, MuteAction, SuppressedReport, SuppressionReason,
};
pub use finding_note::{FindingNote, NoteKind};
pub use finding_question::{FindingQuestion, QuestionAnswer, QuestionOutcome, QuestionRequest, QuestionVerdict};
pub use finding_rating::{FindingRating, Rating, RatingWish};
pub use finding_snooze::{FindingSnooze, SnoozeEnd};
pub use fix::{AppliedFile, FileDiffStat, Fix, FixStatus, UnfixedFinding};
pub(crate) use ids::FindingVariants;
pub use ids::{BadId, FindingId, FixId, PatternId, RunId, content_hash};
pub use kind::Kind;
pub use ledger_delivery::{LedgerDelivery, LedgerForm, LedgerFormat, TokenCountPrecision};
pub(crate) use line_index::LineIndex;
pub use model::{Effort, Encoding, SummaryAuthor};
pub use panel::{ListedReport, MergedReport, Panel, PanelMember, PanelOpinion, RequestDecision};
pub use reported_problem::{RejectedReport, ReportedProblem};
pub(crate) use repository_path::{is_repository_path, is_safe_file_name};
pub use review_unit::{DiffPart, ReviewUnitKind, ReviewedFile, UnitReport};
pub use reviewed_code::ReviewedCode;
pub use run::{
    CancelReason, ErrorClass, FindingCounts, PhaseTimings, ReviewSubject, ReviewerUsage, RunEnding, RunLinks,
    RunOutcome, RunRecord, RunReuse, RunReviewer, RunStatus, RunUsage, Source, Usage, find_replacement,
};
pub use run_figures::{ReviewerShare, RunFigures};
pub use run_output::{OutputDamage, OutputDamageCause, RunOutput};
pub use scope::{ParseScopeError, Scope};
pub use shortfall::{ReviewReach, ReviewedParts, Shortfall};
pub use steering::{LoweredPriority, SteeredKind};
pub use team::{
    DecisionId, MachineName, RunOrigin, ShareMode, SharedDecision, SharedPatterns, SharedReview, TeamClock, TeamOrigin,
    TeamPerson, TeamRecord,
};
pub use triage::{Actor, DecisionFacts, DismissalReason, Disposition, FindingDecision, TriageAction};
pub use uncounted_cost::UncountedCost;
pub use unified_diff::Hunk;
pub use viewed_file::ViewedFile;
pub use voice::{Dispute, FindingStep, KindRecord, RankRule, Voice, WordStyle};
pub use watch_trigger::{GitOperation, MinuteOfDay, QuietHours, WatchMode, WatchTrigger};
pub use wilson::{wilson_lower_bound, wilson_upper_bound};

/// A point in time, written as RFC 3339. This module has no clock: callers pass times in.
pub type Time = jiff::Timestamp;

/// Returns true for zero and for whatever else a type starts with; records leave such fields out.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Schema version of every JSON object that revdeck prints or stores.
pub const SCHEMA_VERSION: u32 = 1;
