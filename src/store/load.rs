//! Builds a [`StoreView`] from files: settled runs, which the checkpoint can store, and live runs.
//!
//! A run is settled when its record has a terminal status and no process can write to its journal. Its findings are
//! then read once, from its output or else from its journal. The journals of other runs are read each time and merged
//! over a copy of the settled tables, so that data which a later output corrects does not remain.
//!
//! No lock is taken: only complete lines are read, and [`FileMark`] detects a replaced file.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use bytemuck::{Pod, Zeroable};

use super::chunked_columns::{ChunkedColumn, fold_hash};
use super::finding_scan::LazyFindings;
use super::latest_statuses::{WantedFindings, read_latest_statuses};
use super::live_journal::LiveJournal;
use super::parse;
use super::tables::{FindingIdBytes, FindingUpsert, PackedRun, PackedStatus, RunUpsert, StoreTables, pad_bytes};
use super::view::{StoreView, ViewOrigin};
use super::{Store, StoreError, checkpoint, files, lines};
use crate::domain::RunStatus;
use crate::domain::text::format_count;

/// Read position in a file, with data that identifies the file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct FileMark {
    pub(super) len: u64,
    identity: [u64; 2],
    hash: u64,
}

impl FileMark {
    const WINDOW_BYTES: u64 = 512;

    pub(super) fn from_file(file: &File, len: u64) -> std::io::Result<Self> {
        let take = len.min(Self::WINDOW_BYTES);
        let mut bytes = vec![0; take as usize * 2];
        let (first, last) = bytes.split_at_mut(take as usize);
        files::read_at(file, 0, first)?;
        files::read_at(file, len - take, last)?;
        Ok(Self { len, identity: files::file_identity(&file.metadata()?), hash: fold_hash(0, &bytes) })
    }

    /// Returns true when the file still begins with the data that was read.
    pub(super) fn is_prefix_of(&self, file: Option<&File>) -> bool {
        self.len == 0
            || file.is_some_and(|file| {
                files::length(file).is_ok_and(|len| len >= self.len)
                    && Self::from_file(file, self.len).is_ok_and(|now| now == *self)
            })
    }

    /// Returns true when nothing was appended, judged by the file's length and identity.
    fn is_current(&self, path: &Path) -> bool {
        match std::fs::metadata(path) {
            Ok(metadata) => {
                metadata.len() == self.len && (self.len == 0 || files::file_identity(&metadata) == self.identity)
            }
            Err(_) => self.len == 0,
        }
    }
}

/// Number of unreadable lines per file; stored in the checkpoint so that every view can report it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct UnreadableCounts {
    pub(super) runs: u32,
    pub(super) triage: u32,
    pub(super) findings: u32,
    pub(super) files: u32,
}

/// Part of the store to load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LoadDepth {
    Runs,
    All,
}

/// Data that changes only by further lines.
#[derive(Debug, Clone, Default)]
pub(super) struct SettledTables {
    pub(super) columns: StoreTables,
    /// Rows of runs whose findings are not yet final in the table.
    pub(super) unsettled: Vec<u32>,
    pub(super) finding_order: ChunkedColumn<u32>,
    /// Dispositions of findings that belong to no settled run yet.
    pub(super) orphans: BTreeMap<FindingIdBytes, PackedStatus>,
    pub(super) runs_mark: FileMark,
    pub(super) triage_mark: FileMark,
    pub(super) unreadable: UnreadableCounts,
    /// Bytes and files read since the checkpoint, which the next checkpoint would save.
    pub(super) fresh_bytes: u64,
    pub(super) fresh_files: u32,
    /// Findings that are not in the table yet; `None` when all are.
    pub(super) lazy: Option<LazyFindings>,
}

/// The file was replaced since it was last read.
pub(super) struct FileReplaced;

impl SettledTables {
    /// Reads the lines appended since the last call; with [`LoadDepth::Runs`], the runs only.
    fn advance(&mut self, store: &Store, depth: LoadDepth) -> Result<Result<(), FileReplaced>, StoreError> {
        if !self.advance_runs(store)? {
            return Ok(Err(FileReplaced));
        }
        if depth == LoadDepth::Runs {
            return Ok(Ok(()));
        }
        let touched = self.settle_runs(store)?;
        self.finding_order = merge_order(&self.finding_order, touched, &self.columns);
        if !self.advance_triage(store)? {
            return Ok(Err(FileReplaced));
        }
        Ok(Ok(()))
    }

