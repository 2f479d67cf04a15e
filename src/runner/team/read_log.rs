//! Reads what is new in a log, page by page. Segments that cannot be taken are set aside and named; they keep no other one away.

use std::collections::HashSet;
use std::ops::ControlFlow;

use super::log_owner::OwnRecords;
use super::received_records::{ReadLog, ReceivedRecords};
use super::signers::SignatureFault;
use super::{SyncError, SyncReport, TeamSync};
use crate::domain::text::sanitize_line;
use crate::domain::{TeamRecord, Time};
use crate::git::LogSignature;
use crate::store::{SetAsideCause, SetAsideSegment, Store, StoreError, TeamMembership, TeamProgress};
use crate::team::backend::ReceivedSegment;
use crate::team::segment::{ParsedSegment, parse_segment};
use crate::team::{LogVersion, TeamBackend, TeamError};

/// Maximum number of segments of a log that one exchange names as set aside.
const MAX_SET_ASIDE: usize = 20;
/// How far the clock of another machine may be ahead: a month, in milliseconds. A clock that is wrong by days must not cost a second
/// review, and one without end must not make a review the newest for ever.
const MAX_AHEAD_MS: i64 = 31 * 86_400_000;

/// Size of received records from which on they are taken over before more is read, in bytes. Parsed, they take several times as
/// much memory.
const MAX_HELD_BYTES: usize = 64 << 20;

/// Log that is read, with the segments that could not be taken.
struct LogReader<'a> {
    store: &'a Store,
    log: &'a LogVersion,
    now: Time,
    set_aside: Vec<SetAsideSegment>,
    /// Records of this store, if it is its own log.
    own: OwnRecords,
    /// Hashes of the lines that this exchange has read.
    read: HashSet<blake3::Hash>,
    /// Hashes of the lines that earlier exchanges have received; `None` until a line is new.
    known: Option<HashSet<blake3::Hash>>,
    /// Number of records that no earlier exchange has received.
    count: u64,
    /// Number of records that earlier exchanges have received; 0 until a line is new to this one.
    known_count: u64,
}

