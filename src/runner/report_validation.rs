//! Holds what a model reports against the snapshot's files.

use std::collections::HashMap;
use std::rc::Rc;

use super::{Runner, RunnerError};
use crate::domain::{Finding, LineRange, ReportedProblem, RunId, RunRecord};
use crate::git::{Changeset, Repo};
use crate::index::chunk::chunk_file;
use crate::masking::Mask;
use crate::review::{FileText, ReportValidation, ScopeLines, apply_replacement, validate_report};
use crate::reviewers::analyzer;
use crate::syntax::language::Language;

/// Files that are kept at hand.
const MAX_CACHED_FILES: usize = 64;
/// Changed files that are read for the names of what was changed.
const MAX_SYMBOL_FILES: usize = 100;
/// Longer ones are not read for that. Bytes.
const MAX_SYMBOL_FILE_BYTES: usize = 1 << 20;

/// The snapshot, as far as it was looked at.
pub(super) struct ReportValidator {
    repo: Repo,
    run_id: RunId,
    commit: String,
    scope: ScopeLines,
    symbols: SymbolState,
    files: HashMap<String, Option<SnapshotFile>>,
}

/// Whether the scope knows the names of what was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SymbolState {
    NotRead,
    Read,
}

#[derive(Clone)]
struct SnapshotFile {
    text: Rc<str>,
    /// As findings quote it: without secrets, whatever is sent to the model.
    shown: Rc<FileText>,
}

impl ReportValidator {
    pub fn new(runner: &Runner, record: &RunRecord, change: &Changeset) -> Result<Self, RunnerError> {
        let lines = |file: &crate::git::FileChange| -> Vec<LineRange> {
            file.hunks.iter().map(|hunk| hunk.new_range()).collect()
        };
        let scope = ScopeLines::new(change.files.iter().map(|file| (file.path.clone(), lines(file))));
        let root = runner.repo.root().to_string_lossy().into_owned();
        Ok(Self {
            repo: Repo::discover(&runner.repo.root())?,
            run_id: record.run_id.clone(),
            commit: record.snapshot_commit.clone(),
            scope: scope.with_roots([root, record.worktree.clone()]),
            symbols: SymbolState::NotRead,
            files: HashMap::new(),
        })
    }

    /// What a report is worth. A suggestion whose result would not parse any more is kept in words only.
    pub fn validate(&mut self, report: &ReportedProblem) -> ReportValidation {
        // What a model was shown in spite of the mask, or made up, does not come to the store either.
        let report = mask_report(report);
        if self.symbols == SymbolState::NotRead && self.scope.is_outside(&report.path) {
            self.read_symbols();
        }
        let scope = std::mem::take(&mut self.scope);
        let run_id = self.run_id.clone();
        let mut examined = validate_report(&report, &scope, &run_id, |path| self.file(path).map(|file| file.shown));
        self.scope = scope;
        if let ReportValidation::Finding { finding, notes } = &mut examined
            && let Some(problem) = self.find_parse_problem(finding)
        {
            notes.push(problem);
            if let Some(suggestion) = &mut finding.suggestion {
                (suggestion.replacement, suggestion.lines) = (None, None);
            }
        }
        examined
    }

    /// Reads the names of what was changed, once a report about other code may have to name one of them.
    fn read_symbols(&mut self) {
        self.symbols = SymbolState::Read;
        let mut symbols = Vec::new();
        for (path, hunks) in self.scope.files().take(MAX_SYMBOL_FILES) {
            let Ok(Some(bytes)) = self.repo.file_at(&self.commit, path) else { continue };
            if bytes.len() > MAX_SYMBOL_FILE_BYTES {
                continue;
            }
            let text = String::from_utf8_lossy(&bytes);
            let chunks = chunk_file(path, &text, Language::detect(path, &bytes));
            let changed = chunks.into_iter().filter(|chunk| hunks.iter().any(|hunk| hunk.overlaps(chunk.lines)));
            symbols.extend(changed.flat_map(|chunk| [chunk.name, chunk.parent]));
        }
        self.scope = std::mem::take(&mut self.scope).with_symbols(symbols);
    }

    /// Why the replacement of a finding is no good.
    fn find_parse_problem(&mut self, finding: &Finding) -> Option<String> {
        let suggestion = finding.suggestion.as_ref()?;
        let replacement = suggestion.replacement.as_ref()?;
        let path = &finding.repo_relative_path;
        let before = self.file(path)?.text;
        let after = apply_replacement(&before, suggestion.lines.unwrap_or(finding.lines()), replacement);
        let parses = analyzer::has_no_new_syntax_errors(path, &before, &after);
        (!parses)
            .then(|| format!("{path}:{}: the suggested code would not parse; its words are kept", finding.line_start))
    }

    fn file(&mut self, path: &str) -> Option<SnapshotFile> {
        if let Some(file) = self.files.get(path) {
            return file.clone();
        }
        if self.files.len() >= MAX_CACHED_FILES {
            self.files.clear();
        }
        let file = self.repo.file_at(&self.commit, path).ok().flatten().map(|bytes| load_file(path, &bytes));
        self.files.insert(path.to_owned(), file.clone());
        file
    }
}

fn load_file(path: &str, bytes: &[u8]) -> SnapshotFile {
    let text = String::from_utf8_lossy(bytes);
    let masked = Mask::On.mask_text(Some(path), &text);
    let mut lines = masked.split('\n');
    let shown = FileText::with_hidden(text.as_bytes(), |line, _| {
        // A masked text has the lines of the text.
        let masked = lines.next()?.trim_end_matches('\r');
        let line = String::from_utf8_lossy(line);
        (masked != line.trim_end_matches(['\n', '\r'])).then(|| masked.to_owned())
    });
    SnapshotFile { text: text.as_ref().into(), shown: Rc::new(shown) }
}

fn mask_report(report: &ReportedProblem) -> ReportedProblem {
    let clean = |text: &str| Mask::On.mask_key_shapes(text).into_owned();
    ReportedProblem {
        title: clean(&report.title),
        explanation: clean(&report.explanation),
        suggestion: clean(&report.suggestion),
        replacement: report.replacement.as_deref().map(clean),
        ..report.clone()
    }
}
