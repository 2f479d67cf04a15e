//! Builds the context of a review under a token budget: the task, the change, and the code that matters for the change.
//!
//! Invariants:
//! - All text comes from one tree and the history behind it, and it is masked.
//! - The same question has the same answer.
//! - Missing inputs (index, history, guidelines) lower the quality, but never fail the review.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, LazyLock};

use ignore::gitignore::Gitignore;

use super::annotations::{annotate_coverage, annotate_last_change, build_untested_piece, find_untested_functions};
use super::candidates::{FileSelection, choose_candidates};
use super::document_store::{AuthoredFilter, DocumentStore, list_code_files};
use super::embeddings::EmbeddingScorer;
use super::enclosing_scope::{LinesInDiff, build_enclosing_pieces, likely_paths};
use super::file_analysis::{FileAnalyzer, FileVersion};
use super::fit_budget::pack_compressed;
use super::focus::{build_focus_pieces, is_sent};
use super::history_cache::RepoHistory;
use super::import_resolver::ImportResolver;
use super::keyword_snippets;
use super::mentions::{self, Mentions};
use super::pack::{
    ContextFilter, ContextPiece, Need, PackedContext, ScoreExplanation, SectionKind, SharedText, TokenCounter,
    find_best_per_file,
};
use super::project_documents::list_project_documents;
use super::repo_outline::{ProjectDocuments, build_repo_outline};
use super::retrieve::factors::{FileFactors, PassageFactors};
use super::retrieve::task::{Focus, RetrievalTask};
use super::retrieve::weights::RankingWeights;
use super::retrieve::{RankedFile, RankedPassage, RankingInput, SourceFile, rank_files, rerank};
use super::score;
use super::summaries::build_summaries;
use super::task_text::fit_task_text;
use super::test_coverage::CoverageReports;
use super::units::split_into_units;
use super::utility::{FileUtility, LinesUtility};
use crate::domain::text::sanitize_line;
use crate::domain::{Encoding, LineRange};
use crate::git::{EntryKind, GitError, Repo, TreeFile, TreeListing};
use crate::index::chunk::{FileSyntax, MAX_TOKENS_PER_CHUNK};
use crate::index::{Index, IndexCompleteness};
use crate::masking::secret_files::is_secret_file;
use crate::syntax::facts::is_test_path;
use crate::tokens::TokenCountCache;

/// Maximum number of commits to read from the history. It bounds the time of the first question in a repository.
pub const MAX_HISTORY_COMMITS: usize = 3_000;
/// Maximum tokens of the focus, and of the code that encloses the change if there is no focus. Each is also limited to
/// the budget divided by [`FOCUS_BUDGET_DIVISOR`], an eighth. The pieces marked in a file that the task mentions have
/// the same limit.
const MAX_FOCUS_TOKENS: u32 = 2_000;
const FOCUS_BUDGET_DIVISOR: u32 = 8;
/// Divisor of the budget: a mentioned declaration larger than a quarter, or too long for a chunk, is sent as its head
/// only.
const WHOLE_DECLARATION_BUDGET_DIVISOR: u32 = 4;
/// Divisor of the budget for the list of changed functions that no test reaches: a sixteenth.
const UNTESTED_BUDGET_DIVISOR: u32 = 16;
/// Divisor of the budget for the text of the task: a quarter. The requester already knows this text.
pub const TASK_BUDGET_DIVISOR: u32 = 4;

/// Filters for the content of the context besides the change.
#[derive(Debug, Clone)]
pub struct ContextOptions {
    pub types: bool,
    pub tests: bool,
    pub documentation: bool,
    /// Globs in the syntax of .gitignore. If there are any, code comes only from files that match.
    pub files: Gitignore,
    /// If there are any, only code of these kinds is sent.
    pub kinds: Vec<SectionKind>,
}

