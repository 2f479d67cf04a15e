//! Keeps append-only logs in refs of a remote: one ref for each writer, whose commit holds the segments of the log as files.
//!
//! Invariants:
//! - Only the writer of a log moves its ref, and never by force: a log that has moved is read again, and the segments go on
//!   top of it.
//! - Nothing of the user is touched: no branch, no index, no file, no hook, no `FETCH_HEAD`. Fetched logs stand below
//!   [`TRACKING_REFS`], apart for each remote.
//! - The remote is reached by the git program, so that its credentials, proxies and ssh settings apply. It never asks for
//!   anything.

use std::process::{Command, Output};

use git2::{ErrorCode, ObjectType, Oid, Signature};

use super::trees::MODE_SYMLINK;
use super::{GitError, Repo, git_command};
use crate::domain::text::sanitize_line;

/// Prefix of the logs' refs at the remote.
const LOG_REFS: &str = "refs/revdeck/team/";
/// Prefix of the refs that hold fetched logs here.
pub(super) const TRACKING_REFS: &str = "refs/revdeck/team-logs/";
/// Ending of the files that are segments.
const SEGMENT_ENDING: &str = ".ndjson";
/// Maximum number of logs of a remote that are read. A team that has more uses one log for continuous integration.
pub const MAX_REMOTE_LOGS: usize = 2_000;
/// Message of the commits.
pub(super) const COMMIT_MESSAGE: &str = "revdeck: records of reviews for the team\n";

/// Log at a remote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteLog {
    /// Last part of the ref.
    pub name: String,
    /// Id of its commit in hexadecimal.
    pub commit: String,
}

/// Logs at a remote, as far as they are read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RemoteLogList {
    /// Logs.
    pub logs: Vec<RemoteLog>,
    /// Number of further logs, which are left out because there are too many.
    pub left_out: usize,
}

/// Segment of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogSegment {
    /// Name of the file.
    pub name: String,
    /// Id of the content in hexadecimal.
    pub blob: String,
    /// Size of the content in bytes; 0 if it is no file.
    pub bytes: u64,
    /// False for a folder or a submodule, which no machine writes.
    pub is_file: bool,
}

/// Outcome of a push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PushOutcome {
    /// The log has the segments.
    Pushed,
    /// The log has moved since it was read.
    Moved,
}

/// Signature of a log's commit, as git verifies it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum LogSignature {
    /// There is none.
    #[default]
    None,
    /// By a key that git's configuration trusts, and its owner.
    Trusted(String),
    /// By a key that git's configuration does not know.
    Unknown,
    /// It does not fit the content.
    Bad,
}

/// Whether to sign a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SigningMode {
    /// As `commit.gpgSign` says.
    AsConfigured,
    /// Always, by the key of git's configuration.
    Always,
    /// Never.
    Never,
}

impl Repo {
    /// Returns `user.email` of git's configuration.
    pub fn user_email(&self) -> Option<String> {
        let config = self.inner.config().and_then(|mut config| config.snapshot()).ok()?;
        config.get_string("user.email").ok().filter(|email| !email.trim().is_empty())
    }

    /// Returns the names of the remotes, in git's order.
    pub fn remote_names(&self) -> Vec<String> {
        let Ok(names) = self.inner.remotes() else { return Vec::new() };
        names.iter().filter_map(|name| name.ok().flatten().map(str::to_owned)).collect()
    }

    /// Lists the logs of a remote: a name of a remote, a URL or a path. Ignores names with further parts. Of too many logs, the
    /// log `own` comes first, then those that were fetched before, so that strangers push none of them out.
    ///
    /// # Errors
    /// Returns an error when the remote cannot be reached.
    pub fn list_remote_logs(&self, remote: &str, own: &str) -> Result<RemoteLogList, GitError> {
        let mut command = self.remote_command();
        command.args(["ls-remote", "--refs", "--", remote]).arg(format!("{LOG_REFS}*"));
        let output = self.run_remote(command, "ls-remote", remote, Vec::new())?;
        let text = String::from_utf8_lossy(&output.stdout);
        let lines = text.lines().filter_map(|line| line.split_once('\t'));
        let logs = lines.filter_map(|(commit, name)| {
            let is_id = Oid::from_str(commit).is_ok();
            let name = name.strip_prefix(LOG_REFS).filter(|name| is_id && !name.contains('/'))?;
            Some(RemoteLog { name: name.to_owned(), commit: commit.to_owned() })
        });
        let mut logs: Vec<RemoteLog> = logs.collect();
        logs.sort_by(|a, b| ((a.name != own), &a.name).cmp(&((b.name != own), &b.name)));
        let left_out = logs.len().saturating_sub(MAX_REMOTE_LOGS);
        if left_out > 0 {
            logs.sort_by_cached_key(|log| (log.name != own, self.tracked_log(remote, &log.name).is_none()));
            logs.truncate(MAX_REMOTE_LOGS);
        }
        Ok(RemoteLogList { logs, left_out })
    }

