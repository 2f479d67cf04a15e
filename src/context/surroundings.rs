//! The context of a review: the task, the change, and of all the other code what bears on it, under a budget.
//!
//! Invariants: everything comes from one tree and the history behind it, masked; the same question has the same answer;
//! what is missing (an index, a history, rules) costs quality and never the review.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, LazyLock};

use ignore::gitignore::Gitignore;

use super::candidates::{Chosen, choose};
use super::chunk::{MOST_TOKENS, Syntax};
use super::covered::Reports;
use super::focus::{focus_pieces, is_sent};
use super::house_documents::house_documents;
use super::imports::Tree;
use super::in_short::summaries;
use super::index::{Index, Reach};
use super::just_in_time;
use super::library::{Library, Own, code_of};
use super::meaning::Meaning;
use super::named::{self, Mentions};
use super::pack::{Because, Count, Filter, Need, Packed, Piece, Said, SectionKind, best_of_files};
use super::past::Known;
use super::remarks::{tell_coverage, tell_last_change, untested, untested_piece};
use super::rest::{Shown, looked_at, rests};
use super::retrieve::factors::{FileFactors, PassageFactors};
use super::retrieve::task::{Focus, Task};
use super::retrieve::weights::Weights;
use super::retrieve::{RankedFile, RankedPassage, SourceFile, Sources, rank, reweigh};
use super::score;
use super::secret_files::is_secret_file;
use super::skeleton::{Documents, skeleton};
use super::squeeze::packed;
use super::task_text::task_text;
use super::telling::{Place, Telling};
use super::tokens::Memo;
use super::units::units;
use super::worth::{Worth, Worths};
use crate::domain::text::one_line;
use crate::domain::{Encoding, LineRange};
use crate::git::{EntryKind, GitError, Listing, Repo, TreeFile};
use crate::provider::builtin::facts::is_test_path;

/// Commits of history that are looked at: a bound on how long the first question in a repository takes.
pub const HISTORY: usize = 3_000;
/// The place in focus, and without one the rest of what the change stands in, may take so many tokens, and no more than
/// an eighth of the budget; so may what is marked of a file that the task names.
const MAX_FOCUS: u32 = 2_000;
const FOCUS_PART: u32 = 8;
/// Of a declaration that the task names and that is more than a quarter of it, or too long for a chunk, the head is told.
const WHOLE_PART: u32 = 4;
/// The changed functions that no test reaches may take a sixteenth of it.
const UNTESTED_PART: u32 = 16;
/// The task's text may take a quarter of the budget: it is known to whoever asks.
pub const TASK_PART: u32 = 4;

/// What may be in the context besides the change.
#[derive(Debug, Clone)]
pub struct Options {
    pub types: bool,
    pub tests: bool,
    pub documentation: bool,
    /// Globs in the syntax of .gitignore; with any, code comes from files that they name.
    pub files: Gitignore,
    /// With any, code is of these kinds.
    pub kinds: Vec<SectionKind>,
}

impl Default for Options {
    fn default() -> Self {
        Self { types: true, tests: true, documentation: true, files: Gitignore::empty(), kinds: Vec::new() }
    }
}

impl Options {
    /// What takes a file away.
    fn file_filter(&self, path: &str) -> Option<Filter> {
        let is_other = || !self.files.matched_path_or_any_parents(path, false).is_ignore();
        match () {
            () if !self.tests && is_test_path(path) => Some(Filter::Tests),
            () if !self.files.is_empty() && is_other() => Some(Filter::Files),
            () => None,
        }
    }

    /// What takes a piece of a kind away.
    fn kind_filter(&self, kind: SectionKind) -> Option<Filter> {
        match () {
            () if !self.kinds.is_empty() && !self.kinds.contains(&kind) => Some(Filter::Kinds),
            () if !self.types && kind == SectionKind::Type => Some(Filter::Types),
            () if !self.tests && kind == SectionKind::Test => Some(Filter::Tests),
            () => None,
        }
    }
}

/// Takes away what a filter says, and counts it.
fn sift<T>(all: &mut Vec<T>, filtered: &mut BTreeMap<Filter, u32>, filter: impl Fn(&T) -> Option<Filter>) {
    all.retain(|one| {
        let by = filter(one);
        by.into_iter().for_each(|by| *filtered.entry(by).or_default() += 1);
        by.is_none()
    });
}

