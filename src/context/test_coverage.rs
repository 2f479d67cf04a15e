//! Line coverage of tests from lcov and Cobertura reports.
//!
//! - Reports are untrusted input: they are read line by line and tag by tag, and entities are not expanded.
//! - No file is opened because a report names it.
//! - Invalid content is skipped.

mod parse;
mod reports;

use std::collections::HashMap;

use crate::domain::LineRange;
use crate::index::codec::{PackedReader, PackedWriter};

pub(crate) use reports::CoverageReports;

/// Prefix of a path that continues from an unknown folder. No other path of a report begins with it.
const UNKNOWN_FOLDER: &str = "./";

/// Number of covered lines and number of coverable lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LineCoverage {
    pub reached: u32,
    pub total: u32,
}

impl LineCoverage {
    /// Returns the covered share, from 0 to 1.
    pub fn ratio(self) -> f64 {
        f64::from(self.reached) / f64::from(self.total.max(1))
    }
}

/// Coverage of the files in a report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TestCoverage {
    /// For each path of the tree: (line, covered), sorted by 1-based line.
    files: HashMap<String, Vec<(u32, bool)>>,
}

impl TestCoverage {
    /// Encodes the coverage so that files can be skipped when decoding: path, then its lines as differences to the
    /// previous line.
    fn pack(&self) -> Vec<u8> {
        let mut files: Vec<(&String, &Vec<(u32, bool)>)> = self.files.iter().collect();
        files.sort_unstable();
        let mut writer = PackedWriter::default();
        writer.write_varint(files.len() as u32);
        for (path, lines) in files {
            let mut of_file = PackedWriter::default();
            let mut before = 0;
            for (line, reached) in lines {
                of_file.write_varint((line - before) << 1 | u32::from(*reached));
                before = *line;
            }
            writer.write_str(path);
            writer.write_bytes(&of_file.finish());
        }
        writer.finish()
    }

