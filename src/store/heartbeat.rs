//! Reads and writes `events/<run_id>.pulse`, the current activity of a run's worker, which is too short-lived for the
//! journal.
//!
//! Invariants:
//! - A reader never waits and never sees a partial heartbeat; losing a heartbeat loses no data.
//! - While bytes arrive, a writer writes at most five times a second.
//! - A failed write never ends a review.

use std::io::{ErrorKind, Write};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::files::{self, ExistingPolicy, SyncPolicy};
use super::{Store, StoreError, StoreView, check};
use crate::domain::{RunId, Time, Usage, text};

/// Activity of a working run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum HeartbeatState {
    /// The worker builds the next request.
    Preparing,
    /// The request was sent; no byte of the answer has arrived.
    Waiting,
    /// The answer is arriving.
    Receiving,
    /// The worker runs tools for the model.
    Tools,
    /// The provider asked to wait, or a failed request will be sent again.
    BackingOff {
        /// A single line, such as "rate limited".
        reason: String,
        /// Time of the next request.
        until: Time,
    },
    /// A person paused the run.
    Paused,
    /// Another machine of the team reviews the same.
    Elsewhere {
        /// Name of the machine, a single line.
        machine: String,
    },
}

/// Current activity and progress of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// Number of the turn, from 1; 0 before the first turn.
    pub turn: u32,
    /// Activity of the worker.
    #[serde(flatten)]
    pub state: HeartbeatState,
    /// Start time of the state.
    pub since: Time,
    /// Arrival time of the last bytes of this turn's answer.
    pub last_byte_at: Option<Time>,
    /// Number of bytes of this turn's answer so far.
    pub bytes: u64,
    /// Last part of this turn's answer, at most [`Heartbeat::MAX_TAIL_BYTES`] bytes, sanitized for a terminal.
    pub tail: String,
    /// Cost of the run so far, in US dollars.
    pub cost: f64,
    /// Token usage of the run so far.
    pub tokens: Usage,
}

impl Heartbeat {
    /// Length limit of [`Heartbeat::tail`] in bytes.
    pub const MAX_TAIL_BYTES: usize = 1024;
    /// Size limit of the file in bytes; revdeck does not write larger files.
    const MAX_FILE_BYTES: u64 = 16 * 1024;

    /// Returns the time of the worker's last sign of life as seen at `now`. A worker that waits on purpose, because it
    /// is paused or backs off until a time, shows signs of life all the time.
    pub fn last_sign_of_life(&self, now: Time) -> Time {
        let moved = self.last_byte_at.map_or(self.since, |byte| byte.max(self.since));
        match &self.state {
            HeartbeatState::Paused | HeartbeatState::Elsewhere { .. } => now,
            HeartbeatState::BackingOff { until, .. } => moved.max(now.min(*until)),
            HeartbeatState::Preparing | HeartbeatState::Waiting | HeartbeatState::Receiving | HeartbeatState::Tools => {
                moved
            }
        }
    }

    fn parse(json: &[u8]) -> Option<Self> {
        let mut pulse: Self = serde_json::from_slice(json).ok()?;
        pulse.tail = last_bytes(&text::sanitize_lines(&pulse.tail, 1)).to_owned();
        Some(pulse)
    }
}

/// Returns the last [`Heartbeat::MAX_TAIL_BYTES`] bytes of a text, starting at a character boundary.
fn last_bytes(text: &str) -> &str {
    let mut from = text.len().saturating_sub(Heartbeat::MAX_TAIL_BYTES);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    &text[from..]
}

impl Store {
    pub(super) fn heartbeat_path(&self, id: &str) -> PathBuf {
        self.root.join("events").join(format!("{id}.pulse"))
    }

    /// Returns the heartbeat of a run; `None` when the file is missing, too large or not valid.
    pub fn heartbeat(&self, run: &RunId) -> Option<Heartbeat> {
        let path = self.heartbeat_path(run.as_str());
        let plain = std::fs::symlink_metadata(&path)
            .is_ok_and(|file| file.is_file() && file.len() <= Heartbeat::MAX_FILE_BYTES);
        if !plain {
            return None;
        }
        Heartbeat::parse(&std::fs::read(&path).ok()?)
    }

    /// Returns the heartbeats of the given runs with their ids. Files left by killed workers are ignored.
    pub fn heartbeats(&self, runs: &[RunId]) -> Vec<(String, Heartbeat)> {
        let live = |run: &&RunId| self.is_live(run).unwrap_or(false);
        let beating = |run: &RunId| Some((run.as_str().to_owned(), self.heartbeat(run)?));
        runs.iter().filter(live).filter_map(beating).collect()
    }

