//! Keeps a process running that follows the team while the cockpit is open.
//!
//! A process that has ended is started again after a pause, and the pauses grow. One that gave up is not, until its failure is
//! no longer the last one in the store or the machine has joined a team anew. While the machine takes part in no team that tells
//! news, nothing runs until it joins one. Nothing else is waited for, so an idle cockpit has no timer.

use std::process::{Child, ChildStdin};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::effects::spawn_worker;
use super::event_source::MessageSender;
use super::message::AppMessage;
use crate::runner::{FollowerProcess, Services};
use crate::store::{StoreChange, TailStopper};

/// First and longest pause before a process that has ended is started again.
const RESTART_PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// Handle of the process, which ends when the handle is dropped.
pub(super) struct TeamFollower {
    input: Arc<Mutex<FollowerInput>>,
    /// Ends the pause before the next start; when it is dropped, for good.
    joined: Sender<()>,
}

/// Standard input of the process, which ends with it, and the wait after its end.
#[derive(Default)]
struct FollowerInput {
    pipe: Option<ChildStdin>,
    /// Ends the wait for a change of the store.
    wait: Option<TailStopper>,
    /// True if nobody needs the process any more.
    is_closed: bool,
}

/// Outcome of an attempt to start the process.
enum FollowerStart {
    Running,
    Failed,
    /// There is no team that tells news.
    NotNeeded,
}

/// How the process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FollowerEnd {
    /// The next one may do better.
    Ended,
    /// The next one fails, too, until a person changes something.
    GaveUp,
}

/// Processes, time and cockpit, as [`keep_running`] needs them.
trait FollowerHost {
    fn now(&self) -> Instant;

    fn start(&mut self) -> FollowerStart;

    fn wait_for_end(&mut self) -> FollowerEnd;

    /// Waits until something has changed since the process gave up. Returns false if nobody needs the process any more.
    fn wait_for_change(&mut self) -> bool;

    /// Waits, at most until the machine has joined a team. Returns false if nobody needs the process any more.
    fn pause(&mut self, length: Duration) -> bool;

    /// Waits until the machine has joined a team. Returns false if nobody needs the process any more.
    fn wait_for_team(&mut self) -> bool;

    /// Forgets that the machine has joined a team: the process that ran until now, or is started now, knows it.
    fn forget_joined(&mut self);

    /// Tells the cockpit whether the process runs.
    fn tell(&mut self, is_running: bool);
}

/// Starts the process, and starts it again whenever it has ended, until nobody needs it.
fn keep_running(host: &mut impl FollowerHost) {
    let mut pause = RESTART_PAUSES.0;
    loop {
        let began = host.now();
        host.forget_joined();
        let start = host.start();
        host.tell(!matches!(start, FollowerStart::Failed));
        match start {
            FollowerStart::NotNeeded if host.wait_for_team() => {
                pause = RESTART_PAUSES.0;
                continue;
            }
            FollowerStart::NotNeeded => return,
            FollowerStart::Failed => {}
            FollowerStart::Running => {
                let end = host.wait_for_end();
                host.tell(false);
                if end == FollowerEnd::GaveUp {
                    if !host.wait_for_change() {
                        return;
                    }
                    pause = RESTART_PAUSES.0;
                    continue;
                }
                // Otherwise it would cut the pause short.
                host.forget_joined();
            }
        }
        // A process that ran for a time did not fail at its start.
        if host.now().saturating_duration_since(began) >= RESTART_PAUSES.1 {
            pause = RESTART_PAUSES.0;
        }
        if !host.pause(pause) {
            return;
        }
        pause = (pause * 2).min(RESTART_PAUSES.1);
    }
}

/// Real processes, on a thread of the cockpit.
struct CockpitHost {
    services: Services,
    messages: MessageSender,
    input: Arc<Mutex<FollowerInput>>,
    /// Tells that the machine has joined a team.
    joined: Receiver<()>,
    child: Option<Child>,
    /// State that the cockpit was told last.
    is_running: bool,
}

impl TeamFollower {
    /// Starts the thread, which starts the process.
    pub(super) fn start(services: Services, messages: MessageSender) -> Self {
        let input = Arc::new(Mutex::new(FollowerInput::default()));
        let (sender, joined) = channel();
        let mut host = CockpitHost {
            services,
            messages: messages.clone(),
            input: Arc::clone(&input),
            joined,
            child: None,
            is_running: true,
        };
        spawn_worker("team", messages, move || keep_running(&mut host));
        Self { input, joined: sender }
    }

    /// Tells the thread that the machine has joined a team since. It starts the process unless that runs, which notices by
    /// itself.
    pub(super) fn notice_team(&self) {
        // A thread that has panicked has reported that.
        let _ = self.joined.send(());
        if let Some(wait) = &self.input.lock().unwrap_or_else(PoisonError::into_inner).wait {
            wait.wake();
        }
    }
}

