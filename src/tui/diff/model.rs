//! Data of a diff: files with their changed blocks and findings, and the texts of a file once it is read.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use super::super::page_data::HighlightSpans;
use super::enclosing::EnclosingLines;
use super::space::drop_space_changes;
use super::viewed::name_changes;
use super::words::find_changed_words;
use crate::domain::{FindingStatus, Hunk, Kind, LineRange, OmissionReason, Priority, Time};
use crate::masking::Mask;

/// Lines that are highlighted at once.
pub const HIGHLIGHT_BLOCK_LINES: u32 = 256;

/// Change of a run, from the first file on or at a finding, or its part in one file.
#[derive(Debug, Clone)]
pub struct DiffPage {
    /// Id of the run whose change this is.
    pub run: String,
    /// Commit of the old side; empty if everything is new.
    pub from: String,
    /// Commit of the new side: the snapshot of the run.
    pub to: String,
    /// Files to review in the order of their paths, then the files that were left out of the review.
    pub files: Vec<DiffFile>,
    /// Text shown instead of the files.
    pub note: Option<String>,
    /// Id of the finding whose diff this is.
    pub selected: Option<String>,
    /// Switch for masking with which the texts are read.
    pub mask: Mask,
}

impl DiffPage {
    /// Returns true if another page shows the same change: the same files with the same contents.
    pub fn has_same_change(&self, other: &Self) -> bool {
        let is_same = |(a, b): (&DiffFile, &DiffFile)| a.path == b.path && a.has_same_texts(b);
        self.files.len() == other.files.len() && self.files.iter().zip(&other.files).all(is_same)
    }
}

impl Default for DiffPage {
    fn default() -> Self {
        Self {
            run: String::new(),
            from: String::new(),
            to: String::new(),
            files: Vec::new(),
            note: None,
            selected: None,
            mask: Mask::On,
        }
    }
}

/// File of a diff. Paths and texts are not sanitized.
#[derive(Debug, Clone, Default)]
pub struct DiffFile {
    /// Path relative to the repository root.
    pub path: String,
    /// Source path of a renamed or copied file.
    pub old_path: Option<String>,
    /// Blob of the old side in hexadecimal; `None` if there is no old side, or if the file was left out.
    pub old_blob: Option<String>,
    /// Blob of the new side in hexadecimal; `None` if the file was left out.
    pub new_blob: Option<String>,
    /// Changed blocks from top to bottom; unknown for a file that was left out until its texts are read.
    pub blocks: Vec<ChangeBlock>,
    /// Findings in the order of their lines.
    pub findings: Vec<DiffFinding>,
    /// Reason why the file was left out of the review.
    pub left_out: Option<OmissionReason>,
    /// The snapshot does not have the changed content, because the file was too large or could not be read.
    pub is_unstored: bool,
    /// Time of the review: a file of the worktree that nobody has touched since has the content that the snapshot lacks.
    /// `None` if the worktree cannot have it.
    pub reviewed_at: Option<Time>,
    /// Inode of that file of the worktree at the time of the review, if it is known.
    pub inode: Option<u64>,
    /// The user has viewed the file with this content, or each of its changes.
    pub is_viewed: bool,
    /// Names of the changes of this path that the user has viewed, see [`DiffTexts::change_names`].
    pub viewed_changes: HashSet<String>,
}

impl DiffFile {
    /// Returns true if the texts that were read for another file of this path are those of this one: the same contents, left
    /// out of the review for the same reason. A content that the snapshot lacks is the same for one review only.
    pub fn has_same_texts(&self, other: &Self) -> bool {
        (&self.old_path, &self.old_blob, &self.new_blob) == (&other.old_path, &other.old_blob, &other.new_blob)
            && (self.left_out, self.is_unstored, self.reviewed_at)
                == (other.left_out, other.is_unstored, other.reviewed_at)
    }

    /// Returns a name of the file's content, for which the user's mark that it was viewed counts: the blob of the new
    /// side, else of the old side. A content that the snapshot lacks has no blob: its name is the time of the review.
    pub fn content_key(&self) -> String {
        if let Some(time) = self.reviewed_at {
            return name_unstored_content(time);
        }
        self.new_blob.clone().or_else(|| self.old_blob.as_ref().map(|blob| format!("-{blob}"))).unwrap_or_default()
    }

