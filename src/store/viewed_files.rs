//! Stores the files and changes that the user has viewed in diffs, in `viewed.ndjson`. The file is append-only.

use std::collections::HashSet;

use super::files::SyncPolicy;
use super::{Store, StoreError, files, lines};
use crate::domain::ViewedFile;

impl Store {
    /// Returns path and content of the viewed files, and path and name of the viewed changes. Lines that this version cannot
    /// read are ignored.
    ///
    /// # Errors
    /// Returns an error when `viewed.ndjson` cannot be read.
    pub fn viewed_files(&self) -> Result<HashSet<(String, String)>, StoreError> {
        let path = self.viewed_path();
        let mut viewed = HashSet::new();
        if let Some(file) = files::open_read(&path)? {
            lines::read_forwards(&file, 0, |_, line| match serde_json::from_slice(line) {
                Ok(ViewedFile { path, content, viewed: true, .. }) => drop(viewed.insert((path, content))),
                Ok(ViewedFile { path, content, .. }) => drop(viewed.remove(&(path, content))),
                Err(_) => {}
            })
            .map_err(StoreError::io("read", &path))?;
        }
        Ok(viewed)
    }

    /// Returns the length of `viewed.ndjson` in bytes, which shows whether there are new marks; 0 when the file is missing.
    pub fn viewed_bytes(&self) -> u64 {
        files::length_at(&self.viewed_path())
    }

    /// Appends for each file that it was viewed, or that it was not, as a single write. Not synced: a lost mark is set again
    /// with one key.
    ///
    /// # Errors
    /// Returns an error when the store cannot be locked or written.
    pub fn mark_viewed(&self, marks: &[ViewedFile]) -> Result<(), StoreError> {
        let mut lines = Vec::with_capacity(marks.len() * 128);
        for mark in marks {
            serde_json::to_writer(&mut lines, mark)
                .map_err(|source| StoreError::Encode { what: "a viewed file", source })?;
            lines.push(b'\n');
        }
        self.with_lock(|_| files::append(&self.viewed_path(), &lines, SyncPolicy::Later))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Time;
    use crate::store::RepoInfo;

    #[test]
    fn the_last_mark_of_a_content_counts() {
        let folder = tempfile::tempdir().expect("a folder");
        let info = RepoInfo { version: 1, key: "k".into(), name: "n".into(), common_dir: "/n".into() };
        let store = Store::open(folder.path(), info).expect("a store");
        assert_eq!(store.viewed_files().expect("no marks"), HashSet::new());
        for (content, viewed) in [("1", true), ("2", true), ("1", false), ("3", false)] {
            let (path, content) = ("src/a.rs".to_owned(), content.to_owned());
            store.mark_viewed(&[ViewedFile { path, content, viewed, at: Time::UNIX_EPOCH }]).expect("a mark");
        }
        let viewed = store.viewed_files().expect("marks");
        assert_eq!(viewed, HashSet::from([("src/a.rs".to_owned(), "2".to_owned())]));
        // A line of a newer version, and a torn one.
        let path = store.viewed_path();
        let mut bytes = std::fs::read(&path).expect("the file");
        bytes.extend_from_slice(b"{\"path\":\"src/a.rs\",\"content\":\"9\",\"viewed\":true,\"at\":\"2026-03-04T05:06:07Z\",\"new\":1}\n{\"pa");
        std::fs::write(&path, bytes).expect("a longer file");
        assert_eq!(store.viewed_files().expect("marks").len(), 2);
    }
}
