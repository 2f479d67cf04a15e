//! Fetches the objects that a partial clone (`git clone --filter`) lacks, before they are needed.
//!
//! Invariant: only the objects of a change are fetched, in a single git call; code that reads other parts of a snapshot
//! must handle missing objects.

use std::collections::{BTreeSet, HashSet};
use std::process::Command;

use git2::{Odb, OdbLookupFlags, Oid};

use super::change_filter::RulesTree;
use super::trees::TreeDelta;
use super::{GitError, Repo, git_command};

impl Repo {
    /// Returns the name of the promisor remote; `None` when the repository is not a partial clone.
    pub(super) fn promisor_remote(&self) -> Option<String> {
        let config = self.inner.config().and_then(|mut config| config.snapshot()).ok()?;
        let mut entries = config.entries(Some(r"^remote\..*\.promisor$")).ok()?;
        while let Some(Ok(entry)) = entries.next() {
            let Ok(name) = entry.name() else { continue };
            let remote = name.strip_prefix("remote.").and_then(|name| name.strip_suffix(".promisor"));
            if let Some(remote) = remote.filter(|_| config.get_bool(name).unwrap_or(false)) {
                return Some(remote.to_owned());
            }
        }
        // Older versions of git supported a single promisor remote and stored it here.
        config.get_string("extensions.partialclone").ok()
    }

    /// Fetches the trees of two commits if they are missing; without `base`, only the trees of `tip`.
    pub(super) fn fetch_trees(&self, base: Option<Oid>, tip: Oid) -> Result<(), GitError> {
        let failed = |what| GitError::PartialClone { path: self.root(), missing: 1, what };
        if is_lazy_fetch_forbidden() {
            return Err(failed(LAZY_FETCH_FORBIDDEN.to_owned()));
        }
        let mut command = self.git_command();
        match base {
            Some(base) => {
                command.args(["diff-tree", "-r", "--raw", "--no-renames"]).args([base.to_string(), tip.to_string()]);
            }
            None => drop(command.args(["ls-tree", "-r"]).arg(tip.to_string())),
        }
        // git is silent while it fetches what a tree needs.
        let patience = self.git_patience * 5;
        let output = git_command::run_with_input(command, "diff-tree", Vec::new(), patience)
            .map_err(|error| failed(error.to_string()))?;
        match output.status.success() {
            true => Ok(()),
            false => Err(failed(format!("git cannot fetch it: {}", git_command::error_message(&output.stderr)))),
        }
    }

    /// Fetches the contents of a change and the `.gitattributes` files of `rules` that apply to it, if they are missing.
    pub(super) fn fetch_contents(
        &self,
        differences: &[TreeDelta],
        rules: &RulesTree<'_>,
        remote: &str,
    ) -> Result<(), GitError> {
        let odb = self.inner.odb().map_err(self.git_error("read the object database"))?;
        let mut wanted = changed_blobs(differences);
        let mut folders: HashSet<&[u8]> = HashSet::new();
        for difference in differences {
            let slashes = memchr::memchr_iter(b'/', &difference.path).map(|at| at + 1);
            folders.extend([0].into_iter().chain(slashes).filter_map(|at| difference.path.get(..at)));
        }
        let attributes: Vec<Vec<u8>> = folders.into_iter().map(|folder| [folder, b".gitattributes"].concat()).collect();
        wanted.extend(rules.rule_blobs(&self.inner, attributes.iter().map(Vec::as_slice)));
        let absent = retain_missing(&odb, wanted);
        if absent.is_empty() {
            return Ok(());
        }
        let fetched = self.fetch_objects(remote, &absent);
        let absent = retain_missing(&odb, absent);
        match (absent.len(), fetched) {
            (0, _) => Ok(()),
            (missing, fetched) => {
                let what = fetched.err().unwrap_or_else(|| format!("{remote} does not have them"));
                Err(GitError::PartialClone { path: self.root(), missing, what })
            }
        }
    }

    /// Fetches objects with the same options that git uses for lazy fetching.
    fn fetch_objects(&self, remote: &str, ids: &BTreeSet<Oid>) -> Result<(), String> {
        if is_lazy_fetch_forbidden() {
            return Err(LAZY_FETCH_FORBIDDEN.to_owned());
        }
        let mut command = self.git_command();
        command.args([
            "-c",
            "fetch.negotiationAlgorithm=noop",
            "-c",
            "core.hooksPath=/dev/null",
            "fetch",
            // The progress shows that git does not hang.
            "--progress",
            "--no-tags",
            "--no-write-fetch-head",
        ]);
        command.args([
            "--recurse-submodules=no",
            "--no-auto-maintenance",
            "--refmap=",
            "--filter=blob:none",
            "--stdin",
        ]);
        command.arg("--").arg(remote);
        let lines: String = ids.iter().map(|id| format!("{id}\n")).collect();
        let output = git_command::run_with_input(command, "fetch", lines.into_bytes(), self.git_patience)
            .map_err(|error| error.to_string())?;
        match output.status.success() {
            true => Ok(()),
            false => Err(format!("git cannot fetch from {remote}: {}", git_command::error_message(&output.stderr))),
        }
    }

    fn git_command(&self) -> Command {
        let mut command = Command::new("git");
        command.arg("--git-dir").arg(self.inner.path());
        command
    }
}

/// Reason given in [`GitError::PartialClone`] when lazy fetching is disabled.
const LAZY_FETCH_FORBIDDEN: &str = "GIT_NO_LAZY_FETCH forbids to fetch what is missing";

fn is_lazy_fetch_forbidden() -> bool {
    std::env::var("GIT_NO_LAZY_FETCH").is_ok_and(|value| !matches!(value.as_str(), "" | "0" | "false" | "no" | "off"))
}

/// Returns the blob ids of the files on both sides of a change.
fn changed_blobs(differences: &[TreeDelta]) -> BTreeSet<Oid> {
    let leaves = differences.iter().flat_map(|difference| [difference.old, difference.new]).flatten();
    leaves.filter(|leaf| leaf.is_file()).map(|leaf| leaf.id).collect()
}

fn retain_missing(odb: &Odb, mut ids: BTreeSet<Oid>) -> BTreeSet<Oid> {
    // A single refresh for all ids replaces a refresh for each missing id.
    let _ = odb.refresh();
    ids.retain(|id| !odb.exists_ext(*id, OdbLookupFlags::NO_REFRESH));
    ids
}
