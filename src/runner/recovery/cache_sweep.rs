//! Removes the caches of repositories that no longer exist, and files of formats that nothing reads any more.
//!
//! - Only caches are removed, and they can be built again.
//! - The caches of a repository that is known to exist stay, however long nobody used them.
//! - Nothing outside the cache folder is touched.

use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::config::Paths;
use crate::domain::Time;
use crate::store::Store;

/// Minimum age of a cache that is removed, by its last write. It is long because a disk may be unmounted for a while.
const MIN_UNUSED_AGE: Duration = Duration::from_secs(30 * 86_400);

/// Suffix of the files that held embedding vectors before they became facts (`vectors-…`).
const OLD_VECTORS_SUFFIX: &str = ".vectors";

/// Removes the caches of missing repositories and the files of old formats, and returns the number of removed folders
/// and files. What cannot be removed stays.
pub(in crate::runner) fn sweep_caches(paths: &Paths, now: Time) -> usize {
    remove_orphans(paths, now) + remove_old_formats(paths)
}

/// Removes the caches of missing repositories and returns their number.
fn remove_orphans(paths: &Paths, now: Time) -> usize {
    let is_old = |folder: &Path| {
        let age = last_written(folder).ok().and_then(|last| SystemTime::from(now).duration_since(last).ok());
        age.is_some_and(|age| age > MIN_UNUSED_AGE)
    };
    // Without a store, the location of the repository is unknown.
    let is_gone = |key: &str| Store::repository_path(&paths.state, key).is_none_or(|place| !place.exists());
    let mut removed = 0;
    for (folder, key) in paths.list_repo_caches() {
        if is_gone(&key) && is_old(&folder) {
            match fs::remove_dir_all(&folder) {
                Ok(()) => removed += 1,
                Err(error) => tracing::warn!(%error, folder = %folder.display(), "a cache of nobody stays"),
            }
        }
    }
    removed
}

/// Removes the files of old formats and returns their number.
fn remove_old_formats(paths: &Paths) -> usize {
    let is_old = |entry: &fs::DirEntry| {
        let name = entry.file_name();
        let key = name.to_str().and_then(|name| name.strip_suffix(OLD_VECTORS_SUFFIX));
        key.is_some_and(|key| !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_hexdigit()))
            && entry.file_type().is_ok_and(|kind| kind.is_file())
    };
    let entries = fs::read_dir(paths.vectors_folder()).into_iter().flatten().flatten();
    let removed = entries.filter(is_old).map(|entry| fs::remove_file(entry.path())).inspect(|removed| {
        if let Err(error) = removed {
            tracing::warn!(%error, "a cache file of an old format stays");
        }
    });
    removed.filter(Result::is_ok).count()
}

/// Returns the last modification time of a folder and the files directly inside it.
fn last_written(folder: &Path) -> io::Result<SystemTime> {
    let mut last = fs::symlink_metadata(folder)?.modified()?;
    for entry in fs::read_dir(folder)? {
        last = last.max(entry?.metadata()?.modified()?);
    }
    Ok(last)
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;
    use crate::store::RepoInfo;

    #[test]
    fn caches_of_repositories_that_are_gone_go_once_they_are_old() {
        let home = tempfile::tempdir().expect("a folder");
        let (paths, there) = (Paths::from_home(home.path()), home.path().join("repo"));
        fs::create_dir(&there).expect("a repository");
        let now: Time = "2026-07-01T00:00:00Z".parse().expect("a time");
        let make = |key: &str, repository: Option<&Path>, days: u64| {
            if let Some(place) = repository {
                let common_dir = place.to_string_lossy().into_owned();
                let info = RepoInfo { version: 1, key: key.to_owned(), name: "a".to_owned(), common_dir };
                let store = Store::open(&paths.state, info).expect("a store");
                store.advance_epoch().expect("written");
            }
            let then = SystemTime::from(now) - Duration::from_secs(days * 86_400);
            for folder in [paths.history_folder(key), paths.index_folder(key)] {
                fs::create_dir_all(&folder).expect("a folder");
                let file = File::create(folder.join("part")).expect("a file");
                for written in [file, File::open(&folder).expect("a folder")] {
                    written.set_modified(then).expect("a time");
                }
            }
        };
        let gone = home.path().join("gone");
        let cases = [
            ("00000000000000aa", Some(there.as_path()), 400, true),
            ("00000000000000ab", Some(&gone), 31, false),
            ("00000000000000ac", Some(&gone), 29, true),
            ("00000000000000ad", None, 31, false),
            ("00000000000000ae", None, 0, true),
            // A folder that is not a cache of revdeck.
            ("notes", None, 400, true),
        ];
        cases.iter().for_each(|(key, repository, days, _)| make(key, *repository, *days));
        assert_eq!(sweep_caches(&paths, now), 4);
        for (key, _, days, stays) in cases {
            for folder in [paths.history_folder(key), paths.index_folder(key)] {
                assert_eq!(folder.exists(), stays, "{} after {days} days", folder.display());
            }
        }
        // One of two old files was written recently.
        make("00000000000000af", None, 400);
        fs::write(paths.index_folder("00000000000000af").join("new"), "").expect("a file");
        let folder = File::open(paths.index_folder("00000000000000af")).expect("a folder");
        folder.set_modified(SystemTime::UNIX_EPOCH).expect("a time");
        assert_eq!(sweep_caches(&paths, now), 1);
        assert!(paths.index_folder("00000000000000af").exists() && there.exists());
    }

    #[test]
    fn files_of_old_formats_go_at_once_and_all_others_stay() {
        let home = tempfile::tempdir().expect("a folder");
        let paths = Paths::from_home(home.path());
        let now: Time = "2026-07-01T00:00:00Z".parse().expect("a time");
        let folder = paths.vectors_folder();
        fs::create_dir_all(folder.join("00aa.vectors")).expect("a folder");
        let names =
            ["0123456789abcdef01234567.vectors", "vectors-0123-4567", ".vectors", "my.vectors", "ab.vectors.bak"];
        names.iter().for_each(|name| fs::write(folder.join(name), "old").expect("a file"));
        let outside = home.path().join("00bb.vectors");
        fs::write(&outside, "not ours").expect("a file");
        std::os::unix::fs::symlink(&outside, folder.join("00cc.vectors")).expect("a link");
        assert_eq!(sweep_caches(&paths, now), 1);
        let mut left: Vec<String> = fs::read_dir(&folder)
            .expect("a folder")
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
            .collect();
        left.sort();
        let expected =
            [".vectors", "00aa.vectors", "00cc.vectors", "ab.vectors.bak", "my.vectors", "vectors-0123-4567"];
        assert_eq!((left, outside.exists()), (expected.map(str::to_owned).into(), true));
        assert_eq!(sweep_caches(&paths, now), 0);
    }

    #[test]
    fn links_are_not_followed_and_nothing_to_sweep_is_no_trouble() {
        let home = tempfile::tempdir().expect("a folder");
        let paths = Paths::from_home(home.path());
        let now: Time = "2026-07-01T00:00:00Z".parse().expect("a time");
        assert_eq!(sweep_caches(&paths, now), 0);
        let outside = home.path().join("outside");
        fs::create_dir(&outside).expect("a folder");
        File::open(&outside).and_then(|folder| folder.set_modified(SystemTime::UNIX_EPOCH)).expect("a time");
        let link = paths.index_folder("00000000000000aa");
        fs::create_dir_all(link.parent().expect("a folder")).expect("a folder");
        std::os::unix::fs::symlink(&outside, &link).expect("a link");
        assert_eq!(sweep_caches(&paths, now), 0);
        assert!(outside.exists());
    }
}
