//! Ctrl-C handling while a command waits for a review. The review continues; the command exits with 130.

use std::io::Write;

use signal_hook::consts::SIGINT;
use signal_hook::iterator::Signals;

use super::error::CliExitCode;

/// Installs a Ctrl-C handler that prints `message` and exits with 130. If that fails, the default handler ends the
/// process.
pub fn exit_on_interrupt(message: String) {
    let Ok(mut signals) = Signals::new([SIGINT]) else { return };
    std::thread::spawn(move || {
        if signals.forever().next().is_some() {
            // A progress line may be on the current line, so start a new one.
            let _ = writeln!(std::io::stderr(), "\n{message}");
            std::process::exit(CliExitCode::Interrupted as i32);
        }
    });
}
