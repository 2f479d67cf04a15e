//! `events/<run_id>.pulse`: what the worker of a run is doing this moment, which is not worth a line of the journal.
//!
//! Invariants: a reader never waits and never sees half a pulse; losing one loses nothing; a writer that is told of a
//! thousand bytes a second writes at most five times in it, and a failed write never ends a review.

use std::io::{ErrorKind, Write};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::files::{self, Existing, Sync};
use super::{Store, StoreError, View, check};
use crate::domain::{RunId, Time, Usage, text};

/// What a working run is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum PulseState {
    /// The next request is being put together.
    Preparing,
    /// The request was sent; nothing has come back.
    Waiting,
    /// The answer is coming in.
    Receiving,
    /// Tools are run for the model.
    Tools,
    /// The provider asked for patience, or a failed request is sent again.
    BackingOff {
        /// One line: "rate limited".
        reason: String,
        until: Time,
    },
    /// A person stopped the run for a while.
    Paused,
}

/// The present of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pulse {
    /// From 1; 0 before the first.
    pub turn: u32,
    #[serde(flatten)]
    pub state: PulseState,
    /// When this state began.
    pub since: Time,
    /// When the last bytes of this turn's answer came in.
    pub last_byte_at: Option<Time>,
    /// Of this turn's answer, so far.
    pub bytes: u64,
    /// The end of this turn's answer, at most [`Pulse::MAX_TAIL`] bytes of it, harmless for a terminal.
    pub tail: String,
    /// Of the run so far, in US dollars.
    pub cost: f64,
    /// Of the run so far.
    pub tokens: Usage,
}

impl Pulse {
    /// Bytes of [`Pulse::tail`].
    pub const MAX_TAIL: usize = 1024;
    /// A file that is larger is none of ours.
    const MAX_FILE: u64 = 16 * 1024;

    fn parse(json: &[u8]) -> Option<Self> {
        let mut pulse: Self = serde_json::from_slice(json).ok()?;
        pulse.tail = end_of(&text::lines(&pulse.tail, 1)).to_owned();
        Some(pulse)
    }
}

/// The last [`Pulse::MAX_TAIL`] bytes of a text, from a character on.
fn end_of(text: &str) -> &str {
    let mut from = text.len().saturating_sub(Pulse::MAX_TAIL);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    &text[from..]
}

impl Store {
    pub(super) fn pulse_path(&self, id: &str) -> PathBuf {
        self.root.join("events").join(format!("{id}.pulse"))
    }

    /// The pulse of a run; `None` when it has none, or one that is torn or not ours.
    pub fn pulse(&self, run: &RunId) -> Option<Pulse> {
        let path = self.pulse_path(run.as_str());
        let plain = std::fs::symlink_metadata(&path).is_ok_and(|file| file.is_file() && file.len() <= Pulse::MAX_FILE);
        if !plain {
            return None;
        }
        Pulse::parse(&std::fs::read(&path).ok()?)
    }

    /// The pulses of these runs, by their ids. One that a killed worker left behind is none.
    pub fn pulses(&self, runs: &[RunId]) -> Vec<(String, Pulse)> {
        let live = |run: &&RunId| self.is_live(run).unwrap_or(false);
        let beating = |run: &RunId| Some((run.as_str().to_owned(), self.pulse(run)?));
        runs.iter().filter(live).filter_map(beating).collect()
    }

    /// Begins the pulse of a run, in the place of one that an earlier worker left. For the holder of the run's lock.
    pub fn pulse_writer(&self, run: &RunId, now: Time) -> PulseWriter {
        let pulse = Pulse {
            turn: 0,
            state: PulseState::Preparing,
            since: now,
            last_byte_at: None,
            bytes: 0,
            tail: String::new(),
            cost: 0.0,
            tokens: Usage::default(),
        };
        let mut writer = PulseWriter { path: self.pulse_path(run.as_str()), pulse, written_at: None, fresh: true };
        writer.write(now);
        writer
    }

