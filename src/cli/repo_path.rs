//! Conversion of paths that a user types into paths relative to the repository root.

use std::path::{Component, Path, PathBuf};

/// Error: the path leads out of the repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutsideRepo;

/// Returns `path` relative to the worktree root, with `/` as separator. A relative path starts in the folder `here` if
/// such a file exists there, else at the root, because the requested tree may differ from the files on disk.
///
/// # Errors
///
/// Returns [`OutsideRepo`] if the path leads out of the root.
pub fn path_from_root(path: &str, root: &Path, here: &Path) -> Result<String, OutsideRepo> {
    let near = here.join(path);
    let is_near = || near.symlink_metadata().is_ok() && here.starts_with(root);
    let place = match Path::new(path).is_absolute() || is_near() {
        true => strip_root(root, &near).ok_or(OutsideRepo)?,
        false => normalize_path(Path::new(path)).ok_or(OutsideRepo)?,
    };
    let names = place.components().map(|name| name.as_os_str().to_string_lossy());
    Ok(names.collect::<Vec<_>>().join("/"))
}

/// Strips `root` from `path`. Resolves symbolic links in the parent folders, but not in the last component.
fn strip_root(root: &Path, path: &Path) -> Option<PathBuf> {
    let real = || Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
    let inside = |path: PathBuf| path.strip_prefix(root).ok().map(Path::to_owned);
    real().and_then(inside).or_else(|| inside(normalize_path(path)?))
}

/// Normalizes a relative path: `./src//a/../b.rs` becomes `src/b.rs`. Returns `None` if it leads above its start.
fn normalize_path(path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::new();
    for name in path.components() {
        match name {
            Component::CurDir => {}
            Component::ParentDir => plain.pop().then_some(())?,
            name => plain.push(name),
        }
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_path_begins_here_or_at_the_root_or_is_absolute() {
        let folder = tempfile::tempdir().expect("a folder");
        let outer = folder.path().canonicalize().expect("a folder");
        let root = outer.join("repo");
        fs::create_dir_all(root.join("src/src")).expect("folders");
        for file in ["src/a.rs", "b.rs", "src/src/b.rs", "../outside.rs"] {
            fs::write(root.join(file), "").expect("a file");
        }
        symlink(&root, outer.join("link")).expect("a link");
        symlink("../outside.rs", root.join("out.rs")).expect("a link");
        let at = |path: &str| outer.join(path).to_string_lossy().into_owned();
        for (path, here, expected) in [
            ("src/a.rs", "repo", Ok("src/a.rs")),
            ("./src//./a.rs", "repo", Ok("src/a.rs")),
            ("a.rs", "repo/src", Ok("src/a.rs")),
            ("src/b.rs", "repo/src", Ok("src/src/b.rs")),
            // Does not exist on disk: relative to the root, for the requested tree.
            ("src/a.rs", "repo/src", Ok("src/a.rs")),
            ("gone.rs", "repo/src", Ok("gone.rs")),
            ("gone/../b.rs", "repo", Ok("b.rs")),
            ("../b.rs", "repo/src", Ok("b.rs")),
            ("../../outside.rs", "repo/src", Err(OutsideRepo)),
            ("../gone.rs", "repo/src", Err(OutsideRepo)),
            // The worktree comes from GIT_DIR; the current folder is outside of it.
            ("b.rs", "", Ok("b.rs")),
            ("outside.rs", "", Ok("outside.rs")),
            (&at("repo/src/a.rs"), "repo/src", Ok("src/a.rs")),
            (&at("repo/gone/c.rs"), "repo", Ok("gone/c.rs")),
            (&at("link/src/a.rs"), "repo", Ok("src/a.rs")),
            (&at("repo/out.rs"), "repo", Ok("out.rs")),
            (&at("repo/../outside.rs"), "repo", Err(OutsideRepo)),
            (&at("outside.rs"), "repo", Err(OutsideRepo)),
        ] {
            let found = path_from_root(path, &root, &outer.join(here));
            assert_eq!(found.as_deref().map_err(|outside| *outside), expected, "{path} in {here:?}");
        }
    }
}