    /// Fetches logs of a remote, with all their objects, also into a partial clone.
    ///
    /// # Errors
    /// Returns an error when the remote cannot be reached or does not send a log.
    pub fn fetch_remote_logs(&self, remote: &str, logs: &[RemoteLog]) -> Result<(), GitError> {
        if logs.is_empty() {
            return Ok(());
        }
        let mut command = self.remote_command();
        // As git does unless it is told otherwise: a small fetch leaves loose objects, not a pack.
        command.args(["-c", "fetch.unpackLimit=100"]);
        // The progress shows that git does not hang.
        command.args(["fetch", "--progress", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance"]);
        command.args(["--recurse-submodules=no", "--refmap=", "--stdin"]);
        if self.promisor_remote().is_some() {
            command.arg("--no-filter");
        }
        command.args(["--", remote]);
        // Whoever owns a log may have rewritten it; what it said before is kept elsewhere.
        let refspec = |log: &RemoteLog| format!("+{LOG_REFS}{0}:{1}\n", log.name, tracking_ref(remote, &log.name));
        let input: String = logs.iter().map(refspec).collect();
        self.run_remote(command, "fetch", remote, input.into_bytes()).map(|_| ())
    }

    /// Lists the segments of a fetched log, by name, and whatever else there is that is no file. A file with another ending is no
    /// segment.
    ///
    /// # Errors
    /// Returns an error when the commit is not here or cannot be read.
    pub fn log_segments(&self, commit: &str) -> Result<Vec<LogSegment>, GitError> {
        let failed = self.git_error("read a log of the team");
        let id = Oid::from_str(commit).map_err(failed)?;
        let tree = self.inner.find_commit(id).and_then(|commit| commit.tree()).map_err(failed)?;
        let odb = self.inner.odb().map_err(failed)?;
        let mut segments = Vec::new();
        for entry in tree.iter() {
            let name = String::from_utf8_lossy(entry.name_bytes()).into_owned();
            let is_link = u32::try_from(entry.filemode()) == Ok(MODE_SYMLINK);
            let is_file = entry.kind() == Some(ObjectType::Blob) && !is_link;
            if is_file && !name.ends_with(SEGMENT_ENDING) {
                continue;
            }
            // The commit of a submodule is not here.
            let bytes = if is_file { odb.read_header(entry.id()).map_err(failed)?.0 as u64 } else { 0 };
            segments.push(LogSegment { name, blob: entry.id().to_string(), bytes, is_file });
        }
        Ok(segments)
    }

    /// Returns true if a fetched log has grown out of a commit, or is that commit.
    ///
    /// # Errors
    /// Returns an error when the log is not here or cannot be read.
    pub fn log_contains(&self, log: &str, commit: &str) -> Result<bool, GitError> {
        let failed = self.git_error("read a log of the team");
        let tip = Oid::from_str(log).map_err(failed)?;
        self.inner.find_commit(tip).map_err(failed)?;
        // A commit that did not come with the log is none of its ancestors.
        let Ok(commit) = Oid::from_str(commit) else { return Ok(false) };
        if tip == commit {
            return Ok(true);
        }
        if self.inner.find_commit(commit).is_err() {
            return Ok(false);
        }
        self.inner.graph_descendant_of(tip, commit).map_err(failed)
    }

    /// Returns the last known commit of a remote's log here; `None` before the first fetch or push.
    pub fn tracked_log(&self, remote: &str, name: &str) -> Option<String> {
        let reference = self.inner.find_reference(&tracking_ref(remote, name)).ok()?;
        Some(reference.target()?.to_string())
    }

    /// Forgets what was fetched from a remote's log. Does nothing when there is nothing.
    ///
    /// # Errors
    /// Returns an error when the ref cannot be deleted.
    pub fn forget_tracked_log(&self, remote: &str, name: &str) -> Result<(), GitError> {
        match self.inner.find_reference(&tracking_ref(remote, name)) {
            Ok(mut reference) => reference.delete().map_err(self.git_error("forget a log of the team")),
            Err(error) if error.code() == ErrorCode::NotFound => Ok(()),
            Err(error) => Err(self.git_error("forget a log of the team")(error)),
        }
    }

    /// Writes a commit that holds exactly these segments (names and contents), on top of `parent`.
    ///
    /// # Errors
    /// Returns an error when git has no name of the user, cannot write, or cannot sign.
    pub fn write_log_commit(
        &self,
        segments: &[(String, Vec<u8>)],
        parent: Option<&str>,
        signing: SigningMode,
    ) -> Result<String, GitError> {
        let failed = self.git_error("write records for the team");
        let mut tree = self.inner.treebuilder(None).map_err(failed)?;
        for (name, content) in segments {
            let blob = self.inner.blob(content).map_err(failed)?;
            tree.insert(name, blob, 0o100_644).map_err(failed)?;
        }
        let tree = tree.write().map_err(failed)?;
        if self.is_signing(signing) {
            return self.write_signed_commit(tree, parent, signing);
        }
        let signature = self.log_signature()?;
        let parent = parent.map(Oid::from_str).transpose().map_err(failed)?;
        let parent = parent.map(|id| self.inner.find_commit(id)).transpose().map_err(failed)?;
        let parents: Vec<&git2::Commit<'_>> = parent.iter().collect();
        let tree = self.inner.find_tree(tree).map_err(failed)?;
        let commit =
            self.inner.commit(None, &signature, &signature, COMMIT_MESSAGE, &tree, &parents).map_err(failed)?;
        Ok(commit.to_string())
    }

    /// Returns true if a commit will be signed.
    pub fn is_signing(&self, signing: SigningMode) -> bool {
        match signing {
            SigningMode::Always => true,
            SigningMode::Never => false,
            SigningMode::AsConfigured => {
                let config = self.inner.config().and_then(|mut config| config.snapshot());
                config.and_then(|config| config.get_bool("commit.gpgSign")).unwrap_or(false)
            }
        }
    }

    fn log_signature(&self) -> Result<Signature<'static>, GitError> {
        // Hosts refuse authors that they cannot read, so there is no substitute.
        let failed = |_| GitError::NoIdentity { path: self.root() };
        self.inner.signature().or_else(|_| {
            // git leaves these characters out of a name; libgit2 takes none that has them.
            let config = self.inner.config().and_then(|mut config| config.snapshot()).map_err(failed)?;
            let read = |name| config.get_string(name).map(|text| text.replace(['<', '>', '\n'], "")).map_err(failed);
            Signature::now(&read("user.name")?, &read("user.email")?).map_err(failed)
        })
    }

    fn write_signed_commit(&self, tree: Oid, parent: Option<&str>, signing: SigningMode) -> Result<String, GitError> {
        self.log_signature()?;
        let mut command = self.remote_command();
        command.args(["commit-tree", "-S", "-m", COMMIT_MESSAGE.trim_end()]);
        if let Some(parent) = parent {
            command.args(["-p", parent]);
        }
        command.arg(tree.to_string());
        let failed =
            |what| GitError::Unsigned { path: self.root(), what, is_configured: signing != SigningMode::Always };
        let output = git_command::run_with_input(command, "commit-tree", Vec::new(), self.git_patience)
            .map_err(|error| failed(error.to_string()))?;
        let id = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        match output.status.success() && Oid::from_str(&id).is_ok() {
            true => Ok(id),
            false => Err(failed(git_command::error_message(&output.stderr))),
        }
    }

    /// Moves a log of a remote to `commit`, which must stand on top of it.
    ///
    /// # Errors
    /// Returns an error when the remote cannot be reached or refuses the ref.
    pub fn push_log(&self, remote: &str, name: &str, commit: &str) -> Result<PushOutcome, GitError> {
        let mut command = self.remote_command();
        // What the user has set for pushes of branches is not meant for records.
        command.args(["-c", "push.pushOption=", "-c", "push.gpgSign=false"]);
        // Segments are no versions of each other. To search for deltas between those of 10,000 reviews takes 7 s of 8, for a pack of
        // 9.4 MB instead of 9.2.
        command.args(["-c", "pack.window=0"]);
        if self.inner.find_remote(remote).is_ok() {
            command.arg("-c").arg(format!("remote.{remote}.mirror=false"));
        }
        command.args(["push", "--porcelain", "--progress", "--no-verify", "--no-follow-tags", "--no-signed"]);
        command.args(["--recurse-submodules=no", "--", remote]);
        command.arg(format!("{commit}:{LOG_REFS}{name}"));
        let output = git_command::run_with_input(command, "push", Vec::new(), self.git_patience)
            .map_err(|error| self.remote_error("push", remote, error.to_string()))?;
        if output.status.success() {
            let id = Oid::from_str(commit).map_err(self.git_error("note a push"))?;
            self.inner
                .reference(&tracking_ref(remote, name), id, true, "revdeck: records for the team")
                .map_err(self.git_error("note a push"))?;
            return Ok(PushOutcome::Pushed);
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let rejection = text.lines().find_map(|line| line.strip_prefix("!\t")?.split('\t').nth(1).map(str::to_owned));
        match rejection {
            Some(reason) if is_moved(&reason) => Ok(PushOutcome::Moved),
            Some(reason) => Err(GitError::RefusedRef {
                remote: hide_credentials(&sanitize_line(remote)),
                name: format!("{LOG_REFS}{name}"),
                what: hide_credentials(&with_remote_words(sanitize_line(&reason).into_owned(), &output.stderr)),
            }),
            None => Err(self.remote_error("push", remote, describe_failure(&output.stderr))),
        }
    }

    /// Returns the git program for this repository, without hooks.
    pub(super) fn remote_command(&self) -> Command {
        let mut command = Command::new("git");
        command.args(["-c", "core.hooksPath=/dev/null", "-c", "gc.auto=0"]);
        command.arg("--git-dir").arg(self.inner.path());
        // Messages are parsed.
        command.env("LC_ALL", "C");
        // Nobody may be there to answer.
        command.args(["-c", "core.askPass="]).env("GIT_ASKPASS", "false").env_remove("SSH_ASKPASS");
        command.env("SSH_ASKPASS_REQUIRE", "never").env("GCM_INTERACTIVE", "never");
        if !self.has_ssh_command() {
            command.env("GIT_SSH_COMMAND", "ssh -o BatchMode=yes");
        }
        command
    }

    /// Returns true if the user has chosen the program for ssh.
    fn has_ssh_command(&self) -> bool {
        let config = self.inner.config().and_then(|mut config| config.snapshot());
        ["GIT_SSH_COMMAND", "GIT_SSH"].iter().any(|name| std::env::var_os(name).is_some())
            || config.is_ok_and(|config| config.get_string("core.sshCommand").is_ok())
    }

    fn run_remote(&self, command: Command, task: &str, remote: &str, input: Vec<u8>) -> Result<Output, GitError> {
        let output = git_command::run_with_input(command, task, input, self.git_patience)
            .map_err(|error| self.remote_error(task, remote, error.to_string()))?;
        match output.status.success() {
            true => Ok(output),
            false => Err(self.remote_error(task, remote, describe_failure(&output.stderr))),
        }
    }

    fn remote_error(&self, task: &str, remote: &str, what: String) -> GitError {
        GitError::Remote {
            path: self.root(),
            remote: hide_credentials(&sanitize_line(remote)),
            task: task.to_owned(),
            what: hide_credentials(&what),
        }
    }
}

/// Reasons of a rejection because the log has moved: since it was read, or because another push of it was quicker. The last three
/// come from servers with git 2.50 and later, which update refs together.
const MOVED_REASONS: [&str; 8] = [
    "fetch first",
    "non-fast-forward",
    "stale info",
    "failed to update ref",
    "cannot lock ref",
    "incorrect old value provided",
    "reference already exists",
    "reference does not exist",
];

/// Returns true if a push was rejected because the log has moved: it can be read and sent again.
fn is_moved(reason: &str) -> bool {
    MOVED_REASONS.iter().any(|words| reason.contains(words))
}

/// Returns the reason of a failure on one line, with what the remote side says about it. That the connection has ended says
/// nothing beside that.
fn describe_failure(errors: &[u8]) -> String {
    let reason = git_command::error_message(errors);
    match git_command::is_hang_up(&reason) {
        true => git_command::remote_words(errors).unwrap_or(reason),
        false => with_remote_words(reason, errors),
    }
}

fn with_remote_words(reason: String, errors: &[u8]) -> String {
    match git_command::remote_words(errors).filter(|words| !reason.contains(words.as_str())) {
        Some(words) => format!("{reason}: {words}"),
        None => reason,
    }
}

/// Returns a text without the user names and passwords of its URLs.
pub fn hide_credentials(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        let end = after.find(|c: char| c == '/' || c.is_whitespace() || matches!(c, '\'' | '"')).unwrap_or(after.len());
        let host = after[..end].rfind('@').map_or(0, |at| at + 1);
        shown.push_str(before);
        shown.push_str(&after[host..end]);
        rest = &after[end..];
    }
    shown.push_str(rest);
    shown
}

/// Returns the ref that holds a fetched log. Remotes may be URLs, so a hash stands for them.
fn tracking_ref(remote: &str, name: &str) -> String {
    let remote: String = blake3::hash(remote.as_bytes()).to_hex().chars().take(12).collect();
    format!("{TRACKING_REFS}{remote}/{name}")
}

#[cfg(test)]
mod tests {
    use super::{describe_failure, hide_credentials, is_moved};

