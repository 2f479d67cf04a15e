//! Creates temporary checkouts: a commit's files in a separate folder, for programs that read files by themselves.
//!
//! Invariants:
//! - The user's worktree, index, refs, settings and `git worktree list` do not change.
//! - Nothing in the commit can run a program, or write or point outside of the folder.
//! - Nobody reads the checkout of a review back, so a program that changes it affects only its own review. From the
//!   checkout of a fix, `collect_changes` reads the changed files.
//!
//! A checkout contains the files and a repository of its own with at most two commits, the base and the commit itself, so
//! that `git diff HEAD~1` and `git show` work. It borrows no objects, so nothing else of the real repository can be reached:
//! neither its history nor the files that the caller calls secret. If the caller gives a mask, files and objects hold the
//! masked contents. HEAD is detached at the commit. There are no hooks, filters or conversions: `info/attributes`, which
//! overrides the commit's `.gitattributes`, disables them even when the user's global settings enable them.
//!
//! Differences from a checkout by git:
//! - Files are read-only and not executable. A careless program cannot edit the code under review, and the folder can
//!   still be deleted.
//! - Symbolic links are files with the link's target as text, as git writes them on systems without links.
//! - Submodules are empty folders.
//! - Some files are left out and marked `skip-worktree` in the index: names that the caller does not want, and names that
//!   the file system rejects.
//! - Others are in neither the index nor the commits: secret files, names that could be taken for `.git`, files above
//!   [`MAX_FILE_BYTES`], and objects missing in a partial clone.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use git2::{
    ErrorCode, Index, IndexEntry, IndexEntryExtendedFlag, IndexTime, ObjectType, Odb, OdbLookupFlags, Oid, Repository,
    Signature,
};
use rayon::prelude::*;

use super::index::MODE_GITLINK;
use super::trees::{TreeLeaf, leaf_from_entry, write_tree};
use super::{GitError, Repo, path_bytes};
use crate::domain::is_safe_file_name;
use crate::parallel;

/// Maximum number of files in a checkout, including files left out. A crafted tree can expand to any number of files.
const MAX_FILES: usize = 1_000_000;
/// Size limit in bytes of a file; larger files are not source code, and each file is held in memory while it is
/// written.
const MAX_FILE_BYTES: usize = 64 * 1024 * 1024;
/// Length limit in bytes of a path; the value of `PATH_MAX` on Linux.
const MAX_PATH_BYTES: usize = 4096;
/// Minimum number of files per thread; opening the repository in another thread for fewer files is not worthwhile.
const MIN_FILES_PER_THREAD: usize = 200;
/// Interval at which the caller is asked for cancellation.
const CANCEL_POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Maximum number of attempts to delete a folder while another process may still write to it.
const MAX_REMOVE_ATTEMPTS: usize = 3;

/// Settings of the checkout's own repository. They override global settings that would run a program, convert a file or
/// write in the background.
const CHECKOUT_CONFIG: &str = "\
[core]
\trepositoryformatversion = 0
\tbare = false
\tfileMode = false
\tsymlinks = false
\tautocrlf = false
\tfsmonitor = false
\thooksPath = /dev/null
\tlogAllRefUpdates = false
[gc]
\tauto = 0
[maintenance]
\tauto = false
[submodule]
\trecurse = false
";
/// Content of the checkout's `info/attributes`: disables filters and conversions for every file.
const CHECKOUT_ATTRIBUTES: &str = "* -filter -text -ident !eol !crlf !working-tree-encoding !diff !merge\n";

/// Author of the commits in a checkout. The real messages are not shown, because they may hold secrets too.
const AUTHOR: (&str, &str) = ("revdeck", "revdeck@localhost");

/// Masks the content of the file at a path; `None` if nothing in it is secret.
pub type MaskContent<'a> = dyn Fn(&str, &[u8]) -> Option<Vec<u8>> + Sync + 'a;

/// The content of a checkout.
#[derive(Clone, Copy)]
pub struct CheckoutPlan<'a> {
    /// The commit whose files are written.
    pub commit: &'a str,
    /// The commit before it; `None` for a checkout with a single commit.
    pub base: Option<&'a str>,
    /// Names of files and folders (ASCII case-insensitive) that are in the commits but are not written as files.
    pub unwanted: &'a [&'a str],
    /// Returns true for paths of files, and of folders with a slash behind, that are in neither the files nor the commits.
    pub is_secret: &'a (dyn Fn(&str) -> bool + Sync),
    /// `None` leaves the contents as they are.
    pub mask: Option<&'a MaskContent<'a>>,
}