impl TeamSync<'_> {
    /// Reads the new segments of a fetched log and appends their new records to `team/received`.
    pub(super) fn read_log(
        &self,
        backend: &dyn TeamBackend,
        team: &TeamMembership,
        log: &LogVersion,
        progress: &mut TeamProgress,
        received: &mut ReceivedRecords,
        report: &mut SyncReport,
    ) -> Result<(), SyncError> {
        let mut reader = LogReader::new(&self.services.store, team, log, self.services.ambient.now())?;
        let signature = self.read_pages(backend, team, &mut reader, progress, received, report)?;
        report.set_aside.append(&mut reader.set_aside);
        if let Some(signature) = signature {
            received.logs.push(ReadLog { log: log.clone(), signature, new: reader.count, known: reader.known_count });
        }
        Ok(())
    }

    /// Reads the log page by page. Returns who has signed it; `None` if this one log cannot be read or does not count.
    fn read_pages(
        &self,
        backend: &dyn TeamBackend,
        team: &TeamMembership,
        reader: &mut LogReader<'_>,
        progress: &mut TeamProgress,
        received: &mut ReceivedRecords,
        report: &mut SyncReport,
    ) -> Result<Option<LogSignature>, SyncError> {
        let log = reader.log;
        let signature = match backend.log_signature(log) {
            Ok(signature) => signature,
            Err(error) => return reader.set_log_aside(error).map(|()| None),
        };
        match self.find_signature_fault(backend, team, log, &signature, progress) {
            Ok(None) => {}
            Ok(Some(SignatureFault { reason, cause })) => {
                // Read again when the keys or the settings have changed.
                reader.set_aside_as(cause, &log.version, b"", &reason)?;
                return Ok(None);
            }
            Err(error) => return reader.set_log_aside(error).map(|()| None),
        }
        let since = find_start(team, log, progress).map(str::to_owned);
        let mut failed = None;
        let read = backend.read_segments(log, since.as_deref(), &mut |segments| {
            failed = self.take_page(segments, team, reader, progress, received, report).err();
            if failed.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        match (failed, read) {
            (Some(error), _) => Err(error),
            (None, Ok(())) => Ok(Some(signature)),
            (None, Err(error)) => reader.set_log_aside(error).map(|()| None),
        }
    }

    /// Appends the new records of a page to `team/received`. They are taken over with those of other pages, as far as that many
    /// fit into memory.
    fn take_page(
        &self,
        segments: Vec<ReceivedSegment>,
        team: &TeamMembership,
        reader: &mut LogReader<'_>,
        progress: &mut TeamProgress,
        received: &mut ReceivedRecords,
        report: &mut SyncReport,
    ) -> Result<(), SyncError> {
        let mut new = reader.parse(segments)?;
        report.unknown += new.unknown;
        // A machine that writes a shared log, or that was copied, has no need of its own records.
        new.records
            .retain(|(record, line)| !record.machine().is_forgotten(&progress.forgotten) && !reader.own.has_line(line));
        if new.records.is_empty() {
            return Ok(());
        }
        if reader.log.name == team.log && !team.machine.is_ci() {
            report.copied |= new.records.iter().any(|(record, line)| !reader.own.has_made(record, line));
        }
        let known = reader.load_known()?;
        let (mut fresh, mut count) = (Vec::new(), 0);
        for (record, line) in new.records {
            received.bytes += line.len();
            // A known record may not have been taken over, because the process was killed. To do so again changes nothing.
            if !known.contains(&blake3::hash(line.as_bytes())) {
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
        reader.count += count;
        self.services.store.append_received_team_lines(&reader.log.name, &fresh)?;
        if received.bytes >= MAX_HELD_BYTES {
            self.apply_records(team, received, progress, report)?;
        }
        Ok(())
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

impl<'a> LogReader<'a> {
    fn new(store: &'a Store, team: &TeamMembership, log: &'a LogVersion, now: Time) -> Result<Self, StoreError> {
        let own = match log.name == team.log {
            true => OwnRecords::load(store)?,
            false => OwnRecords::default(),
        };
        let (set_aside, read) = (Vec::new(), HashSet::new());
        Ok(Self { store, log, now, set_aside, own, read, known: None, count: 0, known_count: 0 })
    }

    /// Returns the hashes of the lines that earlier exchanges have received of the log.
    fn load_known(&mut self) -> Result<&HashSet<blake3::Hash>, StoreError> {
        Ok(match &mut self.known {
            Some(known) => known,
            none => {
                let mut known = HashSet::new();
                self.store.visit_received_team_lines(&self.log.name, |line| {
                    known.insert(blake3::hash(line.as_bytes()));
                })?;
                self.known_count = known.len() as u64;
                none.insert(known)
            }
        })
    }

    /// Sets this one odd log aside, which must not keep the others away.
    ///
    /// # Errors
    ///
    /// The error itself if the whole place is away.
    fn set_log_aside(&mut self, error: TeamError) -> Result<(), SyncError> {
        if matches!(error, TeamError::Database(_)) {
            return Err(error.into());
        }
        let version = self.log.version.clone();
        Ok(self.set_aside(&version, b"", &format!("the log cannot be read: {error}"))?)
    }

    /// Checks segments, and returns their records, each line once.
    fn parse(&mut self, segments: Vec<ReceivedSegment>) -> Result<ParsedSegment, StoreError> {
        let mut new = ParsedSegment::default();
        for ReceivedSegment { name, content } in segments {
            let bytes = match content {
                Ok(bytes) => bytes,
                Err(reason) => {
                    self.set_aside(&name, b"", &reason.to_string())?;
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
                    let records = parsed.records.into_iter();
                    new.records.extend(records.filter(|(_, line)| self.read.insert(blake3::hash(line.as_bytes()))));
                }
                Err(fault) => self.set_aside(&name, &bytes, &fault.to_string())?,
            }
        }
        Ok(new)
    }

    /// Sets a segment with a fault aside, and names it.
    fn set_aside(&mut self, name: &str, bytes: &[u8], reason: &str) -> Result<(), StoreError> {
        self.set_aside_as(SetAsideCause::Fault, name, bytes, reason)
    }

    /// Sets a segment aside, and names it. Of many in one log, the last that is named stands for the rest.
    fn set_aside_as(&mut self, cause: SetAsideCause, name: &str, bytes: &[u8], reason: &str) -> Result<(), StoreError> {
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
        self.set_aside.push(SetAsideSegment { log: self.log.name.clone(), segment, reason, cause, at: self.now });
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
