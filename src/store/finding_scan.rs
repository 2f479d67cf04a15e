//! Selects a few findings of a large store without loading the others: the checkpoint's table of findings is read in
//! pieces, and only rows that are wanted, or that changed since, become rows of a view. Ids and texts, most of the file,
//! are read only if a row becomes one of the view.
//!
//! Invariant: the view has the same rows as a complete view, minus those that were not selected. A store without a usable
//! checkpoint is loaded completely.

use std::collections::{BinaryHeap, HashSet};
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::sync::{Arc, OnceLock};

use bytemuck::{Pod, Zeroable};

use super::checkpoint::{OrphanDisposition, SectionMark};
use super::chunked_columns::{ChunkedColumn, TextSpan, fold_hash};
use super::files;
use super::live_journal::LiveJournal;
use super::load::{LoadDepth, merge_order};
use super::tables::{FindingTexts, PackedFinding, StoreTables};
use super::view::StoreView;
use super::{Store, StoreError, checkpoint};
use crate::domain::{FindingStatus, Kind, Priority};

/// Facts of a finding by which it is selected. Runs are positions in the list of runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FindingFacts {
    /// Status after all dispositions.
    pub status: FindingStatus,
    /// Priority in the latest report.
    pub priority: Priority,
    /// Kind in the latest report.
    pub kind: Kind,
    /// Run that first reported it.
    pub first_run: usize,
    /// Run that last reported it.
    pub last_run: usize,
    /// True if its path is among the wanted ones.
    pub in_paths: bool,
}

/// Order of findings, see [`FindingSelector::rank`].
pub type FindingOrder<'a, K> = Box<dyn FnMut(&FindingFacts) -> Option<K> + 'a>;

/// Selection of findings, made once the runs are known.
pub struct FindingSelector<'a, K> {
    /// Paths that [`FindingFacts::in_paths`] is about.
    pub paths: Vec<String>,
    /// Ids of findings that become rows of the view in any case, and are not ranked.
    pub ids: Vec<String>,
    /// Maximum number of findings.
    pub limit: usize,
    /// Returns the importance of a finding, smallest first; `None` for one that is not wanted.
    pub rank: FindingOrder<'a, K>,
}

/// Positions of the tables of findings in a checkpoint. The checksum of the rows was verified.
pub(super) struct CheckpointFindings {
    file: File,
    seed: u64,
    rows: FileTable,
    orphans: FileTable,
    names_at: u64,
    names_mark: SectionMark,
    /// Located on first use; `None` if the section is damaged.
    names: OnceLock<Option<FindingNames>>,
}

/// Positions of the ids and texts of findings, whose checksum was verified.
struct FindingNames {
    slots: FileTable,
    texts: Vec<FileTable>,
    words: FileTable,
    word_slots: FileTable,
}

/// Table of equal entries in a file.
#[derive(Debug, Clone, Copy, Default)]
struct FileTable {
    at: u64,
    len: usize,
}

/// Reads a section of a checkpoint once, in the pieces in which it was written, and keeps only positions.
struct SectionReader<R> {
    from: R,
    at: u64,
    left: u64,
    checksum: u64,
    buffer: Vec<u8>,
}

impl<'a> SectionReader<BufReader<&'a File>> {
    fn open(mut file: &'a File, at: u64, section: SectionMark) -> Option<Self> {
        file.seek(SeekFrom::Start(at)).ok()?;
        let from = BufReader::with_capacity(4096, file);
        Some(Self { from, at, left: section.bytes, checksum: 0, buffer: Vec::new() })
    }
}

impl<R: Read> SectionReader<R> {
    /// Returns true if all of the section was read and its checksum is right.
    fn is_sound(&self, section: SectionMark) -> bool {
        self.left == 0 && self.checksum == section.checksum
    }

    fn read(&mut self, len: usize) -> Option<&[u8]> {
        self.left = self.left.checked_sub(len as u64)?;
        if self.buffer.len() < len {
            self.buffer.resize(len, 0);
        }
        let bytes = self.buffer.get_mut(..len)?;
        self.from.read_exact(bytes).ok()?;
        self.checksum = fold_hash(self.checksum, bytes);
        self.at += len as u64;
        Some(bytes)
    }

    fn number(&mut self) -> Option<usize> {
        let bytes: [u8; 8] = self.read(8)?.try_into().ok()?;
        usize::try_from(u64::from_ne_bytes(bytes)).ok()
    }

    /// Skips a column with rows of `bytes`.
    fn column(&mut self, bytes: usize) -> Option<FileTable> {
        let len = self.number()?;
        let table = FileTable { at: self.at, len };
        let mut left = len;
        while left > 0 {
            let rows = left.min(ChunkedColumn::<u8>::ROWS_PER_CHUNK);
            self.read(rows * bytes)?;
            left -= rows;
        }
        Some(table)
    }
}

