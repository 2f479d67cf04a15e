//! Functions that differ between operating systems: detached children, signals, process groups, the current user.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::config::Paths;
use crate::git::Repo;
use crate::runner::RunnerError;

/// Variables with which git describes a repository to its children, such as hooks. A process that outlives the child
/// must not inherit them. The list is that of `git rev-parse --local-env-vars`, plus the variables that a push adds.
const GIT_VARIABLES: [&str; 16] = [
    ALTERNATES_VARIABLE,
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_NO_REPLACE_OBJECTS",
    OBJECTS_VARIABLE,
    "GIT_PREFIX",
    "GIT_QUARANTINE_PATH",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
];
/// The variables for additional object folders, and for another object folder.
const ALTERNATES_VARIABLE: &str = "GIT_ALTERNATE_OBJECT_DIRECTORIES";
const OBJECTS_VARIABLE: &str = "GIT_OBJECT_DIRECTORY";
/// Size in bytes above which a log is truncated, because nobody reads more.
const MAX_LOG_BYTES: u64 = 1 << 20;

/// Returns the path of the running program, even if an upgrade has replaced the file.
pub(super) fn current_program() -> std::io::Result<PathBuf> {
    let program = std::env::current_exe()?;
    let image = Path::new("/proc/self/exe");
    Ok(if !program.exists() && image.exists() { image.to_owned() } else { program })
}

/// Starts this program again in `folder`, as a process that outlives the caller and the terminal. The process has its
/// own process group and log, and inherits no git variables about the repository. `input` is its standard input; for a
/// worker it is a locked file, and the lock then belongs to the worker. Avoids `pre_exec`, so that the standard library
/// can use its fast way to start a process.
pub(super) fn spawn_detached(
    repo: &Repo,
    paths: &Paths,
    folder: &Path,
    arguments: &[&str],
    input: impl Into<Stdio>,
    log_name: &str,
) -> Result<Child, RunnerError> {
    let failed = |program: &Path, source| RunnerError::Spawn { program: program.display().to_string(), source };
    let program = current_program().map_err(|source| failed(Path::new("revdeck"), source))?;
    let mut command = Command::new(&program);
    command.args(arguments).current_dir(folder).stdin(input);
    match open_log(paths, log_name).and_then(|log| Some((log.try_clone().ok()?, log))) {
        Some((output, errors)) => command.stdout(output).stderr(errors),
        None => command.stdout(Stdio::null()).stderr(Stdio::null()),
    };
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    for name in GIT_VARIABLES {
        command.env_remove(name);
    }
    let objects = object_variables();
    let is_elsewhere = !objects.is_empty();
    command.envs(objects);
    if is_elsewhere || !repo.is_discoverable_from_worktree() {
        // For `git --git-dir=... --work-tree=... commit`, only these variables locate the repository.
        command.env("GIT_DIR", repo.git_dir()).env("GIT_WORK_TREE", repo.root());
    }
    if let Some(home) = paths.home() {
        // The variable may contain a path that is relative to another folder.
        command.env(Paths::HOME_VARIABLE, home);
    }
    command.spawn().map_err(|source| failed(&program, source))
}

/// Returns the variables with which the caller stores git objects elsewhere, because the snapshot is there. Returns
/// nothing during a push that is not accepted yet (quarantine), because the new process outlives the quarantine, and
/// nothing without `GIT_DIR`, because git then ignores them. The returned paths are absolute.
fn object_variables() -> Vec<(&'static str, OsString)> {
    let said = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    if said("GIT_DIR").is_none() || said("GIT_QUARANTINE_PATH").is_some() {
        return Vec::new();
    }
    let absolute = |folder: PathBuf| std::path::absolute(&folder).unwrap_or(folder);
    let objects = said(OBJECTS_VARIABLE).map(|folder| absolute(folder.into()).into_os_string());
    let others =
        said(ALTERNATES_VARIABLE).and_then(|all| std::env::join_paths(std::env::split_paths(&all).map(absolute)).ok());
    let found = [(OBJECTS_VARIABLE, objects), (ALTERNATES_VARIABLE, others)].into_iter();
    found.filter_map(|(name, value)| Some((name, value?))).collect()
}

/// Waits for a child on a sleeping thread, so that an ended child does not stay a zombie.
pub(super) fn reap(mut child: Child) {
    let reaper = std::thread::Builder::new().name("reaper".to_owned()).stack_size(64 * 1024);
    let _ = reaper.spawn(move || child.wait());
}

/// Opens a log file for detached processes, which write only errors. Returns `None` if the file cannot be opened.
/// Truncates a file that is too long.
pub(super) fn open_log(paths: &Paths, name: &str) -> Option<File> {
    let log = crate::store::files::open_log(&paths.logs.join(name)).ok()?;
    if log.metadata().is_ok_and(|seen| seen.len() > MAX_LOG_BYTES) {
        let _ = log.set_len(0);
    }
    Some(log)
}

