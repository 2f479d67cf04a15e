//! Appends pattern events to `metrics.jsonl` for later analysis: time, event, language, id and count, but no code.
//!
//! - The file and its one predecessor (`metrics.1.jsonl`) together stay below twice [`MAX_METRICS_BYTES`] plus one
//!   write.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::domain::{PatternId, Time, word_enum};
use crate::store::StoreError;
use crate::store::files::{self, SyncPolicy};

/// Size in bytes from which a new file is started: about 10,000 lines.
const MAX_METRICS_BYTES: u64 = 1 << 20;

word_enum!(
    /// Event of a pattern.
    PatternEventKind {
        /// A new pattern was learned.
        Learned = "learned",
        /// A known pattern was seen again, `count` times.
        Seen = "seen",
        /// Code matched the pattern.
        Matched = "matched",
        Succeeded = "succeeded",
        Failed = "failed",
        /// A fix for a finding of the pattern failed its check, was dropped or was undone.
        SetBack = "set_back",
        Forgotten = "forgotten",
        Muted = "muted",
        Unmuted = "unmuted",
        Evicted = "evicted",
        /// An import added the pattern or counts of it.
        Imported = "imported",
    }
);

/// Line of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PatternEvent {
    pub at: Time,
    pub event: PatternEventKind,
    pub language: String,
    pub pattern: PatternId,
    pub count: u32,
}

fn metrics_path(folder: &Path) -> PathBuf {
    folder.join("metrics.jsonl")
}

/// Appends events. The caller holds the lock.
pub(super) fn append_events(folder: &Path, lines: &[PatternEvent]) -> Result<(), StoreError> {
    if lines.is_empty() {
        return Ok(());
    }
    let path = metrics_path(folder);
    if std::fs::metadata(&path).is_ok_and(|metadata| metadata.len() >= MAX_METRICS_BYTES) {
        let older = folder.join("metrics.1.jsonl");
        std::fs::rename(&path, &older).map_err(StoreError::io("rename", &path))?;
    }
    let mut bytes = Vec::new();
    for line in lines {
        serde_json::to_writer(&mut bytes, line).map_err(|source| StoreError::Encode { what: "a metric", source })?;
        bytes.push(b'\n');
    }
    // The log is derived data: a power cut may lose its last lines.
    files::append(&path, &bytes, SyncPolicy::Later)
}

/// Returns the time of the first event of a kind that the log still has; `None` if there is none.
///
/// # Errors
///
/// Fails if the log cannot be read.
pub(super) fn first_event_at(folder: &Path, kind: PatternEventKind) -> Result<Option<Time>, StoreError> {
    for path in [folder.join("metrics.1.jsonl"), metrics_path(folder)] {
        let text = files::read(&path)?.unwrap_or_default();
        let mut events = text.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
        if let Some(event) = events.find(|event: &PatternEvent| event.event == kind) {
            return Ok(Some(event.at));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knowledge::test_support::time_at_day;

    #[test]
    fn the_first_event_of_a_kind_is_found_in_both_files() {
        let folder = tempfile::tempdir().expect("a folder");
        let event = |day: i64, event: PatternEventKind| PatternEvent {
            at: time_at_day(day),
            event,
            language: "go".to_owned(),
            pattern: PatternId::from_forms("go", "a", "b"),
            count: 1,
        };
        let first = |kind| first_event_at(folder.path(), kind).expect("readable");
        assert_eq!(first(PatternEventKind::Learned), None);
        let events = [(1, PatternEventKind::Matched), (2, PatternEventKind::Learned), (3, PatternEventKind::Learned)];
        append_events(folder.path(), &events.map(|(day, kind)| event(day, kind))).expect("written");
        assert_eq!(first(PatternEventKind::Learned), Some(time_at_day(2)));
        std::fs::rename(metrics_path(folder.path()), folder.path().join("metrics.1.jsonl")).expect("renamed");
        append_events(folder.path(), &[event(4, PatternEventKind::Learned)]).expect("written");
        assert_eq!(first(PatternEventKind::Learned), Some(time_at_day(2)));
        assert_eq!(first(PatternEventKind::Muted), None);
    }

    #[test]
    fn the_files_stay_small() {
        let folder = tempfile::tempdir().expect("a folder");
        let line = PatternEvent {
            at: time_at_day(0),
            event: PatternEventKind::Seen,
            language: "go".to_owned(),
            pattern: PatternId::from_forms("go", "a", "b"),
            count: 2,
        };
        let many = vec![line; 1000];
        for _ in 0..40 {
            append_events(folder.path(), &many).expect("written");
        }
        let sizes: Vec<u64> = ["metrics.jsonl", "metrics.1.jsonl"]
            .map(|name| std::fs::metadata(folder.path().join(name)).expect("a file").len())
            .into();
        assert!(sizes.iter().sum::<u64>() < 2 * MAX_METRICS_BYTES + 200_000, "{sizes:?}");
        let text = std::fs::read_to_string(folder.path().join("metrics.jsonl")).expect("text");
        assert!(text.lines().all(|line| serde_json::from_str::<PatternEvent>(line).is_ok()));
    }
}
