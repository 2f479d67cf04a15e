//! Decides which kinds of findings are lowered in a run, and warned of in its prompt: those about which its reviewer is almost
//! always wrong.
//!
//! - The decision is made once per run, before its review, and recorded in its journal. Later attempts go by the record, so
//!   that a resumed conversation has the same prompt.
//! - The warning stands among the learned patterns of the prompt, which are no part of the prompts' version. So a run with a
//!   warning answers the same requests as one without.

use std::collections::HashMap;
use std::fmt::Write as _;

use crate::domain::{FindingStatus, JournalEntry, Kind, KindRecord, RunEvent, SteeredKind};
use crate::ledger::metrics::{MIN_STEERING_DECISIONS, MetricsInput, list_kind_records, list_misjudged_kinds};
use crate::runner::{Services, StoredReports};
use crate::store::{StoreError, StoreView};

impl Services {
    /// Returns the kinds about which a reviewer is almost always wrong, by all decisions in the store; none if
    /// `[worth] steer` is off.
    ///
    /// # Errors
    ///
    /// If the store cannot be read.
    pub(in crate::runner) fn steered_kinds(&self, reviewer: &str) -> Result<Vec<SteeredKind>, StoreError> {
        if !self.settings.worth.steer {
            return Ok(Vec::new());
        }
        let view = self.store.view()?;
        // Most stores have too few dismissals, and reading all records takes time.
        if !may_steer(&view) {
            return Ok(Vec::new());
        }
        let records = StoredReports::load(&self.store, &view)?;
        let findings = records.list_facts(&view);
        let StoredReports { runs, reports, scanned, .. } = &records;
        let input = MetricsInput { runs, findings: &findings, reports, scanned, handed: &[] };
        let misjudged = list_misjudged_kinds(&input, reviewer).into_iter();
        Ok(misjudged.map(|one| SteeredKind { kind: one.kind, accepted: one.accepted, wrong: one.wrong }).collect())
    }
}

impl Services {
    /// Returns the decisions about the reports of these reviewers by kind; none if `[worth] steer` is off, or if there are
    /// too few to lower a report.
    ///
    /// # Errors
    ///
    /// If the store cannot be read.
    pub(in crate::runner) fn kind_records(&self, reviewers: &[&str]) -> Result<Vec<KindRecord>, StoreError> {
        let view = self.store.view()?;
        if !self.settings.worth.steer || !may_steer(&view) {
            return Ok(Vec::new());
        }
        let records = StoredReports::load(&self.store, &view)?;
        let findings = records.list_facts(&view);
        let StoredReports { runs, reports, scanned, .. } = &records;
        let input = MetricsInput { runs, findings: &findings, reports, scanned, handed: &[] };
        Ok(list_kind_records(&input, reviewers))
    }
}

/// Returns false if no kind has enough dismissals: of the fewest decisions that steer, more than half are dismissals.
fn may_steer(view: &StoreView) -> bool {
    let mut dismissed: HashMap<Kind, u32> = HashMap::new();
    let rows = (0..view.finding_count()).map(|index| view.finding(index));
    for row in rows.filter(|row| row.status == FindingStatus::Dismissed && !row.kind.is_never_lowered()) {
        *dismissed.entry(row.kind).or_default() += 1;
    }
    dismissed.into_values().any(|count| count > MIN_STEERING_DECISIONS / 2)
}

/// Returns the kinds on record in a run's journal. `None` if nothing is decided yet; a review that began without a record
/// goes on without steering.
pub(in crate::runner) fn recorded_steering(entries: &[JournalEntry]) -> Option<Vec<SteeredKind>> {
    let recorded = entries.iter().find_map(|entry| match &entry.event {
        RunEvent::Steered { kinds } => Some(kinds.clone()),
        _ => None,
    });
    let has_begun = || {
        entries.iter().any(|entry| {
            matches!(entry.event, RunEvent::TurnAnswered { .. } | RunEvent::Finding { .. } | RunEvent::Covered { .. })
        })
    };
    recorded.or_else(|| has_begun().then(Vec::new))
}

/// Renders the warning for a model; an empty text without kinds.
pub(in crate::runner) fn render_kind_warning(kinds: &[SteeredKind]) -> String {
    if kinds.is_empty() {
        return String::new();
    }
    let mut text =
        "People dismissed almost all that you reported of these kinds here. Report one only if the code shown proves \
                    it, and say what goes wrong; otherwise leave it out:\n"
            .to_owned();
    for SteeredKind { kind, accepted, wrong } in kinds {
        let _ = writeln!(text, "* {kind}: {accepted} of {} accepted", accepted.saturating_add(*wrong));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Time, TurnPhase, WindowUse};

    fn steered(kind: Kind) -> SteeredKind {
        SteeredKind { kind, accepted: 1, wrong: 23 }
    }

    fn entries(events: Vec<RunEvent>) -> Vec<JournalEntry> {
        (0..).zip(events).map(|(seq, event)| JournalEntry { seq, at: Time::UNIX_EPOCH, event }).collect()
    }

    #[test]
    fn the_first_attempt_decides_and_later_ones_go_by_its_record() {
        let started = || RunEvent::Started { attempt: 1, worker: 7 };
        let asked = || RunEvent::TurnAsked {
            turn: 1,
            phase: TurnPhase::Investigate,
            asked: String::new(),
            window: WindowUse::default(),
        };
        let covered: RunEvent = serde_json::from_value(serde_json::json!({
            "event": "covered", "file": {"path": "a.rs", "hunks": []},
        }))
        .expect("an event");
        let record = || RunEvent::Steered { kinds: vec![steered(Kind::MagicNumbers)] };
        for (events, expected) in [
            (vec![started()], None),
            (vec![started(), asked()], None),
            (vec![started(), record(), asked(), covered.clone()], Some(vec![steered(Kind::MagicNumbers)])),
            (vec![started(), asked(), covered], Some(Vec::new())),
        ] {
            assert_eq!(recorded_steering(&entries(events.clone())), expected, "{events:?}");
        }
    }

    #[test]
    fn a_warning_names_the_kinds_and_their_figures_and_is_no_pattern() {
        assert_eq!(render_kind_warning(&[]), "");
        let warning = render_kind_warning(&[steered(Kind::MagicNumbers), steered(Kind::Docs)]);
        assert!(warning.ends_with("* MAGIC_NUMBERS: 1 of 24 accepted\n* DOCS: 1 of 24 accepted\n"), "{warning}");
        assert_eq!(crate::runner::prompt::pattern_hints::parse_pattern_lines(&warning), Vec::<String>::new());
    }
}
