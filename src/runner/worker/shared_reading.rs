//! Lets one member of a panel read the history and the files of the snapshot for all of them.
//!
//! - The members of a panel read the same at the same moment. Together they would take the processor from each other, and
//!   each would have read less when its time is up. So one reads, and the others wait and take from the caches.
//! - A member whose worker dies while it reads leaves the reading to the next one.
//! - Nobody waits longer than the reading may take: a member then reads by itself.

use std::fs::{DirBuilder, File, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::domain::RunId;

/// Time that a member waits longer than [`crate::config::ContextSettings::reading_seconds`]. Not from the literature: what
/// is read must be ranked and packed, too, on a busy machine.
const MAX_FURTHER_WAIT: Duration = Duration::from_secs(8);
/// Interval between two looks at the lock.
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Name of the locked file. It contains the id of the last panel for which somebody has read.
const FILE_NAME: &str = "panel-reading";

/// Part of a worker in the reading of its panel.
pub(in crate::runner) enum SharedReading {
    /// It reads for the panel. The others wait until this is finished or dropped.
    First(FinishedReading),
    /// Another member has read what there was time for.
    Done,
    /// It reads for itself: it is no member of a panel, or waited too long.
    Alone,
}

/// Locked file that says, at the end, that somebody has read for a panel.
pub(in crate::runner) struct FinishedReading {
    file: File,
    panel: RunId,
}

impl SharedReading {
    /// Finds out the part of a member of `panel`, and waits for another member that reads. The caches are in `folder`.
    pub(in crate::runner) fn begin(
        panel: Option<&RunId>,
        folder: PathBuf,
        reading_time: Duration,
        cancelled: &dyn Fn() -> bool,
    ) -> Self {
        let Some(panel) = panel else { return Self::Alone };
        let Some(mut file) = open(&folder) else { return Self::Alone };
        let give_up = Instant::now() + reading_time + MAX_FURTHER_WAIT;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if Instant::now() < give_up && !cancelled() => {
                    std::thread::sleep(LOCK_POLL_INTERVAL);
                }
                Err(_) => return Self::Alone,
            }
        }
        let mut last = String::new();
        match file.read_to_string(&mut last) {
            Ok(_) if last.trim() == panel.as_str() => Self::Done,
            Ok(_) => Self::First(FinishedReading { file, panel: panel.clone() }),
            Err(_) => Self::Alone,
        }
    }

    /// Lets the other members begin.
    pub(in crate::runner) fn finish(self) {
        let Self::First(FinishedReading { mut file, panel }) = self else { return };
        let written = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| writeln!(file, "{panel}"));
        if let Err(error) = written {
            tracing::warn!(%error, "the other members of the panel read by themselves");
        }
    }
}

fn open(folder: &Path) -> Option<File> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder).ok()?;
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(folder.join(FILE_NAME)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PANELS: [&str; 2] = ["ar_01JD3Z8Q6M7S5V2K4T9XWB1C0A", "ar_01JD3Z8Q6M7S5V2K4T9XWB1C0B"];

    #[test]
    fn one_member_reads_and_the_others_take_from_the_caches() {
        let home = tempfile::tempdir().expect("a folder");
        let folder = home.path().join("context");
        let [one, other] = PANELS.map(|id| id.parse::<RunId>().expect("an id"));
        let begin =
            |panel: Option<&RunId>| SharedReading::begin(panel, folder.clone(), Duration::from_secs(60), &|| false);
        assert!(matches!(begin(None), SharedReading::Alone));
        let first = begin(Some(&one));
        assert!(matches!(first, SharedReading::First(_)));
        // A cancelled member does not wait.
        let cancelled = SharedReading::begin(Some(&one), folder.clone(), Duration::from_secs(60), &|| true);
        assert!(matches!(cancelled, SharedReading::Alone));
        std::thread::scope(|scope| {
            let second = scope.spawn(|| matches!(begin(Some(&one)), SharedReading::Done));
            first.finish();
            assert!(second.join().expect("no panic"), "it waits for the first one");
        });
        // The reader of another panel dies, and the next member reads in its place.
        drop(begin(Some(&other)));
        let next = begin(Some(&other));
        assert!(matches!(next, SharedReading::First(_)));
        next.finish();
        assert!(matches!(begin(Some(&other)), SharedReading::Done));
        assert!(matches!(begin(Some(&one)), SharedReading::First(_)));
    }
}
