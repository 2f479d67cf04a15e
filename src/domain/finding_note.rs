//! Defines notes about findings: words for the user that change no status.

use serde::{Deserialize, Serialize};

use super::finding::word_enum;
use super::{Actor, FindingId, Time};

word_enum!(
    /// Purpose of a note.
    NoteKind {
        /// The author holds that the report is wrong. The user decides.
        Dispute = "dispute",
        /// A remark of the user, for later readers.
        Remark = "remark",
    }
);

/// Line of `notes.ndjson`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FindingNote {
    /// Finding that the note is about.
    pub finding_id: FindingId,
    /// Purpose of the note.
    pub kind: NoteKind,
    /// Author of the note.
    pub actor: Actor,
    /// Text on one line, at most [`FindingNote::MAX_TEXT_CHARS`] characters.
    pub text: String,
    /// Time of the note.
    pub at: Time,
}

impl FindingNote {
    /// Maximum length of the text in characters. Own choice: several sentences, but no page.
    pub const MAX_TEXT_CHARS: usize = 2_000;
}
