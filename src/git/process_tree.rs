//! Finds and ends the processes that a program has started, as `/proc` lists them. Other systems than Linux know only
//! the program itself.

use rustix::process::{Pid, Signal, kill_process};

/// Maximum number of characters of a program's name in a message.
const MAX_NAME_CHARS: usize = 80;

/// Converts a process id as the standard library returns it.
fn pid(process: u32) -> Option<Pid> {
    i32::try_from(process).ok().filter(|number| *number > 1).and_then(Pid::from_raw)
}

/// Ends a process and all its descendants at once.
pub fn kill(process: u32) {
    let Some(root) = pid(process) else { return };
    // A stopped process starts no other one. Each listing finds the children of those that were stopped before, until
    // a listing finds nobody new.
    let _ = kill_process(root, Signal::STOP);
    let mut tree = vec![root];
    loop {
        let started: Vec<Pid> = descendants(root).into_iter().filter(|process| !tree.contains(process)).collect();
        if started.is_empty() {
            break;
        }
        for process in &started {
            let _ = kill_process(*process, Signal::STOP);
        }
        tree.extend(started);
    }
    for process in tree {
        let _ = kill_process(process, Signal::KILL);
    }
}

/// Returns the name of the program that git waits for: the first of its descendants that is not git, else the last
/// one. `None` when git has started no program.
pub fn find_blocking_program(git: u32) -> Option<String> {
    let started: Vec<Vec<String>> =
        descendants(pid(git)?).into_iter().map(command_line).filter(|words| !words.is_empty()).collect();
    let is_git = |words: &&Vec<String>| {
        let program = words[0].rsplit('/').next().unwrap_or_default();
        program == "git" || program.starts_with("git-remote-")
    };
    let words = started.iter().find(|words| !is_git(words)).or(started.last())?;
    // git starts a configured program with `sh -c LINE LINE arguments`.
    let name = match words.as_slice() {
        [shell, flag, line, ..] if flag == "-c" && shell.ends_with("sh") => line.clone(),
        words => words.join(" "),
    };
    Some(name.chars().take(MAX_NAME_CHARS).collect())
}

/// Returns the arguments of a process, the program first; empty when the process is gone.
#[cfg(target_os = "linux")]
fn command_line(process: Pid) -> Vec<String> {
    let words = std::fs::read(format!("/proc/{}/cmdline", process.as_raw_nonzero())).unwrap_or_default();
    let words = words.split(|byte| *byte == 0).filter(|word| !word.is_empty());
    words.map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

#[cfg(not(target_os = "linux"))]
fn command_line(_: Pid) -> Vec<String> {
    Vec::new()
}

/// Returns all descendants of a process: children before grandchildren.
#[cfg(target_os = "linux")]
pub fn descendants(root: Pid) -> Vec<Pid> {
    let mut parents: Vec<(Pid, Pid)> = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(process) = entry.file_name().to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw)
        else {
            continue;
        };
        // The format is `12 (name) S 1 ...`; the name may contain any character, even brackets.
        let Ok(status) = std::fs::read(entry.path().join("stat")) else { continue };
        let after = memchr::memrchr(b')', &status).and_then(|at| status.get(at + 1..)).unwrap_or_default();
        let parent = String::from_utf8_lossy(after).split_whitespace().nth(1).and_then(|word| word.parse().ok());
        parents.extend(parent.and_then(Pid::from_raw).map(|parent| (process, parent)));
    }
    let mut found = vec![root];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        found.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(process, _)| *process));
        next += 1;
    }
    found.remove(0);
    found
}

#[cfg(not(target_os = "linux"))]
pub fn descendants(_: Pid) -> Vec<Pid> {
    Vec::new()
}