    /// Decodes the files for which `place` returns their path in the tree; `None` for invalid bytes.
    fn unpack<'p>(bytes: &[u8], place: &dyn Fn(&str) -> Option<&'p str>) -> Option<Self> {
        let mut reader = PackedReader(bytes);
        let mut covered = Self::default();
        for _ in 0..reader.read_count()? {
            let (path, mut of_file) = (reader.read_str()?, PackedReader(reader.read_bytes()?));
            let Some(path) = place(path) else { continue };
            let (mut lines, mut line) = (Vec::new(), 0u32);
            while !of_file.0.is_empty() {
                let number = of_file.read_varint()?;
                line = line.checked_add(number >> 1)?;
                lines.push((line, number & 1 == 1));
            }
            covered.files.insert(path.to_owned(), lines);
        }
        Some(covered)
    }

    /// Returns true if the report contains the file.
    pub fn has_file(&self, path: &str) -> bool {
        self.files.contains_key(path)
    }

    /// Returns the coverage of the lines of a file (1-based, inclusive); `None` if the report has no data about them.
    pub fn line_coverage(&self, path: &str, lines: LineRange) -> Option<LineCoverage> {
        let known = self.files.get(path)?;
        let from = known.partition_point(|(line, _)| *line < lines.start);
        let to = known.partition_point(|(line, _)| *line <= lines.end);
        let inside = known.get(from..to).filter(|inside| !inside.is_empty())?;
        let reached = inside.iter().filter(|(_, reached)| *reached).count() as u32;
        Some(LineCoverage { reached, total: inside.len() as u32 })
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::path::Path;

    use super::*;

    const LCOV: &str = "TN:\nSF:/work/repo/src/a.rs\nDA:1,3\nDA:2,0\nDA:2,1\nDA:9,0,hash\nDA:x,1\nend_of_record\nSF:b.rs\nDA:1,0\nend_of_record\n";
    const COBERTURA: &str = r#"<?xml version="1.0"?>
<coverage line-rate="0.5"><sources><source>/work/repo/src</source></sources>
<packages><package name="p"><classes>
<class name="A" filename="a.rs" line-rate="1"><lines><line number="1" hits="3"/><line hits='1' number='2'/><line number="9" hits="0" branch="false"/></lines></class>
<class name="B" filename="/work/repo/b.rs"><lines><line number="1" hits="0"/><line number="-1" hits="z"/></lines></class>
</classes></package></packages></coverage>"#;

    fn parse(text: &str) -> TestCoverage {
        TestCoverage::parse(text, Path::new("/work/repo"), &|| false).expect("nobody cancels")
    }

    #[test]
    fn both_kinds_of_report_say_the_same_as_read_and_as_kept() {
        for text in [LCOV, COBERTURA] {
            let said = parse(text);
            let kept =
                TestCoverage::unpack(&said.pack(), &|path| ["src/a.rs", "b.rs"].into_iter().find(|own| *own == path));
            assert_eq!(kept.as_ref(), Some(&said));
            for (path, lines, expected) in [
                ("src/a.rs", (1, 9), Some((2, 3))),
                ("src/a.rs", (2, 2), Some((1, 1))),
                ("src/a.rs", (3, 8), None),
                ("b.rs", (1, 4), Some((0, 1))),
                ("c.rs", (1, 4), None),
            ] {
                let share = said.line_coverage(path, LineRange::new(lines.0, lines.1));
                assert_eq!(share.map(|share| (share.reached, share.total)), expected, "{path} {lines:?}");
            }
        }
    }

    #[test]
    fn a_path_longer_than_any_is_none() {
        let (fits, longer) = ("x".repeat(4_096), "x".repeat(4_097));
        for (path, files) in [(&fits, 1), (&longer, 0)] {
            let lcov = format!("SF:{path}\nDA:1,1\n");
            let class = format!("<class filename=\"{path}\"><line number=\"1\" hits=\"1\"/>");
            for text in [lcov, class] {
                assert_eq!(parse(&text).files.len(), files, "{} bytes", path.len());
            }
        }
        let class = "<class filename=\"a.rs\"><line number=\"1\" hits=\"1\"/>";
        for (folder, expected) in
            [("x".repeat(1_000), format!("{}/a.rs", "x".repeat(1_000))), (longer, "a.rs".to_owned())]
        {
            let covered = parse(&format!("<source>/work/repo/{folder}</source>{class}"));
            assert_eq!(covered.files.into_keys().collect::<Vec<_>>(), [expected]);
        }
    }

    #[test]
    fn of_several_sources_none_is_taken_for_that_of_a_class() {
        let sources = |sources: &[&str]| -> String {
            sources.iter().map(|source| format!("<source>/work/repo/{source}</source>\n")).collect()
        };
        let classes = ["x.py", "./y/z.py", "/work/repo/src/x.py"]
            .map(|name| format!("<class filename=\"{name}\"><line number=\"1\" hits=\"0\"/></class>"));
        for (given, expected) in [
            (&["src"][..], &["src/x.py", "src/y/z.py"][..]),
            (&["src", "src"], &["src/x.py", "src/y/z.py"]),
            (&["src", "lib"], &["./x.py", "./y/z.py", "src/x.py"]),
            (&[], &["src/x.py", "x.py", "y/z.py"]),
        ] {
            let covered = parse(&format!("<coverage>{}{}", sources(given), classes.concat()));
            let mut found: Vec<String> = covered.files.into_keys().collect();
            found.sort();
            assert_eq!(found, expected, "{given:?}");
        }
    }

    #[test]
    fn sources_and_names_that_multiply_say_nothing() {
        let classes = |number: usize| -> String {
            (0..number).map(|n| format!("<class filename=\"{n}\"><line number=\"1\" hits=\"1\"/>")).collect()
        };
        let source = format!("<source>/work/repo/{}</source>", "x".repeat(4_000));
        for (number, files) in [(8_000, 8_000), (9_000, 0)] {
            assert_eq!(parse(&format!("{source}{}", classes(number))).files.len(), files, "{number}");
        }
    }

    #[test]
    fn a_report_that_nobody_waits_for_any_longer_is_not_read_on() {
        let lcov = format!("SF:a.rs\n{}", "DA:1,1\n".repeat(100_000));
        let cobertura = format!("<class filename=\"a.rs\">{}", "<line number=\"1\" hits=\"1\"/>".repeat(100_000));
        for text in [lcov, cobertura] {
            let asked = Cell::new(0);
            let cancelled = || {
                asked.set(asked.get() + 1);
                asked.get() == 3
            };
            assert_eq!((TestCoverage::parse(&text, Path::new("/"), &cancelled), asked.get()), (None, 3));
        }
    }

    #[test]
    fn what_is_packed_is_cut_short_or_whole() {
        let said = parse(LCOV);
        let bytes = said.pack();
        for length in 0..bytes.len() {
            assert_eq!(TestCoverage::unpack(&bytes[..length], &|_| None), None, "{length}");
        }
        let one = TestCoverage::unpack(&bytes, &|path| (path == "b.rs").then_some("x/b.rs")).expect("whole");
        assert_eq!(one.files, HashMap::from([("x/b.rs".to_owned(), vec![(1, false)])]));
    }

    #[test]
    fn entities_and_deep_tags_are_text() {
        let bomb = format!(
            "<!DOCTYPE x [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]>{}<class filename=\"&b;\"><line number=\"1\" hits=\"1\"/>",
            "<lines>".repeat(100_000)
        );
        let covered = parse(&bomb);
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
            assert_eq!(parse(text), TestCoverage::default(), "{text:?}");
        }
    }
}
