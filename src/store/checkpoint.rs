//! Reads and writes `view.cache`: a copy of the settled tables, so that opening a large store needs a single read and a
//! short tail.
//!
//! The file is derived data: it can be deleted at any time and is then rebuilt. It is used only when its version, its
//! checksum and the beginnings of its source files match, and it is written without a lock.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};

use bytemuck::{Pod, Zeroable};

use super::chunked_columns::{ChunkedColumn, HashIndex, TableReader, TableWriter, TextPool, fold_hash};
use super::files::{self, ExistingPolicy, SyncPolicy};
use super::finding_scan::{CheckpointFindings, LazyFindings};
use super::load::{FileMark, LoadDepth, SettledTables, UnreadableCounts};
use super::tables::{FindingIdBytes, PackedDecision, PackedFinding, PackedRun, PackedStatus, StoreTables};
use super::{Store, StoreError};
use crate::domain::{Actor, DismissalReason, FindingStatus, Kind, RunStatus, Severity};
use crate::parallel;

/// Length and checksum of a part of the file that is read and verified by itself.
#[derive(Debug, Clone, Copy, Default, Pod, Zeroable)]
#[repr(C)]
pub(super) struct SectionMark {
    pub(super) bytes: u64,
    pub(super) checksum: u64,
}

#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct CheckpointHeader {
    magic: u64,
    /// Hash of everything on which the meaning of the bytes depends.
    format: u64,
    seed: u64,
    runs_mark: FileMark,
    triage_mark: FileMark,
    bad: UnreadableCounts,
    /// Tables of runs.
    runs: SectionMark,
    /// Rows of findings, and dispositions without a finding: what counts and selections need.
    facts: SectionMark,
    /// Ids, texts and order of findings.
    names: SectionMark,
    /// Findings by run, and the last disposition of each finding: what figures need, and no list.
    history: SectionMark,
    /// Checksum of the header fields before this field.
    checksum: u64,
}

const MAGIC: u64 = u64::from_ne_bytes(*b"rvdkview");

impl CheckpointHeader {
    fn seal(&mut self) {
        self.checksum = 0;
        self.checksum = fold_hash(MAGIC, bytemuck::bytes_of(self));
    }

    fn is_valid(&self) -> bool {
        let mut copy = *self;
        copy.seal();
        self.magic == MAGIC && self.format == format_hash() && copy.checksum == self.checksum
    }

    /// Returns tables without rows, which continue where this checkpoint ends.
    fn empty_tables(&self) -> SettledTables {
        SettledTables {
            columns: StoreTables::new(self.seed),
            runs_mark: self.runs_mark,
            triage_mark: self.triage_mark,
            unreadable: self.bad,
            ..SettledTables::default()
        }
    }

    /// Returns the length of the file; `None` if the numbers are not those of a file.
    fn bytes(&self) -> Option<u64> {
        self.names_at()?.checked_add(self.names.bytes)?.checked_add(self.history.bytes)
    }

    /// Returns the offset of the section `names`.
    fn names_at(&self) -> Option<u64> {
        (size_of::<Self>() as u64).checked_add(self.runs.bytes)?.checked_add(self.facts.bytes)
    }
}

/// Hashes the version, the row layout and all enum names. Another version of revdeck may know other values or skip
/// other lines, so it uses its own checkpoint.
fn format_hash() -> u64 {
    let mut words = vec![env!("CARGO_PKG_VERSION").to_owned(), "layout 17".to_owned()];
    words.push(format!("{} {}", size_of::<PackedRun>(), size_of::<PackedFinding>()));
    words.extend(RunStatus::ALL.iter().map(|word| word.to_string()));
    words.extend(FindingStatus::ALL.iter().map(|word| word.to_string()));
    words.extend(Severity::ALL.iter().map(|word| word.to_string()));
    words.extend(Kind::ALL.iter().map(|word| word.to_string()));
    words.extend(Actor::WORDS.iter().chain(DismissalReason::WORDS).map(|word| (*word).to_owned()));
    fold_hash(MAGIC, words.join("\n").as_bytes())
}

/// A disposition without a known finding.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct OrphanDisposition {
    decision: PackedDecision,
    id: FindingIdBytes,
    status: u8,
    unused: [u8; 5],
}

impl OrphanDisposition {
    fn from_entry((id, status): (&FindingIdBytes, &PackedStatus)) -> Self {
        Self { decision: status.decision, id: *id, status: status.status, unused: [0; 5] }
    }

    fn to_entry(self) -> (FindingIdBytes, PackedStatus) {
        (self.id, PackedStatus { status: self.status, decision: self.decision })
    }
}

