//! Selects the pieces that may be sent: code by its rank, and the pieces that a task always gets.

use super::code_pieces::{mark_certain_pieces, mark_used_types};
use super::explanation::explain_file_score;
use super::query_step::SearchSpace;
use super::rank_step::RankedCode;
use super::{BuildError, ContextBuilder, SplitTask, build_code_pieces, is_likely, standalone_piece};
use crate::context::annotations::{build_untested_piece, find_untested_functions};
use crate::context::enclosing_scope::{LinesInDiff, build_enclosing_pieces};
use crate::context::file_analysis::FileVersion;
use crate::context::focus::build_focus_pieces;
use crate::context::keyword_snippets;
use crate::context::mentions::{MentionQuery, mark_files};
use crate::context::pack::{ContextFilter, ContextPiece, Need, SectionKind, UntestedFunction};
use crate::context::project_documents::list_project_documents;
use crate::context::repo_outline::{ProjectDocuments, build_repo_outline};
use crate::context::retrieve::RankedFile;
use crate::context::summaries::build_summaries;
use crate::context::task_text::fit_task_text;
use crate::context::test_coverage::CoverageReports;
use crate::domain::LineRange;
use crate::domain::text::sanitize_line;
use crate::index::chunk::MAX_TOKENS_PER_CHUNK;
use crate::index::vocabulary::Vocabulary;

/// Maximum tokens of the focus, and of the code that encloses the change if there is no focus. Each is also limited to
/// the budget divided by [`FOCUS_BUDGET_DIVISOR`], an eighth. The pieces marked in a file that the task mentions have
/// the same limit.
const MAX_FOCUS_TOKENS: u32 = 2_000;
pub(super) const FOCUS_BUDGET_DIVISOR: u32 = 8;
/// Divisor of the budget: a mentioned declaration larger than a quarter, or too long for a chunk, is sent as its head
/// only.
const WHOLE_DECLARATION_BUDGET_DIVISOR: u32 = 4;
/// Divisor of the budget for the list of changed functions that no test reaches: a sixteenth.
const UNTESTED_BUDGET_DIVISOR: u32 = 16;
/// Divisor of the budget for the text of the task: a quarter. The requester already knows this text.
pub const TASK_BUDGET_DIVISOR: u32 = 4;

/// Pieces that may be sent, and the facts about them that the packing reports.
pub(super) struct Selection {
    pub pieces: Vec<ContextPiece>,
    /// Paths and lines of the pieces in focus.
    pub in_focus: Vec<(String, LineRange)>,
    pub coverage: CoverageReports,
    /// Changed functions that no test reaches.
    pub untested: Vec<UntestedFunction>,
}

