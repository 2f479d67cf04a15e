//! Reads and writes the user's worktree. It is the only module that writes there, and only after a key press or a
//! command.
//!
//! Invariants:
//! - No path leads out of the worktree or into a git dir, and no symbolic link is followed in any part of a path.
//! - A file is replaced as a whole (new file, sync, rename) and keeps its permissions. On Linux, the new file has no name
//!   in the worktree before; elsewhere [`Worktree::remove_leftover`] removes the temporary file of a killed process.
//! - Only regular files are changed.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::{GitError, Repo};
use crate::domain::is_safe_file_name;

/// Size limit in bytes for reading a file; no fix applies to a larger file.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;
/// Mode of new files before the umask applies, as in git.
const NEW_FILE_MODE: u32 = 0o666;
/// Mode of new executable files before the umask applies.
const NEW_EXECUTABLE_MODE: u32 = 0o777;

fn new_file_mode(is_executable: bool) -> u32 {
    if is_executable { NEW_EXECUTABLE_MODE } else { NEW_FILE_MODE }
}

/// Content and mode of a file in the worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorktreeFile {
    pub content: Vec<u8>,
    /// Permission bits from `stat`.
    pub mode: u32,
}

/// Permissions of a file to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilePermissions {
    Exactly(u32),
    New { executable: bool },
}

/// Access to the files of a working tree.
#[derive(Debug)]
pub struct Worktree {
    root: PathBuf,
    /// Git dir, where new files may have a name for a moment; `None` for a folder without one.
    git_dir: Option<PathBuf>,
}

impl Repo {
    /// Returns access to the files of this working tree.
    ///
    /// # Errors
    /// Returns an error for a bare repository.
    pub fn worktree_files(&self) -> Result<Worktree, GitError> {
        Ok(Worktree { root: self.worktree_root()?, git_dir: Some(self.git_dir()) })
    }
}

