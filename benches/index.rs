//! Measures the index of a repository: cold build, update after one changed file, opening, memory and disk, for 0.25,
//! 0.5, 1 and 2 million lines. Targets on two cores with a million lines: 5 s cold, 50 ms after one changed file, 10
//! ms to open, 600 MB of memory, 60 MB on disk.
//!
//! ```text
//! cargo bench --bench index                                             # this repository, whatever its size
//! REVDECK_BENCH_REPOS=~/src/a:~/src/b.git cargo bench --bench index     # files of several repositories, mixed
//! REVDECK_BENCH_LINES=1000000 cargo bench --bench index                 # one size
//! ```

#![allow(clippy::print_stdout)]

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use git2::{Index as Files, IndexEntry, IndexTime, ObjectType, Oid, Repository, TreeWalkMode};
use revdeck::git::{Repo, ReviewFilter};
use revdeck::index::{Index, IndexProgress};
use revdeck::syntax::language::Language;
use revdeck::syntax::source::Parsers;
use revdeck::tokens::{Encoding, count_tokens};

type Failure = Box<dyn std::error::Error>;

/// The variable that makes a new process build the index, so that its memory is measured alone: repository, folder
/// and commit.
const COLD: &str = "REVDECK_BENCH_COLD";

struct File {
    path: String,
    blob: Oid,
    lines: usize,
    bytes: usize,
}

fn main() -> Result<(), Failure> {
    if let Ok(asked) = std::env::var(COLD) {
        return cold(&asked);
    }
    let repos = std::env::var("REVDECK_BENCH_REPOS").unwrap_or_else(|_| env!("CARGO_MANIFEST_DIR").to_owned());
    let repos: Vec<PathBuf> = repos.split(':').map(PathBuf::from).collect();
    let folder = tempfile::tempdir()?;
    let mixed = mixed(folder.path(), &repos)?;
    let files = files(&mixed, &repos)?;
    let all: usize = files.iter().map(|file| file.lines).sum();
    println!("{} files with {all} lines in {} repositories", files.len(), repos.len());
    let sizes = match std::env::var("REVDECK_BENCH_LINES") {
        Ok(lines) => vec![lines.parse()?],
        Err(_) => vec![250_000, 500_000, 1_000_000, 2_000_000],
    };
    count_tokens(Encoding::O200kBase, "the table of the encoding is unpacked");
    println!(
        "   lines files     MB | cold s  lines/s  cpu s | parse s  cpu s | one file ms open ms first lookup ms | peak MB disk MB"
    );
    for lines in sizes.into_iter().filter(|lines| *lines <= all.max(250_000)) {
        measure(&mixed, &files, lines)?;
    }
    Ok(())
}

/// Creates a repository that has the objects of all the others.
fn mixed(folder: &Path, repos: &[PathBuf]) -> Result<Repository, Failure> {
    let mixed = Repository::init_bare(folder.join("mixed.git"))?;
    let mut alternates = String::new();
    for repo in repos {
        let objects = Repository::open(repo)?.commondir().join("objects").canonicalize()?;
        alternates += &format!("{}\n", objects.display());
    }
    std::fs::write(mixed.path().join("objects/info/alternates"), alternates)?;
    Ok(Repository::open(mixed.path())?)
}

/// Returns the indexed files in a fixed order that mixes the repositories.
fn files(mixed: &Repository, repos: &[PathBuf]) -> Result<Vec<File>, Failure> {
    let mut judge = ReviewFilter::without_attributes(1_000_000);
    let mut files = Vec::new();
    for (number, path) in repos.iter().enumerate() {
        let repo = Repository::open(path)?;
        let tree = repo.head()?.peel_to_tree()?;
        tree.walk(TreeWalkMode::PreOrder, |folder, entry| {
            if entry.kind() == Some(ObjectType::Blob)
                && entry.filemode() & 0o170_000 == 0o100_000
                && let Ok(name) = entry.name()
                && let Ok(blob) = mixed.find_blob(entry.id())
            {
                let path = format!("r{number}/{folder}{name}");
                let text = blob.content();
                if Language::detect(&path, text).is_some() && judge.left_out_reason(&path, text).is_none() {
                    let lines = text.iter().filter(|byte| **byte == b'\n').count();
                    files.push(File { path, blob: entry.id(), lines, bytes: text.len() });
                }
            }
            git2::TreeWalkResult::Ok
        })?;
    }
    // Whole folders stay together, as in one repository.
    files.sort_by_cached_key(|file| {
        let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        (blake(folder), file.path.clone())
    });
    Ok(files)
}

fn blake(text: &str) -> [u8; 32] {
    *blake3::hash(text.as_bytes()).as_bytes()
}

fn commit(repo: &Repository, files: &[(&str, Oid)]) -> Result<String, Failure> {
    let mut index = Files::new()?;
    let zero = IndexTime::new(0, 0);
    for (path, blob) in files {
        index.add(&IndexEntry {
            ctime: zero,
            mtime: zero,
            dev: 0,
            ino: 0,
            mode: 0o100_644,
            uid: 0,
            gid: 0,
            file_size: 0,
            id: *blob,
            flags: 0,
            flags_extended: 0,
            path: path.as_bytes().to_vec(),
        })?;
    }
    let tree = repo.find_tree(index.write_tree_to(repo)?)?;
    let author = git2::Signature::new("bench", "bench@example.org", &git2::Time::new(0, 0))?;
    Ok(repo.commit(None, &author, &author, "bench", &tree, &[])?.to_string())
}

