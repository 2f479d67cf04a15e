//! Captures the worktree: compares it with HEAD path by path and writes the changed contents to the object database, as
//! git would.
//!
//! Invariants:
//! - Nothing else is written.
//! - A file above the size limit is not stored and is reported as oversized: an untracked file is absent from the
//!   snapshot, a tracked file keeps the content of the index.
//! - A file that is replaced during the capture is not an error: the worktree is scanned again, and after the last scan
//!   the path counts as deleted.

mod converted_files;
mod external_filters;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use converted_files::ConvertedFiles;
use git2::{ObjectType, Oid};

use super::attributes::{AttributeLookup, AttributeName, AttributeState};
use super::blocking_files::open_repository;
use super::changeset::{UnstoredPath, UnstoredReason};
use super::gitignore::SharedIgnoreRules;
use super::index::{GitIndex, IndexEntryFlag, MODE_GITLINK};
use super::index_diff::diff_index_to_head;
use super::scan::{StatSettings, StatusEntry, WorktreeEntryKind, scan_worktree};
use super::trees::{MODE_EXECUTABLE, MODE_FILE, MODE_SYMLINK, TreeLeaf, leaf_at};
use super::worktree::read_inode;
use super::{GitError, Repo, path_bytes, regular_file};
use crate::parallel;

/// Minimum number of files for hashing on several threads; below it, a single thread was faster in measurements.
const MIN_PARALLEL_FILES: usize = 64;
/// Maximum size in bytes of a file that is read into memory; larger files are streamed.
const MAX_IN_MEMORY_BYTES: u64 = 16 << 20;
/// Maximum number of scans of a worktree that changes while it is read.
const MAX_SCANS: usize = 3;

/// Differences from HEAD's tree by path; `None` marks a deleted path.
pub type TreeOverlay = BTreeMap<Vec<u8>, Option<TreeLeaf>>;

/// Difference between HEAD's tree and the worktree or index.
#[derive(Debug, Default)]
pub struct UncommittedChanges {
    pub overlay: TreeOverlay,
    /// Paths of the worktree that are not in the overlay.
    pub unstored: Vec<UnstoredPath>,
    /// Messages for the person who asked for the review.
    pub notes: Vec<String>,
}

/// Choice between hashing contents and also writing them to the object database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlobWriteMode {
    /// Hashes tracked files; of an untracked file, only the existence is told.
    HashOnly,
    /// Hashes all files up to the limit, so that the overlay is that of `WriteObjects`. Writes nothing.
    HashContents {
        max_file_bytes: u64,
    },
    WriteObjects {
        max_file_bytes: u64,
    },
}

impl BlobWriteMode {
    /// Returns the size in bytes above which a file is oversized; `None` for no limit.
    fn max_file_bytes(self) -> Option<u64> {
        match self {
            Self::HashOnly => None,
            Self::HashContents { max_file_bytes } | Self::WriteObjects { max_file_bytes } => Some(max_file_bytes),
        }
    }
}

/// Function that scans the worktree, like [`scan_worktree`].
type ScanFn<'a> =
    dyn FnMut(&Path, &GitIndex, StatSettings, &Arc<SharedIgnoreRules>) -> Result<Vec<StatusEntry>, GitError> + 'a;

impl Repo {
    /// Captures the current worktree.
    pub(super) fn capture_worktree(&self, keep: BlobWriteMode) -> Result<UncommittedChanges, GitError> {
        self.capture_with(keep, &mut scan_worktree)
    }

    fn capture_with(&self, keep: BlobWriteMode, look: &mut ScanFn<'_>) -> Result<UncommittedChanges, GitError> {
        let mut looks = 1;
        loop {
            match self.capture_once(keep, look)? {
                (_, ScanRace::Detected) if looks < MAX_SCANS => looks += 1,
                (frozen, _) => return Ok(frozen),
            }
        }
    }