impl Worktree {
    /// Gives access to one of revdeck's own folders, with the same checks.
    pub(super) fn from_folder(root: &Path) -> Self {
        Self { root: root.to_owned(), git_dir: None }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Reads a file's content and mode; `None` when the path does not exist.
    ///
    /// # Errors
    /// Returns an error when the path is not allowed, is not a regular file, or cannot be read.
    pub fn read(&self, path: &str) -> Result<Option<WorktreeFile>, GitError> {
        let Some(folder) = self.open_parent(path, &mut |_| Ok(false))? else { return Ok(None) };
        folder.read(self, path)
    }

    /// Returns the size in bytes of a file that was neither written nor replaced nor given other permissions after
    /// `since`; `None` when it was, or is no regular file. `inode` is that of the file at that time, if it is known: the times of a
    /// file that is moved in with its folder say nothing about that.
    pub fn untouched_size(&self, path: &str, since: SystemTime, inode: Option<u64>) -> Option<u64> {
        let file = self.root.join(path);
        let seen = file.symlink_metadata().ok().filter(fs::Metadata::is_file)?;
        if inode.is_some_and(|inode| inode != seen.ino()) {
            return None;
        }
        #[cfg(unix)]
        let touched = {
            // Unlike the time of the last writing, no program can set this one back.
            let seconds = std::time::Duration::from_secs(u64::try_from(seen.ctime()).ok()?);
            let part = std::time::Duration::from_nanos(u64::try_from(seen.ctime_nsec()).ok()?);
            SystemTime::UNIX_EPOCH.checked_add(seconds)?.checked_add(part)?
        };
        #[cfg(not(unix))]
        let touched = seen.modified().ok()?;
        (touched <= since).then_some(seen.len())
    }

    /// Returns true when the file's content equals `blob` and the file was not modified after `since`.
    pub fn has_blob(&self, path: &str, blob: &str, since: SystemTime) -> bool {
        let modified = self.root.join(path).symlink_metadata().and_then(|data| data.modified());
        let is_older = modified.is_ok_and(|modified| modified <= since);
        let content = || self.read(path).ok().flatten().map(|present| present.content);
        let id = || git2::Oid::hash_object(git2::ObjectType::Blob, &content()?).ok();
        is_older && id().is_some_and(|id| id.to_string() == blob)
    }

    /// Writes a file and creates missing parent folders. The temporary file is named after `mark`; a leftover temporary
    /// file with the same mark is replaced.
    ///
    /// # Errors
    /// Returns an error when the path is not allowed or the file cannot be written.
    pub fn write(&self, path: &str, content: &[u8], permit: FilePermissions, mark: &str) -> Result<(), GitError> {
        let Some(folder) = self.open_parent(path, &mut |_| Ok(true))? else {
            return Err(self.refusal(path, "its folder cannot be made"));
        };
        folder.write(self, path, content, permit, mark)
    }

    /// Removes the temporary file that a process left when it was killed while it wrote `path` with this mark. Returns
    /// true when there was one.
    ///
    /// # Errors
    /// Returns an error when the path is not allowed or its folder cannot be opened.
    pub fn remove_leftover(&self, path: &str, mark: &str) -> Result<bool, GitError> {
        let in_folder = match self.open_parent(path, &mut |_| Ok(false))? {
            Some(folder) => folder.remove_temporary(mark),
            None => false,
        };
        #[cfg(target_os = "linux")]
        let in_git_dir = self.git_dir.as_ref().is_some_and(|git_dir| super::unnamed_file::remove_spare(git_dir, mark));
        #[cfg(not(target_os = "linux"))]
        let in_git_dir = false;
        Ok(in_folder || in_git_dir)
    }

    /// Deletes a file; a missing file is not an error. `folders` are parent folders, outermost first, that are deleted
    /// as well when they are empty.
    ///
    /// # Errors
    /// Returns an error when the path is not allowed or the file cannot be deleted.
    pub fn remove(&self, path: &str, folders: &[String]) -> Result<(), GitError> {
        if let Some(folder) = self.open_parent(path, &mut |_| Ok(false))? {
            folder.remove(self, path)?;
        }
        for above in folders.iter().rev() {
            // A failure means that the folder is not empty or already deleted.
            if self.open_parent(&format!("{above}/x"), &mut |_| Ok(false))?.is_some() {
                let _ = fs::remove_dir(self.root.join(above));
            }
        }
        Ok(())
    }

    /// Lists the missing parent folders of a path, outermost first.
    ///
    /// # Errors
    /// Returns an error when the path is not allowed or a folder cannot be opened.
    pub fn missing_folders(&self, path: &str) -> Result<Vec<String>, GitError> {
        let mut missing = Vec::new();
        self.open_parent(path, &mut |folder| {
            missing.push(folder.to_owned());
            Ok(false)
        })?;
        if let Some(first) = missing.pop() {
            let mut folder = first;
            let parts: Vec<&str> = path.split('/').collect();
            let above = parts.get(..parts.len().saturating_sub(1)).unwrap_or_default();
            let mut at = folder.split('/').count();
            missing.push(folder.clone());
            while let Some(part) = above.get(at) {
                folder = format!("{folder}/{part}");
                missing.push(folder.clone());
                at += 1;
            }
        }
        Ok(missing)
    }

    /// Opens the parent folder of a path, part by part. For a missing folder, `make` decides whether to create it;
    /// returns `None` if not.
    fn open_parent(
        &self,
        path: &str,
        make: &mut dyn FnMut(&str) -> Result<bool, GitError>,
    ) -> Result<Option<Folder>, GitError> {
        let parts: Vec<&str> = path.split('/').collect();
        if parts.iter().any(|part| !is_safe_file_name(part.as_bytes())) {
            return Err(self.refusal(path, "it is no path of the repository's files"));
        }
        let (_, above) = parts.split_last().unwrap_or((&"", &[]));
        let mut folder = Folder::open(&self.root).map_err(|source| self.io_error("open", "", source))?;
        let mut walked = String::new();
        for part in above {
            if !walked.is_empty() {
                walked.push('/');
            }
            walked.push_str(part);
            let below = match folder.enter(part) {
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    if !make(&walked)? {
                        return Ok(None);
                    }
                    folder.make(part).and_then(|()| folder.enter(part))
                }
                other => other,
            };
            folder = below.map_err(|source| match is_other_kind(&source) {
                true => self.refusal(path, &format!("{walked} is not a folder")),
                false => self.io_error("open", &walked, source),
            })?;
            if folder.holds_git() {
                return Err(self.refusal(path, &format!("{walked} is a repository of its own")));
            }
        }
        Ok(Some(folder))
    }

    fn refusal(&self, path: &str, why: &str) -> GitError {
        GitError::NotTouched { path: self.root.join(path), why: why.to_owned() }
    }