    /// Reads the lines appended since the checkpoint, and loads the findings that they change.
    pub(super) fn advance_lazily(&mut self, store: &Store) -> Result<Result<(), FileReplaced>, StoreError> {
        if !self.advance_runs(store)? {
            return Ok(Err(FileReplaced));
        }
        self.settle_runs(store)?;
        Ok(if self.advance_triage(store)? { Ok(()) } else { Err(FileReplaced) })
    }

    /// Loads a finding of the checkpoint before a line changes it.
    pub(super) fn load_finding(&mut self, id: &str) {
        if let Some(lazy) = &mut self.lazy {
            lazy.load(id, &mut self.columns);
        }
    }

    fn advance_runs(&mut self, store: &Store) -> Result<bool, StoreError> {
        let path = store.runs_path();
        let file = files::open_read(&path)?;
        if !self.runs_mark.is_prefix_of(file.as_ref()) {
            return Ok(false);
        }
        let Some(file) = file else { return Ok(true) };
        let fail = |error| StoreError::io("read", &path)(error);
        let end = lines::read_forwards(&file, self.runs_mark.len, |at, line| match parse::parse_run(line) {
            Some(run) => self.insert_run(&run, (at, line.len())),
            None => self.unreadable.runs += 1,
        })
        .map_err(fail)?;
        if end != self.runs_mark.len {
            self.fresh_bytes += end - self.runs_mark.len;
            self.runs_mark = FileMark::from_file(&file, end).map_err(fail)?;
        }
        Ok(true)
    }

    fn insert_run(&mut self, run: &parse::RunLine<'_>, line: (u64, usize)) {
        let known = self.columns.runs.len();
        let RunUpsert { row, is_raised } = self.columns.upsert_run(run, line);
        if row == known || is_raised {
            self.unsettled.push(row as u32);
        }
    }

    fn advance_triage(&mut self, store: &Store) -> Result<bool, StoreError> {
        let path = store.triage_path();
        let file = files::open_read(&path)?;
        if !self.triage_mark.is_prefix_of(file.as_ref()) {
            return Ok(false);
        }
        let Some(file) = file else { return Ok(true) };
        let fail = |error| StoreError::io("read", &path)(error);
        let end = lines::read_forwards(&file, self.triage_mark.len, |_, line| match parse::parse_triage(line) {
            Some(line) => self.apply_status(&line),
            None => self.unreadable.triage += 1,
        })
        .map_err(fail)?;
        if end != self.triage_mark.len {
            self.fresh_bytes += end - self.triage_mark.len;
            self.triage_mark = FileMark::from_file(&file, end).map_err(fail)?;
        }
        Ok(true)
    }

    fn apply_status(&mut self, line: &parse::TriageStatusLine<'_>) {
        self.load_finding(&line.finding_id);
        let status = line.to_packed();
        if !self.columns.set_status(&line.finding_id, status) {
            self.orphans.insert(pad_bytes(&line.finding_id), status);
        }
    }

