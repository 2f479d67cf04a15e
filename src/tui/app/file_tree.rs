//! Arranges files as a tree of folders. Folders that hold nothing but one folder are one row: `src/context/retrieve/`.

use std::collections::HashSet;

use crate::tui::message::FileListRow;

/// Row of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileTreeRow {
    /// A folder.
    Folder(FileFolder),
    /// A file.
    File {
        /// Index among the files that were arranged.
        index: usize,
        /// Number of folder rows above it that contain it.
        depth: usize,
        /// Bytes of its path that those folders name.
        folder_bytes: usize,
    },
}

/// Folder with its counts, those of all files below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileFolder {
    /// Path relative to the repository root, with `/` at its end.
    pub path: String,
    /// Bytes of the path that the folders above it name.
    pub parent_bytes: usize,
    /// Number of folder rows above it that contain it.
    pub depth: usize,
    /// Its files are not listed.
    pub is_folded: bool,
    /// Number of files below it.
    pub files: usize,
    /// Number of files that the user has viewed.
    pub viewed: usize,
    /// Number of findings by priority, P0 to P3.
    pub counts: [u32; 4],
}

/// Arranges files. The rows of folded folders have no files below them.
pub fn arrange_files(files: &[FileListRow], folded: &HashSet<String>) -> Vec<FileTreeRow> {
    let mut order: Vec<usize> = (0..files.len()).collect();
    // The files of a folder stand together if its end sorts before any other character.
    let key = |index: &usize| files[*index].path.bytes().map(|byte| if byte == b'/' { 0 } else { byte });
    order.sort_unstable_by(|a, b| key(a).cmp(key(b)));
    let mut rows = Vec::with_capacity(order.len());
    // Parts of `order` that are still to be listed, the next one last: the files, the bytes that the folders above name,
    // and the depth.
    let mut rest = vec![(order.as_slice(), 0, 0)];
    while let Some((part, folder_bytes, depth)) = rest.pop() {
        let Some(&first) = part.first() else { continue };
        let path = &files[first].path;
        let Some(end) = path[folder_bytes..].find('/').map(|at| folder_bytes + at + 1) else {
            rows.push(FileTreeRow::File { index: first, depth, folder_bytes });
            rest.push((&part[1..], folder_bytes, depth));
            continue;
        };
        let count = part.partition_point(|index| files[*index].path.starts_with(&path[..end]));
        let (inside, after) = part.split_at(count);
        let end = extend_folder(files, inside, end);
        let folder = describe_folder(files, inside, (&path[..end], folder_bytes), depth, folded);
        rest.push((after, folder_bytes, depth));
        if !folder.is_folded {
            rest.push((inside, end, depth + 1));
        }
        rows.push(FileTreeRow::Folder(folder));
    }
    rows
}

/// Returns the end of the deepest folder, from the one that ends at `end`, that holds all these files.
fn extend_folder(files: &[FileListRow], inside: &[usize], mut end: usize) -> usize {
    let (Some(first), Some(last)) = (inside.first(), inside.last()) else { return end };
    let (first, last) = (&files[*first].path, &files[*last].path);
    while let Some(next) = first[end..].find('/').map(|at| end + at + 1)
        && last.starts_with(&first[..next])
    {
        end = next;
    }
    end
}

fn describe_folder(
    files: &[FileListRow],
    inside: &[usize],
    (path, parent_bytes): (&str, usize),
    depth: usize,
    folded: &HashSet<String>,
) -> FileFolder {
    let mut counts = [0_u32; 4];
    for index in inside {
        counts.iter_mut().zip(files[*index].counts).for_each(|(sum, count)| *sum = sum.saturating_add(count));
    }
    FileFolder {
        path: path.to_owned(),
        parent_bytes,
        depth,
        is_folded: folded.contains(path),
        files: inside.len(),
        viewed: inside.iter().filter(|index| files[**index].is_viewed).count(),
        counts,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::message::FileListState;

    fn files(paths: &[&str]) -> Vec<FileListRow> {
        let row = |path: &&str| FileListRow {
            path: (*path).to_owned(),
            counts: [0, u32::from(path.contains("bad")), 0, 0],
            state: FileListState::Covered,
            is_viewed: path.contains("seen"),
            viewed_changes: None,
        };
        paths.iter().map(row).collect()
    }

    /// Returns the rows, indented by their depth.
    fn rows(paths: &[&str], folded: &[&str]) -> String {
        let files = files(paths);
        let folded: HashSet<String> = folded.iter().map(|path| (*path).to_owned()).collect();
        let line = |row: FileTreeRow| match row {
            FileTreeRow::Folder(folder) => {
                let name = &folder.path[folder.parent_bytes..];
                let sign = if folder.is_folded { "+" } else { "" };
                let counts = (folder.files, folder.viewed, folder.counts[1]);
                format!("{}{sign}{name} {counts:?}", "  ".repeat(folder.depth))
            }
            FileTreeRow::File { index, depth, folder_bytes } => {
                format!("{}{}", "  ".repeat(depth), &files[index].path[folder_bytes..])
            }
        };
        arrange_files(&files, &folded).into_iter().map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn folders_with_one_folder_are_one_row_and_count_their_files() {
        let paths = ["src/a/b/seen.rs", "README.md", "src/a/b/bad.rs", "src/a.rs", "src/a-b/c.rs"];
        insta::assert_snapshot!(rows(&paths, &[]), @"
        README.md
        src/ (4, 1, 1)
          a/b/ (2, 1, 1)
            bad.rs
            seen.rs
          a-b/ (1, 0, 0)
            c.rs
          a.rs
        ");
        insta::assert_snapshot!(rows(&paths, &["src/a/b/", "src/a-b/"]), @"
        README.md
        src/ (4, 1, 1)
          +a/b/ (2, 1, 1)
          +a-b/ (1, 0, 0)
          a.rs
        ");
        insta::assert_snapshot!(rows(&paths, &["src/"]), @"
        README.md
        +src/ (4, 1, 1)
        ");
    }

    #[test]
    fn odd_paths_are_listed_once() {
        for (paths, expected) in [
            (&[][..], ""),
            (&["a"], "a"),
            (&["a/b/c"], "a/b/ (1, 0, 0)\n  c"),
            (&["a/b", "a/b/c"], "a/ (2, 0, 0)\n  b\n  b/ (1, 0, 0)\n    c"),
            (&["/x", "x//y"], "/ (1, 0, 0)\n  x\nx// (1, 0, 0)\n  y"),
            (&["ä/ö", "ä/ü/ü"], "ä/ (2, 0, 0)\n  ö\n  ü/ (1, 0, 0)\n    ü"),
        ] {
            assert_eq!(rows(paths, &[]), expected, "{paths:?}");
        }
    }

    #[test]
    fn a_path_of_many_folders_is_one_row() {
        let deep = "d/".repeat(2_000) + "f";
        let rows = arrange_files(&files(&[&deep, "e"]), &HashSet::new());
        assert_eq!(rows.len(), 3);
    }
}
