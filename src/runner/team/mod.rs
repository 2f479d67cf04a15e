//! Exchanges decisions and reviews with the other machines of a team.
//!
//! An exchange has four steps, each of which can be repeated after a kill without loss or doubling:
//!
//! 1. [`own_records`]: new decisions and completed reviews of this machine become records and are appended to `team/own.ndjson`.
//! 2. The logs at the place are listed. If nothing is new on either side, the exchange ends.
//! 3. [`read_log`]: new segments of the other logs are checked and appended to `team/received`. [`received_records`]: reviews
//!    become runs of this store. Decisions are merged ([`merge_log`]), and what stands is appended to `triage.ndjson`.
//! 4. Own records that the place does not have are appended to the own log there.
//!
//! The order of `triage.ndjson` is the order in which this machine has learned of decisions. So the times of the hybrid
//! logical clock and the decisions that each decision replaces follow from the file alone, and are never stored apart.

mod budget;
pub(in crate::runner) mod claims;
mod fetch_new;
mod follow;
mod forget;
mod held_back;
pub(in crate::runner) mod held_claim;
mod log_owner;
mod merge_log;
mod merged_reports;
mod own_records;
mod place_opening;
mod read_log;
mod received_records;
mod repository_facts;
mod signers;
mod sync_error;
mod undo;
mod vector_budget;

use std::collections::{BTreeSet, HashSet};
use std::ops::ControlFlow;
use std::process::Stdio;
use std::sync::Arc;

pub use self::follow::FollowerProcess;
use self::held_back::{OutgoingLines, note_held_back};
use self::merged_reports::PanelLists;
use self::own_records::OwnDecisions;
use self::received_records::ReceivedRecords;
use self::repository_facts::LocalFacts;
pub(in crate::runner) use self::undo::find_standing;
pub use self::undo::undo_or_redo_triage;
use crate::domain::text::sanitize_line;
use crate::domain::{FindingId, MachineName, TeamPerson, TeamRecord, TriageAction};
use crate::git::{Repo, hide_credentials};
use crate::knowledge::error::KnowledgeError;
use crate::runner::{RunnerError, Services, process};
use crate::store::{PreparedProgress, SetAsideSegment, StoreError, TeamMembership, TeamProgress};
use crate::team::postgres::Database;
use crate::team::{AppendOutcome, LogList, LogVersion, OutgoingFilter, TeamBackend, TeamError, segment};

/// Log of exchanges that a user interface has started.
const SYNC_LOG: &str = "sync.log";
/// Number of attempts to append to a log that others write, too.
const MAX_APPEND_TRIES: u32 = 8;

/// Service that exchanges records with the team.
#[derive(Clone, Copy)]
pub struct TeamSync<'a> {
    pub(in crate::runner) services: &'a Services,
}