/// Loads the checkpoint; `None` when it is missing or not usable.
pub(super) fn load(store: &Store, depth: LoadDepth) -> Option<SettledTables> {
    let (file, header) = open(store)?;
    let mut settled = header.empty_tables();
    let mut reader = BufReader::with_capacity(4096, file);
    if depth == LoadDepth::Runs {
        return read_runs(&mut reader, &header, &mut settled).map(|()| settled);
    }
    let read_rows = |settled: &mut SettledTables, reader: &mut BufReader<File>| {
        read_runs(reader, &header, settled)?;
        read_facts(reader, &header, settled)
    };
    let names = if header.bytes()? <= MAX_SMALL_BYTES {
        read_rows(&mut settled, &mut reader)?;
        read_names(&mut reader, &header)?
    } else {
        // The halves of a large file are read at the same time, because reading either takes equally long.
        let read_other_half = || {
            let (mut file, reopened) = open(store)?;
            // Another process may have replaced the file since.
            if reopened.checksum != header.checksum {
                return None;
            }
            file.seek(SeekFrom::Start(header.names_at()?)).ok()?;
            read_names(&mut BufReader::with_capacity(4096, file), &header)
        };
        let (rows, names) = parallel::join(|| read_rows(&mut settled, &mut reader), read_other_half);
        rows.and(names)?
    };
    let NameTables { finding_ids, finding_text, finding_order, reports, decisions } = names;
    settled.columns = StoreTables { finding_ids, finding_text, reports, decisions, ..settled.columns };
    settled.finding_order = finding_order;
    Some(settled)
}

/// Opens the checkpoint and reads its header; `None` when it is missing, of another version or incomplete.
fn open(store: &Store) -> Option<(File, CheckpointHeader)> {
    let mut file = File::open(store.checkpoint_path()).ok()?;
    let mut header = CheckpointHeader::zeroed();
    file.read_exact(bytemuck::bytes_of_mut(&mut header)).ok()?;
    let length = files::length(&file).ok()?;
    (header.is_valid() && header.bytes() == Some(length)).then_some((file, header))
}

