//! File operations of the store: private folders, appends that seal torn lines, atomic sidecars.
//!
//! Invariants:
//! - An append is a single write; when it fails, the file keeps its length.
//! - A sidecar has either its old or its new content, never a part of it.
//! - A read creates nothing.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::StoreError;

/// Choice whether a write must survive a power failure before the call returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SyncPolicy {
    Now,
    Later,
}

/// Creates a folder and its parents with access for the current user only.
pub(crate) fn make_folder(path: &Path) -> Result<(), StoreError> {
    if create_missing_folder(path)?
        && let Some(parent) = path.parent()
    {
        sync_folder(parent);
    }
    Ok(())
}

/// Does the same as [`make_folder`], but a power failure may take the folder away. Returns true if it was missing.
pub(super) fn create_missing_folder(path: &Path) -> Result<bool, StoreError> {
    if path.is_dir() {
        return Ok(false);
    }
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).map_err(StoreError::io("make the folder", path))?;
    Ok(true)
}

/// Syncs all that was written to the file system of a folder: faster than to sync thousands of files one by one.
pub(super) fn sync_file_system(folder: &Path) {
    #[cfg(target_os = "linux")]
    if let Ok(folder) = File::open(folder) {
        let _ = rustix::fs::syncfs(folder);
    }
    #[cfg(all(unix, not(target_os = "linux")))]
    {
        let _ = folder;
        rustix::fs::sync();
    }
    #[cfg(not(unix))]
    let _ = folder;
}

/// Makes a new name in a folder durable. Best effort: some file systems cannot sync a folder.
pub(super) fn sync_folder(path: &Path) {
    #[cfg(unix)]
    if let Ok(folder) = File::open(path) {
        let _ = folder.sync_all();
    }
    #[cfg(not(unix))]
    let _ = path;
}

fn set_private_mode(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

/// Opens a file for appending; creates it durably when it is missing.
pub(crate) fn open_append(path: &Path) -> Result<File, StoreError> {
    let open = |create: bool| set_private_mode(OpenOptions::new().read(true).append(true).create(create)).open(path);
    match open(false) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            if let Some(parent) = path.parent() {
                make_folder(parent)?;
            }
            let file = open(true).map_err(StoreError::io("make", path))?;
            if let Some(parent) = path.parent() {
                sync_folder(parent);
            }
            Ok(file)
        }
        other => other.map_err(StoreError::io("open", path)),
    }
}

/// Opens a log of the program for appending; creates it when it is missing. Unlike a file of the store, it may be gone after a
/// power failure.
pub(crate) fn open_log(path: &Path) -> Result<File, StoreError> {
    create_missing_folder(folder_of(path))?;
    set_private_mode(OpenOptions::new().read(true).append(true).create(true))
        .open(path)
        .map_err(StoreError::io("open", path))
}

/// Opens a lock file, whose content lock holders alone use; creates it when it is missing.
pub(crate) fn open_lock_file(path: &Path) -> Result<File, StoreError> {
    set_private_mode(OpenOptions::new().read(true).write(true).create(true).truncate(false))
        .open(path)
        .map_err(StoreError::io("open the lock file", path))
}

/// Returns true when the path does not exist, also when a parent is a file; a write reports that case.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// Opens a file for reading; `None` when it is missing.
pub(super) fn open_read(path: &Path) -> Result<Option<File>, StoreError> {
    match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(StoreError::io("read", path)(error)),
    }
}

/// Reads a whole file; `None` when it is missing.
pub(crate) fn read(path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(StoreError::io("read", path)(error)),
    }
}

/// Removes a file; a missing file is not an error.
pub(super) fn remove(path: &Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(StoreError::io("remove", path)(error)),
        _ => Ok(()),
    }
}

/// Returns the length of a file in bytes; 0 for a file without a length.
pub(super) fn length(file: &File) -> io::Result<u64> {
    Ok(file.metadata()?.len())
}

/// Returns true when the file ends in the middle of a line.
pub(super) fn is_torn(file: &File) -> io::Result<bool> {
    let len = length(file)?;
    if len == 0 {
        return Ok(false);
    }
    let mut last = [0];
    read_at(file, len - 1, &mut last)?;
    Ok(last[0] != b'\n')
}

/// Returns the length of the file at a path in bytes; 0 without the file.
pub(super) fn length_at(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |data| data.len())
}

/// Fills `buffer` from `offset`. Outside Unix the call moves the file's position, which does not affect appends.
pub(super) fn read_at(file: &File, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
    #[cfg(unix)]
    return std::os::unix::fs::FileExt::read_exact_at(file, buffer, offset);
    #[cfg(not(unix))]
    {
        use std::io::{Read, Seek, SeekFrom};
        let mut file = file;
        file.seek(SeekFrom::Start(offset))?;
        file.read_exact(buffer)
    }
}

/// Appends whole lines, each ending in a line feed, as a single write; a torn last line is sealed first. When the write
/// fails, the file is truncated to its old length. The caller must hold the lock that makes it the only writer.
pub(crate) fn append(path: &Path, lines: &[u8], sync: SyncPolicy) -> Result<(), StoreError> {
    let file = open_append(path)?;
    append_to(&file, path, lines, sync).map(|_| ())
}