/// A temporary checkout; dropping this value deletes the folder.
#[derive(Debug)]
pub struct TemporaryCheckout {
    folder: PathBuf,
    /// Number of files written.
    pub files: usize,
    /// Number of files of the commit that were not written.
    pub left_out: usize,
}

impl TemporaryCheckout {
    /// Returns the root folder, as it was passed to [`Repo::create_checkout`].
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for TemporaryCheckout {
    fn drop(&mut self) {
        if let Err(error) = remove_checkout(&self.folder) {
            tracing::warn!(folder = %self.folder.display(), %error, "a throw-away checkout stays behind");
        }
    }
}

/// A path of the commit that is not a folder.
struct CheckoutEntry {
    path: Vec<u8>,
    leaf: TreeLeaf,
    /// True when the file must not be written.
    unwanted: bool,
    /// True when the commits must not have it either.
    is_secret: bool,
}

impl Repo {
    /// Checks out a commit into `folder`. The folder is created; a leftover of an earlier attempt is deleted first.
    /// Returns `None` when `cancelled`, which is called every 20 ms, returns true.
    ///
    /// # Errors
    /// Returns an error, and deletes the folder, when a commit cannot be read or the folder cannot be written.
    pub fn create_checkout(
        &self,
        plan: &CheckoutPlan<'_>,
        folder: &Path,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Option<TemporaryCheckout>, GitError> {
        let tip = self.find_commit(plan.commit)?.id();
        let base = plan.base.map(|base| self.find_commit(base)).transpose()?.map(|base| base.id());
        remove_checkout(folder).map_err(io_error("delete", folder))?;
        let mut throwaway = TemporaryCheckout { folder: folder.to_owned(), files: 0, left_out: 0 };
        init_repository(folder)?;
        let source = self.common_dir();
        let listed = |commit, files: Option<&Path>| self.list_checkout_entries(commit, files, plan, cancelled);
        let (Some(places), Some(before)) =
            (listed(tip, Some(folder))?, base.map_or(Ok(Some(Vec::new())), |base| listed(base, None))?)
        else {
            return Ok(None);
        };
        let writer = CheckoutWriter { folder, source: &source, plan };
        let Some(entries) = writer.write_entries(&places, &HashMap::new(), cancelled)? else { return Ok(None) };
        // Files that the change leaves alone are written once.
        let known = places
            .iter()
            .zip(&entries)
            .filter_map(|(place, entry)| Some((place.path.as_slice(), (place.leaf.id, entry.as_ref()?.id))));
        let known = known.collect();
        let Some(earlier) = writer.write_entries(&before, &known, cancelled)? else { return Ok(None) };
        throwaway.files = entries.iter().flatten().filter(|entry| entry.flags_extended == 0).count();
        throwaway.left_out = places.len() - throwaway.files;
        let entries: Vec<IndexEntry> = entries.into_iter().flatten().collect();
        let earlier: Vec<IndexEntry> = earlier.into_iter().flatten().collect();
        write_commits(folder, base.map(|_| earlier.as_slice()), &entries)
            .map_err(|source| GitError::from_git2("write the commits of a checkout", folder, source))?;
        Ok(Some(throwaway))
    }

    /// Deletes all temporary checkouts in `folder`, except those whose name satisfies `is_alive`. Returns the number of
    /// deleted entries.
    ///
    /// # Errors
    /// Returns an error when the folder cannot be listed or an entry cannot be deleted.
    pub fn remove_stale_checkouts(folder: &Path, is_alive: &dyn Fn(&str) -> bool) -> Result<usize, GitError> {
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(0),
            Err(source) => return Err(io_error("list", folder)(source)),
        };
        let mut swept = 0;
        for entry in entries {
            let entry = entry.map_err(io_error("list", folder))?;
            if entry.file_name().to_str().is_some_and(is_alive) {
                continue;
            }
            let path = entry.path();
            match remove_checkout(&path) {
                Ok(()) => swept += 1,
                // Another process deleted the entry.
                Err(_) if path.symlink_metadata().is_err() => {}
                Err(source) => return Err(io_error("delete", &path)(source)),
            }
        }
        Ok(swept)
    }

