//! A throw-away checkout: a commit's files in a folder of their own, for programs that look around by themselves.
//!
//! Invariants: the user's worktree, index, refs, settings and `git worktree list` do not know of it; nothing in the
//! commit can make anything run, or write or lead outside of the folder. Of a review's nobody reads the folder back, so
//! whatever a program does to it changes no review but its own; of a fix's `harvest` takes what was changed.
//!
//! What it is: files, and a minimal repository of its own that borrows the real one's objects
//! (`objects/info/alternates`), so that `git log` and `git diff` work in it. HEAD is detached at the commit. There are
//! no hooks, no filters and no conversions: `info/attributes`, which is stronger than the `.gitattributes` of the
//! commit, turns them off also for the user's global settings.
//!
//! What is different from a checkout by git: files are read-only and not executable, which keeps a careless program
//! from editing what it reviews, and still lets anybody delete the folder; symbolic links are files with the link's
//! text, as git makes them where there are none; submodules are empty folders. Left out, and marked so in the index
//! (`skip-worktree`), are names that the caller does not want, files above [`MAX_FILE_BYTES`], objects that a partial
//! clone lacks, and names that the file system does not take. A name that could be taken for `.git` is not even in the
//! index.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use git2::{
    ErrorCode, Index, IndexEntry, IndexEntryExtendedFlag, IndexTime, ObjectType, Odb, OdbLookupFlags, Oid, Repository,
};

use super::index::MODE_GITLINK;
use super::trees::{TreeLeaf, leaf_from_entry};
use super::{GitError, Repo, path_bytes};
use crate::domain::text;

/// Files that a checkout has at most, those that it leaves out counted: trees can be made that unfold to any number.
const MAX_FILES: usize = 1_000_000;
/// Larger files are no source code, and each is in memory while it is written.
const MAX_FILE_BYTES: usize = 64 * 1024 * 1024;
/// Longer paths are beyond what systems take (`PATH_MAX` of Linux).
const MAX_PATH_BYTES: usize = 4096;
/// Files for which a thread is worth its start.
const MIN_FILES_PER_THREAD: usize = 200;
/// How often it is asked whether to go on.
const CANCEL_POLL_INTERVAL: Duration = Duration::from_millis(20);
/// How often it is tried to delete a folder into which somebody may still write.
const MAX_REMOVE_ATTEMPTS: usize = 3;

/// Of the checkout's own repository. What a user may have in the global settings and what would run a program, convert
/// a file or write into the background is overruled.
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
const CHECKOUT_ATTRIBUTES: &str = "* -filter -text -ident !eol !crlf !working-tree-encoding !diff !merge\n";

/// A checkout that is deleted with this value.
#[derive(Debug)]
pub struct TemporaryCheckout {
    folder: PathBuf,
    /// Files that were written.
    pub files: usize,
    /// Files of the commit that were not.
    pub left_out: usize,
}

impl TemporaryCheckout {
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

/// A path of the commit.
struct CheckoutEntry {
    path: Vec<u8>,
    leaf: TreeLeaf,
    /// Not to be written.
    unwanted: bool,
}

impl Repo {
    /// Checks a commit out into `folder`, which is made, and emptied first when an earlier attempt left it. Files and
    /// folders whose name is in `unwanted` (ASCII case aside) stay away. `None` when `cancelled`, which is asked every
    /// 20 ms, says so.
    ///
    /// # Errors
    /// When the commit cannot be read or the folder not be written; nothing of the folder is left then.
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

    /// Deletes what is in `folder`, where throw-away checkouts are made, but for those whose name `is_alive`. How many
    /// were deleted.
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
                // Somebody else was at it.
                Err(_) if path.symlink_metadata().is_err() => {}
                Err(source) => return Err(io_error("delete", &path)(source)),
            }
        }
        Ok(swept)
    }

    /// All paths of a commit, by path; the folders are made on the way.
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
        // Not by recursion: how deep it goes is for whoever made the commit to say.
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

/// The repository in the folder, without files.
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
    // Where a shallow clone ends, so that nobody looks for what is before it.
    let shallow = fs::read(shallow).unwrap_or_default();
    if !shallow.is_empty() {
        files.push(("shallow", &shallow));
    }
    for (name, content) in files {
        let file = git.join(name);
        fs::write(&file, content).map_err(io_error("write", &file))?;
    }
    Ok(())
}

/// Makes a folder, and those above it, for us alone.
fn create_private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}

fn is_folder(entry: &git2::TreeEntry) -> bool {
    entry.kind() == Some(ObjectType::Tree) || u32::try_from(entry.filemode()) == Ok(MODE_GITLINK)
}

/// Makes a folder; false when the file system does not take it, or something is there that differs in case only.
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

/// Whether a name stays in its folder and is not git's own, on any file system: some ignore case, trailing dots, what
/// follows a colon, or characters that cannot be seen.
pub(super) fn is_safe_file_name(name: &[u8]) -> bool {
    let folded: String =
        String::from_utf8_lossy(name).chars().filter(|c| !text::is_unsafe(*c)).flat_map(char::to_lowercase).collect();
    let stem = folded.split(':').next().unwrap_or_default().trim_end_matches(['.', ' ']);
    let leads_away = matches!(name, b"" | b"." | b"..")
        || name.contains(&b'/')
        || (cfg!(windows) && name.iter().any(|byte| matches!(byte, b'\\' | b':')));
    !leads_away && !matches!(stem, ".git" | "git~1")
}

/// Writes the files, on several threads when there are many; the entries of the index, in the order of `places`, and
/// fewer than those when cancelled.
fn write_entries(
    folder: &Path,
    places: &[CheckoutEntry],
    cancelled: &dyn Fn() -> bool,
) -> Result<Vec<IndexEntry>, GitError> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(8);
    let share = places.len().div_ceil(threads).max(MIN_FILES_PER_THREAD);
    let failed = |source| GitError::from_git2("read the objects of a checkout", folder, source);
    let (stop, waiting) = (&AtomicBool::new(false), &std::thread::current());
    let write_share = |places: &[CheckoutEntry]| {
        let repo = Repository::open(folder).map_err(failed)?;
        let odb = repo.odb().map_err(failed)?;
        let places = places.iter().take_while(|_| !stop.load(Ordering::Relaxed));
        let entries = places.map(|place| write_entry(folder, &odb, place)).collect::<Result<Vec<_>, _>>();
        waiting.unpark();
        entries
    };
    std::thread::scope(|scope| {
        let shares: Vec<_> = places.chunks(share).map(|places| scope.spawn(move || write_share(places))).collect();
        while !shares.iter().all(ScopedJoinHandle::is_finished) {
            if cancelled() {
                stop.store(true, Ordering::Relaxed);
            }
            std::thread::park_timeout(CANCEL_POLL_INTERVAL);
        }
        let mut entries = Vec::with_capacity(places.len());
        for share in shares {
            let lost = || Err(failed(git2::Error::from_str("a thread is lost")));
            entries.append(&mut share.join().unwrap_or_else(|_| lost())?);
        }
        Ok(entries)
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
    // Without a look for new packs, which for each of many missing objects would take for ever.
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

/// Writes a file that is not there yet, and into the entry what git knows an unchanged file by.
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

/// Deletes a folder with all that is in it, also what was made so that it cannot be deleted; follows no link.
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

/// Lets us delete what is in the folders from here on down.
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
