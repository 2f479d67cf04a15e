//! Partial clones (`git clone --filter=blob:none`): contents that only the remote has.
//!
//! libgit2 does not ask the remote for them, git does. So a comparison that misses something is left to git once, which
//! brings what it needs in one go and leaves index, worktree and refs alone, and is then made again.

use std::process::{Command, Stdio};

use git2::{ErrorCode, Oid};

use super::{Change, GitError, Repo};
use crate::domain::LeftOutReason;

/// git's name for the tree without entries; it knows it without having it.
const EMPTY_TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

/// Whether a comparison failed, or has gaps, for want of objects.
pub(super) fn lacks_objects<T>(compared: &Result<(Change, T), GitError>) -> bool {
    match compared {
        Ok((change, _)) => change.left_out.iter().any(|file| file.reason == LeftOutReason::Unreadable),
        Err(GitError::Git { source, .. }) => source.code() == ErrorCode::NotFound,
        Err(_) => false,
    }
}

impl Repo {
    /// Whether a remote has promised to give contents when they are needed.
    pub(super) fn is_partial_clone(&self) -> bool {
        let Ok(config) = self.inner.config().and_then(|mut config| config.snapshot()) else { return false };
        let mut promised = config.get_string("extensions.partialclone").is_ok();
        if let Ok(entries) = config.entries(Some("^remote\\..*\\.promisor$")) {
            let _ = entries.for_each(|entry| promised |= entry.value().is_ok_and(|value| value == "true"));
        }
        promised
    }

    /// Has git compare two commits, for which it fetches what is missing. It asks for no password: nobody may be there.
    pub(super) fn bring(&self, base: Option<Oid>, tip: Oid) -> Result<(), GitError> {
        let base = base.map_or_else(|| EMPTY_TREE.to_owned(), |id| id.to_string());
        let mut git = Command::new("git");
        git.arg("--git-dir")
            .arg(self.inner.path())
            .args(["diff", "--numstat", "--no-ext-diff", "--no-textconv", "--no-renames", &base, &tip.to_string()])
            .current_dir(self.inner.path())
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_OPTIONAL_LOCKS", "0")
            .stdin(Stdio::null());
        let missing = |what: String| GitError::Missing { path: self.root(), what };
        let output = git.output().map_err(|error| missing(format!("git cannot be run: {error}")))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("git did not say why");
        Err(missing(last.trim().to_owned()))
    }
}