    /// Captures the worktree from a single scan. The second value tells whether a file changed between the scan and the
    /// read.
    fn capture_once(
        &self,
        keep: BlobWriteMode,
        look: &mut ScanFn<'_>,
    ) -> Result<(UncommittedChanges, ScanRace), GitError> {
        let root = self.worktree_root()?;
        let index = GitIndex::read(&self.index, self.inner.path())?;
        let config = self.worktree_config();
        let shared = self.shared_ignore_rules(&config);
        let seen = look(&root, &index, config.compare, &shared)?;
        let head = self.head_tree()?;
        let overlay =
            diff_index_to_head(&self.inner, &index, head.as_ref()).map_err(self.git_error("compare index and HEAD"))?;
        let mut frozen = UncommittedChanges { overlay, ..UncommittedChanges::default() };
        let above = regular_file::read_linked(&self.inner.commondir().join("info").join("attributes")).ok();
        let below = config.attributes_file.as_ref().and_then(|file| regular_file::read_linked(file).ok());
        let source = {
            let root = root.clone();
            move |folder: &[u8]| regular_file::read(&path_bytes::join_path(&root, folder).join(".gitattributes")).ok()
        };
        let mut freezer = WorktreeHasher {
            repo: self,
            root: &root,
            index: &index,
            config: &config,
            write_mode: keep,
            attributes: AttributeLookup::new(source, above, below),
            changes: &mut frozen,
            race: ScanRace::NotDetected,
        };
        freezer.process_entries(seen)?;
        let moved = freezer.race;
        // A staged change that the worktree reverts is no change.
        if let Some(head) = &head {
            frozen.overlay.retain(|path, leaf| leaf_at(&self.inner, head, path) != *leaf);
        } else {
            frozen.overlay.retain(|_, leaf| leaf.is_some());
        }
        Ok((frozen, moved))
    }
}

impl Repo {
    /// Returns the ignore rules that apply in every folder.
    pub(super) fn shared_ignore_rules(&self, config: &WorktreeConfig) -> Arc<SharedIgnoreRules> {
        let mut excludes = vec![self.inner.commondir().join("info").join("exclude")];
        excludes.extend(config.excludes_file.clone());
        Arc::new(SharedIgnoreRules::new(excludes, config.compare.ignore_case))
    }

    /// Returns the git settings that affect the comparison of worktree and index.
    pub(super) fn worktree_config(&self) -> WorktreeConfig {
        let config = self.inner.config().and_then(|mut config| config.snapshot());
        WorktreeConfig::from_git_config(config.as_ref().ok())
    }
}

impl UncommittedChanges {
    /// Returns true when there is a change to review or to report.
    pub fn is_dirty(&self) -> bool {
        !self.overlay.is_empty() || self.unstored.iter().any(|extra| extra.reason != UnstoredReason::UnreadableFolder)
    }
}

/// Git settings that affect the comparison of worktree and index.
pub(super) struct WorktreeConfig {
    pub(super) compare: StatSettings,
    symlinks: bool,
    /// True when `core.autocrlf` is `true` or `input`.
    autocrlf: bool,
    excludes_file: Option<PathBuf>,
    attributes_file: Option<PathBuf>,
}

impl WorktreeConfig {
    fn from_git_config(config: Option<&git2::Config>) -> Self {
        let flag = |name, default| config.and_then(|config| config.get_bool(name).ok()).unwrap_or(default);
        let word = |name| config.and_then(|config| config.get_string(name).ok()).unwrap_or_default();
        let file = |name, default: &str| {
            let set = config.and_then(|config| config.get_path(name).ok());
            let unset = || std::env::var_os("XDG_CONFIG_HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
            let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".config"));
            set.or_else(|| unset().or_else(home).map(|folder| folder.join("git").join(default)))
        };
        Self {
            compare: StatSettings {
                trust_ctime: flag("core.trustctime", true),
                minimal: word("core.checkstat") == "minimal",
                ignore_case: flag("core.ignorecase", false),
                file_mode: flag("core.filemode", true),
            },
            symlinks: flag("core.symlinks", true),
            autocrlf: word("core.autocrlf") == "input" || flag("core.autocrlf", false),
            excludes_file: file("core.excludesfile", "ignore"),
            attributes_file: file("core.attributesfile", "attributes"),
        }
    }
}

/// Result of the check for a path that was replaced between the scan and the read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScanRace {
    Detected,
    NotDetected,
}

/// Current state of a candidate that could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CandidateStatus {
    /// The candidate is still there and readable.
    Unchanged,
    Unreadable,
    Missing,
    /// The path leads to a folder, a pipe, or a link instead of a file; or a parent is not a folder.
    Replaced,
}

/// Conversion of a file's content before it is written to the object database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CleanFilter {
    Unfiltered,
    /// Line ends and `$Id$`, converted by libgit2.
    LineEnds,
    /// A filter program or another encoding, converted by git itself.
    External,
}

