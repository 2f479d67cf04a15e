//! Verifies and repairs every file of the store; each problem names its location and its repair.
//!
//! Invariants:
//! - Readable data is not changed, and unreadable data is not deleted: a corrupt line is moved to `<file>.corrupt-<n>`,
//!   which is synced before the file without that line replaces the old file.
//! - Lines of a newer revdeck are not problems and stay in place.

use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::extents::TrackedFile;
use super::files::{self, ExistingPolicy};
use super::lock::StoreLock;
use super::{Store, StoreError};
use crate::domain::{FindingId, RunId};

/// A problem in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreProblem {
    /// File or folder with the problem.
    pub path: PathBuf,
    /// 1-based line number; `None` when the problem concerns the whole file.
    pub line: Option<usize>,
    /// Description of the problem as a clause, such as "holds no number".
    pub what: String,
    /// Action that a repair takes, or took.
    pub repair: String,
    /// True when the repair was done; always false after [`Store::verify`].
    pub repaired: bool,
}

impl fmt::Display for StoreProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}; {}: {}", self.what, if self.repaired { "repaired" } else { "repair" }, self.repair)
    }
}

/// Result of a verification or repair.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoreCheckReport {
    /// Number of files checked.
    pub files: usize,
    /// Number of lines read from runs, triage, journals and the other line files.
    pub lines: usize,
    /// Number of lines written by a newer revdeck, which are kept and skipped.
    pub newer_lines: usize,
    /// All problems, including those that were repaired.
    pub problems: Vec<StoreProblem>,
}

impl StoreCheckReport {
    /// Returns true when no unrepaired problem remains.
    pub fn is_clean(&self) -> bool {
        self.problems.iter().all(|problem| problem.repaired)
    }
}

/// Validity of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineValidity {
    Valid,
    /// Valid JSON of the right kind with values unknown to this version.
    Newer,
    Corrupt,
}

/// File to which a line belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineFile {
    Runs,
    Triage,
    Mutes,
    Fixes,
    Surfaced,
    Notes,
    Snoozes,
    Ratings,
    Questions,
    Journal,
}

