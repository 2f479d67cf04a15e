//! Reads and replaces one settings file below its place. Links are followed only to files below the same place.

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use super::{AssistantError, InstallScope};

/// Maximum size of a settings file in bytes. The largest that assistants write have a few MB.
const MAX_SETTINGS_BYTES: u64 = 64 << 20;

/// A settings file as it was read.
#[derive(Debug)]
pub(super) struct AssistantFile {
    /// Path as the assistant knows it.
    pub(super) path: PathBuf,
    /// Path without links, which is read and replaced.
    real: PathBuf,
    /// Content; `None` without a file.
    pub(super) text: Option<String>,
    mode: u32,
}

impl AssistantFile {
    /// Reads a file that must be below `place`, also behind links.
    ///
    /// # Errors
    ///
    /// Returns an error if the path leads out of the place, or if the file cannot be read or is not UTF-8.
    pub(super) fn read(path: &Path, place: &Path, scope: InstallScope) -> Result<Self, AssistantError> {
        let real = resolve(path, place)?;
        let private = if scope == InstallScope::User { 0o600 } else { 0o644 };
        let metadata = match fs::metadata(&real) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Ok(Self { path: path.to_owned(), real, text: None, mode: private });
            }
            Err(error) => return Err(AssistantError::io("read", path)(error)),
        };
        let damaged = |why: &str| AssistantError::Damaged { path: path.to_owned(), why: why.to_owned() };
        if !metadata.is_file() {
            return Err(damaged("it is not a file"));
        }
        if metadata.len() > MAX_SETTINGS_BYTES {
            return Err(damaged("it is larger than 64 MB"));
        }
        let bytes = fs::read(&real).map_err(AssistantError::io("read", path))?;
        let text = String::from_utf8(bytes).map_err(|_| damaged("it is not UTF-8 text"))?;
        Ok(Self { path: path.to_owned(), real, text: Some(text), mode: mode_of(&metadata, private) })
    }

    /// Returns the folders that must be made before the file, the innermost first.
    pub(super) fn missing_folders(&self) -> Vec<PathBuf> {
        let folders = self.real.ancestors().skip(1);
        folders.take_while(|folder| fs::symlink_metadata(folder).is_err()).map(Path::to_owned).collect()
    }

    /// Replaces the file atomically, or removes it if `after` is `None`. Does nothing if the content stays the same.
    ///
    /// # Errors
    ///
    /// Returns an error if the file no longer has the content that was read, or if it cannot be written.
    pub(super) fn replace(&self, after: Option<&str>) -> Result<(), AssistantError> {
        if after == self.text.as_deref() {
            return Ok(());
        }
        let now = match fs::read(&self.real) {
            Ok(bytes) => Some(bytes),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(AssistantError::io("read", &self.path)(error)),
        };
        if now.as_deref() != self.text.as_deref().map(str::as_bytes) {
            return Err(AssistantError::Moved { path: self.path.clone() });
        }
        let Some(after) = after else {
            return fs::remove_file(&self.real).map_err(AssistantError::io("remove", &self.path));
        };
        let folder = self.real.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(folder).map_err(AssistantError::io("make the folder", folder))?;
        let failed = AssistantError::io("write", &self.path);
        let mut temporary = tempfile::Builder::new().prefix(".revdeck-").tempfile_in(folder).map_err(&failed)?;
        temporary.write_all(after.as_bytes()).map_err(&failed)?;
        set_mode(temporary.as_file(), self.mode).map_err(&failed)?;
        temporary.as_file().sync_all().map_err(&failed)?;
        temporary.persist(&self.real).map_err(|error| failed(error.error))?;
        Ok(())
    }
}

/// Removes folders that have become empty, the innermost first. Best effort: somebody may use them meanwhile.
pub(super) fn remove_empty_folders(folders: &[PathBuf]) {
    for folder in folders {
        let _ = fs::remove_dir(folder);
    }
}

/// Returns the path behind all links of `path`, whose last parts may not exist.
fn resolve(path: &Path, place: &Path) -> Result<PathBuf, AssistantError> {
    let place = place.canonicalize().map_err(AssistantError::io("read", place))?;
    let mut missing = Vec::new();
    let mut existing = path;
    let mut real = loop {
        match existing.canonicalize() {
            Ok(real) => break real,
            // A link to a file that does not exist is not followed: the assistant would not find its file either.
            Err(error) if error.kind() == ErrorKind::NotFound && fs::symlink_metadata(existing).is_err() => {
                let (Some(name), Some(parent)) = (existing.file_name(), existing.parent()) else {
                    return Err(AssistantError::io("read", path)(error));
                };
                missing.push(name);
                existing = parent;
            }
            Err(error) => return Err(AssistantError::io("follow", existing)(error)),
        }
    };
    if !real.starts_with(&place) {
        return Err(AssistantError::Outside { path: path.to_owned(), target: real, place });
    }
    real.extend(missing.into_iter().rev());
    Ok(real)
}

#[cfg(unix)]
fn mode_of(metadata: &fs::Metadata, _: u32) -> u32 {
    std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o7777
}

#[cfg(not(unix))]
fn mode_of(_: &fs::Metadata, private: u32) -> u32 {
    private
}

#[cfg(unix)]
fn set_mode(file: &fs::File, mode: u32) -> std::io::Result<()> {
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(mode))
}

#[cfg(not(unix))]
fn set_mode(_: &fs::File, _: u32) -> std::io::Result<()> {
    Ok(())
}
