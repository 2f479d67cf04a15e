//! Decides which files of a change a review leaves out, and which of them the change itself puts out of sight.
//!
//! - The change does not choose what is reviewed: attributes and settings come from the *base* of the change, the tree
//!   with which it is compared. A change without a base, the first commit and the whole tree, has its own.
//! - A file is *hidden* if it is left out although the base would have reviewed it: the file moved, got a marker of
//!   generated code, a NUL byte, a very long line, too many bytes, or became something else than a file.
//! - A new file is hidden if nothing but its own name or content leaves it out, as a code file in a vendored folder.
//!   Lock files, binary files by their type, other files in vendored folders that the base has, and what the base's
//!   attributes call vendored are not hidden.
//! - New attributes and settings hold for later reviews. The files that they will leave out are hidden, too, although
//!   they are not changed.
//! - A file that the base left out and the change brings into sight is reviewed as if it were new.

use std::collections::{HashMap, HashSet};

use git2::{Odb, Oid, Repository, Tree};

use super::filter::{OmissionCause, ReviewFilter, find_vendor_folder, is_code};
use super::index::MODE_GITLINK;
use super::snapshot::is_snapshot_commit;
use super::trees::{MODE_SYMLINK, TreeDelta, TreeLeaf, leaf_at};
use super::{FilterRules, FilterSettings, GitError, Repo};
use crate::domain::OmissionReason;

/// Extensions of binary files whose bytes nobody reviews: images, sound, fonts, archives, programs, documents, data.
const BINARY_EXTENSIONS: &[&str] = &[
    "7z", "a", "ai", "avi", "avif", "bin", "blend", "bmp", "bz2", "class", "cur", "dat", "db", "der", "dll", "docx",
    "dylib", "ear", "eot", "exe", "fbx", "flac", "gif", "glb", "gmo", "gz", "heic", "icns", "ico", "jar", "jpeg",
    "jpg", "jxl", "ktx", "lib", "lz4", "mid", "mkv", "mo", "mov", "mp3", "mp4", "npy", "npz", "o", "obj", "odp", "ods",
    "odt", "ogg", "onnx", "otf", "parquet", "pb", "pdf", "pkl", "png", "ppt", "pptx", "psd", "pt", "pyc", "pyd", "rar",
    "so", "sqlite", "sqlite3", "tar", "tflite", "tga", "tgz", "tif", "tiff", "ttc", "ttf", "war", "wasm", "wav",
    "webm", "webp", "whl", "wim", "woff", "woff2", "xls", "xlsx", "xz", "zip", "zst",
];

/// Beginning of the file that Git LFS commits instead of the content.
const LFS_POINTER: &[u8] = b"version https://git-lfs.github.com/spec/";
/// Maximum number of unchanged files that are listed because new attributes or settings leave them out.
const MAX_FUTURE_OMISSIONS: usize = 100;
/// Name of the attributes files.
const ATTRIBUTES_FILE: &[u8] = b".gitattributes";

/// The tree whose attributes, settings and files say what a review of a change leaves out.
pub(super) struct RulesTree<'a>(Option<Tree<'a>>);

impl Repo {
    /// Returns the commit whose attributes and settings apply to the change from `base` to `tip`. `None` if the base is
    /// cut off by a shallow clone: then no attributes or settings apply.
    fn rules_commit(&self, base: Option<Oid>, tip: Oid) -> Result<Option<Oid>, git2::Error> {
        if let Some(base) = base {
            return Ok(Some(base));
        }
        let commit = self.inner.find_commit(tip)?;
        if is_snapshot_commit(&commit)
            && let Ok(head) = commit.parent_id(0)
        {
            return Ok(Some(head));
        }
        Ok((!self.is_history_cut_at(tip)).then_some(tip))
    }

