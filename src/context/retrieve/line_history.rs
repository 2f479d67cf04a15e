//! History of the lines of a file: which commits changed them, and how long ago.
//!
//! - Pure. Commits are ordered by time, newest first.

use crate::domain::LineRange;
use crate::git::Hunk;
use crate::index::history::{PastFile, Touch};

/// Returns the position of the last commit that touched one of `lines`, in the file's commits (newest first). Returns
/// `None` if no commit did, or if an earlier position is behind a commit without known lines. Merges are skipped, as in
/// [`compute_line_history`].
pub fn find_last_touch<'a>(lines: LineRange, commits: impl Iterator<Item = &'a PastFile>) -> Option<usize> {
    let (mut first, mut last) = (i64::from(lines.start), i64::from(lines.end));
    for (age, file) in commits.enumerate() {
        if file.touch == Touch::Added {
            return Some(age);
        }
        if file.hunks.is_empty() {
            return None;
        }
        let mut shift = 0;
        for hunk in &file.hunks {
            let (start, lines) = (i64::from(hunk.new_start), i64::from(hunk.new_lines));
            // A hunk that only removes lines names the line before them.
            let (touches, is_before) = match lines {
                0 => (start >= first && start < last, start < first),
                _ => (start <= last && start + lines > first, start + lines <= first),
            };
            if touches {
                return Some(age);
            }
            if is_before {
                shift += i64::from(hunk.old_lines) - lines;
            }
        }
        (first, last) = (first + shift, last + shift);
    }
    None
}

/// Recency-weighted commit history of a line.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LineHistory {
    /// Frequency and recency of its changes.
    pub changed: f32,
    /// The same for commits that also changed given files.
    pub together: f32,
    /// The same for commits whose words are similar to the task's words.
    pub alike: f32,
    /// Recency of its last change: 1 for the file's latest commit, falling towards 0.
    pub latest: f32,
}

/// Commit of a file with its relation to the task.
#[derive(Debug, Clone, Copy)]
pub struct FileCommit<'a> {
    pub file: &'a PastFile,
    /// Number of files that the commit changed.
    pub size: usize,
    pub together: f32,
    pub alike: f32,
}

/// Most commits of a file that are followed back.
const MAX_COMMITS_PER_FILE: usize = 40;

