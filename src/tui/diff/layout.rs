//! Lays out a file of a diff: which rows it has, from its changed blocks, its findings and its folds.
//!
//! - Rows are kept as segments, so that a file of 50,000 lines costs a few of them. Only wrapped lines need their texts.

use std::collections::BTreeSet;

use super::super::doc::{DocLine, wrap_words};
use super::columns::{DiffColumns, count_rows};
use super::model::{ChangeBlock, DiffFile, DiffFinding, DiffPageSide, DiffTexts, LineTable};
use crate::domain::{LineRange, text};

/// Unchanged lines shown around a change.
const CONTEXT_LINES: u32 = 3;
/// Unchanged lines shown around the lines of a finding.
const FINDING_CONTEXT_LINES: u32 = 2;
/// Lines of a finding that are shown although they are unchanged; a longer one is shown in part.
const MAX_FINDING_LINES: u32 = 10;
/// Hidden lines that take no more room than the row that stands for them.
const MAX_NEEDLESS_GAP: u32 = 1;
/// Columns before a text about a file.
pub const NOTE_INDENT: usize = 2;
/// Narrowest text about a file, in columns.
const MIN_NOTE_WIDTH: usize = 12;

/// Everything from which the rows of a file follow.
#[derive(Debug, Clone, Copy)]
pub struct LayoutInput<'a> {
    pub file: &'a DiffFile,
    /// Changed blocks that are shown.
    pub blocks: &'a [ChangeBlock],
    /// Old and new lines that belong together, in ascending order. Side by side they face each other; all others stand by
    /// their order within the block. There are at most [`MAX_PAIRS`](super::words::MAX_PAIRS) of them, and each adds one
    /// segment at most.
    pub partners: &'a [(u32, u32)],
    /// Texts of the file, if they are read.
    pub texts: Option<&'a DiffTexts>,
    pub is_folded: bool,
    /// Findings whose text is shown, by their index in the file, with the lines of the text.
    pub open_findings: &'a [(usize, Vec<DocLine>)],
    /// Unchanged lines that the user wants to see, on the new side.
    pub expanded: &'a [LineRange],
    pub columns: DiffColumns,
    /// Text that stands below the header instead of lines.
    pub note: Option<&'a str>,
    /// Text that stands between the header and the lines.
    pub caption: Option<&'a str>,
}

/// Unchanged lines that are not shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HiddenLines {
    pub old: u32,
    pub new: u32,
    /// Number of lines.
    pub lines: u32,
}

/// Use of a run of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunKind {
    /// Lines that both sides have.
    Context,
    Removed,
    Added,
    /// Old lines with new ones beside them; the rest of the longer side has nothing beside it.
    Paired,
}

/// Lines that follow each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffLineRun {
    pub kind: RunKind,
    pub old: u32,
    pub old_lines: u32,
    pub new: u32,
    pub new_lines: u32,
    /// Rows up to the end of each line, for wrapped lines; empty if each line takes one row.
    row_ends: Vec<u32>,
}

impl DiffLineRun {
    fn count(&self) -> u32 {
        self.old_lines.max(self.new_lines)
    }

    fn rows(&self) -> u32 {
        self.row_ends.last().copied().unwrap_or_else(|| self.count())
    }

    /// Returns the line at a row, and the row within the line.
    fn line_at(&self, row: u32) -> (u32, u32) {
        if self.row_ends.is_empty() {
            return (row, 0);
        }
        let line = self.row_ends.partition_point(|end| *end <= row);
        let start = line.checked_sub(1).map_or(0, |before| self.row_ends[before]);
        (line as u32, row - start)
    }

    /// Returns the first row of a line, counted from 0.
    fn row_of(&self, line: u32) -> u32 {
        match line.checked_sub(1) {
            _ if self.row_ends.is_empty() => line,
            None => 0,
            Some(before) => self.row_ends.get(before as usize).copied().unwrap_or_else(|| self.rows()),
        }
    }

    /// Splits off the lines from `line` on, counted from 0.
    fn split_off(&mut self, line: u32) -> Self {
        let rest = Self {
            kind: self.kind,
            old: self.old + line.min(self.old_lines),
            old_lines: self.old_lines.saturating_sub(line),
            new: self.new + line.min(self.new_lines),
            new_lines: self.new_lines.saturating_sub(line),
            row_ends: Vec::new(),
        };
        (self.old_lines, self.new_lines) = (self.old_lines.min(line), self.new_lines.min(line));
        rest
    }