fn classify_line(sort: LineFile, line: &[u8]) -> LineValidity {
    use crate::domain::{
        Disposition, FindingNote, FindingQuestion, FindingRating, FindingSnooze, Fix, FixId, JournalEntry,
        LedgerDelivery, Mute, RunRecord,
    };
    let good = match sort {
        LineFile::Runs => serde_json::from_slice::<RunRecord>(line).is_ok(),
        LineFile::Triage => serde_json::from_slice::<Disposition>(line).is_ok(),
        LineFile::Mutes => serde_json::from_slice::<Mute>(line).is_ok(),
        LineFile::Surfaced => serde_json::from_slice::<LedgerDelivery>(line).is_ok(),
        LineFile::Fixes => serde_json::from_slice::<Fix>(line).is_ok(),
        LineFile::Notes => serde_json::from_slice::<FindingNote>(line).is_ok(),
        LineFile::Snoozes => serde_json::from_slice::<FindingSnooze>(line).is_ok(),
        LineFile::Ratings => serde_json::from_slice::<FindingRating>(line).is_ok(),
        LineFile::Questions => serde_json::from_slice::<FindingQuestion>(line).is_ok(),
        LineFile::Journal => serde_json::from_slice::<JournalEntry>(line).is_ok(),
    };
    if good {
        return LineValidity::Valid;
    }
    let Ok(Value::Object(object)) = serde_json::from_slice(line) else { return LineValidity::Corrupt };
    let text = |key: &str| object.get(key).and_then(Value::as_str);
    let plausible = match sort {
        LineFile::Runs => text("run_id").is_some_and(RunId::is_valid) && text("status").is_some(),
        LineFile::Triage => text("finding_id").is_some_and(FindingId::is_valid) && text("status").is_some(),
        LineFile::Fixes => text("fix_id").is_some_and(FixId::is_valid) && text("status").is_some(),
        LineFile::Mutes => text("kind").is_some() && text("action").is_some(),
        LineFile::Surfaced => text("at").is_some() && object.get("tokens").is_some_and(Value::is_u64),
        LineFile::Notes => text("finding_id").is_some_and(FindingId::is_valid) && text("text").is_some(),
        LineFile::Snoozes | LineFile::Ratings => {
            text("finding_id").is_some_and(FindingId::is_valid) && text("group").is_some()
        }
        LineFile::Questions => text("finding_id").is_some_and(FindingId::is_valid) && text("question").is_some(),
        LineFile::Journal => object.get("seq").is_some_and(Value::is_u64) && text("event").is_some(),
    };
    if plausible { LineValidity::Newer } else { LineValidity::Corrupt }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CheckMode {
    Verify,
    /// Verification of a file that is being written: an incomplete last line is not a problem.
    VerifyActive,
    Repair,
}

impl Store {
    /// Reads every file of the store and reports its problems, without changing anything.
    ///
    /// # Errors
    /// Returns an error when a file cannot be read.
    pub fn verify(&self) -> Result<StoreCheckReport, StoreError> {
        self.check_all(CheckMode::Verify)
    }

    /// Does the same as [`Store::verify`] and repairs the problems if possible. Readable findings and dispositions are
    /// never changed; unreadable data is kept in a separate file.
    ///
    /// # Errors
    /// Returns an error when the store cannot be locked, or a file cannot be read or written.
    pub fn repair(&self) -> Result<StoreCheckReport, StoreError> {
        self.prepare_for_write()?;
        let report = self.check_all(CheckMode::Repair)?;
        if report.problems.iter().any(|problem| problem.repaired) {
            // The checkpoint stores counts of unreadable lines, so the next reader must rebuild it.
            files::remove(&self.checkpoint_path())?;
        }
        Ok(report)
    }

    fn check_all(&self, mode: CheckMode) -> Result<StoreCheckReport, StoreError> {
        let mut report = StoreCheckReport::default();
        if !self.root.is_dir() {
            return Ok(report);
        }
        self.check_repo(mode, &mut report)?;
        let replace = |file| move |good: &[u8]| self.rewrite_tracked(file, good);
        let losses;
        {
            let _lock = if mode == CheckMode::Repair { Some(StoreLock::acquire(&self.root)?) } else { None };
            losses = self.check_losses(&mut report);
            check_lines(&self.runs_path(), LineFile::Runs, mode, &mut report, &replace(TrackedFile::Runs))?;
            check_lines(&self.triage_path(), LineFile::Triage, mode, &mut report, &replace(TrackedFile::Triage))?;
            check_lines(&self.mutes_path(), LineFile::Mutes, mode, &mut report, &replace(TrackedFile::Mutes))?;
            let path = self.deliveries_path();
            check_lines(&path, LineFile::Surfaced, mode, &mut report, &replace(TrackedFile::Deliveries))?;
            check_lines(&self.fixes_path(), LineFile::Fixes, mode, &mut report, &replace(TrackedFile::Fixes))?;
            check_lines(&self.notes_path(), LineFile::Notes, mode, &mut report, &replace(TrackedFile::Notes))?;
            check_lines(&self.snoozes_path(), LineFile::Snoozes, mode, &mut report, &replace(TrackedFile::Snoozes))?;
            check_lines(&self.ratings_path(), LineFile::Ratings, mode, &mut report, &replace(TrackedFile::Ratings))?;
            let path = self.questions_path();
            check_lines(&path, LineFile::Questions, mode, &mut report, &replace(TrackedFile::Questions))?;
            self.check_epoch(mode, &mut report)?;
        }
        for path in self.list_folder("events")? {
            if path.extension().is_none_or(|extension| extension != "jsonl") {
                continue;
            }
            let run = path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse::<RunId>().ok());
            let Some(run) = run else {
                let what = "is not named after a run";
                report.add_unrepairable(&path, what, "none: it is left alone");
                continue;
            };
            // Only a run's worker writes its journal, so the journal is repaired only after the worker has ended.
            let lock = if mode == CheckMode::Repair { self.lock_run(&run)? } else { None };
            let here = match (mode, &lock) {
                (CheckMode::Repair, Some(_)) => CheckMode::Repair,
                _ if self.is_live(&run)? => CheckMode::VerifyActive,
                _ => CheckMode::Verify,
            };
            check_lines(&path, LineFile::Journal, here, &mut report, &|good| self.rewrite_journal(&run, good))?;
        }
        self.check_outputs(mode, &mut report)?;
        self.check_runs(mode, &mut report)?;
        self.check_spending(mode, &mut report)?;
        if mode == CheckMode::Repair && !losses.is_empty() {
            self.restore_lost_lines(&losses)?;
            report
                .problems
                .iter_mut()
                .skip(losses.start)
                .take(losses.len())
                .for_each(|problem| problem.repaired = true);
        }
        for name in super::STORE_FOLDERS {
            check_leftovers(&self.root.join(name), mode, &mut report)?;
        }
        #[cfg(unix)]
        self.check_modes(mode, &mut report)?;
        Ok(report)
    }

    /// Removes temporary files that dead processes left, and returns their number. Only old files are removed, because
    /// a live process keeps a temporary file only for a moment.
    ///
    /// # Errors
    /// Returns an error when a folder cannot be listed or a file cannot be removed.
    pub fn remove_stale_temporaries(&self) -> Result<usize, StoreError> {
        let mut report = StoreCheckReport::default();
        for name in super::STORE_FOLDERS {
            check_leftovers(&self.root.join(name), CheckMode::Repair, &mut report)?;
        }
        Ok(report.problems.len())
    }

    pub(super) fn list_folder(&self, name: &str) -> Result<Vec<PathBuf>, StoreError> {
        list_files(&self.root.join(name))
    }

    fn check_repo(&self, mode: CheckMode, report: &mut StoreCheckReport) -> Result<(), StoreError> {
        let path = self.root.join("repo.json");
        report.files += 1;
        let bytes = files::read(&path)?;
        let info = bytes.as_deref().and_then(|bytes| serde_json::from_slice::<super::RepoInfo>(bytes).ok());
        let what = match (&bytes, info) {
            (_, Some(info)) if info.key == self.info.key => return Ok(()),
            (_, Some(_)) => "names another repository",
            (None, None) => "is missing",
            (Some(_), None) => "cannot be read",
        };
        let mut problem = StoreProblem::new(&path, what, "written anew for this repository");
        if self.newer.is_some() {
            problem.repair = "none: a newer revdeck wrote it".to_owned();
        } else if mode == CheckMode::Repair {
            if let Some(bytes) = &bytes {
                set_aside(&path, bytes)?;
            }
            let mut json = serde_json::to_vec_pretty(&self.info)
                .map_err(|source| StoreError::Encode { what: "the repository's name", source })?;
            json.push(b'\n');
            files::write_atomically(&path, &json, ExistingPolicy::Replace)?;
            problem.repaired = true;
        }
        report.problems.push(problem);
        Ok(())
    }

    fn check_epoch(&self, mode: CheckMode, report: &mut StoreCheckReport) -> Result<(), StoreError> {
        let path = self.root.join("epoch");
        let Some(bytes) = files::read(&path)? else { return Ok(()) };
        report.files += 1;
        if std::str::from_utf8(&bytes).is_ok_and(|text| text.trim().parse::<u64>().is_ok()) {
            return Ok(());
        }
        let mut problem = StoreProblem::new(&path, "holds no number", "set past the greatest epoch of any run");
        if mode == CheckMode::Repair {
            set_aside(&path, &bytes)?;
            let next = format!("{}\n", self.greatest_epoch()?.saturating_add(1));
            files::write_atomically(&path, next.as_bytes(), ExistingPolicy::Replace)?;
            problem.repaired = true;
        }
        report.problems.push(problem);
        Ok(())
    }

    fn check_outputs(&self, mode: CheckMode, report: &mut StoreCheckReport) -> Result<(), StoreError> {
        for path in self.list_folder("outputs")? {
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            report.files += 1;
            let Some(bytes) = files::read(&path)? else { continue };
            match super::parse::parse_output_lines(&bytes) {
                Some(lines) => report.newer_lines += lines.unreadable,
                None => {
                    let mut problem =
                        StoreProblem::new(&path, "cannot be read", "set aside; the run's journal stands in for it");
                    if mode == CheckMode::Repair {
                        let aside = free_corrupt_path(&path);
                        std::fs::rename(&path, &aside).map_err(StoreError::io("rename", &path))?;
                        files::sync_folder(&self.root.join("outputs"));
                        problem.repaired = true;
                    }
                    report.problems.push(problem);
                }
            }
        }
        Ok(())
    }

    #[cfg(unix)]
    fn check_modes(&self, mode: CheckMode, report: &mut StoreCheckReport) -> Result<(), StoreError> {
        use std::os::unix::fs::PermissionsExt;
        let mut paths = vec![self.root.clone()];
        for name in super::STORE_FOLDERS {
            paths.extend(self.list_folder(name)?);
        }
        for path in paths {
            let Ok(metadata) = std::fs::symlink_metadata(&path) else { continue };
            let (folder, open) = (metadata.is_dir(), metadata.permissions().mode() & 0o077 != 0);
            if metadata.file_type().is_symlink() || !open {
                continue;
            }
            let mut problem = StoreProblem::new(&path, "can be read by others", "closed to others");
            if mode == CheckMode::Repair {
                let private = std::fs::Permissions::from_mode(if folder { 0o700 } else { 0o600 });
                std::fs::set_permissions(&path, private).map_err(StoreError::io("protect", &path))?;
                problem.repaired = true;
            }
            report.problems.push(problem);
        }
        Ok(())
    }
}

