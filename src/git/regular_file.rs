//! Reads files of a worktree that other programs may change at the same time. Symbolic links are not followed, and a
//! pipe does not block.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// Opens a regular file.
///
/// # Errors
/// Returns an error when the path is missing or leads to a folder, a pipe or a symbolic link.
pub fn open(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidData, "it is no file")),
    }
}

/// Reads a whole file like [`open`].
///
/// # Errors
/// Returns an error when the file cannot be opened or read.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    open(path)?.read_to_end(&mut content)?;
    Ok(content)
}
