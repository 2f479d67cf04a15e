//! Collects what a reviewer is shown of its finding: the report, the code and the change of the run's snapshot, and
//! earlier questions. Secrets are masked in whole files, before lines are cut out.

use super::{AskError, Asker};
use crate::context::diff::{DiffRow, build_diff_rows};
use crate::domain::{
    Finding, FindingId, FindingQuestion, LineRange, QuestionOutcome, QuestionRequest, RunId, RunRecord, text,
};
use crate::masking::Mask;
use crate::masking::secret_files::is_secret_file;
use crate::runner::RunnerError;
use crate::store::StoreView;

/// Lines of code on each side of a finding, and the most lines of the finding itself; the first that fits is shown.
/// Own choice: a function with its neighbours.
const EXCERPTS: [(u32, u32); 4] = [(60, 200), (20, 200), (5, 60), (0, 20)];
/// Longest line of code that is shown, in characters. Own choice: longer lines are generated.
const MAX_LINE_CHARS: usize = 400;
/// Lines of the change on each side of a finding.
const HUNK_CONTEXT_LINES: u32 = 30;
/// Unchanged lines around each hunk, as in git.
const DIFF_CONTEXT_LINES: u32 = 3;

/// A finding as it was reported, with its run and the earlier questions about it.
pub(super) struct QuestionMaterial {
    /// Finding that stands for the problem: that of a panel's list, if it has the report under another id.
    pub listed: FindingId,
    /// The report.
    pub finding: Finding,
    /// The run that reported it.
    pub run: RunRecord,
    /// Oldest first.
    pub earlier: Vec<FindingQuestion>,
}

/// Limits of the parts, in tokens, and how tokens are counted.
pub(super) struct MaterialLimits<'a> {
    pub code: u64,
    pub hunk: u64,
    pub earlier: u64,
    pub count: &'a dyn Fn(&str) -> u64,
}

impl Asker<'_> {
    /// Loads a finding as its last run reported it. Of a report that a panel lists under another id, this is the run of the
    /// member.
    ///
    /// # Errors
    ///
    /// If the output or the snapshot of the run is gone, or the store fails.
    pub(super) fn load_question_material(&self, id: &FindingId) -> Result<QuestionMaterial, RunnerError> {
        let store = &self.services.store;
        let no_details = || AskError::NoDetails(id.clone());
        let view = store.view()?;
        let index = view.finding_index(id.as_str()).ok_or_else(no_details)?;
        let last: RunId = view.finding(index).last_run.parse().map_err(|_| no_details())?;
        let listed = store.follow_merged(&view, std::slice::from_ref(id))?.pop();
        self.load_report(&view, (&last, id), listed.unwrap_or_else(|| id.clone()))
    }

    /// Loads what a recorded question is about: the report that it names, as the recorded run reported it.
    ///
    /// # Errors
    ///
    /// As [`Self::load_question_material`].
    pub(super) fn load_asked_material(&self, asked: &QuestionRequest) -> Result<QuestionMaterial, RunnerError> {
        match &asked.reported_as {
            Some(report) => {
                let view = self.services.store.view()?;
                self.load_report(&view, (&asked.run_id, report), asked.finding_id.clone())
            }
            None => self.load_question_material(&asked.finding_id),
        }
    }

    fn load_report(
        &self,
        view: &StoreView,
        (run, id): (&RunId, &FindingId),
        listed: FindingId,
    ) -> Result<QuestionMaterial, RunnerError> {
        let store = &self.services.store;
        let no_details = || AskError::NoDetails(id.clone());
        let finding = store.finding_in_run(run, id)?.ok_or_else(no_details)?;
        let run = store.run(run)?.ok_or_else(no_details)?;
        if self.services.repo.file_at(&run.subject.snapshot_commit, &finding.repo_relative_path).is_err() {
            return Err(AskError::NoSnapshot(id.clone()).into());
        }
        let earlier = store.questions_about(view, &listed)?;
        Ok(QuestionMaterial { listed, finding, run, earlier })
    }

    /// Returns the code around the finding with line numbers; empty if the file is no text.
    pub(super) fn read_code(&self, material: &QuestionMaterial, mask: Mask, limits: &MaterialLimits<'_>) -> String {
        let path = &material.finding.repo_relative_path;
        if is_secret_file(path) {
            return "not shown: the name of the file says that it holds secrets".to_owned();
        }
        let Ok(Some(bytes)) = self.services.repo.file_at(&material.run.subject.snapshot_commit, path) else {
            return String::new();
        };
        let Ok(content) = String::from_utf8(bytes) else { return String::new() };
        let masked = mask.mask_text(Some(path), &content);
        let lines: Vec<&str> = masked.lines().collect();
        let excerpts =
            EXCERPTS.iter().map(|(context, most)| cut_excerpt(&lines, material.finding.lines(), *context, *most));
        let mut shown = String::new();
        for excerpt in excerpts {
            shown = excerpt;
            if (limits.count)(&shown) <= limits.code {
                break;
            }
        }
        shown
    }

    /// Returns the part of the run's diff at the finding; empty if the change does not touch it, or it cannot be read.
    pub(super) fn read_hunk(&self, material: &QuestionMaterial, mask: Mask, limits: &MaterialLimits<'_>) -> String {
        let subject = &material.run.subject;
        let path = &material.finding.repo_relative_path;
        // Without a base, the diff is the whole file.
        if subject.base_commit.is_empty() || is_secret_file(path) {
            return String::new();
        }
        let (base, snapshot) = (&subject.base_commit, &subject.snapshot_commit);
        let Ok(change) = self.services.repo.compute_changeset(base, snapshot, &self.services.filter()) else {
            return String::new();
        };
        let Some(file) = change.files.iter().find(|file| file.path == *path) else { return String::new() };
        let Ok(rows) = build_diff_rows(&self.services.repo, file, DIFF_CONTEXT_LINES, mask) else {
            return String::new();
        };
        let hunk = cut_hunk(&rows, material.finding.lines());
        if (limits.count)(&hunk) > limits.hunk { "not shown: it is too long".to_owned() } else { hunk }
    }
}