/// What the context is asked for of.
pub struct Question<'a> {
    /// The commit whose tree is searched.
    pub tree: &'a str,
    /// The commit whose history is looked at.
    pub history: &'a str,
    pub task: Task,
    /// What must be there before all else, in this order, in the budget.
    pub front: Vec<Piece>,
    /// The unchanged lines around each hunk that the diff in `front` has; none where the task's text has the diff.
    pub context_lines: Option<u32>,
    /// Documents of the house that are told already.
    pub documents_told: &'a [String],
    /// In tokens of the encoding.
    pub budget: u32,
    pub encoding: Encoding,
    pub options: Options,
    /// Where facts about this repository are kept.
    pub folder: Option<&'a Path>,
    /// Which files of a large tree to look at; without it they are all read, up to a number.
    pub index: Option<&'a Index>,
    /// What code means; without it that signal is missing.
    pub meaning: Option<&'a Meaning>,
    /// Whether nobody waits for the answer any more; once yes, always yes. Looked at with every file and every commit.
    pub cancelled: &'a dyn Fn() -> bool,
}

/// Puts the context together; `None` when nobody waits for it any more. What was found out until then is kept.
pub fn surroundings(repo: &Repo, question: Question<'_>) -> Result<Option<Packed>, GitError> {
    let mut library = Library::open(question.folder);
    let telling = Telling::open(repo, question.encoding, question.folder).with_index(question.index);
    let packed = put_together(repo, question, &mut library, &telling)?;
    library.close();
    telling.close();
    Ok(packed)
}