    fn io_error(&self, action: &'static str, path: &str, source: io::Error) -> GitError {
        GitError::Io { action, path: self.root.join(path), source }
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Returns true when the path leads to another kind of entry than the expected folder or file.
fn is_other_kind(error: &io::Error) -> bool {
    #[cfg(unix)]
    let is_link = error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error());
    #[cfg(not(unix))]
    let is_link = false;
    is_link || error.kind() == ErrorKind::NotADirectory
}

/// An open folder. All operations apply to this folder, even when its path changes meanwhile.
#[cfg(unix)]
struct Folder(std::os::fd::OwnedFd);

#[cfg(unix)]
impl Folder {
    fn open(path: &Path) -> io::Result<Self> {
        use rustix::fs::{Mode, OFlags};
        Ok(Self(rustix::fs::open(path, OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?))
    }

    fn enter(&self, name: &str) -> io::Result<Self> {
        use rustix::fs::{Mode, OFlags};
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        Ok(Self(rustix::fs::openat(&self.0, name, flags, Mode::empty())?))
    }

    fn make(&self, name: &str) -> io::Result<()> {
        match rustix::fs::mkdirat(&self.0, name, rustix::fs::Mode::from_raw_mode(0o777)) {
            Err(error) if error != rustix::io::Errno::EXIST => Err(error.into()),
            _ => Ok(()),
        }
    }

    fn holds_git(&self) -> bool {
        rustix::fs::statat(&self.0, ".git", rustix::fs::AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    fn read(&self, files: &Worktree, path: &str) -> Result<Option<WorktreeFile>, GitError> {
        use rustix::fs::{AtFlags, FileType, Mode, OFlags};
        let name = file_name(path);
        let seen = match rustix::fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            other => other.map_err(|error| files.io_error("read", path, error.into()))?,
        };
        // The check comes before the open, because opening a pipe blocks until another process writes to it.
        match FileType::from_raw_mode(seen.st_mode) {
            FileType::RegularFile => {}
            FileType::Symlink => return Err(files.refusal(path, "it is a symbolic link")),
            _ => return Err(files.refusal(path, "it is not an ordinary file")),
        }
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = rustix::fs::openat(&self.0, name, flags, Mode::empty());
        let mut file = File::from(file.map_err(|error| files.io_error("open", path, error.into()))?);
        let seen = file.metadata().map_err(|source| files.io_error("read", path, source))?;
        if !seen.is_file() || seen.len() > MAX_FILE_BYTES {
            return Err(files.refusal(path, "it is not an ordinary file, or far too large"));
        }
        let mut content = Vec::new();
        file.read_to_end(&mut content).map_err(|source| files.io_error("read", path, source))?;
        let mode = seen.mode() & 0o7777;
        Ok(Some(WorktreeFile { content, mode }))
    }

    fn write(
        &self,
        files: &Worktree,
        path: &str,
        content: &[u8],
        permit: FilePermissions,
        mark: &str,
    ) -> Result<(), GitError> {
        use rustix::fs::{AtFlags, Mode, OFlags};
        let beside = format!(".{mark}.tmp");
        let failed = |source: io::Error| files.io_error("write", path, source);
        self.remove_temporary(mark);
        #[cfg(target_os = "linux")]
        if self.write_unnamed(files, path, content, permit, mark).map_err(failed)? {
            let _ = rustix::fs::fsync(&self.0);
            return Ok(());
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let mode = match permit {
            FilePermissions::New { executable } => new_file_mode(executable),
            FilePermissions::Exactly(_) => 0o600,
        };
        let new = rustix::fs::openat(&self.0, beside.as_str(), flags, Mode::from_raw_mode(mode));
        let mut file = File::from(new.map_err(|error| failed(error.into()))?);
        let written = file.write_all(content).and_then(|()| {
            if let FilePermissions::Exactly(mode) = permit {
                rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))?;
            }
            file.sync_all()?;
            Ok(rustix::fs::renameat(&self.0, beside.as_str(), &self.0, file_name(path))?)
        });
        if written.is_err() {
            let _ = rustix::fs::unlinkat(&self.0, beside.as_str(), AtFlags::empty());
        }
        written.map_err(failed)?;
        // Best effort: some file systems cannot sync a folder.
        let _ = rustix::fs::fsync(&self.0);
        Ok(())
    }

    /// Writes a file that has no temporary name in the worktree. Returns false when the system cannot do that.
    #[cfg(target_os = "linux")]
    fn write_unnamed(
        &self,
        files: &Worktree,
        path: &str,
        content: &[u8],
        permit: FilePermissions,
        mark: &str,
    ) -> io::Result<bool> {
        use super::unnamed_file::{self, FileMode, UnnamedWrite};
        let Some(git_dir) = &files.git_dir else { return Ok(false) };
        let mode = match permit {
            FilePermissions::New { executable } => FileMode::New(new_file_mode(executable)),
            FilePermissions::Exactly(mode) => FileMode::Exactly(mode),
        };
        let folder = std::os::fd::AsFd::as_fd(&self.0);
        let written = unnamed_file::write(folder, file_name(path), content, mode, (git_dir, mark))?;
        Ok(written == UnnamedWrite::Done)
    }

    /// Removes a temporary file; returns true when there was one.
    fn remove_temporary(&self, mark: &str) -> bool {
        rustix::fs::unlinkat(&self.0, format!(".{mark}.tmp"), rustix::fs::AtFlags::empty()).is_ok()
    }

    fn remove(&self, files: &Worktree, path: &str) -> Result<(), GitError> {
        match rustix::fs::unlinkat(&self.0, file_name(path), rustix::fs::AtFlags::empty()) {
            Err(error) if error != rustix::io::Errno::NOENT => Err(files.io_error("delete", path, error.into())),
            _ => Ok(()),
        }
    }
}

/// A folder by its path; each part is checked, but the folder is not kept open.
#[cfg(not(unix))]
struct Folder(PathBuf);

#[cfg(not(unix))]
impl Folder {
    fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(path.to_owned()))
    }

