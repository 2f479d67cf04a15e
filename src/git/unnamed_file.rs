//! Replaces a file of the worktree without a temporary name in the worktree: a process that is killed on the way leaves
//! nothing there.
//!
//! The content is written to a file without a name (`O_TMPFILE`) in the folder of the target, so that it gets the
//! folder's group and rules. Linux cannot give an unnamed file a name that is taken, so an existing target is replaced
//! by way of a name in the git dir, which is swept at the next start.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

/// Prefix of the temporary names in the git dir.
const SPARE_PREFIX: &str = "revdeck-";
/// Suffix of these names. Watchers of git dirs, revdeck's own among them, pass over lock files.
const SPARE_SUFFIX: &str = ".lock";

/// Mode of a file to write.
#[derive(Clone, Copy)]
pub enum FileMode {
    /// The umask applies.
    New(u32),
    Exactly(u32),
}

/// Outcome of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnnamedWrite {
    Done,
    /// The file system has no unnamed files, or the git dir is on another one. Nothing was changed.
    Unsupported,
}

/// Writes `name` in `folder`. `spare` is the git dir; `mark` makes the name there.
///
/// # Errors
/// Returns an error when the content cannot be written; the target is unchanged then.
pub fn write(
    folder: BorrowedFd<'_>,
    name: &str,
    content: &[u8],
    mode: FileMode,
    (spare, mark): (&Path, &str),
) -> io::Result<UnnamedWrite> {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let raw = match mode {
        FileMode::New(mode) => mode,
        FileMode::Exactly(_) => 0o600,
    };
    let Ok(unnamed) = rustix::fs::openat(folder, ".", flags, Mode::from_raw_mode(raw)) else {
        return Ok(UnnamedWrite::Unsupported);
    };
    let mut file = File::from(unnamed);
    file.write_all(content)?;
    if let FileMode::Exactly(mode) = mode {
        rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))?;
    }
    file.sync_all()?;
    let source = format!("/proc/self/fd/{}", file.as_raw_fd());
    match rustix::fs::linkat(CWD, source.as_str(), folder, name, AtFlags::SYMLINK_FOLLOW) {
        Ok(()) => return Ok(UnnamedWrite::Done),
        Err(Errno::EXIST) => {}
        Err(_) => return Ok(UnnamedWrite::Unsupported),
    }
    let beside = spare.join(format!("{SPARE_PREFIX}{mark}{SPARE_SUFFIX}"));
    let _ = rustix::fs::unlink(&beside);
    if rustix::fs::linkat(CWD, source.as_str(), CWD, &beside, AtFlags::SYMLINK_FOLLOW).is_err() {
        return Ok(UnnamedWrite::Unsupported);
    }
    match rustix::fs::renameat(CWD, &beside, folder, name) {
        Ok(()) => Ok(UnnamedWrite::Done),
        Err(error) => {
            let _ = rustix::fs::unlink(&beside);
            if error == Errno::XDEV { Ok(UnnamedWrite::Unsupported) } else { Err(error.into()) }
        }
    }
}

/// Removes the name in a git dir that a killed process left. Returns true when there was one.
pub fn remove_spare(spare: &Path, mark: &str) -> bool {
    rustix::fs::unlink(spare.join(format!("{SPARE_PREFIX}{mark}{SPARE_SUFFIX}"))).is_ok()
}
