//! Hashes files that only git itself can convert, with `git hash-object`: files with a filter program or another
//! encoding.
//!
//! Invariants:
//! - A file that has not changed since an earlier look is not converted again, see [`super::converted_files`].
//! - A filter program that hangs costs one time limit, however many files wait for it.
//! - A file that git does not convert is left out with a note, because its unconverted content may hold data that its
//!   filter keeps out of the repository.

use std::process::Command;

use git2::Oid;

use super::super::blocking_files::is_blocking;
use super::super::git_command::{self, GitCommandError};
use super::converted_files::ConversionInput;
use super::{
    BlobWriteMode, CandidateStatus, CleanFilter, GitError, HashCandidate, UnstoredReason, WorktreeHasher, path_bytes,
    regular_file,
};
use crate::domain::text::{path_from_bytes, sanitize_line};

/// The reason why git hashed not all files.
enum HashRefusal {
    /// git refused a file.
    Refused(String),
    /// git or a filter program was silent; git had hashed the first files by then.
    Silent { hashed: Vec<Oid>, reason: String },
}

impl<S: FnMut(&[u8]) -> Option<Vec<u8>>> WorktreeHasher<'_, S> {
    /// Hashes the candidates with git, except those whose ids are known from an earlier look, and adds all of them to the
    /// overlay.
    pub(super) fn hash_by_git(&mut self, candidates: &[&HashCandidate]) -> Result<(), GitError> {
        if candidates.is_empty() {
            return Ok(());
        }
        let settings = self.hash_conversion_settings();
        let mut changed: Vec<(&HashCandidate, Option<ConversionInput>)> = Vec::new();
        for candidate in candidates.iter().copied() {
            let input = self.find_conversion_input(candidate, &settings);
            match input.and_then(|input| self.find_converted(candidate, &input)) {
                Some(id) => self.record_hash(candidate, Ok(id))?,
                None => changed.push((candidate, input)),
            }
        }
        self.convert_by_git(&changed)
    }

    /// Has git convert files, remembers their ids and adds them to the overlay.
    fn convert_by_git(&mut self, files: &[(&HashCandidate, Option<ConversionInput>)]) -> Result<(), GitError> {
        let candidates: Vec<&HashCandidate> = files.iter().map(|(candidate, _)| *candidate).collect();
        let mut converted = Vec::new();
        let (mut ids, mut reason) = (Vec::new(), None);
        let mut refused = false;
        match self.hash_with_git(&candidates) {
            Ok(hashed) => ids = hashed,
            Err(HashRefusal::Refused(_)) => refused = true,
            Err(HashRefusal::Silent { hashed, reason: silence }) => (ids, reason) = (hashed, Some(silence)),
        }
        for (place, (candidate, input)) in files.iter().enumerate() {
            let hashed = match (ids.get(place), &reason) {
                (Some(id), _) => Ok(*id),
                (None, Some(silence)) => Err(silence.clone()),
                // When git refuses a file, the other files are hashed separately.
                (None, None) if refused => match self.hash_with_git(&[candidate]) {
                    Ok(ids) => ids.first().copied().ok_or_else(String::new),
                    Err(HashRefusal::Refused(why)) => Err(why),
                    Err(HashRefusal::Silent { reason: silence, .. }) => {
                        reason = Some(silence.clone());
                        Err(silence)
                    }
                },
                (None, None) => Err(String::new()),
            };
            let id = match hashed {
                Ok(id) => {
                    converted.extend(input.map(|input| (*candidate, input, id)));
                    Ok(id)
                }
                // If only line ends would be converted and git fails, the file is stored unconverted.
                Err(_) if candidate.clean == CleanFilter::LineEnds => self.hash_unfiltered(candidate),
                Err(why) if self.current_status(candidate) == CandidateStatus::Unchanged => {
                    self.leave_out(candidate, &format!("git would not add it: {why}"));
                    continue;
                }
                Err(why) => Err(git2::Error::from_str(&why)),
            };
            self.record_hash(candidate, id)?;
        }
        self.remember_converted(&converted);
        Ok(())
    }

    /// Leaves a file out of the snapshot and says why.
    pub(super) fn leave_out(&mut self, candidate: &HashCandidate, why: &str) {
        let path = path_from_bytes(&candidate.path);
        self.changes.notes.push(sanitize_line(&format!("{path} is left out as {why}")).into_owned());
        self.record_unstored(candidate.path.clone(), UnstoredReason::Unreadable);
    }

    /// Returns the `.gitattributes` above a path that would block libgit2 and git.
    pub(super) fn blocking_attributes(&self, path: &[u8]) -> Option<String> {
        let mut blocking =
            list_attribute_files(path).filter(|file| is_blocking(&path_bytes::join_path(self.root, file)));
        blocking.next().map(|file| path_from_bytes(&file))
    }

    /// Hashes files with `git hash-object`, which runs filter programs.
    fn hash_with_git(&self, candidates: &[&HashCandidate]) -> Result<Vec<Oid>, HashRefusal> {
        if candidates.is_empty() {
            return Ok(Vec::new());
        }
        for candidate in candidates {
            // Opening first rejects a pipe, on which git would block.
            regular_file::open(&path_bytes::join_path(self.root, &candidate.path))
                .map_err(|error| HashRefusal::Refused(error.to_string()))?;
        }
        let mut command = Command::new("git");
        // A warning about line ends must not fail the command.
        command.args(["-c", "core.safecrlf=false"]);
        command.arg("--git-dir").arg(self.repo.inner.path()).arg("--work-tree").arg(self.root).arg("hash-object");
        if matches!(self.write_mode, BlobWriteMode::WriteObjects { .. }) {
            command.arg("-w");
        }
        command.arg("--stdin-paths").current_dir(self.root).env("GIT_INDEX_FILE", &self.repo.index);
        let lines: Vec<u8> = candidates.iter().flat_map(|candidate| quote_path(&candidate.path)).collect();
        let parse = |text: &[u8]| -> Vec<Oid> {
            String::from_utf8_lossy(text).lines().map_while(|line| Oid::from_str(line).ok()).collect()
        };
        // git writes the id of each file as soon as it has it.
        match git_command::run_with_input(command, "hash-object", lines, self.repo.git_patience) {
            Ok(output) => {
                let ids = parse(&output.stdout);
                match output.status.success() && ids.len() == candidates.len() {
                    true => Ok(ids),
                    false => Err(HashRefusal::Refused(git_command::error_message(&output.stderr))),
                }
            }
            Err(error) => Err(match &error {
                GitCommandError::Silent { output, .. } => {
                    HashRefusal::Silent { hashed: parse(output), reason: error.to_string() }
                }
                GitCommandError::NotStarted(_) => HashRefusal::Refused(error.to_string()),
            }),
        }
    }
}

/// Lists the paths of the `.gitattributes` files that apply to a path, from the root down. They may be missing.
pub(super) fn list_attribute_files(path: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let folders = memchr::memchr_iter(b'/', path).map(|slash| slash + 1);
    [0].into_iter().chain(folders).map(move |end| [&path[..end], b".gitattributes"].concat())
}

/// Formats a path as an input line for git, with C-style quotes and escapes.
fn quote_path(path: &[u8]) -> Vec<u8> {
    let mut line = vec![b'"'];
    for byte in path {
        match byte {
            b'"' | b'\\' => line.extend([b'\\', *byte]),
            b'\n' => line.extend(b"\\n"),
            _ => line.push(*byte),
        }
    }
    line.extend(b"\"\n");
    line
}