/// Error of an exchange.
#[derive(Debug, thiserror::Error)]
pub enum SyncError {
    /// The machine takes no part in a team.
    #[error("this repository has not joined a team here")]
    NotJoined,
    /// The machine took part in a team, and has left it.
    #[error("{machine} has left the team: nothing is exchanged any longer with {place}")]
    Left {
        /// Name of the machine.
        machine: MachineName,
        /// Remote or database, without credentials.
        place: String,
    },
    /// Another process exchanges records.
    #[error("another process is exchanging records with the team")]
    Busy,
    /// Another store has written the log of this machine's name.
    #[error("the name {machine} is taken in {place}: another machine or clone keeps its records there under this name")]
    NameTaken {
        /// Name of the machine.
        machine: MachineName,
        /// Remote or database, without credentials.
        place: String,
    },
    /// A glob of the settings is wrong.
    #[error("team.exclude of the settings: {0}")]
    Exclude(#[from] ignore::Error),
    /// The place of the logs could not be used.
    #[error(transparent)]
    Team(#[from] TeamError),
    /// The store could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Learned patterns could not be read or written.
    #[error(transparent)]
    Knowledge(#[from] KnowledgeError),
}

impl SyncError {
    /// Returns the error of a machine whose name is taken at its place.
    pub(crate) fn name_taken(team: &TeamMembership) -> Self {
        Self::NameTaken { machine: team.machine.clone(), place: describe_place(team) }
    }
}

/// Number of decisions and reviews.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecordCounts {
    /// Decisions about findings.
    pub decisions: usize,
    /// Completed reviews.
    pub reviews: usize,
    /// Lists of learned patterns, one for each programming language.
    pub patterns: usize,
}

impl RecordCounts {
    /// Counts one more record.
    pub fn add(&mut self, record: &TeamRecord) {
        match record {
            TeamRecord::Decision(_) => self.decisions += 1,
            TeamRecord::Review(_) => self.reviews += 1,
            TeamRecord::Patterns(_) => self.patterns += 1,
        }
    }

    /// Returns true if both are zero.
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }
}

/// Outcome of an exchange.
#[derive(Debug, Clone, Default)]
pub struct SyncReport {
    /// Name of the place.
    pub place: String,
    /// Records that were sent.
    pub sent: RecordCounts,
    /// New records of others.
    pub received: RecordCounts,
    /// Decisions of others that changed the status of a finding here.
    pub applied: usize,
    /// Findings about which people disagree.
    pub disputes: usize,
    /// Number of other logs that have records.
    pub logs: usize,
    /// Number of further logs at the place, which are left out because there are too many.
    pub left_out: usize,
    /// Segments that could not be taken in this exchange.
    pub set_aside: Vec<SetAsideSegment>,
    /// Records of types that this version does not know.
    pub unknown: usize,
    /// Decisions and reviews that others could not read and that were not sent, with the reasons.
    pub refused: Vec<String>,
    /// True if the own log had disappeared from its place and was sent again.
    pub restored: bool,
    /// True if the own log has new records that this store has not made: a copy of it has the same name.
    pub copied: bool,
}

impl TeamSync<'_> {
    /// Returns the machine's part in its team.
    ///
    /// # Errors
    ///
    /// If it takes no part, or the store cannot be read.
    pub fn membership(&self) -> Result<TeamMembership, SyncError> {
        let team = self.services.store.team_membership()?.ok_or(SyncError::NotJoined)?;
        match team.left_at {
            Some(_) => Err(SyncError::Left { place: describe_place(&team), machine: team.machine }),
            None => Ok(team),
        }
    }

    /// Returns the person as git knows it.
    pub fn person(&self) -> TeamPerson {
        read_person(&self.services.repo)
    }