    /// Starts the heartbeat of a run and replaces the file of an earlier worker. The caller must hold the run's lock.
    pub fn start_heartbeat(&self, run: &RunId, now: Time) -> HeartbeatWriter {
        let pulse = Heartbeat {
            turn: 0,
            state: HeartbeatState::Preparing,
            since: now,
            last_byte_at: None,
            bytes: 0,
            tail: String::new(),
            cost: 0.0,
            tokens: Usage::default(),
        };
        let mut writer = HeartbeatWriter {
            path: self.heartbeat_path(run.as_str()),
            heartbeat: pulse,
            written_at: None,
            is_dirty: true,
        };
        writer.write(now);
        writer
    }

    /// Returns the path of the log of the texts that a run's worker is parsing. Its folder may be missing. The caller
    /// must hold the run's lock.
    pub fn parse_log_path(&self, run: &RunId) -> PathBuf {
        self.root.join("locks").join(format!("{run}.parsing"))
    }

    /// Lists the heartbeats and parse logs of dead workers, for runs that have ended or are unknown, with their sizes in
    /// bytes.
    pub(super) fn stale_side_files(&self, view: &StoreView) -> Result<Vec<(PathBuf, u64)>, StoreError> {
        let mut left = Vec::new();
        let files = [check::list_files(&self.root.join("events"))?, check::list_files(&self.root.join("locks"))?];
        for path in files.into_iter().flatten() {
            if path.extension().is_none_or(|extension| extension != "pulse" && extension != "parsing") {
                continue;
            }
            let stem = path.file_stem().and_then(|stem| stem.to_str());
            let Some(run) = stem.and_then(|stem| stem.parse::<RunId>().ok()) else { continue };
            let ended = view.run_index(run.as_str()).is_none_or(|index| view.run(index).status.is_terminal());
            if ended && !self.is_live(&run)? {
                let bytes = std::fs::symlink_metadata(&path).map_or(0, |file| file.len());
                left.push((path, bytes));
            }
        }
        Ok(left)
    }
}

/// Writer of a run's heartbeat, held by the run's worker. Dropping it removes the file.
#[derive(Debug)]
pub struct HeartbeatWriter {
    path: PathBuf,
    heartbeat: Heartbeat,
    written_at: Option<Time>,
    /// True when the file lacks the latest changes.
    is_dirty: bool,
}

impl HeartbeatWriter {
    /// Minimum time in milliseconds between two writes in the same state.
    pub const MIN_WRITE_INTERVAL_MS: i64 = 200;

    /// Starts a turn: the worker builds its request.
    pub fn begin_turn(&mut self, now: Time, turn: u32) {
        self.heartbeat.turn = turn;
        self.clear_answer();
        self.change_state(now, HeartbeatState::Preparing);
    }

    /// Sets the state of the run. The data of the answer is cleared when a request is sent, also when it is sent again.
    pub fn set_state(&mut self, now: Time, state: HeartbeatState) {
        if state == self.heartbeat.state {
            return self.tick(now);
        }
        if state == HeartbeatState::Waiting {
            self.clear_answer();
        }
        self.change_state(now, state);
    }

    /// Adds the number of bytes that arrived for the answer.
    pub fn add_received_bytes(&mut self, now: Time, bytes: usize) {
        self.heartbeat.bytes = self.heartbeat.bytes.saturating_add(bytes as u64);
        self.heartbeat.last_byte_at = Some(now);
        self.is_dirty = true;
        self.set_state(now, HeartbeatState::Receiving);
    }

    /// Appends text of the answer. The text is untrusted and may contain any characters.
    pub fn append_text(&mut self, now: Time, text: &str) {
        self.heartbeat.tail.push_str(&text::sanitize_lines(last_bytes(text), 1));
        self.heartbeat.tail = last_bytes(&self.heartbeat.tail).to_owned();
        self.is_dirty = true;
        self.tick(now);
    }

    /// Sets the cost of the run so far, in US dollars and tokens.
    pub fn set_spending(&mut self, now: Time, cost: f64, tokens: Usage) {
        (self.heartbeat.cost, self.heartbeat.tokens) = (cost, tokens);
        self.is_dirty = true;
        self.tick(now);
    }

