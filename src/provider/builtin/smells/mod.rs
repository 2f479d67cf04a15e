//! The eleven smells, a file each. A smell reads a parsed file and its facts and pushes what it finds.

use crate::domain::{Confidence, Kind, Priority, Severity, Suggestion};

/// What a smell found in one file, before it becomes a finding of a run. Lines count from 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Smell {
    pub kind: Kind,
    pub priority: Priority,
    pub severity: Severity,
    pub confidence: Confidence,
    pub line_start: u32,
    pub line_end: u32,
    /// One line, without the path: "function `parse` is 84 lines long".
    pub title: String,
    /// One sentence with the figures and the limit.
    pub explanation: String,
    /// Who it is about, so that it is found again in another version of the file: a function's name, a constant,
    /// the text of the statement. With kind and path it tells "was there before" from "is new".
    pub subject: String,
    /// First and last line of the code that identifies it (the head of a function, not its body).
    pub anchor: (u32, u32),
    /// The measured value where there is one: a change that raises it makes it worse.
    pub figure: Option<f64>,
    pub suggestion: Option<Suggestion>,
}
