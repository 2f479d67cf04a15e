//! Measures how well retrieval finds the context of a change, on past commits of a repository.
//!
//! A case is a commit that is no merge, has no deletions or renames, and modifies 2 to 15 files of code. Half of the
//! modified files (rounded up, chosen by a hash of commit and path) and all added files form the task, with their diff.
//! The other modified files are hidden: they are searched in the parent's tree, with the history up to the parent. The
//! metrics of the hidden files are:
//!
//! - *file recall*: the share of hidden files with a line in a section;
//! - *line recall*: the share of old-side lines changed or removed by the commit that are in sections; for a pure
//!   insertion, the lines directly before and after it count;
//! - *reciprocal rank*: 1 divided by the rank of the first hidden file, with files in the order of their best score.
//!
//! Each metric is the mean over all cases. Sections are packed as for a review, and every token of a title is counted.
//!
//! [`TokenSaving`] compares this with sending whole files.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use crate::context::builder::{MAX_HISTORY_COMMITS, build_code_pieces, is_likely};
use crate::context::document_store::{AuthoredFilter, DocumentStore, list_code_files, read_text};
use crate::context::file_analysis::FileAnalyzer;
use crate::context::fit_budget::PackInput;
use crate::context::history_cache::RepoHistory;
use crate::context::import_resolver::ImportResolver;
use crate::context::keyword_snippets;
use crate::context::pack::{ContextPiece, ContextSection, Need, PackedContext, ScoreExplanation, SectionKind, pack};
use crate::context::project_documents::list_project_documents;
use crate::context::repo_outline::{ProjectDocuments, build_repo_outline};
use crate::context::retrieve::history::Touch;
use crate::context::retrieve::masked_text::MaskedFile;
use crate::context::retrieve::paths::is_code;
use crate::context::retrieve::task::{GivenFile, GivenFileHunk, RetrievalTask, old_line_range};
use crate::context::retrieve::weights::RankingWeights;
use crate::context::retrieve::{RankedFile, RankingInput, SourceFile, rank_files, rerank};
use crate::domain::LineRange;
use crate::git::{CommitFileChange, CommitFileChangeKind, GitError, Repo};
use crate::index::chunk::parse_syntax;
use crate::syntax::source::Parsers;
use crate::tokens::{Encoding, count_tokens};

/// Number of code files that a commit must modify to be a case.
const MODIFIED_FILES_PER_CASE: std::ops::RangeInclusive<usize> = 2..=15;
/// Minimum number of commits before a case. The beginning of a repository differs from everything later.
const MIN_HISTORY_COMMITS: usize = 100;

/// Retrieval metrics, as means over cases.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RetrievalMetrics {
    pub cases: usize,
    pub file_recall: f64,
    pub line_recall: f64,
    pub reciprocal_rank: f64,
    /// Tokens of the sections.
    pub tokens: f64,
}

/// Metrics of one set of weights, by budget in tokens.
pub type MetricsByBudget = BTreeMap<u32, RetrievalMetrics>;

/// Tokens saved compared with sending the given files and their direct imports as whole files.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TokenSaving {
    /// Metrics of sending whole files. No ranking is involved.
    pub whole: RetrievalMetrics,
    /// Metrics of sending the diff of the given files with [`DIFF_CONTEXT_LINES`] lines around each change, plus
    /// sections under the smallest budget of [`BUDGET_LADDER`] that reaches the same file recall and line recall as
    /// whole files. The first value is that budget. `None` if no budget reaches it.
    pub equal: Option<(u32, RetrievalMetrics)>,
}

impl TokenSaving {
    /// Returns the share of tokens that are not sent, in percent. `None` without an equal budget.
    pub fn percent(&self) -> Option<f64> {
        let (_, equal) = self.equal.filter(|_| self.whole.tokens > 0.0)?;
        Some((1.0 - equal.tokens / self.whole.tokens) * 100.0)
    }
}

/// Unchanged lines around each change of a diff. This is two more than a review sends
/// ([`crate::context::diff_parts::DiffLimits::DEFAULT_CONTEXT_LINES`]), so that the saving is not overstated.
const DIFF_CONTEXT_LINES: u32 = 8;
/// Budgets, in tokens, that are tried to reach the recall of whole files.
const BUDGET_LADDER: [u32; 14] =
    [250, 500, 1_000, 1_500, 2_000, 3_000, 4_000, 6_000, 8_000, 12_000, 16_000, 24_000, 32_000, 64_000];

