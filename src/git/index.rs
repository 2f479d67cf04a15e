//! Parses the index file without libgit2: entries with their cached `stat` data, and the cached trees. The file is
//! never written.
//!
//! Own parsing makes the scan of a large worktree fast, because there is no allocation per entry and cached trees skip
//! folders that equal HEAD. It also supports sparse indexes, which libgit2 rejects. Format: gitformat-index(5),
//! versions 2 to 4.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

use git2::Oid;

use super::git_command::GitCommandError;
use super::{DEFAULT_GIT_PATIENCE, GitError, git_command, regular_file};
use crate::domain::text::path_from_bytes;

/// Mode of an index entry for a submodule.
pub const MODE_GITLINK: u32 = 0o160000;
/// Mode of an index entry for a directory that a sparse index stores as a single entry.
pub const MODE_TREE: u32 = 0o040000;

/// Time stamp as seconds and nanoseconds, each truncated to 32 bits.
pub type StatTime = (u32, u32);

/// `stat` data of a file as stored in the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CachedStat {
    pub changed: StatTime,
    pub modified: StatTime,
    pub inode: u32,
    pub user: u32,
    pub group: u32,
    pub size: u32,
}

/// Rule for comparing an entry with the worktree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexEntryFlag {
    /// The entry is compared.
    Normal,
    /// The entry is never compared (`git update-index --assume-unchanged`).
    AssumeUnchanged,
    /// The entry is outside of a sparse checkout; a missing file is not a deletion.
    SkipWorktree,
    /// The path is known, but not its content (`git add --intent-to-add`).
    IntentToAdd,
    /// The entry is a side of a merge conflict.
    Unmerged,
}

/// Entry of the index; [`GitIndex::path`] returns its path.
#[derive(Debug, Clone)]
pub struct GitIndexEntry {
    name: Range<u32>,
    pub mode: u32,
    pub id: Oid,
    pub flag: IndexEntryFlag,
    pub stat: CachedStat,
}

/// Cached tree of a folder; `id` is `None` when an entry below it changed since the tree was written.
#[derive(Debug, Default)]
pub struct CachedTree {
    pub id: Option<Oid>,
    pub children: Vec<(Vec<u8>, CachedTree)>,
}

impl CachedTree {
    pub fn child(&self, name: &[u8]) -> Option<&Self> {
        self.children.iter().find(|(known, _)| known == name).map(|(_, tree)| tree)
    }
}

/// The index of a worktree.
#[derive(Debug, Default)]
pub struct GitIndex {
    names: Vec<u8>,
    /// Sorted by path.
    pub entries: Vec<GitIndexEntry>,
    pub trees: Option<CachedTree>,
    /// Modification time of the index file. An entry that is not older may have changed unnoticed. `None` means that no
    /// entry can be trusted.
    pub written: Option<StatTime>,
}

impl GitIndex {
    /// Reads the index file; a missing file gives an index without entries.
    ///
    /// # Errors
    /// Returns an error when the file cannot be read, is damaged, or has an unknown version.
    pub fn read(path: &Path, git_dir: &Path) -> Result<Self, GitError> {
        let error = |source| GitError::Io { action: "read the index", path: path.to_owned(), source };
        let mut file = match regular_file::open_linked(path) {
            Ok(file) => file,
            Err(missing) if missing.kind() == std::io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(other) => return Err(error(other)),
        };
        // The metadata comes from the open file and is read before the content. If another index replaced the file
        // meanwhile, its later time would make these entries look checked although a file changed in between.
        let metadata = file.metadata().map_err(error)?;
        let written = modified_time(&metadata);
        let mut data = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or_default());
        std::io::Read::read_to_end(&mut file, &mut data).map_err(error)?;
        let bad = |what: &str| GitError::Index { path: path.to_owned(), what: what.to_owned() };
        let mut index = match parse_index(&data) {
            Ok(index) => index,
            Err(IndexParseError::Split) => {
                let data = join_split_index(path, git_dir)?;
                parse_index(&data).map_err(|_| bad("it is split, and git could not put it together"))?
            }
            Err(IndexParseError::Corrupt) => return Err(bad("it is damaged")),
            Err(IndexParseError::UnknownVersion(version)) => {
                return Err(bad(&format!("version {version} is not known")));
            }
        };
        index.written = written;
        Ok(index)
    }

    pub fn path(&self, entry: &GitIndexEntry) -> &[u8] {
        self.names.get(entry.name.start as usize..entry.name.end as usize).unwrap_or_default()
    }

    /// Returns the paths of unresolved conflicts, without duplicates.
    pub fn unmerged_paths(&self) -> Vec<String> {
        let unmerged = self.entries.iter().filter(|entry| entry.flag == IndexEntryFlag::Unmerged);
        let mut paths: Vec<String> = unmerged.map(|entry| path_from_bytes(self.path(entry))).collect();
        paths.dedup();
        paths
    }

    /// Returns the end of the entries, within `from..to`, that begin with `prefix`. The entry at `from` must be the
    /// first of them.
    pub fn prefix_end(&self, prefix: &[u8], from: usize, to: usize) -> usize {
        let range = self.entries.get(from..to).unwrap_or_default();
        from + range.partition_point(|entry| self.path(entry).starts_with(prefix))
    }
}