    /// Adds the findings of runs that have ended. Returns the rows of new and changed findings.
    fn settle_runs(&mut self, store: &Store) -> Result<Vec<u32>, StoreError> {
        let mut touched = Vec::new();
        let mut unsettled = std::mem::take(&mut self.unsettled);
        unsettled.retain(|row| {
            let mut run = self.columns.runs.get(*row as usize);
            if !RunStatus::ALL.get(usize::from(run.status)).is_some_and(|status| status.is_terminal()) {
                return true;
            }
            // A temporary failure, such as missing permission or a disk error, is retried at the next load.
            let output = files::read(&store.output_path(self.columns.run_id(*row as usize)));
            let Ok(output) = output else { return true };
            // Lines that cannot be read count once.
            let is_first = run.settled == PackedRun::UNSETTLED;
            let mut reported = Vec::new();
            if let Some(bytes) = &output
                && let Some(lines) = parse::parse_output_lines(bytes)
            {
                if is_first {
                    self.unreadable.findings += lines.unreadable as u32;
                }
                for finding in &lines.findings {
                    reported.push(self.insert_finding(*row as usize, finding, &mut touched));
                }
                for moved in &lines.moved {
                    self.load_finding(&moved.finding_id);
                    touched.extend(self.columns.move_finding(*row as usize, moved).map(|row| row as u32));
                }
                self.fresh_bytes += bytes.len() as u64;
            } else {
                let journal = load_ended_journal(store, self.columns.run_id(*row as usize), *row as usize);
                let Ok(Some(live)) = journal else { return true };
                if is_first {
                    self.unreadable.findings += live.unreadable;
                }
                for finding in &live.findings {
                    reported.push(self.insert_finding(*row as usize, finding, &mut touched));
                }
                self.fresh_bytes += live.offset;
            }
            self.fresh_files += 1;
            run.settled = PackedRun::SETTLED;
            self.columns.runs.set(*row as usize, run);
            self.columns.set_reports(*row as usize, reported);
            false
        });
        self.unsettled = unsettled;
        Ok(touched)
    }

    /// Adds a finding that a run reported. Returns its row.
    fn insert_finding(&mut self, run: usize, finding: &parse::FindingLine<'_>, touched: &mut Vec<u32>) -> u32 {
        self.load_finding(&finding.finding_id);
        let orphan = if self.orphans.is_empty() { None } else { self.orphans.remove(&pad_bytes(&finding.finding_id)) };
        let upsert = self.columns.upsert_finding(run, finding, orphan.unwrap_or(PackedStatus::OPEN));
        let row = upsert.row() as u32;
        if !matches!(upsert, FindingUpsert::Kept(_)) {
            touched.push(row);
        }
        row
    }

    /// Builds the view: the settled tables merged with the journals of live runs, and with ratings in place of reported
    /// priorities and kinds.
    pub(super) fn build_view(
        self,
        store: &Store,
        known: &[Arc<LiveJournal>],
        depth: LoadDepth,
    ) -> Result<StoreView, StoreError> {
        let mut columns = self.columns.clone();
        let mut order = self.finding_order.clone();
        let (mut live, mut touched, mut bad) = (Vec::new(), Vec::new(), self.unreadable);
        let (mut ratings, mut ratings_bytes) = (HashMap::new(), 0);
        if depth == LoadDepth::All {
            for row in self.unsettled.iter().map(|row| *row as usize) {
                let path = store.journal_path(columns.run_id(row));
                let mut journal = known.iter().find(|live| live.run == row).cloned();
                if journal.as_ref().is_none_or(|journal| journal.is_behind(&path)) {
                    let mut fresh = journal.take().map_or_else(|| LiveJournal::new(row), Arc::unwrap_or_clone);
                    if fresh.advance(&path).is_err() {
                        bad.files += 1;
                    }
                    journal = Some(Arc::new(fresh));
                }
                let Some(journal) = journal else { continue };
                bad.findings += journal.unreadable;
                overlay_live_journal(&mut columns, &journal, &self.orphans, &mut touched);
                live.push(journal);
            }
            ratings_bytes = store.ratings_bytes();
            ratings = store.ratings()?;
            let rated = ratings.iter().filter_map(|(id, rating)| columns.rate_finding(id, *rating));
            touched.extend(rated.map(|row| row as u32));
            order = merge_order(&order, touched, &columns);
        }
        let run_order = (0..columns.runs.len() as u32).rev().collect();
        let mut view = StoreView::new(columns, run_order, order);
        view.notices = build_notices(store, bad);
        view.complete = depth == LoadDepth::All;
        view.ratings = ratings;
        view.origin = (depth == LoadDepth::All).then_some(ViewOrigin { settled: self, live, ratings_bytes });
        Ok(view)
    }
}

