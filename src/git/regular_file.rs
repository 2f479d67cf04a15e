//! Reads files that other programs may change at the same time, and only regular files: opening a named pipe or
//! reading a device may take for ever.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// Opens a regular file; a symbolic link is not followed.
///
/// # Errors
/// Returns an error when the path is missing or leads to a folder, a pipe or a symbolic link.
pub fn open(path: &Path) -> io::Result<File> {
    open_with(path, OFlags::NOFOLLOW)
}

/// Opens a regular file, also through symbolic links.
///
/// # Errors
/// Returns an error when the path is missing or leads to a folder, a pipe or a device.
pub fn open_linked(path: &Path) -> io::Result<File> {
    open_with(path, OFlags::empty())
}

fn open_with(path: &Path, flags: OFlags) -> io::Result<File> {
    let flags = (flags | OFlags::NONBLOCK).bits() as i32;
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
    read_to_end(open(path)?)
}

/// Reads a whole file like [`open_linked`].
///
/// # Errors
/// Returns an error when the file cannot be opened or read.
pub fn read_linked(path: &Path) -> io::Result<Vec<u8>> {
    read_to_end(open_linked(path)?)
}

fn read_to_end(mut file: File) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    file.read_to_end(&mut content)?;
    Ok(content)
}
