//! Builds the context of a review under a token budget: the task, the change, and the code that matters for the change.
//!
//! Four steps, each with its own input and output:
//!
//! 1. [`query`](query_step): a [`SplitTask`] becomes a [`SearchSpace`], the files and the history to search.
//! 2. [`rank`](rank_step): the search space becomes a [`RankedCode`], the files and passages by probability.
//! 3. [`select`](select_step): ranked code becomes a [`Selection`], the pieces that may be sent.
//! 4. [`pack`](pack_step): the selection becomes a [`PackedContext`], the sections that fit in the budget.
//!
//! Invariants:
//! - All text comes from one tree and the history behind it, and it is masked.
//! - The same question has the same answer once the caches hold what it needs; before that, [`PackedContext::partial`]
//!   says what is missing.
//! - Missing inputs (index, history, guidelines) lower the quality, but never fail the review.

mod code_pieces;
mod explanation;
mod pack_step;
mod query_step;
mod rank_step;
mod select_step;

#[cfg(test)]
mod asked;
#[cfg(test)]
mod cancelled;
#[cfg(test)]
mod partial;

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::time::Duration;

use ignore::gitignore::Gitignore;
use thiserror::Error;

pub(crate) use self::code_pieces::{build_code_pieces, is_likely, standalone_piece};
pub(crate) use self::select_step::TASK_BUDGET_DIVISOR;
#[cfg(doc)]
use self::{query_step::SearchSpace, rank_step::RankedCode, select_step::Selection};
use super::embeddings::EmbeddingScorer;
use super::file_analysis::FileAnalyzer;
use super::pack::{ContextFilter, ContextPiece, PackedContext, PartialSources, SectionKind, TokenCounter};
use super::retrieve::task::{GivenFile, RetrievalTask};
use crate::domain::Encoding;
use crate::git::{GitError, Repo};
use crate::index::Index;
use crate::index::chunk::ChunkKind;
use crate::index::document_store::DocumentStore;
use crate::syntax::facts::is_test_path;
use crate::tokens::TokenCountCache;

/// Maximum number of commits to read from the history. It bounds the time of the first question in a repository.
pub const MAX_HISTORY_COMMITS: usize = 3_000;

/// Filters for the content of the context besides the change.
#[derive(Debug, Clone)]
pub struct ContextOptions {
    /// True to include types that the change uses.
    pub types: bool,
    /// True to include tests.
    pub tests: bool,
    /// True to include documentation of the project.
    pub documentation: bool,
    /// Globs in the syntax of .gitignore. If there are any, code comes only from files that match.
    pub files: Gitignore,
    /// If there are any, only code of these kinds is sent; see [`CODE_KINDS`].
    pub kinds: Vec<ChunkKind>,
    /// True to compress code so that more of it fits.
    pub compression: bool,
}

/// Kinds of code that [`ContextOptions::kinds`] can name.
pub const CODE_KINDS: [ChunkKind; 9] = [
    ChunkKind::Function,
    ChunkKind::Class,
    ChunkKind::Interface,
    ChunkKind::Type,
    ChunkKind::Constant,
    ChunkKind::Module,
    ChunkKind::Test,
    ChunkKind::Config,
    ChunkKind::Window,
];

impl Default for ContextOptions {
    fn default() -> Self {
        let (files, kinds) = (Gitignore::empty(), Vec::new());
        Self { types: true, tests: true, documentation: true, files, kinds, compression: true }
    }
}

impl ContextOptions {
    /// Returns the filter that excludes a file, if any.
    fn file_filter(&self, path: &str) -> Option<ContextFilter> {
        let is_other = || !self.files.matched_path_or_any_parents(path, false).is_ignore();
        match () {
            () if !self.tests && is_test_path(path) => Some(ContextFilter::Tests),
            () if !self.files.is_empty() && is_other() => Some(ContextFilter::Files),
            () => None,
        }
    }

    /// Returns the filter that excludes a piece of code, if any. A kind names the pieces that are called so, and those
    /// that are packed as such: `type` names classes without functions too.
    fn kind_filter(&self, piece: &ContextPiece) -> Option<ContextFilter> {
        let kind = piece.kind;
        let is_named = |wanted: &ChunkKind| [kind.word(), piece.kind_word()].contains(&wanted.word());
        match () {
            () if !self.kinds.is_empty() && !self.kinds.iter().any(is_named) => Some(ContextFilter::Kinds),
            () if !self.types && kind == SectionKind::Type => Some(ContextFilter::Types),
            () if !self.tests && kind == SectionKind::Test => Some(ContextFilter::Tests),
            () => None,
        }
    }
}

/// Question for which a context is built.
pub struct ContextQuery<'a> {
    /// Commit whose tree is searched.
    pub tree: &'a str,
    /// Commit whose history is read.
    pub history: &'a str,
    /// Changed files, positions and text for which code is searched.
    pub task: RetrievalTask,
    /// Pieces that come before all else, in this order. They count toward the budget.
    pub leading_pieces: Vec<ContextPiece>,
    /// Unchanged lines around each hunk in the diff of `leading_pieces`. `None` if the diff is in the task's text.
    pub context_lines: Option<u32>,
    /// Paths of project documents that the context quotes already.
    pub quoted_documents: &'a [String],
    /// Budget in tokens of `encoding`.
    pub budget: u32,
    /// Encoding in which tokens are counted.
    pub encoding: Encoding,
    /// Filters for the content besides `leading_pieces`.
    pub options: ContextOptions,
    /// Folder for caches about this repository. `None` disables them.
    pub folder: Option<&'a Path>,
    /// Index that selects files of a large tree. Without it, all files up to a limit are read.
    pub index: Option<&'a Index>,
    /// Scorer for the meaning of code. Without it, this signal is missing.
    pub meaning: Option<&'a EmbeddingScorer>,
    /// Returns true once the answer is not needed any more, and then always. It is called every few files and commits.
    pub cancelled: &'a dyn Fn() -> bool,
    /// Returns the time that is left for reading history and files that no cache holds; it never grows. Half of it is
    /// for the history, and a first batch of each is always read. The context does without the rest; see
    /// [`PackedContext::partial`]. [`READ_EVERYTHING`] sets no limit.
    pub time_left: &'a dyn Fn() -> Duration,
}