impl Default for ContextOptions {
    fn default() -> Self {
        Self { types: true, tests: true, documentation: true, files: Gitignore::empty(), kinds: Vec::new() }
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

    /// Returns the filter that excludes pieces of a kind, if any.
    fn kind_filter(&self, kind: SectionKind) -> Option<ContextFilter> {
        match () {
            () if !self.kinds.is_empty() && !self.kinds.contains(&kind) => Some(ContextFilter::Kinds),
            () if !self.types && kind == SectionKind::Type => Some(ContextFilter::Types),
            () if !self.tests && kind == SectionKind::Test => Some(ContextFilter::Tests),
            () => None,
        }
    }
}

/// Removes the elements that `filter` excludes, and counts them by filter.
fn apply_filter<T>(
    all: &mut Vec<T>,
    filtered: &mut BTreeMap<ContextFilter, u32>,
    filter: impl Fn(&T) -> Option<ContextFilter>,
) {
    all.retain(|one| {
        let by = filter(one);
        by.into_iter().for_each(|by| *filtered.entry(by).or_default() += 1);
        by.is_none()
    });
}

/// Question for which a context is built.
pub struct ContextQuery<'a> {
    /// Commit whose tree is searched.
    pub tree: &'a str,
    /// Commit whose history is read.
    pub history: &'a str,
    pub task: RetrievalTask,
    /// Pieces that come before all else, in this order. They count toward the budget.
    pub leading_pieces: Vec<ContextPiece>,
    /// Unchanged lines around each hunk in the diff of `leading_pieces`. `None` if the diff is in the task's text.
    pub context_lines: Option<u32>,
    /// Paths of project documents that the context quotes already.
    pub quoted_documents: &'a [String],
    /// Budget in tokens of `encoding`.
    pub budget: u32,
    pub encoding: Encoding,
    pub options: ContextOptions,
    /// Folder for caches about this repository. `None` disables them.
    pub folder: Option<&'a Path>,
    /// Index that selects files of a large tree. Without it, all files up to a limit are read.
    pub index: Option<&'a Index>,
    /// Scorer for the meaning of code. Without it, this signal is missing.
    pub meaning: Option<&'a EmbeddingScorer>,
    /// Returns true once the answer is not needed any more, and then always. It is called for every file and every
    /// commit.
    pub cancelled: &'a dyn Fn() -> bool,
}

/// Builds the context. `None` after cancellation; facts derived until then stay in the caches.
///
/// # Errors
/// Returns an error if git cannot read the tree or the history.
pub fn build_context(repo: &Repo, question: ContextQuery<'_>) -> Result<Option<PackedContext>, GitError> {
    let mut library = DocumentStore::open(question.folder);
    let telling = FileAnalyzer::open(repo, question.encoding, question.folder).with_index(question.index);
    let packed = build_context_with_caches(repo, question, &mut library, &telling)?;
    library.close();
    telling.close();
    Ok(packed)
}

