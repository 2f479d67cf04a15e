//! Analyzes files and folders outside of a repository, for `revdeck smells`.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use thiserror::Error;

use super::other_files::FileSource;
use super::smells::duplicate_code::index::CloneIndex;
use super::{Builtin, FileReport};
use crate::syntax::ParseFailure;
use crate::syntax::language::Language;
use crate::syntax::source::Parsers;

/// Error for a path argument that cannot be read.
#[derive(Debug, Error)]
#[error("cannot read {path}: {source}")]
pub struct FolderError {
    pub path: PathBuf,
    source: std::io::Error,
}

/// Result of analyzing files and folders.
#[derive(Debug, Default)]
pub struct FolderReport {
    /// Sorted by path.
    pub files: Vec<FileReport>,
    /// Files in a supported language that could not be read, each with the error. Sorted by path.
    pub unreadable: Vec<(PathBuf, String)>,
    /// Skipped path arguments and skipped files in a supported language, each with the reason. Sorted by path.
    pub left_out: Vec<(PathBuf, String)>,
}

/// The files of an analysis, on disk.
struct FilesOnDisk {
    paths: Vec<PathBuf>,
    max_file_bytes: u64,
}

impl FileSource for FilesOnDisk {
    fn paths(&self) -> Vec<String> {
        self.paths.iter().filter_map(|path| path.to_str()).map(str::to_owned).collect()
    }

    fn read(&self, path: &str) -> Option<Vec<u8>> {
        read_bounded(Path::new(path), self.max_file_bytes).ok()?
    }
}

/// A file that waits for its analysis.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct QueuedFile {
    size: u64,
    path: PathBuf,
    found: FileOrigin,
}

/// Origin of a file in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum FileOrigin {
    Named,
    InFolder,
}

const NOT_A_FILE: &str = "it is not an ordinary file";

fn too_large_reason(max_file_bytes: u64) -> String {
    format!("it is larger than max_file_bytes, {max_file_bytes}")
}

/// Number of worker threads. More threads gain little: reading and parsing share the memory bus.
const WORKER_THREADS: usize = 2;

impl Builtin {
    /// Analyzes files and folders.
    ///
    /// Folders are walked with the `ignore` crate: hidden files and files that .gitignore names are skipped. A file
    /// given as an argument is not. Only regular files of at most `max_file_bytes` bytes are opened, because reading a
    /// pipe or a device may never end. Symbolic links are followed only if they are arguments.
    ///
    /// # Errors
    ///
    /// Returns [`FolderError`] if the metadata of an argument cannot be read, for example because the path does not
    /// exist.
    pub fn analyze_paths(&self, paths: &[PathBuf], max_file_bytes: u64) -> Result<FolderReport, FolderError> {
        let (mut todo, mut left_out) = (Vec::new(), Vec::new());
        for path in paths {
            let data = path.metadata().map_err(|source| FolderError { path: path.clone(), source })?;
            if data.is_dir() {
                collect_files(path, max_file_bytes, &mut todo, &mut left_out);
            } else if !data.is_file() {
                left_out.push((path.clone(), NOT_A_FILE.to_owned()));
            } else if data.len() > max_file_bytes {
                left_out.push((path.clone(), too_large_reason(max_file_bytes)));
            } else {
                todo.push(QueuedFile { size: data.len(), path: path.clone(), found: FileOrigin::Named });
            }
        }
        todo.sort_by(|a, b| (&a.path, a.found).cmp(&(&b.path, b.found)));
        todo.dedup_by(|a, b| a.path == b.path);
        // Workers pop from the end, so the largest file comes first and no thread processes it alone at the end.
        todo.sort_by_key(|queued| queued.size);
        let paths = todo.iter().map(|queued| queued.path.clone()).collect();
        let builtin = self.clone().with_other_files(Box::new(FilesOnDisk { paths, max_file_bytes }));
        let queue = Mutex::new(todo);
        let (mut report, copies) = std::thread::scope(|scope| {
            let workers: Vec<_> =
                (0..WORKER_THREADS).map(|_| scope.spawn(|| builtin.analyze_queue(&queue, max_file_bytes))).collect();
            let mut report = FolderReport { left_out, ..FolderReport::default() };
            let mut copies = CloneIndex::default();
            for (part, index) in workers.into_iter().filter_map(|worker| worker.join().ok()) {
                report.files.extend(part.files);
                report.unreadable.extend(part.unreadable);
                report.left_out.extend(part.left_out);
                copies.extend(index);
            }
            (report, copies)
        });
        report.files.sort_by(|a, b| a.path.cmp(&b.path));
        report.unreadable.sort();
        report.left_out.sort();
        report.left_out.dedup();
        if self.limits().duplicate_code.enabled {
            for (path, smell) in copies.find_clones(&mut |path| std::fs::read(path).ok(), self.limits()) {
                if let Ok(found) = report.files.binary_search_by(|file| file.path.cmp(&path))
                    && let Some(file) = report.files.get_mut(found)
                {
                    let mut smell = [smell];
                    let text = std::fs::read(&path).unwrap_or_default();
                    file.secrets.redactor(&text).redact_smells(&mut smell, &text);
                    file.smells.extend(smell);
                }
            }
            for file in &mut report.files {
                file.smells.sort_by_key(|smell| (smell.line_start, smell.kind, smell.line_end));
            }
        }
        Ok(report)
    }