    /// Returns the rules for the change from `base` to `tip`.
    pub(super) fn rules_tree(&self, base: Option<Oid>, tip: Oid) -> Result<RulesTree<'_>, git2::Error> {
        let commit = self.rules_commit(base, tip)?;
        Ok(RulesTree(commit.map(|commit| self.inner.find_commit(commit)?.tree()).transpose()?))
    }

    /// Returns the commit whose attributes and settings apply to a review, in hexadecimal; see [`FilterRules`]. `base`
    /// may be empty.
    ///
    /// # Errors
    /// Returns an error when a commit cannot be read.
    pub fn find_rules_commit(&self, base: &str, snapshot: &str) -> Result<Option<String>, GitError> {
        let base = if base.is_empty() { None } else { Some(self.commit_id(base)?) };
        let commit = self.rules_commit(base, self.commit_id(snapshot)?).map_err(self.git_error("read a commit"))?;
        Ok(commit.map(|commit| commit.to_string()))
    }

    /// Returns the filter settings for the change from `base` (may be empty) to `snapshot`.
    ///
    /// # Errors
    /// Returns an error when a commit cannot be read.
    pub fn resolve_filter(
        &self,
        base: &str,
        snapshot: &str,
        rules: &dyn FilterRules,
    ) -> Result<FilterSettings, GitError> {
        let base = if base.is_empty() { None } else { Some(self.commit_id(base)?) };
        let tree =
            self.rules_tree(base, self.commit_id(snapshot)?).map_err(self.git_error("read the base of a change"))?;
        Ok(tree.resolve(&self.inner, rules))
    }

    /// Returns the filter settings for uncommitted changes: those of HEAD, or of the worktree before the first commit.
    pub(super) fn filter_at_head(&self, rules: &dyn FilterRules) -> Result<FilterSettings, GitError> {
        match self.head_tree()? {
            Some(tree) => Ok(RulesTree(Some(tree)).resolve(&self.inner, rules)),
            None => {
                let root = self.worktree_root().ok();
                Ok(rules.settings_at(&mut |path| super::regular_file::read(&root.as_ref()?.join(path)).ok()))
            }
        }
    }
}

impl RulesTree<'_> {
    /// Returns the settings that apply in this tree.
    pub fn resolve(&self, repo: &Repository, rules: &dyn FilterRules) -> FilterSettings {
        rules.settings_at(&mut |path| self.read(repo, path.as_bytes()))
    }

    /// Returns the content of a regular file of the tree.
    fn read(&self, repo: &Repository, path: &[u8]) -> Option<Vec<u8>> {
        let leaf = leaf_at(repo, self.0.as_ref()?, path).filter(|leaf| leaf.is_file())?;
        Some(repo.find_blob(leaf.id).ok()?.content().to_vec())
    }

    /// Returns the ids of the attributes files that apply to `paths`, and of the file at `settings`.
    pub fn rule_blobs<'p>(&self, repo: &Repository, paths: impl IntoIterator<Item = &'p [u8]>) -> Vec<Oid> {
        let Some(tree) = &self.0 else { return Vec::new() };
        paths.into_iter().filter_map(|path| Some(leaf_at(repo, tree, path)?.id)).collect()
    }
}

/// Decision about a changed file that exists on the new side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChangeVerdict {
    /// Review the changed lines.
    Review,
    /// Review the whole file, because the base left it out.
    ReviewWhole,
    /// Leave the file out.
    LeaveOut { reason: OmissionReason, hidden: bool },
}

/// Judges the files of one change.
pub(super) struct ChangeFilter<'a> {
    objects: &'a Repository,
    odb: &'a Odb<'a>,
    repo: &'a Repository,
    tree: RulesTree<'a>,
    judge: ReviewFilter<'a>,
    /// Names of the files that the change deletes and that were reviewed before.
    deleted_names: HashSet<Vec<u8>>,
    /// Whether the base has this vendored folder.
    vendor_folders: HashMap<Vec<u8>, bool>,
}