impl StoreProblem {
    pub(super) fn new(path: &Path, what: &str, repair: &str) -> Self {
        Self { path: path.to_owned(), line: None, what: what.into(), repair: repair.into(), repaired: false }
    }
}

impl StoreCheckReport {
    fn add_unrepairable(&mut self, path: &Path, what: &str, repair: &str) {
        self.problems.push(StoreProblem::new(path, what, repair));
    }
}

/// Lists the entries of a folder, sorted; empty when the folder is missing.
pub(super) fn list_files(folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(StoreError::io("list", folder)(error)),
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}

/// Checks the lines of a file; a repair gives the good lines to `replace`.
fn check_lines(
    path: &Path,
    sort: LineFile,
    mode: CheckMode,
    report: &mut StoreCheckReport,
    replace: &dyn Fn(&[u8]) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let Some(bytes) = files::read(path)? else { return Ok(()) };
    report.files += 1;
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    let first = report.problems.len();
    let torn = !bytes.is_empty() && bytes.last() != Some(&b'\n');
    let count = bytes.split(|byte| *byte == b'\n').count();
    for (number, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        if line.is_empty() {
            continue;
        }
        report.lines += 1;
        let unended = torn && number + 1 == count;
        if unended && mode == CheckMode::VerifyActive {
            continue;
        }
        let kind = classify_line(sort, line);
        if kind == LineValidity::Newer {
            report.newer_lines += 1;
        }
        if kind == LineValidity::Corrupt {
            let what = if unended { "is torn: it ends in the middle" } else { "is not a line of this file" };
            report.problems.push(StoreProblem {
                line: Some(number + 1),
                ..StoreProblem::new(path, what, "moved to a .corrupt file beside it")
            });
            bad.extend_from_slice(line);
            bad.push(b'\n');
        } else {
            if unended {
                let what = "has no line end";
                report.problems.push(StoreProblem {
                    line: Some(number + 1),
                    ..StoreProblem::new(path, what, "the line end is added")
                });
            }
            good.extend_from_slice(line);
            good.push(b'\n');
        }
    }
    if mode == CheckMode::Repair && report.problems.len() > first {
        if !bad.is_empty() {
            set_aside(path, &bad)?;
        }
        replace(&good)?;
        for problem in report.problems.iter_mut().skip(first) {
            problem.repaired = true;
        }
    }
    Ok(())
}