    fn analyze_queue(&self, queue: &Mutex<Vec<QueuedFile>>, max_file_bytes: u64) -> (FolderReport, CloneIndex) {
        let mut report = FolderReport::default();
        let mut copies = CloneIndex::default();
        let mut parsers = Parsers::default();
        loop {
            let next = queue.lock().unwrap_or_else(std::sync::PoisonError::into_inner).pop();
            let Some(QueuedFile { path, found, .. }) = next else { return (report, copies) };
            match read_bounded(&path, max_file_bytes) {
                Ok(Some(text)) => {
                    let name = crate::domain::text::path_from_bytes(path.as_os_str().as_encoded_bytes());
                    let file = match self.analyze_file(&mut parsers, &name, &text) {
                        Ok(file) => file,
                        Err(why) => {
                            if why != ParseFailure::UnknownLanguage || found == FileOrigin::Named {
                                report.left_out.push((path, why.to_string()));
                            }
                            continue;
                        }
                    };
                    if self.limits().duplicate_code.enabled {
                        copies.add_file(&name, file.language, &text);
                    }
                    report.files.push(file);
                }
                Ok(None) => report.left_out.push((path, too_large_reason(max_file_bytes))),
                Err(error) => report.unreadable.push((path, error.to_string())),
            }
        }
    }
}

/// Reads a file; `None` if it holds more than `max_file_bytes` bytes, whatever its metadata said.
fn read_bounded(path: &Path, max_file_bytes: u64) -> std::io::Result<Option<Vec<u8>>> {
    let mut text = Vec::new();
    std::fs::File::open(path)?.take(max_file_bytes.saturating_add(1)).read_to_end(&mut text)?;
    Ok(u64::try_from(text.len()).is_ok_and(|length| length <= max_file_bytes).then_some(text))
}

fn collect_files(
    folder: &Path,
    max_file_bytes: u64,
    todo: &mut Vec<QueuedFile>,
    left_out: &mut Vec<(PathBuf, String)>,
) {
    for entry in ignore::WalkBuilder::new(folder).require_git(false).build().flatten() {
        let Some(kind) = entry.file_type().filter(|kind| !kind.is_dir() && !kind.is_symlink()) else { continue };
        let known = Language::detect(&entry.path().to_string_lossy(), b"").is_some();
        // A file without an extension may name its language in its first line. Such files are few.
        if !known && (entry.path().extension().is_some() || !kind.is_file()) {
            continue;
        }
        if !kind.is_file() {
            left_out.push((entry.into_path(), NOT_A_FILE.to_owned()));
            continue;
        }
        let Ok(data) = entry.metadata() else { continue };
        if data.len() <= max_file_bytes {
            todo.push(QueuedFile { size: data.len(), path: entry.into_path(), found: FileOrigin::InFolder });
        } else if known {
            left_out.push((entry.into_path(), too_large_reason(max_file_bytes)));
        }
    }
}
