//! The working tree of a replay: a clone that shares the objects of the real repository and never writes to it. Runs
//! the git commands of a user.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::ReplayError;
use super::script::EditPart;
use crate::git::Repo;

/// The branch from which topics start and to which they return.
pub(super) const TRUNK: &str = "trunk";

/// A commit of the history that is replayed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReplayCommit {
    pub commit: String,
    pub parent: String,
}

pub(super) struct ReplaySandbox {
    folder: PathBuf,
}

impl ReplaySandbox {
    /// Clones the repository at `source` into `folder`, which must not exist.
    ///
    /// # Errors
    ///
    /// If git is missing or fails.
    pub fn clone_repository(source: &Path, folder: PathBuf) -> Result<Self, ReplayError> {
        let mut clone = git_command();
        clone.args(["clone", "--quiet", "--shared", "--no-checkout", "--"]).arg(source).arg(&folder);
        run_git(clone, "clone")?;
        let desk = Self { folder };
        // The user's git settings must not influence the session.
        for (name, value) in [
            ("core.hooksPath", "/dev/null"),
            ("core.autocrlf", "false"),
            ("core.excludesFile", "/dev/null"),
            ("core.attributesFile", "/dev/null"),
            ("core.fsmonitor", "false"),
            ("commit.gpgSign", "false"),
            ("gc.auto", "0"),
            ("maintenance.auto", "false"),
            ("advice.detachedHead", "false"),
            ("user.name", "replay"),
            ("user.email", "replay@localhost"),
        ] {
            desk.git(&["config", name, value])?;
        }
        Ok(desk)
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Lists the newest `count` commits on the first-parent line of HEAD that have a parent, oldest first.
    ///
    /// # Errors
    ///
    /// If git fails.
    pub fn list_commits(&self, count: usize) -> Result<Vec<ReplayCommit>, ReplayError> {
        let number = format!("-{count}");
        let log = self.git(&["log", "--first-parent", "--reverse", "--format=%H %P", &number, "HEAD"])?;
        let past = log.lines().filter_map(|line| {
            let mut ids = line.split_whitespace();
            // A root commit, also that of a shallow clone, has no parent to compare with.
            Some(ReplayCommit { commit: ids.next()?.to_owned(), parent: ids.next()?.to_owned() })
        });
        Ok(past.collect())
    }

    /// Creates the trunk at this commit.
    ///
    /// # Errors
    ///
    /// If git fails.
    pub fn start_trunk(&self, commit: &str) -> Result<(), ReplayError> {
        self.git(&["checkout", "--quiet", "--force", "-B", TRUNK, commit]).map(drop)
    }

    /// Creates a topic branch at the trunk.
    ///
    /// # Errors
    ///
    /// If git fails.
    pub fn create_topic(&self, name: &str) -> Result<(), ReplayError> {
        self.git(&["switch", "--quiet", "--force-create", name, TRUNK]).map(drop)
    }

    /// Moves the trunk to the topic.
    ///
    /// # Errors
    ///
    /// If git fails.
    pub fn land_topic(&self) -> Result<(), ReplayError> {
        self.git(&["branch", "--quiet", "--force", TRUNK, "HEAD"]).map(drop)
    }

    /// Lists the paths that a commit changes, without submodules.
    ///
    /// # Errors
    ///
    /// If git fails.
    pub fn touched_paths(&self, past: &ReplayCommit) -> Result<Vec<TouchedPath>, ReplayError> {
        let raw = self.git(&["diff-tree", "-r", "-z", "--no-renames", "--no-commit-id", &past.parent, &past.commit])?;
        let mut parts = raw.split('\0');
        let mut touched = Vec::new();
        while let (Some(what), Some(path)) = (parts.next(), parts.next()) {
            let mut words = what.trim_start_matches(':').split(' ');
            let (Some(old), Some(new), Some(_), Some(_), Some(status)) =
                (words.next(), words.next(), words.next(), words.next(), words.next())
            else {
                continue;
            };
            if old != "160000" && new != "160000" {
                let kind = match status {
                    "D" => TouchedPathKind::Deleted,
                    "M" if new.starts_with("100") => TouchedPathKind::Edited,
                    _ => TouchedPathKind::Other,
                };
                touched.push(TouchedPath { path: path.to_owned(), kind });
            }
        }
        Ok(touched)
    }

    /// Applies a part of a commit's edits to the working tree.
    ///
    /// # Errors
    ///
    /// If git fails, or a file cannot be written.
    pub fn apply_part(&self, past: &ReplayCommit, touched: &[TouchedPath], part: EditPart) -> Result<(), ReplayError> {
        let count = match part {
            EditPart::All => touched.len(),
            EditPart::Half => touched.len().div_ceil(2),
            EditPart::MostFiles => touched.len().saturating_sub(1).max(1).min(touched.len()),
        };
        for file in &touched[..count] {
            match file.kind {
                TouchedPathKind::Deleted => {
                    self.git(&["rm", "--quiet", "--force", "--ignore-unmatch", "--", &literal_pathspec(&file.path)])?;
                }
                TouchedPathKind::Edited | TouchedPathKind::Other => {
                    let tried = self.git(&["checkout", "--quiet", &past.commit, "--", &literal_pathspec(&file.path)]);
                    // A partial clone may lack the contents of large files; the session continues without them.
                    if tried.is_err()
                        && self.git(&["cat-file", "-e", &format!("{}:{}", past.commit, file.path)]).is_ok()
                    {
                        tried?;
                    }
                }
            }
        }
        if let (EditPart::Half, Some(last)) = (part, touched[..count].last())
            && last.kind == TouchedPathKind::Edited
        {
            self.write_half(past, &last.path)?;
        }
        Ok(())
    }

    /// Writes the file with only the first half of the commit's hunks.
    fn write_half(&self, past: &ReplayCommit, path: &str) -> Result<(), ReplayError> {
        let repo = Repo::discover(&self.folder)?;
        let (Some(old), Some(new)) = (repo.file_at(&past.parent, path)?, repo.file_at(&past.commit, path)?) else {
            return Ok(());
        };
        let hunks = repo.diff_texts(&old, &new)?;
        if hunks.len() < 2 || old.contains(&0) || new.contains(&0) {
            return Ok(());
        }
        let (old, new) = (split_lines(&old), split_lines(&new));
        let mut text: Vec<u8> = Vec::new();
        let mut next = 0;
        for hunk in &hunks[..hunks.len() / 2] {
            // A side without lines names the line before it.
            let start = hunk.old_start as usize - usize::from(hunk.old_lines > 0);
            let from = hunk.new_start.saturating_sub(u32::from(hunk.new_lines > 0)) as usize;
            text.extend(old.get(next..start).unwrap_or_default().concat());
            text.extend(new.get(from..from + hunk.new_lines as usize).unwrap_or_default().concat());
            next = start + hunk.old_lines as usize;
        }
        text.extend(old.get(next..).unwrap_or_default().concat());
        let file = self.folder.join(path);
        std::fs::write(&file, text).map_err(|source| ReplayError::Write { path: file, source })
    }

    /// Discards all uncommitted changes.
    ///
    /// # Errors
    ///
    /// If git fails.
    pub fn discard_changes(&self) -> Result<(), ReplayError> {
        self.git(&["reset", "--quiet", "--hard"])?;
        self.git(&["clean", "--quiet", "-ffd"]).map(drop)
    }

    /// Commits all changes.
    ///
    /// # Errors
    ///
    /// If git fails.
    pub fn commit(&self, message: &str) -> Result<(), ReplayError> {
        self.git(&["add", "--all"])?;
        self.git(&["commit", "--quiet", "--allow-empty", "--no-verify", "-m", message]).map(drop)
    }

    /// Amends HEAD with all changes.
    ///
    /// # Errors
    ///
    /// If git fails.
    pub fn amend(&self) -> Result<(), ReplayError> {
        self.git(&["add", "--all"])?;
        self.git(&["commit", "--quiet", "--amend", "--allow-empty", "--no-verify", "--no-edit"]).map(drop)
    }

    /// Changes the message of HEAD.
    ///
    /// # Errors
    ///
    /// If git fails.
    pub fn reword(&self, message: &str) -> Result<(), ReplayError> {
        self.git(&["commit", "--quiet", "--amend", "--allow-empty", "--no-verify", "-m", message]).map(drop)
    }

    /// Adds a commit of another author to the trunk, in its own file, and rebases the topic onto it.
    ///
    /// # Errors
    ///
    /// If git fails, or the file cannot be written.
    pub fn rebase(&self, topic: &str, serial: usize) -> Result<(), ReplayError> {
        self.git(&["switch", "--quiet", TRUNK])?;
        let file = self.folder.join(format!("trunk-moved-{serial}.txt"));
        std::fs::write(&file, format!("{serial}\n")).map_err(|source| ReplayError::Write { path: file, source })?;
        self.commit("The trunk has moved")?;
        self.git(&["switch", "--quiet", topic])?;
        self.git(&["rebase", "--quiet", TRUNK]).map(drop)
    }

    /// Switches to a branch.
    ///
    /// # Errors
    ///
    /// If git fails.
    pub fn switch(&self, branch: &str) -> Result<(), ReplayError> {
        self.git(&["switch", "--quiet", branch]).map(drop)
    }

    fn git(&self, arguments: &[&str]) -> Result<String, ReplayError> {
        let mut command = git_command();
        command.arg("-C").arg(&self.folder).args(arguments);
        run_git(command, arguments.first().copied().unwrap_or_default())
    }
}

/// A path that a commit changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TouchedPath {
    pub path: String,
    pub kind: TouchedPathKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TouchedPathKind {
    /// A regular file on both sides.
    Edited,
    Deleted,
    /// A new file, a link, or another file type than before.
    Other,
}

/// Returns a pathspec without wildcard characters.
fn literal_pathspec(path: &str) -> String {
    format!(":(literal){path}")
}

fn split_lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|&byte| byte == b'\n').collect()
}

/// Creates a git command without the environment's git variables.
fn git_command() -> Command {
    let mut command = Command::new("git");
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("GIT_") {
            command.env_remove(name);
        }
    }
    command
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_LFS_SKIP_SMUDGE", "1")
        .env("GIT_EDITOR", "true")
        .env("LC_ALL", "C")
        .stdin(Stdio::null());
    command
}

fn run_git(mut command: Command, what: &str) -> Result<String, ReplayError> {
    let output = command.output().map_err(|source| ReplayError::NoGit { what: what.to_owned(), source })?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            Err(ReplayError::Git { what: what.to_owned(), said })
        }
    }
}