impl ContextBuilder<'_> {
    /// Selects the pieces, those that must be sent first.
    pub(super) fn select(
        &mut self,
        task: &SplitTask,
        space: &SearchSpace<'_>,
        ranked: &RankedCode,
        vocabulary: &Vocabulary,
        leading_pieces: Vec<ContextPiece>,
    ) -> Result<Selection, BuildError> {
        let (budget, count) = (self.question.budget, self.count);
        let code = self.select_code(task, space, ranked, vocabulary)?;
        let mut pieces = leading_pieces;
        let shown = self.add_task_text(task, &mut pieces);
        let coverage = CoverageReports::find(self.repo, &space.tree.listing.entries, self.question.folder);
        let untested = self.find_untested(task, space, &coverage);
        pieces.extend(build_untested_piece(&untested, budget / UNTESTED_BUDGET_DIVISOR, count));
        let focus = self.select_focus(task, space);
        let in_focus = focus.iter().filter_map(|piece| Some((piece.path.clone(), piece.lines?))).collect();
        pieces.extend(focus);
        if self.sends_enclosing_lines(task) {
            let sources = (space.files.as_slice(), self.analyzer);
            let changes = self.shown_changes(task);
            pieces.extend(build_enclosing_pieces(changes, &shown, sources, self.max_focus_tokens(), count));
        }
        pieces.extend(self.outline_tree(task, space));
        pieces.extend(code);
        Ok(Selection { pieces, in_focus, coverage, untested })
    }

    /// Returns the maximum tokens of the focus; see [`MAX_FOCUS_TOKENS`].
    fn max_focus_tokens(&self) -> u32 {
        MAX_FOCUS_TOKENS.min(self.question.budget / FOCUS_BUDGET_DIVISOR)
    }

    /// Selects pieces of ranked and of mentioned code, and summaries of the large ones.
    fn select_code(
        &mut self,
        task: &SplitTask,
        space: &SearchSpace<'_>,
        ranked: &RankedCode,
        vocabulary: &Vocabulary,
    ) -> Result<Vec<ContextPiece>, BuildError> {
        let (question, analyzer) = (self.question, self.analyzer);
        let options = &question.options;
        let versions: Vec<FileVersion> = ranked.sent.values().cloned().collect();
        analyzer.load_syntax(&versions, question.cancelled);
        self.check_cancelled()?;
        let syntax =
            |path: &str| ranked.sent.get(path).map(|(path, blob)| analyzer.syntax(path, blob)).unwrap_or_default();
        let mut code = build_code_pieces(&ranked.files, ranked.weights, &syntax);
        self.apply_filter(&mut code, |piece| options.kind_filter(piece));
        mark_certain_pieces(&mut code);
        mark_files(&mut code, &space.mentioned, self.max_focus_tokens());
        self.apply_filter(&mut code, |piece| (!is_likely(piece)).then_some(ContextFilter::Unlikely));
        let mentions = MentionQuery {
            mentioned: &space.mentioned,
            task: &task.task,
            ranked: &ranked.files,
            files: &space.files,
            analysis: analyzer,
            vocabulary,
            weights: ranked.weights,
            explain_file: &|file: &RankedFile| explain_file_score(&file.factors, ranked.weights),
            max_tokens: MAX_TOKENS_PER_CHUNK.min(question.budget / WHOLE_DECLARATION_BUDGET_DIVISOR),
            count: self.count,
            cancelled: question.cancelled,
        };
        let mut declarations = mentions.collect_declarations();
        self.apply_filter(&mut declarations, |piece| options.kind_filter(piece));
        code.extend(declarations);
        mark_used_types(&mut code, &ranked.files);
        keyword_snippets::mark_snippets(&mut code, &ranked.files);
        let summaries = build_summaries(&code, &ranked.files, &syntax);
        code.extend(summaries);
        Ok(code)
    }

    /// Adds the text of the task, shortened to its part of the budget. Returns the lines that the diff shows.
    fn add_task_text(&self, task: &SplitTask, pieces: &mut Vec<ContextPiece>) -> LinesInDiff {
        let context_lines = self.question.context_lines;
        let shown = LinesInDiff::Around(context_lines.unwrap_or(0));
        if task.task.text.is_empty() {
            return shown;
        }
        let text = fit_task_text(&task.task.text, self.question.budget / TASK_BUDGET_DIVISOR, self.count);
        let shown = if context_lines.is_none() { LinesInDiff::from_diff_text(&text) } else { shown };
        pieces.push(standalone_piece(SectionKind::Task, Need::Must, text, "the task"));
        shown
    }

    fn find_untested(
        &self,
        task: &SplitTask,
        space: &SearchSpace<'_>,
        coverage: &CoverageReports,
    ) -> Vec<UntestedFunction> {
        let (tree, cancelled) = (&space.tree, self.question.cancelled);
        let covered = coverage.find_coverage(self.repo, &tree.code_files, &task.changed_paths(), cancelled);
        let find = |covered| find_untested_functions(&task.task, self.analyzer, &tree.blobs, &covered, cancelled);
        covered.map(find).unwrap_or_default()
    }

    /// Selects the lines in focus, and notes the places without text.
    fn select_focus(&mut self, task: &SplitTask, space: &SearchSpace<'_>) -> Vec<ContextPiece> {
        let (focus, files) = (&task.task.focus, [space.files.as_slice(), &space.focus_files].concat());
        let pieces = build_focus_pieces(focus, &files, self.analyzer, self.max_focus_tokens(), self.count);
        let missing = focus.iter().filter(|focus| !pieces.iter().any(|piece| piece.path == focus.path));
        self.notes.extend(missing.map(|focus| {
            format!(
                "nothing of {} is in focus: no text that may be shown is in the tree by this path",
                sanitize_line(&focus.path)
            )
        }));
        pieces
    }

    fn outline_tree(&mut self, task: &SplitTask, space: &SearchSpace<'_>) -> Vec<ContextPiece> {
        let question = self.question;
        let mut documents = list_project_documents(&space.tree.listing);
        self.apply_filter(&mut documents, |_| (!question.options.documentation).then_some(ContextFilter::Documents));
        let documents = ProjectDocuments { all: &documents, loaded: question.quoted_documents };
        build_repo_outline(&space.tree.code_files, documents, &task.all_paths(), question.budget, self.count)
    }
}