fn measure(mixed: &Repository, files: &[File], lines: usize) -> Result<(), Failure> {
    let mut taken = Vec::new();
    let (mut have, mut bytes) = (0, 0);
    for file in files {
        if have >= lines {
            break;
        }
        (have, bytes) = (have + file.lines, bytes + file.bytes);
        taken.push((file.path.as_str(), file.blob));
    }
    let commit_id = commit(mixed, &taken)?;
    let repo = Repo::discover(mixed.path())?;
    let home = tempfile::tempdir()?;
    let go_on = |_: IndexProgress| ControlFlow::Continue(());
    let refresh = |commit: &str| Index::refresh(home.path(), &repo, commit, &go_on);

    let asked = format!("{}\n{}\n{commit_id}", mixed.path().display(), home.path().display());
    let output = std::process::Command::new(std::env::current_exe()?).env(COLD, asked).output()?;
    let said = String::from_utf8(output.stdout)?;
    let [cold, processor, peak, disk] = said.split_whitespace().collect::<Vec<_>>()[..] else {
        return Err(said.into());
    };
    let cold: f64 = cold.parse()?;
    let before = processor_seconds();
    let parse = parsing(mixed, &taken);
    let parse_processor = processor_seconds() - before;

    let mut one = Vec::new();
    for round in 0..7 {
        let at = taken.len() * (round + 1) / 9;
        let mut text = mixed.find_blob(taken[at].1)?.content().to_vec();
        text.extend_from_slice(format!("// {round}\n").as_bytes());
        taken[at].1 = mixed.blob(&text)?;
        let commit_id = commit(mixed, &taken)?;
        let (took, refreshed) = timed(|| refresh(&commit_id));
        assert_eq!(refreshed?.read, 1);
        one.push(took);
    }
    let commit_id = commit(mixed, &taken)?;
    let (mut open, mut first) = (Vec::new(), Vec::new());
    for _ in 0..7 {
        let (took, index) = timed(|| Index::open(home.path(), &repo, &commit_id));
        open.push(took);
        let index = index?.ok_or("no index")?;
        let (took, found) =
            timed(|| Ok::<_, Failure>((index.files_with("index")?.len(), index.files_that_declare("index")?.len())));
        assert!(found?.0 > 0);
        first.push(took);
    }
    println!(
        "{have:>8} {:>5} {:>6.1} | {cold:>6.2} {:>8.0} {processor:>6} | {:>7.2} {parse_processor:>6.1} | {:>11.1} {:>7.1} \
         {:>15.1} | {peak:>7} {disk:>7}",
        taken.len(),
        bytes as f64 / 1e6,
        have as f64 / cold,
        parse.as_secs_f64(),
        median(one),
        median(open),
        median(first),
    );
    Ok(())
}

/// Builds an index and prints its cost: seconds, processor seconds, peak megabytes, megabytes on disk.
fn cold(asked: &str) -> Result<(), Failure> {
    let [repo, home, commit] = asked.lines().collect::<Vec<_>>()[..] else { return Err(asked.into()) };
    let repo = Repo::discover(Path::new(repo))?;
    let (took, refreshed) = timed(|| Index::refresh(Path::new(home), &repo, commit, &|_| ControlFlow::Continue(())));
    refreshed?;
    let mut disk = 0;
    for entry in std::fs::read_dir(home)? {
        disk += entry?.metadata()?.len();
    }
    let disk = disk as f64 / 1e6;
    println!("{:.2} {:.1} {} {disk:.1}", took.as_secs_f64(), processor_seconds(), peak_mb());
    Ok(())
}

fn timed<T>(run: impl FnOnce() -> T) -> (Duration, T) {
    let start = Instant::now();
    let result = run();
    (start.elapsed(), result)
}

/// Returns the median in milliseconds.
fn median(mut took: Vec<Duration>) -> f64 {
    took.sort();
    took[took.len() / 2].as_secs_f64() * 1e3
}

/// Returns the time to read and parse the same files on as many threads: the remaining time belongs to the index.
fn parsing(mixed: &Repository, files: &[(&str, Oid)]) -> Duration {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let (path, start) = (mixed.path(), Instant::now());
    std::thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || {
                let Ok(repo) = Repository::open(path) else { return };
                let mut parsers = Parsers::default();
                for (path, blob) in files.iter().skip(thread).step_by(threads) {
                    let Ok(blob) = repo.find_blob(*blob) else { continue };
                    if let Some(language) = Language::detect(path, blob.content()) {
                        let _ = parsers.parse(path, language, blob.content());
                    }
                }
            });
        }
    });
    start.elapsed()
}

/// Returns the processor time of this process in seconds: two idle cores need half of it.
fn processor_seconds() -> f64 {
    const TICKS_A_SECOND: f64 = 100.0;
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks = after_name.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok());
    ticks.sum::<f64>() / TICKS_A_SECOND
}

fn peak_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kilobytes| kilobytes.parse::<u64>().ok()).unwrap_or_default() / 1000
}
