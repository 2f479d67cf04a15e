//! The history of a repository for the ranking: read from git once, then kept by the commit that it is the history of,
//! and what commits on top of it changed by these.
//!
//! Invariants: what is kept follows from immutable commits, so that it is right or unreadable, never stale; what git did
//! not have is not kept, since it may come; without a folder everything is read from git.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::slice;

use super::retrieve::history::{History, MOST_FILES, MOST_WORDS, Past, PastFile, Touch, fingerprint};
use super::retrieve::paths::is_code;
use super::retrieve::words::identifiers;
use super::shelf::{Key, Reader, Shelf, Writer};
use crate::git::{Ancestor, GitError, Hunk, PastChange, PastKind, Repo};

/// Bytes of kept histories: one of 3,000 commits takes about one million.
const MOST_KEPT: u64 = 32 << 20;
/// To be raised with any change of what is kept of a commit.
const VERSION: &str = "2";
/// A history that is kept is looked for behind so many of the newest commits.
const RECENT: usize = 200;

/// The commits behind one commit.
#[derive(Debug, Default)]
pub struct Known {
    pub history: History,
    /// By commit: its number in the history.
    numbers: HashMap<String, usize>,
    /// The same, by number.
    commits: Vec<String>,
    parents: HashMap<String, Vec<String>>,
}

/// A commit, and what it changed.
struct Entry {
    ancestor: Ancestor,
    files: Vec<Changed>,
    /// See [`Past::words`].
    words: Vec<u32>,
}

/// A file that a commit changed.
struct Changed {
    path: String,
    touch: Touch,
    hunks: Vec<Hunk>,
}