impl<'a> ChangeFilter<'a> {
    pub fn new(
        repo: &'a Repo,
        (objects, odb): (&'a Repository, &'a Odb<'a>),
        tree: RulesTree<'a>,
        settings: &FilterSettings,
    ) -> Self {
        let judge = repo.review_filter_for_tree(tree.0.clone(), settings);
        Self {
            objects,
            odb,
            repo: &repo.inner,
            tree,
            judge,
            deleted_names: HashSet::new(),
            vendor_folders: HashMap::new(),
        }
    }

    /// Remembers the deleted files of a change, so that a file that is deleted here and written there counts as moved.
    pub fn note_deleted(&mut self, differences: &[TreeDelta], moved: &HashSet<Vec<u8>>) -> Result<(), git2::Error> {
        for difference in differences {
            let Some(old) = difference.old.filter(|old| old.is_file() && difference.new.is_none()) else { continue };
            if !moved.contains(&difference.path) && self.check_file(&difference.path, old)?.is_none() {
                self.deleted_names.insert(file_name(&difference.path).to_vec());
            }
        }
        Ok(())
    }

    /// Judges a file with its content `new`. `before` is its path and content before the change, if it was moved or
    /// changed.
    pub fn judge(
        &mut self,
        path: &[u8],
        new: TreeLeaf,
        before: Option<(&[u8], TreeLeaf)>,
    ) -> Result<ChangeVerdict, git2::Error> {
        // A review of the whole tree has no old side, but HEAD has the file.
        let before = before.map(|(path, leaf)| (path.to_vec(), leaf));
        let before = before.or_else(|| Some((path.to_vec(), leaf_at(self.repo, self.tree.0.as_ref()?, path)?)));
        let was_seen = match &before {
            Some((old_path, old)) if old.is_file() => Some(self.check_file(old_path, *old)?.is_none()),
            _ => None,
        };
        if let Some(reason) = special_reason(new) {
            let same = before.as_ref().is_some_and(|(_, old)| special_reason(*old) == Some(reason));
            let is_new = was_seen.is_none() && !same && (reason == OmissionReason::Submodule || is_code(path));
            return Ok(ChangeVerdict::LeaveOut { reason, hidden: was_seen == Some(true) || is_new });
        }
        let old = before.as_ref().filter(|(_, old)| old.is_file()).map(|(_, old)| *old);
        Ok(match (self.check_file(path, new)?, was_seen) {
            (None, _)
                if is_code(path)
                    && self.count_lone_returns(new) > old.map_or(0, |old| self.count_lone_returns(old)) =>
            {
                ChangeVerdict::LeaveOut { reason: OmissionReason::Minified, hidden: true }
            }
            (None, Some(false)) => ChangeVerdict::ReviewWhole,
            (None, _) => ChangeVerdict::Review,
            (Some((reason, _)), Some(seen)) => ChangeVerdict::LeaveOut { reason, hidden: seen },
            (Some((reason, cause)), None) => {
                ChangeVerdict::LeaveOut { reason, hidden: self.is_hidden_as_new(path, new, reason, cause)? }
            }
        })
    }

    /// Returns the unchanged files that the change puts out of sight of later reviews, because it changes attributes or
    /// settings; at most `MAX_FUTURE_OMISSIONS`.
    pub fn find_future_omissions(
        &mut self,
        repo: &Repo,
        differences: &[TreeDelta],
        (new, rules, settings): (&Tree<'a>, &dyn FilterRules, &FilterSettings),
    ) -> Result<Vec<(Vec<u8>, OmissionReason)>, git2::Error> {
        let new_rules = RulesTree(Some(new.clone()));
        let later = new_rules.resolve(self.repo, rules);
        let has_attributes = |difference: &TreeDelta| file_name(&difference.path) == ATTRIBUTES_FILE;
        if self.tree.0.is_none() || later == *settings && !differences.iter().any(has_attributes) {
            return Ok(Vec::new());
        }
        let changed: HashSet<&[u8]> = differences.iter().map(|difference| difference.path.as_slice()).collect();
        let is_smaller = later.max_file_bytes < settings.max_file_bytes;
        let mut judge = repo.review_filter_for_tree(new_rules.0, &later);
        let mut found = Vec::new();
        for TreeDelta { path, new, .. } in super::trees::diff_trees(self.repo, None, Some(new))? {
            let Some(leaf) = new.filter(|leaf| leaf.is_file() && !changed.contains(path.as_slice())) else { continue };
            let is_oversized =
                || is_smaller && self.odb.read_header(leaf.id).is_ok_and(|(size, _)| judge.is_oversized(size as u64));
            let oversized = is_oversized().then_some(OmissionReason::Oversized);
            let Some(reason) = judge.check_name(&path).map(|(reason, _)| reason).or(oversized) else { continue };
            if self.check_file(&path, leaf)?.is_none() {
                found.push((path, reason));
                if found.len() >= MAX_FUTURE_OMISSIONS {
                    break;
                }
            }
        }
        Ok(found)
    }

    /// Judges a file of the worktree that is too large to be stored, as [`ChangeFilter::judge`].
    pub fn judge_unstored(&mut self, path: &[u8], reason: OmissionReason) -> Result<bool, git2::Error> {
        if reason != OmissionReason::Oversized {
            return Ok(false);
        }
        let old = self.tree.0.as_ref().and_then(|tree| leaf_at(self.repo, tree, path));
        match old.filter(|old| old.is_file()) {
            Some(old) => Ok(self.check_file(path, old)?.is_none()),
            None => Ok(self.judge.check_name(path).is_none() && is_code(path)),
        }
    }

    /// Returns true if a review does not leave out a file with this name and content.
    pub fn is_reviewed(&mut self, path: &[u8], leaf: TreeLeaf) -> Result<bool, git2::Error> {
        Ok(self.check_file(path, leaf)?.is_none())
    }

    /// Returns the reason why a review leaves out a file with this name and content.
    fn check_file(
        &mut self,
        path: &[u8],
        leaf: TreeLeaf,
    ) -> Result<Option<(OmissionReason, OmissionCause)>, git2::Error> {
        if let Some(found) = self.judge.check_name(path) {
            return Ok(Some(found));
        }
        let content = |reason| Ok(Some((reason, OmissionCause::Content)));
        // The objects of a partial clone are fetched already, so a missing object is lost or damaged.
        let Ok((size, _)) = self.odb.read_header(leaf.id) else { return content(OmissionReason::Unreadable) };
        if self.judge.is_oversized(size as u64) {
            return content(OmissionReason::Oversized);
        }
        let Ok(blob) = self.objects.find_blob(leaf.id) else { return content(OmissionReason::Unreadable) };
        // The pointer stands for content that is somewhere else.
        if blob.content().starts_with(LFS_POINTER) {
            return content(OmissionReason::Binary);
        }
        Ok(self.judge.check_content(path, blob.content()).map(|reason| (reason, OmissionCause::Content)))
    }

    /// Returns true if a file that the base does not have would be reviewed but for its own name or content.
    fn is_hidden_as_new(
        &mut self,
        path: &[u8],
        leaf: TreeLeaf,
        reason: OmissionReason,
        cause: OmissionCause,
    ) -> Result<bool, git2::Error> {
        let is_twin = self.deleted_names.contains(file_name(path));
        Ok(match (reason, cause) {
            (OmissionReason::LockFile | OmissionReason::Unreadable, _) => false,
            (_, OmissionCause::Rule) => is_twin,
            (OmissionReason::Vendored, _) => is_twin || is_code(path) || !self.has_vendor_folder(path),
            (OmissionReason::Binary, _) => !is_binary_by_type(path) || self.starts_as_script(leaf),
            (OmissionReason::Oversized, _) => is_code(path) || self.starts_as_script(leaf),
            _ => true,
        })
    }

    /// Returns true if the base has files in the vendored folder that the path is in.
    fn has_vendor_folder(&mut self, path: &[u8]) -> bool {
        let Some(folder) = find_vendor_folder(path) else { return false };
        if let Some(known) = self.vendor_folders.get(folder) {
            return *known;
        }
        let tree = self.tree.0.as_ref();
        let has = tree.is_some_and(|tree| {
            let entry = tree.get_path(&super::path_bytes::to_path(folder));
            entry.is_ok_and(|entry| entry.kind() == Some(git2::ObjectType::Tree))
        });
        self.vendor_folders.insert(folder.to_vec(), has);
        has
    }

    /// Counts the carriage returns that end no line for git, for editors and for parsers, but do for some languages: what
    /// follows one stands in the same line for a reviewer, perhaps in a comment.
    fn count_lone_returns(&self, leaf: TreeLeaf) -> usize {
        let Ok(blob) = self.objects.find_blob(leaf.id) else { return 0 };
        let content = blob.content();
        memchr::memchr_iter(b'\r', content).filter(|at| content.get(at + 1).is_some_and(|next| *next != b'\n')).count()
    }

    fn starts_as_script(&self, leaf: TreeLeaf) -> bool {
        self.objects.find_blob(leaf.id).is_ok_and(|blob| blob.content().starts_with(b"#!"))
    }
}

/// Returns the reason for leaving out an entry that is no regular file.
fn special_reason(leaf: TreeLeaf) -> Option<OmissionReason> {
    match leaf.mode {
        MODE_GITLINK => Some(OmissionReason::Submodule),
        MODE_SYMLINK => Some(OmissionReason::Symlink),
        _ => None,
    }
}

fn file_name(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}

/// Returns true for a name that only binary files have.
pub(crate) fn is_binary_by_type(path: &[u8]) -> bool {
    let name = file_name(path);
    let ending = name.rsplit(|byte| *byte == b'.').next().unwrap_or_default().to_ascii_lowercase();
    name.len() != ending.len() && BINARY_EXTENSIONS.iter().any(|known| known.as_bytes() == ending)
}
