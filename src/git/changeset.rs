//! Compares two trees: renames and copies, files left out with the reason, hunks, and the diff fingerprint.
//!
//! Everything is read from the object database, so that a worker that runs later gets exactly the same result.

use std::collections::{HashMap, HashSet};

use git2::{Blob, Delta, DiffFindOptions, DiffOptions, ErrorCode, Oid, Patch, Repository, Tree};

use super::change_filter::{ChangeFilter, ChangeVerdict, RulesTree};
use super::filter::count_lines;
use super::trees::{self, TreeDelta, TreeLeaf};
use super::{
    ChangeKind, Changeset, DiffLine, FileChange, FilterRules, FilterSettings, GitError, Hunk, LineOrigin, Repo,
};
use crate::domain::text::path_from_bytes;
use crate::domain::{OmissionReason, OmittedFile};

/// Maximum number of added files, and of deleted files, for the detection of renames with edits; the value of git's
/// `diff.renameLimit`. Above it, only exact renames are found.
const MAX_RENAME_CANDIDATES: usize = 1_000;

/// A path of the worktree that the snapshot's tree does not contain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UnstoredPath {
    pub path: Vec<u8>,
    pub reason: UnstoredReason,
    /// Inode of a file that is too large, as in [`OmittedFile`].
    pub inode: Option<u64>,
}

/// Reason why a path of the worktree is not in the snapshot's tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnstoredReason {
    /// A changed file that is too large to be stored.
    Oversized { mode: u32, bytes: u64 },
    /// A file whose content cannot be read; it may have changed in any way.
    Unreadable,
    /// A folder without tracked files that cannot be opened; git treats it as empty.
    UnreadableFolder,
}

impl UnstoredReason {
    pub fn to_left_out_reason(self) -> OmissionReason {
        match self {
            Self::Oversized { .. } => OmissionReason::Oversized,
            Self::Unreadable | Self::UnreadableFolder => OmissionReason::Unreadable,
        }
    }
}

/// Result of comparing two commits.
pub(super) struct CommitComparison {
    pub change: Changeset,
    /// The entries of `change.left_out` that the tree does not contain.
    pub unstored: Vec<OmittedFile>,
    pub differences: Vec<TreeDelta>,
    /// Settings that apply to the change.
    pub filter: FilterSettings,
}

/// Origin of an added file: the file it was renamed or copied from.
pub(super) struct RenameSource {
    pub kind: ChangeKind,
    pub path: Vec<u8>,
    leaf: TreeLeaf,
}

impl Repo {
    /// Computes the change between two commits again, from immutable objects only, as the worker needs it. An empty
    /// `base` means that the whole snapshot is new.
    ///
    /// The result equals the change of the [`super::Snapshot`], except for worktree files that are not in the
    /// snapshot's tree: files above the size limit and unreadable files are known only when the snapshot is taken.
    ///
    /// # Errors
    /// Returns an error when a commit cannot be read, or when missing objects of a partial clone cannot be fetched.
    pub fn compute_changeset(
        &self,
        base: &str,
        snapshot: &str,
        filter: &dyn FilterRules,
    ) -> Result<Changeset, GitError> {
        let base = if base.is_empty() { None } else { Some(self.commit_id(base)?) };
        Ok(self.compare_commits(base, self.commit_id(snapshot)?, filter, &[])?.change)
    }

    /// Compares two commits; `extra` is added to the files left out. Fetches missing objects of a partial clone first.
    pub(super) fn compare_commits(
        &self,
        base: Option<Oid>,
        tip: Oid,
        rules: &dyn FilterRules,
        extra: &[UnstoredPath],
    ) -> Result<CommitComparison, GitError> {
        let failed = self.git_error("compare two trees");
        let tree = |id| self.inner.find_commit(id).and_then(|commit| commit.tree());
        let trees = || {
            let (old, new) = (base.map(tree).transpose()?, tree(tip)?);
            let differences = trees::diff_trees(&self.inner, old.as_ref(), Some(&new))?;
            Ok::<_, git2::Error>((old, new, differences))
        };
        let promisor = self.promisor_remote();
        let (old, new, differences) = match trees() {
            Err(error) if error.code() == ErrorCode::NotFound && promisor.is_some() => {
                self.fetch_trees(base, tip)?;
                trees()
            }
            other => other,
        }
        .map_err(failed)?;
        let tree = self.rules_tree(base, tip).map_err(failed)?;
        if let Some(remote) = promisor {
            self.fetch_contents(&differences, &tree, &remote)?;
        }
        let filter = tree.resolve(&self.inner, rules);
        let (change, unstored) = self
            .build_changeset((old.as_ref(), &new), (&differences, extra), (tree, rules, &filter))
            .map_err(failed)?;
        Ok(CommitComparison { change, unstored, differences, filter })
    }

