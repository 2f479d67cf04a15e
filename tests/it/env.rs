//! Hermetic environment for the real binary: its own home and repository, and none of the user's variables.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use regex::Regex;
use revdeck::config::Paths;
use revdeck::git::Repo;
use revdeck::runner::open_store;
use revdeck::store::Store;
use serde_json::Value;

/// Exit codes of revdeck.
pub const DONE: i32 = 0;
pub const FINDINGS: i32 = 1;
pub const USAGE: i32 = 2;
pub const INCOMPLETE: i32 = 3;
pub const INTERRUPTED: i32 = 130;

/// Parts of an output that differ between two runs of a test, each with its replacement.
static VOLATILE: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    [
        (r"\bar_[0-9A-Z]{26}\b", "[run]"),
        (r"\bfx_[0-9A-Z]{26}\b", "[fix]"),
        (r"\b([fk])_[0-9a-f]{16}\b", "${1}_[id]"),
        (r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?Z?", "[time]"),
        (r"\b(until|since) \d\d:\d\d\b", "$1 [time]"),
        (r"\brepo-[0-9a-f]{16}\b", "repo-[hash]"),
        (r"\b(made this file|added these lines) \([0-9a-f]{12}\)", "$1 ([hash])"),
        // After the hashes: one may consist of digits and a last `d`.
        (r"\b\d+(\.\d+)?(s|m|h|d| ms| s)( ago)?\b", "[duration]$3"),
        (concat!(r"\brevdeck ", env!("CARGO_PKG_VERSION"), r"\b"), "revdeck [version]"),
        (r"\bprocess \d+\b", "process [pid]"),
        (r"\b[\w-]+@[\w.-]+ watches\b", "[owner] watches"),
    ]
    .map(|(pattern, name)| (Regex::new(pattern).expect("a pattern"), name))
    .into()
});

/// A hash, or a number.
static HASH: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\b[0-9a-f]{7,64}\b").expect("a pattern"));

/// Returns the standard output of a program.
pub fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Returns the standard error of a program.
pub fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs revdeck, checks the exit code and returns the standard output.
#[track_caller]
pub fn run(test: &TestEnvironment, arguments: &[&str], code: i32) -> String {
    let output = test.revdeck(arguments);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}\n{}{}", out(&output), err(&output));
    out(&output)
}

/// Asks `condition` every `interval` until it returns a value, at most for `time`; at least once.
pub fn poll_every<T>(interval: Duration, time: Duration, mut condition: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + time;
    loop {
        let value = condition();
        if value.is_some() || Instant::now() >= deadline {
            return value;
        }
        std::thread::sleep(interval);
    }
}

/// Waits for the end of a process and returns how long it took.
#[track_caller]
pub fn wait_for_end(process: &mut Child, patience: Duration) -> (ExitStatus, Duration) {
    let begun = Instant::now();
    let status = poll_every(Duration::from_millis(5), patience, || process.try_wait().expect("a process"));
    (status.expect("the process does not end"), begun.elapsed())
}

/// Returns a function of 200 lines: a p1 finding.
pub fn long_function(name: &str) -> String {
    let body: String = (0..200).map(|line| format!("    {name}_total = add({name}_total, {name}_{line})\n")).collect();
    format!("def {name}({name}_total):\n{body}    return {name}_total\n")
}

/// Returns the lines of a text that fulfil a condition.
pub fn lines_with(text: &str, condition: impl Fn(&str) -> bool) -> String {
    text.lines().filter(|line| condition(line)).collect::<Vec<_>>().join("\n")
}

/// Returns the files in a folder and its subfolders, in no order; none if the folder does not exist.
pub fn files_below(folder: &Path) -> Vec<PathBuf> {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        let entries = match std::fs::read_dir(&folder) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            entries => entries.unwrap_or_else(|error| panic!("{}: {error}", folder.display())),
        };
        for entry in entries.flatten() {
            let path = entry.path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files
}

/// Writes an executable program and creates its folder.
#[cfg(unix)]
pub fn executable(path: impl AsRef<Path>, text: impl AsRef<[u8]>) {
    let path = path.as_ref();
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    std::fs::write(path, text).expect("a file");
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("a mode");
}

/// A home and a repository that are deleted on drop.
pub struct TestEnvironment {
    folder: tempfile::TempDir,
}

#[allow(dead_code, reason = "each test file uses the part it needs")]
impl TestEnvironment {
    /// Creates an empty home and an initialised repository without commits, on branch `main`.
    pub fn new() -> Self {
        let test = Self { folder: tempfile::tempdir().expect("a temporary folder") };
        std::fs::create_dir_all(test.repo()).expect("a folder for the repository");
        test.git(&["init", "-q", "-b", "main"]);
        test
    }

    pub fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// Returns the store of the repository, below the test's home.
    pub fn store(&self) -> Store {
        let repo = Repo::discover(&self.repo()).expect("a repository");
        open_store(&repo, &Paths::from_home(&self.home())).expect("the store opens")
    }

    pub fn repo(&self) -> PathBuf {
        self.folder.path().join("repo")
    }