/// Releases the lock on standard input before this process ends.
#[cfg(unix)]
pub(super) fn unlock_input() {
    use std::os::fd::AsFd;
    // The lock belongs to the open file, however many descriptors refer to it.
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

/// Largest memory limit of a worker or an indexer, in bytes. A review takes some hundred megabytes: it parses one file
/// per thread, the densest table of a megabyte takes 0.25 GB, and mapped packs do not count.
const MAX_WORKER_MEMORY: u64 = 8 << 30;
/// Smallest memory limit, in bytes. The stacks of the parser threads alone count for 64 MiB each.
const MIN_WORKER_MEMORY: u64 = 2 << 30;

/// Limits the memory of this process, so that a file that takes too much to parse ends this process and not the machine.
/// In a worker and an indexer, [`crate::syntax::parse_log`] then says which file it was.
///
/// Sets the soft limit of `RLIMIT_DATA` only: a child may raise it again, and read-only mappings do not count. A lower
/// soft limit stays. Has no effect on systems that do not count mappings, such as macOS.
#[cfg(unix)]
pub fn limit_memory() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Data);
    let limit = worker_memory(machine_memory());
    if current.is_none_or(|current| current > limit) {
        // The soft limit is lowered and the hard one stays, which is always allowed.
        let _ = setrlimit(Resource::Data, Rlimit { current: Some(limit), maximum });
    }
}

#[cfg(not(unix))]
pub fn limit_memory() {}

/// Returns the memory limit of a worker on a machine with `machine` bytes of memory, if that is known.
fn worker_memory(machine: Option<u64>) -> u64 {
    machine.map_or(MAX_WORKER_MEMORY, |bytes| (bytes / 2).clamp(MIN_WORKER_MEMORY, MAX_WORKER_MEMORY))
}

/// Returns the bytes of memory that the processes of this machine, or of this container, may have together.
#[cfg(target_os = "linux")]
#[allow(clippy::useless_conversion, reason = "the type is narrower on systems of 32 bits")]
fn machine_memory() -> Option<u64> {
    let system = rustix::system::sysinfo();
    let installed = u64::from(system.totalram).saturating_mul(u64::from(system.mem_unit.max(1)));
    // In a container, the root of the mounted tree is the container's group. The file says `max` without a limit.
    let group = std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok().and_then(|text| text.trim().parse().ok());
    Some(group.map_or(installed, |group: u64| group.min(installed)))
}

#[cfg(all(unix, not(target_os = "linux")))]
fn machine_memory() -> Option<u64> {
    None
}

/// Lowers the priority of this process.
#[cfg(unix)]
pub(super) fn stand_back() {
    // Raising the nice value is always allowed; a failure changes nothing but the priority.
    let _ = rustix::process::nice(10);
}

#[cfg(not(unix))]
pub(super) fn stand_back() {}

/// Lowers the priority of this thread and of those that it starts. Work that it hands to the pool keeps the priority of the pool.
/// Only Linux gives threads priorities of their own.
pub(super) fn lower_thread_priority() {
    #[cfg(target_os = "linux")]
    {
        // Whoever uses the pool first starts its threads, which serve everybody until the process ends.
        let _ = crate::parallel::pool();
        stand_back();
    }
}

/// Makes this process ignore the end of its terminal and the terminal's signals.
#[cfg(unix)]
pub(super) fn ignore_the_terminal() {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU};
    // The handler sets a flag that nobody reads, because the crate has no safe way to ignore a signal.
    let nobody = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU] {
        let _ = signal_hook::flag::register(signal, std::sync::Arc::clone(&nobody));
    }
}

#[cfg(not(unix))]
pub(super) fn ignore_the_terminal() {}

/// Kills the process group that `worker` leads. Does nothing if `worker` leads no group: a worker is started as the
/// leader of its own group, so a process that got the same id later is most likely not a leader.
#[cfg(unix)]
pub(crate) fn kill_group(worker: u32) {
    use rustix::process::{Pid, Signal, getpgid, kill_process_group};
    let Some(leader) = i32::try_from(worker).ok().filter(|&number| number > 1).and_then(Pid::from_raw) else { return };
    if getpgid(Some(leader)) == Ok(leader) {
        let _ = kill_process_group(leader, Signal::KILL);
    }
}

#[cfg(not(unix))]
pub(super) fn kill_group(_worker: u32) {}

/// Asks a process to end with SIGTERM.
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

/// Returns `user@host`.
pub(super) fn owner() -> String {
    let variable = |name| std::env::var(name).ok().filter(|value: &String| !value.is_empty());
    let user =
        variable("USER").or_else(|| variable("LOGNAME")).or_else(|| variable("USERNAME")).unwrap_or_else(user_id);
    format!("{user}@{}", host_name())
}

/// Returns the name of this machine; empty if it has none.
pub(crate) fn host_name() -> String {
    let variable = |name| std::env::var(name).ok().filter(|value: &String| !value.is_empty());
    host().or_else(|| variable("HOSTNAME")).or_else(|| variable("COMPUTERNAME")).unwrap_or_default()
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

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_worker_may_use_half_of_the_memory_within_bounds() {
        const GB: u64 = 1 << 30;
        for (machine, expected) in [
            (None, 8 * GB),
            (Some(GB), 2 * GB),
            (Some(4 * GB), 2 * GB),
            (Some(10 * GB), 5 * GB),
            (Some(64 * GB), 8 * GB),
        ] {
            assert_eq!(worker_memory(machine), expected, "{machine:?}");
        }
    }

    #[test]
    fn a_log_that_is_too_long_begins_anew() {
        let folder = tempfile::tempdir().expect("a folder");
        let paths = Paths::from_home(folder.path());
        let write = |bytes: usize| {
            let mut log = open_log(&paths, "a.log").expect("a log");
            log.write_all(&vec![b'x'; bytes]).expect("written");
            log.metadata().expect("there").len()
        };
        assert_eq!(write(1 << 19), 1 << 19);
        assert_eq!(write(1 << 19), 1 << 20);
        assert_eq!(write(1), MAX_LOG_BYTES + 1, "a log of just this length is not too long");
        assert_eq!(write(7), 7);
    }
}
