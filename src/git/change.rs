//! What differs between two trees: renames and copies, what is left out and why, hunks, and the fingerprint.
//!
//! Everything here is read from the object database, so that a worker that comes later sees exactly the same.

use git2::{Delta, DiffFindOptions, DiffOptions, Oid, Patch, Tree};

use super::filter::{Judge, count_lines};
use super::index::MODE_GITLINK;
use super::snapshot::{MODE_EXECUTABLE, MODE_FILE, MODE_SYMLINK};
use super::{Change, ChangeKind, DiffLine, FileChange, Filter, GitError, Hunk, LineOrigin, Repo, Snapshot};
use crate::domain::text::path_from_bytes;
use crate::domain::{LeftOut, LeftOutReason, Scope};

/// Renames with changes are looked for only while added times deleted files are at most this many pairs, as git does
/// (`diff.renameLimit` is 1,000 on each side); above it, files that moved unchanged are still found.
const RENAME_PAIRS: usize = 1_000 * 1_000;

/// Something of the worktree that is not in the snapshot's tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Extra {
    pub path: Vec<u8>,
    pub reason: LeftOutReason,
    /// Mode and bytes of an added file that is too large to be stored.
    pub file: Option<(u32, u64)>,
}

/// One path that differs, before renames are looked for.
struct Raw {
    path: Vec<u8>,
    old: (u32, Oid),
    new: (u32, Oid),
}

impl Repo {
    /// The change between two commits again, as the worker needs it: from immutable objects only.
    /// An empty `base` means that all of the snapshot is new.
    ///
    /// It is what the [`Snapshot`] had, but for files of the worktree that are not in the snapshot's tree (untracked
    /// ones above the size limit, and those that could not be read): only who took the snapshot knows of them.
    pub fn change(&self, base: &str, snapshot: &str, filter: &Filter) -> Result<Change, GitError> {
        let base = if base.is_empty() { None } else { Some(self.commit_id(base)?) };
        let (change, _) = self.compare(base, self.commit_id(snapshot)?, filter)?;
        Ok(change)
    }

