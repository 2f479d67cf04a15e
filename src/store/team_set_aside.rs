//! Keeps the segments of logs that could not be taken: their starts in the folder `team/set-aside`, their reasons as entries of
//! [`TeamProgress`]. Whoever may write a log can make any number of bad segments, so both are bounded.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::files::{self, ExistingPolicy};
use super::{SetAsideCause, SetAsideSegment, Store, StoreError, TeamProgress};
use crate::domain::MachineName;

/// Maximum number of bytes that are kept of a segment, from its start: enough to see what it is.
const MAX_START_BYTES: usize = 64 << 10;
/// Maximum number of segments that are kept.
const MAX_KEPT_SEGMENTS: usize = 50;
/// Maximum number of bytes of all kept segments. Earlier versions kept whole ones.
const MAX_KEPT_BYTES: u64 = 4 << 20;
/// Maximum number of entries.
const MAX_ENTRIES: usize = 50;
/// Maximum number of characters of an entry's reason, which may quote the segment.
const MAX_REASON_CHARS: usize = 400;

/// Segments of a log that could not be taken for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetAsideEntry {
    /// The last of them.
    #[serde(flatten)]
    pub segment: SetAsideSegment,
    /// How often one was set aside.
    #[serde(default = "count_once")]
    pub count: u64,
}

fn count_once() -> u64 {
    1
}

impl TeamProgress {
    /// Records the segments that an exchange has set aside. Entries of logs that it has read without a fault end, except those that
    /// wait for their time, see [`TeamProgress::end_waiting`].
    pub fn note_set_aside(&mut self, segments: &[SetAsideSegment], read: &[MachineName]) {
        let waits = |segment: &SetAsideSegment| segment.cause == SetAsideCause::Ahead;
        let has_fault = |log: &MachineName| segments.iter().any(|segment| segment.log == *log && !waits(segment));
        self.set_aside.retain(|SetAsideEntry { segment, .. }| {
            waits(segment) || !read.contains(&segment.log) || has_fault(&segment.log)
        });
        for segment in segments {
            let reason: String = segment.reason.chars().take(MAX_REASON_CHARS).collect();
            let segment = SetAsideSegment { reason, ..segment.clone() };
            let is_same =
                |entry: &SetAsideEntry| (&entry.segment.log, &entry.segment.reason) == (&segment.log, &segment.reason);
            match self.set_aside.iter().position(is_same) {
                Some(place) => {
                    let mut entry = self.set_aside.remove(place);
                    entry.count += u64::from(entry.segment.segment != segment.segment);
                    self.set_aside.push(SetAsideEntry { segment, count: entry.count });
                }
                None => self.set_aside.push(SetAsideEntry { segment, count: 1 }),
            }
        }
        // The oldest ones stand first.
        let excess = self.set_aside.len().saturating_sub(MAX_ENTRIES);
        self.set_aside.drain(..excess);
    }

    /// Ends the entries about decisions that were too far ahead, except those of logs that still have such decisions.
    pub fn end_waiting(&mut self, logs_ahead: &BTreeSet<MachineName>) {
        self.set_aside.retain(|SetAsideEntry { segment, .. }| {
            segment.cause != SetAsideCause::Ahead || logs_ahead.contains(&segment.log)
        });
    }
}

/// File in the folder.
struct KeptSegment {
    modified: SystemTime,
    path: PathBuf,
    bytes: u64,
}

impl Store {
    fn set_aside_folder(&self) -> PathBuf {
        self.root.join("team").join("set-aside")
    }

    /// Keeps the start of a segment that could not be taken, and returns its path. The oldest kept segments make room for it.
    ///
    /// # Errors
    /// Returns an error when the folder cannot be read or written.
    pub fn set_aside_segment(&self, log: &MachineName, name: &str, bytes: &[u8]) -> Result<PathBuf, StoreError> {
        let folder = self.set_aside_folder();
        let name: String =
            name.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '.') { c } else { '_' }).collect();
        let name: String = name.chars().take(80).collect();
        let path = folder.join(format!("{log}-{name}"));
        let start = bytes.get(..MAX_START_BYTES).unwrap_or(bytes);
        files::write_atomically(&path, start, ExistingPolicy::Replace)?;
        remove_oldest(&folder, &path)?;
        Ok(path)
    }

    /// Removes the kept segments of a log. A name can be the start of another one, so the `others` keep those that belong to a
    /// longer name.
    ///
    /// # Errors
    /// Returns an error when the folder cannot be read or a file cannot be removed.
    pub fn remove_set_aside_segments(&self, log: &MachineName, others: &[MachineName]) -> Result<(), StoreError> {
        for KeptSegment { path, .. } in list_segments(&self.set_aside_folder())? {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let is_of = |log: &MachineName| name.strip_prefix(log.as_str()).is_some_and(|rest| rest.starts_with('-'));
            let is_longer = |other: &&MachineName| other.as_str().len() > log.as_str().len();
            if is_of(log) && !others.iter().filter(is_longer).any(is_of) {
                files::remove(&path)?;
            }
        }
        Ok(())
    }
}

