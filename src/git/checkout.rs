//! Creates temporary checkouts: a commit's files in a separate folder, for programs that read files by themselves.
//!
//! Invariants:
//! - The user's worktree, index, refs, settings and `git worktree list` do not change.
//! - Nothing in the commit can run a program, or write or point outside of the folder.
//! - Nobody reads the checkout of a review back, so a program that changes it affects only its own review. From the
//!   checkout of a fix, `collect_changes` reads the changed files.
//!
//! A checkout contains the files and a minimal repository that borrows the objects of the real repository
//! (`objects/info/alternates`), so that `git log` and `git diff` work. HEAD is detached at the commit. There are no
//! hooks, filters or conversions: `info/attributes`, which overrides the commit's `.gitattributes`, disables them even
//! when the user's global settings enable them.
//!
//! Differences from a checkout by git:
//! - Files are read-only and not executable. A careless program cannot edit the code under review, and the folder can
//!   still be deleted.
//! - Symbolic links are files with the link's target as text, as git writes them on systems without links.
//! - Submodules are empty folders.
//! - Some files are left out and marked `skip-worktree` in the index: names that the caller excludes, files above
//!   [`MAX_FILE_BYTES`], objects missing in a partial clone, and names that the file system rejects.
//! - A name that could be taken for `.git` is not in the index either.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use git2::{
    ErrorCode, Index, IndexEntry, IndexEntryExtendedFlag, IndexTime, ObjectType, Odb, OdbLookupFlags, Oid, Repository,
};
use rayon::prelude::*;

use super::index::MODE_GITLINK;
use super::trees::{TreeLeaf, leaf_from_entry};
use super::{GitError, Repo, path_bytes, regular_file};
use crate::domain::text;
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
}

