//! Reads the patch of a fix for the detail pane.

use super::fixes::FixIndex;
use super::page_data::{DiffPageHunk, DiffPageLine, DiffSide, FileDiffPage, FixPage, HighlightSpans, PageData};
use super::page_loader::{MAX_DIFF_LINES, MAX_HIGHLIGHTED_DIFF_LINES, MAX_HIGHLIGHTED_LINE, PageLoader};
use crate::domain::patch::{FilePatch, PatchHunk, PatchLineKind, parse_patch};
use crate::domain::{Fix, text};

impl PageLoader {
    /// Loads the fix of a finding with its patch, highlighted if the fixed commit still exists.
    pub(super) fn load_fix(&mut self, finding: &str) -> Result<PageData, String> {
        let fixes = FixIndex::new(self.store.fixes().map_err(|error| error.to_string())?);
        let fix = fixes.for_finding(finding).ok_or("there is no fix of this finding")?.clone();
        let patch = self.store.patch(&fix.fix_id).map_err(|error| error.to_string())?.ok_or("the patch is gone")?;
        let files = parse_patch(&patch).ok_or("the patch is damaged")?;
        let (mut diffs, mut lines) = (Vec::new(), 0);
        for (file, patch) in fix.files.iter().zip(&files) {
            if lines > MAX_DIFF_LINES {
                let path = "more files follow; `revdeck fix show` prints all of them".to_owned();
                diffs.push(FileDiffPage { path, ..FileDiffPage::default() });
                break;
            }
            let mut diff = build_diff(&fix, &file.path, patch);
            lines += diff.hunks.iter().map(|hunk| hunk.lines.len()).sum::<usize>();
            let last = diff.hunks.last().map_or(0, |hunk| (hunk.new_start + hunk.new_lines) as usize);
            if lines <= MAX_HIGHLIGHTED_DIFF_LINES && last <= MAX_HIGHLIGHTED_LINE {
                self.highlight_hunks(&fix.fixed_commit, &file.path, &mut diff.hunks, last);
            }
            diffs.push(diff);
        }
        Ok(PageData::Fix(Box::new(FixPage { fix, diffs })))
    }
}

fn build_diff(fix: &Fix, path: &str, patch: &FilePatch) -> FileDiffPage {
    FileDiffPage {
        path: text::sanitize_line(path).into_owned(),
        from: fix.snapshot_commit.clone(),
        to: fix.fixed_commit.clone(),
        hunks: patch.hunks.iter().map(build_hunk).collect(),
        ..FileDiffPage::default()
    }
}

fn build_hunk(hunk: &PatchHunk) -> DiffPageHunk {
    let (mut old, mut new) = (hunk.old_start, hunk.new_start);
    let count = |origin| u32::try_from(hunk.lines_on_side(origin).count()).unwrap_or(u32::MAX);
    let lines = hunk.lines.iter().map(|line| {
        let (side, numbers) = match line.kind {
            PatchLineKind::Context => (DiffSide::Both, (Some(old), Some(new))),
            PatchLineKind::Removed => (DiffSide::Old, (Some(old), None)),
            PatchLineKind::Added => (DiffSide::New, (None, Some(new))),
        };
        old += u32::from(numbers.0.is_some());
        new += u32::from(numbers.1.is_some());
        let shown = text::sanitize_lines(&String::from_utf8_lossy(&line.text), 4);
        DiffPageLine {
            side,
            old: numbers.0,
            new: numbers.1,
            text: shown.replace('\n', " "),
            spans: HighlightSpans::new(),
        }
    });
    let lines = lines.collect();
    DiffPageHunk {
        old_start: hunk.old_start,
        new_start: hunk.new_start,
        old_lines: count(PatchLineKind::Removed),
        new_lines: count(PatchLineKind::Added),
        lines,
    }
}