/// Finds temporary files of killed processes. Only files older than an hour count, because a live process keeps a
/// temporary file only for a moment.
fn check_leftovers(folder: &Path, mode: CheckMode, report: &mut StoreCheckReport) -> Result<(), StoreError> {
    const OLD: std::time::Duration = std::time::Duration::from_secs(3600);
    for path in list_files(folder)? {
        let named = path
            .file_name()
            .and_then(|name| name.to_str())
            .is_some_and(|name| name.starts_with(files::TEMPORARY_PREFIX));
        let age =
            std::fs::metadata(&path).and_then(|metadata| metadata.modified()).ok().and_then(|at| at.elapsed().ok());
        if !named || age.is_none_or(|age| age < OLD) {
            continue;
        }
        let mut problem =
            StoreProblem::new(&path, "was left behind by a process that died", "removed: it was never in use");
        if mode == CheckMode::Repair {
            std::fs::remove_file(&path).map_err(StoreError::io("remove", &path))?;
            problem.repaired = true;
        }
        report.problems.push(problem);
    }
    Ok(())
}

/// Returns the first unused path of the form `<file>.corrupt-<n>`.
fn free_corrupt_path(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_os_string();
    for n in 1_u32.. {
        let mut aside = name.clone();
        aside.push(format!(".corrupt-{n}"));
        let aside = path.with_file_name(aside);
        if !aside.exists() {
            return aside;
        }
    }
    path.with_extension("corrupt")
}

/// Copies bytes durably to a new file in the same folder.
fn set_aside(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    files::write_atomically(&free_corrupt_path(path), bytes, ExistingPolicy::Keep)
}
