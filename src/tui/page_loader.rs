//! Reads the pages of the detail pane from the store and the snapshot, on a worker thread.
//!
//! - Code comes from the immutable snapshot, never from the working tree. Only the diff reads files there that were too large
//!   for the snapshot, see [`super::diff`].
//! - Control characters are replaced here, and secrets are masked unless a page is read with [`Mask::Off`].

mod names;
mod reviewed_files;
pub(super) mod secrets;
mod standing_findings;
mod viewed_changes;

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use self::reviewed_files::{ReviewedRuns, list_coverage};
use self::standing_findings::StandingFindings;
use self::viewed_changes::ChangeNames;
use super::diff::name_unstored_content;
use super::highlight::Highlighter;
use super::message::{DetailSubject, FileListRow, FileListState, RunFile, Tab};
use super::page_data::{
    CodeExcerpt, CodeRelocation, DiffPageHunk, FilePage, FindingPage, HighlightSpans, PageData, RunPage, TurnsPage,
};
use super::views::live::{LivePage, ReviewTrace, path_key};
use crate::domain::{
    Coverage, Finding, FindingId, FindingStatus, OmissionReason, RunId, RunRecord, Scope, Time, ViewedFile, text,
};
use crate::git::{Changeset, FilterRules, Repo};
use crate::masking::Mask;
use crate::policy;
use crate::report::EarlierRuns;
use crate::runner::LedgerPreview;
use crate::store::{DecisionHistory, JournalFollower, Store, StoreError, StoreView};

/// Lines of code read before and after the anchor; the page shows as many as its pane has room for.
const EXCERPT_CONTEXT_LINES: u32 = 60;
/// Most lines of an anchor that are read; the page shows fewer.
const MAX_ANCHOR_LINES: u32 = 400;
/// Line from which highlighting may be slow, so that the plain code is shown first.
const SLOW_HIGHLIGHT_FROM_LINE: usize = 400;
/// Limits of highlighting: total lines of diffs, and the last line of a file.
pub(super) const MAX_HIGHLIGHTED_DIFF_LINES: usize = 2_000;
pub(super) const MAX_HIGHLIGHTED_LINE: usize = 4_000;
/// Number of files and of changes kept in memory, so that moving the selection does not read them again.
const MAX_CACHED: usize = 16;

/// Function that composes the ledgers of the next turns.
pub type LedgerSource = Box<dyn Fn() -> Result<LedgerPreview, String> + Send>;

/// Most recent values with their keys.
type RecentCache<K, T> = VecDeque<(K, Arc<T>)>;

/// Reads pages; caches files and changes.
pub struct PageLoader {
    pub store: Store,
    /// `None` if the repository cannot be opened a second time; then pages have no code.
    pub repo: Option<Repo>,
    pub filter: Box<dyn FilterRules + Send>,
    pub ledger: LedgerSource,
    pub highlighter: Highlighter,
    /// Lines of code before and after the anchor of a finding.
    pub context_lines: u32,
    /// Masked files by commit and path. Files with their secrets are not kept.
    files: RecentCache<(String, String), Vec<String>>,
    /// Changes by their two commits.
    changes: RecentCache<(String, String), Changeset>,
    /// Run whose journal was read last, with the read position in it.
    following: Option<(RunId, JournalFollower, ReviewTrace)>,
    warm: bool,
    /// Findings of other runs in the snapshots that were read last, newest first.
    standing: Vec<StandingFindings>,
    /// Files of the newest runs.
    reviewed: ReviewedRuns,
    /// Names of changes that were looked up.
    change_names: ChangeNames,
}

impl PageLoader {
    pub fn new(store: Store, repo: Option<Repo>, filter: Box<dyn FilterRules + Send>, ledger: LedgerSource) -> Self {
        Self {
            store,
            repo,
            filter,
            ledger,
            highlighter: Highlighter::default(),
            context_lines: EXCERPT_CONTEXT_LINES,
            files: VecDeque::new(),
            changes: VecDeque::new(),
            following: None,
            warm: false,
            standing: Vec::new(),
            reviewed: ReviewedRuns::default(),
            change_names: ChangeNames::default(),
        }
    }

