//! Scores the similarity of code to a change by embedding vectors of a model: chunk by chunk in the leading files, and
//! file by file to find files that should be among them.
//!
//! - Texts are masked before they are sent; masking sees the complete file.
//! - A vector is requested once per text and model, and cached.
//! - On any failure the ranking stays as it was.

pub(crate) mod near_files;
mod vector_cache;

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::retrieve::RankedFile;
use super::retrieve::task::RetrievalTask;
use super::text::BlobText;
use crate::domain::{ErrorClass, LineRange, content_hash};
use crate::git::{Hunk, Repo};
use crate::index::chunk::{ChunkKind, chunk_file};
use crate::masking::Mask;
use crate::reviewers::chat::ChatError;
use crate::reviewers::http::Embedder;
use crate::syntax::language::Language;

use vector_cache::VectorCache;

/// Most chunks that are compared, best files first (`MAX_CHUNKS`), and most texts that are sent to the model per call
/// (`MAX_NEW_VECTORS`).
const MAX_CHUNKS: usize = 4_000;
const MAX_NEW_VECTORS: usize = 600;
/// Longest text in bytes; models accept 512 to 8,192 tokens.
const MAX_TEXT_BYTES: usize = 4_000;
/// Most texts that describe the change, one per file (`MAX_QUERIES`), and lines of context around each hunk
/// (`CONTEXT_LINES`).
const MAX_QUERIES: usize = 16;
const CONTEXT_LINES: u32 = 4;
/// Bytes of a text for each token that it is estimated to have. Code has 3 to 4 with the tokenizers of most models; with
/// fewer bytes the estimate is rather too high, so that a budget is kept.
const BYTES_PER_TOKEN: usize = 3;

/// Budget that several machines share, and that must hold a request before it is sent.
pub trait SharedBudget {
    /// Reserves the tokens of a request.
    ///
    /// # Errors
    /// Fails if the budget does not hold them, or cannot be asked; then the request must not be sent.
    fn reserve(&mut self, tokens: u64) -> Result<(), ChatError>;

    /// Records the tokens that the request took, in place of those that were reserved last.
    fn settle(&mut self, tokens: u64);
}

/// Client of an embedding model with its vector cache.
pub struct EmbeddingScorer {
    embedder: Embedder,
    folder: PathBuf,
    timeout: Duration,
    /// End of the time for all requests; set by the first one.
    deadline: OnceCell<Instant>,
    /// Maximum estimated number of tokens of all requests; `None` for no limit.
    max_tokens: Option<u64>,
    /// Estimated number of tokens that were sent.
    sent_tokens: Cell<u64>,
    /// True if texts were not sent because of the limit.
    is_limited: Cell<bool>,
    /// Budget that others spend, too; `None` without one.
    shared: Option<RefCell<Box<dyn SharedBudget>>>,
}

/// Progress of the vectors after a scoring.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct VectorProgress {
    /// Number of chunks of the leading files that have no vector yet.
    pub missing_chunks: usize,
    /// Number of files whose vectors came with this scoring.
    pub new_files: usize,
}

/// Chunk of a ranked file.
struct EmbeddedChunk {
    file: usize,
    lines: LineRange,
    text: EmbeddingText,
}

/// Text with the key of its vector.
pub struct EmbeddingText {
    key: [u8; 16],
    text: String,
}

impl EmbeddingText {
    fn new(mut text: String) -> Option<Self> {
        text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES));
        if text.trim().is_empty() {
            return None;
        }
        Some(Self { key: key_from_hash(&content_hash([text.as_bytes()]))?, text })
    }
}

