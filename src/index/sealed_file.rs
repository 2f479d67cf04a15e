//! Reads and writes immutable files of checksummed sections. A section is read on first use.
//!
//! - A file appears complete under its name or not at all.
//! - Reading returns the written bytes or an error.
//! - Numbers have the byte order of the machine. A file from a machine with another byte order is rejected.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use bytemuck::{AnyBitPattern, NoUninit, Pod, Zeroable};

use super::IndexError;
use crate::index::disk;
use crate::reviewers::analyzer::FINGERPRINT_VERSION;

/// Format version. Increase the upper number with every change of the file contents, of the cutting into chunks, or of
/// the splitting into words.
const VERSION: u64 = 7 << 32 | FINGERPRINT_VERSION as u64;
const MAGIC_NUMBER: u64 = u64::from_ne_bytes(*b"revdeck\x01");
/// Size of a checksum in bytes: half of a BLAKE3 hash.
const CHECKSUM_BYTES: usize = 16;

#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct SealedHeader {
    magic: u64,
    version: u64,
    sections: u64,
}

#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct SectionEntry {
    start: u64,
    length: u64,
    sum: [u8; CHECKSUM_BYTES],
}

/// Upper bound for the section count; a larger count shows that the file is damaged or foreign.
const MAX_SECTIONS: u64 = 16;

fn checksum(bytes: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let mut sum = [0; CHECKSUM_BYTES];
    sum.copy_from_slice(&blake3::hash(bytes).as_bytes()[..CHECKSUM_BYTES]);
    sum
}

/// Encodes sections as a file. Returns the bytes and the header's checksum in hexadecimal; this checksum identifies the
/// content.
pub fn seal(sections: &[&[u8]]) -> (Vec<u8>, String) {
    let head = SealedHeader { magic: MAGIC_NUMBER, version: VERSION, sections: sections.len() as u64 };
    let mut start = (size_of::<SealedHeader>()
        + size_of_val(sections) / size_of::<&[u8]>() * size_of::<SectionEntry>()
        + CHECKSUM_BYTES) as u64;
    let mut table = Vec::with_capacity(sections.len());
    for section in sections {
        table.push(SectionEntry { start, length: section.len() as u64, sum: checksum(section) });
        start += section.len() as u64;
    }
    let mut bytes = Vec::with_capacity(start as usize);
    bytes.extend_from_slice(bytemuck::bytes_of(&head));
    bytes.extend_from_slice(bytemuck::cast_slice(&table));
    let own = checksum(&bytes);
    bytes.extend_from_slice(&own);
    for section in sections {
        bytes.extend_from_slice(section);
    }
    (bytes, own.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Writes a file atomically: writes a temporary file in `folder` and renames it. Returns the path.
///
/// # Errors
/// Fails if the folder cannot be written.
pub fn publish(folder: &Path, name: &str, bytes: &[u8]) -> Result<PathBuf, IndexError> {
    let path = folder.join(name);
    let failed = |action| IndexError::io(action, &path);
    let mut file = tempfile::Builder::new().prefix(TEMPORARY_PREFIX).tempfile_in(folder).map_err(failed("write"))?;
    io::Write::write_all(&mut file, bytes).map_err(failed("write"))?;
    file.persist(&path).map_err(|error| failed("write")(error.error))?;
    Ok(path)
}

/// Name that a damaged file gets, so that the next refresh detects and reports the damage.
pub const DAMAGED_FILE_NAME: &str = "damaged";

/// Prefix of the names of unfinished files.
pub const TEMPORARY_PREFIX: &str = ".part-";

/// Open file of sections. It stays readable after its name is removed.
#[derive(Debug)]
pub struct SealedFile {
    path: PathBuf,
    file: File,
    table: Vec<SectionEntry>,
}

impl SealedFile {
    /// Opens a file and verifies its header; returns `None` if the file does not exist.
    ///
    /// # Errors
    /// Fails with [`IndexError::Damaged`] if the file is incomplete or unreadable, and with [`IndexError::Outdated`] if
    /// it has another version.
    pub fn open(path: &Path) -> Result<Option<Self>, IndexError> {
        let damaged = |what| IndexError::Damaged { path: path.to_owned(), what };
        let file = match disk::open(path, File::options().read(true)) {
            Ok(file) => file,
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound => return Ok(None),
                io::ErrorKind::InvalidData => return Err(damaged("a part of it is no file")),
                io::ErrorKind::PermissionDenied => return Err(damaged("a part of it may not be read")),
                _ => return Err(IndexError::io("read", path)(error)),
            },
        };
        let short = |_| damaged("it is cut short");
        let mut head = [SealedHeader::zeroed()];
        file.read_exact_at(bytemuck::cast_slice_mut(&mut head), 0).map_err(short)?;
        let [head] = head;
        if head.magic != MAGIC_NUMBER || head.sections > MAX_SECTIONS {
            return Err(damaged("it is no index"));
        }
        if head.version != VERSION {
            return Err(IndexError::Outdated { path: path.to_owned() });
        }
        let mut table = vec![SectionEntry::zeroed(); head.sections as usize];
        file.read_exact_at(bytemuck::cast_slice_mut(&mut table), size_of::<SealedHeader>() as u64).map_err(short)?;
        let mut own = [0; CHECKSUM_BYTES];
        let at = size_of::<SealedHeader>() + size_of_val(table.as_slice());
        file.read_exact_at(&mut own, at as u64).map_err(short)?;
        if own != checksum(&[bytemuck::bytes_of(&head), bytemuck::cast_slice(&table)].concat()) {
            return Err(damaged("its head does not add up"));
        }
        let end = table.last().map_or((at + CHECKSUM_BYTES) as u64, |last| last.start.saturating_add(last.length));
        let length = file.metadata().map_err(IndexError::io("read", path))?.len();
        if length != end {
            return Err(damaged("it is not as long as it says"));
        }
        Ok(Some(Self { path: path.to_owned(), file, table }))
    }

    /// Reads a complete section and verifies its checksum.
    ///
    /// # Errors
    /// Fails with [`IndexError::Damaged`] if the section is damaged. The file is then renamed to [`DAMAGED_FILE_NAME`],
    /// so that it is missing the next time.
    pub fn read_section<T: AnyBitPattern + NoUninit>(&self, number: usize) -> Result<Vec<T>, IndexError> {
        let read = || {
            let section = self.table.get(number).ok_or("a part is missing")?;
            let length = section.length as usize;
            if !length.is_multiple_of(size_of::<T>()) {
                return Err("a part is not as long as it should be");
            }
            let mut values = vec![T::zeroed(); length / size_of::<T>()];
            let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut values);
            self.file.read_exact_at(bytes, section.start).map_err(|_| "it cannot be read")?;
            match checksum(bytes) == section.sum {
                true => Ok(values),
                false => Err("a part does not add up"),
            }
        };
        read().map_err(|what| {
            let _ = fs::rename(&self.path, self.path.with_file_name(DAMAGED_FILE_NAME))
                .or_else(|_| fs::remove_file(&self.path));
            self.damaged_error(what)
        })
    }

    /// Builds the error for a damaged file.
    pub fn damaged_error(&self, what: &'static str) -> IndexError {
        IndexError::Damaged { path: self.path.clone(), what }
    }

    /// Returns the size of the file in bytes.
    pub fn length(&self) -> u64 {
        self.table.last().map_or(0, |last| last.start + last.length)
    }
}
