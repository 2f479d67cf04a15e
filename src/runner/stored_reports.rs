//! Reads which runs reported which findings, and what became of these, as the metrics of the ledger take it.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use crate::domain::{FindingId, ListedReport, Panel, RunFigures, RunId};
use crate::ledger::metrics::FindingFact;
use crate::parallel;
use crate::store::{Store, StoreError, StoreView};
use crate::syntax::language::Language;

/// Smallest number of findings that a thread looks at at a time.
const MIN_FACTS_PER_PIECE: usize = 8_192;

/// Runs on record, and which of the view's findings each of them reported.
pub(crate) struct StoredReports {
    /// Newest first.
    pub runs: Vec<RunFigures>,
    /// Index in `runs` of each run of the view. `None` for a run whose record cannot be read.
    index_of: Vec<Option<u32>>,
    /// Index in `runs`, and index of the finding in the view.
    pub reports: Vec<(u32, u32)>,
    /// The same for what revdeck's own search for secrets found, and the reviewer of the run did not report.
    pub scanned: Vec<(u32, u32)>,
}

impl StoredReports {
    /// Reads the figures of all runs of a complete view.
    ///
    /// # Errors
    ///
    /// If the records cannot be read.
    pub fn load(store: &Store, view: &StoreView) -> Result<Self, StoreError> {
        let figures = store.run_figures(view)?;
        let mut records = Self {
            runs: Vec::new(),
            index_of: Vec::with_capacity(figures.len()),
            // Most findings have one report.
            reports: Vec::with_capacity(view.finding_count()),
            scanned: Vec::new(),
        };
        let mut readable = 0;
        for (index, figures) in figures.iter().enumerate() {
            let Some(figures) = figures else {
                records.index_of.push(None);
                continue;
            };
            let ids = figures.scanned_findings.iter();
            let scanned: HashSet<usize> = ids.filter_map(|id| view.finding_index(id.as_str())).collect();
            for finding in view.reported_findings(index) {
                let list = if scanned.contains(&finding) { &mut records.scanned } else { &mut records.reports };
                list.push((readable, finding as u32));
            }
            records.index_of.push(Some(readable));
            readable += 1;
        }
        records.runs = figures.into_iter().flatten().collect();
        records.follow_panels(store, view)?;
        Ok(records)
    }

    /// Counts a report whose problem a panel lists under another id as a report of that finding: what became of it is said
    /// there, and its reviewer was right or wrong like the others.
    fn follow_panels(&mut self, store: &Store, view: &StoreView) -> Result<(), StoreError> {
        let listed = self.find_listed(store, view);
        let merged = store.list_merged(view)?;
        if listed.is_empty() && merged.is_empty() {
            return Ok(());
        }
        for reports in [&mut self.reports, &mut self.scanned] {
            for report in reports.iter_mut() {
                let pair = *report;
                let finding = listed.get(&pair).copied().unwrap_or(pair.1);
                report.1 = merged.get(&(finding as usize)).map_or(finding, |listed| *listed as u32);
            }
            reports.sort_unstable();
            reports.dedup();
        }
        // The reviewer has reported the problem, and the search has found it a second time.
        let reports = &self.reports;
        self.scanned.retain(|pair| reports.binary_search(pair).is_err());
        Ok(())
    }

    /// Returns the findings on the lists of panels whose reports have the id of another problem in the runs of the members. The
    /// keys are pairs as in `reports`, the values indices in the view. Of several lists, the newest counts.
    fn find_listed(&self, store: &Store, view: &StoreView) -> HashMap<(u32, u32), u32> {
        let mut listed = HashMap::new();
        let index_of = |run: &RunId| self.index_of.get(view.run_index(run.as_str())?).copied().flatten();
        let figures_of = |run: &RunId| Some(&self.runs[index_of(run)? as usize]);
        for_each_listed(store, view, &self.runs, figures_of, |report| {
            let [reported, finding] =
                [&report.reported_as, &report.finding_id].map(|id| view.finding_index(id.as_str()));
            if let (Some(run), Some(reported), Some(finding)) = (index_of(&report.run_id), reported, finding) {
                listed.entry((run, reported as u32)).or_insert(finding as u32);
            }
        });
        listed
    }

    /// Returns the facts of all findings of a view, by their index.
    pub fn list_facts<'a>(&self, view: &'a StoreView) -> Vec<FindingFact<'a>> {
        // Many findings share a file.
        let languages = HashMap::<u32, &'static str>::new;
        parallel::map_numbers(view.finding_count(), MIN_FACTS_PER_PIECE, languages, |languages, index| {
            let row = view.finding_outline(index);
            let first_run = view.first_reporting_run(index);
            FindingFact {
                id: row.id,
                first_run: first_run.and_then(|run| self.index_of.get(run).copied().flatten()),
                kind: row.kind,
                language: languages
                    .entry(row.path_number)
                    .or_insert_with(|| Language::detect(row.path, b"").map_or("", Language::name)),
                status: row.status,
                decided: view.decision(index),
            }
        })
    }
}

