//! Freezing: the worktree or the index as a tree and a commit, written to the object database and nowhere else.
//!
//! Invariants: index, worktree, HEAD, stash and reflog stay as they are; the same content on the same HEAD gives the same
//! snapshot commit. Untracked files above the size limit are not put into the object database at all.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use git2::{ErrorCode, ObjectType, Oid, Signature, Time, Tree};

use super::attributes::{Attributes, Name, State};
use super::change::Extra;
use super::ignored::Shared;
use super::index::{CachedTree, Index, MODE_GITLINK, MODE_TREE, Watch};
use super::read::entry_at;
use super::scan::{Compare, Seen, Thing, scan};
use super::scope::Resolved;
use super::{Filter, GitError, Repo, Snapshot, bytes};
use crate::domain::{LeftOutReason, Scope};

pub(super) const MODE_FILE: u32 = 0o100644;
pub(super) const MODE_EXECUTABLE: u32 = 0o100755;
pub(super) const MODE_SYMLINK: u32 = 0o120000;

/// From this many files on, threads hash faster than one; measured.
const PARALLEL_HASHES: usize = 64;
/// Files above this many bytes are streamed instead of read at once.
const STREAM_BYTES: u64 = 16 << 20;

/// Who made the snapshot commits: fixed, so that the same content gives the same id for everybody.
const SNAPSHOT_NAME: &str = "revdeck";
const SNAPSHOT_EMAIL: &str = "revdeck@localhost";
const SNAPSHOT_MESSAGE: &str = "Snapshot for a review\n";

/// What a tree has at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Leaf {
    pub mode: u32,
    pub id: Oid,
}

/// What differs from HEAD's tree, by path; `None` where a path is gone.
type Overlay = BTreeMap<Vec<u8>, Option<Leaf>>;

/// The worktree or the index held against HEAD.
#[derive(Debug, Default)]
struct Frozen {
    overlay: Overlay,
    /// What is in the worktree and not in the overlay.
    extra: Vec<Extra>,
}

/// Whether contents are only hashed or also put into the object database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keep {
    Hashes,
    Objects { max_file_bytes: u64 },
}

impl Repo {
    /// The worktree when it is dirty or there is no commit yet, else HEAD's commit.
    ///
    /// For the snapshot of what this says, [`Repo::snapshot_default`] looks at the worktree only once.
    pub fn default_scope(&self) -> Result<Scope, GitError> {
        let Some(head) = self.head_id() else { return Ok(Scope::Worktree) };
        if self.inner.workdir().is_some() && self.freeze_worktree(Keep::Hashes)?.is_dirty() {
            return Ok(Scope::Worktree);
        }
        Ok(Scope::Commit(self.short(head)))
    }

    /// The snapshot of the default scope, in one look at the worktree.
    pub fn snapshot_default(&self, filter: &Filter) -> Result<Snapshot, GitError> {
        if self.inner.workdir().is_none() {
            return self.snapshot(&Scope::Commit("HEAD".to_owned()), filter);
        }
        let frozen = self.freeze_worktree(Keep::Objects { max_file_bytes: filter.max_file_bytes })?;
        match self.head_id() {
            Some(_) if !frozen.is_dirty() => self.snapshot(&Scope::Commit("HEAD".to_owned()), filter),
            head => self.frozen_snapshot(frozen, head, Scope::Worktree, filter),
        }
    }

    /// Freezes what `scope` names and computes what changed.
    pub fn snapshot(&self, scope: &Scope, filter: &Filter) -> Result<Snapshot, GitError> {
        match self.resolve(scope)? {
            Resolved::Commits { base, tip, scope } => self.describe(base, tip, Vec::new(), scope, filter),
            Resolved::Worktree => {
                let frozen = self.freeze_worktree(Keep::Objects { max_file_bytes: filter.max_file_bytes })?;
                self.frozen_snapshot(frozen, self.head_id(), Scope::Worktree, filter)
            }
            Resolved::All if self.inner.workdir().is_none() => {
                self.describe(None, self.commit_id("HEAD")?, Vec::new(), Scope::All, filter)
            }
            Resolved::All => {
                let frozen = self.freeze_worktree(Keep::Objects { max_file_bytes: filter.max_file_bytes })?;
                self.frozen_snapshot(frozen, None, Scope::All, filter)
            }
            Resolved::Staged => {
                let head = self.head_id();
                let index = Index::read(&self.index, self.inner.path())?;
                let overlay = self.staged(&index, self.head_tree()?.as_ref())?;
                self.frozen_snapshot(Frozen { overlay, extra: Vec::new() }, head, Scope::Staged, filter)
            }
        }
    }