    fn contains_new(&self, line: u32) -> bool {
        self.kind != RunKind::Removed && (self.new..self.new + self.new_lines).contains(&line)
    }

    fn contains_old(&self, line: u32) -> bool {
        self.kind != RunKind::Added && (self.old..self.old + self.old_lines).contains(&line)
    }
}

/// Rows of one kind that follow each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileSegment {
    Header,
    /// Lines of a text about the file.
    Note(Vec<String>),
    Gap(HiddenLines),
    Lines(DiffLineRun),
    /// Text of a finding, by its index in the file.
    Finding {
        index: usize,
        lines: Vec<DocLine>,
    },
    Blank,
}

impl FileSegment {
    fn rows(&self) -> u32 {
        match self {
            Self::Header | Self::Gap(_) | Self::Blank => 1,
            Self::Note(lines) => lines.len() as u32,
            Self::Lines(run) => run.rows(),
            Self::Finding { lines, .. } => lines.len() as u32,
        }
    }
}

/// One row of a diff.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiffPageRow {
    Header,
    /// Line of the text about the file, counted from 0.
    Note {
        line: usize,
    },
    Gap(HiddenLines),
    Code(CodeRow),
    Finding {
        index: usize,
        /// Line of its text, counted from 0.
        line: usize,
    },
    Blank,
}

/// Row with a line of code on one or both sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeRow {
    pub old: Option<u32>,
    pub new: Option<u32>,
    pub kind: RunKind,
    /// Row within a wrapped line, counted from 0.
    pub part: u32,
}

impl CodeRow {
    /// Returns the line of a side, if the row shows one.
    pub fn line(&self, side: DiffPageSide) -> Option<u32> {
        match side {
            DiffPageSide::Old => self.old,
            DiffPageSide::New => self.new,
        }
    }
}

/// Rows of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileLayout {
    segments: Vec<FileSegment>,
    /// First row of each segment.
    starts: Vec<u32>,
    rows: u32,
    /// Line of the declaration around the change below each gap, by the gap's first new line, in ascending order.
    enclosing: Vec<(u32, u32)>,
    /// Digits of the largest line number.
    pub digits: usize,
}

