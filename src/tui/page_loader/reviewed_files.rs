//! Lists the files that runs reviewed or left out: those of one run, and those of the newest runs in which no finding is
//! open. Finds the viewed files among those with findings.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::viewed_changes::ViewedMarks;
use super::{PageLoader, reason_label};
use crate::domain::{Coverage, OmissionReason, RunRecord, Scope};
use crate::store::StoreView;
use crate::tui::app::{ReviewedFile, ReviewedFiles};
use crate::tui::message::{FileListRow, FileListState};

/// Most files that are listed beside those with findings. A list of more is no list for a person.
const MAX_REVIEWED_FILES: usize = 20_000;
/// Most runs, the newest first, in which the content of a viewed file with findings is looked up.
const MAX_VIEWED_RUNS: usize = 8;

/// Returns the files of a run, each with its coverage.
pub(super) fn list_coverage<'a>(record: &'a RunRecord, coverage: &'a Coverage) -> BTreeMap<&'a str, FileListState> {
    let mut files = BTreeMap::new();
    let rest = if record.status.is_terminal() { FileListState::LeftOut("not reached") } else { FileListState::Waiting };
    if !matches!(record.subject.scope, Scope::All) {
        for path in &record.subject.changed_paths {
            files.insert(path.as_str(), rest.clone());
        }
    }
    let carried = coverage.carried.iter().map(|carried| &carried.file);
    let partial = coverage.partial_files();
    for file in coverage.files.iter().chain(carried) {
        let path = file.path.as_str();
        let state = if partial.contains(path) { FileListState::Partial } else { FileListState::Covered };
        files.insert(path, state);
    }
    for file in &coverage.left_out {
        files.insert(file.path.as_str(), FileListState::LeftOut(reason_label(file.reason)));
    }
    files
}

/// Adds the files of a run to those of newer ones.
fn add_older_coverage(files: &mut BTreeMap<String, ReviewedFile>, run: &str, coverage: BTreeMap<&str, FileListState>) {
    let deleted = reason_label(OmissionReason::Deleted);
    for (path, state) in coverage {
        let is_better = match files.get(path).map(|known| &known.row.state) {
            None => true,
            Some(FileListState::LeftOut(reason)) => {
                *reason != deleted && matches!(state, FileListState::Covered | FileListState::Partial)
            }
            Some(_) => false,
        };
        if is_better {
            let row = FileListRow::new(path, state);
            files.insert(path.to_owned(), ReviewedFile { row, run: run.to_owned() });
        }
    }
}

/// Returns the first `most` files, and whether others are clean or were left out.
fn cut_files<'a>(files: impl Iterator<Item = &'a ReviewedFile>, most: usize) -> ReviewedFiles {
    let mut cut = ReviewedFiles::default();
    for (at, file) in files.enumerate() {
        match &file.row.state {
            _ if at < most => cut.files.push(file.clone()),
            FileListState::LeftOut(_) => cut.has_more_left_out = true,
            FileListState::Partial => cut.has_more_partial = true,
            _ => cut.has_more_clean = true,
        }
    }
    cut
}

/// Files of the runs that were read last. Each decision changes which of them have open findings, so that the list is made
/// anew from these.
#[derive(Debug, Default)]
pub(super) struct ReviewedRuns {
    /// Ids of the runs, the newest first.
    runs: Vec<String>,
    /// Records of those whose output is there, by the id of the run.
    records: HashMap<String, RunRecord>,
    /// Files by path.
    files: BTreeMap<String, ReviewedFile>,
}

impl PageLoader {
    /// Returns the files that these runs reviewed or left out and in which no finding is open, by path, and the files with findings
    /// that were viewed, or a part of them. `runs` have ended and are the newest first; a file that any of them reviewed counts as
    /// reviewed, unless a newer one says that it was deleted. A run whose output is gone is passed over.
    pub fn read_reviewed_files(&mut self, view: &StoreView, runs: &[String]) -> ReviewedFiles {
        if self.reviewed.runs != runs {
            self.reviewed = self.read_reviewed_runs(view, runs);
        }
        let open: HashSet<&str> = (0..view.finding_count())
            .map(|index| view.finding(index))
            .filter(|finding| finding.status.is_undecided())
            .map(|finding| finding.path)
            .collect();
        let files = self.reviewed.files.values().filter(|file| !open.contains(file.row.path.as_str()));
        let mut listed = cut_files(files, MAX_REVIEWED_FILES);
        let viewed = self.read_viewed();
        let find =
            |files: &[ReviewedFile], path: &str| files.binary_search_by(|file| file.row.path.as_str().cmp(path)).ok();
        for (path, content) in &viewed.contents {
            let Some(at) = find(&listed.files, path) else { continue };
            let file = &mut listed.files[at];
            let record = self.reviewed.records.get(&file.run);
            file.row.is_viewed |= record.is_some_and(|record| self.has_content(record, path, content));
        }
        for (path, names) in &viewed.changes {
            let Some(at) = find(&listed.files, path) else { continue };
            let file = &mut listed.files[at];
            if let Some(record) = self.reviewed.records.get(&file.run).filter(|_| !file.row.is_viewed).cloned()
                && let Some(counts) = self.count_viewed_changes(&record, path, names)
            {
                file.row.set_viewed_changes(counts);
            }
        }
        self.find_viewed_runs(view, &viewed, &mut listed);
        listed
    }