    /// Reads a page and passes it to `show`; twice if highlighting takes longer than the text.
    pub fn load(
        &mut self,
        view: &Arc<StoreView>,
        subject: &DetailSubject,
        tab: Tab,
        mask: Mask,
        show: &mut dyn FnMut(PageData),
    ) {
        let show = &mut |mut page: PageData| {
            if mask == Mask::On {
                names::mask_page_names(&mut page);
            }
            show(page);
        };
        let result = match (tab, subject) {
            (Tab::Ledger, _) => (self.ledger)().map(PageData::Ledger),
            (_, DetailSubject::Nothing) => return,
            (Tab::Page, DetailSubject::Finding(id)) => return self.load_finding(view, id, mask, show),
            (Tab::Page, DetailSubject::Run(run)) => self.load_run(view, run),
            (Tab::Page, DetailSubject::File { run, path }) => self.load_file(view, run, path),
            (Tab::Turns, DetailSubject::Run(run)) => self.load_turns(run).map(PageData::Turns),
            (Tab::Context, DetailSubject::Run(run)) => self.load_turns(run).map(PageData::Context),
            (Tab::Fix, DetailSubject::Finding(id)) => self.load_fix(id, mask),
            // Only findings have fixes.
            (Tab::Fix, _) => return,
            // Only runs have turns.
            (Tab::Turns | Tab::Context, _) => return,
            (Tab::Diff, subject) => self.load_diff(view, subject, mask),
            (Tab::Log, subject) => self.load_log(view, subject),
        };
        show(result.unwrap_or_else(PageData::Failed));
    }

    /// Returns the latest record of a run.
    fn read_run(&self, run: &str) -> Result<RunRecord, String> {
        self.read_run_with(run, |store, id| store.run(id))
    }

    /// Returns the record of a run that the view shows.
    fn read_run_in(&self, view: &StoreView, run: &str) -> Result<RunRecord, String> {
        self.read_run_with(run, |store, id| store.run_in(view, id))
    }

    fn read_run_with(
        &self,
        run: &str,
        read: impl Fn(&Store, &RunId) -> Result<Option<RunRecord>, StoreError>,
    ) -> Result<RunRecord, String> {
        let id: RunId = run.parse().map_err(|error| format!("{error}"))?;
        match read(&self.store, &id) {
            Ok(Some(record)) => Ok(record),
            Ok(None) => Err(format!("the store no longer has the run {id}")),
            Err(error) => Err(error.to_string()),
        }
    }

    fn read_finding(&self, view: &Arc<StoreView>, id: &str) -> Result<Finding, String> {
        let id: FindingId = id.parse().map_err(|error| format!("{error}"))?;
        match self.store.finding_in(view, &id) {
            Ok(Some(finding)) => Ok(finding),
            Ok(None) => {
                Err("The details of this finding are not in the store: the output of its run is gone.".to_owned())
            }
            Err(error) => Err(error.to_string()),
        }
    }

    fn load_finding(&mut self, view: &Arc<StoreView>, id: &str, mask: Mask, show: &mut dyn FnMut(PageData)) {
        let finding = match self.read_finding(view, id) {
            Ok(finding) => secrets::mask_finding(finding, mask),
            Err(error) => return show(PageData::Failed(error)),
        };
        let DecisionHistory { lines: history, void } =
            self.store.decision_history(&finding.finding_id).unwrap_or_default();
        let mut notes = self.store.notes(&finding.finding_id).unwrap_or_default();
        notes.iter_mut().for_each(|note| note.text = mask.mask_words(&note.text).into_owned());
        let mut snoozes = self.store.snooze_log().unwrap_or_default();
        snoozes.retain(|snooze| snooze.finding_id == finding.finding_id);
        let mut ratings = self.store.rating_log().unwrap_or_default();
        ratings.retain(|rating| rating.finding_id == finding.finding_id);
        let questions = self.store.questions_about(view, &finding.finding_id).unwrap_or_default();
        let pending = self.store.pending_question_about(view, &finding.finding_id).unwrap_or_default();
        let run = self.read_run_in(view, finding.last_run_id.as_str()).ok();
        let EarlierRuns { first: first_report, carried_from } = self.load_earlier_runs(view, &finding, run.as_ref());
        let seen = self.find_relocation(view, &finding);
        let offer = self.find_mute_offer(view, &finding);
        let placed = seen.as_ref().map(|seen| &seen.run).or(run.as_ref());
        let snapshot = placed.map(|run| run.subject.snapshot_commit.clone());
        let file = snapshot.and_then(|snapshot| self.read_file_lines(&snapshot, &finding.repo_relative_path, mask));
        let code = build_excerpt(&finding, file.as_ref().map(|lines| lines.as_slice()), self.context_lines);
        let first = code.first as usize;
        let count = code.lines.len();
        let mut page = FindingPage {
            finding,
            history,
            void,
            notes,
            snoozes,
            ratings,
            questions,
            pending,
            run,
            first_report,
            carried_from,
            relocation: seen,
            offer,
            code,
        };
        let Some(file) = file.filter(|_| page.code.note.is_none()) else {
            let lines: Vec<String> = page.code.lines.clone();
            page.code.spans = self.highlight(&page.finding.repo_relative_path, &lines, 0, count);
            return show(PageData::Finding(Box::new(page)));
        };
        if !self.warm || first > SLOW_HIGHLIGHT_FROM_LINE {
            show(PageData::Finding(Box::new(page.clone())));
        }
        let from = first.saturating_sub(1);
        page.code.spans = self.highlight(&page.finding.repo_relative_path, &file, from, from + count);
        show(PageData::Finding(Box::new(page)));
    }

