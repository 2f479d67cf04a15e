//! A report as text becomes what it says of files.
//!
//! Invariants: a report takes time and memory that grow with its length and no worse, whatever stands in it; what a file is
//! called there is looked at once for each time that it is named, not for each of its lines.

use std::collections::HashMap;
use std::path::Path;

use super::{TestCoverage, UNKNOWN_FOLDER};

/// No file has more lines.
const MAX_LINE_NUMBER: u32 = u32::MAX >> 1;
/// Longer paths are none, in bytes.
const MAX_PATH_BYTES: usize = 4_096;
/// What the paths of a report come to at most, in bytes: a source before each name may make gigabytes of a few megabytes.
const MAX_TOTAL_PATH_BYTES: usize = 32 << 20;
/// Between two questions whether somebody still waits so many lines or tags are read: a millisecond's worth.
const CANCEL_CHECK_INTERVAL: usize = 4_096;

impl TestCoverage {
    /// Reads a report of either kind; `root` is where the paths in it begin that are absolute. `None` once `cancelled`.
    pub fn parse(text: &str, root: &Path, cancelled: &dyn Fn() -> bool) -> Option<Self> {
        let root = format!("{}/", root.display());
        let mut covered = match text.trim_start().starts_with('<') {
            true => parse_cobertura(text, &root, cancelled)?,
            false => parse_lcov(text, &root, cancelled)?,
        };
        for lines in covered.files.values_mut() {
            // A line that several tests or classes name was reached when one of them says so.
            lines.sort_unstable_by_key(|(line, reached)| (*line, !reached));
            lines.dedup_by_key(|(line, _)| *line);
        }
        Some(covered)
    }
}

fn parse_lcov(text: &str, root: &str, cancelled: &dyn Fn() -> bool) -> Option<TestCoverage> {
    let mut named = CoverageBuilder::default();
    for (at, line) in text.lines().enumerate() {
        if at.is_multiple_of(CANCEL_CHECK_INTERVAL) && cancelled() {
            return None;
        }
        if let Some(file) = line.strip_prefix("SF:") {
            named.begin_file(file.trim());
        } else if let Some((line, hits)) = line.strip_prefix("DA:").and_then(|data| data.split_once(',')) {
            named.add_line(line, hits.split(',').next().unwrap_or_default());
        }
    }
    Some(named.finish(|name| strip_root(name, root).to_owned()))
}

fn parse_cobertura(text: &str, root: &str, cancelled: &dyn Fn() -> bool) -> Option<TestCoverage> {
    let mut named = CoverageBuilder::default();
    let (mut source, mut is_the_only_one) = (None, true);
    for (at, tag) in text.split('<').enumerate() {
        if at.is_multiple_of(CANCEL_CHECK_INTERVAL) && cancelled() {
            return None;
        }
        let (tag, after) = tag.split_once('>').unwrap_or((tag, ""));
        match tag.split_whitespace().next() {
            Some("source") if after.len() <= MAX_PATH_BYTES => {
                is_the_only_one &= *source.get_or_insert(after.trim()) == after.trim();
            }
            Some("class") => named.begin_file(attribute_value(tag, "filename").unwrap_or_default()),
            Some("line") => {
                if let (Some(line), Some(hits)) = (attribute_value(tag, "number"), attribute_value(tag, "hits")) {
                    named.add_line(line, hits);
                }
            }
            _ => {}
        }
    }
    let source = format!("{}/", source.unwrap_or_default().trim_end_matches('/'));
    Some(named.finish(|name| {
        let inner = strip_root(name, root);
        match (name.starts_with('/'), is_the_only_one) {
            (true, _) => inner.to_owned(),
            (false, true) => join_source(&source, inner, root).unwrap_or_else(|| inner.to_owned()),
            // Of several sources nothing says which one a class is from.
            (false, false) => format!("{UNKNOWN_FOLDER}{inner}"),
        }
    }))
}

/// Lines by what the report calls their files.
#[derive(Default)]
struct CoverageBuilder<'t> {
    files: HashMap<&'t str, Vec<(u32, bool)>>,
    /// What is read of the file that was named last; of none where it has no name.
    name: &'t str,
    lines: Vec<(u32, bool)>,
}

impl<'t> CoverageBuilder<'t> {
    fn begin_file(&mut self, name: &'t str) {
        self.finish_file();
        self.name = if name.len() <= MAX_PATH_BYTES { name } else { "" };
    }

    fn add_line(&mut self, line: &str, hits: &str) {
        if self.name.is_empty() {
            return;
        }
        let (Ok(line), Ok(hits)) = (line.trim().parse::<u32>(), hits.trim().parse::<f64>()) else { return };
        if line <= MAX_LINE_NUMBER {
            self.lines.push((line, hits > 0.0));
        }
    }

    fn finish_file(&mut self) {
        if !self.lines.is_empty() {
            self.files.entry(self.name).or_default().append(&mut self.lines);
        }
    }

    /// By the paths that `path` makes of what files are called.
    fn finish(mut self, path: impl Fn(&str) -> String) -> TestCoverage {
        self.finish_file();
        let mut files: HashMap<String, Vec<(u32, bool)>> = HashMap::new();
        let mut bytes = 0;
        for (name, mut lines) in self.files {
            let path = path(name);
            bytes += path.len();
            if bytes > MAX_TOTAL_PATH_BYTES {
                return TestCoverage::default();
            }
            files.entry(path).or_default().append(&mut lines);
        }
        files.remove("");
        TestCoverage { files }
    }
}

/// A path without what leads to the repository.
fn strip_root<'p>(path: &'p str, root: &str) -> &'p str {
    path.strip_prefix(root).unwrap_or(path).trim_start_matches("./")
}

/// What `source` and `name` are below the root; `None` where that is elsewhere.
fn join_source(source: &str, name: &str, root: &str) -> Option<String> {
    match source.strip_prefix(root) {
        Some(inside) => Some(format!("{inside}{name}")),
        None => name.strip_prefix(root.strip_prefix(source)?).map(str::to_owned),
    }
}

/// The value of an attribute of a tag.
fn attribute_value<'t>(tag: &'t str, name: &str) -> Option<&'t str> {
    tag.match_indices(name).find_map(|(at, _)| {
        let is_whole = tag.get(..at)?.ends_with(char::is_whitespace);
        let value = tag.get(at + name.len()..)?.trim_start().strip_prefix('=')?.trim_start();
        let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        is_whole.then(|| value.get(1..)?.split(quote).next())?
    })
}
