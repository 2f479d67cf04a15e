//! Agent programs: the events of each one.

pub mod claude;
pub mod codex;
pub mod gemini;