/// Decodes the first 16 bytes of a hexadecimal hash.
fn key_from_hash(hash: &str) -> Option<[u8; 16]> {
    let mut key = [0; 16];
    for (byte, digits) in key.iter_mut().zip(hash.as_bytes().chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(key)
}

type Vectors = HashMap<[u8; 16], Vec<f32>>;

impl EmbeddingScorer {
    /// Creates a scorer. `patience` limits the total time of all requests.
    pub fn new(embedder: Embedder, folder: PathBuf, timeout: Duration) -> Self {
        Self {
            embedder,
            folder,
            timeout,
            deadline: OnceCell::new(),
            max_tokens: None,
            sent_tokens: Cell::new(0),
            is_limited: Cell::new(false),
            shared: None,
        }
    }

    /// Limits the estimated number of tokens of all requests.
    pub fn with_token_limit(self, max_tokens: Option<u64>) -> Self {
        Self { max_tokens, ..self }
    }

    /// Holds all requests to a budget that others spend, too.
    pub fn with_shared_budget(self, budget: Option<Box<dyn SharedBudget>>) -> Self {
        Self { shared: budget.map(RefCell::new), ..self }
    }

    /// Returns the estimated number of tokens that were sent, whether vectors came for them or not.
    pub fn sent_tokens(&self) -> u64 {
        self.sent_tokens.get()
    }

    /// Returns true if texts have no vector because of the limit.
    pub fn is_limited(&self) -> bool {
        self.is_limited.get()
    }

    /// Returns true if the limit leaves room for a text, and counts the text then.
    fn spend_tokens(&self, text: &str) -> bool {
        let sent = self.sent_tokens.get().saturating_add(text.len().div_ceil(BYTES_PER_TOKEN) as u64);
        let is_within = self.max_tokens.is_none_or(|most| sent <= most);
        match is_within {
            true => self.sent_tokens.set(sent),
            false => self.is_limited.set(true),
        }
        is_within
    }

    /// Sets the embedding figures of ranked files. Requests the vectors of chunks first, then those of `cards` of files;
    /// `cards` is given the largest number of them. Does nothing without queries.
    ///
    /// # Errors
    /// Fails if a request fails or is cancelled. Vectors received before that are cached.
    pub fn score_files(
        &self,
        queries: &[EmbeddingText],
        ranked: &mut [RankedFile],
        cards: &dyn Fn(usize) -> Vec<EmbeddingText>,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<VectorProgress, ChatError> {
        let parts = collect_chunks(ranked, cancelled);
        if cancelled() {
            return Err(ChatError::cancelled());
        }
        if queries.is_empty() {
            return Ok(VectorProgress::default());
        }
        let mut cache = VectorCache::open(&self.folder, &self.embedder.name());
        let mut texts: Vec<&EmbeddingText> = queries.iter().chain(parts.iter().map(|part| &part.text)).collect();
        let mut vectors = cache.read(&texts.iter().map(|text| text.key).collect());
        let unknown: HashSet<[u8; 16]> =
            texts.iter().map(|text| text.key).filter(|key| !vectors.contains_key(key)).collect();
        let cards = cards(MAX_NEW_VECTORS.saturating_sub(unknown.len()));
        texts.extend(&cards);
        let fetched = self.fetch_vectors(&texts, &mut cache, &mut vectors, cancelled);
        cache.close();
        fetched?;
        let near = compute_similarities(queries, &parts, &vectors);
        set_factors(ranked, &parts, &near);
        let has_vector = |text: &EmbeddingText| vectors.contains_key(&text.key);
        Ok(VectorProgress {
            missing_chunks: parts.iter().filter(|part| !has_vector(&part.text)).count(),
            new_files: cards.iter().filter(|card| has_vector(card)).count(),
        })
    }

    /// Requests the vectors of the first [`MAX_NEW_VECTORS`] texts that have none, and adds them to `vectors` and to the
    /// cache.
    fn fetch_vectors(
        &self,
        texts: &[&EmbeddingText],
        cache: &mut VectorCache,
        vectors: &mut Vectors,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<(), ChatError> {
        let mut asked = HashSet::new();
        let is_new = |text: &&&EmbeddingText| !vectors.contains_key(&text.key) && asked.insert(text.key);
        let new: Vec<&EmbeddingText> = texts.iter().filter(is_new).take(MAX_NEW_VECTORS).copied().collect();
        let before = self.sent_tokens.get();
        let new: Vec<&EmbeddingText> = new.into_iter().take_while(|wanted| self.spend_tokens(&wanted.text)).collect();
        if new.is_empty() {
            return Ok(());
        }
        let tokens = self.sent_tokens.get() - before;
        if let Some(shared) = &self.shared {
            // Tokens that are not reserved are not sent.
            shared.borrow_mut().reserve(tokens).inspect_err(|_| self.sent_tokens.set(before))?;
        }
        let wanted: Vec<String> = new.iter().map(|wanted| wanted.text.clone()).collect();
        let mut came: Vec<([u8; 16], Vec<f32>)> = Vec::new();
        let deadline = *self.deadline.get_or_init(|| Instant::now() + self.timeout);
        let outcome = self.embedder.embed(&wanted, deadline, cancelled, &mut |first, vectors| {
            came.extend(new.iter().skip(first).map(|wanted| wanted.key).zip(vectors));
        });
        if let Some(shared) = &self.shared {
            // A server that did not answer in time may charge for what it has begun.
            let is_charged = |error: &ChatError| error.cancelled || error.class == ErrorClass::Timeout;
            let has_cost = !came.is_empty() || outcome.as_ref().err().is_none_or(is_charged);
            shared.borrow_mut().settle(if has_cost { tokens } else { 0 });
        }
        // Another model under the same name gives vectors of another dimension.
        let size = came.first().map(|(_, vector)| vector.len());
        if size.is_some_and(|size| vectors.values().any(|vector| vector.len() != size)) {
            cache.clear();
            vectors.clear();
        }
        cache.add(&came);
        vectors.extend(came);
        outcome
    }
}

/// Returns the masked text of a file; `None` for a binary or unreadable file.
pub fn read_masked_text(repo: &Repo, blob: &str, path: &str) -> Option<BlobText> {
    BlobText::from_blob(repo, blob, path, Mask::On).ok().filter(|text| !text.is_binary)
}

/// Builds the query texts of the change and the task from lines of the searched tree. `blobs` maps the task's paths to
/// blob ids.
pub fn build_queries(repo: &Repo, task: &RetrievalTask, blobs: &HashMap<String, String>) -> Vec<EmbeddingText> {
    let text_of = |path: &str, places: &[(u32, u32)]| {
        let text = read_masked_text(repo, blobs.get(path)?, path)?;
        let mut said = String::new();
        for (start, end) in places {
            let lines =
                start.saturating_sub(CONTEXT_LINES).max(1)..=end.saturating_add(CONTEXT_LINES).min(text.line_count());
            lines.for_each(|line| said.extend([text.line(line), "\n"]));
        }
        EmbeddingText::new(said)
    };
    let of_given = task.given.iter().filter_map(|given| {
        let last = |hunk: &Hunk| hunk.old_start.saturating_add(hunk.old_lines.saturating_sub(1));
        let place = |hunk: &Hunk| (hunk.old_start, last(hunk));
        let places: Vec<(u32, u32)> = given.hunks.iter().map(|hunk| place(&hunk.range)).collect();
        text_of(&given.path, &places)
    });
    let of_focus = task.focus.iter().filter_map(|focus| {
        let line = focus.line.unwrap_or(1);
        text_of(&focus.path, &[(line, line.saturating_add(CONTEXT_LINES))])
    });
    let of_text = EmbeddingText::new(Mask::On.mask_text(None, &task.text).into_owned());
    of_text.into_iter().chain(of_focus).chain(of_given).take(MAX_QUERIES).collect()
}

fn collect_chunks(ranked: &[RankedFile], cancelled: &dyn Fn() -> bool) -> Vec<EmbeddedChunk> {
    let of = |(file, ranked): (usize, &RankedFile)| {
        let text = &*ranked.masked.texts.all;
        let chunks = chunk_file(&ranked.path, text, Language::detect(&ranked.path, text.as_bytes()));
        let chunks = chunks.into_iter().filter(|chunk| chunk.kind != ChunkKind::Summary);
        let part = |chunk: crate::index::chunk::Chunk| {
            Some(EmbeddedChunk { file, lines: chunk.lines, text: EmbeddingText::new(chunk.text(text))? })
        };
        chunks.filter_map(part).collect::<Vec<_>>()
    };
    ranked.iter().enumerate().take_while(|_| !cancelled()).flat_map(of).take(MAX_CHUNKS).collect()
}

/// Returns the cosine of two vectors of length 1; -1 if it is no number.
fn cosine(a: &[f32], b: &[f32]) -> f32 {
    let sum: f32 = a.iter().zip(b).map(|(a, b)| a * b).sum();
    if sum.is_finite() { sum.clamp(-1.0, 1.0) } else { -1.0 }
}

/// Returns for each chunk its similarity to the nearest query text, scaled to 1 for the best chunk and 0 for the worst
/// chunk and for chunks without a vector.
fn compute_similarities(queries: &[EmbeddingText], parts: &[EmbeddedChunk], vectors: &Vectors) -> Vec<f32> {
    let asked: Vec<&Vec<f32>> = queries.iter().filter_map(|query| vectors.get(&query.key)).collect();
    let of = |part: &EmbeddedChunk| {
        let own = vectors.get(&part.text.key)?;
        asked.iter().map(|query| cosine(own, query)).max_by(f32::total_cmp)
    };
    let cosines: Vec<Option<f32>> = parts.iter().map(of).collect();
    let known = || cosines.iter().copied().flatten();
    let (least, most) = (known().fold(1.0, f32::min), known().fold(-1.0, f32::max));
    let range = (most - least).max(1e-6);
    cosines.iter().map(|cosine| cosine.map_or(0.0, |cosine| (cosine - least) / range)).collect()
}

fn set_factors(ranked: &mut [RankedFile], parts: &[EmbeddedChunk], near: &[f32]) {
    for (part, near) in parts.iter().zip(near) {
        let Some(file) = ranked.get_mut(part.file) else { continue };
        file.factors.meaning = file.factors.meaning.max(*near);
        for passage in &mut file.passages {
            let lines = LineRange::new(passage.range.start + 1, passage.range.end);
            if lines.overlaps(part.lines) {
                passage.factors.meaning = passage.factors.meaning.max(*near);
            }
        }
    }
    let mut order: Vec<usize> = (0..ranked.len()).filter(|at| ranked[*at].factors.meaning > 0.0).collect();
    order.sort_by(|a, b| ranked[*b].factors.meaning.total_cmp(&ranked[*a].factors.meaning).then(a.cmp(b)));
    for (rank, at) in order.into_iter().enumerate() {
        ranked[at].factors.meaning_first = 1.0 / (rank as f32 + 2.0);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::context::retrieve::factors::FileFactors;
    use crate::context::retrieve::masked_text::MaskedFile;
    use crate::context::retrieve::task::{Focus, GivenFile, GivenFileHunk};
    use crate::index::document::Document;
    use crate::index::history::Touch;
    use crate::index::vocabulary::Vocabulary;

    /// A repository with one file, and its folder.
    fn sample(text: &str) -> (tempfile::TempDir, Repo, HashMap<String, String>) {
        let folder = tempfile::tempdir().expect("a folder");
        let git = git2::Repository::init_bare(folder.path()).expect("a repository");
        let blob = git.blob(text.as_bytes()).expect("a blob").to_string();
        let repo = Repo::discover(folder.path()).expect("a repository");
        (folder, repo, HashMap::from([("a.rs".to_owned(), blob)]))
    }

    #[test]
    fn lines_as_far_down_as_they_can_be_are_survived() {
        let (_folder, repo, blobs) = sample("one\ntwo\n");
        let place = |old_start, old_lines| Hunk { old_start, old_lines, new_start: 1, new_lines: 1 };
        let hunks = [place(u32::MAX, 2), place(1, u32::MAX)];
        let hunks = hunks.map(|place| GivenFileHunk { range: place, removed: Vec::new(), added: Vec::new() });
        let given = GivenFile { path: "a.rs".to_owned(), touch: Touch::Modified, hunks: hunks.into() };
        let focus = Focus { path: "a.rs".to_owned(), line: Some(u32::MAX) };
        let asked = |task: RetrievalTask| {
            build_queries(&repo, &task, &blobs).into_iter().map(|wanted| wanted.text).collect::<String>()
        };
        assert_eq!(asked(RetrievalTask { given: vec![given], ..RetrievalTask::default() }), "one\ntwo\n");
        assert_eq!(asked(RetrievalTask { focus: vec![focus], ..RetrievalTask::default() }), "");
    }

    #[test]
    fn what_is_told_of_a_file_is_what_is_compared() {
        let text = "fn one() {\n    \"***\"\n}\n";
        let document = Arc::new(Document::read(text, &mut Vocabulary::default()));
        let file = RankedFile {
            path: "a.rs".to_owned(),
            blob: "not to be looked at".to_owned(),
            masked: MaskedFile::from_text(&document, text, &str::len),
            document,
            probability: 0.5,
            factors: FileFactors::default(),
            passages: Vec::new(),
        };
        let texts: Vec<String> = collect_chunks(&[file], &|| false).into_iter().map(|part| part.text.text).collect();
        assert_eq!(texts, [text]);
    }

    #[test]
    fn nearness_is_from_nought_to_one_whatever_the_vectors_are() {
        let wanted = |text: &str| EmbeddingText::new(text.to_owned()).expect("a text");
        let part = |text: &str| EmbeddedChunk { file: 0, lines: LineRange::new(1, 1), text: wanted(text) };
        let parts: Vec<EmbeddedChunk> = ["near", "far", "unknown", "broken"].map(part).into();
        let queries = [wanted("asked"), wanted("not known")];
        let vectors: Vectors =
            [("asked", [1.0, 0.0]), ("near", [0.8, 0.6]), ("far", [0.0, 1.0]), ("broken", [f32::NAN, 0.0])]
                .into_iter()
                .map(|(text, vector)| (wanted(text).key, vector.to_vec()))
                .collect();
        let near = compute_similarities(&queries, &parts, &vectors);
        assert_eq!((near[0], near[2], near[3]), (1.0, 0.0, 0.0));
        assert!(near[1] > 0.0 && near[1] < 1.0, "{near:?}");
        let none = compute_similarities(&queries, &parts, &Vectors::new());
        assert_eq!(none, [0.0; 4]);
        assert!(EmbeddingText::new(" \n".to_owned()).is_none());
        assert!(wanted(&"é".repeat(MAX_TEXT_BYTES)).text.len() <= MAX_TEXT_BYTES);
    }
}