    /// Returns true if the file is new or deleted. One whose content the snapshot lacks has a new side all the same.
    pub fn has_one_side(&self) -> bool {
        let is_stored = self.left_out.is_none() && !self.is_unstored && self.reviewed_at.is_none();
        match (&self.old_blob, &self.new_blob) {
            (None, Some(_)) => self.blocks.iter().all(|block| block.old_lines == 0),
            (Some(_), None) => is_stored && self.blocks.iter().all(|block| block.new_lines == 0),
            _ => false,
        }
    }

    /// Returns the numbers of added and removed lines.
    pub fn count_lines(blocks: &[ChangeBlock]) -> (u32, u32) {
        blocks.iter().fold((0, 0), |(added, removed), block| (added + block.new_lines, removed + block.old_lines))
    }
}

/// Names the content of a file that the snapshot of a review lacks, by the time of the review.
pub fn name_unstored_content(reviewed_at: Time) -> String {
    format!("?{reviewed_at}")
}

/// Finding as a diff shows it. Lines are 1-based, inclusive, and belong to the new side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffFinding {
    /// Finding id.
    pub id: String,
    /// Urgency.
    pub priority: Priority,
    /// Class of the problem.
    pub kind: Kind,
    /// Newest status.
    pub status: FindingStatus,
    /// Lines of the anchor.
    pub lines: LineRange,
    /// Title on one line.
    pub title: String,
    /// Explanation; may be empty.
    pub explanation: String,
    /// Proposed change, if there is one.
    pub suggestion: Option<DiffSuggestion>,
}

/// Proposed change of a finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffSuggestion {
    /// Description in one sentence.
    pub text: String,
    /// Replaced lines with their new text, if the exact text is known.
    pub replacement: Option<(LineRange, String)>,
}

/// Lines that one side has in place of lines of the other side. Line numbers are 1-based; a side without lines starts at
/// the line before which the other side's lines stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangeBlock {
    /// First line of the old side.
    pub old: u32,
    /// Number of lines of the old side.
    pub old_lines: u32,
    /// First line of the new side.
    pub new: u32,
    /// Number of lines of the new side.
    pub new_lines: u32,
}

impl From<&Hunk> for ChangeBlock {
    fn from(hunk: &Hunk) -> Self {
        // A hunk without lines on a side names the line before the change.
        let first = |start: u32, lines: u32| if lines == 0 { start + 1 } else { start };
        Self {
            old: first(hunk.old_start, hunk.old_lines),
            old_lines: hunk.old_lines,
            new: first(hunk.new_start, hunk.new_lines),
            new_lines: hunk.new_lines,
        }
    }
}

/// Text split into lines. Line numbers are 1-based.
#[derive(Debug, Default)]
pub struct LineTable {
    text: String,
    /// End of each line in `text`, without the line end.
    ends: Vec<u32>,
}

impl LineTable {
    /// Splits a text at its line feeds. A text behind the last line feed is a line; an empty one is not.
    pub fn new(text: String) -> Self {
        let mut ends: Vec<u32> = memchr::memchr_iter(b'\n', text.as_bytes()).map(to_u32).collect();
        if !text.is_empty() && !text.ends_with('\n') {
            ends.push(to_u32(text.len()));
        }
        Self { text, ends }
    }

    /// Returns the number of lines.
    pub fn count(&self) -> u32 {
        to_u32(self.ends.len())
    }

    /// Returns a line without its line end.
    pub fn line(&self, number: u32) -> Option<&str> {
        let at = number.checked_sub(1)? as usize;
        let end = *self.ends.get(at)? as usize;
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before] as usize + 1);
        self.text.get(start..end)
    }

    /// Returns lines `from..to` (1-based, `to` exclusive) as far as they exist.
    pub fn lines(&self, from: u32, to: u32) -> impl Iterator<Item = &str> {
        (from..to.min(self.count() + 1)).filter_map(|number| self.line(number))
    }
}

fn to_u32(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// Side of a diff.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DiffPageSide {
    /// Text before the change.
    Old,
    /// Text after the change.
    New,
}

/// Changed parts of changed lines, as byte ranges, by line number.
#[derive(Debug, Default)]
pub struct ChangedWords {
    /// Old and new lines that belong together, both in ascending order; they face each other side by side.
    pub pairs: Vec<(u32, u32)>,
    /// Parts of lines of the old side.
    pub old: HashMap<u32, Vec<Range<usize>>>,
    /// Parts of lines of the new side.
    pub new: HashMap<u32, Vec<Range<usize>>>,
}

