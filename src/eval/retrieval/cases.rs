//! Cases of an evaluation: past commits whose changes are split into a task and hidden files.

use std::collections::HashSet;
use std::ops::RangeInclusive;
use std::path::Path;

use crate::context::builder::{MAX_HISTORY_COMMITS, build_code_pieces, is_likely};
use crate::context::file_analysis::{FileAnalyzer, FileVersion};
use crate::context::fit_budget::PackInput;
use crate::context::import_resolver::ImportResolver;
use crate::context::keyword_snippets;
use crate::context::pack::PackedContext;
use crate::context::project_documents::list_project_documents;
use crate::context::repo_outline::{ProjectDocuments, build_repo_outline};
use crate::context::retrieve::masked_text::MaskedFile;
use crate::context::retrieve::task::{GivenFile, GivenFileHunk, RetrievalTask};
use crate::context::retrieve::weights::RankingWeights;
use crate::context::retrieve::{RankedFile, RankingInput, rank_files};
use crate::git::{CommitAncestor, CommitFileChange, CommitFileChangeKind, GitError, Repo, TreeFile, TreeListing};
use crate::index::chunk::{FileSyntax, parse_syntax};
use crate::index::document_store::{AuthoredFilter, DocumentStore, SourceFile, list_code_files, read_text};
use crate::index::history::Touch;
use crate::index::history_cache::RepoHistory;
use crate::syntax::facts::is_code_path;
use crate::syntax::source::Parsers;
use crate::tokens::{Encoding, count_tokens};

/// Number of code files that a commit must modify to be a case.
const MODIFIED_FILES_PER_CASE: RangeInclusive<usize> = 2..=15;
/// Minimum number of commits before a case. The beginning of a repository differs from everything later.
const MIN_HISTORY_COMMITS: usize = 100;

/// Selection of the cases of a repository.
#[derive(Debug, Clone)]
pub struct CaseSelection<'a> {
    /// Commit to start from. The newest cases are used.
    pub tip: &'a str,
    /// Number of cases to use.
    pub commits: usize,
    /// Number of newest cases to skip, for instance because they are kept for measuring.
    pub skip: usize,
    /// Number of commits behind the tip to read.
    pub depth: usize,
    /// Folder of the history cache. `None` disables the cache.
    pub folder: Option<&'a Path>,
}

/// Task of a case, and the files that retrieval should find for it.
pub struct RetrievalCase {
    pub task: RetrievalTask,
    pub hidden: Vec<GivenFile>,
}

/// Tree of the parent commit, in which the hidden files are searched.
pub struct CaseTree<'a> {
    repo: &'a Repo,
    analyzer: &'a FileAnalyzer<'a>,
    listing: TreeListing,
    /// All files of code.
    code_files: Vec<TreeFile>,
    /// Files of code that people wrote, and the given files; sorted by path.
    files: Vec<SourceFile>,
    /// Paths of the project's documents.
    documents: Vec<String>,
    go_module: Option<String>,
}

/// Resolves the imports of the files of a case, also of given files that the tree does not have.
pub struct CaseImports<'c> {
    tree: &'c CaseTree<'c>,
    task: &'c RetrievalTask,
    resolver: ImportResolver<'c>,
}

/// Case whose files were ranked with the built-in weights.
pub struct RankedCase<'c> {
    pub case: &'c RetrievalCase,
    pub tree: &'c CaseTree<'c>,
    pub imports: CaseImports<'c>,
    /// Files, best first.
    pub ranked: Vec<RankedFile>,
}

/// Reads the cases of a repository.
pub struct CaseReader<'a> {
    repo: &'a Repo,
    analyzer: FileAnalyzer<'a>,
    history: RepoHistory,
    documents: DocumentStore,
}

impl<'a> CaseReader<'a> {
    /// Reads the history of a repository.
    ///
    /// # Errors
    /// Returns an error if git cannot read the history.
    pub fn open(repo: &'a Repo, selection: &CaseSelection<'_>) -> Result<Self, GitError> {
        Ok(Self {
            repo,
            analyzer: FileAnalyzer::open(repo, Encoding::O200kBase, None),
            history: RepoHistory::read(repo, selection.tip, selection.depth, selection.folder, &|| false)?,
            documents: DocumentStore::default(),
        })
    }

