//! Reads the diff of a run and the texts of its files, on the thread that reads pages.
//!
//! - A changed file that was too large for the snapshot is read from the worktree, if nobody has touched it since the
//!   review.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use super::super::highlight::PartlyParsedTexts;
use super::super::message::{AppMessage, DetailSubject};
use super::super::page_data::PageData;
use super::super::page_loader::{PageLoader, secrets};
use super::model::{
    ChangeBlock, DiffFile, DiffFinding, DiffPage, DiffPageSide, DiffRequest, DiffSuggestion, DiffTexts,
    HIGHLIGHT_BLOCK_LINES, LineTable, TextHighlights,
};
use super::moves::{DiffMove, MoveSource, find_moves};
use crate::domain::{Coverage, Finding, OmissionReason, OmittedFile, RunRecord, Scope, Time, text};
use crate::git::{Changeset, EntryKind, FileChange, Repo};
use crate::masking::{Mask, mask_name};
use crate::store::StoreView;

/// Largest file whose text is shown, in bytes.
const MAX_TEXT_BYTES: u64 = 32 << 20;
/// Largest change in which moved lines are looked for: changed lines, files, and bytes of a file. A person does not see
/// moves in a larger one.
const MAX_MOVE_LINES: u32 = 100_000;
const MAX_MOVE_FILES: usize = 1_000;
const MAX_MOVE_BYTES: u64 = 4 << 20;
/// Bytes in which a NUL makes a file binary, as in git.
const BINARY_PROBE_BYTES: usize = 8_000;
/// Extensions of images.
const IMAGES: [&str; 11] = ["png", "jpg", "jpeg", "gif", "webp", "bmp", "ico", "tif", "tiff", "avif", "heic"];

/// Stands instead of a change that cannot be read because the repository is not there; short enough for one line.
const REPOSITORY_GONE: &str = "The repository is gone: its code cannot be read.";

/// Numbers the texts that were read.
static SERIAL: AtomicU64 = AtomicU64::new(1);

/// Files of a change that a diff shows.
#[derive(Debug, Clone, PartialEq, Eq)]
enum FileChoice {
    All,
    /// A file, and all others that were reviewed with it. The others that were left out of the review take too long to
    /// look up each time another finding is selected.
    Around(String),
    One(String),
}

impl FileChoice {
    /// Returns the file that is shown in any case.
    fn path(&self) -> Option<&str> {
        match self {
            Self::All => None,
            Self::Around(path) | Self::One(path) => Some(path),
        }
    }

    fn includes_reviewed(&self, file: &str) -> bool {
        match self {
            Self::All | Self::Around(_) => true,
            Self::One(path) => path == file,
        }
    }

    fn includes_left_out(&self, file: &str) -> bool {
        self.path().is_none_or(|path| path == file)
    }
}

