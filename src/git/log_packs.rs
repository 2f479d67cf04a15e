//! Packs the objects of a team's logs, so that exchanges leave neither thousands of loose objects nor a pack each.
//!
//! An exchange with news brings three small objects: a commit, its tree and a segment. git packs them only where the user runs
//! commands that start `git gc --auto`, and then above 6,700 loose objects; each costs a block of the disk until then.
//!
//! Invariants:
//! - Only objects of logs are packed or moved. A pack that holds one object of something else stays, and so do packs that
//!   are marked to be kept (`.keep`) or listed in an index of many packs.
//! - An object leaves its old place only when a pack that git has written to the disk holds it.
//! - Nothing is pruned: objects that no log reaches any more are left to `git gc`.

use std::collections::HashSet;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use git2::{Commit, ObjectType, Oid};

use super::remote_logs::{COMMIT_MESSAGE, TRACKING_REFS};
use super::{GitError, Repo, git_command, regular_file};

/// Number of loose commits of logs above which they are packed: with their trees and segments, three times as many objects.
const MAX_LOOSE_COMMITS: usize = 100;
/// Age after which git takes the mark of a running `git gc` as left behind.
const MAX_GC_AGE: Duration = Duration::from_secs(12 * 3600);
/// First bytes of the index of a pack: signature and version.
const INDEX_MAGIC: [u8; 8] = [0xff, b't', b'O', b'c', 0, 0, 0, 2];
/// Length of an object id in bytes.
const ID_BYTES: usize = 20;
/// Files that belong to a pack, beside its index. The index goes first: without it, nobody looks for the pack.
const PACK_FILES: [&str; 5] = ["pack", "rev", "bitmap", "promisor", "mtimes"];

/// Pack all of whose objects belong to logs.
struct LogPack {
    /// Path of its index.
    index: PathBuf,
    objects: Vec<Oid>,
}

impl Repo {
    /// Returns the number of packs of the repository.
    pub fn count_packs(&self) -> usize {
        self.pack_indexes().len()
    }

    /// Returns true if so many of the newest commits of logs are loose that they are worth a pack.
    pub fn has_many_loose_log_commits(&self) -> bool {
        let mut count = 0;
        for tip in self.log_tips() {
            let mut next = Some(tip);
            while let Some(id) = next
                && self.is_loose(id)
                && let Some(commit) = self.find_log_commit(id)
            {
                count += 1;
                if count > MAX_LOOSE_COMMITS {
                    return true;
                }
                next = commit.parent_id(0).ok();
            }
        }
        false
    }

    /// Puts the loose objects of logs, and those of packs that hold nothing else, into one pack. Returns their number; 0 if
    /// there is nothing to gain, or `git gc` runs.
    ///
    /// # Errors
    /// Returns an error when the pack cannot be written. Everything is where it was, then.
    pub fn pack_logs(&self) -> Result<usize, GitError> {
        if self.is_collecting_garbage() {
            return Ok(0);
        }
        let of_logs = self.list_log_objects();
        let packs = self.list_log_packs(&of_logs);
        let loose: Vec<Oid> = of_logs.into_iter().filter(|id| self.is_loose(*id)).collect();
        if loose.is_empty() && packs.len() < 2 {
            return Ok(0);
        }
        let packed = packs.iter().flat_map(|pack| pack.objects.iter().copied());
        let objects: HashSet<Oid> = loose.iter().copied().chain(packed).collect();
        let index = self.write_pack(&objects)?;
        let written: HashSet<Oid> = read_index(&index, objects.len()).unwrap_or_default().into_iter().collect();
        if !objects.is_subset(&written) {
            return Err(self.pack_error("the pack lacks objects".to_owned()));
        }
        if packs.iter().any(|pack| pack.index.with_extension("promisor").exists()) {
            // In a partial clone, what the remote has may refer to what is not here.
            std::fs::write(index.with_extension("promisor"), "").map_err(|error| self.pack_error(error.to_string()))?;
        }
        // Whatever cannot be removed is there twice, which harms nothing.
        for id in loose {
            let _ = std::fs::remove_file(self.loose_path(id));
        }
        for pack in packs.iter().filter(|pack| pack.index != index) {
            let _ = std::fs::remove_file(&pack.index);
            for ending in PACK_FILES {
                let _ = std::fs::remove_file(pack.index.with_extension(ending));
            }
        }
        Ok(objects.len())
    }

    fn objects_folder(&self) -> PathBuf {
        self.inner.commondir().join("objects")
    }

    fn loose_path(&self, id: Oid) -> PathBuf {
        let id = id.to_string();
        let (folder, name) = id.split_at(2);
        self.objects_folder().join(folder).join(name)
    }

    fn is_loose(&self, id: Oid) -> bool {
        self.loose_path(id).exists()
    }

