//! Finds the changes that the unified diffs inside a task's text describe.

use super::task::{GivenFile, GivenFileHunk, old_line_range};
use crate::domain::Hunk;
use crate::domain::patch::PatchLineKind;
use crate::domain::unified_diff::{DiffItem, DiffItemAt, HunkLine, parse_diff_lines, parse_file_name};
use crate::index::history::Touch;

/// Returns the changes in a text; empty without a diff. Malformed parts are skipped.
pub fn parse_unified_diff(text: &str) -> Vec<GivenFile> {
    scan_diff(text, &mut |_| {})
}

/// Returns the line ranges of the old side that the diffs in a text show, context included, with their paths: 0-based,
/// end exclusive.
pub fn list_shown_lines(text: &str) -> Vec<(String, (u32, u32))> {
    let mut lines = Vec::new();
    scan_diff(text, &mut |seen| {
        if let UnifiedDiffEvent::Hunk(path, hunk) = seen {
            lines.push((path.to_owned(), old_line_range(&hunk)));
        }
    });
    lines
}

/// Returns the lines of a text outside of all diffs.
pub fn lines_outside_diffs(text: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    scan_diff(text, &mut |seen| {
        if let UnifiedDiffEvent::Line(line, None) = seen {
            lines.push(line);
        }
    });
    lines
}

/// Replaces the diff of each file for which `instead` returns a text.
pub fn replace_file_diffs(text: &str, instead: &mut dyn FnMut(&str) -> Option<String>) -> String {
    let mut lines: Vec<(&str, Option<usize>)> = Vec::new();
    let files = scan_diff(text, &mut |seen| {
        if let UnifiedDiffEvent::Line(line, file) = seen {
            lines.push((line, file));
        }
    });
    let instead: Vec<Option<String>> = files.iter().map(|file| instead(&file.path)).collect();
    let (mut left, mut last) = (Vec::new(), None);
    for (at, (line, file)) in lines.iter().enumerate() {
        let file = file.or_else(|| find_announced_file(&lines[at..]));
        match file.and_then(|file| instead.get(file)).and_then(Option::as_deref) {
            Some(_) if file == last => {}
            Some(instead) => left.push(instead),
            None => left.push(line),
        }
        last = file;
    }
    let end = if text.ends_with('\n') { "\n" } else { "" };
    left.join("\n") + end
}

/// Returns the file whose diff follows the git header lines, if `lines` starts with such header lines.
fn find_announced_file(lines: &[(&str, Option<usize>)]) -> Option<usize> {
    const EXTENDED_HEADERS: [&str; 10] = [
        "diff --git ",
        "index ",
        "old mode ",
        "new mode ",
        "new file mode ",
        "deleted file mode ",
        "similarity index ",
        "dissimilarity index ",
        "rename ",
        "copy ",
    ];
    let is_said = |line: &str| EXTENDED_HEADERS.iter().any(|beginning| line.starts_with(beginning));
    let (_, file) = lines.iter().take(EXTENDED_HEADERS.len()).find(|(line, file)| file.is_some() || !is_said(line))?;
    *file
}

