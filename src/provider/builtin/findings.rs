//! Smells become findings: an identity that outlives the run, and the code they speak of.

use std::collections::HashMap;

use super::change::Lines;
use super::smells::Smell;
use crate::domain::text::normalize_code;
use crate::domain::{Finding, FindingId, FindingStatus, RunId, Time};

/// The findings of one file for a run, in the order of the smells. `text` is the text that the smells were found in;
/// equal anchors are told apart by their order from the top.
pub fn to_findings(smells: &[Smell], path: &str, text: &[u8], run_id: &RunId, now: Time) -> Vec<Finding> {
    let lines = Lines::of(text);
    let mut order: Vec<&Smell> = smells.iter().collect();
    order.sort_by_key(|smell| (smell.anchor, smell.line_start));
    let mut seen: HashMap<(&str, String), u32> = HashMap::new();
    let mut findings: Vec<(usize, Finding)> = Vec::with_capacity(smells.len());
    for smell in order {
        let anchor = lines.range(smell.anchor.0, smell.anchor.1);
        // What must not be quoted must not be guessed from the id either: a short secret could be tried out.
        let identity = smell.quote.as_ref().map_or(&anchor, |quote| quote);
        let ordinal = seen.entry((smell.kind.word(), normalize_code(identity))).or_insert(0);
        let finding_id = FindingId::of(smell.kind.word(), path, identity, *ordinal);
        *ordinal += 1;
        let quoted_code = smell.quote.clone().unwrap_or(anchor);
        let finding = Finding {
            detail_ref: format!("outputs/{run_id}.json#{finding_id}"),
            finding_id,
            first_run_id: run_id.clone(),
            last_run_id: run_id.clone(),
            priority: smell.priority,
            severity: smell.severity,
            confidence: smell.confidence,
            kind: smell.kind,
            title: smell.title.clone(),
            explanation: smell.explanation.clone(),
            repo_relative_path: path.to_owned(),
            line_start: smell.line_start,
            line_end: smell.line_end,
            quoted_code: first_lines(&quoted_code),
            suggestion: smell.suggestion.clone(),
            status: FindingStatus::Open,
            reported_at: now,
        };
        let place = smells.iter().position(|other| std::ptr::eq(other, smell)).unwrap_or(0);
        findings.push((place, finding));
    }
    findings.sort_by_key(|(place, _)| *place);
    findings.into_iter().map(|(_, finding)| finding).collect()
}

fn first_lines(code: &str) -> String {
    let mut lines = code.lines();
    let first: Vec<&str> = lines.by_ref().take(Finding::MAX_QUOTE_LINES).collect();
    first.join("\n")
}