    /// Lists the paths of a commit, sorted, and creates the folders below `folder`. Without a
    /// folder, no file is to be written. Returns `None` when cancelled.
    fn list_checkout_entries(
        &self,
        tip: Oid,
        folder: Option<&Path>,
        plan: &CheckoutPlan<'_>,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Option<Vec<CheckoutEntry>>, GitError> {
        let failed = self.git_error("read a commit");
        let tree = self.inner.find_commit(tip).and_then(|commit| commit.tree()).map_err(failed)?;
        let mut places = Vec::new();
        // The walk is not recursive, because the author of the commit controls the depth of its folders.
        let mut trees = vec![(tree, Vec::new(), false)];
        while let Some((tree, above, unwanted_above)) = trees.pop() {
            if cancelled() {
                return Ok(None);
            }
            for entry in tree.iter() {
                let name = entry.name_bytes();
                if !is_safe_file_name(name) || above.len() + name.len() > MAX_PATH_BYTES {
                    continue;
                }
                let mut path = above.clone();
                path.extend_from_slice(name);
                // A folder is told from a file by its slash.
                let slash = if entry.kind() == Some(ObjectType::Tree) { "/" } else { "" };
                let is_secret = (plan.is_secret)(&format!("{}{slash}", String::from_utf8_lossy(&path)));
                if is_secret && !slash.is_empty() {
                    continue;
                }
                let unwanted = unwanted_above
                    || plan.unwanted.iter().any(|unwanted| name.eq_ignore_ascii_case(unwanted.as_bytes()))
                    || match folder {
                        Some(folder) => is_folder(&entry) && !create_folder(&path_bytes::join_path(folder, &path))?,
                        None => true,
                    };
                if entry.kind() == Some(ObjectType::Tree) {
                    match self.inner.find_tree(entry.id()) {
                        Ok(tree) => {
                            path.push(b'/');
                            trees.push((tree, path, unwanted));
                        }
                        Err(error) if error.code() == ErrorCode::NotFound && self.promisor_remote().is_some() => {}
                        Err(error) => return Err(failed(error)),
                    }
                } else {
                    places.push(CheckoutEntry { path, leaf: leaf_from_entry(&entry), unwanted, is_secret });
                }
                if places.len() + trees.len() > MAX_FILES {
                    return Err(GitError::TooManyFiles {
                        commit: tip.to_string(),
                        limit: MAX_FILES,
                        path: self.root(),
                    });
                }
            }
        }
        places.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Some(places))
    }
}

/// Creates the checkout's repository in the folder, without files and commits.
fn init_repository(folder: &Path) -> Result<(), GitError> {
    create_private_folder(folder).map_err(io_error("make", folder))?;
    let git = folder.join(".git");
    for part in ["objects/info", "objects/pack", "refs/heads", "info"] {
        let part = git.join(part);
        fs::create_dir_all(&part).map_err(io_error("make", &part))?;
    }
    let files: [(&str, &[u8]); 3] = [
        ("info/attributes", CHECKOUT_ATTRIBUTES.as_bytes()),
        ("config", CHECKOUT_CONFIG.as_bytes()),
        ("HEAD", b"ref: refs/heads/none\n"),
    ];
    for (name, content) in files {
        let file = git.join(name);
        fs::write(&file, content).map_err(io_error("write", &file))?;
    }
    Ok(())
}

/// Writes the base, if there is one, and the commit on top of it, detaches HEAD at it and writes the index.
fn write_commits(folder: &Path, base: Option<&[IndexEntry]>, entries: &[IndexEntry]) -> Result<(), git2::Error> {
    let repo = Repository::open(folder)?;
    let author = Signature::new(AUTHOR.0, AUTHOR.1, &git2::Time::new(0, 0))?;
    let commit = |message: &str, entries: &[IndexEntry], parents: &[&git2::Commit<'_>]| {
        let leaves: Vec<(&[u8], Option<TreeLeaf>)> = entries
            .iter()
            .map(|entry| (entry.path.as_slice(), Some(TreeLeaf { mode: entry.mode, id: entry.id })))
            .collect();
        let tree = match write_tree(&repo, None, &leaves)? {
            Some(tree) => tree,
            None => repo.treebuilder(None)?.write()?,
        };
        let id = repo.commit(None, &author, &author, message, &repo.find_tree(tree)?, parents)?;
        repo.find_commit(id)
    };
    let base = base.map(|entries| commit("The state before the change", entries, &[])).transpose()?;
    let parents: Vec<&git2::Commit<'_>> = base.iter().collect();
    let tip = commit("The state under review", entries, &parents)?;
    repo.set_head_detached(tip.id())?;
    write_index(folder, entries)
}

