//! Defines the words of a run: its status, its requester, and why it ended early or failed.

use serde::{Deserialize, Serialize};

use crate::domain::finding::word_enum;

word_enum!(
    /// Status of a run. A terminal status never changes again.
    RunStatus {
        /// Waits for a worker to start, or for the next attempt.
        Pending = "pending",
        /// A worker reads the change from the snapshot.
        Snapshotting = "snapshotting",
        /// The reviewer works, or the run is paused.
        Reviewing = "reviewing",
        /// The review is over, and its findings are being settled.
        Resolving = "resolving",
        /// The review ended by itself; with an error class, or with gaps in its coverage, it covers only a part.
        Completed = "completed",
        /// The review failed; its findings until then are kept.
        Failed = "failed",
        /// Ended early for a [`CancelReason`] other than `Superseded`.
        Cancelled = "cancelled",
        /// Ended early because newer code was requested.
        Superseded = "superseded",
        /// Never started: nothing to review, or a duplicate of an ended run.
        Skipped = "skipped",
        /// The worker died, and the run is not resumed.
        Lost = "lost",
    }
);
word_enum!(
    /// Part of revdeck that requested a run.
    Source {
        Cockpit = "cockpit", Cli = "cli", Watch = "watch", Hook = "hook", Assistant = "assistant",
        /// Nothing was requested: the findings were imported from the report of another tool.
        Import = "import",
    }
);
word_enum!(
    /// Allowed reasons to cancel a run. Elapsed time is not a reason.
    CancelReason {
        /// A person stopped the run.
        UserStop = "user_stop",
        /// Newer code was requested.
        Superseded = "superseded",
        /// The reviewed commit was rewritten, and the new one shows another change.
        Obsolete = "obsolete",
        /// The worker died, and no attempts are left.
        DeadProcess = "dead_process",
        /// A spending limit does not allow the next request.
        BudgetExhausted = "budget_exhausted",
        /// Another live run reviews exactly the same.
        Duplicate = "duplicate",
    }
);
word_enum!(
    /// Class of the failure that ended a run, for a reader that must decide on the next step.
    ErrorClass {
        /// Git failed, or the snapshot cannot be read.
        Git = "git",
        /// The store cannot be read or written, or a record was lost.
        Store = "store",
        /// The reviewer itself failed, for example an agent that crashed. Older versions also wrote it for unreadable
        /// files.
        Reviewer = "reviewer",
        /// Some files could not be read; the gaps of the coverage name them, too.
        Unreadable = "unreadable",
        /// The settings cannot be used, or the provider rejects the request.
        Configuration = "configuration",
        /// The worker died, or could not be started.
        WorkerDied = "worker_died",
        /// Failure inside revdeck that has no other class.
        Internal = "internal",
        /// The API key is missing, wrong, or lacks permission.
        Auth = "auth",
        /// The account has no credit left.
        Quota = "quota",
        /// Too many requests or tokens within a time.
        RateLimit = "rate_limit",
        /// The server cannot answer now.
        Overloaded = "overloaded",
        /// The request is larger than the model accepts.
        ContextTooLong = "context_too_long",
        /// The server cannot be reached, or the connection broke.
        Network = "network",
        /// The response does not follow the provider's protocol.
        Malformed = "malformed",
        /// No answer within the time limit.
        Timeout = "timeout",
        /// The model refused to review.
        Refused = "refused",
        /// The team's budget of the day does not hold the request, or cannot be asked.
        TeamBudget = "team_budget",
    }
);

impl CancelReason {
    /// Returns the status of a run that ends for this reason.
    pub fn status(self) -> RunStatus {
        match self {
            Self::Superseded => RunStatus::Superseded,
            Self::DeadProcess => RunStatus::Lost,
            Self::UserStop | Self::Obsolete | Self::BudgetExhausted | Self::Duplicate => RunStatus::Cancelled,
        }
    }

    /// Returns the reason as a part of a sentence.
    pub fn describe(self) -> &'static str {
        match self {
            Self::UserStop => "stopped by the user",
            Self::Superseded => "newer code was requested",
            Self::Obsolete => "its commit was rewritten",
            Self::DeadProcess => "it cannot go on",
            Self::BudgetExhausted => "budget reached",
            Self::Duplicate => "another run reviews the same",
        }
    }
}

impl RunStatus {
    /// Returns the word that lists show for a run of this status. `paused` and `budget reached` say more than the
    /// status.
    pub fn list_word(self, is_paused: bool, reason: Option<CancelReason>) -> &'static str {
        match (self, reason) {
            (Self::Cancelled, Some(CancelReason::BudgetExhausted)) => "budget reached",
            (status, _) if is_paused && !status.is_terminal() => "paused",
            (status, _) => status.word(),
        }
    }

    /// Returns true if the run has ended, successfully or not.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled | Self::Superseded | Self::Skipped | Self::Lost)
    }

    /// Returns true if a worker holds, or should hold, the run's lock.
    pub fn is_working(self) -> bool {
        matches!(self, Self::Snapshotting | Self::Reviewing | Self::Resolving)
    }
}
