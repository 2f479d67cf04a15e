//! Parses the text of a coverage report.
//!
//! - Time and memory are linear in the length of the report, whatever it contains.
//! - A file name is processed once per mention, not once per line.

use std::collections::HashMap;
use std::path::Path;

use super::{TestCoverage, UNKNOWN_FOLDER};

/// Largest line number that is accepted.
const MAX_LINE_NUMBER: u32 = u32::MAX >> 1;
/// Longest path in bytes.
const MAX_PATH_BYTES: usize = 4_096;
/// Largest total length of the paths of a report in bytes. A source prefix before each name could turn a few megabytes
/// into gigabytes.
const MAX_TOTAL_PATH_BYTES: usize = 32 << 20;
/// Lines or tags between two calls of `cancelled`; takes about a millisecond.
const CANCEL_CHECK_INTERVAL: usize = 4_096;

impl TestCoverage {
    /// Parses a report of either format. `root` is the folder in which absolute paths of the report lie. Returns `None`
    /// if `cancelled` returns true.
    pub fn parse(text: &str, root: &Path, cancelled: &dyn Fn() -> bool) -> Option<Self> {
        let root = format!("{}/", root.display());
        let mut covered = match text.trim_start().starts_with('<') {
            true => parse_cobertura(text, &root, cancelled)?,
            false => parse_lcov(text, &root, cancelled)?,
        };
        for lines in covered.files.values_mut() {
            // If several tests or classes list a line, it is covered if one of them covers it.
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
            // With several sources, a class does not tell which source it belongs to.
            (false, false) => format!("{UNKNOWN_FOLDER}{inner}"),
        }
    }))
}

/// Collects lines by the file names of a report.
#[derive(Default)]
struct CoverageBuilder<'t> {
    files: HashMap<&'t str, Vec<(u32, bool)>>,
    /// Name and lines of the file being read; lines of a file without a name are skipped.
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

    /// Finishes the collection; `path` converts a file name to a path.
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

/// Strips the repository root from a path.
fn strip_root<'p>(path: &'p str, root: &str) -> &'p str {
    path.strip_prefix(root).unwrap_or(path).trim_start_matches("./")
}

/// Joins `source` and `name` relative to the root; `None` if the result lies outside.
fn join_source(source: &str, name: &str, root: &str) -> Option<String> {
    match source.strip_prefix(root) {
        Some(inside) => Some(format!("{inside}{name}")),
        None => name.strip_prefix(root.strip_prefix(source)?).map(str::to_owned),
    }
}

/// Returns the value of a tag's attribute.
fn attribute_value<'t>(tag: &'t str, name: &str) -> Option<&'t str> {
    tag.match_indices(name).find_map(|(at, _)| {
        let is_whole = tag.get(..at)?.ends_with(char::is_whitespace);
        let value = tag.get(at + name.len()..)?.trim_start().strip_prefix('=')?.trim_start();
        let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        is_whole.then(|| value.get(1..)?.split(quote).next())?
    })
}