impl PageLoader {
    /// Reads the diff of a subject: of all files of a run, at a finding, or of one file.
    pub(in crate::tui) fn load_diff(
        &mut self,
        view: &Arc<StoreView>,
        subject: &DetailSubject,
        mask: Mask,
    ) -> Result<PageData, String> {
        let run = self.read_run_of(view, subject)?;
        let output = self.store.output_of(&run).map_err(|error| error.to_string())?;
        let (mut findings, coverage) = output.map(|output| (output.findings, output.coverage)).unwrap_or_default();
        findings.iter_mut().for_each(|finding| view.rate_finding(finding));
        let mut page = DiffPage {
            run: run.run_id.to_string(),
            from: run.subject.base_commit.clone(),
            to: run.subject.snapshot_commit.clone(),
            mask,
            ..DiffPage::default()
        };
        let choice = match subject {
            DetailSubject::Finding(id) => {
                // The change in which the finding was reported, with the lines it had there.
                let id = id.parse().map_err(|error| format!("{error}"))?;
                let reported = self.store.finding_in_run(&run.run_id, &id).map_err(|error| error.to_string())?;
                let finding = reported.ok_or("the store no longer has this finding")?;
                page.selected = Some(finding.finding_id.to_string());
                FileChoice::Around(finding.repo_relative_path)
            }
            DetailSubject::File { path, .. } => FileChoice::One(path.clone()),
            DetailSubject::Run(_) | DetailSubject::Nothing => FileChoice::All,
        };
        let whole_tree = matches!(run.subject.scope, Scope::All);
        page.note = if run.subject.snapshot_commit.is_empty() {
            Some("The snapshot of this run is not there yet.".to_owned())
        } else {
            match (whole_tree, self.read_change(&run)) {
                (true, _) => {
                    self.add_unchanged_files(&mut page, &findings, choice.path());
                    "This run is about the whole tree as it is: there is no change to show.".to_owned().into()
                }
                (false, None) if self.is_repository_gone() => Some(REPOSITORY_GONE.to_owned()),
                (false, None) => Some("The snapshot of this run is no longer kept.".to_owned()),
                (false, Some(change)) => {
                    self.add_changed_files(&mut page, &change, &choice);
                    apply_coverage(&mut page, &coverage);
                    self.add_unstored_files(&mut page, &coverage.left_out, choice.path(), self.find_review_time(&run));
                    self.add_unchanged_files(&mut page, &findings, choice.path());
                    Some(match choice.path() {
                        Some(_) => "This run's change does not touch it.".to_owned(),
                        None => "This run has no change to show.".to_owned(),
                    })
                }
            }
        };
        if !page.files.is_empty() {
            page.note = None;
        }
        let paths = page.files.iter().map(|file| file.path.as_str());
        let known: HashSet<String> = findings.iter().map(|finding| finding.finding_id.to_string()).collect();
        let at = (run.run_id.as_str(), page.to.as_str());
        let others = self.find_standing_findings(view, at, paths, |row| !known.contains(row.id));
        findings.extend(others);
        self.add_findings(&mut page, findings, view, mask);
        let viewed = self.read_viewed();
        page.files.iter_mut().for_each(|file| self.apply_viewed_marks(file, &viewed));
        Ok(Arc::new(page).into())
    }

    fn is_repository_gone(&self) -> bool {
        self.repo.as_ref().is_some_and(Repo::is_gone)
    }

    /// Adds the files of a change: those to review, then those that were left out.
    fn add_changed_files(&self, page: &mut DiffPage, change: &Changeset, choice: &FileChoice) {
        let to_file = |file: &FileChange| DiffFile {
            path: file.path.clone(),
            old_path: file.old_path.clone(),
            old_blob: file.old_blob.clone(),
            new_blob: Some(file.new_blob.clone()),
            blocks: file.hunks.iter().map(ChangeBlock::from).collect(),
            ..DiffFile::default()
        };
        page.files.extend(change.files.iter().filter(|file| choice.includes_reviewed(&file.path)).map(to_file));
        for omitted in change.left_out.iter().filter(|file| choice.includes_left_out(&file.path)) {
            let old_path = change.moved.get(&omitted.path);
            let blob = |commit: &str, path| self.repo.as_ref().and_then(|repo| find_blob(repo, commit, path));
            let file = DiffFile {
                path: omitted.path.clone(),
                old_path: old_path.cloned(),
                old_blob: blob(&page.from, old_path.unwrap_or(&omitted.path)),
                new_blob: blob(&page.to, &omitted.path),
                left_out: Some(omitted.reason),
                ..DiffFile::default()
            };
            // Some files are not changed themselves: the change only lets later reviews leave them out.
            if !omitted.hidden || file.old_blob != file.new_blob || choice.path().is_some() {
                page.files.push(file);
            }
        }
    }