    /// Returns the filter of outgoing records. It keeps the secrets that it has found in files, so an exchange uses one filter
    /// for all records.
    fn filter(&self) -> Result<OutgoingFilter<'_>, SyncError> {
        let settings = &self.services.settings.team;
        let filter = OutgoingFilter::new(settings.share, &settings.exclude)?.with_patterns(settings.patterns);
        Ok(filter.with_facts(LocalFacts::new(self.services)))
    }

    /// Returns the records that the next exchange would send, in their order, without changing anything.
    ///
    /// # Errors
    ///
    /// If the machine takes no part in a team, or the store cannot be read.
    pub fn preview(&self) -> Result<Vec<TeamRecord>, SyncError> {
        let team = self.membership()?;
        let progress = self.services.store.team_progress()?;
        let (unsent, _) = self.services.store.own_team_lines_at(progress.sent_bytes)?;
        let filter = self.filter()?;
        let mut records = self.clean_lines(&unsent, &filter)?.records;
        // They are cleaned once more when they leave, from the file in which they wait.
        let own = self.collect_own(&team, &filter, &progress)?.records;
        records.extend(own.into_iter().filter_map(|record| filter.clean_record(record)));
        Ok(records)
    }

    /// Exchanges records with the team.
    ///
    /// # Errors
    ///
    /// If the machine takes no part in a team, the place cannot be used, or the store cannot be read or written. What was
    /// done until then is kept, and the next exchange goes on from there.
    pub fn sync(&self) -> Result<SyncReport, SyncError> {
        self.sync_over(None)
    }

    /// Does the same as [`TeamSync::sync`], over a connection to the team's database if there is one.
    pub(in crate::runner) fn sync_over(&self, connected: Option<&Arc<Database>>) -> Result<SyncReport, SyncError> {
        let team = self.membership()?;
        let store = &self.services.store;
        let Some(_lock) = store.lock_team()? else { return Err(SyncError::Busy) };
        let mut progress = store.team_progress()?;
        let mut prepared = None;
        let done = self.exchange(&team, connected, &mut progress, &mut prepared);
        let now = self.services.ambient.now();
        match &done {
            Ok(_) => {
                progress.failure = None;
                if let Some(prepared) = prepared {
                    progress.synced_at = prepared.progress.synced_at;
                    if progress == prepared.progress {
                        prepared.put_in_place()?;
                        return done;
                    }
                }
                progress.synced_at = Some(now);
            }
            Err(error) => progress.failure = Some(error.describe()),
        }
        match &done {
            // The next exchange can do again what this one has received.
            Ok(report) if report.sent.is_empty() => store.replace_team_progress(&progress)?,
            _ => store.write_team_progress(&progress)?,
        }
        done
    }

    /// Exchanges records. `prepared` becomes the progress of an exchange without anything new, if it may be one.
    fn exchange(
        &self,
        team: &TeamMembership,
        connected: Option<&Arc<Database>>,
        progress: &mut TeamProgress,
        prepared: &mut Option<PreparedProgress>,
    ) -> Result<SyncReport, SyncError> {
        let store = &self.services.store;
        let opening = self.open_place(team, connected)?;
        let mut written = progress.clone();
        if progress.has_unsynced_results {
            self.restore_results(progress)?;
        }
        let filter = self.filter()?;
        let own = self.collect_own(team, &filter, progress)?;
        let reopened = self.list_reopened(&own.records, progress)?;
        if !reopened.is_empty() {
            // They wait until they are compared, also if this exchange is killed or the place is away.
            progress.waiting.extend(reopened.into_iter().map(|finding| (finding, 0)));
            self.write_progress(progress, &mut written)?;
        }
        store.append_own_team_lines(segment::pack_lines(&encode(&own.records)?).concat().as_slice())?;
        (progress.triage_bytes, progress.runs_bytes, progress.patterns) =
            (own.triage_bytes, own.runs_bytes, own.patterns);
        progress.shares_reviews = filter.shares_reviews();
        progress.outgoing_rules = Some(own.outgoing_rules);
        // Without a new record, the next exchange finds the same again if this one is killed.
        if own.records.is_empty() {
            let now = self.services.ambient.now();
            let next = TeamProgress { synced_at: Some(now), failure: None, ..progress.clone() };
            *prepared = Some(store.prepare_team_progress(next)?);
        } else {
            self.write_progress(progress, &mut written)?;
        }
        let (backend, LogList { logs, left_out, has_budget }) = opening.finish(&team.log)?;
        progress.has_budget = has_budget;
        let is_first = progress.own_version.is_empty() && progress.own_received.is_empty();
        if is_first && self.is_log_of_another(&*backend, team, &logs)? {
            return Err(SyncError::name_taken(team));
        }
        let now_ms = self.services.ambient.now().as_millisecond();
        let due = progress.waiting.iter().filter(|(_, from_ms)| **from_ms <= now_ms);
        let decided = due.map(|(finding, _)| finding.clone()).collect();
        let received = ReceivedRecords { decided, ..ReceivedRecords::default() };
        let mut report =
            SyncReport { place: backend.place().to_owned(), refused: own.refused, left_out, ..SyncReport::default() };
        self.receive(&*backend, team, &logs, received, progress, &mut report)?;
        // A send can take long. Without one, the end of the exchange is near.
        if store.has_unsent_team_lines(progress) {
            self.write_progress(progress, &mut written)?;
        }
        let sent = self.send(&*backend, team, logs, &filter, progress, &mut report);
        backend.tidy_up();
        sent?;
        report.disputes = progress.disputes.len();
        report.logs = progress.logs.values().filter(|log| log.records > 0).count();
        Ok(report)
    }

    /// Returns the findings that new records of this machine may give another status than the one that its own lines have given them.
    fn list_reopened(&self, own: &[TeamRecord], progress: &TeamProgress) -> Result<BTreeSet<FindingId>, StoreError> {
        let mut findings = BTreeSet::new();
        if own.iter().all(|record| matches!(record, TeamRecord::Patterns(_))) {
            return Ok(findings);
        }
        let lists = PanelLists::load(&self.services.store, &progress.forgotten)?;
        for record in own {
            match record {
                // Whoever decides with knowledge of both sides ends a dispute; an undo lets the decisions of others stand again. What is
                // said about a report may hold for the finding of a list.
                TeamRecord::Decision(decision)
                    if decision.action == TriageAction::Undo
                        || progress.disputes.contains_key(&decision.finding_id)
                        || lists.reports.has_report(&decision.finding_id) =>
                {
                    findings.insert(decision.finding_id.clone());
                }
                // A list follows its reports by the rule for all machines from now on.
                TeamRecord::Review(review) => {
                    let merged = review.run.outcome.merged_reports.iter().flatten();
                    findings.extend(merged.map(|report| report.finding_id.clone()));
                }
                TeamRecord::Decision(_) | TeamRecord::Patterns(_) => {}
            }
        }
        Ok(findings)
    }

    /// Stores the progress unless it is as it was `written`.
    fn write_progress(&self, progress: &TeamProgress, written: &mut TeamProgress) -> Result<(), StoreError> {
        if progress != written {
            self.services.store.write_team_progress(progress)?;
            written.clone_from(progress);
        }
        Ok(())
    }

    /// Reads what is new in the logs of others, and in the own log if somebody else wrote there.
    fn receive(
        &self,
        backend: &dyn TeamBackend,
        team: &TeamMembership,
        logs: &[LogVersion],
        mut received: ReceivedRecords,
        progress: &mut TeamProgress,
        report: &mut SyncReport,
    ) -> Result<(), SyncError> {
        let is_new = |log: &&LogVersion| {
            if progress.forgotten.contains(&log.name) {
                return false;
            }
            if progress.reader != env!("CARGO_PKG_VERSION") {
                return true;
            }
            match log.name == team.log {
                true => progress.own_received != log.version,
                false => progress.logs.get(&log.name).is_none_or(|known| known.version != log.version),
            }
        };
        let new: Vec<LogVersion> = logs.iter().filter(is_new).cloned().collect();
        if new.is_empty() && received.decided.is_empty() {
            return Ok(());
        }
        for log in &self.fetch_new(backend, new, progress, report)? {
            self.read_log(backend, team, log, progress, &mut received, report)?;
        }
        self.apply_received(team, received, progress, report)
    }

    /// Starts `revdeck sync` as a process of its own, for a user interface.
    ///
    /// # Errors
    ///
    /// If the process cannot be started.
    pub fn start_sync(&self) -> Result<(), RunnerError> {
        let Services { repo, paths, .. } = self.services;
        process::reap(process::spawn_detached(repo, paths, &repo.root(), &["sync"], Stdio::null(), SYNC_LOG)?);
        Ok(())
    }

    /// Appends to the own log what it does not have yet.
    fn send(
        &self,
        backend: &dyn TeamBackend,
        team: &TeamMembership,
        mut logs: Vec<LogVersion>,
        filter: &OutgoingFilter<'_>,
        progress: &mut TeamProgress,
        report: &mut SyncReport,
    ) -> Result<(), SyncError> {
        let store = &self.services.store;
        for _ in 0..MAX_APPEND_TRIES {
            let present = logs.iter().find(|log| log.name == team.log).cloned();
            let moved = present.as_ref().filter(|log| log.version != progress.own_version);
            if let Some(log) = moved {
                backend.fetch_logs(std::slice::from_ref(log))?;
            }
            let is_gone = !progress.own_version.is_empty()
                && match moved {
                    Some(log) => !backend.has_version(log, &progress.own_version)?,
                    None => present.is_none(),
                };
            // Where somebody has deleted the log, or a part of it, this machine has all of it.
            let sent_bytes = if is_gone { 0 } else { progress.sent_bytes };
            report.restored |= is_gone;
            let (unsent, end) = store.own_team_lines_at(sent_bytes)?;
            let OutgoingLines { mut records, held_back } = self.clean_lines(&unsent, filter)?;
            let mut lines = encode(&records)?;
            if let Some(log) = moved {
                // Lines that the log has already do not count as sent.
                let missing = find_missing_lines(backend, log, &lines)?;
                (records, lines) = records.into_iter().zip(lines).filter(|(_, line)| missing.contains(line)).unzip();
            }
            if lines.is_empty() {
                // A version with records that nobody vouches for never becomes the known one.
                let is_known = match moved {
                    Some(log) => backend.is_own(log, &progress.own_version)?,
                    None => true,
                };
                if is_known {
                    progress.own_version = present.map_or_else(String::new, |log| log.version);
                }
                note_held_back(&held_back, sent_bytes, progress);
                progress.sent_bytes = end;
                return Ok(());
            }
            let segments = segment::pack_lines(&lines);
            let base = present.as_ref().map(|log| log.version.as_str());
            match backend.append(&team.log, &segments, base, &progress.own_version)? {
                AppendOutcome::Appended(version) => {
                    records.iter().for_each(|record| report.sent.add(record));
                    // Nothing of others came between what was received and what was appended.
                    if base.is_none_or(|base| base == progress.own_received) {
                        progress.own_received.clone_from(&version);
                    }
                    note_held_back(&held_back, sent_bytes, progress);
                    (progress.sent_bytes, progress.own_version) = (end, version);
                    if !is_gone || base.is_some() {
                        return Ok(());
                    }
                    // It is there now, or it was there all the time.
                    return match backend.list_logs(&team.log)?.logs.iter().any(|log| log.name == team.log) {
                        true => Ok(()),
                        false => Err(hidden_log(backend, team).into()),
                    };
                }
                AppendOutcome::Moved => {
                    logs = backend.list_logs(&team.log)?.logs;
                    if is_gone && base.is_none() && !logs.iter().any(|log| log.name == team.log) {
                        return Err(hidden_log(backend, team).into());
                    }
                }
            }
        }
        let (log, place) = (team.log.clone(), backend.place().to_owned());
        Err(TeamError::Contended { log, place, tries: MAX_APPEND_TRIES }.into())
    }

    fn collect_own(
        &self,
        team: &TeamMembership,
        filter: &OutgoingFilter<'_>,
        progress: &TeamProgress,
    ) -> Result<OwnDecisions, SyncError> {
        own_records::collect(self.services, team, &self.person(), filter, progress)
    }
}