impl FindingNames {
    /// Locates the tables in the section at `at`; `None` if its checksum does not match.
    fn locate(file: &File, at: u64, section: SectionMark) -> Option<Self> {
        let mut reader = SectionReader::open(file, at, section)?;
        reader.number()?;
        let slots = reader.column(size_of::<u32>())?;
        let mut texts = Vec::new();
        for _ in 0..reader.number()? {
            let len = reader.number()?;
            texts.push(FileTable { at: reader.at, len });
            reader.read(len)?;
        }
        let words = reader.column(size_of::<TextSpan>())?;
        reader.number()?;
        let word_slots = reader.column(size_of::<u32>())?;
        // The order of the complete list is not needed.
        reader.column(size_of::<u32>())?;
        reader.is_sound(section).then_some(Self { slots, texts, words, word_slots })
    }
}

impl CheckpointFindings {
    /// Locates the tables in the sections at `at`; `None` if the checksum of the rows does not match.
    pub(super) fn locate(file: File, at: u64, facts: SectionMark, names_mark: SectionMark, seed: u64) -> Option<Self> {
        let mut reader = SectionReader::open(&file, at, facts)?;
        let rows = reader.column(size_of::<PackedFinding>())?;
        let orphans = reader.column(size_of::<OrphanDisposition>())?;
        let is_sound = reader.is_sound(facts);
        drop(reader);
        let names_at = at.checked_add(facts.bytes)?;
        is_sound.then_some(Self { file, seed, rows, orphans, names_at, names_mark, names: OnceLock::new() })
    }

    /// Returns the ids and texts; `None` if they are damaged.
    fn names(&self) -> Option<&FindingNames> {
        self.names.get_or_init(|| FindingNames::locate(&self.file, self.names_at, self.names_mark)).as_ref()
    }

    /// Returns true if ids or texts were needed and are damaged.
    fn is_damaged(&self) -> bool {
        self.names.get().is_some_and(Option::is_none)
    }

    fn entry<T: Pod + Zeroable>(&self, table: FileTable, index: usize) -> T {
        let mut value = T::zeroed();
        let at = table.at + (index * size_of::<T>()) as u64;
        if index >= table.len || files::read_at(&self.file, at, bytemuck::bytes_of_mut(&mut value)).is_err() {
            return T::zeroed();
        }
        value
    }

    fn text(&self, span: TextSpan) -> String {
        let (chunk, begin, len) = span.position();
        let mut bytes = vec![0; len];
        let inside = self.names().and_then(|names| names.texts.get(chunk)).filter(|text| begin + len <= text.len);
        match inside.map(|text| files::read_at(&self.file, text.at + begin as u64, &mut bytes)) {
            Some(Ok(())) => String::from_utf8(bytes).unwrap_or_default(),
            _ => String::new(),
        }
    }

    /// Finds an entry by its text in a table of hashes.
    fn find(&self, slots: FileTable, text: &str, text_of: impl Fn(usize) -> String) -> Option<usize> {
        let mask = slots.len.checked_sub(1)?;
        let mut slot = fold_hash(self.seed, text.as_bytes()) as usize & mask;
        for _ in 0..=mask {
            let index = (self.entry::<u32>(slots, slot) as usize).checked_sub(1)?;
            if text_of(index) == text {
                return Some(index);
            }
            slot = (slot + 1) & mask;
        }
        None
    }

    fn find_row(&self, id: &str) -> Option<usize> {
        self.find(self.names()?.slots, id, |row| self.text(self.entry::<PackedFinding>(self.rows, row).id))
    }

    fn find_word(&self, text: &str) -> Option<u32> {
        let names = self.names()?;
        let found = self.find(names.word_slots, text, |number| self.text(self.entry::<TextSpan>(names.words, number)));
        found.and_then(|number| u32::try_from(number).ok())
    }

    /// Adds a row to the tables of a view.
    fn copy_row(&self, row: usize, columns: &mut StoreTables) {
        let Some(names) = self.names() else { return };
        let packed: PackedFinding = self.entry(self.rows, row);
        let word = |number: u32| self.text(self.entry::<TextSpan>(names.words, number as usize));
        let (path, symbol) = (word(packed.path), word(packed.symbol));
        let (id, title) = (self.text(packed.id), self.text(packed.title));
        columns.insert_packed_finding(packed, FindingTexts { id: &id, path: &path, title: &title, symbol: &symbol });
    }

    /// Returns the dispositions without a known finding.
    pub(super) fn orphans(&self) -> impl Iterator<Item = OrphanDisposition> + '_ {
        (0..self.orphans.len).map(|index| self.entry::<OrphanDisposition>(self.orphans, index))
    }

    /// Calls `take` with every row.
    fn for_each_row(&self, mut take: impl FnMut(usize, &PackedFinding)) {
        const ROWS: usize = 1024;
        let mut bytes = vec![0; ROWS * size_of::<PackedFinding>()];
        for first in (0..self.rows.len).step_by(ROWS) {
            let count = ROWS.min(self.rows.len - first);
            let Some(piece) = bytes.get_mut(..count * size_of::<PackedFinding>()) else { return };
            let at = self.rows.at + (first * size_of::<PackedFinding>()) as u64;
            if files::read_at(&self.file, at, piece).is_err() {
                return;
            }
            for (offset, bytes) in piece.chunks_exact(size_of::<PackedFinding>()).enumerate() {
                if let Ok(row) = bytemuck::try_pod_read_unaligned::<PackedFinding>(bytes) {
                    take(first + offset, &row);
                }
            }
        }
    }
}

