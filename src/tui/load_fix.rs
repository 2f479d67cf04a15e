//! Reads the patch of a fix for the detail.

use super::fixes::Fixes;
use super::load::{HIGHLIGHTED_DIFF_LINES, HIGHLIGHTED_UP_TO, Loader, MAX_DIFF_LINES};
use super::loaded::{Diff, DiffHunk, DiffLine, FixPage, Loaded, Side, Spans};
use crate::domain::patch::{FilePatch, Origin, PatchHunk, parse};
use crate::domain::{Fix, text};

impl Loader {
    /// The fix of a finding with its patch, coloured where the fixed code is still there.
    pub(super) fn fix(&mut self, finding: &str) -> Result<Loaded, String> {
        let fixes = Fixes::new(self.store.fixes().map_err(|error| error.to_string())?);
        let fix = fixes.of(finding).ok_or("there is no fix of this finding")?.clone();
        let patch = self.store.patch(&fix.fix_id).map_err(|error| error.to_string())?.ok_or("the patch is gone")?;
        let files = parse(&patch).ok_or("the patch is damaged")?;
        let (mut diffs, mut lines) = (Vec::new(), 0);
        for (file, patch) in fix.files.iter().zip(&files) {
            if lines > MAX_DIFF_LINES {
                let path = "more files follow; `revdeck fix show` prints all of them".to_owned();
                diffs.push(Diff { path, ..Diff::default() });
                break;
            }
            let mut diff = difference(&fix, &file.path, patch);
            lines += diff.hunks.iter().map(|hunk| hunk.lines.len()).sum::<usize>();
            let last = diff.hunks.last().map_or(0, |hunk| (hunk.new_start + hunk.new_lines) as usize);
            if lines <= HIGHLIGHTED_DIFF_LINES && last <= HIGHLIGHTED_UP_TO {
                self.colour(&fix.fixed_commit, &file.path, &mut diff.hunks, last);
            }
            diffs.push(diff);
        }
        Ok(Loaded::Fix(Box::new(FixPage { fix, diffs })))
    }
}

fn difference(fix: &Fix, path: &str, patch: &FilePatch) -> Diff {
    Diff {
        path: text::one_line(path).into_owned(),
        from: fix.snapshot_commit.clone(),
        to: fix.fixed_commit.clone(),
        hunks: patch.hunks.iter().map(hunk).collect(),
        ..Diff::default()
    }
}

fn hunk(hunk: &PatchHunk) -> DiffHunk {
    let (mut old, mut new) = (hunk.old_start, hunk.new_start);
    let count = |origin| u32::try_from(hunk.side(origin).count()).unwrap_or(u32::MAX);
    let lines = hunk.lines.iter().map(|line| {
        let (side, numbers) = match line.origin {
            Origin::Kept => (Side::Both, (Some(old), Some(new))),
            Origin::Removed => (Side::Old, (Some(old), None)),
            Origin::Added => (Side::New, (None, Some(new))),
        };
        old += u32::from(numbers.0.is_some());
        new += u32::from(numbers.1.is_some());
        let shown = text::lines(&String::from_utf8_lossy(&line.text), 4);
        DiffLine { side, old: numbers.0, new: numbers.1, text: shown.replace('\n', " "), spans: Spans::new() }
    });
    let lines = lines.collect();
    DiffHunk {
        old_start: hunk.old_start,
        new_start: hunk.new_start,
        old_lines: count(Origin::Removed),
        new_lines: count(Origin::Added),
        lines,
    }
}