fn put_together(
    repo: &Repo,
    question: Question<'_>,
    library: &mut Library,
    telling: &Telling<'_>,
) -> Result<Option<Packed>, GitError> {
    let weights = Weights::built_in();
    let Question { tree, history, task, front, documents_told, budget, encoding, options, folder, index, .. } =
        question;
    let (context_lines, meaning, cancelled) = (question.context_lines, question.meaning, question.cancelled);
    // What is packed again has most of its text in common with what was.
    let memo = Memo::new(encoding);
    let count: Count<'_> = &|text| memo.count(text);
    let (task, passed_over) = task.leading();
    let changed: Vec<&str> = task.paths().chain(passed_over.iter().map(String::as_str)).collect();
    let listing = repo.listing(tree)?;
    let tree_files = code_of(&listing, &changed.iter().copied().collect());
    let blobs: HashMap<String, String> = tree_files.iter().map(|file| (file.path.clone(), file.blob.clone())).collect();
    let place = |path: &str| Some((path.to_owned(), blobs.get(path)?.clone()));
    let given = || task.given.iter().filter(|given| options.file_filter(&given.path).is_none());
    let tells_rests = task.focus.is_empty() && options.kinds.is_empty();
    if tells_rests {
        let looked_at: Vec<Place> = looked_at(given()).into_iter().filter_map(place).collect();
        telling.expect(&looked_at);
        telling.expect_texts(&looked_at);
    }
    let known = Known::read(repo, history, HISTORY, folder, cancelled)?;
    if cancelled() {
        return Ok(None);
    }
    let before = known.before(history);
    let mentions = Mentions::of(&task.text);
    let mut named = mentions.in_tree(&tree_files, index);
    let mut searched = tree_files.clone();
    searched.retain(|file| !passed_over.contains(&file.path));
    let first: HashSet<&str> = task.paths().chain(named.paths()).collect();
    let is_asked = |path: &str| first.contains(path);
    let mut own = Own::of(repo, tree, &is_asked)?;
    let Chosen { files: chosen, others } =
        choose(searched, &mut own, (&task, &named), index, (&known.history, &before));
    let mut notes = Vec::new();
    let is_whole = index.is_some_and(|index| index.reach() == Reach::Whole);
    let others = if is_whole { 0 } else { own.by_name(others).len() };
    if others > 0 {
        let all = crate::domain::text::count(chosen.len() + others, "file");
        notes.push(format!(
            "only {} of {all} of code were looked at: the index of all of them is not ready",
            chosen.len()
        ));
    }
    let (files, unread) = library.read_within(repo, chosen, &mut own, cancelled);
    if cancelled() {
        return Ok(None);
    }
    // What is in focus need not be code.
    let is_other = |focus: &&Focus| !files.iter().any(|file| file.path == focus.path);
    let others = task.focus.iter().filter(is_other).filter_map(|focus| any_file(&listing, &focus.path));
    let others = library.read(repo, others.collect(), &mut own);
    drop(own);
    mentions.declared(&mut named, &files, &library.vocabulary);
    let told = |files: &[&SourceFile]| telling.all_told(files, cancelled);
    let paths = named.paths().collect();
    let filtered: RefCell<BTreeMap<Filter, u32>> = RefCell::default();
    let wanted = |path: &str| {
        let by = options.file_filter(path);
        by.into_iter().for_each(|by| *filtered.borrow_mut().entry(by).or_default() += 1);
        by.is_none()
    };
    let module = repo.file_at(tree, "go.mod")?.and_then(|text| Tree::go_module(&text));
    let paths_of = Tree::of(listing.entries.iter().map(|entry| entry.path.as_str()), module.as_deref());
    let imports = |paths: &[&str]| telling.imported(&paths_of, paths, &place, cancelled);
    let sources = Sources {
        files: &files,
        history: &known.history,
        before: &before,
        told: &told,
        named: &paths,
        wanted: &wanted,
        imports: &imports,
    };
    let mut ranked = rank(&task, &sources, weights, &mut library.vocabulary);
    if unread > 0 {
        let files = crate::domain::text::count(unread, "file");
        notes.push(format!("without {files} of code: there is too much in the others"));
    }
    match meaning.map(|meaning| meaning.weigh(repo, &task, &mut ranked, &blobs, cancelled)) {
        _ if cancelled() => return Ok(None),
        Some(Ok(missing)) => {
            ranked = reweigh(&ranked, weights);
            notes.extend((missing > 0).then(|| unweighed(missing)));
        }
        Some(Err(error)) => notes.push(format!("without what code means: {}", one_line(&error.summary))),
        None => {}
    }
    let mut filtered = filtered.into_inner();
    // Of the others nothing is sent.
    let may_be_sent =
        |file: &&RankedFile| score::of(file.probability) >= score::LEAST || named.files.contains(&file.path);
    let sent: HashMap<&str, Place> =
        ranked.iter().filter(may_be_sent).filter_map(|file| Some((file.path.as_str(), place(&file.path)?))).collect();
    telling.prepare(&sent.values().cloned().collect::<Vec<_>>(), cancelled);
    if cancelled() {
        return Ok(None);
    }
    let syntax = |path: &str| sent.get(path).map(|(path, blob)| telling.syntax(path, blob)).unwrap_or_default();
    let mut code = pieces(&ranked, weights, &syntax);
    sift(&mut code, &mut filtered, |piece| options.kind_filter(piece.kind));
    certain(&mut code);
    named::mark_files(&mut code, &named, MAX_FOCUS.min(budget / FOCUS_PART));
    sift(&mut code, &mut filtered, |piece| (!is_likely(piece)).then_some(Filter::Unlikely));
    let because_of = |file: &RankedFile| because(&file.factors, weights);
    let asked = named::Asked {
        named: &named,
        task: &task,
        ranked: &ranked,
        files: &files,
        telling,
        vocabulary: &library.vocabulary,
        weights,
        because_of: &because_of,
        most: MOST_TOKENS.min(budget / WHOLE_PART),
        count,
        cancelled,
    };
    let mut declarations = asked.declarations();
    sift(&mut declarations, &mut filtered, |piece| options.kind_filter(piece.kind));
    code.extend(declarations);
    types(&mut code, &ranked);
    just_in_time::mark(&mut code, &ranked);
    let mut all = front;
    let mut shown = Shown::Around(context_lines.unwrap_or(0));
    if !task.text.is_empty() {
        let text = task_text(&task.text, budget / TASK_PART, count);
        if context_lines.is_none() {
            shown = Shown::of_text(&text);
        }
        all.push(piece(SectionKind::Task, Need::Must, text, "the task"));
    }
    let reports = Reports::find(repo, &listing.entries, folder);
    let changed_paths = task.given.iter().map(|given| given.path.as_str()).collect();
    let covered = reports.of(repo, &tree_files, &changed_paths, cancelled);
    let untested = covered.map(|covered| untested(&task, telling, &blobs, &covered, cancelled)).unwrap_or_default();
    all.extend(untested_piece(&untested, budget / UNTESTED_PART, count));
    let most = MAX_FOCUS.min(budget / FOCUS_PART);
    let places = focus_pieces(&task.focus, &[files.as_slice(), &others].concat(), telling, most, count);
    let is_missing = |focus: &&Focus| !places.iter().any(|piece| piece.path == focus.path);
    notes.extend(task.focus.iter().filter(is_missing).map(|focus| {
        format!(
            "nothing of {} is in focus: no text that may be shown is in the tree by this path",
            one_line(&focus.path)
        )
    }));
    let in_focus: Vec<(String, LineRange)> =
        places.iter().filter_map(|piece| Some((piece.path.clone(), piece.lines?))).collect();
    all.extend(places);
    if tells_rests {
        all.extend(rests(given(), &shown, (&files, telling), MAX_FOCUS.min(budget / FOCUS_PART), count));
    }
    let mut documents = house_documents(&listing);
    sift(&mut documents, &mut filtered, |_| (!options.documentation).then_some(Filter::Documents));
    let documents = Documents { all: &documents, loaded: documents_told };
    all.extend(skeleton(&tree_files, documents, &changed, budget, count));
    let summaries = summaries(&code, &ranked, &syntax);
    all.extend(code);
    all.extend(summaries);
    let declared = |path: &str| blobs.get(path).map(|blob| telling.declarations(path, blob)).unwrap_or_default();
    let packed = packed(all, &ranked, telling, &declared, (budget, count), cancelled);
    let Some(mut packed) = packed else { return Ok(None) };
    notes.extend(
        in_focus
            .iter()
            .filter(|piece| !is_sent(piece, &packed))
            .map(|(path, _)| format!("nothing of {} is in focus: the budget has no room for it", one_line(path))),
    );
    let sent = packed.sections.iter().map(|section| section.path.as_str());
    let wanted = sent.chain(changed.iter().copied()).collect();
    if let Some(covered) = reports.of(repo, &tree_files, &wanted, cancelled) {
        tell_coverage(&mut packed, &covered);
    }
    packed.untested = untested;
    if cancelled() {
        return Ok(None);
    }
    let changed = task.given.iter().map(|given| given.path.as_str()).collect();
    tell_last_change(&mut packed, repo, (&known, &before), &changed);
    packed.notes = notes;
    packed.filtered = filtered;
    Ok(Some(packed))
}