impl QuestionMaterial {
    /// Returns the id of the report, if a panel lists its problem under another one.
    pub fn reported_as(&self) -> Option<&FindingId> {
        Some(&self.finding.finding_id).filter(|id| **id != self.listed)
    }

    /// Returns the names of the reviewers that report the finding, each once: the one whose words it has first. The run of
    /// a panel has several, and none of them is the panel; it has none for a secret that only revdeck's own search found.
    pub fn reporters(&self) -> Vec<&str> {
        if self.finding.voices.is_empty() {
            return vec![self.run.reviewed_by.name.as_str()];
        }
        let mut names: Vec<&str> = Vec::new();
        for voice in self.finding.voices_own_first().filter(|voice| !voice.is_secret_scan()) {
            if !names.contains(&voice.reviewer.as_str()) {
                names.push(&voice.reviewer);
            }
        }
        names
    }

    /// Describes the finding as it was reported.
    pub fn describe_finding(&self) -> String {
        let Finding { kind, priority, severity, confidence, repo_relative_path: path, line_start, line_end, .. } =
            &self.finding;
        let mut said = text::sanitize_line(&format!(
            "{priority} {kind} at {path}:{line_start}-{line_end}, severity {severity}, confidence {confidence}"
        ))
        .into_owned();
        let mut push = |name: &str, text: &str| {
            if !text.trim().is_empty() {
                said.push_str(&format!("\n{name}:\n{}", text::sanitize_lines(text.trim_end(), 4)));
            }
        };
        push("Title", &self.finding.title);
        push("Explanation", &self.finding.explanation);
        push("Quoted code", &self.finding.quoted_code);
        if let Some(suggestion) = &self.finding.suggestion {
            push("Suggestion", &suggestion.text);
            push("Suggested code", suggestion.replacement.as_deref().unwrap_or_default());
        }
        said
    }