    /// Returns the first report of a finding, and the run from which its last run carried it over.
    fn load_earlier_runs(&self, view: &StoreView, finding: &Finding, last: Option<&RunRecord>) -> EarlierRuns {
        let output = last.and_then(|record| self.store.output_of(record).ok().flatten());
        EarlierRuns::load(&self.store, view, finding, output.as_ref()).unwrap_or_default()
    }

    /// Returns the run that saw the finding's code elsewhere after it was reported; `None` if the code has not moved.
    fn find_relocation(&self, view: &StoreView, finding: &Finding) -> Option<CodeRelocation> {
        let index = view.finding_index(finding.finding_id.as_str())?;
        let (reported_by, placed_by) = (view.last_reporting_run(index)?, view.locating_run(index)?);
        if reported_by == placed_by {
            return None;
        }
        let reported = self.store.finding_in_run(&finding.last_run_id, &finding.finding_id).ok()??;
        let lines = crate::report::text::format_line_range(reported.line_start, reported.line_end);
        let run = self.read_run_in(view, view.run(placed_by).id).ok()?;
        Some(CodeRelocation { run, reported: format!("{}:{lines}", reported.repo_relative_path) })
    }

    /// Returns the offer to mute the kind of a dismissed finding, if there is one.
    fn find_mute_offer(&self, view: &StoreView, finding: &Finding) -> Option<policy::MuteOffer> {
        let row = view.finding(view.finding_index(finding.finding_id.as_str())?);
        if row.status != FindingStatus::Dismissed {
            return None;
        }
        let muted = self.store.muted_kinds().ok()?;
        let rows = (0..view.finding_count()).map(|index| view.finding(index)).filter(|row| row.kind == finding.kind);
        policy::list_mute_offers(rows.map(|row| (row.kind, row.status)), |kind| muted.contains_key(&kind)).pop()
    }

    fn highlight(&mut self, path: &str, lines: &[String], from: usize, to: usize) -> Vec<HighlightSpans> {
        self.warm = true;
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        self.highlighter.highlight_lines(path, &lines, from, to)
    }

    /// Returns a file of a snapshot as lines without control characters.
    pub(super) fn read_file_lines(&mut self, commit: &str, path: &str, mask: Mask) -> Option<Arc<Vec<String>>> {
        if commit.is_empty() {
            return None;
        }
        let key = (commit.to_owned(), path.to_owned());
        if mask == Mask::On
            && let Some((_, lines)) = self.files.iter().find(|(known, _)| *known == key)
        {
            return Some(Arc::clone(lines));
        }
        let bytes = self.repo.as_ref()?.file_at(commit, path).ok()??;
        let whole = String::from_utf8_lossy(&bytes);
        let clean = text::sanitize_lines(&mask.mask_text(Some(path), &whole), 4);
        let lines: Arc<Vec<String>> = Arc::new(clean.split('\n').map(str::to_owned).collect());
        if mask == Mask::Off {
            return Some(lines);
        }
        self.files.truncate(MAX_CACHED - 1);
        self.files.push_front((key, Arc::clone(&lines)));
        Some(lines)
    }

    fn load_run(&self, view: &StoreView, run: &str) -> Result<PageData, String> {
        let record = self.read_run_in(view, run)?;
        let mut output = self.store.output_of(&record).map_err(|error| error.to_string())?;
        output.iter_mut().flat_map(|output| &mut output.findings).for_each(|finding| view.rate_finding(finding));
        let journal = if record.status.is_terminal() {
            Vec::new()
        } else {
            secrets::mask_journal(self.store.read_journal(&record.run_id).unwrap_or_default())
        };
        let output = output.map(secrets::mask_output);
        Ok(PageData::Run(Box::new(RunPage { run: record, output, journal })))
    }

