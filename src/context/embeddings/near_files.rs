//! Finds the files of a tree whose meaning is nearest to a task, whether words and history lead to them or not.
//!
//! - A file has one vector, that of its card: its path and the names that it declares, without secrets.
//! - Only files whose vectors are cached are compared. Each context requests some of the others.

use std::collections::HashSet;

use super::vector_cache::VectorCache;
use super::{EmbeddingScorer, EmbeddingText, MAX_NEW_VECTORS, Vectors, cosine};
use crate::context::text::BlobText;
use crate::domain::content_hash;
use crate::git::TreeFile;
use crate::index::chunk::FileSyntax;
use crate::masking::Mask;
use crate::reviewers::chat::ChatError;

/// Most files that are brought in: a fifth of the leading files of a ranking.
pub const MAX_NEAR_FILES: usize = 20;
/// Most files that are compared; reading so many vectors takes 0.2 s.
const MAX_COMPARED_FILES: usize = 20_000;
/// Version of the cards, part of the key of their vectors.
const CARD_VERSION: &str = "1";
/// Number of declared names below which the text of a file says more than they do.
const MIN_CARD_NAMES: usize = 3;

/// Files compared by their vectors.
#[derive(Debug, Default)]
pub struct NearFiles {
    /// Paths of the files nearest to the task, nearest first; at most [`MAX_NEAR_FILES`].
    pub paths: Vec<String>,
    /// Files without a vector, of which this context can request the vectors.
    pub unknown: Vec<TreeFile>,
    /// Number of other files without a vector.
    pub later: usize,
}