    /// Writes a file of the repository and creates its folders.
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let file = self.repo().join(path);
        std::fs::create_dir_all(file.parent().unwrap_or(Path::new("/"))).expect("a folder");
        std::fs::write(&file, content).expect("a file");
        file
    }

    /// Returns a command that runs in the repository with only the variables that git and revdeck need.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.repo())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.folder.path())
            .env("REVDECK_HOME", self.home())
            .env("LANG", "C.UTF-8")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_AUTHOR_NAME", "A")
            .env("GIT_AUTHOR_EMAIL", "a@example.org")
            .env("GIT_AUTHOR_DATE", "2026-01-02T03:04:05Z")
            .env("GIT_COMMITTER_NAME", "A")
            .env("GIT_COMMITTER_EMAIL", "a@example.org")
            .env("GIT_COMMITTER_DATE", "2026-01-02T03:04:05Z");
        let settings = std::fs::read_to_string(self.home().join("config.toml")).unwrap_or_default();
        if self.patience_marker().exists() && !settings.contains("reading_seconds") {
            command.env("REVDECK_CONTEXT_READING_SECONDS", "600");
        }
        command
    }

    fn patience_marker(&self) -> PathBuf {
        self.folder.path().join("patient")
    }

    /// Lets contexts take any time to read, except under settings that name a time. For repositories of more files than
    /// a context always reads: a busy machine must not make it partial.
    pub fn read_everything(&self) {
        std::fs::write(self.patience_marker(), "").expect("a marker");
    }

    /// Runs git, expects success and returns the standard output.
    pub fn git(&self, arguments: &[&str]) -> String {
        let output = self.command("git").args(arguments).output().expect("git starts");
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Commits everything and returns the commit's id.
    pub fn commit(&self, message: &str) -> String {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", message]);
        self.git(&["rev-parse", "HEAD"]).trim().to_owned()
    }

    /// Imports many commits on top of `main`, each with its files, in one git process. The worktree stays unchanged.
    pub fn import(&self, commits: &[Vec<(String, String)>]) {
        let mut script = String::new();
        for (number, files) in commits.iter().enumerate() {
            let from = if number == 0 { "from refs/heads/main^0\n" } else { "" };
            let who = "committer A <a@example.org> 1767323045 +0000";
            script += &format!("commit refs/heads/main\n{who}\ndata <<.\nChange {number}\n.\n{from}");
            for (path, text) in files {
                script += &format!("M 100644 inline {path}\ndata {}\n{text}\n", text.len());
            }
        }
        let mut git = self.command("git");
        let mut git =
            git.args(["fast-import", "--quiet"]).stdin(std::process::Stdio::piped()).spawn().expect("git starts");
        git.stdin.take().expect("a pipe").write_all(script.as_bytes()).expect("git reads");
        assert!(git.wait().expect("git ends").success(), "git fast-import");
    }

    /// Writes the user's settings.
    pub fn settings(&self, text: &str) {
        std::fs::create_dir_all(self.home()).expect("a folder");
        std::fs::write(self.home().join("config.toml"), text).expect("settings");
    }

    /// Replaces in an output all that differs between two runs of a test: folders, ids, hashes, times, durations and
    /// processes. Each is replaced by its name in brackets.
    pub fn normalise(&self, text: &str) -> String {
        let mut text = text.replace(env!("CARGO_BIN_EXE_revdeck"), "[revdeck]");
        let folder = self.folder.path();
        for folder in [folder.canonicalize().expect("a folder"), folder.to_owned()] {
            for (folder, name) in
                [(folder.join("repo"), "[repo]"), (folder.join("home"), "[home]"), (folder, "[folder]")]
            {
                text = text.replace(folder.to_str().expect("text"), name);
            }
        }
        let text = VOLATILE.iter().fold(text, |text, (pattern, name)| pattern.replace_all(&text, *name).into_owned());
        let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
        let hash_name =
            |found: &regex::Captures<'_>| if is_number(&found[0]) { &found[0] } else { "[hash]" }.to_owned();
        HASH.replace_all(&text, hash_name).into_owned()
    }

    /// Runs revdeck, checks the exit code and returns the normalised standard output.
    #[track_caller]
    pub fn output(&self, arguments: &[&str], code: i32) -> String {
        self.normalise(&run(self, arguments, code))
    }

    /// Runs a command that fails and prints only an error; checks the exit code and returns the normalised error.
    #[track_caller]
    pub fn fails(&self, arguments: &[&str], code: i32) -> String {
        let output = self.revdeck(arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}\n{}{}", out(&output), err(&output));
        assert_eq!(out(&output), "", "{arguments:?} prints although it fails");
        self.normalise(&err(&output))
    }

    /// Runs revdeck, checks the exit code and returns the normalised standard error.
    #[track_caller]
    pub fn errors(&self, arguments: &[&str], code: i32) -> String {
        let output = self.revdeck(arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}\n{}{}", out(&output), err(&output));
        self.normalise(&err(&output))
    }

    /// Runs revdeck, checks the exit code and returns the standard output as JSON.
    #[track_caller]
    pub fn json(&self, arguments: &[&str], code: i32) -> Value {
        let text = run(self, arguments, code);
        let value: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {text}"));
        assert_eq!(value["version"], 1, "{arguments:?}");
        value
    }

    /// Runs revdeck in the repository.
    pub fn revdeck(&self, arguments: &[&str]) -> Output {
        self.command(env!("CARGO_BIN_EXE_revdeck")).args(arguments).output().expect("revdeck starts")
    }
}
