//! Defines the errors of the git module; each names its path and, where possible, a remedy.

use std::borrow::Cow;
use std::path::PathBuf;

use thiserror::Error;

/// Settings by which a job of continuous integration gets the whole history.
const DEEP_CHECKOUT: &str = "in a job, check out with `fetch-depth: 0` (GitHub) or `GIT_DEPTH: \"0\"` (GitLab)";

/// An error of the git module.
#[derive(Debug, Error)]
pub enum GitError {
    /// Neither the folder nor a parent folder is a git repository.
    #[error("{} is not in a git repository", path.display())]
    NotARepository {
        /// Folder where the search started.
        path: PathBuf,
    },
    /// `GIT_DIR` names a path that is not a git repository.
    #[error("GIT_DIR names {}, which is not a git repository", path.display())]
    NotAGitDir {
        /// Value of `GIT_DIR`.
        path: PathBuf,
    },
    /// git's protection against repositories that belong to another user.
    #[error("the repository around {} belongs to somebody else", path.display())]
    NotOwned {
        /// Folder that was to be opened.
        path: PathBuf,
    },
    /// A repository format that libgit2 cannot read, such as SHA-256 or reftable.
    #[error("the repository around {} has a format that revdeck cannot read: {what}", path.display())]
    Unsupported {
        /// Folder that was to be opened, or the objects folder that a checkout cannot borrow.
        path: PathBuf,
        /// Reason, such as the message of libgit2.
        what: String,
    },
    /// An operation needs a working tree, but the repository is bare.
    #[error("{} has no working tree", path.display())]
    NoWorktree {
        /// Git dir of the repository.
        path: PathBuf,
    },
    /// The staged scope was requested in a bare repository without an index file.
    #[error("{} has neither a working tree nor an index", path.display())]
    NoIndex {
        /// Git dir of the repository.
        path: PathBuf,
    },
    /// The staged scope has a merge conflict; the sides of a conflict are not what will be committed.
    #[error("a merge is in progress in {}: {}", path.display(), unmerged(paths))]
    Unmerged {
        /// Paths with unresolved conflicts, relative to the repository root; never empty.
        paths: Vec<String>,
        /// Root of the repository.
        path: PathBuf,
    },
    /// A clone made with `--filter` lacks objects that could not be fetched.
    #[error("{} is a partial clone: {} of what is to be reviewed {} not here, and {what}",
        path.display(), crate::domain::text::format_count(*missing, "object"), if *missing == 1 { "is" } else { "are" })]
    PartialClone {
        /// Root of the repository.
        path: PathBuf,
        /// Number of missing objects, at least 1.
        missing: usize,
        /// Reason why they could not be fetched, such as "origin does not have them".
        what: String,
    },
    /// A revision does not resolve to a commit.
    #[error("{text:?} names no commit in {}", path.display())]
    UnknownRevision {
        /// Revision as it was given.
        text: String,
        /// Root of the repository.
        path: PathBuf,
        /// True if the repository is a shallow clone, which may lack the commit.
        is_shallow: bool,
    },
    /// HEAD was requested, but it has no commit yet.
    #[error("{} has no commit yet", path.display())]
    Unborn {
        /// Root of the repository.
        path: PathBuf,
    },
    /// No base branch was found.
    #[error("cannot guess what the branch started from in {}: none of {} exists", path.display(), tried.join(", "))]
    NoBase {
        /// Candidates in the order in which they were tried, such as "its upstream" and "main".
        tried: Vec<String>,
        /// Root of the repository.
        path: PathBuf,
    },
    /// Two commits have unrelated histories, or a shallow clone cuts off their common ancestor.
    #[error("{one:?} and {other:?} have no common ancestor in {}", path.display())]
    NoMergeBase {
        /// Name of the first commit.
        one: String,
        /// Name of the second commit.
        other: String,
        /// Root of the repository.
        path: PathBuf,
        /// True if the repository is a shallow clone, which may lack the common ancestor.
        is_shallow: bool,
    },
    /// The index is damaged, has an unknown version, or is split and git could not join it.
    #[error("cannot read the index {}: {what}", path.display())]
    Index {
        /// The index file.
        path: PathBuf,
        /// Reason, such as "it is damaged".
        what: String,
    },
    /// The commit has more files than the limit of a temporary checkout.
    #[error("{commit} in {} has more than {limit} files", path.display())]
    TooManyFiles {
        /// Id of the commit in hexadecimal.
        commit: String,
        /// Maximum number of files of a checkout.
        limit: usize,
        /// Root of the repository.
        path: PathBuf,
    },
    /// An entry that may block whoever opens it stands in the place of a file of git.
    #[error("{} is {what}, not a file: whoever reads it may wait for ever", path.display())]
    Blocking {
        /// Path of the entry.
        path: PathBuf,
        /// Kind of the entry, such as "a named pipe".
        what: &'static str,
    },
    /// The objects of a team's logs could not be packed.
    #[error("records of the team are not packed in {}: {what}", path.display())]
    NotPacked {
        /// Root of the repository.
        path: PathBuf,
        /// Reason, such as a message of git.
        what: String,
    },
    /// A path that revdeck does not read or write for a fix: a link, a path in a git dir, or another repository.
    #[error("{} is not touched: {why}", path.display())]
    NotTouched {
        /// Absolute path of the file or folder.
        path: PathBuf,
        /// Reason, such as "its folder cannot be made".
        why: String,
    },
    /// The program `git`, which is needed for an action on a file, could not be started.
    #[error("git cannot be run to {action} of {}: {source}", path.display())]
    NoGit {
        /// Action that needs git, such as "join the split index".
        action: &'static str,
        /// Root or git dir of the repository.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// An operation on a file or folder failed.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// Failed action, such as "read the index".
        action: &'static str,
        /// File or folder of the operation.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// A remote could not be reached, or did not do what it was asked for.
    #[error("git {task} with {remote} failed in {}: {what}", path.display())]
    Remote {
        /// Root of the repository.
        path: PathBuf,
        /// Remote as it was given: a name, a URL or a path.
        remote: String,
        /// Subcommand of git, such as "fetch".
        task: String,
        /// Message of git.
        what: String,
    },
    /// A remote refused a ref.
    #[error("{remote} refuses the ref {name}: {what}")]
    RefusedRef {
        /// Remote as it was given: a name, a URL or a path.
        remote: String,
        /// Full name of the ref.
        name: String,
        /// Reason that the remote gave.
        what: String,
    },
    /// git does not know who the user is.
    #[error("git has no user.name and user.email in {}, so records for the team would have no author", path.display())]
    NoIdentity {
        /// Root of the repository.
        path: PathBuf,
    },
    /// A commit could not be signed.
    #[error("git cannot sign in {}: {what}", path.display())]
    Unsigned {
        /// Root of the repository.
        path: PathBuf,
        /// Message of git.
        what: String,
        /// True if git's configuration asks for signatures, not the settings of revdeck.
        is_configured: bool,
    },
    /// A call of libgit2 failed.
    #[error("cannot {action} in {}: {source}", path.display())]
    Git {
        /// Failed action, such as "compare two files".
        action: &'static str,
        /// Root of the repository, or the file or folder that the call concerns.
        path: PathBuf,
        /// Error of libgit2.
        source: git2::Error,
    },
}

