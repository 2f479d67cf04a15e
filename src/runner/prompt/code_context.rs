//! Packs the code around a change for a run's model, and summarizes for the journal what the model receives.
//!
//! - The result never exceeds the budget that the window leaves.
//! - After any failure, the review continues without the code and a note says so.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::config::{ContextSettings, EmbeddingSettings, ModelCatalog, ModelFacts};
use crate::context::builder::{CODE_KINDS, ContextOptions, ContextQuery, build_context};
use crate::context::diff_parts::DiffLimits;
use crate::context::embeddings::EmbeddingScorer;
use crate::context::pack::{ContextPiece, ContextSection, ExcludedPiece, PackedContext, SectionKind, pack};
use crate::context::query_input::{build_query_input, history_tip};
use crate::context::read_ahead::ContextSources;
use crate::context::retrieve::{task, unified_diff};
use crate::domain::text::sanitize_line;
use crate::domain::{
    ContextRecord, ContextRecordSection, FileCoverage, LineRange, OmittedFile, ReviewSubject, RunRecord, Usage,
};
use crate::git::GitError;
use crate::index::chunk::ChunkKind;
use crate::runner::PromptBuilder;
use crate::runner::indexing::IndexReadiness;
use crate::runner::prompt::pattern_hints;
use crate::runner::prompt::prompt_material::PromptSubject;
use crate::runner::reviewer_access::reviewer_identity::open_embeddings;
use crate::store::PaidAnswer;
use crate::tokens;

/// Minimum useful budget, in tokens.
const MIN_CONTEXT_TOKENS: u64 = 200;
/// Divisor of the window that limits the code around the change: a fifth. A model with tools reads more by itself.
const WINDOW_DIVISOR: u64 = 5;
/// Divisor for a model without tools: a half. It gets what the tools would have told.
const WINDOW_DIVISOR_WITHOUT_TOOLS: u64 = 2;
/// Factor of the user's limit for a model without tools. Not from the literature: a model with tools reads two or three
/// files besides the 8,000 tokens of the default.
const LIMIT_FACTOR_WITHOUT_TOOLS: u32 = 2;
/// Maximum number of file names per reason why files are not sent.
const MAX_NAMED_FILES: usize = 8;

/// The parts of a request's window, in tokens.
#[derive(Debug, Clone, Copy)]
pub(in crate::runner) struct WindowRoom {
    /// The whole window.
    pub window: u64,
    /// The pinned part of the window.
    pub pinned: u64,
    /// Always pinned: system prompt, tools, task.
    pub fixed: u64,
    /// Kept for the first part of the diff.
    pub diff: u64,
    /// `true` if the model is given tools.
    pub has_tools: bool,
}

impl WindowRoom {
    /// Returns the budget for the code around the change, at most `most` for a model with tools; 0 if it would be below
    /// the minimum.
    pub fn budget(self, most: u32) -> u32 {
        let left = self.pinned.saturating_sub(self.fixed).saturating_sub(self.diff);
        let (divisor, factor) = match self.has_tools {
            true => (WINDOW_DIVISOR, 1),
            false => (WINDOW_DIVISOR_WITHOUT_TOOLS, LIMIT_FACTOR_WITHOUT_TOOLS),
        };
        let budget = u64::from(most.saturating_mul(factor)).min(self.window / divisor).min(left);
        if budget < MIN_CONTEXT_TOKENS { 0 } else { budget as u32 }
    }
}

/// The task of a context request besides the change; see [`ContextTaskInput::for_review`].
#[derive(Debug, Clone, Default)]
pub struct ContextTaskInput {
    pub focus: Vec<task::Focus>,
    /// The task in words.
    pub text: String,
    pub options: ContextOptions,
}

impl ContextTaskInput {
    /// Creates the input of a review: nothing but the change, with the switches of the settings.
    pub fn for_review(settings: &ContextSettings) -> Self {
        Self { options: context_options(settings), ..Self::default() }
    }
}

/// Returns the filters that the settings ask for.
pub fn context_options(settings: &ContextSettings) -> ContextOptions {
    let mut files = GitignoreBuilder::new("");
    for glob in &settings.files {
        if let Err(error) = files.add_line(None, glob) {
            tracing::warn!(%error, glob, "context.files: it matches nothing");
        }
    }
    let is_named = |kind: &ChunkKind| settings.kinds.iter().any(|word| word == kind.word());
    ContextOptions {
        types: settings.types,
        tests: settings.tests,
        documentation: settings.documentation,
        files: files.build().unwrap_or_else(|_| Gitignore::empty()),
        kinds: CODE_KINDS.into_iter().filter(is_named).collect(),
        compression: settings.compression,
    }
}

