//! Stores what the machine exchanges with its team, in the folder `team`: its own records, the records of other machines,
//! and how far the exchange has come.
//!
//! | file | holds |
//! |---|---|
//! | `membership.json` | name of this machine and place of the logs; while it exists and says so, the machine takes part |
//! | `own.ndjson` | records of this machine, as they are sent; append-only |
//! | `received/<log>.ndjson` | records of another log, each once; append-only |
//! | `places/<hash>.json` | how far the exchange with a place beside the joined one has come |
//! | `set-aside/<log>-<segment>` | starts of segments that could not be taken, the last 50 |
//! | `lock` | held while a process exchanges records |
//!
//! How far the exchange has come stands beside the folder, in `team.json`, where an open cockpit notices it.
//!
//! A log at its place is never the only copy: what was received stays here when it disappears there.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::files::{self, ExistingPolicy, PreparedFile, SyncPolicy};
use super::team_log_state::{LogSignatureState, SetAsideCause};
use super::{OtherTeamPlace, RunLock, SetAsideEntry, Store, StoreError, lines, lock};
use crate::domain::{
    Actor, DecisionId, Disposition, FindingId, FindingStatus, MachineName, RunId, RunRecord, RunStatus, TeamPerson,
    TeamRecord, Time, is_default,
};

/// Begin of the line of a decision.
const DECISION_PREFIX: &str = "{\"type\":\"decision\"";

/// Part that this machine takes in a team.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TeamMembership {
    /// Name of this machine, which stays the same when it leaves and joins again.
    pub machine: MachineName,
    /// Name of the log that it writes: its own name, or that of a shared log.
    pub log: MachineName,
    /// Name of a git remote, URL or path; or the address of a database.
    pub place: String,
    /// Identity of the repository among those that share a database; empty for a git remote.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub project: String,
    /// Time of joining.
    pub joined_at: Time,
    /// Time of leaving; `None` while the machine takes part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_at: Option<Time>,
}

/// How far the exchange with the team has come.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TeamProgress {
    /// Length of `triage.ndjson` up to which own decisions are in `own.ndjson`, in bytes.
    pub triage_bytes: u64,
    /// Length of `runs.ndjson` up to which own reviews are in `own.ndjson`, in bytes.
    pub runs_bytes: u64,
    /// Length of `own.ndjson` up to which it was sent, in bytes.
    pub sent_bytes: u64,
    /// Version of the own log after the last append; empty before the first.
    pub own_version: String,
    /// Version of the own log up to which the records of others in it were received.
    pub own_received: String,
    /// Version of revdeck that read the logs. A newer one reads again what this one has set aside or skipped.
    pub reader: String,
    /// True if reviews leave this machine.
    pub shares_reviews: bool,
    /// Fingerprint of the settings that keep records here; `None` before the first exchange, and from earlier versions. When it
    /// changes, what was kept here is looked for again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outgoing_rules: Option<String>,
    /// Lines of `own.ndjson` that stayed here when their turn to be sent came: first byte, and the byte behind the last one. Sorted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub held_back: Vec<(u64, u64)>,
    /// Hashes of the learned patterns that are in `own.ndjson`, by programming language.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub patterns: BTreeMap<String, String>,
    /// True while results of received runs may not be on the disk yet.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub has_unsynced_results: bool,
    /// True if the team has a budget of a day.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub has_budget: bool,
    /// State of the other logs.
    pub logs: BTreeMap<MachineName, LogProgress>,
    /// Logs that could not be fetched in the last exchange that tried to.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub unfetched: BTreeSet<MachineName>,
    /// Segments that could not be taken, by log and reason.
    pub set_aside: Vec<SetAsideEntry>,
    /// Findings with decisions of others that are too far ahead of this machine's clock, and the time from which on they count,
    /// in milliseconds since 1970. Of many, those whose time comes first; the others follow when that has come. Also findings that the
    /// next exchange compares at once, with the time 0, because of records that this machine has made.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub waiting: BTreeMap<FindingId, i64>,
    /// Findings about which people disagree, with the standing decision and the others.
    pub disputes: BTreeMap<FindingId, Vec<DisputeSide>>,
    /// Logs whose records are not used any more.
    pub forgotten: Vec<MachineName>,
    /// Time of the last exchange that succeeded.
    pub synced_at: Option<Time>,
    /// Failure of the last exchange, on one line; `None` if it succeeded.
    pub failure: Option<String>,
}

