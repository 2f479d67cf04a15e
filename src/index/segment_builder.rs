//! Builds a segment: cuts files into chunks, interns names and words, and records every occurrence.
//!
//! - A segment holds a bounded amount of text, so building it takes a bounded amount of memory.

use std::iter::Peekable;

use super::segment::{ChunkRecord, DeclarationRecord, FileRecord, NAME_ROLES, NO_NUMBER, Segment};
use super::words::{self, MAX_RUN_BYTES};
use super::{IndexError, sealed_file, varint};
use crate::domain::OmissionReason;
use crate::index::chunk::{ChunkKind, CutFile, IdentifierUse, RowRange};
use crate::index::interner::Interner;

/// Text size from which a segment counts as full, in bytes.
const FULL_SEGMENT_BYTES: usize = 16 << 20;

/// Builder of one segment.
#[derive(Default)]
pub struct SegmentBuilder {
    interner: Interner,
    /// For each interned string, the start and length of its words in `parts`; `(NO_NUMBER, 0)` until it is split.
    parts_of: Vec<(u32, u32)>,
    parts: Vec<u32>,
    files: Vec<FileRecord>,
    paths: Vec<u8>,
    chunks: Vec<ChunkRecord>,
    /// One entry per chunk.
    lists: Vec<ChunkListEnds>,
    outlines: Vec<RowRange>,
    /// Interned exports, imports and references, chunk after chunk.
    names: Vec<u32>,
    /// (word, chunk, count), ordered by chunk.
    terms: Vec<(u32, u32, u32)>,
    /// Fingerprints, file after file.
    fingerprints: Vec<u32>,
    /// Declarations, file after file.
    declared: Vec<DeclarationRecord>,
    counts: NumberTally,
    references_seen: NumberTally,
    /// Total size of the added file texts, in bytes; includes files that were absorbed from another segment.
    pub(super) bytes: usize,
}

/// End positions of the lists of a chunk. Each list starts where the previous list ends.
#[derive(Clone, Copy, Default)]
struct ChunkListEnds {
    outline: u32,
    exports: u32,
    imports: u32,
    references: u32,
}

/// Counter of numbers that can be reset in one step.
#[derive(Default)]
struct NumberTally {
    counts: Vec<(u32, u32)>,
    slots: Vec<u32>,
}