/// Creates a folder and its parents with access for the current user only.
fn create_private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}

fn is_folder(entry: &git2::TreeEntry) -> bool {
    entry.kind() == Some(ObjectType::Tree) || u32::try_from(entry.filemode()) == Ok(MODE_GITLINK)
}

/// Creates a folder. Returns false when the file system rejects the name, or when an entry that differs in case only
/// exists.
fn create_folder(path: &Path) -> Result<bool, GitError> {
    match fs::create_dir(path) {
        Ok(()) => Ok(true),
        Err(error) if is_name_error(&error) => Ok(false),
        Err(source) => Err(io_error("make", path)(source)),
    }
}

fn is_name_error(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::InvalidFilename | ErrorKind::InvalidInput)
}

/// Writes the files and objects of a checkout.
struct CheckoutWriter<'a> {
    folder: &'a Path,
    /// The git folder of the real repository.
    source: &'a Path,
    plan: &'a CheckoutPlan<'a>,
}

/// Objects that are written already: for a path the id in the real repository and the id in the checkout.
type WrittenObjects<'a> = HashMap<&'a [u8], (Oid, Oid)>;

impl CheckoutWriter<'_> {
    /// Writes the files and objects, on several threads when there are many. Returns the index entries in the order of
    /// `places`, with `None` for files that are in neither; `None` when cancelled.
    fn write_entries(
        &self,
        places: &[CheckoutEntry],
        known: &WrittenObjects<'_>,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Option<Vec<Option<IndexEntry>>>, GitError> {
        let failed = |source| GitError::from_git2("read the objects of a checkout", self.folder, source);
        let pool = parallel::pool().ok_or_else(|| failed(git2::Error::from_str("no thread can be started")))?;
        let share = places.len().div_ceil(pool.current_num_threads()).max(MIN_FILES_PER_THREAD);
        let stop = &AtomicBool::new(false);
        let write_share = |places: &[CheckoutEntry]| {
            let (source, target) =
                (Repository::open(self.source).map_err(failed)?, Repository::open(self.folder).map_err(failed)?);
            let (source, target) = (source.odb().map_err(failed)?, target.odb().map_err(failed)?);
            let places = places.iter().take_while(|_| !stop.load(Ordering::Relaxed));
            let write = |place| self.write_entry((&source, &target), place, known);
            places.map(write).collect::<Result<Vec<_>, _>>()
        };
        let (done, shares) = channel();
        pool.in_place_scope(|scope| {
            scope.spawn(move |_| {
                let shares: Vec<_> = places.par_chunks(share).with_max_len(1).map(write_share).collect();
                let _ = done.send(shares);
            });
            loop {
                if cancelled() {
                    stop.store(true, Ordering::Relaxed);
                }
                match shares.recv_timeout(CANCEL_POLL_INTERVAL) {
                    Ok(shares) => {
                        let entries = shares.into_iter().collect::<Result<Vec<_>, _>>()?;
                        let entries: Vec<_> = entries.into_iter().flatten().collect();
                        return Ok((entries.len() == places.len()).then_some(entries));
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                    // A thread panicked; the end of the scope propagates the panic.
                    Err(RecvTimeoutError::Disconnected) => return Ok(None),
                }
            }
        })
    }

    /// Writes the object of a file, and the file itself unless it is unwanted. Returns `None` for a file that the checkout
    /// does not have.
    fn write_entry(
        &self,
        (source, target): (&Odb<'_>, &Odb<'_>),
        place: &CheckoutEntry,
        known: &WrittenObjects<'_>,
    ) -> Result<Option<IndexEntry>, GitError> {
        let nothing = IndexTime::new(0, 0);
        let mut entry = IndexEntry {
            ctime: nothing,
            mtime: nothing,
            dev: 0,
            ino: 0,
            mode: place.leaf.mode,
            uid: 0,
            gid: 0,
            file_size: 0,
            id: place.leaf.id,
            flags: 0,
            flags_extended: IndexEntryExtendedFlag::SKIP_WORKTREE.bits(),
            path: place.path.clone(),
        };
        if place.is_secret {
            return Ok(None);
        }
        if place.leaf.mode == MODE_GITLINK {
            entry.flags_extended = if place.unwanted { entry.flags_extended } else { 0 };
            return Ok(Some(entry));
        }
        if let Some((real, written)) = known.get(place.path.as_slice())
            && *real == place.leaf.id
        {
            entry.id = *written;
            return Ok(Some(entry));
        }
        // The lookup does not search for new packs; for many missing objects that would be very slow.
        if !source.exists_ext(place.leaf.id, OdbLookupFlags::NO_REFRESH) {
            return Ok(None);
        }
        let file = path_bytes::join_path(self.folder, &place.path);
        let failed = |error| GitError::from_git2("read a file of a checkout", &file, error);
        let (size, kind) = source.read_header(place.leaf.id).map_err(failed)?;
        if kind != ObjectType::Blob || size > MAX_FILE_BYTES {
            return Ok(None);
        }
        let object = source.read(place.leaf.id).map_err(failed)?;
        let masked = self.plan.mask.and_then(|mask| mask(&String::from_utf8_lossy(&place.path), object.data()));
        let content = masked.as_deref().unwrap_or(object.data());
        entry.id = target
            .write(ObjectType::Blob, content)
            .map_err(|error| GitError::from_git2("write a file of a checkout", &file, error))?;
        if place.unwanted {
            return Ok(Some(entry));
        }
        match write_file(&file, content, &mut entry) {
            Ok(()) => entry.flags_extended = 0,
            Err(error) if is_name_error(&error) => {}
            Err(source) => return Err(io_error("write", &file)(source)),
        }
        Ok(Some(entry))
    }
}

