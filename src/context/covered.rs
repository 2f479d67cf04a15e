//! Which lines tests reached, where an lcov or Cobertura report lies about: in the snapshot, else in the worktree, where
//! test runs leave it.
//!
//! Invariants: a report in the worktree tells of files that stand there as in the snapshot, and have since it was written;
//! any report is other people's text: read up to a bound, line by line and tag by tag, no entity in it expanded;
//! what it names is held against the files of the tree, and nothing is opened by it; nonsense in it is passed over.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::domain::LineRange;
use crate::git::Repo;

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
/// Larger reports are not read, in bytes: that of a million lines is about half of it.
const MAX_BYTES: u64 = 32 << 20;

/// How many lines were reached, of those that can be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Share {
    pub reached: u32,
    pub of: u32,
}

impl Share {
    /// From 0 to 1.
    pub fn part(self) -> f64 {
        f64::from(self.reached) / f64::from(self.of.max(1))
    }
}

/// What a report says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Covered {
    /// By path of the tree: lines and whether they were reached, sorted.
    files: HashMap<String, Vec<(u32, bool)>>,
}

impl Covered {
    /// What the first report that says anything of `wanted` files says of them. `blobs` are those of all code of the
    /// commit's tree, by path.
    pub fn find(repo: &Repo, commit: &str, blobs: &HashMap<String, String>, wanted: &HashSet<&str>) -> Option<Self> {
        let root = repo.root();
        let in_tree = PLACES.iter().filter_map(|place| {
            let (_, blob) = repo.entry_at(commit, place).ok()??;
            let is_small = repo.blob_size(&blob).is_ok_and(|size| size <= MAX_BYTES);
            is_small.then(|| Some((repo.blob(&blob).ok()?, None)))?
        });
        let named = FOLDERS.iter().flat_map(|folder| lcov_in(&root.join(folder)));
        let in_worktree = PLACES.iter().map(|place| root.join(place)).chain(named).filter_map(|path| bounded(&path));
        let mut reports = in_tree.chain(in_worktree).peekable();
        reports.peek()?;
        let tree = Places::of(blobs.keys());
        let worktree = repo.files();
        let mut reports = reports.map(|(report, written)| {
            let mut covered = Self::read(&String::from_utf8_lossy(&report), &root).placed(&tree);
            covered.files.retain(|path, _| {
                let stands = |since| {
                    let files = worktree.as_ref().ok().zip(blobs.get(path));
                    files.is_some_and(|(files, blob)| files.has(path, blob, since))
                };
                wanted.contains(path.as_str()) && written.is_none_or(stands)
            });
            covered
        });
        reports.find(|report| !report.files.is_empty())
    }

    /// With the paths of the tree instead of those of the report; what is of no file, or could be of several, is left away.
    fn placed(self, tree: &Places<'_>) -> Self {
        let mut placed = Self::default();
        for (path, lines) in self.files {
            if let Some(path) = tree.of_report(&path) {
                placed.files.insert(path.to_owned(), lines);
            }
        }
        placed
    }

    /// Reads a report of either kind; `root` is where the paths in it begin that are absolute.
    pub fn read(text: &str, root: &Path) -> Self {
        let root = format!("{}/", root.display());
        let mut covered = match text.trim_start().starts_with('<') {
            true => Self::cobertura(text, &root),
            false => Self::lcov(text, &root),
        };
        for lines in covered.files.values_mut() {
            // A line that several tests or classes name was reached when one of them says so.
            lines.sort_unstable_by_key(|(line, reached)| (*line, !reached));
            lines.dedup_by_key(|(line, _)| *line);
        }
        covered.files.retain(|_, lines| !lines.is_empty());
        covered
    }

    fn lcov(text: &str, root: &str) -> Self {
        let mut covered = Self::default();
        let mut path = String::new();
        for line in text.lines() {
            if let Some(file) = line.strip_prefix("SF:") {
                path = below(file.trim(), root);
            } else if let Some((line, hits)) = line.strip_prefix("DA:").and_then(|data| data.split_once(',')) {
                covered.add(&path, line, hits.split(',').next().unwrap_or_default());
            }
        }
        covered
    }

