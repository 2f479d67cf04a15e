//! Defines what a place for the logs of a team must be able to do.

use std::ops::ControlFlow;

use thiserror::Error;

use crate::domain::MachineName;
use crate::git::{GitError, LogSignature};
use crate::team::postgres::DatabaseError;

/// Error of an exchange with the team.
#[derive(Debug, Error)]
pub enum TeamError {
    /// The git remote could not be used.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The database could not be used.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// The log was written by others again and again while this machine tried to append to it.
    #[error("the log {log} at {place} was moved or locked {tries} times while records were sent")]
    Contended {
        /// Name of the log.
        log: MachineName,
        /// Remote or database.
        place: String,
        /// Number of attempts.
        tries: u32,
    },
    /// The place takes the log, and does not list it.
    #[error(
        "{place} does not list the log {log} although it has it: it hides refs/revdeck, so nobody can read the records"
    )]
    HiddenLog {
        /// Name of the log.
        log: MachineName,
        /// Remote, without credentials.
        place: String,
    },
    /// Somebody else has written the own log of a machine that signs its records.
    #[error(
        "the log {log} at {place} has records that the key of this machine has not signed: nothing was added to it"
    )]
    ForeignRecords {
        /// Name of the log.
        log: MachineName,
        /// Remote, without credentials.
        place: String,
    },
}

/// State of a log at its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogVersion {
    /// Name of the log: that of its machine, or `ci`.
    pub name: MachineName,
    /// Version in the words of the place, such as the id of a commit.
    pub version: String,
}

/// Logs at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogList {
    /// Logs and their versions.
    pub logs: Vec<LogVersion>,
    /// Number of further logs, which are left out because there are too many.
    pub left_out: usize,
    /// True if the place holds the team to a budget of a day.
    pub has_budget: bool,
}

/// Segment of another machine's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedSegment {
    /// Name of the segment in its log, for messages.
    pub name: String,
    /// Content, or the reason why it is not read.
    pub content: Result<Vec<u8>, UnreadSegment>,
}

/// Reason why the content of a segment is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum UnreadSegment {
    /// It is above the limit of a segment.
    #[error("it has {bytes} bytes, which is more than a segment may have")]
    TooLarge {
        /// Size in bytes.
        bytes: u64,
    },
    /// It is a folder or a submodule.
    #[error("it is no file")]
    NoFile,
}

/// Receiver of the segments of a log, page by page; it may end the reading.
pub type PageReceiver<'a> = dyn FnMut(Vec<ReceivedSegment>) -> ControlFlow<()> + 'a;

/// Outcome of an append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AppendOutcome {
    /// The log has the segments, and this version.
    Appended(String),
    /// Others have moved the log; it must be read again.
    Moved,
}

/// Place where the machines of a team keep their logs.
pub trait TeamBackend {
    /// Returns a name of the place for messages.
    fn place(&self) -> &str;

    /// Lists the logs; `own` is among them if it is there, however many there are.
    ///
    /// # Errors
    /// Returns an error when the place cannot be reached.
    fn list_logs(&self, own: &MachineName) -> Result<LogList, TeamError>;

    /// Brings logs here, so that their segments can be read.
    ///
    /// # Errors
    /// Returns an error when the place cannot be reached.
    fn fetch_logs(&self, logs: &[LogVersion]) -> Result<(), TeamError>;

    /// Reads the segments of a fetched log that it did not have at `since`; all of them if that version is gone. Gives them to
    /// `take` in their order, in pages of some tens of megabytes, however much there is.
    ///
    /// # Errors
    /// Returns an error when the log cannot be read. Pages may have been given before.
    fn read_segments(
        &self,
        log: &LogVersion,
        since: Option<&str>,
        take: &mut PageReceiver<'_>,
    ) -> Result<(), TeamError>;

    /// Returns false if a fetched log has not grown out of a version: the place was restored from a backup, or somebody has
    /// replaced the log.
    ///
    /// # Errors
    /// Returns an error when the place cannot be reached or the log cannot be read.
    fn has_version(&self, log: &LogVersion, version: &str) -> Result<bool, TeamError>;

    /// Returns who has signed a fetched log.
    ///
    /// # Errors
    /// Returns an error when the log cannot be read.
    fn log_signature(&self, log: &LogVersion) -> Result<LogSignature, TeamError>;

    /// Returns the signatures of what was added to a fetched log after the version `known`, oldest first; those of the whole
    /// log if that version is empty or gone. Signatures by the key of the version `own` count as trusted.
    ///
    /// # Errors
    /// Returns an error when the log cannot be read.
    fn new_signatures(&self, log: &LogVersion, known: &str, own: Option<&str>) -> Result<Vec<LogSignature>, TeamError>;

    /// Returns true if this machine, or a copy of it, has written all that was added to a fetched own log after the version
    /// `known`, as far as the place tells writers apart; false if the place cannot tell, because `known` is empty: this machine
    /// has sent nothing there.
    ///
    /// # Errors
    /// Returns [`TeamError::ForeignRecords`] if somebody else has written some of it, and an error when the log cannot be read.
    fn is_own(&self, log: &LogVersion, known: &str) -> Result<bool, TeamError>;

    /// Appends segments to the own log, whose last version is `base`; `None` if there is no such log yet. All that was added to
    /// it after the version `known` must come from this machine, see [`TeamBackend::is_own`].
    ///
    /// # Errors
    /// Returns an error when the place cannot be reached or refuses the log, or when the log is not this machine's alone.
    fn append(
        &self,
        log: &MachineName,
        segments: &[Vec<u8>],
        base: Option<&str>,
        known: &str,
    ) -> Result<AppendOutcome, TeamError>;

    /// Puts in order what exchanges have left here. A failure is logged and harms nothing.
    fn tidy_up(&self) {}
}