impl PromptBuilder<'_> {
    /// Packs the code around the changed files, after the pieces of `front`, into at most `budget` tokens. Skips
    /// documents of the project that are in `told`, because the request already contains them. Returns an empty result
    /// after a cancellation.
    pub(in crate::runner) fn pack_code_context(
        &self,
        subject: &PromptSubject<'_>,
        (budget, front): (u32, Vec<ContextPiece>),
        told: &[String],
        (ready, wish): (&IndexReadiness, &ContextTaskInput),
    ) -> PackedContext {
        let front_alone = |note: String| {
            let packed = pack(&front, budget, &|text| tokens::count_tokens(subject.encoding, text));
            PackedContext { notes: vec![note], ..packed }
        };
        if budget == 0 {
            return front_alone("the model's window has no room for code around the change".to_owned());
        }
        // Files are untrusted: if their analysis panics, only this context is lost.
        let packed = catch_unwind(AssertUnwindSafe(|| {
            self.try_pack_code_context(subject, (budget, front.clone()), told, (ready, wish))
        }));
        match packed {
            Ok(Ok(packed)) => packed.unwrap_or_default(),
            Ok(Err(error)) => {
                tracing::warn!(%error, "the review goes on without the code around the change");
                front_alone("git cannot read the code around the change".to_owned())
            }
            Err(_) => front_alone("revdeck failed to look at the code around the change".to_owned()),
        }
    }

    fn try_pack_code_context(
        &self,
        subject: &PromptSubject<'_>,
        (budget, front): (u32, Vec<ContextPiece>),
        told: &[String],
        (ready, wish): (&IndexReadiness, &ContextTaskInput),
    ) -> Result<Option<PackedContext>, GitError> {
        let PromptSubject { record, change, ref open, encoding, cancelled, .. } = *subject;
        let mut given = build_query_input(&self.services.repo, &record.subject.base_commit, change, &|path| {
            open.contains_key(path)
        })?;
        let mut context_lines = Some(DiffLimits::DEFAULT_CONTEXT_LINES);
        if given.is_empty() {
            (given, context_lines) = (unified_diff::parse_unified_diff(&wish.text), None);
        }
        let folder = self.services.paths.history_folder(&self.services.repo.key());
        let embeddings = self.services.settings.context.embeddings.as_ref();
        let meaning = embeddings.map(|settings| self.open_vectors(settings, record));
        let question = ContextQuery {
            tree: &record.subject.snapshot_commit,
            history: history_tip(&record.subject.base_commit, &record.subject.snapshot_commit),
            task: task::RetrievalTask { given, focus: wish.focus.clone(), text: wish.text.clone() },
            leading_pieces: front,
            context_lines,
            quoted_documents: told,
            budget,
            encoding,
            options: wish.options.clone(),
            folder: Some(&folder),
            index: ready.index.as_ref(),
            meaning: meaning.as_ref().and_then(|meaning| meaning.as_ref().ok()),
            cancelled,
            time_left: &|| ready.time_left(),
        };
        let built = build_context(&self.services.repo, question);
        let mut note = None;
        match (meaning, embeddings) {
            (Some(Ok(scorer)), Some(settings)) => {
                self.record_vectors(settings, record, scorer.sent_tokens());
                note = scorer.is_limited().then(|| "a budget leaves code unweighed by meaning".to_owned());
            }
            (Some(Err(error)), _) => note = Some(format!("without what code means: {error}")),
            _ => {}
        }
        let Some(mut packed) = built? else { return Ok(None) };
        packed.notes.extend(note);
        Ok(Some(packed))
    }

    /// Opens the server of vectors for as many tokens as the budgets leave; the team's budget is asked before each request.
    /// Returns a message if that is impossible.
    fn open_vectors(&self, settings: &EmbeddingSettings, record: &RunRecord) -> Result<EmbeddingScorer, String> {
        let facts = self.vector_facts(settings);
        let limit = match facts.is_free() {
            true => None,
            false => self.vector_token_limit(record, &facts).map_err(|error| error.to_string())?,
        };
        if limit == Some(0) {
            return Err("a budget is used up".to_owned());
        }
        let scorer = open_embeddings(settings, &self.services.paths, limit).map_err(|error| error.to_string())?;
        Ok(scorer.with_shared_budget(self.services.team().vector_budget(&facts)))
    }

    /// Writes the estimated cost of vectors into the daily account: servers report it for no request alike.
    fn record_vectors(&self, settings: &EmbeddingSettings, record: &RunRecord, tokens: u64) {
        let facts = self.vector_facts(settings);
        if tokens == 0 || facts.is_free() {
            return;
        }
        let usage = Usage { input: tokens, ..Usage::default() };
        let paid = PaidAnswer {
            at: self.services.ambient.now(),
            run_id: record.run_id.clone(),
            turn: 0,
            reviewer: PaidAnswer::EMBEDDINGS.to_owned(),
            tokens,
            cost: facts.price.as_ref().map_or(0.0, |price| price.cost(&usage)),
            estimated: true,
        };
        if let Err(error) = self.services.reviewers().spending().append(&paid) {
            tracing::warn!(run = %record.run_id, %error, "what vectors cost is missing from the account of the day");
        }
    }

    /// Returns the price of vectors, if the model table has one.
    fn vector_facts(&self, settings: &EmbeddingSettings) -> ModelFacts {
        ModelCatalog::load(&self.services.paths).unwrap_or_default().facts_for_reviewer(&settings.as_reviewer())
    }
}