    /// Finds the runs that report findings in a viewed file and have its viewed content, by path, and the files whose newest such
    /// run has changes of which the user has viewed a part.
    fn find_viewed_runs(&mut self, view: &StoreView, viewed: &ViewedMarks, listed: &mut ReviewedFiles) {
        let paths: HashSet<&str> =
            viewed.contents.iter().map(|(path, _)| path).chain(viewed.changes.keys()).map(String::as_str).collect();
        if paths.is_empty() {
            return;
        }
        // Findings are sorted by the run that last reported them, the newest first.
        let mut reported: HashMap<&str, Vec<&str>> = HashMap::new();
        for finding in (0..view.finding_count()).map(|index| view.finding(index)) {
            if let Some(path) = paths.get(finding.path) {
                let runs = reported.entry(*path).or_default();
                if runs.len() < MAX_VIEWED_RUNS && !runs.contains(&finding.last_run) {
                    runs.push(finding.last_run);
                }
            }
        }
        let mut records: HashMap<&str, Option<RunRecord>> = HashMap::new();
        for (path, content) in &viewed.contents {
            for run in reported.get(path.as_str()).into_iter().flatten() {
                let record = records.entry(*run).or_insert_with(|| self.read_run_in(view, run).ok());
                if record.as_ref().is_some_and(|record| self.has_content(record, path, content)) {
                    listed.viewed.entry(path.clone()).or_default().push((*run).to_owned());
                }
            }
        }
        for (path, names) in &viewed.changes {
            let Some(run) = reported.get(path.as_str()).and_then(|runs| runs.first()) else { continue };
            let record = records.entry(*run).or_insert_with(|| self.read_run_in(view, run).ok());
            let counted = record.as_ref().and_then(|record| self.count_viewed_changes(record, path, names));
            match counted {
                Some((0, _)) | None => {}
                Some((viewed, all)) if viewed >= all => {
                    listed.viewed.entry(path.clone()).or_default().push((*run).to_owned());
                }
                Some(counts) => drop(listed.partly_viewed.insert(path.clone(), ((*run).to_owned(), counts))),
            }
        }
    }