    fn frozen_snapshot(
        &self,
        frozen: Frozen,
        base: Option<Oid>,
        scope: Scope,
        filter: &Filter,
    ) -> Result<Snapshot, GitError> {
        let tip = self.write_snapshot(&frozen.overlay)?;
        self.describe(base, tip, frozen.extra, scope, filter)
    }

    /// HEAD's commit when the tree is the same, else a commit made for the purpose, on top of HEAD.
    fn write_snapshot(&self, overlay: &Overlay) -> Result<Oid, GitError> {
        let failed = self.failed("write a snapshot");
        let head = self.head_id().map(|id| self.inner.find_commit(id)).transpose().map_err(failed)?;
        let head_tree = self.head_tree()?;
        let changes: Vec<_> = overlay.iter().map(|(path, leaf)| (path.as_slice(), *leaf)).collect();
        let tree = match (&head_tree, changes.is_empty()) {
            (Some(tree), true) => tree.id(),
            _ => match self.write_tree(head_tree.as_ref(), &changes).map_err(failed)? {
                Some(id) => id,
                None => self.inner.treebuilder(None).and_then(|builder| builder.write()).map_err(failed)?,
            },
        };
        if let (Some(head), Some(head_tree)) = (&head, &head_tree)
            && head_tree.id() == tree
        {
            return Ok(head.id());
        }
        let seconds = head.as_ref().map_or(0, |head| head.time().seconds());
        let who = Signature::new(SNAPSHOT_NAME, SNAPSHOT_EMAIL, &Time::new(seconds, 0)).map_err(failed)?;
        let tree = self.inner.find_tree(tree).map_err(failed)?;
        let parents: Vec<_> = head.iter().collect();
        self.inner.commit(None, &who, &who, SNAPSHOT_MESSAGE, &tree, &parents).map_err(failed)
    }

    /// `base` with the changes laid over it, folder by folder; `None` when nothing is left.
    fn write_tree(&self, base: Option<&Tree>, changes: &[(&[u8], Option<Leaf>)]) -> Result<Option<Oid>, git2::Error> {
        #[derive(Default)]
        struct Changes<'a> {
            itself: Option<Option<Leaf>>,
            below: Vec<(&'a [u8], Option<Leaf>)>,
        }
        let mut names: BTreeMap<&[u8], Changes> = BTreeMap::new();
        for (path, leaf) in changes {
            match memchr::memchr(b'/', path) {
                Some(at) => {
                    let (name, rest) = path.split_at(at);
                    names.entry(name).or_default().below.push((rest.get(1..).unwrap_or_default(), *leaf));
                }
                None => names.entry(path).or_default().itself = Some(*leaf),
            }
        }
        let mut builder = self.inner.treebuilder(base)?;
        for (name, changes) in names {
            let before = base.and_then(|base| base.get_name_bytes(name));
            let before_tree = match &before {
                Some(entry) if entry.kind() == Some(ObjectType::Tree) => Some(self.inner.find_tree(entry.id())?),
                _ => None,
            };
            let after = match (changes.itself, changes.below.is_empty()) {
                (Some(Some(leaf)), _) => Some(leaf),
                (_, false) => {
                    self.write_tree(before_tree.as_ref(), &changes.below)?.map(|id| Leaf { mode: MODE_TREE, id })
                }
                (_, true) => None,
            };
            match after {
                Some(leaf) => drop(builder.insert(name, leaf.id, i32::try_from(leaf.mode).unwrap_or(0))?),
                None if before.is_some() => builder.remove(name)?,
                None => {}
            }
        }
        match builder.is_empty() {
            true => Ok(None),
            false => builder.write().map(Some),
        }
    }