    #[test]
    fn names_and_passwords_of_urls_are_hidden() {
        for (text, expected) in [
            ("origin", "origin"),
            ("https://host/x.git", "https://host/x.git"),
            ("https://ada:pass@host/x.git", "https://host/x.git"),
            (
                "fatal: unable to access 'https://token@host/x@y.git': 403",
                "fatal: unable to access 'https://host/x@y.git': 403",
            ),
            ("a://b@c d://e@f", "a://c d://f"),
            ("git@host:x.git", "git@host:x.git"),
        ] {
            assert_eq!(hide_credentials(text), expected);
        }
    }

    #[test]
    fn a_log_that_others_have_moved_is_told_from_one_that_is_refused() {
        for (reason, expected) in [
            ("[rejected] (fetch first)", true),
            ("[rejected] (non-fast-forward)", true),
            ("[remote rejected] (failed to update ref)", true),
            ("[remote rejected] (cannot lock ref 'refs/x': is at a but expected b)", true),
            ("[remote rejected] (cannot lock ref 'refs/x': reference already exists)", true),
            ("[remote rejected] (incorrect old value provided)", true),
            ("[remote rejected] (reference already exists)", true),
            ("[remote rejected] (reference does not exist)", true),
            ("[remote rejected] (deny updating a hidden ref)", false),
            ("[remote rejected] (pre-receive hook declined)", false),
            ("[remote rejected] (refname conflict)", false),
            ("[remote rejected] (unpacker error)", false),
        ] {
            assert_eq!(is_moved(reason), expected, "{reason}");
        }
    }

    #[test]
    fn a_failure_names_what_the_remote_says_and_not_that_the_connection_has_ended() {
        for (errors, expected) in [
            ("fatal: Could not read from remote repository.\n", "Could not read from remote repository."),
            (
                "Gitea: User: 2:bob with Key: 1:k is not authorized to write to o/r.\nfatal: Could not read from remote repository.\n",
                "Gitea: User: 2:bob with Key: 1:k is not authorized to write to o/r.",
            ),
            (
                "remote: Permission to o/r.git denied to ada.\n\
                 fatal: unable to access 'https://h/o/r.git/': The requested URL returned error: 403\n",
                "unable to access 'https://h/o/r.git/': The requested URL returned error: 403: Permission to o/r.git denied to ada.",
            ),
        ] {
            assert_eq!(describe_failure(errors.as_bytes()), expected);
        }
    }
}