impl Known {
    /// What `limit` commits behind `tip`, itself included, changed of code. Once it is cancelled, commits have changed
    /// nothing; what was read until then is kept.
    ///
    /// # Errors
    /// A tip that is no commit. What goes wrong with `folder` costs time and nothing else.
    pub fn read(
        repo: &Repo,
        tip: &str,
        limit: usize,
        folder: Option<&Path>,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Self, GitError> {
        let kept = Kept { shelf: Shelf::open(folder, "past", MOST_KEPT), limit, cancelled };
        let entries = match on_top(repo, tip, &kept, &|ancestor| Some(kept.read(repo, ancestor).0)) {
            Some(entries) => entries,
            None => walked(repo, tip, &kept)?,
        };
        kept.shelf.close();
        Ok(Self::of(entries))
    }

    /// The same where all of it is kept: no commit is compared with another.
    pub fn kept(repo: &Repo, tip: &str, limit: usize, folder: &Path) -> Option<Self> {
        let kept = Kept { shelf: Shelf::open(Some(folder), "past", MOST_KEPT), limit, cancelled: &|| false };
        on_top(repo, tip, &kept, &|ancestor| kept.commit(&ancestor.commit)).map(Self::of)
    }

    fn of(entries: Vec<Entry>) -> Self {
        let mut known = Self::default();
        for Entry { ancestor, files, words } in entries {
            if !files.is_empty() {
                known.numbers.insert(ancestor.commit.clone(), known.history.commits.len());
                known.commits.push(ancestor.commit.clone());
                let file =
                    |Changed { path, touch, hunks }| PastFile { path: known.history.path_id(&path), touch, hunks };
                let files = files.into_iter().map(file).collect();
                known.history.commits.push(Past { files, words });
            }
            known.parents.insert(ancestor.commit, ancestor.parents);
        }
        known
    }

    /// A commit of the history, as hexadecimal.
    pub fn commit(&self, number: usize) -> Option<&str> {
        self.commits.get(number).map(String::as_str)
    }

    /// The history's commits that a commit has behind it, itself included, the newest first.
    pub fn before(&self, commit: &str) -> Vec<usize> {
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

/// Histories by their tip, and what single commits changed.
struct Kept<'a> {
    shelf: Shelf,
    limit: usize,
    cancelled: &'a dyn Fn() -> bool,
}

impl Kept<'_> {
    fn history_key(&self, tip: &str) -> Key {
        Key::of(&["past", VERSION, tip, &self.limit.to_string()])
    }

    fn commit_key(commit: &str) -> Key {
        Key::of(&["past", VERSION, commit])
    }

    fn history(&self, tip: &str) -> Option<Vec<Entry>> {
        unpack(&self.shelf.get(self.history_key(tip))?)
    }

    fn put_history(&self, tip: &str, entries: &[Entry]) {
        self.shelf.put(self.history_key(tip), pack(entries));
    }

    fn commit(&self, commit: &str) -> Option<Entry> {
        unpack(&self.shelf.get(Self::commit_key(commit))?)?.pop()
    }

    /// What a commit changed, and how much of that git does not have. Kept by itself: the histories of other tips have it too,
    /// those of older ones as well.
    fn read(&self, repo: &Repo, ancestor: Ancestor) -> (Entry, u32) {
        if let Some(entry) = self.commit(&ancestor.commit) {
            return (entry, 0);
        }
        let (entry, missing) = Entry::read(repo, ancestor, self.cancelled);
        if missing == 0 {
            self.shelf.put(Self::commit_key(&entry.ancestor.commit), pack(slice::from_ref(&entry)));
        }
        (entry, missing)
    }
}

/// The history of a commit a few commits above one whose history is kept, none of them a merge: these few, then that one.
/// It is what [`walked`] has, without a walk, for which git reads every commit that there is.
fn on_top(repo: &Repo, tip: &str, kept: &Kept<'_>, read: &dyn Fn(Ancestor) -> Option<Entry>) -> Option<Vec<Entry>> {
    let mut above: Vec<Ancestor> = Vec::new();
    let mut commit = tip.to_owned();
    let base = loop {
        if let Some(base) = kept.history(&commit) {
            break base;
        }
        let ancestor = repo.ancestor(&commit).ok()?;
        let [parent] = ancestor.parents.as_slice() else { return None };
        commit.clone_from(parent);
        above.push(ancestor);
        if above.len() > RECENT {
            return None;
        }
    };
    let mut entries = above.into_iter().map(read).collect::<Option<Vec<Entry>>>()?;
    entries.extend(base);
    entries.truncate(kept.limit);
    Some(entries)
}

/// The history as git tells it.
fn walked(repo: &Repo, tip: &str, kept: &Kept<'_>) -> Result<Vec<Entry>, GitError> {
    let ancestors = repo.ancestors(tip, kept.limit)?;
    let base = ancestors.iter().take(RECENT).find_map(|ancestor| kept.history(&ancestor.commit)).unwrap_or_default();
    let mut base: HashMap<String, Entry> =
        base.into_iter().map(|entry| (entry.ancestor.commit.clone(), entry)).collect();
    let is_cut_short = ancestors.len() < kept.limit && {
        let known: HashSet<&str> = ancestors.iter().map(|ancestor| ancestor.commit.as_str()).collect();
        ancestors.iter().flat_map(|ancestor| &ancestor.parents).any(|parent| !known.contains(parent.as_str()))
    };
    let mut missing = u32::from(is_cut_short);
    let mut entries = Vec::with_capacity(ancestors.len());
    for ancestor in ancestors {
        let (entry, lacks) =
            base.remove(&ancestor.commit).map_or_else(|| kept.read(repo, ancestor), |entry| (entry, 0));
        missing += lacks;
        entries.push(entry);
    }
    if missing == 0 {
        kept.put_history(tip, &entries);
    }
    Ok(entries)
}

impl Entry {
    /// What a commit changed, and how much of that git does not have.
    fn read(repo: &Repo, ancestor: Ancestor, cancelled: &dyn Fn() -> bool) -> (Self, u32) {
        if cancelled() {
            return (Self::of(ancestor, Vec::new()), 1);
        }
        match repo.past_changes(&ancestor.commit, MOST_FILES, &is_code) {
            Ok(past) => (Self::of(ancestor, past.changes), past.missing),
            Err(_) => (Self::of(ancestor, Vec::new()), 1),
        }
    }