/// Returns the sources of the context of a run.
pub(in crate::runner) fn context_sources(record: &RunRecord) -> ContextSources {
    let ReviewSubject { base_commit, snapshot_commit, .. } = &record.subject;
    ContextSources { tree: snapshot_commit.clone(), history: history_tip(base_commit, snapshot_commit).to_owned() }
}

/// Lists the parts of a change that are not sent, one line for each reason.
pub(in crate::runner) fn list_withheld(beyond: &[FileCoverage], left_out: &[OmittedFile]) -> Vec<String> {
    let mut by_reason: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in beyond {
        let reason = "over the budget, at least in part".to_owned();
        by_reason.entry(reason).or_default().push(sanitize_line(&file.path).into_owned());
    }
    for file in left_out {
        by_reason.entry(file.reason.to_string()).or_default().push(sanitize_line(&file.path).into_owned());
    }
    let line = |(reason, mut names): (String, Vec<String>)| {
        let more = names.len().saturating_sub(MAX_NAMED_FILES);
        names.truncate(MAX_NAMED_FILES);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("of the change not sent, {reason}: {}{more}", names.join(", "))
    };
    by_reason.into_iter().map(line).collect()
}

/// Summarizes the sent and omitted sections without their texts, for the journal.
pub(in crate::runner) fn summarize_packed(packed: &PackedContext) -> ContextRecord {
    let place = |lines: Option<LineRange>| lines.map_or((0, 0), |lines| (lines.start, lines.end));
    let sent = |section: &ContextSection| {
        let (start_line, end_line) = place(section.lines);
        ContextRecordSection {
            path: section.path.clone(),
            start_line,
            end_line,
            kind: section.kind_word.to_owned(),
            tokens: section.tokens,
            score: section.score,
            reason: section.explanation.reason.clone(),
        }
    };
    let left = |piece: &ExcludedPiece| {
        let (start_line, end_line) = place(piece.lines);
        ContextRecordSection {
            path: piece.path.clone(),
            start_line,
            end_line,
            kind: piece.kind_word.to_owned(),
            tokens: piece.tokens,
            score: piece.score,
            reason: piece.reason.word().to_owned(),
        }
    };
    let learned = packed.sections.iter().filter(|section| section.kind == SectionKind::Patterns);
    ContextRecord {
        budget: packed.budget,
        total_tokens: packed.total_tokens,
        patterns: learned.flat_map(|section| pattern_hints::parse_pattern_lines(&section.text)).collect(),
        compression: packed.compression.map_or_else(String::new, |strength| strength.word().to_owned()),
        notes: packed.notes.clone(),
        sections: truncate_sections(packed.sections.iter().map(sent).collect()),
        left_out: packed.left_out.iter().take(ContextRecord::MAX_LISTED).map(left).collect(),
        left_out_total: packed.left_out.len() as u32,
    }
}