    /// Returns the time of the review of the worktree of this repository; `None` for another review. From then on, a file
    /// that nobody touches is as it was reviewed.
    pub(in crate::tui) fn find_review_time(&self, run: &RunRecord) -> Option<Time> {
        let is_here = matches!(run.subject.scope, Scope::Worktree)
            && run.team.is_none()
            && run.follow_up_of.is_none()
            && self.repo.as_ref().is_some_and(|repo| repo.root() == Path::new(&run.subject.worktree));
        is_here.then_some(run.created_at)
    }

    /// Adds changed files that the snapshot could not take.
    fn add_unstored_files(
        &self,
        page: &mut DiffPage,
        left_out: &[OmittedFile],
        path: Option<&str>,
        reviewed_at: Option<Time>,
    ) {
        let known: HashSet<String> = page.files.iter().map(|file| file.path.clone()).collect();
        let is_unstored = |file: &&OmittedFile| {
            matches!(file.reason, OmissionReason::Oversized | OmissionReason::Unreadable)
                && !known.contains(&file.path)
                && path.is_none_or(|path| path == file.path)
        };
        let unstored = left_out.iter().filter(is_unstored).map(|file| DiffFile {
            path: file.path.clone(),
            old_blob: self.repo.as_ref().and_then(|repo| find_blob(repo, &page.from, &file.path)),
            left_out: Some(file.reason),
            is_unstored: true,
            reviewed_at: reviewed_at.filter(|_| file.reason == OmissionReason::Oversized),
            inode: file.inode,
            ..DiffFile::default()
        });
        page.files.extend(unstored.collect::<Vec<_>>());
    }

    /// Adds files with findings that the change does not touch: their code is shown as it is.
    fn add_unchanged_files(&self, page: &mut DiffPage, findings: &[Finding], path: Option<&str>) {
        let known: HashSet<String> = page.files.iter().map(|file| file.path.clone()).collect();
        let paths = findings.iter().map(|finding| finding.repo_relative_path.as_str());
        let mut paths: Vec<&str> = match path {
            Some(path) => vec![path],
            None => paths.collect(),
        };
        paths.sort_unstable();
        paths.dedup();
        for path in paths.into_iter().filter(|path| !known.contains(*path)) {
            let blob = self.repo.as_ref().and_then(|repo| find_blob(repo, &page.to, path));
            if let Some(blob) = blob {
                page.files.push(DiffFile {
                    path: path.to_owned(),
                    old_blob: Some(blob.clone()),
                    new_blob: Some(blob),
                    ..DiffFile::default()
                });
            }
        }
    }

    /// Adds the findings of the run to their files, with their newest status.
    fn add_findings(&self, page: &mut DiffPage, findings: Vec<Finding>, view: &StoreView, mask: Mask) {
        let mut by_path: HashMap<String, Vec<DiffFinding>> = HashMap::new();
        for finding in findings {
            let finding = secrets::mask_finding(finding, mask);
            let row = view.finding_index(finding.finding_id.as_str()).map(|index| view.finding(index));
            let suggestion = finding.suggestion.as_ref().map(|suggestion| DiffSuggestion {
                text: suggestion.text.clone(),
                replacement: suggestion
                    .replacement
                    .clone()
                    .map(|replacement| (suggestion.lines.unwrap_or(finding.lines()), replacement)),
            });
            by_path.entry(finding.repo_relative_path.clone()).or_default().push(DiffFinding {
                id: finding.finding_id.to_string(),
                priority: row.as_ref().map_or(finding.priority, |row| row.priority),
                kind: row.as_ref().map_or(finding.kind, |row| row.kind),
                status: row.as_ref().map_or(finding.status, |row| row.status),
                lines: finding.lines(),
                title: finding.title,
                explanation: finding.explanation,
                suggestion,
            });
        }
        for file in &mut page.files {
            if let Some(mut findings) = by_path.remove(&file.path) {
                findings.sort_by_key(|finding| (finding.lines.start, finding.lines.end, finding.priority));
                file.findings = findings;
            }
        }
    }

