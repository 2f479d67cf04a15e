//! Files as the store needs them: private folders, appends that seal torn lines, atomic sidecars.
//!
//! Invariants: an append is one write and, when it fails, leaves the file as long as it was; a sidecar is either the
//! old or the new one, never half of one; a read makes nothing.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::Path;

use super::StoreError;

/// Whether what was written must survive a power cut before the call returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SyncPolicy {
    Now,
    Later,
}

/// Makes a folder and those above it, for this user only.
pub(crate) fn make_folder(path: &Path) -> Result<(), StoreError> {
    if path.is_dir() {
        return Ok(());
    }
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).map_err(StoreError::io("make the folder", path))?;
    if let Some(parent) = path.parent() {
        sync_folder(parent);
    }
    Ok(())
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

/// Opens for appending; makes the file (durably) when it is not there.
pub(super) fn open_append(path: &Path) -> Result<File, StoreError> {
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

/// Opens a file that is only locked, never read; makes it when it is not there.
pub(crate) fn open_lock_file(path: &Path) -> Result<File, StoreError> {
    set_private_mode(OpenOptions::new().read(true).write(true).create(true).truncate(false))
        .open(path)
        .map_err(StoreError::io("open the lock file", path))
}

/// Nothing is there, be it that a folder above is a file: a write would say so.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// Opens for reading; `None` when it is not there.
pub(super) fn open_read(path: &Path) -> Result<Option<File>, StoreError> {
    match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(StoreError::io("read", path)(error)),
    }
}

/// The whole file; `None` when it is not there.
pub(crate) fn read(path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(StoreError::io("read", path)(error)),
    }
}

/// Removes a file; that there is none is fine.
pub(super) fn remove(path: &Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(StoreError::io("remove", path)(error)),
        _ => Ok(()),
    }
}

/// The length of a plain file, and 0 for anything that has none.
pub(super) fn length(file: &File) -> io::Result<u64> {
    Ok(file.metadata()?.len())
}

/// Whether the file ends in the middle of a line.
pub(super) fn is_torn(file: &File) -> io::Result<bool> {
    let len = length(file)?;
    if len == 0 {
        return Ok(false);
    }
    let mut last = [0];
    read_at(file, len - 1, &mut last)?;
    Ok(last[0] != b'\n')
}

/// Fills `buffer` from `offset` on. Moves the file's position; appends do not care.
pub(super) fn read_at(mut file: &File, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
    file.seek(SeekFrom::Start(offset))?;
    file.read_exact(buffer)
}

/// Appends whole lines (each ending in a line feed) as one write; seals a torn last line first. When the write fails,
/// the file is cut back to the length it had. The caller holds the lock that makes it the only writer.
pub(crate) fn append(path: &Path, lines: &[u8], sync: SyncPolicy) -> Result<(), StoreError> {
    let file = open_append(path)?;
    append_to(&file, path, lines, sync).map(|_| ())
}

/// As [`append`], to an open file. Returns whether a torn line was sealed.
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
        // Half a line, or a line whose caller is told that it was not stored: neither may stay. If even this fails,
        // the next append seals what is there.
        let _ = file.set_len(before);
        return Err(StoreError::io("append to", path)(error));
    }
    Ok(torn)
}

/// What an atomic write does about a file that is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExistingPolicy {
    Replace,
    Keep,
}

/// Writes a file beside `path`, syncs it, gives it its name and syncs the folder.
pub(crate) fn write_atomically(path: &Path, bytes: &[u8], existing: ExistingPolicy) -> Result<(), StoreError> {
    write_beside(path, existing, SyncPolicy::Now, |file| file.write_all(bytes))
}

/// As [`write_atomically`], with a writer; `Sync::Later` for derived files that may be lost.
pub(crate) fn write_beside(
    path: &Path,
    existing: ExistingPolicy,
    sync: SyncPolicy,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<(), StoreError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    make_folder(folder)?;
    let mut temporary = tempfile::Builder::new()
        .prefix(TEMPORARY_PREFIX)
        .tempfile_in(folder)
        .map_err(StoreError::io("make a temporary file in", folder))?;
    write(temporary.as_file_mut()).map_err(StoreError::io("write", path))?;
    if sync == SyncPolicy::Now {
        temporary.as_file().sync_all().map_err(StoreError::io("sync", path))?;
    }
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
        sync_folder(folder);
    }
    Ok(())
}

/// What names of temporary files begin with, so that `verify` knows those that a killed process left behind.
pub(crate) const TEMPORARY_PREFIX: &str = ".tmp-";

/// Device, inode and the time of birth, so that a file that was replaced can be told from one that grew: who replaces a file
/// twice gets the inode of the first again. Zeros where there are none.
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
