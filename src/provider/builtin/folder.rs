//! Files and folders without a repository, for `revdeck smells`.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use thiserror::Error;

use super::language::Language;
use super::smells::duplicate_code::index::CloneIndex;
use super::source::Parsers;
use super::{Builtin, FileReport};

/// A path that was named and could not be read.
#[derive(Debug, Error)]
#[error("cannot read {path}: {source}")]
pub struct FolderError {
    pub path: PathBuf,
    source: std::io::Error,
}

/// What was read and what was not.
#[derive(Debug, Default)]
pub struct FolderReport {
    /// By path.
    pub files: Vec<FileReport>,
    /// Files of ours that could not be read, with why. By path.
    pub unreadable: Vec<(PathBuf, String)>,
}

/// More threads gain little: reading and parsing share the memory bus.
const THREADS: usize = 2;

impl Builtin {
    /// Reads files and folders, these as `ignore` walks them: what .gitignore names and hidden files are left out. A
    /// named file is read in any case. Files above `max_file_bytes` are left out.
    ///
    /// # Errors
    /// A named path that does not exist or cannot be read.
    pub fn analyze_paths(&self, paths: &[PathBuf], max_file_bytes: u64) -> Result<FolderReport, FolderError> {
        let mut todo = Vec::new();
        for path in paths {
            let data = path.metadata().map_err(|source| FolderError { path: path.clone(), source })?;
            if data.is_dir() {
                walk(path, max_file_bytes, &mut todo);
            } else {
                todo.push((data.len(), path.clone()));
            }
        }
        todo.sort_by(|a, b| a.1.cmp(&b.1));
        todo.dedup_by(|a, b| a.1 == b.1);
        // Taken from the end: the largest first, so that no thread is left with one at last.
        todo.sort_by_key(|(size, _)| *size);
        let queue = Mutex::new(todo);
        let (mut report, copies) = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..THREADS).map(|_| scope.spawn(|| self.work(&queue))).collect();
            let mut report = FolderReport::default();
            let mut copies = CloneIndex::default();
            for (part, index) in workers.into_iter().filter_map(|worker| worker.join().ok()) {
                report.files.extend(part.files);
                report.unreadable.extend(part.unreadable);
                copies.extend(index);
            }
            (report, copies)
        });
        report.files.sort_by(|a, b| a.path.cmp(&b.path));
        report.unreadable.sort();
        if self.limits().duplicate_code.enabled {
            for (path, smell) in copies.find_all(&mut |path| std::fs::read(path).ok(), self.limits()) {
                if let Ok(found) = report.files.binary_search_by(|file| file.path.cmp(&path))
                    && let Some(file) = report.files.get_mut(found)
                {
                    let mut smell = [smell];
                    if !file.hidden.is_empty() {
                        file.hidden.hide(&mut smell, &std::fs::read(&path).unwrap_or_default());
                    }
                    file.smells.extend(smell);
                }
            }
            for file in &mut report.files {
                file.smells.sort_by_key(|smell| (smell.line_start, smell.kind, smell.line_end));
            }
        }
        Ok(report)
    }

    fn work(&self, queue: &Mutex<Vec<(u64, PathBuf)>>) -> (FolderReport, CloneIndex) {
        let mut report = FolderReport::default();
        let mut copies = CloneIndex::default();
        let mut parsers = Parsers::default();
        loop {
            let next = queue.lock().unwrap_or_else(std::sync::PoisonError::into_inner).pop();
            let Some((_, path)) = next else { return (report, copies) };
            match std::fs::read(&path) {
                Ok(text) => {
                    let name = crate::domain::text::path_from_bytes(path.as_os_str().as_encoded_bytes());
                    let Some(file) = self.analyze_file(&mut parsers, &name, &text) else { continue };
                    if self.limits().duplicate_code.enabled {
                        copies.add(&name, file.language, &text);
                    }
                    report.files.push(file);
                }
                Err(error) => report.unreadable.push((path, error.to_string())),
            }
        }
    }
}

fn walk(folder: &Path, max_file_bytes: u64, todo: &mut Vec<(u64, PathBuf)>) {
    for entry in ignore::WalkBuilder::new(folder).require_git(false).build().flatten() {
        if !entry.file_type().is_some_and(|kind| kind.is_file()) {
            continue;
        }
        let name = entry.path().to_string_lossy();
        // Files without an ending may say in their first line what they are; they are few.
        if Language::detect(&name, b"").is_none() && entry.path().extension().is_some() {
            continue;
        }
        let Ok(data) = entry.metadata() else { continue };
        if data.len() <= max_file_bytes {
            todo.push((data.len(), entry.into_path()));
        }
    }
}