/// Side of people who disagree about a finding. The first one of a finding is the decision that stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DisputeSide {
    /// Name of the person.
    pub person: String,
    /// Machine of the person.
    pub machine: MachineName,
    /// Status that the person gave.
    pub status: FindingStatus,
    /// Reason; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Time of the decision by the clock of its machine.
    pub at: Time,
}

/// State of another machine's log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LogProgress {
    /// Version up to which the log was read.
    pub version: String,
    /// Number of records that were received.
    pub records: u64,
    /// Time at which it last had something new.
    pub received_at: Option<Time>,
    /// Signature of the log.
    pub signed: LogSignatureState,
}

/// Segment of a log that could not be taken, or records of it that do not count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetAsideSegment {
    /// Log that it stands in.
    pub log: MachineName,
    /// Name of the segment, or words for the records.
    pub segment: String,
    /// Reason on one line.
    pub reason: String,
    /// Class of the reason, if something follows from it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cause: SetAsideCause,
    /// Time at which it was set aside.
    pub at: Time,
}

/// Records of this machine that the team does not have yet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UnsentRecords {
    /// Number of decisions.
    pub decisions: usize,
    /// Number of reviews.
    pub reviews: usize,
}

/// State of the exchange with the team, for a header.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TeamStatus {
    /// Time of joining: another one after each `revdeck team join`.
    pub joined_at: Option<Time>,
    /// Time of the last exchange that succeeded.
    pub synced_at: Option<Time>,
    /// True if the last exchange failed.
    pub has_failed: bool,
    /// Number of records that the team does not have yet.
    pub to_send: usize,
    /// Findings about which people disagree.
    pub disputed: HashSet<String>,
}

impl UnsentRecords {
    /// Returns the number of all records.
    pub fn total(self) -> usize {
        self.decisions + self.reviews
    }
}

/// Progress of an exchange that is on the disk, and not valid yet.
pub struct PreparedProgress {
    /// The progress.
    pub progress: TeamProgress,
    file: PreparedFile,
}

impl PreparedProgress {
    /// Makes the progress valid. A power failure may bring back the progress before it.
    ///
    /// # Errors
    /// Returns an error when the file cannot be renamed.
    pub fn put_in_place(self) -> Result<(), StoreError> {
        self.file.put_in_place()
    }
}

fn encode_team_file(content: &impl Serialize) -> Result<Vec<u8>, StoreError> {
    let mut json = serde_json::to_vec_pretty(content)
        .map_err(|source| StoreError::Encode { what: "the exchange with the team", source })?;
    json.push(b'\n');
    Ok(json)
}

impl Store {
    /// Returns the state of the exchange with the team; `None` if this machine takes no part in one.
    ///
    /// # Errors
    /// Returns an error when the store cannot be read.
    pub fn team_status(&self) -> Result<Option<TeamStatus>, StoreError> {
        let Some(team) = self.active_membership()? else { return Ok(None) };
        let progress = self.team_progress()?;
        Ok(Some(TeamStatus {
            joined_at: Some(team.joined_at),
            synced_at: progress.synced_at,
            has_failed: progress.failure.is_some(),
            to_send: self.count_unsent(&progress)?.total(),
            disputed: progress.disputes.keys().map(FindingId::to_string).collect(),
        }))
    }