    pub(super) fn head_tree(&self) -> Result<Option<Tree<'_>>, GitError> {
        let failed = self.failed("read HEAD");
        self.head_id().map(|id| self.inner.find_commit(id).and_then(|head| head.tree())).transpose().map_err(failed)
    }

    /// What the index has that HEAD's tree has not, and the other way round. Cached trees of the index that are the
    /// same as HEAD's are skipped whole.
    fn staged(&self, index: &Index, head: Option<&Tree>) -> Result<Overlay, GitError> {
        let mut overlay = Overlay::new();
        let walk = Staged { repo: self, index };
        let all = 0..index.entries.len();
        walk.folder(&[], all, index.trees.as_ref(), head, &mut overlay).map_err(self.failed("compare the index"))?;
        Ok(overlay)
    }

    fn freeze_worktree(&self, keep: Keep) -> Result<Frozen, GitError> {
        let root = self.worktree()?;
        let index = Index::read(&self.index, self.inner.path())?;
        let config = self.inner.config().and_then(|mut config| config.snapshot());
        let config = Settings::read(config.as_ref().ok());
        let shared = Arc::new(Shared::new(self.exclude_files(&config), config.compare.ignore_case));
        let seen = scan(&root, &index, config.compare, &shared)?;
        let head = self.head_tree()?;
        let mut frozen = Frozen { overlay: self.staged(&index, head.as_ref())?, extra: Vec::new() };
        let above = std::fs::read(self.inner.commondir().join("info").join("attributes")).ok();
        let below = config.attributes_file.as_ref().and_then(|file| std::fs::read(file).ok());
        let source = {
            let root = root.clone();
            move |folder: &[u8]| std::fs::read(bytes::below(&root, folder).join(".gitattributes")).ok()
        };
        let mut freezer = Freezer {
            repo: self,
            root: &root,
            index: &index,
            config: &config,
            keep,
            attributes: Attributes::new(source, above, below),
            frozen: &mut frozen,
        };
        freezer.take(seen)?;
        if let Some(head) = &head {
            frozen.overlay.retain(|path, leaf| entry_at(&self.inner, head, path) != *leaf);
        } else {
            frozen.overlay.retain(|_, leaf| leaf.is_some());
        }
        Ok(frozen)
    }

    /// The files with rules about ignored files that hold everywhere, the strongest first.
    fn exclude_files(&self, config: &Settings) -> Vec<PathBuf> {
        let mut files = vec![self.inner.commondir().join("info").join("exclude")];
        files.extend(config.excludes_file.clone());
        files
    }
}

impl Frozen {
    /// Whether there is something to review or to tell; what could not be read is no change.
    fn is_dirty(&self) -> bool {
        !self.overlay.is_empty() || self.extra.iter().any(|extra| extra.reason == LeftOutReason::Oversized)
    }
}

pub(super) fn mode_of(entry: &git2::TreeEntry) -> u32 {
    u32::try_from(entry.filemode()).unwrap_or(MODE_FILE)
}

/// The walk over index and HEAD side by side.
struct Staged<'a> {
    repo: &'a Repo,
    index: &'a Index,
}