/// Builds the context with caches that are open already. `None` after cancellation.
fn build_context_with_caches(
    repo: &Repo,
    question: ContextQuery<'_>,
    library: &mut DocumentStore,
    telling: &FileAnalyzer<'_>,
) -> Result<Option<PackedContext>, GitError> {
    let weights = RankingWeights::built_in();
    let ContextQuery {
        tree,
        history,
        task,
        leading_pieces: front,
        quoted_documents: documents_told,
        budget,
        encoding,
        options,
        folder,
        index,
        ..
    } = question;
    let (context_lines, meaning, cancelled) = (question.context_lines, question.meaning, question.cancelled);
    // Text that is packed again is mostly the same as before, so its counts are cached.
    let memo = TokenCountCache::new(encoding);
    let count: TokenCounter<'_> = &|text| memo.count_tokens(text);
    let (task, passed_over) = task.split_leading();
    let changed: Vec<&str> = task.paths().chain(passed_over.iter().map(String::as_str)).collect();
    let listing = repo.list_tree(tree)?;
    let tree_files = list_code_files(&listing, &changed.iter().copied().collect());
    let blobs: HashMap<String, String> = tree_files.iter().map(|file| (file.path.clone(), file.blob.clone())).collect();
    let place = |path: &str| Some((path.to_owned(), blobs.get(path)?.clone()));
    let given = || task.given.iter().filter(|given| options.file_filter(&given.path).is_none());
    let tells_rests = task.focus.is_empty() && options.kinds.is_empty();
    if tells_rests {
        let looked_at: Vec<FileVersion> = likely_paths(given()).into_iter().filter_map(place).collect();
        telling.prefetch_syntax(&looked_at);
        telling.prefetch_masked_texts(&looked_at);
    }
    let known = RepoHistory::read(repo, history, MAX_HISTORY_COMMITS, folder, cancelled)?;
    if cancelled() {
        return Ok(None);
    }
    let before = known.ancestors(history);
    let mentions = Mentions::parse(&task.text);
    let mut named = mentions.resolve_in_tree(&tree_files, index);
    let mut searched = tree_files.clone();
    searched.retain(|file| !passed_over.contains(&file.path));
    let first: HashSet<&str> = task.paths().chain(named.paths()).collect();
    let is_asked = |path: &str| first.contains(path);
    let mut own = AuthoredFilter::from_tree(repo, tree, &is_asked)?;
    let FileSelection { files: chosen, skipped: others } =
        choose_candidates(searched, &mut own, (&task, &named), index, (&known.history, &before));
    let mut notes = Vec::new();
    let is_whole = index.is_some_and(|index| index.completeness() == IndexCompleteness::Whole);
    let others = if is_whole { 0 } else { own.retain_by_name(others).len() };
    if others > 0 {
        let all = crate::domain::text::format_count(chosen.len() + others, "file");
        notes.push(format!(
            "only {} of {all} of code were looked at: the index of all of them is not ready",
            chosen.len()
        ));
    }
    let (files, unread) = library.read_within(repo, chosen, &mut own, cancelled);
    if cancelled() {
        return Ok(None);
    }
    // A file in focus need not be code.
    let is_other = |focus: &&Focus| !files.iter().any(|file| file.path == focus.path);
    let others = task.focus.iter().filter(is_other).filter_map(|focus| find_showable_file(&listing, &focus.path));
    let others = library.read(repo, others.collect(), &mut own);
    drop(own);
    mentions.resolve_declared(&mut named, &files, &library.vocabulary);
    let told = |files: &[&SourceFile]| telling.mask_files(files, cancelled);
    let paths = named.paths().collect();
    let filtered: RefCell<BTreeMap<ContextFilter, u32>> = RefCell::default();
    let wanted = |path: &str| {
        let by = options.file_filter(path);
        by.into_iter().for_each(|by| *filtered.borrow_mut().entry(by).or_default() += 1);
        by.is_none()
    };
    let module = repo.file_at(tree, "go.mod")?.and_then(|text| ImportResolver::parse_go_module(&text));
    let paths_of = ImportResolver::new(listing.entries.iter().map(|entry| entry.path.as_str()), module.as_deref());
    let imports = |paths: &[&str]| telling.resolve_imports(&paths_of, paths, &place, cancelled);
    let sources = RankingInput {
        files: &files,
        history: &known.history,
        ancestors: &before,
        mask_files: &told,
        named: &paths,
        wanted: &wanted,
        imports: &imports,
    };
    let mut ranked = rank_files(&task, &sources, weights, &mut library.vocabulary);
    if unread > 0 {
        let files = crate::domain::text::format_count(unread, "file");
        notes.push(format!("without {files} of code: there is too much in the others"));
    }
    match meaning.map(|meaning| meaning.score_files(repo, &task, &mut ranked, &blobs, cancelled)) {
        _ if cancelled() => return Ok(None),
        Some(Ok(missing)) => {
            ranked = rerank(&ranked, weights);
            notes.extend((missing > 0).then(|| missing_vectors_note(missing)));
        }
        Some(Err(error)) => notes.push(format!("without what code means: {}", sanitize_line(&error.summary))),
        None => {}
    }
    let mut filtered = filtered.into_inner();
    // Other files are not sent.
    let may_be_sent = |file: &&RankedFile| {
        score::from_probability(file.probability) >= score::MIN_SCORE || named.files.contains(&file.path)
    };
    let sent: HashMap<&str, FileVersion> =
        ranked.iter().filter(may_be_sent).filter_map(|file| Some((file.path.as_str(), place(&file.path)?))).collect();
    telling.load_syntax(&sent.values().cloned().collect::<Vec<_>>(), cancelled);
    if cancelled() {
        return Ok(None);
    }
    let syntax = |path: &str| sent.get(path).map(|(path, blob)| telling.syntax(path, blob)).unwrap_or_default();
    let mut code = build_code_pieces(&ranked, weights, &syntax);
    apply_filter(&mut code, &mut filtered, |piece| options.kind_filter(piece.kind));
    mark_certain_pieces(&mut code);
    mentions::mark_files(&mut code, &named, MAX_FOCUS_TOKENS.min(budget / FOCUS_BUDGET_DIVISOR));
    apply_filter(&mut code, &mut filtered, |piece| (!is_likely(piece)).then_some(ContextFilter::Unlikely));
    let because_of = |file: &RankedFile| explain_file_score(&file.factors, weights);
    let asked = mentions::MentionQuery {
        mentioned: &named,
        task: &task,
        ranked: &ranked,
        files: &files,
        analysis: telling,
        vocabulary: &library.vocabulary,
        weights,
        explain_file: &because_of,
        max_tokens: MAX_TOKENS_PER_CHUNK.min(budget / WHOLE_DECLARATION_BUDGET_DIVISOR),
        count,
        cancelled,
    };
    let mut declarations = asked.collect_declarations();
    apply_filter(&mut declarations, &mut filtered, |piece| options.kind_filter(piece.kind));
    code.extend(declarations);
    mark_used_types(&mut code, &ranked);
    keyword_snippets::mark_snippets(&mut code, &ranked);
    let mut all = front;
    let mut shown = LinesInDiff::Around(context_lines.unwrap_or(0));
    if !task.text.is_empty() {
        let text = fit_task_text(&task.text, budget / TASK_BUDGET_DIVISOR, count);
        if context_lines.is_none() {
            shown = LinesInDiff::from_diff_text(&text);
        }
        all.push(standalone_piece(SectionKind::Task, Need::Must, text, "the task"));
    }
    let reports = CoverageReports::find(repo, &listing.entries, folder);
    let changed_paths = task.given.iter().map(|given| given.path.as_str()).collect();
    let covered = reports.find_coverage(repo, &tree_files, &changed_paths, cancelled);
    let untested =
        covered.map(|covered| find_untested_functions(&task, telling, &blobs, &covered, cancelled)).unwrap_or_default();
    all.extend(build_untested_piece(&untested, budget / UNTESTED_BUDGET_DIVISOR, count));
    let most = MAX_FOCUS_TOKENS.min(budget / FOCUS_BUDGET_DIVISOR);
    let places = build_focus_pieces(&task.focus, &[files.as_slice(), &others].concat(), telling, most, count);
    let is_missing = |focus: &&Focus| !places.iter().any(|piece| piece.path == focus.path);
    notes.extend(task.focus.iter().filter(is_missing).map(|focus| {
        format!(
            "nothing of {} is in focus: no text that may be shown is in the tree by this path",
            sanitize_line(&focus.path)
        )
    }));
    let in_focus: Vec<(String, LineRange)> =
        places.iter().filter_map(|piece| Some((piece.path.clone(), piece.lines?))).collect();
    all.extend(places);
    if tells_rests {
        all.extend(build_enclosing_pieces(
            given(),
            &shown,
            (&files, telling),
            MAX_FOCUS_TOKENS.min(budget / FOCUS_BUDGET_DIVISOR),
            count,
        ));
    }
    let mut documents = list_project_documents(&listing);
    apply_filter(&mut documents, &mut filtered, |_| (!options.documentation).then_some(ContextFilter::Documents));
    let documents = ProjectDocuments { all: &documents, loaded: documents_told };
    all.extend(build_repo_outline(&tree_files, documents, &changed, budget, count));
    let summaries = build_summaries(&code, &ranked, &syntax);
    all.extend(code);
    all.extend(summaries);
    let declared = |path: &str| blobs.get(path).map(|blob| telling.declarations(path, blob)).unwrap_or_default();
    let packed = pack_compressed(all, &ranked, telling, &declared, (budget, count), cancelled);
    let Some(mut packed) = packed else { return Ok(None) };
    notes.extend(
        in_focus
            .iter()
            .filter(|piece| !is_sent(piece, &packed))
            .map(|(path, _)| format!("nothing of {} is in focus: the budget has no room for it", sanitize_line(path))),
    );
    let sent = packed.sections.iter().map(|section| section.path.as_str());
    let wanted = sent.chain(changed.iter().copied()).collect();
    if let Some(covered) = reports.find_coverage(repo, &tree_files, &wanted, cancelled) {
        annotate_coverage(&mut packed, &covered);
    }
    packed.untested = untested;
    if cancelled() {
        return Ok(None);
    }
    let changed = task.given.iter().map(|given| given.path.as_str()).collect();
    annotate_last_change(&mut packed, repo, (&known, &before), &changed);
    packed.notes = notes;
    packed.filtered = filtered;
    Ok(Some(packed))
}

