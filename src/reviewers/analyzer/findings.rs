//! Converts smells into findings: adds an id that is stable across runs, and the quoted code.

use std::collections::HashMap;
use std::rc::Rc;

use super::smells::Smell;
use crate::domain::anchors::{Anchors, compute_code_identity, truncate_quote};
use crate::domain::{Finding, FindingId, FindingStatus, Kind, RunId, Time};

/// Converts the smells of one file into findings of a run, in the order of `smells`.
///
/// `text` is the text in which the smells were found. Smells of one kind with the same code get different ids, by their
/// order from the top of the file.
pub fn to_findings(smells: &[Smell], path: &str, text: &[u8], run_id: &RunId, now: Time) -> Vec<Finding> {
    let mut anchors = Anchors::new(text);
    let mut order: Vec<(usize, &Smell)> = smells.iter().enumerate().collect();
    order.sort_by_key(|(_, smell)| (smell.anchor, smell.line_start));
    let mut seen: HashMap<(Kind, Rc<str>), u32> = HashMap::new();
    let mut findings: Vec<(usize, Finding)> = Vec::with_capacity(smells.len());
    for (place, smell) in order {
        // A redacted smell takes its id from the redacted quote: an id made from the code would let an attacker test
        // guesses of a short secret.
        let (identity, quoted_code) = match &smell.quote {
            Some(quote) => (compute_code_identity(quote).into(), truncate_quote(quote)),
            None => (anchors.identity(smell.anchor), anchors.quote(smell.anchor)),
        };
        let ordinal = seen.entry((smell.kind, Rc::clone(&identity))).or_insert(0);
        let finding_id = FindingId::from_parts(smell.kind.word(), path, &identity, *ordinal);
        *ordinal += 1;
        let finding = Finding {
            lowered: smell.lowered.clone(),
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
            quoted_code,
            suggestion: smell.suggestion.clone(),
            pattern: smell.pattern.clone(),
            status: FindingStatus::Open,
            reported_at: now,
            voices: Vec::new(),
            steps: Vec::new(),
            disputed: Vec::new(),
            symbol: smell.symbol.clone(),
        };
        findings.push((place, finding));
    }
    findings.sort_by_key(|(place, _)| *place);
    findings.into_iter().map(|(_, finding)| finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Confidence, LineRange, Priority, Severity};
    use crate::reviewers::analyzer::smells::{SmellBuilder, SmellGrade};

    fn smell(line: u32, last: u32, quote: Option<&str>) -> Smell {
        let builder = SmellBuilder {
            kind: Kind::HardcodedConfiguration,
            grade: SmellGrade::new(Priority::P1, Severity::High, Confidence::High),
            lines: LineRange::new(line, last),
            title: "t".into(),
            explanation: "e".into(),
            subject: "s".into(),
        };
        Smell { quote: quote.map(str::to_owned), ..builder.build().with_anchor((line, last)) }
    }

    #[test]
    fn ids_come_from_the_code_and_its_order_and_secrets_stay_out() -> Result<(), Box<dyn std::error::Error>> {
        let run: RunId = "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0E".parse()?;
        let now = Time::UNIX_EPOCH;
        let text = format!("a = 1\nb = 2\na = 1\nkey = 'hunter2'\n{}", "x\n".repeat(40));
        let smells = [
            smell(1, 1, None),
            smell(3, 3, None),
            smell(2, 2, None),
            smell(4, 4, Some("key = '…'")),
            smell(5, 40, None),
        ];
        let findings = to_findings(&smells, "a.py", text.as_bytes(), &run, now);
        let lines: Vec<u32> = findings.iter().map(|finding| finding.line_start).collect();
        assert_eq!(lines, [1, 3, 2, 4, 5], "in the order of the smells");
        let ids: std::collections::HashSet<_> = findings.iter().map(|finding| finding.finding_id.clone()).collect();
        assert_eq!(ids.len(), findings.len());
        assert!(!serde_json::to_string(&findings)?.contains("hunter2"));
        assert_eq!(findings[4].quoted_code.lines().count(), Finding::MAX_QUOTE_LINES);
        assert_eq!(findings[0].detail_ref, format!("outputs/{run}.json#{}", findings[0].finding_id));
        // The same code on another line with another indentation gives the same finding.
        let moved = to_findings(&[smell(2, 2, None)], "a.py", b"\n    a  = 1\n", &run, now);
        assert_eq!(moved[0].finding_id, findings[0].finding_id);
        Ok(())
    }
}
