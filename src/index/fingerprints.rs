//! Looks up the clone fingerprints of indexed files for the `duplicate_code` check of the built-in reviewer.
//!
//! - Files are looked up by blob id, so fingerprints from one tree are valid for all trees.
//! - All fingerprints are read at once, once per review.

use std::collections::HashMap;

use super::refresh::blob_bytes;
use super::{Index, IndexError, Segment};
use crate::domain::OmissionReason;
use crate::reviewers::analyzer::FingerprintSource;
use crate::syntax::language::Language;

/// Fingerprints of all indexed files by blob id. Takes four bytes per about 13 tokens of indexed code.
#[derive(Debug)]
pub struct FingerprintIndex {
    segments: Vec<(Segment, Vec<u32>)>,
    /// Number of a segment and of a file in it, by blob id.
    locations: HashMap<[u8; 20], (usize, u32)>,
}

impl Index {
    /// Reads the fingerprints of all files in the segments of this index, including files of other trees.
    ///
    /// # Errors
    /// Fails with [`IndexError::Damaged`] if a part of the index is damaged.
    pub fn into_fingerprints(self) -> Result<FingerprintIndex, IndexError> {
        let mut segments = Vec::with_capacity(self.segments.len());
        let mut places = HashMap::new();
        for (at, segment) in self.segments.into_iter().enumerate() {
            let prints = segment.read_fingerprints()?;
            for (number, file) in segment.files().iter().enumerate() {
                let place = (at, number as u32);
                match file.left_out() {
                    None => drop(places.insert(file.blob, place)),
                    // Git may have the blob now.
                    Some(OmissionReason::Unreadable) => {}
                    // The same blob may stand at a path that is not left out: the other entry wins.
                    Some(_) => drop(places.entry(file.blob).or_insert(place)),
                }
            }
            segments.push((segment, prints));
        }
        Ok(FingerprintIndex { segments, locations: places })
    }
}

impl FingerprintSource for FingerprintIndex {
    /// Returns `None` for an unknown file. A file that was left out has no fingerprints, because nobody copies
    /// generated code by hand.
    fn fingerprints(&self, path: &str, blob: &str) -> Option<&[u32]> {
        let &(at, number) = self.locations.get(&blob_bytes(blob))?;
        let (segment, prints) = self.segments.get(at)?;
        let file = segment.file(number)?;
        // The same bytes have other tokens in another language.
        let language = |path| Language::detect(path, b"");
        let is_alike = segment.path(file) == path || language(segment.path(file)) == language(path);
        is_alike.then(|| prints.get(file.fingerprints.as_range()))?
    }
}
