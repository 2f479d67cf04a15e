//! Finds coverage reports in the snapshot, and otherwise in the worktree, where test runs leave them.
//!
//! - A report in the worktree counts only for files that are the same in worktree and snapshot and have not changed
//!   since the report was written.
//! - A report is read up to a size limit and once per content. The parsed form is cached and equals what a new read
//!   would give.
//! - File names of a report are matched with the files of the tree.
//! - Without a report, the only cost is looking for one.
//! - Each file is checked only once for changes, so that repeated questions get the same answer although files are
//!   being written.

use std::cell::{OnceCell, RefCell};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::{TestCoverage, UNKNOWN_FOLDER};
use crate::domain::content_hash;
use crate::git::{EntryKind, Repo, TreeFile, TreeListingEntry};
use crate::index::fact_store::{FactKey, FactStore};

/// Usual paths of reports.
const REPORT_PATHS: [&str; 12] = [
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
/// Folders in which every `.lcov` file is a report.
const LCOV_FOLDERS: [&str; 3] = ["", "coverage", "target/coverage"];
/// Most reports that are used.
const MAX_REPORTS: usize = 50;
/// Largest report in bytes; the report of a million lines has about half of this size.
const MAX_REPORT_BYTES: u64 = 32 << 20;
/// Largest cache in bytes; the parsed report of a million lines takes about one megabyte.
const MAX_CACHE_BYTES: u64 = 16 << 20;
/// Cache version. Increase it with every change of the parser or of the encoding.
const RECORD_VERSION: &str = "2";

/// Reports of a repository, most likely first. A report is read on first use.
#[derive(Debug)]
pub struct CoverageReports {
    root: PathBuf,
    /// Cache folder; without one nothing is cached.
    folder: Option<PathBuf>,
    reports: Vec<CoverageReport>,
}

#[derive(Debug)]
struct CoverageReport {
    source: ReportSource,
    parsed: OnceCell<Option<ParsedReport>>,
    /// For a report in the worktree: whether the file at each path is unchanged.
    unchanged: RefCell<HashMap<String, bool>>,
}

#[derive(Debug)]
enum ReportSource {
    /// Blob id of the report.
    Tree(String),
    Worktree(PathBuf),
}

/// Parsed report.
#[derive(Debug)]
struct ParsedReport {
    /// Encoding of [`TestCoverage::pack`].
    packed: Vec<u8>,
    /// Modification time; `None` for a report from the tree, which matches the tree's files.
    modified: Option<SystemTime>,
}

impl CoverageReports {
    /// Finds the reports in `entries` (the complete tree, sorted by path) and in the worktree. Parsed reports are
    /// cached in `folder`.
    pub fn find(repo: &Repo, entries: &[TreeListingEntry], folder: Option<&Path>) -> Self {
        let root = repo.root();
        let in_tree = REPORT_PATHS.iter().filter_map(|place| {
            let at = entries.binary_search_by(|entry| entry.path.as_str().cmp(place)).ok()?;
            let entry = entries.get(at).filter(|entry| entry.kind == EntryKind::File)?;
            Some(ReportSource::Tree(entry.id.clone()))
        });
        let named = LCOV_FOLDERS.iter().flat_map(|folder| list_lcov_files(&root.join(folder)));
        let in_worktree =
            REPORT_PATHS.iter().map(|place| root.join(place)).filter(|path| is_report_file(path)).chain(named);
        let found = in_tree.chain(in_worktree.map(ReportSource::Worktree)).take(MAX_REPORTS);
        let reports = found
            .map(|place| CoverageReport { source: place, parsed: OnceCell::new(), unchanged: RefCell::default() })
            .collect();
        Self { root, folder: folder.map(Path::to_owned), reports }
    }

    pub fn is_empty(&self) -> bool {
        self.reports.is_empty()
    }

    /// Returns the coverage of the `wanted` files from the first report that contains any of them. `tree` lists all
    /// code files of the tree, sorted by path.
    pub fn find_coverage(
        &self,
        repo: &Repo,
        tree: &[TreeFile],
        wanted: &HashSet<&str>,
        cancelled: &dyn Fn() -> bool,
    ) -> Option<TestCoverage> {
        if self.is_empty() || wanted.is_empty() {
            return None;
        }
        let places = ReportPathResolver::new(tree, wanted);
        let place = |path: &str| {
            let is_awaited = !cancelled();
            is_awaited.then(|| places.resolve(path)).flatten().filter(|path| wanted.contains(path))
        };
        let worktree = repo.worktree_files().ok();
        self.reports.iter().find_map(|report| {
            if cancelled() {
                return None;
            }
            let said = self.parse_report(repo, report, cancelled)?;
            let mut covered = TestCoverage::unpack(&said.packed, &place)?;
            if let Some(written) = said.modified {
                let stands = |path: &str| {
                    let file = worktree.as_ref().zip(places.find_file(path));
                    file.is_some_and(|(worktree, file)| worktree.has_blob(path, &file.blob, written))
                };
                let mut stood = report.unchanged.borrow_mut();
                covered.files.retain(|path, _| {
                    !cancelled() && *stood.entry(path.clone()).or_insert_with_key(|path| stands(path))
                });
            }
            (!covered.files.is_empty() && !cancelled()).then_some(covered)
        })
    }

    /// Returns the parsed report, parsing it on first use. A cancelled parse is repeated at the next call.
    fn parse_report<'r>(
        &self,
        repo: &Repo,
        report: &'r CoverageReport,
        cancelled: &dyn Fn() -> bool,
    ) -> Option<&'r ParsedReport> {
        if report.parsed.get().is_none() {
            let said = self.read_report(repo, &report.source, cancelled);
            if said.is_none() && cancelled() {
                return None;
            }
            report.parsed.get_or_init(|| said);
        }
        report.parsed.get()?.as_ref()
    }

    fn read_report(&self, repo: &Repo, place: &ReportSource, cancelled: &dyn Fn() -> bool) -> Option<ParsedReport> {
        let (sort, id, content, written) = match place {
            ReportSource::Tree(blob) => ("blob", blob.clone(), None, None),
            ReportSource::Worktree(path) => {
                let (content, written) = read_bounded(path)?;
                ("content", content_hash([content.as_slice()]), Some(content), Some(written))
            }
        };
        let of_blob =
            || repo.blob_size(&id).is_ok_and(|size| size <= MAX_REPORT_BYTES).then(|| repo.blob(&id).ok()).flatten();
        let shelf = FactStore::open(self.folder.as_deref(), "coverage", MAX_CACHE_BYTES);
        // Paths in the report may begin with the root.
        let key = FactKey::from_parts(&["coverage", RECORD_VERSION, &self.root.to_string_lossy(), sort, &id]);
        let is_whole = |packed: &Vec<u8>| TestCoverage::unpack(packed, &|_| None).is_some();
        let packed = match shelf.get(key).filter(is_whole) {
            Some(packed) => packed,
            None => {
                let content = content.or_else(of_blob)?;
                let packed = TestCoverage::parse(&String::from_utf8_lossy(&content), &self.root, cancelled)?.pack();
                shelf.insert(key, packed.clone());
                packed
            }
        };
        shelf.close();
        Some(ParsedReport { packed, modified: written })
    }
}