impl ChangedWords {
    /// Compares the lines of changed blocks.
    fn new(blocks: &[ChangeBlock], old: &LineTable, new: &LineTable) -> Self {
        let mut words = Self::default();
        for (old, new, (before, after)) in find_changed_words(blocks, old, new) {
            words.pairs.push((old, new));
            words.old.insert(old, before);
            words.new.insert(new, after);
        }
        words
    }

    /// Leaves out the parts that are only white space.
    fn without_space(mut self, old: &LineTable, new: &LineTable) -> Self {
        for (words, lines) in [(&mut self.old, old), (&mut self.new, new)] {
            for (line, parts) in words {
                let text = lines.line(*line).unwrap_or("");
                parts.retain(|part| text.get(part.clone()).is_some_and(|text| !text.trim().is_empty()));
            }
        }
        self
    }
}

/// Change of a text without that of white space.
#[derive(Debug, Default)]
pub struct ChangeWithoutSpace {
    /// Changed blocks.
    pub blocks: Vec<ChangeBlock>,
    /// Changed parts of the changed lines.
    pub words: ChangedWords,
}

/// Texts of a file, without control characters.
#[derive(Debug, Default)]
pub struct DiffTexts {
    /// Number of the reading, unique in the process; names the text for the highlighter.
    pub serial: u64,
    /// Lines of the old side.
    pub old: LineTable,
    /// Lines of the new side.
    pub new: LineTable,
    /// Changed blocks of a file that was left out of the review.
    pub found_blocks: Option<Vec<ChangeBlock>>,
    /// Names of the changed blocks, by which they are marked as viewed; empty before they are named.
    pub change_names: Vec<String>,
    /// Changed parts of the changed lines.
    pub words: ChangedWords,
    /// The change without that of white space, if it is another one.
    pub without_space: Option<ChangeWithoutSpace>,
    /// Declarations and headings of the new side by the lines that they enclose.
    pub enclosing: EnclosingLines,
    /// Text shown instead of lines, for a file that is not a text.
    pub note: Option<String>,
    /// Text shown above the lines: why the reviewer did not read them.
    pub caption: Option<String>,
}

impl DiffTexts {
    /// Compares two texts of a file within their changed blocks. `serial` names the texts; the path tells what a
    /// declaration looks like.
    pub fn new(serial: u64, path: &str, old: String, new: String, blocks: &[ChangeBlock]) -> Self {
        let mut texts = Self { serial, old: LineTable::new(old), new: LineTable::new(new), ..Self::default() };
        texts.enclosing = EnclosingLines::new(path, &texts.new);
        texts.words = ChangedWords::new(blocks, &texts.old, &texts.new);
        texts
    }

    /// Finds the change without that of white space. `before` and `after` are the texts with their secrets: two masked
    /// secrets may look the same.
    pub fn find_change_without_space(&mut self, blocks: &[ChangeBlock], before: &LineTable, after: &LineTable) {
        let kept = drop_space_changes(blocks, before, after);
        let words = ChangedWords::new(&kept, &self.old, &self.new).without_space(&self.old, &self.new);
        let is_same = kept == blocks && words.old == self.words.old && words.new == self.words.new;
        self.without_space = (!is_same).then_some(ChangeWithoutSpace { blocks: kept, words });
    }

    /// Names the changed blocks. `before` and `after` are the texts with their secrets.
    pub fn name_changes(&mut self, blocks: &[ChangeBlock], before: &LineTable, after: &LineTable) {
        self.change_names = name_changes(blocks, before, after);
    }

    /// Returns the lines of a side.
    pub fn side(&self, side: DiffPageSide) -> &LineTable {
        match side {
            DiffPageSide::Old => &self.old,
            DiffPageSide::New => &self.new,
        }
    }

    /// Returns the changed parts of a line, with or without those of white space.
    pub fn changed_words(&self, side: DiffPageSide, line: u32, ignores_space: bool) -> &[Range<usize>] {
        let change = self.without_space.as_ref().filter(|_| ignores_space);
        let words = change.map_or(&self.words, |change| &change.words);
        let words = match side {
            DiffPageSide::Old => &words.old,
            DiffPageSide::New => &words.new,
        };
        words.get(&line).map_or(&[], Vec::as_slice)
    }
}

