//! Loads the history of a repository for the ranking: from git once, then from a cache by tip commit; new commits are
//! cached one by one.
//!
//! - A cached record depends only on immutable commits, so it is correct or unreadable, never outdated.
//! - A commit whose objects git does not have is not cached, because they may arrive later.
//! - Without a folder everything is read from git.
//! - Reading can be stopped. Commits read before that are cached, so the next reading goes on behind them.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::slice;
use std::sync::{Mutex, PoisonError};

use rayon::ThreadPool;

use crate::git::{CommitAncestor, CommitFileChange, CommitFileChangeKind, GitError, Hunk, Repo};
use crate::index::codec::{PackedReader, PackedWriter};
use crate::index::fact_store::{FactKey, FactStore};
use crate::index::history::{
    History, MAX_FILES_PER_COMMIT, MAX_WORDS_PER_COMMIT, PastCommit, PastFile, Touch, fingerprint,
};
use crate::index::words::identifiers;
use crate::masking::has_secret_name;
use crate::parallel;
use crate::syntax::facts::is_code_path;

/// Largest cache in bytes; a history of 3,000 commits takes about one megabyte.
const MAX_CACHE_BYTES: u64 = 32 << 20;
/// Cache version. Increase it with every change of the record.
const RECORD_VERSION: &str = "3";
/// Most commits above a cached history; the cache is searched only from the newest commits.
const MAX_COMMITS_ABOVE_CACHED: usize = 200;
/// Number of commits between two checks whether to stop; takes 5 to 50 ms.
const COMMITS_PER_BATCH: usize = 16;

/// Share of the wanted commits that a history holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HistoryCompleteness {
    /// All of them, as far as git has their objects.
    #[default]
    Whole,
    /// Reading was stopped before all of them were read.
    Part {
        /// Number of commits that were read.
        commits: u32,
        /// Number of wanted commits.
        total: u32,
    },
}

/// History of a commit with its ancestors.
#[derive(Debug, Default)]
pub struct RepoHistory {
    pub history: History,
    pub completeness: HistoryCompleteness,
    /// Position of each commit in the history.
    numbers: HashMap<String, usize>,
    /// Commit id of each position in the history.
    commits: Vec<String>,
    parents: HashMap<String, Vec<String>>,
}

/// A commit with its changes.
struct CachedCommit {
    ancestor: CommitAncestor,
    files: Vec<CachedCommitFile>,
    /// See [`PastCommit::words`].
    words: Vec<u32>,
}

/// File that a commit changed.
struct CachedCommitFile {
    path: String,
    touch: Touch,
    hunks: Vec<Hunk>,
}