impl EmbeddingScorer {
    /// Compares the vectors of files with those of the query texts. Files for which `is_wanted` returns false are left
    /// out; it is called for few files. Finds and reads nothing without queries.
    ///
    /// # Errors
    /// Fails if a request for the vectors of the query fails or is cancelled.
    pub fn find_near_files(
        &self,
        queries: &[EmbeddingText],
        files: &[TreeFile],
        is_wanted: &mut dyn FnMut(&TreeFile) -> bool,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<NearFiles, ChatError> {
        if queries.is_empty() {
            return Ok(NearFiles::default());
        }
        let files = files.get(..MAX_COMPARED_FILES).unwrap_or(files);
        let mut cache = VectorCache::open(&self.folder, &self.embedder.name());
        let keys: Vec<[u8; 16]> = files.iter().map(card_key).collect();
        let known = cache.read(&keys.iter().copied().collect());
        let mut near = NearFiles::default();
        for (file, _) in files.iter().zip(&keys).filter(|(_, key)| !known.contains_key(*key)) {
            match near.unknown.len() < MAX_NEW_VECTORS {
                true if is_wanted(file) => near.unknown.push(file.clone()),
                true => {}
                false => near.later += 1,
            }
        }
        if known.is_empty() {
            return Ok(near);
        }
        let wanted: HashSet<[u8; 16]> = queries.iter().map(|query| query.key).collect();
        let mut vectors = cache.read(&wanted);
        let fetched = self.fetch_vectors(&queries.iter().collect::<Vec<_>>(), &mut cache, &mut vectors, cancelled);
        cache.close();
        fetched?;
        let ranked = rank_by_similarity(&vectors, &keys, &known);
        let found = ranked.into_iter().filter_map(|at| files.get(at)).filter(|file| is_wanted(file));
        near.paths = found.take(MAX_NEAR_FILES).map(|file| file.path.clone()).collect();
        Ok(near)
    }
}

/// Returns the positions of the files that are nearer to a query than most: nearer than the middle between the average
/// file and the nearest one. Nearest first.
fn rank_by_similarity(queries: &Vectors, keys: &[[u8; 16]], known: &Vectors) -> Vec<usize> {
    let similarity = |key: &[u8; 16]| {
        let own = known.get(key)?;
        let comparable = queries.values().filter(|query| query.len() == own.len());
        comparable.map(|query| cosine(own, query)).max_by(f32::total_cmp)
    };
    let mut similar: Vec<(usize, f32)> =
        keys.iter().enumerate().filter_map(|(at, key)| Some((at, similarity(key)?))).collect();
    let mean = similar.iter().map(|(_, cosine)| cosine).sum::<f32>() / similar.len().max(1) as f32;
    let best = similar.iter().map(|(_, cosine)| *cosine).fold(mean, f32::max);
    similar.retain(|(_, cosine)| *cosine > (mean + best) / 2.0);
    similar.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    similar.into_iter().map(|(at, _)| at).collect()
}

/// Returns the key of the vector of a file's card. The content is known by its blob, so the card need not be built.
fn card_key(file: &TreeFile) -> [u8; 16] {
    let hash = content_hash([b"card".as_slice(), CARD_VERSION.as_bytes(), file.blob.as_bytes(), file.path.as_bytes()]);
    super::key_from_hash(&hash).unwrap_or_default()
}

/// Builds the card of a file. `text` reads its masked text.
pub fn build_card(
    file: &TreeFile,
    syntax: &FileSyntax,
    text: impl FnOnce() -> Option<BlobText>,
) -> Option<EmbeddingText> {
    let mut card = format!("{}\n", Mask::On.mask_key_shapes(&file.path));
    let mut seen = HashSet::new();
    let named = syntax.declarations.iter().filter(|declaration| !declaration.name.is_empty());
    for declaration in named.filter(|declaration| seen.insert((&declaration.scope, &declaration.name))) {
        let owner = if declaration.scope.is_empty() { String::new() } else { format!("{}.", declaration.scope) };
        card.push_str(&format!("{} {owner}{}\n", declaration.kind, declaration.name));
    }
    if seen.len() < MIN_CARD_NAMES {
        card.extend(text().as_ref().map(BlobText::as_str));
    }
    Some(EmbeddingText { key: card_key(file), ..EmbeddingText::new(card)? })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::config::ReviewerKind;
    use crate::reviewers::chat::AnswerTimeouts;
    use crate::reviewers::http::{Embedder, Endpoint};

    #[test]
    fn without_a_query_no_file_waits_for_a_vector() {
        let nobody = Duration::from_millis(1);
        let embedder = Embedder::open(Endpoint {
            kind: ReviewerKind::Ollama,
            model: "m".to_owned(),
            base_url: Some("http://127.0.0.1:1".to_owned()),
            key: None,
            insecure_http: false,
            effort: None,
            connect_timeout: nobody,
            timeouts: AnswerTimeouts { idle: nobody, total: nobody },
            attempts: 1,
            ca_file: None,
            name: "embeddings".to_owned(),
            window: None,
        })
        .expect("a client");
        let folder = tempfile::tempdir().expect("a folder");
        let scorer = EmbeddingScorer::new(embedder, folder.path().join("vectors"), nobody);
        let files = [TreeFile { path: "a.rs".to_owned(), blob: "0".repeat(40) }];
        let near = scorer.find_near_files(&[], &files, &mut |_| true, &|| false).expect("nothing is asked");
        assert_eq!((near.paths.len(), near.unknown.len(), near.later), (0, 0, 0));
    }

    #[test]
    fn files_nearer_than_most_are_found_nearest_first() {
        let key = |number: u8| [number; 16];
        let queries = Vectors::from([(key(100), vec![1.0, 0.0]), (key(101), vec![1.0, 0.0, 0.0])]);
        let keys: Vec<[u8; 16]> = (0..6).map(key).collect();
        let known = Vectors::from([
            (key(0), vec![0.1, 0.9]),
            (key(1), vec![0.7, 0.7]),
            (key(2), vec![0.9, 0.1]),
            // Not a vector of this model, and one that is no direction.
            (key(3), vec![1.0]),
            (key(4), vec![f32::NAN, 0.0]),
        ]);
        assert_eq!(rank_by_similarity(&queries, &keys, &known), [2, 1]);
        assert_eq!(rank_by_similarity(&queries, &keys, &Vectors::new()), [0; 0]);
        assert_eq!(rank_by_similarity(&Vectors::new(), &keys, &known), [0; 0]);
        let same = (0..4).map(|number| (key(number), vec![0.5, 0.5])).collect();
        assert_eq!(rank_by_similarity(&queries, &keys, &same), [0; 0], "none is nearer than the others");
    }
}