/// Returns the place of a team on one line, without credentials.
fn describe_place(team: &TeamMembership) -> String {
    hide_credentials(&sanitize_line(&team.place))
}

/// Returns the person as the settings of git name them.
pub(in crate::runner) fn read_person(repo: &Repo) -> TeamPerson {
    TeamPerson { name: repo.user_name().unwrap_or_default(), email: repo.user_email().unwrap_or_default() }
}

fn hidden_log(backend: &dyn TeamBackend, team: &TeamMembership) -> TeamError {
    TeamError::HiddenLog { log: team.log.clone(), place: hide_credentials(&sanitize_line(backend.place())) }
}

/// Returns the lines that a fetched log does not have; reads nothing if there are none to look for. Bad segments count as empty: they
/// are set aside where they are received.
fn find_missing_lines(
    backend: &dyn TeamBackend,
    log: &LogVersion,
    lines: &[String],
) -> Result<HashSet<String>, TeamError> {
    let mut missing: HashSet<String> = lines.iter().cloned().collect();
    if missing.is_empty() {
        return Ok(missing);
    }
    backend.read_segments(log, None, &mut |segments| {
        for bytes in segments.into_iter().filter_map(|segment| segment.content.ok()) {
            for line in String::from_utf8_lossy(&bytes).lines() {
                missing.remove(line);
            }
        }
        match missing.is_empty() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    })?;
    Ok(missing)
}