    /// Executes a request of the diff.
    pub(in crate::tui) fn serve_diff(&mut self, request: DiffRequest, parsed: &mut PartlyParsedTexts) -> AppMessage {
        match request {
            DiffRequest::Read { page, file } => {
                let texts = match page.files.get(file) {
                    Some(file) => self.read_diff_texts(&page, file).map(Arc::new),
                    None => Err("there is no such file".to_owned()),
                };
                AppMessage::DiffFile { page, file, texts }
            }
            DiffRequest::FindMoves(page) => {
                let moves = self.find_diff_moves(&page);
                AppMessage::DiffMoves { page, moves }
            }
            DiffRequest::Highlight { path, texts, side, block } => {
                let spans = self.highlighter.highlight_block(
                    parsed,
                    &path,
                    (texts.serial, side == DiffPageSide::New),
                    &|line| texts.side(side).line(line + 1),
                    block * HIGHLIGHT_BLOCK_LINES,
                    HIGHLIGHT_BLOCK_LINES,
                );
                AppMessage::DiffHighlights(TextHighlights { serial: texts.serial, side, block, spans })
            }
        }
    }

    /// Finds the lines that moved between the files; nothing in a change that is too large to look through.
    fn find_diff_moves(&self, page: &DiffPage) -> Vec<DiffMove> {
        let changed = |file: &DiffFile| {
            let (added, removed) = DiffFile::count_lines(&file.blocks);
            added.saturating_add(removed)
        };
        let lines = page.files.iter().map(changed).fold(0, u32::saturating_add);
        let Some(repo) = self.repo.as_ref().filter(|_| lines <= MAX_MOVE_LINES && page.files.len() <= MAX_MOVE_FILES)
        else {
            return Vec::new();
        };
        let read = |blob: &Option<String>| {
            let blob = blob.as_ref().filter(|blob| repo.blob_size(blob).is_ok_and(|size| size <= MAX_MOVE_BYTES));
            let bytes = blob.and_then(|blob| repo.blob(blob).ok()).unwrap_or_default();
            LineTable::new(String::from_utf8_lossy(&bytes).into_owned())
        };
        let tables: Vec<(LineTable, LineTable)> = page
            .files
            .iter()
            .map(|file| match file.blocks.is_empty() {
                true => Default::default(),
                false => (read(&file.old_blob), read(&file.new_blob)),
            })
            .collect();
        let sources: Vec<MoveSource<'_>> = page
            .files
            .iter()
            .zip(&tables)
            .map(|(file, (old, new))| MoveSource { blocks: &file.blocks, old, new })
            .collect();
        find_moves(&sources)
    }

