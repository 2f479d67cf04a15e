//! Reads who has signed the commits of a log, as git verifies it.

use git2::{ErrorCode, Oid};

use super::{GitError, LogSignature, Repo, git_command};
use crate::domain::text::sanitize_line;

/// Output of `git log` that [`parse_signer`] reads: the result of the verification, the key and its owner.
const SIGNER_FORMAT: &str = "--format=%G?%x00%GF%x00%GS";

/// Signer of a log's commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogSigner {
    /// Signature of the commit.
    pub signature: LogSignature,
    /// Fingerprint of the key, also of one that git does not trust; empty without a signature that fits.
    pub key: String,
}

impl Repo {
    /// Verifies the signature of a log's commit.
    ///
    /// # Errors
    /// Returns an error when the commit cannot be read.
    pub fn log_commit_signature(&self, commit: &str) -> Result<LogSignature, GitError> {
        let failed = self.git_error("read a log of the team");
        let id = Oid::from_str(commit).map_err(failed)?;
        match self.inner.extract_signature(&id, None) {
            Ok(_) => {}
            Err(error) if error.code() == ErrorCode::NotFound => return Ok(LogSignature::None),
            Err(error) => return Err(failed(error)),
        }
        let mut command = self.remote_command();
        command.args(["log", "-1", "--no-show-signature", SIGNER_FORMAT, &id.to_string(), "--"]);
        let output = git_command::run_with_input(command, "log", Vec::new(), self.git_patience);
        let Ok(output) = output else { return Ok(LogSignature::Unknown) };
        Ok(match parse_signer(String::from_utf8_lossy(&output.stdout).trim_end()).signature {
            // Without a list of trusted ssh keys, git says this of every ssh signature.
            LogSignature::None => LogSignature::Unknown,
            signature => signature,
        })
    }

    /// Returns the signers of a fetched log's commits that none of the `known` commits contains, oldest first; of the `max`
    /// newest ones if there is a limit. A known commit that is not here contains none.
    ///
    /// # Errors
    /// Returns an error when `commit` is no id, the log is not here, or git cannot read it.
    pub fn list_log_signers(&self, commit: &str, known: &[&str], max: Option<u32>) -> Result<Vec<LogSigner>, GitError> {
        let failed = self.git_error("read who has signed a log of the team");
        // The version of a log comes from its place and from files, and must not be an option of git's.
        let commit = Oid::from_str(commit).map_err(failed)?.to_string();
        let mut command = self.remote_command();
        if !self.has_trusted_ssh_keys() {
            // Without a list of trusted keys, git says nothing about a signature; with an empty one, it says which key it is.
            command.args(["-c", "gpg.ssh.allowedSignersFile=/dev/null"]);
        }
        command.args(["log", "--reverse", "--topo-order", "--no-color", "--no-show-signature"]);
        command.arg(SIGNER_FORMAT);
        if let Some(max) = max {
            command.arg(format!("--max-count={max}"));
        }
        command.arg(commit);
        let known = known.iter().filter_map(|commit| Oid::from_str(commit).ok());
        let known = known.filter(|id| self.inner.find_commit(*id).is_ok());
        command.args(known.map(|id| format!("^{id}")));
        command.arg("--");
        let output = git_command::run_with_input(command, "log", Vec::new(), self.git_patience)
            .map_err(|error| failed(git2::Error::from_str(&error.to_string())))?;
        if !output.status.success() {
            return Err(failed(git2::Error::from_str(&git_command::error_message(&output.stderr))));
        }
        Ok(String::from_utf8_lossy(&output.stdout).lines().map(parse_signer).collect())
    }

    /// Returns true if git's configuration names the ssh keys that it trusts. Asks git, because a job may set this by
    /// environment variables.
    fn has_trusted_ssh_keys(&self) -> bool {
        let mut command = self.remote_command();
        command.args(["config", "--get", "gpg.ssh.allowedSignersFile"]);
        let output = git_command::run_with_input(command, "config", Vec::new(), self.git_patience);
        output.is_ok_and(|output| output.status.success())
    }
}

/// Parses a line of [`SIGNER_FORMAT`].
fn parse_signer(line: &str) -> LogSigner {
    let mut fields = line.splitn(3, '\0');
    let mut next = || fields.next().unwrap_or_default();
    let (result, key, owner) = (next(), next(), next());
    let signature = match result {
        "G" => LogSignature::Trusted(sanitize_line(owner).into_owned()),
        "B" | "R" => LogSignature::Bad,
        "N" => LogSignature::None,
        _ => LogSignature::Unknown,
    };
    // A key of unknown trust (U) and one that has expired since (X, Y) have made a signature that fits.
    let fits = matches!(result, "G" | "U" | "X" | "Y");
    LogSigner { signature, key: if fits { key.to_owned() } else { String::new() } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_signature_that_fits_names_its_key() {
        let trusted = || LogSignature::Trusted("ada@example.org".to_owned());
        for (line, signature, key) in [
            ("G\0SHA256:aa\0ada@example.org", trusted(), "SHA256:aa"),
            ("U\0SHA256:aa\0", LogSignature::Unknown, "SHA256:aa"),
            ("Y\0AABB\0Ada", LogSignature::Unknown, "AABB"),
            ("R\0AABB\0Ada", LogSignature::Bad, ""),
            ("B\0\0", LogSignature::Bad, ""),
            ("E\0\0", LogSignature::Unknown, ""),
            ("N\0\0", LogSignature::None, ""),
            ("", LogSignature::Unknown, ""),
        ] {
            assert_eq!(parse_signer(line), LogSigner { signature, key: key.to_owned() }, "{line:?}");
        }
    }
}