/// Returns a note that the next context may differ, because `pieces` pieces have no vectors yet.
fn missing_vectors_note(pieces: usize) -> String {
    let pieces = crate::domain::text::format_count(pieces, "piece");
    format!("{pieces} of code not yet weighed by meaning: vectors are fetched a part at a time, the next time more")
}

/// Finds a file of a tree that may be shown.
fn find_showable_file(listing: &TreeListing, path: &str) -> Option<TreeFile> {
    let entry = listing.entries.iter().find(|entry| entry.path == path)?;
    let may_be_shown = entry.kind == EntryKind::File && !is_secret_file(path);
    may_be_shown.then(|| TreeFile { path: entry.path.clone(), blob: entry.id.clone() })
}

/// Creates a piece that belongs to no file.
pub fn standalone_piece(kind: SectionKind, need: Need, text: String, reason: &str) -> ContextPiece {
    ContextPiece {
        path: String::new(),
        lines: None,
        stands_for: None,
        kind,
        text: text.into(),
        tokens: None,
        need,
        score: 1.0,
        utility: 1.0,
        first_bonus: 0.0,
        explanation: ScoreExplanation { factors: Vec::new(), reason: reason.to_owned() }.into(),
    }
}

/// Converts ranked files to pieces, one for each chunk.
pub fn build_code_pieces(
    ranked: &[RankedFile],
    weights: &RankingWeights,
    syntax: &dyn Fn(&str) -> FileSyntax,
) -> Vec<ContextPiece> {
    let mut pieces = Vec::new();
    for file in ranked {
        let because = explain_file_score(&file.factors, weights);
        // The passages of a file share few different reasons.
        let mut reasons: HashMap<&str, Arc<ScoreExplanation>> = HashMap::new();
        let worths = FileUtility::new(file, weights);
        let (texts, places, is_test) = (&file.masked.texts, &file.document.passages, is_test_path(&file.path));
        for unit in split_into_units(&syntax(&file.path), file.document.line_count()) {
            let Some(LinesUtility { best_passage: strongest, share_of_best: part, utility: worth, first_bonus: first }) =
                worths.for_lines(unit.lines)
            else {
                continue;
            };
            let Some(passage) = file.passages.get(strongest) else { continue };
            let reason = explain_passage(&passage.factors, weights);
            let because = reasons.entry(reason).or_insert_with(|| {
                let reason = format!("{}; {reason}", because.reason);
                Arc::new(ScoreExplanation { factors: because.factors.clone(), reason })
            });
            let (place, tokens) = texts.locate_lines(places, unit.lines);
            let text = SharedText::from_range(&texts.all, place);
            if !text.contains(char::is_alphanumeric) {
                continue;
            }
            pieces.push(ContextPiece {
                path: file.path.clone(),
                lines: Some(unit.lines),
                stands_for: None,
                kind: unit
                    .kind
                    .filter(|_| !is_test)
                    .unwrap_or_else(|| classify_lines(file, unit.lines, (strongest, passage))),
                text,
                tokens: Some(tokens),
                need: Need::ByUtility,
                score: score::from_probability(file.probability * part),
                utility: worth,
                first_bonus: first,
                explanation: Arc::clone(because),
            });
        }
    }
    pieces
}