    fn read_diff_texts(&self, page: &DiffPage, file: &DiffFile) -> Result<DiffTexts, String> {
        let repo = self.repo.as_ref().ok_or("the repository cannot be opened")?;
        let old_path = file.old_path.as_deref().unwrap_or(&file.path);
        let (old, new) = (&file.old_blob, &file.new_blob);
        let mut texts = DiffTexts { serial: SERIAL.fetch_add(1, Ordering::Relaxed), ..DiffTexts::default() };
        let read_size = |blob: &Option<String>| blob.as_ref().map(|blob| repo.blob_size(blob).unwrap_or(0));
        let unstored = if file.is_unstored { find_in_worktree(repo, file) } else { None };
        if file.is_unstored && unstored.is_none() {
            texts.note = Some(describe_unstored(file).to_owned());
            return Ok(texts);
        }
        let sizes = (read_size(old), unstored.or_else(|| read_size(new)));
        if sizes.0.max(sizes.1).unwrap_or(0) > MAX_TEXT_BYTES {
            texts.note = Some(describe_sizes("a large file", sizes));
            return Ok(texts);
        }
        let read = |blob: &Option<String>| match blob {
            Some(blob) => repo.blob(blob).map_err(|error| match repo.is_gone() {
                true => REPOSITORY_GONE.to_owned(),
                false => error.to_string(),
            }),
            None => Ok(Vec::new()),
        };
        let is_unchanged = old == new && !file.is_unstored;
        let new_bytes = match unstored {
            Some(_) => match read_from_worktree(repo, file) {
                Some(content) => content,
                None => {
                    texts.note = Some(describe_unstored(file).to_owned());
                    return Ok(texts);
                }
            },
            None => read(new)?,
        };
        let old_bytes = if is_unchanged { Vec::new() } else { read(old)? };
        if is_binary(&old_bytes) || is_binary(&new_bytes) {
            let extension = file.path.rsplit_once('.').map_or("", |(_, extension)| extension).to_ascii_lowercase();
            let sort = if IMAGES.contains(&extension.as_str()) { "an image" } else { "a binary file" };
            texts.note = Some(describe_sizes(sort, sizes));
            return Ok(texts);
        }
        if file.blocks.is_empty() && (file.left_out.is_some() || !is_unchanged) {
            let hunks = match is_unchanged {
                true => Vec::new(),
                false => repo.diff_texts(&old_bytes, &new_bytes).map_err(|error| error.to_string())?,
            };
            // The lines of findings are shown in any case.
            if hunks.is_empty() && file.findings.is_empty() {
                let from = file.old_path.as_deref().map(|from| mask_shown(page.mask, from));
                texts.note = Some(describe_unchanged(from.as_deref(), sizes));
                return Ok(texts);
            }
            texts.found_blocks = Some(hunks.iter().map(ChangeBlock::from).collect());
        }
        texts.caption = file.left_out.map(|reason| describe_unread(reason, file.is_unstored));
        let clean = |bytes: &[u8], path: &str| {
            let whole = String::from_utf8_lossy(bytes);
            text::sanitize_lines(&page.mask.mask_text(Some(path), &whole), 4)
        };
        let blocks = texts.found_blocks.as_deref().unwrap_or(&file.blocks);
        let (old, new) = (clean(&old_bytes, old_path), clean(&new_bytes, &file.path));
        let mut compared = DiffTexts::new(texts.serial, &file.path, old, new, blocks);
        if !blocks.is_empty() {
            let to_table = |bytes: &[u8]| LineTable::new(String::from_utf8_lossy(bytes).into_owned());
            let (before, after) = (to_table(&old_bytes), to_table(&new_bytes));
            compared.find_change_without_space(blocks, &before, &after);
            compared.name_changes(blocks, &before, &after);
        }
        Ok(DiffTexts { found_blocks: texts.found_blocks, caption: texts.caption, ..compared })
    }
}

fn find_blob(repo: &Repo, commit: &str, path: &str) -> Option<String> {
    if commit.is_empty() {
        return None;
    }
    let (kind, id) = repo.entry_at(commit, path).ok()??;
    (kind != EntryKind::Submodule).then_some(id)
}

/// Says of each file whether the run has left it out. The settings, by which the change was read again, may leave out others
/// than at the time of the run.
fn apply_coverage(page: &mut DiffPage, coverage: &Coverage) {
    let left_out: HashMap<&str, OmissionReason> =
        coverage.left_out.iter().map(|file| (file.path.as_str(), file.reason)).collect();
    let carried = coverage.carried.iter().map(|carried| &carried.file);
    let covered: HashSet<&str> = coverage.files.iter().chain(carried).map(|file| file.path.as_str()).collect();
    for file in &mut page.files {
        match left_out.get(file.path.as_str()) {
            _ if covered.contains(file.path.as_str()) => file.left_out = None,
            Some(reason) => file.left_out = Some(*reason),
            None => {}
        }
    }
}

/// Masks the keys in a name that stands in a longer text: a key that is wrapped there is not recognized where it is drawn.
fn mask_shown(mask: Mask, name: &str) -> Cow<'_, str> {
    match mask {
        Mask::On => mask_name(name),
        Mask::Off => name.into(),
    }
}