impl NumberTally {
    /// Counts `number`; returns true at its first occurrence.
    fn add(&mut self, number: u32) -> bool {
        let at = number as usize;
        if self.slots.len() <= at {
            self.slots.resize(at + at / 2 + 1024, 0);
        }
        let slot = self.slots[at] as usize;
        match self.counts.get_mut(slot).filter(|(known, _)| *known == number) {
            Some((_, count)) => {
                *count += 1;
                false
            }
            None => {
                self.slots[at] = self.counts.len() as u32;
                self.counts.push((number, 1));
                true
            }
        }
    }
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
        let mut row = self.begin_file(path, blob);
        row.reason = FileRecord::reason_code(reason);
        self.files.push(row);
    }

    fn begin_file(&mut self, path: &str, blob: [u8; 20]) -> FileRecord {
        let start = self.paths.len() as u32;
        self.paths.extend_from_slice(path.as_bytes());
        FileRecord {
            path: start,
            path_length: path.len() as u32,
            blob,
            first_chunk: self.chunks.len() as u32,
            first_fingerprint: self.fingerprints.len() as u32,
            first_declaration: self.declared.len() as u32,
            ..bytemuck::Zeroable::zeroed()
        }
    }

    /// Adds a file with its chunks, names, words, declarations and fingerprints.
    pub fn add_file(
        &mut self,
        path: &str,
        blob: [u8; 20],
        text: &str,
        is_test: bool,
        cut: &CutFile<'_>,
        prints: &[u32],
    ) {
        let mut file = self.begin_file(path, blob);
        let mut uses = cut.uses.names.iter().peekable();
        for (number, piece) in cut.pieces.iter().enumerate() {
            let chunk = self.chunks.len() as u32;
            self.outlines.extend_from_slice(&piece.outline);
            let mut lists = ChunkListEnds { outline: self.outlines.len() as u32, ..ChunkListEnds::default() };
            for name in &piece.exports {
                let name = self.interner.intern(name);
                self.names.push(name);
            }
            lists.exports = self.names.len() as u32;
            if number == 0 {
                for import in &cut.uses.imports {
                    let import = self.interner.intern(import);
                    self.names.push(import);
                }
            }
            lists.imports = self.names.len() as u32;
            let mut words = 0;
            if piece.kind != ChunkKind::Summary {
                let start = cut.lines.start(piece.rows.0);
                words = self.add_words(cut.lines.text(piece.rows), start, &mut uses, chunk);
                file.tokens = file.tokens.saturating_add(piece.tokens);
            }
            lists.references = self.names.len() as u32;
            self.lists.push(lists);
            let mut named = |name: &str| if name.is_empty() { NO_NUMBER } else { self.interner.intern(name) };
            let (name, parent) = (named(piece.name), named(piece.parent));
            self.chunks.push(ChunkRecord {
                file: self.files.len() as u32,
                first: piece.rows.0,
                last: piece.rows.1,
                kind: piece.kind as u32,
                tokens: piece.tokens,
                words,
                complexity: piece.complexity,
                name,
                parent,
                lists: 0,
            });
        }
        file.lines = cut.lines.count();
        file.chunks = self.chunks.len() as u32 - file.first_chunk;
        file.is_test = u32::from(is_test);
        file.fingerprints = prints.len() as u32;
        self.fingerprints.extend_from_slice(prints);
        for item in &cut.declarations {
            let mut named = |name: &str| if name.is_empty() { NO_NUMBER } else { self.interner.intern(name) };
            let (name, scope) = (named(item.name), named(item.scope));
            let ((first, last), (head_first, head_last)) = (item.rows, item.head);
            self.declared.push(DeclarationRecord {
                kind: item.kind as u32,
                name,
                scope,
                first,
                last,
                head_first,
                head_last,
            });
        }
        file.declarations = cut.declarations.len() as u32;
        file.bytes = text.len() as u32;
        self.files.push(file);
        self.bytes += text.len();
    }

    /// Records the identifiers that a chunk uses and counts the words of its text. `start` is the byte offset of `text`
    /// in the file. Returns the number of words.
    fn add_words<'a>(
        &mut self,
        text: &str,
        start: u32,
        uses: &mut Peekable<impl Iterator<Item = &'a IdentifierUse<'a>>>,
        chunk: u32,
    ) -> u32 {
        let mut total = 0;
        for (from, run) in words::word_runs(text) {
            let from = start + from as u32;
            while let Some((_, name)) = uses.next_if(|(at, _)| *at < from) {
                let name = self.interner.intern(name);
                self.add_reference(name);
            }
            let number = self.interner.intern(run);
            // Most runs are identifiers.
            if uses.next_if(|(at, name)| *at == from && name.len() == run.len()).is_some() {
                self.add_reference(number);
            }
            let (start, count) = self.run_words(number);
            total += count;
            for at in start..start + count {
                self.counts.add(self.parts[at as usize]);
            }
        }
        let end = start + text.len() as u32;
        while let Some((_, name)) = uses.next_if(|(at, _)| *at < end) {
            let name = self.interner.intern(name);
            self.add_reference(name);
        }
        self.references_seen.counts.clear();
        self.terms.extend(self.counts.counts.drain(..).map(|(word, count)| (word, chunk, count)));
        total
    }

    fn add_reference(&mut self, name: u32) {
        if self.references_seen.add(name) {
            self.names.push(name);
        }
    }

    /// Returns the range (start, length) of the words of an interned run in `parts`, splitting the run on first use.
    fn run_words(&mut self, number: u32) -> (u32, u32) {
        const UNKNOWN: (u32, u32) = (NO_NUMBER, 0);
        let at = number as usize;
        if self.parts_of.len() <= at {
            self.parts_of.resize(at + at / 2 + 1024, UNKNOWN);
        }
        if self.parts_of[at] == UNKNOWN {
            let mut run = [0u8; MAX_RUN_BYTES];
            let text = self.interner.resolve(number).as_bytes();
            let length = text.len().min(MAX_RUN_BYTES);
            run[..length].copy_from_slice(&text[..length]);
            let start = self.parts.len() as u32;
            let Self { interner, parts, .. } = self;
            let run = std::str::from_utf8(&run[..length]).unwrap_or_default();
            words::split_run(run, &mut |part| parts.push(interner.intern(part)));
            self.parts_of[at] = (start, self.parts.len() as u32 - start);
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
        let mut places = vec![NO_NUMBER; segment.chunks().len()];
        let (prints, declared) = (segment.read_fingerprints()?, segment.declarations()?);
        for (number, file) in segment.files().iter().enumerate().filter(|(number, _)| is_wanted(*number as u32)) {
            if cancelled() {
                return Err(IndexError::Cancelled);
            }
            debug_assert_eq!(segment.file(number as u32).map(|known| known.blob), Some(file.blob));
            let own = self.begin_file(segment.path(file), file.blob);
            for at in file.chunk_range() {
                let Some(chunk) = segment.chunk(at) else { continue };
                places[at as usize] = self.chunks.len() as u32;
                let names = segment.read_names(chunk)?;
                let mut intern = |name: Option<&str>| name.map_or(NO_NUMBER, |name| self.interner.intern(name));
                let (name, parent) = (intern(names.name), intern(names.parent));
                self.outlines.extend(names.outline);
                let mut lists = ChunkListEnds { outline: self.outlines.len() as u32, ..ChunkListEnds::default() };
                for (list, end) in [
                    (names.exports, &mut lists.exports),
                    (names.imports, &mut lists.imports),
                    (names.references, &mut lists.references),
                ] {
                    for name in list {
                        let name = self.interner.intern(name);
                        self.names.push(name);
                    }
                    *end = self.names.len() as u32;
                }
                self.lists.push(lists);
                self.chunks.push(ChunkRecord { file: self.files.len() as u32, name, parent, ..*chunk });
            }
            self.fingerprints.extend_from_slice(prints.get(file.fingerprint_range()).unwrap_or_default());
            for row in declared.get(file.declaration_range()).unwrap_or_default() {
                let mut named = |number: u32| -> Result<u32, IndexError> {
                    Ok(if number == NO_NUMBER { NO_NUMBER } else { self.interner.intern(segment.name(number)?) })
                };
                let (name, scope) = (named(row.name)?, named(row.scope)?);
                self.declared.push(DeclarationRecord { name, scope, ..*row });
            }
            let FileRecord {
                path, first_chunk, first_fingerprint: first_print, first_declaration: first_declared, ..
            } = own;
            self.files.push(FileRecord {
                path,
                first_chunk,
                first_fingerprint: first_print,
                first_declaration: first_declared,
                ..*file
            });
            self.bytes += file.bytes as usize;
        }
        segment.for_each_posting(&mut |word, chunk, count| {
            let Some(&place) = places.get(chunk as usize).filter(|place| **place != NO_NUMBER) else { return };
            let word = self.interner.intern(word);
            self.terms.push((word, place, count));
        })
    }

    /// Returns the bytes of the segment file and its file name.
    pub fn finish(self) -> (Vec<u8>, String) {
        let Self {
            interner,
            files,
            paths,
            mut chunks,
            lists,
            outlines,
            names,
            terms,
            fingerprints: prints,
            mut declared,
            ..
        } = self;
        // Keep only the strings that are used, sorted.
        let mut is_used = vec![false; interner.len()];
        let own = chunks.iter().flat_map(|chunk| [chunk.name, chunk.parent]);
        let own = own.chain(declared.iter().flat_map(|row| [row.name, row.scope])).filter(|name| *name != NO_NUMBER);
        for number in names.iter().copied().chain(terms.iter().map(|term| term.0)).chain(own) {
            is_used[number as usize] = true;
        }
        let used = (0..interner.len() as u32).filter(|number| is_used[*number as usize]);
        let mut sorted: Vec<(u64, u32)> = used.map(|number| (sort_prefix(interner.bytes(number)), number)).collect();
        sorted.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| interner.bytes(a.1).cmp(interner.bytes(b.1))));
        let mut rank = vec![NO_NUMBER; interner.len()];
        let (mut word_bytes, mut word_ends) = (Vec::new(), Vec::with_capacity(sorted.len()));
        for (at, (_, number)) in sorted.iter().enumerate() {
            rank[*number as usize] = at as u32;
            word_bytes.extend_from_slice(interner.bytes(*number));
            word_ends.push(word_bytes.len() as u32);
        }
        let ranked = |number: u32| rank.get(number as usize).copied().unwrap_or(NO_NUMBER);

        for row in &mut declared {
            (row.name, row.scope) = (ranked(row.name), ranked(row.scope));
        }
        let mut list_bytes = Vec::new();
        let mut places: [Vec<(u32, u32)>; NAME_ROLES] = Default::default();
        let mut before = ChunkListEnds::default();
        for (at, (chunk, lists)) in chunks.iter_mut().zip(&lists).enumerate() {
            chunk.lists = list_bytes.len() as u32;
            (chunk.name, chunk.parent) = (ranked(chunk.name), ranked(chunk.parent));
            let outline = &outlines[before.outline as usize..lists.outline as usize];
            varint::push(&mut list_bytes, outline.len() as u32);
            let mut row = chunk.first;
            for (first, last) in outline {
                varint::push(&mut list_bytes, first.saturating_sub(row));
                varint::push(&mut list_bytes, last - first);
                row = *last;
            }
            let starts = [before.references, lists.exports, lists.imports];
            for ((start, end), place) in
                starts.into_iter().zip([lists.exports, lists.imports, lists.references]).zip(&mut places)
            {
                let names = &names[start as usize..end as usize];
                varint::push(&mut list_bytes, names.len() as u32);
                for name in names {
                    varint::push(&mut list_bytes, ranked(*name));
                    place.push((ranked(*name), at as u32));
                }
            }
            before = *lists;
        }

        let terms = group_by_word(terms, sorted.len(), |term| ranked(term.0));
        let [exports, imports, references] = places.map(|places| group_by_word(places, sorted.len(), |place| place.0));
        let (mut postings, mut posting_ends) = (Vec::new(), Vec::with_capacity(sorted.len()));
        let mut own = Vec::new();
        for word in 0..sorted.len() {
            own.clear();
            let mut before = 0;
            for (_, chunk, count) in terms.group(word) {
                let once = u32::from(*count == 1);
                varint::push(&mut own, (chunk - before) << 1 | once);
                if once == 0 {
                    varint::push(&mut own, *count);
                }
                before = *chunk;
            }
            varint::push(&mut postings, own.len() as u32);
            postings.extend_from_slice(&own);
            for places in [&exports, &imports, &references] {
                varint::push(&mut postings, places.group(word).len() as u32);
                let mut before = 0;
                for (_, chunk) in places.group(word) {
                    varint::push(&mut postings, chunk - before);
                    before = *chunk;
                }
            }
            posting_ends.push(postings.len() as u32);
        }
        let (bytes, name) = sealed_file::seal(&[
            bytemuck::cast_slice(&files),
            &paths,
            bytemuck::cast_slice(&chunks),
            bytemuck::cast_slice(&word_ends),
            &word_bytes,
            bytemuck::cast_slice(&posting_ends),
            &postings,
            &list_bytes,
            bytemuck::cast_slice(&prints),
            bytemuck::cast_slice(&declared),
        ]);
        (bytes, Segment::file_name(&name))
    }
}