impl FileLayout {
    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.rows as usize
    }

    /// Returns the segments with their first rows.
    pub fn segments(&self) -> impl DoubleEndedIterator<Item = (usize, &FileSegment)> {
        self.starts.iter().map(|start| *start as usize).zip(&self.segments)
    }

    /// Returns the row with this number, counted from 0.
    pub fn row(&self, row: usize) -> Option<DiffPageRow> {
        let row = u32::try_from(row).ok().filter(|row| *row < self.rows)?;
        let at = self.starts.partition_point(|start| *start <= row).checked_sub(1)?;
        let inside = row - self.starts[at];
        Some(match &self.segments[at] {
            FileSegment::Header => DiffPageRow::Header,
            FileSegment::Note(_) => DiffPageRow::Note { line: inside as usize },
            FileSegment::Gap(hidden) => DiffPageRow::Gap(*hidden),
            FileSegment::Blank => DiffPageRow::Blank,
            FileSegment::Finding { index, .. } => DiffPageRow::Finding { index: *index, line: inside as usize },
            FileSegment::Lines(run) => {
                let (line, part) = run.line_at(inside);
                let old = (run.kind != RunKind::Added && line < run.old_lines).then(|| run.old + line);
                let new = (run.kind != RunKind::Removed && line < run.new_lines).then(|| run.new + line);
                DiffPageRow::Code(CodeRow { old, new, kind: run.kind, part })
            }
        })
    }

    /// Returns a line of a finding's text.
    pub fn finding_line(&self, index: usize, line: usize) -> Option<&DocLine> {
        self.segments.iter().find_map(|segment| match segment {
            FileSegment::Finding { index: known, lines } if *known == index => lines.get(line),
            _ => None,
        })
    }

    /// Returns a line of the text about the file; empty if there is none.
    pub fn note_line(&self, line: usize) -> &str {
        let note = self.segments.iter().find_map(|segment| match segment {
            FileSegment::Note(lines) => lines.get(line),
            _ => None,
        });
        note.map_or("", String::as_str)
    }

    /// Returns the first row of a line.
    pub fn row_of_line(&self, side: DiffPageSide, line: u32) -> Option<usize> {
        self.segments().find_map(|(start, segment)| {
            let FileSegment::Lines(run) = segment else { return None };
            let at = match side {
                DiffPageSide::Old if run.contains_old(line) => line - run.old,
                DiffPageSide::New if run.contains_new(line) => line - run.new,
                _ => return None,
            };
            Some(start + run.row_of(at) as usize)
        })
    }

    /// Returns the row of the gap that hides a line of the new side.
    pub fn row_of_gap(&self, new: u32) -> Option<usize> {
        self.segments().find_map(|(start, segment)| match segment {
            FileSegment::Gap(hidden) if (hidden.new..hidden.new + hidden.lines).contains(&new) => Some(start),
            _ => None,
        })
    }

    /// Returns the line of the new side with the declaration that encloses the change below a gap.
    pub fn declaration_below(&self, gap: HiddenLines) -> Option<u32> {
        let at = self.enclosing.binary_search_by_key(&gap.new, |(new, _)| *new).ok()?;
        Some(self.enclosing[at].1)
    }

    /// Finds the declarations around what stands below each gap: the first change, else the first line.
    fn find_declarations(&mut self, texts: &DiffTexts) {
        for (at, segment) in self.segments.iter().enumerate() {
            let FileSegment::Gap(gap) = segment else { continue };
            let below = self.segments[at + 1..].iter().map_while(|segment| match segment {
                FileSegment::Gap(_) | FileSegment::Blank => None,
                other => Some(other),
            });
            let mut runs = below.filter_map(|segment| match segment {
                FileSegment::Lines(run) => Some(run),
                _ => None,
            });
            let Some(first) = runs.clone().next().map(|run| run.new) else { continue };
            let line = runs.find(|run| run.kind != RunKind::Context).map_or(first, |run| run.new);
            if let Some(found) = texts.enclosing.find(line.min(texts.new.count()), first) {
                self.enclosing.push((gap.new, found));
            }
        }
    }

    /// Returns the first row of a finding's text.
    pub fn row_of_text(&self, index: usize) -> Option<usize> {
        self.segments().find_map(|(start, segment)| match segment {
            FileSegment::Finding { index: known, .. } if *known == index => Some(start),
            _ => None,
        })
    }

    /// Returns the first row of each group of changed lines.
    pub fn change_rows(&self) -> impl DoubleEndedIterator<Item = usize> {
        let is_change =
            |segment: &FileSegment| matches!(segment, FileSegment::Lines(run) if run.kind != RunKind::Context);
        let is_text = |segment: &FileSegment| matches!(segment, FileSegment::Finding { .. });
        (0..self.segments.len()).filter_map(move |at| {
            // The text of a finding does not end a group.
            let before = self.segments[..at].iter().rev().find(|segment| !is_text(segment));
            let begins = is_change(&self.segments[at]) && !before.is_some_and(is_change);
            begins.then(|| self.starts[at] as usize)
        })
    }

    fn push(&mut self, segment: FileSegment) {
        let rows = segment.rows();
        if rows > 0 {
            self.starts.push(self.rows);
            self.rows += rows;
            self.segments.push(segment);
        }
    }
}

/// Lays out a file.
pub fn lay_out_file(input: LayoutInput<'_>) -> FileLayout {
    let LayoutInput { file, blocks, texts, .. } = input;
    let total = texts.map(|texts| texts.new.count());
    let last = blocks.last().map_or(1, |block| (block.old + block.old_lines).max(block.new + block.new_lines));
    let most = total.unwrap_or(0).max(texts.map_or(0, |texts| texts.old.count())).max(last);
    let digits = most.max(1).ilog10() as usize + 1;
    let mut layout = FileLayout { digits: digits.max(2), ..FileLayout::default() };
    layout.push(FileSegment::Header);
    if input.is_folded {
        return layout;
    }
    if let Some(note) = input.note.or(input.caption) {
        let width = input.columns.width.saturating_sub(NOTE_INDENT + 1);
        layout.push(FileSegment::Note(wrap_words(&text::sanitize_line(note), width.max(MIN_NOTE_WIDTH))));
    }
    if input.note.is_none() {
        let partners = input.columns.is_side_by_side.then_some(input.partners);
        let runs = list_runs(file, blocks, total, input.expanded, partners);
        let open: BTreeSet<(u32, usize)> = input
            .open_findings
            .iter()
            .filter_map(|(index, _)| Some((text_line(file.findings.get(*index)?), *index)))
            .collect();
        for segment in insert_texts(runs, &open, input.open_findings) {
            layout.push(wrap_segment(segment, &input, layout.digits));
        }
    }
    layout.push(FileSegment::Blank);
    if let Some(texts) = texts {
        layout.find_declarations(texts);
    }
    layout
}

