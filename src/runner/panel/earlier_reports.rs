//! Finds the last reports of findings before a panel, for all of its members at once.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::domain::{Finding, FindingId, RunId, RunRecord};
use crate::runner::known_runs::MAX_SEARCHED_RUNS;
use crate::runner::{RunnerError, Services};
use crate::store::StoreView;

/// Last report of a finding before the panel.
pub(in crate::runner) struct EarlierReport {
    pub title: String,
    pub explanation: String,
    pub quoted_code: String,
    /// Names of the reviewers that reported the finding then or earlier: of each run the one that gave most answers, which
    /// may be a fallback of the requested one. Those of a panel's list are the reviewers of its voices.
    pub reporters: BTreeSet<String>,
}

/// Finding of the panel that was reported before.
struct KnownFinding<'a> {
    id: &'a FindingId,
    /// Runs that reported it, newest first.
    runs: Vec<usize>,
}

impl Services {
    /// Returns the last report of each of the findings `ids` before the runs `own` of a panel, with all who reported it in the
    /// runs before. Goes through the runs once, and reads each run with a last report once.
    ///
    /// # Errors
    ///
    /// If a record or a result cannot be read.
    pub(in crate::runner) fn find_earlier_reports(
        &self,
        view: &StoreView,
        own: &HashSet<&str>,
        ids: &BTreeSet<&FindingId>,
    ) -> Result<HashMap<FindingId, EarlierReport>, RunnerError> {
        let mut reports = HashMap::new();
        let mut groups = group_by_last_run(view, own, ids);
        // What only runs of the panel have reported has no report before.
        groups.retain(|last, _| !own.contains(last));
        if groups.is_empty() {
            return Ok(reports);
        }
        let figures = self.store.run_figures(view)?;
        // Who answered in the run of a panel gave second opinions.
        let reporter_of = |run: usize| {
            let run = figures.get(run)?.as_ref().filter(|run| !run.is_panel())?;
            Some(run.main_reviewer().to_owned())
        };
        for (last, known) in groups {
            let Ok(last) = last.parse::<RunId>() else { continue };
            let Some(record) = self.store.run(&last)? else { continue };
            let wanted = known.iter().map(|known| known.id.to_string()).collect();
            let mut reported = self.read_last_reports(&record, wanted)?;
            for KnownFinding { id, runs } in known {
                let Some(finding) = reported.remove(id) else { continue };
                let is_said = !finding.is_from_secret_scan();
                let voices = finding.raised_voices().filter(|voice| !voice.is_secret_scan());
                let mut reporters: BTreeSet<String> = voices.map(|voice| voice.reviewer.clone()).collect();
                if is_said {
                    let last = view.run_index(record.run_id.as_str());
                    reporters.extend(runs.into_iter().chain(last).filter_map(reporter_of));
                }
                let Finding { title, explanation, quoted_code, .. } = finding;
                reports.insert(id.clone(), EarlierReport { title, explanation, quoted_code, reporters });
            }
        }
        Ok(reports)
    }

    /// Returns findings as a run reported them; those of a panel's member as they stand on the list of the panel, if they do.
    fn read_last_reports(
        &self,
        record: &RunRecord,
        mut wanted: BTreeSet<String>,
    ) -> Result<HashMap<FindingId, Finding>, RunnerError> {
        let by_id = |findings: Vec<Finding>| findings.into_iter().map(|finding| (finding.finding_id.clone(), finding));
        let mut reported: HashMap<FindingId, Finding> = HashMap::new();
        if let Some((panel, _)) = self.find_panel_of(record) {
            reported.extend(by_id(self.store.findings_in_run(&panel, &wanted)?));
        }
        for id in reported.keys() {
            wanted.remove(id.as_str());
        }
        if !wanted.is_empty() {
            reported.extend(by_id(self.store.findings_in_run(&record.run_id, &wanted)?));
        }
        Ok(reported)
    }
}

/// Groups findings by the id of the last run that reported them, apart from the runs `own`; by that of their first run if none
/// of the newest runs did.
fn group_by_last_run<'a>(
    view: &'a StoreView,
    own: &HashSet<&str>,
    ids: &BTreeSet<&'a FindingId>,
) -> BTreeMap<&'a str, Vec<KnownFinding<'a>>> {
    let mut reporting: HashMap<usize, KnownFinding<'a>> = ids
        .iter()
        .copied()
        .filter_map(|id| Some((view.finding_index(id.as_str())?, KnownFinding { id, runs: Vec::new() })))
        .collect();
    // Newest first.
    for run in (0..view.run_count()).filter(|run| !own.contains(view.run(*run).id)).take(MAX_SEARCHED_RUNS) {
        for finding in view.reported_findings(run) {
            if let Some(known) = reporting.get_mut(&finding) {
                known.runs.push(run);
            }
        }
    }
    let mut groups: BTreeMap<&str, Vec<KnownFinding<'a>>> = BTreeMap::new();
    for (index, known) in reporting {
        let last = known.runs.first().map_or(view.finding(index).first_run, |run| view.run(*run).id);
        groups.entry(last).or_default().push(known);
    }
    groups
}