    /// Reads the turns of a run.
    fn load_turns(&mut self, run: &str) -> Result<Box<TurnsPage>, String> {
        let run = self.read_run(run)?;
        let conversation = self.follow_run(&run.run_id)?.history.clone();
        Ok(Box::new(TurnsPage { run, conversation }))
    }

    /// Reads a run with the trace of its journal; without a journal, with that of its result.
    pub(super) fn load_live(&mut self, run: &str) -> Result<LivePage, String> {
        // The record is read first: a run that has ended by then gets no further entries.
        let mut record = self.read_run(run)?;
        let mut trace = self.follow_run(&record.run_id)?.clone();
        if trace.is_empty()
            && record.status.is_terminal()
            && let Ok(Some(output)) = self.store.output_of(&record)
        {
            trace.apply_output(&output);
        }
        let is_change = !matches!(record.subject.scope, Scope::All);
        let changed = record.subject.changed_paths.iter().filter(|_| is_change).map(|path| path_key(path)).collect();
        names::mask_run(&mut record);
        Ok(LivePage { record, trace, changed })
    }

    /// Returns the trace of a run's journal; only new entries are read on later calls.
    fn follow_run(&mut self, run: &RunId) -> Result<&ReviewTrace, String> {
        let (mut follower, mut trace) = match self.following.take() {
            Some((known, follower, trace)) if known == *run => (follower, trace),
            _ => (self.store.follow_journal(run, 0), ReviewTrace::default()),
        };
        for mut entry in follower.advance().map_err(|error| error.to_string())? {
            names::mask_event_names(&mut entry.event);
            trace.apply_entry(entry);
        }
        let (_, _, trace) = self.following.insert((run.clone(), follower, trace));
        Ok(trace)
    }

    fn load_file(&mut self, view: &StoreView, run: &str, path: &str) -> Result<PageData, String> {
        let record = self.read_run_in(view, run)?;
        let output = self.store.output_of(&record).map_err(|error| error.to_string())?;
        let state = FileListState::Unknown;
        let mut page = FilePage { run: record, path: path.to_owned(), findings: Vec::new(), hunks: 0, state };
        if let Some(output) = output {
            let carried = output.coverage.carried.iter().map(|carried| &carried.file);
            let covered = output.coverage.files.iter().chain(carried).filter(|file| file.path == path);
            page.hunks = covered.map(|file| file.hunks.len()).sum();
            let state = list_coverage(&page.run, &output.coverage).remove(path);
            page.state = state.unwrap_or(FileListState::Unknown);
            let is_here = |finding: &Finding| finding.repo_relative_path == path;
            let mut findings: Vec<Finding> = output.findings.into_iter().filter(is_here).collect();
            if page.state == FileListState::Unknown && !findings.is_empty() {
                page.state = FileListState::Covered;
            }
            let known: HashSet<String> = findings.iter().map(|finding| finding.finding_id.to_string()).collect();
            let commit = page.run.subject.snapshot_commit.clone();
            let others = self.find_standing_findings(view, (run, &commit), [path], |row| {
                row.status.is_undecided() && !known.contains(row.id)
            });
            findings.extend(others.into_iter().filter(is_here));
            page.findings = findings.into_iter().map(|finding| secrets::mask_finding(finding, Mask::On)).collect();
            page.findings.iter_mut().for_each(|finding| view.rate_finding(finding));
            page.findings.sort_by_key(|finding| finding.line_start);
        }
        Ok(PageData::File(Box::new(page)))
    }

    pub(super) fn read_run_of(&self, view: &Arc<StoreView>, subject: &DetailSubject) -> Result<RunRecord, String> {
        match subject {
            DetailSubject::Run(run) | DetailSubject::File { run, .. } => self.read_run_in(view, run),
            DetailSubject::Finding(id) => match view.finding_index(id) {
                Some(index) => self.read_run_in(view, view.finding(index).last_run),
                None => Err("the store no longer has this finding".to_owned()),
            },
            DetailSubject::Nothing => Err("nothing is selected".to_owned()),
        }
    }

