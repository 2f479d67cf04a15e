//! Findings for tests of this room.

use crate::domain::{Confidence, Finding, FindingId, FindingStatus, Kind, Priority, Severity, Time};

/// Returns the id of the finding with a title.
pub fn id(title: &str) -> FindingId {
    FindingId::from_parts(Kind::Correctness.word(), "a.rs", title, 0)
}

/// Returns a finding without a suggestion.
pub fn finding(title: &str, path: &str, (line_start, line_end): (u32, u32)) -> Finding {
    let run: crate::domain::RunId = "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0E".parse().expect("an id");
    Finding {
        finding_id: id(title),
        first_run_id: run.clone(),
        last_run_id: run,
        priority: Priority::P2,
        severity: Severity::Medium,
        confidence: Confidence::High,
        kind: Kind::Correctness,
        title: title.to_owned(),
        explanation: String::new(),
        repo_relative_path: path.to_owned(),
        line_start,
        line_end,
        quoted_code: String::new(),
        suggestion: None,
        pattern: None,
        status: FindingStatus::Open,
        lowered: None,
        detail_ref: String::new(),
        reported_at: Time::UNIX_EPOCH,
        voices: Vec::new(),
        steps: Vec::new(),
        disputed: Vec::new(),
        symbol: None,
    }
}
