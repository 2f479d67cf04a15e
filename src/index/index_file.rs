//! A sealed file of the index, with the index's version and its way to deal with damage.

use std::fs;
use std::path::{Path, PathBuf};

use bytemuck::{AnyBitPattern, NoUninit};

use super::IndexError;
use super::sealed_file::{self, SealedFile, SealedFileError};
use crate::reviewers::analyzer::FINGERPRINT_VERSION;

/// Format version. Increase the upper number with every change of the file contents, of the cutting into chunks, or of
/// the splitting into words.
const VERSION: u64 = 8 << 32 | FINGERPRINT_VERSION as u64;

/// Name that a damaged file gets, so that the next refresh detects and reports the damage.
pub const DAMAGED_FILE_NAME: &str = "damaged";

/// Open file of the index.
#[derive(Debug)]
pub struct IndexFile {
    path: PathBuf,
    sealed: SealedFile,
}

impl IndexFile {
    /// Opens a file and verifies its header; returns `None` if the file does not exist.
    ///
    /// # Errors
    /// Fails with [`IndexError::Damaged`] if the file is incomplete or unreadable, and with [`IndexError::Outdated`] if
    /// it has another version.
    pub fn open(path: &Path) -> Result<Option<Self>, IndexError> {
        match SealedFile::open(path, VERSION) {
            Ok(sealed) => Ok(sealed.map(|sealed| Self { path: path.to_owned(), sealed })),
            Err(error) => Err(to_index_error(path, error)),
        }
    }

    /// Reads a complete section and verifies its checksum.
    ///
    /// # Errors
    /// Fails with [`IndexError::Damaged`] if the section is damaged. The file is then renamed to [`DAMAGED_FILE_NAME`],
    /// so that it is missing the next time.
    pub fn read_section<T: AnyBitPattern + NoUninit>(&self, number: usize) -> Result<Vec<T>, IndexError> {
        self.sealed.read_section(number).map_err(|error| {
            let _ = fs::rename(&self.path, self.path.with_file_name(DAMAGED_FILE_NAME))
                .or_else(|_| fs::remove_file(&self.path));
            match error {
                SealedFileError::Io(_) => self.damaged_error("it cannot be read"),
                error => to_index_error(&self.path, error),
            }
        })
    }

    /// Builds the error for a damaged file.
    pub fn damaged_error(&self, what: &'static str) -> IndexError {
        IndexError::Damaged { path: self.path.clone(), what }
    }

    /// Returns the size of the file in bytes.
    pub fn length(&self) -> u64 {
        self.sealed.length()
    }
}

/// Writes a file of the index atomically and returns its name. `name` receives the hash of the content in hexadecimal.
///
/// # Errors
/// Fails if the folder cannot be written.
pub fn publish(folder: &Path, sections: &[&[u8]], name: impl FnOnce(&str) -> String) -> Result<String, IndexError> {
    sealed_file::publish(folder, VERSION, sections, name).map_err(IndexError::io("write a part of", folder))
}

fn to_index_error(path: &Path, error: SealedFileError) -> IndexError {
    let path = path.to_owned();
    match error {
        SealedFileError::Damaged(what) => IndexError::Damaged { path, what },
        SealedFileError::Outdated => IndexError::Outdated { path },
        SealedFileError::Io(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            IndexError::Damaged { path, what: "a part of it may not be read" }
        }
        SealedFileError::Io(source) => IndexError::Io { action: "read", path, source },
    }
}
