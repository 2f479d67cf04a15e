//! The code of a tree as documents, each read once however many trees have it.

use std::collections::HashMap;
use std::sync::Arc;

use super::mask::Mask;
use super::retrieve::SourceFile;
use super::retrieve::document::Document;
use super::retrieve::paths::is_code;
use super::retrieve::words::Vocabulary;
use super::secret_files::is_secret_file;
use super::text::{Text, is_binary};
use crate::git::{GitError, Repo, TreeFile};

/// Larger files are not searched, in bytes: no person wrote them.
const MAX_BYTES: u64 = 1 << 20;

/// Documents by blob, and the words in them.
#[derive(Debug, Default)]
pub struct Library {
    pub vocabulary: Vocabulary,
    documents: HashMap<String, Arc<Document>>,
}

impl Library {
    /// The documents of files; those that are no text, too large, or not to be had are left away.
    pub fn read(&mut self, repo: &Repo, files: Vec<TreeFile>) -> Vec<SourceFile> {
        let read = files.into_iter().filter_map(|file| {
            let document = match self.documents.get(&file.blob) {
                Some(document) => Arc::clone(document),
                None => {
                    let document = Arc::new(Document::read(&text(repo, &file)?, &mut self.vocabulary));
                    self.documents.insert(file.blob, Arc::clone(&document));
                    document
                }
            };
            Some(SourceFile { path: file.path, document }).filter(|file| file.document.lines() > 0)
        });
        read.collect()
    }
}

/// The files of a tree that are code and may be shown.
pub fn code_files(repo: &Repo, commit: &str) -> Result<Vec<TreeFile>, GitError> {
    let mut files = repo.tree_files(commit)?;
    files.retain(|file| is_code(&file.path) && !is_secret_file(&file.path));
    Ok(files)
}

fn text(repo: &Repo, file: &TreeFile) -> Option<String> {
    let content = match repo.blob_size(&file.blob) {
        Ok(size) if size <= MAX_BYTES => repo.blob(&file.blob).ok()?,
        _ => return None,
    };
    match is_binary(&content) {
        true => None,
        false => Some(
            String::from_utf8(content).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
        ),
    }
}

/// A file's text as it may be sent.
pub fn masked(repo: &Repo, blob: &str, path: &str) -> Option<Text> {
    Text::of(repo, blob, path, Mask::On).ok().filter(|text| !text.is_binary)
}