impl RepoHistory {
    /// Reads the code changes of up to `limit` commits: `tip` and its ancestors. After `stopped` returns true, only the
    /// cached ones of the remaining commits have their changes; see [`RepoHistory::completeness`].
    ///
    /// # Errors
    /// Fails if `tip` is not a commit. A failure of the cache in `folder` costs only time.
    pub fn read(
        repo: &Repo,
        tip: &str,
        limit: usize,
        folder: Option<&Path>,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Self, GitError> {
        let kept = HistoryCache::open(folder, limit, stopped);
        let read = |above| Some(kept.read_commits(repo, above, HashMap::new()).0);
        let entries = match extend_cached_history(repo, tip, &kept, &read) {
            Some(entries) => entries,
            None => walk_history(repo, tip, &kept)?,
        };
        let (total, unread) = (entries.len() as u32, kept.unread.get());
        kept.cache.close();
        let completeness = match unread {
            0 => HistoryCompleteness::Whole,
            unread => HistoryCompleteness::Part { commits: total.saturating_sub(unread), total },
        };
        Ok(Self { completeness, ..Self::from_cached_commits(entries) })
    }

    /// Returns the same history if it is completely cached; compares no commits.
    pub fn read_cached(repo: &Repo, tip: &str, limit: usize, folder: &Path) -> Option<Self> {
        let kept = HistoryCache::open(Some(folder), limit, &|| false);
        let load = |above: Vec<CommitAncestor>| above.iter().map(|above| kept.load_commit(&above.commit)).collect();
        extend_cached_history(repo, tip, &kept, &load).map(Self::from_cached_commits)
    }

    fn from_cached_commits(entries: Vec<CachedCommit>) -> Self {
        let mut known = Self::default();
        for CachedCommit { ancestor, files, words } in entries {
            if !files.is_empty() {
                known.numbers.insert(ancestor.commit.clone(), known.history.commits.len());
                known.commits.push(ancestor.commit.clone());
                let file = |CachedCommitFile { path, touch, hunks }| PastFile {
                    path: known.history.intern_path(&path),
                    touch,
                    hunks,
                };
                let files = files.into_iter().map(file).collect();
                known.history.commits.push(PastCommit { files, words });
            }
            known.parents.insert(ancestor.commit, ancestor.parents);
        }
        known
    }

    /// Returns the hexadecimal id of a commit in the history.
    pub fn commit(&self, number: usize) -> Option<&str> {
        self.commits.get(number).map(String::as_str)
    }

    /// Returns the positions of `commit` and its ancestors in the history, newest first.
    pub fn ancestors(&self, commit: &str) -> Vec<usize> {
        let mut seen: HashSet<&str> = HashSet::new();
        let mut open = vec![commit];
        let mut before = Vec::new();
        while let Some(commit) = open.pop() {
            let Some((commit, parents)) = self.parents.get_key_value(commit) else { continue };
            if seen.insert(commit) {
                before.extend(self.numbers.get(commit));
                open.extend(parents.iter().map(String::as_str));
            }
        }
        before.sort_unstable();
        before
    }
}

/// Cache of histories by tip, and of the changes of single commits.
struct HistoryCache<'a> {
    cache: FactStore,
    limit: usize,
    stopped: &'a dyn Fn() -> bool,
    /// Number of commits that were not read because reading was stopped.
    unread: Cell<u32>,
}

impl<'a> HistoryCache<'a> {
    fn open(folder: Option<&Path>, limit: usize, stopped: &'a dyn Fn() -> bool) -> Self {
        let cache = FactStore::open(folder, "past", MAX_CACHE_BYTES);
        Self { cache, limit, stopped, unread: Cell::new(0) }
    }

    fn history_key(&self, tip: &str) -> FactKey {
        FactKey::from_parts(&["past", RECORD_VERSION, tip, &self.limit.to_string()])
    }

    fn commit_key(commit: &str) -> FactKey {
        FactKey::from_parts(&["past", RECORD_VERSION, commit])
    }

    fn load_history(&self, tip: &str) -> Option<Vec<CachedCommit>> {
        unpack_commits(&self.cache.get(self.history_key(tip))?)
    }

    fn store_history(&self, tip: &str, entries: &[CachedCommit]) {
        self.cache.insert(self.history_key(tip), pack_commits(entries));
    }

    fn load_commit(&self, commit: &str) -> Option<CachedCommit> {
        unpack_commits(&self.cache.get(Self::commit_key(commit))?)?.pop()
    }

    /// Returns the changes of commits, from `known`, the cache or git, and the number of objects that could not be read.
    /// Single commits are cached because other histories, also of older tips, contain them.
    fn read_commits(
        &self,
        repo: &Repo,
        ancestors: Vec<CommitAncestor>,
        mut known: HashMap<String, CachedCommit>,
    ) -> (Vec<CachedCommit>, u32) {
        let load = |ancestor: &CommitAncestor| known.remove(&ancestor.commit);
        let mut entries: Vec<Option<CachedCommit>> = ancestors.iter().map(load).collect();
        for (entry, ancestor) in entries.iter_mut().zip(&ancestors).filter(|(entry, _)| entry.is_none()) {
            *entry = self.load_commit(&ancestor.commit);
        }
        let unknown: Vec<usize> = (0..entries.len()).filter(|at| entries[*at].is_none()).collect();
        let reader = CommitReader::new(repo, unknown.len());
        let mut missing = 0;
        for (number, batch) in unknown.chunks(COMMITS_PER_BATCH).enumerate() {
            if (self.stopped)() {
                self.unread.set((unknown.len() - number * COMMITS_PER_BATCH) as u32);
                break;
            }
            let wanted: Vec<&CommitAncestor> = batch.iter().map(|at| &ancestors[*at]).collect();
            for (at, (entry, lacks)) in batch.iter().zip(reader.read(repo, &wanted)) {
                if lacks == 0 {
                    self.cache.insert(Self::commit_key(&entry.ancestor.commit), pack_commits(slice::from_ref(&entry)));
                }
                missing += lacks;
                entries[*at] = Some(entry);
            }
        }
        let without_changes = |(entry, ancestor): (Option<CachedCommit>, CommitAncestor)| {
            entry.unwrap_or_else(|| CachedCommit::from_changes(ancestor, Vec::new()))
        };
        let entries = entries.into_iter().zip(ancestors).map(without_changes).collect();
        (entries, missing + self.unread.get())
    }
}