/// Returns the size of a file of the worktree that stands there as it was reviewed.
fn find_in_worktree(repo: &Repo, file: &DiffFile) -> Option<u64> {
    repo.worktree_files().ok()?.untouched_size(&file.path, SystemTime::from(file.reviewed_at?), file.inode)
}

/// Reads a file of the worktree that stands there as it was reviewed, before and after the reading.
fn read_from_worktree(repo: &Repo, file: &DiffFile) -> Option<Vec<u8>> {
    let content = repo.worktree_files().ok()?.read(&file.path).ok()??.content;
    let size = find_in_worktree(repo, file)?;
    (size == content.len() as u64).then_some(content)
}

/// Says above the lines of a file that was left out of the review that nobody has read them.
fn describe_unread(reason: OmissionReason, is_unstored: bool) -> String {
    let reason = match reason {
        OmissionReason::Oversized => "it is larger than max_file_bytes".to_owned(),
        other => other.to_string(),
    };
    let origin = if is_unstored { " Shown from the worktree, untouched since the review." } else { "" };
    format!("The reviewer did not read this file: {reason}.{origin}")
}

/// Says why the change of a file cannot be shown that is not in the snapshot.
fn describe_unstored(file: &DiffFile) -> &'static str {
    match (file.left_out, file.reviewed_at) {
        (Some(OmissionReason::Oversized), Some(_)) => {
            "The reviewer did not read this file: it is larger than max_file_bytes. It has changed since, and the snapshot \
             does not have it. With a larger max_file_bytes, a new review reads and shows it."
        }
        (Some(OmissionReason::Oversized), None) => {
            "The reviewer did not read this file: it is larger than max_file_bytes, and the snapshot does not have it. \
             With a larger max_file_bytes, a new review reads and shows it."
        }
        _ => "The reviewer did not read this file: it could not be read, and the snapshot does not have it.",
    }
}

fn is_binary(bytes: &[u8]) -> bool {
    memchr::memchr(0, bytes.get(..BINARY_PROBE_BYTES).unwrap_or(bytes)).is_some()
}

/// Names a file that is not shown as text, with its sizes before and after.
fn describe_sizes(sort: &str, sizes: (Option<u64>, Option<u64>)) -> String {
    match sizes {
        (Some(old), Some(new)) if old == new => format!("{sort}, {}", format_bytes(new)),
        (Some(old), Some(new)) => format!("{sort}, {} before, {} now", format_bytes(old), format_bytes(new)),
        (None, Some(new)) => format!("{sort}, new, {}", format_bytes(new)),
        (Some(old), None) => format!("{sort}, deleted, was {}", format_bytes(old)),
        (None, None) => format!("{sort} that is not in the snapshot"),
    }
}

fn describe_unchanged(old_path: Option<&str>, (old, new): (Option<u64>, Option<u64>)) -> String {
    match (old_path, old, new) {
        (Some(from), ..) => format!("moved from {from} without changes"),
        (None, None, Some(_)) => "a new, empty file".to_owned(),
        (None, Some(_), None) => "an empty file, deleted".to_owned(),
        (None, None, None) => "not a file of the snapshot".to_owned(),
        _ => "its content has not changed".to_owned(),
    }
}