    /// Returns true while `git gc` runs, which packs these objects itself.
    fn is_collecting_garbage(&self) -> bool {
        let mark = std::fs::metadata(self.inner.commondir().join("gc.pid"));
        let age = mark.and_then(|mark| mark.modified()).map(|time| time.elapsed().unwrap_or_default());
        age.is_ok_and(|age| age < MAX_GC_AGE)
    }

    /// Returns the newest commits of all logs.
    fn log_tips(&self) -> Vec<Oid> {
        let Ok(references) = self.inner.references_glob(&format!("{TRACKING_REFS}*")) else { return Vec::new() };
        references.flatten().filter_map(|reference| reference.target()).collect()
    }

    /// Returns a commit that is here and is one of a log. Whoever may push can let a log point to commits of branches.
    fn find_log_commit(&self, id: Oid) -> Option<Commit<'_>> {
        let commit = self.inner.find_commit(id).ok()?;
        commit.message_bytes().starts_with(COMMIT_MESSAGE.trim_end().as_bytes()).then_some(commit)
    }

    /// Lists the objects that logs reach and that are here.
    fn list_log_objects(&self) -> HashSet<Oid> {
        let mut found = HashSet::new();
        let (mut commits, mut trees) = (self.log_tips(), Vec::new());
        while let Some(id) = commits.pop() {
            if found.contains(&id) {
                continue;
            }
            let Some(commit) = self.find_log_commit(id) else { continue };
            found.insert(id);
            commits.extend(commit.parent_ids());
            trees.push(commit.tree_id());
        }
        while let Some(id) = trees.pop() {
            if found.contains(&id) {
                continue;
            }
            let Ok(tree) = self.inner.find_tree(id) else { continue };
            found.insert(id);
            for entry in tree.iter() {
                match entry.kind() {
                    Some(ObjectType::Tree) => trees.push(entry.id()),
                    Some(ObjectType::Blob) => {
                        found.insert(entry.id());
                    }
                    _ => {}
                }
            }
        }
        found
    }

    /// Returns the paths of the indexes of all packs.
    fn pack_indexes(&self) -> Vec<PathBuf> {
        let Ok(entries) = std::fs::read_dir(self.objects_folder().join("pack")) else { return Vec::new() };
        let paths = entries.flatten().map(|entry| entry.path());
        paths.filter(|path| path.extension().is_some_and(|ending| ending == "idx")).collect()
    }

    /// Lists the packs all of whose objects are `of_logs` and that may be replaced.
    fn list_log_packs(&self, of_logs: &HashSet<Oid>) -> Vec<LogPack> {
        let folder = self.objects_folder().join("pack");
        if ["multi-pack-index", "multi-pack-index.d"].iter().any(|name| folder.join(name).exists()) {
            // The user's maintenance of packs does this, and its index would name packs that are gone.
            return Vec::new();
        }
        let replaceable = self.pack_indexes().into_iter().filter(|index| !index.with_extension("keep").exists());
        replaceable
            .filter_map(|index| {
                let objects = read_index(&index, of_logs.len())?;
                objects.iter().all(|id| of_logs.contains(id)).then_some(LogPack { index, objects })
            })
            .collect()
    }

    /// Writes a pack of these objects, and returns the path of its index.
    fn write_pack(&self, objects: &HashSet<Oid>) -> Result<PathBuf, GitError> {
        let folder = self.objects_folder().join("pack");
        std::fs::create_dir_all(&folder).map_err(|error| self.pack_error(error.to_string()))?;
        let mut command = self.remote_command();
        command.args(["-c", "pack.packSizeLimit=0"]);
        // The progress shows that git does not hang.
        command.args(["pack-objects", "--progress", "--delta-base-offset"]).arg(folder.join("pack"));
        let input: String = objects.iter().map(|id| format!("{id}\n")).collect();
        let output = git_command::run_with_input(command, "pack-objects", input.into_bytes(), self.git_patience)
            .map_err(|error| self.pack_error(error.to_string()))?;
        if !output.status.success() {
            return Err(self.pack_error(git_command::error_message(&output.stderr)));
        }
        let hash = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        Ok(folder.join(format!("pack-{hash}.idx")))
    }

    fn pack_error(&self, what: String) -> GitError {
        GitError::NotPacked { path: self.root(), what }
    }
}

/// Reads the ids of the objects of a pack from its index. Returns `None` if it has none or more than `max`, or cannot be read.
fn read_index(path: &Path, max: usize) -> Option<Vec<Oid>> {
    let mut file = regular_file::open(path).ok()?;
    // After the magic, a table says for each first byte how many objects have that one or a lower one.
    let mut head = [0; INDEX_MAGIC.len() + 4 * 256];
    file.read_exact(&mut head).ok()?;
    let count = u32::from_be_bytes(*head.last_chunk()?) as usize;
    if !head.starts_with(&INDEX_MAGIC) || count == 0 || count > max {
        return None;
    }
    let mut ids = vec![0; count * ID_BYTES];
    file.read_exact(&mut ids).ok()?;
    ids.chunks_exact(ID_BYTES).map(|id| Oid::from_bytes(id).ok()).collect()
}
