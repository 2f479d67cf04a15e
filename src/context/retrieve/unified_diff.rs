//! Parses unified diffs, as git and diff write them, inside a task's text.

use super::history::Touch;
use super::task::{GivenFile, GivenFileHunk, old_line_range};
use crate::git::Hunk;

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
    let mut files: Vec<GivenFile> = Vec::new();
    // Number of the last file.
    let mut number: Option<usize> = None;
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some(old) = line.strip_prefix("--- ") {
            let new_line = lines.next_if(|line| line.starts_with("+++ "));
            let new = new_line.and_then(|line| line.strip_prefix("+++ "));
            let file = new.and_then(|new| match (parse_path(old, "a/"), parse_path(new, "b/")) {
                (None, Some(path)) => Some((path, Touch::Added)),
                (Some(path), None) => Some((path, Touch::Deleted)),
                (Some(_), Some(path)) => Some((path, Touch::Modified)),
                (None, None) => None,
            });
            match file.filter(|(path, _)| is_repository_path(path)) {
                Some((path, touch)) => {
                    number = Some(files.len());
                    files.push(GivenFile { path: path.to_owned(), touch, hunks: Vec::new() });
                }
                None => number = Some(REFUSED_FILE).filter(|_| new.is_some()).or(number),
            }
            let own = number.filter(|_| new.is_some());
            see(UnifiedDiffEvent::Line(line, own));
            new_line.into_iter().for_each(|line| see(UnifiedDiffEvent::Line(line, own)));
        } else if let (Some(place), Some(_)) = (parse_hunk_header(line), number) {
            see(UnifiedDiffEvent::Line(line, number));
            let mut hunk = GivenFileHunk { range: place, removed: Vec::new(), added: Vec::new() };
            let (mut before, mut after) = (place.old_lines, place.new_lines);
            let (mut kept_before, mut is_begun) = (0, false);
            let (mut kept_after, mut is_there) = (0, 0);
            while before > 0 || after > 0 {
                let Some(line) = lines.next() else { break };
                see(UnifiedDiffEvent::Line(line, number));
                match line.split_at_checked(1) {
                    Some(("-", text)) => {
                        before = before.saturating_sub(1);
                        is_there += 1;
                        hunk.removed.push(text.to_owned());
                        (is_begun, kept_after) = (true, 0);
                    }
                    Some(("+", text)) => {
                        after = after.saturating_sub(1);
                        hunk.added.push(text.to_owned());
                        (is_begun, kept_after) = (true, 0);
                    }
                    Some(("\\", _)) => {}
                    _ => {
                        (before, after) = (before.saturating_sub(1), after.saturating_sub(1));
                        // A note that the rest was cut off is not a context line.
                        is_there += u32::from(line.is_empty() || line.starts_with(' '));
                        kept_before += u32::from(!is_begun);
                        kept_after += u32::from(is_begun);
                    }
                }
            }
            hunk.range = trim_context(place, kept_before, kept_after);
            if let Some(file) = number.and_then(|number| files.get_mut(number)) {
                see(UnifiedDiffEvent::Hunk(&file.path, Hunk { old_lines: place.old_lines.min(is_there), ..place }));
                file.hunks.push(hunk);
            }
        } else {
            see(UnifiedDiffEvent::Line(line, None));
        }
    }
    files
}

/// Number for a file with a path that leads out of the repository.
const REFUSED_FILE: usize = usize::MAX;

/// Parses a path such as `a/src/main.rs`; ignores a timestamp after a tab.
fn parse_path<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let path = text.split('\t').next().unwrap_or(text).trim_end();
    let path = path.strip_prefix('"').and_then(|path| path.strip_suffix('"')).unwrap_or(path);
    (path != "/dev/null").then(|| path.strip_prefix(prefix).unwrap_or(path))
}

/// Returns true for a relative path without `..`.
fn is_repository_path(path: &str) -> bool {
    !path.is_empty() && !path.starts_with('/') && path.split('/').all(|part| part != "..")
}

/// Parses `@@ -1,2 +3,4 @@`.
fn parse_hunk_header(line: &str) -> Option<Hunk> {
    let mut sides = line.strip_prefix("@@ ")?.split(' ');
    let mut side = |mark: char| {
        let numbers = sides.next()?.strip_prefix(mark)?;
        let (start, lines) = numbers.split_once(',').unwrap_or((numbers, "1"));
        Some((start.parse::<u32>().ok()?, lines.parse::<u32>().ok()?))
    };
    let ((old_start, old_lines), (new_start, new_lines)) = (side('-')?, side('+')?);
    Some(Hunk { old_start, old_lines, new_start, new_lines })
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
