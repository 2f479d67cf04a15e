//! Stores ratings of findings in `ratings.ndjson`. The file is append-only; the last line of a finding holds. Views show
//! the rated priority and kind in place of the reported ones. `undo` takes ratings back in one order with decisions, see
//! [`super::triage`].

use std::collections::HashMap;

use super::extents::TrackedFile;
use super::{Store, StoreError, files, lines};
use crate::domain::{FindingId, FindingRating, Rating};

impl Store {
    /// Calls `decide` with all rating lines so far and appends its result, under the store's lock. Returns the appended
    /// lines.
    ///
    /// # Errors
    /// Returns the error of `decide`, or an error when the store cannot be locked, read or written.
    pub fn rate_findings<E: From<StoreError>>(
        &self,
        decide: impl FnOnce(&[FindingRating]) -> Result<Vec<FindingRating>, E>,
    ) -> Result<Vec<FindingRating>, E> {
        self.with_lock_as(|_| {
            let lines = decide(&self.rating_log()?)?;
            self.append_ratings(&lines)?;
            Ok(lines)
        })
    }

    /// Appends lines in one write. The caller holds the store's lock.
    pub(super) fn append_ratings(&self, ratings: &[FindingRating]) -> Result<(), StoreError> {
        let bytes = lines::encode("a rating of a finding", ratings)?;
        if bytes.is_empty() { Ok(()) } else { self.append_tracked(TrackedFile::Ratings, &bytes) }
    }

    /// Returns every readable line, oldest first.
    ///
    /// # Errors
    /// Returns an error when `ratings.ndjson` cannot be read.
    pub fn rating_log(&self) -> Result<Vec<FindingRating>, StoreError> {
        lines::read_all(&self.ratings_path())
    }

    /// Returns the rating of each finding that has one.
    pub(super) fn ratings(&self) -> Result<HashMap<String, Rating>, StoreError> {
        let mut last: HashMap<String, Rating> =
            self.rating_log()?.into_iter().map(|line| (line.finding_id.to_string(), line.rating)).collect();
        last.retain(|_, rating| !rating.is_empty());
        Ok(last)
    }

    /// Returns the length of `ratings.ndjson` in bytes; 0 without the file.
    pub(super) fn ratings_bytes(&self) -> u64 {
        files::length_at(&self.ratings_path())
    }
}

/// Returns the rating of a finding after these lines.
pub fn rating_after(log: &[FindingRating], id: &FindingId) -> Rating {
    log.iter().rev().find(|line| line.finding_id == *id).map_or(Rating::default(), |line| line.rating)
}