/// Returns a file's modification time; `None` when the platform does not support it.
fn modified_time(metadata: &std::fs::Metadata) -> Option<StatTime> {
    let since = metadata.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some((since.as_secs() as u32, since.subsec_nanos()))
}

enum IndexParseError {
    Corrupt,
    UnknownVersion(u32),
    /// The entries are in a shared index file.
    Split,
}

/// Bounds-checked reader over a byte slice.
struct IndexByteReader<'a>(&'a [u8]);

impl<'a> IndexByteReader<'a> {
    fn take_bytes(&mut self, n: usize) -> Result<&'a [u8], IndexParseError> {
        let (taken, rest) = self.0.split_at_checked(n).ok_or(IndexParseError::Corrupt)?;
        self.0 = rest;
        Ok(taken)
    }

    fn read_u32(&mut self) -> Result<u32, IndexParseError> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or(IndexParseError::Corrupt)?;
        self.0 = rest;
        Ok(u32::from_be_bytes(*bytes))
    }

    fn read_u16(&mut self) -> Result<u16, IndexParseError> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or(IndexParseError::Corrupt)?;
        self.0 = rest;
        Ok(u16::from_be_bytes(*bytes))
    }

    fn read_id(&mut self) -> Result<Oid, IndexParseError> {
        Oid::from_bytes(self.take_bytes(20)?).map_err(|_| IndexParseError::Corrupt)
    }

    /// Reads up to the next `end` byte, which is consumed but not returned.
    fn read_until(&mut self, end: u8) -> Result<&'a [u8], IndexParseError> {
        let at = memchr::memchr(end, self.0).ok_or(IndexParseError::Corrupt)?;
        let text = self.take_bytes(at)?;
        self.take_bytes(1)?;
        Ok(text)
    }

    fn read_number(&mut self, end: u8) -> Result<i64, IndexParseError> {
        std::str::from_utf8(self.read_until(end)?)
            .ok()
            .and_then(|text| text.parse().ok())
            .ok_or(IndexParseError::Corrupt)
    }

    /// Reads the variable-length integer that index version 4 and offsets in pack files use.
    fn read_varint(&mut self) -> Result<usize, IndexParseError> {
        let mut value = 0_usize;
        for step in 0..5 {
            let byte = *self.take_bytes(1)?.first().ok_or(IndexParseError::Corrupt)?;
            value = (value + usize::from(step > 0)) << if step > 0 { 7 } else { 0 };
            value += usize::from(byte & 0x7f);
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(IndexParseError::Corrupt)
    }
}

fn parse_index(data: &[u8]) -> Result<GitIndex, IndexParseError> {
    let mut reader = IndexByteReader(data);
    if reader.take_bytes(4)? != b"DIRC" {
        return Err(IndexParseError::Corrupt);
    }
    let version = reader.read_u32()?;
    if !(2..=4).contains(&version) {
        return Err(IndexParseError::UnknownVersion(version));
    }
    let count = reader.read_u32()? as usize;
    // An entry has at least 62 bytes, so a damaged count cannot cause a huge allocation.
    let mut index = GitIndex { entries: Vec::with_capacity(count.min(data.len() / 62)), ..GitIndex::default() };
    let mut previous = 0..0;
    for _ in 0..count {
        let entry = parse_entry(&mut reader, version, &mut index.names, previous)?;
        previous = entry.name.clone();
        index.entries.push(entry);
    }
    while reader.0.len() > 20 {
        let signature = reader.take_bytes(4)?;
        let size = reader.read_u32()? as usize;
        let content = reader.take_bytes(size)?;
        match signature {
            b"TREE" => index.trees = parse_cached_tree(&mut IndexByteReader(content), 0).ok().map(|(_, tree)| tree),
            b"link" => return Err(IndexParseError::Split),
            // The entries themselves describe the folded directories.
            b"sdir" => {}
            // The signature of a mandatory extension begins with a lower-case letter.
            [first, ..] if first.is_ascii_lowercase() => return Err(IndexParseError::Corrupt),
            _ => {}
        }
    }
    Ok(index)
}

