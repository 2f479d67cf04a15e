//! Builds a segment: interns the words and names of files and records which file has which.
//!
//! - A segment holds a bounded amount of text, so building it takes a bounded amount of memory.

use super::IndexError;
use super::postings::{PostingRole, Postings, WordTable};
use super::segment::{ChunkRecord, DeclarationRecord, FileRecord, NO_NUMBER, RecordRange, Segment, SegmentSections};
use super::words::{self, MAX_RUN_BYTES};
use crate::domain::OmissionReason;
use crate::index::chunk::{ChunkKind, CutFile};
use crate::index::interner::Interner;

/// Text size from which a segment counts as full, in bytes.
const FULL_SEGMENT_BYTES: usize = 16 << 20;

/// Builder of one segment.
///
/// Until [`SegmentBuilder::finish`], names in its records are numbers of the interner.
#[derive(Default)]
pub struct SegmentBuilder {
    interner: Interner,
    /// For each interned string, the range of its words in `parts`; [`UNSPLIT`] until it is split.
    parts_of: Vec<RecordRange>,
    parts: Vec<u32>,
    files: Vec<FileRecord>,
    paths: Vec<u8>,
    chunks: Vec<ChunkRecord>,
    declarations: Vec<DeclarationRecord>,
    imports: Vec<u32>,
    fingerprints: Vec<u32>,
    /// One entry per [`PostingRole`].
    pairs: [WordFilePairs; 3],
    /// Total size of the added file texts, in bytes; includes files that were absorbed from another segment.
    pub(super) bytes: usize,
}

const UNSPLIT: RecordRange = RecordRange { first: NO_NUMBER, count: 0 };

/// Distinct (word, file) pairs; the files of a word are ascending.
#[derive(Default)]
struct WordFilePairs {
    pairs: Vec<(u32, u32)>,
    /// For each word, 1 + the last file that has it; 0 if no file has it.
    last_file: Vec<u32>,
}

impl WordFilePairs {
    fn add(&mut self, word: u32, file: u32) {
        let at = word as usize;
        if self.last_file.len() <= at {
            self.last_file.resize(at + at / 2 + 1024, 0);
        }
        if self.last_file[at] != file + 1 {
            self.last_file[at] = file + 1;
            self.pairs.push((word, file));
        }
    }
}

/// A file to be indexed.
pub struct NewFile<'a> {
    pub path: &'a str,
    pub blob: [u8; 20],
    pub text: &'a str,
    pub cut: &'a CutFile<'a>,
    /// Clone fingerprints.
    pub fingerprints: &'a [u32],
}

impl SegmentBuilder {
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    pub fn is_full(&self) -> bool {
        self.bytes >= FULL_SEGMENT_BYTES
    }

    /// Records a file that is not indexed, with the reason.
    pub fn leave_out(&mut self, path: &str, blob: [u8; 20], reason: OmissionReason) {
        let path = append(&mut self.paths, path.bytes());
        let reason = FileRecord::reason_code(reason);
        self.files.push(FileRecord { path, blob, reason, ..bytemuck::Zeroable::zeroed() });
    }

    /// Adds a file with its chunks, declarations, imports, fingerprints, names and words.
    pub fn add_file(&mut self, file: &NewFile<'_>) {
        let NewFile { path, blob, text, cut, fingerprints } = *file;
        let interner = &mut self.interner;
        let mut intern = |name: &str| if name.is_empty() { NO_NUMBER } else { interner.intern(name) };
        let pieces = cut.pieces.iter().filter(|piece| piece.kind != ChunkKind::Summary);
        let is_from_tree = |kind: ChunkKind| !matches!(kind, ChunkKind::Window | ChunkKind::Config);
        let record = FileRecord {
            path: append(&mut self.paths, path.bytes()),
            blob,
            chunks: append(
                &mut self.chunks,
                pieces.map(|piece| ChunkRecord { kind: piece.kind as u32, first: piece.rows.0, last: piece.rows.1 }),
            ),
            declarations: append(
                &mut self.declarations,
                cut.declarations.iter().map(|item| DeclarationRecord {
                    kind: item.kind as u32,
                    name: intern(item.name),
                    scope: intern(item.scope),
                    first: item.rows.0,
                    last: item.rows.1,
                    head_first: item.head.0,
                    head_last: item.head.1,
                }),
            ),
            imports: append(&mut self.imports, cut.uses.imports.iter().map(|import| intern(import))),
            fingerprints: append(&mut self.fingerprints, fingerprints.iter().copied()),
            bytes: text.len() as u32,
            reason: 0,
            has_syntax_tree: u32::from(cut.pieces.iter().any(|piece| is_from_tree(piece.kind))),
        };
        for name in cut.pieces.iter().flat_map(|piece| &piece.exports) {
            let name = self.interner.intern(name);
            self.add_word(PostingRole::Declaration, name);
        }
        self.add_text(text, cut);
        self.files.push(record);
        self.bytes += text.len();
    }

    /// Records that the file that is being added has a word.
    fn add_word(&mut self, role: PostingRole, word: u32) {
        self.pairs[role as usize].add(word, self.files.len() as u32);
    }

