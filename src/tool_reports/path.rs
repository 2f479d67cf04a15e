//! Decides which file of the repository a reported path means.

use std::path::Path;

use thiserror::Error;

use super::{MAX_PATH_BYTES, ReportedPath};

/// Reason why a path is refused. Its text does not name the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PathRefusal {
    /// The report names no file.
    #[error("it names no file")]
    Missing,
    /// The path is longer than any file's.
    #[error("its path is too long")]
    TooLong,
    /// The path is absolute and begins with another folder, or climbs above its beginning.
    #[error("it leads out of the repository")]
    Outside,
}

/// Returns the path relative to the root of the repository, with `/` between names. `roots` are absolute folders that
/// mean the root: the worktree itself, and the folder in which the tool ran elsewhere. A relative path starts from the
/// root, unless the report names a base inside a root.
///
/// # Errors
///
/// Returns the reason if the path cannot mean a file of the repository. Nothing is looked up on disk, so a symbolic link
/// is never followed.
pub fn resolve_path(reported: &ReportedPath, roots: &[&Path]) -> Result<String, PathRefusal> {
    let path = strip_scheme(&reported.path)?.replace('\\', "/");
    if path.trim().is_empty() {
        return Err(PathRefusal::Missing);
    }
    if path.len() > MAX_PATH_BYTES {
        return Err(PathRefusal::TooLong);
    }
    if is_absolute(&path) {
        let inside = roots.iter().find_map(|root| strip_root(&path, root)).ok_or(PathRefusal::Outside)?;
        return normalize(inside);
    }
    let base = strip_scheme(&reported.base).unwrap_or_default().replace('\\', "/");
    let base =
        roots.iter().find_map(|root| strip_root(&format!("{}/", base.trim_end_matches('/')), root).map(str::to_owned));
    normalize(&format!("{}/{path}", base.unwrap_or_default()))
}

/// Returns `true` if a path or URI does not depend on a base.
pub(super) fn is_absolute(uri: &str) -> bool {
    let Ok(path) = strip_scheme(uri) else { return true };
    path.starts_with(['/', '\\']) || matches!(path.get(1..3), Some(":/" | ":\\"))
}

/// Returns the text behind `file:`, in upper or lower case; `None` if the text does not begin with it.
pub(super) fn strip_file_scheme(uri: &str) -> Option<&str> {
    let (scheme, rest) = uri.split_once(':')?;
    scheme.eq_ignore_ascii_case("file").then_some(rest)
}

/// Returns the path of a `file:` URI, which may have no slash, one or three slashes before the path. Any other text is
/// returned as it is.
///
/// # Errors
///
/// Returns an error if the URI is of another scheme, and so names no file.
pub(super) fn strip_scheme(uri: &str) -> Result<&str, PathRefusal> {
    if let Some(rest) = strip_file_scheme(uri) {
        let Some(path) = rest.strip_prefix("//") else { return Ok(rest) };
        return Ok(path.strip_prefix("localhost").filter(|path| path.starts_with('/')).unwrap_or(path));
    }
    match uri.split_once("://") {
        // `https://…` is no file of the repository.
        Some((scheme, _)) if !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric()) => {
            Err(PathRefusal::Outside)
        }
        _ => Ok(uri),
    }
}

fn strip_root<'a>(path: &'a str, root: &Path) -> Option<&'a str> {
    let root = root.to_str()?.trim_end_matches('/');
    if root.is_empty() {
        return None;
    }
    path.strip_prefix(root)?.strip_prefix('/')
}

fn normalize(path: &str) -> Result<String, PathRefusal> {
    let mut names: Vec<&str> = Vec::new();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => drop(names.pop().ok_or(PathRefusal::Outside)?),
            name if name.contains('\0') => return Err(PathRefusal::Outside),
            name => names.push(name),
        }
    }
    if names.is_empty() { Err(PathRefusal::Missing) } else { Ok(names.join("/")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_inside_of_the_repository_or_refused() {
        let roots = [Path::new("/home/u/repo"), Path::new("/build/src/")];
        for (path, base, expected) in [
            ("src/a.rs", "", Ok("src/a.rs")),
            ("./src//b/../a.rs", "", Ok("src/a.rs")),
            ("src\\a.rs", "", Ok("src/a.rs")),
            ("/home/u/repo/src/a.rs", "", Ok("src/a.rs")),
            ("file:///build/src/a.rs", "", Ok("a.rs")),
            ("FILE:///build/src/a.rs", "", Ok("a.rs")),
            ("file:/build/src/a.rs", "", Ok("a.rs")),
            ("File://localhost/build/src/a.rs", "", Ok("a.rs")),
            ("file:src/a.rs", "", Ok("src/a.rs")),
            ("a.rs", "File:/home/u/repo/sub", Ok("sub/a.rs")),
            ("file:/etc/passwd", "", Err(PathRefusal::Outside)),
            ("FILE:///etc/passwd", "", Err(PathRefusal::Outside)),
            ("file:../a.rs", "", Err(PathRefusal::Outside)),
            ("a.rs", "file:///home/u/repo/sub/", Ok("sub/a.rs")),
            ("a.rs", "file:///elsewhere/", Ok("a.rs")),
            ("../../etc/passwd", "", Err(PathRefusal::Outside)),
            ("src/../../a.rs", "", Err(PathRefusal::Outside)),
            ("/etc/passwd", "", Err(PathRefusal::Outside)),
            ("/home/u/repo/../secret", "", Err(PathRefusal::Outside)),
            ("/home/u/repository/a.rs", "", Err(PathRefusal::Outside)),
            ("file:///etc/passwd", "", Err(PathRefusal::Outside)),
            ("https://example.org/a.rs", "", Err(PathRefusal::Outside)),
            ("C:\\Windows\\a.ini", "", Err(PathRefusal::Outside)),
            ("../a.rs", "file:///home/u/repo/", Err(PathRefusal::Outside)),
            ("a\0b", "", Err(PathRefusal::Outside)),
            ("", "", Err(PathRefusal::Missing)),
            ("/home/u/repo/", "", Err(PathRefusal::Missing)),
        ] {
            let reported = ReportedPath { path: path.to_owned(), base: base.to_owned() };
            assert_eq!(resolve_path(&reported, &roots).as_deref(), expected.as_ref().copied(), "{path:?} {base:?}");
        }
        let long = ReportedPath { path: "a/".repeat(MAX_PATH_BYTES), base: String::new() };
        assert_eq!(resolve_path(&long, &roots), Err(PathRefusal::TooLong));
    }
}