fn format_bytes(bytes: u64) -> String {
    match bytes {
        0..1_000 => text::format_count(bytes as usize, "byte"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1_000.0),
        _ => format!("{:.1} MB", bytes as f64 / 1_000_000.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{FileCoverage, LineRange};

    #[test]
    fn the_diff_of_a_finding_goes_on_to_the_other_files_of_its_run() {
        let around = FileChoice::Around("b.rs".into());
        let one = FileChoice::One("b.rs".into());
        for (choice, file, reviewed, left_out) in [
            (&FileChoice::All, "a.rs", true, true),
            (&around, "b.rs", true, true),
            (&around, "a.rs", true, false),
            (&one, "b.rs", true, true),
            (&one, "a.rs", false, false),
        ] {
            let includes = (choice.includes_reviewed(file), choice.includes_left_out(file));
            assert_eq!(includes, (reviewed, left_out), "{choice:?} {file}");
        }
    }

    #[test]
    fn a_file_that_was_not_reviewed_says_so() {
        for (reason, is_unstored, expected) in [
            (OmissionReason::Oversized, false, "it is larger than max_file_bytes."),
            (
                OmissionReason::Oversized,
                true,
                "it is larger than max_file_bytes. Shown from the worktree, untouched since the review.",
            ),
            (OmissionReason::LockFile, false, "lock file."),
        ] {
            let expected = format!("The reviewer did not read this file: {expected}");
            assert_eq!(describe_unread(reason, is_unstored), expected);
        }
        for (reason, reviewed_at) in [
            (OmissionReason::Oversized, Some(Time::UNIX_EPOCH)),
            (OmissionReason::Oversized, None),
            (OmissionReason::Unreadable, None),
        ] {
            let file = DiffFile { left_out: Some(reason), reviewed_at, is_unstored: true, ..DiffFile::default() };
            let said = describe_unstored(&file);
            assert!(said.starts_with("The reviewer did not read this file"), "{said}");
            assert_eq!(said.contains("a larger max_file_bytes"), reason == OmissionReason::Oversized, "{said}");
            assert_eq!(said.contains("changed since"), reviewed_at.is_some(), "{said}");
        }
    }

    #[test]
    fn a_file_was_left_out_if_its_run_says_so_whatever_the_settings_say_later() {
        let file = |path: &str, left_out| DiffFile { path: path.to_owned(), left_out, ..DiffFile::default() };
        let oversized = Some(OmissionReason::Oversized);
        let mut page = DiffPage {
            files: vec![
                file("larger.py", None),
                file("smaller.py", oversized),
                file("same.py", None),
                file("a.lock", oversized),
            ],
            ..DiffPage::default()
        };
        let covered =
            |path: &str| FileCoverage { path: path.to_owned(), hunks: vec![LineRange::new(1, 2)], keys: Vec::new() };
        let coverage = Coverage {
            files: vec![covered("smaller.py"), covered("same.py")],
            left_out: vec![
                OmittedFile::new("larger.py", OmissionReason::Oversized),
                OmittedFile::new("a.lock", OmissionReason::LockFile),
            ],
            ..Coverage::default()
        };
        let shown = |page: &DiffPage| page.files.iter().map(|file| file.left_out).collect::<Vec<_>>();
        let before = shown(&page);
        apply_coverage(&mut page, &Coverage::default());
        assert_eq!(shown(&page), before, "nothing is known of a run without a result");
        apply_coverage(&mut page, &coverage);
        assert_eq!(shown(&page), [oversized, None, None, Some(OmissionReason::LockFile)]);
    }

    #[test]
    fn a_key_in_the_old_name_of_a_file_is_masked_before_its_text_is_wrapped() {
        let key = ["AKIA", "Q7RT2YPZ", "LK4WN6ZC"].concat();
        let path = format!("data/{key}/model.py");
        let describe = |mask| describe_unchanged(Some(&mask_shown(mask, &path)), (Some(1), Some(1)));
        assert_eq!(describe(Mask::On), "moved from data/«secret:aws_access_key»/model.py without changes");
        assert!(describe(Mask::Off).contains(&key));
    }

    #[test]
    fn files_that_are_no_text_are_named_with_their_sizes() {
        for (sizes, expected) in [
            ((Some(12_300), Some(14_120)), "an image, 12.3 kB before, 14.1 kB now"),
            ((Some(1), Some(1)), "an image, 1 byte"),
            ((None, Some(2_500_000)), "an image, new, 2.5 MB"),
            ((Some(999), None), "an image, deleted, was 999 bytes"),
            ((None, None), "an image that is not in the snapshot"),
        ] {
            assert_eq!(describe_sizes("an image", sizes), expected);
        }
    }
}