/// Classifies lines that are no declaration, by their best passage.
fn classify_lines(file: &RankedFile, lines: LineRange, (number, passage): (usize, &RankedPassage)) -> SectionKind {
    let imports = || file.document.imports.get(lines.start as usize - 1..lines.end as usize).unwrap_or_default();
    match () {
        () if is_test_path(&file.path) => SectionKind::Test,
        () if passage.factors.imports > 0.0 && imports().contains(&true) => SectionKind::Module,
        () if file.masked.declares_type.get(number).is_some_and(|is_type| *is_type) => SectionKind::Type,
        () if passage.factors.has_declaration > 0.0 => SectionKind::Function,
        () => SectionKind::Window,
    }
}

/// Signals of the file ranking: name, reason in words, and prefixes of the names of their factors.
const FILE_SIGNALS: [(&str, &str, &[&str]); 5] = [
    ("history", "it changed together with the change's files", &["together", "alike", "changes", "latest"]),
    (
        "lexical",
        "it has the change's words",
        &["removed", "added", "changed", "near", "parts", "words", "passage", "rare", "size"],
    ),
    ("reference", "it declares, uses or imports what the change does", &["enclosing", "declares", "uses", "import"]),
    ("path", "its path is like the change's", &["same", "folder", "path", "pair", "is_"]),
    ("semantic", "it means what the change does", &["meaning"]),
];