/// Cuts the list to [`ContextRecord::MAX_LISTED`] sections. If a change has very many parts, its last parts are joined
/// into one entry, so that the sections behind them stay visible.
fn truncate_sections(mut sections: Vec<ContextRecordSection>) -> Vec<ContextRecordSection> {
    let is_part = |section: &ContextRecordSection| section.kind == SectionKind::Diff.word();
    let over = sections.len().saturating_sub(ContextRecord::MAX_LISTED);
    if let (true, Some(first)) = (over > 0, sections.iter().position(is_part)) {
        let end = first + sections[first..].iter().take_while(|section| is_part(section)).count();
        let joined = sections.drain(end.saturating_sub(over + 1).max(first)..end);
        let (count, tokens) = joined.fold((0, 0u32), |(count, sum), part| (count + 1, sum.saturating_add(part.tokens)));
        let reason = format!("{count} more parts of the change");
        let kind = SectionKind::Diff.word().to_owned();
        let one = ContextRecordSection { kind, tokens, score: 1.0, reason, ..ContextRecordSection::default() };
        sections.insert(end - count, one);
    }
    sections.truncate(ContextRecord::MAX_LISTED);
    sections
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::as_set(true, 70_000, 4_000, 14_000, 8_000, 8_000)]
    #[case::switched_off(true, 70_000, 4_000, 14_000, 0, 0)]
    #[case::a_fifth_of_the_window(true, 70_000, 4_000, 1_000, 100_000, 14_000)]
    #[case::the_change_comes_first(true, 16_000, 4_000, 3_200, 8_000, 800)]
    #[case::next_to_nothing(true, 16_000, 4_000, 3_900, 8_000, 0)]
    #[case::no_room(true, 8_000, 5_000, 1_600, 8_000, 0)]
    #[case::twice_without_tools(false, 70_000, 4_000, 14_000, 8_000, 16_000)]
    #[case::still_switched_off(false, 70_000, 4_000, 14_000, 0, 0)]
    #[case::all_that_is_left(false, 6_000, 500, 100, 8_000, 2_400)]
    fn the_budget_is_what_the_window_leaves(
        #[case] has_tools: bool,
        #[case] window: u64,
        #[case] fixed: u64,
        #[case] diff: u64,
        #[case] most: u32,
        #[case] budget: u32,
    ) {
        assert_eq!(WindowRoom { window, pinned: window / 2, fixed, diff, has_tools }.budget(most), budget);
    }

    #[rstest]
    #[case::all(&[("rules", 2), ("diff", 100), ("function", 98)], 200, "")]
    #[case::one_more(&[("rules", 2), ("diff", 100), ("function", 99)], 200, "2 more parts of the change")]
    #[case::a_large_change(&[("rules", 2), ("diff", 900), ("function", 9)], 200, "712 more parts of the change")]
    #[case::much_code(&[("rules", 2), ("diff", 3), ("function", 300)], 200, "3 more parts of the change")]
    #[case::nothing_but_code(&[("function", 300)], 200, "")]
    fn a_change_in_many_parts_leaves_room_for_the_code_in_the_list(
        #[case] sections: &[(&str, usize)],
        #[case] count: usize,
        #[case] said: &str,
    ) {
        let section =
            |kind: &str| ContextRecordSection { kind: kind.to_owned(), tokens: 2, ..ContextRecordSection::default() };
        let all: Vec<_> = sections.iter().flat_map(|(kind, count)| vec![section(kind); *count]).collect();
        let of = |sections: &[ContextRecordSection], kind: &str| -> (usize, u32) {
            let found = sections.iter().filter(|section| section.kind == kind);
            found.fold((0, 0), |(count, sum), section| (count + 1, sum + section.tokens))
        };
        let listed = truncate_sections(all.clone());
        assert_eq!(listed.len(), count);
        assert_eq!(of(&listed, "diff").1, of(&all, "diff").1, "no token of the change is lost");
        assert_eq!(of(&listed, "rules"), of(&all, "rules"));
        let reasons: Vec<&str> = listed.iter().map(|section| section.reason.as_str()).collect();
        let reasons: Vec<&str> = reasons.into_iter().filter(|reason| !reason.is_empty()).collect();
        assert_eq!(reasons, if said.is_empty() { vec![] } else { vec![said] }, "{listed:?}");
    }

    #[test]
    fn the_kinds_of_the_settings_are_those_of_the_context() {
        assert_eq!(crate::config::CONTEXT_KINDS, CODE_KINDS.map(ChunkKind::word));
    }
}