    fn load_log(&self, view: &Arc<StoreView>, subject: &DetailSubject) -> Result<PageData, String> {
        let run = self.read_run_of(view, subject)?;
        let entries = self.store.read_journal(&run.run_id).map_err(|error| error.to_string())?;
        Ok(PageData::Log { run: Some(Box::new(run)), entries: secrets::mask_journal(entries) })
    }

    /// Highlights the lines of the new side.
    pub(super) fn highlight_hunks(
        &mut self,
        commit: &str,
        path: &str,
        hunks: &mut [DiffPageHunk],
        last: usize,
        mask: Mask,
    ) {
        let Some(file) = self.read_file_lines(commit, path, mask) else { return };
        let spans = self.highlight(path, &file, 0, last);
        for line in hunks.iter_mut().flat_map(|hunk| &mut hunk.lines) {
            let Some(number) = line.new.map(|number| number as usize) else { continue };
            // Only if file and diff agree about the text of the line.
            if file.get(number.wrapping_sub(1)) == Some(&line.text)
                && let Some(spans) = spans.get(number - 1)
            {
                line.spans.clone_from(spans);
            }
        }
    }

    pub(super) fn read_change(&mut self, run: &RunRecord) -> Option<Arc<Changeset>> {
        let key = (run.subject.base_commit.clone(), run.subject.snapshot_commit.clone());
        if let Some((_, change)) = self.changes.iter().find(|(known, _)| *known == key) {
            return Some(Arc::clone(change));
        }
        let change = Arc::new(self.repo.as_ref()?.compute_changeset(&key.0, &key.1, self.filter.as_ref()).ok()?);
        self.changes.truncate(MAX_CACHED - 1);
        self.changes.push_front((key, Arc::clone(&change)));
        Some(change)
    }

    /// Returns the ids of the findings that a run reported; empty if the run has no output.
    pub fn read_reported(&self, run: &str) -> Vec<String> {
        let output = run.parse().ok().and_then(|run| self.store.output(&run).ok().flatten());
        let findings = output.into_iter().flat_map(|output| output.findings);
        findings.map(|finding| finding.finding_id.to_string()).collect()
    }

    /// Returns true if a file of a run has the content that a mark of a viewed file names.
    fn has_content(&self, run: &RunRecord, path: &str, content: &str) -> bool {
        self.content_key(run, path).is_some_and(|key| key == content)
    }

    /// Returns the name of a file's content by which it is marked as viewed, as in
    /// [`crate::tui::diff::DiffFile::content_key`]; `None` if neither side of the change has the file, or git cannot read it.
    fn content_key(&self, run: &RunRecord, path: &str) -> Option<String> {
        let repo = self.repo.as_ref()?;
        let blob = |commit: &str| match commit {
            "" => None,
            commit => repo.entry_at(commit, path).ok().flatten().map(|(_, blob)| blob),
        };
        let (old, new) = (blob(&run.subject.base_commit), blob(&run.subject.snapshot_commit));
        if old == new
            && let Some(time) = self.find_review_time(run)
            && self.is_oversized(run, path)
        {
            return Some(name_unstored_content(time));
        }
        new.or_else(|| old.map(|blob| format!("-{blob}")))
    }

    /// Returns true if a run has left a file out because of its size.
    fn is_oversized(&self, run: &RunRecord, path: &str) -> bool {
        let is_listed = |coverage: &Coverage| {
            coverage.left_out.iter().any(|file| file.path == path && file.reason == OmissionReason::Oversized)
        };
        // The lists of a run that has reviewed something stand in its result.
        is_listed(&run.outcome.coverage)
            || self.store.coverage(&run.run_id).ok().flatten().is_some_and(|coverage| is_listed(&coverage))
    }

    /// Stores that files were viewed, or that they were not, with the content that they have in these runs, and their changes with
    /// them. Returns the marks of the files; a file whose content is not known gets none.
    ///
    /// # Errors
    ///
    /// Returns the reason why nothing was stored.
    pub fn mark_files(&mut self, files: &[RunFile], viewed: bool, at: Time) -> Result<Vec<ViewedFile>, String> {
        let known = self.read_viewed();
        let mut records: HashMap<&str, Option<RunRecord>> = HashMap::new();
        let (mut marks, mut changes) = (Vec::with_capacity(files.len()), Vec::new());
        for RunFile { run, path } in files {
            let record = records.entry(run).or_insert_with(|| self.read_run(run).ok());
            let Some(record) = record.as_ref() else { continue };
            if let Some(content) = self.content_key(record, path) {
                marks.push(ViewedFile { path: path.clone(), content, viewed, at });
                changes.extend(self.mark_changes_of((record, path), (viewed, at), &known, files.len()));
            }
        }
        if marks.is_empty() {
            return Err("git cannot read what was reviewed".to_owned());
        }
        changes.extend(marks.iter().cloned());
        self.store.mark_viewed(&changes).map_err(|error| error.to_string())?;
        Ok(marks)
    }

