//! The words of revdeck as plain data: ids, runs, findings, events, coverage.
//!
//! Invariants: no IO, no clock, no randomness, no async; nothing of ours is imported here. Everything that
//! is written to disk is defined in this room, with the field names that readers of the files rely on.

pub mod anchors;
mod chat;
mod coverage;
mod event;
mod finding;
mod fix;
mod ledger_delivery;
mod ids;
mod finding_lifecycle;
mod model;
mod watch_trigger;
pub mod patch;
mod reported_problem;
mod run;
mod scope;
mod wilson;
mod context_record;
pub mod text;
mod triage;

pub use chat::{ChatRequest, ChatMessage, ChatResponse, StopReason, ToolCall, ToolSpec};
pub use coverage::{CarriedFile, Coverage, FileCoverage, OmittedFile, OmissionReason, LineRange};
pub use event::{JournalEntry, Opinion, RunEvent, ToolOutcome, TurnPhase, WindowUse};
pub(crate) use finding::word_enum;
pub use finding::{Confidence, Finding, FindingStatus, Kind, Priority, Severity, Suggestion};
pub use fix::{Fix, FixStatus, FileDiffStat, AppliedFile, UnfixedFinding};
pub use ledger_delivery::{TokenCountPrecision, LedgerDelivery};
pub use ids::{BadId, FindingId, FixId, PatternId, RunId, content_hash};
pub use finding_lifecycle::{FlipFlop, SuppressedReport, SuppressionReason, MovedFinding, Mute, MuteAction, FindingAlias};
pub use model::{Effort, Encoding};
pub use watch_trigger::{QuietHours, MinuteOfDay, WatchTrigger, GitOperation, WatchMode};
pub use reported_problem::{RejectedReport, ReportedProblem};
pub use run::{
    ReviewerUsage, CancelReason, ErrorClass, FindingCounts, PhaseTimings, RunOutput, RunRecord, RunStatus, Source, Usage,
};
pub use scope::{ParseScopeError, Scope};
pub use wilson::wilson_lower_bound;
pub use context_record::{ContextRecordSection, ContextRecord};
pub use triage::{Actor, Disposition, TriageAction};

/// A moment, written as RFC 3339. A type, not a clock: moments arrive from outside.
pub type Time = jiff::Timestamp;

/// The version of every JSON object that revdeck prints or keeps.
pub const SCHEMA_VERSION: u32 = 1;