/// Returns true if the list of a panel has an id that no member reported. Versions that did not record
/// [`RunFigures::listed_as`] gave such ids to reports under the id of another problem.
fn has_own_ids(view: &StoreView, panel: &RunFigures) -> bool {
    let Some(run) = view.run_index(panel.run_id.as_str()) else { return false };
    view.reported_findings(run).any(|finding| view.first_reporting_run(finding) == Some(run))
}

/// Returns the reports that a panel lists under an id of another problem. What older versions did not record is read from the
/// result of the panel; what cannot be read counts under its own id.
fn read_listed<'p>(store: &Store, view: &StoreView, panel: &'p RunFigures) -> Cow<'p, [ListedReport]> {
    if !panel.listed_as.is_empty() || !has_own_ids(view, panel) {
        return Cow::Borrowed(&panel.listed_as);
    }
    let Some(output) = store.output(&panel.run_id).ok().flatten() else { return Cow::Borrowed(&[]) };
    let held_back = output.held_back.iter().map(|held| &held.finding);
    Cow::Owned(ListedReport::from_list(output.findings.iter().chain(held_back)))
}

/// Returns true if a panel may say under which id the reports of a run are listed. The panel of another machine does not for
/// what was reviewed here: whoever may write a log could turn any report into one of another problem.
fn may_list(panel: &RunFigures, run: &RunFigures) -> bool {
    panel.team.is_none() || run.team.is_some()
}

/// Returns the ids on the lists of panels of reports that have the id of another problem in their runs. The keys are the runs
/// and the reported ids. Of several lists, the newest counts.
///
/// # Errors
///
/// If the records cannot be read.
pub(crate) fn find_listed_reports(
    store: &Store,
    view: &StoreView,
) -> Result<HashMap<(RunId, FindingId), FindingId>, StoreError> {
    let mut listed = HashMap::new();
    if (0..view.run_count()).all(|run| Panel::name_of(view.run(run).reviewer).is_none()) {
        return Ok(listed);
    }
    let figures = store.run_figures(view)?;
    let figures_of = |run: &RunId| figures.get(view.run_index(run.as_str())?)?.as_ref();
    for_each_listed(store, view, figures.iter().flatten(), figures_of, |report| {
        let ListedReport { run_id, reported_as, finding_id } = report;
        listed.entry((run_id.clone(), reported_as.clone())).or_insert_with(|| finding_id.clone());
    });
    Ok(listed)
}

/// Visits the reports that panels list under an id of another problem, if they [may](may_list), in the order of `runs`.
/// `figures_of` returns the figures of the run of a report.
fn for_each_listed<'r>(
    store: &Store,
    view: &StoreView,
    runs: impl IntoIterator<Item = &'r RunFigures>,
    figures_of: impl Fn(&RunId) -> Option<&'r RunFigures>,
    mut visit: impl FnMut(&ListedReport),
) {
    for panel in runs.into_iter().filter(|run| run.is_panel()) {
        for report in read_listed(store, view, panel).iter() {
            if figures_of(&report.run_id).is_some_and(|run| may_list(panel, run)) {
                visit(report);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::{RunRecord, Time};
    use crate::runner::fixture::RunnerFixture;

    #[test]
    fn a_panel_of_another_machine_lists_no_report_of_this_one() {
        let fixture = RunnerFixture::new();
        let store = &fixture.services.store;
        let [shared, other]: [FindingId; 2] =
            ["f_00000000000000aa", "f_00000000000000bb"].map(|id| id.parse().expect("an id"));
        let elsewhere = json!({ "machine": "eve-1", "person": { "name": "Eve" } });
        let record = |reviewer: &str, is_elsewhere: bool, listed: Option<&RunId>| {
            let run_id = fixture.services.ambient.new_run_id();
            let listed_as: Vec<ListedReport> = listed
                .into_iter()
                .map(|run| ListedReport { run_id: run.clone(), reported_as: shared.clone(), finding_id: other.clone() })
                .collect();
            let mut record: RunRecord = serde_json::from_value(json!({
                "run_id": run_id, "status": "completed", "created_at": Time::UNIX_EPOCH, "updated_at": Time::UNIX_EPOCH,
                "source": "cli", "scope": "worktree", "reviewer": reviewer, "listed_as": listed_as,
            }))
            .expect("a record");
            record.team = is_elsewhere.then(|| serde_json::from_value(elsewhere.clone()).expect("an origin"));
            store.with_lock(|locked| locked.create_run(&record)).expect("recorded");
            run_id
        };
        let own = record("one", false, None);
        let hers = record("one", true, None);
        for (is_elsewhere, run, expected) in
            [(true, &own, false), (true, &hers, true), (false, &hers, true), (false, &own, true)]
        {
            record("panel:pair", is_elsewhere, Some(run));
            let listed = find_listed_reports(store, &store.view().expect("a view")).expect("readable");
            let found = listed.get(&(run.clone(), shared.clone()));
            assert_eq!(found, Some(&other).filter(|_| expected), "{is_elsewhere}");
        }
    }
}