    fn enter(&self, name: &str) -> io::Result<Self> {
        let path = self.0.join(name);
        match path.symlink_metadata()?.is_dir() {
            true => Ok(Self(path)),
            false => Err(ErrorKind::NotADirectory.into()),
        }
    }

    fn make(&self, name: &str) -> io::Result<()> {
        fs::create_dir(self.0.join(name))
    }

    fn holds_git(&self) -> bool {
        self.0.join(".git").symlink_metadata().is_ok()
    }

    fn read(&self, files: &Worktree, path: &str) -> Result<Option<WorktreeFile>, GitError> {
        let file = self.0.join(file_name(path));
        let seen = match file.symlink_metadata() {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            other => other.map_err(|source| files.io("read", path, source))?,
        };
        if !seen.is_file() || seen.len() > MAX_FILE_BYTES {
            return Err(files.refused(path, "it is not an ordinary file, or far too large"));
        }
        let mut content = Vec::new();
        let read = File::open(&file).and_then(|mut file| file.read_to_end(&mut content));
        read.map_err(|source| files.io("read", path, source))?;
        Ok(Some(WorktreeFile { content, mode: 0 }))
    }

    fn write(
        &self,
        files: &Worktree,
        path: &str,
        content: &[u8],
        _: FilePermissions,
        mark: &str,
    ) -> Result<(), GitError> {
        let beside = self.0.join(format!(".{mark}.tmp"));
        let written = File::create(&beside).and_then(|mut file| {
            file.write_all(content)?;
            file.sync_all()?;
            fs::rename(&beside, self.0.join(file_name(path)))
        });
        if written.is_err() {
            let _ = fs::remove_file(&beside);
        }
        written.map_err(|source| files.io("write", path, source))
    }

    fn remove_temporary(&self, mark: &str) -> bool {
        fs::remove_file(self.0.join(format!(".{mark}.tmp"))).is_ok()
    }

    fn remove(&self, files: &Worktree, path: &str) -> Result<(), GitError> {
        match fs::remove_file(self.0.join(file_name(path))) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(files.io("delete", path, error)),
            _ => Ok(()),
        }
    }
}