    /// Opens only the object database. Without a worktree, an index and settings, only objects can influence a
    /// comparison.
    pub(super) fn objects_only_repository(&self) -> Result<Repository, git2::Error> {
        let objects = Repository::from_odb(self.inner.odb()?)?;
        objects.set_index(&mut git2::Index::new()?)?;
        Ok(objects)
    }

    /// Builds the change from the deltas of two trees. Returns it with the entries for `extra`, which it contains.
    fn build_changeset(
        &self,
        (old, new): (Option<&Tree>, &Tree),
        (differences, extra): (&[TreeDelta], &[UnstoredPath]),
        (tree, rules, filter): (RulesTree<'_>, &dyn FilterRules, &FilterSettings),
    ) -> Result<(Changeset, Vec<OmittedFile>), git2::Error> {
        let objects = self.objects_only_repository()?;
        let mut sources = match find_rename_sources(
            &objects,
            old.map(Tree::id),
            new.id(),
            differences,
            RenameDetection::RenamesAndCopies,
        ) {
            // A missing blob must not prevent the review; the rename sources are then unknown.
            Err(error) if error.code() == ErrorCode::NotFound => HashMap::new(),
            sources => sources?,
        };
        let moved: HashSet<Vec<u8>> = sources
            .values()
            .filter(|source| source.kind == ChangeKind::Renamed)
            .map(|source| source.path.clone())
            .collect();
        let odb = self.inner.odb()?;
        let mut change = Changeset::default();
        let mut judge = ChangeFilter::new(self, (&objects, &odb), tree, filter);
        judge.note_deleted(differences, &moved)?;
        for difference in differences {
            let path = path_from_bytes(&difference.path);
            let Some(new) = difference.new else {
                if !moved.contains(&difference.path) {
                    change.left_out.push(OmittedFile::new(path, OmissionReason::Deleted));
                }
                continue;
            };
            let source = sources.remove(&difference.path);
            let before = source.as_ref().filter(|source| source.kind == ChangeKind::Renamed);
            let before = before.map(|source| path_from_bytes(&source.path));
            match compare_file(&objects, difference, new, source, &mut judge)? {
                Ok(file) => change.files.push(file),
                Err((reason, hidden)) => {
                    let is_unedited_move = before.is_some() && reason == OmissionReason::NoContentChange;
                    if is_unedited_move && judge.is_reviewed(&difference.path, new)? {
                        change.unedited_moves.push(path.clone());
                    }
                    change.moved.extend(before.map(|before| (path.clone(), before)));
                    change.left_out.push(OmittedFile { hidden, ..OmittedFile::new(path, reason) });
                }
            }
        }
        if old.is_some() {
            for (path, reason) in judge.find_future_omissions(self, differences, (new, rules, filter))? {
                let file = OmittedFile::new(path_from_bytes(&path), reason);
                change.left_out.push(OmittedFile { hidden: true, ..file });
            }
        }
        let mut unstored = Vec::with_capacity(extra.len());
        for extra in extra {
            let reason = extra.reason.to_left_out_reason();
            let hidden = judge.judge_unstored(&extra.path, reason)?;
            let file = OmittedFile::new(path_from_bytes(&extra.path), reason);
            unstored.push(OmittedFile { hidden, inode: extra.inode, ..file });
        }
        change.left_out.extend(unstored.iter().cloned());
        change.files.sort_by(|a, b| a.path.cmp(&b.path));
        change.left_out.sort_by(|a, b| a.path.cmp(&b.path));
        Ok((change, unstored))
    }

    /// Returns the diff lines of a changed file, with `context` unchanged lines around each hunk.
    ///
    /// # Errors
    /// Returns an error when a blob cannot be read.
    pub fn file_diff(&self, change: &FileChange, context: u32) -> Result<Vec<DiffLine>, GitError> {
        let old = match &change.old_blob {
            Some(id) => self.blob(id)?,
            None => Vec::new(),
        };
        let new = self.blob(&change.new_blob)?;
        let failed = self.git_error("compare two files");
        let mut options = text_diff_options(context);
        let patch = Patch::from_buffers(&old, None, &new, None, Some(&mut options)).map_err(failed)?;
        let mut lines = Vec::new();
        for at in 0..patch.num_hunks() {
            let (hunk, count) = patch.hunk(at).map_err(failed)?;
            lines.push(DiffLine {
                origin: LineOrigin::HunkHeader,
                old_line: None,
                new_line: None,
                text: line_text(hunk.header()),
            });
            for line in 0..count {
                let line = patch.line_in_hunk(at, line).map_err(failed)?;
                let origin = match line.origin() {
                    '+' => LineOrigin::Added,
                    '-' => LineOrigin::Removed,
                    ' ' => LineOrigin::Context,
                    // A marker that the last line has no line end.
                    _ => continue,
                };
                lines.push(DiffLine {
                    origin,
                    old_line: line.old_lineno(),
                    new_line: line.new_lineno(),
                    text: line_text(line.content()),
                });
            }
        }
        Ok(lines)
    }

    /// Computes a hash of the changed content, including files left out. Commits and the kind of scope are not part of
    /// it, so that a review of the worktree also applies to the commit made from exactly that content.
    ///
    /// For files above the size limit, the hash covers the size instead of the content, because the content is not
    /// always stored.
    pub(super) fn compute_diff_fingerprint(
        &self,
        differences: &[TreeDelta],
        extra: &[UnstoredPath],
        filter: &FilterSettings,
    ) -> Result<String, GitError> {
        let odb = self.inner.odb().map_err(self.git_error("read the object database"))?;
        let side = |leaf: Option<TreeLeaf>| match leaf {
            Some(leaf) => format!("{:o} {}", leaf.mode, leaf.id),
            None => "0".to_owned(),
        };
        let large = |mode: u32, size: u64| format!("{mode:o} {size} bytes\n");
        let mut lines: Vec<(&[u8], String)> = Vec::with_capacity(differences.len());
        for difference in differences {
            let line = match (difference.old, difference.new) {
                (_, Some(new)) if new.is_file() => {
                    let size = odb.read_header(new.id).map_or(0, |(size, _)| size as u64);
                    (size > filter.max_file_bytes).then(|| large(new.mode, size))
                }
                _ => None,
            };
            let line = line.unwrap_or_else(|| format!("{} {}\n", side(difference.old), side(difference.new)));
            lines.push((&difference.path, line));
        }
        lines.extend(extra.iter().filter_map(|extra| {
            let line = match extra.reason {
                UnstoredReason::Oversized { mode, bytes } => large(mode, bytes),
                UnstoredReason::Unreadable => "unreadable\n".to_owned(),
                UnstoredReason::UnreadableFolder => return None,
            };
            Some((extra.path.as_slice(), line))
        }));
        lines.sort();
        let mut hash = blake3::Hasher::new();
        for (path, line) in lines {
            hash.update(path);
            // A path contains no NUL, so two different lists of changes cannot produce the same bytes.
            hash.update(b"\0");
            hash.update(line.as_bytes());
        }
        Ok(hash.finalize().to_hex().to_string())
    }
}

/// Kinds of sources that rename detection looks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RenameDetection {
    RenamesAndCopies,
    /// Renames of deleted files only, with a quarter of the limit; for background work.
    Renames,
}