    /// A snapshot's record: what changed from `base` to `tip`, with its fingerprint.
    pub(super) fn describe(
        &self,
        base: Option<Oid>,
        tip: Oid,
        extra: Vec<Extra>,
        scope: Scope,
        filter: &Filter,
    ) -> Result<Snapshot, GitError> {
        let (mut change, raw) = self.compare(base, tip, filter)?;
        let diff_fingerprint = self.fingerprint(&raw, &extra, filter)?;
        for extra in extra {
            change.left_out.push(LeftOut { path: path_from_bytes(&extra.path), reason: extra.reason });
        }
        change.left_out.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Snapshot {
            base_commit: base.map(|id| id.to_string()).unwrap_or_default(),
            snapshot_commit: tip.to_string(),
            head_commit: self.head(),
            branch: self.branch(),
            worktree: self.root(),
            scope_hash: scope_hash(&scope, filter),
            scope,
            diff_fingerprint,
            change,
        })
    }

    fn compare(&self, base: Option<Oid>, tip: Oid, filter: &Filter) -> Result<(Change, Vec<Raw>), GitError> {
        let failed = self.failed("compare two trees");
        let tree = |id| self.inner.find_commit(id).and_then(|commit| commit.tree());
        let old = base.map(tree).transpose().map_err(failed)?;
        let new = tree(tip).map_err(failed)?;
        let mut options = DiffOptions::new();
        options.include_typechange(true).skip_binary_check(true).context_lines(0);
        let mut diff = self.inner.diff_tree_to_tree(old.as_ref(), Some(&new), Some(&mut options)).map_err(failed)?;
        let raw: Vec<Raw> = diff.deltas().map(|delta| Raw::of(&delta)).collect();
        if old.is_some() {
            let count = |status| diff.deltas().filter(|delta| delta.status() == status).count();
            let (added, sources) = (count(Delta::Added), count(Delta::Deleted) + count(Delta::Modified));
            if added > 0 && sources > 0 {
                let mut find = DiffFindOptions::new();
                find.renames(true).copies(true).rename_limit(1000);
                find.exact_match_only(added.saturating_mul(sources) > RENAME_PAIRS);
                diff.find_similar(Some(&mut find)).map_err(failed)?;
            }
        }
        let mut change = Change::default();
        let mut judge = self.judge_tree(new, filter);
        for delta in diff.deltas() {
            match self.file(&delta, &mut judge).map_err(failed)? {
                Ok(file) => change.files.push(file),
                Err(left_out) => change.left_out.push(left_out),
            }
        }
        change.files.sort_by(|a, b| a.path.cmp(&b.path));
        change.left_out.sort_by(|a, b| a.path.cmp(&b.path));
        Ok((change, raw))
    }

    /// A changed file with its hunks, or why it is left out.
    fn file(&self, delta: &git2::DiffDelta, judge: &mut Judge) -> Result<Result<FileChange, LeftOut>, git2::Error> {
        let (old, new) = (delta.old_file(), delta.new_file());
        let side = if delta.status() == Delta::Deleted { &old } else { &new };
        let bytes = side.path_bytes().unwrap_or_default();
        let left_out = |reason| Ok(Err(LeftOut { path: path_from_bytes(bytes), reason }));
        if delta.status() == Delta::Deleted {
            return left_out(LeftOutReason::Deleted);
        }
        match u32::from(new.mode()) {
            MODE_GITLINK => return left_out(LeftOutReason::Submodule),
            MODE_SYMLINK => return left_out(LeftOutReason::Symlink),
            _ => {}
        }
        let old_is_file =
            matches!(u32::from(old.mode()), MODE_FILE | MODE_EXECUTABLE | 0o100664) && !old.id().is_zero();
        let same = old_is_file && old.id() == new.id();
        // A file copied whole is as much new code as one that is written: it has no old side.
        let old_blob = match (old_is_file, delta.status()) {
            (false, _) | (_, Delta::Added) => None,
            (true, Delta::Copied) if same => None,
            (true, _) => Some(old.id()),
        };
        if same && old_blob.is_some() {
            return left_out(LeftOutReason::NoContentChange);
        }
        if let Some(reason) = judge.by_name(bytes) {
            return left_out(reason);
        }
        let size = match self.inner.odb()?.read_header(new.id()) {
            Ok((size, _)) => size as u64,
            // A partial clone does not have every content.
            Err(_) => return left_out(LeftOutReason::Unreadable),
        };
        if judge.is_oversized(size) {
            return left_out(LeftOutReason::Oversized);
        }
        let Ok(content) = self.inner.find_blob(new.id()) else { return left_out(LeftOutReason::Unreadable) };
        if let Some(reason) = judge.by_content(bytes, content.content()) {
            return left_out(reason);
        }
        let hunks = match old_blob {
            None => whole(content.content()),
            Some(id) => match self.inner.find_blob(id) {
                Ok(before) => hunks(before.content(), content.content())?,
                Err(_) => return left_out(LeftOutReason::Unreadable),
            },
        };
        if hunks.is_empty() {
            return left_out(LeftOutReason::NoContentChange);
        }
        let kind = match delta.status() {
            Delta::Added => ChangeKind::Added,
            Delta::Renamed => ChangeKind::Renamed,
            Delta::Copied => ChangeKind::Copied,
            _ => ChangeKind::Modified,
        };
        let moved = matches!(kind, ChangeKind::Renamed | ChangeKind::Copied);
        Ok(Ok(FileChange {
            path: path_from_bytes(bytes),
            old_path: moved.then(|| path_from_bytes(old.path_bytes().unwrap_or_default())),
            kind,
            old_blob: old_blob.map(|id| id.to_string()),
            new_blob: new.id().to_string(),
            hunks,
        }))
    }

    /// The lines of a changed file's diff, with `context` unchanged lines around each hunk.
    pub fn file_diff(&self, change: &FileChange, context: u32) -> Result<Vec<DiffLine>, GitError> {
        let old = match &change.old_blob {
            Some(id) => self.blob(id)?,
            None => Vec::new(),
        };
        let new = self.blob(&change.new_blob)?;
        let failed = self.failed("compare two files");
        let mut options = text_options(context);
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
                    // That the last line has no line end.
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

    /// A hash over what changed, left out or not, and over nothing else: neither commits nor the kind of scope, so that
    /// a review of the worktree speaks of the commit made from exactly that.
    ///
    /// Added files above the size limit count with their size, since their content is not always stored.
    fn fingerprint(&self, raw: &[Raw], extra: &[Extra], filter: &Filter) -> Result<String, GitError> {
        let failed = self.failed("read the object database");
        let odb = self.inner.odb().map_err(failed)?;
        let mut lines: Vec<(&[u8], Vec<u8>)> = Vec::with_capacity(raw.len());
        for raw in raw {
            let size = match raw.old.1.is_zero() && raw.new.0 != MODE_GITLINK {
                true => odb.read_header(raw.new.1).map_or(0, |(size, _)| size as u64),
                false => 0,
            };
            lines.push((&raw.path, raw.line(size, filter)));
        }
        for extra in extra {
            if let Some((mode, size)) = extra.file {
                let none = Oid::ZERO_SHA1;
                let raw = Raw { path: extra.path.clone(), old: (0, none), new: (mode, none) };
                lines.push((&extra.path, raw.line(size, filter)));
            }
        }
        lines.sort();
        let mut hash = blake3::Hasher::new();
        for (path, line) in lines {
            hash.update(path);
            // No path has a NUL in it, so that no two lists of changes read the same.
            hash.update(b"\0");
            hash.update(&line);
        }
        Ok(hash.finalize().to_hex().to_string())
    }
}

