//! Reads what is new in a log. Segments that cannot be taken are set aside and named; they keep no other one away.

use std::collections::HashSet;

use super::received_records::ReceivedRecords;
use super::{SyncError, SyncReport, TeamSync};
use crate::config::AcceptedRecords;
use crate::domain::text::sanitize_line;
use crate::domain::{TeamRecord, Time};
use crate::git::LogSignature;
use crate::store::{SetAsideSegment, Store, StoreError, TeamMembership, TeamProgress};
use crate::team::backend::ReceivedSegment;
use crate::team::postgres::is_database;
use crate::team::segment::{ParsedSegment, parse_segment};
use crate::team::{LogVersion, TeamBackend, TeamError};

/// Maximum number of segments of a log that one exchange names as set aside.
const MAX_SET_ASIDE: usize = 20;
/// How far the clock of another machine may be ahead: a month, in milliseconds. A clock that is wrong by days must not cost a second
/// review, and one without end must not make a review the newest for ever.
const MAX_AHEAD_MS: i64 = 31 * 86_400_000;

/// Log that is read, with the segments that could not be taken.
struct LogReader<'a> {
    store: &'a Store,
    log: &'a LogVersion,
    now: Time,
    set_aside: Vec<SetAsideSegment>,
}

impl TeamSync<'_> {
    /// Reads the new segments of a fetched log and appends their new records to `team/received`.
    pub(super) fn read_log(
        &self,
        backend: &dyn TeamBackend,
        team: &TeamMembership,
        log: &LogVersion,
        progress: &TeamProgress,
        received: &mut ReceivedRecords,
        report: &mut SyncReport,
    ) -> Result<(), SyncError> {
        let store = &self.services.store;
        let mut reader = LogReader { store, log, now: self.services.ambient.now(), set_aside: Vec::new() };
        let is_own = log.name == team.log;
        let found = match reader.read_segments(backend, find_start(team, log, progress))? {
            Some((signature, segments)) if self.accepts(&mut reader, &signature, team)? => {
                Some((signature, reader.parse(segments)?))
            }
            _ => None,
        };
        report.set_aside.append(&mut reader.set_aside);
        let Some((signature, mut new)) = found else { return Ok(()) };
        report.unknown += new.unknown;
        // A machine that writes a shared log, or that was copied, has no need of its own records.
        let own: HashSet<String> =
            if is_own { store.own_team_lines(0)?.0.into_iter().collect() } else { HashSet::new() };
        new.records.retain(|(record, line)| !progress.forgotten.contains(record.machine()) && !own.contains(line));
        let before: HashSet<String> = match new.records.is_empty() {
            true => HashSet::new(),
            false => store.received_team_lines(&log.name)?.into_iter().collect(),
        };
        let mut fresh = Vec::new();
        let mut count = 0;
        for (record, line) in new.records {
            // A known record may not have been taken over, because the process was killed. To do so again changes nothing.
            if !before.contains(&line) {
                fresh.extend_from_slice(line.as_bytes());
                fresh.push(b'\n');
                count += 1;
                report.received.add(&record);
            }
            match record {
                TeamRecord::Decision(decision) => drop(received.decided.insert(decision.finding_id)),
                TeamRecord::Review(review) => received.reviews.push(*review),
                TeamRecord::Patterns(patterns) => received.patterns.push(patterns.export),
            }
        }
        store.append_received_team_lines(&log.name, &fresh)?;
        received.logs.push((log.clone(), signature, count));
        Ok(())
    }

    /// Returns true if the records of a log with this signature count.
    fn accepts(
        &self,
        reader: &mut LogReader<'_>,
        signature: &LogSignature,
        team: &TeamMembership,
    ) -> Result<bool, StoreError> {
        let is_own = reader.log.name == team.log;
        let is_trusted = matches!(signature, LogSignature::Trusted(_));
        let reason = match (signature, self.services.settings.team.accept) {
            (LogSignature::Bad, _) => "the signature of the log does not fit its content",
            (_, AcceptedRecords::Signed) if !is_trusted && !is_own => match is_database(&team.place) {
                true => "more than one role of the database has written the log",
                false => "no key that git trusts has signed the log",
            },
            _ => return Ok(true),
        };
        // Read again when the keys or the settings have changed.
        reader.set_aside(&reader.log.version.clone(), b"", reason)?;
        Ok(false)
    }
}

