//! Reads and writes immutable files of checksummed sections: the one file format of the index and of the fact store.
//!
//! - A file appears complete under its name or not at all: it is written to a temporary file and renamed.
//! - Reading returns the written bytes or an error. A section is read on first use.
//! - Numbers have the byte order of the machine. A file from a machine with another byte order is rejected.
//!
//! Layout: header, one table entry per section, checksum of header and table, sections.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use bytemuck::{AnyBitPattern, NoUninit, Pod, Zeroable};
use thiserror::Error;

use crate::index::disk;

const MAGIC_NUMBER: u64 = u64::from_ne_bytes(*b"revdeck\x01");
/// Size of a checksum in bytes: half of a BLAKE3 hash.
const CHECKSUM_BYTES: usize = 16;
/// Prefix of the names of unfinished files.
pub const TEMPORARY_PREFIX: &str = ".part-";

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

/// Reason why a file cannot be used.
#[derive(Debug, Error)]
pub enum SealedFileError {
    /// Says nothing about the content.
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("{0}")]
    Damaged(&'static str),
    #[error("it is of another version")]
    Outdated,
}

/// Returns the first half of the BLAKE3 hash of some bytes.
pub fn checksum(bytes: &[u8]) -> [u8; CHECKSUM_BYTES] {
    truncate_hash(blake3::hash(bytes))
}

/// Returns the first half of a hash.
pub fn truncate_hash(hash: blake3::Hash) -> [u8; CHECKSUM_BYTES] {
    let mut half = [0; CHECKSUM_BYTES];
    half.copy_from_slice(&hash.as_bytes()[..CHECKSUM_BYTES]);
    half
}

/// Writes a file of `sections` into `folder` and returns its name.
///
/// `name` receives the checksum of the header and the table in hexadecimal, which identifies the content.
///
/// # Errors
/// Fails if the folder cannot be written.
pub fn publish(
    folder: &Path,
    version: u64,
    sections: &[&[u8]],
    name: impl FnOnce(&str) -> String,
) -> io::Result<String> {
    let header = SealedHeader { magic: MAGIC_NUMBER, version, sections: sections.len() as u64 };
    let mut start = sections_start(sections.len());
    let mut table = Vec::with_capacity(sections.len());
    for section in sections {
        table.push(SectionEntry { start, length: section.len() as u64, sum: checksum(section) });
        start += section.len() as u64;
    }
    let sum = header_checksum(&header, &table);
    let file = tempfile::Builder::new().prefix(TEMPORARY_PREFIX).tempfile_in(folder)?;
    let mut out = BufWriter::new(file);
    out.write_all(bytemuck::bytes_of(&header))?;
    out.write_all(bytemuck::cast_slice(&table))?;
    out.write_all(&sum)?;
    for section in sections {
        out.write_all(section)?;
    }
    let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    let name = name(&sum.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    file.persist(folder.join(&name)).map_err(|error| error.error)?;
    Ok(name)
}

/// Returns the offset of the first section.
fn sections_start(sections: usize) -> u64 {
    (size_of::<SealedHeader>() + sections * size_of::<SectionEntry>() + CHECKSUM_BYTES) as u64
}

fn header_checksum(header: &SealedHeader, table: &[SectionEntry]) -> [u8; CHECKSUM_BYTES] {
    checksum(&[bytemuck::bytes_of(header), bytemuck::cast_slice(table)].concat())
}

/// Open file of sections. It stays readable after its name is removed.
#[derive(Debug)]
pub struct SealedFile {
    file: File,
    table: Vec<SectionEntry>,
}

impl SealedFile {
    /// Opens a file and verifies its header and its length; returns `None` if the file does not exist.
    ///
    /// # Errors
    /// Fails if the file cannot be read, is damaged or has another version.
    pub fn open(path: &Path, version: u64) -> Result<Option<Self>, SealedFileError> {
        use SealedFileError::Damaged;

        let file = match disk::open(path, File::options().read(true)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => return Err(Damaged("a part of it is no file")),
            Err(error) => return Err(error.into()),
        };
        let length = file.metadata()?.len();
        let mut header = [SealedHeader::zeroed()];
        read_at(&file, bytemuck::cast_slice_mut(&mut header), 0)?;
        let [header] = header;
        if header.magic != MAGIC_NUMBER {
            return Err(Damaged("a part of it is none of ours"));
        }
        if header.version != version {
            return Err(SealedFileError::Outdated);
        }
        if header.sections > length / size_of::<SectionEntry>() as u64 {
            return Err(Damaged("it is cut short"));
        }
        let mut table = vec![SectionEntry::zeroed(); header.sections as usize];
        read_at(&file, bytemuck::cast_slice_mut(&mut table), size_of::<SealedHeader>() as u64)?;
        let start = sections_start(table.len());
        let mut sum = [0; CHECKSUM_BYTES];
        read_at(&file, &mut sum, start - CHECKSUM_BYTES as u64)?;
        if sum != header_checksum(&header, &table) {
            return Err(Damaged("its head does not add up"));
        }
        let sealed = Self { file, table };
        match sealed.length() == length {
            true => Ok(Some(sealed)),
            false => Err(Damaged("it is not as long as it says")),
        }
    }

    /// Returns the size of the file in bytes.
    pub fn length(&self) -> u64 {
        self.table.last().map_or(sections_start(0), |last| last.start.saturating_add(last.length))
    }

    /// Returns the number of sections.
    pub fn section_count(&self) -> usize {
        self.table.len()
    }

    /// Returns the length of a section in bytes; 0 if there is no such section.
    pub fn section_length(&self, number: usize) -> u64 {
        self.table.get(number).map_or(0, |section| section.length)
    }

    /// Reads a complete section and verifies its checksum.
    ///
    /// # Errors
    /// Fails if the section cannot be read or is damaged.
    pub fn read_section<T: AnyBitPattern + NoUninit>(&self, number: usize) -> Result<Vec<T>, SealedFileError> {
        let section = self.table.get(number).ok_or(SealedFileError::Damaged("a part is missing"))?;
        let length = section.length as usize;
        if !length.is_multiple_of(size_of::<T>()) {
            return Err(SealedFileError::Damaged("a part is not as long as it should be"));
        }
        let mut values = vec![T::zeroed(); length / size_of::<T>()];
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut values);
        read_at(&self.file, bytes, section.start)?;
        match checksum(bytes) == section.sum {
            true => Ok(values),
            false => Err(SealedFileError::Damaged("a part does not add up")),
        }
    }
}

fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> Result<(), SealedFileError> {
    file.read_exact_at(bytes, offset).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => SealedFileError::Damaged("it is cut short"),
        _ => error.into(),
    })
}