/// Returns the lines of records.
fn encode(records: &[TeamRecord]) -> Result<Vec<String>, StoreError> {
    let lines = records.iter().map(serde_json::to_string).collect::<Result<_, _>>();
    lines.map_err(|source| StoreError::Encode { what: "a record for the team", source })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::git::LogSignature;
    use crate::team::backend::{PageReceiver, ReceivedSegment};

    /// Log of pages with a line each, which counts the pages that are read.
    struct PagedLog {
        pages: Vec<String>,
        read: Cell<usize>,
    }

    impl TeamBackend for PagedLog {
        fn place(&self) -> &str {
            "origin"
        }

        fn list_logs(&self, _: &MachineName) -> Result<LogList, TeamError> {
            Ok(LogList { logs: Vec::new(), left_out: 0, has_budget: false })
        }

        fn fetch_logs(&self, _: &[LogVersion]) -> Result<(), TeamError> {
            Ok(())
        }

        fn read_segments(&self, _: &LogVersion, _: Option<&str>, take: &mut PageReceiver<'_>) -> Result<(), TeamError> {
            for line in &self.pages {
                self.read.set(self.read.get() + 1);
                let segment = ReceivedSegment { name: "000000".to_owned(), content: Ok(line.clone().into_bytes()) };
                if take(vec![segment]).is_break() {
                    break;
                }
            }
            Ok(())
        }

        fn has_version(&self, _: &LogVersion, _: &str) -> Result<bool, TeamError> {
            Ok(true)
        }

        fn log_signature(&self, _: &LogVersion) -> Result<LogSignature, TeamError> {
            Ok(LogSignature::None)
        }

        fn new_signatures(&self, _: &LogVersion, _: &str, _: Option<&str>) -> Result<Vec<LogSignature>, TeamError> {
            Ok(Vec::new())
        }

        fn is_own(&self, _: &LogVersion, _: &str) -> Result<bool, TeamError> {
            Ok(true)
        }

        fn append(&self, _: &MachineName, _: &[Vec<u8>], _: Option<&str>, _: &str) -> Result<AppendOutcome, TeamError> {
            Ok(AppendOutcome::Moved)
        }
    }

    #[test]
    fn a_log_is_read_as_far_as_there_are_lines_to_look_for() {
        let log = LogVersion { name: "ada-1".parse().expect("a name"), version: "1".to_owned() };
        for (wanted, pages, missing) in
            [(&[][..], 0, &[][..]), (&["one"], 1, &[]), (&["one", "two"], 2, &[]), (&["two", "four"], 3, &["four"])]
        {
            let backend = PagedLog { pages: ["one", "two", "three"].map(str::to_owned).to_vec(), read: Cell::new(0) };
            let lines: Vec<String> = wanted.iter().map(|line: &&str| (*line).to_owned()).collect();
            let found = find_missing_lines(&backend, &log, &lines).expect("a readable log");
            let missing: HashSet<String> = missing.iter().map(|line: &&str| (*line).to_owned()).collect();
            assert_eq!((backend.read.get(), found), (pages, missing), "{wanted:?}");
        }
    }
}