/// Findings of a checkpoint that are loaded when a later line needs them.
#[derive(Clone)]
pub(super) struct LazyFindings {
    source: Arc<CheckpointFindings>,
    loaded: HashSet<usize>,
}

impl std::fmt::Debug for LazyFindings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LazyFindings").field("loaded", &self.loaded.len()).finish_non_exhaustive()
    }
}

impl LazyFindings {
    pub(super) fn new(source: CheckpointFindings) -> Self {
        Self { source: Arc::new(source), loaded: HashSet::new() }
    }

    /// Loads the row of a finding before a line changes it.
    pub(super) fn load(&mut self, id: &str, columns: &mut StoreTables) {
        if columns.find_finding(id).is_none()
            && let Some(row) = self.source.find_row(id)
            && self.loaded.insert(row)
        {
            self.source.copy_row(row, columns);
        }
    }
}

impl Store {
    /// Loads all runs, and the findings that `make` selects once it has seen the runs. Findings that changed since the
    /// checkpoint, and rated ones, are always loaded. The view is not complete.
    ///
    /// # Errors
    /// Returns an error when the store cannot be read.
    pub fn select_findings<'a, K: Ord>(
        &self,
        make: impl FnOnce(&StoreView) -> Result<FindingSelector<'a, K>, StoreError>,
    ) -> Result<Arc<StoreView>, StoreError> {
        let Some(mut settled) = checkpoint::load_lazily(self) else { return self.select_from_view(make) };
        if settled.advance_lazily(self)?.is_err() {
            return self.select_from_view(make);
        }
        let mut live = Vec::new();
        for row in settled.unsettled.clone() {
            let mut journal = LiveJournal::new(row as usize);
            if journal.advance(&self.journal_path(settled.columns.run_id(row as usize))).is_ok() {
                for finding in &journal.findings {
                    settled.load_finding(&finding.finding_id);
                }
                live.push(Arc::new(journal));
            }
        }
        for id in self.ratings()?.keys() {
            settled.load_finding(id);
        }
        if settled.lazy.as_ref().is_none_or(|lazy| lazy.source.is_damaged()) {
            return self.select_from_view(make);
        }
        let runs = settled.clone().build_view(self, &[], LoadDepth::Runs)?;
        let mut selector = make(&runs)?;
        for id in &selector.ids {
            settled.load_finding(id);
        }
        let Some(lazy) = settled.lazy.take() else { return self.view() };
        let needs_names = selector.limit > 0 || !selector.paths.is_empty() || !selector.ids.is_empty();
        if needs_names && lazy.source.names().is_none() {
            // No finding has been ranked yet, so the caller sees each once, in the complete view.
            return self.view();
        }
        for row in select_rows(&lazy, &runs, &mut selector) {
            lazy.source.copy_row(row, &mut settled.columns);
        }
        let rows = (0..settled.columns.findings.len() as u32).collect();
        settled.finding_order = merge_order(&ChunkedColumn::default(), rows, &settled.columns);
        let is_old = checkpoint::is_outdated(&settled);
        let mut view = settled.build_view(self, &live, LoadDepth::All)?;
        if is_old && !super::lock::is_held_by_thread(&self.root) {
            // Loading the view once writes a current checkpoint for the next call.
            let _ = self.view();
        }
        view.complete = false;
        view.origin = None;
        Ok(Arc::new(view))
    }

    /// Returns the complete view for a store without a usable checkpoint; the next call has one, if it is worth it.
    fn select_from_view<'a, K: Ord>(
        &self,
        make: impl FnOnce(&StoreView) -> Result<FindingSelector<'a, K>, StoreError>,
    ) -> Result<Arc<StoreView>, StoreError> {
        let view = self.view()?;
        make(&view)?;
        Ok(view)
    }
}

/// Returns the most important rows that no later line has changed.
fn select_rows<K: Ord>(lazy: &LazyFindings, runs: &StoreView, selector: &mut FindingSelector<'_, K>) -> Vec<usize> {
    let words: HashSet<u32> = selector.paths.iter().filter_map(|path| lazy.source.find_word(path)).collect();
    let mut kept: BinaryHeap<(K, usize)> = BinaryHeap::new();
    lazy.source.for_each_row(|row, packed| {
        if lazy.loaded.contains(&row) {
            return;
        }
        let facts = packed.facts(runs.run_count(), words.contains(&packed.path));
        if let Some(rank) = (selector.rank)(&facts) {
            kept.push((rank, row));
            if kept.len() > selector.limit {
                kept.pop();
            }
        }
    });
    kept.into_iter().map(|(_, row)| row).collect()
}
