//! Claims reviews for a while, so that equivalent ones elsewhere wait for the result.

use std::time::Duration;

use tokio_postgres::types::Type;

use super::connection::{Database, DatabaseError};
use crate::domain::{MachineName, RunId};

/// Length of a claim in seconds. A machine that renews it three times as often keeps it through a connection that is lost for a
/// minute; after a machine has died, others wait no longer than this.
pub const CLAIM_SECONDS: i32 = 90;
/// Time limit of a statement about claims, which takes some milliseconds. A connection that a router has dropped says nothing for a
/// minute; the claim must be renewed over another one before it ends.
pub const MAX_CLAIM_CALL: Duration = Duration::from_secs(10);

/// Run that has a claim.
#[derive(Debug, Clone, PartialEq)]
pub struct ClaimHolder {
    /// Id of the run, as its machine says it.
    pub run: String,
    /// Name of the machine, as it says it.
    pub machine: String,
    /// Seconds until the claim ends.
    pub seconds_left: f64,
    /// True if the run that asked had the claim before, even if its time was over: no other run has had it since.
    pub is_renewal: bool,
}

/// Claims a review, and tells whether the run had the claim when the statement began.
const CLAIM_REVIEW: &str = "\
    SELECT run, machine, seconds_left,
        EXISTS (SELECT FROM revdeck.claims known WHERE known.project = $1 AND known.review = $2 AND known.run = $3)
    FROM revdeck.claim_review($1, $2, $3, $4, $5)";

impl Database {
    /// Claims a review for a run, or renews the run's claim. Returns who has the claim now: the run itself if it got it.
    ///
    /// # Errors
    /// Returns an error when the database cannot be asked.
    pub fn claim_review(
        &self,
        project: &str,
        review: &str,
        run: &RunId,
        machine: &MachineName,
        seconds: i32,
    ) -> Result<ClaimHolder, DatabaseError> {
        let row = self.query_one_within(
            MAX_CLAIM_CALL,
            "claiming a review",
            CLAIM_REVIEW,
            &[
                (&project, Type::TEXT),
                (&review, Type::TEXT),
                (&run.as_str(), Type::TEXT),
                (&machine.as_str(), Type::TEXT),
                (&seconds, Type::INT4),
            ],
        )?;
        Ok(ClaimHolder { run: row.get(0), machine: row.get(1), seconds_left: row.get(2), is_renewal: row.get(3) })
    }

    /// Ends the claims of a run.
    ///
    /// # Errors
    /// Returns an error when the database cannot be asked.
    pub fn release_claims(&self, project: &str, run: &RunId) -> Result<(), DatabaseError> {
        let parameters: &[_] = &[(&project as _, Type::TEXT), (&run.as_str() as _, Type::TEXT)];
        let sql = "SELECT revdeck.release_claims($1, $2)";
        self.query_one_within(MAX_CLAIM_CALL, "ending a claim", sql, parameters).map(drop)
    }
}
