//! Plays a session in the real cockpit and writes pictures of it: a still and an animation, both SVG.
//!
//! ```text
//! cargo build --release
//! cargo run --release --example record_session -- target/release/revdeck assets/pictures
//! ```
//!
//! The session runs in a pseudo-terminal on a small repository that is made for it, in a home of its own.

use std::error::Error;
use std::fs;
use std::io::{Read, Write};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use portable_pty::{CommandBuilder, PtySize, native_pty_system};

#[path = "screen_picture.rs"]
mod screen_picture;

use screen_picture::{Frame, render_animation, render_still};

const COLUMNS: u16 = 120;
const ROWS: u16 = 34;
/// Time for which the screen must not change before it is taken as the answer to a key.
const QUIET: Duration = Duration::from_millis(250);
/// Time after which a key that changes nothing is an error.
const PATIENCE: Duration = Duration::from_secs(20);

/// Keys of the session, each with the seconds for which its screen is shown.
const SESSION: [(&str, f32); 12] = [
    ("", 2.5),
    ("j", 1.0),
    ("j", 1.5),
    ("l", 2.0),
    ("h", 0.8),
    ("r", 2.5),
    ("\x1b", 0.8),
    ("t", 2.5),
    ("1", 1.2),
    ("a", 1.8),
    ("\x1b", 1.2),
    ("?", 2.5),
];
/// Index in [`SESSION`] of the screen that the still shows.
const STILL: usize = 2;

/// Files of the repository before and after the change that is reviewed.
const BEFORE: [(&str, &str); 2] = [
    ("src/client.py", include_str!("session/client_before.py")),
    ("src/report.py", include_str!("session/report_before.py")),
];
const AFTER: [(&str, &str); 2] = [
    ("src/client.py", include_str!("session/client_after.py")),
    ("src/report.py", include_str!("session/report_after.py")),
];

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [program, folder] = arguments.as_slice() else {
        return Err("usage: record_session REVDECK FOLDER".into());
    };
    let program = fs::canonicalize(program)?;
    let place = tempfile::tempdir()?;
    let (repository, home) = (place.path().join("billing"), place.path().join("home"));
    make_repository(&repository)?;
    run(revdeck(&program, &home).current_dir(&repository).args(["review", "--commit", "HEAD", "--wait"]))?;
    write_files(&repository, &AFTER)?;
    run(revdeck(&program, &home).current_dir(&repository).args(["review", "--wait"]))?;
    let frames = play(&program, &home, &repository)?;
    fs::create_dir_all(folder)?;
    fs::write(folder.join("cockpit.svg"), render_still(&frames[STILL]))?;
    fs::write(folder.join("session.svg"), render_animation(&frames))?;
    Ok(())
}

fn revdeck(program: &Path, home: &Path) -> Command {
    let mut command = Command::new(program);
    command.env("REVDECK_HOME", home);
    command
}

fn run(command: &mut Command) -> Result<(), Box<dyn Error>> {
    let output = command.output()?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)).into()),
    }
}

fn make_repository(repository: &Path) -> Result<(), Box<dyn Error>> {
    write_files(repository, &BEFORE)?;
    let git = |arguments: &[&str]| {
        run(Command::new("git")
            .current_dir(repository)
            .args(["-c", "user.name=A", "-c", "user.email=a@example.org"])
            .args(arguments))
    };
    git(&["init", "-q", "-b", "main"])?;
    git(&["add", "-A"])?;
    git(&["commit", "-q", "-m", "A client and a report"])
}

fn write_files(repository: &Path, files: &[(&str, &str)]) -> Result<(), Box<dyn Error>> {
    for (path, text) in files {
        let file = repository.join(path);
        fs::create_dir_all(file.parent().ok_or("a file has a folder")?)?;
        // The key of the sample is put together here, so that no scanner takes this repository for one with a secret.
        fs::write(file, text.replace("KEY_PREFIX", "sk_live_"))?;
    }
    Ok(())
}

/// Plays the session and returns its screens.
fn play(program: &Path, home: &Path, repository: &Path) -> Result<Vec<Frame>, Box<dyn Error>> {
    let size = PtySize { rows: ROWS, cols: COLUMNS, pixel_width: 0, pixel_height: 0 };
    let pair = native_pty_system().openpty(size)?;
    let mut command = CommandBuilder::new(program);
    command.cwd(repository);
    command.env("REVDECK_HOME", home);
    command.env("TERM", "xterm-256color");
    command.env("COLORTERM", "truecolor");
    command.env("REVDECK_THEME", "dark");
    let mut child = pair.slave.spawn_command(command)?;
    let mut output = pair.master.try_clone_reader()?;
    let mut keys = pair.master.take_writer()?;
    let cells = |n| NonZero::new(n).ok_or("a size is not zero");
    let terminal = Arc::new(Mutex::new((vt100::Parser::new(cells(ROWS)?, cells(COLUMNS)?, 0), Instant::now())));
    let shared = Arc::clone(&terminal);
    std::thread::spawn(move || {
        let mut buffer = [0; 8192];
        while let Ok(count @ 1..) = output.read(&mut buffer) {
            let Ok(mut terminal) = shared.lock() else { return };
            terminal.0.process(&buffer[..count]);
            terminal.1 = Instant::now();
        }
    });
    let mut frames = Vec::new();
    for (pressed, seconds) in SESSION {
        keys.write_all(pressed.as_bytes())?;
        keys.flush()?;
        let begun = Instant::now();
        loop {
            std::thread::sleep(QUIET / 5);
            let terminal = terminal.lock().map_err(|_| "the reader of the terminal has failed")?;
            let is_quiet = terminal.1.elapsed() >= QUIET && begun.elapsed() >= QUIET;
            if is_quiet && !terminal.0.screen().contents().trim().is_empty() {
                frames.push(Frame::from_screen(terminal.0.screen(), seconds));
                break;
            }
            if begun.elapsed() > PATIENCE {
                return Err(format!("the screen does not come to rest after {pressed:?}").into());
            }
        }
    }
    child.kill()?;
    child.wait()?;
    Ok(frames)
}
