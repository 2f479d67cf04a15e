//! What a run has to look at because something is to be judged there.

use std::collections::HashSet;

use super::Settling;
use crate::domain::{FindingId, FindingStatus, LineRange, RunRecord, RunStatus};
use crate::policy::anchor::Stand;
use crate::policy::{Extent, Present};
use crate::runner::{Runner, RunnerError};

impl Runner {
    /// Where findings of the run's reviewer in these files stand whose code has changed since they were reported, while
    /// nobody has said what became of them: id, path and lines in the run's snapshot.
    pub(in crate::runner) fn places_to_judge(
        &self,
        run: &RunRecord,
        paths: &HashSet<&str>,
    ) -> Result<Vec<(FindingId, String, LineRange)>, RunnerError> {
        let settling = Settling::new(self, run, RunStatus::Completed, Extent::Whole)?;
        let Some(mut ground) = settling.ground() else { return Ok(Vec::new()) };
        let settled = |status| matches!(status, FindingStatus::Obsolete | FindingStatus::Dismissed);
        let candidates = settling.related(|row, _| paths.contains(row.path) && !settled(row.status));
        let about: HashSet<&str> = candidates.iter().map(|candidate| settling.id_of(candidate)).collect();
        let said = self.store.last_said(&about)?;
        let known = candidates.iter().filter_map(|candidate| settling.look_up(candidate, &said, &mut ground));
        let places = known.filter_map(|known| match known.stand {
            Stand::Changed { path, lines } if known.reviewer == run.reviewer && known.present != Present::Dismissed => {
                Some((known.id, path, lines))
            }
            _ => None,
        });
        Ok(places.collect())
    }
}