    fn of(ancestor: Ancestor, changes: Vec<PastChange>) -> Self {
        let lines =
            changes.iter().flat_map(|change| &change.hunks).flat_map(|hunk| hunk.removed.iter().chain(&hunk.added));
        let mut words: Vec<u32> = lines.flat_map(|line| identifiers(line)).map(fingerprint).collect();
        words.sort_unstable();
        words.dedup();
        if words.len() > MOST_WORDS {
            words.clear();
        }
        let files = changes.into_iter().map(|change| Changed {
            path: change.path,
            touch: match change.kind {
                PastKind::Added => Touch::Added,
                PastKind::Modified => Touch::Modified,
                PastKind::Deleted => Touch::Deleted,
            },
            hunks: change.hunks.iter().map(|hunk| hunk.place).collect(),
        });
        Self { ancestor, files: files.collect(), words }
    }
}

fn pack(entries: &[Entry]) -> Vec<u8> {
    let mut paths: Vec<&str> = entries.iter().flat_map(|entry| &entry.files).map(|file| file.path.as_str()).collect();
    paths.sort_unstable();
    paths.dedup();
    let mut writer = Writer::default();
    writer.number(paths.len() as u32);
    paths.iter().for_each(|path| writer.text(path));
    writer.number(entries.len() as u32);
    for Entry { ancestor, files, words } in entries {
        writer.text(&ancestor.commit);
        writer.number(ancestor.parents.len() as u32);
        ancestor.parents.iter().for_each(|parent| writer.text(parent));
        writer.number(files.len() as u32);
        for file in files {
            writer.number(paths.binary_search(&file.path.as_str()).unwrap_or_default() as u32);
            writer.number(match file.touch {
                Touch::Added => 0,
                Touch::Modified => 1,
                Touch::Deleted => 2,
            });
            writer.number(file.hunks.len() as u32);
            for hunk in &file.hunks {
                for number in [hunk.old_start, hunk.old_lines, hunk.new_start, hunk.new_lines] {
                    writer.number(number);
                }
            }
        }
        writer.words(words);
    }
    writer.finish()
}

fn unpack(bytes: &[u8]) -> Option<Vec<Entry>> {
    let mut reader = Reader(bytes);
    let paths = (0..reader.count()?).map(|_| reader.text()).collect::<Option<Vec<&str>>>()?;
    let mut entries = Vec::new();
    for _ in 0..reader.count()? {
        let commit = reader.text()?.to_owned();
        let parents =
            (0..reader.count()?).map(|_| reader.text().map(str::to_owned)).collect::<Option<Vec<String>>>()?;
        let mut files = Vec::new();
        for _ in 0..reader.count()? {
            let path = (*paths.get(reader.number()? as usize)?).to_owned();
            let touch = match reader.number()? {
                0 => Touch::Added,
                1 => Touch::Modified,
                2 => Touch::Deleted,
                _ => return None,
            };
            let mut hunks = Vec::new();
            for _ in 0..reader.count()? {
                let mut next = || reader.number();
                let (old_start, old_lines, new_start, new_lines) = (next()?, next()?, next()?, next()?);
                hunks.push(Hunk { old_start, old_lines, new_start, new_lines });
            }
            files.push(Changed { path, touch, hunks });
        }
        entries.push(Entry { ancestor: Ancestor { commit, parents }, files, words: reader.words()? });
    }
    Some(entries)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;
    use crate::context::remarks::LastChanges;
    use crate::domain::LineRange;

    /// A repository in which each commit changes a line of a file.
    struct Sample {
        folder: tempfile::TempDir,
        git: git2::Repository,
    }

    impl Sample {
        fn new(commits: usize) -> Self {
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

        fn tip(&self) -> String {
            self.git.head().expect("a head").target().expect("a commit").to_string()
        }

        fn object(&self, number: usize) -> PathBuf {
            let id = git2::Oid::hash_object(git2::ObjectType::Blob, Self::text(number).as_bytes());
            let id = id.expect("an id").to_string();
            let (folder, name) = id.split_at(2);
            self.git.path().join("objects").join(folder).join(name)
        }

        fn read(&self) -> Known {
            let repo = Repo::discover(self.git.path()).expect("a repository");
            Known::read(&repo, &self.tip(), 100, Some(&self.folder.path().join("kept")), &|| false).expect("a history")
        }
    }

    fn hunks(known: &Known) -> Vec<usize> {
        known.history.commits.iter().map(|commit| commit.files.iter().map(|file| file.hunks.len()).sum()).collect()
    }

    #[test]
    fn what_git_does_not_have_is_not_kept_as_if_nothing_had_changed() {
        let sample = Sample::new(3);
        let (object, aside) = (sample.object(1), sample.folder.path().join("aside"));
        fs::rename(&object, &aside).expect("an object that is gone");
        assert_eq!(hunks(&sample.read()), [0, 0, 1], "the lines of two commits cannot be had");
        fs::rename(&aside, &object).expect("an object that has come");
        assert_eq!(hunks(&sample.read()), [1, 1, 1]);
    }

    #[test]
    fn what_is_kept_is_the_same_and_serves_later_commits() {
        let sample = Sample::new(5);
        let read = sample.read();
        fs::remove_file(sample.object(1)).expect("an object that is gone");
        let kept = sample.read();
        assert_eq!(hunks(&kept), [1; 5]);
        assert_eq!(kept.history.commits, read.history.commits);
        assert_eq!((kept.numbers, kept.parents), (read.numbers, read.parents));
        sample.commit(5);
        let later = sample.read();
        assert_eq!(hunks(&later), [1; 6]);
        assert_eq!(later.before(&sample.tip()), [0, 1, 2, 3, 4, 5]);
        assert_eq!(later.history.commits[1..], read.history.commits);
    }

    #[test]
    fn what_is_kept_is_had_by_itself_where_it_is_all() {
        let sample = Sample::new(3);
        let repo = Repo::discover(sample.git.path()).expect("a repository");
        let folder = sample.folder.path().join("kept");
        let kept = || Known::kept(&repo, &sample.tip(), 100, &folder);
        assert!(kept().is_none());
        for number in 3..5 {
            let read = sample.read();
            let kept = kept().expect("all of it");
            assert_eq!(kept.history.commits, read.history.commits);
            assert_eq!((kept.numbers, kept.parents), (read.numbers, read.parents));
            sample.commit(number);
            assert!(Known::kept(&repo, &sample.tip(), 100, &folder).is_none(), "what is new was not read");
        }
    }

    #[test]
    fn no_more_of_the_past_is_looked_at_than_there_is_time_for() {
        let sample = Sample::new(5);
        let repo = Repo::discover(sample.git.path()).expect("a repository");
        let known = sample.read();
        let before = known.before(&sample.tip());
        let changed = |line: u32, most: usize| {
            let mut changes = LastChanges::of(&repo, (&known, &before), ["main.rs"].into_iter(), most);
            changes.of_lines("main.rs", LineRange::new(line, line)).map(|change| change.commit)
        };
        assert_eq!(changed(2, 2), Some(sample.tip()));
        assert_eq!((changed(1, usize::MAX), changed(1, 9)), (known.commit(4).map(str::to_owned), None));
    }

    #[test]
    fn what_is_kept_serves_the_histories_of_older_commits() {
        let sample = Sample::new(3);
        let older = sample.tip();
        (3..5).for_each(|number| drop(sample.commit(number)));
        sample.read();
        fs::remove_file(sample.object(1)).expect("an object that is gone");
        let repo = Repo::discover(sample.git.path()).expect("a repository");
        let kept = sample.folder.path().join("kept");
        let read = Known::read(&repo, &older, 100, Some(&kept), &|| false).expect("a history");
        assert_eq!(hunks(&read), [1; 3]);
    }

    #[test]
    fn a_history_on_top_of_one_that_is_kept_is_the_one_that_git_tells() {
        let sample = Sample::new(3);
        let fork = sample.tip();
        (3..6).for_each(|number| drop(sample.commit(number)));
        let side = sample.commit_on(6, &[&fork]);
        let merge = sample.commit_on(7, &[&sample.tip(), &side]);
        let repo = Repo::discover(sample.git.path()).expect("a repository");
        for (limit, folder) in [(100, "whole"), (6, "cut")] {
            let folder = sample.folder.path().join(folder);
            let mut tip = merge.clone();
            for number in 8..11 {
                let kept = Known::read(&repo, &tip, limit, Some(&folder), &|| false).expect("a history");
                let told = Known::read(&repo, &tip, limit, None, &|| false).expect("a history");
                assert_eq!(kept.history.commits, told.history.commits);
                assert_eq!((kept.numbers, kept.parents), (told.numbers, told.parents));
                tip = sample.commit_on(number, &[&tip]);
            }
        }
    }
}