/// Removes the oldest segments until the rest is within the limits. `new` stays.
fn remove_oldest(folder: &Path, new: &Path) -> Result<(), StoreError> {
    let mut kept = list_segments(folder)?;
    kept.sort_by(|one, other| (one.modified, &one.path).cmp(&(other.modified, &other.path)));
    let mut count = kept.len();
    let mut bytes: u64 = kept.iter().map(|segment| segment.bytes).sum();
    for segment in kept.iter().filter(|segment| segment.path != new) {
        if count <= MAX_KEPT_SEGMENTS && bytes <= MAX_KEPT_BYTES {
            break;
        }
        files::remove(&segment.path)?;
        count -= 1;
        bytes -= segment.bytes;
    }
    Ok(())
}

/// Lists the files of the folder; none if there is no folder.
fn list_segments(folder: &Path) -> Result<Vec<KeptSegment>, StoreError> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(StoreError::io("list", folder)(error)),
    };
    let to_segment = |entry: fs::DirEntry| {
        let metadata = entry.metadata().ok().filter(fs::Metadata::is_file)?;
        let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        Some(KeptSegment { modified, path: entry.path(), bytes: metadata.len() })
    };
    Ok(entries.flatten().filter_map(to_segment).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Time;

    fn segment(log: &str, name: &str, reason: &str) -> SetAsideSegment {
        let log = log.parse().expect("a name");
        let (segment, cause) = (name.to_owned(), SetAsideCause::Fault);
        SetAsideSegment { log, segment, reason: reason.to_owned(), cause, at: Time::UNIX_EPOCH }
    }

    fn list_entries(progress: &TeamProgress) -> Vec<String> {
        let describe = |entry: &SetAsideEntry| {
            let SetAsideEntry { segment, count } = entry;
            format!("{} of {}: {} x{count}", segment.segment, segment.log, segment.reason)
        };
        progress.set_aside.iter().map(describe).collect()
    }

    #[test]
    fn entries_are_counted_by_log_and_reason_and_end_with_a_good_reading() {
        let mut progress = TeamProgress::default();
        let (ada, eve): (MachineName, MachineName) =
            ("ada-1".parse().expect("a name"), "eve-1".parse().expect("a name"));
        let bad = [segment("eve-1", "0", "torn"), segment("ada-1", "0", "torn"), segment("eve-1", "1", "torn")];
        progress.note_set_aside(&bad, &[]);
        assert_eq!(list_entries(&progress), ["0 of ada-1: torn x1", "1 of eve-1: torn x2"]);
        // The same again is no further one.
        progress.note_set_aside(&[segment("eve-1", "1", "torn")], std::slice::from_ref(&eve));
        assert_eq!(list_entries(&progress), ["0 of ada-1: torn x1", "1 of eve-1: torn x2"]);
        progress.note_set_aside(&[segment("ada-1", "2", "future")], &[ada, eve]);
        assert_eq!(list_entries(&progress), ["0 of ada-1: torn x1", "2 of ada-1: future x1"]);
    }

    #[test]
    fn an_entry_about_a_clock_ends_when_no_decision_of_its_log_waits() {
        let mut progress = TeamProgress::default();
        let eve: MachineName = "eve-1".parse().expect("a name");
        let ahead = SetAsideSegment { cause: SetAsideCause::Ahead, ..segment("eve-1", "0", "far ahead") };
        progress.note_set_aside(&[ahead.clone(), segment("eve-1", "1", "torn")], &[]);
        // The log was read without a fault, and the decision waits.
        progress.note_set_aside(&[ahead], std::slice::from_ref(&eve));
        assert_eq!(list_entries(&progress), ["0 of eve-1: far ahead x1"]);
        progress.note_set_aside(&[], std::slice::from_ref(&eve));
        progress.end_waiting(&BTreeSet::from([eve]));
        assert_eq!(list_entries(&progress), ["0 of eve-1: far ahead x1"]);
        progress.end_waiting(&BTreeSet::new());
        assert_eq!(list_entries(&progress), [""; 0]);
    }

    #[test]
    fn the_list_of_entries_and_their_reasons_are_bounded() {
        let mut progress = TeamProgress::default();
        let reasons: Vec<String> = (0..200).map(|n| format!("{n} {}", "x".repeat(10_000))).collect();
        let bad: Vec<SetAsideSegment> = reasons.iter().map(|reason| segment("eve-1", "0", reason)).collect();
        progress.note_set_aside(&bad, &[]);
        assert_eq!(progress.set_aside.len(), MAX_ENTRIES);
        assert!(progress.set_aside.iter().all(|entry| entry.segment.reason.len() == MAX_REASON_CHARS));
        assert!(progress.set_aside.last().is_some_and(|entry| entry.segment.reason.starts_with("199 ")));
    }

    #[test]
    fn an_entry_of_an_earlier_version_is_one() {
        let json = serde_json::to_value(segment("eve-1", "0", "torn")).expect("JSON");
        let entry: SetAsideEntry = serde_json::from_value(json).expect("an entry");
        assert_eq!((entry.count, entry.segment), (1, segment("eve-1", "0", "torn")));
    }
}