/// Returns the line below which the text of a finding stands: its last one, or the first one of many.
fn text_line(finding: &DiffFinding) -> u32 {
    let LineRange { start, end } = finding.lines;
    if end.saturating_sub(start) < MAX_FINDING_LINES { end.max(start).max(1) } else { start.max(1) }
}

/// Returns the shown unchanged lines around a finding.
fn shown_around(finding: &DiffFinding) -> LineRange {
    let LineRange { start, end } = finding.lines;
    let end = end.max(start).min(start.saturating_add(MAX_FINDING_LINES - 1));
    LineRange::new(start.saturating_sub(FINDING_CONTEXT_LINES).max(1), end.saturating_add(FINDING_CONTEXT_LINES))
}

/// Returns the changed and the shown unchanged lines with the gaps between them: unified without `partners`, else side by
/// side.
fn list_runs(
    file: &DiffFile,
    blocks: &[ChangeBlock],
    total: Option<u32>,
    expanded: &[LineRange],
    mut partners: Option<&[(u32, u32)]>,
) -> Vec<FileSegment> {
    let mut wanted: Vec<LineRange> = file.findings.iter().map(shown_around).chain(expanded.iter().copied()).collect();
    wanted.sort_by_key(|range| range.start);
    let mut out = Vec::new();
    let (mut old, mut new) = (1, 1);
    for (index, block) in blocks.iter().enumerate() {
        let hidden = HiddenLines { old, new, lines: block.new.saturating_sub(new) };
        list_unchanged(hidden, (index > 0, true), &wanted, &mut out);
        match &mut partners {
            Some(partners) => {
                let inside = partners.partition_point(|(line, _)| *line < block.old + block.old_lines);
                let (here, below) = partners.split_at(inside);
                push_side_by_side(block, here, &mut out);
                *partners = below;
            }
            None => push_unified(block, &mut out),
        }
        (old, new) = (block.old + block.old_lines, block.new + block.new_lines);
    }
    // Without the text it is not known how many lines follow; those around findings do.
    let end = total.unwrap_or_else(|| wanted.last().map_or(0, |range| range.end));
    let rest = HiddenLines { old, new, lines: (end + 1).saturating_sub(new) };
    list_unchanged(rest, (!blocks.is_empty(), false), &wanted, &mut out);
    out
}

/// Adds the shown lines of an unchanged part, and gaps for the others. `beside` says whether a change stands above and
/// below the part.
fn list_unchanged(part: HiddenLines, beside: (bool, bool), wanted: &[LineRange], out: &mut Vec<FileSegment>) {
    let (start, end) = (part.new, part.new + part.lines);
    let mut shown: Vec<(u32, u32)> = Vec::new();
    if beside.0 {
        shown.push((start, start + CONTEXT_LINES));
    }
    shown.extend(wanted.iter().map(|range| (range.start, range.end.saturating_add(1))));
    if beside.1 {
        shown.push((end.saturating_sub(CONTEXT_LINES).max(start), end));
    }
    shown.sort_unstable();
    let to_old = |new: u32| part.old + (new - part.new);
    let mut at = start;
    let push_gap = |from: u32, to: u32, out: &mut Vec<FileSegment>| {
        if to > from {
            out.push(FileSegment::Gap(HiddenLines { old: to_old(from), new: from, lines: to - from }));
        }
    };
    for (from, to) in shown {
        let (mut from, to) = (from.clamp(at, end.max(at)), to.min(end));
        if from - at <= MAX_NEEDLESS_GAP {
            from = at;
        }
        if to <= from {
            continue;
        }
        push_gap(at, from, out);
        match out.last_mut() {
            Some(FileSegment::Lines(run)) if run.kind == RunKind::Context && run.new + run.new_lines == from => {
                run.old_lines += to - from;
                run.new_lines += to - from;
            }
            _ => out.push(FileSegment::Lines(DiffLineRun {
                kind: RunKind::Context,
                old: to_old(from),
                old_lines: to - from,
                new: from,
                new_lines: to - from,
                row_ends: Vec::new(),
            })),
        }
        at = to;
    }
    if end.saturating_sub(at) <= MAX_NEEDLESS_GAP && at > start && at < end {
        if let Some(FileSegment::Lines(run)) = out.last_mut() {
            run.old_lines += end - at;
            run.new_lines += end - at;
        }
        return;
    }
    push_gap(at, end, out);
}

