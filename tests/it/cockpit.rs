//! Integration tests: the cockpit in a real pseudo-terminal, with the real binary and a real store.

mod assistants;
mod diff;
mod freshness;
mod keys;
mod lists;
mod live;
mod look;
mod opening;
#[cfg(unix)]
mod questions;
mod secrets;
mod sessions;
mod team;
mod triage;
#[cfg(unix)]
mod trouble;

use std::io::{Read, Write};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

use revdeck::domain::{RunStatus, Time};
use revdeck::store::{HeartbeatState, WatcherStatus};
use rstest::rstest;

use crate::env::{TestEnvironment, executable, files_below};
use crate::runner::place::wait_for;

const PATIENCE: Duration = Duration::from_secs(20);
const COLUMNS: u16 = 130;
const ROWS: u16 = 36;

/// The data that the terminal has received, as a screen and as bytes.
struct Received {
    parser: vt100::Parser,
    bytes: Vec<u8>,
    closed: bool,
}

/// The cockpit in a terminal that answers no queries.
struct Cockpit {
    master: Box<dyn MasterPty + Send>,
    /// Stays open, so that the terminal's settings can be read after the cockpit has ended.
    _slave: Box<dyn portable_pty::SlavePty + Send>,
    keys: Box<dyn Write + Send>,
    child: Box<dyn Child + Send + Sync>,
    received: Arc<(Mutex<Received>, Condvar)>,
    settings: String,
}

impl Cockpit {
    fn open(test: &TestEnvironment) -> Self {
        Self::open_with(test, &[("EDITOR", "true")])
    }

    fn open_with(test: &TestEnvironment, variables: &[(&str, &str)]) -> Self {
        Self::open_told(test, &[], variables)
    }

    fn open_told(test: &TestEnvironment, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_revdeck"));
        command.args(arguments);
        Self::spawn(test, command, variables)
    }

    /// Opens the cockpit where no file can become larger than this number of blocks of 512 or 1,024 bytes, as on a full
    /// disk.
    #[cfg(unix)]
    fn open_limited(test: &TestEnvironment, blocks: u32) -> Self {
        let mut command = CommandBuilder::new("/bin/sh");
        // A write beyond the limit is an error and ends nobody.
        let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\"");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_revdeck")]);
        Self::spawn(test, command, &[])
    }

    fn spawn(test: &TestEnvironment, mut command: CommandBuilder, variables: &[(&str, &str)]) -> Self {
        let size = PtySize { rows: ROWS, cols: COLUMNS, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).expect("a pseudo-terminal");
        command.cwd(test.repo());
        command.env_clear();
        let model = test.command("true");
        for (name, value) in model.get_envs() {
            command.env(name, value.unwrap_or_default());
        }
        command.env("TERM", "xterm-256color");
        for (name, value) in variables {
            command.env(name, value);
        }
        let settings = settings_of(pair.master.as_ref());
        let child = pair.slave.spawn_command(command).expect("revdeck starts");
        let mut output = pair.master.try_clone_reader().expect("a reader");
        let keys = pair.master.take_writer().expect("a writer");
        let size = |n| std::num::NonZero::new(n).expect("not nothing");
        let first =
            Received { parser: vt100::Parser::new(size(ROWS), size(COLUMNS), 0), bytes: Vec::new(), closed: false };
        let received = Arc::new((Mutex::new(first), Condvar::new()));
        let shared = Arc::clone(&received);
        std::thread::spawn(move || {
            let mut buffer = [0; 8192];
            loop {
                let count = output.read(&mut buffer).unwrap_or(0);
                let mut received = shared.0.lock().expect("a lock");
                received.parser.process(&buffer[..count]);
                received.bytes.extend_from_slice(&buffer[..count]);
                received.closed |= count == 0;
                shared.1.notify_all();
                if count == 0 {
                    return;
                }
            }
        });
        Self { master: pair.master, _slave: pair.slave, keys, child, received, settings }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("keys are written");
        self.keys.flush().expect("keys are written");
    }

    /// Waits until the screen satisfies the condition; on a timeout, panics and prints the screen.
    fn wait(&self, what: &str, wanted: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + PATIENCE;
        let mut received = self.received.0.lock().expect("a lock");
        loop {
            let text = received.parser.screen().contents();
            if wanted(&text) {
                return text;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero() && !received.closed, "no {what} on the screen:\n{text}");
            received = self.received.1.wait_timeout(received, left).expect("a lock").0;
        }
    }

    /// Waits at most this long until the screen satisfies the condition. Returns false if it does not.
    fn look_for(&self, patience: Duration, wanted: impl Fn(&str) -> bool) -> bool {
        let deadline = Instant::now() + patience;
        let mut received = self.received.0.lock().expect("a lock");
        loop {
            if wanted(&received.parser.screen().contents()) {
                return true;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || received.closed {
                return false;
            }
            received = self.received.1.wait_timeout(received, left).expect("a lock").0;
        }
    }

    fn wait_for(&self, text: &str) -> String {
        self.wait(text, |screen| screen.contains(text))
    }

    /// Waits for the end of the cockpit and returns its exit code.
    fn end(&mut self) -> u32 {
        wait_for("the cockpit's end", || self.child.try_wait().expect("a status")).exit_code()
    }

    /// Checks that the terminal is restored: main screen, visible cursor, no bracketed paste, no mouse reports, the
    /// original line discipline.
    fn assert_restored(&self) {
        let deadline = Instant::now() + PATIENCE;
        let mut received = self.received.0.lock().expect("a lock");
        loop {
            let screen = received.parser.screen();
            let mouse = screen.mouse_protocol_mode() != vt100::MouseProtocolMode::None;
            let modes = (screen.alternate_screen(), screen.hide_cursor(), screen.bracketed_paste(), mouse);
            if modes == (false, false, false, false) && settings_of(self.master.as_ref()) == self.settings {
                return;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "not restored: {modes:?}");
            received = self.received.1.wait_timeout(received, left.min(Duration::from_millis(20))).expect("a lock").0;
        }
    }

    /// Quits and checks that the terminal is restored.
    fn quit(mut self) {
        self.press("q");
        assert_eq!(self.end(), 0);
        self.assert_restored();
    }

    fn signal(&self, name: &str) {
        let id = self.child.process_id().expect("a process").to_string();
        let status = std::process::Command::new("kill").args([&format!("-{name}"), &id]).status();
        assert!(status.expect("kill starts").success());
    }
}