/// Matches file names of reports with the wanted files of a tree.
struct ReportPathResolver<'p> {
    /// Sorted by path.
    tree: &'p [TreeFile],
    /// All files that have the name of a wanted file.
    paths: HashSet<&'p str>,
    by_name: HashMap<&'p str, Vec<&'p str>>,
    /// Length of the longest of these paths, in bytes.
    longest: usize,
}

impl<'p> ReportPathResolver<'p> {
    fn new(tree: &'p [TreeFile], wanted: &HashSet<&str>) -> Self {
        let names: HashSet<&str> = wanted.iter().map(|path| file_name(path)).collect();
        let mut places = Self { tree, paths: HashSet::new(), by_name: HashMap::new(), longest: 0 };
        for path in tree.iter().map(|file| file.path.as_str()).filter(|path| names.contains(file_name(path))) {
            places.paths.insert(path);
            places.longest = places.longest.max(path.len());
            places.by_name.entry(file_name(path)).or_default().push(path);
        }
        places
    }

    fn find_file(&self, path: &str) -> Option<&'p TreeFile> {
        let at = self.tree.binary_search_by(|file| file.path.as_str().cmp(path)).ok()?;
        self.tree.get(at)
    }

    /// Resolves a path of a report. A report from another machine has a longer path that ends like the file's path; a
    /// report written in a subfolder has a shorter path.
    fn resolve(&self, path: &str) -> Option<&'p str> {
        let of_name = self.by_name.get(file_name(path))?;
        let ends = |other: &&&str, tail| other.strip_suffix(tail).is_some_and(|rest| rest.ends_with('/'));
        if let Some(tail) = path.strip_prefix(UNKNOWN_FOLDER) {
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

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Returns the `.lcov` files of a folder, sorted by name.
fn list_lcov_files(folder: &Path) -> Vec<PathBuf> {
    const MAX_FOLDER_ENTRIES: usize = 10_000;
    let entries =
        std::fs::read_dir(folder).into_iter().flatten().take(MAX_FOLDER_ENTRIES).flatten().map(|entry| entry.path());
    let is_report = |path: &PathBuf| path.extension().is_some_and(|end| end == "lcov") && is_report_file(path);
    let mut found: Vec<PathBuf> = entries.filter(is_report).collect();
    found.sort();
    found
}

fn is_report_file(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|data| data.is_file() && data.len() <= MAX_REPORT_BYTES)
}