/// Request of the diff for the thread that reads pages.
#[derive(Debug, Clone)]
pub enum DiffRequest {
    /// Reads the texts of a file.
    Read {
        /// Page for which they are read.
        page: Arc<DiffPage>,
        /// Index of the file.
        file: usize,
    },
    /// Finds the lines that moved between the files of a page.
    FindMoves(Arc<DiffPage>),
    /// Highlights a block of lines.
    Highlight {
        /// Path, whose extension tells the language.
        path: String,
        /// Texts of the file.
        texts: Arc<DiffTexts>,
        /// Side to highlight.
        side: DiffPageSide,
        /// Index of the block.
        block: u32,
    },
}

/// Highlighted lines of a text.
#[derive(Debug)]
pub struct TextHighlights {
    /// Serial number of the text.
    pub serial: u64,
    /// Highlighted side.
    pub side: DiffPageSide,
    /// Index of the block of [`HIGHLIGHT_BLOCK_LINES`] lines.
    pub block: u32,
    /// Spans of each line; empty if the language is unknown.
    pub spans: Vec<HighlightSpans>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_as_git_does() {
        for (text, lines) in [
            ("", &[][..]),
            ("\n", &[""]),
            ("a", &["a"]),
            ("a\n", &["a"]),
            ("a\nb", &["a", "b"]),
            ("a\n\nb\n", &["a", "", "b"]),
        ] {
            let table = LineTable::new(text.to_owned());
            assert_eq!(table.count() as usize, lines.len(), "{text:?}");
            assert_eq!(table.lines(1, u32::MAX).collect::<Vec<_>>(), lines, "{text:?}");
            assert_eq!((table.line(0), table.line(table.count() + 1)), (None, None), "{text:?}");
        }
    }

    #[test]
    fn a_changed_secret_is_a_change_although_it_looks_the_same() {
        let (old, new) = ("key = a1\n  b\n", "key = a2\nb\n");
        let block = ChangeBlock { old: 1, old_lines: 2, new: 1, new_lines: 2 };
        let mask = |text: &str| text.replace("a1", "«secret»").replace("a2", "«secret»");
        let mut texts = DiffTexts::new(1, "a.txt", mask(old), mask(new), &[block]);
        texts.find_change_without_space(&[block], &LineTable::new(old.into()), &LineTable::new(new.into()));
        let kept = texts.without_space.map(|change| change.blocks);
        assert_eq!(kept, Some(vec![ChangeBlock { old: 1, old_lines: 1, new: 1, new_lines: 1 }]));
    }

    #[test]
    fn new_and_deleted_files_have_one_side() {
        let block = |old_lines, new_lines| ChangeBlock { old: 1, old_lines, new: 1, new_lines };
        let file = |old: Option<&str>, new: Option<&str>, block| DiffFile {
            old_blob: old.map(str::to_owned),
            new_blob: new.map(str::to_owned),
            blocks: vec![block],
            ..DiffFile::default()
        };
        for (file, expected, title) in [
            (file(None, Some("1a"), block(0, 3)), true, "new"),
            (file(Some("1a"), None, block(3, 0)), true, "deleted"),
            (file(Some("1a"), Some("1b"), block(0, 3)), false, "lines were added"),
            (file(None, None, block(0, 3)), false, "left out: nobody knows"),
            (file(None, Some("1a"), block(1, 3)), false, "lines were removed"),
            (
                DiffFile { is_unstored: true, ..file(Some("1a"), None, block(3, 0)) },
                false,
                "too large for the snapshot",
            ),
        ] {
            assert_eq!(file.has_one_side(), expected, "{title}");
        }
    }

    #[test]
    fn a_content_that_git_lacks_counts_as_viewed_in_its_review_only() {
        let file = |second| DiffFile {
            old_blob: Some("1a".to_owned()),
            is_unstored: true,
            reviewed_at: Time::from_second(second).ok(),
            ..DiffFile::default()
        };
        assert_eq!(file(1).content_key(), file(1).content_key());
        assert_ne!(file(1).content_key(), file(2).content_key());
        let deleted = DiffFile { old_blob: Some("1a".to_owned()), ..DiffFile::default() };
        assert_eq!(deleted.content_key(), "-1a");
    }

    #[test]
    fn a_side_without_lines_starts_where_the_other_stands() {
        for (hunk, old, new) in [((3, 2, 3, 1), 3, 3), ((0, 0, 1, 5), 1, 1), ((4, 0, 5, 2), 5, 5), ((5, 2, 4, 0), 5, 5)]
        {
            let (old_start, old_lines, new_start, new_lines) = hunk;
            let block = ChangeBlock::from(&Hunk { old_start, old_lines, new_start, new_lines });
            assert_eq!((block.old, block.new), (old, new), "{hunk:?}");
        }
    }
}