/// That a context may differ from the next one.
fn unweighed(pieces: usize) -> String {
    let pieces = crate::domain::text::count(pieces, "piece");
    format!("{pieces} of code not yet weighed by meaning: vectors are fetched a part at a time, the next time more")
}

/// A file of a tree that may be shown.
fn any_file(listing: &Listing, path: &str) -> Option<TreeFile> {
    let entry = listing.entries.iter().find(|entry| entry.path == path)?;
    let may_be_shown = entry.kind == EntryKind::File && !is_secret_file(path);
    may_be_shown.then(|| TreeFile { path: entry.path.clone(), blob: entry.id.clone() })
}

/// A piece of no file.
pub fn piece(kind: SectionKind, need: Need, text: String, reason: &str) -> Piece {
    Piece {
        path: String::new(),
        lines: None,
        stands_for: None,
        kind,
        text: text.into(),
        tokens: None,
        need,
        score: 1.0,
        worth: 1.0,
        first: 0.0,
        because: Because { factors: Vec::new(), reason: reason.to_owned() }.into(),
    }
}

/// The code of ranked files as pieces, a chunk each.
pub fn pieces(ranked: &[RankedFile], weights: &Weights, syntax: &dyn Fn(&str) -> Syntax) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for file in ranked {
        let because = because(&file.factors, weights);
        // A file's passages have few reasons.
        let mut reasons: HashMap<&str, Arc<Because>> = HashMap::new();
        let worths = Worths::of(file, weights);
        let (texts, places, is_test) = (&file.told.texts, &file.document.passages, is_test_path(&file.path));
        for unit in units(&syntax(&file.path), file.document.lines()) {
            let Some(Worth { strongest, part, worth, first }) = worths.of_lines(unit.lines) else { continue };
            let Some(passage) = file.passages.get(strongest) else { continue };
            let reason = passage_reason(&passage.factors, weights);
            let because = reasons.entry(reason).or_insert_with(|| {
                let reason = format!("{}; {reason}", because.reason);
                Arc::new(Because { factors: because.factors.clone(), reason })
            });
            let (place, tokens) = texts.lines(places, unit.lines);
            let text = Said::part(&texts.all, place);
            if !text.contains(char::is_alphanumeric) {
                continue;
            }
            pieces.push(Piece {
                path: file.path.clone(),
                lines: Some(unit.lines),
                stands_for: None,
                kind: unit.kind.filter(|_| !is_test).unwrap_or_else(|| kind(file, unit.lines, (strongest, passage))),
                text,
                tokens: Some(tokens),
                need: Need::Worth,
                score: score::of(file.probability * part),
                worth,
                first,
                because: Arc::clone(because),
            });
        }
    }
    pieces
}

