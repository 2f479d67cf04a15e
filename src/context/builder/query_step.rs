//! Finds the files and the history that are searched for a task.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

use super::{BuildError, ContextBuilder, ContextQuery, MAX_HISTORY_COMMITS, SplitTask};
use crate::context::candidates::{CandidateSearch, choose_candidates, sort_by_relevance};
use crate::context::embeddings::near_files::NearFiles;
use crate::context::embeddings::{EmbeddingText, build_queries};
use crate::context::enclosing_scope::likely_paths;
use crate::context::file_analysis::FileVersion;
use crate::context::mentions::{MentionedFiles, Mentions};
use crate::context::pack::ReadShare;
use crate::domain::text::format_count;
use crate::git::{EntryKind, TreeFile, TreeListing};
use crate::index::IndexCompleteness;
use crate::index::document_store::{AuthoredFilter, DocumentStore, SourceFile, list_code_files};
use crate::index::history_cache::{HistoryCompleteness, RepoHistory};
use crate::masking::secret_files::is_secret_file;

/// Files and history that are searched for a task.
pub(super) struct SearchSpace<'t> {
    pub tree: SearchedTree,
    pub history: RepoHistory,
    /// Positions in `history` of the ancestors of the searched tree, newest first.
    pub ancestors: Vec<usize>,
    pub mentioned: MentionedFiles<'t>,
    /// Files of code that were read, sorted by path.
    pub files: Vec<SourceFile>,
    /// Files in focus that are not among `files`.
    pub focus_files: Vec<SourceFile>,
    /// Texts by which the meaning of code is compared; empty without a scorer.
    pub meaning_queries: Vec<EmbeddingText>,
    /// Files of the tree by meaning.
    pub near: NearFiles,
}

/// Content of the searched tree.
pub(super) struct SearchedTree {
    pub listing: TreeListing,
    /// Files of code.
    pub code_files: Vec<TreeFile>,
    /// Blob ids of the files of code, by path.
    pub blobs: HashMap<String, String>,
}

impl SearchedTree {
    /// Returns the version of a file of code in this tree.
    pub fn file_version(&self, path: &str) -> Option<FileVersion> {
        Some((path.to_owned(), self.blobs.get(path)?.clone()))
    }

    /// Finds a file that may be shown, whether it is code or not.
    fn find_showable_file(&self, path: &str) -> Option<TreeFile> {
        let entry = self.listing.entries.iter().find(|entry| entry.path == path)?;
        let may_be_shown = entry.kind == EntryKind::File && !is_secret_file(path);
        may_be_shown.then(|| TreeFile { path: entry.path.clone(), blob: entry.id.clone() })
    }
}