impl Drop for TeamFollower {
    fn drop(&mut self) {
        let mut input = self.input.lock().unwrap_or_else(PoisonError::into_inner);
        input.is_closed = true;
        drop(input.pipe.take());
        if let Some(wait) = input.wait.take() {
            wait.stop();
        }
    }
}

impl FollowerHost for CockpitHost {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn start(&mut self) -> FollowerStart {
        match self.services.team().start_follower() {
            Ok(None) => FollowerStart::NotNeeded,
            Ok(Some(FollowerProcess { child, input: pipe })) => {
                let mut input = self.input.lock().unwrap_or_else(PoisonError::into_inner);
                // If the cockpit has ended meanwhile, the process ends, because its input is dropped.
                let pipe = if input.is_closed { None } else { Some(pipe) };
                input.pipe = pipe;
                self.child = Some(child);
                FollowerStart::Running
            }
            Err(error) => {
                tracing::warn!(%error, "the team is not followed");
                FollowerStart::Failed
            }
        }
    }

    fn wait_for_end(&mut self) -> FollowerEnd {
        match self.child.take().map(|mut child| child.wait()) {
            Some(Ok(status)) if status.code() == Some(FollowerProcess::GAVE_UP) => FollowerEnd::GaveUp,
            Some(Err(error)) => {
                tracing::warn!(%error, "the end of the process that follows the team is not seen");
                FollowerEnd::Ended
            }
            Some(Ok(_)) | None => FollowerEnd::Ended,
        }
    }

    fn wait_for_change(&mut self) -> bool {
        let mut tail = self.services.store.open_tail();
        let mut input = self.input.lock().unwrap_or_else(PoisonError::into_inner);
        if input.is_closed {
            return false;
        }
        input.wait = Some(tail.stopper());
        drop(input);
        if self.has_team_changed() {
            return true;
        }
        let Some(failure) = self.last_failure() else {
            // It gave up before an exchange: the repository is not there, for example.
            return self.pause(RESTART_PAUSES.1);
        };
        // If the cockpit has ended, nobody listens.
        let _ = self.messages.send(AppMessage::TeamStopped(failure.clone()));
        while !self.has_team_changed() && self.last_failure().as_ref() == Some(&failure) {
            if tail.wait() == StoreChange::Stopped {
                return false;
            }
        }
        true
    }

    fn pause(&mut self, length: Duration) -> bool {
        !matches!(self.joined.recv_timeout(length), Err(RecvTimeoutError::Disconnected))
    }

    fn wait_for_team(&mut self) -> bool {
        self.joined.recv().is_ok()
    }

    fn forget_joined(&mut self) {
        self.joined.try_iter().for_each(drop);
    }

    fn tell(&mut self, is_running: bool) {
        if self.is_running != is_running {
            self.is_running = is_running;
            // If the cockpit has ended, nobody listens.
            let _ = self.messages.send(AppMessage::TeamFollowed(is_running));
        }
    }
}

impl CockpitHost {
    /// Returns true if the machine has left the team, or has joined one since the last start. The last failure is then no reason
    /// to wait: it stays in the store when the machine leaves, and when it joins at the same place again.
    fn has_team_changed(&self) -> bool {
        self.joined.try_iter().count() > 0 || !self.services.team().is_live()
    }