    fn read_reviewed_runs(&self, view: &StoreView, runs: &[String]) -> ReviewedRuns {
        let mut reviewed = ReviewedRuns { runs: runs.to_vec(), ..ReviewedRuns::default() };
        for run in runs {
            let Ok(record) = self.read_run_in(view, run) else { continue };
            // The findings of a large result are not parsed: whoever waits for a page waits for this, too.
            let Ok(Some(coverage)) = self.store.coverage(&record.run_id) else { continue };
            add_older_coverage(&mut reviewed.files, run, list_coverage(&record, &coverage));
            reviewed.records.insert(run.clone(), record);
        }
        reviewed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{FileCoverage, RunOutput, SCHEMA_VERSION};
    use crate::git::FilterSettings;
    use crate::runner::LedgerPreview;
    use crate::store::{RepoInfo, Store};

    #[test]
    fn a_run_whose_output_is_gone_is_passed_over() {
        let folder = tempfile::tempdir().expect("a folder");
        let info = RepoInfo {
            version: SCHEMA_VERSION,
            key: "k".to_owned(),
            name: "n".to_owned(),
            common_dir: "/n".to_owned(),
        };
        let store = Store::open(folder.path(), info).expect("a store");
        let runs = ["ar_01JD3Z8Q6M7S5V2K4T9XWB1C0B", "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0A"].map(str::to_owned);
        for (run, path) in runs.iter().zip(["gone.rs", "kept.rs"]) {
            let record: RunRecord = serde_json::from_value(serde_json::json!({
                "run_id": run, "status": "completed", "created_at": "2026-11-01T10:00:00Z",
                "updated_at": "2026-11-01T10:05:00Z", "source": "cli", "scope": "worktree", "reviewer": "m", "attempt": 1,
                "changed_paths": [path],
            }))
            .expect("a record");
            store.with_lock(|locked| locked.create_run(&record)).expect("recorded");
            if path == "kept.rs" {
                store.write_output(&RunOutput::new(record)).expect("written");
            }
        }
        let filter = Box::new(FilterSettings { max_file_bytes: 1 << 20, ignored_paths: Vec::new() });
        let mut loader = PageLoader::new(store.clone(), None, filter, Box::new(|| Ok(LedgerPreview::default())));
        let files = loader.read_reviewed_files(&store.view().expect("a view"), &runs);
        let listed: Vec<(&str, &str)> =
            files.files.iter().map(|file| (file.row.path.as_str(), file.run.as_str())).collect();
        assert_eq!(listed, [("kept.rs", runs[1].as_str())]);
    }

    #[test]
    fn a_file_counts_as_reviewed_if_any_run_reviewed_it_and_none_deleted_it_since() {
        use FileListState::{Covered, LeftOut, Partial, Waiting};
        let deleted = reason_label(OmissionReason::Deleted);
        // States by the newer and the older run, the state that counts, and the run that it comes from.
        for (newer, older, expected, run) in [
            (Some(Covered), Some(LeftOut("binary")), Covered, "newer"),
            (Some(LeftOut("budget reached")), Some(Covered), Covered, "older"),
            (Some(LeftOut("binary")), Some(LeftOut("oversized")), LeftOut("binary"), "newer"),
            (Some(LeftOut(deleted)), Some(Covered), LeftOut(deleted), "newer"),
            (Some(Waiting), Some(Covered), Waiting, "newer"),
            (Some(Partial), Some(Covered), Partial, "newer"),
            (Some(LeftOut("binary")), Some(Partial), Partial, "older"),
            (None, Some(LeftOut("binary")), LeftOut("binary"), "older"),
            (Some(Covered), None, Covered, "newer"),
        ] {
            let title = format!("{newer:?} {older:?}");
            let mut files = BTreeMap::new();
            for (run, state) in [("newer", newer), ("older", older)] {
                add_older_coverage(&mut files, run, state.into_iter().map(|state| ("a.rs", state)).collect());
            }
            let file = &files["a.rs"];
            assert_eq!((&file.row.state, file.run.as_str()), (&expected, run), "{title}");
        }
    }

    #[test]
    fn a_file_that_was_reviewed_in_part_is_not_listed_as_reviewed() {
        let record: RunRecord = serde_json::from_value(serde_json::json!({
            "run_id": "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0B", "status": "completed", "created_at": "2026-11-01T10:00:00Z",
            "updated_at": "2026-11-01T10:05:00Z", "source": "cli", "scope": "worktree", "reviewer": "m", "attempt": 1,
            "changed_paths": ["a.rs", "b.rs", "c.rs"],
        }))
        .expect("a record");
        let hunk = serde_json::json!({"start": 1, "end": 2});
        let mut coverage = Coverage { files_total: 3, files_covered: 2, ..Coverage::default() };
        coverage.files = ["a.rs", "b.rs"]
            .map(|path| {
                serde_json::from_value::<FileCoverage>(serde_json::json!({"path": path, "hunks": [hunk]}))
                    .expect("a file")
            })
            .to_vec();
        coverage.set_gaps([("a.rs", 1), ("b.rs", 4), ("c.rs", 1)], OmissionReason::TurnLimit);
        let listed: Vec<(&str, FileListState)> = list_coverage(&record, &coverage).into_iter().collect();
        let (whole, part, rest) =
            (FileListState::Covered, FileListState::Partial, FileListState::LeftOut("not reached"));
        assert_eq!(listed, [("a.rs", whole), ("b.rs", part), ("c.rs", rest)]);
    }

    #[test]
    fn more_files_than_are_listed_are_told_by_their_group() {
        use FileListState::{Covered, LeftOut, Partial};
        let files = [Covered, LeftOut("binary"), Covered, LeftOut("binary"), Partial]
            .map(|state| ReviewedFile { row: FileListRow::new("a.rs", state), run: "ar_1".to_owned() });
        for (most, clean, left_out, partial) in
            [(5, false, false, false), (4, false, false, true), (3, false, true, true), (2, true, true, true)]
        {
            let cut = cut_files(files.iter(), most);
            let said = (cut.files.len(), cut.has_more_clean, cut.has_more_left_out, cut.has_more_partial);
            assert_eq!(said, (most, clean, left_out, partial), "{most}");
        }
    }
}