/// Finds the rename or copy source of each added file. The key is the new path; files without a source are absent.
pub(super) fn find_rename_sources(
    repo: &Repository,
    old: Option<Oid>,
    new: Oid,
    differences: &[TreeDelta],
    origins: RenameDetection,
) -> Result<HashMap<Vec<u8>, RenameSource>, git2::Error> {
    let is_file = |leaf: Option<TreeLeaf>| leaf.is_some_and(TreeLeaf::is_file);
    let added = differences.iter().filter(|difference| difference.old.is_none() && is_file(difference.new)).count();
    let copies = origins == RenameDetection::RenamesAndCopies;
    let from = differences.iter().filter(|file| is_file(file.old) && (copies || file.new.is_none())).count();
    let limit = if copies { MAX_RENAME_CANDIDATES } else { MAX_RENAME_CANDIDATES / 4 };
    let mut sources = HashMap::new();
    if added == 0 || from == 0 {
        return Ok(sources);
    }
    let mut options = DiffOptions::new();
    options.include_typechange(true).skip_binary_check(true).disable_pathspec_match(true);
    for difference in differences {
        options.pathspec(difference.path.as_slice());
    }
    let mut find = DiffFindOptions::new();
    find.renames(true).copies(copies).rename_limit(limit);
    find.exact_match_only(added.saturating_mul(from) > limit * limit);
    let old = old.map(|old| repo.find_tree(old)).transpose()?;
    let new = repo.find_tree(new)?;
    let mut diff = repo.diff_tree_to_tree(old.as_ref(), Some(&new), Some(&mut options))?;
    diff.find_similar(Some(&mut find))?;
    for delta in diff.deltas() {
        let kind = match delta.status() {
            Delta::Renamed => ChangeKind::Renamed,
            Delta::Copied => ChangeKind::Copied,
            _ => continue,
        };
        let (old, new) = (delta.old_file(), delta.new_file());
        if let (Some(old_path), Some(new_path)) = (old.path_bytes(), new.path_bytes()) {
            let leaf = TreeLeaf { mode: u32::from(old.mode()), id: old.id() };
            sources.insert(new_path.to_vec(), RenameSource { kind, path: old_path.to_vec(), leaf });
        }
    }
    Ok(sources)
}

