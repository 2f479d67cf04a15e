//! Packs the selected pieces into the budget and annotates the sections.

use super::query_step::SearchSpace;
use super::rank_step::RankedCode;
use super::select_step::Selection;
use super::{BuildError, Cancelled, ContextBuilder, SplitTask};
use crate::context::annotations::{annotate_coverage, annotate_last_change};
use crate::context::fit_budget::PackInput;
use crate::context::focus::is_sent;
use crate::context::pack::PackedContext;
use crate::domain::text::sanitize_line;

impl ContextBuilder<'_> {
    /// Packs the pieces that fit in the budget, and adds to each section its test coverage and its last change.
    pub(super) fn pack(
        mut self,
        task: &SplitTask,
        space: &SearchSpace<'_>,
        ranked: &RankedCode,
        selection: Selection,
    ) -> Result<PackedContext, BuildError> {
        let (question, tree, analyzer) = (self.question, &space.tree, self.analyzer);
        let declared =
            |path: &str| tree.blobs.get(path).map(|blob| analyzer.declarations(path, blob)).unwrap_or_default();
        let input = PackInput {
            pieces: selection.pieces,
            ranked: &ranked.files,
            analyzer,
            declared: &declared,
            budget: question.budget,
            count: self.count,
            cancelled: question.cancelled,
            may_compress: question.options.compression,
        };
        let mut packed = input.pack_compressed().ok_or(Cancelled)?;
        let unsent = selection.in_focus.iter().filter(|piece| !is_sent(piece, &packed));
        self.notes.extend(
            unsent.map(|(path, _)| {
                format!("nothing of {} is in focus: the budget has no room for it", sanitize_line(path))
            }),
        );
        let sent = packed.sections.iter().map(|section| section.path.as_str());
        let covered_paths = sent.chain(task.all_paths()).collect();
        let covered = selection.coverage.find_coverage(self.repo, &tree.code_files, &covered_paths, question.cancelled);
        if let Some(covered) = covered {
            annotate_coverage(&mut packed, &covered);
        }
        packed.untested = selection.untested;
        self.check_cancelled()?;
        annotate_last_change(&mut packed, self.repo, (&space.history, &space.ancestors), &task.changed_paths());
        packed.notes = self.partial.notes();
        packed.notes.append(&mut self.notes);
        packed.partial = self.partial;
        packed.filtered = self.filtered;
        Ok(packed)
    }
}