impl Staged<'_> {
    fn folder(
        &self,
        prefix: &[u8],
        entries: std::ops::Range<usize>,
        cached: Option<&CachedTree>,
        tree: Option<&Tree>,
        overlay: &mut Overlay,
    ) -> Result<(), git2::Error> {
        if let (Some(cached), Some(tree)) = (cached.and_then(|cached| cached.id), tree)
            && cached == tree.id()
        {
            return Ok(());
        }
        let mut known: std::collections::HashSet<&[u8]> = std::collections::HashSet::new();
        let mut at = entries.start;
        while at < entries.end {
            let Some(entry) = self.index.entries.get(at) else { break };
            let path = self.index.path(entry);
            let rest = path.get(prefix.len()..).unwrap_or_default();
            if let Some(slash) = memchr::memchr(b'/', rest) {
                let (name, below) = rest.split_at(slash);
                let folder = path.get(..prefix.len() + slash + 1).unwrap_or(path);
                let to = self.index.end_of(folder, at, entries.end).max(at + 1);
                let subtree = self.subtree(tree, name)?;
                if entry.mode == MODE_TREE && below == b"/" {
                    // A folder that a sparse index folds into one entry.
                    if subtree.as_ref().map(Tree::id) != Some(entry.id) {
                        let now = self.repo.inner.find_tree(entry.id)?;
                        self.trees(folder, Some(&now), subtree.as_ref(), overlay)?;
                    }
                } else {
                    let cached = cached.and_then(|cached| cached.child(name));
                    self.folder(folder, at..to, cached, subtree.as_ref(), overlay)?;
                }
                if subtree.is_some() {
                    known.insert(name);
                }
                at = to;
                continue;
            }
            at += 1;
            let before = tree.and_then(|tree| tree.get_name_bytes(rest));
            let before = before.filter(|entry| entry.kind() != Some(ObjectType::Tree));
            match entry.watch {
                Watch::IntentToAdd => continue,
                // HEAD's side until the conflict is resolved.
                Watch::Unmerged => {}
                _ => {
                    let before = before.as_ref().map(|entry| Leaf { mode: mode_of(entry), id: entry.id() });
                    let now = Leaf { mode: entry.mode, id: entry.id };
                    if before != Some(now) {
                        overlay.insert(path.to_vec(), Some(now));
                    }
                }
            }
            if before.is_some() {
                known.insert(rest);
            }
        }
        for entry in tree.into_iter().flat_map(Tree::iter) {
            let name = entry.name_bytes();
            if !known.contains(name) {
                self.gone(&[prefix, name].concat(), &entry, overlay)?;
            }
        }
        Ok(())
    }

    fn subtree(&self, tree: Option<&Tree>, name: &[u8]) -> Result<Option<Tree<'_>>, git2::Error> {
        let entry = tree.and_then(|tree| tree.get_name_bytes(name));
        let entry = entry.filter(|entry| entry.kind() == Some(ObjectType::Tree));
        entry.map(|entry| self.repo.inner.find_tree(entry.id())).transpose()
    }

    /// A path of HEAD, or everything below it, that the index does not have.
    fn gone(&self, path: &[u8], entry: &git2::TreeEntry, overlay: &mut Overlay) -> Result<(), git2::Error> {
        if entry.kind() != Some(ObjectType::Tree) {
            overlay.entry(path.to_vec()).or_insert(None);
            return Ok(());
        }
        for below in self.repo.inner.find_tree(entry.id())?.iter() {
            self.gone(&[path, b"/", below.name_bytes()].concat(), &below, overlay)?;
        }
        Ok(())
    }

    /// Two trees held against each other, for folders that the index does not list.
    fn trees(
        &self,
        prefix: &[u8],
        now: Option<&Tree>,
        before: Option<&Tree>,
        overlay: &mut Overlay,
    ) -> Result<(), git2::Error> {
        for entry in now.into_iter().flat_map(Tree::iter) {
            let path = [prefix, entry.name_bytes()].concat();
            let old = before.and_then(|before| before.get_name_bytes(entry.name_bytes()));
            if old.as_ref().is_some_and(|old| old.id() == entry.id() && old.filemode() == entry.filemode()) {
                continue;
            }
            if entry.kind() == Some(ObjectType::Tree) {
                let sub = self.repo.inner.find_tree(entry.id())?;
                let old = self.subtree(before, entry.name_bytes())?;
                self.trees(&[path.as_slice(), b"/"].concat(), Some(&sub), old.as_ref(), overlay)?;
            } else {
                overlay.insert(path, Some(Leaf { mode: mode_of(&entry), id: entry.id() }));
            }
        }
        for entry in before.into_iter().flat_map(Tree::iter) {
            let new = now.and_then(|now| now.get_name_bytes(entry.name_bytes()));
            let is_tree = |entry: &git2::TreeEntry| entry.kind() == Some(ObjectType::Tree);
            if new.is_none_or(|new| is_tree(&new) != is_tree(&entry)) {
                self.gone(&[prefix, entry.name_bytes()].concat(), &entry, overlay)?;
            }
        }
        Ok(())
    }
}

/// The settings of git that decide how worktree and index compare.
struct Settings {
    compare: Compare,
    file_mode: bool,
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
            file_mode: flag("core.filemode", true),
            symlinks: flag("core.symlinks", true),
            autocrlf: word("core.autocrlf") == "input" || flag("core.autocrlf", false),
            excludes_file: file("core.excludesfile", "ignore"),
            attributes_file: file("core.attributesfile", "attributes"),
        }
    }
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
}

