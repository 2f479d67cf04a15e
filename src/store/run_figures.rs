//! Reads the figures of all runs of a view, each from the latest line of its run in `runs.ndjson`.

use std::collections::BTreeSet;
use std::fs::File;

use super::{Store, StoreError, StoreView, files};
use crate::domain::RunFigures;
use crate::parallel;

/// Smallest number of runs that a thread reads at a time.
const MIN_RUNS_PER_PIECE: usize = 256;

impl Store {
    /// Returns the figures of the runs of a view, by the indexes of the view; `None` for a run without a line that this
    /// version can read.
    ///
    /// # Errors
    /// Returns an error when `runs.ndjson` cannot be read.
    pub fn run_figures(&self, view: &StoreView) -> Result<Vec<Option<RunFigures>>, StoreError> {
        let Some(file) = files::open_read(&self.runs_path())? else { return Ok(vec![None; view.run_count()]) };
        let read = |line: &mut Vec<u8>, index| read_figures(&file, view, index, line);
        let mut figures = parallel::map_numbers(view.run_count(), MIN_RUNS_PER_PIECE, Vec::new, read);
        // The line is not known, the file was replaced meanwhile, or a newer version wrote the line.
        let missing: BTreeSet<&str> = figures
            .iter()
            .enumerate()
            .filter(|(_, figures)| figures.is_none())
            .map(|(at, _)| view.run_id(at))
            .collect();
        for record in self.latest_records_of(&missing)?.values() {
            if let Some(index) = view.run_index(record.run_id.as_str()) {
                figures[index] = Some(RunFigures::from(record).spent_here());
            }
        }
        Ok(figures)
    }
}

/// Reads the figures of a run at the position that the view has; `None` when its line is not there or not readable.
fn read_figures(file: &File, view: &StoreView, index: usize, line: &mut Vec<u8>) -> Option<RunFigures> {
    let (at, bytes) = view.run_line(index)?;
    line.resize(bytes, 0);
    files::read_at(file, at, line).ok()?;
    // `from_str` is a tenth faster than `from_slice`, which checks the UTF-8 of each string by itself.
    let figures: RunFigures = serde_json::from_str(std::str::from_utf8(line).ok()?).ok()?;
    (figures.run_id.as_str() == view.run_id(index)).then(|| figures.spent_here())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::store::RepoInfo;

    fn id(n: u8) -> String {
        format!("ar_01JD3Z8Q6M7S5V2K4T9XWB1C{n:02}")
    }

    fn line(n: u8, status: &str, source: &str, tokens: u64) -> String {
        serde_json::json!({
            "run_id": id(n), "status": status, "created_at": "2026-11-01T10:00:00Z", "updated_at": "2026-11-01T10:00:00Z",
            "source": source, "scope": "worktree", "reviewer": "deep", "tokens": {"input": tokens},
        })
        .to_string()
            + "\n"
    }

    #[test]
    fn figures_are_those_of_the_latest_line_that_can_be_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let info = RepoInfo { version: 1, key: "k".into(), name: "n".into(), common_dir: "/n/.git".into() };
        let store = Store::open(folder.path(), info).expect("a store");
        store.with_lock(|_| Ok(())).expect("made");
        let write = |lines: &[String]| {
            let mut file = std::fs::File::options().create(true).append(true).open(store.runs_path()).expect("a file");
            file.write_all(lines.concat().as_bytes()).expect("written");
        };
        let tokens = |view: &StoreView| -> Vec<Option<u64>> {
            let figures = store.run_figures(view).expect("readable");
            figures.into_iter().map(|figures| figures.map(|figures| figures.tokens.input)).collect()
        };
        assert_eq!(tokens(&store.view().expect("readable")), []);

        write(&[
            line(1, "reviewing", "cli", 10),
            line(2, "completed", "cli", 20),
            line(1, "completed", "cli", 11),
            // The view reads this line, and the figures do not: its source is not known.
            line(2, "completed", "of tomorrow", 21),
            line(3, "completed", "of tomorrow", 30),
        ]);
        let view = store.view().expect("readable");
        assert_eq!(tokens(&view), [None, Some(20), Some(11)], "newest first");
        store.checkpoint_now().expect("written");
        write(&[line(1, "completed", "cli", 12)]);
        assert_eq!(tokens(&store.view().expect("readable")), [None, Some(20), Some(12)]);
        assert_eq!(tokens(&store.refresh_view(&view).expect("readable")), [None, Some(20), Some(12)]);

        // A file that was replaced since is searched.
        std::fs::write(store.runs_path(), [line(2, "failed", "cli", 9), line(1, "failed", "cli", 8)].concat())
            .expect("written");
        assert_eq!(tokens(&view), [None, Some(9), Some(8)]);
    }
}