    /// Ranks the files of each selected case, newest first, and calls `visit` with the result.
    ///
    /// # Errors
    /// Returns an error if git cannot read the history, a tree or a commit.
    pub fn for_each_case(
        &mut self,
        selection: &CaseSelection<'_>,
        visit: &mut dyn FnMut(&RankedCase<'_>),
    ) -> Result<(), GitError> {
        let (mut found, mut skipped) = (0, 0);
        for ancestor in self.repo.ancestors(selection.tip, selection.depth)? {
            if found == selection.commits {
                break;
            }
            let Some(candidate) = self.find_candidate(&ancestor)? else { continue };
            let CandidateCase { case, parent, before } = &candidate;
            let tree = CaseTree::read(self.repo, &self.analyzer, &mut self.documents, parent, &case.task)?;
            if !case.hidden.iter().all(|hidden| tree.find_file(&hidden.path).is_some()) {
                continue;
            }
            // Skipped cases pass the same checks as measured cases, so that the two sets never overlap.
            if skipped < selection.skip {
                skipped += 1;
                continue;
            }
            let imports = CaseImports { tree: &tree, task: &case.task, resolver: tree.import_resolver() };
            let ranked = rank_case(&imports, &self.history, before, &mut self.documents);
            visit(&RankedCase { case, tree: &tree, imports, ranked });
            found += 1;
        }
        Ok(())
    }

    /// Returns the case of a commit. `None` if the commit does not qualify, or if too few commits precede it.
    fn find_candidate<'c>(&self, ancestor: &'c CommitAncestor) -> Result<Option<CandidateCase<'c>>, GitError> {
        let [parent] = ancestor.parents.as_slice() else { return Ok(None) };
        let Some(case) = build_case(self.repo, &ancestor.commit)? else { return Ok(None) };
        let mut before = self.history.ancestors(parent);
        before.truncate(MAX_HISTORY_COMMITS);
        Ok((before.len() >= MIN_HISTORY_COMMITS).then_some(CandidateCase { case, parent, before }))
    }
}

/// Case of a commit, before its tree is read.
struct CandidateCase<'c> {
    case: RetrievalCase,
    /// Id of the parent commit.
    parent: &'c str,
    /// Positions in the history of the parent and its ancestors, newest first.
    before: Vec<usize>,
}

/// Ranks the files of a case with the built-in weights and loads the syntax of the leading ones.
fn rank_case(
    imports: &CaseImports<'_>,
    history: &RepoHistory,
    before: &[usize],
    documents: &mut DocumentStore,
) -> Vec<RankedFile> {
    let tree = imports.tree;
    let input = RankingInput {
        files: &tree.files,
        history: &history.history,
        ancestors: before,
        mask_files: &|files| files.iter().map(|file| tree.read_passages(file)).collect(),
        named: &HashSet::new(),
        wanted: &|_| true,
        imports: &|paths| imports.resolve(paths),
    };
    let ranked = rank_files(imports.task, &input, RankingWeights::built_in(), &mut documents.vocabulary);
    let versions: Vec<FileVersion> = ranked.iter().map(|file| (file.path.clone(), file.blob.clone())).collect();
    tree.analyzer.load_syntax(&versions, &|| false);
    ranked
}

impl<'a> CaseTree<'a> {
    fn read(
        repo: &'a Repo,
        analyzer: &'a FileAnalyzer<'a>,
        documents: &mut DocumentStore,
        commit: &str,
        task: &RetrievalTask,
    ) -> Result<Self, GitError> {
        let listing = repo.list_tree(commit)?;
        let code_files = list_code_files(&listing, &HashSet::new());
        let given: HashSet<&str> = task.paths().collect();
        let is_given = |path: &str| given.contains(path);
        let mut authored = AuthoredFilter::from_tree(repo, commit, &is_given)?;
        let files = documents.read(repo, authored.retain_by_name(code_files.clone()), &mut authored);
        let go_module = repo.file_at(commit, "go.mod")?.and_then(|text| ImportResolver::parse_go_module(&text));
        let documents = list_project_documents(&listing);
        Ok(Self { repo, analyzer, listing, code_files, files, documents, go_module })
    }

    fn import_resolver(&self) -> ImportResolver<'_> {
        let paths = self.listing.entries.iter().map(|entry| entry.path.as_str());
        ImportResolver::new(paths, self.go_module.as_deref())
    }

    fn find_file(&self, path: &str) -> Option<&SourceFile> {
        let at = self.files.binary_search_by(|file| file.path.as_str().cmp(path)).ok()?;
        self.files.get(at)
    }

    /// Returns the text of a file of code.
    pub fn load_text(&self, path: &str) -> Option<String> {
        read_text(self.repo, &self.find_file(path)?.blob).ok().flatten()
    }

    fn read_passages(&self, file: &SourceFile) -> MaskedFile {
        let text = read_text(self.repo, &file.blob).ok().flatten().unwrap_or_default();
        MaskedFile::from_text(&file.document, &text, &count_case_tokens)
    }

    fn syntax(&self, path: &str) -> FileSyntax {
        self.find_file(path).map(|file| self.analyzer.syntax(path, &file.blob)).unwrap_or_default()
    }
}

