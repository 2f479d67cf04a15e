//! Where reports lie about: in the snapshot, else in the worktree, where test runs leave them.
//!
//! Invariants: a report in the worktree tells of files that stand there as in the snapshot, and have since it was written;
//! a report is read up to a bound, once for each content: what it says is kept, and is the same as what would be read;
//! what it names is held against the files of the tree. Where there is none, looking for one is all that is done. Of a file
//! is found out once whether it stands: whoever asks twice is answered the same, whatever is written meanwhile.

use std::cell::{OnceCell, RefCell};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::{Covered, SOMEWHERE};
use crate::context::shelf::{Key, Shelf};
use crate::domain::content_hash;
use crate::git::{Entry, EntryKind, Repo, TreeFile};

/// Where reports are usually written.
const PLACES: [&str; 12] = [
    "lcov.info",
    "coverage/lcov.info",
    "coverage/lcov/lcov.info",
    "target/coverage/lcov.info",
    "target/lcov.info",
    "coverage.xml",
    "cobertura.xml",
    "coverage/cobertura-coverage.xml",
    "coverage/cobertura.xml",
    "coverage/coverage.xml",
    "target/site/cobertura/coverage.xml",
    "build/reports/cobertura.xml",
];
/// Folders in which any `.lcov` is a report.
const FOLDERS: [&str; 3] = ["", "coverage", "target/coverage"];
/// More reports are not read.
const MOST: usize = 50;
/// Larger reports are not read, in bytes: that of a million lines is about half of it.
const MAX_BYTES: u64 = 32 << 20;
/// Bytes of what reports say that are kept: a report of a million lines says about one million.
const MOST_KEPT: u64 = 16 << 20;
/// To be raised with any change of how a report is read, and of what is kept of it.
const VERSION: &str = "2";

/// The reports of a repository, the likeliest first. None is read before somebody asks what it says.
#[derive(Debug)]
pub struct Reports {
    root: PathBuf,
    /// Nothing is kept without one.
    folder: Option<PathBuf>,
    found: Vec<Report>,
}

#[derive(Debug)]
struct Report {
    place: Place,
    said: OnceCell<Option<Said>>,
    /// Of one in the worktree: by path whether the file stands there of which it tells.
    stood: RefCell<HashMap<String, bool>>,
}

#[derive(Debug)]
enum Place {
    /// With its blob.
    Tree(String),
    Worktree(PathBuf),
}

/// What a report says.
#[derive(Debug)]
struct Said {
    /// See [`Covered::pack`].
    packed: Vec<u8>,
    /// `None` of one that is of the tree, as the files that it tells of are.
    written: Option<SystemTime>,
}

impl Reports {
    /// Those among `entries`, which are all of a tree by path, and those in the worktree. What they say is kept in `folder`.
    pub fn find(repo: &Repo, entries: &[Entry], folder: Option<&Path>) -> Self {
        let root = repo.root();
        let in_tree = PLACES.iter().filter_map(|place| {
            let at = entries.binary_search_by(|entry| entry.path.as_str().cmp(place)).ok()?;
            let entry = entries.get(at).filter(|entry| entry.kind == EntryKind::File)?;
            Some(Place::Tree(entry.id.clone()))
        });
        let named = FOLDERS.iter().flat_map(|folder| lcov_in(&root.join(folder)));
        let in_worktree = PLACES.iter().map(|place| root.join(place)).filter(|path| is_ordinary(path)).chain(named);
        let found = in_tree.chain(in_worktree.map(Place::Worktree)).take(MOST);
        let found = found.map(|place| Report { place, said: OnceCell::new(), stood: RefCell::default() }).collect();
        Self { root, folder: folder.map(Path::to_owned), found }
    }

    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// What the first report that says anything of `wanted` files says of them. `tree` is all code of the tree, by path.
    pub fn of(
        &self,
        repo: &Repo,
        tree: &[TreeFile],
        wanted: &HashSet<&str>,
        cancelled: &dyn Fn() -> bool,
    ) -> Option<Covered> {
        if self.is_empty() || wanted.is_empty() {
            return None;
        }
        let places = Places::of(tree, wanted);
        let place = |path: &str| {
            let is_awaited = !cancelled();
            is_awaited.then(|| places.of_report(path)).flatten().filter(|path| wanted.contains(path))
        };
        let worktree = repo.files().ok();
        self.found.iter().find_map(|report| {
            if cancelled() {
                return None;
            }
            let said = self.said(repo, report, cancelled)?;
            let mut covered = Covered::unpack(&said.packed, &place)?;
            if let Some(written) = said.written {
                let stands = |path: &str| {
                    let file = worktree.as_ref().zip(places.file(path));
                    file.is_some_and(|(worktree, file)| worktree.has(path, &file.blob, written))
                };
                let mut stood = report.stood.borrow_mut();
                covered.files.retain(|path, _| {
                    !cancelled() && *stood.entry(path.clone()).or_insert_with_key(|path| stands(path))
                });
            }
            (!covered.files.is_empty() && !cancelled()).then_some(covered)
        })
    }