/// What lines are that no declaration is, by the passage that tells most of them.
fn kind(file: &RankedFile, lines: LineRange, (number, passage): (usize, &RankedPassage)) -> SectionKind {
    let imports = || file.document.imports.get(lines.start as usize - 1..lines.end as usize).unwrap_or_default();
    match () {
        () if is_test_path(&file.path) => SectionKind::Test,
        () if passage.factors.imports > 0.0 && imports().contains(&true) => SectionKind::Module,
        () if file.told.types.get(number).is_some_and(|is_type| *is_type) => SectionKind::Type,
        () if passage.factors.has_declaration > 0.0 => SectionKind::Function,
        () => SectionKind::Window,
    }
}

/// The signals that files are ranked by, and the names of their figures.
const SIGNALS: [(&str, &str, &[&str]); 5] = [
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

/// Each signal's part of a file's score, on the scale of logarithms of odds, and the strongest in words.
fn because(factors: &FileFactors, weights: &Weights) -> Because {
    let mut parts: Vec<(&'static str, f32)> = SIGNALS.iter().map(|(name, _, _)| (*name, 0.0)).collect();
    for ((name, figure), weight) in FileFactors::NAMES.iter().zip(factors.values()).zip(&weights.files) {
        let signal = SIGNALS.iter().position(|(_, _, names)| names.iter().any(|beginning| name.starts_with(beginning)));
        if let Some((_, part)) = signal.and_then(|signal| parts.get_mut(signal)) {
            *part += figure * weight;
        }
    }
    let speaking = SIGNALS.iter().zip(&parts).filter(|(_, (_, part))| *part > 0.0);
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
    Because { factors: parts, reason }
}

/// What passages are chosen by within their file, and the names of their figures.
const PLACES: [(&str, &[&str]); 6] = [
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

/// Of each figure of a passage, the reason that it is a part of.
static PLACE_OF: LazyLock<Vec<Option<usize>>> = LazyLock::new(|| {
    let is_of = |name: &str, names: &[&str]| names.iter().any(|beginning| name.starts_with(beginning));
    let place = |name: &&str| PLACES.iter().position(|(_, names)| is_of(name, names));
    PassageFactors::NAMES.iter().map(place).collect()
});

/// The strongest reason for a passage, in words.
fn passage_reason(factors: &PassageFactors, weights: &Weights) -> &'static str {
    let mut parts = [0.0f32; PLACES.len()];
    for ((place, figure), weight) in PLACE_OF.iter().zip(factors.values()).zip(&weights.passages) {
        if let Some(part) = place.and_then(|place| parts.get_mut(place)) {
            *part += figure * weight;
        }
    }
    let speaking = PLACES.iter().zip(parts).filter(|(_, part)| *part > 0.0);
    speaking.max_by(|a, b| a.1.total_cmp(&b.1)).map_or("a part of it", |((reason, _), _)| reason)
}

/// Whether a piece may be sent, for all that is known of it.
pub fn is_likely(piece: &Piece) -> bool {
    piece.need != Need::Worth || piece.score >= score::LEAST
}

/// Of each file that is as good as certain, the best passage must be there.
fn certain(pieces: &mut [Piece]) {
    for at in best_of_files(pieces, &|piece| piece.score > score::CERTAIN) {
        pieces[at].need = Need::Must;
    }
}

/// Types that changed lines name.
fn types(pieces: &mut [Piece], ranked: &[RankedFile]) {
    let mut named: HashMap<&str, Vec<LineRange>> = HashMap::new();
    for file in ranked {
        let declaring = file.passages.iter().filter(|passage| passage.factors.declares > 0.0);
        let places = declaring.map(|passage| LineRange::new(passage.place.start + 1, passage.place.end));
        named.entry(&file.path).or_default().extend(places);
    }
    for piece in pieces.iter_mut().filter(|piece| piece.need == Need::Worth && piece.kind == SectionKind::Type) {
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