/// Does the same as [`append`] on an open file. Returns true when a torn line was sealed.
pub(super) fn append_to(mut file: &File, path: &Path, lines: &[u8], sync: SyncPolicy) -> Result<bool, StoreError> {
    let before = length(file).map_err(StoreError::io("read the length of", path))?;
    let torn = is_torn(file).map_err(StoreError::io("read", path))?;
    let written = if torn {
        let mut sealed = Vec::with_capacity(lines.len() + 1);
        sealed.push(b'\n');
        sealed.extend_from_slice(lines);
        file.write_all(&sealed)
    } else {
        file.write_all(lines)
    };
    let done = written.and_then(|()| if sync == SyncPolicy::Now { file.sync_data() } else { Ok(()) });
    if let Err(error) = done {
        // The file must not keep a partial line, or a line that the caller was told is not stored. If the truncation
        // fails too, the next append seals the remains.
        let _ = file.set_len(before);
        return Err(StoreError::io("append to", path)(error));
    }
    Ok(torn)
}

/// Choice for an atomic write when the file already exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExistingPolicy {
    Replace,
    Keep,
}

/// Writes a temporary file in the same folder, syncs it, renames it to `path`, and syncs the folder.
pub(crate) fn write_atomically(path: &Path, bytes: &[u8], existing: ExistingPolicy) -> Result<(), StoreError> {
    write_beside(path, existing, SyncPolicy::Now, |file| file.write_all(bytes))
}

/// Does the same as [`write_atomically`] with a writer function; `SyncPolicy::Later` is for derived files that may be
/// lost.
pub(crate) fn write_beside(
    path: &Path,
    existing: ExistingPolicy,
    sync: SyncPolicy,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<(), StoreError> {
    let temporary = write_temporary(path, tempfile::Builder::new().prefix(TEMPORARY_PREFIX), sync, write)?;
    let named = match existing {
        ExistingPolicy::Replace => temporary.persist(path),
        ExistingPolicy::Keep => temporary.persist_noclobber(path),
    };
    match named {
        Ok(_) => {}
        Err(error) if existing == ExistingPolicy::Keep && error.error.kind() == ErrorKind::AlreadyExists => {
            return Ok(());
        }
        Err(error) => return Err(StoreError::io("name", path)(error.error)),
    }
    if sync == SyncPolicy::Now {
        sync_folder(folder_of(path));
    }
    Ok(())
}

/// Writes a temporary file in the folder of `path`. The builder chooses its name.
fn write_temporary(
    path: &Path,
    builder: &tempfile::Builder<'_, '_>,
    sync: SyncPolicy,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<NamedTempFile, StoreError> {
    let folder = folder_of(path);
    make_folder(folder)?;
    let mut temporary = builder.tempfile_in(folder).map_err(StoreError::io("make a temporary file in", folder))?;
    write(temporary.as_file_mut()).map_err(StoreError::io("write", path))?;
    if sync == SyncPolicy::Now {
        temporary.as_file().sync_all().map_err(StoreError::io("sync", path))?;
    }
    Ok(temporary)
}

fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("."))
}

/// Content that is on the disk beside the file that it will replace.
pub(super) struct PreparedFile {
    temporary: NamedTempFile,
    path: PathBuf,
}

impl PreparedFile {
    /// Writes and syncs the content under a temporary name, which is the same each time: a process that is killed while it waits
    /// leaves one file at most, and the next one replaces that. The caller must hold a lock that makes it the only writer until
    /// the file is in place or dropped.
    pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<Self, StoreError> {
        let name = format!("{TEMPORARY_PREFIX}{}", path.file_name().unwrap_or_default().to_string_lossy());
        remove(&folder_of(path).join(&name))?;
        let mut builder = tempfile::Builder::new();
        let temporary =
            write_temporary(path, builder.prefix(&name).rand_bytes(0), SyncPolicy::Now, |file| file.write_all(bytes))?;
        Ok(Self { temporary, path: path.to_owned() })
    }

    /// Replaces the file. After a power failure, it has its old or its new content.
    pub(super) fn put_in_place(self) -> Result<(), StoreError> {
        let Self { temporary, path } = self;
        temporary.persist(&path).map_err(|error| StoreError::io("name", &path)(error.error))?;
        Ok(())
    }
}

/// Prefix of temporary files, by which `verify` recognizes leftovers of killed processes.
pub(crate) const TEMPORARY_PREFIX: &str = ".tmp-";

/// Returns device, inode and creation time, which distinguish a replaced file from a file that grew: a second
/// replacement can reuse the first inode. Returns zeros where the platform has no such data.
pub(super) fn file_identity(metadata: &fs::Metadata) -> [u64; 2] {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let born = metadata.created().ok().and_then(|born| born.duration_since(std::time::UNIX_EPOCH).ok());
        let born = born.map_or(0, |born| born.as_nanos() as u64);
        [metadata.dev() ^ born.rotate_left(32), metadata.ino()]
    }
    #[cfg(not(unix))]
    {
        let _ = metadata;
        [0, 0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prepared_file_replaces_the_old_one_when_it_is_put_in_place() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("team.json");
        let content = || fs::read_to_string(&path).expect("readable");
        fs::write(&path, "old").expect("written");
        let prepared = PreparedFile::write(&path, b"new").expect("written");
        assert_eq!(content(), "old");
        prepared.put_in_place().expect("renamed");
        assert_eq!(content(), "new");
        drop(PreparedFile::write(&path, b"never").expect("written"));
        assert_eq!(content(), "new");
        // A process was killed before it put its file in place.
        fs::write(folder.path().join(".tmp-team.json"), "half").expect("written");
        PreparedFile::write(&path, b"newest").expect("written").put_in_place().expect("renamed");
        assert_eq!(content(), "newest");
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1, "no temporary file stays");
    }
}