impl Repo {
    /// Checks out a commit into `folder`. The folder is created; a leftover of an earlier attempt is deleted first.
    /// Files and folders whose name is in `unwanted` (ASCII case-insensitive) are left out. Returns `None` when
    /// `cancelled`, which is called every 20 ms, returns true.
    ///
    /// # Errors
    /// Returns an error, and deletes the folder, when the commit cannot be read or the folder cannot be written.
    pub fn create_checkout(
        &self,
        commit: &str,
        folder: &Path,
        unwanted: &[&str],
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Option<TemporaryCheckout>, GitError> {
        let tip = self.find_commit(commit)?.id();
        let objects = self.common_dir().join("objects");
        remove_checkout(folder).map_err(io_error("delete", folder))?;
        let mut throwaway = TemporaryCheckout { folder: folder.to_owned(), files: 0, left_out: 0 };
        init_repository(folder, &objects, tip, &self.common_dir().join("shallow"))?;
        let Some(places) = self.list_checkout_entries(tip, folder, unwanted, cancelled)? else { return Ok(None) };
        let entries = write_entries(folder, &places, cancelled)?;
        if entries.len() < places.len() {
            return Ok(None);
        }
        throwaway.left_out = entries.iter().filter(|entry| entry.flags_extended != 0).count();
        throwaway.files = entries.len() - throwaway.left_out;
        write_index(folder, &entries)
            .map_err(|source| GitError::from_git2("write the index of a checkout", folder, source))?;
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

    /// Lists all paths of a commit, sorted, and creates the folders. Returns `None` when cancelled.
    fn list_checkout_entries(
        &self,
        tip: Oid,
        folder: &Path,
        unwanted: &[&str],
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
                let unwanted = unwanted_above
                    || unwanted.iter().any(|unwanted| name.eq_ignore_ascii_case(unwanted.as_bytes()))
                    || (is_folder(&entry) && !create_folder(&path_bytes::join_path(folder, &path))?);
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
                    places.push(CheckoutEntry { path, leaf: leaf_from_entry(&entry), unwanted });
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

/// Creates the checkout's repository in the folder, without files.
fn init_repository(folder: &Path, objects: &Path, tip: Oid, shallow: &Path) -> Result<(), GitError> {
    let mut borrowed = path_bytes::from_path(objects);
    if borrowed.contains(&b'\n') {
        let what = "a checkout cannot borrow objects from a folder with a line break in its name".to_owned();
        return Err(GitError::Unsupported { path: objects.to_owned(), what });
    }
    borrowed.push(b'\n');
    create_private_folder(folder).map_err(io_error("make", folder))?;
    let git = folder.join(".git");
    for part in ["objects/info", "objects/pack", "refs/heads", "info"] {
        let part = git.join(part);
        fs::create_dir_all(&part).map_err(io_error("make", &part))?;
    }
    let head = format!("{tip}\n");
    let mut files: Vec<(&str, &[u8])> = vec![
        ("objects/info/alternates", &borrowed),
        ("info/attributes", CHECKOUT_ATTRIBUTES.as_bytes()),
        ("config", CHECKOUT_CONFIG.as_bytes()),
        ("HEAD", head.as_bytes()),
    ];
    // The file with the boundary of a shallow clone prevents git from looking for earlier commits.
    let shallow = regular_file::read_linked(shallow).unwrap_or_default();
    if !shallow.is_empty() {
        files.push(("shallow", &shallow));
    }
    for (name, content) in files {
        let file = git.join(name);
        fs::write(&file, content).map_err(io_error("write", &file))?;
    }
    Ok(())
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

/// Returns true when a name stays in its folder and is not git's own on any file system. Some file systems ignore case,
/// trailing dots, the text after a colon, or invisible characters.
pub(super) fn is_safe_file_name(name: &[u8]) -> bool {
    let folded: String =
        String::from_utf8_lossy(name).chars().filter(|c| !text::is_unsafe(*c)).flat_map(char::to_lowercase).collect();
    let stem = folded.split(':').next().unwrap_or_default().trim_end_matches(['.', ' ']);
    let leads_away = matches!(name, b"" | b"." | b"..")
        || name.contains(&b'/')
        || (cfg!(windows) && name.iter().any(|byte| matches!(byte, b'\\' | b':')));
    !leads_away && !matches!(stem, ".git" | "git~1")
}

/// Writes the files, on several threads when there are many. Returns the index entries in the order of `places`; when
/// cancelled, there are fewer entries than places.
fn write_entries(
    folder: &Path,
    places: &[CheckoutEntry],
    cancelled: &dyn Fn() -> bool,
) -> Result<Vec<IndexEntry>, GitError> {
    let failed = |source| GitError::from_git2("read the objects of a checkout", folder, source);
    let pool = parallel::pool().ok_or_else(|| failed(git2::Error::from_str("no thread can be started")))?;
    let share = places.len().div_ceil(pool.current_num_threads()).max(MIN_FILES_PER_THREAD);
    let stop = &AtomicBool::new(false);
    let write_share = |places: &[CheckoutEntry]| {
        let repo = Repository::open(folder).map_err(failed)?;
        let odb = repo.odb().map_err(failed)?;
        let places = places.iter().take_while(|_| !stop.load(Ordering::Relaxed));
        places.map(|place| write_entry(folder, &odb, place)).collect::<Result<Vec<_>, _>>()
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
                    return Ok(entries.into_iter().flatten().collect());
                }
                Err(RecvTimeoutError::Timeout) => {}
                // A thread panicked; the end of the scope propagates the panic.
                Err(RecvTimeoutError::Disconnected) => return Ok(Vec::new()),
            }
        }
    })
}

fn write_entry(folder: &Path, odb: &Odb<'_>, place: &CheckoutEntry) -> Result<IndexEntry, GitError> {
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
    if place.unwanted {
        return Ok(entry);
    }
    if place.leaf.mode == MODE_GITLINK {
        entry.flags_extended = 0;
        return Ok(entry);
    }
    // The lookup does not search for new packs; for many missing objects that would be very slow.
    if !odb.exists_ext(place.leaf.id, OdbLookupFlags::NO_REFRESH) {
        return Ok(entry);
    }
    let file = path_bytes::join_path(folder, &place.path);
    let failed = |error| GitError::from_git2("read a file of a checkout", &file, error);
    let (size, kind) = odb.read_header(place.leaf.id).map_err(failed)?;
    if kind != ObjectType::Blob || size > MAX_FILE_BYTES {
        return Ok(entry);
    }
    let object = odb.read(place.leaf.id).map_err(failed)?;
    match write_file(&file, object.data(), &mut entry) {
        Ok(()) => entry.flags_extended = 0,
        Err(error) if is_name_error(&error) => {}
        Err(source) => return Err(io_error("write", &file)(source)),
    }
    Ok(entry)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_is_gits_own_or_leads_away() {
        let hostile: [&[u8]; 13] = [
            b"",
            b".",
            b"..",
            b"a/b",
            b".git",
            b".GIT",
            b".Git ",
            b".git. .",
            b".git::$INDEX_ALLOCATION",
            b"git~1",
            b"GIT~1",
            ".g\u{200c}it".as_bytes(),
            ".git\u{feff}".as_bytes(),
        ];
        for name in hostile {
            assert!(!is_safe_file_name(name), "{}", String::from_utf8_lossy(name));
        }
        let plain: [&[u8]; 7] = [b"a", b".gitignore", b".github", b"git", b"...", b"caf\xe9", b"-rf"];
        for name in plain {
            assert!(is_safe_file_name(name), "{}", String::from_utf8_lossy(name));
        }
    }
}
