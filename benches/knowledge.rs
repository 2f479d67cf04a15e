//! Measures learning from edits, and the time that reading the sites of files adds to parsing. Target: 10,000 edits
//! from histories in 30 s, with `revdeck knowledge learn` on all cores, including reads and writes.
//!
//! ```text
//! cargo bench --bench knowledge                                             # this repository, one thread
//! REVDECK_BENCH_REPOS=~/src/a:~/src/b.git cargo bench --bench knowledge     # and all of these histories
//! ```

#![allow(clippy::print_stdout)]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use revdeck::knowledge::abstraction::{extract_edits, visit_sites};
use revdeck::syntax::language::Language;
use revdeck::syntax::source::Parsers;
use serde_json::Value;

type Failure = Box<dyn std::error::Error>;

/// The number of edits that are learned from this repository's sources, about the same number for each file.
const EDITS: usize = 10_000;
const EDITS_A_FILE: usize = 24;

fn main() -> Result<(), Failure> {
    let files = rust_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"))?;
    mutated(&files)?;
    read(&files)?;
    let repos = std::env::var("REVDECK_BENCH_REPOS").unwrap_or_default();
    let (mut edits, mut seconds) = (0, 0.0);
    for path in repos.split(':').filter(|path| !path.is_empty()) {
        let (of_path, took) = learned(path)?;
        edits += of_path;
        seconds += took;
    }
    if edits > 0 {
        let a_second = edits as f64 / seconds;
        println!("{edits} edits of histories: {a_second:.0} a second, {EDITS} in {:.1} s", EDITS as f64 / a_second);
    }
    Ok(())
}

fn rust_files(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Applies one mistake at a time, because a fix is one edit of a whole file.
fn mutated(files: &[PathBuf]) -> Result<(), Failure> {
    let (mut parsers, mut seconds, mut learned, mut forms, mut bytes) = (Parsers::default(), 0.0, 0, 0, 0);
    for path in files.iter().cycle() {
        let text = std::fs::read_to_string(path)?;
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        for at in (0..lines.len()).step_by(lines.len().div_ceil(EDITS_A_FILE).max(1)) {
            let mut changed = lines.clone();
            let line = lines[at].replace(" == ", " != ").replace("&&", "||").replace('?', ".ok()").replace("(&", "(");
            changed[at] = if line == lines[at] && line.ends_with(";\n") { "" } else { &line };
            let changed = changed.concat();
            let start = Instant::now();
            let found = extract_edits(&mut parsers, Language::Rust, text.as_bytes(), changed.as_bytes());
            seconds += start.elapsed().as_secs_f64();
            learned += usize::from(!found.is_empty());
            forms += found.len();
            bytes += text.len() + changed.len();
            if learned == EDITS {
                println!(
                    "{EDITS} edits of this repository: {seconds:.1} s, {forms} pairs of forms, {:.0} KB a file",
                    bytes as f64 / 2e3 / EDITS as f64
                );
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Reads the sites of all files and compares the time with parsing.
fn read(files: &[PathBuf]) -> Result<(), Failure> {
    let (mut parsers, mut parsing, mut reading, mut lines, mut found) = (Parsers::default(), 0.0, 0.0, 0, 0);
    for path in files {
        let text = std::fs::read(path)?;
        let start = Instant::now();
        let source = parsers.parse("a.rs", Language::Rust, &text)?;
        parsing += start.elapsed().as_secs_f64();
        let start = Instant::now();
        visit_sites(&source, None, &mut |site| found += usize::from(site.digest != 0));
        reading += start.elapsed().as_secs_f64();
        lines += text.iter().filter(|byte| **byte == b'\n').count();
    }
    println!("{lines} lines: parsing {parsing:.2} s, {found} sites {reading:.2} s");
    Ok(())
}

/// Learns the whole history of a repository with the command: on all cores, including the write of the results.
fn learned(path: &str) -> Result<(u64, f64), Failure> {
    let home = tempfile::tempdir()?;
    let start = Instant::now();
    let output = Command::new(env!("CARGO_BIN_EXE_revdeck"))
        .args(["knowledge", "learn", "--history", &u32::MAX.to_string(), "--format", "json", "--repo", path])
        .env("REVDECK_HOME", home.path())
        .stderr(Stdio::inherit())
        .output()?;
    let seconds = start.elapsed().as_secs_f64();
    let said: Value = serde_json::from_slice(&output.stdout)?;
    let edits = said["edits"].as_u64().ok_or("a command without edits")?;
    println!(
        "{path}: {} commits, {} fixes, {edits} edits, {} new patterns, {seconds:.1} s",
        said["commits"], said["fixes"], said["learned"]["new"]
    );
    Ok((edits, seconds))
}