/// A file whose content goes into the overlay; `entry` is its place in the index, if it has one.
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
                Seen::Unreadable(path) => self.left_out(path, LeftOutReason::Unreadable, None),
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
                    let mode = if executable && self.config.file_mode { MODE_EXECUTABLE } else { MODE_FILE };
                    match self.keep {
                        Keep::Objects { max_file_bytes } if size > max_file_bytes => {
                            self.left_out(path, LeftOutReason::Oversized, Some((mode, size)));
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

    fn left_out(&mut self, path: Vec<u8>, reason: LeftOutReason, file: Option<(u32, u64)>) {
        self.frozen.extra.push(Extra { path, reason, file });
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
            Thing::File { executable, size } => match (self.config.file_mode, executable, entry.mode) {
                (true, true, _) | (false, _, MODE_EXECUTABLE) => (MODE_EXECUTABLE, size),
                _ => (MODE_FILE, size),
            },
            Thing::Symlink => (MODE_SYMLINK, 0),
        };
        let clean = if mode == MODE_SYMLINK { Clean::Nothing } else { self.clean(&path) };
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
                (_, Some(Err(error))) => Err(error),
                _ => self.put(candidate),
            };
            self.settle(candidate, id)?;
        }
        let ids = self.hash_by_git(&by_git);
        for (place, candidate) in by_git.into_iter().enumerate() {
            let id = match ids.as_ref().and_then(|ids| ids.get(place)) {
                Some(id) => Ok(*id),
                None => self.put(candidate),
            };
            self.settle(candidate, id)?;
        }
        Ok(())
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
                let file = bytes::below(self.root, &candidate.path);
                match std::fs::File::open(&file).map_err(|error| error.kind()) {
                    // It went away while we looked.
                    Err(std::io::ErrorKind::NotFound) if candidate.mode != MODE_SYMLINK => {
                        if candidate.entry.is_some() {
                            self.frozen.overlay.insert(candidate.path.clone(), None);
                        }
                        Ok(())
                    }
                    Err(_) => {
                        self.left_out(candidate.path.clone(), LeftOutReason::Unreadable, None);
                        Ok(())
                    }
                    Ok(_) => Err(GitError::git("write a snapshot of a file", file, error)),
                }
            }
        }
    }

    /// Puts a file's content into the object database as git would, or only hashes it.
    fn put(&self, candidate: &Candidate) -> Result<Oid, git2::Error> {
        let file = bytes::below(self.root, &candidate.path);
        let keep = |content: &[u8]| match self.keep {
            Keep::Hashes => Oid::hash_object(ObjectType::Blob, content),
            Keep::Objects { .. } => self.repo.inner.odb()?.write(ObjectType::Blob, content),
        };
        let unreadable = |error: std::io::Error| git2::Error::from_str(&error.to_string());
        if candidate.mode == MODE_SYMLINK
            && let Ok(target) = std::fs::read_link(&file)
        {
            return keep(&bytes::of_path(&target));
        }
        if candidate.clean == Clean::Nothing && candidate.size <= STREAM_BYTES {
            return keep(&std::fs::read(&file).map_err(unreadable)?);
        }
        self.repo.inner.blob_path(&file)
    }

    /// What `git hash-object` makes of files with filter programs; `None` when git is not there or fails.
    fn hash_by_git(&self, candidates: &[&Candidate]) -> Option<Vec<Oid>> {
        if candidates.is_empty() {
            return Some(Vec::new());
        }
        let mut command = Command::new("git");
        command.arg("--git-dir").arg(self.repo.inner.path()).arg("--work-tree").arg(self.root).arg("hash-object");
        if matches!(self.keep, Keep::Objects { .. }) {
            command.arg("-w");
        }
        command.arg("--stdin-paths").current_dir(self.root).env("GIT_INDEX_FILE", &self.repo.index);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
        let mut stdin = child.stdin.take()?;
        let lines: Vec<u8> = candidates.iter().flat_map(|candidate| quoted(&candidate.path)).collect();
        let writer = std::thread::spawn(move || stdin.write_all(&lines));
        let output = child.wait_with_output().ok()?;
        let _ = writer.join();
        let text = String::from_utf8(output.stdout).ok()?;
        let ids: Vec<Oid> = text.lines().map_while(|line| Oid::from_str(line).ok()).collect();
        (output.status.success() && ids.len() == candidates.len()).then_some(ids)
    }
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
    let hash = |file: &&Candidate| Oid::hash_file(ObjectType::Blob, bytes::below(root, &file.path));
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
        let lost = |n| (0..n).map(|_| Err(git2::Error::new(ErrorCode::GenericError, git2::ErrorClass::Thread, "lost")));
        workers.into_iter().flat_map(|(n, worker)| worker.join().unwrap_or_else(|_| lost(n).collect())).collect()
    })
}