impl CaseImports<'_> {
    /// Returns for each path the files of the tree that it imports.
    pub fn resolve(&self, paths: &[&str]) -> Vec<Vec<String>> {
        let version = |path: &str| Some((path.to_owned(), self.tree.find_file(path)?.blob.clone()));
        let mut imported = self.tree.analyzer.resolve_imports(&self.resolver, paths, &version, &|| false);
        for (path, imported) in paths.iter().zip(&mut imported).filter(|(path, _)| version(path).is_none()) {
            let text: String =
                self.task.given.iter().filter(|given| given.path == **path).map(join_added_lines).collect();
            let syntax = parse_syntax(&mut Parsers::default(), path, &text);
            *imported = self.resolver.resolve_imports(path, &syntax.imports);
        }
        imported
    }
}

impl RankedCase<'_> {
    /// Packs sections for the case into `budget` tokens, as for a review. `ranked` is [`RankedCase::ranked`], possibly
    /// in the order of other weights.
    pub fn pack(&self, ranked: &[RankedFile], weights: &RankingWeights, budget: u32) -> PackedContext {
        let (tree, given) = (self.tree, self.case.task.paths().collect::<Vec<_>>());
        let documents = ProjectDocuments { all: &tree.documents, loaded: &[] };
        let mut pieces = build_repo_outline(&tree.code_files, documents, &given, budget, &count_case_tokens);
        let mut code = build_code_pieces(ranked, weights, &|path| tree.syntax(path));
        keyword_snippets::mark_snippets(&mut code, ranked);
        pieces.extend(code.into_iter().filter(is_likely));
        let input = PackInput {
            pieces,
            ranked,
            analyzer: tree.analyzer,
            declared: &|path| tree.syntax(path).declarations,
            budget,
            count: &count_case_tokens,
            cancelled: &|| false,
            may_compress: true,
        };
        input.pack_compressed().unwrap_or_default()
    }
}

/// Counts tokens in the encoding that all cases are measured in.
pub fn count_case_tokens(text: &str) -> usize {
    count_tokens(Encoding::O200kBase, text)
}

/// Joins the added lines of a given file.
pub fn join_added_lines(given: &GivenFile) -> String {
    given.hunks.iter().flat_map(|hunk| &hunk.added).flat_map(|line| [line.as_str(), "\n"]).collect()
}

/// Builds a case from a commit. `None` if the commit does not qualify.
fn build_case(repo: &Repo, commit: &str) -> Result<Option<RetrievalCase>, GitError> {
    let changes = repo.commit_changes(commit, *MODIFIED_FILES_PER_CASE.end(), &is_code_path)?.changes;
    let is_modified =
        |change: &&CommitFileChange| change.kind == CommitFileChangeKind::Modified && !change.hunks.is_empty();
    let mut modified: Vec<&CommitFileChange> = changes.iter().filter(is_modified).collect();
    let is_deletion = |change: &CommitFileChange| change.kind == CommitFileChangeKind::Deleted;
    if !MODIFIED_FILES_PER_CASE.contains(&modified.len())
        || changes.len() > *MODIFIED_FILES_PER_CASE.end()
        || changes.iter().any(is_deletion)
    {
        return Ok(None);
    }
    modified.sort_by_key(|change| (hash_path(commit, &change.path), &change.path));
    let hidden = modified.split_off(modified.len().div_ceil(2));
    let added = changes.iter().filter(|change| change.kind == CommitFileChangeKind::Added);
    let task = RetrievalTask {
        given: modified.into_iter().chain(added).map(from_past_change).collect(),
        ..RetrievalTask::default()
    };
    Ok(Some(RetrievalCase { task, hidden: hidden.into_iter().map(from_past_change).collect() }))
}

/// Converts a file change of a past commit to ranking input.
pub fn from_past_change(change: &CommitFileChange) -> GivenFile {
    GivenFile {
        path: change.path.clone(),
        touch: match change.kind {
            CommitFileChangeKind::Added => Touch::Added,
            CommitFileChangeKind::Modified => Touch::Modified,
            CommitFileChangeKind::Deleted => Touch::Deleted,
        },
        hunks: change
            .hunks
            .iter()
            .map(|hunk| GivenFileHunk { range: hunk.range, removed: hunk.removed.clone(), added: hunk.added.clone() })
            .collect(),
    }
}

/// Hashes with FNV-1a and a final mix: the result is the same on every machine and in every version.
fn hash_path(commit: &str, path: &str) -> u64 {
    let bytes = commit.bytes().chain(path.bytes());
    let hash =
        bytes.fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    (hash ^ hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