/// Returns the first eight bytes as a big-endian number, padded with zeros. The numbers sort like the bytes.
fn sort_prefix(bytes: &[u8]) -> u64 {
    let mut first = [0; 8];
    let length = bytes.len().min(8);
    first[..length].copy_from_slice(&bytes[..length]);
    u64::from_be_bytes(first)
}

/// Values grouped by word; the original order is kept within a word.
struct GroupedByWord<T> {
    things: Vec<T>,
    ends: Vec<u32>,
}

impl<T> GroupedByWord<T> {
    fn group(&self, word: usize) -> &[T] {
        let start = word.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.things[start as usize..self.ends[word] as usize]
    }
}

/// Groups values by word with a counting sort, in linear time.
fn group_by_word<T: Copy + Default>(things: Vec<T>, words: usize, word_of: impl Fn(&T) -> u32) -> GroupedByWord<T> {
    let mut ends = vec![0u32; words];
    for thing in &things {
        ends[word_of(thing) as usize] += 1;
    }
    let mut sum = 0;
    for end in &mut ends {
        // Holds the start of the word's group until all values are placed.
        sum += std::mem::replace(end, sum);
    }
    let mut sorted = vec![T::default(); things.len()];
    for thing in things {
        let end = &mut ends[word_of(&thing) as usize];
        sorted[*end as usize] = thing;
        *end += 1;
    }
    GroupedByWord { things: sorted, ends }
}