/// Explains a file's score: each signal's contribution in log-odds, and the strongest signal in words.
fn explain_file_score(factors: &FileFactors, weights: &RankingWeights) -> ScoreExplanation {
    let mut parts: Vec<(&'static str, f32)> = FILE_SIGNALS.iter().map(|(name, _, _)| (*name, 0.0)).collect();
    for ((name, figure), weight) in FileFactors::NAMES.iter().zip(factors.values()).zip(&weights.files) {
        let signal =
            FILE_SIGNALS.iter().position(|(_, _, names)| names.iter().any(|beginning| name.starts_with(beginning)));
        if let Some((_, part)) = signal.and_then(|signal| parts.get_mut(signal)) {
            *part += figure * weight;
        }
    }
    let speaking = FILE_SIGNALS.iter().zip(&parts).filter(|(_, (_, part))| *part > 0.0);
    let strongest = speaking.max_by(|a, b| a.1.1.total_cmp(&b.1.1));
    let mut reason =
        strongest.map_or("nothing speaks for it more than for others", |((_, reason, _), _)| reason).to_owned();
    if factors.meaning_first == 0.0 {
        parts.retain(|(name, _)| *name != "semantic");
    }
    if factors.together > 0.01 {
        reason.push_str(&format!("; in {:.0} % of their commits", factors.together * 100.0));
    }
    if factors.pair > 0.0 {
        reason.push_str(if factors.is_test > 0.0 { "; a test and what it tests" } else { "; of the same name" });
    }
    ScoreExplanation { factors: parts, reason }
}

/// Signals of the passage ranking: reason in words, and prefixes of the names of their factors.
const PASSAGE_SIGNALS: [(&str, &[&str]); 6] = [
    ("lines like the changed ones", &["like"]),
    (
        "the change's words",
        &["removed", "added", "changed", "near", "parts", "words", "rare", "lines_", "beside_words"],
    ),
    ("names of the change", &["enclosing", "declares", "inside"]),
    ("lines that change often", &["past", "beside_past"]),
    ("where its imports, its beginning or its end is", &["is_first", "is_last", "imports"]),
    ("what it means", &["meaning"]),
];

/// Index into [`PASSAGE_SIGNALS`] for each passage factor. `None` if the factor belongs to no signal.
static PASSAGE_SIGNAL_BY_FACTOR: LazyLock<Vec<Option<usize>>> = LazyLock::new(|| {
    let is_of = |name: &str, names: &[&str]| names.iter().any(|beginning| name.starts_with(beginning));
    let place = |name: &&str| PASSAGE_SIGNALS.iter().position(|(_, names)| is_of(name, names));
    PassageFactors::NAMES.iter().map(place).collect()
});

/// Returns the strongest reason for a passage, in words.
fn explain_passage(factors: &PassageFactors, weights: &RankingWeights) -> &'static str {
    let mut parts = [0.0f32; PASSAGE_SIGNALS.len()];
    for ((place, figure), weight) in PASSAGE_SIGNAL_BY_FACTOR.iter().zip(factors.values()).zip(&weights.passages) {
        if let Some(part) = place.and_then(|place| parts.get_mut(place)) {
            *part += figure * weight;
        }
    }
    let speaking = PASSAGE_SIGNALS.iter().zip(parts).filter(|(_, part)| *part > 0.0);
    speaking.max_by(|a, b| a.1.total_cmp(&b.1)).map_or("a part of it", |((reason, _), _)| reason)
}

/// Returns true if a piece may be sent: it is needed for another reason, or its score is high enough.
pub fn is_likely(piece: &ContextPiece) -> bool {
    piece.need != Need::ByUtility || piece.score >= score::MIN_SCORE
}

/// Makes the best piece of each near-certain file required.
fn mark_certain_pieces(pieces: &mut [ContextPiece]) {
    for at in find_best_per_file(pieces, &|piece| piece.score > score::CERTAIN_SCORE) {
        pieces[at].need = Need::Must;
    }
}

/// Marks types that changed lines name with [`Need::Type`].
fn mark_used_types(pieces: &mut [ContextPiece], ranked: &[RankedFile]) {
    let mut named: HashMap<&str, Vec<LineRange>> = HashMap::new();
    for file in ranked {
        let declaring = file.passages.iter().filter(|passage| passage.factors.declares > 0.0);
        let places = declaring.map(|passage| LineRange::new(passage.range.start + 1, passage.range.end));
        named.entry(&file.path).or_default().extend(places);
    }
    for piece in pieces.iter_mut().filter(|piece| piece.need == Need::ByUtility && piece.kind == SectionKind::Type) {
        let places = named.get(piece.path.as_str()).into_iter().flatten();
        if piece.lines.is_some_and(|lines| places.clone().any(|place| place.overlaps(lines))) {
            piece.need = Need::Type;
        }
    }
}

#[cfg(test)]
mod asked;
#[cfg(test)]
mod cancelled;