/// Reads the journal of a run that ended without a readable output: it is lost, failed or cancelled, or the output is damaged.
/// `None` while the run's worker may still write.
fn load_ended_journal(store: &Store, id: &str, row: usize) -> Result<Option<LiveJournal>, StoreError> {
    // The lock must be tested before the journal is read, because a worker that does not know of the end yet may still append
    // to the journal.
    if super::lock::is_held(&store.lock_path(id))? {
        return Ok(None);
    }
    let mut live = LiveJournal::new(row);
    live.advance(&store.journal_path(id))?;
    Ok(Some(live))
}

fn overlay_live_journal(
    columns: &mut StoreTables,
    live: &LiveJournal,
    orphans: &BTreeMap<FindingIdBytes, PackedStatus>,
    touched: &mut Vec<u32>,
) {
    let (mut own, mut reported) = (BTreeMap::new(), Vec::new());
    let of_a_fix = columns.run_row(live.run).is_fix_review();
    for finding in live.findings.iter().filter(|_| !of_a_fix) {
        let id = pad_bytes(&finding.finding_id);
        own.insert(id, finding.priority);
        let status = orphans.get(&id).copied().unwrap_or(PackedStatus::OPEN);
        let upsert = columns.upsert_finding(live.run, finding, status);
        reported.push(upsert.row() as u32);
        if !matches!(upsert, FindingUpsert::Kept(_)) {
            touched.push(upsert.row() as u32);
        }
    }
    columns.set_reports(live.run, reported);
    let mut run = columns.runs.get(live.run);
    let mut counts = [0; 4];
    for priority in own.values() {
        counts[priority.index()] += 1;
    }
    if counts.iter().sum::<u32>() >= run.counts.iter().sum() {
        run.counts = counts;
    }
    run.files_total = run.files_total.max(live.files_total);
    // The total in the record was set before the reviewer started.
    run.hunks_total = live.hunks_total().unwrap_or(run.hunks_total);
    run.files_covered = run.files_covered.max(live.files_covered);
    run.hunks_covered = run.hunks_covered.max(live.hunks_covered);
    run.updated_ms = run.updated_ms.max(live.last_ms);
    columns.runs.set(live.run, run);
}

/// Inserts changed rows in order. The other rows keep their order and are not compared with each other.
pub(super) fn merge_order(
    order: &ChunkedColumn<u32>,
    mut touched: Vec<u32>,
    columns: &StoreTables,
) -> ChunkedColumn<u32> {
    if touched.is_empty() {
        return order.clone();
    }
    touched.sort_unstable();
    touched.dedup();
    if touched.len() > order.len() / 8 {
        let mut all: Vec<u32> = (0..columns.findings.len() as u32).collect();
        all.sort_unstable_by(|a, b| columns.compare_findings(*a as usize, *b as usize));
        return all.into_iter().collect();
    }
    let mut moved = vec![false; columns.findings.len()];
    for row in &touched {
        if let Some(moved) = moved.get_mut(*row as usize) {
            *moved = true;
        }
    }
    let rest: Vec<u32> = order.iter().filter(|row| !moved.get(*row as usize).copied().unwrap_or(false)).collect();
    touched.sort_unstable_by(|a, b| columns.compare_findings(*a as usize, *b as usize));
    let mut merged = Vec::with_capacity(rest.len() + touched.len());
    let mut from = 0;
    for row in touched {
        let tail = rest.get(from..).unwrap_or_default();
        let skip = tail.partition_point(|other| columns.compare_findings(*other as usize, row as usize).is_lt());
        merged.extend_from_slice(&tail[..skip]);
        merged.push(row);
        from += skip;
    }
    merged.extend_from_slice(rest.get(from..).unwrap_or_default());
    merged.into_iter().collect()
}

fn build_notices(store: &Store, bad: UnreadableCounts) -> Vec<String> {
    let mut notices = Vec::new();
    if let Some(newer) = store.newer_schema_error() {
        notices.push(format!("{newer}: it can be read, not written; {}", newer.hint()));
    }
    notices.extend(store.loss_notices());
    for (n, what) in
        [(bad.runs, "of runs.ndjson"), (bad.triage, "of triage.ndjson"), (bad.findings, "with findings or events")]
    {
        if n > 0 {
            notices.push(format!(
                "{} {what} could not be read and {} set aside; `revdeck store verify` shows which",
                format_count(n as usize, "line"),
                if n == 1 { "was" } else { "were" }
            ));
        }
    }
    if bad.files > 0 {
        notices.push(format!(
            "{} could not be opened; `revdeck store verify` shows why",
            format_count(bad.files as usize, "journal")
        ));
    }
    notices
}

