//! Ctrl-C handling while a command waits for a review. The review continues; the command exits with 130.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::SIGINT;
use signal_hook::flag;
use signal_hook::iterator::Signals;

use super::error::CliExitCode;

/// Installs a Ctrl-C handler that prints `message` and exits with 130. If that fails, the default handler ends the
/// process. A second Ctrl-C exits at once, because nobody may read the message.
pub fn exit_on_interrupt(message: String) {
    let Ok(mut signals) = Signals::new([SIGINT]) else { return };
    let has_interrupted = Arc::new(AtomicBool::new(false));
    // The check comes first, so that the first signal passes it. Without both, only the message ends the process.
    let status = CliExitCode::Interrupted as i32;
    let _ = flag::register_conditional_shutdown(SIGINT, status, Arc::clone(&has_interrupted))
        .and_then(|_| flag::register(SIGINT, has_interrupted));
    std::thread::spawn(move || {
        if signals.forever().next().is_some() {
            // A progress line may be on the current line, so start a new one.
            let _ = writeln!(std::io::stderr(), "\n{message}");
            std::process::exit(status);
        }
    });
}