/// Result of an evaluation. `rows` has one entry for each set of weights, by name.
#[derive(Debug, Clone, PartialEq)]
pub struct RetrievalEvaluation {
    pub rows: Vec<(&'static str, MetricsByBudget)>,
    pub saving: TokenSaving,
}

/// Selection of commits and budgets for an evaluation.
#[derive(Debug, Clone)]
pub struct RetrievalEvalPlan<'a> {
    /// Commit to start from. The newest cases are used.
    pub tip: &'a str,
    /// Number of cases to measure.
    pub commits: usize,
    /// Number of newest cases to skip, for instance because the weights were fitted on them.
    pub skip: usize,
    /// Budgets to measure, in tokens.
    pub budgets: &'a [u32],
    /// Number of commits behind the tip to read.
    pub depth: usize,
    /// Folder of the history cache. `None` disables the cache.
    pub folder: Option<&'a Path>,
}

/// Measures retrieval with each named set of weights in `ways`, and the tokens that the built-in weights save.
/// `progress` receives the number of finished cases after each case.
///
/// # Errors
/// Returns an error if git cannot read the history, a tree or a commit.
pub fn evaluate_retrieval(
    repo: &Repo,
    plan: &RetrievalEvalPlan<'_>,
    ways: &[(&'static str, &RankingWeights)],
    progress: &mut dyn FnMut(usize),
) -> Result<RetrievalEvaluation, GitError> {
    let known = RepoHistory::read(repo, plan.tip, plan.depth, plan.folder, &|| false)?;
    let mut library = DocumentStore::default();
    let telling = FileAnalyzer::open(repo, Encoding::O200kBase, None);
    let mut sums: Vec<(&'static str, MetricsByBudget)> =
        ways.iter().map(|(name, _)| (*name, MetricsByBudget::new())).collect();
    let (mut whole, mut ladder) = (RetrievalMetrics::default(), [RetrievalMetrics::default(); BUDGET_LADDER.len()]);
    let (mut found, mut skipped) = (0, 0);
    let budgets: BTreeSet<u32> = plan.budgets.iter().copied().collect();
    for ancestor in repo.ancestors(plan.tip, plan.depth)? {
        if found == plan.commits {
            break;
        }
        let [parent] = ancestor.parents.as_slice() else { continue };
        let Some(case) = build_case(repo, &ancestor.commit)? else { continue };
        let mut before = known.ancestors(parent);
        before.truncate(MAX_HISTORY_COMMITS);
        if before.len() < MIN_HISTORY_COMMITS {
            continue;
        }
        let listing = repo.list_tree(parent)?;
        let tree_files = list_code_files(&listing, &HashSet::new());
        let given: HashSet<&str> = case.task.paths().collect();
        let is_given = |path: &str| given.contains(path);
        let mut own = AuthoredFilter::from_tree(repo, parent, &is_given)?;
        let files = library.read(repo, own.retain_by_name(tree_files.clone()), &mut own);
        let is_there = |path: &str| files.binary_search_by(|file| file.path.as_str().cmp(path)).is_ok();
        if !case.hidden.iter().all(|hidden| is_there(&hidden.path)) {
            continue;
        }
        // Skipped cases pass the same checks as measured cases, so that the two sets never overlap.
        if skipped < plan.skip {
            skipped += 1;
            continue;
        }
        let tokens = |text: &str| count_tokens(Encoding::O200kBase, text);
        let told = |files: &[&SourceFile]| {
            let told = files.iter().map(|file| {
                let text = read_text(repo, &file.blob).ok().flatten().unwrap_or_default();
                MaskedFile::from_text(&file.document, &text, &tokens)
            });
            told.collect()
        };
        let named = HashSet::new();
        let (files, history, before) = (files.as_slice(), &known.history, before.as_slice());
        let module = repo.file_at(parent, "go.mod")?.and_then(|text| ImportResolver::parse_go_module(&text));
        let tree = ImportResolver::new(listing.entries.iter().map(|entry| entry.path.as_str()), module.as_deref());
        let imports = |paths: &[&str]| -> Vec<Vec<String>> {
            let place = |path: &str| {
                let at = files.binary_search_by(|file| file.path.as_str().cmp(path)).ok()?;
                Some((path.to_owned(), files.get(at)?.blob.clone()))
            };
            let mut imported = telling.resolve_imports(&tree, paths, &place, &|| false);
            for (path, imported) in paths.iter().zip(&mut imported).filter(|(path, _)| place(path).is_none()) {
                let text = case
                    .task
                    .given
                    .iter()
                    .filter(|given| given.path == **path)
                    .map(join_added_lines)
                    .collect::<String>();
                *imported = tree.resolve_imports(path, &parse_syntax(&mut Parsers::default(), path, &text).imports);
            }
            imported
        };
        let sources = RankingInput {
            files,
            history,
            ancestors: before,
            mask_files: &told,
            named: &named,
            wanted: &|_| true,
            imports: &imports,
        };
        let sent_whole = pack(&build_whole_file_pieces(repo, &case.task, files, &imports), u32::MAX, &tokens);
        let diff_tokens = tokens(&format_diff(repo, &case.task, files)) as f64;
        let syntax = |path: &str| {
            let at = files.binary_search_by(|file| file.path.as_str().cmp(path)).ok();
            at.and_then(|at| files.get(at)).map(|file| telling.syntax(path, &file.blob)).unwrap_or_default()
        };
        let declared = |path: &str| syntax(path).declarations;
        let documents = list_project_documents(&listing);
        let given: Vec<&str> = case.task.paths().collect();
        // As in a review, the outline of the tree uses its part of the budget.
        let sent = |ranked: &[RankedFile], weights: &RankingWeights, budget: u32| {
            let documents = ProjectDocuments { all: &documents, loaded: &[] };
            let mut all = build_repo_outline(&tree_files, documents, &given, budget, &tokens);
            let mut code = build_code_pieces(ranked, weights, &syntax);
            keyword_snippets::mark_snippets(&mut code, ranked);
            all.extend(code.into_iter().filter(is_likely));
            let input = PackInput {
                pieces: all,
                ranked,
                analyzer: &telling,
                declared: &declared,
                budget,
                count: &tokens,
                cancelled: &|| false,
            };
            input.pack_compressed().unwrap_or_default()
        };
        let leading = rank_files(&case.task, &sources, RankingWeights::built_in(), &mut library.vocabulary);
        let places = leading.iter().map(|file| (file.path.clone(), file.blob.clone()));
        telling.load_syntax(&places.collect::<Vec<_>>(), &|| false);
        for ((_, weights), (_, row)) in ways.iter().zip(&mut sums) {
            let ranked = rerank(&leading, weights);
            for budget in &budgets {
                let packed = sent(&ranked, weights, *budget);
                row.entry(*budget).or_default().add_case(&case.hidden, &ranked, &packed);
            }
        }
        whole.add_case(&case.hidden, &leading, &sent_whole);
        for (budget, measured) in BUDGET_LADDER.iter().zip(&mut ladder) {
            let packed = sent(&leading, RankingWeights::built_in(), *budget);
            measured.add_case(&case.hidden, &leading, &packed);
            measured.tokens += diff_tokens;
        }
        found += 1;
        progress(found);
    }
    let rows = sums.iter_mut().flat_map(|(_, row)| row.values_mut());
    rows.chain(&mut ladder).chain([&mut whole]).for_each(RetrievalMetrics::average);
    let is_equal = |measured: &RetrievalMetrics| {
        measured.file_recall >= whole.file_recall && measured.line_recall >= whole.line_recall
    };
    let equal = BUDGET_LADDER.into_iter().zip(ladder).find(|(_, measured)| found > 0 && is_equal(measured));
    Ok(RetrievalEvaluation { rows: sums, saving: TokenSaving { whole, equal } })
}

/// Returns the given files and the files they import directly, each as one piece.
fn build_whole_file_pieces(
    repo: &Repo,
    task: &RetrievalTask,
    files: &[SourceFile],
    imports: &dyn Fn(&[&str]) -> Vec<Vec<String>>,
) -> Vec<ContextPiece> {
    let text = |given: &GivenFile| {
        let text = load_text(repo, files, &given.path).unwrap_or_else(|| join_added_lines(given));
        (given.path.clone(), text)
    };
    let mut sent: BTreeMap<String, String> = task.given.iter().map(text).collect();
    for path in imports(&task.paths().collect::<Vec<_>>()).into_iter().flatten() {
        if let Some(text) = load_text(repo, files, &path) {
            sent.entry(path).or_insert(text);
        }
    }
    let piece = |(path, text): (String, String)| ContextPiece {
        path,
        lines: Some(LineRange::new(1, text.lines().count().max(1) as u32)),
        stands_for: None,
        kind: SectionKind::Window,
        text: text.into(),
        tokens: None,
        need: Need::Must,
        score: 1.0,
        utility: 1.0,
        first_bonus: 0.0,
        explanation: Arc::new(ScoreExplanation::default()),
    };
    sent.into_iter().map(piece).collect()
}

/// Formats the diff of the given files.
fn format_diff(repo: &Repo, task: &RetrievalTask, files: &[SourceFile]) -> String {
    let mut told = String::new();
    for given in &task.given {
        told.push_str(&format!("### {}\n", given.path));
        let text = load_text(repo, files, &given.path).unwrap_or_default();
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let around = |start: usize, end: usize| lines[start.min(lines.len())..end.min(lines.len())].concat();
        for hunk in &given.hunks {
            let (start, end) = old_line_range(&hunk.range);
            let (start, end) = (start as usize, end as usize);
            let changed = hunk.removed.iter().chain(&hunk.added).flat_map(|line| [line.as_str(), "\n"]);
            told.push_str(&around(start.saturating_sub(DIFF_CONTEXT_LINES as usize), start));
            told.extend(changed);
            told.push_str(&around(end, end.saturating_add(DIFF_CONTEXT_LINES as usize)));
        }
    }
    told
}

fn load_text(repo: &Repo, files: &[SourceFile], path: &str) -> Option<String> {
    let at = files.binary_search_by(|file| file.path.as_str().cmp(path)).ok()?;
    read_text(repo, &files.get(at)?.blob).ok().flatten()
}

/// Joins the added lines of a given file.
fn join_added_lines(given: &GivenFile) -> String {
    given.hunks.iter().flat_map(|hunk| &hunk.added).flat_map(|line| [line.as_str(), "\n"]).collect()
}

struct RetrievalCase {
    task: RetrievalTask,
    hidden: Vec<GivenFile>,
}

/// Builds a case from a commit. `None` if the commit does not qualify.
fn build_case(repo: &Repo, commit: &str) -> Result<Option<RetrievalCase>, GitError> {
    let changes = repo.commit_file_changes(commit, *MODIFIED_FILES_PER_CASE.end(), &is_code)?;
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

/// Returns the old-side lines that count as changed, 1-based and not above `lines`.
fn changed_lines(file: &GivenFile, lines: u32) -> HashSet<u32> {
    let places = file.hunks.iter().map(|hunk| hunk.range);
    let of = |place: crate::git::Hunk| match place.old_lines {
        0 => place.old_start..place.old_start + 2,
        count => place.old_start..place.old_start + count,
    };
    places.flat_map(of).filter(|line| (1..=lines).contains(line)).collect()
}

/// Returns true if a section contains the line as in the file, apart from indentation. Compressed lines may be empty.
fn has_line(section: &ContextSection, line: u32, known: Option<&RankedFile>) -> bool {
    let Some(said) = section.line(line) else { return false };
    let Some(known) = known else { return true };
    let texts = &known.masked.texts;
    let (place, _) = texts.locate_lines(&known.document.passages, LineRange::new(line, line));
    let own = texts.all.get(place).unwrap_or_default();
    said.trim() == own.trim()
}

impl RetrievalMetrics {
    fn add_case(&mut self, hidden: &[GivenFile], ranked: &[RankedFile], packed: &PackedContext) {
        let mut sent: HashMap<&str, Vec<&ContextSection>> = HashMap::new();
        for section in packed.sections.iter().filter(|section| section.lines.is_some()) {
            sent.entry(&section.path).or_default().push(section);
        }
        let (mut files, mut lines, mut all_lines) = (0usize, 0usize, 0usize);
        for file in hidden {
            let known = ranked.iter().find(|ranked| ranked.path == file.path);
            let changed = changed_lines(file, known.map_or(u32::MAX, |known| known.document.line_count()));
            all_lines += changed.len();
            let Some(sent) = sent.get(file.path.as_str()) else { continue };
            files += 1;
            let is_sent = |line: &&u32| sent.iter().any(|section| has_line(section, **line, known));
            lines += changed.iter().filter(is_sent).count();
        }
        let is_hidden = |ranked: &RankedFile| hidden.iter().any(|file| file.path == ranked.path);
        self.cases += 1;
        self.file_recall += files as f64 / hidden.len().max(1) as f64;
        self.line_recall += lines as f64 / all_lines.max(1) as f64;
        self.reciprocal_rank += ranked.iter().position(is_hidden).map_or(0.0, |at| 1.0 / (at + 1) as f64);
        self.tokens += f64::from(packed.total_tokens);
    }

    fn average(&mut self) {
        let cases = self.cases.max(1) as f64;
        for sum in [&mut self.file_recall, &mut self.line_recall, &mut self.reciprocal_rank, &mut self.tokens] {
            *sum /= cases;
        }
    }
}