    /// What a report says. One that nobody waited for to the end is read when it is asked for again.
    fn said<'r>(&self, repo: &Repo, report: &'r Report, cancelled: &dyn Fn() -> bool) -> Option<&'r Said> {
        if report.said.get().is_none() {
            let said = self.read(repo, &report.place, cancelled);
            if said.is_none() && cancelled() {
                return None;
            }
            report.said.get_or_init(|| said);
        }
        report.said.get()?.as_ref()
    }

    fn read(&self, repo: &Repo, place: &Place, cancelled: &dyn Fn() -> bool) -> Option<Said> {
        let (sort, id, content, written) = match place {
            Place::Tree(blob) => ("blob", blob.clone(), None, None),
            Place::Worktree(path) => {
                let (content, written) = bounded(path)?;
                ("content", content_hash([content.as_slice()]), Some(content), Some(written))
            }
        };
        let of_blob = || repo.blob_size(&id).is_ok_and(|size| size <= MAX_BYTES).then(|| repo.blob(&id).ok()).flatten();
        let shelf = Shelf::open(self.folder.as_deref(), "coverage", MOST_KEPT);
        // Paths in it may begin with the root.
        let key = Key::of(&["coverage", VERSION, &self.root.to_string_lossy(), sort, &id]);
        let is_whole = |packed: &Vec<u8>| Covered::unpack(packed, &|_| None).is_some();
        let packed = match shelf.get(key).filter(is_whole) {
            Some(packed) => packed,
            None => {
                let content = content.or_else(of_blob)?;
                let packed = Covered::read(&String::from_utf8_lossy(&content), &self.root, cancelled)?.pack();
                shelf.put(key, packed.clone());
                packed
            }
        };
        shelf.close();
        Some(Said { packed, written })
    }
}

/// The files of a tree that somebody wants to know something of.
struct Places<'p> {
    /// By path.
    tree: &'p [TreeFile],
    /// All files of the names that are wanted.
    paths: HashSet<&'p str>,
    by_name: HashMap<&'p str, Vec<&'p str>>,
    /// Of these, in bytes.
    longest: usize,
}

impl<'p> Places<'p> {
    fn of(tree: &'p [TreeFile], wanted: &HashSet<&str>) -> Self {
        let names: HashSet<&str> = wanted.iter().map(|path| name(path)).collect();
        let mut places = Self { tree, paths: HashSet::new(), by_name: HashMap::new(), longest: 0 };
        for path in tree.iter().map(|file| file.path.as_str()).filter(|path| names.contains(name(path))) {
            places.paths.insert(path);
            places.longest = places.longest.max(path.len());
            places.by_name.entry(name(path)).or_default().push(path);
        }
        places
    }

    fn file(&self, path: &str) -> Option<&'p TreeFile> {
        let at = self.tree.binary_search_by(|file| file.path.as_str().cmp(path)).ok()?;
        self.tree.get(at)
    }

    /// The file that a report means. It may have been written on another machine, then its path only ends like the file's,
    /// or from inside of a folder, then the file's path ends like it.
    fn of_report(&self, path: &str) -> Option<&'p str> {
        let of_name = self.by_name.get(name(path))?;
        let ends = |other: &&&str, tail| other.strip_suffix(tail).is_some_and(|rest| rest.ends_with('/'));
        if let Some(tail) = path.strip_prefix(SOMEWHERE) {
            let mut meant = of_name.iter().filter(|other| **other == tail || ends(other, tail));
            return meant.next().copied().filter(|_| meant.next().is_none());
        }
        let tails = path.match_indices('/').map(|(at, _)| path.get(at + 1..).unwrap_or_default());
        let mut tails = std::iter::once(path).chain(tails).skip_while(|tail| tail.len() > self.longest);
        let is_bare = |tail: &str| !tail.contains('/') && path.contains('/');
        let found = tails.find_map(|tail| self.paths.get(tail).copied().filter(|_| !is_bare(tail)));
        found.or_else(|| {
            let mut longer = of_name.iter().filter(|other| ends(other, path));
            longer.next().copied().filter(|_| longer.next().is_none())
        })
    }
}

fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The `.lcov` files of a folder, by name.
fn lcov_in(folder: &Path) -> Vec<PathBuf> {
    const MOST: usize = 10_000;
    let entries = std::fs::read_dir(folder).into_iter().flatten().take(MOST).flatten().map(|entry| entry.path());
    let is_report = |path: &PathBuf| path.extension().is_some_and(|end| end == "lcov") && is_ordinary(path);
    let mut found: Vec<PathBuf> = entries.filter(is_report).collect();
    found.sort();
    found
}

fn is_ordinary(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|data| data.is_file() && data.len() <= MAX_BYTES)
}

/// An ordinary file of bounded size, and when it was written.
fn bounded(path: &Path) -> Option<(Vec<u8>, SystemTime)> {
    if !is_ordinary(path) {
        return None;
    }
    let file = File::open(path).ok()?;
    let written = file.metadata().ok()?.modified().ok()?;
    let mut content = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut content).ok()?;
    Some((content, written))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::fs;
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;
    use crate::context::covered::Share;
    use crate::domain::LineRange;

    fn tree(paths: &[&str]) -> Vec<TreeFile> {
        paths.iter().map(|path| TreeFile { path: (*path).to_owned(), blob: String::new() }).collect()
    }

    #[test]
    fn a_report_is_of_files_of_the_tree_or_of_none() {
        let tree = tree(&["one/only.rs", "src/a.rs", "top.rs", "x/lib.rs", "y/lib.rs"]);
        let wanted = tree.iter().map(|file| file.path.as_str()).collect();
        let places = Places::of(&tree, &wanted);
        for (path, expected) in [
            ("src/a.rs", Some("src/a.rs")),
            ("/ci/build/src/a.rs", Some("src/a.rs")),
            ("../../elsewhere/src/a.rs", Some("src/a.rs")),
            ("lib.rs", None),
            ("only.rs", Some("one/only.rs")),
            ("/usr/lib/top.rs", None),
            ("/etc/passwd", None),
            ("./lib.rs", None),
            ("./x/lib.rs", Some("x/lib.rs")),
            ("./top.rs", Some("top.rs")),
            ("./a.rs", Some("src/a.rs")),
            ("./other/a.rs", None),
            ("", None),
        ] {
            assert_eq!(places.of_report(path), expected, "{path}");
        }
        let twice = self::tree(&["pkg/x.py", "src/pkg/x.py"]);
        let twice = Places::of(&twice, &HashSet::from(["pkg/x.py"]));
        assert_eq!((twice.of_report("pkg/x.py"), twice.of_report("./pkg/x.py")), (Some("pkg/x.py"), None));
        let one = Places::of(&tree, &HashSet::from(["x/lib.rs"]));
        assert_eq!((one.of_report("lib.rs"), one.of_report("x/lib.rs")), (None, Some("x/lib.rs")));
        assert_eq!(one.of_report("src/a.rs"), None, "nobody wants to know");
    }

    /// A worktree with a file of which a report tells.
    struct Sample {
        folder: tempfile::TempDir,
        repo: Repo,
        tree: Vec<TreeFile>,
    }

    impl Sample {
        fn new() -> Self {
            let folder = tempfile::tempdir().expect("a folder");
            git2::Repository::init(folder.path().join("repo")).expect("a repository");
            let repo = Repo::discover(&folder.path().join("repo")).expect("a repository");
            let blob = git2::Oid::hash_object(git2::ObjectType::Blob, b"one\ntwo\n").expect("an id").to_string();
            let tree = vec![TreeFile { path: "a.rs".to_owned(), blob }];
            let sample = Self { folder, repo, tree };
            sample.write("a.rs", "one\ntwo\n", 1);
            sample
        }

        fn write(&self, path: &str, text: &str, seconds: u64) {
            let path = self.repo.root().join(path);
            fs::write(&path, text).expect("a file");
            let file = File::options().write(true).open(&path).expect("the file");
            file.set_modified(UNIX_EPOCH + Duration::from_secs(seconds)).expect("a time");
        }

        fn kept(&self) -> PathBuf {
            self.folder.path().join("kept")
        }

        fn parts(&self) -> Vec<PathBuf> {
            fs::read_dir(self.kept()).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
        }

        fn share(&self, cancelled: bool) -> Option<Share> {
            let reports = Reports::find(&self.repo, &[], Some(&self.kept()));
            let wanted = HashSet::from(["a.rs"]);
            let covered = reports.of(&self.repo, &self.tree, &wanted, &|| cancelled)?;
            covered.share("a.rs", LineRange::new(1, 2))
        }
    }

    #[test]
    fn what_a_report_says_is_kept_by_its_content_and_found_out_again_where_that_is_damaged() {
        let sample = Sample::new();
        assert_eq!(sample.share(false), None);
        assert!(!sample.kept().exists(), "there is nothing to keep");
        let half = Some(Share { reached: 1, of: 2 });
        sample.write("lcov.info", "SF:a.rs\nDA:1,1\nDA:2,0\nend_of_record\n", 2);
        assert_eq!((sample.share(true), sample.share(false)), (None, half));
        let [part] = sample.parts().try_into().expect("one part");
        let whole = fs::read(&part).expect("its bytes");
        assert_eq!((sample.share(false), sample.parts().len()), (half, 1), "read once");
        for at in [9, 60, whole.len() - 1] {
            let mut torn = whole.clone();
            torn[at] ^= 1;
            fs::write(&part, &torn).expect("a damaged part");
            assert_eq!(sample.share(false), half, "byte {at}");
            assert_eq!(fs::read(&part).expect("a part again"), whole, "byte {at}");
        }
        sample.write("lcov.info", "SF:a.rs\nDA:1,1\nDA:2,3\nend_of_record\n", 3);
        assert_eq!((sample.share(false), sample.parts().len()), (Some(Share { reached: 2, of: 2 }), 2));
        sample.write("a.rs", "one\ntwo\n", 4);
        assert_eq!(sample.share(false), None, "the file was written after the report");
    }

    #[test]
    fn a_report_that_nobody_waited_for_is_read_when_it_is_asked_for_again() {
        let sample = Sample::new();
        sample.write("lcov.info", &format!("SF:a.rs\nDA:1,1\n{}", "DA:2,0\n".repeat(20_000)), 2);
        let reports = Reports::find(&sample.repo, &[], None);
        let asked = Cell::new(0);
        let cancelled = || {
            asked.set(asked.get() + 1);
            asked.get() > 3
        };
        let wanted = HashSet::from(["a.rs"]);
        assert_eq!(reports.of(&sample.repo, &sample.tree, &wanted, &cancelled), None);
        let covered = reports.of(&sample.repo, &sample.tree, &wanted, &|| false).expect("a report");
        assert_eq!(covered.share("a.rs", LineRange::new(1, 2)), Some(Share { reached: 1, of: 2 }));
    }

    #[test]
    fn what_is_kept_is_what_is_believed() {
        let sample = Sample::new();
        sample.write("lcov.info", "SF:a.rs\nDA:1,1\nDA:2,0\nend_of_record\n", 2);
        let content = fs::read(sample.repo.root().join("lcov.info")).expect("the report");
        let root = sample.repo.root();
        let key =
            Key::of(&["coverage", VERSION, &root.to_string_lossy(), "content", &content_hash([content.as_slice()])]);
        let shelf = Shelf::open(Some(&sample.kept()), "coverage", MOST_KEPT);
        let other = Covered::read("SF:a.rs\nDA:1,1\n", &root, &|| false).expect("nobody cancels");
        shelf.put(key, other.pack());
        shelf.close();
        assert_eq!(sample.share(false), Some(Share { reached: 1, of: 1 }), "it is not read again");
    }
}