impl Raw {
    fn of(delta: &git2::DiffDelta) -> Self {
        let side = |file: &git2::DiffFile| match file.id().is_zero() {
            true => (0, file.id()),
            false => (u32::from(file.mode()), file.id()),
        };
        let (old, new) = (delta.old_file(), delta.new_file());
        let path = new.path_bytes().or(old.path_bytes()).unwrap_or_default().to_vec();
        Self { path, old: side(&old), new: side(&new) }
    }

    fn line(&self, added_size: u64, filter: &Filter) -> Vec<u8> {
        let ((old_mode, old), (new_mode, new)) = (self.old, self.new);
        match old.is_zero() && added_size > filter.max_file_bytes {
            true => format!("{new_mode:o} {added_size} bytes\n").into_bytes(),
            false => format!("{old_mode:o} {new_mode:o} {old} {new}\n").into_bytes(),
        }
    }
}

/// What decides, besides the change itself, what is reviewed.
fn scope_hash(scope: &Scope, filter: &Filter) -> String {
    let mut hash = blake3::Hasher::new();
    hash.update(if *scope == Scope::All { b"tree\0" } else { b"change\0" });
    hash.update(&filter.max_file_bytes.to_le_bytes());
    for glob in &filter.ignored_paths {
        hash.update(glob.as_bytes());
        hash.update(b"\0");
    }
    hash.finalize().to_hex().to_string()
}

/// How texts are compared: as `git diff` does, whatever a first look at the bytes makes of them.
fn text_options(context: u32) -> DiffOptions {
    let mut options = DiffOptions::new();
    options.context_lines(context).interhunk_lines(0).indent_heuristic(true).force_text(true);
    options
}

fn hunks(old: &[u8], new: &[u8]) -> Result<Vec<Hunk>, git2::Error> {
    let patch = Patch::from_buffers(old, None, new, None, Some(&mut text_options(0)))?;
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

/// All of a file as one hunk; none for an empty one.
fn whole(content: &[u8]) -> Vec<Hunk> {
    match count_lines(content) {
        0 => Vec::new(),
        lines => vec![Hunk { old_start: 0, old_lines: 0, new_start: 1, new_lines: lines }],
    }
}

fn line_text(content: &[u8]) -> String {
    let content = content.strip_suffix(b"\n").unwrap_or(content);
    String::from_utf8_lossy(content).into_owned()
}

/// The tree of a commit.
pub(super) fn tree_of(repo: &git2::Repository, commit: Oid) -> Result<Tree<'_>, git2::Error> {
    repo.find_commit(commit)?.tree()
}
