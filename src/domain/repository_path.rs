//! Tells paths of a repository's files from paths that lead elsewhere or that a file system could take for git's own.
//!
//! Follows git's `verify_path` with `core.protectNTFS` and `core.protectHFS` on every system, because a path that is harmless
//! here may be used where it is not: case, trailing dots and blanks, alternate streams (`.git::$INDEX_ALLOCATION`), the short
//! name `git~1`, and characters that HFS+ ignores.

use super::text::is_unsafe;

/// Returns true when a name stays in its folder and is not git's own on any file system.
pub fn is_safe_file_name(name: &[u8]) -> bool {
    let folded: String =
        String::from_utf8_lossy(name).chars().filter(|c| !is_unsafe(*c)).flat_map(char::to_lowercase).collect();
    // NTFS takes the backslash for a separator.
    let is_git_dir = folded.split('\\').any(|part| {
        let stem = part.split(':').next().unwrap_or_default().trim_end_matches(['.', ' ']);
        matches!(stem, ".git" | "git~1")
    });
    let leads_away = matches!(name, b"" | b"." | b"..")
        || name.contains(&b'/')
        || name.contains(&b'\0')
        || (cfg!(windows) && name.iter().any(|byte| matches!(byte, b'\\' | b':')));
    !leads_away && !is_git_dir
}

/// Returns true when a path is relative, stays below its root, and has no part that is git's own on any file system. The path
/// need not exist.
pub fn is_repository_path(path: &str) -> bool {
    path.split('/').all(|part| is_safe_file_name(part.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_is_gits_own_or_leads_away() {
        let hostile: [&[u8]; 21] = [
            b"",
            b".",
            b"..",
            b"a/b",
            b"a\0",
            b".git",
            b".GIT",
            b".Git ",
            b".git .",
            b".git. .",
            b".git::$INDEX_ALLOCATION",
            b".git .:x",
            b".git\\config",
            b"a\\.git\\config",
            b"git~1",
            b"GIT~1",
            b"git~1.",
            ".g\u{200c}it".as_bytes(),
            ".gi\u{206a}t".as_bytes(),
            ".gi\u{206f}t".as_bytes(),
            ".git\u{feff}".as_bytes(),
        ];
        for name in hostile {
            assert!(!is_safe_file_name(name), "{}", String::from_utf8_lossy(name));
        }
        let plain: [&[u8]; 10] = [
            b"a",
            b".gitignore",
            b".github",
            b".git-blame-ignore-revs",
            b"git",
            b"git~10",
            b"x.git",
            b"...",
            b"caf\xe9",
            b"-rf",
        ];
        for name in plain {
            assert!(is_safe_file_name(name), "{}", String::from_utf8_lossy(name));
        }
    }

    #[test]
    fn a_path_is_as_good_as_its_parts() {
        for (path, expected) in [
            ("src/a.rs", true),
            ("a/.gitmodules", true),
            ("a/x.git/config", true),
            ("", false),
            ("/etc/passwd", false),
            ("a//b", false),
            ("a/", false),
            ("a/../b", false),
            ("a/.git/config", false),
            ("git~1/config", false),
            ("a/.git ./config", false),
            ("a/.git::$INDEX_ALLOCATION/config", false),
            ("a/.g\u{200d}it/config", false),
        ] {
            assert_eq!(is_repository_path(path), expected, "{path:?}");
        }
    }
}