    /// Returns the files of a run, covered, left out or waiting, with the findings in them, those of other runs included.
    /// `None` if the run or its output is missing.
    pub fn read_files(&mut self, view: &StoreView, run: &str) -> Option<Vec<FileListRow>> {
        let record = self.read_run_in(view, run).ok()?;
        let output = self.store.output_of(&record).ok()??;
        let mut rows: BTreeMap<&str, FileListRow> = list_coverage(&record, &output.coverage)
            .into_iter()
            .map(|(path, state)| (path, FileListRow::new(path, state)))
            .collect();
        for finding in &output.findings {
            let path = finding.repo_relative_path.as_str();
            let entry = rows.entry(path).or_insert_with(|| FileListRow::new(path, FileListState::Covered));
            entry.counts[finding.priority.index()] += 1;
        }
        let known: HashSet<&str> = output.findings.iter().map(|finding| finding.finding_id.as_str()).collect();
        let commit = &record.subject.snapshot_commit;
        let others = self.find_standing_findings(view, (run, commit), rows.keys().copied(), |row| {
            row.status.is_undecided() && !known.contains(row.id)
        });
        for finding in others {
            if let Some(row) = rows.get_mut(finding.repo_relative_path.as_str()) {
                row.counts[finding.priority.index()] += 1;
            }
        }
        let viewed = self.read_viewed();
        for (path, content) in &viewed.contents {
            if let Some(row) = rows.get_mut(path.as_str()) {
                row.is_viewed |= self.has_content(&record, path, content);
            }
        }
        for (path, names) in &viewed.changes {
            if let Some(row) = rows.get_mut(path.as_str()).filter(|row| !row.is_viewed)
                && let Some(counts) = self.count_viewed_changes(&record, path, names)
            {
                row.set_viewed_changes(counts);
            }
        }
        Some(rows.into_values().collect())
    }
}

/// Returns the reason as a label that fits into a list.
pub fn reason_label(reason: crate::domain::OmissionReason) -> &'static str {
    use crate::domain::OmissionReason as R;
    match reason {
        R::Generated => "generated",
        R::Vendored => "vendored",
        R::LockFile => "lock file",
        R::Minified => "minified",
        R::Binary => "binary",
        R::Oversized => "oversized",
        R::Submodule => "submodule",
        R::Symlink => "symbolic link",
        R::NoContentChange => "content unchanged",
        R::Deleted => "deleted",
        R::Ignored => "ignored",
        R::UnsupportedLanguage => "language unknown",
        R::Secret => "holds secrets",
        R::TooComplex => "too complex",
        R::Unreadable => "unreadable",
        R::NotReached => "not reached",
        R::TurnLimit => "turn limit",
        R::Budget => "budget reached",
        R::BrokenAnswer => "answers broke off",
        R::Window => "too large for the window",
    }
}

/// Builds the excerpt at the anchor with context lines, or from the quoted code if the snapshot is gone.
fn build_excerpt(finding: &Finding, file: Option<&[String]>, context_lines: u32) -> CodeExcerpt {
    if let Some(lines) = file {
        let count = lines.len() as u32;
        if finding.line_start >= 1 && finding.line_start <= count {
            let first = finding.line_start.saturating_sub(context_lines).max(1);
            let last = finding
                .line_end
                .saturating_add(context_lines)
                .min(count)
                .min(finding.line_start.saturating_add(MAX_ANCHOR_LINES));
            // The empty string after the last line end is not a line.
            let end = if last == count && lines.last().is_some_and(String::is_empty) { last - 1 } else { last };
            let shown = lines.get(first as usize - 1..end as usize).unwrap_or_default();
            return CodeExcerpt { first, lines: shown.to_vec(), spans: Vec::new(), note: None };
        }
    }
    let clean = text::sanitize_lines(finding.quoted_code.trim_end_matches('\n'), 4);
    let lines = if clean.is_empty() { Vec::new() } else { clean.split('\n').map(str::to_owned).collect() };
    CodeExcerpt { first: finding.line_start.max(1), lines, spans: Vec::new(), note: Some("as quoted; snapshot gone") }
}