    /// Returns the findings about which people of the team disagree, with their sides; none if this machine takes no part.
    ///
    /// # Errors
    /// Returns an error when the store cannot be read.
    pub fn team_disputes(&self) -> Result<BTreeMap<FindingId, Vec<DisputeSide>>, StoreError> {
        match self.active_membership()? {
            Some(_) => Ok(self.team_progress()?.disputes),
            None => Ok(BTreeMap::new()),
        }
    }

    /// Lets the next exchange read `runs.ndjson` from its start, because the file was rewritten. A failure is only logged: a
    /// shorter file is noticed anyway.
    pub(super) fn forget_sent_runs(&self) {
        let reset = || -> Result<(), StoreError> {
            match read_json::<TeamProgress>(&self.team_progress_path())? {
                Some(progress) if progress.runs_bytes > 0 => {
                    let progress = TeamProgress { runs_bytes: 0, ..progress };
                    self.write_team_file(&self.team_progress_path(), &progress)
                }
                _ => Ok(()),
            }
        };
        if let Err(error) = reset() {
            tracing::warn!(%error, "the next exchange with the team does not look at rewritten runs");
        }
    }

    fn team_path(&self, name: &str) -> PathBuf {
        self.root.join("team").join(name)
    }

    fn team_progress_path(&self) -> PathBuf {
        self.root.join(super::TEAM_FILE)
    }

    fn received_path(&self, log: &MachineName) -> PathBuf {
        self.root.join("team").join("received").join(format!("{log}.ndjson"))
    }

    /// Takes the right to exchange records; `None` while another process does.
    ///
    /// # Errors
    /// Returns an error when the lock file cannot be created or locked.
    pub fn lock_team(&self) -> Result<Option<RunLock>, StoreError> {
        self.prepare_for_write()?;
        files::make_folder(&self.root.join("team"))?;
        lock::lock_run(&self.team_path("lock"))
    }

    /// Returns the part that this machine takes or took in a team; `None` if it never joined one.
    ///
    /// # Errors
    /// Returns an error when the file cannot be read or is damaged.
    pub fn team_membership(&self) -> Result<Option<TeamMembership>, StoreError> {
        let mut membership: Option<TeamMembership> = read_json(&self.team_path("membership.json"))?;
        if let (Some(membership), Some(place)) = (&mut membership, &self.team_place) {
            membership.place.clone_from(place);
            membership.project.clear();
        }
        Ok(membership)
    }

    /// Returns the part that this machine takes in a team; `None` if it never joined one, or has left it.
    ///
    /// # Errors
    /// Returns an error when the file cannot be read or is damaged.
    pub fn active_membership(&self) -> Result<Option<TeamMembership>, StoreError> {
        Ok(self.team_membership()?.filter(|team| team.left_at.is_none()))
    }

    /// Stores the part that this machine takes in a team.
    ///
    /// # Errors
    /// Returns an error when the file cannot be written.
    pub fn write_team_membership(&self, membership: &TeamMembership) -> Result<(), StoreError> {
        self.write_team_file(&self.team_path("membership.json"), membership)
    }

    /// Returns how far the exchange with the team has come.
    ///
    /// # Errors
    /// Returns an error when the file cannot be read or is damaged.
    pub fn team_progress(&self) -> Result<TeamProgress, StoreError> {
        let progress: TeamProgress = read_json(&self.team_progress_path())?.unwrap_or_default();
        match &self.team_place {
            None => Ok(progress),
            Some(place) => Ok(progress.seen_at(self.other_team_place(place)?.unwrap_or_default().progress)),
        }
    }

    /// Stores how far the exchange with the team has come.
    ///
    /// # Errors
    /// Returns an error when the file cannot be written.
    pub fn write_team_progress(&self, progress: &TeamProgress) -> Result<(), StoreError> {
        let Some(place) = &self.team_place else {
            return self.write_team_file(&self.team_progress_path(), progress);
        };
        self.write_other_place(&self.build_other_place(place, progress)?)?;
        self.write_common_progress(progress)
    }