    fn cobertura(text: &str, root: &str) -> Self {
        let mut covered = Self::default();
        let (mut source, mut path) = (String::new(), String::new());
        for tag in text.split('<') {
            let (tag, after) = tag.split_once('>').unwrap_or((tag, ""));
            match tag.split_whitespace().next() {
                Some("source") => source = format!("{}/", after.trim().trim_end_matches('/')),
                Some("class") => {
                    let file = attribute(tag, "filename").unwrap_or_default();
                    let from_source = format!("{source}{file}");
                    path = match from_source.strip_prefix(root) {
                        Some(path) if !file.starts_with('/') => path.to_owned(),
                        _ => below(file, root),
                    };
                }
                Some("line") => {
                    if let (Some(line), Some(hits)) = (attribute(tag, "number"), attribute(tag, "hits")) {
                        covered.add(&path, line, hits);
                    }
                }
                _ => {}
            }
        }
        covered
    }

    fn add(&mut self, path: &str, line: &str, hits: &str) {
        let (Ok(line), Ok(hits)) = (line.trim().parse::<u32>(), hits.trim().parse::<f64>()) else { return };
        if path.is_empty() {
            return;
        }
        match self.files.get_mut(path) {
            Some(lines) => lines.push((line, hits > 0.0)),
            None => drop(self.files.insert(path.to_owned(), vec![(line, hits > 0.0)])),
        }
    }

    /// Whether the report knows a file.
    pub fn has(&self, path: &str) -> bool {
        self.files.contains_key(path)
    }

    /// The share of some lines of a file; `None` when the report says nothing of them.
    pub fn share(&self, path: &str, lines: LineRange) -> Option<Share> {
        let known = self.files.get(path)?;
        let from = known.partition_point(|(line, _)| *line < lines.start);
        let to = known.partition_point(|(line, _)| *line <= lines.end);
        let inside = known.get(from..to).filter(|inside| !inside.is_empty())?;
        let reached = inside.iter().filter(|(_, reached)| *reached).count() as u32;
        Some(Share { reached, of: inside.len() as u32 })
    }
}

/// The paths of a tree.
struct Places<'p> {
    paths: HashSet<&'p str>,
    by_name: HashMap<&'p str, Vec<&'p str>>,
}

impl<'p> Places<'p> {
    fn of(paths: impl Iterator<Item = &'p String>) -> Self {
        let mut places = Self { paths: HashSet::new(), by_name: HashMap::new() };
        for path in paths {
            places.paths.insert(path);
            places.by_name.entry(name(path)).or_default().push(path);
        }
        places
    }

    /// The file that a report means. It may have been written on another machine, then its path only ends like the file's,
    /// or from inside of a folder, then the file's path ends like it.
    fn of_report(&self, path: &str) -> Option<&'p str> {
        let tails = path.match_indices('/').map(|(at, _)| path.get(at + 1..).unwrap_or_default());
        let mut tails = std::iter::once(path).chain(tails);
        let is_bare = |tail: &str| !tail.contains('/') && path.contains('/');
        let found = tails.find_map(|tail| self.paths.get(tail).copied().filter(|_| !is_bare(tail)));
        found.or_else(|| {
            let ends = |other: &&&str| other.strip_suffix(path).is_some_and(|rest| rest.ends_with('/'));
            let mut longer = self.by_name.get(name(path))?.iter().filter(ends);
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
    let mut found: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|end| end == "lcov")).collect();
    found.sort();
    found
}

/// A path without what leads to the repository.
fn below(path: &str, root: &str) -> String {
    path.strip_prefix(root).unwrap_or(path).trim_start_matches("./").to_owned()
}

