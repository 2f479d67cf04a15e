//! Scans the contents of many files within a budget that depends only on the snapshot.

use std::ops::ControlFlow;

use super::ToolError;
use super::files::VisibleFiles;
use super::index_prefilter::IndexPrefilter;
use crate::context::text::MAX_TEXT_BYTES;
use crate::domain::text::format_count;
use crate::git::{Repo, TreeListingEntry, is_binary};

/// Bytes that one call reads at most; takes about five seconds (measured with 100,000 packed files).
pub const MAX_SCAN_BYTES: u64 = 512 << 20;
/// Smallest cost of a file in bytes: opening a file costs as much as reading this many bytes.
const MIN_FILE_COST_BYTES: u64 = 4 << 10;

/// Counts of searched and skipped files.
#[derive(Default)]
pub struct ScanSummary {
    files: usize,
    total: usize,
    withheld: usize,
    oversized: usize,
    unreadable: usize,
    is_over_budget: bool,
}

/// Callback for a file and its content; `Break` ends the scan.
pub type VisitFile<'a> = dyn FnMut(&TreeListingEntry, &[u8]) -> Result<ControlFlow<()>, ToolError> + 'a;

/// Calls `visit` for each visible text file, nearest to the change first, until it breaks or `budget` bytes are read.
/// Files that `sieve` excludes count as read, so the same files are visited without an index.
///
/// # Errors
/// Fails when `cancelled` returns true, or with an error of `visit`.
pub fn scan_files(
    (repo, files): (&Repo, &VisibleFiles),
    sieve: Option<&IndexPrefilter<'_>>,
    budget: u64,
    wanted: &dyn Fn(&TreeListingEntry) -> bool,
    cancelled: &dyn Fn() -> bool,
    visit: &mut VisitFile<'_>,
) -> Result<ScanSummary, ToolError> {
    let entries: Vec<&TreeListingEntry> = files.nearest().filter(|entry| wanted(entry)).collect();
    let mut scanned = ScanSummary { total: entries.len(), ..ScanSummary::default() };
    let mut read = 0;
    for entry in entries {
        if cancelled() {
            return Err(ToolError::cancelled());
        }
        if files.withheld_reason(entry).is_some() {
            scanned.withheld += 1;
            continue;
        }
        if read > budget {
            scanned.is_over_budget = true;
            break;
        }
        scanned.files += 1;
        match repo.blob_size(&entry.id) {
            Ok(size) if size > MAX_TEXT_BYTES => {
                scanned.oversized += 1;
                continue;
            }
            Ok(size) => read += size.max(MIN_FILE_COST_BYTES),
            Err(_) => {
                scanned.unreadable += 1;
                continue;
            }
        }
        if sieve.is_some_and(|sieve| !sieve.may_match(entry)) {
            continue;
        }
        let Ok(content) = repo.blob(&entry.id) else {
            scanned.unreadable += 1;
            continue;
        };
        if !is_binary(&content) && visit(entry, &content)?.is_break() {
            break;
        }
    }
    Ok(scanned)
}

impl ScanSummary {
    /// Returns true if no file matched `wanted`.
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// Returns notes about files that were not searched, one per line.
    pub fn notes(&self) -> String {
        let mut notes = String::new();
        if self.is_over_budget {
            notes.push_str(&format!(
                "Only {} of {} were searched, those near the change first: name a folder with `path` for others.\n",
                self.files,
                format_count(self.total, "file")
            ));
        }
        for (number, what) in [
            (self.withheld, "they hold secrets, or .gitignore ignores them"),
            (self.oversized, "too large"),
            (self.unreadable, "git does not have their content here"),
        ] {
            if number > 0 {
                notes.push_str(&format!("Not searched ({what}): {}.\n", format_count(number, "file")));
            }
        }
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::{ChangeKind, Changeset, FileChange};

    #[test]
    fn a_scan_begins_near_the_change_and_ends_with_its_budget() {
        let folder = tempfile::tempdir().expect("a folder");
        let git = |arguments: &[&str]| {
            let mut command = std::process::Command::new("git");
            command.current_dir(folder.path()).env("HOME", folder.path()).env("GIT_CONFIG_NOSYSTEM", "1");
            let who = ["-c", "user.name=A", "-c", "user.email=a@example.org"];
            assert!(command.args(who).args(arguments).output().expect("git starts").status.success(), "{arguments:?}");
        };
        git(&["init", "-q"]);
        for path in ["a/far.rs", "m/deep/near.rs", "m/next.rs", "m/changed.rs", "m/.env", "z.rs"] {
            let file = folder.path().join(path);
            std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
            std::fs::write(file, vec![b'x'; 10_000]).expect("a file");
        }
        git(&["add", "-A"]);
        git(&["commit", "-q", "-m", "one"]);
        let repo = Repo::discover(folder.path()).expect("a repository");
        let file = FileChange {
            path: "m/changed.rs".to_owned(),
            old_path: None,
            kind: ChangeKind::Modified,
            old_blob: None,
            new_blob: String::new(),
            hunks: Vec::new(),
        };
        let change = Changeset { files: vec![file], ..Changeset::default() };
        let files = VisibleFiles::new(repo.list_tree("HEAD").expect("a listing"), &change);
        let seen = |budget| {
            let mut seen = Vec::new();
            let scanned = scan_files((&repo, &files), None, budget, &|_| true, &|| false, &mut |entry, content| {
                assert_eq!(content.len(), 10_000);
                seen.push(entry.path.clone());
                Ok(ControlFlow::Continue(()))
            });
            (seen, scanned.ok().expect("not cancelled").notes())
        };
        let withheld = "Not searched (they hold secrets, or .gitignore ignores them): 1 file.\n";
        let all = ["m/changed.rs", "m/next.rs", "m/deep/near.rs", "a/far.rs", "z.rs"];
        let (paths, notes) = seen(MAX_SCAN_BYTES);
        assert_eq!((paths.as_slice(), notes.as_str()), (all.map(str::to_owned).as_slice(), withheld));
        let (paths, notes) = seen(15_000);
        assert_eq!(paths, all[..2]);
        assert!(notes.starts_with("Only 2 of 6 files were searched, those near the change first: "), "{notes}");
    }
}