/// Writes a new file, and sets the `stat` data in `entry` by which git recognizes an unchanged file.
fn write_file(path: &Path, content: &[u8], entry: &mut IndexEntry) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o444);
    let mut file = options.open(path)?;
    file.write_all(content)?;
    #[cfg(unix)]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the index keeps the low 32 bits")]
    {
        use std::os::unix::fs::MetadataExt as _;
        let seen = file.metadata()?;
        entry.mtime = IndexTime::new(seen.mtime() as i32, seen.mtime_nsec() as u32);
        entry.ctime = IndexTime::new(seen.ctime() as i32, seen.ctime_nsec() as u32);
        (entry.dev, entry.ino) = (seen.dev() as u32, seen.ino() as u32);
        (entry.uid, entry.gid) = (seen.uid(), seen.gid());
        entry.file_size = seen.size() as u32;
    }
    Ok(())
}

fn write_index(folder: &Path, entries: &[IndexEntry]) -> Result<(), git2::Error> {
    let mut index = Index::open(&folder.join(".git/index"))?;
    for entry in entries {
        index.add(entry)?;
    }
    index.write()
}

/// Deletes a folder with its contents, even when permissions forbid it. No link is followed.
fn remove_checkout(folder: &Path) -> io::Result<()> {
    match folder.symlink_metadata() {
        Ok(seen) if seen.is_dir() => {}
        Ok(_) => return fs::remove_file(folder),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    }
    let mut removed = fs::remove_dir_all(folder);
    for _ in 1..MAX_REMOVE_ATTEMPTS {
        match &removed {
            Err(error) if error.kind() == ErrorKind::PermissionDenied => open_up(folder),
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => {}
            _ => break,
        }
        removed = fs::remove_dir_all(folder);
    }
    removed
}

/// Makes the folder and all folders below it writable, so that their entries can be deleted.
#[cfg(unix)]
fn open_up(folder: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let _ = fs::set_permissions(&folder, fs::Permissions::from_mode(0o700));
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        folders.extend(entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|e| e.path()));
    }
}

#[cfg(not(unix))]
fn open_up(_folder: &Path) {}

fn io_error<'a>(action: &'static str, path: &'a Path) -> impl Fn(io::Error) -> GitError + Copy + use<'a> {
    move |source| GitError::Io { action, path: path.to_owned(), source }
}
