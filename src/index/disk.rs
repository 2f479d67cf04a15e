//! Opens and removes cache files robustly: tells a non-file at the path (folder, pipe, dangling link) from an
//! unreadable file, never blocks on it, and can remove it.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Opens a regular file without blocking.
///
/// # Errors
/// Fails with [`io::ErrorKind::InvalidData`] if something else is at the path (a folder, a pipe, a dangling link), and
/// with the error of the system otherwise.
pub fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let wrong = || io::Error::new(io::ErrorKind::InvalidData, "it is no file");
    let is_other = || fs::symlink_metadata(path).is_ok_and(|data| !data.is_file());
    match options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32).open(path) {
        Ok(file) if file.metadata()?.is_file() => Ok(file),
        Ok(_) => Err(wrong()),
        Err(_) if is_other() => Err(wrong()),
        Err(error) => Err(error),
    }
}

/// Removes whatever is at the path; succeeds if there is nothing.
///
/// # Errors
/// Fails if the path exists and cannot be removed.
pub fn remove(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(data) if data.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    removed.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

/// Replaces the path by each kind of non-file and calls `check`.
#[cfg(test)]
pub fn with_others_in_place(path: &Path, mut check: impl FnMut(&str)) {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    for sort in ["a folder", "a link to itself", "a pipe"] {
        remove(path).expect("a free place");
        match sort {
            "a folder" => fs::create_dir_all(path.join("more")).expect("a folder"),
            "a pipe" => mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe"),
            _ => std::os::unix::fs::symlink(path, path).expect("a link"),
        }
        check(sort);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_file_is_told_and_taken_away() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a");
        with_others_in_place(&path, |sort| {
            for options in [File::options().read(true), File::options().append(true).create(true)] {
                assert_eq!(open(&path, options).expect_err(sort).kind(), io::ErrorKind::InvalidData, "{sort}");
            }
        });
        remove(&path).expect("removed");
        remove(&path).expect("nothing to remove");
        assert_eq!(open(&path, File::options().read(true)).expect_err("nothing").kind(), io::ErrorKind::NotFound);
        assert!(open(&path, File::options().append(true).create(true)).is_ok());
    }
}
