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
mod handed;
mod ids;
mod life;
mod model;
mod movement;
pub mod patch;
mod reported;
mod run;
mod scope;
mod share;
mod surroundings;
pub mod text;
mod triage;

pub use chat::{ChatRequest, Message, Response, Stop, ToolCall, ToolSpec};
pub use coverage::{CarriedFile, Coverage, FileCoverage, LeftOut, LeftOutReason, LineRange};
pub use event::{JournalEntry, Opinion, RunEvent, ToolOutcome, TurnPhase, WindowUse};
pub(crate) use finding::word_enum;
pub use finding::{Confidence, Finding, FindingStatus, Kind, Priority, Severity, Suggestion};
pub use fix::{Fix, FixStatus, FixedFile, Touched, Unfixed};
pub use handed::{Counted, Handed};
pub use ids::{BadId, FindingId, FixId, PatternId, RunId, content_hash};
pub use life::{FlipFlop, HeldBack, HeldBecause, Moved, Mute, MuteAction, Recognised};
pub use model::{Effort, Encoding};
pub use movement::{Hours, Minute, Movement, Operation, WatchMode};
pub use reported::{Rejected, Reported};
pub use run::{
    Answerer, CancelReason, ErrorClass, FindingCounts, PhaseTimings, RunOutput, RunRecord, RunStatus, Source, Usage,
};
pub use scope::{BadScope, Scope};
pub use share::wilson;
pub use surroundings::{Surrounding, Surroundings};
pub use triage::{Actor, Disposition, TriageAction};

/// A moment, written as RFC 3339. A type, not a clock: moments arrive from outside.
pub type Time = jiff::Timestamp;

/// The version of every JSON object that revdeck prints or keeps.
pub const SCHEMA_VERSION: u32 = 1;