    /// Writes pending changes if the minimum interval has passed. The worker calls it regularly, so that the last bytes
    /// before a silence are shown.
    pub fn tick(&mut self, now: Time) {
        let due = self.written_at.is_none_or(|at| {
            // A clock that goes backwards must not delay writes.
            !(0..Self::MIN_WRITE_INTERVAL_MS).contains(&now.as_millisecond().saturating_sub(at.as_millisecond()))
        });
        if self.is_dirty && due {
            self.write(now);
        }
    }

    fn clear_answer(&mut self) {
        (self.heartbeat.bytes, self.heartbeat.last_byte_at) = (0, None);
        self.heartbeat.tail.clear();
    }

    fn change_state(&mut self, now: Time, state: HeartbeatState) {
        (self.heartbeat.state, self.heartbeat.since) = (state, now);
        self.write(now);
    }

    fn write(&mut self, now: Time) {
        (self.written_at, self.is_dirty) = (Some(now), false);
        let written = serde_json::to_vec(&self.heartbeat)
            .map_err(|source| StoreError::Encode { what: "the pulse of a run", source })
            .and_then(|json| {
                files::write_beside(&self.path, ExistingPolicy::Replace, SyncPolicy::Later, |file| {
                    file.write_all(&json)
                })
            });
        if let Err(error) = written {
            tracing::debug!(%error, "the pulse of a run cannot be written");
        }
    }
}

