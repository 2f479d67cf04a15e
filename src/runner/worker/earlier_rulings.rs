//! Finds the second opinions that earlier runs of the same panel have paid for, so that nobody pays for them again.
//!
//! - An opinion belongs to what its reviewer was shown: it holds for a finding about which the same was said, with the
//!   same code and the same priority. A panel that was asked again after a failed member pays only for findings that are
//!   new, or about which the member says something new.
//! - A forced review (`--force`) asks again.
//! - Runs of other machines have no journal here, so nothing follows from those of forgotten ones.

use std::collections::HashMap;

use crate::domain::{Finding, FindingId, FindingStep, JournalEntry, PanelOpinion, RunEvent, RunId};
use crate::masking::Mask;
use crate::review::{ReviewOutcome, Ruling, apply_ruling};
use crate::runner::known_runs::MAX_SEARCHED_RUNS;
use crate::runner::worker::RunWorker;
use crate::runner::{RunnerError, known_runs};
use crate::store::{Store, StoreError};

/// Maximum number of earlier runs whose journals are read. Not from the literature: a panel is resumed less often.
const MAX_EARLIER_RUNS: usize = 8;

/// Finding of an earlier run that got second opinions.
pub(super) struct RuledFinding {
    run: RunId,
    /// The finding as it was shown to the reviewers.
    shown: Finding,
    /// The opinions, in their order.
    steps: Vec<FindingStep>,
}

impl RunWorker<'_> {
    /// Loads the findings that got second opinions in earlier runs of this panel about the same change, newest run first.
    pub(super) fn load_ruled_findings(&self) -> Result<Vec<RuledFinding>, RunnerError> {
        let (record, store) = (&self.record, &self.services.store);
        if record.full {
            return Ok(Vec::new());
        }
        let view = store.runs_view()?;
        let subject = &record.subject;
        let same = known_runs::run_rows(&view).filter(|row| {
            row.reviewer == record.reviewed_by.name
                && row.scope_hash == subject.scope_hash
                && row.diff_fingerprint == subject.diff_fingerprint
                && row.policy_version == subject.prompt_policy_version
                && row.id < record.run_id.as_str()
        });
        let mut ruled = Vec::new();
        for journal in read_journals(store, same.filter_map(|row| row.id.parse::<RunId>().ok())) {
            let (run, entries) = journal?;
            let mut shown: HashMap<FindingId, Box<Finding>> = HashMap::new();
            for entry in entries {
                match entry.event {
                    RunEvent::Finding { finding } => drop(shown.insert(finding.finding_id.clone(), finding)),
                    RunEvent::Restated { finding, .. } => {
                        let Some(shown) = shown.get(&finding.finding_id) else { continue };
                        let steps = finding.steps.into_iter().filter(|step| matches!(step, FindingStep::Ruled { .. }));
                        ruled.push(RuledFinding { run: run.clone(), shown: (**shown).clone(), steps: steps.collect() });
                    }
                    _ => {}
                }
            }
        }
        Ok(ruled)
    }

    /// Applies what a reviewer said about the same findings in earlier runs. Returns the places of the findings that it
    /// has to be asked about.
    pub(super) fn apply_earlier_rulings(
        &self,
        opinion: &PanelOpinion,
        asked: Vec<usize>,
        outcome: &mut ReviewOutcome,
        ruled: &[RuledFinding],
    ) -> Vec<usize> {
        let mut left = Vec::new();
        let mut sources: Vec<&RunId> = Vec::new();
        for at in asked {
            let finding = &mut outcome.findings[at];
            match self.find_ruling(opinion, finding, ruled) {
                Some((run, ruling)) => {
                    apply_ruling(finding, &opinion.reviewer, &ruling);
                    if !sources.contains(&run) {
                        sources.push(run);
                    }
                }
                None => left.push(at),
            }
        }
        let sources =
            sources.into_iter().map(|run| format!("second opinions of {} are those of {run}", opinion.reviewer));
        outcome.notes.extend(sources);
        left
    }

    /// Returns what a reviewer said in an earlier run about a finding that was shown to it in the same words.
    fn find_ruling<'r>(
        &self,
        opinion: &PanelOpinion,
        finding: &Finding,
        ruled: &'r [RuledFinding],
    ) -> Option<(&'r RunId, Ruling)> {
        // Only compared: what is masked does not matter.
        let describe = |finding: &Finding| self.describe_reports(finding, Mask::On);
        let same = ruled.iter().filter(|ruled| ruled.shown.finding_id == finding.finding_id);
        same.filter(|ruled| describe(&ruled.shown) == describe(finding)).find_map(|ruled| {
            ruled.steps.iter().find_map(|step| match step {
                FindingStep::Ruled { by, opinion: said, reason, from, to }
                    if *by == opinion.reviewer && *from == finding.priority =>
                {
                    let ruling = Ruling { number: 1, opinion: *said, priority: Some(*to), reason: reason.clone() };
                    Some((&ruled.run, ruling))
                }
                _ => None,
            })
        })
    }
}

/// Reads the journals of the first runs that have one here.
fn read_journals(
    store: &Store,
    runs: impl Iterator<Item = RunId>,
) -> impl Iterator<Item = Result<(RunId, Vec<JournalEntry>), StoreError>> {
    let journals = runs
        .take(MAX_SEARCHED_RUNS)
        .map(move |run| store.read_journal(&run).map(|entries| (run, entries)))
        .filter(|journal| !journal.as_ref().is_ok_and(|(_, entries)| entries.is_empty()));
    journals.take(MAX_EARLIER_RUNS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::fixture::RunnerFixture;

    #[test]
    fn runs_without_a_journal_take_no_place_of_those_with_one() {
        let fixture = RunnerFixture::new();
        let store = &fixture.services.store;
        let runs: Vec<RunId> = (0..=MAX_SEARCHED_RUNS).map(|_| fixture.services.ambient.new_run_id()).collect();
        let write = |run: &RunId| {
            let note = RunEvent::Note { text: "asked".to_owned() };
            let mut journal = store.open_journal(run).expect("opened");
            journal.append_all(fixture.services.ambient.now(), &[note]).expect("written");
        };
        let read = || -> Vec<RunId> {
            let journals = read_journals(store, runs.iter().cloned());
            journals.map(|journal| journal.expect("readable").0).collect()
        };
        assert!(read().is_empty());
        let with_journal = [MAX_EARLIER_RUNS, MAX_SEARCHED_RUNS - 1, MAX_SEARCHED_RUNS].map(|at| runs[at].clone());
        with_journal.iter().for_each(write);
        assert_eq!(read(), with_journal[..2], "the last one is too far behind");
        runs[..MAX_EARLIER_RUNS].iter().for_each(write);
        assert_eq!(read(), runs[..MAX_EARLIER_RUNS]);
    }
}
