//! Makes a fix from exact suggestions: applies each replacement if its lines are unchanged.

use std::collections::BTreeMap;

use super::fixer_worker::{FixAttempt, FixMaterial};
use crate::domain::{Finding, LineRange, UnfixedFinding};
use crate::git::{FileEdit, Hunk};
use crate::review;
use crate::runner::{Fixer, RunnerError};

/// A replacement in the snapshot of the fix.
struct ExactReplacement<'a> {
    lines: LineRange,
    new: &'a str,
    finding: &'a Finding,
}

/// Returns a finding's exact suggestion: the lines that it replaces, and the new text.
pub(super) fn exact_suggestion(finding: &Finding) -> Option<(LineRange, &str)> {
    let suggestion = finding.suggestion.as_ref()?;
    Some((suggestion.lines.unwrap_or(finding.lines()), suggestion.replacement.as_deref()?))
}

impl Fixer<'_> {
    /// Applies every exact suggestion to the snapshot's files. Leaves out findings without a suggestion, findings whose
    /// lines have changed since the report, and findings whose lines another suggestion replaces.
    pub(super) fn make_from_suggestions(&self, material: &FixMaterial) -> Result<FixAttempt, RunnerError> {
        let mut made = FixAttempt::default();
        let mut pieces: BTreeMap<&str, Vec<ExactReplacement<'_>>> = BTreeMap::new();
        for finding in &material.findings {
            match self.locate_replacement(finding, material)? {
                Ok(piece) => pieces.entry(&finding.repo_relative_path).or_default().push(piece),
                Err(reason) => made.left_out.push(to_unfixed(finding, reason)),
            }
        }
        for (path, mut pieces) in pieces {
            let Some(text) = self.read_text_at(&material.fix.snapshot_commit, path)? else {
                made.left_out.extend(pieces.iter().map(|piece| to_unfixed(piece.finding, "its file is no text")));
                continue;
            };
            pieces.sort_by_key(|piece| (piece.lines.start, piece.lines.end));
            let mut last = 0;
            pieces.retain(|piece| {
                let is_free = piece.lines.start > last;
                if is_free {
                    last = piece.lines.end;
                } else {
                    made.left_out.push(to_unfixed(piece.finding, "another suggestion replaces the same lines"));
                }
                is_free
            });
            let mut new = text;
            for piece in pieces.iter().rev() {
                new = review::apply_replacement(&new, piece.lines, piece.new);
            }
            made.changes.push((path.to_owned(), FileEdit::Write { content: new.into_bytes(), executable: false }));
        }
        Ok(made)
    }

    /// Locates the replacement in the fix's snapshot. The inner `Err` is the reason why that is impossible.
    fn locate_replacement<'a>(
        &self,
        finding: &'a Finding,
        material: &FixMaterial,
    ) -> Result<Result<ExactReplacement<'a>, &'static str>, RunnerError> {
        let Some((lines, new)) = exact_suggestion(finding) else { return Ok(Err("no exact suggestion comes with it")) };
        let Some(seen_in) = material.seen_in.get(&finding.finding_id) else { return Ok(Err("its snapshot is gone")) };
        let path = &finding.repo_relative_path;
        let commit = &material.fix.snapshot_commit;
        let (old, now) = (self.services.repo.blob_at(seen_in, path)?, self.services.repo.blob_at(commit, path)?);
        Ok(match (old, now) {
            (Some(old), Some(now)) if old == now => Ok(ExactReplacement { lines, new, finding }),
            (Some(old), Some(now)) => {
                let edits =
                    self.services.repo.diff_texts(&self.services.repo.blob(&old)?, &self.services.repo.blob(&now)?)?;
                let lines = shift_lines(lines, &edits);
                lines
                    .map(|lines| ExactReplacement { lines, new, finding })
                    .ok_or("its code has changed since it was reported")
            }
            _ => Err("its file is not in the snapshot"),
        })
    }

    /// Reads a file as text. Returns `None` if the file does not exist or is not UTF-8.
    pub(super) fn read_text_at(&self, commit: &str, path: &str) -> Result<Option<String>, RunnerError> {
        Ok(self.services.repo.file_at(commit, path)?.and_then(|bytes| String::from_utf8(bytes).ok()))
    }
}

fn to_unfixed(finding: &Finding, reason: &str) -> UnfixedFinding {
    UnfixedFinding { finding_id: finding.finding_id.clone(), reason: reason.to_owned() }
}

/// Shifts lines past edits that do not touch them. Returns `None` if an edit touches them.
fn shift_lines(lines: LineRange, edits: &[Hunk]) -> Option<LineRange> {
    let mut by = 0_i64;
    for edit in edits {
        let first = if edit.old_lines == 0 { edit.old_start + 1 } else { edit.old_start };
        let behind = first + edit.old_lines;
        if first > lines.end {
            break;
        }
        // An insertion between two of the lines touches them, too.
        if behind > lines.start {
            return None;
        }
        by += i64::from(edit.new_lines) - i64::from(edit.old_lines);
    }
    let at = |line: u32| u32::try_from(i64::from(line) + by).ok();
    Some(LineRange::new(at(lines.start)?, at(lines.end)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_follow_edits_that_do_not_touch_them() {
        let edit = |old_start, old_lines, new_start, new_lines| Hunk { old_start, old_lines, new_start, new_lines };
        for (edits, expected) in [
            (vec![], Some((5, 6))),
            (vec![edit(1, 0, 2, 3)], Some((8, 9))),
            (vec![edit(2, 2, 2, 1)], Some((4, 5))),
            // Directly above and directly below.
            (vec![edit(4, 0, 5, 1)], Some((6, 7))),
            (vec![edit(4, 1, 4, 1)], Some((5, 6))),
            (vec![edit(6, 0, 7, 1)], Some((5, 6))),
            (vec![edit(7, 1, 7, 4)], Some((5, 6))),
            (vec![edit(5, 0, 6, 1)], None),
            (vec![edit(5, 1, 5, 1)], None),
            (vec![edit(6, 1, 6, 1)], None),
            (vec![edit(3, 4, 3, 4)], None),
        ] {
            let lines = shift_lines(LineRange::new(5, 6), &edits).map(|lines| (lines.start, lines.end));
            assert_eq!(lines, expected, "{edits:?}");
        }
    }
}
