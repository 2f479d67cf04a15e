//! Looks at files of the worktree, to tell whether a finding's code still stands there. Nothing here decides about a
//! finding: a review does.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io::Read;
use std::path::PathBuf;
use std::time::SystemTime;

use crate::domain::is_repository_path;
use crate::domain::quoted_code::CodeLines;

/// Maximum size of a file that is searched, in bytes; code in larger files counts as standing.
const MAX_SEARCHED_BYTES: u64 = 2_000_000;

/// State of a file of the worktree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CodeState {
    Missing,
    /// Last written or put in its place at this time, in milliseconds since 1970.
    Written(i64),
    /// It cannot be looked at.
    Unknown,
}

/// Files of a worktree, each looked at once.
pub(super) struct StandingCode {
    root: PathBuf,
    states: BTreeMap<String, CodeState>,
    /// Lines of searched files; `None` for a file that was not read.
    lines: BTreeMap<String, Option<CodeLines>>,
}

impl StandingCode {
    /// Looks at the files below `root`.
    pub(super) fn new(root: PathBuf) -> Self {
        Self { root, states: BTreeMap::new(), lines: BTreeMap::new() }
    }

    /// Returns the number of files looked at.
    pub(super) fn examined_files(&self) -> usize {
        self.states.len()
    }

    /// Returns true if the file was written or put in its place after `since_ms` (milliseconds since 1970).
    pub(super) fn is_changed(&mut self, path: &str, since_ms: i64) -> bool {
        matches!(self.state(path), CodeState::Written(ms) if ms > since_ms)
    }

    /// Returns true if the file was looked at and is not there. Looks at no further file.
    pub(super) fn is_missing(&self, path: &str) -> bool {
        self.states.get(path) == Some(&CodeState::Missing)
    }

    /// Returns true if quoted code stands in the file; see [`CodeLines::contain`].
    pub(super) fn contains(&mut self, path: &str, quoted: &str) -> bool {
        if !self.lines.contains_key(path) {
            let read = self.read(path);
            self.lines.insert(path.to_owned(), read);
        }
        let Some(Some(lines)) = self.lines.get(path) else { return true };
        lines.contain(quoted)
    }

    fn state(&mut self, path: &str) -> CodeState {
        if let Some(state) = self.states.get(path) {
            return *state;
        }
        let state = match self.locate(path).map(fs::symlink_metadata) {
            Some(Ok(file)) => last_change_ms(&file).map_or(CodeState::Unknown, CodeState::Written),
            Some(Err(error)) if error.kind() == std::io::ErrorKind::NotFound => CodeState::Missing,
            _ => CodeState::Unknown,
        };
        self.states.insert(path.to_owned(), state);
        state
    }

    fn read(&self, path: &str) -> Option<CodeLines> {
        let file = self.locate(path)?;
        if !fs::symlink_metadata(&file).is_ok_and(|meta| meta.is_file() && meta.len() <= MAX_SEARCHED_BYTES) {
            return None;
        }
        let mut bytes = Vec::new();
        File::open(file).ok()?.take(MAX_SEARCHED_BYTES).read_to_end(&mut bytes).ok()?;
        Some(CodeLines::new(&String::from_utf8_lossy(&bytes)))
    }

    /// Returns the place of a path below the root; `None` for a path that leaves it or leads to git's own files.
    fn locate(&self, path: &str) -> Option<PathBuf> {
        is_repository_path(path).then(|| self.root.join(path))
    }
}

/// Returns the time, in milliseconds since 1970, at which the file was written or put in its place. A moved file keeps the
/// time at which it was written, so on Unix the change of its status counts too.
fn last_change_ms(file: &Metadata) -> Option<i64> {
    let written = file.modified().ok().and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
    let written = written.and_then(|since| i64::try_from(since.as_millis()).ok());
    #[cfg(unix)]
    let placed = {
        use std::os::unix::fs::MetadataExt;
        file.ctime().checked_mul(1000).map(|ms| ms + file.ctime_nsec() / 1_000_000)
    };
    #[cfg(not(unix))]
    let placed = None;
    written.max(placed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn an_older_file_that_is_moved_here_is_a_change() {
        let folder = tempfile::tempdir().expect("a folder");
        let (older, path) = (folder.path().join("older.rs"), folder.path().join("a.rs"));
        fs::write(&older, "x").expect("written");
        let hour_ago = SystemTime::now() - std::time::Duration::from_secs(3600);
        File::options().write(true).open(&older).and_then(|file| file.set_modified(hour_ago)).expect("an older time");
        fs::rename(&older, &path).expect("moved");
        let reviewed = SystemTime::now() - std::time::Duration::from_secs(60);
        let since = reviewed.duration_since(SystemTime::UNIX_EPOCH).expect("a time").as_millis();
        let mut code = StandingCode::new(folder.path().to_owned());
        assert!(code.is_changed("a.rs", i64::try_from(since).expect("a time")));
    }

    #[test]
    fn code_stands_while_half_of_its_lines_do() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |text: &str| fs::write(folder.path().join("a.rs"), text).expect("written");
        for (text, quoted, expected) in [
            ("let total = 1;\n", "  let total  = 1;", true),
            ("let other = 1;\n", "let total = 1;", false),
            (
                "fn long() {\n    one_line();\n}\n",
                "fn long() {\n  one_line();\n  other_line();\n  gone_too();\n}",
                true,
            ),
            ("fn long() {\n}\n", "fn long() {\n  one_line();\n  other_line();\n  gone_too();\n}", false),
            ("}\n", "}", true),
            ("key = 1\n", "key = \u{ab}secret:token\u{bb}", true),
            ("TOKEN = 'abc'\n", "TOKEN = '\u{2026}(3 characters)'", true),
            ("TOKEN = read()\n", "TOKEN = '\u{2026}(3 characters)'", false),
        ] {
            write(text);
            let mut code = StandingCode::new(folder.path().to_owned());
            assert!(code.is_changed("a.rs", 0) && !code.is_changed("a.rs", i64::MAX));
            assert_eq!(code.contains("a.rs", quoted), expected, "{quoted:?} in {text:?}");
        }
    }

    #[test]
    fn nothing_outside_of_the_worktree_is_looked_at() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("inside")).expect("a folder");
        fs::write(folder.path().join("secret.txt"), "x").expect("written");
        let mut code = StandingCode::new(folder.path().join("inside"));
        let outside = folder.path().join("secret.txt").display().to_string();
        for path in ["../secret.txt", outside.as_str(), "", "."] {
            assert!(!code.is_changed(path, 0) && !code.is_missing(path), "{path}");
        }
        assert!(!code.is_changed("gone.txt", 0));
        assert!(code.is_missing("gone.txt"));
    }
}