impl ContextBuilder<'_> {
    /// Reads the tree, the history and the files that may matter for the task.
    pub(super) fn query<'t>(
        &mut self,
        task: &'t SplitTask,
        library: &mut DocumentStore,
    ) -> Result<SearchSpace<'t>, BuildError> {
        let question = self.question;
        let tree = self.list_tree(task)?;
        self.prefetch_enclosing_lines(task, &tree);
        let history = self.read_history()?;
        let ancestors = history.ancestors(question.history);
        let mentions = Mentions::parse(&task.task.text);
        let mentioned = mentions.resolve_in_tree(&tree.code_files, question.index);
        let meaning_queries = match self.meaning {
            Some(_) => build_queries(self.repo, &task.task, &tree.blobs),
            None => Vec::new(),
        };
        let (files, focus_files, near) = Default::default();
        let mut space = SearchSpace { tree, history, ancestors, mentioned, files, focus_files, meaning_queries, near };
        self.read_files(task, &mut space, library)?;
        mentions.resolve_declared(&mut space.mentioned, &space.files, &library.vocabulary);
        Ok(space)
    }

    /// Reads the history, for at most half of the time that is left.
    fn read_history(&mut self) -> Result<RepoHistory, BuildError> {
        let question = self.question;
        let stopped = stop_reading_at(question, (question.time_left)() / 2);
        let history = RepoHistory::read(self.repo, question.history, MAX_HISTORY_COMMITS, question.folder, &stopped)?;
        self.check_cancelled()?;
        if let HistoryCompleteness::Part { commits, total } = history.completeness {
            self.partial.commits = Some(ReadShare { read: commits, total });
        }
        Ok(history)
    }

    fn list_tree(&self, task: &SplitTask) -> Result<SearchedTree, BuildError> {
        let listing = self.repo.list_tree(self.question.tree)?;
        let code_files = list_code_files(&listing, &task.all_paths().into_iter().collect());
        let blobs = code_files.iter().map(|file| (file.path.clone(), file.blob.clone())).collect();
        Ok(SearchedTree { listing, code_files, blobs })
    }

    /// Starts to read the changed files in the background, while the history is read.
    fn prefetch_enclosing_lines(&self, task: &SplitTask, tree: &SearchedTree) {
        if self.sends_enclosing_lines(task) {
            let paths = likely_paths(self.shown_changes(task));
            let versions: Vec<FileVersion> = paths.into_iter().filter_map(|path| tree.file_version(path)).collect();
            self.analyzer.prefetch_syntax(&versions);
            self.analyzer.prefetch_masked_texts(&versions);
        }
    }

    /// Chooses files of code and reads them, and reads the files in focus.
    fn read_files(
        &mut self,
        task: &SplitTask,
        space: &mut SearchSpace<'_>,
        library: &mut DocumentStore,
    ) -> Result<(), BuildError> {
        let (question, tree) = (self.question, &space.tree);
        let mut searched = tree.code_files.clone();
        searched.retain(|file| !task.passed_over.contains(&file.path));
        let first: HashSet<&str> = task.task.paths().chain(space.mentioned.paths()).collect();
        let is_asked = |path: &str| first.contains(path);
        let mut authored = AuthoredFilter::from_tree(self.repo, question.tree, &is_asked)?;
        let near = self.find_near_files(space, &searched, &mut authored)?;
        let search = CandidateSearch {
            task: &task.task,
            mentioned: &space.mentioned,
            near: &near.paths,
            index: question.index,
            history: &space.history.history,
            ancestors: &space.ancestors,
        };
        let chosen = choose_candidates(searched, &mut authored, &search);
        let is_whole = question.index.is_some_and(|index| index.completeness() == IndexCompleteness::Whole);
        let skipped = if is_whole { 0 } else { authored.retain_by_name(chosen.skipped).len() };
        if skipped > 0 {
            let looked_at = chosen.files.len();
            let all = format_count(looked_at + skipped, "file");
            self.notes.push(format!(
                "only {looked_at} of {all} of code were looked at: the index of all of them is not ready"
            ));
        }
        let in_time = self.prepare_files(chosen.files, library, &mut authored, &search)?;
        let (files, unread) = library.read_within(self.repo, in_time, &mut authored, question.cancelled);
        self.check_cancelled()?;
        if unread > 0 {
            let files = format_count(unread, "file");
            self.notes.push(format!("without {files} of code: there is too much in the others"));
        }
        let is_unread = |path: &str| !files.iter().any(|file| file.path == path);
        let focused = task.task.focus.iter().filter(|focus| is_unread(&focus.path));
        let focused = focused.filter_map(|focus| tree.find_showable_file(&focus.path)).collect();
        let focus_files = library.read(self.repo, focused, &mut authored);
        drop(authored);
        (space.files, space.focus_files, space.near) = (files, focus_files, near);
        Ok(())
    }

    /// Reads the files that no cache holds, best first, until the time is over. Returns the files to search: all but
    /// those that were not read in time. The task's own files are always among them.
    fn prepare_files(
        &mut self,
        mut files: Vec<TreeFile>,
        library: &mut DocumentStore,
        authored: &mut AuthoredFilter<'_>,
        search: &CandidateSearch<'_>,
    ) -> Result<Vec<TreeFile>, BuildError> {
        let (question, total) = (self.question, files.len());
        let unknown = library.find_unknown(&files);
        if unknown.is_empty() {
            return Ok(files);
        }
        let unknown = sort_by_relevance(unknown, search);
        let stopped = stop_reading_at(question, Duration::ZERO);
        let late: HashSet<String> = library.prepare(self.repo, &unknown, authored, &stopped).into_iter().collect();
        self.check_cancelled()?;
        files.retain(|file| !late.contains(&file.path) || search.is_certain(&file.path));
        if files.len() < total {
            self.partial.files = Some(ReadShare { read: files.len() as u32, total: total as u32 });
        }
        Ok(files)
    }

    /// Finds the files whose vectors are nearest to the task, if there is a scorer.
    fn find_near_files(
        &mut self,
        space: &SearchSpace<'_>,
        files: &[TreeFile],
        authored: &mut AuthoredFilter<'_>,
    ) -> Result<NearFiles, BuildError> {
        let Some(meaning) = self.meaning else { return Ok(NearFiles::default()) };
        let mut is_wanted = |file: &TreeFile| authored.is_authored_by_name(&file.path);
        let found = meaning.find_near_files(&space.meaning_queries, files, &mut is_wanted, self.question.cancelled);
        self.check_cancelled()?;
        Ok(found.unwrap_or_else(|error| {
            self.give_up_meaning(&error);
            NearFiles::default()
        }))
    }
}

/// Returns a function that tells, before each batch of a reading, whether to stop: nobody waits any more, or no more than
/// `reserve` of the time is left. The first batch is always read, so that small repositories are never partial.
fn stop_reading_at<'a>(question: &'a ContextQuery<'a>, reserve: Duration) -> impl Fn() -> bool + use<'a> {
    let is_first = Cell::new(true);
    move || (question.cancelled)() || (!is_first.replace(false) && (question.time_left)() <= reserve)
}