/// Returns the inode of a file, without following a link; `None` where there is none.
pub(super) fn read_inode(path: &Path) -> Option<u64> {
    path.symlink_metadata().ok().map(|seen| seen.ino())
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn sample_worktree() -> (tempfile::TempDir, Worktree) {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().join("tree");
        fs::create_dir(&root).expect("a folder");
        (folder, Worktree { root, git_dir: None })
    }

    #[test]
    fn a_file_is_untouched_until_it_is_written_even_with_its_old_time() {
        let (_folder, files) = sample_worktree();
        let path = files.root().join("a.txt");
        fs::write(&path, "old").expect("a file");
        symlink("a.txt", files.root().join("link")).expect("a link");
        let hour = std::time::Duration::from_secs(3_600);
        let now = SystemTime::now();
        for (name, since, expected) in [
            ("a.txt", now + hour, Some(3)),
            ("a.txt", now - hour, None),
            ("link", now + hour, None),
            ("none", now + hour, None),
        ] {
            assert_eq!(files.untouched_size(name, since, None), expected, "{name}");
        }
        let file = File::options().write(true).open(&path).expect("opened");
        file.set_modified(now - 2 * hour).expect("set back");
        assert_eq!(files.untouched_size("a.txt", now - hour, None), None);
    }

    #[test]
    fn a_file_that_is_moved_in_with_its_folder_is_another_one() {
        let (folder, files) = sample_worktree();
        let (inside, outside) = (files.root().join("data"), folder.path().join("other"));
        for (folder, text) in [(&inside, "old"), (&outside, "new")] {
            fs::create_dir(folder).expect("a folder");
            fs::write(folder.join("a.csv"), text).expect("a file");
        }
        // No time of a file is later than the review.
        let since = SystemTime::now() + std::time::Duration::from_secs(3_600);
        let inode = read_inode(&inside.join("a.csv"));
        assert!(inode.is_some());
        assert_eq!(files.untouched_size("data/a.csv", since, inode), Some(3));
        let away = folder.path().join("away");
        fs::rename(&inside, &away).expect("moved away");
        assert_eq!(files.untouched_size("data/a.csv", since, inode), None);
        fs::rename(&outside, &inside).expect("moved in");
        assert_eq!(files.untouched_size("data/a.csv", since, inode), None, "it has its old times");
        // The same folder again is the same content again.
        fs::rename(&inside, &outside).expect("moved away");
        fs::rename(&away, &inside).expect("moved back");
        assert_eq!(files.untouched_size("data/a.csv", since, inode), Some(3));
    }

    #[test]
    fn a_file_is_replaced_with_its_permissions_and_folders_come_and_go() {
        let (_folder, files) = sample_worktree();
        let run = files.root().join("run.sh");
        fs::write(&run, "old").expect("a file");
        fs::set_permissions(&run, fs::Permissions::from_mode(0o751)).expect("a mode");
        let before = files.read("run.sh").expect("read").expect("there");
        assert_eq!((before.content.as_slice(), before.mode), (b"old".as_slice(), 0o751));
        // A leftover of an earlier attempt is replaced.
        fs::write(files.root().join(".m.tmp"), "half").expect("a file");
        files.write("run.sh", b"new", FilePermissions::Exactly(before.mode), "m").expect("written");
        let after = files.read("run.sh").expect("read").expect("there");
        assert_eq!((after.content.as_slice(), after.mode), (b"new".as_slice(), 0o751));
        assert_eq!(files.read("a/b/c.txt").expect("read"), None);
        let missing = files.missing_folders("a/b/c.txt").expect("asked");
        assert_eq!(missing, ["a", "a/b"]);
        files.write("a/b/c.txt", b"x", FilePermissions::New { executable: true }, "m").expect("written");
        assert_eq!(files.missing_folders("a/b/c.txt").expect("asked"), [""; 0]);
        assert!(files.read("a/b/c.txt").expect("read").is_some_and(|file| file.mode & 0o100 != 0));
        files.remove("a/b/c.txt", &missing).expect("removed");
        assert!(!files.root().join("a").exists());
        let left: Vec<_> =
            fs::read_dir(files.root()).expect("a folder").map(|entry| entry.expect("one").path()).collect();
        assert_eq!(left, [run]);
    }

    #[test]
    fn nothing_leads_out_of_the_worktree() {
        let (folder, files) = sample_worktree();
        let outside = folder.path().join("outside");
        fs::create_dir(&outside).expect("a folder");
        fs::write(outside.join("file"), "mine").expect("a file");
        symlink(&outside, files.root().join("door")).expect("a link");
        symlink(outside.join("file"), files.root().join("link")).expect("a link");
        fs::create_dir_all(files.root().join("sub/.git")).expect("a repository");
        for path in [
            "../outside/file",
            "door/file",
            "door/new",
            "link",
            "/etc/passwd",
            "a/../../outside/file",
            "",
            "a//b",
            ".git/config",
            "sub/file",
            "sub/.GIT/config",
        ] {
            let read = files.read(path);
            assert!(matches!(read, Err(GitError::NotTouched { .. })), "{path}: {read:?}");
            if path == "link" {
                continue;
            }
            let written = files.write(path, b"theirs", FilePermissions::New { executable: false }, "m");
            assert!(matches!(written, Err(GitError::NotTouched { .. })), "{path}: {written:?}");
        }
        // A rename over a link replaces the link, not its target.
        files.write("link", b"theirs", FilePermissions::New { executable: false }, "m").expect("written");
        assert_eq!(fs::read(outside.join("file")).expect("a file"), b"mine");
        assert_eq!(fs::read_dir(&outside).expect("a folder").count(), 1);
    }
}
