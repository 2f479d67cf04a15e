//! Keeps the logs of a team in refs of a git remote, see [`crate::git`].

use std::cell::Cell;
use std::collections::HashSet;

use super::backend::{
    AppendOutcome, LogList, LogVersion, PageReceiver, ReceivedSegment, TeamBackend, TeamError, UnreadSegment,
};
use super::segment::MAX_SEGMENT_BYTES;
use crate::domain::text::sanitize_line;
use crate::domain::{MachineName, content_hash};
use crate::git::{LogSignature, LogSigner, PushOutcome, RemoteLog, RemoteLogList, Repo, SigningMode, hide_credentials};

/// Number of segments above which the owner of a log joins the newer ones: each costs a reader a look-up.
const MAX_SEGMENTS: usize = 32;
/// Number of the newest segments that are joined in any case.
const MIN_JOINED_SEGMENTS: usize = MAX_SEGMENTS / 2;
/// Maximum number of segments of a page.
const MAX_PAGE_SEGMENTS: usize = 1_000;
/// Maximum size of a page in bytes.
const MAX_PAGE_BYTES: u64 = 2 * MAX_SEGMENT_BYTES as u64;
/// Digits of a segment's number in its name, so that names sort by age.
const NUMBER_DIGITS: usize = 6;

/// Logs of a team in a git remote.
pub struct GitBackend<'a> {
    repo: &'a Repo,
    /// Name of a remote, URL or path.
    remote: String,
    signing: SigningMode,
    growth: Cell<RepositoryGrowth>,
}

/// Objects that exchanges have left in the repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum RepositoryGrowth {
    Nothing,
    /// Some loose objects.
    LooseObjects,
    /// A pack, or several.
    Pack,
}

impl<'a> GitBackend<'a> {
    /// Returns the logs of `remote`: the name of a remote of the repository, a URL, or the path of a repository.
    pub fn new(repo: &'a Repo, remote: &str, signing: SigningMode) -> Self {
        Self { repo, remote: remote.to_owned(), signing, growth: Cell::new(RepositoryGrowth::Nothing) }
    }

    fn note_growth(&self, growth: RepositoryGrowth) {
        self.growth.set(self.growth.get().max(growth));
    }

    fn segment_name(number: usize, content: &[u8]) -> String {
        let hash: String = content_hash([content]).chars().take(12).collect();
        format!("{number:0NUMBER_DIGITS$}-{hash}.ndjson")
    }

    /// Returns the fingerprint of the key that has signed a version; empty if there is none.
    fn find_key(&self, version: &str) -> String {
        let signers = self.repo.list_log_signers(version, &[], Some(1));
        signers.ok().and_then(|mut signers| signers.pop()).map_or_else(String::new, |signer| signer.key)
    }

    /// Fails if the own log has commits that the key of this machine has not signed. Jobs of continuous integration share
    /// their log, each with a key that the others trust.
    fn check_signers(&self, log: &MachineName, signers: &[LogSigner], own_key: &str) -> Result<(), TeamError> {
        let is_shared = log.as_str() == MachineName::CI_LOG;
        let is_own = |signer: &LogSigner| {
            (!own_key.is_empty() && signer.key == own_key)
                || (is_shared && matches!(signer.signature, LogSignature::Trusted(_)))
        };
        match signers.iter().all(is_own) {
            true => Ok(()),
            false => Err(TeamError::ForeignRecords {
                log: log.clone(),
                place: hide_credentials(&sanitize_line(&self.remote)),
            }),
        }
    }
}

/// Returns the number of an own log's newest commits that are verified before it grows; `None` for all new ones. Each job of
/// continuous integration is new to a long log, and whoever has signed the last commit has verified those before it.
fn newest_checked(log: &MachineName) -> Option<u32> {
    (log.as_str() == MachineName::CI_LOG).then_some(1)
}

