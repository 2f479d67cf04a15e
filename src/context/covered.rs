//! Which lines tests reached, as lcov and Cobertura reports say.
//!
//! Invariants: any report is other people's text: read line by line and tag by tag, no entity in it expanded; nothing is
//! opened by what it names; nonsense in it is passed over.

mod reports;

use std::collections::HashMap;
use std::path::Path;

use super::shelf::{Reader, Writer};
use crate::domain::LineRange;

pub use reports::Reports;

/// No file has more lines.
const MOST_LINES: u32 = u32::MAX >> 1;

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
    /// As bytes, in which files can be passed over: by path, of each its lines by how far they are behind the ones before.
    fn pack(&self) -> Vec<u8> {
        let mut files: Vec<(&String, &Vec<(u32, bool)>)> = self.files.iter().collect();
        files.sort_unstable();
        let mut writer = Writer::default();
        writer.number(files.len() as u32);
        for (path, lines) in files {
            let mut of_file = Writer::default();
            let mut before = 0;
            for (line, reached) in lines {
                of_file.number((line - before) << 1 | u32::from(*reached));
                before = *line;
            }
            writer.text(path);
            writer.bytes(&of_file.finish());
        }
        writer.finish()
    }

    /// What was packed of the files that are some of the tree, by their paths there; `None` of what is something else.
    fn unpack<'p>(bytes: &[u8], place: &dyn Fn(&str) -> Option<&'p str>) -> Option<Self> {
        let mut reader = Reader(bytes);
        let mut covered = Self::default();
        for _ in 0..reader.count()? {
            let (path, mut of_file) = (reader.text()?, Reader(reader.bytes()?));
            let Some(path) = place(path) else { continue };
            let (mut lines, mut line) = (Vec::new(), 0u32);
            while !of_file.0.is_empty() {
                let number = of_file.number()?;
                line = line.checked_add(number >> 1)?;
                lines.push((line, number & 1 == 1));
            }
            covered.files.insert(path.to_owned(), lines);
        }
        Some(covered)
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
        if path.is_empty() || line > MOST_LINES {
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
    fn both_kinds_of_report_say_the_same_as_read_and_as_kept() {
        for text in [LCOV, COBERTURA] {
            let read = Covered::read(text, Path::new("/work/repo"));
            let kept = Covered::unpack(&read.pack(), &|path| ["src/a.rs", "b.rs"].into_iter().find(|own| *own == path));
            assert_eq!(kept.as_ref(), Some(&read));
            for (path, lines, expected) in [
                ("src/a.rs", (1, 9), Some((2, 3))),
                ("src/a.rs", (2, 2), Some((1, 1))),
                ("src/a.rs", (3, 8), None),
                ("b.rs", (1, 4), Some((0, 1))),
                ("c.rs", (1, 4), None),
            ] {
                let share = read.share(path, LineRange::new(lines.0, lines.1));
                assert_eq!(share.map(|share| (share.reached, share.of)), expected, "{path} {lines:?}");
            }
        }
    }

    #[test]
    fn what_is_packed_is_cut_short_or_whole() {
        let read = Covered::read(LCOV, Path::new("/work/repo"));
        let bytes = read.pack();
        for length in 0..bytes.len() {
            assert_eq!(Covered::unpack(&bytes[..length], &|_| None), None, "{length}");
        }
        let one = Covered::unpack(&bytes, &|path| (path == "b.rs").then_some("x/b.rs")).expect("whole");
        assert_eq!(one.files, HashMap::from([("x/b.rs".to_owned(), vec![(1, false)])]));
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
        for text in [
            "",
            "<",
            "<a",
            "SF:",
            "DA:1,1",
            "<class filename=><line number=1 hits=>",
            "\u{0}\u{ffff}",
            "SF:a\nDA:4294967295,1",
        ] {
            assert_eq!(Covered::read(text, Path::new("/")), Covered::default(), "{text:?}");
        }
    }
}
