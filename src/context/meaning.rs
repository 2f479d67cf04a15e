//! What code means, as vectors of a model say it: how near each piece of the files that lead is to the change.
//!
//! Invariants: what is sent is masked, by the whole of each file; a vector is asked for once for a text and a model, and
//! kept; whatever goes wrong, the ranking stands as it was without.

mod kept;

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::chunk::{ChunkKind, chunks};
use super::mask::Mask;
use super::retrieve::RankedFile;
use super::retrieve::task::Task;
use super::text::Text;
use crate::domain::{LineRange, content_hash};
use crate::git::{Hunk, Repo};
use crate::provider::builtin::language::Language;
use crate::provider::chat::ChatError;
use crate::provider::http::Embedder;

use kept::Kept;

/// Pieces of code that are compared, those of the best files first; and those that are sent because they are not known.
const MOST_PIECES: usize = 4_000;
const MOST_NEW: usize = 600;
/// A text's bytes at most: models take 512 to 8,192 tokens.
const MOST_BYTES: usize = 4_000;
/// The change is said in so many texts, one for a file, with so many lines around each hunk.
const MOST_QUERIES: usize = 16;
const AROUND: u32 = 4;

/// A model that makes vectors, and where they are kept.
pub struct Meaning {
    embedder: Embedder,
    folder: PathBuf,
    patience: Duration,
}

/// A piece of a ranked file.
struct Part {
    file: usize,
    lines: LineRange,
    text: Wanted,
}

/// A text, and the name of its vector.
struct Wanted {
    key: [u8; 16],
    text: String,
}

impl Wanted {
    fn new(mut text: String) -> Option<Self> {
        text.truncate(text.floor_char_boundary(MOST_BYTES));
        if text.trim().is_empty() {
            return None;
        }
        let mut key = [0; 16];
        let hash = content_hash([text.as_bytes()]);
        for (byte, digits) in key.iter_mut().zip(hash.as_bytes().chunks_exact(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        }
        Some(Self { key, text })
    }
}

type Vectors = HashMap<[u8; 16], Vec<f32>>;

impl Meaning {
    /// `patience` is how long a server is waited for, all requests together.
    pub fn new(embedder: Embedder, folder: PathBuf, patience: Duration) -> Self {
        Self { embedder, folder, patience }
    }