/// Value of [`ContextQuery::time_left`] for a context that is worth any wait.
pub const READ_EVERYTHING: &dyn Fn() -> Duration = &|| Duration::MAX;

/// Builds the context. `None` after cancellation; facts derived until then stay in the caches.
///
/// # Errors
/// Returns an error if git cannot read the tree or the history.
pub fn build_context(repo: &Repo, mut question: ContextQuery<'_>) -> Result<Option<PackedContext>, GitError> {
    let task = SplitTask::new(std::mem::take(&mut question.task));
    let leading_pieces = std::mem::take(&mut question.leading_pieces);
    let mut library = DocumentStore::open(question.folder);
    let analyzer = FileAnalyzer::open(repo, question.encoding, question.folder).with_index(question.index);
    // Text that is packed again is mostly the same as before, so its counts are cached.
    let counts = TokenCountCache::new(question.encoding);
    let builder = ContextBuilder {
        repo,
        question: &question,
        analyzer: &analyzer,
        count: &|text| counts.count_tokens(text),
        notes: Vec::new(),
        filtered: BTreeMap::new(),
        partial: PartialSources::default(),
        meaning: question.meaning,
    };
    let built = builder.build(&task, leading_pieces, &mut library);
    library.close();
    analyzer.close();
    match built {
        Ok(packed) => Ok(Some(packed)),
        Err(BuildError::Cancelled(Cancelled)) => Ok(None),
        Err(BuildError::Git(error)) => Err(error),
    }
}

/// Cancellation of a context that nobody waits for any more.
#[derive(Debug, Error)]
#[error("the context is not needed any more")]
struct Cancelled;

/// Reason why no context was built.
#[derive(Debug, Error)]
enum BuildError {
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
    #[error(transparent)]
    Git(#[from] GitError),
}

/// Task with the part of its files that the ranking uses.
struct SplitTask {
    task: RetrievalTask,
    /// Paths of the other changed files. They are not searched.
    passed_over: HashSet<String>,
}

impl SplitTask {
    fn new(task: RetrievalTask) -> Self {
        let (task, passed_over) = task.split_leading();
        Self { task, passed_over }
    }

    /// Returns the paths of all files that the task is about.
    fn all_paths(&self) -> Vec<&str> {
        self.task.paths().chain(self.passed_over.iter().map(String::as_str)).collect()
    }

    /// Returns the paths of the changed files that the ranking uses.
    fn changed_paths(&self) -> HashSet<&str> {
        self.task.given.iter().map(|given| given.path.as_str()).collect()
    }
}

/// Inputs that all steps share, and what they report besides their outputs.
struct ContextBuilder<'a> {
    repo: &'a Repo,
    question: &'a ContextQuery<'a>,
    analyzer: &'a FileAnalyzer<'a>,
    count: TokenCounter<'a>,
    /// Remarks about missing inputs, for the reader of the context.
    notes: Vec<String>,
    /// Number of excluded files and pieces by filter.
    filtered: BTreeMap<ContextFilter, u32>,
    /// Sources that were read only in part.
    partial: PartialSources,
    /// Scorer for the meaning of code, until a request fails.
    meaning: Option<&'a EmbeddingScorer>,
}

impl<'a> ContextBuilder<'a> {
    fn build(
        mut self,
        task: &SplitTask,
        leading_pieces: Vec<ContextPiece>,
        library: &mut DocumentStore,
    ) -> Result<PackedContext, BuildError> {
        let space = self.query(task, library)?;
        let ranked = self.rank(task, &space, &mut library.vocabulary)?;
        let selection = self.select(task, &space, &ranked, &library.vocabulary, leading_pieces)?;
        self.pack(task, &space, &ranked, selection)
    }

    /// Fails once the context is not needed any more.
    fn check_cancelled(&self) -> Result<(), Cancelled> {
        if (self.question.cancelled)() { Err(Cancelled) } else { Ok(()) }
    }

    /// Removes the elements that `filter` excludes, and counts them by filter.
    fn apply_filter<T>(&mut self, all: &mut Vec<T>, filter: impl Fn(&T) -> Option<ContextFilter>) {
        all.retain(|one| {
            let by = filter(one);
            by.into_iter().for_each(|by| *self.filtered.entry(by).or_default() += 1);
            by.is_none()
        });
    }

    /// Iterates over the changed files that no option excludes.
    fn shown_changes<'t>(&self, task: &'t SplitTask) -> impl Iterator<Item = &'t GivenFile> + use<'a, 't> {
        let options = &self.question.options;
        task.task.given.iter().filter(|given| options.file_filter(&given.path).is_none())
    }

    /// Returns true if the lines that enclose the changes are sent.
    fn sends_enclosing_lines(&self, task: &SplitTask) -> bool {
        task.task.focus.is_empty() && self.question.options.kinds.is_empty()
    }
}