/// Adds the lines of a block so that those that belong together face each other. A new run begins where they would not.
fn push_side_by_side(block: &ChangeBlock, partners: &[(u32, u32)], out: &mut Vec<FileSegment>) {
    let (mut old, mut new) = (block.old, block.new);
    let end = (block.old + block.old_lines, block.new + block.new_lines);
    for (to_old, to_new) in partners.iter().copied().chain([end]) {
        let (old_lines, new_lines) = (to_old.saturating_sub(old), to_new.saturating_sub(new));
        if (to_old, to_new) == end || old_lines != new_lines {
            let kind = RunKind::Paired;
            out.push(FileSegment::Lines(DiffLineRun { kind, old, old_lines, new, new_lines, row_ends: Vec::new() }));
            (old, new) = (to_old, to_new);
        }
    }
}

fn push_unified(block: &ChangeBlock, out: &mut Vec<FileSegment>) {
    let ChangeBlock { old, old_lines, new, new_lines } = *block;
    let run = |kind, old_lines, new_lines| DiffLineRun { kind, old, old_lines, new, new_lines, row_ends: Vec::new() };
    if old_lines > 0 {
        out.push(FileSegment::Lines(run(RunKind::Removed, old_lines, 0)));
    }
    if new_lines > 0 {
        out.push(FileSegment::Lines(run(RunKind::Added, 0, new_lines)));
    }
}

/// Puts the texts of open findings below their lines; `open` holds line and index of each.
fn insert_texts(
    segments: Vec<FileSegment>,
    open: &BTreeSet<(u32, usize)>,
    texts: &[(usize, Vec<DocLine>)],
) -> Vec<FileSegment> {
    if open.is_empty() {
        return segments;
    }
    let text = |index: usize| {
        let lines = texts.iter().find(|(known, _)| *known == index).map(|(_, lines)| lines.clone()).unwrap_or_default();
        FileSegment::Finding { index, lines }
    };
    let mut out = Vec::with_capacity(segments.len() + 2 * open.len());
    let mut placed = BTreeSet::new();
    for segment in segments {
        let FileSegment::Lines(mut run) = segment else {
            out.push(segment);
            continue;
        };
        let mut inside: Vec<(u32, usize)> = open.iter().filter(|(line, _)| run.contains_new(*line)).copied().collect();
        inside.sort_unstable();
        let mut at = 0;
        while let Some((line, _)) = inside.get(at).copied() {
            let rest = run.split_off(line + 1 - run.new);
            out.push(FileSegment::Lines(run));
            run = rest;
            while let Some((_, index)) = inside.get(at).filter(|(other, _)| *other == line) {
                placed.insert(*index);
                out.push(text(*index));
                at += 1;
            }
        }
        if run.count() > 0 {
            out.push(FileSegment::Lines(run));
        }
    }
    // A finding whose line is not there, such as one about an empty file.
    let lost = open.iter().filter(|(_, index)| !placed.contains(index));
    out.extend(lost.map(|(_, index)| text(*index)));
    out
}

/// Counts the rows of the lines of a run if lines are wrapped.
fn wrap_segment(segment: FileSegment, input: &LayoutInput<'_>, digits: usize) -> FileSegment {
    let (FileSegment::Lines(mut run), Some(texts), true) = (segment.clone(), input.texts, input.columns.is_wrapped)
    else {
        return segment;
    };
    let width = input.columns.text_width(digits);
    let rows = |table: &LineTable, number: u32| table.line(number).map_or(1, |line| count_rows(line, width));
    let mut end = 0;
    run.row_ends = (0..run.count())
        .map(|line| {
            let old =
                if line < run.old_lines && run.kind != RunKind::Context { rows(&texts.old, run.old + line) } else { 1 };
            let new = if line < run.new_lines { rows(&texts.new, run.new + line) } else { 1 };
            end += old.max(new);
            end
        })
        .collect();
    FileSegment::Lines(run)
}

#[cfg(test)]
mod tests;
