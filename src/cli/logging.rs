//! Log file, written only if `REVDECK_LOG` is set. Without the variable nothing is set up.

use std::sync::Mutex;

use super::error::CliError;
use crate::config::Paths;

/// Starts logging to `revdeck-<pid>.log` in `paths.logs`, if `REVDECK_LOG` names a level.
///
/// # Errors
///
/// Returns an error if the level is unknown or the file cannot be created.
pub fn start(paths: &Paths) -> Result<(), CliError> {
    let Some(wanted) = std::env::var_os("REVDECK_LOG").filter(|value| !value.is_empty()) else { return Ok(()) };
    let level: tracing::Level = wanted.to_str().and_then(|word| word.parse().ok()).ok_or_else(|| {
        CliError::usage(format!("REVDECK_LOG is {wanted:?}")).hint("allowed: error, warn, info, debug, trace")
    })?;
    let path = paths.logs.join(format!("revdeck-{}.log", std::process::id()));
    let file = crate::store::files::open_log(&path)?;
    tracing_subscriber::fmt().with_max_level(level).with_ansi(false).with_writer(Mutex::new(file)).init();
    tracing::info!(arguments = ?std::env::args_os().collect::<Vec<_>>(), "started");
    Ok(())
}