/// Reads commits from git, many of them on several threads, each with its own open repository.
struct CommitReader {
    /// Repositories that no thread uses. Empty if the commits are few: to open a repository takes as long as to read
    /// some commits.
    idle: Mutex<Vec<Repo>>,
}

impl CommitReader {
    fn new(repo: &Repo, commits: usize) -> Self {
        let threads =
            if commits > COMMITS_PER_BATCH { parallel::pool().map_or(0, ThreadPool::current_num_threads) } else { 0 };
        Self { idle: Mutex::new((0..threads).map_while(|_| repo.reopen().ok()).collect()) }
    }

    /// Returns the changes of each commit with the number of objects that git does not have.
    fn read(&self, repo: &Repo, commits: &[&CommitAncestor]) -> Vec<(CachedCommit, u32)> {
        let lock = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let read_there = |ancestor: &&CommitAncestor| {
            let repo = lock().pop()?;
            let read = CachedCommit::read(&repo, ancestor);
            lock().push(repo);
            Some(read)
        };
        let is_alone = lock().is_empty();
        let read = if is_alone { Vec::new() } else { parallel::map(commits, read_there) };
        let read = read.into_iter().chain(std::iter::repeat_with(|| None));
        commits
            .iter()
            .zip(read)
            .map(|(ancestor, read)| read.unwrap_or_else(|| CachedCommit::read(repo, ancestor)))
            .collect()
    }
}

/// Extends the cached history of a commit a few commits below `tip`, if there is no merge between. Gives the same
/// result as [`walk_history`], for which git must read every commit.
fn extend_cached_history(
    repo: &Repo,
    tip: &str,
    kept: &HistoryCache<'_>,
    read: &dyn Fn(Vec<CommitAncestor>) -> Option<Vec<CachedCommit>>,
) -> Option<Vec<CachedCommit>> {
    let mut above: Vec<CommitAncestor> = Vec::new();
    let mut commit = tip.to_owned();
    let base = loop {
        if let Some(base) = kept.load_history(&commit) {
            break base;
        }
        let ancestor = repo.ancestor(&commit).ok()?;
        let [parent] = ancestor.parents.as_slice() else { return None };
        commit.clone_from(parent);
        above.push(ancestor);
        if above.len() > MAX_COMMITS_ABOVE_CACHED {
            return None;
        }
    };
    let mut entries = read(above)?;
    entries.extend(base);
    entries.truncate(kept.limit);
    Some(entries)
}

/// Reads the history from git.
fn walk_history(repo: &Repo, tip: &str, kept: &HistoryCache<'_>) -> Result<Vec<CachedCommit>, GitError> {
    let ancestors = repo.ancestors(tip, kept.limit)?;
    let base = ancestors
        .iter()
        .take(MAX_COMMITS_ABOVE_CACHED)
        .find_map(|ancestor| kept.load_history(&ancestor.commit))
        .unwrap_or_default();
    let base: HashMap<String, CachedCommit> =
        base.into_iter().map(|entry| (entry.ancestor.commit.clone(), entry)).collect();
    let is_cut_short = ancestors.len() < kept.limit && {
        let known: HashSet<&str> = ancestors.iter().map(|ancestor| ancestor.commit.as_str()).collect();
        ancestors.iter().flat_map(|ancestor| &ancestor.parents).any(|parent| !known.contains(parent.as_str()))
    };
    let (entries, missing) = kept.read_commits(repo, ancestors, base);
    let missing = missing + u32::from(is_cut_short);
    if missing == 0 {
        kept.store_history(tip, &entries);
    }
    Ok(entries)
}

