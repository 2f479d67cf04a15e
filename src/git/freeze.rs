//! Freezing: the worktree held against HEAD, path by path, its contents put into the object database as git would.
//!
//! Invariants: nothing else is written. What is above the size limit is not stored: an untracked file is not in the
//! snapshot at all, a tracked one is there as the index has it, and both are told as oversized. A path at which something
//! else stands by the time it is read is no failure: all is looked at again, and in the end it is taken for gone.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use git2::{ErrorClass, ErrorCode, ObjectType, Oid};

use super::attributes::{Attributes, Name, State};
use super::change::{Absent, Extra};
use super::ignored::Shared;
use super::index::{Index, MODE_GITLINK, Watch};
use super::scan::{Compare, Seen, Thing, scan};
use super::staged::staged;
use super::trees::{Leaf, MODE_EXECUTABLE, MODE_FILE, MODE_SYMLINK, leaf_at};
use super::{GitError, Repo, bytes, plain, program};
use crate::domain::text::path_from_bytes;

/// From this many files on, threads hash faster than one; measured.
const PARALLEL_HASHES: usize = 64;
/// Files above this many bytes are streamed instead of read at once.
const STREAM_BYTES: u64 = 16 << 20;
/// The worktree is looked at so often at most, where things move while they are read.
const LOOKS: usize = 3;

/// What differs from HEAD's tree, by path; `None` where a path is gone.
pub type Overlay = BTreeMap<Vec<u8>, Option<Leaf>>;

/// The worktree or the index held against HEAD.
#[derive(Debug, Default)]
pub struct Frozen {
    pub overlay: Overlay,
    /// What is in the worktree and not in the overlay.
    pub extra: Vec<Extra>,
    /// What the person who asked should know.
    pub notes: Vec<String>,
}

/// Whether contents are only hashed or also put into the object database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    Hashes,
    Objects { max_file_bytes: u64 },
}

/// A look at the worktree, as [`scan`] is.
type Look<'a> = dyn FnMut(&Path, &Index, Compare, &Arc<Shared>) -> Result<Vec<Seen>, GitError> + 'a;

impl Repo {
    /// The worktree as it is now.
    pub(super) fn freeze_worktree(&self, keep: Keep) -> Result<Frozen, GitError> {
        self.freeze_with(keep, &mut scan)
    }

    fn freeze_with(&self, keep: Keep, look: &mut Look<'_>) -> Result<Frozen, GitError> {
        let mut looks = 1;
        loop {
            match self.freeze_once(keep, look)? {
                (_, Moved::Yes) if looks < LOOKS => looks += 1,
                (frozen, _) => return Ok(frozen),
            }
        }
    }

    /// The worktree at one look, and whether something in it moved between the look and the reading.
    fn freeze_once(&self, keep: Keep, look: &mut Look<'_>) -> Result<(Frozen, Moved), GitError> {
        let root = self.worktree()?;
        let index = Index::read(&self.index, self.inner.path())?;
        let config = self.comparing();
        let shared = self.excludes(&config);
        let seen = look(&root, &index, config.compare, &shared)?;
        let head = self.head_tree()?;
        let overlay = staged(&self.inner, &index, head.as_ref()).map_err(self.failed("compare index and HEAD"))?;
        let mut frozen = Frozen { overlay, ..Frozen::default() };
        let above = std::fs::read(self.inner.commondir().join("info").join("attributes")).ok();
        let below = config.attributes_file.as_ref().and_then(|file| std::fs::read(file).ok());
        let source = {
            let root = root.clone();
            move |folder: &[u8]| plain::read(&bytes::below(&root, folder).join(".gitattributes")).ok()
        };
        let mut freezer = Freezer {
            repo: self,
            root: &root,
            index: &index,
            config: &config,
            keep,
            attributes: Attributes::new(source, above, below),
            frozen: &mut frozen,
            moved: Moved::No,
        };
        freezer.take(seen)?;
        let moved = freezer.moved;
        // What is staged and taken back in the worktree is no change.
        if let Some(head) = &head {
            frozen.overlay.retain(|path, leaf| leaf_at(&self.inner, head, path) != *leaf);
        } else {
            frozen.overlay.retain(|_, leaf| leaf.is_some());
        }
        Ok((frozen, moved))
    }
}