    /// Describes the newest earlier questions that fit, oldest first.
    pub fn describe_earlier(&self, limits: &MaterialLimits<'_>) -> String {
        let mut told: Vec<String> = Vec::new();
        let mut tokens = 0;
        for line in self.earlier.iter().rev() {
            let QuestionOutcome::Answer(answer) = &line.outcome else { continue };
            let one = format!(
                "Question: {}\nYour answer ({}): {}\n",
                line.request.question,
                answer.verdict,
                answer.text.replace('\n', "\n  ")
            );
            tokens += (limits.count)(&one);
            if tokens > limits.earlier {
                break;
            }
            told.push(one);
        }
        told.reverse();
        told.join("\n")
    }
}

/// Returns the lines of a finding with `context` lines on each side and at most `most` lines of the finding itself, with
/// line numbers (1-based).
fn cut_excerpt(lines: &[&str], finding: LineRange, context: u32, most: u32) -> String {
    let first = finding.start.saturating_sub(context).max(1);
    let end = finding.end.min(finding.start.saturating_add(most.saturating_sub(1)));
    let last = end.saturating_add(context) as usize;
    let shown = (1..).zip(lines).skip(first as usize - 1).take_while(|(number, _)| *number <= last);
    shown.map(|(number, line)| format!("{number:>5}  {}\n", shorten_line(line))).collect()
}

/// Returns the rows of the hunks that touch the finding, near its lines.
fn cut_hunk(rows: &[DiffRow], finding: LineRange) -> String {
    let near = finding.start.saturating_sub(HUNK_CONTEXT_LINES)..=finding.end.saturating_add(HUNK_CONTEXT_LINES);
    let mut shown = String::new();
    for block in rows.chunk_by(|_, next| !next.is_header) {
        // Removed lines have no number: they stand at the line before them.
        let mut at = block.iter().find_map(|row| row.new_line).unwrap_or(finding.start);
        let placed: Vec<(u32, &DiffRow)> = block
            .iter()
            .map(|row| {
                at = row.new_line.unwrap_or(at);
                (at, row)
            })
            .collect();
        if !placed.iter().any(|(at, _)| (finding.start..=finding.end).contains(at)) {
            continue;
        }
        for (_, row) in placed.iter().filter(|(at, row)| row.is_header || near.contains(at)) {
            shown.push_str(&shorten_line(&row.text));
            shown.push('\n');
        }
    }
    shown
}

fn shorten_line(line: &str) -> String {
    let clean = text::sanitize_line(line);
    match clean.char_indices().nth(MAX_LINE_CHARS) {
        Some((at, _)) => format!("{} ...", &clean[..at]),
        None => clean.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_has_the_finding_its_neighbours_and_no_endless_line() {
        let long = "x".repeat(MAX_LINE_CHARS + 9);
        let lines = ["a", "b", "c", &long, "e"];
        assert_eq!(cut_excerpt(&lines, LineRange::new(2, 2), 1, 9), "    1  a\n    2  b\n    3  c\n");
        assert_eq!(cut_excerpt(&lines, LineRange::new(1, 5), 0, 2), "    1  a\n    2  b\n");
        assert!(cut_excerpt(&lines, LineRange::new(4, 4), 0, 1).len() < MAX_LINE_CHARS + 20);
        assert_eq!(cut_excerpt(&lines, LineRange::new(9, 12), 1, 9), "", "behind the end");
    }

    #[test]
    fn only_the_hunk_at_the_finding_is_shown() {
        let row = |text: &str, new_line: Option<u32>| DiffRow {
            text: text.to_owned(),
            is_header: text.starts_with("@@"),
            hunk: None,
            new_line,
        };
        let rows = [
            row("@@ -1 +1 @@", None),
            row("-old", None),
            row("+one", Some(1)),
            row("@@ -50 +50,60 @@", None),
            row("+far", Some(10)),
            row("-gone", None),
            row("+here", Some(50)),
        ];
        assert_eq!(cut_hunk(&rows, LineRange::new(50, 51)), "@@ -50 +50,60 @@\n+here\n");
        assert_eq!(cut_hunk(&rows, LineRange::new(1, 1)), "@@ -1 +1 @@\n-old\n+one\n");
        assert_eq!(cut_hunk(&rows, LineRange::new(30, 31)), "");
    }
}
