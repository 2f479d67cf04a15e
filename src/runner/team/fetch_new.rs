//! Fetches what is new at the place, so that a log that cannot be fetched keeps no other one away.
//!
//! git fetches all logs that it is asked for, or none. Whoever may push can store an object that the git of others refuses
//! (`transfer.fsckObjects`), and a disk can lose one. So after a failure the logs are fetched in halves, until those at fault are
//! found. If nothing can be fetched at all, the place may be away: then the exchange fails, and the next one knows what failed.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::{SyncReport, TeamSync};
use crate::domain::MachineName;
use crate::domain::text::sanitize_line;
use crate::store::{SetAsideCause, SetAsideSegment, TeamProgress};
use crate::team::{LogVersion, TeamBackend, TeamError};

/// Maximum number of fetches that fail before one succeeds.
const MAX_FUTILE_FETCHES: usize = 16;
/// Maximum number of fetches that fail in one exchange.
const MAX_FAILED_FETCHES: usize = 100;
/// Time after which a failure is not looked into: a remote that is silent costs the whole patience with git each time.
const MAX_SEARCH_TIME: Duration = Duration::from_secs(30);

/// Logs that one exchange fetches.
struct LogFetch<'a> {
    fetch_logs: &'a dyn Fn(&[LogVersion]) -> Result<(), TeamError>,
    begun: Instant,
    fetched: Vec<LogVersion>,
    /// Logs that cannot be fetched alone, with the reasons.
    faulty: Vec<(LogVersion, String)>,
    first_error: Option<TeamError>,
    failures: usize,
}

impl<'a> LogFetch<'a> {
    fn new(fetch_logs: &'a dyn Fn(&[LogVersion]) -> Result<(), TeamError>) -> Self {
        Self {
            fetch_logs,
            begun: Instant::now(),
            fetched: Vec::new(),
            faulty: Vec::new(),
            first_error: None,
            failures: 0,
        }
    }

    /// Fetches logs, after a failure in halves. Leaves some out when too much has failed.
    fn fetch(&mut self, logs: &[LogVersion]) {
        if logs.is_empty() || !self.may_go_on() {
            return;
        }
        let Err(error) = (self.fetch_logs)(logs) else {
            self.fetched.extend_from_slice(logs);
            return;
        };
        self.failures += 1;
        let reason = error.to_string();
        if self.first_error.is_none() {
            self.first_error = Some(error);
        }
        if let [log] = logs {
            self.faulty.push((log.clone(), reason));
        } else {
            let (first, second) = logs.split_at(logs.len() / 2);
            self.fetch(first);
            self.fetch(second);
        }
    }

    fn may_go_on(&self) -> bool {
        let limit = if self.fetched.is_empty() { MAX_FUTILE_FETCHES } else { MAX_FAILED_FETCHES };
        self.failures == 0 || (self.failures < limit && self.begun.elapsed() < MAX_SEARCH_TIME)
    }
}

/// Outcome of the fetches.
struct FetchedLogs {
    fetched: Vec<LogVersion>,
    /// As in [`LogFetch`].
    faulty: Vec<(LogVersion, String)>,
}

/// Fetches logs, those that could not be fetched before apart from the others. Records in `unfetched` which ones cannot be now.
///
/// # Errors
///
/// If none of the others can be fetched.
fn fetch_around(
    logs: Vec<LogVersion>,
    unfetched: &mut BTreeSet<MachineName>,
    fetch_logs: &dyn Fn(&[LogVersion]) -> Result<(), TeamError>,
) -> Result<FetchedLogs, TeamError> {
    let (doubtful, sound): (Vec<LogVersion>, Vec<LogVersion>) =
        logs.into_iter().partition(|log| unfetched.contains(&log.name));
    let mut fetch = LogFetch::new(fetch_logs);
    fetch.fetch(&sound);
    fetch.fetch(&doubtful);
    let LogFetch { fetched, faulty, first_error, .. } = fetch;
    *unfetched = doubtful.into_iter().filter(|log| !fetched.contains(log)).map(|log| log.name).collect();
    unfetched.extend(faulty.iter().map(|(log, _)| log.name.clone()));
    match first_error {
        Some(error) if fetched.is_empty() && !sound.is_empty() => Err(error),
        _ => Ok(FetchedLogs { fetched, faulty }),
    }
}