impl Repo {
    /// The rules about ignored files that hold in every folder.
    pub(super) fn excludes(&self, config: &Settings) -> Arc<Shared> {
        let mut excludes = vec![self.inner.commondir().join("info").join("exclude")];
        excludes.extend(config.excludes_file.clone());
        Arc::new(Shared::new(excludes, config.compare.ignore_case))
    }

    /// The settings in force.
    pub(super) fn comparing(&self) -> Settings {
        let config = self.inner.config().and_then(|mut config| config.snapshot());
        Settings::read(config.as_ref().ok())
    }
}

impl Frozen {
    /// Whether there is something to review or to tell.
    pub fn is_dirty(&self) -> bool {
        !self.overlay.is_empty() || self.extra.iter().any(|extra| extra.what != Absent::Closed)
    }
}

/// The settings of git that decide how worktree and index compare.
pub(super) struct Settings {
    pub(super) compare: Compare,
    symlinks: bool,
    /// `core.autocrlf` is `true` or `input`.
    autocrlf: bool,
    excludes_file: Option<PathBuf>,
    attributes_file: Option<PathBuf>,
}

impl Settings {
    fn read(config: Option<&git2::Config>) -> Self {
        let flag = |name, default| config.and_then(|config| config.get_bool(name).ok()).unwrap_or(default);
        let word = |name| config.and_then(|config| config.get_string(name).ok()).unwrap_or_default();
        let file = |name, default: &str| {
            let set = config.and_then(|config| config.get_path(name).ok());
            let unset = || std::env::var_os("XDG_CONFIG_HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
            let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".config"));
            set.or_else(|| unset().or_else(home).map(|folder| folder.join("git").join(default)))
        };
        Self {
            compare: Compare {
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

/// Whether something became something else since it was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moved {
    Yes,
    No,
}

/// What is at the place of a candidate that could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Now {
    /// It, and it may be read.
    Itself,
    Unreadable,
    Nothing,
    /// A folder, a pipe, a link instead of a file, or no folder above it.
    Other,
}

/// What is done to a file's content on its way into the object database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Clean {
    Nothing,
    /// Line ends and `$Id$`: libgit2 does it.
    LineEnds,
    /// A filter program or another encoding: only git itself does it.
    ByGit,
}

/// Takes what the scan saw into a [`Frozen`].
struct Freezer<'a, S> {
    repo: &'a Repo,
    root: &'a Path,
    index: &'a Index,
    config: &'a Settings,
    keep: Keep,
    attributes: Attributes<S>,
    frozen: &'a mut Frozen,
    moved: Moved,
}

/// A file whose content goes into the overlay; `entry` is its place in the index, if it has one.
#[derive(Clone)]
struct Candidate {
    path: Vec<u8>,
    mode: u32,
    size: u64,
    clean: Clean,
    entry: Option<usize>,
}