    /// Stores in `team.json` what an exchange with a place beside the joined one has found out for all places.
    fn write_common_progress(&self, progress: &TeamProgress) -> Result<(), StoreError> {
        let joined: TeamProgress = read_json(&self.team_progress_path())?.unwrap_or_default();
        let next = progress.clone().at_place_of(joined.clone());
        if next == joined { Ok(()) } else { self.write_team_file(&self.team_progress_path(), &next) }
    }

    /// Does the same as [`Store::write_team_progress`], except that a power failure may bring back the progress before it. The
    /// caller must hold the lock of [`Store::lock_team`].
    ///
    /// # Errors
    /// Returns an error when the file cannot be written.
    pub fn replace_team_progress(&self, progress: &TeamProgress) -> Result<(), StoreError> {
        match &self.team_place {
            Some(_) => self.write_team_progress(progress),
            None => self.prepare_team_progress(progress.clone())?.put_in_place(),
        }
    }

    /// Returns true if `own.ndjson` has lines that were not sent yet.
    pub fn has_unsent_team_lines(&self, progress: &TeamProgress) -> bool {
        files::length_at(&self.team_path("own.ndjson")) > progress.sent_bytes
    }

    /// Returns the file of a place beside the joined one with another progress.
    fn build_other_place(&self, place: &str, progress: &TeamProgress) -> Result<OtherTeamPlace, StoreError> {
        let before = self.other_team_place(place)?.unwrap_or_default();
        let progress = TeamProgress::default().at_place_of(progress.clone());
        Ok(OtherTeamPlace { place: place.to_owned(), progress, ..before })
    }

    /// Writes the progress that becomes valid if the place has nothing new, while this machine waits for the answer. The caller
    /// must hold the lock of [`Store::lock_team`] until it is put in place or dropped.
    ///
    /// # Errors
    /// Returns an error when the file cannot be written.
    pub fn prepare_team_progress(&self, progress: TeamProgress) -> Result<PreparedProgress, StoreError> {
        self.prepare_for_write()?;
        let file = match &self.team_place {
            Some(place) => {
                self.write_common_progress(&progress)?;
                let path = self.team_place_path(place);
                files::make_folder(path.parent().unwrap_or(&self.root))?;
                PreparedFile::write(&path, &encode_team_file(&self.build_other_place(place, &progress)?)?)?
            }
            None => PreparedFile::write(&self.team_progress_path(), &encode_team_file(&progress)?)?,
        };
        Ok(PreparedProgress { progress, file })
    }

    pub(super) fn write_team_file(&self, path: &Path, content: &impl Serialize) -> Result<(), StoreError> {
        self.prepare_for_write()?;
        files::write_atomically(path, &encode_team_file(content)?, ExistingPolicy::Replace)
    }

    /// Returns the lines of this machine's records from byte `from` on, and the length of the file. A torn last line is left
    /// out.
    ///
    /// # Errors
    /// Returns an error when the file cannot be read.
    pub fn own_team_lines(&self, from: u64) -> Result<(Vec<String>, u64), StoreError> {
        let (lines, end) = self.own_team_lines_at(from)?;
        Ok((lines.into_iter().map(|(_, line)| line).collect(), end))
    }

    /// Does the same as [`Store::own_team_lines`]; each line has the offset of its first byte.
    ///
    /// # Errors
    /// Returns an error when the file cannot be read.
    pub fn own_team_lines_at(&self, from: u64) -> Result<(Vec<(u64, String)>, u64), StoreError> {
        let mut all = Vec::new();
        let path = self.team_path("own.ndjson");
        let end = self.read_team_lines(&path, from, |place, line| all.push((place, line.into_owned())))?;
        Ok((all, end))
    }

