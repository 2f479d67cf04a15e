//! The engine: a pure state machine from events to effects. No IO, no clock, no randomness; imports `domain` only.
//!
//! Invariants: everything the engine knows of the past stands in the run's journal, so replaying a journal that was cut
//! anywhere and going on gives the same findings; effects are executed in order, so a unit is only marked covered after
//! its findings are durable. What a model answers becomes reports in [`extract()`], findings in [`examine()`], and the
//! findings of the run in [`Accumulated`].

mod critic;
pub mod dialog;
mod edits;
mod engine;
mod examine;
mod extract;
mod likeness;
mod measured;
mod merge;
mod plan;
mod replay;
mod spent;
mod summary;

pub use critic::{Critic, Verdict};
pub use edits::{TextEdit, edits_in, make_edits};
pub use engine::{Effect, Engine, Event, Outcome};
pub use examine::{Examined, FileText, ScopeLines, apply, examine};
pub use extract::{Extracted, extract};
pub use measured::Measured;
pub use merge::{Accumulated, Admission};
pub use plan::{FileRead, Plan, PlannedFile, Report, Unit, UnitKind};
pub use replay::{Planned, Replayed};
pub use spent::Spent;
pub use summary::summary;
