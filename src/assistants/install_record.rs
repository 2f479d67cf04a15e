//! Record of an installation: how to restore a file that was not changed since.
//!
//! The record holds the lines that the installation replaced, not a copy of the file: settings have keys of their own.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use similar::{DiffOp, TextDiff};

use super::AssistantError;
use super::settings_file::AssistantFile;
use crate::store::files::{self, ExistingPolicy};

/// Record of an installation in one file.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct InstallRecord {
    version: u32,
    path: PathBuf,
    /// BLAKE3 hash of the file after the installation.
    installed_hash: String,
    /// BLAKE3 hash of the file before the installation; `None` without a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    original_hash: Option<String>,
    /// Changes that turn the installed lines into the original ones, from the start to the end of the file.
    edits: Vec<LineChange>,
    /// Folders that the installation made, the innermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) made_folders: Vec<PathBuf>,
}

/// Replacement of lines of the installed file.
#[derive(Debug, Serialize, Deserialize)]
struct LineChange {
    /// Index of the first line, from 0.
    line: usize,
    /// Number of installed lines.
    count: usize,
    /// Original lines, with their endings.
    original: String,
}

fn hash(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

impl InstallRecord {
    /// Records the way from `installed` back to `original`, where `None` is no file.
    pub(super) fn new(
        file: &AssistantFile,
        original: Option<&str>,
        installed: &str,
        made_folders: Vec<PathBuf>,
    ) -> Self {
        let old: Vec<&str> = original.unwrap_or_default().split_inclusive('\n').collect();
        let diff = TextDiff::from_slices(&installed.split_inclusive('\n').collect::<Vec<_>>(), &old)
            .ops()
            .iter()
            .filter(|op| !matches!(op, DiffOp::Equal { .. }))
            .map(|op| LineChange {
                line: op.old_range().start,
                count: op.old_range().len(),
                original: old[op.new_range()].concat(),
            })
            .collect();
        Self {
            version: 1,
            path: file.path.clone(),
            installed_hash: hash(installed),
            original_hash: original.map(hash),
            edits: if original.is_some() { diff } else { Vec::new() },
            made_folders,
        }
    }

    /// Returns the original content, `Some(None)` for no file. Returns `None` if `text` is not what was installed.
    pub(super) fn restore(&self, text: &str) -> Option<Option<String>> {
        if hash(text) != self.installed_hash {
            return None;
        }
        let Some(original_hash) = &self.original_hash else { return Some(None) };
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let (mut original, mut at) = (String::with_capacity(text.len()), 0);
        for edit in &self.edits {
            original.push_str(&lines.get(at..edit.line)?.concat());
            original.push_str(&edit.original);
            at = edit.line.checked_add(edit.count)?;
        }
        original.push_str(&lines.get(at..)?.concat());
        (hash(&original) == *original_hash).then_some(Some(original))
    }

    fn file(records: &Path, path: &Path) -> PathBuf {
        let key = blake3::hash(path.as_os_str().as_encoded_bytes()).to_hex();
        records.join(format!("{}.json", &key[..16]))
    }

    /// Loads the record of a file; `None` without a readable one. Without a record only revdeck's entries are taken out.
    pub(super) fn load(records: &Path, path: &Path) -> Option<Self> {
        let bytes = fs::read(Self::file(records, path)).ok()?;
        serde_json::from_slice(&bytes).ok().filter(|record: &Self| record.version == 1 && record.path == path)
    }

    /// Saves the record.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be written.
    pub(super) fn save(&self, records: &Path, path: &Path) -> Result<(), AssistantError> {
        let file = Self::file(records, path);
        let failed = |source: std::io::Error| AssistantError::Io { action: "write", path: file.clone(), source };
        let bytes = serde_json::to_vec(self).map_err(|error| failed(error.into()))?;
        files::write_atomically(&file, &bytes, ExistingPolicy::Replace)
            .map_err(|error| failed(std::io::Error::other(error)))
    }

    /// Deletes the record of a file.
    ///
    /// # Errors
    ///
    /// Returns an error if the file exists and cannot be deleted.
    pub(super) fn forget(records: &Path, path: &Path) -> Result<(), AssistantError> {
        let file = Self::file(records, path);
        match fs::remove_file(&file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(AssistantError::io("remove", &file)(error))
            }
            _ => Ok(()),
        }
    }
}
