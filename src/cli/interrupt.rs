//! Ctrl-C while a review is waited for: the review goes on, the waiting ends with 130.

use std::io::Write;

use signal_hook::consts::SIGINT;
use signal_hook::iterator::Signals;

use super::error::CliExitCode;

/// From here on Ctrl-C prints `message` and ends this process. Where no handler can be set, the system's own stands,
/// which ends the process as well.
pub fn exit_on_interrupt(message: String) {
    let Ok(mut signals) = Signals::new([SIGINT]) else { return };
    std::thread::spawn(move || {
        if signals.forever().next().is_some() {
            // The progress line, if there is one, is on the same line.
            let _ = writeln!(std::io::stderr(), "\n{message}");
            std::process::exit(CliExitCode::Interrupted as i32);
        }
    });
}