/// Reads a section; `None` if its length or its checksum is wrong.
fn read_section<T>(
    from: &mut dyn Read,
    section: SectionMark,
    read: impl FnOnce(&mut TableReader<'_>) -> io::Result<T>,
) -> Option<T> {
    let mut loader = TableReader::new(from, section.bytes);
    let tables = read(&mut loader).ok()?;
    (loader.is_at_end() && loader.checksum == section.checksum).then_some(tables)
}

fn read_runs(from: &mut dyn Read, header: &CheckpointHeader, settled: &mut SettledTables) -> Option<()> {
    read_section(from, header.runs, |loader| {
        let columns = &mut settled.columns;
        columns.runs = ChunkedColumn::read_from(loader)?;
        columns.run_ids = HashIndex::read_from(loader)?;
        columns.run_text = TextPool::read_from(loader, header.seed)?;
        settled.unsettled = ChunkedColumn::<u32>::read_from(loader)?.iter().collect();
        Ok(())
    })
}

fn read_facts(from: &mut dyn Read, header: &CheckpointHeader, settled: &mut SettledTables) -> Option<()> {
    read_section(from, header.facts, |loader| {
        settled.columns.findings = ChunkedColumn::read_from(loader)?;
        let orphans = ChunkedColumn::<OrphanDisposition>::read_from(loader)?;
        settled.orphans = orphans.iter().map(OrphanDisposition::to_entry).collect();
        Ok(())
    })
}

/// Tables of the second half of a checkpoint: the sections `names` and `history`.
struct NameTables {
    finding_ids: HashIndex,
    finding_text: TextPool,
    finding_order: ChunkedColumn<u32>,
    reports: ChunkedColumn<u32>,
    decisions: ChunkedColumn<PackedDecision>,
}

fn read_names(from: &mut dyn Read, header: &CheckpointHeader) -> Option<NameTables> {
    let (finding_ids, finding_text, finding_order) = read_section(from, header.names, |loader| {
        let ids = HashIndex::read_from(loader)?;
        Ok((ids, TextPool::read_from(loader, header.seed)?, ChunkedColumn::read_from(loader)?))
    })?;
    let (reports, decisions) = read_section(from, header.history, |loader| {
        Ok((ChunkedColumn::read_from(loader)?, ChunkedColumn::read_from(loader)?))
    })?;
    Some(NameTables { finding_ids, finding_text, finding_order, reports, decisions })
}

/// Loads the runs of the checkpoint, with findings that are loaded when they are needed; `None` when the checkpoint is
/// missing or not usable.
pub(super) fn load_lazily(store: &Store) -> Option<SettledTables> {
    let (file, header) = open(store)?;
    let mut settled = header.empty_tables();
    read_runs(&mut BufReader::with_capacity(4096, &file), &header, &mut settled)?;
    let at = (size_of::<CheckpointHeader>() as u64).checked_add(header.runs.bytes)?;
    let findings = CheckpointFindings::locate(file, at, header.facts, header.names, header.seed)?;
    settled.orphans = findings.orphans().map(OrphanDisposition::to_entry).collect();
    settled.lazy = Some(LazyFindings::new(findings));
    Some(settled)
}

/// Number of files read since the last checkpoint that justifies a new one in a small store. Opening and parsing a file takes a
/// seventh of a millisecond.
const MIN_FRESH_FILES: usize = 4;
/// The same in a large store, where a checkpoint costs more to write.
const MAX_FRESH_FILES: usize = 32;
/// Number of runs that make a store wait for one file more.
const RUNS_PER_FRESH_FILE: usize = 32;
/// Number of bytes that take as long to parse as a file takes to be opened and parsed.
const BYTES_PER_FILE: u64 = 16 * 1024;
/// Maximum size of a checkpoint, in bytes, that is read faster than the outputs of a few runs: about 3,000 findings.
const MAX_SMALL_BYTES: u64 = 512 * 1024;

/// Returns true when so much was read since the checkpoint that a new one is due.
pub(super) fn is_outdated(settled: &SettledTables) -> bool {
    let runs = settled.columns.runs.len();
    let files = (runs / RUNS_PER_FRESH_FILE).clamp(MIN_FRESH_FILES, MAX_FRESH_FILES);
    settled.fresh_files as usize >= files || settled.fresh_bytes >= files as u64 * BYTES_PER_FILE
}

/// Returns true if there is a checkpoint that is read in a millisecond.
pub(super) fn is_small(store: &Store) -> bool {
    std::fs::metadata(store.checkpoint_path()).is_ok_and(|found| found.len() <= MAX_SMALL_BYTES)
}

/// Writes a checkpoint when it would save the next reader noticeable time. A failed write is not an error.
pub(super) fn save_if_worth(store: &Store, settled: &mut SettledTables) {
    if is_outdated(settled)
        && store.newer_schema_error().is_none()
        && !super::lock::is_held_by_thread(store.root())
        && save(store, settled).is_ok()
    {
        (settled.fresh_bytes, settled.fresh_files) = (0, 0);
    }
}

impl Store {
    /// Writes the checkpoint unconditionally; for tests and measurements.
    ///
    /// # Errors
    /// Returns an error when the store cannot be read or the checkpoint cannot be written.
    #[doc(hidden)]
    pub fn checkpoint_now(&self) -> Result<(), StoreError> {
        save(self, &self.load_settled(LoadDepth::All)?)
    }
}

fn save(store: &Store, settled: &SettledTables) -> Result<(), StoreError> {
    let path = store.checkpoint_path();
    files::write_beside(&path, ExistingPolicy::Replace, SyncPolicy::Later, |file| {
        let columns = &settled.columns;
        let mut header = CheckpointHeader {
            magic: MAGIC,
            format: format_hash(),
            seed: columns.seed,
            runs_mark: settled.runs_mark,
            triage_mark: settled.triage_mark,
            bad: settled.unreadable,
            ..CheckpointHeader::zeroed()
        };
        let mut to = BufWriter::new(file);
        to.write_all(bytemuck::bytes_of(&header))?;
        let mut saver = TableWriter::new(&mut to);
        columns.runs.write_to(&mut saver)?;
        columns.run_ids.write_to(&mut saver)?;
        columns.run_text.write_to(&mut saver)?;
        settled.unsettled.iter().copied().collect::<ChunkedColumn<u32>>().write_to(&mut saver)?;
        header.runs = SectionMark { bytes: saver.written, checksum: saver.checksum };
        let mut saver = TableWriter::new(&mut to);
        columns.findings.write_to(&mut saver)?;
        let orphans = settled.orphans.iter().map(OrphanDisposition::from_entry);
        orphans.collect::<ChunkedColumn<OrphanDisposition>>().write_to(&mut saver)?;
        header.facts = SectionMark { bytes: saver.written, checksum: saver.checksum };
        let mut saver = TableWriter::new(&mut to);
        columns.finding_ids.write_to(&mut saver)?;
        columns.finding_text.write_to(&mut saver)?;
        settled.finding_order.write_to(&mut saver)?;
        header.names = SectionMark { bytes: saver.written, checksum: saver.checksum };
        let mut saver = TableWriter::new(&mut to);
        columns.reports.write_to(&mut saver)?;
        columns.decisions.write_to(&mut saver)?;
        header.history = SectionMark { bytes: saver.written, checksum: saver.checksum };
        header.seal();
        to.seek(SeekFrom::Start(0))?;
        to.write_all(bytemuck::bytes_of(&header))?;
        to.flush()
    })
}
