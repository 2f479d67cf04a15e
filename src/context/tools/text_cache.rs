//! Texts of the snapshot's files, masked; kept for the next call, which is often about the same files.

use std::collections::HashMap;
use std::sync::Arc;

use super::{ToolError, quote};
use crate::context::mask::Mask;
use crate::context::text::{BlobText, MAX_TEXT_BYTES, ReadTextError, format_size};
use crate::git::{Repo, TreeListingEntry};

/// More is forgotten, in bytes of text.
const MAX_CACHED_BYTES: usize = 32 << 20;

pub struct MaskedTextCache {
    mask: Mask,
    /// By path: what is masked depends on it.
    texts: HashMap<String, Arc<BlobText>>,
    bytes: usize,
}

impl MaskedTextCache {
    pub fn new(mask: Mask) -> Self {
        Self { mask, texts: HashMap::new(), bytes: 0 }
    }

    pub fn mask(&self) -> Mask {
        self.mask
    }

    /// A file's text, binary ones included.
    pub fn get(&mut self, repo: &Repo, entry: &TreeListingEntry) -> Result<Arc<BlobText>, ToolError> {
        if let Some(text) = self.texts.get(&entry.path) {
            return Ok(Arc::clone(text));
        }
        let text = BlobText::from_blob(repo, &entry.id, &entry.path, self.mask)
            .map_err(|unread| unreadable_error(&entry.path, unread))?;
        let text = Arc::new(text);
        if self.bytes > MAX_CACHED_BYTES {
            self.texts.clear();
            self.bytes = 0;
        }
        self.bytes += text.as_str().len();
        self.texts.insert(entry.path.clone(), Arc::clone(&text));
        Ok(text)
    }
}

/// Why a file cannot be shown. What git says names folders of this machine, and is not for a model.
pub fn unreadable_error(path: &str, unread: ReadTextError) -> ToolError {
    let path = quote(path);
    ToolError::failed(match unread {
        ReadTextError::TooLarge(bytes) => {
            format!("{path} has {}; files above {} are not shown", format_size(bytes), format_size(MAX_TEXT_BYTES))
        }
        ReadTextError::Git(error) => {
            tracing::warn!(%error, "a tool cannot read a file of the snapshot");
            format!("{path} cannot be read: git does not have its content here")
        }
    })
}
