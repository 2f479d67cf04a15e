//! Measures `revdeck ledger` as an assistant calls it, with 10,000 runs and 100,000 findings: `cargo bench --bench ledger`.
//!
//! Prints the median and the worst time of a process, and its peak memory where the system tells it (Linux), for a
//! repository with few runs and for a large one. The goals are 20 ms, and memory that does not grow with the history.

#![allow(clippy::print_stdout)]

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use revdeck::git::Repo;
use revdeck::store::{RepoInfo, Store};

#[path = "support/sample.rs"]
mod sample;

/// Number of measured processes.
const PROCESSES: usize = 40;
/// Size of a pipe in bytes. A process that writes to a full one waits.
const PIPE_BYTES: usize = 1 << 16;

fn main() -> Result<(), Box<dyn Error>> {
    // `cargo test` only builds benches.
    if !std::env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    println!("{:>7} {:>9} {:>10} {:>10} {:>10}", "runs", "findings", "median", "worst", "peak");
    for (runs, findings) in [(10, 100), (10_000, 100_000)] {
        let place = folder.path().join(runs.to_string());
        fill(&place, runs, findings)?;
        let mut times = (0..PROCESSES).map(|_| measure_time(&place)).collect::<Result<Vec<_>, _>>()?;
        times.sort();
        let [median, worst] = [times[PROCESSES / 2], times[PROCESSES - 1]].map(|time| time.as_secs_f64() * 1000.0);
        let peak = measure_peak(&place)?.map_or("unknown".to_owned(), |kilobytes| format!("{} MB", kilobytes / 1000));
        println!("{runs:>7} {findings:>9} {median:>7.1} ms {worst:>7.1} ms {peak:>10}");
    }
    Ok(())
}

/// Makes a repository with generated files and a store about it.
fn fill(place: &Path, runs: usize, findings: usize) -> Result<(), Box<dyn Error>> {
    let root = place.join("repo");
    let mut shape = sample::Shape::of(runs, findings);
    for path in &shape.paths {
        let file = root.join(path);
        fs::create_dir_all(file.parent().unwrap_or(&root))?;
        fs::write(file, "total = 1\n")?;
    }
    for arguments in
        [&["init", "-q"][..], &["add", "."], &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a"]]
    {
        Command::new("git").args(arguments).current_dir(&root).status()?;
    }
    let repo = Repo::discover(&root)?;
    let (key, name) = (repo.key(), repo.name());
    let info = RepoInfo { version: 1, key, name, common_dir: repo.common_dir().display().to_string() };
    let store = Store::open(&place.join("home/state"), info)?;
    shape.until = revdeck::domain::Time::now();
    shape.head = repo.head();
    shape.worktree = repo.root().display().to_string();
    sample::fill(&store, &shape)?;
    store.view()?;
    Ok(())
}

fn ledger(place: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_revdeck"));
    command.args(["ledger", "--agent", "claude-code", "--session", "s"]).current_dir(place.join("repo"));
    command.env("REVDECK_HOME", place.join("home")).stdin(Stdio::null());
    command
}

fn measure_time(place: &Path) -> Result<Duration, Box<dyn Error>> {
    let mut command = ledger(place);
    let started = Instant::now();
    let output = command.output()?;
    let time = started.elapsed();
    if output.stdout.is_empty() {
        return Err("the ledger is empty".into());
    }
    Ok(time)
}

/// Returns the peak memory of a process in kilobytes. Its output is a full pipe, so that it waits at its end.
fn measure_peak(place: &Path) -> Result<Option<u64>, Box<dyn Error>> {
    if !cfg!(target_os = "linux") {
        return Ok(None);
    }
    let (reader, mut writer) = std::io::pipe()?;
    std::io::Write::write_all(&mut writer, &[b' '; PIPE_BYTES])?;
    let mut child = ledger(place).stdout(writer).spawn()?;
    std::thread::sleep(Duration::from_millis(500));
    let status = fs::read_to_string(format!("/proc/{}/status", child.id()))?;
    drop(reader);
    child.wait()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    Ok(peak.and_then(|peak| peak.trim().trim_end_matches(" kB").parse().ok()))
}