impl TeamBackend for GitBackend<'_> {
    fn place(&self) -> &str {
        &self.remote
    }

    fn list_logs(&self, own: &MachineName) -> Result<LogList, TeamError> {
        let RemoteLogList { logs, left_out } = self.repo.list_remote_logs(&self.remote, own.as_str())?;
        // A ref with another name is none of ours.
        let named =
            logs.into_iter().filter_map(|log| Some(LogVersion { name: log.name.parse().ok()?, version: log.commit }));
        Ok(LogList { logs: named.collect(), left_out, has_budget: false })
    }

    fn fetch_logs(&self, logs: &[LogVersion]) -> Result<(), TeamError> {
        let logs: Vec<RemoteLog> =
            logs.iter().map(|log| RemoteLog { name: log.name.to_string(), commit: log.version.clone() }).collect();
        let packs = self.repo.count_packs();
        self.repo.fetch_remote_logs(&self.remote, &logs)?;
        self.note_growth(match self.repo.count_packs() > packs {
            true => RepositoryGrowth::Pack,
            false => RepositoryGrowth::LooseObjects,
        });
        Ok(())
    }

    fn read_segments(
        &self,
        log: &LogVersion,
        since: Option<&str>,
        take: &mut PageReceiver<'_>,
    ) -> Result<(), TeamError> {
        let before = since.and_then(|commit| self.repo.log_segments(commit).ok()).unwrap_or_default();
        let known: HashSet<String> = before.into_iter().map(|segment| segment.blob).collect();
        let (mut page, mut bytes) = (Vec::new(), 0_u64);
        for segment in self.repo.log_segments(&log.version)? {
            if known.contains(&segment.blob) {
                continue;
            }
            let fault = match segment.bytes {
                _ if !segment.is_file => Some(UnreadSegment::NoFile),
                bytes if bytes > MAX_SEGMENT_BYTES as u64 => Some(UnreadSegment::TooLarge { bytes }),
                _ => None,
            };
            let size = if fault.is_none() { segment.bytes } else { 0 };
            if bytes + size > MAX_PAGE_BYTES || page.len() == MAX_PAGE_SEGMENTS {
                if take(std::mem::take(&mut page)).is_break() {
                    return Ok(());
                }
                bytes = 0;
            }
            bytes += size;
            let content = match fault {
                Some(fault) => Err(fault),
                None => Ok(self.repo.blob(&segment.blob)?),
            };
            page.push(ReceivedSegment { name: segment.name, content });
        }
        if !page.is_empty() {
            // The last page: nothing is left to break off.
            let _ = take(page);
        }
        Ok(())
    }

    fn has_version(&self, log: &LogVersion, version: &str) -> Result<bool, TeamError> {
        Ok(self.repo.log_contains(&log.version, version)?)
    }

    fn log_signature(&self, log: &LogVersion) -> Result<LogSignature, TeamError> {
        Ok(self.repo.log_commit_signature(&log.version)?)
    }

    fn new_signatures(&self, log: &LogVersion, known: &str, own: Option<&str>) -> Result<Vec<LogSignature>, TeamError> {
        // The last version of a machine that does not sign may be anybody's.
        let own = own.filter(|_| self.repo.is_signing(self.signing));
        let key = own.map_or_else(String::new, |own| self.find_key(own));
        let signers = self.repo.list_log_signers(&log.version, &[known], None)?;
        let to_signature = |signer: LogSigner| match !key.is_empty() && signer.key == key {
            true => LogSignature::Trusted("this machine".to_owned()),
            false => signer.signature,
        };
        Ok(signers.into_iter().map(to_signature).collect())
    }

    fn is_own(&self, log: &LogVersion, known: &str) -> Result<bool, TeamError> {
        if !self.repo.is_signing(self.signing) {
            return Ok(true);
        }
        if known.is_empty() {
            // Only what this machine signs next tells its key.
            return Ok(false);
        }
        let key = self.find_key(known);
        let new = self.repo.list_log_signers(&log.version, &[known], newest_checked(&log.name))?;
        self.check_signers(&log.name, &new, &key).map(|()| true)
    }

    fn append(
        &self,
        log: &MachineName,
        segments: &[Vec<u8>],
        base: Option<&str>,
        known: &str,
    ) -> Result<AppendOutcome, TeamError> {
        let mut files: Vec<(String, Vec<u8>)> = Vec::new();
        if let Some(base) = base {
            for segment in self.repo.log_segments(base)?.into_iter().filter(|segment| segment.is_file) {
                files.push((segment.name, self.repo.blob(&segment.blob)?));
            }
        }
        let first = files.iter().filter_map(|(name, _)| segment_number(name)).max();
        for (number, content) in (first.map_or(0, |last| last + 1)..).zip(segments) {
            files.push((Self::segment_name(number, content), content.clone()));
        }
        if files.len() > MAX_SEGMENTS {
            files = join_segments(files);
        }
        let commit = self.repo.write_log_commit(&files, base, self.signing)?;
        self.note_growth(RepositoryGrowth::LooseObjects);
        if base.is_some_and(|base| base != known) && self.repo.is_signing(self.signing) {
            // The signature stands for all that is below it, so nothing foreign may be there.
            let max = newest_checked(log).map(|max| max + 1);
            let mut signers = self.repo.list_log_signers(&commit, &[known], max)?;
            let own = signers.pop().map_or_else(String::new, |signer| signer.key);
            self.check_signers(log, &signers, &own)?;
        }
        Ok(match self.repo.push_log(&self.remote, log.as_str(), &commit)? {
            PushOutcome::Pushed => AppendOutcome::Appended(commit),
            PushOutcome::Moved => AppendOutcome::Moved,
        })
    }

    fn tidy_up(&self) {
        let is_due = match self.growth.replace(RepositoryGrowth::Nothing) {
            RepositoryGrowth::Nothing => false,
            RepositoryGrowth::LooseObjects => self.repo.has_many_loose_log_commits(),
            RepositoryGrowth::Pack => true,
        };
        if is_due && let Err(error) = self.repo.pack_logs() {
            tracing::warn!(%error, "the logs of the team stay as they are");
        }
    }
}