    /// Pulses that dead workers left, of runs that have ended or are not known: with their sizes.
    pub(super) fn left_pulses(&self, view: &View) -> Result<Vec<(PathBuf, u64)>, StoreError> {
        let mut left = Vec::new();
        for path in check::list(&self.root.join("events"))? {
            if path.extension().is_none_or(|extension| extension != "pulse") {
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

/// Writes the pulse of one run; held by its worker. Dropping it removes the file.
#[derive(Debug)]
pub struct PulseWriter {
    path: PathBuf,
    pulse: Pulse,
    written_at: Option<Time>,
    /// Something was told that is not in the file.
    fresh: bool,
}

impl PulseWriter {
    /// Between two writes in one state there is at least this long, in milliseconds.
    pub const QUIET_MS: i64 = 200;

    /// A turn begins: its request is put together.
    pub fn turn(&mut self, now: Time, turn: u32) {
        self.pulse.turn = turn;
        self.forget_answer();
        self.change(now, PulseState::Preparing);
    }

    /// The run does this now. What came of an answer is forgotten when its request goes out (again).
    pub fn enter(&mut self, now: Time, state: PulseState) {
        if state == self.pulse.state {
            return self.tick(now);
        }
        if state == PulseState::Waiting {
            self.forget_answer();
        }
        self.change(now, state);
    }

    /// So many bytes of the answer came in.
    pub fn received(&mut self, now: Time, bytes: usize) {
        self.pulse.bytes = self.pulse.bytes.saturating_add(bytes as u64);
        self.pulse.last_byte_at = Some(now);
        self.fresh = true;
        self.enter(now, PulseState::Receiving);
    }

    /// Text of the answer, as it came. Data: it may hold anything.
    pub fn text(&mut self, now: Time, text: &str) {
        self.pulse.tail.push_str(&text::lines(end_of(text), 1));
        self.pulse.tail = end_of(&self.pulse.tail).to_owned();
        self.fresh = true;
        self.tick(now);
    }

    /// What the run has cost so far, in US dollars and tokens.
    pub fn spent(&mut self, now: Time, cost: f64, tokens: Usage) {
        (self.pulse.cost, self.pulse.tokens) = (cost, tokens);
        self.fresh = true;
        self.tick(now);
    }

    /// Writes what was held back, once it may be. To be called now and then, so that the last bytes before a silence show.
    pub fn tick(&mut self, now: Time) {
        let due = self.written_at.is_none_or(|at| {
            // A clock that goes backwards makes nobody wait for it.
            !(0..Self::QUIET_MS).contains(&now.as_millisecond().saturating_sub(at.as_millisecond()))
        });
        if self.fresh && due {
            self.write(now);
        }
    }

    fn forget_answer(&mut self) {
        (self.pulse.bytes, self.pulse.last_byte_at) = (0, None);
        self.pulse.tail.clear();
    }

    fn change(&mut self, now: Time, state: PulseState) {
        (self.pulse.state, self.pulse.since) = (state, now);
        self.write(now);
    }

    fn write(&mut self, now: Time) {
        (self.written_at, self.fresh) = (Some(now), false);
        let written = serde_json::to_vec(&self.pulse)
            .map_err(|source| StoreError::Encode { what: "the pulse of a run", source })
            .and_then(|json| {
                files::write_beside(&self.path, Existing::Replace, Sync::Later, |file| file.write_all(&json))
            });
        if let Err(error) = written {
            tracing::debug!(%error, "the pulse of a run cannot be written");
        }
    }
}

impl Drop for PulseWriter {
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
        let mut writer = store.pulse_writer(&run, at(0));
        writer.turn(at(0), 7);
        writer.enter(at(0), PulseState::Waiting);
        let mut seen: Vec<u64> = Vec::new();
        for ms in 1..=3_000 {
            writer.received(at(ms), 12);
            writer.text(at(ms), "ab ");
            let bytes = store.pulse(&run).expect("a pulse").bytes;
            if seen.last() != Some(&bytes) {
                seen.push(bytes);
            }
        }
        // The first byte is a change of state; from then on five a second.
        assert_eq!(seen.len(), 1 + 14, "{seen:?}");
        assert_eq!(seen[0], 12, "the first byte shows at once");
        writer.tick(at(3_000));
        assert_ne!(store.pulse(&run).map(|pulse| pulse.bytes), Some(36_000), "too early");
        writer.tick(at(3_001));
        let pulse = store.pulse(&run).expect("a pulse");
        assert_eq!((pulse.turn, pulse.bytes, pulse.last_byte_at), (7, 36_000, Some(at(3_000))));
        assert_eq!((pulse.state, pulse.since), (PulseState::Receiving, at(1)));
        assert!(pulse.tail.len() <= Pulse::MAX_TAIL && pulse.tail.ends_with("ab "), "{}", pulse.tail.len());
        drop(writer);
        assert_eq!(store.pulse(&run), None, "it goes with its writer");
    }

    #[test]
    fn a_change_of_state_shows_at_once_and_a_new_request_forgets_the_answer() {
        let folder = tempfile::tempdir().expect("a folder");
        let (store, run) = store(&folder);
        let mut writer = store.pulse_writer(&run, at(0));
        let limited = PulseState::BackingOff { reason: "rate limited".into(), until: at(12_000) };
        for (ms, state) in [
            (1, PulseState::Waiting),
            (2, limited.clone()),
            (3, PulseState::Waiting),
            (4, PulseState::Tools),
            (5, PulseState::Paused),
        ] {
            writer.received(at(ms), 5);
            writer.enter(at(ms), state.clone());
            let pulse = store.pulse(&run).expect("a pulse");
            assert_eq!((&pulse.state, pulse.since), (&state, at(ms)));
            if state == PulseState::Waiting {
                assert_eq!((pulse.bytes, pulse.last_byte_at, pulse.tail.as_str()), (0, None, ""));
            }
        }
        // A clock that is set back holds nothing up.
        writer.received(at(6), 5);
        writer.received(at(-90_000), 5);
        assert_eq!(store.pulse(&run).map(|pulse| pulse.last_byte_at), Some(Some(at(-90_000))));
    }

    #[test]
    fn the_tail_is_the_end_of_what_was_said_and_harmless() {
        let folder = tempfile::tempdir().expect("a folder");
        let (store, run) = store(&folder);
        let mut writer = store.pulse_writer(&run, at(0));
        writer.text(at(300), &"漢".repeat(5_000));
        writer.text(at(600), "\u{1b}[2J the end\u{202e}\n");
        let tail = store.pulse(&run).expect("a pulse").tail;
        assert!(tail.len() <= Pulse::MAX_TAIL && tail.ends_with("\u{fffd}[2J the end\u{fffd}\n"), "{tail:?}");
        assert!(tail.starts_with('漢'));
        assert!(!tail.chars().any(|c| c != '\n' && text::is_unsafe(c)));
    }

    #[test]
    fn what_is_torn_foreign_or_too_large_is_no_pulse() {
        let folder = tempfile::tempdir().expect("a folder");
        let (store, run) = store(&folder);
        drop(store.pulse_writer(&run, at(0)));
        let path = store.pulse_path(run.as_str());
        for bytes in
            [&b""[..], b"{\"turn\":7,\"state\":\"wai", b"[]", b"{\"turn\":1,\"state\":\"sleeping\"}", &[b' '; 20_000]]
        {
            std::fs::write(&path, bytes).expect("written");
            assert_eq!(store.pulse(&run), None, "{:?}", &bytes[..bytes.len().min(30)]);
        }
        std::fs::remove_file(&path).expect("removed");
        std::fs::create_dir(&path).expect("a folder in its place");
        assert_eq!(store.pulse(&run), None);
        // Nobody is stopped by it.
        let mut writer = store.pulse_writer(&run, at(0));
        writer.enter(at(1), PulseState::Tools);
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
        assert_eq!(Pulse::parse(json("dreaming").as_bytes()), None);
        let pulse = Pulse::parse(json("waiting").as_bytes()).expect("a pulse");
        assert_eq!((pulse.turn, pulse.state, pulse.tokens.input), (2, PulseState::Waiting, 1));
        assert_eq!(pulse.tail.len(), Pulse::MAX_TAIL);
    }
}
