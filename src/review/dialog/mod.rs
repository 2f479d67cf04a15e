//! The engine of a review by a model: up to twenty turns in a window that never overflows, no finding lost.
//!
//! Invariants: an answer is appended whole before anything is made of it, its findings before the next request; the
//! engine is deterministic, so feeding it the recorded answers again leads to the same state and to the next unpaid
//! turn; what is sent never exceeds [`Limits::window_tokens`].

mod aside;
mod closing;
mod delivery;
mod engine;
mod limits;
mod recorded;
mod summary;
#[cfg(test)]
mod tests;
mod window;

pub use delivery::Part;
pub use engine::{Dialog, Effect, Event, Say, Task, ToolAnswer, Trouble};
pub use limits::{Budget, Limits, SummaryBy};
pub use recorded::Recorded;

/// Counts the tokens of a text by the model's encoding.
pub type Count = Box<dyn Fn(&str) -> u64>;

/// The names of the tools that the engine answers itself.
pub const REPORT_FINDINGS: &str = "report_findings";
pub const FINISH: &str = "finish";