impl CachedCommit {
    /// Reads the changes of a commit and the number of objects that git does not have.
    fn read(repo: &Repo, ancestor: &CommitAncestor) -> (Self, u32) {
        match repo.commit_changes(&ancestor.commit, MAX_FILES_PER_COMMIT, &is_code_path) {
            Ok(past) => (Self::from_changes(ancestor.clone(), past.changes), past.missing),
            Err(_) => (Self::from_changes(ancestor.clone(), Vec::new()), 1),
        }
    }

    fn from_changes(ancestor: CommitAncestor, changes: Vec<CommitFileChange>) -> Self {
        let lines =
            changes.iter().flat_map(|change| &change.hunks).flat_map(|hunk| hunk.removed.iter().chain(&hunk.added));
        let mut words: Vec<u32> = lines.flat_map(|line| identifiers(line)).map(fingerprint).collect();
        words.sort_unstable();
        words.dedup();
        if words.len() > MAX_WORDS_PER_COMMIT {
            words.clear();
        }
        // A path with a secret must not be kept.
        let changes = changes.into_iter().filter(|change| !has_secret_name(&change.path));
        let files = changes.map(|change| CachedCommitFile {
            path: change.path,
            touch: match change.kind {
                CommitFileChangeKind::Added => Touch::Added,
                CommitFileChangeKind::Modified => Touch::Modified,
                CommitFileChangeKind::Deleted => Touch::Deleted,
            },
            hunks: change.hunks.iter().map(|hunk| hunk.range).collect(),
        });
        Self { ancestor, files: files.collect(), words }
    }
}

fn pack_commits(entries: &[CachedCommit]) -> Vec<u8> {
    let mut paths: Vec<&str> = entries.iter().flat_map(|entry| &entry.files).map(|file| file.path.as_str()).collect();
    paths.sort_unstable();
    paths.dedup();
    let mut writer = PackedWriter::default();
    writer.write_varint(paths.len() as u32);
    paths.iter().for_each(|path| writer.write_str(path));
    writer.write_varint(entries.len() as u32);
    for CachedCommit { ancestor, files, words } in entries {
        writer.write_str(&ancestor.commit);
        writer.write_varint(ancestor.parents.len() as u32);
        ancestor.parents.iter().for_each(|parent| writer.write_str(parent));
        writer.write_varint(files.len() as u32);
        for file in files {
            writer.write_varint(paths.binary_search(&file.path.as_str()).unwrap_or_default() as u32);
            writer.write_varint(match file.touch {
                Touch::Added => 0,
                Touch::Modified => 1,
                Touch::Deleted => 2,
            });
            writer.write_varint(file.hunks.len() as u32);
            for hunk in &file.hunks {
                for number in [hunk.old_start, hunk.old_lines, hunk.new_start, hunk.new_lines] {
                    writer.write_varint(number);
                }
            }
        }
        writer.write_u32s(words);
    }
    writer.finish()
}