    /// Returns the failure of the last exchange, whichever process made it.
    fn last_failure(&self) -> Option<String> {
        self.services.store.team_progress().ok()?.failure
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Outcome of a start in a script.
    #[derive(Debug, Clone, Copy)]
    enum ScriptedStart {
        /// A process that lasts this number of seconds.
        Lasts(u64),
        /// The process cannot be started.
        Fails,
        /// There is no team; then the machine joins one.
        NoTeam,
    }
    use ScriptedStart::{Fails, Lasts, NoTeam};

    /// Processes that last as long as a script says, in a time that passes only by it.
    struct ScriptedHost {
        now: Instant,
        /// Outcome of each start. Behind the last one, there is no team, and the cockpit ends.
        script: Vec<ScriptedStart>,
        starts: usize,
        /// Starts after which the process gives up, and something is changed then.
        gives_up: &'static [usize],
        changes: usize,
        /// Starts whose processes run while the machine joins a team.
        joins: &'static [usize],
        /// Joined teams that end a pause.
        joined: usize,
        /// Pause at which the cockpit ends.
        end: usize,
        /// Seconds of each pause.
        pauses: Vec<u64>,
        told: Vec<bool>,
    }

    impl ScriptedHost {
        /// Returns a host whose processes do not give up, in a cockpit that does not end.
        fn new(script: &[ScriptedStart]) -> Self {
            Self {
                now: Instant::now(),
                script: script.to_vec(),
                starts: 0,
                gives_up: &[],
                changes: 0,
                joins: &[],
                joined: 0,
                end: usize::MAX,
                pauses: Vec::new(),
                told: Vec::new(),
            }
        }
    }

    impl FollowerHost for ScriptedHost {
        fn now(&self) -> Instant {
            self.now
        }

        fn start(&mut self) -> FollowerStart {
            self.starts += 1;
            match self.script.get(self.starts - 1) {
                Some(Lasts(_)) => FollowerStart::Running,
                Some(Fails) => FollowerStart::Failed,
                Some(NoTeam) | None => FollowerStart::NotNeeded,
            }
        }

        fn wait_for_end(&mut self) -> FollowerEnd {
            let Lasts(seconds) = self.script[self.starts - 1] else { panic!("no process runs") };
            self.now += Duration::from_secs(seconds);
            self.joined += usize::from(self.joins.contains(&self.starts));
            if self.gives_up.contains(&self.starts) { FollowerEnd::GaveUp } else { FollowerEnd::Ended }
        }

        fn wait_for_change(&mut self) -> bool {
            self.changes += 1;
            self.changes < self.end
        }

        fn pause(&mut self, length: Duration) -> bool {
            let length = match std::mem::take(&mut self.joined) {
                0 => length,
                _ => Duration::ZERO,
            };
            self.now += length;
            self.pauses.push(length.as_secs());
            self.pauses.len() < self.end
        }

        fn wait_for_team(&mut self) -> bool {
            self.starts <= self.script.len()
        }

        fn forget_joined(&mut self) {
            self.joined = 0;
        }

        fn tell(&mut self, is_running: bool) {
            if self.told.last() != Some(&is_running) {
                self.told.push(is_running);
            }
        }
    }

    #[test]
    fn a_process_that_ends_is_started_again_after_growing_pauses() {
        /// Name of the case, the outcome of each start, and the expected pauses in seconds.
        type Case<'a> = (&'a str, &'a [ScriptedStart], &'a [u64]);
        let table: [Case<'_>; 6] = [
            ("no team", &[], &[]),
            ("it ends at once", &[Lasts(0); 9], &[1, 2, 4, 8, 16, 32, 60, 60, 60]),
            ("it cannot be started", &[Fails, Fails, Lasts(1)], &[1, 2, 4]),
            ("it ran for a time", &[Lasts(0), Lasts(0), Lasts(3600), Lasts(0)], &[1, 2, 1, 2]),
            ("a team is joined later", &[NoTeam, NoTeam, Lasts(0)], &[1]),
            ("left and joined again", &[Lasts(0), Lasts(0), NoTeam, Lasts(0), Lasts(0)], &[1, 2, 1, 2]),
        ];
        for (title, script, expected) in table {
            let mut host = ScriptedHost::new(script);
            keep_running(&mut host);
            assert_eq!((host.pauses.as_slice(), host.starts), (expected, script.len() + 1), "{title}");
            assert_eq!(host.told.last(), Some(&true), "{title}: without a team, nothing is lost");
        }
    }

    #[test]
    fn a_team_that_is_joined_while_the_process_runs_does_not_cut_the_next_pause_short() {
        let table: [&'static [usize]; 3] = [&[], &[1], &[1, 2, 3]];
        for joins in table {
            let mut host = ScriptedHost { joins, ..ScriptedHost::new(&[Lasts(0); 3]) };
            keep_running(&mut host);
            assert_eq!(host.pauses, [1, 2, 4], "{joins:?}");
        }
    }

    #[test]
    fn the_end_of_the_cockpit_ends_the_pauses() {
        let mut host = ScriptedHost { end: 2, ..ScriptedHost::new(&[Lasts(5); 3]) };
        keep_running(&mut host);
        assert_eq!((host.starts, host.told), (2, vec![true, false, true, false]));
    }

    #[test]
    fn a_process_that_gave_up_is_started_again_only_after_a_change() {
        /// Name of the case, the starts that give up, the change at which the cockpit ends, and the expected starts, pauses in
        /// seconds and changes.
        type Case = (&'static str, &'static [usize], usize, (usize, &'static [u64], usize));
        let table: [Case; 3] = [
            ("it gives up at once", &[1], usize::MAX, (4, &[1, 2], 1)),
            ("it gives up again and again", &[1, 2, 3], usize::MAX, (4, &[], 3)),
            ("the cockpit ends first", &[1], 1, (1, &[], 1)),
        ];
        for (title, gives_up, end, expected) in table {
            let mut host = ScriptedHost { gives_up, end, ..ScriptedHost::new(&[Lasts(0); 3]) };
            keep_running(&mut host);
            assert_eq!((host.starts, host.pauses.as_slice(), host.changes), expected, "{title}");
        }
    }
}