/// The value of an attribute of a tag.
fn attribute<'t>(tag: &'t str, name: &str) -> Option<&'t str> {
    tag.match_indices(name).find_map(|(at, _)| {
        let is_whole = tag.get(..at)?.ends_with(char::is_whitespace);
        let value = tag.get(at + name.len()..)?.trim_start().strip_prefix('=')?.trim_start();
        let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        is_whole.then(|| value.get(1..)?.split(quote).next())?
    })
}

/// An ordinary file of bounded size, and when it was written.
fn bounded(path: &Path) -> Option<(Vec<u8>, Option<SystemTime>)> {
    let data = path.symlink_metadata().ok().filter(|data| data.is_file() && data.len() <= MAX_BYTES)?;
    let mut content = Vec::new();
    File::open(path).ok()?.take(MAX_BYTES).read_to_end(&mut content).ok()?;
    Some((content, Some(data.modified().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LCOV: &str = "TN:\nSF:/work/repo/src/a.rs\nDA:1,3\nDA:2,0\nDA:2,1\nDA:9,0,hash\nDA:x,1\nend_of_record\nSF:b.rs\nDA:1,0\nend_of_record\n";
    const COBERTURA: &str = r#"<?xml version="1.0"?>
<coverage line-rate="0.5"><sources><source>/work/repo/src</source></sources>
<packages><package name="p"><classes>
<class name="A" filename="a.rs" line-rate="1"><lines><line number="1" hits="3"/><line hits='1' number='2'/><line number="9" hits="0" branch="false"/></lines></class>
<class name="B" filename="/work/repo/b.rs"><lines><line number="1" hits="0"/><line number="-1" hits="z"/></lines></class>
</classes></package></packages></coverage>"#;

    #[test]
    fn both_kinds_of_report_say_the_same() {
        for text in [LCOV, COBERTURA] {
            let paths = ["src/a.rs", "crates/x/b.rs", "c.rs"].map(str::to_owned);
            let covered = Covered::read(text, Path::new("/work/repo")).placed(&Places::of(paths.iter()));
            for (path, lines, expected) in [
                ("src/a.rs", (1, 9), Some((2, 3))),
                ("src/a.rs", (2, 2), Some((1, 1))),
                ("src/a.rs", (3, 8), None),
                ("crates/x/b.rs", (1, 4), Some((0, 1))),
                ("c.rs", (1, 4), None),
            ] {
                let share = covered.share(path, LineRange::new(lines.0, lines.1));
                assert_eq!(share.map(|share| (share.reached, share.of)), expected, "{path} {lines:?}");
            }
        }
    }

    #[test]
    fn a_report_is_of_files_of_the_tree_or_of_none() {
        let paths = ["src/a.rs", "x/lib.rs", "y/lib.rs", "top.rs", "one/only.rs"].map(str::to_owned);
        let tree = Places::of(paths.iter());
        for (path, expected) in [
            ("src/a.rs", Some("src/a.rs")),
            ("/ci/build/src/a.rs", Some("src/a.rs")),
            ("../../elsewhere/src/a.rs", Some("src/a.rs")),
            ("lib.rs", None),
            ("only.rs", Some("one/only.rs")),
            ("/usr/lib/top.rs", None),
            ("/etc/passwd", None),
            ("", None),
        ] {
            assert_eq!(tree.of_report(path), expected, "{path}");
        }
    }

    #[test]
    fn entities_and_deep_tags_are_text() {
        let bomb = format!(
            "<!DOCTYPE x [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]>{}<class filename=\"&b;\"><line number=\"1\" hits=\"1\"/>",
            "<lines>".repeat(100_000)
        );
        let covered = Covered::read(&bomb, Path::new("/work/repo"));
        assert_eq!(covered.files.keys().collect::<Vec<_>>(), ["&b;"]);
    }

    #[test]
    fn nonsense_says_nothing() {
        for text in ["", "<", "<a", "SF:", "DA:1,1", "<class filename=><line number=1 hits=>", "\u{0}\u{ffff}"] {
            assert_eq!(Covered::read(text, Path::new("/")), Covered::default(), "{text:?}");
        }
    }
}
