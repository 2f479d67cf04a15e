//! What differs between operating systems: detached children, signals, process groups, who we are.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The program that is running, also after its file was replaced by an upgrade.
pub(super) fn program() -> std::io::Result<PathBuf> {
    let program = std::env::current_exe()?;
    let image = Path::new("/proc/self/exe");
    Ok(if !program.exists() && image.exists() { image.to_owned() } else { program })
}

/// A command that outlives us and our terminal: its standard input (for a worker a locked file), output to a log, a process
/// group of its own.
/// (No `pre_exec`, so that the standard library can use the cheap way to start a process.)
pub(super) fn detached(
    program: &Path,
    arguments: &[OsString],
    folder: &Path,
    input: impl Into<Stdio>,
    log: Option<File>,
) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).stdin(input);
    match log.and_then(|log| Some((log.try_clone().ok()?, log))) {
        Some((output, errors)) => command.stdout(output).stderr(errors),
        None => command.stdout(Stdio::null()).stderr(Stdio::null()),
    };
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command
}

/// A file for what detached processes have to say, which is only what went wrong; none when it cannot be written.
pub(super) fn log(folder: &Path, name: &str) -> Option<File> {
    std::fs::create_dir_all(folder).ok()?;
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(folder.join(name)).ok()
}

/// Gives up the lock that came with standard input, before this process ends.
#[cfg(unix)]
pub(super) fn unlock_input() {
    use std::os::fd::AsFd;
    // The lock belongs to the open file, however many descriptors name it.
    if let Ok(input) = std::io::stdin().as_fd().try_clone_to_owned() {
        let _ = File::from(input).unlock();
    }
}

#[cfg(not(unix))]
pub(super) fn unlock_input() {
    use std::os::windows::io::AsHandle;
    if let Ok(input) = std::io::stdin().as_handle().try_clone_to_owned() {
        let _ = File::from(input).unlock();
    }
}

/// From here on the end of a terminal or an interrupt typed into it does not end this process.
#[cfg(unix)]
pub(super) fn ignore_the_terminal() {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU};
    // A handler that only sets a flag nobody reads: the library has no safe way to ignore a signal.
    let nobody = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU] {
        let _ = signal_hook::flag::register(signal, std::sync::Arc::clone(&nobody));
    }
}

#[cfg(not(unix))]
pub(super) fn ignore_the_terminal() {}

/// Kills the process group that `worker` leads, and nothing when it leads none: a worker is started as the leader of
/// its own group, so a number that was given to another process meanwhile is most likely not one.
#[cfg(unix)]
pub(super) fn kill_group(worker: u32) {
    use rustix::process::{Pid, Signal, getpgid, kill_process_group};
    let Some(leader) = i32::try_from(worker).ok().filter(|&number| number > 1).and_then(Pid::from_raw) else { return };
    if getpgid(Some(leader)) == Ok(leader) {
        let _ = kill_process_group(leader, Signal::KILL);
    }
}

#[cfg(not(unix))]
pub(super) fn kill_group(_worker: u32) {}

/// Asks a process to end, as an interrupt would.
#[cfg(unix)]
pub(super) fn ask_to_end(process: u32) {
    use rustix::process::{Pid, Signal, kill_process};
    let pid = i32::try_from(process).ok().filter(|&number| number > 1).and_then(Pid::from_raw);
    if let Some(pid) = pid {
        let _ = kill_process(pid, Signal::TERM);
    }
}

#[cfg(not(unix))]
pub(super) fn ask_to_end(_process: u32) {}

/// `user@host`.
pub(super) fn owner() -> String {
    let variable = |name| std::env::var(name).ok().filter(|value: &String| !value.is_empty());
    let user =
        variable("USER").or_else(|| variable("LOGNAME")).or_else(|| variable("USERNAME")).unwrap_or_else(user_id);
    format!(
        "{user}@{}",
        host().or_else(|| variable("HOSTNAME")).or_else(|| variable("COMPUTERNAME")).unwrap_or_default()
    )
}

#[cfg(unix)]
fn user_id() -> String {
    rustix::process::getuid().as_raw().to_string()
}

#[cfg(not(unix))]
fn user_id() -> String {
    String::new()
}

#[cfg(unix)]
fn host() -> Option<String> {
    Some(rustix::system::uname().nodename().to_string_lossy().into_owned())
}

#[cfg(not(unix))]
fn host() -> Option<String> {
    None
}