impl TeamSync<'_> {
    /// Fetches logs, and returns those that are here then. The others are named.
    ///
    /// # Errors
    ///
    /// If the place may be away: nothing can be fetched that was not refused before.
    pub(super) fn fetch_new(
        &self,
        backend: &dyn TeamBackend,
        logs: Vec<LogVersion>,
        progress: &mut TeamProgress,
        report: &mut SyncReport,
    ) -> Result<Vec<LogVersion>, TeamError> {
        let FetchedLogs { fetched, faulty } =
            fetch_around(logs, &mut progress.unfetched, &|logs| backend.fetch_logs(logs))?;
        let now = self.services.ambient.now();
        report.set_aside.extend(faulty.into_iter().map(|(LogVersion { name, version }, reason)| SetAsideSegment {
            log: name,
            segment: sanitize_line(&version).into_owned(),
            reason: sanitize_line(&format!("the log cannot be fetched: {reason}")).into_owned(),
            cause: SetAsideCause::Fault,
            at: now,
        }));
        Ok(fetched)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn log(name: &str) -> LogVersion {
        LogVersion { name: name.parse().expect("a name"), version: "1".to_owned() }
    }

    fn names<'a>(logs: impl IntoIterator<Item = &'a LogVersion>) -> Vec<&'a str> {
        logs.into_iter().map(|log| log.name.as_str()).collect()
    }

    /// Fails if a log is among the bad ones, as git does for all that it was asked for.
    fn fetch_unless(bad: &[&str], logs: &[LogVersion]) -> Result<(), TeamError> {
        match logs.iter().find(|log| bad.contains(&log.name.as_str())) {
            Some(log) => Err(TeamError::HiddenLog { log: log.name.clone(), place: "origin".to_owned() }),
            None => Ok(()),
        }
    }

    #[test]
    fn a_log_that_cannot_be_fetched_keeps_no_other_one_away() {
        // All logs, those that cannot be fetched, those that could not be before, those that are fetched, and whether the place may
        // be away.
        for (all, bad, before, expected, is_away) in [
            (&["a", "b", "c"][..], &[][..], &[][..], &["a", "b", "c"][..], false),
            (&["a", "b", "c", "d", "e"], &["d"], &[], &["a", "b", "c", "e"], false),
            (&["a", "b", "c", "d"], &["a", "c"], &[], &["b", "d"], false),
            (&["a"], &["a"], &[], &[], true),
            (&["a", "b", "c"], &["a", "b", "c"], &[], &[], true),
            (&["a", "b"], &["a", "b"], &["a"], &[], true),
            (&["a"], &["a"], &["a"], &[], false),
            (&["a", "b"], &["a"], &["a"], &["b"], false),
            (&["a", "b"], &[], &["a"], &["b", "a"], false),
        ] {
            let name = |name: &&str| -> MachineName { name.parse().expect("a name") };
            let mut unfetched: BTreeSet<MachineName> = before.iter().map(name).collect();
            let logs = all.iter().map(|name| log(name)).collect();
            match fetch_around(logs, &mut unfetched, &|logs| fetch_unless(bad, logs)) {
                Ok(FetchedLogs { fetched, faulty }) => {
                    assert!(!is_away, "{all:?} {bad:?}");
                    assert_eq!(names(&fetched), expected, "{all:?} {bad:?}");
                    assert_eq!(names(faulty.iter().map(|(log, _)| log)), bad, "{all:?} {bad:?}");
                }
                Err(error) => assert!(is_away, "{all:?} {bad:?}: {error}"),
            }
            let still_bad: BTreeSet<MachineName> = bad.iter().map(name).collect();
            assert_eq!(unfetched, still_bad, "{all:?} {bad:?}");
        }
    }

    #[test]
    fn a_place_that_is_away_is_not_asked_for_each_log() {
        let logs: Vec<LogVersion> = (0..1_000).map(|number| log(&format!("log-{number}"))).collect();
        let asked = Cell::new(0);
        let mut unfetched = BTreeSet::new();
        let done = fetch_around(logs, &mut unfetched, &|logs| {
            asked.set(asked.get() + 1);
            fetch_unless(&[logs[0].name.as_str()], logs)
        });
        assert!(done.is_err());
        assert_eq!(asked.get(), MAX_FUTILE_FETCHES);
    }
}