impl<S: FnMut(&[u8]) -> Option<Vec<u8>>> Freezer<'_, S> {
    fn take(&mut self, seen: Vec<Seen>) -> Result<(), GitError> {
        let mut candidates = Vec::new();
        for seen in seen {
            match seen {
                Seen::Missing(at) => {
                    if let Some(entry) = self.index.entries.get(at) {
                        self.frozen.overlay.insert(self.index.path(entry).to_vec(), None);
                    }
                }
                Seen::Unreadable(path) => self.left_out(path, Absent::Unreadable),
                Seen::Closed(path) => self.left_out(path, Absent::Closed),
                Seen::Suspect(at, thing) => candidates.extend(self.suspect(at, thing)),
                Seen::Untracked(path, Thing::Symlink) => {
                    candidates.push(Candidate {
                        path,
                        mode: MODE_SYMLINK,
                        size: 0,
                        clean: Clean::Nothing,
                        entry: None,
                    });
                }
                Seen::Untracked(path, Thing::File { executable, size }) => {
                    let mode = if executable && self.config.compare.file_mode { MODE_EXECUTABLE } else { MODE_FILE };
                    match self.keep {
                        Keep::Objects { .. } if self.is_oversized(size) => {
                            self.left_out(path, Absent::Oversized { mode, bytes: size });
                        }
                        // That it is there is all that matters.
                        Keep::Hashes => {
                            self.frozen.overlay.insert(path, Some(Leaf { mode, id: Oid::ZERO_SHA1 }));
                        }
                        Keep::Objects { .. } => {
                            let clean = self.clean(&path);
                            candidates.push(Candidate { path, mode, size, clean, entry: None });
                        }
                    }
                }
                Seen::Untracked(_, Thing::Folder) => {}
            }
        }
        candidates.sort_by(|a, b| a.path.cmp(&b.path));
        self.contents(candidates)
    }

    fn is_oversized(&self, size: u64) -> bool {
        matches!(self.keep, Keep::Objects { max_file_bytes } if size > max_file_bytes)
    }

    fn left_out(&mut self, path: Vec<u8>, what: Absent) {
        self.frozen.extra.push(Extra { path, what });
    }

    /// A tracked path of which the scan could not say that it is unchanged.
    fn suspect(&mut self, at: usize, thing: Thing) -> Option<Candidate> {
        let entry = self.index.entries.get(at)?;
        let path = self.index.path(entry).to_vec();
        let (mode, size) = match thing {
            Thing::Folder => {
                self.submodule(&path, entry.id);
                return None;
            }
            // Without symbolic links git checks them out as files.
            Thing::File { size, .. } if entry.mode == MODE_SYMLINK && !self.config.symlinks => (MODE_SYMLINK, size),
            Thing::File { executable, size } => match (self.config.compare.file_mode, executable, entry.mode) {
                (true, true, _) | (false, _, MODE_EXECUTABLE) => (MODE_EXECUTABLE, size),
                _ => (MODE_FILE, size),
            },
            Thing::Symlink => (MODE_SYMLINK, 0),
        };
        let clean = if mode == MODE_SYMLINK { Clean::Nothing } else { self.clean(&path) };
        // Of another size, hence changed; too large to be reviewed, hence not worth reading.
        if mode != MODE_SYMLINK && clean == Clean::Nothing && self.is_oversized(size) && entry.stat.size != size as u32
        {
            self.left_out(path, Absent::Oversized { mode, bytes: size });
            return None;
        }
        Some(Candidate { path, mode, size, clean, entry: Some(at) })
    }

    /// A submodule stands where its own HEAD is; one that is not checked out is unchanged.
    fn submodule(&mut self, path: &[u8], recorded: Oid) {
        let folder = bytes::below(self.root, path);
        if folder.join(".git").symlink_metadata().is_err() {
            return;
        }
        let head = git2::Repository::open(&folder).ok().and_then(|sub| sub.refname_to_id("HEAD").ok());
        if let Some(id) = head.filter(|id| *id != recorded) {
            self.frozen.overlay.insert(path.to_vec(), Some(Leaf { mode: MODE_GITLINK, id }));
        }
    }

    fn clean(&mut self, path: &[u8]) -> Clean {
        let names = [Name::Filter, Name::Encoding, Name::Ident, Name::Text, Name::Crlf, Name::Eol];
        let [filter, encoding, ident, text, crlf, eol] = self.attributes.get(path, names);
        let says = |state: State| matches!(state, State::Set | State::Value);
        let by_settings = self.config.autocrlf && text != State::Unset && crlf != State::Unset;
        if filter == State::Value || encoding == State::Value {
            Clean::ByGit
        } else if says(ident) || says(text) || says(crlf) || says(eol) || by_settings {
            Clean::LineEnds
        } else {
            Clean::Nothing
        }
    }

    /// Hashes the candidates, keeps what differs from the index, and puts it into the overlay.
    fn contents(&mut self, candidates: Vec<Candidate>) -> Result<(), GitError> {
        let plain = |candidate: &&Candidate| {
            candidate.clean == Clean::Nothing && candidate.mode != MODE_SYMLINK && candidate.entry.is_some()
        };
        let to_hash: Vec<&Candidate> = candidates.iter().filter(plain).collect();
        let mut hashes = hash_files(self.root, &to_hash).into_iter();
        let mut by_git = Vec::new();
        for candidate in &candidates {
            let known = match plain(&candidate) {
                true => hashes.next(),
                false => None,
            };
            let id = match (candidate.clean, known) {
                (Clean::ByGit, _) => {
                    by_git.push(candidate);
                    continue;
                }
                (_, Some(Ok(id))) if self.is_recorded(candidate, id) || self.keep == Keep::Hashes => Ok(id),
                (_, Some(Ok(_))) if self.is_oversized(candidate.size) => {
                    let what = Absent::Oversized { mode: candidate.mode, bytes: candidate.size };
                    self.left_out(candidate.path.clone(), what);
                    continue;
                }
                (_, Some(Err(error))) => Err(error),
                _ => self.put(candidate),
            };
            // libgit2 does not know every kind of index, where it looks to convert line ends.
            if candidate.clean == Clean::LineEnds && id.is_err() {
                by_git.push(candidate);
                continue;
            }
            self.settle(candidate, id)?;
        }
        let together = self.hash_by_git(&by_git);
        for (place, candidate) in by_git.into_iter().enumerate() {
            let hashed = match &together {
                Ok(ids) => ids.get(place).copied().ok_or_else(String::new),
                // One file that git refuses is no reason to leave out the others.
                Err(_) => self.hash_by_git(&[candidate]).and_then(|ids| ids.first().copied().ok_or_else(String::new)),
            };
            let id = match hashed {
                Ok(id) => Ok(id),
                // Only line ends: as it is, when git is not there.
                Err(_) if candidate.clean == Clean::LineEnds => self.put_plain(candidate),
                // As it is, it may hold what its filter keeps out of the repository.
                Err(refused) if self.now(candidate) == Now::Itself => {
                    let path = path_from_bytes(&candidate.path);
                    self.frozen.notes.push(format!("{path} is left out as git would not add it: {refused}"));
                    self.left_out(candidate.path.clone(), Absent::Unreadable);
                    continue;
                }
                Err(refused) => Err(git2::Error::from_str(&refused)),
            };
            self.settle(candidate, id)?;
        }
        Ok(())
    }

    fn put_plain(&self, candidate: &Candidate) -> Result<Oid, git2::Error> {
        self.put(&Candidate { clean: Clean::Nothing, ..candidate.clone() })
    }

    fn is_recorded(&self, candidate: &Candidate, id: Oid) -> bool {
        candidate.entry.and_then(|at| self.index.entries.get(at)).is_some_and(|entry| entry.id == id)
    }

    fn settle(&mut self, candidate: &Candidate, id: Result<Oid, git2::Error>) -> Result<(), GitError> {
        let entry = candidate.entry.and_then(|at| self.index.entries.get(at));
        match id {
            Ok(id) => {
                let leaf = Leaf { mode: candidate.mode, id };
                let recorded = entry
                    .filter(|entry| !matches!(entry.watch, Watch::IntentToAdd | Watch::Unmerged))
                    .is_some_and(|entry| Leaf { mode: entry.mode, id: entry.id } == leaf);
                if !recorded {
                    self.frozen.overlay.insert(candidate.path.clone(), Some(leaf));
                }
                Ok(())
            }
            Err(error) => {
                match self.now(candidate) {
                    Now::Itself => {
                        let file = bytes::below(self.root, &candidate.path);
                        return Err(GitError::git("write a snapshot of a file", file, error));
                    }
                    Now::Unreadable => {
                        self.left_out(candidate.path.clone(), Absent::Unreadable);
                        return Ok(());
                    }
                    Now::Nothing => {}
                    Now::Other => self.moved = Moved::Yes,
                }
                if candidate.entry.is_some() {
                    self.frozen.overlay.insert(candidate.path.clone(), None);
                }
                Ok(())
            }
        }
    }

    fn now(&self, candidate: &Candidate) -> Now {
        let file = bytes::below(self.root, &candidate.path);
        let data = match file.symlink_metadata().map_err(|error| error.kind()) {
            Ok(data) => data,
            Err(ErrorKind::NotFound) => return Now::Nothing,
            Err(ErrorKind::NotADirectory) => return Now::Other,
            Err(_) => return Now::Unreadable,
        };
        let is_link = candidate.mode == MODE_SYMLINK;
        match () {
            () if data.is_symlink() && is_link => Now::Itself,
            () if !data.is_file() || is_link && self.config.symlinks => Now::Other,
            () if plain::open(&file).is_ok() => Now::Itself,
            () => Now::Unreadable,
        }
    }

    /// Puts a file's content into the object database as git would, or only hashes it.
    fn put(&self, candidate: &Candidate) -> Result<Oid, git2::Error> {
        let file = bytes::below(self.root, &candidate.path);
        let keep = |content: &[u8]| match self.keep {
            Keep::Hashes => Oid::hash_object(ObjectType::Blob, content),
            Keep::Objects { .. } => self.repo.inner.odb()?.write(ObjectType::Blob, content),
        };
        if candidate.mode == MODE_SYMLINK {
            match std::fs::read_link(&file) {
                Ok(target) => return keep(&bytes::of_path(&target)),
                Err(error) if self.config.symlinks => return Err(unreadable(error)),
                Err(_) => {}
            }
        }
        if candidate.clean == Clean::Nothing && candidate.size <= STREAM_BYTES {
            return keep(&plain::read(&file).map_err(unreadable)?);
        }
        plain::open(&file).map_err(unreadable)?;
        self.repo.inner.blob_path(&file)
    }

    /// What `git hash-object` makes of files with filter programs, or why it does not.
    fn hash_by_git(&self, candidates: &[&Candidate]) -> Result<Vec<Oid>, String> {
        if candidates.is_empty() {
            return Ok(Vec::new());
        }
        for candidate in candidates {
            // Git would wait for a pipe.
            plain::open(&bytes::below(self.root, &candidate.path)).map_err(|error| error.to_string())?;
        }
        let mut command = Command::new("git");
        // A warning about line ends is no reason to refuse.
        command.args(["-c", "core.safecrlf=false"]);
        command.arg("--git-dir").arg(self.repo.inner.path()).arg("--work-tree").arg(self.root).arg("hash-object");
        if matches!(self.keep, Keep::Objects { .. }) {
            command.arg("-w");
        }
        command.arg("--stdin-paths").current_dir(self.root).env("GIT_INDEX_FILE", &self.repo.index);
        let lines: Vec<u8> = candidates.iter().flat_map(|candidate| quoted(&candidate.path)).collect();
        let output = program::through(command, lines).map_err(|error| format!("git cannot be run: {error}"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let ids: Vec<Oid> = text.lines().map_while(|line| Oid::from_str(line).ok()).collect();
        if output.status.success() && ids.len() == candidates.len() {
            return Ok(ids);
        }
        Err(program::last_words(&output.stderr))
    }
}

fn unreadable(error: std::io::Error) -> git2::Error {
    git2::Error::from_str(&error.to_string())
}

/// A line that names a path to git, quoted as in C where it could be taken for something else.
fn quoted(path: &[u8]) -> Vec<u8> {
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

/// The blob ids that the files would have without any conversion, on several threads when there are many.
fn hash_files(root: &Path, files: &[&Candidate]) -> Vec<Result<Oid, git2::Error>> {
    let hash = |file: &&Candidate| {
        let path = bytes::below(root, &file.path);
        if file.size <= STREAM_BYTES {
            return Oid::hash_object(ObjectType::Blob, &plain::read(&path).map_err(unreadable)?);
        }
        plain::open(&path).map_err(unreadable)?;
        Oid::hash_file(ObjectType::Blob, path)
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(8);
    if files.len() < PARALLEL_HASHES || threads == 1 {
        return files.iter().map(hash).collect();
    }
    let share = files.len().div_ceil(threads);
    std::thread::scope(|scope| {
        let workers: Vec<_> = files
            .chunks(share)
            .map(|chunk| (chunk.len(), scope.spawn(move || chunk.iter().map(hash).collect::<Vec<_>>())))
            .collect();
        let lost = |n| (0..n).map(|_| Err(git2::Error::new(ErrorCode::GenericError, ErrorClass::Thread, "lost")));
        workers.into_iter().flat_map(|(n, worker)| worker.join().unwrap_or_else(|_| lost(n).collect())).collect()
    })
}