    /// Returns the authors under which decisions of this machine about a finding were sent, or will be.
    ///
    /// # Errors
    /// Returns an error when the file cannot be read.
    pub(super) fn sent_authors(&self, id: &FindingId) -> Result<HashMap<DecisionId, TeamPerson>, StoreError> {
        let mut authors = HashMap::new();
        self.read_team_lines(&self.team_path("own.ndjson"), 0, |_, line| {
            // Lines of reviews are long, and need no parsing.
            if line.starts_with(DECISION_PREFIX)
                && line.contains(id.as_str())
                && let Ok(TeamRecord::Decision(decision)) = serde_json::from_str(&line)
                && decision.finding_id == *id
            {
                authors.insert(decision.id, decision.person);
            }
        })?;
        Ok(authors)
    }

    /// Calls `visit` with each line of the records received from a log. A torn last line is left out.
    ///
    /// # Errors
    /// Returns an error when the file cannot be read.
    pub fn visit_received_team_lines(&self, log: &MachineName, mut visit: impl FnMut(&str)) -> Result<(), StoreError> {
        self.read_team_lines(&self.received_path(log), 0, |_, line| visit(&line)).map(drop)
    }

    /// Calls `visit` with each line from byte `from` on and its offset, and returns the length of the file.
    fn read_team_lines(
        &self,
        path: &Path,
        from: u64,
        mut visit: impl FnMut(u64, Cow<'_, str>),
    ) -> Result<u64, StoreError> {
        let Some(file) = files::open_read(path)? else { return Ok(0) };
        lines::read_forwards(&file, from, |place, line| visit(place, String::from_utf8_lossy(line)))
            .map_err(StoreError::io("read", path))
    }

    /// Returns the names of the logs from which something was received, sorted.
    ///
    /// # Errors
    /// Returns an error when the folder cannot be listed.
    pub fn received_team_logs(&self) -> Result<Vec<MachineName>, StoreError> {
        let folder = self.root.join("team").join("received");
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(StoreError::io("list", &folder)(error)),
        };
        let mut logs: Vec<MachineName> = entries
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.strip_suffix(".ndjson")?.parse().ok())
            .collect();
        logs.sort();
        Ok(logs)
    }

    /// Appends records of this machine, synced. The caller must hold the lock of [`Store::lock_team`].
    ///
    /// # Errors
    /// Returns an error when the file cannot be written.
    pub fn append_own_team_lines(&self, lines: &[u8]) -> Result<(), StoreError> {
        match lines.is_empty() {
            true => Ok(()),
            false => files::append(&self.team_path("own.ndjson"), lines, SyncPolicy::Now),
        }
    }

    /// Removes the records of this machine, so that they are made anew under another name. The caller must hold the lock of
    /// [`Store::lock_team`].
    ///
    /// # Errors
    /// Returns an error when the file cannot be removed.
    pub fn remove_own_team_lines(&self) -> Result<(), StoreError> {
        files::remove(&self.team_path("own.ndjson"))
    }

    /// Appends records received from a log, synced. The caller must hold the lock of [`Store::lock_team`].
    ///
    /// # Errors
    /// Returns an error when the file cannot be written.
    pub fn append_received_team_lines(&self, log: &MachineName, lines: &[u8]) -> Result<(), StoreError> {
        if lines.is_empty() {
            return Ok(());
        }
        let path = self.received_path(log);
        files::make_folder(path.parent().unwrap_or(&self.root))?;
        files::append(&path, lines, SyncPolicy::Now)
    }

    /// Removes what was received from a log. Decisions and reviews that came from it stay in the store.
    ///
    /// # Errors
    /// Returns an error when the file cannot be removed.
    pub fn remove_received_team_lines(&self, log: &MachineName) -> Result<(), StoreError> {
        files::remove(&self.received_path(log))
    }

    /// Syncs all that was written, and returns the ids of received runs whose results are missing or empty, because the
    /// machine went down before they were on the disk.
    ///
    /// # Errors
    /// Returns an error when the store cannot be read.
    pub fn find_lost_team_results(&self) -> Result<HashSet<RunId>, StoreError> {
        files::sync_file_system(&self.root);
        let view = self.view()?;
        let mut lost = HashSet::new();
        for index in 0..view.run_count() {
            let row = view.run(index);
            let is_there = std::fs::metadata(self.output_path(row.id)).is_ok_and(|seen| seen.len() > 0);
            if row.status == RunStatus::Completed
                && !is_there
                && let Ok(id) = row.id.parse()
            {
                lost.insert(id);
            }
        }
        Ok(lost)
    }

    /// Returns the ids of this machine's own runs that ended behind byte `from` of `runs.ndjson`, oldest first, and the length
    /// of the file. A run that was received, that reviews a fix, or that is a member of a panel is not among them.
    ///
    /// # Errors
    /// Returns an error when the file cannot be read.
    pub fn completed_runs_since(&self, from: u64) -> Result<(Vec<RunId>, u64), StoreError> {
        #[derive(Deserialize)]
        struct RunEndFields {
            run_id: RunId,
            status: RunStatus,
            #[serde(default)]
            scope_hash: String,
            #[serde(default)]
            team: Option<serde::de::IgnoredAny>,
            #[serde(default)]
            member_of: Option<serde::de::IgnoredAny>,
        }
        let path = self.runs_path();
        let Some(file) = files::open_read(&path)? else { return Ok((Vec::new(), 0)) };
        // A repair or a compaction may have made the file shorter.
        let length = files::length(&file).map_err(StoreError::io("read the length of", &path))?;
        let from = if from <= length { from } else { 0 };
        let mut ended: Vec<RunId> = Vec::new();
        let mut seen = HashSet::new();
        let end = lines::read_forwards(&file, from, |_, line| {
            let Ok(run) = serde_json::from_slice::<RunEndFields>(line) else { return };
            // What a panel has merged travels with the panel's own run.
            let is_own = run.team.is_none()
                && run.member_of.is_none()
                && !run.scope_hash.starts_with(RunRecord::FIX_SCOPE_PREFIX);
            if run.status == RunStatus::Completed && is_own && seen.insert(run.run_id.clone()) {
                ended.push(run.run_id);
            }
        })
        .map_err(StoreError::io("read", &path))?;
        Ok((ended, end))
    }

    /// Counts the records of this machine that the team does not have yet, as far as `progress` says. A run that was sent and
    /// has got a remark since counts again.
    ///
    /// # Errors
    /// Returns an error when the store cannot be read.
    pub fn count_unsent(&self, progress: &TeamProgress) -> Result<UnsentRecords, StoreError> {
        let (lines, _) = self.own_team_lines(progress.sent_bytes)?;
        let is_decision = |line: &&String| line.contains("\"type\":\"decision\"");
        let mut unsent = UnsentRecords { decisions: lines.iter().filter(is_decision).count(), reviews: 0 };
        unsent.reviews = lines.len() - unsent.decisions;
        let path = self.triage_path();
        if let Some(file) = files::open_read(&path)? {
            lines::read_forwards(&file, progress.triage_bytes, |_, line| {
                if let Ok(line) = serde_json::from_slice::<Disposition>(line) {
                    unsent.decisions += usize::from(line.team.is_none() && line.actor != Actor::Engine);
                }
            })
            .map_err(StoreError::io("read", &path))?;
        }
        if progress.shares_reviews {
            unsent.reviews += self.completed_runs_since(progress.runs_bytes)?.0.len();
        }
        Ok(unsent)
    }
}

pub(super) fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<Option<T>, StoreError> {
    let Some(bytes) = files::read(path)? else { return Ok(None) };
    serde_json::from_slice(&bytes).map(Some).map_err(|source| {
        StoreError::io("understand", path)(std::io::Error::new(std::io::ErrorKind::InvalidData, source))
    })
}