/// Event of a scan through a text.
enum UnifiedDiffEvent<'a, 'p> {
    /// A line with the number of the file whose diff contains it; `None` outside of diffs; [`REFUSED_FILE`] for a path
    /// outside of any repository.
    Line(&'a str, Option<usize>),
    /// A hunk of a file as far as its lines are present, context included.
    Hunk(&'p str, Hunk),
}

fn scan_diff<'a>(text: &'a str, see: &mut dyn FnMut(UnifiedDiffEvent<'a, '_>)) -> Vec<GivenFile> {
    let texts: Vec<&str> = text.lines().collect();
    let lines: Vec<&[u8]> = texts.iter().map(|line| line.as_bytes()).collect();
    let items = parse_diff_lines(&lines);
    let ends = items.iter().skip(1).map(|found| found.first).chain([texts.len()]);
    let mut files: Vec<GivenFile> = Vec::new();
    // Number of the last file.
    let mut number: Option<usize> = None;
    for (DiffItemAt { first, item }, end) in items.iter().zip(ends) {
        if let DiffItem::FileNames { old, new } = item {
            number = Some(match parse_touched_file(old, new) {
                Some((path, touch)) => {
                    files.push(GivenFile { path, touch, hunks: Vec::new() });
                    files.len() - 1
                }
                None => REFUSED_FILE,
            });
        }
        let own = number.filter(|_| !matches!(item, DiffItem::Other(_)));
        texts.get(*first..end).unwrap_or_default().iter().for_each(|line| see(UnifiedDiffEvent::Line(line, own)));
        if let (DiffItem::Hunk { header, lines, .. }, Some(file)) = (item, own.and_then(|own| files.get_mut(own))) {
            see(UnifiedDiffEvent::Hunk(&file.path, find_shown_range(*header, lines)));
            file.hunks.push(build_given_hunk(*header, lines));
        }
    }
    files
}

/// Number for a file with a path that leads out of the repository.
const REFUSED_FILE: usize = usize::MAX;

/// Parses the two names of a file. Returns `None` for a path that leads out of the repository.
fn parse_touched_file(old: &[u8], new: &[u8]) -> Option<(String, Touch)> {
    let (path, touch) = match (parse_file_name(old, "a/"), parse_file_name(new, "b/")) {
        (None, Some(path)) => (path, Touch::Added),
        (Some(path), None) => (path, Touch::Deleted),
        (Some(_), Some(path)) => (path, Touch::Modified),
        (None, None) => return None,
    };
    is_repository_path(&path).then_some((path, touch))
}

/// Returns true for a relative path without `..`.
fn is_repository_path(path: &str) -> bool {
    !path.is_empty() && !path.starts_with('/') && path.split('/').all(|part| part != "..")
}

/// Returns the ranges of a hunk with the old side as far as its lines are present.
fn find_shown_range(header: Hunk, lines: &[HunkLine<'_>]) -> Hunk {
    let is_there = |line: &&HunkLine<'_>| match line.kind {
        Some(kind) => kind != PatchLineKind::Added,
        // A note that the rest was cut off is not a context line.
        None => line.text.is_empty(),
    };
    Hunk { old_lines: header.old_lines.min(count(lines.iter().filter(is_there))), ..header }
}

/// Builds the hunk without the context lines around the changed lines.
fn build_given_hunk(header: Hunk, lines: &[HunkLine<'_>]) -> GivenFileHunk {
    let is_kept = |line: &&HunkLine<'_>| !matches!(line.kind, Some(PatchLineKind::Removed | PatchLineKind::Added));
    let before = lines.iter().take_while(is_kept).count();
    let after = lines.get(before..).unwrap_or_default().iter().rev().take_while(is_kept);
    let texts = |kind: PatchLineKind| {
        let own = lines.iter().filter(|line| line.kind == Some(kind));
        own.map(|line| String::from_utf8_lossy(line.text).into_owned()).collect()
    };
    GivenFileHunk {
        range: trim_context(header, count(lines.iter().take(before)), count(after)),
        removed: texts(PatchLineKind::Removed),
        added: texts(PatchLineKind::Added),
    }
}

fn count<T>(items: impl Iterator<Item = T>) -> u32 {
    u32::try_from(items.count()).unwrap_or(u32::MAX)
}

/// Removes leading and trailing context lines from a hunk. A side without remaining lines names the line before.
fn trim_context(place: Hunk, before: u32, after: u32) -> Hunk {
    let side = |start: u32, lines: u32| {
        let left = lines.saturating_sub(before + after);
        let start = start.saturating_add(before);
        match left {
            0 if lines > 0 => (start.saturating_sub(1), 0),
            _ => (start, left),
        }
    };
    let (old_start, old_lines) = side(place.old_start, place.old_lines);
    let (new_start, new_lines) = side(place.new_start, place.new_lines);
    Hunk { old_start, old_lines, new_start, new_lines }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diffs_in_texts_are_understood() {
        let text = "Rename it.\n\ndiff --git a/src/a.rs b/src/a.rs\nindex 1..2 100644\n--- a/src/a.rs\n+++ b/src/a.rs\n\
            @@ -1,4 +1,4 @@ fn x\n one\n-two\n+zwei\n three\n four\n@@ -9,0 +10 @@\n+new\n\
            --- /dev/null\n+++ b/b.rs\n@@ -0,0 +1,2 @@\n+x\n+y\n";
        let files = parse_unified_diff(text);
        assert_eq!(files.len(), 2);
        let places: Vec<_> = files[0].hunks.iter().map(|hunk| hunk.range).collect();
        let hunk = |old_start, old_lines, new_start, new_lines| Hunk { old_start, old_lines, new_start, new_lines };
        assert_eq!(places, [hunk(2, 1, 2, 1), hunk(9, 0, 10, 1)]);
        assert_eq!(
            (files[0].hunks[0].removed.join(""), files[0].hunks[0].added.join("")),
            ("two".into(), "zwei".into())
        );
        assert_eq!((files[1].path.as_str(), files[1].touch), ("b.rs", Touch::Added));
    }

    #[test]
    fn what_a_diff_has_is_known_as_far_as_it_goes() {
        let text = "--- a/x\n+++ b/x\n@@ -10,4 +10,4 @@\n a\n b\n-c\n+d\n e\n@@ -30,0 +31 @@\n+f\n\
            --- a/y\n+++ b/y\n@@ -5,9 +5,9 @@\n g\n-h\n(2 more lines of the task)\n";
        let shown: Vec<_> = list_shown_lines(text);
        let shown: Vec<_> = shown.iter().map(|(path, lines)| (path.as_str(), *lines)).collect();
        assert_eq!(shown, [("x", (9, 13)), ("x", (30, 30)), ("y", (4, 6))]);
    }

    #[test]
    fn a_pure_insertion_within_context_names_the_line_before() {
        let files = parse_unified_diff("--- a/x\n+++ b/x\n@@ -10,4 +10,5 @@\n a\n b\n+c\n d\n e\n");
        let place = files[0].hunks[0].range;
        assert_eq!((place.old_start, place.old_lines, place.new_start, place.new_lines), (11, 0, 12, 1));
    }

    #[test]
    fn a_quoted_name_is_the_name_of_the_file_and_the_marker_of_the_end_is_part_of_the_diff() {
        let text = "--- \"a/caf\\303\\251.rs\"\n+++ \"b/caf\\303\\251.rs\"\n\
            @@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file\nAfter.\n";
        assert_eq!(parse_unified_diff(text)[0].path, "café.rs");
        assert_eq!(lines_outside_diffs(text), ["After."]);
    }

    #[test]
    fn files_elsewhere_are_passed_over_with_their_hunks() {
        let hunk = "@@ -1 +1 @@\n-a\n+b\n";
        for (old, new) in [
            ("//etc/passwd", "//etc/passwd"),
            ("/etc/passwd", "/etc/passwd"),
            ("a//etc/passwd", "b//etc/passwd"),
            ("a/../x", "b/../x"),
            ("a/x/../../y", "/dev/null"),
            ("/dev/null", "b/x/.."),
            ("a/x", "/etc/passwd"),
            ("/dev/null", "/dev/null"),
            ("a/", "b/"),
            ("a/x", "\"b/\\056./x\""),
        ] {
            let text = format!("Before.\n--- a/x\n+++ b/x\n{hunk}--- {old}\n+++ {new}\n{hunk}After.\n");
            let files: Vec<_> =
                parse_unified_diff(&text).into_iter().map(|file| (file.path, file.hunks.len())).collect();
            assert_eq!(files, [("x".to_owned(), 1)], "{old} {new}");
            assert_eq!(lines_outside_diffs(&text), ["Before.", "After."], "{old} {new}");
        }
        assert_eq!(parse_unified_diff("--- /tmp/x.orig\n+++ b/..x..\n")[0].path, "..x..");
    }

    #[test]
    fn numbers_as_large_as_they_can_be_are_survived() {
        let most = u32::MAX;
        let files = parse_unified_diff(&format!("--- a/x\n+++ b/x\n@@ -{most},{most} +{most},{most} @@\n a\n-b\n"));
        let place = files[0].hunks[0].range;
        assert_eq!((place.old_start, old_line_range(&place)), (most, (most - 1, most)));
    }

    #[test]
    fn what_is_no_diff_is_none() {
        for text in [
            "",
            "@@ -1 +1 @@\n-a\n+b\n",
            "+++ b/x\n",
            "--- a\n+++ b\n@@ nonsense @@\n",
            "--- a/x\n+++ b/x\n@@ -9999999999 +1 @@",
        ] {
            assert!(parse_unified_diff(text).iter().all(|file| file.hunks.is_empty()), "{text:?}");
        }
    }
}