/// Computes the history of each line of a file with `lines` lines.
///
/// Compares each commit's hunks with the lines as they were then, newest commit first, and maps the lines back through
/// the hunks. Merges are skipped, so positions may be off by the lines that merges moved.
pub fn compute_line_history(lines: u32, commits: &[FileCommit<'_>]) -> Vec<LineHistory> {
    let mut past = vec![LineHistory::default(); lines as usize];
    // 1-based number of each line at the current commit; 0 if the line did not exist.
    let mut places: Vec<i64> = (1..=i64::from(lines)).collect();
    for (age, commit) in commits.iter().take(MAX_COMMITS_PER_FILE).enumerate() {
        let recent = 0.5f32.powf(age as f32 / 10.0);
        let focus = 1.0 / (1.0 + commit.size as f32 / 10.0);
        let changed: u32 = commit.file.hunks.iter().map(|hunk| hunk.new_lines + hunk.old_lines).sum();
        let dense = 1.0 / (changed.max(1) as f32).sqrt();
        let credit = |line: &mut LineHistory, part: f32| {
            line.changed += part * recent * focus;
            line.together += part * commit.together * focus;
            if part == 1.0 {
                line.alike += commit.alike * dense;
                if line.latest == 0.0 {
                    line.latest = recent;
                }
            }
        };
        map_lines_back(&mut places, &commit.file.hunks, |line, part| credit(&mut past[line], part));
    }
    past
}

/// Maps line numbers back to before a commit's hunks. Both lists are sorted, so the time is linear in their lengths.
/// Calls `touched` with the index of the line and the share of [`map_line_back`].
fn map_lines_back(places: &mut [i64], hunks: &[Hunk], mut touched: impl FnMut(usize, f32)) {
    let (mut ahead, mut shift, mut line) = (hunks, 0, 0);
    while let Some(place) = places.get(line).copied() {
        while let [hunk, others @ ..] = ahead
            && last_touched(hunk) < place
        {
            shift += i64::from(hunk.old_lines) - i64::from(hunk.new_lines);
            ahead = others;
        }
        let next = ahead.first().map_or(i64::MAX, first_touched);
        if place >= next {
            places[line] = map_line_back(place, shift, ahead, |part| touched(line, part));
            line += 1;
            continue;
        }
        // Most lines are between hunks.
        let apart = places[line..].iter().take_while(|place| **place < next).count();
        for place in places[line..line + apart].iter_mut().filter(|place| **place > 0) {
            *place += shift;
        }
        line += apart;
    }
}

/// Returns the first line for which [`map_line_back`] may report a touch by the hunk.
fn first_touched(hunk: &Hunk) -> i64 {
    (i64::from(hunk.new_start) - 1).max(1)
}

/// Returns the last line for which [`map_line_back`] may report a touch by the hunk.
fn last_touched(hunk: &Hunk) -> i64 {
    i64::from(hunk.new_start) + i64::from(hunk.new_lines.max(1))
}

/// Maps one line back to before a commit's hunks; returns 0 if the line did not exist. `shift` is the offset from the
/// hunks above. Calls `touched` with 1 for a change of the line and 0.5 for a change next to it.
fn map_line_back(place: i64, mut shift: i64, hunks: &[Hunk], mut touched: impl FnMut(f32)) -> i64 {
    for hunk in hunks {
        let (new_start, new_lines) = (i64::from(hunk.new_start), i64::from(hunk.new_lines));
        let (old_start, old_lines) = (i64::from(hunk.old_start), i64::from(hunk.old_lines));
        if new_lines == 0 {
            if place == new_start || place == new_start + 1 {
                touched(1.0);
            }
            if place <= new_start {
                break;
            }
            shift += old_lines;
            continue;
        }
        if place < new_start {
            if place == new_start - 1 && old_lines == 0 {
                touched(0.5);
            }
            break;
        }
        if place < new_start + new_lines {
            touched(1.0);
            return match old_lines {
                0 => 0,
                _ => old_start + ((place - new_start) * old_lines / new_lines).min(old_lines - 1),
            };
        }
        if place == new_start + new_lines && old_lines == 0 {
            touched(0.5);
        }
        shift += old_lines - new_lines;
    }
    place + shift
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::index::history::PathId;

    /// Generates ordered hunks, each `gap` unchanged lines after the previous one.
    fn hunks(shapes: &[(u32, u32, u32)]) -> Vec<Hunk> {
        let (mut old, mut new) = (1, 1);
        let hunk = |(gap, old_lines, new_lines): &(u32, u32, u32)| {
            (old, new) = (old + gap, new + gap);
            let start = |at: u32, lines: u32| if lines == 0 { at - 1 } else { at };
            let (old_start, new_start) = (start(old, *old_lines), start(new, *new_lines));
            (old, new) = (old + old_lines, new + new_lines);
            Hunk { old_start, old_lines: *old_lines, new_start, new_lines: *new_lines }
        };
        shapes.iter().filter(|(_, old, new)| old + new > 0).map(hunk).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn lines_that_are_followed_together_are_where_each_is_by_itself(
            shapes in proptest::collection::vec((0..4u32, 0..4u32, 0..4u32), 0..12),
        ) {
            let hunks = hunks(&shapes);
            let mut places: Vec<i64> = (0..60).collect();
            let mut touches = Vec::new();
            map_lines_back(&mut places, &hunks, |line, part| touches.push((line, part)));
            let mut alone = Vec::new();
            for (line, place) in places.iter().enumerate().skip(1) {
                prop_assert_eq!(map_line_back(line as i64, 0, &hunks, |part| alone.push((line, part))), *place);
            }
            prop_assert_eq!(touches, alone);
        }
    }

    #[test]
    fn as_many_hunks_as_lines_take_no_longer_than_lines() {
        let shapes = vec![(1, 1, 1); 50_000];
        let file = PastFile { path: PathId(0), touch: Touch::Modified, hunks: hunks(&shapes) };
        let commit = FileCommit { file: &file, size: 1, together: 1.0, alike: 0.0 };
        let past = compute_line_history(100_000, &[commit; MAX_COMMITS_PER_FILE]);
        assert_eq!(past.iter().filter(|line| line.changed > 0.0).count(), 50_000);
    }
}