fn parse_entry(
    reader: &mut IndexByteReader,
    version: u32,
    names: &mut Vec<u8>,
    previous: Range<u32>,
) -> Result<GitIndexEntry, IndexParseError> {
    const EXTENDED: u16 = 0x4000;
    let before = reader.0.len();
    let changed = (reader.read_u32()?, reader.read_u32()?);
    let modified = (reader.read_u32()?, reader.read_u32()?);
    let _device = reader.read_u32()?;
    let inode = reader.read_u32()?;
    let mode = reader.read_u32()?;
    let (user, group, size) = (reader.read_u32()?, reader.read_u32()?, reader.read_u32()?);
    let id = reader.read_id()?;
    let flags = reader.read_u16()?;
    let more = if version >= 3 && flags & EXTENDED != 0 { reader.read_u16()? } else { 0 };
    let watch = match (flags, more) {
        (flags, _) if flags & 0x3000 != 0 => IndexEntryFlag::Unmerged,
        (_, more) if more & 0x4000 != 0 => IndexEntryFlag::SkipWorktree,
        (_, more) if more & 0x2000 != 0 => IndexEntryFlag::IntentToAdd,
        (flags, _) if flags & 0x8000 != 0 => IndexEntryFlag::AssumeUnchanged,
        _ => IndexEntryFlag::Normal,
    };
    let start = names.len();
    if version == 4 {
        let keep = (previous.len()).checked_sub(reader.read_varint()?).ok_or(IndexParseError::Corrupt)?;
        let from = previous.start as usize;
        names.extend_from_within(from..from + keep);
        names.extend_from_slice(reader.read_until(0)?);
    } else {
        names.extend_from_slice(reader.read_until(0)?);
        // An entry is padded with NUL to a multiple of 8 bytes.
        let used = before - reader.0.len();
        reader.take_bytes(used.next_multiple_of(8) - used)?;
    }
    let end = u32::try_from(names.len()).map_err(|_| IndexParseError::Corrupt)?;
    let stat = CachedStat { changed, modified, inode, user, group, size };
    Ok(GitIndexEntry { name: start as u32..end, mode, id, flag: watch, stat })
}

fn parse_cached_tree(reader: &mut IndexByteReader, depth: usize) -> Result<(Vec<u8>, CachedTree), IndexParseError> {
    // No path is as deep; a damaged extension must not exhaust the stack.
    const MAX_DEPTH: usize = 2048;
    if depth > MAX_DEPTH {
        return Err(IndexParseError::Corrupt);
    }
    let name = reader.read_until(0)?.to_vec();
    let count = reader.read_number(b' ')?;
    let children = reader.read_number(b'\n')?;
    let id = if count >= 0 { Some(reader.read_id()?) } else { None };
    let children = (0..children).map(|_| parse_cached_tree(reader, depth + 1)).collect::<Result<_, _>>()?;
    Ok((name, CachedTree { id, children }))
}

/// Joins a split index with git itself, in a copy outside of the repository.
fn join_split_index(path: &Path, git_dir: &Path) -> Result<Vec<u8>, GitError> {
    let io = |action| move |source| GitError::Io { action, path: path.to_owned(), source };
    let folder = tempfile::tempdir().map_err(io("make a folder to put together the split index"))?;
    let copy: PathBuf = folder.path().join("index");
    std::fs::copy(path, &copy).map_err(io("copy the split index"))?;
    let mut command = Command::new("git");
    // Neither a monitor nor a hook is of use for a copy.
    command.args(["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"]).arg("--git-dir").arg(git_dir);
    command.args(["update-index", "--no-split-index", "--force-write-index"]).env("GIT_INDEX_FILE", &copy);
    let output =
        git_command::run_with_input(command, "update-index", Vec::new(), DEFAULT_GIT_PATIENCE).map_err(|error| {
            match error {
                GitCommandError::NotStarted(source) => {
                    GitError::NoGit { action: "join the split index", path: git_dir.to_owned(), source }
                }
                silent => io("have git put together the split index")(silent.into()),
            }
        })?;
    if !output.status.success() {
        let what = format!("git could not put the split index together: {}", String::from_utf8_lossy(&output.stderr));
        return Err(GitError::Index { path: path.to_owned(), what });
    }
    std::fs::read(&copy).map_err(io("read the copy of the split index"))
}