    /// Records the words of a text and the identifiers it uses.
    fn add_text(&mut self, text: &str, cut: &CutFile<'_>) {
        let mut uses = cut.uses.names.iter().peekable();
        for (start, run) in words::word_runs(text) {
            while let Some((_, name)) = uses.next_if(|(at, _)| (*at as usize) < start) {
                let name = self.interner.intern(name);
                self.add_word(PostingRole::Use, name);
            }
            let number = self.interner.intern(run);
            // Most runs are identifiers.
            if uses.next_if(|(at, name)| *at as usize == start && name.len() == run.len()).is_some() {
                self.add_word(PostingRole::Use, number);
            }
            for at in self.split_run(number).as_range() {
                self.add_word(PostingRole::Text, self.parts[at]);
            }
        }
        for (_, name) in uses {
            let name = self.interner.intern(name);
            self.add_word(PostingRole::Use, name);
        }
    }

    /// Returns the range of the words of an interned run in `parts`, splitting the run on first use.
    fn split_run(&mut self, number: u32) -> RecordRange {
        let at = number as usize;
        if self.parts_of.len() <= at {
            self.parts_of.resize(at + at / 2 + 1024, UNSPLIT);
        }
        if self.parts_of[at] == UNSPLIT {
            let mut run = [0u8; MAX_RUN_BYTES];
            let text = self.interner.resolve(number).as_bytes();
            let length = text.len().min(MAX_RUN_BYTES);
            run[..length].copy_from_slice(&text[..length]);
            let first = self.parts.len() as u32;
            let Self { interner, parts, .. } = self;
            let run = std::str::from_utf8(&run[..length]).unwrap_or_default();
            words::split_run(run, &mut |part| parts.push(interner.intern(part)));
            self.parts_of[at] = RecordRange { first, count: self.parts.len() as u32 - first };
        }
        self.parts_of[at]
    }

    /// Copies the files of `segment` for which `is_wanted` returns true (argument: file number in the segment).
    ///
    /// # Errors
    /// Fails with [`IndexError::Cancelled`] when `cancelled` returns true, or if the segment is damaged. The builder is
    /// then incomplete and must be dropped.
    pub fn absorb(
        &mut self,
        segment: &Segment,
        is_wanted: &dyn Fn(u32) -> bool,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<(), IndexError> {
        let mut places = vec![NO_NUMBER; segment.files().len()];
        let (words, fingerprints) = (segment.words()?, segment.read_fingerprints()?);
        for (number, file) in segment.files().iter().enumerate().filter(|(number, _)| is_wanted(*number as u32)) {
            if cancelled() {
                return Err(IndexError::Cancelled);
            }
            places[number] = self.files.len() as u32;
            let interner = &mut self.interner;
            let mut intern = |word: u32| if word == NO_NUMBER { word } else { interner.intern(words.get(word)) };
            let declarations = segment.declarations(file)?.iter();
            self.files.push(FileRecord {
                path: append(&mut self.paths, segment.path(file).bytes()),
                chunks: append(&mut self.chunks, segment.chunks(file)?.iter().copied()),
                declarations: append(
                    &mut self.declarations,
                    declarations.map(|row| DeclarationRecord {
                        name: intern(row.name),
                        scope: intern(row.scope),
                        ..*row
                    }),
                ),
                imports: append(&mut self.imports, segment.imports(file)?.iter().map(|import| intern(*import))),
                fingerprints: append(&mut self.fingerprints, file.fingerprints.select(&fingerprints).iter().copied()),
                ..*file
            });
            self.bytes += file.bytes as usize;
        }
        let postings = segment.postings()?;
        for word in 0..words.len() as u32 {
            for role in PostingRole::ALL {
                postings.for_each_file(word, role, &mut |file| {
                    if let Some(&place) = places.get(file as usize).filter(|place| **place != NO_NUMBER) {
                        self.pairs[role as usize].add(self.interner.intern(words.get(word)), place);
                    }
                });
            }
        }
        Ok(())
    }

    /// Returns the content of the segment.
    pub fn finish(self) -> SegmentSections {
        let is_used = self.find_used_strings();
        let Self { interner, files, paths, chunks, mut declarations, mut imports, fingerprints, pairs, .. } = self;
        let (words, numbers) = WordTable::from_interned(&interner, &is_used);
        let renumber = |name: &mut u32| *name = numbers.get(*name as usize).copied().unwrap_or(NO_NUMBER);
        declarations.iter_mut().flat_map(|row| [&mut row.name, &mut row.scope]).for_each(renumber);
        imports.iter_mut().for_each(renumber);
        let pairs = pairs.map(|WordFilePairs { mut pairs, .. }| {
            pairs.iter_mut().for_each(|(word, _)| renumber(word));
            pairs
        });
        let postings = Postings::encode(pairs, words.len());
        SegmentSections { files, paths, chunks, declarations, imports, fingerprints, words, postings }
    }

    /// Returns for each interned string whether a record names it. The others are only runs that were split.
    fn find_used_strings(&self) -> Vec<bool> {
        let mut is_used = vec![false; self.interner.len()];
        let declared = self.declarations.iter().flat_map(|row| [row.name, row.scope]);
        let listed = self.pairs.iter().flat_map(|pairs| &pairs.pairs).map(|(word, _)| *word);
        for number in declared.chain(self.imports.iter().copied()).chain(listed).filter(|name| *name != NO_NUMBER) {
            is_used[number as usize] = true;
        }
        is_used
    }
}

/// Appends records to a section and returns their range.
fn append<T>(section: &mut Vec<T>, records: impl Iterator<Item = T>) -> RecordRange {
    let first = section.len() as u32;
    section.extend(records);
    RecordRange { first, count: section.len() as u32 - first }
}