impl Drop for Cockpit {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn settings_of(master: &dyn MasterPty) -> String {
    let settings = master.get_termios().expect("terminal settings");
    format!(
        "{:?} {:?} {:?} {:?}",
        settings.input_flags, settings.output_flags, settings.control_flags, settings.local_flags
    )
}

/// Creates a repository with one commit and an uncommitted file in which the built-in reviewer finds something.
fn repository() -> TestEnvironment {
    let test = TestEnvironment::new();
    test.write("README.md", "# Sample\n");
    test.commit("First");
    test.write(
        "job.py",
        "import os\n\ncache = {}\n\n\ndef load(path, items=[]):\n    try:\n        items.append(open(path))\n    except:\n        pass\n    cache[path] = items\n    return items\n",
    );
    test
}

#[test]
fn a_first_start_reviews_shows_decides_undoes_and_leaves_the_terminal_as_it_was() {
    let test = repository();
    let mut cockpit = Cockpit::open(&test);
    cockpit.wait_for("✓ worktree");
    cockpit.wait("findings", |screen| {
        let is_counted = screen.lines().next().is_some_and(|line| line.contains("3 open"));
        is_counted && screen.contains("job.py:") && screen.contains("idle")
    });
    cockpit.press("2j");
    cockpit.press("a");
    cockpit.wait_for("addressed job.py:");
    let stored = test.revdeck(&["findings", "--status", "addressed", "--format", "json"]);
    assert!(String::from_utf8_lossy(&stored.stdout).contains("\"addressed\""), "it is stored when the screen says so");
    cockpit.press("u");
    cockpit.wait_for("is open again");
    cockpit.press("x");
    cockpit.wait_for("Why dismiss");
    cockpit.press("on purpose\r");
    cockpit.wait_for("dismissed job.py:");
    cockpit.press("q");
    assert_eq!(cockpit.end(), 0);
    cockpit.assert_restored();
    let stored = test.revdeck(&["findings", "--status", "dismissed", "--format", "json"]);
    assert!(String::from_utf8_lossy(&stored.stdout).contains("dismissed"));
}

#[test]
fn signals_give_the_terminal_back() {
    for name in ["TERM", "HUP", "QUIT"] {
        let test = repository();
        let mut cockpit = Cockpit::open(&test);
        cockpit.wait_for("✓ worktree");
        cockpit.signal(name);
        assert_eq!(cockpit.end(), 130, "{name}");
        cockpit.assert_restored();
    }
}

/// Checks that the cockpit writes nothing for longer than the period of any timer.
#[test]
fn a_cockpit_that_another_process_has_stopped_takes_the_terminal_again() {
    let test = repository();
    assert!(test.revdeck(&["review", "--wait"]).status.success());
    let mut cockpit = Cockpit::open(&test);
    cockpit.wait("the list", |screen| screen.contains("History") && screen.contains("idle"));
    let taken = |cockpit: &Cockpit| {
        let received = cockpit.received.0.lock().expect("a lock");
        received.bytes.windows(8).filter(|part| part == b"\x1b[?1049h").count()
    };
    assert_eq!(taken(&cockpit), 1);
    cockpit.signal("STOP");
    cockpit.signal("CONT");
    wait_for("the terminal", || (taken(&cockpit) == 2).then_some(()));
    cockpit.press("j");
    cockpit.wait("the whole screen", |screen| screen.contains("2/3") && screen.contains("1 Runs"));
    assert_silent(&cockpit);
    assert_eq!(taken(&cockpit), 2);
    cockpit.press("q");
    assert_eq!(cockpit.end(), 0);
    cockpit.assert_restored();
}

fn assert_silent(cockpit: &Cockpit) {
    let deadline = Instant::now() + PATIENCE;
    let mut received = cockpit.received.0.lock().expect("a lock");
    loop {
        let before = received.bytes.len();
        let (after, _) = cockpit
            .received
            .1
            .wait_timeout_while(received, Duration::from_millis(2_500), |received| received.bytes.len() == before)
            .expect("a lock");
        received = after;
        if received.bytes.len() == before {
            return;
        }
        let last = String::from_utf8_lossy(&received.bytes[before..]).into_owned();
        assert!(Instant::now() < deadline, "it never falls silent: {last:?}");
    }
}

#[test]
fn at_rest_not_a_byte_is_written() {
    let test = repository();
    assert!(test.revdeck(&["review", "--wait"]).status.success());
    let cockpit = Cockpit::open(&test);
    cockpit.wait("the detail", |screen| screen.contains("History") && screen.contains("idle"));
    assert_silent(&cockpit);
}

#[test]
fn what_a_worker_says_of_itself_is_seen_and_p_reaches_it() {
    let test = repository();
    test.commit("Second");
    let store = test.store();
    // This process acts as the worker: it holds the run's lock.
    let mut worker = crate::turns::write(&store, 2, crate::turns::Fate::Receiving, Time::now()).expect("a run");
    let pulse = worker.pulse.as_mut().expect("a pulse");
    let mut cockpit = Cockpit::open(&test);
    cockpit.wait_for("turn 7 of 20: receiving");
    cockpit.press("1ll");
    cockpit.wait_for("7 turns");
    let later = Time::from_millisecond(Time::now().as_millisecond() + 3_600_000).expect("a moment");
    pulse.set_state(Time::now(), HeartbeatState::BackingOff { reason: "rate limited".into(), until: later });
    cockpit.wait_for("turn 7 of 20: rate limited");
    for paused in [true, false, true] {
        cockpit.press("p");
        cockpit.wait("the wish", |screen| screen.contains("then pauses") == paused);
        assert_eq!(store.run(&worker.run).expect("read").expect("a run").paused, paused);
    }
    pulse.set_state(Time::now(), HeartbeatState::Paused);
    cockpit.wait("a pause", |screen| screen.matches("turn 7 of 20: paused").count() == 2);
    // A paused run shows no running time: the cockpit is idle.
    assert_silent(&cockpit);
    // The worker finishes.
    store.update_run(&worker.run, Time::now(), |run| run.status = RunStatus::Completed).expect("updated");
    drop(worker);
    cockpit.wait("the end", |screen| screen.contains("idle") && !screen.contains("turn 7 of 20: paused"));
    cockpit.press("q");
    assert_eq!(cockpit.end(), 0);
    cockpit.assert_restored();
}

/// A killed worker writes nothing, so the cockpit has to look.
#[test]
fn a_worker_that_dies_is_seen_although_nothing_is_written() {
    let test = repository();
    test.commit("Second");
    let store = test.store();
    let mut worker = crate::turns::write(&store, 2, crate::turns::Fate::Receiving, Time::now()).expect("a run");
    let mut cockpit = Cockpit::open(&test);
    cockpit.wait_for("turn 7 of 20: receiving");
    cockpit.press("1");
    cockpit.wait_for("freshness   ");
    // The system releases the locks of a killed process, and nothing else.
    std::mem::forget(worker.pulse.take());
    drop(worker);
    cockpit
        .wait("the end of the worker", |screen| screen.contains("freshness   lost") && !screen.contains("receiving"));
    assert_silent(&cockpit);
}

#[test]
fn what_was_set_right_is_told_once() {
    let test = repository();
    test.commit("Second");
    let store = test.store();
    drop(crate::turns::write(&store, 2, crate::turns::Fate::Receiving, Time::now()).expect("a run"));
    let mut cockpit = Cockpit::open(&test);
    let screen = cockpit.wait_for("1 run ");
    assert!(screen.contains("worker died in turn 7"), "{screen}");
    cockpit.press("j");
    cockpit.wait("no notice", |screen| !screen.contains("1 run "));
    cockpit.press("q");
    assert_eq!(cockpit.end(), 0);
    let said = test.revdeck(&["runs"]);
    assert!(!String::from_utf8_lossy(&said.stderr).contains("1 run "), "{said:?}");
}

#[rstest]
#[case::theme("config.toml", "theme = \"drak\"\n", "there is no theme \"drak\"; did you mean \"dark\"?")]
#[case::keys("keymap.toml", "[findings]\n\"D\" = \"dismis\"\n", "\"dismis\" is no action; did you mean \"dismiss\"?")]
fn a_mistake_in_theme_or_keys_keeps_the_cockpit_closed(#[case] file: &str, #[case] text: &str, #[case] said: &str) {
    let test = repository();
    std::fs::create_dir_all(test.home()).expect("a folder");
    std::fs::write(test.home().join(file), text).expect("a file");
    let mut cockpit = Cockpit::open(&test);
    cockpit.wait_for(said);
    assert_eq!(cockpit.end(), u32::try_from(crate::env::USAGE).expect("a code"));
}

#[test]
fn a_store_that_cannot_be_written_still_shows_what_it_has() {
    let test = repository();
    assert!(test.revdeck(&["review", "--wait"]).status.success());
    // A newer revdeck has written the store: this version must not write.
    let mut changed = 0;
    for entry in files_below(&test.home()) {
        if entry.file_name().is_some_and(|name| name == "repo.json") {
            let text = std::fs::read_to_string(&entry).expect("repo.json");
            std::fs::write(&entry, text.replace("\"version\": 1", "\"version\": 99")).expect("repo.json");
            changed += 1;
        }
    }
    assert_eq!(changed, 1);
    let mut cockpit = Cockpit::open(&test);
    cockpit.wait_for("job.py:");
    cockpit.press("a");
    let screen = cockpit.wait_for("not stored:");
    assert!(screen.contains("newer revdeck"), "{screen}");
    cockpit.press("q");
    assert_eq!(cockpit.end(), 0);
    cockpit.assert_restored();
}

#[test]
fn two_cockpits_see_each_others_decisions() {
    let test = repository();
    assert!(test.revdeck(&["review", "--wait"]).status.success());
    let mut one = Cockpit::open(&test);
    let two = Cockpit::open(&test);
    let count = |screen: &str| screen.lines().find(|line| line.contains("2 Findings")).map(str::to_owned);
    one.wait_for("History");
    let before = count(&two.wait_for("History"));
    one.press("a");
    one.wait_for("addressed job.py:");
    two.wait("the other's decision", |screen| count(screen) != before);
}

#[test]
fn figures_follow_the_store_while_they_are_open_and_are_silent_at_rest() {
    let test = repository();
    assert!(test.revdeck(&["review", "--wait"]).status.success());
    let mut cockpit = Cockpit::open(&test);
    cockpit.wait_for("History");
    cockpit.press("S");
    cockpit.wait("the figures", |screen| screen.contains("1 launched") && !screen.contains("addressed,"));
    let listed = test.revdeck(&["findings", "--format", "json"]);
    let listed: serde_json::Value = serde_json::from_slice(&listed.stdout).expect("JSON");
    let id = listed["findings"][0]["finding_id"].as_str().expect("a finding");
    assert!(test.revdeck(&["triage", id, "addressed"]).status.success());
    cockpit.wait_for("100 % of 1 decided were addressed");
    assert_silent(&cockpit);
    cockpit.press("q");
    cockpit.wait_for("History");
    cockpit.press("q");
    assert_eq!(cockpit.end(), 0);
    cockpit.assert_restored();
}

#[test]
fn a_program_of_the_system_copies_and_a_hanging_one_does_not_hold_the_cockpit() {
    let test = repository();
    assert!(test.revdeck(&["review", "--wait"]).status.success());
    let (bin, copied) = (test.home().with_file_name("bin"), test.home().with_file_name("copied"));
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").expect("a path"));
    let variables = [("PATH", path.as_str()), ("WAYLAND_DISPLAY", "wayland-0")];
    // Reads nothing and never ends.
    executable(bin.join("wl-copy"), "#!/bin/sh\nexec sleep 1000\n");
    let mut cockpit = Cockpit::open_with(&test, &variables);
    cockpit.wait_for("History");
    cockpit.press("y1");
    cockpit.press("j");
    cockpit.wait_for("sent the place to the terminal");
    let received = cockpit.received.0.lock().expect("a lock").bytes.clone();
    assert!(received.windows(5).any(|bytes| bytes == b"\x1b]52;"), "OSC 52 is what is left");
    executable(bin.join("wl-copy"), format!("#!/bin/sh\ncat > '{}'\n", copied.display()));
    cockpit.press("gy1");
    cockpit.wait_for("copied the place with wl-copy");
    let text = std::fs::read_to_string(&copied).expect("what was copied");
    assert!(text.starts_with("job.py:"), "{text:?}");
    cockpit.press("q");
    assert_eq!(cockpit.end(), 0);
}

#[test]
fn an_empty_repository_says_so() {
    let test = TestEnvironment::new();
    let mut cockpit = Cockpit::open(&test);
    cockpit.wait_for("Nothing to review yet");
    cockpit.press("q");
    assert_eq!(cockpit.end(), 0);
    cockpit.assert_restored();
}

#[test]
fn an_editor_has_the_terminal_to_itself() {
    let test = repository();
    assert!(test.revdeck(&["review", "--wait"]).status.success());
    let mut cockpit = Cockpit::open_with(&test, &[("EDITOR", "sh -c 'read line; echo \"$line $0 $1\" > edited'")]);
    cockpit.wait_for("History");
    cockpit.press("e");
    cockpit.wait("the main screen", |screen| !screen.contains("History"));
    cockpit.press("typed\r");
    cockpit.wait_for("History");
    let edited = std::fs::read_to_string(test.repo().join("edited")).expect("what the editor wrote");
    assert!(edited.starts_with("typed +") && edited.contains("job.py"), "{edited:?}");
    cockpit.press("q");
    assert_eq!(cockpit.end(), 0);
}

#[test]
fn w_starts_a_watcher_that_outlives_the_cockpit_and_w_ends_it() {
    let test = repository();
    let mut cockpit = Cockpit::open(&test);
    cockpit.wait("the first review", |screen| screen.contains("✓ worktree") && screen.contains("idle"));
    cockpit.press("w");
    cockpit.wait("the header", |screen| screen.lines().next().is_some_and(|line| line.contains("  watching")));
    cockpit.press("W");
    cockpit.wait_for("until 14:00");
    cockpit.press("\r");
    cockpit.wait("the header", |screen| screen.lines().next().is_some_and(|line| line.contains("snoozed until")));
    cockpit.press("W");
    cockpit.wait_for("until 14:00");
    cockpit.press("\r");
    cockpit.wait_for("not snoozed any more");
    assert_silent(&cockpit);
    cockpit.press("q");
    assert_eq!(cockpit.end(), 0);
    let WatcherStatus::Known(watching) = test.store().watcher_status().expect("asked") else {
        panic!("nobody watches")
    };

    // Another cockpit can stop the watcher; the cockpit also notices when another process ends it in any way.
    let mut cockpit = Cockpit::open(&test);
    let watched = |screen: &str| screen.lines().next().is_some_and(|line| line.contains("watching"));
    cockpit.wait("the header", watched);
    cockpit.press("w");
    cockpit.wait_for("the watcher has ended");
    cockpit.wait("an end", |screen| !watched(screen));
    cockpit.press("w");
    cockpit.wait("the header", watched);
    let WatcherStatus::Known(second) = test.store().watcher_status().expect("asked") else { panic!("nobody watches") };
    assert_ne!(second.pid, watching.pid);
    crate::runner::place::signal(second.pid, rustix::process::Signal::KILL);
    cockpit.wait("an end", |screen| !watched(screen));
}

#[rstest]
#[case::by_the_cockpit(&["--no-learning"], "", true)]
#[case::by_the_settings(&[], "[learning]\nenabled = false\n", false)]
fn a_watcher_is_told_what_only_the_cockpit_was_told(
    #[case] arguments: &[&str],
    #[case] settings: &str,
    #[case] is_told: bool,
) {
    let test = repository();
    test.write(".revdeck.toml", settings);
    let mut cockpit = Cockpit::open_told(&test, arguments, &[]);
    let watched = |screen: &str| screen.lines().next().is_some_and(|line| line.contains("watching"));
    cockpit.wait("the first review", |screen| screen.contains("✓ worktree") && screen.contains("idle"));
    cockpit.press("w");
    cockpit.wait("the header", watched);
    let WatcherStatus::Known(watching) = test.store().watcher_status().expect("asked") else {
        panic!("nobody watches")
    };
    let told = std::fs::read_to_string(format!("/proc/{}/cmdline", watching.pid)).expect("it is there");
    // The cockpit keeps the settings that it read from the configuration, also when the configuration changes later.
    assert_eq!(told.contains("--no-learning"), is_told, "{told:?}");
    cockpit.press("w");
    cockpit.wait("an end", |screen| !watched(screen));
}

/// Git starts the cockpit, for example from an alias: the watcher must not inherit the variables that git sets.
#[test]
fn a_watcher_knows_nothing_of_a_git_that_started_the_cockpit() {
    let test = repository();
    let said = [("GIT_PREFIX", "below/"), ("GIT_CONFIG_PARAMETERS", "'core.abbrev=7'")];
    let mut cockpit = Cockpit::open_with(&test, &said);
    cockpit.wait("the first review", |screen| screen.contains("✓ worktree") && screen.contains("idle"));
    let watched = |screen: &str| screen.lines().next().is_some_and(|line| line.contains("watching"));
    cockpit.press("w");
    cockpit.wait("the header", watched);
    let WatcherStatus::Known(watching) = test.store().watcher_status().expect("asked") else {
        panic!("nobody watches")
    };
    let environment = std::fs::read(format!("/proc/{}/environ", watching.pid)).expect("it is there");
    let environment = String::from_utf8_lossy(&environment);
    assert!(environment.contains("REVDECK_HOME=") && said.iter().all(|(name, _)| !environment.contains(name)));
    cockpit.press("w");
    cockpit.wait("an end", |screen| !watched(screen));
}

#[test]
fn a_fix_is_made_applied_and_undone_from_the_keyboard() {
    let test = TestEnvironment::new();
    let unused = "import sys\nimport os\n\n\ndef main():\n    print(sys.argv)\n";
    let file = test.write("a.py", unused);
    test.commit("an unused import");
    assert!(test.revdeck(&["review", "--wait"]).status.success());
    let mut cockpit = Cockpit::open(&test);
    cockpit.wait_for("Unused import");
    cockpit.press("F");
    cockpit.wait("the patch", |screen| screen.contains("Apply to a.py:2?") && screen.contains("- import os"));
    assert_eq!(std::fs::read_to_string(&file).expect("a file"), unused, "looking touches nothing");
    cockpit.press("\r");
    cockpit.wait_for("applied: 1 file");
    assert_eq!(std::fs::read_to_string(&file).expect("a file"), unused.replace("import os\n", ""));
    let store = test.store();
    let status = || store.view().expect("a view").finding(0).status;
    assert_eq!(status(), revdeck::domain::FindingStatus::Addressed);
    cockpit.press("q");
    assert_eq!(cockpit.end(), 0);
    // Another cockpit shows it too.
    let mut cockpit = Cockpit::open(&test);
    cockpit.press("2f");
    cockpit.wait_for("Enter accept");
    cockpit.press("\x15status:all");
    cockpit.wait_for("filter  status:all");
    cockpit.press("\r");
    cockpit.wait("the page without the prompt", |screen| {
        screen.contains("applied, made by builtin") && !screen.contains("Enter accept")
    });
    cockpit.press("F");
    cockpit.wait_for("undo it");
    cockpit.press("2");
    cockpit.wait_for("Take the patch out of your files again");
    cockpit.press("y");
    cockpit.wait_for("the patch is out of your files");
    assert_eq!(std::fs::read_to_string(&file).expect("a file"), unused);
    // The decision keys treat a fix as several findings.
    cockpit.press("\x12");
    cockpit.wait_for("took a fix out");
    cockpit.press("y");
    cockpit.wait_for("applied: 1 file");
    cockpit.press("u");
    cockpit.wait_for("applied a fix");
    assert_ne!(std::fs::read_to_string(&file).expect("a file"), unused, "it asks first");
    cockpit.press("y");
    cockpit.wait_for("the patch is out of your files");
    assert_eq!(std::fs::read_to_string(&file).expect("a file"), unused);
    assert_eq!(status(), revdeck::domain::FindingStatus::Open);
    cockpit.press("q");
    assert_eq!(cockpit.end(), 0);
    cockpit.assert_restored();
}

#[test]
fn knowledge_is_muted_exported_and_forgotten_from_the_keyboard() {
    let test = repository();
    let (broken, fixed) = ("FUNCTION_NAME ( NUMBER ) + NUMBER", "FUNCTION_NAME_2 ( NUMBER )");
    let id = revdeck::domain::PatternId::from_forms("python", broken, fixed);
    let pattern = serde_json::json!({
        "id": id.as_str(), "language": "python", "stance": "mistake", "edit": "wrong_call", "kind": "CORRECTNESS",
        "broken": broken, "fixed": fixed, "evidence": "addressed",
        "counts": { format!("m_{:026}", 1): { "frequency": 30, "successes": 8, "failures": 1 } },
        "first_seen": "2026-01-01T00:00:00Z", "last_seen": "2026-02-01T00:00:00Z",
    });
    let file = test.home().with_file_name("theirs.json");
    let shared = serde_json::json!({ "version": 1, "patterns": [pattern] });
    std::fs::write(&file, shared.to_string()).expect("written");
    assert!(test.revdeck(&["knowledge", "import", file.to_str().expect("text")]).status.success());
    assert!(test.revdeck(&["review", "--wait"]).status.success());
    let shown = || {
        let output = test.revdeck(&["knowledge", "show", id.as_str(), "--format", "json"]);
        serde_json::from_slice::<serde_json::Value>(&output.stdout).ok().map(|shown| shown["pattern"]["muted"].clone())
    };
    let mut cockpit = Cockpit::open(&test);
    cockpit.wait_for("History");
    cockpit.press("K");
    cockpit.wait("its page", |screen| screen.contains("+ FUNCTION_NAME_2 ( NUMBER )") && screen.contains("89 %"));
    cockpit.press("e");
    cockpit.wait_for("~/revdeck-knowledge.json");
    cockpit.press("\r");
    cockpit.wait_for("1 pattern in ");
    let exported = std::fs::read_to_string(test.home().with_file_name("revdeck-knowledge.json")).expect("an export");
    assert!(exported.contains(id.as_str()), "{exported}");
    cockpit.press("m");
    cockpit.wait_for("muted: it is not used");
    assert_eq!(shown(), Some(true.into()), "it is stored when the screen says so");
    assert_silent(&cockpit);
    cockpit.press("D");
    cockpit.wait_for("Forget this pattern for good?");
    cockpit.press("y");
    cockpit.wait("a list without it", |screen| {
        screen.contains("forgotten: it is neither") && !screen.contains("FUNCTION_NAME_2 ( NUMBER )")
    });
    assert_eq!(shown(), None);
    cockpit.press("K");
    cockpit.wait_for("History");
    cockpit.press("q");
    assert_eq!(cockpit.end(), 0);
    cockpit.assert_restored();
}
