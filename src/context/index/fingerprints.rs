//! The fingerprints of an index's files, for the built-in reviewer's search for copies.
//!
//! Found by blob, so that what is known of one tree holds for all others; read as a whole, once for a review.

use std::collections::HashMap;

use super::refresh::blob_bytes;
use super::{Index, IndexError, Segment};
use crate::domain::OmissionReason;
use crate::reviewers::analyzer::FingerprintSource;
use crate::reviewers::analyzer::language::Language;

/// Four bytes for about 13 tokens of the files that were indexed.
#[derive(Debug)]
pub struct FingerprintIndex {
    segments: Vec<(Segment, Vec<u32>)>,
    /// The number of a segment and of a file in it.
    locations: HashMap<[u8; 20], (usize, u32)>,
}

impl Index {
    /// The fingerprints of all files that were indexed together with those of this tree.
    ///
    /// # Errors
    /// An index that turns out to be damaged.
    pub fn into_fingerprints(self) -> Result<FingerprintIndex, IndexError> {
        let mut segments = Vec::with_capacity(self.segments.len());
        let mut places = HashMap::new();
        for (at, segment) in self.segments.into_iter().enumerate() {
            let prints = segment.read_fingerprints()?;
            for (number, file) in segment.files().iter().enumerate() {
                let place = (at, number as u32);
                match file.left_out() {
                    None => drop(places.insert(file.blob, place)),
                    // What git did not have may be there now.
                    Some(OmissionReason::Unreadable) => {}
                    // The same may stand at a path that is not left out.
                    Some(_) => drop(places.entry(file.blob).or_insert(place)),
                }
            }
            segments.push((segment, prints));
        }
        Ok(FingerprintIndex { segments, locations: places })
    }
}

impl FingerprintSource for FingerprintIndex {
    /// None for a file that was left out: nobody copies what a program wrote.
    fn fingerprints(&self, path: &str, blob: &str) -> Option<&[u32]> {
        let &(at, number) = self.locations.get(&blob_bytes(blob))?;
        let (segment, prints) = self.segments.get(at)?;
        let file = segment.file(number)?;
        // The same bytes in another language have other tokens.
        let language = |path| Language::detect(path, b"");
        let is_alike = segment.path(file) == path || language(segment.path(file)) == language(path);
        is_alike.then(|| prints.get(file.fingerprint_range()))?
    }
}