fn unpack_commits(bytes: &[u8]) -> Option<Vec<CachedCommit>> {
    let mut reader = PackedReader(bytes);
    let paths = (0..reader.read_count()?).map(|_| reader.read_str()).collect::<Option<Vec<&str>>>()?;
    let mut entries = Vec::new();
    for _ in 0..reader.read_count()? {
        let commit = reader.read_str()?.to_owned();
        let parents =
            (0..reader.read_count()?).map(|_| reader.read_str().map(str::to_owned)).collect::<Option<Vec<String>>>()?;
        let mut files = Vec::new();
        for _ in 0..reader.read_count()? {
            let path = (*paths.get(reader.read_varint()? as usize)?).to_owned();
            let touch = match reader.read_varint()? {
                0 => Touch::Added,
                1 => Touch::Modified,
                2 => Touch::Deleted,
                _ => return None,
            };
            let mut hunks = Vec::new();
            for _ in 0..reader.read_count()? {
                let mut next = || reader.read_varint();
                let (old_start, old_lines, new_start, new_lines) = (next()?, next()?, next()?, next()?);
                hunks.push(Hunk { old_start, old_lines, new_start, new_lines });
            }
            files.push(CachedCommitFile { path, touch, hunks });
        }
        entries.push(CachedCommit { ancestor: CommitAncestor { commit, parents }, files, words: reader.read_u32s()? });
    }
    Some(entries)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;

    /// A repository in which each commit changes one line of a file.
    pub(crate) struct HistoryFixture {
        folder: tempfile::TempDir,
        git: git2::Repository,
    }

    impl HistoryFixture {
        pub(crate) fn new(commits: usize) -> Self {
            let folder = tempfile::tempdir().expect("a folder");
            let git = git2::Repository::init_bare(folder.path().join("a.git")).expect("a repository");
            git.set_head("refs/heads/main").expect("a branch to be");
            let sample = Self { folder, git };
            (0..commits).for_each(|number| drop(sample.commit(number)));
            sample
        }

        fn text(number: usize) -> String {
            format!("fn main() {{\n    step_{number}();\n}}\n")
        }

        fn commit(&self, number: usize) -> String {
            let head = self.git.head().ok().map(|_| self.tip());
            let commit = self.commit_on(number, &head.iter().map(String::as_str).collect::<Vec<_>>());
            let id = git2::Oid::from_str(&commit).expect("an id");
            self.git.reference("refs/heads/main", id, true, "").expect("a branch");
            commit
        }

        fn commit_on(&self, number: usize, parents: &[&str]) -> String {
            let blob = self.git.blob(Self::text(number).as_bytes()).expect("a blob");
            let mut tree = self.git.treebuilder(None).expect("a builder");
            tree.insert("main.rs", blob, 0o100_644).expect("an entry");
            let tree = self.git.find_tree(tree.write().expect("a tree")).expect("the tree");
            let who = git2::Signature::new("a", "a@example.org", &git2::Time::new(number as i64, 0)).expect("a name");
            let id = |parent: &&str| git2::Oid::from_str(parent).expect("an id");
            let parent = |parent: &&str| self.git.find_commit(id(parent)).expect("a commit");
            let parents: Vec<git2::Commit<'_>> = parents.iter().map(parent).collect();
            let parents: Vec<&git2::Commit<'_>> = parents.iter().collect();
            self.git.commit(None, &who, &who, "a", &tree, &parents).expect("a commit").to_string()
        }

        pub(crate) fn tip(&self) -> String {
            self.git.head().expect("a head").target().expect("a commit").to_string()
        }

        pub(crate) fn repo(&self) -> Repo {
            Repo::discover(self.git.path()).expect("a repository")
        }

        fn object(&self, number: usize) -> PathBuf {
            let id = git2::Oid::hash_object(git2::ObjectType::Blob, Self::text(number).as_bytes());
            let id = id.expect("an id").to_string();
            let (folder, name) = id.split_at(2);
            self.git.path().join("objects").join(folder).join(name)
        }

        pub(crate) fn read(&self) -> RepoHistory {
            let repo = self.repo();
            RepoHistory::read(&repo, &self.tip(), 100, Some(&self.folder.path().join("kept")), &|| false)
                .expect("a history")
        }
    }

    fn hunks(known: &RepoHistory) -> Vec<usize> {
        known.history.commits.iter().map(|commit| commit.files.iter().map(|file| file.hunks.len()).sum()).collect()
    }

    #[test]
    fn what_git_does_not_have_is_not_kept_as_if_nothing_had_changed() {
        let sample = HistoryFixture::new(3);
        let (object, aside) = (sample.object(1), sample.folder.path().join("aside"));
        fs::rename(&object, &aside).expect("an object that is gone");
        assert_eq!(hunks(&sample.read()), [0, 0, 1], "the lines of two commits cannot be had");
        fs::rename(&aside, &object).expect("an object that has come");
        assert_eq!(hunks(&sample.read()), [1, 1, 1]);
    }

    #[test]
    fn what_is_kept_is_the_same_and_serves_later_commits() {
        let sample = HistoryFixture::new(5);
        let read = sample.read();
        fs::remove_file(sample.object(1)).expect("an object that is gone");
        let kept = sample.read();
        assert_eq!(hunks(&kept), [1; 5]);
        assert_eq!(kept.history.commits, read.history.commits);
        assert_eq!((kept.numbers, kept.parents), (read.numbers, read.parents));
        sample.commit(5);
        let later = sample.read();
        assert_eq!(hunks(&later), [1; 6]);
        assert_eq!(later.ancestors(&sample.tip()), [0, 1, 2, 3, 4, 5]);
        assert_eq!(later.history.commits[1..], read.history.commits);
    }

    #[test]
    fn what_is_kept_is_had_by_itself_where_it_is_all() {
        let sample = HistoryFixture::new(3);
        let repo = sample.repo();
        let folder = sample.folder.path().join("kept");
        let kept = || RepoHistory::read_cached(&repo, &sample.tip(), 100, &folder);
        assert!(kept().is_none());
        for number in 3..5 {
            let read = sample.read();
            let kept = kept().expect("all of it");
            assert_eq!(kept.history.commits, read.history.commits);
            assert_eq!((kept.numbers, kept.parents), (read.numbers, read.parents));
            sample.commit(number);
            assert!(RepoHistory::read_cached(&repo, &sample.tip(), 100, &folder).is_none(), "what is new was not read");
        }
    }

    #[test]
    fn what_is_kept_serves_the_histories_of_older_commits() {
        let sample = HistoryFixture::new(3);
        let older = sample.tip();
        (3..5).for_each(|number| drop(sample.commit(number)));
        sample.read();
        fs::remove_file(sample.object(1)).expect("an object that is gone");
        let repo = sample.repo();
        let kept = sample.folder.path().join("kept");
        let read = RepoHistory::read(&repo, &older, 100, Some(&kept), &|| false).expect("a history");
        assert_eq!(hunks(&read), [1; 3]);
    }

    #[test]
    fn a_history_on_top_of_one_that_is_kept_is_the_one_that_git_tells() {
        let sample = HistoryFixture::new(3);
        let fork = sample.tip();
        (3..6).for_each(|number| drop(sample.commit(number)));
        let side = sample.commit_on(6, &[&fork]);
        let merge = sample.commit_on(7, &[&sample.tip(), &side]);
        let repo = sample.repo();
        for (limit, folder) in [(100, "whole"), (6, "cut")] {
            let folder = sample.folder.path().join(folder);
            let mut tip = merge.clone();
            for number in 8..11 {
                let kept = RepoHistory::read(&repo, &tip, limit, Some(&folder), &|| false).expect("a history");
                let told = RepoHistory::read(&repo, &tip, limit, None, &|| false).expect("a history");
                assert_eq!(kept.history.commits, told.history.commits);
                assert_eq!((kept.numbers, kept.parents), (told.numbers, told.parents));
                tip = sample.commit_on(number, &[&tip]);
            }
        }
    }

    #[test]
    fn a_history_that_is_stopped_says_what_it_has_and_the_next_one_goes_on() {
        const COMMITS: usize = 3 * COMMITS_PER_BATCH + 5;
        let sample = HistoryFixture::new(COMMITS);
        let (repo, tip) = (sample.repo(), sample.tip());
        let folder = sample.folder.path().join("kept");
        let read_batches = |batches: usize| {
            let looks = Cell::new(0);
            let stopped = || looks.replace(looks.get() + 1) >= batches;
            RepoHistory::read(&repo, &tip, 100, Some(&folder), &stopped).expect("a history")
        };
        let part = |batches: usize| HistoryCompleteness::Part {
            commits: (batches * COMMITS_PER_BATCH) as u32,
            total: COMMITS as u32,
        };
        let first = read_batches(0);
        assert_eq!((first.completeness, hunks(&first)), (part(0), Vec::new()));
        // Each reading finds the commits of those before it.
        for known in 1..=3 {
            let read = read_batches(1);
            let count = known * COMMITS_PER_BATCH;
            assert_eq!((read.completeness, hunks(&read)), (part(known), vec![1; count]));
            assert_eq!(read.ancestors(&tip).len(), count);
            assert!(RepoHistory::read_cached(&repo, &tip, 100, &folder).is_none(), "a part is not kept as the whole");
        }
        let whole = read_batches(9);
        assert_eq!(whole.completeness, HistoryCompleteness::Whole);
        let expected = RepoHistory::read(&repo, &tip, 100, None, &|| false).expect("a history");
        assert_eq!(whole.history.commits, expected.history.commits);
        assert_eq!((&whole.numbers, &whole.parents), (&expected.numbers, &expected.parents));
        // Nothing is read any more, so nothing can be stopped.
        assert_eq!(read_batches(0).completeness, HistoryCompleteness::Whole);
    }
}