/// Prefixes of the actions that write to the git dir.
const WRITE_ACTIONS: [&str; 2] = ["write a snapshot", "keep a snapshot"];
/// Maximum number of paths named in an error; further paths are only counted.
const MAX_NAMED_PATHS: usize = 3;

fn unmerged(paths: &[String]) -> String {
    let named: Vec<&str> = paths.iter().take(MAX_NAMED_PATHS).map(String::as_str).collect();
    let more = match paths.len().saturating_sub(MAX_NAMED_PATHS) {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    format!("{}{more} {} unmerged", named.join(", "), if paths.len() == 1 { "is" } else { "are" })
}

/// Returns true when the system refused a write; libgit2 reports this in the message only.
fn is_permission_error(error: &git2::Error) -> bool {
    ["Permission denied", "Read-only file system"].iter().any(|words| error.message().contains(words))
}

/// Returns true for a message of git or ssh that says that the remote wants to know who asks.
fn is_missing_login(message: &str) -> bool {
    ["Permission denied", "Authentication failed", "could not read Username", "terminal prompts disabled"]
        .iter()
        .any(|words| message.contains(words))
}

/// Returns true for a message that says that the remote knows who asks, and does not let the person do it.
fn is_forbidden(message: &str) -> bool {
    FORBIDDEN_WORDS.iter().any(|words| message.contains(words))
}

/// Words of git hosts for [`is_forbidden`].
const FORBIDDEN_WORDS: [&str; 12] = [
    "returned error: 403",
    // GitHub
    "denied to ",
    "marked as read only",
    // GitLab
    "not allowed",
    "not permitted",
    "does not have write access",
    "can't push code",
    "temporarily read-only",
    // GitHub and Gitea
    "is read-only",
    "is archived",
    // Gitea and Forgejo
    "not authorized to ",
    // gitolite
    "DENIED by ",
];

/// Returns true for a message that says that there is no such repository. Hosts say the same to somebody who may not know of it.
fn is_unknown_repository(message: &str) -> bool {
    ["Repository not found", "could not be found", "Cannot find repository"].iter().any(|words| message.contains(words))
        || (message.starts_with("repository '") && message.contains("' not found"))
}

/// Returns the path of a repository that git does not use because it belongs to somebody else, from git's message.
fn path_of_other_owner(message: &str) -> Option<&str> {
    let (_, rest) = message.split_once("dubious ownership in repository at '")?;
    rest.split_once('\'').map(|(path, _)| path)
}

/// Returns a path as a word of a command line of a shell. A remote may name any path.
fn quote_path(path: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+:@,".contains(c);
    match !path.is_empty() && path.chars().all(is_plain) {
        true => path.into(),
        false => format!("'{}'", path.replace('\'', r"'\''")).into(),
    }
}

/// Returns the next step for a ref that a remote refuses; `what` is its reason.
fn refused_ref_hint(what: &str) -> String {
    let is_about = |words: &[&str]| words.iter().any(|words| what.contains(words));
    if what.contains("hidden ref") {
        format!(
            "receive.hideRefs or transfer.hideRefs of the remote hides refs/revdeck: let its owner take that out; {OTHER_PLACE}"
        )
    } else if is_about(&["private email", "email privacy", "committer email", "not a member of team"]) {
        format!(
            "the commits of the records carry your address: `git config user.email ADDRESS` sets one that the host takes; \
             {OTHER_PLACE}"
        )
    } else if is_about(&["must be signed", "verified signature", "unverified commit"]) {
        format!("`[team] sign = \"always\"` signs the records with the key of your git; {OTHER_PLACE}")
    } else if is_about(&["unable to create temporary object directory", "insufficient permission"]) {
        format!(
            "everybody who sends records must be able to write to the repository: `git init --bare --shared` makes one for a \
             group; {OTHER_PLACE}"
        )
    } else {
        "a remote of its own for the records works, also a bare repository: `revdeck team join REMOTE`".to_owned()
    }
}

/// Way out of a remote that does not take records.
const OTHER_PLACE: &str = "`revdeck team join REMOTE` keeps the records elsewhere, also in a bare repository";

impl GitError {
    /// Returns a sentence with a remedy; `None` when there is no specific remedy.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NotARepository { .. } => "change into a repository, or make one with `git init`".to_owned(),
            Self::NotAGitDir { .. } => "unset GIT_DIR, or let it name the .git folder of a repository".to_owned(),
            Self::NotOwned { path } => {
                let path = path.to_string_lossy();
                format!("if you trust it, run `git config --global --add safe.directory {}`", quote_path(&path))
            }
            Self::Unsupported { .. } => {
                "a clone with the default formats (SHA-1 objects, files as refs) works".to_owned()
            }
            Self::NoWorktree { .. } | Self::NoIndex { .. } => {
                "name a commit, a range or a branch instead of the working tree".to_owned()
            }
            Self::Unmerged { .. } => {
                "resolve it and `git add` it; or review the working tree as it is, with `--worktree`".to_owned()
            }
            Self::PartialClone { .. } => {
                "`git fetch --refetch --no-filter` makes it a full clone, while its remote can be reached".to_owned()
            }
            Self::UnknownRevision { is_shallow: true, .. } => format!(
                "the clone is shallow and may have neither the commit nor the branch: \
                 `git fetch --unshallow origin '+refs/heads/*:refs/remotes/origin/*'` brings all; {DEEP_CHECKOUT}"
            ),
            Self::UnknownRevision { .. } => "`git log --oneline --all` shows the commits there are".to_owned(),
            Self::Blocking { .. } => "move it away; git itself would wait for it as well".to_owned(),
            Self::Unborn { .. } => "review the working tree, or commit first".to_owned(),
            Self::NoBase { .. } => "name the base yourself, as in `--branch origin/develop`".to_owned(),
            Self::NoMergeBase { is_shallow: true, .. } => format!(
                "the clone is shallow and ends before the commit that both come from: `git fetch --unshallow` brings it; \
                 {DEEP_CHECKOUT}"
            ),
            Self::NoMergeBase { .. } => {
                "their histories are unrelated: name another base, as in `--branch origin/develop`".to_owned()
            }
            Self::TooManyFiles { .. } => "use a reviewer that needs no checkout of its own".to_owned(),
            Self::Index { .. } => "`git status` says whether git itself can read it".to_owned(),
            Self::Git { action, source, .. }
                if is_permission_error(source) && WRITE_ACTIONS.iter().any(|writing| action.starts_with(writing)) =>
            {
                "revdeck stores a snapshot as git objects and needs to write to .git".to_owned()
            }
            Self::Remote { what, .. } if is_missing_login(what) => {
                "git must reach the remote without asking: use an ssh agent or a credential helper; `git ls-remote REMOTE` tests it"
                    .to_owned()
            }
            Self::Remote { task, what, .. } if is_forbidden(what) && task == "push" => format!(
                "the remote may be read here, but not written to: take a token or key with the right to push \
                 (`contents: write` in a job of GitHub); {OTHER_PLACE}"
            ),
            Self::Remote { what, .. } if is_forbidden(what) => {
                format!("the remote may not be read here: see the rights of the token or key; {OTHER_PLACE}")
            }
            Self::Remote { what, .. } if what.contains("Host key verification failed") => format!(
                "ssh does not know the key of the host, or knows another one: `ssh HOST` shows it and asks once; {OTHER_PLACE}"
            ),
            Self::Remote { what, .. } if is_unknown_repository(what) => format!(
                "the address is wrong, or your token or key may not know of the repository: hosts say the same of both; \
                 {OTHER_PLACE}"
            ),
            Self::Remote { what, .. } if what.contains("returned error: 413") => format!(
                "the web server before the remote limits the size of a push (nginx: client_max_body_size): let its owner raise it; \
                 {OTHER_PLACE}"
            ),
            Self::Remote { what, .. } if path_of_other_owner(what).is_some() => format!(
                "the repository belongs to somebody else: if you trust them, run `git config --global --add safe.directory {}`",
                quote_path(path_of_other_owner(what).unwrap_or_default())
            ),
            Self::Remote { .. } => "nothing is lost; `git ls-remote REMOTE` says whether git itself can reach it, and `revdeck team join REMOTE` takes another one".to_owned(),
            Self::RefusedRef { what, .. } => refused_ref_hint(what),
            Self::NoIdentity { .. } => {
                "`git config user.name NAME` and `git config user.email ADDRESS` set them".to_owned()
            }
            Self::Unsigned { is_configured: true, .. } => {
                "commit.gpgSign asks for signatures; `[team] sign = \"never\"` sends the records without".to_owned()
            }
            Self::Unsigned { .. } => "check user.signingKey and gpg.format, or leave `[team] sign` out".to_owned(),
            Self::NoGit { .. } => "install git, or put it into PATH".to_owned(),
            Self::NotPacked { .. } | Self::NotTouched { .. } | Self::Io { .. } | Self::Git { .. } => return None,
        })
    }

    /// Wraps a libgit2 error that occurred during `action`.
    pub(super) fn from_git2(action: &'static str, path: impl Into<PathBuf>, source: git2::Error) -> Self {
        Self::Git { action, path: path.into(), source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_the_way_out() {
        let os = |message: &str| git2::Error::new(git2::ErrorCode::GenericError, git2::ErrorClass::Os, message);
        let hint = |action, message| GitError::from_git2(action, "/r", os(message)).hint();
        for (action, message, helps) in [
            ("write a snapshot", "failed to create '.git/objects/aa': Permission denied", true),
            ("write a snapshot of a file", "cannot write: Read-only file system", true),
            ("keep a snapshot", "failed to lock: Permission denied", true),
            ("write a snapshot", "cannot write: No space left on device", false),
            ("read HEAD", "failed to open: Permission denied", false),
        ] {
            let says = hint(action, message).is_some_and(|hint| hint.contains("needs to write to .git"));
            assert_eq!(says, helps, "{action}: {message}");
        }
        for is_shallow in [true, false] {
            let (path, text) = (PathBuf::from("/r"), || "a".to_owned());
            for error in [
                GitError::UnknownRevision { text: text(), path: path.clone(), is_shallow },
                GitError::NoMergeBase { one: text(), other: text(), path: path.clone(), is_shallow },
            ] {
                let hint = error.hint().unwrap_or_default();
                assert_eq!(hint.contains("`git fetch --unshallow"), is_shallow, "{error}: {hint}");
                assert_eq!(hint.contains("`fetch-depth: 0`"), is_shallow, "{error}: {hint}");
            }
        }
    }

    #[test]
    fn the_words_of_git_hosts_lead_to_the_way_out() {
        let remote = |task: &str, what: &str| GitError::Remote {
            path: "/r".into(),
            remote: "origin".to_owned(),
            task: task.to_owned(),
            what: what.to_owned(),
        };
        let no_push = "may be read here, but not written to";
        let no_read = "may not be read here";
        for (task, what, expected) in [
            ("push", "ERROR: Permission to o/r.git denied to ada.", no_push),
            ("push", "ERROR: The key you are authenticating with has been marked as read only.", no_push),
            ("push", "ERROR: This repository was archived so it is read-only.", no_push),
            ("push", "You are not allowed to push code to this project.", no_push),
            ("push", "This deploy key does not have write access to this project.", no_push),
            ("push", "You can't push code to an archived project.", no_push),
            ("push", "Gitea: User: 2:bob with Key: 1:k is not authorized to write to o/r.", no_push),
            ("push", "Gitea: Mirror Repository o/r is read-only", no_push),
            ("push", "Gitea: Repo: o/r is archived.", no_push),
            ("push", "The repository is temporarily read-only. Please try again later.", no_push),
            (
                "push",
                "unable to access 'https://h/archived/read-only.git/': Could not resolve host: h",
                "nothing is lost",
            ),
            ("push", "FATAL: W any r bob DENIED by fallthru (or you mis-spelled the reponame)", no_push),
            ("push", "RPC failed; HTTP 403 curl 22 The requested URL returned error: 403", no_push),
            ("ls-remote", "FATAL: R any r bob DENIED by fallthru (or you mis-spelled the reponame)", no_read),
            ("ls-remote", "git@h: Permission denied (publickey).", "use an ssh agent or a credential helper"),
            ("ls-remote", "Host key verification failed.", "`ssh HOST` shows it"),
            ("ls-remote", "ERROR: Repository not found.", "hosts say the same of both"),
            ("ls-remote", "repository 'https://h/o/r.git/' not found", "hosts say the same of both"),
            ("ls-remote", "Gitea: Cannot find repository: o/r", "hosts say the same of both"),
            ("ls-remote", "sh: git-upload-pack: command not found", "nothing is lost"),
            ("ls-remote", "ssh: connect to host h port 22: Connection refused", "nothing is lost"),
            ("push", "RPC failed; HTTP 413 curl 22 The requested URL returned error: 413", "client_max_body_size"),
            (
                "ls-remote",
                "detected dubious ownership in repository at '/srv/it.git'",
                "run `git config --global --add safe.directory /srv/it.git`",
            ),
            (
                "ls-remote",
                "detected dubious ownership in repository at '/srv/my team; true.git'",
                "run `git config --global --add safe.directory '/srv/my team; true.git'`",
            ),
        ] {
            let hint = remote(task, what).hint().unwrap_or_default();
            assert!(hint.contains(expected), "{what}: {hint}");
        }
        let refused = |what: &str| GitError::RefusedRef {
            remote: "origin".to_owned(),
            name: "refs/revdeck/team/ada-1".to_owned(),
            what: what.to_owned(),
        };
        for (what, expected) in [
            ("(deny updating a hidden ref)", "hides refs/revdeck"),
            ("(x): error: GH007: Your push would publish a private email address.", "git config user.email"),
            ("(push declined due to email privacy restrictions)", "git config user.email"),
            ("(x): GitLab: Author 'a@h' is not a member of team", "git config user.email"),
            ("(x): GitLab: Commit must be signed with a GPG key", "sign = \"always\""),
            ("(x): error: GH013: Rules. - Commits must have verified signatures.", "sign = \"always\""),
            ("(unpacker error): unable to create temporary object directory", "git init --bare --shared"),
            ("(hook declined): FATAL: W refs/revdeck/team/ada-1 r ada DENIED by fallthru", "a remote of its own"),
        ] {
            let hint = refused(what).hint().unwrap_or_default();
            assert!(hint.contains(expected) && hint.contains("`revdeck team join REMOTE`"), "{what}: {hint}");
        }
    }

    #[test]
    fn a_path_in_a_command_is_one_word() {
        for (path, expected) in [
            ("/srv/it.git", "/srv/it.git"),
            ("/srv/größe_1-2+3", "/srv/größe_1-2+3"),
            ("/srv/my team.git", "'/srv/my team.git'"),
            ("/srv/$(id)", "'/srv/$(id)'"),
            ("/srv/ada's", r"'/srv/ada'\''s'"),
            ("~/x", "'~/x'"),
            ("*", "'*'"),
            ("", "''"),
        ] {
            assert_eq!(quote_path(path), expected);
            let hint = GitError::NotOwned { path: path.into() }.hint().unwrap_or_default();
            assert!(hint.ends_with(&format!("safe.directory {expected}`")), "{hint}");
        }
    }

    #[test]
    fn an_error_of_a_merge_names_at_most_three_paths() {
        let paths = |n: usize| (0..n).map(|n| format!("f{n}")).collect();
        for (n, says) in
            [(1, "in /r: f0 is unmerged"), (2, "f0, f1 are unmerged"), (5, "f0, f1, f2 and 2 more are unmerged")]
        {
            let error = GitError::Unmerged { paths: paths(n), path: "/r".into() };
            assert!(error.to_string().ends_with(says), "{error}");
        }
    }
}