    /// Sets the figures of meaning of ranked files, and says of how many pieces of them there are no vectors yet. The
    /// task's are at `blobs` by path.
    ///
    /// # Errors
    /// Why there are none, for instance since it was cancelled. Vectors that came until then are kept for the next time.
    pub fn weigh(
        &self,
        repo: &Repo,
        task: &Task,
        ranked: &mut [RankedFile],
        blobs: &HashMap<String, String>,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<usize, ChatError> {
        let queries = queries(repo, task, blobs);
        let parts = parts(ranked, cancelled);
        if cancelled() {
            return Err(ChatError::cancelled());
        }
        if queries.is_empty() || parts.is_empty() {
            return Ok(0);
        }
        let kept = Kept::new(&self.folder, &self.embedder.name());
        let wanted: HashSet<[u8; 16]> =
            queries.iter().chain(parts.iter().map(|part| &part.text)).map(|text| text.key).collect();
        let mut vectors = kept.read(&wanted);
        let mut asked = HashSet::new();
        let is_new = |text: &&Wanted| !vectors.contains_key(&text.key) && asked.insert(text.key);
        let new: Vec<&Wanted> =
            queries.iter().chain(parts.iter().map(|part| &part.text)).filter(is_new).take(MOST_NEW).collect();
        let texts: Vec<String> = new.iter().map(|wanted| wanted.text.clone()).collect();
        let mut came: Vec<([u8; 16], Vec<f32>)> = Vec::new();
        let deadline = Instant::now() + self.patience;
        let outcome = match texts.is_empty() {
            true => Ok(()),
            false => self.embedder.embed(&texts, deadline, cancelled, &mut |first, vectors| {
                came.extend(new.iter().skip(first).map(|wanted| wanted.key).zip(vectors));
            }),
        };
        // Another model under the same name makes vectors of another size.
        let size = came.first().map(|(_, vector)| vector.len());
        if size.is_some_and(|size| vectors.values().any(|vector| vector.len() != size)) {
            kept.forget();
            vectors.clear();
        }
        kept.add(&came);
        vectors.extend(came);
        outcome?;
        let near = nearness(&queries, &parts, &vectors);
        set(ranked, &parts, &near);
        Ok(parts.iter().filter(|part| !vectors.contains_key(&part.text.key)).count())
    }
}

/// A file's text as it may be sent.
fn masked(repo: &Repo, blob: &str, path: &str) -> Option<Text> {
    Text::of(repo, blob, path, Mask::On).ok().filter(|text| !text.is_binary)
}

/// What the change and the task are about: lines of the tree that is searched.
fn queries(repo: &Repo, task: &Task, blobs: &HashMap<String, String>) -> Vec<Wanted> {
    let text_of = |path: &str, places: &[(u32, u32)]| {
        let text = masked(repo, blobs.get(path)?, path)?;
        let mut said = String::new();
        for (start, end) in places {
            let lines = start.saturating_sub(AROUND).max(1)..=end.saturating_add(AROUND).min(text.lines());
            lines.for_each(|line| said.extend([text.line(line), "\n"]));
        }
        Wanted::new(said)
    };
    let of_given = task.given.iter().filter_map(|given| {
        let last = |hunk: &Hunk| hunk.old_start.saturating_add(hunk.old_lines.saturating_sub(1));
        let place = |hunk: &Hunk| (hunk.old_start, last(hunk));
        let places: Vec<(u32, u32)> = given.hunks.iter().map(|hunk| place(&hunk.place)).collect();
        text_of(&given.path, &places)
    });
    let of_focus = task.focus.iter().filter_map(|focus| {
        let line = focus.line.unwrap_or(1);
        text_of(&focus.path, &[(line, line.saturating_add(AROUND))])
    });
    let of_text = Wanted::new(Mask::On.text(None, &task.text).into_owned());
    of_text.into_iter().chain(of_focus).chain(of_given).take(MOST_QUERIES).collect()
}

fn parts(ranked: &[RankedFile], cancelled: &dyn Fn() -> bool) -> Vec<Part> {
    let of = |(file, ranked): (usize, &RankedFile)| {
        let text = &*ranked.told.texts.all;
        let chunks = chunks(&ranked.path, text, Language::detect(&ranked.path, text.as_bytes()));
        let chunks = chunks.into_iter().filter(|chunk| chunk.kind != ChunkKind::Summary);
        let part =
            |chunk: super::chunk::Chunk| Some(Part { file, lines: chunk.lines, text: Wanted::new(chunk.text(text))? });
        chunks.filter_map(part).collect::<Vec<_>>()
    };
    ranked.iter().enumerate().take_while(|_| !cancelled()).flat_map(of).take(MOST_PIECES).collect()
}

/// Of each part, how near it is to what is nearest of the change: 1 for the nearest of all, 0 for the farthest and for what
/// is not known.
fn nearness(queries: &[Wanted], parts: &[Part], vectors: &Vectors) -> Vec<f32> {
    let asked: Vec<&Vec<f32>> = queries.iter().filter_map(|query| vectors.get(&query.key)).collect();
    let cosine = |a: &[f32], b: &[f32]| -> f32 {
        let sum: f32 = a.iter().zip(b).map(|(a, b)| a * b).sum();
        if sum.is_finite() { sum.clamp(-1.0, 1.0) } else { -1.0 }
    };
    let of = |part: &Part| {
        let own = vectors.get(&part.text.key)?;
        asked.iter().map(|query| cosine(own, query)).max_by(f32::total_cmp)
    };
    let cosines: Vec<Option<f32>> = parts.iter().map(of).collect();
    let known = || cosines.iter().copied().flatten();
    let (least, most) = (known().fold(1.0, f32::min), known().fold(-1.0, f32::max));
    let range = (most - least).max(1e-6);
    cosines.iter().map(|cosine| cosine.map_or(0.0, |cosine| (cosine - least) / range)).collect()
}

fn set(ranked: &mut [RankedFile], parts: &[Part], near: &[f32]) {
    for (part, near) in parts.iter().zip(near) {
        let Some(file) = ranked.get_mut(part.file) else { continue };
        file.factors.meaning = file.factors.meaning.max(*near);
        for passage in &mut file.passages {
            let lines = LineRange::new(passage.place.start + 1, passage.place.end);
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
    use crate::context::retrieve::document::Document;
    use crate::context::retrieve::factors::FileFactors;
    use crate::context::retrieve::history::Touch;
    use crate::context::retrieve::task::{Focus, Given, GivenHunk};
    use crate::context::retrieve::told::Told;
    use crate::context::retrieve::words::Vocabulary;

    /// A repository with one file, and where that is.
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
        let hunks = hunks.map(|place| GivenHunk { place, removed: Vec::new(), added: Vec::new() });
        let given = Given { path: "a.rs".to_owned(), touch: Touch::Modified, hunks: hunks.into() };
        let focus = Focus { path: "a.rs".to_owned(), line: Some(u32::MAX) };
        let asked =
            |task: Task| queries(&repo, &task, &blobs).into_iter().map(|wanted| wanted.text).collect::<String>();
        assert_eq!(asked(Task { given: vec![given], ..Task::default() }), "one\ntwo\n");
        assert_eq!(asked(Task { focus: vec![focus], ..Task::default() }), "");
    }

    #[test]
    fn what_is_told_of_a_file_is_what_is_compared() {
        let text = "fn one() {\n    \"***\"\n}\n";
        let document = Arc::new(Document::read(text, &mut Vocabulary::default()));
        let file = RankedFile {
            path: "a.rs".to_owned(),
            blob: "not to be looked at".to_owned(),
            told: Told::plain(&document, text, &str::len),
            document,
            probability: 0.5,
            factors: FileFactors::default(),
            passages: Vec::new(),
        };
        let texts: Vec<String> = parts(&[file], &|| false).into_iter().map(|part| part.text.text).collect();
        assert_eq!(texts, [text]);
    }

    #[test]
    fn nearness_is_from_nought_to_one_whatever_the_vectors_are() {
        let wanted = |text: &str| Wanted::new(text.to_owned()).expect("a text");
        let part = |text: &str| Part { file: 0, lines: LineRange::new(1, 1), text: wanted(text) };
        let parts: Vec<Part> = ["near", "far", "unknown", "broken"].map(part).into();
        let queries = [wanted("asked"), wanted("not known")];
        let vectors: Vectors =
            [("asked", [1.0, 0.0]), ("near", [0.8, 0.6]), ("far", [0.0, 1.0]), ("broken", [f32::NAN, 0.0])]
                .into_iter()
                .map(|(text, vector)| (wanted(text).key, vector.to_vec()))
                .collect();
        let near = nearness(&queries, &parts, &vectors);
        assert_eq!((near[0], near[2], near[3]), (1.0, 0.0, 0.0));
        assert!(near[1] > 0.0 && near[1] < 1.0, "{near:?}");
        let none = nearness(&queries, &parts, &Vectors::new());
        assert_eq!(none, [0.0; 4]);
        assert!(Wanted::new(" \n".to_owned()).is_none());
        assert!(wanted(&"é".repeat(MOST_BYTES)).text.len() <= MOST_BYTES);
    }
}