/// Converts the entries of a scan into [`UncommittedChanges`].
struct WorktreeHasher<'a, S> {
    repo: &'a Repo,
    root: &'a Path,
    index: &'a GitIndex,
    config: &'a WorktreeConfig,
    write_mode: BlobWriteMode,
    attributes: AttributeLookup<S>,
    changes: &'a mut UncommittedChanges,
    race: ScanRace,
}

/// A file whose content goes into the overlay; `entry` is its position in the index, if it is tracked.
#[derive(Clone)]
struct HashCandidate {
    path: Vec<u8>,
    mode: u32,
    size: u64,
    clean: CleanFilter,
    entry: Option<usize>,
}

impl<S: FnMut(&[u8]) -> Option<Vec<u8>>> WorktreeHasher<'_, S> {
    fn process_entries(&mut self, seen: Vec<StatusEntry>) -> Result<(), GitError> {
        let mut candidates = Vec::new();
        for seen in seen {
            match seen {
                StatusEntry::Missing(at) => {
                    if let Some(entry) = self.index.entries.get(at) {
                        self.changes.overlay.insert(self.index.path(entry).to_vec(), None);
                    }
                }
                StatusEntry::Unreadable(path) => self.record_unstored(path, UnstoredReason::Unreadable),
                StatusEntry::UnreadableUntracked(path) => self.record_unstored(path, UnstoredReason::UnreadableFolder),
                StatusEntry::MaybeModified(at, thing) => candidates.extend(self.candidate_for_tracked(at, thing)),
                StatusEntry::Untracked(path, WorktreeEntryKind::Symlink) => {
                    candidates.push(HashCandidate {
                        path,
                        mode: MODE_SYMLINK,
                        size: 0,
                        clean: CleanFilter::Unfiltered,
                        entry: None,
                    });
                }
                StatusEntry::Untracked(path, WorktreeEntryKind::File { executable, size }) => {
                    let mode = if executable && self.config.compare.file_mode { MODE_EXECUTABLE } else { MODE_FILE };
                    match self.write_mode {
                        _ if self.is_oversized(size) => {
                            self.record_unstored(path, UnstoredReason::Oversized { mode, bytes: size });
                        }
                        // Only the existence of the file matters here.
                        BlobWriteMode::HashOnly => {
                            self.changes.overlay.insert(path, Some(TreeLeaf { mode, id: Oid::ZERO_SHA1 }));
                        }
                        BlobWriteMode::HashContents { .. } | BlobWriteMode::WriteObjects { .. } => {
                            let clean = self.choose_clean_filter(&path);
                            candidates.push(HashCandidate { path, mode, size, clean, entry: None });
                        }
                    }
                }
                StatusEntry::Untracked(_, WorktreeEntryKind::Folder) => {}
            }
        }
        candidates.sort_by(|a, b| a.path.cmp(&b.path));
        self.hash_candidates(candidates)
    }

    fn is_oversized(&self, size: u64) -> bool {
        self.write_mode.max_file_bytes().is_some_and(|most| size > most)
    }

    fn record_unstored(&mut self, path: Vec<u8>, reason: UnstoredReason) {
        let inode = match reason {
            UnstoredReason::Oversized { .. } => read_inode(&path_bytes::join_path(self.root, &path)),
            UnstoredReason::Unreadable | UnstoredReason::UnreadableFolder => None,
        };
        self.changes.unstored.push(UnstoredPath { path, reason, inode });
    }

    /// Returns a candidate for a tracked path that may differ from the index.
    fn candidate_for_tracked(&mut self, at: usize, thing: WorktreeEntryKind) -> Option<HashCandidate> {
        let entry = self.index.entries.get(at)?;
        let path = self.index.path(entry).to_vec();
        let (mode, size) = match thing {
            WorktreeEntryKind::Folder => {
                self.check_submodule(&path, entry.id);
                return None;
            }
            // Without support for symbolic links, git checks them out as files.
            WorktreeEntryKind::File { size, .. } if entry.mode == MODE_SYMLINK && !self.config.symlinks => {
                (MODE_SYMLINK, size)
            }
            WorktreeEntryKind::File { executable, size } => {
                match (self.config.compare.file_mode, executable, entry.mode) {
                    (true, true, _) | (false, _, MODE_EXECUTABLE) => (MODE_EXECUTABLE, size),
                    _ => (MODE_FILE, size),
                }
            }
            WorktreeEntryKind::Symlink => (MODE_SYMLINK, 0),
        };
        let clean = if mode == MODE_SYMLINK { CleanFilter::Unfiltered } else { self.choose_clean_filter(&path) };
        // A different size proves a change, and an oversized file is not reviewed, so the file need not be read.
        if mode != MODE_SYMLINK
            && clean == CleanFilter::Unfiltered
            && self.is_oversized(size)
            && entry.stat.size != size as u32
        {
            self.record_unstored(path, UnstoredReason::Oversized { mode, bytes: size });
            return None;
        }
        Some(HashCandidate { path, mode, size, clean, entry: Some(at) })
    }

    /// Compares a submodule's HEAD with the recorded commit; a submodule that is not checked out is unchanged.
    fn check_submodule(&mut self, path: &[u8], recorded: Oid) {
        let folder = path_bytes::join_path(self.root, path);
        if folder.join(".git").symlink_metadata().is_err() {
            return;
        }
        let head = open_repository(&folder).ok().and_then(|sub| sub.refname_to_id("HEAD").ok());
        if let Some(id) = head.filter(|id| *id != recorded) {
            self.changes.overlay.insert(path.to_vec(), Some(TreeLeaf { mode: MODE_GITLINK, id }));
        }
    }

    fn choose_clean_filter(&mut self, path: &[u8]) -> CleanFilter {
        let names = [
            AttributeName::Filter,
            AttributeName::Encoding,
            AttributeName::Ident,
            AttributeName::Text,
            AttributeName::Crlf,
            AttributeName::Eol,
        ];
        let [filter, encoding, ident, text, crlf, eol] = self.attributes.get(path, names);
        let says = |state: AttributeState| matches!(state, AttributeState::Set | AttributeState::Value);
        let by_settings = self.config.autocrlf && text != AttributeState::Unset && crlf != AttributeState::Unset;
        if filter == AttributeState::Value || encoding == AttributeState::Value {
            CleanFilter::External
        } else if says(ident) || says(text) || says(crlf) || says(eol) || by_settings {
            CleanFilter::LineEnds
        } else {
            CleanFilter::Unfiltered
        }
    }

    /// Hashes the candidates, stores contents that differ from the index, and adds them to the overlay.
    fn hash_candidates(&mut self, candidates: Vec<HashCandidate>) -> Result<(), GitError> {
        let plain = |candidate: &&HashCandidate| {
            candidate.clean == CleanFilter::Unfiltered && candidate.mode != MODE_SYMLINK && candidate.entry.is_some()
        };
        let to_hash: Vec<&HashCandidate> = candidates.iter().filter(plain).collect();
        let mut hashes = hash_files(self.root, &to_hash).into_iter();
        let mut by_git = Vec::new();
        let is_dry = matches!(self.write_mode, BlobWriteMode::HashContents { .. });
        for candidate in &candidates {
            let known = match plain(&candidate) {
                true => hashes.next(),
                false => None,
            };
            if candidate.clean != CleanFilter::Unfiltered
                && let Some(attributes) = self.blocking_attributes(&candidate.path)
            {
                self.leave_out(candidate, &format!("{attributes} is not a file"));
                continue;
            }
            let id = match (candidate.clean, known) {
                (CleanFilter::External, _) => {
                    by_git.push(candidate);
                    continue;
                }
                (_, Some(Ok(id))) if self.is_in_index(candidate, id) || self.write_mode == BlobWriteMode::HashOnly => {
                    Ok(id)
                }
                (_, Some(Ok(_))) if self.is_oversized(candidate.size) => {
                    let what = UnstoredReason::Oversized { mode: candidate.mode, bytes: candidate.size };
                    self.record_unstored(candidate.path.clone(), what);
                    continue;
                }
                (_, Some(Ok(id))) if is_dry => Ok(id),
                (_, Some(Err(error))) => Err(error),
                // libgit2 converts line ends only while it writes the object.
                (CleanFilter::LineEnds, None) if is_dry => {
                    by_git.push(candidate);
                    continue;
                }
                _ => self.hash_candidate(candidate),
            };
            // For line-end conversion, libgit2 reads the index, and it does not support every kind of index.
            if candidate.clean == CleanFilter::LineEnds && id.is_err() {
                by_git.push(candidate);
                continue;
            }
            self.record_hash(candidate, id)?;
        }
        self.hash_by_git(&by_git)
    }

    fn hash_unfiltered(&self, candidate: &HashCandidate) -> Result<Oid, git2::Error> {
        self.hash_candidate(&HashCandidate { clean: CleanFilter::Unfiltered, ..candidate.clone() })
    }

    fn is_in_index(&self, candidate: &HashCandidate, id: Oid) -> bool {
        candidate.entry.and_then(|at| self.index.entries.get(at)).is_some_and(|entry| entry.id == id)
    }

    fn record_hash(&mut self, candidate: &HashCandidate, id: Result<Oid, git2::Error>) -> Result<(), GitError> {
        let entry = candidate.entry.and_then(|at| self.index.entries.get(at));
        match id {
            Ok(id) => {
                let leaf = TreeLeaf { mode: candidate.mode, id };
                let recorded = entry
                    .filter(|entry| !matches!(entry.flag, IndexEntryFlag::IntentToAdd | IndexEntryFlag::Unmerged))
                    .is_some_and(|entry| TreeLeaf { mode: entry.mode, id: entry.id } == leaf);
                if !recorded {
                    self.changes.overlay.insert(candidate.path.clone(), Some(leaf));
                }
                Ok(())
            }
            Err(error) => {
                match self.current_status(candidate) {
                    CandidateStatus::Unchanged => {
                        let file = path_bytes::join_path(self.root, &candidate.path);
                        return Err(GitError::from_git2("write a snapshot of a file", file, error));
                    }
                    CandidateStatus::Unreadable => {
                        self.record_unstored(candidate.path.clone(), UnstoredReason::Unreadable);
                        return Ok(());
                    }
                    CandidateStatus::Missing => {}
                    CandidateStatus::Replaced => self.race = ScanRace::Detected,
                }
                if candidate.entry.is_some() {
                    self.changes.overlay.insert(candidate.path.clone(), None);
                }
                Ok(())
            }
        }
    }

    fn current_status(&self, candidate: &HashCandidate) -> CandidateStatus {
        let file = path_bytes::join_path(self.root, &candidate.path);
        let data = match file.symlink_metadata().map_err(|error| error.kind()) {
            Ok(data) => data,
            Err(ErrorKind::NotFound) => return CandidateStatus::Missing,
            Err(ErrorKind::NotADirectory) => return CandidateStatus::Replaced,
            Err(_) => return CandidateStatus::Unreadable,
        };
        let is_link = candidate.mode == MODE_SYMLINK;
        match () {
            () if data.is_symlink() && is_link => CandidateStatus::Unchanged,
            () if !data.is_file() || is_link && self.config.symlinks => CandidateStatus::Replaced,
            () if regular_file::open(&file).is_ok() => CandidateStatus::Unchanged,
            () => CandidateStatus::Unreadable,
        }
    }

    /// Writes a file's content to the object database as git would, or only hashes it.
    fn hash_candidate(&self, candidate: &HashCandidate) -> Result<Oid, git2::Error> {
        let file = path_bytes::join_path(self.root, &candidate.path);
        let keep = |content: &[u8]| match self.write_mode {
            BlobWriteMode::HashOnly | BlobWriteMode::HashContents { .. } => Oid::hash_object(ObjectType::Blob, content),
            BlobWriteMode::WriteObjects { .. } => self.repo.inner.odb()?.write(ObjectType::Blob, content),
        };
        if candidate.mode == MODE_SYMLINK {
            match std::fs::read_link(&file) {
                Ok(target) => return keep(&path_bytes::from_path(&target)),
                Err(error) if self.config.symlinks => return Err(from_io_error(error)),
                Err(_) => {}
            }
        }
        if candidate.clean == CleanFilter::Unfiltered && candidate.size <= MAX_IN_MEMORY_BYTES {
            return keep(&regular_file::read(&file).map_err(from_io_error)?);
        }
        regular_file::open(&file).map_err(from_io_error)?;
        self.repo.inner.blob_path(&file)
    }
}

fn from_io_error(error: std::io::Error) -> git2::Error {
    git2::Error::from_str(&error.to_string())
}

/// Computes the blob ids of the unconverted files, on several threads when there are many files.
fn hash_files(root: &Path, files: &[&HashCandidate]) -> Vec<Result<Oid, git2::Error>> {
    let hash = |file: &&HashCandidate| {
        let path = path_bytes::join_path(root, &file.path);
        if file.size <= MAX_IN_MEMORY_BYTES {
            return Oid::hash_object(ObjectType::Blob, &regular_file::read(&path).map_err(from_io_error)?);
        }
        regular_file::open(&path).map_err(from_io_error)?;
        Oid::hash_file(ObjectType::Blob, path)
    };
    match files.len() < MIN_PARALLEL_FILES {
        true => files.iter().map(hash).collect(),
        false => parallel::map(files, hash),
    }
}