/// Reads a regular file of limited size; returns its content and modification time.
fn read_bounded(path: &Path) -> Option<(Vec<u8>, SystemTime)> {
    if !is_report_file(path) {
        return None;
    }
    let file = File::open(path).ok()?;
    let written = file.metadata().ok()?.modified().ok()?;
    let mut content = Vec::new();
    file.take(MAX_REPORT_BYTES).read_to_end(&mut content).ok()?;
    Some((content, written))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::fs;
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;
    use crate::context::test_coverage::LineCoverage;
    use crate::domain::LineRange;

    fn tree(paths: &[&str]) -> Vec<TreeFile> {
        paths.iter().map(|path| TreeFile { path: (*path).to_owned(), blob: String::new() }).collect()
    }

    #[test]
    fn a_report_is_of_files_of_the_tree_or_of_none() {
        let tree = tree(&["one/only.rs", "src/a.rs", "top.rs", "x/lib.rs", "y/lib.rs"]);
        let wanted = tree.iter().map(|file| file.path.as_str()).collect();
        let places = ReportPathResolver::new(&tree, &wanted);
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
            assert_eq!(places.resolve(path), expected, "{path}");
        }
        let twice = self::tree(&["pkg/x.py", "src/pkg/x.py"]);
        let twice = ReportPathResolver::new(&twice, &HashSet::from(["pkg/x.py"]));
        assert_eq!((twice.resolve("pkg/x.py"), twice.resolve("./pkg/x.py")), (Some("pkg/x.py"), None));
        let one = ReportPathResolver::new(&tree, &HashSet::from(["x/lib.rs"]));
        assert_eq!((one.resolve("lib.rs"), one.resolve("x/lib.rs")), (None, Some("x/lib.rs")));
        assert_eq!(one.resolve("src/a.rs"), None, "nobody wants to know");
    }

    /// A worktree with a report and a file that it covers.
    struct CoverageFixture {
        folder: tempfile::TempDir,
        repo: Repo,
        tree: Vec<TreeFile>,
    }

    impl CoverageFixture {
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

        fn cache_folder(&self) -> PathBuf {
            self.folder.path().join("kept")
        }

        fn cache_parts(&self) -> Vec<PathBuf> {
            fs::read_dir(self.cache_folder()).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
        }

        fn find_share(&self, cancelled: bool) -> Option<LineCoverage> {
            let reports = CoverageReports::find(&self.repo, &[], Some(&self.cache_folder()));
            let wanted = HashSet::from(["a.rs"]);
            let covered = reports.find_coverage(&self.repo, &self.tree, &wanted, &|| cancelled)?;
            covered.line_coverage("a.rs", LineRange::new(1, 2))
        }
    }

    #[test]
    fn what_a_report_says_is_kept_by_its_content_and_found_out_again_where_that_is_damaged() {
        let sample = CoverageFixture::new();
        assert_eq!(sample.find_share(false), None);
        assert!(!sample.cache_folder().exists(), "there is nothing to keep");
        let half = Some(LineCoverage { reached: 1, total: 2 });
        sample.write("lcov.info", "SF:a.rs\nDA:1,1\nDA:2,0\nend_of_record\n", 2);
        assert_eq!((sample.find_share(true), sample.find_share(false)), (None, half));
        let [part] = sample.cache_parts().try_into().expect("one part");
        let whole = fs::read(&part).expect("its bytes");
        assert_eq!((sample.find_share(false), sample.cache_parts().len()), (half, 1), "read once");
        for at in [9, 60, whole.len() - 1] {
            let mut torn = whole.clone();
            torn[at] ^= 1;
            fs::write(&part, &torn).expect("a damaged part");
            assert_eq!(sample.find_share(false), half, "byte {at}");
            assert_eq!(fs::read(&part).expect("a part again"), whole, "byte {at}");
        }
        sample.write("lcov.info", "SF:a.rs\nDA:1,1\nDA:2,3\nend_of_record\n", 3);
        assert_eq!(
            (sample.find_share(false), sample.cache_parts().len()),
            (Some(LineCoverage { reached: 2, total: 2 }), 2)
        );
        sample.write("a.rs", "one\ntwo\n", 4);
        assert_eq!(sample.find_share(false), None, "the file was written after the report");
    }

    #[test]
    fn a_report_that_nobody_waited_for_is_read_when_it_is_asked_for_again() {
        let sample = CoverageFixture::new();
        sample.write("lcov.info", &format!("SF:a.rs\nDA:1,1\n{}", "DA:2,0\n".repeat(20_000)), 2);
        let reports = CoverageReports::find(&sample.repo, &[], None);
        let asked = Cell::new(0);
        let cancelled = || {
            asked.set(asked.get() + 1);
            asked.get() > 3
        };
        let wanted = HashSet::from(["a.rs"]);
        assert_eq!(reports.find_coverage(&sample.repo, &sample.tree, &wanted, &cancelled), None);
        let covered = reports.find_coverage(&sample.repo, &sample.tree, &wanted, &|| false).expect("a report");
        assert_eq!(covered.line_coverage("a.rs", LineRange::new(1, 2)), Some(LineCoverage { reached: 1, total: 2 }));
    }

    #[test]
    fn what_is_kept_is_what_is_believed() {
        let sample = CoverageFixture::new();
        sample.write("lcov.info", "SF:a.rs\nDA:1,1\nDA:2,0\nend_of_record\n", 2);
        let content = fs::read(sample.repo.root().join("lcov.info")).expect("the report");
        let root = sample.repo.root();
        let key = FactKey::from_parts(&[
            "coverage",
            RECORD_VERSION,
            &root.to_string_lossy(),
            "content",
            &content_hash([content.as_slice()]),
        ]);
        let shelf = FactStore::open(Some(&sample.cache_folder()), "coverage", MAX_CACHE_BYTES);
        let other = TestCoverage::parse("SF:a.rs\nDA:1,1\n", &root, &|| false).expect("nobody cancels");
        shelf.insert(key, other.pack());
        shelf.close();
        assert_eq!(sample.find_share(false), Some(LineCoverage { reached: 1, total: 1 }), "it is not read again");
    }
}