/// Number of bytes at the end of `triage.ndjson` that [`Store::recent_view`] searches, about 2,000 lines. A finding
/// with an older disposition that a recent run reported again appears as open until the complete view is loaded.
const MAX_RECENT_TRIAGE_BYTES: u64 = 512 << 10;

/// Number of bytes behind the checkpoint, about a millisecond of reading, after which a new checkpoint is due.
const MAX_TAIL_BYTES: u64 = 1 << 20;

/// Amount of data behind the checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TailLength {
    Short,
    Long,
}

impl Store {
    pub(super) fn load_settled(&self, depth: LoadDepth) -> Result<SettledTables, StoreError> {
        if let Some(mut settled) = checkpoint::load(self, depth)
            && settled.advance(self, depth)?.is_ok()
        {
            return Ok(settled);
        }
        // Another process can replace a file during the read, for example in a repair, but not repeatedly.
        for _ in 0..3 {
            let mut settled = SettledTables::default();
            if settled.advance(self, depth)?.is_ok() {
                return Ok(settled);
            }
        }
        Ok(SettledTables::default())
    }

    /// Loads all runs and findings with their current status.
    ///
    /// # Errors
    /// Returns an error when the store cannot be read.
    pub fn view(&self) -> Result<Arc<StoreView>, StoreError> {
        let mut settled = self.load_settled(LoadDepth::All)?;
        checkpoint::save_if_worth(self, &mut settled);
        Ok(Arc::new(settled.build_view(self, &[], LoadDepth::All)?))
    }

    /// Loads the runs without their findings, as decisions need them; much cheaper than [`Store::view`].
    ///
    /// # Errors
    /// Returns an error when the store cannot be read.
    pub fn runs_view(&self) -> Result<Arc<StoreView>, StoreError> {
        let (view, length) = self.load_runs()?;
        if length == TailLength::Long && !super::lock::is_held_by_thread(&self.root) {
            // Loading the view once writes a current checkpoint for the next call.
            let _ = self.view();
        }
        Ok(view)
    }

    pub(super) fn load_runs(&self) -> Result<(Arc<StoreView>, TailLength), StoreError> {
        let settled = self.load_settled(LoadDepth::Runs)?;
        let length = if settled.fresh_bytes > MAX_TAIL_BYTES { TailLength::Long } else { TailLength::Short };
        Ok((Arc::new(settled.build_view(self, &[], LoadDepth::Runs)?), length))
    }

    /// Does the same as [`Store::runs_view`] without the checkpoint; for comparing the two.
    ///
    /// # Errors
    /// Returns an error when the store cannot be read.
    #[doc(hidden)]
    pub fn lines_only_view(&self) -> Result<Arc<StoreView>, StoreError> {
        let mut settled = SettledTables::default();
        let _ = settled.advance_runs(self)?;
        Ok(Arc::new(settled.build_view(self, &[], LoadDepth::Runs)?))
    }

    /// Returns the next view after `old`: the same view when nothing changed, otherwise a new view that shares
    /// unchanged data.
    ///
    /// # Errors
    /// Returns an error when the store cannot be read.
    pub fn refresh_view(&self, old: &Arc<StoreView>) -> Result<Arc<StoreView>, StoreError> {
        let Some(origin) = &old.origin else { return self.view() };
        let current = origin.settled.runs_mark.is_current(&self.runs_path())
            && origin.settled.triage_mark.is_current(&self.triage_path())
            && origin.ratings_bytes == self.ratings_bytes()
            && origin
                .live
                .iter()
                .all(|live| !live.is_behind(&self.journal_path(origin.settled.columns.run_id(live.run))));
        if current {
            return Ok(Arc::clone(old));
        }
        let mut settled = origin.settled.clone();
        if settled.advance(self, LoadDepth::All)?.is_err() {
            return self.view();
        }
        checkpoint::save_if_worth(self, &mut settled);
        Ok(Arc::new(settled.build_view(self, &origin.live, LoadDepth::All)?))
    }

