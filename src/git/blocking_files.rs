//! Refuses named pipes, sockets and devices in the places of git's own files. libgit2 and git open these files without
//! a look, and opening a pipe that nobody writes takes for ever.
//!
//! Invariant: a repository is checked before libgit2 opens it, and a revision before libgit2 resolves it. The checks
//! cost a `stat` call for each file. Loose objects are not checked.

use std::fs::Metadata;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use git2::Repository;

use super::{GitError, Repo, path_bytes, regular_file};

/// Files of a git dir, or of its common git dir, that are opened by name.
const GIT_FILES: [&str; 20] = [
    "HEAD",
    "FETCH_HEAD",
    "MERGE_HEAD",
    "ORIG_HEAD",
    "commondir",
    "config",
    "config.worktree",
    "gitdir",
    "index",
    "info/attributes",
    "info/exclude",
    "info/grafts",
    "info/sparse-checkout",
    "logs/HEAD",
    "objects/info/alternates",
    "objects/info/commit-graph",
    "objects/pack/multi-pack-index",
    "packed-refs",
    "sharedindex",
    "shallow",
];
/// Prefixes under which git looks for the short name of a reference; see gitrevisions(7).
const REFERENCE_PREFIXES: [&str; 5] = ["", "refs/", "refs/tags/", "refs/heads/", "refs/remotes/"];
/// Maximum number of symbolic references, or of settings files that include each other. git's limits are 5 and 10.
const MAX_DEPTH: usize = 10;

/// Describes an entry that may block whoever opens it; `None` for a file, a folder, and a path that does not exist.
fn describe_blocking(path: &Path) -> Option<&'static str> {
    let kind = path.metadata().as_ref().map(Metadata::file_type).ok()?;
    match () {
        () if kind.is_fifo() => Some("a named pipe"),
        () if kind.is_socket() => Some("a socket"),
        () if kind.is_char_device() || kind.is_block_device() => Some("a device"),
        () => None,
    }
}

/// Returns true when the path leads to a pipe, a socket or a device.
pub(super) fn is_blocking(path: &Path) -> bool {
    describe_blocking(path).is_some()
}

fn check(path: &Path) -> Result<(), GitError> {
    match describe_blocking(path) {
        // git itself writes to /dev/null where a setting says so, and reading it ends at once.
        Some("a device") if path.canonicalize().is_ok_and(|real| real == Path::new("/dev/null")) => Ok(()),
        Some(what) => Err(GitError::Blocking { path: path.to_owned(), what }),
        None => Ok(()),
    }
}

/// Opens the repository of a worktree, or the repository at a git dir.
pub(super) fn open_repository(place: &Path) -> Result<Repository, GitError> {
    check_git_dir(&find_git_dir(place))?;
    Repository::open(place).map_err(|error| GitError::from_git2("open the repository", place, error))
}

/// Returns the git dir of a worktree; the folder itself when it is no worktree.
fn find_git_dir(place: &Path) -> PathBuf {
    let entry = place.join(".git");
    if entry.is_dir() {
        return entry;
    }
    let link = regular_file::read_linked(&entry).unwrap_or_default();
    match link.trim_ascii().strip_prefix(b"gitdir:") {
        Some(path) => path_bytes::join_path(place, path.trim_ascii()),
        None => place.to_owned(),
    }
}

/// Checks the files of a git dir, of its common git dir, the branch of HEAD, and the settings that git reads.
///
/// # Errors
/// Returns [`GitError::Blocking`] for the first entry that may block.
pub(super) fn check_git_dir(git_dir: &Path) -> Result<(), GitError> {
    let common = regular_file::read_linked(&git_dir.join("commondir")).unwrap_or_default();
    let common = path_bytes::join_path(git_dir, common.trim_ascii());
    for folder in [git_dir, &common] {
        for name in GIT_FILES {
            check(&folder.join(name))?;
        }
        check_settings(&folder.join("config"), MAX_DEPTH)?;
        for entry in std::fs::read_dir(folder.join("objects/pack")).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| !kind.is_file()) {
                check(&entry.path())?;
            }
        }
        if common == git_dir {
            break;
        }
    }
    let user = [git2::Config::find_global(), git2::Config::find_xdg(), git2::Config::find_system()];
    for settings in user.into_iter().flatten() {
        check(&settings)?;
        check_settings(&settings, MAX_DEPTH)?;
    }
    let mut reference = PathBuf::from("HEAD");
    for _ in 0..MAX_DEPTH {
        let here = if reference == Path::new("HEAD") { git_dir } else { &common };
        check(&here.join(&reference))?;
        let content = regular_file::read_linked(&here.join(&reference)).unwrap_or_default();
        let Some(target) = content.strip_prefix(b"ref:") else { break };
        reference = path_bytes::to_path(target.trim_ascii()).into();
    }
    Ok(())
}

/// Checks the files that a settings file includes. The conditions of `includeIf` are not evaluated.
fn check_settings(path: &Path, depth: usize) -> Result<(), GitError> {
    let Ok(text) = regular_file::read_linked(path) else { return Ok(()) };
    if depth == 0 || memchr::memmem::find(&text.to_ascii_lowercase(), b"[include").is_none() {
        return Ok(());
    }
    for line in text.split(|byte| *byte == b'\n') {
        let line = String::from_utf8_lossy(line);
        let Some((name, value)) = line.split_once('=') else { continue };
        if !name.trim().rsplit([']', ' ', '\t']).next().is_some_and(|name| name.eq_ignore_ascii_case("path")) {
            continue;
        }
        let value = value.trim().trim_matches('"');
        let included = match (value.strip_prefix("~/"), std::env::var_os("HOME")) {
            (Some(rest), Some(home)) => Path::new(&home).join(rest),
            _ => path.parent().unwrap_or(Path::new("/")).join(value),
        };
        check(&included)?;
        check_settings(&included, depth - 1)?;
    }
    Ok(())
}

impl Repo {
    /// Checks the files in which git looks for a revision.
    pub(super) fn check_revision(&self, text: &str) -> Result<(), GitError> {
        let name = text.split(['^', '~', '@', ':', '{']).next().unwrap_or_default();
        let is_hash = name.len() == 40 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        if name.is_empty() || is_hash || name.starts_with('/') || name.split('/').any(|part| part == "..") {
            return Ok(());
        }
        for folder in [self.inner.path(), self.inner.commondir()] {
            for prefix in REFERENCE_PREFIXES {
                check(&folder.join(format!("{prefix}{name}")))?;
            }
            check(&folder.join(format!("refs/remotes/{name}/HEAD")))?;
            check(&folder.join(format!("logs/refs/heads/{name}")))?;
        }
        Ok(())
    }
}