/// Returns the number at the beginning of a segment's name.
fn segment_number(name: &str) -> Option<usize> {
    name.get(..NUMBER_DIGITS)?.parse().ok()
}

/// Joins the newest segments into as few as their limit allows, in their order. An older segment is joined with them only if they
/// are half as large together. So each line is written again a few times at most, however long the log gets: whoever reads the
/// log, or keeps it, has all that was written.
fn join_segments(mut files: Vec<(String, Vec<u8>)>) -> Vec<(String, Vec<u8>)> {
    let (mut first, mut bytes) = (files.len(), 0);
    while first > 0 {
        let size = files[first - 1].1.len();
        if files.len() - first >= MIN_JOINED_SEGMENTS && size > 2 * bytes {
            break;
        }
        (first, bytes) = (first - 1, bytes + size);
    }
    let newest = files.split_off(first);
    // The names of those that stay end before this number.
    let number = newest.first().and_then(|(name, _)| segment_number(name)).unwrap_or(first);
    let mut joined: Vec<Vec<u8>> = Vec::new();
    for (_, content) in newest {
        match joined.last_mut().filter(|last| last.len() + content.len() <= MAX_SEGMENT_BYTES) {
            Some(last) => last.extend_from_slice(&content),
            None => joined.push(content),
        }
    }
    files.extend((number..).zip(joined).map(|(number, content)| (GitBackend::segment_name(number, &content), content)));
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_segments_keep_every_line_in_order() {
        let files: Vec<(String, Vec<u8>)> =
            (0..40).map(|number| (format!("{number:06}-x.ndjson"), format!("{number}\n").into_bytes())).collect();
        let lines: Vec<u8> = files.iter().flat_map(|(_, content)| content.clone()).collect();
        let joined = join_segments(files);
        assert_eq!(joined.len(), 1);
        assert_eq!(joined[0].1, lines);
        assert!(joined[0].0.starts_with("000000-"));
    }

    #[test]
    fn a_large_old_segment_is_not_written_again_with_few_new_ones() {
        let segments = |sizes: &[usize]| -> Vec<(String, Vec<u8>)> {
            let named = sizes.iter().enumerate();
            named.map(|(number, size)| (format!("{number:06}-x.ndjson"), vec![b'a' + number as u8; *size])).collect()
        };
        // Sizes before, and after.
        for (large, expected) in [
            (&[][..], vec![330]),
            (&[1_000][..], vec![1_000, 330]),
            (&[600][..], vec![930]),
            (&[5_000, 1_000][..], vec![5_000, 1_000, 330]),
            (&[1_500, 500][..], vec![2_330]),
        ] {
            let files = segments(&[large, [10; 33].as_slice()].concat());
            let (names, content): (Vec<String>, Vec<Vec<u8>>) = join_segments(files.clone()).into_iter().unzip();
            assert_eq!(content.iter().map(Vec::len).collect::<Vec<_>>(), expected, "{large:?}");
            assert_eq!(content.concat(), files.iter().flat_map(|(_, content)| content.clone()).collect::<Vec<_>>());
            assert!(names.is_sorted(), "{names:?}");
            let kept = expected.len() - 1;
            assert!(names.iter().zip(&files).take(kept).all(|(name, (before, _))| name == before), "{names:?}");
        }
    }

    #[test]
    fn a_log_of_many_exchanges_has_few_segments_and_is_not_written_again_and_again() {
        let (mut files, mut written) = (Vec::<(String, Vec<u8>)>::new(), 0);
        let exchanges = 5_000;
        for exchange in 0..exchanges {
            let number = files.iter().filter_map(|(name, _)| segment_number(name)).max().map_or(0, |last| last + 1);
            let known: HashSet<String> = files.iter().map(|(name, _)| name.clone()).collect();
            files.push((GitBackend::segment_name(number, b"a"), format!("{exchange:09}\n").into_bytes()));
            if files.len() > MAX_SEGMENTS {
                files = join_segments(files);
            }
            let new = files.iter().filter(|(name, _)| !known.contains(name));
            written += new.map(|(_, content)| content.len()).sum::<usize>();
        }
        let total: usize = files.iter().map(|(_, content)| content.len()).sum();
        assert_eq!(total, exchanges * 10);
        assert!(files.len() <= MAX_SEGMENTS && written < 12 * total, "{} segments, {written} of {total}", files.len());
    }
}