    /// Loads the runs and findings of the first frame: all of a store with a small checkpoint, else [`Store::recent_view`]. Either
    /// counts as incomplete.
    ///
    /// # Errors
    /// Returns an error when the store cannot be read.
    pub fn first_view(&self, runs: usize) -> Result<Arc<StoreView>, StoreError> {
        if !checkpoint::is_small(self) {
            return self.recent_view(runs);
        }
        let mut view = self.load_settled(LoadDepth::All)?.build_view(self, &[], LoadDepth::All)?;
        view.complete = false;
        Ok(Arc::new(view))
    }

    /// Loads only the newest runs and their findings, from the end of the files; for an immediate first display.
    ///
    /// # Errors
    /// Returns an error when the store cannot be read.
    pub fn recent_view(&self, runs: usize) -> Result<Arc<StoreView>, StoreError> {
        let mut settled = SettledTables::default();
        let path = self.runs_path();
        let mut newest: Vec<(i64, Vec<u8>)> = Vec::new();
        if let Some(file) = files::open_read(&path)? {
            let mut seen = HashSet::new();
            lines::read_backwards(&file, |line| {
                // Most lines are earlier lines of a run already seen, in the form that this version writes; they need
                // no parsing.
                if parse::peek_run_id(line).is_some_and(|id| seen.contains(id)) {
                    return ControlFlow::Continue(());
                }
                let Some(run) = parse::parse_run(line) else { return ControlFlow::Continue(()) };
                if seen.insert(run.run_id.clone().into_owned()) {
                    newest.push((run.created_at.as_millisecond(), line.to_vec()));
                }
                // Lines of old runs that changed recently also stand here, so a few more runs than requested are read.
                if seen.len() >= runs.saturating_add(runs / 4) {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            })
            .map_err(StoreError::io("read", &path))?;
        }
        newest.reverse();
        newest.sort_by_key(|(created, _)| *created);
        for (_, line) in newest.iter().skip(newest.len().saturating_sub(runs)) {
            if let Some(run) = parse::parse_run(line) {
                settled.insert_run(&run, (0, 0));
            }
        }
        let touched = settled.settle_runs(self)?;
        settled.finding_order = merge_order(&settled.finding_order, touched, &settled.columns);
        let mut live = Vec::new();
        for row in &settled.unsettled {
            let mut journal = LiveJournal::new(*row as usize);
            // The first display omits a journal that cannot be read.
            if journal.advance(&self.journal_path(settled.columns.run_id(*row as usize))).is_ok() {
                live.push(Arc::new(journal));
            }
        }
        settled.apply_recent_statuses(self, &live)?;
        let mut view = settled.build_view(self, &live, LoadDepth::All)?;
        view.complete = false;
        view.origin = None;
        Ok(Arc::new(view))
    }
}

impl SettledTables {
    /// Applies the statuses of the loaded findings, without parsing the lines of other findings.
    fn apply_recent_statuses(&mut self, store: &Store, live: &[Arc<LiveJournal>]) -> Result<(), StoreError> {
        let path = store.triage_path();
        let Some(file) = files::open_read(&path)? else { return Ok(()) };
        let moving: HashSet<&str> =
            live.iter().flat_map(|live| &live.findings).map(|finding| finding.finding_id.as_ref()).collect();
        let settled = |id: &str| self.columns.find_finding(id).is_some();
        let contains = |id: &str| moving.contains(id) || settled(id);
        let count = self.columns.findings.len() + moving.iter().filter(|id| !settled(id)).count();
        let found =
            read_latest_statuses(&file, &WantedFindings { contains: &contains, count }, MAX_RECENT_TRIAGE_BYTES);
        for (id, status) in found.map_err(StoreError::io("read", &path))? {
            let finding_id = String::from_utf8_lossy(&id);
            self.apply_status(&parse::TriageStatusLine { finding_id, status, decision: None });
        }
        Ok(())
    }
}