/// Compares a changed file and returns its hunks, or the reason why it is left out and whether the change itself puts it
/// out of sight.
fn compare_file(
    objects: &Repository,
    difference: &TreeDelta,
    new: TreeLeaf,
    source: Option<RenameSource>,
    judge: &mut ChangeFilter,
) -> Result<Result<FileChange, (OmissionReason, bool)>, git2::Error> {
    let moved_from = source.as_ref().filter(|source| source.kind == ChangeKind::Renamed);
    let known = moved_from.map(|source| (source.path.as_slice(), source.leaf));
    let known = known.or_else(|| difference.old.map(|old| (difference.path.as_slice(), old)));
    let verdict = judge.judge(&difference.path, new, known)?;
    let before = source.as_ref().map(|source| source.leaf).or(difference.old).filter(|old| old.is_file());
    let kind = match (&source, difference.old) {
        (Some(source), _) => source.kind,
        (None, None) => ChangeKind::Added,
        (None, Some(_)) => ChangeKind::Modified,
    };
    // An exact copy is as new as a written file, so it has no old side.
    let before = before.filter(|old| kind != ChangeKind::Copied || old.id != new.id);
    let is_same = before.is_some_and(|old| old.id == new.id);
    let before = match verdict {
        ChangeVerdict::LeaveOut { reason, hidden } if hidden || !is_same => return Ok(Err((reason, hidden))),
        ChangeVerdict::LeaveOut { .. } | ChangeVerdict::Review if is_same => {
            return Ok(Err((OmissionReason::NoContentChange, false)));
        }
        ChangeVerdict::ReviewWhole => None,
        ChangeVerdict::LeaveOut { .. } | ChangeVerdict::Review => before,
    };
    let Ok(content) = objects.find_blob(new.id) else { return Ok(Err((OmissionReason::Unreadable, false))) };
    let hunks = match before {
        None => whole_file_hunk(content.content()),
        Some(old) => match objects.find_blob(old.id) {
            Ok(old) => diff_blobs(&old, &content)?,
            Err(_) => return Ok(Err((OmissionReason::Unreadable, false))),
        },
    };
    if hunks.is_empty() {
        return Ok(Err((OmissionReason::NoContentChange, false)));
    }
    Ok(Ok(FileChange {
        path: path_from_bytes(&difference.path),
        old_path: source.map(|source| path_from_bytes(&source.path)),
        kind,
        old_blob: before.map(|old| old.id.to_string()),
        new_blob: new.id.to_string(),
        hunks,
    }))
}

/// Returns the diff options of `git diff`, and treats all content as text.
fn text_diff_options(context: u32) -> DiffOptions {
    let mut options = DiffOptions::new();
    options.context_lines(context).interhunk_lines(0).indent_heuristic(true).force_text(true);
    options
}

fn diff_blobs(old: &Blob, new: &Blob) -> Result<Vec<Hunk>, git2::Error> {
    diff_texts(old.content(), new.content())
}

/// Computes the hunks between two texts, without context.
pub(super) fn diff_texts(old: &[u8], new: &[u8]) -> Result<Vec<Hunk>, git2::Error> {
    let patch = Patch::from_buffers(old, None, new, None, Some(&mut text_diff_options(0)))?;
    (0..patch.num_hunks())
        .map(|at| {
            let (hunk, _) = patch.hunk(at)?;
            Ok(Hunk {
                old_start: hunk.old_start(),
                old_lines: hunk.old_lines(),
                new_start: hunk.new_start(),
                new_lines: hunk.new_lines(),
            })
        })
        .collect()
}

/// Returns the whole file as one hunk; empty for an empty file.
fn whole_file_hunk(content: &[u8]) -> Vec<Hunk> {
    match count_lines(content) {
        0 => Vec::new(),
        lines => vec![Hunk { old_start: 0, old_lines: 0, new_start: 1, new_lines: lines }],
    }
}

fn line_text(content: &[u8]) -> String {
    let content = content.strip_suffix(b"\n").unwrap_or(content);
    String::from_utf8_lossy(content).into_owned()
}