/// Returns the version of a log up to which this version of revdeck has read it.
fn find_start<'a>(team: &TeamMembership, log: &LogVersion, progress: &'a TeamProgress) -> Option<&'a str> {
    let version = match log.name == team.log {
        true => progress.own_received.as_str(),
        false => progress.logs.get(&log.name)?.version.as_str(),
    };
    (progress.reader == env!("CARGO_PKG_VERSION") && !version.is_empty()).then_some(version)
}

impl LogReader<'_> {
    /// Reads the new segments, and who has signed the log; `None` if this one log cannot be read.
    fn read_segments(
        &mut self,
        backend: &dyn TeamBackend,
        since: Option<&str>,
    ) -> Result<Option<(LogSignature, Vec<ReceivedSegment>)>, SyncError> {
        let signature = backend.log_signature(self.log);
        match signature.and_then(|signature| Ok((signature, backend.read_segments(self.log, since)?))) {
            Ok(read) => Ok(Some(read)),
            // The whole place is away.
            Err(error @ TeamError::Database(_)) => Err(error.into()),
            // One odd log must not keep the others away.
            Err(error) => {
                let version = self.log.version.clone();
                self.set_aside(&version, b"", &format!("the log cannot be read: {error}"))?;
                Ok(None)
            }
        }
    }

    /// Checks segments, and returns their records, each line once.
    fn parse(&mut self, segments: Vec<ReceivedSegment>) -> Result<ParsedSegment, StoreError> {
        let mut lines: HashSet<String> = HashSet::new();
        let mut new = ParsedSegment::default();
        for ReceivedSegment { name, content } in segments {
            let bytes = match content {
                Ok(bytes) => bytes,
                Err(bytes) => {
                    let reason = format!("it has {bytes} bytes, which is too much for one exchange");
                    self.set_aside(&name, b"", &reason)?;
                    continue;
                }
            };
            match parse_segment(&bytes, &self.log.name) {
                Ok(parsed) if parsed.records.iter().any(|(record, _)| is_ahead(record, self.now)) => {
                    new.unknown += parsed.unknown;
                    let reason = "a review of it has a time in the future: check the clock of its machine";
                    self.set_aside(&name, &bytes, reason)?;
                }
                Ok(parsed) => {
                    new.unknown += parsed.unknown;
                    new.records.extend(parsed.records.into_iter().filter(|(_, line)| lines.insert(line.clone())));
                }
                Err(fault) => self.set_aside(&name, &bytes, &fault.to_string())?,
            }
        }
        Ok(new)
    }

    /// Sets a segment aside, and names it. Of many in one log, the last that is named stands for the rest.
    fn set_aside(&mut self, name: &str, bytes: &[u8], reason: &str) -> Result<(), StoreError> {
        let number = self.set_aside.len() + 1;
        if number > MAX_SET_ASIDE {
            return Ok(());
        }
        if !bytes.is_empty() {
            self.store.set_aside_segment(&self.log.name, name, bytes)?;
        }
        let reason = match number == MAX_SET_ASIDE {
            true => "and further segments of this log".to_owned(),
            false => sanitize_line(reason).into_owned(),
        };
        let segment = sanitize_line(name).into_owned();
        self.set_aside.push(SetAsideSegment { log: self.log.name.clone(), segment, reason, at: self.now });
        Ok(())
    }
}

/// Returns true for a review that would be newer than any review of this machine for a long time.
fn is_ahead(record: &TeamRecord, now: Time) -> bool {
    let TeamRecord::Review(review) = record else { return false };
    let latest = now.as_millisecond().saturating_add(MAX_AHEAD_MS);
    let letters = review.run.run_id.as_str().trim_start_matches("ar_");
    let made = ulid::Ulid::from_string(letters).ok().and_then(|id| i64::try_from(id.timestamp_ms()).ok());
    let made = made.unwrap_or(i64::MAX);
    [made, review.run.created_at.as_millisecond(), review.run.updated_at.as_millisecond()]
        .into_iter()
        .any(|at| at > latest)
}