impl Drop for HeartbeatWriter {
    fn drop(&mut self) {
        match std::fs::remove_file(&self.path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                tracing::debug!(path = %self.path.display(), %error, "the pulse of a run cannot be removed");
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::RepoInfo;

    fn store(folder: &tempfile::TempDir) -> (Store, RunId) {
        let info = RepoInfo { version: 1, key: "k".into(), name: "n".into(), common_dir: "/n".into() };
        let store = Store::open(folder.path(), info).expect("a store");
        (store, format!("ar_{:026}", 1).parse().expect("an id"))
    }

    fn at(ms: i64) -> Time {
        Time::from_millisecond(1_772_625_600_000 + ms).expect("a time")
    }

    #[test]
    fn a_thousand_chunks_a_second_are_five_writes_and_nothing_is_lost() {
        let folder = tempfile::tempdir().expect("a folder");
        let (store, run) = store(&folder);
        let mut writer = store.start_heartbeat(&run, at(0));
        writer.begin_turn(at(0), 7);
        writer.set_state(at(0), HeartbeatState::Waiting);
        let mut seen: Vec<u64> = Vec::new();
        for ms in 1..=3_000 {
            writer.add_received_bytes(at(ms), 12);
            writer.append_text(at(ms), "ab ");
            let bytes = store.heartbeat(&run).expect("a pulse").bytes;
            if seen.last() != Some(&bytes) {
                seen.push(bytes);
            }
        }
        // The first byte changes the state; after that there are five writes per second.
        assert_eq!(seen.len(), 1 + 14, "{seen:?}");
        assert_eq!(seen[0], 12, "the first byte shows at once");
        writer.tick(at(3_000));
        assert_ne!(store.heartbeat(&run).map(|pulse| pulse.bytes), Some(36_000), "too early");
        writer.tick(at(3_001));
        let pulse = store.heartbeat(&run).expect("a pulse");
        assert_eq!((pulse.turn, pulse.bytes, pulse.last_byte_at), (7, 36_000, Some(at(3_000))));
        assert_eq!((pulse.state, pulse.since), (HeartbeatState::Receiving, at(1)));
        assert!(pulse.tail.len() <= Heartbeat::MAX_TAIL_BYTES && pulse.tail.ends_with("ab "), "{}", pulse.tail.len());
        drop(writer);
        assert_eq!(store.heartbeat(&run), None, "it goes with its writer");
    }

    #[test]
    fn a_change_of_state_shows_at_once_and_a_new_request_forgets_the_answer() {
        let folder = tempfile::tempdir().expect("a folder");
        let (store, run) = store(&folder);
        let mut writer = store.start_heartbeat(&run, at(0));
        let limited = HeartbeatState::BackingOff { reason: "rate limited".into(), until: at(12_000) };
        for (ms, state) in [
            (1, HeartbeatState::Waiting),
            (2, limited.clone()),
            (3, HeartbeatState::Waiting),
            (4, HeartbeatState::Tools),
            (5, HeartbeatState::Paused),
        ] {
            writer.add_received_bytes(at(ms), 5);
            writer.set_state(at(ms), state.clone());
            let pulse = store.heartbeat(&run).expect("a pulse");
            assert_eq!((&pulse.state, pulse.since), (&state, at(ms)));
            if state == HeartbeatState::Waiting {
                assert_eq!((pulse.bytes, pulse.last_byte_at, pulse.tail.as_str()), (0, None, ""));
            }
        }
        // A clock that is set back delays nothing.
        writer.add_received_bytes(at(6), 5);
        writer.add_received_bytes(at(-90_000), 5);
        assert_eq!(store.heartbeat(&run).map(|pulse| pulse.last_byte_at), Some(Some(at(-90_000))));
    }

    #[test]
    fn a_sign_of_life_is_a_byte_a_change_of_state_or_a_wait_on_purpose() {
        let waits = |until| HeartbeatState::BackingOff { reason: "rate limited".into(), until: at(until) };
        // State, time of its start, time of the last byte, and the last sign of life at 900,000 ms.
        for (state, since, byte, sign) in [
            (HeartbeatState::Waiting, 10_000, None, 10_000),
            (HeartbeatState::Receiving, 10_000, Some(899_000), 899_000),
            (HeartbeatState::Tools, 20_000, Some(10_000), 20_000),
            (HeartbeatState::Paused, 10_000, None, 900_000),
            (waits(950_000), 10_000, None, 900_000),
            (waits(30_000), 10_000, None, 30_000),
        ] {
            let pulse = Heartbeat {
                turn: 1,
                state: state.clone(),
                since: at(since),
                last_byte_at: byte.map(at),
                bytes: 0,
                tail: String::new(),
                cost: 0.0,
                tokens: Usage::default(),
            };
            assert_eq!(pulse.last_sign_of_life(at(900_000)), at(sign), "{state:?}");
        }
    }

    #[test]
    fn the_tail_is_the_end_of_what_was_said_and_harmless() {
        let folder = tempfile::tempdir().expect("a folder");
        let (store, run) = store(&folder);
        let mut writer = store.start_heartbeat(&run, at(0));
        writer.append_text(at(300), &"漢".repeat(5_000));
        writer.append_text(at(600), "\u{1b}[2J the end\u{202e}\n");
        let tail = store.heartbeat(&run).expect("a pulse").tail;
        assert!(tail.len() <= Heartbeat::MAX_TAIL_BYTES && tail.ends_with("\u{fffd}[2J the end\u{fffd}\n"), "{tail:?}");
        assert!(tail.starts_with('漢'));
        assert!(!tail.chars().any(|c| c != '\n' && text::is_unsafe(c)));
    }

    #[test]
    fn what_is_torn_foreign_or_too_large_is_no_pulse() {
        let folder = tempfile::tempdir().expect("a folder");
        let (store, run) = store(&folder);
        drop(store.start_heartbeat(&run, at(0)));
        let path = store.heartbeat_path(run.as_str());
        for bytes in
            [&b""[..], b"{\"turn\":7,\"state\":\"wai", b"[]", b"{\"turn\":1,\"state\":\"sleeping\"}", &[b' '; 20_000]]
        {
            std::fs::write(&path, bytes).expect("written");
            assert_eq!(store.heartbeat(&run), None, "{:?}", &bytes[..bytes.len().min(30)]);
        }
        std::fs::remove_file(&path).expect("removed");
        std::fs::create_dir(&path).expect("a folder in its place");
        assert_eq!(store.heartbeat(&run), None);
        // A failed write stops no caller.
        let mut writer = store.start_heartbeat(&run, at(0));
        writer.set_state(at(1), HeartbeatState::Tools);
    }

    #[test]
    fn words_of_a_newer_revdeck_are_no_pulse_and_more_keys_do_no_harm() {
        let json = |state: &str| {
            format!(
                "{{\"turn\":2,\"state\":\"{state}\",\"since\":\"2026-03-04T12:00:00Z\",\"last_byte_at\":null,\"bytes\":0,\
                 \"tail\":\"\\u001b[2J{}\",\"cost\":0.5,\"tokens\":{{\"input\":1}},\"mood\":\"good\"}}",
                "x".repeat(3_000)
            )
        };
        assert_eq!(Heartbeat::parse(json("dreaming").as_bytes()), None);
        let pulse = Heartbeat::parse(json("waiting").as_bytes()).expect("a pulse");
        assert_eq!((pulse.turn, pulse.state, pulse.tokens.input), (2, HeartbeatState::Waiting, 1));
        assert_eq!(pulse.tail.len(), Heartbeat::MAX_TAIL_BYTES);
    }
}
